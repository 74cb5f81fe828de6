"""read_workbook(): the table in a sheet, from the cells that hold something.

A sheet of a few kilobytes may name cells in the last row and the last column of a million rows, so nothing here depends
on the extent of a sheet, only on the number of its cells.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import BinaryIO

from causal_arrow.errors import Remedy, TableError
from causal_arrow.inputs import is_zip_bomb
from causal_arrow.progress import Progress
from causal_arrow.tables._raw import RawFrame, check_duplicates, remark
from causal_arrow.tables._sheets import MAX_CELLS, Cells, Sheets
from causal_arrow.tables._text import MAX_FIELDS, Row, sheet_start
from causal_arrow.tables.options import ReadOptions
from causal_arrow.tables.table import Finding
from causal_arrow.text import capitalized, first_few, listed, shown

MAX_RATIO = 20
"""Workbooks are text in a zip archive, which takes a tenth of it, seldom less."""
SAMPLE_ROWS = 1000
"""The first rows with cells, in which the table has to start."""
FAR = 100
"""After so many empty rows or columns, a few cells are strays."""
STRAY_SHARE = 0.01


def read_workbook(file: BinaryIO, name: str, options: ReadOptions, progress: Progress) -> RawFrame:
    """Read the table in a sheet of an open Excel file; `name` is what messages call it."""
    from pandas import DataFrame
    from pandas.io.parsers import TextParser

    if is_zip_bomb(file, MAX_RATIO):
        raise TableError(f"{capitalized(name)} unpacks to many times its size: no workbook of a table does.")
    sheet, sheets, rows = _sheet(file, name, options)
    others = [each for each in sheets if each != sheet]
    also = f" The workbook also has {listed(others)}." if others else ""
    remedies = [Remedy("sheet", setting=others[0])] if others else []
    if not rows:
        raise TableError(f"The sheet {sheet!r} of {name} is empty.{also}", remedies)
    rows, strays = _without_strays(rows, name)
    left = min(min(cells) for cells in rows.values())
    first_rows = [_as_row(line, cells, left) for line, cells in islice(rows.items(), SAMPLE_ROWS)]
    start = sheet_start(first_rows, options.header)
    if options.header:  # pandas renames the second 'a' to 'a.1', so look at the header itself
        check_duplicates([field.strip() for field in first_rows[start].fields], name)
    lines = _grid(list(rows)[start:], FAR)
    columns = _grid(sorted({column for line in lines for column in rows.get(line, ())}), FAR)
    if len(lines) * len(columns) > max(MAX_CELLS, 10 * sum(map(len, rows.values()))):
        raise TableError(f"The cells of {name} are scattered over {len(lines):,} rows and {len(columns):,} columns.")
    nothing: Cells = {}
    dense = [[rows.get(line, nothing).get(column, "") for column in columns] for line in lines]
    header, below = (0, lines[1:]) if options.header else (None, lines)
    frame: DataFrame = TextParser(dense, header=header, na_values=list(options.na or ()), skip_blank_lines=False).read()
    findings: list[Finding] = []
    if options.sheet is None and others:
        findings.append(remark(f"Only the first sheet, {sheet!r}, was read.{also}", *remedies))
    if start:
        titles = [shown(" ".join(filter(None, row.fields))) for row in first_rows[:start]]
        findings.append(remark(f"Rows above the table were skipped: {first_few(titles, 3)}."))
    return RawFrame(frame, (*findings, *strays), lines=below)


def _sheet(file: BinaryIO, name: str, options: ReadOptions) -> tuple[str, list[str], dict[int, Cells]]:
    """The name of the sheet to read, those of all sheets, and its rows that hold something."""
    book = Sheets.of(file, name)
    sheets = list(book.files)
    wanted = 0 if options.sheet is None else options.sheet
    if isinstance(wanted, int) and 0 <= wanted < len(sheets):
        wanted = sheets[wanted]
    if wanted not in sheets:
        raise TableError(f"{name} has no sheet {wanted!r}: its sheets are {', '.join(map(repr, sheets))}.")
    return str(wanted), sheets, dict(book.rows(str(wanted)))


def _as_row(line: int, cells: Cells, left: int) -> Row:
    """A row as text, from the first column of the sheet to its last cell."""
    fields = [""] * (min(max(cells), left + MAX_FIELDS) - left + 1)
    for column, value in cells.items():
        if column - left < len(fields):
            fields[column - left] = str(value).strip()
    return Row(line, tuple(fields))


def _without_strays(rows: dict[int, Cells], name: str) -> tuple[dict[int, Cells], list[Finding]]:
    """The rows without a few cells far below or to the right of all others, and a remark on them."""
    from openpyxl.utils import get_column_letter

    in_columns = Counter(column for cells in rows.values() for column in cells)
    few = max(1, int(STRAY_SHARE * in_columns.total()))
    below = set(_beyond(sorted(rows), [len(rows[line]) for line in sorted(rows)], few))
    beyond = set(_beyond(sorted(in_columns), [in_columns[column] for column in sorted(in_columns)], few))
    strays = [(line, column) for line, cells in rows.items() for column in cells if line in below or column in beyond]
    if not strays or len(strays) > few:
        return rows, []
    kept = {
        line: left
        for line, cells in rows.items()
        if line not in below and (left := {column: value for column, value in cells.items() if column not in beyond})
    }
    places = [f"{get_column_letter(column)}{line}" for line, column in strays]
    subject = f"Cell {places[0]} is" if len(places) == 1 else f"Cells {first_few(places, 3)} are"
    return kept, [remark(f"{subject} far from the table and {'was' if len(places) == 1 else 'were'} ignored.")]


def _beyond(numbers: Sequence[int], counts: Sequence[int], few: int) -> Sequence[int]:
    """The numbers after the first gap of FAR that has only a few cells behind it."""
    behind = 0
    start = len(numbers)
    for index in range(len(numbers) - 1, 0, -1):
        behind += counts[index]
        if behind > few:
            break
        if numbers[index] - numbers[index - 1] > FAR:
            start = index
    return numbers[start:]


def _grid(numbers: Sequence[int], far: int) -> list[int]:
    """The numbers and those between them; of a gap that is wide, nothing."""
    filled: list[int] = []
    for number in numbers:
        if filled and number - filled[-1] <= far:
            filled += range(filled[-1] + 1, number)
        filled.append(number)
    return filled
