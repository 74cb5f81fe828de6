"""Tables in a canonical order, so that shuffling rows or columns leaves the network's input the same to the last bit.

Sums in floating point depend on the order of their terms, and ties on the order of columns. So columns and observations
are sorted by their values alone, and columns stay in that order until an answer is put into words. Levels of categories
are numbered by frequency, whatever their names.

The rows of a long table are not sorted. The observations that the network reads one by one are drawn by ranks and
frequencies, so that shuffles, units, signs and names of levels do not change which ones are drawn.
"""

# N observations, M of them drawn, P variables

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from causal_arrow.batches import LongTable
from causal_arrow.network.forward import each
from causal_arrow.storage import room_for
from causal_arrow.tables.scales import logarithms
from causal_arrow.tables.table import Bools, Column, Floats, Table

Hashes = NDArray[np.uint64]
Indices = NDArray[np.intp]

OBSERVATIONS_READ = 20_000
"""Observations that the network reads one by one, at most: with more, answers hardly improve (docs/evidence/scale.md).
Statistics of pairs always use all observations."""

WIDE = 256
NEARLY_AS_MANY = 0.05
"""With about as many observations as variables the inverse of a covariance matrix is at its worst, and fewer
observations say more. Networks have learned to live with that in tables of up to WIDE variables. In wider ones, if the
two numbers differ by less than this share of the variables, observations are left out until there are fewer by it."""


