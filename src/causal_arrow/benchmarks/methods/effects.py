"""Methods that estimate effects: over our graphs, by one graph alone, by IDA, and by a regression on everything."""

# P variables

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from causal_arrow._version import __version__
from causal_arrow.benchmarks.effects import UNKNOWN, EffectEstimates, EffectTask, Estimated, Question
from causal_arrow.benchmarks.methods.arrow import arrow_settings, as_far_as_it_reads
from causal_arrow.benchmarks.methods.causal_learn import GES_SETTINGS, PC_SETTINGS, pdag_of
from causal_arrow.benchmarks.methods.protocol import (
    Method,
    MethodKind,
    MethodOptions,
    Observed,
    method_of_package,
    refuse_argument,
    timed,
)
from causal_arrow.errors import TableError
from causal_arrow.graphs.dag import skeleton_of
from causal_arrow.tables.table import Table

if TYPE_CHECKING:
    from causal_arrow.discovery.answer import Answer
    from causal_arrow.discovery.effects.linear import Design
    from causal_arrow.network.model import ArrowModel

Bools = NDArray[np.bool_]
Set = tuple[int, ...]
Estimator = Callable[[EffectTask, Question, np.random.Generator], Estimated]

GRAPHS = 1000
"""Graphs that an effect is averaged over."""
LEVEL = 0.9
# The largest valid set: DoWhy's search for the best one fails on some graphs, and its own default takes minutes.
DOWHY_SETTINGS = {"identification": "maximal-adjustment", "estimate": "backdoor.linear_regression"}
MOST_NEIGHBOURS = 10
"""Undirected neighbours of which IDA tries all subsets."""


# Over all graphs


def prepare_arrow(argument: str, options: MethodOptions, *, name: str, estimator: str, point: str = "median") -> Method:
    """Our effects, over graphs drawn from the answer; the weights as for the graphs themselves."""
    source, label, settings = arrow_settings(argument, options)
    return Method(
        name=f"{name}:{label}" if argument else name,
        settings={**settings, "estimator": estimator, "graphs": GRAPHS, "point": point},
        versions={"causal-arrow": __version__},
        start=lambda: start_arrow(source, estimator, point),
        reads_tables=True,
    )


def start_arrow(source: str, estimator: str, point: str) -> Any:
    from causal_arrow.discovery.effects.estimation import EffectQuestion, estimate_effect

    model = _ready(source)

    def solve(task: EffectTask, generator: np.random.Generator) -> EffectEstimates:
        import torch

        def work() -> tuple[tuple[Estimated, ...], dict[str, str]]:
            answer, reading = _answer(model, task.table)
            drawn = answer.sample(GRAPHS, torch.Generator().manual_seed(int(generator.integers(2**62)))).graphs
            found = []
            for question in task.questions:
                asked = EffectQuestion(estimator, "optimal", question.level)
                try:
                    effect = estimate_effect(
                        answer,
                        task.table,
                        drawn,
                        question.treatment,
                        question.outcome,
                        between=question.between,
                        question=asked,
                        random=generator,
                    )
                    lost = not effect.sets and effect.verdict == "not identified"
                    found.append(UNKNOWN if lost else Estimated(getattr(effect, point), *effect.interval))
                except TableError:  # nothing left of the treatment, or a hidden cause in every graph
                    found.append(UNKNOWN)
            return tuple(found), reading

        (found, reading), seconds = timed(work)
        return EffectEstimates(found, seconds, reading or None)

    return solve


def _ready(source: str) -> ArrowModel:
    import torch

    from causal_arrow.discovery.inference import ready_model

    torch.set_num_threads(1)
    return ready_model(source, "cpu")


def _answer(model: ArrowModel, table: Table) -> tuple[Answer, dict[str, str]]:
    from causal_arrow.discovery.pipeline import Settings, discover

    read, reading = as_far_as_it_reads(Observed(table), model.encoder.reads)
    return discover(read, Settings(model=model)).answer, reading


# By one graph


def start_true_graph(estimator: str) -> Any:
    """The same estimator with the true graph: what doubt about the graph costs."""

    def estimate(task: EffectTask, question: Question, generator: np.random.Generator) -> Estimated:
        assert task.graph is not None
        t, y, design = _design(task.table, question, estimator)
        return by_graph(design, task.graph, t, y)

    return _each(lambda task: estimate)


