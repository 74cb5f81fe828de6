"""The methods a benchmark can run, by name.

method = prepare("boss", MethodOptions())       cheap: checks that it can be run, and says what it is
solve = method.start()                          imports and loads
answer = solve(data, generator)                 (N, P) -> Estimate
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from causal_arrow._version import __version__
from causal_arrow.benchmarks.methods import (
    any_table,
    arrow,
    baselines,
    causal_learn,
    continuous,
    effects,
    exact_bayes,
    experiments,
    isolated,
)
from causal_arrow.benchmarks.methods.protocol import (
    Estimate,
    Method,
    MethodKind,
    MethodOptions,
    Observed,
    Solve,
    method_of_package,
    refuse_argument,
)
from causal_arrow.errors import BenchmarkError

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
    """The method that `text` names, perhaps with something after a colon; BenchmarkError when it cannot be run.

    `judged_by` says what the suite asks for, a key of METHODS_FOR.
    """
    name, _, argument = text.partition(":")
    known = METHODS_FOR[judged_by]
    if name not in known:
        where = "" if judged_by == "graphs" else f" for {judged_by}"
        raise BenchmarkError(f"There is no method {name!r}{where}. Choose from: {', '.join(known)}.")
    return known[name].prepare(argument, options)


def title_of(name: str) -> str:
    """What tables and figures call a method, given its name in the records."""
    kind, _, argument = name.partition(":")
    known = {name: kind for methods in reversed(list(METHODS_FOR.values())) for name, kind in methods.items()}
    title = known[kind].title if kind in known else kind
    if kind == "arrow" and argument.startswith("arrow-"):
        return argument  # the networks that come with the package have names of their own
    return f"{title} ({argument})" if argument else title


def _baseline(
    name: str, start: Callable[[], Solve], *, is_oracle: bool = False, settings: Mapping[str, Any] | None = None
) -> Callable[[str, MethodOptions], Method]:
    """The `prepare` of a method of our own."""

    def prepare_baseline(argument: str, options: MethodOptions) -> Method:
        refuse_argument(name, argument)
        return Method(name, settings or {}, {"causal-arrow": __version__}, start, is_oracle)

    return prepare_baseline


def _of_tables(
    name: str, distribution: str, settings: Mapping[str, Any], start: Callable[[], Solve], extra: str = "benchmark"
) -> Callable[[str, MethodOptions], Method]:
    """The `prepare` of a method of a package that reads kinds, holes or experiments."""
    return method_of_package(name, distribution, settings, start, reads_tables=True, extra=extra)


def _other_setting(
    name: str, start: Callable[[Mapping[str, Any]], Solve], settings: Mapping[str, Any]
) -> Callable[[str, MethodOptions], Method]:
    """The `prepare` of a method of causal-learn with other settings than the package's own."""
    return method_of_package(name, "causal-learn", settings, partial(start, settings))


