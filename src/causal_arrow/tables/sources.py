"""as_frame(): whatever people hold a table in, as a RawFrame: files, frames of every library, arrays, dicts, lists."""

from __future__ import annotations

import gzip
import io
import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from causal_arrow.errors import Remedy, TableError
from causal_arrow.inputs import NOT_A_FILE, is_bomb
from causal_arrow.progress import READING, Progress, ignore
from causal_arrow.storage import check_room
from causal_arrow.tables._text import MAX_RATIO, read_text
from causal_arrow.tables._workbook import read_workbook
from causal_arrow.tables.frames import to_pandas
from causal_arrow.tables.options import ReadOptions
from causal_arrow.tables.raw import CELLS_PER_PART, LONG_CELLS, UNNAMED, RawFrame, index_remarks, pack, remark
from causal_arrow.tables.table import Table
from causal_arrow.text import capitalized, counted, reason, shown

if TYPE_CHECKING:
    import pandas as pd

EXPECTED = "Expected a path, a data frame or a two-dimensional array"
CARRIED_OVER = ("reading", "names", "coding", "missing")
"""Kinds of findings of a table that was read before which cannot be made again from its numbers."""
STANDARD_INPUT = "-"
BUFFER_BYTES = 2**20
Reader = Callable[[BinaryIO, str, ReadOptions, Progress], RawFrame]
"""Makes the table of an open file, given what messages call it."""
ARROW = b"ARROW1"
"""First bytes of Feather files."""
INSTALL_FILES = 'pip install "causal-arrow[files]"'


@dataclass(frozen=True)
class FileInMemory:
    """A file that is on no disk, such as an upload: its name and its bytes."""

    name: str
    content: bytes

    @property
    def suffix(self) -> str:
        """The ending of the name, as a path has it."""
        return PurePath(self.name).suffix

    def open(self, mode: str = "rb") -> BinaryIO:
        """Open the bytes for reading."""
        assert mode == "rb"
        return io.BytesIO(self.content)


def as_frame(source: Any, options: ReadOptions | None = None, progress: Progress = ignore) -> RawFrame:
    """Read any kind of source as a pandas frame, which may share memory with the source and must not be changed."""
    options = options or ReadOptions()
    if isinstance(source, RawFrame):
        return source
    if isinstance(source, str | os.PathLike | FileInMemory):
        raw = _read_file(source, options, progress)
        return replace(raw, findings=(*raw.findings, *index_remarks(raw.frame.index.names)))
    if options.sheet is not None:
        raise TableError("A sheet was named, but the table is not a file.", [Remedy("omit", setting="sheet")])
    if isinstance(source, Table):
        return _from_table(source)
    try:
        frame = _from_memory(source)
        return RawFrame(frame, index_remarks(frame.index.names))
    except TableError:
        raise
    except Exception as error:  # objects of other packages fail in ways of their own
        kind = type(source).__name__
        raise TableError(f"{EXPECTED}, got {kind} that cannot be read as one ({reason(error)}).") from error


def _numbered(frame: Any) -> Any:
    return frame.set_axis([f"x{index + 1}" for index in range(frame.shape[1])], axis=1)


# Objects in memory


def _from_table(table: Table) -> RawFrame:
    import pandas as pd

    findings = tuple(each for each in table.findings if each.kind in CARRIED_OVER and each.severity != "problem")
    return RawFrame(pd.DataFrame(table.values, columns=list(table.names)), findings, table=table)


def _from_memory(source: Any) -> pd.DataFrame:
    import pandas as pd

    kind = type(source).__name__
    if isinstance(source, pd.DataFrame):
        return source
    if (of_another_library := to_pandas(source)) is not None:
        return of_another_library
    if type(source).__module__.split(".")[0] == "scipy" and hasattr(source, "toarray"):
        raise TableError("Sparse input is not supported: pass table.toarray().")
    if hasattr(source, "to_pandas"):
        frame = source.to_pandas()
        if not isinstance(frame, pd.DataFrame):
            raise TableError(f"{EXPECTED}, got {kind}.")
        return frame
    if isinstance(source, Mapping):
        return _from_columns(source)
    if isinstance(source, list | tuple) and source and all(isinstance(each, Mapping) for each in source):
        return pd.DataFrame([dict(each) for each in source])
    array = _array(source)
    if array.dtype.names:  # a structured array names its columns
        return _from_columns({name: _unmasked(array[name]) for name in array.dtype.names})
    array = _unmasked(array)
    if array.ndim == 1 and array.dtype.kind != "O":
        array = array[:, None]
    if array.ndim == 1 and len(array) and all(isinstance(each, list | tuple) for each in array):
        raise TableError("Expected lists of the same length, one per row.")
    if array.ndim != 2:
        raise TableError(f"{EXPECTED}, got {kind} of shape {array.shape}.")
    return _numbered(pd.DataFrame(array).infer_objects())


