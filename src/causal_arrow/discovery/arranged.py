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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from causal_arrow.batches import LongTable
from causal_arrow.network.threads import each
from causal_arrow.storage import room_for
from causal_arrow.tables.scales import with_logarithms
from causal_arrow.tables.table import Column, Table

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Hashes = NDArray[np.uint64]
AnyArranged = TypeVar("AnyArranged", bound="Arranged")

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
    """The columns of a table in canonical order: column i is the column `arrangement[i]` of the table."""

    columns: tuple[Column, ...]  # (P,)
    arrangement: tuple[int, ...]  # (P,)
    copies: Mapping[int, int] = field(default_factory=dict, kw_only=True)
    """Indices of columns that the network does not read, and of the column that each is a copy of."""

    @property
    def read(self) -> list[int]:
        """The indices of the columns that the network reads, without copies."""
        return [index for index in range(len(self.columns)) if index not in self.copies]

    @property
    def read_as(self) -> list[int]:
        """For each column the index of the one that is read for it.  (P,)"""
        return [self.copies.get(index, index) for index in range(len(self.columns))]

    def reading_once(self: AnyArranged, groups: Iterable[Sequence[str]]) -> AnyArranged:
        """Read only the first of each group of columns, by name: the others are its copies.

        If only one column is left, a second one is read: networks need two.
        """
        indices = {name: index for index, name in enumerate(self.names)}
        copies = {indices[name]: indices[group[0]] for group in groups for name in group[1:]}
        if len(copies) == len(indices) - 1:
            copies.pop(min(copies))
        return replace(self, copies=copies)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def names_of(self, columns: Bools) -> tuple[str, ...]:
        """The names that a mask of columns chooses, in the order of the table."""
        chosen = sorted(np.flatnonzero(columns).tolist(), key=lambda index: self.arrangement[index])
        return tuple(self.columns[index].name for index in chosen)


@dataclass(frozen=True, eq=False)
class ArrangedTable(Arranged):
    """A table with its columns and observations in canonical order."""

    values: Floats  # (N, P), NaN where nothing was observed
    intervened: Bools | None = None  # (N, P)

    @cached_property
    def checksum(self) -> str:
        """Digits that change with any name or value, but not with the order of rows or columns."""
        digest = hashlib.sha256(repr(self.names).encode("utf-8", "surrogatepass"))
        digest.update(np.ascontiguousarray(self.values).tobytes())
        if levels := [column.levels for column in self.columns if column.kind == "category"]:
            digest.update(repr(levels).encode("utf-8", "surrogatepass"))
        if self.intervened is not None:
            digest.update(np.ascontiguousarray(self.intervened).tobytes())
        return digest.hexdigest()[:16]

    def with_logarithms(self, columns: Bools) -> ArrangedTable:
        """The table with some columns replaced by their logarithms."""
        return replace(self, values=with_logarithms(self.values, columns))


@dataclass(frozen=True, eq=False)
class ArrangedLongTable(Arranged):
    """A long table with its columns in canonical order, and the observations to read one by one."""

    table: Table
    drawn: NDArray[np.intp]  # (M,)
    renumbered: dict[int, Floats]  # by the index of a category in the table: the new code of each level
    checksum: str
    logarithms: Bools  # (P,) as arranged

    def with_logarithms(self, columns: Bools) -> ArrangedLongTable:
        """The table with some columns replaced by their logarithms."""
        return replace(self, logarithms=columns)

    def column(self, index: int) -> Floats:
        """The values of a column, with new codes of levels and on the scale that is analyzed.  (N,)"""
        origin = self.arrangement[index]
        values = _renumber(_plain(self.table.values[:, origin]), self.renumbered.get(origin))
        if not self.logarithms[index]:
            return values
        return with_logarithms(values[:, None], np.array([True]))[:, 0]

    def for_network(self, reads: frozenset[str]) -> LongTable:
        """The table with the parts that a network reads."""
        intervened, read = self.table.intervened, self.read
        levels = levels_of([self.columns[index] for index in read])
        return LongTable(
            self.table.observations,
            lambda index: self.column(read[index]),
            self.drawn,
            levels if "levels" in reads else np.zeros_like(levels),
            all(not np.isnan(column).any() for column in self.table.values.T),
            None if intervened is None else intervened[:, [self.arrangement[index] for index in read]],
        )

    def with_rows(self, rows: NDArray[np.intp]) -> ArrangedLongTable:
        """A table of observations that were drawn at random."""
        values = room_for(self.table.values.shape, np.float64)
        for index in range(self.table.variables):
            values[:, index] = self.table.values[:, index][rows]
        intervened = None if self.table.intervened is None else self.table.intervened[rows]
        # They are in random order, so the first ones will do.
        again = replace(self.table, values=values, intervened=intervened)
        return replace(self, table=again, drawn=np.arange(len(self.drawn)))


