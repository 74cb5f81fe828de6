"""Columns of any kind as numbers: standardized, a few orthogonal functions of each, holes filled, signs made canonical.

Every variable becomes up to three functions with mean 0 and variance 1, uncorrelated with one another. For numbers they
are Hermite polynomials of the normal score. For a category they are scores of its levels, those that share most with
all other variables: the leading eigenvectors of its cross tables with everything else. Nothing depends on how levels
are named or numbered. The first function of a category stands in for its value wherever a number is needed.

A column and its negative are one variable: each column is turned so that its skewness is positive.
"""

# B tables, N observations, P variables, K levels, F functions

from __future__ import annotations

from dataclasses import dataclass

from causal_arrow.batches import TableBatch
from causal_arrow.network.arrays import Array, functions_for

FUNCTIONS = 3  # functions of each variable; a category has at most one fewer than it has levels
RARE = 3.0
"""Observations that are added to the count of each level, so that a rare level does not get a large score by chance."""

SQUARINGS = 5  # the leading eigenvector is read off the matrix squared this many times: no start has to be drawn
FILLING_ROUNDS, FILLING_RIDGE, FILLING_STEP = 6, 0.1, 0.7
"""Holes are filled by ridge regressions on all other variables, all at once, so often, so far at a time."""

SYMMETRIC = 1e-4  # a column with a smaller skewness counts as symmetric
TINY = 1e-12


# Standardization


def standardized(values: Array, observed: Array | None = None) -> Array:
    """Each variable (B, N, P) with mean 0 and standard deviation 1 (the one with n − 1), in float32; 0 for a constant.

    Only observed values count, and the others become 0. Units never matter: the arithmetic has no lower bound on the
    spread, and keeps the precision of the input before the cast.
    """
    xp = functions_for(values)
    count = values.shape[1]
    if observed is not None:
        values = xp.where(observed, values, 0.0)
        count = xp.total(observed, 1).clip(1)
    # Divided first: squares of very small numbers would vanish, those of very large ones overflow. A constant is then
    # exactly 1 or −1 everywhere, so that its spread is exactly 0.
    largest = xp.largest(abs(values), 1)
    scaled = values / xp.where(largest == 0, 1.0, largest)
    centered = scaled - xp.total(scaled, 1) / count
    if observed is not None:
        centered = xp.where(observed, centered, 0.0)
    less_one = max(count - 1, 1) if isinstance(count, int) else (count - 1).clip(1)
    spread = xp.sqrt(xp.total(centered * centered, 1) / less_one)
    return xp.single(centered / xp.where(spread == 0, 1.0, spread))


def standardized_numbers(tables: TableBatch) -> Array:
    """The values with each number standardized over what was observed of it; categories keep their codes.  (B, N, P)"""
    xp = functions_for(tables.values)
    numbers = standardized(tables.values, tables.observed)
    levels = tables.levels
    return numbers if levels is None else xp.where((levels > 0)[:, None], xp.single(tables.values), numbers)


# Numbers


@dataclass(frozen=True, eq=False)
class Numbers:
    """Tables of any kind as numbers."""

    values: Array  # (B, N, P) standardized numbers, first functions of categories; holes filled
    level_functions: list[Array] | None  # F × (B, N, P) of categories, 0 for numbers and holes; None without categories
    categories: Array | None  # (B, P) bool; None where all are numbers


def as_numbers(tables: TableBatch, canonical_signs: bool) -> Numbers:
    """Standardized tables, whose categories are codes of levels, as numbers."""
    xp = functions_for(tables.values)
    values, functions, categories = tables.values, None, None
    if tables.levels is not None:
        categories = tables.levels > 0
        functions = level_functions(tables)
        values = xp.where(categories[:, None], functions[0], values)
    if tables.observed is not None:
        values = fill(values, tables.observed)
    if canonical_signs:
        values = values * signs(values)[:, None]
        if functions is not None:
            by_function = signs(xp.concatenate(functions, -1)).reshape(-1, FUNCTIONS, values.shape[2])  # (B, F, P)
            functions = [function * by_function[:, None, index] for index, function in enumerate(functions)]
    return Numbers(values, functions, categories)


