"""Linear structural equations with Gaussian noise, which the networks and the models of Herman et al. consist of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from causal_arrow.benchmarks.datasets import FloatArray
from causal_arrow.graphs import dag


@dataclass(frozen=True)
class LinearGaussianModel:
    """x_k = intercept_k + Σ_j x_j · weights[j, k] + deviation_k · standard normal noise."""

    weights: FloatArray  # (P, P), [j, k] nonzero exactly when j → k
    noise_deviations: FloatArray  # (P,)
    intercepts: FloatArray  # (P,)

    def observe(self, observations: int, generator: np.random.Generator) -> FloatArray:
        """Independent observations.  (N, P)"""
        data = ancestral_observations(
            self.weights, observations, generator, lambda k, signal, noise: signal + self.noise_deviations[k] * noise
        )
        means = np.linalg.solve(np.eye(len(self.weights)) - self.weights.T, self.intercepts)
        return data + means

    def covariance(self) -> FloatArray:
        """Covariance matrix of the variables.  (P, P)"""
        from_noise = np.linalg.inv(np.eye(len(self.weights)) - self.weights)  # x = noise · (I − W)⁻¹
        return np.asarray(from_noise.T @ np.diag(self.noise_deviations**2) @ from_noise)


def ancestral_observations(
    weights: FloatArray,
    observations: int,
    generator: np.random.Generator,
    combine: Callable[[int, FloatArray, FloatArray], FloatArray],
) -> FloatArray:
    """Observations made variable by variable, causes first.  (N, P)

    `combine(k, signal, noise)` makes the column of variable k from its parents' weighted sum (0 for a root) and
    standard normal noise, (N,) each.
    """
    variables = len(weights)
    data = np.zeros((observations, variables))
    for k in dag.topological_order(weights != 0):
        parents = np.flatnonzero(weights[:, k])
        signal = data[:, parents] @ weights[parents, k]
        data[:, k] = combine(int(k), signal, generator.standard_normal(observations))
    return data
