"""Table: observations of variables, as everything after reading sees them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from causal_arrow.errors import check_choice

# N observations, P variables

Floats = NDArray[np.float64]


Bools = NDArray[np.bool_]

KINDS = ("number", "binary", "ordered", "category")
"""What a column can hold: numbers; yes or no; levels in an order; levels without one."""


@dataclass(frozen=True)
class Column:
    """A variable of a table: its name, what kind of values it has, and the names of its levels in order of their codes.

    Numbers have no levels. The values of every other kind are codes 0, 1, 2, ... of `levels`.
    """

    name: str
    kind: str = "number"
    levels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_choice("the kind of a column", self.kind, KINDS)


@dataclass(frozen=True)
class Finding:
    """Something noticed about a table, and in its message what that means for trust in the answer.

    severity: "note" (good to know), "warning" (may mislead), "problem" (stands in the way of an answer).
    """

    kind: str
    severity: str
    columns: tuple[str, ...]
    message: str


@dataclass(frozen=True, eq=False)
class Table:
    """Observations of variables as numbers, what each variable is, and what was noticed while reading them."""

    values: Floats  # (N, P), not writable; NaN where nothing was observed
    columns: tuple[Column, ...]  # (P,)
    findings: tuple[Finding, ...] = ()

    @classmethod
    def of_numbers(cls, values: Floats, names: Sequence[str]) -> Table:
        """A table of numbers with these names."""
        return cls(values, tuple(Column(name) for name in names))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the variables.  (P,)"""
        return tuple(column.name for column in self.columns)

    @property
    def observations(self) -> int:
        """How many observations there are, N."""
        return len(self.values)

    @property
    def variables(self) -> int:
        """How many variables there are, P."""
        return len(self.columns)

    @cached_property
    def observed(self) -> Bools:
        """Where there is a value.  (N, P)"""
        return ~np.isnan(self.values)

    def standardized(self) -> Floats:
        """The values with mean 0 and standard deviation 1 (the one with n − 1) in each variable.  (N, P)

        In double precision and without a lower bound on the spread, so that the units of a column never matter.
        """
        # Divided first: the squares of very small numbers would vanish.
        scaled = self.values / np.abs(self.values).max(axis=0)
        centered = scaled - scaled.mean(axis=0)
        return np.asarray(centered / centered.std(axis=0, ddof=1))
