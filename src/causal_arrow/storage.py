"""Room for large arrays: in memory while they are small, beyond that in a temporary file that vanishes with them."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from causal_arrow.errors import TableError
from causal_arrow.text import counted

IN_MEMORY_BYTES = 2**30
"""An array that is larger than this goes to a file."""

CELLS_PER_CHUNK = 2**20
"""Size of a chunk of a table that is read a few observations at a time."""

CGROUP = Path("/sys/fs/cgroup")
OWN_CGROUP = Path("/proc/self/cgroup")
"""Folder of Linux's control groups, and the file that names those of this process."""


def room_for(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """An array of this shape to write into, column by column in memory or in an unnamed temporary file.

    The system frees the file with the last array that uses it, however the process ends.
    """
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    if size <= IN_MEMORY_BYTES:
        return np.empty(shape, dtype=dtype, order="F")
    with tempfile.TemporaryFile(prefix="causal-arrow-") as file:
        try:
            if hasattr(os, "posix_fallocate"):  # a full disk would end the process later, without a word
                os.posix_fallocate(file.fileno(), 0, size)
            return np.memmap(file, dtype=dtype, mode="w+", shape=shape, order="F")
        except OSError as error:
            raise _no_room("The table", size) from error


def let_go(array: NDArray[Any]) -> None:
    """Leave the pages of an array in a file to the system: they are read again when they are needed again."""
    mapped = getattr(array, "_mmap", None)
    if mapped is not None and hasattr(mapped, "madvise"):
        import mmap

        mapped.madvise(mmap.MADV_DONTNEED)


def check_room(observations: int, variables: int, what: str) -> None:
    """TableError if a table of this size finds no room, in memory or among temporary files, with what it needs.

    `what` opens the sentence. Needed are the numbers twice while they are read; then once, and twice more with half the
    digits while the network measures them.
    """
    needed = 2 * 8 * observations * variables
    size = f"{counted(observations, 'observation')} of {counted(variables, 'variable')}"
    reading = f"{what} holds about {size}. Reading them"
    available = free_memory()
    if needed > 2 * IN_MEMORY_BYTES:
        if needed > shutil.disk_usage(tempfile.gettempdir()).free:
            raise _no_room(reading, needed)
    elif available is not None and needed > available:
        raise TableError(f"{reading} takes {in_words(needed)} of memory, and {in_words(available)} are free.")


def free_memory() -> int | None:
    """Bytes of memory that this program can still get; None where the system does not say."""
    known = [available] if (available := _available()) is not None else []
    return min([*known, *_left_to_cgroups()], default=None)


def _available() -> int | None:
    """The bytes that Linux calls available."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError, IndexError):
        return None


def _left_to_cgroups() -> Iterator[int]:
    """The bytes left to each control group that limits the memory of this process, from its own up to the root."""
    for line in _text(OWN_CGROUP).splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers:  # version 2
            root, limit_file, use_file, cache = CGROUP, "memory.max", "memory.current", "inactive_file"
        elif "memory" in controllers.split(","):
            root, cache = CGROUP / "memory", "total_inactive_file"
            limit_file, use_file = "memory.limit_in_bytes", "memory.usage_in_bytes"
        else:
            continue
        own = root / path.lstrip("/")
        for group in (own, *(parent for parent in own.parents if parent == root or root in parent.parents)):
            limit, use = _text(group / limit_file).strip(), _text(group / use_file).strip()
            if limit.isdecimal() and use.isdecimal():
                # The system frees pages of files that were not used lately when memory is needed.
                facts = dict(line.split(" ", 1) for line in _text(group / "memory.stat").splitlines())
                yield max(0, int(limit) - int(use) + int(facts.get(cache, 0)))


def _text(path: Path) -> str:
    """The text of a small file; empty if it cannot be read."""
    try:
        return path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        return ""


def in_words(size: int) -> str:
    """A number of bytes: "1.2 GB"."""
    return f"{size / 1e9:,.1f} GB" if size < 1e11 else f"{size / 1e9:,.0f} GB"


def chunks_of(observations: int, variables: int) -> Iterator[slice]:
    """Slices that cover the observations of a table, each of at most CELLS_PER_CHUNK cells."""
    return slices(observations, CELLS_PER_CHUNK // max(variables, 1))


def slices(count: int, at_once: int) -> Iterator[slice]:
    """Slices that cover `count` items, each of at most `at_once`."""
    at_once = max(1, at_once)
    return (slice(start, min(start + at_once, count)) for start in range(0, count, at_once))


def _no_room(what: str, size: int) -> TableError:
    free = shutil.disk_usage(tempfile.gettempdir()).free
    return TableError(
        f"{what} takes {in_words(size)} for temporary files, and '{tempfile.gettempdir()}' has {in_words(free)}: "
        "make room there, or name another folder in the environment variable TMPDIR."
    )
