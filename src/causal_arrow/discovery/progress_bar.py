"""A bar on standard error for work that takes long: what is being done, how much of it all, and the time left."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from causal_arrow.progress import MEASURING, READING, READING_AGAIN, READING_CELLS, Progress, is_watched, unheard

WEIGHTS = {READING: 4.0, MEASURING: 3.0, READING_CELLS: 3.0}
"""The stages of a long table, in their order, and about how long each takes."""
AGAIN = {READING_AGAIN: 6.0}
"""What a table may need beyond them; nobody knows before it begins."""


@contextlib.contextmanager
def progress_bar(wanted: bool | None = None) -> Iterator[Progress]:
    """What to tell the progress to. A bar appears when there is something to tell, by default on a terminal alone."""
    if not is_watched(wanted):
        yield unheard
        return
    from rich.console import Console
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn()
    bar = Bar(*columns, console=Console(stderr=True), transient=True)
    shares: dict[str, float] = {}

    def tell(stage: str, share: float) -> None:
        if not bar.tasks:
            bar.add_task(stage, total=1.0)
            bar.start()
        shares[stage] = share
        bar.update(bar.tasks[0].id, description=stage, completed=share_of_all(shares))

    try:
        yield tell
    finally:
        if bar.tasks:
            bar.stop()


def share_of_all(shares: dict[str, float]) -> float:
    """The share of all the work that is done, given that of each stage so far. A stage before the first
    one that is heard of is not there at all."""
    first = min((list(WEIGHTS).index(stage) for stage in shares if stage in WEIGHTS), default=0)
    to_do = dict(list(WEIGHTS.items())[first:]) | {stage: AGAIN[stage] for stage in shares if stage in AGAIN}
    return sum(to_do[stage] * share for stage, share in shares.items()) / sum(to_do.values())
