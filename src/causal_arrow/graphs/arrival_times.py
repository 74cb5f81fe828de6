"""Who comes first in a race with prices, by an integral over the arrival times of a few variables.

Given the times of variables that take part in every price, such as roots, all others race independently, and their part
is a formula. The times are drawn one after the other, each from its tabulated density given those before it, at evenly
spread points instead of random numbers, and weighed. So the answer is a smooth function of scores and prices: rounding
in the network does not move it more than it moves them.
"""

# n variables, of which M are timed and U are not; C points, G times of a grid, T intervals between the timed ones

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from causal_arrow.graphs.graph_distribution import sigmoid

Floats = NDArray[np.float64]

POINTS = 512
TABULATED = 256
"""Of the points, those at which each time is integrated over once more."""
MAX_TIMED = 8
GRID = 96
DEPTH = 25.0
"""How far below its peak a logarithmic density is tabulated."""
MIN_EFFECTIVE = 0.5
"""Of the points: where fewer count, the densities are too far from the truth."""
MAX_PAIRS = 2**22
"""Pairs of variables, over all points, that are compared within the same interval."""


def before_by_times(s: Floats, cost: Floats, later_mass: float) -> Floats | None:
    """Probability that j comes before k; None if too many variables take part in prices.  (n, n)

    `cost[j, k]` is the price of j before k, `later_mass` the log of the rate of what must come after all.
    """
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
    """Variables of which every price concerns one, those with the most prices first."""
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
        """A grid of log times, and the chances of the times of v there, given other times.  (G,), (C, G)

        The variables without a given time are taken into account by what they pay for coming before or after v.
        """
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
        others = np.flatnonzero(linked).tolist()
        until, total = self._until(others, log_times, timed, grid)
        early, late = self.pays_before[others, v] * until, self.pays_after[others, v] * np.maximum(total - until, 0.0)
        passed = log_times[:, None] < grid[:, None]  # (C, G, M)
        paid = np.where(passed, self.pays_after[v, list(timed)], self.pays_before[v, list(timed)])
        with np.errstate(divide="ignore"):
            return np.asarray(
                np.log(early + late).sum(axis=2) + np.log(paid).sum(axis=2) + grid - np.exp(self.s[v] + grid)
            )

    def arrived(self, others: Sequence[int], log_times: Floats, timed: Sequence[int], v: int, grid: Floats) -> Floats:
        """Probability that each of the others comes before v, if that comes at the times of a grid.  (C, G, U)"""
        until, total = self._until(others, log_times, timed, grid)
        early = self.pays_before[others, v] * until
        late = self.pays_after[others, v] * np.maximum(total - until, 0.0)
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

    def _until(
        self, others: Sequence[int], log_times: Floats, timed: Sequence[int], grid: Floats
    ) -> tuple[Floats, Floats]:
        """How much of each other has arrived by the times of a grid, and in the end.  (C, G, U), (C, 1, U)"""
        masses, ends = self._masses(others, log_times, timed)
        share = self._share_by(grid, others)  # (G, U): without any prices
        starts = np.concatenate([np.zeros((len(ends), 1, len(others))), self._share_by(ends, others)], axis=1)
        lengths = np.concatenate([starts[:, 1:], np.ones_like(starts[:, :1])], axis=1) - starts
        factors = masses / np.maximum(lengths, 1e-300)
        until = np.zeros((len(ends), len(grid), len(others)))
        for t in range(factors.shape[1]):
            within = np.minimum(np.maximum(share - starts[:, [t]], 0.0), lengths[:, [t]])
            until += factors[:, [t]] * within
        return until, masses.sum(axis=1)[:, None]

    def _masses(self, others: Sequence[int], log_times: Floats, timed: Sequence[int]) -> tuple[Floats, Floats]:
        """How much of each other arrives in each interval, times what it pays; the sorted times.  (C, T, U), (C, M)"""
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


def first_of_two(rates: Floats, share: Floats) -> Floats:
    """Probability that j arrives before k, given that both arrive within one unit of time.  (n, n)

    `share` is λ_j / (λ_j + λ_k), the probability without the condition.
    """
    a, b = rates[:, None], rates[None, :]
    both = np.expm1(-a) * np.expm1(-b)
    direct = -share * np.expm1(-(a + b)) + np.exp(-b) * np.expm1(-a)
    # Next to nothing of a rate makes for a uniform time of arrival; the direct formula would lose its digits.
    safe = np.maximum(a, 1e-12)
    late = (1.0 + np.expm1(-safe) / safe) / -np.expm1(-safe)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(b > 1e-8, direct / both, np.where(a > 1e-8, late, 0.5))
