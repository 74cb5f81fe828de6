"""Run methods over suites on a bare machine: `python -m causal_arrow_lab.benchmarks SUITE ... --output DIR`.

Like `causal-arrow-lab benchmark` for a machine with only torch, numpy and safetensors: the same datasets, records and
tables, without a progress bar. It can be stopped at any time: the same command continues.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from causal_arrow.tables.scales import SCALES
from causal_arrow_lab.benchmarks.evaluate import run_benchmark, usable_cores
from causal_arrow_lab.benchmarks.methods import MethodOptions
from causal_arrow_lab.network.devices import resolve_device
from causal_arrow_lab.programs import run_program


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


def run(asked: argparse.Namespace) -> None:
    options = MethodOptions(device=str(resolve_device(asked.device)), scale=asked.scale)
    run_benchmark(
        asked.suites,
        asked.methods,
        options,
        datasets=asked.datasets,
        output=asked.output,
        timeout=asked.timeout,
        processes=asked.jobs,
        bar=False,  # a bar needs a package
    )


if __name__ == "__main__":
    sys.exit(main())
