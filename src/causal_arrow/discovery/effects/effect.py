"""Effect: what happens to an outcome when a treatment changes, over all graphs that are possible.

A graph says what to adjust for. Many graphs are possible, so many adjustment sets are: each is used, as often as the
graphs ask for it, and the interval holds the doubt about the graph beside the doubt that few observations leave.
"""

# N observations, P variables, K graphs, S sets

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from causal_arrow.discovery.answer import Answer
from causal_arrow.discovery.effects import sensitivity
from causal_arrow.discovery.effects.adjustment import AdjustmentCounts, Set, count_adjustments, draw_hidden
from causal_arrow.discovery.effects.forest import forest_estimate
from causal_arrow.discovery.effects.linear import Design, SetEstimate, check_varies, linear_estimates
from causal_arrow.discovery.effects.mixture import Mixture, mixture_of
from causal_arrow.errors import ConfigurationError, KnowledgeError, Remedy, TableError, check_choice
from causal_arrow.graphs.dag import transitive_closure
from causal_arrow.tables.table import Column, Table
from causal_arrow.text import closest, counted, listed

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Between = tuple[Any, Any] | None

LEVEL = 0.9
"""Probability of the interval."""
ESTIMATORS = ("linear", "forest")
MOST_FOREST_SETS = 20
"""Adjustment sets that forests are grown for, the most frequent first: each takes seconds."""
FEWEST_OBSERVATIONS = 20
MOST_NAMED = 8
"""Members of an adjustment set that a sentence names."""


@dataclass(frozen=True)
class SetEffect:
    """The effect by one adjustment set, and the share of the graphs that ask for it."""

    adjustment_set: tuple[str, ...]
    frequency: float
    estimate: SetEstimate

    @property
    def robustness_value(self) -> float:
        """See `sensitivity.robustness_value`; NaN for an estimator that is not linear."""
        if math.isnan(self.estimate.partial_correlation):
            return math.nan
        return sensitivity.robustness_value(self.estimate.partial_correlation, self.estimate.freedom)


