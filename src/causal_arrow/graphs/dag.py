"""Causal graphs as matrices: the one convention of this package, and what can be read off a graph.

`adjacency[..., j, k] == 1` means j → k: variable j is a direct cause of variable k. (networkx, pgmpy, gCastle and DAGMA
agree; lingam is the transpose.) Three more rules follow from it and hold everywhere:

- an order lists variables, causes first: `order[..., i]` is the variable in position i;
- an undirected edge j — k, in a skeleton or a CPDAG, is a 1 at both [j, k] and [k, j];
- graphs may come in with any numeric type and go out boolean.

`skeleton_of`, `positions_in`, `orient`, `transitive_closure` and `is_acyclic` take numpy arrays or torch tensors, one
graph or a batch, and trust them: training calls them on its device. Everything else takes one matrix, checks it, and
raises GraphError when it is not a graph.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from causal_arrow.errors import GraphError

if TYPE_CHECKING:
    from torch import Tensor

BoolMatrix = NDArray[np.bool_]
Matrix = TypeVar("Matrix", "NDArray[Any]", "Tensor")


# Skeletons and orders


def skeleton_of(adjacency: Matrix) -> Matrix:
    """Which variables are adjacent, directions forgotten: the symmetric A of section 2.1.  (..., P, P)

    Parameters
    ----------
    adjacency
        One graph or a batch.  (..., P, P)

    Returns
    -------
    ndarray or Tensor of bool
        Of the same shape.

    Examples
    --------
    >>> import numpy as np
    >>> from causal_arrow.graphs.dag import skeleton_of
    >>> skeleton_of(np.array([[0, 1], [0, 0]])).astype(int)
    array([[0, 1],
           [1, 0]])
    """
    skeleton: Matrix = (adjacency != 0) | (adjacency != 0).swapaxes(-1, -2)
    return skeleton


def positions_in(order: Matrix) -> Matrix:
    """The position of every variable in an order, the inverse permutation of `order`.  (..., P)

    Parameters
    ----------
    order
        The variables, causes before effects.  (..., P)

    Returns
    -------
    ndarray or Tensor
        Of the same shape.

    Examples
    --------
    >>> import numpy as np
    >>> from causal_arrow.graphs.dag import positions_in
    >>> positions_in(np.array([2, 0, 1]))
    array([1, 2, 0])
    """
    return order.argsort(-1)


def orient(skeleton: Matrix, order: Matrix) -> Matrix:
    """The DAG that points every skeleton edge from the earlier variable to the later, A ⊙ M(π).  (..., P, P)

    j → k exactly when j — k is in `skeleton` and j comes before k in `order`. Whatever the skeleton and the order, the
    result is acyclic; and every DAG is the result for its own skeleton and topological orders (proposition 1).

    Parameters
    ----------
    skeleton
        Which variables are adjacent.  (..., P, P)
    order
        The variables, causes before effects.  (..., P)

    Returns
    -------
    ndarray or Tensor of bool
        `[..., j, k]` is true where j → k.

    Examples
    --------
    >>> import numpy as np
    >>> from causal_arrow.graphs.dag import orient
    >>> orient(np.array([[0, 1], [1, 0]]), np.array([1, 0])).astype(int)
    array([[0, 0],
           [1, 0]])
    """
    position = positions_in(order)
    edges: Matrix = (skeleton != 0) & (position[..., :, None] < position[..., None, :])
    return edges


# Paths and cycles


def transitive_closure(adjacency: Matrix) -> Matrix:
    """Whether a directed path of one step or more leads from j to k.  (..., P, P)

    Parameters
    ----------
    adjacency
        One graph or a batch.  (..., P, P)

    Returns
    -------
    ndarray or Tensor of bool
        Row j marks the descendants of j, column k the ancestors of k. A true diagonal entry lies on a cycle.

    Examples
    --------
    >>> import numpy as np
    >>> from causal_arrow.graphs.dag import transitive_closure
    >>> chain = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]])
    >>> bool(transitive_closure(chain)[0, 2])
    True
    """
    reachable: Matrix = adjacency != 0
    for _ in range(_doublings(adjacency.shape[-1])):
        steps = reachable * 1.0
        reachable = reachable | (steps @ steps > 0)
    return reachable


@overload
def is_acyclic(adjacency: Tensor) -> Tensor: ...
@overload
def is_acyclic(adjacency: NDArray[Any]) -> bool | BoolMatrix: ...
def is_acyclic(adjacency: Any) -> Any:
    """Whether there is no directed cycle.  (...)

    A graph is acyclic when its walks die out, so we square the matrix until its walks are at least P steps long. That
    is a fixed number of batched products, with no need to wait for a device in between.

    Parameters
    ----------
    adjacency
        One graph or a batch.  (..., P, P)

    Returns
    -------
    bool, or ndarray or Tensor of bool
        A bool for one numpy matrix, otherwise one truth value per graph.

    Examples
    --------
    >>> import numpy as np
    >>> from causal_arrow.graphs.dag import is_acyclic
    >>> is_acyclic(np.array([[0, 1], [1, 0]]))
    False
    """
    walks = adjacency != 0
    for _ in range(_doublings(adjacency.shape[-1])):
        steps = walks * 1.0
        walks = steps @ steps > 0
    acyclic = ~walks.any(-1).any(-1)
    return bool(acyclic) if isinstance(acyclic, np.bool_) else acyclic


def _doublings(variables: int) -> int:
    """How often a walk of one step must double to reach `variables` steps."""
    return max(variables - 1, 0).bit_length()


def find_cycle(adjacency: ArrayLike) -> list[int] | None:
    """The variables of one directed cycle.

    Parameters
    ----------
    adjacency
        One graph.  (P, P)

    Returns
    -------
    list of int, or None
        Each variable is a cause of the next and the last of the first; None in a DAG.

    Examples
    --------
    >>> from causal_arrow.graphs.dag import find_cycle
    >>> find_cycle([[0, 1, 0], [0, 0, 1], [1, 0, 0]])
    [0, 1, 2]
    """
    graph = ensure_graph(adjacency)
    _, remaining = _peel_sources(graph)
    if not remaining.any():
        return None
    # Every variable left over has a parent left over, so walking upwards must come back to a variable already met.
    path = [int(remaining.argmax())]
    while (parent := int((graph[:, path[-1]] & remaining).argmax())) not in path:
        path.append(parent)
    cycle = path[path.index(parent) :][::-1]
    first = cycle.index(min(cycle))
    return cycle[first:] + cycle[:first]


def topological_order(adjacency: ArrayLike) -> NDArray[np.intp]:
    """The variables with every cause before its effects, sources first, small indices first among equals.  (P,)

    Parameters
    ----------
    adjacency
        A DAG; a cycle is a GraphError.  (P, P)

    Returns
    -------
    ndarray of int
        Indices of variables.

    Examples
    --------
    >>> from causal_arrow.graphs.dag import topological_order
    >>> topological_order([[0, 0, 0], [1, 0, 0], [0, 1, 0]])
    array([2, 1, 0])
    """
    graph = ensure_graph(adjacency)
    order, remaining = _peel_sources(graph)
    if remaining.any():
        ensure_dag(graph)
    return np.array(order, dtype=np.intp)


def _peel_sources(graph: BoolMatrix) -> tuple[list[int], BoolMatrix]:
    """The variables that can be placed causes first, and a mask of the others: those on a cycle or below one."""
    unplaced_parents = graph.sum(axis=0)
    remaining = np.ones(len(graph), dtype=bool)
    order: list[int] = []
    while (sources := np.flatnonzero(remaining & (unplaced_parents == 0))).size:
        order.extend(sources.tolist())
        remaining[sources] = False
        unplaced_parents -= graph[sources].sum(axis=0)
    return order, remaining


# Checks at the door


def ensure_graph(adjacency: ArrayLike) -> BoolMatrix:
    """The matrix as a new boolean array, once it is known to be square, 0/1 and without self-loops.  (P, P)

    Parameters
    ----------
    adjacency
        What may be a graph; a GraphError says why it is none.

    Returns
    -------
    ndarray of bool
        A copy.

    Examples
    --------
    >>> from causal_arrow.graphs.dag import ensure_graph
    >>> ensure_graph([[0, 1], [0, 0]]).dtype
    dtype('bool')
    """
    matrix = np.asarray(adjacency)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise GraphError(f"Expected a square adjacency matrix, got shape {matrix.shape}.")
    graph = np.asarray(matrix == 1)
    if (odd := np.argwhere(~graph & (matrix != 0))).size:
        j, k = odd[0]
        raise GraphError(
            f"Expected an adjacency matrix of 0 and 1, got {matrix[j, k]} at [{j}, {k}]. "
            "Threshold weights or probabilities first."
        )
    if (loops := np.flatnonzero(graph.diagonal())).size:
        raise GraphError(f"Variable {loops[0]} points to itself. Set the diagonal of the adjacency matrix to 0.")
    return graph


def ensure_dag(adjacency: ArrayLike) -> BoolMatrix:
    """The matrix as a new boolean array, once it is known to be a DAG.  (P, P)

    Parameters
    ----------
    adjacency
        What may be a DAG; a GraphError names a cycle otherwise.

    Returns
    -------
    ndarray of bool
        A copy.

    Examples
    --------
    >>> from causal_arrow.graphs.dag import ensure_dag
    >>> int(ensure_dag([[0, 1], [0, 0]]).sum())
    1
    """
    graph = ensure_graph(adjacency)
    if (cycle := find_cycle(graph)) is not None:
        path = " → ".join(str(variable) for variable in [*cycle, cycle[0]])
        raise GraphError(f"Expected a DAG, got a graph with the cycle {path}. Remove or reverse one of its edges.")
    return graph


# Markov equivalence


def cpdag(adjacency: ArrayLike) -> BoolMatrix:
    """What observations alone can tell of a DAG: its CPDAG, with reversible edges marked both ways.  (P, P)

    An edge keeps its direction when every DAG of the Markov equivalence class agrees on it: the edges of v-structures,
    and those that follow from them by Meek's rules. Chickering (1995) finds the same edges in one pass, causes first:
    the parent of k that comes last in the order decides for all edges into k.

    Parameters
    ----------
    adjacency
        A DAG; a cycle is a GraphError.  (P, P)

    Returns
    -------
    ndarray of bool
        An undirected edge is true both ways.

    Examples
    --------
    >>> from causal_arrow.graphs.dag import cpdag
    >>> cpdag([[0, 1], [0, 0]]).astype(int)
    array([[0, 1],
           [1, 0]])
    """
    graph = ensure_dag(adjacency)
    order = topological_order(graph)
    compelled = np.zeros_like(graph)
    for k in order:
        parents = graph[:, k]
        if not parents.any():
            continue
        nearest = order[parents[order]][-1]
        # Another parent that is not adjacent to the nearest one makes a v-structure at k. A compelled cause of the
        # nearest parent that is not adjacent to k would make one there, were the edge to k reversed. Either fixes all
        # edges into k.
        colliding = (parents & ~graph[:, nearest]).sum() > 1  # the nearest parent itself counts one
        pushed = (compelled[:, nearest] & ~parents).any()
        compelled[:, k] = parents if colliding or pushed else compelled[:, nearest]
    return np.asarray(graph | (graph & ~compelled).T)


def markov_equivalent(first: ArrayLike, second: ArrayLike) -> bool:
    """Whether two DAGs imply the same conditional independences: same skeleton, same v-structures.

    Parameters
    ----------
    first
        A DAG.  (P, P)
    second
        Another one on the same variables.  (P, P)

    Returns
    -------
    bool
        True if no observations could tell them apart without further assumptions.

    Examples
    --------
    >>> from causal_arrow.graphs.dag import markov_equivalent
    >>> markov_equivalent([[0, 1], [0, 0]], [[0, 0], [1, 0]])
    True
    """
    return np.array_equal(cpdag(first), cpdag(second))


def extend_cpdag(pdag: ArrayLike, strict: bool = True) -> BoolMatrix:
    """A DAG of the class that a CPDAG, or any partially directed graph, stands for.  (P, P)

    The DAG has the same skeleton, keeps every directed edge and adds no v-structure. Methods such as PC may return a
    graph for which there is no such DAG.

    The algorithm is Dor and Tarsi's (1992): find a variable that can be last, point its edges at it, remove it, repeat.
    The greedy choice is the variable whose being last reverses the fewest edges and adds the fewest v-structures.

    Parameters
    ----------
    pdag
        The graph; an undirected edge is 1 both ways.  (P, P)
    strict
        Whether a graph without such a DAG is a GraphError. With False, the answer is then a DAG on the same skeleton
        that gives up as little as a greedy choice can find.

    Returns
    -------
    ndarray of bool
        A DAG.

    Examples
    --------
    >>> from causal_arrow.graphs.dag import extend_cpdag
    >>> int(extend_cpdag([[0, 1], [1, 0]]).sum())
    1
    """
    graph = ensure_graph(pdag)
    undirected = graph & graph.T
    directed = graph & ~undirected
    adjacent = skeleton_of(graph)
    apart = ~adjacent & ~np.eye(len(graph), dtype=bool)
    # colliders[x, y]: neighbors of x that are apart from y, each a v-structure once both point at x.
    colliders = adjacent.astype(np.float64) @ apart.astype(np.float64)
    extension = np.zeros_like(graph)
    remaining = np.ones(len(graph), dtype=bool)
    while remaining.any():
        cost = directed.sum(axis=1) + (undirected * colliders).sum(axis=1)  # of making each variable the last
        candidates = np.flatnonzero(remaining)[::-1]
        last = candidates[cost[candidates].argmin()]
        if strict and cost[last] > 0:
            raise GraphError(
                "Expected a graph with a consistent extension, got one where every DAG on its skeleton reverses "
                "an edge or adds a v-structure. Use strict=False to accept a DAG that does."
            )
        extension[:, last] = adjacent[:, last] & remaining
        colliders -= np.outer(adjacent[:, last], apart[last])
        remaining[last] = False
        for edges in (directed, undirected, adjacent):
            edges[last], edges[:, last] = False, False
    return extension
