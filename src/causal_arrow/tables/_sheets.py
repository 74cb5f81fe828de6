"""Sheets: the sheets of an Excel workbook and their cells, read without keeping anything else of the file.

A workbook is an archive of XML. Libraries make objects of all of it, of every format, link and merged cell, before they
come to the first value: a file of 30 kB then takes gigabytes. Here a parser calls functions that keep cells and texts.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, BinaryIO
from xml.parsers import expat
from zipfile import ZipFile

from causal_arrow.errors import TableError
from causal_arrow.text import capitalized

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

Cells = dict[int, Any]
"""The values of a row by their columns, both counted from 1."""
Handler = Callable[..., None]


@dataclass(frozen=True)
class Sheets:
    """The sheets of a workbook: the files of its archive that hold them, by their names, and what their cells need."""

    archive: ZipFile
    name: str  # as messages call it
    files: Mapping[str, str]  # empty for a sheet that is a chart
    strings: str | None
    styles: str | None
    epoch: datetime

    @classmethod
    def of(cls, file: BinaryIO, name: str) -> Sheets:
        """The sheets of an open file."""
        from openpyxl.utils.datetime import CALENDAR_MAC_1904, CALENDAR_WINDOWS_1900

        archive = ZipFile(file)
        start = next((path for kind, path in _related(archive, "").values() if kind == "officeDocument"), ROOT)
        related = _related(archive, start)
        listed: dict[str, str] = {}
        epoch = CALENDAR_WINDOWS_1900

        def note(tag: str, attributes: dict[str, str]) -> None:
            nonlocal epoch
            if tag == "workbookPr" and attributes.get("date1904") in ("1", "true"):
                epoch = CALENDAR_MAC_1904
            elif tag == "sheet":
                key = next((value for name, value in attributes.items() if name.endswith(":id")), "")
                kind, path = related.get(key, ("", ""))
                if path in archive.NameToInfo:
                    listed[attributes["name"]] = path if kind == "worksheet" else ""

        for _ in _parsed(archive, start, start=note):
            pass
        further = dict(related.values())
        return cls(archive, name, listed, further.get("sharedStrings"), further.get("styles"), epoch)

    def rows(self, sheet: str) -> Iterator[tuple[int, Cells]]:
        """The rows of a sheet that hold something, by their number; TableError for more than MAX_CELLS."""
        if not self.files[sheet]:
            raise TableError(f"The sheet {sheet!r} of {self.name} holds a chart and no cells.")
        reader = _CellHandlers(self._values())
        last = 0
        for _ in _parsed(self.archive, self.files[sheet], reader.start, reader.end, reader.text):
            for line, cells in reader.finished:
                if not last < line <= MAX_ROW or max(cells) > MAX_COLUMN:
                    raise TableError(f"{capitalized(self.name)} is damaged: it names a cell that no sheet has.")
                last = line
                yield line, cells
            reader.finished.clear()
            if reader.seen > MAX_CELLS:
                raise self._too_many()

    def _too_many(self) -> TableError:
        return TableError(
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
            if kind == "s":
                text = strings[int(text)]
            elif kind == "b":
                return bool(int(text))
            elif kind == "d":
                return from_ISO8601(text)
            elif kind == "e":
                return float("nan")
            return text if text.strip() else None

        return value_of

    def _strings(self) -> list[str]:
        """The texts that cells refer to by their number."""
        if self.strings not in self.archive.NameToInfo:
            return []
        found: list[str] = []
        reader = _TextHandlers()

        def end(tag: str) -> None:
            reader.end(tag)
            if tag == "si":
                found.append(reader.taken().replace("x005F_", ""))

        for _ in _parsed(self.archive, str(self.strings), reader.start, end, reader.text):
            if len(found) > MAX_CELLS:
                raise self._too_many()
        return found

    def _date_styles(self) -> dict[str, bool]:
        """The numbers of the styles of dates and times, and whether they are durations."""
        from openpyxl.styles.numbers import BUILTIN_FORMATS, is_date_format, is_timedelta_format

        if self.styles not in self.archive.NameToInfo:
            return {}
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

        for _ in _parsed(self.archive, str(self.styles), start=start):
            if len(used) > MAX_CELLS:
                raise self._too_many()
        dates = {key: is_timedelta_format(code) for key, code in formats.items() if is_date_format(code)}
        return {str(number): dates[key] for number, key in enumerate(used) if key in dates}


def _number(text: str) -> float:
    """A number, which is an int if it is whole."""
    if len(text) < 20 and text.isdecimal():
        return int(text)
    value = float(text)
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def _related(archive: ZipFile, path: str) -> dict[str, tuple[str, str]]:
    """The kinds and the paths of the files that a file of an archive refers to, by their keys."""
    home, name = posixpath.split(path)
    list_of_them = posixpath.join(home, "_rels", f"{name}.rels")
    found: dict[str, tuple[str, str]] = {}

    def note(tag: str, attributes: dict[str, str]) -> None:
        if tag == "Relationship" and {"Id", "Type", "Target"} <= attributes.keys():
            target = posixpath.normpath(posixpath.join("/", home, attributes["Target"])).lstrip("/")
            found[attributes["Id"]] = (attributes["Type"].rpartition("/")[2], target)

    if list_of_them in archive.NameToInfo:
        for _ in _parsed(archive, list_of_them, start=note):
            pass
    return found


def _parsed(
    archive: ZipFile, path: str, start: Handler | None = None, end: Handler | None = None, text: Handler | None = None
) -> Iterator[None]:
    """Parse an XML file of an archive piece by piece: handlers are called with tags without their prefixes."""
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
    with archive.open(path) as file:
        while chunk := file.read(CHUNK_BYTES):
            parser.Parse(chunk)
            read += len(chunk)
            if read - parser.CurrentByteIndex > MAX_TAG_BYTES:
                raise TableError("The workbook is damaged: it has a tag of more than a megabyte.")
            yield
    parser.Parse(b"", True)
    yield


class _TextHandlers:
    """Handlers that collect text of `t` elements, without those of how it is pronounced."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.inside = False
        self.pronounced = False

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "t":
            self.inside = not self.pronounced
        elif tag == "rPh":
            self.pronounced = True

    def end(self, tag: str) -> None:
        if tag == "t":
            self.inside = False
        elif tag == "rPh":
            self.pronounced = False

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
        elif tag == "v":
            self.inside = self.kind != "inlineStr"
        elif tag == "row":
            self.seen += 1
            self.line = int(float(attributes["r"])) if "r" in attributes else self.line + 1
            self.column = 0
        elif self.kind == "inlineStr":
            super().start(tag, attributes)

    def end(self, tag: str) -> None:
        if tag == "c":
            text = self.taken()
            if text and (value := self.value_of(self.kind, self.style, text)) is not None:
                self.cells[self.column] = value
            self.kind = ""
        elif tag == "row":
            if self.cells:
                self.finished.append((self.line, self.cells))
                self.cells = {}
        elif tag == "v":
            self.inside = False
        elif self.kind == "inlineStr":
            super().end(tag)


def _column(cell: str) -> int:
    """The number of the column of a cell such as "AB12"."""
    number = 0
    for letter in cell.rstrip("0123456789")[:4].upper():
        number = 26 * number + ord(letter) - ord("A") + 1
    return number
