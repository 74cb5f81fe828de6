"""Rival methods of installed packages: causal-learn, pgmpy, gies, and DAGMA.

Methods for tables with categories, holes, experiments and hidden causes read an `Observed`; `Estimate.reading`
describes how they read what they cannot read exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from causal_arrow.discovery.second_opinion import pdag_of, shrunk, standardized
from causal_arrow.errors import BenchmarkError
from causal_arrow.graphs import dag
from causal_arrow.tables.table import MIN_ROWS, Table
from causal_arrow_lab.benchmarks.datasets import BoolArray, FloatArray
from causal_arrow_lab.benchmarks.methods.protocol import (
    Estimate,
    Observed,
    Solve,
    answer_from_pdag,
    answer_from_weights,
    complete,
    quiet,
    timed,
)

# The package's defaults, written down so that records have them and a later release cannot change them unnoticed.
BOSS_SETTINGS = {"score": "local_score_BIC_from_cov", "lambda_value": 2}
PC_SETTINGS = {"test": "fisherz", "alpha": 0.05}
GES_SETTINGS = {"score": "local_score_BIC_from_cov", "lambda_value": 0.5}
FLOP_SETTINGS = {"lambda_bic": 2.0, "restarts": 50, "standardized": True}
LINGAM_SETTINGS = {"measure": "pwling", "standardized": True}
# The regression of the package's own example.
RESIT_SETTINGS = {"regression": "random forest", "max_depth": 4, "alpha": 0.01, "standardized": True}

Search = Callable[[Any], BoolArray]
"""Finds a graph, whose undirected edges have both entries, in numbers or codes of levels."""


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


def copied(data: FloatArray) -> tuple[FloatArray, dict[str, str]]:
    """Numbers as they are, for a search that may change them."""
    return data.copy(), {}


def start_search(
    prepare: Callable[[Mapping[str, Any]], Search],
    settings: Mapping[str, Any],
    read: Callable[[Any], tuple[npt.NDArray[Any], dict[str, str]]] = copied,
) -> Solve:
    """Run one of these searches on what it reads."""
    search = prepare(settings)

    def solve(data: FloatArray | Observed, generator: np.random.Generator) -> Estimate:
        values, reading = read(data)
        with quiet(generator):
            graph, seconds = timed(lambda: search(values))
        return answer_from_pdag(graph, seconds, reading)

    return solve


def direct_lingam(settings: Mapping[str, Any], generator: np.random.Generator) -> Any:
    """DirectLiNGAM (Shimizu et al. 2011), for linear relations with non-Gaussian noise."""
    return import_module("causallearn.search.FCMBased.lingam").DirectLiNGAM(measure=settings["measure"])


def resit(settings: Mapping[str, Any], generator: np.random.Generator) -> Any:
    """RESIT (Peters et al. 2014), for nonlinear relations with additive noise. Its graph has no weights."""
    depth, seed = settings["max_depth"], int(generator.integers(2**31))
    forest = import_module("sklearn.ensemble").RandomForestRegressor(max_depth=depth, random_state=seed)
    return import_module("lingam").RESIT(forest, alpha=settings["alpha"])


def start_fit(make: Callable[[Mapping[str, Any], np.random.Generator], Any], settings: Mapping[str, Any]) -> Solve:
    """Fit a model of lingam to standardized columns."""
    make(settings, np.random.default_rng(0))  # imports, which no dataset should pay for

    def solve(data: FloatArray, generator: np.random.Generator) -> Estimate:
        table, model = standardized(data), make(settings, generator)
        with quiet(generator):
            _, seconds = timed(lambda: model.fit(table))
        return answer_from_weights(model.adjacency_matrix_.T, seconds)  # lingam has [k, j] where j → k

    return solve


start_direct_lingam = partial(start_fit, direct_lingam)
start_resit = partial(start_fit, resit)


def start_flop(settings: Mapping[str, Any]) -> Solve:
    """FLOP (Wienöbst et al. 2025), a search over orders by BIC, for linear relations; its graph is a CPDAG.

    Its restarts are random and take no seed, so that close calls may differ from run to run. It needs a covariance of
    full rank. Where the table has none, as with fewer rows than columns, it gets rows with the covariance shrunk by
    Ledoit and Wolf's rule.
    """
    flop = import_module("flopsearch").flop

    def solve(data: FloatArray | Observed, generator: np.random.Generator) -> Estimate:
        observed = without_holes(data)
        values, penalty, reading = standardized(observed.table.values), settings["lambda_bic"], observed.as_numbers
        if np.linalg.matrix_rank(values) < values.shape[1]:
            values, factor = shrunk(values)
            penalty, reading = penalty * factor, {**reading, "covariance": "shrunk"}
        marks, seconds = timed(lambda: flop(values, penalty, restarts=settings["restarts"]))
        return answer_from_pdag(np.asarray(marks) > 0, seconds, reading)

    return solve


# For methods of categories, numbers with more different values are cut at quantiles into levels.
MAX_VALUES, LEVELS = 10, 4

BOSS_INDICATORS_SETTINGS: dict[str, Any] = {"score": "degenerate Gaussian BIC", "lambda_value": 1, "ridge": 1e-4}


def without_holes(data: FloatArray | Observed) -> Observed:
    """The table, for a method that cannot read missing values; BenchmarkError if there are any."""
    observed = Observed.of(data)
    if not observed.table.observed.all():
        raise BenchmarkError("This method cannot read missing values.")
    return observed


def read_as_levels(data: FloatArray | Observed) -> tuple[npt.NDArray[np.int64], dict[str, str]]:
    """Code every column as 0, 1, 2, ... of the levels that occur, and describe how.  (N, P)"""
    observed = without_holes(data)
    columns, reading = [], {}
    for column, values in zip(observed.table.columns, observed.table.values.T, strict=True):
        if column.kind == "number" and len(np.unique(values)) > MAX_VALUES:
            values = np.searchsorted(np.quantile(values, np.arange(1, LEVELS) / LEVELS), values, side="right")
            reading["numbers"] = f"{LEVELS} levels"
        columns.append(np.unique(values, return_inverse=True)[1].reshape(len(values)))
    return np.column_stack(columns), {**reading, **observed.ignored}


start_pc_chi2 = partial(start_search, pc, read=read_as_levels)


def start_hill_climbing(settings: Mapping[str, Any]) -> Solve:
    """pgmpy's hill climbing from the empty graph."""
    import logging

    import networkx as nx
    import pandas as pd

    search = import_module("pgmpy.causal_discovery").HillClimbSearch
    scores = import_module("pgmpy.structure_score")
    logging.getLogger("pgmpy").setLevel(logging.ERROR)

    def scorer(frame: Any) -> Any:
        if settings["score"] == "bic-d":
            return scores.BIC(frame)
        return scores.BDeu(frame, equivalent_sample_size=settings["equivalent_sample_size"])

    def solve(data: FloatArray | Observed, generator: np.random.Generator) -> Estimate:
        codes, reading = read_as_levels(data)
        frame = pd.DataFrame(codes).astype("category")
        frame.columns = [f"x{index}" for index in range(codes.shape[1])]
        with quiet(generator):
            found, seconds = timed(
                lambda: search(scoring_method=scorer(frame), return_type="dag", show_progress=False).fit(frame)
            )
        adjacency = nx.to_numpy_array(found.causal_graph_, list(frame.columns), weight=None) > 0
        # The score does not distinguish graphs of one class: only the class ranks the pairs.
        return replace(answer_from_pdag(dag.cpdag(adjacency), seconds, reading), adjacency=adjacency)

    return solve


