"""The fixed statistics of a table that the pairwise encoder is fed, in double precision where digits matter.

Nearly deterministic relations live in the last digits of a correlation matrix: a conditional variance of 1e-6 is
invisible after one rounding to bfloat16, and a ridge of 0.01 erases it. So correlations, their inverses and regression
residuals are computed here in float64, and passed on in scales that a small network can read (Fisher z, logarithms).

An encoder is fed groups of them, named in its configuration: CHANNELS for cells, STATISTICS for ordered pairs of
variables. The name of a group, once weights have learned from it, keeps its meaning.
"""

# B tables, N observations, P variables, F functions, R ridge strengths, C channels, S statistics

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from causal_arrow.batches import TableBatch
from causal_arrow.errors import ConfigurationError
from causal_arrow.network.arrays import Array, functions_for
from causal_arrow.network.basis import (
    FUNCTIONS,
    Numbers,
    as_numbers,
    hermite_functions,
    inverse_of_small_factor,
    normal_scores,
)
from causal_arrow.storage import slices
from causal_arrow.text import shown

CLIP = 5.0  # limit of z-scores: one wild observation must not drown the rest
RIDGES = (0.3, 0.03, 1e-3, 1e-8)
"""Ridge strengths of the partial correlations, from "n is small" to "nothing is hidden"."""

RESIDUAL_RIDGES = (0.03, 1e-3)  # the ones of RIDGES at which the regression residuals enter the cells
BASIS_RIDGES = (0.3, 0.03)  # ridge strengths of the partial correlations of blocks of functions


def correlation(products: Array) -> Array:
    """The correlation matrices that belong to sums of products of standardized variables.  (..., P, P)"""
    xp = functions_for(products)
    scale = 1 / xp.sqrt(xp.diagonal(products).clip(1e-12))  # (..., P)
    return products * scale[..., None] * scale[..., None, :]


def precisions(correlations: Array) -> Array:
    """(correlation + ridge · identity)⁻¹ for each ridge strength.  (R, ..., P, P)"""
    xp = functions_for(correlations)
    identity = xp.eye(correlations.shape[-1], correlations)
    return xp.inverse(xp.stack([correlations + ridge * identity for ridge in RIDGES], 0))


def without_diagonal(matrices: Array) -> Array:
    """Square matrices with zeros on the diagonal.  (..., P, P)"""
    xp = functions_for(matrices)
    return xp.where(xp.eye(matrices.shape[-1], matrices) > 0, 0.0, matrices)


def _association(correlations: Array, observations: int) -> list[Array]:
    """Fisher z, and the signed logarithm of its t value, of correlations off the diagonal.  2 × (B, P, P)"""
    xp = functions_for(correlations)
    fisher = without_diagonal(xp.arctanh(correlations.clip(-1 + 1e-9, 1 - 1e-9)))
    return [fisher, xp.sign(fisher) * xp.log1p(abs(fisher) * observations**0.5)]


def _from_second_moments(correlations: Array, precision: Array, observations: int) -> Array:
    """Correlations, and for each ridge partial correlations and log conditional variances.  (B, 2 + 4R, P, P)"""
    xp = functions_for(correlations)
    statistics = _association(correlations, observations)
    for matrix in precision:  # (B, P, P)
        diagonal = xp.diagonal(matrix)
        scale = 1 / xp.sqrt(diagonal)
        statistics += _association(-matrix * scale[..., None] * scale[..., None, :], observations)
        statistics += _from_each_side(-xp.log(diagonal) / 4)
    return xp.stack([xp.single(statistic) for statistic in statistics], 1)


def cross_products(channels: Array) -> Array:
    """Sums over observations of products of powers, and of a tanh, of each channel (B, C, N, P).  (B, 4, C, P, P)"""
    xp = functions_for(channels)
    squares = channels * channels
    transposed = squares.swapaxes(-1, -2)
    return xp.stack(
        [
            transposed @ channels,
            (squares * channels).swapaxes(-1, -2) @ channels,
            xp.tanh(channels).swapaxes(-1, -2) @ channels,
            transposed @ squares,
        ],
        1,
    )


