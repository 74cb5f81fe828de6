"""The pairwise encoder on a processor, for inference: in place, in pieces that stay in its cache.

The formulas are those of `encoders.pairwise`, which trains and runs on GPUs; a test compares the two. What differs is
where things lie. A linear layer is computed as W xᵀ where the next step wants channels first (mixing across variables,
triangles), so that nothing is copied from one layout to another, and residuals are added in place. Only the streams and
both sides of the triangles are ever whole: a thousand variables fit into a few gigabytes.

Matrix products are computed in the precision of the weights. The streams, their norms and the heads stay in float32.
"""

# B tables, N observations, P variables, D width, H heads, W outer width, T tokens (cells or pairs)

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from causal_arrow.network.kernels.fused import EPSILON
from causal_arrow.network.kernels.workers import each, pieces
from causal_arrow.storage import slices

CELLS_IN_CACHE = 4096
PAIRS_IN_CACHE = 2048
"""Cells, or pairs, that a thread works on at once."""

FEWEST_AT_ONCE = 256
"""Cells or pairs that are worth a thread of their own."""

OUTER_PRODUCTS_AT_ONCE = 2**22
"""Numbers in the outer products of cells that are worked on at once."""

ROW_PAIRS_AT_ONCE = 2**16
"""Pairs whose heads are computed at once."""


def applies(device: torch.device) -> bool:
    """Whether to take these functions: on a processor, where no gradients are asked for."""
    return device.type == "cpu" and not torch.is_grad_enabled() and not torch.compiler.is_compiling()


class FeedForwardWeights(NamedTuple):
    """Of a gated feed-forward block."""

    gate: Tensor  # (2D, D)
    value: Tensor  # (2D, D)
    out: Tensor  # (D, 2D)


class CellWeights(NamedTuple):
    """Of a cell block, and of the outer products after it."""

    value_and_gate: Tensor  # (2D, D)
    out: Tensor  # (D, D)
    feed_forward: FeedForwardWeights
    sides: Tensor  # (2W, D)


class PairWeights(NamedTuple):
    """Of a pair block."""

    sides: Tensor  # (4D, D)
    gate: Tensor  # (D, D)
    out: Tensor  # (D, D)
    feed_forward: FeedForwardWeights
    incoming: bool
    triangles: torch.dtype  # in which these are computed


class StageWeights(NamedTuple):
    """Of one exchange between cells and pairs."""

    mixing: Tensor  # (H, D) of pairs
    cells: CellWeights
    from_cells: Tensor  # (D, W²)
    pairs: Sequence[PairWeights]


def exchange_(
    pairs: Tensor,
    stages: Sequence[StageWeights],
    embed: Callable[[slice], Tensor],
    observations: int,
    observations_per_chunk: int | None = None,
    tell: Callable[[float], None] = lambda share: None,
) -> None:
    """All stages, on the pairs (B, P, P, D) in place; `embed` gives the cells of some observations  (B, n, P, D).

    With chunks, the cells of one chunk of observations are at hand at a time. In each stage they are computed again
    from the start: that costs time, and keeps nothing. `tell` hears now and then which share is done.
    """
    tables, variables = pairs.shape[:2]
    chunk = observations_per_chunk or observations
    parts = list(_of_observations(pairs, observations))
    kept = each(embed, parts) if chunk >= observations else None
    mixing: list[Tensor] = []
    # Where cells are computed again, a stage takes as often as long as there are stages up to it.
    efforts = [1 if kept is not None else index + 1 for index in range(len(stages))]
    for index, stage in enumerate(stages):
        mixing.append(mixing_weights(pairs, stage.mixing).to(stage.cells.out.dtype))
        total: Tensor | None = None
        for rows in slices(observations, chunk):
            tell((sum(efforts[:index]) + efforts[index] * rows.start / observations) / sum(efforts))
            sides = _Sides(tables, rows.stop - rows.start, variables, stage.cells)
            if kept is not None:
                each(partial(_next_stage_, sides, mixing[index], stage.cells), zip(parts, kept, strict=True))
                add_outer_products_(pairs, sides.left, sides.right, observations, stage.from_cells)
            else:
                again = partial(_from_the_start, sides, mixing, stages, embed, rows.start)
                each(again, _of_observations(pairs, rows.stop - rows.start))
                products = torch.bmm(sides.left.mT, sides.right).float()
                total = products if total is None else total.add_(products)
        if total is not None:
            _add_total_(pairs, total, observations, stage.from_cells)
        del sides, total
        for block in stage.pairs:
            pair_block_(pairs, block)


