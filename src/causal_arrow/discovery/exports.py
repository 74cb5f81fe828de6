"""An answer for other programs: JSON, CSV, networkx, Graphviz, GML, DAGitty, DoWhy, pgmpy, causal-learn, lingam.

The packages at the receiving end are imported when they are asked for; none of them is needed otherwise.
"""

from __future__ import annotations

import csv
import importlib
import io
import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from causal_arrow.discovery.answer import DIGITS, Answer, edge_record
from causal_arrow.errors import ConfigurationError
from causal_arrow.graphs.layout import layered_layout

if TYPE_CHECKING:
    import networkx as nx


def to_json(answer: Answer) -> str:
    """The answer as JSON text."""
    return json.dumps(answer.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


EDGE_COLUMNS = (
    "source",
    "target",
    "probability",
    "adjacency_probability",
    "direction_probability",
    "direction",
    "order_margin",
    "compelled",
    "required",
)


def to_csv(answer: Answer) -> str:
    """The edges as CSV, the most probable first, with a header."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, EDGE_COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(edge_record(edge) for edge in answer.edges)
    return text.getvalue()


# Graph languages


def to_networkx(answer: Answer) -> nx.DiGraph[str]:
    """The graph for networkx: facts of edges on the edges, order scores on the nodes."""
    networkx = _package("networkx", "networkx")
    graph: nx.DiGraph[str] = networkx.DiGraph()
    position = {name: place for place, name in enumerate(answer.order)}
    for name, score in zip(answer.names, answer.order_scores, strict=True):
        graph.add_node(name, order_score=round(float(score), DIGITS), order_position=position[name])
    for edge in answer.edges:
        facts = edge_record(edge)
        graph.add_edge(facts.pop("source"), facts.pop("target"), **facts)
    return graph


def to_gml(answer: Answer) -> str:
    """The graph as GML."""
    networkx = _package("networkx", "networkx")
    return "\n".join(networkx.generate_gml(to_networkx(answer))) + "\n"


def to_graphml(answer: Answer) -> str:
    """The graph as GraphML."""
    networkx = _package("networkx", "networkx")
    return "\n".join(networkx.generate_graphml(to_networkx(answer))) + "\n"


def to_dot(answer: Answer) -> str:
    """The graph in the language of Graphviz: probability as width, an uncertain direction dashed with an open head."""
    styles = {"certain": "solid", "likely": "solid", "uncertain": "dashed"}
    lines = ["digraph causal_graph {", "  node [shape=box, style=rounded];"]
    lines += [f"  {_quoted(name)};" for name in answer.names]
    for edge in answer.edges:
        look = {
            "penwidth": f"{0.5 + 2 * edge.probability:.2f}",
            "style": styles[edge.direction],
            "arrowhead": "normal" if edge.direction == "certain" else "empty",
            "tooltip": _quoted(f"probability {edge.probability:.3f}, direction {edge.direction}"),
            "probability": f"{edge.probability:.{DIGITS}f}",
        }
        attributes = ", ".join(f"{name}={value}" for name, value in look.items())
        lines.append(f"  {_quoted(edge.source)} -> {_quoted(edge.target)} [{attributes}];")
    return "\n".join([*lines, "}"]) + "\n"


def to_dagitty(answer: Answer) -> str:
    """The graph as text for DAGitty (dagitty.net and the R package), with the positions of our pictures."""
    widths = [20.0 + 6 * len(name) for name in answer.names]
    layout = layered_layout(answer.adjacency, widths, 20.0)
    right, top = max(layout.width, 1.0), max(layout.height, 1.0)
    lines = ["dag {", 'bb="0,0,1,1"']
    for name, (x, y) in zip(answer.names, layout.centers, strict=True):
        lines.append(f'{_quoted(name)} [pos="{x / right:.3f},{1 - y / top:.3f}"]')  # y grows downwards there
    lines += [f"{_quoted(edge.source)} -> {_quoted(edge.target)}" for edge in answer.edges]
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(name: str) -> str:
    """A name as Graphviz and DAGitty read it whatever is in it."""
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + re.sub(r"\s+", " ", escaped) + '"'


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
    """The graph as DoWhy takes it, in `CausalModel(data, treatment, outcome, graph=...)` and in `gcm`.

    Without attributes: DoWhy puts its own on the graph it is given.
    """
    networkx = _package("networkx", "networkx")
    graph: nx.DiGraph[str] = networkx.DiGraph()
    graph.add_nodes_from(answer.names)
    graph.add_edges_from((edge.source, edge.target) for edge in answer.edges)
    return graph


def to_pgmpy(answer: Answer) -> Any:
    """The graph as a `pgmpy.base.DAG`."""
    graph = _package("pgmpy.base", "pgmpy").DAG()
    graph.add_nodes_from(answer.names)
    graph.add_edges_from((edge.source, edge.target) for edge in answer.edges)
    return graph


def to_causallearn(answer: Answer) -> Any:
    """The graph as a causal-learn `Dag`, which is a `GeneralGraph`."""
    node_type = _package("causallearn.graph.GraphNode", "causal-learn").GraphNode
    nodes = {name: node_type(name) for name in answer.names}
    graph = _package("causallearn.graph.Dag", "causal-learn").Dag(list(nodes.values()))
    for edge in answer.edges:
        graph.add_directed_edge(nodes[edge.source], nodes[edge.target])
    return graph


def to_lingam(answer: Answer) -> NDArray[np.float64]:
    """The graph as lingam keeps adjacency matrices, transposed: [k, j] is 1 when j → k."""
    return np.asarray(answer.adjacency.T, dtype=np.float64)


def _package(module: str, name: str) -> Any:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not module.startswith(error.name):
            raise  # the package is there, and lacks something itself
        raise ConfigurationError(
            f"This needs the package {name}, which is not installed: pip install {name}."
        ) from error
