"""An answer for other programs: JSON, CSV, networkx, Graphviz, GML, DAGitty, DoWhy, pgmpy, causal-learn, lingam.

The receiving packages are optional, and imported when they are used.

Names of columns can hold anything. JSON keeps them all, and so do the objects of other packages. Characters that the
other text formats cannot hold, such as controls, are written out ("\\x07"); different names stay different.
"""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from causal_arrow.discovery.answer import DIGITS, Answer, DirectedEdge, HiddenCause, edge_record
from causal_arrow.discovery.pictures import layout_of
from causal_arrow.errors import ConfigurationError, warn
from causal_arrow.text import MISLEADING, UNPRINTABLE, counted, first_few, visible

if TYPE_CHECKING:
    import networkx as nx


def to_json(answer: Answer) -> str:
    """Write everything as JSON, by the documented schema; `Answer.from_dict` reads it back."""
    return json_text(answer.to_dict()) + "\n"


def json_text(content: Any) -> str:
    """JSON that any file and terminal can hold: letters as they are, misleading and unprintable characters escaped."""
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    return MISLEADING.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


MAX_LEFT_OUT = 5  # hidden common causes that a sentence names

_FACTS = [entry.name for entry in fields(DirectedEdge)]
EDGE_COLUMNS = (*_FACTS[:5], "direction", *_FACTS[5:])


def to_csv(answer: Answer) -> str:
    """The edges as CSV, the most probable first, with a header."""
    return csv_of(EDGE_COLUMNS, map(edge_record, answer.edges), answer.names)


def csv_of(columns: Sequence[str], edges: Iterable[Mapping[str, Any]], names: Sequence[str]) -> str:
    """Records of edges between variables of these names as CSV."""
    written = written_names(names, NOT_IN_CSV)
    lines = [",".join(columns)]
    for edge in edges:
        facts = {**edge, "source": written[edge["source"]], "target": written[edge["target"]]}
        lines.append(",".join(_csv_cell(str(facts[column])) for column in columns))
    return "\n".join(lines) + "\n"


def _csv_cell(text: str) -> str:
    """In quotes where a reader would otherwise take part of it for something else, or leave out blanks at an end."""
    return '"' + text.replace('"', '""') + '"' if re.search(r'[",\r\n]|^\s|\s$|^$', text) else text


# Names that text formats can hold

NOT_IN_CSV = re.compile("[\x00\ud800-\udfff]")


def written_names(names: Sequence[str], hidden: re.Pattern[str] = UNPRINTABLE) -> dict[str, str]:
    """Names for formats in which some characters cannot be written; no two names are written alike."""
    written = {name: name for name in names if not hidden.search(name)}
    taken = set(written)
    for name in names:
        if name not in written:
            plain = candidate = visible(name, hidden)
            number = 2
            while candidate in taken:
                candidate, number = f"{plain} ({number})", number + 1
            written[name] = candidate
            taken.add(candidate)
    return written


# Graph languages


def to_networkx(answer: Answer) -> nx.DiGraph[str]:
    """Make the graph for networkx: probabilities on the edges, order scores on the nodes.

    Pairs that probably share a hidden cause are the attribute `hidden_causes` of the graph, each as (first, second,
    probability).

    Examples
    --------
    >>> sorted(found.to_networkx().predecessors("stay"))
    ['day3', 'ward']
    """
    import networkx as nx

    graph: nx.DiGraph[str] = nx.DiGraph()
    position = {name: index for index, name in enumerate(answer.order)}
    for name, score in zip(answer.names, answer.order_scores, strict=True):
        graph.add_node(name, order_score=round(float(score), DIGITS), order_position=position[name])
    for edge in answer.edges:
        facts = edge_record(edge)
        graph.add_edge(facts.pop("source"), facts.pop("target"), **facts)
    if answer.hidden_causes:
        graph.graph["hidden_causes"] = hidden_records(answer.hidden_causes)
    return graph


def hidden_records(pairs: Iterable[HiddenCause]) -> list[tuple[str, str, float]]:
    """Pairs that probably share a hidden cause, as graphs of networkx have them."""
    return [(pair.first, pair.second, round(pair.probability, DIGITS)) for pair in pairs]


def to_gml(answer: Answer) -> str:
    """Write the graph as GML; pairs with a hidden cause are an attribute of the graph, as JSON text."""
    import networkx as nx

    return "\n".join(nx.generate_gml(writable(to_networkx(answer)))) + "\n"


def to_graphml(answer: Answer) -> str:
    """Write the graph as GraphML; pairs with a hidden cause are an attribute of the graph, as JSON text."""
    import networkx as nx

    return "\n".join(nx.generate_graphml(writable(to_networkx(answer)))) + "\n"


def writable(graph: nx.Graph[str]) -> nx.Graph[str]:
    """A graph with names that a text format can hold, and pairs with a hidden cause as JSON text."""
    import networkx as nx

    names = written_names(list(graph))
    renamed: nx.Graph[str] = nx.relabel_nodes(graph, names)
    if pairs := graph.graph.get("hidden_causes"):
        pairs = [[names[a], names[b], probability] for a, b, probability in pairs]
        renamed.graph["hidden_causes"] = json.dumps(pairs, ensure_ascii=False)
    return renamed


