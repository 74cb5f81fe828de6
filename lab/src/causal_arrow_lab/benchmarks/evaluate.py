"""Run methods over datasets in worker processes of one core each, with time limits, writing records as they come.

    jobs = plan(rows, methods, datasets=100)
    evaluate(remaining(jobs, records), write=writer.write, ...)

When this stops, at any moment, only the datasets in progress are lost.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import platform
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from importlib import metadata
from itertools import zip_longest
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import IO, Any

import numpy as np

from causal_arrow._version import __version__
from causal_arrow.errors import BenchmarkError
from causal_arrow_lab.benchmarks.methods import Method, MethodOptions
from causal_arrow_lab.benchmarks.records import Record, RecordWriter, identity_of_method
from causal_arrow_lab.benchmarks.suites import SuiteRow, suite
from causal_arrow_lab.benchmarks.worker import options_to_json

# Limit for loading a method and drawing a dataset, and for measuring an answer, which only takes that long when broken.
PATIENCE_SECONDS = 900.0

WORKER_VARIABLES = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMEXPR_NUM_THREADS": "1",
    "VECLIB_MAXIMUM_THREADS": "1",
    "TQDM_DISABLE": "1",  # progress bars
    "PYTHONHASHSEED": "0",  # hill climbing breaks ties in the order of sets, which would differ from run to run
}


@dataclass(frozen=True)
class BenchmarkJob:
    """One dataset for one method. `method_text` is the user's text, which may hold a path."""

    row: SuiteRow
    index: int
    method: Method
    method_text: str

    @property
    def identity(self) -> tuple[str, str, int, str]:
        """The identity of its record."""
        name = identity_of_method(self.method.name, self.method.settings, self.method.versions)
        return self.row.suite, self.row.name, self.index, name


def plan(rows: Sequence[SuiteRow], methods: Sequence[tuple[str, Method]], datasets: int) -> list[BenchmarkJob]:
    """All jobs, the first dataset of every row and method before the second, so that rows stay even."""
    if datasets < 1:
        raise BenchmarkError(f"Expected at least one dataset per row, got {datasets}.")
    return [
        BenchmarkJob(row, index, method, text)
        for index in range(datasets)
        for row in rows
        if row.distinct_datasets is None or index < row.distinct_datasets
        for text, method in methods
    ]


def remaining(
    jobs: Iterable[BenchmarkJob], records: Iterable[Record], *, timeout: float | None = None, retry: bool = False
) -> list[BenchmarkJob]:
    """The jobs without a record. Failures count as done unless `retry`, timeouts unless the limit is larger now."""
    done = {record.identity: record for record in records}

    def is_done(job: BenchmarkJob) -> bool:
        record = done.get(job.identity)
        if record is None or record.status == "ok":
            return record is not None
        more_time = record.status == "timeout" and (timeout is None or timeout > (record.seconds or 0.0))
        return not (retry or more_time)

    return [job for job in jobs if not is_done(job)]


def record_jobs(
    jobs: Sequence[BenchmarkJob],
    folder: Path,
    show: Callable[[Record, int], None],
    *,
    options: MethodOptions,
    timeout: float | None = None,
    processes: int = 1,
) -> list[Record]:
    """Run the jobs, append their records to a folder, and call `show` with each and the number of records so far."""
    fresh: list[Record] = []
    writer = RecordWriter(folder)

    def write(record: Record) -> None:
        writer.write(record)
        fresh.append(record)
        show(record, len(fresh))

    try:
        evaluate(jobs, write, options=options, timeout=timeout, processes=processes)
    finally:
        writer.close()
    return fresh


