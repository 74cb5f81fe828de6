"""The report card of a table: what about it should make a reader trust the answer more or less, in plain words."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from causal_arrow.errors import PYTHON, Remedy, Wording
from causal_arrow.tables.dependencies import determined_groups, related_groups
from causal_arrow.tables.table import ANY_TABLE, KINDS, Abilities, Column, Finding, Table, in_safe_units
from causal_arrow.text import counted, listed

# N observations, P variables

Floats = NDArray[np.float64]

SEVERITIES = ("problem", "warning", "note")  # the most serious first

OBSERVATIONS_PER_CHUNK = 8192
FEW_OBSERVATIONS = 50  # with fewer, whatever the number of variables, only strong edges are seen
FEW_VALUES = 10  # a column with no more distinct values than this is called discrete
DOMINATED = 0.5  # ... and one with a value more frequent than this, lumpy
HEAVY_KURTOSIS = 10.0  # excess kurtosis; a Laplace distribution has 3, an exponential 6
FAR_OUT = 10.0  # standard deviations
COPY = 1 - 1e-9  # correlation
MANY_MISSING = 0.5  # share of a column from which on its edges rest on little
FEW_TOGETHER = 20  # observations that have both of two variables, below which little is known of the two
MOST_CLASSES = 100  # different values up to which columns are compared value by value, whatever they are called
ALIKE_DIGITS = 12  # decimal digits, of the largest value in a column, to which equal values agree
# What people write for "missing" beside the usual NA: as levels, in lower case, and as numbers.
WORDS_FOR_MISSING = frozenset(
    {"?", "??", "-", "--", ".", "..", "*", "missing", "unknown", "na", "n.a.", "-9", "-99", "-999", "-9999"}
)
MOST_MARKED = 0.2  # share of a column that such a mark may have: what is more frequent is a value
NUMBERS_FOR_MISSING = frozenset(sign * (10.0**digits - 1) for sign in (1, -1) for digits in range(2, 7))
RARE_LEVEL = 10  # observations of a category below which it says little
MOST_GROUPS = 10  # of variables that determine each other, before the others are mentioned together
AUTOCORRELATION = 0.1  # smallest lag-1 autocorrelation worth a word ...
AUTOCORRELATION_ERRORS = 4.5  # ... if it is this many standard errors from zero


@dataclass(frozen=True)
class TrainingRange:
    """The sizes of tables that a network has learned from, smallest and largest."""

    observations: tuple[int, int]
    variables: tuple[int, int]

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> TrainingRange | None:
        """The range in the record of a training, as weights keep it; None if it does not say."""
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


@dataclass(frozen=True)
class TableReport:
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
    """How many observations there are."""
    columns: tuple[Column, ...]
    """What each variable is."""
    findings: tuple[Finding, ...]
    """What was noticed, the most serious first."""

    @property
    def variables(self) -> int:
        """How many variables there are.

        Returns
        -------
        int
            Columns of the table.

        Examples
        --------
        >>> report.variables
        7
        """
        return len(self.columns)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The messages that should not be missed: problems and warnings.

        Returns
        -------
        tuple of str
            One per finding that is more than a note.

        Examples
        --------
        >>> report.warnings
        ()
        """
        return tuple(finding.worded() for finding in self.findings if finding.severity != "note")

    @property
    def title(self) -> str:
        """The size of the table, and how many columns of each kind it has unless all hold numbers.

        Returns
        -------
        str
            One line.

        Examples
        --------
        >>> report.title[:32]
        '800 observations of 7 variables:'
        """
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
        """The report as lines of plain text.

        Parameters
        ----------
        wording
            `causal_arrow.errors.PYTHON` or `COMMAND_LINE`, in whose words the report says what to do.

        Returns
        -------
        list of str
            The title, then one line per finding.

        Examples
        --------
        >>> len(report.lines()) == 1 + len(report.findings)
        True
        """
        findings = [f"{finding.severity}: {finding.worded(wording)}" for finding in self.findings]
        return [self.title, *(findings or ["Nothing stands out."])]

    def to_dict(self, wording: Wording = PYTHON) -> dict[str, Any]:
        """The report as JSON can hold it.

        Parameters
        ----------
        wording
            `causal_arrow.errors.PYTHON` or `COMMAND_LINE`, in whose words messages say what to do.

        Returns
        -------
        dict
            `observations`, `variables`, `columns` and `findings`.

        Examples
        --------
        >>> report.to_dict()["variables"]
        7
        """
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
    """The report card of a table.

    Parameters
    ----------
    table
        The table; one that may not be usable at all is read with `read_table(..., strict=False)`.
    training_range
        The sizes of tables that the network has learned from; without it, nothing is said about them.
    abilities
        What the network that will read the table can read beside numbers.

    Returns
    -------
    TableReport
        The findings, the most serious first.

    Examples
    --------
    >>> from causal_arrow import load_example, read_table
    >>> from causal_arrow.tables.report import inspect_table
    >>> report = inspect_table(read_table(load_example("sachs")))
    >>> report.variables
    11
    """
    facts = _gather(table, abilities)
    findings = [*table.findings, *(_training_range(table, training_range) if training_range else [])]
    for check in _CHECKS:
        findings.extend(check(facts))
    findings.sort(key=lambda finding: SEVERITIES.index(finding.severity))  # stable: by severity, then as found
    return TableReport(table.observations, table.columns, tuple(findings))


