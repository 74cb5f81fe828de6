"""SeriesAnswer: the distribution over window graphs of a series, and the graph decoded from it under knowledge."""

# P variables, L lags, C variables of the context

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from causal_arrow._version import __version__
from causal_arrow.discovery.answer import (
    DIGITS,
    HiddenCause,
    direction_strength,
    edge_record,
    hidden_cause_record,
    hidden_causes_among,
    index_among,
    reading_saved,
)
from causal_arrow.discovery.hidden import HIDDEN_CAUSE, is_flagged, level_of
from causal_arrow.discovery.settings import HIDDEN
from causal_arrow.errors import PYTHON, ConfigurationError, Wording, check_choice
from causal_arrow.graphs.decoding import check_threshold, most_probable_first
from causal_arrow.graphs.graph_distribution import GraphDistribution, sigmoid
from causal_arrow.graphs.knowledge import Knowledge
from causal_arrow.inputs import check_content, checked
from causal_arrow.series._findings import findings_of_graph
from causal_arrow.series.distribution import WindowDistribution, WindowKnowledge, summary, window_knowledge
from causal_arrow.series.window import at_lag
from causal_arrow.tables.table import Column, Finding

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

SERIES_FORMAT = "causal-arrow-series"
SERIES_VERSION = 1
AS_THEY_ARE = ("steps", "observations", "units", "model", "decode", "threshold", "environment", "table_checksum")
"""Fields that JSON holds as they are."""
EDGES = ("edges", "own_past", "context_edges")


@dataclass(frozen=True)
class LaggedEdge:
    """An edge of a window graph: the source, so many steps before, is a cause of the target."""

    source: str
    """The cause."""
    target: str
    """The effect."""
    lag: int
    """Steps from cause to effect; 0 is within one step."""
    probability: float
    """Probability of this edge in this direction."""
    direction_probability: float
    """Probability of this direction, given an edge; 1 between steps, since causes come first."""
    required: bool
    """True if knowledge requires the edge."""

    @property
    def direction(self) -> str:
        """Say how strongly this direction is preferred: "time" between steps, else as for edges of tables."""
        return "time" if self.lag else direction_strength(self.direction_probability)

    def __str__(self) -> str:
        return f"{at_lag(self.source, self.lag)} → {self.target} ({self.probability:.2f})"


def _sorted(edges: Iterable[LaggedEdge]) -> tuple[LaggedEdge, ...]:
    """Edges, the most probable first."""
    return tuple(
        sorted(edges, key=lambda edge: (*most_probable_first(edge.probability, edge.source, edge.target), edge.lag))
    )


def by_pair(edges: tuple[LaggedEdge, ...]) -> dict[tuple[str, str], list[LaggedEdge]]:
    """The edges of each pair of variables, by lag."""
    pairs: dict[tuple[str, str], list[LaggedEdge]] = {}
    for edge in edges:
        pairs.setdefault((edge.source, edge.target), []).append(edge)
    return {pair: sorted(some, key=lambda edge: edge.lag) for pair, some in pairs.items()}


EDGE_COLUMNS = ("source", "target", "lag", "probability", "direction_probability", "required", "direction")