def normal_scores(data: Array) -> Array:
    """Ranks of each variable's values, ties shared, as normal quantiles with standard deviation 1.  (B, N, P)"""
    xp = functions_for(data)
    scores = xp.normal_quantiles(xp.twice_ranks(data.swapaxes(1, 2)), data)  # (B, P, N)
    return (scores / xp.std(scores, -1).clip(1e-6)).swapaxes(1, 2)


# Functions


def hermite_functions(scores: Array) -> list[Array]:
    """The first three Hermite polynomials of normal scores, made orthogonal.  F × (B, N, P)"""
    return orthogonal(hermite_polynomials(scores))


def hermite_polynomials(scores: Array) -> list[Array]:
    """x, x² − 1 and x³ − 3x.  F × (...)"""
    squares = scores * scores
    return [scores, squares - 1, scores * (squares - 3)]


def level_functions(tables: TableBatch) -> list[Array]:
    """For each category the scores of its levels that share most with all other variables.  F × (B, N, P)

    With p_l the share of level l, a category is written as (1[x = l] − p_l) / √p_l for each level, a number as its
    Hermite functions. The products of these blocks, averaged over observations, are the normalized cross tables; the
    sum over all other variables of cross table times its transpose is a K × K matrix whose leading eigenvectors give
    the scores.
    """
    assert tables.levels is not None
    xp = functions_for(tables.values)
    categories = tables.levels > 0  # (B, P)
    width = max(FUNCTIONS, tables.max_levels)
    observations = tables.observations
    is_category = categories[:, None]
    codes = xp.where(is_category, tables.values, -1.0)
    if tables.observed is not None:
        codes = xp.where(tables.observed, codes, -1.0)
    indicators = xp.single(codes.round()[..., None] == xp.arange(width, codes))  # (B, N, P, K)
    counts = indicators.sum(1)  # (B, P, K)
    seen = counts.sum(-1)[..., None].clip(1)
    shares = counts / seen
    # Rare levels are shrunk: their deviations are divided by more than the root of their share.
    deviation = xp.sqrt((counts + RARE) / seen)
    blocks = (indicators - shares[:, None]) / deviation[:, None] * (codes >= 0)[..., None]
    numbers = xp.stack(hermite_functions(normal_scores(xp.where(is_category, 0.0, tables.values))), -1)
    if tables.observed is not None:
        numbers = numbers * tables.observed[..., None]
    blocks = xp.where(is_category[..., None], blocks, xp.padded(numbers, width))  # (B, N, P, K)

    shape = (*blocks.shape[2:], *blocks.shape[2:])  # P, K, P, K
    flat = blocks.reshape(*blocks.shape[:2], -1)  # (B, N, P·K)
    products = (flat.swapaxes(1, 2) @ flat / observations).reshape(-1, *shape)
    own = xp.eye(shape[0], flat)[:, None, :, None] > 0
    products = xp.where(own, 0.0, products).reshape(-1, *shape[:2], shape[0] * width)  # (B, P, K, P·K)
    scores = leading_eigenvectors(products @ products.swapaxes(-1, -2), FUNCTIONS)  # (B, P, K, F)
    functions = xp.permute(xp.permute(blocks, (0, 2, 1, 3)) @ scores, (0, 2, 1, 3))  # (B, N, P, F)
    return orthogonal([functions[..., index] * is_category for index in range(FUNCTIONS)])


def leading_eigenvectors(matrices: Array, count: int) -> Array:
    """The leading eigenvectors, roughly, of matrices (..., K, K) without negative eigenvalues.  (..., K, count)

    A high power of a matrix has the leading eigenvector in every column. No start is drawn, so that reordering rows and
    columns reorders the answer and no more.
    """
    xp = functions_for(matrices)
    vectors = []
    for _ in range(count):
        power = matrices
        for _ in range(SQUARINGS):
            size = xp.diagonal(power).sum(-1)[..., None, None]
            # What rounding leaves of an eigenvalue of zero may have a trace below zero, and would grow without end.
            size = xp.maximum(size, 0.99 * xp.norm(xp.norm(power, -1), -2))
            power = power / size.clip(1e-30)
            power = power @ power
        index = xp.diagonal(power).argmax(-1)[..., None, None]
        vector = xp.take_along_axis(power, xp.broadcast_to(index, (*power.shape[:-1], 1)), -1)  # (..., K, 1)
        vector = vector / xp.norm(vector, -2).clip(1e-30)
        vectors.append(vector)
        value = vector.swapaxes(-1, -2) @ matrices @ vector
        matrices = matrices - value * (vector @ vector.swapaxes(-1, -2))
    return xp.concatenate(vectors, -1)


