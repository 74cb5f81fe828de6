"""An answer compared with a known truth, in one picture: `draw_comparison`, `save_comparison`.

Causes are on top by the truth. So right edges point down, and reversed ones up.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from causal_arrow.discovery.answer import Answer
from causal_arrow.discovery.pictures.scene import Boxes, Scene, gaps_for, legend_in_rows
from causal_arrow.discovery.pictures.strokes import BOX_STYLES, EDGE_COLOR, MISSING_COLOR, WRONG_COLOR, Stroke
from causal_arrow.errors import GraphError
from causal_arrow.graphs.dag import ensure_dag, transitive_closure
from causal_arrow.graphs.differences import edge_differences
from causal_arrow.graphs.knowledge import parse_edge
from causal_arrow.graphs.layout import ASPECT, layered_layout
from causal_arrow.text import counted, listed, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DOTTED = (0, (1.2, 1.8))
LONG_DASHES = (0, (7, 2))


@dataclass(frozen=True)
class Verdict:
    """What an edge of the answer or of the truth turned out to be: how it looks and what the legend says."""

    stroke: Stroke
    label: str


VERDICTS = {
    "missing": Verdict(
        Stroke(MISSING_COLOR, 1.5, 0.95, DOTTED, filled_head=False, head_size=0.9), "missing: only in the truth"
    ),
    "right": Verdict(Stroke(EDGE_COLOR, 1.8, 0.95), "right"),
    "extra": Verdict(Stroke(WRONG_COLOR, 1.5, 0.95, "-", filled_head=False, mark="cross"), "extra: only in the answer"),
    "reversed": Verdict(Stroke(WRONG_COLOR, 1.8, 0.95, LONG_DASHES, head="above"), "reversed: the truth points down"),
}
"""In the order of painting: what comes later lies on top."""


def draw_comparison(
    answer: Answer, truth: Iterable[str | tuple[str, str]], ax: Axes | None = None, *, title: str | None = None
) -> Axes:
    """The edges of an answer and of the truth: which are right, reversed, missing or extra. Causes are on top.

    Hidden common causes are left out.

    Parameters
    ----------
    answer
        The answer, such as `arrow.answer_`.
    truth
        The true edges, as pairs of a cause and its effect or as text such as "smoking -> cancer".
    ax
        The matplotlib axes to draw on; by default a new figure of a fitting size.
    title
        The words above the picture; by default how many of the true edges were found.

    Returns
    -------
    matplotlib.axes.Axes
        The axes that were drawn on.
    """
    return _scene(answer, truth, title, ASPECT).draw(ax)


def save_comparison(
    answer: Answer,
    truth: Iterable[str | tuple[str, str]],
    *paths: str | Path,
    title: str | None = None,
    dpi: int = 150,
    adapts: bool = False,
    aspect: float = ASPECT,
) -> None:
    """Write the comparison to files, by their endings: .png, .svg (with text as text), .pdf.

    Parameters
    ----------
    answer, truth, title
        As for `draw_comparison`.
    *paths
        Files to write.
    dpi
        Dots per inch, for files made of pixels.
    adapts
        Whether an SVG file is dark where its reader prefers that.
    aspect
        Width over height to aim at.
    """
    _scene(answer, truth, title, aspect).save(paths, dpi, adapts)


def _scene(answer: Answer, truth: Iterable[str | tuple[str, str]], title: str | None, aspect: float) -> Scene:
    if isinstance(truth, str) or not isinstance(truth, Iterable):
        raise GraphError(f"Expected the true edges as a list such as ['cause -> effect'], got {shown(truth)}.")
    true = {parse_edge(edge) for edge in truth}
    if unknown := sorted({name for edge in true for name in edge} - set(answer.names)):
        raise GraphError(f"The truth has {listed(unknown)}, which the answer does not have.")
    found = {(edge.source, edge.target) for edge in answer.edges}
    differences = edge_differences(true, found)
    place = {name: number for number, name in enumerate(answer.names)}
    adjacency = np.zeros((len(place), len(place)), dtype=bool)
    for source, target in true:
        adjacency[place[source], place[target]] = True
    adjacency = ensure_dag(adjacency)
    edges = {(place[source], place[target]): "right" for source, target in true}
    for verdict in ("missing", "reversed"):
        edges |= {(place[source], place[target]): verdict for source, target in differences[verdict]}
    strokes = {pair: VERDICTS[verdict].stroke for pair, verdict in edges.items()}
    for source, target in differences["extra"]:
        pair, stroke = (place[source], place[target]), VERDICTS["extra"].stroke
        if transitive_closure(adjacency)[pair[::-1]]:  # against the truth: drawn from the effect up to its cause
            pair, stroke = pair[::-1], replace(stroke, head="above")
        adjacency[pair], edges[pair], strokes[pair] = True, "extra", stroke
    boxes = Boxes.of(answer.names, adjacency)
    layout = layered_layout(adjacency, boxes.widths, boxes.height, aspect=aspect, **gaps_for(len(place)))
    depth = list(VERDICTS)
    routes = sorted(layout.routes, key=lambda route: depth.index(edges[route.source, route.target]))
    linked = {variable for pair in edges for variable in pair}
    counts = {verdict: list(edges.values()).count(verdict) for verdict in ("right", "reversed", "missing", "extra")}
    if title is None:
        title = (
            f"{counted(len(answer.names), 'variable')}, {counts['right']} of {counted(len(true), 'true edge')} found"
        )
    samples = [
        (VERDICTS[verdict].stroke, f"{VERDICTS[verdict].label} ({count})") for verdict, count in counts.items() if count
    ]
    return Scene(
        boxes,
        [BOX_STYLES["linked" if variable in linked else "lonely"] for variable in range(len(place))],
        layout,
        [(route, strokes[route.source, route.target]) for route in routes],
        [],
        title,
        legend_in_rows(samples, layout.width),
    )