@dataclass(frozen=True, eq=False)
class _Facts:
    """Statistics of a table, one number for each variable (P,) unless said otherwise, over the values there are."""

    columns: tuple[Column, ...]
    observations: int
    abilities: Abilities
    known: frozenset[str]  # kinds of problems that are already among the findings
    level_counts: dict[str, NDArray[np.intp]]  # of categories, by name: how often each level occurs
    copies: list[list[int]]  # of each other, up to scale and sign or the names of values; the one that is read first
    together: tuple[int, int, int] | None  # the two variables least often observed together, and how often
    apart: int  # pairs of variables that are hardly observed together, see FEW_TOGETHER
    markers: dict[str, str]  # values that look like marks of missing ones, by the name of the column
    missing: NDArray[np.intp]
    varies: NDArray[np.bool_]
    distinct: NDArray[np.intp]  # number of distinct values, or FEW_VALUES + 1 for more
    largest_share: Floats  # of a single value, where above one half
    log_candidate: NDArray[np.bool_]  # whether its logarithm is worth trying
    kurtosis: Floats  # 0 for a normal distribution
    farthest: Floats  # largest distance from the mean in standard deviations
    autocorrelation: Floats  # of each observation with the next
    neighbors: Floats  # how many neighbors both have a value
    correlation: Floats  # (P, P), missing values at the mean

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def named(self, chosen: NDArray[Any]) -> tuple[str, ...]:
        """The names of the variables a mask chooses."""
        return tuple(self.names[place] for place in np.flatnonzero(chosen).tolist())


