"""From a table and a network to an answer: always the same one, in bounded memory.

Sums in floating point depend on the order of their terms, and ties on the order of columns. So a table is arranged
first, columns and observations in an order that depends on their values alone: tables that differ only by a shuffle are
the same input to the last bit, and get the same answer.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from causal_arrow.discovery.answer import Answer
from causal_arrow.errors import ConfigurationError
from causal_arrow.graphs.knowledge import Knowledge
from causal_arrow.graphs.skeleton_order import SkeletonOrder
from causal_arrow.network.checkpoint import bundled_models, load_model
from causal_arrow.network.encoders.pairwise import PairwiseConfig
from causal_arrow.network.encoders.paper import PaperConfig
from causal_arrow.network.model import ArrowModel
from causal_arrow.tables.report import listed
from causal_arrow.tables.scales import MOST_DOUBT, chosen_reading, readings, with_logarithms
from causal_arrow.tables.table import Finding, Table

# B tables, N observations, P variables

Floats = NDArray[np.float64]

# What the cells of one chunk may take. Fixed, so that the same table is read in the same chunks on every machine. Two
# million cells fit on a CPU: 100,000 observations of 20 variables.
CHUNK_BYTES = 2**31
# Floats alive at once for each cell, in cell widths: the stream itself, values and gates, the hidden layer. Measured.
# On a CPU the pairwise encoder works on a few cells at a time, and only the streams around a block are whole.
WIDTHS_ALIVE = {"cpu": {PairwiseConfig: 4, PaperConfig: 16}, "cuda": {PairwiseConfig: 16, PaperConfig: 16}}
# Cells of resampled tables that go through the network together: more do not make it faster.
RESAMPLED_CELLS = 250_000


# Models


def resolve_device(device: str | torch.device) -> torch.device:
    """The device by its name; "auto" is the GPU where there is one."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        resolved = torch.device(device)
    except RuntimeError as error:
        raise ConfigurationError(f"Unknown device {device!r}: expected auto, cpu, cuda or cuda:1.") from error
    if resolved.type not in ("cpu", "cuda"):
        raise ConfigurationError(
            f"The network runs on cpu and cuda, which compute in double precision; got {device!r}."
        )
    if resolved.type == "cuda" and not torch.cuda.is_available():
        raise ConfigurationError(f"There is no GPU for device {str(device)!r} here: use cpu, or auto.")
    return resolved


def ready_model(source: str | Path | ArrowModel, device: str | torch.device = "auto") -> ArrowModel:
    """The model on the device, loaded once: asking again gives the same object, unless its file has changed.

    A model that comes as an object stays as it is, and with "auto" where it is; if it has to change, a copy does.
    """
    if isinstance(source, ArrowModel):
        here = next(source.parameters()).device
        there = here if device == "auto" else resolve_device(device)
        return source if here == there and not source.training else copy.deepcopy(source).to(there).eval()
    place = resolve_device(device)
    path = bundled_models().get(str(source), Path(source).expanduser())
    stamps = [entry.stat().st_mtime_ns for entry in (path, path / "model.safetensors") if entry.exists()]
    return _loaded(str(source), tuple(stamps), place)


@lru_cache(maxsize=4)
def _loaded(source: str, stamps: tuple[int, ...], device: torch.device) -> ArrowModel:
    return load_model(source, device)


def model_name(source: Any) -> str:
    """What to call a model in an answer: its name or path, or what kind of network it is."""
    if isinstance(source, ArrowModel):
        return f"{source.config.to_dict()['encoder']} encoder, {source.parameter_count():,} parameters"
    return str(source)


# One table


def answer_table(
    table: Table,
    model: ArrowModel,
    *,
    knowledge: Knowledge | None = None,
    rule: str = "map",
    threshold: float = 0.5,
    scale: str = "auto",
    name: str | None = None,
    findings: tuple[Finding, ...] | None = None,
    observations_per_chunk: int | None = None,
) -> Answer:
    """The answer of the network for a table. `name` and `findings` are what it says of the model and the table."""
    knowledge = knowledge or Knowledge()
    knowledge.compile(table.names)  # a misspelled name should not have to wait for the network
    ways = [
        tuple(name for name, log in zip(table.names, columns, strict=True) if log)
        for columns in readings(table.values, scale)
    ]
    tables = [arrange(on_log_scale(table, names)) for names in ways]
    distributions = [infer(model, arranged, observations_per_chunk) for arranged in tables]
    doubts = [float(distribution.doubt()) for distribution in distributions] if len(ways) > 1 else [0.0]
    chosen = chosen_reading(doubts)
    arrangement = tables[chosen].arrangement
    noticed = table.findings if findings is None else findings
    return Answer(
        names=table.names,
        distribution=in_table_order(distributions[chosen], arrangement),
        knowledge=knowledge,
        rule=rule,
        threshold=threshold,
        arrangement=arrangement,
        observations=table.observations,
        model=name or model_name(model),
        findings=(*noticed, *_reading_finding(ways[-1], chosen, distributions)),
        log_columns=ways[chosen],
    )