@checked
@dataclass(frozen=True, eq=False)
class SeriesAnswer:
    """A distribution over stationary window graphs on named variables, and the graph a decoding rule takes from it.

    `discover` makes it for a series. [lag, j, k] is about the edge from variable j, so many steps before, to k.
    """

    names: tuple[str, ...]
    """The variables that have lags."""
    distribution: WindowDistribution
    """The network's distribution over window graphs."""
    context: tuple[str, ...] = ()
    """Variables that have no lags and no causes: an environment, what is constant within the units of a panel, and time
    itself where a variable has a trend."""
    knowledge: Knowledge = field(default_factory=Knowledge)
    """Background knowledge; no graph contradicts it."""
    decode: str = "map"
    """The decoding rule: "map", "shd" or "f1"."""
    threshold: float = 0.5
    """For "map": edges are shown when they are more probable than this."""
    hidden: str = "standing-out"
    """The hidden causes to show: "none", those "standing-out" from the level of the series, or "all"."""
    hidden_threshold: float = HIDDEN_CAUSE
    """The probability above which a hidden cause is shown."""
    steps: int | None = None
    """Steps of the series, over all units."""
    observations: int | None = None
    """Rows of the window."""
    units: int = 1
    """Units of a panel; 1 for one series."""
    model: str | None = None
    """The name of the model."""
    findings: tuple[Finding, ...] = ()
    """Findings about the series."""
    prepared: Mapping[str, Any] = field(default_factory=dict)
    """Preparations, by name: some of "log", "difference", "season" and "levels"."""
    columns: tuple[Column, ...] = ()
    """The kind of values of each variable."""
    experiments: Mapping[str, int] = field(default_factory=dict)
    """Number of steps in which experiments set each variable, for those that were set."""
    always_set: tuple[str, ...] = ()
    """Variables that were set at every step."""
    environment: str | None = None
    """The variable of the context that names the environment."""
    table_checksum: str | None = None
    """Digits that depend on the values of the window."""

    def __post_init__(self) -> None:
        variables = self.distribution.now.variables
        if len(self.names) != variables:
            raise ConfigurationError(f"Expected a name for each of {variables} variables, got {len(self.names)}.")
        check_choice("hidden", self.hidden, HIDDEN)
        check_threshold(self.hidden_threshold, "hidden_threshold")
        _ = self.graph  # decode now, so that invalid knowledge or an invalid rule fails here

    def refine(self, **changes: Any) -> SeriesAnswer:
        """The answer with other `knowledge`, `decode`, `threshold`, `hidden` or `hidden_threshold`; no new pass."""
        return replace(self, **{name: value for name, value in changes.items() if value is not None})

    # The graphs

    @property
    def lags(self) -> int:
        """The number of lags, L."""
        return self.distribution.lags

    @cached_property
    def known(self) -> WindowKnowledge:
        """The knowledge as matrices."""
        return window_knowledge(self.knowledge, self.names, self.context, self.lags, always_set=self.always_set)

    @cached_property
    def believed(self) -> WindowDistribution:
        """The distribution given the knowledge."""
        return self.distribution.under(self.known)

    @cached_property
    def _decoded(self) -> tuple[Bools, NDArray[np.intp]]:
        return self.believed.decoded(self.decode, self.threshold)

    @property
    def graph(self) -> Bools:
        """The window graph, [lag, j, k]: stationary, and acyclic at lag 0.  (L + 1, P, P)"""
        return self._decoded[0]

    @property
    def summary(self) -> Bools:
        """The summary graph, [j, k]: j acts on k at some lag. It may have cycles.  (P, P)"""
        return summary(self.graph)

    @property
    def order(self) -> tuple[str, ...]:
        """The variables in their causal order at lag 0."""
        return tuple(self.names[index] for index in self._decoded[1])

    @cached_property
    def edges(self) -> tuple[LaggedEdge, ...]:
        """The edges between different variables, the most probable first."""
        return _sorted(self._facts(lag, j, k) for lag, j, k in np.argwhere(self.graph).tolist() if j != k)

    @cached_property
    def own_past(self) -> tuple[LaggedEdge, ...]:
        """The edges from the past of a variable to itself, the most probable first."""
        return _sorted(self._facts(lag, j, k) for lag, j, k in np.argwhere(self.graph).tolist() if j == k)

    def _facts(self, lag: int, j: int, k: int) -> LaggedEdge:
        probability = float(self.edge_probabilities[lag, j, k])
        both = probability + (0.0 if lag else float(self.edge_probabilities[0, k, j]))
        required = bool(self.known.required[lag, j, k])
        return LaggedEdge(self.names[j], self.names[k], lag, probability, probability / (both or 1.0), required)

    # How sure

    @cached_property
    def edge_probabilities(self) -> Floats:
        """Probability of each edge given the knowledge, [lag, j, k].  (L + 1, P, P)"""
        return self.believed.probabilities()

    @cached_property
    def summary_probabilities(self) -> Floats:
        """Probability that j acts on k at some lag, [j, k]: edges at different lags are independent.  (P, P)"""
        some = 1 - np.prod(1 - self.edge_probabilities, axis=0)
        np.fill_diagonal(some, 0.0)
        return np.asarray(some)

    @cached_property
    def edges_per_lag(self) -> Floats:
        """The expected number of edges between different variables at each lag.  (L + 1,)"""
        own = np.eye(len(self.names), dtype=bool)
        return np.asarray(self.edge_probabilities[:, ~own].sum(axis=1))

    @cached_property
    def context_probabilities(self) -> Floats:
        """Probability that a variable of the context is a direct cause of k.  (C, P)"""
        return sigmoid(self.believed.context)

    @cached_property
    def context_edges(self) -> tuple[LaggedEdge, ...]:
        """The edges from the context, the most probable first."""
        return _sorted(
            LaggedEdge(self.context[c], self.names[k], 0, float(self.context_probabilities[c, k]), 1.0, False)
            for c, k in np.argwhere(self.context_probabilities > self.threshold)
        )

    @cached_property
    def confounding_probabilities(self) -> Floats | None:
        """Probability that two variables share a hidden cause at lag 0; None if the network gives none.  (P, P)"""
        found = self.distribution.now.confounding_probabilities()
        return None if found is None else np.where(self.known.now.unconfounded, 0.0, found)

    def _hidden_pairs(self, which: str) -> Bools:
        probabilities = self.confounding_probabilities
        if probabilities is None or which == "none":
            return np.zeros((len(self.names), len(self.names)), dtype=bool)
        exempt = np.eye(len(self.names), dtype=bool) | self.known.now.unconfounded
        flagged = is_flagged(probabilities, self.hidden_threshold) & ~exempt
        return flagged if which == "all" else flagged & level_of(probabilities, exempt).standing_out

    @cached_property
    def hidden_causes(self) -> tuple[HiddenCause, ...]:
        """The pairs shown to share a hidden cause at lag 0, the most probable first."""
        probabilities = self.confounding_probabilities
        shown = self._hidden_pairs(self.hidden)
        return () if probabilities is None else hidden_causes_among(self.names, probabilities, shown)

    @property
    def undistinguished(self) -> int:
        """Number of pairs above the threshold that are not shown, because they do not stand out from the series."""
        if self.hidden != "standing-out":
            return 0
        return int(self._hidden_pairs("all").sum() - self._hidden_pairs("standing-out").sum()) // 2

    def sample(self, count: int, generator: np.random.Generator) -> Bools:
        """Draw window graphs that agree with the knowledge.  (count, L + 1, P, P)"""
        return self.believed.sample(count, generator)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings, in the words of Python."""
        return self.worded_warnings(PYTHON)

    def worded_warnings(self, wording: Wording) -> tuple[str, ...]:
        """The warnings with advice in the words of a surface; an empty mapping leaves the advice out."""
        findings = (*self.findings, *findings_of_graph(self.graph))
        return tuple(finding.worded(wording) for finding in findings if finding.severity != "note")

    def index_of(self, variable: str) -> int:
        """The index of a variable in `names`; an unknown name is a ConfigurationError."""
        return index_among(self.names, variable, " with lags")

    # Files

    def to_dict(self) -> dict[str, Any]:
        """The answer as JSON can hold it, complete; `from_dict` reads it."""
        hidden, now = self.confounding_probabilities, self.distribution.now
        distribution = {
            "past": self.distribution.past,
            "skeleton_logits": now.skeleton_logits,
            "order_scores": now.order_scores,
            "confounding_logits": now.confounding_logits,
            "context": self.distribution.context,
        }
        return {
            "format": SERIES_FORMAT,
            "version": SERIES_VERSION,
            "causal_arrow": __version__,
            **{name: getattr(self, name) for name in (*AS_THEY_ARE, "hidden", "hidden_threshold")},
            "lags": self.lags,
            "variables": list(self.names),
            **{name: list(getattr(self, name)) for name in ("context", "always_set", "order")},
            "columns": [{**asdict(column), "levels": list(column.levels)} for column in self.columns],
            "experiments": dict(self.experiments),
            "prepared": dict(self.prepared),
            **{name: [edge_record(edge) for edge in getattr(self, name)] for name in EDGES},
            "edge_probabilities": np.round(self.edge_probabilities, DIGITS).tolist(),
            "summary_probabilities": np.round(self.summary_probabilities, DIGITS).tolist(),
            "hidden_causes": None if hidden is None else [hidden_cause_record(pair) for pair in self.hidden_causes],
            "confounding_probabilities": None if hidden is None else np.round(hidden, DIGITS).tolist(),
            "knowledge": self.knowledge.to_dict(),
            "warnings": list(self.worded_warnings({})),
            "findings": [finding.to_dict() for finding in self.findings],
            "distribution": {
                name: None if logits is None else np.asarray(logits, dtype=np.float64).tolist()
                for name, logits in distribution.items()
            },
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> SeriesAnswer:
        """The answer that `to_dict` wrote, to be asked and refined as before; else a ConfigurationError."""
        with reading_saved(content, "answer about a series", SERIES_FORMAT, SERIES_VERSION):
            check_content(content)
            names, lags = tuple(str(name) for name in content["variables"]), int(content["lags"])
            logits: dict[str, Any] = {
                name: None if values is None else np.array(values, dtype=np.float64)
                for name, values in content["distribution"].items()
            }
            if not all(np.isfinite(values).all() for values in logits.values() if values is not None):
                raise ValueError("the distribution is not complete")
            if len(content["context"]) * len(names) != logits["context"].size:
                raise ValueError("the context and its probabilities differ in size")
            now = GraphDistribution(logits["skeleton_logits"], logits["order_scores"], logits["confounding_logits"])
            past = logits["past"].reshape(lags, len(names), len(names))
            return cls(
                names=names,
                distribution=WindowDistribution(past, now, logits["context"].reshape(-1, len(names))),
                context=tuple(content["context"]),
                knowledge=Knowledge.from_dict(content["knowledge"]),
                hidden=content.get("hidden", "standing-out"),
                hidden_threshold=content.get("hidden_threshold", HIDDEN_CAUSE),
                findings=tuple(Finding.from_dict(finding) for finding in content["findings"]),
                prepared=dict(content["prepared"]),
                columns=tuple(
                    Column(str(each["name"]), each["kind"], tuple(each["levels"])) for each in content["columns"]
                ),
                experiments={str(name): int(count) for name, count in content["experiments"].items()},
                always_set=tuple(content["always_set"]),
                **{name: content[name] for name in AS_THEY_ARE},
            )
