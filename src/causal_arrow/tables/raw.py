"""RawFrame: a table as its source has it, before anything is decided about its columns. A long file is packed.

A packed file is never in memory as it is written: numbers go into an array that may lie on disk (`storage`), and a
column of text becomes an integer per cell and a list of the different texts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from causal_arrow.errors import Remedy, TableError
from causal_arrow.storage import room_for
from causal_arrow.tables._columns import CellOptions, NumberColumn, column_as_numbers, distinct_levels
from causal_arrow.tables.options import ReadOptions
from causal_arrow.tables.table import Finding, Table
from causal_arrow.text import closest, listed, shown

if TYPE_CHECKING:
    import pandas as pd

# N rows, P columns

LONG_CELLS = 4_000_000
"""A file with more cells than this is read in parts."""
CELLS_PER_PART = 2_000_000
MAX_NAME = 10_000
"""The length of the longest name of a column."""
PACKED = "texts of a packed column"
"""The name of the categories of a column that the file has as text."""
UNNAMED = re.compile(r"Unnamed: \d+")
"""The names that pandas gives to unnamed columns of a file."""
TRIMMED = "Blanks around names were removed: {}."
MADE_UP = "Columns without a name were given one: {}."
JOINED = "Names of several parts were joined with dots: {}."


@dataclass(frozen=True, eq=False)
class RawFrame:
    """A data frame as its source has it, what was noticed while reading it, and where its rows are.

    `lines` are those of its rows in a file, `decimal` is the decimal sign of the source, and `table` is the source if
    that was read before.
    """

    frame: pd.DataFrame
    findings: tuple[Finding, ...] = ()
    lines: Sequence[int] | None = None
    decimal: str = "."
    is_text: bool = False
    table: Table | None = None

    def __len__(self) -> int:
        return len(self.frame)

    def cells(self, index: int) -> pd.Series:
        """The cells of a column, as the source has them."""
        return _unpacked(self.frame.iloc[:, index])

    def where(self, row: int) -> str:
        """The position of a row in words."""
        return f"observation {row + 1}" if self.lines is None else f"line {self.lines[row]}"

    # Names of columns

    @cached_property
    def given_names(self) -> tuple[Any, ...]:
        """The names that the source has.  (P,)"""
        return tuple(self.frame.columns.tolist())

    @cached_property
    def _names(self) -> tuple[tuple[str, ...], frozenset[str]]:
        """The names in use, and those among them that the source does not have."""
        names = [_as_text(name) for name in self.given_names]
        if self.lines is not None:
            names = ["" if UNNAMED.fullmatch(name) else name for name in names]
        numbered = [
            f"x{number}" if f"x{number}" not in names else f"column {number}" for number in range(1, len(names) + 1)
        ]
        made_up = frozenset(number for name, number in zip(names, numbered, strict=True) if not name)
        return tuple(name or number for name, number in zip(names, numbered, strict=True)), made_up

    @property
    def names(self) -> tuple[str, ...]:
        """The names in use: text without outer blanks, x1, x2, ... for columns without a name.  (P,)"""
        return self._names[0]

    def indices(self, asked: Iterable[Any], option: str = "") -> list[int]:
        """The indices of the columns of these names, each once; a name may be as given or as used."""
        known: dict[str, int] = {}
        for names in (self.names, map(name_as_text, self.given_names)):
            for index, name in enumerate(names):
                known.setdefault(name, index)
        found = []
        for name in asked:
            text = name_as_text(name)
            form = next((form for form in (text, text.strip()) if form in known), None)
            if form is None:
                near = closest(text, self.names)
                hint = f"its columns are {listed(self.names, 10)}." if self.names else "it has no columns."
                hint = f"did you mean {near!r}?" if near else hint
                remedies = [Remedy("name", setting=option)] if option else []
                raise TableError(f"{shown(name)} is not in the table: {hint}", remedies)
            found.append(known[form])
        return list(dict.fromkeys(found))

    def chosen(self, options: ReadOptions) -> list[int]:
        """The indices of the columns to use, in the order asked for."""
        keep = range(len(self.names)) if options.columns is None else self.indices(options.columns, "columns")
        leave = set(self.indices(options.drop or (), "drop"))
        return [index for index in keep if index not in leave]

    def check_names(self, chosen: Sequence[int]) -> None:
        """TableError for a name that cannot be written to any file, or that is no name."""
        for index in chosen:
            if len(self.names[index]) > MAX_NAME:
                raise TableError(
                    f"The name of column {index + 1} has {len(self.names[index]):,} letters, more than {MAX_NAME:,}: "
                    "look for a missing quote, or rename the column."
                )
            if any("\ud800" <= character <= "\udfff" for character in self.names[index]):
                raise TableError(
                    f"The name {self.names[index]!r} of column {index + 1} contains half a character (a lone "
                    "surrogate), which cannot be saved: rename the column."
                )

    def name_findings(self, chosen: Sequence[int]) -> list[Finding]:
        """Notes on names that are not used as the source has them."""
        written: dict[str, dict[str, str]] = {message: {} for message in (TRIMMED, MADE_UP, JOINED)}
        for index in chosen:
            name, given = self.names[index], self.given_names[index]
            if name in self._names[1]:
                written[MADE_UP][name] = name
            elif isinstance(given, tuple):
                written[JOINED][name] = name
            elif isinstance(given, str) and given != name:
                written[TRIMMED][name] = given
        return [
            Finding("names", "note", tuple(names), message.format(listed(list(names.values()))))
            for message, names in written.items()
            if names
        ]


def _as_text(name: Any) -> str:
    """A name as text without outer blanks; empty for none."""
    parts = name if isinstance(name, tuple) else [name]
    return ".".join(name_as_text(part).strip() for part in parts if not _is_nothing(part))


def name_as_text(name: Any) -> str:
    """The name of a column as text; TableError for an object that cannot be a name."""
    try:
        hash(name)
        return str(name)
    except Exception:
        raise TableError(f"Expected a name of a column as text, got {shown(name)}.") from None


def _is_nothing(name: Any) -> bool:
    """Whether a name is None, NaN, or blank."""
    import pandas as pd

    if isinstance(name, str):
        return not name.strip()
    return name is None or name is pd.NA or name is pd.NaT or (isinstance(name, float) and np.isnan(name))


def check_duplicates(names: Sequence[str], where: str) -> None:
    """TableError if two columns have the same name. Columns without a name are not duplicates of each other."""
    twice = sorted(name for name, count in Counter(names).items() if name and count > 1)
    if twice:
        raise TableError(f"{where} has more than one column called {listed(twice, 5)}: give each column its own name.")


def remark(message: str, *remedies: Remedy) -> Finding:
    """A note on the way a table was read."""
    return Finding("reading", "note", (), message, remedies)


def index_remarks(names: Sequence[Any]) -> tuple[Finding, ...]:
    """A note on named levels of an index, which are not read. Unnamed ones only number the rows."""
    named = tuple(str(name) for name in names if name is not None and str(name).strip())
    if not named:
        return ()
    subject = f"index {named[0]!r} is" if len(named) == 1 else f"levels {listed(named)} of the index are"
    remedy = Remedy("index", named, about="an index that is a variable")
    return (remark(f"The {subject} not read: only columns are.", remedy),)


# Every column of a source, for choosing among them


@dataclass(frozen=True)
class SourceColumn:
    """A column as its source has it, whether or not it can be used."""

    name: str
    values: tuple[str, ...]
    """The different values as text, sorted; none if there are too many to be levels."""
    missing: int
    """The number of empty cells."""


def source_columns(raw: RawFrame) -> tuple[SourceColumn, ...]:
    """The columns of a source, in its order."""
    columns = ((name, raw.frame.iloc[:, index]) for index, name in enumerate(raw.names))
    return tuple(SourceColumn(name, distinct_levels(cells), int(cells.isna().sum())) for name, cells in columns)


# Long files


Parts = Callable[[frozenset[Any]], Iterable["pd.DataFrame"]]


def pack(parts: Parts, max_rows: int, progress: Callable[[float], None]) -> pd.DataFrame:
    """Stack the parts of a file, at most `max_rows` rows; `progress` gets the share that is done.

    `parts` opens the file and gives data frames with the same columns; those named in its argument it gives as text.
    Which these are shows on the way: a column that begins with numbers may end in words, and is read again.
    """
    as_text: frozenset[Any] = frozenset()
    while True:
        packed: _Packed | None = None
        for part in parts(as_text):
            if packed is None:
                packed = _Packed(part, max_rows, as_text)
            packed.add(part)
            if packed.words:
                break
            progress(packed.filled / max(max_rows, 1))
        assert packed is not None
        if not packed.words:
            return packed.frame()
        as_text |= packed.words


def _unpacked(column: pd.Series) -> pd.Series:
    """The column with its texts in place of their integers, if it was packed."""
    import pandas as pd

    if isinstance(column.dtype, pd.CategoricalDtype) and column.cat.categories.name == PACKED:
        texts = np.append(column.cat.categories.to_numpy(dtype=object), np.array([np.nan], dtype=object))
        return pd.Series(texts[column.cat.codes.to_numpy()], dtype=object, name=column.name)
    return column


class _Packed:
    """The parts read so far. Each column is number, truth, text, levels, other, or empty until a cell is filled."""

    def __init__(self, first: pd.DataFrame, max_rows: int, as_text: frozenset[Any]) -> None:
        self.filled = 0
        self._labels = list(first.columns)
        forms = [_form_of(first.iloc[:, index]) for index in range(len(self._labels))]
        self._forms = ["text" if each in as_text else form for each, form in zip(self._labels, forms, strict=True)]
        self.words: set[Any] = {
            each for each, form in zip(self._labels, forms, strict=True) if form == "text"
        } - as_text
        """Columns that were not read as text, and have to be."""
        coded = [index for index, form in enumerate(self._forms) if form in ("text", "levels")]
        numeric = [index for index in range(len(self._forms)) if index not in coded]
        self._numbers = room_for((max_rows, len(numeric)), np.float64)
        self._slot = {index: slot for slot, index in enumerate(numeric)}
        self._codes = {index: room_for((max_rows,), np.int32) for index in coded}
        self._known: dict[int, dict[Any, int]] = {index: {} for index in coded}  # the code of each text
        self._ordered: dict[int, bool] = {}
        self._odd: dict[int, pd.Series] = {}

    def add(self, part: pd.DataFrame) -> None:
        """Add a part; then `words` says if a column has to be read again as text."""
        if list(part.columns) != self._labels:
            raise TableError("The parts of the file have different columns.")
        rows = slice(self.filled, self.filled + len(part))
        for index, label in enumerate(self._labels):
            column = part.iloc[:, index]
            if index in self._codes:
                self._codes[index][rows] = self._encoded(column, index)
            elif (numbers := self._as_numbers(column, index)) is None:
                self.words.add(label)
            else:
                self._numbers[rows, self._slot[index]] = numbers
        self.filled = rows.stop

    def _encoded(self, column: pd.Series, index: int) -> NDArray[np.int32]:
        """The integer of each text, −1 for a missing cell."""
        import pandas as pd

        known = self._known[index]
        if isinstance(column.dtype, pd.CategoricalDtype):
            self._ordered[index] = bool(column.cat.ordered)
            found, codes = list(column.cat.categories), column.cat.codes.to_numpy()
        else:
            codes, uniques = pd.factorize(column if column.isna().all() else column.astype("str"), use_na_sentinel=True)
            found = list(uniques)
            codes = np.where(column.isna().to_numpy(dtype=bool), -1, codes)
        numbers = np.array([known.setdefault(text, len(known)) for text in found] + [-1], dtype=np.int32)
        return np.asarray(numbers[codes])

    def _as_numbers(self, column: pd.Series, index: int) -> NDArray[np.float64] | float | None:
        """The numbers of a column; None if it has words."""
        before, form = self._forms[index], _form_of(column)
        if form in ("text", "levels"):
            return None
        if form == "empty":
            return float("nan")
        if before == "empty":
            self._forms[index] = before = form
        if form == "other":
            read = column_as_numbers(column, "", str, CellOptions(kind="number"))
            if isinstance(read, NumberColumn):
                return read.numbers
            self._odd.setdefault(index, column)
            return float("nan")
        if {before, form} == {"truth", "number"}:
            return None
        return np.asarray(column.to_numpy(dtype=float, na_value=np.nan))

    def frame(self) -> pd.DataFrame:
        """Everything that was added."""
        import pandas as pd

        columns: dict[int, Any] = {}
        for index, form in enumerate(self._forms):
            if index in self._odd:
                # It cannot be used: a few cells are enough to say why.
                few = self._odd[index]
                columns[index] = pd.Series(few.tolist(), dtype=object).reindex(range(self.filled))
            elif index in self._codes:
                categories = pd.Index(list(self._known[index]), dtype=object, name=PACKED if form == "text" else None)
                dtype = pd.CategoricalDtype(categories, ordered=self._ordered.get(index, False))
                codes = self._codes[index][: self.filled]
                columns[index] = pd.Series(pd.Categorical.from_codes(codes, dtype=dtype))
            else:
                numbers = self._numbers[: self.filled, self._slot[index]]
                if form == "truth":
                    gaps = np.isnan(numbers)
                    numbers = pd.arrays.BooleanArray(np.where(gaps, 0, numbers).astype(bool), gaps)
                columns[index] = pd.Series(numbers, copy=False)
        frame = pd.DataFrame(columns, copy=False)
        return frame.set_axis(pd.Index(self._labels, dtype=object, tupleize_cols=False), axis=1)


def _form_of(column: pd.Series) -> str:
    """The form of the cells of a part: number, truth, text, levels, other; empty if there are none."""
    import pandas as pd
    from pandas.api import types

    if isinstance(column.dtype, pd.CategoricalDtype):
        return "levels"
    if types.is_bool_dtype(column):
        return "truth"
    if types.is_complex_dtype(column):
        return "other"
    if types.is_numeric_dtype(column):
        return "empty" if column.isna().all() else "number"
    inferred = types.infer_dtype(column, skipna=True)
    return {"string": "text", "empty": "empty", "boolean": "truth"}.get(inferred, "other")
