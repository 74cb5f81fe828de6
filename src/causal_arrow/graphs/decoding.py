"""From a distribution over graphs and knowledge to one graph or many, all of which obey the knowledge.

The network gives skeleton probabilities ν and order scores s once; everything here starts from those, so a change of
knowledge, decoder or threshold never means a new pass through the network.

What knowledge means for the distribution of section 2 of the paper: a forbidden edge j -> k does not fix the
order of j and k; it only makes the two not adjacent if j comes before k, which multiplies the probability by 1 − ν. A
required edge fixes both the adjacency and the order. Given the order the edges stay independent, so that all the work
is in the order (`_orders.py`). Forbidding a direction can therefore cost the adjacency itself (`vanished_adjacencies`).

Beliefs (`beliefs.py`) about a pair add their log-odds to the edge j -> k, which then also weigh the order, or to the
order itself: exact. Those about a whole variable or a path weigh drawn graphs: draws are exact, by rejection;
probabilities are the exact ones without these beliefs, moved by the difference that the weights make to always the same
draws; and the graph that is shown obeys those that are probably true after all.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from causal_arrow.errors import ConfigurationError, KnowledgeError
from causal_arrow.graphs._orders import (
    most_probable_order,
    moved_after,
    precedence_probabilities,
    rearranged_order,
    sample_orders,
)
from causal_arrow.graphs.beliefs import Belief, holds
from causal_arrow.graphs.dag import positions_in, skeleton_of
from causal_arrow.graphs.graph_distribution import GraphDistribution, sigmoid
from causal_arrow.graphs.knowledge import Constraints, unconstrained
from causal_arrow.text import shown

# P variables

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Decoding:
    """One graph that obeys the knowledge, a causal order its edges follow, and how it was found.

    The order has earlier tiers before later ones, roots early and leaves late, wherever the edges leave the choice.
    """

    adjacency: Bools  # (P, P)
    order: NDArray[np.intp]  # (P,) causes first
    exact: bool  # false where knowledge leaves too many orders to be certain that this is the most probable one
    decode: str = "map"
    threshold: float = 0.5


@dataclass(frozen=True, eq=False)
class DrawnGraphs:
    """Graphs drawn independently, all of which obey the knowledge."""

    graphs: Bools  # (count, P, P)
    exact: bool  # false where knowledge leaves too many orders to draw from exactly the model's distribution


def decode(
    distribution: GraphDistribution,
    constraints: Constraints | None = None,
    *,
    decode: str = "map",
    threshold: float = 0.5,
    rule: None = None,
) -> Decoding:
    """One graph from the distribution, along the most probable causal order that the knowledge allows.

    map   The most probable skeleton and order, as in the paper: edges with ν > `threshold`. A threshold other than 1/2
          stands for other prior odds of an edge, and the order is the best one for those odds.
    shd   Fewest expected mistakes, a reversed edge counting once: edges with ν(1 + q) > 1, where q is the probability
          of the direction shown.
    f1    Largest expected F1: as many of the most probable edges as maximize it, or none, where the true graph is more
          probably empty than any edges are worth (`expected_f1`).

    The last two keep the order of `map` and weigh edges by `edge_probabilities`. Without knowledge that makes them the
    best graphs for their aims.
    """
    if rule is not None:
        raise ConfigurationError(f"The argument `rule` is now called `decode`: decode={shown(rule)}.")
    if decode not in DECODERS:
        raise ConfigurationError(f"Unknown decoding rule {decode!r}: expected one of {', '.join(DECODERS)}.")
    check_threshold(threshold)
    if decode != "map" and threshold != 0.5:
        raise ConfigurationError(f"The rule {decode!r} sets its own threshold: leave it at 0.5, or use the rule 'map'.")
    logits, scores, known = _as_arrays(distribution, constraints)
    known = _following(logits, scores, known)
    evidence = logits - np.log(threshold / (1 - threshold))
    order, exact = most_probable_order(scores, _order_penalties(np.maximum(evidence, 0), known))
    position = positions_in(order)
    allowed = (position[:, None] < position[None, :]) & ~known.forbidden
    keep = evidence > 0 if decode == "map" else _KEEP[decode](edge_probabilities(distribution, known), allowed)
    adjacency = allowed & keep | known.required
    order = rearranged_order(order, adjacency | known.precedence, known.ranks)
    return Decoding(adjacency, order, exact, decode, threshold)


def check_threshold(value: Any, name: str = "a threshold") -> None:
    """ConfigurationError unless a threshold lies between 0 and 1."""
    if not isinstance(value, numbers.Real) or isinstance(value, bool) or not 0 < cast(float, value) < 1:
        raise ConfigurationError(f"Expected {name} between 0 and 1, got {shown(value)}.")


def sample_graphs(
    distribution: GraphDistribution,
    constraints: Constraints | None,
    count: int,
    generator: np.random.Generator,
    question: tuple[int, int] | None = None,
) -> DrawnGraphs:
    """Graphs from the distribution given the knowledge: drawn orders, then edges given each.  (count, P, P)

    A `question` is a treatment and an outcome: the outcome then takes a place after the treatment, and the order of the
    others is that without the question.
    """
    logits, scores, known = _as_arrays(distribution, constraints)
    drawn, exact, _ = _drawn_by_pairs(logits, scores, known, count, generator, question)
    if known.evidence is None or not known.evidence.wholes:
        return DrawnGraphs(drawn, exact)
    kept: list[Bools] = []
    everything, weights = [drawn], [known.evidence.log_weights(drawn)]
    for _ in range(MAX_ROUNDS):
        kept.append(drawn[np.log(generator.random(len(drawn))) < weights[-1]])
        if sum(map(len, kept)) >= count:
            return DrawnGraphs(np.concatenate(kept)[:count], exact)
        drawn = _drawn_by_pairs(logits, scores, known, count, generator, question)[0]
        everything.append(drawn)
        weights.append(known.evidence.log_weights(drawn))
    # Too few were kept: draw among all with their weights, some more than once.
    chances = _normalized(np.concatenate(weights))
    return DrawnGraphs(np.concatenate(everything)[generator.choice(len(chances), count, p=chances)], False)


def _drawn_by_pairs(
    logits: Floats,
    scores: Floats,
    known: Constraints,
    count: int,
    generator: np.random.Generator,
    question: tuple[int, int] | None = None,
) -> tuple[Bools, bool, NDArray[np.intp]]:
    """Graphs without the beliefs that are not about pairs, whether they are exact, and positions in their orders."""
    penalty = _order_penalties(np.logaddexp(0.0, logits), known)
    orders, exact = sample_orders(scores, penalty, count, generator)
    if question is not None:
        orders = moved_after(orders, scores, penalty, *question, generator)
    adjacent = sigmoid(logits).astype(np.float32)
    positions = positions_in(orders)
    graphs = np.empty((count, len(scores), len(scores)), dtype=bool)
    for graph, position in zip(graphs, positions, strict=True):  # one at a time: small arrays stay in cache
        # Two coins for each pair, of which the order picks one.
        coins = generator.random(graph.shape, dtype=np.float32) < adjacent
        graph[:] = (position[:, None] < position[None, :]) & coins & ~known.forbidden | known.required
    return graphs, exact, positions


def edge_probabilities(distribution: GraphDistribution, constraints: Constraints | None = None) -> Floats:
    """Probability of each directed edge given the knowledge.  (P, P)

    1 if required, 0 if forbidden, otherwise ν · P(j before k).
    """
    logits, scores, known = _as_arrays(distribution, constraints)
    before = precedence_probabilities(scores, _order_penalties(np.logaddexp(0.0, logits), known))
    exact = np.where(known.required, 1.0, np.where(known.forbidden, 0.0, sigmoid(logits) * before))
    np.fill_diagonal(exact, 0.0)
    if known.evidence is None or not known.evidence.wholes:
        return exact
    graphs, _, weights = _weighed(logits, scores, known)
    moved = np.tensordot(weights - 1 / len(weights), graphs.astype(np.float64), 1)
    return np.asarray(np.where((exact > 0) & (exact < 1), np.clip(exact + moved, 0.0, 1.0), exact))


# Which edges to keep for an aim, from the probabilities r of directed edges and the edges that are allowed  (P, P) each


def _keep_for_shd(probabilities: Floats, allowed: Bools) -> Bools:
    """Showing j -> k is a mistake with probability 1 − r_jk, showing nothing with r_jk + r_kj."""
    return np.asarray(2 * probabilities + probabilities.T > 1)


def _keep_for_f1(probabilities: Floats, allowed: Bools) -> Bools:
    """The edges from some probability on, or none: whatever maximizes the expected F1."""
    candidates = np.argwhere(allowed)
    candidates = candidates[np.argsort(-probabilities[allowed], kind="stable")]
    worth = expected_f1(probabilities, candidates)
    shares = probabilities[tuple(candidates.T)]
    # Edges of equal probability are shown together, so that the order of the columns makes no difference.
    complete = np.append(shares[1:] < shares[:-1], True) if len(shares) else np.zeros(0, dtype=bool)
    worth[1:][~complete] = -np.inf
    best = int(np.argmax(worth))
    return np.asarray(probabilities >= shares[best - 1]) if best else np.zeros_like(allowed)


def expected_f1(probabilities: Floats, candidates: NDArray[np.intp]) -> Floats:
    """Expected F1 of showing none of the candidate edges, the first, the first two, ... of them all.  (edges + 1,)

    `candidates` are indices (cause, effect). With M true edges, and each pair adjacent or not by an independent coin of
    probability ν = r + rᵀ, showing no edge scores 1 if M = 0 and otherwise 0, and k edges have

        E[2 TP / (k + M)] = 2 Σ_shown r_e E[1 / (k + 1 + M_others)] = 2 ∫₀¹ t^k G(t) Σ_shown r_e / (1 − ν_e + ν_e t) dt

    where G(t) = Π (1 − ν + ν t) is the generating function of M, and E[1 / (k + 1 + M)] = ∫ t^k G(t) dt. That is exact
    without knowledge. (A ratio of expectations promises up to twice the truth where fewer than one edge is expected.)
    """
    pairs = np.clip((probabilities + probabilities.T)[np.triu_indices(len(probabilities), k=1)], 0.0, 1.0)
    edge = probabilities[tuple(candidates.T)]
    adjacent = np.clip(edge + probabilities.T[tuple(candidates.T)], 0.0, 1.0)
    shown = np.arange(1, len(edge) + 1)
    worth = np.zeros(len(edge) + 1)
    worth[0] = np.prod(1 - pairs)
    for s, weight in zip(*_points_towards_zero(), strict=True):  # s = 1 − t
        log_others = shown * np.log1p(-s) + np.log1p(-s * pairs).sum()
        worth[1:] += 2 * weight * np.exp(log_others) * np.cumsum(edge / (1 - s * adjacent))
    return worth


@lru_cache(maxsize=1)
def _points_towards_zero() -> tuple[Floats, Floats]:
    """Points in (0, 1) and their weights in an integral: Gauss and Legendre's, 8 between neighboring powers of 1/2."""
    # With k edges shown and M expected the integrand lives where s is about 1 / (k + M) or less, whatever that is.
    nodes, weights = np.polynomial.legendre.leggauss(8)
    ends = np.append(0.0, 0.5 ** np.arange(20, -1, -1))
    middle, half = (ends[1:] + ends[:-1]) / 2, (ends[1:] - ends[:-1]) / 2
    return (middle[:, None] + half[:, None] * nodes).ravel(), (half[:, None] * weights).ravel()


