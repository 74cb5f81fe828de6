"""What pictures of graphs are made of: boxes, lines with arrowheads, arcs for hidden common causes.

Lengths are points, 1/72 inch, at the natural size of a picture; `scale` says how much smaller or larger it is painted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from causal_arrow.graphs.layout import Layout, Route

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
"""A variable with edges in the picture, with edges of which none is drawn, and without edges."""


def paint_box(
    ax: Axes, center: Points | tuple[float, float], size: tuple[float, float], style: BoxStyle, scale: float
) -> None:
    """A box with round corners."""
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


def paint_count(ax: Axes, text: str, x: float, y: float, scale: float) -> None:
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
        bbox={"boxstyle": "round,pad=0.15", "facecolor": BACKGROUND, "edgecolor": "none"},
    )


# Lines


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
    mark: Literal["", "cross"] = ""


def curve_of(route: Route) -> Points:
    """Control points of the cubic curves through the points of a route, straight down at every point.  (3n + 1, 2)"""
    points = [route.points[0]]
    for (x0, y0), (x1, y1) in pairwise(route.points):
        middle = (y0 + y1) / 2
        points += [(x0, middle), (x1, middle), (x1, y1)]
    return np.array(points)


def paint_line(ax: Axes, stroke: Stroke, curve: Points, scale: float, zorder: float) -> None:
    """A line along a curve that runs downwards, with its arrowhead and its mark."""
    from matplotlib.patches import PathPatch, Polygon
    from matplotlib.path import Path as Curve

    curve = curve.copy()
    # The line ends where the head begins, and arrives there straight from above (or from below).
    end, before, sign = (0, 1, -1.0) if stroke.head == "above" else (-1, -2, 1.0)
    tip = curve[end].copy()
    if stroke.head != "none":
        curve[end, 1] += sign * HEAD_LENGTH
        curve[before, 1] = sign * max(sign * curve[before, 1], sign * curve[end, 1])
    ax.add_patch(
        PathPatch(
            Curve(curve, [Curve.MOVETO, *[Curve.CURVE4] * (len(curve) - 1)]),
            fill=False,
            edgecolor=stroke.color,
            alpha=stroke.alpha,
            linewidth=stroke.width * scale,
            linestyle=stroke.line,
            capstyle="butt",
            zorder=zorder,
        )
    )
    if stroke.mark:
        _paint_mark(ax, stroke, _middle(curve), scale, zorder)
    if stroke.head == "none":
        return
    spread = HEAD_WIDTH / 2 * stroke.head_size
    base = tip[1] + sign * HEAD_LENGTH
    ax.add_patch(
        Polygon(
            [tip, (tip[0] - spread, base), (tip[0] + spread, base)],
            closed=True,
            alpha=stroke.alpha,
            zorder=zorder,
            facecolor=stroke.color if stroke.filled_head else BACKGROUND,
            edgecolor=stroke.color,
            linewidth=0.9 * scale,
            joinstyle="round",
        )
    )


def _middle(curve: Points) -> Points:
    """The middle of the cubic piece in the middle of a curve.  (2,)"""
    pieces = (len(curve) - 1) // 3
    start = 3 * (pieces // 2)
    a, b, c, d = curve[start : start + 4]
    return np.asarray((a + 3 * b + 3 * c + d) / 8)


def _paint_mark(ax: Axes, stroke: Stroke, place: Points, scale: float, zorder: float) -> None:
    """A cross on a line."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path as Curve

    corners = MARK_SIZE / 2 * np.array([(-1, -1), (1, 1), (-1, 1), (1, -1)])
    cross = Curve(place + corners, [Curve.MOVETO, Curve.LINETO] * 2)
    ax.add_patch(PathPatch(cross, fill=False, edgecolor=stroke.color, linewidth=1.6 * scale, zorder=zorder))


# Hidden common causes

ARC_POINTS = 320
ARC_BULGES = (0.2, -0.2, 0.35, -0.35, 0.55, -0.55, 0.8, -0.8, 1.2, -1.2)  # of the distance between the two
LEAST_BULGE = 12.0


def arc_between(layout: Layout, widths: Sequence[float], height: float, first: int, second: int) -> Points:
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


def paint_arc(ax: Axes, stroke: Stroke, points: Points, scale: float, zorder: float = 2.5) -> None:
    """A line through points, with a head at either end."""
    from matplotlib.patches import Polygon

    lengths = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(points, axis=0).T))])
    inner = points[(lengths >= HEAD_LENGTH) & (lengths <= lengths[-1] - HEAD_LENGTH)]
    if len(inner) >= 2:
        ax.plot(
            inner[:, 0],
            inner[:, 1],
            color=stroke.color,
            alpha=stroke.alpha,
            linewidth=stroke.width * scale,
            linestyle=stroke.line,
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
                alpha=stroke.alpha,
                zorder=zorder,
                facecolor=stroke.color,
                edgecolor=stroke.color,
                linewidth=0.5 * scale,
                joinstyle="round",
            )
        )
