"""From a series to an answer: prepare it, choose the lags, run the network on its window, tie the pairs that recur."""

# T steps, N rows of the window, P variables, Q columns of the window, U units

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from causal_arrow.discovery.answer import set_in_every
from causal_arrow.discovery.arranged import arrange
from causal_arrow.discovery.inference import Workload, check_memory, infer, model_name, workload
from causal_arrow.discovery.pipeline import direction_temperature, part_of, scale_finding
from causal_arrow.discovery.settings import Settings, as_knowledge
from causal_arrow.errors import Remedy, TableError
from causal_arrow.graphs.graph_distribution import CERTAIN, coin_entropy, sigmoid
from causal_arrow.network import Network
from causal_arrow.progress import Progress, ignore
from causal_arrow.series import AUTO, SeriesOptions
from causal_arrow.series._findings import findings_of_columns, findings_of_series
from causal_arrow.series.answer import SeriesAnswer
from causal_arrow.series.distribution import FURTHER_SLICES, WindowDistribution, tied, window_knowledge
from causal_arrow.series.reading import Series
from causal_arrow.series.window import (
    TIME,
    Window,
    at_lag,
    constant_within,
    means_of_groups,
    window,
    without_means,
)
from causal_arrow.tables.report import TableReport, groups_of_copies
from causal_arrow.tables.scales import chosen_reading, readings, with_logarithms
from causal_arrow.tables.table import MIN_ROWS, Column, Finding, Table
from causal_arrow.text import counted, listed

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Integers = NDArray[np.int64]

ABOUT_ROWS = ("time_order", "index", "few_observations")  # kinds of findings about tables that do not apply to series
MAX_LAGS = 8  # the most that lags="auto" tries
ROWS_PER_COLUMN = 5  # with fewer rows per column of the window, the last lag is hardly seen
LEVEL = 0.05  # significance level of all tests together
MAX_ROWS = 20_000  # more rows are thinned out evenly


def answer_series(
    network: Network,
    series: Series,
    report: TableReport,
    settings: Settings,
    *,
    before: Callable[[Workload], None] | None = None,
    progress: Progress = ignore,
) -> tuple[SeriesAnswer, TableReport]:
    """The answer for a series, and its report with the findings about time."""
    table, options, knowledge = series.table, settings.series, as_knowledge(settings.knowledge)
    ways = [prepare(series, options, columns) for columns in readings(settings.scale, table.log_candidates)]
    first = ways[0]
    names = tuple(table.names[variable] for variable in first.rows.lagged)
    # What differs among units alone is context, where there are enough units to learn from.
    constant = [
        variable
        for variable in first.rows.constant
        if first.levels is not None and series.units >= MIN_ROWS and np.nanstd(first.levels[:, variable]) > 0
    ]
    between = tuple(table.names[variable] for variable in constant)
    always_set = set_in_every(table.observations, table.experiments)
    # Compiled before the network runs: a misspelled name should not have to wait for it.
    window_knowledge(knowledge, names, (*first.context(table.names), *between), first.lags, always_set=always_set)
    distributions, checksum = [], ""
    for number, way in enumerate(ways):
        part, before_it = part_of(progress, number, len(ways)), None if number else before
        distribution, own_checksum = _read(network, series, way, report, settings, before_it, part)
        checksum = checksum or own_checksum
        if constant:
            of_units = _between_units(network, series, way, constant)
            distribution = replace(distribution, context=np.concatenate([distribution.context, of_units]))
        distributions.append(distribution if options.contemporaneous else distribution.without_now())
    uncertainties = [_uncertainty(distribution) for distribution in distributions]
    chosen = chosen_reading(uncertainties)
    way, distribution = ways[chosen], distributions[chosen]
    if settings.directions == "tempered":
        distribution = replace(distribution, now=distribution.now.tempered(direction_temperature(table)))
    of_columns = findings_of_columns(series)
    ignored = [name for finding in of_columns for name in finding.columns]
    findings = [
        *(finding for finding in report.findings if finding.kind not in ABOUT_ROWS),
        *of_columns,
        *findings_of_series(way.values, way.rows, table.columns, way.prepared.get("difference", ()), ignored),
        *way.findings,
    ]
    if len(ways) > 1:
        findings.append(scale_finding(ways[-1].prepared["log"], chosen, uncertainties))
    findings.sort(key=lambda finding: ("problem", "warning", "note").index(finding.severity))
    answer = SeriesAnswer(
        names=names,
        distribution=distribution,
        context=(*way.context(table.names), *between),  # a trend on one scale may be none on the other
        knowledge=knowledge,
        decode=settings.decode,
        threshold=settings.threshold,
        hidden=settings.hidden,
        hidden_threshold=settings.hidden_threshold,
        steps=table.observations,
        observations=len(way.rows.index),
        units=series.units,
        model=model_name(settings.model),
        findings=tuple(findings),
        prepared=way.prepared,
        columns=table.columns,
        experiments=table.experiments,
        always_set=always_set,
        environment=table.environment,
        table_checksum=checksum,
    )
    return answer, replace(report, findings=tuple(findings))


