"""Baselines that show how easy or hard a dataset is: no edges, random edges, orders by variances or R², and everything
that independences identify."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from causal_arrow.graphs import dag
from causal_arrow_lab.benchmarks.datasets import FloatArray
from causal_arrow_lab.benchmarks.methods.protocol import (
    Estimate,
    Solve,
    answer_from_pdag,
    answer_from_weights,
    standardized,
    timed,
)

# The number of edges of the paper's tasks is uniform from 0 to 4p (section 4.1): 2p on average.
RANDOM_EDGES_PER_VARIABLE = 2

# Added to the correlation matrix so that R² exists with fewer observations than variables.
R2_RIDGE = 1e-3


def start_empty() -> Solve:
    """No edges. The nSHD is 1: a method above that is worse than no answer."""

    def solve(data: FloatArray, generator: np.random.Generator) -> Estimate:
        nothing = np.zeros((data.shape[1], data.shape[1]))
        return Estimate(nothing.astype(bool), nothing, None, 0.0)

    return solve


def start_random() -> Solve:
    """A random order, and edges along it, each with the same probability."""

    def solve(data: FloatArray, generator: np.random.Generator) -> Estimate:
        variables = data.shape[1]
        pairs = variables * (variables - 1) / 2
        probability = min(1.0, RANDOM_EDGES_PER_VARIABLE * variables / pairs)

        def draw() -> FloatArray:
            position = generator.permutation(variables)
            forward = position[:, None] < position[None, :]
            return np.where(forward, generator.random((variables, variables)), 0.0)

        scores, seconds = timed(draw)
        return Estimate(scores > 1 - probability, scores, None, seconds)

    return solve


def start_class_oracle() -> Solve:
    """The true equivalence class, and a random graph of it, as with perfect independence tests.

    Linear models with normal noise identify no more, unless scales or strengths follow the causal order.
    """

    def solve(data: FloatArray, generator: np.random.Generator) -> Estimate:
        order = generator.permutation(len(data))  # the order determines the member of the class
        back = np.argsort(order)
        answer = answer_from_pdag(dag.cpdag(data[np.ix_(order, order)] > 0), 0.0)
        here = np.ix_(back, back)
        return Estimate(answer.adjacency[here], answer.scores[here], None, 0.0)

    return solve


def start_variance_sorting() -> Solve:
    """Causes have smaller variances (Reisach et al. 2021): an artifact of many simulations that scaling removes."""
    return _sort_and_regress(lambda data: data.var(axis=0))


def start_r2_sorting() -> Solve:
    """Causes are less predictable from all others (Reisach et al. 2023): an artifact that scaling does not remove."""
    return _sort_and_regress(explained_variances)


def explained_variances(data: FloatArray) -> FloatArray:
    """R² of each variable regressed on all others, 1 − 1/(C⁻¹)_jj with C the correlation matrix.  (P,)"""
    table = standardized(data)
    correlations = table.T @ table / len(table) + R2_RIDGE * np.eye(table.shape[1])
    return np.asarray(1 - 1 / np.diag(np.linalg.inv(correlations)))


def _sort_and_regress(criterion: Callable[[FloatArray], FloatArray]) -> Solve:
    """Sort variables by a criterion, then regress each on those before it."""

    def weights_of(data: FloatArray) -> FloatArray:
        order = np.argsort(criterion(data), kind="stable")
        table = standardized(data)
        weights = np.zeros((table.shape[1], table.shape[1]))
        for index, k in enumerate(order):
            before = order[:index]
            weights[before, k] = forward_regression(table[:, before], table[:, k])
        return weights

    def solve(data: FloatArray, generator: np.random.Generator) -> Estimate:
        weights, seconds = timed(lambda: weights_of(data))
        return answer_from_weights(weights, 0.0, seconds)

    return solve


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
