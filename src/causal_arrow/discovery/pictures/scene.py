"""A picture of a graph before it is painted: boxes, lines, arcs, a title and a legend, with lengths in points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from causal_arrow.discovery.labels import FONT_SIZE, LINE_LENGTH, MOST_LINES, Labels, text_size
from causal_arrow.discovery.pictures.files import save_figure
from causal_arrow.discovery.pictures.strokes import (
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
)
from causal_arrow.graphs.layout import Layout, Route

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PADDING = (6.5, 4.0)
FEW_VARIABLES = 20
ROOMY, TIGHT = {"gap": 18.0, "layer_gap": 36.0}, {"gap": 10.0, "layer_gap": 30.0}
"""Least room between boxes side by side and between layers, for few variables and for many."""
MARGIN = 12.0
LEAST_PORT_GAP = 4.5
"""A variable with many edges has a wider box, so that they leave and reach it this far apart."""

LETTER_MIDDLE = 0.33
"""How far the middle of a line of letters is above its baseline, in font sizes."""

LEGEND_LINE = 20.0
LEGEND_SAMPLE = 30.0
LEGEND_FONT = 9.5


@dataclass(frozen=True, eq=False)
class Boxes:
    """The names of variables and the sizes of their boxes."""

    labels: Labels
    widths: list[float]
    height: float

    @classmethod
    def of(cls, names: Sequence[str], adjacency: NDArray[np.bool_]) -> Boxes:
        """Boxes that hold the names, and wide enough for the edges at their lower and upper sides."""
        labels = Labels.of(names, lines=MOST_LINES, length=LINE_LENGTH)
        sizes = [
            np.max([labels.size(full), labels.size(safe)], axis=0)
            for full, safe in zip(labels.full, labels.safe, strict=True)
        ]
        ports = np.maximum(adjacency.sum(axis=0), adjacency.sum(axis=1))
        widths = [
            max(float(width) + 2 * PADDING[0], float(count - 1) * LEAST_PORT_GAP / 0.7)
            for (width, _), count in zip(sizes, ports, strict=True)
        ]
        return cls(labels, widths, max(float(tall) for _, tall in sizes) + 2 * PADDING[1])


def gaps_for(variables: int) -> dict[str, float]:
    """The room between boxes: where there are many, names can only be read if it is small."""
    return ROOMY if variables <= FEW_VARIABLES else TIGHT


Sample = Stroke | BoxStyle | str
"""What a legend explains: a line or an arc, a box, or a count."""


@dataclass(frozen=True)
class LegendEntry:
    """A sample and what it means, at a place in the legend."""

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
    """All that is to be painted. The origin is the lower left corner of the layout."""

    boxes: Boxes
    styles: list[BoxStyle]  # of the boxes
    layout: Layout
    lines: list[tuple[Route, Stroke]]  # the later ones on top
    arcs: list[tuple[Points, Stroke]]
    title: str
    legend: list[LegendEntry]
    undrawn: list[int] = field(default_factory=list)  # of each variable, how many edges are not drawn

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
        points = np.concatenate([np.zeros((1, 2)), *(points for points, _ in self.arcs)])
        beyond = max(0.0, -points[:, 0].min(), points[:, 0].max() - self.layout.width)
        above = max(0.0, points[:, 1].max() - self.layout.height)
        below = max(0.0, -points[:, 1].min())
        aside = max(aside, beyond)
        footer = max((entry.row + 1 for entry in self.legend), default=0) * LEGEND_LINE
        header = (2 * MARGIN + FONT_SIZE) if self.title else 0.0
        return (
            -aside - MARGIN,
            self.layout.width + aside + MARGIN,
            -below - footer - MARGIN - (MARGIN if footer else 0),
            self.layout.height + above + MARGIN + header,
        )

    @property
    def lowest(self) -> float:
        """The height of the lowest point of the drawing, 0 unless an arc hangs below the boxes."""
        return min([0.0, *(float(points[:, 1].min()) for points, _ in self.arcs)])

    @property
    def inches(self) -> tuple[float, float]:
        """The size at which text has the size of text."""
        left, right, bottom, top = self.frame
        return (right - left) / 72, (top - bottom) / 72

    def draw(self, ax: Axes | None) -> Axes:
        """Paint into axes, or into a new pyplot figure of the right size."""
        if ax is None:
            import matplotlib.pyplot as plt

            ax = plt.figure(figsize=self.inches).add_axes((0, 0, 1, 1))
        _paint(self, ax, self.boxes.labels.safe)
        return ax

    def save(self, paths: Sequence[str | Path], dpi: int, adapts: bool) -> None:
        """Write to files."""
        from matplotlib.figure import Figure

        for labels, files in self.boxes.labels.for_files(paths):
            figure = Figure(figsize=self.inches)
            _paint(self, figure.add_axes((0, 0, 1, 1)), labels)
            save_figure(figure, files, dpi, adapts)


def _paint(scene: Scene, ax: Axes, labels: Sequence[str]) -> None:
    left, right, bottom, top = scene.frame
    ax.set_axis_off()
    ax.set_aspect("equal")
    ax.set_xlim(left, right)
    ax.set_ylim(bottom, top)
    # Widths of lines and letters are in points of the page, everything else in units of the axes.
    page = ax.get_figure(root=True)
    assert page is not None
    box = ax.get_window_extent()
    scale = min(box.width / (right - left), box.height / (top - bottom)) * 72 / page.dpi
    for depth, (route, stroke) in enumerate(scene.lines):
        paint_line(ax, stroke, curve_of(route), scale, zorder=1 + depth / len(scene.lines))
    for points, stroke in scene.arcs:
        paint_arc(ax, stroke, points, scale)
    _paint_boxes(scene, ax, labels, scale)
    middle = (left + right) / 2
    ax.text(
        middle,
        top - MARGIN,
        scene.title,
        ha="center",
        va="top",
        color=TEXT_COLOR,
        fontsize=(FONT_SIZE + 1) * scale,
        weight="bold",
        parse_math=False,
    )
    start = middle - max((entry.x + entry.width for entry in scene.legend), default=0.0) / 2
    for entry in scene.legend:
        _paint_legend_entry(ax, entry, start, scene.lowest - 2 * MARGIN - (entry.row + 0.5) * LEGEND_LINE, scale)


def _paint_boxes(scene: Scene, ax: Axes, labels: Sequence[str], scale: float) -> None:
    boxes = scene.boxes
    for label, center, width, style in zip(labels, scene.layout.centers, boxes.widths, scene.styles, strict=True):
        paint_box(ax, center, (width, boxes.height), style, scale)
        one_line = "\n" not in label  # then all names of a layer stand on one line, whatever their letters
        ax.text(
            center[0],
            center[1] - (LETTER_MIDDLE * FONT_SIZE if one_line else 0.0),
            label,
            ha="center",
            va="baseline" if one_line else "center",
            zorder=4,
            fontsize=FONT_SIZE * scale,
            fontfamily=boxes.labels.families,
            color=style.text,
            parse_math=False,
            linespacing=1.05,
        )
    for center, width, count in zip(scene.layout.centers, boxes.widths, scene.undrawn, strict=False):
        if count:
            paint_count(ax, f"+{count}", center[0] + width / 2, center[1] + boxes.height / 2, scale)


def _paint_legend_entry(ax: Axes, entry: LegendEntry, start: float, y: float, scale: float) -> None:
    x = start + entry.x
    if isinstance(entry.sample, BoxStyle):
        paint_box(ax, (x + LEGEND_SAMPLE / 2, y), (LEGEND_SAMPLE, 0.55 * LEGEND_LINE), entry.sample, scale)
    elif isinstance(entry.sample, str):
        paint_count(ax, entry.sample, x + LEGEND_SAMPLE / 2, y, scale)
    elif entry.sample.head == "both":
        paint_arc(ax, entry.sample, np.linspace((x, y), (x + LEGEND_SAMPLE, y), 30), scale)
    else:
        _paint_sample_line(ax, entry.sample, x, y, scale)
    ax.text(
        x + LEGEND_SAMPLE + 6,
        y - LETTER_MIDDLE * LEGEND_FONT,
        entry.label,
        va="baseline",
        color=QUIET_COLOR,
        fontsize=LEGEND_FONT * scale,
        parse_math=False,
    )


def _paint_sample_line(ax: Axes, stroke: Stroke, x: float, y: float, scale: float) -> None:
    """An ordinary line, which runs downwards, turned to run to the right."""
    from matplotlib.transforms import Affine2D

    before = len(ax.patches)
    straight = np.array([(0.0, LEGEND_SAMPLE), (0.0, LEGEND_SAMPLE / 2), (0.0, LEGEND_SAMPLE / 2), (0.0, 0.0)])
    paint_line(ax, stroke, straight, scale, zorder=2)
    turned = Affine2D().rotate_deg(90).translate(x + LEGEND_SAMPLE, y) + ax.transData
    for patch in ax.patches[before:]:
        patch.set_transform(turned)
