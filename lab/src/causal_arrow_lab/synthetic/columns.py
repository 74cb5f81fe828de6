"""Changes to columns after the equations are solved: monotone distortions, rounding, few levels, missing cells.

Effects see their causes undistorted, so a distorted task is an exact post-nonlinear structural equation model and the
direct causes stay the same.
"""

# B tasks, P variables, N observations; R columns as rows; "dials" are (R, 2) uniform numbers, the parameters of columns

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from causal_arrow_lab.synthetic.kinds import quantiles
from causal_arrow_lab.synthetic.noise import standardize

# (R, N) standardized columns, (R, 2) dials -> (R, N)
ColumnChange = Callable[[Tensor, Tensor], Tensor]


def _facing_either_way(columns: Tensor, dial: Tensor) -> Tensor:
    """Negate half of the columns, so that a one-sided distortion may act on either side."""
    return torch.where(dial < 0.5, columns, -columns)


def exponential(columns: Tensor, dials: Tensor) -> Tensor:
    """exp(κx), κ in [0.3, 1.5], smaller where a wide column would span more than e⁶ on one side."""
    steepness = 0.3 + 1.2 * dials[:, :1]
    steepness = torch.minimum(steepness, 6 / columns.abs().amax(1, keepdim=True))
    return torch.exp(steepness * _facing_either_way(columns, dials[:, 1:]))


def power(columns: Tensor, dials: Tensor) -> Tensor:
    """sign(x) · |x|^γ, γ in [1/3, 3]."""
    exponent = 3 ** (2 * dials[:, :1] - 1)
    return torch.copysign(columns.abs() ** exponent, columns)


def sinh_arcsinh(columns: Tensor, dials: Tensor) -> Tensor:
    """sinh(δ · arcsinh(x) + ε), tail weight δ in [1/2, 2], skewness ε in [−1, 1]."""
    return torch.sinh(2 ** (2 * dials[:, :1] - 1) * torch.asinh(columns) + 2 * dials[:, 1:] - 1)


def softplus(columns: Tensor, dials: Tensor) -> Tensor:
    """log(1 + exp(κx)), κ in [0.5, 3]: flat on one side, straight on the other."""
    return torch.nn.functional.softplus((0.5 + 2.5 * dials[:, :1]) * _facing_either_way(columns, dials[:, 1:]))


def squash(columns: Tensor, dials: Tensor) -> Tensor:
    """tanh(κx + c), κ in [0.5, 2], c in [−1/2, 1/2]."""
    return torch.tanh((0.5 + 1.5 * dials[:, :1]) * columns + dials[:, 1:] - 0.5)


DISTORTION_SHAPES: Mapping[str, ColumnChange] = {
    "exponential": exponential,
    "power": power,
    "sinh_arcsinh": sinh_arcsinh,
    "softplus": softplus,
    "squash": squash,
}


def rounded(columns: Tensor, dials: Tensor) -> Tensor:
    """Round to multiples of 0.1 to 1 standard deviation with a random offset."""
    step = 0.1 + 0.9 * dials[:, :1]
    grid = torch.round(columns / step + 0.5 * dials[:, 1:])
    # The grid may miss a column whose values are nearly all equal: leave that column as it is.
    return torch.where(grid.amax(1, keepdim=True) > grid.amin(1, keepdim=True), grid, columns)


def ordinal(columns: Tensor, dials: Tensor) -> Tensor:
    """Cut into two to five levels at random quantiles."""
    observations = columns.shape[1]
    cuts = 1 + (4 * dials[:, :1]).floor()  # (R, 1) in {1, ..., 4}
    # Quantiles are spread evenly around the circle from a random start: no two coincide, and one dial sets them all.
    quantile = torch.remainder(dials[:, 1:] + torch.arange(4, device=columns.device) / cuts, 1.0)
    index = (quantile * (observations - 1)).long().clamp_max(observations - 2)
    threshold = columns.sort(dim=1).values.gather(1, index)  # (R, 4)
    used = torch.arange(4, device=columns.device) < cuts
    levels = torch.zeros_like(columns)
    for cut in range(4):
        levels += (columns > threshold[:, cut, None]) & used[:, cut, None]
    return torch.where(levels.amax(1, keepdim=True) > levels.amin(1, keepdim=True), levels, columns)


# The change of rounded columns, None for none.
ROUNDINGS: Mapping[str, ColumnChange | None] = {"continuous": None, "rounded": rounded, "ordinal": ordinal}


