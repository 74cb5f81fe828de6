"""column_as_numbers(): the cells of a column as numbers or as codes of levels, or why it cannot be used."""

from __future__ import annotations

import datetime
import numbers
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from causal_arrow.errors import MAX_NAMED, Remedy
from causal_arrow.tables._numerals import Numerals, are_dates, read_numerals
from causal_arrow.tables.options import cell_text
from causal_arrow.tables.table import Bools, Column, Floats, in_safe_units
from causal_arrow.text import closest, counted, cut_short, first_few, listed, shown

if TYPE_CHECKING:
    import pandas as pd

# N rows, P variables

Where = Callable[[int], str]  # the position of a row, in words

USUAL_MARKERS = frozenset(
    {"NA", "N/A", "n/a", "#N/A", "#N/A N/A", "#NA", "<NA>", "NaN", "nan", "-NaN", "-nan", "NULL", "null", "None"}
    | {"1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"}
)
"""Texts that always count as missing: those of pandas, so that frames are read as files are."""
# Words for true and false, in lower case.
YES_AND_NO = {"yes": 1.0, "no": 0.0, "true": 1.0, "false": 0.0, "y": 1.0, "n": 0.0, "t": 1.0, "f": 0.0}
TRUTH = ("False", "True")
EXAMPLE_LENGTH = 30
MAX_LEVELS = 100
"""With more, each level has few rows; and the network keeps a cross table for every two columns."""
MIN_NAMES = 10
"""Text counts as names of the rows if more than half of at least this many values occur only once."""
ROUNDING = 1e-13
"""Numbers that differ by less than this share of the larger one are equal up to rounding."""

# Why columns cannot be used, and what to do. Words in braces depend on the number of columns, {model} reads the table.
ONE = {"is_": "is", "has": "has", "contains": "contains", "mixes": "mixes", "its": "its", "category": "a category"}
SEVERAL = {"is_": "are", "has": "have", "contains": "contain", "mixes": "mix", "its": "their", "category": "categories"}
_ONLY_NUMBERS = "{model} reads only numbers, and categories have no order that numbers could represent"
PROBLEMS = {
    "text": "{is_} text: " + _ONLY_NUMBERS,
    "category": "{is_} {category}: " + _ONLY_NUMBERS,
    "identifier": "{has} a different value in each row: an identifier has no causes and no effects",
    "names": "{has} a different value in most rows: an identifier has no causes and no effects",
    "levels": f"{{has}} too many categories: up to {MAX_LEVELS} can be read; group the rare ones",
    "steps": f"{{has}} too many ordered levels: up to {MAX_LEVELS} can be read; use it as a number, or group its "
    "levels",
    "order": "{has} values that are missing from {its} order: name every value, the smallest first",
    "binary": "{is_} not binary: expected two different values",
    "unordered": "{is_} text without an order: name {its} values in order",
    "words": "{contains} text: expected numbers",
    "sparse": "{is_} missing in more than 90% of the observations: too little is left to learn from",
    "date": "{contains} dates or times: convert them to a number, such as days, if they matter",
    "nested": "{contains} lists or objects: expected one number per cell",
    "mixed": "{mixes} numbers and text: correct these cells or leave them empty",
    "decimals": "{has} both decimal signs: write all numbers with a point, or all of them with a comma",
    "units": "{mixes} units: use the same unit throughout",
    "empty": "{has} no values: there is nothing to learn from",
    "constant": "{is_} constant: a constant has no causes we can detect",
    "infinite": "{has} infinite values: correct these cells or leave them empty",
    "complex": "{contains} complex numbers: split them into real columns",
}


@dataclass(frozen=True)
class Problem:
    """Why a column cannot be used: one of PROBLEMS, with what was seen, and what can be done instead of dropping it."""

    kind: str
    column: str
    detail: str = ""
    remedies: tuple[Remedy, ...] = ()
    value: str = ""
    """The only value of a constant."""


@dataclass(frozen=True, eq=False)
class NumberColumn:
    """A column as numbers, NaN where missing, with a note if it did not hold numbers in the first place."""

    column: Column
    numbers: Floats  # (N,)
    note: str = ""
    warns: bool = False  # whether the note is a warning

    @property
    def name(self) -> str:
        """The name of the column."""
        return self.column.name


