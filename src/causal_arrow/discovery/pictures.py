"""Pictures of an answer, with matplotlib alone: the causal graph in layers, and its edge probabilities as a heat map.

In a graph, wide dark lines are probable edges and thin light ones less so. A filled arrowhead is a direction that the
network strongly prefers, an open one a moderate preference, and a dashed line with an open head a weak one. A dashed
arc with heads at both ends is a hidden common cause. Where only the most probable edges are drawn, "+3" at a box says
how many of its edges are not, and a dashed box that none of them is.

Names in letters that no installed font has stay as they are in SVG, where the reader's fonts count; elsewhere the
number of the column stands for them.
"""

from __future__ import annotations

import math
import warnings
import weakref
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from causal_arrow.discovery.answer import Answer, DirectedEdge, HiddenCause
from causal_arrow.discovery.labels import FONT_SIZE, LINE_LENGTH, MOST_LINES, Labels, text_size
from causal_arrow.errors import ConfigurationError
from causal_arrow.graphs.layout import Layout, Route, layered_layout
from causal_arrow.text import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_EDGES = 120
"""Edges drawn unless asked for more, the most probable first: beyond that a picture tells nothing."""

# All lengths are points, 1/72 inch, at the natural size of the picture.
PADDING = (8.0, 5.0)
MARGIN = 12.0
COUNT_FONT = 5.5
HEAD_LENGTH, HEAD_WIDTH = 8.0, 6.5
WIDTH_RANGE = (0.8, 2.4)  # lines of probability 0 and 1
ALPHA_RANGE = (0.25, 0.95)

EDGE_COLOR = "#1f3a5f"
REQUIRED_COLOR = "#b3541e"
HIDDEN_COLOR = "#7b3f8c"
BOX_COLOR, BOX_BORDER, LONELY_BORDER = "#f4f6fa", "#5b6b82", "#c3cad6"
TEXT_COLOR = "#14202e"
QUIET_COLOR = "#5b6b82"


@dataclass(frozen=True)
class DirectionStyle:
    """How the certainty of a direction looks."""

    line: Any
    filled_head: bool
    label: str


DIRECTION_STYLES = {
    "strong": DirectionStyle("-", True, "direction: strong"),
    "moderate": DirectionStyle("-", False, "direction: moderate"),
    "weak": DirectionStyle((0, (4, 2.5)), False, "direction: weak"),
}


# The graph


def draw_graph(
    answer: Answer, ax: Axes | None = None, *, most_edges: int = MOST_EDGES, title: str | None = None
) -> Axes:
    """The causal graph, causes on top; the strongest `most_edges` edges if there are more.

    Without `ax` a pyplot figure of the right size is made; in an `ax` of the caller's the picture is scaled to fit.
    """
    plan = _plan(answer, most_edges, title)
    if ax is None:
        import matplotlib.pyplot as plt

        ax = plt.figure(figsize=plan.inches).add_axes((0, 0, 1, 1))
    _paint(plan, ax, plan.labels.safe)
    return ax


def save_graph(
    answer: Answer, *paths: str | Path, most_edges: int = MOST_EDGES, title: str | None = None, dpi: int = 150
) -> None:
    """Write the picture of the graph to files, by their endings: .png, .svg (with text as text), .pdf."""
    from matplotlib.figure import Figure

    plan = _plan(answer, most_edges, title)
    for labels, files in plan.labels.for_files(paths):
        figure = Figure(figsize=plan.inches)
        _paint(plan, figure.add_axes((0, 0, 1, 1)), labels)
        _save(figure, files, dpi)


def layout_of(answer: Answer, most_edges: int = MOST_EDGES) -> Layout:
    """Where the picture has the variables and edges of an answer; worked out once for each answer."""
    return _drawing(answer, most_edges).layout


@dataclass(frozen=True, eq=False)
class _Drawing:
    """Boxes and routes of an answer, with lengths in points. The origin is the lower left corner of the layout."""

    labels: Labels
    widths: list[float]
    height: float
    layout: Layout
    edges: dict[tuple[int, int], DirectedEdge]  # by places, the most probable first
    hidden: list[int]  # of each variable, how many edges are not drawn
    arcs: list[tuple[HiddenCause, NDArray[np.float64]]]  # hidden common causes, and points along their arcs  (M, 2)


