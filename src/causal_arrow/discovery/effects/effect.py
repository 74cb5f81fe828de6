"""Effect: what happens to an outcome when a treatment changes, over many possible graphs; Effects: of all its causes.

Three answers, which may differ: how large the effect is, given that the treatment comes before the outcome; how many
graphs have a causal path; and whether the two still depend on each other after adjustment. A graph says what to adjust
for. Many graphs are possible, so each of their adjustment sets is used, weighted by the graphs that ask for it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from causal_arrow.discovery.answer import index_among
from causal_arrow.discovery.effects.falsification import holm
from causal_arrow.discovery.effects.linear import Clusters, Moments, SetEstimate, estimate_from
from causal_arrow.discovery.effects.mixture import Mixture, axes_of_rows
from causal_arrow.discovery.pictures.scene import EDGE_COLOR, QUIET_COLOR, shortened
from causal_arrow.errors import ConfigurationError
from causal_arrow.tables.frames import WithFrames
from causal_arrow.text import Readable, counted, counted_share, in_digits, in_percent, listed, visible

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from causal_arrow.tables.table import Column, Table

Verdict = Literal["effect", "no effect", "conflict", "unclear", "not identified"]
Order = Literal["assumed", "known", "free"]
"""Whether the treatment comes before the outcome by assumption, by knowledge, or only where a graph says so."""

LEVEL = 0.9  # probability of the interval
SIGNIFICANT = 1 - LEVEL
"""A smaller p value rejects that treatment and outcome do not depend on each other after adjustment."""
MIN_MENTIONED = 0.01  # share of the graphs that do not identify an effect, above which a ranking says so
EQUAL_DIGITS = 9  # decimal places that decide a ranking: processors round the last ones differently
MAX_NAMED = 8  # members of an adjustment set that a sentence names
MAX_REASONS = 3  # reasons for having no estimate that a sentence gives
MIN_COMPARED = 3  # causes from which a ranking says that many were compared
MAX_BARS = 30
MAX_AVERAGED = 40  # adjustment sets of each half that enter the mean of two halves, the most frequent first


HEADLINES: dict[Verdict, str] = {
    "effect": "",
    "no effect": "No sign of an effect of {treatment} on {subject}: {none} have no causal path, and no dependence is "
    "seen after adjustment ({p}).",
    "conflict": "Conflict: {none} have no causal path from {treatment} to {outcome}, but the two depend on each other "
    "after adjustment ({p}).",
    "unclear": "Unclear: {some} have a causal path from {treatment} to {outcome}, but no dependence of {treatment} and "
    "{subject} is seen after adjustment ({p}).",
    "not identified": "The effect of {treatment} on {subject} is not identified in {lost}: {blocked}.",
}
WORDS = ("treatment", "outcome", "level", "change", "estimator", "estimand", "design", "order", "split")
NUMBERS = ("median", "mean", "p_value", "standardized", "robustness_value", "robustness_value_of_interval", "e_value")
SHARES = tuple(f"probability_{of}" for of in ("of_none", "reversed", "not_identified", "not_estimated"))
"""Members of an effect that its JSON has under their own names; the mean of two effects has the mean of the shares."""


def interval_of(estimate: SetEstimate) -> tuple[float, float]:
    """The 90% interval of one estimate."""
    return Mixture.of([1.0], [estimate._replace(freedom=max(1.0, estimate.freedom))]).interval(LEVEL)


@dataclass(frozen=True)
class SetEffect:
    """The effect by one adjustment set, and the share of the graphs that ask for it."""

    adjustment_set: tuple[str, ...]
    frequency: float
    estimate: SetEstimate
    observations: int = 0  # number of observations that are complete for the set: the estimate is from these
    straight: bool = True  # whether the estimate is a straight line's

    @property
    def p_value(self) -> float:
        """The p value of the hypothesis that the effect is zero."""
        from scipy.special import stdtr

        statistic = abs(self.estimate.effect) / max(self.estimate.standard_error, 1e-300)
        return float(2 * stdtr(self.estimate.freedom, -statistic))

    @property
    def robustness_value(self) -> float:
        """See `robustness_value`; NaN for an estimator that has none."""
        return robustness_value(self.estimate.partial_correlation, self.estimate.freedom)

    @property
    def interval(self) -> tuple[float, float]:
        """The 90% interval by this set alone."""
        return interval_of(self.estimate)


@dataclass(frozen=True, eq=False)
class RowEffects:
    """The contribution of each observation of a table to an effect."""

    table: Table
    moments: Moments
    clusters: Clusters = None


@dataclass(frozen=True, eq=False, repr=False)
class Effect(Readable, WithFrames):
    """The effect of a treatment on an outcome over many possible graphs. `print(effect)` says it in words.

    Numbers are per unit of the treatment or, where it goes from one value to another, for that change.
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
    """Number of graphs drawn."""
    probability_of_none: float
    """Share of the graphs in which no path leads from treatment to outcome."""
    probability_not_identified: float = 0.0
    """Share of the graphs in which a hidden cause makes every adjustment set invalid."""
    probability_not_estimated: float = 0.0
    """Share of the graphs whose set has no estimate: too few observations, or nothing of the treatment left."""
    probability_reversed: float = 0.0
    """Share of the graphs in which the outcome causes the treatment, before the order of the two was assumed."""
    why_not_estimated: str = ""
    """Why these sets have no estimate, in words; empty if all have one."""
    blocking: tuple[tuple[str, str], ...] = ()
    """Pairs whose hidden cause makes every adjustment set invalid, the most frequent first."""
    order: Order = "known"
    """Whether the treatment comes before the outcome: "assumed" because the question says so, "known", or "free"."""
    chosen_set: bool = False
    """Whether the question names the adjustment set; `probability_not_identified` is then how often it is not valid."""
    design: Literal["observed", "trial", "instrument"] = "observed"
    """Source of the differences of the treatment."""
    split: bool = False
    """Whether graphs and estimates are from different rows."""
    estimator: str = "linear"
    """Method of estimation: "flexible", "linear" or "curved"."""
    estimand: str = ""
    """Over whom the effect is averaged, in words."""
    observations: int = 0
    """Number of observations behind the estimate by the most frequent set; each set is estimated from those that are
    complete for it."""
    notes: tuple[str, ...] = ()
    """Caveats, in sentences."""
    risks: tuple[float, float] | None = None
    """Observed share of yes, overall and among the treated, if outcome and treatment are both yes or no."""
    standard_unit: float = math.nan
    """Standard deviation of the treatment over that of the outcome, in units of the change."""
    level: str | None = None
    """The level of the outcome whose share changes; None for the outcome itself."""
    unit: str = ""
    """Unit of the change: "levels" for an ordered outcome, empty for numbers and shares."""
    fixed_interval: tuple[float, float] | None = None
    """The interval of an instrument, which is not that of the distribution."""
    fixed_p_value: float | None = None
    """The p value of two halves together."""
    rows: RowEffects | None = field(default=None, repr=False)
    """For effects within groups; None if it cannot be had."""
    mixture: Mixture | None = field(default=None, repr=False)
    """The distribution of two halves together."""

    # How large

    @cached_property
    def distribution(self) -> Mixture:
        """The distribution of the effect over the adjustment sets, given that the treatment precedes the outcome."""
        weights, estimates = [each.frequency for each in self.sets], [each.estimate for each in self.sets]
        return self.mixture or Mixture.of(weights, estimates)

    @cached_property
    def median(self) -> float:
        """The size of the effect, the median of its distribution; always within the interval."""
        return self.distribution.quantile(0.5)

    @property
    def mean(self) -> float:
        """Mean of the distribution over adjustment sets, near the median unless they disagree."""
        return self.distribution.mean

    @cached_property
    def interval(self) -> tuple[float, float]:
        """The 90% interval of the size, which covers the uncertainty about the adjustment set and the sampling error.

        Its ends are infinite for a weak instrument.
        """
        return self.fixed_interval or self.distribution.interval(LEVEL)

    # Whether there is one

    @property
    def probability_of_path(self) -> float:
        """Share of the graphs with a causal path from treatment to outcome."""
        return 1 - self.probability_of_none

    @property
    def tested_set(self) -> tuple[str, ...]:
        """The adjustment set of the test: the one that most graphs ask for."""
        return self.sets[0].adjustment_set

    @property
    def p_value(self) -> float:
        """The p value of the test that treatment and outcome do not depend on each other given `tested_set`."""
        return self.sets[0].p_value if self.fixed_p_value is None else self.fixed_p_value

    @property
    def verdict(self) -> Verdict:
        """The three answers in a word.

        "conflict" if most graphs have no causal path but the test finds dependence. Otherwise "not identified" if a
        hidden cause makes every adjustment set invalid in most graphs. Otherwise, with dependence, "effect"; without
        it, "unclear" if most graphs have a path and "no effect" if not. For a randomized treatment or an instrument the
        test decides between "effect" and "unclear".
        """
        found = self.p_value < SIGNIFICANT
        if self.design != "observed":
            return "effect" if found else "unclear"
        lost = round(self.probability_not_identified, EQUAL_DIGITS) > 0.5 and not self.chosen_set
        without = round(self.probability_of_none, EQUAL_DIGITS) > 0.5
        if lost and not (found and without):
            return "not identified"
        if without:
            return "conflict" if found else "no effect"
        return "effect" if found else "unclear"

    @property
    def standardized(self) -> float:
        """The size in standard deviations of the outcome, per standard deviation of the treatment."""
        return self.median * self.standard_unit if self.median else 0.0

    @property
    def rank(self) -> tuple[bool, float, float, str]:
        """Sort effects on one outcome: those that most graphs do not identify last, large and probable ones first."""
        size = round(abs(self.standardized) * self.probability_of_path, EQUAL_DIGITS)
        return self.verdict == "not identified", -size, self.probability_of_none, self.treatment

    @property
    def by_adjustment_set(self) -> pd.DataFrame:
        """The effect under each adjustment set, one row per set, the most frequent first."""
        return self._framed(self._sets())

    def _sets(self) -> pd.DataFrame:
        import pandas as pd

        rows = [
            (each.adjustment_set, each.frequency, *each.estimate[:2], *each.interval, each.robustness_value)
            for each in self.sets
        ]
        columns = ["adjustment_set", "frequency", "effect", "standard_error", "low", "high", "robustness_value"]
        return pd.DataFrame(rows, columns=columns)

    def by(self, column: str, bins: int = 4) -> pd.DataFrame:
        """The effect within groups of the observations, averaged over the most frequent adjustment sets.

        The column should be from before the treatment; numbers with many values are cut into `bins` groups of equal
        size.
        """
        import pandas as pd

        from causal_arrow.discovery.settings import check_count

        bins = check_count("bins", bins)
        if self.rows is None:
            raise ConfigurationError(
                "There are no effects by group for an instrument, for a randomized number, or with split rows."
            )
        table, moments, clusters = self.rows.table, self.rows.moments, self.rows.clusters
        index = index_among(table.names, column)
        if column in (self.treatment, self.outcome):
            raise ConfigurationError("Expected a column other than the treatment and the outcome.")
        rows = []
        for name, members in _groups(table.columns[index], table.values[:, index], bins):
            own = Moments(moments.numerator[members], moments.denominator[members])
            if not own.denominator.sum() > 0:
                continue
            within = None if clusters is None else np.unique(clusters[members], return_inverse=True)[1]
            estimate = estimate_from(own, len(own.numerator) - 1, within)
            rows.append((name, int((own.denominator != 0).sum()), estimate.effect, *interval_of(estimate)))
        return self._framed(pd.DataFrame(rows, columns=[column, "rows", "effect", "low", "high"]))

    def averaged_with(self, other: Effect) -> Effect:
        """The mean of two estimates of one effect, each from graphs of the other one's rows."""
        from scipy.special import ndtr

        halves = (self, other)
        shares = {name: (getattr(self, name) + getattr(other, name)) / 2 for name in SHARES}
        merged: dict[tuple[str, ...], SetEffect] = {}
        for each in (one for half in halves for one in half.sets):
            before = merged.get(each.adjustment_set)
            merged[each.adjustment_set] = _pooled(before, replace(each, frequency=each.frequency / 2))
        first, second = (half.sets[0].estimate for half in halves)
        error = math.hypot(first.standard_error, second.standard_error)
        statistic = abs(first.effect + second.effect) / max(error, 1e-300)
        parts = [replace(half, sets=half.sets[:MAX_AVERAGED]).distribution for half in halves]
        return replace(
            self,
            sets=tuple(sorted(merged.values(), key=lambda each: (-each.frequency, each.adjustment_set))),
            graphs=self.graphs + other.graphs,
            blocking=tuple(dict.fromkeys((*self.blocking, *other.blocking))),
            split=True,
            observations=self.observations + other.observations,
            notes=tuple(dict.fromkeys((*self.notes, *other.notes))),
            fixed_p_value=float(2 * ndtr(-statistic)),
            mixture=parts[0].averaged_with(parts[1]),
            rows=None,
            **shares,
        )

    # Sensitivity

    @property
    def robustness_value(self) -> float:
        """Share of the residual variance of both that a hidden cause must explain to bring the effect to zero.

        Averaged over the adjustment sets; NaN for a trial or an instrument.
        """
        return self._average_robustness(None)

    @property
    def robustness_value_of_interval(self) -> float:
        """The same share, to bring zero into the 90% intervals of the adjustment sets."""
        return self._average_robustness(LEVEL)

    def _average_robustness(self, level: float | None) -> float:
        linear = [each for each in self.sets if not math.isnan(each.estimate.partial_correlation)]
        if not linear:
            return math.nan
        values = [robustness_value(each.estimate.partial_correlation, each.estimate.freedom, level) for each in linear]
        return float(np.average(values, weights=[each.frequency for each in linear]))

    @property
    def e_value(self) -> float:
        """Risk ratio that a hidden cause would need with a yes or no treatment and outcome; NaN otherwise."""
        if self.risks is None:
            return math.nan
        # From the means over everybody: the risk if nobody were treated, and if everybody were.
        overall, treated = self.risks
        untreated_risk = min(max(overall - self.median * treated, 1e-6), 1 - 1e-6)
        treated_risk = min(max(untreated_risk + self.median, 1e-6), 1 - 1e-6)
        return e_value(treated_risk / untreated_risk)

    # In words

    @property
    def subject(self) -> str:
        """The quantity that changes: the outcome, or the share of one of its levels."""
        return self.outcome if self.level is None else f"the share of {self.outcome} = {self.level}"

    def __str__(self) -> str:
        return "\n".join(self.lines)

    @property
    def sentence(self) -> str:
        """The headline: the size of the effect, or the reason not to use it."""
        return self.lines[0]

    @property
    def lines(self) -> tuple[str, ...]:
        """The answer in words, one fact per line: the headline, the size, graphs, test, adjustment and caveats."""
        observed = self.design == "observed"
        tested = f"no dependence after adjustment for {_braces(self.tested_set)}" if observed else "no effect"
        found = [
            self._headline() if observed else "",
            self._size(),
            self._paths() if observed else "",
            f"Test of {tested}: {_p(self.p_value)}.",
            self._identification(),
            self._adjustment(),
            f"Estimand: {self.estimand}." if self.estimand else "",
            *self.sensitivity_sentences(),
            *self.notes,
            *(self._rows_and_curves() if observed else ()),
        ]
        return tuple(line for line in found if line)

    def _headline(self) -> str:
        return HEADLINES[self.verdict].format(
            treatment=self.treatment,
            outcome=self.outcome,
            subject=self.subject,
            none=counted_share(self.probability_of_none, "graphs"),
            some=counted_share(self.probability_of_path, "graphs"),
            lost=counted_share(self.probability_not_identified, "graphs"),
            blocked=self._blocked(),
            p=_p(self.p_value),
        )

    def _size(self) -> str:
        low, high = self.interval
        interval = f"{LEVEL:.0%} interval {in_digits(low)} to {in_digits(high)}"
        if math.isinf(low) or math.isinf(high):
            interval = f"{LEVEL:.0%} interval without bounds"
        said = f"{self.subject} changes by {self._amount(self.median)} ({interval}) {self.change}"
        if self.design != "observed":
            kind = "as the trial shows" if self.design == "trial" else "as the instrument shows"
            return f"{said}, {kind}."
        if self.verdict == "not identified":
            return f"Leaving hidden causes aside, {said}."
        if self.order == "assumed" and self.probability_reversed > 0:
            return f"{said}, given that {self.treatment} comes before {self.outcome}."
        return f"{said}."

    def _paths(self) -> str:
        some = counted_share(self.probability_of_path, counted(self.graphs, "graph"))
        line = f"Graphs: {some} with a causal path from {self.treatment} to {self.outcome}."
        if self.probability_reversed > MIN_MENTIONED and self.order != "known":
            without = "Without that order, " if self.order == "assumed" else ""
            share = in_percent(self.probability_reversed)
            line += f" {without}{self.outcome} causes {self.treatment} in {share} of them."
        return line

    def _blocked(self) -> str:
        pairs = [" and ".join(map(repr, pair)) for pair in self.blocking[:2]]
        if pairs:
            return f"a hidden cause of {' or of '.join(pairs)} may explain it"
        return "" if self.chosen_set else "several hidden causes may explain it"

    def _identification(self) -> str:
        if not self.probability_not_identified or self.verdict == "not identified":
            return ""
        share = counted_share(self.probability_not_identified, "graphs")
        start = "Not a valid adjustment set" if self.chosen_set else "Not identified"
        return f"{start} in {share}: {self._blocked()}".removesuffix(": ") + "."

    def _adjustment(self) -> str:
        parts = [f"Adjusted for {_braces(self.sets[0].adjustment_set)}"]
        if len(self.sets) > 1:
            others = counted(len(self.sets) - 1, "other set")
            parts[0] += f" in {in_percent(self.sets[0].frequency)} of graphs, {others} in the rest"
            between, within = self.distribution.between, self.distribution.within
            parts.append(f"standard deviation between sets {in_digits(between)}, within {in_digits(within)}")
        if len(humps := self.distribution.humps()) > 1 and self.design == "observed":
            parts.append(f"the sets disagree: estimates gather near {' and '.join(in_digits(each) for each in humps)}")
        if self.probability_not_estimated > 0:
            why = f" ({self.why_not_estimated})" if self.why_not_estimated else ""
            share = counted_share(self.probability_not_estimated, "graphs")
            parts.append(f"{share} ask for a set that has no estimate{why}")
        return "; ".join(parts) + "."

    def _rows_and_curves(self) -> list[str]:
        """Sentences on estimates by straight lines, and on the rows behind graphs and estimates."""
        found = ["Graphs and estimates are from the same rows, so the interval may be somewhat too narrow."]
        if self.split:
            found = ["Graphs are from one half of the rows and estimates from the other, then swapped."]
        straight = [each.frequency for each in self.sets if each.straight]
        if self.estimator == "flexible" and straight:
            sets, share = counted(len(straight), "adjustment set"), counted_share(sum(straight), "graphs")
            found.insert(0, f"Straight lines for {sets}, those of {share}.")
        return found

    def _amount(self, value: float) -> str:
        """A change of the outcome, with its unit."""
        return f"{in_digits(value)} {self.unit}".rstrip()

    def sensitivity_sentences(self) -> list[str]:
        """Sentences on how strong a hidden cause must be; empty for trials and where no dependence is found."""
        if self.p_value >= SIGNIFICANT:
            return []
        sentences = []
        if not math.isnan(self.robustness_value):
            zero, interval = self.robustness_value, self.robustness_value_of_interval
            outside = interval >= 0.0005 and not self.interval[0] <= 0 <= self.interval[1]
            sentences.append(
                f"A hidden cause would have to explain {in_percent(zero)} of the residual variance of both to bring "
                "the effect to zero"
                + (f", {in_percent(interval)} to bring zero into the interval." if outside else ".")
            )
        if not math.isnan(self.e_value):
            sentences.append(
                f"In risk ratios, it would have to raise both by a factor of {in_digits(self.e_value)} (E-value)."
            )
        return sentences

    def to_dict(self) -> dict[str, Any]:
        """The effect for JSON, as docs/reference/json.md describes it; numbers without a meaning are None."""
        frame = self._sets()
        sets = [
            {"adjustment_set": list(row[0]), **_plain(dict(zip(frame.columns[1:], row[1:], strict=True)))}
            for row in frame.itertuples(index=False, name=None)
        ]
        low, high = self.interval
        between, within = self.distribution.between, self.distribution.within
        return {
            **{name: getattr(self, name) for name in (*WORDS, "observations", "graphs", "verdict")},
            "why_not_estimated": self.why_not_estimated,
            "tested_set": list(self.tested_set),
            "blocking": [list(pair) for pair in self.blocking],
            **_plain({"low": low, "high": high, "between_sets": between, "within_sets": within}),
            **_plain({name: getattr(self, name) for name in (*NUMBERS, "probability_of_path", *SHARES)}),
            "by_adjustment_set": sets,
            "sentence": self.sentence,
            "lines": list(self.lines),
            "sensitivity": self.sensitivity_sentences(),
            "notes": list(self.notes),
        }

    def plot(self, ax: Axes | None = None) -> Axes:
        """A picture of the distribution of the effect, colored by adjustment set, on the axes or in a new figure."""
        label = f"change of {self.subject}{f' in {self.unit}' if self.unit else ''} {self.change}"
        if self.verdict == "not identified":
            lost = counted_share(self.probability_not_identified, "graphs")
            label += f"\nnot identified in {lost}: hidden causes are left aside"
        elif self.verdict in ("conflict", "no effect"):
            label += f"\n{counted_share(self.probability_of_none, 'graphs')} without a causal path"
        members = [each.adjustment_set for each in self.sets]
        if self.mixture is not None:  # the parts of a mean of two halves are pairs of sets
            members = [("both halves",)]
        return self.distribution.draw(members, self.median, self.interval, label, ax)


