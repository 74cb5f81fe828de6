"""What a column of a data frame holds: numbers, levels with or without an order, or a reason not to use it."""

from __future__ import annotations

import datetime
import numbers
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from causal_arrow.errors import Remedy
from causal_arrow.tables.numerals import read_numerals
from causal_arrow.tables.table import Column, in_safe_units
from causal_arrow.text import closest, counted, shown

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
MOST_LEVELS = 100
"""More categories than this say next to nothing each, and the network keeps a cross table for every two columns."""

# Why a column cannot be used: said of one column, of several, and the reason or the remedy. {model} reads the table.
_NUMBERS_ONLY = "{model} reads numbers only, and categories have no order that numbers could stand for"
PROBLEMS = {
    "text": ("is text", "are text", _NUMBERS_ONLY),
    "category": ("is a category", "are categories", _NUMBERS_ONLY),
    "identifier": (
        "has a value of its own in each row",
        "have a value of their own in each row",
        "a name for each observation has no causes and no effects",
    ),
    "levels": (
        "has too many categories",
        "have too many categories",
        f"up to {MOST_LEVELS} can be read; group those that are rare",
    ),
    "order": (
        "has values that its order does not name",
        "have values that their order does not name",
        "name every value, the smallest first",
    ),
    "binary": ("is not yes or no", "are not yes or no", "expected two different values"),
    "unordered": ("is text without an order", "are text without an order", "say in which order its values come"),
    "sparse": (
        "is missing in more than 90% of the observations",
        "are missing in more than 90% of the observations",
        "too little is left to learn from",
    ),
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
    """How the cells of a column are written, and what the caller says of it.

    decimal, na  The decimal sign that is more likely, and the values that count as missing.
    categories   Whether levels without an order can be read.
    kind, order  What kind of column it is, one of KINDS, and the order of its levels; None to detect it.
    """

    decimal: str = "."
    na: tuple[str, ...] = ()
    categories: bool = False
    kind: str | None = None
    order: tuple[str, ...] | None = None


def column_as_numbers(
    column: pd.Series, name: str, where: Where, options: CellOptions | None = None
) -> NumberColumn | Problem:
    """The column as numbers, or why it cannot be."""
    options = options or CellOptions()
    missing = column.isna().to_numpy(dtype=bool)
    if missing.all():
        return Problem("empty", name)
    if options.order is not None or options.kind not in (None, "number"):
        read = _declared_levels(column, missing, name, options)
    else:
        read = _read_by_type(column, missing, name, where, options)
    if isinstance(read, Problem):
        return read
    if np.isnan(read.numbers).all():
        return Problem("empty", name)
    infinite = np.isinf(read.numbers)
    if infinite.any():
        count, first = int(infinite.sum()), int(infinite.argmax())
        return Problem("infinite", name, f"{counted(count, 'value')}, the first on {where(first)}")
    if options.kind == "number":
        return replace(read, column=Column(name))
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
        if column.cat.ordered and options.kind is None:
            return _ordered_as_numbers(column, missing, name)
        column = column.astype(object)
        if options.categories and options.kind is None and not _is_truth(column[~missing]):
            return _category(*_words(column, missing, options), name)
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
    return [float(text) for text in texts if _is_number(text)]


def _ordered_as_numbers(column: pd.Series, missing: Bools, name: str) -> NumberColumn:
    """The ranks of ordered categories."""
    levels = tuple(str(level) for level in column.cat.categories)
    numbers = np.where(missing, np.nan, column.cat.codes.to_numpy(dtype=float))
    return NumberColumn(Column(name, "ordered", levels), numbers, _note_on_order(name, column.cat.categories))


def _note_on_order(name: str, levels: Iterable[Any]) -> str:
    quoted = [repr(level) for level in levels]
    order = " < ".join(quoted if len(quoted) <= 6 else [*quoted[:3], "...", quoted[-1]])
    return f"Column {name!r} is ordered ({order}) and is used as 0, 1, 2, ..., as if its steps were equal."


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
    text, missing = _words(column, missing, options)
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


def _words(column: pd.Series, missing: Bools, options: CellOptions) -> tuple[NDArray[Any], Bools]:
    """The cells as text, empty where missing; and what is missing, with the values that count as missing.  (N,) each"""
    cells = zip(column.tolist(), missing.tolist(), strict=True)
    text = np.array(["" if gap else _text(cell) for cell, gap in cells], dtype=object)
    missing = missing | (text == "") | np.isin(text, list(options.na))
    return text, missing | np.array([word.lower() == "nan" for word in text])


def _text(cell: Any) -> str:
    if isinstance(cell, float) and cell.is_integer():  # a whole number, which a gap in its column has made a float
        return str(int(cell))
    return (cell.decode("latin-1") if isinstance(cell, bytes) else str(cell)).strip()


def _is_truth(present: pd.Series) -> bool:
    return all(isinstance(cell, bool | np.bool_) for cell in present)


# Levels


def _declared_levels(column: pd.Series, missing: Bools, name: str, options: CellOptions) -> NumberColumn | Problem:
    """The levels of a column that the caller calls binary, ordered or a category, or whose order is given."""
    text, missing = _words(column.astype(object), missing, options)
    if missing.all():
        return Problem("empty", name)
    present = text[~missing]
    levels = tuple(_sorted_levels(set(present))) if options.order is None else options.order
    if strange := [word for word in dict.fromkeys(present) if word not in levels]:
        near = closest(strange[0], levels)
        hint = f", did you mean {near!r}?" if near else ""
        return Problem("order", name, f"{shown(strange[0], EXAMPLE_LENGTH)}{hint}")
    if options.order is None and options.kind == "category":
        found = _category(text, missing, name)
        if isinstance(found, NumberColumn) and not options.categories and len(levels) > 2:
            return Problem("category", name, f"{len(levels)} levels")
        return found
    if options.kind == "binary" and len(levels) != 2:
        return Problem("binary", name, f"{len(levels)} different values, such as {shown(levels[0], EXAMPLE_LENGTH)}")
    if options.order is None and options.kind == "ordered" and not all(map(_is_number, levels)):
        return Problem("unordered", name, f"{len(levels)} different values, such as {shown(levels[0], EXAMPLE_LENGTH)}")
    kind = "binary" if options.kind == "binary" else "ordered"
    note = _note_on_order(name, levels) if kind == "ordered" else ""
    return NumberColumn(Column(name, kind, levels), _codes(text, missing, levels), note)


def _category(text: NDArray[Any], missing: Bools, name: str) -> NumberColumn | Problem:
    """Levels without an order, as codes, or why there are too many."""
    present = text[~missing]
    if not len(present):
        return Problem("empty", name)
    levels = _sorted_levels(set(present))
    example = shown(str(present[0]), EXAMPLE_LENGTH)
    if len(levels) == len(present) > 1:
        return Problem("identifier", name, f"such as {example}")
    if len(levels) > MOST_LEVELS:
        return Problem("levels", name, f"{len(levels)}, such as {example}")
    note = f"Column {name!r} is read as a category with {counted(len(levels), 'level')}, such as {example}."
    return NumberColumn(Column(name, "category", tuple(levels)), _codes(text, missing, levels), note)


def distinct_levels(column: pd.Series, most: int = MOST_LEVELS) -> tuple[str, ...]:
    """The different values of a column, as text and sorted as its levels would be; none if there are more."""
    import pandas as pd

    try:
        different = pd.Series(column.dropna().unique())
    except TypeError:  # lists, which are not equal to anything
        return ()
    if not len(different) or len(different) > 2 * most:  # which blanks around them cannot explain
        return ()
    text, missing = _words(different.astype(object), np.zeros(len(different), dtype=bool), CellOptions())
    levels = _sorted_levels(set(text[~missing]))
    return tuple(levels) if len(levels) <= most else ()


def _codes(text: NDArray[Any], missing: Bools, levels: Sequence[str]) -> Floats:
    place = {level: float(code) for code, level in enumerate(levels)}
    return np.array([np.nan if gap else place[word] for word, gap in zip(text, missing.tolist(), strict=True)])


def _sorted_levels(words: set[str]) -> list[str]:
    """By value where all of them are numbers, else by their letters."""
    return sorted(words, key=float) if all(map(_is_number, words)) else sorted(words)


def _is_number(text: str) -> bool:
    return re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text) is not None


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
        remedies = [Remedy("na", setting=marker) for marker in markers if len(markers) == 1]
        if options.categories:
            remedies.append(Remedy("kind", (name,), "category"))
        return Problem("mixed", name, detail, tuple(remedies))
    distinct = list(dict.fromkeys(present.tolist()))
    if all(DATE.fullmatch(value) for value in distinct[:100]):
        return Problem("date", name, f"such as {example}")
    if options.categories and options.kind is None:
        return _category(text, missing, name)
    if len(distinct) == 2:
        one, other = (shown(value, EXAMPLE_LENGTH) for value in distinct)
        return Problem("text", name, f"{one} or {other}: write 0 and 1 to use it")
    return Problem("text", name, f"{len(distinct)} different values, such as {example}")


