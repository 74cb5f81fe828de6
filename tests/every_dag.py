"""Every DAG on few variables, and Markov equivalence by its definition, for tests by brute force."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations, permutations, product

import numpy as np
from numpy.typing import NDArray

Graph = NDArray[np.bool_]
Signature = tuple[bytes, frozenset[tuple[int, int, int]]]


def all_dags(variables: int) -> list[Graph]:
    """Every DAG on so many variables: every orientation of every skeleton that some order explains."""
    pairs = list(combinations(range(variables), 2))
    found: dict[bytes, Graph] = {}
    for order in permutations(range(variables)):
        for present in product((False, True), repeat=len(pairs)):
            graph = np.zeros((variables, variables), dtype=bool)
            for (i, j), edge in zip(pairs, present, strict=True):
                graph[order[i], order[j]] = edge
            found[graph.tobytes()] = graph
    return list(found.values())


def v_structures(graph: Graph) -> frozenset[tuple[int, int, int]]:
    """All (i, k, j) with i → k ← j directed, i < j not adjacent. Works for partially directed graphs too."""
    directed = graph & ~graph.T
    adjacent = graph | graph.T
    return frozenset(
        (i, k, j)
        for k in range(len(graph))
        for i, j in combinations(np.flatnonzero(directed[:, k]).tolist(), 2)
        if not adjacent[i, j]
    )


def signature(graph: Graph) -> Signature:
    """Skeleton and v-structures, which Markov equivalent DAGs share (Verma and Pearl)."""
    return (graph | graph.T).tobytes(), v_structures(graph)


def equivalence_classes(variables: int) -> dict[Signature, list[Graph]]:
    classes: dict[Signature, list[Graph]] = defaultdict(list)
    for graph in all_dags(variables):
        classes[signature(graph)].append(graph)
    return classes


def random_dag(variables: int, density: float, rng: np.random.Generator) -> Graph:
    graph = np.triu(rng.random((variables, variables)) < density, 1)
    relabelling = rng.permutation(variables)
    return graph[np.ix_(relabelling, relabelling)]
