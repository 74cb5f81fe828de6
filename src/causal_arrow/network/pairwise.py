"""PairwiseNetwork: the network that comes with the package, in numpy, for processors.

The paper's network keeps one vector per variable, so all that is known about a pair must pass through two vectors. Here
pairs have their own stream, as in networks for protein structure (there: residue pairs). Cells learn from pairs how to
combine variables; pairs learn from cells, averaged over observations; pairs learn from pairs through third variables,
which is what conditioning needs. Observations enter only through means, so any number of them can be read in chunks.

A stage:  cells ← mix across variables with weights read off the pairs, then feed-forward
          pairs ← mean over observations of outer products of cells
          pairs ← pair blocks: triangle multiplication, then feed-forward
"""

# B tables, N observations, P variables, D width, C channels, S statistics

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from causal_arrow import storage
from causal_arrow.batches import LongTable, TableBatch
from causal_arrow.errors import ConfigurationError
from causal_arrow.graphs.graph_distribution import GraphDistribution
from causal_arrow.network.basis import standardized_numbers
from causal_arrow.network.config import CELL_SHAPES, PairwiseConfig
from causal_arrow.network.forward import (
    Floats,
    exchange_,
    norm_,
    of_pairs,
    order_scores,
    pair_blocks_,
    pair_logits,
    prepared,
    under,
)
from causal_arrow.network.long import LongMeasured
from causal_arrow.network.protocol import check_chunk, check_parts
from causal_arrow.network.statistics import Measured, described, parts_read
from causal_arrow.network.threads import each, one_thread_for_products
from causal_arrow.progress import READING_CELLS, Progress, ignore

CELL_WIDTHS_ALIVE = 4
"""Floats alive at once for each cell, in cell widths: the stream, and both sides of the outer products. Measured."""

PAIR_WIDTHS_ALIVE = 8
"""Floats alive at once for each ordered pair, in pair widths: the stream, triangles, statistics. Measured."""


HEADS = ("skeleton", "order", "confounding")


class PairwiseNetwork:
    """Tables in, distributions over graphs out.

    Parameters
    ----------
    config
        The sizes.
    weights
        All weights in float32, by the names that `config.weights()` lists.
    extra
        The rest of its file, such as how it was trained.
    """

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
        config = self.config
        tables = dataclasses.replace(tables, values=standardized_numbers(tables))
        measured = Measured(tables, config.channels, observations_per_chunk, config.canonical_signs)
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
            skeleton, order, hidden = (under(self._prepared, f"{name}_head") for name in HEADS)
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
        observations = channels.shape[2]
        stages = [under(self._prepared, f"stages.{index}") for index in range(self.config.stages)]
        exchange_(
            pairs,
            self.config.rounds * stages,
            lambda part: self._embedded_cells(channels[:, :, part]),
            observations,
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
