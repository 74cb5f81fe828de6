"""The benchmark suites: named lists of rows, each an endless or fixed supply of datasets.

    row = suite("networks").row("ECOLI70")
    dataset = row.dataset(0)

Suite, row and index determine the dataset, so every method, in every run, sees the same ones. (Synthetic tasks come
from torch, whose random numbers may change with its version.)
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from causal_arrow.benchmarks.any_table import (
    HOLES,
    INDEPENDENT_LAWS,
    MIXTURES,
    TEXTBOOK_GRAPHS,
    TEXTBOOK_LAWS,
    draw_class_dataset,
    draw_hidden_dataset,
    draw_independent_columns,
    draw_instruments_dataset,
    draw_interventional_dataset,
    draw_measured_dataset,
    draw_missing_dataset,
    draw_mixed_dataset,
    draw_network_with_hidden_variables,
    draw_textbook_dataset,
)
from causal_arrow.benchmarks.datasets import Dataset, shuffle_variables
from causal_arrow.benchmarks.discrete_networks import DISCRETE_NETWORKS, draw_discrete_dataset
from causal_arrow.benchmarks.effects import EFFECT_ROWS, draw_effects_dataset
from causal_arrow.benchmarks.experiments import EXPERIMENT_ROWS, draw_experiments_dataset
from causal_arrow.benchmarks.generated import (
    INDEPENDENT_NOISE,
    MOST_HIDDEN,
    draw_broad_dataset,
    draw_confounded_dataset,
    draw_held_out_dataset,
    draw_independent_dataset,
    draw_paper_dataset,
    draw_shifted_dataset,
)
from causal_arrow.benchmarks.herman import HERMAN_MODELS, draw_herman_dataset
from causal_arrow.benchmarks.limit import PARAMETER_LAWS, draw_limit_dataset
from causal_arrow.benchmarks.networks import NETWORK_FILES, draw_network_dataset
from causal_arrow.benchmarks.sachs import experimental_cells, independent_cells, observational_cells, pooled_cells
from causal_arrow.benchmarks.symmetries import CHANGES, DETERMINED, SYMMETRY_TABLES, draw_symmetry_dataset
from causal_arrow.errors import BenchmarkError

# Change this when a suite changes in a way that makes old records incomparable: every seed changes with it.
EDITION = "1"

NETWORK_OBSERVATIONS = 100
SACHS_OBSERVATIONS = 100
DISCRETE_OBSERVATIONS = (500, 2000)
EXPERIMENTAL_CELLS = 1000
AXES = {"observations": "n", "variables": "p"}  # in the names of rows


@dataclass(frozen=True)
class Row:
    """One setting of a suite: a line of a table or a point of a curve."""

    suite: str
    name: str
    draw: Callable[[np.random.Generator], Dataset]
    panel: str = ""  # rows of a panel make one curve or one group of a figure
    settings: Mapping[str, Any] = field(default_factory=dict)  # what is fixed in this row; plain JSON values
    distinct_datasets: int | None = None  # None: as many as one likes

    def seed(self, index: int) -> int:
        """The number that determines dataset `index` of this row, the same on every machine."""
        identity = f"causal-arrow benchmark {EDITION}/{self.suite}/{self.name}/{index}"
        return int.from_bytes(hashlib.sha256(identity.encode()).digest()[:8], "little")

    def dataset(self, index: int) -> Dataset:
        """Dataset number `index`, from 0, its variables in random order."""
        if index < 0 or (self.distinct_datasets is not None and index >= self.distinct_datasets):
            available = (
                "datasets from 0 on" if self.distinct_datasets is None else f"{self.distinct_datasets} dataset(s)"
            )
            raise BenchmarkError(
                f"Row {self.name!r} of suite {self.suite!r} has {available}; there is no number {index}."
            )
        generator = np.random.default_rng(self.seed(index))
        dataset = shuffle_variables(self.draw(generator), generator)
        observations, variables = dataset.data.shape
        shape = {"observations": observations, "variables": variables, "edges": int(dataset.adjacency.sum())}
        return replace(dataset, details={"seed": self.seed(index), **shape, **self.settings, **dataset.details})


@dataclass(frozen=True)
class Suite:
    """A named list of rows."""

    name: str
    description: str
    members: tuple[Row, ...]
    frozen: bool = False  # run once per release, when named; never among "all" suites
    steered: bool = False  # weights of the bundled model's training mixture were chosen with its rows in view
    further_measures: tuple[str, ...] = ()  # beyond `metrics.evaluate`: names in `benchmarks.measures.FURTHER`
    shown: tuple[str, ...] = ("nshd", "f1", "ap", "seconds")  # measures of its main table, the paper's by default
    judged_by: str = "graphs"  # what methods are asked for, a key of METHODS_FOR; others have to be named

    def rows(self, panel: str | None = None) -> tuple[Row, ...]:
        """All rows in the order of the tables, or those of one panel."""
        return tuple(row for row in self.members if panel is None or row.panel == panel)

    def row(self, name: str) -> Row:
        """The row of that name."""
        for row in self.members:
            if row.name == name:
                return row
        known = ", ".join(row.name for row in self.members)
        raise BenchmarkError(f"Suite {self.name!r} has no row {name!r}. Its rows are: {known}.")


def suite(name: str) -> Suite:
    """The suite of that name."""
    if name not in SUITES:
        raise BenchmarkError(f"There is no benchmark suite {name!r}. Choose from: {', '.join(SUITES)}.")
    return SUITES[name]


def rows_named(name: str) -> tuple[Row, ...]:
    """The rows that SUITE or SUITE/ROW stands for."""
    suite_name, _, row_name = name.partition("/")
    chosen = suite(suite_name)
    return (chosen.row(row_name),) if row_name else chosen.rows()


def _over(name: str, axis: str, counts: tuple[int, ...], **fixed: int) -> list[Row]:
    """The paper's distribution with each number of observations, or of variables; the other one fixed, or drawn as in
    section 4.1."""
    shapes: list[dict[str, Any]] = [{axis: count, **fixed} for count in counts]
    return [
        Row(name, f"{AXES[axis]}={shape[axis]}", partial(draw_paper_dataset, **shape), axis, shape) for shape in shapes
    ]


def _by_component(name: str) -> list[Row]:
    """The paper's distribution with one graph family, one mechanism or one noise only."""
    components = {
        "graphs": ("erdos_renyi", "scale_free"),
        "functions": ("linear", "mlp"),
        "noise": ("normal", "uniform", "beta"),
    }
    return [
        Row(name, component, partial(draw_paper_dataset, only=component), panel, {panel: component})
        for panel, kinds in components.items()
        for component in kinds
    ]