_KEEP: dict[str, Callable[[Floats, Bools], Bools]] = {"shd": _keep_for_shd, "f1": _keep_for_f1}
DECODERS = ("map", *_KEEP)


# What knowledge takes away


def most_probable_first(probability: float, *names: str) -> tuple[float, tuple[str, ...]]:
    """A key for sorting: by the probability to three decimal places, then by name."""
    return -round(probability, 3), names  # more digits of probabilities near 1 depend on the processor


@dataclass(frozen=True)
class VanishedAdjacency:
    """An adjacency that the knowledge removes, and the reason."""

    first: str
    second: str
    probability: float
    """The network's probability ν that the two are adjacent."""
    ruled_out: tuple[tuple[str, str], ...]
    """The directions that the knowledge rules out, as (cause, effect)."""
    reason: str

    def __str__(self) -> str:
        return (
            f"{self.first!r} and {self.second!r} are adjacent with probability {self.probability:.2f} by the data "
            f"alone, but no edge is shown: {self.reason}."
        )


def vanished_adjacencies(
    distribution: GraphDistribution, constraints: Constraints, decoding: Decoding
) -> list[VanishedAdjacency]:
    """The pairs without an edge in `decoding` that would have one if nothing were known, the most probable first."""
    if constraints.is_empty():
        return []
    free = decode(distribution, decode=decoding.decode, threshold=decoding.threshold).adjacency
    lost = np.argwhere(free & ~skeleton_of(decoding.adjacency))  # as the network has them, cause first
    adjacent, before = distribution.skeleton_probabilities(), distribution.precedence_probabilities()
    found = []
    for j, k in lost.tolist():
        pair = constraints.names[j], constraints.names[k]
        edges = ((pair, constraints.forbidden[j, k]), (pair[::-1], constraints.forbidden[k, j]))
        ruled_out = tuple(edge for edge, forbidden in edges if forbidden)
        reason = _why_vanished(pair, ruled_out, before[j, k])
        found.append(VanishedAdjacency(*pair, float(adjacent[j, k]), ruled_out, reason))
    return sorted(found, key=lambda pair: most_probable_first(pair.probability, pair.first, pair.second))


