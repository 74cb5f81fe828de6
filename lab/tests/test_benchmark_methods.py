"""Laws of the benchmark's methods: one convention, one protocol, and a sentence to act on when one cannot run."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from causal_arrow import Arrow
from causal_arrow.discovery.second_opinion import shrunk, standardized
from causal_arrow.errors import BenchmarkError, CheckpointError
from causal_arrow.graphs import dag
from causal_arrow.network.pairwise import PairwiseConfig
from causal_arrow_lab import load_model, save_model
from causal_arrow_lab.benchmarks.methods import METHODS, MethodOptions, Observed, prepare
from causal_arrow_lab.benchmarks.methods.arrow import weights_label
from causal_arrow_lab.benchmarks.methods.protocol import answer_from_pdag
from causal_arrow_lab.benchmarks.methods.references import explained_variances, forward_regression
from causal_arrow_lab.benchmarks.suites import SUITES
from causal_arrow_lab.network.model import ArrowConfig, ArrowModel

CHEAP = ["arrow", "arrow-shd", "arrow-f1", "varsort", "r2sort", "random", "empty"]
CAUSAL_LEARN = ["boss", "boss-1", "grasp", "pc", "ges", "direct-lingam"]
PACKAGES = {
    **dict.fromkeys(CAUSAL_LEARN, "causallearn"),
    "dagma": "dagma",
    "resit": "lingam",
    "flop": "flopsearch",
    "flop-3": "flopsearch",
}


def require(method: str) -> None:
    if method in PACKAGES:
        pytest.importorskip(PACKAGES[method], reason=f"{method} needs the benchmark extra")


def save_tiny_model(folder: Path, seed: int = 0) -> Path:
    """An untrained network with weights of some size, so that its answers differ from table to table."""
    model = ArrowModel(
        ArrowConfig(PairwiseConfig(cell_width=16, pair_width=16, stages=1, pair_blocks=1, mixing_heads=2))
    )
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(0.5 * torch.randn(parameter.shape, generator=generator))
    save_model(model, folder)
    return folder


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder of weights."""
    return str(save_tiny_model(tmp_path_factory.mktemp("tiny")))


def collider(observations: int = 400, seed: int = 0) -> np.ndarray:
    """0 → 2 ← 1, a direction that even covariances tell, with uniform noise."""
    generator = np.random.default_rng(seed)
    first, second, noise = generator.uniform(-1, 1, (3, observations))
    return np.column_stack([first, second, first + second + 0.7 * noise])


@pytest.mark.parametrize("name", [*CHEAP, *PACKAGES])
def test_every_method_answers_with_a_dag_and_scores_and_leaves_the_table_alone(name: str, tiny: str) -> None:
    require(name)
    data = collider()
    kept = data.copy()
    text = f"{name}:{tiny}" if name.startswith("arrow") else name
    answer = prepare(text, MethodOptions()).start()(data, np.random.default_rng(1))
    np.testing.assert_array_equal(data, kept)
    assert answer.adjacency.dtype == np.bool_
    assert answer.adjacency.shape == answer.scores.shape == (3, 3)
    assert dag.is_acyclic(answer.adjacency)
    assert np.isfinite(answer.scores).all()
    assert 0 <= answer.seconds < 60


@pytest.mark.parametrize("name", [*CAUSAL_LEARN, "flop"])
def test_these_packages_and_we_mean_the_same_by_an_arrow(name: str) -> None:
    require(name)
    answer = prepare(name, MethodOptions()).start()(collider(), np.random.default_rng(1))
    np.testing.assert_array_equal(np.argwhere(answer.adjacency), [[0, 2], [1, 2]])
    assert answer.scores[0, 2] > answer.scores[2, 0]
    assert answer.scores[1, 2] > answer.scores[2, 1]


def test_resit_finds_the_direction_of_a_curve() -> None:
    require("resit")
    generator = np.random.default_rng(2)
    cause = generator.uniform(-2, 2, 300)
    data = np.column_stack([cause**2 + 0.3 * generator.uniform(-1, 1, 300), cause])
    answer = prepare("resit", MethodOptions()).start()(data, np.random.default_rng(1))
    np.testing.assert_array_equal(np.argwhere(answer.adjacency), [[1, 0]])


def test_half_the_penalty_gives_boss_more_edges() -> None:
    require("boss")
    random = np.random.default_rng(4)
    table = random.standard_normal((200, 12)) @ (np.eye(12) + 0.25 * np.triu(random.standard_normal((12, 12)), k=1))
    edges = [
        prepare(name, MethodOptions()).start()(table, np.random.default_rng(1)).adjacency.sum()
        for name in ("boss", "boss-1")
    ]
    assert edges[0] < edges[1]


