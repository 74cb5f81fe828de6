"""Progress of work in many pieces on standard error: a bar on a terminal, a line now and then in a log; time left."""

from __future__ import annotations

import sys
import time
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Protocol

from causal_arrow.progress import is_watched

# When nobody watches a bar, a line is printed after so many seconds or at every tenth of the work.
SECONDS_BETWEEN_LINES = 30.0


class Progress(Protocol):
    """Hears of every piece that is done, and what to say of it."""

    def advance(self, what: str) -> None: ...


def progress_of(total: int, bar: bool | None = None) -> AbstractContextManager[Progress]:
    """Progress of `total` pieces: a bar, or lines; by default a bar where standard error is a terminal."""
    return _Bar(total) if is_watched(bar) else _Lines(total)


def silence() -> AbstractContextManager[Progress]:
    """Progress that nobody watches."""
    return _Silence()


class _Quiet:
    """Base of them all: nothing to begin or to end."""

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def advance(self, what: str) -> None:
        pass


class _Silence(_Quiet):
    """Nobody watches."""


class _Lines(_Quiet):
    """Lines for a log file."""

    def __init__(self, total: int) -> None:
        self.total, self.done = total, 0
        self.began = self.said_at = time.monotonic()
        self.said_done = 0

    def advance(self, what: str) -> None:
        self.done += 1
        now = time.monotonic()
        waited = now - self.said_at > SECONDS_BETWEEN_LINES
        if self.done == self.total or waited or self.done - self.said_done >= self.total / 10:
            self.said_at, self.said_done = now, self.done
            left = (now - self.began) / self.done * (self.total - self.done)
            time_left = f", about {duration(left)} left" if self.done < self.total else ""
            print(f"{self.done}/{self.total} done{time_left}, last: {what}", file=sys.stderr, flush=True)


class _Bar(_Quiet):
    """A bar for a terminal."""

    def __init__(self, total: int) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        self.progress = Progress(
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("{task.description}", markup=False),
            console=Console(stderr=True, highlight=False),
        )
        self.task = self.progress.add_task("", total=total)

    def __enter__(self) -> Progress:
        self.progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.progress.stop()

    def advance(self, what: str) -> None:
        self.progress.update(self.task, advance=1, description=what)


def duration(seconds: float) -> str:
    """A length of time as people say it: "40 seconds", "3 minutes", "2.5 hours"."""
    if seconds < 90:
        return f"{max(1, round(seconds))} second{'s' if round(seconds) > 1 else ''}"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"
