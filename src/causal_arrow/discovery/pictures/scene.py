"""A picture of a graph: names that fit their boxes, lines and arrowheads, the scene before it is painted, and files.

Lengths are points, 1/72 inch, at the natural size of a picture; `scale` is how much larger it is painted.
"""

from __future__ import annotations

import math
import re
import tempfile
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from causal_arrow.graphs.layout import Layout, Route, layered_layout
from causal_arrow.text import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


FONT_SIZE = 11.0  # points
LINE_LENGTH = 14  # characters of a name before it is wrapped
MAX_LINES = 2

WORD_ENDS = re.compile(r"(?<=[\s_./-])(?![\s_./-])(?<!\bt-)|(?<=[a-z])(?=[A-Z])")
"""After blanks, underscores, dots, slashes and hyphens (not in t-1), and where a small letter meets a capital."""

WIDE_FONTS = re.compile(
    "CJK|Noto Sans|Unicode|Source Han|Hei|Gothic|Mincho|Ming|Song|Fallback|Unifont|Nanum|Meiryo|PingFang|Hiragino|YaHei"
)
"""Fonts with the letters of many languages, by parts of their names."""


@dataclass(frozen=True, eq=False)
class Labels:
    """The names of variables in a picture."""

    full: list[str]
    safe: list[str]  # with the number of the column in place of letters that no font has
    families: list[str]
    unshowable: frozenset[str]  # letters without a glyph in any of the fonts

    @classmethod
    def of(cls, names: Sequence[str], *, lines: int, length: int) -> Labels:
        """The labels for names, in so many lines of this length."""
        texts = [" ".join(visible(name).split()) for name in names]
        families, unshowable = _fonts_for(set("".join(texts)))
        safe = [_numbered(text, number, unshowable) for number, text in enumerate(texts, start=1)]
        full, safe = ([shortened(text, lines, length) for text in each] for each in (texts, safe))
        return cls(full, safe, families, unshowable)

    def size(self, label: str) -> tuple[float, float]:
        """Width and height in points; letters without a glyph count as wide."""
        shown = "".join("W" if letter in self.unshowable else letter for letter in label)
        return text_size(shown, families=self.families)

    def for_files(self, paths: Sequence[str | Path]) -> list[tuple[list[str], list[str | Path]]]:
        """The labels for each file: SVG leaves letters to the reader's fonts."""
        if self.full == self.safe:
            return [(self.safe, list(paths))]
        vector = [path for path in paths if str(path).lower().endswith(".svg")]
        other = [path for path in paths if path not in vector]
        return [(labels, files) for labels, files in ((self.full, vector), (self.safe, other)) if files]


def _numbered(name: str, number: int, unshowable: frozenset[str]) -> str:
    """The name, or what can be shown of it after the number of its column."""
    if not unshowable & set(name):
        return name
    rest = re.sub("…+", "…", "".join("…" if letter in unshowable else letter for letter in name))
    return f"{number}: {rest}" if any(letter.isalnum() for letter in rest) else f"column {number}"


def _fonts_for(letters: set[str]) -> tuple[list[str], frozenset[str]]:
    """Font families that together have as many of the letters as possible, and the letters that none has.

    The usual family comes first; others are searched only if it lacks a letter.
    """
    import matplotlib as mpl
    from matplotlib import font_manager

    families = list(mpl.rcParams["font.family"])
    lacking = {letter for letter in letters if not letter.isspace()}
    for family in families:
        lacking = _lacking(lacking, family)
    others = sorted({font.name for font in font_manager.fontManager.ttflist if WIDE_FONTS.search(font.name)})
    while lacking and others:
        left = {family: _lacking(lacking, family) for family in others}
        best = min(left, key=lambda family: len(left[family]))
        if left[best] == lacking:
            break
        families.append(best)
        lacking = left[best]
    return families, frozenset(lacking)


def _lacking(letters: Iterable[str], family: str) -> set[str]:
    """The letters that a font has no glyph for."""
    from matplotlib import font_manager

    try:
        font = font_manager.get_font(font_manager.findfont(font_manager.FontProperties(family=[family])))
    except (OSError, RuntimeError):  # the file does not hold what its name promises
        return set(letters)
    return {letter for letter in letters if font.get_char_index(ord(letter)) == 0}


