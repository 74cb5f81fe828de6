"""Files of tables, read as pandas users expect: CSV and its relatives, Parquet, Feather, Excel.

A reader answers with a data frame just as the file has it. Whether its columns can be used is decided in `columns.py`.
"""

from __future__ import annotations

import gzip
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import islice, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from causal_arrow.errors import Remedy, TableError
from causal_arrow.progress import READING
from causal_arrow.storage import check_room
from causal_arrow.tables.packing import CELLS_PER_PART, LONG_CELLS, pack
from causal_arrow.tables.source_frame import (
    FileInMemory,
    FileOptions,
    SourceFrame,
    check_duplicates,
    index_remarks,
    remark,
)
from causal_arrow.tables.table import Finding
from causal_arrow.tables.text_files import read_standard_input, read_text_file
from causal_arrow.tables.titles import Row, sheet_start
from causal_arrow.text import capitalized, listed, reason, shown

if TYPE_CHECKING:
    import pandas as pd

STANDARD_INPUT = "-"
BUFFER_BYTES = 2**20
SAMPLE_ROWS = 1000
"""Of a sheet, to see where its table starts."""
ARROW = b"ARROW1"
"""How Feather files begin."""
INSTALL_FILES = 'pip install "causal-arrow[files]"'


def read_file(path: Path | FileInMemory, options: FileOptions) -> SourceFrame:
    """The table in a file, by the ending of its name; `-` is standard input, for text."""
    if isinstance(path, FileInMemory):
        return _by_ending(path, options)
    if str(path) == STANDARD_INPUT:
        _refuse_sheet("standard input", options)
        return _in_one_sentence(lambda: read_standard_input(options), "standard input", "text", options)
    name = shown(str(path), 200)
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise TableError(f"There is no file {name}.") from None
    except (OSError, ValueError) as error:
        raise TableError(f"Cannot open {name}: {getattr(error, 'strerror', None) or error}.") from error
    if stat.S_ISDIR(mode):
        raise TableError(f"{name} is a directory: name one file in it.")
    if not stat.S_ISREG(mode):
        raise TableError(
            f"{name} is a pipe or a device, not a file: give a table that comes from another program on standard "
            "input, and - as its name."
        )
    return _by_ending(path, options)


def _by_ending(path: Path | FileInMemory, options: FileOptions) -> SourceFrame:
    """The table in a file that can be opened, by the reader for the ending of its name."""
    ending = path.suffix.lower()
    reader = _READERS.get(ending)
    if reader is None:
        raise TableError(
            f"Cannot tell the format of {path.name!r}: expected a name that ends in {', '.join(_READERS)}."
        )
    if reader is not _read_excel:
        _refuse_sheet(repr(path.name), options)
    return _in_one_sentence(lambda: reader(path, options), repr(path.name), ending, options)


def _in_one_sentence(read: Callable[[], SourceFrame], name: str, format: str, options: FileOptions) -> SourceFrame:
    """What a reader reads. Every library fails on a damaged file in ways of its own: a TableError for all of them."""
    try:
        return _without_empty_columns(read(), options)
    except TableError:
        raise
    except ImportError as error:
        raise TableError(f"Reading {format} files needs a package that is not installed: {INSTALL_FILES}.") from error
    except (zlib.error, gzip.BadGzipFile, EOFError) as error:
        raise TableError(
            f"{capitalized(name)} is damaged: it cannot be unpacked. Copy or download it again."
        ) from error
    except OSError as error:
        raise TableError(f"Cannot read {name}: {error.strerror or error}.") from error
    except MemoryError as error:
        raise TableError(f"{capitalized(name)} does not fit into memory.") from error
    except Exception as error:
        raise TableError(f"{capitalized(name)} is not a readable {format} file ({reason(error)}).") from error


def _refuse_sheet(name: str, options: FileOptions) -> None:
    if options.sheet is not None:
        raise TableError(f"A sheet was named, but {name} is no Excel workbook.", [Remedy("omit", setting="sheet")])


def _without_empty_columns(read: SourceFrame, options: FileOptions) -> SourceFrame:
    """The table without columns that have neither a name nor a value, as a delimiter at the end of lines leaves one."""
    frame = read.frame
    last = frame.shape[1] - 1
    empty = [
        place
        for place, name in enumerate(frame.columns)
        if (str(name).startswith("Unnamed: ") if options.header else place == last)
        and frame.iloc[:, place].isna().all()
    ]
    if not empty or not len(frame):
        return read
    frame = frame.iloc[:, [place for place in range(frame.shape[1]) if place not in set(empty)]]
    inner = [f"{place + 1}" for place in empty if place != last]
    if not inner:
        return replace(read, frame=frame)
    subject = f"Column {inner[0]} has" if len(inner) == 1 else f"Columns {', '.join(inner[:8])} have"
    finding = remark(f"{subject} neither a name nor a value, and nothing was read from there.")
    return replace(read, frame=frame, findings=(*read.findings, finding))


# Formats


