"""Warnings about a series: random walks, seasons, few effective rows, gaps, short panels, slow sampling."""

# T steps, P variables, L lags

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from causal_arrow.errors import Remedy
from causal_arrow.series.reading import Series
from causal_arrow.series.window import SHORT_PANEL, Window, in_units_of_largest, without_means
from causal_arrow.tables.table import MIN_ROWS, Column, Finding
from causal_arrow.text import counted, in_percent, listed

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

MIN_STEPS = 40  # shorter series are not tested for random walks and seasons
SEASON_LEVEL = 0.001
NEIGHBORS = 8  # frequencies on either side with which a season is compared
MIN_EFFECTIVE_ROWS = 50
MUCH_MEMORY = 0.8  # share of the rows below which memory, and not the length of the series, makes effective rows few
MUCH_IN_GAPS = 0.05
MIN_UNITS_OF_CLUSTERS = 20
MAX_PERIOD = 400  # longest period, in steps, of a column that counts like a calendar


def findings_of_series(
    values: Floats,
    rows: Window,
    columns: Sequence[Column],
    differenced: Collection[str] = (),
    ignore: Collection[str] = (),
) -> list[Finding]:
    """Warnings about a series as it is analyzed. `rows` is a window of it, `ignore` names variables not to test."""
    names = [column.name for column in columns]
    called = [names[variable] for variable in rows.lagged]
    found = _panel(rows, [names[variable] for variable in rows.constant])
    if (missing := float((rows.index < 0).mean())) > MUCH_IN_GAPS:
        message = f"Time has gaps: {in_percent(missing)} of the cells of the window are missing for that reason."
        found.append(Finding("gaps_in_time", "warning", (), message, (Remedy("resample"),)))
    numbers = [variable for variable in rows.lagged if columns[variable].kind == "number"]
    series = {names[variable]: _longest(values, rows, variable) for variable in numbers}
    tested = {name: cells for name, cells in series.items() if len(cells) >= MIN_STEPS and name not in ignore}
    walks = tuple(name for name, cells in tested.items() if unit_root(cells) > critical_value(len(cells)))
    levels = tuple(name for name in walks if name not in differenced)
    if levels:
        walk = _verb(levels, "a random walk", "random walks")
        message = f"{listed(levels)} may be {walk}: random walks look related even where nothing relates them."
        found.append(Finding("random_walk", "warning", levels, message, (Remedy("difference", levels),)))
    if changes := tuple(name for name in walks if name in differenced):
        message = f"Even the changes of {listed(changes)} look like random walks: do not rely on their edges."
        found.append(Finding("random_walk", "warning", changes, message))
    trends = tuple(names[variable] for variable in rows.trends if names[variable] not in (*walks, *ignore))
    if trends:
        message = f"{listed(trends)} may have a trend: time is read as a possible cause."
        found.append(Finding("trend", "note", trends, message, (Remedy("difference", trends),)))
    seasons = {name: season(cells) for name, cells in tested.items()}
    for period in sorted(set(seasons.values()) - {0}):
        names_of = tuple(name for name in called if seasons.get(name) == period)
        has = _verb(names_of, "has", "have")
        message = f"{listed(names_of)} {has} a season of about {period} steps, which acts like a hidden common cause."
        found.append(Finding("season", "warning", names_of, message, (Remedy("season", names_of, str(period)),)))
    apart = {*walks, *ignore}
    return found + _effective(values, rows, [(i, name) for i, name in enumerate(called) if name not in apart])


def findings_of_columns(series: Series) -> list[Finding]:
    """Warnings about columns that look like times or units but were not given as such."""
    order = np.lexsort((series.tick, series.unit))
    longest = order[series.unit[order] == np.bincount(series.unit).argmax()]
    columns = [(column, series.table.values[longest, index]) for index, column in enumerate(series.table.columns)]
    found = []
    if calendar := tuple(column.name for column, cells in columns if column.kind == "number" and _repeats(cells)):
        message = (
            f"{listed(calendar)} {_verb(calendar, 'counts', 'count')} time like a calendar, but {_verb(calendar)} read "
            "like any other variable."
        )
        found.append(Finding("calendar", "warning", calendar, message, (Remedy("drop", calendar),)))
    if series.units == 1:
        for column, cells in columns:
            if column.kind != "number" and 2 <= np.count_nonzero(np.diff(cells)) == len(column.levels) - 1:
                message = f"{column.name!r} changes only between blocks of rows, like the units of a stacked panel."
                found.append(Finding("stacked_units", "warning", (column.name,), message, (Remedy("unit"),)))
    return found


