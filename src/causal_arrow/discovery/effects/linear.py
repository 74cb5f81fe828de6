"""Linear effects by least squares, for thousands of adjustment sets on one table.

By Frisch, Waugh and Lovell, the coefficient of the treatment is that of a regression of the residual outcome on the
residual treatment, both after the adjustment set. One matrix of products serves all sets.

For a trial, the regression of Lin (2013): the difference in means, made more precise by columns from before the trial.
For an instrument, two-stage least squares with the interval of Anderson and Rubin (1949), which is right however weak
the instrument is.
"""

# N observations, Q columns of the design, k columns of a set

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from causal_arrow.discovery.effects._adjustment import Set
from causal_arrow.tables.table import Column, in_safe_units

Floats = NDArray[np.float64]
Clusters = NDArray[np.intp] | None  # the cluster of each observation, numbered from 0

MIN_LEFT = 1e-9  # share of the treatment's variance that the set must leave: below it the two are one variable
RIDGE = 1e-12  # share of the variance; makes collinear columns harmless without changing the digits of an estimate
ROWS_PER_COLUMN = 200  # with more observations per column, leverages are taken to be equal: they hardly matter
ROWS_PER_TERM = 10  # observations of the smaller arm per column from which columns interact with the treatment
WEAK = 10.0  # an F statistic of the first stage below this shows a weak instrument (Staiger and Stock 1997)


class Moments(NamedTuple):
    """The contribution of each observation: over any group of them, the effect is Σ numerator / Σ denominator."""

    numerator: Floats  # (N,)
    denominator: Floats  # (N,)


class SetEstimate(NamedTuple):
    """The effect by one adjustment set, per unit of the treatment."""

    effect: float
    standard_error: float
    freedom: float  # degrees of freedom of the Student distribution that the estimate follows around the truth
    partial_correlation: float  # of treatment and outcome given the set; NaN for an estimator that is not linear
    moments: Moments | None = None  # for effects within groups, where they were asked for

    def times(self, size: float) -> SetEstimate:
        """The estimate per so many units of the treatment, without its moments."""
        return SetEstimate(self.effect * size, self.standard_error * abs(size), *self[2:4])


def estimate_from(
    moments: Moments,
    freedom: float,
    clusters: Clusters = None,
    inflation: Floats | float = 1.0,
    correlation: float = math.nan,
    keep: bool = True,
) -> SetEstimate:
    """The effect over all observations, with a standard error robust against unequal variances or within clusters.

    `inflation` (N,) makes up for residuals that are too small: 1 / (1 − leverage) for HC3 (MacKinnon and White).
    """
    numerator, denominator = moments
    total = denominator.sum()
    effect = float(numerator.sum() / total)
    influence = (numerator - effect * denominator) * inflation / total
    influence, freedom = _by_cluster(influence[:, None], freedom, clusters)
    error = float(np.linalg.norm(influence))
    return SetEstimate(effect, error, float(freedom), correlation, moments if keep else None)


def _by_cluster(influence: Floats, freedom: float, clusters: Clusters) -> tuple[Floats, float]:
    """The influence (N, outcomes) of clusters on coefficients, instead of that of observations, and its freedom."""
    if clusters is None:
        return influence, freedom
    sums: Floats = np.stack([np.bincount(clusters, part).astype(np.float64) for part in influence.T], axis=1)
    count = len(sums)
    return sums * math.sqrt(count / max(1, count - 1)), min(freedom, count - 1)


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


def curved(design: Design, treatment: int, outcome: int, variables: Sequence[Column]) -> Design:
    """The design with cubic curves for all numbers: the coefficient of the treatment is then its average slope.

    With c what the treatment is above its mean, c² and c³ − 3 mean(c²) c have an average slope of zero. A column of few
    values gets a curve of as many parameters as they can support.
    """

    def powers(column: Floats) -> list[Floats]:
        squares = np.square(column)
        distinct = len(np.unique(column))
        return [squares, column * squares - 3 * squares.mean() * column][: max(0, distinct - 2)]

    blocks = []
    for index, columns in enumerate(design.columns_of):
        own = [design.values[:, column] for column in columns]
        if own and variables[index].kind == "number" and index not in (treatment, outcome):
            own += powers(own[0])
        blocks.append(np.stack(own, axis=1) if own else design.values[:, :0])
    is_number = variables[treatment].kind == "number"
    bends = powers(design.values[:, design.columns_of[treatment][0]]) if is_number else []
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
    keep: Collection[Set] = (),
) -> dict[Set, SetEstimate]:
    """The effect by each set for which there are enough observations, with HC3 errors; those to `keep` have moments."""
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
            1 / np.maximum(1 - leverages, 1e-3),
            float(np.clip(effect * math.sqrt(spread / max(float(rest @ rest), 1e-28)), -1, 1)),
            members in keep,
        )
    return found


# Designs that a person declares: a randomized treatment, or an instrument


class InstrumentEstimate(NamedTuple):
    """A two-stage estimate, the F statistic of its first stage, and the interval and test of Anderson and Rubin."""

    estimate: SetEstimate
    strength: float
    interval: tuple[float, float]
    p_value: float  # of the hypothesis that the effect is zero, below 1 − level where the interval excludes zero


