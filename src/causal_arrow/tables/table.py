"""Table: observations of variables, as everything after reading sees them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# N observations, P variables

Floats = NDArray[np.float64]


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
    """Observations of variables as numbers, the names of the variables, and what was noticed while reading them."""

    values: Floats  # (N, P), not writable
    names: tuple[str, ...]  # (P,)
    findings: tuple[Finding, ...] = ()

    @property
    def observations(self) -> int:
        """How many observations there are, N."""
        return len(self.values)

    @property
    def variables(self) -> int:
        """How many variables there are, P."""
        return len(self.names)

    def standardized(self) -> Floats:
        """The values with mean 0 and standard deviation 1 (the one with n − 1) in each variable.  (N, P)

        In double precision and without a lower bound on the spread, so that the units of a column never matter.
        """
        # Divided first: the squares of very small numbers would vanish.
        scaled = self.values / np.abs(self.values).max(axis=0)
        centered = scaled - scaled.mean(axis=0)
        return np.asarray(centered / centered.std(axis=0, ddof=1))
