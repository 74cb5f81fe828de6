"""Causal orders under constraints: their distribution, the most probable one, and one arranged as people expect.

An order π of the variables has the weight

    log w(π) = Σ_i [s_π(i) − log Σ_{k ≥ i} exp s_π(k)] − Σ_{j before k} penalty[j, k]

a Plackett–Luce distribution (section 2 of the paper) with a price on each pair that is ordered against the knowledge.
An infinite price makes the pair's order compulsory; such prices must contain their transitive consequences.

Plackett–Luce is a race: variable j arrives after an exponential time of rate exp s_j, and the order is the order of
arrival. With prices the race comes apart:

- variables that no chain of prices connects race independently of each other;
- where all of one set must come before all others, one race follows the other, and the first is one on condition that
  all arrive before the next race's first;
- without prices among its variables such a race is an integral over the time by which it must be over;
- of few variables there are few sets that can be placed first, and sums over that lattice are exact.

Only elsewhere are answers approximate: from an integral over the arrival times of a few variables, such
as roots, which take part in every price, or from moving one variable at a time.

The order of largest weight sorts the scores where there are no prices. With them the problem is hard in general (the
feedback arc set problem), but it mostly splits into small ones, which dynamic programming over the lattice solves.
"""

# P variables, C orders worked on side by side, S sets of variables in a layer of the lattice, K clocks, T times

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from causal_arrow.graphs.dag import positions_in, transitive_closure
from causal_arrow.graphs.graph_distribution import sigmoid

Floats = NDArray[np.float64]
Integers = NDArray[np.intp]
Bools = NDArray[np.bool_]

# Sets of variables that exact answers may visit. Twelve variables without any compulsory order have 4096 of them.
EXACT_SETS = 8192
SAMPLING_SWEEPS = 5
# If too many variables take part in prices, probabilities are means over AVERAGED_SWEEPS sweeps of AVERAGED_ORDERS.
AVERAGED_SWEEPS = 10
AVERAGED_ORDERS = 1500
AVERAGED_CELLS = 50_000
# Points of the integral over the time by which a race must be over, and how far below its peak they reach (log).
TIMES = 160
TIMES_DEPTH = 45.0
# Stands for an infinite price where prices are subtracted: larger than any sum of others, small enough to keep digits.
COMPULSORY = 1e9
# The most probable order, where that is not exact: the best of so many, over a sweep at each of these temperatures.
ANNEALED_ORDERS = 32
ANNEALING = (1.0, 0.8, 0.6, 0.4, 0.3, 0.2, 0.1, 0.05)


def log_weight(orders: Integers, scores: Floats, penalty: Floats, later_mass: float = -np.inf) -> Floats:
    """log w(π) of each order; `later_mass` is the log of Σ exp s over variables that follow all of these.  (C,)"""
    placed_scores = scores[orders]
    plackett_luce = (placed_scores - mass_from(placed_scores, later_mass)).sum(axis=1)
    earlier, later = np.triu_indices(orders.shape[1], k=1)
    return np.asarray(plackett_luce - penalty[orders[:, earlier], orders[:, later]].sum(axis=1))


def sample_orders(scores: Floats, penalty: Floats, count: int, generator: np.random.Generator) -> tuple[Integers, bool]:
    """Orders drawn with probability ∝ w(π), and whether that is their exact distribution.  (count, P)"""
    race = _race(scores - scores.max(initial=-np.inf), penalty)
    return race.draw(count, generator), race.exact


def moved_after(
    orders: Integers, scores: Floats, penalty: Floats, first: int, second: int, generator: np.random.Generator
) -> Integers:
    """The same orders with `second` after `first`: its place is drawn anew given the order of the others.  (C, P)

    The order of the others keeps the distribution that it has without this. All that `second` must precede has to
    follow `first`, so that there is a place.
    """
    position = positions_in(orders)
    early = position[:, second] < position[:, first]
    moving = orders[early]
    others = moving[moving != second].reshape(len(moving), orders.shape[1] - 1)  # (C, P - 1)
    masses = mass_from(scores[others], -np.inf)
    none, everything = np.zeros((len(moving), 1)), np.full((len(moving), 1), -np.inf)
    # log w of each place of `second` among the others, up to a constant.  (C, P)
    passed = np.cumsum(np.logaddexp(0, scores[second] - masses) + penalty[others, second], axis=1)
    passing = np.cumsum(penalty[second, others][:, ::-1], axis=1)[:, ::-1]
    weights = -np.concatenate([none, passed], axis=1) - np.concatenate([passing, none], axis=1)
    weights -= np.logaddexp(scores[second], np.concatenate([masses, everything], axis=1))
    weights[np.arange(orders.shape[1]) < position[early, first, None]] = -np.inf
    places = (weights + gumbel(generator, weights.shape)).argmax(axis=1)
    moved: Integers = orders.copy()
    moved[early] = _inserted(others, second, places)
    return moved


def precedence_probabilities(scores: Floats, penalty: Floats) -> Floats:
    """Probability that j comes before k when orders have probability ∝ w(π).  (P, P)"""
    # Sorted, so that approximate answers are the same however the variables are arranged.
    finite = np.where(np.isinf(penalty), 0.0, penalty)
    sorting = np.lexsort((finite.sum(axis=0), finite.sum(axis=1), -scores))
    race = _race(scores[sorting] - scores.max(initial=-np.inf), penalty[np.ix_(sorting, sorting)])
    back = np.argsort(sorting)
    return race.before[np.ix_(back, back)]


# Coming apart


