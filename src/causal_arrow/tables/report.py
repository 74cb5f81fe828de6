"""inspect_table(): the report card of a table: what should make a reader trust the answer more or less."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from causal_arrow.errors import PYTHON, Remedy, Wording
from causal_arrow.tables._facts import (
    COPY,
    FEW_TOGETHER,
    FEW_VALUES,
    TableStatistics,
    derived_columns,
    determined_groups,
    table_statistics,
    times_each_was_set,
)
from causal_arrow.tables._labels import SEPARATOR
from causal_arrow.tables.options import KINDS
from causal_arrow.tables.table import ANY_TABLE, Abilities, Column, Finding, Floats, Table, in_safe_units
from causal_arrow.text import Readable, counted, first_few, in_percent, listed

NOTHING = "Nothing stands out."
SEVERITIES = ("problem", "warning", "note")  # the most serious first

FEW_ROWS = 50  # with fewer, whatever the number of variables, only strong edges are seen
DOMINATED = 0.5  # a column with a value more frequent than this is called lumpy
HEAVY_KURTOSIS = 10.0  # excess kurtosis; a Laplace distribution has 3, an exponential 6
FAR_OUT = 10.0  # standard deviations
MANY_MISSING = 0.5  # share of a column from which on its edges rest on little
RARE_LEVEL = 10  # rows of a level below which it says little
MOSTLY_ONE_VALUE = 0.9  # a column with a value more frequent than this, and fewer others than RARE_LEVEL, hardly varies
MAX_GROUPS = 10  # groups of variables that determine each other; more are mentioned together
ALIKE = 0.35  # mean lag-1 autocorrelation, beyond slow trends, from which neighboring rows are alike
AUTOCORRELATION_ERRORS = 4.5  # standard errors from zero that a column which is named has
TREND_ROWS = (10, 100)  # fewest and most rows on either side whose mean is the trend
TREND_SHARE = 1 / 40  # of all rows
MAX_SORTED = 0.1  # a column that turns around in a smaller share of its steps is sorted
MAX_TREND_ROWS = 20_000  # the first rows of a longer table


@dataclass(frozen=True)
class TrainingRange:
    """The sizes of tables that a network has learned from, smallest and largest."""

    observations: tuple[int, int]
    variables: tuple[int, int]

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> TrainingRange | None:
        """Read the range from the record of a training, as weights keep it; None if it is not there."""
        try:
            shapes = record["shapes"]
            ranges = [
                # A share of the tables may have been longer or wider than the others.
                (int(shapes[usual][0]), max(int(shapes[usual][1]), int(shapes[few][1]) if shapes.get(share) else 0))
                for usual, few, share in (
                    ("observations", "long_observations", "long_share"),
                    ("variables", "wide_variables", "wide_share"),
                )
            ]
        except (KeyError, TypeError, ValueError):
            return None
        return cls(*ranges)


@dataclass(frozen=True, repr=False)
class TableReport(Readable):
    """The size of a table, what its columns hold, and the findings about it, the most serious first.

    Examples
    --------
    >>> from causal_arrow import load_example, read_table
    >>> from causal_arrow.tables.report import inspect_table
    >>> report = inspect_table(read_table(load_example("hospital")))
    >>> report.observations
    800
    """

    observations: int
    """The number of rows."""
    columns: tuple[Column, ...]
    """Name, kind and levels of each variable."""
    findings: tuple[Finding, ...]
    """The findings, the most serious first."""

    def __str__(self) -> str:
        return "\n".join([self.title, *(f"  {each.severity}: {each.worded()}" for each in self.findings)])

    @property
    def variables(self) -> int:
        """The number of columns."""
        return len(self.columns)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The messages that should not be missed: problems and warnings."""
        return tuple(finding.worded() for finding in self.findings if finding.severity != "note")

    @property
    def title(self) -> str:
        """The size of the table, and how many columns of each kind it has unless all hold numbers."""
        size = f"{counted(self.observations, 'observation')} of {counted(self.variables, 'variable')}"
        of_kind = {kind: [column.name for column in self.columns if column.kind == kind] for kind in KINDS}
        nouns = {"number": "numbers", "category": "categories"}
        kinds = [
            counted(len(names), kind, nouns.get(kind, kind)) + ("" if kind == "number" else f" ({listed(names, 4)})")
            for kind, names in of_kind.items()
            if names
        ]
        return size if len(of_kind["number"]) == self.variables else f"{size}: {', '.join(kinds)}"

    def lines(self, wording: Wording = PYTHON) -> list[str]:
        """The title, then one line per finding, which says what to do in the words of Python or the command line."""
        findings = [f"{finding.severity}: {finding.worded(wording)}" for finding in self.findings]
        return [self.title, *(findings or [NOTHING])]

    def to_dict(self, wording: Wording = PYTHON) -> dict[str, Any]:
        """The report as JSON can hold it, with messages in the words of Python or the command line."""
        return {
            "observations": self.observations,
            "variables": self.variables,
            "columns": [
                {"name": column.name, "kind": column.kind, "levels": list(column.levels)} for column in self.columns
            ],
            "findings": [{**finding.to_dict(), "message": finding.worded(wording)} for finding in self.findings],
        }


