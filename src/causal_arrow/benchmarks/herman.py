"""Six ways to choose the coefficients and noise of a linear Gaussian model, compared by Herman et al. (2025).

They differ in what the scale of the data gives away: in the raw model variances grow along the causal order, in the
others some rule keeps them equal. Each is a function of a DAG, by the name it has in the paper's table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from causal_arrow.benchmarks.datasets import (
    PAPER_EDGES_PER_VARIABLE,
    BoolArray,
    Dataset,
    FloatArray,
    draw_shape,
    unnamed,
)
from causal_arrow.benchmarks.linear_gaussian import LinearGaussianModel, ancestral_observations
from causal_arrow.graphs import dag


class Model(Protocol):
    """Something that can be observed."""

    def observe(self, observations: int, generator: np.random.Generator) -> FloatArray: ...


@dataclass(frozen=True)
class SampleScaledModel:
    """A linear model that rescales each variable by statistics of its observations, before its children see it."""

    weights: FloatArray  # (P, P), [j, k] nonzero exactly when j → k
    combine: Callable[[FloatArray, FloatArray], FloatArray]  # signal (N,), standard normal noise (N,) -> column (N,)

    def observe(self, observations: int, generator: np.random.Generator) -> FloatArray:
        """Independent observations, up to the shared scales.  (N, P)"""
        return ancestral_observations(
            self.weights, observations, generator, lambda k, signal, noise: self.combine(signal, noise)
        )


def unit_variance_noise(adjacency: BoolArray, generator: np.random.Generator) -> LinearGaussianModel:
    """Weights ±U(0.5, 2), noise deviation 1: the raw model, whose variances grow along the causal order."""
    weights = _signed_uniform(adjacency, 0.5, 2.0, generator)
    return LinearGaussianModel(weights, np.ones(len(weights)), np.zeros(len(weights)))


def iscm(adjacency: BoolArray, generator: np.random.Generator) -> SampleScaledModel:
    """Internally standardized model: as unit-variance-noise, each variable divided by its deviation in the sample."""
    return SampleScaledModel(_signed_uniform(adjacency, 0.5, 2.0, generator), _divided_by_deviation)


def ipa(adjacency: BoolArray, generator: np.random.Generator) -> LinearGaussianModel:
    """Weights ±U(0.5, 1.5) and unit noise, both divided by √(Σ_parents weight² + 1).

    Unit variance if the parents were independent with unit variance.
    """
    weights = _signed_uniform(adjacency, 0.5, 1.5, generator)
    scale = np.sqrt((weights**2).sum(axis=0) + 1)
    return LinearGaussianModel(weights / scale, 1 / scale, np.zeros(len(weights)))


def fifty_fifty(adjacency: BoolArray, generator: np.random.Generator) -> SampleScaledModel:
    """Weights ±U(0.25, 1); a variable with parents is half signal, half noise in variance."""
    return SampleScaledModel(_signed_uniform(adjacency, 0.25, 1.0, generator), _half_signal_half_noise)


def uumc(adjacency: BoolArray, generator: np.random.Generator) -> LinearGaussianModel:
    """Unitless, unrestricted, Markov-consistent: unit variances from random directions and strengths.

    In causal order, with R the correlations of the k parents: a' ~ N(0, 1), r = U(0, 1)^(1/k),
    C² = r²·a'ᵀRa' + (1 − r²)·Σa'², weights a'·r/C, noise variance (1 − r²)·Σa'²/C². Every variance is then 1.
    """
    variables = len(adjacency)
    weights, deviations, correlation = np.zeros((variables, variables)), np.ones(variables), np.eye(variables)
    for k in dag.topological_order(adjacency):
        parents = np.flatnonzero(adjacency[:, k])
        if not parents.size:
            continue
        direction = generator.standard_normal(parents.size)
        strength = generator.uniform() ** (1 / parents.size)
        signal = strength**2 * direction @ correlation[np.ix_(parents, parents)] @ direction
        noise = (1 - strength**2) * direction @ direction
        weights[parents, k] = direction * strength / np.sqrt(signal + noise)
        deviations[k] = np.sqrt(noise / (signal + noise))
        extend_correlation(correlation, int(k), parents, weights[parents, k])
    return LinearGaussianModel(weights, deviations, np.zeros(variables))


def dao(
    adjacency: BoolArray, generator: np.random.Generator, *, variance_as_deviation: bool = True
) -> LinearGaussianModel:
    """DAG-adapted onion: the law of a uniform correlation matrix (LKJ, η = 1) with the entries the DAG leaves free.

    In causal order, sources first, the i-th variable (from 0) with k parents takes q ~ Beta(k/2, (p − i + 1)/2) and
    w = √q · (random unit vector); its weights are L⁻ᵀw, L the Cholesky factor of the parents' correlations, and its
    error variance is 1 − q.

    The published generator uses that error variance as a standard deviation, so its variables with parents have less
    than unit variance. The paper's figures come from such data, hence the default; False gives the law as derived.
    """
    variables = len(adjacency)
    weights, deviations, correlation = np.zeros((variables, variables)), np.ones(variables), np.eye(variables)
    for i, k in enumerate(dag.topological_order(adjacency)):
        parents = np.flatnonzero(adjacency[:, k])
        if not parents.size:
            continue
        explained = generator.beta(parents.size / 2, (variables - i + 1) / 2)
        direction = generator.standard_normal(parents.size)
        w = np.sqrt(explained) * direction / np.linalg.norm(direction)
        cholesky = np.linalg.cholesky(correlation[np.ix_(parents, parents)])
        weights[parents, k] = np.linalg.solve(cholesky.T, w)
        deviations[k] = 1 - explained if variance_as_deviation else np.sqrt(1 - explained)
        extend_correlation(correlation, int(k), parents, weights[parents, k])
    return LinearGaussianModel(weights, deviations, np.zeros(variables))


HERMAN_MODELS: dict[str, Callable[[BoolArray, np.random.Generator], Model]] = {
    "UUMC": uumc,
    "unit-variance-noise": unit_variance_noise,
    "iSCM": iscm,
    "IPA": ipa,
    "50-50": fifty_fifty,
    "DaO": dao,
}


def draw_herman_dataset(name: str, generator: np.random.Generator) -> Dataset:
    """A dataset of one of the six models on an Erdős–Rényi DAG, its shape drawn as in the paper's section 4.1."""
    observations, variables = draw_shape(generator)
    edges = int(generator.integers(0, PAPER_EDGES_PER_VARIABLE * variables, endpoint=True))
    adjacency = erdos_renyi_dag(variables, edges, generator)
    model = HERMAN_MODELS[name](adjacency, generator)
    details = {"error_variance_used_as_deviation": True} if name == "DaO" else {}
    return unnamed(model.observe(observations, generator), adjacency, **details)