@dataclass(frozen=True, eq=False)
class Effect:
    """The effect of a treatment on an outcome over many possible graphs. `print(effect)` says it in words.

    Numbers are per unit of the treatment or, where it goes from one value to another, for that change.
    """

    treatment: str
    outcome: str
    change: str
    """The change of the treatment, in words: "per unit of dose"."""
    sets: tuple[SetEffect, ...]
    """The adjustment sets with an estimate, the most frequent first."""
    graphs: int
    """How many graphs were drawn."""
    probability_of_none: float
    """Share of the graphs in which no path leads from treatment to outcome."""
    probability_not_identified: float = 0.0
    """Share of the graphs in which a hidden cause spoils every adjustment set."""
    probability_not_estimated: float = 0.0
    """Share of the graphs whose set has no estimate: too few observations, or nothing of the treatment left."""
    estimator: str = "linear"
    observations: int = 0
    notes: tuple[str, ...] = ()
    risks: tuple[float, float] | None = None
    """Of a yes or no outcome under a yes or no treatment: the observed share of yes, overall and among the treated."""
    standard_unit: float = math.nan
    """Standard deviation of the treatment over that of the outcome, in units of the change."""

    @cached_property
    def distribution(self) -> Mixture:
        """All that is known of the effect, the point at zero included; graphs without an estimate are left out."""
        known = 1.0 - self.probability_not_identified - self.probability_not_estimated
        return mixture_of(
            [each.frequency / known for each in self.sets],
            [each.estimate.effect for each in self.sets],
            [each.estimate.standard_error for each in self.sets],
            [each.estimate.freedom for each in self.sets],
        )

    @property
    def mean(self) -> float:
        """The average effect, over graphs."""
        return self.distribution.mean

    @cached_property
    def interval(self) -> tuple[float, float]:
        """What the effect lies between with a probability of 90%."""
        return self.distribution.interval(LEVEL)

    @property
    def standardized(self) -> float:
        """The average effect in standard deviations of the outcome, per standard deviation of the treatment."""
        return self.mean * self.standard_unit

    @property
    def by_adjustment_set(self) -> pd.DataFrame:
        """One row per adjustment set, the most frequent first; the set None stands for graphs without any effect."""
        import pandas as pd

        rows = [self._row(each) for each in self.sets]
        if self.probability_of_none > 0:
            rows.append((None, self.probability_of_none, 0.0, 0.0, 0.0, 0.0, 0.0))
        columns = ["adjustment_set", "frequency", "effect", "standard_error", "low", "high", "robustness_value"]
        frame = pd.DataFrame(rows, columns=columns)
        return frame.sort_values("frequency", ascending=False, ignore_index=True, kind="stable")

    def _row(self, each: SetEffect) -> tuple[Any, ...]:
        estimate = each.estimate
        low, high = mixture_of([1.0], [estimate.effect], [estimate.standard_error], [estimate.freedom]).interval(LEVEL)
        numbers = (estimate.effect, estimate.standard_error, low, high, each.robustness_value)
        return (each.adjustment_set, each.frequency, *numbers)

    # Sensitivity

    @property
    def robustness_value(self) -> float:
        """Share of what is left of treatment and outcome that a hidden cause must explain to bring the effect to zero.

        By the adjustment sets on average; NaN without a linear estimate.
        """
        return self._average_robustness(None)

    @property
    def robustness_value_of_interval(self) -> float:
        """The same to bring zero into the 90% intervals of the adjustment sets, on average."""
        return self._average_robustness(LEVEL)

    def _average_robustness(self, level: float | None) -> float:
        linear = [each for each in self.sets if not math.isnan(each.estimate.partial_correlation)]
        if not linear:
            return math.nan
        values = [
            sensitivity.robustness_value(each.estimate.partial_correlation, each.estimate.freedom, level)
            for each in linear
        ]
        return float(np.average(values, weights=[each.frequency for each in linear]))

    @property
    def e_value(self) -> float:
        """For a yes or no treatment and outcome, the risk ratio that a hidden cause would need with both; else NaN."""
        if self.risks is None:
            return math.nan
        # Of the means over everybody: the risk if nobody were treated, and if everybody were.
        overall, treated = self.risks
        untreated_risk = min(max(overall - self.mean * treated, 1e-6), 1 - 1e-6)
        treated_risk = min(max(untreated_risk + self.mean, 1e-6), 1 - 1e-6)
        return sensitivity.e_value(treated_risk / untreated_risk)

    # In words

    def __str__(self) -> str:
        return " ".join([self.sentence, *self.sensitivity_sentences(), *self.notes])

    @property
    def sentence(self) -> str:
        """The effect, its interval, and what it was adjusted for, in one sentence."""
        if not self.sets:
            return f"{self.treatment} has no effect on {self.outcome} in any of {counted(self.graphs, 'graph')}."
        low, high = self.interval
        parts = [
            f"{self.outcome} changes by {_number(self.mean)} ({LEVEL:.0%} interval {_number(low)} to {_number(high)}) "
            f"{self.change}",
            f"no effect in {_share(self.probability_of_none)} of graphs",
            counted(len(self.sets), "adjustment set")
            + (", the most frequent " if len(self.sets) > 1 else ", ")
            + _braces(self.sets[0].adjustment_set),
        ]
        if self.probability_not_identified > 0:
            parts.append(
                f"not identified in {_share(self.probability_not_identified)} of graphs because of a hidden cause"
            )
        if self.probability_not_estimated > 0:
            parts.append(f"{_share(self.probability_not_estimated)} of graphs ask for a set that has no estimate")
        return "; ".join(parts) + "."

    def sensitivity_sentences(self) -> list[str]:
        """How strong a hidden cause would have to be, in words; nothing where there is hardly an effect to doubt."""
        sentences: list[str] = []
        if self.probability_of_none > 0.5:
            return sentences
        if not math.isnan(self.robustness_value):
            zero, interval = self.robustness_value, self.robustness_value_of_interval
            sentences.append(
                f"A hidden cause of both would have to explain {zero:.1%} of what is left of {self.treatment} and of "
                f"{self.outcome} after adjustment to bring the effect to zero"
                + (f", {interval:.1%} to bring zero into the interval." if interval >= 0.0005 else ".")
            )
        if not math.isnan(self.e_value):
            sentences.append(
                f"In risk ratios, it would have to raise both by a factor of {_number(self.e_value)} (E-value)."
            )
        return sentences

    def to_dict(self) -> dict[str, Any]:
        """The effect as JSON can hold it; docs/effects.md describes every field."""
        frame = self.by_adjustment_set
        sets = [
            {
                "adjustment_set": None if row[0] is None else list(row[0]),
                **_plain(dict(zip(frame.columns[1:], row[1:], strict=True))),
            }
            for row in frame.itertuples(index=False, name=None)
        ]
        return {
            "treatment": self.treatment,
            "outcome": self.outcome,
            "change": self.change,
            "estimator": self.estimator,
            "observations": self.observations,
            "graphs": self.graphs,
            **_plain(
                {
                    "mean": self.mean,
                    "low": self.interval[0],
                    "high": self.interval[1],
                    "standardized": self.standardized,
                    "probability_of_none": self.probability_of_none,
                    "probability_not_identified": self.probability_not_identified,
                    "probability_not_estimated": self.probability_not_estimated,
                    "robustness_value": self.robustness_value,
                    "robustness_value_of_interval": self.robustness_value_of_interval,
                    "e_value": self.e_value,
                }
            ),
            "by_adjustment_set": sets,
            "sentence": self.sentence,
            "sensitivity": self.sensitivity_sentences(),
            "notes": list(self.notes),
        }

    def plot(self, ax: Axes | None = None) -> Axes:
        """A picture of the distribution of the effect, coloured by adjustment set."""
        from causal_arrow.discovery.effects import pictures

        return pictures.draw_effect(self, ax)


