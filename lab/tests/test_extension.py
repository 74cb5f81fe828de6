"""DAGs for partially directed graphs, against brute force over all of four variables."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from causal_arrow.graphs.dag import cpdag, is_acyclic, skeleton_of
from causal_arrow_lab.benchmarks.methods.protocol import extend_cpdag
from every_dag import equivalence_classes, random_dag, signature


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


def test_a_partially_directed_graph_extends_to_a_consistent_dag_where_there_is_one() -> None:
    by_signature = equivalence_classes(4)
    pairs = list(combinations(range(4), 2))
    extendable = 0
    for marks in product(((0, 0), (0, 1), (1, 0), (1, 1)), repeat=len(pairs)):
        pdag = np.zeros((4, 4), dtype=bool)
        for (j, k), (forward, backward) in zip(pairs, marks, strict=True):
            pdag[j, k], pdag[k, j] = forward, backward
        directed = pdag & ~pdag.T
        consistent = [graph for graph in by_signature.get(signature(pdag), []) if not (directed & ~graph).any()]
        extension = extend_cpdag(pdag)
        assert is_acyclic(extension)
        assert np.array_equal(skeleton_of(extension), skeleton_of(pdag))
        extendable += bool(consistent)
        assert not consistent or any(np.array_equal(extension, graph) for graph in consistent)
    assert 0 < extendable < 4 ** len(pairs)


def test_a_near_miss_keeps_what_it_can() -> None:
    # A directed cycle 0 → 1 → 2 → 0 and, apart from it, an innocent 3 → 4: one edge must turn, and only one.
    pdag = np.zeros((5, 5), dtype=bool)
    pdag[[0, 1, 2, 3], [1, 2, 0, 4]] = True
    assert (extend_cpdag(pdag) & ~pdag).sum() == 1
