"""Graphs: every claim about orders, cycles and equivalence classes, against brute force where there are few graphs."""

from __future__ import annotations

import subprocess
import sys
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from causal_arrow.errors import GraphError
from causal_arrow.graphs import dag
from every_dag import Graph, all_dags, equivalence_classes, random_dag, signature, v_structures


def cpdag_by_meek_rules(graph: Graph) -> Graph:
    """The textbook way, slowly: orient the v-structures, then apply Meek's rules to one edge at a time."""
    pattern = graph | graph.T
    for i, k, j in v_structures(graph):
        pattern[k, i] = pattern[k, j] = False

    def arrow(j: int, k: int) -> bool:
        return bool(pattern[j, k] and not pattern[k, j])

    def line(j: int, k: int) -> bool:
        return bool(pattern[j, k] and pattern[k, j])

    def apart(j: int, k: int) -> bool:
        return j != k and not pattern[j, k] and not pattern[k, j]

    def forced(j: int, k: int) -> bool:
        others = [i for i in range(len(graph)) if i not in (j, k)]
        return (
            any(arrow(i, j) and apart(i, k) for i in others)
            or any(arrow(j, i) and arrow(i, k) for i in others)
            or any(
                apart(h, i) and line(j, h) and line(j, i) and arrow(h, k) and arrow(i, k)
                for h, i in combinations(others, 2)
            )
        )

    changed = True
    while changed:
        changed = False
        for j, k in np.argwhere(pattern & pattern.T):
            if line(j, k) and forced(j, k):
                pattern[k, j] = False
                changed = True
    return pattern


# Orders


@pytest.mark.parametrize("variables", [1, 2, 3, 4])
def test_every_dag_is_its_skeleton_directed_along_its_topological_order(variables: int) -> None:
    for graph in all_dags(variables):
        order = dag.topological_order(graph)
        assert sorted(order) == list(range(variables))
        position = dag.positions_in(order)
        assert np.array_equal(dag.skeleton_of(graph) & (position[:, None] < position), graph)


def test_a_batch_of_graphs_agrees_with_the_graphs_one_by_one() -> None:
    rng = np.random.default_rng(0)
    graphs = rng.random((40, 6, 6)) < rng.uniform(0.05, 0.4, (40, 1, 1))
    graphs[:, np.arange(6), np.arange(6)] = False
    acyclic = dag.is_acyclic(graphs)
    assert acyclic.any()
    assert not acyclic.all()
    assert acyclic.tolist() == [dag.is_acyclic(graph) for graph in graphs]
    for function in (dag.skeleton_of, dag.transitive_closure):
        assert np.array_equal(function(graphs), [function(graph) for graph in graphs])


def test_positions_are_the_inverse_of_the_order() -> None:
    orders = np.array([[2, 0, 1], [0, 2, 1]])
    assert np.array_equal(np.take_along_axis(orders, dag.positions_in(orders), axis=-1), [[0, 1, 2]] * 2)


# Cycles and paths


def test_acyclic_means_one_of_the_dags_among_all_graphs_on_three_variables() -> None:
    dags = {graph.tobytes() for graph in all_dags(3)}
    assert len(dags) == 25  # OEIS A003024
    places = [(j, k) for j in range(3) for k in range(3) if j != k]
    for edges in product((False, True), repeat=6):
        graph = np.zeros((3, 3), dtype=bool)
        for place, edge in zip(places, edges, strict=True):
            graph[place] = edge
        expected = graph.tobytes() in dags
        assert dag.is_acyclic(graph) is expected
        assert (dag.find_cycle(graph) is None) is expected


@pytest.mark.parametrize("variables", [1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33])
def test_the_longest_cycle_is_seen_at_every_size(variables: int) -> None:
    ring = np.roll(np.eye(variables), 1, axis=1)
    path = np.triu(ring, 1)
    assert not dag.is_acyclic(ring)
    assert dag.is_acyclic(path)
    assert np.array_equal(dag.is_acyclic(np.stack([ring, path])), [False, True])
    assert np.array_equal(dag.transitive_closure(path), np.triu(np.ones_like(path), 1))
    assert dag.transitive_closure(ring).all()


@given(st.integers(2, 12), st.floats(0.05, 0.6), st.integers(0, 2**32 - 1))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_a_named_cycle_is_a_cycle(variables: int, density: float, seed: int) -> None:
    graph = np.random.default_rng(seed).random((variables, variables)) < density
    np.fill_diagonal(graph, False)
    cycle = dag.find_cycle(graph)
    assert (cycle is None) == dag.is_acyclic(graph)
    if cycle is None:
        dag.ensure_dag(graph)
        return
    assert len(set(cycle)) == len(cycle) >= 2
    assert all(graph[j, k] for j, k in zip(cycle, cycle[1:] + cycle[:1], strict=True))
    with pytest.raises(GraphError, match="cycle"):
        dag.topological_order(graph)


# What is not a graph


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.zeros((2, 3)), r"square.*\(2, 3\)"),
        (np.zeros(4), r"square.*\(4,\)"),
        ([[0, 0.7], [0, 0]], r"0\.7 at \[0, 1\].*Threshold"),
        ([[0, np.nan], [0, 0]], r"nan at \[0, 1\]"),
        ([[0, -1], [0, 0]], r"-1 at \[0, 1\]"),
        ([[0, 1], [0, 1]], "Variable 1 points to itself"),
        ([[0, 1, 0], [0, 0, 1], [1, 0, 0]], "cycle 0 → 1 → 2 → 0"),
    ],
)
def test_what_is_not_a_dag_is_refused_with_the_reason(matrix: object, message: str) -> None:
    for function in (dag.ensure_dag, dag.topological_order, dag.cpdag):
        with pytest.raises(GraphError, match=message):
            function(matrix)


def test_arguments_are_never_changed() -> None:
    graph = np.array([[0, 1, 1], [0, 0, 1], [0, 0, 0]], dtype=bool)
    before = graph.copy()
    pattern = dag.cpdag(graph)
    pattern_before = pattern.copy()
    checked = dag.ensure_graph(graph)
    checked[:] = False
    dag.skeleton_of(graph)[:] = False
    assert np.array_equal(graph, before)
    assert np.array_equal(pattern, pattern_before)


# Equivalence classes


@pytest.mark.parametrize(("variables", "dags", "classes"), [(2, 3, 2), (3, 25, 11), (4, 543, 185)])
def test_cpdag_is_the_union_of_the_equivalence_class(variables: int, dags: int, classes: int) -> None:
    grouped = equivalence_classes(variables)
    assert sum(map(len, grouped.values())) == dags  # OEIS A003024
    assert len(grouped) == classes  # OEIS A007984
    for members in grouped.values():
        union = np.any(members, axis=0)
        for graph in members:
            assert np.array_equal(dag.cpdag(graph), union)


def test_markov_equivalence_is_same_skeleton_and_v_structures() -> None:
    graphs = all_dags(3)
    for first, second in product(graphs, graphs):
        assert dag.markov_equivalent(first, second) == (signature(first) == signature(second))


@pytest.mark.parametrize("density", [0.05, 0.15, 0.3, 0.6, 0.9])
def test_cpdag_agrees_with_meek_rules_on_larger_graphs(density: float) -> None:
    rng = np.random.default_rng(1)
    for variables in (6, 8, 10, 12):
        for _ in range(5):
            graph = random_dag(variables, density, rng)
            assert np.array_equal(dag.cpdag(graph), cpdag_by_meek_rules(graph))


def test_the_module_does_not_import_torch() -> None:
    program = "import sys; import causal_arrow.graphs.dag; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
