"""Random structural equations in numpy, independent of the generator that networks learn from.

    adjacency = random_graph(20, generator)
    columns = solve_equations(adjacency, 500, generator, function="nonlinear", noise="laplace")

A column holds numbers or levels, effects depend on the content of the column, and experiments may set values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from causal_arrow.graphs import dag
from causal_arrow.tables.table import Column
from causal_arrow_lab.benchmarks.datasets import BoolArray, FloatArray

# N observations, P variables, K levels

# Share of a variable's variance that its causes explain.
EXPLAINED = (0.3, 0.9)
WEIGHTS = (0.5, 1.5)
EDGES_PER_VARIABLE = (0.5, 2.0)
# An experiment sets values uniformly between these, about the middle 95% of a standard normal variable.
SET_VALUES = (-2.0, 2.0)

NOISES: dict[str, Callable[[np.random.Generator, int], FloatArray]] = {
    "normal": lambda generator, count: generator.standard_normal(count),
    "uniform": lambda generator, count: generator.uniform(-np.sqrt(3), np.sqrt(3), count),
    "laplace": lambda generator, count: generator.laplace(scale=np.sqrt(0.5), size=count),
}
"""Noise distributions, each with mean 0 and variance 1.  (N,)"""

CURVES: tuple[Callable[[FloatArray], FloatArray], ...] = (
    lambda x: np.tanh(2 * x),
    lambda x: x * np.abs(x),
    lambda x: x**2,
    lambda x: np.exp(-(x**2)),
)


def linear(parents: FloatArray, generator: np.random.Generator) -> FloatArray:
    """A weighted sum of the parents with weights of random sign.  (N,)"""
    return np.asarray(parents @ _weights(parents.shape[1], generator))


def nonlinear(parents: FloatArray, generator: np.random.Generator) -> FloatArray:
    """A weighted sum of one curve per parent.  (N,)"""
    chosen = generator.integers(len(CURVES), size=(parents.shape[1],))
    bent = np.column_stack([standard(CURVES[curve](parents[:, j])) for j, curve in enumerate(chosen.tolist())])
    return np.asarray(bent @ _weights(parents.shape[1], generator))


FUNCTIONS = {"linear": linear, "nonlinear": nonlinear}


def _weights(count: int, generator: np.random.Generator) -> FloatArray:
    return np.asarray(generator.uniform(*WEIGHTS, count) * generator.choice([-1.0, 1.0], count))


def standard(values: FloatArray) -> FloatArray:
    """Shift and scale values to mean 0 and standard deviation 1; zeros for a constant."""
    spread = values.std()
    return np.asarray((values - values.mean()) / (spread if spread > 0 else 1.0))


def random_graph(variables: int, generator: np.random.Generator) -> BoolArray:
    """Draw a DAG whose number of edges is uniform between half and twice the number of variables.  (P, P)"""
    later = np.triu_indices(variables, k=1)
    low, high = (round(rate * variables) for rate in EDGES_PER_VARIABLE)
    edges = int(generator.integers(low, min(high, len(later[0])), endpoint=True))
    chosen = generator.choice(len(later[0]), size=edges, replace=False)
    adjacency = np.zeros((variables, variables), dtype=bool)
    adjacency[later[0][chosen], later[1][chosen]] = True
    order = generator.permutation(variables)
    return adjacency[np.ix_(order, order)]


# Columns


@dataclass(frozen=True, eq=False)
class DrawnColumn:
    """A column as in the table, and the numbers on which its effects depend."""

    values: FloatArray  # (N,) numbers, or codes of levels
    felt: FloatArray  # (N,) with mean 0 and standard deviation 1
    kind: str = "number"
    levels: int = 0

    def column(self, name: str) -> Column:
        """The column's name, kind and levels, which are called a, b, c, ..."""
        return Column(name, self.kind, tuple(chr(ord("a") + level) for level in range(self.levels)))


def continuous(latent: FloatArray, generator: np.random.Generator) -> DrawnColumn:
    """A number with all its digits."""
    return DrawnColumn(latent, standard(latent))


def rounded(latent: FloatArray, generator: np.random.Generator) -> DrawnColumn:
    """A number rounded to whole standard deviations: five to seven different values."""
    values = np.round(standard(latent))
    return DrawnColumn(values, standard(values))


def ordinal(latent: FloatArray, generator: np.random.Generator) -> DrawnColumn:
    """Three to five ordered levels with steps of unequal size."""
    codes = _cut(latent, int(generator.integers(3, 6)), generator)
    steps = np.cumsum(generator.uniform(0.3, 1.0, codes.max() + 1))
    return DrawnColumn(codes.astype(np.float64), standard(steps[codes]), "ordered", int(codes.max()) + 1)


def nominal(latent: FloatArray, generator: np.random.Generator) -> DrawnColumn:
    """Two to six unordered levels, each with a different influence on effects; codes are random."""
    codes = _cut(latent, int(generator.integers(2, 7)), generator)
    count = int(codes.max()) + 1
    # Evenly spread scores in random order: no two levels act alike.
    felt = standard(generator.permutation(count).astype(np.float64)[codes])
    renamed = generator.permutation(count)[codes]
    return DrawnColumn(renamed.astype(np.float64), felt, "binary" if count == 2 else "category", count)


KINDS_OF_COLUMNS: dict[str, Callable[[FloatArray, np.random.Generator], DrawnColumn]] = {
    "continuous": continuous,
    "rounded": rounded,
    "ordinal": ordinal,
    "nominal": nominal,
}


def _cut(latent: FloatArray, levels: int, generator: np.random.Generator) -> np.ndarray:
    """Cut into codes 0, 1, ... of `levels` levels, none much rarer than a tenth of an equal share."""
    shares = 0.1 / levels + 0.9 * generator.dirichlet(np.full(levels, 3.0))
    thresholds = np.quantile(latent, np.cumsum(shares / shares.sum())[:-1])
    codes = np.searchsorted(thresholds, latent, side="right")
    return np.unique(codes, return_inverse=True)[1].reshape(len(latent))


def solve_equations(
    adjacency: BoolArray,
    observations: int,
    generator: np.random.Generator,
    *,
    function: str = "linear",
    noise: str = "normal",
    kinds: Sequence[str] | None = None,
    intervened: BoolArray | None = None,
    explained: Mapping[int, float] | None = None,
) -> list[DrawnColumn]:
    """Draw the column of each variable, causes first: x_k = √r · f(parents) + √(1 − r) · noise.

    kinds       of each column, names of KINDS_OF_COLUMNS; all continuous by default
    intervened  (N, P), where an experiment sets the value, independently of the causes
    explained   the share r of some variables; the others are drawn
    """
    drawn: dict[int, DrawnColumn] = {}
    for k in map(int, dag.topological_order(adjacency)):
        parents = np.flatnonzero(adjacency[:, k])
        latent = NOISES[noise](generator, observations)
        if parents.size:
            felt = np.column_stack([drawn[int(parent)].felt for parent in parents])
            share = (explained or {}).get(k, generator.uniform(*EXPLAINED))
            signal = standard(FUNCTIONS[function](felt, generator))
            latent = np.sqrt(share) * signal + np.sqrt(1 - share) * latent
        if intervened is not None:
            latent = np.where(intervened[:, k], generator.uniform(*SET_VALUES, observations), latent)
        drawn[k] = KINDS_OF_COLUMNS[kinds[k] if kinds is not None else "continuous"](latent, generator)
    return [drawn[k] for k in range(len(adjacency))]
