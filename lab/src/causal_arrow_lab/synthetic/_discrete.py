"""Tables of categories only: conditional probability tables and noisy gates, as in textbook networks."""

# B tasks, V variables (hidden causes first), T variables before the child, N observations, K levels at most

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import torch
from torch import Tensor
from torch.nn.functional import pad

from causal_arrow_lab.synthetic._columns import Categories
from causal_arrow_lab.synthetic._noise import runs_of, standard_gamma, standardize
from causal_arrow_lab.synthetic._structure import Causes, Solution
from causal_arrow_lab.synthetic.mechanisms import EarlierVariables, Floats

# Combinations of levels are identified by a sum of multiples modulo this prime, larger than any number of levels, so
# that a change of one cause always leads to another row of the table; two changes may lead back to the same one.
TABLE_ROWS = 61
LEVEL_SHIFT = 3.0  # an experiment that shifts a category multiplies the odds of one of its levels by e to this power
SURE_TASKS = 0.25  # in this share of the tasks, half of the variables are nearly determined by their causes
SURENESS = 6.0
NEVER = 1e-6  # probability of an outcome that a noiseless gate excludes


@dataclass(frozen=True)
class DiscreteTasks:
    """The graphs and choices of a run of tasks."""

    parents: Tensor  # (B, V, V) float, [b, k, j] = 1 where j is a parent of k
    max_levels: Tensor  # (B,) of any variable of a task
    max_of_all: int  # the largest of them
    generator: torch.Generator

    def uniform(self, *shape: int) -> Tensor:
        """Draw Unif(0, 1).  (B, *shape)"""
        return torch.rand(len(self.parents), *shape, generator=self.generator, device=self.parents.device)

    def normal(self, *shape: int) -> Tensor:
        """Draw Norm(0, 1).  (B, *shape)"""
        return torch.randn(len(self.parents), *shape, generator=self.generator, device=self.parents.device)


class DiscreteMechanism(Protocol):
    """An entry of DISCRETE_MECHANISMS: probabilities of levels given the levels of the causes."""

    max_levels: ClassVar[int] = 10
    floats: ClassVar[Floats]
    levels: Tensor  # (B, V) number of levels of each variable

    def __init__(self, tasks: DiscreteTasks) -> None: ...

    def log_odds(self, child: int, earlier: Tensor, observations: int) -> Tensor:
        """Log odds of the child's levels, −∞ where there is none, from the codes `earlier` (B, T, N).  (B, K, N)"""
        ...

    @classmethod
    def draw_width(cls, uniform: Tensor) -> Tensor:
        """Draw the largest number of levels of each task, few more often, given Unif(0, 1) numbers.  (B,)"""
        return (2 + (cls.max_levels - 1) * uniform.square()).floor().clamp(max=cls.max_levels)