def _cross_moments(measured: Measured) -> Array:
    """Third- and fourth-order cross moments and a tanh moment of each channel, both ways.  (B, 7C, P, P)"""
    xp = functions_for(measured.cross_means)
    moments = xp.arcsinh(measured.cross_means)  # (B, 4, C, P, P)
    both_ways = xp.concatenate([moments, moments[:, :3].swapaxes(-1, -2)], 1)  # (B, 7, C, P, P)
    return both_ways.reshape(len(moments), -1, *moments.shape[-2:])


class Measured:
    """Standardized tables, and what several groups need of them, computed once, when first asked for."""

    def __init__(
        self,
        tables: TableBatch,
        channels: Sequence[str],
        observations_per_chunk: int | None = None,
        canonical_signs: bool = False,
    ) -> None:
        self.observed, self.intervened, self.levels = tables.observed, tables.intervened, tables.levels
        self.observations, self.variables = tables.observations, tables.variables
        self.numbers: Numbers = as_numbers(tables, canonical_signs)
        self.values = self.numbers.values  # (B, N, P)
        self.observations_per_chunk = observations_per_chunk
        self.channels = channels

    residual_spreads: Sequence[Array] | None = None
    """Standard deviations of the residuals over all observations, if these are only some of them.  (B, 1, P) each"""

    def nothing(self, features: int) -> Array:
        """Zeros for statistics of a part that the table does not have.  (B, features, P, P)"""
        shape = (len(self.values), features, self.variables, self.variables)
        return functions_for(self.values).zeros(shape, self.values)

    @cached_property
    def scores(self) -> Array:
        """Normal scores.  (B, N, P)"""
        return normal_scores(self.values)

    @cached_property
    def correlations(self) -> Array:
        """Correlations of the values and of the normal scores, in float64.  (2, B, P, P)"""
        xp = functions_for(self.values)
        data = xp.double(xp.stack([self.values, self.scores], 0))
        return correlation(data.swapaxes(-1, -2) @ data)

    @cached_property
    def precision(self) -> Array:
        """Inverse correlations of the values and of the normal scores, in float64.  (R, 2, B, P, P)"""
        return precisions(self.correlations)

    @cached_property
    def functions(self) -> list[Array]:
        """Up to three orthogonal functions of each variable.  F × (B, N, P)"""
        functions, of_levels, categories = (
            hermite_functions(self.scores), self.numbers.level_functions, self.numbers.categories,
        )  # fmt: skip
        if of_levels is None or categories is None:
            return functions
        where = functions_for(self.values).where
        return [where(categories[:, None], *both) for both in zip(of_levels, functions, strict=True)]

    @cached_property
    def cells(self) -> Array:
        """The channels of each cell, cut at CLIP.  (B, C, N, P)"""
        channels = [channel for name in self.channels for channel in CHANNELS[name].compute(self)]
        xp = functions_for(self.values)
        return xp.single(xp.stack(channels, 1)).clip(-CLIP, CLIP)

    @cached_property
    def cells_with_moments(self) -> Array:
        """The channels whose cross moments count.  (B, ·, N, P)"""
        used = [CHANNELS[name].moments for name in self.channels for _ in range(CHANNELS[name].features)]
        if all(used[: sum(used)]):
            return self.cells[:, : sum(used)]
        # No list of indices: it would be copied to a GPU, which no captured graph may do.
        return functions_for(self.cells).stack([self.cells[:, index] for index, of in enumerate(used) if of], 1)

    @cached_property
    def cross_means(self) -> Array:
        """Means over observations of `cross_products`.  (B, 4, C, P, P)"""
        parts = slices(self.observations, self.observations_per_chunk or self.observations)
        return sum(cross_products(self.cells_with_moments[:, :, part]) for part in parts) / self.observations

    @cached_property
    def function_correlations(self) -> Array:
        """Correlations of the functions of all variables.  (B, F·P, F·P)"""
        functions = functions_for(self.values).concatenate(self.functions, -1)  # (B, N, F·P)
        return functions.swapaxes(1, 2) @ functions / self.observations

    @cached_property
    def joint_shares(self) -> Array | None:
        """Shares of the observations in which both are observed; None without holes.  (B, P, P)"""
        if self.observed is None:
            return None
        observed = functions_for(self.values).single(self.observed)
        return observed.swapaxes(1, 2) @ observed / self.observations

    @cached_property
    def intervention_sums(self) -> Array | None:
        """`sums_by_intervention` over all observations, None without interventions.  (6, B, P, P)"""
        return None if self.intervened is None else sums_by_intervention(self.intervened, self.values)


