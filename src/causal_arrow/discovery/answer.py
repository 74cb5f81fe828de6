"""Answer: the network's distribution over the graphs of one table, and the graph decoded from it under knowledge.

The network runs once. Everything that can be asked afterwards (the graph, the probability of each edge and of its
direction, other possible graphs) starts here, and so do the exports and the pictures.

Inside, variables stand in an order that depends only on their values, the `arrangement`; everything public follows the
order of `names`. So ties and random draws come out the same however the columns of the table were ordered.
"""

# K graphs, P variables, M copies of one variable

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from causal_arrow._version import __version__
from causal_arrow.discovery.hidden import HIDDEN_CAUSE, Level, is_flagged, level_of
from causal_arrow.discovery.settings import DIRECTIONS, HIDDEN, REFINABLE
from causal_arrow.errors import PYTHON, ConfigurationError, KnowledgeError, Wording, check_choice
from causal_arrow.graphs import dag
from causal_arrow.graphs.beliefs import WeighedBelief
from causal_arrow.graphs.dag import CausalGraph
from causal_arrow.graphs.decoding import (
    Decoding,
    DrawnGraphs,
    VanishedAdjacency,
    check_threshold,
    decode,
    edge_probabilities,
    most_probable_first,
    probabilities_of,
    sample_graphs,
    vanished_adjacencies,
)
from causal_arrow.graphs.files import JSON_FORMAT, JSON_VERSION
from causal_arrow.graphs.graph_distribution import GraphDistribution
from causal_arrow.graphs.knowledge import Constraints, Knowledge
from causal_arrow.inputs import check_content, checked
from causal_arrow.tables.options import KINDS, check_names
from causal_arrow.tables.report import groups_of_copies
from causal_arrow.tables.table import Bools, Column, Finding, Floats
from causal_arrow.text import closest, counted, listed

Indices = NDArray[np.intp]
Group = tuple[int, ...]
Matrix = TypeVar("Matrix", bound=NDArray[Any])

DIGITS = 6  # decimal places of probabilities and scores in files

MAX_LOG_ODDS = 500.0

# A direction is called by the rounded probability that the edge, if there is one, points this way.
STRONG_DIRECTION = 0.95
MODERATE_DIRECTION = 0.75
SHOWN_DIGITS = 2


def direction_strength(direction_probability: float) -> str:
    """Strength of a preference: "strong" from 0.95 on, "moderate" from 0.75 on, otherwise "weak".

    docs/understand/probabilities.md shows how often each was right, by kind of table.
    """
    shown = round(direction_probability, SHOWN_DIGITS)
    if shown >= STRONG_DIRECTION:
        return "strong"
    return "moderate" if shown >= MODERATE_DIRECTION else "weak"


@dataclass(frozen=True)
class DirectedEdge:
    """One edge of the answer, and how much there is behind it. Probabilities take the knowledge into account."""

    source: str
    """The cause."""
    target: str
    """The effect."""
    probability: float
    """Probability of this edge in this direction, ν·q."""
    adjacency_probability: float
    """Probability of an edge between the two, in whichever direction, ν."""
    direction_probability: float
    """Probability of this direction, given that there is an edge."""
    order_margin: float
    """Difference of the order scores, s_source − s_target: the log-odds that the source comes first."""
    compelled: bool
    """Whether every graph with the same independences has this direction (the CPDAG shows it directed)."""
    required: bool
    """Whether the knowledge requires the edge."""

    @property
    def direction(self) -> str:
        """Strength of the preference for this direction: "strong", "moderate" or "weak"."""
        return direction_strength(self.direction_probability)


@dataclass(frozen=True)
class HiddenCause:
    """Two variables that probably share a cause which is not in the table."""

    first: str
    """One of the two variables."""
    second: str
    """The other."""
    probability: float
    """Probability that they share a hidden cause."""

    def __str__(self) -> str:
        return f"{self.first} ↔ {self.second} ({self.probability:.2f})"


def set_in_every(observations: int | None, experiments: Mapping[str, int]) -> tuple[str, ...]:
    """The variables that experiments have intervened on in all of so many observations."""
    return tuple(name for name, count in experiments.items() if count == observations)


