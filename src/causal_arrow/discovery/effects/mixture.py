"""Doubt about graphs and doubt from few observations, in one distribution.

Each adjustment set gives a Student distribution around its estimate; a set counts as often as it was asked for. Graphs
without a path from treatment to outcome add a point at zero.
"""

# S sets

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

HALVINGS = 100


@dataclass(frozen=True, eq=False)
class Mixture:
    """Student distributions with weights, and a point at zero with the rest of the weight."""

    weights: Floats  # (S,), sums to 1 − at_zero
    centers: Floats  # (S,)
    spreads: Floats  # (S,)
    freedoms: Floats  # (S,)
    at_zero: float

    @property
    def mean(self) -> float:
        """The average over all graphs."""
        return float(self.weights @ self.centers)

    def below(self, points: float | Floats) -> Floats:
        """Probability of a value up to each point.  (...)"""
        from scipy.special import stdtr

        points = np.asarray(points, dtype=np.float64)
        parts = stdtr(self.freedoms, (points[..., None] - self.centers) / self.spreads)
        return np.asarray(parts @ self.weights + self.at_zero * (points >= 0))

    def quantile(self, level: float) -> float:
        """The smallest value up to which there is this much probability."""
        from scipy.special import stdtrit

        # A quantile of a mixture lies between the smallest and the largest one of its parts.
        ends = self.centers + self.spreads * stdtrit(self.freedoms, level)
        ends = np.append(ends, 0.0) if self.at_zero > 0 else ends
        low, high = float(ends.min()), float(ends.max())
        if self.at_zero > 0 and float(self.below(0.0)) >= level > float(self.below(0.0)) - self.at_zero:
            return 0.0  # the point itself, not a number near it
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            low, high = (low, middle) if self.below(middle) >= level else (middle, high)
        return high

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

    def without_zero(self) -> Mixture:
        """The same without the point at zero."""
        return replace(self, weights=self.weights / self.weights.sum(), at_zero=0.0)

    def interval(self, level: float) -> tuple[float, float]:
        """The values between which this much probability lies, with equal shares beyond both ends."""
        return self.quantile((1 - level) / 2), self.quantile((1 + level) / 2)


def mixture_of(
    weights: Sequence[float], centers: Sequence[float], spreads: Sequence[float], freedoms: Sequence[float]
) -> Mixture:
    """The mixture with these parts; what their weights leave of 1 is the point at zero."""
    shares, middles, errors, degrees = (
        np.array(some, dtype=np.float64) for some in (weights, centers, spreads, freedoms)
    )
    rest = 1.0 - float(shares.sum())
    return Mixture(shares, middles, errors, degrees, at_zero=rest if rest > 1e-12 else 0.0)
