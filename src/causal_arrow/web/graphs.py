"""The graph of an answer as the page draws it, what was known, and two answers side by side."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict

import numpy as np

from causal_arrow.discovery.answer import Answer, DirectedEdge
from causal_arrow.discovery.pictures.scene import shortened
from causal_arrow.discovery.summary import decided_by, remarks, suggestion, suggestion_sentence, title
from causal_arrow.errors import ConfigurationError
from causal_arrow.graphs.knowledge import Knowledge
from causal_arrow.graphs.layout import layered_layout
from causal_arrow.graphs.metrics import edge_differences
from causal_arrow.text import counted, first_few, listed, reason, visible
from causal_arrow.web._sessions import READ_OFF, Session, read_off
from causal_arrow.web._wording import PAGE
from causal_arrow.web.messages import Argument, Facts, KnowledgeStatements


def graph_of(answer: Answer) -> Facts:
    """The graph of an answer, with the argument that led to it."""
    statements = answer.knowledge.to_dict()
    statements.pop("search_space", None)
    # Knowledge that column names suggest and the graph contradicts; the page adds it in one click.
    remedy = suggestion(answer)
    return {
        "argument": Argument(knowledge=KnowledgeStatements(**statements), **read_off(answer)).model_dump(),
        "suggestion": remedy
        and {"words": suggestion_sentence(answer, {}), "names": list(remedy.columns), "kind": remedy.action},
        "variables": list(answer.names),
        "edges": [
            {
                **asdict(edge),
                "adjacency_probability": min(edge.adjacency_probability, 1.0),  # rounding may leave one above
                "direction": edge.direction,
                "decided": decided_by(answer, edge.source, edge.target),  # by what other than the network
            }
            for edge in answer.edges
        ],
        "hidden_causes": [
            {"variables": [pair.first, pair.second], "probability": pair.probability} for pair in answer.hidden_causes
        ],
        "judges_hidden_causes": answer.confounding_probabilities is not None,
        "order": list(answer.order),
        "remarks": [
            *(words for words in remarks(answer, PAGE) if words != suggestion_sentence(answer, PAGE)),
            *(() if answer.decoding.exact else answer.worded_warnings(PAGE)[-1:]),
        ],
        "version": 0,
    }


def argued(answer: Answer, argument: Argument) -> Answer:
    """The answer under another argument; KnowledgeError or ConfigurationError where that does not hold together."""
    knowledge = Knowledge.from_dict(argument.knowledge.model_dump())
    return answer.refine(knowledge=knowledge, **argument.model_dump(include=set(READ_OFF)))


# Pixels of the page's font, wide letters included.
LETTER_WIDTH, LINE_HEIGHT = 7.4, 17.0
PADDING = (20.0, 14.0)
MAX_LETTERS, MAX_LINES = 16, 2
SPACINGS = ((18.0, 52.0, 1.0), (30.0, 26.0, 1.5))
"""Gaps in and between layers, and how much wider than the canvas to aim at: long paths leave a layout too tall."""
MAX_TRIED = 100
CANVAS = (960.0, 600.0)
MAX_ZOOM = 1.6  # as in graph.js


def places_of(names: Sequence[str], edges: Collection[Sequence[str]], canvas: tuple[float, float] = CANVAS) -> Facts:
    """The layout of our pictures, for boxes in the page's font, as large as fits a canvas (width, height).

    Edges against the order of the names run upwards.
    """
    if not names:
        return {"nodes": [], "routes": []}
    index = {name: number for number, name in enumerate(names)}
    downwards = np.zeros((len(names), len(names)), dtype=bool)
    for source, target in edges:
        downwards[tuple(sorted((index[source], index[target])))] = True
    labels = [shortened(" ".join(visible(name).split()), MAX_LINES, MAX_LETTERS) for name in names]
    widths = [max(map(len, label.split("\n"))) * LETTER_WIDTH + PADDING[0] for label in labels]
    height = max((label.count("\n") + 1 for label in labels), default=1) * LINE_HEIGHT + PADDING[1]
    aspect = canvas[0] / canvas[1]
    layouts = [
        layered_layout(downwards, widths, height, gap=gap, layer_gap=layer_gap, aspect=stretch * aspect)
        for gap, layer_gap, stretch in (SPACINGS if len(names) <= MAX_TRIED else SPACINGS[-1:])
    ]
    layout = max(layouts, key=lambda each: min(canvas[0] / each.width, canvas[1] / each.height, MAX_ZOOM))
    routes = {
        (names[each.source], names[each.target]): [[float(x), float(layout.height - y)] for x, y in each.points]
        for each in layout.routes
    }
    return {
        "nodes": [
            {
                "name": name,
                "label": label,
                "x": float(x),
                "y": float(layout.height - y),
                "width": width,
                "height": height,
            }
            for name, label, width, (x, y) in zip(names, labels, widths, layout.centers, strict=True)
        ],
        "routes": [
            {"source": source, "target": target, "points": routes.get((source, target)) or routes[target, source][::-1]}
            for source, target in edges
        ],
    }


STATEMENTS = (
    ("required", "{} is required", " → "),
    ("forbidden", "{} is forbidden", " → "),
    ("roots", "nothing causes {}", ""),
    ("leaves", "{} causes nothing", ""),
    ("randomized", "{} was randomized", ""),
    ("no_hidden_cause", "{} share no hidden cause", " and "),
)
"""The kind of each statement, its words, and what joins two names in it."""

MAX_NAMED = 12  # edges of a search space that its statement names


def statements(knowledge: Knowledge) -> list[str]:
    """Each statement as a sentence without its full stop; tiers are one statement, and so is a search space."""
    words = [
        template.format(entry if isinstance(entry, str) else joint.join(entry))
        for kind, template, joint in STATEMENTS
        for entry in getattr(knowledge, kind)
    ]
    if knowledge.tiers:
        words.append("; ".join(f"tier {index}: {', '.join(tier)}" for index, tier in enumerate(knowledge.tiers, 1)))
    words += [f"believed: {belief}" for belief in knowledge.beliefs]
    if knowledge.search_space:
        words.append(
            f"only these edges may exist: {first_few(list(map(' → '.join, knowledge.search_space)), MAX_NAMED)}"
        )
    return words


# Two answers side by side

NOW = "now"
NETWORK = "network"
CLEARLY = 0.2  # a change of an edge's probability that is worth a line

Edge = tuple[str, str]


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


def comparison(left: tuple[str, Answer], right: tuple[str, Answer]) -> Facts:
    """The two answers, one layout for both, and their differences."""
    (left_name, one), (right_name, other) = left, right
    names = [*one.order, *(name for name in other.order if name not in one.names)]
    differences = list(_differences(one, other, f"“{left_name}”", f"“{right_name}”"))
    return {
        "left": {"name": left_name, "words": _words(one), "graph": graph_of(one)},
        "right": {"name": right_name, "words": _words(other), "graph": graph_of(other)},
        "places": places_of(names, sorted(_edges(one) | _edges(other))),
        "words": _summary(one, other, differences),
        "differences": differences,
    }


def _words(answer: Answer) -> str:
    model = f", read by {answer.model}" if answer.model else ""
    return f"{title(answer)}, {counted(len(answer.edges), 'edge')}{model}"


def _summary(one: Answer, other: Answer, differences: list[Facts]) -> str:
    same = len(_edges(one) & _edges(other))
    if not differences:
        return f"No difference: both have the same {counted(same, 'edge')}."
    kinds = {"only_left": "only on the left", "only_right": "only on the right", "reversed": "reversed"}
    counts = {kind: sum(each["kind"] == kind for each in differences) for kind in kinds}
    parts = [f"{counts[kind]} {words}" for kind, words in kinds.items() if counts[kind]]
    if hidden := sum(each["kind"] == "hidden_cause" for each in differences):
        parts.append(f"{counted(hidden, 'hidden cause')} in one of the two")
    return f"{counted(same, 'edge')} in both{''.join(f', {part}' for part in parts)}."


def _edges(answer: Answer) -> set[Edge]:
    return {(edge.source, edge.target) for edge in answer.edges}


def _differences(one: Answer, other: Answer, left: str, right: str) -> Iterator[Facts]:
    """In words: variables, edges, hidden causes and knowledge that only one of them has, and edges that changed."""

    def differ(kind: str, words: str, pair: Iterable[str] | None = None) -> Facts:
        return {"kind": kind, "words": words, "pair": None if pair is None else list(pair)}

    sides = ((one, other, left), (other, one, right))
    for here, there, name in sides:
        if alone := [variable for variable in here.names if variable not in there.names]:
            yield differ("variable", f"Only in {name}: {listed(alone, 12)}.")
    kinds = {column.name: column.kind for column in one.columns}
    for column in other.columns:
        if (kind := kinds.get(column.name, column.kind)) != column.kind:
            yield differ("variable", f"{column.name} is read as {kind} in {left}, as {column.kind} in {right}.")

    found = edge_differences(_edges(one), _edges(other))
    for kind, key, (here, there, name) in zip(("only_left", "only_right"), ("missing", "extra"), sides, strict=True):
        for edge in found[key]:
            words = f"{_adjacency(here, edge)} there, {_adjacency(there, edge)} in the other"
            yield differ(kind, f"{_arrow(edge)} only in {name}: {words}.", edge)
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
