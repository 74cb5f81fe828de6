"""Table: observations of variables, as everything after reading sees them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from causal_arrow.errors import PYTHON, Remedy, Wording, advice, check_choice
from causal_arrow.tables.scales import log_candidates

# N observations, P variables

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

KINDS = ("number", "binary", "ordered", "category")
"""What a column can hold: numbers; yes or no; levels in an order; levels without one."""

FEWEST_OBSERVATIONS = 20
"""A table with fewer is refused."""

PARTS = ("levels", "observed", "intervened")
"""What a network may be able to read beside numbers: categories, missing cells, cells that an experiment has set."""


@dataclass(frozen=True)
class Abilities:
    """What the network that will read a table can make use of beside numbers.

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
"""Those of a network that reads every table."""


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
    """

    kind: str
    """A short name of what was noticed, for programs."""
    severity: str
    """"note" (good to know), "warning" (may mislead) or "problem" (stands in the way of an answer)."""
    columns: tuple[str, ...]
    """The columns it is about; empty for the whole table."""
    message: str
    """What was noticed, in words."""
    remedies: tuple[Remedy, ...] = ()
    """What can be done about it."""

    def worded(self, wording: Wording = PYTHON) -> str:
        """The message with its remedies, in the words of a surface; the message alone if it has no words for them.

        Parameters
        ----------
        wording
            `causal_arrow.errors.PYTHON` or `COMMAND_LINE`.

        Returns
        -------
        str
            A sentence or more.

        Examples
        --------
        >>> finding.worded().startswith(finding.message)
        True
        """
        return " ".join([self.message, *advice(self.remedies, wording)])

    def to_dict(self) -> dict[str, Any]:
        """The finding as JSON can hold it; `from_dict` reads it back.

        Returns
        -------
        dict
            `kind`, `severity`, `columns`, `message` and `remedies`.

        Examples
        --------
        >>> finding.to_dict()["severity"]
        'note'
        """
        remedies = [{**asdict(remedy), "columns": list(remedy.columns)} for remedy in self.remedies]
        return {**asdict(self), "columns": list(self.columns), "remedies": remedies}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Finding:
        """The finding that `to_dict` wrote, perhaps before findings had remedies.

        Parameters
        ----------
        content
            What `to_dict` returned.

        Returns
        -------
        Finding
            Equal to the one that was written.

        Examples
        --------
        >>> Finding.from_dict(finding.to_dict()) == finding
        True
        """
        remedies = (Remedy(**{**entry, "columns": tuple(entry["columns"])}) for entry in content.get("remedies", ()))
        return cls(**{**content, "columns": tuple(content["columns"]), "remedies": tuple(remedies)})


@dataclass(frozen=True, eq=False)
class Table:
    """Observations of variables as numbers, what each variable is, and what was noticed while reading them.

    `read_table` makes it.

    Examples
    --------
    >>> from causal_arrow import load_example, read_table
    >>> from causal_arrow.tables.table import Table
    >>> table = read_table(load_example("hospital"))
    >>> table.values.shape
    (800, 7)
    """

    values: Floats
    """Numbers, and codes of levels; not writable; NaN where nothing was observed.  (N, P)"""
    columns: tuple[Column, ...]
    """What each variable is.  (P,)"""
    findings: tuple[Finding, ...] = ()
    """What was noticed while reading."""
    intervened: Bools | None = None
    """Where an experiment has set the value; None without experiments.  (N, P)"""
    environment: str | None = None
    """The variable that tells where or when an observation was made, which nothing in the table causes."""

    @classmethod
    def of_numbers(cls, values: Floats, names: Sequence[str]) -> Table:
        """A table of numbers.

        Parameters
        ----------
        values
            Rows are observations, columns are variables.  (N, P)
        names
            Of the variables.

        Returns
        -------
        Table
            All of whose columns hold numbers.

        Examples
        --------
        >>> import numpy as np
        >>> Table.of_numbers(np.zeros((50, 2)), ["dose", "outcome"]).names
        ('dose', 'outcome')
        """
        return cls(values, tuple(Column(name) for name in names))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the variables.  (P,)

        Returns
        -------
        tuple of str
            In the order of the columns.

        Examples
        --------
        >>> table.names[:3]
        ('age', 'smoker', 'ward')
        """
        return tuple(column.name for column in self.columns)

    @property
    def observations(self) -> int:
        """How many observations there are, N.

        Returns
        -------
        int
            Rows.

        Examples
        --------
        >>> table.observations
        800
        """
        return len(self.values)

    @property
    def variables(self) -> int:
        """How many variables there are, P.

        Returns
        -------
        int
            Columns.

        Examples
        --------
        >>> table.variables
        7
        """
        return len(self.columns)

    @cached_property
    def observed(self) -> Bools:
        """Where there is a value.  (N, P)

        Returns
        -------
        ndarray of bool
            False where a cell is missing.

        Examples
        --------
        >>> int((~table.observed).sum())
        77
        """
        return ~np.isnan(self.values)

    def only(self, rows: Bools) -> Table:
        """The table with some of its observations.

        Parameters
        ----------
        rows
            Which of them.  (N,)

        Returns
        -------
        Table
            With all columns, and what experiments set in these observations.

        Examples
        --------
        >>> table.only(table.observed.all(axis=1)).observations
        723
        """
        intervened = None if self.intervened is None else self.intervened[rows]
        return replace(self, values=self.values[rows], intervened=intervened)

    @cached_property
    def log_candidates(self) -> Bools:
        """Variables whose logarithms are worth trying: skewed and of one sign.  (P,)

        Returns
        -------
        ndarray of bool
            In the order of the columns.

        Examples
        --------
        >>> table.log_candidates.shape
        (7,)
        """
        return np.array(
            [
                column.kind == "number" and bool(log_candidates(values[~np.isnan(values), None])[0])
                for column, values in zip(self.columns, self.values.T, strict=True)
            ],
            dtype=bool,
        )


def in_safe_units(values: Floats) -> tuple[Floats, NDArray[np.int32]]:
    """The values of each column divided by a power of two that makes the largest about 1, and the exponents.

    Sums and squares of what comes out neither overflow nor vanish, and a division by a power of two rounds nothing.
    """
    _, exponents = np.frexp(np.nanmax(np.abs(values), axis=0))
    return np.ldexp(values, -exponents), exponents
