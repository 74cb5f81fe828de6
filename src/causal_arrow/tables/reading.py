"""read_table(): a table of numbers and levels from any source, or one clear error that says what to change.

True and false, yes and no, ordered and unordered categories become codes with a note; dates, identifiers, constants and
whatever the network cannot read are refused, all of them in one message. Nothing is dropped or filled in unless the
caller says so, and the caller's own data are never changed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from causal_arrow.errors import Remedy, TableError
from causal_arrow.inputs import checked
from causal_arrow.progress import Progress, ignore
from causal_arrow.storage import room_for
from causal_arrow.tables._columns import (
    YES_AND_NO,
    CellOptions,
    Problem,
    column_as_numbers,
    constant_columns,
    problem_sentences,
    same_level,
)
from causal_arrow.tables._labels import (
    ENVIRONMENT,
    environment_findings,
    experiment_findings,
    intervened_cells,
    lost_experiments,
    missing_environments,
    unusable_environments,
    with_environments,
)
from causal_arrow.tables._missing import complete, refuse_gaps, sparse_columns, used_levels
from causal_arrow.tables.options import ReadOptions, cell_text
from causal_arrow.tables.raw import RawFrame, check_duplicates, remark
from causal_arrow.tables.sources import as_frame
from causal_arrow.tables.table import ANY_TABLE, MIN_ROWS, Abilities, Bools, Column, Finding, Floats, Table
from causal_arrow.text import capitalized, closest, counted, listed, shown

if TYPE_CHECKING:
    import pandas as pd

# N rows, P variables

MAX_VARIABLES = 5000
"""The network keeps something for each pair of variables: more do not fit into the memory of any machine we know."""


class UnusableColumns(TableError):
    """A TableError that knows the kinds of the problems of columns, such as "date"."""

    kinds: frozenset[str] = frozenset()


@checked
def read_table(
    source: Any,
    options: ReadOptions | None = None,
    *,
    abilities: Abilities = ANY_TABLE,
    strict: bool = True,
    progress: Progress = ignore,
    **changes: Any,
) -> Table:
    """Read the table in a file, a data frame or an array, ready for the network.

    Its `columns` say what kind of values each variable has, its `findings` what was noticed. Rows without any value are
    left out. A TableError names every problem that stands in the way, and what to do.

    Parameters
    ----------
    source
        A path (.csv, .tsv, .txt, also compressed as .gz; .parquet, .feather, .xlsx; "-" for text on standard input), a
        data frame of any library (pandas, polars, pyarrow, a DuckDB relation, Modin, cuDF), a mapping of columns, or
        anything two-dimensional that numpy understands. Columns without names are called x1, x2, ...
    options
        How to read it; by default what `ReadOptions` has by default.
    abilities
        What the network that will read the table can read besides numbers; everything by default.
    strict
        With False, problems of columns become findings of the table instead of an error. Columns that are not finite
        numbers are left out, and missing values stay as NaN: for inspection, not for the network.
    progress
        Called with the stage and the share of it that is done, while a long file is read.
    **changes
        Options by name, such as `drop` or `missing`: they are described under `ReadOptions`.

    Examples
    --------
    >>> from causal_arrow import load_example, read_table
    >>> table = read_table(load_example("hospital"), drop=["age"])
    >>> table.observations, table.variables
    (800, 6)
    >>> [column.name for column in table.columns if column.kind == "category"]
    ['ward']
    """
    return read_rows(source, (options or ReadOptions()).changed(**changes), abilities, strict, progress)[0]


def read_rows(
    source: Any,
    options: ReadOptions,
    abilities: Abilities = ANY_TABLE,
    strict: bool = True,
    progress: Progress = ignore,
) -> tuple[Table, NDArray[np.intp]]:
    """The table that `read_table` returns, and which rows of the source it has unless `missing` is "drop"."""
    frame = as_frame(source, options, progress)
    try:
        return _read_frame(frame, options, abilities, strict)
    except TableError as error:
        # The first sheet of a workbook may hold remarks instead of a table.
        sheets = [finding for finding in frame.findings if any(each.action == "sheet" for each in finding.remedies)]
        if sheets:
            error.message += f" {sheets[0].message}"
            error.remedies = (*sheets[0].remedies, *error.remedies)
        raise


def _read_frame(
    frame: RawFrame, options: ReadOptions, abilities: Abilities, strict: bool
) -> tuple[Table, NDArray[np.intp]]:
    roles = _roles(frame, options)
    raw, environment = roles.raw, roles.environment
    usual = CellOptions(raw.decimal, tuple(options.na or ()), "levels" in abilities)
    table, problems = _read_columns(roles, options, usual)
    complaints = []
    if options.interventions is not None:
        not_used = [name for name in raw.names if name not in roles.names]
        masks = intervened_cells(roles.interventions, roles.names, not_used, len(raw), raw.where)
        if "intervened" not in abilities:
            complaints.append(_cannot_read_experiments(abilities))
    elif raw.table is not None and raw.table.intervened is not None:
        masks = dict(zip(raw.table.names, raw.table.intervened.T, strict=True))
    else:
        masks = {}
    known_environment = environment if raw.table is None else environment or raw.table.environment
    environment_column = None if roles.has_separate_environments else known_environment
    table = replace(
        table,
        intervened=_stacked(masks, table.names),
        environment=known_environment if known_environment in table.names else None,
    )
    table, rows = _without_empty_rows(table)
    findings = [*table.findings, *_index_columns(table)]
    if options.missing != "drop":
        complaints += missing_environments(table, environment_column, lambda row: raw.where(rows[row]))
    try:
        table, notes = complete(table, options.missing, abilities)
        findings += notes
        if options.missing in ("auto", "model") and "observed" in abilities:
            problems += sparse_columns(table)
    except TableError as error:
        names = tuple(table.names[index] for index in np.flatnonzero(~table.observed.all(axis=0)).tolist())
        complaints.append(Finding("missing", "problem", names, error.message, error.remedies))
    named = {problem.column for problem in problems}
    problems += [problem for problem in constant_columns(table.values, table.columns) if problem.column not in named]
    for problem in [each for each in problems if each.column == environment]:
        # A complaint about the environments: leaving out their column alone would not help.
        problems.remove(problem)
        assert roles.environment_index is not None
        cells = raw.cells(roles.environment_index)
        unusable = isinstance(column_as_numbers(cells, problem.column, raw.where, usual), Problem)
        left_out = table.observations < len(raw)
        complaints.append(unusable_environments(problem, environment_column, unusable, left_out, abilities.model))
        table = replace(table, environment=None)
    if strict:
        _raise(problems, complaints, abilities.model)
    if table.intervened is not None and not table.intervened.any():
        table = replace(table, intervened=None)
    findings += [*complaints, *(_finding(problem, abilities.model) for problem in problems)]
    findings += [*experiment_findings(table), *environment_findings(table)]
    for array in (table.values, table.intervened):
        if array is not None:
            array.flags.writeable = False
    return replace(table, findings=tuple(findings)), np.asarray(rows, dtype=np.intp)


def check_readable(table: Table, abilities: Abilities) -> None:
    """TableError if a table that was read for another network holds what this one cannot read."""
    problems, complaints = [], []
    if "levels" not in abilities:
        problems = [
            Problem("category", column.name, f"{len(column.levels)} levels")
            for column in table.columns
            if column.kind == "category" and len(column.levels) > 2
        ]
    if "intervened" not in abilities and table.intervened is not None:
        complaints.append(_cannot_read_experiments(abilities))
    if "observed" not in abilities and not table.observed.all():
        try:
            refuse_gaps(table)
        except TableError as error:
            complaints.append(Finding("missing", "problem", (), error.message, error.remedies))
    _raise(problems, complaints, abilities.model)


# Columns and their roles


@dataclass(frozen=True, eq=False)
class _Roles:
    """The columns of a source that are variables, and the labels of its rows."""

    raw: RawFrame
    variables: tuple[int, ...]
    interventions: Any  # labels or a mask, not the name of a column
    environment_index: int | None
    has_separate_environments: bool  # not a column of the source

    @property
    def environment(self) -> str | None:
        """The name of the column of environments."""
        return None if self.environment_index is None else self.raw.names[self.environment_index]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the variables."""
        return tuple(self.raw.names[index] for index in self.variables)


