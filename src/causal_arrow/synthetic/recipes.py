"""Recipes: tables of named, weighted choices from which a task is put together.

Every table is drawn from independently. Names are unique across all tables, so that one name is enough to switch a
component off.

The recipe `paper` is section 4.1 of the paper. What the paper leaves open, and what we chose:
- *Once a task*: graph family, number of edges s, linear or MLP, number of hidden units h (uniform on 1..64),
  activation, a_w, homogeneous or heterogeneous noise, the shape parameters (a, b) of the R² law; in the homogeneous
  setting also the noise distribution and its (α, β).
- *Once a variable*: the target R², and in the heterogeneous setting the noise distribution and its (α, β).
- *Once an edge or hidden unit*: the weights. MLPs have no biases.
- s above p(p−1)/2 is clamped. R² = 0.1 + 0.8 · Beta(a, b).
- Scale-free graphs: s pairs without replacement ∝ (i·j)^−α with α = 1/2, which is degree exponent 3.
- R² is met by the variances of the very observations drawn, signal and noise each by itself; their chance correlation
  is left in. Variances and standard deviations are those with n−1.
- Small-world graphs: the s nearest pairs of a ring, distance by distance, each rewired with probability 0.2.
- Spline functions: additive, see mechanisms.Splines. Gamma noise: shape from Unif(1, 10), as for the paper's beta.

The number of observations and variables is the caller's choice.

No training distribution holds any of EVALUATION_ONLY, and `TaskDistribution.for_training` refuses them by name:
- SHIFTS, the paper's shift test: small-world graphs, spline functions, gamma noise. Looked at all the time.
- HELD_OUT, ours, frozen and looked at once per release: random geometric graphs, lattices and cascades; periodic
  functions, distances and maxima; Gumbel, double Weibull and asymmetric Laplace noise.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from causal_arrow.errors import ConfigurationError
from causal_arrow.synthetic.columns import DISTORTION_SHAPES, ROUNDINGS
from causal_arrow.synthetic.graph_families import EDGE_COUNTS, GRAPH_FAMILIES
from causal_arrow.synthetic.mechanisms import ACTIVATIONS, MECHANISMS, WEIGHT_RANGES
from causal_arrow.synthetic.noise import NOISES
from causal_arrow.synthetic.strengths import SCALES, SIGNAL_STRENGTHS

Table = Mapping[str, float]

# Every table and the names it may hold, in the order of their codes.
COMPONENTS: Mapping[str, tuple[str, ...]] = {
    "graph_families": tuple(GRAPH_FAMILIES),
    "edge_counts": tuple(EDGE_COUNTS),
    "mechanisms": tuple(MECHANISMS),
    "activations": tuple(ACTIVATIONS),
    "weight_ranges": tuple(WEIGHT_RANGES),
    "noises": tuple(NOISES),
    "noise_settings": ("homogeneous", "heterogeneous"),
    "noise_couplings": ("additive_noise", "heteroscedastic_noise"),
    "signal_strengths": tuple(SIGNAL_STRENGTHS),
    "scales": tuple(SCALES),
    "hidden_variables": ("no_hidden_causes", "hidden_causes", "pooled_conditions"),
    "distortions": ("undistorted", "alike_distortions", "mixed_distortions"),
    "distortion_shapes": tuple(DISTORTION_SHAPES),
    "roundings": tuple(ROUNDINGS),
}

# Where a name stands in its table.
CODES: Mapping[str, int] = {name: code for names in COMPONENTS.values() for code, name in enumerate(names)}


def _evenly(*names: str) -> Table:
    return dict.fromkeys(names, 1.0)


# The paper's shift test.
SHIFTS: Mapping[str, tuple[str, Table]] = {
    "graphs": ("graph_families", {"small_world": 1.0}),
    "functions": ("mechanisms", {"splines": 1.0}),
    "noise": ("noises", {"gamma": 1.0}),
}

# The frozen test, of the suite `held-out`. Never a name more or less: that would be another test.
HELD_OUT: Mapping[str, Table] = {
    "graph_families": _evenly("random_geometric", "lattice", "cascade"),
    "mechanisms": _evenly("periodic", "distance", "maximum"),
    "noises": _evenly("gumbel", "double_weibull", "asymmetric_laplace"),
}

# A model that has trained on any of these can no longer be tested on it.
EVALUATION_ONLY: frozenset[str] = frozenset().union(*(table for _, table in SHIFTS.values()), *HELD_OUT.values())


@dataclass(frozen=True)
class Recipe:
    """One table a choice; the defaults are the paper's. `weight` is the recipe's share among several."""

    weight: float = 1.0
    graph_families: Table = field(default_factory=lambda: _evenly("erdos_renyi", "scale_free"))
    edge_counts: Table = field(default_factory=lambda: _evenly("edges_up_to_4p"))
    mechanisms: Table = field(default_factory=lambda: _evenly("linear", "mlp"))
    activations: Table = field(default_factory=lambda: _evenly("tanh", "hardtanh", "sigmoid", "hardsigmoid"))
    weight_ranges: Table = field(default_factory=lambda: _evenly("weights_near_one"))
    noises: Table = field(default_factory=lambda: _evenly("normal", "uniform", "beta"))
    noise_settings: Table = field(default_factory=lambda: _evenly("homogeneous", "heterogeneous"))
    noise_couplings: Table = field(default_factory=lambda: _evenly("additive_noise"))
    signal_strengths: Table = field(default_factory=lambda: _evenly("moderate_signal"))
    scales: Table = field(default_factory=lambda: _evenly("restandardized"))
    hidden_variables: Table = field(default_factory=lambda: _evenly("no_hidden_causes"))
    distortions: Table = field(default_factory=lambda: _evenly("undistorted"))
    distortion_shapes: Table = field(default_factory=lambda: _evenly(*DISTORTION_SHAPES))
    roundings: Table = field(default_factory=lambda: _evenly("continuous"))

    def __post_init__(self) -> None:
        for table_name, known in COMPONENTS.items():
            table = self.table(table_name)
            if unknown := set(table) - set(known):
                raise ConfigurationError(f"{table_name} has no {listed(unknown)}. It knows {listed(known)}.")
            check_weights(table_name, table)

    def table(self, name: str) -> Table:
        """One table by its name."""
        table: Table = getattr(self, name)
        return table

    def components(self) -> frozenset[str]:
        """Everything that can come out of this recipe, by name."""
        possible = set()
        for table_name in COMPONENTS:
            # Distorted columns are of some shape; where nothing is distorted, no shape can occur.
            if table_name == "distortion_shapes" and not _possible(self.distortions) - {"undistorted"}:
                continue
            if table_name == "activations" and "mlp" not in _possible(self.mechanisms):
                continue
            possible |= _possible(self.table(table_name))
        return frozenset(possible)

    def names(self) -> frozenset[str]:
        """Everything its tables list, with whatever weight."""
        return frozenset(name for table_name in COMPONENTS for name in self.table(table_name))

    def reweighted(self, weights: Table) -> Recipe:
        """The same with other weights for some components. Names it does not hold are passed over."""
        tables = {
            table_name: {name: weights.get(name, weight) for name, weight in self.table(table_name).items()}
            for table_name in COMPONENTS
        }
        return dataclasses.replace(self, **tables)  # type: ignore[arg-type]

    def restricted(self, keep: Callable[[str, set[str]], bool]) -> Recipe | None:
        """The same with only the components for which keep(name, all names of its table); None if a table runs out."""
        tables = {}
        for table_name, known in COMPONENTS.items():
            table = self.table(table_name)
            tables[table_name] = {name: weight for name, weight in table.items() if keep(name, set(known))}
            if not _possible(tables[table_name]):
                return None
        return dataclasses.replace(self, **tables)  # type: ignore[arg-type]


def _possible(table: Table) -> set[str]:
    return {name for name, weight in table.items() if weight > 0}


def listed(names: Iterable[str]) -> str:
    """Names for a message, quoted and sorted."""
    return ", ".join(repr(name) for name in sorted(names))


def check_weights(table_name: str, table: Table) -> None:
    """Weights are finite, not negative, and one of them is positive, or a ConfigurationError says which is not."""
    for name, weight in table.items():
        if not (math.isfinite(weight) and weight >= 0):
            raise ConfigurationError(
                f"The weight of {name!r} in {table_name} must be finite and not negative: {weight}."
            )
    if not _possible(table):
        raise ConfigurationError(
            f"Nothing is left of {table_name}: all of {listed(table)} have weight 0. Keep at least one."
        )


def raw_equations() -> Recipe:
    """The paper's graphs and noise under raw structural equations: variances and R² grow along the order, up to
    relations that are all but deterministic."""
    return Recipe(
        mechanisms={"linear": 3.0, "mlp": 1.0},
        weight_ranges={"weights_near_one": 1.0, "wide_weights": 2.0},
        noises={"normal": 2.0, "uniform": 1.0, "beta": 1.0},
        scales={"raw_equal_noise": 1.0, "raw_unequal_noise": 1.0},
    )


def widened() -> Recipe:
    """Every widening that we train on, each drawn independently of the others."""
    return Recipe(
        graph_families={
            "erdos_renyi": 3.0,
            "scale_free": 3.0,
            "regulators": 1.0,
            "collectors": 1.0,
            "modular": 1.0,
            "layered": 1.0,
            "forest": 1.0,
        },
        edge_counts={"edges_up_to_4p": 2.0, "edges_up_to_p": 1.0},
        mechanisms={"linear": 3.0, "mlp": 3.0, "random_features": 2.0, "trees": 1.0, "interactions": 1.0},
        weight_ranges={"weights_near_one": 1.0, "wide_weights": 1.0},
        noises={"normal": 3.0, "uniform": 1.0, "beta": 1.0, "laplace": 1.0, "student_t": 2.0, "lognormal": 1.0},
        noise_couplings={"additive_noise": 9.0, "heteroscedastic_noise": 1.0},
        signal_strengths={
            "moderate_signal": 2.0,
            "weak_signal": 1.0,
            "strong_signal": 1.0,
            "spread_signal": 1.0,
            "accumulating_signal": 0.0,  # for training alone: the configuration `base` gives it a weight
        },
        scales={"restandardized": 2.0, "raw_equal_noise": 1.0, "raw_unequal_noise": 1.0},
        hidden_variables={
            "no_hidden_causes": 3.0,
            "hidden_causes": 1.0,
            "pooled_conditions": 0.0,  # likewise
        },
        distortions={"undistorted": 2.0, "alike_distortions": 1.0, "mixed_distortions": 1.0},
        roundings={"continuous": 8.0, "rounded": 1.0, "ordinal": 1.0},
    )
