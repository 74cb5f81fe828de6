"""Read the files that browsers send: within limits, in child processes that end when nobody waits."""

from __future__ import annotations

import contextlib
import gzip
import io
import multiprocessing
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.context import BaseContext
from typing import Any, TypeVar, cast

import numpy as np

from causal_arrow.errors import ArrowError, TableError, is_out_of_memory
from causal_arrow.tables import FileInMemory, RawFrame, SourceColumn, as_frame, source_columns
from causal_arrow.tables.options import ReadOptions
from causal_arrow.tables.reading import MAX_VARIABLES, read_table
from causal_arrow.tables.report import TableReport, inspect_table
from causal_arrow.tables.table import Abilities, Finding
from causal_arrow.text import counted

MEGABYTE = 2**20
TEXT_ENDINGS = (".csv", ".tsv", ".txt", ".gz")
ENDINGS = (*TEXT_ENDINGS, ".xlsx", ".parquet")
"""Endings of files that the page accepts: those whose size in memory is known before they are read."""
UNPACKED = 4  # a compressed file may hold this many times the bytes of the largest file
FIRST_BYTES = MEGABYTE
GZIP = b"\x1f\x8b"


@dataclass(frozen=True)
class Limits:
    """Limits of one server."""

    surface: str = "this page"  # the name of the surface, for messages about its limits
    most_bytes: int = 25 * MEGABYTE
    most_observations: int = 100_000
    most_variables: int = 200
    most_sessions: int = 64
    most_waiting: int = 64  # tables that wait for the network; it reads one at a time
    session_seconds: float = 3600.0  # time for which a session is kept after its last use
    patience_seconds: float = 30.0  # seconds without a request from its page, after which a table is not started
    most_memory: int = 768 * MEGABYTE  # memory for reading a file
    most_read_seconds: float = 6.0
    """Time that reading a small file may take; a large one has a second more per megabyte."""
    most_readers: int = 4  # files that are read at the same time

    def too_much_memory(self) -> TableError:
        """The refusal of a file that needs too much memory to read."""
        return TableError(
            f"Reading this file takes more than the {self.most_memory / MEGABYTE:g} MB of memory that {self.surface} "
            "gives to it: save the table as .csv, without cells far away from it."
        )

    def too_much_time(self) -> TableError:
        """The refusal of a file that takes too long to read."""
        return TableError(
            f"Reading this file takes longer than {self.surface} waits: save the table as .csv, without cells far away "
            "from it."
        )

    def too_many_bytes(self) -> TableError:
        """The refusal of a file that is too large."""
        return TableError(
            f"The file is larger than the {self.most_bytes / MEGABYTE:g} MB that {self.surface} takes: leave out "
            "observations or columns, or use the command line, which has no such limit."
        )

    def check_file(self, file: FileInMemory) -> None:
        """TableError for a file that is too large, also once it is unpacked, or of a format the page does not take."""
        if len(file.content) > self.most_bytes:
            raise self.too_many_bytes()
        if not file.content:
            raise TableError("The file is empty.")
        ending = file.suffix.lower()
        if ending not in ENDINGS:
            raise TableError(f"Cannot read {file.name!r}: expected a name that ends in {', '.join(ENDINGS)}.")
        start, unpacked = file.content[:FIRST_BYTES], 0
        # What is damaged counts as small: the reader says so in its own words.
        with contextlib.suppress(Exception):
            if ending == ".xlsx":
                with zipfile.ZipFile(io.BytesIO(file.content)) as archive:
                    unpacked = sum(entry.file_size for entry in archive.infolist())
            elif ending == ".parquet":
                unpacked = _bytes_in_parquet(file)
            elif file.content.startswith(GZIP):
                with gzip.open(file.open()) as packed:
                    start = piece = packed.read(FIRST_BYTES)
                    while piece and unpacked <= UNPACKED * self.most_bytes:
                        unpacked += len(piece)
                        piece = packed.read(FIRST_BYTES)
        if unpacked > UNPACKED * self.most_bytes:
            raise self.too_many_bytes()
        if ending in TEXT_ENDINGS:
            self._check_lines(start)

    def check_width(self, columns: int) -> None:
        """TableError for a table with too many columns to choose from."""
        if columns > MAX_VARIABLES:
            raise TableError(
                f"The table has {counted(columns, 'column')}, more than the {MAX_VARIABLES:,} that {self.surface} "
                "lists: leave some out, or use the command line."
            )

    def check_used(self, columns: int) -> None:
        """TableError for more columns than the network may read here."""
        if columns > self.most_variables:
            raise TableError(
                f"{counted(columns, 'column')} are chosen, more than the {self.most_variables:,} that {self.surface} "
                "reads: leave some out, or use the command line."
            )

    def _check_lines(self, start: bytes) -> None:
        """TableError for lines of so many fields that pandas would need gigabytes before they could be counted."""
        longest = max((line.count(sign) for line in start.split(b"\n")[:100] for sign in b",;\t| "), default=0)
        if longest > 4 * MAX_VARIABLES:
            raise TableError(
                f"A line of the file has more than {longest:,} fields: expected one column per variable, at most "
                f"{self.most_variables:,} of them."
            )


