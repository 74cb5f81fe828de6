"""Recipes: tables of named, weighted choices from which tasks are drawn.

Every table is drawn from independently. Names are unique across all tables, so that one name is enough to switch a
component off.

The recipe `paper` is section 4.1 of the paper. Our choices where the paper leaves something open:
- *Once per task*: graph family, number of edges s, linear or MLP, number of hidden units h (uniform on 1..64),
  activation, a_w, homogeneous or heterogeneous noise, the shape parameters (a, b) of the R² law; in the homogeneous
  setting also the noise distribution and its (α, β).
- *Once per variable*: the target R², and in the heterogeneous setting the noise distribution and its (α, β).
- *Once per edge or hidden unit*: the weights. MLPs have no biases.
- s above p(p−1)/2 is clamped. R² = 0.1 + 0.8 · Beta(a, b).
- Scale-free graphs: s pairs without replacement ∝ (i·j)^−α with α = 1/2, which is degree exponent 3.
- The variances of the observations drawn, of signal and of noise, meet R² exactly; their chance correlation remains.
  Variances and standard deviations are those with n−1.
- Small-world graphs: the s nearest pairs of a ring, distance by distance, each rewired with probability 0.2.
- Spline functions: additive, see mechanisms.Splines. Gamma noise: shape from Unif(1, 10), as for the paper's beta.

The caller chooses the numbers of observations and variables.

Beyond a complete table of numbers, for the recipes `typed`, `discrete`, `equivalence_class` and `reoriented`:
- `kinds`, `column_kinds`: columns that are categories, rare events or counts with many zeros; `early_typed` has most of
  them among the first variables.
- `experiments`: regimes with known targets, and environments, which are a column of the table.
- `hidden_variables`: hidden causes, conditions and classes; all are in the truth.
- `instruments`, `measurements`: groups of instruments and noisy measurements.
- `missing`: cells missing by chance, by another column, by the column itself.
- `bystanders`: columns that are unrelated to the others, also where those are densely connected.
- `truths`: the graph that made the table, or any member of its equivalence class.
- Mechanisms of _discrete.py make every column a category; instruments, classes and kinds have no effect there.
  `normal_wishart` uses a graph and missing cells only.

No training distribution holds any of EVALUATION_ONLY, and `TaskDistribution.for_training` refuses them by name.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from causal_arrow.errors import ConfigurationError
from causal_arrow_lab.synthetic._columns import COLUMN_KINDS, DISTORTION_SHAPES, MISSING, ROUNDINGS, TYPED_SHARES
from causal_arrow_lab.synthetic._discrete import DISCRETE_MECHANISMS
from causal_arrow_lab.synthetic._graph_families import EDGE_COUNTS, GRAPH_FAMILIES
from causal_arrow_lab.synthetic._noise import NOISES, SCALES, SIGNAL_STRENGTHS
from causal_arrow_lab.synthetic._structure import EXPERIMENTS
from causal_arrow_lab.synthetic.mechanisms import ACTIVATIONS, MECHANISMS, WEIGHT_RANGES

Table = Mapping[str, float]

# Every table with its possible names, in the order of their codes.
COMPONENTS: Mapping[str, tuple[str, ...]] = {
    "graph_families": tuple(GRAPH_FAMILIES),
    "edge_counts": tuple(EDGE_COUNTS),
    "mechanisms": (*MECHANISMS, *DISCRETE_MECHANISMS, "normal_wishart"),
    "activations": tuple(ACTIVATIONS),
    "weight_ranges": tuple(WEIGHT_RANGES),
    "noises": tuple(NOISES),
    "noise_settings": ("homogeneous", "heterogeneous"),
    "noise_couplings": ("additive_noise", "heteroscedastic_noise"),
    "signal_strengths": tuple(SIGNAL_STRENGTHS),
    "scales": tuple(SCALES),
    "hidden_variables": ("no_hidden_causes", "hidden_causes", "pooled_conditions", "hidden_classes", "hidden_factors"),
    "distortions": ("undistorted", "alike_distortions", "mixed_distortions"),
    "distortion_shapes": tuple(DISTORTION_SHAPES),
    "roundings": tuple(ROUNDINGS),
    "kinds": tuple(TYPED_SHARES),
    "column_kinds": tuple(COLUMN_KINDS),
    "experiments": tuple(EXPERIMENTS),
    "instruments": ("no_instruments", "instrument_groups"),
    "measurements": ("exact_measurements", "noisy_measurements"),
    "missing": tuple(MISSING),
    "bystanders": ("all_may_matter", "some_bystanders"),
    "truths": ("generating_graph", "any_member"),
}

# Tables beyond complete tables of numbers. Their first name is the default; where no recipe has anything else, nothing
# is drawn, so that other tasks stay the same for the same seed.
BEYOND_NUMBERS = (
    "kinds",
    "column_kinds",
    "experiments",
    "instruments",
    "measurements",
    "missing",
    "bystanders",
    "truths",
)

# The index of a name in its table, and that table.
CODES: Mapping[str, int] = {name: code for names in COMPONENTS.values() for code, name in enumerate(names)}
TABLE_OF: Mapping[str, str] = {name: table for table, names in COMPONENTS.items() for name in names}


def _evenly(*names: str) -> Table:
    return dict.fromkeys(names, 1.0)


# The paper's shift test, used during development.
SHIFTS: Mapping[str, tuple[str, Table]] = {
    "graphs": ("graph_families", {"small_world": 1.0}),
    "functions": ("mechanisms", {"splines": 1.0}),
    "noise": ("noises", {"gamma": 1.0}),
}

# The frozen test, suite `held-out`, run once per release. Never add or remove a name: that would be another test.
HELD_OUT: Mapping[str, Table] = {
    "graph_families": _evenly("random_geometric", "lattice", "cascade"),
    "mechanisms": _evenly("periodic", "distance", "maximum"),
    "noises": _evenly("gumbel", "double_weibull", "asymmetric_laplace"),
}

# A model that has trained on any of these can no longer be tested on it.
EVALUATION_ONLY: frozenset[str] = frozenset().union(*(table for _, table in SHIFTS.values()), *HELD_OUT.values())


@dataclass(frozen=True)
class Recipe:
    """One table per choice; the defaults are the paper's. `weight` is the weight of the recipe in a mixture."""

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
    kinds: Table = field(default_factory=lambda: _evenly("numbers"))
    column_kinds: Table = field(default_factory=lambda: _evenly(*COLUMN_KINDS))
    experiments: Table = field(default_factory=lambda: _evenly("no_experiments"))
    instruments: Table = field(default_factory=lambda: _evenly("no_instruments"))
    measurements: Table = field(default_factory=lambda: _evenly("exact_measurements"))
    missing: Table = field(default_factory=lambda: _evenly("complete"))
    bystanders: Table = field(default_factory=lambda: _evenly("all_may_matter"))
    truths: Table = field(default_factory=lambda: _evenly("generating_graph"))

    def __post_init__(self) -> None:
        for table_name, known in COMPONENTS.items():
            table = self.table(table_name)
            if unknown := set(table) - set(known):
                raise ConfigurationError(f"{table_name} has no {listed(unknown)}. It knows {listed(known)}.")
            check_weights(table_name, table)

    def table(self, name: str) -> Table:
        """The table of this name."""
        table: Table = getattr(self, name)
        return table

    def components(self) -> frozenset[str]:
        """Names of all components that this recipe can draw."""
        occurs = {name: self.may_differ(name) for name in BEYOND_NUMBERS}
        occurs["distortion_shapes"] = self.may_differ("distortions")  # shapes occur only where columns are distorted
        occurs["column_kinds"] &= self.may_differ("kinds")
        occurs["activations"] = "mlp" in _possible(self.mechanisms)
        return frozenset().union(*(_possible(self.table(name)) for name in COMPONENTS if occurs.get(name, True)))

    def may_differ(self, table_name: str) -> bool:
        """Whether something else than its first name can be drawn from a table."""
        return bool(_possible(self.table(table_name)) - {COMPONENTS[table_name][0]})

    def names(self) -> frozenset[str]:
        """All names in its tables, with any weight."""
        return frozenset(name for table_name in COMPONENTS for name in self.table(table_name))

    def reweighted(self, weights: Table) -> Recipe:
        """Change the weights of some components. Names that it does not hold are ignored."""
        tables = {
            table_name: {name: weights.get(name, weight) for name, weight in self.table(table_name).items()}
            for table_name in COMPONENTS
        }
        return dataclasses.replace(self, **tables)  # type: ignore[arg-type]

    def restricted(self, keep: Callable[[str, set[str]], bool]) -> Recipe | None:
        """Keep the components for which keep(name, all names of its table); None if a table becomes empty."""
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
    """List names in a message, quoted and sorted."""
    return ", ".join(repr(name) for name in sorted(names))


