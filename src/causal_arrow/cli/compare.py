"""`causal-arrow compare`: how far one graph is from another."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from causal_arrow.cli import options
from causal_arrow.cli.console import console, grid
from causal_arrow.text import counted, visible

MEASURES = {
    "shd": "structural Hamming distance: missing, extra and reversed edges",
    "nshd": "the same, divided by the edges of the first graph",
    "f1": "F1 of directed edges",
    "ap": "average precision of the second graph's probabilities, or of its edges",
    "skeleton_f1": "F1 of adjacencies, direction ignored",
    "orientation_accuracy": "share of common adjacencies that point the same way",
    "cpdag_shd": "distance of the Markov equivalence classes",
    "sid": "structural intervention distance (up to 30 variables)",
}


def compare(
    first: Annotated[Path, typer.Argument(help="The graph to compare with: the truth, where there is one.")],
    second: Annotated[Path, typer.Argument(help="The graph to be judged.")],
    as_json: options.AsJson = False,
) -> None:
    """Compare two graphs: distances, and the edges in which they differ.

    Files may be graph.json, an edge list or a matrix in CSV, GraphML, GML, Graphviz or DAGitty text. Both graphs must
    be about the same variables, in any order, and have no directed cycle. Undirected edges, as a CPDAG has them, are
    edges in both directions.
    """
    from causal_arrow.errors import GraphError
    from causal_arrow.graphs.differences import edge_differences
    from causal_arrow.graphs.files import compatible, read_graph
    from causal_arrow.graphs.metrics import evaluate

    truth, estimate = compatible(read_graph(first), read_graph(second))
    for path, graph in ((first, truth), (second, estimate)):
        if graph.bidirected is not None:
            raise GraphError(
                f"{path.name!r} has edges with two heads (<->), for hidden common causes, which cannot be compared "
                "yet: remove them."
            )
    measures = evaluate(truth.adjacency, estimate.adjacency, scores=estimate.probabilities)
    differences = edge_differences(set(truth.edges()), set(estimate.edges()))
    counts = [len({frozenset(edge) for edge in graph.edges()}) for graph in (truth, estimate)]
    if as_json:
        numbers = {name: None if math.isnan(measures[name]) else measures[name] for name in MEASURES}
        print(json.dumps({"measures": numbers, "edges": counts, **differences}, indent=2))
        return
    screen = console()
    screen.print(
        f"[bold]{counted(len(truth.names), 'variable')}; {counted(counts[0], 'edge')} in {escape(first.name)}, "
        f"{counts[1]:,} in {escape(second.name)}[/bold]\n"
    )
    measured = grid("measure", "value", "meaning", right=("value",))
    for name, meaning in MEASURES.items():
        value = measures[name]
        measured.add_row(name, "-" if math.isnan(value) else f"{value:.3f}" if value % 1 else f"{value:.0f}", meaning)
    screen.print(measured)
    for kind, edges in differences.items():
        if edges:
            listing = ", ".join(f"{visible(cause)} → {visible(effect)}" for cause, effect in edges)
            screen.print(f"[bold]{kind.replace('_', ' ')}[/bold] ({len(edges)}): {escape(listing)}")


EXAMPLES = {
    "compare": """
**Examples**

`causal-arrow compare truth.csv answer/graph.json`

`causal-arrow compare before.gml after.dot --json`
"""
}