class ProbabilityTables(DiscreteMechanism):
    """Softmax of random logits: a part to which each cause adds and a part for the combination of causes.

    τ (√(1−ρ) Σ_j w_kj s_j(x_j) / m^γ + √ρ R[x]) + c_k, with levels k of the child, scores s_j of the levels of cause j,
    and R one row for each combination x. Norm(0, 1): w, s and R; c ~ Norm(0, σ²), σ ~ Unif(0, 1.5). Once per task: τ
    from 0.7 to 5, even on a log scale; ρ ~ Unif(0, 1), m the number of causes, γ = ½ or 0. Once per child: τ times
    exp(Norm(0, 0.3²)). Levels: two to the maximum of the task, few more often than many, or the same for all variables.

    Real tables of categories also hold variables that are computed from others. In SURE_TASKS of the tasks each child
    is sure with probability ½: its logits are SURENESS times as large, which nearly determines its level.
    """

    floats = Floats(variable=4, width=8)

    def __init__(self, tasks: DiscreteTasks) -> None:
        self.tasks = tasks
        variables = tasks.parents.shape[1]
        self.levels = draw_numbers_of_levels(tasks)
        self.strength = 0.7 * (5 / 0.7) ** tasks.uniform(1, 1)
        self.jointly = tasks.uniform(1, 1)
        self.bias_spread = 1.5 * tasks.uniform(1, 1)
        causes = tasks.parents.sum(2).clamp_min(1)  # (B, V)
        self.dilution = torch.where(tasks.uniform(1) < 0.5, causes.rsqrt(), 1.0)
        self.multiple = 1 + (tasks.uniform(variables, variables) * (TABLE_ROWS - 1)).floor()
        self.multiple = self.multiple.clamp_max(TABLE_ROWS - 1) * tasks.parents  # (B, V, V)
        scores = tasks.normal(variables, tasks.max_of_all)  # (B, V, K)
        self.exists = existing_levels(tasks, self.levels)
        mean = (scores * self.exists).sum(2, keepdim=True) / self.levels[:, :, None]
        deviation = ((scores - mean).square() * self.exists).sum(2, keepdim=True) / self.levels[:, :, None]
        scores = (scores - mean) * deviation.clamp_min(1e-6).rsqrt()
        self.sureness = torch.where(draw_sure(tasks), SURENESS, 1.0)  # (B, V)
        self.scored = EarlierVariables(variables, lambda new, codes: scores[:, new].gather(2, codes.long()))

    def log_odds(self, child: int, earlier: Tensor, observations: int) -> Tensor:
        tasks, levels = self.tasks, self.tasks.max_of_all
        strength = self.strength * torch.exp(0.3 * tasks.normal(1, 1))
        logits = self.bias_spread * tasks.normal(levels, 1)
        if child:
            weights = tasks.normal(levels, child) * tasks.parents[:, child, None, :child]
            scores = self.scored.before(child, earlier)
            added = torch.bmm(weights, scores) * self.dilution[:, child, None, None]  # (B, K, N)
            row = torch.bmm(self.multiple[:, child, None, :child], earlier).remainder_(TABLE_ROWS).long()  # (B, 1, N)
            joint = tasks.normal(levels, TABLE_ROWS).gather(2, row.expand(-1, levels, -1))
            has_causes = tasks.parents[:, child].any(1)[:, None, None]
            signal = (1 - self.jointly).sqrt() * added + self.jointly.sqrt() * joint * has_causes
            logits = logits + strength * self.sureness[:, child, None, None] * signal
        return torch.where(self.exists[:, child, :, None], logits, -math.inf).expand(-1, -1, observations)


class DirichletTables(DiscreteMechanism):
    """Probability tables that identify the Markov equivalence class of their graph and nothing more.

    A variable with r levels whose causes have q combinations of levels has, for each combination and independently of
    everything else, probabilities from Dirichlet(α / (q r), ..., α / (q r)). This is the prior of the score BDeu
    (Heckerman, Geiger and Chickering, 1995): if the m joint combinations of any variables have probabilities from
    Dirichlet(α / m, ...), it is the distribution of one of them given the others, so two graphs of one equivalence
    class give tables the same distribution.

    α sets the strength of effects: below q r a combination favors few levels, above it all are alike. It is drawn once
    per task, from 2 to 100, even on a log scale. Levels as in ProbabilityTables.
    """

    min_size, max_size = 2.0, 100.0
    floats = Floats(variable=6, width=12)

    def __init__(self, tasks: DiscreteTasks) -> None:
        self.tasks = tasks
        variables = tasks.parents.shape[1]
        self.levels = draw_numbers_of_levels(tasks)
        self.exists = existing_levels(tasks, self.levels)
        self.size = self.min_size * (self.max_size / self.min_size) ** tasks.uniform(1)
        combinations = torch.bmm(tasks.parents, self.levels.log()[:, :, None])[:, :, 0]  # (B, V), log q
        self.log_concentration = self.size.log() - combinations - self.levels.log()
        # Combinations are identified by sums of large random integers, exact in float64.
        self.multiple = (tasks.uniform(variables, variables).double() * 2**24).floor() * tasks.parents
        self.codes = EarlierVariables(variables, lambda _, codes: codes.double())

    def log_odds(self, child: int, earlier: Tensor, observations: int) -> Tensor:
        tasks, levels = self.tasks, self.tasks.max_of_all
        row = earlier.new_zeros(len(self.levels), observations, dtype=torch.int64)
        if child:
            codes = self.codes.before(child, earlier)
            row = dense_ranks(torch.bmm(self.multiple[:, child, None, :child], codes)[:, 0])
        # Gamma(a) is Gamma(a + 1) · U^(1/a); its logarithm does not underflow where a is small.
        concentration = self.log_concentration[:, child, None, None].exp().clamp_min(1e-30)
        shape = (concentration + 1).expand(-1, levels, observations)
        logits = standard_gamma(shape, tasks.generator).log()
        logits = logits + tasks.uniform(levels, observations).clamp_min(1e-30).log() / concentration
        logits = torch.where(self.exists[:, child, :, None], logits, -math.inf)
        return logits.gather(2, row[:, None].expand(-1, levels, -1))