class DegenerateGaussianScore:
    """BIC of a normal regression of all indicator columns of a variable on those of its parents.

    Andrews et al. (2019): a category of K levels is K − 1 indicator columns, a number is itself. It has the attributes
    that causal-learn's BOSS needs of a score.
    """

    def __init__(self, blocks: Sequence[FloatArray]) -> None:
        self.data = np.empty((len(blocks[0]), len(blocks)))  # only its shape is used
        columns = np.column_stack([(block - block.mean(axis=0)) / block.std(axis=0) for block in blocks])
        ends = np.cumsum([block.shape[1] for block in blocks])
        self._indices = [np.arange(end - block.shape[1], end) for end, block in zip(ends, blocks, strict=True)]
        ridge = BOSS_INDICATORS_SETTINGS["ridge"]
        self._correlations = columns.T @ columns / len(columns) + ridge * np.eye(columns.shape[1])
        self._determinants: dict[tuple[int, ...], float] = {(): 0.0}

    def score_nocache(self, variable: int, parents: Sequence[int]) -> float:
        """The BIC, larger for a better set of parents."""
        observations = len(self.data)
        width, width_of_parents = len(self._indices[variable]), sum(len(self._indices[parent]) for parent in parents)
        gain = self._log_determinant([*parents, variable]) - self._log_determinant(parents)
        parameters = width * width_of_parents + width * (width + 1) / 2
        penalty = 0.5 * BOSS_INDICATORS_SETTINGS["lambda_value"] * parameters * np.log(observations)
        return float(-0.5 * observations * gain - penalty)

    score = score_nocache

    def _log_determinant(self, variables: Sequence[int]) -> float:
        key = tuple(sorted(variables))
        if key not in self._determinants:
            columns = np.concatenate([self._indices[variable] for variable in key])
            self._determinants[key] = float(np.linalg.slogdet(self._correlations[np.ix_(columns, columns)])[1])
        return self._determinants[key]


