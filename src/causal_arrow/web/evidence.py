"""What speaks against a graph: tested independences, what no data can decide, and what an experiment would tell."""

from __future__ import annotations

import numpy as np

from causal_arrow.discovery.answer import Answer
from causal_arrow.discovery.discovery import Discovery
from causal_arrow.discovery.effects.falsification import LEVEL, Falsification, why_not_tested
from causal_arrow.errors import ConfigurationError
from causal_arrow.text import counted
from causal_arrow.web.messages import Evidence, ExperimentAdvice, ExperimentPlanFacts, Independence, Probabilities

MAX_INDEPENDENCES = 500
"""Those that the data contradict most are listed."""
MAX_EXPERIMENTS = 20


def evidence(found: Discovery) -> Evidence:
    """The independences that the graph implies, each with its test, and the edges that could be reversed."""
    test = found.compatibility(thorough=True)
    reversible = _reversible(found.answer)
    return Evidence(
        words=str(test) if test else why_not_tested(found.table),
        tests=test.tests if test else 0,
        independences=_independences(test) if test else [],
        reversible=[list(edge) for edge in reversible],
        equivalence=_equivalence(found.answer, len(reversible)),
    )


def _independences(test: Falsification) -> list[Independence]:
    pairs = np.argwhere(~np.isnan(test.independence))
    values = test.independence[pairs[:, 0], pairs[:, 1]]
    return [
        Independence(
            variable=test.names[k],
            other=test.names[j],
            given=[test.names[index] for index in np.flatnonzero(test.graph[:, k]).tolist()],
            p_value=float(value),
            contradicted=bool(value < LEVEL),
        )
        for (j, k), value in sorted(zip(pairs.tolist(), values, strict=True), key=lambda each: (each[1], each[0]))
    ][:MAX_INDEPENDENCES]


def _reversible(answer: Answer) -> list[tuple[str, str]]:
    """The edges of the graph that point the other way in another graph with the same independences."""
    return [(edge.source, edge.target) for edge in answer.edges if not edge.compelled]


def _equivalence(answer: Answer, reversible: int) -> str:
    edges = len(answer.edges)
    if not edges:
        return "The graph has no edge."
    if not reversible:
        return "Every graph with the same independences has all these directions."
    return (
        f"{counted(reversible, 'edge')} of {edges} can point the other way in graphs with the same independences: "
        "no test of independence can decide these directions. They rest on the shape of the data or on what you know."
    )


def probabilities(answer: Answer) -> Probabilities:
    """The probability of every edge, along the causal order: rows are causes, columns effects."""
    order = [answer.index_of(name) for name in answer.order]
    rows = np.clip(answer.edge_probabilities[np.ix_(order, order)], 0.0, 1.0)
    return Probabilities(names=list(answer.order), rows=np.round(rows, 4).tolist())


def experiments(found: Discovery, cause: str | None, effect: str | None) -> ExperimentPlanFacts:
    """What to randomize or to measure next: to learn about one effect, about the causes of a variable, or the graph."""
    if cause is not None and effect is None:
        raise ConfigurationError("Expected an effect together with the cause.")
    target = effect if cause is None or effect is None else (cause, effect)
    plan = found.next_experiment(target)
    return ExperimentPlanFacts(
        words=plan.sentence,
        subject=plan.subject,
        experiments=[
            ExperimentAdvice(
                variables=list(each.variables),
                action=each.action,  # type: ignore[arg-type]
                words=str(each),
                gain=max(each.gain, 0.0),
                amount=plan.amount(each.gain),
            )
            for each in plan.experiments[:MAX_EXPERIMENTS]
        ],
    )
