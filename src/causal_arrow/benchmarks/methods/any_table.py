"""Methods for tables with categories, holes, experiments and hidden causes: what Arrow is compared with there.

Each reads an `Observed`, and says in its answer how it read what it cannot take as it is.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from causal_arrow.benchmarks.datasets import BoolArray, FloatArray
from causal_arrow.benchmarks.methods.causal_learn import BOSS_SETTINGS, pdag_of, start_boss
from causal_arrow.benchmarks.methods.protocol import (
    Estimate,
    Observed,
    Solve,
    answer_from_pdag,
    complete,
    seeded_global_random,
    timed,
)
from causal_arrow.errors import BenchmarkError
from causal_arrow.graphs import dag
from causal_arrow.tables.table import FEWEST_OBSERVATIONS, Table

# N observations, P variables

# Numbers with more different values than this are cut at quantiles into so many levels, for methods of categories.
MOST_VALUES, LEVELS = 10, 4

PC_CHI2_SETTINGS = {"test": "chisq", "alpha": 0.05, "numbers": f"{LEVELS} levels"}
HILL_CLIMBING_SETTINGS: dict[str, dict[str, Any]] = {
    "bic": {"score": "bic-d", "numbers": f"{LEVELS} levels"},
    "bdeu": {"score": "bdeu", "equivalent_sample_size": 10, "numbers": f"{LEVELS} levels"},
}
BOSS_INDICATORS_SETTINGS: dict[str, Any] = {"score": "degenerate Gaussian BIC", "lambda_value": 1, "ridge": 1e-4}
GIES_SETTINGS = {"score": "GaussIntL0Pen"}
FCI_SETTINGS = {"alpha": 0.05, "numbers": "fisherz", "categories": f"chisq, numbers in {LEVELS} levels"}


# Ways to read a table


def read_as_levels(observed: Observed) -> tuple[npt.NDArray[np.int64], dict[str, str]]:
    """Every column as codes 0, 1, 2, ... of the levels that occur, and how that was done.  (N, P)"""
    _refuse_holes(observed.table)
    columns, reading = [], {}
    for column, values in zip(observed.table.columns, observed.table.values.T, strict=True):
        if column.kind == "number" and len(np.unique(values)) > MOST_VALUES:
            values = np.searchsorted(np.quantile(values, np.arange(1, LEVELS) / LEVELS), values, side="right")
            reading["numbers"] = f"{LEVELS} levels"
        columns.append(np.unique(values, return_inverse=True)[1].reshape(len(values)))
    return np.column_stack(columns), {**reading, **observed.ignored}


def _refuse_holes(table: Table) -> None:
    if not table.observed.all():
        raise BenchmarkError("This method cannot read missing values.")


# Categories


def start_pc_chi2() -> Solve:
    """PC with χ² tests."""
    pc = import_module("causallearn.search.ConstraintBased.PC").pc

    def solve(data: FloatArray | Observed, generator: np.random.Generator) -> Estimate:
        codes, reading = read_as_levels(Observed.of(data))
        with _quiet(generator):
            graph, seconds = timed(
                lambda: pc(codes, PC_CHI2_SETTINGS["alpha"], PC_CHI2_SETTINGS["test"], show_progress=False).G
            )
        return replace(answer_from_pdag(pdag_of(graph.graph), seconds), reading=reading or None)

    return solve


def start_hill_climbing(score: str) -> Callable[[], Solve]:
    """Starts pgmpy's hill climbing from the empty graph, with one of HILL_CLIMBING_SETTINGS."""

    def start() -> Solve:
        import logging

        import pandas as pd

        search = import_module("pgmpy.causal_discovery").HillClimbSearch
        scores = import_module("pgmpy.structure_score")
        logging.getLogger("pgmpy").setLevel(logging.ERROR)
        settings = HILL_CLIMBING_SETTINGS[score]

        def scorer(frame: Any) -> Any:
            if score == "bic":
                return scores.BIC(frame)
            return scores.BDeu(frame, equivalent_sample_size=settings["equivalent_sample_size"])

        def solve(data: FloatArray | Observed, generator: np.random.Generator) -> Estimate:
            codes, reading = read_as_levels(Observed.of(data))
            frame = pd.DataFrame(codes).astype("category")
            frame.columns = [f"x{place}" for place in range(codes.shape[1])]
            with _quiet(generator):
                found, seconds = timed(
                    lambda: search(scoring_method=scorer(frame), return_type="dag", show_progress=False).fit(frame)
                )
            adjacency = np.zeros((codes.shape[1], codes.shape[1]), dtype=bool)
            for cause, effect in found.causal_graph_.edges():
                adjacency[int(cause[1:]), int(effect[1:])] = True
            # The score tells graphs of one class apart by nothing: only the class ranks the pairs.
            return replace(
                answer_from_pdag(dag.cpdag(adjacency), seconds), adjacency=adjacency, reading=reading or None
            )

        return solve

    return start


