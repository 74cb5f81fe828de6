"""Estimating effects: from an answer, its table and graphs drawn from it to an `Effect`."""

# N observations, P variables, K graphs, S sets

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from causal_arrow.discovery.answer import Answer, why_uncaused
from causal_arrow.discovery.effects.adjustment import AdjustmentCounts, Set, count_adjustments
from causal_arrow.discovery.effects.effect import EQUAL_DIGITS, Effect, Effects, SetEffect
from causal_arrow.discovery.effects.forest import forest_estimate
from causal_arrow.discovery.effects.linear import Design, SetEstimate, curved, linear_estimates
from causal_arrow.discovery.effects.observations import (
    MIN_OBSERVATIONS,
    by_missing_cells,
    of_experiments,
    with_both_ends,
)
from causal_arrow.errors import ConfigurationError, KnowledgeError, Remedy, TableError, check_choice
from causal_arrow.graphs.dag import transitive_closure
from causal_arrow.tables import is_number, same_level
from causal_arrow.tables.options import cell_text
from causal_arrow.tables.scales import logarithms
from causal_arrow.tables.table import Column, Table
from causal_arrow.text import closest, counted, counted_share, in_digits, in_percent, listed

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Between = tuple[Any, Any] | None

ESTIMATORS = ("linear", "curved", "forest")
MAX_FOREST_SETS = 20
"""Adjustment sets that forests are grown for, the most frequent first: each takes seconds."""
CLEARLY_FEWER = 0.9
"""Share of the observations below which an answer says from how many it comes."""

# Why a set has no estimate
TOO_FEW = f"fewer than {MIN_OBSERVATIONS} observations are complete for it"
NOTHING_LEFT = "it leaves nothing of the treatment, or there are too few observations for it"
NO_FOREST = "no forest was grown for it"


@dataclass(frozen=True, eq=False)
class EffectQuestion:
    """How effects are to be estimated."""

    estimator: str = "linear"
    adjustment: str = "optimal"
    level: str | None = None
    """Of an outcome with levels, the one whose share is asked about."""

    def __post_init__(self) -> None:
        check_choice("estimator", self.estimator, ESTIMATORS)
        check_choice("adjustment", self.adjustment, ("optimal", "parents"))


def estimate_effect(
    answer: Answer,
    table: Table,
    graphs: Bools,
    treatment: str,
    outcome: str,
    *,
    between: Between = None,
    question: EffectQuestion | None = None,
    random: np.random.Generator,
) -> Effect:
    """The effect of the treatment on the outcome, over graphs (K, P, P) drawn from the answer.

    `between` is a pair of values or levels of the treatment; by default the effect is per unit, or from the first to
    the second level of a yes or no.
    """
    t, y = answer.index_of(treatment), answer.index_of(outcome)
    if t == y:
        raise ConfigurationError(f"Expected two different variables as treatment and outcome, got {treatment!r} twice.")
    _check_knowledge(answer, t, y)
    hidden = answer.sample_hidden(graphs, random)
    return _estimate(answer, table, graphs, hidden, (t, y), between, question or EffectQuestion(), random)


def design_for(
    table: Table,
    treatment: int,
    outcome: int,
    between: Between = None,
    level: str | None = None,
    curved_numbers: bool = False,
) -> Design:
    """The columns of a regression for one effect, of all variables: for estimates by a set that is known."""
    change = _change(table.columns[treatment], between, table.values[:, treatment])
    code = _level_asked(table.columns[outcome], level)
    rows = with_both_ends(table, treatment, outcome, change.levels) & table.observed.all(axis=1)
    if rows.sum() < MIN_OBSERVATIONS:
        raise TableError(
            f"Only {counted(int(rows.sum()), 'observation')} are complete, and {MIN_OBSERVATIONS} are the fewest "
            "for an estimate."
        )
    cells = list(table.values[rows].T)
    design = _design(cells, table.columns, (), keep=(treatment, outcome), change=change, level=code)
    if not curved_numbers:
        return design
    return curved(design, treatment, outcome, [column.kind == "number" for column in table.columns])


