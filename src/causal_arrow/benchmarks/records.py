"""Records: one for each dataset and method, in a file of JSON lines that only ever grows.

    DIR/records.jsonl       written by `benchmark`, a line at a time, each line whole before the next begins
    anything.jsonl.gz       the same records packed for keeping (`packed.py`)

A process killed while it writes leaves at most one line without its end. Readers leave that line out, and the next
writer cuts it off.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from causal_arrow.errors import BenchmarkError
from causal_arrow.graphs.metrics import Reliability

RECORDS_FILE = "records.jsonl"
RELIABILITIES = ("reliability", "reliability_above_floor", "adjacencies", "directions", "ancestors")
STATUSES = ("ok", "failed", "timeout")


@dataclass(frozen=True)
class Record:
    """What one method did with one dataset, and everything needed to tell what that was."""

    suite: str
    row: str
    index: int
    method: str
    settings: Mapping[str, Any]  # of the method
    versions: Mapping[str, str]  # of the method
    status: str  # one of STATUSES
    error: str | None = None  # one sentence, unless the status is ok
    seconds: float | None = None  # of the method alone; for a timeout, the limit
    measures: Mapping[str, float] = field(default_factory=dict)  # `metrics.evaluate`; nan where one has no meaning
    dataset: Mapping[str, Any] = field(default_factory=dict)  # seed, observations, variables, edges, ...
    reliability: Reliability | None = None  # over all ordered pairs
    reliability_above_floor: Reliability | None = None  # over those with a probability of at least 0.05
    adjacencies: Reliability | None = None  # of pairs, by the probability of an edge in either direction
    directions: Reliability | None = None  # of truly adjacent pairs, by the probability of the favored direction
    ancestors: Reliability | None = None  # of ordered pairs, by the probability of a directed path
    run: Mapping[str, Any] = field(default_factory=dict)  # machine, versions of the rest, time limit
    reading: Mapping[str, str] | None = None  # how the method read categories, holes and experiments; None: as they are

    @property
    def method_identity(self) -> str:
        """Equal for records of the same method with the same settings and versions."""
        return identity_of_method(self.method, self.settings, self.versions)

    @property
    def identity(self) -> tuple[str, str, int, str]:
        """Equal for records of the same work, done once or several times."""
        return self.suite, self.row, self.index, self.method_identity

    def to_json(self) -> str:
        """The record as one line; nan becomes null."""
        content = {key: value for key, value in asdict(self).items() if value is not None}
        content["measures"] = {name: _finite_or_none(value) for name, value in self.measures.items()}
        for name in RELIABILITIES:
            if (table := getattr(self, name)) is not None:
                content[name] = table_to_lists(table)
        return json.dumps(content, allow_nan=False, ensure_ascii=False)

    @classmethod
    def from_json(cls, line: str) -> Record:
        """The record `to_json` wrote."""
        content = json.loads(line)
        measures = {name: math.nan if value is None else value for name, value in content.pop("measures", {}).items()}
        tables: dict[str, Any] = {
            name: table_from_lists(content.pop(name)) for name in RELIABILITIES if name in content
        }
        return cls(**content, measures=measures, **tables)


def identity_of_method(method: str, settings: Mapping[str, Any], versions: Mapping[str, str]) -> str:
    """One string for a method, its settings and its versions."""
    return json.dumps([method, dict(settings), dict(versions)], sort_keys=True)


def table_to_lists(table: Reliability) -> dict[str, list[float]]:
    """A reliability table as JSON can hold it."""
    return {
        "pairs": table.pairs.tolist(),
        "probability_sum": np.round(table.probability_sum, 6).tolist(),
        "edges": table.edges.tolist(),
    }


def table_from_lists(lists: Mapping[str, list[float]]) -> Reliability:
    """The table `table_to_lists` wrote."""
    return Reliability(**{name: np.array(values, dtype=np.float64) for name, values in lists.items()})


class RecordWriter:
    """Appends records to a folder's file, each on the disk before `write` returns."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / RECORDS_FILE
        try:
            folder.mkdir(parents=True, exist_ok=True)
            _cut_torn_line(self.path)
            self._file = self.path.open("a", encoding="utf-8")
        except OSError as error:
            raise BenchmarkError(f"Cannot write to {self.path}: {error.strerror}. Choose another folder.") from error

    def write(self, record: Record) -> None:
        self._file.write(record.to_json() + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()


def read_lines(path: Path) -> Iterator[Record]:
    """The records of a file of JSON lines, without a torn last line."""
    content = path.read_bytes()
    lines = content.split(b"\n")
    for number, line in enumerate(lines[:-1], start=1):  # what follows the last line end is torn, or nothing
        try:
            yield Record.from_json(line.decode())
        except (ValueError, TypeError, AttributeError, KeyError) as error:
            raise BenchmarkError(
                f"Line {number} of {path} is not a benchmark record. If it was damaged, delete it: only its dataset "
                "will be run again."
            ) from error


def _cut_torn_line(path: Path) -> None:
    """Remove what a killed process left after the last line end."""
    if not path.exists():
        return
    with path.open("rb+") as file:
        content = file.read()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            file.truncate(whole)


def _finite_or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None


def count_by_status(records: Iterable[Record]) -> dict[str, int]:
    """How many records ended in each way."""
    counts = dict.fromkeys(STATUSES, 0)
    for record in records:
        counts[record.status] += 1
    return counts
