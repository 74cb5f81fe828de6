"""Graphs from files: our graph.json, lists of edges and matrices in CSV, GraphML, GML, Graphviz and DAGitty text."""

from __future__ import annotations

import numbers
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from causal_arrow.errors import GraphError
from causal_arrow.graphs.dag import CausalGraph, find_cycle
from causal_arrow.inputs import parse_json, read_bytes
from causal_arrow.text import counted, listed, reason, shown

Edge = tuple[str, str]

JSON_FORMAT = "causal-arrow-graph"
JSON_VERSION = 1
MAX_VARIABLES = 5000  # a graph takes memory for each pair of variables
MAX_EDGES = MAX_WORDS = 1_000_000  # maximum number of edges, and of words, in a text
MAX_DEPTH = 100
MAX_ATTRIBUTE = len("dir=both")  # longer attributes are skipped


@dataclass(frozen=True, eq=False)
class NamedGraph:
    """A causal graph on named variables, as a file describes it.  (P, P) each

    A 1 at both [j, k] and [k, j] is an undirected edge, as CPDAGs have them.

    Examples
    --------
    >>> from causal_arrow.graphs.files import graph_from_edges
    >>> graph = graph_from_edges([("smoking", "cancer")], names=["age"])
    >>> graph.names
    ('age', 'smoking', 'cancer')
    """

    names: tuple[str, ...]
    """The variables."""
    adjacency: NDArray[np.bool_]
    """[j, k] when j → k."""
    probabilities: NDArray[np.float64] | None = None
    """Probability of each edge; None if the file has none."""
    lists_all: bool = True
    """Whether variables without edges are listed too; a list of edges does not mention them."""
    bidirected: NDArray[np.bool_] | None = None
    """True for pairs that share a hidden cause, symmetric; None if the file has no hidden causes."""

    def arranged_as(self, names: Sequence[str]) -> NamedGraph:
        """The same graph with its variables in another order; a GraphError if `names` are not its variables."""
        here, there = set(self.names), set(names)
        if here < there and not self.lists_all:
            return graph_from_edges(self.edges(), names, self.hidden_causes())
        if here != there:
            sides = (("first", there - here), ("second", here - there))
            only = "; ".join(f"only the {side} has {listed(sorted(some), most=5)}" for side, some in sides if some)
            raise GraphError(f"The two graphs must have the same variables, but {only}.")
        index_of = {name: index for index, name in enumerate(self.names)}
        indices = [index_of[name] for name in names]
        grid = np.ix_(indices, indices)
        return NamedGraph(
            tuple(names),
            self.adjacency[grid],
            None if self.probabilities is None else self.probabilities[grid],
            bidirected=None if self.bidirected is None else self.bidirected[grid],
        )

    def edges(self) -> list[Edge]:
        """The edges by the names of their ends, an undirected one both ways."""
        return [(self.names[j], self.names[k]) for j, k in np.argwhere(self.adjacency)]

    def hidden_causes(self) -> list[Edge] | None:
        """The pairs that share a hidden cause, by their names; None if the file has no hidden causes."""
        if self.bidirected is None:
            return None
        return [(self.names[j], self.names[k]) for j, k in np.argwhere(np.triu(self.bidirected))]

    def causal_graph(self) -> CausalGraph:
        """The graph without its names; a GraphError if it has undirected edges."""
        return CausalGraph(self.adjacency, self.bidirected)


