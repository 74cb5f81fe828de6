"""What a column of a data frame holds: numbers, levels with or without an order, or a reason not to use it."""

from __future__ import annotations

import datetime
import numbers
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from causal_arrow.errors import MOST_NAMED, Remedy
from causal_arrow.tables.dates import are_dates
from causal_arrow.tables.numerals import Numerals, read_numerals
from causal_arrow.tables.table import Column, in_safe_units
from causal_arrow.text import closest, counted, listed, shown

if TYPE_CHECKING:
    import pandas as pd

# N observations, P variables

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Where = Callable[[int], str]  # the place of an observation, in words

# Integers beyond this are not all floating point numbers.
LARGEST_EXACT = 2**53
USUAL_MARKERS = frozenset(
    {"NA", "N/A", "n/a", "#N/A", "#N/A N/A", "#NA", "<NA>", "NaN", "nan", "-NaN", "-nan", "NULL", "null", "None"}
    | {"1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"}
)
"""Texts that count as missing wherever they stand: those of pandas, so that frames are read as files are."""
# Words for true and false, in lower case.
YES_AND_NO = {"yes": 1.0, "no": 0.0, "true": 1.0, "false": 0.0, "y": 1.0, "n": 0.0, "t": 1.0, "f": 0.0}
TRUTH = ("False", "True")
EXAMPLE_LENGTH = 30
MOST_LEVELS = 100
"""More levels than this say next to nothing each, and the network keeps a cross table for every two columns."""
FEWEST_NAMES = 10
"""Text is called names of the observations if more than half of its values occur only once, of at least so many."""
ROUNDING = 1e-13
"""Numbers that differ by less than this share of the larger one differ by rounding."""

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
    "names": (
        "has a value of its own in most rows",
        "have a value of their own in most rows",
        "a name for each observation has no causes and no effects",
    ),
    "levels": (
        "has too many categories",
        "have too many categories",
        f"up to {MOST_LEVELS} can be read; group those that are rare",
    ),
    "steps": (
        "has too many ordered levels",
        "have too many ordered levels",
        f"up to {MOST_LEVELS} can be read; use it as a number, or group its levels",
    ),
    "order": (
        "has values that its order does not name",
        "have values that their order does not name",
        "name every value, the smallest first",
    ),
    "binary": ("is not yes or no", "are not yes or no", "expected two different values"),
    "unordered": ("is text without an order", "are text without an order", "say in which order its values come"),
    "words": ("holds text", "hold text", "text cannot be used as numbers"),
    "sparse": (
        "is missing in more than 90% of the observations",
        "are missing in more than 90% of the observations",
        "too little is left to learn from",
    ),
    "date": ("holds dates or times", "hold dates or times", "turn them into a number such as days if they matter"),
    "nested": ("holds lists or objects", "hold lists or objects", "expected one number in each cell"),
    "mixed": ("mixes numbers with text", "mix numbers with text", "correct those cells or leave them empty"),
    "decimals": (
        "has both decimal signs",
        "have both decimal signs",
        "write all numbers with a point, or all of them with a comma",
    ),
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
    doubtful: bool = False  # whether the note is a warning

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
        read = _declared_levels(column, missing, name, where, options)
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
    return _of_two_values(read, column)


def _of_two_values(read: NumberColumn, cells: pd.Series) -> NumberColumn:
    """Two different numbers are a yes or no, whatever their unit: the higher one counts as 1."""
    numbers, name = read.numbers, read.name
    if read.column.kind != "number" or len(np.unique(numbers[:100][~np.isnan(numbers[:100])])) > 2:
        return read
    low, high = np.nanmin(numbers), np.nanmax(numbers)
    lower, higher = numbers == low, numbers == high
    if differ_by_rounding(low, high) or not np.all(lower | higher | np.isnan(numbers)):
        return read
    if low == 0 and high == 1:
        return replace(read, column=Column(name, "binary", ("0", "1")))
    levels = _usual_text(cells[lower]), _usual_text(cells[higher])
    note = f"Column {name!r} has two values: {levels[1]} counts as 1, {levels[0]} as 0."
    return NumberColumn(Column(name, "binary", levels), np.where(np.isnan(numbers), np.nan, higher), note)


def _usual_text(cells: pd.Series) -> str:
    """The text of cells that mean the same, as most of them are written."""
    counts = cells.value_counts()
    return min(cell_text(cell) for cell in counts[counts == counts.max()].index)


def differ_by_rounding(low: Any, high: Any) -> Any:
    """Whether numbers, the first not above the second, are the same up to rounding."""
    with np.errstate(over="ignore"):
        return high - low <= ROUNDING * np.maximum(np.abs(low), np.abs(high))


