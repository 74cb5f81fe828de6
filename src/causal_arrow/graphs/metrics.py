"""Measures of the distance between an estimated graph and the true one.

Every function takes the truth first and the estimate second, (P, P) matrices with 1 at [j, k] when j → k (`dag.py`). An
estimate may contain cycles, even j ⇄ k, unless the docstring says otherwise: some methods answer with such graphs. A
measure that two graphs do not define is nan: leave nans out of means, and say how many.

Examples
--------
>>> from causal_arrow.graphs import metrics
>>> truth, reversed_edge = [[0, 1], [0, 0]], [[0, 0], [1, 0]]
>>> metrics.shd(truth, reversed_edge), metrics.normalized_shd(truth, reversed_edge)
(1, 1.0)
>>> metrics.f1(truth, reversed_edge), metrics.skeleton_f1(truth, reversed_edge)
(0.0, 1.0)
>>> metrics.orientation_accuracy(truth, reversed_edge), metrics.cpdag_shd(truth, reversed_edge)
(0.0, 0)
>>> metrics.sid(truth, reversed_edge)
2
>>> metrics.ordered_pairs(truth, [[0, 0.9], [0.1, 0]])
(array([ True, False]), array([0.9, 0.1]))
>>> metrics.average_precision(truth, [[0, 0.9], [0.1, 0]])
1.0
>>> metrics.evaluate(truth, truth)["f1"]
1.0
>>> metrics.edge_differences({("a", "b"), ("b", "c")}, {("b", "a")})["reversed"]
[('a', 'b')]
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from causal_arrow.errors import GraphError
from causal_arrow.graphs import dag
from causal_arrow.graphs.dag import BoolMatrix, skeleton_of

Matrix = npt.ArrayLike
FloatArray = npt.NDArray[np.float64]

Edge = tuple[str, str]

MAX_VARIABLES_SID = 30  # number of variables up to which `evaluate` computes the structural intervention distance


def shd(truth: Matrix, estimate: Matrix) -> int:
    """Structural Hamming distance: the number of unordered pairs {j, k} whose edges differ.

    A missing, an extra and a reversed edge count one each; so does j ⇄ k where the truth has one edge or none.
    """
    return _differing_pairs(*_two_graphs(truth, estimate))


def normalized_shd(truth: Matrix, estimate: Matrix) -> float:
    """SHD divided by the number of true edges, so that the empty answer scores 1; an undirected edge counts once.

    It is nan when the true graph is empty.
    """
    truth, estimate = _two_graphs(truth, estimate)
    true_edges = _differing_pairs(truth, np.zeros_like(truth))
    return _differing_pairs(truth, estimate) / true_edges if true_edges else math.nan


def f1(truth: Matrix, estimate: Matrix) -> float:
    """F1 of directed edges, 2·TP / (true edges + estimated edges); a reversed edge is wrong on both counts.

    Two empty graphs agree entirely: 1. If only one of them is empty: 0.
    """
    return _f1(*_two_graphs(truth, estimate))


def skeleton_f1(truth: Matrix, estimate: Matrix) -> float:
    """F1 of adjacencies, direction ignored; of empty graphs as in `f1`."""
    truth, estimate = _two_graphs(truth, estimate)
    return _f1(skeleton_of(truth), skeleton_of(estimate))


def orientation_accuracy(truth: Matrix, estimate: Matrix) -> float:
    """Share of the true edges joined at all in the estimate that point the right way; nan if none is joined.

    An edge in both directions is not oriented, hence not right unless the true one is not oriented either.
    """
    truth, estimate = _two_graphs(truth, estimate)
    j, k = np.nonzero(np.triu(skeleton_of(truth) & skeleton_of(estimate)))
    right = (truth[j, k] == estimate[j, k]) & (truth[k, j] == estimate[k, j])
    return float(right.mean()) if right.size else math.nan


def average_precision(truth: Matrix, scores: Matrix) -> float:
    """Average precision of a score matrix over all p(p − 1) ordered pairs; nan when the true graph is empty.

    Σ over the distinct scores, from the highest, of (gain in recall) × (precision so far): pairs with equal scores
    enter together. This is scikit-learn's `average_precision_score` on the matrix without its diagonal.
    """
    outcomes, pair_scores = ordered_pairs(truth, scores)
    if not outcomes.any():
        return math.nan
    above = pair_scores > pair_scores.min()  # the others, most of the pairs of a sparse graph, enter together
    pairs, edges = len(outcomes), int(outcomes.sum())
    outcomes, pair_scores = outcomes[above], pair_scores[above].astype(np.float64)
    by_score = np.argsort(-pair_scores, kind="stable")
    last_of_tie = np.append(np.diff(pair_scores[by_score]) != 0, True)[: len(by_score)]
    true_positives = np.append(np.cumsum(outcomes[by_score])[last_of_tie], edges)
    selected = np.append(np.flatnonzero(last_of_tie) + 1, pairs)
    recall_gain = np.diff(true_positives, prepend=0) / edges
    return float(np.sum(recall_gain * true_positives / selected))


def cpdag_shd(truth: Matrix, estimate: Matrix) -> int:
    """SHD between the Markov equivalence classes of two DAGs: unordered pairs whose mark in the two CPDAGs differs.

    A mark is one of: no edge, →, ←, undirected; any difference counts one. The distance is 0 exactly when no
    observational data could distinguish the DAGs without assumptions about mechanisms and noise.
    """
    truth, estimate = _two_graphs(truth, estimate)
    return _differing_pairs(dag.cpdag(truth), dag.cpdag(estimate))


def sid(truth: Matrix, estimate: Matrix) -> int:
    """Structural intervention distance of two DAGs: the ordered pairs (i, k) where the estimate gets the effect wrong.

    Peters and Bühlmann (2015). The estimate computes the effect of intervening on i upon k by adjusting for the parents
    it gives to i; the pair counts when that is not correct for every distribution generated by the true graph. The
    distance is not symmetric: an estimate with too many edges may score 0.
    """
    truth, estimate = _two_graphs(dag.ensure_dag(truth), dag.ensure_dag(estimate))
    reaches = dag.transitive_closure(truth) | np.eye(len(truth), dtype=bool)
    return sum(int(_wrong_effects(truth, reaches, i, estimate[:, i]).sum()) for i in range(len(truth)))


def _wrong_effects(truth: BoolMatrix, reaches: BoolMatrix, cause: int, adjustment: BoolMatrix) -> BoolMatrix:
    """Whether adjusting gives a wrong effect of `cause` on each variable k of the true DAG.  (P,)

    k inside the adjustment set: the estimate claims that there is no effect, wrong if k descends from the cause.
    k outside: the set is valid if and only if (Shpitser, VanderWeele and Robins 2010)
      (a) it holds no descendant of a variable on a directed path from the cause to k, the cause excepted, and
      (b) it blocks every path from the cause to k that is not directed.
    """
    descendants = reaches[cause].copy()
    descendants[cause] = False
    opens_collider = np.asarray(reaches[:, adjustment].any(axis=1))  # in the set, or with a descendant there
    forbidden = reaches[descendants & opens_collider].any(axis=0)  # (a)
    wrong: BoolMatrix = forbidden | _joined_by_open_nondirected_path(truth, cause, adjustment, opens_collider)  # (b)
    wrong[adjustment] = descendants[adjustment]
    wrong[cause] = False
    return wrong


def _joined_by_open_nondirected_path(
    truth: BoolMatrix, cause: int, adjustment: BoolMatrix, opens_collider: BoolMatrix
) -> BoolMatrix:
    """The variables joined to `cause` by a path that is open given `adjustment` and not directed away from it.  (P,)"""
    # Walks outward in three kinds of arrival: `directed` (only → so far), and, once an edge was walked against its
    # arrow, `through_tail` (arrived at v by v → ·) and `through_head` (arrived by · → v).
    edges = truth.copy()
    edges[cause] = edges[:, cause] = False  # a path does not come back to where it started
    passable = ~adjustment
    reached = np.stack([truth[cause], truth[:, cause], np.zeros_like(adjustment)])
    while True:
        directed, through_tail, through_head = reached
        to_children = (through_tail | through_head) & passable
        to_parents = (through_tail & passable) | ((through_head | directed) & opens_collider)
        one_step = [
            edges[directed & passable].any(axis=0),
            edges[:, to_parents].any(axis=1),
            edges[to_children].any(axis=0),
        ]
        grown = reached | np.stack(one_step)
        if np.array_equal(grown, reached):
            return np.asarray(through_tail | through_head)
        reached = grown


def evaluate(truth: Matrix, estimate: Matrix, *, scores: Matrix | None = None) -> dict[str, float]:
    """Every measure of one answer, by name; nan where a measure has no meaning.

    The distance between CPDAGs and the structural intervention distance, which is computed for p ≤ 30, need two DAGs.
    `scores` (P, P) rank the ordered pairs for average precision; by default the estimated graph does.
    """
    truth, estimate = _two_graphs(truth, estimate)
    acyclic = bool(dag.is_acyclic(estimate))
    two_dags = acyclic and bool(dag.is_acyclic(truth))
    return {
        "true_edges": float(truth.sum()),
        "estimated_edges": float(estimate.sum()),
        "acyclic": float(acyclic),
        "shd": float(_differing_pairs(truth, estimate)),
        "nshd": normalized_shd(truth, estimate),
        "f1": _f1(truth, estimate),
        "ap": average_precision(truth, estimate if scores is None else scores),
        "skeleton_f1": _f1(skeleton_of(truth), skeleton_of(estimate)),
        "orientation_accuracy": orientation_accuracy(truth, estimate),
        "cpdag_shd": float(cpdag_shd(truth, estimate)) if two_dags else math.nan,
        "sid": float(sid(truth, estimate)) if two_dags and len(truth) <= MAX_VARIABLES_SID else math.nan,
    }


def _two_graphs(truth: Matrix, estimate: Matrix) -> tuple[BoolMatrix, BoolMatrix]:
    truth, estimate = dag.ensure_graph(truth), dag.ensure_graph(estimate)
    if truth.shape != estimate.shape:
        raise GraphError(
            f"The two graphs must have the same variables in the same order, but the true one has {len(truth)} "
            f"and the estimated one {len(estimate)}."
        )
    return truth, estimate


def ordered_pairs(truth: Matrix, scores: Matrix) -> tuple[BoolMatrix, FloatArray]:
    """Whether each ordered pair is a true edge, and its score; the diagonal left out.  (P(P − 1),) twice"""
    truth, values = dag.ensure_graph(truth), np.asarray(scores)
    values = values if values.dtype == bool else values.astype(np.float64)
    if values.shape != truth.shape:
        raise GraphError(f"Scores must have the shape of the true graph, {truth.shape}; got {values.shape}.")
    off_diagonal = ~np.eye(len(truth), dtype=bool)
    ranked = values[off_diagonal]
    if np.isnan(ranked.min(initial=1)):
        raise GraphError("Some scores are nan, so the pairs cannot be ranked. Give every ordered pair a number.")
    return truth[off_diagonal], ranked


def _differing_pairs(first: BoolMatrix, second: BoolMatrix) -> int:
    return int(np.triu(skeleton_of(first != second)).sum())


def _f1(truth: BoolMatrix, estimate: BoolMatrix) -> float:
    edges = truth.sum() + estimate.sum()
    return float(2 * (truth & estimate).sum() / edges) if edges else 1.0


def edge_differences(ours: set[Edge], theirs: set[Edge]) -> dict[str, list[Edge]]:
    """The edges in which two graphs differ: only the first has them, only the second, or both in another way.

    An edge is "directed in one" if one of the graphs has it undirected; it is given as the other directs it.
    """
    joined, their_joined = ({frozenset(edge) for edge in edges} for edges in (ours, theirs))
    missing, extra = joined - their_joined, their_joined - joined
    undirected = {frozenset(edge) for edges in (ours, theirs) for edge in edges if edge[::-1] in edges}
    differing = {frozenset(edge) for edge in ours ^ theirs} - missing - extra
    return {
        "missing": sorted(edge for edge in ours if frozenset(edge) in missing),
        "extra": sorted(edge for edge in theirs if frozenset(edge) in extra),
        "reversed": sorted(edge for edge in ours if frozenset(edge) in differing - undirected),
        "directed_in_one": sorted(edge for edge in ours & theirs if frozenset(edge) in differing & undirected),
    }