def read_graph(path: str | Path) -> NamedGraph:
    """Read a graph from a file: .json, .csv, .graphml, .gml; .dot or .gv (Graphviz), .txt or .dagitty (DAGitty).

    Directed cycles, variables that point to themselves or occur twice, and edges between variables that the file does
    not list are a GraphError. Undirected edges, as in a CPDAG, are not.

    Examples
    --------
    >>> from pathlib import Path
    >>> from causal_arrow.graphs.files import read_graph
    >>> _ = Path("edges.csv").write_text("source,target\\nsmoking,cancer\\n")
    >>> read_graph("edges.csv").edges()
    [('smoking', 'cancer')]
    """
    path = Path(path)
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise GraphError(f"Cannot tell the format of {path.name!r}: expected an ending among {', '.join(_READERS)}.")
    try:
        text = read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise GraphError(f"{path.name!r} is not a text file, so it holds no graph that can be read.") from error
    except (OSError, ValueError) as error:  # a ValueError for a name that no file can have
        why = getattr(error, "strerror", None) or error
        raise GraphError(f"Cannot open the graph {str(path)!r}: {why}.") from error
    try:
        graph = reader(text)
        _check(graph)
        return graph
    except GraphError as error:
        raise GraphError(f"In {path.name!r}: {error}") from error
    except RecursionError as error:
        raise GraphError(f"{path.name!r} is nested too deeply to be a graph.") from error
    except Exception as error:  # parsers of foreign formats fail in many ways
        raise GraphError(f"{path.name!r} is not a readable {path.suffix} graph ({reason(error)}).") from error


def graph_from_edges(
    edges: Iterable[Edge], names: Sequence[str] = (), hidden_causes: Iterable[Edge] | None = None
) -> NamedGraph:
    """The graph with these edges and hidden causes, on their ends and the variables that are named."""
    edges, pairs = list(edges), list(hidden_causes or ())
    index_of = {name: index for index, name in enumerate(dict.fromkeys(chain(names, *edges, *pairs)))}
    if len(index_of) > MAX_VARIABLES:
        raise GraphError(f"Expected at most {counted(MAX_VARIABLES, 'variable')}, got {len(index_of):,}.")
    adjacency, bidirected = np.zeros((2, len(index_of), len(index_of)), dtype=bool)
    for source, target in edges:
        adjacency[index_of[source], index_of[target]] = True
    for one, other in pairs:
        bidirected[index_of[one], index_of[other]] = bidirected[index_of[other], index_of[one]] = True
    return NamedGraph(tuple(index_of), adjacency, bidirected=None if hidden_causes is None else bidirected)


def compatible(first: NamedGraph, second: NamedGraph) -> tuple[NamedGraph, NamedGraph]:
    """Both graphs on the same variables in the same order; GraphError if they are about different variables."""
    names = first.names
    if not first.lists_all:
        names = second.names if second.lists_all else tuple(dict.fromkeys([*first.names, *second.names]))
    return first.arranged_as(names), second.arranged_as(names)


def _check(graph: NamedGraph) -> None:
    """Raise GraphError for what no causal graph has."""
    if loops := [graph.names[j] for j in np.flatnonzero(graph.adjacency.diagonal())]:
        raise GraphError(f"{listed(loops)} would cause itself: remove the edge from it to itself.")
    if graph.bidirected is not None and (own := np.flatnonzero(graph.bidirected.diagonal()).tolist()):
        raise GraphError(f"{graph.names[own[0]]!r} would share a hidden cause with itself: remove that edge.")
    if (cycle := find_cycle(graph.adjacency & ~graph.adjacency.T)) is not None:
        steps = [shown(graph.names[variable]) for variable in (*cycle, cycle[0])]
        around = steps if len(steps) <= 9 else [*steps[:4], f"({len(steps) - 8} more)", *steps[-4:]]
        raise GraphError(
            f"Expected a graph without cycles, got {' -> '.join(around)}: remove or reverse one of its edges."
        )


def _refuse_unlisted(edges: Iterable[Edge], names: Iterable[str]) -> None:
    known = set(names)
    if unknown := list(dict.fromkeys(name for edge in edges for name in edge if name not in known)):
        raise GraphError(f"Its edges name {listed(unknown, most=5)}, not among its variables.")


# Our JSON