def _roles(raw: RawFrame, options: ReadOptions) -> _Roles:
    separate = options.environments is not None and not isinstance(options.environments, str)
    if separate:
        raw = with_environments(raw, options.environments)
    check_duplicates(raw.names, "The table")
    chosen = raw.chosen(options)
    interventions = options.interventions
    if isinstance(interventions, str):
        (labels,) = raw.indices([interventions])
        markers = options.na or ()
        interventions = [None if str(label).strip() in markers else label for label in raw.cells(labels)]
        chosen = [index for index in chosen if index != labels]
    environment = None
    if options.environments is not None:
        (environment,) = raw.indices([ENVIRONMENT if separate else options.environments])
        if environment not in chosen:
            if environment in raw.indices(options.drop or (), "drop"):
                name = raw.names[environment]
                raise TableError(
                    f"{name!r} holds the environments and cannot be left out at the same time.",
                    [Remedy("keep", (name,), "drop"), Remedy("omit", setting="environments")],
                )
            chosen.append(environment)
    raw.check_names(chosen)
    _check_size(raw, [raw.names[index] for index in chosen])
    return _Roles(raw, tuple(chosen), interventions, environment, separate)


def _check_size(raw: RawFrame, names: Sequence[str]) -> None:
    rows = len(raw)
    if len(names) < 2:
        there_are = len(raw.names)
        found = "has only one column" if names else "has no columns"
        if there_are > 1:
            found = f"has {there_are:,} columns, and {'only one' if names else 'none'} is left"
        unsplit = raw.is_text and there_are < 2
        raise TableError(
            f"The table {found}{''.join(f', {name!r}' for name in names)}: expected two or more.",
            [Remedy("delimiter")] if unsplit else [],
        )
    if rows == 0:
        raise TableError("The table has column names but no rows.")
    if rows < MIN_ROWS:
        raise TableError(
            f"The table has {counted(rows, 'observation')}: at least {MIN_ROWS} are needed, and answers become useful "
            "from about 100 on."
        )
    if len(names) > MAX_VARIABLES:
        raise TableError(
            f"The table has {counted(len(names), 'column')}, more than the {MAX_VARIABLES:,} that fit into memory.",
            [Remedy("choose")],
        )


