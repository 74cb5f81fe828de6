"""Cells, rows and columns without values: what is left out, what it costs, and what is said about it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from causal_arrow import Arrow, load_example, read_table
from causal_arrow.errors import COMMAND_LINE, TableError
from causal_arrow.tables import _text, sources
from causal_arrow.tables._facts import FEW_TOGETHER
from causal_arrow.tables.report import inspect_table
from causal_arrow.tables.table import Abilities, Finding, Table

pytestmark = pytest.mark.filterwarnings("ignore::causal_arrow.errors.ArrowWarning")

Run = Callable[..., tuple[int, str, str]]
NUMBERS_ONLY = Abilities("the model arrow-strict", frozenset())


@pytest.fixture
def patients() -> pd.DataFrame:
    return load_example("hospital").dropna().head(300).reset_index(drop=True)


def with_empty_rows(frame: pd.DataFrame, *places: int) -> pd.DataFrame:
    """The frame with rows without a value at these places of the result."""
    rows = [place for place in range(len(frame) + len(places)) if place not in places]
    return frame.set_axis(rows).reindex(range(len(frame) + len(places)))


def found(table: Table, kind: str) -> list[Finding]:
    return [finding for finding in inspect_table(table).findings if finding.kind == kind]


# Rows without a value


def test_rows_without_a_value_change_nothing_and_are_counted(
    patients: pd.DataFrame, any_table_model_folder: Path
) -> None:
    longer = with_empty_rows(patients, 0, 7, *range(250, 300), 352)
    plain, other = read_table(patients), read_table(longer)
    np.testing.assert_array_equal(plain.values, other.values)
    assert plain.columns == other.columns
    (note,) = [each for each in other.findings if "no value at all" in each.message]
    assert (note.severity, note.message) == ("note", "53 of 353 rows have no value at all and were left out.")
    assert not found(other, "missing")
    one, two = (Arrow(any_table_model_folder).fit(table) for table in (patients, longer))
    pd.testing.assert_frame_equal(one.edge_probabilities_, two.edge_probabilities_, check_exact=True)
    two.stability(n_resamples=2, progress=False)


@pytest.mark.parametrize("long", [False, True])
@pytest.mark.parametrize("ending", ["csv", "xlsx", "parquet"])
def test_blank_lines_of_files_are_no_observations(
    ending: str, long: bool, patients: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip({"xlsx": "openpyxl"}.get(ending, "pyarrow"))
    if long:
        for module in (sources, _text):
            monkeypatch.setattr(module, "LONG_CELLS", 0)
            monkeypatch.setattr(module, "CELLS_PER_PART", 700)
    longer, path = with_empty_rows(patients, 3, *range(200, 240)), tmp_path / f"t.{ending}"
    {"csv": longer.to_csv, "xlsx": longer.to_excel}.get(ending, lambda path, index: longer.to_parquet(path))(
        path, index=False
    )
    table = read_table(path)
    np.testing.assert_array_equal(table.values, read_table(patients).values)
    assert any("41 of 341 rows have no value at all" in finding.message for finding in table.findings)


def test_labels_stay_with_the_rows_that_are_kept(patients: pd.DataFrame) -> None:
    empty = (0, 50, 301)
    longer, kept = with_empty_rows(patients, *empty), [row for row in range(303) if row not in empty]
    labels = ["drug" if row % 3 == 0 else "" for row in range(303)]
    sites = ["nowhere" if row in empty else "ab"[row % 2] for row in range(303)]
    table = read_table(longer, interventions=labels, environments=sites)
    expected = read_table(
        patients, interventions=[labels[row] for row in kept], environments=[sites[row] for row in kept]
    )
    np.testing.assert_array_equal(table.values, expected.values)
    np.testing.assert_array_equal(table.intervened, expected.intervened)
    assert table.columns == expected.columns  # without an environment of empty rows alone
    inside = longer.assign(what=labels, site=sites)
    inside.loc[[0], ["what", "site"]] = None  # blank rows have no labels either
    again = read_table(inside, interventions="what", environments="site")
    np.testing.assert_array_equal(again.values, expected.values)
    np.testing.assert_array_equal(again.intervened, expected.intervened)
    lost = read_table(longer, interventions=["drug" if row in empty else "age" for row in range(303)])
    (warning,) = [each for each in lost.findings if each.severity == "warning" and each.columns == ("drug",)]
    assert "Every observation in which an experiment set 'drug' was left out" in warning.message


def test_places_in_messages_are_those_of_the_source(patients: pd.DataFrame) -> None:
    longer = with_empty_rows(patients.assign(site=["a", None, "b"] * 100), 0, 1)
    with pytest.raises(TableError, match="'site' are missing in 100 observations, the first on observation 4"):
        read_table(longer, environments="site")


def test_rows_are_empty_by_the_columns_that_are_used(patients: pd.DataFrame) -> None:
    patients.loc[:9, ["age", "stay"]] = np.nan
    assert read_table(patients).observations == 300
    assert read_table(patients, columns=["age", "stay"]).observations == 290
    again = read_table(read_table(patients), columns=["age", "stay"])
    assert any("10 of 300 rows have no value at all" in finding.message for finding in again.findings)


def test_too_few_rows_with_a_value_are_refused(patients: pd.DataFrame) -> None:
    few = with_empty_rows(patients.head(19), *range(19, 400))
    with pytest.raises(TableError, match=r"^Only 19 of 400 rows have any value: at least 20 are needed\.$"):
        read_table(few)


# Columns that are never observed together


def test_two_columns_that_are_hardly_observed_together_get_a_warning(patients: pd.DataFrame) -> None:
    patients.loc[:149, "age"] = np.nan
    patients.loc[150:, "stay"] = np.nan
    (warning,) = found(read_table(patients), "rarely_together")
    assert (warning.severity, warning.columns) == ("warning", ("age", "stay"))
    assert warning.message == (
        "None of 300 rows has both 'age' and 'stay': an edge between them rests only on other columns."
    )
    patients.loc[:6, "age"] = 50
    patients.loc[:145, "day3"] = np.nan
    (warning,) = found(read_table(patients), "rarely_together")
    assert warning.message.startswith(
        "Only 4 of 300 rows have both 'day3' and 'stay': an edge between them rests mostly"
    )
    assert warning.message.endswith("1 more pair of columns has fewer than 20 rows in common.")
    patients = patients.drop(columns="day3")
    patients.loc[: FEW_TOGETHER - 1, "age"] = range(FEW_TOGETHER)
    assert not found(read_table(patients), "rarely_together")
    (note,) = found(read_table(patients), "missing")
    assert "20 have both 'age' and 'stay': edges between these two rest on 20 rows." in note.message


def test_a_graph_that_cannot_be_tested_is_said_not_to_be(
    patients: pd.DataFrame, any_table_model_folder: Path, tmp_path: Path, run: Run
) -> None:
    patients.loc[:149, "age"] = np.nan
    patients.loc[150:, "stay"] = np.nan
    patients.to_csv(tmp_path / "t.csv", index=False)
    command = ("discover", tmp_path / "t.csv", "--model", any_table_model_folder, "--falsify")
    sentence = "The graph was not tested: 0 of 300 observations are complete and without an experiment, and at least 50"
    assert sentence in " ".join(run(*command)[1].split())
    assert json.loads(run(*command, "--json")[1])["falsification"]["sentence"].startswith(sentence)
    assert "not tested" not in run(*command[:-1])[1]
    patients.head(30).dropna(axis=1).to_csv(tmp_path / "t.csv", index=False)
    assert "The graph was not tested: there are 30 observations, and at least 50" in " ".join(run(*command)[1].split())


# Statistics of what there is


def test_missing_cells_make_no_heavy_tails_and_hide_none() -> None:
    random = np.random.default_rng(0)
    values = random.normal(size=(2000, 3))
    values[random.random(values.shape) < 0.88] = np.nan
    assert not found(read_table(values), "heavy_tails")
    values[:, 0] = np.where(np.isnan(values[:, 0]), np.nan, np.sinh(3 * random.normal(size=2000)))
    (warning,) = found(read_table(values), "heavy_tails")
    there = values[~np.isnan(values[:, 0]), 0]
    reached = np.abs(there - there.mean()).max() / there.std()
    assert warning.columns == ("x1",)
    assert f"'x1' reaches {reached:.0f} standard deviations" in warning.message


def test_missing_cells_do_not_hide_that_neighbors_resemble_each_other() -> None:
    random = np.random.default_rng(1)
    values = random.normal(size=(20_000, 3))
    for row in range(1, len(values)):
        values[row] += 0.5 * values[row - 1]
    values[random.random(values.shape) < 0.6] = np.nan
    (warning,) = found(read_table(values), "time_order")
    assert warning.columns == ("x1", "x2", "x3")


# What to do about missing cells


def test_advice_names_what_the_network_can_do_and_never_what_would_be_refused(patients: pd.DataFrame) -> None:
    patients.loc[:9, "age"] = np.nan
    with pytest.raises(TableError) as refusal:
        read_table(patients, missing="error")
    for way in ("model", "drop", "impute"):
        assert f"--missing {way}" in refusal.value.worded(COMMAND_LINE)
        assert f'missing="{way}"' in str(refusal.value)
    with pytest.raises(TableError) as refusal:
        read_table(patients, missing="error", columns=["age", "stay"], abilities=NUMBERS_ONLY)
    assert 'missing="model"' not in str(refusal.value)
    patients.loc[:290, "age"] = np.nan  # more than a network reads
    patients.loc[5:, "stay"] = np.nan
    with pytest.raises(TableError) as refusal:
        read_table(patients, missing="error")
    assert 'missing="drop"' not in str(refusal.value)
    assert 'missing="model"' not in str(refusal.value)
    assert "drop=['age', 'stay']" in str(refusal.value)
    patients["age"] = [1.0] + 299 * [np.nan]
    with pytest.raises(TableError, match="1 of 300 remains"):
        read_table(patients, missing="error", drop=["stay"])
    patients["age"] = [*range(150), *150 * [np.nan]]
    patients["stay"] = [*150 * [np.nan], *range(150)]
    with pytest.raises(TableError, match=r"Only 0 of 300 .*leave the gaps to the network with missing=\"model\""):
        read_table(patients, missing="drop")


def test_the_share_of_filled_cells_is_that_of_the_table(patients: pd.DataFrame) -> None:
    patients.loc[:9, "age"] = np.nan
    patients.loc[:20, "ward"] = None
    messages = [finding.message for finding in read_table(patients, missing="impute").findings]
    assert any(message.startswith("10 missing values (<1%) were filled") for message in messages)
    assert any(message.startswith("21 missing values (1%) in 'ward' were filled") for message in messages)


def test_a_column_that_was_mostly_filled_gets_a_warning_of_its_own(patients: pd.DataFrame) -> None:
    patients.loc[15:, "age"] = np.nan
    first, *_ = found(read_table(patients, missing="impute"), "missing")
    assert first.severity == "warning"
    assert first.message.startswith("'age' was missing in 95% of the observations and was filled: its edges rest on")
    assert "drop=['age']" in first.worded()


def test_dropping_every_row_of_an_experiment_is_said(patients: pd.DataFrame) -> None:
    patients.loc[:49, "age"] = np.nan
    labels = ["drug"] * 50 + ["age"] * 50 + [""] * 200
    table = read_table(patients, missing="drop", interventions=labels)
    (warning,) = [each for each in table.findings if each.kind == "experiments" and each.severity == "warning"]
    assert warning.columns == ("drug",)
    assert warning.message.endswith("the answer does not use that experiment.")
    assert table.intervened is not None
    assert table.intervened.sum() == 50
    alone = read_table(patients, missing="drop", interventions=["drug"] * 50 + [""] * 250)
    assert alone.intervened is None
    assert "experiments" in {finding.kind for finding in alone.findings}


# Marks of missing cells


@pytest.mark.parametrize("marker", ["NA", "n/a", "N/A", "#N/A", "<NA>", "null", "NULL", "None", "NaN", "nan", ""])
def test_frames_and_files_have_the_same_marks_of_missing_cells(
    marker: str, patients: pd.DataFrame, tmp_path: Path
) -> None:
    frame = patients.astype(object)
    frame.loc[:20, "age"] = marker
    frame.loc[10:30, "ward"] = marker
    frame["set"] = ["drug"] * 20 + [marker] * 280
    frame.to_csv(tmp_path / "t.csv", index=False)
    expected = patients.copy()
    expected.loc[:20, "age"] = np.nan
    expected.loc[10:30, "ward"] = None
    for source in (frame, tmp_path / "t.csv"):
        table = read_table(source, interventions="set", na=["?"])  # more marks are in addition
        np.testing.assert_array_equal(table.values, read_table(expected).values)
        assert table.intervened is not None
        assert table.intervened.sum() == 20


def test_values_that_look_like_marks_of_missing_cells_get_a_note(patients: pd.DataFrame) -> None:
    patients.loc[:20, "age"] = -999
    patients.loc[:9, "ward"] = "?"
    patients.loc[5:9, "stay"] = 9999
    notes = {note.columns: note for note in found(read_table(patients), "marks_of_missing")}
    assert notes.keys() == {("age",), ("ward",), ("stay",)}
    assert "--na -999" in notes["age",].worded(COMMAND_LINE)
    assert "na=['?']" in notes["ward",].worded()
    assert {note.severity for note in notes.values()} == {"note"}
    marked = read_table(patients, na=["-999", "?", "9999"])
    assert not found(marked, "marks_of_missing")
    assert np.isnan(marked.values).sum() == 21 + 10 + 5


def test_ordinary_values_are_no_marks_of_missing_cells() -> None:
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "percent": random.integers(0, 100, 400),  # 99 is one of them
            "balance": random.integers(-3000, 3000, 400) // 3 * 3,  # -999 too
            "once": [-999.0, *random.normal(size=399)],
            "often": np.where(random.random(400) < 0.5, 99, random.integers(0, 5, 400)),
            "site": random.choice(["a", "b", "none"], 400),
        }
    )
    assert not found(read_table(frame), "marks_of_missing")
