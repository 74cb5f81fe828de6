"""Files of tables, read as pandas users expect: CSV and its relatives, Parquet, Feather, Excel.

A reader answers with a data frame just as the file has it. Whether its columns can be used is decided in `tables.py`.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from causal_arrow.errors import TableError

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
SAMPLE_BYTES = 2**20
SAMPLE_LINES = 1000
INSTALL_FILES = 'pip install "causal-arrow[files]"'


@dataclass(frozen=True, eq=False)
class ReadFile:
    """A data frame, what there is to say about the way it was read, and the line of its first observation, if any."""

    frame: pd.DataFrame
    remarks: tuple[str, ...] = ()
    first_line: int | None = None


@dataclass(frozen=True)
class FileOptions:
    """What the reader of a file may tell us instead of leaving it to be found out."""

    delimiter: str | None = None
    decimal: str | None = None
    sheet: str | int | None = None
    header: bool = True


def read_file(path: Path, options: FileOptions) -> ReadFile:
    """The table in a file, by the ending of its name."""
    if path.is_dir():
        raise TableError(f"'{path}' is a directory: name one file in it.")
    if not path.exists():
        raise TableError(f"There is no file '{path}'.")
    suffixes = [suffix.lower() for suffix in path.suffixes]
    ending = suffixes[-1] if suffixes else ""
    reader = _READERS.get(ending)
    if reader is None:
        raise TableError(
            f"Cannot tell the format of '{path.name}': expected a name that ends in {', '.join(_READERS)}."
        )
    try:
        return reader(path, options)
    except TableError:
        raise
    except ImportError as error:
        raise TableError(f"Reading {ending} files needs a package that is not installed: {INSTALL_FILES}.") from error
    except OSError as error:
        raise TableError(f"Cannot read '{path}': {error.strerror or error}.") from error
    except Exception as error:  # every library fails on a damaged file in ways of its own
        first_sentence = str(error).strip().split("\n")[0].rstrip(".")
        raise TableError(f"'{path.name}' is not a readable {ending} file ({first_sentence}).") from error


# Text


def _read_text(path: Path, options: FileOptions) -> ReadFile:
    import pandas as pd

    with path.open("rb") as file:
        is_gzip = file.read(2) == b"\x1f\x8b"
    opener: Callable[..., Any] = gzip.open if is_gzip else open
    with opener(path, "rb") as file:
        start = file.read(SAMPLE_BYTES)
    encoding, remarks = _encoding(path, start)
    whole_lines = start if len(start) < SAMPLE_BYTES else start[: start.rfind(b"\n") + 1] or start
    layout = _layout(path, whole_lines.decode(encoding, errors="replace"), options)

    settings: dict[str, Any] = {
        "sep": r"\s+" if layout.delimiter == " " else layout.delimiter,
        "decimal": layout.decimal,
        "header": 0 if options.header else None,
        "index_col": False if layout.trailing_delimiter else None,
        "skipinitialspace": True,
        "low_memory": False,
        "compression": "gzip" if is_gzip else None,
    }
    try:
        with warnings.catch_warnings():
            # A trailing delimiter makes pandas announce the loss of a column that is not there.
            warnings.simplefilter("ignore", pd.errors.ParserWarning)
            try:
                frame = pd.read_csv(path, encoding=encoding, **settings)
            except UnicodeDecodeError:  # further down than the sample
                frame = pd.read_csv(path, encoding="latin-1", **settings)
                remarks = (_NOT_UTF8,)
    except pd.errors.EmptyDataError as error:
        raise TableError(f"'{path.name}' is empty.") from error
    except pd.errors.ParserError as error:
        if found := re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", str(error)):
            expected, line, saw = found.groups()
            raise TableError(
                f"Line {line} of '{path.name}' has {saw} fields where {expected} were expected: "
                "look for a stray delimiter or a missing quote, or name the delimiter with --delimiter."
            ) from error
        raise
    if layout.row_labels:
        remarks += ("The first field of each line has no name in the header and was taken as a label of the line.",)
    return ReadFile(frame, remarks, first_line=2 if options.header else 1)


_NOT_UTF8 = "The file is not UTF-8 and was read as Latin-1: check names with special characters."


def _encoding(path: Path, start: bytes) -> tuple[str, tuple[str, ...]]:
    """The encoding of a text file from its first bytes, with a remark where it is a guess."""
    if not start.strip():
        raise TableError(f"'{path.name}' is empty.")
    for mark, encoding in BYTE_ORDER_MARKS.items():
        if start.startswith(mark):
            return encoding, ()
    for beginning, what in FOREIGN_FILES.items():
        if start.startswith(beginning):
            raise TableError(f"'{path.name}' is not a text file but {what}.")
    if re.search(rb"[\x00-\x08\x0e-\x1f]", start):
        raise TableError(f"'{path.name}' is not a text file: it contains binary data, expected comma-separated values.")
    try:  # step by step, since the sample may end in the middle of a character
        codecs.getincrementaldecoder("utf-8")().decode(start, final=len(start) < SAMPLE_BYTES)
    except UnicodeDecodeError:
        return "latin-1", (_NOT_UTF8,)
    return "utf-8", ()


@dataclass(frozen=True)
class _Layout:
    delimiter: str
    decimal: str
    trailing_delimiter: bool  # lines end in a delimiter that the header does not have
    row_labels: bool  # lines start with a field that the header does not name


def _layout(path: Path, sample: str, options: FileOptions) -> _Layout:
    """How the fields of a text file are separated and written, from its first lines."""
    if options.delimiter is not None:
        delimiter = DELIMITER_NAMES.get(options.delimiter.lower(), options.delimiter)
        if len(delimiter) != 1:
            raise TableError(f"Expected a delimiter of one character, or tab, got {options.delimiter!r}.")
    else:
        delimiter = max(DELIMITERS, key=lambda candidate: _evidence(sample, candidate))
    rows = _split(sample, delimiter)
    header, observations = rows[0], rows[1:]
    if options.header:
        _check_header(path, header)
    longer = bool(observations) and all(len(row) == len(header) + 1 for row in observations)
    trailing = longer and not any(row[-1] for row in observations)
    decimal = options.decimal or _decimal(observations, delimiter)
    return _Layout(delimiter, decimal, trailing, row_labels=options.header and longer and not trailing)


def _split(sample: str, delimiter: str) -> list[list[str]]:
    if delimiter == " ":
        return [line.split() for line in sample.splitlines() if line.strip()][:SAMPLE_LINES]
    reader = csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter, skipinitialspace=True)
    return [row for row in islice(reader, SAMPLE_LINES) if any(row)]


def _evidence(sample: str, delimiter: str) -> tuple[float, int]:
    """How well a delimiter explains the first lines: the share of lines as wide as the header, then the width."""
    try:
        rows = _split(sample, delimiter)
    except csv.Error:
        return 0.0, 0
    width = len(rows[0])
    if width < 2:
        return 0.0, 0
    fitting = sum(len(row) in (width, width + 1) for row in rows[1:])
    return round(fitting / max(len(rows) - 1, 1), 1), width


def _check_header(path: Path, header: list[str]) -> None:
    names = [name.strip() for name in header]
    if any(name and not _is_number(name) for name in names):
        check_duplicates(names, f"'{path.name}'")
    elif any(re.search(r"[.,eE]", name) for name in names):
        raise TableError(
            f"The first line of '{path.name}' holds numbers where names of columns were expected: "
            "add a line with names, or say --no-header to have them called x1, x2, ..."
        )


def check_duplicates(names: list[str], where: str) -> None:
    """TableError if two columns have the same name. Columns without a name are not duplicates of each other."""
    twice = sorted({name for name in names if name and names.count(name) > 1}) if len(set(names)) < len(names) else []
    if twice:
        shown = ", ".join(repr(name) for name in twice[:5])
        raise TableError(f"{where} has more than one column called {shown}: give each column a name of its own.")


def _decimal(rows: list[list[str]], delimiter: str) -> str:
    """The decimal sign: a comma where numbers have commas and none has a point."""
    if delimiter == ",":
        return "."
    fields = [field for row in rows for field in row]
    with_comma = any(re.fullmatch(r"[+-]?\d*,\d+([eE][+-]?\d+)?", field) for field in fields)
    with_point = any(re.fullmatch(r"[+-]?\d*\.\d+([eE][+-]?\d+)?", field) for field in fields)
    return "," if with_comma and not with_point else "."


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", "."))
    except ValueError:
        return False
    return True


# Other formats


def _read_excel(path: Path, options: FileOptions) -> ReadFile:
    import pandas as pd

    if path.suffix.lower() == ".xls":
        raise TableError(f"'{path.name}' is in the old Excel format: save it as .xlsx or .csv.")
    with pd.ExcelFile(path, engine="openpyxl") as workbook:
        sheets = [str(name) for name in workbook.sheet_names]
        sheet = sheets[0] if options.sheet is None else options.sheet
        if (isinstance(sheet, int) and not 0 <= sheet < len(sheets)) or (
            isinstance(sheet, str) and sheet not in sheets
        ):
            raise TableError(f"'{path.name}' has no sheet {sheet!r}: its sheets are {', '.join(map(repr, sheets))}.")
        frame = pd.read_excel(workbook, sheet_name=sheet, header=0 if options.header else None)
        if options.header and len(frame.columns):
            # pandas renames the second 'a' to 'a.1', so look at the header itself.
            header = pd.read_excel(workbook, sheet_name=sheet, header=None, nrows=1).iloc[0]
            check_duplicates(["" if pd.isna(name) else str(name).strip() for name in header], f"'{path.name}'")
    remarks: tuple[str, ...] = ()
    if options.sheet is None and len(sheets) > 1:
        remarks = (f"Read the first sheet, {sheet!r}; the workbook also has {', '.join(map(repr, sheets[1:]))}.",)
    return ReadFile(frame, remarks, first_line=2 if options.header else 1)


def _read_parquet(path: Path, options: FileOptions) -> ReadFile:
    import pandas as pd

    return ReadFile(pd.read_parquet(path))


def _read_feather(path: Path, options: FileOptions) -> ReadFile:
    import pandas as pd

    return ReadFile(pd.read_feather(path))


_READERS: dict[str, Callable[[Path, FileOptions], ReadFile]] = {
    ".csv": _read_text,
    ".tsv": _read_text,
    ".txt": _read_text,
    ".gz": _read_text,
    ".parquet": _read_parquet,
    ".feather": _read_feather,
    ".xlsx": _read_excel,
    ".xlsm": _read_excel,
    ".xls": _read_excel,
}
