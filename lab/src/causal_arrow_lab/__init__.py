"""The lab of Causal Arrow: synthetic tasks, pretraining, torch networks, and benchmarks."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from causal_arrow_lab._version import __version__

if TYPE_CHECKING:
    from causal_arrow_lab.network.checkpoint import load_model, save_model
    from causal_arrow_lab.network.model import ArrowConfig, ArrowModel
    from causal_arrow_lab.skeleton_order import SkeletonOrder
    from causal_arrow_lab.synthetic.tasks import TaskBatch, TaskDistribution

_HOME = {
    "ArrowConfig": "causal_arrow_lab.network.model",
    "ArrowModel": "causal_arrow_lab.network.model",
    "SkeletonOrder": "causal_arrow_lab.skeleton_order",
    "TaskBatch": "causal_arrow_lab.synthetic.tasks",
    "TaskDistribution": "causal_arrow_lab.synthetic.tasks",
    "load_model": "causal_arrow_lab.network.checkpoint",
    "save_model": "causal_arrow_lab.network.checkpoint",
}

__all__ = [
    "ArrowConfig",
    "ArrowModel",
    "SkeletonOrder",
    "TaskBatch",
    "TaskDistribution",
    "__version__",
    "load_model",
    "save_model",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'causal_arrow_lab' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
