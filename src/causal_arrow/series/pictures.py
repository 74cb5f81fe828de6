"""Pictures of an answer about a series: the summary graph, and the window graph in columns of time.

In both graphs wide dark lines are probable edges. Numbers on the edges of the summary graph are lags, and a line below
a name has the lags of the variable's own past. A dashed line with two heads is a hidden common cause at lag 0.
"""

# P variables, L lags

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from causal_arrow.discovery.pictures.scene import (
    BACKGROUND,
    BOX_COLOR,
    BOX_STYLES,
    DASHED,
    EDGE_COLOR,
    FONT_SIZE,
    HIDDEN_COLOR,
    QUIET_COLOR,
    REQUIRED_COLOR,
    TEXT_COLOR,
    Labels,
    paint_box,
    paint_text,
    save_figure,
)
from causal_arrow.errors import check_choice
from causal_arrow.series.answer import LaggedEdge, SeriesAnswer, by_pair

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from causal_arrow.series.responses import Curve

Floats = NDArray[np.float64]

GRAPHS = ("summary", "window")
MAX_EDGES = 120
"""Edges drawn, the most probable first: beyond that a picture shows nothing."""
BOX_HEIGHT, BOX_PADDING = 34.0, 9.0
ROW, COLUMN, NODE = 44.0, 118.0, 8.0
MARGIN, TITLE = 14.0, 26.0
SMALL = 9.0


def draw(answer: SeriesAnswer, what: str = "summary", ax: Axes | None = None) -> Axes:
    """Draw the summary graph or the window graph; without `ax` a pyplot figure of the right size is made."""
    scene = _scene(answer, what)
    if ax is None:
        import matplotlib.pyplot as plt

        ax = plt.figure(figsize=scene.inches).add_axes((0, 0, 1, 1))
    scene.paint(ax)
    return ax


def save(answer: SeriesAnswer, *paths: str | Path, what: str = "summary", dpi: int = 150, adapts: bool = False) -> None:
    """Write the picture of a graph to files, by their endings: .png, .svg (with text as text), .pdf."""
    from matplotlib.figure import Figure

    scene = _scene(answer, what)
    figure = Figure(figsize=scene.inches)
    scene.paint(figure.add_axes((0, 0, 1, 1)))
    save_figure(figure, paths, dpi, adapts)


def as_svg(answer: SeriesAnswer, what: str = "summary", adapts: bool = True) -> str:
    """The picture of a graph as an SVG element; with `adapts`, dark where its reader prefers that."""
    return _written(lambda file: save(answer, file, what=what, adapts=adapts))


def curve_as_svg(curve: Curve) -> str:
    """The picture of an effect over time as an SVG element."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.6, 3.2), layout="constrained")
    curve.plot(figure.add_subplot())
    return _written(lambda file: save_figure(figure, [file], dpi=150))


def _written(write: Callable[[Path], None]) -> str:
    """The element in an SVG file that is written."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "graph.svg"
        write(file)
        text = file.read_text(encoding="utf-8")
    return text[text.index("<svg") :]


def _scene(answer: SeriesAnswer, what: str) -> _Summary | _Columns:
    check_choice("what", what, GRAPHS)
    return _Summary(answer) if what == "summary" else _Columns(answer)


class _Picture:
    """A graph with a title; lengths are points."""

    width: float
    height: float

    def __init__(self, answer: SeriesAnswer) -> None:
        self.answer = answer
        self.edges = sorted(answer.edges, key=lambda edge: edge.probability)[-MAX_EDGES:]
        names = [*answer.names, *(name for name in answer.context if self._acts(name))]
        self.labels = dict(zip(names, Labels.of(names, lines=1, length=22).safe, strict=True))

    def _acts(self, name: str) -> bool:
        return any(edge.source == name for edge in self.answer.context_edges)

    @property
    def inches(self) -> tuple[float, float]:
        return (self.width + 2 * MARGIN) / 72, (self.height + 2 * MARGIN + TITLE) / 72

    def _open(self, ax: Axes, title: str) -> float:
        """Set up the axes and paint the title; how much larger than life everything is."""
        ax.set_axis_off()
        ax.set_aspect("equal")
        ax.set_xlim(-MARGIN, self.width + MARGIN)
        ax.set_ylim(-MARGIN, self.height + MARGIN + TITLE)
        page = ax.get_figure(root=True)
        assert page is not None
        extent, (width, height) = ax.get_window_extent(), self.inches
        scale = min(extent.width / width, extent.height / height) / page.dpi
        how: dict[str, Any] = {"ha": "center", "va": "top", "color": TEXT_COLOR, "weight": "bold"}
        paint_text(ax, title, self.width / 2, self.height + TITLE, FONT_SIZE * scale, **how)
        return scale


