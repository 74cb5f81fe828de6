"""Progress of long work: a function that hears what is under way and which share is done. A bar, lines, or silence."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

from causal_arrow.text import visible

Progress = Callable[[str, float], None]
"""Hears, in words, what is under way, and which share of it is done, from 0 to 1."""

READING = "Reading the table"
MEASURING = "Measuring all observations"
READING_CELLS = "Reading cells"
READING_AGAIN = "Reading again without isolated columns"

WEIGHTS = {READING: 4.0, MEASURING: 3.0, READING_CELLS: 3.0}  # stages of a long table in order, and their durations
AGAIN = {READING_AGAIN: 6.0}  # a stage that only some tables need, unknown until it begins

SECONDS_BETWEEN_LINES = 30.0


def ignore(stage: str, share: float) -> None:
    """Ignore progress."""


@contextlib.contextmanager
def progress_bar(wanted: bool | None = None, pieces: int | None = None, lines: bool = False) -> Iterator[Progress]:
    """Show progress on standard error, from the first report on.

    wanted   Whether to show a bar; by default only on a terminal.
    pieces   How many pieces the work has; None for the stages of one table, weighed against each other.
    lines    Whether to print a line now and then where there is no bar, for logs.
    """
    if not (sys.stderr.isatty() if wanted is None else wanted):
        yield _lines(pieces) if lines and pieces else ignore
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    bar = Bar(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn() if pieces is None else MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True, highlight=False),
        transient=True,
    )
    task = bar.add_task("", total=1.0 if pieces is None else pieces)
    shares: dict[str, float] = {}

    def show(what: str, share: float) -> None:
        if pieces is None:
            shares[what] = share
            done = share_of_all(shares)
        else:
            done = round(share * pieces)
        bar.update(task, description=visible(what), completed=done)
        bar.start()

    try:
        yield show
    finally:
        if bar.live.is_started:
            bar.stop()


def share_of_all(shares: dict[str, float]) -> float:
    """Share of all stages that is done, given the share of each so far.

    Stages before the first one reported are not part of the work.
    """
    first = min((list(WEIGHTS).index(stage) for stage in shares if stage in WEIGHTS), default=0)
    to_do = dict(list(WEIGHTS.items())[first:]) | {stage: AGAIN[stage] for stage in shares if stage in AGAIN}
    return sum(to_do[stage] * share for stage, share in shares.items()) / sum(to_do.values())


def _lines(pieces: int) -> Progress:
    """Print a line at every tenth of the work, and after a while without one."""
    began = last = time.monotonic()
    printed = 0

    def show(what: str, share: float) -> None:
        nonlocal last, printed
        done, now = round(share * pieces), time.monotonic()
        if done < pieces and done - printed < pieces / 10 and now - last <= SECONDS_BETWEEN_LINES:
            return
        last, printed = now, done
        left = (now - began) / max(done, 1) * (pieces - done)
        time_left = f", about {_duration(left)} left" if done < pieces else ""
        print(f"{done}/{pieces} done{time_left}, last: {visible(what)}", file=sys.stderr, flush=True)

    return show


def _duration(seconds: float) -> str:
    """A length of time in words: "40 seconds", "3 minutes", "2.5 hours"."""
    if seconds < 90:
        return f"{max(1, round(seconds))} second{'s' if round(seconds) > 1 else ''}"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"
