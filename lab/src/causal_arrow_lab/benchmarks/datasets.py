"""A benchmark dataset: a table of observations and the causal graph that answers are judged by."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from causal_arrow.graphs.dag import CausalGraph
from causal_arrow.tables.table import Column, Table

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

NOISES: Mapping[str, Callable[[np.random.Generator, int | tuple[int, ...]], FloatArray]] = {
    "normal": lambda generator, shape: generator.standard_normal(shape),
    "uniform": lambda generator, shape: generator.uniform(-np.sqrt(3), np.sqrt(3), shape),
    "laplace": lambda generator, shape: generator.laplace(scale=np.sqrt(0.5), size=shape),
}
"""Noise distributions, each with mean 0 and variance 1."""

# Dataset shapes of the paper's section 4.1, both ends included.
PAPER_OBSERVATIONS = (100, 2000)
PAPER_VARIABLES = (2, 100)
PAPER_EDGES_PER_VARIABLE = 4


@dataclass(frozen=True)
class Dataset:
    """Observations on their original scale, and the graph that generated them or that experts agree on.

    Without the optional parts: complete observations of numbers, no experiments, no hidden causes.
    """

    data: FloatArray  # (N, P); codes of levels; nan where nothing was observed
    adjacency: BoolArray  # (P, P), [j, k] when j → k
    names: tuple[str, ...]  # of the P variables
    details: Mapping[str, Any] = field(default_factory=dict)  # for records; plain JSON values
    columns: tuple[Column, ...] | None = None  # (P,) kinds and levels; None if all are numbers
    intervened: BoolArray | None = None  # (N, P), where an experiment set the value
    confounded: BoolArray | None = None  # (P, P), symmetric: pairs with a common cause that is not in the table
    twin: Dataset | None = None  # the same table in another form, which should get the same answer; no known graph

    @property
    def table(self) -> Table:
        """The observations with the kinds of their columns, as a method sees them."""
        return Table.of_numbers(self.data, self.names) if self.columns is None else Table(self.data, self.columns)

    @property
    def graph(self) -> CausalGraph:
        """The graph, including pairs that share a hidden cause."""
        return CausalGraph(self.adjacency, self.confounded)


def standard(values: FloatArray) -> FloatArray:
    """Shift and scale values to mean 0 and standard deviation 1; zeros for a constant."""
    spread = values.std()
    return np.asarray((values - values.mean()) / (spread if spread > 0 else 1.0))


def unnamed(data: FloatArray, adjacency: BoolArray, **details: Any) -> Dataset:
    """Make a dataset with variables x1, x2, ..."""
    return Dataset(data, adjacency, default_names(data.shape[1]), details)


def default_names(variables: int) -> tuple[str, ...]:
    """x1, x2, ..."""
    return tuple(f"x{index + 1}" for index in range(variables))


def shuffle_variables(dataset: Dataset, generator: np.random.Generator) -> Dataset:
    """Put the variables in random order, so that their order is uninformative."""
    return in_order(dataset, generator.permutation(len(dataset.names)))


def in_order(dataset: Dataset, order: npt.NDArray[np.int64]) -> Dataset:
    """Select variables in this order; in the twin, the variables that they share come first in the same order."""
    names = tuple(dataset.names[index] for index in order)
    twin = dataset.twin
    if twin is not None:
        shared = [twin.names.index(name) for name in names if name in twin.names]
        twin = in_order(twin, np.array(shared + [index for index in range(len(twin.names)) if index not in shared]))
    pairs = np.ix_(order, order)
    return replace(
        dataset,
        data=np.ascontiguousarray(dataset.data[:, order]),
        adjacency=dataset.adjacency[pairs],
        names=names,
        columns=None if dataset.columns is None else tuple(dataset.columns[index] for index in order),
        intervened=None if dataset.intervened is None else dataset.intervened[:, order],
        confounded=None if dataset.confounded is None else dataset.confounded[pairs],
        twin=twin,
    )


def seed_of(identity: str) -> int:
    """A seed that is the same for this text on every machine."""
    return int.from_bytes(hashlib.sha256(identity.encode()).digest()[:8], "little")


def draw_shape(
    generator: np.random.Generator, observations: int | None = None, variables: int | None = None
) -> tuple[int, int]:
    """Numbers of observations and variables: as given, or drawn as in the paper's section 4.1."""
    drawn_observations = int(generator.integers(*PAPER_OBSERVATIONS, endpoint=True))
    drawn_variables = int(generator.integers(*PAPER_VARIABLES, endpoint=True))
    return observations or drawn_observations, variables or drawn_variables
