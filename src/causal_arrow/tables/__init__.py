"""Tables: read them from any source, and say what matters about them. Importing the package costs nothing."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from causal_arrow.tables._columns import YES_AND_NO, is_number, same_level
    from causal_arrow.tables._raw import RawFrame, SourceColumn, source_columns
    from causal_arrow.tables._sources import ENDINGS, FileInMemory, as_frame
    from causal_arrow.tables.options import ReadOptions
    from causal_arrow.tables.reading import read_table
    from causal_arrow.tables.report import TableReport, inspect_table
    from causal_arrow.tables.table import Abilities, Column, Finding, Table

__all__ = ["Abilities", "Column", "Finding", "ReadOptions", "Table", "TableReport", "inspect_table", "read_table"]
__all__ += ["ENDINGS", "YES_AND_NO", "FileInMemory", "RawFrame", "SourceColumn", "as_frame", "is_number", "same_level"]
__all__ += ["source_columns"]
_NAMES = {
    "_columns": ("YES_AND_NO", "is_number", "same_level"),
    "_raw": ("RawFrame", "SourceColumn", "source_columns"),
    "_sources": ("ENDINGS", "FileInMemory", "as_frame"),
    "options": ("ReadOptions",),
    "reading": ("read_table",),
    "report": ("TableReport", "inspect_table"),
    "table": ("Abilities", "Column", "Finding", "Table"),
}


def __getattr__(name: str) -> Any:
    for module, names in _NAMES.items():
        if name in names:
            return getattr(importlib.import_module(f"causal_arrow.tables.{module}"), name)
    raise AttributeError(f"module 'causal_arrow.tables' has no attribute {name!r}")
