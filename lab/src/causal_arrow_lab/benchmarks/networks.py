"""Networks of the Bayesian Network Repository, four linear Gaussian and eleven discrete ones (from pgmpy's copies), and
linear equations on drawn graphs.

Herman et al. (2025) compare six ways to draw the coefficients of linear equations, which differ in what the scale of
the data reveals: in the raw model variances grow along the causal order, in the others some rule keeps them equal. The
suite `limit` has small graphs, whose exact posterior can be computed. For the normal–Wishart distribution a table
identifies only the equivalence class of its graph; other distributions of coefficients reveal more.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from importlib import resources
from math import comb, factorial

import numpy as np
import numpy.typing as npt

from causal_arrow.errors import check_choice
from causal_arrow.graphs import dag
from causal_arrow.tables.table import Column
from causal_arrow_lab.benchmarks.datasets import (
    PAPER_EDGES_PER_VARIABLE,
    BoolArray,
    Dataset,
    FloatArray,
    draw_shape,
    unnamed,
)

# N observations, P variables, G graphs

LIMIT_OBSERVATIONS = 500
LIMIT_VARIABLES = (3, 5)
MIN_DEGREES, MAX_DEGREES = 1.0, 15.0  # of the normal–Wishart distribution, even on a log scale


@dataclass(frozen=True)
class LinearGaussianModel:
    """x_k = intercept_k + Σ_j x_j · weights[j, k] + deviation_k · standard normal noise."""

    weights: FloatArray  # (P, P), [j, k] nonzero exactly when j → k
    noise_deviations: FloatArray  # (P,)
    intercepts: FloatArray  # (P,)

    def observe(self, observations: int, generator: np.random.Generator) -> FloatArray:
        """Draw independent observations.  (N, P)"""
        data = ancestral_observations(
            self.weights, observations, generator, lambda k, signal, noise: signal + self.noise_deviations[k] * noise
        )
        means = np.linalg.solve(np.eye(len(self.weights)) - self.weights.T, self.intercepts)
        return data + means

    def covariance(self) -> FloatArray:
        """Covariance matrix of the variables.  (P, P)"""
        from_noise = np.linalg.inv(np.eye(len(self.weights)) - self.weights)  # x = noise · (I − W)⁻¹
        return np.asarray(from_noise.T @ np.diag(self.noise_deviations**2) @ from_noise)


@dataclass(frozen=True)
class SampleScaledModel:
    """A linear model that rescales each variable by statistics of its observations before its children see it."""

    weights: FloatArray  # (P, P), [j, k] nonzero exactly when j → k
    combine: Callable[[FloatArray, FloatArray], FloatArray]  # signal (N,), standard normal noise (N,) -> column (N,)

    def observe(self, observations: int, generator: np.random.Generator) -> FloatArray:
        """Draw observations, independent except for the shared scales.  (N, P)"""
        return ancestral_observations(
            self.weights, observations, generator, lambda k, signal, noise: self.combine(signal, noise)
        )


def ancestral_observations(
    weights: FloatArray,
    observations: int,
    generator: np.random.Generator,
    combine: Callable[[int, FloatArray, FloatArray], FloatArray],
) -> FloatArray:
    """Draw observations variable by variable, causes first.  (N, P)

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


# Models of Herman et al.


def unit_variance_noise(adjacency: BoolArray, generator: np.random.Generator) -> LinearGaussianModel:
    """Weights ±U(0.5, 2), noise deviation 1: the raw model, whose variances grow along the causal order."""
    weights = _signed_uniform(adjacency, 0.5, 2.0, generator)
    return LinearGaussianModel(weights, np.ones(len(weights)), np.zeros(len(weights)))


def iscm(adjacency: BoolArray, generator: np.random.Generator) -> SampleScaledModel:
    """Internally standardized model: unit-variance-noise with each variable divided by its sample deviation."""

    def combine(signal: FloatArray, noise: FloatArray) -> FloatArray:
        column = signal + noise
        return np.asarray(column / column.std())

    return SampleScaledModel(_signed_uniform(adjacency, 0.5, 2.0, generator), combine)


def ipa(adjacency: BoolArray, generator: np.random.Generator) -> LinearGaussianModel:
    """Weights ±U(0.5, 1.5) and unit noise, both divided by √(Σ_parents weight² + 1).

    Variances would be 1 if the parents were independent with unit variance.
    """
    weights = _signed_uniform(adjacency, 0.5, 1.5, generator)
    scale = np.sqrt((weights**2).sum(axis=0) + 1)
    return LinearGaussianModel(weights / scale, 1 / scale, np.zeros(len(weights)))


