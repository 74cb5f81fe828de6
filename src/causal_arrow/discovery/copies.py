"""Copies of variables in sampled graphs: any of them may be the one with the edges to other variables.

The network reads one of several columns that are copies of each other. Its probabilities hold for any of them, so the
copies share them. In a sampled graph one of them, the carrier, has all edges and causes the others.
"""

# K graphs, P variables, M members of a group

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Indices = NDArray[np.intp]
Group = tuple[int, ...]


@dataclass(frozen=True)
class Copies:
    """Groups of variables that are copies of each other, by their indices; the network has read the first of each."""

    groups: tuple[Group, ...] = ()

    def shared(self, probabilities: Floats) -> Floats:
        """Probabilities of pairs if each of the copies may be the one that the network has read.  (P, P)"""
        for group in self.groups:
            ways = ways_to_swap(group, len(probabilities))
            probabilities = np.mean([probabilities[np.ix_(way, way)] for way in ways], axis=0)
        return probabilities

    def with_any_carrier(self, graphs: Bools, generator: np.random.Generator) -> Bools:
        """Give the edges of the first of each group to a random member of it.  (K, P, P)"""
        for group in self.groups:
            graphs = _swapped(graphs, group[0], generator.choice(group, size=len(graphs)))
        return graphs

    def with_carriers_of(self, graphs: Bools, pairs: Bools) -> Bools:
        """Pairs drawn as if the first of each group were the carrier, for the carriers of graphs.  (K, P, P)"""
        for group in self.groups:
            pairs = _swapped(pairs, group[0], _carriers(group, graphs))
        return pairs

    def carried_by(self, variable: int, graphs: Bools, pairs: Bools | None) -> tuple[Bools, Bools | None]:
        """Make a variable with copies the carrier, in graphs and in pairs drawn for them.  (K, P, P) each"""
        for group in self.groups:
            if variable in group:
                carriers = _carriers(group, graphs)
                graphs = _swapped(graphs, variable, carriers)
                pairs = None if pairs is None else _swapped(pairs, variable, carriers)
        return graphs, pairs


def ways_to_swap(group: Group, variables: int) -> Indices:
    """The variables with the first of a group of copies exchanged for each of its members.  (M, P)"""
    members = np.array(group)
    ways = np.tile(np.arange(variables), (len(group), 1))
    ways[np.arange(len(group)), members] = members[0]
    ways[:, members[0]] = members
    return ways


def _carriers(group: Group, graphs: Bools) -> Indices:
    """The copy that carries the edges in each graph.  (K,)"""
    members = np.array(group)
    inside = graphs[:, members[:, None], members[None, :]]
    return np.asarray(members[inside.any(axis=2).argmax(axis=1)])


def _swapped(matrices: Bools, one: int, others: Indices) -> Bools:
    """Exchange one variable for another (K,) in matrices of pairs (K, P, P)."""
    each = np.arange(len(matrices))
    indices = np.tile(np.arange(matrices.shape[1]), (len(matrices), 1))  # (K, P)
    indices[each, others] = one
    indices[:, one] = others
    return np.asarray(matrices[each[:, None, None], indices[:, :, None], indices[:, None, :]])
