"""Methods that estimate effects, over Arrow's graphs, by one graph, by IDA and by a regression on everything; and
policies that choose experiments, by Arrow's advice or without it.
"""

# P variables

from __future__ import annotations

import itertools
import math
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from causal_arrow._version import __version__
from causal_arrow.errors import TableError
from causal_arrow.graphs.dag import skeleton_of
from causal_arrow.tables.table import Table
from causal_arrow_lab.benchmarks.effects import (
    EXPERIMENTAL_OBSERVATIONS,
    MAX_EXPERIMENTS,
    NOTHING,
    UNKNOWN,
    Course,
    EffectEstimates,
    EffectTask,
    EstimatedEffect,
    ExperimentTask,
    Question,
)
from causal_arrow_lab.benchmarks.methods._packages import GES_SETTINGS, PC_SETTINGS, Search, ges, pc
from causal_arrow_lab.benchmarks.methods.arrow import arrow_settings, as_far_as_it_reads, loaded
from causal_arrow_lab.benchmarks.methods.protocol import (
    Method,
    MethodKind,
    MethodOptions,
    Observed,
    method_of_package,
    own_method,
    timed,
)

if TYPE_CHECKING:
    from causal_arrow.discovery.answer import Answer
    from causal_arrow.discovery.effects.effect import Effect
    from causal_arrow.discovery.effects.linear import Design
    from causal_arrow.network import Network

Bools = NDArray[np.bool_]
Set = tuple[int, ...]
Estimator = Callable[[Any, EffectTask, Question], EstimatedEffect]
"""Answers a question, given what was prepared for the table."""

GRAPHS = 1000
"""Number of graphs over which an effect is averaged, or from which an experiment is chosen and learned."""
LEVEL = 0.9
# The largest valid set: DoWhy's search for the best one fails on some graphs, and its default takes minutes.
DOWHY_SETTINGS = {"identification": "maximal-adjustment", "estimate": "backdoor.linear_regression"}
MAX_NEIGHBORS = 10
"""Largest number of undirected neighbors of which IDA tries all subsets."""


def prepare_arrow(
    name: str, argument: str, options: MethodOptions, *, estimator: str = "linear", point: str = "median"
) -> Method:
    """Arrow's effects, over graphs drawn from the answer."""
    source, name, settings = arrow_settings(name, argument)
    return Method(
        name=name,
        settings={**settings, "estimator": estimator, "graphs": GRAPHS, "point": point},
        versions={"causal-arrow": __version__},
        start=lambda: start_arrow(source, estimator, point),
        reads_tables=True,
    )


def start_arrow(source: str, estimator: str, point: str) -> Any:
    from causal_arrow.discovery.effects.estimation import estimate_effect
    from causal_arrow.discovery.effects.questions import EffectQuestion

    model = loaded(source)

    def solve(task: EffectTask, generator: np.random.Generator) -> EffectEstimates:
        def work() -> tuple[tuple[EstimatedEffect, ...], dict[str, str]]:
            answer, reading = _answer(model, task.table)
            found = []
            for question in task.questions:
                # Nobody says here which of the two comes first.
                asked = EffectQuestion(estimator, level=question.level, order="free", between=question.between)
                ends = question.treatment, question.outcome
                try:
                    effect = estimate_effect(answer, task.table, *ends, asked, generator, GRAPHS)
                except TableError:  # no variance of the treatment left, or an outcome that causes it in every graph
                    found.append(UNKNOWN)
                    continue
                found.append(UNKNOWN if effect.verdict == "not identified" else with_zero(effect, point))
            return tuple(found), reading

        (found, reading), seconds = timed(work)
        return EffectEstimates(found, seconds, reading or None)

    return solve


def with_zero(effect: Effect, point: str) -> EstimatedEffect:
    """Size and existence in one number: zero counts as often as graphs have no causal path."""
    none = effect.probability_of_none
    low, high = effect.interval
    if none > 1 - LEVEL:
        low, high = min(low, 0.0), max(high, 0.0)
    if none > LEVEL:
        low = high = 0.0
    estimate = effect.mean * (1 - none) if point == "mean" else effect.median if none < 0.5 else 0.0
    return EstimatedEffect(estimate, low, high)


def _answer(model: Network, table: Table) -> tuple[Answer, dict[str, str]]:
    from causal_arrow.discovery.pipeline import discover
    from causal_arrow.discovery.settings import Settings

    read, reading = as_far_as_it_reads(Observed(table), model.reads)
    return discover(read, Settings(model=model, directions="network")).answer, reading