def _braces(names: Sequence[str]) -> str:
    """A set of names, the first few of many."""
    if not names:
        return "no column"
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return "{" + ", ".join(names[:MAX_NAMED]) + more + "}"


def _plain(values: Mapping[str, float]) -> dict[str, float | None]:
    """Numbers as JSON has them: null where there is none."""
    return {name: float(value) if math.isfinite(value) else None for name, value in values.items()}


def _p(value: float) -> str:
    """A p value in words: "p = 0.012", "p < 0.001"."""
    return "p < 0.001" if value < 0.001 else f"p = {value:.2g}"


def _pooled(first: SetEffect | None, second: SetEffect) -> SetEffect:
    """The effect by one set from the rows of both halves."""
    if first is None:
        return second
    halves = (first, second)
    weights = np.array([each.observations for each in halves], dtype=float)
    weights /= weights.sum()
    correlations = [each.estimate.partial_correlation for each in halves]
    estimate = SetEstimate(
        float(weights @ [each.estimate.effect for each in halves]),
        float(np.linalg.norm(weights * [each.estimate.standard_error for each in halves])),
        sum(each.estimate.freedom for each in halves),
        float(weights @ correlations),
    )
    frequency = first.frequency + second.frequency
    straight = first.straight or second.straight
    return SetEffect(second.adjustment_set, frequency, estimate, first.observations + second.observations, straight)


