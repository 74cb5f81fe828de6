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
    be about the same variables, in any order.
    """
    from causal_arrow.graphs.files import compatible, read_graph
    from causal_arrow.graphs.metrics import evaluate

    truth, estimate = compatible(read_graph(first), read_graph(second))
    measures = evaluate(truth.adjacency, estimate.adjacency, scores=estimate.probabilities)
    ours, theirs = set(truth.edges()), set(estimate.edges())
    reversed_edges = sorted(edge for edge in ours - theirs if edge[::-1] in theirs and edge[::-1] not in ours)
    turned = {edge[::-1] for edge in reversed_edges}
    differences = {
        "missing": sorted(ours - theirs - set(reversed_edges)),
        "extra": sorted(theirs - ours - turned),
        "reversed": reversed_edges,
    }
    if as_json:
        numbers = {name: None if math.isnan(measures[name]) else measures[name] for name in MEASURES}
        print(json.dumps({"measures": numbers, "edges": [len(ours), len(theirs)], **differences}, indent=2))
        return
    screen = console()
    screen.print(
        f"[bold]{len(truth.names)} variables; {len(ours)} edges in {escape(first.name)}, {len(theirs)} in "
        f"{escape(second.name)}[/bold]\n"
    )
    table = grid("measure", "value", "meaning", right=("value",))
    for name, meaning in MEASURES.items():
        value = measures[name]
        table.add_row(name, "-" if math.isnan(value) else f"{value:.3f}" if value % 1 else f"{value:.0f}", meaning)
    screen.print(table)
    for kind, edges in differences.items():
        if edges:
            listing = ", ".join(f"{cause} → {effect}" for cause, effect in edges)
            screen.print(f"[bold]{kind}[/bold] ({len(edges)}): {escape(listing)}")


EXAMPLES = {
    "compare": """
**Examples**

`causal-arrow compare truth.csv answer/graph.json`

`causal-arrow compare before.gml after.dot --json`
"""
}
