"""The opinion of PCMCI+ on a series, beside the answer: edges of the window, such as `soil t-1` → `growth`."""

# T steps, P variables, L lags

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from causal_arrow.discovery.second_opinion import (
    OF_SERIES,
    Opinion,
    SecondOpinion,
    chosen_methods,
    pcmci_plus,
    standardized,
)
from causal_arrow.errors import ConfigurationError
from causal_arrow.series.answer import SeriesAnswer
from causal_arrow.series.options import SeriesOptions
from causal_arrow.series.pipeline import prepare
from causal_arrow.series.reading import Series
from causal_arrow.text import reason


def opinions_on_series(
    answer: SeriesAnswer, series: Series, options: SeriesOptions, methods: Sequence[str] | str | None, frames: str
) -> SecondOpinion:
    """Ask PCMCI+ about a series as the network read it: on its scales, without what was taken out."""
    ((name, method),), remarks = _chosen(methods, len(answer.names))
    values, piece = values_and_pieces(answer, series, options)
    started = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = pcmci_plus(values, answer.lags, piece)
    except Exception as error:  # of another package, in ways of its own
        raise ConfigurationError(f"{method.title} could not read this series ({reason(error)}).") from error
    edges = set()
    for j, k, lag in np.argwhere(found["graph"] != "").tolist():
        source, target = window_name(answer.names[j], lag), answer.names[k]
        if j != k and found["graph"][j, k, lag] != "<--":
            edges.add((source, target))
    opinion = Opinion(name, method.title, frozenset(edges), method.assumes, time.perf_counter() - started)
    if answer.context:
        remarks.append(f"{method.title} was not shown {', '.join(answer.context)}.")
    if answer.knowledge.to_dict():
        remarks.append("What you know was given to the answer alone.")
    slices = tuple(window_name(each, lag) for lag in range(answer.lags + 1) for each in answer.names)
    return SecondOpinion(
        slices,
        tuple(
            (window_name(edge.source, edge.lag), edge.target) for edge in answer.edges if edge.source in answer.names
        ),
        tuple(edge.probability for edge in answer.edges if edge.source in answer.names),
        (opinion,),
        tuple(remarks),
        frames,
    )


def _chosen(methods: Sequence[str] | str | None, variables: int) -> tuple[Any, list[str]]:
    chosen, remarks = chosen_methods(OF_SERIES, methods, variables)
    return chosen.items(), remarks


def window_name(name: str, lag: int) -> str:
    """The name of a variable at a lag, as edges are printed."""
    return f"{name} t-{lag}" if lag else name


def values_and_pieces(
    answer: SeriesAnswer, series: Series, options: SeriesOptions
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Standardized values of the variables with lags (T, P), and the unbroken piece of a unit that each is in (T,)."""
    logarithms = np.isin(series.table.names, answer.prepared.get("log", ()))
    ready = prepare(series, replace(options, lags=answer.lags), logarithms)
    columns = [series.table.names.index(name) for name in answer.names]
    unit, tick = series.unit[ready.kept], series.tick[ready.kept]
    order = np.lexsort((tick, unit))
    breaks = (np.diff(unit[order]) != 0) | (np.diff(tick[order]) != 1)
    piece = np.concatenate([[0], np.cumsum(breaks)])
    return standardized(ready.values[order][:, columns]), piece
