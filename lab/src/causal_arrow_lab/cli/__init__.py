"""The program `causal-arrow-lab`: tables with known graphs, benchmarks, pretraining, timing."""

from __future__ import annotations

from collections.abc import Sequence

from causal_arrow import cli


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the program and exit with its status, like `causal_arrow.cli.main`."""
    cli.main(arguments, program="causal_arrow_lab.cli.commands:PROGRAM")
