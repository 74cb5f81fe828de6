"""Distributions over stationary window graphs, and knowledge about them in the words of time.

In a window each pair of variables at one lag occurs several times, and has one truth wherever it stands: at lag 1 it
joins slice 1 to slice 0, slice 2 to slice 1, and so on. Log-odds are combined with weight on the newest occurrence,
because older slices lack causes of their own. Causes come before effects in time, so an edge between slices has one
possible direction, and only lag 0 needs an order.

In knowledge, "x -> y at lag 0" and "x -> y except at lag 1" name lags. An edge without a lag stands for all lags, which
a required edge cannot: it needs one. Other statements are about variables. A variable's own past is free unless an edge
names it, or the variable is randomized.
"""

# P variables, L lags, C variables of the context, W lags of the window (W ≥ L), Q columns of the window

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from causal_arrow.errors import KnowledgeError
from causal_arrow.graphs.decoding import check_threshold, decode, edge_probabilities, expected_f1, sample_graphs
from causal_arrow.graphs.graph_distribution import CERTAIN, GraphDistribution, sigmoid
from causal_arrow.graphs.knowledge import ANY, Constraints, Edge, Knowledge
from causal_arrow.series.window import Window
from causal_arrow.text import closest

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

FURTHER_SLICES = 1
"""The window reaches so many steps further back than edges do, so that the oldest causes have causes of their own."""
WEIGHT_OF_OLDER = 0.3  # weight of each occurrence of a pair relative to the next newer one
POOLING = 1.0  # weight of the share of edges among pairs of the same lag (own pasts apart) in the log-odds of each pair
WHEN = re.compile(r"(?P<name>.+?)(?<!\s)\s+(?P<how>except at|at)\s+lags?\s+(?P<lags>\d[\d\s,to–-]*(?:and\s+\d+)?)")
SPAN = re.compile(r"(\d+)\s*(?:to|–|-)\s*(\d+)")


@dataclass(frozen=True, eq=False)
class WindowKnowledge:
    """Knowledge about edges at lag 0, `now`, and about all edges from variables and the context by lag."""

    now: Constraints
    required: Bools  # (L + 1, P + C, P)
    forbidden: Bools  # (L + 1, P + C, P)


@dataclass(frozen=True, eq=False)
class WindowDistribution:
    """Independent edges from past and context to the present, and a distribution over DAGs at lag 0."""

    past: Floats  # (L, P, P) log-odds that variable j, `lag` steps before, is a cause of k: [lag - 1, j, k]
    now: GraphDistribution  # of the variables at one time
    context: Floats  # (C, P) log-odds that a variable of the context, the last of which is time, is a cause of k
    constraints: Constraints | None = None  # knowledge about lag 0; that about other edges is in their log-odds

    @property
    def lags(self) -> int:
        """L"""
        return len(self.past)

    def without_now(self) -> WindowDistribution:
        """The same without edges at lag 0."""
        apart = np.full_like(np.asarray(self.now.skeleton_logits, dtype=np.float64), -CERTAIN)
        return replace(self, now=replace(self.now, skeleton_logits=apart))

    def under(self, known: WindowKnowledge) -> WindowDistribution:
        """The same given knowledge."""

        def decided(logits: Floats, where: Any) -> Floats:
            return np.where(known.required[where], np.inf, np.where(known.forbidden[where], -np.inf, logits))

        variables = self.past.shape[-1]
        past, context = decided(self.past, np.s_[1:, :variables]), decided(self.context, np.s_[0, variables:])
        return replace(self, past=past, context=context, constraints=known.now)

    def probabilities(self) -> Floats:
        """Probability of each edge, [lag, j, k].  (L + 1, P, P)"""
        return np.concatenate([edge_probabilities(self.now, self.constraints)[None], sigmoid(self.past)])

    def decoded(self, rule: str = "map", threshold: float = 0.5) -> tuple[Bools, NDArray[np.intp]]:
        """One stationary graph, [lag, j, k], and its order at lag 0; "f1" weighs all lags.  (L + 1, P, P), (P,)"""
        check_threshold(threshold)
        now = decode(self.now, self.constraints, decode="map" if rule == "f1" else rule, threshold=threshold)
        if rule == "f1":
            return _best_f1(self.probabilities(), now.order), now.order
        return np.concatenate([now.adjacency[None], self.past > np.log(threshold / (1 - threshold))]), now.order

    def sample(self, count: int, generator: np.random.Generator) -> Bools:
        """Graphs drawn independently, [graph, lag, j, k].  (count, L + 1, P, P)"""
        now = sample_graphs(self.now, self.constraints, count, generator).graphs
        drawn = generator.random((count, *self.past.shape)) < sigmoid(self.past)
        return np.concatenate([now[:, None], drawn], axis=1)