def _broad() -> list[Row]:
    recipes = ("raw_equations", "widened")  # the third is the paper's
    return [
        Row("broad", "mixture", draw_broad_dataset, "recipe"),
        *(Row("broad", name, partial(draw_broad_dataset, recipe=name), "recipe", {"recipe": name}) for name in recipes),
    ]


def _shifted() -> list[Row]:
    shifts: dict[str, tuple[str, ...]] = {
        "none": (),
        "graphs": ("graphs",),
        "functions": ("functions",),
        "noise": ("noise",),
        "all": ("graphs", "functions", "noise"),
    }
    return [
        Row("shifted", name, partial(draw_shifted_dataset, shifts=parts), "shift", {"shifts": list(parts)})
        for name, parts in shifts.items()
    ]


def _held_out() -> list[Row]:
    """One row for each component of `synthetic.recipes.HELD_OUT`, and one for all of them."""
    components = {
        "graphs": ("random_geometric", "lattice", "cascade"),
        "functions": ("periodic", "distance", "maximum"),
        "noise": ("gumbel", "double_weibull", "asymmetric_laplace"),
    }
    single = [
        Row("held-out", name, partial(draw_held_out_dataset, component=name), panel, {panel: name})
        for panel, names in components.items()
        for name in names
    ]
    return [*single, Row("held-out", "all", draw_held_out_dataset, "all")]


def _networks() -> list[Row]:
    return [
        Row("networks", name, partial(draw_network_dataset, name, NETWORK_OBSERVATIONS), "network", {"network": name})
        for name in NETWORK_FILES
    ]


