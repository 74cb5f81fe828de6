"""Measures of window graphs, of their probabilities and of effects over time. Lag 0 is measured apart."""

# L lags, P variables

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from causal_arrow.graphs.dag import transitive_closure
from causal_arrow.series.responses import Steps, response
from causal_arrow_lab.benchmarks.series.families import Family, SeriesTask

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

STATED_FROM = 0.05
"""Calibration counts pairs stated with this probability or more: the many clear absences would hide the rest."""
BINS = (0.05, 0.2, 0.4, 0.6, 0.8, 0.95, 1.0)
HORIZON = 8
PAIRS_PER_TASK = 4
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class SeriesEstimate:
    """The answer of a method for a series."""

    graph: Bools  # (L + 1, P, P), [lag, j, k]
    scores: Floats  # (L + 1, P, P), the larger the surer
    probabilities: Floats | None = None  # (L + 1, P, P), where the method states any
    seconds: float = math.nan
    confounding: Floats | None = None  # (P, P) at lag 0


def measures(task: SeriesTask, estimate: SeriesEstimate) -> dict[str, float]:
    """All measures of one answer; nan where there is nothing to measure."""
    lagged, truth = estimate.scores[1:].ravel(), task.window[1:].ravel()
    graph = estimate.graph.copy()
    graph[0] &= task.contemporaneous
    apart = ~np.eye(graph.shape[1], dtype=bool)
    found = {
        "auroc": auroc(truth, lagged),
        "ap": average_precision(truth, lagged),
        "f1": f1(task.window, graph),
        "f1_lagged": f1(task.window[1:], graph[1:]),
        "f1_summary": f1(task.window.any(axis=0) & apart, graph.any(axis=0) & apart),
        "seconds": estimate.seconds,
    }
    if task.contemporaneous:
        found |= {
            "f1_now": f1(task.window[0], graph[0]),
            "ap_now": average_precision(task.window[0][apart], estimate.scores[0][apart]),
        }
    if task.confounded is not None and estimate.confounding is not None:
        found["ap_hidden"] = average_precision(task.confounded[apart], estimate.confounding[apart])
    return found


def auroc(truth: Bools, scores: Floats) -> float:
    """Probability that an edge has a larger score than a pair without one, ties counting one half."""
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(truth, scores)) if 0 < truth.sum() < truth.size else math.nan


def average_precision(truth: Bools, scores: Floats) -> float:
    """Mean precision over the edges, equal scores taken together."""
    from sklearn.metrics import average_precision_score

    return float(average_precision_score(truth, scores)) if truth.any() else math.nan


def f1(truth: Bools, graph: Bools) -> float:
    """2 · true positives / (edges shown + edges); 1 where there are neither."""
    total = int(truth.sum()) + int(graph.sum())
    return 2 * float((truth & graph).sum()) / total if total else 1.0


@dataclass(frozen=True)
class LaggedReliability:
    """Stated against true shares of lagged edges."""

    error: float  # expected calibration error of pairs stated at STATED_FROM or more
    bins: tuple[tuple[float, float, int, float, float], ...]  # from, to, pairs, mean stated, share true


def reliability(answers: Iterable[tuple[Bools, Floats]]) -> LaggedReliability:
    """The reliability of pairs of truth and stated probabilities, of any shape."""
    truth, stated = (np.concatenate([np.ravel(part) for part in side]) for side in zip(*answers, strict=True))
    bins = []
    for low, high in pairwise(BINS):
        inside = (stated >= low) & ((stated < high) | (high == BINS[-1]))
        if inside.any():
            bins.append((low, high, int(inside.sum()), float(stated[inside].mean()), float(truth[inside].mean())))
    pairs = sum(count for _, _, count, _, _ in bins)
    error = sum(count * abs(mean - share) for _, _, count, mean, share in bins) / pairs if pairs else math.nan
    return LaggedReliability(error, tuple(bins))


# Effects over time


@dataclass(frozen=True)
class Coverage:
    """Shares of 90% intervals that hold the truth, graphs known: pairs with a path, steps 0 to HORIZON."""

    raised_once: float
    held: float
    width: float  # of the intervals for a cause that is raised once
    error: float  # absolute, of its estimates


def coverage(family: Family, indices: Iterable[int], development: bool) -> Coverage:
    """The coverage for some pairs of each task; a season is declared where a family has one."""
    inside: dict[bool, list[NDArray[np.bool_]]] = {False: [], True: []}
    widths, errors = [], []
    for index in indices:
        task = family.task(index, development=development)
        assert task.process is not None
        random = np.random.default_rng(index)
        steps = Steps(task.values, unit=task.unit, period=task.process.period if family.seasonal else None)
        pairs = pairs_with_paths(task)
        for cause, effect in pairs[random.permutation(len(pairs))[:PAIRS_PER_TASK]].tolist():
            for held in (False, True):
                true = task.process.response(cause, effect, HORIZON, random, held=held)
                found = response(
                    steps, task.window[None], cause, effect, HORIZON, random, kind="step" if held else "pulse"
                )
                inside[held].append((found.low - ROUNDING <= true) & (true <= found.high + ROUNDING))
                if not held:
                    widths.append(found.high - found.low)
                    errors.append(np.abs(found.estimate - true))
    return Coverage(*(float(np.mean(each)) for each in (inside[False], inside[True], widths, errors)))


def pairs_with_paths(task: SeriesTask) -> NDArray[np.intp]:
    """Pairs of different variables with a directed path from the first to the second.  (pairs, 2)"""
    reached = transitive_closure(np.asarray(task.window.any(axis=0)))
    return np.argwhere(reached & ~np.eye(len(reached), dtype=bool))
