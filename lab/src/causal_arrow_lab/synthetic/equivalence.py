"""Tasks whose data identify the Markov equivalence class of the graph and nothing more.

**Linear normal tasks.** Each variable k with m_k causes has, independently of all others,
    σ_k² = 1 / χ²(δ + m_k),   β_k ~ Norm(0, σ_k² I),   x_k = β_kᵀ x_causes + σ_k ε,   ε ~ Norm(0, 1).
This is the normal–Wishart prior of the score BGe (Geiger and Heckerman, 2002). If the covariance of all variables is
inverse Wishart, Σ ~ IW(δ + p − 1, I), then that of m + 1 of them is IW(δ + m, I), and a variable given m others has the
regression above, independently of their covariance. So for a complete graph Σ has that inverse Wishart distribution in
every order, and because the regressions depend on the causes alone, two graphs of one equivalence class give Σ the same
distribution. Observations are exactly normal given Σ (nothing is standardized along the way), so the likelihood of a
table is equal within a class. δ sets the strength of effects: the squared correlation of two adjacent variables is
Beta(1/2, δ/2). It is drawn once per task, from 1 to 15, even on a log scale.

**Other members of a class.** Conditional probability tables can be reversed: whatever the tables of one graph, every
graph of its equivalence class has tables with the same joint distribution. A network that has only seen mechanisms of
certain forms takes their forms for directions, and is sure of them in tables whose forms mean nothing. In tasks whose
truth is any member of the class, only the class can be learned.
"""

# B tasks, P variables, N observations

from __future__ import annotations

import math

import torch
from torch import Tensor

from causal_arrow_lab.synthetic.noise import standard_gamma, standardize
from causal_arrow_lab.synthetic.structure import Causes, Solution

MIN_DEGREES, MAX_DEGREES = 1.0, 15.0


def draw_regressions(parents: Tensor, degrees: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Draw coefficients β, [b, k, j] for j → k, and noise deviations σ.  (B, P, P), (B, P)

    `parents` (B, P, P) is 1 at [b, k, j] where j → k; `degrees` (B,) is δ.
    """
    chi_square = 2 * standard_gamma((degrees[:, None] + parents.sum(2)) / 2, generator)
    deviation = chi_square.clamp_min(1e-12).rsqrt()
    normal = torch.randn(parents.shape, generator=generator, device=parents.device)
    return normal * deviation[:, :, None] * parents, deviation


def draw_observations(
    coefficients: Tensor, deviation: Tensor, observations: int, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Draw normal variables in generation order, with the share of variance explained.  (B, P, N), (B, P)"""
    tasks, variables = deviation.shape
    noise = torch.randn(tasks, variables, observations, generator=generator, device=deviation.device)
    noise *= deviation[:, :, None]
    equations = torch.eye(variables, device=deviation.device) - coefficients  # unit lower triangular
    values = torch.linalg.solve_triangular(equations, noise, upper=False, unitriangular=True)
    variance = (values - noise).var(2)
    return values, variance / (variance + deviation.square())


def solve_normal(causes: Causes, observations: int, generator: torch.Generator) -> Solution:
    """Solve tasks of a graph alone: hidden causes or experiments would identify more than the equivalence class."""
    parents = causes.adjacency.mT.float()
    uniform = torch.rand(len(parents), generator=generator, device=parents.device)
    degrees = MIN_DEGREES * (MAX_DEGREES / MIN_DEGREES) ** uniform
    values, explained = draw_observations(*draw_regressions(parents, degrees, generator), observations, generator)
    return Solution(standardize(values), explained)


# Other members of a class


MIN_STEPS, STEPS_PER_VARIABLE, MAX_STEPS = 20, 3, 150


def draw_equivalent_graphs(adjacency: Tensor, generator: torch.Generator) -> Tensor:
    """Draw a member of each graph's equivalence class by a walk that is uniform on the class in the limit.

    An edge j → k is covered if the causes of k are j and the causes of j; reversing it leads to another member, and any
    two members are connected by such steps (Chickering, 1995). A covered edge is chosen uniformly, and the step is
    taken with the probability of Metropolis and Hastings.  (B, P, P) bool
    """
    graphs = adjacency.float()
    tasks, variables, _ = graphs.shape
    covered = _covered(graphs)
    # Half of the walks are one step shorter, so that even and odd numbers of reversed edges are equally likely.
    waits = torch.rand(tasks, generator=generator, device=graphs.device) < 0.5
    for step in range(min(MIN_STEPS + STEPS_PER_VARIABLE * variables, MAX_STEPS)):
        dials = torch.rand(tasks, variables * variables + 1, generator=generator, device=graphs.device)
        chosen = (dials[:, 1:] * covered.flatten(1)).argmax(1)
        reversed_edge = torch.zeros_like(graphs).flatten(1).scatter_(1, chosen[:, None], 1.0).view_as(graphs)
        reversed_edge = reversed_edge * covered  # nothing where no edge is covered
        proposed = graphs - reversed_edge + reversed_edge.mT
        covered_then = _covered(proposed)
        taken = dials[:, 0] * covered_then.sum((1, 2)) < covered.sum((1, 2))
        taken = taken & ~waits if step == 0 else taken
        graphs = torch.where(taken[:, None, None], proposed, graphs)
        covered = torch.where(taken[:, None, None], covered_then, covered)
    return graphs > 0


def causal_order(adjacency: Tensor) -> Tensor:
    """Sort the variables of each graph by their number of ancestors: causes before effects.  (B, P)"""
    reached = adjacency.float()
    for _ in range(math.ceil(math.log2(adjacency.shape[1]))):
        reached = ((reached + torch.bmm(reached, reached)) > 0).float()
    return reached.sum(1).argsort(dim=1, stable=True)


def _covered(graphs: Tensor) -> Tensor:
    """1 for covered edges j → k, else 0.  (B, P, P)"""
    causes = graphs.sum(1)  # (B, P)
    shared = torch.bmm(graphs.mT, graphs)
    alike = (causes[:, None, :] == causes[:, :, None] + 1) & (shared == causes[:, :, None])
    return graphs * alike
