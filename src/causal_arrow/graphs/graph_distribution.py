"""GraphDistribution: what a network infers about the graph behind a table, or behind each table of a batch.

Section 2 of the paper. Two independent draws make a DAG:

    skeleton  A_jk ~ Bernoulli(ν_jk), one coin for each pair,           ν = σ(skeleton_logits)
    order     π ~ Plackett–Luce(s), the first variable is j with probability ∝ exp(s_j), and so on down the list
    graph     G = A ⊙ M(π): every skeleton edge points from the earlier variable to the later

so every graph is acyclic, and j precedes k with probability q_jk = σ(s_j − s_k).
"""

# B tables, P variables; "..." stands for any batch dimensions, none included

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from causal_arrow.errors import GraphError

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

# Log-odds of what is practically certain: a probability of 1 − 2·10⁻⁹.
CERTAIN = 20.0
MAX_TEMPERATURE = 10.0  # the largest temperature: divided by it, the order scores of copies still leave no uncertainty


@dataclass(frozen=True, eq=False)
class GraphDistribution:
    """A distribution over DAGs on P variables, and for each pair the probability of a hidden common cause.

    Networks give float32; every probability is computed and returned in float64.

    Parameters
    ----------
    skeleton_logits
        Log-odds that two variables are adjacent, symmetric; the diagonal is ignored.  (..., P, P)
    order_scores
        The larger, the earlier; only differences matter.  (..., P)
    confounding_logits
        Log-odds that two variables share a hidden cause, symmetric; None if the network does not say.  (..., P, P)

    Examples
    --------
    Two variables that are probably adjacent, the first of which probably comes first:

    >>> import numpy as np
    >>> from causal_arrow.graphs.graph_distribution import GraphDistribution
    >>> distribution = GraphDistribution(np.array([[0.0, 2.0], [2.0, 0.0]]), np.array([1.0, -1.0]))
    >>> distribution.edge_marginals().round(2)
    array([[0.  , 0.78],
           [0.1 , 0.  ]])
    """

    skeleton_logits: NDArray[np.floating[Any]]
    order_scores: NDArray[np.floating[Any]]
    confounding_logits: NDArray[np.floating[Any]] | None = None

    def __post_init__(self) -> None:
        shape = self.order_scores.shape
        if self.skeleton_logits.shape != (*shape, *shape[-1:]) or not shape:
            raise GraphError(
                "Expected skeleton logits (..., P, P) and order scores (..., P), "
                f"got {self.skeleton_logits.shape} and {shape}."
            )
        if self.confounding_logits is not None and self.confounding_logits.shape != self.skeleton_logits.shape:
            raise GraphError(
                f"Expected confounding logits of shape {self.skeleton_logits.shape}, "
                f"got {self.confounding_logits.shape}."
            )

    @property
    def variables(self) -> int:
        """P"""
        return int(self.order_scores.shape[-1])

    def __getitem__(self, table: int | slice | Indices) -> GraphDistribution:
        """The distribution for one table of a batch, or a smaller batch."""
        if self.order_scores.ndim == 1:
            raise IndexError("This GraphDistribution is about one table, not a batch.")
        return self._part(table, table)

    def tempered(self, temperature: float) -> GraphDistribution:
        """The distribution whose log-odds of directions are divided by a temperature; the most probable order stays."""
        scores = self.order_scores.astype(np.float64) / temperature
        return self if temperature == 1.0 else replace(self, order_scores=scores)

    # Other variables

    def rearranged(self, indices: Sequence[int] | Indices) -> GraphDistribution:
        """The distribution for one table whose variable i is variable `indices[i]` of this one."""
        indices = np.asarray(indices, dtype=np.intp)
        return self._part(np.ix_(indices, indices), indices)

    def _part(self, pairs: Any, variables: Any) -> GraphDistribution:
        confounding = None if self.confounding_logits is None else self.confounding_logits[pairs]
        return GraphDistribution(self.skeleton_logits[pairs], self.order_scores[variables], confounding)

    def with_part(self, indices: Indices, variables: Indices, part: GraphDistribution) -> GraphDistribution:
        """A batch with the entries for some variables of some tables replaced by those of `part` (T,).

        `indices` (T,) are these tables, `variables` (T, K) the variables; entries of any other variable stay.
        """
        tables, rows, columns = indices[:, None, None], variables[:, :, None], variables[:, None, :]
        logits, scores = self.skeleton_logits.copy(), self.order_scores.copy()
        logits[tables, rows, columns] = part.skeleton_logits
        # Only differences between scores matter: the new ones keep the mean of the old ones.
        before = self.order_scores[indices[:, None], variables]
        shift = before.mean(axis=1, keepdims=True) - part.order_scores.mean(axis=1, keepdims=True)
        scores[indices[:, None], variables] = part.order_scores + shift
        confounding = self.confounding_logits
        if confounding is not None and part.confounding_logits is not None:
            confounding = confounding.copy()
            confounding[tables, rows, columns] = part.confounding_logits
        return GraphDistribution(logits, scores, confounding)

    def with_copies(self, read_as: Sequence[int]) -> GraphDistribution:
        """The distribution for one table that also has exact copies of its variables.

        `read_as[i]` is the index of the variable that is read for variable i: i itself unless that is a copy. It causes
        the copy, which is adjacent to no other. (As a cause it would be independent of the other causes.)
        """
        read = [index for index, original in enumerate(read_as) if original == index]
        copies = [(index, original) for index, original in enumerate(read_as) if original != index]
        if not copies:
            return self
        full = self.rearranged([read.index(original) for original in read_as])
        for index, original in copies:
            for matrix in (full.skeleton_logits, full.confounding_logits):
                if matrix is not None:
                    matrix[index] = matrix[:, index] = -CERTAIN
            full.skeleton_logits[index, original] = full.skeleton_logits[original, index] = CERTAIN
            full.order_scores[index] = full.order_scores[original] - MAX_TEMPERATURE * CERTAIN
        return full

    # Probabilities of pairs, zero on the diagonal

    def skeleton_probabilities(self) -> Floats:
        """Probability ν_jk that j and k are adjacent.  (..., P, P)"""
        return self._off_diagonal(sigmoid(self.skeleton_logits))

    def precedence_probabilities(self) -> Floats:
        """Probability q_jk = σ(s_j − s_k) that j comes before k.  (..., P, P)"""
        return self._off_diagonal(sigmoid(self._score_differences()))

    def edge_marginals(self) -> Floats:
        """Probability of each directed edge j → k, ν_jk · q_jk.  (..., P, P)"""
        return self.skeleton_probabilities() * self.precedence_probabilities()

    def edge_logits(self) -> Floats:
        """Log-odds of each directed edge, which rank even edges whose marginals round to 0 or 1.  (..., P, P)"""
        # With ν = σ(a) and q = σ(d), 1/νq = (1 + e^−a)(1 + e^−d), so the inverse odds are e^−a + e^−d (1 + e^−a). No
        # term is ever subtracted, so neither νq near 0 nor 1 − νq near 0 loses digits.
        negative = -self.skeleton_logits.astype(np.float64)
        against = np.logaddexp(negative, np.logaddexp(0.0, negative) - self._score_differences())
        return self._off_diagonal(-against, diagonal=-np.inf)

    def confounding_probabilities(self) -> Floats | None:
        """Probability that two variables share a hidden cause; None if the network has no such output.  (..., P, P)"""
        return None if self.confounding_logits is None else self._off_diagonal(sigmoid(self.confounding_logits))

    def uncertainty(self) -> Floats:
        """Entropy per edge in bits, Σ_{j<k} [H(ν_jk) + ν_jk H(q_jk)] / max(Σ_{j<k} ν_jk, 1).  (...)

        H is the entropy of a coin. Zero is certainty; a single edge whose direction alone is unknown has 1.
        """
        adjacent = self.skeleton_probabilities()
        entropy = coin_entropy(self.skeleton_logits) + adjacent * coin_entropy(self._score_differences())
        total = self._off_diagonal(entropy).sum(axis=(-2, -1)) / 2
        return np.asarray(total / np.maximum(adjacent.sum(axis=(-2, -1)) / 2, 1.0))

    def _score_differences(self) -> Floats:
        scores = self.order_scores.astype(np.float64)
        return np.asarray(scores[..., :, None] - scores[..., None, :])

    def _off_diagonal(self, matrices: Floats, diagonal: float = 0.0) -> Floats:
        """The matrices with their diagonals, which mean nothing, replaced.  (..., P, P)"""
        return np.where(np.eye(self.variables, dtype=bool), diagonal, matrices)


def sigmoid(logits: NDArray[np.floating[Any]]) -> Floats:
    """The probabilities with these log-odds, without loss of digits near 0."""
    return np.asarray(np.exp(-np.logaddexp(0.0, -np.asarray(logits, dtype=np.float64))))


def coin_entropy(logits: NDArray[np.floating[Any]]) -> Floats:
    """Entropy in bits of coins with these log-odds."""
    size = np.abs(np.asarray(logits, dtype=np.float64))
    return np.asarray((np.log1p(np.exp(-size)) + size * sigmoid(-size)) / math.log(2))
