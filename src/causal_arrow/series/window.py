"""A series as a table: one row per step, its columns the variables now and up to L steps before.

Rows are found, not copied: `Window.index` gives the step of the series that fills each slice of each row, and columns
are read through it one at a time. So a million steps with hundreds of columns need no table of that size.
"""

# T steps of the series, N rows of the window, P variables, L lags, Q columns of the window

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from causal_arrow.errors import Remedy, TableError
from causal_arrow.storage import room_for
from causal_arrow.text import counted

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Integers = NDArray[np.int64]

TIME = -1  # the number of time itself where the columns of a window name their variables
MIN_ROWS = 10
SHORT_PANEL = 100  # steps per unit up to which the bias of short panels is corrected
SAME_STEP = 1e-6  # relative difference up to which two steps of time are equal
TREND = 2.5  # standard errors of a correlation with time, from which a variable may have a trend


@dataclass(frozen=True, eq=False)
class Window:
    """The step of the series behind each slice of each row. Columns are lag 0, lag 1, ..., context, time.

    Time is a column so that a trend shows as an effect of time and not as dependence among variables.
    """

    index: Integers  # (N, L + 1) the step that fills each slice, -1 where time has a gap
    unit: Integers  # (N,) from 0
    tick: Integers  # (N,) the time of each row, in steps
    lagged: tuple[int, ...]  # the variables that have lags
    context: tuple[int, ...] = ()  # those read at lag 0 alone
    constant: tuple[int, ...] = ()  # others, constant within each unit: not part of the window
    trends: tuple[int, ...] = ()  # those that may have a trend

    @property
    def lags(self) -> int:
        """L"""
        return int(self.index.shape[1]) - 1

    @cached_property
    def columns(self) -> tuple[tuple[int, int], ...]:
        """The variable and the lag of each column.  (Q,)"""
        slices = [(variable, lag) for lag in range(self.lags + 1) for variable in self.lagged]
        context = [(variable, 0) for variable in (*self.context, *([TIME] if self.trends else []))]
        return (*slices, *context)

    def names(self, names: Sequence[str]) -> tuple[str, ...]:
        """Names of the columns, such as `sales` and `sales t-1`.  (Q,)"""
        called = [*names, "time of row" if "time" in names else "time"]  # the last one has the index TIME
        return tuple(at_lag(called[variable], lag) for variable, lag in self.columns)

    def column(self, values: NDArray[Any], column: int) -> NDArray[Any]:
        """One column of the window, read from the series (T, P); NaN, or False, where time has a gap.  (N,)"""
        variable, lag = self.columns[column]
        if variable == TIME:
            share: NDArray[Any] = (self.tick - self.tick.min()) / np.ptp(self.tick)
            return share if values.dtype != bool else share < 0  # no experiment sets time
        step = self.index[:, lag]
        found: NDArray[Any] = values[step, variable]
        found[step < 0] = False if found.dtype == bool else np.nan
        return found

    def table(self, values: NDArray[Any]) -> NDArray[Any]:
        """All columns of the window.  (N, Q)"""
        result = room_for((len(self.index), len(self.columns)), values.dtype)
        for column in range(result.shape[1]):
            result[:, column] = self.column(values, column)
        return result


def at_lag(name: str, lag: int) -> str:
    """The name of a variable at a lag, such as `soil t-2`."""
    return f"{name} t-{lag}" if lag else name


def window(
    values: Floats,
    lags: int,
    *,
    time: ArrayLike | None = None,
    unit: ArrayLike | None = None,
    environment: ArrayLike | None = None,
    context: Collection[int] = (),
) -> Window:
    """The window of a series (T, P), or of a panel: no row mixes two units, or steps before and after a change of
    environment, and gaps in time leave missing cells. Variables of the `context` have no lags."""
    unit_of = codes(unit, len(values))
    tick = ticks(time, unit_of)
    order = np.lexsort((tick, unit_of))
    unit_of, tick = unit_of[order], tick[order]
    stretch = unit_of
    if environment is not None:
        setting = codes(environment, len(values))[order]
        changed = (unit_of[1:] != unit_of[:-1]) | (setting[1:] != setting[:-1])
        stretch = np.concatenate([[0], np.cumsum(changed)])
    since_start = tick - tick[np.searchsorted(stretch, stretch)]
    # A key that grows by 1 per step, with stretches further apart than any lag.
    key = stretch * (int(since_start.max(initial=0)) + lags + 2) + since_start
    rows = np.flatnonzero(since_start >= lags)
    index = np.empty((len(rows), lags + 1), dtype=np.int64)
    for lag in range(lags + 1):
        found = np.searchsorted(key, key[rows] - lag)
        index[:, lag] = np.where(key[found] == key[rows] - lag, order[found], -1)
    has_past = (index[:, 1:] >= 0).any(axis=1)
    rows, index = rows[has_past], index[has_past]
    if len(rows) < MIN_ROWS:
        raise TableError(
            f"Expected at least {MIN_ROWS} steps with {counted(lags, 'step')} before them, got {len(rows)}: the series "
            "is too short for so many lags.",
            [Remedy("fewer lags")] if lags > 1 else [],
        )
    still = constant_within(values, order, unit_of)
    lagged = tuple(variable for variable in np.flatnonzero(~still).tolist() if variable not in context)
    if not lagged:
        raise TableError("Expected a variable that changes in time, but every column is constant within its unit.")
    constant = tuple(variable for variable in np.flatnonzero(still).tolist() if variable not in context)
    result = Window(index, unit_of[rows], tick[rows], lagged, tuple(sorted(context)), constant)
    trends = [variable for i, variable in enumerate(lagged) if _may_have_trend(result, values, i)]
    return replace(result, trends=tuple(trends))


