"""Methods for series: Causal Arrow, and VAR, Granger, PCMCI, PCMCI+, VARLiNGAM, DYNOTEARS as documented.

Methods that cannot read missing cells get interpolated ones. In panels, all of them get values less the mean of the
unit. Edges at lag 0 that a method leaves undirected are directed by the order of the columns, which is random.
"""

# T steps, P variables, L lags, N rows of the window

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, optimize, stats

from causal_arrow.discovery.inference import ready_model
from causal_arrow.discovery.second_opinion import tigramite
from causal_arrow.discovery.settings import Settings
from causal_arrow.errors import BenchmarkError
from causal_arrow.network import DEFAULT_MODEL, Network
from causal_arrow.series import SeriesOptions
from causal_arrow.series.pipeline import answer_series
from causal_arrow.series.reading import Series
from causal_arrow.series.window import codes, ticks, window
from causal_arrow.tables.report import TableReport
from causal_arrow.tables.table import Table
from causal_arrow_lab.benchmarks.series import Bools, Floats, SeriesEstimate, SeriesTask

# The threshold of each method with its best mean F1 on development tasks.
LEVEL = 0.01
"""Level of the tests of PCMCI and PCMCI+."""
LEVEL_OF_REGRESSIONS = 0.001
SMALLEST_WEIGHT = 0.15
"""Smallest weight of an edge that VARLiNGAM and DYNOTEARS show, for standardized variables."""
DYNOTEARS_PENALTY = 0.01
SURPRISE_OF_ZERO = 1000.0
"""-log p where p is too small for a float."""


def solve(method: str, task: SeriesTask) -> SeriesEstimate:
    """The answer of a method, with the seconds of the method alone."""
    solver = PEERS[method]
    values = prepared(task)
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graph, scores = solver(values, task)
    return SeriesEstimate(graph, scores, seconds=time.process_time() - start)


def prepared(task: SeriesTask) -> Floats:
    """Standardized values, less the mean of the unit in panels.  (T, P)"""
    values = task.values
    for unit in np.unique(task.unit) if task.unit is not None else ():
        rows = task.unit == unit
        values = np.where(rows[:, None], values - np.nanmean(values[rows], axis=0), values)
    return np.asarray((values - np.nanmean(values, axis=0)) / np.nanstd(values, axis=0))


def interpolated(values: Floats) -> Floats:
    """Missing cells on a line between their neighbors in time.  (T, P)"""
    steps = np.arange(len(values))
    return np.column_stack(
        [np.interp(steps, steps[~np.isnan(column)], column[~np.isnan(column)]) for column in values.T]
    )


def lagged(values: Floats, task: SeriesTask) -> Floats:
    """The variables now and up to L steps before, side by side.  (N, P · (L + 1))"""
    complete = interpolated(values)
    return window(complete, task.lags, unit=task.unit).table(complete)[:, : values.shape[1] * (task.lags + 1)]


# Regression


def regressed(values: Floats, task: SeriesTask) -> tuple[Floats, Floats, Floats, Floats, int]:
    """Least squares of each variable on all lags: residuals, coefficients, inverse products, |t| and freedom."""
    table = lagged(values, task)
    variables = values.shape[1]
    now, past = table[:, :variables], np.column_stack([table[:, variables:], np.ones(len(table))])
    inverse = np.linalg.pinv(past.T @ past)
    coefficients = inverse @ past.T @ now
    residuals, freedom = now - past @ coefficients, len(now) - past.shape[1]
    variances = np.outer(inverse.diagonal(), np.square(residuals).sum(axis=0) / freedom)
    t = np.abs(coefficients / np.sqrt(variances))[:-1].reshape(task.window[1:].shape)
    return residuals, coefficients, inverse, t, freedom


def var(values: Floats, task: SeriesTask) -> tuple[Bools, Floats]:
    """|t| of each coefficient of a vector autoregression; nothing at lag 0."""
    *_, t, freedom = regressed(values, task)
    return _with_nothing_now(2 * stats.t.sf(t, freedom) < LEVEL_OF_REGRESSIONS), _with_nothing_now(t)


