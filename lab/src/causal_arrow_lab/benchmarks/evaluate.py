"""Run benchmark jobs in worker processes and write every result as a record.

When this stops, at any moment, only the datasets in progress are lost.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import platform
import re
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from datetime import datetime, timezone
from importlib import metadata
from itertools import zip_longest
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np

from causal_arrow._version import __version__
from causal_arrow.errors import BenchmarkError
from causal_arrow.progress import progress_bar
from causal_arrow_lab.benchmarks.methods import Method, MethodOptions, prepare
from causal_arrow_lab.benchmarks.methods.isolated import Conversation
from causal_arrow_lab.benchmarks.records import Record, RecordWriter, identity_of_method, read_records
from causal_arrow_lab.benchmarks.suites import SuiteRow, judged_by, select_rows, suite
from causal_arrow_lab.benchmarks.worker import options_to_json

# Limit for loading a method and drawing a dataset, and for measuring an answer, which only takes that long when broken.
PATIENCE_SECONDS = 900.0

WORKER_VARIABLES = {
    **{f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "NUMEXPR")},
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


def run_benchmark(
    suites: Sequence[str],
    methods: str,
    options: MethodOptions,
    *,
    datasets: int,
    output: Path,
    timeout: float,
    processes: int,
    retry: bool = False,
    bar: bool | None = None,
) -> None:
    """Run what has no record in the folder yet, with a progress bar or lines, and print the table of means."""
    rows = select_rows(suites)
    texts = dict.fromkeys(text.strip() for text in methods.split(",") if text.strip())
    prepared = [(text, prepare(text, options, judged_by(rows))) for text in texts]
    records = read_records(output) if output.exists() else []
    planned = plan(rows, prepared, datasets)
    to_do = remaining(planned, records, timeout=timeout, retry=retry)
    _say(
        f"{len(planned)} datasets × methods, {len(planned) - len(to_do)} done before, {len(to_do)} to do "
        f"({len(rows)} rows, {len(prepared)} methods); records in {output}"
    )
    counts: Counter[str] = Counter()
    try:
        if to_do:
            with (
                contextlib.closing(RecordWriter(output)) as writer,
                progress_bar(bar, pieces=len(to_do), lines=True) as progress,
            ):

                def write(record: Record) -> None:
                    writer.write(record)
                    counts[record.status] += 1
                    progress(_in_words(record), counts.total() / len(to_do))

                evaluate(to_do, write, options=options, timeout=timeout, processes=processes)
    except KeyboardInterrupt:
        _say(
            f"\nStopped with {len(to_do) - counts.total()} of {len(planned)} still to do. Everything so far is in "
            f"{output}; the same command continues."
        )
        raise SystemExit(130) from None
    if counts["failed"] or counts["timeout"]:
        _say(
            f"{counts['failed']} failed and {counts['timeout']} ran out of time. They are recorded as such, and run "
            "again with --retry (or a larger --timeout)."
        )
    print(table_of_means(read_records(output), rows, [method for _, method in prepared]))
    _say(f"A report with figures: python docs/tools/report.py {output}, in the source tree")


def _say(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)


def _in_words(record: Record) -> str:
    endings = {"ok": f"{record.seconds or 0:.2f} s", "failed": "failed", "timeout": "out of time"}
    return f"{record.suite}/{record.row} #{record.index} {record.method} {endings[record.status]}"


def evaluate(
    jobs: Sequence[BenchmarkJob],
    write: Callable[[Record], None],
    *,
    options: MethodOptions,
    timeout: float | None = None,
    processes: int = 1,
) -> None:
    """Run the jobs and call `write` with each record as it comes.

    If `write` raises or the user presses Ctrl-C, all processes are ended and the exception is raised.
    """
    run = describe_run(timeout, processes, options.device)
    workers = [WorkerProcess(options, timeout, run) for _ in range(max(1, min(processes, len(jobs))))]
    idle: SimpleQueue[WorkerProcess] = SimpleQueue()
    for worker in workers:
        idle.put(worker)

    def work(job: BenchmarkJob) -> Record:
        worker = idle.get()
        try:
            return worker.run(job)
        finally:
            idle.put(worker)

    pool = ThreadPoolExecutor(len(workers))
    try:
        for done in as_completed([pool.submit(work, job) for job in jobs]):
            write(done.result())
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for worker in workers:
            worker.close()
        pool.shutdown()


class WorkerProcess:
    """A worker, started when it is first needed and again after it ended, until it is closed."""

    def __init__(self, options: MethodOptions, timeout: float | None, run: dict[str, Any]) -> None:
        self._options, self._timeout, self._run = options_to_json(options), timeout, run
        self._worker: Conversation | None = None
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
            if self._worker is not None:
                self._worker.kill()

    def _converse(self, job: BenchmarkJob) -> dict[str, Any]:
        """The worker's result for a job, or what happened to the worker."""
        with self._guard:
            if self._closed:
                return _failure("The run was stopped.")
            if self._worker is None:
                command = [sys.executable, "-m", "causal_arrow_lab.benchmarks.worker"]
                # A session of its own, so that Ctrl-C reaches only this process, and `kill` the worker's children.
                self._worker = Conversation(command, {**os.environ, **WORKER_VARIABLES}, own_session=True)
            worker = self._worker
        request = {"suite": job.row.suite, "row": job.row.name, "index": job.index, "method": job.method_text}
        worker.send({**request, "options": self._options})
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
                reply = worker.reply(self._timeout if event == "answered" else PATIENCE_SECONDS)
            except Empty:
                self._worker = None
                worker.kill()
                return ending
            if reply is None:
                self._worker = None
                return _failure(f"The process ended with {worker.ending()}.")
            if reply.pop("event") == "finished":  # early, when the method has failed
                return reply
        raise AssertionError("the worker must finish after it has answered")


def _failure(sentence: str) -> dict[str, Any]:
    return {"status": "failed", "error": sentence}


# Where it ran


def describe_run(timeout: float | None, processes: int, device: str = "cpu") -> dict[str, Any]:
    """The part of every record that describes machine, versions and limits."""
    machine = describe_machine()
    if device != "cpu":
        import torch

        machine["gpu"] = torch.cuda.get_device_name(device)
    return {
        "machine": machine,
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


def usable_cores() -> int:
    """Number of cores that this process may use, which may be fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _cpu_model() -> str:
    with contextlib.suppress(OSError):
        named = re.search(r"^model name\s*:(.*)$", Path("/proc/cpuinfo").read_text(errors="replace"), re.MULTILINE)
        if named:
            return " ".join(named[1].split())
    return platform.processor() or platform.machine() or "unknown processor"


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
