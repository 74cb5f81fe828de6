"""What the pairwise encoder is told before it learns anything: fixed statistics of a table, in double precision.

Nearly deterministic relations live in the last digits of a correlation matrix: a conditional variance of 1e-6 is
invisible after one rounding to bfloat16, and a ridge of 0.01 erases it. So correlations, their inverses and regression
residuals are computed here in float64, and handed on in scales that a small network can read (Fisher z, logarithms).
"""

# B tasks, N observations, P variables, R ridge strengths, C channels, S statistics

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import torch
from torch import Tensor

CLIP = 5.0
"""Where z-scores are cut: one wild observation must not drown the rest."""

RIDGES = (0.3, 0.03, 1e-3, 1e-8)
"""Ridge strengths of the partial correlations, from "n is small" to "nothing is hidden"."""

RESIDUAL_RIDGES = (0.03, 1e-3)
"""The ones of RIDGES at which the regression residuals enter the cells."""

CHANNELS = 2 + len(RESIDUAL_RIDGES)
"""Channels of a cell: clipped z-score, normal score, residuals of the regression on all other variables."""

_MOMENTS = 7
STATISTICS = 2 * (2 + len(RIDGES) * 4) + CHANNELS * _MOMENTS + 3
"""Statistics of an ordered pair of variables."""


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
    inverses: Tensor = torch.linalg.solve_triangular(factors, identity.expand_as(factors), upper=False)
    return inverses.mT @ inverses


def cell_channels(data: Tensor, scores: Tensor, precision: Tensor) -> Tensor:
    """The numbers a cell enters the network with.  (B, N, P, C)

    `precision` (R, B, P, P) is that of the raw values: residual_j = (Ω x)_j / Ω_jj, here to a standard deviation of 1.
    """
    channels = [data, scores]
    for ridge in RESIDUAL_RIDGES:
        residuals = data.double() @ precision[RIDGES.index(ridge)]
        channels.append((residuals / residuals.std(dim=1, keepdim=True).clamp_min(1e-12)).float())
    return torch.stack(channels, dim=-1).clamp(-CLIP, CLIP)


def chunks(observations: int, observations_per_chunk: int | None) -> Iterator[slice]:
    """Slices that cover the observations, each of at most `observations_per_chunk`."""
    step = observations_per_chunk or observations
    edges = [*range(0, observations, step), observations]
    return (slice(start, stop) for start, stop in pairwise(edges))


def _association(correlations: Tensor, observations: int) -> list[Tensor]:
    """Fisher z, and the signed logarithm of its t value, of correlations off the diagonal.  2 × (B, P, P)"""
    fisher = correlations.clamp(-1 + 1e-9, 1 - 1e-9).atanh()
    fisher = fisher - torch.diag_embed(fisher.diagonal(dim1=-2, dim2=-1))
    return [fisher, fisher.sign() * (fisher.abs() * observations**0.5).log1p()]


def _from_second_moments(correlations: Tensor, precision: Tensor, observations: int) -> list[Tensor]:
    """Correlations, and for each ridge partial correlations and log conditional variances.  (2 + 4R) × (B, P, P)"""
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
    return statistics


def _cross_moments(channels: Tensor, observations_per_chunk: int | None) -> Tensor:
    """Third- and fourth-order cross moments and a tanh moment of each channel, both ways.  (B, P, P, 7C)"""
    observations = channels.shape[1]
    totals: Tensor | float = 0.0
    for chunk in chunks(observations, observations_per_chunk):
        values = channels[:, chunk].permute(0, 3, 2, 1)  # (B, C, P, n)
        squares = values.square()
        left = torch.stack([squares, squares * values, values.tanh(), squares], dim=1)  # (B, 4, C, P, n)
        right = torch.stack([values, values, values, squares], dim=1)
        totals = totals + left @ right.transpose(-1, -2)  # (B, 4, C, P, P)
    assert isinstance(totals, Tensor)
    moments = (totals / observations).asinh()
    both_ways = torch.cat([moments, moments[:, :3].transpose(-1, -2)], dim=1)  # (B, 7, C, P, P)
    return both_ways.flatten(1, 2).permute(0, 2, 3, 1)


@torch.no_grad()
def describe(data: Tensor, observations_per_chunk: int | None = None) -> tuple[Tensor, Tensor]:
    """Cell channels (B, N, P, C) and pair statistics (B, P, P, S) of standardized tables (B, N, P), in float32."""
    observations, variables = data.shape[1:]
    scores = normal_scores(data)
    statistics: list[Tensor] = []
    both = torch.stack([data, scores])  # (2, B, N, P)
    correlations = correlation(both)
    precision = precisions(correlations)  # (R, 2, B, P, P)
    for kind in range(len(both)):
        statistics += _from_second_moments(correlations[kind], precision[:, kind], observations)
    channels = cell_channels(data, scores, precision[:, 0])
    identity = torch.eye(variables, device=data.device).expand_as(statistics[0])
    constants = [
        torch.full_like(identity, torch.tensor(observations / 500.0).log().item() / 2),
        torch.full_like(identity, torch.tensor(variables / 30.0).log().item() / 2),
        identity,
    ]
    second = torch.stack([*(statistic.float() for statistic in statistics), *constants], dim=-1)
    moments = _cross_moments(channels, observations_per_chunk)
    return channels, torch.cat([second, moments], dim=-1)
