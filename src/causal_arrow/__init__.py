"""Causal Arrow: a pretrained network reads a table and answers with a causal graph.

Importing the package costs next to nothing: other packages load when a name that needs them is used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from causal_arrow._version import __version__

if TYPE_CHECKING:
    from causal_arrow.discovery.answer import Answer as Answer
    from causal_arrow.discovery.causes import causes_of as causes_of
    from causal_arrow.discovery.discovery import Discovery as Discovery
    from causal_arrow.discovery.estimator import Arrow as Arrow
    from causal_arrow.discovery.pipeline import discover as discover
    from causal_arrow.discovery.settings import Settings as Settings
    from causal_arrow.errors import ArrowError as ArrowError
    from causal_arrow.errors import ArrowWarning as ArrowWarning
    from causal_arrow.examples import load_example as load_example
    from causal_arrow.graphs.knowledge import Knowledge as Knowledge
    from causal_arrow.many.folder import ManyAnswers as ManyAnswers
    from causal_arrow.many.run import discover_many as discover_many
    from causal_arrow.network.checkpoint import load_model as load_model
    from causal_arrow.notebook import explore as explore
    from causal_arrow.series.discovery import SeriesDiscovery as SeriesDiscovery
    from causal_arrow.tables.options import ReadOptions as ReadOptions
    from causal_arrow.tables.reading import read_table as read_table

_HOME = {
    "Answer": "causal_arrow.discovery.answer",
    "Arrow": "causal_arrow.discovery.estimator",
    "ArrowError": "causal_arrow.errors",
    "ArrowWarning": "causal_arrow.errors",
    "Discovery": "causal_arrow.discovery.discovery",
    "Knowledge": "causal_arrow.graphs.knowledge",
    "ManyAnswers": "causal_arrow.many.folder",
    "ReadOptions": "causal_arrow.tables.options",
    "SeriesDiscovery": "causal_arrow.series.discovery",
    "Settings": "causal_arrow.discovery.settings",
    "causes_of": "causal_arrow.discovery.causes",
    "discover": "causal_arrow.discovery.pipeline",
    "discover_many": "causal_arrow.many.run",
    "explore": "causal_arrow.notebook",
    "load_example": "causal_arrow.examples",
    "load_model": "causal_arrow.network.checkpoint",
    "read_table": "causal_arrow.tables.reading",
}

__all__ = ["__version__", *_HOME]

_MOVED = {
    "ArrowConfig": "causal_arrow_lab.ArrowConfig",
    "ArrowModel": "causal_arrow_lab.ArrowModel",
    "SkeletonOrder": "causal_arrow_lab.SkeletonOrder",
    "TaskBatch": "causal_arrow_lab.TaskBatch",
    "TaskDistribution": "causal_arrow_lab.TaskDistribution",
    "save_model": "causal_arrow_lab.save_model",
}
"""Names that were here in earlier versions, and where they are now."""


def __getattr__(name: str) -> Any:
    if name in _MOVED:  # not an AttributeError, whose sentence `from causal_arrow import name` would hide
        raise ImportError(f"causal_arrow.{name} is now {_MOVED[name]}: pip install causal-arrow-lab.")
    if name not in _HOME:
        raise AttributeError(f"module 'causal_arrow' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