def on_log_scale(table: Table, names: Sequence[str]) -> Table:
    """The table with the logarithms of some columns in their place."""
    columns = np.array([name in names for name in table.names])
    return replace(table, values=with_logarithms(table.values, columns))


def _reading_finding(names: tuple[str, ...], chosen: int, distributions: Sequence[SkeletonOrder]) -> list[Finding]:
    """Which of two readings counts, and why; nothing where there was no choice."""
    if len(distributions) < 2:
        return []
    given, logarithms = (f"{float(distribution.doubt()):.2f}" for distribution in distributions)
    is_, they = ("is", "it is") if len(names) == 1 else ("are", "they are")
    reason = (
        f"{is_} read on a log scale: that leaves the network {logarithms} bits of doubt an edge, as given {given}, and "
        f"logarithms count unless they leave {MOST_DOUBT - 1:.0%} more"
        if chosen
        else f"{is_} read as {they}: that leaves the network {given} bits of doubt an edge, a log scale {logarithms}"
    )
    message = f"{listed(names)}, positive and skewed, {reason}. Scale 'given' or 'log' decides it."
    return [Finding("log_scale", "note", names, message)]


@dataclass(frozen=True, eq=False)
class ArrangedTable:
    """The standardized values in an order of their own, and where its columns stand in the table.

    `arrangement[i]` is the column of the table that is column i here.
    """

    values: Floats  # (N, P)
    arrangement: tuple[int, ...]  # (P,)


def arrange(table: Table) -> ArrangedTable:
    """The table with columns and observations sorted by their values alone (equal columns by name)."""
    values = table.values + 0.0  # turns −0 into 0, which has other bytes
    in_order = np.sort(values, axis=0)

    def key(column: int) -> tuple[bytes, str]:
        return in_order[:, column].tobytes(), table.names[column]

    arrangement = sorted(range(table.variables), key=key)
    arranged = values[:, arrangement]
    arranged = arranged[np.lexsort(arranged.T)]
    return ArrangedTable(replace(table, values=arranged).standardized(), tuple(arrangement))


def chunk_size(model: ArrowModel, observations: int, variables: int) -> int | None:
    """How many observations to read at a time so that memory stays bounded; None for all of them."""
    encoder = model.config.encoder
    width = encoder.cell_width if isinstance(encoder, PairwiseConfig) else encoder.width
    device = next(model.parameters()).device.type
    bytes_per_observation = 4 * variables * width * WIDTHS_ALIVE[device][type(encoder)]
    fitting = max(1, CHUNK_BYTES // bytes_per_observation)
    return None if fitting >= observations else fitting


def infer(model: ArrowModel, arranged: ArrangedTable, observations_per_chunk: int | None = None) -> SkeletonOrder:
    """The network's distribution over graphs, for the variables as they are arranged, on the CPU."""
    return next(iter(_infer_batches(model, iter([arranged.values[None]]), observations_per_chunk)))[0]


def in_table_order(distribution: SkeletonOrder, arrangement: tuple[int, ...]) -> SkeletonOrder:
    """The distribution of arranged variables, with the variables as the table has them."""
    back = torch.as_tensor(arrangement).argsort()
    return SkeletonOrder(distribution.skeleton_logits[back[:, None], back[None, :]], distribution.order_scores[back])


# Many tables


def infer_resampled(
    model: ArrowModel,
    arranged: ArrangedTable,
    count: int,
    random: np.random.Generator,
    observations_per_chunk: int | None = None,
) -> Iterator[SkeletonOrder]:
    """The distribution for each of `count` tables made of the observations drawn with replacement."""
    observations, variables = arranged.values.shape
    tables_per_pass = min(max(1, RESAMPLED_CELLS // (observations * variables)), count)
    batches = (
        arranged.values[random.integers(observations, size=(min(tables_per_pass, count - start), observations))]
        for start in range(0, count, tables_per_pass)
    )  # (B, N, P) each
    for distributions in _infer_batches(model, batches, observations_per_chunk):
        yield from (distributions[table] for table in range(len(distributions.order_scores)))


@torch.inference_mode()
def _infer_batches(
    model: ArrowModel, batches: Iterator[Floats], observations_per_chunk: int | None
) -> Iterator[SkeletonOrder]:
    device = next(model.parameters()).device
    for values in batches:
        step = observations_per_chunk or chunk_size(model, *values.shape[1:])
        yield model(torch.from_numpy(values).to(device), observations_per_chunk=step).to("cpu")