Read = NumberColumn | Problem


@dataclass(frozen=True)
class CellOptions:
    """The form of the cells of a column, and what the caller declares it to hold.

    decimal, na  The decimal sign that is more likely, and the values that count as missing.
    categories   Whether levels without an order can be read.
    kind, order  The kind of the column, one of KINDS, and the order of its levels; None to detect it.
    """

    decimal: str = "."
    na: tuple[str, ...] = ()
    categories: bool = False
    kind: str | None = None
    order: tuple[str, ...] | None = None


def column_as_numbers(column: pd.Series, name: str, where: Where, options: CellOptions | None = None) -> Read:
    """Read a column as numbers, or say why it cannot be used."""
    cells = _Cells(column, name, where, options or CellOptions())
    if cells.missing.all():
        return cells.problem("empty")
    declared = cells.options.order is not None or cells.options.kind not in (None, "number")
    read = cells.declared() if declared else cells.by_type()
    if isinstance(read, Problem):
        return read
    if np.isnan(read.numbers).all():
        return cells.problem("empty")
    infinite = np.isinf(read.numbers)
    if infinite.any():
        count, first = int(infinite.sum()), int(infinite.argmax())
        return cells.problem("infinite", f"{counted(count, 'value')}, the first on {where(first)}")
    if cells.options.kind == "number":
        return replace(read, column=Column(name))
    return _of_two_values(read, column)