def _read_by_type(
    column: pd.Series, missing: Bools, name: str, where: Where, options: CellOptions
) -> NumberColumn | Problem:
    import pandas as pd
    from pandas.api import types

    if isinstance(column.dtype, pd.CategoricalDtype):
        if column.cat.ordered and options.kind is None:
            return _in_own_order(column, missing, name, options)
        column = column.astype(object)
        if _unusable(column[~missing]) is None and options.kind is None and not _is_truth(column[~missing]):
            return _detected_levels(*_words(column, missing, options), name, options)
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
    return [float(text) for text in texts if is_number(text)]


def _in_own_order(column: pd.Series, missing: Bools, name: str, options: CellOptions) -> NumberColumn | Problem:
    """The ranks of ordered categories, of those that occur."""
    import pandas as pd

    codes, categories = column.cat.codes.to_numpy(), column.cat.categories
    words, marked = _words(pd.Series(categories, dtype=object), np.zeros(len(categories), dtype=bool), options)
    missing = missing | marked[codes]
    used = np.unique(codes[~missing])
    if not len(used):
        return Problem("empty", name)
    numbers = np.where(missing, np.nan, np.searchsorted(used, codes).astype(np.float64))
    return _ordered(name, [words[code] for code in used], numbers)


def _ordered(name: str, levels: Sequence[str], numbers: Floats) -> NumberColumn | Problem:
    """A column with levels in their order, or why there are too many."""
    if len(levels) > MOST_LEVELS:
        return _too_many_steps(name, levels)
    quoted = [repr(level) for level in levels]
    order = " < ".join(quoted if len(quoted) <= 6 else [*quoted[:3], "...", quoted[-1]])
    note = f"Column {name!r} is ordered ({order}) and is used as 0, 1, 2, ..., as if its steps were equal."
    return NumberColumn(Column(name, "ordered", tuple(levels)), numbers, note)


def _too_many_steps(name: str, levels: Sequence[str]) -> Problem:
    remedies = (Remedy("kind", (name,), "number"),) if all(map(is_number, levels)) else ()
    return Problem("steps", name, counted(len(levels), "level"), remedies)


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
    if (unusable := _unusable(present)) is not None:
        kind, odd = unusable
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


def _unusable(cells: Iterable[Any]) -> tuple[str, Any] | None:
    """The first cell, if any, that is no number or level, and the kind of problem that it is."""
    different = list({type(cell): cell for cell in cells}.values())
    found = ((kind, cell) for kind, types in _UNUSABLE_CELLS.items() for cell in different if isinstance(cell, types))
    return next(found, None)


def _words(column: pd.Series, missing: Bools, options: CellOptions) -> tuple[NDArray[Any], Bools]:
    """The cells as text, empty where missing; and what is missing, with the values that count as missing.  (N,) each"""
    cells = zip(column.tolist(), missing.tolist(), strict=True)
    text = np.array(["" if gap else cell_text(cell) for cell, gap in cells], dtype=object)
    usual = [word in USUAL_MARKERS or word.lower() == "nan" for word in text]
    missing = missing | (text == "") | np.array(usual, dtype=bool)
    if options.na:
        markers = {word for word in set(text) if same_level(word, options.na) is not None}
        missing |= np.isin(text, list(markers))
    return text, missing


def same_level(word: str, levels: Sequence[str]) -> str | None:
    """The level that is written like a word or is the same number; None if there is none."""
    if word in levels:
        return word
    if not is_number(word):
        return None
    return next((level for level in levels if is_number(level) and float(level) == float(word)), None)


def cell_text(cell: Any) -> str:
    """A cell, a level or a marker as text, without blanks around it."""
    # A whole number may have become a float by a gap in its column.
    if isinstance(cell, float) and cell.is_integer() and abs(cell) <= LARGEST_EXACT:
        return str(int(cell))
    return (cell.decode("latin-1") if isinstance(cell, bytes) else str(cell)).strip()


def _is_truth(present: pd.Series) -> bool:
    return all(isinstance(cell, bool | np.bool_) for cell in present)


# Levels


