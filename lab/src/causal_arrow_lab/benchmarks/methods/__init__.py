"""The methods a benchmark can run, by name.

method = prepare("boss", MethodOptions())       cheap: checks that it can be run, and describes it
solve = method.start()                          imports and loads
answer = solve(data, generator)                 (N, P) -> Estimate
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from causal_arrow.errors import BenchmarkError
from causal_arrow_lab.benchmarks.methods import _packages, arrow, effects, isolated, references
from causal_arrow_lab.benchmarks.methods._packages import (
    BOSS_SETTINGS,
    FLOP_SETTINGS,
    GES_SETTINGS,
    LEVELS,
    PC_SETTINGS,
)
from causal_arrow_lab.benchmarks.methods.protocol import (
    Estimate,
    Method,
    MethodKind,
    MethodOptions,
    Observed,
    Prepare,
    Solve,
    method_of_package,
    own_solver,
)

__all__ = [
    "METHODS",
    "METHODS_FOR",
    "Estimate",
    "Method",
    "MethodKind",
    "MethodOptions",
    "Observed",
    "Solve",
    "prepare",
    "title_of",
]


def prepare(text: str, options: MethodOptions, judged_by: str = "graphs") -> Method:
    """Prepare the method that `text` names, perhaps with something after a colon; BenchmarkError if it cannot be run.

    `judged_by` is what the suite asks for, a key of METHODS_FOR.
    """
    name, _, argument = text.partition(":")
    known = METHODS_FOR[judged_by]
    if name not in known:
        where = "" if judged_by == "graphs" else f" for {judged_by}"
        raise BenchmarkError(f"There is no method {name!r}{where}. Choose from: {', '.join(known)}.")
    return known[name].prepare(name, argument, options)


def title_of(name: str) -> str:
    """The title of a method in tables and figures, given its name in the records."""
    kind, _, argument = name.partition(":")
    known = {name: kind for methods in reversed(list(METHODS_FOR.values())) for name, kind in methods.items()}
    title = known[kind].title if kind in known else kind
    if kind == "arrow" and argument.startswith("arrow-"):
        return argument  # the networks that come with the package have names
    return f"{title} ({argument})" if argument else title


_arrow = arrow.prepare_arrow


def _search(search: Callable[[Mapping[str, Any]], _packages.Search], settings: Mapping[str, Any]) -> Prepare:
    return method_of_package("causal-learn", partial(_packages.start_search, search), settings)


OF_NUMBERS = {"numbers": f"{LEVELS} levels"}
_of_tables = partial(method_of_package, "causal-learn", reads_tables=True)
_of_flopsearch = partial(method_of_package, "flopsearch", reads_tables=True)
_of_pgmpy = partial(method_of_package, "pgmpy", reads_tables=True, extra="handover")

METHODS = {
    "arrow": MethodKind(
        "Arrow", "The pretrained network, its most probable graph. arrow:PATH takes other weights", _arrow
    ),
    "arrow-shd": MethodKind(
        "Arrow, SHD rule", "The same, the graph with the fewest expected mistakes", partial(_arrow, rule="shd")
    ),
    "arrow-f1": MethodKind(
        "Arrow, F1 rule", "The same, the graph with the largest expected F1", partial(_arrow, rule="f1")
    ),
    "arrow-tempered": MethodKind(
        "Arrow, tempered",
        "The same as arrow, with the probabilities of directions that users get",
        partial(_arrow, directions="tempered"),
    ),
    "arrow-unmarked": MethodKind(
        "Arrow, experiments unmarked",
        "The same as arrow, without the marks that say where an experiment set a value",
        partial(_arrow, sees_experiments=False),
    ),
    "boss": MethodKind("BOSS", "Best order score search (causal-learn)", _search(_packages.boss, BOSS_SETTINGS)),
    "boss-1": MethodKind(
        "BOSS, λ = 1",
        "BOSS with half the penalty on edges (causal-learn)",
        _search(_packages.boss, {**BOSS_SETTINGS, "lambda_value": 1}),
    ),
    "grasp": MethodKind(
        "GRaSP",
        "Greedy relaxations of the sparsest permutation (causal-learn)",
        _search(_packages.grasp, {**BOSS_SETTINGS, "depth": 3}),
    ),
    "pc": MethodKind("PC", "Conditional independence tests (causal-learn)", _search(_packages.pc, PC_SETTINGS)),
    "pc-0.01": MethodKind(
        "PC, α = 0.01",
        "PC with tests at a fifth of the level (causal-learn)",
        _search(_packages.pc, {**PC_SETTINGS, "alpha": 0.01}),
    ),
    "ges": MethodKind("GES", "Greedy equivalence search (causal-learn)", _search(_packages.ges, GES_SETTINGS)),
    "ges-1": MethodKind(
        "GES, λ = 1",
        "GES with twice the penalty on edges (causal-learn)",
        _search(_packages.ges, {**GES_SETTINGS, "lambda_value": 1}),
    ),
    "flop": MethodKind(
        "FLOP",
        "Search over orders with restarts, by BIC with penalty 2, linear (flopsearch)",
        _of_flopsearch(_packages.start_flop, FLOP_SETTINGS),
    ),
    "flop-3": MethodKind(
        "FLOP, λ = 3",
        "FLOP with one and a half times the penalty on edges (flopsearch)",
        _of_flopsearch(_packages.start_flop, {**FLOP_SETTINGS, "lambda_bic": 3.0}),
    ),
    "direct-lingam": MethodKind(
        "DirectLiNGAM",
        "Linear non-Gaussian models (causal-learn's copy of lingam)",
        method_of_package("causal-learn", _packages.start_direct_lingam, _packages.LINGAM_SETTINGS),
    ),
    "resit": MethodKind(
        "RESIT",
        "Regression and independence of residuals, nonlinear (lingam)",
        method_of_package("lingam", _packages.start_resit, _packages.RESIT_SETTINGS, extra="handover"),
    ),
    "boss-indicators": MethodKind(
        "BOSS, indicators",
        "BOSS with the degenerate Gaussian score: categories as indicator columns (causal-learn)",
        _of_tables(_packages.start_boss_on_indicators, _packages.BOSS_INDICATORS_SETTINGS),
    ),
    "boss-imputed": MethodKind(
        "BOSS, imputed",
        "BOSS after missing cells were filled by linear predictions (causal-learn)",
        _of_tables(_packages.start_boss_after, {**BOSS_SETTINGS, "missing": "impute"}),
    ),
    "boss-complete": MethodKind(
        "BOSS, complete cases",
        "BOSS on the observations without a missing cell (causal-learn)",
        _of_tables(_packages.start_boss_after, {**BOSS_SETTINGS, "missing": "drop"}),
    ),
    "pc-chi2": MethodKind(
        "PC, χ²",
        "PC with χ² tests, for categories (causal-learn)",
        _of_tables(_packages.start_pc_chi2, {"test": "chisq", "alpha": 0.05, **OF_NUMBERS}),
    ),
    "fci": MethodKind(
        "FCI",
        "Fast causal inference, which allows for hidden causes (causal-learn)",
        _of_tables(
            _packages.start_fci,
            {"alpha": 0.05, "numbers": "fisherz", "categories": f"chisq, numbers in {LEVELS} levels"},
        ),
    ),
    "hc-bic": MethodKind(
        "Hill climbing, BIC",
        "Hill climbing for categories with the BIC (pgmpy)",
        _of_pgmpy(_packages.start_hill_climbing, {"score": "bic-d", **OF_NUMBERS}),
    ),
    "hc-bdeu": MethodKind(
        "Hill climbing, BDeu",
        "Hill climbing for categories with the BDeu score (pgmpy)",
        _of_pgmpy(_packages.start_hill_climbing, {"score": "bdeu", "equivalent_sample_size": 10, **OF_NUMBERS}),
    ),
    "gies": MethodKind(
        "GIES",
        "Greedy interventional equivalence search, which reads experiments (gies)",
        method_of_package("gies", _packages.start_gies, {"score": "GaussIntL0Pen"}, reads_tables=True),
    ),
    "dagma": MethodKind(
        "DAGMA",
        "Continuous optimization, linear (dagma)",
        method_of_package("dagma", _packages.start_dagma, _packages.DAGMA_SETTINGS),
    ),
    "sdcd": MethodKind(
        "SDCD",
        "Stable differentiable causal discovery (in a separate environment)",
        isolated.prepare_isolated,
    ),
    "varsort": MethodKind(
        "Variance sorting",
        "Orders variables by variance, then regresses",
        own_solver(partial(references.sort_and_regress, criterion=references.variances)),
    ),
    "r2sort": MethodKind(
        "R² sorting",
        "Orders variables by how well the others explain them, then regresses",
        own_solver(partial(references.sort_and_regress, criterion=references.explained_variances)),
    ),
    "random": MethodKind("Random graph", "A random graph with 2p edges", own_solver(references.random_graph)),
    "empty": MethodKind("Empty graph", "No edges", own_solver(references.empty)),
    "class-oracle": MethodKind(
        "Markov-equivalence oracle",
        "A random graph of the true equivalence class: all that independences can tell",
        own_solver(references.class_oracle, is_oracle=True),
    ),
    "exact-bayes": MethodKind(
        "Exact posterior",
        "The posterior over all graphs of up to five variables, linear with normal noise: what can be known",
        own_solver(references.exact_bayes, settings=references.EXACT_BAYES_SETTINGS),
    ),
}

METHODS_FOR: Mapping[str, Mapping[str, MethodKind]] = {
    "graphs": METHODS,
    "effects": effects.EFFECT_METHODS,
    "experiments": effects.POLICIES,
}
"""The methods for what a suite asks for."""
