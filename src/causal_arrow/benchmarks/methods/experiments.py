"""Policies that choose experiments: our advice, one after another or all at once, and what people do without it."""

# P variables

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from causal_arrow._version import __version__
from causal_arrow.benchmarks.experiments import MOST_EXPERIMENTS, Course, ExperimentTask
from causal_arrow.benchmarks.methods.arrow import arrow_settings
from causal_arrow.benchmarks.methods.protocol import Method, MethodKind, MethodOptions
from causal_arrow.graphs.dag import skeleton_of

if TYPE_CHECKING:
    from causal_arrow.discovery.answer import Answer

GRAPHS = 1000
"""Graphs that are drawn for each choice and for learning from each experiment."""

Bools = NDArray[np.bool_]
Choose = Callable[["Answer", ExperimentTask, Bools, list[str], np.random.Generator], list[str]]
"""The next variables to set, of those that are left, given graphs drawn from what is known by now."""


def by_advice(
    answer: Answer,
    task: ExperimentTask,
    graphs: Bools,
    left: list[str],
    generator: np.random.Generator,
    *,
    together: int = 1,
) -> list[str]:
    """As `next_experiment` advises."""
    from causal_arrow.discovery.effects.planning import plan_experiments

    plan = plan_experiments(
        answer,
        task.table,
        graphs,
        budget=together,
        candidates=left,
        observations=task.experimental,
        random=generator,
    )
    return [each.variables[0] for each in plan.batch]


def by_chance(
    answer: Answer, task: ExperimentTask, graphs: Bools, left: list[str], generator: np.random.Generator
) -> list[str]:
    """Any variable."""
    return [str(generator.choice(left))]


def by_degree(
    answer: Answer, task: ExperimentTask, graphs: Bools, left: list[str], generator: np.random.Generator
) -> list[str]:
    """The variable with the most edges in the graph that is shown; of several, any."""
    degrees = skeleton_of(answer.adjacency).sum(axis=0)
    order = generator.permutation(len(left))
    return [left[max(order, key=lambda place: degrees[answer.place_of(left[place])])]]


CHOICES: dict[str, Choose] = {
    "arrow": by_advice,
    "arrow-together": partial(by_advice, together=MOST_EXPERIMENTS),
    "chance": by_chance,
    "degree": by_degree,
}


def prepare_policy(argument: str, options: MethodOptions, *, name: str) -> Method:
    """A policy; all of them learn from experiments in the same way, with the same network."""
    source, label, settings = arrow_settings(argument, options)
    return Method(
        f"{name}:{label}" if argument else name,
        {**settings, "graphs": GRAPHS},
        {"causal-arrow": __version__},
        lambda: start_policy(source, CHOICES[name]),
    )


def start_policy(source: str, choose: Choose) -> Any:
    """Choose, carry out, learn, until five experiments are done."""
    import time

    import torch

    from causal_arrow.discovery.effects.planning import knowledge_from
    from causal_arrow.discovery.inference import ready_model
    from causal_arrow.discovery.pipeline import Settings, discover

    torch.set_num_threads(1)
    model = ready_model(source, "cpu")

    def solve(task: ExperimentTask, generator: np.random.Generator) -> Course:
        answer = discover(task.table, Settings(model=model)).answer
        shown = [answer.adjacency]
        chosen: list[str] = []
        seconds = 0.0
        waiting: list[str] = []
        while len(chosen) < MOST_EXPERIMENTS:
            # The same seed for every policy: differences are those of the choices.
            graphs = answer.sample(GRAPHS, torch.Generator().manual_seed(len(chosen))).graphs
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


def _policy(name: str, title: str, description: str) -> MethodKind:
    return MethodKind(title, description, partial(prepare_policy, name=name))


POLICIES = {
    "arrow": _policy(
        "arrow", "Arrow", "Set what `next_experiment` advises, and ask again. arrow:PATH takes other weights"
    ),
    "arrow-together": _policy("arrow-together", "Arrow, all at once", "Set the five that it advises to set together"),
    "chance": _policy("chance", "Random choice", "Set any variable"),
    "degree": _policy("degree", "Highest degree", "Set the variable with the most edges in the graph that is shown"),
}
"""The methods of the suite `experiments`."""
