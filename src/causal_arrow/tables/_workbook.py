"""read_workbook(): the table in a sheet of an Excel workbook, read without keeping anything else of the file.

A workbook is an archive of XML. Libraries make objects of all of it, of every format, link and merged cell, before they
come to the first value: a file of 30 kB then takes gigabytes. Here a parser calls functions that keep cells and texts.
And a sheet of a few kilobytes may name cells in the last row and the last column of a million rows, so nothing here
depends on the extent of a sheet, only on the number of its cells.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, BinaryIO
from xml.parsers import expat
from zipfile import ZipFile

from causal_arrow.errors import Remedy, TableError
from causal_arrow.inputs import is_zip_bomb
from causal_arrow.progress import Progress
from causal_arrow.tables._text import MAX_FIELDS, Row, sheet_start
from causal_arrow.tables.options import ReadOptions
from causal_arrow.tables.raw import RawFrame, check_duplicates, remark
from causal_arrow.tables.table import Finding
from causal_arrow.text import capitalized, first_few, listed, shown

MAX_RATIO = 20
"""Workbooks are text in a zip archive, which takes a tenth of it, seldom less."""
CHUNK_BYTES = 2**16
MAX_ROW = 2**20
MAX_COLUMN = 2**14
"""The last row and column of a sheet in Excel."""
MAX_CELLS = 3_000_000
"""Also of the texts that cells share, and of formats."""
MAX_TAG_BYTES = 2**20
MAX_FORMAT = 255
"""The length of the longest format of numbers in Excel."""
ROOT = "xl/workbook.xml"
SAMPLE_ROWS = 1000
"""The first rows with cells, in which the table has to start."""
FAR = 100
"""After so many empty rows or columns, a few cells are strays."""
STRAY_SHARE = 0.01

Cells = dict[int, Any]
"""The values of a row by their columns, both counted from 1."""
Handler = Callable[..., None]


def read_workbook(file: BinaryIO, name: str, options: ReadOptions, progress: Progress) -> RawFrame:
    """Read the table in a sheet of an open Excel file; `name` is what messages call it."""
    from pandas.io.parsers import TextParser

    if is_zip_bomb(file, MAX_RATIO):
        raise TableError(f"{capitalized(name)} unpacks to many times its size: no workbook of a table does.")
    book = _Workbook(file, name)
    sheet = book.sheet(options.sheet)
    rows = dict(book.rows(sheet))
    others = [each for each in book.sheets if each != sheet]
    also = f" The workbook also has {listed(others)}." if others else ""
    remedies = [Remedy("sheet", setting=others[0])] if others else []
    if not rows:
        raise TableError(f"The sheet {sheet!r} of {name} is empty.{also}", remedies)
    rows, strays = _without_strays(rows)
    left = min(min(cells) for cells in rows.values())
    first_rows = [_as_row(line, cells, left) for line, cells in islice(rows.items(), SAMPLE_ROWS)]
    start = sheet_start(first_rows, options.header)
    if options.header:  # pandas renames the second 'a' to 'a.1', so look at the header itself
        check_duplicates([field.strip() for field in first_rows[start].fields], name)
    lines = _without_gaps(list(rows)[start:])
    columns = _without_gaps(sorted({column for line in lines for column in rows.get(line, ())}))
    if len(lines) * len(columns) > max(MAX_CELLS, 10 * sum(map(len, rows.values()))):
        raise TableError(f"The cells of {name} are scattered over {len(lines):,} rows and {len(columns):,} columns.")
    nothing: Cells = {}
    dense = [[rows.get(line, nothing).get(column, "") for column in columns] for line in lines]
    header, below = (0, lines[1:]) if options.header else (None, lines)
    frame = TextParser(dense, header=header, na_values=list(options.na or ()), skip_blank_lines=False).read()
    findings: list[Finding] = []
    if options.sheet is None and others:
        findings.append(remark(f"Only the first sheet, {sheet!r}, was read.{also}", *remedies))
    if start:
        titles = [shown(" ".join(filter(None, row.fields))) for row in first_rows[:start]]
        findings.append(remark(f"Rows above the table were skipped: {first_few(titles, 3)}."))
    return RawFrame(frame, (*findings, *strays), lines=below)


# Rows of a sheet


def _as_row(line: int, cells: Cells, left: int) -> Row:
    """A row as text, from the first column of the sheet to its last cell."""
    fields = [""] * (min(max(cells), left + MAX_FIELDS) - left + 1)
    for column, value in cells.items():
        if column - left < len(fields):
            fields[column - left] = str(value).strip()
    return Row(line, tuple(fields))


def _without_strays(rows: dict[int, Cells]) -> tuple[dict[int, Cells], list[Finding]]:
    """The rows without a few cells far below or to the right of all others, and a remark on them."""
    from openpyxl.utils import get_column_letter

    in_columns = Counter(column for cells in rows.values() for column in cells)
    few = max(1, int(STRAY_SHARE * in_columns.total()))
    below = _beyond({line: len(cells) for line, cells in rows.items()}, few)
    beyond = _beyond(in_columns, few)
    strays = [(line, column) for line, cells in rows.items() for column in cells if line in below or column in beyond]
    if not strays or len(strays) > few:
        return rows, []
    kept = {
        line: left
        for line, cells in rows.items()
        if line not in below and (left := {column: value for column, value in cells.items() if column not in beyond})
    }
    names = [f"{get_column_letter(column)}{line}" for line, column in strays]
    subject = f"Cell {names[0]} is" if len(names) == 1 else f"Cells {first_few(names, 3)} are"
    return kept, [remark(f"{subject} far from the table and {'was' if len(names) == 1 else 'were'} ignored.")]


def _beyond(counts: dict[int, int], few: int) -> set[int]:
    """The numbers of rows or columns after the first gap of FAR that has only a few cells behind it."""
    numbers = sorted(counts)
    behind, start = 0, len(numbers)
    for index in range(len(numbers) - 1, 0, -1):
        behind += counts[numbers[index]]
        if behind > few:
            break
        if numbers[index] - numbers[index - 1] > FAR:
            start = index
    return set(numbers[start:])


def _without_gaps(numbers: Sequence[int]) -> list[int]:
    """The numbers and those between them; of a gap that is wide, nothing."""
    filled: list[int] = []
    for number in numbers:
        if filled and number - filled[-1] <= FAR:
            filled += range(filled[-1] + 1, number)
        filled.append(number)
    return filled


# The archive


class _Workbook:
    """The sheets of a workbook and the values of their cells."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        from openpyxl.utils.datetime import CALENDAR_MAC_1904, CALENDAR_WINDOWS_1900

        self.archive, self.name = ZipFile(file), name
        self.sheets: dict[str, str] = {}  # the files that hold them, by name; empty for a sheet that is a chart
        self.epoch = CALENDAR_WINDOWS_1900
        start = next((path for kind, path in self._related("").values() if kind == "officeDocument"), ROOT)
        self.archive.getinfo(start)  # a KeyError if this is no workbook
        related = self._related(start)

        def note(tag: str, attributes: dict[str, str]) -> None:
            if tag == "workbookPr" and attributes.get("date1904") in ("1", "true"):
                self.epoch = CALENDAR_MAC_1904
            elif tag == "sheet":
                key = next((value for name, value in attributes.items() if name.endswith(":id")), "")
                kind, path = related.get(key, ("", ""))
                if path in self.archive.NameToInfo:
                    self.sheets[attributes["name"]] = path if kind == "worksheet" else ""

        for _ in self._parsed(start, start=note):
            pass
        self.files = dict(related.values())  # by their kind

    def _related(self, path: str) -> dict[str, tuple[str, str]]:
        """The kinds and the paths of the files that a file of the archive refers to, by their keys."""
        home, name = posixpath.split(path)
        found: dict[str, tuple[str, str]] = {}

        def note(tag: str, attributes: dict[str, str]) -> None:
            if tag == "Relationship" and {"Id", "Type", "Target"} <= attributes.keys():
                target = posixpath.normpath(posixpath.join("/", home, attributes["Target"])).lstrip("/")
                found[attributes["Id"]] = (attributes["Type"].rpartition("/")[2], target)

        for _ in self._parsed(posixpath.join(home, "_rels", f"{name}.rels"), start=note):
            pass
        return found

    def _parsed(
        self, path: str | None, start: Handler | None = None, end: Handler | None = None, text: Handler | None = None
    ) -> Iterator[None]:
        """Parse an XML file, if it is there, piece by piece: handlers are called with tags without their prefixes."""
        if path not in self.archive.NameToInfo:
            return
        parser = expat.ParserCreate()
        parser.buffer_text = True

        def refuse(*_: object) -> None:
            raise TableError("The workbook is damaged: it declares a type of document.")

        parser.StartDoctypeDeclHandler = refuse  # which could declare entities that unpack to gigabytes
        if start is not None:
            parser.StartElementHandler = lambda tag, attributes: start(tag.rpartition(":")[2], attributes)
        if end is not None:
            parser.EndElementHandler = lambda tag: end(tag.rpartition(":")[2])
        if text is not None:
            parser.CharacterDataHandler = text
        read = 0
        with self.archive.open(path) as file:
            while chunk := file.read(CHUNK_BYTES):
                parser.Parse(chunk)
                read += len(chunk)
                if read - parser.CurrentByteIndex > MAX_TAG_BYTES:
                    raise TableError("The workbook is damaged: it has a tag of more than a megabyte.")
                yield
        parser.Parse(b"", True)
        yield

    def sheet(self, wanted: str | int | None) -> str:
        """The name of the sheet to read, given its name or number."""
        names = list(self.sheets)
        wanted = 0 if wanted is None else wanted
        if isinstance(wanted, int) and 0 <= wanted < len(names):
            return names[wanted]
        if wanted not in names:
            raise TableError(f"{self.name} has no sheet {wanted!r}: its sheets are {', '.join(map(repr, names))}.")
        return str(wanted)

    def rows(self, sheet: str) -> Iterator[tuple[int, Cells]]:
        """The rows of a sheet that hold something, by their number; TableError for more than MAX_CELLS."""
        if not self.sheets[sheet]:
            raise TableError(f"The sheet {sheet!r} of {self.name} holds a chart and no cells.")
        reader = _CellHandlers(self._values())
        last = 0
        for _ in self._parsed(self.sheets[sheet], reader.start, reader.end, reader.text):
            for line, cells in reader.finished:
                if not last < line <= MAX_ROW or max(cells) > MAX_COLUMN:
                    raise TableError(f"{capitalized(self.name)} is damaged: it names a cell that no sheet has.")
                last = line
                yield line, cells
            reader.finished.clear()
            self._check_count(reader.seen)

    def _check_count(self, count: int) -> None:
        if count > MAX_CELLS:
            raise TableError(
                f"{capitalized(self.name)} holds more than {MAX_CELLS:,} cells: save the sheet as .csv or .parquet."
            )

    def _values(self) -> Callable[[str, str, str], Any]:
        """A function that makes the value of a cell from its type, its style and its text."""
        from openpyxl.utils.datetime import from_excel, from_ISO8601

        strings, dates = self._strings(), self._date_styles()

        def value_of(kind: str, style: str, text: str) -> Any:
            if kind == "n":
                if style not in dates:
                    return _number(text)
                try:
                    return from_excel(float(text), self.epoch, timedelta=dates[style])
                except (OverflowError, ValueError):  # beyond the calendar
                    return float("nan")
            if kind == "b":
                return bool(int(text))
            if kind == "d":
                return from_ISO8601(text)
            if kind == "e":
                return float("nan")
            if kind == "s":
                text = strings[int(text)]
            return text if text.strip() else None

        return value_of

    def _strings(self) -> list[str]:
        """The texts that cells refer to by their number."""
        found: list[str] = []
        reader = _TextHandlers()

        def end(tag: str) -> None:
            reader.end(tag)
            if tag == "si":
                found.append(reader.taken().replace("x005F_", ""))

        for _ in self._parsed(self.files.get("sharedStrings"), reader.start, end, reader.text):
            self._check_count(len(found))
        return found

    def _date_styles(self) -> dict[str, bool]:
        """The numbers of the styles of dates and times, and whether they are durations."""
        from openpyxl.styles.numbers import BUILTIN_FORMATS, is_date_format, is_timedelta_format

        formats = {str(number): code for number, code in BUILTIN_FORMATS.items()}
        used: list[str] = []
        inside = ""

        def start(tag: str, attributes: dict[str, str]) -> None:
            nonlocal inside
            if tag == "numFmt" and "numFmtId" in attributes:
                formats[attributes["numFmtId"]] = attributes.get("formatCode", "")[:MAX_FORMAT]
            elif tag in ("cellXfs", "cellStyleXfs"):
                inside = tag
            elif tag == "xf" and inside == "cellXfs":
                used.append(attributes.get("numFmtId", ""))

        for _ in self._parsed(self.files.get("styles"), start=start):
            self._check_count(len(used))
        dates = {key: is_timedelta_format(code) for key, code in formats.items() if is_date_format(code)}
        return {str(number): dates[key] for number, key in enumerate(used) if key in dates}


