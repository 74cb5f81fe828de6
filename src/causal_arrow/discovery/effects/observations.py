"""Observations to estimate an effect from: those of an experiment, those complete for an adjustment set."""

# N observations, P variables

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from causal_arrow.discovery.effects.adjustment import Set
from causal_arrow.tables.table import Table
from causal_arrow.text import counted, in_percent, listed

Bools = NDArray[np.bool_]
Levels = tuple[int, int] | None

MIN_OBSERVATIONS = 20


def of_experiments(
    table: Table, t: int, y: int, levels: Levels, uncaused: Sequence[int] = ()
) -> tuple[Table, bool, list[str]]:
    """The table with the observations that tell of the effect, whether the treatment was set in them, and a note.

    Where the treatment was set, to more than one value, and nothing else was, nothing but the experimenter decides on
    it: these observations alone count. Otherwise those in which nothing but the treatment was set: where a variable on
    the way to the outcome was set, the treatment acts on it no more. Variables that were set and that nothing causes in
    any graph, the `uncaused`, are on no way.
    """
    if table.intervened is None:
        return table, False, []
    apart = [index for index in uncaused if index != t]
    others = np.asarray(np.delete(table.intervened, [t, *apart], axis=1).any(axis=1))
    of_trial = table.intervened[:, t] & ~others & with_both_ends(table, t, y, levels)
    if of_trial.sum() >= MIN_OBSERVATIONS and len(np.unique(table.values[of_trial, t])) > 1:
        but = f" but {listed([table.names[index] for index in apart])}, set in every observation" if apart else ""
        where = f"the {counted(int(of_trial.sum()), 'observation')} in which {table.names[t]} was set"
        return table.only(of_trial), True, [f"From {where}, and nothing else{but}."]
    notes = []
    if others.any() and (~others).sum() >= max(MIN_OBSERVATIONS, 2 * table.variables + 10):
        notes = [f"Without the {counted(int(others.sum()), 'observation')} in which other variables were set."]
        table = table.only(np.asarray(~others))
    elif others.any():
        notes = [
            "Also from observations in which other variables were set, since there are too few others: where these lie "
            "between treatment and outcome, the effect comes out too small."
        ]
    return table, table.intervened is not None and bool(table.intervened[:, t].all()), notes


def with_both_ends(table: Table, t: int, y: int, levels: Levels = None) -> Bools:
    """The observations that have a treatment, of one of the levels that are compared, and an outcome.  (N,)"""
    rows = table.observed[:, [t, y]].all(axis=1)
    return np.asarray(rows if levels is None else rows & np.isin(table.values[:, t], levels))


def by_missing_cells(observed: Bools, sets: Iterable[Set]) -> dict[Set, list[Set]]:
    """The sets that are complete in the same observations, under the variables that must be observed in these.

    `observed` (N, P) says which cells are. Variables that are missing together stand for each other, and complete ones
    are left out: sets without missing cells come under ().
    """
    complete = np.asarray(observed.all(axis=0))
    patterns: dict[bytes, int] = {}
    first = [patterns.setdefault(np.packbits(column).tobytes(), index) for index, column in enumerate(observed.T)]
    found: dict[Set, list[Set]] = {}
    for members in sets:
        incomplete = {first[member] for member in members if not complete[member]}
        found.setdefault(tuple(sorted(incomplete)), []).append(members)
    return found


# What a reader should know

TIMES = re.compile(r"(^|[_\W])(time|days?|weeks?|months?|years?|duration|tenure|futime|followup|surv\w*|stop)([_\W]|$)")
EVENTS = re.compile(r"(^|[_\W])(event|status|died|dead|death|cens\w*|fustat|relapsed?|fail\w*|churn\w*)([_\W]|$)")
MAX_DIFFERENCE = 0.02
"""Difference between the arms in the share of missing outcomes, from which it is mentioned."""


def event_column(table: Table, y: int) -> str | None:
    """The column that marks whether the event happened, if the outcome looks like the time until it."""
    if table.columns[y].kind != "number" or not np.nanmin(table.values[:, y]) >= 0:
        return None
    if not TIMES.search(table.names[y].lower()):
        return None
    marks = [
        column.name
        for index, column in enumerate(table.columns)
        if index != y and len(column.levels) == 2 and EVENTS.search(column.name.lower())
    ]
    return marks[0] if marks else None


def attrition(table: Table, t: int, y: int) -> str:
    """How many outcomes are missing in a trial, by arm if the arms differ; empty if none is."""
    known = table.observed[:, t]
    missing = ~table.observed[known, y]
    if not missing.any():
        return ""
    values = table.values[known, t]
    words = f"{in_percent(float(missing.mean()))} of the outcomes are missing"
    arms = np.unique(values)
    if len(arms) == 2:
        shares = [float(missing[values == arm].mean()) for arm in arms]
        if abs(shares[0] - shares[1]) > MAX_DIFFERENCE:
            first, second = (table.columns[t].levels or ("the lower value", "the higher value"))[:2]
            words += f", {in_percent(shares[0])} with {first} and {in_percent(shares[1])} with {second}"
            return f"{words}: those who are left may no longer be comparable."
    return f"{words}; the effect is that on the others."
