"""From a table and a network to a distribution over graphs: always the same one, in bounded memory."""

# B tables, N observations, P variables

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from causal_arrow import storage
from causal_arrow.batches import LongTable, TableBatch, concatenated
from causal_arrow.discovery.arranged import Arranged, levels_of
from causal_arrow.errors import Remedy, TableError
from causal_arrow.graphs.graph_distribution import GraphDistribution
from causal_arrow.network import Network
from causal_arrow.network.checkpoint import find_model, load_model, read_extra
from causal_arrow.progress import READING_AGAIN, READING_CELLS, Progress, ignore
from causal_arrow.tables.report import TrainingRange
from causal_arrow.tables.table import Abilities

Indices = NDArray[np.intp]

CHUNK_BYTES = 2**31  # for the cells of one chunk, such as 100,000 observations of 20 variables, on every machine
PAIR_BYTES_TOGETHER = 2**29  # for the pairs of variables of tables that go through the network together


# Models


def ready_model(source: str | Path | Network, device: str = "auto", precision: str = "auto") -> Network:
    """Return the network on the device; a file is loaded once, and again after it changes."""
    if isinstance(source, Network):
        return source.on(device, precision)
    return _loaded(str(source), _stamps(source), device, precision)


def model_name(source: Any) -> str:
    """The name of a model in an answer: its name or path, or its kind."""
    return source.title if isinstance(source, Network) else str(source)


