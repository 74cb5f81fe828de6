"""Advice about a series: which variable to randomize next, and what PCMCI+ finds in the same series.

A window graph is a graph over the columns of the window, with edges into the newest slice. An experiment that
randomizes a variable at every step sets it at each lag, and counts for an edge as much as the best of these.
"""

# T steps, P variables, L lags, K graphs, Q = P (L + 1) columns

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from causal_arrow.discovery.effects.experiments import (
    MAX_CELLS,
    MIN_GRAPHS,
    ExperimentPlan,
    about_graph,
    as_standardized,
    expected_responses,
    measurable,
    plain_observations,
    plan_of,
)
from causal_arrow.discovery.second_opinion import (
    OF_SERIES,
    SecondOpinion,
    asked,
    chosen_methods,
    pcmci_plus,
    standardized,
)
from causal_arrow.errors import ConfigurationError
from causal_arrow.series import SeriesOptions
from causal_arrow.series.answer import SeriesAnswer
from causal_arrow.series.pipeline import MAX_ROWS, Prepared, prepare
from causal_arrow.series.reading import Series
from causal_arrow.series.window import at_lag
from causal_arrow.tables.table import Table


def prepared_again(answer: SeriesAnswer, series: Series) -> Prepared:
    """The series as the network read it."""
    done = answer.prepared
    options = SeriesOptions(lags=answer.lags, difference=done.get("difference", False), season=done.get("season"))
    return prepare(series, options, np.isin(series.table.names, done.get("log", ())))


# The next experiment


def plan_for_series(
    answer: SeriesAnswer,
    series: Series,
    graphs: NDArray[np.bool_],
    target: str | tuple[str, str] | None,
    budget: int,
    candidates: Sequence[str] | None,
    rows: int | None,
) -> ExperimentPlan:
    """Rank experiments by the uncertainty about window graphs (K, L + 1, P, P) that each is expected to remove."""
    if target is not None and not isinstance(target, str):
        raise ConfigurationError(
            f"Expected target to be an outcome of the series, got {target!r}: for a series, advice is about the whole "
            "graph or about the causes of one variable."
        )
    variables, slices = len(answer.names), answer.lags + 1
    ends = () if target is None else (answer.index_of(target),)
    fixed = {*answer.experiments, *answer.knowledge.roots, *answer.knowledge.randomized, target}
    able = [name for name in answer.names if name not in fixed] if candidates is None else list(candidates)
    setting = [tuple(answer.index_of(name) + lag * variables for lag in range(slices)) for name in able]
    columns = variables * slices
    graphs = graphs[: max(MIN_GRAPHS, MAX_CELLS // columns**2)]
    whole = np.zeros((len(graphs), columns, columns), dtype=bool)
    whole[:, :, :variables] = graphs.reshape(len(graphs), columns, variables)
    table = _window_table(answer, series)
    values = as_standardized(table)[plain_observations(table)]
    responses = expected_responses(whole, values, rows or answer.observations or len(values))
    shared = None
    if answer.confounding_probabilities is not None:
        shared = np.zeros((columns, columns))
        shared[:variables, :variables] = answer.confounding_probabilities
    pairs = [] if shared is None else measurable(shared)
    if not setting and not pairs:
        raise ConfigurationError("Experiments have set every variable already: name some as candidates.")
    found = about_graph(whole, responses, shared, ends, setting, pairs, budget)
    left_out = () if candidates is not None else tuple(sorted({*answer.experiments} - set(able)))
    return plan_of(found, answer.names, table.names, responses, ends, left_out)


def _window_table(answer: SeriesAnswer, series: Series) -> Table:
    """The columns of the window without context, on the scale on which they were analyzed.  (N, Q)"""
    ready = prepared_again(answer, series)
    thin = slice(None, None, -(-len(ready.rows.index) // MAX_ROWS))
    rows = replace(ready.rows, index=ready.rows.index[thin], unit=ready.rows.unit[thin], tick=ready.rows.tick[thin])
    whole = replace(ready, rows=rows).table(series)
    some = slice(0, len(answer.names) * (answer.lags + 1))
    marks = None if whole.intervened is None else whole.intervened[:, some]
    return replace(whole, values=whole.values[:, some], columns=whole.columns[some], intervened=marks)


# A second opinion


def opinions_on_series(answer: SeriesAnswer, series: Series, methods: Sequence[str] | str | None) -> SecondOpinion:
    """Ask PCMCI+ about a series as the network read it: on the same scales, without seasons and levels of units."""
    chosen, remarks = chosen_methods(OF_SERIES, methods, len(answer.names))
    ((name, method),) = chosen.items()
    values, piece = values_and_pieces(answer, series)
    variables = len(answer.names)
    names = tuple(at_lag(each, lag) for lag in range(answer.lags + 1) for each in answer.names)

    def search(values: NDArray[np.float64]) -> NDArray[np.bool_]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            marks = pcmci_plus(values, answer.lags, piece)["graph"]  # (P, P, L + 1)
        acts = (marks != "") & (marks != "<--") & ~np.eye(variables, dtype=bool)[:, :, None]
        graph = np.zeros((len(names), len(names)), dtype=bool)
        graph[:, :variables] = np.moveaxis(acts, 2, 0).reshape(len(names), variables)
        return graph

    opinions, _ = asked({name: replace(method, search=search)}, names, values)
    if answer.context:
        remarks.append(f"{method.title} was not shown {', '.join(answer.context)}.")
    if answer.knowledge.to_dict():
        remarks.append("Only the answer uses your knowledge.")
    edges = tuple((at_lag(edge.source, edge.lag), edge.target) for edge in answer.edges)
    return SecondOpinion(names, edges, tuple(edge.probability for edge in answer.edges), opinions, tuple(remarks))


def values_and_pieces(answer: SeriesAnswer, series: Series) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Standardized values of the variables with lags (T, P), and the unbroken piece of a unit that each is in (T,)."""
    ready = prepared_again(answer, series)
    columns = [series.table.names.index(name) for name in answer.names]
    unit, tick = series.unit[ready.kept], series.tick[ready.kept]
    order = np.lexsort((tick, unit))
    breaks = (np.diff(unit[order]) != 0) | (np.diff(tick[order]) != 1)
    piece = np.concatenate([[0], np.cumsum(breaks)])
    return standardized(ready.values[order][:, columns]), piece
