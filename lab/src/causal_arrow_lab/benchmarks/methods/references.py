"""Baselines that show how easy or hard a dataset is: no edges, random edges, orders by variances or R², everything that
independences identify, and the exact posterior over graphs of up to five variables, linear with normal noise.

In that, parameters have the normal–Wishart prior of the score BGe (Geiger and Heckerman 2002), under which graphs of
one equivalence class explain every table equally well. Graphs have the prior of the suite `limit`. So in its row
normal-wishart this is the true posterior, and no method can know more. In other rows it is what can be known without
knowing how strengths were drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from itertools import combinations, permutations

import numpy as np

from causal_arrow.discovery.second_opinion import standardized
from causal_arrow.errors import BenchmarkError
from causal_arrow.graphs import dag
from causal_arrow_lab.benchmarks.datasets import BoolArray, FloatArray
from causal_arrow_lab.benchmarks.methods.protocol import (
    Estimate,
    answer_from_pdag,
    answer_from_weights,
    timed,
)
from causal_arrow_lab.benchmarks.networks import LIMIT_VARIABLES, MAX_DEGREES, MIN_DEGREES, log_prior_of_graphs

# The number of edges of the paper's tasks is uniform from 0 to 4p (section 4.1): 2p on average.
RANDOM_EDGES_PER_VARIABLE = 2

# Added to the correlation matrix so that R² exists with fewer observations than variables.
R2_RIDGE = 1e-3


def empty(data: FloatArray, generator: np.random.Generator) -> Estimate:
    """No edges. The nSHD is 1: a method above that is worse than no answer."""
    nothing = np.zeros((data.shape[1], data.shape[1]))
    return Estimate(nothing.astype(bool), nothing, None, 0.0)


def random_graph(data: FloatArray, generator: np.random.Generator) -> Estimate:
    """A random order, and edges along it, each with the same probability."""
    variables = data.shape[1]
    pairs = variables * (variables - 1) / 2
    probability = min(1.0, RANDOM_EDGES_PER_VARIABLE * variables / pairs)
    position = generator.permutation(variables)
    forward = position[:, None] < position[None, :]
    scores = np.where(forward, generator.random((variables, variables)), 0.0)
    return Estimate(scores > 1 - probability, scores, None, 0.0)


def class_oracle(data: FloatArray, generator: np.random.Generator) -> Estimate:
    """The true equivalence class, and a random graph of it, as with perfect independence tests.

    Linear models with normal noise identify no more, unless scales or strengths follow the causal order.
    """
    order = generator.permutation(len(data))  # the order determines the member of the class
    answer = answer_from_pdag(dag.cpdag(data[np.ix_(order, order)] > 0), 0.0)
    here = np.ix_(np.argsort(order), np.argsort(order))
    return Estimate(answer.adjacency[here], answer.scores[here], None, 0.0)


def variances(data: FloatArray) -> FloatArray:
    """Variances, which grow along the causal order in many simulations (Reisach et al. 2021); scaling removes that."""
    return np.asarray(data.var(axis=0))


def explained_variances(data: FloatArray) -> FloatArray:
    """R² of each variable regressed on all others, 1 − 1/(C⁻¹)_jj with C the correlation matrix.  (P,)

    It grows along the causal order too (Reisach et al. 2023), whatever the scales.
    """
    table = standardized(data)
    correlations = table.T @ table / len(table) + R2_RIDGE * np.eye(table.shape[1])
    return np.asarray(1 - 1 / np.diag(np.linalg.inv(correlations)))


def sort_and_regress(
    data: FloatArray, generator: np.random.Generator, *, criterion: Callable[[FloatArray], FloatArray]
) -> Estimate:
    """Sort variables by a criterion, then regress each on those before it."""

    def work() -> FloatArray:
        order = np.argsort(criterion(data), kind="stable")
        table = standardized(data)
        weights = np.zeros((table.shape[1], table.shape[1]))
        for index, k in enumerate(order):
            before = order[:index]
            weights[before, k] = forward_regression(table[:, before], table[:, k])
        return weights

    return answer_from_weights(*timed(work))


def forward_regression(candidates: FloatArray, target: FloatArray) -> FloatArray:
    """Coefficients of candidates that are chosen one by one as long as the BIC falls, 0 for the others.  (P,)

    candidates (N, P), target (N,), all centered. Chosen candidates are projected out of the rest (Gram–Schmidt), so the
    next choice is the candidate with the largest partial correlation.
    """
    observations, variables = candidates.shape
    rest, residual = candidates.copy(), target.copy()
    sizes_at_start = np.maximum((candidates**2).sum(axis=0), 1e-300)
    chosen: list[int] = []
    while len(chosen) < min(variables, observations - 2):
        sizes = (rest**2).sum(axis=0)
        # What remains of a candidate that the chosen ones nearly determine is rounding error.
        gains = np.where(sizes > 1e-10 * sizes_at_start, (rest.T @ residual) ** 2 / np.maximum(sizes, 1e-300), 0.0)
        gains[chosen] = 0.0
        best = int(gains.argmax())
        before = residual @ residual
        after = max(before - gains[best], 1e-12 * before)
        if observations * np.log(after / max(before, 1e-300)) + np.log(observations) >= 0:
            break
        direction = rest[:, best] / np.sqrt(sizes[best])
        residual = residual - direction * (direction @ residual)
        rest = rest - np.outer(direction, direction @ rest)
        chosen.append(best)
    coefficients = np.zeros(variables)
    if chosen:
        coefficients[chosen] = np.linalg.lstsq(candidates[:, chosen], target, rcond=None)[0]
    return coefficients


# The exact posterior: G graphs, P variables, N observations

MAX_VARIABLES = LIMIT_VARIABLES[1]
DEGREES = np.geomspace(MIN_DEGREES, MAX_DEGREES, 9)  # of the normal–Wishart distribution, equally likely
EXACT_BAYES_SETTINGS = {
    "score": "BGe",
    "degrees": [round(float(degree), 4) for degree in DEGREES],
    "graphs": "every number of edges as likely",
}


def exact_bayes(data: FloatArray, generator: np.random.Generator) -> Estimate:
    """Enumerates all graphs: 29,281 for five variables."""
    variables = data.shape[1]
    if variables > MAX_VARIABLES:
        raise BenchmarkError(
            f"The method exact-bayes enumerates all graphs, which it does for up to {MAX_VARIABLES} variables; "
            f"this table has {variables}."
        )
    graphs, _ = all_dags(variables)
    posterior, seconds = timed(lambda: posterior_of(data))
    edges = np.tensordot(posterior, graphs.astype(np.float64), axes=1)
    paths = np.tensordot(posterior, dag.transitive_closure(graphs).astype(np.float64), axes=1)
    return Estimate(fewest_expected_mistakes(edges), edges, edges, seconds, ancestors=np.minimum(paths, 1.0))


@lru_cache
def all_dags(variables: int) -> tuple[BoolArray, FloatArray]:
    """Every DAG, and the number of orders that it agrees with.  (G, P, P), (G,)"""
    pairs = list(combinations(range(variables), 2))
    chosen = (np.arange(2 ** len(pairs))[:, None] >> np.arange(len(pairs))) & 1  # (subsets, pairs)
    codes = []
    for order in permutations(range(variables)):
        bits = np.array([order[first] * variables + order[second] for first, second in pairs], dtype=np.int64)
        codes.append(chosen @ (np.int64(1) << bits))
    distinct, orders = np.unique(np.concatenate(codes), return_counts=True)
    cells = (distinct[:, None] >> np.arange(variables * variables)) & 1
    return cells.reshape(-1, variables, variables).astype(bool), orders.astype(np.float64)


def posterior_of(data: FloatArray) -> FloatArray:
    """Probability of each graph of `all_dags` given the table.  (G,)"""
    variables = data.shape[1]
    graphs, orders = all_dags(variables)
    prior = log_prior_of_graphs(graphs.sum(axis=(1, 2)).astype(np.float64), variables) + np.log(orders)
    parents = (graphs * (1 << np.arange(variables))[:, None]).sum(axis=1)  # (G, P), each set as a number
    scores = local_scores(data)  # (degrees, P, sets)
    joint = scores[:, np.arange(variables), parents].sum(axis=-1) + prior  # (degrees, G)
    shares = np.exp(joint - joint.max()).sum(axis=0)
    return np.asarray(shares / shares.sum())


def local_scores(data: FloatArray) -> FloatArray:
    """Log marginal likelihood of each variable given each set of parents; −∞ for a set that contains the variable.

    For each of DEGREES.  (degrees, P, 2^P)
    """
    observations, variables = data.shape
    centered = data - data.mean(axis=0)
    scatter, count = centered.T @ centered, observations - 1
    sets = np.array([subset_score(scatter, count, members) for members in range(2**variables)])  # (2^P, degrees)
    scores = np.full((len(DEGREES), variables, 2**variables), -np.inf)
    for k in range(variables):
        without = [members for members in range(2**variables) if not members >> k & 1]
        scores[:, k, without] = (sets[[members | 1 << k for members in without]] - sets[without]).T
    return scores


def subset_score(scatter: FloatArray, count: int, members: int) -> FloatArray:
    """Log marginal likelihood of a set of variables with Σ ~ IW(δ + size − 1, I), for each δ of DEGREES.  (degrees,)"""
    indices = [index for index in range(len(scatter)) if members >> index & 1]
    size = len(indices)
    if not size:
        return np.zeros(len(DEGREES))
    degrees = DEGREES + size - 1
    _, logarithm = np.linalg.slogdet(np.eye(size) + scatter[np.ix_(indices, indices)])
    gammas = [
        sum(math.lgamma((degree + count - k) / 2) - math.lgamma((degree - k) / 2) for k in range(size))
        for degree in degrees
    ]
    return np.asarray(gammas - 0.5 * (degrees + count) * logarithm - 0.5 * count * size * math.log(math.pi))


def fewest_expected_mistakes(edges: FloatArray) -> BoolArray:
    """The DAG with the smallest expected structural Hamming distance, given the probabilities of edges.  (P, P)"""
    graphs, _ = all_dags(len(edges))
    upper = np.triu_indices(len(edges), k=1)
    forward, backward = edges[upper], edges.T[upper]
    there, reversed_ = graphs[:, upper[0], upper[1]], graphs[:, upper[1], upper[0]]
    right = np.where(there, forward, np.where(reversed_, backward, 1 - forward - backward))
    return np.asarray(graphs[right.sum(axis=1).argmax()])
