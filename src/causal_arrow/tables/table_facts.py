"""Statistics of a table, on which its report card rests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from causal_arrow.tables.copies import find_copies, partition, times_each_was_set
from causal_arrow.tables.table import Abilities, Column, Table, in_safe_units

# N observations, P variables

Floats = NDArray[np.float64]

OBSERVATIONS_PER_CHUNK = 8192
FEW_VALUES = 10  # a column with no more distinct values than this is called discrete
FEW_TOGETHER = 20  # observations that have both of two variables, below which little is known of the two
# What people write for "missing" beside the usual NA: as levels, in lower case, and as numbers.
WORDS_FOR_MISSING = frozenset(
    {"?", "??", "-", "--", ".", "..", "*", "missing", "unknown", "na", "n.a.", "-9", "-99", "-999", "-9999"}
)
MOST_MARKED = 0.2  # share of a column that such a mark may have: what is more frequent is a value
NUMBERS_FOR_MISSING = frozenset(sign * (10.0**digits - 1) for sign in (1, -1) for digits in range(2, 7))


@dataclass(frozen=True, eq=False)
class TableFacts:
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
    times_set: NDArray[np.intp]  # in how many observations experiments have set it

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def different(self) -> NDArray[np.intp]:
        """How many values are not the most frequent one, where that is more frequent than one half."""
        there = self.observations - self.missing
        return np.asarray(there - np.rint(self.largest_share * there), dtype=np.intp)

    def named(self, chosen: NDArray[Any]) -> tuple[str, ...]:
        """The names of the variables a mask chooses."""
        return tuple(self.names[place] for place in np.flatnonzero(chosen).tolist())


def table_facts(table: Table, abilities: Abilities) -> TableFacts:
    """The statistics of a table that a network with these abilities will read."""
    p, n = table.variables, table.observations
    missing = np.array([np.isnan(column).sum() for column in table.values.T], dtype=np.intp)
    mean, spread = np.zeros(p), np.zeros(p)
    exponents = np.zeros(p, dtype=np.int32)
    counts: list[tuple[int, float]] = []
    categories = np.array([column.kind == "category" for column in table.columns], dtype=bool)
    partitions: list[bytes | None] = []
    for place in range(p):
        # Every statistic below is the same in all units.
        column, exponents[place : place + 1] = in_safe_units(table.values[:, [place]])
        mean[place] = np.nanmean(column)
        spread[place] = np.nanstd(column) * np.sqrt(1 - missing[place] / n)  # with the missing values at the mean
        counts.append(_distinct_values(column[:, 0]))
        partitions.append(partition(column[:, 0], categories[place]))
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
    together, apart = _least_together(table.values) if missing.any() else (None, 0)
    return TableFacts(
        columns=table.columns,
        observations=n,
        abilities=abilities,
        level_counts=level_counts,
        copies=find_copies(table, correlation, varies, partitions),
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
        times_set=times_each_was_set(table),
    )


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
