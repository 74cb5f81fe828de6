"""Questions about two variables: the edge between them, the data behind it, and whether one causes the other."""

from __future__ import annotations

from collections import Counter, deque

import numpy as np
import torch
from numpy.typing import NDArray

from causal_arrow.discovery.answer import Answer, direction_certainty
from causal_arrow.discovery.uncertainty import adjustment_sets, ancestor_frequencies
from causal_arrow.errors import ConfigurationError
from causal_arrow.tables.table import Table
from causal_arrow.web.messages import AdjustmentSet, Axis, CausalPath, CausalQuestion, EdgeDetails, Plot

MOST_POINTS = 500
DRAWN_GRAPHS = 500
MOST_LISTED = 5
SEED = 0

Bools = NDArray[np.bool_]


def probability_words(probability: float) -> str:
    """A probability as people say it."""
    for least, words in ((0.99, "Almost certainly"), (0.9, "Very probably"), (0.7, "Probably"), (0.5, "Perhaps")):
        if probability >= least:
            return words
    return "Probably not" if probability >= 0.1 else "Almost certainly not"


def _two(answer: Answer, first: str, second: str) -> tuple[int, int]:
    places = answer.place_of(first), answer.place_of(second)
    if places[0] == places[1]:
        raise ConfigurationError(f"Choose two different variables: {first!r} was chosen twice.")
    return places


# The edge


def edge_details(answer: Answer, table: Table, source: str, target: str) -> EdgeDetails:
    """How probable the edge is in both directions, in words, and the data of the two variables."""
    j, k = _two(answer, source, target)
    forward, backward = (min(max(float(answer.edge_probabilities[pair]), 0.0), 1.0) for pair in ((j, k), (k, j)))
    adjacent = min(forward + backward, 1.0)
    words = f"Are {source} and {target} adjacent? {probability_words(adjacent)} ({adjacent:.2f})."
    if adjacent > 0:
        likely = (source, target) if forward >= backward else (target, source)
        share = max(forward, backward) / (forward + backward)
        words += f" If so, the direction {likely[0]} → {likely[1]} is {direction_certainty(share)} ({share:.2f})."
    return EdgeDetails(
        source=source,
        target=target,
        words=words,
        sentences=_evidence(answer, table, j, k),
        probability=forward,
        reversed_probability=backward,
        no_edge_probability=1 - adjacent,
        in_graph=bool(answer.adjacency[j, k]),
        plot=plot_of(table, source, target),
    )


def _evidence(answer: Answer, table: Table, j: int, k: int) -> list[str]:
    """What knowledge, the equivalence class and the data say about the edge."""
    source, target = answer.names[j], answer.names[k]
    sentences = []
    for first, second in ((j, k), (k, j)):
        arrow = f"{answer.names[first]} → {answer.names[second]}"
        if answer.constraints.required[first, second]:
            sentences.append(f"You require {arrow}.")
        if answer.constraints.forbidden[first, second]:
            sentences.append(f"Your knowledge rules out {arrow}.")
    if answer.adjacency[j, k]:
        sentences.append(
            "Every graph with the same independences has this direction."
            if not answer.cpdag[k, j]
            else "Independences alone cannot tell this direction: it rests on the shape of the data."
        )
    both = table.observed[:, [table.names.index(source), table.names.index(target)]].all(axis=1)
    pair = [_ranks(table.values[both, table.names.index(name)]) for name in (source, target)]
    if both.sum() > 2 and all(ranks.std() > 0 for ranks in pair):
        correlation = float(np.corrcoef(pair[0], pair[1])[0, 1])
        sentences.append(f"Rank correlation of the two: {correlation:.2f}.".replace("-", "−"))
    return sentences


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    from scipy.stats import rankdata

    return np.asarray(rankdata(values), dtype=np.float64)


def plot_of(table: Table, x: str, y: str) -> Plot:
    """The observations of two variables, or counts of their levels."""
    across, up = (table.columns[table.names.index(name)] for name in (x, y))
    values = table.values[:, [table.names.index(x), table.names.index(y)]]
    values = values[~np.isnan(values).any(axis=1)]
    counts = None
    if across.levels and up.levels:
        grid = np.zeros((len(up.levels), len(across.levels)), dtype=int)
        np.add.at(grid, (values[:, 1].astype(int), values[:, 0].astype(int)), 1)
        counts = grid.tolist()
    chosen = values if counts is None else values[:0]
    if len(chosen) > MOST_POINTS:
        random = np.random.default_rng(SEED)
        chosen = chosen[np.sort(random.choice(len(chosen), MOST_POINTS, replace=False))]
    return Plot(
        x=Axis(name=x, levels=list(across.levels)),
        y=Axis(name=y, levels=list(up.levels)),
        points=chosen.tolist(),
        counts=counts,
        shown=len(chosen),
        observations=len(values),
    )


# Cause and effect


def causal_question(answer: Answer, cause: str, effect: str) -> CausalQuestion:
    """The share of graphs drawn from the distribution in which one variable causes the other, and how."""
    j, k = _two(answer, cause, effect)
    graphs = answer.sample(DRAWN_GRAPHS, torch.Generator().manual_seed(SEED)).graphs.astype(bool)
    causes = ancestor_frequencies(graphs)
    ways = Counter(way for graph in graphs if (way := shortest_path(graph, j, k)) is not None)
    sets = adjustment_sets(graphs, j, k)
    effective = sum(count for members, count in sets.items() if members is not None)
    share = float(causes[j, k])
    return CausalQuestion(
        cause=cause,
        effect=effect,
        words=f"Does {cause} cause {effect}, directly or through others? {probability_words(share)} ({share:.2f}).",
        probability=share,
        reversed_probability=float(causes[k, j]),
        graphs=len(graphs),
        paths=[
            CausalPath(variables=[answer.names[place] for place in way], share=count / len(graphs))
            for way, count in ways.most_common(MOST_LISTED)
        ],
        adjustment_sets=[
            AdjustmentSet(variables=[answer.names[place] for place in members], share=count / effective)
            for members, count in sets.most_common(MOST_LISTED + 1)
            if members is not None
        ][:MOST_LISTED],
    )


def shortest_path(graph: Bools, start: int, goal: int) -> tuple[int, ...] | None:
    """A directed path with as few edges as possible, both ends included; None where there is none."""
    came_from = {start: start}
    line = deque([start])
    while line:
        here = line.popleft()
        if here == goal:
            path = [goal]
            while path[-1] != start:
                path.append(came_from[path[-1]])
            return tuple(reversed(path))
        for there in np.flatnonzero(graph[here]).tolist():
            if there not in came_from:
                came_from[there] = here
                line.append(there)
    return None
