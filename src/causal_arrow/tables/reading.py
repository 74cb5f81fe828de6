"""A table of numbers from a file, a data frame or an array, or one clear error that says what to change.

The network reads numbers. True and false, yes and no, and ordered categories become numbers with a note; text, dates
and constants are refused, all of them in one message. Nothing is dropped or filled in unless the caller says so, and
the caller's own data are never changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from causal_arrow.errors import Remedy, TableError, check_choice
from causal_arrow.tables.columns import (
    CellOptions,
    NumberColumn,
    Problem,
    column_as_numbers,
    constant_columns,
    problem_sentences,
)
from causal_arrow.tables.source_frame import FileOptions, SourceFrame, check_duplicates
from causal_arrow.tables.sources import as_frame
from causal_arrow.tables.table import Column, Finding, Table, in_safe_units
from causal_arrow.text import closest, counted, listed, shown

# N observations, P variables

Floats = NDArray[np.float64]

FEWEST_OBSERVATIONS = 20
MOST_VARIABLES = 5000
"""The network keeps something for each pair of variables: more do not fit into the memory of any machine we know."""
MISSING_CHOICES = ("error", "drop", "impute")
# Imputation: rounds of predicting the gaps, and the ridge that keeps the predictions tame, in units of the variances.
IMPUTATION_ROUNDS = 10
IMPUTATION_RIDGE = 0.01


def read_table(
    source: Any,
    *,
    columns: Iterable[Any] | None = None,
    drop: Iterable[Any] | None = None,
    missing: str = "error",
    na: Iterable[Any] | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    sheet: str | int | None = None,
    header: bool = True,
    strict: bool = True,
) -> Table:
    """The table in `source`, ready for the network.

    source    A path (.csv, .tsv, .txt, also compressed as .gz; .parquet, .feather, .xlsx; "-" for text on standard
              input), a pandas or polars data frame, a mapping of columns, or anything two-dimensional that numpy
              understands. Columns without names are called x1, x2, ...
    columns   The columns to use, in this order; all of them by default.
    drop      Columns to leave out.
    missing   What to do about missing values. "error" says how many there are and where. "drop" leaves out incomplete
              observations: fair if what is missing does not depend on the values. "impute" fills the gaps with linear
              predictions from the other variables, which makes relations look tidier than they are.
    na        Values that count as missing, such as "?" or -999, beside empty cells and the usual NA, NaN, null.
    delimiter, decimal, sheet, header
              How to read a file, where that should not be detected. header=False: the file has no names of columns.
    strict    With False, problems of columns become findings of the table instead of an error. Columns that are not
              finite numbers are left out, and missing values stay as NaN: for inspection, not for the network.
    """
    check_choice("missing", missing, MISSING_CHOICES)
    markers = tuple(str(marker).strip() for marker in _several(na, "na"))
    read = as_frame(source, FileOptions(delimiter, decimal, sheet, header, markers))
    names = _names(read)
    check_duplicates(names.used, "The table")
    chosen = names.choose(columns, drop)
    names.check(chosen)
    _check_size(read, [names.used[place] for place in chosen])

    options = CellOptions(read.decimal, markers)
    candidates = [
        column_as_numbers(read.frame.iloc[:, place], names.used[place], read.where, options) for place in chosen
    ]
    usable = [column for column in candidates if isinstance(column, NumberColumn)]
    problems = [column for column in candidates if isinstance(column, Problem)]
    kinds = {column.name: column for column in read.columns}  # a table knows what its columns hold
    kept = [kinds.get(column.name, column.column) for column in usable]
    values = np.empty((len(read.frame), len(usable)))
    for place, column in enumerate(usable):
        values[:, place] = column.numbers
    findings = [
        *(finding for finding in read.findings if _concerns(finding, kept)),
        *names.findings(chosen),
        *(Finding("coding", "note", (column.name,), column.note) for column in usable if column.note),
        *_index_columns(values, [column.name for column in kept]),
    ]

    gaps: list[TableError] = []
    if np.isnan(values).any() and (strict or missing != "error"):
        try:
            values, kept, finding = _COMPLETE[missing](values, kept)
            findings.append(finding)
        except TableError as error:
            gaps.append(error)
    problems += constant_columns(values, [column.name for column in kept])
    if strict:
        _raise(problems, gaps)
    for complaint in gaps:
        findings.append(Finding("missing", "problem", (), complaint.message, complaint.remedies))
    for problem in problems:
        (sentence,) = problem_sentences([problem])
        remedies = (*problem.remedies, Remedy("drop", (problem.column,)))
        findings.append(Finding(problem.kind, "problem", (problem.column,), sentence, remedies))
    values.flags.writeable = False
    return Table(values, tuple(kept), tuple(findings))


def _raise(problems: Sequence[Problem], complaints: Sequence[TableError]) -> None:
    """One TableError with all that stands in the way."""
    if not problems and not complaints:
        return
    remedies = [remedy for problem in problems for remedy in problem.remedies]
    if problems:
        remedies.append(Remedy("drop", tuple(problem.column for problem in problems)))
    sentences = [*problem_sentences(problems), *(complaint.message for complaint in complaints)]
    raise TableError(
        " ".join(sentences),
        [*dict.fromkeys(remedies), *(remedy for complaint in complaints for remedy in complaint.remedies)],
    )


def _concerns(finding: Finding, columns: Sequence[Column]) -> bool:
    """Whether a finding is about the whole table or about one of the columns."""
    return not finding.columns or bool(set(finding.columns) & {column.name for column in columns})


# Which columns


@dataclass(frozen=True)
class _Names:
    """The names of the columns: as the source has them, and as they are used, which are text without outer blanks."""

    given: tuple[Any, ...]  # (P,)
    used: tuple[str, ...]  # (P,)

    def choose(self, columns: Iterable[Any] | None, drop: Iterable[Any] | None) -> list[int]:
        """The places of the columns to use, in the order asked for."""
        keep = range(len(self.used)) if columns is None else self._places(columns, "columns")
        leave = set() if drop is None else set(self._places(drop, "drop"))
        return [place for place in keep if place not in leave]

    def _places(self, asked: Iterable[Any], option: str) -> list[int]:
        """The places of the names asked for, each once, if the table has them; a name may be as given or as used."""
        known: dict[Any, int] = {}
        for names in (self.used, map(str, self.given), self.given):
            for place, name in enumerate(names):
                known.setdefault(name, place)
        places = []
        for name in _several(asked, option):
            form = next((form for form in (name, str(name), str(name).strip()) if form in known), None)
            if form is None:
                near = closest(str(name), self.used)
                hint = f"did you mean {near!r}?" if near else f"its columns are {listed(self.used, 10)}."
                raise TableError(f"{shown(name)} is not in the table: {hint}", [Remedy("name", setting=option)])
            places.append(known[form])
        return list(dict.fromkeys(places))

    def check(self, chosen: Sequence[int]) -> None:
        """TableError for a name that cannot be written to any file."""
        for place in chosen:
            if any("\ud800" <= character <= "\udfff" for character in self.used[place]):
                raise TableError(
                    f"The name {self.used[place]!r} of column {place + 1} holds half a character (a lone surrogate), "
                    "which no file can hold: rename the column."
                )

    def findings(self, chosen: Sequence[int]) -> list[Finding]:
        """Notes on names that are not used as the source has them."""
        blanks = [place for place in chosen if isinstance(self.given[place], str) and self.given[place].strip()]
        blanks = [place for place in blanks if self.given[place] != self.used[place]]
        unnamed = [place for place in chosen if _is_nothing(self.given[place])]
        joined = [place for place in chosen if isinstance(self.given[place], tuple)]
        return [
            Finding("names", "note", tuple(self.used[place] for place in places), message.format(self._listed(places)))
            for places, message in (
                (blanks, "Names are used without the blanks around them: {}."),
                (unnamed, "Columns without a name were given one: {}."),
                (joined, "Names of several parts were joined with dots: {}."),
            )
            if places
        ]

    def _listed(self, places: Sequence[int]) -> str:
        """Names as given where they are text, else as used."""
        forms = [(self.given[place], self.used[place]) for place in places]
        return listed([given if isinstance(given, str) and given.strip() else used for given, used in forms])


def _names(read: SourceFrame) -> _Names:
    given = tuple(read.frame.columns.tolist())
    used = [_used_name(name, place) for place, name in enumerate(given)]
    return _Names(given, tuple(used))


def _used_name(name: Any, place: int) -> str:
    if _is_nothing(name):
        return f"x{place + 1}"
    parts = [part for part in name if not _is_nothing(part)] if isinstance(name, tuple) else [name]
    return ".".join(str(part).strip() for part in parts) or f"x{place + 1}"


def _is_nothing(name: Any) -> bool:
    """Whether a name is no name: None, NaN, or blanks."""
    return name is None or (isinstance(name, float) and np.isnan(name)) or (isinstance(name, str) and not name.strip())


def _several(values: Iterable[Any] | None, option: str) -> list[Any]:
    """The values of an option that takes one or several."""
    if values is None:
        return []
    if isinstance(values, str | bytes | int | float):
        return [values]
    try:
        several = list(values)
        hash(tuple(several))
    except TypeError:
        raise TableError(f"Expected {option} to be a list of names, got {shown(values)}.") from None
    return several


def _check_size(read: SourceFrame, names: Sequence[str]) -> None:
    observations = len(read.frame)
    if len(names) < 2:
        there_are = read.frame.shape[1]
        found = "has only one column" if names else "has no columns"
        if there_are > 1:
            found = f"has {there_are:,} columns, and {'only one' if names else 'none'} is left"
        unsplit = read.is_text and there_are < 2
        raise TableError(
            f"The table {found}{''.join(f', {name!r}' for name in names)}: expected two or more.",
            [Remedy("delimiter")] if unsplit else [],
        )
    if observations == 0:
        raise TableError("The table has names of columns but no observations.")
    if observations < FEWEST_OBSERVATIONS:
        raise TableError(
            f"The table has {counted(observations, 'observation')}: at least {FEWEST_OBSERVATIONS} are needed, and "
            "answers become useful from about 100 on."
        )
    if len(names) > MOST_VARIABLES:
        raise TableError(
            f"The table has {counted(len(names), 'column')}, more than the {MOST_VARIABLES:,} that fit into memory.",
            [Remedy("choose")],
        )


def _index_columns(values: Floats, names: Sequence[str]) -> list[Finding]:
    """A warning for each column that only numbers the observations."""
    with np.errstate(over="ignore"):  # the distance of very large numbers can be infinite, and is not 1
        counting = np.flatnonzero(np.all(np.diff(values[:50], axis=0) == 1, axis=0)).tolist()
    return [
        Finding(
            "index",
            "warning",
            (names[place],),
            f"Column {names[place]!r} counts the observations, like an index saved with the table. Unless it is a "
            "measurement, it does not belong here.",
            (Remedy("drop", (names[place],)),),
        )
        for place in counting
        if np.all(np.diff(values[:, place]) == 1)
    ]


# Missing values


Completed = tuple[Floats, list[Column], Finding]


def _refuse_gaps(values: Floats, columns: Sequence[Column]) -> Completed:
    """Says how many values are missing and where."""
    gaps = np.isnan(values)  # (N, P)
    per_column = gaps.sum(axis=0)
    most = np.argsort(-per_column, kind="stable")[: min(8, np.count_nonzero(per_column))].tolist()
    places = ", ".join(f"{columns[place].name!r} {per_column[place]}" for place in most)
    rest = ", ..." if np.count_nonzero(per_column) > len(most) else ""
    complete, count = int((~gaps.any(axis=1)).sum()), int(gaps.sum())
    raise TableError(
        f"{counted(count, 'value')} {'is' if count == 1 else 'are'} missing ({places}{rest}); without the incomplete "
        f"observations, {complete} of {len(values)} remain.",
        [MISSING_DROP, MISSING_IMPUTE],
    )


MISSING_DROP = Remedy("missing", setting="drop", about="the missing values")
MISSING_IMPUTE = Remedy("missing", setting="impute", about="the missing values")


def _drop_incomplete(values: Floats, columns: Sequence[Column]) -> Completed:
    """The complete observations, and a note on how many they are."""
    complete = ~np.isnan(values).any(axis=1)
    remaining, dropped = int(complete.sum()), int((~complete).sum())
    if remaining < FEWEST_OBSERVATIONS:
        gaps = np.isnan(values).sum(axis=0)
        worst = columns[int(gaps.argmax())].name
        raise TableError(
            f"Only {remaining} of {counted(len(values), 'observation')} have no missing value, and at least "
            f"{FEWEST_OBSERVATIONS} are needed; {worst!r} misses most, {counted(int(gaps.max()), 'value')}.",
            [MISSING_IMPUTE, Remedy("drop", (worst,), about="the missing values")],
        )
    severity = "warning" if dropped > 0.2 * len(values) else "note"
    message = (
        f"{dropped} of {counted(len(values), 'observation')} {'has' if dropped == 1 else 'have'} missing values and "
        f"{'was' if dropped == 1 else 'were'} left out; {remaining} remain. The answer is about those, and is biased "
        "if what is missing depends on the values."
    )
    return values[complete], list(columns), Finding("missing", severity, (), message)


def _impute(values: Floats, columns: Sequence[Column]) -> Completed:
    """The table with its gaps filled by linear predictions from the other variables, and a note on how many.

    The predictions are conditional means under a Gaussian fitted to the filled table: with Θ the inverse of its
    covariance, E[x_j | rest] = μ_j − Σ_{k≠j} Θ_jk (x_k − μ_k) / Θ_jj. Columns are updated in turn, IMPUTATION_ROUNDS
    times, starting from the column means, and never leave the range that was observed. What lies between two levels is
    a number.
    """
    gaps = np.isnan(values)  # (N, P)
    scaled, exponents = in_safe_units(values)
    scale = np.nanstd(scaled, axis=0)
    mean, scale = np.nanmean(scaled, axis=0), np.where(scale > 0, scale, 1.0)
    z = np.where(gaps, 0.0, (scaled - mean) / scale)
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
    filled = tuple(columns[place].name for place in np.flatnonzero(gaps.any(axis=0)).tolist())
    count = int(gaps.sum())
    message = (
        f"{counted(count, 'missing value')} ({gaps.mean():.1%}) {'was' if count == 1 else 'were'} filled with linear "
        "predictions from the other variables. That makes relations look tidier than they are: read edges of these "
        "columns with care."
    )
    complete = np.where(gaps, np.ldexp(z * scale + mean, exponents), values)
    kinds = [Column(column.name) if column.name in filled else column for column in columns]
    return complete, kinds, Finding("missing", "warning", filled, message)


_COMPLETE = {"error": _refuse_gaps, "drop": _drop_incomplete, "impute": _impute}
