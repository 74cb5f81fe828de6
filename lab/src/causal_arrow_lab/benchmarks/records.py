"""Records: one for each dataset and method, in files of JSON lines or packed for keeping.

    DIR/records.jsonl       written by `benchmark`, which only appends whole lines
    anything.jsonl.gz       the same records packed, small enough to commit

A process that is killed while it writes leaves at most one incomplete line. Readers ignore that line, and the next
writer removes it.

The first line of a packed file is a header with methods, machines and time limits. Every other line is a block, all
datasets of one row of a suite by one method, in columns. Counts are exact, other numbers have four significant digits,
seconds three. Reliability tables are summed over the block; the rest of a dataset follows from suite, row and index.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import math
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from causal_arrow.errors import BenchmarkError, check_choice
from causal_arrow.inputs import checked, parse_json
from causal_arrow.output import claimed_folder, replace_file
from causal_arrow_lab.benchmarks.calibration import Reliability, pool

RECORDS_FILE = "records.jsonl"
RELIABILITIES = ("reliability", "reliability_above_floor", "adjacencies", "directions", "ancestors")
STATUSES = ("ok", "failed", "timeout")

FORMAT = "causal-arrow-benchmark-records"
FORMAT_VERSION = 1
DATASET_COLUMNS = ("observations", "variables", "edges")
DIGITS, DIGITS_OF_SECONDS = 4, 3


@checked
@dataclass(frozen=True)
class Record:
    """The result of one method on one dataset, with all that identifies them."""

    suite: str
    row: str
    index: int
    method: str
    settings: Mapping[str, Any]  # of the method
    versions: Mapping[str, str]  # of the method
    status: str  # one of STATUSES
    error: str | None = None  # one sentence, unless the status is ok
    seconds: float | None = None  # of the method only; for a timeout, the limit
    measures: Mapping[str, float] = field(default_factory=dict)  # `metrics.evaluate`; nan where undefined
    dataset: Mapping[str, Any] = field(default_factory=dict)  # seed, observations, variables, edges, ...
    reliability: Reliability | None = None  # over all ordered pairs
    reliability_above_floor: Reliability | None = None  # over those with a probability of at least 0.05
    adjacencies: Reliability | None = None  # of pairs, by the probability of an edge in either direction
    directions: Reliability | None = None  # of truly adjacent pairs, by the probability of the favored direction
    ancestors: Reliability | None = None  # of ordered pairs, by the probability of a directed path
    run: Mapping[str, Any] = field(default_factory=dict)  # machine, other versions, time limit
    reading: Mapping[str, str] | None = None  # how the method read categories, holes and experiments; None if exactly

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
        measures = self.measures.items()
        content["measures"] = {name: value if math.isfinite(value) else None for name, value in measures}
        for name in RELIABILITIES:
            if (table := getattr(self, name)) is not None:
                content[name] = table.to_lists()
        return json.dumps(content, allow_nan=False, ensure_ascii=False)

    @classmethod
    def from_json(cls, line: str) -> Record:
        """Read a line written by `to_json`."""
        content = parse_json(line)
        check_choice("status", content["status"], STATUSES)
        measures = {
            name: math.nan if value is None else float(value) for name, value in content.pop("measures", {}).items()
        }
        tables: dict[str, Any] = {
            name: Reliability.from_lists(content.pop(name)) for name in RELIABILITIES if name in content
        }
        record = cls(**content, measures=measures, **tables)
        for part in (record.run.get("machine", {}), record.run.get("versions", {})):
            if not isinstance(part, Mapping):
                raise ValueError("the machine or the versions of the run are no mapping")
        for name in DATASET_COLUMNS:
            if not isinstance(record.dataset.get(name, 0), int | float):
                raise ValueError(f"the {name} of the dataset are not a number")
        if not isinstance(record.run.get("timeout", 0), int | float | None):
            raise ValueError("the time limit of the run is not a number")
        return record


def identity_of_method(method: str, settings: Mapping[str, Any], versions: Mapping[str, str]) -> str:
    """One string for a method, its settings and its versions."""
    return json.dumps([method, dict(settings), dict(versions)], sort_keys=True)


# Files of lines


def read_records(path: Path) -> list[Record]:
    """Read the records of a folder (records.jsonl and all packed files) or of one file, without repetitions.

    The last of several records of the same work counts: it is a second try.
    """
    if path.is_dir():
        files = [file for file in (path / RECORDS_FILE, *sorted(path.glob("*.jsonl.gz"))) if file.exists()]
    elif path.exists():
        files = [path]
    else:
        raise BenchmarkError(f"There is no {path}: expected a folder with {RECORDS_FILE}, or a file of records.")
    records = [record for file in files for record in (read_packed(file) if file.suffix == ".gz" else read_lines(file))]
    return list({record.identity: record for record in records}.values())


def read_lines(path: Path) -> Iterator[Record]:
    """Read a file of JSON lines, ignoring an incomplete last line."""
    lines = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines[:-1], start=1):  # after the last line end there is nothing, or half a line
        try:
            yield Record.from_json(line.decode())
        except (ValueError, TypeError, AttributeError, KeyError) as error:
            raise BenchmarkError(
                f"Line {number} of {path} is not a benchmark record. If it was damaged, delete it: only its dataset "
                "will be run again."
            ) from error


class RecordWriter:
    """Appends records to the file of a folder, each on disk before `write` returns."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / RECORDS_FILE
        self._claim = contextlib.ExitStack()
        try:
            self._claim.enter_context(claimed_folder(folder))
            _remove_incomplete_line(self.path)
            self._file = self.path.open("a", encoding="utf-8")
        except OSError as error:
            raise BenchmarkError(f"Cannot write to {self.path}: {error.strerror}. Choose another folder.") from error

    def write(self, record: Record) -> None:
        self._file.write(record.to_json() + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()
        self._claim.close()


def _remove_incomplete_line(path: Path) -> None:
    """Remove what a killed process left after the last line end."""
    if not path.exists():
        return
    with path.open("rb+") as file:
        content = file.read()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            file.truncate(whole)


# Packed files


def write_packed(records: Iterable[Record], path: Path) -> None:
    """Pack records into a file. The same records give the same bytes."""
    blocks: dict[tuple[str, str, int, int], list[Record]] = {}
    methods: dict[str, int] = {}
    runs: dict[str, int] = {}
    method_entries: list[dict[str, Any]] = []
    for record in records:
        method = methods.setdefault(record.method_identity, len(methods))
        run = runs.setdefault(json.dumps(dict(record.run), sort_keys=True), len(runs))
        if method == len(method_entries):
            method_entries.append(
                {"method": record.method, "settings": dict(record.settings), "versions": dict(record.versions)}
            )
        blocks.setdefault((record.suite, record.row, method, run), []).append(record)
    header = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "methods": method_entries,
        "runs": [json.loads(run) for run in runs],
    }
    lines = [json.dumps(header, ensure_ascii=False)]
    for (suite, row, method, run), members in blocks.items():
        block = {"suite": suite, "row": row, "method": method, "run": run, **_columns(members)}
        lines.append(json.dumps(block, ensure_ascii=False, separators=(",", ":")))
    content = "".join(line + "\n" for line in lines).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, gzip.compress(content, 9, mtime=0))


