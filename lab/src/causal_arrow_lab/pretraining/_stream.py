"""The tasks of each step: new ones in every step, and always the same ones for a step, also after resuming a run.

Seeds are made of (run, draw, slot), so no generator state is saved, and any number of processes share one stream.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import torch

from causal_arrow.batches import TableBatch
from causal_arrow_lab.pretraining.config import BatchConfig, PretrainingConfig, ShapeConfig
from causal_arrow_lab.synthetic.tasks import TaskBatch, TaskDistribution


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


def _draw_size(law: str, bounds: tuple[int, int], random: np.random.Generator) -> int:
    """A whole number between two bounds by one of SHAPE_LAWS."""
    low, high = bounds
    if law == "uniform" or (law == "mixed" and random.uniform() < 0.5):
        return int(random.integers(low, high, endpoint=True))
    # Each integer represents the interval of width 1 around it.
    drawn = math.exp(random.uniform(math.log(low - 0.5), math.log(high + 0.5)))
    return min(max(round(drawn), low), high)


def draw_shape(config: ShapeConfig, random: np.random.Generator) -> Shape:
    """Draw a shape by the configuration."""
    # An unnecessary draw is left out, so that runs without long and wide shapes stay the same.
    kind = random.uniform() if config.long_share or config.wide_share else 1.0
    rows, columns = (config.observations_law, config.observations), (config.variables_law, config.variables)
    if kind < config.long_share:
        rows = "log_uniform", config.long_observations
    elif kind < config.long_share + config.wide_share:
        columns = "log_uniform", config.wide_variables
    return Shape(_draw_size(*rows, random), _draw_size(*columns, random))


def tasks_per_slot(config: BatchConfig, shape: Shape) -> int:
    """Number of tasks of a shape in one slot of a step."""
    if config.tasks_per_slot is not None:
        return config.tasks_per_slot
    work = shape.cells + config.cells_per_pair * shape.pairs
    return max(1, min(config.most_tasks_per_slot, int(config.work_per_slot / work)))


@dataclass(frozen=True)
class MemoryModel:
    """Memory of a forward and backward pass in bytes: fixed + tasks · (per_cell · n·p + per_pair · p²)."""

    fixed: float
    per_cell: float
    per_pair: float
    available: float

    def bytes_per_task(self, shape: Shape) -> float:
        return self.per_cell * shape.cells + self.per_pair * shape.pairs

    def __str__(self) -> str:
        return (
            f"{self.fixed / 2**30:.2f} GiB + {self.per_cell / 2**10:.1f} KiB per cell + "
            f"{self.per_pair / 2**10:.1f} KiB per pair of variables, of {self.available / 2**30:.0f} GiB"
        )

    def tasks_that_fit(self, shape: Shape) -> int:
        """The largest microbatch of a shape, at least one task."""
        return max(1, int((self.available - self.fixed) / self.bytes_per_task(shape)))


UNLIMITED = MemoryModel(0.0, 1e-9, 1e-9, 1e9)  # for devices without memory measurement: a slot is one microbatch


def fit_memory_model(measure: Callable[[Shape, int], float], available: float) -> MemoryModel:
    """Fit a memory model to the peaks `measure(shape, tasks)` of a few probes, by least squares."""
    sizes = ((1000, 10, 4), (1000, 10, 16), (60, 60, 4), (60, 60, 16), (400, 40, 8), (100, 90, 4))
    probes = [(Shape(observations, variables), tasks) for observations, variables, tasks in sizes]
    design = np.array([[1.0, tasks * shape.cells, tasks * shape.pairs] for shape, tasks in probes])
    peaks = np.array([measure(shape, tasks) for shape, tasks in probes])
    # Relative errors, so that the small probes determine the constant.
    fixed, per_cell, per_pair = np.linalg.lstsq(design / peaks[:, None], np.ones(len(peaks)), rcond=None)[0]
    return MemoryModel(max(fixed, 0.0), max(per_cell, 1.0), max(per_pair, 1.0), available)


def draw_tasks(distribution: TaskDistribution, tasks: int, shape: Shape, seed: int, device: torch.device) -> TaskBatch:
    """Draw tasks of one shape, determined by the seed."""
    generator = torch.Generator(device).manual_seed(seed)
    return distribution.sample(tasks, shape.observations, shape.variables, generator)


class TaskStream:
    """The tasks of slot s at step t. A slot draws the tasks of several steps at once, because large batches are cheap.

    On a GPU a thread with a separate stream makes the next draw of each slot ahead: drawing is many small kernels,
    which take longer to launch than to run, and run alongside the training step.
    """

    def __init__(self, config: PretrainingConfig, device: torch.device) -> None:
        self.config = config
        self.device = device
        tasks = config.tasks
        self.distribution = TaskDistribution.for_training(tasks.distribution, tasks.without, tasks.weights)
        self._drawn: dict[int, tuple[int, TaskBatch]] = {}
        self._ahead: dict[tuple[int, int], Future[tuple[TaskBatch, torch.cuda.Event]]] = {}
        self._thread = ThreadPoolExecutor(1) if device.type == "cuda" else None
        self._side_stream = torch.cuda.Stream(device) if device.type == "cuda" else None

    def needs_draw(self, step: int, slot: int) -> bool:
        """Whether `tasks` will draw new tasks."""
        return self._drawn.get(slot, (None,))[0] != self._draw_of(step, slot)[0]

    def tasks(self, step: int, slot: int) -> TaskBatch:
        """The tasks of one slot in a step."""
        steps = self.config.batch.steps_per_shape
        draw, position = self._draw_of(step, slot)
        if self.needs_draw(step, slot):
            self._drawn[slot] = (draw, self._next(draw, slot))
        tasks = self._drawn[slot][1]
        count = len(tasks) // steps
        return tasks[position * count : (position + 1) * count]

    def _next(self, draw: int, slot: int) -> TaskBatch:
        """The tasks of a draw, made ahead if possible. Begins the next draw."""
        if self._thread is None:
            return self._draw(draw, slot)
        ahead = self._ahead.pop((draw, slot), None)
        self._ahead = {(d, s): future for (d, s), future in self._ahead.items() if s != slot}  # useless after a jump
        if ahead is None:
            tasks = self._draw(draw, slot)
        else:
            tasks, ready = ahead.result()
            stream = torch.cuda.current_stream(self.device)
            stream.wait_event(ready)
            for tensor in tasks.tensors():
                tensor.record_stream(stream)
        self._ahead[draw + 1, slot] = self._thread.submit(self._draw_aside, draw + 1, slot)
        return tasks

    def _draw_aside(self, draw: int, slot: int) -> tuple[TaskBatch, torch.cuda.Event]:
        with torch.cuda.stream(self._side_stream):
            tasks = self._draw(draw, slot)
            return tasks, torch.cuda.current_stream(self.device).record_event()

    def _draw(self, draw: int, slot: int) -> TaskBatch:
        shape_seed, task_seed = self._seeds(draw, slot)
        shape = draw_shape(self.config.shapes, np.random.default_rng(shape_seed))
        count = tasks_per_slot(self.config.batch, shape) * self.config.batch.steps_per_shape
        return draw_tasks(self.distribution, count, shape, task_seed, self.device)

    def _draw_of(self, step: int, slot: int) -> tuple[int, int]:
        """The draw of a slot for a step, and the part of it. Slots change their shapes at different steps."""
        batch = self.config.batch
        offset = 0 if batch.one_shape else slot * batch.steps_per_shape // batch.slots
        return divmod(step + offset, batch.steps_per_shape)

    def _seeds(self, draw: int, slot: int) -> tuple[int, int]:
        shape_slot = 0 if self.config.batch.one_shape else slot
        shape_seed = np.random.SeedSequence([self.config.seed, draw, shape_slot, 0])
        task_seed = np.random.SeedSequence([self.config.seed, draw, slot, 1])
        return _integer(shape_seed), _integer(task_seed)


def _integer(seed: np.random.SeedSequence) -> int:
    """63 bits, a seed for both numpy and torch."""
    return int(seed.generate_state(1, np.uint64)[0] >> np.uint64(1))
