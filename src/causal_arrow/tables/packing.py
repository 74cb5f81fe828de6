"""A long file as a data frame, from its parts: numbers in one place, each text once.

The whole file is never in memory as it is written. Numbers go into an array that may lie on disk (`storage`); a column
of text becomes a number for each cell and a list of the different texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from causal_arrow.errors import TableError
from causal_arrow.storage import room_for
from causal_arrow.tables.columns import LARGEST_EXACT, CellOptions, NumberColumn, column_as_numbers

if TYPE_CHECKING:
    import pandas as pd

LONG_CELLS = 4_000_000
"""A file with more cells than this is read in parts."""

CELLS_PER_PART = 2_000_000

PACKED = "texts of a packed column"
"""The name of the categories of a column that the file has as text."""

Progress = Callable[[float], None]  # hears which share is done
Parts = Callable[[frozenset[Any]], Iterable["pd.DataFrame"]]


def pack(parts: Parts, most: int, progress: Progress) -> pd.DataFrame:
    """The parts of a file below each other, at most `most` observations.

    `parts` opens the file and gives data frames with the same columns; of those named in its argument, the cells as
    text. Which these are shows on the way: a column that begins with numbers may end in words, and is read again.
    """
    as_text: frozenset[Any] = frozenset()
    while True:
        packed: _Packed | None = None
        for part in parts(as_text):
            if packed is None:
                packed = _Packed(part, most, as_text)
            packed.add(part)
            if packed.words:
                break
            progress(packed.filled / max(most, 1))
        assert packed is not None
        if not packed.words:
            return packed.frame()
        as_text |= packed.words


def unpacked(column: pd.Series) -> pd.Series:
    """The column with its texts in place of their numbers, if it was packed."""
    import pandas as pd

    if isinstance(column.dtype, pd.CategoricalDtype) and column.cat.categories.name == PACKED:
        texts = np.append(column.cat.categories.to_numpy(dtype=object), np.array([np.nan], dtype=object))
        return pd.Series(texts[column.cat.codes.to_numpy()], dtype=object, name=column.name)
    return column


class _Packed:
    """What was read so far."""

    def __init__(self, first: pd.DataFrame, most: int, as_text: frozenset[Any]) -> None:
        self.filled = 0
        self._labels = list(first.columns)
        self._sorts = [
            "text" if label in as_text else _sort_of(first.iloc[:, place]) for place, label in enumerate(self._labels)
        ]
        # Columns that were not read as text, and have to be.
        self.words: set[Any] = {
            label
            for label, sort in zip(self._labels, self._sorts, strict=True)
            if sort == "text" and label not in as_text
        }
        numbers = [place for place, sort in enumerate(self._sorts) if sort not in ("text", "levels")]
        self._numbers = room_for((most, len(numbers)), np.float64)
        self._home = {place: index for index, place in enumerate(numbers)}
        self._codes = {
            place: room_for((most,), np.int32) for place, sort in enumerate(self._sorts) if place not in self._home
        }
        self._known: dict[int, dict[Any, int]] = {place: {} for place in self._codes}
        self._ordered: dict[int, bool] = {}
        self._odd: dict[int, pd.Series] = {}

    def add(self, part: pd.DataFrame) -> None:
        """One more part; `words` says if a column has to be read anew, as text."""
        if list(part.columns) != self._labels:
            raise TableError("The parts of the file have different columns.")
        stop = self.filled + len(part)
        for place, label in enumerate(self._labels):
            column = part.iloc[:, place]
            if place in self._codes:
                self._codes[place][self.filled : stop] = self._encoded(column, place)
            elif (numbers := self._as_numbers(column, place)) is None:
                self.words.add(label)
            else:
                self._numbers[self.filled : stop, self._home[place]] = numbers
        self.filled = stop

    def _encoded(self, column: pd.Series, place: int) -> NDArray[np.int32]:
        """The number of each text, −1 where there is none."""
        import pandas as pd

        known = self._known[place]
        if isinstance(column.dtype, pd.CategoricalDtype):
            self._ordered[place] = bool(column.cat.ordered)
            found, codes = list(column.cat.categories), column.cat.codes.to_numpy()
        else:
            codes, uniques = pd.factorize(column if column.isna().all() else column.astype("str"), use_na_sentinel=True)
            found = list(uniques)
            codes = np.where(column.isna().to_numpy(dtype=bool), -1, codes)
        numbers = np.array([known.setdefault(text, len(known)) for text in found] + [-1], dtype=np.int32)
        return np.asarray(numbers[codes])

    def _as_numbers(self, column: pd.Series, place: int) -> NDArray[np.float64] | float | None:
        """The numbers of a column; None if it has words, or whole numbers that lose digits."""
        from pandas.api import types

        before, sort = self._sorts[place], _sort_of(column)
        if sort in ("text", "levels"):
            return None
        if sort == "empty":
            return float("nan")
        if before == "empty":
            self._sorts[place] = before = sort
        if sort == "number" and types.is_integer_dtype(column) and len(column):
            large = max(abs(int(column.max(skipna=True))), abs(int(column.min(skipna=True)))) > LARGEST_EXACT
            if large:
                return None
        if sort == "other":
            read = column_as_numbers(column, "", str, CellOptions(kind="number"))
            if isinstance(read, NumberColumn):
                return read.numbers
            self._odd.setdefault(place, column)
            return float("nan")
        if {before, sort} == {"truth", "number"}:
            return None
        return np.asarray(column.to_numpy(dtype=float, na_value=np.nan))

    def frame(self) -> pd.DataFrame:
        """All that was added."""
        import pandas as pd

        columns: dict[int, Any] = {}
        for place, sort in enumerate(self._sorts):
            if place in self._odd:
                # Nobody can use it: a few cells are enough to say why.
                few = self._odd[place]
                columns[place] = pd.Series(few.tolist(), dtype=object).reindex(range(self.filled))
            elif place in self._codes:
                categories = pd.Index(list(self._known[place]), dtype=object, name=PACKED if sort == "text" else None)
                dtype = pd.CategoricalDtype(categories, ordered=self._ordered.get(place, False))
                codes = self._codes[place][: self.filled]
                columns[place] = pd.Series(pd.Categorical.from_codes(codes, dtype=dtype))
            else:
                numbers = self._numbers[: self.filled, self._home[place]]
                columns[place] = pd.Series(_truth(numbers) if sort == "truth" else numbers, copy=False)
        frame = pd.DataFrame(columns, copy=False)
        return frame.set_axis(pd.Index(self._labels, dtype=object, tupleize_cols=False), axis=1)


def _truth(numbers: NDArray[np.float64]) -> Any:
    import pandas as pd

    gaps = np.isnan(numbers)
    return pd.arrays.BooleanArray(np.where(gaps, 0, numbers).astype(bool), gaps)


def _sort_of(column: pd.Series) -> str:
    """What the cells of a part are: number, truth, text, levels, other; empty if there are none."""
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
