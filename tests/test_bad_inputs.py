"""A thousand inputs that are broken, odd or hostile; `make fuzz` tries twenty thousand. See `bad_inputs.py`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import bad_inputs
from bad_inputs import KINDS, Broken, Case, World, cases, check_graph, check_tiers, run_case
from causal_arrow.errors import TableError

CASES = [case for case in cases(1000, seed=0) if case.family != "bombs"]  # which test_bombs.py tries


@pytest.mark.parametrize("family", [family for family in KINDS if family != "bombs"])
def test_nothing_that_comes_in_breaks_what_must_hold(family: str, small_model_folder: Path) -> None:
    tried = [case for case in CASES if case.family == family]
    problems = {str(case): problem for case in tried if (problem := run_case(case, small_model_folder))}
    assert not problems, "\n\n".join(f"{case}\n    {problem}" for case, problem in problems.items())


def test_there_are_more_than_six_hundred_kinds_of_nine_families_and_each_is_tried() -> None:
    families = {"files", "frames", "knowledge", "options", "weights", "arguments", "saved", "bombs", "series"}
    assert set(KINDS) == families
    kinds = {(family, kind) for family in KINDS for kind in KINDS[family]}
    assert {(case.family, case.kind) for case in cases(1000, seed=0)} == kinds
    assert len(kinds) >= 600


@pytest.mark.parametrize("kind", ["damaged_text", "plain", "damaged_gzip"])
def test_a_case_is_the_same_whenever_it_is_run(kind: str, tmp_path: Path) -> None:
    maker, _ = KINDS["files"][kind]
    made = []
    for folder in (tmp_path / "one", tmp_path / "two"):
        folder.mkdir()
        made.append(maker(World(Case("files", kind, 5).random(), folder, tmp_path)).read_bytes())
    assert made[0] == made[1]
    other = maker(World(Case("files", kind, 6).random(), tmp_path, tmp_path)).read_bytes()
    assert other != made[0]


# What is wrong is noticed


@pytest.fixture
def spoiled(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    with monkeypatch.context() as patch:
        yield patch


def first_problem(family: str, kind: str, model: Path) -> str:
    return next(filter(None, (run_case(Case(family, kind, seed), model) for seed in range(20))), "")


def test_an_exception_that_is_no_arrow_error_is_noticed(spoiled: pytest.MonkeyPatch, small_model_folder: Path) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("wires crossed")

    spoiled.setattr(bad_inputs, "read_table", fail)
    assert "wires crossed" in first_problem("frames", "frame", small_model_folder)


def test_a_bug_on_the_command_line_is_noticed(spoiled: pytest.MonkeyPatch, small_model_folder: Path) -> None:
    from causal_arrow.discovery import pipeline

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("wires crossed")

    spoiled.setattr(pipeline, "discover", fail)
    assert "This is a bug" in first_problem("options", "every_rule", small_model_folder)


def test_refusing_what_is_sound_and_taking_what_is_not_are_noticed(
    spoiled: pytest.MonkeyPatch, small_model_folder: Path
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise TableError("No.")

    spoiled.setattr(bad_inputs, "read_table", refuse)
    assert "should work" in first_problem("frames", "frame", small_model_folder)
    spoiled.setattr(bad_inputs, "read_table", lambda *_, **__: None)
    assert "should be refused" in first_problem("frames", "constant", small_model_folder)


def test_changing_the_callers_table_is_noticed(spoiled: pytest.MonkeyPatch, small_model_folder: Path) -> None:
    def change(table: np.ndarray, **_: object) -> None:
        table[0, 0] += 1

    spoiled.setattr(bad_inputs, "read_table", change)
    assert "was changed" in first_problem("frames", "array", small_model_folder)


def test_cycles_probabilities_and_orders_are_checked() -> None:
    chain = np.eye(3, k=1)
    check_graph(chain, np.full((3, 3), 0.5), [0, 1, 2])
    check_tiers([["a"], ["b", "c"]], ["a", "c", "b"])
    for wrong in (
        lambda: check_graph(chain + np.eye(3, k=-2)),
        lambda: check_graph(chain, np.full((3, 3), 1.5)),
        lambda: check_graph(chain, np.full((3, 3), np.nan)),
        lambda: check_graph(chain, None, [0, 2, 1]),
        lambda: check_tiers([["a"], ["b", "c"]], ["b", "a", "c"]),
    ):
        with pytest.raises(Broken):
            wrong()


def test_the_program_prints_its_seed_and_a_table_by_surface() -> None:
    command = [sys.executable, bad_inputs.__file__, "--family", "knowledge", "--kind", "cycle", "--case-seed", "3"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert printed[0] == "Seed 0: 1 cases."
    assert printed[1].endswith("0 wrong")
    assert printed[2].split() == ["surface", "answered", "refused"]
    assert printed[3].split() == ["Python", "0", "1"]