def trial_estimate(treated: Floats, outcome: Floats, columns: Floats, clusters: Clusters = None) -> SetEstimate | None:
    """The effect of a randomized treatment (N,), adjusted for columns (N, k); errors are HC2 or by cluster."""
    columns = columns - columns.mean(axis=0)
    values = np.unique(treated)
    binary = len(values) == 2
    smaller = min(np.sum(treated == values[0]), np.sum(treated == values[-1]))
    interact = binary and smaller >= ROWS_PER_TERM * (columns.shape[1] + 1)
    parts = [treated[:, None], columns, *([columns * (treated - treated.mean())[:, None]] if interact else [])]
    fitted = _fit(np.concatenate(parts, axis=1), outcome[:, None], clusters)
    if fitted is None or not fitted.variance[0, 0] > 0:
        return None
    if not binary:
        return fitted.estimate
    low, high = values
    share = float(np.mean(treated == high))
    arm = (treated == high) / share - (treated == low) / (1 - share)
    change = np.full(len(treated), fitted.coefficients[0, 0])
    if interact:
        change = change + columns @ fitted.coefficients[1 + columns.shape[1] :, 0]
    moments = Moments(change + arm * fitted.residuals[:, 0] / (high - low), np.ones(len(treated)))
    return fitted.estimate._replace(moments=moments)


def instrument_estimate(
    instrument: Floats, treated: Floats, outcome: Floats, columns: Floats, clusters: Clusters, level: float
) -> InstrumentEstimate | None:
    """The effect of the treatment through the instrument (N,) given columns (N, k); None without variation."""
    from scipy.special import stdtr, stdtrit

    fitted = _fit(np.column_stack([instrument, columns]), np.column_stack([outcome, treated]), clusters)
    if fitted is None or fitted.coefficients[0, 1] == 0:
        return None
    (of_outcome, of_treatment), variance = fitted.coefficients[0], fitted.variance
    effect = of_outcome / of_treatment
    contrast = np.array([1.0, -effect])
    error = math.sqrt(max(float(contrast @ variance @ contrast), 0.0)) / abs(of_treatment)
    # The values b for which the instrument does not show in outcome − b · treatment: a quadratic inequality.
    squared = float(stdtrit(fitted.freedom, (1 + level) / 2)) ** 2
    a = of_treatment**2 - squared * variance[1, 1]
    b = of_outcome * of_treatment - squared * variance[0, 1]
    c = of_outcome**2 - squared * variance[0, 0]
    interval = (-math.inf, math.inf)
    if a > 0:
        reach = math.sqrt(max(b * b - a * c, 0.0))
        interval = ((b - reach) / a, (b + reach) / a)
    estimate = SetEstimate(float(effect), error, fitted.freedom, math.nan)
    p_value = float(2 * stdtr(fitted.freedom, -abs(of_outcome) / math.sqrt(max(variance[0, 0], 1e-300))))
    return InstrumentEstimate(estimate, float(of_treatment**2 / variance[1, 1]), interval, p_value)


class _Fit(NamedTuple):
    coefficients: Floats  # (Q, outcomes), without the intercept
    residuals: Floats  # (N, outcomes)
    variance: Floats  # (outcomes, outcomes), of the coefficients of the first column
    freedom: float

    @property
    def estimate(self) -> SetEstimate:
        return SetEstimate(
            float(self.coefficients[0, 0]), math.sqrt(float(self.variance[0, 0])), self.freedom, math.nan
        )


def _fit(columns: Floats, outcomes: Floats, clusters: Clusters) -> _Fit | None:
    """Least squares of outcomes (N, outcomes) on columns (N, Q) and an intercept, with HC2 errors for the first column;
    None if the others determine it."""
    count = len(columns)
    centered = columns - columns.mean(axis=0)
    scales = centered.std(axis=0)
    scales = np.where(scales > 0, scales, np.inf)
    others, left = centered[:, 1:] / scales[1:], centered[:, 0] / scales[0]
    basis, sizes, _ = np.linalg.svd(others, full_matrices=False)
    basis = basis[:, sizes > 1e-9 * max(sizes.max(initial=0.0), 1.0)]
    left = left - basis @ (basis.T @ left)
    freedom = count - basis.shape[1] - 2
    spread = float(left @ left)
    if freedom < 1 or not spread > 1e-9 * count:
        return None
    targets = outcomes - outcomes.mean(axis=0)
    first = left @ targets / spread / scales[0]
    rest = targets - np.outer(centered[:, 0], first)
    coefficients = np.linalg.pinv(others, rcond=1e-9) @ rest / scales[1:, None]
    residuals = rest - basis @ (basis.T @ rest)
    leverages = 1 / count + np.square(basis).sum(axis=1) + np.square(left) / spread
    inflation = np.maximum(1 - leverages, 1e-3) ** -0.5
    influence = (left * inflation)[:, None] * residuals / spread / scales[0]  # (N, outcomes)
    influence, degrees = _by_cluster(influence, freedom, clusters)
    return _Fit(np.concatenate([first[None], coefficients]), residuals, influence.T @ influence, float(degrees))
