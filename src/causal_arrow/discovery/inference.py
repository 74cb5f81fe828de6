"""From a table and a network to a distribution over graphs: always the same one, in bounded memory."""

# B tables, N observations, P variables

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from causal_arrow.batches import LongTable, TableBatch, concatenated
from causal_arrow.discovery.arranged import ArrangedLongTable, ArrangedTable
from causal_arrow.discovery.bystanders import read_without
from causal_arrow.graphs.graph_distribution import GraphDistribution
from causal_arrow.network.checkpoint import find_model, load_model, read_extra
from causal_arrow.network.devices import resolve_device
from causal_arrow.network.model import ArrowModel
from causal_arrow.network.precision import computing_in, resolve_precision
from causal_arrow.network.replay import ReplayedModel, replayed
from causal_arrow.progress import READING_AGAIN, READING_CELLS, Progress, unheard
from causal_arrow.tables.report import TrainingRange
from causal_arrow.tables.table import Abilities

# What the cells of one chunk may take. Fixed, so that the same table is read in the same chunks on every machine. Two
# million cells fit on a CPU: 100,000 observations of 20 variables.
CHUNK_BYTES = 2**31
# Cells of tables that go through the network together: more do not make it faster.
CELLS_TOGETHER = {"cpu": 32_000, "cuda": 250_000}
# What the pairs of variables of such tables may take together.
PAIR_BYTES_TOGETHER = 2**29


# Models


def ready_model(source: str | Path | ArrowModel, device: str | torch.device = "auto") -> ArrowModel:
    """The model on the device, loaded once: asking again gives the same object, unless its file has changed.

    A model that comes as an object stays as it is, and with "auto" where it is; if it has to change, a copy does.
    """
    if isinstance(source, ArrowModel):
        here = next(source.parameters()).device
        there = here if device == "auto" else resolve_device(device)
        return source if here == there and not source.training else copy.deepcopy(source).to(there).eval()
    return _loaded(str(source), _stamps(source), resolve_device(device))


def model_name(source: Any) -> str:
    """What to call a model in an answer: its name or path, or what kind of network it is."""
    if isinstance(source, ArrowModel):
        return f"{source.config.to_dict()['encoder']} encoder, {source.parameter_count():,} parameters"
    return str(source)


def abilities(source: Any, network: ArrowModel) -> Abilities:
    """What a network can read beside numbers, and what to call it in a sentence."""
    name = "this model" if isinstance(source, ArrowModel) else f"the model {source}"
    return Abilities(name, network.encoder.reads)


def training_range(source: str | Path | ArrowModel) -> TrainingRange | None:
    """The sizes of tables that a model has learned from, by its own record; None if it has none."""
    return None if isinstance(source, ArrowModel) else _recorded_range(str(source), _stamps(source))


def _stamps(source: str | Path) -> tuple[int, ...]:
    """Numbers that change with the files of a model."""
    path = find_model(source)
    return tuple(entry.stat().st_mtime_ns for entry in (path, path / "model.safetensors") if entry.exists())


@lru_cache(maxsize=4)
def _loaded(source: str, stamps: tuple[int, ...], device: torch.device) -> ArrowModel:
    return load_model(source, device)


@lru_cache(maxsize=16)
def _recorded_range(source: str, stamps: tuple[int, ...]) -> TrainingRange | None:
    record = read_extra(source).get("training")
    return TrainingRange.from_record(record) if isinstance(record, dict) else None


# One table


