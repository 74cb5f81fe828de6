"""How good a window graph and its probabilities are. Lagged edges and those at lag 0 are measured apart."""

# L lags, P variables

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from causal_arrow_lab.benchmarks.series.families import SeriesTask

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

STATED_FROM = 0.05
"""Calibration counts pairs stated with this probability or more: the many clear absences would hide the rest."""
BINS = (0.05, 0.2, 0.4, 0.6, 0.8, 0.95, 1.0)


@dataclass(frozen=True, eq=False)
class SeriesEstimate:
    """What a method says about a series."""

    graph: Bools  # (L + 1, P, P), [lag, j, k]
    scores: Floats  # (L + 1, P, P), the larger the surer
    probabilities: Floats | None = None  # (L + 1, P, P), where the method states any
    seconds: float = math.nan
    confounding: Floats | None = None  # (P, P) at lag 0


def measures(task: SeriesTask, estimate: SeriesEstimate) -> dict[str, float]:
    """All measures of one answer; nan where there is nothing to measure."""
    lagged, truth = estimate.scores[1:].ravel(), task.window[1:].ravel()
    graph = (
        estimate.graph
        if task.contemporaneous
        else np.concatenate([np.zeros_like(estimate.graph[:1]), estimate.graph[1:]])
    )
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
    positive = int(truth.sum())
    negative = truth.size - positive
    if not positive or not negative:
        return math.nan
    _, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts - 1) / 2
    return float((ranks[place][truth].sum() - positive * (positive + 1) / 2) / (positive * negative))


def average_precision(truth: Bools, scores: Floats) -> float:
    """Mean precision over the edges, equal scores taken together."""
    if not truth.any():
        return math.nan
    order = np.argsort(-scores, kind="stable")
    hits = np.cumsum(truth[order])
    last = np.append(scores[order][1:] != scores[order][:-1], True)  # the end of each run of equal scores
    precision, recall = hits[last] / (np.flatnonzero(last) + 1), hits[last] / hits[-1]
    return float((np.diff(recall, prepend=0.0) * precision).sum())


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
    """Of pairs of truth and stated probabilities, of any shape."""
    truth, stated = (np.concatenate([np.ravel(part) for part in side]) for side in zip(*answers, strict=True))
    bins = []
    for low, high in pairwise(BINS):
        inside = (stated >= low) & ((stated < high) | (high == BINS[-1]))
        if inside.any():
            bins.append((low, high, int(inside.sum()), float(stated[inside].mean()), float(truth[inside].mean())))
    pairs = sum(count for _, _, count, _, _ in bins)
    error = sum(count * abs(mean - share) for _, _, count, mean, share in bins) / pairs if pairs else math.nan
    return LaggedReliability(error, tuple(bins))
