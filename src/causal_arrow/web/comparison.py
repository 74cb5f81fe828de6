"""Two answers side by side: drawn in the same places, and how they differ, in words."""

from __future__ import annotations

import json
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from causal_arrow.discovery.answer import Answer, DirectedEdge
from causal_arrow.discovery.summary import decided_by, title
from causal_arrow.errors import ConfigurationError
from causal_arrow.graphs.metrics import edge_differences
from causal_arrow.text import counted, listed, reason
from causal_arrow.web.messages import Bends, ComparedAnswer, Comparison, Difference, Places
from causal_arrow.web.sessions import Session
from causal_arrow.web.statements import statements
from causal_arrow.web.views import graph_of, places_of

NOW = "now"
NETWORK = "network"
CLEARLY = 0.2
"""A change of an edge's probability that is worth a line."""

Edge = tuple[str, str]


def answer_called(session: Session, which: str) -> tuple[str, Answer]:
    """The name and the answer that is meant: as it stands, as the network gave it, or one that was kept."""
    now = session.current().answer
    if which == NOW:
        return "the graph as it stands", now
    if which == NETWORK:
        assert session.found is not None  # or there were no answer as it stands
        alone = session.found.answer.refine(decode=now.decode, threshold=now.threshold, directions=now.directions)
        return "the network alone", alone
    for kept in session.kept:
        if str(kept.number) == which:
            return kept.name, kept.answer
    raise ConfigurationError("This answer is not kept any more: choose another one to compare.")


def saved_answer(content: bytes) -> Answer:
    """The answer in a file that the page, the command line or Python has written; ConfigurationError if it is none."""
    try:
        written = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(
            f"Expected a graph.json as this page downloads it, got a file that is no JSON ({reason(error)})."
        ) from error
    return Answer.from_dict(written)


def comparison(left: tuple[str, Answer], right: tuple[str, Answer]) -> Comparison:
    """The two answers, one layout for both, and their differences."""
    (left_name, one), (right_name, other) = left, right
    names = [*one.order, *(name for name in other.order if name not in one.names)]
    differences = [
        *_variable_differences(one, other, left_name, right_name),
        *_edge_differences(one, other, left_name, right_name),
        *_hidden_cause_differences(one, other, left_name, right_name),
        *_statement_differences(one, other, left_name, right_name),
    ]
    return Comparison(
        left=ComparedAnswer(name=left_name, words=_words(one), graph=graph_of(one)),
        right=ComparedAnswer(name=right_name, words=_words(other), graph=graph_of(other)),
        places=_shared_places(names, (one, other)),
        words=_summary(one, other, differences),
        differences=differences,
    )


def _words(answer: Answer) -> str:
    model = f", read by {answer.model}" if answer.model else ""
    return f"{title(answer)}, {counted(len(answer.edges), 'edge')}{model}"


def _summary(one: Answer, other: Answer, differences: list[Difference]) -> str:
    same = len(_edges(one) & _edges(other))
    if not differences:
        return f"No difference: both have the same {counted(same, 'edge')}."
    counts = [
        (sum(each.kind == kind for each in differences), words)
        for kind, words in (
            ("only_left", "only on the left"),
            ("only_right", "only on the right"),
            ("reversed", "reversed"),
        )
    ]
    parts = [f"{count} {words}" for count, words in counts if count]
    if hidden := sum(each.kind == "hidden_cause" for each in differences):
        parts.append(f"{counted(hidden, 'hidden cause')} in one of the two")
    return f"{counted(same, 'edge')} in both{''.join(f', {part}' for part in parts)}."


def _shared_places(names: list[str], answers: Iterable[Answer]) -> Places:
    """One layout for all their edges, drawn along the order of the first answer."""
    index = {name: number for number, name in enumerate(names)}
    together: NDArray[np.bool_] = np.zeros((len(names), len(names)), dtype=bool)
    edges = set().union(*(_edges(answer) for answer in answers))
    for source, target in edges:
        together[tuple(sorted((index[source], index[target])))] = True
    indices = places_of(names, together)
    against = [
        Bends(source=each.target, target=each.source, points=each.points[::-1])
        for each in indices.bends
        if (each.target, each.source) in edges
    ]
    return Places(nodes=indices.nodes, bends=[*indices.bends, *against])