def orthogonal(functions: list[Array]) -> list[Array]:
    """Functions F × (B, N, P) with mean 0 and variance 1, each uncorrelated with those before it; zero where nothing is
    left of one.  F × (B, N, P)"""
    xp = functions_for(functions[0])
    done: list[Array] = []
    for function in functions:
        function = function - xp.mean(function, 1)
        size = xp.mean(function * function, 1)
        for earlier in done:
            function = function - xp.mean(function * earlier, 1) * earlier
        left = xp.mean(function * function, 1)
        scale = xp.where(left > 1e-4 * size.clip(1e-8), 1 / xp.sqrt(left.clip(TINY)), 0.0)
        done.append(function * scale)
    return done


def inverse_of_small_factor(matrices: Array) -> Array:
    """L⁻¹ for very many matrices L Lᵀ, so small that it is written out entry by entry.  (..., F, F)"""
    xp = functions_for(matrices)
    size = matrices.shape[-1]
    factor: dict[tuple[int, int], Array] = {}
    inverse: dict[tuple[int, int], Array] = {}
    for row in range(size):
        for column in range(row + 1):
            rest = matrices[..., row, column]
            for k in range(column):
                rest = rest - factor[row, k] * factor[column, k]
            factor[row, column] = xp.sqrt(rest.clip(TINY)) if row == column else rest * inverse[column, column]
            if row == column:
                inverse[row, row] = 1 / factor[row, row]
        for column in range(row):
            total = sum(factor[row, k] * inverse[k, column] for k in range(column, row))
            inverse[row, column] = -total * inverse[row, row]
    nothing = xp.zeros(matrices.shape[:-2], matrices)
    rows = [xp.stack([inverse.get((row, column), nothing) for column in range(size)], -1) for row in range(size)]
    return xp.stack(rows, -2)


# Holes


def fill(values: Array, observed: Array) -> Array:
    """The values with their holes predicted from the other variables, linearly.  (B, N, P)

    With Ω the inverse of covariance + ridge, E[x_j | rest] = x_j − (Ω x)_j / Ω_jj; all holes move part of the way.
    """
    xp = functions_for(values)
    filled = xp.where(observed, values, 0.0)
    ridge = FILLING_RIDGE * xp.eye(values.shape[2], values)
    for _ in range(FILLING_ROUNDS):
        covariance = filled.swapaxes(1, 2) @ filled / values.shape[1]
        precision = xp.inverse(covariance + ridge)
        step = FILLING_STEP * (filled @ precision) / xp.diagonal(precision)[:, None]
        filled = xp.where(observed, filled, filled - step)
    return filled


# Signs


def signs(values: Array) -> Array:
    """1 or −1 for each column, so that the product has positive skewness.  (B, P) from (B, N, P)

    A symmetric column is turned by its covariance with the sizes of the others, E[x_j Σ_k x_k²]; if that is nothing
    either, so that it goes along with the column, among those already turned, that it is most correlated with.
    """
    xp = functions_for(values)
    squares = values * values
    others = squares.sum(2)[..., None] - squares
    coskewness = xp.mean(values * (others - xp.mean(others, 1)), 1)[:, 0]
    products = values.swapaxes(1, 2) @ values / values.shape[1]
    return chosen_signs(xp.mean(squares * values, 1)[:, 0], coskewness, products)


def chosen_signs(skewness: Array, coskewness: Array, products: Array) -> Array:
    """The signs, given E[x_j³] (B, P), E[x_j (Σ_k x_k² − mean)] over k ≠ j (B, P) and E[x_j x_k] (B, P, P).  (B, P)"""
    xp = functions_for(skewness)
    chosen = xp.where(abs(skewness) > SYMMETRIC, xp.sign(skewness), 0.0)
    by_others = (chosen == 0) & (abs(coskewness) > SYMMETRIC * skewness.shape[1])
    chosen = xp.where(by_others, xp.sign(coskewness), chosen)
    correlation = products * chosen[:, None]  # (B, P, P), columns that are turned
    strongest = xp.take_along_axis(correlation, abs(correlation).argmax(2)[..., None], 2)[..., 0]
    chosen = xp.where(chosen == 0, xp.sign(strongest), chosen)
    return xp.where(chosen == 0, 1.0, chosen)
