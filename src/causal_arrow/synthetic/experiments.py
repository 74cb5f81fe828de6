"""Experiments: observations made while some variables were set or shifted, with known targets, and environments.

An experiment has up to 20 regimes besides plain observation. A regime acts on one to three variables: it *sets* them,
and their causes no longer count, or it *shifts* them, and their causes count as before. An environment is a column of
the table: a category that nothing in the table causes, and that changes the equations of a few variables.
"""

# B tasks, P variables, N observations, E regimes or environments

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from causal_arrow.synthetic.conditions import by_member, draw_members
from causal_arrow.synthetic.noise import standardize

MOST_REGIMES = 20
MOST_ENVIRONMENTS = 12
MOST_TARGETS = 3  # of a regime
# No more regimes or environments than one for every so many observations.
OBSERVATIONS_PER_REGIME = 5

# The probability that a regime sets its targets instead of shifting them. Environments: see draw_environments.
EXPERIMENTS: Mapping[str, float | None] = {
    "no_experiments": None,
    "set_targets": 1.0,
    "shifted_targets": 0.0,
    "mixed_targets": 0.5,
    "environments": None,
}


@dataclass(frozen=True)
class Regimes:
    """The experiments of a run of tasks. Regime 0 is plain observation."""

    member: Tensor  # (B, N) int64, the regime of each observation
    targets: Tensor  # (B, P, 1 + E) bool, on which variables a regime acts
    sets: Tensor  # (B, P, 1 + E) bool, those that it sets
    value: Tensor  # (B, P, 1 + E) to what, in standard deviations
    looseness: Tensor  # (B, 1) how much of its noise a variable that is set keeps
    push: Tensor  # (B, P, 1 + E) how far it shifts the others

    def shifted(self, noise: Tensor) -> Tensor:
        """The noise (B, P, N) with the shifts of all regimes, standardized again.  (B, P, N)"""
        return standardize(noise + by_member(self.push, self.member))

    def set(self, variable: int, values: Tensor, noise: Tensor) -> Tensor:
        """The values (B, N) of a variable, replaced where a regime sets it.  (B, N)"""
        is_set = self.sets[:, variable].gather(1, self.member)
        value = self.value[:, variable].gather(1, self.member)
        return torch.where(is_set, torch.addcmul(value, self.looseness, noise), values)

    def intervened(self) -> Tensor:
        """Which cells an experiment acted on.  (B, P, N) bool"""
        return by_member(self.targets.float(), self.member) > 0.5


