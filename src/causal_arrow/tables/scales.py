"""On which scale to read a column: as it is given, or its logarithm.

Concentrations, expression levels and incomes act by factors rather than amounts, and a table of their logarithms shows
more of its graph. Other skewed columns act by amounts, and logarithms would distort them. The values of one column do
not show which; the network does. It reads the table both ways, and logarithms count unless they leave it clearly more
uncertain per edge (`GraphDistribution.uncertainty`).
"""

# N rows, P variables

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from causal_arrow.errors import check_choice

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

SCALES = ("auto", "given", "log")

MIN_GAIN = 0.1
"""Log-likelihood per row by which a log-normal distribution must beat a normal one for a column to be a candidate.
A log-normal column with a log-standard deviation of 0.36 has this much, an exponential one 0.33."""

MAX_UNCERTAINTY = 1.25
"""Logarithms count unless they leave this many times the uncertainty. Columns that are tried are nearer to a log-normal
distribution, and most such quantities act by factors: where the network hardly sees a difference, logarithms are the
better guess."""


def log_candidates(values: Floats) -> Bools:
    """The columns worth a log transform: values share a sign and look log-normal rather than normal.  (P,)

    By the likelihood of Box and Cox (1964), their λ = 0 against λ = 1. Units and missing values do not matter.
    """
    return np.array([_is_nearer_to_log_normal(column[~np.isnan(column)]) for column in values.T], dtype=bool)


def _is_nearer_to_log_normal(column: Floats) -> bool:
    if not column.size or not has_logarithms(column):
        return False
    # A column and its negative are one variable. Sums depend on the order of their terms; the answer must not.
    column = np.sort(np.abs(column))
    scaled = column / column[-1]  # squares of very large numbers would overflow
    # A quotient of the smallest number by the largest can be zero, which has no logarithm.
    logarithms = np.log(scaled) if scaled[0] > 0 else np.log(column) - np.log(column[-1])
    spread, log_spread = scaled.std(), logarithms.std()
    return bool(spread > 0 and log_spread > 0 and np.log(spread / log_spread) - logarithms.mean() > MIN_GAIN)


def readings(scale: str, candidates: Bools) -> list[Bools]:
    """The ways to read a table with these `log_candidates`: the columns to take logarithms of; first, no column."""
    check_choice("scale", scale, SCALES)
    given = np.zeros(len(candidates), dtype=bool)
    if scale == "given":
        return [given]
    if scale == "log":
        return [candidates]
    return [given, candidates] if candidates.any() else [given]


def has_logarithms(column: Floats) -> bool:
    """Whether the values (N,) that are observed share a sign and none is zero: their `logarithms` are numbers."""
    return bool(np.nanmin(column) > 0 or np.nanmax(column) < 0)


def logarithms(values: Floats) -> Floats:
    """The logarithms of values that share a sign, without that sign: a column and its negative are one variable."""
    return np.asarray(np.log(np.abs(values)))


def with_logarithms(values: Floats, columns: Bools) -> Floats:
    """The values with the logarithms of some columns.  (N, P)"""
    if not columns.any():
        return values
    changed: Floats = values.copy()
    changed[:, columns] = logarithms(values[:, columns])
    return changed


def chosen_reading(uncertainties: Sequence[float]) -> int:
    """The index of the reading that counts, given the uncertainty per edge that each leaves.

    It is the last of `readings`, unless that leaves clearly more than the first.
    """
    return 0 if len(uncertainties) == 1 else int(uncertainties[-1] <= MAX_UNCERTAINTY * uncertainties[0])
