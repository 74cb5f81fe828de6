"""Groups of columns that are copies of one another: detected in a table, worded for its report."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from causal_arrow.errors import Remedy
from causal_arrow.tables.dependencies import related_groups
from causal_arrow.tables.table import Column, Finding, Table, in_safe_units
from causal_arrow.text import listed

# N observations, P variables

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

COPY = 1 - 1e-9  # correlation
MOST_CLASSES = 100  # different values up to which columns are compared value by value, whatever they are called
ALIKE_DIGITS = 12  # decimal digits, of the largest value in a column, to which equal values agree
READ_FIRST = ("category", "ordered", "binary", "number")
"""Of copies of different kinds, that of the first of these is read: what it takes for granted is true of all."""


def find_copies(
    table: Table, correlation: Floats, varies: Bools, partitions: Sequence[bytes | None]
) -> list[list[int]]:
    """Groups of columns that are copies of each other; the first of each group is the one to read.

    correlation  Of the variables, missing values at the mean.  (P, P)
    varies       Which of them are numbers that vary.  (P,)
    partitions   The `partition` of each.  (P,)
    """
    places: dict[bytes, list[int]] = {}
    for place, digits in enumerate(partitions):
        if digits is not None:
            places.setdefault(digits, []).append(place)
    alike = (np.abs(correlation) >= COPY) & varies & varies[:, None]
    for group in places.values():
        alike[np.ix_(group, group)] = True
    same_partition = {place: group for group in places.values() for place in group}
    return [copies for group in related_groups(alike) for copies in _exact_copies(table, group, same_partition)]


def partition(column: Floats, category: bool) -> bytes | None:
    """Digits that columns share whose equal values stand in the same observations; None for one with few equal values.

    Numbers of which most occur once or twice would be alike whatever they say.
    """
    there = ~np.isnan(column)
    values = column[there]
    if not category:
        few = min(MOST_CLASSES, len(values) // 2)
        values = np.round(values / np.abs(values).max(initial=1e-300), ALIKE_DIGITS)
        if len(np.unique(values[:1000])) > few or len(np.unique(values)) > few:
            return None
    _, first, same = np.unique(values, return_index=True, return_inverse=True)
    classes = np.full(len(column), -1, dtype=np.int64)
    classes[there] = first[same]
    return hashlib.sha256(classes.tobytes()).digest()


def _exact_copies(table: Table, group: Sequence[int], same_partition: Mapping[int, list[int]]) -> list[list[int]]:
    """The columns of a group that are copies of its first, and so on with the others; no column alone.

    The first is the environment, else what was set most often, then by kind (READ_FIRST), then by how evenly its
    numbers lie, then by name: not by the order of columns, nor by their names where it matters which one is read.
    Columns are copies if equal values stand in the same observations (`same_partition`). Numbers that are correlated
    perfectly but for rounding need not be: an outlier may be all that they share. Copies also have the same order. And
    none was set in an experiment that did not set the first: where only the first was set, the others followed.
    """
    times_set = times_each_was_set(table)

    def key(place: int) -> tuple[bool, int, int, float, str]:
        column = table.columns[place]
        uneven = _unevenness(table.values[:, place]) if column.kind == "number" else 0.0
        kind = READ_FIRST.index(column.kind)
        return column.name != table.environment, -int(times_set[place]), kind, uneven, column.name

    left = sorted(group, key=key)
    found = []
    while left:
        alike = same_partition.get(left[0], ())
        copies = [place for place in left if place == left[0] or _same_column(table, left[0], place, place in alike)]
        left = [place for place in left if place not in copies]
        if len(copies) > 1:
            found.append(copies)
    return found


def times_each_was_set(table: Table) -> NDArray[np.intp]:
    """In how many observations experiments have set each variable.  (P,)"""
    if table.intervened is None:
        return np.zeros(table.variables, dtype=np.intp)
    return np.asarray(table.intervened.sum(axis=0), dtype=np.intp)


def _unevenness(values: Floats) -> float:
    """How skewed numbers are, whatever their units and sign, to a few digits."""
    values = np.sort(values[~np.isnan(values)])
    z = in_safe_units(values[:, None])[0][:, 0]
    z = z - z.mean()
    return round(float(abs((z**3).mean()) / max((z**2).mean() ** 1.5, 1e-300)), 6)


def _same_column(table: Table, one: int, other: int, alike: bool) -> bool:
    if table.intervened is not None and (table.intervened[:, other] & ~table.intervened[:, one]).any():
        return False
    if alike:
        return True
    if "category" in (table.columns[one].kind, table.columns[other].kind):
        return False
    first, second = table.values[:, one], table.values[:, other]
    if (np.isnan(first) != np.isnan(second)).any():
        return False
    steps = np.diff(second[np.argsort(first, kind="stable")])
    steps = steps[~np.isnan(steps)]
    return bool((steps >= 0).all() or (steps <= 0).all())


def copy_findings(
    groups: Sequence[Sequence[int]],
    columns: Sequence[Column],
    correlation: Floats,
    times_set: NDArray[np.intp],
) -> list[Finding]:
    """A warning for each group of copies, by the places of its columns.

    times_set  In how many observations each was set by experiments.  (P,)
    """
    findings = []
    for group in groups:
        names = tuple(columns[place].name for place in group)
        of_kind = {columns[place].kind == "category" for place in group}
        linear = bool((np.abs(correlation[np.ix_(group, group)]) >= COPY).all())
        how = (
            "the same category under other names"
            if of_kind == {True}
            else "copies of each other up to scale"
            if of_kind == {False} and linear
            else "the same variable, with another name for each value"
        )
        others = "the other" if len(names) == 2 else "the others"
        if len(set(times_set[list(group)].tolist())) == 1:
            message = (
                f"{listed(names)} are {how}: no data can tell which of them causes what. The graph shows {names[0]!r} "
                f"with all edges and {others} joined to it; probabilities are shared evenly among them."
            )
        else:
            message = (
                f"{listed(names)} are {how}, also where experiments set {names[0]!r}: so it counts as the cause of "
                f"{others}, and has all edges to other variables. If they are one variable, mark all of them as set, "
                "or leave out all but one."
            )
        findings.append(Finding("copies", "warning", names, message, (Remedy("drop", names[1:]),)))
    return findings


def groups_of_copies(findings: Iterable[Finding]) -> list[tuple[str, ...]]:
    """The columns that findings say are copies of each other; the first of each group is the one to read."""
    return [finding.columns for finding in findings if finding.kind == "copies"]
