"""The tasks of each step: new ones in every step, and always the same ones for a step, also after resuming a run.

Seeds are made of (run, draw, slot), so no generator state is saved, and any number of processes share one stream:
process r of K takes the slots r, r + K, r + 2K, ...
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import torch

from causal_arrow_lab.pretraining.config import PretrainingConfig, TaskConfig
from causal_arrow_lab.pretraining.shapes import Shape, draw_shape, tasks_per_slot
from causal_arrow_lab.synthetic.tasks import TaskBatch, TaskDistribution


def distribution_of(config: TaskConfig) -> TaskDistribution:
    """The task distribution of a configuration."""
    return TaskDistribution.for_training(config.distribution, config.without, config.weights)


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
        self.distribution = distribution_of(config.tasks)
        self._drawn: dict[int, tuple[int, TaskBatch]] = {}
        self._ahead: dict[tuple[int, int], Future[tuple[TaskBatch, torch.cuda.Event]]] = {}
        self._thread = ThreadPoolExecutor(1) if device.type == "cuda" else None
        self._side_stream = torch.cuda.Stream(device) if device.type == "cuda" else None

    def needs_draw(self, step: int, slot: int) -> bool:
        """Whether `tasks` will draw."""
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
