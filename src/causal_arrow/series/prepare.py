"""Make a series ready for its window: take out what is asked for and the levels of units, and choose the lags."""

# T steps, N rows of the window, P variables, Q columns of the window, U units

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from causal_arrow.errors import Remedy, TableError
from causal_arrow.series.distribution import FURTHER_SLICES
from causal_arrow.series.options import AUTO, SeriesOptions
from causal_arrow.series.reading import Series
from causal_arrow.series.window import TIME, Window, window
from causal_arrow.tables.scales import with_logarithms
from causal_arrow.tables.table import Column, Finding, Table
from causal_arrow.text import counted, listed

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Integers = NDArray[np.int64]

MAX_LAGS = 8
ROWS_PER_COLUMN = 5
"""Fewer rows per column of the window tell too little about the last lag."""
LEVEL = 0.05
"""Of all tests together."""
MAX_ROWS = 20_000
"""More rows are thinned out evenly."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """A series as its window is read: what is to be explained, on the scale on which it is analyzed."""

    values: Floats  # (T', P) of the steps that are left
    kept: Bools  # (T,) which these are
    rows: Window
    lags: int
    prepared: dict[str, Any]
    findings: tuple[Finding, ...]
    levels: Floats | None = None  # (U, P) means of units, in panels

    def table(self, series: Series) -> Table:
        """The window as a table.  (N, Q)"""
        columns, marks = series.table.columns, series.table.intervened
        named = zip(self.rows.names(series.table.names), self.rows.columns, strict=True)
        return Table(
            self.rows.table(self.values),
            tuple(
                Column(name) if variable == TIME else replace(columns[variable], name=name)
                for name, (variable, _) in named
            ),
            intervened=None if marks is None else self.rows.table(marks[self.kept]),
        )


def prepare(series: Series, options: SeriesOptions, logarithms: Bools) -> Prepared:
    """Take out what is asked for and the levels of units, choose the lags, and find the rows of the window."""
    table = series.table
    values = with_logarithms(table.values, logarithms)
    done: dict[str, Any] = {}
    findings = []
    if logarithms.any():
        done["log"] = _named(table, logarithms)
    numbers = np.array([column.kind == "number" for column in table.columns], dtype=bool)
    where = {"time": series.tick, "unit": series.unit}
    changing = _to_difference(table, options, numbers)
    if changing.any():
        values = differenced(values, changing, window(values, 1, **where))
        done["difference"] = _named(table, changing)
    if options.season is not None:
        values = without_means(values, series.tick % options.season, numbers)
        done["season"] = options.season
    kept = np.ones(len(values), dtype=bool)
    levels = None
    if series.units > 1:
        levels = means_of_groups(values, series.unit)
        values, kept = without_levels(values, series.unit, series.tick, numbers)
        values, done["levels"] = values[kept], True
    environment = series.environment
    context = [] if table.environment is None else [table.names.index(table.environment)]
    further: dict[str, Any] = {
        "time": series.tick[kept],
        "unit": series.unit[kept],
        "environment": None if environment is None else environment[kept],
        "context": context,
    }
    lags = options.lags
    if lags == AUTO:
        longest = int(np.bincount(series.unit).max())
        tried = most_lags(len(values), table.variables, longest)
        lags = needed_lags(values, window(values, tried, **further))
        message = (
            f"{counted(lags, 'lag')}, chosen by regressions of every variable on the {counted(tried, 'step')} before."
        )
        findings.append(Finding("lags", "note", (), message))
    assert isinstance(lags, int)
    rows = window(values, lags + FURTHER_SLICES, **further)
    _refuse_constant(table, values, rows, bool(changing.any()))
    return Prepared(values, kept, rows, lags, done, tuple(findings), levels)


def _named(table: Table, columns: Bools) -> list[str]:
    return [name for name, chosen in zip(table.names, columns, strict=True) if chosen]


def _to_difference(table: Table, options: SeriesOptions, numbers: Bools) -> Bools:
    if isinstance(options.difference, bool):
        return numbers & options.difference
    named = [str(name) for name in options.difference]
    if named == ["all"] and "all" not in table.names:
        return numbers
    if unknown := [name for name in named if name not in table.names]:
        raise TableError(
            f"{unknown[0]!r} is not among the variables to difference: they are {listed(table.names, 10)}."
        )
    chosen = np.array([name in named for name in table.names], dtype=bool)
    if (chosen & ~numbers).any():
        name = table.names[int(np.flatnonzero(chosen & ~numbers)[0])]
        raise TableError(f"{name!r} holds levels, which have no differences: leave it out of difference.")
    return chosen


def _refuse_constant(table: Table, values: Floats, rows: Window, differenced: bool) -> None:
    for variable in rows.lagged:
        cells = values[rows.index[:, 0], variable]
        cells = cells[~np.isnan(cells)]
        if not len(cells) or not np.ptp(cells) > 1e-12 * max(1.0, float(np.abs(cells).max(initial=0.0))):
            name = table.names[variable]
            after = "once its changes are taken" if differenced else "in the rows that have all lags"
            raise TableError(f"Column {name!r} is constant {after}: leave it out.", [Remedy("drop", (name,))])


# What is taken out


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


# Lags


def most_lags(steps: int, variables: int, longest: int) -> int:
    """How many lags can be tried with so many steps in all, and so many in the longest unit."""
    return int(max(1, min(MAX_LAGS, steps // (ROWS_PER_COLUMN * variables), longest // 4)))


def needed_lags(values: Floats, rows: Window) -> int:
    """The largest lag, up to those of the window, at which a variable depends on the past; 1 at least.

    By the coefficients of a vector autoregression, corrected for their number. Information criteria are exact less
    often: they count every coefficient of a lag although few differ from zero.
    """
    from scipy.special import stdtr

    thin = slice(None, None, -(-len(rows.index) // MAX_ROWS))
    columns = np.column_stack([rows.column(values, column)[thin] for column in range(len(rows.columns))])
    centered = columns - np.nanmean(columns, axis=0)
    spread = np.nanstd(centered, axis=0)
    table = np.nan_to_num(centered / np.where(spread > 0, spread, 1.0))
    variables = len(rows.lagged)
    now, past = table[:, :variables], table[:, variables:]
    inverse = np.linalg.pinv(past.T @ past)
    coefficients = inverse @ past.T @ now
    freedom = max(1, len(now) - past.shape[1] - 1)
    variances = np.square(now - past @ coefficients).sum(axis=0) / freedom
    errors = np.sqrt(np.outer(inverse.diagonal(), variances))
    t = np.divide(coefficients, errors, out=np.zeros_like(errors), where=errors > 0)
    lagged = t[: -1 if rows.columns[-1][0] == TIME else None].reshape(rows.lags, -1)
    significant = 2 * stdtr(freedom, -np.abs(lagged).max(axis=1)) < LEVEL / lagged.size
    return int(np.flatnonzero(significant).max(initial=0)) + 1
