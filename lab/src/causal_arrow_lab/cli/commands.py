"""The commands of `causal-arrow-lab`."""

from __future__ import annotations

from causal_arrow.cli.program import PROGRAM as PROGRAM_OF_USERS
from causal_arrow.cli.program import Program

PROGRAM = Program(
    name="causal-arrow-lab",
    help="Research with Causal Arrow: tables with known graphs, benchmarks and pretraining.",
    epilog="Start with `causal-arrow-lab benchmark`, which lists the suites and methods.",
    commands={
        "simulate": "causal_arrow_lab.cli._simulate",
        "benchmark": "causal_arrow_lab.cli._benchmark",
        "pretrain": "causal_arrow_lab.cli._pretrain",
    },
    moved={name: PROGRAM_OF_USERS.moved[name] for name in ("report", "speed")},
)
