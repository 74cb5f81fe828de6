"""Two answers side by side: drawn in the same places, and how they differ, in words."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Literal

from causal_arrow.discovery.answer import Answer, DirectedEdge
from causal_arrow.discovery.summary import decided_by, title
from causal_arrow.errors import ConfigurationError
from causal_arrow.graphs.metrics import edge_differences
from causal_arrow.text import counted, listed, reason
from causal_arrow.web.messages import ComparedAnswer, Comparison, Difference
from causal_arrow.web.sessions import Session
from causal_arrow.web.views import graph_of, places_of, statements

NOW = "now"
NETWORK = "network"
CLEARLY = 0.2
"""A change of an edge's probability that is worth a line."""

Edge = tuple[str, str]
Kind = Literal["only_left", "only_right", "reversed", "probability", "variable", "statement", "hidden_cause"]


def answer_called(session: Session, which: str) -> tuple[str, Answer]:
    """The name and the answer that is meant: as it stands, as the network gave it, or one that was kept."""
    now = session.current().answer
    if which == NOW:
        return "the current graph", now
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
            f"Expected a graph.json as this page downloads it, got a file that is not JSON ({reason(error)})."
        ) from error
    return Answer.from_dict(written)


def comparison(left: tuple[str, Answer], right: tuple[str, Answer]) -> Comparison:
    """The two answers, one layout for both, and their differences."""
    (left_name, one), (right_name, other) = left, right
    names = [*one.order, *(name for name in other.order if name not in one.names)]
    differences = list(_differences(one, other, f"“{left_name}”", f"“{right_name}”"))
    return Comparison(
        left=ComparedAnswer(name=left_name, words=_words(one), graph=graph_of(one)),
        right=ComparedAnswer(name=right_name, words=_words(other), graph=graph_of(other)),
        places=places_of(names, sorted(_edges(one) | _edges(other))),
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
    kinds = {"only_left": "only on the left", "only_right": "only on the right", "reversed": "reversed"}
    counts = {kind: sum(each.kind == kind for each in differences) for kind in kinds}
    parts = [f"{counts[kind]} {words}" for kind, words in kinds.items() if counts[kind]]
    if hidden := sum(each.kind == "hidden_cause" for each in differences):
        parts.append(f"{counted(hidden, 'hidden cause')} in one of the two")
    return f"{counted(same, 'edge')} in both{''.join(f', {part}' for part in parts)}."


def _edges(answer: Answer) -> set[Edge]:
    return {(edge.source, edge.target) for edge in answer.edges}


# Differences


def _differences(one: Answer, other: Answer, left: str, right: str) -> Iterator[Difference]:
    """In words: variables, edges, hidden causes and knowledge that only one of them has, and edges that changed."""

    def differ(kind: Kind, words: str, pair: Iterable[str] | None = None) -> Difference:
        return Difference(kind=kind, words=words, pair=None if pair is None else list(pair))

    sides = ((one, other, left), (other, one, right))
    for here, there, name in sides:
        if alone := [variable for variable in here.names if variable not in there.names]:
            yield differ("variable", f"Only in {name}: {listed(alone, 12)}.")
    kinds = {column.name: column.kind for column in one.columns}
    for column in other.columns:
        if (kind := kinds.get(column.name, column.kind)) != column.kind:
            yield differ("variable", f"{column.name} is read as {kind} in {left}, as {column.kind} in {right}.")

    found = edge_differences(_edges(one), _edges(other))
    alone_in: tuple[tuple[Kind, str], ...] = (("only_left", "missing"), ("only_right", "extra"))
    for (kind_of, key), (here, there, name) in zip(alone_in, sides, strict=True):
        for edge in found[key]:
            words = f"{_adjacency(here, edge)} there, {_adjacency(there, edge)} in the other"
            yield differ(kind_of, f"{_arrow(edge)} only in {name}: {words}.", edge)
    for edge in found["reversed"]:
        turned = edge[::-1]
        before, after = f"{_arrow(edge)} in {left} ({_facts(one, edge)})", f"{right} ({_facts(other, turned)})"
        yield differ("reversed", f"{before} is {_arrow(turned)} in {after}.", edge)
    for edge in sorted(_edges(one) & _edges(other)):
        was, now = (_edge(answer, edge).probability for answer in (one, other))
        if abs(was - now) >= CLEARLY:
            words = f"{_arrow(edge)} in both, with probability {was:.2f} in {left} and {now:.2f} in {right}."
            yield differ("probability", words, edge)

    pairs = [{frozenset((each.first, each.second)) for each in answer.hidden_causes} for answer in (one, other)]
    for only, name in ((pairs[0] - pairs[1], left), (pairs[1] - pairs[0], right)):
        for pair in sorted(map(sorted, only)):
            yield differ("hidden_cause", f"A hidden cause of {' and '.join(pair)} only in {name}.", pair)
    for here, there, name in sides:
        said = set(statements(there.knowledge))
        for words in (each for each in statements(here.knowledge) if each not in said):
            yield differ("statement", f"Known only in {name}: {words}.")


def _edge(answer: Answer, edge: Edge) -> DirectedEdge:
    return next(each for each in answer.edges if (each.source, each.target) == edge)


def _facts(answer: Answer, edge: Edge) -> str:
    found = _edge(answer, edge)
    decided = decided_by(answer, *edge)
    if decided is None:
        return f"direction {found.direction}, {found.direction_probability:.2f}"
    return decided if decided == "required" else f"direction {decided}"


def _adjacency(answer: Answer, edge: Edge) -> str:
    """Probability that the two are adjacent, in an answer that may lack one of them."""
    if not set(edge) <= set(answer.names):
        return "no such variable"
    j, k = (answer.index_of(name) for name in edge)
    return f"adjacent with {min(float(answer.skeleton_probabilities[j, k]), 1.0):.2f}"


def _arrow(edge: Iterable[str]) -> str:
    return " → ".join(edge)
