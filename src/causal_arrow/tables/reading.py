"""A table of numbers and levels from a file, a data frame or an array, or one clear error that says what to change.

True and false, yes and no, ordered and unordered categories become codes with a note; dates, identifiers, constants and
whatever the network at hand cannot read are refused, all of them in one message. Nothing is dropped or filled in unless
the caller says so, and the caller's own data are never changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from causal_arrow.errors import Remedy, TableError, check_choice
from causal_arrow.progress import Progress, unheard
from causal_arrow.storage import room_for
from causal_arrow.tables.columns import (
    CellOptions,
    NumberColumn,
    Problem,
    column_as_numbers,
    constant_columns,
    problem_sentences,
)
from causal_arrow.tables.experiments import (
    check_environment,
    environment_findings,
    environment_labels,
    experiment_findings,
    intervened_cells,
)
from causal_arrow.tables.source_frame import FileOptions, SourceFrame, check_duplicates
from causal_arrow.tables.sources import as_frame
from causal_arrow.tables.table import ANY_TABLE, KINDS, Abilities, Column, Finding, Table, in_safe_units
from causal_arrow.text import capitalized, closest, counted, listed, shown

# N observations, P variables

Floats = NDArray[np.float64]

FEWEST_OBSERVATIONS = 20
MOST_VARIABLES = 5000
"""The network keeps something for each pair of variables: more do not fit into the memory of any machine we know."""
MISSING_CHOICES = ("auto", "model", "error", "drop", "impute")
MOST_MISSING = 0.9
"""Share of a column that may be missing."""
ENVIRONMENT = "environment"
"""The name of the column that environments get which come beside a table."""
# Imputation: rounds of predicting the gaps, and the ridge that keeps the predictions tame, in units of the variances.
IMPUTATION_ROUNDS = 10
IMPUTATION_RIDGE = 0.01


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
        Values that count as missing, such as "?" or -999, beside empty cells and the usual NA, NaN, null.
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
        none; or a table of true and false, a column for each variable; or the name of a column of the table with such
        labels, which is then no variable.
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
    markers = tuple(str(marker).strip() for marker in _several(na, "na"))
    read = as_frame(source, FileOptions(delimiter, decimal, sheet, header, markers, progress))
    if environments is not None and not isinstance(environments, str):
        read, environments = _with_environments(read, environments), ENVIRONMENT
    names = _names(read)
    check_duplicates(names.used, "The table")
    chosen = names.choose(columns, drop)
    if isinstance(interventions, str):
        (labels,) = names.places([interventions])
        interventions = [None if str(label).strip() in markers else label for label in read.cells(labels)]
        chosen = [place for place in chosen if place != labels]
    environment = None if environments is None else names.places([environments])[0]
    if environment is not None and environment not in chosen:
        chosen.append(environment)
    names.check(chosen)
    _check_size(read, [names.used[place] for place in chosen])

    said = _declared(kinds, ordered, names, environment)
    usual = CellOptions(read.decimal, markers, "levels" in abilities)
    # Column by column into their place, so that a long table is not there twice.
    values = room_for((read.observations, len(chosen)), np.float64)
    usable: list[NumberColumn] = []
    problems: list[Problem] = []
    for place in chosen:
        column = column_as_numbers(
            read.cells(place), names.used[place], read.where, replace(usual, **said.get(place, {}))
        )
        if isinstance(column, Problem):
            problems.append(column)
            continue
        values[:, len(usable)] = column.numbers
        usable.append(replace(column, numbers=values[:, len(usable)]))
    values = values[:, : len(usable)]
    # A table knows what its columns hold, unless the caller knows better.
    known = {column.name: column for column in read.columns if column.name not in {names.used[each] for each in said}}
    draft = _Draft(
        values=values,
        columns=[known.get(column.name, column.column) for column in usable],
        problems=problems,
    )
    draft.findings += [
        *(finding for finding in read.findings if _concerns(finding, draft.columns)),
        *names.findings(chosen),
        *(Finding("coding", "note", (column.name,), column.note) for column in usable if column.note),
        *_index_columns(values, draft.columns),
    ]
    if isinstance(source, Table):
        draft.carry_over(source)
    if environment is not None:
        draft.set_environment(names.used[environment], read.where)
    if interventions is not None:
        among = [names.used[place] for place in chosen]
        draft.masks = intervened_cells(interventions, among, len(values), read.where)
        if "intervened" not in abilities:
            draft.complaints.append(_cannot_read_experiments(abilities))
    draft.complete(missing, abilities)
    in_trouble = {problem.column for problem in draft.problems}
    constant = constant_columns(draft.values, draft.columns)
    draft.problems += [problem for problem in constant if problem.column not in in_trouble]
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
    environment: Column | None = None

    def carry_over(self, table: Table) -> None:
        """What a table says beside its values."""
        if table.intervened is not None:
            self.masks = dict(zip(table.names, table.intervened.T, strict=True))
        self.environment = next((column for column in self.columns if column.name == table.environment), None)

    def set_environment(self, name: str, where: Callable[[int], str]) -> None:
        """The column of that name tells environments apart; one that cannot be read is a problem already."""
        self.environment = next((column for column in self.columns if column.name == name), None)
        if self.environment is not None:
            check_environment(self.values[:, self.columns.index(self.environment)], self.environment, where)

    def complete(self, missing: str, abilities: Abilities) -> None:
        """Do about missing values what the caller asks for."""
        gaps = np.isnan(self.values)
        if not gaps.any():
            return
        if missing == "auto":
            missing = "model" if "observed" in abilities else "error"
        try:
            if missing == "model" and "observed" not in abilities:
                raise _cannot_read_gaps(abilities)
            completed = _COMPLETE[missing](self.values, self.columns)
        except TableError as error:
            columns = tuple(self.columns[place].name for place in np.flatnonzero(gaps.any(axis=0)).tolist())
            self.complaints.append(Finding("missing", "problem", columns, error.message, error.remedies))
            return
        self.values, self.columns = completed.values, list(completed.columns)
        self.findings += completed.findings
        self.problems += completed.problems
        if completed.rows is not None:
            self.masks = {name: mask[completed.rows] for name, mask in self.masks.items()}

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
        environment = None if self.environment is None else self.environment.name
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
            _refuse_gaps(table.values, table.columns)
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


def _cannot_read_gaps(abilities: Abilities) -> TableError:
    return TableError(f"{capitalized(abilities.model)} cannot read missing values.", [MISSING_DROP, MISSING_IMPUTE])


def _with_environments(read: SourceFrame, labels: Any) -> SourceFrame:
    """The frame with one more column, the environments."""
    if ENVIRONMENT in map(str, read.frame.columns):
        raise TableError(
            f"The table has a column {ENVIRONMENT!r} already: give its name as the environments, or rename it."
        )
    cells = environment_labels(labels, read.observations)
    return replace(read, frame=read.frame.assign(**{ENVIRONMENT: cells}))


def _declared(
    kinds: Mapping[Any, str] | None,
    ordered: Mapping[Any, Sequence[Any]] | None,
    names: _Names,
    environment: int | None,
) -> dict[int, dict[str, Any]]:
    """What the caller says of columns, by their places: `kind` and `order` of CellOptions."""
    check_declared(kinds, ordered)
    said: dict[int, dict[str, Any]] = {}
    for name, kind in (kinds or {}).items():
        said[names.places([name])[0]] = {"kind": kind}
    for name, levels in (ordered or {}).items():
        place = names.places([name])[0]
        if (kind := said.get(place, {}).get("kind", "ordered")) != "ordered":
            raise TableError(
                f"{names.used[place]!r} is said to have an order and to be of the kind {kind}: choose one."
            )
        said[place] = {"order": tuple(str(level).strip() for level in levels)}
    if environment is not None:
        if said.get(environment, {}).get("kind", "category") != "category" or "order" in said.get(environment, {}):
            name = names.used[environment]
            raise TableError(f"The environments in {name!r} are read as a category: they have no other kind.")
        said[environment] = {"kind": "category"}
    return said


def check_declared(kinds: Any, ordered: Any) -> None:
    """TableError unless kinds are a mapping to KINDS, and orders a mapping to two or more different levels."""
    for setting, value, example in (
        ("kinds", kinds, "{'zip': 'category'}"),
        ("ordered", ordered, "{'size': ['small', 'large']}"),
    ):
        if value is not None and not isinstance(value, Mapping):
            raise TableError(f"Expected {setting} as a mapping such as {example}, got {shown(value)}.")
    for name, kind in (kinds or {}).items():
        check_choice(f"the kind of {shown(name)}", kind, KINDS)
    for name, levels in (ordered or {}).items():
        several = [] if isinstance(levels, str | bytes) or not isinstance(levels, Iterable) else list(levels)
        if len({str(level).strip() for level in several}) < max(2, len(several)):
            raise TableError(
                f"Expected the order of {shown(name)} as two or more different levels, the smallest first, got "
                f"{shown(levels)}."
            )


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
        keep = range(len(self.used)) if columns is None else self.places(columns, "columns")
        leave = set() if drop is None else set(self.places(drop, "drop"))
        return [place for place in keep if place not in leave]

    def places(self, asked: Iterable[Any], option: str = "") -> list[int]:
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
                remedies = [Remedy("name", setting=option)] if option else []
                raise TableError(f"{shown(name)} is not in the table: {hint}", remedies)
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


def used_names(read: SourceFrame) -> tuple[str, ...]:
    """The names of all columns as a table has them: text without outer blanks, x1, x2, ... for those without."""
    return _names(read).used


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


# Missing values


@dataclass(frozen=True, eq=False)
class Completed:
    """A table once something was done about its missing values."""

    values: Floats  # (N, P)
    columns: Sequence[Column]
    findings: tuple[Finding, ...] = ()
    problems: tuple[Problem, ...] = ()
    rows: NDArray[np.bool_] | None = None  # the observations that are left; None for all


def _leave_to_network(values: Floats, columns: Sequence[Column]) -> Completed:
    """The table as it is, unless hardly anything is left of a column. The report card says what the gaps cost."""
    gaps = np.isnan(values)
    sparse = np.flatnonzero(gaps.mean(axis=0) > MOST_MISSING).tolist()
    there = (~gaps).sum(axis=0)
    problems = [Problem("sparse", columns[place].name, f"{counted(int(there[place]), 'value')}") for place in sparse]
    return Completed(values, columns, problems=tuple(problems))


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
    complete: NDArray[np.bool_] = np.asarray(~np.isnan(values).any(axis=1))
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
    left, recoded = _without_unused_levels(values[complete], columns)
    return Completed(left, recoded, (Finding("missing", severity, (), message),), rows=complete)


def _without_unused_levels(values: Floats, columns: Sequence[Column]) -> tuple[Floats, list[Column]]:
    """The table with the levels of categories that still occur, numbered anew."""
    values, kept = values.copy(), list(columns)
    for place, column in enumerate(columns):
        if column.kind == "category":
            found, codes = np.unique(values[:, place], return_inverse=True)
            values[:, place] = codes
            kept[place] = replace(column, levels=tuple(column.levels[int(code)] for code in found))
    return values, kept


def _impute(values: Floats, columns: Sequence[Column]) -> Completed:
    """The table with its gaps filled by linear predictions from the other variables, and a note on how many.

    The predictions are conditional means under a Gaussian fitted to the filled table: with Θ the inverse of its
    covariance, E[x_j | rest] = μ_j − Σ_{k≠j} Θ_jk (x_k − μ_k) / Θ_jj. Columns are updated in turn, IMPUTATION_ROUNDS
    times, starting from the column means, and never leave the range that was observed. What lies between two levels is
    a number. Categories take no part: their gaps get the most frequent level.
    """
    categories = np.array([column.kind == "category" for column in columns])
    if categories.any():
        return _impute_apart(values, columns, categories)
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
    return Completed(complete, kinds, (Finding("missing", "warning", filled, message),))


def _impute_apart(values: Floats, columns: Sequence[Column], categories: NDArray[np.bool_]) -> Completed:
    """The table with the gaps of its categories filled by their most frequent levels, those of its numbers as usual."""
    values, kept, findings = values.copy(), list(columns), []
    filled = [place for place in np.flatnonzero(categories).tolist() if np.isnan(values[:, place]).any()]
    for place in filled:
        codes = values[:, place]
        levels, counts = np.unique(codes[~np.isnan(codes)], return_counts=True)
        values[np.isnan(codes), place] = levels[counts.argmax()]
    if filled:
        names = tuple(columns[place].name for place in filled)
        message = (
            f"Missing categories in {listed(names)} were filled with the most frequent one, which weakens what these "
            "columns say of others."
        )
        findings.append(Finding("missing", "warning", names, message))
    numbers = np.flatnonzero(~categories).tolist()
    if np.isnan(values[:, numbers]).any():
        completed = _impute(values[:, numbers], [columns[place] for place in numbers])
        values[:, numbers] = completed.values
        for place, column in zip(numbers, completed.columns, strict=True):
            kept[place] = column
        findings += completed.findings
    return Completed(values, kept, tuple(findings))


_COMPLETE = {
    "model": _leave_to_network,
    "error": _refuse_gaps,
    "drop": _drop_incomplete,
    "impute": _impute,
}
