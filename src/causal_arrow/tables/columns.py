"""What a column of a data frame holds: numbers, something that stands for numbers, or a reason not to use it."""

from __future__ import annotations

import datetime
import numbers
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from causal_arrow.errors import Remedy
from causal_arrow.tables.numerals import read_numerals
from causal_arrow.tables.table import Column, in_safe_units
from causal_arrow.text import counted, shown

if TYPE_CHECKING:
    import pandas as pd

# N observations, P variables

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Where = Callable[[int], str]  # the place of an observation, in words

# Integers beyond this are not all floating point numbers.
LARGEST_EXACT = 2**53
# Words for true and false, in lower case.
YES_AND_NO = {"yes": 1.0, "no": 0.0, "true": 1.0, "false": 0.0, "y": 1.0, "n": 0.0, "t": 1.0, "f": 0.0}
DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([ T].*)?|\d{1,2}:\d{2}(:\d{2}.*)?")
EXAMPLE_LENGTH = 30

# Why a column cannot be used: said of one column, of several, and the reason or the remedy.
PROBLEMS = {
    "text": ("is text", "are text", "categories have no order that numbers could stand for"),
    "date": ("holds dates or times", "hold dates or times", "turn them into a number such as days if they matter"),
    "nested": ("holds lists or objects", "hold lists or objects", "expected one number in each cell"),
    "mixed": ("mixes numbers with text", "mix numbers with text", "correct those cells or leave them empty"),
    "units": ("mixes units", "mix units", "write all its numbers in the same unit"),
    "empty": ("has no values at all", "have no values at all", "nothing can be learned from nothing"),
    "constant": ("is constant", "are constant", "a constant has no causes we can detect"),
    "infinite": ("has infinite values", "have infinite values", "correct those cells or leave them empty"),
    "complex": ("holds complex numbers", "hold complex numbers", "split them into real columns"),
}


@dataclass(frozen=True)
class Problem:
    """Why a column cannot be used: one of PROBLEMS, with what was seen, and what can be done instead of dropping it."""

    kind: str
    column: str
    detail: str = ""
    remedies: tuple[Remedy, ...] = ()


@dataclass(frozen=True, eq=False)
class NumberColumn:
    """A column as numbers, NaN where missing, with a note if it did not hold numbers in the first place."""

    column: Column
    numbers: Floats  # (N,)
    note: str = ""

    @property
    def name(self) -> str:
        """The name of the column."""
        return self.column.name


@dataclass(frozen=True)
class CellOptions:
    """How cells are written: the decimal sign that is more likely, and the values that count as missing."""

    decimal: str = "."
    na: tuple[str, ...] = ()


def column_as_numbers(
    column: pd.Series, name: str, where: Where, options: CellOptions | None = None
) -> NumberColumn | Problem:
    """The column as numbers, or why it cannot be."""
    options = options or CellOptions()
    missing = column.isna().to_numpy(dtype=bool)
    if missing.all():
        return Problem("empty", name)
    read = _read_by_type(column, missing, name, where, options)
    if isinstance(read, Problem):
        return read
    if np.isnan(read.numbers).all():
        return Problem("empty", name)
    infinite = np.isinf(read.numbers)
    if infinite.any():
        count, first = int(infinite.sum()), int(infinite.argmax())
        return Problem("infinite", name, f"{counted(count, 'value')}, the first on {where(first)}")
    return replace(read, column=_with_kind(read.column, read.numbers))


def _with_kind(column: Column, numbers: Floats) -> Column:
    """Zeros and ones are a yes or no, even if they were written as numbers."""
    if column.kind != "number" or not np.all((numbers == 0) | (numbers == 1) | np.isnan(numbers)):
        return column
    return Column(column.name, "binary", ("0", "1"))


