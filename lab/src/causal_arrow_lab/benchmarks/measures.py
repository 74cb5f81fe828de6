"""Measures of single suites: hidden causes, textbook graphs, false edges, twins."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from causal_arrow.graphs import dag, metrics
from causal_arrow_lab.benchmarks.datasets import Dataset
from causal_arrow_lab.benchmarks.methods.protocol import Estimate


def hidden_ap(dataset: Dataset, answer: Estimate) -> float:
    """Average precision of the pairs that share a hidden cause; nan if there are none, or no scores for them.

    Both orders of a pair count, with the same score, which does not change precision.
    """
    if dataset.confounded is None or answer.confounding is None:
        return math.nan
    return metrics.average_precision(dataset.confounded, answer.confounding)


def expected_edges(dataset: Dataset, answer: Estimate) -> float:
    """Sum of all edge probabilities; nan for a method without any."""
    return math.nan if answer.probabilities is None else float(answer.probabilities.sum())


def graph_right(dataset: Dataset, answer: Estimate) -> float:
    """1 for exactly the true graph, else 0."""
    return float(np.array_equal(dataset.adjacency, answer.adjacency))


def class_right(dataset: Dataset, answer: Estimate) -> float:
    """1 for a graph of the true Markov equivalence class, else 0."""
    return float(bool(dag.is_acyclic(answer.adjacency)) and dag.markov_equivalent(dataset.adjacency, answer.adjacency))


def right(dataset: Dataset, answer: Estimate) -> float:
    """1 if all that can be known is right: the graph, or its class if the dataset identifies no more."""
    known = {"class": class_right, "graph": graph_right}
    return known[dataset.details["known"]](dataset, answer)


FURTHER: dict[str, Callable[[Dataset, Estimate], float]] = {
    "hidden_ap": hidden_ap,
    "expected_edges": expected_edges,
    "graph_right": graph_right,
    "class_right": class_right,
    "right": right,
}


def compare_twins(dataset: Dataset, answer: Estimate, answer_for_twin: Estimate) -> dict[str, float]:
    """Differences between the answers for a table and for its twin, on the variables that they share.

    edges_changed   pairs whose edge differs: added, removed or reversed
    share_changed   the same, divided by the edges of the first answer; nan if it has none
    largest_change  of the probability of an edge; nan for a method without any
    """
    assert dataset.twin is not None
    shared = [name for name in dataset.names if name in dataset.twin.names]
    here = np.ix_(*2 * [[dataset.names.index(name) for name in shared]])
    there = np.ix_(*2 * [[dataset.twin.names.index(name) for name in shared]])
    edges = int(answer.adjacency[here].sum())
    changed = metrics.shd(answer.adjacency[here], answer_for_twin.adjacency[there])
    largest = math.nan
    if answer.probabilities is not None and answer_for_twin.probabilities is not None:
        largest = float(np.abs(answer.probabilities[here] - answer_for_twin.probabilities[there]).max())
    return {
        "estimated_edges": float(answer.adjacency.sum()),
        "edges_changed": float(changed),
        "share_changed": changed / edges if edges else math.nan,
        "largest_change": largest,
    }
