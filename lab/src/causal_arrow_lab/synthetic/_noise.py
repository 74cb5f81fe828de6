"""Noise of structural equations: named distributions, drawn for many variables at once, and how strong the noise is.

A distribution turns two uniform numbers, its *dials*, into parameters and draws one row of noise per pair of dials. Its
location and scale do not matter: rows are standardized here and scaled to their variables later. A variable becomes
signal + sd · noise with
    sd² = relative · var(signal) + absolute.
With a target R², relative = (1 − R²) / R² and absolute = 0. A raw equation has relative = 0 and a noise variance that
does not depend on the signal; so has a root, whose signal is zero.
"""

# B tasks, P variables, R rows of noise, N observations

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import torch
from torch import Tensor

# (R, 2) dials in [0, 1), N observations, generator -> (R, N) noise
NoiseSampler = Callable[[Tensor, int, torch.Generator], Tensor]

# Rows below this variance count as constant: far below any row drawn here, far above what float32 cannot square.
TINY = 1e-20


def look_up(codes: Tensor, entries: Iterable[Tensor | float | None]) -> Tensor:
    """The entry of each code, 0 for None. Computed on the device: copying a table there would make the host wait."""
    found = torch.zeros(codes.shape, device=codes.device)
    for code, entry in enumerate(entries):
        if entry is not None:
            found = torch.where(codes == code, entry, found)
    return found


def runs_of(counts: Sequence[int]) -> Iterator[tuple[int, slice]]:
    """The codes that occur in a sorted list, each with its slice, from the counts of all codes."""
    first = 0
    for code, count in enumerate(counts):
        if count:
            yield code, slice(first, first + count)
            first += count


def standard_gamma(shape: Tensor, generator: torch.Generator) -> Tensor:
    """Draw Gamma(shape, 1), one number for each entry of `shape`."""
    # The only gamma sampler of torch that takes a generator; torch.distributions calls it without one.
    return torch._standard_gamma(shape, generator=generator)


def beta(alpha: Tensor, beta: Tensor, generator: torch.Generator) -> Tensor:
    """Draw Beta(alpha, beta), one number for each entry."""
    first, second = standard_gamma(alpha, generator), standard_gamma(beta, generator)
    return first.div_(second.add_(first))


def standardize(rows: Tensor) -> Tensor:
    """Shift and scale each row to mean 0 and n−1 standard deviation 1; a constant row becomes zeros.  (..., N)"""
    observations = rows.shape[-1]
    # Layer normalization is the fused kernel that torch has for this; it divides by n, which the weight corrects to
    # n−1.
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
    """Beta(α, β) with α and β from Unif(1, 10)."""
    shapes = (1 + 9 * dials)[:, :, None].expand(-1, -1, observations)  # (R, 2, N)
    return beta(shapes[:, 0], shapes[:, 1], generator)


def laplace_noise(dials: Tensor, observations: int, generator: torch.Generator) -> Tensor:
    """Laplace(0, 1): a symmetric peak with tails heavier than the normal's."""
    uniform = _rows(dials, observations).uniform_(-1, 1, generator=generator)
    # |u| = 1 occurs, and log 0 with it.
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
    """Gamma(k, 1) with shape k from Unif(1, 10). For evaluation only."""
    return standard_gamma((1 + 9 * dials[:, :1]).expand(-1, observations), generator)


def gumbel_noise(dials: Tensor, observations: int, generator: torch.Generator) -> Tensor:
    """Gumbel, the distribution of maxima, skewed to the right or, as often, to the left. For evaluation only."""
    # 0 may occur, and log 0 with it.
    extreme = _rows(dials, observations).exponential_(generator=generator).clamp_min_(2**-24).log_()
    return torch.where(dials[:, 1:] < 0.5, -extreme, extreme)


def double_weibull_noise(dials: Tensor, observations: int, generator: torch.Generator) -> Tensor:
    """Weibull of random sign with shape k from Unif(2, 5): two modes and nothing between. For evaluation only."""
    # Not a mixture of normals: networks train on those, made by pooled conditions.
    laplace = laplace_noise(dials, observations, generator)  # k = 1
    return torch.copysign(laplace.abs().pow(1 / (2 + 3 * dials[:, :1])), laplace)


