"""Metrics on graphs with known answers, and against independent implementations on random graphs."""

import math

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from causal_arrow.errors import GraphError
from causal_arrow.graphs import dag, metrics


def graph(variables: int, *edges: tuple[int, int]) -> np.ndarray:
    adjacency = np.zeros((variables, variables), dtype=bool)
    for cause, effect in edges:
        adjacency[cause, effect] = True
    return adjacency


def random_dag(generator: np.random.Generator, variables: int) -> np.ndarray:
    order = generator.permutation(variables)
    edges = np.triu(generator.random((variables, variables)) < generator.uniform(0, 0.8), k=1)
    return edges[np.ix_(order, order)]


def random_dag_pairs(count: int, largest: int, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    generator = np.random.default_rng(seed)
    sizes = generator.integers(2, largest, size=count, endpoint=True)
    return [(random_dag(generator, int(p)), random_dag(generator, int(p))) for p in sizes]


CHAIN = graph(3, (0, 1), (1, 2))
COLLIDER = graph(3, (0, 1), (2, 1))
EMPTY = graph(3)


# Structural Hamming distance


@pytest.mark.parametrize(
    ("estimate", "distance"),
    [
        pytest.param(CHAIN, 0, id="equal"),
        pytest.param(graph(3, (0, 1)), 1, id="missing edge"),
        pytest.param(graph(3, (0, 1), (1, 2), (0, 2)), 1, id="extra edge"),
        pytest.param(graph(3, (0, 1), (2, 1)), 1, id="reversed edge"),
        pytest.param(graph(3, (0, 1), (1, 2), (2, 1)), 1, id="edge in both directions"),
        pytest.param(graph(3, (0, 1), (1, 2), (0, 2), (2, 0)), 1, id="both directions where there is none"),
        pytest.param(graph(3, (1, 0), (2, 1), (2, 0)), 3, id="everything wrong"),
    ],
)
def test_shd_counts_each_differing_pair_once(estimate: np.ndarray, distance: int) -> None:
    assert metrics.shd(CHAIN, estimate) == distance
    assert metrics.shd(estimate, CHAIN) == distance


def test_empty_answer_has_normalized_shd_one() -> None:
    assert metrics.normalized_shd(CHAIN, EMPTY) == 1
    assert metrics.normalized_shd(CHAIN, graph(3, (0, 1))) == 0.5


def test_measures_that_an_empty_true_graph_leaves_undefined_are_nan() -> None:
    assert math.isnan(metrics.normalized_shd(EMPTY, CHAIN))
    assert math.isnan(metrics.average_precision(EMPTY, np.ones((3, 3))))
    assert math.isnan(metrics.orientation_accuracy(EMPTY, CHAIN))


# F1, of edges and of adjacencies


def test_f1_is_the_harmonic_mean_of_precision_and_recall() -> None:
    truth = graph(4, (0, 1), (1, 2), (2, 3))
    estimate = graph(4, (0, 1), (2, 1), (0, 3), (0, 2))  # 1 right of 4, of 3 true
    precision, recall = 1 / 4, 1 / 3
    assert metrics.f1(truth, estimate) == pytest.approx(2 * precision * recall / (precision + recall))


def test_f1_of_two_empty_graphs_is_one_and_of_one_empty_graph_is_zero() -> None:
    for measure in (metrics.f1, metrics.skeleton_f1):
        assert measure(EMPTY, EMPTY) == 1
        assert measure(CHAIN, EMPTY) == 0
        assert measure(EMPTY, CHAIN) == 0


def test_skeleton_f1_ignores_direction() -> None:
    assert metrics.skeleton_f1(CHAIN, CHAIN.T) == 1
    assert metrics.skeleton_f1(CHAIN, graph(3, (1, 0), (0, 2))) == 0.5
    assert metrics.skeleton_f1(CHAIN, graph(3, (1, 0), (0, 1))) == pytest.approx(2 / 3)


def test_an_undirected_edge_counts_once_in_either_graph() -> None:
    partly = graph(3, (0, 1), (1, 0), (1, 2))  # 0 − 1 → 2
    directed = graph(3, (1, 0), (1, 2))
    for truth, estimate in ((partly, directed), (directed, partly)):
        assert metrics.normalized_shd(truth, estimate) == 0.5
        assert metrics.orientation_accuracy(truth, estimate) == 0.5
    assert metrics.orientation_accuracy(partly, partly) == 1


def test_orientation_accuracy_counts_found_edges_only() -> None:
    truth = graph(4, (0, 1), (1, 2), (2, 3))
    assert metrics.orientation_accuracy(truth, graph(4, (0, 1), (2, 1), (0, 3))) == 0.5
    assert metrics.orientation_accuracy(truth, graph(4, (0, 1), (1, 0))) == 0  # not oriented is not right
    assert math.isnan(metrics.orientation_accuracy(truth, graph(4, (0, 3))))


# Average precision


def test_average_precision_of_a_perfect_ranking_is_one() -> None:
    assert metrics.average_precision(CHAIN, CHAIN * 0.3) == 1


def test_average_precision_of_equal_scores_is_the_share_of_edges() -> None:
    assert metrics.average_precision(CHAIN, np.full((3, 3), 0.2)) == pytest.approx(2 / 6)


def test_average_precision_ignores_the_diagonal() -> None:
    scores = CHAIN + np.diag([9.0, math.nan, 9.0])
    assert metrics.average_precision(CHAIN, scores) == 1


@pytest.mark.parametrize("decimals", [1, 12])
def test_average_precision_equals_scikit_learn_with_and_without_ties(decimals: int) -> None:
    generator = np.random.default_rng(1)
    for truth, _ in random_dag_pairs(200, largest=9, seed=2):
        scores = np.round(generator.normal(size=truth.shape), decimals)
        pairs = ~np.eye(len(truth), dtype=bool)
        if truth.any():
            expected = average_precision_score(truth[pairs], scores[pairs])
            assert metrics.average_precision(truth, scores) == pytest.approx(expected, abs=1e-12)


# Markov equivalence


def test_cpdag_shd_is_zero_between_equivalent_graphs() -> None:
    assert metrics.cpdag_shd(CHAIN, CHAIN.T) == 0
    assert metrics.shd(CHAIN, CHAIN.T) == 2


def test_cpdag_shd_counts_an_undirected_edge_against_a_directed_one() -> None:
    assert metrics.cpdag_shd(CHAIN, COLLIDER) == 2  # both edges undirected there, directed here
    assert metrics.cpdag_shd(CHAIN, EMPTY) == 2


# Structural intervention distance


@pytest.mark.parametrize(
    ("truth", "estimate", "distance"),
    [
        pytest.param(graph(2, (0, 1)), graph(2), 1, id="a missing edge hides one effect of two"),
        pytest.param(graph(2, (0, 1)), graph(2, (1, 0)), 2, id="a reversed edge hides both"),
        pytest.param(graph(2), graph(2, (0, 1)), 0, id="an extra edge does no harm"),
        # What goes against the arrows (1 on 0, 2 on 1, 2 on 0) is association, and taken for an effect.
        pytest.param(CHAIN, EMPTY, 3, id="chain, empty answer"),
        # The same for 1 on 0 and 1 on 2; 0 and 2 are independent, as they should be.
        pytest.param(COLLIDER, EMPTY, 2, id="collider, empty answer"),
        # 0 and 2 adjust for their common effect, which also makes them dependent on each other.
        pytest.param(COLLIDER, graph(3, (1, 0), (1, 2)), 6, id="collider taken for a fork"),
    ],
)
def test_sid_on_small_graphs(truth: np.ndarray, estimate: np.ndarray, distance: int) -> None:
    assert metrics.sid(truth, estimate) == distance


def test_sid_is_zero_for_every_dag_that_contains_the_truth() -> None:
    generator = np.random.default_rng(3)
    for _ in range(50):
        estimate = random_dag(generator, 7)
        truth = estimate & (generator.random(estimate.shape) < 0.6)
        assert metrics.sid(truth, estimate) == 0


def wrong_effects_in_a_linear_model(truth: np.ndarray, estimate: np.ndarray, generator: np.random.Generator) -> int:
    """SID by arithmetic: total effects of a random linear model against regressions on i and its estimated parents."""
    variables = len(truth)
    weights = np.where(truth, generator.normal(size=truth.shape), 0)
    total_effects = np.linalg.inv(np.eye(variables) - weights)  # [i, k]: effect of i on k
    covariance = total_effects.T @ np.diag(generator.uniform(0.5, 2, variables)) @ total_effects
    wrong = 0
    for i in range(variables):
        regressors = [i, *np.flatnonzero(estimate[:, i])]
        for k in set(range(variables)) - {i}:
            among = covariance[np.ix_(regressors, regressors)]
            effect = 0 if k in regressors else np.linalg.solve(among, covariance[regressors, k])[0]
            wrong += not math.isclose(effect, total_effects[i, k], rel_tol=1e-6, abs_tol=1e-8)
    return wrong


def test_sid_counts_the_wrong_effects_in_a_random_linear_model() -> None:
    generator = np.random.default_rng(4)
    for truth, estimate in random_dag_pairs(150, largest=7, seed=5):
        assert metrics.sid(truth, estimate) == wrong_effects_in_a_linear_model(truth, estimate, generator)


def test_sid_refuses_a_cycle() -> None:
    with pytest.raises(GraphError, match="cycle"):
        metrics.sid(CHAIN, graph(3, (0, 1), (1, 2), (2, 0)))


# Distances against gadjid, which is written in Rust by others


def test_distances_equal_gadjid_on_random_graphs() -> None:
    gadjid = pytest.importorskip("gadjid", reason="gadjid, the independent implementation, is not installed")
    for truth, estimate in random_dag_pairs(300, largest=14, seed=6):
        pair = truth.astype(np.int8), estimate.astype(np.int8)
        assert metrics.shd(truth, estimate) == gadjid.shd(*pair)[1]
        assert metrics.sid(truth, estimate) == gadjid.sid(*pair, edge_direction="from row to column")[1]
        assert metrics.cpdag_shd(truth, estimate) == gadjid.shd(*map(gadjid_cpdag, (truth, estimate)))[1]


def gadjid_cpdag(adjacency: np.ndarray) -> np.ndarray:
    """gadjid's convention: 1 for a directed edge, a single 2 for an undirected one."""
    cpdag = dag.cpdag(adjacency)
    undirected = cpdag & cpdag.T
    return ((cpdag & ~undirected) + 2 * np.triu(undirected)).astype(np.int8)


# All together


def test_evaluate_agrees_with_each_measure() -> None:
    truth, estimate = graph(4, (0, 1), (1, 2), (2, 3)), graph(4, (0, 1), (2, 1), (0, 3))
    scores = np.where(estimate, 0.7, 0.02)
    measured = metrics.evaluate(truth, estimate, scores=scores)
    assert measured == {
        "true_edges": 3,
        "estimated_edges": 3,
        "acyclic": 1,
        "shd": 3,
        "nshd": 1,
        "f1": pytest.approx(1 / 3),
        "ap": metrics.average_precision(truth, scores),
        "skeleton_f1": pytest.approx(2 / 3),
        "orientation_accuracy": 0.5,
        "cpdag_shd": metrics.cpdag_shd(truth, estimate),
        "sid": metrics.sid(truth, estimate),
    }
    assert metrics.evaluate(truth, estimate)["ap"] == metrics.average_precision(truth, estimate)
    assert metrics.evaluate(truth, estimate, scores=truth)["ap"] == 1


def test_evaluate_measures_a_cyclic_answer_without_what_needs_a_dag() -> None:
    measured = metrics.evaluate(CHAIN, graph(3, (0, 1), (1, 0)))
    assert measured["acyclic"] == 0
    assert measured["shd"] == 2
    assert math.isnan(measured["sid"])
    assert math.isnan(measured["cpdag_shd"])


def test_evaluate_two_variables_and_two_empty_graphs() -> None:
    measured = metrics.evaluate(graph(2), graph(2))
    assert measured["f1"] == 1
    assert measured["sid"] == 0
    assert math.isnan(measured["nshd"])
    assert metrics.evaluate(graph(2, (0, 1)), graph(2, (1, 0)))["nshd"] == 1


def test_sid_is_left_out_of_graphs_with_more_than_thirty_variables() -> None:
    assert math.isnan(metrics.evaluate(graph(31), graph(31))["sid"])
    assert metrics.evaluate(graph(30), graph(30))["sid"] == 0


def test_graphs_over_different_variables_are_refused() -> None:
    with pytest.raises(GraphError, match="same variables"):
        metrics.shd(graph(3), graph(4))
    with pytest.raises(GraphError, match="shape"):
        metrics.average_precision(graph(3), np.zeros((4, 4)))
    with pytest.raises(GraphError, match="nan"):
        metrics.average_precision(CHAIN, np.full((3, 3), math.nan))
