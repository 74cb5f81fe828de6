"""Pictures of an answer, with matplotlib alone: the causal graph in layers, and its edge probabilities as a heat map.

In a graph, wide dark lines are probable edges and thin light ones less so. A filled arrowhead is a direction that is
certain, an open one a likely direction, and a dashed line with an open head an uncertain one.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from causal_arrow.discovery.answer import Answer, DirectedEdge
from causal_arrow.errors import ConfigurationError
from causal_arrow.graphs.layout import Layout, Route, layered_layout

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_EDGES = 120
"""Edges drawn unless asked for more, the most probable first: beyond that a picture tells nothing."""

# All lengths are points, 1/72 inch, at the natural size of the picture.
FONT_SIZE = 9.0
LINE_LENGTH = 14  # characters of a name before it is wrapped
MOST_LINES = 2
PADDING = (8.0, 5.0)
MARGIN = 12.0
HEAD_LENGTH, HEAD_WIDTH = 8.0, 6.5
WIDTH_RANGE = (0.8, 2.4)  # lines of probability 0 and 1
ALPHA_RANGE = (0.25, 0.95)

EDGE_COLOR = "#1f3a5f"
REQUIRED_COLOR = "#b3541e"
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
    "certain": DirectionStyle("-", True, "direction certain"),
    "likely": DirectionStyle("-", False, "direction likely"),
    "uncertain": DirectionStyle((0, (4, 2.5)), False, "direction uncertain"),
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
    _paint(plan, ax)
    return ax


def save_graph(
    answer: Answer, *paths: str | Path, most_edges: int = MOST_EDGES, title: str | None = None, dpi: int = 150
) -> None:
    """Write the picture of the graph to files, by their endings: .png, .svg (with text as text), .pdf."""
    from matplotlib.figure import Figure

    plan = _plan(answer, most_edges, title)
    figure = Figure(figsize=plan.inches)
    _paint(plan, figure.add_axes((0, 0, 1, 1)))
    _save(figure, paths, dpi)


@dataclass(frozen=True, eq=False)
class _Plan:
    """All that is to be painted, with lengths in points. The origin is the lower left corner of the layout."""

    labels: list[str]
    widths: list[float]
    height: float
    layout: Layout
    edges: dict[tuple[int, int], DirectedEdge]  # by places, the most probable first
    title: str
    legend: list[_LegendEntry]

    @property
    def frame(self) -> tuple[float, float, float, float]:
        """Left, right, bottom and top of the picture."""
        wide = max(
            self.layout.width,
            _text_size(self.title, FONT_SIZE + 1)[0],
            max((entry.x + entry.width for entry in self.legend), default=0.0),
        )
        aside = (wide - self.layout.width) / 2
        footer = max((entry.row + 1 for entry in self.legend), default=0) * LEGEND_LINE
        return (
            -aside - MARGIN,
            self.layout.width + aside + MARGIN,
            -footer - MARGIN - (MARGIN if footer else 0),
            self.layout.height + 3 * MARGIN + FONT_SIZE,
        )

    @property
    def inches(self) -> tuple[float, float]:
        """The size at which text has the size of text."""
        left, right, bottom, top = self.frame
        return (right - left) / 72, (top - bottom) / 72


def _plan(answer: Answer, most_edges: int, title: str | None) -> _Plan:
    if most_edges < 1:
        raise ConfigurationError(f"Expected one edge or more to draw, got {most_edges}.")
    place = {name: number for number, name in enumerate(answer.names)}
    edges = {(place[edge.source], place[edge.target]): edge for edge in answer.edges[:most_edges]}
    adjacency = np.zeros((len(place), len(place)), dtype=bool)
    for pair in edges:
        adjacency[pair] = True
    labels = [shortened(name) for name in answer.names]
    sizes = [_text_size(label) for label in labels]
    widths = [width + 2 * PADDING[0] for width, _ in sizes]
    height = max(tall for _, tall in sizes) + 2 * PADDING[1]
    layout = layered_layout(adjacency, widths, height)
    if title is None:
        title = f"{len(place)} variables, {len(answer.edges)} edges"
        if len(edges) < len(answer.edges):
            title = f"{len(place)} variables, the {len(edges)} most probable of {len(answer.edges)} edges"
    return _Plan(labels, widths, height, layout, edges, title, _legend(list(edges.values()), layout.width))


def _paint(plan: _Plan, ax: Axes) -> None:
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
    linked = {variable for pair in plan.edges for variable in pair}
    for variable, (label, center, width) in enumerate(zip(plan.labels, plan.layout.centers, plan.widths, strict=True)):
        _paint_box(ax, label, center, (width, plan.height), scale, linked=variable in linked)
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
        _paint_legend_entry(ax, entry, start, -2 * MARGIN - (entry.row + 0.5) * LEGEND_LINE, scale)


def _paint_box(
    ax: Axes, label: str, center: NDArray[np.float64], size: tuple[float, float], scale: float, linked: bool
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
            facecolor=BOX_COLOR if linked else "white",
            edgecolor=BOX_BORDER if linked else LONELY_BORDER,
            zorder=3,
        )
    )
    ax.text(
        center[0],
        center[1],
        label,
        ha="center",
        va="center_baseline" if "\n" not in label else "center",
        zorder=4,
        fontsize=FONT_SIZE * scale,
        color=TEXT_COLOR if linked else QUIET_COLOR,
        parse_math=False,
        linespacing=1.05,
    )


# Edges


def curve_of(route: Route) -> NDArray[np.float64]:
    """Control points of the cubic curves through the points of a route, straight down at every point.  (3n + 1, 2)"""
    points = [route.points[0]]
    for (x0, y0), (x1, y1) in pairwise(route.points):
        middle = (y0 + y1) / 2
        points += [(x0, middle), (x1, middle), (x1, y1)]
    return np.array(points)


def _paint_edge(ax: Axes, edge: DirectedEdge, curve: NDArray[np.float64], scale: float, zorder: float) -> None:
    from matplotlib.patches import PathPatch, Polygon
    from matplotlib.path import Path as Curve

    style = DIRECTION_STYLES[edge.direction]
    color = REQUIRED_COLOR if edge.required else EDGE_COLOR
    width, alpha = (low + (high - low) * edge.probability for low, high in (WIDTH_RANGE, ALPHA_RANGE))
    tip = curve[-1].copy()
    curve = curve.copy()
    curve[-1, 1] += HEAD_LENGTH  # the line ends where the head begins, and every line arrives straight from above
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


# The legend

LEGEND_LINE = 18.0
LEGEND_SAMPLE = 26.0
LEGEND_FONT = 8.0


@dataclass(frozen=True)
class _LegendEntry:
    edge: DirectedEdge
    label: str
    x: float
    row: int
    width: float


def _legend(edges: Sequence[DirectedEdge], room: float) -> list[_LegendEntry]:
    """Samples of what occurs among the edges, in rows that fit the picture."""
    samples = [(f"probability {probability:g}", probability, "certain", False) for probability in (0.5, 1.0)]
    occurring = {edge.direction for edge in edges}
    certainty = {"certain": 1.0, "likely": 0.8, "uncertain": 0.5}
    samples += [(style.label, 0.9, name, False) for name, style in DIRECTION_STYLES.items() if name in occurring]
    if any(edge.required for edge in edges):
        samples.append(("required by knowledge", 0.9, "certain", True))
    entries: list[_LegendEntry] = []
    x, row = 0.0, 0
    for label, probability, direction, required in samples if edges else []:
        width = LEGEND_SAMPLE + 6 + _text_size(label, LEGEND_FONT)[0]
        if x and x + width > max(room, 300.0):
            x, row = 0.0, row + 1
        sample = DirectedEdge("", "", probability, 1.0, certainty[direction], 0.0, False, required)
        entries.append(_LegendEntry(sample, label, x, row, width))
        x += width + 16
    return entries


def _paint_legend_entry(ax: Axes, entry: _LegendEntry, start: float, y: float, scale: float) -> None:
    from matplotlib.transforms import Affine2D

    x = start + entry.x
    # A sample is an ordinary edge, which runs downwards, turned to run to the right.
    before = len(ax.patches)
    straight = np.array([(0.0, LEGEND_SAMPLE), (0.0, LEGEND_SAMPLE / 2), (0.0, LEGEND_SAMPLE / 2), (0.0, 0.0)])
    _paint_edge(ax, entry.edge, straight, scale, zorder=2)
    turned = Affine2D().rotate_deg(90).translate(x + LEGEND_SAMPLE, y) + ax.transData
    for patch in ax.patches[before:]:
        patch.set_transform(turned)
    ax.text(
        x + LEGEND_SAMPLE + 6,
        y,
        entry.label,
        va="center_baseline",
        color=QUIET_COLOR,
        fontsize=LEGEND_FONT * scale,
        parse_math=False,
    )


# The heat map


def draw_probabilities(answer: Answer, ax: Axes | None = None) -> Axes:
    """Edge probabilities as a heat map, both axes along the causal order; a dot marks the edges of the graph."""
    if ax is None:
        import matplotlib.pyplot as plt

        figure = plt.figure(figsize=_map_inches(answer), layout="constrained")
        ax = figure.add_subplot()
    _paint_map(answer, ax)
    return ax


def save_probabilities(answer: Answer, *paths: str | Path, dpi: int = 150) -> None:
    """Write the heat map to files, by their endings: .png, .svg (with text as text), .pdf."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=_map_inches(answer), layout="constrained")
    _paint_map(answer, figure.add_subplot())
    _save(figure, paths, dpi)