def fifty_fifty(adjacency: BoolArray, generator: np.random.Generator) -> SampleScaledModel:
    """Weights ±U(0.25, 1); the variance of a variable with parents is half signal, half noise."""

    def combine(signal: FloatArray, noise: FloatArray) -> FloatArray:
        return signal / (np.sqrt(2) * signal.std()) + noise / np.sqrt(2) if signal.any() else noise

    return SampleScaledModel(_signed_uniform(adjacency, 0.25, 1.0, generator), combine)


def uumc(adjacency: BoolArray, generator: np.random.Generator) -> LinearGaussianModel:
    """Unitless, unrestricted, Markov-consistent: unit variances from random directions and strengths.

    In causal order, with R the correlations of the k parents: a' ~ N(0, 1), r = U(0, 1)^(1/k),
    C² = r²·a'ᵀRa' + (1 − r²)·Σa'², weights a'·r/C, noise variance (1 − r²)·Σa'²/C². Every variance is then 1.
    """

    def draw(i: int, correlation: FloatArray) -> tuple[FloatArray, float]:
        direction = generator.standard_normal(len(correlation))
        strength = generator.uniform() ** (1 / len(correlation))
        signal = strength**2 * direction @ correlation @ direction
        noise = (1 - strength**2) * direction @ direction
        return direction * strength / np.sqrt(signal + noise), np.sqrt(noise / (signal + noise))

    return _unit_variance_model(adjacency, draw)


def dao(
    adjacency: BoolArray, generator: np.random.Generator, *, variance_as_deviation: bool = True
) -> LinearGaussianModel:
    """DAG-adapted onion: a uniform correlation matrix (LKJ, η = 1) restricted to the entries that the DAG leaves free.

    In causal order, sources first, the i-th variable (from 0) with k parents takes q ~ Beta(k/2, (p − i + 1)/2) and
    w = √q · (random unit vector); its weights are L⁻ᵀw, L the Cholesky factor of the parents' correlations, and its
    error variance is 1 − q. The published generator, which made the paper's figures, uses that as a standard deviation.
    """

    def draw(i: int, correlation: FloatArray) -> tuple[FloatArray, float]:
        explained = generator.beta(len(correlation) / 2, (len(adjacency) - i + 1) / 2)
        direction = generator.standard_normal(len(correlation))
        w = np.sqrt(explained) * direction / np.linalg.norm(direction)
        weights = np.linalg.solve(np.linalg.cholesky(correlation).T, w)
        return weights, 1 - explained if variance_as_deviation else np.sqrt(1 - explained)

    return _unit_variance_model(adjacency, draw)


HERMAN_MODELS: dict[str, Callable[[BoolArray, np.random.Generator], LinearGaussianModel | SampleScaledModel]] = {
    "UUMC": uumc,
    "unit-variance-noise": unit_variance_noise,
    "iSCM": iscm,
    "IPA": ipa,
    "50-50": fifty_fifty,
    "DaO": dao,
}


def draw_herman_dataset(generator: np.random.Generator, *, model: str) -> Dataset:
    """Draw a dataset of one of the six models on an Erdős–Rényi DAG, its shape as in the paper's section 4.1."""
    observations, variables = draw_shape(generator)
    edges = int(generator.integers(0, PAPER_EDGES_PER_VARIABLE * variables, endpoint=True))
    adjacency = erdos_renyi_dag(variables, edges, generator)
    equations = HERMAN_MODELS[model](adjacency, generator)
    details = {"error_variance_used_as_deviation": True} if model == "DaO" else {}
    return unnamed(equations.observe(observations, generator), adjacency, **details)


def erdos_renyi_dag(variables: int, edges: int, generator: np.random.Generator) -> BoolArray:
    """Draw a DAG with that many edges, at most p(p − 1)/2: random pairs, oriented by a random order.  (P, P)"""
    first, second = np.triu_indices(variables, k=1)
    chosen = generator.choice(first.size, size=min(edges, first.size), replace=False)
    order = generator.permutation(variables)
    adjacency = np.zeros((variables, variables), dtype=bool)
    adjacency[order[first[chosen]], order[second[chosen]]] = True
    return adjacency


# Models of the suite `limit`


def paper_model(adjacency: BoolArray, generator: np.random.Generator) -> LinearGaussianModel:
    """Section 4.1: weights of random sign in [1 − a, 1 + a], an R² in [0.1, 0.9] for each effect, unit variances."""
    spread = generator.uniform(0.0, 0.9)
    shapes = generator.uniform(1.0, 10.0, size=2)

    def draw(i: int, correlation: FloatArray) -> tuple[FloatArray, float]:
        count = len(correlation)
        drawn = generator.choice([-1.0, 1.0], size=count) * generator.uniform(1 - spread, 1 + spread, size=count)
        explained = 0.1 + 0.8 * generator.beta(*shapes)
        signal = float(drawn @ correlation @ drawn)
        # Parents that cancel each other leave no signal to scale: then the column is noise, as in the generator.
        return drawn * np.sqrt(explained / max(signal, 1e-12)), np.sqrt(1 - explained)

    return _unit_variance_model(adjacency, draw)