@dataclass(frozen=True, eq=False)
class _Plan(_Drawing):
    """All that is to be painted: the drawing, the words above it and the legend below."""

    title: str
    legend: list[_LegendEntry]

    @property
    def frame(self) -> tuple[float, float, float, float]:
        """Left, right, bottom and top of the picture."""
        wide = max(
            self.layout.width,
            1.15 * text_size(self.title, FONT_SIZE + 1)[0],  # which is bold
            max((entry.x + entry.width for entry in self.legend), default=0.0),
        )
        aside = (wide - self.layout.width) / 2
        # Arcs may bulge beyond the boxes.
        points = np.concatenate([np.zeros((1, 2)), *(points for _, points in self.arcs)])
        beyond = max(0.0, -points[:, 0].min(), points[:, 0].max() - self.layout.width)
        above = max(0.0, points[:, 1].max() - self.layout.height)
        below = max(0.0, -points[:, 1].min())
        aside = max(aside, beyond)
        footer = max((entry.row + 1 for entry in self.legend), default=0) * LEGEND_LINE
        return (
            -aside - MARGIN,
            self.layout.width + aside + MARGIN,
            -below - footer - MARGIN - (MARGIN if footer else 0),
            self.layout.height + above + 3 * MARGIN + FONT_SIZE,
        )

    @property
    def lowest(self) -> float:
        """The height of the lowest point of the drawing, 0 unless an arc hangs below the boxes."""
        return min([0.0, *(float(points[:, 1].min()) for _, points in self.arcs)])

    @property
    def inches(self) -> tuple[float, float]:
        """The size at which text has the size of text."""
        left, right, bottom, top = self.frame
        return (right - left) / 72, (top - bottom) / 72


def _plan(answer: Answer, most_edges: int, title: str | None) -> _Plan:
    drawing = _drawing(answer, most_edges)
    if title is None:
        variables = counted(len(answer.names), "variable")
        title = f"{variables}, {counted(len(answer.edges), 'edge')}"
        if len(drawing.edges) < len(answer.edges):
            title = f"{variables}, the {len(drawing.edges)} most probable of {len(answer.edges)} edges"
        if answer.hidden_causes:
            title += f", {counted(len(answer.hidden_causes), 'hidden common cause')}"
            if len(drawing.arcs) < len(answer.hidden_causes):
                title += f" ({len(drawing.arcs)} drawn)"
    return _Plan(**vars(drawing), title=title, legend=_legend(drawing))


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
    labels = Labels.of(answer.names, lines=MOST_LINES, length=LINE_LENGTH)
    sizes = [
        np.max([labels.size(full), labels.size(safe)], axis=0)
        for full, safe in zip(labels.full, labels.safe, strict=True)
    ]
    widths = [float(width) + 2 * PADDING[0] for width, _ in sizes]
    height = max(float(tall) for _, tall in sizes) + 2 * PADDING[1]
    layout = layered_layout(adjacency, widths, height)
    arcs = []
    for shared in answer.hidden_causes[:most_edges]:
        ends = place[shared.first], place[shared.second]
        arcs.append((shared, arc_between(layout, widths, height, *ends)))
    return _Drawing(labels, widths, height, layout, edges, [undrawn[name] for name in answer.names], arcs)