def check_weights(table_name: str, table: Table) -> None:
    """Raise ConfigurationError unless weights are finite and not negative, and one of them is positive."""
    for name, weight in table.items():
        if not (math.isfinite(weight) and weight >= 0):
            raise ConfigurationError(
                f"The weight of {name!r} in {table_name} must be finite and not negative: {weight}."
            )
    if not _possible(table):
        raise ConfigurationError(
            f"Nothing is left of {table_name}: all of {listed(table)} have weight 0. Keep at least one."
        )


_SOME_MISSING: Table = {
    "complete": 6.0,
    "missing_by_chance": 1.5,
    "missing_by_another": 0.5,
    "missing_by_itself": 0.5,
    "missing_in_all_ways": 1.5,
}
_FEW_MISSING: Table = {"complete": 4.0, **{name: 0.25 for name in MISSING if name != "complete"}}
_SOME_BYSTANDERS: Table = {"all_may_matter": 4.0, "some_bystanders": 1.0}


def raw_equations() -> Recipe:
    """The paper's graphs and noise with raw structural equations: variances and R² grow along the order, up to nearly
    deterministic relations."""
    return Recipe(
        mechanisms={"linear": 3.0, "mlp": 1.0},
        weight_ranges={"weights_near_one": 1.0, "wide_weights": 2.0},
        noises={"normal": 2.0, "uniform": 1.0, "beta": 1.0},
        scales={"raw_equal_noise": 1.0, "raw_unequal_noise": 1.0},
    )


