"""Questions about an effect: how to estimate it, for what change of the treatment, and from which observations."""

# N observations, P variables

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from causal_arrow.discovery.answer import index_among
from causal_arrow.discovery.effects._adjustment import Set
from causal_arrow.discovery.effects.linear import Design
from causal_arrow.errors import ConfigurationError, Remedy, check_choice
from causal_arrow.tables import is_number, same_level
from causal_arrow.tables.options import cell_text
from causal_arrow.tables.table import Column, Table
from causal_arrow.text import closest, counted, in_digits, in_percent, listed, shown

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Levels = tuple[int, int] | None
Between = tuple[Any, Any] | None

ESTIMATORS = ("flexible", "linear", "curved")
MIN_OBSERVATIONS = 20


@dataclass(frozen=True, eq=False)
class EffectQuestion:
    """Options for estimating an effect."""

    estimator: str = "flexible"
    adjustment: str = "optimal"
    level: str | None = None  # for an outcome with levels, the one whose share is asked about
    order: str = "assumed"
    """Whether the graphs are conditioned on the treatment coming before the outcome ("assumed") or not ("free")."""
    adjust_for: Sequence[str] | str | None = None
    """Columns to adjust for instead of the graphs' sets; "earlier" for all that the knowledge puts before it."""
    randomized: bool = False  # whether the treatment was randomized; also where the knowledge says so
    randomized_rows: str | None = None  # a yes or no column that marks the rows in which it was
    strata: Sequence[str] = ()  # columns within whose levels it was randomized
    cluster: str | None = None  # a column whose levels are the groups of dependent observations
    instrument: str | None = None  # a column that affects the outcome through the treatment alone
    between: Between = None  # two values or levels of the treatment; by default the effect is per unit

    def __post_init__(self) -> None:
        check_choice("estimator", self.estimator, ESTIMATORS)
        check_choice("adjustment", self.adjustment, ("optimal", "parents"))
        check_choice("order", self.order, ("assumed", "free"))
        if isinstance(self.adjust_for, str) and self.adjust_for != "earlier":
            raise ConfigurationError(
                f"Expected adjust_for to be a list of columns or 'earlier', got {self.adjust_for!r}."
            )
        if self.instrument is not None and self.randomized:
            raise ConfigurationError("A randomized treatment needs no instrument: give one of the two.")


# The change of the treatment


@dataclass(frozen=True)
class Change:
    """From where to where the treatment goes: how many units that is, in words, and the levels of a category."""

    size: float
    words: str
    levels: tuple[int, int] | None = None


def change_of(column: Column, between: Between) -> Change:
    """The change between two values or levels; by default per unit, or from the first to the second of two levels."""
    if between is None:
        if column.kind == "binary" or (column.kind == "category" and len(column.levels) == 2):
            between = (column.levels[0], column.levels[1])
        elif column.kind == "category":
            raise ConfigurationError(
                f"{column.name!r} has unordered levels: name the two to compare, of {listed(column.levels)}.",
                [Remedy("between", (column.name,))],
            )
        else:
            return Change(1.0, f"per {'level' if column.kind == 'ordered' else 'unit'} of {column.name}")
    if not isinstance(between, tuple | list) or len(between) != 2:
        raise ConfigurationError(f"Expected two values of {column.name!r} to compare, got {between!r}.")
    first, second = between
    if column.kind == "number":
        low, high = _as_number(column.name, first), _as_number(column.name, second)
        named = f"{low:g} to {high:g}"
    else:
        low, high = levels = _level(column, first), _level(column, second)
        named = f"{column.levels[levels[0]]} to {column.levels[levels[1]]}"
    if low == high:
        raise ConfigurationError(f"Expected two different values of {column.name!r} to compare, got {first!r} twice.")
    words = f"when {column.name} goes from {named}"
    return Change(1.0, words, levels) if column.kind == "category" else Change(float(high - low), words)


def extrapolation(column: Column, between: Between, values: Floats) -> list[str]:
    """A note where the treatment is to go beyond the values (N,) that were observed of it."""
    if between is None or column.kind != "number":
        return []
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    beyond = [f"{value:g}" for value in map(float, between) if not low <= value <= high]
    if not beyond:
        return []
    return [
        f"{' and '.join(beyond)} {'lies' if len(beyond) == 1 else 'lie'} beyond the observed values of {column.name}, "
        f"which go from {in_digits(low)} to {in_digits(high)}: there the effect is extrapolated."
    ]