def _why_vanished(pair: tuple[str, str], ruled_out: tuple[tuple[str, str], ...], before: float) -> str:
    """`pair` is (cause, effect) as the network has it, which puts the cause first with probability `before`."""
    forwards, backwards = (f"{cause!r} -> {effect!r}" for cause, effect in (pair, pair[::-1]))
    if len(ruled_out) == 2:
        return "the knowledge rules out both directions"
    if ruled_out == (pair,):
        return (
            f"the knowledge rules out {forwards}, and {backwards} goes against the causal order "
            f"({pair[0]!r} comes before {pair[1]!r} with probability {before:.2f})"
        )
    if ruled_out:
        return f"the knowledge rules out {backwards}, and what is known of other variables makes {forwards} improbable"
    return "what is known of other variables makes it improbable"


# Beliefs


MAX_ROUNDS = 64  # in which graphs are drawn again where beliefs reject most of them
WEIGHED_GRAPHS, WEIGHED_CELLS, MIN_WEIGHED = 4000, 2 * 10**7, 200  # graphs that are weighed: fewer of many variables


def probabilities_of(
    beliefs: Iterable[Belief], distribution: GraphDistribution, constraints: Constraints
) -> list[float]:
    """Probability of each statement given all that is known and believed; those about hidden causes are left at nan."""
    logits, scores, known = _as_arrays(distribution, constraints)
    edges = edge_probabilities(distribution, constraints)
    graphs, positions, weights = _weighed(logits, scores, known)
    found = []
    for belief in beliefs:
        about = [known.names.index(name) for name in belief.names]
        if belief.kind == "edge":
            found.append(float(edges[about[0], about[1]]))
        elif belief.kind == "hidden":
            found.append(float("nan"))
        else:
            early = positions[:, about[0]] < positions[:, about[-1]]
            found.append(float(weights @ (early if belief.kind == "before" else holds(belief.kind, about, graphs))))
    return found


