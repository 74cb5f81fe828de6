"""Graphs from files: our graph.json, lists of edges and matrices in CSV, GraphML, GML, Graphviz and DAGitty text."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from causal_arrow.errors import GraphError


@dataclass(frozen=True, eq=False)
class NamedGraph:
    """A directed graph on named variables, with edge probabilities where the file has them.  (P, P) each

    A list of edges does not mention variables without edges: `lists_all` is then false.
    """

    names: tuple[str, ...]
    adjacency: NDArray[np.bool_]
    probabilities: NDArray[np.float64] | None = None
    lists_all: bool = True

    def arranged_as(self, names: Sequence[str]) -> NamedGraph:
        """The same graph with its variables in another order; GraphError if those are other variables."""
        here, there = set(self.names), set(names)
        if here < there and not self.lists_all:
            return graph_from_edges(self.edges(), names)
        if here != there:
            only = "; ".join(
                f"only the {which} has {', '.join(repr(name) for name in sorted(some)[:5])}"
                for which, some in (("first", there - here), ("second", here - there))
                if some
            )
            raise GraphError(f"The two graphs must have the same variables, but {only}.")
        places = [self.names.index(name) for name in names]
        grid = np.ix_(places, places)
        probabilities = None if self.probabilities is None else self.probabilities[grid]
        return NamedGraph(tuple(names), self.adjacency[grid], probabilities)

    def edges(self) -> list[tuple[str, str]]:
        """The edges by the names of their ends."""
        return [(self.names[j], self.names[k]) for j, k in np.argwhere(self.adjacency)]


def read_graph(path: str | Path) -> NamedGraph:
    """The graph in a file, by the ending of its name."""
    path = Path(path)
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise GraphError(f"Cannot tell the format of '{path.name}': expected an ending among {', '.join(_READERS)}.")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise GraphError(f"Cannot open the graph '{path}': {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise GraphError(f"'{path.name}' is not a text file, so it holds no graph that can be read.") from error
    try:
        return reader(text)
    except GraphError as error:
        raise GraphError(f"In '{path.name}': {error}") from error
    except Exception as error:  # parsers of foreign formats fail in many ways
        reason = str(error).strip().split("\n")[0].rstrip(".")
        raise GraphError(f"'{path.name}' is not a readable {path.suffix} graph ({reason}).") from error


def graph_from_edges(edges: Sequence[tuple[str, str]], names: Sequence[str] = ()) -> NamedGraph:
    """The graph with these edges. Variables without edges must be named; the others are found in the edges."""
    all_names = tuple(dict.fromkeys([*names, *(name for edge in edges for name in edge)]))
    place = {name: number for number, name in enumerate(all_names)}
    adjacency = np.zeros((len(place), len(place)), dtype=bool)
    for source, target in edges:
        adjacency[place[source], place[target]] = True
    return NamedGraph(all_names, adjacency)


def _read_json(text: str) -> NamedGraph:
    content: Any = json.loads(text)
    if not isinstance(content, dict) or not {"variables", "edges"} <= content.keys():
        raise GraphError(
            "Expected an object with 'variables' and 'edges', as `causal-arrow discover --json` prints it."
        )
    edges = [(str(edge["source"]), str(edge["target"])) for edge in content["edges"]]
    graph = graph_from_edges(edges, [str(name) for name in content["variables"]])
    if "edge_probabilities" not in content:
        return graph
    return NamedGraph(graph.names, graph.adjacency, np.array(content["edge_probabilities"], dtype=float))


def _read_csv(text: str) -> NamedGraph:
    """A list of edges with columns source and target, or a matrix with the names in its first row and column."""
    rows = [row for row in csv.reader(text.splitlines()) if any(cell.strip() for cell in row)]
    if not rows:
        raise GraphError("It is empty.")
    header = [cell.strip() for cell in rows[0]]
    lowered = [name.lower() for name in header]
    for source, target in (("source", "target"), ("from", "to"), ("cause", "effect")):
        if source in lowered and target in lowered:
            ends = lowered.index(source), lowered.index(target)
            graph = graph_from_edges([(row[ends[0]].strip(), row[ends[1]].strip()) for row in rows[1:]])
            return replace(graph, lists_all=False)
    names = header[1:] if len(rows) == len(header) and [row[0].strip() for row in rows[1:]] == header[1:] else header
    cells = [row[len(row) - len(names) :] for row in rows[1:]]
    if len(cells) != len(names) or any(len(row) != len(names) for row in cells):
        raise GraphError("Expected columns source and target, or a square matrix with the names in the first row.")
    weights = np.array([[float(cell) for cell in row] for row in cells])
    return NamedGraph(tuple(names), weights != 0)


def compatible(first: NamedGraph, second: NamedGraph) -> tuple[NamedGraph, NamedGraph]:
    """Both graphs on the same variables in the same order; GraphError if they are about different variables."""
    names = first.names
    if not first.lists_all:
        names = second.names if second.lists_all else tuple(dict.fromkeys([*first.names, *second.names]))
    return first.arranged_as(names), second.arranged_as(names)


def _read_networkx(parse: str) -> Callable[[str], NamedGraph]:
    def read(text: str) -> NamedGraph:
        import networkx as nx

        graph = getattr(nx, parse)(text)
        if not graph.is_directed():
            raise GraphError("Expected a directed graph, got an undirected one.")
        return graph_from_edges([(str(a), str(b)) for a, b in graph.edges()], [str(name) for name in graph.nodes])

    return read


_TOKEN = re.compile(
    r"""
    "(?P<quoted>(?:[^"\\]|\\.)*)"                        # any name, in quotes
    | (?P<sign>->|--|<-|[{}\[\];,=\n])
    | (?P<bare>[^\s"{}\[\];,=<>-]+(?:-(?![->])[^\s"{}\[\];,=<>-]+)*)
    """,
    re.VERBOSE,
)


def _read_dot(text: str) -> NamedGraph:
    """Graphviz and DAGitty text: names, and chains of arrows between them. Attributes and settings are skipped."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL)
    if "{" not in text or "}" not in text:
        raise GraphError("Expected a graph between braces, such as digraph { a -> b }.")
    edges: list[tuple[str, str]] = []
    names: list[str] = []
    previous, arrow, in_attributes, is_setting = "", "", False, False
    for match in _TOKEN.finditer(text, text.index("{") + 1, text.rindex("}")):
        sign = match["sign"]
        if sign in ("[", "]"):
            in_attributes = sign == "["
        elif in_attributes:
            continue
        elif sign == "--":
            raise GraphError("Expected directed edges (->), got an undirected one (--).")
        elif sign in ("->", "<-"):
            arrow = sign
        elif sign == "=":  # the name before it was that of a setting of the graph
            names.pop()
            is_setting = True
        elif sign == ";" or (sign == "\n" and not arrow):
            previous, arrow, is_setting = "", "", False
        elif sign is None and not is_setting and match["bare"] not in ("node", "edge", "graph"):
            name = match["bare"] or re.sub(r"\\(.)", r"\1", match["quoted"])
            names.append(name)
            if arrow:
                edges.append((previous, name) if arrow == "->" else (name, previous))
            previous, arrow = name, ""
    return graph_from_edges(edges, names)


_READERS: dict[str, Callable[[str], NamedGraph]] = {
    ".json": _read_json,
    ".csv": _read_csv,
    ".graphml": _read_networkx("parse_graphml"),
    ".gml": _read_networkx("parse_gml"),
    ".dot": _read_dot,
    ".gv": _read_dot,
    ".txt": _read_dot,
    ".dagitty": _read_dot,
}
