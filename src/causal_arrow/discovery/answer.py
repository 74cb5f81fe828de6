"""Answer: what the network says about one table, and the graph read off it under what is known.

The network gives skeleton probabilities and order scores once. Everything a person can ask for afterwards (the graph,
each edge's probability, how sure its direction is, other graphs that are possible too) starts here, and so do the
exports and the pictures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray

from causal_arrow.errors import ConfigurationError
from causal_arrow.graphs import dag
from causal_arrow.graphs.decoding import Decoding, DrawnGraphs, decode, edge_probabilities, sample_graphs
from causal_arrow.graphs.knowledge import Constraints, Knowledge
from causal_arrow.graphs.skeleton_order import SkeletonOrder
from causal_arrow.tables.table import Finding

# P variables

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# A direction is called by the probability that the edge, if there is one, points this way.
CERTAIN_DIRECTION = 0.95
LIKELY_DIRECTION = 0.75


def direction_certainty(direction_probability: float) -> str:
    """The word for it: "certain" from 0.95 on, "likely" from 0.75 on, otherwise "uncertain"."""
    if direction_probability >= CERTAIN_DIRECTION:
        return "certain"
    return "likely" if direction_probability >= LIKELY_DIRECTION else "uncertain"


@dataclass(frozen=True)
class DirectedEdge:
    """One edge of the answer, and how much there is behind it. Probabilities take the knowledge into account."""

    source: str
    target: str
    probability: float
    """Of this edge in this direction, ν·q."""
    adjacency_probability: float
    """Of an edge between the two, in whichever direction, ν."""
    direction_probability: float
    """Of this direction, given that there is an edge."""
    order_margin: float
    """Difference of the order scores, s_source − s_target: the log-odds that the source comes first."""
    compelled: bool
    """Whether every graph with the same independences has this direction (the CPDAG shows it directed)."""
    required: bool
    """Whether the edge is there because the knowledge says so."""

    @property
    def direction(self) -> str:
        """How sure the direction is, "certain", "likely" or "uncertain", by `direction_probability`."""
        return direction_certainty(self.direction_probability)


@dataclass(frozen=True, eq=False)
class Answer:
    """A distribution over causal graphs on named variables, and the graph that a decoding rule takes from it.

    Matrices follow the order of `names`, and [j, k] is about the edge j → k. `arrangement` is an order of the variables
    that does not depend on how the table's columns were arranged: exact ties are settled in it, and random draws are
    made in it.
    """

    names: tuple[str, ...]
    distribution: SkeletonOrder
    knowledge: Knowledge = field(default_factory=Knowledge)
    rule: str = "map"
    threshold: float = 0.5
    arrangement: Sequence[int] | None = None
    observations: int | None = None
    model: str | None = None
    findings: tuple[Finding, ...] = ()
    log_columns: tuple[str, ...] = ()
    """Variables that were read on a log scale."""

    def __post_init__(self) -> None:
        if len(self.names) != self.distribution.order_scores.shape[-1]:
            raise ConfigurationError(
                f"Expected a name for each of {self.distribution.order_scores.shape[-1]} variables, "
                f"got {len(self.names)}."
            )
        _ = self.decoding  # what is wrong with knowledge or rule concerns whoever asked for it, now

    def refine(
        self, *, knowledge: Knowledge | None = None, rule: str | None = None, threshold: float | None = None
    ) -> Answer:
        """The answer with other knowledge, rule or threshold, without a new pass through the network."""
        changes = {"knowledge": knowledge, "rule": rule, "threshold": threshold}
        return replace(self, **{name: value for name, value in changes.items() if value is not None})  # type: ignore[arg-type]

    # The graph

    @cached_property
    def decoding(self) -> Decoding:
        """The graph, the order its edges follow, and whether that order is certainly the most probable one allowed."""
        places = self._places
        decoded = decode(*self._arranged, rule=self.rule, threshold=self.threshold)
        adjacency = np.empty_like(decoded.adjacency)
        adjacency[np.ix_(places, places)] = decoded.adjacency
        return Decoding(adjacency, places[decoded.order], decoded.exact)

    @property
    def adjacency(self) -> Bools:
        """The causal graph.  (P, P)"""
        return self.decoding.adjacency

    @property
    def order(self) -> tuple[str, ...]:
        """The variables, causes before effects."""
        return tuple(self.names[variable] for variable in self.decoding.order)

    @cached_property
    def cpdag(self) -> Bools:
        """The Markov equivalence class of the graph: edges that could be reversed are marked both ways.  (P, P)"""
        return dag.cpdag(self.adjacency)

    @cached_property
    def constraints(self) -> Constraints:
        """The knowledge, as matrices."""
        return self.knowledge.compile(self.names)

    # How sure

    @cached_property
    def edge_probabilities(self) -> Floats:
        """Probability of each directed edge, each pair given what is known about it.  (P, P)"""
        return edge_probabilities(self.distribution, self.constraints)

    @property
    def skeleton_probabilities(self) -> Floats:
        """Probability that two variables are adjacent, given what is known about the two.  (P, P)"""
        return np.asarray(self.edge_probabilities + self.edge_probabilities.T)

    @cached_property
    def order_scores(self) -> Floats:
        """The larger, the earlier; only differences matter.  (P,)"""
        return np.asarray(self.distribution.order_scores.detach().cpu().double().numpy())

    @cached_property
    def edges(self) -> tuple[DirectedEdge, ...]:
        """The edges of the graph, the most probable first."""
        facts = [self._facts(int(j), int(k)) for j, k in np.argwhere(self.adjacency)]
        return tuple(sorted(facts, key=lambda edge: (-edge.probability, edge.source, edge.target)))

    def sample(self, count: int, generator: torch.Generator) -> DrawnGraphs:
        """`count` graphs from the distribution, none of which contradicts the knowledge.  (count, P, P)"""
        places = self._places
        drawn = sample_graphs(*self._arranged, count, generator)
        back = np.argsort(places)
        return DrawnGraphs(drawn.graphs[:, back[:, None], back[None, :]], drawn.exact)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader must know: warnings about the table, and an approximation where there was one."""
        about_table = tuple(finding.message for finding in self.findings if finding.severity != "note")
        if self.decoding.exact:
            return about_table
        return (
            *about_table,
            "The knowledge leaves too many causal orders to go through them all. The graph obeys it, but its order is "
            "the best one found and perhaps not the most probable.",
        )

    def place_of(self, variable: str) -> int:
        """Where a variable stands in `names`."""
        if variable not in self.names:
            known = ", ".join(self.names[:10]) + (", ..." if len(self.names) > 10 else "")
            raise ConfigurationError(f"There is no variable {variable!r}: expected one of {known}.")
        return self.names.index(variable)

    @cached_property
    def _places(self) -> NDArray[np.intp]:
        return np.asarray(range(len(self.names)) if self.arrangement is None else self.arrangement, dtype=np.intp)

    @cached_property
    def _arranged(self) -> tuple[SkeletonOrder, Constraints]:
        """Distribution and constraints, with the variables in the order of `arrangement`."""
        places = self._places
        logits, scores = self.distribution.skeleton_logits, self.distribution.order_scores
        distribution = SkeletonOrder(logits[places[:, None], places[None, :]], scores[places])
        return distribution, self.knowledge.compile([self.names[place] for place in places])

    def _facts(self, source: int, target: int) -> DirectedEdge:
        probability = float(self.edge_probabilities[source, target])
        adjacency_probability = probability + float(self.edge_probabilities[target, source])
        return DirectedEdge(
            source=self.names[source],
            target=self.names[target],
            probability=probability,
            adjacency_probability=adjacency_probability,
            direction_probability=probability / adjacency_probability,
            order_margin=float(self.order_scores[source] - self.order_scores[target]),
            compelled=not self.cpdag[target, source],
            required=bool(self.constraints.required[source, target]),
        )