def estimate_effects(
    answer: Answer,
    table: Table,
    graphs: Bools,
    outcome: str,
    *,
    question: EffectQuestion | None = None,
    random: np.random.Generator,
) -> Effects:
    """The effects of all other variables on the outcome, the largest in standard deviations first.

    Those that most graphs do not identify come last. Variables that the knowledge keeps from being causes of the
    outcome are left out. Those whose effect has no estimate are `not_estimated`, among them categories of more than two
    levels, which have no single effect.
    """
    y = answer.index_of(outcome)
    possible = transitive_closure(~answer.constraints.forbidden & ~np.eye(len(answer.names), dtype=bool))[:, y]
    possible &= ~answer.constraints.precedence[y]
    if not np.delete(possible, y).any():
        _check_caused(answer, outcome)
        raise KnowledgeError(f"The knowledge leaves no cause for {outcome!r}: there is no effect to estimate.")
    hidden = answer.sample_hidden(graphs, random)
    found: list[Effect] = []
    without: dict[str, str] = {}
    categories: list[str] = []
    for t in range(len(answer.names)):
        if t == y or not possible[t]:
            continue
        if table.columns[t].kind == "category" and len(table.columns[t].levels) > 2:
            categories.append(answer.names[t])
            without[answer.names[t]] = "levels without an order have no single effect"
            continue
        try:
            found.append(_estimate(answer, table, graphs, hidden, (t, y), None, question or EffectQuestion(), random))
        except _NoEstimateError as error:
            without[answer.names[t]] = error.reason
    found.sort(
        key=lambda each: (
            each.verdict == "not identified",
            -round(abs(each.standardized), EQUAL_DIGITS),
            each.probability_of_none,
            each.treatment,
        )
    )
    return Effects(outcome, tuple(found), len(graphs), tuple(without), tuple(categories), without)


def _estimate(
    answer: Answer,
    table: Table,
    graphs: Bools,
    hidden: Bools | None,
    ends: tuple[int, int],
    between: Between,
    question: EffectQuestion,
    random: np.random.Generator,
) -> Effect:
    t, y = ends
    graphs, hidden = answer.carried_by(t, graphs, hidden)
    change = _change(table.columns[t], between, table.values[:, t])
    level = _level_asked(table.columns[y], question.level)
    uncaused = [answer.index_of(name) for name in answer.always_set if why_uncaused(answer, name)]
    chosen, by_trial, notes = of_experiments(table, t, y, change.levels, uncaused)
    if by_trial:
        graphs, hidden = _cut_causes(graphs, hidden, t)
    counts = count_adjustments(graphs, t, y, question.adjustment, hidden)
    wanted = dict(counts.sets)
    if question.estimator == "forest" and len(wanted) > MAX_FOREST_SETS:
        wanted = dict(list(wanted.items())[:MAX_FOREST_SETS])
        share = sum(wanted.values()) / sum(counts.sets.values())
        notes.append(
            f"Forests were grown for the {MAX_FOREST_SETS} most frequent adjustment sets, which {in_percent(share)} "
            "of the graphs with an effect ask for."
        )
    found = _estimates(answer, chosen, ends, list(wanted), change, level, question.estimator, random)
    if by_trial:  # no hidden cause of a variable that was set could explain its effect away
        unexplained = {key: each._replace(partial_correlation=math.nan) for key, each in found.estimates.items()}
        found = replace(found, estimates=unexplained)
    notes += _from_fewer(chosen, t, change, wanted, found)
    if on_log_scale := [answer.names[end] for end in ends if answer.names[end] in answer.log_columns]:
        read = f"The network read {' and '.join(on_log_scale)} on a log scale"
        notes.append(f"{read}; the effect is in the units that were given.")
    notes += _extrapolation(table.columns[t], between, chosen.values[:, t])
    _check_any(answer, chosen, counts, found, ends, change)
    return _effect(answer, table, counts, found, ends, change, level, question, tuple(notes))


@dataclass(frozen=True, eq=False)
class _Found:
    """Estimates by adjustment set, from how many observations each is, and why others have none."""

    estimates: Mapping[Set, SetEstimate]
    observations: Mapping[Set, int]
    why_not: Mapping[Set, str]
    with_both_ends: int
    """Observations that have a treatment and an outcome."""
    standard_unit: float
    """Standard deviation of the treatment over that of the outcome in these; NaN if they are too few."""


