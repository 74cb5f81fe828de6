"""run_job(): one piece of work as a dictionary in, its result as a dictionary out.

A job can be sent to another process or machine and run again; where its table is a file it is plain JSON. Whatever goes
wrong is a result too: {"status": "failed", "error": one sentence}.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Mapping
from typing import Any

from causal_arrow.discovery.pipeline import Settings, discover
from causal_arrow.errors import SURFACES, ArrowError

Say = Callable[[dict[str, Any]], None]

JOBS = {
    "discover": "causal_arrow.discovery.jobs:discover_table",
    "discover-group": "causal_arrow.discovery.many.work:answer_group",
    "resample": "causal_arrow.discovery.uncertainty:stability_of_rows",
    "benchmark": "causal_arrow.benchmarks.worker:judge_method",
}
"""Kinds of jobs, and the function that does each, imported when it is needed: (job, say) -> result."""

LONGEST_ERROR = 500


def run_job(job: Mapping[str, Any], say: Say | None = None) -> dict[str, Any]:
    """The result of a job, with its `status`: "ok", or "failed" with an `error` of one sentence.

    job   {"kind": "discover", "table": path, "settings": {...}, "reading": {...}}, where settings are those of `Arrow`
          and reading the options of `read_table`. Jobs of the kinds "discover-group", "resample" and "benchmark" are
          made by `discover_many`, `bootstrap` and `causal-arrow benchmark`; some hold tables or a network beside JSON.
          "surface", "python" by default, decides in whose words an error says what to do.
    say   Hears of events on the way, such as {"event": "started"} when the method of a benchmark begins.
    """
    try:
        kind = job.get("kind")
        if kind not in JOBS:
            raise ArrowError(f"Expected the kind of a job to be one of {', '.join(JOBS)}, got {kind!r}.")
        module, function = JOBS[kind].split(":")
        result = getattr(importlib.import_module(module), function)(job, say or _keep_quiet)
        return {"status": "ok", **result}
    except Exception as error:
        return {"status": "failed", "error": sentence_of(error, job.get("surface", "python"))}


def sentence_of(error: Exception, surface: str = "python") -> str:
    """What went wrong, as one line in the words of a surface."""
    if isinstance(error, ArrowError):
        sentence = error.worded(SURFACES[surface])
    elif isinstance(error, MemoryError) or "allocate memory" in str(error) or "out of memory" in str(error):
        sentence = "There is not enough memory for this table: use fewer observations or fewer variables."
    else:
        sentence = f"{type(error).__name__}: {error}"
    return " ".join(sentence.split())[:LONGEST_ERROR]


def discover_table(job: Mapping[str, Any], say: Say) -> dict[str, Any]:
    """The answer for one table, complete, and the seconds it took."""
    started = time.perf_counter()
    settings = Settings.from_dict(job.get("settings", {}))
    answer = discover(job["table"], settings, progress=False, **job.get("reading", {})).answer
    return {"answer": answer.to_dict(), "seconds": time.perf_counter() - started}


def _keep_quiet(event: dict[str, Any]) -> None:
    """Nobody listens."""
