"""Training in one process or several; the only module that uses torch.distributed.

Start several with `torchrun --nproc-per-node K -m causal_arrow_lab.pretraining ...`; each process takes every K-th slot
of a step, and DistributedDataParallel averages gradients once per step.
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

from causal_arrow_lab.network.devices import resolve_device

_PATIENCE = timedelta(minutes=10)
"""Time that a process waits for the others before the run ends with an error."""


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
