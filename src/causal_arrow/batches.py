"""TableBatch and LongTable: tables as networks read them."""

# B tables, N observations, P variables

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from causal_arrow.errors import ConfigurationError

Array = Any
"""A numpy array, or in the lab a torch tensor."""
Indices = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class TableBatch:
    """Tables of one shape; without the optional parts, complete observations of numbers."""

    values: Array  # (B, N, P) numbers; for a category the code of its level
    observed: Array | None = None  # (B, N, P) bool, where the value was observed
    intervened: Array | None = None  # (B, N, P) bool, where an experiment set or shifted the value
    levels: Array | None = None  # (B, P) number of levels of a category, 0 for numbers

    def __post_init__(self) -> None:
        shape = tuple(self.values.shape)
        if len(shape) != 3 or shape[1] < 2 or shape[2] < 2:
            raise ConfigurationError(
                "Expected tables of shape (tables, observations, variables) with at least 2 observations and 2 "
                f"variables, got {shape}."
            )
        for name, expected in (("observed", shape), ("intervened", shape), ("levels", (shape[0], shape[2]))):
            part = getattr(self, name)
            if part is not None and tuple(part.shape) != expected:
                raise ConfigurationError(
                    f"Expected {name} of shape {expected} for values of shape {shape}, got {tuple(part.shape)}."
                )

    @property
    def observations(self) -> int:
        """N"""
        return int(self.values.shape[1])

    @property
    def variables(self) -> int:
        """P"""
        return int(self.values.shape[2])

    @property
    def complete(self) -> bool:
        """Whether every value was observed."""
        return self.observed is None or bool(self.observed.all())

    @property
    def max_levels(self) -> int:
        """The number of levels that no category exceeds; 0 without categories."""
        return 0 if self.levels is None else int(self.levels.max())

    def with_columns(self, indices: Indices, columns: Indices) -> TableBatch:
        """Some of the tables (T,), each with some of its columns, as many of each: (T, K)."""
        cells = indices[:, None, None], np.arange(self.observations)[None, :, None], columns[:, None, :]
        observed, intervened = (None if part is None else part[cells] for part in (self.observed, self.intervened))
        levels = None if self.levels is None else self.levels[indices[:, None], columns]
        return TableBatch(self.values[cells], observed, intervened, levels)


def concatenated(batches: Sequence[TableBatch]) -> TableBatch:
    """The tables of several batches as one; they have one shape, and each optional part is in all of them or none."""
    parts = [[getattr(batch, field.name) for batch in batches] for field in fields(TableBatch)]
    return TableBatch(*(None if part[0] is None else np.concatenate(part) for part in parts))


@dataclass(frozen=True, eq=False)
class LongTable:
    """A table with more observations than a network reads one by one: all of it a column at a time, and which
    observations to read."""

    observations: int  # N
    column: Callable[[int], NDArray[np.float64]]  # the values of a column, NaN where nothing was observed  (N,)
    drawn: Indices  # (M,) the observations that are read one by one
    levels: NDArray[np.int64]  # (P,) number of levels of a category, 0 for numbers
    complete: bool  # whether every value was observed
    intervened: NDArray[np.bool_] | None = None  # (N, P) where an experiment set or shifted the value

    @property
    def variables(self) -> int:
        """P"""
        return len(self.levels)

    def with_columns(self, columns: Indices) -> LongTable:
        """The table with some of its columns.  (K,)"""
        intervened = None if self.intervened is None else self.intervened[:, columns]
        column, levels = lambda index: self.column(int(columns[index])), self.levels[columns]
        return replace(self, column=column, levels=levels, intervened=intervened)

    def observations_drawn(self) -> TableBatch:
        """The observations that are read one by one, as a table."""
        values = np.stack([self.column(index)[self.drawn] for index in range(self.variables)], axis=1)[None]
        return TableBatch(
            np.nan_to_num(values),
            observed=None if self.complete else ~np.isnan(values),
            intervened=None if self.intervened is None else self.intervened[self.drawn][None],
            levels=self.levels[None] if self.levels.any() else None,
        )