def _read(
    network: Network,
    series: Series,
    way: Prepared,
    report: TableReport,
    settings: Settings,
    before: Callable[[Workload], None] | None,
    progress: Progress,
) -> tuple[WindowDistribution, str]:
    """The distribution over window graphs for one way of reading the scales, and a checksum of the window."""
    table = _readable(network, way.table(series))
    arranged = arrange(table, settings.max_rows)
    work = workload(network, len(arranged.rows), table.variables, settings.observations_per_chunk)
    check_memory(work, network)
    if before is not None:
        before(work)
    known = set(table.names)
    groups = [
        [at_lag(name, lag) for name in group]
        for group in groups_of_copies(report.findings)
        for lag in range(way.rows.lags + 1)
    ]
    arranged = arranged.reading_once([group for group in groups if known.issuperset(group)])
    found = infer(network, arranged, settings.observations_per_chunk, progress)
    return tied(found.rearranged(np.argsort(arranged.arrangement)), way.rows, way.lags), arranged.checksum


def _readable(network: Network, table: Table) -> Table:
    """The window, without its incomplete rows if the network cannot read missing cells."""
    complete = np.asarray(table.observed.all(axis=1))
    if "observed" in network.reads or complete.all():
        return table
    if complete.sum() < MIN_ROWS:
        raise TableError(
            f"Expected at least {MIN_ROWS} rows of the window without missing cells, which this model cannot read, got "
            f"{complete.sum()}: choose a model that reads missing cells.",
            [Remedy("fewer lags")],
        )
    return table.only(complete)


def _between_units(network: Network, series: Series, way: Prepared, constant: Sequence[int]) -> Floats:
    """Log-odds that what is constant within units acts on the levels of variables, from a row per unit.  (C, P)"""
    assert way.levels is not None
    columns = series.table.columns
    lagged = [variable for variable in way.rows.lagged if np.nanstd(way.levels[:, variable]) > 0]
    chosen = [*constant, *lagged]
    # The mean of a variable with levels is a share, or a mean code, and no level.
    own = [columns[variable] if variable in constant else Column(columns[variable].name) for variable in chosen]
    arranged = arrange(_readable(network, Table(way.levels[:, chosen], tuple(own))))
    found = infer(network, arranged).rearranged(np.argsort(arranged.arrangement))
    result = np.full((len(constant), len(way.rows.lagged)), -CERTAIN)
    where = [way.rows.lagged.index(variable) for variable in lagged]
    result[:, where] = found.skeleton_logits[: len(constant), len(constant) :]
    return result


def _uncertainty(distribution: WindowDistribution) -> float:
    """Bits per edge that the network leaves open, over all lags."""
    now = distribution.now
    edges = float(now.skeleton_probabilities().sum()) / 2 + float(sigmoid(distribution.past).sum())
    at_lag_0 = float(now.uncertainty()) * max(float(now.skeleton_probabilities().sum()) / 2, 1.0)
    return (at_lag_0 + float(coin_entropy(distribution.past).sum())) / max(edges, 1.0)


# Preparing


