"""The default encoder: cells and pairs of variables, each with a representation of its own.

The paper's network keeps one vector per variable, so all that is known about a pair must pass through two vectors. Here
pairs have their own stream, as in networks for protein structure (there: residue pairs). Cells learn from pairs how to
combine variables; pairs learn from cells, averaged over observations; pairs learn from pairs through third variables,
which is what conditioning needs. Observations enter only through means, so any number of them can be read in chunks.

A stage:  cells ← mix across variables with weights read off the pairs, then feed-forward
          pairs ← mean over observations of outer products of cells
          pairs ← pair blocks: triangle multiplication, then feed-forward
"""

# B tasks, N observations, P variables, D width, H heads

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from causal_arrow.batches import LongTable, TableBatch
from causal_arrow.errors import ConfigurationError
from causal_arrow.network.encoders.long import LongMeasured
from causal_arrow.network.encoders.parts import parts_read
from causal_arrow.network.encoders.protocol import Encoder, EncoderConfig, EncoderOutput, check_chunk
from causal_arrow.network.encoders.statistics import (
    CHANNELS,
    CHANNELS_OF_0_1,
    STATISTICS,
    STATISTICS_OF_0_1,
    channel_names,
    check_groups,
    chunks,
    describe,
    described,
    statistic_names,
)
from causal_arrow.network.kernels import processor
from causal_arrow.network.kernels.fused import gated_feed_forward, norm_linear, rms_norm
from causal_arrow.network.kernels.mixing import mix_cells
from causal_arrow.network.kernels.triangles import triangle_products
from causal_arrow.progress import READING_CELLS, Progress, unheard

CELL_WIDTHS_ALIVE = {"cpu": 4, "cuda": 16}
"""Floats alive at once for each cell, in cell widths: the stream itself, values and gates, the hidden layer. Measured.

On a CPU the blocks work on a few cells at a time, and only the streams around a block are whole.
"""

PAIR_WIDTHS_ALIVE = {"cpu": 8, "cuda": 17}
"""Floats alive at once for each ordered pair, in pair widths: the stream, sides of triangles, the hidden layer, the
statistics in double precision. Measured; on a CPU only the stream, the triangles and the statistics are whole."""

WIDE = 256
"""Variables from which triangles may be rounded on a processor: they then take most of the time and of the memory."""

MOST_ROUNDS = 64
"""No weights show how many rounds there are, so that only this keeps a damaged number from running for ever."""


MAY_GROW = ("stages", "pair_blocks", "channels", "statistics", "canonical_signs", "confounding_head")
"""Settings in which a network may go beyond the one whose weights it starts from."""


