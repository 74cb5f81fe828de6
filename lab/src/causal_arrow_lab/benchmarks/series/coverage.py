"""How often 90% intervals of effects over time hold the truth, where the graph is known."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from causal_arrow.series.responses import Steps, response
from causal_arrow_lab.benchmarks.series.families import Family, SeriesTask

HORIZON = 8
PAIRS_PER_TASK = 4
ROUNDING = 1e-9


@dataclass(frozen=True)
class Coverage:
    """Shares over pairs with a path and steps 0 to HORIZON."""

    raised_once: float
    held: float
    width: float  # of the intervals for a cause that is raised once
    error: float  # absolute, of its estimates


def coverage(family: Family, indices: Iterable[int], development: bool) -> Coverage:
    """Of the intervals for some pairs of each task; a season is declared where a family has one."""
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
    reached = task.window.any(axis=0) | np.eye(task.window.shape[1], dtype=bool)
    for _ in range(len(reached)):
        reached = reached @ reached
    return np.argwhere(reached & ~np.eye(len(reached), dtype=bool))