def _read_json(text: str) -> NamedGraph:
    content: Any = parse_json(text)
    if not isinstance(content, dict) or not {"variables", "edges"} <= content.keys():
        raise GraphError("Expected an object with 'variables' and 'edges', as a graph.json of ours has them.")
    if (kind := content.get("format", JSON_FORMAT)) != JSON_FORMAT:
        raise GraphError(f"Expected the format {JSON_FORMAT!r}, got {shown(kind)}.")
    if (version := content.get("version", JSON_VERSION)) != JSON_VERSION or isinstance(version, bool):
        raise GraphError(
            f"Expected version {JSON_VERSION} of the format, got {shown(version)}: "
            "a newer version of this package may read it."
        )
    variables, listed_edges = content["variables"], content["edges"]
    if not isinstance(variables, list) or not isinstance(listed_edges, list):
        raise GraphError("Expected lists of 'variables' and of 'edges'.")
    names = [_name(variable) for variable in variables]
    if len(set(names)) < len(names):
        twice = [name for name, count in Counter(names).items() if count > 1]
        raise GraphError(f"Expected every variable once, got {listed(twice, most=5)} twice.")
    edges = [_json_edge(edge) for edge in listed_edges]
    hidden = _hidden_pairs(content.get("hidden_causes"))
    _refuse_unlisted([*edges, *(hidden or ())], names)
    graph = graph_from_edges(edges, names, hidden)
    if content.get("edge_probabilities") is None:
        return graph
    return replace(graph, probabilities=_json_probabilities(content["edge_probabilities"], len(names)))


def _hidden_pairs(pairs: Any) -> list[Edge] | None:
    """The pairs of a list of objects with `first` and `second`, or of lists that start so; None for None."""
    if pairs is None:
        return None
    if not isinstance(pairs, list):
        raise GraphError(f"Expected a list of 'hidden_causes', got {shown(pairs)}.")
    found = []
    for pair in pairs:
        ends = [pair.get("first"), pair.get("second")] if isinstance(pair, dict) else pair
        if not isinstance(ends, list | tuple) or len(ends) < 2:
            raise GraphError(f"Expected hidden causes with 'first' and 'second', got {shown(pair)}.")
        found.append((_name(ends[0]), _name(ends[1])))
    return found


def _json_edge(edge: Any) -> Edge:
    if not isinstance(edge, dict) or not {"source", "target"} <= edge.keys():
        raise GraphError(f"Expected edges with 'source' and 'target', got {shown(edge)}.")
    return _name(edge["source"]), _name(edge["target"])


def _json_probabilities(rows: Any, variables: int) -> NDArray[np.float64]:
    """The matrix, once it is known to hold a probability for each ordered pair."""
    try:
        matrix = np.array(rows, dtype=np.float64)
    except (TypeError, ValueError):
        matrix = np.full(1, np.nan)
    if matrix.shape != (variables, variables) or not ((matrix >= 0) & (matrix <= 1)).all():
        raise GraphError(f"Expected 'edge_probabilities' to be {variables} × {variables} numbers between 0 and 1.")
    return matrix


def _name(value: Any) -> str:
    if isinstance(value, str) or (isinstance(value, numbers.Real) and not isinstance(value, bool)):
        return str(value)
    raise GraphError(f"Expected the name of a variable, got {shown(value)}.")


# CSV


def _read_csv(text: str) -> NamedGraph:
    """A list of edges with columns source and target, or a matrix with the names in its first row and column."""
    rows = [row for row in _csv_rows(text) if any(cell.strip() for cell in row)]
    if not rows:
        raise GraphError("It is empty.")
    header = rows[0]
    lowered = [name.lower() for name in header]
    for source, target in (("source", "target"), ("from", "to"), ("cause", "effect")):
        if source in lowered and target in lowered:
            ends = lowered.index(source), lowered.index(target)
            if short := [row for row in rows[1:] if len(row) <= max(ends) or not all(row[end] for end in ends)]:
                raise GraphError(f"Expected a {source} and a {target} in every row, got {shown(','.join(short[0]))}.")
            graph = graph_from_edges([(row[ends[0]], row[ends[1]]) for row in rows[1:]])
            return replace(graph, lists_all=False)
    names = header[1:] if len(rows) == len(header) and [row[0] for row in rows[1:]] == header[1:] else header
    cells = [row[len(row) - len(names) :] for row in rows[1:]]
    if len(cells) != len(names) or any(len(row) != len(names) for row in cells):
        raise GraphError("Expected columns source and target, or a square matrix with the names in the first row.")
    if len(set(names)) < len(names):
        raise GraphError("Expected every variable once in the first row, got a name twice.")
    weights = np.array([[float(cell) for cell in row] for row in cells])
    if not np.isfinite(weights).all():
        raise GraphError("Expected numbers in the matrix, 0 where there is no edge; got nan or infinity.")
    return NamedGraph(tuple(names), weights != 0)


