"""The network does one piece of work at a time; a bounded number of jobs wait their turn.

A job of many pieces, such as reading fifty resampled tables, goes back to the end of the line after each, so that
nobody waits for all of it. A job that nobody wants any more stops: before it starts, between its pieces, and in the
middle of a pass through the network before its next layer.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from types import GeneratorType
from typing import Any, Generic, TypeVar

from causal_arrow.errors import ArrowError
from causal_arrow.network import Network
from causal_arrow.web.uploads import UnwantedError

Result = TypeVar("Result")
Pieces = Generator[float, None, Result]
"""Work in pieces: yields the share that is done after each, and returns the result."""


class TooBusyError(ArrowError):
    """As many tables wait as may wait."""


@dataclass(eq=False)
class Job(Generic[Result]):
    """Work for the network. `state`: waiting, running, done, failed or cancelled."""

    work: Callable[[], Result | Pieces[Result]]
    wanted: Callable[[], bool] = lambda: True  # asked when its turn comes: whether anybody still waits for it
    state: str = "waiting"
    share: float = 0.0  # share that is done, where it has pieces
    result: Result | None = None
    error: Exception | None = field(default=None, repr=False)
    started: float | None = None
    pieces: Pieces[Result] | None = field(default=None, repr=False)

    @property
    def is_wanted(self) -> bool:
        """Whether it was not cancelled and somebody still waits for it."""
        return self.state != "cancelled" and self.wanted()

    @property
    def is_under_way(self) -> bool:
        """Whether it waits or runs."""
        return self.state in ("waiting", "running")

    @property
    def seconds(self) -> float:
        """Seconds since it started; 0 before."""
        return 0.0 if self.started is None else time.monotonic() - self.started

    @classmethod
    def done(cls, result: Result) -> Job[Result]:
        """A job whose result is known already."""
        return cls(lambda: result, state="done", result=result)


@contextlib.contextmanager
def stopped_when_unwanted(network: Network, job: Job[Any]) -> Iterator[None]:
    """Within this context, raise UnwantedError before the network's next stage once the result is no longer needed."""

    def check() -> None:
        if not job.is_wanted:
            raise UnwantedError

    network.between_stages.append(check)
    try:
        yield
    finally:
        network.between_stages.remove(check)


class NetworkQueue:
    """One thread that works jobs off in the order they came, a piece at a time."""

    def __init__(self, most_waiting: int) -> None:
        self.most_waiting = most_waiting
        self.started = 0  # how many jobs cost anything
        self._waiting: list[Job[Any]] = []
        self._change = threading.Lock()
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="network")

    def submit(self, job: Job[Result]) -> Job[Result]:
        """The job, in line; TooBusyError if the line is full."""
        with self._change:
            if len(self._waiting) >= self.most_waiting:
                raise TooBusyError(f"{len(self._waiting)} tables wait for the network already: try again in a minute.")
            self._waiting.append(job)
        self._worker.submit(self._run, job)
        return job

    def ahead(self, job: Job[Any]) -> int:
        """The number of jobs before this one."""
        with self._change:
            return self._waiting.index(job) if job in self._waiting else 0

    def cancel(self, job: Job[Any] | None) -> None:
        """Cancel the job: it never starts, or stops soon and its result is dropped."""
        if job is None:
            return
        with self._change:
            if job in self._waiting:
                self._waiting.remove(job)
            if job.is_under_way:
                job.state = "cancelled"

    def close(self) -> None:
        """Start nothing more."""
        self._worker.shutdown(wait=False, cancel_futures=True)

    def _run(self, job: Job[Any]) -> None:
        """Do one piece of the job, and put it back in line if there are more."""
        wanted = job.wanted()
        with self._change:
            if job in self._waiting:
                self._waiting.remove(job)
            if not wanted and job.is_under_way:
                job.state = "cancelled"
            if job.state == "cancelled":
                job.pieces = None
                return
            if job.state == "waiting":
                job.state, job.started = "running", time.monotonic()
                self.started += 1
        try:
            if job.pieces is None:
                made = job.work()
                if not isinstance(made, GeneratorType):
                    self._finish(job, "done", made)
                    return
                job.pieces = made
            job.share = next(job.pieces)
        except StopIteration as end:
            self._finish(job, "done", end.value)
        except UnwantedError:
            self.cancel(job)
            job.pieces = None
        except Exception as failure:
            self._finish(job, "failed", error=failure)
        else:
            with self._change:
                self._waiting.append(job)
            with contextlib.suppress(RuntimeError):  # the server stops
                self._worker.submit(self._run, job)

    def _finish(self, job: Job[Any], state: str, result: Any = None, error: Exception | None = None) -> None:
        with self._change:
            job.pieces = None
            if job.state == "running":
                job.result, job.error, job.state = result, error, state
