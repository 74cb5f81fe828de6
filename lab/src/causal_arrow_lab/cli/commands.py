"""The commands of `causal-arrow-lab`."""

from __future__ import annotations

from causal_arrow.cli.program import Program

PROGRAM = Program(
    name="causal-arrow-lab",
    help="Research with Causal Arrow: tables with known graphs, benchmarks, pretraining, timing.",
    epilog="Start with `causal-arrow-lab benchmark`, which lists the suites and methods.",
    commands={
        "simulate": "causal_arrow_lab.cli.simulate",
        "benchmark": "causal_arrow_lab.cli.benchmark",
        "report": "causal_arrow_lab.cli.benchmark",
        "pretrain": "causal_arrow_lab.cli.pretrain",
        "speed": "causal_arrow_lab.cli.speed",
    },
)
