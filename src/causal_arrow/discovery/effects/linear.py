"""Linear effects by least squares, for thousands of adjustment sets at once.

By Frisch, Waugh and Lovell, the coefficient of the treatment is that of a regression of what is left of the outcome on
what is left of the treatment, both after the adjustment set. One matrix of products serves all sets.
"""

# N observations, Q columns of the design, S sets, k columns of a set

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from causal_arrow.discovery.effects.adjustment import Set
from causal_arrow.tables.table import in_safe_units

Floats = NDArray[np.float64]

CELLS_PER_PIECE = 2**22
"""Residuals that are kept at a time."""

MIN_LEFT = 1e-9
"""Share of the treatment's variance that the adjustment set must leave: below it the two are one variable."""

RIDGE = 1e-12
"""Of the variance; makes collinear columns of a set harmless without changing an estimate in its digits."""


class SetEstimate(NamedTuple):
    """The effect by one adjustment set, per unit of the treatment."""

    effect: float
    standard_error: float
    freedom: float
    """Degrees of freedom of the Student distribution that the estimate follows around the truth."""
    partial_correlation: float
    """Of treatment and outcome, given the set; NaN for an estimator that is not linear."""


@dataclass(frozen=True, eq=False)
class Design:
    """The observations as columns of a regression: numbers as they are, categories as indicators of their levels."""

    values: Floats  # (N, Q), standardized
    deviations: Floats  # (Q,)
    indices: tuple[tuple[int, ...], ...]  # of each variable, its columns
    always: tuple[int, ...] = ()  # columns that every regression has beside those of its set

    @classmethod
    def of(cls, blocks: Sequence[Floats]) -> Design:
        """The design of variables given as blocks of columns, (N, q) each."""
        starts = np.cumsum([0, *(block.shape[1] for block in blocks)])
        indices = tuple(tuple(range(start, stop)) for start, stop in pairwise(starts.tolist()))
        values, exponents = in_safe_units(np.concatenate(blocks, axis=1))
        centered = values - values.mean(axis=0)
        deviations = centered.std(axis=0)
        return cls(centered / np.where(deviations > 0, deviations, 1.0), np.ldexp(deviations, exponents), indices)

    def varies(self, variable: int) -> bool:
        """Whether a variable is not constant."""
        return bool((self.deviations[list(self.indices[variable])] > 0).all())


def curved(design: Design, treatment: int, outcome: int, numbers: Sequence[bool]) -> Design:
    """The design with cubic curves for all `numbers`: the coefficient of the treatment is then its average slope.

    With c what the treatment is above its mean, c² and c³ − 3 mean(c²) c have an average slope of zero. Beside them,
    the coefficient of the treatment itself is the average slope of the whole curve. A column of few values gets a curve
    of as many parameters as they can tell.
    """

    def powers(column: Floats) -> list[Floats]:
        squares = np.square(column)
        distinct = len(np.unique(column))
        return [squares, column * squares - 3 * squares.mean() * column][: max(0, distinct - 2)]

    blocks = []
    for index, columns in enumerate(design.indices):
        own = [design.values[:, column] for column in columns]
        if own and numbers[index] and index not in (treatment, outcome):
            own += powers(own[0])
        blocks.append(np.stack(own, axis=1) if own else design.values[:, :0])
    bends = powers(design.values[:, design.indices[treatment][0]]) if numbers[treatment] else []
    blocks.append(np.stack(bends, axis=1) if bends else design.values[:, :0])
    whole = Design.of(blocks)
    deviations = whole.deviations.copy()
    for end in (treatment, outcome):  # whose columns came in standardized
        deviations[list(whole.indices[end])] = design.deviations[list(design.indices[end])]
    return Design(whole.values, deviations, whole.indices[:-1], whole.indices[-1])


def linear_estimates(design: Design, treatment: int, outcome: int, sets: Sequence[Set]) -> dict[Set, SetEstimate]:
    """The effect of the treatment by each set for which there are enough observations.

    Standard errors are robust against unequal variances (MacKinnon and White's HC1).
    """
    observations = len(design.values)
    (t,), (y,) = design.indices[treatment], design.indices[outcome]
    columns = {
        members: [*(index for member in members for index in design.indices[member]), *design.always]
        for members in sets
    }
    fitting = [members for members in sets if len(columns[members]) + 3 <= observations]
    fitting.sort(key=lambda members: len(columns[members]))  # sets of like size are padded to one shape
    products = design.values.T @ design.values / observations  # (Q, Q), correlations
    per_piece = max(1, CELLS_PER_PIECE // max(observations, len(products) ** 2))
    found: dict[Set, SetEstimate] = {}
    for start in range(0, len(fitting), per_piece):
        piece = fitting[start : start + per_piece]
        estimates = _estimate(design.values, products, t, y, [columns[members] for members in piece])
        unit = design.deviations[y] / design.deviations[t]
        for members, effect, error, correlation in zip(piece, *estimates, strict=True):
            if np.isfinite(effect):
                freedom = observations - len(columns[members]) - 2
                found[members] = SetEstimate(
                    float(effect * unit), float(error * unit), float(freedom), float(correlation)
                )
    return found


def _estimate(
    values: Floats, products: Floats, t: int, y: int, columns: Sequence[Sequence[int]]
) -> tuple[Floats, Floats, Floats]:
    """Effect, standard error and partial correlation by each list of columns; NaN where nothing is left.  (S,) each"""
    observations = len(values)
    widest = max(1, *(len(some) for some in columns))
    sizes = np.array([len(some) for some in columns])
    index = np.zeros((len(columns), widest), dtype=np.intp)  # (S, k), padded
    for row, some in enumerate(columns):
        index[row, : len(some)] = some
    real = np.arange(widest) < sizes[:, None]
    inside = products[index[:, :, None], index[:, None, :]] * (real[:, :, None] & real[:, None, :])
    inside += np.where(real, RIDGE, 1.0)[:, :, None] * np.eye(widest)
    across = products[index][:, :, [t, y]] * real[:, :, None]  # (S, k, 2)
    weights = np.linalg.solve(inside, across)
    left = np.full((len(columns), 2, len(products)), 0.0)  # what to add up for what is left of treatment and outcome
    rows = np.arange(len(columns))[:, None]
    for side, end in enumerate((t, y)):
        np.subtract.at(left[:, side], (rows, index), weights[:, :, side] * real)
        left[:, side, end] += 1.0
    treated, outcomes = values @ left[:, 0].T, values @ left[:, 1].T  # (N, S) each
    spread = np.square(treated).mean(axis=0)
    enough = spread > MIN_LEFT
    spread = np.where(enough, spread, 1.0)
    effects = (treated * outcomes).mean(axis=0) / spread
    residuals = outcomes - effects * treated
    freedom = observations - sizes - 2
    # 1e-14: residuals of a relation without any noise are rounding, which must not become certainty.
    variances = np.square(treated * np.maximum(np.abs(residuals), 1e-14)).mean(axis=0) / np.square(spread) / freedom
    remaining = np.square(outcomes).mean(axis=0)
    correlations = effects * np.sqrt(spread / np.maximum(remaining, 1e-28))
    nothing = np.where(enough, 1.0, np.nan)
    return effects * nothing, np.sqrt(variances) * nothing, np.clip(correlations, -1, 1) * nothing