def granger(values: Floats, task: SeriesTask) -> tuple[Bools, Floats]:
    """F test of all lags of one variable on another, given all others; the edge is at the lag of the largest |t|."""
    residuals, coefficients, inverse, t, freedom = regressed(values, task)
    variables = values.shape[1]
    variance = np.square(residuals).sum(axis=0) / freedom
    surprise = np.empty((variables, variables))
    for cause in range(variables):
        rows = cause + variables * np.arange(task.lags)
        block = coefficients[rows]
        statistic = np.einsum("ak,ab,bk->k", block, np.linalg.pinv(inverse[np.ix_(rows, rows)]), block)
        log_p = stats.f.logsf(statistic / variance / task.lags, task.lags, freedom)
        surprise[cause] = np.minimum(-log_p, SURPRISE_OF_ZERO)
    strongest = t == t.max(axis=0)
    shown = strongest & (surprise > -np.log(LEVEL_OF_REGRESSIONS))
    return _with_nothing_now(shown), _with_nothing_now(surprise * t / t.max(axis=0))


def _with_nothing_now(past: NDArray[Any]) -> NDArray[Any]:
    return np.concatenate([np.zeros_like(past[:1]), past])


# Constraints


def pcmci(values: Floats, task: SeriesTask) -> tuple[Bools, Floats]:
    """PCMCI with partial correlations (Runge et al. 2019): lagged edges."""
    found = _tigramite(values, task).run_pcmci(tau_min=1, tau_max=task.lags, pc_alpha=None, alpha_level=LEVEL)
    p = np.moveaxis(found["p_matrix"], 2, 0)
    size = np.abs(np.moveaxis(found["val_matrix"], 2, 0))
    in_past = np.arange(task.lags + 1)[:, None, None] > 0
    return np.asarray((p <= LEVEL) & in_past), np.asarray(np.where(in_past, _surprise(p) + size, 0.0))


def pcmci_plus(values: Floats, task: SeriesTask) -> tuple[Bools, Floats]:
    """PCMCI+ with partial correlations (Runge 2020)."""
    found = _tigramite(values, task).run_pcmciplus(tau_min=0, tau_max=task.lags, pc_alpha=LEVEL)
    marks = np.moveaxis(found["graph"], 2, 0)
    p, size = np.moveaxis(found["p_matrix"], 2, 0), np.abs(np.moveaxis(found["val_matrix"], 2, 0))
    directed = marks == "-->"
    open_edges = np.isin(marks, ["o-o", "x-x"])
    shown = directed | np.where(np.arange(len(marks))[:, None, None] == 0, np.triu(open_edges[0], 1), open_edges)
    scores = np.where(directed, 1.0, np.where(open_edges, 0.5, 0.0)) * (100.0 + _surprise(p)) + size
    return np.asarray(shown), np.asarray(scores + np.where(marks == "", _surprise(p), 0.0))


def _tigramite(values: Floats, task: SeriesTask) -> Any:
    try:
        return tigramite(values, task.unit)
    except ImportError as error:
        raise BenchmarkError("The methods pcmci and pcmci+ need: pip install tigramite six") from error


def _surprise(p: Floats) -> Floats:
    return np.asarray(-np.log(np.maximum(p, 1e-300)))


def varlingam(values: Floats, task: SeriesTask) -> tuple[Bools, Floats]:
    """VARLiNGAM (Hyvärinen et al. 2010): DirectLiNGAM on the residuals of a vector autoregression, pruned by lasso."""
    try:
        lingam = import_module("lingam")
    except ImportError as error:
        raise BenchmarkError("The method varlingam needs: pip install lingam") from error
    residuals = regressed(values, task)[0]
    order = lingam.DirectLiNGAM().fit(residuals).causal_order_
    variables = values.shape[1]
    table = lagged(values, task)
    adaptive_lasso = import_module("lingam.utils").predict_adaptive_lasso
    weights = np.zeros((task.lags + 1, variables, variables))
    past = list(range(variables, table.shape[1]))
    for position, effect in enumerate(order):
        causes = [*order[:position], *past]
        found = np.zeros(table.shape[1])
        found[causes] = adaptive_lasso(table, causes, effect)
        weights[:, :, effect] = np.abs(found).reshape(task.lags + 1, variables)
    return weights > SMALLEST_WEIGHT, weights