@dataclass(frozen=True, eq=False)
class _Cells:
    """The cells of a column, and the ways to read them."""

    column: pd.Series
    name: str
    where: Where
    options: CellOptions

    @cached_property
    def missing(self) -> Bools:
        """Mask of rows without a cell in the source, without the texts that count as missing.  (N,)"""
        try:
            return np.asarray(self.column.isna().to_numpy(dtype=bool))
        except ArithmeticError:  # a signaling NaN may not be compared
            return np.array([isinstance(cell, Decimal) and cell.is_nan() for cell in self.column], dtype=bool)

    @cached_property
    def _words(self) -> tuple[NDArray[Any], Bools]:
        return _words(self.column.astype(object), self.missing, self.options.na)

    @property
    def text(self) -> NDArray[Any]:
        """The cells as text, empty where missing.  (N,)"""
        return self._words[0]

    @property
    def gaps(self) -> Bools:
        """Mask of cells that are missing or count as missing.  (N,)"""
        return self._words[1]

    @cached_property
    def present(self) -> NDArray[Any]:
        """The texts that are not missing."""
        return np.asarray(self.text[~self.gaps])

    def problem(self, kind: str, detail: str = "", *remedies: Remedy) -> Problem:
        return Problem(kind, self.name, detail, remedies)

    def by_type(self) -> Read:
        """Read the column by the type that pandas gives it."""
        import pandas as pd
        from pandas.api import types

        column, kind = self.column, self.options.kind
        if isinstance(column.dtype, pd.CategoricalDtype):
            if column.cat.ordered and kind is None:
                return self._in_own_order()
            present = column[~self.missing].astype(object)
            if _unusable(present) is None and kind is None and not all(map(_is_truth, present)):
                return self._detected_levels()
            column = column.astype(object)
        if types.is_bool_dtype(column):
            return _truth(self.name, column.to_numpy(dtype=float, na_value=np.nan))
        if column.dtype.kind in "mM" or isinstance(column.dtype, pd.PeriodDtype):
            return self.problem("date")
        if types.is_complex_dtype(column):
            return self.problem("complex")
        if not types.is_numeric_dtype(column):
            return self._objects(column.tolist())
        values = column.to_numpy(dtype=float, na_value=np.nan)
        marked = [float(marker) for marker in self.options.na if is_number(marker)]
        missing = self.missing | np.isin(values, marked)
        return NumberColumn(Column(self.name), np.where(missing, np.nan, values))

    def _objects(self, cells: list[Any]) -> Read:
        """The numbers in a column of text or of mixed objects."""
        present = [cell for cell, gap in zip(cells, self.missing.tolist(), strict=True) if not gap]
        if (unusable := _unusable(present)) is not None:
            kind, odd = unusable
            return self.problem(kind, "" if kind != "nested" else f"such as {shown(odd, EXAMPLE_LENGTH)}")
        if all(map(_is_truth, present)):
            truth = np.full(len(cells), np.nan)
            truth[~self.missing] = np.array(present, dtype=float)
            return _truth(self.name, truth)
        if self.gaps.all():
            return self.problem("empty")
        if any(isinstance(cell, str | bytes) for cell in present):
            return self._texts()
        present = [cell for cell, gap in zip(cells, self.gaps.tolist(), strict=True) if not gap]
        odd = next((cell for cell in present if not isinstance(cell, numbers.Real | Decimal | np.bool_)), None)
        if odd is not None:
            return self.problem("nested", f"such as {shown(odd, EXAMPLE_LENGTH)}")
        values = np.full(len(cells), np.nan)
        values[~self.gaps] = [_as_float(cell) for cell in present]
        return NumberColumn(Column(self.name), values)

    def _texts(self) -> Read:
        """The numbers that are written in a column of text, or yes and no."""
        present, name = self.present, self.name
        numerals = read_numerals(present, self.options.decimal)
        values = np.full(len(self.text), np.nan)
        values[~self.gaps] = numerals.values
        if numerals.recognized.all():
            if numerals.units:
                return self.problem("units", numerals.units)
            note = f"Column {name!r} contains numbers stored as text; they are used as numbers."
            if numerals.manner:
                first = int(np.flatnonzero(numerals.decorated)[0])
                note = (
                    f"Column {name!r} contains numbers written with {numerals.manner}: {present[first]!r} is read as "
                    f"{numerals.values[first]:.15g}."
                )
            return NumberColumn(Column(name), values, note)
        words = np.array([word.lower() for word in present], dtype=object)
        if len(set(words)) == 2 and set(words) <= YES_AND_NO.keys():
            values[~self.gaps] = [YES_AND_NO[word] for word in words]
            no, yes = sorted(set(words), key=YES_AND_NO.__getitem__)
            if YES_AND_NO[no] != YES_AND_NO[yes]:
                no, yes = (_usual_text(present[words == word]) for word in (no, yes))
                return _truth(name, values, (no, yes))
        return self._mixed_texts(numerals)

    def _mixed_texts(self, numerals: Numerals) -> Read:
        """A column of text of which not all cells are numbers."""
        odd = np.flatnonzero(~self.gaps)[~numerals.recognized]
        example, count = shown(str(self.text[odd[0]]), EXAMPLE_LENGTH), len(odd)
        detail = f"{counted(count, 'value')} such as {example} on {self.where(int(odd[0]))}"
        if numerals.both_signs:
            others = shown(str(self.present[numerals.recognized][0]), EXAMPLE_LENGTH)
            return self.problem("decimals", f"{detail}, others such as {others}")
        if numerals.units:
            levels = self._detected_levels() if self.options.kind is None else None
            if isinstance(levels, NumberColumn) and numerals.all_have_units:
                note = (
                    f"{levels.note} These look like {numerals.units}: write them in the same unit to have them read as "
                    "numbers."
                )
                return replace(levels, note=note, warns=True)
            return self.problem("units", numerals.units, *self._as_category())
        if count < 0.5 * len(self.present):
            markers = list(dict.fromkeys(str(each) for each in self.text[odd]))
            remedies = [Remedy("na", setting=marker) for marker in markers if len(markers) == 1]
            return self.problem("mixed", detail, *remedies, *self._as_category())
        if self.options.kind == "number":
            different = set(self.present)
            if are_dates(list(different)):
                return self.problem("date", f"such as {example}")
            return self.problem("words", f"such as {example}", *self._as_category(), self._name_the_order(different))
        return self._detected_levels()

    def _as_category(self) -> list[Remedy]:
        """Advice to read the column as a category, if it can be read as one."""
        readable = self.options.categories and isinstance(self._category(), NumberColumn)
        return [Remedy("kind", (self.name,), "category")] if readable else []

    # Levels

    def declared(self) -> Read:
        """The levels of a column that is declared binary, ordered or a category, or whose order is given."""
        import pandas as pd

        if self.gaps.all():
            return self.problem("empty")
        different, kind = set(self.present), self.options.kind
        if self.options.order is not None:
            return self._in_given_order(self.options.order)
        if kind == "category":
            if len(different) > 2 and not self.options.categories:
                return self.problem("category", f"{len(different)} levels")
            return self._category()
        if isinstance(self.column.dtype, pd.CategoricalDtype) and self.column.cat.ordered:
            ranks = self._in_own_order()
            if kind == "ordered" or isinstance(ranks, Problem):
                return ranks
            if len(ranks.column.levels) == 2:
                note = self._note_on_two(*ranks.column.levels)
                return replace(ranks, column=replace(ranks.column, kind="binary"), note=note)
        if kind == "ordered":
            if not all(map(is_number, different)):
                return self.problem("unordered", _how_many(different), self._name_the_order(different))
            # The same number may be written in several ways.
            levels = {float(word): word for word in sorted(different, key=lambda word: (-len(word), word))}
            return self._in_given_order([levels[number] for number in sorted(levels)])
        detected = _Cells(self.column, self.name, self.where, replace(self.options, kind=None)).by_type()
        if isinstance(detected, NumberColumn):
            detected = _of_two_values(detected, self.column)
            if detected.column.kind == "binary":
                return detected
        return self._two_levels() if len(different) == 2 else self.problem("binary", _how_many(different))

    def _in_own_order(self) -> Read:
        """The ranks of ordered categories, of those that occur."""
        there = set(self.present)
        if not there:
            return self.problem("empty")
        words = dict.fromkeys(map(cell_text, self.column.cat.categories))
        return self._ordered([word for word in words if word in there])

    def _in_given_order(self, order: Sequence[str]) -> Read:
        """The ranks of levels that were named in their order, of those that occur."""
        named = {word: same_level(word, order) for word in dict.fromkeys(self.present)}
        if strange := [word for word, level in named.items() if level is None]:
            near = closest(strange[0], order)
            hint = f", did you mean {near!r}?" if near else ""
            return self.problem("order", f"{shown(strange[0], EXAMPLE_LENGTH)}{hint}")
        return self._ordered([level for level in order if level in named.values()], named)

    def _ordered(self, levels: Sequence[str], named: Mapping[str, str | None] | None = None) -> Read:
        """A column with levels in their order, which cells may be `named` by other words, or why there are too many."""
        if len(levels) > MAX_LEVELS:
            remedies = [Remedy("kind", (self.name,), "number")] if all(map(is_number, levels)) else []
            return self.problem("steps", counted(len(levels), "level"), *remedies)
        quoted = [repr(level) for level in levels]
        order = " < ".join(quoted if len(quoted) <= 6 else [*quoted[:3], "...", quoted[-1]])
        note = f"Column {self.name!r} is ordered ({order}) and is coded as 0, 1, 2, ..., with equal steps."
        ranks = {level: rank for rank, level in enumerate(levels)}
        codes = self._codes(ranks if named is None else {word: ranks[str(level)] for word, level in named.items()})
        return NumberColumn(Column(self.name, "ordered", tuple(levels)), codes, note)

    def _detected_levels(self) -> Read:
        """The levels of undeclared text: two of them are a yes or no, more a category."""
        present = self.present
        if not len(present):
            return self.problem("empty")
        counts, example = Counter(present.tolist()), shown(str(present[0]), EXAMPLE_LENGTH)
        if are_dates(list(counts)):
            date = next(text for text in counts if are_dates([text]))
            return self.problem("date", f"such as {shown(date, EXAMPLE_LENGTH)}")
        if not self.options.categories and len(counts) == 2:
            # A network that reads numbers only may answer otherwise if the other level counts as 1.
            one, other = (shown(level, EXAMPLE_LENGTH) for level in counts)
            return self.problem("text", f"{one} or {other}: code it as 0 and 1 to use it")
        if len(counts) == 2 < len(present):
            return self._two_levels()
        if not self.options.categories:
            return self.problem("text", f"{counted(len(counts), 'different value')}, such as {example}")
        once = [word for word, count in counts.items() if count == 1]
        if MIN_NAMES <= len(present) < 2 * len(once) and len(counts) < len(present):
            example = shown(once[0], EXAMPLE_LENGTH)
            return self.problem("names", f"{len(once)} of {len(present)} values occur only once, such as {example}")
        return self._category()

    def _category(self) -> Read:
        """Levels without an order, as codes, or why there are too many."""
        levels = _sorted_levels(set(self.present))
        example = shown(str(self.present[0]), EXAMPLE_LENGTH)
        if len(levels) == len(self.present) > 1:
            return self.problem("identifier", f"such as {example}")
        if len(levels) > MAX_LEVELS:
            return self.problem("levels", f"{len(levels)}, such as {example}")
        some = listed([cut_short(level, EXAMPLE_LENGTH) for level in levels])
        note = f"Column {self.name!r} is read as a category with {counted(len(levels), 'level')}: {some}."
        codes = self._codes({level: code for code, level in enumerate(levels)})
        return NumberColumn(Column(self.name, "category", tuple(levels)), codes, note)

    def _two_levels(self) -> NumberColumn:
        """Read two texts as a yes or no: the one later in the alphabet counts as 1."""
        low, high = _sorted_levels(set(self.present))
        column = Column(self.name, "binary", (low, high))
        return NumberColumn(column, self._codes({low: 0, high: 1}), self._note_on_two(low, high))

    def _note_on_two(self, low: str, high: str) -> str:
        one, zero = cut_short(high, EXAMPLE_LENGTH), cut_short(low, EXAMPLE_LENGTH)
        return f"Column {self.name!r} has two levels: {one!r} counts as 1, {zero!r} as 0."

    def _codes(self, code_of: dict[str, int]) -> Floats:
        cells = zip(self.text, self.gaps.tolist(), strict=True)
        return np.array([np.nan if gap else float(code_of[word]) for word, gap in cells])

    def _name_the_order(self, levels: set[str]) -> Remedy:
        """Advise to name the levels in their order, and list them if they are few."""
        return Remedy("order", (self.name, *(_sorted_levels(levels) if len(levels) <= MAX_NAMED else ())))


