"""read_like(): further tables, read as the first one was: the same kinds of columns, and the same codes of levels."""

# N rows, P variables

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from causal_arrow.errors import TableError
from causal_arrow.tables import YES_AND_NO, as_frame, same_level
from causal_arrow.tables.options import ReadOptions, cell_text
from causal_arrow.tables.reading import read_table
from causal_arrow.tables.table import Column, Table
from causal_arrow.text import closest, listed, shown

Floats = NDArray[np.float64]


def read_like(
    first: Table, source: Any, missing: str, labels: Mapping[str, Any], needs_environments: bool = True
) -> Table:
    """Read a source with the columns of the first table; a column may have only one value.

    `labels` are the `interventions` and `environments` given with the first table. Labels of its rows do not apply to
    other rows: a column of the same name has to hold them. If environments are not needed, they may be missing.
    """
    if isinstance(source, Table) and source.columns == first.columns:
        return source
    if not isinstance(source, Table):
        source = as_frame(source)
    if any(not isinstance(given, str) for given in labels.values()) and _is_same(first, source, missing, labels):
        return first
    experiments = labels.get("interventions")
    usable = {"interventions": experiments} if isinstance(experiments, str) and experiments in source.names else {}
    if first.environment is None or first.environment in source.names:
        return _read(first, source, missing, usable)
    if needs_environments:
        raise TableError(
            f"The table that was fitted has environments, and this one does not: give it a column "
            f"{first.environment!r} that says where or when each of its observations was made."
        )
    others = tuple(column for column in first.columns if column.name != first.environment)
    read = _read(replace(first, columns=others, environment=None), source, missing, usable)
    index = first.names.index(first.environment)
    return replace(
        read,
        values=np.insert(read.values, index, np.nan, axis=1),
        columns=(*read.columns[:index], first.columns[index], *read.columns[index:]),
        intervened=None if read.intervened is None else np.insert(read.intervened, index, False, axis=1),
        environment=first.environment,
    )


def _is_same(first: Table, source: Any, missing: str, labels: Mapping[str, Any]) -> bool:
    """Whether a source is the first table itself, with the labels that were given with it."""
    try:
        again = _read(first, source, missing, labels)
    except TableError:
        return False
    return again.columns == first.columns and np.array_equal(again.values, first.values, equal_nan=True)


def _read(first: Table, source: Any, missing: str, labels: Mapping[str, Any]) -> Table:
    options = ReadOptions(
        columns=first.names,
        missing=missing,
        kinds={column.name: column.kind for column in first.columns if column.kind in ("number", "category")},
        ordered={column.name: column.levels for column in first.columns if column.kind == "ordered"},
        **labels,
    )
    try:
        read = read_table(source, options, strict=False)
        problems = [each for each in read.findings if each.severity == "problem" and each.kind != "constant"]
        if problems:
            remedies = [remedy for each in problems for remedy in each.remedies]
            raise TableError(" ".join(each.message for each in problems), remedies)
    except TableError as error:
        # Columns cannot be left out here, nor read as something else.
        raise TableError(error.message, [each for each in error.remedies if each.action == "missing"]) from None
    return replace(in_codes_of(first, read), findings=(), environment=first.environment)


def in_codes_of(first: Table, further: Table) -> Table:
    """The further table, with its levels in the codes that the first one has for them; new levels come after those."""
    values, columns = np.array(further.values), []
    for index, (column, own) in enumerate(zip(first.columns, further.columns, strict=True)):
        values[:, index], recoded = _recoded(column, own, values[:, index])
        columns.append(recoded)
    return replace(further, values=values, columns=tuple(columns))


def _recoded(column: Column, own: Column, cells: Floats) -> tuple[Floats, Column]:
    """The cells (N,) of a column in the codes of the first one; new levels of a category come after those it had."""
    if not column.levels:
        return cells, column
    observed = ~np.isnan(cells)
    found, codes = np.unique(cells[observed], return_inverse=True)
    levels = [own.levels[int(code)] if own.levels else cell_text(float(code)) for code in found]
    matched = [_matching(level, column.levels) for level in levels]
    known = list(column.levels)
    if unknown := [level for level, match in zip(levels, matched, strict=True) if match is None]:
        if column.kind != "category":
            near = closest(unknown[0], column.levels)
            hint = f"expected one of {listed(column.levels)}." if near is None else f"did you mean {near!r}?"
            raise TableError(
                f"{column.name!r} has the value {shown(unknown[0])}, which it does not have in the table that was "
                f"fitted: {hint}"
            )
        known += unknown
    new_codes = [known.index(match or level) for level, match in zip(levels, matched, strict=True)]
    recoded = cells.copy()
    recoded[observed] = np.array(new_codes, dtype=float)[codes]
    return recoded, replace(column, levels=tuple(known))


def _matching(word: str, levels: Sequence[str]) -> str | None:
    """The level that a word stands for: written alike, the same number, or the same yes or no."""
    found = same_level(word, levels)
    if found is None and (truth := YES_AND_NO.get(word.lower())) is not None:
        found = next((level for level in levels if YES_AND_NO.get(level.lower()) == truth), None)
    return found
