"""Missing cells: by chance, by another column, by the column itself."""

# B tasks, P variables, N observations

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from causal_arrow.synthetic.kinds import quantiles

# How likely a column's cells are missing by chance, by another column, by the column itself.
MISSING: Mapping[str, tuple[float, float, float] | None] = {
    "complete": None,
    "missing_by_chance": (1.0, 0.0, 0.0),
    "missing_by_another": (0.0, 1.0, 0.0),
    "missing_by_itself": (0.0, 0.0, 1.0),
    "missing_in_all_ways": (0.4, 0.3, 0.3),
}

LARGEST_RATE = 0.9
# Rates are met as closely as the quantiles of so many observations are.
OBSERVATIONS_SORTED = 64
# Of the columns of a task with holes, this share at least has some; the share is uniform from here to 1.
LEAST_SHARE = 0.1


def draw_observed(values: Tensor, law: Tensor, generator: torch.Generator) -> Tensor:
    """Which cells of `values` (B, P, N) are observed, `law` (B,) indexing MISSING.  (B, P, N) bool

    The largest rate of a task is 0.9 · u^1.5 with u ~ Unif(0, 1); in half of the tasks all columns with holes have that
    rate, in the other half each has a Unif(0, 1) share of it. In a quarter of the tasks what is missing by chance is
    missing from all columns together, up to their rates: an observation was cut short. A column whose observed cells
    would all be the same stays complete.
    """
    tasks, variables, observations = values.shape
    device = values.device

    def uniform(*shape: int) -> Tensor:
        return torch.rand(tasks, *shape, generator=generator, device=device)

    chance, another = torch.zeros(2, tasks, 1, device=device)
    has_holes = torch.zeros(tasks, 1, dtype=torch.bool, device=device)
    for code, shares in enumerate(MISSING.values()):
        if shares is not None:
            here = law[:, None] == code
            has_holes = has_holes | here
            chance, another = torch.where(here, shares[0], chance), torch.where(here, shares[1], another)
    dial = uniform(variables)
    by_chance, by_another = dial < chance, (dial >= chance) & (dial < chance + another)

    place = torch.arange(variables, device=device)
    other = (place + 1 + (uniform(variables) * (variables - 1)).floor().clamp_max(variables - 2)) % variables
    driver = torch.where(by_another, other, place).long()
    steepness = 6 * uniform(variables) - 3
    steepness = torch.where(by_chance, 0.0, steepness + steepness.sign())[:, :, None]  # 1 to 4 in either direction
    luck = torch.logit(uniform(variables, observations), eps=1e-6)
    luck = torch.where((uniform(1, 1) < 0.25) & by_chance[:, :, None], luck[:, :1], luck)
    score = torch.addcmul(luck, steepness, values.gather(1, driver[:, :, None].expand_as(values)))

    affected = has_holes & (uniform(variables) < LEAST_SHARE + (1 - LEAST_SHARE) * uniform(1))
    rate = LARGEST_RATE * uniform(1).pow(1.5) * torch.where(uniform(1) < 0.5, 1.0, uniform(variables))
    observed = (score <= quantiles(score, 1 - rate[:, :, None], OBSERVATIONS_SORTED)) | ~affected[:, :, None]
    lowest = torch.where(observed, values, torch.inf).amin(2, keepdim=True)
    highest = torch.where(observed, values, -torch.inf).amax(2, keepdim=True)
    return observed | (highest <= lowest)


def standardized_where_observed(values: Tensor, observed: Tensor) -> Tensor:
    """Each row with mean 0 and n−1 standard deviation 1 over its observed cells, 0 elsewhere.  (B, P, N)"""
    count = observed.sum(2, keepdim=True)
    kept = values * observed
    centered = (kept - kept.sum(2, keepdim=True) / count) * observed
    # Twice: the first mean was subtracted from numbers that may be far from 0.
    centered = (centered - centered.sum(2, keepdim=True) / count) * observed
    variance = centered.square().sum(2, keepdim=True) / (count - 1)
    return centered * variance.clamp_min(1e-20).rsqrt()
