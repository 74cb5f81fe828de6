"""Edge probabilities as a heat map: `draw_probabilities`, `save_probabilities`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from causal_arrow.discovery.answer import Answer
from causal_arrow.discovery.pictures.labels import Labels
from causal_arrow.discovery.pictures.style import EDGE_COLOR, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
