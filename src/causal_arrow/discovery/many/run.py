"""discover_many(): many tables, one after the other or side by side, with everything that is finished kept."""

from __future__ import annotations

import contextlib
import os
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from causal_arrow import storage
from causal_arrow.discovery.answer import Answer
from causal_arrow.discovery.many import plan
from causal_arrow.discovery.many.folder import DIED, OK, ManyFolder, Record
from causal_arrow.discovery.many.tables import named_tables
from causal_arrow.discovery.many.workers import Workers, check_backend, started
from causal_arrow.discovery.pipeline import Settings, check_count, with_reading
from causal_arrow.errors import ArrowError, ConfigurationError
from causal_arrow.network.model import ArrowModel
from causal_arrow.progress import is_watched
from causal_arrow.text import closest, listed, reason

if TYPE_CHECKING:
    import pandas as pd

MOST_DEATHS = 2
"""A table that was under way so often when a worker died is given up: the second time nothing else was."""
MOST_FRUITLESS = 3
"""Attempts in a row that finish nothing."""
SECONDS_BETWEEN_LOOKS = 0.3

Heard = Callable[[Record], None]


class ManyAnswers(Mapping[str, Answer]):
    """The answers for many tables by their names, each read from the disk when it is asked for.

    It is a mapping: `answers["name"]` is an `Answer`, and tables that failed are not in it.

    Parameters
    ----------
    folder
        The folder that `discover_many` wrote to.
    names
        The tables to look for in it.

    Examples
    --------
    >>> from causal_arrow import discover_many, load_example
    >>> hospital = load_example("hospital")
    >>> north = hospital[hospital["ward"] == "north"].drop(columns="ward")
    >>> tables = {"north": north, "empty": hospital[:0]}
    >>> answers = discover_many(tables, "by-ward", jobs=1, progress=False)
    >>> list(answers)
    ['north']
    """

    def __init__(self, folder: Path, names: Sequence[str]) -> None:
        self.folder = folder
        self._names = tuple(names)
        latest = ManyFolder(folder).latest()
        self._records = {name: latest[name] for name in names if name in latest}

    @property
    def failed(self) -> dict[str, str]:
        """Why tables have no answer.

        Returns
        -------
        dict of str
            One sentence per table that failed, by its name.

        Examples
        --------
        >>> list(answers.failed)
        ['empty']
        """
        return {name: record["error"] for name, record in self._records.items() if record["status"] != OK}

    @property
    def frame(self) -> pd.DataFrame:
        """A summary: one row per table.

        Returns
        -------
        DataFrame
            Status, size, number of edges, seconds, and why a table failed; the index is the name of the table.

        Examples
        --------
        >>> answers.frame["status"].to_dict()
        {'north': 'ok', 'empty': 'failed'}
        """
        import pandas as pd

        from causal_arrow.discovery.many.folder import SUMMARY_COLUMNS

        rows = [{column: record.get(column) for column in SUMMARY_COLUMNS} for record in self._records.values()]
        return pd.DataFrame(rows, columns=list(SUMMARY_COLUMNS)).set_index("table")

    def __getitem__(self, name: str) -> Answer:
        record = self._records.get(name)
        if record is None or record["status"] != OK:
            raise KeyError(self._missing(name, record))
        import json

        return Answer.from_dict(json.loads(ManyFolder(self.folder).answer_file(name).read_text(encoding="utf-8")))

    def _missing(self, name: str, record: Record | None) -> str:
        if record is not None:
            return f"The table {name!r} has no answer: {record['error']}"
        near = closest(str(name), self._names)
        hint = f"the tables are {listed(self._names)}" if near is None else f"did you mean {near!r}"
        return f"There is no table {name!r}: {hint}"

    def __iter__(self) -> Iterator[str]:
        return (name for name, record in self._records.items() if record["status"] == OK)

    def __len__(self) -> int:
        return sum(record["status"] == OK for record in self._records.values())

    def __repr__(self) -> str:
        return f"ManyAnswers({len(self)} of {len(self._names)} tables, in '{self.folder}')"