def _herman() -> list[Row]:
    return [Row("herman", name, partial(draw_herman_dataset, name), "model", {"model": name}) for name in HERMAN_MODELS]


def _sachs() -> list[Row]:
    log_scale = {"raw": False, "log": True}
    pooled = [
        Row(
            "sachs",
            f"pooled-{scale}",
            partial(pooled_cells, SACHS_OBSERVATIONS, log_scale[scale]),
            "pooled",
            {"scale": scale, "consensus_edges": 20},
        )
        for scale in log_scale
    ]
    observational = [
        Row(
            "sachs",
            f"observational-{scale}" if edges == 20 else f"observational-{scale}-{edges}-edges",
            partial(observational_cells, log_scale[scale], edges),
            "observational",
            {"scale": scale, "consensus_edges": edges},
            distinct_datasets=1,
        )
        for edges in (20, 17)
        for scale in log_scale
    ]
    return pooled + observational


def _confounded() -> list[Row]:
    return [
        Row(
            "confounded",
            f"hidden={hidden}",
            partial(draw_confounded_dataset, hidden=hidden),
            "hidden",
            {"hidden": hidden},
        )
        for hidden in (0, 1, 2, MOST_HIDDEN)
    ]


def _controls() -> list[Row]:
    generated = [
        Row("controls", f"empty-{noise}", partial(draw_independent_dataset, noise=noise), "empty", {"noise": noise})
        for noise in INDEPENDENT_NOISE
    ]
    return [*generated, Row("controls", "empty-sachs", partial(independent_cells, SACHS_OBSERVATIONS), "empty")]


def _limit() -> list[Row]:
    return [Row("limit", law, partial(draw_limit_dataset, law=law), "law", {"law": law}) for law in PARAMETER_LAWS]


# Tables of every kind: suites for development, which weights may be chosen by.


def _discrete() -> list[Row]:
    return [
        Row(
            "discrete",
            f"{name}-{observations}",
            partial(draw_discrete_dataset, name, observations),
            f"n={observations}",
            {"network": name},
        )
        for observations in DISCRETE_OBSERVATIONS
        for name in DISCRETE_NETWORKS
    ]


def _mixed() -> list[Row]:
    return [
        Row("mixed", mixture, partial(draw_mixed_dataset, mixture=mixture), "kinds", {"kinds": mixture})
        for mixture in MIXTURES
    ]


def _missing() -> list[Row]:
    holes = [
        Row(
            "missing",
            f"{reason}-{share:.0%}",
            partial(draw_missing_dataset, reason=reason, share=share),
            reason,
            {"missing_by": reason, "missing_share": share},
        )
        for reason in HOLES
        for share in (0.1, 0.3, 0.5)
    ]
    complete = partial(draw_missing_dataset, reason=None, share=0.0)
    return [Row("missing", "complete", complete, "complete", {"missing_share": 0.0}), *holes]


def _interventional() -> list[Row]:
    shapes = (("linear", 200, 10), ("nonlinear", 200, 10), ("linear", 1000, 20), ("nonlinear", 1000, 20))
    tasks = [
        Row(
            "interventional",
            f"{function}-{n}x{p}",
            partial(draw_interventional_dataset, observations=n, variables=p, function=function),
            "drawn",
            {"function": function},
        )
        for function, n, p in shapes
    ]
    classes = [
        Row(
            "interventional",
            f"class-{n}x{p}",
            partial(draw_class_dataset, observations=n, variables=p),
            "class",
            {"function": "linear", "noise": "normal"},
        )
        for n, p in ((200, 10), (1000, 20))
    ]
    cells = [
        Row(
            "interventional",
            f"sachs-{scale}",
            partial(experimental_cells, EXPERIMENTAL_CELLS, scale == "log"),
            "sachs",
            {"scale": scale, "consensus_edges": 20},
        )
        for scale in ("raw", "log")
    ]
    return tasks + classes + cells