def draw_regimes(law: Tensor, allowed: Tensor, observations: int, generator: torch.Generator) -> Regimes:
    """Experiments by `law` (B,), which indexes EXPERIMENTS, on `allowed` (B, P) variables.

    Regimes: 1 to 20, of sizes ∝ exp(Norm(0, 1)). Plain observation: 5 to 90% of the observations or, in three tasks out
    of ten, hardly any; two at least, so that no variable is acted on throughout. Targets of a regime: one (70%), two
    or three. Set to Unif(−3, 3), exactly or with a share of the noise; shifted by 1 to 4 standard deviations of it.
    """
    tasks, variables = allowed.shape
    device = allowed.device

    def uniform(*shape: int) -> Tensor:
        return torch.rand(tasks, *shape, generator=generator, device=device)

    set_probability = torch.zeros(tasks, 1, device=device)
    has_regimes = torch.zeros(tasks, 1, dtype=torch.bool, device=device)
    for code, probability in enumerate(EXPERIMENTS.values()):
        if probability is not None:
            here = law[:, None] == code
            set_probability, has_regimes = torch.where(here, probability, set_probability), has_regimes | here

    number = torch.arange(1, 1 + MOST_REGIMES, device=device)
    most = max(1, min(MOST_REGIMES, observations // OBSERVATIONS_PER_REGIME))
    regimes = 1 + (uniform(1) * most).floor().clamp_max(most - 1)  # (B, 1)
    size = torch.randn(tasks, MOST_REGIMES, generator=generator, device=device).exp() * (number <= regimes)
    plain = torch.where(uniform(1) < 0.7, 0.05 + 0.85 * uniform(1), 0.02 * uniform(1))
    member = draw_members(
        torch.cat([plain, (1 - plain) * size / size.sum(1, keepdim=True)], 1), observations, generator
    )
    member[:, :2] = 0
    member = torch.where(has_regimes, member, 0)

    dial = uniform(MOST_REGIMES, 1)
    count = 1 + (dial > 0.7).long() + (dial > 0.9).long()
    lottery = uniform(MOST_REGIMES, variables) + 2.0 * ~allowed[:, None]
    lowest = lottery.topk(min(MOST_TARGETS, variables), dim=2, largest=False).values  # (B, E, 3), in order
    last = lowest.gather(2, (count - 1).clamp_max(lowest.shape[2] - 1))
    targets = (lottery <= last) & (lottery < 1)  # (B, E, P)
    targets = torch.cat([torch.zeros_like(targets[:, :1]), targets], 1).mT & has_regimes[:, :, None]  # (B, P, 1 + E)
    sets = targets & (uniform(1, 1 + MOST_REGIMES) < set_probability[:, :, None])
    push = 6 * uniform(variables, 1 + MOST_REGIMES) - 3
    looseness = torch.where(uniform(1) < 0.4, 0.0, 0.1 + 0.9 * uniform(1))
    return Regimes(
        member=member,
        targets=targets,
        sets=sets,
        value=6 * uniform(variables, 1 + MOST_REGIMES) - 3,
        looseness=looseness,
        push=(push + push.sign()) * (targets & ~sets),
    )


@dataclass(frozen=True)
class Environments:
    """The environments of a run of tasks. Where a task has any, its first variable says which."""

    present: Tensor  # (B,) bool
    member: Tensor  # (B, N) int64, the environment of each observation
    targets: Tensor  # (B, P) bool, the variables whose equations change
    push: Tensor  # (B, P, E) how far their noise is shifted,
    log_spread: Tensor  # (B, P, E) widened,
    gain: Tensor  # (B, P, E) and their causes' effect multiplied

    def changed_noise(self, noise: Tensor) -> Tensor:
        """The noise (B, P, N) as it is in each environment, standardized over all of them.  (B, P, N)"""
        spread = by_member(self.log_spread, self.member).exp_()
        return standardize(noise * spread + by_member(self.push, self.member))

    def changed_signal(self, variable: int, signal: Tensor) -> Tensor:
        """The signal (B, N) of a variable as it is in each environment.  (B, N)"""
        return signal * self.gain[:, variable].gather(1, self.member)


def draw_environments(present: Tensor, allowed: Tensor, observations: int, generator: torch.Generator) -> Environments:
    """2 to 12 environments where `present` (B,), that act on one to a third of the `allowed` (B, P) variables.

    In each but the first a target is shifted by 0.5 to 3 standard deviations of its noise; for half of the targets the
    noise is also widened by exp(Norm(0, 0.5²)), and for half what the causes do is multiplied by 1 + Norm(0, 0.5²).
    """
    tasks, variables = allowed.shape
    device = allowed.device

    def uniform(*shape: int) -> Tensor:
        return torch.rand(tasks, *shape, generator=generator, device=device)

    def normal(*shape: int) -> Tensor:
        return torch.randn(tasks, *shape, generator=generator, device=device)

    most = max(2, min(MOST_ENVIRONMENTS, observations // OBSERVATIONS_PER_REGIME))
    number = torch.arange(MOST_ENVIRONMENTS, device=device)
    environments = 2 + (uniform(1) * (most - 1)).floor().clamp_max(most - 2)
    member = draw_members(normal(MOST_ENVIRONMENTS).exp() * (number < environments), observations, generator)
    member[:, 0], member[:, 1] = 0, 1  # two are there, however few observations
    member = torch.where(present[:, None], member, 0)

    lottery = uniform(variables) + 2.0 * ~allowed
    count = 1 + (uniform(1) * max(1, variables // 3)).floor()
    targets = (lottery.argsort(1).argsort(1) < count) & (lottery < 1) & present[:, None]  # (B, P)
    acts = targets[:, :, None] & (number > 0)
    push = 5 * uniform(variables, MOST_ENVIRONMENTS) - 2.5
    widens, multiplies = (acts & (uniform(variables, 1) < 0.5) for _ in range(2))
    return Environments(
        present=present,
        member=member,
        targets=targets,
        push=(push + 0.5 * push.sign()) * acts,
        log_spread=0.5 * normal(variables, MOST_ENVIRONMENTS) * widens,
        gain=1 + 0.5 * normal(variables, MOST_ENVIRONMENTS) * multiplies,
    )
