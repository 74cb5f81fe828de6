"""The noise of structural equations: named laws, drawn for many variables at once and standardized.

A law turns two uniform numbers, its *dials*, into its parameters and draws one row of noise for each pair of dials.
Where a law is placed and how wide it is never matters: a row is standardized here, and scaled to its variable later.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

# (R, 2) dials in [0, 1), N observations, generator -> (R, N) noise
NoiseLaw = Callable[[Tensor, int, torch.Generator], Tensor]

# Rows below this variance count as constant: far below any row we draw, far above what float32 cannot square.
TINY = 1e-20


def standard_gamma(shape: Tensor, generator: torch.Generator) -> Tensor:
    """Gamma(shape, 1) draws, one for each entry of `shape`."""
    # The only gamma sampler in torch that takes a generator; torch.distributions calls it without one.
    return torch._standard_gamma(shape, generator=generator)


def beta(alpha: Tensor, beta: Tensor, generator: torch.Generator) -> Tensor:
    """Beta(alpha, beta) draws, one for each entry."""
    first, second = standard_gamma(alpha, generator), standard_gamma(beta, generator)
    return first.div_(second.add_(first))


def standardize(rows: Tensor) -> Tensor:
    """Each row with mean 0 and n−1 standard deviation 1; a constant row becomes zeros.  (..., N)"""
    observations = rows.shape[-1]
    # Layer normalization is the one fused kernel torch has for this; it divides by n, the weight puts n−1 in its place.
    weight = torch.full((observations,), math.sqrt((observations - 1) / observations), device=rows.device)
    return torch.native_layer_norm(rows, (observations,), weight, None, TINY)[0]


def _rows(dials: Tensor, observations: int) -> Tensor:
    return torch.empty(len(dials), observations, device=dials.device)


def normal_noise(dials: Tensor, observations: int, generator: torch.Generator) -> Tensor:
    """Norm(0, 1)."""
    return _rows(dials, observations).normal_(generator=generator)


def uniform_noise(dials: Tensor, observations: int, generator: torch.Generator) -> Tensor:
    """Unif(−1, 1)."""
    return _rows(dials, observations).uniform_(-1, 1, generator=generator)


def beta_noise(dials: Tensor, observations: int, generator: torch.Generator) -> Tensor:
    """Beta(α, β), both from Unif(1, 10)."""
    shapes = (1 + 9 * dials)[:, :, None].expand(-1, -1, observations)  # (R, 2, N)
    return beta(shapes[:, 0], shapes[:, 1], generator)


def laplace_noise(dials: Tensor, observations: int, generator: torch.Generator) -> Tensor:
    """Laplace(0, 1): a symmetric peak with tails heavier than the normal's."""
    uniform = _rows(dials, observations).uniform_(-1, 1, generator=generator)
    # |u| = 1 does come up, and log 0 with it.
    return torch.copysign(torch.log1p(-uniform.abs().clamp_max_(1 - 2**-24)), uniform)


def student_t_noise(dials: Tensor, observations: int, generator: torch.Generator) -> Tensor:
    """Student t with degrees of freedom from Unif(2, 10): heavy tails."""
    half_degrees = (1 + 4 * dials[:, :1]).expand(-1, observations)
    chi_square = standard_gamma(half_degrees, generator) / half_degrees
    return normal_noise(dials, observations, generator) * chi_square.clamp_min(1e-6).rsqrt()


def lognormal_noise(dials: Tensor, observations: int, generator: torch.Generator) -> Tensor:
    """exp(σ · Norm(0, 1)) with σ from Unif(0.2, 1.2), skewed to the right or, as often, to the left."""
    deviation = 0.2 + dials[:, :1]
    skewed = torch.exp(deviation * normal_noise(dials, observations, generator))
    return torch.where(dials[:, 1:] < 0.5, skewed, -skewed)


def gamma_noise(dials: Tensor, observations: int, generator: torch.Generator) -> Tensor:
    """Gamma(k, 1), shape k from Unif(1, 10). Only ever for evaluation."""
    return standard_gamma((1 + 9 * dials[:, :1]).expand(-1, observations), generator)


def gumbel_noise(dials: Tensor, observations: int, generator: torch.Generator) -> Tensor:
    """Gumbel, the law of largest values, skewed to the right or, as often, to the left. Only ever for evaluation."""
    # 0 may come up, and log 0 with it.
    extreme = _rows(dials, observations).exponential_(generator=generator).clamp_min_(2**-24).log_()
    return torch.where(dials[:, 1:] < 0.5, -extreme, extreme)


def double_weibull_noise(dials: Tensor, observations: int, generator: torch.Generator) -> Tensor:
    """Weibull of random sign, shape k from Unif(2, 5): two modes and nothing between. Only ever for evaluation.

    Not a mixture of normals: pooled conditions, which are trained on, make those.
    """
    laplace = laplace_noise(dials, observations, generator)  # k = 1
    return torch.copysign(laplace.abs().pow(1 / (2 + 3 * dials[:, :1])), laplace)


def asymmetric_laplace_noise(dials: Tensor, observations: int, generator: torch.Generator) -> Tensor:
    """A peak with one tail r times as long as the other, r from Unif(2, 5), on either side as often. Only ever for
    evaluation."""
    long, short = (_rows(dials, observations).exponential_(generator=generator) for _ in range(2))
    skewed = (2 + 3 * dials[:, :1]) * long - short
    return torch.where(dials[:, 1:] < 0.5, skewed, -skewed)


NOISES: Mapping[str, NoiseLaw] = {
    "normal": normal_noise,
    "uniform": uniform_noise,
    "beta": beta_noise,
    "laplace": laplace_noise,
    "student_t": student_t_noise,
    "lognormal": lognormal_noise,
    "gamma": gamma_noise,
    "gumbel": gumbel_noise,
    "double_weibull": double_weibull_noise,
    "asymmetric_laplace": asymmetric_laplace_noise,
}


def draw_noise(
    kinds: Tensor, kind_counts: Sequence[int], dials: Tensor, observations: int, generator: torch.Generator
) -> Tensor:
    """Standardized noise for every variable of every task, each by its own law.  (B, P, N)

    `kinds` (B, P) indexes NOISES and `kind_counts` says how often each kind occurs in it: the caller knows the counts
    on the host, so that nothing here waits for the device. `dials` is (B, P, 2).
    """
    tasks, variables = kinds.shape
    by_kind = kinds.flatten().argsort(stable=True)  # rows of one kind side by side: each law draws them all at once
    parts, first = [], 0
    for law, count in zip(NOISES.values(), kind_counts, strict=True):
        if count:
            rows = by_kind[first : first + count]
            parts.append(law(dials.flatten(0, 1)[rows], observations, generator))
            first += count
    noise = torch.empty(tasks * variables, observations, device=kinds.device)
    noise[by_kind] = standardize(torch.cat(parts))
    return noise.view(tasks, variables, observations)
