"""Network: the protocol between discovery and networks, with or without torch; and the models in the package."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from causal_arrow.batches import LongTable, TableBatch
from causal_arrow.errors import ConfigurationError
from causal_arrow.graphs.graph_distribution import GraphDistribution
from causal_arrow.progress import Progress, ignore

DEFAULT_MODEL = "arrow-base"  # reads every table

BUNDLED_FOLDER = Path(__file__).parent / "weights"


def bundled_models() -> dict[str, Path]:
    """The models that come with the package: name -> folder."""
    return {weights.parent.name: weights.parent for weights in sorted(BUNDLED_FOLDER.glob("*/model.safetensors"))}


PRECISIONS = ("auto", "float32", "bfloat16")  # precisions of matrix products. A CPU has float32 only.


@runtime_checkable
class Network(Protocol):
    """Tables in, distributions over graphs out, on one device and in one precision."""

    extra: dict[str, Any]
    """The rest of its file besides configuration and weights, such as how it was trained."""
    reads: frozenset[str]
    """Parts of a table, besides its values, that it reads: "observed", "intervened", "levels"."""
    has_statistics: bool
    """Whether `read_long` takes statistics over all observations."""
    between_stages: list[Callable[[], None]]
    """Called now and then during a pass; what they raise ends it."""
    cells_together: int
    """Cells of tables that are worth one pass together."""

    @property
    def title(self) -> str:
        """Its name in an answer if it has no other."""

    @property
    def device(self) -> str:
        """The device it computes on: "cpu", "cuda:0"."""

    def on(self, device: str, precision: str) -> Network:
        """The same network on a device, in a precision; ConfigurationError if it cannot be there."""

    def read(
        self, tables: TableBatch, observations_per_chunk: int | None = None, progress: Progress = ignore
    ) -> GraphDistribution:
        """One distribution for each table, read in chunks of observations."""

    def read_long(
        self, table: LongTable, observations_per_chunk: int | None = None, progress: Progress = ignore
    ) -> GraphDistribution:
        """The distribution for one long table, in a batch of one."""

    def bytes_per_observation(self, variables: int) -> int:
        """Memory for each observation that is read at once."""

    def bytes_per_pair(self) -> int:
        """Memory for each ordered pair of variables, however many observations there are."""

    def free_memory(self) -> int | None:
        """The bytes that are free where it computes; None if unknown."""


PARTS = {"observed": "missing values", "intervened": "cells set by experiments", "levels": "categories"}


def check_parts(tables: TableBatch | LongTable, reads: frozenset[str]) -> None:
    """ConfigurationError if the tables have a part that a network would silently ignore."""
    for part in PARTS.keys() - reads:  # the others are not looked at: a GPU would have to be waited for
        marks = None if part == "observed" else getattr(tables, part)
        if not tables.complete if part == "observed" else marks is not None and bool((marks > 0).any()):
            raise ConfigurationError(f"These tables have {PARTS[part]}, which this network cannot read.")


def check_chunk(observations_per_chunk: int | None) -> None:
    """ConfigurationError unless it is a number of observations, or None for all of them."""
    if observations_per_chunk is not None and observations_per_chunk < 1:
        raise ConfigurationError(f"observations_per_chunk must be at least 1, got {observations_per_chunk}.")
