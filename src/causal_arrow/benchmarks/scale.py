"""Time, memory and accuracy of wide tables, and what bfloat16 changes: `python -m causal_arrow.benchmarks.scale`.

    python -m causal_arrow.benchmarks.scale wide --variables 50 100 200 500 1000 --precision float32 bfloat16
    python -m causal_arrow.benchmarks.scale wide --variables 200 --method boss dagma --timeout 600
    python -m causal_arrow.benchmarks.scale precision --suites networks herman sachs in-distribution --datasets 2
    python -m causal_arrow.benchmarks.scale document

The first three add records to docs/evidence/records/scale.jsonl; the last writes the sections of
docs/evidence/scale.md that they are about. Each table is answered in a process of its own, on one thread, so that its
peak memory is its own and the time that the processor spends on it hardly depends on what else the machine does. That
time and the time that passed are recorded.
"""

# N observations, P variables

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from causal_arrow.benchmarks.datasets import BoolArray, Dataset, FloatArray, unnamed
from causal_arrow.benchmarks.evaluate import WORKER_VARIABLES
from causal_arrow.discovery.workload import peak_memory_gb
from causal_arrow.errors import ArrowError
from causal_arrow.network.bundled import DEFAULT_MODEL

RECORDS = Path("docs/evidence/records/scale.jsonl")
OBSERVATIONS = 1000
EDGES_PER_VARIABLE = 2
FAR = 0.01
"""Probabilities that differ by more than this are counted."""

Record = dict[str, Any]
Solve = Callable[[FloatArray], tuple[BoolArray, FloatArray]]


# Wide tables


def draw_wide_dataset(variables: int, index: int, observations: int = OBSERVATIONS) -> Dataset:
    """A task of the paper's distribution with about two edges per variable: the first seed that has them."""
    import torch

    from causal_arrow.synthetic.tasks import TaskDistribution

    wanted, found = EDGES_PER_VARIABLE * variables, -1
    for seed in range(10_000):

        def draw(observations: int, seed: int = seed) -> Any:
            generator = torch.Generator().manual_seed(seed)
            return TaskDistribution.paper().sample(1, observations, variables, generator)

        # The graph is drawn before the observations, so that two of them show it.
        found += abs(int(draw(2).adjacency.sum()) - wanted) <= 0.1 * wanted
        if found == index:
            task = draw(observations)
            return unnamed(task.data[0].double().numpy(), task.adjacency[0].numpy(), seed=seed)
    raise AssertionError("about one seed in ten has that many edges")


def measure_wide(variables: int, method: str, precision: str, index: int) -> Record:
    """Time, memory and accuracy of one method on one table; for a process of its own."""
    dataset = draw_wide_dataset(variables, index)
    name, _, model = method.partition(":")
    solve = _arrow(precision, model or DEFAULT_MODEL) if name == "arrow" else _rival(method)
    solve(np.random.default_rng(0).standard_normal((50, 5)))  # what is done once per process
    started, spent = time.perf_counter(), time.process_time()
    adjacency, scores = solve(dataset.data)
    seconds, spent = time.perf_counter() - started, time.process_time() - spent
    return {
        "kind": "wide",
        "method": method,
        "precision": precision,
        "variables": variables,
        "observations": len(dataset.data),
        "edges": int(dataset.adjacency.sum()),
        "dataset": index,
        "seconds": seconds,
        "processor_seconds": spent,
        "peak_gb": peak_memory_gb(),
        **judge(dataset, adjacency, scores),
    }


def judge(dataset: Dataset, adjacency: BoolArray, scores: FloatArray) -> dict[str, float]:
    """F1 and average precision of an answer."""
    from causal_arrow.graphs.metrics import average_precision, f1

    return {"f1": f1(dataset.adjacency, adjacency), "ap": average_precision(dataset.adjacency, scores)}


def _arrow(precision: str, model: str) -> Solve:
    from causal_arrow.discovery.pipeline import Settings, discover
    from causal_arrow.tables.table import Table

    def solve(data: FloatArray) -> tuple[BoolArray, FloatArray]:
        table = Table.of_numbers(data, [f"x{place + 1}" for place in range(data.shape[1])])
        answer = discover(table, Settings(model=model, precision=precision, scale="given")).answer
        return answer.adjacency, answer.edge_probabilities

    return solve


def _rival(method: str) -> Solve:
    from causal_arrow.benchmarks.methods import MethodOptions, prepare

    solve = prepare(method, MethodOptions()).start()

    def answer(data: FloatArray) -> tuple[BoolArray, FloatArray]:
        estimate = solve(data, np.random.default_rng(0))
        return estimate.adjacency, estimate.scores

    return answer


def in_own_process(arguments: Sequence[str], timeout: float) -> Record | None:
    """What this command prints for these arguments, in a process of its own; None if it ran out of time.

    The time that its processor spends counts: on a machine that is busy, more passes.
    """
    limit = max(1, round(timeout))
    command = [sys.executable, "-m", "causal_arrow.benchmarks.scale", "one", *arguments, "--timeout", str(limit)]
    environment = {**os.environ, **WORKER_VARIABLES}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment)
    if done.returncode == -signal.SIGXCPU:
        return None
    done.check_returncode()
    record: Record = json.loads(done.stdout.splitlines()[-1])
    return record


