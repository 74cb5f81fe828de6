"""What a table will take: memory and arithmetic, known before the network starts; TableError where memory is short."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import torch

from causal_arrow import storage
from causal_arrow.discovery.inference import chunk_size
from causal_arrow.errors import Remedy, TableError
from causal_arrow.network.model import ArrowModel


@dataclass(frozen=True)
class Workload:
    """A table's sizes, and what the network takes for it: an upper estimate of memory, and operations."""

    observations: int
    variables: int
    memory: int  # in bytes
    operations: float

    def __str__(self) -> str:
        return f"{self.variables:,} variables take up to {storage.in_words(self.memory)} of memory"


def workload(model: ArrowModel, observations: int, variables: int, observations_per_chunk: int | None) -> Workload:
    """What a model takes for a table of this shape, on the device where it is."""
    device = next(model.parameters()).device.type
    at_once = observations_per_chunk or chunk_size(model, observations, variables) or observations
    cells = min(at_once, observations) * model.encoder.bytes_per_observation(variables, device)
    pairs = variables**2 * model.encoder.bytes_per_pair(device)
    return Workload(observations, variables, cells + pairs, model.encoder.operations(observations, variables))


def check_memory(work: Workload, device: torch.device) -> None:
    """TableError if the device has less memory free than the table takes."""
    free = free_memory(device)
    if free is not None and work.memory > free:
        raise TableError(
            f"This table needs too much memory: {work}, and {storage.in_words(free)} are free.", [Remedy("choose")]
        )


def free_memory(device: torch.device) -> int | None:
    """The bytes that are free on a device; None where nobody says."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    return storage.free_memory()


def peak_memory_gb() -> float:
    """The most memory this process has held so far."""
    import resource  # which Windows does not have

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return float(peak) / (1e9 if sys.platform == "darwin" else 1e6)
