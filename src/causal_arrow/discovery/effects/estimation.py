"""Estimating effects: from an answer and its table to an `Effect`, over graphs drawn from the answer."""

# N observations, P variables, K graphs, S sets

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from causal_arrow.discovery.answer import Answer, index_among, why_uncaused
from causal_arrow.discovery.effects._adjustment import (
    AdjustmentCounts,
    Set,
    affected_on_the_way,
    blocking_pairs,
    closes_back_doors,
    count_adjustments,
    in_pieces,
    instruments,
    most_frequent_first,
)
from causal_arrow.discovery.effects._flexible import ESTIMANDS, Flexible, best_estimand, flexible
from causal_arrow.discovery.effects.effect import LEVEL, Effect, Effects, Order, RowEffects, SetEffect
from causal_arrow.discovery.effects.linear import (
    WEAK,
    Clusters,
    Design,
    InstrumentEstimate,
    Moments,
    SetEstimate,
    curved,
    instrument_estimate,
    linear_estimates,
    trial_estimate,
)
from causal_arrow.discovery.effects.mixture import Mixture
from causal_arrow.discovery.effects.questions import (
    MIN_OBSERVATIONS,
    Change,
    EffectQuestion,
    attrition,
    by_missing_cells,
    change_of,
    clusters_of,
    design_of,
    event_column,
    extrapolation,
    level_asked,
    of_experiments,
    with_ends,
)
from causal_arrow.errors import ConfigurationError, KnowledgeError, Remedy, TableError
from causal_arrow.graphs.dag import transitive_closure
from causal_arrow.graphs.knowledge import Knowledge
from causal_arrow.tables.table import Table
from causal_arrow.text import counted, counted_share, first_few, in_digits, in_percent

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

MAX_FLEXIBLE_SETS = 20
MAX_FLEXIBLE_WORK = 6e4
"""Observations times sets for which flexible models are fitted, those of the most frequent sets first."""
CLEARLY_FEWER = 0.9  # share of the observations below which an answer says how many it uses
MAX_SPOILED = 0.5
"""Share of graphs in which a chosen column is affected by the treatment, above which that is mentioned."""
MIN_LOST = 0.1  # share of graphs without a valid adjustment set from which possible instruments are mentioned
MIN_INSTRUMENT = 0.5  # share of graphs that must allow an instrument to be mentioned
MIN_CLUSTERS = 20  # clusters below which their standard errors are too small

# Why a set has no estimate
TOO_FEW = f"fewer than {MIN_OBSERVATIONS} observations are complete for it"
NOTHING_LEFT = "it leaves nothing of the treatment, or there are too few observations for it"

LEAST_SQUARES = "the average effect, weighted by the variance of the treatment that the adjustment leaves"
OF_TRIAL = "the average effect of the assignment in these observations"
OF_INSTRUMENT = "the local effect: that on those whose treatment the instrument changes"


def estimate_effect(
    answer: Answer,
    table: Table,
    treatment: str,
    outcome: str,
    question: EffectQuestion,
    random: np.random.Generator,
    count: int = 1000,
    graphs: Bools | None = None,
) -> Effect:
    """The effect of the treatment on the outcome, over `graphs` of the answer or `count` graphs drawn from it."""
    t, y = answer.index_of(treatment), answer.index_of(outcome)
    if t == y:
        raise ConfigurationError(f"Expected two different variables as treatment and outcome, got {treatment!r} twice.")
    if treatment in answer.knowledge.randomized:
        question = replace(question, randomized=True)
    if (question.strata or question.randomized_rows) and not question.randomized:
        raise ConfigurationError(
            f"Strata and rows of a trial are about a randomized treatment: say too that {treatment!r} was randomized."
        )
    if question.randomized and treatment not in answer.knowledge.randomized:
        answer, graphs = answer.refine(knowledge=answer.knowledge | Knowledge(randomized=[treatment])), None
    _check_knowledge(answer, t, y)
    graphs = answer.sample(count, random).graphs if graphs is None else graphs
    return _estimate(answer, table, _drawn(answer, t, y, question, graphs, random), question, random)


