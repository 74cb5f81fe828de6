"""Tables in text files: delimiter, decimal sign, encoding, comments and titles, as the first lines show them.

A file that holds nothing but its table goes to pandas as it is. Where lines are comments or titles, pandas gets empty
lines in their place, so that its line numbers stay those of the file.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from causal_arrow.errors import Remedy, TableError
from causal_arrow.progress import READING
from causal_arrow.storage import check_room
from causal_arrow.tables.packing import CELLS_PER_PART, LONG_CELLS, pack
from causal_arrow.tables.source_frame import FileInMemory, FileOptions, SourceFrame, check_duplicates, remark
from causal_arrow.tables.table import Finding
from causal_arrow.tables.titles import Row, is_number, table_start, usual_width
from causal_arrow.text import capitalized, counted, reason

if TYPE_CHECKING:
    import pandas as pd

DELIMITERS = (",", ";", "\t", "|", " ")  # a blank stands for any run of blanks
DELIMITER_NAMES = {"tab": "\t", "\\t": "\t", "space": " ", "comma": ",", "semicolon": ";", "pipe": "|"}
BYTE_ORDER_MARKS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
FOREIGN_FILES = {  # how files start that people rename or mistake
    b"PK\x03\x04": "a zip archive or an Excel workbook: use the ending .xlsx for a workbook",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook: save it as .xlsx",
    b"PAR1": "a Parquet file: use the ending .parquet",
    b"ARROW1": "a Feather file: use the ending .feather",
}
GZIP = b"\x1f\x8b"
COMMENT = "#"
SAMPLE_BYTES = 2**20
SAMPLE_LINES = 1000
SCAN_BYTES = 2**24

NOT_UTF8 = remark("The file is not UTF-8 and was read as Latin-1: check names with special characters.")
LABELED = remark("The first field of each line has no name in the header and was taken as a label of the line.")
NAMED_BY_COMMENT = remark("The names of the columns were taken from the comment line above the numbers.")


def read_text_file(path: Path | FileInMemory, options: FileOptions) -> SourceFrame:
    """The table in a text file, which may be compressed with gzip."""
    with path.open("rb") as file:
        compressed = file.read(2) == GZIP

    def opened() -> Any:
        return gzip.open(path if isinstance(path, Path) else path.open()) if compressed else path.open("rb")

    return _read(_Text(repr(path.name), opened), options)


def read_standard_input(options: FileOptions) -> SourceFrame:
    """The table in the text that another program hands over, which may be compressed with gzip."""
    if sys.stdin is None or sys.stdin.closed:
        raise TableError("There is no standard input to read a table from.")
    content = sys.stdin.buffer.read()
    content = gzip.decompress(content) if content.startswith(GZIP) else content
    return _read(_Text("standard input", lambda: io.BytesIO(content)), options)


@dataclass(frozen=True)
class _Text:
    """Bytes of a text, to be opened as often as needed."""

    name: str  # as messages call it
    open: Callable[[], BinaryIO]

    def start(self) -> bytes:
        """The first bytes."""
        with self.open() as file:
            return file.read(SAMPLE_BYTES)

    def lines(self, encoding: str) -> list[str]:
        """Every line, with a line feed at its end."""
        with self.open() as file, io.TextIOWrapper(file, encoding=encoding, newline=None) as text:
            return list(text)

    def scan(self) -> _Scan:
        """What shows in the bytes of the whole text."""
        binary, marked, feeds = False, False, 0
        with self.open() as file:
            last = b"\n"
            while chunk := file.read(SCAN_BYTES):
                binary = binary or b"\x00" in chunk
                marked = marked or b"\n#" in last + chunk
                feeds += chunk.count(b"\n")
                last = chunk[-1:]
        return _Scan(binary, marked, feeds)


@dataclass(frozen=True)
class _Scan:
    """What shows in the bytes of a text."""

    binary: bool  # it has bytes that no text has
    marked: bool  # a line begins with the mark of comments
    feeds: int  # ends of lines


def _read(text: _Text, options: FileOptions) -> SourceFrame:
    import pandas as pd

    start = text.start()
    encoding, findings = _encoding(text.name, start)
    scan = text.scan()
    if "16" not in encoding and len(start) == SAMPLE_BYTES and scan.binary:
        raise _not_text(text.name)
    whole_lines = start if len(start) < SAMPLE_BYTES else start[: start.rfind(b"\n") + 1] or start
    layout = _layout(text.name, whole_lines.decode(encoding, errors="replace"), options)
    findings += layout.findings

    settings: dict[str, Any] = {
        "sep": r"\s+" if layout.place.delimiter == " " else layout.place.delimiter,
        "decimal": layout.decimal,
        "header": 0 if options.header else None,
        "index_col": False if layout.trailing_delimiter else None,
        "na_values": list(options.na),
        "skipinitialspace": True,
        "low_memory": False,
    }
    filtered = layout.has_other_lines or scan.marked
    long = not filtered and "16" not in encoding and scan.feeds * layout.place.width > LONG_CELLS

    def parse(encoding: str) -> tuple[pd.DataFrame, list[int] | None]:
        if long:
            return _parse_long(text, {**settings, "encoding": encoding}, layout, scan.feeds + 1, options), None
        if not filtered:
            with text.open() as file:
                return pd.read_csv(file, encoding=encoding, **settings), None
        lines = layout.place.table_lines(text.lines(encoding))
        frame = pd.read_csv(io.StringIO("".join(lines)), **settings)
        numbers = [place + 1 for place, line in enumerate(lines) if line.strip()][1 if options.header else 0 :]
        return frame, numbers if len(numbers) == len(frame) else None

    try:
        with warnings.catch_warnings():
            # A trailing delimiter makes pandas announce the loss of a column that is not there.
            warnings.simplefilter("ignore", pd.errors.ParserWarning)
            try:
                frame, numbers = parse(encoding)
            except UnicodeDecodeError:  # further down than the sample
                frame, numbers = parse("latin-1")
                findings += (NOT_UTF8,)
    except pd.errors.EmptyDataError as error:
        raise TableError(f"{capitalized(text.name)} is empty.") from error
    except pd.errors.ParserError as error:
        raise _parser_error(text.name, reason(error)) from error
    if layout.row_labels:
        findings += (LABELED,)
    return SourceFrame(
        frame,
        findings,
        first_line=layout.place.first_line + (1 if options.header else 0),
        line_numbers=numbers,
        decimal=layout.decimal,
        is_text=True,
    )


def _parse_long(
    text: _Text, settings: Mapping[str, Any], layout: _Layout, most: int, options: FileOptions
) -> pd.DataFrame:
    """The table in a text that is read in parts."""
    import pandas as pd

    width = layout.place.width
    check_room(most, width, capitalized(text.name))

    def parts(as_text: frozenset[Any]) -> Iterator[pd.DataFrame]:
        step, dtype = max(1, CELLS_PER_PART // width), dict.fromkeys(as_text, str)
        with text.open() as file, pd.read_csv(file, chunksize=step, dtype=dtype, **settings) as reader:
            yield from reader

    return pack(parts, most, lambda share: options.progress(READING, share))


def _parser_error(name: str, message: str) -> TableError:
    """What pandas' parser says, as people can use it."""
    if found := re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", message):
        expected, line, saw = map(int, found.groups())
        return _wrong_width(name, line, saw, expected)
    if found := re.search(r"EOF inside string starting at row (\d+)", message):
        return TableError(f"A quote that opens on line {int(found[1]) + 1} of {name} never closes.")
    return TableError(
        f"{capitalized(name)} is not a readable text file ({message.strip().splitlines()[0].rstrip('.')})."
    )