METHODS = {
    "arrow": MethodKind(
        "Arrow",
        "The pretrained network, its most probable graph. arrow:PATH takes other weights",
        partial(arrow.prepare_arrow, name="arrow", rule="map"),
    ),
    "arrow-shd": MethodKind(
        "Arrow, SHD rule",
        "The same, the graph with the fewest expected mistakes",
        partial(arrow.prepare_arrow, name="arrow-shd", rule="shd"),
    ),
    "arrow-f1": MethodKind(
        "Arrow, F1 rule",
        "The same, the graph with the largest expected F1",
        partial(arrow.prepare_arrow, name="arrow-f1", rule="f1"),
    ),
    "arrow-unmarked": MethodKind(
        "Arrow, not told of experiments",
        "The same as arrow, without the marks that say where an experiment set a value",
        partial(arrow.prepare_arrow, name="arrow-unmarked", rule="map", told_of_experiments=False),
    ),
    "boss": MethodKind(
        "BOSS",
        "Best order score search (causal-learn)",
        method_of_package("boss", "causal-learn", causal_learn.BOSS_SETTINGS, causal_learn.start_boss),
    ),
    "boss-1": MethodKind(
        "BOSS, λ = 1",
        "BOSS with half the penalty on edges (causal-learn)",
        _other_setting("boss-1", causal_learn.start_boss, causal_learn.BOSS_1_SETTINGS),
    ),
    "grasp": MethodKind(
        "GRaSP",
        "Greedy relaxations of the sparsest permutation (causal-learn)",
        method_of_package("grasp", "causal-learn", causal_learn.GRASP_SETTINGS, causal_learn.start_grasp),
    ),
    "pc": MethodKind(
        "PC",
        "Conditional independence tests (causal-learn)",
        method_of_package("pc", "causal-learn", causal_learn.PC_SETTINGS, causal_learn.start_pc),
    ),
    "pc-0.01": MethodKind(
        "PC, α = 0.01",
        "PC with tests at a fifth of the level (causal-learn)",
        _other_setting("pc-0.01", causal_learn.start_pc, causal_learn.PC_001_SETTINGS),
    ),
    "ges": MethodKind(
        "GES",
        "Greedy equivalence search (causal-learn)",
        method_of_package("ges", "causal-learn", causal_learn.GES_SETTINGS, causal_learn.start_ges),
    ),
    "ges-1": MethodKind(
        "GES, λ = 1",
        "GES with twice the penalty on edges (causal-learn)",
        _other_setting("ges-1", causal_learn.start_ges, causal_learn.GES_1_SETTINGS),
    ),
    "direct-lingam": MethodKind(
        "DirectLiNGAM",
        "Linear non-Gaussian models (causal-learn's copy of lingam)",
        method_of_package(
            "direct-lingam",
            "causal-learn",
            causal_learn.DIRECT_LINGAM_SETTINGS,
            causal_learn.start_direct_lingam,
        ),
    ),
    "boss-indicators": MethodKind(
        "BOSS, indicators",
        "BOSS with the degenerate Gaussian score: categories as indicator columns (causal-learn)",
        _of_tables(
            "boss-indicators",
            "causal-learn",
            any_table.BOSS_INDICATORS_SETTINGS,
            any_table.start_boss_on_indicators,
        ),
    ),
    "boss-imputed": MethodKind(
        "BOSS, imputed",
        "BOSS after missing cells were filled by linear predictions (causal-learn)",
        _of_tables(
            "boss-imputed",
            "causal-learn",
            any_table.boss_after_settings("impute"),
            any_table.start_boss_after("impute"),
        ),
    ),
    "boss-complete": MethodKind(
        "BOSS, complete cases",
        "BOSS on the observations without a missing cell (causal-learn)",
        _of_tables(
            "boss-complete",
            "causal-learn",
            any_table.boss_after_settings("drop"),
            any_table.start_boss_after("drop"),
        ),
    ),
    "pc-chi2": MethodKind(
        "PC, χ²",
        "PC with χ² tests, for categories (causal-learn)",
        _of_tables("pc-chi2", "causal-learn", any_table.PC_CHI2_SETTINGS, any_table.start_pc_chi2),
    ),
    "fci": MethodKind(
        "FCI",
        "Fast causal inference, which allows for hidden causes (causal-learn)",
        _of_tables("fci", "causal-learn", any_table.FCI_SETTINGS, any_table.start_fci),
    ),
    "hc-bic": MethodKind(
        "Hill climbing, BIC",
        "Hill climbing for categories with the BIC (pgmpy)",
        _of_tables(
            "hc-bic", "pgmpy", any_table.HILL_CLIMBING_SETTINGS["bic"], any_table.start_hill_climbing("bic"), "handover"
        ),
    ),
    "hc-bdeu": MethodKind(
        "Hill climbing, BDeu",
        "Hill climbing for categories with the BDeu score (pgmpy)",
        _of_tables(
            "hc-bdeu",
            "pgmpy",
            any_table.HILL_CLIMBING_SETTINGS["bdeu"],
            any_table.start_hill_climbing("bdeu"),
            "handover",
        ),
    ),
    "gies": MethodKind(
        "GIES",
        "Greedy interventional equivalence search, which reads experiments (gies)",
        _of_tables("gies", "gies", any_table.GIES_SETTINGS, any_table.start_gies),
    ),
    "dagma": MethodKind(
        "DAGMA",
        "Continuous optimization, linear (dagma)",
        method_of_package("dagma", "dagma", continuous.DAGMA_SETTINGS, continuous.start_dagma),
    ),
    "notears": MethodKind(
        "NOTEARS",
        "Continuous optimization, linear (gCastle, in an environment of its own)",
        partial(isolated.prepare_isolated, name="notears", settings=isolated.NOTEARS_SETTINGS),
    ),
    "sdcd": MethodKind(
        "SDCD",
        "Stable differentiable causal discovery (in an environment of its own)",
        partial(isolated.prepare_isolated, name="sdcd", settings=isolated.SDCD_SETTINGS),
    ),
    "avici": MethodKind(
        "AVICI",
        "A pretrained network (in an environment of its own, weights from --avici-weights)",
        isolated.prepare_avici,
    ),
    "varsort": MethodKind(
        "Variance sorting",
        "Orders variables by variance, then regresses",
        _baseline("varsort", baselines.start_variance_sorting),
    ),
    "r2sort": MethodKind(
        "R² sorting",
        "Orders variables by how well the others explain them, then regresses",
        _baseline("r2sort", baselines.start_r2_sorting),
    ),
    "random": MethodKind("Random graph", "A random graph with 2p edges", _baseline("random", baselines.start_random)),
    "empty": MethodKind("Empty graph", "No edges", _baseline("empty", baselines.start_empty)),
    "class-oracle": MethodKind(
        "Markov-equivalence oracle",
        "A random graph of the true equivalence class: all that independences can tell",
        _baseline("class-oracle", baselines.start_class_oracle, is_oracle=True),
    ),
    "exact-bayes": MethodKind(
        "Exact posterior",
        "The posterior over all graphs of up to five variables, linear with normal noise: what can be known",
        _baseline("exact-bayes", exact_bayes.start_exact_bayes, settings=exact_bayes.EXACT_BAYES_SETTINGS),
    ),
}

METHODS_FOR: Mapping[str, Mapping[str, MethodKind]] = {
    "graphs": METHODS,
    "effects": effects.EFFECT_METHODS,
    "experiments": experiments.POLICIES,
}
"""By what a suite asks for: the methods that can answer."""