@dataclass(frozen=True, eq=False)
class Effects:
    """The effects of all variables on one outcome, the largest in standard deviations first."""

    outcome: str
    effects: tuple[Effect, ...]
    graphs: int = field(default=0)

    def to_frame(self) -> pd.DataFrame:
        """One row per possible cause: the probability of an effect, and the effect with its 90% interval.

        `standardized` is in standard deviations of the outcome per standard deviation of the cause.
        """
        import pandas as pd

        rows = [
            (each.treatment, 1 - each.probability_of_none, each.mean, *each.interval, each.standardized)
            for each in self.effects
        ]
        return pd.DataFrame(rows, columns=["cause", "probability", "effect", "low", "high", "standardized"])

    def to_dict(self) -> dict[str, Any]:
        """The effects as JSON can hold them, each as `Effect.to_dict` gives it."""
        return {
            "outcome": self.outcome,
            "graphs": self.graphs,
            "effects": [each.to_dict() for each in self.effects],
        }

    def __str__(self) -> str:
        causes = [each for each in self.effects if each.probability_of_none < 1]
        if not causes:
            return f"Nothing in the table has an effect on {self.outcome} in any of {counted(self.graphs, 'graph')}."
        lines = [f"Causes of {self.outcome} in {counted(self.graphs, 'graph')}, the largest effect first:"]
        for each in causes:
            low, high = each.interval
            lines.append(
                f"  {each.treatment}: {_number(each.mean)} ({_number(low)} to {_number(high)}) {each.change}; "
                f"an effect in {_share(1 - each.probability_of_none)} of graphs"
            )
        return "\n".join(lines)

    def plot(self, ax: Axes | None = None) -> Axes:
        """A picture: the standardized effect of each cause with its interval, fainter where it is less probable."""
        from causal_arrow.discovery.effects import pictures

        return pictures.draw_effects(self, ax)


# Estimating