def inspect_table(
    table: Table, training_range: TrainingRange | None = None, abilities: Abilities = ANY_TABLE
) -> TableReport:
    """Check a table for what may mislead; the report has the most serious findings first.

    Parameters
    ----------
    table
        The table; one that may not be usable at all is read with `read_table(..., strict=False)`.
    training_range
        The sizes of tables that the network has learned from; without it, nothing is said about them.
    abilities
        What the network that will read the table can read besides numbers.

    Examples
    --------
    >>> from causal_arrow import load_example, read_table
    >>> from causal_arrow.tables.report import inspect_table
    >>> report = inspect_table(read_table(load_example("sachs")))
    >>> report.variables
    11
    """
    facts = table_statistics(table, abilities)
    findings = [*table.findings, *(_training_range(table, training_range) if training_range else [])]
    for check in _CHECKS:
        findings.extend(check(facts))
    findings.sort(key=lambda finding: SEVERITIES.index(finding.severity))  # stable: by severity, then as found
    return TableReport(table.observations, table.columns, tuple(findings))


# The checks


def _training_range(table: Table, trained: TrainingRange) -> list[Finding]:
    findings = []
    (fewest, most), n = trained.observations, table.observations
    learned = f"the network has learned from ({fewest:,} to {most:,})"
    rows = counted(n, "observation")
    if n < fewest:
        message = f"{rows} are fewer than {learned}: it may miss edges, and its probabilities are less reliable."
        findings.append(Finding("training_range", "warning", (), message))
    elif n > most:
        message = (
            f"{rows} are more than {learned}. All of them are used; its probabilities may be less extreme than so much "
            "data would justify."
        )
        findings.append(Finding("training_range", "note", (), message))
    (fewest, most), p = trained.variables, table.variables
    if p > most:
        message = (
            f"{counted(p, 'variable')} are more than the network has learned from ({fewest:,} to {most:,}): expect "
            "worse answers, and leave out what you do not need."
        )
        findings.append(Finding("training_range", "warning", (), message))
    return findings


def _few_observations(facts: TableStatistics) -> list[Finding]:
    n, p = facts.table.observations, len(facts.table.names)
    if n >= max(5 * p, FEW_ROWS):
        return []
    severity = "warning" if n < max(2 * p, FEW_ROWS) else "note"
    message = (
        f"{counted(n, 'observation')} are few for {counted(p, 'variable')}: weak edges cannot be distinguished from "
        "chance, so trust only the strongest. More observations or fewer variables help."
    )
    return [Finding("few_observations", severity, (), message)]


def _missing_values(facts: TableStatistics) -> list[Finding]:
    count = int(facts.missing.sum())
    if not count or facts.has_problem("missing"):
        return []
    n = facts.table.observations
    columns = facts.named(facts.missing > 0)
    share = count / (n * len(facts.table.names))
    message = (
        f"{counted(count, 'value')} ({in_percent(share)}) {'is' if count == 1 else 'are'} missing, in "
        f"{listed(columns)}. The network knows which {'cell is' if count == 1 else 'cells are'} missing."
    )
    worst = int(facts.missing.argmax())
    there = n - int(facts.missing[worst])
    message += f" {facts.table.names[worst]!r} has {counted(there, 'value')} in {n:,} observations"
    if facts.together is not None and FEW_TOGETHER <= facts.together[2] < there:
        one, other, both = facts.together
        message += f", and {both:,} have both {one!r} and {other!r}: edges between these two rest on {both:,} rows."
    else:
        message += f": its edges rest on {'that one' if there == 1 else f'those {there:,}'}."
    severity = "warning" if facts.missing.max() > MANY_MISSING * n else "note"
    return [Finding("missing", severity, columns, message)]


