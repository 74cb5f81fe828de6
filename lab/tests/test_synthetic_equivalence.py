"""Laws of tasks that tell nothing beyond the equivalence class of their graph: linear normal ones, and categories."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import networkx as nx
import numpy as np
import pytest
import torch
from scipy import special, stats

from causal_arrow.graphs.dag import markov_equivalent
from causal_arrow_lab.synthetic import TaskDistribution, _discrete
from causal_arrow_lab.synthetic._discrete import DirichletTables, DiscreteTasks, draw_levels
from causal_arrow_lab.synthetic._tables import (
    causal_order,
    draw_equivalent_graphs,
    draw_observations,
    draw_regressions,
)

DEGREES = 3.0
CHAIN, FORK, BACK = [(0, 1), (1, 2)], [(1, 0), (1, 2)], [(2, 1), (1, 0)]
COLLIDER = [(0, 1), (2, 1)]


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def covariance(edges: Sequence[tuple[int, int]], coefficients: torch.Tensor, variances: torch.Tensor) -> torch.Tensor:
    """Σ of linear equations with one coefficient per edge.  (3, 3)"""
    weights = torch.zeros(3, 3, dtype=torch.float64)
    for (cause, effect), coefficient in zip(edges, coefficients, strict=True):
        weights = weights.index_put((torch.tensor(effect), torch.tensor(cause)), coefficient)
    mixing = torch.linalg.inv(torch.eye(3, dtype=torch.float64) - weights)
    return mixing @ torch.diag(variances) @ mixing.T


def regressions_of(edges: Sequence[tuple[int, int]], sigma: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Coefficients and noise variances with which a graph has covariance Σ."""
    coefficients = dict.fromkeys(edges, torch.zeros(()))
    variances = []
    for effect in range(3):
        causes = [j for j, k in edges if k == effect]
        slope = torch.linalg.solve(sigma[causes][:, causes], sigma[causes, effect]) if causes else torch.zeros(0)
        variances.append(sigma[effect, effect] - (sigma[effect, causes] @ slope.double() if causes else 0.0))
        coefficients |= {(cause, effect): value for cause, value in zip(causes, slope, strict=True)}
    return torch.stack([coefficients[edge] for edge in edges]).double(), torch.stack(variances)


def log_density(edges: Sequence[tuple[int, int]], sigma: torch.Tensor, free: Sequence[tuple[int, int]]) -> float:
    """Logarithm of the density of Σ for a graph, in the coordinates `free` of Σ, by the law of its regressions."""
    coefficients, variances = regressions_of(edges, sigma)
    assert torch.allclose(covariance(edges, coefficients, variances), sigma)
    total = 0.0
    for effect in range(3):
        causes = [place for place, (_, k) in enumerate(edges) if k == effect]
        variance = float(variances[effect])
        # 1 / χ²(ν) is an inverse gamma law with shape ν / 2 and scale 1 / 2.
        total += stats.invgamma((DEGREES + len(causes)) / 2, scale=0.5).logpdf(variance)
        total += sum(stats.norm(scale=variance**0.5).logpdf(float(coefficients[place])) for place in causes)

    def coordinates(parameters: torch.Tensor) -> torch.Tensor:
        entries = covariance(edges, parameters[: len(edges)], parameters[len(edges) :])
        return torch.stack([entries[j, k] for j, k in free])

    jacobian = torch.autograd.functional.jacobian(coordinates, torch.cat([coefficients, variances]))
    return total - float(torch.linalg.slogdet(jacobian).logabsdet)


def test_graphs_of_one_class_give_a_covariance_the_same_density() -> None:
    free = [(0, 0), (1, 1), (2, 2), (0, 1), (1, 2)]  # Σ of a chain is known from these
    for seed in range(5):
        coefficients = torch.randn(2, generator=seeded(seed), dtype=torch.float64)
        sigma = covariance(CHAIN, coefficients, 0.3 + torch.rand(3, generator=seeded(seed), dtype=torch.float64))
        densities = [log_density(edges, sigma, free) for edges in (CHAIN, FORK, BACK)]
        assert np.ptp(densities) < 1e-8


