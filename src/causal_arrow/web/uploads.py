"""Read the files that browsers send: in child processes with limits of memory and time, which end when nobody waits."""

from __future__ import annotations

import contextlib
import multiprocessing
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.context import BaseContext
from typing import Any, TypeVar, cast

import numpy as np

from causal_arrow.errors import ArrowError, TableError, is_out_of_memory
from causal_arrow.tables import FileInMemory, RawFrame, SourceColumn, as_frame, source_columns
from causal_arrow.tables._raw import remark
from causal_arrow.tables.options import ReadOptions
from causal_arrow.tables.reading import read_table
from causal_arrow.tables.report import TableReport, inspect_table
from causal_arrow.tables.table import Abilities
from causal_arrow.text import counted
from causal_arrow.web.limits import Limits

SEED = 0
POLL_SECONDS = 0.05
STARTED = "started"
PRELOADED = ("causal_arrow.web.uploads", "pandas", "openpyxl", "pyarrow.parquet")


Result = TypeVar("Result")


class AbandonedError(Exception):
    """Nobody waits for the file any more."""


@dataclass(frozen=True, eq=False)
class OpenedFile:
    """A file as it is read by default, its report card and its columns."""

    raw: RawFrame
    report: TableReport
    columns: tuple[SourceColumn, ...]
    left_out: tuple[str, ...] = ()
    """Columns beyond those that the network may read."""


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
    note = remark(f"The table has {counted(len(raw), 'row')}; {most:,} of them, drawn at random, were read.")
    lines = None if raw.lines is None else [raw.lines[row] for row in rows.tolist()]
    return replace(raw, frame=raw.frame.iloc[rows], lines=lines, findings=(*raw.findings, note))


# The child process


def _context() -> BaseContext:
    """How to start children: from a process that has imported everything already, where the system has that."""
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
    AbandonedError once nobody wants the result."""
    receiver, sender = multiprocessing.Pipe(duplex=False)
    child = _context().Process(  # type: ignore[attr-defined]
        target=_work_in_child, args=(sender, file.name, limits, work), daemon=True
    )
    child.start()
    sender.close()
    try:
        _wait(receiver, None, is_wanted)  # the time of a busy machine to start it does not count
        result = _wait(receiver, time.monotonic() + limits.seconds_to_read(file), is_wanted)
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
            raise AbandonedError
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


def _do_nothing() -> None:
    """Work of a child that is only started to have the next ones start at once."""


def warm_up() -> None:
    """Start the process that later ones are copied from."""
    child = _context().Process(target=_do_nothing, daemon=True)  # type: ignore[attr-defined]
    child.start()
    child.join()
