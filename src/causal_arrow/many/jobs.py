"""A piece of work in another process: a failure is a result too, and no process outlives the one that started it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from causal_arrow.errors import SURFACES, ArrowError, is_out_of_memory

Job = Mapping[str, Any]
Work = Callable[[Job], dict[str, Any]]

MAX_ERROR = 500  # characters
SECONDS_BETWEEN_LOOKS = 0.2


def run_job(work: Work, job: Job) -> dict[str, Any]:
    """The result of work(job) with a `status`: "ok", or "failed" with a one-sentence `error`.

    `work` is a function that can be pickled by name. "surface" in the job, "python" by default, decides whose words
    the advice in an error uses.
    """
    try:
        return {"status": "ok", **work(job)}
    except Exception as error:
        return {"status": "failed", "error": sentence_of(error, job.get("surface", "python"))}


def sentence_of(error: Exception, surface: str = "python") -> str:
    """The error on one line, in the words of a surface."""
    if isinstance(error, ArrowError):
        sentence = error.worded(SURFACES[surface])
    elif is_out_of_memory(error):
        sentence = "There is not enough memory for this table: use fewer rows or fewer variables."
    else:
        sentence = f"{type(error).__name__}: {error}"
    return " ".join(sentence.split())[:MAX_ERROR]


def end_with(parent: int) -> None:
    """End this process soon after its parent, however that ended. Idle workers of joblib would stay for minutes."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(SECONDS_BETWEEN_LOOKS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
