"""What the pairwise encoder is told before it learns anything: fixed statistics of a table, in double precision.

Nearly deterministic relations live in the last digits of a correlation matrix: a conditional variance of 1e-6 is
invisible after one rounding to bfloat16, and a ridge of 0.01 erases it. So correlations, their inverses and regression
residuals are computed here in float64, and handed on in scales that a small network can read (Fisher z, logarithms).

An encoder is fed groups of them, named in its configuration: CHANNELS for cells, STATISTICS for ordered pairs of
variables. A new group is one more entry in a table; the name of a group, once weights have learned from it, keeps its
meaning.
"""

# B tasks, N observations, P variables, R ridge strengths, C channels, S statistics

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from causal_arrow.batches import TableBatch
from causal_arrow.errors import ConfigurationError
from causal_arrow.network.encoders.basis import (
    FUNCTIONS,
    Numbers,
    as_numbers,
    hermite_functions,
    inverse_from_factor,
    inverse_of_small_factor,
    normal_scores,
)
from causal_arrow.storage import slices
from causal_arrow.text import shown

CLIP = 5.0
"""Where z-scores are cut: one wild observation must not drown the rest."""

RIDGES = (0.3, 0.03, 1e-3, 1e-8)
"""Ridge strengths of the partial correlations, from "n is small" to "nothing is hidden"."""

RESIDUAL_RIDGES = (0.03, 1e-3)
"""The ones of RIDGES at which the regression residuals enter the cells."""

BASIS_RIDGES = (0.3, 0.03)
"""Ridge strengths of the partial correlations of blocks of functions."""


def correlation(data: Tensor) -> Tensor:
    """Correlation matrices of standardized tables, in float64.  (..., P, P)"""
    data = data.double()
    products = data.mT @ data
    scale = products.diagonal(dim1=-2, dim2=-1).clamp_min(1e-12).rsqrt()  # (..., P)
    return products * scale.unsqueeze(-1) * scale.unsqueeze(-2)


def precisions(correlations: Tensor) -> Tensor:
    """(correlation + ridge · identity)⁻¹ for each ridge strength, in float64.  (R, ..., P, P)"""
    identity = torch.eye(correlations.shape[-1], dtype=correlations.dtype, device=correlations.device)
    factors, _ = torch.linalg.cholesky_ex(torch.stack([correlations + ridge * identity for ridge in RIDGES]))
    return inverse_from_factor(factors)


def chunks(observations: int, observations_per_chunk: int | None) -> Iterator[slice]:
    """Slices that cover the observations, each of at most `observations_per_chunk`."""
    return slices(observations, observations_per_chunk or observations)


def _association(correlations: Tensor, observations: int) -> list[Tensor]:
    """Fisher z, and the signed logarithm of its t value, of correlations off the diagonal.  2 × (B, P, P)"""
    fisher = correlations.clamp(-1 + 1e-9, 1 - 1e-9).atanh()
    fisher = fisher - torch.diag_embed(fisher.diagonal(dim1=-2, dim2=-1))
    return [fisher, fisher.sign() * (fisher.abs() * observations**0.5).log1p()]


def _from_second_moments(correlations: Tensor, precision: Tensor, observations: int) -> Tensor:
    """Correlations, and for each ridge partial correlations and log conditional variances.  (B, P, P, 2 + 4R)"""
    statistics = _association(correlations, observations)
    for matrix in precision:  # (B, P, P)
        diagonal = matrix.diagonal(dim1=-2, dim2=-1)
        scale = diagonal.rsqrt()
        statistics += _association(-matrix * scale.unsqueeze(-1) * scale.unsqueeze(-2), observations)
        log_variance = -diagonal.log() / 4
        statistics += [
            log_variance.unsqueeze(-1).expand_as(matrix),
            log_variance.unsqueeze(-2).expand_as(matrix),
        ]
    return torch.stack([statistic.float() for statistic in statistics], dim=-1)


def cross_products(channels: Tensor) -> Tensor:
    """Sums over observations of products of powers, and of a tanh, of each channel (B, n, P, C).  (B, 4, C, P, P)"""
    values = channels.permute(0, 3, 2, 1)  # (B, C, P, n)
    squares = values.square()
    left = torch.stack([squares, squares * values, values.tanh(), squares], dim=1)  # (B, 4, C, P, n)
    right = torch.stack([values, values, values, squares], dim=1)
    return left @ right.transpose(-1, -2)


