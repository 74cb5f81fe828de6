"""`python -m causal_arrow_lab.pretraining CONFIG`: pretraining with only torch, numpy and safetensors.

Options and their help are also those of `causal-arrow-lab pretrain`. Imports nothing heavy, so that help comes at once.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from causal_arrow.errors import ConfigurationError
from causal_arrow_lab.programs import run_program

HELP = {
    "config": "A shipped configuration (any, base, paper, small, smoke, strict) or a TOML file that describes the run.",
    "set": "Change a setting of the file, as in model.pair_width=192. Can be repeated.",
    "output": "Folder of a new run; runs/NAME OF CONFIG by default.",
    "resume": "Continue the run in this folder; more stages, pair_blocks, channels and statistics may be set.",
    "init": "Start from these weights, of this network or a smaller one it can grow from: a folder, a file, or a "
    "bundled name.",
    "minutes": "Stop, saved and validated, after this long.",
    "decay_minutes": "Let the learning rate fall to zero over the last minutes.",
    "compiler_cache": "Read compiled code from this file if it exists, and write it at the end. Use only a file that "
    "you trust.",
    "device": "auto (a GPU if there is one), cpu, cuda, cuda:1.",
}
"""The help of each option."""


def run_pretraining(
    config: str,
    *,
    changes: Sequence[str] | None = None,
    output: str | None = None,
    resume: str | None = None,
    init: str | None = None,
    compiler_cache: str | None = None,
    **settings: Any,
) -> None:
    """Train with the options as the user wrote them, others as for `pretrain`, and print lines on the console."""
    for name, value in (("output", output), ("resume", resume), ("init", init), ("compiler-cache", compiler_cache)):
        if value == "" or (value is not None and "\0" in value):
            raise ConfigurationError(f"Expected a name for --{name}, got {value!r}.")
    from causal_arrow_lab.pretraining import train
    from causal_arrow_lab.pretraining.config import read_config

    train.pretrain(
        read_config(config, changes or ()),
        Path(resume or output or Path("runs") / Path(config).stem),
        resume=resume is not None,
        init=init,
        compiler_cache=None if compiler_cache is None else Path(compiler_cache),
        echo=lambda line: print(line, flush=True),
        **settings,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m causal_arrow_lab.pretraining",
        description="Train a network on a stream of synthetic tasks. Several processes: start it with torchrun.",
    )
    parser.add_argument("config", help=HELP["config"])
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="changes", help=HELP["set"])
    parser.add_argument("--output", metavar="DIR", help=HELP["output"])
    parser.add_argument("--resume", metavar="DIR", help=HELP["resume"])
    parser.add_argument("--init", metavar="WEIGHTS", help=HELP["init"])
    parser.add_argument("--minutes", type=float, help=HELP["minutes"])
    parser.add_argument("--decay-minutes", type=float, default=0.0, help=HELP["decay_minutes"])
    parser.add_argument("--compiler-cache", metavar="FILE", help=HELP["compiler_cache"])
    parser.add_argument("--device", default="auto", help=HELP["device"])
    return run_program(parser, lambda options: run_pretraining(**vars(options)), arguments)


if __name__ == "__main__":
    sys.exit(main())
