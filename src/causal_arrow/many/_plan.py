"""Plan the work: which tables there are (files, folders, a manifest, or tables in memory), each with its settings;
which of them have no answer yet; in which groups to answer them; and how many processes fit into memory.
"""

from __future__ import annotations

import csv
import hashlib
import json
import math
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib

from causal_arrow._version import __version__
from causal_arrow.discovery.inference import ready_model, tables_per_pass, workload
from causal_arrow.discovery.settings import Settings, as_knowledge
from causal_arrow.errors import ArrowError, ConfigurationError, Remedy, TableError
from causal_arrow.inputs import as_list, parse_json, read_bytes
from causal_arrow.many.folder import DIED, FAILED, Record
from causal_arrow.network import Network
from causal_arrow.network.checkpoint import find_model
from causal_arrow.storage import in_words
from causal_arrow.tables import ENDINGS
from causal_arrow.tables.options import READ_OPTIONS
from causal_arrow.text import closest, counted, listed, reason, shown

MAX_NAME_BYTES = 200  # with room for an ending
MANIFEST_FIELDS = ("table", "name", "decode", "threshold", "knowledge", "scale", *READ_OPTIONS)
MANIFEST_ENDINGS = (".csv", ".json", ".tsv", ".txt")


@dataclass(frozen=True, eq=False)
class NamedTable:
    """A table to answer: its name, the absolute path of its file or the table itself, and how to answer it."""

    name: str
    source: Any
    settings: Settings


Entry = tuple[str, Any, Mapping[str, Any]]  # the name of a table, its source, and the settings in its manifest


def named_tables(tables: Any, settings: Settings) -> list[NamedTable]:
    """The tables that a user named, as `discover_many` takes them."""
    if isinstance(tables, Mapping):
        entries: list[Entry] = [(str(name), _absolute(source), {}) for name, source in tables.items()]
    else:
        paths = _paths(tables)
        if len(paths) == 1 and not paths[0].is_dir():
            entries = _manifest(paths[0])
        else:
            files = [file for path in paths for file in _files(path)]
            entries = [(_name_of(file), str(file), {}) for file in files]
    if not entries:
        raise TableError("Expected one table or more, got none.")
    _check_names(entries)
    return [NamedTable(name, source, _changed(name, changes, settings)) for name, source, changes in entries]


def _absolute(source: Any) -> Any:
    return str(Path(source).expanduser().absolute()) if isinstance(source, str | os.PathLike) else source


def _paths(tables: Any) -> list[Path]:
    if isinstance(tables, str | os.PathLike):
        tables = [tables]
    several = as_list(tables) or []
    if not several or not all(isinstance(one, str | os.PathLike) and str(one) for one in several):
        raise TableError(
            f"Expected a folder, a manifest, a list of files, or a mapping of names to tables, got {shown(tables)}."
        )
    paths = [Path(_absolute(one)) for one in several]
    try:
        missing = [str(path) for path in paths if not path.exists()]
    except (OSError, ValueError) as error:
        raise TableError(f"Cannot open {shown(tables, 200)}: {reason(error)}.") from error
    if missing:
        raise TableError(f"There is no file or folder {listed(missing)}.")
    return paths


def _files(path: Path) -> list[Path]:
    """The file itself, or the tables in a folder, sorted by name."""
    if not path.is_dir():
        if path.suffix.lower() == ".json":
            raise TableError(f"'{path.name}' is a manifest, not a table: pass only the manifest.")
        return [path]
    try:
        inside = sorted(path.iterdir())
    except OSError as error:
        raise TableError(f"Cannot look into '{path}': {error.strerror or error}.") from error
    files = [file for file in inside if file.suffix.lower() in ENDINGS and file.name[0] != "." and file.is_file()]
    if not files:
        raise TableError(f"There is no table in '{path}': expected files whose names end in {', '.join(ENDINGS)}.")
    return files


