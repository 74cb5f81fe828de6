"""CausalGraph: which variable causes which, and which two share a cause that is not in the table."""

# P variables

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from causal_arrow.errors import GraphError
from causal_arrow.graphs.dag import ensure_dag

Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class CausalGraph:
    """Directed edges j → k, always acyclic, and bidirected edges j ↔ k for a hidden common cause.

    Examples
    --------
    >>> import numpy as np
    >>> from causal_arrow.graphs.causal_graph import CausalGraph
    >>> graph = CausalGraph(np.array([[0, 1], [0, 0]], dtype=bool))
    >>> bool(graph.directed[0, 1])
    True
    """

    directed: Bools
    """[j, k] when j → k.  (P, P)"""
    bidirected: Bools | None = None
    """Which two share a hidden cause, symmetric; None where hidden causes were not looked for.  (P, P)"""

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
        """How many variables there are, P.

        Examples
        --------
        >>> graph.variables
        2
        """
        return len(self.directed)
