"""Linear normal tasks that tell nothing beyond the Markov equivalence class of their graph.

Each variable k with m_k causes has, independently of all others,
    σ_k² = 1 / χ²(δ + m_k),   β_k ~ Norm(0, σ_k² I),   x_k = β_kᵀ x_causes + σ_k ε,   ε ~ Norm(0, 1).
This is the normal–Wishart prior of the score BGe (Geiger and Heckerman, 2002). Take an inverse Wishart law of all
variables, Σ ~ IW(δ + p − 1, I): the covariance of m + 1 of them is IW(δ + m, I), and a variable given m others has the
regression above, independently of their covariance. So for a complete graph the law of Σ is that inverse Wishart,
whatever the order, and since the regressions depend on nothing but the causes, two graphs of one equivalence class give
Σ the same law. Observations are exactly normal given Σ (nothing is standardized along the way), so the likelihood of a
table is the same within a class.

δ decides how strong effects are: of two variables that are joined, the squared correlation is Beta(1/2, δ/2). It is
drawn once per task, from 1 to 15, even on a log scale.
"""

# B tasks, P variables, N observations

from __future__ import annotations

import torch
from torch import Tensor

from causal_arrow.synthetic.noise import standard_gamma, standardize
from causal_arrow.synthetic.structure import Causes, Solution

LEAST_DEGREES, MOST_DEGREES = 1.0, 15.0


def draw_regressions(parents: Tensor, degrees: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Coefficients β, [b, k, j] for j → k, and noise deviations σ.  (B, P, P), (B, P)

    `parents` (B, P, P) is 1 at [b, k, j] where j → k; `degrees` (B,) is δ.
    """
    chi_square = 2 * standard_gamma((degrees[:, None] + parents.sum(2)) / 2, generator)
    deviation = chi_square.clamp_min(1e-12).rsqrt()
    normal = torch.randn(parents.shape, generator=generator, device=parents.device)
    return normal * deviation[:, :, None] * parents, deviation


def draw_observations(
    coefficients: Tensor, deviation: Tensor, observations: int, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Observations of normal variables in generation order, and the causes' share of each one's variance.

    (B, P, N), (B, P)
    """
    tasks, variables = deviation.shape
    noise = torch.randn(tasks, variables, observations, generator=generator, device=deviation.device)
    noise *= deviation[:, :, None]
    equations = torch.eye(variables, device=deviation.device) - coefficients  # unit lower triangular
    values = torch.linalg.solve_triangular(equations, noise, upper=False, unitriangular=True)
    variance = (values - noise).var(2)
    return values, variance / (variance + deviation.square())


def solve_normal(causes: Causes, observations: int, generator: torch.Generator) -> Solution:
    """Data of the graphs alone: hidden causes or experiments would tell more than the equivalence class."""
    parents = causes.adjacency.mT.float()
    uniform = torch.rand(len(parents), generator=generator, device=parents.device)
    degrees = LEAST_DEGREES * (MOST_DEGREES / LEAST_DEGREES) ** uniform
    values, explained = draw_observations(*draw_regressions(parents, degrees, generator), observations, generator)
    return Solution(standardize(values), explained)
