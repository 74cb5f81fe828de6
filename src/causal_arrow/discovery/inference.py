"""From a table and a network to a distribution over graphs: always the same one, in bounded memory."""

# B tables, N observations, P variables
# B tables, P variables

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from causal_arrow import storage
from causal_arrow.batches import LongTable, TableBatch, concatenated
from causal_arrow.discovery.arranged import ArrangedLongTable, ArrangedTable, levels_of
from causal_arrow.errors import Remedy, TableError
from causal_arrow.graphs.graph_distribution import GraphDistribution
from causal_arrow.network.checkpoint import find_model, load_model, read_extra
from causal_arrow.network.protocol import Network
from causal_arrow.progress import READING_AGAIN, READING_CELLS, Progress, ignore
from causal_arrow.tables.report import TrainingRange
from causal_arrow.tables.table import Abilities

# What the cells of one chunk may take. Fixed, so that the same table is read in the same chunks on every machine. Two
# million cells fit on a processor: 100,000 observations of 20 variables.
CHUNK_BYTES = 2**31
# What the pairs of variables of tables that go through the network together may take.
PAIR_BYTES_TOGETHER = 2**29


# Models


def ready_model(source: str | Path | Network, device: str = "auto", precision: str = "auto") -> Network:
    """The network on the device, loaded once: asking again gives the same object, unless its file has changed.

    A network that comes as an object stays as it is, and with "auto" where it is; if it has to change, a copy does.
    """
    if isinstance(source, Network):
        return source.on(device, precision)
    return _loaded(str(source), _stamps(source), device, precision)


def model_name(source: Any) -> str:
    """What to call a model in an answer: its name or path, or what kind of network it is."""
    return source.title if isinstance(source, Network) else str(source)


def abilities(source: Any, network: Network) -> Abilities:
    """What a network can read besides numbers, and what to call it in a sentence."""
    return Abilities("this model" if isinstance(source, Network) else f"the model {source}", network.reads)


def training_range(source: str | Path | Network) -> TrainingRange | None:
    """The sizes of tables that a model has learned from, by its own record; None if it has none."""
    return None if isinstance(source, Network) else _recorded_range(str(source), _stamps(source))


def _stamps(source: str | Path) -> tuple[int, ...]:
    """Numbers that change with the files of a model."""
    path = find_model(source)
    return tuple(entry.stat().st_mtime_ns for entry in (path, path / "model.safetensors") if entry.exists())


@lru_cache(maxsize=4)
def _loaded(source: str, stamps: tuple[int, ...], device: str, precision: str) -> Network:
    return load_model(source, device, precision)


@lru_cache(maxsize=16)
def _recorded_range(source: str, stamps: tuple[int, ...]) -> TrainingRange | None:
    record = read_extra(source).get("training")
    return TrainingRange.from_record(record) if isinstance(record, dict) else None


# One table


