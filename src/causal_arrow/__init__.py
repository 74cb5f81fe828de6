"""Causal Arrow: a pretrained network reads a table and answers with a causal graph.

Importing the package costs next to nothing: torch and the other heavy packages load when a name that needs them is
used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from causal_arrow._version import __version__

if TYPE_CHECKING:
    from causal_arrow.discovery.answer import Answer
    from causal_arrow.discovery.estimator import Arrow
    from causal_arrow.discovery.many.run import ManyAnswers, discover_many
    from causal_arrow.discovery.pipeline import Discovery, Settings, discover
    from causal_arrow.errors import ArrowError, ArrowWarning
    from causal_arrow.examples.loading import load_example
    from causal_arrow.graphs.knowledge import Knowledge
    from causal_arrow.graphs.skeleton_order import SkeletonOrder
    from causal_arrow.network.checkpoint import load_model, save_model
    from causal_arrow.network.model import ArrowConfig, ArrowModel
    from causal_arrow.synthetic.tasks import TaskBatch, TaskDistribution
    from causal_arrow.tables.reading import read_table

_HOME = {
    "Answer": "causal_arrow.discovery.answer",
    "Arrow": "causal_arrow.discovery.estimator",
    "ArrowConfig": "causal_arrow.network.model",
    "ArrowError": "causal_arrow.errors",
    "ArrowModel": "causal_arrow.network.model",
    "ArrowWarning": "causal_arrow.errors",
    "Discovery": "causal_arrow.discovery.pipeline",
    "Knowledge": "causal_arrow.graphs.knowledge",
    "ManyAnswers": "causal_arrow.discovery.many.run",
    "Settings": "causal_arrow.discovery.pipeline",
    "SkeletonOrder": "causal_arrow.graphs.skeleton_order",
    "TaskBatch": "causal_arrow.synthetic.tasks",
    "TaskDistribution": "causal_arrow.synthetic.tasks",
    "discover": "causal_arrow.discovery.pipeline",
    "discover_many": "causal_arrow.discovery.many.run",
    "load_example": "causal_arrow.examples.loading",
    "load_model": "causal_arrow.network.checkpoint",
    "read_table": "causal_arrow.tables.reading",
    "save_model": "causal_arrow.network.checkpoint",
}

__all__ = [
    "Answer",
    "Arrow",
    "ArrowConfig",
    "ArrowError",
    "ArrowModel",
    "ArrowWarning",
    "Discovery",
    "Knowledge",
    "ManyAnswers",
    "Settings",
    "SkeletonOrder",
    "TaskBatch",
    "TaskDistribution",
    "__version__",
    "discover",
    "discover_many",
    "load_example",
    "load_model",
    "read_table",
    "save_model",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'causal_arrow' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