def evaluate(
    jobs: Sequence[BenchmarkJob],
    write: Callable[[Record], None],
    *,
    options: MethodOptions,
    timeout: float | None = None,
    processes: int = 1,
) -> None:
    """Run the jobs and call `write` with each record as it comes, from one thread at a time.

    If `write` raises or the user presses Ctrl-C, all processes are ended and the exception is raised.
    """
    run = describe_run(timeout, processes, options.device)
    waiting = iter(jobs)
    lock = threading.Lock()
    stopping = threading.Event()
    trouble: list[BaseException] = []
    workers = [WorkerProcess(options, timeout, run) for _ in range(max(1, min(processes, len(jobs))))]

    def serve(worker: WorkerProcess) -> None:
        try:
            while not stopping.is_set():
                with lock:
                    job = next(waiting, None)
                if job is None:
                    break
                record = worker.run(job)
                with lock:
                    if not stopping.is_set():  # a process that was ended here has not failed
                        write(record)
        except BaseException as error:
            trouble.append(error)
            stopping.set()
        finally:
            worker.close()

    threads = [threading.Thread(target=serve, args=(worker,), daemon=True) for worker in workers]
    try:
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            for thread in threads:
                thread.join(0.1)  # with a limit: Ctrl-C is noticed only between waits
    finally:
        stopping.set()
        for worker in workers:
            worker.close()
        for thread in threads:
            thread.join()
    if trouble:
        raise trouble[0]


class WorkerProcess:
    """A worker, started when it is first needed and again after it ended, until it is closed."""

    def __init__(self, options: MethodOptions, timeout: float | None, run: dict[str, Any]) -> None:
        self._options, self._timeout, self._run = options_to_json(options), timeout, run
        self._process: subprocess.Popen[str] | None = None
        self._replies: SimpleQueue[dict[str, Any] | None] = SimpleQueue()  # None: the process has ended
        self._complaints: IO[str] = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115
        self._guard = threading.Lock()  # `close` comes from another thread
        self._closed = False

    def run(self, job: BenchmarkJob) -> Record:
        """Run a job and return its record, however it ends."""
        content = {
            "suite": job.row.suite,
            "row": job.row.name,
            "index": job.index,
            "method": job.method.name,
            "settings": dict(job.method.settings),
            "versions": dict(job.method.versions),
            "dataset": {"seed": job.row.seed(job.index), **job.row.settings},
            "run": self._run,
        }
        return Record.from_json(json.dumps({**content, **self._converse(job)}))

    def close(self) -> None:
        """Kill the process and what it started, and start no other."""
        with self._guard:
            self._closed = True
        self._kill()

    def _converse(self, job: BenchmarkJob) -> dict[str, Any]:
        """The worker's result for a job, or what happened to the worker."""
        self._send(job)
        too_long = {
            "started": _failure(f"Loading the method and the dataset took more than {PATIENCE_SECONDS:g} s."),
            "answered": {
                "status": "timeout",
                "error": f"Stopped after the time limit of {self._timeout or 0:g} s.",
                "seconds": self._timeout,
            },
            "finished": _failure(f"Measuring the answer took more than {PATIENCE_SECONDS:g} s."),
        }
        for event, ending in too_long.items():
            try:
                reply = self._replies.get(timeout=self._timeout if event == "answered" else PATIENCE_SECONDS)
            except Empty:
                self._kill()
                return ending
            if reply is None:
                return _failure(self._last_words())
            if reply.pop("event") == "finished":  # early, when the method has failed
                return reply
        raise AssertionError("the worker must finish after it has answered")

    def _send(self, job: BenchmarkJob) -> None:
        request = {
            "suite": job.row.suite,
            "row": job.row.name,
            "index": job.index,
            "method": job.method_text,
            "options": self._options,
        }
        if self._process is None:
            self._start()
        if self._process is None or self._process.stdin is None:
            return
        # Writing to a worker that has ended fails; the missing reply will show it.
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()

    def _start(self) -> None:
        replies: SimpleQueue[dict[str, Any] | None] = SimpleQueue()
        self._replies = replies
        with self._guard:
            if self._closed:
                replies.put(None)
                return
            self._complaints.seek(0)
            self._complaints.truncate()
            process = self._process = subprocess.Popen(
                [sys.executable, "-m", "causal_arrow_lab.benchmarks.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._complaints,
                text=True,
                encoding="utf-8",
                env={**os.environ, **WORKER_VARIABLES},
                start_new_session=True,  # so that Ctrl-C reaches only this process, and `_kill` the worker's children
            )

        def listen() -> None:
            assert process.stdout is not None
            for line in process.stdout:
                replies.put(json.loads(line))
            replies.put(None)

        threading.Thread(target=listen, daemon=True).start()

    def _kill(self) -> int | None:
        """End the process if there is one, and return its exit status."""
        with self._guard:
            process, self._process = self._process, None
        if process is None:
            return None
        if os.name == "posix":
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
        return process.wait()

    def _last_words(self) -> str:
        """A sentence about why the process ended."""
        if self._process is not None:
            self._process.wait()
        status = self._kill()
        self._complaints.seek(0)
        lines = [line.strip() for line in self._complaints.read().splitlines() if line.strip()]
        message = f": {lines[-1][:300]}" if lines else " and no message"
        by = f"signal {-status}" if status is not None and status < 0 else f"exit status {status}"
        return f"The process ended with {by}{message}."


def _failure(sentence: str) -> dict[str, Any]:
    return {"status": "failed", "error": sentence}


# Where it ran


def describe_run(timeout: float | None, processes: int, device: str = "cpu") -> dict[str, Any]:
    """The part of every record that describes machine, versions and limits."""
    return {
        "machine": describe_machine() if device == "cpu" else {**describe_machine(), "gpu": _gpu_model(device)},
        "timeout": timeout,
        "processes": processes,
        "clock": "processor",
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d"),
        "versions": {
            "causal-arrow": __version__,
            "python": platform.python_version(),
            **{name: metadata.version(name) for name in ("numpy", "torch")},
        },
    }


def describe_machine() -> dict[str, Any]:
    """Processor, usable cores, memory and system of this machine."""
    machine: dict[str, Any] = {"cpu": _cpu_model(), "cores": usable_cores(), "system": platform.system()}
    with contextlib.suppress(AttributeError, ValueError, OSError):  # not every system has this
        machine["memory_gib"] = round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)
    return machine