def _repeats(cells: Floats) -> bool:
    """True if the changes of a column with at least three values repeat exactly, at least three times."""
    with np.errstate(over="ignore"):
        changes = np.diff(cells)
        start = changes[: 3 * MAX_PERIOD]
        if len(changes) < 3 or np.isnan(cells).any() or len(np.unique(cells[: len(start)])) < 3:
            return False
        return any(
            all(np.allclose(each[period:], each[:-period], rtol=0, atol=1e-9) for each in (start, changes))
            for period in range(1, min(MAX_PERIOD, len(changes) // 3) + 1)
        )


def _verb(names: Sequence[str], one: str = "is", more: str = "are") -> str:
    return one if len(names) == 1 else more


def findings_of_graph(graph: Bools) -> list[Finding]:
    """A warning if all causes act within one step: the series may be sampled more slowly than effects act."""
    apart = ~np.eye(graph.shape[1], dtype=bool)
    now, later = int(graph[0].sum()), int((graph[1:] & apart).sum())
    if now < 2 or later:
        return []
    message = (
        f"All {now} edges between variables are at lag 0: effects act faster than the series is sampled, so time "
        "hardly helps with directions. Sample more often if you can."
    )
    return [Finding("slow_sampling", "warning", (), message)]


# Tests


def unit_root(series: Floats) -> float:
    """The t value of Dickey and Fuller's test with a trend: below `critical_value`, the series is not a random walk."""
    lags = int(4 * (len(series) / 100) ** 0.25)  # Schwert's shorter number
    change = np.diff(series)
    past = [change[lags - lag : len(change) - lag] for lag in range(1, lags + 1)]
    count = len(change) - lags
    design = np.column_stack([series[lags:-1], np.ones(count), np.arange(count) / count, *past])
    inverse = np.linalg.pinv(design.T @ design)
    coefficients = inverse @ (design.T @ change[lags:])
    variance = np.square(change[lags:] - design @ coefficients).sum() / max(1, count - design.shape[1])
    error = float(np.sqrt(inverse[0, 0] * variance))
    return float(coefficients[0]) / error if error > 0 else -np.inf


def critical_value(steps: int) -> float:
    """The critical value of `unit_root` at the level 0.05, by MacKinnon's response surface."""
    return -3.4126 - 4.039 / steps - 17.83 / steps**2


def season(series: Floats) -> int:
    """The period of a season in steps, 0 without one: a frequency with far more power than those around it."""
    time = np.linspace(0, 1, len(series))
    rest: Floats = series - np.polyval(np.polyfit(time, series, 1), time)
    power = np.square(np.abs(np.fft.rfft(rest * np.hanning(len(rest)))))
    around = np.concatenate([np.arange(3, 3 + NEIGHBORS), -np.arange(3, 3 + NEIGHBORS)])
    frequencies = np.arange(4, len(power) - 1)  # four seasons at least
    if len(frequencies) <= 2 * NEIGHBORS:
        return 0
    indices = np.abs(frequencies[:, None] + around)  # mirrored at both ends
    indices = np.where(indices >= len(power), 2 * (len(power) - 1) - indices, indices)
    ratio = power[frequencies] / np.maximum(power[indices].mean(axis=1), np.finfo(float).tiny)
    best = int(ratio.argmax())
    # Under noise of a smooth spectrum the ratio follows F with 2 and about as many degrees of freedom as neighbors.
    freedom = len(around)
    chance = len(frequencies) * (1 + 2 * float(ratio[best]) / freedom) ** (-freedom / 2)
    period = round(len(series) / int(frequencies[best]))
    return period if chance < SEASON_LEVEL and period >= 3 else 0


def effective_rows(series: Floats) -> float:
    """Number of independent rows with as much information on products of two such series: N (1 − ρ²) / (1 + ρ²)."""
    series = in_units_of_largest(series)
    now, before = series[1:], series[:-1]
    seen = ~np.isnan(now) & ~np.isnan(before)
    if seen.sum() < 3 or not np.ptp(now[seen]) or not np.ptp(before[seen]):
        return float(seen.sum())
    memory = float(np.corrcoef(now[seen], before[seen])[0, 1]) ** 2
    return float(seen.sum()) * (1 - memory) / (1 + memory)


def _longest(values: Floats, rows: Window, variable: int) -> Floats:
    """The variable in the longest unit, standardized, gaps filled on a line: for tests of one series."""
    unit = int(np.bincount(rows.unit).argmax())
    step = rows.index[rows.unit == unit, 0]
    cells = values[step[np.argsort(rows.tick[rows.unit == unit])], variable]
    seen = np.flatnonzero(~np.isnan(cells))
    if not len(seen) or not np.ptp(cells[seen]):
        return np.zeros(0)
    filled = in_units_of_largest(np.interp(np.arange(len(cells)), seen, cells[seen]))
    return np.asarray((filled - filled.mean()) / filled.std())


def _panel(rows: Window, constant: Sequence[str]) -> list[Finding]:
    units = int(rows.unit.max()) + 1
    if units < 2:
        return []
    steps = len(rows.index) / units
    found = []
    if steps < SHORT_PANEL:
        message = (
            f"{counted(units, 'unit')} with about {counted(round(steps), 'step')} after the lags: so few that the "
            "levels of units bias the dependence of variables on their own past. Curves are corrected for it."
        )
        found.append(Finding("short_panel", "note", (), message))
    if units < MIN_UNITS_OF_CLUSTERS:
        message = f"{counted(units, 'unit')}: errors clustered by unit are too small with so few."
        found.append(Finding("few_units", "warning", (), message))
    if constant:
        message = (
            f"{listed(constant)} {_verb(constant)} constant within each unit: "
            f"{_verb(constant, 'it has', 'they have')} {counted(units, 'observation')}, one per unit"
            f"{', too few to learn from.' if units < MIN_ROWS else '.'}"
        )
        found.append(Finding("constant_in_units", "note", tuple(constant), message))
    return found


def _effective(values: Floats, rows: Window, variables: Sequence[tuple[int, str]]) -> list[Finding]:
    """A warning about few independent rows, by the variable with the strongest memory."""
    if not variables:
        return []
    cells = values
    if rows.unit.any():
        unit = np.zeros(len(values), dtype=np.int64)
        unit[rows.index[:, 0]] = rows.unit
        cells = without_means(values, unit)
    effective, name = min((effective_rows(rows.column(cells, index)), name) for index, name in variables)
    if effective >= MIN_EFFECTIVE_ROWS:
        return []
    few = f"Only {counted(len(rows.index), 'row')}"
    if effective < MUCH_MEMORY * len(rows.index):
        independent = f"are worth about {max(1, round(effective))} independent ones, since {name!r} changes slowly"
        few = f"The {counted(len(rows.index), 'row')} {independent}"
    message = f"{few}: rely on strong edges alone, or observe for longer."
    return [Finding("effective_rows", "warning", (), message)]