def erdos_renyi_dag(variables: int, edges: int, generator: np.random.Generator) -> BoolArray:
    """A DAG with that many edges, or all p(p − 1)/2 if there are fewer: pairs at random, oriented by a random order."""
    first, second = np.triu_indices(variables, k=1)
    chosen = generator.choice(first.size, size=min(edges, first.size), replace=False)
    order = generator.permutation(variables)
    adjacency = np.zeros((variables, variables), dtype=bool)
    adjacency[order[first[chosen]], order[second[chosen]]] = True
    return adjacency


def _signed_uniform(adjacency: BoolArray, low: float, high: float, generator: np.random.Generator) -> FloatArray:
    """Random signs times uniform magnitudes on the edges, 0 elsewhere.  (P, P)"""
    magnitudes = generator.uniform(low, high, size=adjacency.shape)
    signs = generator.choice([-1.0, 1.0], size=adjacency.shape)
    return np.where(adjacency, signs * magnitudes, 0.0)


def _divided_by_deviation(signal: FloatArray, noise: FloatArray) -> FloatArray:
    column = signal + noise
    return np.asarray(column / column.std())


def _half_signal_half_noise(signal: FloatArray, noise: FloatArray) -> FloatArray:
    is_root = not signal.any()
    return noise if is_root else signal / (np.sqrt(2) * signal.std()) + noise / np.sqrt(2)


def extend_correlation(
    correlation: FloatArray, variable: int, parents: npt.NDArray[np.intp], weights: FloatArray
) -> None:
    """Fill in the correlations of a unit-variance variable with all others, once its weights are known.

    Variables later in the causal order still have correlation 0 with everything, and so get 0 here.
    """
    correlation[variable] = correlation[:, variable] = correlation[:, parents] @ weights
    correlation[variable, variable] = 1.0
