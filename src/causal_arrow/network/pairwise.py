"""PairwiseNetwork: the network that comes with the package, in numpy, for processors; PairwiseConfig: its sizes.

The paper's network keeps one vector per variable, so all that is known about a pair must pass through two vectors. Here
pairs have their own stream, as in networks for protein structure (there: residue pairs). Cells learn from pairs how to
combine variables; pairs learn from cells, averaged over observations; pairs learn from pairs through third variables,
which is what conditioning needs. Observations enter only through means, so any number of them can be read in chunks.

A stage:  cells ← mix across variables with weights read off the pairs, then feed-forward
          pairs ← mean over observations of outer products of cells
          pairs ← pair blocks: triangle multiplication, then feed-forward
"""

# B tables, N observations, P variables, D width, H heads, W outer width, C channels, S statistics

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from causal_arrow import storage
from causal_arrow.batches import LongTable, TableBatch
from causal_arrow.errors import ConfigurationError
from causal_arrow.graphs.graph_distribution import GraphDistribution
from causal_arrow.network import check_chunk, check_parts
from causal_arrow.network.basis import standardized_numbers
from causal_arrow.network.forward import (
    Floats,
    each,
    exchange_,
    norm_,
    of_pairs,
    one_thread_for_products,
    order_scores,
    pair_blocks_,
    pair_logits,
    prepared,
    under,
)
from causal_arrow.network.long import LongMeasured
from causal_arrow.network.statistics import (
    CHANNELS,
    CHANNELS_OF_0_1,
    STATISTICS,
    STATISTICS_OF_0_1,
    Measured,
    channel_names,
    check_groups,
    described,
    parts_read,
    statistic_names,
)
from causal_arrow.progress import READING_CELLS, Progress, ignore

MAX_ROUNDS = 64  # no weights show how many rounds there are: only this keeps a damaged number from running for ever
ORDER_HEADS = ("potential", "pooled")
CELL_SHAPES = ("itself", "size", "tanh", "square")
"""Each channel enters the first layer in a few shapes, which need not be learned: x, |x|, tanh x and x² / 4."""