def _estimates(
    answer: Answer,
    table: Table,
    ends: tuple[int, int],
    sets: Sequence[Set],
    change: _Change,
    level: int | None,
    estimator: str,
    random: np.random.Generator,
) -> _Found:
    """The effect by each set, from the observations that are complete for it."""
    t, y = ends
    rows = with_both_ends(table, t, y, change.levels)
    values, observed = np.asfortranarray(table.values[rows]), table.observed[rows]
    everywhere = set(np.flatnonzero(observed.all(axis=0)).tolist())
    estimates: dict[Set, SetEstimate] = {}
    observations: dict[Set, int] = {}
    why_not: dict[Set, str] = {}
    unit = math.nan
    # Where nothing but the ends is asked for, the design still says how far they vary.
    for columns, group in {(): [], **by_missing_cells(observed, sets)}.items():
        complete = observed[:, list(columns)].all(axis=1)
        if complete.sum() < MIN_OBSERVATIONS:
            why_not.update(dict.fromkeys(group, TOO_FEW))
            continue
        # There may be hundreds of groups: each has the columns of its own sets alone.
        used = {*ends, *(member for members in group for member in members)} if columns else everywhere
        cells = [values[complete, index] if index in used else None for index in range(table.variables)]
        design = _design(cells, table.columns, answer.log_columns, keep=ends, change=change, level=level)
        constant = [answer.names[end] for end in ends if not design.varies(end)]
        if constant and not columns:
            raise _NoEstimateError(answer, ends, f"{constant[0]!r} is constant among the observations in use")
        if constant:
            why_not.update(dict.fromkeys(group, f"{constant[0]} is constant in the observations complete for it"))
            continue
        if not columns:
            (t_column,), (y_column,) = design.indices[t], design.indices[y]
            unit = float(design.deviations[t_column] / design.deviations[y_column] / change.size)
        by_set = _estimates_by(estimator, design, ends, group, table.columns, random)
        estimates.update(by_set)
        observations.update(dict.fromkeys(by_set, int(complete.sum())))
        why_not.update({members: NOTHING_LEFT for members in group if members not in by_set})
    return _Found(estimates, observations, why_not, len(values), unit)


def _estimates_by(
    estimator: str,
    design: Design,
    ends: tuple[int, int],
    sets: Sequence[Set],
    columns: Sequence[Column],
    random: np.random.Generator,
) -> dict[Set, SetEstimate]:
    t, y = ends
    if not sets:
        return {}
    if estimator == "linear":
        return linear_estimates(design, t, y, sets)
    if estimator == "curved":
        bent = curved(design, t, y, [column.kind == "number" for column in columns])
        found = linear_estimates(bent, t, y, sets)
        return {members: estimate._replace(partial_correlation=math.nan) for members, estimate in found.items()}
    return _forest_estimates(design, t, y, sets, columns[t].kind != "number", random)


def _from_fewer(table: Table, t: int, change: _Change, wanted: Mapping[Set, int], found: _Found) -> list[str]:
    """A note where missing cells leave clearly fewer observations than there are."""
    whole = table.observations
    if change.levels is not None:
        whole = int((np.isnan(table.values[:, t]) | np.isin(table.values[:, t], change.levels)).sum())
    used = list(found.observations.values())
    if not used or np.average(used, weights=[wanted[key] for key in found.observations]) >= CLEARLY_FEWER * whole:
        return []
    some = f"{min(used):,}" if min(used) == max(used) else f"{min(used):,} to {max(used):,}"
    depending = "" if min(used) == max(used) else ", depending on the adjustment set"
    return [f"From {some} of {counted(whole, 'observation')}{depending}: the others lack a value that is needed."]


def _check_any(
    answer: Answer,
    table: Table,
    counts: AdjustmentCounts,
    found: _Found,
    ends: tuple[int, int],
    change: _Change,
) -> None:
    """TableError where no set has an estimate, unless most graphs say something without one."""
    t, y = ends
    if found.estimates:
        return
    asked, lost = sum(counts.sets.values()), counts.not_identified
    if lost == counts.graphs:
        raise _NoEstimateError(
            answer,
            ends,
            "hidden causes spoil every adjustment set",
            message=f"The effect of {answer.names[t]!r} on {answer.names[y]!r} is not identified in any graph: hidden "
            "causes spoil every adjustment set.",
        )
    few = bool(set(found.why_not.values()) - {NOTHING_LEFT})
    if counts.without_effect and not (few and asked >= max(counts.without_effect, lost)):
        return
    if not few:
        reason = (
            "the variables to adjust for leave nothing of the treatment, or there are too few observations "
            f"({found.with_both_ends:,}) for them"
        )
    elif found.with_both_ends < MIN_OBSERVATIONS:
        of_levels = "" if change.levels is None else ", and one of the levels to compare"
        reason = (
            f"only {counted(found.with_both_ends, 'observation')} have values of both variables{of_levels}, and "
            f"{MIN_OBSERVATIONS} are the fewest"
        )
    else:
        reason = (
            f"of {counted(found.with_both_ends, 'observation')} with values of both variables, too few have values of "
            "all that has to be adjusted for"
        )
    if lost:
        reason += f"; it is not identified in {counted_share(lost / counts.graphs, 'graphs')}"
    remedies = [] if table.observed.all() or not few else [Remedy("missing", setting="impute")]
    raise _NoEstimateError(answer, ends, reason, remedies)