def asymmetric_laplace_noise(dials: Tensor, observations: int, generator: torch.Generator) -> Tensor:
    """A peak with one tail r times as long as the other, r from Unif(2, 5), on a random side. For evaluation only."""
    long, short = (_rows(dials, observations).exponential_(generator=generator) for _ in range(2))
    skewed = (2 + 3 * dials[:, :1]) * long - short
    return torch.where(dials[:, 1:] < 0.5, skewed, -skewed)


NOISES: Mapping[str, NoiseSampler] = {
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
    """Draw standardized noise of the `kinds` (B, P), which index NOISES, with `dials` (B, P, 2).  (B, P, N)

    `kind_counts` counts each kind on the host, so that nothing here waits for the device.
    """
    by_kind = kinds.flatten().argsort(stable=True)  # rows of one kind are neighbors: they are drawn at once
    samplers, rows = list(NOISES.values()), dials.flatten(0, 1)[by_kind]
    parts = [samplers[kind](rows[run], observations, generator) for kind, run in runs_of(kind_counts)]
    noise = torch.empty(len(rows), observations, device=kinds.device)
    noise[by_kind] = standardize(torch.cat(parts))
    return noise.view(*kinds.shape, observations)


# How strong the noise is

MAX_LOGIT_R2 = math.log(0.999 / 0.001)
MIN_LOGIT_R2 = math.log(0.01 / 0.99)

# (Beta(a, b) draw in [0, 1], number of causes, Unif(0, 1) draw) -> the noise's share of the variance, 1 − R², which
# keeps its digits where R² is near 1. a and b are Unif(1, 10), drawn once per task.
SIGNAL_STRENGTHS: Mapping[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "moderate_signal": lambda draw, causes, even: 0.9 - 0.8 * draw,  # the paper's R² in [0.1, 0.9]
    "weak_signal": lambda draw, causes, even: 0.99 - 0.19 * draw,  # R² in [0.01, 0.2]
    "strong_signal": lambda draw, causes, even: 0.1 * 0.01**draw,  # R² in [0.9, 0.999], 1 − R² even on a log scale
    "spread_signal": lambda draw, causes, even: torch.sigmoid(  # R² in [0.01, 0.999], even on the logit scale
        -(MIN_LOGIT_R2 + (MAX_LOGIT_R2 - MIN_LOGIT_R2) * draw)
    ),
    # Every cause adds its share, as genes do to a trait: R² / (1 − R²) is their number times 0.02 to 0.5, even on a log
    # scale. With a target that ignores their number, many causes of one effect would each be too weak to be seen.
    "accumulating_signal": lambda draw, causes, even: 1 / (1 + causes * 0.02 * 25**draw),
    # Not one range per task: as in real tables, R² goes from 0.005 to 0.95 among variables, even on the logit scale.
    "unlike_signals": lambda draw, causes, even: torch.sigmoid(5.3 - 8.2 * even),
}

# Spread of raw structural equations: the noise has standard deviation exp(spread · Unif(−1, 1)) and nothing is
# standardized along the way, so that variances, and R² with them, grow from cause to effect. None: R² targets instead.
SCALES: Mapping[str, float | None] = {
    "restandardized": None,
    "raw_equal_noise": 0.0,
    "raw_unequal_noise": 1.5,
}


def draw_noise_variances(
    strength: Tensor, scale: Tensor, causes: Tensor, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Draw the `relative` and `absolute` noise variances of variables with this many `causes` (B, P).  2 × (B, P)

    `strength` (B,) indexes SIGNAL_STRENGTHS and `scale` (B,) indexes SCALES.
    """
    tasks, variables = causes.shape
    device = causes.device
    has_causes = causes > 0
    shapes = 1 + 9 * torch.rand(2, tasks, 1, generator=generator, device=device).expand(2, tasks, variables)
    draw = beta(shapes[0], shapes[1], generator)
    even = torch.rand(tasks, variables, generator=generator, device=device)
    share = look_up(strength[:, None], (signal(draw, causes, even) for signal in SIGNAL_STRENGTHS.values()))
    spread = look_up(scale[:, None], SCALES.values())
    raw = scale[:, None] > 0  # all but the first
    absolute = torch.where(raw, torch.exp(2 * spread * (2 * even - 1)), torch.where(has_causes, 0.0, 1.0))
    relative = torch.where(raw | ~has_causes, 0.0, share / (1 - share))
    return relative, absolute
