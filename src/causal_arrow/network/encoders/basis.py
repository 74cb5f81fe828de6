"""Columns of any kind as numbers: a few orthogonal functions of each, holes filled, signs that cannot be read off.

Every variable becomes up to three functions with mean 0 and variance 1, uncorrelated with one another. For numbers they
are Hermite polynomials of the normal score. For a category they are scores of its levels, those that say most about all
other variables: the leading eigenvectors of its cross tables with everything else. Nothing depends on how levels are
named or numbered. The first function of a category stands in for its value wherever a number is needed.

A column and its negative are one variable: each column is turned so that its skewness is positive.
"""

# B tasks, N observations, P variables, K levels, F functions

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from causal_arrow.batches import TableBatch

FUNCTIONS = 3
"""Functions of each variable; a category has at most one fewer than it has levels."""

RARE = 3.0
"""Observations that are added to the count of each level, so that a rare level does not get a large score by chance."""

SQUARINGS = 5
"""The leading eigenvector is read off the matrix squared this many times: no start has to be drawn."""

FILLING_ROUNDS = 6
FILLING_RIDGE = 0.1
FILLING_STEP = 0.7
"""Holes are filled by ridge regressions on all other variables, all at once, so often, so far at a time."""

SYMMETRIC = 1e-4
"""A column whose skewness is smaller than this is called symmetric."""

TINY = 1e-12


def normal_scores(data: Tensor) -> Tensor:
    """Ranks of each variable's values, through the normal quantile, with standard deviation 1.  (B, N, P)

    Ties share their mean rank, so the answer does not depend on the order of the observations.
    """
    observations = data.shape[1]
    columns = data.transpose(1, 2).contiguous()  # (B, P, N)
    ordered = columns.sort(dim=-1).values
    below = torch.searchsorted(ordered, columns)
    up_to = torch.searchsorted(ordered, columns, right=True)
    # Between 0 and 1, symmetric around 1/2; the middle of the tied ranks.
    quantiles = (below + up_to).to(data.dtype) / (2 * observations)
    scores: Tensor = torch.special.ndtri(quantiles.clamp(0.5 / observations, 1 - 0.5 / observations))
    scores = scores / scores.std(dim=-1, keepdim=True).clamp_min(1e-6)
    return scores.transpose(1, 2)


@dataclass(frozen=True, eq=False)
class Numbers:
    """Tables of any kind as numbers."""

    values: Tensor  # (B, N, P) standardized numbers, first functions of categories; holes filled
    level_functions: Tensor | None  # (B, N, P, F) of categories, zero for numbers and holes; None without categories
    categories: Tensor | None  # (B, P) bool; None where all are numbers


def as_numbers(tables: TableBatch, canonical_signs: bool) -> Numbers:
    """Standardized tables, whose categories are codes of levels, as numbers."""
    values, functions, categories = tables.values, None, None
    if tables.levels is not None:
        categories = tables.levels > 0
        functions = level_functions(tables)
        values = torch.where(categories[:, None], functions[..., 0], values)
    if tables.observed is not None:
        values = fill(values, tables.observed)
    if canonical_signs:
        values = values * signs(values)[:, None]
        if functions is not None:
            functions = functions * signs(functions.flatten(2)).unflatten(1, functions.shape[2:])[:, None]
    return Numbers(values, functions, categories)


# Functions


def hermite_functions(scores: Tensor) -> Tensor:
    """The first three Hermite polynomials of normal scores, made orthogonal.  (B, N, P, F)"""
    return orthogonal(hermite_polynomials(scores))


def hermite_polynomials(scores: Tensor) -> Tensor:
    """x, x² − 1 and x³ − 3x.  (..., F)"""
    squares = scores.square()
    return torch.stack([scores, squares - 1, scores * (squares - 3)], dim=-1)