def chunk_size(network: Network, observations: int, variables: int) -> int | None:
    """How many observations to read at a time so that memory stays bounded; None for all of them."""
    fitting = max(1, CHUNK_BYTES // network.bytes_per_observation(variables))
    return None if fitting >= observations else fitting


def infer(
    network: Network,
    arranged: ArrangedTable | ArrangedLongTable,
    observations_per_chunk: int | None = None,
    progress: Progress = ignore,
) -> GraphDistribution:
    """The network's distribution over graphs, for the variables as they are arranged."""
    if isinstance(arranged, ArrangedLongTable):
        distribution = _infer_long(network, arranged, observations_per_chunk, progress)
    else:
        distribution = _infer_pass(
            network, _batch(arranged, _all_rows(arranged), network.reads), observations_per_chunk
        )
    return distribution[0].with_copies(arranged.read_as)


def _infer_long(
    network: Network, arranged: ArrangedLongTable, observations_per_chunk: int | None, progress: Progress
) -> GraphDistribution:
    """The distribution for a long table, in a batch of one; a table with bystanders is read again without them."""

    def one_pass(table: LongTable, progress: Progress) -> GraphDistribution:
        step = observations_per_chunk or chunk_size(network, len(table.drawn), table.variables)
        return network.read_long(table, step, progress)

    def again(stage: str, share: float) -> None:
        progress(READING_AGAIN, (share + (stage == READING_CELLS)) / 2)

    table = arranged.for_network(network.reads)
    distribution = one_pass(table, progress)
    if network.reads:
        distribution = read_without(distribution, lambda _, kept: one_pass(table.with_columns(kept[0]), again))
    return distribution


# Many tables


def tables_per_pass(network: Network, observations: int, variables: int) -> int:
    """How many tables of this shape go through the network together: a fixed amount of work and of memory."""
    pairs = PAIR_BYTES_TOGETHER // (network.bytes_per_pair() * variables**2)
    return max(1, min(network.cells_together // (observations * variables), pairs))


def infer_together(
    network: Network, tables: Sequence[ArrangedTable | ArrangedLongTable], observations_per_chunk: int | None = None
) -> Iterator[dict[int, GraphDistribution]]:
    """The answer of `infer` for each table, up to rounding, by its index, pass by pass; tables of one shape share one.

    Only tables with the same parts share a pass: a table without missing values is not read as one that has some. A
    long table has its own.
    """
    alike: dict[tuple[object, ...], list[int]] = {}
    short: dict[int, ArrangedTable] = {}
    for index, table in enumerate(tables):
        if isinstance(table, ArrangedLongTable):
            yield {index: infer(network, table, observations_per_chunk)}
            continue
        short[index] = table
        shape = len(table.values), len(table.read)
        parts = (shape, bool(np.isnan(table.values).any()), table.intervened is None)
        levels = any(column.levels for column in table.columns)
        alike.setdefault((*parts, levels), []).append(index)
    for indices in alike.values():
        any_one = short[indices[0]]
        most = tables_per_pass(network, len(any_one.values), len(any_one.read))
        for start in range(0, len(indices), most):
            together = indices[start : start + most]
            batches = [_batch(short[index], _all_rows(short[index]), network.reads) for index in together]
            distributions = _infer_pass(network, concatenated(batches), observations_per_chunk)
            yield {
                index: distributions[number].with_copies(short[index].read_as) for number, index in enumerate(together)
            }


def resampled_rows(
    network: Network,
    arranged: ArrangedTable | ArrangedLongTable,
    count: int,
    random: np.random.Generator,
    passes: int = 1,
) -> Iterator[NDArray[np.intp]]:
    """Observations of `count` tables drawn with replacement, those of one pass together, in at least so many passes.

    (B, N) each. The draws do not depend on the number of passes.
    """
    whole = arranged.table if isinstance(arranged, ArrangedLongTable) else arranged
    observations, variables = whole.values.shape
    most = min(tables_per_pass(network, observations, variables), -(-count // passes))
    for start in range(0, count, most):
        yield random.integers(observations, size=(min(most, count - start), observations))


def infer_rows(
    network: Network,
    arranged: ArrangedTable | ArrangedLongTable,
    rows: NDArray[np.intp],
    observations_per_chunk: int | None = None,
) -> list[GraphDistribution]:
    """The distribution for each table made of these observations (B, N), in one pass; one pass for each long table."""
    if isinstance(arranged, ArrangedLongTable):
        return [infer(network, arranged.with_rows(some), observations_per_chunk) for some in rows]
    distributions = _infer_pass(network, _batch(arranged, rows, network.reads), observations_per_chunk)
    return [distributions[table].with_copies(arranged.read_as) for table in range(len(rows))]


def _infer_pass(network: Network, tables: TableBatch, observations_per_chunk: int | None) -> GraphDistribution:
    """The distributions for tables of one shape; tables with bystanders are read again without them."""

    def one_pass(tables: TableBatch) -> GraphDistribution:
        step = observations_per_chunk or chunk_size(network, tables.observations, tables.variables)
        return network.read(tables, step)

    distributions = one_pass(tables)
    if network.reads:
        distributions = read_without(distributions, lambda *which: one_pass(tables.with_columns(*which)))
    return distributions


def _all_rows(arranged: ArrangedTable) -> NDArray[np.intp]:
    """Every observation once.  (1, N)"""
    return np.arange(len(arranged.values))[None]


def _batch(arranged: ArrangedTable, rows: NDArray[np.intp], reads: frozenset[str]) -> TableBatch:
    """Tables made of these observations (B, N), as the network reads them: without parts that say nothing."""
    read = arranged.read
    columns = [arranged.columns[index] for index in read]
    values, intervened = arranged.values, arranged.intervened
    if arranged.copies:
        values, intervened = values[:, read], None if intervened is None else intervened[:, read]
    values = values[rows]  # (B, N, P)
    holes = np.isnan(values)
    levels = levels_of(columns)
    read_levels = "levels" in reads and bool(levels.any())
    return TableBatch(
        np.where(holes, 0.0, values),
        observed=~holes if holes.any() else None,
        intervened=None if intervened is None else intervened[rows],
        levels=np.broadcast_to(levels, (len(rows), len(read))) if read_levels else None,
    )


# Bystanders


Indices = NDArray[np.intp]

BYSTANDER = 0.2
"""A column is set aside if no edge and no hidden cause that it may have is as probable as this."""
MAX_SET_ASIDE = 0.1
"""Of a table, at most, or one column of FEW or more. Where many columns stand alone, their number says how much a
dependence means, and not all of them do: the network misses what is weak."""
FEW = 4
MAX_VARIABLES = 64
"""In wider tables one column more or less hardly matters, and reading twice takes long."""


def bystanders(said: GraphDistribution) -> NDArray[np.bool_]:
    """Which columns to set aside, given what a network says of whole tables.  (B, P) bool"""
    joined = said.skeleton_probabilities()
    hidden = said.confounding_probabilities()
    if hidden is not None:
        joined = np.maximum(joined, hidden)
    aside = joined.max(axis=-1) < BYSTANDER
    if aside.shape[-1] > MAX_VARIABLES:
        return np.zeros_like(aside)
    most = max(MAX_SET_ASIDE * aside.shape[-1], float(aside.shape[-1] >= FEW))
    return np.asarray(aside & (aside.sum(axis=-1, keepdims=True) <= most))


def read_without(said: GraphDistribution, read: Callable[[Indices, Indices], GraphDistribution]) -> GraphDistribution:
    """What was `said` of tables, said again of those with bystanders, without these.

    `read` is asked of the tables in some places (T,) with some of their columns (T, K).
    """
    for indices, kept in _alike(~bystanders(said)):
        said = said.with_part(indices, kept, read(indices, kept))
    return said


def _alike(kept: NDArray[np.bool_]) -> Iterator[tuple[Indices, Indices]]:
    """Tables that keep as many columns as each other, and fewer than all: their places (T,) and columns (T, K)."""
    counts = kept.sum(axis=1)
    for count in np.unique(counts).tolist():
        if count < kept.shape[1]:
            indices = np.flatnonzero(counts == count)
            yield indices, np.nonzero(kept[indices])[1].reshape(len(indices), count)


# Memory


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
