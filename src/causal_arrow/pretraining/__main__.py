"""`python -m causal_arrow.pretraining CONFIG`: pretraining with torch, numpy and safetensors alone."""

from __future__ import annotations

import argparse
import sys

from causal_arrow.errors import ArrowError
from causal_arrow.pretraining.command import add_config_arguments, run_pretraining
from causal_arrow.pretraining.options import HELP


def main(arguments: list[str] | None = None) -> int:
    """Run the command; the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m causal_arrow.pretraining",
        description="Train a network on a stream of synthetic tasks. Several processes: start it with torchrun.",
    )
    add_config_arguments(parser)
    parser.add_argument("--output", metavar="DIR", help=HELP["output"])
    parser.add_argument("--resume", metavar="DIR", help=HELP["resume"])
    parser.add_argument("--init", metavar="WEIGHTS", help=HELP["init"])
    parser.add_argument("--minutes", type=float, help=HELP["minutes"])
    parser.add_argument("--decay-minutes", type=float, default=0.0, help=HELP["decay_minutes"])
    parser.add_argument("--compiler-cache", metavar="FILE", help=HELP["compiler_cache"])
    parser.add_argument("--device", default="auto", help=HELP["device"])
    try:
        run_pretraining(**vars(parser.parse_args(arguments)))
    except ArrowError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
