"""How many lags a series needs, by the data."""

# N rows, P variables, M lags tried

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from causal_arrow.series.window import TIME, Window

Floats = NDArray[np.float64]

MAX_LAGS = 8
ROWS_PER_COLUMN = 5
"""Fewer rows per column of the window tell too little about the last lag."""
LEVEL = 0.05
"""Of all tests together."""
MAX_ROWS = 20_000
"""More rows are thinned out evenly."""


def most_lags(steps: int, variables: int, longest: int) -> int:
    """How many lags can be tried with so many steps in all, and so many in the longest unit."""
    return int(max(1, min(MAX_LAGS, steps // (ROWS_PER_COLUMN * variables), longest // 4)))


def needed_lags(values: Floats, rows: Window) -> int:
    """The largest lag, up to those of the window, at which a variable depends on the past; 1 at least.

    By the coefficients of a vector autoregression, corrected for their number. Information criteria are exact less
    often: they count every coefficient of a lag although few differ from zero.
    """
    thin = slice(None, None, -(-len(rows.index) // MAX_ROWS))
    columns = np.column_stack([rows.column(values, column)[thin] for column in range(len(rows.columns))])
    centered = columns - np.nanmean(columns, axis=0)
    spread = np.nanstd(centered, axis=0)
    table = np.nan_to_num(centered / np.where(spread > 0, spread, 1.0))
    variables = len(rows.lagged)
    now, past = table[:, :variables], table[:, variables:]
    inverse = np.linalg.pinv(past.T @ past)
    coefficients = inverse @ past.T @ now
    freedom = max(1, len(now) - past.shape[1] - 1)
    variances = np.square(now - past @ coefficients).sum(axis=0) / freedom
    errors = np.sqrt(np.outer(inverse.diagonal(), variances))
    t = np.divide(coefficients, errors, out=np.zeros_like(errors), where=errors > 0)
    lagged = t[: -1 if rows.columns[-1][0] == TIME else None].reshape(rows.lags, -1)
    significant = 2 * stats.t.sf(np.abs(lagged).max(axis=1), freedom) < LEVEL / lagged.size
    return int(np.flatnonzero(significant).max(initial=0)) + 1