def tied(found: GraphDistribution, rows: Window, lags: int) -> WindowDistribution:
    """The distribution over window graphs of L lags from what a network finds in a window's columns."""
    variables = len(rows.lagged)
    skeleton = np.asarray(found.skeleton_logits, dtype=np.float64)
    slices = variables * (rows.lags + 1)
    # [older slice, j, newer slice, k]
    pairs = skeleton[:slices, :slices].reshape(rows.lags + 1, variables, rows.lags + 1, variables)
    logits = np.stack([_combined(pairs, lag) for lag in range(lags + 1)])
    hidden, newest = found.confounding_logits, slice(0, variables)
    now = GraphDistribution(logits[0], found.order_scores[newest], None if hidden is None else hidden[newest, newest])
    return WindowDistribution(pooled(logits[1:]), now, skeleton[slices:, newest])


def _combined(pairs: Floats, lag: int) -> Floats:
    """Log-odds of each pair at a lag: a mean over its occurrences.  (P, P)"""
    occurrences = np.stack([pairs[slice_ + lag, :, slice_] for slice_ in range(len(pairs) - lag)])
    weights = WEIGHT_OF_OLDER ** np.arange(len(occurrences))
    return np.asarray(np.tensordot(weights / weights.sum(), occurrences, 1))


def pooled(past: Floats) -> Floats:
    """Log-odds given how many edges there are at each lag.  (L, P, P)

    Causes act with few delays: the share of edges among pairs of a kind (own past or not, by lag), against that among
    all pairs, is evidence about each of them.
    """
    own = np.eye(past.shape[1], dtype=bool)
    probabilities = sigmoid(past)
    overall = _log_odds_of_share(probabilities)
    result: Floats = past.copy()
    for lag in range(len(past)):
        for kind in (own, ~own):
            if kind.any():
                result[lag][kind] += POOLING * (_log_odds_of_share(probabilities[lag][kind]) - overall)
    return result


def _log_odds_of_share(probabilities: Floats) -> float:
    """Log-odds of the share of edges, with half an edge among two and a half pairs added."""
    edges, pairs = float(probabilities.sum()) + 0.5, probabilities.size + 2.5
    return float(np.log(edges / (pairs - edges)))


def _best_f1(probabilities: Floats, order: NDArray[np.intp]) -> Bools:
    """The most probable edges along an order at lag 0, as many as maximize the expected F1.  (L + 1, P, P)"""
    lags, variables = len(probabilities) - 1, probabilities.shape[1]
    slices = variables * (lags + 1)
    # One large matrix in which lagged edges lead from their own copies of the variables to the present.
    whole = np.zeros((slices, slices))
    whole[:, :variables] = probabilities.reshape(slices, variables)
    position = np.empty(variables, dtype=np.intp)
    position[order] = np.arange(variables)
    allowed = np.ones_like(probabilities, dtype=bool)
    allowed[0] = position[:, None] < position
    candidates = np.argwhere(allowed.reshape(slices, variables))
    candidates = candidates[np.argsort(-whole[tuple(candidates.T)], kind="stable")]
    best = int(expected_f1(whole, candidates).argmax())
    graph = np.zeros((slices, variables), dtype=bool)
    graph[tuple(candidates[:best].T)] = True
    return graph.reshape(probabilities.shape)


def summary(graph: Bools) -> Bools:
    """[j, k]: j acts on k at some lag; a variable's own past does not count.  (..., P, P)"""
    return np.asarray(graph.any(axis=-3) & ~np.eye(graph.shape[-1], dtype=bool))


# Knowledge