def _from_columns(source: Mapping[Any, Any]) -> pd.DataFrame:
    """The frame with these columns, which must have the same length."""
    import pandas as pd

    columns = {name: _array(column) if _is_tensor(column) else column for name, column in source.items()}
    plain = {name: column for name, column in columns.items() if not isinstance(column, pd.Series | Mapping)}
    for name, column in plain.items():
        if np.ndim(_array(column)) != 1:
            raise TableError(f"Expected a list of values for column {shown(name)}, got {shown(column)}.")
    lengths = {name: len(column) for name, column in columns.items()}
    if plain and len(set(lengths.values())) > 1:
        (first, length), *others = lengths.items()
        name, other = next(entry for entry in others if entry[1] != length)
        raise TableError(
            f"Expected columns of the same length, got {shown(first)} with {counted(length, 'value')} and "
            f"{shown(name)} with {other:,}."
        )
    # Integers in place of names, which pandas may not be able to hold in one type.
    frame = pd.DataFrame(dict(enumerate(columns.values())))
    return frame.set_axis(pd.Index(list(columns), dtype=object, tupleize_cols=False), axis=1)


def _is_tensor(source: Any) -> bool:
    return type(source).__module__.split(".")[0] == "torch" and hasattr(source, "detach")


def _array(source: Any) -> NDArray[Any]:
    """The source as an array of any shape."""
    if _is_tensor(source):
        tensor = source.detach().cpu()
        # numpy has no bfloat16, and no signs that torch has not carried out yet.
        return np.asarray(tensor.double().resolve_neg() if tensor.is_floating_point() else tensor)
    if not isinstance(source, list | tuple):
        return np.asanyarray(source)
    # Lists as objects: in an array of one type, numbers next to text would turn into text.
    rows: Sequence[Any] = [_array(each).tolist() if _is_tensor(each) else each for each in source]
    return np.array(rows, dtype=object)


def _unmasked(array: NDArray[Any]) -> NDArray[Any]:
    """The array with missing values where it is masked."""
    if not isinstance(array, np.ma.MaskedArray):
        return array
    numeric = array.dtype.kind in "fiub"
    return np.asarray(np.ma.filled(array.astype(float if numeric else object), np.nan if numeric else None))


# Files


def _read_file(source: str | os.PathLike[str] | FileInMemory, options: ReadOptions, progress: Progress) -> RawFrame:
    """The table in a file, by the ending of its name; `-` is standard input, for text."""
    reader: Reader
    opened: Callable[[], BinaryIO]
    if str(source) == STANDARD_INPUT:
        name, form, reader, opened = "standard input", "text", read_text, _standard_input
    else:
        file = source if isinstance(source, FileInMemory) else _existing(source)
        name, form, opened = repr(file.name), file.suffix.lower(), lambda: file.open("rb")
        if form not in _READERS:
            raise TableError(f"Cannot tell the format of {name}: expected a name that ends in {', '.join(_READERS)}.")
        reader = _READERS[form]
    if options.sheet is not None and form not in WORKBOOKS:
        raise TableError(f"A sheet was named, but {name} is not an Excel workbook.", [Remedy("omit", setting="sheet")])
    try:
        with opened() as stream:
            raw = _without_empty_columns(reader(stream, name, options, progress), options)
    except TableError:
        raise
    except Exception as error:  # libraries fail in ways of their own for damaged files
        raise _in_one_sentence(error, name, form) from error
    return raw if options.header else replace(raw, frame=_numbered(raw.frame))


def _standard_input() -> BinaryIO:
    """The text that another program hands over."""
    if sys.stdin is None or sys.stdin.closed:
        raise TableError("There is no standard input to read a table from.")
    return io.BytesIO(sys.stdin.buffer.read())


def _existing(source: str | os.PathLike[str]) -> Path:
    """The path of a file that can be opened."""
    if source == "":
        raise TableError("Expected the path of a file, got ''.")
    try:
        path = Path(source).expanduser()
    except (RuntimeError, TypeError) as error:
        raise TableError(f"Cannot open {shown(source)}: {reason(error)}.") from error
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
            f"Cannot open {name}: {NOT_A_FILE}; pass the output of another program on standard input, with - as the "
            "name."
        )
    return path