def test_a_larger_penalty_gives_flop_fewer_edges() -> None:
    require("flop")
    random = np.random.default_rng(4)
    table = random.standard_normal((200, 12)) @ (np.eye(12) + 0.25 * np.triu(random.standard_normal((12, 12)), k=1))
    edges = [
        prepare(name, MethodOptions()).start()(table, np.random.default_rng(1)).adjacency.sum()
        for name in ("flop-3", "flop")
    ]
    assert edges[0] < edges[1]


@pytest.mark.parametrize("rows", [20, 30, 31, 40])
def test_flop_reads_tables_with_few_rows_and_with_copies_by_a_shrunk_covariance_and_says_so(rows: int) -> None:
    require("flop")
    data = np.random.default_rng(6).standard_normal((rows, 30))
    for k in range(1, 30):
        data[:, k] = 0.9 * data[:, k - 1] + 0.4 * data[:, k]  # a chain
    if rows == 40:
        data[:, 2] = data[:, 3]
    answer = prepare("flop", MethodOptions()).start()(data, np.random.default_rng(1))
    joined = answer.adjacency | answer.adjacency.T
    assert np.diagonal(joined, 1).sum() > 20
    assert joined.sum() / 2 < 70
    assert answer.reading == (None if rows == 31 else {"covariance": "shrunk"})


