"""A table of numbers from a file, a data frame or an array, or one clear error that says what to change.

The network reads numbers. True and false, yes and no, and ordered categories become numbers with a note; text, dates
and constants are refused, all of them in one message. Nothing is dropped or filled in unless the caller says so, and
the caller's own data are never changed.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from causal_arrow.errors import ConfigurationError, TableError
from causal_arrow.tables.columns import (
    NumberColumn,
    Problem,
    column_as_numbers,
    constant_columns,
    describe,
    how_to_drop,
)
from causal_arrow.tables.files import FileOptions, ReadFile, check_duplicates, read_file
from causal_arrow.tables.table import Column, Finding, Table

# N observations, P variables

Floats = NDArray[np.float64]

FEWEST_OBSERVATIONS = 20
MISSING_CHOICES = ("error", "drop", "impute")
# Imputation: rounds of predicting the gaps, and the ridge that keeps the predictions tame, in units of the variances.
IMPUTATION_ROUNDS = 10
IMPUTATION_RIDGE = 0.01


def read_table(
    source: Any,
    *,
    columns: Iterable[str] | None = None,
    drop: Iterable[str] | None = None,
    missing: str = "error",
    delimiter: str | None = None,
    decimal: str | None = None,
    sheet: str | int | None = None,
    header: bool = True,
    strict: bool = True,
) -> Table:
    """The table in `source`, ready for the network.

    source    A path (.csv, .tsv, .txt, also compressed as .gz; .parquet, .feather, .xlsx), a pandas or polars data
              frame, or anything two-dimensional that numpy understands. Columns without names are called x1, x2, ...
    columns   The columns to use, in this order; all of them by default.
    drop      Columns to leave out.
    missing   What to do about missing values. "error" says how many there are and where. "drop" leaves out incomplete
              observations: fair if what is missing does not depend on the values. "impute" fills the gaps with linear
              predictions from the other variables, which makes relations look tidier than they are.
    delimiter, decimal, sheet, header
              How to read a file, where that should not be found out. header=False: the file has no names of columns.
    strict    With False, problems of columns become findings of the table instead of an error. Columns that are not
              finite numbers are left out, and missing values stay as NaN: for inspection, not for the network.
    """
    if missing not in MISSING_CHOICES:
        raise ConfigurationError(f"Expected missing to be one of {', '.join(MISSING_CHOICES)}, got {missing!r}.")
    read = _as_frame(source, FileOptions(delimiter, decimal, sheet, header))
    all_names = [str(name).strip() for name in read.frame.columns]
    check_duplicates(all_names, "The table")
    chosen = _choose(all_names, columns, drop)
    _check_size(len(read.frame), [all_names[place] for place in chosen])

    def where(row: int) -> str:
        return f"observation {row + 1}" if read.first_line is None else f"line {row + read.first_line}"

    candidates = [column_as_numbers(read.frame.iloc[:, place], all_names[place], where) for place in chosen]
    usable = [column for column in candidates if isinstance(column, NumberColumn)]
    problems = [column for column in candidates if isinstance(column, Problem)]
    names = tuple(column.name for column in usable)
    values = np.empty((len(read.frame), len(usable)))
    for place, column in enumerate(usable):
        values[:, place] = column.numbers
    findings = [
        *(Finding("reading", "note", (), remark) for remark in read.remarks),
        *(Finding("coding", "note", (column.name,), column.note) for column in usable if column.note),
        *_index_columns(values, names),
    ]

    complaints = []
    if strict and np.isnan(values).any():
        if missing == "error":
            complaints = [_missing_sentence(values, names)]
        else:
            values, finding = {"drop": _drop_incomplete, "impute": _impute}[missing](values, names)
            findings.append(finding)
    problems += constant_columns(values, names)
    if problems and strict:
        culprits = [problem.column for problem in problems]
        complaints = [*describe(problems), f"To go on without: {how_to_drop(culprits)}.", *complaints]
    if complaints:
        raise TableError(" ".join(complaints))
    for problem in problems:
        advice = f"To go on without: {how_to_drop([problem.column])}."
        findings.append(Finding(problem.kind, "problem", (problem.column,), f"{describe([problem])[0]} {advice}"))
    values.flags.writeable = False
    return Table(values, tuple(Column(name) for name in names), tuple(findings))


# Where a table comes from


def _as_frame(source: Any, options: FileOptions) -> ReadFile:
    """Any kind of source as a pandas frame, which may share memory with the source and is only read."""
    import pandas as pd

    if isinstance(source, str | os.PathLike):
        read = read_file(Path(source).expanduser(), options)
        return read if options.header else ReadFile(_numbered(read.frame), read.remarks, read.first_line)
    if isinstance(source, Table):
        return ReadFile(pd.DataFrame(source.values, columns=list(source.names)))
    if isinstance(source, pd.DataFrame):
        return ReadFile(source)
    if type(source).__module__.startswith("polars.") and type(source).__name__ in ("DataFrame", "LazyFrame"):
        frame = source.collect() if hasattr(source, "collect") else source
        series = [frame.get_column(name) for name in frame.columns]
        # Lists rather than arrows: polars needs no other package for them.
        plain = {one.name: one.to_numpy() if one.dtype.is_numeric() else one.to_list() for one in series}
        return ReadFile(pd.DataFrame(plain))
    if hasattr(source, "to_pandas"):
        return ReadFile(source.to_pandas())
    if isinstance(source, dict):
        return ReadFile(pd.DataFrame(source))
    # Lists as objects: in an array of one type, numbers beside text would turn into text.
    try:
        array = np.array(source, dtype=object) if isinstance(source, list | tuple) else np.asarray(source)
    except ValueError as error:
        raise TableError("Expected lists of the same length, one for each observation.") from error
    if array.dtype.names:  # a structured array names its columns
        return ReadFile(pd.DataFrame(array))
    if array.ndim == 1 and array.dtype.kind != "O":
        array = array[:, None]
    if array.ndim != 2:
        kind = type(source).__name__
        raise TableError(
            f"Expected a path, a data frame or a two-dimensional array, got {kind} of shape {array.shape}."
        )
    return ReadFile(_numbered(pd.DataFrame(array).infer_objects()))


def _numbered(frame: Any) -> Any:
    return frame.set_axis([f"x{place + 1}" for place in range(frame.shape[1])], axis=1)


def _choose(names: list[str], columns: Iterable[str] | None, drop: Iterable[str] | None) -> list[int]:
    """The places of the columns to use, in the order asked for."""
    places = {name: place for place, name in enumerate(names)}
    keep = names if columns is None else _known(columns, names, "--columns")
    leave = set() if drop is None else set(_known(drop, names, "--drop"))
    return [places[name] for name in keep if name not in leave]


def _known(asked: Iterable[str], names: list[str], option: str) -> list[str]:
    """The names asked for, each once, if the table has them."""
    wanted = dict.fromkeys(str(name).strip() for name in ([asked] if isinstance(asked, str) else asked))
    for name in wanted.keys() - set(names):
        by_lower = {known.lower(): known for known in names}
        close = difflib.get_close_matches(name.lower(), by_lower, n=1)
        shown = ", ".join(map(repr, names[:10])) + (", ..." if len(names) > 10 else "")
        hint = f"did you mean {by_lower[close[0]]!r}?" if close else f"its columns are {shown}."
        raise TableError(f"{option} names {name!r}, which is not in the table: {hint}")
    return list(wanted)


def _check_size(observations: int, names: Sequence[str]) -> None:
    if len(names) < 2:
        found = f"has only one column, {names[0]!r}" if names else "has no columns"
        raise TableError(f"The table {found}: expected two or more. If the file has them, name their --delimiter.")
    if observations == 0:
        raise TableError("The table has names of columns but no observations.")
    if observations < FEWEST_OBSERVATIONS:
        raise TableError(
            f"The table has {observations} observation{'s' * (observations != 1)}: at least {FEWEST_OBSERVATIONS} are "
            "needed, and answers become useful from about 100 on."
        )


def _index_columns(values: Floats, names: Sequence[str]) -> list[Finding]:
    """A warning for each column that only numbers the observations."""
    counting = np.flatnonzero(np.all(np.diff(values[:50], axis=0) == 1, axis=0)).tolist()
    return [
        Finding(
            "index",
            "warning",
            (names[place],),
            f"Column {names[place]!r} counts the observations, like an index saved with the table. Unless it is a "
            f"measurement, leave it out: {how_to_drop([names[place]])}.",
        )
        for place in counting
        if np.all(np.diff(values[:, place]) == 1)
    ]


# Missing values


def _missing_sentence(values: Floats, names: Sequence[str]) -> str:
    gaps = np.isnan(values)  # (N, P)
    per_column = gaps.sum(axis=0)
    most = np.argsort(-per_column, kind="stable")[: min(8, np.count_nonzero(per_column))].tolist()
    shown = ", ".join(f"{names[place]!r} {per_column[place]}" for place in most)
    rest = ", ..." if np.count_nonzero(per_column) > len(most) else ""
    complete = int((~gaps.any(axis=1)).sum())
    return (
        f"{gaps.sum()} values are missing ({shown}{rest}): leave out incomplete observations with --missing drop "
        f"({complete} of {len(values)} remain), fill the gaps with --missing impute, or leave out columns with --drop."
    )


def _drop_incomplete(values: Floats, names: Sequence[str]) -> tuple[Floats, Finding]:
    """The complete observations, and a note on how many they are."""
    complete = ~np.isnan(values).any(axis=1)
    remaining, dropped = int(complete.sum()), int((~complete).sum())
    if remaining < FEWEST_OBSERVATIONS:
        raise TableError(
            f"Only {remaining} of {len(values)} observations have no missing value, and at least {FEWEST_OBSERVATIONS} "
            "are needed: leave out the columns that miss most with --drop, or use --missing impute."
        )
    severity = "warning" if dropped > 0.2 * len(values) else "note"
    message = (
        f"{dropped} of {len(values)} observations have missing values and were left out; {remaining} remain. The "
        "answer is about those, and is biased if what is missing depends on the values."
    )
    return values[complete], Finding("missing", severity, (), message)


def _impute(values: Floats, names: Sequence[str]) -> tuple[Floats, Finding]:
    """The table with its gaps filled by linear predictions from the other variables, and a note on how many.

    The predictions are conditional means under a Gaussian fitted to the filled table: with Θ the inverse of its
    covariance, E[x_j | rest] = μ_j − Σ_{k≠j} Θ_jk (x_k − μ_k) / Θ_jj. Columns are updated in turn, IMPUTATION_ROUNDS
    times, starting from the column means, and never leave the range that was observed.
    """
    gaps = np.isnan(values)  # (N, P)
    scale = np.nanstd(values, axis=0)
    mean, scale = np.nanmean(values, axis=0), np.where(scale > 0, scale, 1.0)
    z = np.where(gaps, 0.0, (values - mean) / scale)
    low, high = z.min(axis=0), z.max(axis=0)
    for _ in range(IMPUTATION_ROUNDS):
        center = z.mean(axis=0)
        precision = np.linalg.inv(np.cov(z, rowvar=False) + IMPUTATION_RIDGE * np.eye(z.shape[1]))
        for place in np.flatnonzero(gaps.any(axis=0)):
            rows = gaps[:, place]
            distance = z[rows] - center
            # The column's own part of the product cancels what it held before.
            predicted = z[rows, place] - distance @ precision[:, place] / precision[place, place]
            z[rows, place] = np.clip(predicted, low[place], high[place])
    share = gaps.mean()
    filled = tuple(names[place] for place in np.flatnonzero(gaps.any(axis=0)).tolist())
    message = (
        f"{gaps.sum()} missing values ({share:.1%}) were filled with linear predictions from the other variables. That "
        "makes relations look tidier than they are: read edges of these columns with care."
    )
    return np.where(gaps, z * scale + mean, values), Finding("missing", "warning", filled, message)