@dataclass(frozen=True, eq=False)
class Arranged:
    """A table in canonical order, without a copy of it: column i is the column `arrangement[i]` of the table."""

    table: Table
    columns: tuple[Column, ...]  # (P,), with levels in the order of their new codes
    arrangement: tuple[int, ...]  # (P,)
    recoded: Mapping[int, Floats]  # by the index of a category in the table: the new code of each level
    rows: Indices  # (M,) the observations that are read one by one
    is_long: bool  # whether statistics use the other observations too
    checksum: str
    """Digits that change with any name or value, but not with the order of rows or columns."""
    logarithms: Bools | None = None  # (P,) the columns on a log scale
    copies: Mapping[int, int] = field(default_factory=dict)
    """Indices of columns that the network does not read, and of the column that each is a copy of."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def read(self) -> list[int]:
        """The indices of the columns that the network reads, without copies."""
        return [index for index in range(len(self.columns)) if index not in self.copies]

    @property
    def read_as(self) -> list[int]:
        """For each column the index of the one that is read for it.  (P,)"""
        return [self.copies.get(index, index) for index in range(len(self.columns))]

    def reading_once(self, groups: Iterable[Sequence[str]]) -> Arranged:
        """Read only the first of each group of columns, by name: the others are its copies.

        If only one column is left, a second one is read: networks need two.
        """
        indices = {name: index for index, name in enumerate(self.names)}
        copies = {indices[name]: indices[group[0]] for group in groups for name in group[1:]}
        if len(copies) == len(indices) - 1:
            copies.pop(min(copies))
        return replace(self, copies=copies)

    def with_logarithms(self, columns: Bools) -> Arranged:
        """The table with some columns replaced by their logarithms."""
        return replace(self, logarithms=columns)

    @property
    def log_columns(self) -> tuple[str, ...]:
        """The names of the columns on a log scale, in the order of the table."""
        chosen = [] if self.logarithms is None else np.flatnonzero(self.logarithms).tolist()
        return tuple(self.columns[index].name for index in sorted(chosen, key=self.arrangement.__getitem__))

    def column(self, index: int) -> Floats:
        """The values of a column, with new codes of levels and on the scale that is analyzed.  (N,)"""
        origin = self.arrangement[index]
        values = _recoded(self.table.values[:, origin], self.recoded.get(origin))
        return values if self.logarithms is None or not self.logarithms[index] else logarithms(values)

    @property
    def values(self) -> Floats:
        """The values of the observations that are read one by one.  (M, P)"""
        return np.stack([self.column(index)[self.rows] for index in range(len(self.columns))], axis=1)

    @property
    def intervened(self) -> Bools | None:
        """Mask of values that an experiment has set.  (M, P)"""
        marks = self.table.intervened
        return None if marks is None else marks[self.rows][:, list(self.arrangement)]

    def long_table(self, reads: frozenset[str]) -> LongTable:
        """All observations, with the parts that a network reads."""
        marks, read = self.table.intervened, self.read
        levels = levels_of([self.columns[index] for index in read])
        return LongTable(
            self.table.observations,
            lambda index: self.column(read[index]),
            self.rows,
            levels if "levels" in reads else np.zeros_like(levels),
            all(not np.isnan(column).any() for column in self.table.values.T),
            None if marks is None else marks[:, [self.arrangement[index] for index in read]],
        )

    def with_rows(self, rows: Indices) -> Arranged:
        """A long table of observations that were drawn at random."""
        values = room_for(self.table.values.shape, np.float64)
        for index in range(self.table.variables):
            values[:, index] = self.table.values[:, index][rows]
        intervened = None if self.table.intervened is None else self.table.intervened[rows]
        # They are in random order, so the first ones will do.
        again = replace(self.table, values=values, intervened=intervened)
        return replace(self, table=again, rows=np.arange(len(self.rows)))


def levels_of(columns: Sequence[Column]) -> NDArray[np.int64]:
    """The number of levels of each column, 0 for numbers.  (P,)"""
    return np.array([len(column.levels) for column in columns], dtype=np.int64)


def arrange(table: Table, most: int | None = None) -> Arranged:
    """Sort columns and observations by their values alone; equal columns by name.

    From more than `most` observations (OBSERVATIONS_READ by default) that many are drawn. If `most` is not given, a
    wide table with about as many observations as variables loses some (NEARLY_AS_MANY).
    """
    limit = OBSERVATIONS_READ if most is None else most
    if table.observations > limit:
        return _arrange_long(table, limit)
    n, p = table.values.shape
    if most is None and p > WIDE and abs(n - p) < NEARLY_AS_MANY * p:
        hashes = _hashes_of_numbers(table) + _hashes_of_the_rest(table)
        drawn = np.sort(_drawn(hashes, int((1 - NEARLY_AS_MANY) * p)))
        intervened = None if table.intervened is None else table.intervened[drawn]
        table = replace(table, values=table.values[drawn], intervened=intervened)
    return _arrange_short(table)


def _arrange_short(table: Table) -> Arranged:
    values = _recoded(table.values, None)
    in_order = np.sort(values, axis=0)
    numbers = [index for index, column in enumerate(table.columns) if column.kind != "category"]
    numbers.sort(key=lambda index: in_order[:, index].tobytes())

    def values_of(rows: Bools) -> bytes:
        return np.sort(values[rows][:, numbers], axis=0).tobytes()

    recoded, columns = _levels_by_frequency(table, values_of)
    for index, codes in recoded.items():
        values[:, index] = _recoded(values[:, index], codes)
        in_order[:, index] = np.sort(values[:, index])

    def key(column: int) -> tuple[bytes, str]:
        return in_order[:, column].tobytes(), table.names[column]

    arrangement = tuple(sorted(range(table.variables), key=key))
    values = values[:, arrangement]
    marks = None if table.intervened is None else table.intervened[:, arrangement]
    rows = np.lexsort(values.T if marks is None else np.concatenate([marks.T, values.T]))
    columns = tuple(columns[index] for index in arrangement)
    digest = hashlib.sha256(repr(tuple(column.name for column in columns)).encode("utf-8", "surrogatepass"))
    digest.update(np.ascontiguousarray(values[rows]).tobytes())
    if levels := [column.levels for column in columns if column.kind == "category"]:
        digest.update(repr(levels).encode("utf-8", "surrogatepass"))
    if marks is not None:
        digest.update(np.ascontiguousarray(marks[rows]).tobytes())
    return Arranged(table, columns, arrangement, recoded, rows, False, digest.hexdigest()[:16])


def _levels_by_frequency(table: Table, key: Callable[[Bools], Any]) -> tuple[dict[int, Floats], tuple[Column, ...]]:
    """New codes for the levels of each category, by its index, and the columns with their levels in that order.

    Frequent levels come first, equally frequent ones by the `key` of their observations.
    """
    recoded, columns = {}, list(table.columns)
    for index, column in enumerate(table.columns):
        if column.kind != "category":
            continue
        members = [table.values[:, index] == code for code in range(len(column.levels))]
        counts = [int(each.sum()) for each in members]
        keys = [
            (-count, key(each) if counts.count(count) > 1 else None)
            for count, each in zip(counts, members, strict=True)
        ]
        order = sorted(range(len(members)), key=keys.__getitem__)
        recoded[index] = np.empty(len(order))
        recoded[index][order] = np.arange(len(order))
        columns[index] = replace(column, levels=tuple(column.levels[old] for old in order))
    return recoded, tuple(columns)


def _recoded(values: Floats, codes: Floats | None) -> Floats:
    """A copy in which equal numbers have equal bytes, with new codes of levels."""
    values = values + 0.0  # turns −0 into 0
    values[np.isnan(values)] = np.nan  # and every NaN into the same one
    if codes is None:
        return values
    return np.append(codes, np.nan)[np.where(np.isnan(values), len(codes), values).astype(np.intp)]


# Long tables


def _arrange_long(table: Table, most: int) -> Arranged:
    hashes = _hashes_of_numbers(table)
    recoded, columns = _levels_by_frequency(table, lambda rows: int(hashes[rows].sum(dtype=np.uint64)))
    hashes += _hashes_of_the_rest(table)

    def digits(index: int) -> int:
        values = _recoded(table.values[:, index], recoded.get(index))
        return int(mixed(values.view(np.uint64)).sum(dtype=np.uint64))

    keys = each(digits, range(table.variables))
    arrangement = tuple(sorted(range(table.variables), key=lambda index: (keys[index], table.names[index])))
    columns = tuple(columns[index] for index in arrangement)
    levels = [column.levels for column in columns if column.kind == "category"]
    together = int(mixed(hashes).sum(dtype=np.uint64)), table.observations, [keys[index] for index in arrangement]
    content = repr(([column.name for column in columns], levels, together))
    checksum = hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return Arranged(table, columns, arrangement, recoded, _drawn(hashes, most), True, checksum)


def _hashes_of_numbers(table: Table) -> Hashes:
    """A hash for each observation, of the ranks of its numbers; changes of sign do not matter.  (N,)"""
    numbers = [index for index, column in enumerate(table.columns) if column.kind != "category"]
    rows = np.zeros(table.observations, dtype=np.uint64)
    lock = threading.Lock()  # added as they come, so that few are held at once

    def add(index: int) -> None:
        hashes = hashes_of_ranks(table.values[:, index])
        with lock:
            np.add(rows, hashes, out=rows)

    each(add, numbers)
    return rows


def _hashes_of_the_rest(table: Table) -> Hashes:
    """A hash for each observation, of the frequencies of its levels and of the number of variables set.  (N,)"""
    rows = np.zeros(table.observations, dtype=np.uint64)
    for index, column in enumerate(table.columns):
        if column.kind == "category":
            codes = table.values[:, index]
            counts = np.bincount(codes[~np.isnan(codes)].astype(np.intp), minlength=len(column.levels))
            rows += mixed(np.append(counts, 0).astype(np.uint64))[np.where(np.isnan(codes), -1, codes).astype(np.intp)]
    if table.intervened is not None:
        rows += mixed(table.intervened.sum(axis=1).astype(np.uint64))
    return rows


def _drawn(hashes: Hashes, count: int) -> Indices:
    """The indices of `count` observations, drawn evenly by the order of their hashes.  (M,)"""
    chosen = np.sort(np.random.default_rng(0).choice(len(hashes), size=count, replace=False))
    return np.argsort(hashes, kind="stable")[chosen]


def hashes_of_ranks(column: Floats) -> Hashes:
    """A hash for each value, of its distance from the median in ranks.  (N,)"""
    order = np.argsort(column)
    ordered = column[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    missing = np.isnan(ordered).sum()
    starts = starts[: len(starts) - max(missing - 1, 0)]  # a NaN equals no other: one run for all of them
    stops = np.append(starts[1:], len(column))
    ranks = np.abs(starts + stops - (len(column) - missing))  # of a mean rank and its mirror image the same
    if missing:
        ranks[-1] = 2 * len(column) + 1
    hashes = np.empty(len(column), dtype=np.uint64)
    hashes[order] = np.repeat(mixed(ranks.astype(np.uint64)), stops - starts)
    return hashes


def mixed(numbers: Hashes) -> Hashes:
    """Each number scattered over 64 bits: the finalizer of SplitMix64."""
    with np.errstate(over="ignore"):
        numbers = numbers + np.uint64(0x9E3779B97F4A7C15)
        numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(numbers ^ (numbers >> np.uint64(31)))
