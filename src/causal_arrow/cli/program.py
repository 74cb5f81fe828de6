"""The program behind `main`: its commands, and its error messages.

Commands import what they need when they run, so that help comes at once.
"""

from __future__ import annotations

import codecs
import contextlib
import importlib
import io
import json
import logging
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TextIO

import typer

from causal_arrow._version import __version__
from causal_arrow.errors import COMMAND_LINE, ArrowError, is_out_of_memory
from causal_arrow.text import visible


@dataclass(frozen=True)
class Program:
    """A command-line program. Each command lives in a module that has a function of its name (_ for -), and may have
    examples for it in EXAMPLES."""

    name: str
    help: str
    epilog: str
    commands: Mapping[str, str]
    moved: Mapping[str, str] = field(default_factory=dict)
    """Former commands, and what became of them: "now ..." or "gone"."""
    renamed: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Former names of options, and their names now."""


INSTALL_LAB = "install it with `pip install causal-arrow-lab`"

PROGRAM = Program(
    name="causal-arrow",
    help="Causal discovery in one forward pass: a pretrained network reads a table and returns a causal graph.",
    epilog="Start with `causal-arrow check table.csv`, then `causal-arrow discover table.csv`.",
    commands={
        "discover": "causal_arrow.cli._discover",
        "discover-many": "causal_arrow.cli._discover_many",
        "effect": "causal_arrow.cli._questions",
        "causes": "causal_arrow.cli._questions",
        "response": "causal_arrow.cli._questions",
        "next-experiment": "causal_arrow.cli._questions",
        "check": "causal_arrow.cli._reports",
        "serve": "causal_arrow.cli._services",
        "mcp": "causal_arrow.cli._services",
        "install-skill": "causal_arrow.cli._services",
        "compare": "causal_arrow.cli._reports",
        "models": "causal_arrow.cli._reports",
    },
    moved={
        **{name: f"now `causal-arrow-lab {name}`: {INSTALL_LAB}" for name in ("benchmark", "pretrain", "simulate")},
        "report": "now `python docs/tools/report.py` in the source tree",
        "speed": "gone: `causal-arrow discover` prints how long it took",
    },
    renamed={
        "discover": {"--observations": "--max-rows", "--samples": "--graphs"},
        "discover-many": {"--observations": "--max-rows"},
        "effect": {"--observations": "--max-rows", "--samples": "--graphs"},
        "next-experiment": {"--observations": "--rows", "--samples": "--graphs"},
    },
)


def build_app(program: Program = PROGRAM, only: str | None = None) -> typer.Typer:
    """The program with all its commands, or with the one that was asked for, which takes less time."""
    app = typer.Typer(
        name=program.name,
        help=program.help,
        no_args_is_help=True,
        rich_markup_mode="markdown",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        epilog=program.epilog,
    )

    def print_version(wanted: bool) -> None:
        if wanted:
            print(f"{program.name} {__version__}")
            raise typer.Exit

    @app.callback()
    def root(
        version: bool = typer.Option(
            False, "--version", help="Print the version.", callback=print_version, is_eager=True
        ),
    ) -> None:
        pass

    for name, module in program.commands.items():
        if only in program.commands and name != only:
            continue
        home = importlib.import_module(module)
        examples = [f"`{line}`" for line in getattr(home, "EXAMPLES", {}).get(name, ())]
        epilog = "\n\n".join(["**Examples**", *examples]) if examples else None
        app.command(name, epilog=epilog)(getattr(home, name.replace("-", "_")))
    return app


def run(program: Program, arguments: Sequence[str] | None) -> int:
    """Run a command to its end and flush what it printed: its exit status."""
    # Threads that wait for each other by spinning cost a multiple of the time on a machine that is busy otherwise.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    # So do numpy's, which has many small products to do and no large ones: those are torch's.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # About a folder for its cache, where the home folder cannot be written.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    _prepare_streams()
    wanted = sys.argv[1:] if arguments is None else arguments
    if wanted and wanted[0] in program.moved:
        raise ArrowError(f"`{program.name} {wanted[0]}` is {program.moved[wanted[0]]}.")
    renamed = program.renamed.get(wanted[0], {}) if wanted else {}
    if former := [option for option in (word.partition("=")[0] for word in wanted) if option in renamed]:
        raise ArrowError(f"The option {former[0]} of `{wanted[0]}` is now {renamed[former[0]]}.")
    status: object = 0
    try:
        build_app(program, *wanted[:1])(args=None if arguments is None else list(arguments), prog_name=program.name)
    except SystemExit as leaving:
        status = leaving.code
    sys.stdout.flush()  # here, where it can still be explained that the disk is full
    return status if isinstance(status, int) else int(status is not None)


def explain(error: Exception, name: str = PROGRAM.name) -> int:
    """Print a sentence about an error, which starts with the name of the program, and return the exit status."""
    try:
        sys.stdout.flush()
    except (ArrowError, OSError):
        _give_up(sys.stdout)
    if isinstance(error, BrokenPipeError):  # as in `causal-arrow ... | head`
        return 1
    if isinstance(error, ArrowError):
        return _say(name, error.worded(COMMAND_LINE), 2)
    if isinstance(error, OSError):
        where = f" '{os.fsdecode(error.filename)}'" if isinstance(error.filename, str | bytes) else ""
        return _say(name, f"Cannot read or write{where}: {error.strerror or error}.", 2)
    if is_out_of_memory(error):
        return _say(name, "There is not enough memory for this: use fewer observations or fewer variables.", 1)
    if os.environ.get("CAUSAL_ARROW_DEBUG"):
        raise error
    return _say(
        name,
        f"unexpected {type(error).__name__}: {str(error).strip() or 'no message'}\n"
        "This is a bug. Run the command again with CAUSAL_ARROW_DEBUG=1 in the environment, and report what it prints "
        f"together with the command and the version, {__version__}.",
        1,
    )


def _say(name: str, sentence: str, status: int) -> int:
    try:
        print(f"{name}: {visible(sentence)}", file=sys.stderr, flush=True)
    except OSError:  # nowhere to report it
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
            errors="escape" if stream.errors in ("strict", "surrogateescape") else stream.errors,
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
    """Make sure stdout and stderr are usable, and that their errors can be reported."""
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
    """Discard what a stream still holds, or Python would complain about it at exit."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
