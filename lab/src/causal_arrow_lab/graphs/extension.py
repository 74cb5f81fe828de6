"""DAGs for the partially directed graphs that methods such as PC return."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from causal_arrow.errors import GraphError
from causal_arrow.graphs.dag import BoolMatrix, ensure_graph, skeleton_of


def extend_cpdag(pdag: ArrayLike, strict: bool = True) -> BoolMatrix:
    """A DAG of the class that a CPDAG, or any partially directed graph, stands for.  (P, P)

    The DAG has the same skeleton, keeps every directed edge and adds no v-structure. Methods such as PC may return a
    graph for which there is no such DAG: a GraphError or, without `strict`, a DAG on the same skeleton that gives up as
    little as a greedy choice can find.

    The algorithm is Dor and Tarsi's (1992): find a variable that can be last, point its edges at it, remove it, repeat.
    The greedy choice is the variable whose being last reverses the fewest edges and adds the fewest v-structures.
    """
    graph = ensure_graph(pdag)
    undirected = graph & graph.T
    directed = graph & ~undirected
    adjacent = skeleton_of(graph)
    apart = ~adjacent & ~np.eye(len(graph), dtype=bool)
    # colliders[x, y]: neighbors of x that are apart from y, each a v-structure once both point at x.
    colliders = adjacent.astype(np.float64) @ apart.astype(np.float64)
    extension = np.zeros_like(graph)
    remaining = np.ones(len(graph), dtype=bool)
    while remaining.any():
        cost = directed.sum(axis=1) + (undirected * colliders).sum(axis=1)  # of making each variable the last
        candidates = np.flatnonzero(remaining)[::-1]
        last = candidates[cost[candidates].argmin()]
        if strict and cost[last] > 0:
            raise GraphError(
                "Expected a graph with a consistent extension, got one where every DAG on its skeleton reverses "
                "an edge or adds a v-structure. Use strict=False to accept a DAG that does."
            )
        extension[:, last] = adjacent[:, last] & remaining
        colliders -= np.outer(adjacent[:, last], apart[last])
        remaining[last] = False
        for edges in (directed, undirected, adjacent):
            edges[last], edges[:, last] = False, False
    return extension
