"""How pictures of graphs look: colors, boxes, lines with arrowheads, arcs for hidden causes, and files, also dark ones.

Lengths are points, 1/72 inch, at the natural size of a picture; `scale` says how much larger it is painted.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from causal_arrow.graphs.layout import Layout, Route

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COUNT_FONT = 7.5
HEAD_LENGTH, HEAD_WIDTH = 8.0, 6.5
MARK_SIZE = 6.5

EDGE_COLOR = "#1f3a5f"
REQUIRED_COLOR = "#b3541e"
HIDDEN_COLOR = "#7b3f8c"
BACKGROUND = "#ffffff"
BOX_COLOR, BOX_BORDER, LONELY_BORDER = "#f4f6fa", "#5b6b82", "#c3cad6"
TEXT_COLOR = "#14202e"
QUIET_COLOR = "#5b6b82"
WRONG_COLOR = "#b3261e"
MISSING_COLOR = "#5f656e"

DASHED: Any = (0, (4, 2.5))

Points = NDArray[np.float64]


@dataclass(frozen=True)
class BoxStyle:
    """How a variable looks."""

    fill: str
    border: str
    line: Any
    text: str


BOX_STYLES = {
    "linked": BoxStyle(BOX_COLOR, BOX_BORDER, "-", TEXT_COLOR),
    "hidden": BoxStyle(BACKGROUND, BOX_BORDER, (0, (3, 2)), TEXT_COLOR),
    "lonely": BoxStyle(BACKGROUND, LONELY_BORDER, "-", QUIET_COLOR),
}
"""A variable with edges in the picture, one whose edges are all left out, and one without edges."""


@dataclass(frozen=True)
class Stroke:
    """How an edge looks. Its head is at the lower end of the line, at the upper end, at both (an arc) or nowhere."""

    color: str
    width: float
    alpha: float
    line: Any = "-"
    filled_head: bool = True
    head: Literal["below", "above", "both", "none"] = "below"
    head_size: float = 1.0
    crossed_out: bool = False


def paint_text(ax: Axes, text: str, x: float, y: float, size: float, **how: Any) -> None:
    """Text as it is, dollar signs included."""
    ax.text(x, y, text, fontsize=size, parse_math=False, **how)


def paint_box(ax: Axes, center: Sequence[float], size: tuple[float, float], style: BoxStyle, scale: float) -> None:
    """A box with round corners."""
    from matplotlib.patches import FancyBboxPatch

    corner = center[0] - size[0] / 2, center[1] - size[1] / 2
    box = FancyBboxPatch(corner, *size, boxstyle=f"round,pad=0,rounding_size={size[1] / 4}", zorder=3)
    box.set(linewidth=0.9 * scale, linestyle=style.line, facecolor=style.fill, edgecolor=style.border)
    ax.add_patch(box)


def paint_count(ax: Axes, text: str, x: float, y: float, scale: float) -> None:
    """How many edges of a box are left out, at its upper right corner."""
    frame = {"boxstyle": "round,pad=0.15", "facecolor": BACKGROUND, "edgecolor": "none"}
    index = {"ha": "center", "va": "center", "zorder": 5, "color": QUIET_COLOR}
    paint_text(ax, text, x, y, COUNT_FONT * scale, bbox=frame, **index)


# Lines


def curve_of(route: Route) -> Points:
    """Control points of the cubic curves through the points of a route, straight down at every point.  (3n + 1, 2)"""
    points = [route.points[0]]
    for (x0, y0), (x1, y1) in pairwise(route.points):
        middle = (y0 + y1) / 2
        points += [(x0, middle), (x1, middle), (x1, y1)]
    return np.array(points)


def paint_line(ax: Axes, stroke: Stroke, curve: Points, scale: float, zorder: float) -> None:
    """A line along a curve that runs downwards, with its arrowhead, crossed out or not."""
    from matplotlib.path import Path as Curve

    curve = curve.copy()
    # The line ends where the head begins, and arrives there straight from above, or from below.
    end, before, up = (0, 1, -1.0) if stroke.head == "above" else (-1, -2, 1.0)
    tip = curve[end].copy()
    if stroke.head != "none":
        curve[end, 1] += up * HEAD_LENGTH
        curve[before, 1] = up * max(up * curve[before, 1], up * curve[end, 1])
    _paint_path(ax, stroke, Curve(curve, [Curve.MOVETO, *[Curve.CURVE4] * (len(curve) - 1)]), scale, zorder)
    if stroke.crossed_out:
        start = (len(curve) - 1) // 6 * 3  # of the piece in the middle
        middle = np.array([1, 3, 3, 1]) / 8 @ curve[start : start + 4]
        cross = middle + MARK_SIZE / 2 * np.array([(-1, -1), (1, 1), (-1, 1), (1, -1)])
        mark = Stroke(stroke.color, 1.6, 1.0)
        _paint_path(ax, mark, Curve(cross, [Curve.MOVETO, Curve.LINETO] * 2), scale, zorder)
    if stroke.head != "none":
        _paint_head(ax, stroke, tip, np.array([0.0, up]), 0.9 * scale, zorder)


def _paint_path(ax: Axes, stroke: Stroke, path: Any, scale: float, zorder: float) -> None:
    from matplotlib.patches import PathPatch

    patch = PathPatch(path, fill=False, edgecolor=stroke.color, alpha=stroke.alpha, capstyle="butt", zorder=zorder)
    patch.set(linewidth=stroke.width * scale, linestyle=stroke.line)
    ax.add_patch(patch)


def _paint_head(ax: Axes, stroke: Stroke, tip: Points, back: Points, border: float, zorder: float) -> None:
    """An arrowhead with its tip here; `back` is the direction from which the line comes, of length 1."""
    from matplotlib.patches import Polygon

    side = np.array([-back[1], back[0]]) * HEAD_WIDTH / 2 * stroke.head_size
    base = tip + HEAD_LENGTH * back
    head = Polygon([tip, base + side, base - side], closed=True, alpha=stroke.alpha, zorder=zorder, joinstyle="round")
    face = stroke.color if stroke.filled_head else BACKGROUND
    head.set(facecolor=face, edgecolor=stroke.color, linewidth=border)
    ax.add_patch(head)


# Arcs for hidden causes

ARC_POINTS = 320
ARC_BULGES = (0.2, -0.2, 0.35, -0.35, 0.55, -0.55, 0.8, -0.8, 1.2, -1.2)  # of the distance between the two
MIN_BULGE = 12.0


def arc_between(layout: Layout, widths: Sequence[float], height: float, first: int, second: int) -> Points:
    """Points of an arc from the border of one box to that of another, around the boxes between them.  (M, 2)"""
    centers = np.asarray(layout.centers, dtype=float)
    start, end = sorted((centers[first], centers[second]), key=tuple)
    halves = np.stack([np.asarray(widths) / 2, np.full(len(widths), height / 2)], axis=1) + 2.0  # (P, 2)
    ends = np.isin(np.arange(len(centers)), [first, second])
    distance = float(np.hypot(*(end - start))) or 1.0
    normal = np.array([start[1] - end[1], end[0] - start[0]]) / distance
    t = np.linspace(0, 1, ARC_POINTS)[:, None]
    best, lowest = np.stack([start, end]), math.inf
    for bulge in ARC_BULGES:
        control = (start + end) / 2 + 2 * np.sign(bulge) * max(MIN_BULGE, abs(bulge) * distance) * normal
        points = (1 - t) ** 2 * start + 2 * t * (1 - t) * control + t**2 * end
        inside = (np.abs(points[:, None] - centers) < halves).all(axis=2)  # (M, P)
        free = points[~inside[:, ends].any(axis=1)]
        behind = int(inside[:, ~ends].sum())  # points behind other boxes
        too_short = float(np.hypot(*np.diff(free, axis=0).T).sum()) < 4 * HEAD_LENGTH
        cost = behind + (ARC_POINTS if too_short else 0)
        if cost < lowest and len(free) >= 2:
            best, lowest = free, cost
    return best


def paint_arc(ax: Axes, stroke: Stroke, points: Points, scale: float, zorder: float = 2.5) -> None:
    """A line through points, with a head at either end."""
    lengths = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(points, axis=0).T))])
    inner = points[(lengths >= HEAD_LENGTH) & (lengths <= lengths[-1] - HEAD_LENGTH)]
    if len(inner) >= 2:
        (line,) = ax.plot(*inner.T, color=stroke.color, alpha=stroke.alpha, dash_capstyle="butt", zorder=zorder)
        line.set(linewidth=stroke.width * scale, linestyle=stroke.line)
    for tip, along in ((points[0], HEAD_LENGTH), (points[-1], lengths[-1] - HEAD_LENGTH)):
        back = points[min(int(np.searchsorted(lengths, along)), len(points) - 1)] - tip
        _paint_head(ax, stroke, tip, back / (float(np.hypot(*back)) or 1.0), 0.5 * scale, zorder)


# Files

SVG_SETTINGS: Any = {"svg.fonttype": "none", "svg.hashsalt": "causal-arrow"}
"""Settings of matplotlib with which text stays text and the same answer gives the same file."""

DARK_COLORS = {
    BACKGROUND: "#1e2129",
    BOX_COLOR: "#2b3240",
    BOX_BORDER: "#a3b3ca",
    LONELY_BORDER: "#566074",
    TEXT_COLOR: "#e8edf5",
    EDGE_COLOR: "#9cc4ff",
    REQUIRED_COLOR: "#f2a06e",
    HIDDEN_COLOR: "#d9a6ea",
    WRONG_COLOR: "#ff9d8a",
    MISSING_COLOR: "#a9adb5",
    "#000000": "#e8edf5",
}
"""The color on a dark background for each color in our pictures."""


def dark_rules(scope: str) -> str:
    """Style rules that make the pictures inside `scope`, a CSS selector, dark.

    The elements keep their colors, so that programs without style sheets show the light picture.
    """
    rules = [
        f"{scope} [style*='{kind}: {light}'] {{ {kind}: {dark} !important; }}"
        for light, dark in DARK_COLORS.items()
        for kind in ("fill", "stroke")
    ]
    # Text and shapes without a color are black; a heat map is an image.
    rules += [
        f"{scope} text:not([style*='fill: #']) {{ fill: {DARK_COLORS['#000000']}; }}",
        f"{scope} g[id^='text_'] > g:not([style*='fill: #']) {{ fill: {DARK_COLORS['#000000']}; }}",
        f"{scope} image {{ filter: invert(1) hue-rotate(180deg); }}",
    ]
    return "\n".join(rules)


def save_figure(figure: Figure, paths: Sequence[str | Path], dpi: int, adapts: bool = False) -> None:
    """Write a figure to files; with `adapts`, an SVG file is dark where its reader prefers that."""
    import matplotlib as mpl

    with mpl.rc_context(SVG_SETTINGS), warnings.catch_warnings():
        # The reader's fonts show letters in SVG that have no glyph here.
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        for path in paths:
            vector = str(path).lower().endswith(".svg")
            # Without a date, the same answer gives the same file.
            figure.savefig(path, dpi=dpi, metadata={"Date": None} if vector else None)
            if vector and adapts:
                text = Path(path).read_text(encoding="utf-8")
                start = text.index("<svg") + len("<svg")
                end = text.index(">", start)
                style = f"@media (prefers-color-scheme: dark) {{\n{dark_rules('svg.causal-arrow')}\n}}"
                opening = f'{text[:start]} class="causal-arrow"{text[start:end]}>'
                Path(path).write_text(f"{opening}\n <style>\n{style}\n </style>{text[end + 1 :]}", encoding="utf-8")
