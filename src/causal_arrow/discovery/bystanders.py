"""Columns that have nothing to do with the others are set aside: what is said of the others should not depend on them.

How many columns a table has and how many of them are joined tells a network how likely edges are in it. So a column of
noise would move the edges of all others. The network reads a table with such columns again without them; what it said
of them the first time stays. A network of complete numbers alone, such as the paper's, is asked once.
"""

# B tables, P variables

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from causal_arrow.graphs.graph_distribution import GraphDistribution

Indices = NDArray[np.intp]

BYSTANDER = 0.2
"""A column is set aside if no edge and no hidden cause that it may have is as probable as this."""
MAX_SET_ASIDE = 0.1
"""Of a table, at most, or one column of FEW or more. Where many columns stand alone, their number says how much a
dependence means, and not all of them do: the network misses what is weak."""
FEW = 4
MAX_VARIABLES = 64
"""In wider tables one column more or less hardly matters, and reading twice takes long."""


def bystanders(said: GraphDistribution) -> NDArray[np.bool_]:
    """Which columns to set aside, given what a network says of whole tables.  (B, P) bool"""
    joined = said.skeleton_probabilities()
    hidden = said.confounding_probabilities()
    if hidden is not None:
        joined = np.maximum(joined, hidden)
    aside = joined.max(axis=-1) < BYSTANDER
    if aside.shape[-1] > MAX_VARIABLES:
        return np.zeros_like(aside)
    most = max(MAX_SET_ASIDE * aside.shape[-1], float(aside.shape[-1] >= FEW))
    return np.asarray(aside & (aside.sum(axis=-1, keepdims=True) <= most))


def read_without(said: GraphDistribution, read: Callable[[Indices, Indices], GraphDistribution]) -> GraphDistribution:
    """What was `said` of tables, said again of those with bystanders, without these.

    `read` is asked of the tables in some places (T,) with some of their columns (T, K).
    """
    for indices, kept in _alike(~bystanders(said)):
        said = said.with_part(indices, kept, read(indices, kept))
    return said


def _alike(kept: NDArray[np.bool_]) -> Iterator[tuple[Indices, Indices]]:
    """Tables that keep as many columns as each other, and fewer than all: their places (T,) and columns (T, K)."""
    counts = kept.sum(axis=1)
    for count in np.unique(counts).tolist():
        if count < kept.shape[1]:
            indices = np.flatnonzero(counts == count)
            yield indices, np.nonzero(kept[indices])[1].reshape(len(indices), count)
