"""DAGs for partially directed graphs, against brute force over all of four variables."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations, permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from causal_arrow.errors import GraphError
from causal_arrow.graphs.dag import cpdag, is_acyclic, skeleton_of
from causal_arrow_lab.benchmarks.methods.protocol import extend_cpdag

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
    """What Markov equivalent DAGs share (Verma and Pearl): the skeleton and the v-structures."""
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


def test_the_extension_of_a_cpdag_is_in_its_class() -> None:
    for members in equivalence_classes(4).values():
        extension = extend_cpdag(cpdag(members[0]))
        assert any(np.array_equal(extension, graph) for graph in members)


@given(st.integers(1, 30), st.floats(0, 1), st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_extensions_are_markov_equivalent_to_the_original(variables: int, density: float, seed: int) -> None:
    graph = random_dag(variables, density, np.random.default_rng(seed))
    extension = extend_cpdag(cpdag(graph))
    assert is_acyclic(extension)
    assert signature(extension) == signature(graph)


def test_a_partially_directed_graph_extends_exactly_when_a_consistent_dag_exists() -> None:
    by_signature = equivalence_classes(4)
    pairs = list(combinations(range(4), 2))
    extendable = 0
    for marks in product(((0, 0), (0, 1), (1, 0), (1, 1)), repeat=len(pairs)):
        pdag = np.zeros((4, 4), dtype=bool)
        for (j, k), (forward, backward) in zip(pairs, marks, strict=True):
            pdag[j, k], pdag[k, j] = forward, backward
        directed = pdag & ~pdag.T
        consistent = [graph for graph in by_signature.get(signature(pdag), []) if not (directed & ~graph).any()]
        near_miss = extend_cpdag(pdag, strict=False)
        assert is_acyclic(near_miss)
        assert np.array_equal(skeleton_of(near_miss), skeleton_of(pdag))
        if consistent:
            extendable += 1
            assert any(np.array_equal(extend_cpdag(pdag), graph) for graph in consistent)
            assert any(np.array_equal(near_miss, graph) for graph in consistent)
        else:
            with pytest.raises(GraphError, match="strict=False"):
                extend_cpdag(pdag)
    assert 0 < extendable < 4 ** len(pairs)


def test_a_near_miss_keeps_what_it_can() -> None:
    # A directed cycle 0 → 1 → 2 → 0 and, apart from it, an innocent 3 → 4: one edge must turn, and only one.
    pdag = np.zeros((5, 5), dtype=bool)
    pdag[[0, 1, 2, 3], [1, 2, 0, 4]] = True
    assert (extend_cpdag(pdag, strict=False) & ~pdag).sum() == 1