def normal_wishart_model(adjacency: BoolArray, generator: np.random.Generator) -> LinearGaussianModel:
    """σ_k² = 1 / χ²(δ + m_k), β_k ~ Norm(0, σ_k² I): graphs of one class give the covariance the same distribution.

    See `synthetic.equivalence`; here the columns keep the scale that this gives them.
    """
    degrees = MIN_DEGREES * (MAX_DEGREES / MIN_DEGREES) ** generator.uniform()
    deviations = 1 / np.sqrt(generator.chisquare(degrees + adjacency.sum(axis=0)))
    weights = np.where(adjacency, generator.standard_normal(adjacency.shape) * deviations, 0.0)
    return LinearGaussianModel(weights, deviations, np.zeros(len(adjacency)))


LIMIT_MODELS: dict[str, Callable[[BoolArray, np.random.Generator], LinearGaussianModel]] = {
    "normal-wishart": normal_wishart_model,
    "paper": paper_model,
    "UUMC": uumc,
    "onion": partial(dao, variance_as_deviation=False),  # as derived
}


def draw_limit_dataset(generator: np.random.Generator, *, law: str) -> Dataset:
    """Draw a table of 500 observations of 3 to 5 variables; every possible number of edges is equally likely."""
    variables = int(generator.integers(*LIMIT_VARIABLES, endpoint=True))
    edges = int(generator.integers(0, variables * (variables - 1) // 2, endpoint=True))
    adjacency = erdos_renyi_dag(variables, edges, generator)
    return unnamed(LIMIT_MODELS[law](adjacency, generator).observe(LIMIT_OBSERVATIONS, generator), adjacency)


def log_prior_of_graphs(edges: FloatArray, variables: int) -> FloatArray:
    """Log probability of a graph in `draw_limit_dataset`, given its edges and one of its orders of variables.  (G,)"""
    pairs = variables * (variables - 1) // 2
    ways = np.array([comb(pairs, count) for count in range(pairs + 1)], dtype=np.float64)
    return np.asarray(-np.log(ways[edges.astype(int)]) - np.log(pairs + 1) - np.log(factorial(variables)))


# What they share


def _unit_variance_model(
    adjacency: BoolArray, draw: Callable[[int, FloatArray], tuple[FloatArray, float]]
) -> LinearGaussianModel:
    """Build a model in causal order. `draw(i, correlations of the parents)` returns weights and noise deviation."""
    variables = len(adjacency)
    weights, deviations, correlation = np.zeros((variables, variables)), np.ones(variables), np.eye(variables)
    for i, k in enumerate(dag.topological_order(adjacency)):
        parents = np.flatnonzero(adjacency[:, k])
        if parents.size:
            weights[parents, k], deviations[k] = draw(i, correlation[np.ix_(parents, parents)])
            # Variables later in the causal order still have correlation 0 with everything, and so get 0 here.
            correlation[k] = correlation[:, k] = correlation[:, parents] @ weights[parents, k]
            correlation[k, k] = 1.0
    return LinearGaussianModel(weights, deviations, np.zeros(variables))


def _signed_uniform(adjacency: BoolArray, low: float, high: float, generator: np.random.Generator) -> FloatArray:
    """Random signs times uniform magnitudes on the edges, 0 elsewhere.  (P, P)"""
    magnitudes = generator.uniform(low, high, size=adjacency.shape)
    signs = generator.choice([-1.0, 1.0], size=adjacency.shape)
    return np.where(adjacency, signs * magnitudes, 0.0)


# The Bayesian Network Repository

GAUSSIAN_NETWORKS = ("ECOLI70", "MAGIC-NIAB", "MAGIC-IRRI", "ARTH150")
DISCRETE_NETWORKS = (
    *("ASIA", "SURVEY", "SACHS", "CHILD", "INSURANCE", "ALARM"),
    *("WATER", "HEPAR2", "WIN95PTS", "HAILFINDER", "MILDEW"),
)
DATA = resources.files("causal_arrow_lab.benchmarks") / "data"
DISCRETE_FILE = "discrete-networks.json.gz"


@dataclass(frozen=True)
class GaussianNetwork:
    """A linear Gaussian model whose variables have names."""

    names: tuple[str, ...]
    model: LinearGaussianModel


@cache
def load_network(name: str) -> GaussianNetwork:
    """Load one of GAUSSIAN_NETWORKS."""
    check_choice("the name of a Gaussian network", name, GAUSSIAN_NETWORKS)
    file = json.loads((DATA / f"{name.lower()}.json").read_text(encoding="utf-8"))
    names = tuple(file["nodes"])
    index = {variable: k for k, variable in enumerate(names)}
    weights = np.zeros((len(names), len(names)))
    intercepts, noise_deviations = np.zeros((2, len(names)))
    for variable, equation in file["cpds"].items():
        k = index[variable]
        (intercepts[k],) = equation["coefficients"]["(Intercept)"]
        (variance,) = equation["variance"]
        noise_deviations[k] = np.sqrt(variance)
        for parent in equation["parents"]:
            (weights[index[parent], k],) = equation["coefficients"][parent]
    return GaussianNetwork(names, LinearGaussianModel(weights, noise_deviations, intercepts))


def draw_network_dataset(generator: np.random.Generator, *, network: str, observations: int) -> Dataset:
    """Draw independent observations of a Gaussian network."""
    drawn = load_network(network)
    return Dataset(drawn.model.observe(observations, generator), drawn.model.weights != 0, drawn.names)


@dataclass(frozen=True, eq=False)
class DiscreteNetwork:
    """Variables with their levels, and the probability of each level given those of the parents."""

    names: tuple[str, ...]  # (P,)
    levels: tuple[tuple[str, ...], ...]  # (P,) names of the levels of each variable
    parents: tuple[tuple[int, ...], ...]  # (P,)
    tables: tuple[FloatArray, ...]  # (P,) each (levels of the first parent, of the second, ..., own levels)

    @property
    def adjacency(self) -> BoolArray:
        """[j, k] when j → k.  (P, P)"""
        adjacency = np.zeros((len(self.names), len(self.names)), dtype=bool)
        for k, parents in enumerate(self.parents):
            adjacency[list(parents), k] = True
        return adjacency

    def observe(self, observations: int, generator: np.random.Generator) -> npt.NDArray[np.int64]:
        """Draw independent observations as codes of the levels, causes first.  (N, P)"""
        codes = np.zeros((observations, len(self.names)), dtype=np.int64)
        for k in dag.topological_order(self.adjacency):
            given = tuple(codes[:, parent] for parent in self.parents[k])
            probabilities = self.tables[k][given] if given else self.tables[k][None]  # (N or 1, levels)
            # The last sum is 1 up to rounding, and no drawn number may exceed it.
            thresholds = np.cumsum(probabilities, axis=1)[:, :-1]
            codes[:, k] = (generator.random((observations, 1)) >= thresholds).sum(axis=1)
        return codes


@cache
def load_discrete_network(name: str) -> DiscreteNetwork:
    """Load one of DISCRETE_NETWORKS."""
    check_choice("the name of a discrete network", name, DISCRETE_NETWORKS)
    variables = json.loads(gzip.decompress((DATA / DISCRETE_FILE).read_bytes()))[name]
    index = {variable["name"]: k for k, variable in enumerate(variables)}
    levels = tuple(tuple(variable["levels"]) for variable in variables)
    parents = tuple(tuple(index[parent] for parent in variable["parents"]) for variable in variables)
    tables = tuple(
        np.array(variable["table"]).reshape([len(levels[parent]) for parent in parents[k]] + [len(levels[k])])
        for k, variable in enumerate(variables)
    )
    return DiscreteNetwork(tuple(index), levels, parents, tables)


def draw_discrete_dataset(generator: np.random.Generator, *, network: str, observations: int) -> Dataset:
    """Draw independent observations of a discrete network, with the levels of each variable in random order.

    A variable with only one value in the whole table is left out, with its edges.
    """
    drawn = load_discrete_network(network)
    codes = drawn.observe(observations, generator)
    columns = []
    for k, (variable, levels) in enumerate(zip(drawn.names, drawn.levels, strict=True)):
        order = generator.permutation(len(levels))  # order[code in the network] is the code in the table
        codes[:, k] = order[codes[:, k]]
        renamed = tuple(levels[code] for code in np.argsort(order))
        columns.append(Column(variable, "binary" if len(levels) == 2 else "category", renamed))
    varies = codes.min(axis=0) < codes.max(axis=0)
    kept = tuple(column for column, keep in zip(columns, varies, strict=True) if keep)
    return Dataset(
        codes[:, varies].astype(np.float64),
        drawn.adjacency[np.ix_(varies, varies)],
        tuple(column.name for column in kept),
        {"constant_variables": int((~varies).sum())},
        columns=kept,
    )
