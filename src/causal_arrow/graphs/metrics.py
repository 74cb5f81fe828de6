"""How far an estimated graph is from the true one, and how far to trust its probabilities.

Every function takes the truth first and the estimate second, (P, P) matrices with 1 at [j, k] when j → k
(`dag.py`). An estimate may contain cycles, even j ⇄ k, unless the docstring says otherwise: some methods answer with
such graphs and must still be measured. A measure without a meaning for the graphs at hand is nan, never a
number made up: whoever takes the mean leaves nans out and says how many there were.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from causal_arrow.errors import GraphError
from causal_arrow.graphs import dag
from causal_arrow.graphs.dag import BoolMatrix

Matrix = npt.ArrayLike
FloatArray = npt.NDArray[np.float64]

# The structural intervention distance is read as a share of p(p − 1) effects on graphs small enough to act upon.
LARGEST_GRAPH_FOR_SID = 30

# Nearly every ordered pair has no edge and a probability near 0, and would hide any miscalibration of the others.
CALIBRATION_FLOOR = 0.05
CALIBRATION_BINS = 10


def shd(truth: Matrix, estimate: Matrix) -> int:
    """Structural Hamming distance: the number of unordered pairs {j, k} whose edges differ.

    A missing, an extra and a reversed edge count one each; so does j ⇄ k where the truth has one edge or none.

    Parameters
    ----------
    truth
        The true graph.  (P, P)
    estimate
        The estimated graph.  (P, P)

    Returns
    -------
    int
        0 for equal graphs.

    Examples
    --------
    >>> from causal_arrow.graphs.metrics import shd
    >>> shd([[0, 1], [0, 0]], [[0, 0], [1, 0]])
    1
    """
    truth, estimate = _two_graphs(truth, estimate)
    return _differing_pairs(truth, estimate)


def normalized_shd(truth: Matrix, estimate: Matrix) -> float:
    """SHD divided by the number of true edges, so that the empty answer scores 1; an undirected edge counts once.

    Parameters
    ----------
    truth
        The true graph.  (P, P)
    estimate
        The estimated graph.  (P, P)

    Returns
    -------
    float
        nan when the true graph is empty.

    Examples
    --------
    >>> from causal_arrow.graphs.metrics import normalized_shd
    >>> normalized_shd([[0, 1], [0, 0]], [[0, 0], [0, 0]])
    1.0
    """
    truth, estimate = _two_graphs(truth, estimate)
    true_edges = int(np.triu(truth | truth.T).sum())
    return _differing_pairs(truth, estimate) / true_edges if true_edges else math.nan


def f1(truth: Matrix, estimate: Matrix) -> float:
    """F1 of directed edges, 2·TP / (true edges + estimated edges); a reversed edge is wrong on both counts.

    Parameters
    ----------
    truth
        The true graph.  (P, P)
    estimate
        The estimated graph.  (P, P)

    Returns
    -------
    float
        From 0 to 1. Two empty graphs agree entirely: 1. If only one of them is empty: 0.

    Examples
    --------
    >>> from causal_arrow.graphs.metrics import f1
    >>> f1([[0, 1], [0, 0]], [[0, 0], [1, 0]])
    0.0
    """
    truth, estimate = _two_graphs(truth, estimate)
    return _f1(truth, estimate)


def skeleton_f1(truth: Matrix, estimate: Matrix) -> float:
    """F1 of adjacencies, direction ignored.

    Parameters
    ----------
    truth
        The true graph.  (P, P)
    estimate
        The estimated graph.  (P, P)

    Returns
    -------
    float
        From 0 to 1; empty graphs as in `f1`.

    Examples
    --------
    >>> from causal_arrow.graphs.metrics import skeleton_f1
    >>> skeleton_f1([[0, 1], [0, 0]], [[0, 0], [1, 0]])
    1.0
    """
    truth, estimate = _two_graphs(truth, estimate)
    return _f1(truth | truth.T, estimate | estimate.T)


def orientation_accuracy(truth: Matrix, estimate: Matrix) -> float:
    """Share of the true edges joined at all in the estimate that point the right way.

    Parameters
    ----------
    truth
        The true graph.  (P, P)
    estimate
        The estimated graph. An edge in both directions is not oriented, hence not right unless the true one is not
        oriented either.  (P, P)

    Returns
    -------
    float
        nan when no true edge is joined.

    Examples
    --------
    >>> from causal_arrow.graphs.metrics import orientation_accuracy
    >>> orientation_accuracy([[0, 1], [0, 0]], [[0, 0], [1, 0]])
    0.0
    """
    truth, estimate = _two_graphs(truth, estimate)
    found = np.triu((truth | truth.T) & (estimate | estimate.T))
    right = found & (truth == estimate) & (truth.T == estimate.T)
    return float(right.sum() / found.sum()) if found.any() else math.nan


def average_precision(truth: Matrix, scores: Matrix) -> float:
    """Average precision of a score matrix over all p(p − 1) ordered pairs.

    Σ over the distinct scores, from the highest, of (gain in recall) × (precision so far): pairs with equal scores
    enter together. This is scikit-learn's `average_precision_score` on the matrix without its diagonal.

    Parameters
    ----------
    truth
        The true graph.  (P, P)
    scores
        The larger, the surer of an edge j → k.  (P, P)

    Returns
    -------
    float
        From 0 to 1; nan when the true graph is empty.

    Examples
    --------
    >>> from causal_arrow.graphs.metrics import average_precision
    >>> average_precision([[0, 1], [0, 0]], [[0, 0.9], [0.1, 0]])
    1.0
    """
    truth = dag.ensure_graph(truth)
    outcomes, pair_scores = _ordered_pairs(truth, scores)
    if not outcomes.any():
        return math.nan
    by_score = np.argsort(-pair_scores, kind="stable")
    last_of_tie = np.append(np.diff(pair_scores[by_score]) != 0, True)
    true_positives = np.cumsum(outcomes[by_score])[last_of_tie]
    selected = np.flatnonzero(last_of_tie) + 1
    recall_gain = np.diff(true_positives, prepend=0) / outcomes.sum()
    return float(np.sum(recall_gain * true_positives / selected))


def cpdag_shd(truth: Matrix, estimate: Matrix) -> int:
    """SHD between the Markov equivalence classes of two DAGs: unordered pairs whose mark in the two CPDAGs differs.

    A mark is one of: no edge, →, ←, undirected; any difference counts one.

    Parameters
    ----------
    truth
        The true DAG.  (P, P)
    estimate
        The estimated DAG.  (P, P)

    Returns
    -------
    int
        0 exactly when the DAGs are equivalent, that is when no observational data could tell them apart without
        assumptions about mechanisms and noise.

    Examples
    --------
    >>> from causal_arrow.graphs.metrics import cpdag_shd
    >>> cpdag_shd([[0, 1], [0, 0]], [[0, 0], [1, 0]])
    0
    """
    truth, estimate = _two_graphs(truth, estimate)
    return _differing_pairs(dag.cpdag(truth), dag.cpdag(estimate))


def sid(truth: Matrix, estimate: Matrix) -> int:
    """Structural intervention distance of two DAGs: the ordered pairs (i, k) where the estimate gets the effect wrong.

    Peters and Bühlmann (2015). The estimate computes the effect of intervening on i upon k by adjusting for the parents
    it gives to i; the pair counts when that is not correct for every distribution generated by the true graph.

    Parameters
    ----------
    truth
        The true DAG.  (P, P)
    estimate
        The estimated DAG.  (P, P)

    Returns
    -------
    int
        From 0 to p(p − 1). The distance is not symmetric: an estimate with too many edges may score 0.

    Examples
    --------
    >>> from causal_arrow.graphs.metrics import sid
    >>> sid([[0, 1], [0, 0]], [[0, 0], [1, 0]])
    2
    """
    truth, estimate = _two_graphs(dag.ensure_dag(truth), dag.ensure_dag(estimate))
    reaches = dag.transitive_closure(truth) | np.eye(len(truth), dtype=bool)
    return sum(int(_wrong_effects(truth, reaches, i, estimate[:, i]).sum()) for i in range(len(truth)))


def _wrong_effects(truth: BoolMatrix, reaches: BoolMatrix, cause: int, adjustment: BoolMatrix) -> BoolMatrix:
    """Whether adjusting for `adjustment` gives a wrong effect of `cause` on each variable k of the true DAG.  (P,)

    k inside the adjustment set: the estimate claims that there is no effect, wrong if k descends from the cause.
    k outside: the set is valid if and only if (Shpitser, VanderWeele and Robins 2010)
      (a) it holds no descendant of a variable on a directed path from the cause to k, the cause excepted, and
      (b) it blocks every path from the cause to k that is not directed.
    """
    descendants = reaches[cause].copy()
    descendants[cause] = False
    opens_collider: BoolMatrix = np.any(
        reaches[:, adjustment], axis=1
    )  # in the adjustment set, or with a descendant there
    forbidden = reaches[descendants & opens_collider].any(axis=0)  # (a)
    wrong: BoolMatrix = forbidden | _joined_by_open_nondirected_path(truth, cause, adjustment, opens_collider)  # (b)
    wrong[adjustment] = descendants[adjustment]
    wrong[cause] = False
    return wrong


def _joined_by_open_nondirected_path(
    truth: BoolMatrix, cause: int, adjustment: BoolMatrix, opens_collider: BoolMatrix
) -> BoolMatrix:
    """The variables joined to `cause` by a path that is open given `adjustment` and not directed away from it.  (P,)

    Walks from the cause outward, all at once, in three kinds of arrival: `directed` (only → so far), and, once an edge
    was walked against its arrow, `through_tail` (arrived at v by v → ·) and `through_head` (arrived by · → v).
    """
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


@dataclass(frozen=True)
class Reliability:
    """How often an edge was there when its probability lay in a bin; bins have equal width and hold their lower end.

    Holds sums, so that those of many datasets add up to that of all their pairs (`pool`).
    """

    pairs: FloatArray  # (bins,) ordered pairs with a probability in the bin
    probability_sum: FloatArray  # (bins,) their probabilities, added up: the number of edges promised
    edges: FloatArray  # (bins,) how many of them are edges of the true graph

    @property
    def mean_probability(self) -> FloatArray:
        """Mean probability in each bin; nan in an empty one.  (bins,)"""
        return np.where(self.pairs > 0, self.probability_sum / np.maximum(self.pairs, 1), math.nan)

    @property
    def edge_frequency(self) -> FloatArray:
        """Share of true edges in each bin; nan in an empty one.  (bins,)"""
        return np.where(self.pairs > 0, self.edges / np.maximum(self.pairs, 1), math.nan)

    @property
    def expected_calibration_error(self) -> float:
        """Σ_bins (share of the pairs) · |mean probability − edge frequency|; nan without pairs."""
        total = self.pairs.sum()
        return float(np.abs(self.probability_sum - self.edges).sum() / total) if total else math.nan


def reliability_of(
    truth: Matrix, probabilities: Matrix, *, bins: int = CALIBRATION_BINS, floor: float = 0.0
) -> Reliability:
    """Reliability of directed-edge probabilities over the ordered pairs of one graph.

    Parameters
    ----------
    truth
        The true graph.  (P, P)
    probabilities
        Of each directed edge.  (P, P)
    bins
        How many, of equal width.
    floor
        Only pairs with a probability of this or more; all p(p − 1) pairs by default.

    Returns
    -------
    Reliability
        Sums per bin, which `pool` adds up over graphs.

    Examples
    --------
    >>> from causal_arrow.graphs.metrics import reliability_of
    >>> reliability_of([[0, 1], [0, 0]], [[0, 0.9], [0.1, 0]], bins=2).edges
    array([0., 1.])
    """
    truth = dag.ensure_graph(truth)
    outcomes, pair_probabilities = _ordered_pairs(truth, probabilities)
    if pair_probabilities.size and (pair_probabilities.min() < 0 or pair_probabilities.max() > 1):
        raise GraphError(
            f"Probabilities lie between 0 and 1, but these go from {pair_probabilities.min():g} to "
            f"{pair_probabilities.max():g}. Calibration has no meaning for other scores; leave it out."
        )
    counted = pair_probabilities >= floor
    return binned(outcomes[counted], pair_probabilities[counted], bins)


def binned(outcomes: BoolMatrix, probabilities: FloatArray, bins: int) -> Reliability:
    """The reliability of probabilities of whatever came out or did not.

    Parameters
    ----------
    outcomes
        What came out.  (pairs,)
    probabilities
        How probable it was said to be.  (pairs,)
    bins
        How many, of equal width.

    Returns
    -------
    Reliability
        Sums per bin.

    Examples
    --------
    >>> import numpy as np
    >>> from causal_arrow.graphs.metrics import binned
    >>> binned(np.array([True, False]), np.array([0.9, 0.8]), bins=2).pairs
    array([0., 2.])
    """
    # Probabilities computed as sums may fall short of a boundary by rounding; 1 belongs to the last bin.
    bin_of_pair = np.minimum((probabilities * bins + 1e-9).astype(np.int64), bins - 1)
    return Reliability(
        pairs=np.bincount(bin_of_pair, minlength=bins).astype(np.float64),
        probability_sum=np.bincount(bin_of_pair, weights=probabilities, minlength=bins).astype(np.float64),
        edges=np.bincount(bin_of_pair[outcomes], minlength=bins).astype(np.float64),
    )


def pool(parts: Iterable[Reliability]) -> Reliability:
    """The reliability over the pairs of several graphs together.

    Parameters
    ----------
    parts
        Those of the graphs, with the same number of bins.

    Returns
    -------
    Reliability
        Their sums.

    Examples
    --------
    >>> from causal_arrow.graphs.metrics import pool, reliability_of
    >>> one = reliability_of([[0, 1], [0, 0]], [[0, 0.9], [0.1, 0]], bins=2)
    >>> pool([one, one]).edges
    array([0., 2.])
    """
    parts = list(parts)
    return Reliability(
        pairs=np.sum([part.pairs for part in parts], axis=0),
        probability_sum=np.sum([part.probability_sum for part in parts], axis=0),
        edges=np.sum([part.edges for part in parts], axis=0),
    )


def expected_calibration_error(
    truth: Matrix, probabilities: Matrix, *, bins: int = CALIBRATION_BINS, floor: float = 0.0
) -> float:
    """Expected calibration error of one graph's directed-edge probabilities.

    With few pairs per bin, one graph's error is mostly chance: `pool` those of many graphs to judge a method.

    Parameters
    ----------
    truth
        The true graph.  (P, P)
    probabilities
        Of each directed edge.  (P, P)
    bins
        How many, of equal width.
    floor
        Only pairs with a probability of this or more.

    Returns
    -------
    float
        nan when no pair reaches `floor`.

    Examples
    --------
    >>> from causal_arrow.graphs.metrics import expected_calibration_error
    >>> expected_calibration_error([[0, 1], [0, 0]], [[0, 1], [0, 0]])
    0.0
    """
    return reliability_of(truth, probabilities, bins=bins, floor=floor).expected_calibration_error


def evaluate(
    truth: Matrix, estimate: Matrix, *, scores: Matrix | None = None, probabilities: Matrix | None = None
) -> dict[str, float]:
    """Every measure of one answer, by name.

    Where the true graph is empty, an empty estimate has F1 1 and any other 0; measures that divide by the true edges
    (nshd, ap, orientation_accuracy) are nan.

    Parameters
    ----------
    truth
        The true graph.  (P, P)
    estimate
        The estimated graph. The distance between CPDAGs and the structural intervention distance, which is computed for
        p ≤ 30, need two DAGs.  (P, P)
    scores
        Rank the ordered pairs for average precision; without them the probabilities do, and without those the estimated
        graph.  (P, P)
    probabilities
        Of directed edges, which are also measured for calibration.  (P, P)

    Returns
    -------
    dict of float
        nan where a measure has no meaning.

    Examples
    --------
    >>> from causal_arrow.graphs.metrics import evaluate
    >>> measures = evaluate([[0, 1], [0, 0]], [[0, 1], [0, 0]])
    >>> measures["shd"], measures["f1"]
    (0.0, 1.0)
    """
    truth, estimate = _two_graphs(truth, estimate)
    acyclic = bool(dag.is_acyclic(estimate))
    two_dags = acyclic and bool(dag.is_acyclic(truth))
    ranking = next(matrix for matrix in (scores, probabilities, estimate) if matrix is not None)
    measures = {
        "true_edges": float(truth.sum()),
        "estimated_edges": float(estimate.sum()),
        "acyclic": float(acyclic),
        "shd": float(shd(truth, estimate)),
        "nshd": normalized_shd(truth, estimate),
        "f1": f1(truth, estimate),
        "ap": average_precision(truth, ranking),
        "skeleton_f1": skeleton_f1(truth, estimate),
        "orientation_accuracy": orientation_accuracy(truth, estimate),
        "cpdag_shd": float(cpdag_shd(truth, estimate)) if two_dags else math.nan,
        "sid": float(sid(truth, estimate)) if two_dags and len(truth) <= LARGEST_GRAPH_FOR_SID else math.nan,
        "ece": math.nan,
        "ece_above_floor": math.nan,
    }
    if probabilities is not None:
        measures["ece"] = expected_calibration_error(truth, probabilities)
        measures["ece_above_floor"] = expected_calibration_error(truth, probabilities, floor=CALIBRATION_FLOOR)
    return measures


def _two_graphs(truth: Matrix, estimate: Matrix) -> tuple[BoolMatrix, BoolMatrix]:
    truth, estimate = dag.ensure_graph(truth), dag.ensure_graph(estimate)
    if truth.shape != estimate.shape:
        raise GraphError(
            f"The two graphs must have the same variables in the same order, but the true one has {len(truth)} "
            f"and the estimated one {len(estimate)}."
        )
    return truth, estimate


def _ordered_pairs(truth: BoolMatrix, scores: Matrix) -> tuple[BoolMatrix, FloatArray]:
    """Whether each ordered pair is a true edge, and its score; the diagonal left out.  (P(P − 1),) twice"""
    values: npt.NDArray[Any] = np.asarray(scores, dtype=np.float64)
    if values.shape != truth.shape:
        raise GraphError(f"Scores must have the shape of the true graph, {truth.shape}; got {values.shape}.")
    off_diagonal = ~np.eye(len(truth), dtype=bool)
    if np.isnan(values[off_diagonal]).any():
        raise GraphError("Some scores are nan, so the pairs cannot be ranked. Give every ordered pair a number.")
    return truth[off_diagonal], values[off_diagonal]


def _differing_pairs(first: BoolMatrix, second: BoolMatrix) -> int:
    differs = first != second
    return int(np.triu(differs | differs.T).sum())


def _f1(truth: BoolMatrix, estimate: BoolMatrix) -> float:
    edges = truth.sum() + estimate.sum()
    return float(2 * (truth & estimate).sum() / edges) if edges else 1.0