def _groups(column: Column, values: NDArray[np.float64], bins: int) -> list[tuple[str, NDArray[np.bool_]]]:
    """Groups of the observations by the values (N,) of a column: their names and members."""
    if column.levels:
        return [(level, values == code) for code, level in enumerate(column.levels) if (values == code).any()]
    known = np.unique(values[~np.isnan(values)])
    if len(known) <= bins:
        return [(f"{value:g}", values == value) for value in known]
    edges = np.unique(np.quantile(values[~np.isnan(values)], np.linspace(0, 1, bins + 1)))
    if len(edges) == 2:
        return [(f"{edges[0]:g} to {edges[1]:g}", (values >= edges[0]) & (values <= edges[1]))]
    groups = [(f"up to {edges[1]:g}", values <= edges[1])]
    groups += [(f"{low:g} to {high:g}", (values > low) & (values <= high)) for low, high in pairwise(edges[1:-1])]
    return [*groups, (f"above {edges[-2]:g}", values > edges[-2])]


# Sensitivity to a hidden cause of treatment and outcome


def robustness_value(partial_correlation: float, freedom: float, level: float | None = None) -> float:
    """Share of the residual variance of both that a hidden cause must explain to bring the effect to zero, or to bring
    zero into the interval of a `level`. By Cinelli and Hazlett (2020): with f² the odds R² / (1 − R²) of the partial R²
    of treatment and outcome, less what chance allows where there is a level, RV = (√(f⁴ + 4f²) − f²) / 2.
    """
    squared = min(partial_correlation**2, 1.0)
    if squared == 1.0:
        return 1.0
    strength = math.sqrt(squared / (1 - squared))
    if level is not None:
        if freedom <= 1:
            return 0.0
        from scipy.special import stdtrit

        strength -= float(stdtrit(freedom - 1, (1 + level) / 2)) / math.sqrt(freedom - 1)
    if strength <= 0:
        return 0.0
    # The same as the formula above, without subtracting two numbers that are nearly equal.
    return 2 * strength / (math.sqrt(strength**2 + 4) + strength)