def _read_by_type(
    column: pd.Series, missing: Bools, name: str, where: Where, options: CellOptions
) -> NumberColumn | Problem:
    import pandas as pd
    from pandas.api import types

    if isinstance(column.dtype, pd.CategoricalDtype):
        if column.cat.ordered:
            return _ordered_as_numbers(column, missing, name)
        column = column.astype(object)
    if types.is_bool_dtype(column):
        return _truth(name, column.to_numpy(dtype=float, na_value=np.nan))
    if types.is_datetime64_any_dtype(column) or isinstance(column.dtype, pd.PeriodDtype):
        return Problem("date", name)
    if types.is_timedelta64_dtype(column):
        return Problem("date", name)
    if types.is_complex_dtype(column):
        return Problem("complex", name)
    if types.is_numeric_dtype(column):
        values = column.to_numpy(dtype=float, na_value=np.nan)
        missing = missing | np.isin(values, _numbers_in(options.na))
        values = np.where(missing, np.nan, values)
        if types.is_integer_dtype(column) and np.nanmax(np.abs(values), initial=0) > LARGEST_EXACT:
            return _exact_integers([int(value) for value in column[~missing]], values, missing, name)
        return NumberColumn(Column(name), values)
    return _objects_as_numbers(column.astype(object), missing, name, where, options)


def _numbers_in(texts: Sequence[str]) -> list[float]:
    """The texts that are numbers."""
    return [float(text) for text in texts if re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text)]


def _ordered_as_numbers(column: pd.Series, missing: Bools, name: str) -> NumberColumn:
    """The ranks of ordered categories."""
    levels = tuple(str(level) for level in column.cat.categories)
    quoted = [repr(level) for level in column.cat.categories]
    order = " < ".join(quoted if len(quoted) <= 6 else [*quoted[:3], "...", quoted[-1]])
    note = f"Column {name!r} is ordered ({order}) and is used as 0, 1, 2, ..., as if its steps were equal."
    numbers = np.where(missing, np.nan, column.cat.codes.to_numpy(dtype=float))
    return NumberColumn(Column(name, "ordered", levels), numbers, note)


def _exact_integers(present: list[int], values: Floats, missing: Bools, name: str) -> NumberColumn:
    """Integers beyond 2⁵³: where they lie close together, their distances from the smallest, which lose no digit."""
    low, high = min(present), max(present)
    if high - low > LARGEST_EXACT:
        return NumberColumn(Column(name), values)
    exact = np.full(len(values), np.nan)
    exact[~missing] = [float(value - low) for value in present]
    note = (
        f"Column {name!r} holds integers too large for floating point numbers to tell apart: their distances from the "
        f"smallest, {low}, are used."
    )
    return NumberColumn(Column(name), exact, note)


def _objects_as_numbers(
    column: pd.Series, missing: Bools, name: str, where: Where, options: CellOptions
) -> NumberColumn | Problem:
    """The numbers in a column of text or of mixed objects."""
    cells = column.tolist()
    present = [cell for cell, gap in zip(cells, missing.tolist(), strict=True) if not gap]
    for kind, types in _UNUSABLE_CELLS.items():
        odd = next((cell for cell in present if isinstance(cell, types)), None)
        if odd is not None:
            return Problem(kind, name, "" if kind != "nested" else f"such as {shown(odd, EXAMPLE_LENGTH)}")
    if all(isinstance(cell, bool | np.bool_) for cell in present):
        numbers_ = np.full(len(cells), np.nan)
        numbers_[~missing] = np.array(present, dtype=float)
        return _truth(name, numbers_)
    text = np.array(["" if gap else _text(cell) for cell, gap in zip(cells, missing, strict=True)], dtype=object)
    missing = missing | (text == "") | np.isin(text, list(options.na))
    missing = missing | np.array([word.lower() == "nan" for word in text])
    if missing.all():
        return Problem("empty", name)
    if not any(isinstance(cell, str | bytes) for cell in present):
        return _real_objects(cells, missing, name)
    return _texts_as_numbers(text, missing, name, where, options)


_UNUSABLE_CELLS: dict[str, tuple[type, ...]] = {
    "date": (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64),
    "complex": (complex, np.complexfloating),
    "nested": (dict, list, tuple, set, frozenset, np.ndarray),
}


def _text(cell: Any) -> str:
    return (cell.decode("latin-1") if isinstance(cell, bytes) else str(cell)).strip()


def _real_objects(cells: list[Any], missing: Bools, name: str) -> NumberColumn | Problem:
    """Numbers of whatever type, each an object: Python's integers, fractions, decimals."""
    present = [cell for cell, gap in zip(cells, missing.tolist(), strict=True) if not gap]
    odd = next((cell for cell in present if not isinstance(cell, numbers.Real | Decimal | np.bool_)), None)
    if odd is not None:
        return Problem("nested", name, f"such as {shown(odd, EXAMPLE_LENGTH)}")
    values = np.full(len(cells), np.nan)
    values[~missing] = [_as_float(cell) for cell in present]
    if all(isinstance(cell, numbers.Integral) for cell in present) and np.nanmax(np.abs(values)) > LARGEST_EXACT:
        return _exact_integers([int(cell) for cell in present], values, missing, name)
    return NumberColumn(Column(name), values)