def _gather(table: Table, abilities: Abilities) -> _Facts:
    p, n = table.variables, table.observations
    missing = np.array([np.isnan(column).sum() for column in table.values.T], dtype=np.intp)
    mean, spread = np.zeros(p), np.zeros(p)
    exponents = np.zeros(p, dtype=np.int32)
    counts: list[tuple[int, float]] = []
    categories = np.array([column.kind == "category" for column in table.columns], dtype=bool)
    partitions: dict[bytes | None, list[int]] = {}
    for place in range(p):
        # Every statistic below is the same in all units.
        column, exponents[place : place + 1] = in_safe_units(table.values[:, [place]])
        mean[place] = np.nanmean(column)
        spread[place] = np.nanstd(column) * np.sqrt(1 - missing[place] / n)  # with the missing values at the mean
        counts.append(_distinct_values(column[:, 0]))
        partitions.setdefault(_partition(column[:, 0], categories[place]), []).append(place)
    varies = (spread > 1e-13 * np.abs(mean)) & ~categories  # codes of categories have no size
    scale = np.where(varies, spread, 1.0)

    correlation = np.zeros((p, p))
    kurtosis, farthest, products, neighbors = (np.zeros(p) for _ in range(4))
    last, last_there = np.zeros(p), np.zeros(p, dtype=bool)
    for start in range(0, n, OBSERVATIONS_PER_CHUNK):
        values = np.ldexp(table.values[start : start + OBSERVATIONS_PER_CHUNK], -exponents)
        there = ~np.isnan(values)
        z = np.nan_to_num((values - mean) / scale)  # (chunk, P)
        correlation += z.T @ z
        squares = z * z
        kurtosis += np.einsum("np,np->p", squares, squares)
        farthest = np.maximum(farthest, np.abs(z).max(axis=0))
        products += last * z[0] + np.einsum("np,np->p", z[:-1], z[1:])
        neighbors += (last_there & there[0]) + (there[:-1] & there[1:]).sum(axis=0)
        last, last_there = z[-1], there[-1]

    correlation /= n
    observed = 1 - missing / n
    level_counts = {}
    for place in np.flatnonzero(categories).tolist():
        codes = table.values[:, place]
        level_counts[table.names[place]] = np.unique(codes[~np.isnan(codes)], return_counts=True)[1]
    partitions.pop(None, None)
    alike = (np.abs(correlation) >= COPY) & varies & varies[:, None]
    for group in partitions.values():
        alike[np.ix_(group, group)] = True
    same_partition = {place: group for group in partitions.values() for place in group}
    together, apart = _least_together(table.values) if missing.any() else (None, 0)
    return _Facts(
        columns=table.columns,
        observations=n,
        abilities=abilities,
        level_counts=level_counts,
        copies=[copies for group in related_groups(alike) for copies in _exact_copies(table, group, same_partition)],
        together=together,
        apart=apart,
        markers={column.name: mark for column in table.columns if (mark := _mark_of_missing(table, column))},
        known=frozenset(finding.kind for finding in table.findings if finding.severity == "problem"),
        missing=missing,
        varies=varies,
        distinct=np.array([distinct for distinct, _ in counts], dtype=np.intp),
        largest_share=np.array([share for _, share in counts]),
        log_candidate=table.log_candidates,
        # With missing values at the mean, the rest lies farther out by the root of the share that there is.
        kurtosis=kurtosis * observed / n - 3,
        farthest=farthest * np.sqrt(observed),
        autocorrelation=products * observed / np.maximum(neighbors, 1),
        neighbors=neighbors,
        correlation=correlation,
    )


