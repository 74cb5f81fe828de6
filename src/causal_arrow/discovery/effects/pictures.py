"""Pictures of effects, with matplotlib alone."""

# S sets

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from causal_arrow.discovery.pictures import EDGE_COLOR, QUIET_COLOR, shortened
from causal_arrow.text import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from causal_arrow.discovery.effects.effect import Effect, Effects

Floats = NDArray[np.float64]

SHOWN_SETS = 6
"""Adjustment sets with a colour of their own; the others share a grey."""
POINTS = 400
MOST_CAUSES = 30


def draw_effect(effect: Effect, ax: Axes | None = None) -> Axes:
    """The density of the effect, one colour per adjustment set, with the interval below and a stem for "no effect"."""
    ax = _axes(ax, (6.4, 3.6))
    mixture = effect.distribution
    low, high = (mixture.quantile(level) for level in (0.002, 0.998))
    margin = 0.05 * (high - low) or 1.0
    x = np.linspace(min(low, 0) - margin, max(high, 0) + margin, POINTS)
    shares = [
        weight * _density(x, center, spread, freedom)
        for weight, center, spread, freedom in zip(
            mixture.weights, mixture.centers, mixture.spreads, mixture.freedoms, strict=True
        )
    ]
    labels = [_set_label(each.adjustment_set) for each in effect.sets[:SHOWN_SETS]]
    layers = shares[:SHOWN_SETS]
    if len(shares) > SHOWN_SETS:
        layers.append(np.sum(shares[SHOWN_SETS:], axis=0))
        labels.append(f"{len(shares) - SHOWN_SETS} more sets")
    colors = [*(f"C{place}" for place in range(min(len(shares), SHOWN_SETS))), "#b9c0cc"][: len(layers)]
    if layers:
        ax.stackplot(x, *layers, labels=labels, colors=colors, alpha=0.85)
    top = float(np.sum(layers, axis=0).max()) if layers else 1.0
    if mixture.at_zero > 0:
        ax.vlines(
            0, 0, top * mixture.at_zero, color=QUIET_COLOR, linewidth=3, label=f"no effect, {mixture.at_zero:.0%}"
        )
    ax.hlines(-0.05 * top, *effect.interval, color=EDGE_COLOR, linewidth=3, label="90% interval")
    ax.plot([effect.mean], [-0.05 * top], "o", color=EDGE_COLOR)
    ax.set_ylim(bottom=-0.1 * top)
    ax.set_yticks([])
    ax.set_xlabel(f"change of {visible(effect.outcome)} {visible(effect.change)}", parse_math=False)
    legend = ax.legend(frameon=False, fontsize=8)
    for text in legend.get_texts():
        text.set_parse_math(False)
    ax.spines[["left", "right", "top"]].set_visible(False)
    return ax


def draw_effects(effects: Effects, ax: Axes | None = None) -> Axes:
    """The standardized effect of each cause with its interval, fainter the less probable an effect is."""
    shown = [each for each in effects.effects if each.probability_of_none < 1][:MOST_CAUSES]
    ax = _axes(ax, (6.4, 1.2 + 0.28 * max(1, len(shown))))
    ax.axvline(0, color=QUIET_COLOR, linewidth=0.8)
    for place, each in enumerate(shown):
        low, high = (end * each.standard_unit for end in each.interval)
        probability = 1 - each.probability_of_none
        ax.plot([low, high], [place, place], color=EDGE_COLOR, alpha=0.2 + 0.8 * probability, linewidth=2)
        ax.plot([each.standardized], [place], "o", color=EDGE_COLOR, alpha=0.2 + 0.8 * probability)
    labels = [f"{shortened(visible(each.treatment), 1, 20)} ({1 - each.probability_of_none:.0%})" for each in shown]
    ax.set_yticks(range(len(shown)), labels, parse_math=False)
    ax.set_ylim(len(shown) - 0.5, -0.5)
    ax.set_xlabel(
        f"standardized effect on {visible(effects.outcome)}",
        parse_math=False,
    )
    ax.spines[["right", "top"]].set_visible(False)
    return ax


def _axes(ax: Axes | None, inches: tuple[float, float]) -> Axes:
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.figure(figsize=inches, layout="constrained").add_subplot()


def _density(x: Floats, center: float, spread: float, freedom: float) -> Floats:
    from scipy.stats import t

    return np.asarray(t.pdf(x, freedom, center, spread))


def _set_label(names: tuple[str, ...]) -> str:
    """The members, cut short."""
    text = ", ".join(visible(name) for name in names)
    return shortened(text, 1, 34) if names else "nothing"