def shortened(name: str, lines: int = MAX_LINES, length: int = LINE_LENGTH) -> str:
    """A name wrapped between words, and cut with an ellipsis where it needs more room."""
    rows = [""]
    for word in WORD_ENDS.split(name):
        if rows[-1] and len((rows[-1] + word).rstrip()) > length:
            rows.append(word)
        else:
            rows[-1] += word
    rows = [row.strip() for row in rows if row.strip()] or [" "]
    if len(rows) > lines:
        # The end stays: it is often the only difference between two long names.
        end = "…" + _last_words(name.rstrip(), length - 1)
        rows = [*rows[: lines - 1], end] if lines > 1 else [name.strip()]
    return "\n".join(_cut(row, length) for row in rows)


def _cut(row: str, length: int) -> str:
    """A row with its middle left out if it is too long."""
    if len(row) <= length:
        return row
    end = _last_words(row, length // 2)
    start = row[: length - len(end) - 1]
    words = [word.end() for word in WORD_ENDS.finditer(row) if len(start) / 2 <= word.end() <= len(start)]
    return (row[: words[-1]] if words else start).rstrip() + "…" + end


def _last_words(text: str, length: int) -> str:
    """The end of a text: whole words if they fill half of the room, otherwise as many letters as fit."""
    sizes = [len(text) - word.end() for word in WORD_ENDS.finditer(text)]
    fitting = [size for size in sizes if length / 2 <= size <= length]
    return text[-max(fitting) :] if fitting else text[-length:].lstrip()


def text_size(text: str, size: float = FONT_SIZE, families: Sequence[str] | None = None) -> tuple[float, float]:
    """Width and height of a text in points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextToPath

    measure = TextToPath()  # at 72 dots per inch: in points
    font = FontProperties(size=size, family=None if families is None else list(families))
    lines = text.split("\n")
    width = max(measure.get_text_width_height_descent(line or " ", font, ismath=False)[0] for line in lines)
    return float(width), len(lines) * 1.15 * size


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
    """The look of a variable."""

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
    """The look of an edge. Its head is at the lower end of the line, at the upper end, at both (an arc) or nowhere."""

    color: str
    width: float
    alpha: float
    line: Any = "-"
    filled_head: bool = True
    head: Literal["below", "above", "both", "none"] = "below"
    head_size: float = 1.0
    crossed_out: bool = False


def show_frame(ax: Axes, left: float, right: float, bottom: float, top: float) -> float:
    """Show this part of the plane, and return the scale of lines and letters, whose widths are points of the page."""
    ax.set_axis_off()
    ax.set_aspect("equal")
    ax.set_xlim(left, right)
    ax.set_ylim(bottom, top)
    page = ax.get_figure(root=True)
    assert page is not None
    window = ax.get_window_extent()
    return float(min(window.width / (right - left), window.height / (top - bottom)) * 72 / page.dpi)


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
    """The number of edges of a box that are left out, at its upper right corner."""
    frame = {"boxstyle": "round,pad=0.15", "facecolor": BACKGROUND, "edgecolor": "none"}
    how = {"ha": "center", "va": "center", "zorder": 5, "color": QUIET_COLOR}
    paint_text(ax, text, x, y, COUNT_FONT * scale, bbox=frame, **how)


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


def arc_between(boxes: Boxes, first: int, second: int) -> Points:
    """Points of an arc from the border of one box to that of another, around the boxes between them.  (M, 2)"""
    centers = np.asarray(boxes.layout.centers, dtype=float)
    start, end = sorted((centers[first], centers[second]), key=tuple)
    halves = np.stack([boxes.widths, np.full(len(centers), boxes.height)], axis=1) / 2 + 2.0  # (P, 2)
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


def as_svg(write: Callable[[Path], None]) -> str:
    """The element in an SVG file that is written."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "graph.svg"
        write(file)
        text = file.read_text(encoding="utf-8")
    return text[text.index("<svg") :]


PADDING = (6.5, 4.0)
FEW_VARIABLES = 20
ROOMY, TIGHT = {"gap": 18.0, "layer_gap": 36.0}, {"gap": 10.0, "layer_gap": 30.0}
"""Least room between boxes side by side and between layers, for few variables and for many."""
MARGIN = 12.0
MIN_PORT_GAP = 4.5  # a variable with many edges has a wider box, so that they leave and reach it this far apart
LETTER_MIDDLE = 0.33  # height of the middle of a line of letters above its baseline, in font sizes
LEGEND_LINE, LEGEND_SAMPLE, LEGEND_FONT = 20.0, 30.0, 9.5

Sample = Stroke | BoxStyle | str
"""A sample in a legend: a line or an arc, a box, or a count."""


@dataclass(frozen=True, eq=False)
class Boxes:
    """The names of variables, the sizes of their boxes, and where they are."""

    labels: Labels
    widths: list[float]
    height: float
    layout: Layout

    @classmethod
    def of(cls, names: Sequence[str], adjacency: NDArray[np.bool_]) -> Boxes:
        """Boxes that hold the names, and wide enough for the edges at their lower and upper sides."""
        labels = Labels.of(names, lines=MAX_LINES, length=LINE_LENGTH)
        texts = zip(labels.full, labels.safe, strict=True)
        sizes = [np.max([labels.size(full), labels.size(safe)], axis=0) for full, safe in texts]
        ports = np.maximum(adjacency.sum(axis=0), adjacency.sum(axis=1))
        widths = [
            max(float(width) + 2 * PADDING[0], float(count - 1) * MIN_PORT_GAP / 0.7)
            for (width, _), count in zip(sizes, ports, strict=True)
        ]
        height = max(float(tall) for _, tall in sizes) + 2 * PADDING[1]
        gaps = ROOMY if len(names) <= FEW_VARIABLES else TIGHT  # or names could not be read
        return cls(labels, widths, height, layered_layout(adjacency, widths, height, **gaps))


@dataclass(frozen=True)
class LegendEntry:
    """A sample, its meaning, and its place in the legend."""

    sample: Sample
    label: str
    x: float
    row: int
    width: float


def legend_in_rows(samples: Sequence[tuple[Sample, str]], room: float) -> list[LegendEntry]:
    """The samples from left to right, in rows that fit the picture."""
    entries: list[LegendEntry] = []
    x, row = 0.0, 0
    for sample, label in samples:
        width = LEGEND_SAMPLE + 6 + 1.06 * text_size(label, LEGEND_FONT)[0]  # letters on a grid of pixels run wider
        if x and x + width > max(room, 300.0):
            x, row = 0.0, row + 1
        entries.append(LegendEntry(sample, label, x, row, width))
        x += width + 16
    return entries


@dataclass(frozen=True, eq=False)
class Scene:
    """Everything to be painted. The origin is the lower left corner of the layout."""

    boxes: Boxes
    styles: list[BoxStyle]  # of the boxes
    lines: list[tuple[Route, Stroke]]  # the later ones on top
    arcs: list[tuple[Points, Stroke]]
    title: str
    legend: list[LegendEntry]
    undrawn: list[int] = field(default_factory=list)  # edges left out, by variable

    @property
    def frame(self) -> tuple[float, float, float, float]:
        """Left, right, bottom and top of the picture."""
        layout = self.boxes.layout
        title_width = 1.15 * text_size(self.title, FONT_SIZE + 1)[0]  # it is bold
        wide = max([layout.width, title_width, self._legend_width])
        # Arcs may bulge beyond the boxes.
        points = np.concatenate([np.zeros((1, 2)), *(points for points, _ in self.arcs)])
        beyond = max(0.0, -points[:, 0].min(), points[:, 0].max() - layout.width)
        aside = max((wide - layout.width) / 2, beyond) + MARGIN
        above = max(0.0, points[:, 1].max() - layout.height)
        header = (2 * MARGIN + FONT_SIZE) if self.title else 0.0
        footer = max((entry.row + 1 for entry in self.legend), default=0) * LEGEND_LINE
        bottom = self._lowest - footer - MARGIN - (MARGIN if footer else 0)
        return -aside, layout.width + aside, bottom, layout.height + above + MARGIN + header

    @property
    def _lowest(self) -> float:
        """The lowest point of the drawing, 0 unless an arc hangs below the boxes."""
        return min([0.0, *(float(points[:, 1].min()) for points, _ in self.arcs)])

    @property
    def _legend_width(self) -> float:
        return max((entry.x + entry.width for entry in self.legend), default=0.0)

    @property
    def _inches(self) -> tuple[float, float]:
        """The size at which letters have their size in points."""
        left, right, bottom, top = self.frame
        return (right - left) / 72, (top - bottom) / 72

    def draw(self, ax: Axes | None) -> Axes:
        """Paint into axes, or into a new pyplot figure of the right size."""
        if ax is None:
            import matplotlib.pyplot as plt

            ax = plt.figure(figsize=self._inches).add_axes((0, 0, 1, 1))
        self._paint(ax, self.boxes.labels.safe)
        return ax

    def save(self, paths: Sequence[str | Path], dpi: int = 150, adapts: bool = False) -> None:
        """Write to files."""
        from matplotlib.figure import Figure

        for labels, files in self.boxes.labels.for_files(paths):
            figure = Figure(figsize=self._inches)
            self._paint(figure.add_axes((0, 0, 1, 1)), labels)
            save_figure(figure, files, dpi, adapts)

    def _paint(self, ax: Axes, labels: Sequence[str]) -> None:
        left, right, _, top = self.frame
        scale = show_frame(ax, *self.frame)
        for depth, (route, stroke) in enumerate(self.lines):
            paint_line(ax, stroke, curve_of(route), scale, zorder=1 + depth / len(self.lines))
        for points, stroke in self.arcs:
            paint_arc(ax, stroke, points, scale)
        self._paint_boxes(ax, labels, scale)
        middle, size = (left + right) / 2, (FONT_SIZE + 1) * scale
        how = {"ha": "center", "va": "top", "color": TEXT_COLOR, "weight": "bold"}
        paint_text(ax, self.title, middle, top - MARGIN, size, **how)
        start = middle - self._legend_width / 2
        for entry in self.legend:
            y = self._lowest - 2 * MARGIN - (entry.row + 0.5) * LEGEND_LINE
            _paint_legend_entry(ax, entry, start + entry.x, y, scale)

    def _paint_boxes(self, ax: Axes, labels: Sequence[str], scale: float) -> None:
        boxes, centers = self.boxes, self.boxes.layout.centers
        for label, (x, y), width, style in zip(labels, centers, boxes.widths, self.styles, strict=True):
            paint_box(ax, (x, y), (width, boxes.height), style, scale)
            how = {"zorder": 4, "fontfamily": boxes.labels.families, "color": style.text, "linespacing": 1.05}
            one_line = "\n" not in label  # then all names of a layer share a baseline, whatever their letters
            baseline, va = (y - LETTER_MIDDLE * FONT_SIZE, "baseline") if one_line else (y, "center")
            paint_text(ax, label, x, baseline, FONT_SIZE * scale, ha="center", va=va, **how)
        for (x, y), width, count in zip(centers, boxes.widths, self.undrawn, strict=False):
            if count:
                paint_count(ax, f"+{count}", x + width / 2, y + boxes.height / 2, scale)


def _paint_legend_entry(ax: Axes, entry: LegendEntry, x: float, y: float, scale: float) -> None:
    if isinstance(entry.sample, BoxStyle):
        paint_box(ax, (x + LEGEND_SAMPLE / 2, y), (LEGEND_SAMPLE, 0.55 * LEGEND_LINE), entry.sample, scale)
    elif isinstance(entry.sample, str):
        paint_count(ax, entry.sample, x + LEGEND_SAMPLE / 2, y, scale)
    elif entry.sample.head == "both":
        paint_arc(ax, entry.sample, np.linspace((x, y), (x + LEGEND_SAMPLE, y), 30), scale)
    else:
        _paint_sample_line(ax, entry.sample, x, y, scale)
    start = x + LEGEND_SAMPLE + 6, y - LETTER_MIDDLE * LEGEND_FONT
    paint_text(ax, entry.label, *start, LEGEND_FONT * scale, va="baseline", color=QUIET_COLOR)


def _paint_sample_line(ax: Axes, stroke: Stroke, x: float, y: float, scale: float) -> None:
    """An ordinary line, which runs downwards, turned to run to the right."""
    from matplotlib.transforms import Affine2D

    before = len(ax.patches)
    straight = np.array([(0.0, LEGEND_SAMPLE), (0.0, LEGEND_SAMPLE / 2), (0.0, LEGEND_SAMPLE / 2), (0.0, 0.0)])
    paint_line(ax, stroke, straight, scale, zorder=2)
    turned = Affine2D().rotate_deg(90).translate(x + LEGEND_SAMPLE, y) + ax.transData
    for patch in ax.patches[before:]:
        patch.set_transform(turned)