_CSV_CELL = re.compile(r'[ \t]*"([^"]*(?:""[^"]*)*)"[ \t]*(,|\r?\n|\r|\Z)|([^,\r\n]*)(,|\r?\n|\r|\Z)')


def _csv_rows(text: str) -> list[list[str]]:
    """Rows of cells: blanks around a cell do not count, except inside quotes, where they belong to a name."""
    rows: list[list[str]] = [[]]
    position = 0
    while position < len(text):
        match = _CSV_CELL.match(text, position)
        assert match is not None  # the second alternative takes any text
        quoted, quoted_end, bare, bare_end = match.groups()
        rows[-1].append(bare.strip() if quoted is None else quoted.replace('""', '"'))
        if (end := bare_end if quoted is None else quoted_end) == ",":
            if match.end() == len(text):
                rows[-1].append("")
        elif end:
            rows.append([])
            if len(rows) > MAX_EDGES + 2:  # a header, and the row after the last
                raise GraphError(f"Expected at most {MAX_EDGES:,} rows.")
        position = match.end()
    return rows


# Graph languages


def _read_graphml(text: str) -> NamedGraph:
    root = ElementTree.fromstring(text)
    nodes = [str(node.get("id")) for node in root.findall(".//{*}node")]
    _refuse_unlisted(((str(edge.get("source")), str(edge.get("target"))) for edge in root.findall(".//{*}edge")), nodes)
    return _read_networkx(text, "parse_graphml")


def _read_networkx(text: str, parse: str = "parse_gml") -> NamedGraph:
    import networkx as nx

    graph = getattr(nx, parse)(text)
    if not graph.is_directed():
        raise GraphError("Expected a directed graph, got an undirected one.")
    names = [str(name) for name in graph.nodes]
    hidden = graph.graph.get("hidden_causes")
    pairs = None if hidden is None else _hidden_pairs(parse_json(hidden))
    _refuse_unlisted(pairs or (), names)
    return graph_from_edges([(str(a), str(b)) for a, b in graph.edges()], names, pairs)


_TOKEN = re.compile(
    r"""
    "(?P<quoted>[^"\\]*(?:\\[\s\S][^"\\]*)*)"          # any name, in quotes
    | (?P<comment>/\*[\s\S]*?\*/|//[^\n]*|^[ \t]*\#[^\n]*)
    | (?P<sign><->|->|--|<-|[{}\[\];,=])
    | (?P<bare>[^\s"{}\[\];,=<>-]+(?:-(?![->])[^\s"{}\[\];,=<>-]+)*)
    | (?P<stray>\S)
    """,
    re.VERBOSE | re.MULTILINE,
)


def _read_dot(text: str) -> NamedGraph:
    """Graphviz and DAGitty text: names, and chains of arrows between them. Attributes and settings are skipped."""
    tokens = [match for match in islice(_TOKEN.finditer(text), MAX_WORDS + 1) if match["comment"] is None]
    if len(tokens) > MAX_WORDS:
        raise GraphError(f"Expected at most {MAX_WORDS:,} words and signs.")
    start = next((number for number, token in enumerate(tokens) if token["sign"] == "{"), None)
    if start is None or sum({"{": 1, "}": -1}.get(token["sign"], 0) for token in tokens) != 0:
        raise GraphError("Expected a graph between braces, such as digraph { a -> b }.")
    statements = _DotStatements(partial_graph=any(token["bare"] == "pdag" for token in tokens[:start]))
    for token in tokens[start + 1 :]:
        statements.read(token)
    links = statements.links
    edges = [(a, b) for a, arrow, b in links if arrow in ("->", "--")]
    edges += [(b, a) for a, arrow, b in links if arrow in ("<-", "--")]
    hidden = [(a, b) for a, arrow, b in links if arrow == "<->"]
    return graph_from_edges(edges, statements.names, hidden or None)


