"""Whatever people hold a table in: it works, or is refused in one sentence; kinds of columns and names are kept."""

from __future__ import annotations

import decimal
import fractions
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from causal_arrow.errors import COMMAND_LINE, TableError
from causal_arrow.tables.reading import MAX_VARIABLES, read_table
from causal_arrow.tables.report import inspect_table
from causal_arrow.tables.table import Column
from causal_arrow.web._wording import PAGE

VALUES = np.random.default_rng(0).normal(size=(60, 3))
FLAGS = (VALUES[:, 0] > 0).tolist()


def named(columns: Any) -> pd.DataFrame:
    return pd.DataFrame(VALUES, columns=pd.Index(columns, dtype=object, tupleize_cols=False))


def records() -> np.ndarray:
    return np.array([tuple(row) for row in VALUES], dtype=[("u", float), ("v", float), ("w", float)])


# Sources


@pytest.mark.parametrize(
    "source",
    [
        {"x1": VALUES[:, 0], "x2": pd.Series(VALUES[:, 1]), "x3": VALUES[:, 2].tolist()},
        [{"x1": a, "x2": b, "x3": c} for a, b, c in VALUES],
        records(),
        np.ma.array(records()),
        np.ma.array(VALUES),
        pd.DataFrame(VALUES).map(decimal.Decimal),
        VALUES.astype("U32").astype("S32"),
    ],
    ids=lambda source: type(source).__name__,
)
def test_any_holder_of_numbers_gives_the_same_table(source: Any) -> None:
    assert np.allclose(read_table(source).values, VALUES, rtol=1e-12)


def test_signs_that_torch_has_not_carried_out_yet_are_read() -> None:
    torch = pytest.importorskip("torch")
    tensor = torch.complex(torch.tensor(VALUES), torch.tensor(VALUES)).conj().imag
    assert np.array_equal(read_table(tensor).values, -VALUES)


def test_masked_cells_are_missing() -> None:
    mask = VALUES < -1.5
    assert np.array_equal(read_table(np.ma.array(VALUES, mask=mask), strict=False).observed, ~mask)
    masked = np.ma.array(records(), mask=[tuple(row) for row in mask])
    assert np.array_equal(read_table(masked, strict=False).observed, ~mask)


def test_fractions_are_numbers() -> None:
    thirds = [fractions.Fraction(n % 7, 3) for n in range(60)]
    assert np.allclose(read_table({"a": thirds, "b": VALUES[:, 0]}).values[:, 0], np.arange(60) % 7 / 3)


