"""Laws of the suites for development: tables with categories, holes, experiments, hidden causes, errors, and twins."""

from __future__ import annotations

import gzip
from importlib import resources
from typing import Any

import networkx as nx
import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import average_precision_score

from causal_arrow import examples as sachs
from causal_arrow.errors import ArrowError
from causal_arrow.graphs import dag
from causal_arrow_lab.benchmarks import generated, networks
from causal_arrow_lab.benchmarks.datasets import Dataset, shuffle_variables, unnamed
from causal_arrow_lab.benchmarks.generated import latent_projection
from causal_arrow_lab.benchmarks.methods import Estimate
from causal_arrow_lab.benchmarks.networks import DISCRETE_NETWORKS, load_discrete_network
from causal_arrow_lab.benchmarks.suites import DEVELOPMENT_SUITES, SUITES, suite
from causal_arrow_lab.benchmarks.worker import FURTHER, compare_twins
from summaries import MEASURES


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_suites_for_development_say_so_and_none_of_them_is_frozen() -> None:
    assert len(DEVELOPMENT_SUITES) == 12
    for built in DEVELOPMENT_SUITES:
        assert SUITES[built.name] is built
        assert "For development" in built.description
        assert not built.frozen
        assert set(built.shown) <= set(MEASURES)
        assert set(built.further_measures) <= set(FURTHER)


# Discrete networks


@pytest.mark.parametrize("name", ["ASIA", "CHILD", "ALARM"])
def test_our_copies_of_the_discrete_networks_are_those_of_pgmpy(name: str) -> None:
    reader = pytest.importorskip("pgmpy.readwrite", reason="the networks come from pgmpy").BIFReader
    packed = resources.files("pgmpy") / "utils" / "example_models" / f"{name.lower()}.bif.gz"
    model = reader(string=gzip.decompress(packed.read_bytes()).decode()).get_model()
    network = load_discrete_network(name)
    assert set(network.names) == set(model.nodes())
    for k, variable in enumerate(network.names):
        expected = model.get_cpds(variable)
        assert network.levels[k] == tuple(map(str, expected.state_names[variable]))
        assert [variable, *(network.names[parent] for parent in network.parents[k])] == expected.variables
        np.testing.assert_allclose(np.moveaxis(network.tables[k], -1, 0), expected.values, rtol=1e-9)


@pytest.mark.parametrize("name", DISCRETE_NETWORKS)
def test_every_discrete_network_is_a_dag_of_probabilities(name: str) -> None:
    network = load_discrete_network(name)
    assert dag.is_acyclic(network.adjacency)
    for table in network.tables:
        assert table.min() >= 0
        np.testing.assert_allclose(table.sum(axis=-1), 1.0, atol=2e-7)


def test_observations_of_a_network_follow_its_conditional_probabilities() -> None:
    network = load_discrete_network("CHILD")
    codes = network.observe(40_000, rng(1))
    for k, parents in enumerate(network.parents):
        observed = np.zeros(network.tables[k].shape)
        np.add.at(observed, tuple(codes[:, place] for place in (*parents, k)), 1)
        visits = observed.sum(axis=-1, keepdims=True)
        error = (observed - visits * network.tables[k]) / np.sqrt(np.maximum(visits * network.tables[k], 1.0))
        assert np.abs(error).max() < 5
        assert not observed[network.tables[k] == 0].any()


def test_levels_come_in_random_order_and_their_names_follow_them() -> None:
    row = suite("discrete").row("SURVEY-2000")
    network = load_discrete_network("SURVEY")
    orders, shares = set(), []
    for index in range(8):
        dataset = row.dataset(index)
        place = dataset.names.index("E")
        assert dataset.columns is not None
        orders.add(dataset.columns[place].levels)
        high = dataset.columns[place].levels.index("high")
        shares.append((dataset.data[:, place] == high).mean())
        assert set(dataset.columns[place].levels) == set(network.levels[network.names.index("E")])
    assert len(orders) == 2
    assert np.ptp(shares) < 0.06


def test_a_variable_that_never_varies_is_left_out_with_its_edges() -> None:
    dataset = networks.draw_discrete_dataset(rng(), network="WATER", observations=500)
    left_out = dataset.details["constant_variables"]
    assert left_out > 0
    assert len(dataset.names) == len(load_discrete_network("WATER").names) - left_out
    assert (dataset.data.min(axis=0) < dataset.data.max(axis=0)).all()