def _cross_moments(measured: Measured) -> Tensor:
    """Third- and fourth-order cross moments and a tanh moment of each channel, both ways.  (B, P, P, 7C)"""
    moments = measured.cross_means.asinh()  # (B, 4, C, P, P)
    both_ways = torch.cat([moments, moments[:, :3].transpose(-1, -2)], dim=1)  # (B, 7, C, P, P)
    return both_ways.flatten(1, 2).permute(0, 2, 3, 1)


class Measured:
    """Standardized tables and what several groups need of them, computed once, when it is first asked for."""

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
        self._channels = channels

    residual_spreads: Sequence[Tensor] | None = None
    """Standard deviations of the residuals over all observations, where there are others than these.  (B, 1, P) each"""

    def nothing(self, features: int) -> Tensor:
        """Statistics of pairs that say nothing.  (B, P, P, features)"""
        return self.values.new_zeros(len(self.values), self.variables, self.variables, features)

    @cached_property
    def scores(self) -> Tensor:
        """Normal scores.  (B, N, P)"""
        return normal_scores(self.values)

    @cached_property
    def correlations(self) -> Tensor:
        """Of the values and of the normal scores, in float64.  (2, B, P, P)"""
        return correlation(torch.stack([self.values, self.scores]))

    @cached_property
    def precision(self) -> Tensor:
        """Of the values and of the normal scores, in float64.  (R, 2, B, P, P)"""
        return precisions(self.correlations)

    @cached_property
    def functions(self) -> Tensor:
        """Up to three orthogonal functions of each variable.  (B, N, P, F)"""
        functions = hermite_functions(self.scores)
        if self.numbers.categories is not None and self.numbers.level_functions is not None:
            functions = torch.where(self.numbers.categories[:, None, :, None], self.numbers.level_functions, functions)
        return functions

    @cached_property
    def cells(self) -> Tensor:
        """The channels of each cell, cut at CLIP.  (B, N, P, C)"""
        channels = [channel for name in self._channels for channel in CHANNELS[name].compute(self)]
        return torch.stack(channels, dim=-1).clamp(-CLIP, CLIP)

    @cached_property
    def cells_with_moments(self) -> Tensor:
        """The channels whose cross moments count.  (B, N, P, ·)"""
        features = [CHANNELS[name].moments for name in self._channels for _ in range(CHANNELS[name].features)]
        if all(features):
            return self.cells
        # No list of places as an index: it would be copied to a GPU, which no captured graph may do.
        return torch.stack([channel for channel, used in zip(self.cells.unbind(-1), features, strict=True) if used], -1)

    @cached_property
    def cross_means(self) -> Tensor:
        """Means over observations of `cross_products`.  (B, 4, C, P, P)"""
        totals: Tensor | float = 0.0
        for chunk in chunks(self.observations, self.observations_per_chunk):
            totals = totals + cross_products(self.cells_with_moments[:, chunk])
        assert isinstance(totals, Tensor)
        return totals / self.observations

    @cached_property
    def function_correlations(self) -> Tensor:
        """Correlations of the functions of all variables.  (B, P·F, P·F)"""
        functions = self.functions.flatten(2)  # (B, N, P·F)
        return functions.mT @ functions / self.observations

    @cached_property
    def joint_shares(self) -> Tensor | None:
        """Shares of the observations in which both are observed, on the diagonal each one; None without holes.

        (B, P, P)
        """
        if self.observed is None:
            return None
        observed = self.observed.float()
        return observed.mT @ observed / self.observations

    @cached_property
    def intervention_sums(self) -> Tensor | None:
        """`sums_where_set` over all observations, None without interventions.  (6, B, P, P)"""
        return None if self.intervened is None else sums_where_set(self.intervened, self.values)


def _residuals(measured: Measured) -> list[Tensor]:
    """Residuals of the regression on all other variables, with standard deviation 1: (Ω x)_j / Ω_jj.  2 × (B, N, P)"""
    residuals = [measured.values.double() @ measured.precision[RIDGES.index(ridge), 0] for ridge in RESIDUAL_RIDGES]
    spreads = measured.residual_spreads or [some.std(dim=1, keepdim=True) for some in residuals]
    return [(some / spread.clamp_min(1e-12)).float() for some, spread in zip(residuals, spreads, strict=True)]