def widened() -> Recipe:
    """Every widening of the paper's tasks that networks train on, drawn independently of each other."""
    return Recipe(
        weight=2.0,
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
            "accumulating_signal": 0.0,  # for training: the configuration `base` gives it a weight
            "unlike_signals": 0.0,  # likewise the configuration `any`
        },
        scales={"restandardized": 2.0, "raw_equal_noise": 1.0, "raw_unequal_noise": 1.0},
        hidden_variables={
            "no_hidden_causes": 3.0,
            "hidden_causes": 1.0,
            "pooled_conditions": 0.0,  # likewise
            "hidden_factors": 0.0,
        },
        distortions={"undistorted": 2.0, "alike_distortions": 1.0, "mixed_distortions": 1.0},
        roundings={"continuous": 8.0, "rounded": 1.0, "ordinal": 1.0},
    )


def typed() -> Recipe:
    """`widened` with further properties of real tables: kinds of columns, experiments, hidden causes and classes,
    instruments, noisy measurements, missing cells, drawn independently of each other."""
    return dataclasses.replace(
        widened(),
        weight=8.0,
        edge_counts={"every_edge_count": 3.5, "edges_up_to_p": 2.0, "edges_up_to_p_quarter": 0.5},
        hidden_variables={
            "no_hidden_causes": 5.0,
            "hidden_causes": 3.0,
            "pooled_conditions": 0.5,
            "hidden_classes": 1.0,
            "hidden_factors": 0.0,
        },
        kinds={
            "numbers": 6.0,
            "few_typed": 2.0,
            "some_typed": 4.0,
            "all_typed": 2.0,
            "all_alike": 2.0,
            "early_typed": 0.0,  # for training: a configuration may give it a weight
        },
        column_kinds={
            "binary_levels": 3.0,
            "rare_event": 2.0,
            "ordered_levels": 3.0,
            "nominal_levels": 3.0,
            "folded_levels": 1.5,
            "many_levels": 0.5,
            "zero_inflated": 2.0,
        },
        experiments={
            "no_experiments": 12.0,
            "set_targets": 3.0,
            "shifted_targets": 1.5,
            "mixed_targets": 1.5,
            "environments": 2.0,
        },
        instruments={"no_instruments": 7.0, "instrument_groups": 1.0},
        measurements={"exact_measurements": 6.0, "noisy_measurements": 1.0},
        missing=_SOME_MISSING,
        bystanders=_SOME_BYSTANDERS,
    )


