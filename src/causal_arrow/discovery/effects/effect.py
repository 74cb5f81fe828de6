"""Effect: what happens to an outcome when a treatment changes, over all graphs that are possible.

A graph says what to adjust for. Many graphs are possible, so many adjustment sets are: each is used, as often as the
graphs ask for it, and the interval holds the doubt about the graph beside the doubt that few observations leave.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from causal_arrow.discovery.effects import pictures, sensitivity
from causal_arrow.discovery.effects.linear import SetEstimate
from causal_arrow.discovery.effects.mixture import Mixture, mixture_of
from causal_arrow.text import counted, counted_share, in_digits, in_percent, listed

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

Verdict = Literal["effect", "no effect", "not identified"]

LEVEL = 0.9
"""Probability of the interval."""
MIN_MENTIONED = 0.01
"""Share of the graphs that do not identify an effect, above which a ranking says so."""
MAX_REASONS = 3
"""Reasons for having no estimate that a sentence gives."""
EQUAL_DIGITS = 9
"""Decimal places that decide a ranking: processors round the last ones differently."""
MAX_NAMED = 8
"""Members of an adjustment set that a sentence names."""


@dataclass(frozen=True)
class SetEffect:
    """The effect by one adjustment set, and the share of the graphs that ask for it."""

    adjustment_set: tuple[str, ...]
    frequency: float
    estimate: SetEstimate
    observations: int = 0
    """How many observations are complete for the set: the estimate is from these."""

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

    Examples
    --------
    The examples of the members below continue this one.

    >>> from causal_arrow import Arrow, load_example
    >>> known = {"roots": ["age", "smoker", "ward"]}
    >>> arrow = Arrow(knowledge=known).fit(load_example("hospital"))
    >>> effect = arrow.effect("drug", "stay")
    >>> -2.2 < effect.median < -1.4
    True
    """

    treatment: str
    """The variable that is changed."""
    outcome: str
    """The variable whose change is estimated."""
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
    why_not_estimated: str = ""
    """Why these sets have no estimate, in words; empty if all have one."""
    estimator: str = "linear"
    """How the effect was estimated: "linear", "curved" or "forest"."""
    observations: int = 0
    """How many observations the estimate by the most frequent set rests on; each set is estimated from those that are
    complete for it."""
    notes: tuple[str, ...] = ()
    """What else a reader should know, in sentences."""
    risks: tuple[float, float] | None = None
    """Of a yes or no outcome under a yes or no treatment: the observed share of yes, overall and among the treated."""
    standard_unit: float = math.nan
    """Standard deviation of the treatment over that of the outcome, in units of the change."""
    level: str | None = None
    """Of an outcome with levels, the one whose share changes; None for the outcome itself."""
    unit: str = ""
    """What the change of the outcome is counted in: "levels" of an ordered one; empty for numbers and shares."""

    @cached_property
    def distribution(self) -> Mixture:
        """All that is known of the effect, a point at zero included; graphs without an estimate are left out.

        Returns
        -------
        Mixture
            With `mean`, `quantile(share)` and `interval(probability)`.

        Examples
        --------
        >>> effect.distribution.quantile(0.5) == effect.median
        True
        """
        known = 1.0 - self.probability_not_identified - self.probability_not_estimated
        return mixture_of(
            [each.frequency / known for each in self.sets],
            [each.estimate.effect for each in self.sets],
            [each.estimate.standard_error for each in self.sets],
            [each.estimate.freedom for each in self.sets],
        )

    @cached_property
    def median(self) -> float:
        """The median over graphs: as much probability lies below as above.

        Returns
        -------
        float
            Always in the interval; zero where most graphs have no effect.

        Examples
        --------
        >>> effect.interval[0] <= effect.median <= effect.interval[1]
        True
        """
        return self.distribution.quantile(0.5)

    @cached_property
    def median_if_any(self) -> float:
        """The median over the graphs that have an effect.

        Returns
        -------
        float
            NaN if none has.

        Examples
        --------
        >>> effect.median_if_any < 0
        True
        """
        return self.distribution.without_zero().quantile(0.5) if self.sets else math.nan

    @property
    def mean(self) -> float:
        """The average effect over graphs, those without an effect counted as zero.

        Returns
        -------
        float
            Where few graphs have no effect, or few have one, it can lie outside the interval.

        Examples
        --------
        >>> effect.mean < 0
        True
        """
        return self.distribution.mean

    @cached_property
    def interval(self) -> tuple[float, float]:
        """The 90% interval: the effect lies in it with a probability of 90%.

        Returns
        -------
        tuple of two floats
            The low and the high end.

        Examples
        --------
        >>> low, high = effect.interval
        >>> low < -1.8 < high  # the true effect
        True
        """
        return self.distribution.interval(LEVEL)

    @property
    def verdict(self) -> Verdict:
        """What most graphs say: whichever of the three has the largest share of them.

        Returns
        -------
        str
            "effect" if there is one that a set of variables adjusts for, "no effect" if no path leads from treatment to
            outcome, "not identified" if a hidden cause spoils every adjustment set. Of equal shares, the first of these
            counts.

        Examples
        --------
        >>> effect.verdict
        'effect'
        """
        shares: dict[Verdict, float] = {
            "effect": self._probability_of_estimate + self.probability_not_estimated,
            "no effect": self.probability_of_none,
            "not identified": self.probability_not_identified,
        }
        return max(shares, key=lambda each: round(shares[each], EQUAL_DIGITS))  # of equal ones, the first

    @property
    def _probability_of_estimate(self) -> float:
        return sum(each.frequency for each in self.sets)

    @property
    def standardized(self) -> float:
        """The average effect in standard deviations of the outcome, per standard deviation of the treatment.

        Returns
        -------
        float
            Comparable between treatments.

        Examples
        --------
        >>> -1 < effect.standardized < 0
        True
        """
        return self.mean * self.standard_unit if self.mean else 0.0

    @property
    def by_adjustment_set(self) -> pd.DataFrame:
        """The effect under each adjustment set.

        Returns
        -------
        DataFrame
            One row per set, the most frequent first; the set None stands for graphs without any effect.

        Examples
        --------
        >>> effect.by_adjustment_set["adjustment_set"][0]
        ('ward', 'inflammation')
        """
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

        Returns
        -------
        float
            From 0 to 1, averaged over the adjustment sets; NaN without a linear estimate.

        Examples
        --------
        >>> 0 < effect.robustness_value < 1
        True
        """
        return self._average_robustness(None)

    @property
    def robustness_value_of_interval(self) -> float:
        """The same share to bring zero into the 90% intervals of the adjustment sets.

        Returns
        -------
        float
            From 0 to 1, averaged over the adjustment sets; NaN without a linear estimate.

        Examples
        --------
        >>> effect.robustness_value_of_interval < effect.robustness_value
        True
        """
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
        """The risk ratio that a hidden cause would need with both, for a yes or no treatment and outcome.

        Returns
        -------
        float
            1 or more; NaN for other treatments and outcomes.

        Examples
        --------
        >>> effect.e_value  # the length of a stay is not yes or no
        nan
        """
        if self.risks is None:
            return math.nan
        # Of the means over everybody: the risk if nobody were treated, and if everybody were.
        overall, treated = self.risks
        untreated_risk = min(max(overall - self.mean * treated, 1e-6), 1 - 1e-6)
        treated_risk = min(max(untreated_risk + self.mean, 1e-6), 1 - 1e-6)
        return sensitivity.e_value(treated_risk / untreated_risk)

    # In words

    @property
    def subject(self) -> str:
        """What changes: the outcome, or the share of one of its levels.

        Returns
        -------
        str
            In words.

        Examples
        --------
        >>> effect.subject
        'stay'
        """
        return self.outcome if self.level is None else f"the share of {self.outcome} = {self.level}"

    def __str__(self) -> str:
        return " ".join([self.sentence, *self.sensitivity_sentences(), *self.notes])

    @property
    def sentence(self) -> str:
        """The effect, its interval, and what it was adjusted for, in one sentence.

        Returns
        -------
        str
            `print(effect)` adds how sensitive it is to a hidden cause.

        Examples
        --------
        >>> effect.sentence.startswith("stay changes by -1.")
        True
        """
        lost = self.probability_not_identified
        if self.verdict != "not identified":
            parts = self._parts(self.verdict, 1.0, "graphs")
            if lost > 0:
                parts.append(f"not identified in {counted_share(lost, 'graphs')} because of a hidden cause")
            return "; ".join(parts) + "."
        rest = 1 - lost
        where = f"In the other {in_percent(rest)}"
        verdict = "effect" if self._probability_of_estimate >= self.probability_of_none else "no effect"
        return (
            f"The effect of {self.treatment} on {self.subject} is not identified in {counted_share(lost, 'graphs')}: a "
            "hidden common cause of both cannot be ruled out, and nothing in the table adjusts for it. "
            f"{where}: {'; '.join(self._parts(verdict, rest, 'these'))}."
        )

    def _parts(self, verdict: str, whole: float, graphs: str) -> list[str]:
        """What the graphs say in which the effect is identified, shares as parts of the `whole`."""
        none, without = self.probability_of_none / whole, self.probability_not_estimated / whole
        no_effect = f"{self.treatment} has no effect on {self.subject}"
        if math.isclose(none, 1):
            return [no_effect if whole < 1 else f"{no_effect} in any of {counted(self.graphs, 'graph')}"]
        low, high = self.interval
        interval = f"{LEVEL:.0%} interval {in_digits(low)} to {in_digits(high)}"
        if not self.sets:
            parts = [f"{no_effect} in {in_percent(none)} of {graphs}"]
        elif verdict == "no effect":
            share = self._probability_of_estimate / whole
            others = "in the others" if math.isclose(share + none, 1) else f"in {in_percent(share)}"
            parts = [
                f"{no_effect} in {in_percent(none)} of {graphs}",
                f"{others} {self.subject} changes by {self._amount(self.median_if_any)} {self.change}",
                f"{interval}, over {'all graphs' if math.isclose(share + none, 1) else 'both'}",
            ]
        else:
            parts = [
                f"{self.subject} changes by {self._amount(self.median)} ({interval}) {self.change}",
                f"no effect in {in_percent(none)} of {graphs}" if none else "no graph without an effect",
            ]
        if not low <= self.mean <= high:
            parts.append(f"the mean over all graphs, with zero for those without an effect, is {in_digits(self.mean)}")
        if self.sets:
            parts.append(
                counted(len(self.sets), "adjustment set")
                + (", the most frequent " if len(self.sets) > 1 else ", ")
                + _braces(self.sets[0].adjustment_set)
            )
        if without > 0:
            why = f" ({self.why_not_estimated})" if self.why_not_estimated else ""
            parts.append(f"{counted_share(without, graphs)} ask for a set that has no estimate{why}")
        return parts

    def _amount(self, value: float) -> str:
        """A change of the outcome, with its unit."""
        return f"{in_digits(value)} {self.unit}".rstrip()

    def sensitivity_sentences(self) -> list[str]:
        """How strong a hidden cause would have to be, in words.

        Returns
        -------
        list of str
            Empty where most graphs say that there is no effect, or that it is not identified.

        Examples
        --------
        >>> len(effect.sensitivity_sentences())
        1
        """
        sentences: list[str] = []
        if self.verdict != "effect":
            return sentences
        if not math.isnan(self.robustness_value):
            zero, interval = self.robustness_value, self.robustness_value_of_interval
            # Graphs without an effect may have brought zero into the interval already.
            outside = interval >= 0.0005 and not self.interval[0] <= 0 <= self.interval[1]
            sentences.append(
                f"A hidden cause of both would have to explain {in_percent(zero)} of what is left of {self.treatment} "
                f"and of {self.outcome} after adjustment to bring the effect to zero"
                + (f", {in_percent(interval)} to bring zero into the interval." if outside else ".")
            )
        if not math.isnan(self.e_value):
            sentences.append(
                f"In risk ratios, it would have to raise both by a factor of {in_digits(self.e_value)} (E-value)."
            )
        return sentences

    def to_dict(self) -> dict[str, Any]:
        """The effect as JSON can hold it; docs/reference/json.md describes every field.

        Returns
        -------
        dict
            Numbers that have no meaning are None.

        Examples
        --------
        >>> effect.to_dict()["treatment"]
        'drug'
        """
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
            "level": self.level,
            "change": self.change,
            "estimator": self.estimator,
            "observations": self.observations,
            "graphs": self.graphs,
            "verdict": self.verdict,
            "why_not_estimated": self.why_not_estimated,
            **_plain(
                {
                    "median": self.median,
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
        """A picture of the distribution of the effect, colored by adjustment set.

        Parameters
        ----------
        ax
            The matplotlib axes to draw on; by default a new figure.

        Returns
        -------
        matplotlib.axes.Axes
            The axes that were drawn on.

        Examples
        --------
        >>> effect.plot().figure.savefig("effect.svg")
        """
        members = [each.adjustment_set for each in self.sets]
        label = f"change of {self.subject}{f' in {self.unit}' if self.unit else ''} {self.change}"
        if self.verdict == "not identified":
            lost = counted_share(self.probability_not_identified, "graphs")
            label += f"\nnot identified in {lost}; this is what the others say"
        return pictures.draw_effect(self.distribution, members, LEVEL, label, ax)


@dataclass(frozen=True, eq=False)
class Effects:
    """The effects of all variables on one outcome, the largest mean in standard deviations first.

    Those that most graphs do not identify come last: their numbers are those of few graphs.

    Examples
    --------
    >>> from causal_arrow import Arrow, load_example
    >>> arrow = Arrow().fit(load_example("hospital"))
    >>> effects = arrow.effects("stay", n_graphs=200)
    >>> effects.not_estimated  # levels without an order have no single effect
    ('ward',)
    """

    outcome: str
    """The variable whose change is estimated."""
    effects: tuple[Effect, ...]
    """One per possible cause, the largest first; last those whose `verdict` is "not identified"."""
    graphs: int
    """How many graphs were drawn."""
    not_estimated: tuple[str, ...] = ()
    """Variables whose effect has no estimate: levels without an order, too few complete observations, or nothing left
    of them after adjustment."""
    categories: tuple[str, ...] = ()
    """Those of them with more than two levels without an order: each two levels have an effect of their own."""
    why_not_estimated: Mapping[str, str] = field(default_factory=dict)
    """For each of `not_estimated`, the reason in words."""

    def to_frame(self) -> pd.DataFrame:
        """The effects as a data frame, one row per possible cause.

        Returns
        -------
        DataFrame
            `cause`; `probability` that there is an effect; `not_identified`, the share of graphs in which a hidden
            cause spoils every adjustment set; `effect`, the median over the other graphs, with `low` and `high` of its
            90% interval; and `standardized`, by which the causes are ranked: the mean in standard deviations of the
            outcome per standard deviation of the cause. Causes that most graphs do not identify come last.

        Examples
        --------
        >>> effects.to_frame()["cause"][0]
        'day3'
        """
        import pandas as pd

        rows = [
            (
                each.treatment,
                1 - each.probability_of_none,
                each.probability_not_identified,
                each.median,
                *each.interval,
                each.standardized,
            )
            for each in self.effects
        ]
        columns = ["cause", "probability", "not_identified", "effect", "low", "high", "standardized"]
        return pd.DataFrame(rows, columns=columns)

    def to_dict(self) -> dict[str, Any]:
        """The effects as JSON can hold them, each as `Effect.to_dict` gives it.

        Returns
        -------
        dict
            With `outcome`, `graphs`, `not_estimated`, `why_not_estimated`, `categories` and `effects`.

        Examples
        --------
        >>> effects.to_dict()["outcome"]
        'stay'
        """
        return {
            "outcome": self.outcome,
            "graphs": self.graphs,
            "not_estimated": list(self.not_estimated),
            "why_not_estimated": dict(self.why_not_estimated),
            "categories": list(self.categories),
            "effects": [each.to_dict() for each in self.effects],
        }

    def __str__(self) -> str:
        causes = [each for each in self.effects if each.probability_of_none < 1]
        if causes:
            lines = [f"Causes of {self.subject} in {counted(self.graphs, 'graph')}, the largest effect first:"]
            lines += [f"  {_in_short(each)}" for each in causes]
        else:
            lines = [nothing_found(self)]
        if self.categories:
            lines.append(f"  {self.on_categories}: name two of its levels with effect(..., between=(..., ...))")
        if causes:
            lines += [f"  no estimate for {listed(names)}: {reason}" for names, reason in reasons_for_none(self)]
        return "\n".join(lines)

    @property
    def subject(self) -> str:
        """What changes: the outcome, or the share of one of its levels.

        Returns
        -------
        str
            In words.

        Examples
        --------
        >>> effects.subject
        'stay'
        """
        return self.effects[0].subject if self.effects else self.outcome

    @property
    def on_categories(self) -> str:
        """That categories have no single effect, in words without advice.

        Returns
        -------
        str
            Empty if there are none.

        Examples
        --------
        >>> effects.on_categories
        "no single effect of 'ward', a category"
        """
        several = len(self.categories) > 1
        words = "each a category" if several else "a category"
        return f"no single effect of {listed(self.categories)}, {words}" if self.categories else ""

    def plot(self, ax: Axes | None = None) -> Axes:
        """A picture: the standardized effect of each cause with its interval, fainter where fewer graphs have it.

        Parameters
        ----------
        ax
            The matplotlib axes to draw on; by default a new figure.

        Returns
        -------
        matplotlib.axes.Axes
            The axes that were drawn on.

        Examples
        --------
        >>> effects.plot().figure.savefig("effects.svg")
        """
        causes = [
            pictures.Bar(
                each.treatment,
                _share_in_short(each),
                1 - each.probability_of_none - each.probability_not_identified,
                each.median * each.standard_unit,
                (each.interval[0] * each.standard_unit, each.interval[1] * each.standard_unit),
            )
            for each in self.effects
            if each.probability_of_none < 1
        ]
        return pictures.draw_effects(causes, f"standardized effect on {self.outcome}", ax)


# Words


def nothing_found(effects: Effects) -> str:
    """That no cause of the outcome was found: because there is none, or because no effect could be estimated."""
    in_any = f"has an effect on {effects.subject} in any of {counted(effects.graphs, 'graph')}"
    if reasons := reasons_for_none(effects):
        named = [f"for {listed(names)}, {reason}" for names, reason in reasons[:MAX_REASONS]]
        if rest := sum(len(names) for names, _ in reasons[MAX_REASONS:]):
            named.append(f"likewise for {rest} more")
        others = f"; nothing else {in_any}" if effects.effects else ""
        return f"No effect on {effects.subject} could be estimated: {'; '.join(named)}{others}."
    perhaps = f" but perhaps {listed(effects.categories)}" if effects.categories else ""
    return f"Nothing in the table{perhaps} {in_any}."


def reasons_for_none(effects: Effects) -> list[tuple[list[str], str]]:
    """The variables without an estimate and the reason that they share; without categories, which have no single
    effect."""
    by_reason: dict[str, list[str]] = {}
    for name in effects.not_estimated:
        if name not in effects.categories:
            by_reason.setdefault(effects.why_not_estimated[name], []).append(name)
    return [(names, reason) for reason, names in by_reason.items()]


def _in_short(effect: Effect) -> str:
    """One line of a ranking."""
    low, high = effect.interval
    numbers = f"{effect._amount(effect.median)} ({in_digits(low)} to {in_digits(high)}) {effect.change}"
    lost, share = effect.probability_not_identified, 1 - effect.probability_of_none
    if effect.verdict == "not identified":
        return f"{effect.treatment}: not identified in {counted_share(lost, 'graphs')}; in the others {numbers}"
    also = f"; not identified in {in_percent(lost)}" if lost > MIN_MENTIONED else ""
    return f"{effect.treatment}: {numbers}; an effect in {counted_share(share, 'graphs')}{also}"


def _share_in_short(effect: Effect) -> str:
    """In how many graphs there is an effect, or that most do not identify it, for the label of a picture."""
    if effect.verdict == "not identified":
        return f"not identified in {counted_share(effect.probability_not_identified)}"
    return counted_share(1 - effect.probability_of_none)


def _braces(names: Sequence[str]) -> str:
    """A set of names, the first few of many."""
    if not names:
        return "the empty set"
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return "{" + ", ".join(names[:MAX_NAMED]) + more + "}"


def _plain(values: Mapping[str, float]) -> dict[str, float | None]:
    """Numbers as JSON has them: null where there is none."""
    return {name: float(value) if math.isfinite(value) else None for name, value in values.items()}