class NoisyGates(DiscreteMechanism):
    """Noisy OR and noisy AND of binary causes, with rare roots.

    A cause is active where it has level 1 or, for a fifth of the edges, level 0. Level 1 of the child has probability
        OR: 1 − (1 − leak) Π_active (1 − w)        AND: (1 − leak) Π_inactive (1 − w)
    with w ~ Unif(0.4, 0.99) and leaks from 0.001 to 0.1, even on a log scale. Roots have level 1 in 1 to 10% of the
    observations (60% of the roots), even on a log scale, or in Unif(10%, 90%). In SURE_TASKS of the tasks each gate is
    sure with probability ½: w is 1 and it has no leak.
    """

    max_levels = 2
    floats = Floats(variable=3, width=8)

    def __init__(self, tasks: DiscreteTasks) -> None:
        variables = tasks.parents.shape[1]
        self.levels = torch.full((len(tasks.parents), variables), 2, device=tasks.parents.device)
        resistance = -torch.log1p(-(0.4 + 0.59 * tasks.uniform(variables, variables)))  # (B, V, V)
        is_or = tasks.uniform(variables, 1) < 0.6
        reversed_edge = tasks.uniform(variables, variables) < 0.2
        leak = -torch.log1p(-0.001 * 100 ** tasks.uniform(variables))
        sure = draw_sure(tasks)
        resistance = torch.where(sure[:, :, None], -math.log(NEVER), resistance) * tasks.parents
        leak = torch.where(sure, NEVER, leak)
        # OR depends on the number of active causes, AND on that of inactive ones: count level 1 or count level 0.
        counts_zero = reversed_edge == is_or
        self.slope = torch.where(counts_zero, -resistance, resistance)
        self.base = (resistance * counts_zero).sum(2)  # (B, V)
        common = 0.1 + 0.8 * tasks.uniform(variables)
        rare = 0.01 * 10 ** tasks.uniform(variables)
        root = -torch.log1p(-torch.where(tasks.uniform(variables) < 0.6, rare, common))
        is_root = tasks.parents.sum(2) == 0
        self.base = torch.where(is_root, root, self.base + leak)
        self.is_or = is_or[:, :, 0] | is_root

    def log_odds(self, child: int, earlier: Tensor, observations: int) -> Tensor:
        total = self.base[:, child, None].expand(-1, observations)
        if child:
            total = total + torch.bmm(self.slope[:, child, None, :child], earlier)[:, 0]
        none = -total.clamp_min(1e-6)  # (B, N), log Π (1 − w)
        some = torch.log(-torch.expm1(none))
        is_or = self.is_or[:, child, None]
        return torch.stack([torch.where(is_or, none, some), torch.where(is_or, some, none)], 1)


DISCRETE_MECHANISMS: Mapping[str, type[DiscreteMechanism]] = {
    "probability_tables": ProbabilityTables,
    "noisy_gates": NoisyGates,
    "dirichlet_tables": DirichletTables,
}


def draw_sure(tasks: DiscreteTasks) -> Tensor:
    """Draw which variables are nearly determined by their causes.  (B, V)"""
    return (tasks.uniform(1) < SURE_TASKS) & (tasks.uniform(tasks.parents.shape[1]) < 0.5)


def draw_numbers_of_levels(tasks: DiscreteTasks) -> Tensor:
    """Draw two to the maximum of the task, few more often than many, or the same for all variables.  (B, V)"""
    limit = tasks.max_levels[:, None]
    drawn = 2 + (tasks.uniform(tasks.parents.shape[1]).square() * (limit - 1)).floor()
    return torch.where(tasks.uniform(1) < 0.3, limit, torch.minimum(drawn, limit)).long()


def existing_levels(tasks: DiscreteTasks, levels: Tensor) -> Tensor:
    """True for those of the K codes that are levels of a variable.  (B, V) -> (B, V, K)"""
    return torch.arange(tasks.max_of_all, device=levels.device) < levels[:, :, None]


