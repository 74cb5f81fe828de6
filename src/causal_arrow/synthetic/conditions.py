"""Observations pooled from several conditions: a series of experiments, several sites, several batches.

A condition pushes a few variables up or down. The push enters with a variable's noise, so that effects feel it and the
equations stay what they are. Which condition an observation comes from is not told.
"""

# B tasks, P variables, N observations, C conditions

from __future__ import annotations

import torch
from torch import Tensor

from causal_arrow.synthetic.noise import standardize

MOST_CONDITIONS = 12


def push_by_conditions(noise: Tensor, pooled: Tensor, generator: torch.Generator) -> Tensor:
    """The noise (B, P, N) with the pushes of 2 to 12 conditions where `pooled` (B,), standardized again.  (B, P, N)

    The first condition pushes nothing, the others one to three variables on average (once a task), each by 1 to 5
    standard deviations of its noise. All conditions of a task are equally likely for an observation.
    """
    tasks, variables, observations = noise.shape
    device = noise.device

    def uniform(*shape: int) -> Tensor:
        return torch.rand(tasks, *shape, generator=generator, device=device)

    conditions = 2 + (uniform(1) * (MOST_CONDITIONS - 1)).floor()  # (B, 1)
    condition = (uniform(observations) * conditions).floor()  # (B, N)
    targets = 1 + 2 * uniform(1, 1)
    pushed = variables * uniform(variables, MOST_CONDITIONS) < targets  # (B, P, C)
    pushed[:, :, 0] = False
    push = 8 * uniform(variables, MOST_CONDITIONS) - 4
    push = (push + push.sign()) * (pushed & pooled[:, None, None])
    belongs = condition[:, None] == torch.arange(MOST_CONDITIONS, device=device)[:, None]  # (B, C, N)
    return standardize(torch.baddbmm(noise, push, belongs.to(noise.dtype)))
