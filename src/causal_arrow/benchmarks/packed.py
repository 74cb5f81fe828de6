"""Records packed for keeping: a gzip file of JSON lines, small enough to commit.

The first line is a header with what repeats: methods with their settings and versions, machines and time limits. Every
other line is a block, all datasets of one row of a suite by one method, in columns:

    {"suite": ..., "row": ..., "method": 0, "run": 0, "index": [0, 1, ...], "nshd": [...], ...}

Counts are kept as they are, other numbers to four significant digits, seconds to three. Reliability tables are added up
over the block; how the method read the tables is said once. Of a dataset its observations, variables and edges are
kept; the rest follows from suite, row and index.
"""

from __future__ import annotations

import gzip
import json
import math
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from causal_arrow.benchmarks.records import RELIABILITIES, Record, table_from_lists, table_to_lists
from causal_arrow.errors import BenchmarkError
from causal_arrow.graphs.metrics import Reliability, pool

FORMAT = "causal-arrow-benchmark-records"
FORMAT_VERSION = 1
DATASET_COLUMNS = ("observations", "variables", "edges")
DIGITS, DIGITS_OF_SECONDS = 4, 3


def write_packed(records: Iterable[Record], path: Path) -> None:
    """Pack the records into a file. The same records give the same bytes."""
    from causal_arrow.network.checkpoint import replace_file

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
    """The records of a packed file; those of a block share its reliability table through the first of them."""
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
    measures = list(records[0].measures) if records[0].measures else []
    for record in records:
        measures.extend(name for name in record.measures if name not in measures)
    columns: dict[str, Any] = {
        "index": [record.index for record in records],
        "seconds": [_rounded(record.seconds, DIGITS_OF_SECONDS) for record in records],
        "dataset": {name: [record.dataset.get(name) for record in records] for name in DATASET_COLUMNS},
        "measures": {name: [_rounded(record.measures.get(name), DIGITS) for record in records] for name in measures},
    }
    # A column of nothing says no more than its name.
    columns["measures"] = {
        name: column if any(value is not None for value in column) else None
        for name, column in columns["measures"].items()
    }
    unfinished = {
        str(place): [record.status, record.error] for place, record in enumerate(records) if record.status != "ok"
    }
    if unfinished:
        columns["unfinished"] = unfinished
    readings = [record.reading for record in records if record.reading is not None]
    if readings:
        columns["reading"] = dict(readings[0])
    for name in RELIABILITIES:
        tables: list[Reliability] = [table for record in records if (table := getattr(record, name)) is not None]
        if tables:
            columns[name] = table_to_lists(pool(tables))
    return columns


def _unpack(block: dict[str, Any], header: dict[str, Any]) -> Iterator[Record]:
    unfinished = block.get("unfinished", {})
    tables: dict[str, Any] = {name: table_from_lists(block[name]) for name in RELIABILITIES if name in block}
    for place, index in enumerate(block["index"]):
        status, error = unfinished.get(str(place), ("ok", None))
        measures = {
            name: math.nan if column is None or column[place] is None else column[place]
            for name, column in block["measures"].items()
        }
        yield Record(
            suite=block["suite"],
            row=block["row"],
            index=index,
            **header["methods"][block["method"]],
            status=status,
            error=error,
            seconds=block["seconds"][place],
            measures=measures if status == "ok" else {},
            dataset={name: column[place] for name, column in block["dataset"].items()},
            run=header["runs"][block["run"]],
            reading=block.get("reading"),
            **(tables if place == 0 else {}),
        )


def _rounded(value: float | None, digits: int) -> float | int | None:
    """The number with so many significant digits, as an integer where it is one; None for nan."""
    if value is None or not math.isfinite(value):
        return None
    # Whole numbers are counts, which are kept to the last digit.
    short = float(value) if value == int(value) else float(f"{value:.{digits}g}")
    return int(short) if short == int(short) else short