@dataclass(frozen=True)
class PairwiseConfig:
    """Sizes of the pairwise encoder, and its inputs."""

    cell_width: int = 64
    """Numbers in the representation of a cell."""
    pair_width: int = 128
    """Numbers in the representation of an ordered pair of variables."""
    stages: int = 4
    """Exchanges between cells and pairs."""
    pair_blocks: int = 2
    """Pair blocks in a stage; as many come before the first one."""
    mixing_heads: int = 8
    """Ways in which a cell block combines variables; an even number that divides `cell_width`."""
    outer_width: int = 16
    """Cells are projected to this many numbers per side before their outer product."""
    rounds: int = 1
    """Number of times the stages are run, with the same weights."""
    order_head: str = "potential"
    """`potential`, or `pooled`: rows, columns and the diagonal for each variable, without evidence of pairs."""
    channels: tuple[str, ...] = CHANNELS_OF_0_1
    """Groups of numbers that describe a cell: `values`, `normal_scores`, `residuals`; for tables of any kind also
    `functions`, `holes`, `interventions`."""
    statistics: tuple[str, ...] = STATISTICS_OF_0_1
    """Groups of numbers that describe a pair: `correlations`, `score_correlations`, `sizes`, `cross_moments`; for
    tables of any kind also `basis_correlations`, `kinds`, `observed_shares`, `intervention_shifts`."""
    canonical_signs: bool = False
    """Whether columns are turned so that a column and its negative are the same input."""
    confounding_head: bool = False
    """Whether the encoder answers which pairs share a cause that is not in the table."""

    def __post_init__(self) -> None:
        if self.order_head not in ORDER_HEADS:
            raise ConfigurationError(f"Expected {' or '.join(ORDER_HEADS)} for order_head, got {self.order_head!r}.")
        object.__setattr__(self, "channels", check_groups("channels", self.channels, CHANNELS))
        object.__setattr__(self, "statistics", check_groups("statistics", self.statistics, STATISTICS))
        for name in ("canonical_signs", "confounding_head"):
            if type(getattr(self, name)) is not bool:
                raise ConfigurationError(f"Expected true or false for {name}, got {getattr(self, name)!r}.")
        for name in ("cell_width", "pair_width", "stages", "pair_blocks", "mixing_heads", "outer_width", "rounds"):
            size = getattr(self, name)
            if type(size) is not int or size < 1:
                raise ConfigurationError(f"Expected a positive whole number for {name}, got {size!r}.")
        if self.rounds > MAX_ROUNDS:
            raise ConfigurationError(f"Expected at most {MAX_ROUNDS} for rounds, got {self.rounds}.")
        if self.cell_width % self.mixing_heads or self.mixing_heads % 2:
            raise ConfigurationError(
                f"Expected an even number of mixing_heads that divides cell_width, got {self.mixing_heads} heads "
                f"for a width of {self.cell_width}."
            )

    def inputs(self) -> tuple[str, ...]:
        """The names of all groups that the encoder is fed."""
        return (*self.channels, *self.statistics)

    def cell_inputs(self) -> list[str]:
        """A name for each number that a cell enters the network with: every shape of every channel."""
        return [f"{shape} of {channel}" for shape in CELL_SHAPES for channel in channel_names(self.channels)]

    def pair_inputs(self) -> list[str]:
        """A name for each number that a pair enters the network with."""
        return statistic_names(self.channels, self.statistics)

    def weights(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """The name and shape of each weight in a file."""
        cell, pair = self.cell_width, self.pair_width
        yield "cell_embedding.weight", (cell, len(self.cell_inputs()))
        yield "cell_embedding.bias", (cell,)
        yield "pair_embedding.weight", (pair, len(self.pair_inputs()))
        yield "pair_embedding.bias", (pair,)
        yield from self._pair_blocks("first_pair_blocks")
        for head in ("skeleton_head", "confounding_head")[: 1 + self.confounding_head]:
            yield f"{head}.hidden.weight", (pair, pair)
            yield f"{head}.out.weight", (1, pair)
            yield f"{head}.out.bias", (1,)
        yield "order_head.own.weight", (1, 3 * pair)
        if self.order_head == "potential":
            yield "order_head.hidden.weight", (pair, pair)
            yield "order_head.evidence_and_weight.weight", (2, pair)
        for index in range(self.stages):
            stage = f"stages.{index}"
            yield f"{stage}.mixing_weights.logits.weight", (self.mixing_heads, pair)
            yield f"{stage}.cell_block.value_and_gate.weight", (2 * cell, cell)
            yield f"{stage}.cell_block.out.weight", (cell, cell)
            yield from _feed_forward(f"{stage}.cell_block", cell)
            yield f"{stage}.outer_product.sides.weight", (2 * self.outer_width, cell)
            yield f"{stage}.from_cells.weight", (pair, self.outer_width**2)
            yield from self._pair_blocks(f"{stage}.pair_blocks")

    def _pair_blocks(self, name: str) -> Iterator[tuple[str, tuple[int, ...]]]:
        pair = self.pair_width
        for index in range(self.pair_blocks):
            yield f"{name}.{index}.sides.weight", (4 * pair, pair)
            yield f"{name}.{index}.gate.weight", (pair, pair)
            yield f"{name}.{index}.out.weight", (pair, pair)
            yield from _feed_forward(f"{name}.{index}", pair)


def _feed_forward(block: str, width: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    yield f"{block}.feed_forward.gate", (2 * width, width)
    yield f"{block}.feed_forward.value", (2 * width, width)
    yield f"{block}.feed_forward.out", (width, 2 * width)


CELL_WIDTHS_ALIVE, PAIR_WIDTHS_ALIVE = 4, 8
"""Floats alive at once for each cell, and each ordered pair, in their widths: streams, sides, triangles. Measured."""


class PairwiseNetwork:
    """Tables in, distributions over graphs out, as `Network` describes; weights in float32, as `config` lists them."""

    device = "cpu"
    precision = "float32"
    has_statistics = True
    cells_together = 32_000

    def __init__(self, config: PairwiseConfig, weights: Mapping[str, Floats], extra: dict[str, Any]) -> None:
        self.config, self.weights, self.extra = config, dict(weights), extra
        self.reads = parts_read(config.inputs())
        self.between_stages: list[Callable[[], None]] = []
        self._prepared = prepared(self.weights)

    def __reduce__(self) -> tuple[Any, ...]:  # other processes prepare the weights again: half the bytes
        return PairwiseNetwork, (self.config, self.weights, self.extra)

    @property
    def title(self) -> str:
        return f"pairwise encoder, {sum(weight.size for weight in self.weights.values()):,} parameters"

    def on(self, device: str, precision: str) -> PairwiseNetwork:
        if device not in ("auto", "cpu"):
            raise ConfigurationError(
                f"This network runs on the processor: give its name or path in place of it to use {device!r}."
            )
        if precision == "bfloat16":
            raise ConfigurationError("The precision bfloat16 is for GPUs: choose float32, or the device cuda.")
        return self

    def bytes_per_observation(self, variables: int) -> int:
        return 4 * variables * self.config.cell_width * CELL_WIDTHS_ALIVE

    def bytes_per_pair(self) -> int:
        return 4 * self.config.pair_width * PAIR_WIDTHS_ALIVE

    def free_memory(self) -> int | None:
        return storage.free_memory()

    def read(
        self, tables: TableBatch, observations_per_chunk: int | None = None, progress: Progress = ignore
    ) -> GraphDistribution:
        check_chunk(observations_per_chunk)
        check_parts(tables, self.reads)
        tables = dataclasses.replace(tables, values=standardized_numbers(tables))
        measured = Measured(tables, self.config.channels, observations_per_chunk, self.config.canonical_signs)
        return self._answer(measured, observations_per_chunk, progress)

    def read_long(
        self, table: LongTable, observations_per_chunk: int | None = None, progress: Progress = ignore
    ) -> GraphDistribution:
        check_chunk(observations_per_chunk)
        check_parts(table, self.reads)
        config = self.config
        measured = LongMeasured(table, config.channels, config.statistics, config.canonical_signs, progress)
        return self._answer(measured, observations_per_chunk, progress)

    def _answer(self, measured: Measured, observations_per_chunk: int | None, progress: Progress) -> GraphDistribution:
        channels, statistics = described(measured, self.config.statistics)
        del measured  # which may be as large as the table
        with one_thread_for_products():
            pairs = self._relate(channels, statistics, observations_per_chunk, progress)
            skeleton, order, hidden = (
                under(self._prepared, head) for head in ("skeleton_head", "order_head", "confounding_head")
            )
            confounding = pair_logits(pairs, hidden) if hidden else None
            return GraphDistribution(pair_logits(pairs, skeleton), order_scores(pairs, order), confounding)

    def _relate(
        self, channels: Floats, statistics: Floats, observations_per_chunk: int | None, progress: Progress
    ) -> Floats:
        """The pairs after all blocks, normalized.  (B, P, P, D)"""
        pairs = self._embedded_pairs(statistics)

        def report(share: float) -> None:
            for listener in self.between_stages:
                listener()
            progress(READING_CELLS, share)

        pair_blocks_(pairs, under(self._prepared, "first_pair_blocks"))
        stages = [under(self._prepared, f"stages.{index}") for index in range(self.config.stages)]
        exchange_(
            pairs,
            self.config.rounds * stages,
            lambda part: self._embedded_cells(channels[:, :, part]),
            channels.shape[2],
            observations_per_chunk,
            report,
        )
        norm_(pairs)
        return pairs

    def _embedded_pairs(self, statistics: Floats) -> Floats:
        """The pairs before the first block.  (B, P, P, D)"""
        tables, count, variables, _ = statistics.shape
        flat = statistics.reshape(tables, count, -1)
        weight, bias = self.weights["pair_embedding.weight"].T, self.weights["pair_embedding.bias"]
        pairs = np.empty((tables, variables**2, len(bias)), dtype=np.float32)

        def embed(where: tuple[int, slice]) -> None:
            np.matmul(flat[where[0], :, where[1]].T, weight, out=pairs[where])
            pairs[where] += bias

        each(embed, [(table, part) for table in range(tables) for part in of_pairs(pairs[table])])
        return pairs.reshape(tables, variables, variables, -1)

    def _embedded_cells(self, channels: Floats) -> Floats:
        """Some cells before the first stage: their channels (B, C, N, P) and a few shapes of them.  (B, N, P, D)"""
        tables, count, observations, variables = channels.shape
        shapes = np.empty((tables, len(CELL_SHAPES), count, observations, variables), dtype=np.float32)
        itself, size, tanh, square = shapes.swapaxes(0, 1)
        itself[:] = channels
        np.abs(channels, out=size)
        np.tanh(channels, out=tanh)
        np.multiply(channels, channels, out=square)
        square /= 4
        inputs = shapes.reshape(tables, len(CELL_SHAPES) * count, -1).swapaxes(1, 2)  # (B, T, 4C)
        cells: Floats = inputs @ self.weights["cell_embedding.weight"].T
        cells += self.weights["cell_embedding.bias"]
        return cells.reshape(tables, observations, variables, -1)
