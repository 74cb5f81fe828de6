"""Tables of nothing but categories: conditional probability tables and noisy gates, as in textbook networks."""

# B tasks, V variables (hidden causes first), T variables before the child, N observations, K levels at most

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from causal_arrow.synthetic.kinds import Categories
from causal_arrow.synthetic.noise import standard_gamma, standardize
from causal_arrow.synthetic.structure import Causes, Solution

# Combinations of levels are told apart by a sum of multiples modulo this prime, larger than any number of levels, so
# that a change of one cause always leads to another row of the table; two changes may lead back to the same one.
TABLE_ROWS = 61
# How much likelier an experiment that shifts a category makes one of its levels: e to this power.
LEVEL_SHIFT = 3.0
# In this share of the tasks half of the variables are all but determined by their causes.
SURE_TASKS = 0.25
SURENESS = 6.0
NEVER = 1e-6  # the probability of what a gate without noise does not do


@dataclass(frozen=True)
class Network:
    """What probabilities are built from: the graph and the choices of a run of tasks."""

    parents: Tensor  # (B, V, V) float, [b, k, j] = 1 where j is a parent of k
    most_levels: Tensor  # (B,) of any variable of a task
    most: int  # the largest of them
    generator: torch.Generator

    def uniform(self, *shape: int) -> Tensor:
        """Unif(0, 1) draws.  (B, *shape)"""
        return torch.rand(len(self.parents), *shape, generator=self.generator, device=self.parents.device)

    def normal(self, *shape: int) -> Tensor:
        """Norm(0, 1) draws.  (B, *shape)"""
        return torch.randn(len(self.parents), *shape, generator=self.generator, device=self.parents.device)


class DiscreteMechanism(Protocol):
    """What DISCRETE_MECHANISMS holds."""

    levels: Tensor  # (B, V) of each variable

    def __init__(self, network: Network) -> None: ...

    def log_odds(self, child: int, earlier: Tensor, observations: int) -> Tensor:
        """Logarithms of what the probabilities of the levels are in proportion to; −∞ for levels that are not there.

        `earlier` (B, T, N) are the codes of the variables before the child.  (B, K, N)
        """
        ...

    @staticmethod
    def draw_width(uniform: Tensor) -> Tensor:
        """Most levels of each task, from Unif(0, 1) draws.  (B,)"""
        ...

    @staticmethod
    def floats_per_observation(width: int, variables: int) -> int:
        """Working memory of one task, for planning."""
        ...


class EarlierVariables:
    """Numbers about the variables before a child, each computed once, from its codes as they come in.

    `numbers_of(new, codes)` gives those of the variables in the slice `new` from their codes (B, ·, N).
    """

    def __init__(self, variables: int, numbers_of: Callable[[slice, Tensor], Tensor]) -> None:
        self.variables, self.numbers_of = variables, numbers_of
        self.numbers: Tensor | None = None  # (B, V, N)
        self.known = 0

    def before(self, child: int, earlier: Tensor) -> Tensor:
        """The numbers of the variables before the child, whose codes are `earlier`.  (B, T, N)"""
        new = slice(self.known, child)
        found = self.numbers_of(new, earlier[:, new])
        if self.numbers is None:
            self.numbers = found.new_empty(len(earlier), self.variables, earlier.shape[2])
        self.numbers[:, new] = found
        self.known = child
        return self.numbers[:, :child]


