"""Causal structure of tasks before their equations are solved: experiments, instruments, hidden causes.

A hidden condition (a site, a batch) pushes a few variables up or down; hidden classes (populations) differ in the means
of many. Either enters with the noise, so that effects feel it, and is a hidden cause of all variables that it touches.

A regime of an experiment acts on one to three variables: it *sets* them, so that their causes have no influence, or
*shifts* them. An environment is a column: a category that nothing in the table causes and that changes the equations of
a few variables.

Instruments are groups of columns that measure the same causes by different curves and cause nothing. Each has its own
weights of the causes, or all of a group measure one quantity, an effect of the causes that is not in the table. If that
quantity has noise, or no cause in the table, the readings share a hidden cause.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import partial

import torch
from torch import Tensor

from causal_arrow_lab.synthetic._columns import Categories, sinh_arcsinh, squash
from causal_arrow_lab.synthetic._noise import look_up, standardize

# B tasks, L hidden causes, P variables in generation order, N observations, C conditions or classes,
# E regimes or environments

# Hidden conditions and classes

MAX_CONDITIONS = 12
MAX_CLASSES = 4


def push_by_conditions(noise: Tensor, pooled: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Add the pushes of 2 to 12 equally frequent conditions to the noise where `pooled` (B,).  (B, P, N), (B, P) bool

    The first pushes nothing, the others one to three variables on average (drawn once per task), each by 1 to 5
    standard deviations of its noise. The noise is standardized again; also returns which variables are pushed.
    """
    tasks, variables, observations = noise.shape
    uniform = partial(torch.rand, tasks, generator=generator, device=noise.device)
    conditions = 2 + (uniform(1) * (MAX_CONDITIONS - 1)).floor()  # (B, 1)
    condition = (uniform(observations) * conditions).floor()  # (B, N)
    targets = 1 + 2 * uniform(1, 1)
    pushed = variables * uniform(variables, MAX_CONDITIONS) < targets  # (B, P, C)
    pushed[:, :, 0] = False
    push = 8 * uniform(variables, MAX_CONDITIONS) - 4
    push = (push + push.sign()) * (pushed & pooled[:, None, None])
    number = torch.arange(MAX_CONDITIONS, device=noise.device)
    touched = ((push != 0) & (number < conditions[:, :, None])).any(2)
    return _pushed(noise, push, condition), touched


