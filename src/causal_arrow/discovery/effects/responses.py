"""Expected results of experiments: how each variable responds when another is randomized, by each of many graphs.

For each graph, linear equations are fitted to the table: B[j, k] is the coefficient of j among the causes of k. If j is
set at random over its usual range, all else left to itself, then k moves by Θ[j, k] = [(I − B)⁻¹ − I][j, k] standard
deviations per standard deviation of j: zero unless j is a cause of k, direct or not. With m observations of the
experiment and n of the table, the slope that the experiment finds is about Norm(Θ, 1/m + 1/n), or Norm(0, 1/m) where
j is no cause. It is seen to differ from zero beyond 2.58 / √m, a test at the level of 1%.
"""

# N observations, P variables, K graphs, S sets

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from causal_arrow.batches import TableBatch
from causal_arrow.graphs.dag import transitive_closure
from causal_arrow.network.basis import as_numbers
from causal_arrow.tables.scales import with_logarithms
from causal_arrow.tables.table import Table, in_safe_units

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

DETECTION = 2.5758
"""Standard errors from which on a response counts as seen: a test at the level of 1%."""
RIDGE = 1e-6


def as_standardized(table: Table, log_columns: tuple[str, ...] = ()) -> Floats:
    """All columns as numbers with mean 0 and variance 1: a category by the scores of its levels, holes filled.  (N, P)

    Columns that the network read on a log scale are so here.
    """
    logarithms = np.array([name in log_columns for name in table.names])
    values, _ = in_safe_units(with_logarithms(table.values, logarithms))
    levels = np.array([len(column.levels) if column.kind == "category" else 0 for column in table.columns])
    center, spread = np.nanmean(values, axis=0), np.nanstd(values, axis=0)
    numbers = (values - center) / np.where(spread > 0, spread, 1.0)
    numbers = np.where(levels > 0, table.values, numbers)
    batch = TableBatch(
        np.nan_to_num(numbers)[None].astype(np.float32),
        None if table.observed.all() else table.observed[None],
        levels=levels[None] if levels.any() else None,
    )
    filled = as_numbers(batch, canonical_signs=False).values[0].astype(np.float64)
    centered = filled - filled.mean(axis=0)
    return np.asarray(centered / np.maximum(centered.std(axis=0), 1e-12))


def plain_observations(table: Table) -> Bools:
    """The observations in which no experiment has set anything, or all if those are too few.  (N,)"""
    everything = np.ones(table.observations, dtype=bool)
    if table.intervened is None:
        return everything
    plain = np.asarray(~table.intervened.any(axis=1))
    return plain if plain.sum() > 2 * table.variables + 10 else everything


@dataclass(frozen=True, eq=False)
class Responses:
    """Change of k if j is set, in standard deviations of both, by each graph."""

    sizes: Floats  # (K, P, P) Θ
    table_observations: int  # n
    observations: int  # m, of the experiment

    def spread(self, variable: int) -> Floats:
        """Standard deviation of the slopes that an experiment finds around those that each graph expects.  (K, P)

        Where a graph expects none, only the experiment has an error.
        """
        fitted = (self.sizes[:, variable, :] != 0) / self.table_observations
        return np.asarray(np.sqrt(1 / self.observations + fitted))

    def outcomes(self, variable: int, limits: Floats | None = None) -> Floats:
        """Probability, by each graph, that the slope of each variable falls between the limits.  (K, P, limits + 1)

        By default: that it is seen to fall, not seen to respond, or seen to rise.
        """
        from scipy.special import ndtr

        if limits is None:
            limits = np.array([-1.0, 1.0]) * DETECTION / np.sqrt(self.observations)
        scaled = (limits - self.sizes[:, variable, :, None]) / self.spread(variable)[:, :, None]
        below = ndtr(scaled)  # (K, P, limits)
        below[:, variable] = 0.0  # the variable itself is set: it tells nothing
        ends = np.zeros((*below.shape[:2], 1))
        return np.diff(np.concatenate([ends, below, ends + 1], axis=2), axis=2)

    def likelihood(self, variable: int, slopes: Floats) -> Floats:
        """Logarithm of the density of the slopes (P,) that an experiment found, by each graph and variable.  (K, P)"""
        spread = self.spread(variable)
        logarithms = -0.5 * np.square((slopes - self.sizes[:, variable, :]) / spread) - np.log(spread)
        logarithms[:, variable] = 0.0
        return np.asarray(logarithms)


def expected_responses(graphs: Bools, values: Floats, observations: int) -> Responses:
    """The responses that each graph (K, P, P) expects, by linear equations fitted to standardized values (N, P)."""
    correlation = values.T @ values / len(values)
    correlation = correlation + RIDGE * np.eye(len(correlation))
    coefficients = np.zeros(graphs.shape)
    for effect in range(graphs.shape[1]):
        sets, graph_sets = np.unique(graphs[:, :, effect], axis=0, return_inverse=True)
        found = _regressions(correlation, effect, sets)  # (S, P)
        coefficients[:, :, effect] = found[graph_sets.ravel()]
    identity = np.eye(graphs.shape[1])
    sizes = np.linalg.inv(identity - coefficients) - identity
    # Without a path there is no response, not one of the size of a rounding error, which would count as fitted.
    sizes[~transitive_closure(graphs)] = 0.0
    return Responses(sizes, len(values), observations)


def _regressions(correlation: Floats, effect: int, sets: Bools) -> Floats:
    """Coefficients of an effect on each set of causes, sets of one size at a time.  (S, P)"""
    coefficients = np.zeros(sets.shape)
    sizes = sets.sum(axis=1)
    for size in np.unique(sizes[sizes > 0]).tolist():
        rows = np.flatnonzero(sizes == size)
        members = np.nonzero(sets[rows])[1].reshape(len(rows), size)
        inside = correlation[members[:, :, None], members[:, None, :]]
        solved = np.linalg.solve(inside, correlation[members, effect][:, :, None])[:, :, 0]
        coefficients[rows[:, None], members] = solved
    return coefficients


def found_slopes(variable: int, rows: Floats) -> Floats:
    """The slope of every variable on the one that was set, in observations (M, P) of the experiment.  (P,)"""
    centered = rows - rows.mean(axis=0)
    cause = centered[:, variable]
    return np.asarray(cause @ centered / max(float(cause @ cause), 1e-12))