def test_an_unknown_network_is_named_in_the_error() -> None:
    with pytest.raises(ArrowError, match="ALARM"):
        load_discrete_network("ALARN")


# Kinds of columns


@pytest.mark.parametrize(
    ("mixture", "kinds"),
    [
        ("continuous", {"number"}),
        ("rounded", {"number"}),
        ("ordinal", {"ordered"}),
        ("nominal", {"binary", "category"}),
        ("half-and-half", {"number", "binary", "category"}),
    ],
)
def test_columns_hold_what_the_row_says_and_codes_are_codes_of_levels(mixture: str, kinds: set[str]) -> None:
    dataset = suite("mixed").row(mixture).dataset(0)
    assert {column.kind for column in dataset.table.columns} == kinds
    numbers = [column.kind == "number" for column in dataset.table.columns]
    assert sum(numbers) == {"half-and-half": 10, "continuous": 20, "rounded": 20}.get(mixture, 0)
    for column, values in zip(dataset.table.columns, dataset.data.T, strict=True):
        if column.kind != "number":
            assert sorted(set(values)) == list(range(len(column.levels)))
        elif mixture == "rounded":
            assert len(set(values)) < 20


def test_causes_explain_the_share_of_variance_that_was_asked_for() -> None:
    adjacency = np.zeros((3, 3), dtype=bool)
    adjacency[[0, 1], 2] = True
    shown = generated.solve_equations(adjacency, 20_000, rng(), explained={2: 0.6})
    design = np.column_stack([shown[0].values, shown[1].values, np.ones(20_000)])
    residual = shown[2].values - design @ np.linalg.lstsq(design, shown[2].values, rcond=None)[0]
    assert 1 - residual.var() / shown[2].values.var() == pytest.approx(0.6, abs=0.02)


@pytest.mark.parametrize("noise", generated.NOISES)
def test_noise_has_mean_0_and_variance_1(noise: str) -> None:
    values = generated.NOISES[noise](rng(), 100_000)
    assert values.mean() == pytest.approx(0, abs=0.02)
    assert values.var() == pytest.approx(1, abs=0.03)


def test_random_graphs_are_acyclic_and_have_half_to_two_edges_per_variable() -> None:
    graphs = [generated.random_graph(20, rng(seed)) for seed in range(60)]
    edges = [int(graph.sum()) for graph in graphs]
    assert all(dag.is_acyclic(graph) for graph in graphs)
    assert 10 <= min(edges) < 16
    assert 34 < max(edges) <= 40


# Holes


@pytest.mark.parametrize("reason", generated.HOLES)
def test_holes_are_as_many_as_the_row_says_and_change_nothing_else(reason: str) -> None:
    whole = generated.draw_missing_dataset(rng(3), missing_share=0.0)
    holey = generated.draw_missing_dataset(rng(3), missing_by=reason, missing_share=0.3)
    observed = ~np.isnan(holey.data)
    assert observed.mean() == pytest.approx(0.7, abs=0.02)
    np.testing.assert_array_equal(holey.data[observed], whole.data[observed])


def test_what_is_missing_depends_on_the_column_itself_only_where_the_row_says_so() -> None:
    data = rng(4).standard_normal((4000, 6))
    for reason, draw in generated.HOLES.items():
        holes = draw(data, 0.3, rng(5))
        related = [abs(stats.pointbiserialr(holes[:, k], data[:, k]).statistic) for k in range(6)]
        assert (min(related) > 0.3) if reason == "itself" else (max(related) < 0.07)


# Experiments


def test_half_of_the_observations_have_one_variable_set_each_in_turn() -> None:
    dataset = suite("interventional").row("linear-200x10").dataset(0)
    assert dataset.intervened is not None
    assert dataset.intervened.sum(axis=1).tolist().count(1) == 100
    assert dataset.intervened.sum(axis=0).tolist() == [10] * 10