cells = np.empty((60, 2), dtype=object)
cells[:] = [[{"a": 1}, 2.5]] * 60


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ({"a": [1.0] * 30, "b": [2.0] * 29}, "'a' with 30 values and 'b' with 29"),
        ({"a": 1, "b": 2}, "list of values for column 'a', got 1"),
        ({"a": VALUES, "b": VALUES[:, 0]}, "list of values for column 'a'"),
        ({"a": "text", "b": VALUES[:, 0]}, "list of values for column 'a', got 'text'"),
        ({}, "no columns"),
        (np.zeros((60, 2), dtype=[("u", float)]), "list of values for column 'u'"),
        (cells, r"'x1' \(such as \{'a': 1\}\) contains lists or objects"),
        (pd.DataFrame({"a": [[1, 2]] * 60, "b": VALUES[:, 0]}), r"such as \[1, 2\]"),
        (pd.DataFrame({"a": [object()] * 60, "b": VALUES[:, 0]}), "contains lists or objects"),
        (pd.DataFrame({"a": ["nan"] * 60, "b": VALUES[:, 0]}), "'a' has no values"),
        (pd.DataFrame({"a": [None] * 60, "b": VALUES[:, 0]}), "'a' has no values"),
        (
            pd.DataFrame({"a": pd.Series([10**400 * (n % 3) for n in range(60)], dtype=object), "b": VALUES[:, 0]}),
            "'a' .* has infinite values",
        ),
        (pd.DataFrame(columns=["a", "b"]), "column names but no rows"),
        (np.zeros((0, 3)), "column names but no rows"),
        (VALUES[:1], "has 1 observation:"),
        (VALUES[:, :1], "only one column, 'x1': expected two or more.$"),
        (np.zeros((20, MAX_VARIABLES + 1)), "5,001 columns, more than the 5,000 that fit"),
        (named(["a", "a", "b"]), "more than one column called 'a'"),
        (named(["a\ud800", "b", "c"]), r"'a\\ud800' of column 1 contains half a character"),
        ({"a\ud800": VALUES[:, 0], "b": VALUES[:, 1]}, "half a character"),
        ({1, 2}, "got set"),
        (b"a,b", "got bytes"),
        ("", "path of a file, got ''"),
        ("a\0b.csv", "Cannot open"),
        ("a" * 5000 + ".csv", "Cannot open"),
        ("~no-such-user/t.csv", "Cannot open"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_sentence(source: Any, words: str) -> None:
    with pytest.raises(TableError, match=words) as refusal:
        read_table(source)
    assert "\n" not in str(refusal.value)


def test_polars_frames_with_nulls_decimals_and_lists_are_read_or_refused() -> None:
    polars = pytest.importorskip("polars")
    halves = [decimal.Decimal("1.5"), decimal.Decimal("2.5"), None] * 20
    frame = polars.DataFrame({"a": halves, "b": VALUES[:, 0], "c": [1, None, 3, 4] * 15})
    table = read_table(frame, missing="drop")
    assert table.observations == 30
    assert table.columns[0].levels == ("1.5", "2.5")
    with pytest.raises(TableError, match=r"'d' .* contains lists"):
        read_table(frame.with_columns(polars.Series("d", [[1]] * 60)), missing="drop", drop=["a", "c"])


# Large numbers


def in_its_own_units(values: np.ndarray) -> np.ndarray:
    """Each column divided by the size of its largest value."""
    return np.asarray(values / np.abs(values).max(axis=0))


@pytest.mark.parametrize("unit", [1e-310, 1e-200, 1e150, 1e300])
def test_no_unit_is_too_large_or_too_small(unit: float, recwarn: pytest.WarningsRecorder) -> None:
    skewed = VALUES.copy()
    skewed[:, 1] = np.exp(2 * skewed[:, 1])
    skewed[3, 2] = 90.0
    usual, other = read_table(skewed), read_table(skewed * unit)
    assert [each.message for each in inspect_table(other).findings] == [
        each.message for each in inspect_table(usual).findings
    ]
    for first, second in zip(in_its_own_units(usual.values), in_its_own_units(other.values), strict=True):
        assert second == pytest.approx(first, rel=1e-9)
    holed = skewed.copy()
    holed[:5, 0] = np.nan
    filled = read_table(holed * unit, missing="impute").values / unit
    assert filled == pytest.approx(read_table(holed, missing="impute").values, rel=1e-9)
    assert not list(recwarn)


def test_a_column_over_the_whole_range_of_numbers_is_a_log_candidate(recwarn: pytest.WarningsRecorder) -> None:
    wide = np.exp(VALUES * 200)
    wide[0, 0], wide[1, 0] = 1e-308, 1e308
    assert read_table(wide).log_candidates.all()
    assert not list(recwarn)


def test_integers_far_apart_are_used_as_they_are() -> None:
    integers = (np.arange(60) * 2**56) - 2**61
    table = read_table({"a": integers, "b": VALUES[:, 0]})
    assert np.array_equal(table.values[:, 0], integers.astype(float))


# Kinds


def test_every_column_has_its_kind_and_levels() -> None:
    frame = pd.DataFrame(
        {
            "age": VALUES[:, 0],
            "treated": FLAGS,
            "smokes": np.where(FLAGS, "no", "Yes"),
            "code": np.array(FLAGS, dtype=int),
            "twelve": np.where(FLAGS, 1.0, 2.0),
            "grade": pd.Categorical(["low", "high", "mid"] * 20, ["low", "mid", "high"], ordered=True),
        }
    )
    table = read_table(frame)
    assert table.columns == (
        Column("age"),
        Column("treated", "binary", ("False", "True")),
        Column("smokes", "binary", ("no", "Yes")),
        Column("code", "binary", ("0", "1")),
        Column("twelve", "binary", ("1", "2")),
        Column("grade", "ordered", ("low", "mid", "high")),
    )
    for place, column in enumerate(table.columns):
        if column.levels:
            assert set(table.values[:, place]) == set(range(len(column.levels)))
    report = inspect_table(table)
    assert report.lines()[0] == (
        "60 observations of 6 variables: 1 number, 4 binary ('treated', 'smokes', 'code' and 'twelve'), 1 ordered "
        "('grade')"
    )
    assert report.to_dict()["columns"][5] == {"name": "grade", "kind": "ordered", "levels": ["low", "mid", "high"]}


def test_filled_columns_keep_their_kinds_and_levels() -> None:
    grades = np.where(VALUES[:, 0] > 0, "high", "low").astype(object)
    grades[:20], grades[30] = "mid", None
    frame = pd.DataFrame({"flag": [True, False, None] * 20, "whole": FLAGS, "a": VALUES[:, 0], "grade": grades})
    ordered = {"grade": ["low", "mid", "high"]}
    for missing in ("model", "drop", "impute"):
        table = read_table(frame, missing=missing, ordered=ordered)
        assert [column.kind for column in table.columns] == ["binary", "binary", "number", "ordered"]
        assert table.columns[3].levels == ("low", "mid", "high")
    assert set(np.unique(table.values[:, 0])) == {0.0, 1.0}
    assert table.values[30, 3] == (2 if VALUES[30, 0] > 0 else 0)  # which the other column tells


def test_a_table_read_again_keeps_what_is_known_of_its_columns() -> None:
    frame = pd.DataFrame({"grade ": pd.Categorical(["b", "a"] * 30, ["b", "a"], ordered=True), "flag": FLAGS})
    frame[["u", "v"]] = VALUES[:, :2]
    first = read_table(frame)
    again = read_table(first, drop=["flag", "v"])
    assert again.columns == (Column("grade", "ordered", ("b", "a")), Column("u"))
    assert [finding.columns for finding in again.findings] == [("grade",), ("grade",)]  # its name and its coding
    assert read_table(first).findings == first.findings


def test_observed_says_where_there_is_a_value() -> None:
    holed = VALUES.copy()
    holed[3, 1] = np.nan
    table = read_table(holed, strict=False)
    assert np.argwhere(~table.observed).tolist() == [[3, 1]]


# Names


def test_names_are_never_changed_silently() -> None:
    table = read_table(named(["dose ", "b", " c"]))
    assert table.names == ("dose", "b", "c")
    (note,) = table.findings
    assert (note.kind, note.columns) == ("names", ("dose", "c"))
    assert "'dose ' and ' c'" in note.message
    for asked in ("dose ", "dose"):
        assert read_table(named(["dose ", "b", "c"]), drop=[asked]).names == ("b", "c")
        assert read_table(named(["dose ", "b", "c"]), columns=[asked, "c"]).names == ("dose", "c")
    assert not read_table(named(["a", "b", "c"])).findings


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ([0, 1, 2], ("0", "1", "2")),
        ([None, "b", float("nan")], ("x1", "b", "x3")),
        (["", "  ", "c"], ("x1", "x2", "c")),
        ([("a", "x"), ("a", 1), ("b", "")], ("a.x", "a.1", "b")),
        ([1.5, "b", "c\nd"], ("1.5", "b", "c\nd")),
    ],
)
def test_names_of_any_type_become_text(names: list[Any], expected: tuple[str, ...]) -> None:
    assert read_table(named(names)).names == expected
    assert read_table(named(names), drop=[names[1]]).names == (expected[0], expected[2])


