"""A benchmark dataset: a table of observations and the causal graph it is judged against."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

# Dataset shapes of the paper's section 4.1, both ends included.
PAPER_OBSERVATIONS = (100, 2000)
PAPER_VARIABLES = (2, 100)
PAPER_EDGES_PER_VARIABLE = 4


@dataclass(frozen=True)
class Dataset:
    """Observations on their own scale, and the graph that generated them or that experts agree on."""

    data: FloatArray  # (N, P)
    adjacency: BoolArray  # (P, P), [j, k] when j → k
    names: tuple[str, ...]  # of the P variables
    details: Mapping[str, Any] = field(default_factory=dict)  # what a record should say of it; plain JSON values


def unnamed(data: FloatArray, adjacency: BoolArray, **details: Any) -> Dataset:
    """A dataset with variables x1, x2, ..."""
    names = tuple(f"x{position + 1}" for position in range(data.shape[1]))
    return Dataset(data, adjacency, names, details)


def shuffle_variables(dataset: Dataset, generator: np.random.Generator) -> Dataset:
    """The same dataset with its variables in random order, so that their order says nothing about causes."""
    order = generator.permutation(len(dataset.names))
    return replace(
        dataset,
        data=np.ascontiguousarray(dataset.data[:, order]),
        adjacency=dataset.adjacency[np.ix_(order, order)],
        names=tuple(dataset.names[position] for position in order),
    )


def draw_shape(
    generator: np.random.Generator, observations: int | None = None, variables: int | None = None
) -> tuple[int, int]:
    """Numbers of observations and variables: as given, or drawn as in the paper's section 4.1 where None."""
    drawn_observations = int(generator.integers(*PAPER_OBSERVATIONS, endpoint=True))
    drawn_variables = int(generator.integers(*PAPER_VARIABLES, endpoint=True))
    return observations or drawn_observations, variables or drawn_variables