def _rarely_together(facts: TableStatistics) -> list[Finding]:
    if facts.together is None or not facts.apart or facts.has_problem("missing"):
        return []
    one, other, both = facts.together
    pair, rows = f"both {one!r} and {other!r}", counted(facts.table.observations, "row")
    how_many, rests = f"Only {both:,} of {rows} {'has' if both == 1 else 'have'}", "mostly on other columns"
    if not both:
        how_many, rests = f"None of {rows} has", "only on other columns"
    message = f"{how_many} {pair}: an edge between them rests {rests}."
    if facts.apart > 1:
        more = facts.apart - 1
        has = "has" if more == 1 else "have"
        message += f" {counted(more, 'more pair')} of columns {has} fewer than {FEW_TOGETHER} rows in common."
    return [Finding("rarely_together", "warning", tuple(sorted((one, other))), message)]


def _marks_of_missing(facts: TableStatistics) -> list[Finding]:
    findings = []
    for mark in dict.fromkeys(facts.markers.values()):
        columns = tuple(name for name, other in facts.markers.items() if other == mark)
        message = (
            f"{mark!r} in {listed(columns)} looks like a code for missing values, but is read as a "
            f"{'level' if any(name in facts.level_counts for name in columns) else 'number'}."
        )
        remedies = (Remedy("na", setting=mark, about="cells in which nothing was recorded"),)
        findings.append(Finding("marks_of_missing", "note", columns, message, remedies))
    return findings


def _nearly_constant(facts: TableStatistics) -> list[Finding]:
    """A warning about columns that are the same in nearly all rows, whatever their kind."""
    different = facts.different
    chosen = (different > 0) & (different < RARE_LEVEL) & (facts.largest_share > MOSTLY_ONE_VALUE)
    if not chosen.any():
        return []
    columns, there = facts.named(chosen), facts.observed
    counts = [f"{different[index]:,} of {there[index]:,}" for index in np.flatnonzero(chosen).tolist()]
    others = [f"{name!r} in all except {count}" for name, count in zip(columns[1:], counts[1:], strict=True)]
    more = f", {first_few(others, 5, 'columns')}" if others else ""
    it, its = ("it", "its") if len(columns) == 1 else ("them", "their")
    message = (
        f"{columns[0]!r} has the same value in all except {counts[0]} observations{more}. Little can be learned about "
        f"{it}: those few observations decide {its} edges."
    )
    return [Finding("nearly_constant", "warning", columns, message, (Remedy("drop", columns),))]


def _labels_of_experiments(facts: TableStatistics) -> list[Finding]:
    """A warning about columns whose every value names other columns, as labels of experiments do."""
    names = set(facts.table.names)
    findings = []
    for column in facts.table.columns:
        named = {name.strip() for level in column.levels for name in level.split(SEPARATOR)}
        if named and named <= names - {column.name}:
            message = (
                f"Every value of {column.name!r} names other columns, such as {sorted(named)[0]!r}. If it says which "
                "variables an experiment has set, it is not a variable."
            )
            remedies = (Remedy("interventions", (column.name,)), Remedy("drop", (column.name,)))
            findings.append(Finding("labels_of_experiments", "warning", (column.name,), message, remedies))
    return findings


def _rare_levels(facts: TableStatistics) -> list[Finding]:
    rare = {name: int((counts < RARE_LEVEL).sum()) for name, counts in facts.level_counts.items()}
    columns = tuple(name for name, count in rare.items() if count)
    if not columns:
        return []
    some = first_few([f"{name!r} {rare[name]} of {len(facts.level_counts[name])}" for name in columns], 6, "columns")
    message = (
        f"Levels with fewer than {RARE_LEVEL} observations each: {some}. They carry little information; "
        "consider grouping them."
    )
    return [Finding("rare_levels", "note", columns, message)]