def _sizes(measured: Measured) -> Tensor:
    """How many observations and variables there are, on a logarithmic scale, and which pairs are none.  (B, P, P, 3)"""
    identity = torch.eye(measured.variables, device=measured.values.device).expand(len(measured.values), -1, -1)
    return torch.stack(
        [
            torch.full_like(identity, torch.tensor(measured.observations / 500.0).log().item() / 2),
            torch.full_like(identity, torch.tensor(measured.variables / 30.0).log().item() / 2),
            identity,
        ],
        dim=-1,
    )


def _block_association(matrix: Tensor, observations: int) -> list[Tensor]:
    """The size of the F × F blocks of a matrix (B, P·F, P·F): as it is, and as a logarithm of its squared t values.

    2 × (B, P, P), zero on the diagonal.
    """
    blocks = matrix.unflatten(2, (-1, FUNCTIONS)).unflatten(1, (-1, FUNCTIONS))  # (B, P, F, P, F)
    squared = blocks.square().sum(dim=(2, 4))
    squared = squared - torch.diag_embed(squared.diagonal(dim1=-2, dim2=-1))
    return [squared.clamp_min(0).sqrt(), (squared * observations).log1p() / 2]


def _basis_correlations(measured: Measured) -> Tensor:
    """How much functions of two variables have in common, alone and given those of all others.  (B, P, P, 2 + 2R)

    Partial correlations of blocks: with Ω the inverse of correlation + ridge and L_j the Cholesky factor of its block
    Ω_jj, the size of L_j⁻¹ Ω_jk L_k⁻ᵀ. No rotation of the functions of a variable changes it.
    """
    observations, correlations = measured.observations, measured.function_correlations
    statistics = _block_association(correlations, observations)
    identity = torch.eye(correlations.shape[-1], device=correlations.device)
    for ridge in BASIS_RIDGES:
        precision = inverse_from_factor(torch.linalg.cholesky_ex(correlations + ridge * identity)[0])
        blocks = precision.unflatten(2, (-1, FUNCTIONS)).unflatten(1, (-1, FUNCTIONS))  # (B, P, F, P, F)
        own = torch.diagonal(blocks, dim1=1, dim2=3).permute(0, 3, 1, 2)  # (B, P, F, F)
        whitener = inverse_of_small_factor(own)  # (B, P, F, F)
        whitened = torch.einsum("bpfg,bpgqh,bqih->bpfqi", whitener, blocks, whitener)
        statistics += _block_association(whitened.flatten(3).flatten(1, 2), observations)
    return torch.stack(statistics, dim=-1)


def _from_each_side(of_variable: Tensor) -> list[Tensor]:
    """What is known of each variable (B, P), for pairs: of the first, and of the second.  2 × (B, P, P)"""
    variables = of_variable.shape[1]
    return [of_variable[:, :, None].expand(-1, -1, variables), of_variable[:, None].expand(-1, variables, -1)]


def _kinds(measured: Measured) -> Tensor:
    """Whether each of the two is a category, and how many levels it has, on a logarithmic scale.  (B, P, P, 4)"""
    levels = measured.levels
    if levels is None:
        return measured.nothing(4)
    is_category = (levels > 0).float()
    size = (levels.clamp_min(1).float() / 2).log2() * is_category / 2
    return torch.stack([*_from_each_side(is_category), *_from_each_side(size)], dim=-1)


def _observed_shares(measured: Measured) -> Tensor:
    """The share of holes in the first, in the second, and in either of the two.  (B, P, P, 3)"""
    jointly = measured.joint_shares
    if jointly is None:
        return measured.nothing(3)
    alone = jointly.diagonal(dim1=-2, dim2=-1)
    return torch.stack([*(1 - side for side in _from_each_side(alone)), 1 - jointly], dim=-1)


def sums_where_set(intervened: Tensor, values: Tensor) -> Tensor:
    """Of each variable k, over observations in which it was not set itself: their number, its sum, its sum of squares.

    First where variable j was set, then where it was not.  (6, B, P, P), [j, k]
    """
    was_set = intervened.float()  # (B, n, P)
    free = 1 - was_set
    values = values * free
    return torch.stack([weights.mT @ part for weights in (was_set, free) for part in (free, values, values * values)])


