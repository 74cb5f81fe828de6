"""Causal graphs as matrices: the one convention of this package, and what can be read off a graph.

`adjacency[..., j, k] == 1` means j → k: variable j is a direct cause of variable k. (networkx, pgmpy, gCastle and DAGMA
agree; lingam is the transpose.) Three more rules follow from it and hold everywhere:

- an order lists variables, causes first: `order[..., i]` is the variable in position i;
- an undirected edge j — k, in a skeleton or a CPDAG, is a 1 at both [j, k] and [k, j];
- graphs may come in with any numeric type and go out boolean.

`skeleton_of`, `positions_in`, `transitive_closure` and `is_acyclic` take one graph or a batch and trust it. Everything
else takes one matrix, checks it, and raises GraphError when it is not a graph.

Examples
--------
>>> from causal_arrow.graphs import dag
>>> chain = [[0, 1, 0], [0, 0, 1], [0, 0, 0]]
>>> dag.topological_order(chain), dag.positions_in([2, 0, 1])
(array([0, 1, 2]), array([1, 2, 0]))
>>> bool(dag.transitive_closure(chain)[0, 2])
True
>>> dag.skeleton_of(chain).astype(int)
array([[0, 1, 0],
       [1, 0, 1],
       [0, 1, 0]])
>>> bool((dag.cpdag(chain) == dag.skeleton_of(chain)).all())  # every edge is reversible
True
>>> dag.markov_equivalent(chain, [[0, 0, 0], [1, 0, 0], [0, 1, 0]])
True
>>> circle = [[0, 1, 0], [0, 0, 1], [1, 0, 0]]
>>> dag.is_acyclic(circle), dag.find_cycle(circle)
(False, [0, 1, 2])
>>> dag.ensure_graph(circle).dtype
dtype('bool')
>>> int(dag.ensure_dag(chain).sum())  # of the circle it would be a GraphError
2
"""

# P variables; "..." stands for any batch dimensions, or none

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from causal_arrow.errors import GraphError

BoolMatrix = NDArray[np.bool_]


def skeleton_of(adjacency: ArrayLike) -> BoolMatrix:
    """The skeleton: adjacencies without directions, the symmetric A of section 2.1.  (..., P, P)"""
    edges = np.asarray(adjacency) != 0
    return np.asarray(edges | edges.swapaxes(-1, -2))


def positions_in(order: ArrayLike) -> NDArray[np.intp]:
    """The position of every variable in an order, the inverse permutation of `order`.  (..., P)"""
    return np.argsort(order, axis=-1)


# Paths and cycles


def transitive_closure(adjacency: ArrayLike) -> BoolMatrix:
    """Whether a directed path of one step or more leads from j to k.  (..., P, P)

    Row j marks the descendants of j, column k the ancestors of k. A true diagonal entry lies on a cycle.
    """
    reachable: BoolMatrix = np.asarray(adjacency) != 0
    while True:  # paths double in length until all are there
        steps = reachable.astype(np.float32)
        grown = reachable | (steps @ steps > 0)
        if np.array_equal(grown, reachable):
            return grown
        reachable = grown


def is_acyclic(adjacency: ArrayLike) -> bool | BoolMatrix:
    """Whether a graph has no directed cycle: a bool for one graph, an array (...) for a batch."""
    edges = np.asarray(adjacency) != 0
    if edges.ndim == 2:
        return not _peel_sources(edges)[1].any()
    return np.asarray(~transitive_closure(edges).diagonal(axis1=-2, axis2=-1).any(axis=-1))


def find_cycle(adjacency: ArrayLike) -> list[int] | None:
    """The variables of one directed cycle, each a cause of the next and the last of the first; None in a DAG."""
    graph = ensure_graph(adjacency)
    _, remaining = _peel_sources(graph)
    if not remaining.any():
        return None
    # Every variable left over has a parent left over, so walking upwards must come back to a variable already met.
    variable, met = int(remaining.argmax()), dict[int, int]()
    while variable not in met:
        met[variable] = len(met)
        variable = int((graph[:, variable] & remaining).argmax())
    cycle = list(met)[met[variable] :][::-1]
    first = cycle.index(min(cycle))
    return cycle[first:] + cycle[:first]


def topological_order(adjacency: ArrayLike) -> NDArray[np.intp]:
    """The variables with every cause before its effects, sources first, small indices first among equals.  (P,)"""
    return np.array(_peel_sources(ensure_dag(adjacency))[0], dtype=np.intp)


