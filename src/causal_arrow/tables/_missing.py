"""complete(): leave missing values to the network, refuse them, leave out their rows, or fill them in."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from causal_arrow.errors import Remedy, TableError
from causal_arrow.tables._columns import Problem
from causal_arrow.tables._labels import lost_experiments
from causal_arrow.tables.table import MIN_ROWS, Abilities, Bools, Column, Finding, Floats, Table, in_safe_units
from causal_arrow.text import capitalized, counted, in_percent, listed

# N rows, P variables

MAX_MISSING = 0.9
"""Share of a column that may be missing."""
MOSTLY_FILLED = 0.5
"""Share of a column from which on filling its gaps gets a separate warning."""
MIN_COMPLETE = 0.1
"""Share of the rows that must be complete for leaving out the others to be advised."""
# Imputation: rounds of predicting the gaps, and the ridge that keeps the predictions tame, in units of the variances.
IMPUTATION_ROUNDS = 10
IMPUTATION_RIDGE = 0.01

_ABOUT = "the missing values"
MISSING_MODEL, MISSING_DROP, MISSING_IMPUTE = (
    Remedy("missing", setting=way, about=_ABOUT) for way in ("model", "drop", "impute")
)

Completed = tuple[Table, list[Finding]]
"""A table and what to say about its missing values."""


def complete(table: Table, missing: str, abilities: Abilities) -> Completed:
    """Treat the gaps of a table as the caller asks; TableError, with remedies, where that is impossible."""
    if table.observed.all():
        return table, []
    if missing == "auto":
        missing = "model" if "observed" in abilities else "error"
    try:
        if missing != "model":
            return _WAYS[missing](table)
        if "observed" in abilities:
            return table, []  # the report card says what the gaps cost
        message = f"{capitalized(abilities.model)} cannot read missing values."
        raise TableError(message, [MISSING_DROP, MISSING_IMPUTE])
    except TableError as error:
        sparse = tuple(problem.column for problem in sparse_columns(table))
        first = [MISSING_MODEL] if "observed" in abilities else []
        first = [Remedy("drop", sparse, about=_ABOUT)] if sparse else first
        raise TableError(error.message, tuple(dict.fromkeys([*first, *error.remedies]))) from error


def sparse_columns(table: Table) -> list[Problem]:
    """The columns that are almost entirely missing."""
    sparse = np.flatnonzero((~table.observed).mean(axis=0) > MAX_MISSING).tolist()
    there = table.observed.sum(axis=0).tolist()
    return [Problem("sparse", table.names[index], counted(there[index], "value")) for index in sparse]


def refuse_gaps(table: Table) -> Completed:
    """TableError that says how many values are missing and where."""
    per_column = (~table.observed).sum(axis=0)
    worst = np.argsort(-per_column, kind="stable")[: min(8, np.count_nonzero(per_column))].tolist()
    some = ", ".join(f"{table.names[index]!r} {per_column[index]}" for index in worst)
    rest = ", ..." if np.count_nonzero(per_column) > len(worst) else ""
    remaining, count = int(table.observed.all(axis=1).sum()), int(per_column.sum())
    enough = remaining >= max(MIN_ROWS, MIN_COMPLETE * table.observations)
    raise TableError(
        f"{counted(count, 'value')} {'is' if count == 1 else 'are'} missing ({some}{rest}); without the incomplete "
        f"observations, {remaining} of {table.observations} {'remains' if remaining == 1 else 'remain'}.",
        [MISSING_DROP, MISSING_IMPUTE] if enough else [MISSING_IMPUTE],
    )


def _drop_incomplete(table: Table) -> Completed:
    """The complete rows, with the levels that still occur, and a note on how many rows were left out."""
    full: Bools = np.asarray(table.observed.all(axis=1))
    remaining, dropped = int(full.sum()), int((~full).sum())
    total = counted(table.observations, "observation")
    if remaining < MIN_ROWS:
        gaps = (~table.observed).sum(axis=0)
        worst = table.names[int(gaps.argmax())]
        raise TableError(
            f"Only {remaining} of {total} {'has' if remaining == 1 else 'have'} no missing value, and at least "
            f"{MIN_ROWS} are needed; {worst!r} has most of the missing values, {counted(int(gaps.max()), 'value')}.",
            [MISSING_IMPUTE, Remedy("drop", (worst,), about=_ABOUT)],
        )
    severity = "warning" if dropped > 0.2 * table.observations else "note"
    message = (
        f"{dropped} of {total} {'has' if dropped == 1 else 'have'} missing values and "
        f"{'was' if dropped == 1 else 'were'} left out; {remaining} remain. The answer describes those, and is "
        "biased if which values are missing depends on the values."
    )
    left = table.only(full)
    columns = list(table.columns)
    for index, column in enumerate(columns):
        if column.kind in ("category", "ordered"):
            left.values[:, index], columns[index] = used_levels(left.values[:, index], column)
    left = replace(left, columns=tuple(columns))
    return left, [Finding("missing", severity, (), message), *lost_experiments(table, left)]


def used_levels(codes: Floats, column: Column) -> tuple[Floats, Column]:
    """The codes of levels (N,) and the column, with the levels that occur."""
    there = ~np.isnan(codes)
    found, renumbered = np.unique(codes[there], return_inverse=True)
    codes = codes.copy()
    codes[there] = renumbered
    return codes, replace(column, levels=tuple(column.levels[int(code)] for code in found))


def _impute(table: Table) -> Completed:
    """The table with its gaps filled, and how many there were.

    Numbers are predicted from the other numbers; a yes or no and ordered levels get the level nearest to the
    prediction, categories their most frequent level.
    """
    values, findings = table.values.copy(), _mostly_filled(table)
    categories = np.array([column.kind == "category" for column in table.columns], dtype=bool)
    of_categories, of_numbers = ~table.observed & categories, ~table.observed & ~categories
    if of_categories.any():
        filled = np.flatnonzero(of_categories.any(axis=0)).tolist()
        for index in filled:
            levels, counts = np.unique(values[table.observed[:, index], index], return_counts=True)
            values[of_categories[:, index], index] = levels[counts.argmax()]
        names = tuple(table.names[index] for index in filled)
        message = (
            f"{_filled(of_categories)} in {listed(names)} {_were(of_categories)} filled with the most frequent level, "
            "which weakens their relations with other columns."
        )
        findings.append(Finding("missing", "warning", names, message))
    if of_numbers.any():
        numbers = np.flatnonzero(~categories)
        values[:, numbers] = _predicted(values[:, numbers])
        filled = np.flatnonzero(of_numbers.any(axis=0)).tolist()
        with_levels = [index for index in filled if table.columns[index].levels]
        values[:, with_levels] = np.round(values[:, with_levels])
        nearest = ", rounded to the nearest level where there are levels" if with_levels else ""
        message = (
            f"{_filled(of_numbers)} {_were(of_numbers)} filled with linear predictions from the other variables"
            f"{nearest}. This makes relations look stronger than they are: interpret edges of these columns with care."
        )
        findings.append(Finding("missing", "warning", tuple(table.names[index] for index in filled), message))
    return replace(table, values=values), findings


def _filled(gaps: Bools) -> str:
    """The number of missing values, and their share of the table."""
    return f"{counted(int(gaps.sum()), 'missing value')} ({in_percent(float(gaps.mean()))})"


def _were(gaps: Bools) -> str:
    return "was" if gaps.sum() == 1 else "were"


def _mostly_filled(table: Table) -> list[Finding]:
    """A warning about columns that were mostly missing before they were filled."""
    shares = (~table.observed).mean(axis=0)
    indices = sorted(np.flatnonzero(shares > MOSTLY_FILLED).tolist(), key=lambda index: -shares[index])
    if not indices:
        return []
    names = tuple(table.names[index] for index in indices)
    was, its = ("was", "its") if len(indices) == 1 else ("were", "their")
    share = f"{in_percent(shares[indices[-1]])}{'' if len(indices) == 1 else ' or more'}"
    message = (
        f"{listed(names)} {was} missing in {share} of the observations and {was} filled: {its} edges rest on values "
        "that nobody observed. Do not rely on them."
    )
    return [Finding("missing", "warning", names, message, (Remedy("drop", names),))]


def _predicted(values: Floats) -> Floats:
    """Numbers with linear predictions from each other in their gaps.  (N, P)

    These are conditional means under a Gaussian fitted to the filled table: with Θ the inverse of its covariance,
    E[x_j | rest] = μ_j − Σ_{k≠j} Θ_jk (x_k − μ_k) / Θ_jj. They never leave the range that was observed.
    """
    gaps = np.isnan(values)  # (N, P)
    scaled, exponents = in_safe_units(values)
    scale = np.nanstd(scaled, axis=0)
    mean, scale = np.nanmean(scaled, axis=0), np.where(scale > 0, scale, 1.0)
    z = np.where(gaps, 0.0, (scaled - mean) / scale)
    low, high = z.min(axis=0), z.max(axis=0)
    for _ in range(IMPUTATION_ROUNDS):
        center = z.mean(axis=0)
        covariance = np.atleast_2d(np.cov(z, rowvar=False))
        precision = np.linalg.inv(covariance + IMPUTATION_RIDGE * np.eye(z.shape[1]))
        for index in np.flatnonzero(gaps.any(axis=0)):
            rows = gaps[:, index]
            distance = z[rows] - center
            # The column's own part of the product cancels what it held before.
            predicted = z[rows, index] - distance @ precision[:, index] / precision[index, index]
            z[rows, index] = np.clip(predicted, low[index], high[index])
    return np.where(gaps, np.ldexp(z * scale + mean, exponents), values)


_WAYS = {"error": refuse_gaps, "drop": _drop_incomplete, "impute": _impute}