class _NoEstimateError(TableError):
    """That an effect has no estimate, and for what reason."""

    def __init__(
        self,
        answer: Answer,
        ends: tuple[int, int],
        reason: str,
        remedies: Sequence[Remedy] = (),
        message: str | None = None,
    ) -> None:
        treatment, outcome = (answer.names[end] for end in ends)
        usual = f"There is no estimate for the effect of {treatment!r} on {outcome!r}: {reason}."
        super().__init__(message or usual, remedies)
        self.reason = reason


def _effect(
    answer: Answer,
    table: Table,
    counts: AdjustmentCounts,
    found: _Found,
    ends: tuple[int, int],
    change: _Change,
    level: int | None,
    question: EffectQuestion,
    notes: tuple[str, ...],
) -> Effect:
    t, y = ends
    names, graphs = answer.names, counts.graphs
    sets = tuple(
        SetEffect(
            tuple(names[member] for member in members),
            count / graphs,
            _scaled(found.estimates[members], change.size),
            found.observations[members],
        )
        for members, count in counts.sets.items()
        if members in found.estimates
    )
    without = [members for members in counts.sets if members not in found.estimates]
    reasons = dict.fromkeys(found.why_not.get(members, NO_FOREST) for members in without)
    risks = None
    outcome = table.columns[y]
    if level is None and outcome.kind == "binary":
        level = 1  # the share of yes is the mean of such an outcome
    if table.columns[t].kind == outcome.kind == "binary" and question.level is None:
        risks = float(np.nanmean(table.values[:, y])), float(np.nanmean(table.values[:, t]))
    return Effect(
        treatment=names[t],
        outcome=names[y],
        change=change.words,
        sets=sets,
        graphs=graphs,
        probability_of_none=counts.without_effect / graphs,
        probability_not_identified=counts.not_identified / graphs,
        probability_not_estimated=sum(counts.sets[members] for members in without) / graphs,
        why_not_estimated=", or ".join(reasons),
        estimator=question.estimator,
        observations=sets[0].observations if sets else found.with_both_ends,
        notes=notes,
        risks=risks,
        standard_unit=found.standard_unit,
        level=None if level is None else outcome.levels[level],
        unit="levels" if level is None and outcome.kind == "ordered" else "",
    )


def _scaled(estimate: SetEstimate, size: float) -> SetEstimate:
    return estimate._replace(effect=estimate.effect * size, standard_error=estimate.standard_error * abs(size))


def _forest_estimates(
    design: Design, t: int, y: int, sets: Sequence[Set], steps: bool, random: np.random.Generator
) -> dict[Set, SetEstimate]:
    (t_column,), (y_column,) = design.indices[t], design.indices[y]
    treated, outcome = (design.values[:, index] * design.deviations[index] for index in (t_column, y_column))
    binary = steps and len(np.unique(treated)) == 2
    if binary:
        treated = (treated > treated.mean()).astype(np.float64)
    found = {}
    for members in sets:
        others = design.values[:, [index for member in members for index in design.indices[member]]]
        estimate = forest_estimate(treated, outcome, others, binary, random)
        if estimate is not None:
            found[members] = estimate
    return found


# The change of the treatment


@dataclass(frozen=True)
class _Change:
    """From where to where the treatment goes: how many units that is, in words, and the levels of a category."""

    size: float
    words: str
    levels: tuple[int, int] | None = None


def _change(column: Column, between: Between, values: Floats) -> _Change:
    if between is None:
        if column.kind == "binary" or (column.kind == "category" and len(column.levels) == 2):
            between = (column.levels[0], column.levels[1])
        elif column.kind == "category":
            raise ConfigurationError(
                f"{column.name!r} has levels without an order: name the two to compare, of {listed(column.levels)}.",
                [Remedy("between", (column.name,))],
            )
        else:
            return _Change(1.0, f"per {'level' if column.kind == 'ordered' else 'unit'} of {column.name}")
    if not isinstance(between, tuple | list) or len(between) != 2:
        raise ConfigurationError(f"Expected two values of {column.name!r} to compare, got {between!r}.")
    first, second = between
    if column.kind == "number":
        low, high = _as_number(column.name, first), _as_number(column.name, second)
        words = f"when {column.name} goes from {low:g} to {high:g}"
        levels = None
    else:
        levels = (_level(column, first), _level(column, second))
        low, high = float(levels[0]), float(levels[1])
        words = f"when {column.name} goes from {column.levels[levels[0]]} to {column.levels[levels[1]]}"
    if low == high:
        raise ConfigurationError(f"Expected two different values of {column.name!r} to compare, got {first!r} twice.")
    if column.kind == "category":
        return _Change(1.0, words, levels)
    return _Change(high - low, words)


