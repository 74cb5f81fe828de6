"""Causal Arrow: a pretrained network reads a table and answers with a causal graph.

Importing the package costs next to nothing: torch and the other heavy packages load when a name that needs them is
used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from causal_arrow._version import __version__

if TYPE_CHECKING:
    from causal_arrow.discovery.estimator import Arrow
    from causal_arrow.errors import ArrowError
    from causal_arrow.graphs.knowledge import Knowledge
    from causal_arrow.graphs.skeleton_order import SkeletonOrder
    from causal_arrow.network.model import ArrowConfig, ArrowModel
    from causal_arrow.synthetic.tasks import TaskBatch, TaskDistribution

_HOME = {
    "Arrow": "causal_arrow.discovery.estimator",
    "ArrowConfig": "causal_arrow.network.model",
    "ArrowError": "causal_arrow.errors",
    "ArrowModel": "causal_arrow.network.model",
    "Knowledge": "causal_arrow.graphs.knowledge",
    "SkeletonOrder": "causal_arrow.graphs.skeleton_order",
    "TaskBatch": "causal_arrow.synthetic.tasks",
    "TaskDistribution": "causal_arrow.synthetic.tasks",
}

__all__ = [
    "Arrow",
    "ArrowConfig",
    "ArrowError",
    "ArrowModel",
    "Knowledge",
    "SkeletonOrder",
    "TaskBatch",
    "TaskDistribution",
    "__version__",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'causal_arrow' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
