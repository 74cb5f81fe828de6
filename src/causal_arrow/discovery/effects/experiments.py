"""Experiment and ExperimentPlan: what to randomize or to measure next, to remove most uncertainty about many graphs.

Uncertainty about the graph is summed over pairs of variables: is there no edge between a and b, is it a → b or b → a?
An experiment that randomizes j shows whether a and b fall, rise or do not respond; the expected information in their
responses is the mutual information of both. It is part of the information in the whole experiment, and needs no
simulation. Several experiments together are at least as informative about each pair as the best of them.

Uncertainty about one effect is its variance between graphs, and the share of graphs in which it is not identified.

For each graph, linear equations are fitted to the table: B[j, k] is the coefficient of j among the causes of k. If j is
set at random over its usual range, all else left to itself, then k moves by Θ[j, k] = [(I − B)⁻¹ − I][j, k] standard
deviations per standard deviation of j: zero unless j is a cause of k, direct or not. With m observations of the
experiment and n of the table, the slope that the experiment finds is about Norm(Θ, 1/m + 1/n), or Norm(0, 1/m) where
j is no cause. It is seen to differ from zero beyond 2.58 / √m, a test at the level of 1%.
"""

# N observations, P variables, K graphs, S sets, T uncertain things, C states of each, O outcomes

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from causal_arrow.batches import TableBatch
from causal_arrow.discovery.answer import Answer
from causal_arrow.discovery.effects._adjustment import in_pieces, valid_sets
from causal_arrow.discovery.effects.effect import EQUAL_DIGITS
from causal_arrow.discovery.effects.mixture import axes_of_rows
from causal_arrow.discovery.pictures.scene import EDGE_COLOR, shortened
from causal_arrow.errors import ConfigurationError, TableError
from causal_arrow.graphs.dag import transitive_closure
from causal_arrow.graphs.knowledge import Knowledge
from causal_arrow.network.basis import as_numbers
from causal_arrow.tables.frames import WithFrames
from causal_arrow.tables.reading import in_codes_of
from causal_arrow.tables.scales import has_logarithms, with_logarithms
from causal_arrow.tables.table import Table, in_safe_units
from causal_arrow.text import Readable, counted, in_digits, in_percent, listed, visible

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Target = str | tuple[str, str] | None

MIN_DOUBT = 0.01  # bits; pairs with less uncertainty are ignored
MAX_THINGS = 1500  # maximum number of pairs considered, the most uncertain first
MAX_MEASURED = 20  # maximum number of pairs whose hidden common cause may be measured, the most uncertain first
STEPS = 11  # limits between which the size of an effect is read off an experiment
MAX_CELLS = 4 * 10**7
MIN_GRAPHS = 50  # with very many variables, fewer graphs are looked at, so that their responses fit into memory
MIN_VARIANCE = 1e-12  # variance of a standardized effect between graphs, below which they agree
MAX_STATES = 33  # maximum number of distinct joint outcomes of several experiments; nearly equal ones are merged
MAX_SETTLED = 3  # pairs that a plan names for each experiment
RULED_OUT = 0.05  # an edge that is less probable than this after an experiment is taken to be ruled out by it
DETECTION = 2.5758  # standard errors from which on a response counts as seen: a test at the level of 1%
RIDGE = 1e-6
LITTLE = 0.005  # gains below this, in bits or as a share, are not worth an experiment
MAX_SHOWN = 10
MAX_BARS = 30
SUBJECTS = ("the graph", "the causes of {}", "the effect of {} on {}")
"""The subject of the uncertainty, by the number of variables that a target names."""


@dataclass(frozen=True)
class Experiment:
    """A possible experiment, and how much uncertainty it is expected to remove."""

    action: str
    """"set": randomize a variable; "measure": record the hidden common cause of two variables."""
    variables: tuple[str, ...]
    """The variable to randomize, or the two whose common cause is measured."""
    gain: float
    """Uncertainty expected to go: in bits, or as a share of the uncertainty about an effect."""
    affected: float
    """Expected number of other variables that depend on the randomized one, over graphs; NaN for "measure"."""
    settles: tuple[tuple[str, str], ...] = ()
    """The first three pairs of variables about which it is expected to be most informative."""

    @property
    def name(self) -> str:
        """The variable, or the pair as "a ↔ b"."""
        return " ↔ ".join(self.variables)

    @property
    def settles_in_words(self) -> str:
        """The pairs about which it is most informative: "a – b, c – d"."""
        return ", ".join(f"{a} – {b}" for a, b in self.settles)

    def __str__(self) -> str:
        if self.action == "set":
            return f"randomize {self.name}"
        return f"measure what {self.variables[0]} and {self.variables[1]} may both depend on"


