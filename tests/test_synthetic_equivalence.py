"""Laws of linear normal tasks that tell nothing beyond the equivalence class of their graph."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from scipy import stats

from causal_arrow.synthetic import TaskDistribution
from causal_arrow.synthetic.normal_wishart import draw_observations, draw_regressions

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
    batch = TaskDistribution.any().only("equivalence_class", "complete").sample(4000, observations, 2, seeded())
    forward, backward = batch.adjacency[:, 0, 1], batch.adjacency[:, 1, 0]
    for moment in (3, 4):
        difference = batch.data[:, :, 0].pow(moment).mean(1) - batch.data[:, :, 1].pow(moment).mean(1)
        assert stats.ks_2samp(difference[forward].numpy(), difference[backward].numpy()).pvalue > 1e-3


def test_tasks_of_an_equivalence_class_are_normal_and_have_no_hidden_causes() -> None:
    batch = TaskDistribution.any().only("equivalence_class").sample(300, 40, 6, seeded())
    assert batch.truth.confounded is not None
    assert not batch.truth.confounded.any()
    assert batch.tables.levels is None
    assert set(batch.names("mechanisms")) == {"normal_wishart"}
    joined = batch.adjacency.any(1)
    assert (batch.explained_variance[~joined] == 0).all()
    assert batch.explained_variance[joined].std() > 0.2  # weak and strong
