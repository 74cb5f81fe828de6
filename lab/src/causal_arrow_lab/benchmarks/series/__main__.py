"""The suite `series`: methods on simulated series and panels, and on CDML, with truths that are known.

    python -m causal_arrow_lab.benchmarks.series --methods arrow,var,pcmci+ --families linear-normal,panel --count 20
    python -m causal_arrow_lab.benchmarks.series --methods arrow --cdml FOLDER
    python -m causal_arrow_lab.benchmarks.series --effects --count 25

Every task is searched with as many lags as its truth has, and only pairs that were searched are judged; lag 0 is
measured apart.
"""

# L lags, P variables

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from causal_arrow.errors import BenchmarkError
from causal_arrow.graphs.dag import transitive_closure
from causal_arrow.series.responses import Steps, response
from causal_arrow_lab.benchmarks.series import FAMILIES, Bools, Family, Floats, SeriesEstimate, SeriesTask, cdml_tasks
from causal_arrow_lab.benchmarks.series._peers import PEERS, solver
from causal_arrow_lab.programs import run_program

STEPS_OF_CALIBRATION = (300, 1000)
"""Calibration is judged over all families of so many rows."""
COLUMNS = ("auroc", "ap", "f1", "f1_lagged", "f1_summary", "f1_now", "ap_now", "ap_hidden", "seconds")
BINS = (0.05, 0.2, 0.4, 0.6, 0.8, 0.95, 1.0)
"""Calibration counts pairs stated with 0.05 or more: the many clear absences would hide the rest."""
HORIZON = 8
PAIRS_PER_TASK = 4
ROUNDING = 1e-9


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m causal_arrow_lab.benchmarks.series", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--methods", default="arrow", help=f"of arrow, {', '.join(PEERS)}, separated by commas [arrow]")
    parser.add_argument("--families", default=",".join(FAMILIES), help="separated by commas [all]; empty for none")
    parser.add_argument("--count", type=int, default=20, help="tasks per family [20]")
    parser.add_argument("--first", type=int, default=0, help="index of the first task [0]")
    parser.add_argument("--cdml", type=Path, help="folder of the CDML series")
    parser.add_argument("--development", action="store_true", help="tasks for development, not those of reports")
    parser.add_argument("--effects", action="store_true", help="coverage of effects over time, graphs known")
    parser.add_argument("--output", type=Path, help="a JSON file for all measures")
    return run_program(parser, _run, arguments)


def _run(options: argparse.Namespace) -> None:
    families = [name for name in options.families.split(",") if name]
    if unknown := sorted(set(families) - set(FAMILIES)):
        raise BenchmarkError(f"There is no family {unknown[0]!r}: expected some of {', '.join(FAMILIES)}.")
    indices = range(options.first, options.first + options.count)
    if options.effects:
        found: Any = {name: asdict(coverage(FAMILIES[name], indices, options.development)) for name in families}
        for name, content in found.items():
            print(f"{name:18}" + "  ".join(f"{key} {value:.3f}" for key, value in content.items()))
    else:
        suites: dict[str, Callable[[], list[SeriesTask]]] = {
            name: partial(_tasks_of, name, indices, options.development) for name in families
        }
        if options.cdml:
            suites["cdml"] = lambda: list(cdml_tasks(options.cdml))
        found = {method: judge(method, suites) for method in options.methods.split(",")}
    if options.output:
        options.output.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def _tasks_of(family: str, indices: range, development: bool) -> list[SeriesTask]:
    return [FAMILIES[family].task(index, development=development) for index in indices]


def judge(method: str, suites: Mapping[str, Callable[[], list[SeriesTask]]]) -> dict[str, Any]:
    """The measures of a method, family by family, their means over simulated families, and its calibration."""
    import pandas as pd

    solve = solver(method)
    content: dict[str, Any] = {}
    errors: dict[str, dict[str, float]] = {}
    calibrated = []
    print(f"{method}\n{'':18}" + "".join(f"{name:>11}" for name in (*COLUMNS, "ece")))
    for name, tasks in suites.items():
        pairs = [(task, solve(task)) for task in tasks()]
        # nan stands for a truth without such an edge; pandas leaves it out.
        answers = pd.DataFrame([measures(task, estimate) for task, estimate in pairs])
        answers = answers[[column for column in COLUMNS if column in answers]]
        content[name] = {**answers.mean().to_dict(), "tasks": len(pairs)}
        errors[name] = answers.sem().to_dict()
        stated = [(task, found.probabilities) for task, found in pairs if found.probabilities is not None]
        claims = [(task.window[1:], probabilities[1:]) for task, probabilities in stated]
        if claims:
            content[name]["ece"] = reliability(claims).error
            low, high = STEPS_OF_CALIBRATION
            in_range = [low <= len(task.values) <= high for task, _ in stated]
            calibrated += [each for each, counts in zip(claims, in_range, strict=True) if counts and name != "cdml"]
        _print_line(name, content[name])
    if simulated := [name for name in suites if name != "cdml"]:
        means = pd.DataFrame([content[name] for name in simulated])
        spread = pd.DataFrame([errors[name] for name in simulated])
        content["mean"] = means[[column for column in (*COLUMNS, "ece") if column in means]].mean().to_dict()
        errors["mean"] = (np.sqrt((spread**2).sum()) / spread.count()).to_dict()
        _print_line("mean", content["mean"])
        _print_line("± of the mean", errors["mean"])
    content["standard_errors"] = errors
    if calibrated:
        content["reliability"] = asdict(reliability(calibrated))
        print(f"  calibration of {STEPS_OF_CALIBRATION[0]} to {STEPS_OF_CALIBRATION[1]} rows, all families:")
        for low_end, high_end, count, mean, share in content["reliability"]["bins"]:
            print(f"    stated {low_end:.2f} to {high_end:.2f}: mean {mean:.3f}, true {share:.3f} ({count})")
        print(f"    expected calibration error {content['reliability']['error']:.3f}")
    return content