class _Race(Protocol):
    """A distribution over the orders of n variables, which may have to arrive before others."""

    @property
    def exact(self) -> bool:
        """Whether the orders drawn last, and probabilities, follow the distribution exactly."""

    @property
    def before(self) -> Floats:
        """Probability that j comes before k, zero on the diagonal.  (n, n)"""

    def draw(self, count: int, generator: np.random.Generator) -> Integers:
        """Draw orders.  (count, n)"""

    def ahead_of(self, clocks: Floats) -> tuple[Floats, Floats]:
        """Probability that j, and that all, arrive before exponential clocks of these log rates.  (n, K), (K,)"""


def _race(s: Floats, cost: Floats, later_mass: float = -np.inf) -> _Race:
    """The race of variables all of which must arrive before others of this total mass."""
    if not cost.any():
        return _Free(s, later_mass)
    if len(cuts := _cuts(cost)) > 1:
        parts: list[tuple[Integers, _Race]] = []
        for group in reversed(cuts):
            parts.insert(0, (group, _race(s[group], cost[np.ix_(group, group)], later_mass)))
            later_mass = np.logaddexp.reduce(np.append(s[group], later_mass))
        return _InTurn(s, cost, parts)
    if later_mass == -np.inf and len(groups := _groups(cost)) > 1:
        return _Independent(s, cost, [(group, _race(s[group], cost[np.ix_(group, group)])) for group in groups])
    return _undivided(s, cost, later_mass)


def _undivided(s: Floats, cost: Floats, later_mass: float) -> _Race:
    layers = lattice(s, cost, np.isinf(cost).T, later_mass)
    return _Approximate(s, cost, later_mass) if layers is None else _Exact(layers)


def _cuts(cost: Floats) -> list[Integers]:
    """The variables in consecutive sets, as small as can be, each of which must come before all of the next."""
    first = np.isinf(cost).T  # [j, k]: j comes before k
    order = np.argsort(first.sum(axis=0), kind="stable")
    sorted_first = first[np.ix_(order, order)]
    cuts = [m for m in range(1, len(cost)) if sorted_first[:m, m:].all()]
    return np.split(order, cuts)


def _groups(cost: Floats) -> list[Integers]:
    """The variables, split into those that prices connect; the last group has all those without a price."""
    linked = (cost > 0) | (cost > 0).T
    free = ~linked.any(axis=0)
    linked |= np.eye(len(cost), dtype=bool)
    groups = [np.flatnonzero(group) for group in np.unique(transitive_closure(linked)[~free], axis=0)]
    return [*groups, np.flatnonzero(free)] if free.any() else groups


@dataclass(eq=False)
class _Parted:
    """Races of some of the variables each."""

    s: Floats
    cost: Floats
    parts: list[tuple[Integers, _Race]]

    @property
    def exact(self) -> bool:
        return all(race.exact for _, race in self.parts)


class _InTurn(_Parted):
    """Races one after the other."""

    @cached_property
    def before(self) -> Floats:
        before: Floats = np.isinf(self.cost.T).astype(np.float64)
        for group, race in self.parts:
            before[np.ix_(group, group)] = race.before
        return before

    def draw(self, count: int, generator: np.random.Generator) -> Integers:
        return np.concatenate([group[race.draw(count, generator)] for group, race in self.parts], axis=1)

    def ahead_of(self, clocks: Floats) -> tuple[Floats, Floats]:
        ahead, passed = np.empty((len(self.s), len(clocks))), np.ones(len(clocks))
        for group, race in self.parts:
            of_each, of_all = race.ahead_of(clocks)
            ahead[group] = passed * of_each
            passed = passed * of_all
        return ahead, passed


class _Independent(_Parted):
    """Races side by side, which nothing has to follow."""

    @cached_property
    def before(self) -> Floats:
        before = np.zeros_like(self.cost)
        for group, race in self.parts:
            before[np.ix_(group, group)] = race.before
        for (one, race), (other, rival) in itertools.combinations(self.parts, 2):
            if isinstance(rival, _Free):
                found, _ = race.ahead_of(self.s[other])
            else:
                both = np.concatenate([one, other])
                joint = _undivided(self.s[both], self.cost[np.ix_(both, both)], -np.inf)
                if isinstance(joint, _Approximate) and joint.by_times is None:
                    found = self._averaged[np.ix_(one, other)]
                else:
                    found = joint.before[: len(one), len(one) :]
            before[np.ix_(one, other)] = found
            before[np.ix_(other, one)] = 1.0 - found.T
        return before

    @cached_property
    def _averaged(self) -> Floats:
        """`before` from one race of all groups with prices: a race of every two of them would take minutes.  (n, n)"""
        priced = np.flatnonzero(self.cost.any(axis=0) | self.cost.any(axis=1))
        grid, before = np.ix_(priced, priced), np.zeros_like(self.cost)
        before[grid] = _Approximate(self.s[priced], self.cost[grid], -np.inf).before
        return before

    def draw(self, count: int, generator: np.random.Generator) -> Integers:
        variables, times = [], []
        for group, race in self.parts:
            orders = group[race.draw(count, generator)]
            # Given the order, the waits between arrivals are exponential, with the rate of those still to come.
            with np.errstate(over="ignore"):
                waits = generator.standard_exponential(orders.shape) * np.exp(-mass_from(self.s[orders], -np.inf))
                times.append(np.cumsum(waits, axis=1))
            variables.append(orders)
        # Stable: where a wait is lost to rounding, the compulsory order within the group still stands.
        arrival = np.argsort(np.concatenate(times, axis=1), axis=1, kind="stable")
        return np.take_along_axis(np.concatenate(variables, axis=1), arrival, axis=1)

    def ahead_of(self, clocks: Floats) -> tuple[Floats, Floats]:
        ahead = np.empty((len(self.s), len(clocks)))
        for group, race in self.parts:
            ahead[group], _ = race.ahead_of(clocks)
        return ahead, np.full(len(clocks), np.nan)  # nothing follows, so it does not matter when all have arrived


