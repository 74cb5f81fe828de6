"""Files as people have them: numbers in any notation, comments, titles, missing markers, standard input, bad files."""

from __future__ import annotations

import gzip
import io
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from causal_arrow.errors import COMMAND_LINE, TableError
from causal_arrow.tables import _text
from causal_arrow.tables._numerals import read_numerals
from causal_arrow.tables.reading import read_table
from causal_arrow.tables.table import Table

EXPECTED = np.array([[n % 7, n * n % 11, (7 * n % 13) + 0.5] for n in range(40)])
LINES = [f"{a:.0f},{b:.0f},{c}" for a, b, c in EXPECTED]
ROWS = "\n".join(LINES) + "\n"
PLAIN = "a,b,c\n" + ROWS


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def write(content: str | bytes, name: str = "t.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def messages(table: Table) -> str:
    return " ".join(finding.message for finding in table.findings)


# Lines that are not the table


@pytest.mark.parametrize(
    "content",
    [
        "# made by a program, on a Monday\n#\n" + PLAIN,
        "  # indented\n" + PLAIN,
        "a,b,c\n# below the names\n" + ROWS,
        "a,b,c\n" + "\n".join([*LINES[:9], "# in the middle", *LINES[9:]]) + "\n# at the end\n",
        "Results of the study\n" + PLAIN,
        "Results of the study, second part\nof 2024\n\n" + PLAIN,
        "Results of the study,,\n,,\n" + PLAIN,
        "# comment\nResults\n\n" + PLAIN,
        "\n\n" + PLAIN,
        "a,b,c,\n" + ROWS.replace("\n", ",\n"),
        "a,b,c,\n" + ROWS,
        "a,b,c\n" + ROWS.replace("\n", ",\n"),
        ("Results\na,b,c,\n" + ROWS.replace("\n", ",\n")).replace(",", ";"),
        ("# comment\n" + PLAIN).replace(",", "\t"),
        "# a,b,c\n" + ROWS,
        "#a,b,c\n" + ROWS,
        "# from the lab\n# a,b,c\n" + ROWS,
        "# a b c\n" + ROWS.replace(",", " "),
        ("# one\r\n" + PLAIN).replace("\n", "\r\n"),
        ("# é\n" + PLAIN).encode("utf-16"),
        PLAIN.encode("utf-16-le"),
        PLAIN.encode("utf-16-be"),
    ],
)
def test_comments_titles_and_trailing_delimiters_leave_the_table_as_it_is(write: Any, content: str | bytes) -> None:
    for path in (write(content), write(gzip.compress(content if isinstance(content, bytes) else content.encode()))):
        table = read_table(path)
        assert table.names == ("a", "b", "c")
        assert np.array_equal(table.values, EXPECTED)


def test_comments_further_down_than_the_first_megabyte_are_comments(write: Any) -> None:
    many = 2**20 // len(ROWS) + 1
    table = read_table(write(PLAIN + ROWS * many + "# the end\n" + ROWS))
    assert table.observations == 40 * (many + 2)


def test_a_mark_of_comments_in_the_table_is_part_of_it(write: Any) -> None:
    assert read_table(write("#,b,c\n" + ROWS)).names == ("#", "b", "c")
    assert read_table(write("item #,b #1,c\n" + ROWS)).names == ("item #", "b #1", "c")
    identifiers = "id,a,b\n" + "".join(f"#{n},{n % 5},{n * n % 7}\n" for n in range(40))
    table = read_table(write(identifiers), drop=["id"])
    assert table.observations == 40
    assert not messages(table)


def test_titles_are_left_out_of_files_without_names(write: Any) -> None:
    assert np.array_equal(read_table(write("Results\n# two\n" + ROWS), header=False).values, EXPECTED)
    assert np.array_equal(read_table(write(ROWS.replace("\n", ",\n")), header=False).values, EXPECTED)


def test_line_numbers_count_every_line_of_the_file(write: Any) -> None:
    broken = [*LINES[:9], "# in the middle", *LINES[9:12], "1,oops,2", *LINES[12:]]
    with pytest.raises(TableError, match="'oops' on line 17"):
        read_table(write("# one\n\na,b,c\n" + "\n".join(broken)))
    with pytest.raises(TableError, match=r"Line 17 of 't.csv' has 4 fields where 3"):
        read_table(write("# one\n\na,b,c\n" + "\n".join(broken).replace("oops", "2,3")))


def test_an_empty_column_without_a_name_is_mentioned(write: Any) -> None:
    table = read_table(write("a,,c\n" + "".join(f"{n % 7},,{n * n % 11}\n" for n in range(40))))
    assert table.names == ("a", "c")
    assert "Column 2 has neither a name nor a value" in messages(table)


def test_a_header_narrower_than_the_lines_is_not_taken_for_a_title(write: Any) -> None:
    with pytest.raises(TableError, match=r"Line 2 of 't.csv' has 5 fields where 3 were expected"):
        read_table(write("a,b,c\n" + "1,2,3,4,5\n" * 40))


# Sheets


def sheet(path: Path, frame: pd.DataFrame, titles: dict[str, str] | None = None, **options: Any) -> Path:
    """A workbook with the frame somewhere in its first sheet, and titles in some cells."""
    openpyxl = pytest.importorskip("openpyxl")
    frame.to_excel(path, index=False, **options)
    book = openpyxl.load_workbook(path)
    for cell, title in (titles or {}).items():
        book.active[cell] = title
    book.save(path)
    return path


WORDS = pd.DataFrame({name: [f"{name}{n * k % 7 % 3}" for n in range(40)] for k, name in enumerate("abc", 1)})


@pytest.mark.parametrize("content", ["numbers", "words", "gaps"])
@pytest.mark.parametrize(
    ("titles", "place"),
    [
        ({}, {"startrow": 1}),
        ({}, {"startrow": 3}),
        ({}, {"startcol": 1}),
        ({}, {"startrow": 5, "startcol": 2}),
        ({"A1": "Study A"}, {"startrow": 1}),
        ({"A1": "Study A"}, {"startrow": 2}),
        ({"A1": "Study A", "A2": "of 2024"}, {"startrow": 4}),
        ({"A1": "Study A"}, {"startrow": 2, "startcol": 1}),
        ({"B1": "Study A"}, {"startrow": 1}),
    ],
)
def test_a_table_is_found_wherever_it_stands_in_a_sheet(
    tmp_path: Path, titles: dict[str, str], place: dict[str, int], content: str
) -> None:
    frame = WORDS if content == "words" else pd.DataFrame(EXPECTED, columns=list("abc"))
    if content == "gaps":
        frame = frame.mask(np.add.outer(np.arange(40), np.arange(3)) % 3 == 1)
    plain, moved = read_table(frame), read_table(sheet(tmp_path / "t.xlsx", frame, titles, **place))
    assert moved.names == ("a", "b", "c")
    assert np.array_equal(moved.values, plain.values, equal_nan=True)
    assert moved.columns == plain.columns
    assert ("Rows above the table were skipped: 'Study A'" in messages(moved)) == bool(titles)
    bare = sheet(tmp_path / "t.xlsx", frame, titles, header=False, **place)
    assert np.array_equal(read_table(bare, header=False).values, plain.values, equal_nan=True)


def test_lines_of_a_sheet_are_counted_from_its_top(tmp_path: Path) -> None:
    frame = pd.DataFrame(EXPECTED, columns=list("abc")).astype(object)
    frame.loc[4, "b"] = "oops"
    with pytest.raises(TableError, match="'oops' on line 9"):
        read_table(sheet(tmp_path / "t.xlsx", frame, {"A1": "Study A"}, startrow=3))


def test_two_columns_of_one_name_are_refused_below_a_title_too(tmp_path: Path) -> None:
    frame = pd.DataFrame(EXPECTED, columns=["a", "b", "a"])
    with pytest.raises(TableError, match="more than one column called 'a'"):
        read_table(sheet(tmp_path / "t.xlsx", frame, {"A1": "Study A"}, startrow=1))


def test_names_that_some_columns_of_a_sheet_do_not_have_are_no_title(tmp_path: Path) -> None:
    frame = pd.DataFrame(EXPECTED)
    for cells in ({"A1": "a"}, {"B1": "a"}):
        table = read_table(sheet(tmp_path / "t.xlsx", frame, cells, header=False, startrow=1))
        assert "a" in table.names
        assert table.observations == 40


@pytest.mark.parametrize("first", [pd.DataFrame({"About": ["these are", "our data"]}), pd.DataFrame()])
def test_where_the_first_sheet_is_no_table_the_others_are_named(tmp_path: Path, first: pd.DataFrame) -> None:
    table = pd.DataFrame(EXPECTED)
    with pd.ExcelWriter(tmp_path / "t.xlsx") as book:
        for name, frame in {"read me": first, "births": table, "cars": table}.items():
            frame.to_excel(book, sheet_name=name, index=False)
    with pytest.raises(TableError, match="The workbook also has 'births' and 'cars'") as refusal:
        read_table(tmp_path / "t.xlsx")
    assert refusal.value.worded(COMMAND_LINE).endswith("name another sheet with --sheet births.")
    assert read_table(tmp_path / "t.xlsx", sheet="births").observations == len(EXPECTED)


def test_an_empty_sheet_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(TableError, match=r"The sheet 'Sheet1' of 't\.xlsx' is empty\."):
        read_table(sheet(tmp_path / "t.xlsx", pd.DataFrame()))


# Numbers


@pytest.mark.parametrize(
    ("texts", "decimal", "values", "manner"),
    [
        (["1,234.5", "7"], ".", [1234.5, 7], "thousands separators"),
        (["1.234,5", "7"], ".", [1234.5, 7], "thousands separators and a decimal comma"),
        (["1 234,5", "-2 000 000"], ".", [1234.5, -2e6], "thousands separators and a decimal comma"),
        (["1'234.5", "7"], ".", [1234.5, 7], "thousands separators"),
        (["1,234", "1,234,567"], ".", [1234, 1234567], "thousands separators"),
        (["1.234", "12,5"], ".", [1234, 12.5], "thousands separators and a decimal comma"),
        (["1.234", "2.500"], ".", [1.234, 2.5], ""),
        (["1.234", "2.500"], ",", [1234, 2500], "thousands separators"),
        (["1.5", "2.25"], ",", [1.5, 2.25], ""),
        (["$1,200", "-$5", "$-3.5"], ".", [1200, -5, -3.5], "a currency sign and thousands separators"),
        (["€5", "6 €", "7"], ".", [5, 6, 7], "a currency sign"),
        (["12%", "3.5 %"], ".", [12, 3.5], "a percent sign"),
        (["12,5%", "3%"], ".", [12.5, 3], "a percent sign and a decimal comma"),
        (["−5", "6"], ".", [-5, 6], "a long minus sign"),
        ([".5", "1e-3", "+4."], ".", [0.5, 0.001, 4], ""),
        (["~0.14", "0.2", "≈ 3"], ".", [0.14, 0.2, 3], "an approximation sign"),
        (["1.3 mg", "-2mg", "1e3 mg"], ".", [1.3, -2, 1000], "the unit 'mg'"),
        (["8.4k", "12k"], ".", [8.4, 12], "the unit 'k'"),
        (["12°", "−3.5 °"], ".", [12, -3.5], "a long minus sign and the unit '°'"),
        (["24 kg/m2", "31.5 kg/m2"], ".", [24, 31.5], "the unit 'kg/m2'"),
        (["1,3 mg", "2 mg"], ".", [1.3, 2], "a decimal comma and the unit 'mg'"),
        (["1,200 mm Hg", "7 mm Hg"], ".", [1200, 7], "thousands separators and the unit 'mm Hg'"),
        (["$8.4k", "$12k"], ".", [8.4, 12], "a currency sign and the unit 'k'"),
        (["1 day", "12 days"], ".", [1, 12], "the unit 'day'"),
    ],
)
def test_numbers_are_read_as_people_write_them(
    texts: list[str], decimal: str, values: list[float], manner: str
) -> None:
    read = read_numerals(np.array(texts, dtype=object), decimal)
    assert read.recognized.all()
    assert read.values == pytest.approx(values, rel=1e-15)
    assert (read.manner, read.units) == (manner, "")


@pytest.mark.parametrize("text", ["12.03.2024", "1_000", "1,23,456", "$5$", "--5", "5 apples", "1,2,345", "", "%", "$"])
def test_what_only_looks_like_a_number_is_none(text: str) -> None:
    assert not read_numerals(np.array([text, "1"], dtype=object)).recognized[0]


@pytest.mark.parametrize(
    "texts",
    [
        ["P1", "P2"],
        ["<0.1", "<0.2"],
        ["18-25", "26-40"],
        ["1 May", "2 May"],
        ["5 (2)", "6 (2)"],
        ["3 m", "4 ms"],
        ["3A", "3B"],
        ["1_a", "2_a"],
        ["1 mg 2", "3 mg 2"],
        ["mg", "mg"],
    ],
)
def test_what_only_looks_like_a_unit_is_none(texts: list[str]) -> None:
    assert not read_numerals(np.array(texts, dtype=object)).recognized.any()


def cells_of(write_cell: Any) -> pd.DataFrame:
    return pd.DataFrame({"a": [write_cell(n) for n in range(40)], "b": EXPECTED[:, 1], "c": EXPECTED[:, 2]})


def test_numbers_with_one_unit_in_every_cell_are_numbers_with_a_note() -> None:
    table = read_table(cells_of(lambda n: None if n == 7 else f"{n / 10} mg"))
    assert table.columns[0].kind == "number"
    assert table.values[:9, 0] == pytest.approx([*np.arange(7) / 10, np.nan, 0.8], nan_ok=True)
    assert "'a' contains numbers written with the unit 'mg': '0.0 mg' is read as 0." in messages(table)
    declared = read_table(cells_of(lambda n: f"{n % 5} mg"), kinds={"a": "category"})
    assert declared.columns[0].levels == ("0 mg", "1 mg", "2 mg", "3 mg", "4 mg")


def test_numbers_with_different_units_are_not_compared() -> None:
    table = read_table(cells_of(lambda n: f"{n % 5} {'mg' if n % 2 else 'g'}"))
    assert table.columns[0].kind == "category"
    (warning,) = [finding for finding in table.findings if finding.severity == "warning"]
    assert "look like numbers with 'g' and 'mg': write them in the same unit" in warning.message
    with pytest.raises(TableError, match=r"'a' \(numbers with 'g' and 'mg'\) mixes units"):
        read_table(cells_of(lambda n: f"{n} {'mg' if n % 2 else 'g'}"))
    with pytest.raises(TableError, match=r"'a' \(30 of 40 numbers with 'k'\) mixes units.*kinds=\{'a': 'category'\}"):
        read_table(cells_of(lambda n: f"{n % 8 / 10}{'k' if n % 4 else ''}"))
    with pytest.raises(TableError, match=r"'0.5k' on observation 6\) mixes numbers and text"):  # a slip: say where
        read_table(cells_of(lambda n: f"{n / 10}{'k' if n == 5 else ''}"))


def test_codes_of_digits_and_letters_are_a_category_without_a_warning() -> None:
    table = read_table(cells_of(lambda n: f"{n % 3}{'AB'[n % 2]}"))
    assert table.columns[0].kind == "category"
    assert not [finding for finding in table.findings if finding.severity == "warning"]


@pytest.mark.parametrize("rare", [1, 5, 20])
@pytest.mark.parametrize("ending", ["frame", "csv"])
def test_a_column_with_both_decimal_signs_is_called_that(write: Any, rare: int, ending: str) -> None:
    for usual, other in (",.", ".,"):
        frame = cells_of(lambda n, signs=(usual, other): f"{n}{signs[n < rare]}{n % 9 + 1}")
        source = frame if ending == "frame" else write(frame.to_csv(index=False, sep=";"))
        found = rf"\({rare} values? such as '.*' on .*, others such as '.*'\) has both decimal signs: write all numbers"
        with pytest.raises(TableError, match=found):
            read_table(source)


def test_numbers_in_another_notation_come_with_a_note(write: Any) -> None:
    lines = [f'"${n},000",{n * n % 97}%,"1,{100 + n}.5"\n' for n in range(10, 50)]
    table = read_table(write("price,share,mass\n" + "".join(lines)))
    assert table.values[0].tolist() == [10_000, 100 % 97, 1110.5]
    for words in (
        "'price' contains numbers written with a currency sign and thousands separators: '$10,000' is read as 10000",
        "'share' contains numbers written with a percent sign: '3%' is read as 3",
        "'mass' contains numbers written with thousands separators: '1,110.5' is read as 1110.5",
    ):
        assert words in messages(table)


@pytest.mark.parametrize("signs", [("%", ""), ("$", "€")])
def test_numbers_in_different_units_are_refused(write: Any, signs: tuple[str, str]) -> None:
    with pytest.raises(TableError, match=r"'a' .* mixes units"):
        read_table(write("a,b\n" + "".join(f"{n}{signs[n % 2]},{n * n % 7}\n" for n in range(40))))


def test_thousands_are_told_from_decimals_by_the_rest_of_the_file(write: Any) -> None:
    german = "a;b\n" + "".join(f"1.{n};{n},5\n" for n in range(100, 140))
    assert read_table(write(german)).values[0].tolist() == [1100, 100.5]
    english = "a\tb\n" + "".join(f"1,{n}\t{n}.5\n" for n in range(100, 140))
    assert read_table(write(english, "t.tsv")).values[0].tolist() == [1100, 100.5]


def test_a_comma_that_can_be_either_is_a_decimal_sign_with_a_note(write: Any) -> None:
    path = write("a;b\n" + "".join(f"1,{n};{n * n % 7}\n" for n in range(100, 140)))
    table = read_table(path)
    assert table.values[0, 0] == 1.1
    assert "--decimal ." in table.findings[0].worded(COMMAND_LINE)
    assert "decimal='.'" in table.findings[0].worded()
    assert read_table(path, decimal=".").values[0, 0] == 1100


# Missing markers


@pytest.mark.parametrize("marker", ["?", "-999", "unknown", "n.a."])
def test_values_that_count_as_missing_can_be_named(write: Any, marker: str) -> None:
    path = write("a,b,c\n" + f"{marker},1,2\n3,{marker},4\n" + ROWS)
    frame = pd.read_csv(path, keep_default_na=False)
    for source in (path, frame, frame.astype(str), frame.to_dict("list")):
        for na in ([marker], marker, ["never", f" {marker} "]):
            assert (~read_table(source, na=na, strict=False).observed).sum() == 2
    assert np.array_equal(read_table(path, na=marker, missing="drop").values, EXPECTED)


def test_a_number_can_be_a_marker(write: Any) -> None:
    frame = pd.DataFrame(np.vstack([EXPECTED, [[-999, 1.0, 2.0]]]))
    assert read_table(frame, na=-999, missing="drop").observations == 40
    assert read_table(frame, na=[-999.0], missing="drop").observations == 40


def test_a_single_odd_value_comes_with_the_advice_to_count_it_as_missing(write: Any) -> None:
    with pytest.raises(TableError) as refusal:
        read_table(write(PLAIN + "1,?,2\n?,2,3\n"))
    assert "na=['?']" in str(refusal.value)
    assert "--na '?'" in refusal.value.worded(COMMAND_LINE)


# Standard input


@pytest.mark.parametrize("content", [PLAIN.encode(), gzip.compress(PLAIN.encode()), ("# x\n" + PLAIN).encode("utf-16")])
def test_text_is_read_from_standard_input(content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    for source in ("-", Path("-")):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        assert np.array_equal(read_table(source).values, EXPECTED)


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"", "Standard input is empty"), (b"PAR1" + bytes(100), "Standard input is not a text file but a Parquet file")],
)
def test_a_bad_standard_input_is_one_sentence(content: bytes, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    with pytest.raises(TableError, match=words):
        read_table("-")
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(TableError, match="no standard input"):
        read_table("-")


# One clear sentence


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("# only\n# comments\n", "observation|column"),
        ("A title\n", "only one column, 'A title'|column names but no rows"),
        (",,,\n,,,\n", "is empty"),
        (PLAIN.encode() + b"1,\x00,2\n", "binary data"),
        (PLAIN.encode() + ROWS.encode() * 3000 + b"1,\x00,2\n", "binary data"),
        ('a,b,c\n1,"2,3\n' + ROWS, "quote that opens on line 2 of 't.csv' never closes"),
        (PLAIN * 100 + '1,"2,3\n' + ROWS * 2000, "quote that opens on line 4101 of 't.csv' never closes"),
        ('"a,b,c\n' + ROWS * 3000, "quote in the first line of 't.csv' never closes"),
        (
            ",".join(f"c{n}" for n in range(10_000)) + "\n" + (",".join(["1"] * 10_000) + "\n") * 20,
            "10,000 columns, more than the 5,000",
        ),
    ],
)
def test_a_file_that_holds_no_table_is_one_sentence(write: Any, content: str | bytes, words: str) -> None:
    with pytest.raises(TableError, match=words) as refusal:
        read_table(write(content))
    assert "\n" not in str(refusal.value)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_pipes_devices_and_folders_are_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    for path, words in ((tmp_path / "pipe.csv", "is a pipe"), ("/dev/null", "is a pipe or a device")):
        with pytest.raises(TableError, match=words):
            read_table(path)
    with pytest.raises(TableError, match="is a directory"):
        read_table(tmp_path)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"sheet": "one"}, "not an Excel workbook. To go on: leave out sheet="),
        ({"sheet": 0}, "not an Excel workbook"),
        ({"decimal": "x"}, ". or , as the decimal sign"),
        ({"delimiter": ""}, "delimiter of one character"),
        ({"delimiter": '"'}, "delimiter of one character"),
        ({"delimiter": "::"}, "delimiter of one character"),
    ],
)
def test_an_option_that_does_not_fit_the_file_is_one_sentence(write: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(TableError, match=words):
        read_table(write(PLAIN), **options)


def test_a_sheet_of_what_is_no_file_is_refused() -> None:
    with pytest.raises(TableError, match="leave out sheet="):
        read_table(EXPECTED, sheet="one")


@pytest.mark.parametrize("damage", ["cut", "bits", "head"])
def test_a_damaged_archive_is_one_sentence_of_our_own(damage: str, tmp_path: Path) -> None:
    content = bytearray(gzip.compress(PLAIN.encode() * 50))
    if damage == "cut":
        content = content[: len(content) // 2]
    elif damage == "bits":
        content[20:40] = bytes(20)
    else:
        content[2:10] = bytes(8)
    path = tmp_path / "table.csv.gz"
    path.write_bytes(content)
    with pytest.raises(TableError, match=r"'table\.csv\.gz' is damaged: it cannot be unpacked|is not a text file"):
        read_table(path)


# Files are opened once


@pytest.mark.parametrize(
    ("name", "content", "long"),
    [
        ("t.csv", PLAIN.encode(), False),
        ("t.csv", PLAIN.encode(), True),
        ("t.csv", ("# comment\nResults\n\n" + PLAIN).encode(), False),
        ("t.csv", PLAIN.replace("a,b", "é,b").encode("latin-1"), False),
        ("t.csv", (PLAIN + "é,1,2\n").encode("latin-1"), False),
        ("t.csv", PLAIN.encode("utf-16"), False),
        ("t.csv.gz", gzip.compress(PLAIN.encode()), False),
        ("t.csv.gz", gzip.compress(PLAIN.encode()), True),
    ],
)
def test_a_text_file_is_opened_once(
    name: str, content: bytes, long: bool, write: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(content, name)
    if long:
        monkeypatch.setattr(_text, "LONG_CELLS", 0)
        monkeypatch.setattr(_text, "KEPT_BYTES", 64)  # too much to keep: the text is read again
    opened: list[str] = []
    watching = True

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if watching and event == "open":
            opened.append(str(arguments[0]))

    sys.addaudithook(watch)  # which cannot be taken away again
    try:
        table = read_table(path, strict=False)
    finally:
        watching = False
    assert opened.count(str(path)) == 1
    assert len(table.values) >= len(LINES)
