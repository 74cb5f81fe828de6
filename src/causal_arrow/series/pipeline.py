"""From a series to an answer: read, prepare, make windows, ask the network, and tie the pairs that recur."""

# T steps, N rows of the window, P variables, Q columns of the window

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from causal_arrow.discovery.answer import set_in_every
from causal_arrow.discovery.arranged import ArrangedLongTable, arrange
from causal_arrow.discovery.directions import direction_temperature
from causal_arrow.discovery.inference import Workload, check_memory, infer, workload
from causal_arrow.graphs.graph_distribution import CERTAIN, coin_entropy, sigmoid
from causal_arrow.graphs.knowledge import Knowledge
from causal_arrow.network.protocol import Network
from causal_arrow.progress import Progress, ignore
from causal_arrow.series.answer import SeriesAnswer
from causal_arrow.series.distribution import WindowDistribution, tied
from causal_arrow.series.findings import findings_of_columns, findings_of_series
from causal_arrow.series.knowledge import window_knowledge
from causal_arrow.series.options import SeriesOptions
from causal_arrow.series.prepare import Prepared, prepare
from causal_arrow.series.reading import Series
from causal_arrow.tables.report import TableReport, groups_of_copies
from causal_arrow.tables.scales import chosen_reading, readings
from causal_arrow.tables.table import MIN_ROWS, Column, Finding, Table
from causal_arrow.text import listed

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

ABOUT_ROWS = ("time_order", "index", "few_observations")
"""Kinds of findings about tables that do not hold of series."""


def answer_series(
    network: Network,
    series: Series,
    report: TableReport,
    options: SeriesOptions,
    *,
    knowledge: Knowledge,
    scale: str = "auto",
    decode: str = "map",
    threshold: float = 0.5,
    directions: str = "tempered",
    max_rows: int | None = None,
    observations_per_chunk: int | None = None,
    model: str | None = None,
    before: Callable[[Workload], None] | None = None,
    progress: Progress = ignore,
) -> tuple[SeriesAnswer, TableReport]:
    """The answer for a series, and the report with what was noticed about time."""
    table = series.table
    candidates = readings(scale, table.log_candidates)
    ways = [prepare(series, options, columns) for columns in candidates]
    first = ways[0]
    names = tuple(table.names[variable] for variable in first.rows.lagged)
    context = first.rows.names(table.names)[len(names) * (first.rows.lags + 1) :]
    constant = _constant_in_units(first, series)
    context = (*context, *(table.names[variable] for variable in constant))
    experiments = _experiments(table)
    always_set = set_in_every(table.observations, experiments)
    # Compiled before the network runs: a misspelled name should not have to wait for it.
    window_knowledge(knowledge, names, context, first.lags, always_set=always_set)
    distributions, checksum = [], ""
    for number, way in enumerate(ways):

        def tell(stage: str, share: float, earlier: int = number) -> None:
            progress(stage, (earlier + share) / len(ways))

        distribution, checksum_of_way = _read(
            network, series, way, report, max_rows, observations_per_chunk, before if not number else None, tell
        )
        checksum = checksum or checksum_of_way
        if constant:
            between = _between_units(network, series, way, constant)
            distribution = replace(distribution, context=np.concatenate([distribution.context, between]))
        distributions.append(distribution if options.contemporaneous else distribution.without_now())
    doubts = [_uncertainty(distribution) for distribution in distributions]
    chosen = chosen_reading(doubts)
    way, distribution = ways[chosen], distributions[chosen]
    if directions == "tempered":
        distribution = replace(distribution, now=distribution.now.tempered(direction_temperature(table)))
    of_columns = findings_of_columns(series)
    ignore = [name for finding in of_columns for name in finding.columns]
    findings = [
        *(finding for finding in report.findings if finding.kind not in ABOUT_ROWS),
        *of_columns,
        *findings_of_series(way.values, way.rows, table.columns, way.prepared.get("difference", ()), ignore),
        *way.findings,
    ]
    if len(ways) > 1:
        findings.append(_scale_finding(ways[-1].prepared["log"], chosen, doubts))
    findings.sort(key=lambda finding: ("problem", "warning", "note").index(finding.severity))
    answer = SeriesAnswer(
        names=names,
        distribution=distribution,
        context=context,
        knowledge=knowledge,
        decode=decode,
        threshold=threshold,
        steps=table.observations,
        observations=len(way.rows.index),
        units=series.units,
        model=model,
        findings=tuple(findings),
        prepared=way.prepared,
        columns=table.columns,
        experiments=experiments,
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
    max_rows: int | None,
    observations_per_chunk: int | None,
    before: Callable[[Workload], None] | None,
    progress: Progress,
) -> tuple[WindowDistribution, str]:
    """The distribution over window graphs for one way of reading the scales."""
    table = way.table(series)
    arranged = arrange(table, max_rows)
    read = len(arranged.drawn) if isinstance(arranged, ArrangedLongTable) else table.observations
    work = workload(network, read, table.variables, observations_per_chunk)
    check_memory(work, network)
    if before is not None:
        before(work)
    known = set(table.names)
    groups = [
        [f"{name} t-{lag}" if lag else name for name in group]
        for group in groups_of_copies(report.findings)
        for lag in range(way.rows.lags + 1)
    ]
    arranged = arranged.reading_once([group for group in groups if known.issuperset(group)])
    found = infer(network, arranged, observations_per_chunk, progress).rearranged(np.argsort(arranged.arrangement))
    return tied(found, way.rows, way.lags), arranged.checksum


def _constant_in_units(way: Prepared, series: Series) -> tuple[int, ...]:
    """The variables that differ among units alone, where there are enough units to learn from."""
    if way.levels is None or series.units < MIN_ROWS:
        return ()
    return tuple(variable for variable in way.rows.constant if np.nanstd(way.levels[:, variable]) > 0)


def _between_units(network: Network, series: Series, way: Prepared, constant: Sequence[int]) -> Floats:
    """Log-odds that what is constant within units acts on the levels of variables, from a row per unit.  (C, P)"""
    assert way.levels is not None
    columns = series.table.columns
    lagged = [variable for variable in way.rows.lagged if np.nanstd(way.levels[:, variable]) > 0]
    chosen = [*constant, *lagged]
    # The mean of a variable with levels is a share, or a mean code, and no level.
    of_units = tuple(
        columns[variable] if variable in constant else Column(columns[variable].name) for variable in chosen
    )
    arranged = arrange(Table(way.levels[:, chosen], of_units))
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


def _experiments(table: Table) -> dict[str, int]:
    """In how many steps each variable was set, for those that were."""
    if table.intervened is None:
        return {}
    counts = zip(table.names, table.intervened.sum(axis=0).tolist(), strict=True)
    return {name: count for name, count in counts if count}


def _scale_finding(names: Sequence[str], chosen: int, doubts: Sequence[float]) -> Finding:
    """Which of two scales counts, and why."""
    how = "on a log scale" if chosen else "untransformed"
    verb = "is" if len(names) == 1 else "are"
    message = (
        f"{listed(list(names))}, of one sign and skewed, {verb} analyzed {how}: uncertainty per edge is "
        f"{doubts[0]:.2f} bits untransformed and {doubts[1]:.2f} on a log scale."
    )
    return Finding("log_scale", "note", tuple(names), message)
