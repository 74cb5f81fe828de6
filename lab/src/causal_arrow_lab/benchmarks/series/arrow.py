"""Causal Arrow on a series: its window read by the network, and pairs that recur in the window tied."""

from __future__ import annotations

import time

import numpy as np

from causal_arrow.discovery.arranged import arrange
from causal_arrow.discovery.inference import infer
from causal_arrow.graphs.graph_distribution import sigmoid
from causal_arrow.network.protocol import Network
from causal_arrow.series.distribution import FURTHER_SLICES, WindowDistribution, tied
from causal_arrow.series.prepare import without_levels
from causal_arrow.series.window import codes, ticks, window
from causal_arrow.tables.table import Table
from causal_arrow_lab.benchmarks.series.families import SeriesTask
from causal_arrow_lab.benchmarks.series.measures import SeriesEstimate


def solve(network: Network, task: SeriesTask) -> SeriesEstimate:
    """What users get for numbers: lags as given, units without their levels, time as a column."""
    start = time.process_time()
    found = read(network, task)
    probabilities = found.probabilities()
    graph = found.graph()
    seconds = time.process_time() - start
    hidden = found.now.confounding_logits
    return SeriesEstimate(
        graph, probabilities, probabilities, seconds, None if hidden is None else sigmoid(np.asarray(hidden))
    )


def read(network: Network, task: SeriesTask) -> WindowDistribution:
    """The distribution over window graphs."""
    values, unit = task.values, task.unit
    if unit is not None:
        members = codes(unit, len(values))
        values, kept = without_levels(values, members, ticks(None, members), np.ones(values.shape[1], dtype=bool))
        values, unit = values[kept], unit[kept]
    rows = window(values, task.lags + FURTHER_SLICES, unit=unit)
    arranged = arrange(Table.of_numbers(rows.table(values), rows.names(task.names)))
    found = infer(network, arranged).rearranged(np.argsort(arranged.arrangement))
    distribution = tied(found, rows, task.lags)
    return distribution if task.contemporaneous else distribution.without_now()
