"""A picture of a graph before it is painted: boxes, lines, arcs, a title and a legend, with lengths in points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from causal_arrow.discovery.pictures.labels import FONT_SIZE, LINE_LENGTH, MAX_LINES, Labels, text_size
from causal_arrow.discovery.pictures.style import (
    QUIET_COLOR,
    TEXT_COLOR,
    BoxStyle,
    Points,
    Stroke,
    curve_of,
    paint_arc,
    paint_box,
    paint_count,
    paint_line,
    paint_text,
    save_figure,
)
from causal_arrow.graphs.layout import ASPECT, Layout, Route, layered_layout

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PADDING = (6.5, 4.0)
FEW_VARIABLES = 20
ROOMY, TIGHT = {"gap": 18.0, "layer_gap": 36.0}, {"gap": 10.0, "layer_gap": 30.0}
"""Least room between boxes side by side and between layers, for few variables and for many."""
MARGIN = 12.0
MIN_PORT_GAP = 4.5
"""A variable with many edges has a wider box, so that they leave and reach it this far apart."""
LETTER_MIDDLE = 0.33
"""Height of the middle of a line of letters above its baseline, in font sizes."""
LEGEND_LINE, LEGEND_SAMPLE, LEGEND_FONT = 20.0, 30.0, 9.5

Sample = Stroke | BoxStyle | str
"""What a legend explains: a line or an arc, a box, or a count."""


@dataclass(frozen=True, eq=False)
class Boxes:
    """The names of variables, the sizes of their boxes, and where they are."""

    labels: Labels
    widths: list[float]
    height: float
    layout: Layout

    @classmethod
    def of(cls, names: Sequence[str], adjacency: NDArray[np.bool_], aspect: float = ASPECT) -> Boxes:
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
        return cls(labels, widths, height, layered_layout(adjacency, widths, height, aspect=aspect, **gaps))


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

    def save(self, paths: Sequence[str | Path], dpi: int, adapts: bool) -> None:
        """Write to files."""
        from matplotlib.figure import Figure

        for labels, files in self.boxes.labels.for_files(paths):
            figure = Figure(figsize=self._inches)
            self._paint(figure.add_axes((0, 0, 1, 1)), labels)
            save_figure(figure, files, dpi, adapts)

    def _paint(self, ax: Axes, labels: Sequence[str]) -> None:
        left, right, bottom, top = self.frame
        ax.set_axis_off()
        ax.set_aspect("equal")
        ax.set_xlim(left, right)
        ax.set_ylim(bottom, top)
        # Widths of lines and letters are in points of the page, everything else in units of the axes.
        page = ax.get_figure(root=True)
        assert page is not None
        window = ax.get_window_extent()
        scale = min(window.width / (right - left), window.height / (top - bottom)) * 72 / page.dpi
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
    index = x + LEGEND_SAMPLE + 6, y - LETTER_MIDDLE * LEGEND_FONT
    paint_text(ax, entry.label, *index, LEGEND_FONT * scale, va="baseline", color=QUIET_COLOR)


def _paint_sample_line(ax: Axes, stroke: Stroke, x: float, y: float, scale: float) -> None:
    """An ordinary line, which runs downwards, turned to run to the right."""
    from matplotlib.transforms import Affine2D

    before = len(ax.patches)
    straight = np.array([(0.0, LEGEND_SAMPLE), (0.0, LEGEND_SAMPLE / 2), (0.0, LEGEND_SAMPLE / 2), (0.0, 0.0)])
    paint_line(ax, stroke, straight, scale, zorder=2)
    turned = Affine2D().rotate_deg(90).translate(x + LEGEND_SAMPLE, y) + ax.transData
    for patch in ax.patches[before:]:
        patch.set_transform(turned)
