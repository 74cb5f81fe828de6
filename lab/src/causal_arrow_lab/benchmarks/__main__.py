"""Run methods over suites on a bare machine: `python -m causal_arrow_lab.benchmarks SUITE ... --output DIR`.

Like `causal-arrow-lab benchmark` for a machine with only torch, numpy and safetensors: the same datasets, records and
tables, without a progress bar. It can be stopped at any time: the same command continues.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from causal_arrow.tables.scales import SCALES
from causal_arrow_lab.benchmarks.evaluate import plan, record_jobs, remaining, table_of_means, usable_cores
from causal_arrow_lab.benchmarks.methods import MethodOptions, prepare
from causal_arrow_lab.benchmarks.records import Record, read_records
from causal_arrow_lab.benchmarks.suites import judged_by, select_rows
from causal_arrow_lab.network.devices import resolve_device
from causal_arrow_lab.programs import run_program

SECONDS_BETWEEN_LINES = 30.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m causal_arrow_lab.benchmarks", description=(__doc__ or "").partition(":")[0]
    )
    parser.add_argument("suites", nargs="+", metavar="SUITE", help="SUITE, SUITE/ROW, or all but the frozen ones")
    parser.add_argument(
        "--methods", default="arrow", help="separated by commas; arrow:PATH takes other weights [arrow]"
    )
    parser.add_argument("--datasets", type=int, default=100, help="datasets per row [100]")
    parser.add_argument("--jobs", type=int, default=usable_cores(), help="datasets at a time [one per core]")
    parser.add_argument("--device", default="auto", help="cpu, cuda, or auto [auto]")
    parser.add_argument("--scale", choices=SCALES, default="auto", help="of skewed positive columns, for arrow [auto]")
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds for one dataset [600]")
    parser.add_argument("--output", type=Path, default=Path("benchmark-records"), help="folder [benchmark-records]")
    return run_program(parser, run, arguments)


def run(options: argparse.Namespace) -> None:
    """Run all jobs that have no record in the folder, and print the tables."""
    rows = select_rows(options.suites)
    choices = MethodOptions(device=str(resolve_device(options.device)), scale=options.scale)
    methods = [(text, prepare(text, choices, judged_by(rows))) for text in options.methods.split(",")]
    before = read_records(options.output) if options.output.exists() else []
    jobs = remaining(plan(rows, methods, options.datasets), before, timeout=options.timeout)
    said = time.monotonic()

    def show(record: Record, done: int) -> None:
        nonlocal said
        if done == len(jobs) or time.monotonic() - said > SECONDS_BETWEEN_LINES:
            said = time.monotonic()
            print(f"{done}/{len(jobs)} done", file=sys.stderr)

    record_jobs(jobs, options.output, show, options=choices, timeout=options.timeout, processes=options.jobs)
    print(table_of_means(read_records(options.output), rows, [method for _, method in methods]))


if __name__ == "__main__":
    sys.exit(main())