def push_by_classes(noise: Tensor, mixed: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Add the means of 2 to 4 classes, of shares ∝ Unif(0.2, 1), to the noise where `mixed` (B,).

    A fifth up to all of the variables differ, by Norm(0, d²) with d ~ Unif(0.7, 2) once per task. The noise is
    standardized again; also returns which variables differ.  (B, P, N), (B, P) bool
    """
    tasks, variables, observations = noise.shape
    uniform = partial(torch.rand, tasks, generator=generator, device=noise.device)
    classes = 2 + (uniform(1) * (MAX_CLASSES - 1)).floor()  # (B, 1)
    number = torch.arange(MAX_CLASSES, device=noise.device)
    member = draw_memberships((0.2 + 0.8 * uniform(MAX_CLASSES)) * (number < classes), observations, generator)
    touched = (uniform(variables) < 0.2 + 0.8 * uniform(1)) & mixed[:, None]
    mean = torch.randn(tasks, variables, MAX_CLASSES, generator=generator, device=noise.device)
    mean = mean * (0.7 + 1.3 * uniform(1, 1)) * touched[:, :, None]
    return _pushed(noise, mean, member), touched


def draw_memberships(weights: Tensor, observations: int, generator: torch.Generator) -> Tensor:
    """Draw the condition of each observation with probability ∝ its weight.  (B, C) -> (B, N) int64"""
    below = weights.cumsum(1)
    uniform = torch.rand(len(weights), observations, generator=generator, device=weights.device)
    return torch.searchsorted(below, uniform * below[:, -1:]).clamp_max_(weights.shape[1] - 1)


def by_member(table: Tensor, member: Tensor) -> Tensor:
    """Look up the entry of each observation's condition.  (B, P, C), (B, N) -> (B, P, N)"""
    return torch.bmm(table, _belongs(table, member))


def _pushed(noise: Tensor, push: Tensor, member: Tensor) -> Tensor:
    return standardize(torch.baddbmm(noise, push, _belongs(push, member)))


def _belongs(table: Tensor, member: Tensor) -> Tensor:
    """1 where an observation comes from a condition, else 0.  (B, P, C), (B, N) -> (B, C, N)"""
    condition = torch.arange(table.shape[2], device=table.device)[:, None]
    return (member[:, None] == condition).to(table.dtype)


# Experiments

MAX_REGIMES = 20
MAX_ENVIRONMENTS = 12
MAX_TARGETS = 3  # of a regime
OBSERVATIONS_PER_REGIME = 5  # a table has at most one regime or environment per so many observations

# Probability that a regime sets its targets instead of shifting them.
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
    targets: Tensor  # (B, P, 1 + E) bool, the variables that a regime acts on
    sets: Tensor  # (B, P, 1 + E) bool, those that it sets
    value: Tensor  # (B, P, 1 + E) the value that it sets, in standard deviations
    looseness: Tensor  # (B, 1) share of its noise that a variable keeps when it is set
    push: Tensor  # (B, P, 1 + E) shift of the other targets

    def shifted(self, noise: Tensor) -> Tensor:
        """Add the shifts of all regimes to the noise (B, P, N) and standardize it again.  (B, P, N)"""
        return standardize(noise + by_member(self.push, self.member))

    def set(self, variable: int, values: Tensor, noise: Tensor) -> Tensor:
        """Replace the values (B, N) of a variable where a regime sets it.  (B, N)"""
        is_set = self.sets[:, variable].gather(1, self.member)
        value = self.value[:, variable].gather(1, self.member)
        return torch.where(is_set, torch.addcmul(value, self.looseness, noise), values)

    def intervened(self) -> Tensor:
        """Cells that an experiment acted on.  (B, P, N) bool"""
        return by_member(self.targets.float(), self.member) > 0.5


def draw_regimes(experiments: Tensor, allowed: Tensor, observations: int, generator: torch.Generator) -> Regimes:
    """Draw experiments on the `allowed` (B, P) variables; `experiments` (B,) indexes EXPERIMENTS.

    1 to 20 regimes of sizes ∝ exp(Norm(0, 1)), each with one (70%), two or three targets, besides plain observation: 5
    to 90% of the rows, in three of ten tasks hardly any, at least two, so that no variable is acted on throughout.
    Values are Unif(−3, 3), exact or with a share of the noise; shifts are 1 to 4 standard deviations of the noise.
    """
    tasks, variables = allowed.shape
    device = allowed.device
    uniform = partial(torch.rand, tasks, generator=generator, device=device)
    set_probability = look_up(experiments[:, None], EXPERIMENTS.values())
    has_regimes = look_up(experiments[:, None], (probability is not None for probability in EXPERIMENTS.values())) > 0
    number = torch.arange(1, 1 + MAX_REGIMES, device=device)
    limit = max(1, min(MAX_REGIMES, observations // OBSERVATIONS_PER_REGIME))
    regimes = 1 + (uniform(1) * limit).floor().clamp_max(limit - 1)  # (B, 1)
    size = torch.randn(tasks, MAX_REGIMES, generator=generator, device=device).exp() * (number <= regimes)
    plain = torch.where(uniform(1) < 0.7, 0.05 + 0.85 * uniform(1), 0.02 * uniform(1))
    member = draw_memberships(
        torch.cat([plain, (1 - plain) * size / size.sum(1, keepdim=True)], 1), observations, generator
    )
    member[:, :2] = 0
    member = torch.where(has_regimes, member, 0)

    dial = uniform(MAX_REGIMES, 1)
    count = 1 + (dial > 0.7).long() + (dial > 0.9).long()
    lottery = uniform(MAX_REGIMES, variables) + 2.0 * ~allowed[:, None]
    lowest = lottery.topk(min(MAX_TARGETS, variables), dim=2, largest=False).values  # (B, E, 3), in order
    last = lowest.gather(2, (count - 1).clamp_max(lowest.shape[2] - 1))
    targets = (lottery <= last) & (lottery < 1)  # (B, E, P)
    targets = torch.cat([torch.zeros_like(targets[:, :1]), targets], 1).mT & has_regimes[:, :, None]  # (B, P, 1 + E)
    sets = targets & (uniform(1, 1 + MAX_REGIMES) < set_probability[:, :, None])
    push = 6 * uniform(variables, 1 + MAX_REGIMES) - 3
    looseness = torch.where(uniform(1) < 0.4, 0.0, 0.1 + 0.9 * uniform(1))
    return Regimes(
        member=member,
        targets=targets,
        sets=sets,
        value=6 * uniform(variables, 1 + MAX_REGIMES) - 3,
        looseness=looseness,
        push=(push + push.sign()) * (targets & ~sets),
    )


@dataclass(frozen=True)
class Environments:
    """The environments of a run of tasks. In a task that has any, they are the values of its first variable."""

    present: Tensor  # (B,) bool
    member: Tensor  # (B, N) int64, the environment of each observation
    targets: Tensor  # (B, P) bool, the variables whose equations change
    push: Tensor  # (B, P, E) shift of their noise
    log_spread: Tensor  # (B, P, E) logarithm of the factor of their noise
    gain: Tensor  # (B, P, E) factor of their signal

    def changed_noise(self, noise: Tensor) -> Tensor:
        """Change the noise (B, P, N) by environment and standardize it over all of them.  (B, P, N)"""
        spread = by_member(self.log_spread, self.member).exp_()
        return standardize(noise * spread + by_member(self.push, self.member))

    def changed_signal(self, variable: int, signal: Tensor) -> Tensor:
        """Change the signal (B, N) of a variable by environment.  (B, N)"""
        return signal * self.gain[:, variable].gather(1, self.member)


def draw_environments(present: Tensor, allowed: Tensor, observations: int, generator: torch.Generator) -> Environments:
    """Draw 2 to 12 environments where `present` (B,), that act on one to a third of the `allowed` (B, P) variables.

    All but the first shift a target by 0.5 to 3 standard deviations of its noise; for half of the targets they also
    multiply the noise by exp(Norm(0, 0.5²)), and for half the signal by 1 + Norm(0, 0.5²).
    """
    tasks, variables = allowed.shape
    device = allowed.device
    uniform, normal = (partial(draw, tasks, generator=generator, device=device) for draw in (torch.rand, torch.randn))
    limit = max(2, min(MAX_ENVIRONMENTS, observations // OBSERVATIONS_PER_REGIME))
    number = torch.arange(MAX_ENVIRONMENTS, device=device)
    environments = 2 + (uniform(1) * (limit - 1)).floor().clamp_max(limit - 2)
    member = draw_memberships(normal(MAX_ENVIRONMENTS).exp() * (number < environments), observations, generator)
    member[:, 0], member[:, 1] = 0, 1  # at least two occur, however few the observations
    member = torch.where(present[:, None], member, 0)

    lottery = uniform(variables) + 2.0 * ~allowed
    count = 1 + (uniform(1) * max(1, variables // 3)).floor()
    targets = (lottery.argsort(1).argsort(1) < count) & (lottery < 1) & present[:, None]  # (B, P)
    acts = targets[:, :, None] & (number > 0)
    push = 5 * uniform(variables, MAX_ENVIRONMENTS) - 2.5
    widens, multiplies = (acts & (uniform(variables, 1) < 0.5) for _ in range(2))
    return Environments(
        present=present,
        member=member,
        targets=targets,
        push=(push + 0.5 * push.sign()) * acts,
        log_spread=0.5 * normal(variables, MAX_ENVIRONMENTS) * widens,
        gain=1 + 0.5 * normal(variables, MAX_ENVIRONMENTS) * multiplies,
    )


# Instruments and noisy measurements

MIN_IN_GROUP, MAX_IN_GROUP = 2, 6
MAX_SHARE = 0.7  # of the columns of a task are instruments
# The share of measurement noise in an instrument's variance is even on a log scale between these.
MIN_NOISE_SHARE, MAX_NOISE_SHARE = 0.0005, 0.05
EXACT = 1e-6  # relative noise variance of a quantity that is a function of its causes: practically zero


@dataclass(frozen=True)
class Instruments:
    """The instruments among the columns of a run of tasks, and what they measure."""

    leader: Tensor  # (B, P) int64, the first instrument of a column's group; the column itself if it is in none
    member: Tensor  # (B, P) bool, whether the column is an instrument
    one_quantity: Tensor  # (B, 1) bool, all instruments of a group measure one quantity
    exact: Tensor  # (B, P) bool, that quantity is a function of its causes; equal within a group
    noise_share: Tensor  # (B, P) share of measurement noise in an instrument's variance
    spare: Tensor  # (B, P, P) bool, [b, j, k] a cause j for a group led by k that has no other

    def take(self, tasks: Tensor) -> Instruments:
        """The instruments of some of the tasks."""
        return Instruments(**{field.name: getattr(self, field.name)[tasks] for field in fields(self)})

    def rewired(self, causes: Tensor) -> Tensor:
        """Give instruments the causes of their leader.  (B, L, P) -> (B, L, P)"""
        return causes.gather(2, self.leader[:, None].expand_as(causes))

    def rewired_graph(self, adjacency: Tensor) -> Tensor:
        """Give instruments the causes of their leader, and no effects.  (B, P, P) -> (B, P, P)"""
        kept = adjacency & ~self.member[:, :, None]
        return self.rewired(kept | (self.spare & ~kept.any(1, keepdim=True)))

    def quiet(self, has_causes: Tensor) -> Tensor:
        """Columns whose structural equation has measurement noise only.  (B, P) bool"""
        return self.member & has_causes & (~self.one_quantity | self.exact)

    def noise_variance(self) -> Tensor:
        """Noise variance in the equation of a quiet column, relative to the signal's.  (B, P)"""
        # Readings of one quantity get their noise in `read`.
        return torch.where(self.one_quantity, EXACT, self.noise_share / (1 - self.noise_share))

    def share_a_quantity(self, has_causes: Tensor) -> Tensor:
        """Pairs of instruments with a hidden cause: the quantity that they measure.  (B, P, P) bool"""
        hidden = self.member & self.one_quantity & ~(self.exact & has_causes)
        return hidden[:, :, None] & (self.leader[:, :, None] == self.leader[:, None, :])

    def read(self, values: Tensor, generator: torch.Generator) -> Tensor:
        """Replace the values (B, P, N) of instruments by their readings, standardized.  (B, P, N)"""
        tasks, variables, _ = values.shape
        of_leader = values.gather(1, self.leader[:, :, None].expand_as(values))
        quantity = torch.where(self.one_quantity[:, :, None], of_leader, values)
        dials = torch.rand(tasks * variables, 4, generator=generator, device=values.device)
        rows = standardize(quantity).flatten(0, 1)
        rows = torch.where(dials[:, 3:] < 0.5, rows, -rows)
        curve = torch.where(dials[:, 2:3] < 0.5, sinh_arcsinh(rows, dials[:, :2]), squash(rows, dials[:, :2]))
        share = torch.where(self.one_quantity, self.noise_share, 0.0)[:, :, None]
        noise = torch.randn(values.shape, generator=generator, device=values.device)
        shown = (1 - share).sqrt() * standardize(curve).view_as(values) + share.sqrt() * noise
        return torch.where(self.member[:, :, None], standardize(shown), values)


def draw_instruments(present: Tensor, allowed: Tensor, generator: torch.Generator) -> Instruments:
    """Draw groups of 2 to 6 instruments where `present` (B,), from two to 70% of `allowed` (B, P) columns, rather late.

    In three of four cases a group without causes gets an earlier variable that is not an instrument, if there is one.
    """
    tasks, variables = allowed.shape
    device = allowed.device
    uniform = partial(torch.rand, tasks, generator=generator, device=device)
    size = MIN_IN_GROUP + (uniform(1) * (MAX_IN_GROUP - MIN_IN_GROUP + 1)).floor()
    limit = max(MIN_IN_GROUP, int(MAX_SHARE * variables))
    instruments = (size + uniform(1) * (limit - size)).floor().clamp(MIN_IN_GROUP, limit)
    index = torch.arange(variables, device=device).expand(tasks, -1)
    lottery = uniform(variables) - 0.7 * index / variables + 2.0 * ~allowed
    rank = lottery.argsort(1).argsort(1)  # (B, P)
    member = (rank < instruments) & (lottery < 1) & present[:, None]
    group = torch.where(member, torch.div(rank, size, rounding_mode="floor").long(), variables)
    first = torch.full((tasks, variables + 1), variables, device=device).scatter_reduce_(1, group, index, "amin")
    leader = torch.where(member, first.gather(1, group), index)
    # For each leader, the earlier variable with the largest random number.
    luck = uniform(variables, variables) * (allowed & ~member)[:, :, None] * (index[:, :, None] < index[:, None, :])
    luckiest = (luck == luck.amax(1, keepdim=True)) & (luck > 0)
    return Instruments(
        leader=leader,
        member=member,
        one_quantity=uniform(1) < 0.5,
        exact=(uniform(variables) < 0.5).gather(1, leader),
        noise_share=MIN_NOISE_SHARE * (MAX_NOISE_SHARE / MIN_NOISE_SHARE) ** uniform(variables),
        spare=luckiest & member[:, None] & (uniform(1, variables) < 0.75),
    )


def noisy_readings(
    values: Tensor, codes: Tensor | None, noisy: Tensor, generator: torch.Generator
) -> tuple[Tensor, Tensor | None]:
    """Add noise, 2 to 50% of the variance, to the values and codes (B, P, N) of the columns `noisy` (B, P).

    A level is taken for that of another observation with half that share as its probability.
    """
    device = values.device
    share = (0.02 + 0.48 * torch.rand(noisy.shape, generator=generator, device=device))[:, :, None]
    share = torch.where(noisy[:, :, None], share, 0.0)
    noise = torch.randn(values.shape, generator=generator, device=device)
    shown = standardize((1 - share).sqrt() * values + share.sqrt() * noise)
    values = torch.where(noisy[:, :, None], shown, values)
    if codes is None:
        return values, None
    misread = torch.rand(values.shape, generator=generator, device=device) < 0.5 * share
    shown_codes = torch.where(misread, codes.roll(1, 2), codes)  # of another observation
    # If the only observation of a rare level was misread, all are read right instead.
    varied = shown_codes.amax(2, keepdim=True) > shown_codes.amin(2, keepdim=True)
    return values, torch.where(varied, shown_codes, codes)


@dataclass(frozen=True)
class Causes:
    """The causal structure of a run of tasks in generation order, with experiments and instruments."""

    adjacency: Tensor  # (B, P, P) bool, upper triangle: the true graph
    hidden_effects: Tensor  # (B, L, P) bool, the variables that each hidden cause acts on
    environments: Environments | None = None  # these act through the noise of their targets, not by the equations
    regimes: Regimes | None = None
    instruments: Instruments | None = None

    @property
    def hidden(self) -> int:
        """Number of hidden causes, L."""
        return self.hidden_effects.shape[1]

    def parents(self, through_equations: bool) -> Tensor:
        """1 at [b, k, j] where j → k, hidden causes first; no environments if `through_equations`."""  # (B, L+P, L+P)
        adjacency, hidden = self.adjacency, self.hidden
        size = hidden + adjacency.shape[1]
        parents = torch.zeros(len(adjacency), size, size, device=adjacency.device)
        parents[:, hidden:, hidden:] = adjacency.mT
        if through_equations and self.environments is not None:
            parents[:, hidden:, hidden] *= ~self.environments.present[:, None]
        if hidden:
            parents[:, hidden:, :hidden] = self.hidden_effects.mT
        return parents


@dataclass(frozen=True)
class Solution:
    """The variables of a run of tasks in generation order, hidden causes dropped."""

    values: Tensor  # (B, P, N) standardized, including the codes of levels
    explained_variance: Tensor  # (B, P)
    categories: Categories | None = None
    touched: Tensor | None = None  # (B, P) bool, variables that hidden conditions or classes act on