def _paint(plan: _Plan, ax: Axes, labels: Sequence[str]) -> None:
    left, right, bottom, top = plan.frame
    ax.set_axis_off()
    ax.set_aspect("equal")
    ax.set_xlim(left, right)
    ax.set_ylim(bottom, top)
    # Widths of lines and letters are in points of the page, everything else in units of the axes.
    page = ax.get_figure(root=True)
    assert page is not None
    box = ax.get_window_extent()
    scale = min(box.width / (right - left), box.height / (top - bottom)) * 72 / page.dpi
    routes = {(route.source, route.target): route for route in plan.layout.routes}
    for depth, (pair, edge) in enumerate(reversed(plan.edges.items())):  # the strongest on top of the others
        _paint_edge(ax, edge, curve_of(routes[pair]), scale, zorder=1 + depth / len(plan.edges))
    for shared, points in plan.arcs:
        _paint_arc(ax, shared.probability, points, scale)
    linked = {variable for pair in plan.edges for variable in pair}
    for variable, (label, center, width) in enumerate(zip(labels, plan.layout.centers, plan.widths, strict=True)):
        style = BOX_STYLES["linked" if variable in linked else "hidden" if plan.hidden[variable] else "lonely"]
        size = (width, plan.height)
        _paint_box(ax, center, size, style, scale)
        ax.text(
            center[0],
            center[1],
            label,
            ha="center",
            va="center_baseline" if "\n" not in label else "center",
            zorder=4,
            fontsize=FONT_SIZE * scale,
            fontfamily=plan.labels.families,
            color=style.text,
            parse_math=False,
            linespacing=1.05,
        )
        if plan.hidden[variable]:
            _paint_count(ax, f"+{plan.hidden[variable]}", center[0] + width / 2, center[1] + plan.height / 2, scale)
    middle = (left + right) / 2
    ax.text(
        middle,
        top - MARGIN,
        plan.title,
        ha="center",
        va="top",
        color=TEXT_COLOR,
        fontsize=(FONT_SIZE + 1) * scale,
        weight="bold",
        parse_math=False,
    )
    start = middle - max((entry.x + entry.width for entry in plan.legend), default=0.0) / 2
    for entry in plan.legend:
        _paint_legend_entry(ax, entry, start, plan.lowest - 2 * MARGIN - (entry.row + 0.5) * LEGEND_LINE, scale)


@dataclass(frozen=True)
class BoxStyle:
    """How a variable looks."""

    fill: str
    border: str
    line: Any
    text: str


BOX_STYLES = {
    "linked": BoxStyle(BOX_COLOR, BOX_BORDER, "-", TEXT_COLOR),
    "hidden": BoxStyle("white", BOX_BORDER, (0, (3, 2)), TEXT_COLOR),
    "lonely": BoxStyle("white", LONELY_BORDER, "-", QUIET_COLOR),
}
"""A variable with edges in the picture, with edges of which none is drawn, and without edges."""


def _paint_box(
    ax: Axes,
    center: NDArray[np.float64] | tuple[float, float],
    size: tuple[float, float],
    style: BoxStyle,
    scale: float,
) -> None:
    from matplotlib.patches import FancyBboxPatch

    width, height = size
    corner = (center[0] - width / 2, center[1] - height / 2)
    ax.add_patch(
        FancyBboxPatch(
            corner,
            width,
            height,
            boxstyle=f"round,pad=0,rounding_size={height / 4}",
            linewidth=0.9 * scale,
            linestyle=style.line,
            facecolor=style.fill,
            edgecolor=style.border,
            zorder=3,
        )
    )


def _paint_count(ax: Axes, text: str, x: float, y: float, scale: float) -> None:
    """How many edges of a box are not drawn, at its upper right corner."""
    ax.text(
        x,
        y,
        text,
        ha="center",
        va="center",
        zorder=5,
        color=QUIET_COLOR,
        fontsize=COUNT_FONT * scale,
        parse_math=False,
        bbox={"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none"},
    )


# Edges


def curve_of(route: Route) -> NDArray[np.float64]:
    """Control points of the cubic curves through the points of a route, straight down at every point.  (3n + 1, 2)"""
    points = [route.points[0]]
    for (x0, y0), (x1, y1) in pairwise(route.points):
        middle = (y0 + y1) / 2
        points += [(x0, middle), (x1, middle), (x1, y1)]
    return np.array(points)