def _edges(answer: Answer) -> set[Edge]:
    return {(edge.source, edge.target) for edge in answer.edges}


# Differences


def _variable_differences(one: Answer, other: Answer, left: str, right: str) -> list[Difference]:
    differences = []
    for here, there, name in ((one, other, left), (other, one, right)):
        alone = [variable for variable in here.names if variable not in there.names]
        if alone:
            words = f"Only in {_quoted(name)}: {listed(alone, 12)}."
            differences.append(Difference(kind="variable", words=words, pair=None))
    kinds = {column.name: column.kind for column in one.columns}
    for column in other.columns:
        if (before := kinds.get(column.name, column.kind)) != column.kind:
            words = f"{column.name} is read as {before} in {_quoted(left)}, as {column.kind} in {_quoted(right)}."
            differences.append(Difference(kind="variable", words=words, pair=None))
    return differences


def _edge_differences(one: Answer, other: Answer, left: str, right: str) -> list[Difference]:
    found = edge_differences(_edges(one), _edges(other))
    differences = []
    for kind, edges, here, there, name in (
        ("only_left", found["missing"], one, other, left),
        ("only_right", found["extra"], other, one, right),
    ):
        for edge in edges:
            words = (
                f"{_arrow(edge)} only in {_quoted(name)}: {_adjacency(here, edge)} there, {_adjacency(there, edge)} in "
                "the other."
            )
            differences.append(Difference(kind=kind, words=words, pair=list(edge)))  # type: ignore[arg-type]
    for edge in found["reversed"]:
        words = (
            f"{_arrow(edge)} in {_quoted(left)} ({_facts(one, edge)}) is {_arrow(edge[::-1])} in {_quoted(right)} "
            f"({_facts(other, edge[::-1])})."
        )
        differences.append(Difference(kind="reversed", words=words, pair=list(edge)))
    for edge in sorted(_edges(one) & _edges(other)):
        before, after = (_edge(answer, edge).probability for answer in (one, other))
        if abs(before - after) >= CLEARLY:
            words = (
                f"{_arrow(edge)} in both, with probability {before:.2f} in {_quoted(left)} and {after:.2f} in "
                f"{_quoted(right)}."
            )
            differences.append(Difference(kind="probability", words=words, pair=list(edge)))
    return differences


def _hidden_cause_differences(one: Answer, other: Answer, left: str, right: str) -> list[Difference]:
    pairs = [{frozenset((each.first, each.second)) for each in answer.hidden_causes} for answer in (one, other)]
    return [
        Difference(
            kind="hidden_cause",
            words=f"A hidden cause of {' and '.join(sorted(pair))} only in {_quoted(name)}.",
            pair=sorted(pair),
        )
        for alone, name in ((pairs[0] - pairs[1], left), (pairs[1] - pairs[0], right))
        for pair in sorted(alone, key=sorted)
    ]


def _statement_differences(one: Answer, other: Answer, left: str, right: str) -> list[Difference]:
    said = [statements(answer.knowledge) for answer in (one, other)]
    return [
        Difference(kind="statement", words=f"Said only in {_quoted(name)}: {words}.", pair=None)
        for here, there, name in ((said[0], said[1], left), (said[1], said[0], right))
        for words in here
        if words not in there
    ]


def _edge(answer: Answer, edge: Edge) -> DirectedEdge:
    return next(each for each in answer.edges if (each.source, each.target) == edge)


def _facts(answer: Answer, edge: Edge) -> str:
    found = _edge(answer, edge)
    decided = decided_by(answer, *edge)
    if decided is None:
        return f"direction {found.direction}, {found.direction_probability:.2f}"
    return decided if decided == "required" else f"direction {decided}"


def _adjacency(answer: Answer, edge: Edge) -> str:
    """How probably the two are adjacent, in an answer that may lack one of them."""
    if not set(edge) <= set(answer.names):
        return "no such variable"
    j, k = (answer.index_of(name) for name in edge)
    return f"adjacent with {min(float(answer.skeleton_probabilities[j, k]), 1.0):.2f}"


def _arrow(edge: Iterable[str]) -> str:
    return " → ".join(edge)


def _quoted(name: str) -> str:
    return f"“{name}”"