def prepare_best_graph(argument: str, options: MethodOptions) -> Method:
    """Our single best graph, handed to DoWhy."""
    source, label, settings = arrow_settings(argument, options)
    prepared = method_of_package("dowhy", "dowhy", {}, lambda: start_best_graph(source), extra="handover")("", options)
    return Method(
        f"dowhy:{label}" if argument else "dowhy",
        {**settings, **DOWHY_SETTINGS},
        {"causal-arrow": __version__, **prepared.versions},
        prepared.start,
        reads_tables=True,
    )


def start_best_graph(source: str) -> Any:
    """DoWhy on our most probable graph: identification, then its linear regression with its 90% interval."""
    model = _ready(source)

    def with_graph(task: EffectTask) -> Estimator:
        import networkx as nx

        answer, _ = _answer(model, task.table)
        graph = nx.DiGraph()
        graph.add_nodes_from(answer.names)
        graph.add_edges_from((answer.names[j], answer.names[k]) for j, k in np.argwhere(answer.adjacency))
        return lambda task, question, generator: by_dowhy(graph, task.table, question)

    return _each(with_graph, codes=True)


def by_dowhy(graph: Any, table: Table, question: Question) -> Estimated:
    """The effect by DoWhy; zero where the graph has no path."""
    import networkx as nx
    import pandas as pd
    from dowhy import CausalModel

    if not nx.has_path(graph, question.treatment, question.outcome):
        return Estimated(0.0, 0.0, 0.0)
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
        model = CausalModel(frame, treatment=question.treatment, outcome=question.outcome, graph=graph.copy())
        estimand = model.identify_effect(method_name=DOWHY_SETTINGS["identification"])
        estimate = model.estimate_effect(
            estimand,
            method_name=DOWHY_SETTINGS["estimate"],
            control_value=0,
            treatment_value=1,
            effect_modifiers=[],
        )
        low, high = np.ravel(estimate.get_confidence_intervals(confidence_level=LEVEL))
    return Estimated(float(estimate.value), float(low), float(high))


# By an equivalence class


def start_ida(search: str) -> Any:
    """IDA (Maathuis, Kalisch and Bühlmann 2009): all sets of parents that the treatment can have in the class."""

    def with_class(task: EffectTask) -> Estimator:
        found = CLASSES[search](task.table.values)

        def estimate(task: EffectTask, question: Question, generator: np.random.Generator) -> Estimated:
            t, y, design = _design(task.table, question)
            return by_ida(design, found, t, y)

        return estimate

    return _each(with_class, codes=True)


def pc_class(values: NDArray[np.float64]) -> Bools:
    """The equivalence class by PC: an edge of unknown direction is marked both ways.  (P, P)"""
    from causallearn.search.ConstraintBased.PC import pc

    found = pc(values.copy(), alpha=PC_SETTINGS["alpha"], indep_test=PC_SETTINGS["test"], show_progress=False)
    return pdag_of(found.G.graph)


def ges_class(values: NDArray[np.float64]) -> Bools:
    """The equivalence class by GES.  (P, P)"""
    from causallearn.search.ScoreBased.GES import ges

    found = ges(values.copy(), score_func=GES_SETTINGS["score"], lambda_value=GES_SETTINGS["lambda_value"])
    return pdag_of(found["G"].graph)


CLASSES = {"pc": pc_class, "ges": ges_class}


def possible_parents(cpdag: Bools, variable: int) -> Iterator[Set]:
    """The sets of parents that a variable can have without a new v-structure."""
    both = cpdag & cpdag.T
    fixed = np.flatnonzero(cpdag[:, variable] & ~both[:, variable]).tolist()
    free = np.flatnonzero(both[:, variable]).tolist()[:MOST_NEIGHBOURS]
    adjacent = skeleton_of(cpdag)
    for size in range(len(free) + 1):
        for chosen in itertools.combinations(free, size):
            pairs = itertools.chain(itertools.combinations(chosen, 2), itertools.product(chosen, fixed))
            if all(adjacent[a, b] for a, b in pairs):
                yield tuple(sorted([*fixed, *chosen]))


# By no graph


def start_regression() -> Any:
    """A regression of the outcome on everything."""

    def estimate(task: EffectTask, question: Question, generator: np.random.Generator) -> Estimated:
        t, y, design = _design(task.table, question)
        return by_sets(design, t, y, [tuple(place for place in range(task.table.variables) if place not in (t, y))])

    return _each(lambda task: estimate)


# What they share


def _each(prepare: Callable[[EffectTask], Estimator], codes: bool = False) -> Any:
    """A method that looks at the table once and then answers question by question; with `codes`, looks at numbers."""

    def solve(task: EffectTask, generator: np.random.Generator) -> EffectEstimates:
        def work() -> tuple[Estimated, ...]:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # "number of features is much larger than the sample size"
                estimate = prepare(task)
                return tuple(estimate(task, question, generator) for question in task.questions)

        found, seconds = timed(work)
        return EffectEstimates(found, seconds, (Observed(task.table).as_numbers or None) if codes else None)

    return solve