def _hidden() -> list[Row]:
    tasks = [
        Row(
            "hidden",
            f"{n}x{p}",
            partial(draw_hidden_dataset, observations=n, variables=p, hidden=hidden),
            "drawn",
            {"hidden": hidden},
        )
        for n, p, hidden in ((500, 20, 4), (1000, 40, 8))
    ]
    networks = [
        Row(
            "hidden",
            name,
            partial(draw_network_with_hidden_variables, name=name, observations=observations),
            "network",
            {"network": name},
        )
        for name, observations in (("ECOLI70", 500), ("ALARM", 2000))
    ]
    return tasks + networks


def _instruments() -> list[Row]:
    shown = [
        Row(
            "instruments",
            f"{count}-each" if count else "none",
            partial(draw_instruments_dataset, instruments=count),
            "instruments",
            {"instruments": count},
        )
        for count in (0, 2, 4)
    ]
    alone = partial(draw_instruments_dataset, instruments=3, causes_shown=False)
    return [*shown, Row("instruments", "3-each-alone", alone, "alone", {"instruments": 3})]


def _measurement_error() -> list[Row]:
    return [
        Row(
            "measurement-error",
            f"{error:.0%}",
            partial(draw_measured_dataset, error=error),
            "error",
            {"error_share": error},
        )
        for error in (0.0, 0.1, 0.3, 0.5)
    ]


def _textbook() -> list[Row]:
    by_law = [
        Row(
            "textbook",
            f"{law}-{n}",
            partial(draw_textbook_dataset, observations=n, law=law),
            f"laws, n={n}",
            {"law": law},
        )
        for n in (200, 1000)
        for law in TEXTBOOK_LAWS
    ]
    by_graph = [
        Row(
            "textbook",
            f"{graph}-1000",
            partial(draw_textbook_dataset, observations=1000, graph=graph),
            "graphs",
            {"graph": graph},
        )
        for graph in TEXTBOOK_GRAPHS
    ]
    return by_law + by_graph


def _independent() -> list[Row]:
    return [
        Row("independent", law, partial(draw_independent_columns, law=law), "law", {"law": law})
        for law in (*INDEPENDENT_LAWS, "mixed")
    ]


def _symmetries() -> list[Row]:
    return [
        Row(
            "symmetries",
            f"{table}-{change}",
            partial(draw_symmetry_dataset, table=table, change=change),
            change,
            {"table": table, "change": change},
            distinct_datasets=1 if change in DETERMINED else None,
        )
        for change in CHANGES
        for table in SYMMETRY_TABLES
    ]


def _effects() -> list[Row]:
    return [
        Row("effects", name, partial(draw_effects_dataset, row=name), "task", {"task": name}) for name in EFFECT_ROWS
    ]


def _experiments() -> list[Row]:
    return [
        Row("experiments", name, partial(draw_experiments_dataset, row=name), "task", {"task": name})
        for name in EXPERIMENT_ROWS
    ]


def _development(
    name: str, description: str, rows: list[Row], measures: tuple[str, ...] = (), shown: tuple[str, ...] | None = None
) -> Suite:
    """A suite that weights may be chosen by; its description says so."""
    built = Suite(name, f"{description}. For development", tuple(rows), further_measures=measures)
    return built if shown is None else replace(built, shown=shown)