def abilities(source: Any, network: Network) -> Abilities:
    """The parts of a table that a network can read besides numbers, and its name in a sentence."""
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
    """The number of observations to read at a time so that memory stays bounded; None for all of them."""
    fitting = max(1, CHUNK_BYTES // network.bytes_per_observation(variables))
    return None if fitting >= observations else fitting


def infer(
    network: Network,
    arranged: Arranged,
    observations_per_chunk: int | None = None,
    progress: Progress = ignore,
) -> GraphDistribution:
    """The network's distribution over graphs, for the variables as they are arranged."""
    if not arranged.is_long:
        return infer_rows(network, arranged, np.arange(len(arranged.rows))[None], observations_per_chunk)[0]

    def one_pass(table: LongTable, progress: Progress) -> GraphDistribution:
        step = observations_per_chunk or chunk_size(network, len(table.drawn), table.variables)
        return network.read_long(table, step, progress)

    def again(stage: str, share: float) -> None:
        progress(READING_AGAIN, (share + (stage == READING_CELLS)) / 2)

    table = arranged.long_table(network.reads)
    distribution = one_pass(table, progress)
    if network.reads:
        distribution = read_without(distribution, lambda _, kept: one_pass(table.with_columns(kept[0]), again))
    return distribution[0].with_copies(arranged.read_as)


# Many tables


def tables_per_pass(network: Network, observations: int, variables: int) -> int:
    """The number of tables of this shape that go through the network together: a fixed amount of work and of memory."""
    pairs = PAIR_BYTES_TOGETHER // (network.bytes_per_pair() * variables**2)
    return max(1, min(network.cells_together // (observations * variables), pairs))


def infer_together(
    network: Network, tables: Sequence[Arranged], observations_per_chunk: int | None = None
) -> Iterator[dict[int, GraphDistribution]]:
    """Yield the answers of `infer`, up to rounding, by the indices of the tables, pass by pass.

    Tables with the same shape and parts share a pass; a long table has one to itself.
    """
    alike: dict[tuple[object, ...], list[int]] = {}
    short: dict[int, Arranged] = {}
    for index, table in enumerate(tables):
        if table.is_long:
            yield {index: infer(network, table, observations_per_chunk)}
            continue
        short[index] = table
        some_missing = bool(np.isnan(table.table.values).any())
        parts = some_missing, table.table.intervened is None, any(column.levels for column in table.columns)
        alike.setdefault((len(table.rows), len(table.read), *parts), []).append(index)
    for indices in alike.values():
        any_one = short[indices[0]]
        most = tables_per_pass(network, len(any_one.rows), len(any_one.read))
        for start in range(0, len(indices), most):
            together = indices[start : start + most]
            batches = [_batch(network, short[index]) for index in together]
            distributions = _infer_pass(network, concatenated(batches), observations_per_chunk)
            yield {index: distributions[n].with_copies(short[index].read_as) for n, index in enumerate(together)}


def resampled_rows(
    network: Network,
    arranged: Arranged,
    count: int,
    random: np.random.Generator,
    passes: int = 1,
) -> Iterator[Indices]:
    """Observations of `count` tables drawn with replacement, (B, N) per pass, in at least so many passes.

    The draws do not depend on the number of passes.
    """
    observations, variables = arranged.table.values.shape
    most = min(tables_per_pass(network, observations, variables), -(-count // passes))
    for start in range(0, count, most):
        yield random.integers(observations, size=(min(most, count - start), observations))


def infer_rows(
    network: Network,
    arranged: Arranged,
    rows: Indices,
    observations_per_chunk: int | None = None,
) -> list[GraphDistribution]:
    """The distribution for each table made of these observations (B, N), in one pass; one pass for each long table."""
    if arranged.is_long:
        return [infer(network, arranged.with_rows(some), observations_per_chunk) for some in rows]
    distributions = _infer_pass(network, _batch(network, arranged, rows), observations_per_chunk)
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


def _batch(network: Network, arranged: Arranged, rows: Indices | None = None) -> TableBatch:
    """The table, or tables made of these observations (B, N), with the parts that the network reads."""
    rows = np.arange(len(arranged.rows))[None] if rows is None else rows
    read, values, intervened = arranged.read, arranged.values, arranged.intervened
    if arranged.copies:
        values, intervened = values[:, read], None if intervened is None else intervened[:, read]
    values = values[rows]  # (B, N, P)
    holes = np.isnan(values)
    levels = levels_of([arranged.columns[index] for index in read])
    read_levels = "levels" in network.reads and bool(levels.any())
    return TableBatch(
        np.where(holes, 0.0, values),
        observed=~holes if holes.any() else None,
        intervened=None if intervened is None else intervened[rows],
        levels=np.broadcast_to(levels, (len(rows), len(read))) if read_levels else None,
    )


# Bystanders


BYSTANDER = 0.2  # a column is set aside if none of its edges and hidden causes is as probable as this
MAX_SET_ASIDE = 0.1
"""Share of the columns of a table that are set aside, or one column of FEW. If more look unrelated, some of them are
not: the network misses what is weak, and their number shows how much a dependence means."""
FEW = 4
MAX_VARIABLES = 64  # in wider tables one column more or less hardly matters, and reading twice takes long


def bystanders(found: GraphDistribution) -> NDArray[np.bool_]:
    """True for columns to set aside, given the distributions for whole tables.  (B, P)"""
    joined, hidden = found.skeleton_probabilities(), found.confounding_probabilities()
    if hidden is not None:
        joined = np.maximum(joined, hidden)
    aside = joined.max(axis=-1) < BYSTANDER
    if aside.shape[-1] > MAX_VARIABLES:
        return np.zeros_like(aside)
    most = max(MAX_SET_ASIDE * aside.shape[-1], float(aside.shape[-1] >= FEW))
    return np.asarray(aside & (aside.sum(axis=-1, keepdims=True) <= most))


def read_without(found: GraphDistribution, read: Callable[[Indices, Indices], GraphDistribution]) -> GraphDistribution:
    """Read tables again without their bystanders, and merge the results.

    `read` takes indices of tables that keep equally many columns (T,), and the indices of these columns (T, K).
    """
    kept = ~bystanders(found)
    counts = kept.sum(axis=1)
    for count in np.unique(counts[counts < kept.shape[1]]).tolist():
        tables = np.flatnonzero(counts == count)
        columns = np.nonzero(kept[tables])[1].reshape(len(tables), count)
        found = found.with_part(tables, columns, read(tables, columns))
    return found


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
    """The memory that a network takes for a table of this shape, on its device."""
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
