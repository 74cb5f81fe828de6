"""read_text(): a table in a text file, whose first lines show its delimiter, decimal sign, encoding and titles.

A file that holds nothing but its table goes to pandas as it is. Where lines are comments or titles, pandas gets empty
lines in their place, so that its line numbers stay those of the file.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import os
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from causal_arrow.errors import Remedy, TableError
from causal_arrow.inputs import is_bomb
from causal_arrow.progress import READING, Progress
from causal_arrow.storage import check_room
from causal_arrow.tables.options import ReadOptions
from causal_arrow.tables.raw import CELLS_PER_PART, LONG_CELLS, RawFrame, check_duplicates, pack, remark
from causal_arrow.tables.table import Finding
from causal_arrow.text import capitalized, counted, reason

if TYPE_CHECKING:
    import pandas as pd

DELIMITERS = (",", ";", "\t", "|", " ")  # a blank stands for any run of blanks
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
KEPT_BYTES = 2**24
"""A text of at most this size is read once and kept while it is parsed; a longer one is read twice."""
MAX_TITLES = 20
MAX_FIELDS = 20_000
"""A line with more of them is not a row of a table, and takes pandas long to read."""
MAX_RATIO = 100
"""No table of text is packed by more than this by gzip."""

NOT_UTF8 = remark("The file is not UTF-8 and was read as Latin-1: check names with special characters.")
LABELED = remark("The first field of each line has no name in the header and was taken as a row label.")
NAMED_BY_COMMENT = remark("Column names were taken from the comment line above the numbers.")


def read_text(file: BinaryIO, name: str, options: ReadOptions, progress: Progress) -> RawFrame:
    """Read the table in an open text file, which may be compressed with gzip; `name` is what messages call it."""
    compressed = file.read(len(GZIP)) == GZIP
    packed = file.seek(0, os.SEEK_END)
    file.seek(0)
    text = _scanned(cast(BinaryIO, gzip.GzipFile(fileobj=file)) if compressed else file, name, packed)
    if text.widest > MAX_FIELDS:
        raise TableError(
            f"A line of {name} has {counted(text.widest, 'field')}, more than {MAX_FIELDS:,}: expected one column per "
            "variable."
        )
    encoding, findings = _encoding(text)
    if text.has_zeros and not text.is_short and "16" not in encoding:
        raise _not_text(name)
    whole_lines = text.start if text.is_short else text.start[: text.start.rfind(b"\n") + 1] or text.start
    layout = _layout(name, whole_lines.decode(encoding, errors="replace"), options)
    findings += layout.findings
    try:
        try:
            frame, numbers = _parse(text, encoding, layout, options, progress)
        except UnicodeDecodeError:  # further down than the sample
            frame, numbers = _parse(text, "latin-1", layout, options, progress)
            findings += (NOT_UTF8,)
    except Exception as error:
        raise _explained(error, name) from error
    first = layout.position.first_line + (1 if options.header else 0)
    lines = numbers or range(first, first + len(frame))
    return RawFrame(frame, findings, lines, layout.decimal, is_text=True)


@dataclass(frozen=True)
class _Text:
    """A text that was gone through once: how it starts, and what its bytes hold."""

    file: BinaryIO
    name: str  # as messages call it
    start: bytes
    has_zeros: bool  # bytes that no text has, but UTF-16
    has_comments: bool  # lines that begin with the mark of comments
    lines: int  # ends of lines
    widest: int  # fields of the widest of the first lines, for the delimiter that makes it widest

    @property
    def is_short(self) -> bool:
        """Whether the start is all there is."""
        return len(self.start) < SAMPLE_BYTES

    def rewound(self) -> BinaryIO:
        """The file, to be read from its start."""
        self.file.seek(0)
        return self.file


def _scanned(file: BinaryIO, name: str, packed: int) -> _Text:
    """Go through the bytes of a text, whose file has `packed` of them, once, and keep those of a short text."""
    first = chunk = file.read(KEPT_BYTES)
    has_zeros, has_comments, lines, last, unpacked = False, False, 0, b"\n", 0
    while chunk:
        unpacked += len(chunk)
        if is_bomb(packed, unpacked, MAX_RATIO):
            raise TableError(f"{capitalized(name)} unpacks to more than {MAX_RATIO} times its size: no table does.")
        has_zeros = has_zeros or b"\x00" in chunk
        has_comments = has_comments or b"\n#" in last + chunk
        lines += chunk.count(b"\n")
        last = chunk[-1:]
        chunk = file.read(KEPT_BYTES)
    kept = io.BytesIO(first) if len(first) < KEPT_BYTES else file
    first_lines = first.split(b"\n", MAX_TITLES + 2)[: MAX_TITLES + 2]
    widest = 1 + max(line.count(sign.encode()) for line in first_lines for sign in DELIMITERS)
    return _Text(kept, name, first[:SAMPLE_BYTES], has_zeros, has_comments, lines, widest)


def _parse(
    text: _Text, encoding: str, layout: _Layout, options: ReadOptions, progress: Progress
) -> tuple[pd.DataFrame, list[int] | None]:
    """The table, and the line of each row where some lines hold none."""
    import pandas as pd

    delimiter, width = layout.position.delimiter, layout.position.width
    settings: dict[str, Any] = {
        "sep": r"\s+" if delimiter == " " else delimiter,
        "decimal": layout.decimal,
        "header": 0 if options.header else None,
        "index_col": False if layout.trailing_delimiter else None,
        "na_values": list(options.na or ()),
        "skipinitialspace": True,
        "low_memory": False,
        "encoding": encoding,
    }
    if pd.__version__.startswith("2."):  # from version 3 on it reads numbers to the last bit by itself
        settings["float_precision"] = "round_trip"
    with warnings.catch_warnings():
        # A trailing delimiter makes pandas announce the loss of a column that is not there.
        warnings.simplefilter("ignore", pd.errors.ParserWarning)
        if not layout.has_other_lines and not text.has_comments:
            if "16" not in encoding and text.lines * width > LONG_CELLS:
                return _parse_long(text, settings, width, progress), None
            return pd.read_csv(text.rewound(), **settings), None
        decoded = io.TextIOWrapper(text.rewound(), encoding=encoding, newline=None)
        try:
            lines = layout.position.table_lines(list(decoded))
        finally:
            decoded.detach()
        frame = pd.read_csv(io.StringIO("".join(lines)), **settings)
    numbers = [index + 1 for index, line in enumerate(lines) if line.strip()][1 if options.header else 0 :]
    return frame, numbers if len(numbers) == len(frame) else None


def _parse_long(text: _Text, settings: Mapping[str, Any], width: int, progress: Progress) -> pd.DataFrame:
    """The table in a text that is read in parts."""
    import pandas as pd

    max_rows = text.lines + 1
    check_room(max_rows, width, capitalized(text.name))

    def parts(as_text: frozenset[Any]) -> Iterator[pd.DataFrame]:
        step, dtype = max(1, CELLS_PER_PART // width), dict.fromkeys(as_text, str)
        with pd.read_csv(text.rewound(), chunksize=step, dtype=dtype, **settings) as reader:
            yield from reader

    return pack(parts, max_rows, lambda share: progress(READING, share))


def _explained(error: Exception, name: str) -> Exception:
    """Turn an error of pandas' parser into one that people can use; return other errors unchanged."""
    import pandas as pd

    if isinstance(error, pd.errors.EmptyDataError):
        return TableError(f"{capitalized(name)} is empty.")
    if not isinstance(error, pd.errors.ParserError):
        return error
    message = reason(error)  # pandas has no fields for the lines that it names
    if found := re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", message):
        expected, line, saw = map(int, found.groups())
        return _wrong_width(name, line, saw, expected)
    if found := re.search(r"EOF inside string starting at row (\d+)", message):
        return TableError(f"A quote that opens on line {int(found[1]) + 1} of {name} never closes.")
    return TableError(f"{capitalized(name)} is not a readable text file ({message}).")


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