def _residuals(measured: Measured) -> list[Array]:
    """Residuals of the regression on all other variables, with standard deviation 1: (Ω x)_j / Ω_jj.  2 × (B, N, P)"""
    xp = functions_for(measured.values)
    values = xp.double(measured.values)
    residuals = [values @ measured.precision[RIDGES.index(ridge), 0] for ridge in RESIDUAL_RIDGES]
    spreads = measured.residual_spreads or [xp.std(some, 1) for some in residuals]
    return [xp.single(some / spread.clip(1e-12)) for some, spread in zip(residuals, spreads, strict=True)]


def _sizes(measured: Measured) -> Array:
    """The numbers of observations and of variables, on a logarithmic scale, and which pairs are none.  (B, 3, P, P)"""
    xp, variables = functions_for(measured.values), measured.variables
    identity = xp.eye(variables, measured.values)
    sizes = math.log(measured.observations / 500.0) / 2, math.log(variables / 30.0) / 2
    all_sizes = xp.stack([*(0 * identity + size for size in sizes), identity], 0)
    return xp.broadcast_to(all_sizes, (len(measured.values), 3, variables, variables))


def _block_association(matrix: Array, observations: int) -> list[Array]:
    """The size of each pair's block in a matrix (B, F·P, F·P), and the logarithm of its squared t.  2 × (B, P, P)"""
    xp = functions_for(matrix)
    variables = matrix.shape[-1] // FUNCTIONS
    squares = (matrix * matrix).reshape(-1, FUNCTIONS, variables, FUNCTIONS, variables)
    squared = without_diagonal(squares.sum(3).sum(1)).clip(0)
    return [xp.sqrt(squared), xp.log1p(squared * observations) / 2]


