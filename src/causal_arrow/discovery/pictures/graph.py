"""The causal graph of an answer, causes on top: `draw_graph`, `save_graph`."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from causal_arrow.discovery.answer import Answer, DirectedEdge, HiddenCause
from causal_arrow.discovery.pictures.scene import Boxes, Sample, Scene, gaps_for, legend_in_rows
from causal_arrow.discovery.pictures.strokes import (
    BOX_STYLES,
    DASHED,
    EDGE_COLOR,
    HIDDEN_COLOR,
    REQUIRED_COLOR,
    Points,
    Stroke,
    arc_between,
)
from causal_arrow.errors import ConfigurationError
from causal_arrow.graphs.layout import Layout, layered_layout
from causal_arrow.text import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_EDGES = 120
"""Edges drawn unless asked for more, the most probable first: beyond that a picture tells nothing."""

WIDTH_RANGE = (0.8, 2.4)  # lines of probability 0 and 1
ALPHA_RANGE = (0.25, 0.95)


@dataclass(frozen=True)
class DirectionStyle:
    """How the certainty of a direction looks."""

    line: Any
    filled_head: bool
    label: str


DIRECTION_STYLES = {
    "strong": DirectionStyle("-", True, "direction: strong"),
    "moderate": DirectionStyle("-", False, "direction: moderate"),
    "weak": DirectionStyle(DASHED, False, "direction: weak"),
}


def draw_graph(
    answer: Answer, ax: Axes | None = None, *, most_edges: int = MOST_EDGES, title: str | None = None
) -> Axes:
    """The causal graph, causes on top; the strongest `most_edges` edges if there are more.

    Without `ax` a pyplot figure of the right size is made; in an `ax` of the caller's the picture is scaled to fit.
    """
    return _scene(answer, most_edges, title).draw(ax)


def save_graph(
    answer: Answer,
    *paths: str | Path,
    most_edges: int = MOST_EDGES,
    title: str | None = None,
    dpi: int = 150,
    adapts: bool = False,
) -> None:
    """Write the picture of the graph to files, by their endings: .png, .svg (with text as text), .pdf.

    With `adapts`, an SVG file is dark where its reader prefers that.
    """
    _scene(answer, most_edges, title).save(paths, dpi, adapts)


def layout_of(answer: Answer, most_edges: int = MOST_EDGES) -> Layout:
    """Where the picture has the variables and edges of an answer; worked out once for each answer."""
    return _drawing(answer, most_edges).layout


@dataclass(frozen=True, eq=False)
class _Drawing:
    """Boxes and routes of an answer."""

    boxes: Boxes
    layout: Layout
    edges: dict[tuple[int, int], DirectedEdge]  # by places, the most probable first
    undrawn: list[int]  # of each variable, how many edges are not drawn
    arcs: list[tuple[HiddenCause, Points]]  # hidden common causes, and points along their arcs  (M, 2)


def _scene(answer: Answer, most_edges: int, title: str | None) -> Scene:
    drawing = _drawing(answer, most_edges)
    if title is None:
        variables = counted(len(answer.names), "variable")
        title = f"{variables}, {counted(len(answer.edges), 'edge')}"
        if len(drawing.edges) < len(answer.edges):
            title = f"{variables}, the {len(drawing.edges)} most probable of {len(answer.edges)} edges"
        if answer.hidden_causes:
            title += f", {counted(len(answer.hidden_causes), 'pair')} with a hidden common cause"
            if len(drawing.arcs) < len(answer.hidden_causes):
                title += f" ({len(drawing.arcs)} drawn)"
    routes = {(route.source, route.target): route for route in drawing.layout.routes}
    linked = {variable for pair in drawing.edges for variable in pair}
    return Scene(
        drawing.boxes,
        [
            BOX_STYLES["linked" if variable in linked else "hidden" if undrawn else "lonely"]
            for variable, undrawn in enumerate(drawing.undrawn)
        ],
        drawing.layout,
        [(routes[pair], _stroke(edge)) for pair, edge in reversed(drawing.edges.items())],  # the strongest on top
        [(points, _arc_stroke(shared)) for shared, points in drawing.arcs],
        title,
        legend_in_rows(_samples(drawing), drawing.layout.width),
        drawing.undrawn,
    )


_DRAWINGS: weakref.WeakKeyDictionary[Answer, dict[tuple[int, str], _Drawing]] = weakref.WeakKeyDictionary()
"""By answer, then by what else a drawing depends on. A graph.png, a graph.svg and DAGitty's text share one layout."""