def _gpu_model(device: str) -> str:
    import torch

    return torch.cuda.get_device_name(device)


def usable_cores() -> int:
    """Number of cores that this process may use, which may be fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _cpu_model() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return " ".join(line.partition(":")[2].split())
    if sys.platform == "darwin":
        command = ["sysctl", "-n", "machdep.cpu.brand_string"]
        answer = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
        if answer:
            return answer
    return platform.processor() or platform.machine() or "unknown processor"


# What came out


def table_of_means(records: Iterable[Record], rows: Sequence[SuiteRow], methods: Sequence[Method]) -> str:
    """Mean and standard error of each measure that the suite shows, by row and method, as plain text."""
    groups: dict[tuple[str, str, str], list[Record]] = {}
    for record in records:
        groups.setdefault((record.suite, record.row, record.method_identity), []).append(record)
    lines: list[tuple[str, ...]] = []
    for number, row in enumerate(rows):
        measures = suite(row.suite).shown
        if number == 0 or measures != suite(rows[number - 1].suite).shown:
            lines.append(("row", "method", "answers", *measures))
        for method in methods:
            identity = identity_of_method(method.name, method.settings, method.versions)
            members = groups.get((row.suite, row.name, identity), [])
            answers = [record for record in members if record.status == "ok"]
            means = (_mean_of([_value(record, measure) for record in answers]) for measure in measures)
            lines.append((f"{row.suite}/{row.name}", method.name, f"{len(answers)} of {len(members)}", *means))
    widths = [max(map(len, column)) for column in zip_longest(*lines, fillvalue="")]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def _value(record: Record, measure: str) -> float:
    return record.seconds or 0.0 if measure == "seconds" else record.measures.get(measure, math.nan)


def _mean_of(values: Sequence[float]) -> str:
    known = np.array([value for value in values if not math.isnan(value)])
    if not known.size:
        return "–"
    error = f" ({known.std(ddof=1) / math.sqrt(known.size):.3f})" if known.size > 1 else ""
    return f"{known.mean():.3f}{error}"