def test_a_variable_that_is_set_does_not_depend_on_its_causes() -> None:
    adjacency = np.array([[0, 1], [0, 0]], dtype=bool)
    intervened = np.zeros((4000, 2), dtype=bool)
    intervened[2000:, 1] = True
    cause, effect = generated.solve_equations(adjacency, 4000, rng(), intervened=intervened, explained={1: 0.8})
    assert abs(np.corrcoef(cause.values[:2000], effect.values[:2000])[0, 1]) > 0.8
    assert abs(np.corrcoef(cause.values[2000:], effect.values[2000:])[0, 1]) < 0.08


def test_in_class_tables_a_set_variable_follows_its_own_law_and_not_its_causes() -> None:
    dataset = generated.draw_class_dataset(rng(3), observations=20000, variables=4)
    assert dataset.intervened is not None
    assert dataset.adjacency.any()
    free, data = ~dataset.intervened.any(axis=1), dataset.data
    for cause, effect in zip(*np.nonzero(dataset.adjacency), strict=True):
        was_set = dataset.intervened[:, effect]
        assert data[was_set, effect].std() == pytest.approx(data[free, effect].std(), rel=0.1)
        assert abs(np.corrcoef(data[was_set, cause], data[was_set, effect])[0, 1]) < 0.08
    strongest = max(abs(np.corrcoef(data[free], rowvar=False)[dataset.adjacency]))
    assert strongest > 0.3


def test_the_conditions_of_sachs_say_where_each_acts() -> None:
    _, names = sachs.load_sachs()
    counts = dict(zip(names, sachs.load_conditions().sum(axis=0).tolist(), strict=True))
    assert {name for name, count in counts.items() if count} == {"akt", "pkc", "pip2", "mek", "pka"}
    assert counts["akt"] == (2665 - 1755 + 1) + (5845 - 4998 + 1)
    assert not sachs.load_conditions()[: sachs.OBSERVATIONAL].any()
    dataset = suite("interventional").row("sachs-raw").dataset(0)
    assert dataset.intervened is not None
    assert dataset.intervened[:, dataset.names.index("pka")].sum() == pytest.approx(counts["pka"] * 1000 / 7466, abs=40)


# Hidden causes


def projected_by_paths(adjacency: np.ndarray, kept: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """What is left of a graph, path by path."""
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(adjacency)))
    graph.add_edges_from(np.argwhere(adjacency).tolist())

    def unseen(start: int, end: int) -> bool:
        return any(not set(path[1:-1]) & set(kept) for path in nx.all_simple_paths(graph, start, end))

    hidden = [variable for variable in range(len(adjacency)) if variable not in kept]
    directed = np.array([[j != k and unseen(j, k) for k in kept] for j in kept])
    shared = [[j != k and any(unseen(h, j) and unseen(h, k) for h in hidden) for k in kept] for j in kept]
    return directed, np.array(shared)


def test_the_latent_projection_follows_paths_through_hidden_variables() -> None:
    for seed in range(20):
        adjacency = generated.random_graph(8, rng(seed))
        kept = sorted(rng(seed).choice(8, size=5, replace=False).tolist())
        graph = latent_projection(adjacency, kept)
        directed, bidirected = projected_by_paths(adjacency, kept)
        np.testing.assert_array_equal(graph.directed, directed)
        np.testing.assert_array_equal(graph.bidirected, bidirected)


@pytest.mark.parametrize("row", suite("hidden").rows(), ids=lambda row: row.name)
def test_hidden_variables_are_gone_and_confounded_pairs_are_known(row: Any) -> None:
    dataset = row.dataset(0)
    assert dataset.confounded is not None
    assert dataset.confounded.any()
    np.testing.assert_array_equal(dataset.confounded, dataset.confounded.T)
    assert dataset.details["hidden"] > 0
    assert dataset.data.shape[1] == len(dataset.confounded)


# Instruments and errors


def test_instruments_read_one_variable_each_and_cause_nothing() -> None:
    dataset = generated.draw_instruments_dataset(rng(), instruments=2)
    assert len(dataset.names) == 18
    assert not dataset.adjacency[6:].any()
    assert (dataset.adjacency[:, 6:].sum(axis=0) == 1).all()
    for instrument in range(6, 18):
        (cause,) = np.flatnonzero(dataset.adjacency[:, instrument])
        assert stats.spearmanr(dataset.data[:, cause], dataset.data[:, instrument]).statistic > 0.9
    alone = generated.draw_instruments_alone(rng(), instruments=2)
    assert not alone.adjacency.any()
    assert alone.confounded is not None
    assert all(alone.confounded[place, place + 1] for place in range(0, 12, 2))