def _declared(roles: _Roles, options: ReadOptions) -> dict[int, dict[str, Any]]:
    """The caller's declarations about columns, by their indices: `kind` and `order` of CellOptions."""
    raw, environment = roles.raw, roles.environment_index
    declared: dict[int, dict[str, Any]] = {}
    for name, kind in (options.kinds or {}).items():
        declared[raw.indices([name])[0]] = {"kind": kind}
    for name, levels in (options.ordered or {}).items():
        (index,) = raw.indices([name])
        if (kind := declared.get(index, {}).get("kind", "ordered")) != "ordered":
            raise TableError(f"{raw.names[index]!r} was declared both ordered and {kind}: choose one.")
        declared[index] = {"order": tuple(map(cell_text, levels))}
    if environment is not None:
        if declared.get(environment, {"kind": "category"}) != {"kind": "category"}:
            name = raw.names[environment]
            raise TableError(f"The environments in {name!r} are always read as a category.")
        declared[environment] = {"kind": "category"}
    return declared


def _read_columns(roles: _Roles, options: ReadOptions, usual: CellOptions) -> tuple[Table, list[Problem]]:
    """The columns that can be used, as a table, and why others cannot."""
    raw, declared = roles.raw, _declared(roles, options)
    read_before = () if raw.table is None else raw.table.columns
    # Column by column into one array, so that a long table is not there twice.
    values = room_for((len(raw), len(roles.variables)), np.float64)
    columns: list[Column] = []
    codings: list[Finding] = []
    problems: list[Problem] = []
    for index in roles.variables:
        cells, was_read = raw.cells(index), index < len(read_before)
        if index in declared and was_read:
            cells = _named_levels(cells, read_before[index])
        # The values of a table that was read before are numbers and codes, and stay what they are.
        how = declared.get(index, {"kind": "number"} if was_read else {})
        read = column_as_numbers(cells, raw.names[index], raw.where, replace(usual, **how))
        if isinstance(read, Problem):
            problems.append(read)
            continue
        values[:, len(columns)] = read.numbers
        # A table knows what its columns hold, unless the caller knows better.
        columns.append(read_before[index] if was_read and index not in declared else read.column)
        if read.note and index != roles.environment_index:
            codings.append(Finding("coding", "warning" if read.warns else "note", (read.name,), read.note))
    names = {column.name for column in columns}
    overridden = {raw.names[index] for index in declared}
    findings = [
        each
        for each in raw.findings
        if not (each.kind == "coding" and overridden.issuperset(each.columns))
        and (not each.columns or names & set(each.columns))
    ]
    findings += [*raw.name_findings(roles.variables), *codings]
    return Table(values[:, : len(columns)], tuple(columns), tuple(findings)), problems


