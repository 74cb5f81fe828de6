"""Records from wherever they lie: a folder, a file of JSON lines, a packed file."""

from __future__ import annotations

from pathlib import Path

from causal_arrow.benchmarks.packed import read_packed
from causal_arrow.benchmarks.records import RECORDS_FILE, Record, read_lines
from causal_arrow.errors import BenchmarkError


def read_records(path: Path) -> list[Record]:
    """The records of a folder (records.jsonl and all packed files) or of one file, without repetitions.

    Of records of the same work the last one counts: it is a second try.
    """
    if path.is_dir():
        files = [file for file in (path / RECORDS_FILE, *sorted(path.glob("*.jsonl.gz"))) if file.exists()]
    elif path.exists():
        files = [path]
    else:
        raise BenchmarkError(f"There is no {path}: expected a folder with {RECORDS_FILE}, or a file of records.")
    records = [record for file in files for record in (read_packed(file) if file.suffix == ".gz" else read_lines(file))]
    return list({record.identity: record for record in records}.values())