class _DotStatements:
    """The statements between the braces, read token by token. `left` is what an arrow would start from."""

    def __init__(self, partial_graph: bool) -> None:
        self.partial_graph = partial_graph
        self.names: list[str] = []  # of the innermost braces
        self.links: list[tuple[str, str, str]] = []
        self.statement = 0  # index of the first link of the statement
        self.left: list[str] = []
        self.arrow = ""
        self.outer: list[tuple[list[str], list[str], str]] = []
        self.in_attributes = self.skip_name = False
        self.attribute = ""  # as far as it was read

    def read(self, token: re.Match[str]) -> None:
        """Read the next token."""
        sign, bare = token["sign"], token["bare"]
        if sign in ("[", "]"):
            self.in_attributes, self.attribute = sign == "[", ""
        elif self.in_attributes:
            self._read_attribute(token)
        elif token["stray"] is not None:
            raise GraphError(f"Cannot read {token['stray']!r}: names with such characters need quotes.")
        elif sign in ("->", "<-", "--", "<->"):
            if sign == "--" and not self.partial_graph:
                raise GraphError("Expected directed edges (->), got an undirected one (--).")
            if not self.left:
                raise GraphError(f"Expected a variable before every {sign}.")
            self.arrow = str(sign)
        elif sign == "{":
            if len(self.outer) > MAX_DEPTH:
                raise GraphError(f"Expected at most {MAX_DEPTH} braces inside each other.")
            self.outer.append((self.names, self.left, self.arrow))
            self.names, self.left, self.arrow, self.skip_name = [], [], "", False
        elif sign == "}" and self.outer:
            group = self.names
            self.names, self.left, self.arrow = self.outer.pop()
            self.names += group
            self._join(group)
        elif sign == "=":  # the name before it was that of a setting of the graph
            self.names, self.left, self.skip_name = self.names[:-1], [], True
        elif sign is not None:
            if self.arrow:
                raise GraphError(f"Expected a variable after every {self.arrow}.")
            self.left = []
        elif self.skip_name:
            self.skip_name = False
        elif bare == "subgraph":
            self.skip_name = True
        elif bare not in ("node", "edge", "graph") and not (bare or "").startswith(":"):
            name = re.sub(r"\\([\s\S])", _unescape, token["quoted"]) if bare is None else bare
            self.names.append(name)
            self._join([name])

    def _read_attribute(self, token: re.Match[str]) -> None:
        """Read the next token of the attributes of an edge; `dir=both` makes it a hidden common cause."""
        if token["sign"] in (",", ";"):
            self.attribute = ""
        if token["sign"] in (",", ";") or len(self.attribute) > MAX_ATTRIBUTE:
            return
        self.attribute += str(token["sign"] or token["bare"] or token["quoted"])[:MAX_ATTRIBUTE]
        if self.attribute == "dir=both":
            links = self.links[self.statement :]
            self.links[self.statement :] = [(a, "<->" if arrow == "->" else arrow, b) for a, arrow, b in links]
            self.statement = len(self.links)

    def _join(self, right: list[str]) -> None:
        """Edges from what an arrow started from to what it leads to, from where the next one may start."""
        if not self.arrow:
            self.statement = len(self.links)
        elif len(self.left) * len(right) + len(self.links) > MAX_EDGES:
            raise GraphError(f"Expected at most {MAX_EDGES:,} edges.")
        else:
            self.links += [(a, self.arrow, b) for a in self.left for b in right]
        self.left, self.arrow = right, ""


def _unescape(match: re.Match[str]) -> str:
    return {"n": "\n", "r": "\r", "\n": ""}.get(match[1], match[1])


_READERS: dict[str, Callable[[str], NamedGraph]] = {
    ".json": _read_json,
    ".csv": _read_csv,
    ".graphml": _read_graphml,
    ".gml": _read_networkx,
    ".dot": _read_dot,
    ".gv": _read_dot,
    ".txt": _read_dot,
    ".dagitty": _read_dot,
}
