"""TableBatch and Truth: tables of one shape as tensors, and what is true of them; what tasks and networks exchange."""

# B tables, N observations, P variables

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any, TypeVar

import torch
from torch import Tensor

from causal_arrow.errors import ConfigurationError

SomeBatch = TypeVar("SomeBatch", bound="Batch")


@dataclass(frozen=True, eq=False)
class Batch:
    """Tensors whose first dimension counts tables; a field may also be None, a mapping of tensors, another batch, or a
    number that holds for all tables."""

    def __len__(self) -> int:
        return len(next(self.tensors()))

    def __getitem__(self: SomeBatch, part: slice) -> SomeBatch:
        """Some of the tables."""
        return self._each(lambda value: value[part])

    def to(self: SomeBatch, device: torch.device | str) -> SomeBatch:
        """The same batch on another device.

        Parameters
        ----------
        device
            Such as "cpu" or "cuda".

        Returns
        -------
        Batch
            A new one, of the same type.

        Examples
        --------
        >>> import torch
        >>> from causal_arrow.batches import TableBatch
        >>> TableBatch(torch.randn(3, 20, 4)).to("cpu").values.device
        device(type='cpu')
        """
        return self._each(lambda value: value.to(device))

    def split(self: SomeBatch, most: int) -> Iterator[SomeBatch]:
        """Parts of the batch, as equal in size as possible.

        Parameters
        ----------
        most
            How many tables a part may have.

        Returns
        -------
        iterator of Batch
            In the order of the batch.

        Examples
        --------
        >>> import torch
        >>> from causal_arrow.batches import TableBatch
        >>> [len(part) for part in TableBatch(torch.randn(5, 20, 4)).split(2)]
        [2, 1, 2]
        """
        parts = -(-len(self) // most)
        edges = [round(index * len(self) / parts) for index in range(parts + 1)]
        return (self[start:stop] for start, stop in pairwise(edges))

    def tensors(self) -> Iterator[Tensor]:
        """Every tensor of the batch.

        Returns
        -------
        iterator of Tensor
            Fields that are None are left out.

        Examples
        --------
        >>> import torch
        >>> from causal_arrow.batches import TableBatch
        >>> len(list(TableBatch(torch.randn(3, 20, 4)).tensors()))
        1
        """
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Tensor):
                yield value
            elif isinstance(value, Mapping):
                yield from value.values()
            elif isinstance(value, Batch):
                yield from value.tensors()

    def _each(self: SomeBatch, change: Callable[[Any], Any]) -> SomeBatch:
        def changed(value: Any) -> Any:
            if isinstance(value, Mapping):
                return {name: change(part) for name, part in value.items()}
            return value if value is None or isinstance(value, int) else change(value)

        return type(self)(**{field.name: changed(getattr(self, field.name)) for field in fields(self)})