def start_true_graph(estimator: str) -> Any:
    """The same estimator with the true graph: the cost of not knowing the graph."""
    return _each(_by_sets_of(optimal_sets, estimator), lambda task: task.graph)


def optimal_sets(graph: Bools, treatment: int, outcome: int) -> list[Set | None]:
    """The optimal set of one graph."""
    from causal_arrow.discovery.uncertainty import adjustment_sets

    return list(adjustment_sets(graph[None], treatment, outcome))


def prepare_best_graph(name: str, argument: str, options: MethodOptions) -> Method:
    """Arrow's most probable graph, passed to DoWhy."""
    source, name, settings = arrow_settings(name, argument)
    start = partial(_start_best_graph, source)
    prepared = method_of_package("dowhy", start, {}, extra="handover")(name, "", options)
    return Method(
        name,
        {**settings, **DOWHY_SETTINGS},
        {"causal-arrow": __version__, **prepared.versions},
        prepared.start,
        reads_tables=True,
    )


def _start_best_graph(source: str, settings: Mapping[str, Any]) -> Any:
    """DoWhy on Arrow's most probable graph: identification, then linear regression with its 90% interval."""
    model = loaded(source)

    def estimate(answer: Answer, task: EffectTask, question: Question) -> EstimatedEffect:
        return by_dowhy(answer, task.table, question) or NOTHING

    return _each(estimate, lambda task: _answer(model, task.table)[0], codes=True)


def by_dowhy(answer: Answer, table: Table, question: Question) -> EstimatedEffect | None:
    """The effect by DoWhy, given the most probable graph; None if that has no path."""
    import networkx as nx
    import pandas as pd
    from dowhy import CausalModel

    graph = nx.DiGraph()
    graph.add_nodes_from(answer.names)
    graph.add_edges_from((answer.names[j], answer.names[k]) for j, k in np.argwhere(answer.adjacency))
    if not nx.has_path(graph, question.treatment, question.outcome):
        return None
    frame = pd.DataFrame(table.values, columns=list(table.names))
    for column in table.columns:
        if column.kind == "category" and column.name not in (question.treatment, question.outcome):
            frame[column.name] = frame[column.name].astype("category")
    kinds = {column.name: column for column in table.columns}
    if question.between is not None:
        codes = [kinds[question.treatment].levels.index(level) for level in question.between]
        frame = frame[frame[question.treatment].isin(codes)].reset_index(drop=True)
        frame[question.treatment] = (frame[question.treatment] == codes[1]).astype(float)
    if question.level is not None:
        code = kinds[question.outcome].levels.index(question.level)
        frame[question.outcome] = (frame[question.outcome] == code).astype(float)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = CausalModel(frame, treatment=question.treatment, outcome=question.outcome, graph=graph)
        estimand = model.identify_effect(method_name=DOWHY_SETTINGS["identification"])
        estimate = model.estimate_effect(
            estimand, method_name=DOWHY_SETTINGS["estimate"], control_value=0, treatment_value=1, effect_modifiers=[]
        )
        low, high = np.ravel(estimate.get_confidence_intervals(confidence_level=LEVEL))
    return EstimatedEffect(float(estimate.value), float(low), float(high))


def start_ida(prepare: Callable[[Mapping[str, Any]], Search], settings: Mapping[str, Any]) -> Any:
    """IDA (Maathuis, Kalisch and Bühlmann 2009): all sets of parents that the treatment can have in the class."""
    search = prepare(settings)
    return _each(_by_sets_of(sets_in_class), lambda task: search(task.table.values.copy()), codes=True)


def sets_in_class(cpdag: Bools, treatment: int, outcome: int) -> list[Set | None]:
    """The sets of parents that the treatment can have; None where the outcome is among them."""
    return [None if outcome in parents else parents for parents in possible_parents(cpdag, treatment)]


def possible_parents(cpdag: Bools, variable: int) -> Iterator[Set]:
    """Sets of parents that a variable can have without a new v-structure."""
    both = cpdag & cpdag.T
    fixed = np.flatnonzero(cpdag[:, variable] & ~both[:, variable]).tolist()
    free = np.flatnonzero(both[:, variable]).tolist()[:MAX_NEIGHBORS]
    adjacent = skeleton_of(cpdag)
    for size in range(len(free) + 1):
        for chosen in itertools.combinations(free, size):
            pairs = itertools.chain(itertools.combinations(chosen, 2), itertools.product(chosen, fixed))
            if all(adjacent[a, b] for a, b in pairs):
                yield tuple(sorted([*fixed, *chosen]))


