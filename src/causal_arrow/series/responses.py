"""Effects over time: the change of one variable 0, 1, ..., H steps after another was raised, averaged over graphs.

Local projections (Jordà 2005): y at t + h is regressed on x at t, given the causes of x at t in a graph. That needs no
other part of the graph to be right and no linear dynamics, and covers the truth where a vector autoregression that is
restricted to the graph does not. A further lag of both variables makes the scores uncorrelated in time, so that
heteroskedasticity-robust errors are valid, also for strong memory (Montiel Olea and Plagborg-Møller 2021). In panels
units have levels of their own and errors are clustered by unit; short panels are halved in time to correct the bias
that these levels cause (Nickell 1981; split-panel jackknife).
"""

# T steps, P variables, L lags, G graphs, H horizon, N rows of a regression, K columns of it

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from causal_arrow.errors import ConfigurationError, TableError
from causal_arrow.series.distribution import summary
from causal_arrow.series.prepare import without_means
from causal_arrow.series.window import Window, window

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Integers = NDArray[np.int64]
Causes = tuple[tuple[int, int], ...]

LEVEL = 0.9
DRAWS = 2000
MAX_SETS = 100
"""Adjustment sets that are estimated: the most frequent ones."""
SHORT_PANEL = 100
"""Steps per unit up to which the bias of short panels is corrected."""
MIN_SPARE_ROWS = 10
"""Rows of a regression beyond its columns."""
MAX_LEVERAGE = 0.95


@dataclass(frozen=True, eq=False)
class Steps:
    """A series or panel as regressions read it; its windows are made for each horizon."""

    values: Floats  # (T, P)
    time: NDArray[np.generic] | None = None  # (T,)
    unit: NDArray[np.generic] | None = None  # (T,)
    environment: NDArray[np.generic] | None = None  # (T,)
    period: int | None = None  # of a season

    def rows(self, lags: int) -> Window:
        """The window of so many lags."""
        return window(self.values, lags, time=self.time, unit=self.unit, environment=self.environment)


@dataclass(frozen=True, eq=False)
class Response:
    """The effect of one variable on another over time."""

    cause: int
    effect: int
    held: bool  # kept at the higher value, or raised once
    estimate: Floats  # (H + 1,) median over graphs and sampling error
    low: Floats  # (H + 1,)
    high: Floats  # (H + 1,)
    path: float  # share of graphs with a path from cause to effect
    sets: tuple[tuple[Causes, float], ...]  # adjustment sets as (variable, lag), by share of graphs
    corrected: bool  # for the bias of a short panel


def response(
    steps: Steps,
    graphs: Bools,
    cause: int,
    effect: int,
    horizon: int,
    generator: np.random.Generator,
    *,
    held: bool = False,
) -> Response:
    """The response of `effect` to `cause`, averaged over graphs (G, L + 1, P, P), with an interval of LEVEL.

    `held` asks for the response to a cause that stays higher by 1 at every step; otherwise it is raised once and then
    follows its own course.
    """
    if cause == effect:
        raise ConfigurationError("Expected two different variables as cause and effect, got one.")
    parents = Counter(_parents(graph, cause) for graph in graphs)
    common = parents.most_common(MAX_SETS)
    total = sum(count for _, count in common)
    designs = _Designs(steps, graphs.shape[1], cause, effect, horizon)
    curves = []
    for causes, count in common:
        estimate, covariance = designs.curves(causes)
        share = max(1, round(DRAWS * count / total))
        drawn = generator.multivariate_normal(estimate.ravel(), covariance, size=share, method="eigh")
        drawn = drawn.reshape(share, 2, horizon + 1)
        curves.append(_held(drawn) if held else drawn[:, 1])
    every = np.concatenate(curves)
    low, middle, high = np.quantile(every, [(1 - LEVEL) / 2, 0.5, (1 + LEVEL) / 2], axis=0)
    share_with_path = float(np.mean([_reaches(graph, cause, effect) for graph in summary(graphs)]))
    shares = tuple((causes, count / len(graphs)) for causes, count in common)
    return Response(cause, effect, held, middle, low, high, share_with_path, shares, designs.halved)


def _parents(graph: Bools, variable: int) -> Causes:
    """The direct causes of a variable in a window graph (L + 1, P, P), as (variable, lag)."""
    return tuple((int(j), int(lag)) for lag, j in np.argwhere(graph[:, :, variable]))


def _reaches(summary_graph: Bools, cause: int, effect: int) -> bool:
    reached = np.zeros(len(summary_graph), dtype=bool)
    reached[cause] = True
    for _ in range(len(summary_graph)):
        reached |= summary_graph[reached].any(axis=0)
    return bool(reached[effect])


def _held(curves: Floats) -> Floats:
    """Responses to a cause kept 1 higher, from those of cause and effect to a cause raised once.  (S, H + 1)

    At each step the cause gets the push that its own course lacks.
    """
    own, other = curves[:, 0], curves[:, 1]
    pushes, result = np.zeros_like(own), np.zeros_like(own)
    for h in range(own.shape[1]):
        pushes[:, h] = 1 - (own[:, h:0:-1] * pushes[:, :h]).sum(axis=1)
        result[:, h] = (other[:, h::-1] * pushes[:, : h + 1]).sum(axis=1)
    return result