def indicator_blocks(table: Table) -> list[FloatArray]:
    """The indicator columns of each variable, without that of the most common level, or the number itself."""
    blocks = []
    for column, values in zip(table.columns, table.values.T, strict=True):
        if column.kind == "number":
            blocks.append(values[:, None])
            continue
        levels, counts = np.unique(values, return_counts=True)
        kept = np.delete(levels, counts.argmax())
        blocks.append((values[:, None] == kept).astype(np.float64))
    return blocks


def start_boss_on_indicators(settings: Mapping[str, Any]) -> Solve:
    """BOSS with the degenerate Gaussian score."""
    module: Any = import_module("causallearn.search.PermutationBased.BOSS")

    def solve(data: FloatArray | Observed, generator: np.random.Generator) -> Estimate:
        observed = without_holes(data)
        blocks = indicator_blocks(observed.table)

        def search() -> Any:
            score = DegenerateGaussianScore(blocks)
            # BOSS chooses among its scores by name: replace the one that it makes.
            kept = module.LocalScoreClass
            module.LocalScoreClass = lambda **_: score
            try:
                return module.boss(observed.table.values, verbose=False)
            finally:
                module.LocalScoreClass = kept

        with quiet(generator):
            graph, seconds = timed(search)
        reading = {**({"categories": "indicators"} if observed.has_levels else {}), **observed.ignored}
        return answer_from_pdag(pdag_of(graph), seconds, reading)

    return solve


def start_boss_after(settings: Mapping[str, Any]) -> Solve:
    """BOSS on the table without its holes: imputed as for Arrow, or complete observations only."""
    solve_complete, missing = start_search(boss, settings), settings["missing"]

    def solve(data: FloatArray | Observed, generator: np.random.Generator) -> Estimate:
        observed = Observed.of(data)
        if observed.table.observed.all():
            return replace(solve_complete(observed.table.values, generator), reading=observed.as_numbers or None)
        if missing == "drop" and observed.table.observed.all(axis=1).sum() < MIN_ROWS:
            raise BenchmarkError(f"Fewer than {MIN_ROWS} observations have no missing cell.")
        table, seconds = timed(lambda: complete(observed.table, missing))
        answer = solve_complete(table.values, generator)
        reading = {"missing": missing, **observed.as_numbers}
        return replace(answer, seconds=answer.seconds + seconds, reading=reading)

    return solve


