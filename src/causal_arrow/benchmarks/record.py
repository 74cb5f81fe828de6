"""Records of Arrow on a bare machine: `python -m causal_arrow.benchmarks record SUITE ... --device cuda --output DIR`.

What `causal-arrow benchmark` does, for a machine with torch, numpy and safetensors alone: the same datasets, measures
and records, without tables and progress bars. Stop it at any time: the same command goes on.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from causal_arrow.benchmarks.collected import read_records
from causal_arrow.benchmarks.evaluate import evaluate, plan, remaining, usable_cores
from causal_arrow.benchmarks.methods import MethodOptions, prepare
from causal_arrow.benchmarks.records import Record, RecordWriter
from causal_arrow.benchmarks.suites import rows_named
from causal_arrow.errors import ArrowError
from causal_arrow.network.devices import resolve_device
from causal_arrow.tables.scales import SCALES

SECONDS_BETWEEN_LINES = 30.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m causal_arrow.benchmarks record", description=__doc__.partition(":")[0]
    )
    parser.add_argument("suites", nargs="+", metavar="SUITE", help="SUITE or SUITE/ROW")
    parser.add_argument("--methods", default="arrow", help="separated by commas [arrow]")
    parser.add_argument("--weights", help="of arrow: a bundled name, a file or a folder")
    parser.add_argument("--datasets", type=int, default=100, help="datasets per row [100]")
    parser.add_argument("--jobs", type=int, default=usable_cores(), help="datasets at a time [one per core]")
    parser.add_argument("--device", default="auto", help="cpu, cuda, or auto [auto]")
    parser.add_argument("--scale", choices=SCALES, default="auto", help="of skewed positive columns, for arrow [auto]")
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds for one dataset [600]")
    parser.add_argument("--output", type=Path, default=Path("benchmark-records"), help="folder [benchmark-records]")
    options = parser.parse_args(arguments)
    try:
        return record(options)
    except ArrowError as error:
        print(error, file=sys.stderr)
        return 2


def record(options: argparse.Namespace) -> int:
    """Run what is not in the folder yet."""
    rows = [row for name in options.suites for row in rows_named(name)]
    choices = MethodOptions(options.weights, device=str(resolve_device(options.device)), scale=options.scale)
    methods = [(text, prepare(text, choices)) for text in options.methods.split(",")]
    before = read_records(options.output) if options.output.exists() else []
    jobs = remaining(plan(rows, methods, options.datasets), before, timeout=options.timeout)
    writer = RecordWriter(options.output)
    done, said = 0, time.monotonic()

    def write(finished: Record) -> None:
        nonlocal done, said
        writer.write(finished)
        done += 1
        if done == len(jobs) or time.monotonic() - said > SECONDS_BETWEEN_LINES:
            said = time.monotonic()
            print(f"{done}/{len(jobs)} done", file=sys.stderr)

    try:
        evaluate(jobs, write, options=choices, timeout=options.timeout, processes=max(1, options.jobs))
    finally:
        writer.close()
    return 0
