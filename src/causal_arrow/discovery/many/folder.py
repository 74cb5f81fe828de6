"""The folder that the answers of many tables go to. Every process that works on them writes here by itself.

    answers/NAME.json     the answer for each table, as `discover` writes it
    records/*.jsonl       a line for each table that was finished; each process has a file of its own
    summary.csv           all tables in one list, written when the work ends
    .causal-arrow-work/   what is under way: unfinished files, and a mark for each group of tables that was begun

A table is finished when its record is there, and its answer is there before its record. Files appear whole: they are
written in the hidden folder first. A process that is killed leaves at most a line without its end, which nobody reads.
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
from typing import Any

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

from causal_arrow.discovery.answer import Answer
from causal_arrow.errors import ConfigurationError
from causal_arrow.network.checkpoint import replace_file
from causal_arrow.text import visible

ANSWERS, RECORDS, WORK, SUMMARY = "answers", "records", ".causal-arrow-work", "summary.csv"
SUMMARY_COLUMNS = ("table", "status", "observations", "variables", "edges", "seconds", "error", "source")

Record = Mapping[str, Any]
"""Of one table: table (its name), source, identity, status, error, observations, variables, edges, seconds, worker."""

OK, FAILED, DIED = "ok", "failed", "died"
"""A table has its answer; has none, for a reason that will not go away by itself; or the process that read it died."""


class ManyFolder:
    """The folder, as one process sees it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._offsets: dict[str, int] = {}
        self._records: list[Record] = []
        self._mine: Path | None = None
        self._alone = threading.RLock()  # the workers of some clusters are threads

    # Making it

    def check(self) -> None:
        """ConfigurationError where no folder can be made."""
        try:
            existing = next(place for place in (self.path, *self.path.absolute().parents) if place.exists())
            if not existing.is_dir():
                raise ConfigurationError(f"'{existing}' is a file: name a folder for the output.")
        except OSError as error:
            raise self._cannot_write(error) from error
        if not os.access(existing, os.W_OK):
            raise ConfigurationError(f"Cannot write to '{existing}': Permission denied.")

    def make(self) -> None:
        """Make the folder; ConfigurationError if that cannot be."""
        self.check()
        try:
            for name in (ANSWERS, RECORDS, WORK):
                (self.path / name).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._cannot_write(error) from error

    def _cannot_write(self, error: OSError) -> ConfigurationError:
        return ConfigurationError(f"Cannot write to '{self.path}': {error.strerror or error}.")

    @contextlib.contextmanager
    def claimed(self) -> Iterator[None]:
        """Keep other runs out of the folder, until this one ends however it ends; clear what a killed one left."""
        with self._file(WORK, "claim").open("w") as file:
            if fcntl is not None:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError as error:
                    raise ConfigurationError(
                        f"Another run is writing to '{self.path}': wait until it ends, or name another folder."
                    ) from error
                except OSError:  # a file system without locks
                    pass
            for left in (self.path / WORK).iterdir():
                if left.name != "claim":
                    left.unlink(missing_ok=True)
            yield

    def check_shared(self) -> None:
        """ConfigurationError where a worker on another machine does not see the folder."""
        if not (self.path / WORK / "claim").exists():
            raise ConfigurationError(
                f"The workers do not see the folder '{self.path}': name one on a disk that all machines share."
            )

    def _file(self, *parts: str) -> Path:
        return self.path.joinpath(*parts)

    # Records

    def records(self) -> Sequence[Record]:
        """All records there are, the older ones of each process first; only what is new is read from the disk."""
        with self._alone:
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
        """The record of each table that counts: the one that was finished last."""
        return {record["table"]: record for record in sorted(self.records(), key=lambda record: record["finished"])}

    def write(self, record: Record, answer: Answer | None = None) -> None:
        """Write an answer and then its record; both are on the disk when this returns."""
        if answer is not None:
            text = json.dumps(answer.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
            part = self._file(WORK, f"{uuid.uuid4().hex}.part")
            replace_file(self.answer_file(record["table"]), text.encode("utf-8", "backslashreplace"), part)
        with self._alone:
            if self._mine is None:
                self._mine = self._file(RECORDS, f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}.jsonl")
            self._append(self._mine, record)

    def _append(self, path: Path, record: Record) -> None:
        with path.open("ab") as file:
            file.write(json.dumps(record).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def answer_file(self, name: str) -> Path:
        """Where the answer of a table is, once it is there."""
        return self._file(ANSWERS, f"{name}.json")

    def write_summary(self, names: Iterable[str]) -> None:
        """One line per table, in this order."""
        latest = self.latest()
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(SUMMARY_COLUMNS)
        for name in names:
            record = latest.get(name, {"table": name, "status": "not done"})
            cells = (record.get(column) for column in SUMMARY_COLUMNS)
            writer.writerow(["" if cell is None else visible(str(cell)) for cell in cells])
        content = text.getvalue().encode("utf-8", "backslashreplace")
        replace_file(self._file(SUMMARY), content, self._file(WORK, "summary.part"))

    # Marks of groups of tables that are under way

    def begin(self, group: str) -> None:
        """Mark a group of tables as begun."""
        self._file(WORK, f"{group}.begun").touch()

    def end(self, group: str) -> None:
        """Take the mark away."""
        self._file(WORK, f"{group}.begun").unlink(missing_ok=True)

    def was_interrupted(self, group: str) -> bool:
        """Whether a group was begun and did not come to its end."""
        return self._file(WORK, f"{group}.begun").exists()


def _parsed(line: bytes) -> Record | None:
    """The record of a line; None for a line that is damaged, whose table will be done again."""
    try:
        record = json.loads(line)
    except ValueError:
        return None
    complete = isinstance(record, dict) and {"table", "identity", "status", "finished"} <= set(record)
    return record if complete else None