def test_complete_graphs_give_a_covariance_the_density_of_the_inverse_wishart_law() -> None:
    free = [(0, 0), (1, 1), (2, 2), (0, 1), (1, 2), (0, 2)]
    root = torch.randn(3, 5, generator=seeded(), dtype=torch.float64)
    sigma = root @ root.T / 5
    densities = [
        log_density([(order[0], order[1]), (order[0], order[2]), (order[1], order[2])], sigma, free)
        for order in itertools.permutations(range(3))
    ]
    expected = stats.invwishart(DEGREES + 2, np.eye(3)).logpdf(sigma.numpy())
    assert np.abs(np.array(densities) - expected).max() < 1e-8


def test_regressions_follow_their_law() -> None:
    parents = torch.zeros(20_000, 3, 3)
    parents[:, 2, :2] = 1
    coefficients, deviation = draw_regressions(parents, torch.full((20_000,), DEGREES), seeded())
    assert (coefficients[:, :2] == 0).all()
    assert stats.kstest(deviation[:, 0].pow(-2).numpy(), stats.chi2(DEGREES).cdf).pvalue > 1e-3
    assert stats.kstest(deviation[:, 2].pow(-2).numpy(), stats.chi2(DEGREES + 2).cdf).pvalue > 1e-3
    slopes = coefficients[:, 2, :2] / deviation[:, 2:]
    assert stats.kstest(slopes.flatten().numpy(), stats.norm.cdf).pvalue > 1e-3


def test_observations_are_those_of_their_equations() -> None:
    coefficients = torch.tensor([[[0.0, 0, 0], [2.0, 0, 0], [-1.0, 0.5, 0]]])
    deviation = torch.tensor([[1.0, 0.5, 2.0]])
    values, explained = draw_observations(coefficients, deviation, 400_000, seeded())
    expected = torch.linalg.inv(torch.eye(3) - coefficients[0])
    expected = expected @ torch.diag(deviation[0] ** 2) @ expected.T
    assert torch.allclose(torch.cov(values[0]), expected, atol=0.03)
    assert abs(float(explained[0, 1]) - 4 / 4.25) < 0.01
    assert explained[0, 0] == 0


def test_a_joined_pair_has_the_squared_correlation_of_a_beta_law() -> None:
    parents = torch.tensor([[0.0, 0.0], [1.0, 0.0]]).expand(3000, 2, 2)
    values, _ = draw_observations(*draw_regressions(parents, torch.full((3000,), DEGREES), seeded()), 2000, seeded(1))
    centered = (values - values.mean(2, keepdim=True)).double()
    product = (centered[:, 0] * centered[:, 1]).sum(1)
    squared = product**2 / centered.square().sum(2).prod(1)
    assert stats.kstest(squared.numpy(), stats.beta(0.5, DEGREES / 2).cdf).statistic < 0.04


def features(edges: list[tuple[int, int]], seed: int) -> np.ndarray:
    """What tables of few observations say, for variables 0, 1, 2 with 1 in the middle.  (3, tables)"""
    order = {tuple(CHAIN): (0, 1, 2), tuple(FORK): (1, 0, 2), tuple(COLLIDER): (0, 2, 1)}[tuple(edges)]
    place = {variable: position for position, variable in enumerate(order)}
    parents = torch.zeros(6000, 3, 3)
    for cause, effect in edges:
        parents[:, place[effect], place[cause]] = 1
    degrees = torch.full((6000,), DEGREES)
    values, _ = draw_observations(*draw_regressions(parents, degrees, seeded(seed)), 8, seeded(seed + 100))
    values = values[:, [place[variable] for variable in range(3)]]
    correlation = torch.stack([torch.corrcoef(table) for table in values.double()])
    precision = torch.linalg.inv(correlation)
    partial = -precision[:, 0, 2] / (precision[:, 0, 0] * precision[:, 2, 2]).sqrt()
    return torch.stack([correlation[:, 0, 1].abs(), partial.abs(), correlation[:, 0, 2].abs()]).numpy()


def test_tables_do_not_tell_a_chain_from_a_fork_and_tell_a_collider() -> None:
    chain, fork, collider = features(CHAIN, 0), features(FORK, 1), features(COLLIDER, 2)
    assert min(stats.ks_2samp(one, other).pvalue for one, other in zip(chain, fork, strict=True)) > 1e-3
    assert min(stats.ks_2samp(one, other).pvalue for one, other in zip(chain, collider, strict=True)) < 1e-6