def _declared_levels(
    column: pd.Series, missing: Bools, name: str, where: Where, options: CellOptions
) -> NumberColumn | Problem:
    """The levels of a column that the caller calls binary, ordered or a category, or whose order is given."""
    import pandas as pd

    text, gaps = _words(column.astype(object), missing, options)
    if gaps.all():
        return Problem("empty", name)
    different = set(text[~gaps])
    if options.order is not None:
        return _in_given_order(text, gaps, name, options.order)
    if options.kind == "category":
        if len(different) > 2 and not options.categories:
            return Problem("category", name, f"{len(different)} levels")
        return _category(text, gaps, name)
    if isinstance(column.dtype, pd.CategoricalDtype) and column.cat.ordered:
        ranks = _in_own_order(column, missing, name, options)
        if options.kind == "ordered" or isinstance(ranks, Problem):
            return ranks
        if len(ranks.column.levels) == 2:
            note = _note_on_two(name, *ranks.column.levels)
            return replace(ranks, column=replace(ranks.column, kind="binary"), note=note)
    if options.kind == "ordered":
        if all(map(is_number, different)):
            # The same number may be written in several ways.
            levels = {float(word): word for word in sorted(different, key=lambda word: (-len(word), word))}
            if len(levels) > MOST_LEVELS:
                return _too_many_steps(name, list(levels.values()))
            return _in_given_order(text, gaps, name, [levels[number] for number in sorted(levels)])
        return Problem("unordered", name, _how_many(different), (_name_the_order(name, different),))
    detected = _read_by_type(column, missing, name, where, replace(options, kind=None))
    if isinstance(detected, NumberColumn) and _of_two_values(detected, column).column.kind == "binary":
        return _of_two_values(detected, column)
    if len(different) != 2:
        return Problem("binary", name, _how_many(different))
    return _two_levels(text, gaps, name)


def _how_many(levels: set[str]) -> str:
    if len(levels) == 1:
        return f"every value is {_shown_level(*levels)}"
    return f"{counted(len(levels), 'different value')}, such as {shown(min(levels), EXAMPLE_LENGTH)}"


def _name_the_order(name: str, levels: set[str]) -> Remedy:
    """The advice to name the levels in their order, with the levels if they are few."""
    return Remedy("order", (name, *(_sorted_levels(levels) if len(levels) <= MOST_NAMED else ())))


def _in_given_order(text: NDArray[Any], missing: Bools, name: str, order: Sequence[str]) -> NumberColumn | Problem:
    """The ranks of levels that were named in their order, of those that occur."""
    named = {word: same_level(word, order) for word in dict.fromkeys(text[~missing])}
    if strange := [word for word, level in named.items() if level is None]:
        near = closest(strange[0], order)
        hint = f", did you mean {near!r}?" if near else ""
        return Problem("order", name, f"{shown(strange[0], EXAMPLE_LENGTH)}{hint}")
    levels = [level for level in order if level in named.values()]
    found = np.array(["" if gap else named[word] for word, gap in zip(text, missing.tolist(), strict=True)], object)
    return _ordered(name, levels, _codes(found, missing, levels))


def _detected_levels(text: NDArray[Any], missing: Bools, name: str, options: CellOptions) -> NumberColumn | Problem:
    """The levels of text of which nothing was said: two of them are a yes or no, more a category."""
    present = text[~missing]
    if not len(present):
        return Problem("empty", name)
    counts, example = Counter(present.tolist()), shown(str(present[0]), EXAMPLE_LENGTH)
    if are_dates(list(counts)):
        date = next(text for text in counts if are_dates([text]))
        return Problem("date", name, f"such as {shown(date, EXAMPLE_LENGTH)}")
    if not options.categories and len(counts) == 2:
        # A network that reads numbers only may answer otherwise if the other level counts as 1.
        one, other = (shown(level, EXAMPLE_LENGTH) for level in counts)
        return Problem("text", name, f"{one} or {other}: write 0 and 1 to use it")
    if len(counts) == 2 < len(present):
        return _two_levels(text, missing, name)
    if not options.categories:
        return Problem("text", name, f"{counted(len(counts), 'different value')}, such as {example}")
    once = sum(count == 1 for count in counts.values())
    if FEWEST_NAMES <= len(present) < 2 * once and len(counts) < len(present):
        return Problem("names", name, f"{once} of {len(present)} values occur only once, such as {_first_once(counts)}")
    return _category(text, missing, name)


def _first_once(counts: Counter[str]) -> str:
    return shown(next(word for word, count in counts.items() if count == 1), EXAMPLE_LENGTH)


def _category(text: NDArray[Any], missing: Bools, name: str) -> NumberColumn | Problem:
    """Levels without an order, as codes, or why there are too many."""
    present = text[~missing]
    levels = _sorted_levels(set(present))
    example = shown(str(present[0]), EXAMPLE_LENGTH)
    if len(levels) == len(present) > 1:
        return Problem("identifier", name, f"such as {example}")
    if len(levels) > MOST_LEVELS:
        return Problem("levels", name, f"{len(levels)}, such as {example}")
    some = listed([_shortened(level) for level in levels])
    note = f"Column {name!r} is read as a category with {counted(len(levels), 'level')}: {some}."
    return NumberColumn(Column(name, "category", tuple(levels)), _codes(text, missing, levels), note)


