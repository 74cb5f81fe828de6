"""A table of numbers and levels from a file, a data frame or an array, or one clear error that says what to change.

True and false, yes and no, ordered and unordered categories become codes with a note; dates, identifiers, constants and
whatever the network at hand cannot read are refused, all of them in one message. Nothing is dropped or filled in unless
the caller says so, and the caller's own data are never changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from causal_arrow.errors import Remedy, TableError, check_choice
from causal_arrow.progress import Progress, unheard
from causal_arrow.storage import room_for
from causal_arrow.tables.column_names import column_names, one_or_several
from causal_arrow.tables.columns import (
    MOST_LEVELS,
    CellOptions,
    NumberColumn,
    Problem,
    column_as_numbers,
    constant_columns,
    problem_sentences,
)
from causal_arrow.tables.declarations import declared_options
from causal_arrow.tables.experiments import (
    environment_findings,
    environment_labels,
    experiment_findings,
    intervened_cells,
    lost_experiments,
    missing_environments,
)
from causal_arrow.tables.missing_values import MISSING_CHOICES, complete_table, refuse_gaps, used_levels
from causal_arrow.tables.source_frame import FileOptions, SourceFrame, check_duplicates, remark
from causal_arrow.tables.sources import as_frame
from causal_arrow.tables.table import ANY_TABLE, FEWEST_OBSERVATIONS, Abilities, Column, Finding, Table
from causal_arrow.text import capitalized, counted

if TYPE_CHECKING:
    import pandas as pd

# N observations, P variables

Floats = NDArray[np.float64]

MOST_VARIABLES = 5000
"""The network keeps something for each pair of variables: more do not fit into the memory of any machine we know."""
ENVIRONMENT = "environment"
"""The name of the column that environments get which come beside a table."""


def read_table(
    source: Any,
    *,
    columns: Iterable[Any] | None = None,
    drop: Iterable[Any] | None = None,
    missing: str = "auto",
    na: Iterable[Any] | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    sheet: str | int | None = None,
    header: bool = True,
    kinds: Mapping[Any, str] | None = None,
    ordered: Mapping[Any, Sequence[Any]] | None = None,
    interventions: Any = None,
    environments: Any = None,
    abilities: Abilities = ANY_TABLE,
    strict: bool = True,
    progress: Progress = unheard,
) -> Table:
    """The table in a file, a data frame or an array, ready for the network.

    Rows without any value are left out, and a finding says how many they were.

    Parameters
    ----------
    source
        A path (.csv, .tsv, .txt, also compressed as .gz; .parquet, .feather, .xlsx; "-" for text on standard input), a
        pandas or polars data frame, a mapping of columns, or anything two-dimensional that numpy understands. Columns
        without names are called x1, x2, ...
    columns
        The columns to use, in this order; all of them by default.
    drop
        Columns to leave out.
    missing
        What to do about missing values. "model" leaves them to the network, which sees what is missing. "error" says
        how many there are and where. "drop" leaves out incomplete observations: unbiased if values are missing
        completely at random. "impute" fills the gaps with linear predictions from the other variables, which makes
        relations look tidier than they are. "auto" is "model" if the network can do that, else "error".
    na
        Values that count as missing, such as "?" or -999, beside empty cells and the usual NA, NaN, null, None.
    delimiter
        Field separator of a text file; detected by default.
    decimal
        Decimal sign of a text file, "." or ","; detected by default.
    sheet
        Name or number of an Excel sheet; the first by default.
    header
        False if the file has no names of columns.
    kinds
        What columns hold, where that should not be detected: {"zip": "category"}; one of "number", "binary", "ordered",
        "category".
    ordered
        Columns whose levels have an order, the smallest first: {"size": ["small", "medium", "large"]}.
    interventions
        What experiments have set: for each observation the name of a variable, several separated by `;`, nothing for
        none; or a table of true and false (a data frame, an array or lists), a column for each variable; or the name
        of a column of the table with such labels, which is then no variable.
    environments
        Where or when each observation was made: a label for each, or the name of a column of the table. It is read as a
        category that nothing in the table causes.
    abilities
        What the network that will read the table can read beside numbers; everything by default.
    strict
        With False, problems of columns become findings of the table instead of an error. Columns that are not finite
        numbers are left out, and missing values stay as NaN: for inspection, not for the network.
    progress
        Called with the stage and the share of it that is done, while a long file is read.

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
    check_choice("missing", missing, MISSING_CHOICES)
    markers = tuple(str(marker).strip() for marker in one_or_several(na, "na"))
    read = as_frame(source, FileOptions(delimiter, decimal, sheet, header, markers, progress))
    beside = environments is not None and not isinstance(environments, str)
    if beside:
        read, environments = _with_environments(read, environments), ENVIRONMENT
    names = column_names(read)
    check_duplicates(names.used, "The table")
    chosen = names.choose(columns, drop)
    if isinstance(interventions, str):
        (labels,) = names.places([interventions])
        interventions = [None if str(label).strip() in markers else label for label in read.cells(labels)]
        chosen = [place for place in chosen if place != labels]
    environment = None if environments is None else names.places([environments])[0]
    if environment is not None and environment not in chosen:
        if drop is not None and environment in names.places(drop, "drop"):
            raise _left_out_environments(names.used[environment])
        chosen.append(environment)
    names.check(chosen)
    _check_size(read, [names.used[place] for place in chosen])

    said = declared_options(kinds, ordered, names, environment)
    usual = CellOptions(read.decimal, markers, "levels" in abilities)
    # Column by column into their place, so that a long table is not there twice.
    values = room_for((read.observations, len(chosen)), np.float64)
    usable: list[NumberColumn] = []
    problems: list[Problem] = []
    for place in chosen:
        cells = read.cells(place)
        if place in said and place < len(read.columns):
            cells = _named_levels(cells, read.columns[place])
        # The values of a table that was read before are numbers and codes, and stay what they are.
        told = said.get(place, {"kind": "number"} if place < len(read.columns) else {})
        column = column_as_numbers(cells, names.used[place], read.where, replace(usual, **told))
        if isinstance(column, Problem):
            problems.append(column)
            continue
        values[:, len(usable)] = column.numbers
        usable.append(replace(column, numbers=values[:, len(usable)]))
    values = values[:, : len(usable)]
    # A table knows what its columns hold, unless the caller knows better.
    declared = {names.used[place] for place in said}
    known = {column.name: column for column in read.columns if column.name not in declared}
    draft = _Draft(
        values=values,
        columns=[known.get(column.name, column.column) for column in usable],
        problems=problems,
    )
    carried = [each for each in read.findings if each.kind != "coding" or not declared.issuperset(each.columns)]
    draft.findings += [
        *(finding for finding in carried if _concerns(finding, draft.columns)),
        *names.findings(chosen),
        *(
            Finding("coding", "warning" if column.doubtful else "note", (column.name,), column.note)
            for column in usable
            if column.note and (environment is None or column.name != names.used[environment])
        ),
    ]
    if isinstance(source, Table):
        draft.carry_over(source)
    if interventions is not None:
        among = [names.used[place] for place in chosen]
        others = [name for name in names.used if name not in among]
        draft.masks = intervened_cells(interventions, among, len(values), read.where, others)
        if "intervened" not in abilities:
            draft.complaints.append(_cannot_read_experiments(abilities))
    if environment is not None:
        draft.set_environment(names.used[environment])
    draft.leave_out_empty_rows()
    draft.findings += _index_columns(draft.values, draft.columns)
    if missing != "drop":
        draft.complaints += missing_environments(
            draft.environment_codes, None if beside else draft.environment_name, lambda row: read.where(draft.row(row))
        )
    draft.complete(missing, abilities)
    in_trouble = {problem.column for problem in draft.problems}
    constant = constant_columns(draft.values, draft.columns)
    draft.problems += [problem for problem in constant if problem.column not in in_trouble]
    if environment is not None:
        cells = read.cells(environment)
        unusable = isinstance(column_as_numbers(cells, draft.environment_name or "", read.where, usual), Problem)
        draft.complain_of_environment(beside, unusable, abilities.model)
    if strict:
        _raise(draft.problems, draft.complaints, abilities.model)
    return draft.table(abilities)