def _paint_edge(
    ax: Axes, edge: DirectedEdge, curve: NDArray[np.float64], scale: float, zorder: float, head: bool = True
) -> None:
    from matplotlib.patches import PathPatch, Polygon
    from matplotlib.path import Path as Curve

    style = DIRECTION_STYLES[edge.direction]
    color = REQUIRED_COLOR if edge.required else EDGE_COLOR
    width, alpha = (low + (high - low) * edge.probability for low, high in (WIDTH_RANGE, ALPHA_RANGE))
    tip = curve[-1].copy()
    curve = curve.copy()
    curve[-1, 1] += HEAD_LENGTH if head else 0  # the line ends where the head begins, and arrives straight from above
    curve[-2, 1] = max(curve[-2, 1], curve[-1, 1])
    line = Curve(curve, [Curve.MOVETO, *[Curve.CURVE4] * (len(curve) - 1)])
    ax.add_patch(
        PathPatch(
            line,
            fill=False,
            edgecolor=color,
            alpha=alpha,
            linewidth=width * scale,
            linestyle=style.line,
            capstyle="butt",
            zorder=zorder,
        )
    )
    if not head:
        return
    spread = HEAD_WIDTH / 2 * (0.85 + 0.3 * edge.probability)
    base = tip[1] + HEAD_LENGTH
    ax.add_patch(
        Polygon(
            [tip, (tip[0] - spread, base), (tip[0] + spread, base)],
            closed=True,
            alpha=alpha,
            zorder=zorder,
            facecolor=color if style.filled_head else "white",
            edgecolor=color,
            linewidth=0.9 * scale,
            joinstyle="round",
        )
    )


# Hidden common causes

ARC_POINTS = 320
ARC_BULGES = (0.2, -0.2, 0.35, -0.35, 0.55, -0.55, 0.8, -0.8, 1.2, -1.2)  # of the distance between the two
LEAST_BULGE = 12.0


def arc_between(layout: Layout, widths: Sequence[float], height: float, first: int, second: int) -> NDArray[np.float64]:
    """Points of an arc from the border of one box to that of another, around the boxes between them.  (M, 2)"""
    centers = np.asarray(layout.centers, dtype=float)
    start, end = sorted((centers[first], centers[second]), key=tuple)
    halves = np.stack([np.asarray(widths) / 2, np.full(len(widths), height / 2)], axis=1) + 2.0  # (P, 2)
    ends = np.isin(np.arange(len(centers)), [first, second])
    distance = float(np.hypot(*(end - start))) or 1.0
    normal = np.array([start[1] - end[1], end[0] - start[0]]) / distance
    t = np.linspace(0, 1, ARC_POINTS)[:, None]
    best, least = np.stack([start, end]), math.inf
    for bulge in ARC_BULGES:
        control = (start + end) / 2 + 2 * np.sign(bulge) * max(LEAST_BULGE, abs(bulge) * distance) * normal
        points = (1 - t) ** 2 * start + 2 * t * (1 - t) * control + t**2 * end
        inside = (np.abs(points[:, None] - centers) < halves).all(axis=2)  # (M, P)
        free = points[~inside[:, ends].any(axis=1)]
        behind = int(inside[:, ~ends].sum())  # points behind the boxes of others
        too_short = float(np.hypot(*np.diff(free, axis=0).T).sum()) < 4 * HEAD_LENGTH
        cost = behind + (ARC_POINTS if too_short else 0)
        if cost < least and len(free) >= 2:
            best, least = free, cost
    return best


def _paint_arc(ax: Axes, probability: float, points: NDArray[np.float64], scale: float, zorder: float = 2.5) -> None:
    from matplotlib.patches import Polygon

    width, alpha = (low + (high - low) * probability for low, high in (WIDTH_RANGE, ALPHA_RANGE))
    lengths = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(points, axis=0).T))])
    inner = points[(lengths >= HEAD_LENGTH) & (lengths <= lengths[-1] - HEAD_LENGTH)]
    if len(inner) >= 2:
        ax.plot(
            inner[:, 0],
            inner[:, 1],
            color=HIDDEN_COLOR,
            alpha=alpha,
            linewidth=0.8 * width * scale,
            linestyle=(0, (4, 2.5)),
            dash_capstyle="butt",
            zorder=zorder,
        )
    for tip, towards in ((points[0], np.searchsorted(lengths, HEAD_LENGTH)), (points[-1], None)):
        place = int(towards) if towards is not None else int(np.searchsorted(lengths, lengths[-1] - HEAD_LENGTH))
        back = points[min(place, len(points) - 1)] - tip
        size = float(np.hypot(*back)) or 1.0
        back = back / size
        side = np.array([-back[1], back[0]]) * HEAD_WIDTH / 2
        base = tip + HEAD_LENGTH * back
        ax.add_patch(
            Polygon(
                [tip, base + side, base - side],
                closed=True,
                alpha=alpha,
                zorder=zorder,
                facecolor=HIDDEN_COLOR,
                edgecolor=HIDDEN_COLOR,
                linewidth=0.5 * scale,
                joinstyle="round",
            )
        )