def _named_levels(codes: pd.Series, column: Column) -> pd.Series:
    """The cells of a column that a table holds as codes of levels: their names, or the numbers that these are."""
    import pandas as pd

    if not column.levels:
        return codes
    names: list[Any] = list(column.levels)
    if all(re.fullmatch(r"0|-?[1-9]\d{0,14}", name) for name in names):
        names = [float(name) for name in names]
    numbers = codes.to_numpy(dtype=float)
    cells = [None if np.isnan(number) else names[int(number)] for number in numbers.tolist()]
    return pd.Series(cells, dtype=float if isinstance(names[0], float) else object, name=codes.name)


# Experiments


def _stacked(masks: Mapping[str, Bools], names: Sequence[str]) -> Bools | None:
    """The masks (N,) of some variables side by side; None if none of these was set.  (N, P)"""
    if not any(masks[name].any() for name in names if name in masks):
        return None
    nowhere = np.zeros(len(next(iter(masks.values()))), dtype=bool)
    return np.stack([masks.get(name, nowhere) for name in names], axis=1)


def _cannot_read_experiments(abilities: Abilities) -> Finding:
    message = (
        f"{capitalized(abilities.model)} cannot read experiments: it would treat values that were set as observed ones."
    )
    remedy = Remedy("omit", setting="interventions", about="the experiments")
    return Finding("experiments", "problem", (), message, (remedy,))


# Rows


def _without_empty_rows(table: Table) -> tuple[Table, Sequence[int]]:
    """The table without rows that hold nothing, such as blank lines of a file; and which rows are left."""
    count = table.observations
    empty = np.ones(count, dtype=bool)
    variables = [index for index, name in enumerate(table.names) if name != table.environment]
    for index in variables:
        if not empty.any():
            return table, range(count)
        empty &= np.isnan(table.values[:, index])
    if not variables or not empty.any():
        return table, range(count)
    rows = np.flatnonzero(~empty)
    if len(rows) < MIN_ROWS:
        raise TableError(
            f"Only {len(rows):,} of {counted(count, 'row')} {'has' if len(rows) == 1 else 'have'} any value: at least "
            f"{MIN_ROWS} are needed."
        )
    for column in table.values.T:  # in place, so that a long table is not there twice
        column[: len(rows)] = column[rows]
    intervened = None if table.intervened is None else table.intervened[rows]
    left = replace(table, values=table.values[: len(rows)], intervened=intervened)
    has, was = ("has", "was") if count - len(rows) == 1 else ("have", "were")
    note = remark(f"{count - len(rows):,} of {counted(count, 'row')} {has} no value at all and {was} left out.")
    left = replace(left, findings=(*table.findings, note, *lost_experiments(table, left)))
    if table.environment is not None:
        index, columns = table.names.index(table.environment), list(table.columns)
        left.values[:, index], columns[index] = used_levels(left.values[:, index], columns[index])
        left = replace(left, columns=tuple(columns))
    return left, rows.tolist()