DEVELOPMENT_SUITES = (
    _development(
        "discrete",
        "Discrete networks of the literature, n = 500 and 2000, levels in random order",
        _discrete(),
    ),
    _development("mixed", "Equations between columns of several kinds, 500 × 20", _mixed()),
    _development(
        "missing",
        "Cells missing by chance, because of another column, or because of their own value, 500 × 20",
        _missing(),
    ),
    _development(
        "interventional",
        "Experiments whose targets are known: drawn tasks, and the cells of Sachs et al. with their conditions",
        _interventional(),
    ),
    _development(
        "hidden",
        "Hidden common causes: drawn tasks, and networks without a fifth of their variables",
        _hidden(),
        ("hidden_ap",),
        ("nshd", "f1", "ap", "hidden_ap", "seconds"),
    ),
    _development(
        "instruments",
        "Instruments that read six variables through rising curves with little noise, with or without these, n = 500",
        _instruments(),
        ("hidden_ap", "expected_edges"),
        ("f1", "ap", "shd", "expected_edges", "hidden_ap", "seconds"),
    ),
    _development(
        "measurement-error",
        "Columns measured with noise, a share of their variance, 500 × 20",
        _measurement_error(),
    ),
    _development(
        "textbook",
        "Chain, fork, collider, mediator, confounder, diamond, M and star; for linear equations with normal noise the "
        "equivalence class has to be right, else the graph",
        _textbook(),
        ("right", "class_right", "graph_right"),
        ("right", "class_right", "graph_right", "ap", "seconds"),
    ),
    _development(
        "independent",
        "Eight independent columns, n = 500: every edge is false",
        _independent(),
        ("expected_edges",),
        ("expected_edges", "estimated_edges", "seconds"),
    ),
    _development(
        "symmetries",
        "Tables of scikit-learn and the same seen another way: how many edges change",
        _symmetries(),
        (),
        ("estimated_edges", "edges_changed", "share_changed", "largest_change", "seconds"),
    ),
    replace(
        _development(
            "effects",
            "Effects that are known, six in each table of 5 to 20 variables, with methods of its own",
            _effects(),
            shown=("bias", "squared_error", "coverage", "coverage_of_effects", "width", "seconds"),
        ),
        judged_by="effects",
    ),
    replace(
        _development(
            "experiments",
            "Five experiments of 100 observations each, carried out one after another, with policies of its own",
            _experiments(),
            shown=("shd_0", "shd_1", "shd_2", "shd_3", "shd_5", "mean_shd", "until_half"),
        ),
        judged_by="experiments",
    ),
)

# Sections of the paper are named where the protocol is the paper's. Its text does not give the n and p of its curves
# over n and over p; these are ours. `wide` and `long` hold one shape seen in training to start from.
SUITES = {
    built.name: built
    for built in (
        Suite(
            "in-distribution",
            "The paper's task distribution, one part of it held fixed (section 6.2, appendix E.2)",
            (
                *_over("in-distribution", "observations", (100, 250, 500, 1000, 2000)),
                *_over("in-distribution", "variables", (5, 10, 25, 50, 100)),
                *_by_component("in-distribution"),
            ),
        ),
        Suite("broad", "The mixture of tasks that the training of arrow-base began with", tuple(_broad())),
        Suite(
            "shifted",
            "Small-world graphs, spline functions, gamma noise: never trained on (section 6.3)",
            tuple(_shifted()),
        ),
        Suite(
            "held-out",
            "Graphs, functions and noise that no training may use: frozen, run once per release, never looked at "
            "during development",
            tuple(_held_out()),
            frozen=True,
        ),
        Suite(
            "networks",
            "Bayesian networks fitted to real data, n = 100 (section 6.3)",
            tuple(_networks()),
            steered=True,
        ),
        Suite("herman", "Linear Gaussian models of Herman et al. (appendix E.3)", tuple(_herman()), steered=True),
        Suite(
            "sachs",
            "Flow cytometry of Sachs et al. (appendix E.3), and variants; Arrow tries raw cells on a log scale too",
            tuple(_sachs()),
            steered=True,
        ),
        Suite(
            "wide",
            "More variables than in training",
            tuple(_over("wide", "variables", (100, 200, 500), observations=1000)),
        ),
        Suite(
            "long",
            "More observations than in training",
            tuple(_over("long", "observations", (2000, 10_000, 30_000, 100_000), variables=20)),
        ),
        Suite(
            "small",
            "Few observations",
            tuple(_over("small", "observations", (20, 50, 100), variables=20)),
        ),
        Suite("confounded", "Hidden common causes", tuple(_confounded())),
        Suite("controls", "Independent columns: every edge found is false", tuple(_controls())),
        Suite(
            "limit",
            "Linear equations with normal noise between 3 to 5 variables, n = 500, strengths by four laws: what can be "
            "known",
            tuple(_limit()),
            further_measures=("class_right",),
            shown=("nshd", "f1", "ap", "class_right", "seconds"),
        ),
        *DEVELOPMENT_SUITES,
    )
}