@dataclass(frozen=True, eq=False)
class EffectQuestion:
    """How effects are to be estimated."""

    estimator: str = "linear"
    adjustment: str = "optimal"

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
    t, y = answer.place_of(treatment), answer.place_of(outcome)
    if t == y:
        raise ConfigurationError(f"Expected two different variables as treatment and outcome, got {treatment!r} twice.")
    _check_knowledge(answer, t, y)
    hidden = _hidden(answer, len(graphs), random)
    return _estimate(answer, table, graphs, hidden, (t, y), between, question or EffectQuestion(), random)


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

    Categories of more than two levels have no single effect and are left out, and so are variables that the knowledge
    keeps from being causes of the outcome.
    """
    y = answer.place_of(outcome)
    possible = transitive_closure(~answer.constraints.forbidden & ~np.eye(len(answer.names), dtype=bool))[:, y]
    possible &= ~answer.constraints.precedence[y]
    if not np.delete(possible, y).any():
        raise KnowledgeError(f"The knowledge leaves no cause for {outcome!r}: there is no effect to estimate.")
    hidden = _hidden(answer, len(graphs), random)
    found = [
        _estimate(answer, table, graphs, hidden, (t, y), None, question or EffectQuestion(), random)
        for t in range(len(answer.names))
        if t != y and possible[t] and table.columns[t].kind != "category"
    ]
    found.sort(key=lambda each: (-abs(each.standardized), each.probability_of_none, each.treatment))
    return Effects(outcome, tuple(found), len(graphs))


def _hidden(answer: Answer, count: int, random: np.random.Generator) -> Bools | None:
    probabilities = answer.confounding_probabilities
    return None if probabilities is None else draw_hidden(probabilities, count, random)


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
    change = _change(table.columns[t], between, table.values[:, t])
    if table.columns[y].kind == "category":
        raise ConfigurationError(
            f"{answer.names[y]!r} has levels without an order: make a column of yes and no for the level you ask about."
        )
    counts = count_adjustments(graphs, t, y, question.adjustment, hidden)
    wanted = dict(counts.sets)
    notes: list[str] = []
    if question.estimator == "forest" and len(wanted) > MOST_FOREST_SETS:
        wanted = dict(list(wanted.items())[:MOST_FOREST_SETS])
        share = sum(wanted.values()) / sum(counts.sets.values())
        notes.append(
            f"Forests were grown for the {MOST_FOREST_SETS} most frequent adjustment sets, which {_share(share)} of "
            "the graphs with an effect ask for."
        )
    values = _observations(table, change, [t, y, *{member for members in wanted for member in members}])
    design = _design(values, table.columns, answer.log_columns, keep=(t, y), change=change)
    for end in ends:
        check_varies(design, end, answer.names[end])
    if question.estimator == "linear":
        estimates = linear_estimates(design, t, y, list(wanted))
    else:
        estimates = _forest_estimates(design, t, y, list(wanted), table.columns[t].kind != "number", random)
    notes += [
        f"The network read {answer.names[end]} on a log scale; the effect is in the units that were given."
        for end in ends
        if answer.names[end] in answer.log_columns
    ]
    return _effect(answer, table, counts, estimates, ends, change, question, design, tuple(notes))


def _effect(
    answer: Answer,
    table: Table,
    counts: AdjustmentCounts,
    estimates: Mapping[Set, SetEstimate],
    ends: tuple[int, int],
    change: _Change,
    question: EffectQuestion,
    design: Design,
    notes: tuple[str, ...],
) -> Effect:
    t, y = ends
    names, graphs = answer.names, counts.graphs
    if not estimates and counts.sets:
        raise TableError(
            f"There is no estimate for the effect of {names[t]!r} on {names[y]!r}: the variables to adjust for leave "
            f"nothing of {names[t]!r}, or there are too few observations ({len(design.values)}) for them."
        )
    if not estimates and counts.not_identified:
        raise ConfigurationError(
            f"The effect of {names[t]!r} on {names[y]!r} is not identified in any of {counted(graphs, 'graph')}: "
            "hidden causes spoil every adjustment set."
        )
    sets = tuple(
        SetEffect(tuple(names[member] for member in members), count / graphs, _scaled(estimates[members], change.size))
        for members, count in counts.sets.items()
        if members in estimates
    )
    missing = sum(count for members, count in counts.sets.items() if members not in estimates)
    risks = None
    if table.columns[t].kind == table.columns[y].kind == "binary":
        risks = float(np.nanmean(table.values[:, y])), float(np.nanmean(table.values[:, t]))
    (t_column,), (y_column,) = design.places[t], design.places[y]
    return Effect(
        treatment=names[t],
        outcome=names[y],
        change=change.words,
        sets=sets,
        graphs=graphs,
        probability_of_none=counts.without_effect / graphs,
        probability_not_identified=counts.not_identified / graphs,
        probability_not_estimated=missing / graphs,
        estimator=question.estimator,
        observations=len(design.values),
        notes=notes,
        risks=risks,
        standard_unit=float(design.deviations[t_column] / design.deviations[y_column] / change.size),
    )


def _scaled(estimate: SetEstimate, size: float) -> SetEstimate:
    return estimate._replace(effect=estimate.effect * size, standard_error=estimate.standard_error * abs(size))


def _forest_estimates(
    design: Design, t: int, y: int, sets: Sequence[Set], steps: bool, random: np.random.Generator
) -> dict[Set, SetEstimate]:
    (t_column,), (y_column,) = design.places[t], design.places[y]
    treated, outcome = (design.values[:, place] * design.deviations[place] for place in (t_column, y_column))
    binary = steps and len(np.unique(treated)) == 2
    if binary:
        treated = (treated > treated.mean()).astype(np.float64)
    found = {}
    for members in sets:
        others = design.values[:, [place for member in members for place in design.places[member]]]
        estimate = forest_estimate(treated, outcome, others, binary, random)
        if estimate is not None:
            found[members] = estimate
    return found


# The change of the treatment


@dataclass(frozen=True)
class _Change:
    """From where to where the treatment goes: how many units that is, in words, and the levels where it has some."""

    size: float
    words: str
    levels: tuple[int, int] | None = None


def _change(column: Column, between: Between, values: Floats) -> _Change:
    if between is None:
        if column.kind == "binary":
            between = (column.levels[0], column.levels[1])
        elif column.kind == "category":
            raise ConfigurationError(
                f"{column.name!r} has levels without an order: name the two to compare, of {listed(column.levels)}.",
                [Remedy("between", (column.name,))],
            )
        else:
            return _Change(1.0, f"per unit of {column.name}")
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
    codes = [f"{code}" for code in range(len(column.levels))]
    if column.kind != "category" and (code := str(value).removesuffix(".0")) in codes:
        return codes.index(code)
    near = closest(str(value), column.levels)
    hint = f"expected one of {listed(column.levels)}" if near is None else f"did you mean {near!r}?"
    raise ConfigurationError(f"{column.name!r} has no level {str(value)!r}: {hint}{'' if near else '.'}")


# Observations


def _observations(table: Table, change: _Change, used: Sequence[int]) -> Floats:
    """The observations that are complete where they are used and have one of the levels that are compared."""
    rows = table.observed[:, list(used)].all(axis=1)
    if change.levels is not None:
        rows &= np.isin(table.values[:, used[0]], change.levels)
    if rows.sum() < FEWEST_OBSERVATIONS:
        raise TableError(
            f"There are only {counted(int(rows.sum()), 'observation')} with all that is needed to estimate this "
            f"effect, and {FEWEST_OBSERVATIONS} are the fewest.",
            [] if table.observed.all() else [Remedy("missing", setting="impute")],
        )
    return np.asarray(table.values[rows])


def _design(
    values: Floats, columns: Sequence[Column], log_columns: Sequence[str], keep: Sequence[int], change: _Change
) -> Design:
    """Columns of a regression; what is adjusted for is on the scale on which the network read it."""
    treatment = keep[0]
    blocks = []
    for place, column in enumerate(columns):
        cells = values[:, place]
        if place == treatment and change.levels is not None:
            block = (cells == change.levels[1])[:, None].astype(np.float64)
        elif column.kind == "category":
            block = (cells[:, None] == np.unique(cells[~np.isnan(cells)])[1:]).astype(np.float64)
        elif column.name in log_columns and place not in keep:
            block = np.log(cells)[:, None]
        else:
            block = cells[:, None]
        blocks.append(np.where(np.isnan(block), 0.0, block))  # only where nobody looks
    return Design.of(blocks)


def _check_knowledge(answer: Answer, t: int, y: int) -> None:
    """KnowledgeError where no graph that is allowed has a path from treatment to outcome."""
    allowed = ~answer.constraints.forbidden & ~np.eye(len(answer.names), dtype=bool)
    if transitive_closure(allowed)[t, y] and not answer.constraints.precedence[y, t]:
        return
    treatment, outcome = answer.names[t], answer.names[y]
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


# Words


def _number(value: float) -> str:
    """Three digits that count: 6.04, 0.0123, 1,230."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{digits}f}" if digits <= 5 and abs(value) < 1e7 else f"{value:.3g}"


def _share(share: float) -> str:
    """A share in percent, where "0%" and "100%" mean exactly that."""
    if 0 < share < 0.01:
        return "under 1%"
    return "over 99%" if 0.99 < share < 1 else f"{share:.0%}"


def _braces(names: Sequence[str]) -> str:
    """A set of names, the first few of many."""
    if not names:
        return "the empty set"
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return "{" + ", ".join(names[:MOST_NAMED]) + more + "}"


def _plain(values: Mapping[str, float]) -> dict[str, float | None]:
    """Numbers as JSON has them: null where there is none."""
    return {name: float(value) if math.isfinite(value) else None for name, value in values.items()}