@dataclass(frozen=True)
class PairwiseConfig(EncoderConfig):
    """Sizes of the pairwise encoder, and what it is fed."""

    cell_width: int = 64
    """Numbers in the representation of a cell."""
    pair_width: int = 128
    """Numbers in the representation of an ordered pair of variables."""
    stages: int = 4
    """Exchanges between cells and pairs."""
    pair_blocks: int = 2
    """Pair blocks in a stage; as many stand before the first one."""
    mixing_heads: int = 8
    """Ways in which a cell block combines variables; an even number that divides `cell_width`."""
    outer_width: int = 16
    """Cells are projected to this many numbers per side before their outer product."""
    rounds: int = 1
    """How often the stages are gone through, with the same weights."""
    order_head: str = "potential"
    """`potential`, or `pooled`: what rows, columns and the diagonal say of each variable, and no evidence of pairs."""
    channels: tuple[str, ...] = CHANNELS_OF_0_1
    """Groups of numbers that describe a cell: `values`, `normal_scores`, `residuals`; for tables of any kind also
    `functions`, `holes`, `interventions`."""
    statistics: tuple[str, ...] = STATISTICS_OF_0_1
    """Groups of numbers that describe a pair: `correlations`, `score_correlations`, `sizes`, `cross_moments`; for
    tables of any kind also `basis_correlations`, `kinds`, `observed_shares`, `intervention_shifts`."""
    canonical_signs: bool = False
    """Whether columns are turned so that a column and its negative are the same input."""
    confounding_head: bool = False
    """Whether the encoder says which pairs share a cause that is not in the table."""

    growth: ClassVar[str] = (
        "only stages and pair_blocks of the pairwise encoder may grow, channels and statistics may be added, and "
        "canonical_signs and confounding_head may be switched on"
    )

    def __post_init__(self) -> None:
        if self.order_head not in tuple(ORDER_HEADS):  # a list in a file would be no key at all
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
        if self.rounds > MOST_ROUNDS:
            raise ConfigurationError(f"Expected at most {MOST_ROUNDS} for rounds, got {self.rounds}.")
        if self.cell_width % self.mixing_heads or self.mixing_heads % 2:
            raise ConfigurationError(
                f"Expected an even number of mixing_heads that divides cell_width, got {self.mixing_heads} heads "
                f"for a width of {self.cell_width}."
            )

    def can_grow_from(self, start: EncoderConfig) -> bool:
        """Blocks may be added, which start as identities, and inputs, whose weights start at zero."""
        if not isinstance(start, PairwiseConfig):
            return False
        may_grow = {name: getattr(self, name) for name in MAY_GROW}
        return (
            dataclasses.replace(start, **may_grow) == self
            and start.stages <= self.stages
            and start.pair_blocks <= self.pair_blocks
            and _contains(self.channels, start.channels)
            and _contains(self.statistics, start.statistics)
            and start.canonical_signs <= self.canonical_signs
            and start.confounding_head <= self.confounding_head
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


def _contains(names: tuple[str, ...], some: tuple[str, ...]) -> bool:
    """Whether all of some names are there, in their order: sums are then rounded alike, and the answer is the same."""
    return tuple(name for name in names if name in some) == some


def _normal(outputs: int, inputs: int) -> Tensor:
    """Weights to start from, normal with variance 1 / inputs.  (outputs, inputs)"""
    weight = torch.empty(outputs, inputs)
    # Files are first tried out on the meta device, which has no numbers. Drawing some there would load torch's
    # compiler, which takes longer than all else that a command starts with.
    return weight if weight.is_meta else weight.normal_() / inputs**0.5


class Linear(nn.Module):
    """y = W x (+ b), computed in the precision of x. With `zero` it starts at 0, as every residual branch ends."""

    def __init__(self, inputs: int, outputs: int, bias: bool = False, zero: bool = False) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(outputs, inputs) if zero else _normal(outputs, inputs))
        self.bias = nn.Parameter(torch.zeros(outputs)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight.to(x.dtype), None if self.bias is None else self.bias.to(x.dtype))

    def added_to(self, stream: Tensor, x: Tensor) -> Tensor:
        """stream + W x, in one pass over the stream."""
        total = torch.addmm(stream.flatten(0, -2), x.flatten(0, -2), self.weight.to(x.dtype).t())
        return total.view(stream.shape)


class GatedFeedForward(nn.Module):
    """x + W_out (silu(W_gate n) ⊙ W_value n) with n = rms_norm(x): a vector at a time, everything else untouched."""

    def __init__(self, width: int) -> None:
        super().__init__()
        hidden = 2 * width
        self.gate = nn.Parameter(_normal(hidden, width))
        self.value = nn.Parameter(_normal(hidden, width))
        self.out = nn.Parameter(torch.zeros(width, hidden))

    def forward(self, x: Tensor) -> Tensor:
        return gated_feed_forward(x, self.gate, self.value, self.out)

    def weights(self, dtype: torch.dtype) -> processor.FeedForwardWeights:
        return processor.FeedForwardWeights(self.gate.to(dtype), self.value.to(dtype), self.out.to(dtype))


class MixingWeights(nn.Module):
    """How much of variable k goes to variable j, for each head, read off the pairs.  (B, H, P, P)

    Half of the heads average (softmax over k), half add up with signs: regressions, and so residuals, are within reach.
    """

    def __init__(self, config: PairwiseConfig) -> None:
        super().__init__()
        self.logits = Linear(config.pair_width, config.mixing_heads)

    def forward(self, pairs: Tensor) -> Tensor:
        logits = norm_linear(pairs, self.logits.weight).permute(0, 3, 1, 2).float()
        averaging, signed = logits.chunk(2, dim=1)
        return torch.cat([averaging.softmax(dim=-1), signed / pairs.shape[1] ** 0.5], dim=1).to(pairs.dtype)