def _design(table: Table, question: Question, estimator: str = "linear") -> tuple[int, int, Design]:
    """Treatment, outcome, and the columns of a regression for the question."""
    from causal_arrow.discovery.effects.estimation import design_for

    t, y = (table.names.index(name) for name in (question.treatment, question.outcome))
    return t, y, design_for(table, t, y, question.between, question.level, curved_numbers=estimator == "curved")


def by_sets(design: Design, treatment: int, outcome: int, sets: Sequence[Set | None]) -> Estimated:
    """The mean over adjustment sets, None for no effect, and the interval that covers all of theirs."""
    from causal_arrow.discovery.effects.linear import linear_estimates
    from causal_arrow.discovery.effects.mixture import mixture_of

    wanted = [members for members in sets if members is not None]
    estimates = linear_estimates(design, treatment, outcome, wanted)
    found = [Estimated(0.0, 0.0, 0.0)] * (len(sets) - len(wanted))
    for members in wanted:
        if (estimate := estimates.get(members)) is not None and math.isfinite(estimate.effect):
            part = mixture_of([1.0], [estimate.effect], [estimate.standard_error], [estimate.freedom])
            found.append(Estimated(estimate.effect, *part.interval(LEVEL)))
    if not found:
        return UNKNOWN
    return Estimated(
        float(np.mean([each.effect for each in found])), min(e.low for e in found), max(e.high for e in found)
    )


def by_graph(design: Design, graph: Bools, treatment: int, outcome: int) -> Estimated:
    """By the optimal set of one graph."""
    from causal_arrow.discovery.uncertainty import adjustment_sets

    return by_sets(design, treatment, outcome, list(adjustment_sets(graph[None], treatment, outcome)))


def by_ida(design: Design, cpdag: Bools, treatment: int, outcome: int) -> Estimated:
    """By all sets of parents that the treatment can have in the equivalence class."""
    sets = [None if outcome in parents else parents for parents in possible_parents(cpdag, treatment)]
    return by_sets(design, treatment, outcome, sets)


def _own(name: str, start: Callable[[], Any], *, is_oracle: bool = False) -> Callable[[str, MethodOptions], Method]:
    def prepare(argument: str, options: MethodOptions) -> Method:
        refuse_argument(name, argument)
        return Method(name, {}, {"causal-arrow": __version__}, start, is_oracle)

    return prepare


EFFECT_METHODS = {
    "arrow": MethodKind(
        "Arrow",
        "Our effects over 1,000 graphs, straight lines. arrow:PATH takes other weights",
        partial(prepare_arrow, name="arrow", estimator="linear"),
    ),
    "arrow-mean": MethodKind(
        "Arrow, mean",
        "The same with the mean of the distribution in place of its median",
        partial(prepare_arrow, name="arrow-mean", estimator="linear", point="mean"),
    ),
    "arrow-curved": MethodKind(
        "Arrow, curved",
        "The same with cubic curves",
        partial(prepare_arrow, name="arrow-curved", estimator="curved"),
    ),
    "arrow-forest": MethodKind(
        "Arrow, forest",
        "The same with cross-fitted random forests",
        partial(prepare_arrow, name="arrow-forest", estimator="forest"),
    ),
    "true-graph": MethodKind(
        "True graph",
        "The same straight lines, by the true graph",
        _own("true-graph", partial(start_true_graph, "linear"), is_oracle=True),
    ),
    "true-graph-curved": MethodKind(
        "True graph, curved",
        "Cubic curves, by the true graph",
        _own("true-graph-curved", partial(start_true_graph, "curved"), is_oracle=True),
    ),
    "dowhy": MethodKind("Best graph, DoWhy", "Our single best graph, estimated by DoWhy", prepare_best_graph),
    "ida-pc": MethodKind(
        "IDA with PC",
        "All parent sets of the equivalence class that PC finds",
        method_of_package("ida-pc", "causal-learn", PC_SETTINGS, partial(start_ida, "pc")),
    ),
    "ida-ges": MethodKind(
        "IDA with GES",
        "All parent sets of the equivalence class that GES finds",
        method_of_package("ida-ges", "causal-learn", GES_SETTINGS, partial(start_ida, "ges")),
    ),
    "regression": MethodKind(
        "Regression on everything", "One regression with every other column", _own("regression", start_regression)
    ),
}
"""The methods of the suite `effects`."""
