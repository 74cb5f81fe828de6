"""`causal-arrow compare`: how far one graph is from another."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from causal_arrow.cli import options
from causal_arrow.cli.console import console, grid
from causal_arrow.text import counted

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
    edges in both directions. Measures are about edges; hidden common causes (<->) are listed below them.
    """
    from causal_arrow.graphs.files import compatible, read_graph
    from causal_arrow.graphs.metrics import edge_differences, evaluate

    truth, estimate = compatible(read_graph(first), read_graph(second))
    measures = evaluate(truth.adjacency, estimate.adjacency, scores=estimate.probabilities)
    differences = edge_differences(set(truth.edges()), set(estimate.edges()))
    counts = [len({frozenset(edge) for edge in graph.edges()}) for graph in (truth, estimate)]
    hidden = (truth.hidden_causes(), estimate.hidden_causes())
    if as_json:
        numbers = {name: None if math.isnan(measures[name]) else measures[name] for name in MEASURES}
        pairs_of = dict(zip(("first", "second"), hidden, strict=True))
        content = {"measures": numbers, "edges": counts, **differences, "hidden_causes": pairs_of}
        print(json.dumps(content, indent=2))
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
            screen.print(f"[bold]{kind.replace('_', ' ')}[/bold] ({len(edges)}): {escape(_listing(edges, '→'))}")
    for kind, pairs in _hidden_causes(*hidden, first.name, second.name).items():
        if pairs:
            screen.print(f"[bold]{escape(kind)}[/bold] ({len(pairs)}): {escape(_listing(pairs, '↔'))}")


def _listing(edges: Sequence[tuple[str, str]], arrow: str) -> str:
    return ", ".join(f"{one} {arrow} {other}" for one, other in edges)


def _hidden_causes(
    ours: Sequence[tuple[str, str]] | None, theirs: Sequence[tuple[str, str]] | None, first: str, second: str
) -> dict[str, list[tuple[str, str]]]:
    """Pairs with a hidden cause in both graphs and in one of them, or in the only graph that states any.

    Both lists are in the order of the same variables.
    """
    if ours is None or theirs is None:
        silent, pairs = (first, theirs) if ours is None else (second, ours)
        return {f"hidden common causes, not stated in {silent}": list(pairs or [])}
    return {
        "hidden common causes in both": [pair for pair in ours if pair in theirs],
        "missing hidden common causes": [pair for pair in ours if pair not in theirs],
        "extra hidden common causes": [pair for pair in theirs if pair not in ours],
    }


EXAMPLES = {
    "compare": """
**Examples**

`causal-arrow compare truth.csv answer/graph.json`

`causal-arrow compare before.gml after.dot --json`
"""
}