class CellBlock(nn.Module):
    """Cells combined across variables, with weights shared by all observations, then a feed-forward.  (B, N, P, D)"""

    def __init__(self, config: PairwiseConfig) -> None:
        super().__init__()
        self.value_and_gate = Linear(config.cell_width, 2 * config.cell_width)
        self.out = Linear(config.cell_width, config.cell_width, zero=True)
        self.feed_forward = GatedFeedForward(config.cell_width)

    def forward(self, cells: Tensor, weights: Tensor) -> Tensor:
        value_and_gate = norm_linear(cells, self.value_and_gate.weight)  # (B, N, P, 2D)
        cells = self.out.added_to(cells, mix_cells(value_and_gate, weights))
        updated: Tensor = self.feed_forward(cells)
        return updated


class OuterProduct(nn.Module):
    """What cells of two variables have in common: outer products of projections, summed over observations and divided
    by `count`, so that chunks of observations add up to a mean.  (B, P, P, W²)
    """

    def __init__(self, config: PairwiseConfig) -> None:
        super().__init__()
        self.sides = Linear(config.cell_width, 2 * config.outer_width)

    def forward(self, cells: Tensor, count: int) -> Tensor:
        return self.products(self.project(cells), count)

    def project(self, cells: Tensor) -> Tensor:
        """Both sides of the products, beside each other.  (B, N, P, 2W)"""
        return norm_linear(cells, self.sides.weight)

    def products(self, sides: Tensor, count: int) -> Tensor:
        """The products of projected cells.  (B, P, P, W²)"""
        variables = sides.shape[2]
        left, right = sides.chunk(2, dim=-1)  # (B, N, P, W)
        outer: Tensor = (left / count).flatten(2).transpose(1, 2) @ right.flatten(2)  # (B, P·W, P·W)
        outer = outer.unflatten(2, (variables, -1)).unflatten(1, (variables, -1))  # (B, P, W, P, W)
        return outer.permute(0, 1, 3, 2, 4).flatten(3)


class PairBlock(nn.Module):
    """Pairs i–j informed by all pairs i–k and j–k (outgoing) or k–i and k–j (incoming), then a feed-forward."""

    def __init__(self, width: int, incoming: bool) -> None:
        super().__init__()
        self.incoming = incoming
        self.sides = Linear(width, 4 * width)
        self.gate = Linear(width, width)
        self.out = Linear(width, width, zero=True)
        self.feed_forward = GatedFeedForward(width)

    def forward(self, pairs: Tensor) -> Tensor:
        triangles = triangle_products(norm_linear(pairs, self.sides.weight), self.incoming)  # (B, P, P, D)
        pairs = pairs + self.out(triangles) * norm_linear(pairs, self.gate.weight).sigmoid()
        updated: Tensor = self.feed_forward(pairs)
        return updated

    def weights(self, dtype: torch.dtype, triangles: torch.dtype) -> processor.PairWeights:
        sides, gate, out = (layer.weight.to(dtype) for layer in (self.sides, self.gate, self.out))
        return processor.PairWeights(sides, gate, out, self.feed_forward.weights(dtype), self.incoming, triangles)


def pair_blocks(config: PairwiseConfig) -> nn.ModuleList:
    """The pair blocks of a stage, outgoing and incoming by turns."""
    return nn.ModuleList(PairBlock(config.pair_width, incoming=index % 2 == 1) for index in range(config.pair_blocks))


class Stage(nn.Module):
    """One exchange between cells and pairs."""

    def __init__(self, config: PairwiseConfig) -> None:
        super().__init__()
        self.mixing_weights = MixingWeights(config)
        self.cell_block = CellBlock(config)
        self.outer_product = OuterProduct(config)
        self.from_cells = Linear(config.outer_width**2, config.pair_width, zero=True)
        self.pair_blocks = pair_blocks(config)

    def update_pairs(self, pairs: Tensor, mean: Tensor) -> Tensor:
        pairs = self.from_cells.added_to(pairs, mean.to(pairs.dtype))
        for block in self.pair_blocks:
            pairs = block(pairs)
        return pairs

    def weights(self, dtype: torch.dtype, triangles: torch.dtype, last: bool) -> processor.StageWeights:
        """What a processor computes the stage with.

        Matrix products in the precision, but for those that move answers most: rounded pairs mislead all stages that
        follow, so only the last stage rounds them; and the layers that read cells, for mixing and for sums, are exact.
        """
        exact = torch.float32
        return processor.StageWeights(
            self.mixing_weights.logits.weight,
            processor.CellWeights(
                self.cell_block.value_and_gate.weight.to(exact),
                self.cell_block.out.weight.to(dtype),
                self.cell_block.feed_forward.weights(dtype),
                self.outer_product.sides.weight.to(exact),
            ),
            self.from_cells.weight.to(dtype),
            _weights_of(self.pair_blocks, dtype if last else exact, dtype if last else triangles),
        )


