"""An answer about a series as words, and for other programs: JSON, CSV, networkx, GraphML, Graphviz, tigramite."""

# P variables, L lags

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from causal_arrow.discovery.answer import edge_record
from causal_arrow.discovery.exports import csv_of, hidden_records, json_text, quoted, writable, written_names
from causal_arrow.discovery.saved import archive_at, write_parts
from causal_arrow.discovery.summary import MAX_EDGES, MAX_HIDDEN_CAUSES, Summary
from causal_arrow.errors import PYTHON, Wording
from causal_arrow.inputs import parse_json
from causal_arrow.series.answer import EDGE_COLUMNS, LaggedEdge, SeriesAnswer, by_pair
from causal_arrow.series.reading import Series
from causal_arrow.tables.table import Table
from causal_arrow.text import counted, first_few

if TYPE_CHECKING:
    import networkx as nx

COLUMNS = ("cause", "lag", "effect", "probability", "direction")
NOTES = ("lags", "resampled", "trend", "short_panel", "constant_in_units")
"""Kinds of notes that a summary has; the others are about single columns."""


# Words


def summarize(answer: SeriesAnswer, wording: Wording = PYTHON, most: int = MAX_EDGES) -> Summary:
    """Put an answer into words, with up to `most` edges."""
    expected = ", ".join(f"lag {lag}: {number:.1f}" for lag, number in enumerate(answer.edges_per_lag.tolist()))
    return Summary(
        title=title(answer),
        model=answer.model,
        headings=COLUMNS,
        rows=tuple(_cells(edge) for edge in answer.edges[:most]),
        edges=len(answer.edges),
        count=f"{counted(len(answer.edges), 'edge')} between variables.",
        order=f"Expected number at each lag: {expected}.",
        remarks=tuple(_remarks(answer)),
        test="",
        contradicted=False,
        warnings=answer.worded_warnings(wording),
        if_none="No variable acts on another with enough probability to show an edge.",
    )


def title(answer: SeriesAnswer) -> str:
    """The size of the series."""
    size = counted(len(answer.names), "variable")
    if answer.steps is None:
        return size
    units = f" of {counted(answer.units, 'unit')}" if answer.units > 1 else ""
    return f"{counted(answer.steps, 'step')}{units}, {size}, {counted(answer.lags, 'lag')}"


def _cells(edge: LaggedEdge) -> tuple[str, ...]:
    """The cells of an edge in a table with COLUMNS."""
    direction = "time" if edge.lag else f"{edge.direction} ({edge.direction_probability:.2f})"
    probability = "required" if edge.required else f"{edge.probability:.2f}"
    return edge.source, str(edge.lag), edge.target, probability, "required" if edge.required else direction


def _remarks(answer: SeriesAnswer) -> list[str]:
    """Sentences on order, own pasts, context, hidden causes, experiments, and how the series was prepared."""
    lines = []
    if answer.graph[0].any():
        lines.append(f"Causal order within a step: {', '.join(answer.order)}")
    if answer.own_past:
        pasts = by_pair(answer.own_past).items()
        named = ", ".join(f"{name} (lag {', '.join(str(edge.lag) for edge in some)})" for (name, _), some in pasts)
        lines.append(f"Depend on their own past: {named}")
    if answer.context_edges:
        lines.append(f"From the context: {', '.join(map(str, answer.context_edges))}")
    if pairs := answer.hidden_causes:
        shown = first_few(list(map(str, pairs)), MAX_HIDDEN_CAUSES)
        lines.append(f"Possible hidden common cause at lag 0: {shown}")
    if others := answer.undistinguished:
        count, verb = counted(others, "further pair" if pairs else "pair"), "does" if others == 1 else "do"
        lines.append(
            f"Hidden causes: {count} above {answer.hidden_threshold:g} {verb} not stand out from the median of all "
            f"pairs and {'is' if others == 1 else 'are'} not shown."
        )
    if answer.experiments:
        sets = ", ".join(f"{name} (in {counted(count, 'step')})" for name, count in answer.experiments.items())
        lines.append(f"Intervened on by experiments: {sets}")
    done = answer.prepared
    if done.get("difference"):
        lines.append(f"Analyzed as changes from step to step: {', '.join(done['difference'])}")
    if done.get("season"):
        lines.append(f"Subtracted: the mean of each of {done['season']} phases of a season.")
    if done.get("levels"):
        lines.append("Subtracted: the level of each unit.")
    if done.get("log"):
        lines.append(f"Analyzed on a log scale: {', '.join(done['log'])}")
    return [*lines, *(finding.message for finding in answer.findings if finding.kind in NOTES)]


# Other programs


def all_edges(answer: SeriesAnswer) -> tuple[LaggedEdge, ...]:
    """Edges between variables, from the context, and of each variable's own past."""
    return (*answer.edges, *answer.context_edges, *answer.own_past)


def to_json(answer: SeriesAnswer) -> str:
    """The answer as JSON text."""
    return json_text(answer.to_dict()) + "\n"


def to_csv(answer: SeriesAnswer) -> str:
    """The edges as CSV with a header."""
    return csv_of(EDGE_COLUMNS, map(edge_record, all_edges(answer)), (*answer.names, *answer.context))