def constant_columns(values: Floats, columns: Sequence[Column]) -> list[Problem]:
    """The columns with one value only, up to rounding; missing values aside."""
    # Of the extremes alone, so that there is no copy of a long table.
    lowest, highest = (np.array([extreme(column) for column in values.T]) for extreme in (np.nanmin, np.nanmax))
    (low, high), _ = in_safe_units(np.stack([lowest, highest]))
    constant = high - low <= 1e-13 * np.maximum(np.abs(low), np.abs(high))
    problems = []
    for k in np.flatnonzero(constant).tolist():
        column = columns[k]
        value = repr(column.levels[int(lowest[k])]) if column.kind in ("ordered", "category") else f"{lowest[k]:g}"
        problems.append(Problem("constant", column.name, f"every value is {value}"))
    return problems


def problem_sentences(problems: Sequence[Problem], model: str) -> list[str]:
    """One sentence for each kind of problem, naming its columns and, where it is to blame, the model."""
    sentences = []
    for kind, (of_one, of_several, reason) in PROBLEMS.items():
        of_kind = [problem for problem in problems if problem.kind == kind]
        if of_kind:
            named = [f"{p.column!r} ({p.detail})" if p.detail else repr(p.column) for p in of_kind[:8]]
            rest = f" and {len(of_kind) - 8} more" if len(of_kind) > 8 else ""
            subject, verb = ("Column", of_one) if len(of_kind) == 1 else ("Columns", of_several)
            sentences.append(f"{subject} {', '.join(named)}{rest} {verb}: {reason.format(model=model)}.")
    return sentences


def _truth(name: str, numbers: Floats, levels: tuple[str, str] = ("False", "True")) -> NumberColumn:
    note = f"Column {name!r} is true or false and is used as 1 or 0."
    return NumberColumn(Column(name, "binary", levels), numbers, note)
