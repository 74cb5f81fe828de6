"""Tables: read them from any source, and say what matters about them. Importing the package costs nothing."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from causal_arrow.tables._columns import is_number, same_level
    from causal_arrow.tables.raw import RawFrame, SourceColumn, source_columns
    from causal_arrow.tables.sources import ENDINGS, FileInMemory, as_frame
    from causal_arrow.tables.table import Abilities

__all__ = ["ENDINGS", "Abilities", "FileInMemory", "RawFrame", "SourceColumn", "as_frame", "is_number", "same_level"]
__all__ += ["source_columns"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        for module in ("table", "raw", "sources", "_columns"):
            home = importlib.import_module(f"causal_arrow.tables.{module}")
            if hasattr(home, name):
                return getattr(home, name)
    raise AttributeError(f"module 'causal_arrow.tables' has no attribute {name!r}")