@dataclass(frozen=True, eq=False, repr=False)
class ExperimentPlan(Readable, WithFrames):
    """Experiments ranked by the uncertainty they are expected to remove. `print(plan)` puts it in words."""

    target: tuple[str, ...]
    """Nothing for the whole graph; an outcome, for its causes; a treatment and an outcome, for that effect."""
    experiments: tuple[Experiment, ...]
    """Each on its own, the best first."""
    batch: tuple[Experiment, ...]
    """The best ones to carry out together, within the budget; each with what it adds to those before it."""
    doubt: float
    """The uncertainty now: bits, or the standard deviation of the effect between graphs (standardized)."""
    graphs: int
    """Number of graphs drawn."""
    observations: int
    """Number of observations planned for each experiment."""
    left_out: tuple[str, ...] = ()
    """Variables that cannot be randomized, have been already, or mark environments."""

    @property
    def best(self) -> Experiment:
        """The first of the ranking."""
        return self.experiments[0]

    def place_in_batch(self, experiment: Experiment) -> int | None:
        """The rank of an experiment among those to carry out together; None if it is not one of them."""
        chosen = [(each.action, each.variables) for each in self.batch]
        key = experiment.action, experiment.variables
        return chosen.index(key) + 1 if key in chosen else None

    @property
    def about_effect(self) -> bool:
        """Whether gains are shares of the uncertainty about one effect; else they are bits."""
        return len(self.target) == 2

    def to_frame(self) -> pd.DataFrame:
        """The experiments as a data frame, the best first."""
        import pandas as pd

        rows = [
            (each.action, each.name, each.gain, each.affected, each.settles_in_words, self.place_in_batch(each))
            for each in self.experiments
        ]
        frame = pd.DataFrame(rows, columns=["action", "variable", "gain", "affected", "settles", "batch"])
        return self._framed(frame.astype({"batch": "Int64"}))

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON can hold it; docs/reference/json.md describes every field."""
        return {
            "target": list(self.target),
            "unit": "share" if self.about_effect else "bits",
            "doubt": self.doubt,
            "graphs": self.graphs,
            "observations": self.observations,
            "experiments": [_record(each) for each in self.experiments],
            "batch": [_record(each) for each in self.batch],
            "left_out": list(self.left_out),
            "sentence": self.sentence,
        }

    # In words

    @property
    def subject(self) -> str:
        """The subject of the uncertainty, in words."""
        return SUBJECTS[len(self.target)].format(*self.target)

    def amount(self, gain: float) -> str:
        """The gain of an experiment in words: "1.2 bits", "64% of the uncertainty"."""
        if self.about_effect:
            return f"{in_percent(gain)} of the uncertainty"
        return "<0.01 bits" if gain < 0.01 else f"{in_digits(gain)} bits"

    @property
    def sentence(self) -> str:
        """Advice in one sentence or two."""
        if not self.batch or self.batch[0].gain < LITTLE:
            return (
                f"No experiment is expected to be informative about {self.subject}: the "
                f"{counted(self.graphs, 'graph')} agree on its outcome. More observations or another question may help."
            )
        first = self.batch[0]
        whole = f" of {in_digits(self.doubt)}"
        if self.about_effect:
            whole = f" (a standard deviation of {in_digits(self.doubt)} between graphs, standardized)"
        told = f", most of it on {_pairs(first.settles)}" if first.settles else ""
        sentences = [
            f"To learn most about {self.subject}, {first}: with {counted(self.observations, 'observation')} that is "
            f"expected to remove {self.amount(first.gain)}{whole}{told}."
        ]
        worth = [each for each in self.batch[1:] if each.gain >= LITTLE]
        if worth:
            then = ", then ".join(f"{each} ({self.amount(each.gain)} more)" for each in worth)
            sentences.append(f"Together with it: {then}.")
        if len(worth) + 1 < len(self.batch):
            sentences.append("Further experiments are expected to add almost nothing.")
        return " ".join(sentences)

    def __str__(self) -> str:
        lines = [self.sentence]
        for each in self.experiments[:MAX_SHOWN]:
            lines.append(f"  {each}: {self.amount(each.gain)}")
        if len(self.experiments) > MAX_SHOWN:
            lines.append(f"  ... and {len(self.experiments) - MAX_SHOWN} more")
        if self.left_out:
            lines.append(f"  not considered: {listed(self.left_out)}, which cannot be randomized or have been")
        return "\n".join(lines)

    def plot(self, ax: Axes | None = None) -> Axes:
        """A picture of the gain of each experiment, those to carry out together in color, on the axes or in a new
        figure."""
        shown = self.experiments[:MAX_BARS]
        ax = axes_of_rows(ax, [shortened(visible(f"{each.action} {each.name}"), 1, 34) for each in shown])
        colors = ["#b9c0cc" if self.place_in_batch(each) is None else EDGE_COLOR for each in shown]
        ax.barh(range(len(shown)), [each.gain for each in shown], color=colors, height=0.7)
        ax.set_xlim(left=0)
        ax.set_title(shortened(visible(f"to learn about {self.subject}"), 1, 60), fontsize=10, parse_math=False)
        ax.set_xlabel(f"expected gain, {'share of the uncertainty' if self.about_effect else 'bits'}")
        return ax


def _record(each: Experiment) -> dict[str, Any]:
    return {
        "action": each.action,
        "variables": list(each.variables),
        "gain": each.gain,
        "affected": None if math.isnan(each.affected) else each.affected,
        "settles": [list(pair) for pair in each.settles],
    }


def _pairs(pairs: Sequence[tuple[str, str]]) -> str:
    named = [f"{a} – {b}" for a, b in pairs]
    return named[0] if len(named) == 1 else f"{', '.join(named[:-1])} and {named[-1]}"


# Planning


def plan_experiments(
    answer: Answer,
    table: Table,
    graphs: Bools,
    *,
    target: Target = None,
    budget: int = 1,
    candidates: Sequence[str] | None = None,
    not_settable: Sequence[str] = (),
    rows: int | None = None,
    random: np.random.Generator,
) -> ExperimentPlan:
    """The experiments, ranked by the uncertainty each is expected to remove, and the best `budget` of them together."""
    ends = _ends(answer, target)
    able = _candidates(answer, candidates, not_settable, [answer.names[index] for index in ends])
    graphs = graphs[: max(MIN_GRAPHS, MAX_CELLS // len(answer.names) ** 2)]
    hidden = answer.sample_hidden(graphs, random)
    if len(ends) == 2:
        graphs, hidden = answer.carried_by(ends[0], graphs, hidden)
    values = as_standardized(table, answer.log_columns)[plain_observations(table)]
    responses = expected_responses(graphs, values, rows or table.observations)
    shared = None if answer.confounding_probabilities is None else np.array(answer.confounding_probabilities)
    if shared is not None and hidden is not None and answer.environment is not None:  # which is no measurement
        index = answer.index_of(answer.environment)
        for pairs_with_it in (shared, hidden):
            pairs_with_it[..., index, :] = pairs_with_it[..., index] = False
    setting = [answer.index_of(name) for name in able]
    pairs = [] if shared is None else measurable(shared)
    if not setting and not pairs:
        raise ConfigurationError("No variable is left that an experiment could randomize: there is nothing to advise.")
    if len(ends) == 2:
        found = _about_effect(graphs, responses, hidden, ends, setting, pairs, budget)
    else:
        found = about_graph(graphs, responses, shared, ends, [(index,) for index in setting], pairs, budget)
    left_out = () if candidates is not None else tuple(sorted(set(answer.names) - set(able)))
    return plan_of(found, answer.names, answer.names, responses, ends, left_out)


def plan_of(
    found: Found,
    names: Sequence[str],
    columns: Sequence[str],
    responses: Responses,
    ends: tuple[int, ...],
    left_out: tuple[str, ...],
) -> ExperimentPlan:
    """The plan in names: of variables, and of the columns, the first of which hold the variables themselves."""

    def named(move: Move) -> Experiment:
        affected = math.nan
        if move.action == "set":
            moved = (responses.sizes[:, list(move.indices), : len(names)] != 0).any(axis=1)  # (K, P)
            affected = float(np.delete(moved, move.indices[0], axis=1).sum(axis=1).mean())
        chosen = move.indices[:1] if move.action == "set" else move.indices
        pairs = tuple((columns[a], columns[b]) for a, b in move.settled)
        return Experiment(move.action, tuple(names[index] for index in chosen), max(move.gain, 0.0), affected, pairs)

    return ExperimentPlan(
        target=tuple(names[index] for index in ends),
        experiments=tuple(map(named, found.ranked)),
        batch=tuple(map(named, found.batch)),
        doubt=found.doubt,
        graphs=len(responses.sizes),
        observations=responses.observations,
        left_out=left_out,
    )


def knowledge_from(answer: Answer, table: Table, rows: Table, variable: str, graphs: Bools) -> Knowledge:
    """The answer's knowledge, and the edges that an experiment rules out: observations in which `variable` was set.

    By each graph the slopes on the variable that was set have a density; by Bayes' rule, the slopes of a and b show how
    probable a → b still is.
    """
    index = answer.index_of(variable)
    if rows.names != table.names:
        raise TableError("Expected the columns of the table that was fitted, in its order.")
    if rows.observations < 3:
        raise TableError(f"Expected 3 observations of the experiment or more, got {rows.observations}.")
    rows = in_codes_of(table, rows)
    for column, own in zip(table.columns, rows.columns, strict=True):
        if unknown := own.levels[len(column.levels) :]:
            raise TableError(f"{column.name!r} has no level {unknown[0]!r} in the table that was fitted.")
    codes = rows.values
    if not np.nanmax(codes[:, index]) > np.nanmin(codes[:, index]):
        raise TableError(
            f"{variable!r} has the same value in all observations of the experiment: give it several values."
        )
    both = np.concatenate([table.values, codes])
    for name in answer.log_columns:
        if not has_logarithms(both[:, table.names.index(name)]):
            raise TableError(
                f"{name!r} was read on a log scale: expected values that share a sign in the table and the experiment, "
                "got zeros or both signs."
            )
    values = as_standardized(replace(table, values=both, findings=(), intervened=None), answer.log_columns)
    before, after = values[: table.observations][plain_observations(table)], values[table.observations :]
    deviation = before.std(axis=0)
    before, after = (before - before.mean(axis=0)) / deviation, after / deviation
    # The slope's error shrinks where the variable was set over a wide range, and grows where over a narrow one.
    effective = max(3, round(len(after) * float(after[:, index].var())))
    responses = expected_responses(graphs, before, effective)
    logs = responses.likelihood(index, found_slopes(index, after))  # (K, P)
    weights = np.exp(logs[:, :, None] + logs[:, None, :] - (logs.max(axis=0)[:, None] + logs.max(axis=0)[None, :]))
    total = weights.sum(axis=0)
    left = (weights * graphs).sum(axis=0) / np.where(total > 0, total, 1.0)
    # Less probable by a factor of two at least: what was improbable before is not the experiment's news.
    forbidden = (left < RULED_OUT) & (left < graphs.mean(axis=0) / 2) & (total > 0) & ~answer.constraints.required
    edges = [(answer.names[j], answer.names[k]) for j, k in np.argwhere(forbidden)]
    return answer.knowledge | Knowledge(forbidden=[edge for edge in edges if edge not in answer.knowledge.forbidden])


# What can be done


def _ends(answer: Answer, target: Target) -> tuple[int, ...]:
    if target is None:
        return ()
    if isinstance(target, str):
        return (answer.index_of(target),)
    if len(target) != 2:
        raise ConfigurationError(
            f"Expected target to be an outcome, or a pair of a treatment and an outcome, got {target!r}."
        )
    t, y = (answer.index_of(name) for name in target)
    if t == y:
        raise ConfigurationError(f"Expected two different variables as treatment and outcome, got {target[0]!r} twice.")
    return t, y


def _candidates(
    answer: Answer, names: Sequence[str] | None, not_settable: Sequence[str], ends: Sequence[str]
) -> list[str]:
    for name in (*not_settable, *(names or ())):
        answer.index_of(name)
    if names is None:
        done = {*answer.experiments, answer.environment, *not_settable}
        able = [name for name in answer.names if name not in done]
        # What nothing in the table causes, such as age, can hardly be set; the treatment asked about can.
        fixed = {*answer.knowledge.roots, *answer.knowledge.randomized} - set(ends[:1] if len(ends) == 2 else ())
        return [name for name in able if name not in fixed] or able
    if answer.environment in names:
        raise ConfigurationError(f"{answer.environment!r} identifies environments and cannot be randomized.")
    if not names:
        raise ConfigurationError("Expected one candidate or more, got an empty list.")
    if both := [name for name in names if name in not_settable]:
        raise ConfigurationError(f"{both[0]!r} cannot be a candidate and not settable too.")
    return list(dict.fromkeys(names))


def measurable(shared: Floats) -> list[tuple[int, int]]:
    """The pairs whose hidden common cause is most uncertain."""
    doubt = np.triu(_entropy(np.stack([shared, 1 - shared], axis=-1)), 1)
    indices = np.argwhere(doubt > MIN_DOUBT)
    order = _largest_first(doubt[indices[:, 0], indices[:, 1]])
    return [(int(j), int(k)) for j, k in indices[order][:MAX_MEASURED]]


def _largest_first(values: Floats) -> NDArray[np.intp]:
    """The order of values from the largest on, on every processor the same."""
    return np.argsort(-np.round(values, EQUAL_DIGITS), kind="stable")


Key = tuple[str, tuple[int, ...]]  # an action, and the variables it is about


class Move(NamedTuple):
    """A possible experiment, and the pairs of columns about which it is most informative."""

    action: str
    indices: tuple[int, ...]
    gain: float
    settled: tuple[tuple[int, int], ...] = ()

    @property
    def rank(self) -> tuple[float, bool, tuple[int, ...]]:
        """Sort the largest gain first; for equal gains, randomizing before measuring."""
        return -round(self.gain, EQUAL_DIGITS), self.action != "set", self.indices


class Found(NamedTuple):
    """All moves by their gain, the best ones together, and the present uncertainty."""

    ranked: list[Move]
    batch: list[Move]
    doubt: float


# The graph, or the causes of one outcome


def about_graph(
    graphs: Bools,
    responses: Responses,
    shared: Floats | None,
    ends: tuple[int, ...],
    setting: Sequence[tuple[int, ...]],
    measured: Sequence[tuple[int, int]],
    budget: int,
) -> Found:
    """Plan for the whole graph, or for the causes of one outcome; `setting` has the columns that experiments set."""
    things, states = _in_doubt(graphs, *ends)
    tells: dict[Key, Floats] = {}
    for each in setting:
        most = np.max([_information(responses.outcomes(index), things, states) for index in each], axis=0)
        # A variable that is set at every step no longer depends on its own past.
        tells["set", each] = np.where(np.isin(things, each).all(axis=1), 0.0, most)
    doubt = float(_entropy(states.mean(axis=0)).sum())
    hidden: dict[Key, float] = {}
    if shared is not None and not ends:
        # Hidden causes are uncertain as well as edges, and randomizing a variable is not informative about them.
        doubts = np.triu(_entropy(np.stack([shared, 1 - shared], axis=-1)), 1)
        doubt += float(doubts.sum())
        hidden = {("measure", pair): float(doubts[pair]) for pair in measured}
        tells.update({key: np.zeros(len(things)) for key in hidden})

    def move(key: Key, told: Floats) -> Move:
        best = _largest_first(told)[:MAX_SETTLED]
        settled = tuple((int(things[row][0]), int(things[row][1])) for row in best if told[row] > MIN_DOUBT)
        return Move(*key, float(told.sum()) + hidden.get(key, 0.0), settled)

    ranked = sorted((move(key, told) for key, told in tells.items()), key=lambda each: each.rank)
    batch: list[Move] = []
    known = np.zeros(len(things))
    while tells and len(batch) < budget:
        left = [move(key, np.maximum(told - known, 0.0)) for key, told in tells.items()]
        batch.append(min(left, key=lambda each: each.rank))
        known = np.maximum(known, tells.pop(batch[-1][:2]))
    return Found(ranked, batch, doubt)


def _in_doubt(graphs: Bools, outcome: int | None = None) -> tuple[NDArray[np.intp], Bools]:
    """Pairs of variables and, by each graph, their state: no edge, one way or the other; or, with an outcome, whether a
    variable is a cause of it or not.  (T, 2), (K, T, C)"""
    if outcome is not None:
        causes = np.concatenate([transitive_closure(piece)[:, :, outcome] for (piece,) in in_pieces(graphs)])
        states = np.stack([causes, ~causes], axis=2)
        kept = np.flatnonzero(_entropy(states.mean(axis=0)) > MIN_DOUBT)
        return np.stack([kept, np.full(len(kept), outcome)], axis=1), states[:, kept]
    first, second = np.triu_indices(graphs.shape[1], 1)
    forward, backward = graphs[:, first, second], graphs[:, second, first]
    states = np.stack([~forward & ~backward, forward, backward], axis=2)
    doubt = _entropy(states.mean(axis=0))
    kept = _largest_first(doubt)[:MAX_THINGS]
    kept = kept[doubt[kept] > MIN_DOUBT]
    return np.stack([first[kept], second[kept]], axis=1), states[:, kept]


def _information(outcomes: Floats, things: NDArray[np.intp], states: Bools) -> Floats:
    """Information, in bits, of the responses (K, P, O) of the two variables of each thing about its state.  (T,)"""
    first, second = (outcomes[:, things[:, side]] for side in (0, 1))  # (K, T, O)
    count = outcomes.shape[2]
    joint = np.empty((len(things), count, count, states.shape[2]))
    for a in range(count):
        for b in range(count):
            joint[:, a, b] = np.einsum("kt,ktc->tc", first[:, :, a] * second[:, :, b], states)
    joint /= len(outcomes)
    shown = joint.sum(axis=3).reshape(len(things), count * count)
    whole = joint.reshape(len(things), count * count * states.shape[2])
    return np.maximum(_entropy(joint.sum(axis=(1, 2))) + _entropy(shown) - _entropy(whole), 0.0)


def _entropy(shares: Floats) -> Floats:
    """In bits, of the last dimension."""
    from scipy.special import entr

    return np.asarray(entr(shares).sum(axis=-1) / np.log(2))


# One effect


def _about_effect(
    graphs: Bools,
    responses: Responses,
    hidden: Bools | None,
    ends: tuple[int, ...],
    setting: Sequence[int],
    measured: Sequence[tuple[int, int]],
    budget: int,
) -> Found:
    t, y = ends
    effects = responses.sizes[:, t, y]
    identified, mended = _identified(graphs, hidden, t, y, measured)
    weights = identified / max(1, int(identified.sum()))
    lost = 1.0 - float(identified.mean())
    variance = float(weights @ np.square(effects - weights @ effects))

    def explained(states: Floats) -> float:
        """Share of the variance of the effect between graphs that outcomes (K, O) are expected to remove."""
        if not variance > MIN_VARIANCE:
            return 0.0
        shares, means = _expected(states, weights, effects)
        return (1 - lost) * float(shares @ np.square(means - weights @ effects)) / variance

    limits = np.linspace(float(effects.min()), float(effects.max()), STEPS)
    shown: dict[Key, Floats] = {}
    for index in setting:
        rough = responses.outcomes(index)
        # Setting the treatment shows the size of the effect itself, setting another variable what lies around it.
        of_outcome = responses.outcomes(index, limits)[:, y] if index == t else rough[:, y]
        options = [_jointly(of_outcome, rough[:, other]) for other in range(graphs.shape[1]) if other != y]
        shown["set", (index,)] = max(options, key=lambda states: round(explained(states), EQUAL_DIGITS))
    shares = zip(measured, mended, strict=True)
    mends: dict[Key, float] = {("measure", pair): share for pair, share in shares if share > 0}
    treatment: Key = ("set", (t,))

    def moves(known: Floats) -> list[Move]:
        """All that is left to do, by what it adds to the outcomes (K, O) that are known."""
        sure = explained(known)
        # Randomizing the treatment also shows its effect where a hidden cause keeps any set from identifying it.
        found = [Move(*key, share) for key, share in mends.items()]
        for key, states in shown.items():
            found.append(Move(*key, explained(_jointly(known, states)) - sure + (lost if key == treatment else 0.0)))
        return sorted(found, key=lambda move: (-round(move.gain, EQUAL_DIGITS), move[:2] != treatment, move.rank))

    known = np.ones((len(graphs), 1))
    ranked = moves(known)
    batch: list[Move] = []
    while (shown or mends) and len(batch) < budget:
        batch.append(moves(known)[0])
        key = batch[-1][:2]
        if key in shown:
            known = _merged(_jointly(known, shown.pop(key)), weights, effects)
        else:
            del mends[key]
    return Found(ranked, batch, float(np.sqrt(variance)))


def _expected(states: Floats, weights: Floats, effects: Floats) -> tuple[Floats, Floats]:
    """The probability of each outcome (K, O) over graphs, and the expected effect given it.  (O,), (O,)"""
    shares = weights @ states
    return shares, (weights * effects) @ states / np.where(shares > 0, shares, 1.0)


def _jointly(first: Floats, second: Floats) -> Floats:
    """Probabilities of both outcomes, which are independent given the graph.  (K, O₁ O₂)"""
    return (first[:, :, None] * second[:, None, :]).reshape(len(first), -1)


def _merged(states: Floats, weights: Floats, effects: Floats) -> Floats:
    """The same outcomes, those with nearly the same expected effect as one.  (K, MAX_STATES at most)"""
    _, means = _expected(states, weights, effects)
    order = _largest_first(-means)
    parts = np.array_split(order, min(MAX_STATES, len(order)))
    return np.stack([states[:, part].sum(axis=1) for part in parts], axis=1)


def _identified(
    graphs: Bools, hidden: Bools | None, t: int, y: int, measured: Sequence[tuple[int, int]]
) -> tuple[Bools, list[float]]:
    """The graphs with an adjustment set (K,), and for each pair the share that has one only once its hidden cause is
    measured."""
    if hidden is None:
        return np.ones(len(graphs), dtype=bool), []

    def closed(shared: Bools) -> Bools:
        parts = []
        for piece, also in in_pieces(graphs, shared):
            descends = transitive_closure(piece)
            parts.append(valid_sets(piece, descends, t, y, hidden=also)[1] | ~descends[:, t, y])
        return np.concatenate(parts)

    identified = closed(hidden)
    if identified.all():
        return identified, [0.0] * len(measured)
    mended = []
    for a, b in measured:
        without = hidden.copy()
        without[:, [a, b], [b, a]] = False
        mended.append(float((closed(without) & ~identified).mean()))
    return identified, mended


# Expected results


def as_standardized(table: Table, log_columns: tuple[str, ...] = ()) -> Floats:
    """All columns as numbers with mean 0 and variance 1: a category by the scores of its levels, holes filled, and
    logarithms where the network read them.  (N, P)"""
    logarithms = np.array([name in log_columns for name in table.names])
    values, _ = in_safe_units(with_logarithms(table.values, logarithms))
    levels = np.array([len(column.levels) if column.kind == "category" else 0 for column in table.columns])
    center, spread = np.nanmean(values, axis=0), np.nanstd(values, axis=0)
    numbers = (values - center) / np.where(spread > 0, spread, 1.0)
    numbers = np.where(levels > 0, table.values, numbers)
    batch = TableBatch(
        np.nan_to_num(numbers)[None].astype(np.float32),
        None if table.observed.all() else table.observed[None],
        levels=levels[None] if levels.any() else None,
    )
    filled = as_numbers(batch, canonical_signs=False).values[0].astype(np.float64)
    centered = filled - filled.mean(axis=0)
    return np.asarray(centered / np.maximum(centered.std(axis=0), 1e-12))


def plain_observations(table: Table) -> Bools:
    """The observations in which no experiment has set anything, or all if those are too few.  (N,)"""
    everything = np.ones(table.observations, dtype=bool)
    if table.intervened is None:
        return everything
    plain = np.asarray(~table.intervened.any(axis=1))
    return plain if plain.sum() > 2 * table.variables + 10 else everything


@dataclass(frozen=True, eq=False)
class Responses:
    """Change of k if j is set, in standard deviations of both, by each graph."""

    sizes: Floats  # (K, P, P) Θ
    table_observations: int  # n
    observations: int  # m, of the experiment

    def spread(self, variable: int) -> Floats:
        """Standard deviation of the slopes that an experiment finds around those that each graph expects.  (K, P)"""
        # Where a graph expects none, only the experiment has an error.
        fitted = (self.sizes[:, variable, :] != 0) / self.table_observations
        return np.asarray(np.sqrt(1 / self.observations + fitted))

    def outcomes(self, variable: int, limits: Floats | None = None) -> Floats:
        """Probability, by each graph, that the slope of each variable falls between the limits.  (K, P, limits + 1)

        By default: that it is seen to fall, not seen to respond, or seen to rise.
        """
        from scipy.special import ndtr

        if limits is None:
            limits = np.array([-1.0, 1.0]) * DETECTION / np.sqrt(self.observations)
        scaled = (limits - self.sizes[:, variable, :, None]) / self.spread(variable)[:, :, None]
        below = ndtr(scaled)  # (K, P, limits)
        below[:, variable] = 0.0  # the variable itself is set: it tells nothing
        ends = np.zeros((*below.shape[:2], 1))
        return np.diff(np.concatenate([ends, below, ends + 1], axis=2), axis=2)

    def likelihood(self, variable: int, slopes: Floats) -> Floats:
        """Logarithm of the density of the slopes (P,) that an experiment found, by each graph and variable.  (K, P)"""
        spread = self.spread(variable)
        logarithms = -0.5 * np.square((slopes - self.sizes[:, variable, :]) / spread) - np.log(spread)
        logarithms[:, variable] = 0.0
        return np.asarray(logarithms)


def expected_responses(graphs: Bools, values: Floats, observations: int) -> Responses:
    """The responses that each graph (K, P, P) expects, by linear equations fitted to standardized values (N, P)."""
    correlation = values.T @ values / len(values)
    correlation = correlation + RIDGE * np.eye(len(correlation))
    coefficients = np.zeros(graphs.shape)
    for effect in range(graphs.shape[1]):
        sets, graph_sets = np.unique(graphs[:, :, effect], axis=0, return_inverse=True)
        found = _regressions(correlation, effect, sets)  # (S, P)
        coefficients[:, :, effect] = found[graph_sets.ravel()]
    identity = np.eye(graphs.shape[1])
    sizes = np.linalg.inv(identity - coefficients) - identity
    # Without a path there is no response, not one of the size of a rounding error, which would count as fitted.
    sizes[~transitive_closure(graphs)] = 0.0
    return Responses(sizes, len(values), observations)


def _regressions(correlation: Floats, effect: int, sets: Bools) -> Floats:
    """Coefficients of an effect on each set of causes, sets of one size at a time.  (S, P)"""
    coefficients = np.zeros(sets.shape)
    sizes = sets.sum(axis=1)
    for size in np.unique(sizes[sizes > 0]).tolist():
        rows = np.flatnonzero(sizes == size)
        members = np.nonzero(sets[rows])[1].reshape(len(rows), size)
        inside = correlation[members[:, :, None], members[:, None, :]]
        solved = np.linalg.solve(inside, correlation[members, effect][:, :, None])[:, :, 0]
        coefficients[rows[:, None], members] = solved
    return coefficients


def found_slopes(variable: int, rows: Floats) -> Floats:
    """The slope of every variable on the one that was set, in observations (M, P) of the experiment.  (P,)"""
    centered = rows - rows.mean(axis=0)
    cause = centered[:, variable]
    return np.asarray(cause @ centered / max(float(cause @ cause), 1e-12))
