"""Uncertainty about graphs and from few observations, in one distribution.

Each adjustment set gives a Student distribution around its estimate, weighted by the graphs that ask for the set.
"""

# S sets

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from causal_arrow.discovery.effects.linear import SetEstimate
from causal_arrow.discovery.pictures.scene import EDGE_COLOR, QUIET_COLOR, shortened
from causal_arrow.text import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]

HALVINGS = 100
POINTS = 400
SHOWN_SETS = 6  # adjustment sets with a color of their own; the others share a gray
MIN_PEAK = 0.25  # height of a peak, of the highest one, from which it counts


@dataclass(frozen=True, eq=False)
class Mixture:
    """Student distributions with weights."""

    weights: Floats  # (S,), their sum is 1
    centers: Floats  # (S,)
    spreads: Floats  # (S,)
    freedoms: Floats  # (S,)

    @classmethod
    def of(cls, weights: Sequence[float], estimates: Sequence[SetEstimate]) -> Mixture:
        """The mixture of estimates, whose weights are brought to a sum of 1."""
        shares = np.array(weights, dtype=np.float64)
        return cls(shares / shares.sum(), *np.array([each[:3] for each in estimates], dtype=np.float64).T)

    @property
    def mean(self) -> float:
        """The average over all graphs."""
        return float(self.weights @ self.centers)

    @property
    def between(self) -> float:
        """Standard deviation of the estimates between adjustment sets."""
        return float(np.sqrt(self.weights @ np.square(self.centers - self.mean)))

    @property
    def within(self) -> float:
        """Standard error within adjustment sets: the root of the mean square."""
        return float(np.sqrt(self.weights @ np.square(self.spreads)))

    def quantile(self, level: float) -> float:
        """The smallest value up to which there is this much probability."""
        from scipy.special import stdtr, stdtrit

        # A quantile of a mixture lies between the smallest and the largest one of its parts.
        ends = self.centers + self.spreads * stdtrit(self.freedoms, level)
        low, high = float(ends.min()), float(ends.max())
        for _ in range(HALVINGS if high > low else 0):
            middle = (low + high) / 2
            below = stdtr(self.freedoms, (middle - self.centers) / self.spreads) @ self.weights
            low, high = (low, middle) if below >= level else (middle, high)
        return high

    def interval(self, level: float) -> tuple[float, float]:
        """The values between which this much probability lies, with equal shares beyond both ends."""
        return self.quantile((1 - level) / 2), self.quantile((1 + level) / 2)

    def densities(self, points: Floats) -> Floats:
        """The density of each part at each point, times its weight.  (S, X)"""
        from scipy.stats import t

        shares = t.pdf(points, self.freedoms[:, None], self.centers[:, None], self.spreads[:, None])
        return np.asarray(self.weights[:, None] * shares)

    def points(self, count: int) -> Floats:
        """Points that span nearly all of the probability and zero, for a picture.  (count,)"""
        low, high = (self.quantile(share) for share in (0.002, 0.998))
        margin = 0.05 * (high - low) or 1.0
        return np.linspace(min(low, 0) - margin, max(high, 0) + margin, count)

    def draw(
        self,
        sets: Sequence[tuple[str, ...]],
        middle: float,
        interval: tuple[float, float],
        label: str,
        ax: Axes | None = None,
    ) -> Axes:
        """Draw the density, one color per adjustment set, with the interval below and a line at zero."""
        ax = axes_for(ax, (6.4, 3.6))
        x = self.points(POINTS)
        shares = list(self.densities(x))
        if len(sets) == 1:
            shares = [np.sum(shares, axis=0)]
        labels = [shortened(visible(", ".join(members)), 1, 34) or "nothing" for members in sets[:SHOWN_SETS]]
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

    def humps(self) -> tuple[float, ...]:
        """The peaks of the density between which it falls below half of the lower one, from left to right."""
        points = np.linspace(self.quantile(0.01), self.quantile(0.99), POINTS)
        density = self.densities(points).sum(axis=0)
        peaks: list[int] = []
        for index in np.flatnonzero((density >= np.roll(density, 1)) & (density >= np.roll(density, -1))).tolist():
            if density[index] < MIN_PEAK * density.max():
                continue
            if peaks and density[peaks[-1] : index].min() > min(density[peaks[-1]], density[index]) / 2:
                peaks[-1] = max(peaks[-1], index, key=lambda each: float(density[each]))
            else:
                peaks.append(index)
        return tuple(float(points[index]) for index in peaks)

    def averaged_with(self, other: Mixture) -> Mixture:
        """The distribution of the mean of a value of this one and an independent value of the other."""
        spreads = np.hypot(self.spreads[:, None], other.spreads).ravel() / 2
        terms = np.square(np.square(self.spreads) / 4)[:, None] / self.freedoms[:, None]
        terms = terms + np.square(np.square(other.spreads) / 4) / other.freedoms
        return Mixture(
            np.outer(self.weights, other.weights).ravel(),
            ((self.centers[:, None] + other.centers) / 2).ravel(),
            spreads,
            spreads**4 / terms.ravel(),  # by Welch and Satterthwaite
        )


def axes_for(ax: Axes | None, inches: tuple[float, float]) -> Axes:
    """The axes to draw on, by default those of a new figure."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.figure(figsize=inches, layout="constrained").add_subplot()


def axes_of_rows(ax: Axes | None, labels: Sequence[str]) -> Axes:
    """The axes to draw on, with a labeled row for each thing, the first on top."""
    ax = axes_for(ax, (6.4, 1.2 + 0.28 * max(1, len(labels))))
    ax.set_yticks(range(len(labels)), labels, parse_math=False)
    ax.set_ylim(max(1, len(labels)) - 0.5, -0.5)
    ax.spines[["right", "top"]].set_visible(False)
    return ax