class DegenerateGaussianScore:
    """BIC of a normal regression of all indicator columns of a variable on those of its parents.

    Andrews et al. (2019): a category of K levels is K − 1 indicator columns, a number is itself. It has what
    causal-learn's BOSS asks of a score.
    """

    def __init__(self, blocks: Sequence[FloatArray]) -> None:
        self.data = np.empty((len(blocks[0]), len(blocks)))  # only its shape is asked for
        columns = np.column_stack([(block - block.mean(axis=0)) / block.std(axis=0) for block in blocks])
        ends = np.cumsum([block.shape[1] for block in blocks])
        self._places = [np.arange(end - block.shape[1], end) for end, block in zip(ends, blocks, strict=True)]
        ridge = BOSS_INDICATORS_SETTINGS["ridge"]
        self._correlations = columns.T @ columns / len(columns) + ridge * np.eye(columns.shape[1])
        self._determinants: dict[tuple[int, ...], float] = {(): 0.0}

    def score_nocache(self, variable: int, parents: Sequence[int]) -> float:
        """The BIC, larger for a better set of parents."""
        observations = len(self.data)
        width, width_of_parents = len(self._places[variable]), sum(len(self._places[parent]) for parent in parents)
        gain = self._log_determinant([*parents, variable]) - self._log_determinant(parents)
        parameters = width * width_of_parents + width * (width + 1) / 2
        penalty = 0.5 * BOSS_INDICATORS_SETTINGS["lambda_value"] * parameters * np.log(observations)
        return float(-0.5 * observations * gain - penalty)

    score = score_nocache

    def _log_determinant(self, variables: Sequence[int]) -> float:
        key = tuple(sorted(variables))
        if key not in self._determinants:
            places = np.concatenate([self._places[variable] for variable in key])
            self._determinants[key] = float(np.linalg.slogdet(self._correlations[np.ix_(places, places)])[1])
        return self._determinants[key]


def indicator_blocks(table: Table) -> list[FloatArray]:
    """For each variable its indicator columns, without that of the most common level, or the number itself."""
    blocks = []
    for column, values in zip(table.columns, table.values.T, strict=True):
        if column.kind == "number":
            blocks.append(values[:, None])
            continue
        levels, counts = np.unique(values, return_counts=True)
        kept = np.delete(levels, counts.argmax())
        blocks.append((values[:, None] == kept).astype(np.float64))
    return blocks


