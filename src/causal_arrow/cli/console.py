"""What the commands share: where to print, how to write files so that nothing is ever half there."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows, which does not replace or remove what is in use
    fcntl = None  # type: ignore[assignment]

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as Grid

from causal_arrow.errors import ArrowError, ConfigurationError

# Wide enough for any line: what is piped into a file or a program must not be broken at the edge of a screen.
PIPED_WIDTH = 10_000

# Of folders that files are written into before they move to their place; nobody else's begin like this.
UNFINISHED = ".causal-arrow-unfinished-"
LONGEST_NAME = 255  # bytes, on every file system in common use


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


# Where to write


def folder(text: str) -> Path:
    """An option's value as a folder for output. Nothing in quotes would be the current folder, which nobody means."""
    return _named(text, "a folder")


def file(text: str) -> Path:
    """An option's value as a file for output."""
    return _named(text, "a file")


def _named(text: str, what: str) -> Path:
    if not str(text):  # defaults come through here as well, and are paths already
        raise ArrowError(f"The name for the output is empty: name {what}.")  # not as a ValueError, which typer takes
    return Path(text)


def check_output(directory: Path, names: Sequence[str], overwrite: bool) -> None:
    """ConfigurationError unless files of these names can be written to the folder without destroying anything."""
    try:
        existing = _existing(directory)
        if not existing.is_dir():
            raise ConfigurationError(f"'{existing}' is a file: name a folder for the output.")
        present = [name for name in names if (directory / name).exists()]
    except OSError as error:  # a path that is too long, a folder that nobody may look into
        raise _cannot_write(directory, error) from error
    too_long = [part for part in directory.parts if len(os.fsencode(part)) > LONGEST_NAME]
    if too_long:
        raise ConfigurationError(
            f"'{too_long[0][:20]}...' is too long for the name of a folder: {LONGEST_NAME} bytes are the most."
        )
    if not os.access(existing, os.W_OK):
        raise ConfigurationError(f"Cannot write to '{existing}': Permission denied.")
    if present and not overwrite:
        raise ConfigurationError(
            f"'{directory}' already holds {', '.join(present[:3])}{', ...' if len(present) > 3 else ''}: name another "
            "folder, or replace these files with --overwrite."
        )


@contextlib.contextmanager
def written_together(directory: Path, names: Sequence[str], overwrite: bool = False) -> Iterator[Path]:
    """A folder to write the files `names` into; they move to `directory` when all are complete, and only then.

    After an error or ctrl-C nothing of them is left, and the next run removes what a killed one left. Of several runs
    that write the same files at the same time without `overwrite`, one succeeds and the others are refused. Files of
    other names are never touched.
    """
    check_output(directory, names, overwrite)
    existing = _existing(directory)
    try:
        # On the same file system as its goal, so that a move is a rename.
        workshop, claim = _workshop(existing)
    except OSError as error:
        raise _cannot_write(existing, error) from error
    try:
        for place in {existing, _existing(directory.absolute().parent)}:
            _remove_abandoned(place)
        files = workshop / "files"
        files.mkdir()
        yield files
        _move(files, directory, names, overwrite)
    except OSError as error:
        raise _cannot_write(directory, error) from error
    finally:
        shutil.rmtree(workshop, ignore_errors=True)
        if claim is not None:
            os.close(claim)


def _move(files: Path, directory: Path, names: Sequence[str], overwrite: bool) -> None:
    """Let the files appear in the folder: all at once where it is new, else one after the other while others wait."""
    for name in names:
        (files / name).stat()  # whatever is missing, is missed before anything moves
    made = [parent for parent in directory.absolute().parents if not parent.exists()]
    directory.absolute().parent.mkdir(parents=True, exist_ok=True)
    try:
        if not directory.exists():
            with contextlib.suppress(OSError):  # another run was faster: go on as with any folder that is there
                files.rename(directory)
                return
        directory.mkdir(exist_ok=True)
        with _claimed(directory):
            check_output(directory, names, overwrite)
            for name in names:
                (os.replace if overwrite else os.rename)(files / name, directory / name)
    except OSError:
        for parent in made:
            with contextlib.suppress(OSError):  # others may have put something there
                parent.rmdir()
        raise


def _existing(directory: Path) -> Path:
    """The folder itself, or the nearest one above it that is there."""
    return next(place for place in (directory, *directory.absolute().parents) if place.exists())


def _cannot_write(directory: Path, error: OSError) -> ConfigurationError:
    return ConfigurationError(f"Cannot write to '{directory}': {error.strerror or error}.")


# Claims on folders: the system drops them with the process, however it ends, and one that another process holds shows
# that it is still at work. Process numbers would not do: they come again, and containers have their own.


def _claim(directory: Path, wait: bool) -> int | None:
    """A file descriptor that keeps other processes from claiming the folder; None on systems that know no claims.

    BlockingIOError if we do not wait and another process has it.
    """
    if fcntl is None:
        return None
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        if isinstance(error, BlockingIOError):
            raise
        return None  # some network file systems
    return descriptor


@contextlib.contextmanager
def _claimed(directory: Path) -> Iterator[None]:
    """Wait until no other process claims the folder, and claim it."""
    descriptor = _claim(directory, wait=True)
    try:
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _workshop(place: Path) -> tuple[Path, int | None]:
    """A new folder for unfinished files, and the claim on it."""
    while True:
        workshop = Path(tempfile.mkdtemp(prefix=UNFINISHED, dir=place))
        # Before it is claimed, another run may take it for abandoned and remove it: then we need a new one.
        with contextlib.suppress(FileNotFoundError, BlockingIOError):
            claim = _claim(workshop, wait=False)
            if workshop.exists():
                return workshop, claim
            if claim is not None:
                os.close(claim)


def _remove_abandoned(place: Path) -> None:
    """Remove folders of unfinished files whose process is gone."""
    for abandoned in place.glob(f"{UNFINISHED}*"):
        with contextlib.suppress(OSError):
            claim = _claim(abandoned, wait=False)
            if claim is not None:
                shutil.rmtree(abandoned, ignore_errors=True)
                os.close(claim)
