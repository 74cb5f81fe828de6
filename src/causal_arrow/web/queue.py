"""The network reads one table at a time; a bounded number of others wait their turn."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from causal_arrow.errors import ArrowError

Result = TypeVar("Result")


class TooBusyError(ArrowError):
    """As many tables wait as may wait."""


@dataclass(eq=False)
class Job(Generic[Result]):
    """Work for the network. `state`: waiting, running, done, failed or cancelled."""

    work: Callable[[], Result]
    wanted: Callable[[], bool] = lambda: True
    """Asked when its turn comes: whether anybody still waits for it."""
    state: str = "waiting"
    result: Result | None = None
    error: Exception | None = field(default=None, repr=False)


class NetworkQueue:
    """One thread that works jobs off in the order they came."""

    def __init__(self, most_waiting: int) -> None:
        self.most_waiting = most_waiting
        self.started = 0  # how many jobs cost anything
        self._waiting: list[Job[object]] = []
        self._change = threading.Lock()
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="network")

    def submit(self, job: Job[Result]) -> Job[Result]:
        """The job, in line; TooBusyError if the line is full."""
        with self._change:
            if len(self._waiting) >= self.most_waiting:
                raise TooBusyError(f"{len(self._waiting)} tables wait for the network already: try again in a minute.")
            self._waiting.append(job)  # type: ignore[arg-type]
        self._worker.submit(self._run, job)
        return job

    def ahead(self, job: Job[Result]) -> int:
        """How many jobs come before this one."""
        with self._change:
            return self._waiting.index(job) if job in self._waiting else 0  # type: ignore[arg-type]

    def cancel(self, job: Job[Result]) -> None:
        """Nobody wants the result any more: a job that waits never starts, and what a running one finds is dropped."""
        with self._change:
            if job in self._waiting:
                self._waiting.remove(job)  # type: ignore[arg-type]
            if job.state in ("waiting", "running"):
                job.state = "cancelled"

    def close(self) -> None:
        """Start nothing more."""
        self._worker.shutdown(wait=False, cancel_futures=True)

    def _run(self, job: Job[Result]) -> None:
        wanted = job.wanted()
        with self._change:
            if job in self._waiting:
                self._waiting.remove(job)  # type: ignore[arg-type]
            if job.state == "waiting":
                job.state = "running" if wanted else "cancelled"
            if job.state == "cancelled":
                return
            self.started += 1
        try:
            result, error = job.work(), None
        except Exception as failure:
            result, error = None, failure
        with self._change:
            if job.state == "running":
                job.result, job.error = result, error
                job.state = "done" if error is None else "failed"