def constraints_on(
    names: Sequence[str], knowledge: Knowledge, environment: str | None, always_set: Sequence[str] = ()
) -> Constraints:
    """The knowledge as matrices, and what the table itself rules out.

    Nothing causes the environment, nor a variable that experiments intervened on in every observation: both come first
    in the causal order. Knowledge against that is refused for the environment; for the others it is about the world
    without the experiment, and holds. Those share no hidden cause either.
    """
    if environment is None:
        return knowledge.compile(names).led_by(always_set).without_hidden_causes_of(always_set)
    if causes := [source for source, target in knowledge.required if target == environment]:
        raise KnowledgeError(
            f"{environment!r} holds the environments, so nothing in the table causes it: take the required edge from "
            f"{causes[0]!r} to it out of the knowledge."
        )
    compiled = (knowledge | Knowledge(roots=[environment])).compile(names)
    later = compiled.precedence[:, compiled.names.index(environment)]
    if later.any():
        raise KnowledgeError(
            f"{environment!r} holds the environments and comes before every other variable, but the tiers put "
            f"{compiled.names[int(np.argmax(later))]!r} before it: take {environment!r} out of them."
        )
    return compiled.led_by([environment, *always_set]).without_hidden_causes_of(always_set)


def why_uncaused(answer: Answer, name: str) -> str:
    """Why the table itself rules out every cause of a variable, in words that follow its name; empty if it does not."""
    if name == answer.environment:
        return "identifies environments"
    index = answer.index_of(name)
    led = bool(np.delete(answer.constraints.forbidden[:, index], index).all())
    return "was set in every observation" if led and name in answer.always_set else ""


