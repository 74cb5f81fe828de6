"""SDCD in a separate environment, because its packages conflict with ours: tables and answers are npz files.

The environment is the folder `sdcd` in the user's cache, unless `--environments` or CAUSAL_ARROW_ENVIRONMENTS names
another place for such folders. Who has none is told how to make it.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from functools import partial
from importlib import metadata
from pathlib import Path
from queue import SimpleQueue
from typing import IO, Any

import numpy as np

from causal_arrow.errors import BenchmarkError
from causal_arrow_lab.benchmarks.datasets import FloatArray
from causal_arrow_lab.benchmarks.methods.protocol import Estimate, Method, MethodOptions, Solve, refuse_argument

WORKER_SCRIPT = Path(__file__).with_name("isolated_worker.py")
# wandb, which SDCD imports, needs pkg_resources, which setuptools 81 dropped.
REQUIREMENTS = "'sdcd==0.1.4' 'setuptools<81' 'torch=={torch}'"
REPORTED = ("sdcd", "torch", "numpy")
"""Distributions whose versions belong in a record."""


def default_folder() -> Path:
    """The default folder of environments, in the user's cache."""
    if chosen := os.environ.get("CAUSAL_ARROW_ENVIRONMENTS"):
        return Path(chosen).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "causal-arrow" / "environments"


def prepare_isolated(name: str, argument: str, options: MethodOptions) -> Method:
    """A method whose environment is there; BenchmarkError with the commands that make it."""
    refuse_argument(name, argument)
    directory = Path(options.environments or default_folder()) / name
    scripts = directory / ("Scripts" if sys.platform == "win32" else "bin")
    packages = [str(path) for path in (*directory.glob("lib/python*/site-packages"), directory / "Lib/site-packages")]
    versions = {found.name: found.version for found in metadata.distributions(path=packages) if found.name in REPORTED}
    if name not in versions:
        # 2.13.0+cpu is published as 2.13.0: with the same version pip reuses what it has already fetched.
        torch = metadata.version("torch").partition("+")[0]
        raise BenchmarkError(
            f"The method {name} runs in a separate environment, and there is none at {directory}. Make it with Python "
            f"3.9 to 3.11: python3.11 -m venv {directory} && {scripts / 'pip'} install "
            + REQUIREMENTS.format(torch=torch)
        )
    python = re.search(r"^version = (.+)$", (directory / "pyvenv.cfg").read_text(), re.MULTILINE)
    command = [str(scripts / "python"), "-I", str(WORKER_SCRIPT)]
    start = partial(start_isolated, name, command)
    return Method(name, {"standardized": True}, {**versions, "python": python[1] if python else ""}, start)


def start_isolated(name: str, command: list[str]) -> Solve:
    """Start the process, which ends when its standard input closes."""
    folder = tempfile.TemporaryDirectory(prefix=f"causal-arrow-{name}-")
    # Without what leads to our packages.
    ours = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    process = Conversation(command, {key: value for key, value in os.environ.items() if key not in ours})

    def wait() -> None:
        reply = process.reply()
        if reply is None:
            raise BenchmarkError(f"The process of {name} ended with {process.ending()}.")
        if reply["status"] == "failed":
            raise BenchmarkError(reply["error"])

    def solve(data: FloatArray, generator: np.random.Generator) -> Estimate:
        table, answer = Path(folder.name) / "table.npz", Path(folder.name) / "answer.npz"
        np.savez(table, data=data)
        process.send({"input": str(table), "output": str(answer)})
        wait()
        with np.load(answer) as file:
            return Estimate(
                adjacency=file["adjacency"] != 0,
                scores=file["scores"].astype(np.float64),
                probabilities=None,
                seconds=float(file["seconds"]),
            )

    wait()
    return solve


class Conversation:
    """A process that exchanges JSON lines with this one."""

    def __init__(self, command: Sequence[str], variables: Mapping[str, str], own_session: bool = False) -> None:
        self._own_session = own_session
        self._complaints: IO[str] = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            text=True,
            encoding="utf-8",
            env=variables,
            start_new_session=own_session,
        )
        self._replies: SimpleQueue[dict[str, Any] | None] = SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._replies.put(json.loads(line))
        self._replies.put(None)

    def send(self, content: Mapping[str, Any]) -> None:
        """Write a line. If the process has ended this fails, and the missing reply will show it."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(content) + "\n")
            self._process.stdin.flush()

    def reply(self, timeout: float | None = None) -> dict[str, Any] | None:
        """The next line, None once the process has ended; `queue.Empty` when time is up."""
        return self._replies.get(timeout=timeout)

    def kill(self) -> None:
        """End the process, and with a session of its own what it started."""
        if self._own_session and os.name == "posix":
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        else:
            self._process.kill()
        self._process.wait()

    def ending(self) -> str:
        """Say how the process ended, with the last line that it wrote to standard error."""
        status = self._process.wait()
        self.kill()
        self._complaints.seek(0)
        lines = [line.strip() for line in self._complaints.read().splitlines() if line.strip()]
        message = f": {lines[-1][:300]}" if lines else " and no message"
        return f"{f'signal {-status}' if status < 0 else f'exit status {status}'}{message}"