def e_value(risk_ratio: float) -> float:
    """The risk ratio that a hidden cause must have with treatment and with outcome to explain this one away: RR +
    √(RR (RR − 1)), for 1 / RR where RR is below 1 (VanderWeele and Ding 2017)."""
    if not risk_ratio > 0:
        return math.inf
    ratio = max(risk_ratio, 1 / risk_ratio)
    return ratio + math.sqrt(ratio * (ratio - 1))


# All causes of one outcome


@dataclass(frozen=True, eq=False, repr=False)
class Effects(Readable, WithFrames):
    """The effects of all variables on one outcome, the largest first: size in standard deviations times share of paths.

    Those that most graphs do not identify come last: their numbers rest on few graphs.
    """

    outcome: str
    """The variable whose change is estimated."""
    effects: tuple[Effect, ...]
    """One per possible cause, the largest first; last those whose `verdict` is "not identified"."""
    graphs: int
    """Number of graphs drawn."""
    why_not_estimated: Mapping[str, str] = field(default_factory=dict)
    """Variables whose effect has no estimate, and the reason in words."""
    categories: tuple[str, ...] = ()
    """Variables among them with more than two unordered levels: each pair of levels has a separate effect."""

    @property
    def not_estimated(self) -> tuple[str, ...]:
        """Variables whose effect has no estimate."""
        return tuple(self.why_not_estimated)

    def to_frame(self) -> pd.DataFrame:
        """The effects as a data frame, one row per possible cause.

        `probability` is that of a causal path, `not_identified` the share of graphs in which a hidden cause makes every
        adjustment set invalid, `effect` the size if the cause comes before the outcome, with its 90% interval from
        `low` to `high`. `p_adjusted` allows for the number of comparisons (Holm), and `standardized` is in standard
        deviations of both. Causes that most graphs do not identify come last.
        """
        import pandas as pd

        frame = pd.DataFrame({"cause": [each.treatment for each in self.effects]})
        frame["probability"] = [each.probability_of_path for each in self.effects]
        frame["not_identified"] = [each.probability_not_identified for each in self.effects]
        frame["effect"] = [each.median for each in self.effects]
        frame[["low", "high"]] = [each.interval for each in self.effects] or np.empty((0, 2))
        frame["p_value"] = [each.p_value for each in self.effects]
        frame["p_adjusted"] = holm(frame["p_value"].to_numpy())
        frame["standardized"] = [each.standardized for each in self.effects]
        return self._framed(frame)

    def to_dict(self) -> dict[str, Any]:
        """The effects as JSON can hold them, each as `Effect.to_dict` gives it."""
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
            lines = [f"Causes of {self.subject} in {counted(self.graphs, 'graph')}, by size times share of paths:"]
            lines += [f"  {_in_short(each)}" for each in causes]
            lines += [f"  {line}" for line in [self.on_comparisons] if line]
        else:
            lines = [nothing_found(self)]
        if self.categories:
            lines.append(f"  {self.on_categories}: name two of its levels with effect(..., between=(..., ...))")
        if causes:
            lines += [f"  no estimate for {listed(names)}: {reason}" for names, reason in reasons_for_none(self)]
        return "\n".join(lines)

    @property
    def subject(self) -> str:
        """The quantity that changes: the outcome, or the share of one of its levels."""
        return self.effects[0].subject if self.effects else self.outcome

    @property
    def on_categories(self) -> str:
        """Names the categories, which have no single effect; empty if there are none."""
        several = len(self.categories) > 1
        words = "each a category" if several else "a category"
        return f"no single effect of {listed(self.categories)}, {words}" if self.categories else ""

    @property
    def on_comparisons(self) -> str:
        """Warns that the largest of many effects tend to be overstated; empty with few causes."""
        if len(self.effects) < MIN_COMPARED:
            return ""
        clear = int((holm(np.array([each.p_value for each in self.effects])) < SIGNIFICANT).sum())
        return (
            f"{counted(len(self.effects), 'variable')} were compared, so the largest effects are likely overstated; "
            f"allowing for that (Holm), {clear} depend on {self.outcome} after adjustment"
        )

    def plot(self, ax: Axes | None = None) -> Axes:
        """A picture of the standardized effects with their intervals, fainter where fewer graphs have a path, on the
        axes or in a new figure."""
        shown = [each for each in self.effects if each.probability_of_none < 1][:MAX_BARS]
        labels = [f"{shortened(visible(each.treatment), 1, 20)} ({_share_in_short(each)})" for each in shown]
        ax = axes_of_rows(ax, labels)
        ax.axvline(0, color=QUIET_COLOR, linewidth=0.8)
        for index, each in enumerate(shown):
            alpha = 0.2 + 0.8 * each.probability_of_path * (1 - each.probability_not_identified)
            ends = [end * each.standard_unit for end in each.interval]
            ax.plot(ends, [index, index], color=EDGE_COLOR, alpha=alpha, linewidth=2)
            ax.plot([each.median * each.standard_unit], [index], "o", color=EDGE_COLOR, alpha=alpha)
        ax.set_xlabel(visible(f"standardized effect on {self.outcome}"), parse_math=False)
        return ax


def nothing_found(effects: Effects) -> str:
    """Say that no cause of the outcome was found: because there is none, or because no effect could be estimated."""
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
    lost, share = effect.probability_not_identified, effect.probability_of_path
    if effect.verdict == "not identified":
        return f"{effect.treatment}: not identified in {counted_share(lost, 'graphs')}; leaving that aside {numbers}"
    also = f"; not identified in {in_percent(lost)}" if lost > MIN_MENTIONED else ""
    return f"{effect.treatment}: {numbers}; a causal path in {counted_share(share, 'graphs')}{also}"


def _share_in_short(effect: Effect) -> str:
    """Label for a picture: the share of graphs with an effect, or that most do not identify it."""
    if effect.verdict == "not identified":
        return f"not identified in {counted_share(effect.probability_not_identified)}"
    return counted_share(1 - effect.probability_of_none)
