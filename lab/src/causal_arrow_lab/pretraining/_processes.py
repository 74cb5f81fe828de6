"""Training in one process or several, the only module that uses torch.distributed; and the clock of a run.

Of K processes, started by `torchrun --nproc-per-node K`, each takes every K-th slot of a step, and
DistributedDataParallel averages gradients once per step.
"""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch import distributed as dist
from torch.nn.parallel import DistributedDataParallel

from causal_arrow_lab.network.devices import resolve_device

_PATIENCE = timedelta(minutes=10)  # time that a process waits for the others before the run ends with an error


@dataclass(frozen=True)
class Processes:
    """This process among the processes of a run."""

    rank: int
    count: int
    device: torch.device

    @property
    def is_first(self) -> bool:
        """Whether this is the process that logs and saves."""
        return self.rank == 0

    def replicate(self, model: nn.Module) -> nn.Module:
        """Wrap the model to average gradients over processes if there are several."""
        if self.count == 1:
            return model
        return DistributedDataParallel(model, device_ids=[self.device.index] if self.device.type == "cuda" else None)

    def mean(self, value: Tensor) -> Tensor:
        """The mean of a tensor over all processes."""
        if self.count > 1:
            value = value.clone()
            dist.all_reduce(value)
            value /= self.count
        return value

    def from_first(self, numbers: Sequence[float]) -> list[float]:
        """Broadcast the numbers of the first process: clocks differ, and all processes must do the same."""
        if self.count == 1:
            return list(numbers)
        tensor = torch.tensor(numbers, dtype=torch.float64, device=self.device)
        dist.broadcast(tensor, src=0)
        values: list[float] = tensor.tolist()
        return values

    def wait(self) -> None:
        """Wait until every process has reached this point."""
        if self.count > 1:
            dist.barrier()


def without_averaging(model: nn.Module) -> contextlib.AbstractContextManager[None]:
    """Let backward passes add to the gradients of this process only, before the last microbatch of a step."""
    if isinstance(model, DistributedDataParallel):
        context: contextlib.AbstractContextManager[None] = model.no_sync()
        return context
    return contextlib.nullcontext()


@contextlib.contextmanager
def joined(device: str = "auto") -> Iterator[Processes]:
    """Join the processes that torchrun describes in the environment; without it there is one."""
    rank, count = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    where = resolve_device(device)
    if where.type == "cuda":
        if where.index is None:
            where = resolve_device(f"cuda:{os.environ.get('LOCAL_RANK', 0)}")
        torch.cuda.set_device(where)
    if count > 1:
        dist.init_process_group("nccl" if where.type == "cuda" else "gloo", timeout=_PATIENCE)
    try:
        yield Processes(rank, count, where)
    finally:
        if count > 1:
            dist.destroy_process_group()


class Decision(NamedTuple):
    """The decision before a step."""

    rehearse: bool = False
    """Validate and save now, to learn how long that takes."""
    falling: bool = False
    """The learning rate falls to zero from here on."""
    stop: bool = False
    fall: float = 1.0
    """Factor of the learning rate."""


class Pace:
    """The clock of a run, which may have a limit, and the decision before each step."""

    def __init__(self, minutes: float | None = None, decay_minutes: float = 0.0) -> None:
        self._start = time.monotonic()
        self.limit = math.inf if minutes is None else 60 * minutes
        self.decay_seconds = 60 * decay_minutes
        self.falling = False
        self.rehearsed = minutes is None
        """Whether the time that the end of the run takes is known; irrelevant without a limit."""

    def seconds_spent(self) -> float:
        """Seconds since the start of the run."""
        return time.monotonic() - self._start

    def seconds_left(self, seconds_to_end: float) -> float:
        """Seconds until the run must begin to end; a tenth of the limit is for the end until its time is known."""
        known = 1.5 * seconds_to_end + 1.0 if seconds_to_end else 0.1 * self.limit
        return math.inf if math.isinf(self.limit) else self.limit - self.seconds_spent() - known

    def decide(self, seconds_to_end: float) -> Decision:
        """Decide, given how long it took to validate and save; 0 if that is unknown."""
        left = self.seconds_left(seconds_to_end)
        near_the_fall = left < self.decay_seconds
        if not self.rehearsed and left > 0 and (near_the_fall or self.seconds_spent() > self.limit / 2):
            return Decision(rehearse=True)
        self.falling = self.falling or (self.decay_seconds > 0 and near_the_fall)
        fall = max(0.0, min(1.0, left / self.decay_seconds)) if self.falling else 1.0
        return Decision(falling=self.falling, stop=left < 0, fall=fall)


class Stopwatch:
    """Time spent inside `with stopwatch:` blocks; on a GPU by events, so that nothing waits before it is read."""

    def __init__(self, device: torch.device) -> None:
        self._on_gpu = device.type == "cuda"
        self._times: list[Any] = []

    def _mark(self) -> None:
        self._times.append(torch.cuda.Event(enable_timing=True) if self._on_gpu else time.perf_counter())
        if self._on_gpu:
            self._times[-1].record()

    def __enter__(self) -> None:
        self._mark()

    def __exit__(self, *_: object) -> None:
        self._mark()

    def read(self) -> float:
        """Seconds in all blocks since the last reading."""
        laps = list(zip(self._times[::2], self._times[1::2], strict=True))
        self._times.clear()
        if not self._on_gpu:
            return float(sum(stop - start for start, stop in laps))
        torch.cuda.synchronize()
        return sum(float(start.elapsed_time(stop)) for start, stop in laps) / 1000