def level_functions(tables: TableBatch) -> Tensor:
    """For each category the scores of its levels that say most about all other variables.  (B, N, P, F)

    With p_l the share of level l, a category is written as (1[x = l] − p_l) / √p_l for each level, a number as its
    Hermite functions. The products of these blocks, averaged over observations, are the normalized cross tables; the
    sum over all other variables of cross table times its transpose is a K × K matrix whose leading eigenvectors give
    the scores.
    """
    assert tables.levels is not None
    categories = tables.levels > 0  # (B, P)
    width = max(FUNCTIONS, tables.widest())
    observations = tables.observations
    levels = torch.arange(width, device=tables.values.device)
    codes = torch.where(categories[:, None], tables.values, -1.0)
    if tables.observed is not None:
        codes = codes.masked_fill(~tables.observed, -1.0)
    indicators = (codes.round().unsqueeze(-1) == levels).float()  # (B, N, P, K)
    counts = indicators.sum(dim=1)  # (B, P, K)
    seen = counts.sum(dim=-1, keepdim=True).clamp_min(1)
    shares = counts / seen
    # Rare levels are shrunk: their deviations are divided by more than the root of their share.
    deviation = ((counts + RARE) / seen).sqrt()
    present = (codes >= 0).unsqueeze(-1)
    blocks = (indicators - shares[:, None]) / deviation[:, None] * present
    numbers = hermite_functions(normal_scores(torch.where(categories[:, None], 0.0, tables.values)))
    if tables.observed is not None:
        numbers = numbers * tables.observed.unsqueeze(-1)
    padded = torch.nn.functional.pad(numbers, (0, width - FUNCTIONS))
    blocks = torch.where(categories[:, None, :, None], blocks, padded)  # (B, N, P, K)

    flat = blocks.flatten(2)  # (B, N, P·K)
    tables_ = (flat.mT @ flat / observations).unflatten(2, (-1, width)).unflatten(1, (-1, width))  # (B, P, K, P, K)
    own = torch.eye(tables_.shape[1], dtype=torch.bool, device=flat.device)
    tables_ = tables_.masked_fill(own[:, None, :, None], 0.0).flatten(3)  # (B, P, K, P·K)
    scores = leading_eigenvectors(tables_ @ tables_.mT, FUNCTIONS)  # (B, P, K, F)
    functions = torch.einsum("bnpk,bpkf->bnpf", blocks, scores)
    return orthogonal(functions * categories[:, None, :, None])


def leading_eigenvectors(matrices: Tensor, count: int) -> Tensor:
    """The leading eigenvectors, roughly, of matrices (..., K, K) without negative eigenvalues.  (..., K, count)

    A high power of a matrix has the leading eigenvector in every column; it is taken from the one with the largest
    entry on the diagonal. No start is drawn, so that reordering rows and columns reorders the answer and no more.
    """
    vectors = []
    for _ in range(count):
        power = matrices
        for _ in range(SQUARINGS):
            size = power.diagonal(dim1=-2, dim2=-1).sum(-1)
            # What rounding leaves of an eigenvalue of zero may have a trace below zero, and would grow without end.
            size = torch.maximum(size, 0.99 * torch.linalg.matrix_norm(power))[..., None, None]
            power = power / size.clamp_min(1e-30)
            power = power @ power
        place = power.diagonal(dim1=-2, dim2=-1).argmax(dim=-1)[..., None, None]
        vector = power.gather(-1, place.expand(*power.shape[:-1], 1))  # (..., K, 1)
        vector = vector / torch.linalg.vector_norm(vector, dim=-2, keepdim=True).clamp_min(1e-30)
        vectors.append(vector)
        value = vector.mT @ matrices @ vector
        matrices = matrices - value * (vector @ vector.mT)
    return torch.cat(vectors, dim=-1)


def orthogonal(functions: Tensor) -> Tensor:
    """Functions (B, N, P, F) with mean 0 and variance 1, each uncorrelated with those before it; zero where nothing is
    left of one.  (B, N, P, F)"""
    done: list[Tensor] = []
    for function in (functions - functions.mean(dim=1, keepdim=True)).unbind(-1):
        size = function.square().mean(dim=1, keepdim=True)
        for earlier in done:
            function = function - (function * earlier).mean(dim=1, keepdim=True) * earlier
        left = function.square().mean(dim=1, keepdim=True)
        keep = left > 1e-4 * size.clamp_min(1e-8)
        done.append(torch.where(keep, function * left.clamp_min(TINY).rsqrt(), 0.0))
    return torch.stack(done, dim=-1)


