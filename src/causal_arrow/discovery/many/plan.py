"""What there is to do: which tables are not answered yet, in which groups to answer them, and the memory it takes."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib

from causal_arrow._version import __version__
from causal_arrow.discovery.inference import ready_model, tables_per_pass
from causal_arrow.discovery.many.folder import DIED, FAILED, Record
from causal_arrow.discovery.many.tables import NamedTable
from causal_arrow.discovery.many.work import content_of
from causal_arrow.discovery.workload import workload
from causal_arrow.errors import ConfigurationError, Remedy
from causal_arrow.network.checkpoint import find_model
from causal_arrow.network.devices import resolve_device
from causal_arrow.storage import in_words
from causal_arrow.text import counted

MOST_TOGETHER = 64
"""Tables of a group: more would make it long until the next sign of progress."""
UNKNOWN_TOGETHER = 8
"""Of a group whose shape nobody knows before the tables are read."""
GROUPS_PER_WORKER = 3
"""At least, so that no worker waits long for the last one."""
FEW_CELLS = 500_000
"""So little work is done before other processes have started."""
WORKER_BYTES = 500 * 2**20
"""What a process takes that has loaded torch and a network. Measured."""
COPIES = 6
"""Of a table in double precision while it is read, arranged and measured."""

INERT = ("device", "observations_per_chunk")
"""Settings that change no answer."""

Shape = tuple[int, int]


@dataclass(frozen=True, eq=False)
class Task:
    """A table, what identifies its answer, and its shape as far as it can be told without reading it."""

    table: NamedTable
    content: str
    identity: str
    shape: Shape | None

    def to_job(self) -> dict[str, Any]:
        """The table as a part of a job."""
        return {
            "name": self.table.name,
            "table": self.table.source,
            "content": self.content,
            "identity": self.identity,
            "settings": self.table.settings.to_dict(),
            "reading": dict(self.table.reading),
        }


def tasks_of(tables: Sequence[NamedTable]) -> list[Task]:
    """The tables with their identities. Every file is read once for that."""
    models = {str(table.settings.model): _content_of_model(table.settings.model) for table in tables}
    tasks = []
    for table in tables:
        content = content_of(table.source)
        settings = {key: value for key, value in table.settings.to_dict().items() if key not in INERT}
        settings["model"] = models[str(table.settings.model)]
        everything = [__version__, content, settings, {key: table.reading[key] for key in sorted(table.reading)}]
        text = json.dumps(everything, sort_keys=True, default=joblib.hash)
        identity = hashlib.sha256(text.encode()).hexdigest()[:32]
        tasks.append(Task(table, content, identity, _shape_of(table.source)))
    return tasks


def _content_of_model(model: Any) -> str:
    path = find_model(model)
    files = sorted(file for file in path.iterdir() if file.is_file()) if path.is_dir() else [path]
    return hashlib.sha256(" ".join(content_of(file) for file in files).encode()).hexdigest()


def _shape_of(source: Any) -> Shape | None:
    """Observations and columns of a table, about; None where that takes as long as reading it."""
    if not isinstance(source, str):
        shape = getattr(source, "shape", None)
        return (int(shape[0]), int(shape[1])) if isinstance(shape, tuple) and len(shape) == 2 else None
    path = Path(source)
    ending = path.suffix.lower()
    try:
        if ending == ".parquet":
            from pyarrow import parquet

            facts = parquet.read_metadata(path)
            return int(facts.num_rows), int(facts.num_columns)
        if ending in (".csv", ".tsv", ".txt"):
            with path.open("rb") as file:
                header = file.readline(2**20)
                lines = sum(piece.count(b"\n") for piece in iter(lambda: file.read(2**20), b""))
            return lines, 1 + max(header.count(sign) for sign in (b",", b";", b"\t", b"|"))
    except Exception:  # no pyarrow, or no Parquet: whoever reads the table says so in a sentence
        return None
    return None


def remaining(tasks: Sequence[Task], latest: Mapping[str, Record], retry: bool) -> list[Task]:
    """The tasks without a record of their content and settings; with `retry`, also those that failed."""
    again = {DIED, FAILED} if retry else {DIED}

    def is_done(task: Task) -> bool:
        record = latest.get(task.table.name)
        return record is not None and record["identity"] == task.identity and record["status"] not in again

    return [task for task in tasks if not is_done(task)]


def groups_of(tasks: Sequence[Task], workers: int) -> list[list[Task]]:
    """The tasks in groups for one process each, those of one shape together, the most work first."""
    by_shape: dict[tuple[object, ...], list[Task]] = {}
    for task in tasks:
        by_shape.setdefault((task.shape, str(task.table.settings.model)), []).append(task)
    fair = len(tasks) if workers == 1 else max(1, math.ceil(len(tasks) / (GROUPS_PER_WORKER * workers)))
    groups = []
    for alike in by_shape.values():
        shape = alike[0].shape
        most = UNKNOWN_TOGETHER
        if shape is not None:
            settings = alike[0].table.settings
            most = min(tables_per_pass(ready_model(settings.model, settings.device), *_at_least(shape)), MOST_TOGETHER)
        most = min(most, fair)
        groups += [alike[start : start + most] for start in range(0, len(alike), most)]
    return sorted(groups, key=lambda group: -sum(_cells(task) for task in group))


def _at_least(shape: Shape) -> Shape:
    return max(shape[0], 1), max(shape[1], 1)


def _cells(task: Task) -> int:
    return 0 if task.shape is None else task.shape[0] * task.shape[1]


# Memory


def jobs_that_fit(tasks: Sequence[Task], jobs: int | None, free: int | None) -> int:
    """How many processes of this machine share the work: as many as it has cores and memory, or as the caller says.

    ConfigurationError with the estimate if they do not fit into `free` bytes.
    """
    alike = Counter((task.shape, task.table.settings.model) for task in tasks)

    def together(task: Task) -> int:
        return bytes_for(task, min(alike[task.shape, task.table.settings.model], MOST_TOGETHER))

    largest = max(tasks, key=together)
    need = WORKER_BYTES + together(largest)
    if jobs is None:
        few = sum(_cells(task) for task in tasks) <= FEW_CELLS and all(task.shape for task in tasks)
        on_gpu = any(resolve_device(task.table.settings.device).type == "cuda" for task in tasks[:1])
        most = 1 if few or on_gpu else min(joblib.cpu_count(), len(tasks))
        fitting = most if free is None else min(most, free // need)
    else:
        most = fitting = min(jobs, len(tasks)) if free is None or min(jobs, len(tasks)) * need <= free else 0
    if fitting:
        return max(1, fitting)
    assert free is not None
    rows, columns = largest.shape or (0, 0)
    estimate = (
        f"The largest table, {largest.table.name!r} with about {counted(rows, 'observation')} of "
        f"{counted(columns, 'variable')}, takes about {in_words(need)} of memory"
    )
    if jobs is not None and jobs > 1 and need <= free:
        raise ConfigurationError(
            f"{estimate} in each of {jobs} processes, and {in_words(free)} are free.",
            [Remedy("jobs", setting=str(free // need))],
        )
    raise ConfigurationError(f"{estimate}, and {in_words(free)} are free: leave it out, or use fewer of its columns.")


def bytes_for(task: Task, alike: int = 1) -> int:
    """Memory that the answers for so many tables of this shape take beside what every process takes.

    0 if the shape is not known.
    """
    if task.shape is None:
        return 0
    network = ready_model(task.table.settings.model, task.table.settings.device)
    observations, variables = _at_least(task.shape)
    tables = min(tables_per_pass(network, observations, variables), alike)
    read = workload(network, observations, variables, None).memory
    return tables * read + COPIES * 8 * alike * observations * variables
