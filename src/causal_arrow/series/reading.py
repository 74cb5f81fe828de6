"""read_series(): a table whose rows have a time, and a unit in panels."""

# T steps, P variables

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from causal_arrow.errors import Remedy, TableError
from causal_arrow.inputs import as_list
from causal_arrow.progress import Progress, ignore
from causal_arrow.series import SeriesOptions
from causal_arrow.series.window import codes, ticks
from causal_arrow.tables.options import ReadOptions
from causal_arrow.tables.raw import RawFrame
from causal_arrow.tables.reading import UnusableColumns, read_rows
from causal_arrow.tables.sources import as_frame
from causal_arrow.tables.table import ANY_TABLE, Abilities, Finding, Table
from causal_arrow.text import counted, shown

if TYPE_CHECKING:
    import pandas as pd

Integers = NDArray[np.int64]
Bools = NDArray[np.bool_]

MAX_STEPS_PER_ROW = 100  # steps that resampling may make, nearly all of them empty
CONTINUES = re.compile(r"(\d+)\s*(\D.*)")
PERIODS: Mapping[str, str] = {"MS": "M", "ME": "M", "QS": "Q", "QE": "Q", "YS": "Y", "YE": "Y", "T": "min", "H": "h"}
"""Other names of periods."""


@dataclass(frozen=True, eq=False)
class Series:
    """A table whose rows have a time and a unit."""

    table: Table
    """One row per step, in any order."""
    tick: Integers
    """The time of each row in steps, whole numbers.  (T,)"""
    unit: Integers
    """The unit of each row, from 0.  (T,)"""

    @property
    def units(self) -> int:
        """The number of units; 1 unless it is a panel."""
        return int(self.unit.max()) + 1

    @property
    def environment(self) -> Integers | None:
        """The environment of each row, if there are any.  (T,)"""
        table = self.table
        if table.environment is None:
            return None
        return codes(table.values[:, table.names.index(table.environment)], table.observations)


def read_series(
    source: Any,
    options: SeriesOptions,
    reading: ReadOptions | None = None,
    abilities: Abilities = ANY_TABLE,
    progress: Progress = ignore,
) -> Series:
    """Read a table, or whatever else `read_table` takes, with the time and the unit of each row."""
    import pandas as pd

    reading = reading or ReadOptions()
    raw = as_frame(source, reading, progress)
    time, time_column = _labels(raw, options.time, "time")
    unit, unit_column = _labels(raw, options.unit, "unit")
    if time is None and raw.lines is None and isinstance(raw.frame.index, pd.DatetimeIndex | pd.PeriodIndex):
        time = raw.frame.index.to_series().reset_index(drop=True)
    apart = [name for name in (time_column, unit_column) if name is not None]
    kept = None if reading.columns is None else [name for name in reading.columns if str(name) not in apart]
    blank = reading.missing == "drop"
    missing = "auto" if blank else reading.missing
    changed = reading.changed(drop=[*(reading.drop or ()), *apart], columns=kept, missing=missing)
    try:
        table, rows = read_rows(raw, changed, abilities, progress=progress)
    except UnusableColumns as error:
        if time is not None or "date" not in error.kinds:
            raise
        raise TableError(error.message, [Remedy("time"), *error.remedies]) from error
    unit_of = _units(unit, len(raw), unit_column)
    times = None if time is None else _times(time, raw, time_column)
    if options.resample is not None:
        if times is None:
            raise TableError("Resampling needs times: name the column that holds them.", [Remedy("time")])
        return _resampled(Series(table, _periods(times, options.resample)[rows], unit_of[rows]))
    tick = ticks(times, unit_of)
    order = np.lexsort((tick, unit_of))
    same = (np.diff(unit_of[order]) == 0) & (np.diff(tick[order]) == 0)
    if same.any():
        where, row = "" if unit is None else " per unit", raw.where(int(order[1:][same].min()))
        raise TableError(
            f"Expected one row{where} at each time, but the time of {row} occurs twice: keep one of the rows.",
            [Remedy("unit")] if unit is None else [],
        )
    if blank:
        values = table.values.copy()
        values[~table.observed.all(axis=1)] = np.nan
        table = replace(table, values=values)
    return Series(table, tick[rows], unit_of[rows])


def _labels(raw: RawFrame, given: Any, option: str) -> tuple[pd.Series | None, str | None]:
    """The labels of rows from a column or from the caller, and the name of the column."""
    import pandas as pd

    if given is None:
        return None, None
    if isinstance(given, str | int) and not isinstance(given, bool):
        (index,) = raw.indices([given])
        return raw.cells(index).reset_index(drop=True), raw.names[index]
    if (entries := as_list(given)) is None:
        raise TableError(f"Expected {option} as one label for each row or the name of a column, got {shown(given)}.")
    labels = pd.Series(given if isinstance(given, pd.Series) else entries).reset_index(drop=True)
    if len(labels) != len(raw):
        raise TableError(f"Expected {option} as one label for each of {len(raw):,} rows, got {len(labels):,}.")
    return labels, None


