"""An answer compared with a known truth, in one picture: `draw_comparison`, `save_comparison`.

Causes are on top according to the truth: right edges point down, and reversed ones up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from causal_arrow.discovery.answer import Answer
from causal_arrow.discovery.pictures.scene import Boxes, Scene, legend_in_rows
from causal_arrow.discovery.pictures.style import BOX_STYLES, EDGE_COLOR, MISSING_COLOR, WRONG_COLOR, Stroke
from causal_arrow.errors import GraphError
from causal_arrow.graphs.dag import ensure_dag, transitive_closure
from causal_arrow.graphs.knowledge import parse_edge
from causal_arrow.graphs.layout import ASPECT
from causal_arrow.graphs.metrics import edge_differences
from causal_arrow.text import counted, listed, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Truth = Iterable[str | tuple[str, str]]

DOTTED = (0, (1.2, 1.8))
LONG_DASHES = (0, (7, 2))
VERDICTS = {
    "missing": (Stroke(MISSING_COLOR, 1.5, 0.95, DOTTED, False, head_size=0.9), "missing: only in the truth"),
    "right": (Stroke(EDGE_COLOR, 1.8, 0.95), "right"),
    "extra": (Stroke(WRONG_COLOR, 1.5, 0.95, "-", False, crossed_out=True), "extra: only in the answer"),
    "reversed": (Stroke(WRONG_COLOR, 1.8, 0.95, LONG_DASHES, head="above"), "reversed: the truth points down"),
}
"""What an edge of the answer or of the truth is: how it looks and its words in the legend. Later ones lie on top."""


def draw_comparison(answer: Answer, truth: Truth, ax: Axes | None = None, *, title: str | None = None) -> Axes:
    """Draw which edges of an answer are right, reversed, missing or extra, given the true edges. Causes are on top.

    The true edges are pairs of a cause and its effect, or text such as "smoking -> cancer". Hidden common causes are
    left out. Without `ax` a pyplot figure of the right size is made.
    """
    return _scene(answer, truth, title, ASPECT).draw(ax)


def save_comparison(
    answer: Answer,
    truth: Truth,
    *paths: str | Path,
    title: str | None = None,
    dpi: int = 150,
    adapts: bool = False,
    aspect: float = ASPECT,
) -> None:
    """Write the comparison to files, by their endings: .png, .svg (with text as text), .pdf.

    With `adapts`, an SVG file is dark where its reader prefers that; `aspect` is the width over height to aim at.
    """
    _scene(answer, truth, title, aspect).save(paths, dpi, adapts)


def _scene(answer: Answer, truth: Truth, title: str | None, aspect: float) -> Scene:
    if isinstance(truth, str) or not isinstance(truth, Iterable):
        raise GraphError(f"Expected the true edges as a list such as ['cause -> effect'], got {shown(truth)}.")
    true = {parse_edge(edge) for edge in truth}
    if unknown := sorted({name for edge in true for name in edge} - set(answer.names)):
        raise GraphError(f"The truth has {listed(unknown)}, which the answer does not have.")
    found = {(edge.source, edge.target) for edge in answer.edges}
    differences = edge_differences(true, found)
    index = {name: number for number, name in enumerate(answer.names)}
    edges = {(index[source], index[target]): "right" for source, target in true}
    adjacency = np.zeros((len(index), len(index)), dtype=bool)
    for pair in edges:
        adjacency[pair] = True
    adjacency = ensure_dag(adjacency)
    for verdict in ("missing", "reversed"):
        edges |= {(index[source], index[target]): verdict for source, target in differences[verdict]}
    strokes = {pair: VERDICTS[verdict][0] for pair, verdict in edges.items()}
    for source, target in differences["extra"]:
        pair, stroke = (index[source], index[target]), VERDICTS["extra"][0]
        if transitive_closure(adjacency)[pair[::-1]]:  # against the truth: drawn from the effect up to its cause
            pair, stroke = pair[::-1], replace(stroke, head="above")
        adjacency[pair], edges[pair], strokes[pair] = True, "extra", stroke
    boxes = Boxes.of(answer.names, adjacency, aspect)
    depth = list(VERDICTS)
    routes = sorted(boxes.layout.routes, key=lambda route: depth.index(edges[route.source, route.target]))
    linked = {variable for pair in edges for variable in pair}
    counts = Counter(edges.values())
    variables, truths = counted(len(answer.names), "variable"), counted(len(true), "true edge")
    samples = [
        (VERDICTS[verdict][0], f"{VERDICTS[verdict][1]} ({counts[verdict]})")
        for verdict in ("right", "reversed", "missing", "extra")
        if counts[verdict]
    ]
    return Scene(
        boxes,
        [BOX_STYLES["linked" if variable in linked else "lonely"] for variable in range(len(index))],
        [(route, strokes[route.source, route.target]) for route in routes],
        [],
        f"{variables}, {counts['right']} of {truths} found" if title is None else title,
        legend_in_rows(samples, boxes.layout.width),
    )
