"""The program `causal-arrow-lab`: what it writes, and that every mistake is one sentence and status 2."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from causal_arrow.graphs.files import read_graph
from causal_arrow_lab.cli.commands import PROGRAM
from causal_arrow_lab.synthetic import TaskDistribution

Run = Callable[..., tuple[int, str, str]]


def assert_one_sentence(result: tuple[int, str, str], hint: str) -> None:
    status, out, err = result
    assert (status, out) == (2, "")
    assert err.startswith("causal-arrow")
    assert err.count("\n") == 1
    assert hint in err


# Simulate


def test_simulated_tables_come_with_their_graphs(run: Run, tmp_path: Path) -> None:
    arguments = ("--tables", 2, "--observations", 30, "--variables", 5, "--only", "linear", "--seed", 3)
    assert run("simulate", "-o", tmp_path / "made", *arguments)[0] == 0
    assert run("simulate", "-o", tmp_path / "again", *arguments)[0] == 0
    assert run("simulate", "-o", tmp_path / "one", "--observations", 9)[2].startswith("Wrote 1 table and its graph to")
    for name in ("table-1.csv", "graph-1.json", "table-2.csv", "graph-2.json"):
        assert (tmp_path / "made" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()
    table = pd.read_csv(tmp_path / "made" / "table-2.csv")
    graph = read_graph(tmp_path / "made" / "graph-2.json")
    assert table.shape == (30, 5)
    assert tuple(table.columns) == graph.names
    content = json.loads((tmp_path / "made" / "graph-2.json").read_text())
    assert content["made_by"]["mechanisms"] == "linear"
    position = {name: place for place, name in enumerate(content["order"])}
    assert all(position[cause] < position[effect] for cause, effect in graph.edges())


def test_simulated_tables_of_any_kind_are_written_as_people_have_them(run: Run, tmp_path: Path) -> None:
    arguments = ("--tables", 150, "--observations", 25, "--variables", 4, "--distribution", "any", "--seed", 5)
    assert run("simulate", "-o", tmp_path, *arguments)[0] == 0
    batch = TaskDistribution.any().sample(150, 25, 4, torch.Generator().manual_seed(5))
    tables, confounded = batch.tables, batch.truth.confounded
    assert tables.observed is not None
    assert tables.intervened is not None
    assert tables.levels is not None
    assert confounded is not None
    kinds = set()
    for number in range(150):
        table = pd.read_csv(tmp_path / f"table-{number + 1}.csv", dtype=str)
        content = json.loads((tmp_path / f"graph-{number + 1}.json").read_text())
        assert read_graph(tmp_path / f"graph-{number + 1}.json").names == ("x1", "x2", "x3", "x4")
        columns = content.get(
            "columns", [{"name": f"x{place}", "kind": "number", "levels": []} for place in range(1, 5)]
        )
        kinds |= {column["kind"] for column in columns}
        for place, column in enumerate(columns):
            cells = table[column["name"]]
            assert (cells.notna().to_numpy() == tables.observed[number, :, place].numpy()).all()
            there = cells.notna().to_numpy()
            values = [column["levels"].index(cell) if column["levels"] else float(cell) for cell in cells[there]]
            assert np.abs(np.array(values) - tables.values[number, :, place].numpy()[there]).max() < 1e-5
            assert len(column["levels"]) == int(tables.levels[number, place])
        marks = tables.intervened[number]
        assert ("intervened" in table) == bool(marks.any())
        if marks.any():
            for text, row in zip(table["intervened"].fillna(""), marks.tolist(), strict=True):
                assert text == ";".join(f"x{place + 1}" for place in range(4) if row[place])
        pairs = {frozenset(pair.values()) for pair in content["hidden_causes"]}
        assert pairs == {frozenset((f"x{j + 1}", f"x{k + 1}")) for j, k in confounded[number].nonzero().tolist()}
    assert kinds == {"number", "binary", "ordered", "category"}


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="has no file system that nobody can write to")
def test_where_nobody_can_write_is_one_sentence(run: Run) -> None:
    assert_one_sentence(run("simulate", "--output", "/proc/made"), "/proc")


@pytest.mark.parametrize(
    "options",
    [
        ("--tables", 2**70),
        ("--tables", 10**7),
        ("--observations", 10**15),
        ("--variables", 10**6),
        ("--variables", 10**4, "--observations", 10**5),
    ],
    ids=str,
)
def test_tables_that_fit_no_memory_are_refused(options: tuple[object, ...], run: Run, tmp_path: Path) -> None:
    assert_one_sentence(run("simulate", "--output", tmp_path / "made", *options), "cells")
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    "options",
    [("--seed", 2**70), ("--seed", -1), ("--tables", 0), ("--tables", -3), ("--observations", 1), ("--variables", 1.5)],
    ids=str,
)
def test_numbers_out_of_range_are_wrong_usage(options: tuple[object, ...], run: Run, tmp_path: Path) -> None:
    status, out, err = run("simulate", "--output", tmp_path / "made", *options)
    assert (status, out) == (2, "")
    assert str(options[0]) in err
    assert "Traceback" not in err
    assert "This is a bug" not in err
    assert list(tmp_path.iterdir()) == []


def test_the_largest_seed_is_a_seed(run: Run, tmp_path: Path) -> None:
    options = ("--variables", 2, "--observations", 5, "--seed", 2**63 - 1)
    assert run("simulate", "--output", tmp_path / "made", *options)[0] == 0


# Output


@pytest.mark.parametrize(
    "command",
    [
        ("simulate", "--output"),
        ("benchmark", "networks", "--output"),
    ],
    ids=" ".join,
)
def test_an_empty_name_is_not_the_current_folder(
    command: tuple[str, ...], run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert_one_sentence(run(*command, ""), "empty")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["a" * 300, "new/" + "a" * 300, "ä" * 200, "a/" * 3000, "file", "file/a"])
def test_a_name_that_cannot_be_a_folder_is_refused_before_any_work(
    name: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("taken")
    monkeypatch.setitem(sys.modules, "torch", None)  # whoever begins to work would not get far
    assert_one_sentence(run("simulate", "--output", name), "")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


COMMANDS_THAT_PRINT = {
    "help": ["--help"],
    "version": ["--version"],
    "simulate": ["simulate", "--help"],
    "benchmark": ["benchmark"],
    "pretrain": ["pretrain", "--help"],
}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="has no device that is always full")
@pytest.mark.parametrize("command", COMMANDS_THAT_PRINT)
def test_a_full_device_is_one_sentence_whatever_the_command(
    command: str, run: Run, small_model_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open("/dev/full", "wb") as full:
        stream = io.TextIOWrapper(full, encoding="utf-8")
        monkeypatch.setattr(sys, "stdout", stream)
        monkeypatch.setattr(sys, "__stdout__", stream)
        arguments = [str(small_model_folder) if part == "MODEL" else part for part in COMMANDS_THAT_PRINT[command]]
        status, _, err = run(*arguments)
    assert status == 2
    assert err.splitlines()[-1].endswith("Cannot write to standard output: No space left on device.")
    assert "Traceback" not in err


def test_every_command_is_tried_on_a_full_device() -> None:
    assert set(PROGRAM.commands) <= set(COMMANDS_THAT_PRINT)


@pytest.mark.parametrize("start", [["-m", "causal_arrow_lab"], ["-c", "from causal_arrow_lab.cli import main; main()"]])
def test_ctrl_c_while_torch_loads_is_silent(start: list[str], tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("import os, signal, time\nos.kill(os.getpid(), signal.SIGINT); time.sleep(9)\n")
    homes = [str(Path(sys.modules[name].__file__ or "").parent.parent) for name in ("causal_arrow", "causal_arrow_lab")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *homes])}
    command = [sys.executable, *start, "simulate", "-o", "made"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


# Pretrain, and help


def test_names_that_do_not_exist_are_one_sentence_and_status_2(run: Run, tmp_path: Path) -> None:
    assert_one_sentence(run("pretrain", tmp_path / "none.toml"), "none.toml")
    assert_one_sentence(run("simulate", "-o", tmp_path / "made", "--distribution", "real"), "real")
    assert_one_sentence(run("simulate", "-o", tmp_path / "made", "--only", "quadratic"), "quadratic")


def test_pretrain_passes_everything_on(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from causal_arrow_lab.pretraining import train

    asked: dict[str, object] = {}

    def pretend(config: object, directory: Path, **settings: object) -> None:
        asked.update(settings, directory=directory)

    monkeypatch.setattr(train, "pretrain", pretend)
    config = "smoke"
    assert run("pretrain", config, "--minutes", 2, "--decay-minutes", 0.5, "--init", "there", "--device", "cpu")[0] == 0
    assert asked["directory"] == Path("runs/smoke")
    assert (asked["minutes"], asked["decay_minutes"], asked["init"], asked["resume"]) == (2, 0.5, "there", False)
    assert run("pretrain", config, "--resume", tmp_path)[0] == 0
    assert asked["resume"] is True
    assert asked["directory"] == tmp_path


def test_help_teaches_with_examples_and_comes_without_torch(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    for command in PROGRAM.commands:
        status, out, _ = run(command, "--help")
        assert status == 0
        assert f"causal-arrow-lab {command}" in out
        assert "Examples" in out
    assert run("--version")[1].startswith("causal-arrow-lab 0.")