def start_regression() -> Any:
    """A regression of the outcome on everything."""

    def everything(names: tuple[str, ...], treatment: int, outcome: int) -> list[Set | None]:
        return [tuple(k for k in range(len(names)) if k not in (treatment, outcome))]

    return _each(_by_sets_of(everything), lambda task: task.table.names)


# What they share


def _each(estimate: Estimator, prepare: Callable[[EffectTask], Any], codes: bool = False) -> Any:
    """A method that prepares a table once and then answers each question; with `codes`, it reads numbers only."""

    def solve(task: EffectTask, generator: np.random.Generator) -> EffectEstimates:
        def work() -> tuple[EstimatedEffect, ...]:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # "number of features is much larger than the sample size"
                prepared = prepare(task)
                return tuple(estimate(prepared, task, question) for question in task.questions)

        found, seconds = timed(work)
        return EffectEstimates(found, seconds, (Observed(task.table).as_numbers or None) if codes else None)

    return solve


def _by_sets_of(sets_of: Callable[[Any, int, int], list[Set | None]], estimator: str = "linear") -> Estimator:
    """Regressions on the adjustment sets of a treatment and an outcome, given what was prepared."""

    def estimate(prepared: Any, task: EffectTask, question: Question) -> EstimatedEffect:
        t, y, design = _design(task.table, question, estimator)
        return by_sets(design, t, y, sets_of(prepared, t, y))

    return estimate


def _design(table: Table, question: Question, estimator: str = "linear") -> tuple[int, int, Design]:
    """Treatment, outcome, and the columns of a regression for the question."""
    from causal_arrow.discovery.effects.linear import curved
    from causal_arrow.discovery.effects.questions import MIN_OBSERVATIONS, change_of, design_of, level_asked, with_ends

    t, y = (table.names.index(name) for name in (question.treatment, question.outcome))
    change, level = change_of(table.columns[t], question.between), level_asked(table.columns[y], question.level)
    rows = with_ends(table, t, y, change.levels) & table.observed.all(axis=1)
    if rows.sum() < MIN_OBSERVATIONS:
        raise TableError(f"Only {rows.sum()} observations are complete.")
    design = design_of(dict(enumerate(table.values[rows].T)), table.columns, (t, y), change, level)
    return t, y, curved(design, t, y, table.columns) if estimator == "curved" else design


def by_sets(design: Design, treatment: int, outcome: int, sets: Sequence[Set | None]) -> EstimatedEffect:
    """The mean over adjustment sets, where None is no effect, and an interval that covers all of theirs."""
    from causal_arrow.discovery.effects.linear import linear_estimates
    from causal_arrow.discovery.effects.mixture import Mixture

    wanted = [members for members in sets if members is not None]
    estimates = linear_estimates(design, treatment, outcome, wanted)
    found = [NOTHING] * (len(sets) - len(wanted))
    for members in wanted:
        if (estimate := estimates.get(members)) is not None and math.isfinite(estimate.effect):
            found.append(EstimatedEffect(estimate.effect, *Mixture.of([1.0], [estimate]).interval(LEVEL)))
    if not found:
        return UNKNOWN
    return EstimatedEffect(
        float(np.mean([each.effect for each in found])), min(e.low for e in found), max(e.high for e in found)
    )


EFFECT_METHODS = {
    "arrow": MethodKind(
        "Arrow", "Our effects over 1,000 graphs, straight lines. arrow:PATH takes other weights", prepare_arrow
    ),
    "arrow-mean": MethodKind(
        "Arrow, mean",
        "The same with the mean of the distribution in place of its median",
        partial(prepare_arrow, point="mean"),
    ),
    "arrow-curved": MethodKind(
        "Arrow, curved", "The same with cubic curves", partial(prepare_arrow, estimator="curved")
    ),
    "true-graph": MethodKind(
        "True graph",
        "The same straight lines, by the true graph",
        own_method(partial(start_true_graph, "linear"), is_oracle=True),
    ),
    "true-graph-curved": MethodKind(
        "True graph, curved",
        "Cubic curves, by the true graph",
        own_method(partial(start_true_graph, "curved"), is_oracle=True),
    ),
    "dowhy": MethodKind("Best graph, DoWhy", "Our single best graph, estimated by DoWhy", prepare_best_graph),
    "ida-pc": MethodKind(
        "IDA with PC",
        "All parent sets of the equivalence class that PC finds",
        method_of_package("causal-learn", partial(start_ida, pc), PC_SETTINGS),
    ),
    "ida-ges": MethodKind(
        "IDA with GES",
        "All parent sets of the equivalence class that GES finds",
        method_of_package("causal-learn", partial(start_ida, ges), GES_SETTINGS),
    ),
    "regression": MethodKind(
        "Regression on everything", "One regression with every other column", own_method(start_regression)
    ),
}
"""The methods of the suite `effects`."""