# Inverses


def inverse_from_factor(factor: Tensor) -> Tensor:
    """The inverse of L Lᵀ, given L.  (..., P, P)

    By a triangular solve: torch.cholesky_inverse handles the matrices of a batch one after the other on a GPU.
    """
    identity = torch.eye(factor.shape[-1], dtype=factor.dtype, device=factor.device)
    inverse: Tensor = torch.linalg.solve_triangular(factor, identity.expand_as(factor), upper=False)
    return inverse.mT @ inverse


def inverse_of_small_factor(matrices: Tensor) -> Tensor:
    """L⁻¹ for matrices L Lᵀ, so small that it is written out entry by entry: there are very many of them.

    (..., F, F)
    """
    size = matrices.shape[-1]
    factor: dict[tuple[int, int], Tensor] = {}
    inverse: dict[tuple[int, int], Tensor] = {}
    for row in range(size):
        for column in range(row + 1):
            rest = matrices[..., row, column]
            for k in range(column):
                rest = rest - factor[row, k] * factor[column, k]
            factor[row, column] = rest.clamp_min(TINY).sqrt() if row == column else rest * inverse[column, column]
            if row == column:
                inverse[row, row] = factor[row, row].reciprocal()
        for column in range(row):
            total = sum((factor[row, k] * inverse[k, column] for k in range(column, row)), torch.zeros_like(rest))
            inverse[row, column] = -total * inverse[row, row]
    nothing = torch.zeros_like(matrices[..., 0, 0])
    rows = [torch.stack([inverse.get((row, column), nothing) for column in range(size)], -1) for row in range(size)]
    return torch.stack(rows, dim=-2)


# Holes


def fill(values: Tensor, observed: Tensor) -> Tensor:
    """The values with their holes predicted from the other variables, linearly.  (B, N, P)

    With Ω the inverse of covariance + ridge, E[x_j | rest] = x_j − (Ω x)_j / Ω_jj. All holes move at once, a part of
    the way.
    """
    holes = ~observed
    filled = values.masked_fill(holes, 0.0)
    identity = FILLING_RIDGE * torch.eye(values.shape[2], device=values.device, dtype=values.dtype)
    for _ in range(FILLING_ROUNDS):
        covariance = filled.mT @ filled / values.shape[1]
        precision = inverse_from_factor(torch.linalg.cholesky_ex(covariance + identity)[0])
        diagonal = precision.diagonal(dim1=-2, dim2=-1)[:, None]
        step = FILLING_STEP * (filled @ precision) / diagonal
        filled = torch.where(holes, filled - step, filled)
    return filled


# Signs


def signs(values: Tensor) -> Tensor:
    """1 or −1 for each column, so that the product has positive skewness.  (B, P) from (B, N, P)

    A symmetric column is turned by what it says of the sizes of the others, E[x_j Σ_k x_k²]; if that is nothing either,
    so that it goes along with the column, among those already turned, that it is most correlated with.
    """
    squares = values.square()
    others = squares.sum(dim=2, keepdim=True) - squares
    coskewness = (values * (others - others.mean(dim=1, keepdim=True))).mean(dim=1)
    return chosen_signs(values.pow(3).mean(dim=1), coskewness, values.mT @ values / values.shape[1])


def chosen_signs(skewness: Tensor, coskewness: Tensor, products: Tensor) -> Tensor:
    """The signs, given E[x_j³] (B, P), E[x_j (Σ_k x_k² − mean)] over k ≠ j (B, P) and E[x_j x_k] (B, P, P).  (B, P)"""
    chosen = torch.where(skewness.abs() > SYMMETRIC, skewness.sign(), 0.0)
    chosen = torch.where((chosen == 0) & (coskewness.abs() > SYMMETRIC * skewness.shape[1]), coskewness.sign(), chosen)
    correlation = products * chosen[:, None]  # (B, P, P), columns that are turned
    strongest = correlation.gather(2, correlation.abs().argmax(dim=2, keepdim=True)).squeeze(2)
    chosen = torch.where(chosen == 0, strongest.sign(), chosen)
    return torch.where(chosen == 0, 1.0, chosen)
