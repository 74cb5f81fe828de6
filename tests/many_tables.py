"""Tables for the tests of many tables, and what those tests look at: records, workers that are killed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from causal_arrow.many.folder import ManyAnswers, ManyFolder, Record


def frame(seed: int, observations: int = 60, variables: int = 4, skewed: bool = False) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    values = random.normal(size=(observations, variables)) @ random.normal(size=(variables, variables))
    if skewed:
        values[:, 0] = np.exp(values[:, 0])
    return pd.DataFrame(values, columns=[f"v{place}" for place in range(variables)])


def executions(output: Path) -> Counter[str]:
    """How often each table was finished, by the records of every process."""
    return Counter(record["table"] for record in ManyFolder(output).records())


def finished(output: Path) -> list[Record]:
    return list(ManyFolder(output).records()) if (output / "records").is_dir() else []


@contextlib.contextmanager
def killing_a_worker(output: Path, after: int = 3) -> Iterator[dict[str, Any]]:
    """Kill a process that has finished a table, once there are some records: who it was, and what was done by then."""
    fate: dict[str, Any] = {}
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.005):
            records = finished(output)
            pids = {int(record["worker"].rpartition("-")[2]) for record in records} - {os.getpid()}
            if len(records) >= after and pids:
                fate["pid"] = min(pids)
                os.kill(fate["pid"], signal.SIGKILL)
                fate["done"] = [record["table"] for record in records]
                return

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield fate
    finally:
        ended.set()
        watcher.join()


@contextlib.contextmanager
def marked_process(command: list[str]) -> Iterator[tuple[subprocess.Popen[str], Callable[[], list[int]]]]:
    """A process in a group of its own, and a function for the numbers of those of its family that live."""
    mark = f"CAUSAL_ARROW_TEST={uuid.uuid4().hex}"
    name, _, value = mark.partition("=")

    def is_alive() -> list[int]:
        numbers = []
        for folder in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if folder.name.isdecimal() and mark.encode() in (folder / "environ").read_bytes():
                    numbers.append(int(folder.name))
        return numbers

    process = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, name: value},
        start_new_session=True,
    )
    try:
        with process:
            yield process, is_alive
    finally:
        for number in is_alive():
            os.kill(number, signal.SIGKILL)


def wait_until(condition: Callable[[], bool], seconds: float) -> None:
    """Wait for a condition; an AssertionError if it does not come true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"nothing after {seconds} seconds"
        time.sleep(0.02)


def check_nothing_lost_or_done_twice(output: Path, tables: Path, fate: dict[str, Any], answers: ManyAnswers) -> None:
    names = {path.stem for path in tables.iterdir()}
    assert "pid" in fate, "no worker was killed"
    assert 0 < len(fate["done"]) < len(names)
    assert set(answers) == names
    assert executions(output) == dict.fromkeys(names, 1)
    workers = {record["worker"] for record in finished(output)}
    assert len(workers) >= 2
    for name in sorted(names)[::13]:
        json.loads((output / "answers" / f"{name}.json").read_text(encoding="utf-8"))


def tables_of_many_shapes(folder: Path, count: int = 24) -> Path:
    """A folder with tables of different shapes, which therefore are as many passes."""
    folder.mkdir()
    for seed in range(count):
        frame(seed, 200 + seed, 8).to_csv(folder / f"t{seed:02}.csv", index=False)
    return folder
