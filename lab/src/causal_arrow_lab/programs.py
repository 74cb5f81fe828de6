"""Helpers of the programs for bare machines: errors in one sentence."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from causal_arrow.errors import ArrowError


def run_program(
    parser: argparse.ArgumentParser, run: Callable[[argparse.Namespace], object], arguments: Sequence[str] | None
) -> int:
    """Run a program with its arguments and return the exit status: 2 with a sentence for an ArrowError."""
    options = parser.parse_args(arguments)
    try:
        run(options)
    except ArrowError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def peak_memory_gb() -> float:
    """The most memory this process has held so far."""
    import resource  # which Windows does not have

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return float(peak) / (1e9 if sys.platform == "darwin" else 1e6)
