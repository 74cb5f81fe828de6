"""Batches of tensors: tables as training draws them, and the graphs behind them."""

# B tables, N observations, P variables

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from causal_arrow.batches import TableBatch

SomeBatch = TypeVar("SomeBatch", bound="Batch")


@dataclass(frozen=True, eq=False)
class Batch:
    """Tensors whose first dimension counts tables; also None, mappings of tensors, batches, or one number for all."""

    def __len__(self) -> int:
        return len(next(self.tensors()))

    def __getitem__(self: SomeBatch, part: slice) -> SomeBatch:
        """Some of the tables."""
        return self._each(lambda value: value[part])

    def to(self: SomeBatch, device: torch.device | str) -> SomeBatch:
        """The same batch on another device, such as "cpu" or "cuda".

        Examples
        --------
        >>> import torch
        >>> from causal_arrow_lab.batches import TensorBatch
        >>> TensorBatch(torch.randn(3, 20, 4)).to("cpu").values.device
        device(type='cpu')
        """
        return self._each(lambda value: value.to(device))

    def split(self: SomeBatch, most: int) -> Iterator[SomeBatch]:
        """Parts of at most `most` tables, as equal in size as possible.

        Examples
        --------
        >>> import torch
        >>> from causal_arrow_lab.batches import TensorBatch
        >>> [len(part) for part in TensorBatch(torch.randn(5, 20, 4)).split(2)]
        [2, 1, 2]
        """
        parts = -(-len(self) // most)
        edges = [round(index * len(self) / parts) for index in range(parts + 1)]
        return (self[start:stop] for start, stop in pairwise(edges))

    def tensors(self) -> Iterator[Tensor]:
        """Every tensor of the batch."""
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
class TensorBatch(TableBatch, Batch):
    """A `TableBatch` of tensors, on one device."""

    ordered: Tensor | None = None  # (B, P) bool, where the codes of the levels have an order that is known
    widest: int | None = None  # no category has more levels; where it is not given, a GPU has to be waited for

    @property
    def max_levels(self) -> int:
        """The number of levels that no category exceeds; 0 without categories."""
        return super().max_levels if self.widest is None else self.widest

    @classmethod
    def of(cls, tables: TableBatch) -> TensorBatch:
        """Tables of numpy arrays as tensors."""
        parts = {field.name: getattr(tables, field.name) for field in fields(tables)}
        arrays = {name: part for name, part in parts.items() if isinstance(part, np.ndarray)}
        return cls(**parts | {name: torch.tensor(part) for name, part in arrays.items()})


@dataclass(frozen=True, eq=False)
class Truth(Batch):
    """The causal graphs behind a batch of tables."""

    adjacency: Tensor  # (B, P, P) bool, adjacency[b, j, k] means j → k
    confounded: Tensor | None = None  # (B, P, P) bool, symmetric: the two share a cause that is not in the table
