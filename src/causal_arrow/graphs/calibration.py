"""How far to trust each part of an answer: adjacencies, the directions of true edges, and ancestors.

Each function gives a `metrics.Reliability` of one graph; those of many graphs add up (`metrics.pool`). Bins are a
twentieth wide, so that the thresholds of the words for a direction, 0.75 and 0.95, lie between two of them.
"""

# P variables

from __future__ import annotations

import numpy as np

from causal_arrow.graphs import dag
from causal_arrow.graphs.dag import BoolMatrix
from causal_arrow.graphs.metrics import FloatArray, Matrix, Reliability, binned

FINE_BINS = 20


def adjacency_reliability(truth: Matrix, probabilities: Matrix) -> Reliability:
    """How often two variables were adjacent, by the probability of an edge in either direction: each pair once."""
    truth, either = _graph(truth), _either(probabilities)
    upper = np.triu_indices(len(truth), k=1)
    return binned((truth | truth.T)[upper], either[upper], FINE_BINS)


def direction_reliability(truth: Matrix, probabilities: Matrix) -> Reliability:
    """How often the direction that was thought more probable was right, among pairs that are truly adjacent.

    By its probability given that there is an edge, so from ½ to 1. Pairs without any probability of an edge are left
    out: nothing was said about their direction.
    """
    truth, edges = _graph(truth), np.asarray(probabilities, dtype=np.float64)
    first, second = np.nonzero(np.triu(truth ^ truth.T))
    forward, backward = edges[first, second], edges[second, first]
    told = forward + backward > 0
    first, second, forward, backward = first[told], second[told], forward[told], backward[told]
    favored = np.where(forward >= backward, truth[first, second], truth[second, first])
    return binned(favored, np.maximum(forward, backward) / (forward + backward), FINE_BINS)


def ancestor_reliability(truth: Matrix, probabilities: Matrix) -> Reliability:
    """How often there was a directed path from one variable to another, by its probability, over all ordered pairs."""
    truth, paths = _graph(truth), np.asarray(probabilities, dtype=np.float64)
    apart = ~np.eye(len(truth), dtype=bool)
    return binned(dag.transitive_closure(truth)[apart], paths[apart], FINE_BINS)


def _graph(truth: Matrix) -> BoolMatrix:
    return dag.ensure_graph(truth)


def _either(probabilities: Matrix) -> FloatArray:
    """The probability of an edge in either direction, at most 1 where the two add up to more by rounding.  (P, P)"""
    edges = np.asarray(probabilities, dtype=np.float64)
    return np.asarray(np.minimum(edges + edges.T, 1.0))