# Precision


def measure_precision(suite: str, row: str, index: int) -> Record:
    """How far the probabilities of one benchmark table move in bfloat16."""
    from causal_arrow.benchmarks.suites import suite as suite_named
    from causal_arrow.discovery.pipeline import Settings, discover

    dataset = suite_named(suite).row(row).dataset(index)
    answers = [
        discover(dataset.table, Settings(model=DEFAULT_MODEL, precision=name)).answer
        for name in ("float32", "bfloat16")
    ]
    off_diagonal = ~np.eye(len(dataset.names), dtype=bool)
    exact, rough = (answer.edge_probabilities[off_diagonal] for answer in answers)
    moved = np.abs(exact - rough)
    exactly, roughly = (judge(dataset, answer.adjacency, answer.edge_probabilities) for answer in answers)
    return {
        "kind": "precision",
        "suite": suite,
        "row": row,
        "dataset": index,
        "probabilities": len(moved),
        "mean": float(moved.mean()),
        "largest": float(moved.max()),
        "far": int((moved > FAR).sum()),
        **{f"{name}_change": roughly[name] - exactly[name] for name in exactly},
    }


# The command


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit status."""
    options = _parser().parse_args(arguments)
    try:
        return COMMANDS[options.command](options)
    except ArrowError as error:
        print(f"causal_arrow.benchmarks.scale: {error}", file=sys.stderr)
        return 2


def _run_wide(options: argparse.Namespace) -> int:
    for variables in options.variables:
        for index in range(options.datasets):
            for method in options.method:
                for precision in options.precision if method.startswith("arrow") else ["float64"]:
                    which = [str(variables), method, precision, str(index)]
                    record = in_own_process(which, options.timeout)
                    if record is None:
                        record = {
                            "kind": "wide",
                            "method": method,
                            "precision": precision,
                            "variables": variables,
                            "dataset": index,
                            "timeout": options.timeout,
                        }
                    _add(options.records, record)
    return 0


def _run_one(options: argparse.Namespace) -> int:
    import resource  # there is none on Windows

    # The signal of the soft limit says what happened, also where the imports alone took longer; the hard one kills.
    resource.setrlimit(resource.RLIMIT_CPU, (options.timeout, options.timeout + 60))
    variables, method, precision, index = options.which
    print(json.dumps(measure_wide(int(variables), method, precision, int(index))))
    return 0


def _run_precision(options: argparse.Namespace) -> int:
    from causal_arrow.benchmarks.suites import suite as suite_named

    for name in options.suites:
        for row in suite_named(name).rows():
            for index in range(min(options.datasets, row.distinct_datasets or options.datasets)):
                _add(options.records, measure_precision(name, row.name, index))
    return 0


def _run_document(options: argparse.Namespace) -> int:
    from causal_arrow.benchmarks.scale_page import write_sections

    write_sections(read_records(options.records), options.page)
    return 0


def _add(path: Path, record: Mapping[str, Any]) -> None:
    """Write a record, with the machine it is from, and show it."""
    where = {"processors": os.cpu_count(), "machine": platform.machine()}
    line = json.dumps({**record, **where})
    with path.open("a", encoding="utf-8") as file:
        file.write(line + "\n")
    print(line, flush=True)


def read_records(path: Path) -> list[Record]:
    """All records of a file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


COMMANDS = {"wide": _run_wide, "one": _run_one, "precision": _run_precision, "document": _run_document}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m causal_arrow.benchmarks.scale")
    commands = parser.add_subparsers(dest="command", required=True)
    wide = commands.add_parser("wide", help="time, memory and accuracy of wide tables")
    wide.add_argument("--variables", type=int, nargs="+", default=[50, 100, 200, 500, 1000])
    wide.add_argument("--method", nargs="+", default=["arrow"])
    wide.add_argument("--precision", nargs="+", default=["float32", "bfloat16"], choices=["float32", "bfloat16"])
    wide.add_argument("--datasets", type=int, default=1)
    wide.add_argument("--timeout", type=float, default=600.0, help="processor seconds for one table")
    one = commands.add_parser("one", help="one table, in this process")
    one.add_argument("which", nargs=4, metavar=("VARIABLES", "METHOD", "PRECISION", "DATASET"))
    one.add_argument("--timeout", type=int, default=600, help="processor seconds after which it is ended")
    rounding = commands.add_parser("precision", help="how far probabilities move in bfloat16")
    rounding.add_argument("--suites", nargs="+", default=["networks", "herman", "sachs", "in-distribution"])
    rounding.add_argument("--datasets", type=int, default=1)
    page = commands.add_parser("document", help="write the sections that the records are about")
    page.add_argument("--page", type=Path, default=Path("docs/evidence/scale.md"))
    for command in (wide, rounding, page):
        command.add_argument("--records", type=Path, default=RECORDS)
    return parser


if __name__ == "__main__":
    sys.exit(main())