def _weights_of(blocks: nn.ModuleList, dtype: torch.dtype, triangles: torch.dtype) -> list[processor.PairWeights]:
    return [block.weights(dtype, triangles) for block in blocks if isinstance(block, PairBlock)]


class PairHead(nn.Module):
    """Logit of something about two variables, such as that they are adjacent, from both of their pair vectors.

    (B, P, P), symmetric.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.hidden = Linear(width, width)
        self.out = Linear(width, 1, bias=True, zero=True)
        assert self.out.bias is not None
        # Of most pairs it is not true: start from the odds of a sparse graph.
        if not self.out.bias.is_meta:
            nn.init.constant_(self.out.bias, -3.0)

    def forward(self, pairs: Tensor) -> Tensor:
        logits = torch.cat([self._of_rows(pairs, rows) for rows in _rows_of_heads(pairs)], dim=1)
        return (logits + logits.transpose(1, 2)) / 2  # a matrix product may round the two halves differently

    def _of_rows(self, pairs: Tensor, rows: slice) -> Tensor:
        symmetric = pairs[:, rows] + pairs[:, :, rows].transpose(1, 2)
        logits: Tensor = self.out(F.silu(self.hidden(symmetric)).float()).squeeze(-1)
        return logits


def _rows_of_heads(pairs: Tensor) -> Iterator[slice]:
    """Slices of the first variable that a head works on at once: all of them, but for a wide table on a processor."""
    return processor.rows_at_once(pairs) if processor.applies(pairs.device) else iter([slice(None)])


class PooledOrderHead(nn.Module):
    """Score of each variable, larger is earlier, from the means of its row and column and from its diagonal entry."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.own = Linear(3 * width, 1, zero=True)

    def forward(self, pairs: Tensor) -> Tensor:
        diagonal = pairs.diagonal(dim1=1, dim2=2).transpose(1, 2)
        summary = torch.cat([pairs.mean(dim=1), pairs.mean(dim=2), diagonal], dim=-1)
        own: Tensor = self.own(summary.float()).squeeze(-1)
        return own


class PotentialOrderHead(PooledOrderHead):
    """Score of each variable, larger is earlier: the potential that best explains what pairs say of their direction.

    Each pair gives evidence e_jk = −e_kj that j comes before k, with a weight w_jk = w_kj. The scores minimize
    Σ w_jk (s_j − s_k − e_jk)² + Σ s_j², the weighted projection of the evidence on differences of a potential (the
    Hodge view of the paper's appendix B.4); the pooled score of the variable's own is added.
    """

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.hidden = Linear(width, width)
        self.evidence_and_weight = Linear(width, 2, zero=True)

    def forward(self, pairs: Tensor) -> Tensor:
        read = [self.evidence_and_weight(F.silu(self.hidden(pairs[:, rows])).float()) for rows in _rows_of_heads(pairs)]
        evidence, weight = torch.cat(read, dim=1).unbind(-1)  # (B, P, P)
        evidence = evidence - evidence.transpose(1, 2)
        weight = F.softplus(weight + weight.transpose(1, 2))
        weight = weight - torch.diag_embed(weight.diagonal(dim1=1, dim2=2))
        laplacian = torch.diag_embed(weight.sum(dim=2) + 1.0) - weight
        divergence = (weight * evidence).sum(dim=2)
        potential: Tensor = torch.linalg.solve_ex(laplacian, divergence)[0]
        return potential + super().forward(pairs)


ORDER_HEADS = {"potential": PotentialOrderHead, "pooled": PooledOrderHead}


CELL_SHAPES: dict[str, Callable[[Tensor], Tensor]] = {
    "itself": lambda channels: channels,
    "size": torch.abs,
    "tanh": torch.tanh,
    "square": lambda channels: channels.square() / 4,
}
"""A few shapes of each channel, so that the first layer need not learn them."""