@checked
@dataclass(frozen=True, eq=False, repr=False)
class Answer:
    """A distribution over causal graphs on named variables, and the graph that a decoding rule takes from it.

    `discover` and `Arrow.fit` make it. Matrices follow the order of `names`, and [j, k] is about the edge j → k.

    Parameters
    ----------
    distribution
        The network's output. Variable i there is `names[arrangement[i]]`.
    arrangement
        The order of the variables in `distribution`; that of `names` by default.
    experiments
        In how many observations each variable was intervened on, for those that experiments have intervened on.
    environment
        The variable whose levels are environments, which nothing in the table causes.
    table_checksum
        Digits that depend on the table's values, whatever the order of rows and columns.
    direction_temperature
        The divisor of the log-odds of directions, for this table, where `directions` is "tempered".
    compiled
        The knowledge as matrices, in the order of `arrangement`; compiled from `knowledge` unless it is given.

    Examples
    --------
    >>> from causal_arrow import Knowledge, discover, load_example
    >>> answer = discover(load_example("hospital")).answer
    >>> answer.names
    ('age', 'smoker', 'ward', 'inflammation', 'drug', 'day3', 'stay')
    >>> informed = answer.refine(knowledge=Knowledge(forbidden=["day3 -> stay"]))
    >>> bool(informed.adjacency[5, 6])
    False
    """

    names: tuple[str, ...]
    distribution: GraphDistribution
    knowledge: Knowledge = field(default_factory=Knowledge)
    decode: str = "map"
    threshold: float = 0.5
    arrangement: Sequence[int] | None = None
    observations: int | None = None
    model: str | None = None
    findings: tuple[Finding, ...] = ()
    log_columns: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    experiments: Mapping[str, int] = field(default_factory=dict)
    environment: str | None = None
    table_checksum: str | None = None
    directions: str = "network"
    direction_temperature: float = 1.0
    hidden: str = "standing-out"
    hidden_threshold: float = HIDDEN_CAUSE
    compiled: Constraints | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        variables = self.distribution.variables
        if len(self.names) != variables:
            raise ConfigurationError(f"Expected a name for each of {variables} variables, got {len(self.names)}.")
        check_choice("directions", self.directions, DIRECTIONS)
        check_choice("hidden", self.hidden, HIDDEN)
        check_threshold(self.hidden_threshold, "hidden_threshold")
        if not (math.isfinite(self.direction_temperature) and self.direction_temperature > 0):
            raise ConfigurationError(f"Expected a temperature above 0, got {self.direction_temperature!r}.")
        _ = self.decoding  # decode now, so that invalid knowledge or an invalid rule fails here

    def refine(self, **changes: Any) -> Answer:
        """The answer with other knowledge, decoding or display, without a new pass through the network.

        `changes` are some of `knowledge`, `decode`, `threshold`, `directions`, `hidden` and `hidden_threshold`.
        """
        check_names(changes, REFINABLE)
        given = {name: value for name, value in changes.items() if value is not None}
        compiled = None if "knowledge" in given else self.compiled
        return replace(self, **given, compiled=compiled)

    @cached_property
    def believed(self) -> GraphDistribution:
        """The network's distribution, with its order scores divided by `direction_temperature` if that was chosen."""
        if self.directions == "network":
            return self.distribution
        return self.distribution.tempered(self.direction_temperature)

    # The graph

    @cached_property
    def decoding(self) -> Decoding:
        """The graph `adjacency` (P, P), the `order` (P,) of its edges, and whether it is certainly the best one."""
        decoded = decode(self.believed, self.constraints_as_arranged, decode=self.decode, threshold=self.threshold)
        return replace(decoded, adjacency=self._put_back(decoded.adjacency), order=self._variables_read[decoded.order])

    @property
    def adjacency(self) -> Bools:
        """The directed edges.  (P, P)"""
        return self.decoding.adjacency

    @cached_property
    def graph(self) -> CausalGraph:
        """The causal graph: `directed` edges (P, P), and `bidirected` ones (P, P) for pairs that share a hidden cause.

        `bidirected` is None for a model without probabilities of hidden causes.
        """
        return CausalGraph(self.adjacency, self._hidden_pairs(self.hidden, self.hidden_threshold))

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
        """The knowledge, as matrices in the order of `names`."""
        return self.constraints_as_arranged.rearranged(np.argsort(self._variables_read))

    # How sure

    @cached_property
    def edge_probabilities(self) -> Floats:
        """Probability of each directed edge, each pair given what is known about it.  (P, P)"""
        return self._shared(self._put_back(edge_probabilities(self.believed, self.constraints_as_arranged)))

    @property
    def skeleton_probabilities(self) -> Floats:
        """Probability that two variables are adjacent, given what is known about the two.  (P, P)"""
        return np.asarray(self.edge_probabilities + self.edge_probabilities.T)

    @cached_property
    def confounding_probabilities(self) -> Floats | None:
        """Probability that two variables share a hidden cause.  (P, P)

        Zero where the knowledge rules it out, or where experiments always intervened on one of the two. None for a
        network without probabilities of them.
        """
        found = self._confounding_as_read
        return None if found is None else self._shared(found)

    @cached_property
    def _confounding_as_read(self) -> Floats | None:
        """The same before copies share it."""
        probabilities = self.distribution.confounding_probabilities()
        if probabilities is None:
            return None
        probabilities = self._put_back(probabilities)
        if self.constraints.evidence is not None:
            weight = np.exp(np.minimum(self.constraints.evidence.hidden, MAX_LOG_ODDS))
            probabilities = probabilities * weight / (1 - probabilities + probabilities * weight)
        return np.where(self.constraints.unconfounded, 0.0, probabilities)

    @cached_property
    def hidden_level(self) -> Level | None:
        """The `median` probability of a hidden cause among all pairs, and which pairs are `standing_out` (P, P).

        Without copies and columns that determine each other. None for a network that says nothing of hidden causes.
        """
        probabilities = self._confounding_as_read
        if probabilities is None:
            return None
        exempt = self.constraints.unconfounded | np.eye(len(self.names), dtype=bool)
        for finding in self.findings:
            if finding.kind in ("copies", "collinear", "derived"):
                members = [self.index_of(name) for name in finding.columns if name in self.names]
                exempt[np.ix_(members, members)] = True
                if finding.kind == "copies":  # of which the first has been read for all
                    exempt[members[1:]] = exempt[:, members[1:]] = True
        return level_of(probabilities, exempt)

    def _hidden_pairs(self, which: str, threshold: float) -> Bools | None:
        """The pairs to show as sharing a hidden cause.  (P, P)"""
        probabilities, level = self._confounding_as_read, self.hidden_level
        if probabilities is None or level is None:
            return None
        flagged = is_flagged(probabilities, threshold)
        return {"none": np.zeros_like(flagged), "standing-out": flagged & level.standing_out, "all": flagged}[which]

    @property
    def undistinguished(self) -> int:
        """The number of pairs above the threshold that are not shown, because they do not stand out from the table.

        0 unless `hidden` is "standing-out".
        """
        every, shown = self._hidden_pairs("all", self.hidden_threshold), self.graph.bidirected
        if self.hidden != "standing-out" or every is None or shown is None:
            return 0
        return int(np.triu(every & ~shown).sum())

    @cached_property
    def suspected(self) -> Bools | None:
        """The pairs that stand out as sharing a hidden cause, shown or not; None as in `hidden_level`.  (P, P)"""
        return self._hidden_pairs("standing-out", HIDDEN_CAUSE)

    @cached_property
    def hidden_causes(self) -> tuple[HiddenCause, ...]:
        """The pairs shown to share a hidden cause, the most probable first.

        Empty as well if the network has no probabilities of them.
        """
        if self.confounding_probabilities is None or self.graph.bidirected is None:
            return ()
        return hidden_causes_among(self.names, self.confounding_probabilities, self.graph.bidirected)

    @property
    def always_set(self) -> tuple[str, ...]:
        """The variables with an intervention in every observation, so that the table cannot show their causes."""
        return set_in_every(self.observations, self.experiments)

    @property
    def shifted(self) -> tuple[DirectedEdge, ...]:
        """The edges from the environment: what differs between environments by more than its causes do."""
        return tuple(edge for edge in self.edges if edge.source == self.environment)

    @cached_property
    def order_scores(self) -> Floats:
        """A score for each variable: the larger, the earlier; only differences matter.  (P,)"""
        return np.asarray(self.believed.order_scores[np.argsort(self._variables_read)], dtype=np.float64)

    @cached_property
    def edges(self) -> tuple[DirectedEdge, ...]:
        """The edges of the graph, the most probable first."""
        facts = [self._facts(int(j), int(k)) for j, k in np.argwhere(self.adjacency)]
        return tuple(sorted(facts, key=lambda edge: most_probable_first(edge.probability, edge.source, edge.target)))

    def sample(
        self, n_graphs: int, generator: np.random.Generator, question: tuple[str, str] | None = None
    ) -> DrawnGraphs:
        """Graphs from the distribution, none of which contradicts the knowledge.

        A `question` about the effect of a treatment on an outcome says that the outcome comes later. That is no
        evidence on what causes the treatment: the outcome alone takes another place in the causal order.
        """
        known, ends = self.constraints_as_arranged, None
        if question is not None:
            treatment, outcome = ({self.names[each] for each in self.copies_of(self.index_of(end))} for end in question)
            if len(treatment) == len(outcome) == 1:
                ends = known.names.index(question[0]), known.names.index(question[1])
                outcome = {name for name, late in zip(known.names, known.precedence[ends[1]], strict=True) if late}
            known = known.ordered(treatment, outcome)
        drawn = sample_graphs(self.believed, known, n_graphs, generator, ends)
        graphs = self._put_back(drawn.graphs)
        for group in self._copies:
            graphs = _swapped(graphs, group[0], generator.choice(group, size=len(graphs)))
        return DrawnGraphs(graphs, drawn.exact)

    def sample_hidden(self, graphs: Bools, generator: np.random.Generator) -> Bools | None:
        """Pairs that share a hidden cause, drawn for each of some graphs, every pair by its probability."""
        probabilities = self._confounding_as_read
        if probabilities is None:
            return None
        drawn = np.triu(generator.random(graphs.shape) < probabilities, 1)
        pairs: Bools = drawn | drawn.swapaxes(1, 2)
        for group in self._copies:
            pairs = _swapped(pairs, group[0], _carriers(group, graphs))
        return pairs

    # Copies: the network reads one of several columns that are copies of each other. Its probabilities hold for any of
    # them, so they share them. In a sampled graph one of them, the carrier, has all edges and causes the others.

    @cached_property
    def _copies(self) -> tuple[Group, ...]:
        """The groups of copies that knowledge and experiments treat alike; the network has read the first of each.

        Of other copies, the one that the network has read carries in every graph.
        """
        # By name: sums over groups are rounded alike, whatever the order of columns.
        groups = [tuple(self.index_of(name) for name in group) for group in sorted(groups_of_copies(self.findings))]
        return tuple(group for group in groups if self._are_alike(group))

    def _are_alike(self, group: Group) -> bool:
        times_set = {self.experiments.get(self.names[index], 0) for index in group}
        ways = _ways_to_swap(group, len(self.names))
        return len(times_set) == 1 and all(self.constraints.is_same(self.constraints.rearranged(way)) for way in ways)

    def _shared(self, probabilities: Floats) -> Floats:
        """Probabilities of pairs if each of the copies may be the one that the network has read.  (P, P)"""
        for group in self._copies:
            ways = _ways_to_swap(group, len(probabilities))
            probabilities = np.mean([probabilities[np.ix_(way, way)] for way in ways], axis=0)
        return probabilities

    def copies_of(self, variable: int) -> Group:
        """A variable and its copies, as indices in `names`."""
        return next((group for group in self._copies if variable in group), (variable,))

    def carried_by(self, variable: int, graphs: Bools, hidden: Bools | None = None) -> tuple[Bools, Bools | None]:
        """Graphs drawn from this answer, and hidden causes drawn for them, in which a variable acts for its copies.

        A question about an intervention on one of them is about the variable that they all show.
        """
        group = self.copies_of(variable)
        if len(group) == 1:
            return graphs, hidden
        carriers = _carriers(group, graphs)
        return _swapped(graphs, variable, carriers), None if hidden is None else _swapped(hidden, variable, carriers)

    @cached_property
    def beliefs(self) -> tuple[WeighedBelief, ...]:
        """The beliefs, each with the probability of its statement by the data alone and with all beliefs."""
        believed = self.knowledge.beliefs
        if not believed:
            return ()
        alone = replace(self, knowledge=self.knowledge.without_beliefs(), compiled=None)
        columns = []
        for answer in (alone, self):
            found = probabilities_of(believed, answer.believed, answer.constraints_as_arranged)
            hidden = answer.confounding_probabilities
            for index, belief in enumerate(believed):
                if belief.kind == "hidden" and hidden is not None:
                    found[index] = float(hidden[tuple(map(self.index_of, belief.names))])
            columns.append(found)
        return tuple(WeighedBelief(*each) for each in zip(believed, *columns, strict=True))

    @cached_property
    def vanished(self) -> tuple[VanishedAdjacency, ...]:
        """Pairs that would be adjacent without the knowledge and are not with it, the most probable first.

        Pairs for which the knowledge rules out both directions are not among them: that is what was asked for.
        """
        decoding = replace(self.decoding, adjacency=self.adjacency[np.ix_(self._variables_read, self._variables_read)])
        pairs = vanished_adjacencies(self.believed, self.constraints_as_arranged, decoding)
        return tuple(pair for pair in pairs if len(pair.ruled_out) < 2)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about the table, and about an approximation where there was one."""
        return self.worded_warnings(PYTHON)

    def worded_warnings(self, wording: Wording) -> tuple[str, ...]:
        """The warnings, with what can be done about them in the words of a surface."""
        about_table = tuple(finding.worded(wording) for finding in self.findings if finding.severity != "note")
        if self.decoding.exact:
            return about_table
        return (
            *about_table,
            "The knowledge leaves too many causal orders to go through them all. The graph obeys it, but its order is "
            "the best one found and perhaps not the most probable.",
        )

    def __repr__(self) -> str:
        known = f" of {counted(self.observations, 'observation')}" if self.observations else ""
        return f"<Answer{known}: {counted(len(self.edges), 'edge')} among {counted(len(self.names), 'variable')}>"

    def index_of(self, variable: str) -> int:
        """The index of a variable in `names`; an unknown name is a ConfigurationError."""
        return index_among(self.names, variable)

    # Files

    def to_dict(self) -> dict[str, Any]:
        """The answer as JSON can hold it, complete; `from_dict` reads it. docs/reference/json.md has every field."""
        scores = {name: round(float(score), DIGITS) for name, score in zip(self.names, self.order_scores, strict=True)}
        shared = self.confounding_probabilities
        return {
            "format": JSON_FORMAT,
            "version": JSON_VERSION,
            "causal_arrow": __version__,
            "model": self.model,
            "observations": self.observations,
            "variables": list(self.names),
            "columns": [{**asdict(column), "levels": list(column.levels)} for column in self.columns],
            "log_columns": list(self.log_columns),
            "experiments": dict(self.experiments),
            "environment": self.environment,
            "edges": [edge_record(edge) for edge in self.edges],
            "order": list(self.order),
            "order_scores": scores,
            "order_is_exact": self.decoding.exact,
            "edge_probabilities": np.round(self.edge_probabilities, DIGITS).tolist(),
            "hidden_causes": None if shared is None else [hidden_cause_record(pair) for pair in self.hidden_causes],
            "confounding_probabilities": None if shared is None else np.round(shared, DIGITS).tolist(),
            "cpdag": self.cpdag.astype(int).tolist(),
            "decode": self.decode,
            "threshold": self.threshold,
            "direction_thresholds": {"strong": STRONG_DIRECTION, "moderate": MODERATE_DIRECTION},
            "knowledge": self.knowledge.to_dict(),
            "beliefs": [each.to_dict() for each in self.beliefs],
            "warnings": list(self.worded_warnings({})),
            "notes": [finding.message for finding in self.findings if finding.severity == "note"],
            "findings": [finding.to_dict() for finding in self.findings],
            "table_checksum": self.table_checksum,
            "directions": self.directions,
            "direction_temperature": round(self.direction_temperature, DIGITS),
            "hidden": self.hidden,
            "hidden_threshold": self.hidden_threshold,
            "distribution": self._distribution_to_dict(),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Answer:
        """The answer that `to_dict` wrote, to be asked and refined as before."""
        with reading_saved(content, "answer", JSON_FORMAT, JSON_VERSION):
            if "distribution" not in content:
                raise ConfigurationError(
                    "This answer holds a graph but not the network's distribution: it was written by an earlier "
                    "version or by `simulate`. Run discover again."
                )
            check_content(content)
            names = tuple(str(name) for name in content["variables"])
            arrangement, distribution = _distribution_from_dict(content["distribution"], len(names))
            environment = content.get("environment")
            return cls(
                names=names,
                distribution=distribution,
                knowledge=Knowledge.from_dict(content["knowledge"]),
                arrangement=arrangement,
                findings=tuple(Finding.from_dict(finding) for finding in content["findings"]),
                log_columns=tuple(_known(name, names) for name in content["log_columns"]),
                columns=_columns(content["columns"], names),
                experiments={_known(name, names): int(count) for name, count in content.get("experiments", {}).items()},
                environment=None if environment is None else _known(environment, names),
                **{name: content[name] for name in ("decode", "threshold", "observations", "model", "table_checksum")},
                directions=content.get("directions", "network"),
                direction_temperature=float(content.get("direction_temperature", 1.0)),
                hidden=content.get("hidden", "all"),
                hidden_threshold=float(content.get("hidden_threshold", HIDDEN_CAUSE)),
            )

    def _distribution_to_dict(self) -> dict[str, Any]:
        upper = np.triu_indices(len(self.names), 1)
        confounding = self.distribution.confounding_logits
        return {
            "arrangement": self._variables_read.tolist(),
            "skeleton_logits": _short(self.distribution.skeleton_logits[upper]),
            "order_scores": _short(self.distribution.order_scores),
            "confounding_logits": None if confounding is None else _short(confounding[upper]),
        }

    # Inside

    @cached_property
    def _variables_read(self) -> NDArray[np.intp]:
        return np.asarray(range(len(self.names)) if self.arrangement is None else self.arrangement, dtype=np.intp)

    @cached_property
    def constraints_as_arranged(self) -> Constraints:
        """The knowledge, as matrices in the order of `arrangement`."""
        if self.compiled is not None:
            return self.compiled
        names = [self.names[index] for index in self._variables_read]
        return constraints_on(names, self.knowledge, self.environment, self.always_set)

    def _put_back(self, matrices: Matrix) -> Matrix:
        """Matrices of arranged variables, in the order of `names`.  (..., P, P)"""
        back = np.argsort(self._variables_read)
        return matrices[..., back[:, None], back[None, :]]  # type: ignore[return-value]

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


def _ways_to_swap(group: Group, variables: int) -> Indices:
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


def index_among(names: Sequence[str], variable: str, having: str = "") -> int:
    """The index of a variable among names; an unknown name is a ConfigurationError."""
    if variable not in names:
        near = closest(str(variable), names)
        hint = f"expected one of {listed(names, 10)}." if near is None else f"did you mean {near!r}?"
        raise ConfigurationError(f"There is no variable {variable!r}{having}: {hint}")
    return names.index(variable)


def hidden_causes_among(names: Sequence[str], probabilities: Floats, shown: Bools) -> tuple[HiddenCause, ...]:
    """The pairs that are shown (P, P) to share a hidden cause, the most probable first."""
    pairs = np.argwhere(np.triu(shown, 1)).tolist()
    found = [HiddenCause(names[j], names[k], float(probabilities[j, k])) for j, k in pairs]
    return tuple(sorted(found, key=lambda pair: most_probable_first(pair.probability, pair.first, pair.second)))


@contextmanager
def reading_saved(content: Any, what: str, format: str, version: int) -> Iterator[None]:
    """Check what a saved answer says it is, and say so where reading it fails."""
    if not isinstance(content, Mapping) or content.get("format") != format:
        raise ConfigurationError(f'Expected an {what}, an object with "format": "{format}".')
    if content.get("version") != version:
        raise ConfigurationError(
            f"Expected version {version} of a saved {what}, got {content.get('version')!r}: it was written by another "
            "version of causal-arrow."
        )
    try:
        yield
    except ConfigurationError:
        raise
    except (LookupError, TypeError, ValueError, RuntimeError, AttributeError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise ConfigurationError(f"This saved answer is damaged or was changed by hand ({reason}).") from error


def edge_record(edge: Any) -> dict[str, Any]:
    """An edge of a table or of a series as files hold it."""
    facts = {name: round(value, DIGITS) if isinstance(value, float) else value for name, value in asdict(edge).items()}
    facts["direction"] = edge.direction
    return facts


def hidden_cause_record(pair: HiddenCause) -> dict[str, Any]:
    """Two variables that share a hidden cause, as files hold them."""
    return {**asdict(pair), "probability": round(pair.probability, DIGITS)}


def _short(values: NDArray[np.floating[Any]]) -> list[float]:
    """The numbers in float32, with as few digits as identify each among all float32."""
    return [float(str(value)) for value in values.astype(np.float32)]


def _distribution_from_dict(content: Mapping[str, Any], variables: int) -> tuple[tuple[int, ...], GraphDistribution]:
    arrangement = tuple(int(index) for index in content["arrangement"])
    if sorted(arrangement) != list(range(variables)):
        raise ValueError(f"the arrangement does not order {counted(variables, 'variable')}")
    confounding = content["confounding_logits"]
    return arrangement, GraphDistribution(
        _symmetric(content["skeleton_logits"], variables),
        np.array(content["order_scores"], dtype=np.float32),
        None if confounding is None else _symmetric(confounding, variables),
    )


def _symmetric(upper: Sequence[float], variables: int) -> NDArray[np.float32]:
    """The matrix whose entries above and below the diagonal are these, row by row.  (P, P)"""
    matrix = np.zeros((variables, variables), dtype=np.float32)
    matrix[np.triu_indices(variables, 1)] = np.array(upper, dtype=np.float32)
    return np.asarray(matrix + matrix.T)


def _known(name: Any, names: Sequence[str]) -> str:
    """The name of a variable; ValueError for any other."""
    if name not in names:
        raise ValueError(f"{name!r} is not a variable")
    return str(name)


def _columns(content: Sequence[Mapping[str, Any]], names: Sequence[str]) -> tuple[Column, ...]:
    for column in content:
        if column["kind"] not in KINDS:
            raise ValueError(f"unknown kind of column {column['kind']!r}")
    columns = tuple(Column(str(each["name"]), each["kind"], tuple(each["levels"])) for each in content)
    if columns and [column.name for column in columns] != list(names):
        raise ValueError("the columns are not those of the variables")
    return columns
