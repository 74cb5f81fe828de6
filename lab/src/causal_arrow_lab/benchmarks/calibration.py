"""Calibration, how often what a method states comes true: edges, adjacencies, directions of true edges, and ancestors.

Each `..._reliability` is of one graph; those of many graphs add up (`pool`).
"""

# P variables

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from causal_arrow.errors import GraphError
from causal_arrow.graphs import dag
from causal_arrow.graphs.dag import BoolMatrix
from causal_arrow.graphs.metrics import FloatArray, ordered_pairs

# Nearly every ordered pair has no edge and a probability near 0, and would hide any miscalibration of the others.
CALIBRATION_FLOOR = 0.05
CALIBRATION_BINS = 10
FINE_BINS = 20
"""So that the thresholds of the words for a direction, 0.75 and 0.95, lie between two bins."""


@dataclass(frozen=True)
class Reliability:
    """Frequency of edges whose probability lies in a bin; bins have equal width and hold their lower end.

    Holds sums, so that those of many datasets add up to that of all their pairs (`pool`).
    """

    pairs: FloatArray  # (bins,) ordered pairs with a probability in the bin
    probability_sum: FloatArray  # (bins,) their probabilities, added up: the number of edges promised
    edges: FloatArray  # (bins,) how many of them are edges of the true graph

    def to_lists(self) -> dict[str, list[float]]:
        """The table as JSON values."""
        return {
            "pairs": self.pairs.tolist(),
            "probability_sum": np.round(self.probability_sum, 6).tolist(),
            "edges": self.edges.tolist(),
        }

    @classmethod
    def from_lists(cls, lists: Mapping[str, list[float]]) -> Reliability:
        """Read the values of `to_lists`."""
        table = cls(**{name: np.array(values, dtype=np.float64) for name, values in lists.items()})
        if len({part.shape for part in (table.pairs, table.probability_sum, table.edges)}) > 1 or table.pairs.ndim != 1:
            raise ValueError("the parts of a reliability table differ in size")
        return table

    @property
    def mean_probability(self) -> FloatArray:
        """Mean probability in each bin; nan in an empty one.  (bins,)"""
        return np.where(self.pairs > 0, self.probability_sum / np.maximum(self.pairs, 1), math.nan)

    @property
    def edge_frequency(self) -> FloatArray:
        """Share of true edges in each bin; nan in an empty one.  (bins,)"""
        return np.where(self.pairs > 0, self.edges / np.maximum(self.pairs, 1), math.nan)

    @property
    def expected_calibration_error(self) -> float:
        """Σ_bins (share of the pairs) · |mean probability − edge frequency|; nan without pairs."""
        total = self.pairs.sum()
        return float(np.abs(self.probability_sum - self.edges).sum() / total) if total else math.nan


def pool(parts: Iterable[Reliability]) -> Reliability:
    """The reliability over the pairs of several graphs together."""
    parts = list(parts)
    return Reliability(
        pairs=np.sum([part.pairs for part in parts], axis=0),
        probability_sum=np.sum([part.probability_sum for part in parts], axis=0),
        edges=np.sum([part.edges for part in parts], axis=0),
    )


def binned(outcomes: BoolMatrix, probabilities: FloatArray, bins: int) -> Reliability:
    """The reliability of stated probabilities (pairs,), given what came out (pairs,)."""
    # Probabilities computed as sums may fall short of a boundary by rounding; 1 belongs to the last bin.
    bin_of_pair = np.minimum((probabilities * bins + 1e-9).astype(np.int64), bins - 1)
    return Reliability(
        pairs=np.bincount(bin_of_pair, minlength=bins).astype(np.float64),
        probability_sum=np.bincount(bin_of_pair, weights=probabilities, minlength=bins).astype(np.float64),
        edges=np.bincount(bin_of_pair[outcomes], minlength=bins).astype(np.float64),
    )


def edge_reliability(
    truth: ArrayLike, probabilities: ArrayLike, *, bins: int = CALIBRATION_BINS, floor: float = 0.0
) -> Reliability:
    """Frequency of directed edges by their probability (P, P), over ordered pairs with at least `floor`."""
    outcomes, pair_probabilities = ordered_pairs(dag.ensure_graph(truth), probabilities)
    if pair_probabilities.size and (pair_probabilities.min() < 0 or pair_probabilities.max() > 1):
        raise GraphError(
            f"Probabilities lie between 0 and 1, but these go from {pair_probabilities.min():g} to "
            f"{pair_probabilities.max():g}. Calibration has no meaning for other scores; leave it out."
        )
    counted = pair_probabilities >= floor
    return binned(outcomes[counted], pair_probabilities[counted], bins)


def calibration_errors(truth: ArrayLike, probabilities: ArrayLike | None) -> dict[str, float]:
    """The expected calibration errors of one graph's directed-edge probabilities, nan without any.

    With few pairs per bin, one graph's error is mostly chance: `pool` those of many graphs to judge a method.
    """
    if probabilities is None:
        return {"ece": math.nan, "ece_above_floor": math.nan}
    return {
        "ece": edge_reliability(truth, probabilities).expected_calibration_error,
        "ece_above_floor": edge_reliability(truth, probabilities, floor=CALIBRATION_FLOOR).expected_calibration_error,
    }


def reliabilities(
    truth: ArrayLike, probabilities: FloatArray | None, ancestors: FloatArray | None
) -> dict[str, Reliability]:
    """All tables of one graph, by their names in records, for the probabilities that are stated.

    adjacencies  of pairs, by the probability of an edge in either direction
    directions   of truly adjacent pairs, by the probability of the favored direction given that there is an edge, from
                 ½ to 1; those without any probability of an edge state none
    ancestors    of ordered pairs, by the probability of a directed path
    """
    found, graph = {}, dag.ensure_graph(truth)
    if probabilities is not None:
        upper = np.triu_indices(len(graph), k=1)
        either = np.minimum(probabilities + probabilities.T, 1.0)  # the two may add up to more by rounding
        first, second = np.nonzero(np.triu(graph ^ graph.T) & (probabilities + probabilities.T > 0))
        forward, backward = probabilities[first, second], probabilities[second, first]
        favored = np.where(forward >= backward, graph[first, second], graph[second, first])
        stated = np.maximum(forward, backward) / (forward + backward)
        found = {
            "reliability": edge_reliability(truth, probabilities),
            "reliability_above_floor": edge_reliability(truth, probabilities, floor=CALIBRATION_FLOOR),
            "adjacencies": binned((graph | graph.T)[upper], either[upper], FINE_BINS),
            "directions": binned(favored, stated, FINE_BINS),
        }
    if ancestors is not None:
        apart = ~np.eye(len(graph), dtype=bool)
        found["ancestors"] = binned(dag.transitive_closure(graph)[apart], ancestors[apart], FINE_BINS)
    return found