def _drawing(answer: Answer, most_edges: int) -> _Drawing:
    import matplotlib as mpl

    if most_edges < 1:
        raise ConfigurationError(f"Expected one edge or more to draw, got {most_edges}.")
    known = _DRAWINGS.setdefault(answer, {})
    key = most_edges, repr([mpl.rcParams["font.family"], mpl.rcParams["font.sans-serif"]])
    if key not in known:
        known[key] = _drawn(answer, most_edges)
    return known[key]


def _drawn(answer: Answer, most_edges: int) -> _Drawing:
    place = {name: number for number, name in enumerate(answer.names)}
    edges = {(place[edge.source], place[edge.target]): edge for edge in answer.edges[:most_edges]}
    adjacency = np.zeros((len(place), len(place)), dtype=bool)
    for pair in edges:
        adjacency[pair] = True
    undrawn = Counter(name for edge in answer.edges[most_edges:] for name in (edge.source, edge.target))
    boxes = Boxes.of(answer.names, adjacency)
    layout = layered_layout(adjacency, boxes.widths, boxes.height, **gaps_for(len(place)))
    arcs = []
    for shared in answer.hidden_causes[:most_edges]:
        ends = place[shared.first], place[shared.second]
        arcs.append((shared, arc_between(layout, boxes.widths, boxes.height, *ends)))
    return _Drawing(boxes, layout, edges, [undrawn[name] for name in answer.names], arcs)


def _stroke(edge: DirectedEdge) -> Stroke:
    """Width and darkness by the probability of an edge, dashes and head by the certainty of its direction."""
    style = DIRECTION_STYLES[edge.direction]
    width, alpha = _width_and_alpha(edge.probability)
    return Stroke(
        REQUIRED_COLOR if edge.required else EDGE_COLOR,
        width,
        alpha,
        style.line,
        style.filled_head,
        head_size=0.85 + 0.3 * edge.probability,
    )


def _arc_stroke(shared: HiddenCause) -> Stroke:
    width, alpha = _width_and_alpha(shared.probability)
    return Stroke(HIDDEN_COLOR, 0.8 * width, alpha, DASHED, head="both")


def _width_and_alpha(probability: float) -> tuple[float, float]:
    width, alpha = (low + (high - low) * probability for low, high in (WIDTH_RANGE, ALPHA_RANGE))
    return width, alpha


# The legend


def _samples(drawing: _Drawing) -> list[tuple[Sample, str]]:
    """Samples of what occurs in the picture and nothing else."""
    arcs = [(_arc_stroke(HiddenCause("", "", 0.9)), "hidden common cause")] if drawing.arcs else []
    return [*_edge_samples(list(drawing.edges.values())), *arcs, *_box_samples(drawing)]


def _edge_samples(edges: Sequence[DirectedEdge]) -> list[tuple[Sample, str]]:
    samples: list[tuple[Sample, str]] = []
    found = [edge for edge in edges if not edge.required]
    if found:
        ends = sorted({f"{extreme(edge.probability for edge in found):.2f}" for extreme in (min, max)})
        samples += [(replace(_sample(float(end)), head="none"), f"probability {end}") for end in ends]
    occurring = {edge.direction for edge in found}
    certainty = {"strong": 1.0, "moderate": 0.8, "weak": 0.5}
    samples += [
        (_sample(0.9, certainty[name]), style.label) for name, style in DIRECTION_STYLES.items() if name in occurring
    ]
    if len(found) < len(edges):
        samples.append((_sample(0.9, required=True), "required by knowledge"))
    return samples


def _box_samples(drawing: _Drawing) -> list[tuple[Sample, str]]:
    """What tells a variable whose edges are not drawn from one that has none."""
    if not any(drawing.undrawn):
        return []
    linked = {variable for pair in drawing.edges for variable in pair}
    others = [hidden for variable, hidden in enumerate(drawing.undrawn) if variable not in linked]
    all_hidden, lonely = sum(hidden > 0 for hidden in others), sum(hidden == 0 for hidden in others)
    samples: list[tuple[Sample, str]] = [("+2", "edges of a variable that are not drawn")]
    if all_hidden:
        samples.append((BOX_STYLES["hidden"], f"has edges, none drawn ({counted(all_hidden, 'variable')})"))
    if lonely:
        samples.append((BOX_STYLES["lonely"], f"has no edges ({counted(lonely, 'variable')})"))
    return samples


def _sample(probability: float, direction: float = 1.0, required: bool = False) -> Stroke:
    return _stroke(DirectedEdge("", "", probability, 1.0, direction, 0.0, False, required))