def _map_inches(answer: Answer) -> tuple[float, float]:
    side = min(12.0, max(4.5, 2.0 + 0.2 * len(answer.names)))
    return side + 0.8, side


def _paint_map(answer: Answer, ax: Axes) -> None:
    order = answer.decoding.order
    names = [shortened(answer.names[variable], lines=1, length=20) for variable in order]
    image = ax.imshow(answer.edge_probabilities[np.ix_(order, order)], cmap="Blues", vmin=0, vmax=1)
    causes, effects = np.nonzero(answer.adjacency[np.ix_(order, order)])
    inches = _map_inches(answer)[1]
    cell = 72 * 0.75 * inches / len(order)  # points, about
    ax.scatter(effects, causes, s=(0.22 * cell) ** 2, color="white", edgecolors=EDGE_COLOR, linewidths=0.05 * cell)
    size = max(4.0, min(9.0, 0.75 * cell))
    for axis, rotation in ((ax.xaxis, 90), (ax.yaxis, 0)):
        axis.set_ticks(range(len(order)), names, fontsize=size, parse_math=False, rotation=rotation)
    ax.tick_params(length=0)
    ax.xaxis.tick_top()
    ax.xaxis.set_label_position("top")
    ax.set_xlabel("effect")
    ax.set_ylabel("cause")
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.6, aspect=30, label="probability of cause → effect")
    bar.outline.set_visible(False)
    ax.spines[:].set_visible(False)