def _two_levels(text: NDArray[Any], missing: Bools, name: str) -> NumberColumn:
    """Two texts as a yes or no: the one that comes later in the alphabet counts as 1."""
    low, high = _sorted_levels(set(text[~missing]))
    codes = _codes(text, missing, (low, high))
    return NumberColumn(Column(name, "binary", (low, high)), codes, _note_on_two(name, low, high))


def _note_on_two(name: str, low: str, high: str) -> str:
    return f"Column {name!r} has two levels: {_shortened(high)!r} counts as 1, {_shortened(low)!r} as 0."


def _shortened(level: str) -> str:
    return level if len(level) <= EXAMPLE_LENGTH else level[: EXAMPLE_LENGTH - 3] + "..."


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
    return sorted(words, key=float) if all(map(is_number, words)) else sorted(words)


def is_number(text: str) -> bool:
    """Whether a level is written as a number."""
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

    words = np.array([word.lower() for word in present], dtype=object)
    if len(set(words)) == 2 and set(words) <= YES_AND_NO.keys():
        values[~missing] = [YES_AND_NO[word] for word in words]
        no, yes = sorted(set(words), key=YES_AND_NO.__getitem__)
        if YES_AND_NO[no] != YES_AND_NO[yes]:
            no, yes = (_most_frequent(present[words == word].tolist()) for word in (no, yes))
            return _truth(name, values, (no, yes))

    odd = np.flatnonzero(~missing)[~numerals.recognized]
    example, count = shown(str(text[odd[0]]), EXAMPLE_LENGTH), len(odd)
    if numerals.both_signs:
        others = shown(str(present[numerals.recognized][0]), EXAMPLE_LENGTH)
        detail = f"{counted(count, 'value')} such as {example} on {where(int(odd[0]))}, others such as {others}"
        return Problem("decimals", name, detail)
    if numerals.units:
        return _different_units(text, missing, name, numerals, options)
    if count < 0.5 * len(present):
        detail = f"{counted(count, 'value')} such as {example} on {where(int(odd[0]))}"
        markers = tuple(dict.fromkeys(str(each) for each in text[odd]))
        remedies = [Remedy("na", setting=marker) for marker in markers if len(markers) == 1]
        if options.categories and isinstance(_category(text, missing, name), NumberColumn):
            remedies.append(Remedy("kind", (name,), "category"))
        return Problem("mixed", name, detail, tuple(remedies))
    if options.kind == "number":
        different = set(present)
        if are_dates(list(different)):
            return Problem("date", name, f"such as {example}")
        remedies = [Remedy("kind", (name,), "category")] if options.categories else []
        remedies.append(_name_the_order(name, different))
        return Problem("words", name, f"such as {example}", tuple(remedies))
    return _detected_levels(text, missing, name, options)


def _different_units(
    text: NDArray[Any], missing: Bools, name: str, numerals: Numerals, options: CellOptions
) -> NumberColumn | Problem:
    """Numbers whose units nobody but the caller can compare: a category in doubt, or a problem if they are none."""
    levels = _detected_levels(text, missing, name, options) if options.kind is None else None
    if isinstance(levels, NumberColumn) and numerals.all_have_units:
        doubt = (
            f"{levels.note} These look like {numerals.units}: write them in the same unit to have them read as numbers."
        )
        return replace(levels, note=doubt, doubtful=True)
    readable = options.categories and isinstance(_category(text, missing, name), NumberColumn)
    remedies = (Remedy("kind", (name,), "category"),) if readable else ()
    return Problem("units", name, numerals.units, remedies)


def _most_frequent(words: list[str]) -> str:
    counts = Counter(words)
    return min(word for word, count in counts.items() if count == max(counts.values()))


def constant_columns(values: Floats, columns: Sequence[Column]) -> list[Problem]:
    """The columns with one value only, up to rounding; missing values aside."""
    # Of the extremes alone, so that there is no copy of a long table.
    lowest, highest = (np.array([extreme(column) for column in values.T]) for extreme in (np.nanmin, np.nanmax))
    (low, high), _ = in_safe_units(np.stack([lowest, highest]))
    constant = differ_by_rounding(low, high)
    problems = []
    for k in np.flatnonzero(constant).tolist():
        column = columns[k]
        value = _shown_level(column.levels[int(lowest[k])]) if column.levels else f"{lowest[k]:g}"
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


def _shown_level(level: str) -> str:
    """A level as a sentence shows it: text in quotes."""
    return level if is_number(level) or level in TRUTH else repr(level)


def _truth(name: str, numbers: Floats, levels: tuple[str, str] = TRUTH) -> NumberColumn:
    no, yes = map(_shown_level, levels)
    what = "true or false" if levels[1].lower() in ("true", "t") else "yes or no"
    note = f"Column {name!r} is {what}: {yes} counts as 1, {no} as 0."
    return NumberColumn(Column(name, "binary", levels), numbers, note)