@pytest.mark.parametrize("observations", [10, 500])
def test_a_direction_of_two_variables_cannot_be_told(observations: int) -> None:
    normal = TaskDistribution.any().only("equivalence_class", "normal_wishart", "complete")
    batch = normal.sample(4000, observations, 2, seeded())
    forward, backward = batch.adjacency[:, 0, 1], batch.adjacency[:, 1, 0]
    for moment in (3, 4):
        difference = batch.data[:, :, 0].pow(moment).mean(1) - batch.data[:, :, 1].pow(moment).mean(1)
        assert stats.ks_2samp(difference[forward].numpy(), difference[backward].numpy()).pvalue > 1e-3


def test_tasks_of_an_equivalence_class_are_all_numbers_or_all_categories_and_have_no_hidden_causes() -> None:
    batch = TaskDistribution.any().only("equivalence_class").sample(300, 40, 6, seeded())
    assert batch.truth.confounded is not None
    assert not batch.truth.confounded.any()
    assert batch.tables.levels is not None
    mechanisms = np.array(batch.names("mechanisms"))
    normal = torch.from_numpy(mechanisms == "normal_wishart")
    assert set(mechanisms) == {"normal_wishart", "dirichlet_tables"}
    assert (batch.tables.levels[normal] == 0).all()
    assert (batch.tables.levels[~normal] >= 2).all()
    joined = batch.adjacency.any(1) & normal[:, None]
    assert (batch.explained_variance[~joined] == 0).all()
    assert batch.explained_variance[joined].std() > 0.2  # weak and strong


# Categories

SIZE = 6.0  # α


def draw_categories(edges: Sequence[tuple[int, int]], tasks: int, observations: int, seed: int) -> torch.Tensor:
    """Codes of variables 0, 1 and 2 with 2, 3 and 2 levels, by tables for the graph with α = SIZE.  (B, 3, N)"""
    order = list(nx.topological_sort(nx.DiGraph([*edges, *((v, v + 10) for v in range(3))])))
    order = [variable for variable in order if variable < 3]
    place = {variable: position for position, variable in enumerate(order)}
    parents = torch.zeros(tasks, 3, 3)
    for cause, effect in edges:
        parents[:, place[effect], place[cause]] = 1
    levels = torch.tensor([2, 3, 2])[order].expand(tasks, 3)
    network = DiscreteTasks(parents, torch.full((tasks,), 3), 3, seeded(seed))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_discrete, "draw_numbers_of_levels", lambda _: levels)
        patch.setattr(DirichletTables, "min_size", SIZE)
        patch.setattr(DirichletTables, "max_size", SIZE)
        tables = DirichletTables(network)
    codes = torch.zeros(tasks, 3, observations)
    for child in range(3):
        odds = tables.log_odds(child, codes[:, :child], observations)
        codes[:, child] = draw_levels(odds, levels[:, child], network.generator)
    return codes[:, [place[variable] for variable in range(3)]].long()


def log_likelihood(edges: Sequence[tuple[int, int]], table: np.ndarray) -> float:
    """The score BDeu of a table (N, 3) for a graph: its logarithmic probability when all tables are integrated out."""
    levels, total = (2, 3, 2), 0.0
    for child in range(3):
        causes = [j for j, k in edges if k == child]
        combinations = math.prod(levels[j] for j in causes)
        cell = SIZE / combinations / levels[child]
        for combination in {tuple(row) for row in table[:, causes]}:
            of_it = table[(table[:, causes] == combination).all(1), child]
            counts = np.bincount(of_it, minlength=levels[child])
            total += special.gammaln(SIZE / combinations) - special.gammaln(SIZE / combinations + len(of_it))
            total += (special.gammaln(cell + counts) - special.gammaln(cell)).sum()
    return total


@pytest.mark.parametrize("edges", [CHAIN, FORK, COLLIDER, [(0, 1), (0, 2), (1, 2)]])
def test_tables_of_categories_come_with_the_probability_that_their_score_says(edges: list[tuple[int, int]]) -> None:
    drawn = draw_categories(edges, 60_000, 2, seed=1).mT.numpy()  # (B, 2, 3)
    every = [np.array(table) for table in itertools.product(itertools.product(range(2), range(3), range(2)), repeat=2)]
    expected = np.exp([log_likelihood(edges, table) for table in every])
    assert abs(expected.sum() - 1) < 1e-9
    key = np.array([6, 2, 1])
    counts = np.bincount((drawn @ key) @ np.array([12, 1]), minlength=144)
    assert stats.chisquare(counts, 60_000 * expected).pvalue > 1e-3