# Text and files


def shortened(name: str, lines: int = MOST_LINES, length: int = LINE_LENGTH) -> str:
    """A name as a picture shows it: wrapped, and cut with an ellipsis where it needs more lines."""
    rows: list[str] = []
    # Names of columns have few blanks: they may also break behind an underscore, a dot, a slash or a hyphen.
    for piece in re.findall(r"[^\s_./-]*[_./-]+|[^\s_./-]+\s*|\s+", name):
        if rows and len((rows[-1] + piece).rstrip()) <= length:
            rows[-1] += piece
        else:
            rows.extend(piece[start : start + length] for start in range(0, len(piece), length))
    rows = [row.strip() for row in rows if row.strip()] or [" "]
    if len(rows) > lines:
        # The end stays: it is often all that tells two long names apart.
        start, end = (rows[: lines - 1], length - 1) if lines > 1 else ([], length // 2)
        rows = [*start, ("" if start else name[: length - end - 1]) + "…" + name[-end:].lstrip()]
    return "\n".join(rows)


def _text_size(text: str, size: float = FONT_SIZE) -> tuple[float, float]:
    """Width and height of a text in points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextToPath

    measure = TextToPath()
    font = FontProperties(size=size)
    lines = text.split("\n")
    # The measure is that of a font at 72 dots an inch: points.
    width = max(measure.get_text_width_height_descent(line or " ", font, ismath=False)[0] for line in lines)
    return float(width), len(lines) * 1.15 * size


def _save(figure: Figure, paths: Sequence[str | Path], dpi: int) -> None:
    import matplotlib as mpl

    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "causal-arrow"}), warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", "Glyph .* missing from"
        )  # a box instead of a rare letter is no reason to shout
        for path in paths:
            # No date inside: the same answer is the same file.
            metadata = {"Date": None} if str(path).endswith(".svg") else None
            figure.savefig(path, dpi=dpi, metadata=metadata)