def test_errors_of_measurement_are_the_share_of_variance_that_the_row_says() -> None:
    true = generated.draw_measured_dataset(rng(6), error_share=0.0)
    measured = generated.draw_measured_dataset(rng(6), error_share=0.3)
    np.testing.assert_array_equal(true.adjacency, measured.adjacency)
    related = [np.corrcoef(a, b)[0, 1] for a, b in zip(true.data.T, measured.data.T, strict=True)]
    assert np.mean(related) == pytest.approx(np.sqrt(0.7), abs=0.01)
    np.testing.assert_allclose(measured.data.var(axis=0).mean(), 1.0, atol=0.05)


def test_independent_columns_have_the_laws_of_their_row_and_no_relation() -> None:
    zeros = suite("independent").row("80%-zeros").dataset(0)
    assert (zeros.data == 0).mean() == pytest.approx(0.8, abs=0.03)
    rare = suite("independent").row("rare-binary").dataset(0)
    assert set(np.unique(rare.data)) == {0.0, 1.0}
    assert rare.data.mean(axis=0).min() >= 0.004
    assert rare.data.mean(axis=0).max() < 0.15
    assert {column.kind for column in rare.table.columns} == {"binary"}
    for row in suite("independent").rows():
        correlations = np.corrcoef(stats.rankdata(row.dataset(0).data, axis=0), rowvar=False) - np.eye(8)
        assert np.abs(correlations).max() < 0.2


# Textbook graphs


def test_textbook_graphs_are_what_textbooks_call_so() -> None:
    graphs = generated.TEXTBOOK_GRAPHS
    middle_first = np.ix_([1, 0, 2], [1, 0, 2])  # a fork starts at its middle
    assert dag.markov_equivalent(graphs["chain"], graphs["fork"][middle_first])
    assert graphs["collider"][:, 2].sum() == 2
    assert graphs["mediator"].sum() == 3
    assert graphs["diamond"][:, 3].sum() == graphs["diamond"][0].sum() == 2
    assert graphs["M"][:, 2].sum() == 2
    assert graphs["star"][0].sum() == 5
    assert {len(graph) for graph in graphs.values()} == {3, 4, 5, 6}


def test_only_linear_equations_with_normal_noise_ask_for_no_more_than_the_class() -> None:
    for row in suite("textbook").rows():
        for index in range(3):
            details = row.dataset(index).details
            assert (details["known"] == "class") == (details["law"] == "normal")


# Twins


@pytest.mark.parametrize("row", suite("symmetries").rows()[::3], ids=lambda row: row.name)
def test_a_twin_has_the_shared_variables_in_the_same_order(row: Any) -> None:
    dataset = row.dataset(0)
    assert dataset.twin is not None
    shared = [name for name in dataset.names if name in dataset.twin.names]
    assert [name for name in dataset.twin.names if name in dataset.names] == shared
    assert len(shared) >= len(dataset.names) - 1


def test_twins_differ_by_what_the_row_says_alone() -> None:
    rows = suite("symmetries")
    negated = rows.row("wine-negated").dataset(0)
    assert negated.twin is not None
    np.testing.assert_array_equal(negated.twin.data, -negated.data)
    signs = rows.row("wine-signs").dataset(0)
    assert signs.twin is not None
    np.testing.assert_array_equal(np.abs(signs.twin.data), np.abs(signs.data))
    noise = rows.row("wine-noise-column").dataset(0)
    assert noise.twin is not None
    np.testing.assert_array_equal(noise.twin.data[:, :-1], noise.data)
    assert noise.twin.names[-1] == "noise"
    fewer = rows.row("wine-90%-of-rows").dataset(0)
    assert fewer.twin is not None
    assert len(fewer.twin.data) == round(0.9 * len(fewer.data))
    without = rows.row("wine-without-isolated").dataset(0)
    assert without.twin is not None
    assert len(without.twin.names) == len(without.names) - 1


# Measures


def answer(adjacency: Any, probabilities: Any = None, confounding: Any = None) -> Estimate:
    graph = np.array(adjacency, dtype=bool)
    return Estimate(graph, graph.astype(float), probabilities, 0.0, confounding)