def dense_ranks(keys: Tensor) -> Tensor:
    """Rank the entries of each row by the number of smaller values; equal entries have equal ranks.  (B, N)"""
    ascending, index = keys.sort(1)
    steps = pad(ascending[:, 1:] != ascending[:, :-1], (1, 0))
    return torch.empty_like(index).scatter_(1, index, steps.long().cumsum(1))


def draw_levels(log_odds: Tensor, levels: Tensor, generator: torch.Generator) -> Tensor:
    """Draw codes with these log odds, below the number of `levels` (B,).  (B, K, N) -> (B, N)"""
    below = log_odds.softmax(1).cumsum_(1)
    uniform = torch.rand(below.shape[0], 1, below.shape[2], generator=generator, device=below.device)
    # Rounding may leave the sum a little below 1.
    return torch.minimum((uniform > below).sum(1), levels[:, None] - 1)


def never_constant(codes: Tensor, levels: Tensor) -> Tensor:
    """Give the first observation another level where all codes (B, N) are equal.  (B, N)"""
    constant = codes.amax(1) == codes.amin(1)
    first = torch.where(constant, (codes[:, 0] + 1) % levels, codes[:, 0])
    return torch.cat([first[:, None], codes[:, 1:]], 1)


def solve_discrete(
    counts: Sequence[int],
    max_levels: Tensor,
    max_of_all: int,
    causes: Causes,
    observations: int,
    generator: torch.Generator,
) -> Solution:
    """Solve tasks of categories, `counts` of them by each of DISCRETE_MECHANISMS. Levels have no explained variance."""
    parents, hidden = causes.parents(through_equations=False), causes.hidden
    tasks, variables, _ = parents.shape
    known = list(DISCRETE_MECHANISMS.values())
    runs = [
        (run, known[code](DiscreteTasks(parents[run], max_levels[run], max_of_all, generator)))
        for code, run in runs_of(counts)
    ]
    levels = torch.cat([mechanism.levels for _, mechanism in runs])  # (B, V)
    codes = torch.zeros(tasks, variables, observations, device=parents.device)  # numbers, for products
    for child in range(variables):
        parts = [mechanism.log_odds(child, codes[run, :child], observations) for run, mechanism in runs]
        missing = [(0, 0, 0, max_of_all - part.shape[1]) for part in parts]  # levels that do not exist
        log_odds = torch.cat([pad(part, size, value=-math.inf) for part, size in zip(parts, missing, strict=True)])
        code = draw_levels_in_experiment(log_odds, levels[:, child], causes, child - hidden, generator)
        codes[:, child] = never_constant(code, levels[:, child])
    seen, seen_levels = codes[:, hidden:], levels[:, hidden:]
    categories = Categories(seen.long(), seen_levels, torch.zeros_like(seen_levels, dtype=torch.bool), max_of_all)
    return Solution(standardize(seen), torch.zeros(seen_levels.shape, device=seen.device), categories)


def draw_levels_in_experiment(
    log_odds: Tensor, levels: Tensor, causes: Causes, variable: int, generator: torch.Generator
) -> Tensor:
    """Draw codes with these log odds under the experiments on a variable, < 0 for hidden causes.  (B, N)"""
    regimes = causes.regimes
    if regimes is None or variable < 0:
        return draw_levels(log_odds, levels, generator)
    # Numbers are set to a value from −3 to 3 or pushed; here one level is set or made more probable instead.
    target = ((regimes.value[:, variable].gather(1, regimes.member) + 3) / 6 * levels[:, None]).long()
    target = torch.minimum(target, levels[:, None] - 1)  # (B, N)
    shifted = (regimes.push[:, variable] != 0).gather(1, regimes.member)
    log_odds = log_odds.scatter_add(1, target[:, None], LEVEL_SHIFT * shifted[:, None].to(log_odds.dtype))
    dials = torch.rand(2, *target.shape, generator=generator, device=target.device)
    anything = torch.minimum((dials[0] * levels[:, None]).long(), levels[:, None] - 1)
    is_set = regimes.sets[:, variable].gather(1, regimes.member)
    set_to = torch.where(dials[1] < regimes.looseness, anything, target)
    return torch.where(is_set, set_to, draw_levels(log_odds, levels, generator))