@dataclass(frozen=True, eq=False)
class TableBatch(Batch):
    """Tables of one shape as a network reads them; without the optional parts, complete observations of numbers."""

    values: Tensor  # (B, N, P) numbers; for a category the code of its level
    observed: Tensor | None = None  # (B, N, P) bool, where the value was observed
    intervened: Tensor | None = None  # (B, N, P) bool, where an experiment set or shifted the value
    levels: Tensor | None = None  # (B, P) number of levels of a category, 0 for numbers
    ordered: Tensor | None = None  # (B, P) bool, where the codes of the levels have an order that is known
    most_levels: int | None = None  # no category has more; where it is not given, a GPU has to be waited for

    def __post_init__(self) -> None:
        shape = self.values.shape
        if self.values.dim() != 3 or shape[1] < 2 or shape[2] < 2:
            raise ConfigurationError(
                "Expected tables of shape (tables, observations, variables) with at least 2 observations and 2 "
                f"variables, got {tuple(shape)}."
            )
        for name, value, expected in (
            ("observed", self.observed, shape),
            ("intervened", self.intervened, shape),
            ("levels", self.levels, (shape[0], shape[2])),
            ("ordered", self.ordered, (shape[0], shape[2])),
        ):
            if value is not None and value.shape != expected:
                raise ConfigurationError(
                    f"Expected {name} of shape {tuple(expected)} beside values of shape {tuple(shape)}, "
                    f"got {tuple(value.shape)}."
                )

    @property
    def observations(self) -> int:
        """N"""
        return self.values.shape[1]

    @property
    def variables(self) -> int:
        """P"""
        return self.values.shape[2]

    def with_columns(self, places: Tensor, columns: Tensor) -> TableBatch:
        """The tables in these places (T,) with some of their columns, as many of each: (T, K)."""
        cells, rows = places[:, None, None], torch.arange(self.observations)[None, :, None]

        def of_cells(part: Tensor | None) -> Tensor | None:
            return None if part is None else part[cells, rows, columns[:, None, :]]

        def of_columns(part: Tensor | None) -> Tensor | None:
            return None if part is None else part[places[:, None], columns]

        values = self.values[cells, rows, columns[:, None, :]]
        levels, ordered = of_columns(self.levels), of_columns(self.ordered)
        return TableBatch(values, of_cells(self.observed), of_cells(self.intervened), levels, ordered, self.most_levels)

    def widest(self) -> int:
        """The number of levels that no category exceeds; 0 without categories."""
        if self.levels is None:
            return 0
        return int(self.levels.max()) if self.most_levels is None else self.most_levels


def concatenated(batches: Sequence[TableBatch]) -> TableBatch:
    """The tables of several batches as one; they have one shape, and each optional part is in all of them or none."""

    def together(name: str) -> Any:
        parts = [getattr(batch, name) for batch in batches]
        return None if parts[0] is None else torch.cat(parts)

    return TableBatch(**{field.name: together(field.name) for field in fields(TableBatch)})


@dataclass(frozen=True, eq=False)
class LongTable:
    """A table with more observations than a network reads one by one: all of it a column at a time, and which
    observations to read."""

    observations: int  # N
    column: Callable[[int], Tensor]  # the values of a column, NaN where nothing was observed; (N,) float64
    drawn: Tensor  # (M,) the places of the observations that are read one by one
    levels: Tensor  # (P,) number of levels of a category, 0 for numbers
    ordered: Tensor  # (P,) bool, where the codes of the levels have an order that is known
    complete: bool  # whether every value was observed
    intervened: Tensor | None = None  # (N, P) bool, where an experiment set or shifted the value

    @property
    def variables(self) -> int:
        """P"""
        return len(self.levels)

    def with_columns(self, columns: Tensor) -> LongTable:
        """The table with some of its columns.  (K,)"""
        places = columns.tolist()
        intervened = None if self.intervened is None else self.intervened[:, columns]
        return replace(
            self,
            column=lambda place: self.column(places[place]),
            levels=self.levels[columns],
            ordered=self.ordered[columns],
            intervened=intervened,
        )

    def observations_drawn(self) -> TableBatch:
        """The observations that are read one by one, as a table of their own."""
        values = torch.stack([self.column(place)[self.drawn] for place in range(self.variables)], dim=1)[None]
        has_levels = bool(self.levels.any())
        return TableBatch(
            values.nan_to_num(),
            observed=None if self.complete else ~values.isnan(),
            intervened=None if self.intervened is None else self.intervened[self.drawn][None],
            levels=self.levels[None] if has_levels else None,
            ordered=self.ordered[None] if has_levels else None,
        )


@dataclass(frozen=True, eq=False)
class Truth(Batch):
    """The causal graphs behind a batch of tables."""

    adjacency: Tensor  # (B, P, P) bool, adjacency[b, j, k] means j → k
    confounded: Tensor | None = None  # (B, P, P) bool, symmetric: the two share a cause that is not in the table
