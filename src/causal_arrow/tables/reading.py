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
    CellOptions,
    NumberColumn,
    Problem,
    column_as_numbers,
    constant_columns,
    problem_sentences,
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
from causal_arrow.tables._raw import RawFrame, check_duplicates, remark
from causal_arrow.tables._sources import as_frame
from causal_arrow.tables.options import ReadOptions, cell_text
from causal_arrow.tables.table import ANY_TABLE, MIN_ROWS, Abilities, Column, Finding, Table
from causal_arrow.text import capitalized, counted

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

    Rows without any value are left out, and a finding says how many there were.

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

    Returns
    -------
    Table
        Its `columns` say what kind of values each variable has, its `findings` what was noticed.

    Raises
    ------
    TableError
        If the table cannot be used as it is. The message names every problem and what to do.

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
        return _read_frame(frame, source, options, abilities, strict)
    except TableError as error:
        # The first sheet of a workbook may hold remarks instead of a table.
        sheets = [finding for finding in frame.findings if any(each.action == "sheet" for each in finding.remedies)]
        if sheets:
            error.message += f" {sheets[0].message}"
            error.remedies = (*sheets[0].remedies, *error.remedies)
        raise


def _read_frame(
    frame: RawFrame, source: Any, options: ReadOptions, abilities: Abilities, strict: bool
) -> tuple[Table, NDArray[np.intp]]:
    roles = _roles(frame, options)
    raw, environment = roles.raw, roles.environment
    usual = CellOptions(raw.decimal, tuple(options.na or ()), "levels" in abilities)
    table, problems = _read_columns(roles, options, usual)
    if isinstance(source, Table):
        table = _with_roles_of(table, source)
    complaints = []
    if options.interventions is not None:
        table = replace(table, intervened=_stacked(_set_rows(roles), table.names))
        if "intervened" not in abilities:
            complaints.append(_cannot_read_experiments(abilities))
    if environment is not None:
        table = replace(table, environment=environment if environment in table.names else None)
    table, rows = _without_empty_rows(table)
    findings = [*table.findings, *_index_columns(table)]
    if options.missing != "drop":
        column = None if roles.has_separate_environments else table.environment
        complaints += missing_environments(table, column, lambda row: raw.where(rows[row]))
    try:
        table, notes = complete(table, options.missing, abilities)
        findings += notes
        if options.missing in ("auto", "model") and "observed" in abilities:
            problems += sparse_columns(table)
    except TableError as error:
        names = tuple(table.names[index] for index in np.flatnonzero(~table.observed.all(axis=0)).tolist())
        complaints.append(Finding("missing", "problem", names, error.message, error.remedies))
    known = {problem.column for problem in problems}
    problems += [problem for problem in constant_columns(table.values, table.columns) if problem.column not in known]
    for problem in [each for each in problems if each.column == environment]:
        # A complaint about the environments: leaving out their column alone would not help.
        problems.remove(problem)
        cells = raw.cells(roles.variables[roles.names.index(problem.column)])
        unusable = isinstance(column_as_numbers(cells, problem.column, raw.where, usual), Problem)
        some_left_out = table.observations < len(raw)
        column = None if roles.has_separate_environments else environment
        complaints.append(unusable_environments(problem, column, unusable, some_left_out, abilities.model))
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
    # Column by column into one array, so that a long table is not there twice.
    values = room_for((len(raw), len(roles.variables)), np.float64)
    usable: list[NumberColumn] = []
    problems: list[Problem] = []
    for index in roles.variables:
        cells, was_read = raw.cells(index), index < len(raw.columns)
        if index in declared and was_read:
            cells = _named_levels(cells, raw.columns[index])
        # The values of a table that was read before are numbers and codes, and stay what they are.
        how = declared.get(index, {"kind": "number"} if was_read else {})
        column = column_as_numbers(cells, raw.names[index], raw.where, replace(usual, **how))
        if isinstance(column, Problem):
            problems.append(column)
            continue
        values[:, len(usable)] = column.numbers
        usable.append(replace(column, numbers=values[:, len(usable)]))
    # A table knows what its columns hold, unless the caller knows better.
    overridden = {raw.names[index] for index in declared}
    known = {column.name: column for column in raw.columns if column.name not in overridden}
    columns = tuple(known.get(column.name, column.column) for column in usable)
    names = {column.name for column in columns}
    findings = [
        *(
            each
            for each in raw.findings
            if not (each.kind == "coding" and overridden.issuperset(each.columns))
            and (not each.columns or names & set(each.columns))
        ),
        *raw.name_findings(roles.variables),
        *(
            Finding("coding", "warning" if column.warns else "note", (column.name,), column.note)
            for column in usable
            if column.note and column.name != roles.environment
        ),
    ]
    return Table(values[:, : len(usable)], columns, tuple(findings)), problems


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


def _set_rows(roles: _Roles) -> dict[str, NDArray[np.bool_]]:
    """The rows in which each variable was set.  name -> (N,)"""
    left_out = [name for name in roles.raw.names if name not in roles.names]
    return intervened_cells(roles.interventions, roles.names, left_out, len(roles.raw), roles.raw.where)


def _stacked(masks: Mapping[str, NDArray[np.bool_]], names: Sequence[str]) -> NDArray[np.bool_] | None:
    """The masks (N,) of variables side by side; None if none of these was set.  (N, P)"""
    if not any(masks[name].any() for name in names if name in masks):
        return None
    nowhere = np.zeros(len(next(iter(masks.values()))), dtype=bool)
    return np.stack([masks.get(name, nowhere) for name in names], axis=1)


def _with_roles_of(table: Table, source: Table) -> Table:
    """The table with the experiments and the environments of the table it was read from."""
    masks = {} if source.intervened is None else dict(zip(source.names, source.intervened.T, strict=True))
    environment = source.environment if source.environment in table.names else None
    return replace(table, intervened=_stacked(masks, table.names), environment=environment)


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
