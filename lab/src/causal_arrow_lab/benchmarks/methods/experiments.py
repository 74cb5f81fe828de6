"""Policies that choose experiments: Arrow's advice, one after another or all at once, and what people do without it."""

# P variables

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from causal_arrow._version import __version__
from causal_arrow.graphs.dag import skeleton_of
from causal_arrow_lab.benchmarks.effects import MAX_EXPERIMENTS, Course, ExperimentTask
from causal_arrow_lab.benchmarks.methods.arrow import arrow_settings
from causal_arrow_lab.benchmarks.methods.protocol import Method, MethodKind, MethodOptions

if TYPE_CHECKING:
    from causal_arrow.discovery.answer import Answer

GRAPHS = 1000
"""Number of graphs drawn for each choice and for learning from each experiment."""

Bools = NDArray[np.bool_]
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
    from causal_arrow.discovery.effects.planning import plan_experiments

    plan = plan_experiments(
        answer, task.table, graphs, budget=together, candidates=left, rows=task.experimental, random=generator
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


CHOICES: dict[str, Choose] = {
    "arrow": by_advice,
    "arrow-together": partial(by_advice, together=MAX_EXPERIMENTS),
    "chance": by_chance,
    "degree": by_degree,
}


def prepare_policy(name: str, argument: str, options: MethodOptions) -> Method:
    """Prepare a policy; all of them learn from experiments in the same way, with the same network."""
    source, label, settings = arrow_settings(argument)
    return Method(
        f"{name}:{label}" if argument else name,
        {**settings, "graphs": GRAPHS},
        {"causal-arrow": __version__},
        lambda: start_policy(source, CHOICES[name]),
    )


def start_policy(source: str, choose: Choose) -> Any:
    """Choose, carry out and learn from five experiments."""
    import time

    from causal_arrow.discovery.effects.planning import knowledge_from
    from causal_arrow.discovery.inference import ready_model
    from causal_arrow.discovery.pipeline import discover
    from causal_arrow.discovery.settings import Settings
    from causal_arrow.network.forward import set_thread_count

    set_thread_count(1)
    model = ready_model(source, "cpu")

    def solve(task: ExperimentTask, generator: np.random.Generator) -> Course:
        answer = discover(task.table, Settings(model=model, directions="network")).answer
        shown = [answer.adjacency]
        chosen: list[str] = []
        seconds = 0.0
        waiting: list[str] = []
        while len(chosen) < MAX_EXPERIMENTS:
            # The same seed for every policy, so that only their choices differ.
            graphs = answer.sample(GRAPHS, np.random.default_rng(len(chosen))).graphs
            if not waiting:
                started = time.perf_counter()
                left = [name for name in answer.names if name not in chosen]
                waiting = choose(answer, task, graphs, left, generator)
                seconds += time.perf_counter() - started
            name = waiting.pop(0)
            known = knowledge_from(answer, task.table, task.carry_out(name), name, graphs)
            answer = answer.refine(knowledge=known)
            chosen.append(name)
            shown.append(answer.adjacency)
        return Course(tuple(shown), tuple(chosen), seconds)

    return solve


POLICIES = {
    "arrow": MethodKind(
        "Arrow", "Set what `next_experiment` advises, and ask again. arrow:PATH takes other weights", prepare_policy
    ),
    "arrow-together": MethodKind("Arrow, all at once", "Set the five that it advises to set together", prepare_policy),
    "chance": MethodKind("Random choice", "Set any variable", prepare_policy),
    "degree": MethodKind(
        "Highest degree", "Set the variable with the most edges in the graph that is shown", prepare_policy
    ),
}
"""The methods of the suite `experiments`."""
