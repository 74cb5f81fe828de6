"""Causal Arrow on a series, as users get it for numbers."""

from __future__ import annotations

import time

import numpy as np

from causal_arrow.discovery.settings import Settings
from causal_arrow.network.protocol import Network
from causal_arrow.series import SeriesOptions
from causal_arrow.series.pipeline import answer_series
from causal_arrow.series.reading import Series
from causal_arrow.series.window import codes, ticks
from causal_arrow.tables.report import TableReport
from causal_arrow.tables.table import Table
from causal_arrow_lab.benchmarks.series.families import SeriesTask
from causal_arrow_lab.benchmarks.series.measures import SeriesEstimate


def solve(network: Network, task: SeriesTask) -> SeriesEstimate:
    """The answer with lags as given, and columns as they are."""
    start = time.process_time()
    table = Table.of_numbers(task.values, task.names)
    unit = codes(task.unit, len(task.values))
    options = SeriesOptions(lags=task.lags, contemporaneous=task.contemporaneous)
    report = TableReport(table.observations, table.columns, ())
    series = Series(table, ticks(None, unit), unit)
    answer, _ = answer_series(network, series, report, Settings(scale="given", series=options))
    graph, probabilities = answer.graph, answer.edge_probabilities
    seconds = time.process_time() - start
    hidden = answer.confounding_probabilities
    return SeriesEstimate(graph, probabilities, probabilities, seconds, None if hidden is None else np.asarray(hidden))
