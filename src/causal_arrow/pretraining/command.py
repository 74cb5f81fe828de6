"""Pretraining as a command: what its front ends share, the one of bare machines and `causal-arrow pretrain`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from causal_arrow.errors import ConfigurationError
from causal_arrow.pretraining import train
from causal_arrow.pretraining.config import PretrainingConfig, read_config
from causal_arrow.pretraining.options import HELP


def run_pretraining(
    config: str,
    *,
    changes: Sequence[str] | None = None,
    output: str | None = None,
    resume: str | None = None,
    init: str | None = None,
    minutes: float | None = None,
    decay_minutes: float = 0.0,
    compiler_cache: str | None = None,
    device: str = "auto",
) -> None:
    """Train as the options of the command say, which are given as they were written; lines go to the console."""
    for name, value in (("output", output), ("resume", resume), ("init", init), ("compiler-cache", compiler_cache)):
        if value == "" or (value is not None and "\0" in value):
            raise ConfigurationError(f"Expected a name for --{name}, got {value!r}.")
    settings: PretrainingConfig = read_config(config, changes or ())
    train.pretrain(
        settings,
        Path(resume or output or Path("runs") / Path(config).stem),
        resume=resume is not None,
        init=init,
        minutes=minutes,
        decay_minutes=decay_minutes,
        compiler_cache=None if compiler_cache is None else Path(compiler_cache),
        device=device,
        echo=lambda line: print(line, flush=True),
    )


def add_config_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments `config` and `--set`, for `read_config`."""
    parser.add_argument("config", help=HELP["config"])
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="changes", help=HELP["set"])