class PairwiseEncoder(Encoder):
    """Standardized tables (B, N, P) to skeleton logits (B, P, P) and order scores (B, P)."""

    repeated_blocks: ClassVar[tuple[type[nn.Module], ...]] = (MixingWeights, CellBlock, OuterProduct, PairBlock)

    has_statistics: ClassVar[bool] = True

    config: PairwiseConfig

    def __init__(self, config: PairwiseConfig) -> None:
        super().__init__(config)
        self.reads = parts_read(config.inputs())
        self.cell_embedding = Linear(len(config.cell_inputs()), config.cell_width, bias=True)
        self.pair_embedding = Linear(len(config.pair_inputs()), config.pair_width, bias=True)
        self.first_pair_blocks = pair_blocks(config)
        self.stages = nn.ModuleList(Stage(config) for _ in range(config.stages))
        self.skeleton_head = PairHead(config.pair_width)
        self.confounding_head = PairHead(config.pair_width) if config.confounding_head else None
        self.order_head = ORDER_HEADS[config.order_head](config.pair_width)
        self.pause = nn.Identity()
        """Called between stages where blocks are not called themselves, for whoever listens to modules."""

    def bytes_per_observation(self, variables: int, device_type: str) -> int:
        return 4 * variables * self.config.cell_width * CELL_WIDTHS_ALIVE[device_type]

    def bytes_per_pair(self, device_type: str) -> int:
        return 4 * self.config.pair_width * PAIR_WIDTHS_ALIVE[device_type]

    def operations(self, observations: int, variables: int) -> float:
        config, pairs, cells = self.config, variables**2, observations * variables
        cell, pair, outer = config.cell_width, config.pair_width, config.outer_width
        # Per cell: values and gates, the way out, the feed-forward, the sides; then the mixing across variables.
        in_cells = cells * (9 * cell**2 + 2 * cell * outer + variables * cell)
        # Per pair: the sum over observations and what is read off it; sides, gate, way out, feed-forward, triangles.
        from_cells = pairs * outer**2 * (observations + pair)
        in_pairs = pairs * config.pair_blocks * (12 * pair**2 + variables * pair)
        stages = config.stages * config.rounds
        return 2.0 * (stages * (in_cells + from_cells + in_pairs) + in_pairs)

    def grown(self, name: str, tensor: Tensor, start: EncoderConfig) -> Tensor:
        """The same with zeros in place of inputs that `start` did not have."""
        assert isinstance(start, PairwiseConfig)
        inputs = {
            "cell_embedding.weight": (start.cell_inputs(), self.config.cell_inputs()),
            "pair_embedding.weight": (start.pair_inputs(), self.config.pair_inputs()),
        }
        if name not in inputs or tensor.dim() < 2:  # an optimizer also keeps single numbers for a parameter
            return tensor
        before, after = inputs[name]
        wider = tensor.new_zeros(len(tensor), len(after))
        wider[:, [after.index(column) for column in before]] = tensor
        return wider

    def embed_cells(self, channels: Tensor, dtype: torch.dtype) -> Tensor:
        """Cells before the first stage: their channels and a few shapes of them.  (B, N, P, D)"""
        shapes = torch.cat([shape(channels) for shape in CELL_SHAPES.values()], dim=-1)
        cells: Tensor = self.cell_embedding(shapes.to(dtype))
        return cells

    def forward(self, tables: TableBatch, observations_per_chunk: int | None = None) -> EncoderOutput:
        check_chunk(observations_per_chunk)
        channels, statistics = self.describe(tables, observations_per_chunk)
        return self.answer(self.relate(channels, statistics, observations_per_chunk))

    def forward_long(
        self,
        table: LongTable,
        drawn: TableBatch,
        observations_per_chunk: int | None = None,
        progress: Progress = unheard,
    ) -> EncoderOutput:
        check_chunk(observations_per_chunk)
        config, device = self.config, drawn.values.device
        # Not kept while the cells are read: it is as large as the table.
        channels, statistics = described(
            LongMeasured(table, config.channels, config.statistics, config.canonical_signs, progress), config.statistics
        )
        pairs = self.relate(channels.to(device), statistics.to(device), observations_per_chunk, progress)
        return self.answer(pairs)

    def describe(self, tables: TableBatch, observations_per_chunk: int | None = None) -> tuple[Tensor, Tensor]:
        """What the network is told of the tables: channels (B, N, P, C) and statistics (B, P, P, S)."""
        with torch.autocast(tables.values.device.type, enabled=False):
            return describe(
                tables,
                self.config.channels,
                self.config.statistics,
                observations_per_chunk,
                self.config.canonical_signs,
            )

    def relate(
        self,
        channels: Tensor,
        statistics: Tensor,
        observations_per_chunk: int | None = None,
        progress: Progress = unheard,
    ) -> Tensor:
        """The pairs after all blocks, normalized; matrix products in the precision of autocast.  (B, P, P, D)"""
        device = channels.device
        dtype = torch.get_autocast_dtype(device.type) if torch.is_autocast_enabled(device.type) else torch.float32
        with torch.autocast(device.type, enabled=False):
            pairs: Tensor = self.pair_embedding(statistics)
            if processor.applies(device):
                self._update_on_processor(pairs, channels, dtype, observations_per_chunk, progress)
                return pairs
            return self._update(pairs.to(dtype), channels, observations_per_chunk, progress)

    def answer(self, pairs: Tensor) -> EncoderOutput:
        """What the heads read off the pairs."""
        with torch.autocast(pairs.device.type, enabled=False):
            confounding = None if self.confounding_head is None else self.confounding_head(pairs)
            return EncoderOutput(self.skeleton_head(pairs), self.order_head(pairs), confounding)

    def _update_on_processor(
        self,
        pairs: Tensor,
        channels: Tensor,
        dtype: torch.dtype,
        observations_per_chunk: int | None,
        progress: Progress,
    ) -> None:
        """The pairs after all blocks and normalized, in place; matrix products in a precision, the rest in float32."""
        triangles = dtype if pairs.shape[1] >= WIDE else torch.float32
        for weights in _weights_of(self.first_pair_blocks, torch.float32, triangles):
            processor.pair_block_(pairs, weights)

        stages = self._stages()

        def tell(share: float) -> None:
            self.pause(pairs)
            progress(READING_CELLS, share)

        processor.exchange_(
            pairs,
            [stage.weights(dtype, triangles, last=place == len(stages)) for place, stage in enumerate(stages, start=1)],
            lambda part: self.embed_cells(channels[:, part], torch.float32),
            channels.shape[1],
            observations_per_chunk,
            tell,
        )
        processor.norm_(pairs)

    def _update(
        self, pairs: Tensor, channels: Tensor, observations_per_chunk: int | None, progress: Progress
    ) -> Tensor:
        """The pairs after all blocks, normalized.  (B, P, P, D)"""
        for block in self.first_pair_blocks:
            pairs = block(pairs)
        if observations_per_chunk is None or observations_per_chunk >= channels.shape[1]:
            pairs = self._exchange(pairs, channels, progress)
        else:
            pairs = self._exchange_in_chunks(pairs, channels, observations_per_chunk, progress)
        return rms_norm(pairs)

    def _exchange(self, pairs: Tensor, channels: Tensor, progress: Progress = unheard) -> Tensor:
        """The pairs after all stages, with the cells of all observations at hand.  (B, P, P, D)"""
        observations = channels.shape[1]
        cells = self.embed_cells(channels, pairs.dtype)
        stages = self._stages()
        for done, stage in enumerate(stages):
            progress(READING_CELLS, done / len(stages))
            cells = stage.cell_block(cells, stage.mixing_weights(pairs))
            pairs = stage.update_pairs(pairs, stage.outer_product(cells, observations))
        return pairs

    def _exchange_in_chunks(
        self, pairs: Tensor, channels: Tensor, observations_per_chunk: int, progress: Progress = unheard
    ) -> Tensor:
        """The same with the cells of one chunk of observations at hand.  (B, P, P, D)

        In each stage the cells of a chunk are computed again from the start: that costs time, and keeps nothing.
        """
        observations = channels.shape[1]
        weights: list[Tensor] = []
        stages = self._stages()

        def projected(channels: Tensor) -> Tensor:
            cells = self.embed_cells(channels, pairs.dtype)
            for stage, stage_weights in zip(stages, weights, strict=False):  # as many as there are weights for
                cells = stage.cell_block(cells, stage_weights)
            return stages[len(weights) - 1].outer_product.project(cells)

        whole = sum(range(1, len(stages) + 1)) * observations
        for done, stage in enumerate(stages):
            weights.append(stage.mixing_weights(pairs))
            total: Tensor | None = None
            for part in chunks(observations, observations_per_chunk):
                progress(READING_CELLS, (sum(range(done + 1)) * observations + (done + 1) * part.start) / whole)
                products = stage.outer_product.products(projected(channels[:, part]), observations).float()
                total = products if total is None else total + products
            assert total is not None
            pairs = stage.update_pairs(pairs, total)
        return pairs

    def _stages(self) -> list[Stage]:
        """The stages in the order in which they work, those of every round."""
        return self.config.rounds * [stage for stage in self.stages if isinstance(stage, Stage)]