def to_dot(answer: Answer) -> str:
    """Write the graph for Graphviz: probability as width, a weak direction dashed with an open head.

    A dashed line with heads at both ends is a hidden common cause.
    """
    lines = ["digraph causal_graph {", "  node [shape=box, style=rounded];"]
    names = {name: quoted(written) for name, written in written_names(answer.names).items()}
    lines += [f"  {names[name]};" for name in answer.names]
    for edge in answer.edges:
        style = "dashed" if edge.direction == "weak" else "solid"
        head = "normal" if edge.direction == "strong" else "empty"
        tooltip = quoted(f"probability {edge.probability:.3f}, direction {edge.direction}")
        look = f"penwidth={0.5 + 2 * edge.probability:.2f}, style={style}, arrowhead={head}, tooltip={tooltip}"
        ends = f"{names[edge.source]} -> {names[edge.target]}"
        lines.append(f"  {ends} [{look}, probability={edge.probability:.{DIGITS}f}];")
    for pair in answer.hidden_causes:
        tooltip = quoted(f"hidden common cause, probability {pair.probability:.3f}")
        attributes = f"dir=both, style=dashed, constraint=false, tooltip={tooltip}, probability={pair.probability:.6f}"
        lines.append(f"  {names[pair.first]} -> {names[pair.second]} [{attributes}];")
    return "\n".join([*lines, "}"]) + "\n"


def to_dagitty(answer: Answer) -> str:
    """Write the graph for DAGitty (dagitty.net and the R package), with the positions of our pictures."""
    layout = layout_of(answer)
    right, top = max(layout.width, 1.0), max(layout.height, 1.0)
    names = {name: quoted(written) for name, written in written_names(answer.names).items()}
    lines = ["dag {", 'bb="0,0,1,1"']
    for name, (x, y) in zip(answer.names, layout.centers, strict=True):
        lines.append(f'{names[name]} [pos="{x / right:.3f},{1 - y / top:.3f}"]')  # y grows downwards there
    lines += [f"{names[edge.source]} -> {names[edge.target]}" for edge in answer.edges]
    lines += [f"{names[pair.first]} <-> {names[pair.second]}" for pair in answer.hidden_causes]
    return "\n".join([*lines, "}"]) + "\n"


_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"})


def quoted(name: str) -> str:
    """A name in quotes, as Graphviz and DAGitty read it."""
    return f'"{name.translate(_ESCAPES)}"'


TEXT_FORMATS: dict[str, Callable[[Answer], str]] = {
    "graph.json": to_json,
    "edges.csv": to_csv,
    "graph.graphml": to_graphml,
    "graph.gml": to_gml,
    "graph.dot": to_dot,
    "graph.dagitty.txt": to_dagitty,
}
"""The files of an answer that are text, by name."""


# Causal packages


def to_dowhy(answer: Answer) -> nx.DiGraph[str]:
    """Make the graph for `dowhy.CausalModel(graph=...)` and `dowhy.gcm`.

    Without attributes: DoWhy puts its own on the graph it is given.
    """
    import networkx as nx

    graph: nx.DiGraph[str] = _filled(nx.DiGraph(), answer, "to_dowhy")
    return graph


def to_pgmpy(answer: Answer) -> Any:
    """Make the graph as a `pgmpy.base.DAG`; pgmpy must be installed."""
    return _filled(_package("pgmpy.base", "pgmpy").DAG(), answer, "to_pgmpy")


def _filled(graph: Any, answer: Answer, export: str) -> Any:
    """A graph of networkx's kind with the directed edges of the answer, and a warning if that leaves something out."""
    graph.add_nodes_from(answer.names)
    graph.add_edges_from((edge.source, edge.target) for edge in answer.edges)
    _mention_left_out(answer, export)
    return graph


def to_causallearn(answer: Answer) -> Any:
    """Make the graph as a causal-learn `Dag`, which is also a `GeneralGraph`; causal-learn must be installed."""
    node_type = _package("causallearn.graph.GraphNode", "causal-learn").GraphNode
    nodes = {name: node_type(name) for name in answer.names}
    graph = _package("causallearn.graph.Dag", "causal-learn").Dag(list(nodes.values()))
    for edge in answer.edges:
        graph.add_directed_edge(nodes[edge.source], nodes[edge.target])
    _mention_left_out(answer, "to_causallearn")
    return graph


def to_lingam(answer: Answer) -> NDArray[np.float64]:
    """Make the graph as lingam keeps it, transposed: [k, j] is 1 where variable j causes variable k."""
    _mention_left_out(answer, "to_lingam")
    return np.asarray(answer.adjacency.T, dtype=np.float64)


def _mention_left_out(answer: Answer, export: str) -> None:
    """An ArrowWarning if the export has no room for the hidden common causes of the answer."""
    if answer.hidden_causes:
        warn(f"{export} exports only directed edges. {left_out_sentence(answer)}")


def left_out_sentence(answer: Answer) -> str:
    """Name the hidden common causes that an export of directed edges leaves out; the first few of many."""
    pairs, named = counted(len(answer.hidden_causes), "pair"), list(map(str, answer.hidden_causes))
    return f"Left out: {pairs} with a hidden common cause, {first_few(named, MAX_LEFT_OUT)}."


def _package(module: str, name: str) -> Any:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not module.startswith(error.name):
            raise  # the package is there, and lacks something itself
        raise ConfigurationError(
            f"This needs the package {name}, which is not installed: pip install {name}."
        ) from error