def discrete() -> Recipe:
    """Categories only, by conditional probability tables or noisy gates."""
    return Recipe(
        weight=2.5,
        graph_families=widened().graph_families,
        edge_counts={"every_edge_count": 2.5, "edges_up_to_p": 3.0, "edges_up_to_p_quarter": 0.5},
        mechanisms={"probability_tables": 2.0, "noisy_gates": 1.0, "dirichlet_tables": 1.0},
        hidden_variables={"no_hidden_causes": 3.0, "hidden_causes": 1.0},
        experiments={
            "no_experiments": 14.0,
            "set_targets": 2.0,
            "shifted_targets": 1.0,
            "mixed_targets": 1.0,
            "environments": 1.0,
        },
        measurements={"exact_measurements": 9.0, "noisy_measurements": 1.0},
        missing=_SOME_MISSING,
        bystanders=_SOME_BYSTANDERS,
    )


def equivalence_class() -> Recipe:
    """Linear normal tasks and tables of categories that identify the equivalence class of their graph and nothing more.

    Any other component would identify more, except missing cells, which depend on the data only.
    """
    return Recipe(
        weight=1.5,
        edge_counts={"every_edge_count": 1.0, "edges_up_to_p": 1.0, "edges_up_to_p_quarter": 0.1},
        mechanisms={"normal_wishart": 1.0, "dirichlet_tables": 1.0},
        noises={"normal": 1.0},
        missing=_FEW_MISSING,
        bystanders=_SOME_BYSTANDERS,
    )


def reoriented() -> Recipe:
    """Categories only, by mechanisms of every form, whose truth is any member of the graph's equivalence class.

    So the forms mean nothing. Without hidden causes and experiments, which would change the class.
    """
    return Recipe(
        graph_families=widened().graph_families,
        edge_counts={"every_edge_count": 1.0, "edges_up_to_p": 2.0, "edges_up_to_p_quarter": 0.1},
        mechanisms={"linear": 1.0, "mlp": 1.0, "interactions": 0.5, "probability_tables": 2.0, "noisy_gates": 1.0},
        weight_ranges=widened().weight_ranges,
        noise_settings={"homogeneous": 1.0},
        signal_strengths={"moderate_signal": 1.0, "strong_signal": 1.0, "spread_signal": 1.0},
        kinds={"all_typed": 1.0, "all_alike": 1.0},
        column_kinds={name: typed().column_kinds[name] for name in typed().column_kinds if name != "zero_inflated"},
        missing=_FEW_MISSING,
        bystanders=_SOME_BYSTANDERS,
        truths={"any_member": 1.0},
    )
