"""The unit of work: a group of tables, read and answered in one process, wherever that runs. `run_job` calls it."""

from __future__ import annotations

import hashlib
import os
import socket
import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from causal_arrow.discovery.jobs import sentence_of
from causal_arrow.discovery.many.folder import FAILED, OK, ManyFolder, Record
from causal_arrow.discovery.pipeline import Discovery, Settings
from causal_arrow.discovery.together import Request, discover_together
from causal_arrow.errors import ArrowError, TableError

PIECE = 2**20


def answer_group(job: Mapping[str, Any], say: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Answer each table of a group that is not answered yet, and write that down: how many were answered.

    job   {"output": folder, "run": its name, "group": its name, "surface": whose words errors have, "tables": [{"name",
          "table", "content", "identity", "settings", "reading"}]}, where content is `content_of` the table.
    """
    folder = _folder(job["output"], job["run"])
    folder.check_shared()
    # Someone else may have done it: a cluster runs a group again when the machine is gone that did it.
    done = {(record["table"], record["identity"]) for record in folder.records() if record.get("run") == job["run"]}
    tables = [table for table in job["tables"] if (table["name"], table["identity"]) not in done]
    folder.begin(job["group"])
    requests, asked = [], []
    for table in tables:
        try:
            requests.append(_request(table))
            asked.append(table)
        except ArrowError as error:
            folder.write(_record(job, table, error, 0.0))
    for outcome in discover_together(requests):
        record = _record(job, asked[outcome.place], outcome.result, outcome.seconds)
        folder.write(record, None if isinstance(outcome.result, Exception) else outcome.result.answer)
    folder.end(job["group"])
    return {"answered": len(tables)}


def content_of(source: Any) -> str:
    """Digits that change with the content of a table, a file or something in memory."""
    if not isinstance(source, str | Path):
        import joblib

        return f"memory-{joblib.hash(source, hash_name='sha1')}"
    digest = hashlib.sha256()
    try:
        with Path(source).open("rb") as file:
            while piece := file.read(PIECE):
                digest.update(piece)
    except FileNotFoundError:
        raise TableError(f"There is no file '{source}'.") from None
    except OSError as error:
        raise TableError(f"Cannot open '{source}': {error.strerror or error}.") from error
    return digest.hexdigest()


def _request(table: Mapping[str, Any]) -> Request:
    if content_of(table["table"]) != table["content"]:
        raise TableError("The table changed while it was waiting for its turn: run the same again.")
    return Request(table["table"], Settings.from_dict(table["settings"]), table["reading"])


def _record(job: Mapping[str, Any], table: Mapping[str, Any], result: Discovery | Exception, seconds: float) -> Record:
    source = table["table"]
    record: dict[str, Any] = {
        "table": table["name"],
        "source": str(source) if isinstance(source, str | Path) else None,
        "identity": table["identity"],
        "run": job["run"],
        "seconds": round(seconds, 4),
        "worker": f"{socket.gethostname()}-{os.getpid()}",
        "finished": time.time(),
    }
    if isinstance(result, Exception):
        return record | {"status": FAILED, "error": sentence_of(result, job["surface"])}
    answer = result.answer
    sizes = {"observations": answer.observations, "variables": len(answer.names), "edges": len(answer.edges)}
    return record | {"status": OK, **sizes}


@lru_cache(maxsize=4)
def _folder(path: str, run: str) -> ManyFolder:
    """The folder as this process has seen it so far in this run."""
    return ManyFolder(Path(path))
