"""The laws of the benchmark suites: what is drawn, from what, and that it is the same for everybody."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import summaries
from causal_arrow import examples as sachs
from causal_arrow.errors import BenchmarkError
from causal_arrow.graphs import dag
from causal_arrow_lab.benchmarks import networks
from causal_arrow_lab.benchmarks.datasets import Dataset
from causal_arrow_lab.benchmarks.networks import LinearGaussianModel
from causal_arrow_lab.benchmarks.suites import SUITES, Suite, SuiteRow, suite

ALL_ROWS = [pytest.param(row, id=f"{row.suite}/{row.name}") for built in SUITES.values() for row in built.rows()]


def residuals(data: np.ndarray, adjacency: np.ndarray, variable: int) -> tuple[np.ndarray, np.ndarray]:
    """Least-squares coefficients of a variable on its parents, with intercept, and what is left over."""
    parents = np.flatnonzero(adjacency[:, variable])
    design = np.column_stack([data[:, parents], np.ones(len(data))])
    coefficients = np.linalg.lstsq(design, data[:, variable], rcond=None)[0]
    return coefficients, data[:, variable] - design @ coefficients


# Every suite


@pytest.mark.parametrize("row", ALL_ROWS)
def test_every_row_gives_a_finite_table_and_a_dag_over_its_variables(row: SuiteRow) -> None:
    dataset = row.dataset(0)
    observations, variables = dataset.data.shape
    assert dataset.data.dtype == np.float64
    assert np.isfinite(dataset.data[~np.isnan(dataset.data)]).all()
    assert np.isnan(dataset.data).any() == (row.settings.get("missing_share", 0) > 0)
    assert np.nanstd(dataset.data, axis=0).min() > 0
    assert dataset.adjacency.dtype == np.bool_
    assert dataset.adjacency.shape == (variables, variables)
    assert dag.is_acyclic(dataset.adjacency)
    assert len(set(dataset.names)) == variables
    assert dataset.table.names == dataset.names
    assert dataset.graph.variables == variables
    assert dataset.details["observations"] == observations
    assert dataset.details["edges"] == dataset.adjacency.sum()
    for setting, value in row.settings.items():
        assert dataset.details[setting] == value


@pytest.mark.parametrize(
    "name",
    [
        *("in-distribution", "shifted", "held-out", "networks", "herman", "sachs", "small", "confounded", "controls"),
        *("discrete", "mixed", "missing", "interventional", "hidden", "instruments", "measurement-error", "textbook"),
    ],
)
def test_suite_row_and_index_determine_the_dataset(name: str) -> None:
    row = suite(name).rows()[-1 if name == "missing" else 0]
    first, again, second = row.dataset(3), row.dataset(3), row.dataset(4)
    np.testing.assert_array_equal(first.data, again.data)
    np.testing.assert_array_equal(first.adjacency, again.adjacency)
    assert first.names == again.names
    assert first.data.shape != second.data.shape or not np.array_equal(first.data, second.data)


def test_seeds_do_not_change_from_version_to_version() -> None:
    assert suite("networks").row("ECOLI70").seed(0) == 16649532747875598720


def test_no_two_datasets_share_a_seed() -> None:
    seeds = [row.seed(index) for built in SUITES.values() for row in built.rows() for index in range(100)]
    assert len(set(seeds)) == len(seeds)


def test_row_names_are_unique_and_rows_know_their_suite() -> None:
    for name, built in SUITES.items():
        names = [row.name for row in built.rows()]
        assert len(set(names)) == len(names)
        assert {row.suite for row in built.rows()} == {name} == {built.name}


def test_unknown_suites_rows_and_indices_are_named_in_the_error() -> None:
    with pytest.raises(BenchmarkError, match="networks"):
        suite("network")
    with pytest.raises(BenchmarkError, match="ARTH150"):
        suite("networks").row("ARTH")
    with pytest.raises(BenchmarkError, match="no number 1"):
        suite("sachs").row("observational-raw").dataset(1)


def test_columns_are_shuffled_and_edges_follow_their_variables() -> None:
    network = networks.load_network("ECOLI70")
    edges = named_edges(Dataset(np.zeros((1, 46)), network.model.weights != 0, network.names))
    row = suite("networks").row("ECOLI70")
    datasets = [row.dataset(index) for index in range(20)]
    assert len({dataset.names for dataset in datasets}) == 20
    assert all(named_edges(dataset) == edges for dataset in datasets)


@pytest.mark.parametrize(("name", "row"), [("in-distribution", "p=50"), ("herman", "UUMC"), ("networks", "ARTH150")])
def test_column_order_says_nothing_about_the_causal_order(name: str, row: str) -> None:
    forward = backward = 0
    for index in range(30):
        adjacency = suite(name).row(row).dataset(index).adjacency
        forward += np.triu(adjacency).sum()
        backward += np.tril(adjacency).sum()
    assert forward + backward > 1000
    assert abs(forward - backward) / (forward + backward) < 0.15


def named_edges(dataset: Dataset) -> set[tuple[str, str]]:
    return {(dataset.names[j], dataset.names[k]) for j, k in np.argwhere(dataset.adjacency)}


def test_listing_suites_does_not_import_torch() -> None:
    command = "import sys; from causal_arrow_lab.benchmarks.suites import SUITES; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", command], check=False).returncode == 0


# Rows of the task distribution


def test_shapes_are_fixed_where_the_row_says_so_and_drawn_otherwise() -> None:
    over_n, over_p = suite("in-distribution").row("n=250"), suite("in-distribution").row("p=10")
    assert {over_n.dataset(index).data.shape[0] for index in range(8)} == {250}
    assert {over_p.dataset(index).data.shape[1] for index in range(8)} == {10}
    assert len({over_n.dataset(index).data.shape[1] for index in range(8)}) > 4
    assert len({over_p.dataset(index).data.shape[0] for index in range(8)}) > 4


def test_a_component_row_holds_that_component_only_and_the_other_rows_all() -> None:
    rows = suite("in-distribution")
    families = {rows.row("scale_free").dataset(index).details["graph_family"] for index in range(6)}
    mechanisms = {rows.row("linear").dataset(index).details["mechanism"] for index in range(6)}
    assert families == {"scale_free"}
    assert mechanisms == {"linear"}
    assert rows.row("uniform").dataset(0).details["noises"] == ["uniform"]
    mixed = [rows.row("n=100").dataset(index).details for index in range(20)]
    assert {details["graph_family"] for details in mixed} == {"erdos_renyi", "scale_free"}
    assert {details["mechanism"] for details in mixed} == {"linear", "mlp"}


def _details(rows: Suite, count: int) -> dict[str, list[Mapping[str, Any]]]:
    return {row.name: [row.dataset(index).details for index in range(count)] for row in rows.rows()}


def test_the_broad_mixture_holds_its_recipes_and_each_recipe_has_a_row_of_its_own() -> None:
    rows = suite("broad")
    drawn = _details(rows, 30)
    families = {name: {details["graph_family"] for details in several} for name, several in drawn.items()}
    weighted = {name: sum(details["mechanism"] == "mlp" for details in several) for name, several in drawn.items()}
    assert families["raw_equations"] == {"erdos_renyi", "scale_free"}
    assert families["widened"] > families["raw_equations"]
    assert weighted["raw_equations"] < weighted["mixture"]  # a quarter of the one, about two fifths of the other
    assert families["mixture"] & families["widened"] - families["raw_equations"]


def test_a_shift_replaces_what_it_names_and_nothing_else() -> None:
    for name, several in _details(suite("shifted"), 4).items():
        for details in several:
            assert (details["graph_family"] == "small_world") == (name in ("graphs", "all"))
            assert (details["mechanism"] == "splines") == (name in ("functions", "all"))
            assert (details["noises"] == ["gamma"]) == (name in ("noise", "all"))


def test_the_held_out_suite_has_a_row_for_each_held_out_component_and_one_for_all() -> None:
    from causal_arrow_lab.synthetic.recipes import HELD_OUT

    rows = suite("held-out")
    assert [row.name for row in rows.rows()] == [*(name for table in HELD_OUT.values() for name in table), "all"]
    held_out = {name for table in HELD_OUT.values() for name in table}
    for name, several in _details(rows, 4).items():
        for details in several:
            made_of = {details["graph_family"], details["mechanism"], *details["noises"]}
            assert made_of <= held_out if name == "all" else made_of & held_out == {name}


def test_only_the_held_out_suite_is_frozen_and_its_description_says_so() -> None:
    assert [built.name for built in SUITES.values() if built.frozen] == ["held-out"]
    assert "frozen, run once per release, never looked at during development" in suite("held-out").description


def test_hidden_causes_are_gone_and_leave_confounded_pairs() -> None:
    for hidden in (0, 1, 4):
        for index in range(5):
            dataset = suite("confounded").row(f"hidden={hidden}").dataset(index)
            assert dataset.data.shape == (500, 24 - hidden)
            assert (
                dataset.details["confounded_pairs"] >= hidden > 0 or dataset.details["confounded_pairs"] == hidden == 0
            )


def test_controls_have_independent_columns_and_no_edges() -> None:
    for row in suite("controls").rows():
        for index in range(3):
            dataset = row.dataset(index)
            assert not dataset.adjacency.any()
            observations, variables = dataset.data.shape
            ranks = stats.rankdata(dataset.data, axis=0)
            z_scores = np.corrcoef(ranks.T)[np.triu_indices(variables, k=1)] * np.sqrt(observations)
            assert np.abs(z_scores).max() < 5


# Networks


@pytest.mark.parametrize(
    ("name", "variables", "edges"),
    [("ECOLI70", 46, 70), ("MAGIC-NIAB", 44, 66), ("MAGIC-IRRI", 64, 102), ("ARTH150", 107, 150)],
)
def test_networks_have_the_sizes_the_paper_gives(name: str, variables: int, edges: int) -> None:
    dataset = suite("networks").row(name).dataset(0)
    assert dataset.data.shape == (100, variables)
    assert dataset.adjacency.sum() == edges


def test_network_observations_follow_the_equations_of_the_file() -> None:
    network = networks.load_network("ECOLI70")
    data = network.model.observe(40_000, np.random.default_rng(0))
    # From ecoli70.json: yheI = −0.2137 − 0.9633 atpD + 0.3382 yedE, noise variance 0.1406.
    position = network.names.index
    coefficients, noise = residuals(data, network.model.weights != 0, position("yheI"))
    np.testing.assert_array_equal(
        np.flatnonzero(network.model.weights[:, position("yheI")]), sorted([position("atpD"), position("yedE")])
    )
    np.testing.assert_allclose(coefficients, [-0.9633, 0.3382, -0.2137], atol=0.02)
    assert noise.var() == pytest.approx(0.1406, rel=0.03)


def test_model_covariance_and_mean_are_those_of_its_observations() -> None:
    model = LinearGaussianModel(
        weights=np.array([[0, 0.5, -1.0], [0, 0, 2.0], [0, 0, 0]]),
        noise_deviations=np.array([1.0, 0.3, 2.0]),
        intercepts=np.array([1.0, 0.0, -3.0]),
    )
    data = model.observe(200_000, np.random.default_rng(1))
    np.testing.assert_allclose(np.cov(data.T), model.covariance(), atol=0.05)
    np.testing.assert_allclose(data.mean(axis=0), [1, 0.5, -3 - 1 + 2 * 0.5], atol=0.03)


# Herman et al.

GRAPHS = [networks.erdos_renyi_dag(8, edges, np.random.default_rng(edges)) for edges in (6, 14, 28)]


def test_erdos_renyi_dags_have_the_edges_asked_for_or_all_there_can_be() -> None:
    generator = np.random.default_rng(2)
    for variables, edges in [(2, 0), (2, 8), (5, 7), (30, 120)]:
        adjacency = networks.erdos_renyi_dag(variables, edges, generator)
        assert adjacency.sum() == min(edges, variables * (variables - 1) // 2)
        assert dag.is_acyclic(adjacency)


def test_herman_shapes_are_those_of_section_4_1() -> None:
    shapes = np.array(
        [
            (*dataset.data.shape, dataset.adjacency.sum())
            for dataset in (suite("herman").row("unit-variance-noise").dataset(index) for index in range(60))
        ]
    )
    observations, variables, edges = shapes.T
    assert observations.min() >= 100
    assert observations.max() <= 2000
    assert variables.min() >= 2
    assert variables.max() <= 100
    assert (edges <= np.minimum(4 * variables, variables * (variables - 1) // 2)).all()
    assert observations.mean() == pytest.approx(1050, abs=250)
    assert variables.mean() == pytest.approx(51, abs=13)
    wide = variables > 20
    assert (edges / variables)[wide].mean() == pytest.approx(2, abs=0.6)


@pytest.mark.parametrize("name", networks.HERMAN_MODELS)
def test_every_herman_model_depends_on_the_parents_and_on_nothing_else(name: str) -> None:
    generator = np.random.default_rng(3)
    for adjacency in GRAPHS:
        model = networks.HERMAN_MODELS[name](adjacency, generator)
        np.testing.assert_array_equal(model.weights != 0, adjacency)
        data = model.observe(20_000, generator)
        for k in range(8):
            _, noise = residuals(data, adjacency, k)
            earlier = ~dag.transitive_closure(adjacency)[k]
            earlier[k] = False
            for j in np.flatnonzero(earlier):
                assert abs(np.corrcoef(noise, data[:, j])[0, 1]) < 0.04


def test_unit_variance_noise_has_weights_of_a_half_to_two_and_noise_one() -> None:
    generator = np.random.default_rng(4)
    for adjacency in GRAPHS:
        model = networks.unit_variance_noise(adjacency, generator)
        magnitudes = np.abs(model.weights[adjacency])
        assert magnitudes.min() >= 0.5
        assert magnitudes.max() <= 2
        data = model.observe(20_000, generator)
        for k in range(8):
            coefficients, noise = residuals(data, adjacency, k)
            np.testing.assert_allclose(coefficients[:-1], model.weights[adjacency[:, k], k], atol=0.1)
            assert noise.std() == pytest.approx(1, abs=0.03)


@pytest.mark.parametrize(
    ("draw", "low", "high"),
    [(networks.unit_variance_noise, 0.5, 2.0), (networks.iscm, 0.5, 2.0), (networks.fifty_fifty, 0.25, 1.0)],
)
def test_weights_are_uniform_in_size_and_even_in_sign(draw: object, low: float, high: float) -> None:
    complete = np.triu(np.ones((60, 60), dtype=bool), k=1)
    weights = draw(complete, np.random.default_rng(5)).weights[complete]  # type: ignore[operator]
    assert stats.kstest(np.abs(weights), stats.uniform(low, high - low).cdf).pvalue > 0.01
    assert (weights > 0).mean() == pytest.approx(0.5, abs=0.04)


def test_iscm_variables_have_sample_deviation_one_when_their_children_see_them() -> None:
    generator = np.random.default_rng(6)
    for adjacency in GRAPHS:
        model = networks.iscm(adjacency, generator)
        data = model.observe(20_000, generator)
        np.testing.assert_allclose(data.std(axis=0), 1, atol=1e-12)
        for k in range(8):
            # Signal and unit noise were divided by the same number, so their ratio still shows the weights.
            coefficients, noise = residuals(data, adjacency, k)
            np.testing.assert_allclose(coefficients[:-1] / noise.std(), model.weights[adjacency[:, k], k], atol=0.15)


def test_ipa_divides_weights_and_noise_by_the_root_of_one_plus_their_squares() -> None:
    generator = np.random.default_rng(7)
    for adjacency in GRAPHS:
        model = networks.ipa(adjacency, generator)
        raw_weights = model.weights / model.noise_deviations
        np.testing.assert_allclose(model.noise_deviations, 1 / np.sqrt((raw_weights**2).sum(axis=0) + 1))
        magnitudes = np.abs(raw_weights[adjacency])
        assert magnitudes.min() >= 0.5
        assert magnitudes.max() <= 1.5
    collider = np.array([[0, 0, 1], [0, 0, 1], [0, 0, 0]], dtype=bool)
    np.testing.assert_allclose(np.diag(networks.ipa(collider, generator).covariance()), 1)


def test_fifty_fifty_variables_with_parents_are_half_signal_half_noise() -> None:
    generator = np.random.default_rng(8)
    for adjacency in GRAPHS:
        model = networks.fifty_fifty(adjacency, generator)
        data = model.observe(20_000, generator)
        for k in range(8):
            coefficients, noise = residuals(data, adjacency, k)
            parents = adjacency[:, k]
            if not parents.any():
                assert noise.var() == pytest.approx(1, abs=0.05)
                continue
            signal = data[:, parents] @ model.weights[parents, k]
            assert noise.var() == pytest.approx(0.5, abs=0.03)
            assert (data[:, parents] @ coefficients[:-1]).var() == pytest.approx(0.5, abs=0.03)
            np.testing.assert_allclose(
                coefficients[:-1], model.weights[parents, k] / (np.sqrt(2) * signal.std()), atol=0.15
            )


def test_uumc_variables_have_unit_variance() -> None:
    generator = np.random.default_rng(9)
    for adjacency in GRAPHS * 3:
        np.testing.assert_allclose(np.diag(networks.uumc(adjacency, generator).covariance()), 1)


@pytest.mark.parametrize("parents", [1, 2, 5])
def test_uumc_explained_variance_is_a_power_of_a_uniform_number_for_independent_parents(parents: int) -> None:
    """R² = r² with r = U^(1/k), hence R^k is uniform."""
    generator = np.random.default_rng(10)
    star = np.zeros((parents + 1, parents + 1), dtype=bool)
    star[:parents, parents] = True
    explained = np.array([1 - networks.uumc(star, generator).noise_deviations[-1] ** 2 for _ in range(2000)])
    assert stats.kstest(explained ** (parents / 2), "uniform").pvalue > 0.01


def test_uumc_noise_and_signal_follow_the_definition_for_correlated_parents() -> None:
    generator = np.random.default_rng(11)
    complete = np.triu(np.ones((4, 4), dtype=bool), k=1)
    model = networks.uumc(complete, generator)
    among_parents = model.covariance()[:3, :3]
    weights, noise_variance = model.weights[:3, 3], model.noise_deviations[3] ** 2
    # weights = a'·r/C and noise variance = (1 − r²)·Σa'²/C², hence noise variance / Σ weights² = (1 − r²)/r².
    strength_squared = 1 / (1 + noise_variance / (weights @ weights))
    c_squared_over_r_squared = 1 / (weights @ weights)  # for a' of unit length
    direction = weights * np.sqrt(c_squared_over_r_squared)
    c_squared = strength_squared * direction @ among_parents @ direction + (1 - strength_squared)
    assert c_squared / strength_squared == pytest.approx(c_squared_over_r_squared)


def test_dao_as_derived_has_unit_variances() -> None:
    generator = np.random.default_rng(12)
    for adjacency in GRAPHS * 3:
        model = networks.dao(adjacency, generator, variance_as_deviation=False)
        np.testing.assert_allclose(np.diag(model.covariance()), 1)


def test_dao_on_a_complete_dag_draws_correlation_matrices_uniformly() -> None:
    """Under the uniform law (LKJ, η = 1) every correlation r has (1 + r)/2 ~ Beta(p/2, p/2)."""
    generator = np.random.default_rng(13)
    complete = np.triu(np.ones((4, 4), dtype=bool), k=1)
    draws = np.array([networks.dao(complete, generator, variance_as_deviation=False).covariance() for _ in range(2000)])
    for j, k in zip(*np.triu_indices(4, k=1), strict=True):
        assert stats.kstest((1 + draws[:, j, k]) / 2, stats.beta(2, 2).cdf).pvalue > 0.005


def test_dao_counts_sources_before_all_other_variables() -> None:
    """0 → 1 beside a lone 2: variable 1 comes third of p = 3, so its explained variance is Beta(1/2, 1)."""
    generator = np.random.default_rng(14)
    adjacency = np.array([[0, 1, 0], [0, 0, 0], [0, 0, 0]], dtype=bool)
    explained = [1 - networks.dao(adjacency, generator).noise_deviations[1] for _ in range(2000)]
    assert stats.kstest(explained, stats.beta(0.5, 1).cdf).pvalue > 0.01


def test_dao_as_published_uses_the_error_variance_as_a_deviation() -> None:
    for adjacency in GRAPHS:
        published = networks.dao(adjacency, np.random.default_rng(15))
        derived = networks.dao(adjacency, np.random.default_rng(15), variance_as_deviation=False)
        np.testing.assert_array_equal(published.weights, derived.weights)
        np.testing.assert_allclose(published.noise_deviations, derived.noise_deviations**2)
    assert suite("herman").row("DaO").dataset(0).details["error_variance_used_as_deviation"] is True


# Sachs


def test_sachs_data_and_graphs_have_their_known_sizes() -> None:
    values, names = sachs.load_sachs()
    assert values.shape == (7466, 11)
    assert names == ("raf", "mek", "plc", "pip2", "pip3", "erk", "akt", "pka", "pkc", "p38", "jnk")
    for edges in (17, 20):
        graph = sachs.consensus_graph(edges)
        assert graph.sum() == edges
        assert dag.is_acyclic(graph)
        assert graph[names.index("raf"), names.index("mek")]


def test_pooled_sachs_rows_are_a_hundred_different_cells() -> None:
    values, names = sachs.load_sachs()
    cells = {tuple(cell) for cell in values}
    dataset = suite("sachs").row("pooled-raw").dataset(0)
    in_file_order = dataset.data[:, [dataset.names.index(name) for name in names]]
    assert in_file_order.shape == (100, 11)
    chosen = {tuple(cell) for cell in in_file_order}
    assert len(chosen) == 100
    assert chosen <= cells


def test_sachs_log_rows_are_the_logarithm_of_raw_cells() -> None:
    values, names = sachs.load_sachs()
    for scale, expected in (("raw", values[:853]), ("log", np.log(values[:853]))):
        dataset = suite("sachs").row(f"observational-{scale}").dataset(0)
        in_file_order = dataset.data[:, [dataset.names.index(name) for name in names]]
        np.testing.assert_array_equal(np.sort(in_file_order, axis=0), np.sort(expected, axis=0))


# The paper's tables


def test_published_tables_belong_to_rows_of_the_suites_and_bold_is_given_to_the_best() -> None:
    tomllib = pytest.importorskip("tomllib", reason="tomllib comes with Python 3.11")
    text = Path(summaries.__file__).with_name("published.toml").read_text(encoding="utf-8")
    published = tomllib.loads(text)
    assert len(published["table"]) == 4 + 6 + 1
    for table in published["table"]:
        row = suite(table["suite"]).row(table["row"])
        assert set(table["methods"]) == {"Arrow", "AVICI", "BCNP", "SEA", "DAGMA", "SDCD"}
        if "shape" in table:
            dataset = row.dataset(0)
            assert (*dataset.data.shape, dataset.adjacency.sum()) == tuple(table["shape"][key] for key in "nps")
        for measure in published["source"]["measures"]:
            best_of = min if measure in published["source"]["lower_is_better"] else max
            means = {method: figures[measure][0] for method, figures in table["methods"].items()}
            best = {method for method, mean in means.items() if mean == best_of(means.values())}
            assert best & set(table["bold"][measure])