# The legend

LEGEND_LINE = 18.0
LEGEND_SAMPLE = 26.0
LEGEND_FONT = 8.0


@dataclass(frozen=True)
class _LegendEntry:
    """A sample and what it means. The sample is an edge, with or without its head, an arc, a box, or a count."""

    sample: DirectedEdge | HiddenCause | BoxStyle | str
    label: str
    x: float
    row: int
    width: float


def _legend(drawing: _Drawing) -> list[_LegendEntry]:
    """Samples of what occurs in the picture and nothing else, in rows that fit it."""
    entries: list[_LegendEntry] = []
    x, row = 0.0, 0
    samples: list[tuple[DirectedEdge | HiddenCause | BoxStyle | str, str]] = [
        *_edge_samples(list(drawing.edges.values())),
        *([(HiddenCause("", "", 0.9), "hidden common cause")] if drawing.arcs else []),
        *_box_samples(drawing),
    ]
    for sample, label in samples:
        width = LEGEND_SAMPLE + 6 + 1.06 * text_size(label, LEGEND_FONT)[0]  # letters on a grid of pixels run wider
        if x and x + width > max(drawing.layout.width, 300.0):
            x, row = 0.0, row + 1
        entries.append(_LegendEntry(sample, label, x, row, width))
        x += width + 16
    return entries


def _edge_samples(edges: Sequence[DirectedEdge]) -> list[tuple[DirectedEdge | BoxStyle | str, str]]:
    samples: list[tuple[DirectedEdge | BoxStyle | str, str]] = []
    found = [edge for edge in edges if not edge.required]
    if found:
        ends = sorted({f"{extreme(edge.probability for edge in found):.2f}" for extreme in (min, max)})
        samples += [(_sample_edge(float(end)), f"probability {end}") for end in ends]
    occurring = {edge.direction for edge in found}
    certainty = {"strong": 1.0, "moderate": 0.8, "weak": 0.5}
    samples += [
        (_sample_edge(0.9, certainty[name]), style.label)
        for name, style in DIRECTION_STYLES.items()
        if name in occurring
    ]
    if len(found) < len(edges):
        samples.append((_sample_edge(0.9, required=True), "required by knowledge"))
    return samples


def _box_samples(drawing: _Drawing) -> list[tuple[DirectedEdge | BoxStyle | str, str]]:
    """What tells a variable whose edges are not drawn from one that has none."""
    if not any(drawing.hidden):
        return []
    linked = {variable for pair in drawing.edges for variable in pair}
    others = [hidden for variable, hidden in enumerate(drawing.hidden) if variable not in linked]
    all_hidden, lonely = sum(hidden > 0 for hidden in others), sum(hidden == 0 for hidden in others)
    samples: list[tuple[DirectedEdge | BoxStyle | str, str]] = [("+2", "edges of a variable that are not drawn")]
    if all_hidden:
        samples.append((BOX_STYLES["hidden"], f"has edges, none drawn ({counted(all_hidden, 'variable')})"))
    if lonely:
        samples.append((BOX_STYLES["lonely"], f"has no edges ({counted(lonely, 'variable')})"))
    return samples


def _sample_edge(probability: float, direction: float = 1.0, required: bool = False) -> DirectedEdge:
    return DirectedEdge("", "", probability, 1.0, direction, 0.0, False, required)


def _paint_legend_entry(ax: Axes, entry: _LegendEntry, start: float, y: float, scale: float) -> None:
    x = start + entry.x
    if isinstance(entry.sample, BoxStyle):
        _paint_box(ax, (x + LEGEND_SAMPLE / 2, y), (LEGEND_SAMPLE, 0.55 * LEGEND_LINE), entry.sample, scale)
    elif isinstance(entry.sample, HiddenCause):
        straight = np.linspace((x, y), (x + LEGEND_SAMPLE, y), 30)
        _paint_arc(ax, entry.sample.probability, straight, scale)
    elif isinstance(entry.sample, str):
        _paint_count(ax, entry.sample, x + LEGEND_SAMPLE / 2, y, scale)
    else:
        _paint_sample_edge(ax, entry.sample, x, y, scale, head=not entry.label.startswith("probability"))
    ax.text(
        x + LEGEND_SAMPLE + 6,
        y,
        entry.label,
        va="center_baseline",
        color=QUIET_COLOR,
        fontsize=LEGEND_FONT * scale,
        parse_math=False,
    )