def _print_line(name: str, values: Mapping[str, float]) -> None:
    cells = "".join(f"{values[column]:11.3f}" if column in values else f"{'–':>11}" for column in (*COLUMNS, "ece"))
    print(f"{name:18}{cells}", flush=True)


# Measures


def measures(task: SeriesTask, estimate: SeriesEstimate) -> dict[str, float]:
    """All measures of one answer; nan where there is nothing to measure."""
    lagged, truth = estimate.scores[1:].ravel(), task.window[1:].ravel()
    graph = estimate.graph.copy()
    graph[0] &= task.contemporaneous
    apart = ~np.eye(graph.shape[1], dtype=bool)
    found = {
        "auroc": auroc(truth, lagged),
        "ap": average_precision(truth, lagged),
        "f1": f1(task.window, graph),
        "f1_lagged": f1(task.window[1:], graph[1:]),
        "f1_summary": f1(task.window.any(axis=0) & apart, graph.any(axis=0) & apart),
        "seconds": estimate.seconds,
    }
    if task.contemporaneous:
        found |= {
            "f1_now": f1(task.window[0], graph[0]),
            "ap_now": average_precision(task.window[0][apart], estimate.scores[0][apart]),
        }
    if task.confounded is not None and estimate.confounding is not None:
        found["ap_hidden"] = average_precision(task.confounded[apart], estimate.confounding[apart])
    return found


def auroc(truth: Bools, scores: Floats) -> float:
    """Probability that an edge has a larger score than a pair without one, ties counting one half."""
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(truth, scores)) if 0 < truth.sum() < truth.size else math.nan


def average_precision(truth: Bools, scores: Floats) -> float:
    """Mean precision over the edges, equal scores taken together."""
    from sklearn.metrics import average_precision_score

    return float(average_precision_score(truth, scores)) if truth.any() else math.nan


def f1(truth: Bools, graph: Bools) -> float:
    """2 · true positives / (edges shown + edges); 1 where there are neither."""
    total = int(truth.sum()) + int(graph.sum())
    return 2 * float((truth & graph).sum()) / total if total else 1.0


@dataclass(frozen=True)
class LaggedReliability:
    """Stated against true shares of lagged edges."""

    error: float  # expected calibration error of pairs stated at STATED_FROM or more
    bins: tuple[tuple[float, float, int, float, float], ...]  # from, to, pairs, mean stated, share true


def reliability(answers: Iterable[tuple[Bools, Floats]]) -> LaggedReliability:
    """The reliability of pairs of truth and stated probabilities, of any shape."""
    truth, stated = (np.concatenate([np.ravel(part) for part in side]) for side in zip(*answers, strict=True))
    bins = []
    for low, high in pairwise(BINS):
        inside = (stated >= low) & ((stated < high) | (high == BINS[-1]))
        if inside.any():
            bins.append((low, high, int(inside.sum()), float(stated[inside].mean()), float(truth[inside].mean())))
    pairs = sum(count for _, _, count, _, _ in bins)
    error = sum(count * abs(mean - share) for _, _, count, mean, share in bins) / pairs if pairs else math.nan
    return LaggedReliability(error, tuple(bins))


# Effects over time


@dataclass(frozen=True)
class Coverage:
    """Shares of 90% intervals that hold the truth, graphs known: pairs with a path, steps 0 to HORIZON."""

    raised_once: float
    held: float
    width: float  # of the intervals for a cause that is raised once
    error: float  # absolute, of its estimates


def coverage(family: Family, indices: Iterable[int], development: bool) -> Coverage:
    """The coverage for some pairs of each task; a season is declared where a family has one."""
    inside: dict[bool, list[NDArray[np.bool_]]] = {False: [], True: []}
    widths, errors = [], []
    for index in indices:
        task = family.task(index, development=development)
        assert task.process is not None
        random = np.random.default_rng(index)
        steps = Steps(task.values, unit=task.unit, period=task.process.period if family.seasonal else None)
        pairs = pairs_with_paths(task)
        for cause, effect in pairs[random.permutation(len(pairs))[:PAIRS_PER_TASK]].tolist():
            for held in (False, True):
                true = task.process.response(cause, effect, HORIZON, random, held=held)
                found = response(
                    steps, task.window[None], cause, effect, HORIZON, random, kind="step" if held else "pulse"
                )
                inside[held].append((found.low - ROUNDING <= true) & (true <= found.high + ROUNDING))
                if not held:
                    widths.append(found.high - found.low)
                    errors.append(np.abs(found.estimate - true))
    return Coverage(*(float(np.mean(each)) for each in (inside[False], inside[True], widths, errors)))


def pairs_with_paths(task: SeriesTask) -> NDArray[np.intp]:
    """Pairs of different variables with a directed path from the first to the second.  (pairs, 2)"""
    reached = transitive_closure(np.asarray(task.window.any(axis=0)))
    return np.argwhere(reached & ~np.eye(len(reached), dtype=bool))


if __name__ == "__main__":
    sys.exit(main())