def _bytes_in_parquet(file: FileInMemory) -> int:
    from pyarrow import parquet

    facts = parquet.ParquetFile(file.open()).metadata
    return sum(facts.row_group(group).total_byte_size for group in range(facts.num_row_groups))


SEED = 0
POLL_SECONDS = 0.05
STARTED = "started"
PRELOADED = ("causal_arrow.web.uploads", "pandas", "openpyxl", "pyarrow.parquet")


Result = TypeVar("Result")


class UnwantedError(Exception):
    """Nobody waits for the result any more."""


@dataclass(frozen=True, eq=False)
class OpenedFile:
    """A file as it is read by default, its report card and its columns."""

    raw: RawFrame
    report: TableReport
    columns: tuple[SourceColumn, ...]
    left_out: tuple[str, ...] = ()  # columns beyond those that the network may read


def open_file(file: FileInMemory, limits: Limits, able: Abilities, reading: ReadOptions | None = None) -> OpenedFile:
    """Read and inspect a file; TableError if it is too large or cannot be read at all."""
    limits.check_file(file)
    raw = _sampled(as_frame(file, reading), limits.most_observations)
    limits.check_width(raw.frame.shape[1])
    left_out = raw.names[limits.most_variables :]
    table = read_table(raw, strict=False, abilities=able, drop=left_out or None)
    return OpenedFile(raw, inspect_table(table, abilities=able), source_columns(raw), left_out)


def _sampled(raw: RawFrame, most: int) -> RawFrame:
    """The frame, or as many of its rows as allowed, drawn at random and in their order."""
    if len(raw) <= most:
        return raw
    rows = np.sort(np.random.default_rng(SEED).choice(len(raw), most, replace=False))
    message = f"The table has {counted(len(raw), 'row')}; {most:,} of them, drawn at random, were read."
    note = Finding("sampled", "note", (), message)
    lines = None if raw.lines is None else [raw.lines[row] for row in rows.tolist()]
    return replace(raw, frame=raw.frame.iloc[rows], lines=lines, findings=(*raw.findings, note))


# The child process


def _context() -> BaseContext:
    """The way to start children: from a process that has imported everything already, where the system has that."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(PRELOADED))
    return context


def read_apart(
    file: FileInMemory,
    limits: Limits,
    able: Abilities,
    reading: ReadOptions | None = None,
    is_wanted: Callable[[], bool] = lambda: True,
) -> OpenedFile:
    """Call `open_file` in a child process."""
    return apart(file, limits, partial(open_file, file, limits, able, reading), is_wanted)


def apart(
    file: FileInMemory, limits: Limits, work: Callable[[], Result], is_wanted: Callable[[], bool] = lambda: True
) -> Result:
    """Do the work that a file makes in a child process. TableError where that takes too much memory or time;
    UnwantedError once the result is no longer needed."""
    receiver, sender = multiprocessing.Pipe(duplex=False)
    child = _context().Process(  # type: ignore[attr-defined]
        target=_work_in_child, args=(sender, file.name, limits, work), daemon=True
    )
    child.start()
    sender.close()
    try:
        _wait(receiver, None, is_wanted)  # the time of a busy machine to start it does not count
        result = _wait(receiver, time.monotonic() + limits.most_read_seconds + len(file.content) / MEGABYTE, is_wanted)
    except EOFError:  # killed, by the system or by a library that ran out of memory
        raise limits.too_much_memory() from None
    except TimeoutError:
        raise limits.too_much_time() from None
    finally:
        child.kill()
        child.join()
        receiver.close()
    if isinstance(result, Exception):
        raise result
    return cast(Result, result)


def _wait(receiver: Connection, deadline: float | None, is_wanted: Callable[[], bool]) -> Any:
    while not receiver.poll(POLL_SECONDS):
        if not is_wanted():
            raise UnwantedError
        if deadline is not None and time.monotonic() > deadline:
            raise TimeoutError
    return receiver.recv()


def _work_in_child(sender: Connection, name: str, limits: Limits, work: Callable[[], Any]) -> None:
    sender.send(STARTED)
    _limit_memory(limits.most_memory)
    try:
        result: Any = work()
    except ArrowError as error:
        result = limits.too_much_memory() if is_out_of_memory(error.__cause__ or error) else error
    except MemoryError:
        result = limits.too_much_memory()
    except Exception as error:
        result = TableError(f"{name!r} cannot be read ({type(error).__name__}).")
    with contextlib.suppress(BrokenPipeError):
        sender.send(result)


def _limit_memory(more: int) -> None:
    """Let this process take so many bytes more than it has now, where the system can hold it to that."""
    try:
        import resource
        from pathlib import Path

        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except (ImportError, OSError):  # Windows, macOS
        return
    most = pages * resource.getpagesize() + more
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def warm_up() -> None:
    """Start the process that later ones are copied from, by a child that does nothing."""
    child = _context().Process(daemon=True)  # type: ignore[attr-defined]
    child.start()
    child.join()
