"""An answer about a series as words, and for other programs: JSON, CSV, networkx, GraphML, Graphviz, tigramite."""

# P variables, L lags

from __future__ import annotations

import html
import json
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from causal_arrow.discovery.exports import NOT_IN_CSV, _csv_cell, _quoted, json_text, written_names
from causal_arrow.discovery.summary import MAX_HIDDEN_CAUSES, html_table
from causal_arrow.errors import ConfigurationError
from causal_arrow.inputs import parse_json
from causal_arrow.output import written_together
from causal_arrow.series.answer import EDGE_COLUMNS, LaggedEdge, SeriesAnswer, by_pair, edge_record
from causal_arrow.series.reading import Series
from causal_arrow.tables.table import Table
from causal_arrow.text import counted

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd

MAX_EDGES = 40
COLUMNS = ("cause", "lag", "effect", "probability", "direction")
NOTES = ("lags", "resampled", "trend", "short_panel", "constant_in_units")
"""Kinds of notes that a summary has; the others are about single columns."""
NO_EDGES = "No variable acts on another with enough probability to show an edge."


# Words


def title(answer: SeriesAnswer) -> str:
    """The size of the series."""
    size = counted(len(answer.names), "variable")
    if answer.steps is None:
        return size
    units = f" of {counted(answer.units, 'unit')}" if answer.units > 1 else ""
    return f"{counted(answer.steps, 'step')}{units}, {size}, {counted(answer.lags, 'lag')}"


def cells(edge: LaggedEdge) -> tuple[str, ...]:
    """The cells of an edge in a table with COLUMNS."""
    direction = "time" if edge.lag else f"{edge.direction} ({edge.direction_probability:.2f})"
    probability = "required" if edge.required else f"{edge.probability:.2f}"
    return edge.source, str(edge.lag), edge.target, probability, "required" if edge.required else direction


def sentences(answer: SeriesAnswer) -> list[str]:
    """Sentences on lags, own pasts, order, context, hidden causes, experiments, and how the series was prepared."""
    expected = ", ".join(f"lag {lag}: {number:.1f}" for lag, number in enumerate(answer.edges_per_lag.tolist()))
    lines = [f"{counted(len(answer.edges), 'edge')} between variables. Expected number at each lag: {expected}."]
    if answer.graph[0].any():
        lines.append(f"Causal order within a step: {', '.join(answer.order)}")
    if answer.own_past:
        pasts = by_pair(answer.own_past).items()
        named = ", ".join(f"{name} (lag {', '.join(str(edge.lag) for edge in some)})" for (name, _), some in pasts)
        lines.append(f"Depend on their own past: {named}")
    if answer.context_edges:
        lines.append(f"From the context: {', '.join(map(str, answer.context_edges))}")
    if pairs := answer.hidden_causes:
        more = f" and {len(pairs) - MAX_HIDDEN_CAUSES} more" if len(pairs) > MAX_HIDDEN_CAUSES else ""
        shown = ", ".join(map(str, pairs[:MAX_HIDDEN_CAUSES]))
        lines.append(f"Possible hidden common cause at lag 0: {shown}{more}")
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


def to_text(answer: SeriesAnswer, most: int = MAX_EDGES) -> str:
    """The whole summary as plain text, one line per edge."""
    lines = [_title_with_model(answer), ""]
    if answer.edges:
        rows = [COLUMNS, *(cells(edge) for edge in answer.edges[:most])]
        widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS))]
        lines += [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
        ]
        if len(answer.edges) > most:
            lines.append(f"... and {len(answer.edges) - most} more")
    else:
        lines.append(NO_EDGES)
    lines += ["", *sentences(answer)]
    return "\n".join([*lines, *(f"Careful: {warning}" for warning in answer.warnings)])


def to_html(answer: SeriesAnswer, most: int = MAX_EDGES) -> str:
    """The whole summary for a notebook: picture, edges, sentences, warnings."""
    from causal_arrow.series import pictures

    table = html_table(COLUMNS, [cells(edge) for edge in answer.edges[:most]]) or f"<p>{NO_EDGES}</p>"
    more = f"<p>... and {len(answer.edges) - most} more</p>" if len(answer.edges) > most else ""
    careful = [f"<b>Careful:</b> {html.escape(warning)}" for warning in answer.warnings]
    paragraphs = "".join(f"<p>{line}</p>" for line in [*map(html.escape, sentences(answer)), *careful])
    heading = html.escape(_title_with_model(answer))
    picture = pictures.as_svg(answer, adapts=False)
    return f"<div><p><b>{heading}</b></p>{picture}{table}{more}{paragraphs}</div>"


def _title_with_model(answer: SeriesAnswer) -> str:
    return f"{title(answer)}, read by {answer.model}" if answer.model else title(answer)


# Other programs


def all_edges(answer: SeriesAnswer) -> tuple[LaggedEdge, ...]:
    """Edges between variables, from the context, and of each variable's own past."""
    return (*answer.edges, *answer.context_edges, *answer.own_past)


def to_json(answer: SeriesAnswer) -> str:
    """The answer as JSON text."""
    return json_text(answer.to_dict()) + "\n"


def edges_frame(answer: SeriesAnswer) -> pd.DataFrame:
    """The edges as a data frame with a column of lags."""
    import pandas as pd

    return pd.DataFrame([edge_record(edge) for edge in all_edges(answer)], columns=list(EDGE_COLUMNS))