@dataclass(frozen=True, eq=False)
class Prepared:
    """The values to analyze, on their scale, with the rows of the window."""

    values: Floats  # (T', P) of the steps that remain
    kept: Bools  # (T,) which steps remain
    rows: Window
    lags: int
    prepared: dict[str, Any]
    findings: tuple[Finding, ...]
    levels: Floats | None = None  # (U, P) means of units, in panels

    def context(self, names: Sequence[str]) -> tuple[str, ...]:
        """Names of the columns without lags."""
        return self.rows.names(names)[len(self.rows.lagged) * (self.rows.lags + 1) :]

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
    """Subtract what the options name and the levels of units, choose the lags, and find the rows of the window."""
    table = series.table
    values = with_logarithms(table.values, logarithms)
    done: dict[str, Any] = {}
    findings = []
    numbers = np.array([column.kind == "number" for column in table.columns], dtype=bool)
    changing = _to_difference(table, options, numbers)
    for what, columns in (("log", logarithms), ("difference", changing)):
        if columns.any():
            done[what] = [table.names[column] for column in np.flatnonzero(columns)]
    if changing.any():
        values = differenced(values, changing, window(values, 1, time=series.tick, unit=series.unit))
    if options.season is not None:
        if 2 * options.season > (steps := int(np.ptp(series.tick)) + 1):
            raise TableError(
                f"Expected at least two seasons of {options.season:,} steps, but the series has {steps:,} steps: "
                "choose a shorter season, or leave it out."
            )
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
    lags, longest = options.lags, int(np.bincount(series.unit).max())
    if lags == AUTO:
        tried = most_lags(len(values), table.variables, longest)
        lags = needed_lags(values, window(values, tried, **further))
        chosen = f"{counted(lags, 'lag')}, chosen by regressions of every variable on the"
        findings.append(Finding("lags", "note", (), f"{chosen} {counted(tried, 'step')} before."))
    assert isinstance(lags, int)
    if series.units > 1 and longest < lags + 2:
        raise TableError(
            f"Expected units of at least {lags + 2} steps for {counted(lags, 'lag')}, but the longest has {longest}.",
            [Remedy("fewer lags")] if lags > 1 else [],
        )
    try:
        rows = window(values, lags + FURTHER_SLICES, **further)
    except TableError:  # too short for a further slice, which is no need
        rows = window(values, lags, **further)
    for variable in rows.lagged:
        cells = values[rows.index[:, 0], variable]
        cells = cells[~np.isnan(cells)]
        if not len(cells) or not np.ptp(cells) > 1e-12 * max(1.0, float(np.abs(cells).max(initial=0.0))):
            name = table.names[variable]
            after = "once its changes are taken" if changing.any() else "in the rows that have all lags"
            raise TableError(f"Column {name!r} is constant {after}: leave it out.", [Remedy("drop", (name,))])
    return Prepared(values, kept, rows, lags, done, tuple(findings), levels)


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


# Levels and differences


def without_levels(values: Floats, unit: Integers, tick: Integers, columns: Bools) -> tuple[Floats, Bools]:
    """A panel without the levels of its units in some columns, and which steps remain.  (T, P), (T,)

    Subtract from each step the mean of the earlier steps of its unit, scale to equal variance, and drop the first step.
    Means over all steps would contain the future and make independent shocks dependent.
    """
    order = np.lexsort((tick, unit))
    result = values.copy()
    start = np.searchsorted(unit[order], unit[order])
    varies = ~constant_within(values, order, unit[order])
    for column in np.flatnonzero(columns):
        cells = values[order, column]
        seen = ~np.isnan(cells)
        total = np.cumsum(np.concatenate([[0.0], np.where(seen, cells, 0.0)]))[:-1]
        count = np.cumsum(np.concatenate([[0], seen]))[:-1]
        before, earlier = total - total[start], count - count[start]
        mean = np.divide(before, earlier, out=np.full_like(before, np.nan), where=earlier > 0)
        # Rounding must not make a variable of what is constant within units.
        result[order, column] = (cells - mean) * np.sqrt(earlier / (earlier + 1.0)) * varies[column]
    kept = np.empty(len(values), dtype=bool)
    kept[order] = np.arange(len(values)) > start
    return result, kept


def differenced(values: Floats, columns: Bools, steps: Window) -> Floats:
    """The series with changes since the last step in some columns, by a window of one lag; NaN without one.  (T, P)"""
    result: Floats = values.copy()
    result[:, columns] = np.nan
    now, before = steps.index[(steps.index >= 0).all(axis=1)].T
    for column in np.flatnonzero(columns):
        result[now, column] = values[now, column] - values[before, column]
    return result


# Lags


def most_lags(steps: int, variables: int, longest: int) -> int:
    """The number of lags to try, given the steps in all and in the longest unit."""
    return max(1, min(MAX_LAGS, steps // (ROWS_PER_COLUMN * variables), longest // 4))


def needed_lags(values: Floats, rows: Window) -> int:
    """The largest lag, up to those of the window, at which a variable depends on the past; 1 at least."""
    # By the coefficients of a vector autoregression: information criteria are exact less often.
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
    lagged = t[: rows.lags * variables].reshape(rows.lags, -1)  # without the context
    significant = 2 * stdtr(freedom, -np.abs(lagged).max(axis=1)) < LEVEL / lagged.size
    return int(np.flatnonzero(significant).max(initial=0)) + 1