def _in_one_sentence(error: Exception, name: str, form: str) -> TableError:
    """Turn whatever a library raises for a damaged file into a TableError."""
    sentences: dict[Any, str] = {
        ImportError: f"Reading {form} files needs a package that is not installed: {INSTALL_FILES}.",
        (zlib.error, gzip.BadGzipFile, EOFError): f"{capitalized(name)} is damaged: it cannot be unpacked. Copy or "
        "download it again.",
        OSError: f"Cannot read {name}: {getattr(error, 'strerror', None) or error}.",
        MemoryError: f"{capitalized(name)} does not fit into memory.",
        Exception: f"{capitalized(name)} is not a readable {form} file ({reason(error)}).",
    }
    return TableError(next(words for kind, words in sentences.items() if isinstance(error, kind)))


def _without_empty_columns(raw: RawFrame, options: ReadOptions) -> RawFrame:
    """The table without columns that have neither a name nor a value, as a delimiter at the end of lines leaves one."""
    frame = raw.frame
    last = frame.shape[1] - 1
    if options.header:
        candidates = [index for index in range(last + 1) if UNNAMED.match(str(frame.columns[index]))]
    else:
        candidates = [last] if last >= 0 else []
    empty = [index for index in candidates if frame.iloc[:, index].isna().all()]
    if not empty or not len(frame):
        return raw
    frame = frame.iloc[:, [index for index in range(last + 1) if index not in set(empty)]]
    inner = [f"{index + 1}" for index in empty if index != last]
    if not inner:
        return replace(raw, frame=frame)
    subject = f"Column {inner[0]} has" if len(inner) == 1 else f"Columns {', '.join(inner[:8])} have"
    finding = remark(f"{subject} neither a name nor a value and was ignored.")
    return replace(raw, frame=frame, findings=(*raw.findings, finding))


def _read_parquet(file: BinaryIO, name: str, options: ReadOptions, progress: Progress) -> RawFrame:
    import pandas as pd
    import pyarrow.parquet as parquet

    whole = parquet.ParquetFile(file, buffer_size=BUFFER_BYTES, pre_buffer=False)
    rows, width = whole.metadata.num_rows, whole.metadata.num_columns
    _check_packed(file, rows * width, name)
    if rows * width > LONG_CELLS:
        return _in_parts(name, rows, width, whole.iter_batches, progress)
    file.seek(0)
    return RawFrame(pd.read_parquet(file))


def _read_feather(file: BinaryIO, name: str, options: ReadOptions, progress: Progress) -> RawFrame:
    import pandas as pd
    import pyarrow.ipc as ipc

    if file.read(len(ARROW)) == ARROW:  # not the older format, which is read whole
        whole = ipc.open_file(file)
        numbers, width = range(whole.num_record_batches), len(whole.schema)
        rows = 0
        for number in numbers:
            rows += whole.get_batch(number).num_rows
            _check_packed(file, rows * width, name)
        if rows * width > LONG_CELLS:
            return _in_parts(name, rows, width, lambda step: map(whole.get_batch, numbers), progress)
    file.seek(0)
    return RawFrame(pd.read_feather(file))


def _check_packed(file: BinaryIO, cells: int, name: str) -> None:
    """TableError for a file of arrow's formats that holds far more cells than bytes."""
    position = file.tell()
    packed = file.seek(0, os.SEEK_END)
    file.seek(position)
    if is_bomb(packed, 8 * cells, MAX_RATIO):
        raise TableError(f"{capitalized(name)} unpacks to more than {MAX_RATIO} times its size: no table does.")


def _in_parts(
    name: str, rows: int, width: int, batches: Callable[[int], Iterable[Any]], progress: Progress
) -> RawFrame:
    """The table in a long file of arrow's formats, from batches of a given number of rows where that is possible."""
    check_room(rows, width, name)
    step = max(1, CELLS_PER_PART // width)
    levels: list[Any] = []  # of the index, which packing loses

    def parts(as_text: frozenset[Any]) -> Iterator[pd.DataFrame]:
        for batch in batches(step):
            for start in range(0, max(batch.num_rows, 1), step):
                part = batch.slice(start, step).to_pandas()
                levels[:] = part.index.names
                yield part

    frame = pack(parts, rows, lambda share: progress(READING, share))
    return RawFrame(frame, index_remarks(levels))


def _refuse_old_workbook(file: BinaryIO, name: str, options: ReadOptions, progress: Progress) -> RawFrame:
    raise TableError(f"{name} is in the old Excel format: save it as .xlsx or .csv.")


WORKBOOKS: dict[str, Reader] = {".xlsx": read_workbook, ".xlsm": read_workbook, ".xls": _refuse_old_workbook}
_READERS: dict[str, Reader] = {
    **dict.fromkeys((".csv", ".tsv", ".txt", ".gz"), read_text),
    ".parquet": _read_parquet,
    ".feather": _read_feather,
    **WORKBOOKS,
}
ENDINGS = tuple(_READERS)
"""Endings of the names of files that can be read."""