def discover_many(
    tables: Any,
    output: str | os.PathLike[str],
    settings: Settings | None = None,
    *,
    backend: str = "loky",
    jobs: int | None = None,
    cluster: str | None = None,
    retry: bool = False,
    progress: bool | None = None,
    **reading: Any,
) -> ManyAnswers:
    """The causal graphs of many tables.

    Tables that are finished are not done again: a table counts as finished if its content, its settings and the version
    of the package are the same. Stopped at any time, the same call continues where it was.

    Parameters
    ----------
    tables
        A folder with tables; a manifest, a CSV or JSON file with a field `table` and, if some tables need them,
        settings of their own; a list of files and folders; or a mapping of names to whatever `read_table` takes.
    output
        The folder for answers, records and the summary.
    settings
        Of all tables, as for `discover`; a manifest may override them.
    backend
        Where the work goes: "loky", processes of this machine; "ray" or "dask", the workers of a cluster.
    jobs
        How many processes; by default as many as there are cores and as fit into memory.
    cluster
        The address of a Ray or Dask cluster; by default one is started on this machine.
    retry
        Also do again what failed before.
    progress
        Whether to show a bar on standard error; by default only on a terminal.
    **reading
        Options of `read_table`, for all tables; `missing`, `kinds` and `ordered` overrule those of the settings.

    Returns
    -------
    ManyAnswers
        The answers by the names of the tables, and why some have none.

    Examples
    --------
    >>> from causal_arrow import discover_many, load_example
    >>> tables = {"patients": load_example("hospital")}
    >>> answers = discover_many(tables, "answers", jobs=1, progress=False)
    >>> answers["patients"].observations
    800
    """
    from causal_arrow.discovery.progress import progress_of, silence

    asked = prepare_many(tables, output, settings, backend=backend, jobs=jobs, cluster=cluster, retry=retry, **reading)
    with progress_of(len(asked.to_do), bar=True) if is_watched(progress) else silence() as shown:
        asked.run(lambda record: shown.advance(words(record)))
    return ManyAnswers(asked.folder.path, asked.names)


def words(record: Record) -> str:
    """What to say of a table that was just finished."""
    return f"{record['table']} {record['seconds']:.2f} s" if record["status"] == OK else f"{record['table']} failed"


def prepare_many(
    tables: Any,
    output: str | os.PathLike[str],
    settings: Settings | None = None,
    *,
    backend: str = "loky",
    jobs: int | None = None,
    cluster: str | None = None,
    retry: bool = False,
    surface: str = "python",
    **reading: Any,
) -> ManyWork:
    """All that `discover_many` does before the work starts: whatever can be said to be wrong by then, is said here."""
    settings, reading = with_reading(settings or Settings(), reading)
    if isinstance(settings.model, ArrowModel):
        raise ConfigurationError("Expected the name or path of a model, got a model itself: save it first.")
    if jobs is not None:
        check_count("jobs", jobs)
    check_backend(backend, cluster)
    if not isinstance(output, str | os.PathLike) or not str(output):
        raise ConfigurationError(f"Expected the path of a folder for output, got {output!r}.")
    if Path(settings.model).exists():  # workers may run elsewhere
        settings = replace(settings, model=str(Path(settings.model).absolute()))
    folder = ManyFolder(Path(output).expanduser().absolute())
    folder.check()
    tasks = plan.tasks_of(named_tables(tables, settings, reading))
    latest = folder.latest() if folder.path.is_dir() else {}
    to_do = plan.remaining(tasks, latest, retry)
    if to_do and backend == "loky":
        jobs = plan.jobs_that_fit(to_do, jobs, storage.free_memory())
    folder.make()
    return ManyWork(folder, tuple(task.table.name for task in tasks), to_do, backend, jobs, cluster, surface)


@dataclass(frozen=True, eq=False)
class ManyWork:
    """What is still to do for a folder of answers, and who does it."""

    folder: ManyFolder
    names: tuple[str, ...]
    to_do: Sequence[plan.Task]
    backend: str
    jobs: int | None
    cluster: str | None
    surface: str

    def run(self, heard: Heard) -> None:
        """Do it. `heard` is told of every record, in a thread of its own."""
        with self.folder.claimed():
            try:
                if self.to_do:
                    device = self.to_do[0].table.settings.device
                    with started(self.backend, self.jobs, self.cluster, device) as workers:
                        _Run(self, heard).go(workers)
            finally:
                self.folder.write_summary(self.names)

    def counts(self) -> Counter[str]:
        """How many of the tables have ended in each way."""
        latest = self.folder.latest()
        return Counter(latest[name]["status"] for name in self.names if name in latest)


