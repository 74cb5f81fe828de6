"""Laws of what can be known: the exact posterior, and the suite it is for."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats

from causal_arrow.errors import BenchmarkError
from causal_arrow.graphs import dag
from causal_arrow_lab.benchmarks.methods import MethodOptions, prepare
from causal_arrow_lab.benchmarks.methods.references import DEGREES, all_dags, local_scores, posterior_of, subset_score
from causal_arrow_lab.benchmarks.networks import LIMIT_MODELS, LIMIT_VARIABLES, draw_limit_dataset, normal_wishart_model
from causal_arrow_lab.benchmarks.suites import suite


def solve(data: np.ndarray) -> object:
    return prepare("exact-bayes", MethodOptions()).start()(data, np.random.default_rng(0))


@pytest.mark.parametrize(("variables", "count"), [(2, 3), (3, 25), (4, 543), (5, 29281)])
def test_all_dags_are_enumerated_once_with_their_orders(variables: int, count: int) -> None:
    graphs, orders = all_dags(variables)
    assert len(graphs) == count
    assert len({graph.tobytes() for graph in graphs}) == count
    assert dag.is_acyclic(graphs).all()
    empty, chain = np.zeros((variables, variables), dtype=bool), np.eye(variables, k=1, dtype=bool)
    by_graph = {graph.tobytes(): ways for graph, ways in zip(graphs, orders, strict=True)}
    assert by_graph[empty.tobytes()] == np.prod(np.arange(1, variables + 1))
    assert by_graph[chain.tobytes()] == 1


def test_graphs_of_one_equivalence_class_explain_every_table_equally_well() -> None:
    """Their posteriors differ by the law of graphs alone: by the number of orders that they follow."""
    data = np.random.default_rng(0).standard_normal((30, 4)) @ np.random.default_rng(1).standard_normal((4, 4))
    graphs, orders = all_dags(4)
    per_order = posterior_of(data) / orders
    classes: dict[bytes, list[float]] = {}
    for graph, value in zip(graphs, per_order, strict=True):
        classes.setdefault(dag.cpdag(graph).tobytes(), []).append(value)
    assert len(classes) == 185
    for values in classes.values():
        np.testing.assert_allclose(values, values[0], rtol=1e-9)


def test_the_score_of_a_variable_is_its_likelihood_averaged_over_the_variances_that_are_drawn() -> None:
    """One variable: 1 / σ² ~ χ²(δ), observations normal with mean 0. `count` counts them as they come."""
    values = np.array([0.3, -1.2, 0.7, 0.1])
    scores = subset_score(np.array([[values @ values]]), len(values), members=1)
    for degree, score in zip(DEGREES, scores, strict=True):

        def density(precision: float, degree: float = degree) -> float:
            likelihood = stats.norm(scale=precision**-0.5).pdf(values).prod()
            return float(likelihood * stats.chi2(degree).pdf(precision))

        expected = integrate.quad(density, 0, np.inf)[0]
        assert np.exp(score) == pytest.approx(expected, rel=1e-6)


def test_the_score_of_an_effect_is_its_likelihood_averaged_over_the_regressions_that_are_drawn() -> None:
    """σ² = 1 / χ²(δ + 1) and β ~ Norm(0, σ²): given x, y is normal with covariance σ² (I + xxᵀ)."""
    table = np.random.default_rng(3).standard_normal((6, 2))
    centered = table - table.mean(axis=0)
    score = local_scores(table)[:, 1, 0b01]  # of the second given the first
    # Centering spends one observation: rotate the rest into five that are independent, as the scatter matrix has them.
    basis = np.linalg.svd(np.eye(6) - 1 / 6)[0][:, :5]
    x, y = (basis.T @ centered).T
    spread = np.eye(5) + np.outer(x, x)
    for degree, value in zip(DEGREES, score, strict=True):

        def density(precision: float, degree: float = degree) -> float:
            likelihood = stats.multivariate_normal(np.zeros(5), spread / precision).pdf(y)
            return float(likelihood * stats.chi2(degree + 1).pdf(precision))

        assert np.exp(value) == pytest.approx(integrate.quad(density, 1e-9, np.inf)[0], rel=1e-4)


def test_the_exact_posterior_is_calibrated_where_it_is_exact() -> None:
    promised, came = [], []
    row = suite("limit").row("normal-wishart")
    for index in range(150):
        dataset = row.dataset(index)
        if len(dataset.names) < 5:
            answer = solve(np.array(dataset.data))
            promised.append(answer.probabilities.sum())  # type: ignore[attr-defined]
            came.append(dataset.adjacency.sum())
    apart = np.array(promised) - np.array(came)
    assert abs(apart.mean()) < 3 * apart.std(ddof=1) / np.sqrt(len(apart))


def test_the_exact_posterior_finds_a_collider() -> None:
    random = np.random.default_rng(0)
    causes = random.standard_normal((500, 2))
    effect = causes.sum(axis=1) + 0.5 * random.standard_normal(500)
    answer = solve(np.column_stack([causes[:, 0], effect, causes[:, 1]]))
    np.testing.assert_array_equal(answer.adjacency, [[0, 1, 0], [0, 0, 0], [0, 1, 0]])  # type: ignore[attr-defined]


def test_tables_of_more_than_five_variables_are_refused() -> None:
    with pytest.raises(BenchmarkError, match="up to 5 variables; this table has 6"):
        solve(np.zeros((10, 6)))


@pytest.mark.parametrize("law", LIMIT_MODELS)
def test_tasks_of_the_limit_have_few_variables_and_their_laws(law: str) -> None:
    random = np.random.default_rng(0)
    sizes = {draw_limit_dataset(random, law=law).data.shape[1] for _ in range(40)}
    assert sizes == set(range(LIMIT_VARIABLES[0], LIMIT_VARIABLES[1] + 1))
    complete = np.triu(np.ones((4, 4), dtype=bool), k=1)
    for _ in range(20):
        model = LIMIT_MODELS[law](complete, random)
        variances = np.diag(model.covariance())
        if law != "normal-wishart":
            np.testing.assert_allclose(variances, 1.0, rtol=1e-8)
        if law == "paper":
            explained = 1 - model.noise_deviations[1:] ** 2 / variances[1:]
            assert ((explained > 0.099) & (explained < 0.901)).all()


def test_the_normal_wishart_model_is_that_of_the_training_tasks() -> None:
    """The squared correlation of two joined variables is Beta(1/2, δ/2) for each δ, whichever is the cause."""
    random = np.random.default_rng(0)
    pair = np.array([[False, True], [False, False]])
    models = [normal_wishart_model(pair, random).covariance() for _ in range(4000)]
    squares = np.array([model[0, 1] ** 2 / (model[0, 0] * model[1, 1]) for model in models])
    degrees = 15.0 ** random.uniform(size=4000)
    assert stats.ks_2samp(squares, random.beta(0.5, degrees / 2)).pvalue > 0.01
