"""Laws of memory: what a table takes is known before the network starts, and too little is one clear error."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from causal_arrow import storage
from causal_arrow.discovery import inference
from causal_arrow.discovery.inference import ready_model
from causal_arrow.discovery.pipeline import discover
from causal_arrow.discovery.settings import Settings
from causal_arrow.errors import COMMAND_LINE, TableError


def table(observations: int = 200, variables: int = 12) -> np.ndarray:
    random = np.random.default_rng(0)
    noise = random.standard_normal((observations, variables))
    return noise @ (np.eye(variables) + np.triu(random.uniform(-1, 1, (variables, variables)), 1))


def test_too_little_memory_is_an_error_before_the_network_starts(
    small_model_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "_available", lambda: 10_000)
    with pytest.raises(
        TableError, match=r"needs too much memory: 12 variables take up to .* and 0.0 GB are free"
    ) as told:
        discover(table(), Settings(model=small_model_folder))
    assert "--columns" in told.value.worded(COMMAND_LINE)
    assert "read_table(table, columns=[...])" in str(told.value)


def test_the_workload_is_known_before_the_network_starts(small_model_folder: Path) -> None:
    heard: list[inference.Workload] = []
    discover(table(), Settings(model=small_model_folder), before=heard.append)
    assert [(work.observations, work.variables) for work in heard] == [(200, 12)]
    assert heard[0].memory > 0


def test_memory_grows_with_pairs_and_is_bounded_in_observations() -> None:
    network = ready_model("arrow-base", "cpu")
    wide = [inference.workload(network, 100, variables, None).memory for variables in (500, 1000)]
    assert 3.5 < wide[1] / wide[0] < 4.0
    long = [inference.workload(network, observations, 20, None).memory for observations in (10**6, 10**7)]
    assert long[0] == long[1] < 3e9


def test_a_thousand_variables_fit_into_ten_gigabytes() -> None:
    assert inference.workload(ready_model("arrow-base", "cpu"), 1000, 1000, None).memory < 10e9


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux counts the memory of one program")
@pytest.mark.parametrize(("observations", "variables"), [(60, 220), (20_000, 10)])
def test_a_table_takes_no_more_memory_than_was_said(observations: int, variables: int) -> None:
    program = f"""
import numpy as np, re
from causal_arrow import Settings, discover
def peak():  # the other counter includes what the parent had
    return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1e6
random = np.random.default_rng(0)
discover(random.normal(size=(30, 4)))
before = peak()
heard = []
discover(random.normal(size=({observations}, {variables})), before=heard.append)
print(peak() - before, heard[0].memory / 1e9)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    taken, said = map(float, done.stdout.split())
    assert 0.3 * said < taken < 1.1 * said