def levels_of(columns: Sequence[Column]) -> NDArray[np.int64]:
    """The number of levels of each column, 0 for numbers.  (P,)"""
    return np.array([len(column.levels) for column in columns], dtype=np.int64)


def arrange(table: Table, most: int | None = None) -> ArrangedTable | ArrangedLongTable:
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
    return _arrange_whole(table)


def _arrange_whole(table: Table) -> ArrangedTable:
    values = _plain(table.values)
    columns = _number_levels_by_frequency(values, table.columns)
    in_order = np.sort(values, axis=0)

    def key(column: int) -> tuple[bytes, str]:
        return in_order[:, column].tobytes(), table.names[column]

    arrangement = tuple(sorted(range(table.variables), key=key))
    arranged = values[:, arrangement]
    intervened = None if table.intervened is None else table.intervened[:, arrangement]
    rows = np.lexsort(arranged.T if intervened is None else np.concatenate([intervened.T, arranged.T]))
    return ArrangedTable(
        tuple(columns[index] for index in arrangement),
        arrangement,
        arranged[rows],
        None if intervened is None else intervened[rows],
    )


def _plain(values: Floats) -> Floats:
    """A copy in which equal numbers have equal bytes."""
    values = values + 0.0  # turns −0 into 0
    values[np.isnan(values)] = np.nan  # and every NaN into the same one
    return values


def _number_levels_by_frequency(values: Floats, columns: tuple[Column, ...]) -> tuple[Column, ...]:
    """Recode categories in place: frequent levels first, equally frequent ones by the values in their rows."""
    changed = list(columns)
    if all(column.kind != "category" for column in columns):
        return columns
    indices = [index for index, column in enumerate(columns) if column.kind != "category"]
    numbers = values[:, sorted(indices, key=lambda index: np.sort(values[:, index]).tobytes())]
    for index, column in enumerate(columns):
        if column.kind != "category":
            continue
        codes = values[:, index]
        rows = [codes == code for code in range(len(column.levels))]
        counts = [int(each.sum()) for each in rows]

        def key(code: int, rows: list[Bools] = rows, counts: list[int] = counts) -> tuple[int, bytes]:
            tied = counts.count(counts[code]) > 1
            return -counts[code], np.sort(numbers[rows[code]], axis=0).tobytes() if tied else b""

        order = sorted(range(len(rows)), key=key)
        for new, old in enumerate(order):
            values[rows[old], index] = new
        changed[index] = replace(column, levels=tuple(column.levels[old] for old in order))
    return tuple(changed)


# Long tables


def _arrange_long(table: Table, most: int) -> ArrangedLongTable:
    rows = _hashes_of_numbers(table)
    renumbered: dict[int, Floats] = {}
    columns = list(table.columns)
    for index, column in enumerate(table.columns):
        if column.kind == "category":
            renumbered[index], columns[index] = _by_frequency(table.values[:, index], column, rows)
    rows += _hashes_of_the_rest(table)

    def digits(index: int) -> int:
        values = _renumber(_plain(table.values[:, index]), renumbered.get(index))
        return int(mixed(values.view(np.uint64)).sum(dtype=np.uint64))

    keys = each(digits, range(table.variables))
    arrangement = tuple(sorted(range(table.variables), key=lambda index: (keys[index], table.names[index])))
    levels = [columns[index].levels for index in arrangement if columns[index].kind == "category"]
    together = int(mixed(rows).sum(dtype=np.uint64)), table.observations, [keys[index] for index in arrangement]
    content = repr(([table.names[index] for index in arrangement], levels, together))
    return ArrangedLongTable(
        tuple(columns[index] for index in arrangement),
        arrangement,
        table,
        _drawn(rows, most),
        renumbered,
        hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:16],
        np.zeros(table.variables, dtype=bool),
    )


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


def _drawn(hashes: Hashes, count: int) -> NDArray[np.intp]:
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


def _by_frequency(codes: Floats, column: Column, rows: Hashes) -> tuple[Floats, Column]:
    """New codes for the levels of a category, and the column with its levels in their order.

    Frequent levels come first, equally frequent ones by the hashes of their observations.
    """
    members = [codes == code for code in range(len(column.levels))]
    keys = [(-int(each.sum()), int(rows[each].sum(dtype=np.uint64))) for each in members]
    order = sorted(range(len(members)), key=keys.__getitem__)
    renumbered = np.empty(len(order))
    renumbered[order] = np.arange(len(order))
    return renumbered, replace(column, levels=tuple(column.levels[old] for old in order))


def _renumber(codes: Floats, renumbered: Floats | None) -> Floats:
    if renumbered is None:
        return codes
    return np.append(renumbered, np.nan)[np.where(np.isnan(codes), len(renumbered), codes).astype(np.intp)]