def _encoding(text: _Text) -> tuple[str, tuple[Finding, ...]]:
    """The encoding of a text from its first bytes, with a remark where it is a guess."""
    start, name = text.start, text.name
    if not start.strip():
        raise TableError(f"{capitalized(name)} is empty.")
    for mark, encoding in BYTE_ORDER_MARKS.items():
        if start.startswith(mark):
            return encoding, ()
    for beginning, what in FOREIGN_FILES.items():
        if start.startswith(beginning):
            raise TableError(f"{capitalized(name)} is not a text file but {what}.")
    # The characters of tables, digits above all, have one zero byte each in UTF-16: the second or the first.
    zeros = [start[offset::2].count(0) / max(len(start) // 2, 1) for offset in (0, 1)]
    if min(zeros) < 0.05 and max(zeros) > 0.7:
        encoding = "utf-16-le" if zeros[1] > zeros[0] else "utf-16-be"
        return encoding, (remark(f"The file does not say its encoding and was read as {encoding.upper()}."),)
    if re.search(rb"[\x00-\x08\x0e-\x1f]", start):
        raise _not_text(name)
    try:  # step by step, since the sample may end in the middle of a character
        codecs.getincrementaldecoder("utf-8")().decode(start, final=text.is_short)
    except UnicodeDecodeError:
        return "latin-1", (NOT_UTF8,)
    return "utf-8", ()


# Where a table starts, in a text or a sheet: titles and blank rows above it are not part of it


@dataclass(frozen=True)
class Row:
    """A line of a table, or several if a quoted field spans them, as fields."""

    line: int  # of the file, from 1
    fields: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.fields)

    @property
    def has_number(self) -> bool:
        """Whether one of the fields is a number."""
        return any(map(_is_number, self.fields))

    @property
    def filled(self) -> int:
        """The number of fields that are not empty."""
        return sum(bool(field.strip()) for field in self.fields)

    @property
    def is_padded_title(self) -> bool:
        """One text and nothing but delimiters, as spreadsheets save a title."""
        return len(self) > 2 and self.filled == 1 and not self.has_number


def _is_number(field: str) -> bool:
    """Whether a field is a number, with either decimal sign."""
    try:
        float(field.strip().replace(",", "."))
    except ValueError:
        return False
    return True


def _usual_width(rows: Sequence[Row]) -> int:
    """The number of fields that most lines have; of two equally frequent ones the larger."""
    counts = Counter(map(len, rows))
    return max(counts, key=lambda width: (counts[width], width))


def _table_start(rows: Sequence[Row], header: bool) -> int:
    """The index of the first row of the table: those above it are titles."""
    width = _usual_width(rows)
    full = (
        index
        for index, row in enumerate(rows[: MAX_TITLES + 1])
        if len(row) == width and not (header and row.is_padded_title)
    )
    start = next(full, 0)
    titles = rows[:start]
    if width < 2 or any(len(row) >= width and not row.is_padded_title for row in titles):
        return 0
    if not header:
        return 0 if any(row.has_number and len(row) > 1 for row in titles) else start
    if titles and rows[start].has_number:
        # An observation: its header is one name short where lines have a label or end in a delimiter.
        start -= 1
        return start if len(rows[start]) == width - 1 else 0
    return start


def sheet_start(rows: Sequence[Row], header: bool) -> int:
    """The index of the first row of the table among the rows of a sheet that hold anything.

    A sheet has no delimiters that distinguish a title from a row with empty cells: a row belongs to the table if more
    than half of its cells are filled, and so does whatever is below one.
    """
    width = _usual_width(rows)
    most = min(width, max(row.filled for row in rows))  # a title may start further left than the table
    first = next((index for index, row in enumerate(rows) if 2 * row.filled > most), 0)
    above = [Row(row.line, tuple(field for field in row.fields if field.strip())) for row in rows[:first]]
    below = [Row(row.line, tuple([*row.fields, *[""] * width][:width])) for row in rows[first:]]
    return _table_start([*above, *below], header)


# Layout of a text


@dataclass(frozen=True)
class _Position:
    """On which lines of a text the table is, and how wide it is."""

    delimiter: str
    width: int  # fields in a line
    first_line: int  # of the header, or of the first row if there is none
    header_is_comment: bool = False

    def table_lines(self, lines: Sequence[str]) -> list[str]:
        """The lines with empty ones in place of titles and of comments, which do not have the fields of a row."""
        kept = list(lines)
        for index, line in enumerate(lines):
            is_comment = line.lstrip().startswith(COMMENT) and not _has_width(line, self.delimiter, self.width)
            if index + 1 == self.first_line:
                kept[index] = _uncommented(line) if self.header_is_comment else line
            elif index + 1 < self.first_line or is_comment:
                kept[index] = "\n"
        return kept


@dataclass(frozen=True)
class _Layout:
    """The separators of a text, the form of its fields, and the lines of its table."""

    position: _Position
    decimal: str
    trailing_delimiter: bool  # lines end in a delimiter that the header does not have
    has_other_lines: bool  # titles or comments
    findings: tuple[Finding, ...]


def _layout(name: str, sample: str, options: ReadOptions) -> _Layout:
    """The layout of a text file, from its first lines."""
    lines = list(io.StringIO(sample, newline=None))
    position = _position(name, lines, options)
    kept = position.table_lines(lines)
    rows = _split("".join(kept), position.delimiter)
    header, below = rows[0], rows[1:]
    if options.header:
        _check_header(name, header)
    if options.header and below and all(len(row) > len(header) + 1 for row in below):
        # pandas would take the first fields for labels.
        raise _wrong_width(name, below[0].line, len(below[0]), len(header))
    longer = bool(below) and all(len(row) == len(header) + 1 for row in below)
    trailing = longer and not any(row.fields[-1] for row in below)
    decimal, findings = _decimal(below if options.header else rows, position.delimiter)
    if options.decimal is not None:
        decimal, findings = options.decimal, ()
    if position.header_is_comment:
        findings += (NAMED_BY_COMMENT,)
    if options.header and longer and not trailing:
        findings += (LABELED,)
    return _Layout(position, decimal, trailing, kept != lines, findings)


def _position(name: str, lines: Sequence[str], options: ReadOptions) -> _Position:
    """Find the table by lines that mostly have the same number of fields."""
    marked = [line.lstrip().startswith(COMMENT) for line in lines]
    if all(mark or not line.strip() for mark, line in zip(marked, lines, strict=True)):
        marked = [False] * len(lines)  # then it is not a mark of comments
    bare = "".join("\n" if mark else line for mark, line in zip(marked, lines, strict=True))
    delimiter = options.delimiter or max(DELIMITERS, key=lambda one: _evidence(bare, one, options))
    rows = _split(bare, delimiter)
    if not rows:
        raise TableError(
            f"A quote in the first line of {name} never closes." if '"' in bare else f"{capitalized(name)} is empty."
        )
    start, width = _table_start(rows, options.header), _usual_width(rows)
    above = [line for line in range(1, rows[start].line) if marked[line - 1]]
    if options.header and start == 0 and above and rows[0].has_number:
        names = _uncommented(lines[above[-1] - 1])
        if _has_width(names, delimiter, width):
            return _Position(delimiter, width, above[-1], header_is_comment=names != lines[above[-1] - 1])
    return _Position(delimiter, width, rows[start].line)


def _split(sample: str, delimiter: str) -> list[Row]:
    """The first lines as fields, without lines that have none."""
    if delimiter == " ":
        split = ((index + 1, line.split()) for index, line in enumerate(sample.splitlines()))
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


def _has_width(line: str, delimiter: str, width: int) -> bool:
    rows = _split(line, delimiter)
    return bool(rows) and len(rows[0]) == width


def _uncommented(line: str) -> str:
    """The names in a comment line; a first column that is called # stays."""
    return line if re.match(r"\s*#\s*[,;\t|]", line) else line.lstrip().lstrip(COMMENT).lstrip()


def _evidence(sample: str, delimiter: str, options: ReadOptions) -> tuple[float, int]:
    """Evidence for a delimiter from the first lines: the share of lines as wide as the header, then the width."""
    rows = _split(sample, delimiter)
    if not rows:
        return 0.0, 0
    start = _table_start(rows, options.header)
    width = len(rows[start])
    if width < 2:
        return 0.0, 0
    fitting = sum(len(row) in (width, width + 1) for row in rows[start + 1 :])
    return round(fitting / max(len(rows) - 1, 1), 1), width


def _check_header(name: str, header: Row) -> None:
    names = [field.strip() for field in header.fields]
    if any(field and not _is_number(field) for field in names):
        check_duplicates(names, name)
    elif any(re.search(r"[.,eE]", field) for field in names):
        raise TableError(
            f"The first line of {name} contains numbers where column names were expected: add a line with names, or "
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
