"""Methods of causal-learn: BOSS, GRaSP, PC, GES, FCI, and DirectLiNGAM (its copy of the lingam package)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import numpy as np

from causal_arrow_lab.benchmarks.datasets import BoolArray, FloatArray
from causal_arrow_lab.benchmarks.methods.protocol import (
    Estimate,
    Solve,
    answer_from_pdag,
    answer_from_weights,
    quiet,
    standardized,
    timed,
)

# The package's defaults, written down so that records have them and a later release cannot change them unnoticed.
BOSS_SETTINGS = {"score": "local_score_BIC_from_cov", "lambda_value": 2}
BOSS_1_SETTINGS = {"score": "local_score_BIC_from_cov", "lambda_value": 1}  # half the penalty on edges
GRASP_SETTINGS = {"score": "local_score_BIC_from_cov", "lambda_value": 2, "depth": 3}
PC_SETTINGS = {"test": "fisherz", "alpha": 0.05}
PC_001_SETTINGS = {"test": "fisherz", "alpha": 0.01}  # fewer edges: a test needs more evidence of dependence
GES_SETTINGS = {"score": "local_score_BIC_from_cov", "lambda_value": 0.5}
GES_1_SETTINGS = {"score": "local_score_BIC_from_cov", "lambda_value": 1}  # twice the penalty on edges
DIRECT_LINGAM_SETTINGS = {"measure": "pwling", "standardized": True}


Search = Callable[[FloatArray], BoolArray]
"""Finds a graph, whose undirected edges have both entries."""


def boss(settings: Mapping[str, Any]) -> Search:
    """Best order score search (Andrews et al. 2023)."""
    search = import_module("causallearn.search.PermutationBased.BOSS").boss
    penalty = {"lambda_value": settings["lambda_value"]}
    return lambda data: pdag_of(search(data, score_func=settings["score"], parameters=penalty, verbose=False))


def grasp(settings: Mapping[str, Any]) -> Search:
    """Greedy relaxations of the sparsest permutation (Lam et al. 2022)."""
    search = import_module("causallearn.search.PermutationBased.GRaSP").grasp
    score, depth, penalty = settings["score"], settings["depth"], {"lambda_value": settings["lambda_value"]}
    return lambda data: pdag_of(search(data, score_func=score, depth=depth, parameters=penalty, verbose=False))


def pc(settings: Mapping[str, Any]) -> Search:
    """Peter and Clark's search by conditional independence tests (Spirtes et al. 2001)."""
    search, test = import_module("causallearn.search.ConstraintBased.PC").pc, settings["test"]
    return lambda data: pdag_of(search(data, alpha=settings["alpha"], indep_test=test, show_progress=False).G)


def ges(settings: Mapping[str, Any]) -> Search:
    """Greedy equivalence search (Chickering 2002)."""
    search, penalty = import_module("causallearn.search.ScoreBased.GES").ges, settings["lambda_value"]
    return lambda data: pdag_of(search(data, score_func=settings["score"], lambda_value=penalty)["G"])


def start_search(prepare: Callable[[Mapping[str, Any]], Search], settings: Mapping[str, Any]) -> Solve:
    """Run one of these searches."""
    search = prepare(settings)

    def solve(data: FloatArray, generator: np.random.Generator) -> Estimate:
        with quiet(generator):
            graph, seconds = timed(lambda: search(data.copy()))
        return answer_from_pdag(graph, seconds)

    return solve


def start_direct_lingam(settings: Mapping[str, Any]) -> Solve:
    """DirectLiNGAM (Shimizu et al. 2011), for linear relations with non-Gaussian noise."""
    lingam = import_module("causallearn.search.FCMBased.lingam")

    def solve(data: FloatArray, generator: np.random.Generator) -> Estimate:
        table = standardized(data)
        model = lingam.DirectLiNGAM(measure=settings["measure"])
        _, seconds = timed(lambda: model.fit(table))
        return answer_from_weights(model.adjacency_matrix_.T, 0.0, seconds)  # lingam has [k, j] where j → k

    return solve


def pdag_of(graph: Any) -> BoolArray:
    """Convert a graph of causal-learn to our convention.  (P, P)

    [j, k] of its matrix is the mark at j of the edge between j and k: −1 a tail, 1 an arrowhead. PC may return j ↔ k,
    two arrowheads, where its tests contradict each other; then the direction is unknown.
    """
    tail_at_j, head_at_j = graph.graph == -1, graph.graph == 1
    return np.asarray(tail_at_j | (head_at_j & head_at_j.T))