def _paint_sample_edge(ax: Axes, edge: DirectedEdge, x: float, y: float, scale: float, head: bool) -> None:
    """An ordinary edge, which runs downwards, turned to run to the right."""
    from matplotlib.transforms import Affine2D

    before = len(ax.patches)
    straight = np.array([(0.0, LEGEND_SAMPLE), (0.0, LEGEND_SAMPLE / 2), (0.0, LEGEND_SAMPLE / 2), (0.0, 0.0)])
    _paint_edge(ax, edge, straight, scale, zorder=2, head=head)
    turned = Affine2D().rotate_deg(90).translate(x + LEGEND_SAMPLE, y) + ax.transData
    for patch in ax.patches[before:]:
        patch.set_transform(turned)


# The heat map


def draw_probabilities(answer: Answer, ax: Axes | None = None) -> Axes:
    """Edge probabilities as a heat map, both axes along the causal order; a dot marks the edges of the graph."""
    if ax is None:
        import matplotlib.pyplot as plt

        figure = plt.figure(figsize=_map_inches(answer), layout="constrained")
        ax = figure.add_subplot()
    labels = _map_labels(answer)
    _paint_map(answer, ax, labels.safe, labels.families)
    return ax


def save_probabilities(answer: Answer, *paths: str | Path, dpi: int = 150) -> None:
    """Write the heat map to files, by their endings: .png, .svg (with text as text), .pdf."""
    from matplotlib.figure import Figure

    labels = _map_labels(answer)
    for names, files in labels.for_files(paths):
        figure = Figure(figsize=_map_inches(answer), layout="constrained")
        _paint_map(answer, figure.add_subplot(), names, labels.families)
        _save(figure, files, dpi)


def _map_labels(answer: Answer) -> Labels:
    return Labels.of(answer.names, lines=1, length=20)


def _map_inches(answer: Answer) -> tuple[float, float]:
    side = min(12.0, max(4.5, 2.0 + 0.2 * len(answer.names)))
    return side + 0.8, side


def _paint_map(answer: Answer, ax: Axes, labels: Sequence[str], families: Sequence[str]) -> None:
    order = answer.decoding.order
    names = [labels[variable] for variable in order]
    image = ax.imshow(answer.edge_probabilities[np.ix_(order, order)], cmap="Blues", vmin=0, vmax=1)
    causes, effects = np.nonzero(answer.adjacency[np.ix_(order, order)])
    inches = _map_inches(answer)[1]
    cell = 72 * 0.75 * inches / len(order)  # points, about
    ax.scatter(effects, causes, s=(0.22 * cell) ** 2, color="white", edgecolors=EDGE_COLOR, linewidths=0.05 * cell)
    size = max(4.0, min(9.0, 0.75 * cell))
    for axis, rotation in ((ax.xaxis, 90), (ax.yaxis, 0)):
        axis.set_ticks(
            range(len(order)), names, fontsize=size, fontfamily=list(families), parse_math=False, rotation=rotation
        )
    ax.tick_params(length=0)
    ax.xaxis.tick_top()
    ax.xaxis.set_label_position("top")
    ax.set_xlabel("effect")
    ax.set_ylabel("cause")
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.6, aspect=30, label="probability of cause → effect")
    bar.outline.set_visible(False)
    ax.spines[:].set_visible(False)


# Files


def _save(figure: Figure, paths: Sequence[str | Path], dpi: int) -> None:
    import matplotlib as mpl

    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "causal-arrow"}), warnings.catch_warnings():
        # In SVG letters without a glyph here are for the reader's fonts, and no reason to shout.
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        for path in paths:
            # No date inside: the same answer is the same file.
            metadata = {"Date": None} if str(path).endswith(".svg") else None
            figure.savefig(path, dpi=dpi, metadata=metadata)