def _of_two_values(read: NumberColumn, cells: pd.Series) -> NumberColumn:
    """Read two different numbers as a yes or no, whatever their unit: the higher one counts as 1."""
    numbers, name = read.numbers, read.name
    if read.column.kind != "number" or len(np.unique(numbers[:100][~np.isnan(numbers[:100])])) > 2:
        return read
    low, high = np.nanmin(numbers), np.nanmax(numbers)
    lower, higher = numbers == low, numbers == high
    if _differ_by_rounding(low, high) or not np.all(lower | higher | np.isnan(numbers)):
        return read
    if low == 0 and high == 1:
        return replace(read, column=Column(name, "binary", ("0", "1")))
    levels = _usual_text(cells[lower]), _usual_text(cells[higher])
    note = f"Column {name!r} has two values: {levels[1]} counts as 1, {levels[0]} as 0."
    return NumberColumn(Column(name, "binary", levels), np.where(np.isnan(numbers), np.nan, higher), note)


def _usual_text(cells: pd.Series | NDArray[Any]) -> str:
    """The text of cells of equal meaning, as most of them are written."""
    counts = Counter(cells.tolist())
    most = max(counts.values())
    return min(cell_text(cell) for cell, count in counts.items() if count == most)


def _differ_by_rounding(low: Any, high: Any) -> Any:
    """Whether numbers, the first not above the second, are the same up to rounding."""
    with np.errstate(over="ignore"):
        return high - low <= ROUNDING * np.maximum(np.abs(low), np.abs(high))


