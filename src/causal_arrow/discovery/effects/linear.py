"""Linear effects by least squares, for thousands of adjustment sets on one table.

By Frisch, Waugh and Lovell, the coefficient of the treatment is that of a regression of the residual outcome on the
residual treatment, both after the adjustment set. One matrix of products serves all sets.
"""

# N observations, Q columns of the design, k columns of a set

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from causal_arrow.discovery.effects.adjustment import Set
from causal_arrow.tables.table import in_safe_units

Floats = NDArray[np.float64]
Clusters = NDArray[np.intp] | None
"""The cluster of each observation, numbered from 0."""

MIN_LEFT = 1e-9
"""Share of the treatment's variance that the adjustment set must leave: below it the two are one variable."""
RIDGE = 1e-12
"""Share of the variance; makes collinear columns of a set harmless without changing the digits of an estimate."""
ROWS_PER_COLUMN = 200
"""With more observations than this per column, leverages are taken to be equal: they hardly matter."""


class Moments(NamedTuple):
    """What each observation contributes: over any group of them, the effect is Σ numerator / Σ denominator."""

    numerator: Floats  # (N,)
    denominator: Floats  # (N,)


class SetEstimate(NamedTuple):
    """The effect by one adjustment set, per unit of the treatment."""

    effect: float
    standard_error: float
    freedom: float
    """Degrees of freedom of the Student distribution that the estimate follows around the truth."""
    partial_correlation: float
    """Of treatment and outcome, given the set; NaN for an estimator that is not linear."""
    moments: Moments | None = None
    """For effects within groups, where they were asked for."""


def estimate_from(
    moments: Moments,
    freedom: float,
    clusters: Clusters = None,
    inflation: Floats | float = 1.0,
    correlation: float = math.nan,
    keep: bool = True,
) -> SetEstimate:
    """The effect over all observations, with a standard error robust against unequal variances or within clusters.

    `inflation` (N,) makes up for residuals that are too small: 1 / (1 − leverage) for MacKinnon and White's HC3, its
    root for HC2.
    """
    numerator, denominator = moments
    total = denominator.sum()
    effect = float(numerator.sum() / total)
    influence = (numerator - effect * denominator) * inflation / total
    if clusters is not None:
        influence = np.bincount(clusters, influence)
        count = len(influence)
        influence = influence * math.sqrt(count / max(1, count - 1))
        freedom = min(freedom, count - 1)
    error = float(np.linalg.norm(influence))
    return SetEstimate(effect, error, float(freedom), correlation, moments if keep else None)


@dataclass(frozen=True, eq=False)
class Design:
    """The observations as columns of a regression: numbers as they are, categories as indicators of their levels."""

    values: Floats  # (N, Q), standardized
    deviations: Floats  # (Q,)
    columns_of: tuple[tuple[int, ...], ...]  # of each variable, its columns
    always: tuple[int, ...] = ()  # columns that every regression has in addition to those of its set

    @classmethod
    def of(cls, blocks: Sequence[Floats]) -> Design:
        """The design of variables given as blocks of columns, (N, q) each."""
        starts = np.cumsum([0, *(block.shape[1] for block in blocks)])
        columns_of = tuple(tuple(range(start, stop)) for start, stop in pairwise(starts.tolist()))
        values, exponents = in_safe_units(np.concatenate(blocks, axis=1))
        centered = values - values.mean(axis=0)
        deviations = centered.std(axis=0)
        standardized = centered / np.where(deviations > 0, deviations, 1.0)
        return cls(np.asfortranarray(standardized), np.ldexp(deviations, exponents), columns_of)

    def varies(self, variable: int) -> bool:
        """Whether a variable is not constant."""
        return bool((self.deviations[list(self.columns_of[variable])] > 0).all())

    def columns(self, members: Set) -> list[int]:
        """The columns of an adjustment set."""
        return [*(index for member in members for index in self.columns_of[member]), *self.always]


def curved(design: Design, treatment: int, outcome: int, numbers: Sequence[bool]) -> Design:
    """The design with cubic curves for all `numbers`: the coefficient of the treatment is then its average slope.

    With c what the treatment is above its mean, c² and c³ − 3 mean(c²) c have an average slope of zero. With them in
    the regression, the coefficient of the treatment itself is the average slope of the whole curve. A column of few
    values gets a curve of as many parameters as they can support.
    """

    def powers(column: Floats) -> list[Floats]:
        squares = np.square(column)
        distinct = len(np.unique(column))
        return [squares, column * squares - 3 * squares.mean() * column][: max(0, distinct - 2)]

    blocks = []
    for index, columns in enumerate(design.columns_of):
        own = [design.values[:, column] for column in columns]
        if own and numbers[index] and index not in (treatment, outcome):
            own += powers(own[0])
        blocks.append(np.stack(own, axis=1) if own else design.values[:, :0])
    bends = powers(design.values[:, design.columns_of[treatment][0]]) if numbers[treatment] else []
    blocks.append(np.stack(bends, axis=1) if bends else design.values[:, :0])
    whole = Design.of(blocks)
    deviations = whole.deviations.copy()
    for end in (treatment, outcome):  # whose columns came in standardized
        deviations[list(whole.columns_of[end])] = design.deviations[list(design.columns_of[end])]
    return Design(whole.values, deviations, whole.columns_of[:-1], whole.columns_of[-1])


def linear_estimates(
    design: Design,
    treatment: int,
    outcome: int,
    sets: Sequence[Set],
    clusters: Clusters = None,
    power: float = 1.0,
    keep: bool = False,
) -> dict[Set, SetEstimate]:
    """The effect of the treatment by each set for which there are enough observations.

    Standard errors are robust: MacKinnon and White's HC3, or HC2 with a `power` of one half; with `keep`, each estimate
    keeps its moments.
    """
    observations = len(design.values)
    (t,), (y,) = design.columns_of[treatment], design.columns_of[outcome]
    unit = design.deviations[y] / design.deviations[t]
    products = design.values.T @ design.values / observations  # (Q, Q), correlations
    found: dict[Set, SetEstimate] = {}
    for members in sets:
        columns = design.columns(members)
        freedom = observations - len(columns) - 2
        if freedom < 1:
            continue
        inside = products[np.ix_(columns, columns)] + RIDGE * np.eye(len(columns))
        weights = np.linalg.solve(inside, products[np.ix_(columns, [t, y])])
        adjusted = design.values[:, columns]
        left, rest = (design.values[:, [t, y]] - adjusted @ weights).T  # (N,) each
        spread = float(left @ left)
        if not spread > MIN_LEFT * observations:
            continue
        effect = float(left @ rest) / spread
        # 1e-14: residuals of a relation without any noise are rounding, which must not become certainty.
        residuals = rest - effect * left
        residuals = np.copysign(np.maximum(np.abs(residuals), 1e-14), residuals)
        if observations > ROWS_PER_COLUMN * (len(columns) + 2):
            leverages: Floats | float = (len(columns) + 2) / observations
        else:
            inverse = np.linalg.cholesky(np.linalg.inv(inside))
            leverages = np.square(adjusted @ inverse).sum(axis=1) / observations
            leverages += 1 / observations + np.square(left) / spread
        moments = Moments(left * (residuals + effect * left) * unit, np.square(left))
        found[members] = estimate_from(
            moments,
            freedom,
            clusters,
            np.maximum(1 - leverages, 1e-3) ** -power,
            float(np.clip(effect * math.sqrt(spread / max(float(rest @ rest), 1e-28)), -1, 1)),
            keep,
        )
    return found