def _basis_correlations(measured: Measured) -> Array:
    """Correlations of functions of two variables, alone and given those of all others.  (B, 2 + 2R, P, P)

    The latter are sizes of L_j⁻¹ Ω_jk L_k⁻ᵀ, with Ω the inverse of correlation + ridge and L_j the Cholesky factor of
    its block Ω_jj. No rotation of the functions of a variable changes them.
    """
    observations, correlations = measured.observations, measured.function_correlations
    xp, size = functions_for(correlations), correlations.shape[-1]
    statistics = _block_association(correlations, observations)
    identity = xp.eye(size, correlations)
    for ridge in BASIS_RIDGES:
        precision = xp.inverse(correlations + ridge * identity)
        blocks = precision.reshape(-1, FUNCTIONS, size // FUNCTIONS, FUNCTIONS, size // FUNCTIONS)
        rows = [[xp.diagonal(blocks[:, f, :, g]) for g in range(FUNCTIONS)] for f in range(FUNCTIONS)]  # (B, P) each
        own = xp.stack([xp.stack(row, -1) for row in rows], -2)  # (B, P, F, F)
        whitener = inverse_of_small_factor(own)  # (B, P, F, F), lower triangles
        whitened = _times_each(whitener, _times_each(whitener, precision).swapaxes(1, 2))
        statistics += _block_association(whitened, observations)
    return xp.stack(statistics, 1)


def _times_each(triangles: Array, matrix: Array) -> Array:
    """The rows of each variable in a matrix (B, F·P, M), times the triangle (B, P, F, F) of that variable."""
    rows = matrix.reshape(len(matrix), FUNCTIONS, -1, matrix.shape[-1])  # (B, F, P, M)
    products = [sum(triangles[..., f, g, None] * rows[:, g] for g in range(f + 1)) for f in range(FUNCTIONS)]
    return functions_for(matrix).concatenate(products, 1)


def _from_each_side(of_variable: Array) -> list[Array]:
    """A number of each variable (B, P), for pairs: that of the first, and that of the second.  2 × (B, P, P)"""
    xp, shape = functions_for(of_variable), (*of_variable.shape, of_variable.shape[-1])
    return [xp.broadcast_to(of_variable[..., None], shape), xp.broadcast_to(of_variable[..., None, :], shape)]


def _kinds(measured: Measured) -> Array:
    """Whether each of the two is a category, and how many levels it has, on a logarithmic scale.  (B, 4, P, P)"""
    levels = measured.levels
    if levels is None:
        return measured.nothing(4)
    xp = functions_for(measured.values)
    is_category = xp.single(levels > 0)
    size = xp.log2(xp.single(levels.clip(1)) / 2) * is_category / 2
    return xp.stack([*_from_each_side(is_category), *_from_each_side(size)], 1)


def _observed_shares(measured: Measured) -> Array:
    """The share of holes in the first, in the second, and in either of the two.  (B, 3, P, P)"""
    jointly = measured.joint_shares
    if jointly is None:
        return measured.nothing(3)
    xp = functions_for(jointly)
    return xp.stack([*(1 - side for side in _from_each_side(xp.diagonal(jointly))), 1 - jointly], 1)


def sums_by_intervention(intervened: Array, values: Array) -> Array:
    """For each variable k, over observations that did not intervene on it: their number, its sum, its sum of squares.

    First where variable j was intervened on, then where it was not.  (6, B, P, P), [j, k]
    """
    xp = functions_for(values)
    there = xp.single(intervened)  # (B, N, P)
    free = 1 - there
    values = values * free
    parts = (free, values, values * values)
    return xp.stack([weights.swapaxes(-1, -2) @ part for weights in (there, free) for part in parts], 0)


def _intervention_shifts(measured: Measured) -> Array:
    """Shifts of the second variable where the first was intervened on, and the other way round.  (B, 8, P, P)

    Over the observations that did not intervene on the second: how many there are, the change of its mean in standard
    deviations and in standard errors, and the change of its spread.
    """
    sums = measured.intervention_sums
    if sums is None:
        return measured.nothing(8)
    xp = functions_for(sums)

    def moments(count: Array, total: Array, squares: Array) -> tuple[Array, Array, Array]:
        mean = total / count.clip(1)
        return count, mean, (squares / count.clip(1) - mean * mean).clip(1e-4)

    count, mean, variance = moments(*sums[:3])
    count_else, mean_else, variance_else = moments(*sums[3:])
    enough = xp.single((count >= 2) & (count_else >= 2))
    error = xp.sqrt(variance / count.clip(1) + variance_else / count_else.clip(1))
    shift = (mean - mean_else) * enough
    one_way = [
        xp.log1p(count) / 5,
        shift.clip(-CLIP, CLIP),
        xp.sign(shift) * xp.log1p(abs(shift) / error) * enough,
        (xp.log(variance / variance_else) / 2).clip(-CLIP, CLIP) * enough,
    ]
    return xp.stack([*one_way, *(statistic.swapaxes(-1, -2) for statistic in one_way)], 1)


@dataclass(frozen=True)
class ChannelGroup:
    """Numbers that a cell enters the network with."""

    features: int
    compute: Callable[[Measured], Sequence[Array]]  # features × (B, N, P), float32
    moments: bool = True
    """Whether its cross moments are among the statistics of pairs."""


def _mark(measured: Measured, mask: Array | None, there: bool) -> Array:
    """1 where a mask is `there`, 0 elsewhere and without a mask.  (B, N, P)"""
    xp = functions_for(measured.values)
    return xp.zeros(measured.values.shape, measured.values) if mask is None else xp.single(mask == there)


@dataclass(frozen=True)
class StatisticGroup:
    """Numbers that an ordered pair of variables enters the network with: so many, and so many for each channel."""

    features: int
    features_per_channel: int
    compute: Callable[[Measured], Array]  # (B, features + features_per_channel · C, P, P), float32


def _second_moments(which: int) -> StatisticGroup:
    """Statistics of the second moments of the values (0), or of the normal scores (1)."""
    return StatisticGroup(
        2 + 4 * len(RIDGES),
        0,
        lambda measured: _from_second_moments(
            measured.correlations[which], measured.precision[:, which], measured.observations
        ),
    )


CHANNELS: dict[str, ChannelGroup] = {
    "values": ChannelGroup(1, lambda measured: [measured.values]),
    "normal_scores": ChannelGroup(1, lambda measured: [measured.scores]),
    "residuals": ChannelGroup(len(RESIDUAL_RIDGES), _residuals),
    "functions": ChannelGroup(FUNCTIONS - 1, lambda measured: measured.functions[1:], moments=False),
    "holes": ChannelGroup(1, lambda measured: [_mark(measured, measured.observed, there=False)], moments=False),
    "interventions": ChannelGroup(
        1, lambda measured: [_mark(measured, measured.intervened, there=True)], moments=False
    ),
}
"""Groups of cell channels by name."""

STATISTICS: dict[str, StatisticGroup] = {
    "correlations": _second_moments(0),
    "score_correlations": _second_moments(1),
    "sizes": StatisticGroup(3, 0, _sizes),
    "cross_moments": StatisticGroup(0, 7, _cross_moments),
    "basis_correlations": StatisticGroup(2 + 2 * len(BASIS_RIDGES), 0, _basis_correlations),
    "kinds": StatisticGroup(4, 0, _kinds),
    "observed_shares": StatisticGroup(3, 0, _observed_shares),
    "intervention_shifts": StatisticGroup(8, 0, _intervention_shifts),
}
"""Groups of pair statistics by name."""

CHANNELS_OF_0_1 = ("values", "normal_scores", "residuals")
STATISTICS_OF_0_1 = ("correlations", "score_correlations", "sizes", "cross_moments")
"""Inputs of the weights of version 0.1, in order; their files do not list them."""

CHANNELS_OF_ANY_TABLE, STATISTICS_OF_ANY_TABLE = tuple(CHANNELS), tuple(STATISTICS)
"""The inputs of an encoder that reads categories, missing cells and experiments."""


INPUTS_OF_PARTS = {
    "levels": {"functions", "basis_correlations", "kinds"},
    "observed": {"holes", "observed_shares"},
    "intervened": {"interventions", "intervention_shifts"},
}
"""The inputs without which an encoder would overlook a part of a table."""


def parts_read(inputs: Sequence[str]) -> frozenset[str]:
    """The parts of a table, besides its values, that an encoder with these inputs reads."""
    return frozenset(part for part, needed in INPUTS_OF_PARTS.items() if needed <= set(inputs))


def check_groups(setting: str, names: Any, table: Mapping[str, object]) -> tuple[str, ...]:
    """The names of groups as a configuration has them, each known and there once; a list becomes a tuple."""
    if not isinstance(names, (list, tuple)) or not names or not all(isinstance(name, str) for name in names):
        raise ConfigurationError(f"Expected some of {', '.join(table)} for {setting}, got {shown(names)}.")
    if unknown := [name for name in names if name not in table]:
        raise ConfigurationError(f"Unknown name {unknown[0]!r} in {setting}: expected some of {', '.join(table)}.")
    if len(set(names)) < len(names):
        raise ConfigurationError(f"Expected each name once in {setting}, got {shown(names)}.")
    return tuple(names)


def channel_names(channels: Sequence[str], with_moments: bool = False) -> list[str]:
    """A name for each channel of a cell, in their order, or for those with cross moments.  (C,)"""
    groups = [group for group in channels if CHANNELS[group].moments or not with_moments]
    return [f"{group} {index}" for group in groups for index in range(CHANNELS[group].features)]


def statistic_names(channels: Sequence[str], statistics: Sequence[str]) -> list[str]:
    """A name for each statistic of a pair, in their order.  (S,)"""
    names = []
    for group in statistics:
        names += [f"{group} {index}" for index in range(STATISTICS[group].features)]
        for index in range(STATISTICS[group].features_per_channel):
            names += [f"{group} {index} of {channel}" for channel in channel_names(channels, with_moments=True)]
    return names


def described(measured: Measured, statistics: Sequence[str]) -> tuple[Array, Array]:
    """The channels of all cells (B, C, N, P) and the statistics of all pairs (B, S, P, P), in float32."""
    xp = functions_for(measured.values)
    return measured.cells, xp.concatenate([STATISTICS[name].compute(measured) for name in statistics], 1)
