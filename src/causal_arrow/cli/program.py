"""The program behind `main`: its commands, and what it says when one of them fails.

Commands import what they need when they run, so that help comes at once.
"""

from __future__ import annotations

import codecs
import contextlib
import importlib
import io
import json
import os
import sys
from collections.abc import Iterator, Sequence
from typing import Annotated, TextIO

import typer

from causal_arrow._version import __version__
from causal_arrow.errors import COMMAND_LINE, ArrowError

COMMANDS = {  # name -> the module that has a function of this name (_ for -), and examples for it in EXAMPLES
    "discover": "causal_arrow.cli.discover",
    "discover-many": "causal_arrow.cli.discover_many",
    "effect": "causal_arrow.cli.effect",
    "next-experiment": "causal_arrow.cli.next_experiment",
    "check": "causal_arrow.cli.check",
    "serve": "causal_arrow.cli.serve",
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


def build_app(only: str | None = None) -> typer.Typer:
    """The program with all its commands, or with the one that was asked for, which takes less time."""
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
        if only in COMMANDS and name != only:
            continue
        home = importlib.import_module(module)
        app.command(name, epilog=getattr(home, "EXAMPLES", {}).get(name))(getattr(home, name.replace("-", "_")))
    return app


def run(arguments: Sequence[str] | None) -> int:
    """Run a command to its end, all that it printed written out: its exit status."""
    # Threads that wait for each other by spinning cost a multiple of the time on a machine that is busy otherwise.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    # So do numpy's, which has many small products to do and no large ones: those are torch's.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    _prepare_streams()
    status: object = 0
    try:
        wanted = sys.argv[1:] if arguments is None else arguments
        build_app(*wanted[:1])(args=None if arguments is None else list(arguments), prog_name="causal-arrow")
    except SystemExit as leaving:
        status = leaving.code
    sys.stdout.flush()  # here, where it can still be explained that the disk is full
    return status if isinstance(status, int) else int(status is not None)


def explain(error: Exception) -> int:
    """Say on standard error what went wrong, in a sentence: the exit status."""
    try:
        sys.stdout.flush()
    except (ArrowError, OSError):
        _give_up(sys.stdout)
    if isinstance(error, BrokenPipeError):  # as in `causal-arrow ... | head`
        return 1
    if isinstance(error, ArrowError):
        return _say(error.worded(COMMAND_LINE), 2)
    if isinstance(error, OSError):
        where = f" '{os.fsdecode(error.filename)}'" if isinstance(error.filename, str | bytes) else ""
        return _say(f"Cannot read or write{where}: {error.strerror or error}.", 2)
    if isinstance(error, MemoryError) or "allocate memory" in str(error) or "out of memory" in str(error):
        return _say("There is not enough memory for this: use fewer observations or fewer variables.", 1)
    if os.environ.get("CAUSAL_ARROW_DEBUG"):
        raise error
    return _say(
        f"unexpected {type(error).__name__}: {str(error).strip() or 'no message'}\n"
        "This is a bug. Run the command again with CAUSAL_ARROW_DEBUG=1 in the environment, and report what it prints "
        f"together with the command and the version, {__version__}.",
        1,
    )


def _say(sentence: str, status: int) -> int:
    try:
        print(f"causal-arrow: {sentence}", file=sys.stderr, flush=True)
    except OSError:  # nobody can be told
        _give_up(sys.stderr)
    return status


# Standard output and standard error


class StandardOutput(io.TextIOWrapper):
    """Standard output that fails in a sentence, where a file of ours on a full disk would fail with the same OSError.

    Whatever it cannot encode, such as é where only ASCII goes, it writes as \\u00e9: JSON stays JSON.
    """

    def __init__(self, stream: io.TextIOWrapper) -> None:
        codecs.register_error("escape", _escape)
        super().__init__(
            stream.buffer,
            encoding=stream.encoding,
            errors="escape" if stream.errors == "strict" else stream.errors,
            line_buffering=stream.line_buffering,
            write_through=stream.write_through,
        )

    def write(self, text: str, /) -> int:
        with self._explained():
            return super().write(text)

    def flush(self) -> None:
        with self._explained():
            super().flush()

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            raise
        except OSError as error:
            raise ArrowError(f"Cannot write to standard output: {error.strerror or error}.") from error


def _prepare_streams() -> None:
    """See to it that there is somewhere to print, and that what goes wrong there can be told."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # as in `causal-arrow ... >&-`
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    if sys.stdout is sys.__stdout__ and isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.flush()
        sys.stdout = StandardOutput(sys.stdout)


def _escape(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end


def _give_up(stream: TextIO) -> None:
    """Let what still waits in a stream go nowhere, or Python would complain about it on its way out."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
