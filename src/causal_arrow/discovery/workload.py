"""The memory that a table takes, known before the network starts; TableError where it is short."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from causal_arrow import storage
from causal_arrow.discovery.inference import chunk_size
from causal_arrow.errors import Remedy, TableError
from causal_arrow.network.protocol import Network


@dataclass(frozen=True)
class Workload:
    """A table's sizes, and an upper estimate of the memory that the network takes for it."""

    observations: int
    variables: int
    memory: int  # in bytes

    def __str__(self) -> str:
        return f"{self.variables:,} variables take up to {storage.in_words(self.memory)} of memory"


def workload(network: Network, observations: int, variables: int, observations_per_chunk: int | None) -> Workload:
    """What a network takes for a table of this shape, on its device."""
    at_once = observations_per_chunk or chunk_size(network, observations, variables) or observations
    cells = min(at_once, observations) * network.bytes_per_observation(variables)
    pairs = variables**2 * network.bytes_per_pair()
    return Workload(observations, variables, cells + pairs)


def check_memory(work: Workload, network: Network) -> None:
    """TableError if less memory is free where the network computes than the table takes."""
    free = network.free_memory()
    if free is not None and work.memory > free:
        raise TableError(
            f"This table needs too much memory: {work}, and {storage.in_words(free)} are free.", [Remedy("choose")]
        )


def peak_memory_gb() -> float:
    """The most memory this process has held so far."""
    import resource  # which Windows does not have

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return float(peak) / (1e9 if sys.platform == "darwin" else 1e6)