class ProbabilityTables:
    """Softmax of random logits: a part that each cause adds to and a part for the combination of causes.

    τ (√(1−ρ) Σ_j w_kj s_j(x_j) / m^γ + √ρ R[x]) + c_k, with levels k of the child, scores s_j of the levels of cause j,
    and R one row for each combination x. Norm(0, 1): w, s and R; c ~ Norm(0, σ²), σ ~ Unif(0, 1.5). Once per task: τ
    from 0.7 to 5, even on a log scale; ρ ~ Unif(0, 1), m the number of causes, γ = ½ or 0. Once per child: τ times
    exp(Norm(0, 0.3²)). Levels: two to the most of the task, few more often than many, or all variables alike.

    Real tables of categories also hold variables that are computed from others. In SURE_TASKS of the tasks each child
    is sure with probability ½: its logits are SURENESS times as large, which all but determines its level.
    """

    most_levels = 10

    def __init__(self, network: Network) -> None:
        self.network = network
        variables = network.parents.shape[1]
        most = network.most_levels[:, None]
        self.levels = draw_numbers_of_levels(network)
        self.strength = 0.7 * (5 / 0.7) ** network.uniform(1, 1)
        self.jointly = network.uniform(1, 1)
        self.bias_spread = 1.5 * network.uniform(1, 1)
        causes = network.parents.sum(2).clamp_min(1)  # (B, V)
        self.dilution = torch.where(network.uniform(1) < 0.5, causes.rsqrt(), 1.0)
        self.multiple = 1 + (network.uniform(variables, variables) * (TABLE_ROWS - 1)).floor()
        self.multiple = self.multiple.clamp_max(TABLE_ROWS - 1) * network.parents  # (B, V, V)
        self.scores = network.normal(variables, network.most)  # (B, V, K)
        exists = torch.arange(network.most, device=most.device) < self.levels[:, :, None]
        mean = (self.scores * exists).sum(2, keepdim=True) / self.levels[:, :, None]
        deviation = ((self.scores - mean).square() * exists).sum(2, keepdim=True) / self.levels[:, :, None]
        self.scores = (self.scores - mean) * deviation.clamp_min(1e-6).rsqrt()
        self.exists = exists
        self.sureness = torch.where(draw_sure(network), SURENESS, 1.0)  # (B, V)
        self.scored = EarlierVariables(variables, lambda new, codes: self.scores[:, new].gather(2, codes.long()))

    def log_odds(self, child: int, earlier: Tensor, observations: int) -> Tensor:
        network, most = self.network, self.network.most
        strength = self.strength * torch.exp(0.3 * network.normal(1, 1))
        logits = self.bias_spread * network.normal(most, 1)
        if child:
            weights = network.normal(most, child) * network.parents[:, child, None, :child]
            alone = (
                torch.bmm(weights, self.scored.before(child, earlier)) * self.dilution[:, child, None, None]
            )  # (B, K, N)
            row = torch.bmm(self.multiple[:, child, None, :child], earlier).remainder_(TABLE_ROWS).long()  # (B, 1, N)
            together = network.normal(most, TABLE_ROWS).gather(2, row.expand(-1, most, -1))
            has_causes = network.parents[:, child].any(1)[:, None, None]
            signal = (1 - self.jointly).sqrt() * alone + self.jointly.sqrt() * together * has_causes
            logits = logits + strength * self.sureness[:, child, None, None] * signal
        return torch.where(self.exists[:, child, :, None], logits, -math.inf).expand(-1, -1, observations)

    @staticmethod
    def draw_width(uniform: Tensor) -> Tensor:
        most = ProbabilityTables.most_levels
        return (2 + (most - 1) * uniform.square()).floor().clamp(max=most)

    @staticmethod
    def floats_per_observation(width: int, variables: int) -> int:
        return 4 * variables + 8 * width


class DirichletTables:
    """Probability tables that tell nothing beyond the Markov equivalence class of their graph.

    A variable with r levels whose causes have q combinations of levels has, for each combination and independently of
    all else, probabilities from Dirichlet(α / (q r), ..., α / (q r)). This is the prior of the score BDeu (Heckerman,
    Geiger and Chickering, 1995): it is what a Dirichlet(α / m, ...) law of the m joint combinations of any variables
    gives to one of them given the others, so two graphs of one equivalence class give tables the same law.

    α decides how strong effects are: below q r a combination favors few levels, above it all are alike. It is drawn
    once per task, from 2 to 100, even on a log scale. Levels as in ProbabilityTables.
    """

    least_size, most_size = 2.0, 100.0

    def __init__(self, network: Network) -> None:
        self.network = network
        variables = network.parents.shape[1]
        self.levels = draw_numbers_of_levels(network)
        self.exists = torch.arange(network.most, device=self.levels.device) < self.levels[:, :, None]
        self.size = self.least_size * (self.most_size / self.least_size) ** network.uniform(1)
        combinations = torch.bmm(network.parents, self.levels.log()[:, :, None])[:, :, 0]  # (B, V), log q
        self.log_concentration = self.size.log() - combinations - self.levels.log()
        # Combinations are told apart by sums of large random integers, exact in float64.
        self.multiple = (network.uniform(variables, variables).double() * 2**24).floor() * network.parents
        self.codes = EarlierVariables(variables, lambda _, codes: codes.double())

    def log_odds(self, child: int, earlier: Tensor, observations: int) -> Tensor:
        network, most = self.network, self.network.most
        row = earlier.new_zeros(len(self.levels), observations, dtype=torch.int64)
        if child:
            codes = self.codes.before(child, earlier)
            row = dense_ranks(torch.bmm(self.multiple[:, child, None, :child], codes)[:, 0])
        # Gamma(a) is Gamma(a + 1) · U^(1/a); its logarithm does not underflow where a is small.
        concentration = self.log_concentration[:, child, None, None].exp().clamp_min(1e-30)
        shape = (concentration + 1).expand(-1, most, observations)
        logits = standard_gamma(shape, network.generator).log()
        logits = logits + network.uniform(most, observations).clamp_min(1e-30).log() / concentration
        logits = torch.where(self.exists[:, child, :, None], logits, -math.inf)
        return logits.gather(2, row[:, None].expand(-1, most, -1))

    @staticmethod
    def draw_width(uniform: Tensor) -> Tensor:
        return ProbabilityTables.draw_width(uniform)

    @staticmethod
    def floats_per_observation(width: int, variables: int) -> int:
        return 6 * variables + 12 * width