def change_columns(
    values: Tensor,
    kinds: Tensor,
    kind_counts: Sequence[int],
    changes: Sequence[ColumnChange],
    generator: torch.Generator,
) -> Tensor:
    """Change each column of `values` (B, P, N) by its kind and standardize it again.  (B, P, N)

    `kinds` (B, P) is 0 for a column that stays as it is and i for changes[i − 1]; `kind_counts` counts each kind on the
    host.
    """
    if sum(kind_counts[1:]) == 0:
        return values
    columns = values.clone(memory_format=torch.contiguous_format).flatten(0, 1)
    by_kind = kinds.flatten().argsort(stable=True)
    first = kind_counts[0]
    for change, count in zip(changes, kind_counts[1:], strict=True):
        if count:
            rows = by_kind[first : first + count]
            dials = torch.rand(count, 2, generator=generator, device=values.device)
            columns[rows] = standardize(change(columns[rows], dials))
            first += count
    return columns.view_as(values)


# Missing cells


# Probabilities that a column's cells are missing by chance, by another column, by the column itself.
MISSING: Mapping[str, tuple[float, float, float] | None] = {
    "complete": None,
    "missing_by_chance": (1.0, 0.0, 0.0),
    "missing_by_another": (0.0, 1.0, 0.0),
    "missing_by_itself": (0.0, 0.0, 1.0),
    "missing_in_all_ways": (0.4, 0.3, 0.3),
}

MAX_MISSING_RATE = 0.9
# Rates are approximate: they are quantiles of the first observations, this many.
OBSERVATIONS_SORTED = 64
# The share of columns with missing cells, in a task that has any, is uniform from here to 1.
MIN_SHARE_WITH_HOLES = 0.1


def draw_observed(values: Tensor, missing: Tensor, generator: torch.Generator) -> Tensor:
    """Draw which cells of `values` (B, P, N) are observed; `missing` (B,) indexes MISSING.  (B, P, N) bool

    The largest missing rate of a task is 0.9 · u^1.5 with u ~ Unif(0, 1); in half of the tasks all columns with holes
    have that rate, in the other half each has a Unif(0, 1) share of it. In a quarter of the tasks, cells that are
    missing by chance are missing from all columns together, up to their rates: a record was cut short. A column whose
    observed cells would all be equal stays complete.
    """
    tasks, variables, observations = values.shape
    device = values.device

    def uniform(*shape: int) -> Tensor:
        return torch.rand(tasks, *shape, generator=generator, device=device)

    chance, another = torch.zeros(2, tasks, 1, device=device)
    has_holes = torch.zeros(tasks, 1, dtype=torch.bool, device=device)
    for code, shares in enumerate(MISSING.values()):
        if shares is not None:
            here = missing[:, None] == code
            has_holes = has_holes | here
            chance, another = torch.where(here, shares[0], chance), torch.where(here, shares[1], another)
    dial = uniform(variables)
    by_chance, by_another = dial < chance, (dial >= chance) & (dial < chance + another)

    index = torch.arange(variables, device=device)
    other = (index + 1 + (uniform(variables) * (variables - 1)).floor().clamp_max(variables - 2)) % variables
    driver = torch.where(by_another, other, index).long()
    steepness = 6 * uniform(variables) - 3
    steepness = torch.where(by_chance, 0.0, steepness + steepness.sign())[:, :, None]  # 1 to 4 in either direction
    luck = torch.logit(uniform(variables, observations), eps=1e-6)
    luck = torch.where((uniform(1, 1) < 0.25) & by_chance[:, :, None], luck[:, :1], luck)
    score = torch.addcmul(luck, steepness, values.gather(1, driver[:, :, None].expand_as(values)))

    affected = has_holes & (uniform(variables) < MIN_SHARE_WITH_HOLES + (1 - MIN_SHARE_WITH_HOLES) * uniform(1))
    rate = MAX_MISSING_RATE * uniform(1).pow(1.5) * torch.where(uniform(1) < 0.5, 1.0, uniform(variables))
    observed = (score <= quantiles(score, 1 - rate[:, :, None], OBSERVATIONS_SORTED)) | ~affected[:, :, None]
    lowest = torch.where(observed, values, torch.inf).amin(2, keepdim=True)
    highest = torch.where(observed, values, -torch.inf).amax(2, keepdim=True)
    return observed | (highest <= lowest)


def standardized_where_observed(values: Tensor, observed: Tensor) -> Tensor:
    """Standardize each row over its observed cells (n−1 standard deviation 1); 0 elsewhere.  (B, P, N)"""
    count = observed.sum(2, keepdim=True)
    kept = values * observed
    centered = (kept - kept.sum(2, keepdim=True) / count) * observed
    # Center twice: the first mean was subtracted from numbers that may be far from 0.
    centered = (centered - centered.sum(2, keepdim=True) / count) * observed
    variance = centered.square().sum(2, keepdim=True) / (count - 1)
    return centered * variance.clamp_min(1e-20).rsqrt()