def start_boss_on_indicators() -> Solve:
    """BOSS with the degenerate Gaussian score."""
    module: Any = import_module("causallearn.search.PermutationBased.BOSS")

    def solve(data: FloatArray | Observed, generator: np.random.Generator) -> Estimate:
        observed = Observed.of(data)
        _refuse_holes(observed.table)
        blocks = indicator_blocks(observed.table)

        def search() -> Any:
            score = DegenerateGaussianScore(blocks)
            # BOSS chooses among scores by name and takes none from outside: it is given ours where it makes its own.
            kept = module.LocalScoreClass
            module.LocalScoreClass = lambda **_: score
            try:
                return module.boss(observed.table.values, verbose=False)
            finally:
                module.LocalScoreClass = kept

        with _quiet(generator):
            graph, seconds = timed(search)
        reading = {**({"categories": "indicators"} if observed.has_levels else {}), **observed.ignored}
        return replace(answer_from_pdag(pdag_of(graph.graph), seconds), reading=reading or None)

    return solve


# Holes


def start_boss_after(missing: str) -> Callable[[], Solve]:
    """Starts BOSS on the table without its holes: imputed as for Arrow, or complete observations alone."""

    def start() -> Solve:
        boss = start_boss()

        def solve(data: FloatArray | Observed, generator: np.random.Generator) -> Estimate:
            observed = Observed.of(data)
            if observed.table.observed.all():
                return replace(boss(observed.table.values, generator), reading=observed.as_numbers or None)
            if missing == "drop" and observed.table.observed.all(axis=1).sum() < FEWEST_OBSERVATIONS:
                raise BenchmarkError(f"Fewer than {FEWEST_OBSERVATIONS} observations have no missing cell.")
            table, seconds = timed(lambda: complete(observed.table, missing))
            answer = boss(table.values, generator)
            reading = {"missing": missing, **observed.as_numbers}
            return replace(answer, seconds=answer.seconds + seconds, reading=reading)

        return solve

    return start


def boss_after_settings(missing: str) -> Mapping[str, Any]:
    """The settings of BOSS with what becomes of holes."""
    return {**BOSS_SETTINGS, "missing": missing}


# Experiments


def start_gies() -> Solve:
    """Greedy interventional equivalence search (Hauser and Bühlmann 2012)."""
    gies = import_module("gies")

    def solve(data: FloatArray | Observed, generator: np.random.Generator) -> Estimate:
        observed = Observed.of(data)
        _refuse_holes(observed.table)
        values = observed.table.values
        regimes, targets = regimes_of(values, observed.intervened)
        (found, _), seconds = timed(lambda: gies.fit_bic(regimes, targets))
        reading = {"categories": "codes"} if observed.has_levels else None
        return replace(answer_from_pdag(found != 0, seconds), reading=reading)

    return solve


def regimes_of(values: FloatArray, intervened: BoolArray | None) -> tuple[list[FloatArray], list[list[int]]]:
    """The observations by what was set in them, and the variables that were, for each group."""
    if intervened is None:
        return [values], [[]]
    patterns, members = np.unique(intervened, axis=0, return_inverse=True)
    members = members.reshape(len(values))
    groups = range(len(patterns))
    return [values[members == group] for group in groups], [np.flatnonzero(patterns[g]).tolist() for g in groups]


# Hidden causes


def start_fci() -> Solve:
    """Fast causal inference (Spirtes et al. 1995), which allows for hidden causes.

    Of its marks, j → k and j o→ k are edges of the graph, j o–o k one in either direction; for the rankings a mark that
    leaves something open counts half. j ↔ k is a hidden cause and no edge.
    """
    fci = import_module("causallearn.search.ConstraintBased.FCI").fci

    def solve(data: FloatArray | Observed, generator: np.random.Generator) -> Estimate:
        observed = Observed.of(data)
        _refuse_holes(observed.table)
        test, values, reading = "fisherz", observed.table.values.copy(), observed.ignored
        if observed.has_levels:
            codes, reading = read_as_levels(observed)
            test, values = "chisq", codes
        with _quiet(generator):
            (graph, _), seconds = timed(
                lambda: fci(values, test, FCI_SETTINGS["alpha"], show_progress=False, verbose=False)
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


@contextlib.contextmanager
def _quiet(generator: np.random.Generator) -> Iterator[None]:
    """Seeded, and without warnings of packages about tables with few observations."""
    with seeded_global_random(generator), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