def _of_observations(pairs: Tensor, observations: int) -> Iterator[slice]:
    """Slices of so many observations whose cells a thread works on at once."""
    cells = pairs.shape[0] * pairs.shape[1]
    return pieces(observations, CELLS_IN_CACHE // cells, -(-FEWEST_AT_ONCE // cells))


def _next_stage_(sides: _Sides, mixing: Tensor, weights: CellWeights, part_and_cells: tuple[slice, Tensor]) -> None:
    """The cells of some observations one stage on, in place."""
    part, cells = part_and_cells
    cell_block_(cells, mixing, weights)
    sides.keep(part, cells)


def _from_the_start(
    sides: _Sides,
    mixing: Sequence[Tensor],
    stages: Sequence[StageWeights],
    embed: Callable[[slice], Tensor],
    first: int,
    part: slice,
) -> None:
    """The cells of some observations after all stages for which there are mixing weights."""
    cells = embed(slice(first + part.start, first + part.stop))
    for stage, weights in zip(stages, mixing, strict=False):
        cell_block_(cells, weights, stage.cells)
    sides.keep(part, cells)


# Tokens


def normed(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Tokens with root mean square 1, in a precision.  (..., D)"""
    scale = torch.linalg.vector_norm(x, dim=-1, keepdim=True).square_().div_(x.shape[-1]).add_(EPSILON).rsqrt_()
    result: Tensor = (x * scale).to(dtype)
    return result


def norm_(pairs: Tensor) -> None:
    """The same for all pairs, in place."""
    flat = pairs.view(-1, pairs.shape[-1])

    def norm(part: slice) -> None:
        flat[part] = normed(flat[part], flat.dtype)

    each(norm, _of_pairs(flat))


def add_product_(stream: Tensor, x: Tensor, weight: Tensor) -> None:
    """stream += x Wᵀ, for tokens (T, D), in one pass where both have the same precision."""
    if stream.dtype == x.dtype:
        stream.addmm_(x, weight.t())
    else:
        stream.add_(functional.linear(x, weight))


def channels_first(weight: Tensor, x: Tensor) -> Tensor:
    """W xᵀ for the tokens of each table.  (B, O, T) from (O, D) and (B, T, D)"""
    if len(x) == 1:  # a little faster than a product of batches
        return torch.mm(weight, x[0].t()).unsqueeze(0)
    return torch.bmm(weight.expand(len(x), -1, -1), x.mT)


def feed_forward_(x: Tensor, weights: FeedForwardWeights) -> None:
    """x += W_out (silu(W_gate n) ⊙ W_value n) with n = rms_norm(x), for tokens (T, D)."""
    n = normed(x, weights.gate.dtype)
    hidden = functional.silu(functional.linear(n, weights.gate), inplace=True)
    add_product_(x, hidden.mul_(functional.linear(n, weights.value)), weights.out)


# Cells


def mixing_weights(pairs: Tensor, logits: Tensor) -> Tensor:
    """How much of variable k goes to variable j, for each head: see `MixingWeights`.  (B, H, P, P)"""
    flat = pairs.view(-1, pairs.shape[-1])
    read = torch.cat(each(lambda part: functional.linear(normed(flat[part], logits.dtype), logits), _of_pairs(flat)))
    by_head = read.view(*pairs.shape[:3], -1).permute(0, 3, 1, 2).float()
    averaging, signed = by_head.chunk(2, dim=1)
    return torch.cat([averaging.softmax(dim=-1), signed / pairs.shape[1] ** 0.5], dim=1)


def cell_block_(cells: Tensor, mixing: Tensor, weights: CellWeights) -> None:
    """A cell block on some observations (B, N, P, D), in place; `mixing` holds the weights (B, H, P, P)."""
    tables, _, variables, width = cells.shape
    heads, dtype = mixing.shape[1], weights.out.dtype
    tokens = cells.view(tables, -1, width)  # (B, T, D)
    read = channels_first(weights.value_and_gate, normed(tokens, weights.value_and_gate.dtype)).to(dtype)
    value, gate = read.chunk(2, dim=1)  # (B, D, T)
    by_head = value.reshape(tables * heads, -1, variables)  # (B·H, D/H·N, P)
    mixed = torch.bmm(by_head, mixing.reshape(tables * heads, variables, variables).mT)
    mixed = mixed.view(tables, width, -1).mul_(functional.silu(gate, inplace=True))
    if tables == 1:
        add_product_(tokens[0], mixed[0].t(), weights.out)
    else:
        tokens.add_(mixed.mT @ weights.out.t())
    feed_forward_(cells.view(-1, width), weights.feed_forward)


class _Sides:
    """Both sides of the outer products of cells, which come in parts.  2 × (B, N, P·W)"""

    def __init__(self, tables: int, observations: int, variables: int, weights: CellWeights) -> None:
        self.weight = weights.sides
        shape = (tables, observations, variables * (len(self.weight) // 2))
        self.left, self.right = (torch.empty(shape, dtype=weights.out.dtype) for _ in range(2))

    def keep(self, part: slice, cells: Tensor) -> None:
        both = functional.linear(normed(cells, self.weight.dtype), self.weight)  # (B, n, P, 2W)
        for side, half in zip((self.left, self.right), both.chunk(2, dim=-1), strict=True):
            side[:, part].view(half.shape).copy_(half)


def add_outer_products_(pairs: Tensor, left: Tensor, right: Tensor, count: int, from_cells: Tensor) -> None:
    """Outer products of projected cells (B, N, P·W), divided by `count`, through a layer (D, W²) and onto the pairs."""
    outer_width = left.shape[2] // pairs.shape[1]

    def add(rows: slice) -> None:
        some = left[:, :, rows.start * outer_width : rows.stop * outer_width]
        _add_mean_(pairs, rows, torch.bmm(some.mT, right), count, from_cells)

    each(add, _rows(pairs, outer_width))


def _add_total_(pairs: Tensor, total: Tensor, count: int, from_cells: Tensor) -> None:
    """The same from the sum of all products, (B, P·W, P·W)."""
    outer_width = total.shape[1] // pairs.shape[1]

    def add(rows: slice) -> None:
        some = total[:, rows.start * outer_width : rows.stop * outer_width]
        _add_mean_(pairs, rows, some.to(from_cells.dtype), count, from_cells)

    each(add, _rows(pairs, outer_width))


def _add_mean_(pairs: Tensor, rows: slice, products: Tensor, count: int, from_cells: Tensor) -> None:
    """The same from the products of some variables with all of them, (B, rows·W, P·W)."""
    by_pair = products.unflatten(2, (pairs.shape[1], -1)).unflatten(1, (rows.stop - rows.start, -1))
    by_pair = by_pair.permute(0, 1, 3, 2, 4).flatten(3)  # (B, rows, P, W²) from (B, rows, W, P, W)
    pairs[:, rows].add_(functional.linear(by_pair.to(from_cells.dtype), from_cells), alpha=1.0 / count)


def _rows(pairs: Tensor, outer_width: int) -> Iterator[slice]:
    """Slices of the first variable whose outer products with all others are worked on at once."""
    tables, variables = pairs.shape[:2]
    cells = tables * variables
    return pieces(variables, OUTER_PRODUCTS_AT_ONCE // (cells * outer_width**2), -(-FEWEST_AT_ONCE // cells))


# Pairs


def pair_block_(pairs: Tensor, weights: PairWeights) -> None:
    """A pair block (B, P, P, D), in place."""
    tables, variables, _, width = pairs.shape
    dtype = weights.out.dtype
    tokens = pairs.view(tables, -1, width)  # (B, T, D)
    products = _triangles(tokens, variables, weights)  # (B, D, T)

    def update_(place: tuple[int, slice]) -> None:
        x, triangles = tokens[place], products[place[0], :, place[1]].to(dtype)  # (T, D), (D, T)
        scale = triangles.float().square().sum(dim=0).div_(width).add_(EPSILON).rsqrt_()
        gate = functional.linear(normed(x, dtype), weights.gate).sigmoid_()
        x.addcmul_(torch.mm(triangles.t(), weights.out.t()).mul_(gate), scale.unsqueeze(-1))
        feed_forward_(x, weights.feed_forward)

    each(update_, [(table, part) for table in range(tables) for part in _of_pairs(tokens[table])])


def _triangles(tokens: Tensor, variables: int, weights: PairWeights) -> Tensor:
    """Products over third variables, for the tokens of all pairs (B, T, D).  (B, D, T)"""
    tables, count, width = tokens.shape
    left, right, products = (torch.empty(tables, width, count, dtype=weights.triangles) for _ in range(3))

    def read_sides(part: slice) -> None:
        both = channels_first(weights.sides, normed(tokens[:, part], weights.sides.dtype))  # (B, 4D, T)
        both[:, 2 * width :].sigmoid_()
        side, other_side, gate, other_gate = both.chunk(4, dim=1)  # (B, D, T) each
        left[:, :, part] = side.mul_(gate)
        right[:, :, part] = other_side.mul_(other_gate)

    each(read_sides, pieces(count, PAIRS_IN_CACHE // tables, -(-FEWEST_AT_ONCE // tables)))
    one, other, result = (side.view(-1, variables, variables) for side in (left, right, products))  # (B·D, P, P)
    one, other = (one.mT, other) if weights.incoming else (one, other.mT)

    def multiply(channels: slice) -> None:
        torch.bmm(one[channels], other[channels], out=result[channels])

    each(multiply, pieces(len(result), len(result), -(-FEWEST_AT_ONCE // variables**2)))
    return products


def _of_pairs(flat: Tensor) -> Iterator[slice]:
    return pieces(len(flat), PAIRS_IN_CACHE, FEWEST_AT_ONCE)


def rows_at_once(pairs: Tensor) -> Iterator[slice]:
    """Slices of the first variable, of the pairs that a head works on at once: all of them but for wide tables."""
    tables, variables = pairs.shape[:2]
    return slices(variables, ROW_PAIRS_AT_ONCE // (tables * variables))
