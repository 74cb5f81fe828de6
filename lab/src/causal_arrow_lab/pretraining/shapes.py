"""Shapes of tables: those that training draws, and the number of tasks of a shape that the device holds at once."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from causal_arrow.batches import TableBatch
from causal_arrow_lab.pretraining.config import SHAPE_LAWS, BatchConfig, ShapeConfig


@dataclass(frozen=True)
class Shape:
    """Numbers of observations and variables of a table."""

    observations: int
    variables: int

    @classmethod
    def of(cls, tables: TableBatch) -> Shape:
        """The shape of all tables of a batch."""
        return cls(tables.observations, tables.variables)

    @property
    def cells(self) -> int:
        return self.observations * self.variables

    @property
    def pairs(self) -> int:
        return self.variables**2


def _uniform(low: int, high: int, random: np.random.Generator) -> int:
    return int(random.integers(low, high, endpoint=True))


def _log_uniform(low: int, high: int, random: np.random.Generator) -> int:
    # Each integer represents the interval of width 1 around it.
    drawn = math.exp(random.uniform(math.log(low - 0.5), math.log(high + 0.5)))
    return min(max(round(drawn), low), high)


def _mixed(low: int, high: int, random: np.random.Generator) -> int:
    draw = _uniform if random.uniform() < 0.5 else _log_uniform
    return draw(low, high, random)


LAWS: dict[str, Callable[[int, int, np.random.Generator], int]] = dict(
    zip(SHAPE_LAWS, (_uniform, _log_uniform, _mixed), strict=True)
)


def draw_shape(config: ShapeConfig, random: np.random.Generator) -> Shape:
    """Draw a shape by the configuration."""
    # An unnecessary draw is left out, so that runs without long and wide shapes stay the same.
    kind = random.uniform() if config.long_share or config.wide_share else 1.0
    is_long = kind < config.long_share
    is_wide = not is_long and kind < config.long_share + config.wide_share
    usual_observations, usual_variables = LAWS[config.observations_law], LAWS[config.variables_law]
    return Shape(
        _log_uniform(*config.long_observations, random)
        if is_long
        else usual_observations(*config.observations, random),
        _log_uniform(*config.wide_variables, random) if is_wide else usual_variables(*config.variables, random),
    )


def tasks_per_slot(config: BatchConfig, shape: Shape) -> int:
    """Number of tasks of a shape in one slot of a step."""
    if config.tasks_per_slot is not None:
        return config.tasks_per_slot
    work = shape.cells + config.cells_per_pair * shape.pairs
    return max(1, min(config.most_tasks_per_slot, int(config.work_per_slot / work)))


@dataclass(frozen=True)
class MemoryModel:
    """Memory of a forward and backward pass in bytes: fixed + tasks · (per_cell · n·p + per_pair · p²).

    Cells dominate for long tables, pairs for wide ones.
    """

    fixed: float
    per_cell: float
    per_pair: float
    available: float

    def bytes_per_task(self, shape: Shape) -> float:
        return self.per_cell * shape.cells + self.per_pair * shape.pairs

    def tasks_that_fit(self, shape: Shape) -> int:
        """The largest microbatch of a shape, at least one task."""
        return max(1, int((self.available - self.fixed) / self.bytes_per_task(shape)))


UNLIMITED = MemoryModel(0.0, 1e-9, 1e-9, 1e9)
"""For devices without memory measurement: a slot is one microbatch."""


def fit_memory_model(measure: Callable[[Shape, int], float], available: float) -> MemoryModel:
    """Fit a memory model to the peaks `measure(shape, tasks)` of a few probes, by least squares."""
    probes = [
        (Shape(1000, 10), 4),
        (Shape(1000, 10), 16),
        (Shape(60, 60), 4),
        (Shape(60, 60), 16),
        (Shape(400, 40), 8),
        (Shape(100, 90), 4),
    ]
    design = np.array([[1.0, tasks * shape.cells, tasks * shape.pairs] for shape, tasks in probes])
    peaks = np.array([measure(shape, tasks) for shape, tasks in probes])
    # Relative errors, so that the small probes determine the constant.
    fixed, per_cell, per_pair = np.linalg.lstsq(design / peaks[:, None], np.ones(len(peaks)), rcond=None)[0]
    return MemoryModel(max(fixed, 0.0), max(per_cell, 1.0), max(per_pair, 1.0), available)