def dynotears(values: Floats, task: SeriesTask) -> tuple[Bools, Floats]:
    """DYNOTEARS (Pamfil et al. 2020), from its paper: least squares with an L1 penalty and an acyclic lag 0."""
    variables = values.shape[1]
    table = lagged(values, task)
    products = table.T @ table / len(table)
    shape = table.shape[1], variables
    off = np.ones(shape, dtype=bool)
    off[np.arange(variables), np.arange(variables)] = False
    bounds = [(0.0, None if free else 0.0) for free in np.tile(off.ravel(), 2)]

    def acyclicity(now: Floats) -> tuple[float, Floats]:
        power = linalg.expm(np.square(now))
        return float(np.trace(power)) - variables, power.T * 2 * now

    def objective(parts: Floats, rho: float, alpha: float) -> tuple[float, Floats]:
        positive, negative = parts.reshape(2, *shape)
        weights = positive - negative
        left = -weights.copy()
        left[np.arange(variables), np.arange(variables)] += 1.0
        gradient = -(products @ left)
        loss = 0.5 * float(np.sum(left * (products @ left)))
        cycles, slope = acyclicity(weights[:variables])
        gradient[:variables] += (rho * cycles + alpha) * slope
        loss += 0.5 * rho * cycles**2 + alpha * cycles + DYNOTEARS_PENALTY * float(parts.sum())
        return loss, np.concatenate([(gradient + DYNOTEARS_PENALTY).ravel(), (DYNOTEARS_PENALTY - gradient).ravel()])

    parts, rho, alpha, cycles = np.zeros(2 * off.size), 1.0, 0.0, np.inf
    while rho < 1e16 and cycles > 1e-8:
        before = cycles
        parts = optimize.minimize(objective, parts, (rho, alpha), jac=True, method="L-BFGS-B", bounds=bounds).x
        positive, negative = parts.reshape(2, *shape)
        cycles = acyclicity((positive - negative)[:variables])[0]
        alpha += rho * cycles
        if cycles > 0.25 * before:
            rho *= 10
    weights = np.abs(positive - negative).reshape(task.lags + 1, variables, variables)
    return weights > SMALLEST_WEIGHT, weights


PEERS: Mapping[str, Callable[[Floats, SeriesTask], tuple[Bools, Floats]]] = {
    "var": var,
    "granger": granger,
    "pcmci": pcmci,
    "pcmci+": pcmci_plus,
    "varlingam": varlingam,
    "dynotears": dynotears,
}


def solver(method: str) -> Callable[[SeriesTask], SeriesEstimate]:
    """A method that is ready to work."""
    if method in PEERS:
        return partial(solve, method)
    if method != "arrow":
        raise BenchmarkError(f"There is no method {method!r}: expected some of arrow, {', '.join(PEERS)}.")
    return partial(solve_by_arrow, ready_model(DEFAULT_MODEL, "cpu"))


def solve_by_arrow(network: Network, task: SeriesTask) -> SeriesEstimate:
    """The answer of Causal Arrow, with lags as given and columns as they are."""
    start = time.process_time()
    table = Table.of_numbers(task.values, task.names)
    unit = codes(task.unit, len(task.values))
    options = SeriesOptions(lags=task.lags, contemporaneous=task.contemporaneous)
    report = TableReport(table.observations, table.columns, ())
    series = Series(table, ticks(None, unit), unit)
    answer, _ = answer_series(network, series, report, Settings(scale="given", series=options))
    graph, probabilities = answer.graph, answer.edge_probabilities
    seconds = time.process_time() - start
    return SeriesEstimate(graph, probabilities, probabilities, seconds, answer.confounding_probabilities)