def test_the_levels_of_names_are_joined() -> None:
    frame = pd.DataFrame(VALUES, columns=pd.MultiIndex.from_tuples([("a", "x"), ("a", "y"), ("b", "x")]))
    table = read_table(frame)
    assert table.names == ("a.x", "a.y", "b.x")
    assert "joined" in table.findings[0].message


@pytest.mark.parametrize("long", [False, True])
def test_an_index_with_a_name_is_not_read_and_a_note_says_so(
    long: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyarrow")
    if long:
        monkeypatch.setattr("causal_arrow.tables.sources.LONG_CELLS", 0)
    frame = named(["a", "b", "c"]).assign(d=VALUES[:, 0] ** 2)
    for index, words in ((["a"], "The index 'a' is not read"), (["a", "b"], "The levels 'a' and 'b' of the index are")):
        labeled = frame.set_index(index)
        labeled.to_parquet(tmp_path / "t.parquet")
        for source in (labeled, tmp_path / "t.parquet"):
            table = read_table(source)
            assert table.names == tuple(name for name in "abcd" if name not in index)
            (note,) = table.findings
            assert note.severity == "note"
            assert note.message.startswith(words)
            assert "table.reset_index()" in note.worded()
            assert "save the file with its index as a column" in note.worded(COMMAND_LINE)
            assert "save the file with its index as a column" in note.worded(PAGE)
    for plain in (frame, frame[::-1], frame.set_axis([f"r{row}" for row in range(len(frame))])):
        plain.to_parquet(tmp_path / "t.parquet")
        assert not read_table(plain).findings
        assert not read_table(tmp_path / "t.parquet").findings


@pytest.mark.parametrize(("option", "asked"), [("columns", 5), ("drop", ["a", "zzz"]), ("columns", [["a"]])])
def test_columns_that_are_not_there_are_named_with_their_option(option: str, asked: Any) -> None:
    with pytest.raises(TableError, match=option):
        read_table(named(["a", "b", "c"]), **{option: asked})


def test_log_candidates_are_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from causal_arrow.tables import table as home

    calls = []
    original = home.log_candidates
    monkeypatch.setattr(home, "log_candidates", lambda values: calls.append(1) or original(values))
    table = read_table(np.exp(VALUES))
    inspect_table(table)
    assert table.log_candidates.all()
    assert len(calls) == 1  # whoever asks