def to_networkx(answer: SeriesAnswer) -> nx.MultiDiGraph[str]:
    """The window graph as a networkx `MultiDiGraph`: one edge per lag, whose key is the lag, with its facts."""
    import networkx as nx

    graph: nx.MultiDiGraph[str] = nx.MultiDiGraph(lags=answer.lags)
    graph.add_nodes_from(answer.names, context=False)
    graph.add_nodes_from(answer.context, context=True)
    for edge in all_edges(answer):
        facts = edge_record(edge)
        graph.add_edge(facts.pop("source"), facts.pop("target"), key=edge.lag, **facts)
    if answer.hidden_causes:
        graph.graph["hidden_causes"] = hidden_records(answer.hidden_causes)
    return graph


def to_graphml(answer: SeriesAnswer) -> str:
    """The window graph as GraphML; pairs with a hidden cause are an attribute of the graph, as JSON text."""
    import networkx as nx

    return "\n".join(nx.generate_graphml(writable(to_networkx(answer)))) + "\n"


def to_dot(answer: SeriesAnswer) -> str:
    """The summary graph in the language of Graphviz, with lags as labels of edges."""
    names = {name: quoted(written) for name, written in written_names((*answer.names, *answer.context)).items()}
    lines = ["digraph summary_graph {", "  node [shape=box, style=rounded];"]
    lines += [f"  {names[name]};" for name in answer.names]
    for (source, target), edges in by_pair(all_edges(answer)).items():
        lags = ", ".join(str(edge.lag) for edge in edges)
        probability = max(edge.probability for edge in edges)
        look = f"label={quoted(lags)}, penwidth={0.5 + 2 * probability:.2f}, probability={probability:.6f}"
        lines.append(f"  {names[source]} -> {names[target]} [{look}];")
    for pair in answer.hidden_causes:
        look = f"dir=both, style=dashed, constraint=false, probability={pair.probability:.6f}"
        lines.append(f"  {names[pair.first]} -> {names[pair.second]} [{look}];")
    return "\n".join([*lines, "}"]) + "\n"


def to_tigramite(answer: SeriesAnswer) -> dict[str, NDArray[Any]]:
    """The window graph as tigramite keeps it, [cause, effect, lag]: "-->", "<--" at lag 0, "" for none.

    `graph` and `val_matrix` go into `plot_graph` and `plot_time_series_graph`. `val_matrix` holds the probabilities, at
    lag 0 those of an edge in either direction, since tigramite wants them symmetric.
    """
    graph = np.moveaxis(answer.graph, 0, 2)
    marks = np.where(graph, "-->", "").astype("<U3")
    marks[:, :, 0] = np.where(graph[:, :, 0].T, "<--", marks[:, :, 0])
    for pair in answer.hidden_causes:
        j, k = answer.index_of(pair.first), answer.index_of(pair.second)
        if not marks[j, k, 0]:
            marks[j, k, 0] = marks[k, j, 0] = "<->"
    values = np.moveaxis(answer.edge_probabilities, 0, 2).copy()
    values[:, :, 0] += values[:, :, 0].T
    return {"graph": marks, "val_matrix": values}


def to_statsmodels(answer: SeriesAnswer) -> NDArray[np.bool_]:
    """The coefficients that a statsmodels VAR may have, [lag - 1, effect, cause] as in `VARResults.coefs`."""
    return np.asarray(answer.graph[1:].transpose(0, 2, 1))


TEXT_FORMATS: dict[str, Callable[[SeriesAnswer], str]] = {
    "graph.json": to_json,
    "edges.csv": to_csv,
    "graph.graphml": to_graphml,
    "graph.dot": to_dot,
}
"""The files of an answer that are text, by name."""


# .causal files

CONTENT, SERIES = "answer.json", "series.safetensors"
MAX_BYTES = 2**34  # largest unpacked part of a file


def save(answer: SeriesAnswer, series: Series, path: Path, overwrite: bool) -> None:
    """Write a discovery to a file: a zip archive of the answer as JSON and the series as arrays."""
    tensors: dict[str, NDArray[Any]] = {"values": series.table.values, "tick": series.tick, "unit": series.unit}
    if series.table.intervened is not None:
        tensors["intervened"] = series.table.intervened
    arrays = save_tensors({name: np.ascontiguousarray(each) for name, each in tensors.items()})
    write_parts(path, {CONTENT: to_json(answer).encode(), SERIES: arrays}, overwrite)


def load(path: Path) -> tuple[SeriesAnswer, Series]:
    """Read the file that `save` wrote."""
    with archive_at(path, "SeriesDiscovery.save") as archive:
        if max(archive.getinfo(name).file_size for name in (CONTENT, SERIES)) > MAX_BYTES:
            raise ValueError("it is too large")
        answer = SeriesAnswer.from_dict(parse_json(archive.read(CONTENT)))
        arrays = load_tensors(archive.read(SERIES))
        values, rows = arrays["values"], (len(arrays["values"]),)
        of_rows = {rows, arrays["tick"].shape, arrays["unit"].shape}
        if values.shape != (answer.steps, len(answer.columns)) or len(of_rows) > 1:
            raise ValueError("the series is not the one that the answer is about")
    table = Table(values, answer.columns, answer.findings, arrays.get("intervened"), answer.environment)
    return answer, Series(table, arrays["tick"], arrays["unit"])
