"""Plan the work: which tables have no answer yet, in which groups to answer them, and how many processes fit."""

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
from causal_arrow.discovery.inference import ready_model, tables_per_pass, workload
from causal_arrow.errors import ConfigurationError, Remedy, TableError
from causal_arrow.many.folder import DIED, FAILED, Record
from causal_arrow.many.manifest import NamedTable
from causal_arrow.network.checkpoint import find_model
from causal_arrow.network.protocol import Network
from causal_arrow.storage import in_words
from causal_arrow.text import counted

MAX_GROUP = 64  # tables: with more, progress would be shown too rarely
MAX_UNKNOWN_GROUP = 8  # of tables whose shapes are unknown before they are read
MIN_GROUPS_PER_WORKER = 3  # so that no worker waits long for the last one
FEW_CELLS = 500_000  # less is done before other processes have started
WORKER_BYTES = 200 * 2**20  # of a process that has loaded a network and pandas; 140 measured
COPIES = 6  # of a table in double precision while it is read, arranged and measured
INERT = ("device", "observations_per_chunk")  # settings that change no answer

Shape = tuple[int, int]


@dataclass(frozen=True, eq=False)
class Task(NamedTable):
    """A table with digests of its content and of everything its answer depends on, and its shape if known unread."""

    content: str
    identity: str
    shape: Shape | None

    @property
    def kind(self) -> tuple[Shape | None, Any]:
        """Tables of one kind can share a pass of the network."""
        return self.shape, self.settings.model

    @property
    def cells(self) -> int:
        """Size of the table, 0 if unknown."""
        return math.prod(self.shape or (0,))

    @property
    def network(self) -> Network:
        """The network that reads the table."""
        return ready_model(self.settings.model, self.settings.device, self.settings.precision)

    @property
    def per_pass(self) -> int:
        """How many tables of this shape share a pass."""
        return tables_per_pass(self.network, *self.shape) if self.shape else MAX_UNKNOWN_GROUP


def tasks_of(tables: Sequence[NamedTable]) -> list[Task]:
    """The tables as tasks. Reads every file once for its digest."""
    models = {str(table.settings.model): _content_of_model(table.settings.model) for table in tables}
    tasks = []
    for table in tables:
        content = content_of(table.source)
        settings = {key: value for key, value in table.settings.to_dict().items() if key not in INERT}
        settings["model"] = models[str(table.settings.model)]
        text = json.dumps([__version__, content, settings], sort_keys=True, default=joblib.hash)
        identity = hashlib.sha256(text.encode()).hexdigest()[:32]
        tasks.append(Task(table.name, table.source, table.settings, content, identity, _shape_of(table.source)))
    return tasks


def content_of(source: Any) -> str:
    """Digest of a table, in a file or in memory."""
    if not isinstance(source, str | Path):
        return f"memory-{joblib.hash(source, hash_name='sha1')}"
    digest = hashlib.sha256()
    try:
        with Path(source).open("rb") as file:
            while piece := file.read(2**20):
                digest.update(piece)
    except FileNotFoundError:
        raise TableError(f"There is no file '{source}'.") from None
    except OSError as error:
        raise TableError(f"Cannot open '{source}': {error.strerror or error}.") from error
    return digest.hexdigest()


def _content_of_model(model: Any) -> str:
    path = find_model(model)
    files = sorted(file for file in path.iterdir() if file.is_file()) if path.is_dir() else [path]
    return hashlib.sha256(" ".join(map(content_of, files)).encode()).hexdigest()


def _shape_of(source: Any) -> Shape | None:
    """Rows and columns of a table, roughly and at least 1; None where finding out takes as long as reading it."""
    ending = Path(source).suffix.lower() if isinstance(source, str) else ""
    try:
        if ending == ".parquet":
            from pyarrow import parquet

            facts = parquet.read_metadata(source)
            rows, columns = facts.num_rows, facts.num_columns
        elif ending in (".csv", ".tsv", ".txt"):
            with open(source, "rb") as file:
                header = file.readline(2**20)
                rows = sum(piece.count(b"\n") for piece in iter(lambda: file.read(2**20), b""))
            columns = 1 + max(header.count(sign) for sign in (b",", b";", b"\t", b"|"))
        else:
            rows, columns = source.shape
    except Exception:  # no pyarrow, another format, no shape: reading it will say what is wrong, if anything
        return None
    return max(int(rows), 1), max(int(columns), 1)


def remaining(tasks: Sequence[Task], latest: Mapping[str, Record], retry: bool) -> list[Task]:
    """The tasks without a record for their content and settings; with `retry`, also those that failed."""
    again = {DIED, FAILED} if retry else {DIED}
    done = {(name, record["identity"]) for name, record in latest.items() if record["status"] not in again}
    return [task for task in tasks if (task.name, task.identity) not in done]


def groups_of(tasks: Sequence[Task], workers: int) -> list[list[Task]]:
    """Groups of tasks for one process each, tables of one shape together, the largest groups first."""
    kinds: dict[object, list[Task]] = {}
    for task in tasks:
        kinds.setdefault(task.kind, []).append(task)
    fair = len(tasks) if workers == 1 else max(1, math.ceil(len(tasks) / (MIN_GROUPS_PER_WORKER * workers)))
    groups = []
    for alike in kinds.values():
        size = min(alike[0].per_pass, MAX_GROUP, fair)
        groups += [alike[start : start + size] for start in range(0, len(alike), size)]
    return sorted(groups, key=lambda group: -sum(task.cells for task in group))


# Memory


def jobs_that_fit(tasks: Sequence[Task], jobs: int | None, free: int | None) -> int:
    """How many processes of this machine share the work: one per core if they fit into memory, or `jobs`.

    ConfigurationError with the estimate if they do not fit into `free` bytes.
    """
    alike = Counter(task.kind for task in tasks)
    needs = [WORKER_BYTES + _bytes_for(task, min(alike[task.kind], MAX_GROUP)) for task in tasks]
    need = max(needs)
    if jobs is not None:
        wanted = least = min(jobs, len(tasks))
    else:
        few = sum(task.cells for task in tasks) <= FEW_CELLS and all(task.shape for task in tasks)
        on_gpu = tasks[0].settings.device.startswith("cuda")
        wanted = 1 if few or on_gpu else min(joblib.cpu_count(), len(tasks))
        least = 1
    if free is None or least * need <= free:
        return wanted if free is None else min(wanted, free // need)
    largest = tasks[needs.index(need)]
    rows, columns = largest.shape or (0, 0)
    estimate = (
        f"The largest table, {largest.name!r} with about {counted(rows, 'observation')} of "
        f"{counted(columns, 'variable')}, takes about {in_words(need)} of memory"
    )
    if need <= free:
        raise ConfigurationError(
            f"{estimate} in each of {jobs} processes, and {in_words(free)} are free.",
            [Remedy("jobs", setting=str(free // need))],
        )
    raise ConfigurationError(f"{estimate}, and {in_words(free)} are free: leave it out, or use fewer of its columns.")


def _bytes_for(task: Task, alike: int) -> int:
    """Memory for the answers of so many tables of this shape, besides WORKER_BYTES; 0 if the shape is unknown."""
    if task.shape is None:
        return 0
    together = min(task.per_pass, alike) * workload(task.network, *task.shape, None).memory
    return together + COPIES * 8 * alike * task.cells
