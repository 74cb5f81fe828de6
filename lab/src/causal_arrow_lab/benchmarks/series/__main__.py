"""The suite `series`: methods on simulated series and panels, and on CDML, with truths that are known.

    python -m causal_arrow_lab.benchmarks.series --methods arrow,var,pcmci+ --families linear-normal,panel --count 20
    python -m causal_arrow_lab.benchmarks.series --methods arrow --cdml FOLDER
    python -m causal_arrow_lab.benchmarks.series --effects --count 25

Every task is searched with as many lags as its truth has, and only pairs that were searched are judged.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from causal_arrow.errors import BenchmarkError
from causal_arrow_lab.benchmarks.series.families import FAMILIES, SeriesTask, cdml_tasks
from causal_arrow_lab.benchmarks.series.measures import coverage, measures, reliability
from causal_arrow_lab.benchmarks.series.peers import PEERS, solver
from causal_arrow_lab.programs import run_program

STEPS_OF_CALIBRATION = (300, 1000)
"""Calibration is judged over all families of so many rows."""
COLUMNS = ("auroc", "ap", "f1", "f1_lagged", "f1_summary", "f1_now", "ap_now", "ap_hidden", "seconds")


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
    solve = solver(method)
    content: dict[str, Any] = {}
    errors: dict[str, dict[str, float]] = {}
    calibrated = []
    print(f"{method}\n{'':18}" + "".join(f"{name:>11}" for name in (*COLUMNS, "ece")))
    for name, tasks in suites.items():
        pairs = [(task, solve(task)) for task in tasks()]
        answers = [measures(task, estimate) for task, estimate in pairs]
        found_in = {
            column: _without_nan([answer[column] for answer in answers])
            for column in COLUMNS
            if all(column in answer for answer in answers)
        }
        content[name] = {column: float(values.mean()) for column, values in found_in.items()} | {"tasks": len(pairs)}
        errors[name] = {column: _standard_error(values) for column, values in found_in.items()}
        stated = [(task, found.probabilities) for task, found in pairs if found.probabilities is not None]
        claims = [(task.window[1:], probabilities[1:]) for task, probabilities in stated]
        if claims:
            content[name]["ece"] = reliability(claims).error
            low, high = STEPS_OF_CALIBRATION
            in_range = [low <= len(task.values) <= high for task, _ in stated]
            calibrated += [each for each, counts in zip(claims, in_range, strict=True) if counts and name != "cdml"]
        _print_line(name, content[name])
    simulated = [content[name] for name in suites if name != "cdml"]
    if simulated:
        content["mean"] = {
            column: float(np.mean([family[column] for family in simulated if column in family]))
            for column in (*COLUMNS, "ece")
            if any(column in family for family in simulated)
        }
        _print_line("mean", content["mean"])
        families = [errors[name] for name in suites if name != "cdml"]
        errors["mean"] = {
            column: float(np.linalg.norm(each) / len(each))
            for column in COLUMNS
            if (each := [family[column] for family in families if column in family])
        }
        _print_line("± of the mean", errors["mean"])
    content["standard_errors"] = errors
    if calibrated:
        content["reliability"] = asdict(reliability(calibrated))
        print(f"  calibration of {STEPS_OF_CALIBRATION[0]} to {STEPS_OF_CALIBRATION[1]} rows, all families:")
        for low_end, high_end, count, mean, share in content["reliability"]["bins"]:
            print(f"    stated {low_end:.2f} to {high_end:.2f}: mean {mean:.3f}, true {share:.3f} ({count})")
        print(f"    expected calibration error {content['reliability']['error']:.3f}")
    return content


def _without_nan(values: Sequence[float]) -> NDArray[np.float64]:
    """The values without nan, which stands for a truth without such an edge."""
    found = np.asarray(values, dtype=np.float64)
    return found[~np.isnan(found)]


def _standard_error(values: NDArray[np.float64]) -> float:
    """The standard error of a mean; nan of fewer than two values."""
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


def _print_line(name: str, values: Mapping[str, float]) -> None:
    cells = "".join(f"{values[column]:11.3f}" if column in values else f"{'–':>11}" for column in (*COLUMNS, "ece"))
    print(f"{name:18}{cells}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