def _units(labels: pd.Series | None, count: int, column: str | None) -> Integers:
    if labels is None:
        return np.zeros(count, dtype=np.int64)
    named = f" in {column!r}" if column is not None else ""
    if missing := int(labels.isna().sum()):
        raise TableError(f"Expected a unit in every row, but {counted(missing, 'label')}{named} is missing.")
    unit_of = codes(labels.astype(str).to_numpy(dtype=str), count)
    counts = np.bincount(unit_of)
    if len(counts) == 1:
        raise TableError(f"The units{named} are all {str(labels.iloc[0])!r}: leave out the unit of a single series.")
    if counts.max() == 1:
        raise TableError(f"Every unit{named} has one row: expected several steps of each, or a table without lags.")
    return unit_of


def _times(labels: pd.Series, raw: RawFrame, column: str | None) -> NDArray[Any]:
    """Times as numbers or dates."""
    import pandas as pd

    if isinstance(labels.dtype, pd.PeriodDtype):
        labels = labels.dt.to_timestamp()
    if isinstance(labels.dtype, pd.DatetimeTZDtype):
        labels = labels.dt.tz_convert("UTC").dt.tz_localize(None)
    if pd.api.types.is_datetime64_any_dtype(labels.dtype):
        return np.asarray(labels, dtype="datetime64[us]")
    numeric = pd.to_numeric(labels, errors="coerce")
    if (numeric.notna() | labels.isna()).all():
        return np.asarray(numeric, dtype=np.float64)
    for day_first in (False, True):  # which only the whole column shows: 1/2 may be either, 13/2 may not
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            dates = pd.to_datetime(labels, errors="coerce", utc=True, dayfirst=day_first).dt.tz_localize(None)
        if not (bad := dates.isna() & labels.notna()).any():
            break
    if bad.any():
        row, named = int(np.flatnonzero(bad)[0]), f" in {column!r}" if column is not None else ""
        raise TableError(
            f"Expected dates or numbers as times{named}, got {shown(labels.iloc[row])} in {raw.where(row)}: correct "
            "it, or leave out this row."
        )
    return np.asarray(dates, dtype="datetime64[us]")


# Resampling


def _periods(times: NDArray[Any], length: Any) -> Integers:
    """The number of the period in which each time lies.  (T,)"""
    import pandas as pd

    if pd.isna(times).any():
        raise TableError("Expected a time in every row, but some are missing: leave out these rows.")
    if times.dtype.kind != "M":
        try:
            step = float(length)
        except (TypeError, ValueError):
            step = np.nan
        if not step > 0 or not np.isfinite(step):
            raise TableError(f"Expected resample as a positive number, since times are numbers, got {shown(length)}.")
        return np.asarray(np.floor(times / step + 1e-9), dtype=np.int64)
    several = CONTINUES.fullmatch(str(length).strip())
    count, name = (int(several[1]), several[2]) if several else (1, str(length).strip())
    try:
        if not count:
            raise ValueError("a period has no length")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # pandas means to drop "B"
            period = pd.DatetimeIndex(times).to_period(PERIODS.get(name, name))
    except (ValueError, TypeError, AttributeError) as error:
        known = "a period such as 'D', 'W', 'MS', 'h' or '15min'"
        raise TableError(f"Expected resample as {known}, got {shown(length)}.") from error
    return np.asarray(period.asi8 // count, dtype=np.int64)


def _resampled(series: Series) -> Series:
    """One row per unit and period: means of numbers, the last of levels, marks where any row is marked."""
    import pandas as pd

    table, keys = series.table, [series.unit, series.tick]
    extent = pd.Series(series.tick).groupby(series.unit).agg(["min", "max"])
    lengths = (extent["max"] - extent["min"] + 1).to_numpy()
    if (total := int(lengths.sum())) > MAX_STEPS_PER_ROW * table.observations:
        raise TableError(
            f"Resampling would make {total:,} steps of {counted(table.observations, 'row')}: choose a longer period."
        )
    unit = np.repeat(np.arange(series.units), lengths)
    tick = np.arange(total) - np.repeat(np.cumsum(lengths) - lengths - extent["min"].to_numpy(), lengths)
    steps = pd.MultiIndex.from_arrays([unit, tick])
    order = np.argsort(series.tick, kind="stable")
    rows = pd.DataFrame(table.values[order]).groupby([key[order] for key in keys])
    how = {index: "mean" if column.kind == "number" else "last" for index, column in enumerate(table.columns)}
    values = rows.agg(how).reindex(steps)
    intervened = None
    if table.intervened is not None:
        marked = pd.DataFrame(table.intervened).groupby(keys).any()
        intervened = marked.reindex(steps, fill_value=False).to_numpy(dtype=bool)
    if table.environment is not None:  # which holds until it changes
        column_index = table.names.index(table.environment)
        values[column_index] = values[column_index].groupby(level=0).ffill()
    message = f"{counted(table.observations, 'row')} were brought to {counted(total, 'equal step')}."
    findings = (*table.findings, Finding("resampled", "note", (), message))
    resampled = replace(table, values=values.to_numpy(dtype=np.float64), intervened=intervened, findings=findings)
    return Series(resampled, tick - tick.min(), unit)