def _wrong_width(name: str, line: int, fields: int, expected: int) -> TableError:
    return TableError(
        f"Line {line} of {name} has {counted(fields, 'field')} where {expected} were expected: look for a stray "
        "delimiter or a missing quote.",
        [Remedy("delimiter")],
    )


def _not_text(name: str) -> TableError:
    return TableError(
        f"{capitalized(name)} is not a text file: it contains binary data, expected comma-separated values."
    )


def _encoding(name: str, start: bytes) -> tuple[str, tuple[Finding, ...]]:
    """The encoding of a text file from its first bytes, with a remark where it is a guess."""
    if not start.strip():
        raise TableError(f"{capitalized(name)} is empty.")
    for mark, encoding in BYTE_ORDER_MARKS.items():
        if start.startswith(mark):
            return encoding, ()
    for beginning, what in FOREIGN_FILES.items():
        if start.startswith(beginning):
            raise TableError(f"{capitalized(name)} is not a text file but {what}.")
    # The characters of tables, digits above all, have one zero byte each in UTF-16: the second or the first.
    zeros = [start[place::2].count(0) / max(len(start) // 2, 1) for place in (0, 1)]
    if min(zeros) < 0.05 and max(zeros) > 0.7:
        encoding = "utf-16-le" if zeros[1] > zeros[0] else "utf-16-be"
        return encoding, (remark(f"The file does not say its encoding and was read as {encoding.upper()}."),)
    if re.search(rb"[\x00-\x08\x0e-\x1f]", start):
        raise _not_text(name)
    try:  # step by step, since the sample may end in the middle of a character
        codecs.getincrementaldecoder("utf-8")().decode(start, final=len(start) < SAMPLE_BYTES)
    except UnicodeDecodeError:
        return "latin-1", (NOT_UTF8,)
    return "utf-8", ()


# Layout


@dataclass(frozen=True)
class _Place:
    """On which lines of a text the table stands, and how wide it is."""

    delimiter: str
    width: int  # fields in a line
    first_line: int  # of the header, or of the first observation if there is none
    header_is_comment: bool

    def table_lines(self, lines: Sequence[str]) -> list[str]:
        """The lines with empty ones in place of comments and titles."""
        kept = list(lines)
        for place, line in enumerate(lines):
            if place + 1 == self.first_line:
                kept[place] = _uncommented(line) if self.header_is_comment else line
            elif place + 1 < self.first_line or _is_comment(line, self.delimiter, self.width):
                kept[place] = "\n"
        return kept


@dataclass(frozen=True)
class _Layout:
    """How the fields of a text file are separated and written, and where the table stands."""

    place: _Place
    decimal: str
    trailing_delimiter: bool  # lines end in a delimiter that the header does not have
    row_labels: bool  # lines start with a field that the header does not name
    has_other_lines: bool  # titles or comments
    findings: tuple[Finding, ...] = ()


def _layout(name: str, sample: str, options: FileOptions) -> _Layout:
    """The layout of a text file, from its first lines."""
    lines = list(io.StringIO(sample, newline=None))
    place = _place(name, lines, options)
    kept = place.table_lines(lines)
    rows = _split("".join(kept), place.delimiter)
    header, observations = rows[0], rows[1:]
    if options.header:
        _check_header(name, header)
    if options.header and observations and all(len(row) > len(header) + 1 for row in observations):
        # pandas would take the first fields for labels.
        raise _wrong_width(name, observations[0].line, len(observations[0]), len(header))
    longer = bool(observations) and all(len(row) == len(header) + 1 for row in observations)
    trailing = longer and not any(row.fields[-1] for row in observations)
    decimal, findings = _decimal(observations if options.header else rows, place.delimiter)
    if options.decimal is not None:
        decimal, findings = options.decimal, ()
    return _Layout(
        place=place,
        decimal=decimal,
        trailing_delimiter=trailing,
        row_labels=options.header and longer and not trailing,
        has_other_lines=kept != lines,
        findings=(*findings, *([NAMED_BY_COMMENT] if place.header_is_comment else [])),
    )


def _place(name: str, lines: Sequence[str], options: FileOptions) -> _Place:
    """Where the table stands, by lines of which most have the same number of fields."""
    marked = [line.lstrip().startswith(COMMENT) for line in lines]
    if all(mark or not line.strip() for mark, line in zip(marked, lines, strict=True)):
        marked = [False] * len(lines)  # then it is not a mark of comments
    bare = "".join("\n" if mark else line for mark, line in zip(marked, lines, strict=True))
    delimiter = _given_delimiter(options.delimiter) or max(DELIMITERS, key=lambda one: _evidence(bare, one, options))
    rows = _split(bare, delimiter)
    if not rows:
        raise TableError(
            f"A quote in the first line of {name} never closes." if '"' in bare else f"{capitalized(name)} is empty."
        )
    start, width = table_start(rows, options.header), usual_width(rows)
    above = [line for line in range(1, rows[start].line) if marked[line - 1]]
    if options.header and start == 0 and above and rows[0].has_number:
        names = _uncommented(lines[above[-1] - 1])
        if _width(names, delimiter) == width:
            return _Place(delimiter, width, above[-1], header_is_comment=names != lines[above[-1] - 1])
    return _Place(delimiter, width, rows[start].line, header_is_comment=False)


def _given_delimiter(delimiter: str | None) -> str | None:
    if delimiter is None:
        return None
    named = DELIMITER_NAMES.get(delimiter.lower(), delimiter)
    if len(named) != 1 or named in '\r\n"':
        raise TableError(f"Expected a delimiter of one character, or tab, got {delimiter!r}.")
    return named


def _split(sample: str, delimiter: str) -> list[Row]:
    """The first lines as fields, without lines that have none."""
    if delimiter == " ":
        split = ((place + 1, line.split()) for place, line in enumerate(sample.splitlines()))
        return [Row(line, tuple(fields)) for line, fields in islice(split, SAMPLE_LINES) if fields]
    reader = csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter, skipinitialspace=True)
    rows = []
    try:
        line = 1
        for fields in islice(reader, SAMPLE_LINES):
            if any(fields):
                rows.append(Row(line, tuple(fields)))
            line = reader.line_num + 1
    except csv.Error:  # a quote that never closes; pandas says where it opens
        pass
    return rows


def _width(line: str, delimiter: str) -> int:
    rows = _split(line, delimiter)
    return len(rows[0]) if rows else 0


def _is_comment(line: str, delimiter: str, width: int) -> bool:
    """Whether a line starts with the mark of comments and does not have the fields of an observation."""
    return line.lstrip().startswith(COMMENT) and _width(line, delimiter) != width


def _uncommented(line: str) -> str:
    """The names in a comment line; a first column that is called # stays."""
    return line if re.match(r"\s*#\s*[,;\t|]", line) else line.lstrip().lstrip(COMMENT).lstrip()


def _evidence(sample: str, delimiter: str, options: FileOptions) -> tuple[float, int]:
    """How well a delimiter explains the first lines: the share of lines as wide as the header, then the width."""
    rows = _split(sample, delimiter)
    if not rows:
        return 0.0, 0
    start = table_start(rows, options.header)
    width = len(rows[start])
    if width < 2:
        return 0.0, 0
    fitting = sum(len(row) in (width, width + 1) for row in rows[start + 1 :])
    return round(fitting / max(len(rows) - 1, 1), 1), width


def _check_header(name: str, header: Row) -> None:
    names = [field.strip() for field in header.fields]
    if any(field and not is_number(field) for field in names):
        check_duplicates(names, name)
    elif any(re.search(r"[.,eE]", field) for field in names):
        raise TableError(
            f"The first line of {name} holds numbers where names of columns were expected: add a line with names, or "
            "have them called x1, x2, ...",
            [Remedy("header")],
        )


_EITHER = r"[+-]?\d{1,3}[.,]\d{3}"  # a decimal sign, or a separator of thousands
_POINT = re.compile(r"[+-]?(\d*\.\d+|\d{1,3}(,\d{3})+\.\d+)([eE][+-]?\d+)?")
_COMMA = re.compile(r"[+-]?(\d*,\d+|\d{1,3}(\.\d{3})+,\d+)([eE][+-]?\d+)?")


def _decimal(rows: Sequence[Row], delimiter: str) -> tuple[str, tuple[Finding, ...]]:
    """The decimal sign: a comma where numbers have commas that can be nothing else, and none has such a point."""
    fields = [field for row in rows for field in row.fields if "," in field or "." in field]
    with_comma = [field for field in fields if _COMMA.fullmatch(field)]
    with_point = [field for field in fields if _POINT.fullmatch(field)]
    certain_comma = any(not re.fullmatch(_EITHER, field) for field in with_comma)
    certain_point = any(not re.fullmatch(_EITHER, field) for field in with_point)
    if certain_comma != certain_point:
        return ("," if certain_comma else "."), ()
    if certain_comma or with_point or not with_comma or delimiter == ",":
        return ".", ()
    number = with_comma[0].replace(",", ".")
    message = f"Numbers such as '{with_comma[0]}' were read with a decimal comma, as {number}."
    return ",", (remark(message, Remedy("decimal", setting=".", about="a comma between thousands")),)
