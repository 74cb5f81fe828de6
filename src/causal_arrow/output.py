"""Write files completely or not at all, and keep two runs out of one folder."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows, which does not replace or remove files in use
    fcntl = None  # type: ignore[assignment]

from causal_arrow.errors import CheckpointError, ConfigurationError
from causal_arrow.text import cut_short

UNFINISHED = ".causal-arrow-unfinished-"
"""Prefix of folders that files are written into before they move to their destination."""
MAX_NAME_BYTES = 255  # on every file system in common use
MAX_PATH = 500  # letters of a path in a message


def check_folder(directory: Path) -> None:
    """Raise ConfigurationError unless the folder exists or can be made, and can be written to."""
    try:
        existing = _existing(directory)
        if not existing.is_dir():
            raise ConfigurationError(f"'{existing}' is a file: name a folder for the output.")
    except OSError as error:  # a path that is too long, or a folder that may not be listed
        raise cannot_write(directory, error) from error
    if too_long := [part for part in directory.parts if len(os.fsencode(part)) > MAX_NAME_BYTES]:
        raise ConfigurationError(
            f"'{too_long[0][:20]}...' is too long for the name of a folder: the limit is {MAX_NAME_BYTES} bytes."
        )
    if not os.access(existing, os.W_OK):
        raise ConfigurationError(f"Cannot write to '{existing}': Permission denied.")


def check_output(directory: Path, names: Sequence[str], overwrite: bool) -> None:
    """Raise ConfigurationError unless files of these names can be written without destroying anything."""
    check_folder(directory)
    try:
        present = [name for name in names if (directory / name).exists()]
    except OSError as error:
        raise cannot_write(directory, error) from error
    if present and not overwrite:
        raise ConfigurationError(
            f"'{directory}' already holds {', '.join(present[:3])}{', ...' if len(present) > 3 else ''}: name another "
            "folder, or replace these files with --overwrite."
        )


@contextlib.contextmanager
def written_together(directory: Path, names: Sequence[str], overwrite: bool = False) -> Iterator[Path]:
    """Yield a folder to write the files `names` into; they move to `directory` once all are complete.

    After an error or ctrl-C no file is left, and the next run removes the remains of a killed one. If several runs
    write the same files at the same time without `overwrite`, one succeeds and the others are refused. Other files are
    never touched.
    """
    check_output(directory, names, overwrite)
    existing = _existing(directory)
    try:
        # On the same file system as the destination, so that a move is a rename.
        workshop, claimed_workshop = _workshop(existing)
    except OSError as error:
        raise cannot_write(existing, error) from error
    try:
        for parent in {existing, _existing(directory.absolute().parent)}:
            _remove_abandoned(parent)
        files = workshop / "files"
        files.mkdir()
        yield files
        _move(files, directory, names, overwrite)
    except OSError as error:
        raise cannot_write(directory, error) from error
    finally:
        shutil.rmtree(workshop, ignore_errors=True)
        _release(claimed_workshop)


def _move(files: Path, directory: Path, names: Sequence[str], overwrite: bool) -> None:
    """Move the files to the folder: all at once if it is new, else one after the other while other runs wait."""
    for name in names:
        (files / name).stat()  # a missing file is noticed before anything moves
    made = [parent for parent in directory.absolute().parents if not parent.exists()]
    directory.absolute().parent.mkdir(parents=True, exist_ok=True)
    try:
        if not directory.exists():
            with contextlib.suppress(OSError):  # another run was faster: go on as with an existing folder
                files.rename(directory)
                return
        directory.mkdir(exist_ok=True)
        with claimed(directory, wait=True):
            check_output(directory, names, overwrite)
            for name in names:
                (os.replace if overwrite else os.rename)(files / name, directory / name)
    except OSError:
        for parent in made:
            with contextlib.suppress(OSError):  # another run may have put something there
                parent.rmdir()
        raise


def _existing(directory: Path) -> Path:
    """The folder, or the nearest existing one above it."""
    return next(each for each in (directory, *directory.absolute().parents) if each.exists())


def cannot_write(directory: Path, error: OSError) -> ConfigurationError:
    """The error to raise when the system refuses to write."""
    return ConfigurationError(f"Cannot write to '{directory}': {error.strerror or error}.")


# Claims. The system drops a claim with the process that holds it, however the process ends. Process numbers would not
# do: they are reused, and containers have their own.


@contextlib.contextmanager
def claimed(path: Path, wait: bool = False) -> Iterator[None]:
    """Keep other processes from claiming a folder or file; BlockingIOError if we do not wait and one has done so."""
    descriptor = _claim(path, wait)
    try:
        yield
    finally:
        _release(descriptor)


@contextlib.contextmanager
def claimed_folder(directory: Path) -> Iterator[None]:
    """Make a folder and keep other processes from writing to it; ArrowError if it cannot be made or one does so now."""
    try:
        with claimed(make_folder(directory)):
            yield
    except BlockingIOError:
        raise ConfigurationError(
            f"Another process is writing to '{directory}': wait until it is done, or name another folder."
        ) from None


def _claim(path: Path, wait: bool) -> int | None:
    """A file descriptor that holds the claim; None on systems without claims."""
    if fcntl is None:
        return None
    try:
        descriptor = os.open(path, os.O_RDWR)  # as network file systems want it
    except IsADirectoryError:
        descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        if isinstance(error, BlockingIOError):
            raise
        return None  # some network file systems
    return descriptor


def _release(descriptor: int | None) -> None:
    if descriptor is not None:
        os.close(descriptor)


def _workshop(parent: Path) -> tuple[Path, int | None]:
    """A new folder for unfinished files, and the claim on it."""
    while True:
        workshop = Path(tempfile.mkdtemp(prefix=UNFINISHED, dir=parent))
        # Until it is claimed, another run may take it for abandoned and remove it: then we need a new one.
        with contextlib.suppress(FileNotFoundError, BlockingIOError):
            claim = _claim(workshop, wait=False)
            if workshop.exists():
                return workshop, claim
            _release(claim)


def _remove_abandoned(parent: Path) -> None:
    """Remove folders of unfinished files whose process is gone."""
    for abandoned in parent.glob(f"{UNFINISHED}*"):
        with contextlib.suppress(OSError):
            claim = _claim(abandoned, wait=False)
            if claim is not None:
                shutil.rmtree(abandoned, ignore_errors=True)
                os.close(claim)


# Files that are replaced


def make_folder(directory: str | Path) -> Path:
    """The folder, made if it does not exist; CheckpointError if it cannot be."""
    directory = Path(directory)
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        where = cut_short(str(directory), MAX_PATH)
        raise CheckpointError(f"Cannot make the folder {where}: {error.strerror}.") from error
    return directory


def write_through(path: Path, content: bytes) -> None:
    """Write `content` and wait until it is on the disk."""
    try:
        with path.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        path.unlink(missing_ok=True)
        raise CheckpointError(f"Cannot write {path}: {error.strerror}.") from error


def replace_file(path: Path, content: bytes, part: Path | None = None) -> None:
    """Give `path` this content in one step: at any moment it is the old file or the new one, whole.

    It is written to `part` first, on the same file system; by default a file next to it.
    """
    part = part or path.with_name(f"{path.name}.part")
    write_through(part, content)
    os.replace(part, path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Wait until the names of the files in `folder` are on the disk; only POSIX systems can be asked."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
