"""Pictures of effects, with matplotlib alone."""

# S sets

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from causal_arrow.discovery.effects.mixture import Mixture
from causal_arrow.discovery.pictures.scene import EDGE_COLOR, QUIET_COLOR, shortened
from causal_arrow.text import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHOWN_SETS = 6
"""Adjustment sets with a colour of their own; the others share a grey."""
POINTS = 400
MAX_CAUSES = 30


def draw_effect(
    mixture: Mixture,
    sets: Sequence[tuple[str, ...]],
    middle: float,
    interval: tuple[float, float],
    label: str,
    ax: Axes | None = None,
) -> Axes:
    """The density of an effect, one colour per adjustment set, with the interval below and a line at zero."""
    ax = _axes(ax, (6.4, 3.6))
    x = mixture.points(POINTS)
    shares = list(mixture.densities(x))
    if len(sets) == 1:
        shares = [np.sum(shares, axis=0)]
    labels = [_set_label(members) for members in sets[:SHOWN_SETS]]
    layers = shares[:SHOWN_SETS]
    colors = [f"C{index}" for index in range(len(layers))]
    if len(shares) > SHOWN_SETS:
        layers.append(np.sum(shares[SHOWN_SETS:], axis=0))
        labels.append(f"{len(shares) - SHOWN_SETS} more sets")
        colors.append("#b9c0cc")
    ax.stackplot(x, *layers, labels=labels, colors=colors, alpha=0.85)
    top = float(np.sum(layers, axis=0).max()) or 1.0
    ax.axvline(0, color=QUIET_COLOR, linewidth=0.8)
    ends = np.clip(interval, x[0], x[-1])
    ax.hlines(-0.05 * top, *ends, color=EDGE_COLOR, linewidth=3, label="90% interval")
    ax.plot([middle], [-0.05 * top], "o", color=EDGE_COLOR)
    ax.set_ylim(bottom=-0.1 * top)
    ax.set_yticks([])
    ax.set_xlabel(visible(label), parse_math=False)
    for text in ax.legend(frameon=False, fontsize=8).get_texts():
        text.set_parse_math(False)
    ax.spines[["left", "right", "top"]].set_visible(False)
    return ax


class Bar(NamedTuple):
    """One cause in a picture of many: its standardized effect with the interval, and how probable an effect is."""

    name: str
    share: str
    probability: float
    effect: float
    interval: tuple[float, float]


def draw_effects(causes: Sequence[Bar], label: str, ax: Axes | None = None) -> Axes:
    """The effect of each cause with its interval, fainter the less probable an effect is."""
    shown = causes[:MAX_CAUSES]
    ax = _axes(ax, (6.4, 1.2 + 0.28 * max(1, len(shown))))
    ax.axvline(0, color=QUIET_COLOR, linewidth=0.8)
    for index, cause in enumerate(shown):
        alpha = 0.2 + 0.8 * cause.probability
        ax.plot(cause.interval, [index, index], color=EDGE_COLOR, alpha=alpha, linewidth=2)
        ax.plot([cause.effect], [index], "o", color=EDGE_COLOR, alpha=alpha)
    labels = [f"{shortened(visible(cause.name), 1, 20)} ({cause.share})" for cause in shown]
    ax.set_yticks(range(len(shown)), labels, parse_math=False)
    ax.set_ylim(max(1, len(shown)) - 0.5, -0.5)
    ax.set_xlabel(visible(label), parse_math=False)
    ax.spines[["right", "top"]].set_visible(False)
    return ax


def draw_plan(rows: Sequence[tuple[str, float, bool]], title: str, label: str, ax: Axes | None = None) -> Axes:
    """A bar per experiment, name, gain and whether it is among those chosen, which have a colour of their own."""
    shown = rows[:MAX_CAUSES]
    ax = _axes(ax, (6.4, 1.2 + 0.28 * max(1, len(shown))))
    colors = [EDGE_COLOR if chosen else "#b9c0cc" for _, _, chosen in shown]
    ax.barh(range(len(shown)), [gain for _, gain, _ in shown], color=colors, height=0.7)
    labels = [shortened(visible(name), 1, 34) for name, _, _ in shown]
    ax.set_yticks(range(len(shown)), labels, parse_math=False)
    ax.set_ylim(max(1, len(shown)) - 0.5, -0.5)
    ax.set_xlim(left=0)
    ax.set_title(shortened(visible(title), 1, 60), fontsize=10, parse_math=False)
    ax.set_xlabel(label)
    ax.spines[["right", "top"]].set_visible(False)
    return ax


def _axes(ax: Axes | None, inches: tuple[float, float]) -> Axes:
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.figure(figsize=inches, layout="constrained").add_subplot()


def _set_label(names: tuple[str, ...]) -> str:
    """The members, cut short."""
    text = ", ".join(visible(name) for name in names)
    return shortened(text, 1, 34) if names else "nothing"