# Without prices


@dataclass(eq=False)
class _Free:
    """A race without prices, on condition that all arrive before the first of those that follow.

    Given the time of that first one, of density ∝ L e^−Lt Π_j (1 − e^−λ_j t) with λ = exp s and L the mass that
    follows, the others are independent.
    """

    s: Floats
    later_mass: float
    exact = True

    @cached_property
    def _deadline(self) -> tuple[Floats, Floats]:
        """Logarithms of times, and their probabilities.  (T,), (T,)"""
        log_times, log_density = self._density(self.later_mass)
        chances = np.exp(log_density - log_density.max())
        return log_times, chances / chances.sum()

    def _density(self, later_mass: float) -> tuple[Floats, Floats]:
        """Equidistant log times, and the logarithms of the density there times their distance.  (T,), (T,)"""

        # Log-concave, and smooth on the plane near the real axis: equidistant points that reach into its tails
        # integrate it, and everything else here, to the last digits.
        def log_density(y: Floats) -> Floats:
            rates = self.s[:, None] - later_mass + y
            arrived = np.log(-np.expm1(-np.exp(np.clip(rates, -40.0, 50.0))))
            # Where the argument underflows, 1 − e^−x is x.
            return np.asarray(y - np.exp(y) + np.where(rates < -30.0, rates, arrived).sum(axis=0))

        n = len(self.s)
        y = np.linspace(-TIMES_DEPTH - 1, np.log(n + 1 + 10 * np.sqrt(n + 1) + 2 * TIMES_DEPTH), 8 * TIMES)
        values = log_density(y)
        inside = np.flatnonzero(values > values.max() - TIMES_DEPTH)
        y = np.linspace(y[max(inside[0] - 1, 0)], y[min(inside[-1] + 1, len(y) - 1)], TIMES)
        return y - later_mass, log_density(y) + np.log(y[1] - y[0])

    @cached_property
    def before(self) -> Floats:
        share = sigmoid(self.s[:, None] - self.s)
        before = share.copy() if self.later_mass == -np.inf else np.zeros_like(share)
        if self.later_mass > -np.inf:
            for log_time, chance in zip(*self._deadline, strict=True):
                before += chance * first_of_two(np.exp(np.minimum(self.s + log_time, 50.0)), share)
        np.fill_diagonal(before, 0.0)
        return before

    def draw(self, count: int, generator: np.random.Generator) -> Integers:
        if self.later_mass == -np.inf:
            return np.argsort(-(self.s + gumbel(generator, (count, len(self.s)))), axis=1)
        log_times, chances = self._deadline
        exponent = self.s + log_times[generator.choice(len(chances), count, p=chances)][:, None]
        uniform = 1.0 - generator.random(exponent.shape)
        rate = np.exp(np.clip(exponent, -30.0, 50.0))
        # The time of arrival, given that it is before the deadline: uniform where the rate is next to nothing.
        arrival = np.where(exponent < -20.0, np.log(uniform), np.log(-np.log1p(uniform * np.expm1(-rate))) - exponent)
        return np.argsort(arrival, axis=1)

    def ahead_of(self, clocks: Floats) -> tuple[Floats, Floats]:
        if self.later_mass == -np.inf:
            return sigmoid(self.s[:, None] - clocks), np.full(len(clocks), np.nan)
        ahead = np.zeros((len(self.s), len(clocks)))
        share = sigmoid(self.s[:, None] - clocks)
        for log_time, chance in zip(*self._deadline, strict=True):
            rates, rivals = (np.exp(np.clip(each + log_time, -600.0, 50.0)) for each in (self.s, clocks))
            of_two = share * np.expm1(-(rates[:, None] + rivals)) / np.expm1(-rates)[:, None]
            ahead += chance * np.where(rates[:, None] + rivals < 1e-8, 1.0, of_two)
        # A clock is one more that everyone must arrive before.
        totals = [np.logaddexp.reduce(self._density(np.logaddexp(self.later_mass, clock))[1]) for clock in clocks]
        return ahead, np.exp(np.array(totals) - np.logaddexp.reduce(self._density(self.later_mass)[1]))


def first_of_two(rates: Floats, share: Floats) -> Floats:
    """Probability that j arrives before k within one unit of time; `share` is λ_j / (λ_j + λ_k).  (n, n)"""
    a, b = rates[:, None], rates[None, :]
    both = np.expm1(-a) * np.expm1(-b)
    direct = -share * np.expm1(-(a + b)) + np.exp(-b) * np.expm1(-a)
    # Next to nothing of a rate makes for a uniform time of arrival; the direct formula would lose its digits.
    safe = np.maximum(a, 1e-12)
    late = (1.0 + np.expm1(-safe) / safe) / -np.expm1(-safe)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(b > 1e-8, direct / both, np.where(a > 1e-8, late, 0.5))


# Exact sums: the lattice of sets that can be placed first


@dataclass(frozen=True)
class Layer:
    """The sets of one size. Placing x after the set in row r weighs `step[r, x]` and leads to row `child[r, x]`."""

    placed: Bools  # (S, P) the sets
    mass: Floats  # (S,) log Σ exp s over what is not placed yet, and what follows it all
    step: Floats  # (S, P) log weight, -inf where x is placed already or must wait
    child: Integers  # (S, P) row in the next layer