def _copies(facts: TableStatistics) -> list[Finding]:
    """A warning for each group of copies."""
    findings, times_set = [], times_each_was_set(facts.table)
    for group in facts.copies:
        names = tuple(facts.table.names[index] for index in group)
        kinds = {facts.table.columns[index].kind == "category" for index in group}
        linear = bool((np.abs(facts.correlation[np.ix_(group, group)]) >= COPY).all())
        how = (
            "the same category under other names"
            if kinds == {True}
            else "copies of each other up to scale"
            if kinds == {False} and linear
            else "the same variable, with another name for each value"
        )
        others = "the other" if len(names) == 2 else "the others"
        if len(set(times_set[group].tolist())) == 1:
            message = (
                f"{listed(names)} are {how}: no data can show which of them causes what. The graph shows {names[0]!r} "
                f"with all edges and {others} joined to it; probabilities are shared evenly among them."
            )
        else:
            message = (
                f"{listed(names)} are {how}, also where experiments set {names[0]!r}: so it counts as the cause of "
                f"{others}, and has all edges to other variables. If they are one variable, mark all of them as set, "
                "or keep only one."
            )
        findings.append(Finding("copies", "warning", names, message, (Remedy("drop", names[1:]),)))
    return findings


def groups_of_copies(findings: Iterable[Finding]) -> list[tuple[str, ...]]:
    """The columns that findings call copies of each other; the first of each group is the one to read."""
    return [finding.columns for finding in findings if finding.kind == "copies"]


def _collinear(facts: TableStatistics) -> list[Finding]:
    # Copies have a finding of their own: one of each is enough here.
    redundant = {index for group in facts.copies for index in group[1:]}
    kept = [index for index in np.flatnonzero(facts.varies).tolist() if index not in redundant]
    correlation, rows = facts.correlation[np.ix_(kept, kept)], facts.table.observations
    if facts.missing[kept].any():  # a sum with a missing part is not that sum
        values = facts.table.values[:, kept]
        complete = in_safe_units(values)[0][~np.isnan(values).any(axis=1)]
        if len(complete) >= max(FEW_ROWS, 2 * len(kept)) and (complete.std(axis=0) > 0).all():
            correlation, rows = np.corrcoef(complete.T), len(complete)
    groups, others = determined_groups(correlation, rows, MAX_GROUPS)
    findings = []
    for group in groups:
        columns = tuple(facts.table.names[kept[index]] for index in group)
        message = (
            f"{listed(columns)} determine each other almost exactly (a linear combination of them is nearly "
            "constant). Edges and directions among them are little better than guesses; consider leaving out one, such "
            "as a total of others."
        )
        findings.append(Finding("collinear", "warning", columns, message))
    if others:
        columns = tuple(facts.table.names[kept[index]] for index in others)
        message = f"More groups that determine each other almost exactly are among {listed(columns)}."
        findings.append(Finding("collinear", "warning", columns, message))
    return findings


def _derived(facts: TableStatistics) -> list[Finding]:
    """A warning for each column that was computed from another: `low` from `weight < 2500`, a region from a town."""
    table, copies = facts.table, {index for group in facts.copies for index in group[1:]}
    findings = []
    for derived, source in derived_columns(table).items():
        if derived in copies:
            continue
        name, origin = table.names[derived], table.names[source]
        how = (
            f"Every level of {origin!r} has one value of {name!r}"
            if table.columns[source].kind == "category"
            else f"Each value of {name!r} is a range of {origin!r}"
        )
        message = (
            f"{how}, as if {name!r} were computed from {origin!r}. Then other edges of {name!r} are little better than "
            "guesses."
        )
        findings.append(Finding("derived", "warning", (name, origin), message, (Remedy("drop", (name,)),)))
    return findings


def _heavy_tails(facts: TableStatistics) -> list[Finding]:
    extreme = (facts.kurtosis > HEAVY_KURTOSIS) | (facts.farthest > FAR_OUT)
    heavy = facts.varies & extreme & (facts.distinct > FEW_VALUES)
    if not heavy.any():
        return []
    columns = facts.named(heavy)
    worst = int(np.argmax(np.where(heavy, facts.farthest, 0)))
    message = (
        f"{listed(columns)} {'has' if len(columns) == 1 else 'have'} heavy tails ({facts.table.names[worst]!r} reaches "
        f"{facts.farthest[worst]:.0f} standard deviations): a few extreme observations can decide an edge. Check them."
    )
    if skewed := facts.named(heavy & facts.table.log_candidates):
        verb = "is" if len(skewed) == 1 else "are"
        message += f" {listed(skewed)} {verb} skewed and may need a log transform; both are tried by default."
    return [Finding("heavy_tails", "warning", columns, message)]


