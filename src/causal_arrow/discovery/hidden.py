"""Which hidden causes to show: pairs that stand out from the level of their table.

In many real tables nearly every pair gets nearly the same probability of a hidden common cause. That is no finding
about pairs: such a table does not distinguish hidden causes.
"""

# P variables

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

HIDDEN = ("none", "standing-out", "all")
"""Choices for the hidden causes to show: no pair, pairs that stand out from their table, or all above the threshold."""
HIDDEN_CAUSE = 0.5
"""Above this probability, two variables are shown to share a hidden cause, unless another threshold is given."""

STANDS_OUT = 2.0
"""A pair stands out if its log-odds exceed the median of the table by more than this."""
MIN_PAIRS = 10
"""With fewer pairs a table has no level, and every pair above the threshold stands out."""


@dataclass(frozen=True, eq=False)
class Level:
    """How probable hidden causes are in a table, and which pairs are more probable than that."""

    median: float
    """Of the probabilities of all pairs; 0 for a table of few."""
    standing_out: Bools  # (P, P), of any probability


def level_of(probabilities: Floats, exempt: Bools) -> Level:
    """The level of a table, given the probabilities of pairs (P, P), without the pairs that are `exempt`."""
    pairs = np.triu(~exempt, 1)
    if pairs.sum() < MIN_PAIRS:
        return Level(0.0, ~exempt)
    median = float(np.median(probabilities[pairs]))
    least = log_odds(np.array(median)) + STANDS_OUT
    return Level(median, (log_odds(probabilities) > least) & ~exempt)


def is_flagged(probabilities: Floats, threshold: float = HIDDEN_CAUSE) -> Bools:
    """Which pairs are above a threshold, by the digits that files have."""
    return np.asarray(np.round(probabilities, 6) > threshold)


def log_odds(probabilities: Floats) -> Floats:
    """The log-odds of probabilities, bounded, and to a few digits: what stands out must not depend on a processor."""
    bounded = np.clip(np.round(probabilities, 6), 1e-6, 1 - 1e-6)
    return np.asarray(np.log(bounded) - np.log1p(-bounded))