class _Designs:
    """The regressions behind a response, for any set of causes of the variable that is raised."""

    def __init__(self, steps: Steps, slices: int, cause: int, effect: int, horizon: int) -> None:
        self.steps, self.cause, self.effect = steps, cause, effect
        # One more lag than edges have; see the top of this file.
        self.own_past = [(variable, lag) for variable in (cause, effect) for lag in range(1, slices + 1)]
        try:
            self.rows = [steps.rows(slices + h) for h in range(horizon + 1)]
        except TableError as error:
            raise TableError(
                f"The series is too short for effects after {horizon} steps: ask for fewer steps."
            ) from error
        self.units = int(self.rows[0].unit.max()) + 1
        self.halved = self.units > 1 and len(self.rows[0].index) / self.units < SHORT_PANEL

    def curves(self, causes: Causes) -> tuple[Floats, Floats]:
        """Responses of the cause itself and of the effect, and their covariance.  (2, H + 1), (2H + 2, 2H + 2)"""
        horizon = len(self.rows) - 1
        estimate = np.zeros((2, horizon + 1))
        estimate[0, 0] = 1.0
        clusters = self.units if self.units > 1 else len(self.steps.values)
        influence = np.zeros((2, horizon + 1, clusters))
        for h in range(horizon + 1):
            found, scores, where = self._regression(causes, h)
            for side in (0, 1):
                # At the same time a variable has no effect on itself, nor on its causes.
                if h == 0 and (side == 0 or (self.effect, 0) in causes):
                    continue
                estimate[side, h] = found[side]
                influence[side, h] = np.bincount(where, weights=scores[:, side], minlength=clusters)
        flat = influence.reshape(2 * horizon + 2, clusters)
        return estimate, flat @ flat.T * (clusters / (clusters - 1))

    def _regression(self, causes: Causes, h: int) -> tuple[Floats, Floats, Integers]:
        """Coefficients of the cause, the influence of each row on them, and its cluster.  (2,), (N, 2), (N,)"""
        rows, values = self.rows[h], self.steps.values
        at = {lag: rows.index[:, h + lag] for lag in range(rows.lags + 1 - h)}
        controls = dict.fromkeys([*causes, *self.own_past])
        columns = [_cells(values, at[lag], variable) for variable, lag in ((self.cause, 0), *controls)]
        if np.ptp(rows.tick):
            columns.append((rows.tick - rows.tick.mean()) / np.ptp(rows.tick))
        if self.steps.period is not None:
            angle = 2 * np.pi * rows.tick / self.steps.period
            columns += [turn(angle * k) for k in (1, 2) for turn in (np.sin, np.cos)]
        design = np.column_stack(columns)
        outcomes = np.column_stack([_cells(values, rows.index[:, 0], end) for end in (self.cause, self.effect)])
        complete = np.flatnonzero(~np.isnan(design).any(axis=1) & ~np.isnan(outcomes).any(axis=1))
        unit = rows.unit[complete]
        if len(complete) < design.shape[1] + len(np.unique(unit)) + MIN_SPARE_ROWS:
            raise TableError(
                f"Expected more than {design.shape[1] + MIN_SPARE_ROWS} complete rows for the effect after {h} steps, "
                f"got {len(complete)}: ask for fewer steps."
            )
        design, outcomes = design[complete], outcomes[complete]
        found, scores = _least_squares(design, outcomes, unit)
        if self.halved:
            late = _second_half(rows.tick[complete], unit)
            found, scores = 2 * found, 2 * scores
            for half in (late, ~late):
                part, part_scores = _least_squares(design[half], outcomes[half], unit[half])
                found, scores[half] = found - part / 2, scores[half] - part_scores / 2
        return found, scores, unit if self.units > 1 else at[0][complete]


def _cells(values: Floats, step: Integers, variable: int) -> Floats:
    """A variable at some steps, NaN where there is none."""
    return np.where(step < 0, np.nan, values[step, variable])


def _second_half(tick: Integers, unit: Integers) -> Bools:
    """The rows in the second half of the time of their unit."""
    units = int(unit.max()) + 1
    first, last = np.full(units, np.iinfo(np.int64).max), np.full(units, np.iinfo(np.int64).min)
    np.minimum.at(first, unit, tick)
    np.maximum.at(last, unit, tick)
    return np.asarray(2 * tick > (first + last)[unit])


def _least_squares(design: Floats, outcomes: Floats, unit: Integers) -> tuple[Floats, Floats]:
    """Coefficients of the first column for both outcomes, and the influence of each row on them (HC3).  (2,), (N, 2)"""
    whole = without_means(np.column_stack([design, outcomes]), unit, np.ones(design.shape[1] + 2, dtype=bool))
    design, outcomes = whole[:, :-2], whole[:, -2:]
    inverse = np.linalg.pinv(design.T @ design)
    coefficients = inverse @ (design.T @ outcomes)
    leverage = np.einsum("nk,kl,nl->n", design, inverse, design)
    residuals = (outcomes - design @ coefficients) / (1 - np.minimum(leverage, MAX_LEVERAGE))[:, None]
    return coefficients[0], (design @ inverse[0])[:, None] * residuals
