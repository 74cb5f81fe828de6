"""The encoder that ships, in torch, for training and GPUs.

`causal_arrow.network.pairwise` explains how it works, and runs it on processors.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from causal_arrow.batches import LongTable, TableBatch
from causal_arrow.network import check_chunk
from causal_arrow.network.long import LongMeasured
from causal_arrow.network.pairwise import PairwiseConfig
from causal_arrow.network.statistics import Measured, described, parts_read
from causal_arrow.progress import READING_CELLS, Progress, ignore
from causal_arrow.storage import slices
from causal_arrow_lab.network import arrays
from causal_arrow_lab.network.encoder import Encoder, EncoderOutput
from causal_arrow_lab.network.kernels.fused import gated_feed_forward, norm_linear, rms_norm
from causal_arrow_lab.network.kernels.mixing import mix_cells
from causal_arrow_lab.network.kernels.triangles import triangle_products

# B tasks, N observations, P variables, D width, H heads


arrays.register()

CELL_WIDTHS_ALIVE = 16
"""Floats alive at once for each cell, in cell widths: the stream, values and gates, the hidden layer. Measured."""

PAIR_WIDTHS_ALIVE = 17
"""Floats alive at once for each ordered pair, in pair widths: the stream, sides of triangles, the hidden layer, the
statistics in double precision. Measured."""

MAY_GROW = ("stages", "pair_blocks", "channels", "statistics", "canonical_signs", "confounding_head")
"""Settings in which a network may go beyond the one whose weights it starts from."""


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


class MixingWeights(nn.Module):
    """Weights with which variable k goes into variable j: half of the heads average, half add up.  (B, H, P, P)"""

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
    """Outer products of projected cells of two variables, summed and divided by `count`.  (B, P, P, W²)"""

    def __init__(self, config: PairwiseConfig) -> None:
        super().__init__()
        self.sides = Linear(config.cell_width, 2 * config.outer_width)

    def forward(self, cells: Tensor, count: int) -> Tensor:
        return self.products(self.project(cells), count)

    def project(self, cells: Tensor) -> Tensor:
        """Both sides of the products, concatenated.  (B, N, P, 2W)"""
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


def pair_blocks(config: PairwiseConfig) -> nn.ModuleList:
    """The pair blocks of a stage, alternately outgoing and incoming."""
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


class PairHead(nn.Module):
    """Logit of a statement about two variables, such as that they are adjacent.  (B, P, P), symmetric"""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.hidden = Linear(width, width)
        self.out = Linear(width, 1, bias=True, zero=True)
        assert self.out.bias is not None
        # Of most pairs it is not true: start from the odds of a sparse graph.
        if not self.out.bias.is_meta:
            nn.init.constant_(self.out.bias, -3.0)

    def forward(self, pairs: Tensor) -> Tensor:
        symmetric = pairs + pairs.transpose(1, 2)
        logits: Tensor = self.out(F.silu(self.hidden(symmetric)).float()).squeeze(-1)
        return (logits + logits.transpose(1, 2)) / 2  # a matrix product may round the two halves differently


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
    """Score of each variable, larger is earlier: the potential that best explains the evidence of pairs.

    Pairs give evidence e_jk = −e_kj that j comes before k, with weights w_jk = w_kj. The scores minimize
    Σ w_jk (s_j − s_k − e_jk)² + Σ s_j² (the Hodge view of the paper's appendix B.4); the pooled score is added.
    """

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.hidden = Linear(width, width)
        self.evidence_and_weight = Linear(width, 2, zero=True)

    def forward(self, pairs: Tensor) -> Tensor:
        evidence, weight = self.evidence_and_weight(F.silu(self.hidden(pairs)).float()).unbind(-1)  # (B, P, P)
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

    growth: ClassVar[str] = (
        "only stages and pair_blocks of the pairwise encoder may grow, channels and statistics may be added, and "
        "canonical_signs and confounding_head may be switched on"
    )

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

    @classmethod
    def can_grow(cls, config: Any, start: Any) -> bool:
        # Blocks may be added, which start as identities, and inputs, whose weights start at zero.
        if not isinstance(start, PairwiseConfig):
            return False
        may_grow = {name: getattr(config, name) for name in MAY_GROW}
        return (
            dataclasses.replace(start, **may_grow) == config
            and start.stages <= config.stages
            and start.pair_blocks <= config.pair_blocks
            and _contains(config.channels, start.channels)
            and _contains(config.statistics, start.statistics)
            and start.canonical_signs <= config.canonical_signs
            and start.confounding_head <= config.confounding_head
        )

    def bytes_per_observation(self, variables: int, device_type: str) -> int:
        return 4 * variables * self.config.cell_width * CELL_WIDTHS_ALIVE

    def bytes_per_pair(self, device_type: str) -> int:
        return 4 * self.config.pair_width * PAIR_WIDTHS_ALIVE

    def grown(self, name: str, tensor: Tensor, start: Any) -> Tensor:
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
        progress: Progress = ignore,
    ) -> EncoderOutput:
        check_chunk(observations_per_chunk)
        config, device = self.config, drawn.values.device
        measured = LongMeasured(table, config.channels, config.statistics, config.canonical_signs, progress)
        parts = described(measured, config.statistics)
        del measured  # not kept while the cells are read: it is as large as the table
        channels, statistics = (torch.from_numpy(part).to(device).permute(0, 2, 3, 1) for part in parts)
        return self.answer(self.relate(channels, statistics, observations_per_chunk, progress))

    @torch.no_grad()
    def describe(self, tables: TableBatch, observations_per_chunk: int | None = None) -> tuple[Tensor, Tensor]:
        """The inputs of the network for standardized tables: channels (B, N, P, C) and statistics (B, P, P, S)."""
        config = self.config
        with torch.autocast(tables.values.device.type, enabled=False):
            measured = Measured(tables, config.channels, observations_per_chunk, config.canonical_signs)
            channels, statistics = described(measured, config.statistics)
            return channels.permute(0, 2, 3, 1), statistics.permute(0, 2, 3, 1)

    def relate(
        self,
        channels: Tensor,
        statistics: Tensor,
        observations_per_chunk: int | None = None,
        progress: Progress = ignore,
    ) -> Tensor:
        """The pairs after all blocks, normalized; matrix products in the precision of autocast.  (B, P, P, D)"""
        device = channels.device
        dtype = torch.get_autocast_dtype(device.type) if torch.is_autocast_enabled(device.type) else torch.float32
        with torch.autocast(device.type, enabled=False):
            pairs: Tensor = self.pair_embedding(statistics).to(dtype)
            for block in self.first_pair_blocks:
                pairs = block(pairs)
            if observations_per_chunk is None or observations_per_chunk >= channels.shape[1]:
                return rms_norm(self._exchange(pairs, channels, progress))
            return rms_norm(self._exchange_in_chunks(pairs, channels, observations_per_chunk, progress))

    def answer(self, pairs: Tensor) -> EncoderOutput:
        """Read the answers of the heads off the pairs."""
        with torch.autocast(pairs.device.type, enabled=False):
            confounding = None if self.confounding_head is None else self.confounding_head(pairs)
            return EncoderOutput(self.skeleton_head(pairs), self.order_head(pairs), confounding)

    def _exchange(self, pairs: Tensor, channels: Tensor, progress: Progress) -> Tensor:
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
        self, pairs: Tensor, channels: Tensor, observations_per_chunk: int, progress: Progress
    ) -> Tensor:
        """The pairs, with one chunk of observations in memory at a time, computed anew in each stage.  (B, P, P, D)"""
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
            for part in slices(observations, observations_per_chunk):
                progress(READING_CELLS, (sum(range(done + 1)) * observations + (done + 1) * part.start) / whole)
                products = stage.outer_product.products(projected(channels[:, part]), observations).float()
                total = products if total is None else total + products
            assert total is not None
            pairs = stage.update_pairs(pairs, total)
        return pairs

    def _stages(self) -> list[Stage]:
        """The stages in the order in which they work, those of every round."""
        return self.config.rounds * [stage for stage in self.stages if isinstance(stage, Stage)]
