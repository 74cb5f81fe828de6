"""What is taken out of a series before its window is read: differences, seasons, levels of units."""

# T steps, P variables

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from causal_arrow.series.window import Window

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Integers = NDArray[np.int64]


def without_means(values: Floats, group: Integers, columns: Bools) -> Floats:
    """The series without the mean of each group in some columns, such as the phases of a season.  (T, P)"""
    means = _means(values, group, columns)
    result: Floats = values.copy()
    result[:, columns] -= means[group]
    return result


def without_levels(values: Floats, unit: Integers, tick: Integers, columns: Bools) -> tuple[Floats, Bools]:
    """A panel without the levels of its units in some columns, and the steps that are left.  (T, P), (T,)

    Each step loses the mean of the earlier steps of its unit, scaled to equal variance, and the first step of a unit is
    lost. Means over all steps would hold the future, and so make independent shocks dependent: with 5 steps per unit
    that takes half of the found edges, with 20 still some.
    """
    order = np.lexsort((tick, unit))
    result = values.copy()
    start = np.searchsorted(unit[order], unit[order])
    for column in np.flatnonzero(columns):
        cells = values[order, column]
        seen = ~np.isnan(cells)
        total = np.cumsum(np.concatenate([[0.0], np.where(seen, cells, 0.0)]))[:-1]
        count = np.cumsum(np.concatenate([[0], seen]))[:-1]
        before, earlier = total - total[start], count - count[start]
        mean = np.divide(before, earlier, out=np.full_like(before, np.nan), where=earlier > 0)
        result[order, column] = (cells - mean) * np.sqrt(earlier / (earlier + 1.0))
    kept = np.empty(len(values), dtype=bool)
    kept[order] = np.arange(len(values)) > start
    return result, kept


def differenced(values: Floats, columns: Bools, steps: Window) -> Floats:
    """The series with changes since the last step in some columns; NaN where there is no last step.  (T, P)

    `steps` is a window of one lag.
    """
    result: Floats = values.copy()
    result[:, columns] = np.nan
    now, before = steps.index.T
    known = (now >= 0) & (before >= 0)
    for column in np.flatnonzero(columns):
        result[now[known], column] = values[now[known], column] - values[before[known], column]
    return result


def means_of_groups(values: Floats, group: Integers) -> Floats:
    """The mean of each column in each group, NaN where nothing was observed.  (groups, P)"""
    return _means(values, group, np.ones(values.shape[1], dtype=bool))


def _means(values: Floats, group: Integers, columns: Bools) -> Floats:
    """Means of some columns by group, NaN where nothing was observed.  (groups, columns)"""
    groups = int(group.max()) + 1
    means = np.empty((groups, int(columns.sum())))
    for index, column in enumerate(np.flatnonzero(columns)):
        cells = values[:, column]
        seen = ~np.isnan(cells)
        count = np.bincount(group[seen], minlength=groups)
        total = np.bincount(group[seen], weights=cells[seen], minlength=groups)
        means[:, index] = np.divide(total, count, out=np.full(groups, np.nan), where=count > 0)
    return means