def _partition(column: Floats, category: bool) -> bytes | None:
    """Digits that columns share whose equal values stand in the same observations; None for one with few equal values.

    Numbers of which most occur once or twice would be alike whatever they say.
    """
    there = ~np.isnan(column)
    values = column[there]
    if not category:
        few = min(MOST_CLASSES, len(values) // 2)
        values = np.round(values / np.abs(values).max(initial=1e-300), ALIKE_DIGITS)
        if len(np.unique(values[:1000])) > few or len(np.unique(values)) > few:
            return None
    _, first, same = np.unique(values, return_index=True, return_inverse=True)
    classes = np.full(len(column), -1, dtype=np.int64)
    classes[there] = first[same]
    return hashlib.sha256(classes.tobytes()).digest()


def _mark_of_missing(table: Table, column: Column) -> str:
    """A value of a column that looks like a mark of missing ones; empty if there is none."""
    values = table.values[:, table.columns.index(column)]
    values = values[~np.isnan(values)]
    if column.kind == "category":
        counts = np.bincount(values.astype(np.intp), minlength=len(column.levels))
        marks = [
            (-count, level)
            for level, count in zip(column.levels, counts.tolist(), strict=True)
            if level.lower() in WORDS_FOR_MISSING and count <= MOST_MARKED * len(values)
        ]
        return min(marks)[1] if marks else ""
    if column.kind != "number":
        return ""
    low, high = float(values.min()), float(values.max())
    for mark, sign in ((low, 1), (high, -1)):
        others = values[values != mark] if mark in NUMBERS_FOR_MISSING else values[:0]
        marked = len(values) - len(others)
        if len(np.unique(others[:1000])) < 2 or not 2 <= marked <= MOST_MARKED * len(values):
            continue
        nearest, farthest = sorted((float(others.min()), float(others.max())), reverse=sign < 0)
        stands_apart = abs(nearest - mark) > abs(farthest - nearest)
        if stands_apart or (mark < 0 <= nearest):
            return f"{mark:.0f}"
    return ""


def _least_together(values: Floats) -> tuple[tuple[int, int, int] | None, int]:
    """The two variables that the fewest observations have both, and how many do; and how many pairs have few."""
    n, p = values.shape
    if p < 2:
        return None, 0
    jointly = n * np.eye(p)
    for start in range(0, n, OBSERVATIONS_PER_CHUNK):
        observed = (~np.isnan(values[start : start + OBSERVATIONS_PER_CHUNK])).astype(np.float64)
        jointly += observed.T @ observed
    one, other = np.unravel_index(int(jointly.argmin()), jointly.shape)
    apart = int((jointly < FEW_TOGETHER).sum()) // 2 if n >= FEW_TOGETHER else 0
    return (int(one), int(other), round(float(jointly[one, other]))), apart


def _distinct_values(column: Floats) -> tuple[int, float]:
    """How many distinct values a column has, counted to FEW_VALUES + 1, and the share of its median value."""
    column = column[~np.isnan(column)]
    distinct = len(np.unique(column[:500]))
    if distinct <= FEW_VALUES:
        distinct = min(len(np.unique(column)), FEW_VALUES + 1)
    # A value more frequent than one half is the median.
    return min(distinct, FEW_VALUES + 1), float(np.mean(column == np.quantile(column, 0.5, method="lower")))


# The checks


def _training_range(table: Table, trained: TrainingRange) -> list[Finding]:
    findings = []
    (fewest, most), n = trained.observations, table.observations
    learned = f"the network has learned from ({fewest:,} to {most:,})"
    if n < fewest:
        message = (
            f"{counted(n, 'observation')} are fewer than {learned}: expect it to miss edges, and its probabilities to "
            "be less reliable."
        )
        findings.append(Finding("training_range", "warning", (), message))
    elif n > most:
        message = (
            f"{counted(n, 'observation')} are more than {learned}. All of them are used; its probabilities may be less "
            "sharp than so much data would allow."
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


def _few_observations(facts: _Facts) -> list[Finding]:
    n, p = facts.observations, len(facts.names)
    if n >= max(5 * p, FEW_OBSERVATIONS):
        return []
    severity = "warning" if n < max(2 * p, FEW_OBSERVATIONS) else "note"
    message = (
        f"{counted(n, 'observation')} are few for {counted(p, 'variable')}: weak edges cannot be told from chance, so "
        "read the strongest only. More observations or fewer variables help."
    )
    return [Finding("few_observations", severity, (), message)]


def _missing_values(facts: _Facts) -> list[Finding]:
    count = int(facts.missing.sum())
    if not count or "missing" in facts.known:
        return []
    n = facts.observations
    columns = facts.named(facts.missing > 0)
    share = count / (n * len(facts.names))
    message = (
        f"{counted(count, 'value')} ({share:.1%}) {'is' if count == 1 else 'are'} missing, in {listed(columns)}. The "
        f"network knows which {'cell is' if count == 1 else 'cells are'} missing."
    )
    worst = int(facts.missing.argmax())
    there = n - int(facts.missing[worst])
    message += f" {facts.names[worst]!r} has {counted(there, 'value')} in {n:,} observations"
    if facts.together is not None and FEW_TOGETHER <= facts.together[2] < there:
        one, other, both = facts.together
        message += (
            f", and {both:,} have both {facts.names[one]!r} and {facts.names[other]!r}: edges between these two rest "
            f"on {both:,} rows."
        )
    else:
        message += f": its edges rest on {'that one' if there == 1 else f'those {there:,}'}."
    severity = "warning" if facts.missing.max() > MANY_MISSING * n else "note"
    return [Finding("missing", severity, columns, message)]


def _rarely_together(facts: _Facts) -> list[Finding]:
    if facts.together is None or not facts.apart or "missing" in facts.known:
        return []
    one, other, both = facts.together
    columns = tuple(sorted((facts.names[one], facts.names[other])))
    pair, rows = f"both {facts.names[one]!r} and {facts.names[other]!r}", counted(facts.observations, "row")
    how_many, rests = f"Only {both:,} of {rows} {'has' if both == 1 else 'have'}", "mostly on other columns"
    if not both:
        how_many, rests = f"None of {rows} has", "on other columns alone"
    message = f"{how_many} {pair}: an edge between them rests {rests}."
    if facts.apart > 1:
        more = facts.apart - 1
        has = "has" if more == 1 else "have"
        message += f" {counted(more, 'more pair')} of columns {has} fewer than {FEW_TOGETHER} rows in common."
    return [Finding("rarely_together", "warning", columns, message)]


def _marks_of_missing(facts: _Facts) -> list[Finding]:
    findings = []
    for mark in dict.fromkeys(facts.markers.values()):
        columns = tuple(name for name, other in facts.markers.items() if other == mark)
        message = (
            f"{mark!r} in {listed(columns)} looks like a mark of missing values, and is read as a "
            f"{'level' if any(name in facts.level_counts for name in columns) else 'number'}."
        )
        remedies = (Remedy("na", setting=mark, about="cells in which nothing was recorded"),)
        findings.append(Finding("marks_of_missing", "note", columns, message, remedies))
    return findings


def _rare_levels(facts: _Facts) -> list[Finding]:
    rare = {name: int((counts < RARE_LEVEL).sum()) for name, counts in facts.level_counts.items()}
    columns = tuple(name for name, count in rare.items() if count)
    if not columns:
        return []
    some = ", ".join(f"{name!r} {rare[name]} of {len(facts.level_counts[name])}" for name in columns[:6])
    rest = f" and {len(columns) - 6} more columns" if len(columns) > 6 else ""
    message = (
        f"Categories with fewer than {RARE_LEVEL} observations each: {some}{rest}. They say little; grouping them with "
        "others may help."
    )
    return [Finding("rare_levels", "note", columns, message)]


def _copies(facts: _Facts) -> list[Finding]:
    findings = []
    for group in facts.copies:
        columns = tuple(facts.names[place] for place in group)
        of_kind = {facts.columns[place].kind == "category" for place in group}
        linear = bool((np.abs(facts.correlation[np.ix_(group, group)]) >= COPY).all())
        how = (
            "the same category under other names"
            if of_kind == {True}
            else "copies of each other up to scale"
            if of_kind == {False} and linear
            else "the same variable, with another name for each value"
        )
        others = "the other" if len(columns) == 2 else "the others"
        message = (
            f"{listed(columns)} are {how}: no data can tell which of them causes what. The graph shows {columns[0]!r} "
            f"with all edges and {others} joined to it; probabilities are shared evenly among them."
        )
        findings.append(Finding("copies", "warning", columns, message, (Remedy("drop", columns[1:]),)))
    return findings


def groups_of_copies(findings: Iterable[Finding]) -> list[tuple[str, ...]]:
    """The columns that findings say are copies of each other; the first of each group is the one to read."""
    return [finding.columns for finding in findings if finding.kind == "copies"]


def _collinear(facts: _Facts) -> list[Finding]:
    # Copies have a finding of their own: one of each is enough here.
    redundant = {place for group in facts.copies for place in group[1:]}
    kept = [place for place in np.flatnonzero(facts.varies).tolist() if place not in redundant]
    groups, others = determined_groups(facts.correlation[np.ix_(kept, kept)], facts.observations, MOST_GROUPS)
    findings = []
    for group in groups:
        columns = tuple(facts.names[kept[place]] for place in group)
        message = (
            f"{listed(columns)} determine each other almost exactly (a linear combination of them is all but "
            "constant). Edges and directions among them are close to guesswork; consider leaving out one, such as a "
            "total of others."
        )
        findings.append(Finding("collinear", "warning", columns, message))
    if others:
        columns = tuple(facts.names[kept[place]] for place in others)
        message = f"More groups that determine each other almost exactly are among {listed(columns)}."
        findings.append(Finding("collinear", "warning", columns, message))
    return findings


def _heavy_tails(facts: _Facts) -> list[Finding]:
    extreme = (facts.kurtosis > HEAVY_KURTOSIS) | (facts.farthest > FAR_OUT)
    heavy = facts.varies & extreme & (facts.distinct > FEW_VALUES)
    if not heavy.any():
        return []
    columns = facts.named(heavy)
    worst = int(np.argmax(np.where(heavy, facts.farthest, 0)))
    message = (
        f"{listed(columns)} {'has' if len(columns) == 1 else 'have'} heavy tails ({facts.names[worst]!r} reaches "
        f"{facts.farthest[worst]:.0f} standard deviations): a few extreme observations can decide an edge. Check them."
    )
    skewed = facts.named(heavy & facts.log_candidate)
    if skewed:
        message += f" {listed(skewed)}, of one sign and skewed, may belong on a log scale; by default both are tried."
    return [Finding("heavy_tails", "warning", columns, message)]


def _discrete(facts: _Facts) -> list[Finding]:
    as_such = ["levels" in facts.abilities and column.kind != "number" for column in facts.columns]
    varies = facts.varies & ~np.array(as_such, dtype=bool)
    kinds = (
        ("binary", varies & (facts.distinct == 2), "two values", ""),
        ("discrete", varies & (facts.distinct > 2) & (facts.distinct <= FEW_VALUES), "few distinct values", ""),
        (
            "lumpy",
            varies & (facts.distinct > FEW_VALUES) & (facts.largest_share > DOMINATED),
            "the same value in most observations",
            " Often such a value, for example zero, means something else than a small number.",
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
                message += f"Right for amounts.{more}"
                if kind == "discrete":
                    remedies = (Remedy("kind", columns[:1], "category", about="codes"),)
            else:
                message += (
                    "The network has mostly learned from continuous variables: trust such edges, and above all their "
                    f"directions, less.{more}"
                )
            findings.append(Finding(kind, "note", columns, message, remedies))
    return findings


def _ordered_in_time(facts: _Facts) -> list[Finding]:
    needed = np.maximum(AUTOCORRELATION, AUTOCORRELATION_ERRORS / np.sqrt(facts.neighbors + 1))
    chosen = facts.varies & (facts.autocorrelation > needed)
    if not chosen.any():
        return []
    columns = facts.named(chosen)
    message = (
        f"Neighboring observations resemble each other in {listed(columns)}, as in a time series or a sorted table. "
        "The network takes observations as independent: there is less information than their number says, and "
        "probabilities are too confident."
    )
    return [Finding("time_order", "warning", columns, message)]


_CHECKS: tuple[Callable[[_Facts], list[Finding]], ...] = (
    _missing_values,
    _rarely_together,
    _marks_of_missing,
    _copies,
    _collinear,
    _few_observations,
    _ordered_in_time,
    _heavy_tails,
    _discrete,
    _rare_levels,
)


READ_FIRST = ("category", "ordered", "binary", "number")
"""Of copies of different kinds, that of the first of these is read: what it takes for granted is true of all."""


def _exact_copies(table: Table, group: Sequence[int], same_partition: Mapping[int, list[int]]) -> list[list[int]]:
    """The columns of a group that are copies of its first, and so on with the others; no column alone.

    The first is the environment, else by kind (READ_FIRST), then by how evenly its numbers lie, then by name: not by
    the order of columns, nor by their names where it matters which one is read. Columns are copies if equal values
    stand in the same observations (`same_partition`). Numbers that are correlated perfectly but for rounding need not
    be: an outlier may be all that they share. Copies also have the same order. And they were set in the same
    experiments.
    """

    def key(place: int) -> tuple[bool, int, float, str]:
        column = table.columns[place]
        uneven = _unevenness(table.values[:, place]) if column.kind == "number" else 0.0
        return column.name != table.environment, READ_FIRST.index(column.kind), uneven, column.name

    left = sorted(group, key=key)
    found = []
    while left:
        alike = same_partition.get(left[0], ())
        copies = [place for place in left if place == left[0] or _same_column(table, left[0], place, place in alike)]
        left = [place for place in left if place not in copies]
        if len(copies) > 1:
            found.append(copies)
    return found


def _unevenness(values: Floats) -> float:
    """How skewed numbers are, whatever their units and sign, to a few digits."""
    values = np.sort(values[~np.isnan(values)])
    z = in_safe_units(values[:, None])[0][:, 0]
    z = z - z.mean()
    return round(float(abs((z**3).mean()) / max((z**2).mean() ** 1.5, 1e-300)), 6)


def _same_column(table: Table, one: int, other: int, alike: bool) -> bool:
    if table.intervened is not None and (table.intervened[:, one] != table.intervened[:, other]).any():
        return False
    if alike:
        return True
    if "category" in (table.columns[one].kind, table.columns[other].kind):
        return False
    first, second = table.values[:, one], table.values[:, other]
    if (np.isnan(first) != np.isnan(second)).any():
        return False
    steps = np.diff(second[np.argsort(first, kind="stable")])
    steps = steps[~np.isnan(steps)]
    return bool((steps >= 0).all() or (steps <= 0).all())
