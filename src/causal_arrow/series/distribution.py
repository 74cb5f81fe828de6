"""From a network's answer for a window to a distribution over stationary window graphs, and to one graph or many.

In a window each pair of variables at one lag occurs several times, and has one truth wherever it stands: at lag 1 it
joins slice 1 to slice 0, slice 2 to slice 1, and so on. Log-odds are combined with weight on the newest occurrence,
because older slices lack causes of their own. Causes come before effects in time, so an edge between slices has one
possible direction, and only lag 0 needs an order.
"""

# P variables, L lags, C variables of the context, W lags of the window (W ≥ L), Q columns of the window

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from causal_arrow.graphs.decoding import check_threshold, decode, edge_probabilities, expected_f1, sample_graphs
from causal_arrow.graphs.graph_distribution import CERTAIN, GraphDistribution, sigmoid
from causal_arrow.graphs.knowledge import Constraints
from causal_arrow.series.window import Window

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

FURTHER_SLICES = 1
"""The window reaches so many steps further back than edges do, so that the oldest causes have causes of their own."""
WEIGHT_OF_OLDER = 0.3
"""Of each occurrence of a pair relative to the next newer one."""
POOLING = 1.0
"""How far log-odds move with the share of edges among pairs of the same lag (a variable's own past being apart)."""


@dataclass(frozen=True, eq=False)
class WindowKnowledge:
    """What is known of edges at lag 0, from past to present, and from the context; None where nothing is."""

    now: Constraints | None = None
    required: Bools | None = None  # (L, P, P)
    forbidden: Bools | None = None  # (L, P, P)
    context_required: Bools | None = None  # (C, P)
    context_forbidden: Bools | None = None  # (C, P)

    def on(self, past: Floats) -> Floats:
        """Log-odds of edges from past to present under the knowledge.  (L, P, P)"""
        return _decided(past, self.required, self.forbidden)

    def requires(self, lag: int, j: int, k: int) -> bool:
        """Whether the edge from j to k at a lag is known to be there."""
        if lag:
            return self.required is not None and bool(self.required[lag - 1, j, k])
        return self.now is not None and bool(self.now.required[j, k])

    def on_context(self, context: Floats) -> Floats:
        """Log-odds of edges from the context under the knowledge.  (C, P)"""
        return _decided(context, self.context_required, self.context_forbidden)


def _decided(logits: Floats, required: Bools | None, forbidden: Bools | None) -> Floats:
    """Log-odds that are infinite where an edge is known to be there, or not to be there."""
    if forbidden is not None:
        logits = np.where(forbidden, -np.inf, logits)
    return logits if required is None else np.where(required, np.inf, logits)


@dataclass(frozen=True, eq=False)
class WindowDistribution:
    """Independent edges from past and context to the present, and a distribution over DAGs at lag 0."""

    past: Floats  # (L, P, P) log-odds that variable j, `lag` steps before, is a cause of k: [lag - 1, j, k]
    now: GraphDistribution  # of the variables at one time
    context: Floats  # (C, P) log-odds that a variable of the context, the last of which is time, is a cause of k

    @property
    def lags(self) -> int:
        """L"""
        return len(self.past)

    def without_now(self) -> WindowDistribution:
        """The same without edges at lag 0."""
        apart = np.full_like(np.asarray(self.now.skeleton_logits, dtype=np.float64), -CERTAIN)
        return replace(self, now=replace(self.now, skeleton_logits=apart))

    def probabilities(self, known: WindowKnowledge | None = None) -> Floats:
        """Probability of each edge, [lag, j, k].  (L + 1, P, P)"""
        known = known or WindowKnowledge()
        return np.concatenate([edge_probabilities(self.now, known.now)[None], sigmoid(known.on(self.past))])

    def graph(self, known: WindowKnowledge | None = None, *, rule: str = "map", threshold: float = 0.5) -> Bools:
        """One stationary graph, acyclic in the window: [lag, j, k].  (L + 1, P, P)

        Rules as in `graphs.decoding`; "f1" weighs the edges of all lags together.
        """
        known = known or WindowKnowledge()
        check_threshold(threshold)
        now = decode(self.now, known.now, rule="map" if rule == "f1" else rule, threshold=threshold)
        past = known.on(self.past) > np.log(threshold / (1 - threshold))
        if rule != "f1":
            return np.concatenate([now.adjacency[None], past])
        return _best_f1(self.probabilities(known), now.order)

    def sample(self, count: int, generator: np.random.Generator, known: WindowKnowledge | None = None) -> Bools:
        """Graphs drawn independently, [graph, lag, j, k].  (count, L + 1, P, P)"""
        known = known or WindowKnowledge()
        now = sample_graphs(self.now, known.now, count, generator).graphs
        past = generator.random((count, *self.past.shape)) < sigmoid(known.on(self.past))
        return np.concatenate([now[:, None], past], axis=1)


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

    Causes act with few delays. So the share of edges among pairs of a kind (own past or not, by lag), against that
    among all pairs, is evidence about each of them.
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
