"""Methods of causal-learn: BOSS, GRaSP, PC, GES, FCI, and DirectLiNGAM (its copy of the lingam package)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import numpy as np

from causal_arrow.benchmarks.datasets import BoolArray, FloatArray
from causal_arrow.benchmarks.methods.protocol import (
    Estimate,
    Solve,
    answer_from_pdag,
    answer_from_weights,
    seeded_global_random,
    standardized,
    timed,
)

# The package's own choices, written down so that records say them and a later release cannot change them unseen.
BOSS_SETTINGS = {"score": "local_score_BIC_from_cov", "lambda_value": 2}
BOSS_1_SETTINGS = {"score": "local_score_BIC_from_cov", "lambda_value": 1}  # half the penalty on edges
GRASP_SETTINGS = {"score": "local_score_BIC_from_cov", "lambda_value": 2, "depth": 3}
PC_SETTINGS = {"test": "fisherz", "alpha": 0.05}
PC_001_SETTINGS = {"test": "fisherz", "alpha": 0.01}  # fewer edges: a test must be surer that two variables depend
GES_SETTINGS = {"score": "local_score_BIC_from_cov", "lambda_value": 0.5}
GES_1_SETTINGS = {"score": "local_score_BIC_from_cov", "lambda_value": 1}  # twice the penalty on edges
DIRECT_LINGAM_SETTINGS = {"measure": "pwling", "standardized": True}


def start_boss(settings: Mapping[str, Any] = BOSS_SETTINGS) -> Solve:
    """Best order score search (Andrews et al. 2023)."""
    boss = import_module("causallearn.search.PermutationBased.BOSS").boss
    return _solve_by_graph(
        lambda data: boss(
            data,
            score_func=settings["score"],
            parameters={"lambda_value": settings["lambda_value"]},
            verbose=False,
        )
    )


def start_grasp() -> Solve:
    """Greedy relaxations of the sparsest permutation (Lam et al. 2022)."""
    grasp = import_module("causallearn.search.PermutationBased.GRaSP").grasp
    return _solve_by_graph(
        lambda data: grasp(
            data,
            score_func=GRASP_SETTINGS["score"],
            depth=GRASP_SETTINGS["depth"],
            parameters={"lambda_value": GRASP_SETTINGS["lambda_value"]},
            verbose=False,
        )
    )


def start_pc(settings: Mapping[str, Any] = PC_SETTINGS) -> Solve:
    """Peter and Clark's search by conditional independence tests (Spirtes et al. 2001)."""
    pc = import_module("causallearn.search.ConstraintBased.PC").pc
    return _solve_by_graph(
        lambda data: pc(data, alpha=settings["alpha"], indep_test=settings["test"], show_progress=False).G
    )


def start_ges(settings: Mapping[str, Any] = GES_SETTINGS) -> Solve:
    """Greedy equivalence search (Chickering 2002)."""
    ges = import_module("causallearn.search.ScoreBased.GES").ges
    return _solve_by_graph(
        lambda data: ges(data, score_func=settings["score"], lambda_value=settings["lambda_value"])["G"]
    )


def start_direct_lingam() -> Solve:
    """DirectLiNGAM (Shimizu et al. 2011), for linear relations with non-Gaussian noise."""
    lingam = import_module("causallearn.search.FCMBased.lingam")

    def solve(data: FloatArray, generator: np.random.Generator) -> Estimate:
        table = standardized(data)
        model = lingam.DirectLiNGAM(measure=DIRECT_LINGAM_SETTINGS["measure"])
        _, seconds = timed(lambda: model.fit(table))
        return answer_from_weights(model.adjacency_matrix_.T, 0.0, seconds)  # lingam has [k, j] where j → k

    return solve


def _solve_by_graph(search: Callable[[FloatArray], Any]) -> Solve:
    def solve(data: FloatArray, generator: np.random.Generator) -> Estimate:
        with seeded_global_random(generator), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "number of features is much larger than the sample size", whenever n < p
            graph, seconds = timed(lambda: search(data.copy()))
        return answer_from_pdag(pdag_of(graph.graph), seconds)

    return solve


def pdag_of(endpoints: FloatArray) -> BoolArray:
    """causal-learn's endpoint matrix in our convention.  (P, P)

    [j, k] holds the mark at j of the edge between j and k: −1 a tail, 1 an arrowhead. PC may return j ↔ k, two
    arrowheads, where its tests contradict each other; all that says about direction is that it is unknown.
    """
    tail_at_j, head_at_j = endpoints == -1, endpoints == 1
    return np.asarray(tail_at_j | (head_at_j & head_at_j.T))
