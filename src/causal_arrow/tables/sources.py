"""Whatever people hold a table in, as a data frame: paths, pandas and polars frames, arrays, tensors, dicts, lists."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from causal_arrow.errors import Remedy, TableError
from causal_arrow.tables.files import read_file
from causal_arrow.tables.source_frame import FileInMemory, FileOptions, SourceFrame, index_remarks
from causal_arrow.tables.table import Table
from causal_arrow.text import counted, reason, shown

EXPECTED = "Expected a path, a data frame or a two-dimensional array"
CARRIED_OVER = ("reading", "names", "coding", "missing")  # findings that cannot be made again from the numbers


def as_frame(source: Any, options: FileOptions) -> SourceFrame:
    """Any kind of source as a pandas frame, which may share memory with the source and is only read."""
    if isinstance(source, SourceFrame):
        return source
    if isinstance(source, str | os.PathLike | FileInMemory):
        return _with_word_on_index(_file(source, options))
    if options.sheet is not None:
        raise TableError("A sheet was named, but the table is no file.", [Remedy("omit", setting="sheet")])
    if isinstance(source, Table):
        return _table(source)
    try:
        return _with_word_on_index(_in_memory(source))
    except TableError:
        raise
    except Exception as error:  # objects of other packages fail in ways of their own
        kind = type(source).__name__
        raise TableError(f"{EXPECTED}, got {kind} that cannot be read as one ({reason(error)}).") from error


def _with_word_on_index(read: SourceFrame) -> SourceFrame:
    """The frame, with a note if it has an index with a name, which a person may take for a column."""
    return replace(read, findings=(*read.findings, *index_remarks(read.frame.index.names)))


def _file(source: str | os.PathLike[str] | FileInMemory, options: FileOptions) -> SourceFrame:
    import pandas as pd

    if source == "":
        raise TableError("Expected the path of a file, got ''.")
    try:
        path = source if isinstance(source, FileInMemory) else Path(source).expanduser()
    except (RuntimeError, TypeError) as error:
        raise TableError(f"Cannot open {shown(source)}: {reason(error)}.") from error
    read = read_file(path, options)
    if not isinstance(read.frame, pd.DataFrame):
        raise TableError(f"{path.name!r} does not hold a table.")
    return read if options.header else replace(read, frame=_numbered(read.frame))


def _table(table: Table) -> SourceFrame:
    import pandas as pd

    findings = tuple(each for each in table.findings if each.kind in CARRIED_OVER and each.severity != "problem")
    return SourceFrame(pd.DataFrame(table.values, columns=list(table.names)), findings, columns=table.columns)


def _in_memory(source: Any) -> SourceFrame:
    import pandas as pd

    home, kind = type(source).__module__.split(".")[0], type(source).__name__
    if isinstance(source, pd.DataFrame):
        return SourceFrame(source)
    if home == "polars" and kind in ("DataFrame", "LazyFrame"):
        return SourceFrame(_polars(source.collect() if kind == "LazyFrame" else source))
    if home == "scipy" and hasattr(source, "toarray"):
        raise TableError("Sparse input is not supported: pass table.toarray().")
    if hasattr(source, "to_pandas"):
        frame = source.to_pandas()
        if not isinstance(frame, pd.DataFrame):
            raise TableError(f"{EXPECTED}, got {kind}.")
        return SourceFrame(frame)
    if isinstance(source, Mapping):
        return SourceFrame(_columns(source))
    if isinstance(source, list | tuple) and source and all(isinstance(each, Mapping) for each in source):
        return SourceFrame(pd.DataFrame([dict(each) for each in source]))
    array = _array(source)
    if array.dtype.names:  # a structured array names its columns
        return SourceFrame(_columns({name: _unmasked(array[name]) for name in array.dtype.names}))
    array = _unmasked(array)
    if array.ndim == 1 and array.dtype.kind != "O":
        array = array[:, None]
    if array.ndim == 1 and len(array) and all(isinstance(each, list | tuple) for each in array):
        raise TableError("Expected lists of the same length, one for each observation.")
    if array.ndim != 2:
        raise TableError(f"{EXPECTED}, got {kind} of shape {array.shape}.")
    return SourceFrame(_numbered(pd.DataFrame(array).infer_objects()))


def _polars(frame: Any) -> Any:
    import pandas as pd

    # Lists rather than arrows: polars needs no other package for them.
    columns = [frame.get_column(name) for name in frame.columns]
    plain = [one.dtype.is_numeric() and not one.dtype.is_decimal() for one in columns]
    values = [one.to_numpy() if fast else one.to_list() for one, fast in zip(columns, plain, strict=True)]
    return pd.DataFrame(dict(enumerate(values))).set_axis(list(frame.columns), axis=1)


def _columns(source: Mapping[Any, Any]) -> Any:
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
    # Numbers in place of names, which pandas may not be able to hold in a type of its own.
    frame = pd.DataFrame(dict(enumerate(columns.values())))
    return frame.set_axis(pd.Index(list(columns), dtype=object, tupleize_cols=False), axis=1)


def _is_tensor(source: Any) -> bool:
    return type(source).__module__.split(".")[0] == "torch" and hasattr(source, "detach")


def _array(source: Any) -> NDArray[Any]:
    """The source as an array of whatever shape."""
    if _is_tensor(source):
        tensor = source.detach().cpu()
        # numpy has no bfloat16, and a conjugate or a negative that torch has not carried out is none of its business.
        return np.asarray((tensor.double() if tensor.is_floating_point() else tensor).resolve_conj().resolve_neg())
    if not isinstance(source, list | tuple):
        return np.asanyarray(source)
    # Lists as objects: in an array of one type, numbers beside text would turn into text.
    rows: Sequence[Any] = [_array(each).tolist() if _is_tensor(each) else each for each in source]
    return np.array(rows, dtype=object)


def _unmasked(array: NDArray[Any]) -> NDArray[Any]:
    """The array with missing values where it is masked."""
    if not isinstance(array, np.ma.MaskedArray):
        return array
    numeric = array.dtype.kind in "fiub"
    return np.asarray(np.ma.filled(array.astype(float if numeric else object), np.nan if numeric else None))


def _numbered(frame: Any) -> Any:
    return frame.set_axis([f"x{place + 1}" for place in range(frame.shape[1])], axis=1)
