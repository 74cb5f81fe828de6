"""table_statistics(): the statistics on which a report card rests, copies and mutual determination among them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from causal_arrow.tables.table import Abilities, Bools, Column, Floats, Table, in_safe_units

# N rows, P variables

ROWS_PER_CHUNK = 8192
FEW_VALUES = 10  # a column with no more distinct values than this is called discrete
FEW_TOGETHER = 20  # rows that have both of two variables; with fewer, little is known about the two
# What people write for "missing" besides the usual NA: as levels, in lower case, and as numbers.
WORDS_FOR_MISSING = frozenset(
    {"?", "??", "-", "--", ".", "..", "*", "missing", "unknown", "na", "n.a.", "-9", "-99", "-999", "-9999"}
)
MAX_MARKED = 0.2  # share of a column that such a mark may have: a more frequent one is a value
NUMBERS_FOR_MISSING = frozenset(sign * (10.0**digits - 1) for sign in (1, -1) for digits in range(2, 7))


@dataclass(frozen=True, eq=False)
class TableStatistics:
    """Statistics of a table, one number per variable (P,) unless said otherwise, over the values that were observed."""

    table: Table
    abilities: Abilities
    level_counts: dict[str, NDArray[np.intp]]  # of categories, by name: how often each level occurs
    copies: list[list[int]]  # of each other, up to scale and sign or the names of values; the one that is read first
    together: tuple[str, str, int] | None  # the two variables least often observed together, and how often
    apart: int  # pairs of variables that are hardly observed together, see FEW_TOGETHER
    markers: dict[str, str]  # values that look like marks of missing ones, by the name of the column
    missing: NDArray[np.intp]
    varies: Bools
    distinct: NDArray[np.int32]  # number of distinct values, or FEW_VALUES + 1 for more
    largest_share: Floats  # of a single value, where above one half
    kurtosis: Floats  # 0 for a normal distribution
    farthest: Floats  # largest distance from the mean in standard deviations
    autocorrelation: Floats  # of each row with the next
    neighbors: Floats  # how many neighbors both have a value
    correlation: Floats  # (P, P), missing values at the mean

    @property
    def observed(self) -> NDArray[np.intp]:
        """The number of values."""
        return self.table.observations - self.missing

    @property
    def different(self) -> NDArray[np.intp]:
        """The number of values other than the most frequent one, if that is more frequent than one half."""
        return np.asarray(self.observed - np.rint(self.largest_share * self.observed), dtype=np.intp)

    def has_problem(self, kind: str) -> bool:
        """Whether the table already has a problem of this kind among its findings."""
        return any(finding.kind == kind and finding.severity == "problem" for finding in self.table.findings)

    def named(self, chosen: Bools) -> tuple[str, ...]:
        """The names of the variables that a mask chooses."""
        return tuple(self.table.names[index] for index in np.flatnonzero(chosen).tolist())


def table_statistics(table: Table, abilities: Abilities) -> TableStatistics:
    """The statistics of a table that a network with these abilities will read."""
    p, n = table.variables, table.observations
    missing = np.array([np.isnan(column).sum() for column in table.values.T], dtype=np.intp)
    mean, spread, largest_share = np.zeros((3, p))
    exponents, distinct = np.zeros((2, p), dtype=np.int32)
    categories = np.array([column.kind == "category" for column in table.columns], dtype=bool)
    partitions: list[bytes | None] = []
    for index in range(p):
        # Every statistic below is the same in all units.
        column, exponents[index : index + 1] = in_safe_units(table.values[:, [index]])
        mean[index] = np.nanmean(column)
        spread[index] = np.nanstd(column) * np.sqrt(1 - missing[index] / n)  # with the missing values at the mean
        distinct[index], largest_share[index] = _distinct_values(column[:, 0])
        partitions.append(_partition(column[:, 0], categories[index]))
    varies = (spread > 1e-13 * np.abs(mean)) & ~categories  # codes of categories have no size
    scale = np.where(varies, spread, 1.0)

    correlation = np.zeros((p, p))
    kurtosis, farthest, products, neighbors = np.zeros((4, p))
    last, last_there = np.zeros(p), np.zeros(p, dtype=bool)
    for start in range(0, n, ROWS_PER_CHUNK):
        values = np.ldexp(table.values[start : start + ROWS_PER_CHUNK], -exponents)
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
    for index in np.flatnonzero(categories).tolist():
        codes = table.values[:, index]
        level_counts[table.names[index]] = np.unique(codes[~np.isnan(codes)], return_counts=True)[1]
    together, apart = _least_together(table) if missing.any() else (None, 0)
    return TableStatistics(
        table=table,
        abilities=abilities,
        level_counts=level_counts,
        copies=_find_copies(table, correlation, varies, partitions),
        together=together,
        apart=apart,
        markers={column.name: mark for column in table.columns if (mark := _mark_of_missing(table, column))},
        missing=missing,
        varies=varies,
        distinct=distinct,
        largest_share=largest_share,
        # With missing values at the mean, the rest is farther out by the root of the share that was observed.
        kurtosis=kurtosis * observed / n - 3,
        farthest=farthest * np.sqrt(observed),
        autocorrelation=products * observed / np.maximum(neighbors, 1),
        neighbors=neighbors,
        correlation=correlation,
    )


def _mark_of_missing(table: Table, column: Column) -> str:
    """A value of a column that looks like a mark of missing cells; empty if there is none."""
    values = table.values[:, table.columns.index(column)]
    values = values[~np.isnan(values)]
    if column.kind == "category":
        counts = np.bincount(values.astype(np.intp), minlength=len(column.levels))
        marks = [
            (-count, level)
            for level, count in zip(column.levels, counts.tolist(), strict=True)
            if level.lower() in WORDS_FOR_MISSING and count <= MAX_MARKED * len(values)
        ]
        return min(marks)[1] if marks else ""
    if column.kind != "number":
        return ""
    low, high = float(values.min()), float(values.max())
    for mark, sign in ((low, 1), (high, -1)):
        others = values[values != mark] if mark in NUMBERS_FOR_MISSING else values[:0]
        marked = len(values) - len(others)
        if len(np.unique(others[:1000])) < 2 or not 2 <= marked <= MAX_MARKED * len(values):
            continue
        nearest, farthest = sorted((float(others.min()), float(others.max())), reverse=sign < 0)
        stands_apart = abs(nearest - mark) > abs(farthest - nearest)
        if stands_apart or (mark < 0 <= nearest):
            return f"{mark:.0f}"
    return ""


def _least_together(table: Table) -> tuple[tuple[str, str, int] | None, int]:
    """The two variables that the fewest rows have both, and how many do; and how many pairs have few such rows."""
    n, p = table.values.shape
    if p < 2:
        return None, 0
    jointly = n * np.eye(p)
    for start in range(0, n, ROWS_PER_CHUNK):
        observed = (~np.isnan(table.values[start : start + ROWS_PER_CHUNK])).astype(np.float64)
        jointly += observed.T @ observed
    one, other = np.unravel_index(int(jointly.argmin()), jointly.shape)
    apart = int((jointly < FEW_TOGETHER).sum()) // 2 if n >= FEW_TOGETHER else 0
    return (table.names[one], table.names[other], round(float(jointly[one, other]))), apart


def _distinct_values(column: Floats) -> tuple[int, float]:
    """The number of distinct values of a column, counted to FEW_VALUES + 1, and the share of its median value."""
    column = column[~np.isnan(column)]
    distinct = len(np.unique(column[:500]))
    if distinct <= FEW_VALUES:
        distinct = min(len(np.unique(column)), FEW_VALUES + 1)
    # A value more frequent than one half is the median.
    return min(distinct, FEW_VALUES + 1), float(np.mean(column == np.quantile(column, 0.5, method="lower")))


# Copies of columns


COPY = 1 - 1e-9  # correlation
MAX_CLASSES = 100  # different values up to which columns are compared value by value
ALIKE_DIGITS = 12  # decimal digits, of the largest value in a column, to which equal values agree
READ_FIRST = ("category", "ordered", "binary", "number")
"""Kinds in the order in which copies of different kinds are preferred: what the first assumes holds for all."""


def _find_copies(
    table: Table, correlation: Floats, varies: Bools, partitions: Sequence[bytes | None]
) -> list[list[int]]:
    """Groups of columns that are copies of each other, given the `_partition` of each; the first is the one to read."""
    columns_of: dict[bytes, list[int]] = {}
    for index, digits in enumerate(partitions):
        if digits is not None:
            columns_of.setdefault(digits, []).append(index)
    alike = (np.abs(correlation) >= COPY) & varies & varies[:, None]
    for group in columns_of.values():
        alike[np.ix_(group, group)] = True
    same_partition = {index: group for group in columns_of.values() for index in group}
    return [copies for group in _related_groups(alike) for copies in _exact_copies(table, group, same_partition)]


def _partition(column: Floats, category: bool) -> bytes | None:
    """A hash that columns share if their equal values are in the same rows.

    None for a column with few equal values: numbers most of which occur once or twice would all be alike.
    """
    there = ~np.isnan(column)
    values = column[there]
    if not category:
        few = min(MAX_CLASSES, len(values) // 2)
        values = np.round(values / np.abs(values).max(initial=1e-300), ALIKE_DIGITS)
        if len(np.unique(values[:1000])) > few or len(np.unique(values)) > few:
            return None
    _, first, same = np.unique(values, return_index=True, return_inverse=True)
    classes = np.full(len(column), -1, dtype=np.int64)
    classes[there] = first[same]
    return hashlib.sha256(classes.tobytes()).digest()


def _exact_copies(table: Table, group: Sequence[int], same_partition: Mapping[int, list[int]]) -> list[list[int]]:
    """The columns of a group that are copies of its first, and so on with the others; no single columns.

    The first is the environment, else what was set most often, then by kind (READ_FIRST), then by how evenly its
    numbers are distributed: by name only if it does not matter which one is read.
    """
    times_set = times_each_was_set(table)

    def key(index: int) -> tuple[bool, int, int, float, str]:
        column = table.columns[index]
        uneven = _unevenness(table.values[:, index]) if column.kind == "number" else 0.0
        kind = READ_FIRST.index(column.kind)
        return column.name != table.environment, -int(times_set[index]), kind, uneven, column.name

    left = sorted(group, key=key)
    found = []
    while left:
        alike = same_partition.get(left[0], ())
        copies = [index for index in left if index == left[0] or _same_column(table, left[0], index, index in alike)]
        left = [index for index in left if index not in copies]
        if len(copies) > 1:
            found.append(copies)
    return found


def times_each_was_set(table: Table) -> NDArray[np.intp]:
    """The number of rows in which experiments have set each variable.  (P,)"""
    if table.intervened is None:
        return np.zeros(table.variables, dtype=np.intp)
    return np.asarray(table.intervened.sum(axis=0), dtype=np.intp)


def _unevenness(values: Floats) -> float:
    """The skewness of numbers, whatever their units and sign, to a few digits."""
    values = np.sort(values[~np.isnan(values)])
    z = in_safe_units(values[:, None])[0][:, 0]
    z = z - z.mean()
    return round(float(abs((z**3).mean()) / max((z**2).mean() ** 1.5, 1e-300)), 6)


def _same_column(table: Table, one: int, other: int, alike: bool) -> bool:
    """Whether a column is a copy of another; `alike` says that equal values are in the same rows.

    Numbers that are correlated perfectly up to rounding need not be copies: an outlier may be all that they share. So
    they need the same order. And where only the first was set by an experiment, a copy followed.
    """
    if table.intervened is not None and (table.intervened[:, other] & ~table.intervened[:, one]).any():
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


# Columns computed from one other column: ranges of its numbers, or groups of its levels


MIN_CLASS = 5
"""Rows of each value of a derived column: fewer may be ranges by chance."""
PEEK = 200
"""Rows that rule out most pairs of columns."""


def derived_columns(table: Table) -> dict[int, int]:
    """For each column computed from one other column, that other: its numbers fall into ranges, its levels into groups.

    The column that counts rows decides everything in a sorted table, and is left out.
    """
    found: dict[int, int] = {}
    counting = {name for finding in table.findings if finding.kind == "index" for name in finding.columns}
    sources = [index for index, name in enumerate(table.names) if name not in counting]
    for derived, values in enumerate(table.values.T):
        if len(np.unique(values[:PEEK])) > FEW_VALUES + 1 or len(np.unique(values)) > FEW_VALUES + 1:
            continue
        for source in sources:
            is_category = table.columns[source].kind == "category"
            pair = table.values[:, [source, derived]]
            if source != derived and all(_is_derived(part, is_category) for part in (pair[:PEEK], pair)):
                both = pair[~np.isnan(pair).any(axis=1)]
                counts = np.unique(both[:, 1], return_counts=True)[1]
                distinct = len(np.unique(both[:, 0]))
                few = distinct > len(both) / MIN_CLASS  # too few rows of each level
                if 2 <= len(counts) < distinct and counts.min() >= MIN_CLASS and not (is_category and few):
                    found[derived] = source
                    break
    return found


def _is_derived(pair: Floats, is_category: bool) -> bool:
    """Whether the values of one column (N, 2) decide those of the next, by ranges unless they are codes."""
    pair = pair[~np.isnan(pair).any(axis=1)]
    pair = pair[np.lexsort(pair.T[::-1])]
    steps = pair[1:] != pair[:-1]
    if (steps[:, 1] & ~steps[:, 0]).any():
        return False
    return is_category or int(steps[:, 1].sum()) < len(np.unique(pair[:, 1]))


# Columns that determine each other: near-copies, totals and their parts


DETERMINED = 100.0
"""Variance inflation, 1 / (1 − R²), from which on a variable counts as determined by others."""
RIDGE = 1e-10
MAX_ELIMINATED = 40  # members of a group that are tried one by one


def determined_groups(correlation: Floats, observations: int, most: int) -> tuple[list[list[int]], list[int]]:
    """At most `most` groups in which every variable is nearly a linear combination of the others; and what is left.

    Near-copies first, then, with one variable of each such group, combinations no member of which can be spared. The
    search goes on without the most determined member of each, which ends it.
    """
    pairs = _near_copies(correlation)
    groups, spare = pairs[:most], {index for group in pairs for index in group[1:]}
    rest = [index for index in range(len(correlation)) if index not in spare]
    core = _mutually_determined(correlation, rest, observations)
    while core and len(groups) < most:
        group, strongest = _smallest_group(correlation, core, observations)
        groups.append(group)
        core = _mutually_determined(correlation, [index for index in core if index != strongest], observations)
    return groups, [*(index for group in pairs[most:] for index in group), *core]


def _near_copies(correlation: Floats) -> list[list[int]]:
    """Groups of two or more variables any two of which determine each other."""
    close = correlation**2 > 1 - 1 / DETERMINED
    groups: list[list[int]] = []
    for index in np.flatnonzero((close & ~np.eye(len(close), dtype=bool)).any(axis=1)).tolist():
        home = next((group for group in groups if close[index, group].all()), None)
        if home is None:
            groups.append([index])
        else:
            home.append(index)
    return [group for group in groups if len(group) > 1]


def _related_groups(related: Bools) -> list[list[int]]:
    """The groups of two or more variables that a symmetric relation connects."""
    if not (related & ~np.eye(len(related), dtype=bool)).any():
        return []
    from scipy.sparse.csgraph import connected_components

    _, group_of = connected_components(related, directed=False)
    groups = (np.flatnonzero(group_of == group).tolist() for group in dict.fromkeys(group_of.tolist()))
    return [group for group in groups if len(group) > 1]


def _mutually_determined(correlation: Floats, among: Sequence[int], observations: int) -> list[int]:
    """The largest set of variables in which each is determined by the others."""
    members = list(among)
    while 1 < len(members) <= observations - 2:
        determined = _inflation(_precision(correlation, members), observations) > DETERMINED
        if determined.all():
            return members
        # A variable that many others do not determine is not determined by fewer: it can go at once.
        members = [index for index, stays in zip(members, determined.tolist(), strict=True) if stays]
    return []


def _smallest_group(correlation: Floats, core: Sequence[int], observations: int) -> tuple[list[int], int]:
    """The group around the most determined variable of a core that can spare no member, and that variable."""
    precision = _precision(correlation, core)
    strongest = int(_inflation(precision, observations).argmax())
    partial = np.abs(precision[strongest]) / np.sqrt(precision.diagonal() * precision[strongest, strongest])
    partners = [core[index] for index in np.argsort(-partial, kind="stable").tolist() if index != strongest]
    first, group = core[strongest], list(core)
    size = 1
    while size < len(partners):
        smaller = _mutually_determined(correlation, [first, *partners[:size]], observations)
        if first in smaller:
            group = smaller
            break
        size *= 2
    if len(group) <= MAX_ELIMINATED:
        for index in reversed(partners):
            if index in group:
                smaller = _mutually_determined(correlation, [each for each in group if each != index], observations)
                group = smaller if first in smaller else group
    return sorted(group), first


def _precision(correlation: Floats, members: Sequence[int]) -> Floats:
    return np.asarray(np.linalg.inv(correlation[np.ix_(members, members)] + RIDGE * np.eye(len(members))))


def _inflation(precision: Floats, observations: int) -> Floats:
    """Variance inflation by the other variables, less what chance adds: with few rows everything is determined."""
    chance = (observations - len(precision)) / (observations - 1)
    return np.asarray(precision.diagonal() * chance)