def _arrow(ax: Axes, start: Floats, end: Floats, look: dict[str, Any], scale: float) -> None:
    """An arrow between two points, which ends `shrink` points before them."""
    from matplotlib.patches import FancyArrowPatch

    width, shrink = look.pop("width"), look.pop("shrink", 0.0) * scale
    ends = [(float(x), float(y)) for x, y in (start, end)]
    arrow = FancyArrowPatch(ends[0], ends[1], shrinkA=shrink, shrinkB=shrink, mutation_scale=11 * scale, **look)
    arrow.set_linewidth(width * scale)
    ax.add_patch(arrow)


def _look(edge: LaggedEdge) -> dict[str, Any]:
    """Color, width and darkness of an edge by its probability, dashes for a weak direction."""
    return {
        "color": REQUIRED_COLOR if edge.required else EDGE_COLOR,
        "width": 0.8 + 1.6 * edge.probability,
        "alpha": 0.25 + 0.7 * edge.probability,
        "linestyle": DASHED if edge.direction == "weak" else "-",
        "arrowstyle": "-|>",
    }


def _hidden_look(probability: float) -> dict[str, Any]:
    return {
        "color": HIDDEN_COLOR,
        "width": 0.8 + probability,
        "alpha": 0.25 + 0.6 * probability,
        "linestyle": DASHED,
        "arrowstyle": "<|-|>",
    }


class _Summary(_Picture):
    """Boxes on an ellipse, so that no line between two of them crosses a third."""

    def __init__(self, answer: SeriesAnswer) -> None:
        super().__init__(answer)
        from causal_arrow.discovery.pictures.scene import text_size

        own: dict[str, list[int]] = {}
        for edge in answer.own_past:
            own.setdefault(edge.source, []).append(edge.lag)
        self.own = {name: "own past: " + ", ".join(map(str, sorted(lags))) for name, lags in own.items()}
        self.widths = {
            name: max(text_size(label)[0], text_size(self.own.get(name, ""), SMALL)[0]) + 2 * BOX_PADDING
            for name, label in self.labels.items()
        }
        order = [*(name for name in self.labels if name not in answer.names), *answer.order]
        widest, count = max(self.widths.values()), len(order)
        radius = max(95.0, count * (BOX_HEIGHT + 26.0) / (2 * np.pi) * 1.25)
        across = radius + 0.55 * widest
        angles = np.pi / 2 - 2 * np.pi * np.arange(count) / count
        self.width, self.height = 2 * across + widest, 2 * radius + BOX_HEIGHT
        center = np.array([self.width / 2, self.height / 2])
        points = center + np.column_stack([across * np.cos(angles), radius * np.sin(angles)])
        self.points: dict[str, Floats] = dict(zip(order, points, strict=True))

    def paint(self, ax: Axes) -> None:
        answer = self.answer
        edges = tuple(self.edges) + answer.context_edges
        pairs = by_pair(edges)
        scale = self._open(ax, f"{len(answer.names)} variables, edges with their lags in steps")
        for pair in answer.hidden_causes[:MAX_EDGES]:
            start, end = self._ends(pair.first, pair.second, -0.35)
            look = {**_hidden_look(pair.probability), "connectionstyle": "arc3,rad=-0.35", "zorder": 1}
            _arrow(ax, start, end, look, scale)
        for (source, target), some in pairs.items():
            strongest = max(some, key=lambda edge: edge.probability)
            bend = 0.16 if (target, source) in pairs else 0.06
            start, end = self._ends(source, target, bend)
            _arrow(ax, start, end, {**_look(strongest), "connectionstyle": f"arc3,rad={bend}", "zorder": 2}, scale)
            along = end - start
            # The middle of a quadratic curve whose control point lies beside the middle of the line.
            x, y = (start + end) / 2 + bend / 2 * np.array([along[1], -along[0]])
            frame = {"boxstyle": "round,pad=0.12", "facecolor": BACKGROUND, "edgecolor": "none"}
            lags = ", ".join(str(edge.lag) for edge in some) if source not in answer.context else ""
            if lags:
                how = {"ha": "center", "va": "center", "zorder": 3, "color": TEXT_COLOR, "bbox": frame}
                paint_text(ax, lags, x, y, SMALL * scale, **how)
        linked = {name for edge in edges for name in (edge.source, edge.target)}
        for name, (x, y) in self.points.items():
            style = BOX_STYLES["linked" if name in linked else "lonely"]
            paint_box(ax, (x, y), (self.widths[name], BOX_HEIGHT), style, scale)
            own = self.own.get(name)
            how = {"ha": "center", "va": "center", "zorder": 4}
            paint_text(ax, self.labels[name], x, y + (6.0 if own else 0.0), FONT_SIZE * scale, color=style.text, **how)
            if own:
                paint_text(ax, own, x, y - 8.0, SMALL * 0.9 * scale, color=QUIET_COLOR, **how)

    def _ends(self, source: str, target: str, bend: float) -> tuple[Floats, Floats]:
        """Where a bent line leaves one box and reaches the other."""
        start, end = self.points[source], self.points[target]
        along = end - start
        control = (start + end) / 2 + bend * np.array([along[1], -along[0]])
        return self._border(source, control), self._border(target, control)

    def _border(self, name: str, towards: Floats) -> Floats:
        center, half = self.points[name], np.array([self.widths[name] / 2, BOX_HEIGHT / 2])
        along = towards - center
        share = np.min(half / np.maximum(np.abs(along), 1e-9))
        return np.asarray(center + along * min(1.0, share) + along / max(float(np.hypot(*along)), 1e-9) * 1.5)


