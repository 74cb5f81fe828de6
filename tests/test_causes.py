"""Screening keeps the causes that count, whatever their form, and the network judges what is left."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from causal_arrow import causes_of, discover, load_example
from causal_arrow.discovery import causes as module
from causal_arrow.errors import ConfigurationError, TableError

ROWS, NOISE = 400, 300


@pytest.fixture(scope="module")
def wide() -> pd.DataFrame:
    """y is made of a line, a square, a level, and two columns that cancel unless both are known; the rest is noise."""
    random = np.random.default_rng(0)
    columns: dict[str, Any] = {f"noise{number}": random.normal(size=ROWS) for number in range(NOISE)}
    columns["line"] = random.normal(size=ROWS)
    columns["square"] = random.normal(size=ROWS)
    columns["hidden"] = random.normal(size=ROWS)
    columns["masked"] = columns["hidden"] + 0.4 * random.normal(size=ROWS)
    level = random.integers(3, size=ROWS)
    columns["level"] = np.array(["low", "none", "high"])[level]
    columns["constant"] = 1.0
    columns["y"] = (
        columns["line"]
        + 0.8 * columns["square"] ** 2
        + 1.5 * (columns["masked"] - columns["hidden"])
        + np.array([-1.0, 0.0, 1.0])[level]
        + random.laplace(size=ROWS)
    )
    table = pd.DataFrame(columns)
    table.loc[random.random(ROWS) < 0.1, "line"] = np.nan
    return table[random.permutation(table.columns)]


@pytest.fixture(scope="module")
def causes(wide: pd.DataFrame) -> module.ProbableCauses:
    return causes_of(wide, "y", keep=25, progress=False)


def test_screening_keeps_lines_squares_levels_and_causes_that_mask_each_other(causes: module.ProbableCauses) -> None:
    assert {"line", "square", "level", "masked", "hidden"} <= set(causes.names)
    assert len(causes.names) == 25
    assert causes.screened == NOISE + 6
    assert causes.unusable == ("constant",)
    assert {"line", "masked"} <= set(causes.names[:8])


def test_a_direct_cause_is_a_cause_and_the_most_probable_come_first(causes: module.ProbableCauses) -> None:
    frame = causes.to_frame()
    assert (frame.cause_probability >= frame.direct).all()
    assert frame.cause_probability.round(3).is_monotonic_decreasing
    assert causes.to_dict()["causes"][0]["cause"] == causes.names[0]
    for text in (str(causes), causes._repr_html_()):
        assert "after screening 306" in text
        assert "is not ruled out as a cause" in text


def test_the_order_of_columns_makes_no_difference(causes: module.ProbableCauses, wide: pd.DataFrame) -> None:
    other = causes_of(wide[sorted(wide.columns)], "y", keep=25, progress=False)
    assert set(other.names) == set(causes.names)
    assert dict(zip(other.names, other.direct, strict=True)) == pytest.approx(
        dict(zip(causes.names, causes.direct, strict=True)), abs=1e-3
    )


def test_without_anything_to_screen_it_is_the_answer_of_discover() -> None:
    table = load_example("hospital")
    causes, found = causes_of(table, "stay", roots=["age"], progress=False), discover(table, roots=["age"])
    assert (causes.screened, causes.unusable) == (6, ())
    usual = found.probabilities["stay"].to_dict()
    assert dict(zip(causes.names, causes.direct, strict=True)) == {name: usual[name] for name in causes.names}
    paths = found.ancestor_probabilities()["stay"].to_dict()
    assert dict(zip(causes.names, causes.probability, strict=True)) == pytest.approx(
        {name: max(paths[name], usual[name]) for name in causes.names}
    )
    assert "screening" not in str(causes)


def test_columns_that_the_knowledge_names_are_kept(wide: pd.DataFrame) -> None:
    causes = causes_of(wide, "y", keep=10, forbidden=["noise7 -> y"], beliefs={"root noise9": 0.8}, progress=False)
    assert {"noise7", "noise9"} <= set(causes.names)
    assert len(causes.names) == 10
    assert causes.direct[causes.names.index("noise7")] == 0


def test_an_outcome_with_levels_is_screened_by_each_of_its_levels() -> None:
    random = np.random.default_rng(1)
    table = pd.DataFrame(random.normal(size=(300, 60)), columns=[f"x{number}" for number in range(60)])
    middle = np.abs(table["x3"]) < 0.7
    table["y"] = np.where(middle, "middle", np.where(table["x5"] > 0, "up", "down"))
    assert {"x3", "x5"} <= set(causes_of(table, "y", keep=10, progress=False).names)


def test_progress_goes_forward_to_the_end(wide: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    import contextlib

    heard: list[float] = []

    @contextlib.contextmanager
    def bar(*options: Any, **more: Any) -> Any:
        yield lambda stage, share: heard.append(round(share, 9))

    monkeypatch.setattr(module, "progress_bar", bar)
    causes_of(wide, "y", keep=10)
    assert heard == sorted(heard)
    assert heard[0] == 0
    assert heard[-1] == pytest.approx(0.9)


@pytest.mark.parametrize(
    ("error", "words", "asked"),
    [
        (ConfigurationError, "did you mean 'line'", {"outcome": "lin"}),
        (ConfigurationError, "Expected keep to be a whole number, from 10 to 500", {"outcome": "y", "keep": 3}),
        (ConfigurationError, "not for time series", {"outcome": "y", "lags": 2}),
        (TableError, "Column 'constant' .* is constant", {"outcome": "constant", "keep": 10}),
    ],
)
def test_a_bad_question_is_one_sentence(
    error: type[Exception], words: str, asked: dict[str, Any], wide: pd.DataFrame
) -> None:
    with pytest.raises(error, match=words):
        causes_of(wide, progress=False, **asked)


def test_too_many_columns_are_refused() -> None:
    with pytest.raises(TableError, match="20,001 columns, more than the 20,000"):
        causes_of(np.zeros((30, 20_001)), "x1")


def test_the_command_prints_them(wide: pd.DataFrame, tmp_path: Path, run: Any) -> None:
    wide.to_csv(tmp_path / "wide.csv", index=False)
    status, out, _ = run("causes", tmp_path / "wide.csv", "--outcome", "y", "--keep", 10, "--show", 3)
    assert (status, "Probable causes of y" in out) == (0, True)
    status, out, _ = run("causes", tmp_path / "wide.csv", "--outcome", "y", "--keep", 10, "--json")
    assert len(json.loads(out)["causes"]) == 10
