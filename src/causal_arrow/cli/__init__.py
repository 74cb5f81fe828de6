"""The command line, `causal-arrow`. Commands import what they need when they run, so that help comes at once."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from causal_arrow._version import __version__
from causal_arrow.errors import COMMAND_LINE, ArrowError

COMMANDS = {  # name -> the module that has a function of this name, and examples for it in EXAMPLES
    "discover": "causal_arrow.cli.discover",
    "check": "causal_arrow.cli.check",
    "simulate": "causal_arrow.cli.simulate",
    "compare": "causal_arrow.cli.compare",
    "models": "causal_arrow.cli.models",
    "speed": "causal_arrow.cli.speed",
    "benchmark": "causal_arrow.cli.benchmark",
    "report": "causal_arrow.cli.benchmark",
    "pretrain": "causal_arrow.cli.pretrain",
}


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"causal-arrow {__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Causal discovery in one forward pass: a pretrained network reads a table and answers with a causal graph."""


def build_app() -> typer.Typer:
    """The program with all its commands."""
    app = typer.Typer(
        name="causal-arrow",
        no_args_is_help=True,
        rich_markup_mode="markdown",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        epilog="Start with `causal-arrow check table.csv`, then `causal-arrow discover table.csv`.",
    )
    app.callback()(_root)
    for name, module in COMMANDS.items():
        home = importlib.import_module(module)
        app.command(name, epilog=getattr(home, "EXAMPLES", {}).get(name))(getattr(home, name))
    return app


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the program and leave it with an exit status: 0 done, 1 failed, 2 something the user can put right."""
    # Threads that wait for each other by spinning cost a multiple of the time on a machine that is busy otherwise.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        build_app()(args=None if arguments is None else list(arguments), prog_name="causal-arrow")
    except ArrowError as error:
        print(f"causal-arrow: {error.worded(COMMAND_LINE)}", file=sys.stderr)
        sys.exit(2)
    except Exception as error:
        if os.environ.get("CAUSAL_ARROW_DEBUG"):
            raise
        print(
            f"causal-arrow: unexpected {type(error).__name__}: {str(error).strip() or 'no message'}\n"
            "This is a bug. Run the command again with CAUSAL_ARROW_DEBUG=1 in the environment, and report what it "
            f"prints together with the command and the version, {__version__}.",
            file=sys.stderr,
        )
        sys.exit(1)