class NoisyGates:
    """Noisy OR and noisy AND of yes/no causes, with rare roots.

    A cause is active where it has level 1 or, for a fifth of the edges, level 0. Level 1 of the child has probability
        OR: 1 − (1 − leak) Π_active (1 − w)        AND: (1 − leak) Π_inactive (1 − w)
    with w ~ Unif(0.4, 0.99) and leaks from 0.001 to 0.1, even on a log scale. Roots have level 1 in 1 to 10% of the
    observations (60% of the roots), even on a log scale, or in Unif(10%, 90%). In SURE_TASKS of the tasks each gate is
    sure with probability ½: w is 1 and it has no leak.
    """

    def __init__(self, network: Network) -> None:
        self.network = network
        tasks, variables, _ = network.parents.shape
        self.levels = torch.full((tasks, variables), 2, device=network.parents.device)
        resistance = -torch.log1p(-(0.4 + 0.59 * network.uniform(variables, variables)))  # (B, V, V)
        is_or = network.uniform(variables, 1) < 0.6
        reversed_edge = network.uniform(variables, variables) < 0.2
        leak = -torch.log1p(-0.001 * 100 ** network.uniform(variables))
        sure = draw_sure(network)
        resistance = torch.where(sure[:, :, None], -math.log(NEVER), resistance) * network.parents
        leak = torch.where(sure, NEVER, leak)
        # What counts is the number of active causes for OR, of inactive ones for AND: count level 1 or count level 0.
        counts_zero = reversed_edge == is_or
        self.slope = torch.where(counts_zero, -resistance, resistance)
        self.base = (resistance * counts_zero).sum(2)  # (B, V)
        common = 0.1 + 0.8 * network.uniform(variables)
        rare = 0.01 * 10 ** network.uniform(variables)
        root = -torch.log1p(-torch.where(network.uniform(variables) < 0.6, rare, common))
        is_root = network.parents.sum(2) == 0
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

    @staticmethod
    def draw_width(uniform: Tensor) -> Tensor:
        return torch.full_like(uniform, 2)

    @staticmethod
    def floats_per_observation(width: int, variables: int) -> int:
        return 3 * variables + 8 * width


DISCRETE_MECHANISMS: Mapping[str, type[DiscreteMechanism]] = {
    "probability_tables": ProbabilityTables,
    "noisy_gates": NoisyGates,
    "dirichlet_tables": DirichletTables,
}


def draw_sure(network: Network) -> Tensor:
    """Which variables are all but determined by their causes.  (B, V)"""
    return (network.uniform(1) < SURE_TASKS) & (network.uniform(network.parents.shape[1]) < 0.5)


def draw_numbers_of_levels(network: Network) -> Tensor:
    """Two to the most of the task, few more often than many, or all variables alike.  (B, V)"""
    most = network.most_levels[:, None]
    drawn = 2 + (network.uniform(network.parents.shape[1]).square() * (most - 1)).floor()
    return torch.where(network.uniform(1) < 0.3, most, torch.minimum(drawn, most)).long()