# Policies

Choose = Callable[["Answer", ExperimentTask, Bools, list[str], np.random.Generator], list[str]]
"""Chooses the next variables to set among the remaining ones, given graphs drawn from current knowledge."""


def by_advice(
    answer: Answer,
    task: ExperimentTask,
    graphs: Bools,
    left: list[str],
    generator: np.random.Generator,
    *,
    together: int = 1,
) -> list[str]:
    """Follow the advice of `next_experiment`."""
    from causal_arrow.discovery.effects.experiments import plan_experiments

    plan = plan_experiments(
        answer, task.table, graphs, budget=together, candidates=left, rows=EXPERIMENTAL_OBSERVATIONS, random=generator
    )
    return [each.variables[0] for each in plan.batch]


def by_chance(
    answer: Answer, task: ExperimentTask, graphs: Bools, left: list[str], generator: np.random.Generator
) -> list[str]:
    """Choose any variable."""
    return [str(generator.choice(left))]


def by_degree(
    answer: Answer, task: ExperimentTask, graphs: Bools, left: list[str], generator: np.random.Generator
) -> list[str]:
    """Choose the variable with the most edges in the graph that is shown; among ties, any."""
    degrees = skeleton_of(answer.adjacency).sum(axis=0)
    order = generator.permutation(len(left))
    return [left[max(order, key=lambda index: degrees[answer.index_of(left[index])])]]


def prepare_policy(name: str, argument: str, options: MethodOptions, *, choose: Choose) -> Method:
    """Prepare a policy; all of them learn from experiments in the same way, with the same network."""
    source, name, settings = arrow_settings(name, argument)
    start = partial(start_policy, source, choose)
    return Method(name, {**settings, "graphs": GRAPHS}, {"causal-arrow": __version__}, start)


def start_policy(source: str, choose: Choose) -> Any:
    """Choose, carry out and learn from five experiments."""
    from causal_arrow.discovery.effects.experiments import knowledge_from

    model = loaded(source)

    def solve(task: ExperimentTask, generator: np.random.Generator) -> Course:
        answer, _ = _answer(model, task.table)
        shown = [answer.adjacency]
        chosen: list[str] = []
        seconds = 0.0
        waiting: list[str] = []
        while len(chosen) < MAX_EXPERIMENTS:
            # The same seed for every policy, so that only their choices differ.
            graphs = answer.sample(GRAPHS, np.random.default_rng(len(chosen))).graphs
            if not waiting:
                left = [name for name in answer.names if name not in chosen]
                waiting, took = timed(partial(choose, answer, task, graphs, left, generator), clock=time.perf_counter)
                seconds += took
            name = waiting.pop(0)
            known = knowledge_from(answer, task.table, task.carry_out(name), name, graphs)
            answer = answer.refine(knowledge=known)
            chosen.append(name)
            shown.append(answer.adjacency)
        return Course(tuple(shown), tuple(chosen), seconds)

    return solve


POLICIES = {
    "arrow": MethodKind(
        "Arrow",
        "Set what `next_experiment` advises, and ask again. arrow:PATH takes other weights",
        partial(prepare_policy, choose=by_advice),
    ),
    "arrow-together": MethodKind(
        "Arrow, all at once",
        "Set the five that it advises to set together",
        partial(prepare_policy, choose=partial(by_advice, together=MAX_EXPERIMENTS)),
    ),
    "chance": MethodKind("Random choice", "Set any variable", partial(prepare_policy, choose=by_chance)),
    "degree": MethodKind(
        "Highest degree",
        "Set the variable with the most edges in the graph that is shown",
        partial(prepare_policy, choose=by_degree),
    ),
}
"""The methods of the suite `experiments`."""