def test_shrunk_rows_have_the_covariance_of_ledoit_and_wolf() -> None:
    covariance = pytest.importorskip("sklearn.covariance")
    data = standardized(np.random.default_rng(7).standard_normal((10, 15)))
    rows, factor = shrunk(data)
    expected, _ = covariance.ledoit_wolf(data, assume_centered=True)
    np.testing.assert_allclose(rows.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(rows.T @ rows / len(rows), expected, atol=1e-12)
    assert factor == pytest.approx(1.6 * np.log(10) / np.log(16))


def test_dagma_weights_are_those_of_each_variable_regressed_on_its_causes() -> None:
    require("dagma")
    data = collider()
    answer = prepare("dagma", MethodOptions()).start()(data, np.random.default_rng(1))
    table = (data - data.mean(axis=0)) / data.std(axis=0)
    assert answer.adjacency.any()
    for k in range(3):
        causes = np.flatnonzero(answer.adjacency[:, k])
        coefficients = np.linalg.lstsq(table[:, causes], table[:, k], rcond=None)[0]
        np.testing.assert_allclose(answer.scores[causes, k], np.abs(coefficients), atol=0.15)


@pytest.mark.parametrize("name", ["random", "boss"])
def test_the_generator_decides_and_global_random_numbers_stay_untouched(name: str) -> None:
    require(name)
    data = np.random.default_rng(2).standard_normal((50, 12)) @ np.random.default_rng(3).standard_normal((12, 12))
    solve = prepare(name, MethodOptions()).start()
    random.seed(5)
    state = random.getstate()
    answers = [solve(data, np.random.default_rng(seed)).adjacency for seed in (1, 1, 2, 3, 4)]
    assert random.getstate() == state
    np.testing.assert_array_equal(answers[0], answers[1])
    if name == "random":
        assert any(not np.array_equal(answers[0], other) for other in answers[2:])


def test_dagma_keeps_nothing_from_one_table_to_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its `fit` changes the list `s` in place when it retries, even the list that is its default."""
    linear = pytest.importorskip("dagma.linear", reason="dagma needs the benchmark extra")
    seen = []

    def fit_that_retries(self: object, data: np.ndarray, *, s: list[float], **settings: float) -> np.ndarray:
        seen.append(list(s))
        s[0] += 0.1
        return np.zeros((data.shape[1], data.shape[1]))

    monkeypatch.setattr(linear.DagmaLinear, "fit", fit_that_retries)
    solve = prepare("dagma", MethodOptions()).start()
    for _ in range(2):
        solve(collider(), np.random.default_rng(0))
    assert seen == [[1.0, 0.9, 0.8, 0.7, 0.6]] * 2


# Graphs with undirected edges


def test_an_undirected_edge_scores_half_both_ways_and_gets_a_direction_in_the_graph() -> None:
    pdag = np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]], dtype=bool)
    answer = answer_from_pdag(pdag, 0.1)
    np.testing.assert_array_equal(answer.scores, [[0, 0.5, 0], [0.5, 0, 0], [0, 0, 0]])
    assert answer.adjacency.sum() == 1
    directed = answer_from_pdag(np.array([[0, 1], [0, 0]], dtype=bool), 0.1)
    np.testing.assert_array_equal(directed.scores, [[0, 1], [0, 0]])
    np.testing.assert_array_equal(directed.adjacency, [[False, True], [False, False]])


# Baselines


def chain(variables: int, observations: int, seed: int) -> np.ndarray:
    """0 → 1 → 2 → ..., with noise of deviation 1: variances and R² both rise along it."""
    noise = np.random.default_rng(seed).standard_normal((observations, variables))
    return np.cumsum(noise, axis=1)


def test_variance_sorting_finds_a_chain_by_its_units_and_is_lost_without_them() -> None:
    data = chain(6, 2000, 4)
    solve = prepare("varsort", MethodOptions()).start()
    truth = np.eye(6, k=1, dtype=bool)
    assert (solve(data, np.random.default_rng(0)).adjacency & truth).sum() == 5
    reversed_units = data / data.std(axis=0) * np.arange(6, 0, -1)
    assert (solve(reversed_units, np.random.default_rng(0)).adjacency & truth).sum() == 0


def test_r2_sorting_does_not_depend_on_units() -> None:
    data = chain(6, 2000, 4)
    scaled = data * np.array([3.0, 0.1, 7.0, 1.0, 0.5, 20.0]) + 5
    solve = prepare("r2sort", MethodOptions()).start()
    first, second = (solve(table, np.random.default_rng(0)).adjacency for table in (data, scaled))
    np.testing.assert_array_equal(first, second)


def test_explained_variances_are_those_of_least_squares_and_exist_with_few_observations() -> None:
    data = chain(4, 500, 5)
    table = (data - data.mean(axis=0)) / data.std(axis=0)
    for k in range(4):
        others = np.delete(table, k, axis=1)
        residual = table[:, k] - others @ np.linalg.lstsq(others, table[:, k], rcond=None)[0]
        assert explained_variances(data)[k] == pytest.approx(1 - residual.var(), abs=0.02)
    assert np.isfinite(explained_variances(chain(30, 10, 6))).all()


def test_forward_regression_chooses_what_matters_with_the_coefficients_of_least_squares() -> None:
    generator = np.random.default_rng(7)
    candidates = generator.standard_normal((500, 8))
    candidates -= candidates.mean(axis=0)
    target = 2 * candidates[:, 1] - candidates[:, 5] + 0.5 * generator.standard_normal(500)
    target -= target.mean()
    coefficients = forward_regression(candidates, target)
    chosen = np.flatnonzero(coefficients)
    assert {1, 5} <= set(chosen) <= {1, 5, *chosen}
    assert len(chosen) <= 4
    expected = np.linalg.lstsq(candidates[:, chosen], target, rcond=None)[0]
    np.testing.assert_allclose(coefficients[chosen], expected)


def test_forward_regression_survives_more_variables_than_observations_and_copies_of_a_column() -> None:
    generator = np.random.default_rng(8)
    candidates = generator.standard_normal((10, 30))
    candidates = np.column_stack([candidates, candidates])
    coefficients = forward_regression(candidates, candidates[:, 3] + 0.1 * generator.standard_normal(10))
    assert np.isfinite(coefficients).all()
    assert 0 < np.count_nonzero(coefficients) < 10
    assert not forward_regression(np.zeros((10, 0)), generator.standard_normal(10)).size


# Arrow


def test_arrow_answers_with_the_most_probable_graph_and_the_edge_marginals(tiny: str) -> None:
    data = collider(seed=3)
    answer = prepare(f"arrow:{tiny}", MethodOptions()).start()(data, np.random.default_rng(0))
    with torch.inference_mode():
        distribution = load_model(tiny)(torch.from_numpy(data)[None])[0].skeleton_order
    np.testing.assert_array_equal(answer.adjacency, distribution.most_probable_dag().numpy())
    assert answer.probabilities is not None
    np.testing.assert_allclose(answer.probabilities, distribution.edge_marginals().numpy(), rtol=1e-5)
    np.testing.assert_array_equal(answer.scores, answer.probabilities)


def test_other_rules_change_the_graph_and_not_the_ranking(tiny: str) -> None:
    data = np.random.default_rng(9).standard_normal((100, 8))
    answers = {
        name: prepare(f"{name}:{tiny}", MethodOptions()).start()(data, np.random.default_rng(0))
        for name in ("arrow", "arrow-shd", "arrow-f1")
    }
    for answer in answers.values():
        np.testing.assert_array_equal(answer.scores, answers["arrow"].scores)
    # ν(1 + q) > 1 asks for less than ν > ½ where the direction is clear, and never for an edge with ν < ½.
    assert not (answers["arrow-shd"].adjacency & ~answers["arrow"].adjacency).any()


def test_arrow_unmarked_reads_everything_but_the_experiments() -> None:
    dataset = SUITES["interventional"].row("class-200x10").dataset(0)
    told = Observed(dataset.table, dataset.intervened)
    generator = np.random.default_rng(0)
    marked, unmarked = (prepare(name, MethodOptions()).start() for name in ("arrow", "arrow-unmarked"))
    ignored, untold = unmarked(told, generator), marked(Observed(dataset.table), generator)
    np.testing.assert_array_equal(ignored.scores, untold.scores)
    assert (np.abs(marked(told, generator).scores - ignored.scores) > 0.1).any()
    assert ignored.reading == {"experiments": "ignored"}
    assert untold.reading is None


def test_other_weights_are_another_method_and_no_path_is_recorded(tmp_path: Path) -> None:
    first = prepare(f"arrow:{save_tiny_model(tmp_path / 'first' / 'weights', seed=1)}", MethodOptions())
    second = prepare(f"arrow:{save_tiny_model(tmp_path / 'second', seed=2)}", MethodOptions())
    copy = shutil.copytree(tmp_path / "second", tmp_path / "elsewhere" / "second")
    again = prepare(f"arrow:{copy}", MethodOptions())
    assert first.name == "arrow:first"
    assert second.name == again.name == "arrow:second"
    assert first.settings["weights_checksum"] != second.settings["weights_checksum"]
    assert second.settings == again.settings
    assert str(tmp_path) not in f"{first.name}{first.settings}{second.settings}"


@pytest.mark.parametrize(
    ("source", "label"),
    [("base", "base"), ("runs/base/weights", "base"), ("/a/b/model.safetensors", "b"), ("arrowfm.pt", "arrowfm.pt")],
)
def test_weights_are_called_by_the_last_name_that_may_differ(source: str, label: str) -> None:
    assert weights_label(source) == label


# What cannot be run


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("bos", "Choose from: arrow"),
        ("boss:fast", "nothing after a colon"),
        ("arrow:/nowhere", "No model '/nowhere'"),
        ("sdcd", "python3.11 -m venv .* install 'sdcd==0.1.4'"),
    ],
)
def test_a_method_that_cannot_be_run_says_what_to_do(name: str, words: str, tmp_path: Path) -> None:
    if name == "boss:fast":
        require("boss")
    with pytest.raises((BenchmarkError, CheckpointError), match=words):
        prepare(name, MethodOptions(environments=tmp_path))


def test_a_method_whose_package_is_missing_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib import metadata

    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    with pytest.raises(BenchmarkError, match=r"causal-arrow-lab\[benchmark\]"):
        prepare("boss", MethodOptions())


def test_the_oracle_answers_with_members_of_the_true_class_each_as_it_may() -> None:
    chain = np.zeros((4, 4), dtype=bool)
    chain[0, 1] = chain[1, 2] = chain[2, 3] = True
    method = prepare("class-oracle", MethodOptions())
    assert method.is_oracle
    answers = [method.start()(chain.astype(float), np.random.default_rng(seed)) for seed in range(60)]
    assert all(dag.markov_equivalent(answer.adjacency, chain) for answer in answers)
    assert len({answer.adjacency.tobytes() for answer in answers}) == 4  # of the class of a chain of four
    np.testing.assert_array_equal(answers[0].scores, 0.5 * dag.skeleton_of(chain))


def test_every_method_has_a_title_of_its_own_and_a_description() -> None:
    titles = [kind.title for kind in METHODS.values()]
    assert len(set(titles)) == len(titles)
    assert all(kind.description for kind in METHODS.values())


@pytest.mark.filterwarnings("ignore::causal_arrow.errors.ArrowWarning")
@pytest.mark.parametrize("seed", range(6))
def test_the_benchmark_measures_exactly_what_users_get(seed: int, small_model_folder: Path) -> None:
    random = np.random.default_rng(seed)
    observations, variables = random.integers(30, 200), random.integers(2, 8)
    values = random.normal(size=(observations, variables)) @ random.normal(size=(variables, variables))
    values[:, 0] = np.exp(values[:, 0])
    measured = prepare(f"arrow:{small_model_folder}", MethodOptions()).start()(values, random)
    arrow = Arrow(small_model_folder, directions="network").fit(values)
    np.testing.assert_array_equal(measured.adjacency, arrow.adjacency_matrix_.to_numpy(dtype=bool))
    np.testing.assert_array_equal(measured.scores, arrow.edge_probabilities_.to_numpy())
