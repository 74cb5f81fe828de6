"""What a column of a data frame holds: numbers, something that stands for numbers, or a reason not to use it."""

from __future__ import annotations

import datetime
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

# N observations, P variables

Floats = NDArray[np.float64]
Where = Callable[[int], str]  # the place of an observation, in words

# Numbers beyond this cannot be squared and summed.
LARGEST_NUMBER = 1e100
# Words for true and false, in lower case.
YES_AND_NO = {"yes": 1.0, "no": 0.0, "true": 1.0, "false": 0.0, "y": 1.0, "n": 0.0, "t": 1.0, "f": 0.0}
DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([ T].*)?|\d{1,2}:\d{2}(:\d{2}.*)?")

# Why a column cannot be used: said of one column, of several, and the reason or the remedy.
PROBLEMS = {
    "text": ("is text", "are text", "categories have no order that numbers could stand for"),
    "date": ("holds dates or times", "hold dates or times", "turn them into a number such as days if they matter"),
    "mixed": ("mixes numbers with text", "mix numbers with text", "correct those cells or leave them empty"),
    "empty": ("has no values at all", "have no values at all", "nothing can be learned from nothing"),
    "constant": ("is constant", "are constant", "a constant has no causes we can detect"),
    "infinite": ("has infinite values", "have infinite values", "correct those cells or leave them empty"),
    "complex": ("holds complex numbers", "hold complex numbers", "split them into real columns"),
}


@dataclass(frozen=True)
class Problem:
    """Why a column cannot be used: one of PROBLEMS, with what was seen."""

    kind: str
    column: str
    detail: str = ""


@dataclass(frozen=True, eq=False)
class NumberColumn:
    """A column as numbers, NaN where missing, with a note if it did not hold numbers in the first place."""

    name: str
    numbers: Floats  # (N,)
    note: str = ""


def column_as_numbers(column: pd.Series, name: str, where: Where) -> NumberColumn | Problem:
    """The column as numbers, or why it cannot be."""
    import pandas as pd
    from pandas.api import types

    missing = column.isna().to_numpy()
    if missing.all():
        return Problem("empty", name)
    if isinstance(column.dtype, pd.CategoricalDtype):
        if column.cat.ordered:
            levels = [repr(level) for level in column.cat.categories]
            shown = " < ".join(levels if len(levels) <= 6 else [*levels[:3], "...", levels[-1]])
            note = f"Column {name!r} is ordered ({shown}) and is used as 0, 1, 2, ..., as if its steps were equal."
            return NumberColumn(name, np.where(missing, np.nan, column.cat.codes.to_numpy(dtype=float)), note)
        column = column.astype(object)
    if types.is_bool_dtype(column):
        return NumberColumn(name, column.to_numpy(dtype=float, na_value=np.nan), _truth_note(name))
    if types.is_datetime64_any_dtype(column) or isinstance(column.dtype, pd.PeriodDtype):
        return Problem("date", name)
    if types.is_timedelta64_dtype(column):
        return Problem("date", name)
    if types.is_complex_dtype(column):
        return Problem("complex", name)
    if types.is_numeric_dtype(column):
        return _if_finite(NumberColumn(name, column.to_numpy(dtype=float, na_value=np.nan)), where)
    return _objects_as_numbers(column.astype(object), missing, name, where)


def _objects_as_numbers(
    column: pd.Series, missing: NDArray[np.bool_], name: str, where: Where
) -> NumberColumn | Problem:
    """The numbers in a column of text or of mixed objects."""
    import pandas as pd

    present = column[~missing]
    if all(isinstance(value, bool | np.bool_) for value in present):
        numbers = np.full(len(column), np.nan)
        numbers[~missing] = present.astype(float)
        return NumberColumn(name, numbers, _truth_note(name))
    if any(isinstance(value, datetime.date | datetime.time | datetime.timedelta) for value in present):
        return Problem("date", name)
    if any(isinstance(value, complex) for value in present):
        return Problem("complex", name)

    text = column.map(str).str.strip()
    missing = missing | (text == "").to_numpy()
    if missing.all():
        return Problem("empty", name)
    numbers = pd.to_numeric(text.where(~missing), errors="coerce").to_numpy(dtype=float)
    odd = np.isnan(numbers) & ~missing & (text.str.lower() != "nan").to_numpy()
    if not odd.any():
        is_text = any(isinstance(value, str) for value in present)
        note = f"Column {name!r} holds numbers written as text, which are used as numbers." if is_text else ""
        return _if_finite(NumberColumn(name, numbers, note), where)
    words = text[~missing].str.lower()
    if words.isin(list(YES_AND_NO)).all() and words.nunique() == 2:
        return NumberColumn(name, text.str.lower().map(YES_AND_NO).to_numpy(dtype=float), _truth_note(name))

    first = int(np.argmax(odd))
    example = _shortened(text.iloc[first])
    count = int(odd.sum())
    if count < 0.5 * (~missing).sum():
        return Problem("mixed", name, f"{count} value{'s' * (count != 1)} such as {example!r} on {where(first)}")
    distinct = text[~missing].unique()
    if all(DATE.fullmatch(value) for value in distinct[:100]):
        return Problem("date", name, f"such as {example!r}")
    if len(distinct) == 2:
        return Problem("text", name, f"{distinct[0]!r} or {distinct[1]!r}: write 0 and 1 to use it")
    return Problem("text", name, f"{len(distinct)} different values, such as {example!r}")


def _if_finite(column: NumberColumn, where: Where) -> NumberColumn | Problem:
    """The column, unless it has infinite numbers or numbers so large that their squares are."""
    infinite = np.abs(column.numbers) > LARGEST_NUMBER
    if not infinite.any():
        return column
    count, first = int(infinite.sum()), int(infinite.argmax())
    return Problem("infinite", column.name, f"{count} value{'s' * (count != 1)}, the first on {where(first)}")


def constant_columns(values: Floats, names: Sequence[str]) -> list[Problem]:
    """The columns with one value only, up to rounding; missing values aside."""
    low, high = np.nanmin(values, axis=0), np.nanmax(values, axis=0)
    constant = high - low <= 1e-13 * np.maximum(np.abs(low), np.abs(high))
    return [Problem("constant", names[k], f"every value is {low[k]:g}") for k in np.flatnonzero(constant).tolist()]


def describe(problems: Sequence[Problem]) -> list[str]:
    """One sentence for each kind of problem, naming its columns."""
    sentences = []
    for kind, (of_one, of_several, reason) in PROBLEMS.items():
        of_kind = [problem for problem in problems if problem.kind == kind]
        if of_kind:
            shown = [f"{p.column!r} ({p.detail})" if p.detail else repr(p.column) for p in of_kind[:8]]
            rest = f" and {len(of_kind) - 8} more" if len(of_kind) > 8 else ""
            subject, verb = ("Column", of_one) if len(of_kind) == 1 else ("Columns", of_several)
            sentences.append(f"{subject} {', '.join(shown)}{rest} {verb}: {reason}.")
    return sentences


def how_to_drop(columns: Sequence[str]) -> str:
    """What to type to leave these columns out."""
    if len(columns) > 12:
        return "name the columns to use with --columns (columns=[...] in Python)"
    options = " ".join(f"--drop {shlex.quote(column)}" for column in columns)
    return f"{options} (drop={list(columns)!r} in Python)"


def _truth_note(name: str) -> str:
    return f"Column {name!r} is true or false and is used as 1 or 0."


def _shortened(text: str) -> str:
    return text if len(text) <= 30 else text[:27] + "..."
