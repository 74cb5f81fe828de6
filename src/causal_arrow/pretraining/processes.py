"""Training on one process or many; the only file that knows of torch.distributed.

Start many with `torchrun --nproc-per-node K -m causal_arrow.pretraining ...`; each process then takes every K-th slot
of a step, and gradients are averaged by DistributedDataParallel once a step.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

import torch
from torch import Tensor, nn
from torch import distributed as dist
from torch.nn.parallel import DistributedDataParallel

from causal_arrow.network.devices import resolve_device

_PATIENCE = timedelta(minutes=10)
"""How long a process waits for the others before the run ends with an error."""


@dataclass(frozen=True)
class Processes:
    """Who we are among the processes of a run."""

    rank: int
    count: int
    device: torch.device

    @property
    def is_first(self) -> bool:
        """True for the one process that logs and saves."""
        return self.rank == 0

    def replicate(self, model: nn.Module) -> nn.Module:
        """The model, with gradients averaged over processes if there are several."""
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
        """The numbers of the first process, on every process: clocks differ, and all must do the same."""
        if self.count == 1:
            return list(numbers)
        tensor = torch.tensor(numbers, dtype=torch.float64, device=self.device)
        dist.broadcast(tensor, src=0)
        values: list[float] = tensor.tolist()
        return values

    def wait(self) -> None:
        """Return when every process has come this far."""
        if self.count > 1:
            dist.barrier()


def without_averaging(model: nn.Module) -> contextlib.AbstractContextManager[None]:
    """Inside, backward passes only add to this process's gradients: for all but the last microbatch of a step."""
    if isinstance(model, DistributedDataParallel):
        context: contextlib.AbstractContextManager[None] = model.no_sync()
        return context
    return contextlib.nullcontext()


@contextlib.contextmanager
def joined(device: str = "auto") -> Iterator[Processes]:
    """This process among its peers, as torchrun describes them in the environment; alone without it."""
    rank, count = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    place = resolve_device(device)
    if place.type == "cuda":
        if place.index is None:
            place = resolve_device(f"cuda:{os.environ.get('LOCAL_RANK', 0)}")
        torch.cuda.set_device(place)
    if count > 1:
        dist.init_process_group("nccl" if place.type == "cuda" else "gloo", timeout=_PATIENCE)
    try:
        yield Processes(rank, count, place)
    finally:
        if count > 1:
            dist.destroy_process_group()
