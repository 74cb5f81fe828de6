"""SDCD in a separate environment, because its packages conflict with ours: tables and answers are npz files.

    folder/
      sdcd/              a virtual environment
        installed.json   written last: the installed versions. Without it the installation was interrupted.
        install.log      the output of pip

The folder is in the user's cache, unless `--environments` or CAUSAL_ARROW_ENVIRONMENTS names another.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from queue import SimpleQueue
from typing import IO, Any

import numpy as np

from causal_arrow.errors import BenchmarkError
from causal_arrow_lab.benchmarks.datasets import FloatArray
from causal_arrow_lab.benchmarks.methods.protocol import Estimate, Method, MethodOptions, Solve, refuse_argument

WORKER_SCRIPT = Path(__file__).with_name("isolated_worker.py")
METHOD = "sdcd"
SETTINGS = {"standardized": True}
# wandb, which SDCD imports, needs pkg_resources, which setuptools 81 dropped. With the torch version of this
# installation pip reuses the build that it has already fetched instead of another of several gigabytes.
REQUIREMENTS = ("sdcd==0.1.4", "setuptools<81", "torch=={torch}")
REPORTED = ("sdcd", "torch", "numpy")
"""Distributions whose versions belong in a record."""


def default_folder() -> Path:
    """The default folder of environments, in the user's cache."""
    if chosen := os.environ.get("CAUSAL_ARROW_ENVIRONMENTS"):
        return Path(chosen).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "causal-arrow" / "environments"


def prepare_isolated(name: str, argument: str, options: MethodOptions) -> Method:
    """A method whose environment must be installed; BenchmarkError with the command that does it."""
    refuse_argument(name, argument)
    directory = Path(options.environments or default_folder()) / name
    try:
        versions = json.loads((directory / "installed.json").read_text(encoding="utf-8"))["versions"]
    except FileNotFoundError as error:
        raise BenchmarkError(
            f"The method {name} runs in a separate environment, and there is none at {directory}. "
            f"Make it with: causal-arrow-lab benchmark --install {name}"
        ) from error
    return Method(name, SETTINGS, versions, lambda: start_isolated(name, worker_command(directory)))


def worker_command(directory: Path) -> list[str]:
    """The command that runs the worker script in an environment."""
    return [str(_interpreter(directory)), "-I", str(WORKER_SCRIPT)]


def worker_variables() -> dict[str, str]:
    """Environment variables of such a process: ours, except those that lead to our packages."""
    return {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")}


def install(
    method: str, folder: Path | None = None, python: str | None = None, say: Callable[[str], None] = print
) -> Path:
    """Make the environment of a method, replacing an older one, and return its folder.

    `python` is the interpreter to build on.
    """
    if method != METHOD:
        raise BenchmarkError(f"The method {method!r} needs no separate environment. Those that do: {METHOD}.")
    directory = (folder or default_folder()) / method
    if directory.exists() and not (directory / "pyvenv.cfg").exists() and any(directory.iterdir()):
        raise BenchmarkError(
            f"Expected an environment in {directory}, found other files. Choose another --environments folder."
        )
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    log = directory / "install.log"
    say(f"Making an environment for {method} in {directory}")
    _run([python or sys.executable, "-m", "venv", str(directory)], log)
    # 2.13.0+cpu is published as 2.13.0.
    torch = metadata.version("torch").partition("+")[0]
    requirements = [requirement.format(torch=torch) for requirement in REQUIREMENTS]
    say(f"Installing {', '.join(requirements)}")
    _run([str(_interpreter(directory)), "-m", "pip", "install", "--disable-pip-version-check", *requirements], log)
    say("Trying to import it")
    _run([*worker_command(directory), "--check"], log)
    program = (
        "import json, platform, sys; from importlib.metadata import version; "
        "print(json.dumps({**{name: version(name) for name in sys.argv[1:]}, 'python': platform.python_version()}))"
    )
    command = [str(_interpreter(directory)), "-I", "-c", program, *REPORTED]
    versions = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    (directory / "installed.json").write_text(json.dumps({"versions": versions}), encoding="utf-8")
    say(f"{method} is ready: {', '.join(f'{name} {version}' for name, version in versions.items())}")
    return directory


def _run(command: list[str], log: Path) -> None:
    with log.open("ab") as output:
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=worker_variables(),
                check=False,
            )
        except OSError as error:
            raise BenchmarkError(f"Cannot run {command[0]}: {error.strerror}.") from error
    if done.returncode:
        lines = [line for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
        errors = [line for line in lines if line.startswith("ERROR") or "Error:" in line] or lines
        reason = errors[-1].strip() if errors else f"exit status {done.returncode}"
        raise BenchmarkError(
            f"The environment for {METHOD} could not be made: {reason} (all of it in {log}). It is known to work with "
            "Python 3.9 to 3.11 (pandas 1); another interpreter is chosen with --python."
        )


def _interpreter(directory: Path) -> Path:
    return directory / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def start_isolated(name: str, command: list[str]) -> Solve:
    """Start the process, which ends when its standard input closes."""
    folder = tempfile.TemporaryDirectory(prefix=f"causal-arrow-{name}-")
    process = Conversation(command, worker_variables())

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
        """How a process ended, and the last line that it wrote to standard error."""
        status = self._process.wait()
        self.kill()
        self._complaints.seek(0)
        lines = [line.strip() for line in self._complaints.read().splitlines() if line.strip()]
        message = f": {lines[-1][:300]}" if lines else " and no message"
        return f"{f'signal {-status}' if status < 0 else f'exit status {status}'}{message}"