def _name_of(file: Path) -> str:
    """The name of a file without its ending."""
    return Path(file.stem).stem if file.suffix.lower() == ".gz" else file.stem


def _check_names(entries: Sequence[Entry]) -> None:
    """Raise ConfigurationError unless the names differ and can be names of files."""
    taken: dict[str, tuple[str, str]] = {}
    for name, source, _ in entries:
        if not name.strip(" .") or set(name) & set("/\\\0\n\r") or len(os.fsencode(name)) > MAX_NAME_BYTES:
            raise ConfigurationError(
                f"{shown(name)} cannot be the name of a table: its answer goes to a file of that name, so it may not "
                f"be empty, hold / or \\, or be longer than {MAX_NAME_BYTES} bytes."
            )
        this = name, str(source) if isinstance(source, str) else repr(name)
        # Some systems take Sales.json and sales.json for one file.
        if (first := taken.setdefault(name.casefold(), this)) is not this:
            raise ConfigurationError(
                f"Two tables are called {first[0]!r}, {first[1]} and {this[1]}: rename one of them, or give each a "
                "name in a manifest."
            )


def _changed(name: str, changes: Mapping[str, Any], settings: Settings) -> Settings:
    """The settings for a table: those of its manifest replace those for all tables, and its knowledge is added."""
    try:
        if "knowledge" in changes:
            known = as_knowledge(settings.knowledge) | as_knowledge(changes["knowledge"])
            changes = {**changes, "knowledge": known}
        return settings.changed(**changes)
    except ArrowError as error:
        raise type(error)(f"Table {name!r} of the manifest: {error.message}", error.remedies) from error


# Manifests


def _manifest(path: Path) -> list[Entry]:
    """The tables in a manifest; paths in it are relative to it."""
    if path.suffix.lower() not in MANIFEST_ENDINGS:
        raise TableError(
            "Expected several tables, a folder with tables, or a manifest (CSV or JSON), got the one file "
            f"'{path.name}': `discover` is for one table."
        )
    try:
        rows = _json_rows(path) if path.suffix.lower() == ".json" else _text_rows(path)
    except (OSError, ValueError, csv.Error) as error:
        raise TableError(f"Cannot read the manifest '{path.name}': {reason(error)}.") from error
    if not rows:
        raise TableError(f"The manifest '{path.name}' names no tables.")
    entries: list[Entry] = []
    missing = []
    for number, row in enumerate(rows, start=1):
        if unknown := [key for key in row if key not in MANIFEST_FIELDS]:
            near = closest(str(unknown[0]), MANIFEST_FIELDS)
            hint = f"did you mean {near!r}?" if near else f"expected some of {', '.join(MANIFEST_FIELDS)}."
            raise ConfigurationError(f"The manifest '{path.name}' has an unknown field {shown(unknown[0])}: {hint}")
        changes = {key: value for key, value in row.items() if value is not None}
        if not isinstance(table := changes.pop("table", None), str) or not table:
            raise ConfigurationError(f"Entry {number} of the manifest '{path.name}' names no table: expected its path.")
        if isinstance(changes.get("knowledge"), str):
            changes["knowledge"] = path.parent / changes["knowledge"]
        source = path.parent / Path(table).expanduser()
        if not source.is_file():
            missing.append(table)
        entries.append((str(changes.pop("name", _name_of(source))), str(source), changes))
    if missing:
        are = "is" if len(missing) == 1 else "are"
        raise TableError(
            f"The manifest '{path.name}' names {counted(len(missing), 'file')} that {are} not there: {listed(missing)}."
        )
    return entries


def _json_rows(path: Path) -> list[dict[str, Any]]:
    content = parse_json(read_bytes(path))
    rows = content.get("tables") if isinstance(content, dict) else content
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise TableError(
            f'Expected the manifest \'{path.name}\' to hold a list of objects such as {{"table": "one.csv"}}.'
        )
    return rows


