"""Which of the bundled models reads a table, where that is left open."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from causal_arrow import Arrow, load_model
from causal_arrow.discovery.suited import FEW_VARIABLES, MANY_VARIABLES, suited_model
from causal_arrow.tables.reading import read_table
from causal_arrow.tables.table import Table

Run = Callable[..., tuple[int, str, str]]


def numbers(variables: int = 12, observations: int = 60) -> pd.DataFrame:
    random = np.random.default_rng(0)
    values = random.normal(size=(observations, variables))
    values[:, 1] += values[:, 0]
    return pd.DataFrame(values, columns=[f"v{place}" for place in range(variables)])


def with_a_category(frame: pd.DataFrame) -> Table:
    return read_table(frame.assign(v0=np.where(frame["v0"] > 0, "high", "low")))


def with_a_missing_cell(frame: pd.DataFrame) -> Table:
    return read_table(frame.mask(np.eye(*frame.shape, dtype=bool)))


def with_an_experiment(frame: pd.DataFrame) -> Table:
    return read_table(frame, interventions=["v1" if row < 20 else None for row in range(len(frame))])


def with_environments(frame: pd.DataFrame) -> Table:
    return read_table(frame, environments=[row % 3 for row in range(len(frame))])


def test_a_complete_table_of_many_numbers_is_read_by_arrow_base() -> None:
    assert suited_model("auto", read_table(numbers())) == "arrow-base"
    assert suited_model("auto", read_table(numbers(FEW_VARIABLES))) == "arrow-base"
    assert suited_model("auto", read_table(numbers(FEW_VARIABLES - 1))) == "arrow-any"
    assert suited_model("auto", read_table(numbers(MANY_VARIABLES))) == "arrow-base"
    assert suited_model("auto", read_table(numbers(MANY_VARIABLES + 1))) == "arrow-any"


@pytest.mark.parametrize("changed", [with_a_category, with_a_missing_cell, with_an_experiment, with_environments])
def test_every_other_table_is_read_by_arrow_any(changed: Callable[[pd.DataFrame], Table]) -> None:
    assert suited_model("auto", changed(numbers())) == "arrow-any"


def test_a_model_that_was_named_is_kept() -> None:
    table = read_table(numbers(3))
    network = load_model("arrow-base")
    for named in ("arrow-base", "arrow-any", Path("auto"), network):
        assert suited_model(named, table) is named


def test_imputed_numbers_are_complete() -> None:
    frame = numbers()
    frame.iloc[0, 0] = np.nan
    assert Arrow().fit(frame).answer_.model == "arrow-any"
    assert Arrow(missing="impute").fit(frame).answer_.model == "arrow-base"


def test_the_answer_is_that_of_the_model_that_was_chosen() -> None:
    frame = numbers()
    chosen, named = Arrow().fit(frame), Arrow("arrow-base").fit(frame)
    np.testing.assert_array_equal(chosen.edge_probabilities_, named.edge_probabilities_)
    assert (chosen.bootstrap(frame, 3).frequencies == named.bootstrap(frame, 3).frequencies).all()
    small = frame.iloc[:, :4]
    assert Arrow().fit(small).confounding_probabilities_ is not None


@pytest.mark.parametrize(("columns", "model"), [(12, "arrow-base"), (4, "arrow-any")])
def test_the_command_line_says_which_model_read_the_table(columns: int, model: str, run: Run, tmp_path: Path) -> None:
    numbers(columns).to_csv(tmp_path / "t.csv", index=False)
    status, out, _ = run("discover", tmp_path / "t.csv", "--json")
    assert status == 0
    assert json.loads(out)["model"] == model
    assert run("check", tmp_path / "t.csv")[0] == 0