class _Run:
    """The work under way: groups go to workers, and again to others if workers die."""

    def __init__(self, work: ManyWork, heard: Heard) -> None:
        self.work, self.heard = work, heard
        self.name = uuid.uuid4().hex[:12]
        self.deaths: Counter[str] = Counter()

    def go(self, workers: Workers) -> None:
        waiting = list(self.work.to_do)
        fruitless = 0
        with self._progress():
            while waiting:
                others = [task for task in waiting if not self.deaths[task.table.name]]
                if others:
                    broken = self._attempt(plan.groups_of(others, workers.count), workers)
                else:  # whoever may have killed a worker goes alone, while nothing else is under way
                    broken = self._attempt([[task] for task in waiting], workers, at_once=1)
                done = self._finished()
                left = [task for task in waiting if task.table.name not in done]
                if broken is None and not others and left:
                    raise ConfigurationError(f"The workers left {len(left)} of {len(waiting)} tables undone.")
                fruitless = fruitless + 1 if len(left) == len(waiting) else 0
                waiting = [task for task in left if self.deaths[task.table.name] < MOST_DEATHS]
                for task in left:
                    if task not in waiting:
                        self._give_up(task)
                if fruitless >= MOST_FRUITLESS and broken is not None:
                    raise ConfigurationError(
                        f"The workers of the backend {self.work.backend} keep failing: {reason(broken)}. What is "
                        "finished is kept."
                    )

    def _attempt(
        self, groups: Sequence[Sequence[plan.Task]], workers: Workers, at_once: int | None = None
    ) -> Exception | None:
        """Send the groups to the workers: None when all came to their end, else what broke."""
        jobs = {uuid.uuid4().hex: group for group in groups}
        try:
            results = workers.attempt((self._job(name, group) for name, group in jobs.items()), at_once)
        except ArrowError:
            raise
        except Exception as error:  # each kind of worker dies in its own way
            interrupted = [name for name in jobs if self.work.folder.was_interrupted(name)]
            done = self._finished()
            for name in interrupted:
                self.deaths.update(task.table.name for task in jobs[name] if task.table.name not in done)
                self.work.folder.end(name)
            return error
        for result in results:
            if result["status"] != "ok":
                raise ConfigurationError(result["error"])
        return None

    def _job(self, name: str, group: Sequence[plan.Task]) -> dict[str, Any]:
        return {
            "kind": "discover-group",
            "output": str(self.work.folder.path),
            "run": self.name,
            "group": name,
            "surface": self.work.surface,
            "tables": [task.to_job() for task in group],
        }

    def _finished(self) -> set[str]:
        return {record["table"] for record in self.work.folder.records() if record.get("run") == self.name}

    def _give_up(self, task: plan.Task) -> None:
        self.work.folder.write(
            {
                "table": task.table.name,
                "source": task.table.source if isinstance(task.table.source, str) else None,
                "identity": task.identity,
                "run": self.name,
                "seconds": 0.0,
                "worker": None,
                "finished": time.time(),
                "status": DIED,
                "error": "The process that read this table died, and again when it read nothing else: the table "
                "probably needs more memory than there is.",
            }
        )

    @contextlib.contextmanager
    def _progress(self) -> Iterator[None]:
        """Tell of records as they appear on the disk, whichever process writes them."""
        told: set[int] = set()
        ended = threading.Event()
        seen = ManyFolder(self.work.folder.path)

        def look() -> None:
            for place, record in enumerate(seen.records()):
                if place not in told:
                    told.add(place)
                    if record.get("run") == self.name:
                        self.heard(record)

        def watch() -> None:
            while not ended.wait(SECONDS_BETWEEN_LOOKS):
                look()

        look()
        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            ended.set()
            watcher.join()
            look()