@dataclass(eq=False)
class _Draft:
    """A table on its way: what was read of it, what was noticed, and what stands in its way."""

    values: Floats  # (N, P)
    columns: list[Column]
    problems: list[Problem]
    findings: list[Finding] = field(default_factory=list)
    complaints: list[Finding] = field(default_factory=list)  # of more than a column
    masks: dict[str, NDArray[np.bool_]] = field(default_factory=dict)  # where each variable was set  name -> (N,)
    environment_name: str | None = None
    rows: NDArray[np.intp] | None = None  # the rows of the source that are left; None for all

    def row(self, observation: int) -> int:
        """Which row of the source an observation is."""
        return observation if self.rows is None else int(self.rows[observation])

    @property
    def environment(self) -> Column | None:
        """The column that tells environments apart, if there is one that can be read."""
        return next((column for column in self.columns if column.name == self.environment_name), None)

    @property
    def environment_codes(self) -> Floats | None:
        """Its codes.  (N,)"""
        column = self.environment
        return None if column is None else self.values[:, self.columns.index(column)]

    def carry_over(self, table: Table) -> None:
        """What a table says beside its values."""
        if table.intervened is not None:
            self.masks = dict(zip(table.names, table.intervened.T, strict=True))
        self.set_environment(table.environment)

    def set_environment(self, name: str | None) -> None:
        """The column of that name tells environments apart; one that cannot be read is a problem already."""
        self.environment_name = name

    def leave_out_empty_rows(self) -> None:
        """Only rows that say something: none of blank lines in a file, below a sheet, or from a join."""
        count = len(self.values)
        empty = np.ones(count, dtype=bool)
        places = [place for place, column in enumerate(self.columns) if column.name != self.environment_name]
        for place in places:
            if not empty.any():
                return
            empty &= np.isnan(self.values[:, place])
        if not places or not empty.any():
            return
        rows = np.flatnonzero(~empty)
        if len(rows) < FEWEST_OBSERVATIONS:
            raise TableError(
                f"Only {len(rows):,} of {counted(count, 'row')} {'has' if len(rows) == 1 else 'have'} any value: at "
                f"least {FEWEST_OBSERVATIONS} are needed."
            )
        for place in range(len(self.columns)):  # in place, so that a long table is not there twice
            self.values[: len(rows), place] = self.values[rows, place]
        self.values, self.rows = self.values[: len(rows)], rows
        left_out = count - len(rows)
        has, was = ("has", "was") if left_out == 1 else ("have", "were")
        self.findings.append(
            remark(f"{left_out:,} of {counted(count, 'row')} {has} no value at all and {was} left out.")
        )
        self._keep_labels(~empty)
        codes, column = self.environment_codes, self.environment
        if codes is not None and column is not None:
            codes[:], self.columns[self.columns.index(column)] = used_levels(codes, column)

    def _keep_labels(self, rows: NDArray[np.bool_]) -> None:
        """What experiments set in these observations, and a word on experiments of which none is left."""
        before = [name for name, mask in self.masks.items() if mask.any()]
        self.masks = {name: mask[rows] for name, mask in self.masks.items()}
        self.findings += lost_experiments(tuple(name for name in before if not self.masks[name].any()))

    def complain_of_environment(self, beside: bool, unusable: bool, model: str) -> None:
        """What is wrong with environments is a complaint of its own: dropping their column would not help."""
        for problem in [each for each in self.problems if each.column == self.environment_name]:
            self.problems.remove(problem)
            complaint = _trouble_with_environments(problem, beside, unusable, self.rows is not None, model)
            self.complaints.append(complaint)
            self.environment_name = None

    def complete(self, missing: str, abilities: Abilities) -> None:
        """Do about missing values what the caller asks for."""
        completed = complete_table(self.values, self.columns, missing, abilities)
        self.values, self.columns = completed.values, list(completed.columns)
        self.findings += completed.findings
        self.complaints += completed.complaints
        self.problems += completed.problems
        if completed.rows is not None:
            self.rows = np.flatnonzero(completed.rows) if self.rows is None else self.rows[completed.rows]
            self._keep_labels(completed.rows)

    def table(self, abilities: Abilities) -> Table:
        """The table, with all that stands in its way among its findings."""
        findings = [*self.findings, *self.complaints]
        for problem in self.problems:
            (sentence,) = problem_sentences([problem], abilities.model)
            remedies = (*problem.remedies, Remedy("drop", (problem.column,)))
            findings.append(Finding(problem.kind, "problem", (problem.column,), sentence, remedies))
        names = [column.name for column in self.columns]
        nowhere = np.zeros(len(self.values), dtype=bool)
        masks = [self.masks.get(name, nowhere) for name in names]
        intervened = np.stack(masks, axis=1) if any(mask.any() for mask in masks) else None
        column = self.environment
        environment = None if column is None else column.name
        findings += experiment_findings(intervened, names)
        findings += environment_findings(self.values, self.columns, environment)
        for array in (self.values, intervened):
            if array is not None:
                array.flags.writeable = False
        return Table(self.values, tuple(self.columns), tuple(findings), intervened, environment)


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
            refuse_gaps(table.values, table.columns)
        except TableError as error:
            complaints.append(Finding("missing", "problem", (), error.message, error.remedies))
    _raise(problems, complaints, abilities.model)


