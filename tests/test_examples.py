"""The tables that come with the package, what is known of them, and the demo that tells their story."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

from causal_arrow import Arrow, load_example
from causal_arrow.errors import ArrowError
from causal_arrow.examples import EXAMPLES
from causal_arrow.examples.equations import HOSPITAL_EFFECTS, bundled_tables, draw_patients
from causal_arrow.graphs.dag import is_acyclic

ROOT = Path(__file__).parents[1]


def test_the_bundled_tables_are_those_of_the_equations() -> None:
    for name, made in bundled_tables().items():
        pd.testing.assert_frame_equal(load_example(name), made, check_exact=False)


@pytest.mark.parametrize("name", EXAMPLES)
def test_what_is_known_of_an_example_is_about_its_columns_and_has_no_cycle(name: str) -> None:
    table = load_example(name)
    places = {column: place for place, column in enumerate(table.columns)}
    graph = np.zeros((len(places), len(places)), dtype=bool)
    for cause, effect, *lag in table.attrs["edges"]:
        graph[places[cause], places[effect]] = lag in ([], [0])
    assert is_acyclic(graph)
    assert table.attrs["title"]


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_goes_into_a_file_with_what_is_known_of_it(name: str, tmp_path: Path) -> None:
    table = load_example(name)
    table.to_parquet(tmp_path / "table.parquet")
    again = pd.read_parquet(tmp_path / "table.parquet")
    pd.testing.assert_frame_equal(again, table)
    assert again.attrs.get("effects") == table.attrs.get("effects")


def test_the_hospital_has_every_kind_of_column_and_missing_cells() -> None:
    table = load_example("hospital")
    assert table["ward"].nunique() == 3
    assert set(table["drug"]) == {0, 1}
    assert 0.02 < table.isna().mean().max() < 0.1
    assert not load_example("hospital-trial").isna().any().any()


def test_the_true_effects_are_those_of_trials() -> None:
    trial = draw_patients(200_000, np.random.default_rng(0), trial=True)
    for outcome in ("stay", "day3"):
        by_drug = trial.groupby("drug")[outcome].mean()
        assert by_drug[1] - by_drug[0] == pytest.approx(
            HOSPITAL_EFFECTS["drug", outcome], abs=0.2 if outcome == "day3" else 0.05
        )


def test_the_plain_difference_has_the_wrong_sign_and_the_effect_the_right_one(usual_model: str) -> None:
    if usual_model != "arrow-base":
        pytest.skip("needs a network that has learned")
    table = load_example("hospital")
    by_drug = table.groupby("drug")["stay"].mean()
    assert by_drug[1] - by_drug[0] > 0.3
    known = {"roots": ["age", "smoker", "ward"]}
    order = {"ward": ["west", "north", "south"]}
    arrow = Arrow(usual_model, knowledge=known, ordered=order, missing="impute").fit(table)
    before = arrow.effect("drug", "stay")
    assert before.interval[0] < -1.8 < before.interval[1]
    assert arrow.next_experiment(("drug", "stay")).best.name == "drug"
    after = arrow.learn_from_experiment("drug", load_example("hospital-trial")).effect("drug", "stay")
    assert after.interval[0] < -1.8 < after.interval[1] < 0
    assert np.diff(after.interval) < np.diff(before.interval)


def test_an_unknown_example_is_one_sentence() -> None:
    with pytest.raises(ArrowError, match="There is no example 'hospitals': did you mean 'hospital'"):
        load_example("hospitals")


@pytest.fixture
def demo(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("demo", ROOT / "examples" / "demo.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("network", ["small_model_folder", "any_table_model_folder"])
def test_the_demo_runs_with_a_network_of_numbers_and_with_one_that_reads_every_table(
    network: str,
    demo: ModuleType,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = request.getfixturevalue(network)
    monkeypatch.setattr(sys, "argv", ["demo.py", "--model", str(folder), "--output", str(tmp_path / "demo")])
    demo.main()
    said = capsys.readouterr().out
    for part in (
        "1. A table",
        "It seems to add 0.60 days",
        "The truth, -1.80",
        "4. What to do next",
        "853 immune cells",
    ):
        assert part in said
    pictures = {path.name for path in (tmp_path / "demo").glob("*.png")}
    assert pictures >= {"hospital.png", "effect-before.png", "next-experiment.png", "effect-after.png"}