def _intervention_shifts(measured: Measured) -> Tensor:
    """How the second variable moves where the first was set, and the other way round.  (B, P, P, 8)

    Over the observations in which the second was not set itself: how many there are, the change of its mean in standard
    deviations and in standard errors, and the change of its spread, each in a scale that a small network can read.
    """
    sums = measured.intervention_sums
    if sums is None:
        return measured.nothing(8)

    def moments(count: Tensor, total: Tensor, squares: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        mean = total / count.clamp_min(1)
        variance = squares / count.clamp_min(1) - mean.square()
        return count, mean, variance.clamp_min(1e-4)

    count, mean, variance = moments(*sums[:3])
    count_else, mean_else, variance_else = moments(*sums[3:])
    enough = ((count >= 2) & (count_else >= 2)).float()
    error = (variance / count.clamp_min(1) + variance_else / count_else.clamp_min(1)).sqrt()
    shift = (mean - mean_else) * enough
    one_way = [
        count.log1p() / 5,
        shift.clamp(-CLIP, CLIP),
        shift.sign() * (shift.abs() / error).log1p() * enough,
        ((variance / variance_else).log() / 2).clamp(-CLIP, CLIP) * enough,
    ]
    return torch.stack([*one_way, *(statistic.mT for statistic in one_way)], dim=-1)


@dataclass(frozen=True)
class ChannelGroup:
    """Numbers that a cell enters the network with."""

    features: int
    compute: Callable[[Measured], Sequence[Tensor]]  # features × (B, N, P), float32
    moments: bool = True
    """Whether statistics of pairs hold cross moments of it."""


def _mark(measured: Measured, mask: Tensor | None, there: bool) -> Tensor:
    """1 where a mask is `there`, 0 elsewhere and without a mask.  (B, N, P)"""
    return torch.zeros_like(measured.values) if mask is None else (mask == there).float()


@dataclass(frozen=True)
class StatisticGroup:
    """Numbers that an ordered pair of variables enters the network with: so many, and so many for each channel."""

    features: int
    features_per_channel: int
    compute: Callable[[Measured], Tensor]  # (B, P, P, features + features_per_channel · C), float32


_SECOND_MOMENTS = 2 + 4 * len(RIDGES)

CHANNELS: dict[str, ChannelGroup] = {
    "values": ChannelGroup(1, lambda measured: [measured.values]),
    "normal_scores": ChannelGroup(1, lambda measured: [measured.scores]),
    "residuals": ChannelGroup(len(RESIDUAL_RIDGES), _residuals),
    "functions": ChannelGroup(2, lambda measured: measured.functions[..., 1:].unbind(-1), moments=False),
    "holes": ChannelGroup(1, lambda measured: [_mark(measured, measured.observed, there=False)], moments=False),
    "interventions": ChannelGroup(
        1, lambda measured: [_mark(measured, measured.intervened, there=True)], moments=False
    ),
}
"""Groups of cell channels by name."""

STATISTICS: dict[str, StatisticGroup] = {
    "correlations": StatisticGroup(
        _SECOND_MOMENTS,
        0,
        lambda measured: _from_second_moments(
            measured.correlations[0], measured.precision[:, 0], measured.observations
        ),
    ),
    "score_correlations": StatisticGroup(
        _SECOND_MOMENTS,
        0,
        lambda measured: _from_second_moments(
            measured.correlations[1], measured.precision[:, 1], measured.observations
        ),
    ),
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
"""What the weights of version 0.1 are fed, in their order; their files do not say it."""

CHANNELS_OF_ANY_TABLE = (*CHANNELS_OF_0_1, "functions", "holes", "interventions")
STATISTICS_OF_ANY_TABLE = (
    *STATISTICS_OF_0_1,
    "basis_correlations",
    "kinds",
    "observed_shares",
    "intervention_shifts",
)
"""What an encoder is fed that reads categories, missing cells and experiments."""


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


@torch.no_grad()
def describe(
    tables: TableBatch,
    channels: Sequence[str] = CHANNELS_OF_0_1,
    statistics: Sequence[str] = STATISTICS_OF_0_1,
    observations_per_chunk: int | None = None,
    canonical_signs: bool = False,
) -> tuple[Tensor, Tensor]:
    """Cell channels (B, N, P, C) and pair statistics (B, P, P, S) of standardized tables, in float32."""
    return described(Measured(tables, channels, observations_per_chunk, canonical_signs), statistics)


def described(measured: Measured, statistics: Sequence[str]) -> tuple[Tensor, Tensor]:
    """Cell channels (B, N, P, C) and pair statistics (B, P, P, S) of what was measured, in float32."""
    return measured.cells, torch.cat([STATISTICS[name].compute(measured) for name in statistics], dim=-1)