def dense_ranks(keys: Tensor) -> Tensor:
    """For each entry of a row, how many smaller values the row has: equal entries have equal ranks.  (B, N)"""
    ascending, place = keys.sort(1)
    steps = torch.nn.functional.pad(ascending[:, 1:] != ascending[:, :-1], (1, 0))
    return torch.empty_like(place).scatter_(1, place, steps.long().cumsum(1))


def draw_levels(log_odds: Tensor, levels: Tensor, generator: torch.Generator) -> Tensor:
    """Codes with these log odds, below the number of `levels` (B,).  (B, K, N) -> (B, N)"""
    below = log_odds.softmax(1).cumsum_(1)
    uniform = torch.rand(below.shape[0], 1, below.shape[2], generator=generator, device=below.device)
    # Rounding may leave the sum a little below 1.
    return torch.minimum((uniform > below).sum(1), levels[:, None] - 1)


def never_constant(codes: Tensor, levels: Tensor) -> Tensor:
    """The codes (B, N), with another level for the first observation where all have the same.  (B, N)"""
    constant = codes.amax(1) == codes.amin(1)
    first = torch.where(constant, (codes[:, 0] + 1) % levels, codes[:, 0])
    return torch.cat([first[:, None], codes[:, 1:]], 1)


def solve_discrete(
    counts: Sequence[int], most_levels: Tensor, most: int, causes: Causes, observations: int, generator: torch.Generator
) -> Solution:
    """Data for tasks of categories, `counts` of them by each of DISCRETE_MECHANISMS, one after the other.

    Explained variances are 0: levels have no variance.
    """
    parents, hidden = causes.parents(through_equations=False), causes.hidden
    tasks, variables, _ = parents.shape
    runs: list[tuple[slice, DiscreteMechanism]] = []
    first = 0
    for mechanism, count in zip(DISCRETE_MECHANISMS.values(), counts, strict=True):
        if count:
            run = slice(first, first + count)
            runs.append((run, mechanism(Network(parents[run], most_levels[run], most, generator))))
            first += count
    levels = torch.cat([mechanism.levels for _, mechanism in runs])  # (B, V)
    codes = torch.zeros(tasks, variables, observations, device=parents.device)  # numbers, for products
    for child in range(variables):
        log_odds = torch.cat(
            [_padded(mechanism.log_odds(child, codes[run, :child], observations), most) for run, mechanism in runs]
        )
        code = draw_levels_in_experiment(log_odds, levels[:, child], causes, child - hidden, generator)
        codes[:, child] = never_constant(code, levels[:, child])
    seen, seen_levels = codes[:, hidden:], levels[:, hidden:]
    categories = Categories(seen.long(), seen_levels, torch.zeros_like(seen_levels, dtype=torch.bool), most)
    return Solution(standardize(seen), torch.zeros(seen_levels.shape, device=seen.device), categories)


def _padded(log_odds: Tensor, most: int) -> Tensor:
    """With levels that are not there up to the most.  (B, K, N)"""
    return torch.nn.functional.pad(log_odds, (0, 0, 0, most - log_odds.shape[1]), value=-math.inf)


def draw_levels_in_experiment(
    log_odds: Tensor, levels: Tensor, causes: Causes, variable: int, generator: torch.Generator
) -> Tensor:
    """Codes with these log odds, but for what experiments do to the variable; hidden ones are below 0.  (B, N)"""
    regimes = causes.regimes
    if regimes is None or variable < 0:
        return draw_levels(log_odds, levels, generator)
    # Where numbers are set to a value from −3 to 3 or pushed, levels are set to, or made likelier, one of them.
    target = ((regimes.value[:, variable].gather(1, regimes.member) + 3) / 6 * levels[:, None]).long()
    target = torch.minimum(target, levels[:, None] - 1)  # (B, N)
    shifted = (regimes.push[:, variable] != 0).gather(1, regimes.member)
    log_odds = log_odds.scatter_add(1, target[:, None], LEVEL_SHIFT * shifted[:, None].to(log_odds.dtype))
    dials = torch.rand(2, *target.shape, generator=generator, device=target.device)
    anything = torch.minimum((dials[0] * levels[:, None]).long(), levels[:, None] - 1)
    is_set = regimes.sets[:, variable].gather(1, regimes.member)
    set_to = torch.where(dials[1] < regimes.looseness, anything, target)
    return torch.where(is_set, set_to, draw_levels(log_odds, levels, generator))