class _Columns(_Picture):
    """A row for each variable, a column for each step, edges into the newest one."""

    def __init__(self, answer: SeriesAnswer) -> None:
        super().__init__(answer)
        from causal_arrow.discovery.pictures.scene import text_size

        self.left = max(text_size(self.labels[name])[0] for name in answer.names) + 22.0
        self.width = self.left + COLUMN * answer.lags + 60.0
        self.height = ROW * len(answer.names)
        self.row = {name: self.height - ROW * (index + 0.9) for index, name in enumerate(answer.order)}

    def _point(self, name: str, lag: int) -> Floats:
        return np.array([self.left + COLUMN * (self.answer.lags - lag), self.row[name]])

    def paint(self, ax: Axes) -> None:
        answer = self.answer
        scale = self._open(ax, f"{len(answer.edges)} edges between {len(answer.names)} variables, by time")
        for edge in (*answer.own_past, *self.edges):
            start, end = self._point(edge.source, edge.lag), self._point(edge.target, 0)
            look = {**_look(edge), "shrink": NODE, "zorder": 2}
            if edge.lag == 0:
                # Lines at lag 0 bulge to the right of the newest column.
                look["connectionstyle"] = f"arc3,rad={-0.42 if end[1] < start[1] else 0.42}"
            elif edge.source == edge.target:
                look["connectionstyle"] = f"arc3,rad={-0.12 * (edge.lag - 1)}"
            _arrow(ax, start, end, look, scale)
        for pair in answer.hidden_causes[:MAX_EDGES]:
            first, second = sorted((pair.first, pair.second), key=lambda name: -self.row[name])
            look = {**_hidden_look(pair.probability), "connectionstyle": "arc3,rad=-0.6", "shrink": NODE, "zorder": 1}
            _arrow(ax, self._point(first, 0), self._point(second, 0), look, scale)
        from matplotlib.patches import Circle

        for name in answer.names:
            for lag in range(answer.lags + 1):
                point = self._point(name, lag)
                circle = Circle((point[0], point[1]), NODE, facecolor=BOX_COLOR, edgecolor=QUIET_COLOR, zorder=3)
                circle.set_linewidth(0.9 * scale)
                ax.add_patch(circle)
            x = self.left - NODE - 8.0
            how = {"ha": "right", "va": "center", "color": TEXT_COLOR}
            paint_text(ax, self.labels[name], x, self.row[name], FONT_SIZE * scale, **how)
        for lag in range(answer.lags + 1):
            x = self.left + COLUMN * (answer.lags - lag)
            text = f"t−{lag}" if lag else "t"
            paint_text(ax, text, x, self.height - 4.0, SMALL * scale, ha="center", va="center", color=QUIET_COLOR)
