"""What is done about missing values: left to the network, refused, left out with their rows, or filled in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from causal_arrow.errors import Remedy, TableError
from causal_arrow.tables.columns import Problem
from causal_arrow.tables.table import FEWEST_OBSERVATIONS, Abilities, Column, Finding, in_safe_units
from causal_arrow.text import capitalized, counted, listed

# N observations, P variables

Floats = NDArray[np.float64]

MISSING_CHOICES = ("auto", "model", "error", "drop", "impute")
MOST_MISSING = 0.9
"""Share of a column that may be missing."""
MOSTLY_FILLED = 0.5
"""Share of a column from which on filling its gaps gets a warning of its own."""
LEAST_COMPLETE = 0.1
"""Share of the observations that must be complete for leaving out the others to be advised."""
# Imputation: rounds of predicting the gaps, and the ridge that keeps the predictions tame, in units of the variances.
IMPUTATION_ROUNDS = 10
IMPUTATION_RIDGE = 0.01

MISSING_MODEL = Remedy("missing", setting="model", about="the missing values")
MISSING_DROP = Remedy("missing", setting="drop", about="the missing values")
MISSING_IMPUTE = Remedy("missing", setting="impute", about="the missing values")


@dataclass(frozen=True, eq=False)
class Completed:
    """A table once something was done about its missing values."""

    values: Floats  # (N, P)
    columns: Sequence[Column]
    findings: tuple[Finding, ...] = ()
    problems: tuple[Problem, ...] = ()
    complaints: tuple[Finding, ...] = ()  # why nothing was done
    rows: NDArray[np.bool_] | None = None  # the observations that are left; None for all


def complete_table(values: Floats, columns: Sequence[Column], missing: str, abilities: Abilities) -> Completed:
    """The table with its gaps treated as the caller asks; where that is impossible, as it is, with a complaint."""
    gaps = np.isnan(values)
    if not gaps.any():
        return Completed(values, columns)
    if missing == "auto":
        missing = "model" if "observed" in abilities else "error"
    try:
        if missing == "model" and "observed" not in abilities:
            raise _cannot_read_gaps(abilities)
        return _COMPLETE[missing](values, columns)
    except TableError as error:
        names = tuple(columns[place].name for place in np.flatnonzero(gaps.any(axis=0)).tolist())
        remedies = (*_left_to_network(gaps, columns, abilities), *error.remedies)
        remedies = tuple(dict.fromkeys(remedies))
        complaint = Finding("missing", "problem", names, error.message, remedies)
        return Completed(values, columns, complaints=(complaint,))


def _cannot_read_gaps(abilities: Abilities) -> TableError:
    return TableError(f"{capitalized(abilities.model)} cannot read missing values.", [MISSING_DROP, MISSING_IMPUTE])


def _left_to_network(gaps: NDArray[np.bool_], columns: Sequence[Column], abilities: Abilities) -> list[Remedy]:
    """That the network can read the gaps, where it can; or which columns have too many of them."""
    sparse = tuple(columns[place].name for place in np.flatnonzero(gaps.mean(axis=0) > MOST_MISSING).tolist())
    if sparse:
        return [Remedy("drop", sparse, about="the missing values")]
    return [MISSING_MODEL] if "observed" in abilities else []


def _leave_to_network(values: Floats, columns: Sequence[Column]) -> Completed:
    """The table as it is, unless hardly anything is left of a column. The report card says what the gaps cost."""
    gaps = np.isnan(values)
    sparse = np.flatnonzero(gaps.mean(axis=0) > MOST_MISSING).tolist()
    there = (~gaps).sum(axis=0)
    problems = [Problem("sparse", columns[place].name, f"{counted(int(there[place]), 'value')}") for place in sparse]
    return Completed(values, columns, problems=tuple(problems))


def refuse_gaps(values: Floats, columns: Sequence[Column]) -> Completed:
    """Says how many values are missing and where."""
    gaps = np.isnan(values)  # (N, P)
    per_column = gaps.sum(axis=0)
    most = np.argsort(-per_column, kind="stable")[: min(8, np.count_nonzero(per_column))].tolist()
    places = ", ".join(f"{columns[place].name!r} {per_column[place]}" for place in most)
    rest = ", ..." if np.count_nonzero(per_column) > len(most) else ""
    complete, count = int((~gaps.any(axis=1)).sum()), int(gaps.sum())
    enough = complete >= max(FEWEST_OBSERVATIONS, LEAST_COMPLETE * len(values))
    raise TableError(
        f"{counted(count, 'value')} {'is' if count == 1 else 'are'} missing ({places}{rest}); without the incomplete "
        f"observations, {complete} of {len(values)} {'remains' if complete == 1 else 'remain'}.",
        [MISSING_DROP, MISSING_IMPUTE] if enough else [MISSING_IMPUTE],
    )


def _drop_incomplete(values: Floats, columns: Sequence[Column]) -> Completed:
    """The complete observations, and a note on how many they are."""
    complete: NDArray[np.bool_] = np.asarray(~np.isnan(values).any(axis=1))
    remaining, dropped = int(complete.sum()), int((~complete).sum())
    if remaining < FEWEST_OBSERVATIONS:
        gaps = np.isnan(values).sum(axis=0)
        worst = columns[int(gaps.argmax())].name
        raise TableError(
            f"Only {remaining} of {counted(len(values), 'observation')} {'has' if remaining == 1 else 'have'} no "
            f"missing value, and at least {FEWEST_OBSERVATIONS} are needed; {worst!r} misses most, "
            f"{counted(int(gaps.max()), 'value')}.",
            [MISSING_IMPUTE, Remedy("drop", (worst,), about="the missing values")],
        )
    severity = "warning" if dropped > 0.2 * len(values) else "note"
    message = (
        f"{dropped} of {counted(len(values), 'observation')} {'has' if dropped == 1 else 'have'} missing values and "
        f"{'was' if dropped == 1 else 'were'} left out; {remaining} remain. The answer is about those, and is biased "
        "if what is missing depends on the values."
    )
    left, recoded = _without_unused_levels(values[complete], columns)
    return Completed(left, recoded, (Finding("missing", severity, (), message),), rows=complete)


def _without_unused_levels(values: Floats, columns: Sequence[Column]) -> tuple[Floats, list[Column]]:
    """The table with the levels of categories and orders that still occur, numbered anew."""
    values, kept = values.copy(), list(columns)
    for place, column in enumerate(columns):
        if column.kind in ("category", "ordered"):
            values[:, place], kept[place] = used_levels(values[:, place], column)
    return values, kept


def used_levels(codes: Floats, column: Column) -> tuple[Floats, Column]:
    """The codes of levels (N,) and the column, with the levels that occur."""
    there = ~np.isnan(codes)
    found, renumbered = np.unique(codes[there], return_inverse=True)
    codes = codes.copy()
    codes[there] = renumbered
    return codes, replace(column, levels=tuple(column.levels[int(code)] for code in found))


def _impute(values: Floats, columns: Sequence[Column]) -> Completed:
    """The table with its gaps filled, and how many they were: numbers are predicted from the other numbers, a yes or
    no and levels in an order get the level nearest to the prediction, categories their most frequent level."""
    gaps = np.isnan(values)  # (N, P)
    of_categories = gaps & np.array([column.kind == "category" for column in columns])
    of_numbers = gaps & ~of_categories
    values, findings = values.copy(), []
    if of_categories.any():
        filled = np.flatnonzero(of_categories.any(axis=0)).tolist()
        for place in filled:
            codes = values[:, place]
            levels, counts = np.unique(codes[~np.isnan(codes)], return_counts=True)
            values[np.isnan(codes), place] = levels[counts.argmax()]
        names = tuple(columns[place].name for place in filled)
        message = (
            f"{_filled(of_categories)} in {listed(names)} {_were(of_categories)} filled with the most frequent level, "
            "which weakens what these columns say of others."
        )
        findings.append(Finding("missing", "warning", names, message))
    if of_numbers.any():
        numbers = [place for place, column in enumerate(columns) if column.kind != "category"]
        values[:, numbers] = _predicted(values[:, numbers])
        filled = np.flatnonzero(of_numbers.any(axis=0)).tolist()
        with_levels = [place for place in filled if columns[place].levels]
        values[:, with_levels] = np.round(values[:, with_levels])
        nearest = ", by the nearest level where there are levels" if with_levels else ""
        message = (
            f"{_filled(of_numbers)} {_were(of_numbers)} filled with linear predictions from the other variables"
            f"{nearest}. That makes relations look tidier than they are: read edges of these columns with care."
        )
        findings.append(Finding("missing", "warning", tuple(columns[place].name for place in filled), message))
    return Completed(values, columns, (*_mostly_filled(gaps, columns), *findings))


def _filled(gaps: NDArray[np.bool_]) -> str:
    """How many values were missing, and which share of the table they are."""
    return f"{counted(int(gaps.sum()), 'missing value')} ({gaps.mean():.1%})"


def _were(gaps: NDArray[np.bool_]) -> str:
    return "was" if gaps.sum() == 1 else "were"


def _mostly_filled(gaps: NDArray[np.bool_], columns: Sequence[Column]) -> list[Finding]:
    """A warning of columns of which there was little before they were filled."""
    shares = gaps.mean(axis=0)
    places = sorted(np.flatnonzero(shares > MOSTLY_FILLED).tolist(), key=lambda place: -shares[place])
    if not places:
        return []
    names = tuple(columns[place].name for place in places)
    was, its = ("was", "its") if len(places) == 1 else ("were", "their")
    share = f"{shares[places[-1]]:.0%}" if len(places) == 1 else f"{shares[places[-1]]:.0%} or more"
    message = (
        f"{listed(names)} {was} missing in {share} of the observations and {was} filled: {its} edges rest on values "
        "that nobody observed. Do not rely on them."
    )
    return [Finding("missing", "warning", names, message, (Remedy("drop", names),))]


def _predicted(values: Floats) -> Floats:
    """Numbers with linear predictions from each other in their gaps.  (N, P)

    The predictions are conditional means under a Gaussian fitted to the filled table: with Θ the inverse of its
    covariance, E[x_j | rest] = μ_j − Σ_{k≠j} Θ_jk (x_k − μ_k) / Θ_jj. Columns are updated in turn, IMPUTATION_ROUNDS
    times, starting from the column means, and never leave the range that was observed.
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
        for place in np.flatnonzero(gaps.any(axis=0)):
            rows = gaps[:, place]
            distance = z[rows] - center
            # The column's own part of the product cancels what it held before.
            predicted = z[rows, place] - distance @ precision[:, place] / precision[place, place]
            z[rows, place] = np.clip(predicted, low[place], high[place])
    return np.where(gaps, np.ldexp(z * scale + mean, exponents), values)


_COMPLETE = {
    "model": _leave_to_network,
    "error": refuse_gaps,
    "drop": _drop_incomplete,
    "impute": _impute,
}
