"""Methods that run in a separate environment: a process of it, which exchanges npz files with this one."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from causal_arrow.errors import BenchmarkError
from causal_arrow_lab.benchmarks.datasets import FloatArray
from causal_arrow_lab.benchmarks.environments import installed_versions, worker_command, worker_variables
from causal_arrow_lab.benchmarks.methods.protocol import (
    Estimate,
    Method,
    MethodOptions,
    Solve,
    file_checksum,
    refuse_argument,
)

SDCD_SETTINGS = {"standardized": True}
AVICI_SETTINGS = {"threshold": 0.5}
NOTEARS_SETTINGS = {"lambda1": 0.1, "w_threshold": 0.3, "standardized": True}


def prepare_isolated(name: str, argument: str, options: MethodOptions, *, settings: Mapping[str, Any]) -> Method:
    """A method whose environment must be installed."""
    refuse_argument(name, argument)
    versions = installed_versions(name, options.environments)
    command = worker_command(name, options.environments)
    return Method(name, settings, versions, lambda: start_isolated(name, command))


def prepare_avici(name: str, argument: str, options: MethodOptions) -> Method:
    """AVICI with the user's weights."""
    refuse_argument(name, argument)
    versions = installed_versions(name, options.environments)
    weights = options.avici_weights
    if weights is None:
        raise BenchmarkError(
            "AVICI comes without weights. Download a model from its authors (larslorch/avici on Hugging Face, for "
            "example the folder scm-v0) and say where it is: --avici-weights DIR. Its checkpoint is a pickle, which "
            "can run any code: use only files you trust."
        )
    checkpoints = sorted(weights.glob("*.pkl"))
    if not checkpoints or not (weights / "kwargs.json").is_file():
        raise BenchmarkError(
            f"Expected kwargs.json and checkpoint_*.pkl of AVICI in {weights}, and they are not there."
        )
    command = [*worker_command(name, options.environments), "--weights", str(weights.resolve())]
    settings = {
        **AVICI_SETTINGS,
        "weights": weights.resolve().name,
        "weights_checksum": file_checksum(checkpoints[-1]),  # avici takes the last one too
    }
    return Method(name, settings, versions, lambda: start_isolated(name, command))


def start_isolated(name: str, command: list[str]) -> Solve:
    """Start the process, which ends when its standard input closes."""
    folder = tempfile.TemporaryDirectory(prefix=f"causal-arrow-{name}-")
    complaints = (Path(folder.name) / "stderr").open("w+", encoding="utf-8", errors="replace")
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=complaints, env=worker_variables(), text=True
    )
    _reply(process, complaints, name)

    def solve(data: FloatArray, generator: np.random.Generator) -> Estimate:
        table, answer = Path(folder.name) / "table.npz", Path(folder.name) / "answer.npz"
        np.savez(table, data=data)
        assert process.stdin is not None
        process.stdin.write(json.dumps({"input": str(table), "output": str(answer)}) + "\n")
        process.stdin.flush()
        _reply(process, complaints, name)
        with np.load(answer) as file:
            return Estimate(
                adjacency=file["adjacency"] != 0,
                scores=file["scores"].astype(np.float64),
                probabilities=file["probabilities"].astype(np.float64) if "probabilities" in file else None,
                seconds=float(file["seconds"]),
            )

    return solve


def _reply(process: subprocess.Popen[str], complaints: IO[str], name: str) -> None:
    """Wait for one line, and raise BenchmarkError if it reports a failure."""
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        complaints.seek(0)
        lines = [text.strip() for text in complaints.read().splitlines() if text.strip()]
        message = lines[-1] if lines else "no message"
        raise BenchmarkError(f"The process of {name} ended with exit status {process.wait()}: {message}.")
    reply = json.loads(line)
    if reply["status"] == "failed":
        raise BenchmarkError(reply["error"])
