"""discover_many(): many tables, one after the other or side by side. Finished work is kept.

`plan` names the tables, leaves out those already answered and groups the rest; `workers` answer the groups, and each
writes into the `folder`, where the next run finds it.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from causal_arrow import storage
from causal_arrow.discovery.discovery import Discovery
from causal_arrow.discovery.inference import infer, infer_together
from causal_arrow.discovery.pipeline import ReadyTable, prepare
from causal_arrow.discovery.settings import Settings, check_count
from causal_arrow.errors import ArrowError, ConfigurationError, TableError
from causal_arrow.graphs.graph_distribution import GraphDistribution
from causal_arrow.inputs import checked
from causal_arrow.many import _plan
from causal_arrow.many._plan import NamedTable, named_tables
from causal_arrow.many.folder import DIED, FAILED, OK, ManyAnswers, ManyFolder
from causal_arrow.many.workers import MAX_JOBS, Job, Workers, check_backend, sentence_of, started
from causal_arrow.network import Network
from causal_arrow.output import check_folder
from causal_arrow.progress import Progress, ignore, progress_bar
from causal_arrow.text import reason

MAX_DEATHS = 2  # of the worker of a table, which the second time is the only one under way
MAX_FRUITLESS = 3  # attempts in a row that finish nothing
SECONDS_BETWEEN_LOOKS = 0.3


@checked
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
    **changes: Any,
) -> ManyAnswers:
    """Find the causal graphs of many tables.

    Tables that are finished are not done again: a table counts as finished if its content, its settings and the version
    of the package are the same. If the work is interrupted, the same call continues it.

    Parameters
    ----------
    tables
        A folder with tables; a manifest, a CSV or JSON file with a field `table` and, where tables need them, their
        own settings; a list of files and folders; or a mapping of names to whatever `read_table` takes.
    output
        The folder for answers, records and the summary.
    backend
        Where the work runs: "loky", processes of this machine; "ray" or "dask", the workers of a cluster.
    jobs
        How many processes; by default as many as there are cores and as fit into memory.
    cluster
        The address of a Ray or Dask cluster; by default one is started on this machine.
    retry
        Also repeat what failed before.
    **changes
        Settings and reading options (`ReadOptions`) by name, for all tables; they override those of `settings`, and
        are overridden by those of a manifest.

    Examples
    --------
    >>> from causal_arrow import discover_many, load_example
    >>> tables = {"patients": load_example("hospital")}
    >>> answers = discover_many(tables, "answers", jobs=1, progress=False)
    >>> answers["patients"].observations
    800
    """
    settings = (settings or Settings()).changed(**changes)
    run = ManyRun(tables, output, settings, backend, jobs, cluster, retry=retry)
    with progress_bar(progress, pieces=len(run.to_do)) as show:
        run.go(show)
    return ManyAnswers(run.folder.path, run.names)


class ManyRun:
    """The work for a folder of answers: groups of tables go to workers, and again to others if workers die.

    `changed` counts the tables in `to_do` that have an answer for other content or settings, or of another version.
    """

    def __init__(
        self,
        tables: Any,
        output: str | os.PathLike[str],
        settings: Settings,
        backend: str,
        jobs: int | None,
        cluster: str | None,
        *,
        retry: bool,
        surface: str = "python",
    ) -> None:
        if not isinstance(settings.model, str | Path):
            raise ConfigurationError("Expected the name or path of a model, got a model itself: save it first.")
        if jobs is not None:
            check_count("jobs", jobs, MAX_JOBS)
        check_backend(backend, cluster)
        if not isinstance(output, str | os.PathLike) or not str(output):
            raise ConfigurationError(f"Expected the path of a folder for output, got {output!r}.")
        if Path(settings.model).exists():  # workers may run elsewhere
            settings = replace(settings, model=str(Path(settings.model).absolute()))
        self.folder = ManyFolder(Path(output).expanduser().absolute())
        check_folder(self.folder.path)
        tasks = _plan.tasks_of(named_tables(tables, settings))
        self.names = [task.name for task in tasks]
        latest = self.folder.latest()
        self.to_do = _plan.remaining(tasks, latest, retry)
        self.changed = sum(task.name in latest and latest[task.name]["identity"] != task.identity for task in tasks)
        if self.to_do and backend == "loky":
            jobs = _plan.jobs_that_fit(self.to_do, jobs, storage.free_memory())
        self.backend, self._workers = backend, (backend, jobs, cluster, settings.device)
        self._id = uuid.uuid4().hex[:12]
        self._surface = surface
        self._deaths: Counter[str] = Counter()
        self.folder.make()

    def go(self, progress: Progress = ignore) -> None:
        """Do the work. `progress` is called from another thread, after every table."""
        with self.folder.claimed():
            try:
                if self.to_do:
                    with started(*self._workers) as workers, self._watched(progress):
                        self._finish_all(workers)
            finally:
                self.folder.write_summary(self.names)

    def _finish_all(self, workers: Workers) -> None:
        waiting, fruitless = list(self.to_do), 0
        while waiting:
            if harmless := [task for task in waiting if not self._deaths[task.name]]:
                broken = self._attempt(_plan.groups_of(harmless, workers.count), workers)
            else:  # a table that may have killed a worker goes while nothing else is under way
                broken = self._attempt([[task] for task in waiting], workers, at_once=1)
            done = self._finished()
            left = [task for task in waiting if task.name not in done]
            fruitless = fruitless + 1 if len(left) == len(waiting) else 0
            if broken is None and not harmless and left:
                raise ConfigurationError(f"The workers left {len(left)} of {len(waiting)} tables undone.")
            if broken is not None and fruitless >= MAX_FRUITLESS:
                raise ConfigurationError(
                    f"The workers of the backend {self.backend} keep failing: {reason(broken)}. What is finished is "
                    "kept."
                )
            waiting = [task for task in left if self._deaths[task.name] < MAX_DEATHS]
            for task in left:
                if task not in waiting:
                    self.folder.write(_record(self._id, task, 0.0) | GIVEN_UP)

    def _attempt(
        self, groups: Sequence[Sequence[_plan.Task]], workers: Workers, at_once: int | None = None
    ) -> Exception | None:
        """Send the groups to the workers: None if all came to their end, else what broke."""
        named = {uuid.uuid4().hex: group for group in groups}
        shared = {"output": str(self.folder.path), "run": self._id, "surface": self._surface}
        jobs = ({**shared, "group": name, "tasks": group} for name, group in named.items())
        try:
            results = workers.attempt(answer_group, jobs, at_once)
        except ArrowError:
            raise
        except Exception as error:  # each kind of worker dies in a different way
            done = self._finished()
            for name in filter(self.folder.was_interrupted, named):
                self._deaths.update(task.name for task in named[name] if task.name not in done)
            return error
        if failed := [result["error"] for result in results if result["status"] != "ok"]:
            raise ConfigurationError(failed[0])
        return None

    def _finished(self) -> set[str]:
        return {record["table"] for record in self.folder.records() if record.get("run") == self._id}

    @contextlib.contextmanager
    def _watched(self, progress: Progress) -> Iterator[None]:
        """Report records as they appear on the disk, whichever process writes them."""
        ended = threading.Event()

        def watch() -> None:
            folder, seen, done, last = ManyFolder(self.folder.path), 0, 0, False
            while not last:
                last = ended.wait(SECONDS_BETWEEN_LOOKS)
                records = folder.records()[seen:]
                seen += len(records)
                for record in records:
                    if record.get("run") == self._id:
                        done += 1
                        how = f"{record['seconds']:.2f} s" if record["status"] == OK else "failed"
                        progress(f"{record['table']} {how}", done / len(self.to_do))

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            ended.set()
            watcher.join()


# In the workers


def answer_group(job: Job) -> dict[str, Any]:
    """Answer the tables of a group that are not answered yet, and write each answer down as soon as it is there."""
    folder, run = _folder(job["output"], job["run"]), job["run"]
    folder.check_shared()
    # Another worker may have done it: a cluster runs a group again when its machine is gone.
    done = {(record["table"], record["identity"]) for record in folder.records() if record.get("run") == run}

    def write(task: _plan.Task, result: Discovery | Exception, seconds: float) -> None:
        record = _record(run, task, seconds)
        if isinstance(result, Exception):
            folder.write(record | {"status": FAILED, "error": sentence_of(result, job["surface"])})
            return
        answer = result.answer
        sizes = {"observations": answer.observations, "variables": len(answer.names), "edges": len(answer.edges)}
        folder.write(record | {"status": OK, **sizes}, answer)

    with folder.under_way(job["group"]):
        unchanged = []
        for task in job["tasks"]:
            try:
                if (task.name, task.identity) in done:
                    continue
                if _plan.content_of(task.source) != task.content:
                    raise TableError("The table changed while it was waiting for its turn: run the same command again.")
                unchanged.append(task)
            except ArrowError as error:
                write(task, error, 0.0)
        for outcome in discover_together(unchanged):
            write(unchanged[outcome.index], outcome.result, outcome.seconds)
    return {}


def _record(run: str, task: _plan.Task, seconds: float) -> dict[str, Any]:
    return {
        "table": task.name,
        "source": task.source if isinstance(task.source, str) else None,
        "identity": task.identity,
        "run": run,
        "seconds": round(seconds, 4),
        "worker": f"{socket.gethostname()}-{os.getpid()}",
        "finished": time.time(),
    }


GIVEN_UP = {
    "worker": None,
    "status": DIED,
    "error": "The process that read this table died, and again when it read nothing else: the table probably needs "
    "more memory than there is.",
}


@lru_cache(maxsize=4)
def _folder(path: str, run: str) -> ManyFolder:
    """The folder as this process has seen it so far in this run."""
    return ManyFolder(Path(path))


# Tables that share a pass


@dataclass(frozen=True, eq=False)
class Outcome:
    """The result for a table, or the error instead, with the index of the table and its share of the time."""

    index: int
    result: Any
    seconds: float


def discover_together(tables: Sequence[NamedTable]) -> Iterator[Outcome]:
    """The discovery for each table as soon as it is there: the one that `discover` gives, up to rounding."""
    clock = _Clock()
    groups: dict[tuple[int, int | None], dict[int, ReadyTable]] = {}  # with one network and one size of chunks
    for index, table in enumerate(tables):
        outcome = clock.outcome(index, partial(prepare, table.source, table.settings))
        if isinstance(ready := outcome.result, Exception):
            yield outcome
        else:
            groups.setdefault((id(ready.network), ready.settings.observations_per_chunk), {})[index] = ready
    for group in groups.values():
        yield from _read(group, clock)


class _Clock:
    """A clock that shares the time among tables."""

    def __init__(self) -> None:
        self.last = time.perf_counter()
        self.seconds: dict[int, float] = defaultdict(float)

    def charge(self, *indices: int) -> None:
        """Share the time since the last call among these tables."""
        now = time.perf_counter()
        for index in indices:
            self.seconds[index] += (now - self.last) / len(indices)
        self.last = now

    def outcome(self, index: int, work: Callable[[], Any]) -> Outcome:
        """The outcome of a piece of work for a table, which also takes the time since the last call."""
        try:
            result = work()
        except Exception as error:
            result = error
        self.charge(index)
        return Outcome(index, result, self.seconds[index])


def _read(group: Mapping[int, ReadyTable], clock: _Clock) -> Iterator[Outcome]:
    """Read the tables of a group together, or one after the other if that fails."""
    first = next(iter(group.values()))
    network, chunk = first.network, first.settings.observations_per_chunk
    ways = [(index, way) for index, table in group.items() for way in range(len(table.ways))]
    found: dict[int, dict[int, GraphDistribution]] = {index: {} for index in group}
    waiting = dict(group)
    try:
        for several in infer_together(network, [group[index].ways[way] for index, way in ways], chunk):
            clock.charge(*(ways[number][0] for number in several))
            for number, distribution in several.items():
                index, way = ways[number]
                found[index][way] = distribution
                if len(found[index]) == len(group[index].ways):
                    in_order = [found[index][each] for each in range(len(found[index]))]
                    yield clock.outcome(index, partial(waiting.pop(index).conclude, in_order))
    except (MemoryError, RuntimeError):  # together they may need more memory than there is
        for index, table in waiting.items():
            yield clock.outcome(index, partial(_alone, table, network, chunk))


def _alone(table: ReadyTable, network: Network, chunk: int | None) -> Discovery:
    return table.conclude([infer(network, values, chunk) for values in table.ways])
