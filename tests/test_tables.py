"""Tables: every way in gives the same numbers, every bad table one clear error, every oddity a word in the report."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer

from causal_arrow.errors import COMMAND_LINE, PYTHON, ConfigurationError, TableError
from causal_arrow.network import bundled_models
from causal_arrow.tables.reading import read_table
from causal_arrow.tables.report import TrainingRange, inspect_table
from causal_arrow.tables.table import Abilities, Table

NAMES = ("age", "dose", "höhe", "x y")


@pytest.fixture
def frame() -> pd.DataFrame:
    return pd.DataFrame(np.random.default_rng(0).normal(size=(120, 4)).round(6), columns=list(NAMES))


NUMBERS_ONLY = Abilities("the model arrow-strict", frozenset())


def kinds(table: Table) -> set[str]:
    return {finding.kind for finding in inspect_table(table).findings}


def finding(table: Table, kind: str):
    found = [finding for finding in inspect_table(table).findings if finding.kind == kind]
    assert len(found) == 1
    return found[0]


# Every way in


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("t.csv", {}),
        ("t.tsv", {"sep": "\t"}),
        ("t.csv", {"sep": ";"}),
        ("t.csv", {"sep": ";", "decimal": ","}),
        ("t.tsv", {"sep": "\t", "decimal": ","}),
        ("t.txt", {"sep": "|"}),
        ("t.csv.gz", {}),
        ("t.gz", {"sep": "\t", "compression": "gzip"}),
        ("t.csv", {"encoding": "utf-8-sig"}),
        ("t.csv", {"encoding": "latin-1"}),
        ("t.csv", {"encoding": "utf-16"}),
        ("T.CSV", {"quoting": 1}),
    ],
)
def test_text_files_are_read_whatever_their_delimiter_decimal_and_encoding(tmp_path, frame, name, options):
    frame.to_csv(tmp_path / name, index=False, **options)
    table = read_table(tmp_path / name)
    assert table.names == NAMES
    assert np.array_equal(table.values, frame.to_numpy())


def test_columns_may_be_separated_by_blanks(tmp_path, frame):
    frame.columns = list("abcd")
    (tmp_path / "t.txt").write_text(frame.to_string(index=False))
    assert np.allclose(read_table(tmp_path / "t.txt").values, frame.to_numpy())


@pytest.mark.parametrize(("ending", "package"), [("parquet", "pyarrow"), ("feather", "pyarrow"), ("xlsx", "openpyxl")])
def test_other_formats_give_the_same_table(tmp_path, frame, ending, package):
    pytest.importorskip(package)
    path = tmp_path / f"t.{ending}"
    {"parquet": frame.to_parquet, "feather": frame.to_feather}.get(ending, lambda p: frame.to_excel(p, index=False))(
        path
    )
    table = read_table(path)
    assert table.names == NAMES
    assert np.array_equal(table.values, frame.to_numpy())


def test_frames_arrays_and_lists_give_the_same_table(frame):
    for source in (frame, frame.to_dict("list"), frame.astype("Float64"), frame.astype(object)):
        table = read_table(source)
        assert table.names == NAMES
        assert np.array_equal(table.values, frame.to_numpy())
    for source in (frame.to_numpy(), frame.to_numpy().tolist(), frame.to_numpy().astype(object)):
        table = read_table(source)
        assert table.names == ("x1", "x2", "x3", "x4")
        assert np.array_equal(table.values, frame.to_numpy())
        assert not table.findings
    assert np.array_equal(read_table(read_table(frame)).values, frame.to_numpy())


def test_polars_frames_give_the_same_table(frame):
    polars = pytest.importorskip("polars")
    theirs = polars.DataFrame({name: frame[name].tolist() for name in frame})
    for source in (theirs, theirs.lazy()):
        table = read_table(source)
        assert table.names == NAMES
        assert np.array_equal(table.values, frame.to_numpy())
    odd = theirs.with_columns(
        polars.Series("flag", [True, None] * 60),
        polars.Series("count", [1, None, 3] * 40),
        polars.lit("a").alias("text"),
    )
    with pytest.raises(TableError, match=r"'text' .*is text.*100 values are missing \('flag' 60, 'count' 40\)"):
        read_table(odd, abilities=NUMBERS_ONLY)


def test_the_callers_data_never_change(frame):
    frame.iloc[3, 1] = np.nan
    before = frame.copy(deep=True)
    array = frame.to_numpy(copy=True)
    for missing in ("drop", "impute"):
        read_table(frame, missing=missing)
        read_table(array, missing=missing)
    pd.testing.assert_frame_equal(frame, before)
    assert np.array_equal(array, before.to_numpy(), equal_nan=True)
    shared = np.random.default_rng(0).normal(size=(50, 3))
    assert not np.shares_memory(read_table(shared).values, shared)


def test_columns_chooses_and_orders_and_drop_leaves_out(frame):
    assert read_table(frame, columns=["x y", "age"]).names == ("x y", "age")
    assert read_table(frame, drop=["dose"]).names == ("age", "höhe", "x y")
    assert read_table(frame, columns=["x y", "age", "dose"], drop="age").names == ("x y", "dose")


def test_a_file_without_names_is_noticed_and_can_be_read(tmp_path, frame):
    frame.to_csv(tmp_path / "t.csv", index=False, header=False)
    with pytest.raises(TableError, match=r"first line of 't\.csv' contains numbers .*header=False"):
        read_table(tmp_path / "t.csv")
    table = read_table(tmp_path / "t.csv", header=False)
    assert table.names == ("x1", "x2", "x3", "x4")
    assert table.observations == len(frame)


def test_integers_as_names_are_names(tmp_path, frame):
    frame.set_axis(range(4), axis=1).to_csv(tmp_path / "t.csv", index=False)
    assert read_table(tmp_path / "t.csv").names == ("0", "1", "2", "3")


def test_lines_that_end_in_a_delimiter_lose_nothing(tmp_path, frame):
    lines = frame.to_csv(index=False).splitlines()
    (tmp_path / "t.csv").write_text("\n".join([lines[0], *(line + "," for line in lines[1:])]), encoding="utf-8")
    table = read_table(tmp_path / "t.csv")
    assert table.names == NAMES
    assert np.array_equal(table.values, frame.to_numpy())


def test_labels_of_lines_without_a_name_are_not_a_column(tmp_path, frame):
    lines = frame.to_csv(index=False).splitlines()
    labeled = [lines[0], *(f"row{i},{line}" for i, line in enumerate(lines[1:]))]
    (tmp_path / "t.csv").write_text("\n".join(labeled), encoding="utf-8")
    table = read_table(tmp_path / "t.csv")
    assert table.names == NAMES
    assert "label" in table.findings[0].message


def test_identifiers_are_named_by_their_name_or_because_they_only_increase(frame):
    random = np.random.default_rng(0)
    numbers = random.choice(10_000, len(frame), replace=False)
    table = frame.assign(**{"Patient ID": numbers, "code": np.sort(numbers), "weight": numbers})
    found = [each for each in read_table(table).findings if each.kind == "index"]
    assert [each.columns for each in found] == [("Patient ID",), ("code",)]
    assert found[0].worded(COMMAND_LINE).endswith("leave out a column with --drop 'Patient ID'.")


def test_a_saved_index_is_named_in_a_warning(tmp_path, frame):
    frame.to_csv(tmp_path / "t.csv")
    warning = finding(read_table(tmp_path / "t.csv"), "index")
    assert warning.severity == "warning"
    assert "--drop x1" in warning.worded(COMMAND_LINE)
    assert "read_table(table, drop=['x1'])" in warning.worded()
    assert "index" not in kinds(read_table(tmp_path / "t.csv", drop=["x1"]))
    assert "index" not in kinds(read_table(tmp_path / "t.csv", drop=["Unnamed: 0"]))


@pytest.mark.parametrize("ending", ["csv", "xlsx"])
def test_columns_of_a_file_without_a_name_are_numbered(tmp_path, frame, ending):
    if ending == "xlsx":
        pytest.importorskip("openpyxl")
    frame.columns = ["a", "", "x4", ""]
    path = tmp_path / f"t.{ending}"
    frame.to_csv(path, index=False) if ending == "csv" else frame.to_excel(path, index=False)
    table = read_table(path)
    assert table.names == ("a", "x2", "x4", "column 4")  # which has that name already
    assert np.array_equal(table.values, frame.to_numpy())
    assert "without a name were given one: 'x2' and 'column 4'" in finding(table, "names").message
    assert read_table(path, columns=["x2", "a"]).names == ("x2", "a")
    assert read_table(frame.set_axis(["a", "Unnamed: 1", "c", "d"], axis=1)).names[1] == "Unnamed: 1"  # its own name


def test_a_kind_is_only_advised_where_it_can_be_read(frame):
    frame["few"] = ["x" if row == 3 else str(row % 7) for row in range(len(frame))]
    frame["many"] = ["x" if row == 3 else str(row % 115) for row in range(len(frame))]
    with pytest.raises(TableError) as refusal:
        read_table(frame)
    assert "kinds={'few': 'category'}" in str(refusal.value)
    assert "kinds={'many'" not in str(refusal.value)
    assert "na=['x']" in str(refusal.value)


def test_thousands_of_columns_are_read(tmp_path):
    values = np.random.default_rng(0).normal(size=(30, 3000)).round(3)
    pd.DataFrame(values, columns=[f"gene{j}" for j in range(3000)]).to_csv(tmp_path / "t.csv", index=False)
    assert np.array_equal(read_table(tmp_path / "t.csv").values, values)


def test_blanks_around_fields_do_not_matter(tmp_path):
    (tmp_path / "t.csv").write_text('"a", "b"\n' + '1, "2"\n 3, "4"\n' * 20)
    table = read_table(tmp_path / "t.csv")
    assert table.names == ("a", "b")
    assert [column.levels for column in table.columns] == [("1", "3"), ("2", "4")]
    assert table.values[:2].tolist() == [[0, 0], [1, 1]]


def test_the_first_sheet_is_read_unless_another_is_named(tmp_path, frame):
    pytest.importorskip("openpyxl")
    with pd.ExcelWriter(tmp_path / "t.xlsx") as book:
        frame.to_excel(book, sheet_name="one", index=False)
        (frame * 2).to_excel(book, sheet_name="two", index=False)
    first = read_table(tmp_path / "t.xlsx")
    assert np.array_equal(first.values, frame.to_numpy())
    assert "'two'" in first.findings[0].message
    assert np.array_equal(read_table(tmp_path / "t.xlsx", sheet="two").values, 2 * frame.to_numpy())
    with pytest.raises(TableError, match="no sheet 'three': its sheets are 'one', 'two'"):
        read_table(tmp_path / "t.xlsx", sheet="three")


def test_importing_the_module_does_not_import_pandas():
    code = "import sys, causal_arrow.tables.reading, causal_arrow.tables.report; sys.exit('pandas' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# What is not a number


def test_true_and_false_and_yes_and_no_become_one_and_zero_with_a_note(frame):
    frame["flag"] = frame["age"] > 0
    frame["smokes"] = np.where(frame["dose"] > 0, "Yes", "no")
    table = read_table(frame)
    assert np.array_equal(table.values[:, 4], (frame["age"] > 0).to_numpy(float))
    assert np.array_equal(table.values[:, 5], (frame["dose"] > 0).to_numpy(float))
    assert [(note.kind, note.columns, note.message) for note in table.findings] == [
        ("coding", ("flag",), "Column 'flag' is true or false: True counts as 1, False as 0."),
        ("coding", ("smokes",), "Column 'smokes' is yes or no: 'Yes' counts as 1, 'no' as 0."),
    ]


SIZES = np.array(["small", "medium", "large"])


def with_column(frame, cells):
    """The table with one more column, x, of these cells in turn."""
    cells = pd.Series(list(cells) if isinstance(cells, map | str) else cells)
    return frame.assign(x=cells.iloc[np.arange(len(frame)) % len(cells)].set_axis(frame.index))


def last(table: Table):
    return table.columns[-1]


@pytest.mark.parametrize(
    ("low", "high", "levels"),
    [
        (1, 2, ("1", "2")),
        (0, 100, ("0", "100")),
        (-1.0, 1.0, ("-1", "1")),
        (0.5, 1e300, ("0.5", "1e+300")),
        ("$1,000", "$2,500", ("$1,000", "$2,500")),
        ("1.50", "2.50", ("1.50", "2.50")),
        ("1,5", "2,5", ("1,5", "2,5")),
        ("0.0", "1.0", ("0", "1")),
    ],
)
def test_two_different_numbers_are_two_levels_whatever_their_unit(frame, low, high, levels):
    table = read_table(with_column(frame, [low, high, high]))
    assert (last(table).kind, last(table).levels) == ("binary", levels)
    assert table.values[:3, -1].tolist() == [0, 1, 1]
    assert not table.log_candidates[-1]
    if levels != ("0", "1"):
        assert f"{levels[1]} counts as 1, {levels[0]} as 0" in table.findings[-1].message


def test_two_different_numbers_can_be_declared_a_number(frame):
    table = read_table(with_column(frame, [1, 2, 2]), kinds={"x": "number"})
    assert last(table).kind == "number"
    assert table.values[:3, -1].tolist() == [1, 2, 2]
    again = read_table(table, drop=["age"])  # a table that was read keeps the values it has
    assert last(again).kind == "number"
    assert again.values[:3, -1].tolist() == [1, 2, 2]


def test_two_numbers_that_differ_by_rounding_are_one(frame):
    with pytest.raises(TableError, match=r"'x' \(every value is 0.3\) is constant"):
        read_table(with_column(frame, [0.3, 0.1 + 0.2]))


def test_a_filled_column_of_two_numbers_keeps_them(frame):
    frame = with_column(frame, [20, 120, 120])
    frame.loc[7, "x"] = np.nan
    table = read_table(frame, missing="impute")
    assert (last(table).kind, last(table).levels) == ("binary", ("20", "120"))
    assert table.values[:3, -1].tolist() == [0, 1, 1]
    assert table.values[7, -1] in (0, 1)
    assert "to the nearest level" in table.findings[-1].message


def test_two_texts_are_two_levels_the_later_in_the_alphabet_counts_as_one(frame):
    for cells in (["ja", "nein", "ja"], pd.Categorical(["ja", "nein", "ja"], ["nein", "ja", "vielleicht"])):
        table = read_table(with_column(frame, cells))
        assert (last(table).kind, last(table).levels) == ("binary", ("ja", "nein"))
        assert table.values[:3, -1].tolist() == [0, 1, 0]
        assert "Column 'x' has two levels: 'nein' counts as 1, 'ja' as 0." in table.findings[-1].message
    assert last(read_table(with_column(frame, ["ja", "nein"]), kinds={"x": "category"})).kind == "category"
    with pytest.raises(TableError, match="code it as 0 and 1 to use it"):
        read_table(with_column(frame, ["ja", "nein"]), abilities=NUMBERS_ONLY)


def test_text_most_of_whose_values_occur_once_is_refused_unless_it_is_declared(frame):
    names = frame.assign(x=[f"p{max(place, 50)}" for place in range(len(frame))])  # 70 levels, 69 of them once
    with pytest.raises(TableError, match=r"69 of 120 values occur only once.*different value in most.*drop=\['x'\]"):
        read_table(names)
    assert last(read_table(names, kinds={"x": "category"})).kind == "category"
    half = frame.assign(x=[f"p{max(place, 59)}" for place in range(len(frame))])  # 60 of 120 once
    assert last(read_table(half)).kind == "category"
    few = frame.assign(x=["a", "b", "c", "c", "a", "d"] + [None] * 114)  # too few to say
    assert "names" not in kinds(read_table(few, strict=False))


def test_levels_that_do_not_occur_are_no_levels(frame):
    usual = read_table(with_column(frame, SIZES), ordered={"x": SIZES})
    declared = read_table(with_column(frame, SIZES), ordered={"x": ["tiny", "small", "medium", "odd", "large"]})
    filtered = pd.Categorical(SIZES, ["tiny", "small", "medium", "odd", "large"], ordered=True)
    by_pandas = read_table(frame.assign(x=pd.Categorical(list(filtered) * 40, filtered.categories, ordered=True)))
    for table in (declared, by_pandas):
        assert table.columns == usual.columns
        assert np.array_equal(table.values, usual.values)
    assert last(usual).levels == tuple(SIZES)
    frame.loc[1::3, "age"] = np.nan  # where the size is medium
    left = read_table(with_column(frame, SIZES), ordered={"x": SIZES}, missing="drop")
    assert last(left).levels == ("small", "large")
    assert set(left.values[:, -1]) == {0, 1}


def test_more_than_a_hundred_ordered_levels_are_refused(frame):
    many = frame.assign(x=np.arange(120) % 101)
    for source, how in ((many, {"kinds": {"x": "ordered"}}), (many.astype({"x": "category"}), {})):
        if not how:
            source["x"] = source["x"].cat.as_ordered()
        with pytest.raises(TableError, match=r"101 levels.*too many ordered levels: up to 100") as refusal:
            read_table(source, **how)
        assert "read it as a number with --kind x=number" in refusal.value.worded(COMMAND_LINE)
    assert len(last(read_table(frame.assign(x=np.arange(120) % 100), kinds={"x": "ordered"})).levels) == 100


def test_text_declared_a_number_is_refused_with_what_it_can_be(frame):
    with pytest.raises(TableError, match=r"'x' \(such as 'small'\) contains text: expected numbers") as refusal:
        read_table(with_column(frame, SIZES), kinds={"x": "number"})
    words = refusal.value.worded(COMMAND_LINE)
    assert "--kind x=category" in words
    assert "--ordered x=large,medium,small" in words
    with pytest.raises(TableError, match=r"without an order.*ordered=\{'x': \['large', 'medium', 'small'\]\}"):
        read_table(with_column(frame, SIZES), kinds={"x": "ordered"})


@pytest.mark.parametrize(
    ("cells", "order", "levels"),
    [
        (["01001", "01002"], ["01001", "01002"], ("01001", "01002")),
        (["0.50", "1.00"], ["0.50", "1.00"], ("0.50", "1.00")),
        (["0.50", "1.00"], [0.5, 1], ("0.5", "1")),
        ([1, 2, 3], [1.0, 2.0, 3.0], ("1", "2", "3")),
        ([1.0, 2.0, None], ["2", "1"], ("2", "1")),
        (["1", "1.0", "2"], [2, 1], ("2", "1")),
    ],
)
def test_an_order_may_name_numbers_as_the_file_or_as_python_writes_them(tmp_path, frame, cells, order, levels):
    with_column(frame, cells).to_csv(tmp_path / "t.csv", index=False)
    for source in (with_column(frame, cells), tmp_path / "t.csv"):
        assert last(read_table(source, ordered={"x": order})).levels == levels


def test_a_marker_of_missing_cells_is_the_same_number_however_it_is_written(frame):
    for cells in (["-999", "a", "b", "c"], pd.Categorical([-999, 1, 2, 3]), ["-999.0", "a", "b", "c"]):
        for marker in (-999.0, -999, "-999.00"):
            table = read_table(with_column(frame, cells), na=[marker])
            assert len(last(table).levels or "abc") == 3
            assert np.isnan(table.values[:4, -1]).tolist() == [True, False, False, False]


@pytest.mark.parametrize(
    "cells",
    [
        ["Yes", "YES", "no", "No"],
        [True, False],
        [1, 2],
        ["1", "1.0", "2"],
        ["ja", "nein"],
        pd.Categorical(["a", "b"]),
        pd.Categorical(["a", "b"], ["b", "a"]),
    ],
)
def test_what_is_detected_can_be_declared(frame, cells):
    frame = with_column(frame, cells)
    detected, declared = read_table(frame), read_table(frame, kinds={"x": "binary"})
    assert detected.columns == declared.columns
    assert np.array_equal(detected.values, declared.values)


def test_the_order_of_pandas_counts_whatever_is_declared(frame):
    frame["x"] = pd.Categorical(np.tile(SIZES, 40), SIZES, ordered=True)
    assert last(read_table(frame, kinds={"x": "ordered"})) == last(read_table(frame))
    frame["x"] = pd.Categorical(["low", "high"] * 60, ["low", "high"], ordered=True)
    table = read_table(frame, kinds={"x": "binary"})
    assert (last(table).kind, last(table).levels) == ("binary", ("low", "high"))
    assert table.values[:2, -1].tolist() == [0, 1]


@pytest.mark.parametrize(
    "cells",
    [
        ["2020-01", "2020-02", "2020-03"],
        ["1 January 2020", "17 May 2021", "3 Dec 2021"],
        ["Jan 1", "Feb 14", "Mar 3"],
        ["10:09 PM", "9:00 am", "1:30 p.m."],
        ["2020-01-31", "2020-02-29 10:00", "unknown"],
        ["31.1.2020", "1.2.2020", "3.2.2020"],
        ["2020Q1", "2020Q2", "2020Q3"],
        pd.to_datetime(["2020-01-31", "2020-02-29", "2020-03-31"]),
    ],
)
def test_dates_are_no_levels_however_they_are_written(frame, cells):
    for column in (cells, pd.Categorical(cells)):
        with pytest.raises(TableError, match=r"'x'.* contains dates or times: convert them to a number"):
            read_table(with_column(frame, column))
    assert last(read_table(with_column(frame, map(str, cells)), kinds={"x": "category"})).kind == "category"


@pytest.mark.parametrize(
    "cells",
    [
        ["may", "june", "july"],
        ["1-2", "3-4", "5-6"],
        ["10-20", "20-30", "30-40"],
        ["2009-10", "2010-11", "2011-12"],
        ["MARCH1", "SEPT2", "DEC1"],
        ["Q1", "Q2", "Q3"],
        ["1st", "2nd", "3rd"],
        ["2020-01-31", "none", "later"],
    ],
)
def test_levels_that_look_a_little_like_dates_are_levels(frame, cells):
    assert last(read_table(with_column(frame, cells))).kind == "category"


def test_notes_name_levels_as_text(frame):
    frame["x"] = pd.cut(frame["age"], [-10, -0.5, 0.5, 10])
    assert "('(-10.0, -0.5]' < '(-0.5, 0.5]' < '(0.5, 10.0]')" in read_table(frame).findings[0].message
    message = read_table(with_column(frame, "abcdefgh")).findings[0].message
    assert message == "Column 'x' is read as a category with 8 levels: 'a', 'b', 'c', 'd', 'e', 'f' and 2 more."
    with pytest.raises(TableError, match="every value is True"):
        read_table(frame.assign(x=True))
    with pytest.raises(TableError, match=r"\(every value is 'a'\) is not binary"):
        read_table(frame.assign(x="a"), kinds={"x": "binary"})


def test_ordered_categories_become_their_ranks_with_a_note(frame):
    levels = ["low", "middle", "high"]
    ranks = np.arange(len(frame)) % 3
    frame["level"] = pd.Categorical.from_codes(ranks, levels, ordered=True)
    table = read_table(frame)
    assert np.array_equal(table.values[:, 4], ranks)
    assert "'low' < 'middle' < 'high'" in table.findings[0].message


def test_numbers_written_as_text_are_numbers(frame):
    text = frame.astype(str)
    text.iloc[0, 0] = " 7.5 "
    table = read_table(text)
    assert table.values[0, 0] == 7.5
    assert np.array_equal(table.values[1:], frame.to_numpy()[1:])


def test_all_unusable_columns_are_named_in_one_error(tmp_path, frame):
    n = len(frame)
    frame["city"] = ["Rome", "Oslo", "Bonn"] * (n // 3)
    frame["when"] = pd.date_range("2024-01-01", periods=n)
    frame["nothing"] = np.nan
    frame["site"] = 41
    frame.loc[5, "age"] = np.inf
    frame["code"] = np.where(np.arange(n) == 7, "unknown", frame["dose"].astype(str))
    frame.to_csv(tmp_path / "t.csv", index=False)
    for source, place in ((frame, "observation 8"), (tmp_path / "t.csv", "line 9")):
        with pytest.raises(TableError) as refusal:
            read_table(source, abilities=NUMBERS_ONLY)
        message = refusal.value.worded(COMMAND_LINE)
        for words in (
            "'city' (3 different values, such as 'Rome') is text: the model arrow-strict reads only numbers",
            "contain",
            "'when'",
            "'nothing' has no values",
            "'site' (every value is 41) is constant",
            "'age' (1 value, the first on",
            f"'code' (1 value such as 'unknown' on {place}) mixes numbers and text",
            "--drop age --drop city --drop when --drop nothing --drop code --drop site",
        ):
            assert words in message
    unusable = ["city", "when", "nothing", "site", "age", "code"]
    assert read_table(tmp_path / "t.csv", drop=unusable).names == ("dose", "höhe", "x y")


def test_without_strictness_problems_become_findings(frame):
    frame["city"] = ["Rome", "Oslo"] * 60
    frame["site"] = 41
    frame.loc[0, "age"] = np.nan
    report = inspect_table(read_table(frame, abilities=NUMBERS_ONLY, strict=False), abilities=NUMBERS_ONLY)
    problems = {problem.kind: problem.columns for problem in report.findings if problem.severity == "problem"}
    assert problems == {"text": ("city",), "constant": ("site",), "missing": ("age",)}
    assert [problem.severity for problem in report.findings] == ["problem"] * 3


def test_a_column_that_varies_only_by_rounding_is_constant(frame):
    frame["site"] = 0.1 + 1e-17 * np.arange(len(frame))
    frame.loc[3, "site"] = 0.1 + 1.5e-17
    with pytest.raises(TableError, match=r"'site' .* is constant"):
        read_table(frame)


# Missing values


def with_gaps(frame: pd.DataFrame) -> pd.DataFrame:
    frame = frame.copy()
    frame.iloc[:10, 0] = np.nan
    frame.iloc[5:12, 2] = np.nan
    return frame


def test_missing_values_that_the_model_cannot_read_are_counted_and_located(frame):
    for how in ({"abilities": NUMBERS_ONLY}, {"missing": "error"}):
        with pytest.raises(TableError, match=r"17 values are missing \('age' 10, 'höhe' 7\).*108 of 120 remain"):
            read_table(with_gaps(frame), **how)
    with pytest.raises(TableError, match=r'^The model arrow-strict cannot read missing values.*missing="drop"'):
        read_table(with_gaps(frame), missing="model", abilities=NUMBERS_ONLY)
    assert np.array_equal(read_table(with_gaps(frame)).observed, with_gaps(frame).notna().to_numpy())


def test_dropping_keeps_the_complete_observations(frame):
    table = read_table(with_gaps(frame), missing="drop")
    assert np.array_equal(table.values, frame.to_numpy()[12:])
    assert "12 of 120" in finding(table, "missing").message


def test_dropping_too_much_is_an_error(frame):
    frame.iloc[19:, 0] = np.nan
    with pytest.raises(TableError, match="Only 19 of 120 observations"):
        read_table(frame, missing="drop")


def test_dropping_can_leave_a_constant_which_is_refused(frame):
    frame["site"] = 1.0
    frame.loc[0, "site"] = 2.0
    frame.loc[0, "age"] = np.nan
    with pytest.raises(TableError, match=r"'site' .* is constant"):
        read_table(frame, missing="drop")


def test_imputing_keeps_what_was_observed_and_predicts_the_rest():
    random = np.random.default_rng(1)
    cause = random.normal(size=500)
    truth = np.stack([cause, 2 * cause + 0.1 * random.normal(size=500), random.normal(size=500) + 1e6], axis=1)
    gaps = random.random(truth.shape) < 0.1
    gaps[:, 2] = False
    gaps[gaps.all(axis=1)] = False
    table = read_table(np.where(gaps, np.nan, truth), missing="impute")
    assert np.array_equal(table.values[~gaps], truth[~gaps])
    one_gap = gaps & (gaps.sum(axis=1, keepdims=True) == 1)
    error = ((table.values - truth) / truth.std(axis=0))[one_gap]
    assert np.sqrt(np.mean(error**2)) < 0.1  # the mean of a column would be off by one standard deviation
    note = finding(table, "missing")
    assert note.severity == "warning"
    assert note.columns == ("x1", "x2")


def test_imputed_values_stay_within_the_observed_range(frame):
    holed = with_gaps(frame)
    filled = read_table(holed, missing="impute").values
    assert (filled.max(axis=0) <= holed.max().to_numpy() + 1e-9).all()
    assert (filled.min(axis=0) >= holed.min().to_numpy() - 1e-9).all()


# One clear error


def file(directory, name, content):
    path = directory / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("t.csv", "", "'t.csv' is empty"),
        ("t.csv", "\n  \n", "'t.csv' is empty"),
        ("t.csv", "a,b,c\n", "column names but no rows"),
        ("t.csv", bytes(range(256)) * 20, "'t.csv' is not a text file"),
        ("t.csv", b"PK\x03\x04" + bytes(100), "Excel workbook: use the ending .xlsx"),
        ("t.csv", b"PAR1" + bytes(100), "Parquet file"),
        ("t.csv", "a\n" + "1\n2\n" * 20, "only one column, 'a'"),
        ("t.csv", "a,b\n" + "1,2\n3,4\n" * 5, "has 10 observations: at least 20"),
        ("t.csv", "a,b,a\n" + "1,2,3\n" * 30, "more than one column called 'a'"),
        ("t.csv", "a,b\n" + "1,2\n" * 30 + "1,2,3\n" + "1,2\n" * 30, "Line 32 of 't.csv' has 3 fields where 2"),
        ("t.xlsx", "no workbook", "'t.xlsx' is not a readable .xlsx file"),
        ("t.xls", "no workbook", "save it as .xlsx"),
        ("t.parquet", "no parquet", "'t.parquet' is not a readable .parquet file"),
        ("t.feather", "no feather", "'t.feather' is not a readable .feather file"),
        ("t.csv.gz", b"\x1f\x8bno gzip", "t.csv.gz"),
        ("t.doc", "a,b\n1,2\n", "expected a name that ends in .csv"),
        ("t", "a,b\n1,2\n", "expected a name that ends in .csv"),
    ],
)
def test_a_bad_file_is_one_clear_error(tmp_path, name, content, words):
    if name.endswith("xlsx"):
        pytest.importorskip("openpyxl")
    if name.endswith(("parquet", "feather")):
        pytest.importorskip("pyarrow")
    with pytest.raises(TableError) as refusal:
        read_table(file(tmp_path, name, content))
    assert words in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("nowhere/t.csv", "no file 'nowhere/t.csv'"),
        (".", "is a directory"),
        (None, "Expected a path, a data frame or a two-dimensional array"),
        (3.5, "got float"),
        (np.zeros((30, 2, 2)), r"\(30, 2, 2\)"),
        (np.arange(30.0), "only one column"),
        ([[1.0, 2.0], [3.0]], "two-dimensional|same length"),
        (np.random.default_rng(0).normal(size=(30, 2)) * 1j, "complex numbers"),
        (pd.DataFrame(np.ones((30, 2)), columns=["a", "a "]), "more than one column called 'a'"),
        (pd.DataFrame(index=range(30)), "no columns"),
    ],
)
def test_a_bad_source_is_one_clear_error(source, words):
    with pytest.raises(TableError, match=words):
        read_table(source)


def test_duplicate_names_in_a_workbook_are_not_renamed_silently(tmp_path):
    pytest.importorskip("openpyxl")
    pd.DataFrame(np.ones((30, 3)), columns=["a", "b", "a"]).to_excel(tmp_path / "t.xlsx", index=False)
    with pytest.raises(TableError, match="more than one column called 'a'"):
        read_table(tmp_path / "t.xlsx")


def test_a_missing_package_says_what_to_install(tmp_path, monkeypatch, frame):
    frame.to_excel(tmp_path / "t.xlsx")
    for name in [name for name in sys.modules if name.partition(".")[0] == "openpyxl"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(TableError, match=r'pip install "causal-arrow\[files\]"'):
        read_table(tmp_path / "t.xlsx")


def test_an_unknown_column_is_answered_with_the_closest_one(frame):
    with pytest.raises(TableError, match=r"'Dose' is not in the table: did you mean 'dose'\?.*columns=\["):
        read_table(frame, columns=["age", "Dose"])
    with pytest.raises(TableError, match=r"'zzz' is not in the table: its columns are 'age'.*drop=\["):
        read_table(frame, drop=["zzz"])


def test_an_unknown_choice_for_missing_values_is_an_error(frame):
    with pytest.raises(ConfigurationError, match="error, drop, impute"):
        read_table(frame, missing="zero")


# The report card


def numbers(observations: int = 400, variables: int = 5, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(observations, variables))


def test_an_ordinary_table_has_nothing_to_report():
    for seed in range(5):
        report = inspect_table(read_table(numbers(seed=seed)))
        assert report.findings == ()
        assert report.lines() == ["400 observations of 5 variables", "Nothing stands out."]


def test_sizes_outside_the_training_range_are_reported():
    usual = TrainingRange(observations=(20, 2000), variables=(2, 110))
    for shape, severity in (((2500, 3), "note"), ((600, 111), "warning")):
        (found,) = inspect_table(read_table(numbers(*shape)), usual).findings
        assert (found.kind, found.severity) == ("training_range", severity)
        assert not inspect_table(read_table(numbers(*shape))).findings  # of an unknown network nothing is said
    longer = TrainingRange(observations=(50, 5000), variables=(2, 200))
    for shape in ((60, 3), (2500, 3), (1200, 111)):
        assert not inspect_table(read_table(numbers(*shape)), longer).findings
    found = {each.kind: each.severity for each in inspect_table(read_table(numbers(40, 3)), longer).findings}
    assert found["training_range"] == "warning"


def test_the_training_range_comes_from_the_record_in_the_weights():
    shapes = {"observations": [30, 500], "observations_law": "log_uniform", "variables": [3, 40]}
    assert TrainingRange.from_record({"shapes": shapes}) == TrainingRange((30, 500), (3, 40))
    rare = {"long_observations": [500, 9000], "wide_variables": [40, 300], "wide_share": 0.1}
    assert TrainingRange.from_record({"shapes": {**shapes, **rare, "long_share": 0}}) == TrainingRange(
        (30, 500), (3, 300)
    )
    for record in ({}, {"shapes": None}, {"shapes": {"observations": [1, 2]}}, {"shapes": {**shapes, "variables": 3}}):
        assert TrainingRange.from_record(record) is None
    config = json.loads((bundled_models()["arrow-base"] / "config.json").read_text(encoding="utf-8"))
    assert TrainingRange.from_record(config["extra"]["training"]) == TrainingRange((20, 10_000), (2, 256))


def test_few_observations_for_the_number_of_variables_are_reported():
    assert finding(read_table(numbers(150, 40)), "few_observations").severity == "note"
    assert finding(read_table(numbers(100, 60)), "few_observations").severity == "warning"
    assert finding(read_table(numbers(49, 3)), "few_observations").severity == "warning"
    assert "few_observations" not in kinds(read_table(numbers(50, 3)))


def test_copies_up_to_scale_are_reported_once():
    values = numbers()
    values[:, 3] = 5 - 3 * values[:, 1]
    table = read_table(values)
    assert finding(table, "copies").columns == ("x2", "x4")
    assert "collinear" not in kinds(table)


def test_groups_that_determine_each_other_are_named():
    values = numbers(variables=8)
    values[:, 4] = values[:, 0] + values[:, 2] + 1e-3 * numbers(variables=1, seed=1)[:, 0]
    table = read_table(values)
    assert finding(table, "collinear").columns == ("x1", "x3", "x5")
    values[:, 4] += values[:, 1]  # and no longer: a strong relation is not a deterministic one
    values[:, 4] += numbers(variables=1, seed=2)[:, 0]
    assert "collinear" not in kinds(read_table(values))


def collinear(table: Table) -> list[tuple[str, ...]]:
    return [finding.columns for finding in inspect_table(table).findings if finding.kind == "collinear"]


def share_explained(table: Table, name: str, others: tuple[str, ...]) -> float:
    """R² of one variable by others."""
    z = (table.values - table.values.mean(axis=0)) / table.values.std(axis=0)
    places = [table.names.index(other) for other in others if other != name]
    target = z[:, table.names.index(name)]
    return 1 - np.var(target - z[:, places] @ np.linalg.lstsq(z[:, places], target)[0]) / np.var(target)


def test_every_variable_of_a_group_is_determined_by_the_others_of_it():
    table = read_table(load_breast_cancer(as_frame=True).data)
    groups = collinear(table)
    assert ("mean radius", "mean perimeter") in groups
    for group in groups:
        assert min(share_explained(table, name, group) for name in group) > 0.99
        assert not {"perimeter error", "worst perimeter"} <= set(group)
    # Leaving out one of each, as the report advises, is enough.
    assert collinear(read_table(table, drop=[group[-1] for group in groups])) == []


def test_several_totals_are_several_groups():
    values = numbers(variables=10)
    values[:, 3] = values[:, 0] + values[:, 1] + values[:, 2]
    values[:, 7] = values[:, 4] - 2 * values[:, 5] + 0.5 * values[:, 6]
    assert sorted(collinear(read_table(values))) == [("x1", "x2", "x3", "x4"), ("x5", "x6", "x7", "x8")]


def test_parts_that_make_up_a_whole_are_one_group():
    parts = np.random.default_rng(0).dirichlet(np.ones(6), size=400)
    assert collinear(read_table(parts)) == [tuple(f"x{part}" for part in range(1, 7))]


def test_variables_that_are_close_two_by_two_are_one_group():
    values = numbers()
    for place in (1, 3, 4):
        values[:, place] = values[:, 0] + 0.01 * values[:, place]
    assert collinear(read_table(values)) == [("x1", "x2", "x4", "x5")]


def test_a_sum_with_missing_parts_is_found_in_the_complete_rows():
    random = np.random.default_rng(0)
    values = random.normal(size=(400, 5))
    values[:, 4] = values[:, 0] - values[:, 1] + values[:, 2]
    values[random.random(values.shape) < 0.1] = np.nan
    assert collinear(read_table(values)) == [("x1", "x2", "x3", "x5")]


def derived(table: Table) -> list[tuple[str, ...]]:
    return [each.columns for each in inspect_table(table).findings if each.kind == "derived"]


def test_ranges_of_numbers_and_groups_of_levels_are_named_as_derived():
    random = np.random.default_rng(1)
    weight, town = random.normal(3000, 500, 400), random.choice(["a1", "a2", "b1", "b2"], 400)
    low = (weight < 2500).astype(float)
    low[::7] = np.nan
    table = pd.DataFrame({"weight": weight, "low": low, "town": town, "land": [name[0] for name in town]})
    assert derived(read_table(table)) == [("low", "weight"), ("land", "town")]
    (finding, _) = (each for each in inspect_table(read_table(table)).findings if each.kind == "derived")
    assert finding.worded(COMMAND_LINE).endswith("To go on: leave out a column with --drop low.")


def test_a_cause_with_noise_copies_and_sorted_rows_are_not_derived():
    random = np.random.default_rng(2)
    weight = np.sort(random.normal(3000, 500, 400))
    low = (weight + random.normal(0, 20, 400) < 2500).astype(float)
    table = pd.DataFrame({"id": range(400), "half": [1] * 200 + [2] * 200, "low": low, "same": 1 - low})
    assert derived(read_table(table.assign(weight=weight).drop(columns="half"))) == []
    assert derived(read_table(table)) == []


def test_a_chain_of_close_variables_is_not_one_group():
    values = numbers(observations=2000, variables=12)
    values[:, 1:] = values[:, :1] + np.cumsum(0.09 * values[:, 1:], axis=1)
    table = read_table(values)
    assert len(collinear(table)) > 1
    for group in collinear(table):
        assert min(share_explained(table, name, group) for name in group) > 0.99
        assert not {"x1", "x12"} <= set(group)


def test_few_observations_determine_nothing_by_chance():
    for observations in (62, 66, 70):
        values = numbers(observations, 60)
        assert collinear(read_table(values)) == []
        values[:, 1:] = values[:, :1] + 0.23 * values[:, 1:]  # R² of 0.95 each, near 1 in as few observations
        assert collinear(read_table(values)) == []


def test_of_many_groups_the_last_are_named_together():
    values = numbers(variables=45)
    for place in range(0, 45, 3):
        values[:, place] = values[:, place + 1] + values[:, place + 2]
    groups = collinear(read_table(values))
    assert [len(group) for group in groups] == [3] * 10 + [15]
    assert len({name for group in groups for name in group}) == 45


def test_heavy_tails_are_reported_with_a_remedy_where_there_is_one():
    values = numbers()
    values[:, 1] = np.exp(2 * values[:, 1])
    values[7, 2] = 80.0
    values[:, 3] += 1000  # positive, but its logarithms are as uneven: they are not tried
    values[7, 3] = 1080.0
    found = finding(read_table(values), "heavy_tails")
    assert found.columns == ("x2", "x3", "x4")
    assert "'x2' is skewed and may need a log transform" in found.message


def test_discrete_columns_are_reported_by_kind():
    values = numbers()
    values[:, 0] = values[:, 0] > 0
    values[:, 1] = values[:, 1].round().clip(-2, 2)
    values[:, 2] = values[:, 2].clip(0.1, None)
    table = read_table(values)
    (binary,) = [each for each in inspect_table(table, abilities=NUMBERS_ONLY).findings if each.kind == "binary"]
    assert binary.columns == ("x1",)
    assert "binary" not in kinds(table)  # for a network that reads yes and no as such there is nothing to say
    assert finding(table, "discrete").columns == ("x2",)
    assert finding(table, "lumpy").columns == ("x3",)


@pytest.mark.parametrize("different", [0.5, "y", None])
def test_a_column_that_hardly_varies_gets_a_warning_whatever_its_kind(different):
    frame = pd.DataFrame(numbers(120, 3), columns=list("abc"))
    usual = "x" if isinstance(different, str) else 0.0
    frame["d"] = [different if row == 7 else usual for row in range(120)]
    if different is None:  # a gap is no other value
        assert "nearly_constant" not in {each.kind for each in inspect_table(read_table(frame, strict=False)).findings}
        frame.loc[[9, 50], "d"] = [0.5, 0.25]
    found = finding(read_table(frame), "nearly_constant")
    assert found.severity == "warning"
    assert found.columns == ("d",)
    counts = "1 of 120" if different else "2 of 119"
    assert f"'d' has the same value in all except {counts} observations" in found.message
    assert "--drop d" in found.worded(COMMAND_LINE)


def test_ten_values_that_differ_or_a_tenth_of_them_are_no_reason_to_warn():
    for observations, rare, warned in ((1000, 9, True), (1000, 10, False), (60, 7, False), (60, 5, True)):
        values = numbers(observations, 3)
        values[:, 1] = np.arange(observations) % observations < rare
        values[:, 1] = np.random.default_rng(0).permutation(values[:, 1])
        assert ("nearly_constant" in kinds(read_table(values))) == warned


def test_observations_ordered_in_time_are_noticed_and_shuffled_ones_are_not():
    values = numbers()
    values[:, 1:] = np.cumsum(values[:, 1:], axis=0)
    assert finding(read_table(values), "time_order").columns == ("x2", "x3", "x4", "x5")
    assert "time_order" not in kinds(read_table(np.random.default_rng(3).permutation(values)))


@pytest.mark.parametrize("keys", [["x1"], ["group", "x1"], ["x2", "x3"]])
def test_a_table_that_is_merely_sorted_gets_no_warning(keys):
    random = np.random.default_rng(0)
    values = random.normal(size=(1000, 4)) + random.normal(size=(1000, 1))
    frame = pd.DataFrame(values, columns=["x1", "x2", "x3", "x4"]).assign(group=values[:, 2] > 0.5)
    assert "time_order" not in kinds(read_table(frame.sort_values(keys)))


def test_statistics_do_not_depend_on_how_observations_are_chunked(monkeypatch):
    values = numbers(300, 6)
    values[:, :4] = np.cumsum(values[:, :4], axis=0)
    values[:, 4] = np.exp(2 * values[:, 4])
    whole = inspect_table(read_table(values))
    assert {finding.kind for finding in whole.findings} == {"time_order", "heavy_tails"}
    for chunk in (1, 7):
        monkeypatch.setattr("causal_arrow.tables._facts.ROWS_PER_CHUNK", chunk)
        assert inspect_table(read_table(values)) == whole


def test_reports_are_sorted_by_severity_and_go_through_json(frame):
    frame["flag"] = frame["age"] > 0
    frame["copy"] = frame["age"] * 2
    frame["city"] = "Rome"
    report = inspect_table(read_table(frame, strict=False))
    severities = [finding.severity for finding in report.findings]
    assert severities == sorted(severities, key=["problem", "warning", "note"].index)
    assert set(severities) == {"problem", "warning", "note"}
    assert len(report.warnings) == sum(severity != "note" for severity in severities)
    assert json.loads(json.dumps(report.to_dict())) == report.to_dict()
    assert len(report.lines()) == 1 + len(report.findings)


def test_a_column_whose_values_name_other_columns_may_be_labels_of_experiments(frame):
    def found(cells, **reading):
        column = np.resize(np.array(cells, dtype=object), len(frame))
        report = inspect_table(read_table(frame.assign(set=column), **reading))
        return [finding for finding in report.findings if finding.kind == "labels_of_experiments"]

    (finding,) = found(["age", "dose; age", None])
    assert finding.columns == ("set",)
    advice = "with interventions='set', or leave out a column with read_table(table, drop=['set'])."
    assert finding.worded(PYTHON).endswith(advice)
    assert "--interventions set" in finding.worded(COMMAND_LINE)
    assert not found(["age", "dose; age", None], interventions="set")
    assert not found(["age", "north", None])