_IDENTIFIER = re.compile(
    r"(?:.*[\W\d_])?(?:ids?|uid|idx|index|key|rownames|caseid|case|subject|patient|respondent|serial)(?:[\W\d_].*)?",
    re.IGNORECASE,
)


def _index_columns(table: Table) -> list[Finding]:
    """A warning for each column of whole numbers that identifies the rows, by its name or because it increases."""
    findings = []
    for column, values in zip(table.columns, table.values.T, strict=True):
        if column.kind != "number" or np.isnan(values[:50]).any() or not (values[:50] == np.rint(values[:50])).all():
            continue
        if np.isnan(values).any() or not (values == np.rint(values)).all() or len(np.unique(values)) < len(values):
            continue
        increases = (values[1:] > values[:-1]).all()
        if increases and values[-1] - values[0] == len(values) - 1:
            how = "numbers the rows, like an index saved with the table"
        elif increases or _IDENTIFIER.fullmatch(column.name):
            how = "has another whole number in each row, like an identifier"
        else:
            continue
        message = f"Column {column.name!r} {how}. Unless it is a measurement, leave it out."
        findings.append(Finding("index", "warning", (column.name,), message, (Remedy("drop", (column.name,)),)))
    return findings


# Problems


def _finding(problem: Problem, model: str) -> Finding:
    (sentence,) = problem_sentences([problem], model)
    remedies = (*problem.remedies, Remedy("drop", (problem.column,)))
    return Finding(problem.kind, "problem", (problem.column,), sentence, remedies)


def _raise(problems: Sequence[Problem], complaints: Sequence[Finding], model: str) -> None:
    """Raise one TableError with everything that stands in the way."""
    if not problems and not complaints:
        return
    remedies = [remedy for problem in problems for remedy in problem.remedies]
    if problems:
        remedies.append(Remedy("drop", tuple(problem.column for problem in problems)))
    remedies += [remedy for complaint in complaints for remedy in complaint.remedies]
    sentences = [*problem_sentences(problems, model), *(complaint.message for complaint in complaints)]
    error = UnusableColumns(" ".join(sentences), list(dict.fromkeys(remedies)))
    error.kinds = frozenset(problem.kind for problem in problems)
    raise error


# Further tables, with the kinds of columns and the codes of levels that the first one has


def read_like(
    first: Table, source: Any, missing: str, labels: Mapping[str, Any], needs_environments: bool = True
) -> Table:
    """Read a source with the columns of the first table; a column may have only one value.

    `labels` are the `interventions` and `environments` given with the first table. Labels of its rows do not apply to
    other rows: a column of the same name has to hold them. If environments are not needed, they may be missing.
    """
    if isinstance(source, Table) and source.columns == first.columns:
        return source
    source = as_frame(source)
    if any(not isinstance(given, str) for given in labels.values()) and _is_same(first, source, missing, labels):
        return first
    experiments = labels.get("interventions")
    usable = {"interventions": experiments} if isinstance(experiments, str) and experiments in source.names else {}
    if first.environment is None or first.environment in source.names:
        return _read_alike(first, source, missing, usable)
    if needs_environments:
        raise TableError(
            f"The table that was fitted has environments, and this one does not: give it a column "
            f"{first.environment!r} that says where or when each of its observations was made."
        )
    others = tuple(column for column in first.columns if column.name != first.environment)
    read = _read_alike(replace(first, columns=others, environment=None), source, missing, usable)
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
        again = _read_alike(first, source, missing, labels)
    except TableError:
        return False
    return again.columns == first.columns and np.array_equal(again.values, first.values, equal_nan=True)


def _read_alike(first: Table, source: Any, missing: str, labels: Mapping[str, Any]) -> Table:
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
    truth = YES_AND_NO.get(word.lower())
    alike = (level for level in levels if truth is not None and YES_AND_NO.get(level.lower()) == truth)
    return same_level(word, levels) or next(alike, None)