def _as_float(number: Any) -> float:
    try:
        return float(number)
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")


def _texts_as_numbers(
    text: NDArray[Any], missing: Bools, name: str, where: Where, options: CellOptions
) -> NumberColumn | Problem:
    """The numbers that are written in a column of text, or yes and no."""
    present = text[~missing]
    numerals = read_numerals(present, options.decimal)
    values = np.full(len(text), np.nan)
    values[~missing] = numerals.values
    if numerals.recognized.all():
        if numerals.units:
            return Problem("units", name, numerals.units)
        if np.abs(numerals.values).max() > LARGEST_EXACT and all(re.fullmatch(r"[+-]?\d+", each) for each in present):
            return _exact_integers([int(each) for each in present], values, missing, name)
        if not numerals.manner:
            note = f"Column {name!r} holds numbers written as text, which are used as numbers."
            return NumberColumn(Column(name), values, note)
        first = int(np.flatnonzero(numerals.decorated)[0])
        note = (
            f"Column {name!r} holds numbers written with {numerals.manner}: {present[first]!r} is read as "
            f"{numerals.values[first]:.15g}."
        )
        return NumberColumn(Column(name), values, note)

    words = [word.lower() for word in present]
    if len(set(words)) == 2 and set(words) <= YES_AND_NO.keys():
        values[~missing] = [YES_AND_NO[word] for word in words]
        no, yes = sorted(set(words), key=YES_AND_NO.__getitem__)
        if YES_AND_NO[no] != YES_AND_NO[yes]:
            return _truth(name, values, (str(present[words.index(no)]), str(present[words.index(yes)])))

    odd = np.flatnonzero(~missing)[~numerals.recognized]
    example, count = shown(str(text[odd[0]]), EXAMPLE_LENGTH), len(odd)
    if count < 0.5 * len(present):
        detail = f"{counted(count, 'value')} such as {example} on {where(int(odd[0]))}"
        markers = tuple(dict.fromkeys(str(each) for each in text[odd]))
        as_missing = tuple(Remedy("na", setting=marker) for marker in markers if len(markers) == 1)
        return Problem("mixed", name, detail, as_missing)
    distinct = list(dict.fromkeys(present.tolist()))
    if all(DATE.fullmatch(value) for value in distinct[:100]):
        return Problem("date", name, f"such as {example}")
    if len(distinct) == 2:
        one, other = (shown(value, EXAMPLE_LENGTH) for value in distinct)
        return Problem("text", name, f"{one} or {other}: write 0 and 1 to use it")
    return Problem("text", name, f"{len(distinct)} different values, such as {example}")


def constant_columns(values: Floats, names: Sequence[str]) -> list[Problem]:
    """The columns with one value only, up to rounding; missing values aside."""
    scaled, _ = in_safe_units(values)
    low, high = np.nanmin(scaled, axis=0), np.nanmax(scaled, axis=0)
    constant = high - low <= 1e-13 * np.maximum(np.abs(low), np.abs(high))
    lowest = np.nanmin(values, axis=0)
    return [Problem("constant", names[k], f"every value is {lowest[k]:g}") for k in np.flatnonzero(constant).tolist()]


def problem_sentences(problems: Sequence[Problem]) -> list[str]:
    """One sentence for each kind of problem, naming its columns."""
    sentences = []
    for kind, (of_one, of_several, reason) in PROBLEMS.items():
        of_kind = [problem for problem in problems if problem.kind == kind]
        if of_kind:
            named = [f"{p.column!r} ({p.detail})" if p.detail else repr(p.column) for p in of_kind[:8]]
            rest = f" and {len(of_kind) - 8} more" if len(of_kind) > 8 else ""
            subject, verb = ("Column", of_one) if len(of_kind) == 1 else ("Columns", of_several)
            sentences.append(f"{subject} {', '.join(named)}{rest} {verb}: {reason}.")
    return sentences


def _truth(name: str, numbers: Floats, levels: tuple[str, str] = ("False", "True")) -> NumberColumn:
    note = f"Column {name!r} is true or false and is used as 1 or 0."
    return NumberColumn(Column(name, "binary", levels), numbers, note)
