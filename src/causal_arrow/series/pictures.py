"""Pictures of an answer about a series: the summary graph, and the window graph in columns of time.

In both graphs wide dark lines are probable edges. Numbers on the edges of the summary graph are lags, and a line below
a name has the lags of the variable's own past. A dashed line with two heads is a hidden common cause at lag 0.
"""

# P variables, L lags

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from causal_arrow.discovery.pictures import scene
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
    text_size,
)
from causal_arrow.errors import check_choice
from causal_arrow.series.answer import LaggedEdge, SeriesAnswer, by_pair

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from causal_arrow.series.responses import Curve

Floats = NDArray[np.float64]

GRAPHS = ("summary", "window")
MAX_EDGES = 120  # edges drawn, the most probable first: with more, nothing can be seen
MAX_IN_ORDER = 12
"""In columns of time, rows of more variables are not in causal order: those that act on each other are close."""
BOX_HEIGHT, BOX_PADDING = 34.0, 9.0
ROW, COLUMN, NODE = 44.0, 118.0, 8.0
MARGIN, TITLE = 14.0, 26.0
SMALL = 9.0
ALONG = 0.4
"""Position of the lags on a line: nearer to the cause, so that lines that cross in the middle do not collide."""


def draw(answer: SeriesAnswer, what: str = "summary", ax: Axes | None = None) -> Axes:
    """Draw the summary graph or the window graph; without `ax` a pyplot figure of the right size is made."""
    picture = _picture(answer, what)
    if ax is None:
        import matplotlib.pyplot as plt

        ax = plt.figure(figsize=picture.inches).add_axes((0, 0, 1, 1))
    picture.paint(ax)
    return ax


def save(answer: SeriesAnswer, *paths: str | Path, what: str = "summary", dpi: int = 150, adapts: bool = False) -> None:
    """Write the picture of a graph to files, by their endings: .png, .svg (with text as text), .pdf."""
    from matplotlib.figure import Figure

    picture = _picture(answer, what)
    figure = Figure(figsize=picture.inches)
    picture.paint(figure.add_axes((0, 0, 1, 1)))
    save_figure(figure, paths, dpi, adapts)


def as_svg(answer: SeriesAnswer, what: str = "summary", adapts: bool = True) -> str:
    """The picture of a graph as an SVG element; with `adapts`, dark where its reader prefers that."""
    return scene.as_svg(lambda file: save(answer, file, what=what, adapts=adapts))