# Cells and levels as text


_UNUSABLE_CELLS: dict[str, tuple[type, ...]] = {
    "date": (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64),
    "complex": (complex, np.complexfloating),
    "nested": (dict, list, tuple, set, frozenset, np.ndarray),
}


def _unusable(cells: Iterable[Any]) -> tuple[str, Any] | None:
    """The first cell that is neither a number nor a level, and the kind of problem that it is; None without one."""
    different = list({type(cell): cell for cell in cells}.values())
    found = ((kind, cell) for kind, types in _UNUSABLE_CELLS.items() for cell in different if isinstance(cell, types))
    return next(found, None)


def _is_truth(cell: Any) -> bool:
    return isinstance(cell, bool | np.bool_)


def _as_float(number: Any) -> float:
    try:
        return float(number)
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")


def _words(column: pd.Series, missing: Bools, na: Sequence[str]) -> tuple[NDArray[Any], Bools]:
    """The cells as text, empty where missing; and where they are missing, counting marked ones.  (N,) each"""
    cells = zip(column.tolist(), missing.tolist(), strict=True)
    text = np.array(["" if gap else cell_text(cell) for cell, gap in cells], dtype=object)
    usual = [word in USUAL_MARKERS or word.lower() == "nan" for word in text]
    missing = missing | (text == "") | np.array(usual, dtype=bool)
    if na:
        markers = {word for word in set(text) if same_level(word, na) is not None}
        missing |= np.isin(text, list(markers))
    return text, missing