def test_graphs_of_one_class_give_tables_of_categories_the_same_probability() -> None:
    for seed in range(3):
        random = np.random.default_rng(seed)
        table = np.stack([random.integers(0, levels, 30) for levels in (2, 3, 2)], 1)
        assert np.ptp([log_likelihood(edges, table) for edges in (CHAIN, FORK, BACK)]) < 1e-9
        assert abs(log_likelihood(CHAIN, table) - log_likelihood(COLLIDER, table)) > 1e-3


def all_dags(variables: int) -> list[torch.Tensor]:
    """Every DAG of so many variables."""
    pairs = [(j, k) for j in range(variables) for k in range(variables) if j != k]
    graphs = []
    for chosen in itertools.product((0.0, 1.0), repeat=len(pairs)):
        graph = torch.zeros(variables, variables)
        for (j, k), there in zip(pairs, chosen, strict=True):
            graph[j, k] = there
        if not torch.linalg.matrix_power(graph, variables).any():
            graphs.append(graph > 0)
    return graphs


def test_any_member_of_a_class_is_as_likely_as_any_other() -> None:
    dags = all_dags(4)
    assert len(dags) == 543
    for start in dags[:: len(dags) // 12]:
        members = [graph for graph in dags if markov_equivalent(start.numpy(), graph.numpy())]
        drawn = draw_equivalent_graphs(start.expand(4000, 4, 4), seeded())
        counts = np.array([int((drawn == member).all((1, 2)).sum()) for member in members])
        assert counts.sum() == 4000
        if len(members) > 1:
            assert stats.chisquare(counts).pvalue > 1e-4


@pytest.mark.parametrize("variables", [2, 7, 30])
def test_tasks_told_by_another_member_are_markov_equivalent_and_ordered(variables: int) -> None:
    graphs = TaskDistribution.paper().sample(20, 5, variables, seeded()).adjacency
    drawn = draw_equivalent_graphs(graphs, seeded(1))
    assert (drawn != graphs).any()
    order = causal_order(drawn)
    for graph, member, variable in zip(graphs, drawn, order, strict=True):
        assert markov_equivalent(graph.numpy(), member.numpy())
        assert not member[variable][:, variable].tril().any()


def test_the_columns_of_a_reoriented_task_go_with_its_graph() -> None:
    batch = TaskDistribution.any().only("reoriented", "probability_tables", "complete").sample(60, 2000, 4, seeded())
    assert not batch.truth.confounded.any()
    isolated = ~(batch.adjacency | batch.adjacency.mT).any(2)
    ranked = batch.order.argsort(1)
    for task in range(60):
        before = ranked[task][:, None] < ranked[task]
        assert not (batch.adjacency[task] & ~before).any()
        for j, k in itertools.combinations(range(4), 2):
            table = np.zeros((int(batch.tables.levels[task, j]), int(batch.tables.levels[task, k])))
            np.add.at(table, (batch.data[task, :, j].long().numpy(), batch.data[task, :, k].long().numpy()), 1)
            if isolated[task, j] or isolated[task, k]:
                assert stats.chi2_contingency(table).pvalue > 1e-5  # nothing to do with each other


def test_bystanders_are_alone_in_graphs_that_are_dense() -> None:
    typed = TaskDistribution.any().only("typed", "erdos_renyi", "every_edge_count", "no_instruments", "no_experiments")
    with_them, without = (
        typed.only(name).sample(200, 10, 20, seeded()) for name in ("some_bystanders", "all_may_matter")
    )
    joined = [batch.adjacency | batch.truth.confounded for batch in (with_them, without)]
    alone = [~(graph | graph.mT).any(2) for graph in joined]
    # Where at least 2p edges are left, columns that are joined to nothing hardly occur by chance.
    dense = [batch.adjacency.sum((1, 2)) > 30 for batch in (with_them, without)]
    shares = [float(lonely[many].float().mean()) for lonely, many in zip(alone, dense, strict=True)]
    assert shares[0] > 0.1 > 5 * shares[1]