def curve_as_svg(curve: Curve) -> str:
    """The picture of an effect over time as an SVG element."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.6, 3.2), layout="constrained")
    curve.plot(figure.add_subplot())
    return scene.as_svg(lambda file: save_figure(figure, [file], dpi=150))


def _picture(answer: SeriesAnswer, what: str) -> _Picture:
    check_choice("what", what, GRAPHS)
    return _Summary(answer) if what == "summary" else _Columns(answer)


def rows_in_time(answer: SeriesAnswer) -> tuple[str, ...]:
    """The variables in the order of their rows, where columns are times."""
    if len(answer.names) <= MAX_IN_ORDER:
        return answer.order
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    either = csr_array(answer.summary | answer.summary.T)
    return tuple(answer.names[index] for index in reverse_cuthill_mckee(either, symmetric_mode=True))


class _Picture:
    """A graph with a title; lengths are points."""

    width: float
    height: float
    title: str

    def __init__(self, answer: SeriesAnswer) -> None:
        self.answer = answer
        self.edges = sorted(answer.edges, key=lambda edge: edge.probability)[-MAX_EDGES:]
        acting = {edge.source for edge in answer.context_edges}
        names = [*answer.names, *(name for name in answer.context if name in acting)]
        self.labels = dict(zip(names, Labels.of(names, lines=1, length=22).safe, strict=True))

    @property
    def inches(self) -> tuple[float, float]:
        return (self.width + 2 * MARGIN) / 72, (self.height + 2 * MARGIN + TITLE) / 72

    def paint(self, ax: Axes) -> None:
        self.ax = ax
        right, top = self.width + MARGIN, self.height + MARGIN + TITLE
        self.scale = scene.show_frame(ax, -MARGIN, right, -MARGIN, top)
        self.write(self.title, (self.width / 2, self.height + TITLE), va="top", weight="bold")
        self.paint_graph()

    def paint_graph(self) -> None:
        raise NotImplementedError

    def write(self, text: str, where: Any, size: float = FONT_SIZE, **how: Any) -> None:
        look = {"ha": "center", "va": "center", "color": TEXT_COLOR, **how}
        paint_text(self.ax, text, where[0], where[1], size * self.scale, **look)

    def arrow(self, start: Floats, end: Floats, bend: float, shown: LaggedEdge | float, shrink: float = 0.0) -> None:
        """An edge, or a hidden cause of some probability, as an arrow that ends `shrink` points before its points."""
        from matplotlib.patches import FancyArrowPatch

        look: dict[str, Any]
        if isinstance(shown, LaggedEdge):
            probability = shown.probability
            look = {"color": REQUIRED_COLOR if shown.required else EDGE_COLOR, "alpha": 0.25 + 0.7 * probability}
            look |= {"linestyle": DASHED if shown.direction == "weak" else "-", "arrowstyle": "-|>", "zorder": 2}
            width = 0.8 + 1.6 * probability
        else:
            look = {"color": HIDDEN_COLOR, "alpha": 0.25 + 0.6 * shown, "linestyle": DASHED}
            look |= {"arrowstyle": "<|-|>", "zorder": 1}
            width = 0.8 + shown
        ends = [(float(x), float(y)) for x, y in (start, end)]
        gap = shrink * self.scale
        look |= {"shrinkA": gap, "shrinkB": gap, "mutation_scale": 11 * self.scale}
        arrow = FancyArrowPatch(*ends, connectionstyle=f"arc3,rad={bend}", **look)
        arrow.set_linewidth(width * self.scale)
        self.ax.add_patch(arrow)


def _aside(start: Floats, end: Floats, bend: float) -> Floats:
    """The control point of a bent line."""
    along = end - start
    return np.asarray((start + end) / 2 + bend * np.array([along[1], -along[0]]))


class _Summary(_Picture):
    """Boxes on an ellipse; edges are bent towards its center and hidden causes away from it, clear of other boxes."""

    def __init__(self, answer: SeriesAnswer) -> None:
        super().__init__(answer)
        self.title = f"{len(answer.names)} variables, edges with their lags in steps"
        pasts = by_pair(answer.own_past).items()
        self.own = {name: "own past: " + ", ".join(str(edge.lag) for edge in some) for (name, _), some in pasts}
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
        self.center = np.array([self.width / 2, self.height / 2])
        points = self.center + np.column_stack([across * np.cos(angles), radius * np.sin(angles)])
        self.points: dict[str, Floats] = dict(zip(order, points, strict=True))

    def paint_graph(self) -> None:
        answer = self.answer
        edges = (*self.edges, *answer.context_edges)
        pairs = by_pair(edges)
        for pair in answer.hidden_causes[:MAX_EDGES]:
            start, end, bend = self._bent(pair.first, pair.second, -0.35)
            self.arrow(start, end, bend, pair.probability)
        for (source, target), some in pairs.items():
            # Of two edges between the same boxes one is bent more, so that both are seen.
            much = (target, source) in pairs and source > target
            start, end, bend = self._bent(source, target, 0.26 if much else 0.06)
            self.arrow(start, end, bend, max(some, key=lambda edge: edge.probability))
            if source not in answer.context:
                where = (1 - ALONG) ** 2 * start + 2 * ALONG * (1 - ALONG) * _aside(start, end, bend) + ALONG**2 * end
                frame = {"boxstyle": "round,pad=0.12", "facecolor": BACKGROUND, "edgecolor": "none"}
                self.write(", ".join(str(edge.lag) for edge in some), where, SMALL, zorder=3, bbox=frame)
        linked = {name for edge in edges for name in (edge.source, edge.target)}
        for name, (x, y) in self.points.items():
            style = BOX_STYLES["linked" if name in linked else "lonely"]
            paint_box(self.ax, (x, y), (self.widths[name], BOX_HEIGHT), style, self.scale)
            own = self.own.get(name)
            self.write(self.labels[name], (x, y + (6.0 if own else 0.0)), color=style.text, zorder=4)
            if own:
                self.write(own, (x, y - 8.0), SMALL * 0.9, color=QUIET_COLOR, zorder=4)

    def _bent(self, source: str, target: str, bend: float) -> tuple[Floats, Floats, float]:
        """Ends of a line that is bent towards the center, at one box and the other, and its bend."""
        start, end = self.points[source], self.points[target]
        inwards = (self.center - (start + end) / 2) @ (_aside(start, end, 1.0) - (start + end) / 2)
        bend = bend if inwards > -1e-6 else -bend
        control = _aside(start, end, bend)
        return self._border(source, control), self._border(target, control), bend

    def _border(self, name: str, towards: Floats) -> Floats:
        center, half = self.points[name], np.array([self.widths[name] / 2, BOX_HEIGHT / 2])
        along = towards - center
        share = np.min(half / np.maximum(np.abs(along), 1e-9))
        return np.asarray(center + along * min(1.0, share) + along / max(float(np.hypot(*along)), 1e-9) * 1.5)


class _Columns(_Picture):
    """A row for each variable, a column for each step, edges into the newest one."""

    def __init__(self, answer: SeriesAnswer) -> None:
        super().__init__(answer)
        self.title = f"{len(answer.edges)} edges between {len(answer.names)} variables, by time"
        self.left = max(text_size(self.labels[name])[0] for name in answer.names) + 22.0
        self.width = self.left + COLUMN * answer.lags + 60.0
        self.height = ROW * len(answer.names)
        self.row = {name: index for index, name in enumerate(rows_in_time(answer))}

    def _point(self, name: str, lag: int) -> Floats:
        x = self.left + COLUMN * (self.answer.lags - lag)
        return np.array([x, self.height - ROW * (self.row[name] + 0.9)])

    def _bend(self, edge: LaggedEdge) -> float:
        """The bend with which an edge passes clear of the nodes between its ends."""
        down = self.row[edge.target] - self.row[edge.source]
        if edge.lag == 0:  # a bulge to the right of the newest column
            return -0.42 if down > 0 else 0.42
        if down == 0:
            return -0.12 * (edge.lag - 1)
        passes = any(down * step % edge.lag == 0 for step in range(1, edge.lag))
        return -0.16 if passes else 0.0

    def paint_graph(self) -> None:
        from matplotlib.patches import Circle

        answer = self.answer
        for edge in (*answer.own_past, *self.edges):
            start, end = self._point(edge.source, edge.lag), self._point(edge.target, 0)
            self.arrow(start, end, self._bend(edge), edge, shrink=NODE)
        for pair in answer.hidden_causes[:MAX_EDGES]:
            first, second = sorted((pair.first, pair.second), key=self.row.__getitem__)
            self.arrow(self._point(first, 0), self._point(second, 0), -0.6, pair.probability, shrink=NODE)
        for name in answer.names:
            for lag in range(answer.lags + 1):
                x, y = self._point(name, lag)
                circle = Circle((x, y), NODE, facecolor=BOX_COLOR, edgecolor=QUIET_COLOR, zorder=3)
                circle.set_linewidth(0.9 * self.scale)
                self.ax.add_patch(circle)
            self.write(self.labels[name], (self.left - NODE - 8.0, y), ha="right")
        for lag in range(answer.lags + 1):
            x = self.left + COLUMN * (answer.lags - lag)
            self.write(f"t−{lag}" if lag else "t", (x, self.height - 4.0), SMALL, color=QUIET_COLOR)
