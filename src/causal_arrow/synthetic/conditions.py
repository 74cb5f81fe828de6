"""Observations pooled from several conditions or several populations, and which one they come from is not told.

A condition (an experiment of a series, a site, a batch) pushes a few variables up or down. Classes (populations)
differ in the means of many. Either enters with a variable's noise, so that effects feel it and the equations stay what
they are. Condition or class is then a hidden cause that all variables it touches have in common.
"""

# B tasks, V variables, N observations, C conditions or classes

from __future__ import annotations

import torch
from torch import Tensor

from causal_arrow.synthetic.noise import standardize

MOST_CONDITIONS = 12
MOST_CLASSES = 4


def push_by_conditions(noise: Tensor, pooled: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """The noise with the pushes of 2 to 12 conditions where `pooled` (B,), standardized again, and which variables any
    condition pushes.  (B, V, N), (B, V) bool

    The first condition pushes nothing, the others one to three variables on average (once per task), each by 1 to 5
    standard deviations of its noise. All conditions of a task are equally likely for an observation.
    """
    tasks, variables, observations = noise.shape
    device = noise.device

    def uniform(*shape: int) -> Tensor:
        return torch.rand(tasks, *shape, generator=generator, device=device)

    conditions = 2 + (uniform(1) * (MOST_CONDITIONS - 1)).floor()  # (B, 1)
    condition = (uniform(observations) * conditions).floor()  # (B, N)
    targets = 1 + 2 * uniform(1, 1)
    pushed = variables * uniform(variables, MOST_CONDITIONS) < targets  # (B, V, C)
    pushed[:, :, 0] = False
    push = 8 * uniform(variables, MOST_CONDITIONS) - 4
    push = (push + push.sign()) * (pushed & pooled[:, None, None])
    number = torch.arange(MOST_CONDITIONS, device=device)
    touched = ((push != 0) & (number < conditions[:, :, None])).any(2)
    return _pushed(noise, push, condition), touched


def push_by_classes(noise: Tensor, mixed: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """The noise with the means of 2 to 4 classes where `mixed` (B,), standardized again, and which variables differ
    between classes.  (B, V, N), (B, V) bool

    A fifth to all of the variables of a task differ, by Norm(0, d²) with d ~ Unif(0.7, 2) once a task. A class holds a
    share of the observations ∝ Unif(0.2, 1).
    """
    tasks, variables, observations = noise.shape
    device = noise.device

    def uniform(*shape: int) -> Tensor:
        return torch.rand(tasks, *shape, generator=generator, device=device)

    classes = 2 + (uniform(1) * (MOST_CLASSES - 1)).floor()  # (B, 1)
    number = torch.arange(MOST_CLASSES, device=device)
    member = draw_members((0.2 + 0.8 * uniform(MOST_CLASSES)) * (number < classes), observations, generator)
    touched = (uniform(variables) < 0.2 + 0.8 * uniform(1)) & mixed[:, None]
    mean = torch.randn(tasks, variables, MOST_CLASSES, generator=generator, device=device)
    mean = mean * (0.7 + 1.3 * uniform(1, 1)) * touched[:, :, None]
    return _pushed(noise, mean, member), touched


def draw_members(weights: Tensor, observations: int, generator: torch.Generator) -> Tensor:
    """Which condition each observation comes from, each with probability ∝ its weight.  (B, C) -> (B, N) int64"""
    below = weights.cumsum(1)
    uniform = torch.rand(len(weights), observations, generator=generator, device=weights.device)
    return torch.searchsorted(below, uniform * below[:, -1:]).clamp_max_(weights.shape[1] - 1)


def by_member(table: Tensor, member: Tensor) -> Tensor:
    """The entry of each observation's condition.  (B, V, C), (B, N) -> (B, V, N)"""
    return torch.bmm(table, _belongs(table, member))


def _pushed(noise: Tensor, push: Tensor, member: Tensor) -> Tensor:
    return standardize(torch.baddbmm(noise, push, _belongs(push, member)))


def _belongs(table: Tensor, member: Tensor) -> Tensor:
    """1 where an observation comes from a condition, else 0.  (B, V, C), (B, N) -> (B, C, N)"""
    condition = torch.arange(table.shape[2], device=table.device)[:, None]
    return (member[:, None] == condition).to(table.dtype)
