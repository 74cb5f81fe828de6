"""`python -m causal_arrow.pretraining CONFIG.toml`: pretraining with torch, numpy and safetensors alone."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from causal_arrow.errors import ArrowError
from causal_arrow.pretraining.config import add_config_arguments, read_config
from causal_arrow.pretraining.train import pretrain


def main(arguments: list[str] | None = None) -> int:
    """Run the command; the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m causal_arrow.pretraining",
        description="Train a network on a stream of synthetic tasks. Several processes: start it with torchrun.",
    )
    add_config_arguments(parser)
    parser.add_argument("--output", type=Path, help="folder of a new run [runs/NAME OF CONFIG]")
    parser.add_argument(
        "--resume",
        type=Path,
        metavar="DIR",
        help="go on with the run in this folder; more stages and pair_blocks may be set",
    )
    parser.add_argument(
        "--init",
        help="start from these weights, of this network or a shallower one: a folder, a file, or a bundled name",
    )
    parser.add_argument("--minutes", type=float, help="stop in time to be done, saved and validated, after this long")
    parser.add_argument(
        "--decay-minutes", type=float, default=0.0, help="let the learning rate fall to zero over the last minutes [0]"
    )
    parser.add_argument(
        "--compiler-cache",
        type=Path,
        metavar="FILE",
        help="read compiled code from this file if it is there, write it at the end; only use a file of your own",
    )
    parser.add_argument("--device", default="auto", help="cpu, cuda, or auto [auto]")
    options = parser.parse_args(arguments)
    try:
        pretrain(
            read_config(options.config, options.set),
            options.resume or options.output or Path("runs") / options.config.stem,
            resume=options.resume is not None,
            init=options.init,
            minutes=options.minutes,
            decay_minutes=options.decay_minutes,
            compiler_cache=options.compiler_cache,
            device=options.device,
            echo=lambda line: print(line, flush=True),
        )
    except ArrowError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
