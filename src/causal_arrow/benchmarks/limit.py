"""Few variables, linear equations, normal noise: tasks for which all that can be known can be computed.

The graph is drawn alike everywhere; rows differ in the law of the parameters. For the normal–Wishart law a table tells
nothing beyond the equivalence class of its graph, and `methods.exact_bayes` knows all that it tells. The other laws say
more: how the strength of causes is drawn differs from one member of a class to the other.
"""

# P variables

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from causal_arrow.benchmarks.datasets import BoolArray, Dataset, FloatArray, unnamed
from causal_arrow.benchmarks.herman import dao, erdos_renyi_dag, extend_correlation, uumc
from causal_arrow.benchmarks.linear_gaussian import LinearGaussianModel
from causal_arrow.graphs import dag

LIMIT_OBSERVATIONS = 500
LIMIT_VARIABLES = (3, 5)
LEAST_DEGREES, MOST_DEGREES = 1.0, 15.0  # of the normal–Wishart law, even on a log scale


def draw_limit_dataset(generator: np.random.Generator, *, law: str) -> Dataset:
    """A table of 500 observations of 3 to 5 variables; every number of edges that fits is as likely."""
    variables = int(generator.integers(*LIMIT_VARIABLES, endpoint=True))
    edges = int(generator.integers(0, variables * (variables - 1) // 2, endpoint=True))
    adjacency = erdos_renyi_dag(variables, edges, generator)
    return unnamed(PARAMETER_LAWS[law](adjacency, generator).observe(LIMIT_OBSERVATIONS, generator), adjacency)


def paper_law(adjacency: BoolArray, generator: np.random.Generator) -> LinearGaussianModel:
    """Section 4.1: weights of random sign in [1 − a, 1 + a], an R² in [0.1, 0.9] for each effect, unit variances."""
    variables = len(adjacency)
    spread = generator.uniform(0.0, 0.9)
    shapes = generator.uniform(1.0, 10.0, size=2)
    weights, deviations, correlation = np.zeros((variables, variables)), np.ones(variables), np.eye(variables)
    for k in dag.topological_order(adjacency):
        parents = np.flatnonzero(adjacency[:, k])
        if not parents.size:
            continue
        drawn = generator.choice([-1.0, 1.0], size=parents.size) * generator.uniform(
            1 - spread, 1 + spread, size=parents.size
        )
        explained = 0.1 + 0.8 * generator.beta(*shapes)
        signal = float(drawn @ correlation[np.ix_(parents, parents)] @ drawn)
        # Parents that cancel each other leave no signal to scale: then the column is noise, as in the generator.
        weights[parents, k] = drawn * np.sqrt(explained / max(signal, 1e-12))
        deviations[k] = np.sqrt(1 - explained)
        extend_correlation(correlation, int(k), parents, weights[parents, k])
    return LinearGaussianModel(weights, deviations, np.zeros(variables))


def normal_wishart_law(adjacency: BoolArray, generator: np.random.Generator) -> LinearGaussianModel:
    """σ_k² = 1 / χ²(δ + m_k), β_k ~ Norm(0, σ_k² I): two graphs of one class give the covariance the same law.

    As `synthetic.normal_wishart` derives; the columns keep the scale that this gives them.
    """
    degrees = LEAST_DEGREES * (MOST_DEGREES / LEAST_DEGREES) ** generator.uniform()
    deviations = 1 / np.sqrt(generator.chisquare(degrees + adjacency.sum(axis=0)))
    weights = np.where(adjacency, generator.standard_normal(adjacency.shape) * deviations, 0.0)
    return LinearGaussianModel(weights, deviations, np.zeros(len(adjacency)))


def onion_law(adjacency: BoolArray, generator: np.random.Generator) -> LinearGaussianModel:
    """The DAG-adapted onion as derived, every variance 1: for a complete graph any correlation matrix is as likely."""
    return dao(adjacency, generator, variance_as_deviation=False)


PARAMETER_LAWS: dict[str, Callable[[BoolArray, np.random.Generator], LinearGaussianModel]] = {
    "normal-wishart": normal_wishart_law,
    "paper": paper_law,
    "UUMC": uumc,
    "onion": onion_law,
}


def law_of_graphs(edges: FloatArray, variables: int) -> FloatArray:
    """Logarithm of the probability of a graph in `draw_limit_dataset` given its number of edges and the variables, per
    way in which a random order gives rise to it.  (G,)"""
    from math import comb, factorial

    pairs = variables * (variables - 1) // 2
    ways = np.array([comb(pairs, count) for count in range(pairs + 1)], dtype=np.float64)
    return np.asarray(-np.log(ways[edges.astype(int)]) - np.log(pairs + 1) - np.log(factorial(variables)))