def read_packed(path: Path) -> Iterator[Record]:
    """Read a packed file. The first record of a block carries the reliability table of the whole block."""
    try:
        lines = gzip.decompress(path.read_bytes()).decode().splitlines()
        header = json.loads(lines[0])
    except (OSError, EOFError, ValueError, IndexError, zlib.error) as error:
        raise BenchmarkError(f"{path} is damaged or not a file of packed records ({error}).") from error
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise BenchmarkError(f"{path} is not a file of packed benchmark records.")
    if header["format_version"] > FORMAT_VERSION:
        raise BenchmarkError(f"{path} was written by a newer causal-arrow. Upgrade to read it.")
    for line in lines[1:]:
        yield from _unpack(json.loads(line), header)


def _columns(records: list[Record]) -> dict[str, Any]:
    """A block of records as columns."""
    names = dict.fromkeys(name for record in records for name in record.measures)
    measures = {name: [_rounded(record.measures.get(name), DIGITS) for record in records] for name in names}
    columns: dict[str, Any] = {
        "index": [record.index for record in records],
        "seconds": [_rounded(record.seconds, DIGITS_OF_SECONDS) for record in records],
        "dataset": {name: [record.dataset.get(name) for record in records] for name in DATASET_COLUMNS},
        "measures": {
            name: column if any(value is not None for value in column) else None for name, column in measures.items()
        },
    }
    unfinished = {
        str(number): [record.status, record.error] for number, record in enumerate(records) if record.status != "ok"
    }
    if unfinished:
        columns["unfinished"] = unfinished
    readings = [record.reading for record in records if record.reading is not None]
    if readings:
        columns["reading"] = dict(readings[0])
    for name in RELIABILITIES:
        tables: list[Reliability] = [table for record in records if (table := getattr(record, name)) is not None]
        if tables:
            columns[name] = pool(tables).to_lists()
    return columns


def _unpack(block: dict[str, Any], header: dict[str, Any]) -> Iterator[Record]:
    """The records of a block."""
    unfinished = block.get("unfinished", {})
    tables: dict[str, Any] = {name: Reliability.from_lists(block[name]) for name in RELIABILITIES if name in block}
    for number, index in enumerate(block["index"]):
        status, error = unfinished.get(str(number), ("ok", None))
        measures = {
            name: math.nan if column is None or column[number] is None else column[number]
            for name, column in block["measures"].items()
        }
        yield Record(
            suite=block["suite"],
            row=block["row"],
            index=index,
            **header["methods"][block["method"]],
            status=status,
            error=error,
            seconds=block["seconds"][number],
            measures=measures if status == "ok" else {},
            dataset={name: column[number] for name, column in block["dataset"].items()},
            run=header["runs"][block["run"]],
            reading=block.get("reading"),
            **(tables if number == 0 else {}),
        )


def _rounded(value: float | None, digits: int) -> float | int | None:
    """Round to significant digits, to an integer where possible; None for nan."""
    if value is None or not math.isfinite(value):
        return None
    # Whole numbers are counts, which are exact.
    short = float(value) if value == int(value) else float(f"{value:.{digits}g}")
    return int(short) if short == int(short) else short