def same_level(word: str, levels: Sequence[str]) -> str | None:
    """The level that is written like a word, or is the same number; None if there is none."""
    if word in levels:
        return word
    if not is_number(word):
        return None
    return next((level for level in levels if is_number(level) and float(level) == float(word)), None)


def is_number(text: str) -> bool:
    """Whether a level is written as a number."""
    return re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text) is not None


def _sorted_levels(words: set[str]) -> list[str]:
    """By value where all of them are numbers, else by their letters."""
    return sorted(words, key=float) if all(map(is_number, words)) else sorted(words)


def distinct_levels(column: pd.Series, most: int = MAX_LEVELS) -> tuple[str, ...]:
    """The different values of a column as text, sorted as its levels would be; none if there are more than `most`."""
    import pandas as pd

    try:
        different = pd.Series(column.dropna().unique())
    except TypeError:  # lists, which are not equal to anything
        return ()
    if not len(different) or len(different) > 2 * most:  # which blanks around them cannot explain
        return ()
    text, missing = _words(different, np.zeros(len(different), dtype=bool), ())
    levels = _sorted_levels(set(text[~missing]))
    return tuple(levels) if len(levels) <= most else ()


def _shown_level(level: str) -> str:
    """A level as a sentence shows it: text in quotes."""
    return level if is_number(level) or level in TRUTH else repr(level)


def _how_many(levels: set[str]) -> str:
    if len(levels) == 1:
        return f"every value is {_shown_level(*levels)}"
    return f"{counted(len(levels), 'different value')}, such as {shown(min(levels), EXAMPLE_LENGTH)}"


def _truth(name: str, numbers: Floats, levels: tuple[str, str] = TRUTH) -> NumberColumn:
    no, yes = map(_shown_level, levels)
    what = "true or false" if levels[1].lower() in ("true", "t") else "yes or no"
    note = f"Column {name!r} is {what}: {yes} counts as 1, {no} as 0."
    return NumberColumn(Column(name, "binary", levels), numbers, note)


# Problems


def constant_columns(values: Floats, columns: Sequence[Column]) -> list[Problem]:
    """The columns with only one value, up to rounding, ignoring missing cells."""
    # Of the extremes alone, so that there is no copy of a long table.
    lowest, highest = (np.array([extreme(column) for column in values.T]) for extreme in (np.nanmin, np.nanmax))
    (low, high), _ = in_safe_units(np.stack([lowest, highest]))
    problems = []
    for index in np.flatnonzero(_differ_by_rounding(low, high)).tolist():
        column = columns[index]
        value = _shown_level(column.levels[int(lowest[index])]) if column.levels else f"{lowest[index]:g}"
        problems.append(Problem("constant", column.name, f"every value is {value}", value=value))
    return problems


def problem_sentences(problems: Sequence[Problem], model: str) -> list[str]:
    """One sentence per kind of problem, naming its columns and, if it is the cause, the model."""
    sentences = []
    for kind, reason in PROBLEMS.items():
        of_kind = [problem for problem in problems if problem.kind == kind]
        if of_kind:
            named = [f"{p.column!r} ({p.detail})" if p.detail else repr(p.column) for p in of_kind]
            subject, words = ("Column", ONE) if len(of_kind) == 1 else ("Columns", SEVERAL)
            sentences.append(f"{subject} {first_few(named, 8)} {reason.format(model=model, **words)}.")
    return sentences