def _as_number(name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if isinstance(value, bool) or not math.isfinite(number):
        raise ConfigurationError(f"Expected a number as a value of {name!r}, got {shown(value)}.")
    return number


def _level(column: Column, value: Any) -> int:
    if str(value) in column.levels:
        return column.levels.index(str(value))
    if (same := same_level(cell_text(value), column.levels)) is not None:
        return column.levels.index(same)
    codes = [f"{code}" for code in range(len(column.levels))]
    # Codes stand for words only: of levels 1 and 2, the value 0 is none.
    words = column.kind != "category" and not any(map(is_number, column.levels))
    if words and (code := cell_text(value)) in codes:
        return codes.index(code)
    near = closest(str(value), column.levels)
    hint = f"expected one of {listed(column.levels)}" if near is None else f"did you mean {near!r}?"
    raise ConfigurationError(f"{column.name!r} has no level {str(value)!r}: {hint}{'' if near else '.'}")


def level_asked(column: Column, level: str | None) -> int | None:
    """The code of the level of the outcome whose share is asked about; None for the outcome itself."""
    if level is not None:
        if not column.levels:
            raise ConfigurationError(f"{column.name!r} holds numbers and has no levels to ask about.")
        return _level(column, level)
    if column.kind != "category":
        return None
    if len(column.levels) == 2:
        return 1
    raise ConfigurationError(
        f"{column.name!r} has unordered levels: name the one whose share counts, of {listed(column.levels)}.",
        [Remedy("level", (column.name,))],
    )


# Columns of a regression


def design_of(
    cells_of: Mapping[int, Floats], columns: Sequence[Column], ends: tuple[int, int], change: Change, level: int | None
) -> Design:
    """Columns of a regression, for the variables whose cells (N,) are given, both ends among them."""
    treatment, outcome = ends
    nothing = np.empty((len(cells_of[treatment]), 0))
    blocks = []
    for index, column in enumerate(columns):
        if (cells := cells_of.get(index)) is None:
            block = nothing
        elif index == treatment and change.levels is not None:
            block = (cells == change.levels[1])[:, None].astype(np.float64)
        elif index == outcome and level is not None:
            block = (cells == level)[:, None].astype(np.float64)
        elif column.kind == "category":
            block = (cells[:, None] == np.unique(cells)[1:]).astype(np.float64)
        else:
            block = cells[:, None]
        blocks.append(block)
    return Design.of(blocks)


def clusters_of(table: Table, name: str) -> NDArray[np.intp]:
    """The cluster of each observation by a column, missing ones each for themselves.  (N,)"""
    values = table.values[:, index_among(table.names, name)].copy()
    holes = np.isnan(values)
    values[holes] = np.nanmax(values, initial=0.0) + 1 + np.arange(holes.sum())
    return np.unique(values, return_inverse=True)[1]


# Observations


def of_experiments(
    table: Table, t: int, y: int, levels: Levels, uncaused: Sequence[int] = ()
) -> tuple[Table, bool, list[str]]:
    """The table with the observations in which the treatment alone was set, or else in which no other variable was
    that might be on the way, as the `uncaused` are not; whether the treatment was set in them; and a note."""
    if table.intervened is None:
        return table, False, []
    apart = [index for index in uncaused if index != t]
    others = np.asarray(np.delete(table.intervened, [t, *apart], axis=1).any(axis=1))
    of_trial = table.intervened[:, t] & ~others & with_ends(table, t, y, levels)
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


def with_ends(table: Table, t: int, y: int, levels: Levels = None) -> Bools:
    """The observations that have a treatment, of one of the levels that are compared, and an outcome.  (N,)"""
    rows = table.observed[:, [t, y]].all(axis=1)
    return np.asarray(rows if levels is None else rows & np.isin(table.values[:, t], levels))


def by_missing_cells(observed: Bools, sets: Iterable[Set]) -> dict[Set, list[Set]]:
    """The sets that are complete in the same observations, under the variables that must be observed in these, one for
    all that are missing together."""
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
MIN_CENSORED = 0.05  # share of the rows with the longest time from which a study may have ended there
MIN_ALIKE = 0.98  # share of the rows in which a column must be yes or no as the time is the longest or not
MAX_DIFFERENCE = 0.02  # difference between the arms in the share of missing outcomes, from which it is mentioned


def event_column(table: Table, y: int) -> str | None:
    """The column that marks whether the event happened, if the outcome looks like the time until it."""
    if table.columns[y].kind != "number" or not np.nanmin(table.values[:, y]) >= 0:
        return None
    if not TIMES.search(table.names[y].lower()):
        return None
    yes_or_no = [index for index, column in enumerate(table.columns) if index != y and len(column.levels) == 2]
    marks = [index for index in yes_or_no if EVENTS.search(table.names[index].lower())]
    # Else many rows have the longest time, at which the study ended, and a column marks these alone.
    longest = table.values[:, y] == np.nanmax(table.values[:, y])
    if not marks and longest.mean() > MIN_CENSORED:
        codes = table.values[:, yes_or_no]
        alike = np.mean(codes == longest[:, None], axis=0)
        marks = [yes_or_no[place] for place in np.flatnonzero(np.abs(alike - 0.5) >= MIN_ALIKE - 0.5)]
    return table.names[marks[0]] if marks else None


def attrition(table: Table, t: int, y: int) -> list[str]:
    """A note on the share of missing outcomes in a trial, by arm if the arms differ."""
    known = table.observed[:, t]
    missing = ~table.observed[known, y]
    if not missing.any():
        return []
    values = table.values[known, t]
    words = f"{in_percent(float(missing.mean()))} of the outcomes are missing"
    arms = np.unique(values)
    if len(arms) == 2:
        shares = [float(missing[values == arm].mean()) for arm in arms]
        if abs(shares[0] - shares[1]) > MAX_DIFFERENCE:
            first, second = (table.columns[t].levels or ("the lower value", "the higher value"))[:2]
            words += f", {in_percent(shares[0])} with {first} and {in_percent(shares[1])} with {second}"
            return [f"{words}: the remaining ones may no longer be comparable."]
    return [f"{words}; the effect is estimated without these."]