def _discrete(facts: TableStatistics) -> list[Finding]:
    as_such = ["levels" in facts.abilities and column.kind != "number" for column in facts.table.columns]
    varies = facts.varies & ~np.array(as_such, dtype=bool)
    kinds = (
        ("binary", varies & (facts.distinct == 2), "two values", ""),
        ("discrete", varies & (facts.distinct > 2) & (facts.distinct <= FEW_VALUES), "few distinct values", ""),
        (
            "lumpy",
            varies & (facts.distinct > FEW_VALUES) & (facts.largest_share > DOMINATED),
            "the same value in most observations",
            " Often such a value, for example zero, means something other than a small number.",
        ),
    )
    findings = []
    for kind, chosen, what, more in kinds:
        if chosen.any():
            columns = facts.named(chosen)
            has, is_ = ("has", "is") if len(columns) == 1 else ("have", "are")
            message = f"{listed(columns)} {has} {what} and {is_} used as numbers. "
            remedies: tuple[Remedy, ...] = ()
            if "levels" in facts.abilities:
                message += f"This is correct if they are amounts.{more}"
                if kind == "discrete":
                    remedies = (Remedy("kind", columns[:1], "category", about="codes"),)
            else:
                message += (
                    "The network has mostly learned from continuous variables: trust such edges, and above all their "
                    f"directions, less.{more}"
                )
            findings.append(Finding(kind, "note", columns, message, remedies))
    return findings


def _ordered_in_time(facts: TableStatistics) -> list[Finding]:
    """A warning where neighboring rows are alike in most columns, beyond what sorting explains.

    Sorting independent rows gives slow trends, which are taken out, and columns that hardly ever turn around. A single
    such column does no harm: its correlation with a column of independent cells has the usual error.
    """
    needed = AUTOCORRELATION_ERRORS / np.sqrt(facts.neighbors + 1)
    if not (facts.varies & (facts.autocorrelation > needed)).any():
        return []
    unsorted = facts.varies.copy()
    found = np.zeros(len(unsorted))
    for index in np.flatnonzero(facts.varies).tolist():
        column = in_safe_units(facts.table.values[:MAX_TREND_ROWS, [index]])[0][:, 0]
        unsorted[index] = not _is_sorted(column)
        found[index] = _autocorrelation_beyond_trend(column)
    alike = unsorted & (found > needed)
    if alike.sum() < min(2, max(1, unsorted.sum())) or found[unsorted].mean() < ALIKE:
        return []
    columns = facts.named(alike)
    message = (
        f"Neighboring rows resemble each other in {listed(columns, 10)}, and not because the table is sorted: they may "
        "be steps in time, or several rows of one unit. The network takes rows as independent, so its probabilities "
        "are overconfident here."
    )
    return [Finding("time_order", "warning", columns, message)]


def _is_sorted(column: Floats) -> bool:
    """Whether a column (N,) hardly ever turns around from row to row, as a sorted one or a steady trend."""
    steps = np.sign(np.diff(column[~np.isnan(column)]))
    steps = steps[steps != 0]
    turns = int((steps[1:] != steps[:-1]).sum())
    return turns <= MAX_SORTED * max(len(steps), FEW_ROWS)


def _autocorrelation_beyond_trend(column: Floats) -> float:
    """Correlation of each row with the next, after subtracting the mean of the rows around it."""
    holes = np.isnan(column)
    values = np.where(holes, np.nanmean(column), column)
    count = len(values)
    reach = int(np.clip(count * TREND_SHARE, *TREND_ROWS))
    sums = np.concatenate([[0.0], np.cumsum(values)])
    rows = np.arange(count)
    low, high = np.maximum(rows - reach, 0), np.minimum(rows + reach + 1, count)
    left = np.where(holes, 0.0, values - (sums[high] - sums[low]) / (high - low))
    pairs = int((~holes[1:] & ~holes[:-1]).sum())
    variance = float(left @ left) / max(count - int(holes.sum()), 1)
    return float(left[1:] @ left[:-1]) / max(pairs * variance, 1e-300)


_CHECKS: tuple[Callable[[TableStatistics], list[Finding]], ...] = (
    _missing_values,
    _rarely_together,
    _marks_of_missing,
    _labels_of_experiments,
    _copies,
    _collinear,
    _derived,
    _few_observations,
    _ordered_in_time,
    _heavy_tails,
    _nearly_constant,
    _discrete,
    _rare_levels,
)
