"""The folder that the answers of many tables go to: `ManyFolder` writes it, `ManyAnswers` reads it.

    answers/NAME.json     the answer for each table, as `discover` writes it
    records/*.jsonl       one line per finished table; each process has its own file
    summary.csv           one line per table, written when the work ends
    .causal-arrow-work/   the claim of the run, unfinished files, and a mark for each group of tables under way

A table is finished when its record is written, and its answer is written before. Files appear whole. A killed process
leaves at most a line without an end, which is ignored, and files in the hidden folder, which the next run removes.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import socket
import threading
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from causal_arrow.discovery.answer import Answer
from causal_arrow.errors import ConfigurationError
from causal_arrow.inputs import parse_json
from causal_arrow.output import cannot_write, check_folder, claimed, replace_file
from causal_arrow.text import closest, listed, visible

if TYPE_CHECKING:
    import pandas as pd

ANSWERS, RECORDS, WORK, SUMMARY = "answers", "records", ".causal-arrow-work", "summary.csv"
SUMMARY_COLUMNS = ("table", "status", "observations", "variables", "edges", "seconds", "error", "source")

Record = Mapping[str, Any]
"""The record of one table: SUMMARY_COLUMNS, and `identity`, `run`, `worker` and the time when it was `finished`."""

OK, FAILED, DIED = "ok", "failed", "died"
"""The table has an answer; it has none for a reason that will persist; or the process that read it died."""


class ManyFolder:
    """The folder as one process sees it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._claim = path / WORK / "claim"
        self._mine = path / RECORDS / f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}.jsonl"
        self._offsets: dict[str, int] = {}
        self._records: list[Record] = []
        self._lock = threading.RLock()  # the workers of some clusters are threads

    def make(self) -> None:
        """Make the folder; ConfigurationError if that is impossible."""
        check_folder(self.path)
        try:
            for name in (ANSWERS, RECORDS, WORK):
                (self.path / name).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise cannot_write(self.path, error) from error

    @contextlib.contextmanager
    def claimed(self) -> Iterator[None]:
        """Keep other runs out of the folder until this one ends, however it ends; remove what a killed run left."""
        with contextlib.ExitStack() as claim:
            self._claim.touch()
            try:
                claim.enter_context(claimed(self._claim))
            except BlockingIOError as error:
                raise ConfigurationError(
                    f"Another run is writing to '{self.path}': wait until it ends, or name another folder."
                ) from error
            for left in (self.path / WORK).iterdir():
                if left != self._claim:
                    left.unlink(missing_ok=True)
            yield

    def check_shared(self) -> None:
        """Raise ConfigurationError if this process, perhaps on another machine, does not see the folder."""
        if not self._claim.exists():
            raise ConfigurationError(
                f"The workers do not see the folder '{self.path}': name one on a disk that all machines share."
            )

    # Records

    def records(self) -> Sequence[Record]:
        """All records so far, in the order in which this process first saw them. Only new lines are read."""
        with self._lock:
            for file in sorted((self.path / RECORDS).glob("*.jsonl")):
                start = self._offsets.get(file.name, 0)
                if file.stat().st_size == start:
                    continue
                with file.open("rb") as lines:
                    lines.seek(start)
                    whole = lines.read().rpartition(b"\n")[0]
                if whole:
                    self._offsets[file.name] = start + len(whole) + 1
                    self._records += [record for line in whole.split(b"\n") if (record := _parsed(line)) is not None]
            return tuple(self._records)

    def latest(self) -> dict[str, Record]:
        """The record of each table that counts: the one finished last."""
        return {record["table"]: record for record in sorted(self.records(), key=lambda record: record["finished"])}

    def write(self, record: Record, answer: Answer | None = None) -> None:
        """Write an answer and then its record; both are on the disk when this returns."""
        if answer is not None:
            text = json.dumps(answer.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
            self._replace(self.answer_file(record["table"]), text)
        with self._lock, self._mine.open("ab") as file:
            file.write(json.dumps(record).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def answer_file(self, name: str) -> Path:
        """Path of the answer for a table."""
        return self.path / ANSWERS / f"{name}.json"

    def write_summary(self, names: Iterable[str]) -> None:
        """Write one line per table, in this order."""
        latest = self.latest()
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, SUMMARY_COLUMNS, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        for name in names:
            record = latest.get(name, {"table": name, "status": "not done"})
            writer.writerow({key: visible(str(cell)) for key, cell in record.items() if cell is not None})
        self._replace(self.path / SUMMARY, text.getvalue())

    def _replace(self, file: Path, text: str) -> None:
        part = self.path / WORK / f"{uuid.uuid4().hex}.part"
        replace_file(file, text.encode("utf-8", "backslashreplace"), part)

    # Marks of groups of tables under way

    @contextlib.contextmanager
    def under_way(self, group: str) -> Iterator[None]:
        """Mark a group of tables while its process lives and works on it."""
        mark = self.path / WORK / f"{group}.begun"
        mark.touch()
        yield
        mark.unlink(missing_ok=True)

    def was_interrupted(self, group: str) -> bool:
        """Whether the mark of a group is left, which this removes."""
        mark = self.path / WORK / f"{group}.begun"
        with contextlib.suppress(FileNotFoundError):
            mark.unlink()
            return True
        return False


def _parsed(line: bytes) -> Record | None:
    """The record on a line; None for a damaged line, whose table will be done again."""
    with contextlib.suppress(ValueError):
        record = json.loads(line)
        if isinstance(record, dict) and {"table", "identity", "status", "finished"} <= set(record):
            return record
    return None


class ManyAnswers(Mapping[str, Answer]):
    """The answers for many tables by name, each read from the disk when it is asked for.

    A mapping from the folder that `discover_many` wrote to: `answers["name"]` is an `Answer`. Tables that failed are
    not in it.

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
        """Why tables have no answer: one sentence per table, by name."""
        return {name: record["error"] for name, record in self._records.items() if record["status"] != OK}

    @property
    def frame(self) -> pd.DataFrame:
        """A summary with one row per table: status, size, number of edges, seconds, and why a table failed."""
        import pandas as pd

        rows = [{column: record.get(column) for column in SUMMARY_COLUMNS} for record in self._records.values()]
        return pd.DataFrame(rows, columns=list(SUMMARY_COLUMNS)).set_index("table")

    def __getitem__(self, name: str) -> Answer:
        record = self._records.get(name)
        if record is not None and record["status"] == OK:
            return Answer.from_dict(parse_json(ManyFolder(self.folder).answer_file(name).read_bytes()))
        if record is not None:
            raise KeyError(f"The table {name!r} has no answer: {record['error']}")
        near = closest(str(name), self._names)
        hint = f"the tables are {listed(self._names)}" if near is None else f"did you mean {near!r}"
        raise KeyError(f"There is no table {name!r}: {hint}")

    def __iter__(self) -> Iterator[str]:
        return (name for name, record in self._records.items() if record["status"] == OK)

    def __len__(self) -> int:
        return sum(record["status"] == OK for record in self._records.values())

    def __repr__(self) -> str:
        return f"ManyAnswers({len(self)} of {len(self._names)} tables, in '{self.folder}')"