def window_frame(answer: SeriesAnswer, matrix: NDArray[Any]) -> pd.DataFrame:
    """A matrix [lag, j, k] with a row for each cause at each lag.  ((L + 1) · P, P)"""
    import pandas as pd

    rows = [(name, lag) for lag in range(len(matrix)) for name in answer.names]
    index = pd.MultiIndex.from_tuples(rows, names=["cause", "lag"])
    return pd.DataFrame(matrix.reshape(len(rows), -1), index=index, columns=list(answer.names))


def to_csv(answer: SeriesAnswer) -> str:
    """The edges as CSV with a header."""
    names = written_names((*answer.names, *answer.context), NOT_IN_CSV)
    lines = [",".join(EDGE_COLUMNS)]
    for edge in all_edges(answer):
        facts = {**edge_record(edge), "source": names[edge.source], "target": names[edge.target]}
        lines.append(",".join(_csv_cell(str(facts[column])) for column in EDGE_COLUMNS))
    return "\n".join(lines) + "\n"


def to_networkx(answer: SeriesAnswer) -> nx.MultiDiGraph[str]:
    """The window graph as a multigraph: one edge per lag, whose key is the lag, with its facts."""
    import networkx as nx

    graph: nx.MultiDiGraph[str] = nx.MultiDiGraph(lags=answer.lags)
    graph.add_nodes_from(answer.names, context=False)
    graph.add_nodes_from(answer.context, context=True)
    for edge in all_edges(answer):
        facts = edge_record(edge)
        graph.add_edge(facts.pop("source"), facts.pop("target"), key=edge.lag, **facts)
    if answer.hidden_causes:
        pairs = [(pair.first, pair.second, round(pair.probability, 6)) for pair in answer.hidden_causes]
        graph.graph["hidden_causes"] = pairs
    return graph


def to_graphml(answer: SeriesAnswer) -> str:
    """The window graph as GraphML; pairs with a hidden cause are an attribute of the graph, as JSON text."""
    import networkx as nx

    names = written_names((*answer.names, *answer.context))
    graph = nx.relabel_nodes(to_networkx(answer), names)
    if answer.hidden_causes:
        graph.graph["hidden_causes"] = json.dumps(graph.graph["hidden_causes"], ensure_ascii=False)
    return "\n".join(nx.generate_graphml(graph)) + "\n"


def to_dot(answer: SeriesAnswer) -> str:
    """The summary graph in the language of Graphviz, with lags as labels of edges."""
    names = {name: _quoted(written) for name, written in written_names((*answer.names, *answer.context)).items()}
    lines = ["digraph summary_graph {", "  node [shape=box, style=rounded];"]
    lines += [f"  {names[name]};" for name in answer.names]
    for (source, target), edges in by_pair(all_edges(answer)).items():
        lags = ", ".join(str(edge.lag) for edge in edges)
        probability = max(edge.probability for edge in edges)
        look = f"label={_quoted(lags)}, penwidth={0.5 + 2 * probability:.2f}, probability={probability:.6f}"
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


TEXT_FORMATS: dict[str, Callable[[SeriesAnswer], str]] = {
    "graph.json": to_json,
    "edges.csv": to_csv,
    "graph.graphml": to_graphml,
    "graph.dot": to_dot,
}
"""The files of an answer that are text, by name."""


# .causal files

CONTENT, SERIES = "answer.json", "series.safetensors"
MAX_BYTES = 2**34
"""Largest unpacked part of a file."""


def save(answer: SeriesAnswer, series: Series, path: Path, overwrite: bool) -> None:
    """Write a discovery to a file: a zip archive of the answer as JSON and the series as arrays."""
    if path.suffix.lower() != ".causal":
        raise ConfigurationError(f"Expected a file that ends in .causal, got '{path.name}'.")
    tensors: dict[str, NDArray[Any]] = {"values": series.table.values, "tick": series.tick, "unit": series.unit}
    if series.table.intervened is not None:
        tensors["intervened"] = series.table.intervened
    with (
        written_together(path.parent, [path.name], overwrite) as folder,
        zipfile.ZipFile(folder / path.name, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        archive.writestr(CONTENT, to_json(answer).encode())
        archive.writestr(SERIES, save_tensors({name: np.ascontiguousarray(each) for name, each in tensors.items()}))


def load(path: Path) -> tuple[SeriesAnswer, Series]:
    """Read the file that `save` wrote."""
    try:
        with zipfile.ZipFile(path) as archive:
            if max(archive.getinfo(name).file_size for name in (CONTENT, SERIES)) > MAX_BYTES:
                raise ValueError("it is too large")
            answer = SeriesAnswer.from_dict(parse_json(archive.read(CONTENT)))
            arrays = load_tensors(archive.read(SERIES))
        values, marks, rows = arrays["values"], arrays.get("intervened"), (len(arrays["values"]),)
        if values.shape != (answer.steps, len(answer.columns)) or any(
            arrays[each].shape != rows for each in ("tick", "unit")
        ):
            raise ValueError("the series is not the one that the answer is about")
    except ConfigurationError as error:
        raise ConfigurationError(f"In '{path.name}': {error.message}") from error
    except OSError as error:
        raise ConfigurationError(f"Cannot open '{path}': {error.strerror or error}.") from error
    except (LookupError, ValueError, TypeError, RuntimeError, SafetensorError, zipfile.BadZipFile, zlib.error) as error:
        raise ConfigurationError(f"'{path.name}' is not a .causal file of a series, or is damaged: {error}.") from error
    table = Table(values, answer.columns, answer.findings, marks, answer.environment)
    return answer, Series(table, arrays["tick"], arrays["unit"])