def _read_excel(path: Path | FileInMemory, options: FileOptions) -> SourceFrame:
    import pandas as pd

    if path.suffix.lower() == ".xls":
        raise TableError(f"{path.name!r} is in the old Excel format: save it as .xlsx or .csv.")
    with pd.ExcelFile(_for_pandas(path), engine="openpyxl") as workbook:
        sheets = [str(name) for name in workbook.sheet_names]
        sheet = sheets[0] if options.sheet is None else options.sheet
        if (isinstance(sheet, int) and not 0 <= sheet < len(sheets)) or (
            isinstance(sheet, str) and sheet not in sheets
        ):
            raise TableError(f"{path.name!r} has no sheet {sheet!r}: its sheets are {', '.join(map(repr, sheets))}.")
        sheet = sheets[sheet] if isinstance(sheet, int) else sheet
        rows = _first_rows(workbook.book, sheet)
        if not rows:
            raise TableError(f"The sheet {sheet!r} of {path.name!r} is empty.")
        start = sheet_start(rows, options.header)
        if options.header:  # pandas renames the second 'a' to 'a.1', so look at the header itself
            check_duplicates([name.strip() for name in rows[start].fields], repr(path.name))
        above = rows[start].line - 1
        header = 0 if options.header else None
        frame = pd.read_excel(workbook, sheet_name=sheet, header=header, skiprows=above, na_values=list(options.na))
    findings: list[Finding] = []
    if options.sheet is None and len(sheets) > 1:
        findings.append(remark(f"Read the first sheet, {sheet!r}; the workbook also has {listed(sheets[1:])}."))
    if start:
        titles = [shown(" ".join(filter(None, row.fields))) for row in rows[:start]]
        some = ", ".join(titles[:3]) + (f" and {len(titles) - 3} more" if len(titles) > 3 else "")
        findings.append(remark(f"Rows above the table were not read: {some}."))
    frame = frame.iloc[:, _blank_columns(frame, options.header) :]
    return SourceFrame(frame, tuple(findings), first_line=above + (2 if options.header else 1))


def _first_rows(book: Any, sheet: str) -> list[Row]:
    """The first rows of a sheet that hold anything, from the first column that does to the last cell of each."""
    page = book[sheet]
    if book.read_only:
        page.reset_dimensions()  # which programs write wrongly
    cells = [
        ["" if cell is None else str(cell).strip() for cell in row]
        for row in islice(page.iter_rows(values_only=True), SAMPLE_ROWS)
    ]
    left = min((place for row in cells for place, text in enumerate(row) if text), default=0)
    rows = []
    for line, row in enumerate(cells, start=1):
        last = max((place for place, text in enumerate(row) if text), default=-1)
        if last >= 0:
            rows.append(Row(line, tuple(row[left : last + 1])))
    return rows


def _blank_columns(frame: pd.DataFrame, header: bool) -> int:
    """How many columns at the left of a sheet hold nothing: the table starts to the right of them."""
    blank = (
        (not header or str(name).startswith("Unnamed: ")) and bool(frame.iloc[:, place].isna().all())
        for place, name in enumerate(frame.columns)
    )
    return sum(1 for _ in takewhile(bool, blank)) if len(frame) else 0


def _read_parquet(path: Path | FileInMemory, options: FileOptions) -> SourceFrame:
    import pandas as pd
    import pyarrow.parquet as parquet

    with parquet.ParquetFile(_for_pandas(path), buffer_size=BUFFER_BYTES, pre_buffer=False) as file:
        observations, width = file.metadata.num_rows, file.metadata.num_columns
        if observations * width > LONG_CELLS:
            return _in_parts(path, observations, width, file.iter_batches, options)
    return SourceFrame(pd.read_parquet(_for_pandas(path)))


def _read_feather(path: Path | FileInMemory, options: FileOptions) -> SourceFrame:
    import pandas as pd
    import pyarrow.ipc as ipc

    with path.open("rb") as opened:
        if opened.read(len(ARROW)) == ARROW:  # not the older format, which is read whole
            with ipc.open_file(opened) as file:
                numbers, width = range(file.num_record_batches), len(file.schema)
                observations = sum(file.get_batch(number).num_rows for number in numbers)
                if observations * width > LONG_CELLS:
                    return _in_parts(path, observations, width, lambda step: map(file.get_batch, numbers), options)
    return SourceFrame(pd.read_feather(_for_pandas(path)))


def _in_parts(
    path: Path | FileInMemory,
    observations: int,
    width: int,
    batches: Callable[[int], Iterable[Any]],
    options: FileOptions,
) -> SourceFrame:
    """The table in a long file of arrow's formats, from its batches, of this many observations where that can be."""
    check_room(observations, width, repr(path.name))
    step = max(1, CELLS_PER_PART // width)
    levels: list[Any] = []  # of the index, which packing loses

    def parts(as_text: frozenset[Any]) -> Iterator[pd.DataFrame]:
        for batch in batches(step):
            for start in range(0, max(batch.num_rows, 1), step):
                part = batch.slice(start, step).to_pandas()
                levels[:] = part.index.names
                yield part

    frame = pack(parts, observations, lambda share: options.progress(READING, share))
    return SourceFrame(frame, index_remarks(levels))


def _for_pandas(path: Path | FileInMemory) -> Path | BinaryIO:
    return path if isinstance(path, Path) else path.open()


_READERS: dict[str, Callable[[Path | FileInMemory, FileOptions], SourceFrame]] = {
    ".csv": read_text_file,
    ".tsv": read_text_file,
    ".txt": read_text_file,
    ".gz": read_text_file,
    ".parquet": _read_parquet,
    ".feather": _read_feather,
    ".xlsx": _read_excel,
    ".xlsm": _read_excel,
    ".xls": _read_excel,
}

ENDINGS = tuple(_READERS)
"""Of the names of files that can be read."""