def _peel_sources(graph: BoolMatrix) -> tuple[list[int], BoolMatrix]:
    """The variables that can be placed causes first, and a mask of the others: those on a cycle or below one."""
    unplaced_parents = graph.sum(axis=0)
    remaining = np.ones(len(graph), dtype=bool)
    order: list[int] = []
    sources = np.flatnonzero(unplaced_parents == 0)
    while sources.size:
        order.extend(sources.tolist())
        remaining[sources] = False
        below = graph[sources]
        children = np.flatnonzero(below.any(axis=0))
        unplaced_parents[children] -= below[:, children].sum(axis=0)
        sources = children[unplaced_parents[children] == 0]
    return order, remaining


# Checks at the door


def ensure_graph(adjacency: ArrayLike) -> BoolMatrix:
    """The matrix as a new boolean array; a GraphError unless it is square, 0/1 and without self-loops.  (P, P)"""
    matrix = np.asarray(adjacency)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise GraphError(f"Expected a square adjacency matrix, got shape {matrix.shape}.")
    graph = np.asarray(matrix == 1)
    if matrix.dtype != bool and (odd := np.argwhere(~graph & (matrix != 0))).size:
        j, k = odd[0]
        raise GraphError(
            f"Expected an adjacency matrix of 0 and 1, got {matrix[j, k]} at [{j}, {k}]. "
            "Threshold weights or probabilities first."
        )
    if (loops := np.flatnonzero(graph.diagonal())).size:
        raise GraphError(f"Variable {loops[0]} points to itself. Set the diagonal of the adjacency matrix to 0.")
    return graph


def ensure_dag(adjacency: ArrayLike) -> BoolMatrix:
    """The matrix as a new boolean array; a GraphError that names a cycle unless it is a DAG.  (P, P)"""
    graph = ensure_graph(adjacency)
    if (cycle := find_cycle(graph)) is not None:
        path = " → ".join(str(variable) for variable in [*cycle, cycle[0]])
        raise GraphError(f"Expected a DAG, got a graph with the cycle {path}. Remove or reverse one of its edges.")
    return graph


# Markov equivalence


def cpdag(adjacency: ArrayLike) -> BoolMatrix:
    """The CPDAG of a DAG: what observations alone can show of it, reversible edges marked both ways.  (P, P)

    An edge keeps its direction when every DAG of the Markov equivalence class agrees on it: the edges of v-structures,
    and those that follow from them by Meek's rules. Chickering (1995) finds the same edges in one pass, causes first:
    the parent of k that comes last in the order decides for all edges into k.
    """
    graph = ensure_dag(adjacency)
    order, _ = _peel_sources(graph)
    position = positions_in(np.array(order, dtype=np.intp))
    into = np.ascontiguousarray(graph.T)  # row k marks the parents of k
    compelled = np.zeros_like(graph)  # row k marks the parents whose edges into k have one direction
    for k in order:
        parents = np.flatnonzero(into[k])
        if not parents.size:
            continue
        nearest = parents[position[parents].argmax()]
        # Another parent that is not adjacent to the nearest one makes a v-structure at k. A compelled cause of the
        # nearest parent that is not adjacent to k would make one there, were the edge to k reversed. Either fixes all
        # edges into k.
        colliding = (~into[nearest, parents]).sum() > 1  # the nearest parent itself counts one
        pushed = (compelled[nearest] & ~into[k]).any()
        compelled[k] = into[k] if colliding or pushed else compelled[nearest]
    return np.asarray(graph | (into & ~compelled))


def markov_equivalent(first: ArrayLike, second: ArrayLike) -> bool:
    """Whether two DAGs imply the same conditional independences: same skeleton, same v-structures."""
    return np.array_equal(cpdag(first), cpdag(second))


@dataclass(frozen=True, eq=False)
class CausalGraph:
    """Directed edges j → k, always acyclic, and bidirected edges j ↔ k for a hidden common cause.

    Examples
    --------
    >>> import numpy as np
    >>> from causal_arrow.graphs.dag import CausalGraph
    >>> graph = CausalGraph(np.array([[0, 1], [0, 0]], dtype=bool))
    >>> bool(graph.directed[0, 1])
    True
    """

    directed: BoolMatrix
    """[j, k] when j → k.  (P, P)"""
    bidirected: BoolMatrix | None = None
    """True for pairs that share a hidden cause, symmetric; None where hidden causes were not looked for.  (P, P)"""

    def __post_init__(self) -> None:
        ensure_dag(self.directed)
        if self.bidirected is None:
            return
        if self.bidirected.shape != self.directed.shape:
            raise GraphError(f"Expected bidirected edges of shape {self.directed.shape}, got {self.bidirected.shape}.")
        if (self.bidirected != self.bidirected.T).any() or self.bidirected.diagonal().any():
            raise GraphError("Expected bidirected edges to be symmetric and to join different variables.")

    @property
    def variables(self) -> int:
        """The number of variables, P."""
        return len(self.directed)