def codes(labels: ArrayLike | None, count: int) -> Integers:
    """A whole number for each label, from 0; all 0 without labels.  (T,)"""
    if labels is None:
        return np.zeros(count, dtype=np.int64)
    return np.asarray(np.unique(np.asarray(labels), return_inverse=True)[1], dtype=np.int64).reshape(-1)


def ticks(time: ArrayLike | None, unit: Integers) -> Integers:
    """Time in steps of the series, whole numbers; the step is the most frequent difference within units.  (T,)"""
    order = np.argsort(unit, kind="stable")
    first = np.searchsorted(unit[order], unit[order])
    if time is None:
        index = np.empty(len(unit), dtype=np.int64)
        index[order] = np.arange(len(unit)) - first
        return index
    times = _as_numbers(np.asarray(time))
    order = np.lexsort((times, unit))
    sorted_times, same_unit = times[order], np.diff(unit[order]) == 0
    gaps = np.diff(sorted_times)[same_unit]
    gaps = gaps[gaps > 0]
    if not len(gaps):
        return np.zeros(len(times), dtype=np.int64)
    sizes, counts = np.unique(np.round(gaps, 12 - int(np.ceil(np.log10(gaps.max())))), return_counts=True)
    step = float(sizes[counts.argmax()])
    start = sorted_times[first]
    with np.errstate(all="ignore"):  # of times that differ by very much
        since_start = (sorted_times - start) / step
        off = ~(np.abs(since_start - since_start.round()) <= SAME_STEP * np.maximum(since_start, 1.0))
    if off.any():
        between = f"{int(off.sum()):,} of {len(times):,} times lie between two steps of the most frequent length"
        raise TableError(f"Expected equal steps of time, but {between}.", [Remedy("resample")])
    index = np.empty(len(times), dtype=np.int64)
    index[order] = np.floor((start - times.min()) / step + SAME_STEP) + since_start.round()
    return index


def _as_numbers(times: NDArray[Any]) -> Floats:
    """Numbers and dates as numbers: months where all dates lie on the same day of the month or on its last, working
    days where no date lies on a weekend."""
    if times.dtype.kind == "M":
        days, months = times.astype("datetime64[D]"), times.astype("datetime64[M]")
        same_day = days == months.astype("datetime64[D]") + (days[:1] - months[:1].astype("datetime64[D]"))
        last_day = (months + 1).astype("datetime64[D]") - days == np.timedelta64(1, "D")
        missing = np.isnat(times)
        weeks, weekday = np.divmod(days.astype(np.int64) + 3, 7)  # from Monday
        if (same_day.all() or last_day.all()) and len(np.unique(months)) > 1 and (days == times).all():
            counts = months.astype(np.int64)
        elif (weekday < 5).all() and (times - days == times[0] - days[0]).all():
            counts = 5 * weeks + weekday
        else:
            counts = times.astype("datetime64[us]").astype(np.int64)
        times = np.where(missing, np.nan, counts.astype(np.float64))
    numbers = times.astype(np.float64)
    if not np.isfinite(numbers).all():
        raise TableError("Expected a time in every row, but some are missing: leave out these rows.")
    return numbers


def constant_within(values: Floats, order: Integers, unit: Integers) -> Bools:
    """The variables that keep one value within each unit; none where there is one unit.  (P,)"""
    constant = np.zeros(values.shape[1], dtype=bool)
    starts = np.flatnonzero(np.diff(unit, prepend=-1))
    for variable in range(values.shape[1] if len(starts) > 1 else 0):
        low, high = (extreme.reduceat(values[order, variable], starts) for extreme in (np.fmin, np.fmax))
        constant[variable] = bool(((low == high) | np.isnan(low)).all())
    return constant


def _may_have_trend(rows: Window, values: Floats, column: int) -> bool:
    """True if a variable is correlated with time by more than its memory explains."""
    now, before = (in_units_of_largest(rows.column(values, at)) for at in (column, column + len(rows.lagged)))
    seen = ~np.isnan(now) & ~np.isnan(before)
    if seen.sum() < MIN_ROWS or not min(np.ptp(now[seen]), np.ptp(before[seen]), np.ptp(rows.tick[seen])):
        return False
    with_past, with_time = np.corrcoef([now[seen], before[seen], rows.tick[seen]])[0, 1:]
    memory = max(with_past, 0.0)
    return bool(abs(with_time) * np.sqrt(seen.sum() * (1 - memory) / (1 + memory)) > TREND)


def in_units_of_largest(cells: Floats) -> Floats:
    """Numbers divided by the largest: squares of very large numbers would overflow."""
    largest = float(np.nanmax(np.abs(cells), initial=0.0))
    return cells / largest if largest > 0 else cells


# Means of groups


def without_means(values: Floats, group: Integers, columns: Bools | None = None) -> Floats:
    """The series without the mean of each group in some columns, such as the phases of a season.  (T, P)"""
    chosen = np.ones(values.shape[1], dtype=bool) if columns is None else columns
    result: Floats = values.copy()
    result[:, chosen] -= means_of_groups(values[:, chosen], group)[group]
    return result


def means_of_groups(values: Floats, group: Integers) -> Floats:
    """The mean of each column in each group, NaN where nothing was observed.  (groups, P)"""
    groups = int(group.max()) + 1
    means = np.empty((groups, values.shape[1]))
    for index, cells in enumerate(values.T):
        seen = ~np.isnan(cells)
        count = np.bincount(group[seen], minlength=groups)
        total = np.bincount(group[seen], weights=cells[seen], minlength=groups)
        means[:, index] = np.divide(total, count, out=np.full(groups, np.nan), where=count > 0)
    return means