def _number(text: str) -> float:
    """A number, which is an int if it is whole."""
    if len(text) < 20 and text.isdecimal():
        return int(text)
    value = float(text)
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


class _TextHandlers:
    """Handlers that collect the text of `t` and `v` elements, without that of how it is pronounced."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.inside = self.pronounced = False

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "rPh":
            self.pronounced = True
        elif tag in ("t", "v"):
            self.inside = not self.pronounced

    def end(self, tag: str) -> None:
        if tag == "rPh":
            self.pronounced = False
        elif tag in ("t", "v"):
            self.inside = False

    def text(self, text: str) -> None:
        if self.inside:
            self.pieces.append(text)

    def taken(self) -> str:
        """The text so far, from now on forgotten."""
        whole = "".join(self.pieces)
        self.pieces.clear()
        return whole


class _CellHandlers(_TextHandlers):
    """Handlers that collect the rows of a sheet which hold something."""

    def __init__(self, value_of: Callable[[str, str, str], Any]) -> None:
        super().__init__()
        self.value_of = value_of
        self.finished: list[tuple[int, Cells]] = []
        self.seen = 0  # rows and cells, also empty ones
        self.line = self.column = 0
        self.cells: Cells = {}
        self.kind = self.style = ""

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "c":
            self.seen += 1
            self.kind, self.style = attributes.get("t", "n"), attributes.get("s", "")
            self.column = _column(attributes["r"]) if "r" in attributes else self.column + 1
        elif tag == "row":
            self.seen += 1
            self.line = int(float(attributes["r"])) if "r" in attributes else self.line + 1
            self.column = 0
        elif self.kind and (tag == "v") != (self.kind == "inlineStr"):
            super().start(tag, attributes)

    def end(self, tag: str) -> None:
        super().end(tag)
        if tag == "c":
            text = self.taken()
            if text and (value := self.value_of(self.kind, self.style, text)) is not None:
                self.cells[self.column] = value
            self.kind = ""
        elif tag == "row" and self.cells:
            self.finished.append((self.line, self.cells))
            self.cells = {}


def _column(cell: str) -> int:
    """The number of the column of a cell such as "AB12"."""
    number = 0
    for letter in cell.rstrip("0123456789")[:4].upper():
        number = 26 * number + ord(letter) - ord("A") + 1
    return number
