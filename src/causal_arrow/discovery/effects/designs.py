"""Estimates for designs that a person declares: a randomized treatment, or an instrument.

For a trial, the regression of Lin (2013): the difference in means, made more precise by columns from before the trial.
For an instrument, two-stage least squares with the interval of Anderson and Rubin (1949), which is right however weak
the instrument is.
"""

# N observations, Q columns

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from causal_arrow.discovery.effects.linear import Clusters, Moments, SetEstimate

Floats = NDArray[np.float64]

ROWS_PER_TERM = 10
"""Observations of the smaller arm per column from which columns interact with the treatment."""
WEAK = 10.0
"""An F statistic of the first stage below this shows a weak instrument (Staiger and Stock 1997)."""


class InstrumentEstimate(NamedTuple):
    """A two-stage estimate, the F statistic of its first stage, and the interval of Anderson and Rubin."""

    estimate: SetEstimate
    strength: float
    interval: tuple[float, float]


def trial_estimate(treated: Floats, outcome: Floats, columns: Floats, clusters: Clusters = None) -> SetEstimate | None:
    """The effect of a randomized treatment (N,), adjusted for columns (N, k); errors are HC2 or by cluster.

    With large arms, columns interact with a treatment of two values. None with too few observations.
    """
    columns = columns - columns.mean(axis=0)
    values = np.unique(treated)
    binary = len(values) == 2
    smaller = min(np.sum(treated == values[0]), np.sum(treated == values[-1]))
    interact = binary and smaller >= ROWS_PER_TERM * (columns.shape[1] + 1)
    parts = [treated[:, None], columns, *([columns * (treated - treated.mean())[:, None]] if interact else [])]
    fitted = _fit(np.concatenate(parts, axis=1), outcome[:, None], clusters, power=0.5)
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
    from scipy.special import stdtrit

    fitted = _fit(
        np.concatenate([instrument[:, None], columns], axis=1), np.stack([outcome, treated], axis=1), clusters
    )
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
    return InstrumentEstimate(estimate, float(of_treatment**2 / variance[1, 1]), interval)


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


def _fit(columns: Floats, outcomes: Floats, clusters: Clusters, power: float = 0.5) -> _Fit | None:
    """Least squares of outcomes (N, outcomes) on columns (N, Q) and an intercept, with errors for the first column.

    Columns that others determine are left out; the first one stays, unless nothing is left of it: then None.
    """
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
    inflation = np.maximum(1 - leverages, 1e-3) ** -power
    influence = (left * inflation)[:, None] * residuals / spread / scales[0]  # (N, outcomes)
    if clusters is not None:
        groups = int(clusters.max()) + 1
        influence = np.stack([np.bincount(clusters, part) for part in influence.T], axis=1)
        influence = influence * math.sqrt(groups / max(1, groups - 1))
        freedom = min(freedom, groups - 1)
    return _Fit(np.concatenate([first[None], coefficients]), residuals, influence.T @ influence, float(freedom))