def _text_rows(path: Path) -> list[dict[str, Any]]:
    text = read_bytes(path).decode("utf-8-sig")
    header = text.split("\n", 1)[0]
    delimiter = next((sign for sign in ("\t", ",", ";") if sign in header), ",")
    reader = csv.DictReader(text.splitlines(), delimiter=delimiter, restkey="\0", restval="")
    names = reader.fieldnames = [name.strip() for name in reader.fieldnames or ()]
    if "table" not in names:
        raise ConfigurationError(
            f"'{path.name}' has no column 'table', so it is not a manifest: a manifest has one line per table, with "
            "its path in that column. `discover` is for one table."
        )
    rows = []
    for row in reader:
        if beyond := row.pop("\0", None):  # cells beyond the last column
            count = counted(len(names) + len(beyond), "field")
            raise TableError(
                f"Line {reader.line_num} of the manifest '{path.name}' has {count}, more than the {len(names)} columns."
            )
        where = f"line {reader.line_num} of '{path.name}'"
        if given := {name: cell.strip() for name, cell in row.items() if cell.strip()}:
            rows.append({name: _value(name, cell, where) for name, cell in given.items()})
    return rows


def _value(field: str, cell: str, where: str) -> Any:
    form = READ_OPTIONS[field].form if field in READ_OPTIONS else field
    parse, example = _FORMS.get(form, (str, ""))
    try:
        return parse(cell)
    except (KeyError, ValueError):
        raise ConfigurationError(f"Expected {field} as {example} in {where}, got {shown(cell)}.") from None


def _several(cell: str) -> list[str]:
    return [part.strip() for part in cell.split(";") if part.strip()]


def _pairs(cell: str) -> dict[str, str]:
    pairs = [part.partition("=") for part in _several(cell)]
    if not pairs or not all(name.strip() and value.strip() for name, _, value in pairs):
        raise ValueError
    return {name.strip(): value.strip() for name, _, value in pairs}


def _orders(cell: str) -> dict[str, list[str]]:
    return {name: [level.strip() for level in levels.split(",")] for name, levels in _pairs(cell).items()}


def _yes_or_no(cell: str) -> bool:
    return {"true": True, "yes": True, "false": False, "no": False}[cell.lower()]


_FORMS: dict[str, tuple[Callable[[str], Any], str]] = {
    "threshold": (float, "a number between 0 and 1"),
    "kinds": (_pairs, "zip=category;age=number"),
    "orders": (_orders, "size=small,medium,large"),
    "names": (_several, "one;two"),
    "flag": (_yes_or_no, "true or false"),
}
"""Readers of cells of a manifest in text, by the form of the option, and an example; other cells are text."""


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
        """The number of tables of this shape that share a pass."""
        return tables_per_pass(self.network, *self.shape) if self.shape else MAX_UNKNOWN_GROUP

    def bytes_of(self, alike: int) -> int:
        """Memory of a process that answers so many tables of this shape together."""
        if self.shape is None:
            return WORKER_BYTES
        in_a_pass = min(self.per_pass, alike) * workload(self.network, *self.shape, None).memory
        return WORKER_BYTES + in_a_pass + COPIES * 8 * alike * self.cells


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
    """The number of processes of this machine that share the work: one per core if they fit into memory, or `jobs`.

    ConfigurationError with the estimate if they do not fit into `free` bytes.
    """
    alike = Counter(task.kind for task in tasks)
    needs = [task.bytes_of(min(alike[task.kind], MAX_GROUP)) for task in tasks]
    need = max(needs)
    if jobs is not None:
        wanted = least = min(jobs, len(tasks))
    else:
        few = sum(task.cells for task in tasks) <= FEW_CELLS and all(task.shape for task in tasks)
        on_gpu = tasks[0].settings.device.startswith("cuda")
        wanted, least = 1 if few or on_gpu else min(joblib.cpu_count(), len(tasks)), 1
    if free is None:
        return wanted
    if least * need <= free:
        return min(wanted, free // need)
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
