"""TableBatch and Truth: tables of one shape as tensors, and what is true of them; what tasks and networks exchange."""

# B tables, N observations, P variables

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any, TypeVar

import torch
from torch import Tensor

from causal_arrow.errors import ConfigurationError

Batch = TypeVar("Batch", bound="_Batch")


@dataclass(frozen=True, eq=False)
class _Batch:
    """Tensors whose first dimension counts tables; a field may be None, or a batch of its own."""

    def __len__(self) -> int:
        return len(next(value for value in self._values().values() if value is not None))

    def __getitem__(self: Batch, part: slice) -> Batch:
        """Some of the tables."""
        return self._each(lambda value: value[part])

    def to(self: Batch, device: torch.device | str) -> Batch:
        """The same on another device."""
        return self._each(lambda value: value.to(device))

    def split(self: Batch, most: int) -> Iterator[Batch]:
        """Parts of at most `most` tables, as equal as possible."""
        parts = -(-len(self) // most)
        edges = [round(index * len(self) / parts) for index in range(parts + 1)]
        return (self[start:stop] for start, stop in pairwise(edges))

    def tensors(self) -> Iterator[Tensor]:
        """Every tensor there is."""
        for value in self._values().values():
            if isinstance(value, Tensor):
                yield value
            elif value is not None:
                yield from value.tensors()

    def _values(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def _each(self: Batch, change: Callable[[Any], Any]) -> Batch:
        return type(self)(**{name: None if value is None else change(value) for name, value in self._values().items()})


@dataclass(frozen=True, eq=False)
class TableBatch(_Batch):
    """Tables of one shape as a network reads them; without the optional parts, complete observations of numbers."""

    values: Tensor  # (B, N, P) numbers; for a category the code of its level
    observed: Tensor | None = None  # (B, N, P) bool, where the value was observed
    intervened: Tensor | None = None  # (B, N, P) bool, where the value was set by an experiment
    levels: Tensor | None = None  # (B, P) number of levels of a category, 0 for numbers

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


@dataclass(frozen=True, eq=False)
class Truth(_Batch):
    """The causal graphs behind a batch of tables."""

    adjacency: Tensor  # (B, P, P) bool, adjacency[b, j, k] means j → k
    confounded: Tensor | None = None  # (B, P, P) bool, symmetric: the two share a cause that is not in the table
