"""What the commands share: where to print, how to write files so that nothing is ever half there."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as Grid

from causal_arrow.errors import ConfigurationError

# Wide enough for any line: what is piped into a file or a program must not be broken at the edge of a screen.
PIPED_WIDTH = 10_000


def console(stderr: bool = False) -> Console:
    """Where to print: colors and the width of the screen on a terminal, plain unbroken lines elsewhere."""
    stream = sys.stderr if stderr else sys.stdout
    return Console(
        stderr=stderr, highlight=False, soft_wrap=not stream.isatty(), width=None if stream.isatty() else PIPED_WIDTH
    )


def grid(*headings: str, right: Sequence[str] = ()) -> Grid:
    """An empty table with these headings; the columns in `right` hold numbers."""
    table = Grid(box=SIMPLE_HEAD if sys.stdout.isatty() else None, show_edge=False, pad_edge=False, header_style="bold")
    for heading in headings:
        table.add_column(heading, justify="right" if heading in right else "left", no_wrap=heading in right)
    return table


def check_output(directory: Path, names: Sequence[str], overwrite: bool) -> None:
    """ConfigurationError unless files of these names can be written to the folder without destroying anything."""
    if directory.exists() and not directory.is_dir():
        raise ConfigurationError(f"'{directory}' is a file: name a folder for the output.")
    present = [name for name in names if (directory / name).exists()]
    if present and not overwrite:
        raise ConfigurationError(
            f"'{directory}' already holds {', '.join(present[:3])}{', ...' if len(present) > 3 else ''}: name another "
            "folder, or replace these files with --overwrite."
        )


@contextlib.contextmanager
def written_together(directory: Path, names: Sequence[str], overwrite: bool = False) -> Iterator[Path]:
    """A folder to write the files `names` into; they move to `directory` when all are complete, and only then.

    After an error or ctrl-C nothing of them is left. Files of other names are never touched.
    """
    check_output(directory, names, overwrite)
    existing = next(folder for folder in (directory, *directory.absolute().parents) if folder.exists())
    try:
        # On the same file system as its goal, so that a move is a rename.
        workshop = Path(tempfile.mkdtemp(prefix=".causal-arrow-", dir=existing))
    except OSError as error:
        raise ConfigurationError(f"Cannot write to '{existing}': {error.strerror or error}.") from error
    try:
        yield workshop
        directory.mkdir(parents=True, exist_ok=True)
        for name in names:
            os.replace(workshop / name, directory / name)
    except OSError as error:
        raise ConfigurationError(f"Cannot write to '{directory}': {error.strerror or error}.") from error
    finally:
        shutil.rmtree(workshop, ignore_errors=True)