def test_the_precision_of_hidden_pairs_is_that_of_scikit_learn_over_unordered_pairs() -> None:
    random = rng(7)
    upper = np.triu_indices(9, k=1)
    truth, scores = np.zeros((9, 9), dtype=bool), np.zeros((9, 9))
    truth[upper], scores[upper] = random.random(36) < 0.3, np.round(random.random(36), 1)
    dataset = Dataset(np.zeros((2, 9)), np.zeros((9, 9), dtype=bool), tuple("abcdefghi"), confounded=truth | truth.T)
    expected = average_precision_score(truth[upper], scores[upper])
    assert FURTHER["hidden_ap"](dataset, answer(np.zeros((9, 9)), confounding=scores + scores.T)) == pytest.approx(
        expected
    )
    assert np.isnan(FURTHER["hidden_ap"](dataset, answer(np.zeros((9, 9)))))


def test_right_is_the_class_or_the_graph_by_what_can_be_known() -> None:
    chain = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]], dtype=bool)
    fork = np.array([[0, 0, 0], [1, 0, 1], [0, 0, 0]], dtype=bool)
    collider = np.array([[0, 1, 0], [0, 0, 0], [0, 1, 0]], dtype=bool)
    for known, expected in (("class", [1, 1, 0]), ("graph", [1, 0, 0])):
        dataset = unnamed(np.zeros((2, 3)), chain, known=known)
        assert [FURTHER["right"](dataset, answer(graph)) for graph in (chain, fork, collider)] == expected
        assert [FURTHER["class_right"](dataset, answer(graph)) for graph in (chain, fork, collider)] == [1, 1, 0]
        assert [FURTHER["graph_right"](dataset, answer(graph)) for graph in (chain, fork, collider)] == [1, 0, 0]
    cycle = np.array([[0, 1], [1, 0]])
    assert FURTHER["class_right"](unnamed(np.zeros((2, 2)), np.eye(2, k=1, dtype=bool)), answer(cycle)) == 0


def test_expected_edges_are_the_sum_of_the_probabilities() -> None:
    probabilities = rng().random((4, 4)) * (1 - np.eye(4))
    dataset = unnamed(np.zeros((2, 4)), np.zeros((4, 4), dtype=bool))
    assert FURTHER["expected_edges"](dataset, answer(np.eye(4, k=1), probabilities)) == probabilities.sum()


def test_twins_are_compared_on_the_variables_they_share_whatever_their_order() -> None:
    names = ("a", "b", "c")
    twin = Dataset(np.zeros((2, 4)), np.zeros((4, 4), dtype=bool), ("c", "noise", "a", "b"))
    dataset = Dataset(np.zeros((2, 3)), np.zeros((3, 3), dtype=bool), names, twin=twin)
    first = np.zeros((3, 3))
    first[0, 1] = first[1, 2] = 1  # a → b → c
    second = np.zeros((4, 4))
    second[2, 3] = second[0, 3] = second[1, 0] = 1  # a → b ← c, noise → c
    compared = compare_twins(dataset, answer(first, first * 0.9), answer(second, second * 0.8))
    assert compared["edges_changed"] == 1
    assert compared["share_changed"] == 0.5
    assert compared["estimated_edges"] == 2
    assert compared["largest_change"] == pytest.approx(0.9)


def test_shuffling_carries_kinds_experiments_and_hidden_pairs_with_their_variables() -> None:
    dataset = generated.draw_network_with_hidden_variables(rng(), network="ALARM", observations=200)
    shuffled = shuffle_variables(dataset, rng(1))
    assert dataset.columns is not None
    assert shuffled.columns is not None
    assert shuffled.confounded is not None
    assert dataset.confounded is not None
    assert shuffled.names != dataset.names
    for place, name in enumerate(shuffled.names):
        before = dataset.names.index(name)
        assert shuffled.columns[place] == dataset.columns[before]
        np.testing.assert_array_equal(shuffled.data[:, place], dataset.data[:, before])
        partners = {shuffled.names[other] for other in np.flatnonzero(shuffled.confounded[place])}
        assert partners == {dataset.names[other] for other in np.flatnonzero(dataset.confounded[before])}