def _extrapolation(column: Column, between: Between, values: Floats) -> list[str]:
    """A note where the treatment is to go beyond the values (N,) that were observed of it."""
    if between is None or column.kind != "number":
        return []
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    beyond = [value for value in map(float, between) if not low <= value <= high]
    if not beyond:
        return []
    named = f"{beyond[0]:g} lies" if len(beyond) == 1 else f"{beyond[0]:g} and {beyond[1]:g} lie"
    return [
        f"{named} beyond the observed values of {column.name}, which go from {in_digits(low)} to {in_digits(high)}: "
        "there the effect is extrapolated."
    ]


def _as_number(name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if isinstance(value, bool) or not math.isfinite(number):
        raise ConfigurationError(f"Expected a number as a value of {name!r}, got {value!r}.")
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


def _level_asked(column: Column, level: str | None) -> int | None:
    """The code of the level of the outcome whose share is asked about; None for the outcome itself."""
    if level is not None:
        if not column.levels:
            raise ConfigurationError(f"{column.name!r} holds numbers and has no levels to ask about.")
        return _level(column, level)
    if column.kind == "category":
        if len(column.levels) == 2:
            return 1
        raise ConfigurationError(
            f"{column.name!r} has levels without an order: say whose share you ask about, of {listed(column.levels)}.",
            [Remedy("level", (column.name,))],
        )
    return None


# Columns


def _cut_causes(graphs: Bools, hidden: Bools | None, variable: int) -> tuple[Bools, Bools | None]:
    """The graphs after a variable was set: nothing in or out of the table causes it."""
    graphs = graphs.copy()
    graphs[:, :, variable] = False
    if hidden is not None:
        hidden = hidden.copy()
        hidden[:, variable, :] = hidden[:, :, variable] = False
    return graphs, hidden


def _design(
    variables: Sequence[Floats | None],
    columns: Sequence[Column],
    log_columns: Sequence[str],
    keep: Sequence[int],
    change: _Change,
    level: int | None,
) -> Design:
    """Columns of a regression, for the variables whose cells (N,) are given; what is adjusted for is on the scale on
    which the network read it."""
    treatment, outcome = keep
    nothing = np.empty((len(next(cells for cells in variables if cells is not None)), 0))
    blocks = []
    for index, (cells, column) in enumerate(zip(variables, columns, strict=True)):
        if cells is None:
            block = nothing
        elif index == treatment and change.levels is not None:
            block = (cells == change.levels[1])[:, None].astype(np.float64)
        elif index == outcome and level is not None:
            block = (cells == level)[:, None].astype(np.float64)
        elif column.kind == "category":
            block = (cells[:, None] == np.unique(cells)[1:]).astype(np.float64)
        elif column.name in log_columns and index not in keep:
            block = logarithms(cells)[:, None]
        else:
            block = cells[:, None]
        blocks.append(block)
    return Design.of(blocks)


def _check_caused(answer: Answer, outcome: str) -> None:
    """ConfigurationError for an outcome that nothing in the table can change, whatever is known."""
    if reason := why_uncaused(answer, outcome):
        raise ConfigurationError(
            f"{outcome!r} {reason}, so nothing in the table changes it: there is no effect to estimate."
        )


def _check_knowledge(answer: Answer, t: int, y: int) -> None:
    """KnowledgeError where no graph that is allowed has a path from treatment to outcome."""
    allowed = ~answer.constraints.forbidden & ~np.eye(len(answer.names), dtype=bool)
    if transitive_closure(allowed)[t, y] and not answer.constraints.precedence[y, t]:
        return
    treatment, outcome = answer.names[t], answer.names[y]
    _check_caused(answer, outcome)
    if outcome in answer.knowledge.roots:
        raise KnowledgeError(
            f"By the knowledge {outcome!r} is a root: nothing in the table causes it, and there is no effect to "
            "estimate."
        )
    if treatment in answer.knowledge.leaves:
        raise KnowledgeError(
            f"By the knowledge {treatment!r} is a leaf: it causes nothing in the table, and there is no effect to "
            "estimate."
        )
    raise KnowledgeError(
        f"The knowledge rules out every path from {treatment!r} to {outcome!r}: there is no effect to estimate."
    )