def start_gies(settings: Mapping[str, Any]) -> Solve:
    """Greedy interventional equivalence search (Hauser and Bühlmann 2012)."""
    gies = import_module("gies")

    def solve(data: FloatArray | Observed, generator: np.random.Generator) -> Estimate:
        observed = without_holes(data)
        regimes, targets = regimes_of(observed.table.values, observed.intervened)
        (found, _), seconds = timed(lambda: gies.fit_bic(regimes, targets))
        return answer_from_pdag(found != 0, seconds, observed.unread_by(frozenset({"intervened"})))

    return solve


def regimes_of(values: FloatArray, intervened: BoolArray | None) -> tuple[list[FloatArray], list[list[int]]]:
    """Group observations by the variables that were set, and list these variables for each group."""
    if intervened is None:
        return [values], [[]]
    patterns, members = np.unique(intervened, axis=0, return_inverse=True)
    members = members.reshape(len(values))
    groups = range(len(patterns))
    return [values[members == group] for group in groups], [np.flatnonzero(patterns[g]).tolist() for g in groups]


def start_fci(settings: Mapping[str, Any]) -> Solve:
    """Fast causal inference (Spirtes et al. 1995), which allows for hidden causes.

    j → k and j o→ k are edges of the graph, j o–o k is one in either direction; in the rankings an open mark counts
    half. j ↔ k is a hidden cause and not an edge.
    """
    fci = import_module("causallearn.search.ConstraintBased.FCI").fci

    def solve(data: FloatArray | Observed, generator: np.random.Generator) -> Estimate:
        observed = without_holes(data)
        test, values, reading = "fisherz", observed.table.values.copy(), observed.ignored
        if observed.has_levels:
            test, (values, reading) = "chisq", read_as_levels(observed)
        with quiet(generator):
            (graph, _), seconds = timed(
                lambda: fci(values, test, settings["alpha"], show_progress=False, verbose=False)
            )
        return replace(answer_from_pag(graph.graph, seconds), reading=reading or None)

    return solve


TAIL, HEAD, CIRCLE = -1, 1, 2


def answer_from_pag(endpoints: FloatArray, seconds: float) -> Estimate:
    """The answer of a partial ancestral graph, [j, k] the mark at j of the edge between j and k.  (P, P)"""
    at_cause, at_effect = endpoints, endpoints.T  # of j → k
    directed = (at_cause == TAIL) & (at_effect == HEAD)
    half_directed = (at_cause == CIRCLE) & (at_effect == HEAD)
    open_ = (at_cause == CIRCLE) & (at_effect == CIRCLE)
    hidden = (at_cause == HEAD) & (at_effect == HEAD)
    answer = answer_from_pdag(directed | half_directed | open_, seconds)
    scores = directed + 0.5 * half_directed + 0.5 * open_
    confounding = hidden + 0.5 * (half_directed | half_directed.T) + 0.25 * open_
    return replace(answer, scores=scores.astype(np.float64), confounding=confounding.astype(np.float64))


# The package's defaults. On standardized tables they reproduce the paper's nSHD and F1; its AP is that of the
# thresholded graph, ours ranks by weight, which is more favorable.
DAGMA_SETTINGS: dict[str, Any] = {"loss": "l2", "lambda1": 0.03, "w_threshold": 0.3, "standardized": True}


def start_dagma(settings: Mapping[str, Any]) -> Solve:
    """DAGMA with a linear model and the least-squares loss."""
    linear = import_module("dagma.linear")

    def solve(data: FloatArray, generator: np.random.Generator) -> Estimate:
        table = standardized(data)  # a copy, because fit changes its table
        model = linear.DagmaLinear(loss_type=settings["loss"])
        # fit also changes the list `s`, even its default: without a fresh one, datasets would depend on earlier ones.
        weights, seconds = timed(
            lambda: model.fit(table, lambda1=settings["lambda1"], w_threshold=0.0, s=[1.0, 0.9, 0.8, 0.7, 0.6])
        )
        return answer_from_weights(weights, seconds, settings["w_threshold"])

    return solve