def chunk_size(model: ArrowModel, observations: int, variables: int) -> int | None:
    """How many observations to read at a time so that memory stays bounded; None for all of them."""
    device = next(model.parameters()).device.type
    fitting = max(1, CHUNK_BYTES // model.encoder.bytes_per_observation(variables, device))
    return None if fitting >= observations else fitting


def infer(
    model: ArrowModel,
    arranged: ArrangedTable | ArrangedLongTable,
    observations_per_chunk: int | None = None,
    precision: str = "auto",
    progress: Progress = unheard,
) -> GraphDistribution:
    """The network's distribution over graphs, for the variables as they are arranged, on the CPU."""
    if isinstance(arranged, ArrangedLongTable):
        return _infer_long(model, arranged, observations_per_chunk, precision, progress).with_copies(arranged.read_as)
    tables = _batch(arranged, _all_rows(arranged), model.encoder.reads)
    return _infer_pass(model, tables, observations_per_chunk, precision)[0].with_copies(arranged.read_as)


def _infer_long(
    model: ArrowModel,
    arranged: ArrangedLongTable,
    observations_per_chunk: int | None,
    precision: str,
    progress: Progress,
) -> GraphDistribution:
    """What the network says of a long table, of the columns that it reads; without bystanders the second time."""

    def one_pass(table: LongTable, progress: Progress) -> GraphDistribution:
        shape = len(table.drawn), table.variables
        with _arithmetic(model, precision, *shape):
            step = observations_per_chunk or chunk_size(model, *shape)
            return model.forward_long(table, step, progress).to("cpu")

    def again(stage: str, share: float) -> None:
        progress(READING_AGAIN, (share + (stage == READING_CELLS)) / 2)

    table = arranged.for_network(model.encoder.reads)
    said = one_pass(table, progress)
    if model.encoder.reads:
        said = read_without(said, lambda _, kept: one_pass(table.with_columns(kept[0]), again))
    return said[0]


# Many tables


def tables_per_pass(model: ArrowModel, observations: int, variables: int) -> int:
    """How many tables of this shape go through the network together: a fixed amount of work and of memory."""
    device = next(model.parameters()).device.type
    pairs = PAIR_BYTES_TOGETHER // (model.encoder.bytes_per_pair(device) * variables**2)
    return max(1, min(CELLS_TOGETHER[device] // (observations * variables), pairs))


def infer_together(
    model: ArrowModel,
    tables: Sequence[ArrangedTable | ArrangedLongTable],
    observations_per_chunk: int | None = None,
    precision: str = "auto",
) -> Iterator[dict[int, GraphDistribution]]:
    """What `infer` says of each table, up to rounding, by their places, pass by pass; tables of one shape share a pass.

    Only tables with the same parts share one: a table without missing values is not read as one that has some. A long
    table has a pass of its own.
    """
    alike: dict[tuple[object, ...], list[int]] = {}
    short: dict[int, ArrangedTable] = {}
    for place, table in enumerate(tables):
        if isinstance(table, ArrangedLongTable):
            yield {place: infer(model, table, observations_per_chunk, precision)}
            continue
        short[place] = table
        shape = len(table.values), len(table.read)
        parts = (shape, bool(np.isnan(table.values).any()), table.intervened is None)
        levels = any(column.levels for column in table.columns)
        alike.setdefault((*parts, levels), []).append(place)
    for places in alike.values():
        any_one = short[places[0]]
        most = tables_per_pass(model, len(any_one.values), len(any_one.read))
        for start in range(0, len(places), most):
            together = places[start : start + most]
            batches = [_batch(short[place], _all_rows(short[place]), model.encoder.reads) for place in together]
            distributions = _infer_pass(model, concatenated(batches), observations_per_chunk, precision)
            yield {
                place: distributions[index].with_copies(short[place].read_as) for index, place in enumerate(together)
            }


def resampled_rows(
    model: ArrowModel,
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
    most = min(tables_per_pass(model, observations, variables), -(-count // passes))
    for start in range(0, count, most):
        yield random.integers(observations, size=(min(most, count - start), observations))


def infer_rows(
    model: ArrowModel,
    arranged: ArrangedTable | ArrangedLongTable,
    rows: NDArray[np.intp],
    observations_per_chunk: int | None = None,
    precision: str = "auto",
) -> list[GraphDistribution]:
    """The distribution for each table made of these observations (B, N), in one pass; one pass for each long table."""
    if isinstance(arranged, ArrangedLongTable):
        return [infer(model, arranged.with_rows(each), observations_per_chunk, precision) for each in rows]
    distributions = _infer_pass(model, _batch(arranged, rows, model.encoder.reads), observations_per_chunk, precision)
    return [distributions[table].with_copies(arranged.read_as) for table in range(len(rows))]


@torch.inference_mode()
def _infer_pass(
    model: ArrowModel, tables: TableBatch, observations_per_chunk: int | None, precision: str
) -> GraphDistribution:
    """What the network says of tables of one shape; the answer on the CPU.

    One pass, and another one for tables with bystanders, without these.
    """

    def one_pass(tables: TableBatch) -> GraphDistribution:
        return _one_pass(model, tables, observations_per_chunk, precision)

    said = one_pass(tables)
    if model.encoder.reads:
        said = read_without(said, lambda places, kept: one_pass(tables.with_columns(places, kept)))
    return said


def _one_pass(
    model: ArrowModel, tables: TableBatch, observations_per_chunk: int | None, precision: str
) -> GraphDistribution:
    """One pass of the network over tables of one shape, on the device of the network; the answer on the CPU."""
    step = observations_per_chunk or chunk_size(model, tables.observations, tables.variables)
    device = next(model.parameters()).device
    with _arithmetic(model, precision, tables.observations, tables.variables):
        # Tables that come one by one are replayed on a GPU; those that come together keep it busy as they are.
        network = _replayed(model, _places(model)) if len(tables.values) == 1 else model
        distributions: GraphDistribution = network(tables.to(device), observations_per_chunk=step)
    return distributions.to("cpu")


@lru_cache(maxsize=4)
def _replayed(model: ArrowModel, places: tuple[int, ...]) -> ReplayedModel | ArrowModel:
    return replayed(model)


def _places(model: ArrowModel) -> tuple[int, ...]:
    """Where the weights lie: what was captured reads them there, and nowhere else if they are moved."""
    return tuple(parameter.data_ptr() for parameter in model.parameters())


def _arithmetic(
    model: ArrowModel, precision: str, observations: int, variables: int
) -> contextlib.AbstractContextManager[object]:
    """A context in which the network reads tables of this shape in a precision."""
    device = next(model.parameters()).device
    return computing_in(resolve_precision(precision, device, model.encoder.operations(observations, variables)), device)


def _all_rows(arranged: ArrangedTable) -> NDArray[np.intp]:
    """Every observation once.  (1, N)"""
    return np.arange(len(arranged.values))[None]


def _batch(arranged: ArrangedTable, rows: NDArray[np.intp], reads: frozenset[str]) -> TableBatch:
    """Tables made of these observations (B, N), as the network reads them: without parts that say nothing."""
    read = arranged.read
    columns = [arranged.columns[place] for place in read]
    values, intervened = arranged.values, arranged.intervened
    if arranged.copies:
        values, intervened = values[:, read], None if intervened is None else intervened[:, read]
    values = values[rows]  # (B, N, P)
    holes = np.isnan(values)
    levels = torch.tensor([len(column.levels) for column in columns])
    ordered = torch.tensor([column.kind == "ordered" for column in columns])
    read_levels = "levels" in reads and bool(levels.any())
    return TableBatch(
        torch.from_numpy(np.where(holes, 0.0, values)),
        observed=torch.from_numpy(~holes) if holes.any() else None,
        intervened=None if intervened is None else torch.from_numpy(intervened[rows]),
        levels=levels.expand(len(rows), -1) if read_levels else None,
        ordered=ordered.expand(len(rows), -1) if read_levels else None,
    )
