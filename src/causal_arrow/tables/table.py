"""Table: rows of variables, as everything after reading sees them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from causal_arrow.errors import PYTHON, Remedy, Wording, advice, check_choice
from causal_arrow.inputs import checked
from causal_arrow.tables.options import KINDS
from causal_arrow.tables.scales import log_candidates

# N rows, P variables

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

MIN_ROWS = 20
"""A table with fewer is refused."""

PARTS = ("levels", "observed", "intervened")
"""Parts that a network may read besides numbers: categories, missing cells, cells that an experiment has set."""


@dataclass(frozen=True)
class Abilities:
    """The parts of a table, besides numbers, that the network can use.

    Examples
    --------
    >>> from causal_arrow.tables.table import Abilities
    >>> "levels" in Abilities(model="arrow-strict", parts=frozenset())
    False
    """

    model: str = "the network"
    """Its name, for messages."""
    parts: frozenset[str] = frozenset(PARTS)
    """Some of "levels" (categories), "observed" (missing cells) and "intervened" (experiments)."""

    def __contains__(self, part: str) -> bool:
        return part in self.parts


ANY_TABLE = Abilities()
"""Abilities of a network that reads every table."""


@dataclass(frozen=True)
class Column:
    """A variable of a table: its name, what kind of values it has, and the names of its levels in order of their codes.

    Numbers have no levels. The values of every other kind are codes 0, 1, 2, ... of `levels`.

    Examples
    --------
    >>> from causal_arrow.tables.table import Column
    >>> Column("size", "ordered", ("small", "medium", "large")).levels[0]
    'small'
    """

    name: str
    """As the table has it."""
    kind: str = "number"
    """"number", "binary", "ordered" or "category"."""
    levels: tuple[str, ...] = ()
    """The names of the levels, in order of their codes."""

    def __post_init__(self) -> None:
        check_choice("the kind of a column", self.kind, KINDS)


@checked
@dataclass(frozen=True)
class Finding:
    """Something noticed about a table, what it means for trust in the answer, and what can be done.

    Examples
    --------
    >>> from causal_arrow import load_example, read_table
    >>> from causal_arrow.tables.table import Finding
    >>> finding = read_table(load_example("hospital")).findings[0]
    >>> finding.severity
    'note'
    >>> Finding.from_dict(finding.to_dict()) == finding
    True
    """

    kind: str
    """A short name of what was noticed, for programs."""
    severity: str
    """"note" (good to know), "warning" (may mislead) or "problem" (stands in the way of an answer)."""
    columns: tuple[str, ...]
    """The columns it is about; empty for the whole table."""
    message: str
    """The finding in words."""
    remedies: tuple[Remedy, ...] = ()
    """Remedies, if there are any."""

    def worded(self, wording: Wording = PYTHON) -> str:
        """The message with its remedies, in the words of Python or the command line."""
        return " ".join([self.message, *advice(self.remedies, wording)])

    def to_dict(self) -> dict[str, Any]:
        """The finding as JSON can hold it; `from_dict` reads it back."""
        remedies = [{**asdict(remedy), "columns": list(remedy.columns)} for remedy in self.remedies]
        return {**asdict(self), "columns": list(self.columns), "remedies": remedies}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Finding:
        """Read a finding that `to_dict` wrote, perhaps before findings had remedies."""
        remedies = (Remedy(**{**entry, "columns": tuple(entry["columns"])}) for entry in content.get("remedies", ()))
        return cls(**{**content, "columns": tuple(content["columns"]), "remedies": tuple(remedies)})


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of variables as numbers, what each variable is, and what was noticed while reading them.

    `read_table` makes it.

    Examples
    --------
    >>> from causal_arrow import load_example, read_table
    >>> from causal_arrow.tables.table import Table
    >>> table = read_table(load_example("hospital"))
    >>> table.values.shape
    (800, 7)
    >>> int((~table.observed).sum())
    77
    >>> table.only(table.observed.all(axis=1)).observations
    723
    """

    values: Floats
    """Numbers, and codes of levels; not writable; NaN where nothing was observed.  (N, P)"""
    columns: tuple[Column, ...]
    """Name, kind and levels of each variable.  (P,)"""
    findings: tuple[Finding, ...] = ()
    """Findings from reading the table."""
    intervened: Bools | None = None
    """Mask of values that an experiment has set; None without experiments.  (N, P)"""
    environment: str | None = None
    """The variable that says where or when a row was observed, which nothing in the table causes."""

    @classmethod
    def of_numbers(cls, values: Floats, names: Sequence[str]) -> Table:
        """Make a table of numbers from values (N, P) and the names of their columns."""
        return cls(values, tuple(Column(name) for name in names))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the variables.  (P,)"""
        return tuple(column.name for column in self.columns)

    @property
    def observations(self) -> int:
        """The number of rows, N."""
        return len(self.values)

    @property
    def variables(self) -> int:
        """The number of columns, P."""
        return len(self.columns)

    @cached_property
    def observed(self) -> Bools:
        """Mask of cells that hold a value.  (N, P)"""
        return ~np.isnan(self.values)

    def only(self, rows: Bools) -> Table:
        """Keep some of the rows (N,), with all columns and what experiments set in these rows."""
        intervened = None if self.intervened is None else self.intervened[rows]
        return replace(self, values=self.values[rows], intervened=intervened)

    @property
    def experiments(self) -> dict[str, int]:
        """In how many observations each variable was set, for those that were."""
        if self.intervened is None:
            return {}
        counts = zip(self.names, self.intervened.sum(axis=0).tolist(), strict=True)
        return {name: count for name, count in counts if count}

    @cached_property
    def log_candidates(self) -> Bools:
        """True for variables worth a log transform: numbers that are skewed and share a sign.  (P,)"""
        numbers: Bools = np.array([column.kind == "number" for column in self.columns], dtype=bool)
        numbers &= log_candidates(self.values)
        return numbers


def in_safe_units(values: Floats) -> tuple[Floats, NDArray[np.int32]]:
    """Divide each column by a power of two that makes its largest value about 1; the exponents come second.

    Sums and squares of the result neither overflow nor vanish, and dividing by a power of two rounds nothing.
    """
    _, exponents = np.frexp(np.nanmax(np.abs(values), axis=0))
    return np.ldexp(values, -exponents), exponents