def _weighed(logits: Floats, scores: Floats, known: Constraints) -> tuple[Bools, NDArray[np.intp], Floats]:
    """Always the same draws for the same table, positions in their orders, and their weights by the beliefs."""
    count = max(MIN_WEIGHED, min(WEIGHED_GRAPHS, WEIGHED_CELLS // len(scores) ** 2))
    graphs, _, positions = _drawn_by_pairs(logits, scores, known, count, np.random.default_rng(0))
    weights = np.zeros(count) if known.evidence is None else known.evidence.log_weights(graphs)
    return graphs, positions, _normalized(weights)


def _normalized(log_weights: Floats) -> Floats:
    if not np.isfinite(log_weights.max()):
        raise KnowledgeError(
            "No drawn graph agrees with all beliefs of probability 0 or 1: make one of them less certain."
        )
    weights = np.exp(log_weights - log_weights.max())
    return np.asarray(weights / weights.sum())


def _following(logits: Floats, scores: Floats, known: Constraints) -> Constraints:
    """The knowledge with the beliefs about roots and leaves that are more probable than not, after all."""
    if known.evidence is None or not (wholes := [each for each in known.evidence.wholes if each[0] != "path"]):
        return known
    graphs, _, weights = _weighed(logits, scores, known)
    forbidden = known.forbidden.copy()
    for kind, (variable,), odds in wholes:
        if odds > 0 and weights @ holds(kind, (variable,), graphs) > 0.5:
            forbidden[(slice(None), variable) if kind == "root" else variable] = True
    np.fill_diagonal(forbidden, False)
    return replace(known, forbidden=forbidden)


def _order_penalties(price_of_no_edge: Floats, known: Constraints) -> Floats:
    """The price of j before k: infinite against required edges, −log(1 − ν) where only j -> k is forbidden."""
    # Beliefs make one order of a pair worth more than the other.
    one_way = known.forbidden & ~known.forbidden.T
    price = np.where(one_way, price_of_no_edge, 0.0)
    if known.evidence is not None:
        worth = np.where(known.forbidden, 0.0, price_of_no_edge) + known.evidence.orders
        price = np.maximum(worth.T - worth, 0.0)
    return np.where(known.precedence.T, np.inf, price)


def _as_arrays(distribution: GraphDistribution, constraints: Constraints | None) -> tuple[Floats, Floats, Constraints]:
    """Skeleton logits with what is believed of edges (P, P), order scores (P,), and constraints that fit them."""
    if distribution.order_scores.ndim != 1:
        raise ConfigurationError(
            "Expected the distribution for one table, got order scores of shape "
            f"{distribution.order_scores.shape}: decode the members of a batch one by one."
        )
    logits = distribution.skeleton_logits.astype(np.float64)
    scores = distribution.order_scores.astype(np.float64)
    if np.isnan(logits).any() or not np.isfinite(scores).all():
        raise ConfigurationError("Expected numbers for skeleton logits and order scores, got NaN or infinite scores.")
    known = unconstrained([f"x{j + 1}" for j in range(len(scores))]) if constraints is None else constraints
    if len(known.names) != len(scores):
        raise KnowledgeError(f"Knowledge about {len(known.names)} variables does not fit a graph of {len(scores)}.")
    # Beyond this an edge is certain for all purposes; an infinite price would pass for a compulsory order.
    logits = np.clip(logits, -500.0, 500.0)
    return logits if known.evidence is None else logits + known.evidence.edges, scores, known