def halves(table: Table, cluster: str | None, random: np.random.Generator) -> tuple[Bools, Bools]:
    """Two random halves of the observations, no cluster in both.  (N,) each"""
    groups = np.arange(table.observations)
    if cluster is not None:
        groups = clusters_of(table, cluster)
    first = np.isin(groups, random.permutation(np.unique(groups))[: len(np.unique(groups)) // 2])
    return first, ~first


def estimate_effects(
    answer: Answer, table: Table, outcome: str, question: EffectQuestion, random: np.random.Generator, graphs: Bools
) -> Effects:
    """The effects on the outcome of all variables that may cause it, those that matter most first."""
    question = replace(question, order="free")
    y = answer.index_of(outcome)
    possible = _possible_effects(answer)[:, y] & ~answer.constraints.precedence[y]
    possible[y] = False
    if not possible.any():
        _check_caused(answer, outcome)
        raise KnowledgeError(f"The knowledge leaves no cause for {outcome!r}: there is no effect to estimate.")
    hidden = answer.sample_hidden(graphs, random)
    found: list[Effect] = []
    without: dict[str, str] = {}
    categories: list[str] = []
    for t in np.flatnonzero(possible).tolist():
        name, column = answer.names[t], table.columns[t]
        if column.kind == "category" and len(column.levels) > 2:
            categories.append(name)
            without[name] = "unordered levels have no single effect"
            continue
        drawn = _Drawn((t, y), graphs, hidden, "free", _share_reversed(graphs, t, y))
        own = replace(question, randomized=name in answer.knowledge.randomized)
        try:
            found.append(_estimate(answer, table, drawn, own, random))
        except _NoEstimateError as error:
            without[name] = error.reason
    found.sort(key=lambda each: each.rank)
    return Effects(outcome, tuple(found), len(graphs), without, tuple(categories))


# Graphs


@dataclass(frozen=True, eq=False)
class _Drawn:
    """Graphs for one question, and what is known about the order of its treatment and outcome."""

    ends: tuple[int, int]
    graphs: Bools  # (K, P, P)
    hidden: Bools | None  # (K, P, P)
    order: Order
    share_reversed: float  # of the graphs before they were conditioned on the order: the outcome causes the treatment


def _drawn(
    answer: Answer, t: int, y: int, question: EffectQuestion, graphs: Bools, random: np.random.Generator
) -> _Drawn:
    """The graphs, drawn again with the treatment before the outcome unless the order is free."""
    share = _share_reversed(graphs, t, y)
    order: Order = "assumed" if question.order == "assumed" else "free"
    if answer.constraints.precedence[t, y] or not _possible_effects(answer)[y, t]:
        order = "known"
    if order == "assumed" and share > 0:
        graphs = answer.sample(len(graphs), random, (answer.names[t], answer.names[y])).graphs
    return _Drawn((t, y), graphs, answer.sample_hidden(graphs, random), order, share)


def _share_reversed(graphs: Bools, t: int, y: int) -> float:
    return sum(int(transitive_closure(piece)[:, y, t].sum()) for (piece,) in in_pieces(graphs)) / len(graphs)


def _possible_effects(answer: Answer) -> Bools:
    """True where the knowledge lets j be a cause of k, direct or not.  (P, P)"""
    return transitive_closure(~answer.constraints.forbidden & ~np.eye(len(answer.names), dtype=bool))


# One effect


def _estimate(
    answer: Answer, table: Table, drawn: _Drawn, question: EffectQuestion, random: np.random.Generator
) -> Effect:
    t, y = drawn.ends
    graphs, hidden = answer.carried_by(t, drawn.graphs, drawn.hidden)
    change = change_of(table.columns[t], question.between)
    level = level_asked(table.columns[y], question.level)
    if question.randomized:
        by_trial, (chosen, notes) = True, _of_trial(table, t, y, question)
    else:
        uncaused = [answer.index_of(name) for name in answer.always_set if why_uncaused(answer, name)]
        chosen, by_trial, notes = of_experiments(table, t, y, change.levels, uncaused)
    if by_trial:
        graphs, hidden = _cut_causes(graphs, hidden, t)
    asked = _Asked(answer, chosen, (t, y), change, level, question)
    named = _named_set(answer, t, y, question)
    counts = own = count_adjustments(graphs, t, y, question.adjustment, hidden)
    if question.instrument is not None:
        found = asked.by_instrument(named or ())
    elif question.randomized:
        found = asked.by_trial(tuple(sorted({*(named or ()), *map(answer.index_of, question.strata)} - {t, y})))
    else:
        if named is not None:
            counts, spoils = _with_set(counts, graphs, hidden, drawn.ends, named)
            notes += _on_named_set(asked, named, own, spoils, random)
        else:
            notes += _suggested_instruments(answer, graphs, hidden, drawn.ends, counts.not_identified / counts.graphs)
        found = asked.by_sets(counts.sets, random)
    if question.instrument is not None or question.randomized:
        counts = replace(counts, sets=dict.fromkeys(found.estimates, counts.graphs), not_identified=0, blocking=())
    if by_trial or question.instrument is not None:  # no hidden cause of the treatment could explain its effect away
        found.estimates = _without_correlations(found.estimates)
    notes += found.notes
    notes += _from_fewer(chosen, t, change, counts.sets, found)
    notes += extrapolation(table.columns[t], question.between, chosen.values[:, t])
    notes += asked.cautions(found)
    if not found.estimates:
        raise _why_no_estimate(asked, counts, found)
    effect = _effect(asked, drawn, counts, found, by_trial, tuple(notes))
    return replace(effect, chosen_set=named is not None and effect.design == "observed")


def _without_correlations(estimates: Mapping[Set, SetEstimate]) -> dict[Set, SetEstimate]:
    """The estimates without what the sensitivity to a hidden cause is computed from."""
    return {members: each._replace(partial_correlation=math.nan) for members, each in estimates.items()}


def _named_set(answer: Answer, t: int, y: int, question: EffectQuestion) -> Set | None:
    """The columns that `adjust_for` names; None if the graphs decide."""
    if question.adjust_for is None:
        return None
    if question.adjust_for == "earlier":
        earlier = ~_possible_effects(answer)[t]
        earlier[[t, y]] = False
        if not earlier.any():
            raise KnowledgeError(
                f"The knowledge puts no column before {answer.names[t]!r}: name those to adjust for, or say with tiers "
                "or roots which come earlier."
            )
        return tuple(np.flatnonzero(earlier).tolist())
    members = {answer.index_of(name) for name in question.adjust_for}
    if members & {t, y}:
        raise ConfigurationError("Expected columns to adjust for, got the treatment or the outcome.")
    return tuple(sorted(members))


def _with_set(
    counts: AdjustmentCounts, graphs: Bools, hidden: Bools | None, ends: tuple[int, int], named: Set
) -> tuple[AdjustmentCounts, Floats]:
    """Count all graphs under one set, which may not be valid; and the share in which each variable spoils it because
    the treatment affects it on its way to the outcome.  (P,)"""
    t, y = ends
    members = np.zeros((len(graphs), graphs.shape[1]), dtype=bool)
    members[:, list(named)] = True
    hidden = np.zeros_like(graphs) if hidden is None else hidden
    lost, blocking = 0, Counter[Set]()
    spoils = np.zeros(graphs.shape[1])
    for piece, shared, own in in_pieces(graphs, hidden, members):
        descends = transitive_closure(piece)
        forwards = ~descends[:, y, t]
        spoiled = affected_on_the_way(descends, t, y) & own
        spoils += (spoiled & forwards[:, None]).sum(axis=0)
        closed = closes_back_doors(piece, shared, t, y, own)
        lost += int((forwards & ~(closed & ~spoiled.any(axis=1))).sum())
        if not blocking:

            def is_valid(hidden: Bools, piece: Bools = piece, own: Bools = own) -> Bools:
                return closes_back_doors(piece, hidden, t, y, own)

            # Where a path stays open without any hidden cause, none is to blame.
            blocking = blocking_pairs(shared, t, is_valid, forwards & ~closed & is_valid(np.zeros_like(shared)))
    pairs = tuple(most_frequent_first(blocking))
    counts = replace(counts, sets={named: counts.graphs}, not_identified=lost, blocking=pairs)
    return counts, spoils / max(1, counts.graphs - counts.reversed)


def _on_named_set(
    asked: _Asked, chosen: Set, own: AdjustmentCounts, spoils: Floats, random: np.random.Generator
) -> list[str]:
    """Notes on columns that a person chose: those that spoil the set, and the estimate by the sets of the graphs."""
    names, t = asked.answer.names, asked.ends[0]
    notes = []
    worst = [index for index in np.argsort(-spoils, kind="stable").tolist() if spoils[index] > MAX_SPOILED]
    if named := [f"{names[index]} ({counted_share(float(spoils[index]))})" for index in worst]:
        notes.append(
            f"In most graphs {names[t]} affects {first_few(named, 3)} on its way to {names[asked.ends[1]]} or through "
            "it: then adjusting for that biases the effect."
        )
    asked_for = Counter[int]()
    for members, count in own.sets.items():
        asked_for.update(dict.fromkeys(set(members) - set(chosen), count))
    often = [(names[index], count / own.graphs) for index, count in asked_for.most_common() if count > own.graphs / 2]
    if named := [f"{name} ({counted_share(share)})" for name, share in often]:
        notes.append(f"Most graphs adjust for {first_few(named, 3)}.")
    if found := asked.by_sets(own.sets, random).estimates:
        mixture = Mixture.of([own.sets[members] for members in found], list(found.values()))
        quantiles = sorted(asked.change.size * mixture.quantile(share) for share in (0.05, 0.5, 0.95))
        low, middle, high = map(in_digits, quantiles)
        notes.append(f"By the graphs' own adjustment sets: {middle} ({LEVEL:.0%} interval {low} to {high}).")
    return notes


def _suggested_instruments(
    answer: Answer, graphs: Bools, hidden: Bools | None, ends: tuple[int, int], lost: float
) -> list[str]:
    """Mention columns that most graphs allow as instruments, where a hidden cause keeps many from a valid set."""
    if hidden is None or lost < MIN_LOST:
        return []
    counts = [len(piece) * instruments(piece, *ends, shared) for piece, shared in in_pieces(graphs, hidden)]
    shares = np.sum(counts, axis=0) / len(graphs)
    treatment, outcome = (answer.names[end] for end in ends)
    return [
        f"{answer.names[index]} might serve as an instrument: in {counted_share(float(shares[index]), 'graphs')} it "
        f"affects {treatment}, and {outcome} through {treatment} alone."
        for index in sorted(np.flatnonzero(shares > MIN_INSTRUMENT).tolist(), key=lambda index: -shares[index])[:2]
    ]


def _of_trial(table: Table, t: int, y: int, question: EffectQuestion) -> tuple[Table, list[str]]:
    """The rows in which the treatment was randomized, and what a reader of a trial should know."""
    notes = []
    if question.randomized_rows is not None:
        marks = index_among(table.names, question.randomized_rows)
        if len(table.columns[marks].levels) != 2 and set(np.unique(table.values[:, marks])) - {0.0, 1.0}:
            raise ConfigurationError(f"Expected {question.randomized_rows!r} to be yes or no, or 0 and 1.")
        table = table.only(np.asarray(table.values[:, marks] == 1))
        notes.append(f"From the {counted(table.observations, 'row')} that {question.randomized_rows} marks.")
    elif table.intervened is not None and table.intervened[:, t].any():
        table = table.only(np.asarray(table.intervened[:, t]))
        notes.append(f"From the {counted(table.observations, 'row')} in which {table.names[t]} was set.")
    notes += attrition(table, t, y)
    notes.append("If some did not take what they were assigned, the effect of taking it is larger.")
    return table, notes


@dataclass(eq=False)
class _Found:
    """Estimates by adjustment set, the observations that each is from, and why other sets have none."""

    with_both_ends: int  # observations that have a treatment and an outcome
    standard_unit: float  # deviation of the treatment over that of the outcome in these; NaN if they are too few
    estimand: str = LEAST_SQUARES
    estimates: dict[Set, SetEstimate] = field(default_factory=dict)
    observations: dict[Set, int] = field(default_factory=dict)
    rows: dict[Set, Bools] = field(default_factory=dict)  # (N,) each, of estimates with moments
    why_not: dict[Set, str] = field(default_factory=dict)
    flexible: frozenset[Set] = frozenset()  # the sets that were estimated without straight lines
    extreme: float = 0.0  # share of observations with a probability of treatment near 0 or 1, of any set the largest
    instrument: InstrumentEstimate | None = None
    notes: tuple[str, ...] = ()

    def add(self, wanted: Sequence[Set], estimates: Mapping[Set, SetEstimate], rows: Bools) -> None:
        """Keep the estimates from some observations, and that nothing is left for the other sets that are wanted."""
        self.estimates.update(estimates)
        self.observations.update(dict.fromkeys(estimates, int(rows.sum())))
        self.rows.update({members: rows for members, each in estimates.items() if each.moments is not None})
        self.why_not.update({members: NOTHING_LEFT for members in wanted if members not in estimates})


@dataclass(frozen=True, eq=False)
class _Asked:
    """A question about the columns of a table."""

    answer: Answer
    table: Table
    ends: tuple[int, int]
    change: Change
    level: int | None
    question: EffectQuestion

    def design(self, rows: Bools, members: Sequence[int], fill: bool = False) -> Design:
        """The columns of a regression on some variables and the ends, from some observations."""
        cells = {index: self.table.values[rows, index] for index in (*self.ends, *members)}
        for index in members if fill else ():  # by the mean, which for codes of levels stands for one more level
            cells[index] = np.where(np.isnan(cells[index]), np.nanmean(cells[index]), cells[index])
        return design_of(cells, self.table.columns, self.ends, self.change, self.level)

    def end_values(self, design: Design) -> tuple[Floats, Floats]:
        """Treatment and outcome as they enter regressions, in their units.  (N,) each"""
        t, y = (design.columns_of[end][0] for end in self.ends)
        return design.values[:, t] * design.deviations[t], design.values[:, y] * design.deviations[y]

    def complete(self, members: Sequence[int]) -> Bools:
        """The observations that have both ends and these variables.  (N,)"""
        both = with_ends(self.table, *self.ends, self.change.levels)
        return np.asarray(both & self.table.observed[:, list(members)].all(axis=1))

    def clusters(self, rows: Bools) -> Clusters:
        """The cluster of each of some observations, numbered without gaps."""
        if self.question.cluster is None:
            return None
        return np.unique(clusters_of(self.table, self.question.cluster)[rows], return_inverse=True)[1]

    def constant(self, design: Design) -> list[str]:
        """Names of the ends that do not vary."""
        return [self.answer.names[end] for end in self.ends if not design.varies(end)]

    def start(self) -> tuple[Bools, float]:
        """The observations with both ends, and the unit of standardized effects; an error if an end is constant."""
        rows = self.complete(())
        if rows.sum() < MIN_OBSERVATIONS:
            return rows, math.nan
        design = self.design(rows, ())
        if constant := self.constant(design):
            raise _NoEstimateError(self.answer, self.ends, f"{constant[0]!r} is constant among the observations in use")
        t, y = (design.columns_of[end][0] for end in self.ends)
        return rows, float(design.deviations[t] / design.deviations[y] / self.change.size)

    def by_sets(self, wanted: Mapping[Set, int], random: np.random.Generator) -> _Found:
        """The effect by each set, from the observations that are complete for it."""
        rows, unit = self.start()
        found = _Found(int(rows.sum()), unit)
        often = list(wanted)[:MAX_FLEXIBLE_SETS]
        for columns, group in by_missing_cells(self.table.observed[rows], list(wanted)).items():
            complete = self.complete(columns)
            if complete.sum() < MIN_OBSERVATIONS:
                found.why_not.update(dict.fromkeys(group, TOO_FEW))
                continue
            # There may be hundreds of groups: each has the columns of its own sets alone.
            design = self.design(complete, sorted({member for members in group for member in members}))
            if constant := self.constant(design):
                reason = f"{constant[0]} is constant in the observations complete for it"
                found.why_not.update(dict.fromkeys(group, reason))
                continue
            bent = self.question.estimator == "curved"
            design = curved(design, *self.ends, self.table.columns) if bent else design
            estimates = linear_estimates(design, *self.ends, group, self.clusters(complete), keep=often)
            found.add(group, _without_correlations(estimates) if bent else estimates, complete)
        if self.question.estimator == "flexible":
            self.make_flexible(found, often, random)
        return found

    def make_flexible(self, found: _Found, often: Sequence[Set], random: np.random.Generator) -> None:
        """Estimate the most frequent sets without straight lines, all for the estimand of the first."""
        t, _ = self.ends
        seed = int(random.integers(2**31))  # the same folds for every set, so that sets do not differ by their folds
        models: dict[Set, Flexible] = {}
        work = 0
        binary = self.table.columns[t].kind != "number"
        for members in [members for members in often if members in found.rows]:
            rows = found.rows[members]
            work += int(rows.sum())
            if models and work > MAX_FLEXIBLE_WORK:
                break
            design = self.design(rows, members)
            treated, outcome = self.end_values(design)
            binary = binary and len(np.unique(treated)) == 2
            if binary:
                treated = (treated > treated.mean()).astype(np.float64)
            columns = design.values[:, design.columns(members)]
            model = flexible(treated, outcome, columns, binary, seed, self.clusters(rows))
            if model is not None:
                models[members] = model
        if not models:
            return
        estimand = best_estimand(list(models.values()))
        fitted = {members: model.estimate(estimand) for members, model in models.items()}
        estimates = {
            # The partial correlation of least squares serves the sensitivity.
            members: estimate._replace(partial_correlation=found.estimates[members].partial_correlation)
            for members, estimate in fitted.items()
            if estimate is not None
        }
        found.estimates.update(estimates)
        found.estimand, found.flexible = ESTIMANDS[estimand], frozenset(estimates)
        found.extreme = max(model.extreme for model in models.values())

    def by_trial(self, members: Set) -> _Found:
        """The effect of a randomized treatment, more precise by columns from before it, holes in which are filled."""
        rows, unit = self.start()
        found = _Found(int(rows.sum()), unit, OF_TRIAL, why_not={members: TOO_FEW})
        if rows.sum() >= MIN_OBSERVATIONS:
            design = self.design(rows, members, fill=True)
            columns = design.values[:, design.columns(members)]
            holes = ~self.table.observed[rows][:, list(members)]
            columns = np.concatenate([columns, holes[:, holes.any(axis=0)].astype(np.float64)], axis=1)
            estimate = trial_estimate(*self.end_values(design), columns, self.clusters(rows))
            found.add([members], {} if estimate is None else {members: estimate}, rows)
        return found

    def by_instrument(self, members: Set) -> _Found:
        """The effect through an instrument."""
        name = self.question.instrument
        assert name is not None
        z = self.answer.index_of(name)
        if z in (*self.ends, *members):
            raise ConfigurationError(f"{name!r} cannot be the instrument and something else too.")
        if len(self.table.columns[z].levels) > 2 and self.table.columns[z].kind == "category":
            raise ConfigurationError(f"{name!r} has unordered levels, so it cannot be an instrument.")
        _, unit = self.start()
        rows = self.complete((z, *members))
        found = _Found(int(rows.sum()), unit, OF_INSTRUMENT, why_not={members: TOO_FEW})
        if rows.sum() < MIN_OBSERVATIONS:
            return found
        design = self.design(rows, (z, *members))
        columns = design.values[:, design.columns(members)]
        instrument = design.values[:, design.columns((z,))[0]]
        estimated = instrument_estimate(instrument, *self.end_values(design), columns, self.clusters(rows), LEVEL)
        found.add([members], {} if estimated is None else {members: estimated.estimate}, rows)
        if estimated is None:
            return found
        found.instrument = estimated
        found.notes = (
            f"Instrument {name}: first-stage F = {in_digits(estimated.strength)}, "
            + ("weak; the interval allows for that." if estimated.strength < WEAK else "not weak."),
            f"This holds if {name} affects {self.answer.names[self.ends[1]]} through "
            f"{self.answer.names[self.ends[0]]} alone and shares no cause with it that is not adjusted for.",
        )
        return found

    def cautions(self, found: _Found) -> list[str]:
        """Notes on clusters, overlap, mixed estimators and times until an event."""
        notes = []
        t, y = self.ends
        treatment, outcome = self.answer.names[t], self.answer.names[y]
        if self.question.cluster is not None:
            count = len(np.unique(clusters_of(self.table, self.question.cluster)[self.complete(())]))
            few = ", which are few: the interval may be too narrow" if count < MIN_CLUSTERS else ""
            notes.append(f"Standard errors by {self.question.cluster}: {counted(count, 'cluster')}{few}.")
        if found.estimand in (ESTIMANDS["ATT"], ESTIMANDS["overlap"]):
            notes.append(
                f"Poor overlap: in {in_percent(found.extreme)} of observations {treatment} has a probability below "
                "5% or above 95% after adjustment, so there is hardly anybody to compare them with."
            )
        if (event := event_column(self.table, y)) is not None:
            notes.append(
                f"{outcome} looks like the time until an event ({event}): where the event has not happened yet, it is "
                "too short, and a survival model should be used."
            )
        return notes


def _from_fewer(table: Table, t: int, change: Change, wanted: Mapping[Set, int], found: _Found) -> list[str]:
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


def _why_no_estimate(asked: _Asked, counts: AdjustmentCounts, found: _Found) -> _NoEstimateError:
    """The error where no set has an estimate."""
    names = asked.answer.names
    few, count = bool(set(found.why_not.values()) - {NOTHING_LEFT}), counted(found.with_both_ends, "observation")
    if counts.reversed == counts.graphs:
        reason = f"{names[asked.ends[1]]} causes {names[asked.ends[0]]} in every graph"
    elif not few:
        left = "the variables to adjust for leave nothing of the treatment"
        reason = f"{left}, or there are too few observations ({found.with_both_ends:,}) for them"
    elif found.with_both_ends < MIN_OBSERVATIONS:
        levels = "" if asked.change.levels is None else ", and one of the levels to compare"
        reason = f"only {count} have values of both variables{levels}, and {MIN_OBSERVATIONS} are the fewest"
    else:
        reason = f"of {count} with values of both variables, too few have values of all that has to be adjusted for"
    remedies = [] if asked.table.observed.all() or not few else [Remedy("missing", setting="impute")]
    return _NoEstimateError(asked.answer, asked.ends, reason, remedies)


class _NoEstimateError(TableError):
    """An effect has no estimate, for this reason."""

    def __init__(self, answer: Answer, ends: tuple[int, int], reason: str, remedies: Sequence[Remedy] = ()) -> None:
        treatment, outcome = (answer.names[end] for end in ends)
        super().__init__(f"There is no estimate for the effect of {treatment!r} on {outcome!r}: {reason}.", remedies)
        self.reason = reason


def _effect(
    asked: _Asked, drawn: _Drawn, counts: AdjustmentCounts, found: _Found, by_trial: bool, notes: tuple[str, ...]
) -> Effect:
    t, y = asked.ends
    table, names, graphs, level = asked.table, asked.answer.names, counts.graphs, asked.level
    sets = tuple(
        SetEffect(
            tuple(names[member] for member in members),
            count / graphs,
            found.estimates[members].times(asked.change.size),
            found.observations[members],
            members not in found.flexible,
        )
        for members, count in counts.sets.items()
        if members in found.estimates
    )
    without = [members for members in counts.sets if members not in found.estimates]
    reasons = dict.fromkeys(found.why_not.get(members, NOTHING_LEFT) for members in without)
    risks = None
    outcome = table.columns[y]
    if level is None and outcome.kind == "binary":
        level = 1  # the share of yes is the mean of such an outcome
    if table.columns[t].kind == outcome.kind == "binary" and asked.question.level is None and not by_trial:
        risks = float(np.nanmean(table.values[:, y])), float(np.nanmean(table.values[:, t]))
    interval = None
    if found.instrument is not None:
        low, high = sorted(end * asked.change.size for end in found.instrument.interval)
        interval = low, high
    return Effect(
        treatment=names[t],
        outcome=names[y],
        change=asked.change.words,
        sets=sets,
        graphs=graphs,
        probability_of_none=1 - counts.with_path / graphs,
        probability_not_identified=counts.not_identified / graphs,
        probability_not_estimated=sum(counts.sets[members] for members in without) / graphs,
        probability_reversed=drawn.share_reversed,
        why_not_estimated=", or ".join(reasons),
        blocking=tuple((names[a], names[b]) for a, b in counts.blocking),
        order=drawn.order,
        design="instrument" if found.instrument else "trial" if by_trial else "observed",
        estimator=asked.question.estimator if found.flexible or asked.question.estimator != "flexible" else "linear",
        estimand=found.estimand,
        observations=sets[0].observations if sets else found.with_both_ends,
        notes=notes,
        risks=risks,
        standard_unit=found.standard_unit,
        level=None if level is None else outcome.levels[level],
        unit="levels" if level is None and outcome.kind == "ordered" else "",
        fixed_interval=interval,
        fixed_p_value=None if found.instrument is None else found.instrument.p_value,
        rows=_row_effects(asked, counts, found),
    )


def _row_effects(asked: _Asked, counts: AdjustmentCounts, found: _Found) -> RowEffects | None:
    """The contribution of each observation to the effect, averaged over the most frequent sets."""
    moments = {members: each.moments for members, each in found.estimates.items() if each.moments is not None}
    if not moments:
        return None
    averaged = Moments(*np.zeros((2, asked.table.observations)))
    total = sum(counts.sets[members] for members in moments)
    for members, own in moments.items():
        weight = counts.sets[members] / total / own.denominator.sum()
        averaged.numerator[found.rows[members]] += weight * own.numerator * asked.change.size
        averaged.denominator[found.rows[members]] += weight * own.denominator
    return RowEffects(asked.table, averaged, asked.clusters(np.ones(asked.table.observations, dtype=bool)))


# Knowledge and graphs


def _cut_causes(graphs: Bools, hidden: Bools | None, variable: int) -> tuple[Bools, Bools | None]:
    """The graphs after a variable was set: nothing in or out of the table causes it."""
    graphs = graphs.copy()
    graphs[:, :, variable] = False
    if hidden is not None:
        hidden = hidden.copy()
        hidden[:, variable, :] = hidden[:, :, variable] = False
    return graphs, hidden


def _check_caused(answer: Answer, outcome: str) -> None:
    """ConfigurationError for an outcome that nothing in the table can change, whatever is known."""
    if reason := why_uncaused(answer, outcome):
        raise ConfigurationError(
            f"{outcome!r} {reason}, so nothing in the table changes it: there is no effect to estimate."
        )


def _check_knowledge(answer: Answer, t: int, y: int) -> None:
    """KnowledgeError where no graph that is allowed has a path from treatment to outcome."""
    if _possible_effects(answer)[t, y] and not answer.constraints.precedence[y, t]:
        return
    treatment, outcome = answer.names[t], answer.names[y]
    _check_caused(answer, outcome)
    if outcome in answer.knowledge.roots:
        why = f"By the knowledge {outcome!r} is a root: nothing in the table causes it, and"
    elif treatment in answer.knowledge.leaves:
        why = f"By the knowledge {treatment!r} is a leaf: it causes nothing in the table, and"
    else:
        why = f"The knowledge rules out every path from {treatment!r} to {outcome!r}:"
    raise KnowledgeError(f"{why} there is no effect to estimate.")
