"""Pictures of an answer with matplotlib: the causal graph in layers, the graph compared with a known truth, and the
edge probabilities as a heat map.

In a graph, wide dark lines are probable edges and thin light ones improbable. A filled arrowhead shows a strong
preference for a direction, an open one a moderate preference, a dashed line with an open head a weak one. A dashed arc
with heads at both ends is a hidden common cause. If only the most probable edges are drawn, "+3" at a box counts its
edges that are not, and a dashed box has edges of which none is drawn.

Names in letters that no installed font has stay as they are in SVG, which uses the reader's fonts; elsewhere they are
replaced by the number of the column.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from causal_arrow.discovery.answer import Answer, DirectedEdge
from causal_arrow.discovery.pictures.scene import (
    BOX_STYLES,
    DASHED,
    EDGE_COLOR,
    HIDDEN_COLOR,
    MISSING_COLOR,
    REQUIRED_COLOR,
    WRONG_COLOR,
    Boxes,
    Labels,
    Sample,
    Scene,
    Stroke,
    arc_between,
    legend_in_rows,
    save_figure,
)
from causal_arrow.errors import ConfigurationError, GraphError
from causal_arrow.graphs.dag import ensure_dag, transitive_closure
from causal_arrow.graphs.knowledge import parse_edge
from causal_arrow.graphs.layout import Layout
from causal_arrow.graphs.metrics import edge_differences
from causal_arrow.text import counted, listed, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_EDGES = 120  # the most probable: a picture of more cannot be read

WIDTH_RANGE = (0.8, 2.4)  # lines of probability 0 and 1
ALPHA_RANGE = (0.25, 0.95)
VISIBLE_DIFFERENCE = 0.2  # probabilities closer than this look alike: one line for their range in the legend

DIRECTIONS: dict[str, tuple[Any, bool]] = {"strong": ("-", True), "moderate": ("-", False), "weak": (DASHED, False)}
"""Looks of the strengths of a preference: the line, and whether the head is filled."""


def draw_graph(answer: Answer, ax: Axes | None = None, *, max_edges: int = MAX_EDGES, title: str | None = None) -> Axes:
    """Draw the causal graph, causes on top; the most probable `max_edges` edges if there are more.

    Without `ax` a pyplot figure of the right size is made; in an `ax` of the caller's the picture is scaled to fit.
    """
    return _scene(answer, max_edges, title).draw(ax)


def save_graph(
    answer: Answer,
    *paths: str | Path,
    max_edges: int = MAX_EDGES,
    title: str | None = None,
    dpi: int = 150,
    adapts: bool = False,
) -> None:
    """Write the picture of the graph to files, by their endings: .png, .svg (with text as text), .pdf.

    With `adapts`, an SVG file is dark where its reader prefers that.
    """
    _scene(answer, max_edges, title).save(paths, dpi, adapts)


def layout_of(answer: Answer, max_edges: int = MAX_EDGES) -> Layout:
    """The layout of the variables and edges of an answer."""
    return _scene(answer, max_edges).boxes.layout


def _scene(answer: Answer, max_edges: int, title: str | None = None) -> Scene:
    import matplotlib as mpl

    if max_edges < 1:
        raise ConfigurationError(f"Expected one edge or more to draw, got {max_edges}.")
    fonts = repr([mpl.rcParams["font.family"], mpl.rcParams["font.sans-serif"]])
    scene = _scene_in_fonts(answer, max_edges, fonts)
    return scene if title is None else replace(scene, title=title)


@lru_cache(maxsize=1)  # graph.png, graph.svg and DAGitty's text share a layout
def _scene_in_fonts(answer: Answer, max_edges: int, fonts: str) -> Scene:
    index = {name: number for number, name in enumerate(answer.names)}
    edges = {(index[edge.source], index[edge.target]): edge for edge in answer.edges[:max_edges]}
    hidden = answer.hidden_causes[:max_edges]
    left_out = Counter(name for edge in answer.edges[max_edges:] for name in (edge.source, edge.target))
    undrawn = [left_out[name] for name in answer.names]
    linked = {variable for pair in edges for variable in pair}
    kinds = ["linked" if i in linked else "hidden" if count else "lonely" for i, count in enumerate(undrawn)]
    boxes = Boxes.of(answer.names, _adjacency_of(edges, len(index)))
    routes = {(route.source, route.target): route for route in boxes.layout.routes}
    strokes = {pair: _stroke(edge.probability, edge.direction, edge.required) for pair, edge in edges.items()}
    samples = _samples(list(edges.values()), len(hidden), Counter(kinds), any(undrawn))
    return Scene(
        boxes,
        [BOX_STYLES[kind] for kind in kinds],
        [(routes[pair], strokes[pair]) for pair in reversed(edges)],  # the most probable on top
        [(arc_between(boxes, index[pair.first], index[pair.second]), _arc_stroke(pair.probability)) for pair in hidden],
        _title(answer, len(edges), len(hidden)),
        legend_in_rows(samples, boxes.layout.width),
        undrawn,
    )


def _title(answer: Answer, drawn: int, arcs: int) -> str:
    variables, edges, hidden = counted(len(answer.names), "variable"), len(answer.edges), len(answer.hidden_causes)
    title = f"{variables}, {counted(edges, 'edge')}"
    if drawn < edges:
        title = f"{variables}, the {drawn} most probable of {edges} edges"
    if hidden:
        title += f", {counted(hidden, 'pair')} with a hidden common cause"
        title += f" ({arcs} drawn)" if arcs < hidden else ""
    return title


def _adjacency_of(edges: Iterable[tuple[int, int]], variables: int) -> NDArray[np.bool_]:
    adjacency = np.zeros((variables, variables), dtype=bool)
    for pair in edges:
        adjacency[pair] = True
    return adjacency


def _stroke(probability: float, direction: str, required: bool = False) -> Stroke:
    """Width and darkness by the probability of an edge, dashes and head by the preference for its direction."""
    color = REQUIRED_COLOR if required else EDGE_COLOR
    line, filled = DIRECTIONS[direction]
    width, alpha = _width_and_alpha(probability)
    return Stroke(color, width, alpha, line, filled, head_size=0.85 + 0.3 * probability)


def _arc_stroke(probability: float) -> Stroke:
    width, alpha = _width_and_alpha(probability)
    return Stroke(HIDDEN_COLOR, 0.8 * width, alpha, DASHED, head="both")


def _width_and_alpha(probability: float) -> tuple[float, float]:
    width, alpha = (low + (high - low) * probability for low, high in (WIDTH_RANGE, ALPHA_RANGE))
    return width, alpha


# The legend


def _samples(edges: Sequence[DirectedEdge], arcs: int, kinds: Counter[str], left_out: bool) -> list[tuple[Sample, str]]:
    """Samples of what occurs in the picture."""
    samples: list[tuple[Sample, str]] = []
    if found := [edge for edge in edges if not edge.required]:
        low, high = (extreme(edge.probability for edge in found) for extreme in (min, max))
        ends = {f"{low:.2f}": low, f"{high:.2f}": high}
        if high - low <= VISIBLE_DIFFERENCE:
            ends = {" to ".join(ends): low}
        for words, probability in ends.items():
            samples.append((replace(_stroke(probability, "strong"), head="none"), f"probability {words}"))
    occurring = {edge.direction for edge in found}
    samples += [(_stroke(0.9, name), f"direction: {name}") for name in DIRECTIONS if name in occurring]
    if len(found) < len(edges):
        samples.append((_stroke(0.9, "strong", required=True), "required by knowledge"))
    if arcs:
        samples.append((_arc_stroke(0.9), "hidden common cause"))
    if left_out:
        samples.append(("+2", "edges of a variable that are not drawn"))
        for kind, label in (("hidden", "has edges, none drawn"), ("lonely", "has no edges")):
            if kinds[kind]:
                samples.append((BOX_STYLES[kind], f"{label} ({counted(kinds[kind], 'variable')})"))
    return samples


# Heat map


def draw_probabilities(answer: Answer, ax: Axes | None = None) -> Axes:
    """Draw the edge probabilities as a heat map, both axes along the causal order.

    A white dot with a dark ring marks an edge of the graph.
    """
    if ax is None:
        import matplotlib.pyplot as plt

        ax = plt.figure(figsize=_inches(answer), layout="constrained").add_subplot()
    labels = _labels(answer)
    _paint(answer, ax, labels.safe, labels.families)
    return ax


def save_probabilities(answer: Answer, *paths: str | Path, dpi: int = 150, adapts: bool = False) -> None:
    """Write the heat map to files, by their endings: .png, .svg (with text as text), .pdf.

    With `adapts`, an SVG file is dark where its reader prefers that.
    """
    from matplotlib.figure import Figure

    labels = _labels(answer)
    for names, files in labels.for_files(paths):
        figure = Figure(figsize=_inches(answer), layout="constrained")
        _paint(answer, figure.add_subplot(), names, labels.families)
        save_figure(figure, files, dpi, adapts)


def _labels(answer: Answer) -> Labels:
    return Labels.of(answer.names, lines=1, length=20)


def _inches(answer: Answer) -> tuple[float, float]:
    side = min(14.0, max(4.5, 2.0 + 0.2 * len(answer.names)))
    return side + 0.8, side


def _paint(answer: Answer, ax: Axes, labels: Sequence[str], families: Sequence[str]) -> None:
    from matplotlib.lines import Line2D

    order = answer.decoding.order
    names = [labels[variable] for variable in order]
    image = ax.imshow(answer.edge_probabilities[np.ix_(order, order)], cmap="Blues", vmin=0, vmax=1)
    causes, effects = np.nonzero(answer.adjacency[np.ix_(order, order)])
    cell = 72 * 0.75 * _inches(answer)[1] / len(order)  # points, roughly
    ax.scatter(effects, causes, s=(0.22 * cell) ** 2, color="white", edgecolors=EDGE_COLOR, linewidths=0.05 * cell)
    font: Any = {"fontsize": max(5.0, min(10.0, 0.75 * cell)), "fontfamily": list(families), "parse_math": False}
    ax.xaxis.set_ticks(range(len(order)), names, rotation=90, **font)
    ax.yaxis.set_ticks(range(len(order)), names, rotation=0, **font)
    ax.tick_params(length=0)
    ax.xaxis.tick_top()
    ax.xaxis.set_label_position("top")
    ax.set_xlabel("effect")
    ax.set_ylabel("cause")
    dot = Line2D([], [], marker="o", linestyle="none", markerfacecolor="white", markeredgecolor=EDGE_COLOR)
    below: Any = {"loc": "upper left", "bbox_to_anchor": (0, -0.01), "frameon": False, "handletextpad": 0.2}
    ax.legend([dot], ["edge of the graph"], **below)
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.6, aspect=30, label="probability of cause → effect")
    bar.outline.set_visible(False)
    ax.spines[:].set_visible(False)


# Comparison with a truth


Edge = tuple[str, str]
Truth = Iterable[str | Edge]

DOTTED = (0, (1.2, 1.8))
LONG_DASHES = (0, (7, 2))
VERDICTS = {
    "missing": Stroke(MISSING_COLOR, 1.5, 0.95, DOTTED, False, head_size=0.9),
    "right": Stroke(EDGE_COLOR, 1.8, 0.95),
    "undirected": Stroke(EDGE_COLOR, 1.8, 0.95, head="none"),
    "extra and undirected": Stroke(WRONG_COLOR, 1.5, 0.95, head="none", crossed_out=True),
    "extra": Stroke(WRONG_COLOR, 1.5, 0.95, "-", False, crossed_out=True),
    "reversed": Stroke(WRONG_COLOR, 1.8, 0.95, LONG_DASHES, head="above"),
}
"""Looks of an edge of two graphs. Later ones lie on top."""
WORDS = {
    "missing": "missing: only in the truth",
    "right": "right",
    "extra": "extra: only in the answer",
    "reversed": "reversed: the truth points down",
}
"""Words of the legend."""


def draw_comparison(answer: Answer, truth: Truth, ax: Axes | None = None, *, title: str | None = None) -> Axes:
    """Draw which edges of an answer are right, reversed, missing or extra, given the true edges. Causes are on top.

    The true edges are pairs of a cause and its effect, or text such as "smoking -> cancer". Hidden common causes are
    left out. Without `ax` a pyplot figure of the right size is made.
    """
    return _comparison(answer, truth, title).draw(ax)


def save_comparison(
    answer: Answer,
    truth: Truth,
    *paths: str | Path,
    title: str | None = None,
    dpi: int = 150,
    adapts: bool = False,
) -> None:
    """Write the comparison to files, by their endings: .png, .svg (with text as text), .pdf.

    With `adapts`, an SVG file is dark where its reader prefers that.
    """
    _comparison(answer, truth, title).save(paths, dpi, adapts)


def save_two_graphs(
    names: Sequence[str], ours: Iterable[Edge], theirs: Iterable[Edge], title: str, *paths: str | Path
) -> None:
    """Write an answer and the graph of another method as one picture; causes are on top by the answer.

    An edge that the other method has in both directions counts as found, and has no head.
    """
    found, other = set(ours), set(theirs)
    words = {
        "missing": "only in the answer",
        "right": "in both",
        "undirected": f"undirected in {title}: the answer points down",
        "extra": f"only in {title}",
        "extra and undirected": f"only in {title}, undirected",
        "reversed": f"reversed in {title}: the answer points down",
    }
    heading = f"Arrow and {title}: {len(found & other)} of {counted(len(found), 'edge')}"
    _two_graphs(names, found, other, words, heading).save(paths)


def _comparison(answer: Answer, truth: Truth, title: str | None) -> Scene:
    if isinstance(truth, str) or not isinstance(truth, Iterable):
        raise GraphError(f"Expected the true edges as a list such as ['cause -> effect'], got {shown(truth)}.")
    true = {parse_edge(edge) for edge in truth}
    if unknown := sorted({name for edge in true for name in edge} - set(answer.names)):
        raise GraphError(f"The truth has {listed(unknown)}, which the answer does not have.")
    found = {(edge.source, edge.target) for edge in answer.edges}
    if title is None:
        variables, truths = counted(len(answer.names), "variable"), counted(len(true), "true edge")
        title = f"{variables}, {len(true & found)} of {truths} found"
    return _two_graphs(answer.names, true, found, WORDS, title)


def _two_graphs(names: Sequence[str], true: set[Edge], found: set[Edge], words: Mapping[str, str], title: str) -> Scene:
    """The first graph, which has no cycle, from top to bottom, and what the second has in other ways."""
    differences = edge_differences(true, found)
    index = {name: number for number, name in enumerate(names)}
    edges = {(index[source], index[target]): "right" for source, target in true}
    adjacency = ensure_dag(_adjacency_of(edges, len(index)))
    for verdict, difference in (("missing", "missing"), ("reversed", "reversed"), ("undirected", "directed_in_one")):
        edges |= {(index[source], index[target]): verdict for source, target in differences[difference]}
    strokes = {pair: VERDICTS[verdict] for pair, verdict in edges.items()}
    for source, target in differences["extra"]:
        is_undirected = (target, source) in found
        if is_undirected and target < source:
            continue
        verdict = "extra and undirected" if is_undirected else "extra"
        pair, stroke = (index[source], index[target]), VERDICTS[verdict]
        if transitive_closure(adjacency)[pair[::-1]]:  # against the truth: drawn from the effect up to its cause
            pair, stroke = pair[::-1], stroke if is_undirected else replace(stroke, head="above")
        adjacency[pair], edges[pair], strokes[pair] = True, verdict, stroke
    boxes = Boxes.of(names, adjacency)
    depth = list(VERDICTS)
    routes = sorted(boxes.layout.routes, key=lambda route: depth.index(edges[route.source, route.target]))
    linked = {variable for pair in edges for variable in pair}
    counts = Counter(edges.values())
    samples = [
        (VERDICTS[verdict], f"{words[verdict]} ({counts[verdict]})")
        for verdict in ("right", "undirected", "reversed", "missing", "extra", "extra and undirected")
        if counts[verdict]
    ]
    return Scene(
        boxes,
        [BOX_STYLES["linked" if variable in linked else "lonely"] for variable in range(len(index))],
        [(route, strokes[route.source, route.target]) for route in routes],
        [],
        title,
        legend_in_rows(samples, boxes.layout.width),
    )
