"""PairwiseConfig: the sizes of the pairwise network and its inputs, and the names and shapes of its weights."""

# D width, H heads, W outer width

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from causal_arrow.errors import ConfigurationError
from causal_arrow.network.statistics import (
    CHANNELS,
    CHANNELS_OF_0_1,
    STATISTICS,
    STATISTICS_OF_0_1,
    channel_names,
    check_groups,
    statistic_names,
)

MAX_ROUNDS = 64
"""No weights show how many rounds there are: only this keeps a damaged number from running for ever."""

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