def window_knowledge(
    known: Knowledge,
    names: Sequence[str],
    context: Sequence[str],
    lags: int,
    *,
    always_set: Sequence[str] = (),
) -> WindowKnowledge:
    """The knowledge as matrices for P variables, C variables of the context, and L lags."""
    if known.beliefs:
        raise KnowledgeError("Beliefs are about tables, not yet about time series: leave them out.")
    count, everything = len(names), [*names, *context]
    index = {name: number for number, name in enumerate(everything)}
    own = np.arange(count)
    required, forbidden, allowed = np.zeros((3, lags + 1, len(everything), count), dtype=bool)
    for edge in known.required:
        chosen, cause, effect = _where(edge, index, lags, count)
        if edge[1] in context:
            raise KnowledgeError(
                f"The required edge '{edge[0]} -> {edge[1]}' leads to {edge[1]!r}, which has no causes."
            )
        if len(chosen) != 1 and edge[0] not in context:
            example = f"{edge[0]} -> {WHEN.sub('', edge[1]) or edge[1]} at lag 1"
            raise KnowledgeError(f"The required edge '{edge[0]} -> {edge[1]}' needs one lag, as in '{example}'.")
        required[np.ix_(chosen[:1], cause, effect)] = True
    for edge in known.forbidden:
        forbidden[np.ix_(*_where(edge, index, lags, count))] = True
    for edge in known.search_space:
        allowed[np.ix_(*_where(edge, index, lags, count))] = True
    if known.search_space:
        allowed[1:, own, own] = True
        forbidden |= ~allowed
    about_variables = replace_edges(known).compile(everything).forbidden[:, :count].copy()
    about_variables[own, own] = False
    forbidden |= about_variables
    forbidden[:, :, [index[name] for name in (*always_set, *known.randomized) if name in names]] = True
    forbidden[0, own, own] = False
    if (clash := np.argwhere(required & forbidden)).size:
        lag, j, k = clash[0].tolist()
        raise KnowledgeError(
            f"The edge '{everything[j]} -> {names[k]} at lag {lag}' is required, but other knowledge forbids it: give "
            "up one of them."
        )
    now = replace_edges(
        known,
        required=[(names[j], names[k]) for j, k in np.argwhere(required[0, :count])],
        forbidden=[(names[j], names[k]) for j, k in np.argwhere(forbidden[0, :count])],
    ).compile(everything)
    return WindowKnowledge(now.rearranged(np.arange(count)).without_hidden_causes_of(always_set), required, forbidden)


def replace_edges(known: Knowledge, required: Iterable[Edge] = (), forbidden: Iterable[Edge] = ()) -> Knowledge:
    """The knowledge about variables, with these edges in place of those that name lags."""
    return replace(known, required=tuple(required), forbidden=tuple(forbidden), search_space=())


def _where(edge: Edge, index: dict[str, int], lags: int, variables: int) -> tuple[list[int], list[int], list[int]]:
    """The lags, causes and effects that an edge stands for."""
    effect, chosen = _with_lags(edge, index, lags)
    return chosen, _members(edge[0], index), [each for each in _members(effect, index) if each < variables]


def _with_lags(edge: Edge, index: dict[str, int], lags: int) -> tuple[str, list[int]]:
    """The name of the effect, and the lags that follow it in words; all of them without words."""
    found = WHEN.fullmatch(edge[1])
    if edge[1] in index or found is None:
        return edge[1], list(range(lags + 1))
    named = {int(number) for number in re.findall(r"\d+", found["lags"])}
    for low, high in SPAN.findall(found["lags"]):
        named |= set(range(int(low), int(high) + 1))
    if beyond := sorted(named - set(range(lags + 1))):
        raise KnowledgeError(
            f"The knowledge '{edge[0]} -> {edge[1]}' names lag {beyond[0]}, but only lags 0 to {lags} are searched."
        )
    if found["how"] != "at":
        named = set(range(lags + 1)) - named
    return found["name"], sorted(named)


def _members(name: str, index: dict[str, int]) -> list[int]:
    """The variable of this name, or all of them."""
    if name == ANY and ANY not in index:
        return list(index.values())
    if name not in index:
        near = closest(name, index)
        hint = f" (did you mean {near!r}?)" if near is not None else ""
        raise KnowledgeError(f"Knowledge names a variable that is not in the table: {name!r}{hint}.")
    return [index[name]]