def lattice(s: Floats, cost: Floats, first: Bools, later_mass: float) -> list[Layer] | None:
    """The layers from the empty set to all variables, where `first[j, k]` puts j before k; None beyond EXACT_SETS."""
    finite_cost = np.where(np.isfinite(cost), cost, 0.0)
    placed = np.zeros((1, len(s)), dtype=bool)
    layers, visited = [], 1
    for _ in range(len(s)):
        remaining = (~placed).astype(float)
        available = ~placed & (remaining @ first == 0)
        mass = np.logaddexp(np.logaddexp.reduce(np.where(placed, -np.inf, s), axis=1), later_mass)
        step = np.where(available, s - mass[:, None] - remaining @ finite_cost.T, -np.inf)
        rows, chosen = np.nonzero(available)
        grown = placed[rows]
        grown[np.arange(len(rows)), chosen] = True
        following, row_in_next = _distinct_rows(grown)
        visited += len(following)
        if visited > EXACT_SETS:
            return None
        child = np.zeros(step.shape, dtype=np.intp)
        child[rows, chosen] = row_in_next
        layers.append(Layer(placed, mass, step, child))
        placed = following
    return layers


def _distinct_rows(rows: Bools) -> tuple[Bools, Integers]:
    """The distinct rows, and which of them each given row is."""
    padded = np.zeros((len(rows), -(-rows.shape[1] // 64) * 64), dtype=bool)
    padded[:, : rows.shape[1]] = rows
    words = np.packbits(padded, axis=1).view(np.uint64)  # (rows, words): comparing words is faster than comparing cells
    _, where, inverse = np.unique(words, axis=0, return_index=True, return_inverse=True)
    return rows[where], inverse.reshape(-1)


def weights_to_the_end(layers: list[Layer], total: Callable[..., Any]) -> list[Floats]:
    """For each layer the log weight, gathered by `total`, of all orders that place x after the set.  (S, P) each"""
    through = []
    completion = np.zeros(1)
    for layer in reversed(layers):
        through.append(layer.step + completion[layer.child])
        completion = total(through[-1], axis=1)
    return through[::-1]


def walk(layers: list[Layer], weights: list[Floats], noise: Callable[[], Any]) -> Integers:
    """Orders read off the lattice: from the empty set on, the variable with the largest weight + noise.  (C, P)

    Weights gathered by the maximum give the best order; those gathered by the sum, with Gumbel noise, a draw.
    """
    rows: Any = 0
    order = []
    for layer, weight in zip(layers, weights, strict=True):
        chosen = np.argmax(weight[rows] + noise(), axis=-1)
        rows = layer.child[rows, chosen]
        order.append(chosen)
    return np.stack(order, axis=-1)


@dataclass(eq=False)
class _Exact:
    """A race with few sets that can be placed first."""

    layers: list[Layer]
    exact = True

    @cached_property
    def _weights(self) -> list[Floats]:
        return weights_to_the_end(self.layers, np.logaddexp.reduce)

    @cached_property
    def _chances(self) -> list[Floats]:
        """Probability of placing x next, after each set.  (S, P) each"""
        totals = [np.logaddexp.reduce(weight, axis=1, keepdims=True) for weight in self._weights]
        return [np.exp(weight - total) for weight, total in zip(self._weights, totals, strict=True)]

    @cached_property
    def before(self) -> Floats:
        n = len(self.layers)
        before = np.zeros((n, n))
        reached = np.ones(1)  # (S,) probability of each set
        for layer, chances in zip(self.layers, self._chances, strict=True):
            steps = reached[:, None] * chances
            before += steps.T @ ~layer.placed
            reached = np.asarray(np.bincount(layer.child.ravel(), steps.ravel()), dtype=np.float64)
        np.fill_diagonal(before, 0.0)
        return before

    def draw(self, count: int, generator: np.random.Generator) -> Integers:
        return walk(self.layers, self._weights, lambda: gumbel(generator, (count, len(self.layers))))

    def ahead_of(self, clocks: Floats) -> tuple[Floats, Floats]:
        n = len(self.layers)
        ahead = np.zeros((n, len(clocks)))
        reached = np.ones((1, len(clocks)))  # (S, K) probability of each set before the clock
        for layer, chances in zip(self.layers, self._chances, strict=True):
            arrived = reached * sigmoid(layer.mass[:, None] - clocks)
            reached = np.zeros((layer.child.max() + 1, len(clocks)))
            for x in range(n):  # of two sets without x, no two are the same with it
                rows = np.flatnonzero(chances[:, x])
                steps = arrived[rows] * chances[rows, x, None]
                ahead[x] += steps.sum(axis=0)
                reached[layer.child[rows, x]] += steps
        return ahead, reached[0]


# Approximate answers: orders built step by step, then one variable moved at a time


@dataclass(eq=False)
class _Approximate:
    """A race with too many sets that can be placed first."""

    s: Floats
    cost: Floats
    later_mass: float
    exact: bool = False

    def draw(self, count: int, generator: np.random.Generator) -> Integers:
        obedient = self._races_that_obey(count, generator)
        self.exact = obedient is not None
        if obedient is not None:
            return obedient
        orders = build_orders(self.s, self.cost, count, generator)
        for _ in range(SAMPLING_SWEEPS):
            for variable in generator.permutation(len(self.s)):
                orders, _, _ = _reinserted(orders, variable, self.s, self.cost, self.later_mass, generator)
        return orders

    def _races_that_obey(self, count: int, generator: np.random.Generator) -> Integers | None:
        """`count` free races, each kept with probability exp(−its penalties), or None if fewer than one in eight is."""
        kept: list[Integers] = []
        shape = count, len(self.s)
        zero = np.zeros_like(self.cost)
        for tried in range(1, 17):
            orders = np.argsort(-(self.s + gumbel(generator, shape)), axis=1)
            allowance = log_weight(orders, self.s, self.cost, self.later_mass) - log_weight(orders, self.s, zero)
            kept.append(orders[generator.standard_exponential(count) >= -allowance])
            found = sum(map(len, kept))
            if found >= count:
                return np.concatenate(kept)[:count]
            if 8 * found < tried * count:
                return None
        return None

    @cached_property
    def _averaged(self) -> tuple[Floats, Integers]:
        """Means of conditional probabilities that one comes before another  (n, n), and orders behind them  (C, n)."""
        generator, n = np.random.default_rng(0), len(self.s)
        orders = self.draw(min(AVERAGED_ORDERS, AVERAGED_CELLS // n + 1), generator)
        before = np.zeros((n, n))
        for _ in range(AVERAGED_SWEEPS):
            for variable in generator.permutation(n):
                orders, others, behind = _reinserted(orders, variable, self.s, self.cost, self.later_mass, generator)
                # Of each of the others, the chance that the variable is put before it.
                before[variable] += np.bincount(others.ravel(), behind.ravel(), minlength=n) / len(orders)
        before /= AVERAGED_SWEEPS
        # Both ends of a pair have been moved: take the mean of the two estimates.
        before = (before + 1.0 - before.T) / 2
        np.fill_diagonal(before, 0.0)
        return before, orders

    @cached_property
    def by_times(self) -> Floats | None:
        return before_by_times(self.s, self.cost, self.later_mass)

    @cached_property
    def before(self) -> Floats:
        return self._averaged[0] if self.by_times is None else self.by_times

    def ahead_of(self, clocks: Floats) -> tuple[Floats, Floats]:
        _, orders = self._averaged
        mass = mass_from(self.s[orders], self.later_mass)  # (C, n)
        ahead, passed = np.empty((len(self.s), len(clocks))), np.empty(len(clocks))
        for number, clock in enumerate(clocks):
            arrived = np.cumprod(sigmoid(mass - clock), axis=1)
            ahead[:, number] = np.bincount(orders.ravel(), arrived.ravel()) / len(orders)
            passed[number] = arrived[:, -1].mean()
        return ahead, passed


def build_orders(s: Floats, cost: Floats, count: int, generator: np.random.Generator) -> Integers:
    """Orders drawn from front to back, each variable weighed by what it costs now.  (C, P)"""
    must_wait = np.isinf(cost)  # [j, k]: j waits for k
    finite_cost = np.where(must_wait, 0.0, cost)
    orders = np.empty((count, len(s)), dtype=np.intp)
    waiting = np.tile(must_wait.sum(axis=1), (count, 1))  # for how many of the variables that remain
    weights = np.tile(s - finite_cost.sum(axis=1), (count, 1))
    for position in range(len(s)):
        draws = np.where(waiting == 0, weights, -np.inf) + gumbel(generator, weights.shape)
        orders[:, position] = chosen = np.argmax(draws, axis=1)
        waiting -= must_wait.T[chosen]
        weights += finite_cost.T[chosen]
        weights[np.arange(count), chosen] = -np.inf
    return orders


def _reinserted(
    orders: Integers,
    variable: int,
    s: Floats,
    cost: Floats,
    later_mass: float,
    generator: np.random.Generator,
    temperature: float = 1.0,
) -> tuple[Integers, Integers, Floats]:
    """The orders with one variable put back with probability ∝ w^(1 / temperature), or best of all at 0.  (C, P)

    Also the orders without it, and the probability that it comes before each of those.  2 × (C, P − 1)
    """
    count, p = orders.shape
    others = orders[orders != variable].reshape(count, p - 1)
    # Sums without logarithms are several times faster; the bound keeps exp from reaching zero.
    masses = np.exp(np.maximum(s - s.max(), -600.0))
    remaining_mass = np.empty((count, p))  # before each of the others, and after them all
    remaining_mass[:, -1] = np.exp(later_mass - s.max())
    remaining_mass[:, :-1] = np.cumsum(masses[others][:, ::-1], axis=1)[:, ::-1] + remaining_mass[:, -1:]
    # One position further back, the variable adds its mass to one more choice, and comes after one more of the others
    # instead of before it.
    price_behind = np.minimum(cost[:, variable], COMPULSORY) - np.minimum(cost[variable], COMPULSORY)
    choice = remaining_mass + masses[variable]
    choice[:, 1:] /= remaining_mass[:, :-1]
    price = np.log(choice)
    price[:, 1:] += price_behind[others]
    price = np.cumsum(price, axis=1)  # −log w by the position of the variable, up to a constant
    if temperature:
        chances = np.cumsum(np.exp((price.min(axis=1, keepdims=True) - price) / temperature), axis=1)
        chances /= chances[:, -1:]
        position = (chances < generator.random((count, 1))).sum(axis=1)
    else:
        position = price.argmin(axis=1)
        chances = (np.arange(p) >= position[:, None]).astype(np.float64)
    return _inserted(others, variable, position), others, chances[:, :-1]


def _inserted(others: Integers, variable: int, position: Integers) -> Integers:
    """The orders with a variable in these positions (C,).  (C, P)"""
    orders = np.empty((len(others), others.shape[1] + 1), dtype=np.intp)
    here = np.arange(orders.shape[1]) == position[:, None]
    orders[here] = variable
    orders[~here] = others.reshape(-1)
    return orders


def mass_from(placed_scores: Floats, later_mass: float) -> Floats:
    """log Σ exp s over each position, those after it, and what follows them all.  (C, P)"""
    backwards = np.concatenate([np.full((len(placed_scores), 1), later_mass), placed_scores[:, ::-1]], axis=1)
    return np.asarray(np.logaddexp.accumulate(backwards, axis=1)[:, :0:-1])


def gumbel(generator: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Noise that makes the largest of log weights a draw: each is the largest with probability ∝ its weight."""
    return np.asarray(-np.log(generator.standard_exponential(shape)))


# An integral over the arrival times of a few variables
#
# Given the times of variables that take part in every price, such as roots, all others race independently, and their
# part is a formula. The times are drawn one after the other, each from its tabulated density given those before it, at
# evenly spread points instead of random numbers, and weighed. So the answer is a smooth function of scores and prices:
# rounding in the network does not move it more than it moves them.

POINTS = 512
TABULATED = 256  # of those points, at which each time is integrated over once more
MAX_TIMED = 8
GRID = 96
DEPTH = 25.0  # below its peak, to which a logarithmic density is tabulated
MIN_EFFECTIVE = 0.5  # share of the points that must carry weight: with fewer, the densities are far from the truth
MAX_PAIRS = 2**22  # of variables, over all points, that are compared within the same interval


def before_by_times(s: Floats, cost: Floats, later_mass: float) -> Floats | None:
    """Probability that j comes before k; None if too many variables take part in prices.  (n, n)"""
    n = len(s)
    if later_mass > -np.inf:  # the first of what follows is one more variable
        s, cost = np.append(s, later_mass), np.pad(cost, (0, 1))
        cost[n, :n] = np.inf
    timed = _cover(cost)
    if len(timed) > MAX_TIMED:
        return None
    race = _TimedRace(s, np.exp(-cost), np.exp(-cost.T))
    drawn = race.drawn(timed)
    if drawn is None:
        return None
    log_times, weights = drawn
    others = [i for i in range(len(s)) if i not in timed]
    before = np.zeros((len(s), len(s)))
    some = slice(None, None, max(1, len(weights) // TABULATED))
    shares = weights[some] / weights[some].sum()
    for number, v in enumerate(timed):
        rest = [w for w in timed if w != v]
        log_rest = np.delete(log_times[some], number, axis=1)
        grid, density = race.density(v, log_rest, rest)
        arrived = race.arrived(others, log_rest, rest, v, grid)  # (C, G, U): before v
        found = np.einsum("c,cg,cgu->u", shares, density, arrived)
        before[others, v], before[v, others] = found, 1.0 - found
        # Linear between the times of the grid, so that nothing jumps.
        passed = np.clip((grid[:, None] - log_rest[:, None]) / (grid[1] - grid[0]) + 0.5, 0.0, 1.0)
        found = np.einsum("c,cg,cgm->m", shares, density, passed)
        before[rest, v] += found / 2
        before[v, rest] += (1.0 - found) / 2
    before[np.ix_(others, others)] = race.among(others, log_times, timed, weights)
    np.fill_diagonal(before, 0.0)
    return before[:n, :n]


def _cover(cost: Floats) -> list[int]:
    """Variables such that every price involves one of them, those with the most prices first."""
    linked = (cost > 0) | (cost > 0).T
    cover = []
    while linked.any():
        cover.append(int(np.argmax(linked.sum(axis=0))))
        linked[cover[-1]] = linked[:, cover[-1]] = False
    return cover


@dataclass(frozen=True, eq=False)
class _TimedRace:
    """A race, with prices as factors [i, v] that i pays for coming before v, and for coming after it."""

    s: Floats
    pays_before: Floats
    pays_after: Floats

    def drawn(self, timed: Sequence[int]) -> tuple[Floats, Floats] | None:
        """Log times of the timed variables and their weights, which add up to 1; None if few count.  (C, M), (C,)"""
        if len(timed) == 1:
            grid, density = self.density(timed[0], np.empty((1, 0)), [])
            return grid[:, None], density[0]
        log_times, log_weights = np.empty((POINTS, 0)), np.zeros(POINTS)
        for number, v in enumerate(timed):
            grid, density = self.density(v, log_times if number else log_times[:1], timed[:number])
            cells = (density[:, 1:] + density[:, :-1]) / 2 + 1e-9
            cells = np.broadcast_to(cells / cells.sum(axis=1, keepdims=True), (POINTS, len(grid) - 1))
            ends = np.cumsum(cells, axis=1)
            wanted = _spread(len(timed))[:, [number]] * ends[:, -1:]
            cell = np.minimum((ends < wanted).sum(axis=1, keepdims=True), len(grid) - 2)
            height = np.take_along_axis(cells, cell, axis=1)
            inside = 1.0 - (np.take_along_axis(ends, cell, axis=1) - wanted) / height
            y = grid[cell] + inside * (grid[1] - grid[0])  # (C, 1)
            with np.errstate(divide="ignore"):
                paid = np.where(log_times < y, self.pays_after[v, timed[:number]], self.pays_before[v, timed[:number]])
                log_weights += np.log(paid).sum(axis=1)
            log_weights += (y - np.exp(self.s[v] + y) - np.log(height))[:, 0]
            log_times = np.concatenate([log_times, y], axis=1)
        others = [i for i in range(len(self.s)) if i not in timed]
        with np.errstate(divide="ignore"):
            log_weights += np.log(self._masses(others, log_times, timed)[0].sum(axis=1)).sum(axis=1)
        if not np.isfinite(log_weights.max()):
            return None
        weights = np.exp(log_weights - log_weights.max())
        weights /= weights.sum()
        return None if 1.0 / np.square(weights).sum() < MIN_EFFECTIVE * POINTS else (log_times, weights)

    def density(self, v: int, log_times: Floats, timed: Sequence[int]) -> tuple[Floats, Floats]:
        """A grid of log times, and the chances of the times of v there, given other times.  (G,), (C, G)"""
        widest = np.linspace(-np.logaddexp.reduce(self.s) - 14.0, 4.0 - self.s[v], 2 * GRID)
        rough = self._log_density(v, log_times[:: max(1, len(log_times) // 16)], timed, widest)
        likely = np.flatnonzero((rough > rough.max(axis=1, keepdims=True) - DEPTH).any(axis=0))
        first, last = (likely[0], likely[-1]) if len(likely) else (0, len(widest) - 1)
        grid = np.linspace(widest[max(first - 1, 0)], widest[min(last + 1, len(widest) - 1)], GRID)
        logarithm = self._log_density(v, log_times, timed, grid)
        density = np.exp(logarithm - np.maximum(logarithm.max(axis=1, keepdims=True), -1e300))
        return grid, density / np.maximum(density.sum(axis=1, keepdims=True), 1e-300)

    def _log_density(self, v: int, log_times: Floats, timed: Sequence[int], grid: Floats) -> Floats:
        linked = (self.pays_before[:, v] < 1) | (self.pays_after[:, v] < 1)
        linked[[v, *timed]] = False
        early, late = self._around(np.flatnonzero(linked).tolist(), log_times, timed, v, grid)
        passed = log_times[:, None] < grid[:, None]  # (C, G, M)
        paid = np.where(passed, self.pays_after[v, list(timed)], self.pays_before[v, list(timed)])
        with np.errstate(divide="ignore"):
            weights = np.log(early + late).sum(axis=2) + np.log(paid).sum(axis=2)
        return np.asarray(weights + grid - np.exp(self.s[v] + grid))

    def arrived(self, others: Sequence[int], log_times: Floats, timed: Sequence[int], v: int, grid: Floats) -> Floats:
        """Probability that each of the others comes before v, if that comes at the times of a grid.  (C, G, U)"""
        early, late = self._around(others, log_times, timed, v, grid)
        return np.asarray(early / np.maximum(early + late, 1e-300))

    def among(self, others: Sequence[int], log_times: Floats, timed: Sequence[int], weights: Floats) -> Floats:
        """Probability that one of the others comes before another.  (U, U)"""
        s = self.s[list(others)]
        stride = max(1, len(weights) * (len(timed) + 1) * len(others) ** 2 // MAX_PAIRS)
        masses, ends = self._masses(others, log_times[::stride], timed)
        masses = masses / np.maximum(masses.sum(axis=1, keepdims=True), 1e-300)  # (C, T, U)
        weights = weights[::stride] / weights[::stride].sum()
        later = np.cumsum(masses[:, ::-1], axis=1)[:, ::-1] - masses
        before = np.einsum("c,ctj,ctk->jk", weights, masses, later, optimize=True)
        share = sigmoid(s[:, None] - s)
        for mass, weight, end in zip(masses, weights, ends, strict=True):
            lengths = np.log(np.maximum(np.diff(np.exp(end), prepend=0.0), 1e-300))
            for number, length in enumerate(lengths):
                rates = np.exp(np.clip(s + length, -600.0, 50.0))
                before += weight * np.outer(mass[number], mass[number]) * first_of_two(rates, share)
            before += weight * np.outer(mass[-1], mass[-1]) * share
        return np.asarray(before)

    def _around(
        self, others: Sequence[int], log_times: Floats, timed: Sequence[int], v: int, grid: Floats
    ) -> tuple[Floats, Floats]:
        """Weights of each other's coming before, and after, v at the times of a grid.  2 × (C, G, U)"""
        masses, ends = self._masses(others, log_times, timed)
        share = self._share_by(grid, others)  # (G, U): without any prices
        starts = np.concatenate([np.zeros((len(ends), 1, len(others))), self._share_by(ends, others)], axis=1)
        lengths = np.concatenate([starts[:, 1:], np.ones_like(starts[:, :1])], axis=1) - starts
        factors = masses / np.maximum(lengths, 1e-300)
        until = np.zeros((len(ends), len(grid), len(others)))
        for t in range(factors.shape[1]):
            within = np.minimum(np.maximum(share - starts[:, [t]], 0.0), lengths[:, [t]])
            until += factors[:, [t]] * within
        left = np.maximum(masses.sum(axis=1)[:, None] - until, 0.0)
        return self.pays_before[others, v] * until, self.pays_after[others, v] * left

    def _masses(self, others: Sequence[int], log_times: Floats, timed: Sequence[int]) -> tuple[Floats, Floats]:
        """Share of each other that arrives in an interval, times what it pays; the sorted times.  (C, T, U), (C, M)"""
        order = np.argsort(log_times, axis=1)
        ends = np.take_along_axis(log_times, order, axis=1)
        grid = np.ix_(others, timed)
        before, after = self.pays_before[grid].T[order], self.pays_after[grid].T[order]  # (C, M, U)
        one = np.ones((len(ends), 1, len(others)))
        paid = np.concatenate([np.cumprod(before[:, ::-1], axis=1)[:, ::-1], one], axis=1)
        paid *= np.concatenate([one, np.cumprod(after, axis=1)], axis=1)
        early = np.concatenate([0 * one, self._share_by(ends, others), one], axis=1)
        left = np.concatenate([one, np.exp(-self._rates(ends, others)), 0 * one], axis=1)
        # Near 1 the difference of what is left keeps the digits.
        share = np.where(early[:, :-1] > 0.5, left[:, :-1] - left[:, 1:], early[:, 1:] - early[:, :-1])
        return paid * share, ends

    def _share_by(self, log_times: Floats, others: Sequence[int]) -> Floats:
        """Probability that each other would arrive by a time without any prices.  (..., U)"""
        return np.asarray(-np.expm1(-self._rates(log_times, others)))

    def _rates(self, log_times: Floats, others: Sequence[int]) -> Floats:
        return np.exp(np.clip(self.s[list(others)] + log_times[..., None], -600.0, 50.0))


def _spread(dimensions: int) -> Floats:
    """Evenly spread points in the unit cube: multiples of an irrational vector.  (C, M)"""
    root = 2.0
    for _ in range(60):
        root = (1.0 + root) ** (1.0 / (dimensions + 1))
    steps = root ** -np.arange(1.0, dimensions + 1)
    return np.asarray((0.5 + np.outer(np.arange(1, POINTS + 1), steps)) % 1.0)


# The best order, and the one that people expect


def most_probable_order(scores: Floats, penalty: Floats) -> tuple[Integers, bool]:
    """The order of largest weight, and whether that is certain.  (P,)

    Exact whenever the sets to visit are at most EXACT_SETS; otherwise the best of ANNEALED_ORDERS annealed orders, one
    that no move of a single variable improves. Equal scores keep the order of their indices.
    """
    by_score = np.argsort(-scores, kind="stable")
    s, cost = scores[by_score], penalty[np.ix_(by_score, by_score)]
    order: list[int] = []
    exact = True
    for block in _blocks(cost):
        later_mass = np.logaddexp.reduce(s[block.stop :], initial=-np.inf)
        inside, certain = _best_order_of_block(s[block], cost[block, block], later_mass)
        order.extend(block.start + inside)
        exact = exact and certain
    return by_score[order], exact


def rearranged_order(order: Integers, graph: Bools, ranks: Integers) -> Integers:
    """A causal order of `graph` near `order`: of those that may come next, the lowest rank, then the first.  (P,)"""
    position, waiting = positions_in(order), graph.sum(axis=0)
    ready = [(ranks[variable], position[variable], variable) for variable in np.flatnonzero(waiting == 0)]
    heapq.heapify(ready)
    result = []
    while ready:
        *_, variable = heapq.heappop(ready)
        result.append(variable)
        children = np.flatnonzero(graph[variable])
        waiting[children] -= 1
        for child in children[waiting[children] == 0]:
            heapq.heappush(ready, (ranks[child], position[child], child))
    return np.array(result, dtype=np.intp)


def _blocks(cost: Floats) -> list[slice]:
    """Consecutive stretches of the score order that can be ordered one after the other."""
    # Cut where no price speaks for putting a variable from below the cut before one from above it. Taking everything
    # above the cut first then costs nothing, and moving larger scores ahead of smaller neighbors raises Plackett–Luce.
    p = len(cost)
    unhappy = np.triu(cost > 0, k=1)
    # The last variable that is cheaper before one of those up to here.
    reach = np.maximum.accumulate(np.where(unhappy.any(axis=1), p - 1 - unhappy[:, ::-1].argmax(axis=1), np.arange(p)))
    ends = np.flatnonzero(reach == np.arange(p)) + 1
    return [slice(start, end) for start, end in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True)]


def _safely_first(cost: Floats) -> Bools:
    """[b, a]: some best order has b before a, for variables sorted by score, b above a.  (P, P)"""
    # Wherever a stands before b, exchanging the two raises Plackett–Luce (b has the larger score) and, where this
    # holds, costs nothing: not for the pair, and not for any variable c between them. All such relations hold together
    # in the best order that comes first in the dictionary of score ranks, since each exchange moves towards it.
    safe = np.triu(np.ones_like(cost, dtype=bool), k=1)
    for c in range(len(cost)):  # c = a and c = b compare the two orders of the pair itself
        in_between = cost[:, c, None] + cost[None, c, :]  # [b, a]: the price of b before c before a
        safe &= in_between <= in_between.T
    return safe


def _best_order_of_block(s: Floats, cost: Floats, later_mass: float) -> tuple[Integers, bool]:
    if len(s) == 1:
        return np.zeros(1, dtype=np.intp), True
    if layers := lattice(s, cost, np.isinf(cost).T | _safely_first(cost), later_mass):
        return walk(layers, weights_to_the_end(layers, np.max), lambda: 0.0), True

    # Variables are sorted by score here, so this seed gives the same answer however the columns were arranged.
    generator = np.random.default_rng(0)
    orders = build_orders(s, cost, ANNEALED_ORDERS, generator)
    for temperature in ANNEALING:
        for variable in range(len(s)):
            orders, _, _ = _reinserted(orders, variable, s, cost, later_mass, generator, temperature)
    weight = log_weight(orders, s, cost, later_mass)
    improving = True
    while improving:
        for variable in range(len(s)):
            orders, _, _ = _reinserted(orders, variable, s, cost, later_mass, generator, temperature=0.0)
        before, weight = weight, log_weight(orders, s, cost, later_mass)
        improving = bool(np.any(weight > before + 1e-9))
    return orders[np.argmax(weight)], False