def _cannot_read_experiments(abilities: Abilities) -> Finding:
    message = (
        f"{capitalized(abilities.model)} cannot read experiments: it would take what was set for something that came "
        "about by itself."
    )
    return Finding(
        "experiments", "problem", (), message, (Remedy("omit", setting="interventions", about="the experiments"),)
    )


def _with_environments(read: SourceFrame, labels: Any) -> SourceFrame:
    """The frame with one more column, the environments."""
    if ENVIRONMENT in map(str, read.frame.columns):
        raise TableError(
            f"The table has a column {ENVIRONMENT!r} already: give its name as the environments, or rename it."
        )
    cells = environment_labels(labels, read.observations)
    return replace(read, frame=read.frame.assign(**{ENVIRONMENT: cells}))


def _left_out_environments(name: str) -> TableError:
    return TableError(
        f"{name!r} tells environments apart and cannot be left out at the same time.",
        [Remedy("keep", (name,), "drop"), Remedy("omit", setting="environments")],
    )


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


def _trouble_with_environments(
    problem: Problem, beside: bool, unusable: bool, rows_left_out: bool, model: str
) -> Finding:
    """Why environments cannot be told apart, and what to do: no variable is at fault that could be dropped."""
    subject = "The environments" if beside else f"The environments in {problem.column!r}"
    only = problem.detail.removeprefix("every value is ")
    sentences = {
        "identifier": f"{subject} are different in each observation: group observations into a few environments, such "
        "as sites or years.",
        "names": f"{subject} are different in most observations: group observations into a few environments, such as "
        "sites or years.",
        "levels": f"{subject} are too many ({problem.detail}): up to {MOST_LEVELS} can be told apart, so group them.",
        "empty": f"{subject} are missing in every observation.",
        "constant": f"All observations{' that are left' if rows_left_out else ''} come from one environment"
        f"{f', {only}' if beside else f' ({problem.column!r} is {only} everywhere)'}: expected two or more to compare.",
    }
    message = sentences.get(problem.kind) or problem_sentences([problem], model)[0]
    without = problem.kind in ("constant", "empty") or unusable
    also = () if beside or not without else (problem.column,)
    return Finding("environments", "problem", also, message, (Remedy("omit", also, "environments"),))


def _raise(problems: Sequence[Problem], complaints: Sequence[Finding], model: str) -> None:
    """One TableError with all that stands in the way."""
    if not problems and not complaints:
        return
    remedies = [remedy for problem in problems for remedy in problem.remedies]
    if problems:
        remedies.append(Remedy("drop", tuple(problem.column for problem in problems)))
    sentences = [*problem_sentences(problems, model), *(complaint.message for complaint in complaints)]
    raise TableError(
        " ".join(sentences),
        list(dict.fromkeys([*remedies, *(remedy for complaint in complaints for remedy in complaint.remedies)])),
    )


def _concerns(finding: Finding, columns: Sequence[Column]) -> bool:
    """Whether a finding is about the whole table or about one of the columns."""
    return not finding.columns or bool(set(finding.columns) & {column.name for column in columns})


def _check_size(read: SourceFrame, names: Sequence[str]) -> None:
    observations = read.observations
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


def _index_columns(values: Floats, columns: Sequence[Column]) -> list[Finding]:
    """A warning for each column that only numbers the observations."""
    names = [column.name for column in columns]
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
        if np.all(np.diff(values[:, place]) == 1) and columns[place].kind == "number"
    ]
