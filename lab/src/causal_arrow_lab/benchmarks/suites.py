"""The benchmark suites: named lists of rows, each an endless or fixed supply of datasets.

    row = suite("networks").row("ECOLI70")
    dataset = row.dataset(0)

Suite, row and index determine the dataset, so every method, in every run, sees the same ones. (Synthetic tasks come
from torch, whose random numbers may change with its version.)
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from causal_arrow.errors import BenchmarkError
from causal_arrow.text import listed
from causal_arrow_lab.benchmarks import effects, generated, networks, real_tables
from causal_arrow_lab.benchmarks.datasets import Dataset, shuffle_variables

# Change this when a suite changes in a way that makes old records incomparable: every seed changes with it.
EDITION = "1"

NETWORK_OBSERVATIONS = 100
SACHS_OBSERVATIONS = 100
DISCRETE_OBSERVATIONS = (500, 2000)
EXPERIMENTAL_CELLS = 1000
AXES = {"observations": "n", "variables": "p"}  # in the names of rows
PAPER_SHOWN = ("nshd", "f1", "ap", "seconds")


@dataclass(frozen=True)
class SuiteRow:
    """One setting of a suite: a line of a table or a point of a curve."""

    suite: str
    name: str
    draw: Callable[[np.random.Generator], Dataset]
    panel: str = ""  # rows of a panel make one curve or one group of a figure
    settings: Mapping[str, Any] = field(default_factory=dict)  # fixed in this row; plain JSON values
    distinct_datasets: int | None = None  # None if unlimited

    def seed(self, index: int) -> int:
        """The seed of dataset `index` of this row, the same on every machine."""
        identity = f"causal-arrow benchmark {EDITION}/{self.suite}/{self.name}/{index}"
        return int.from_bytes(hashlib.sha256(identity.encode()).digest()[:8], "little")

    def dataset(self, index: int) -> Dataset:
        """Draw dataset number `index`, from 0, with its variables in random order."""
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
    members: tuple[SuiteRow, ...]
    frozen: bool = False  # run once per release, when named; never among "all" suites
    steered: bool = False  # the training mixture of the bundled network was chosen with its rows in view
    further_measures: tuple[str, ...] = ()  # besides `metrics.evaluate`: names in `benchmarks.measures.FURTHER`
    shown: tuple[str, ...] = PAPER_SHOWN  # measures of its main table
    judged_by: str = "graphs"  # what methods answer with, a key of METHODS_FOR; suites of others have to be named

    def rows(self, panel: str | None = None) -> tuple[SuiteRow, ...]:
        """The rows in the order of the tables, all or those of one panel."""
        return tuple(row for row in self.members if panel is None or row.panel == panel)

    def row(self, name: str) -> SuiteRow:
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


def rows_named(name: str) -> tuple[SuiteRow, ...]:
    """The rows that SUITE or SUITE/ROW stands for."""
    suite_name, _, row_name = name.partition("/")
    chosen = suite(suite_name)
    return (chosen.row(row_name),) if row_name else chosen.rows()


def select_rows(names: Sequence[str]) -> list[SuiteRow]:
    """The rows that SUITE, SUITE/ROW and 'all' stand for, each once.

    'all' leaves out frozen suites, and those that do not ask for graphs.
    """
    if "all" in names:
        usual = [name for name, suite in SUITES.items() if not suite.frozen and suite.judged_by == "graphs"]
        names = [*usual, *(name for name in names if name != "all")]
    chosen = [row for name in names for row in rows_named(name)]
    return list({(row.suite, row.name): row for row in chosen}.values())


def judged_by(rows: Sequence[SuiteRow]) -> str:
    """The kind of result that the suites of the rows require; BenchmarkError if they differ."""
    asked = {SUITES[row.suite].judged_by: row.suite for row in rows}
    if len(asked) > 1:
        raise BenchmarkError(
            f"The suites {listed(list(asked.values()))} ask methods for different things: run them one after another."
        )
    return next(iter(asked))


def _named(suite: str, panel: str, names: Iterable[str], draw: Callable[..., Dataset], option: str) -> list[SuiteRow]:
    """One row for each name; `draw` takes it as an option, and its setting is called as the panel."""
    return [SuiteRow(suite, name, partial(draw, **{option: name}), panel, {panel: name}) for name in names]


def _over(suite: str, axis: str, counts: tuple[int, ...], **fixed: int) -> list[SuiteRow]:
    """The paper's distribution for several numbers of observations or variables; the other is fixed or random."""
    shapes: list[dict[str, Any]] = [{axis: count, **fixed} for count in counts]
    return [
        SuiteRow(suite, f"{AXES[axis]}={shape[axis]}", partial(generated.draw_paper_dataset, **shape), axis, shape)
        for shape in shapes
    ]


PAPER_COMPONENTS = {
    "graphs": ("erdos_renyi", "scale_free"),
    "functions": ("linear", "mlp"),
    "noise": ("normal", "uniform", "beta"),
}
HELD_OUT_COMPONENTS = {
    "graphs": ("random_geometric", "lattice", "cascade"),
    "functions": ("periodic", "distance", "maximum"),
    "noise": ("gumbel", "double_weibull", "asymmetric_laplace"),
}
"""As in `synthetic.recipes.HELD_OUT`."""


def _by_component() -> list[SuiteRow]:
    return [
        SuiteRow("in-distribution", name, partial(generated.draw_paper_dataset, only=name), panel, {panel: name})
        for panel, names in PAPER_COMPONENTS.items()
        for name in names
    ]


def _broad() -> list[SuiteRow]:
    recipes = ("raw_equations", "widened")  # the third is the paper's
    single = [
        SuiteRow("broad", name, partial(generated.draw_broad_dataset, recipe=name), "recipe", {"recipe": name})
        for name in recipes
    ]
    return [SuiteRow("broad", "mixture", generated.draw_broad_dataset, "recipe"), *single]


def _shifted() -> list[SuiteRow]:
    every = ("graphs", "functions", "noise")
    shifts: dict[str, tuple[str, ...]] = {"none": (), **{name: (name,) for name in every}, "all": every}
    return [
        SuiteRow(
            "shifted", name, partial(generated.draw_shifted_dataset, shifts=parts), "shift", {"shifts": list(parts)}
        )
        for name, parts in shifts.items()
    ]


def _held_out() -> list[SuiteRow]:
    single = [
        SuiteRow("held-out", name, partial(generated.draw_held_out_dataset, component=name), panel, {panel: name})
        for panel, names in HELD_OUT_COMPONENTS.items()
        for name in names
    ]
    return [*single, SuiteRow("held-out", "all", generated.draw_held_out_dataset, "all")]


def _herman() -> list[SuiteRow]:
    draws = {name: partial(networks.draw_herman_dataset, name) for name in networks.HERMAN_MODELS}
    return [SuiteRow("herman", name, draw, "model", {"model": name}) for name, draw in draws.items()]


def _networks() -> list[SuiteRow]:
    rows = []
    for name in networks.GAUSSIAN_NETWORKS:
        draw = partial(networks.draw_network_dataset, name, NETWORK_OBSERVATIONS)
        rows.append(SuiteRow("networks", name, draw, "network", {"network": name}))
    return rows


def _sachs() -> list[SuiteRow]:
    rows = []
    for scale in ("raw", "log"):
        draw = partial(real_tables.pooled_cells, SACHS_OBSERVATIONS, scale == "log")
        rows.append(SuiteRow("sachs", f"pooled-{scale}", draw, "pooled", {"scale": scale, "consensus_edges": 20}))
    for edges, ending in ((20, ""), (17, "-17-edges")):
        for scale in ("raw", "log"):
            name, cells = (
                f"observational-{scale}{ending}",
                partial(real_tables.observational_cells, scale == "log", edges),
            )
            settings = {"scale": scale, "consensus_edges": edges}
            rows.append(SuiteRow("sachs", name, cells, "observational", settings, distinct_datasets=1))
    return rows


def _confounded() -> list[SuiteRow]:
    rows = []
    for hidden in (0, 1, 2, generated.MAX_HIDDEN):
        draw = partial(generated.draw_confounded_dataset, hidden=hidden)
        rows.append(SuiteRow("confounded", f"hidden={hidden}", draw, "hidden", {"hidden": hidden}))
    return rows


def _controls() -> list[SuiteRow]:
    cells = partial(real_tables.independent_cells, SACHS_OBSERVATIONS)
    rows = []
    for noise in generated.INDEPENDENT_NOISE:
        draw = partial(generated.draw_independent_dataset, noise=noise)
        rows.append(SuiteRow("controls", f"empty-{noise}", draw, "empty", {"noise": noise}))
    return [*rows, SuiteRow("controls", "empty-sachs", cells, "empty")]


# Tables of every kind: suites for development, by which weights may be chosen


def _discrete() -> list[SuiteRow]:
    return [
        SuiteRow(
            "discrete", f"{name}-{n}", partial(networks.draw_discrete_dataset, name, n), f"n={n}", {"network": name}
        )
        for n in DISCRETE_OBSERVATIONS
        for name in networks.DISCRETE_NETWORKS
    ]


def _missing() -> list[SuiteRow]:
    complete = partial(generated.draw_missing_dataset, reason=None, share=0.0)
    rows = [SuiteRow("missing", "complete", complete, "complete", {"missing_share": 0.0})]
    for reason in generated.HOLES:
        for share in (0.1, 0.3, 0.5):
            draw = partial(generated.draw_missing_dataset, reason=reason, share=share)
            settings = {"missing_by": reason, "missing_share": share}
            rows.append(SuiteRow("missing", f"{reason}-{share:.0%}", draw, reason, settings))
    return rows


def _interventional() -> list[SuiteRow]:
    rows = []
    shapes = ((200, 10), (1000, 20))
    for n, p in shapes:
        for function in ("linear", "nonlinear"):
            draw = partial(generated.draw_interventional_dataset, observations=n, variables=p, function=function)
            rows.append(SuiteRow("interventional", f"{function}-{n}x{p}", draw, "drawn", {"function": function}))
    for n, p in shapes:
        draw_class = partial(generated.draw_class_dataset, observations=n, variables=p)
        settings = {"function": "linear", "noise": "normal"}
        rows.append(SuiteRow("interventional", f"class-{n}x{p}", draw_class, "class", settings))
    for scale in ("raw", "log"):
        cells = partial(real_tables.experimental_cells, EXPERIMENTAL_CELLS, scale == "log")
        on_scale = {"scale": scale, "consensus_edges": 20}
        rows.append(SuiteRow("interventional", f"sachs-{scale}", cells, "sachs", on_scale))
    return rows


def _hidden() -> list[SuiteRow]:
    rows = []
    for n, p, hidden in ((500, 20, 4), (1000, 40, 8)):
        draw = partial(generated.draw_hidden_dataset, observations=n, variables=p, hidden=hidden)
        rows.append(SuiteRow("hidden", f"{n}x{p}", draw, "drawn", {"hidden": hidden}))
    for name, n in (("ECOLI70", 500), ("ALARM", 2000)):
        network = partial(generated.draw_network_with_hidden_variables, name=name, observations=n)
        rows.append(SuiteRow("hidden", name, network, "network", {"network": name}))
    return rows


def _instruments() -> list[SuiteRow]:
    rows = []
    for name, count in (("none", 0), ("2-each", 2), ("4-each", 4)):
        draw = partial(generated.draw_instruments_dataset, instruments=count)
        rows.append(SuiteRow("instruments", name, draw, "instruments", {"instruments": count}))
    alone = partial(generated.draw_instruments_dataset, instruments=3, causes_shown=False)
    return [*rows, SuiteRow("instruments", "3-each-alone", alone, "alone", {"instruments": 3})]


def _measurement_error() -> list[SuiteRow]:
    draws = {error: partial(generated.draw_measured_dataset, error=error) for error in (0.0, 0.1, 0.3, 0.5)}
    return [
        SuiteRow("measurement-error", f"{error:.0%}", draw, "error", {"error_share": error})
        for error, draw in draws.items()
    ]


def _textbook() -> list[SuiteRow]:
    rows = []
    for n in (200, 1000):
        for law in generated.TEXTBOOK_LAWS:
            draw = partial(generated.draw_textbook_dataset, observations=n, law=law)
            rows.append(SuiteRow("textbook", f"{law}-{n}", draw, f"laws, n={n}", {"law": law}))
    for graph in generated.TEXTBOOK_GRAPHS:
        draw = partial(generated.draw_textbook_dataset, observations=1000, graph=graph)
        rows.append(SuiteRow("textbook", f"{graph}-1000", draw, "graphs", {"graph": graph}))
    return rows


def _symmetries() -> list[SuiteRow]:
    rows = []
    for change in real_tables.CHANGES:
        for table in real_tables.SYMMETRY_TABLES:
            draw, settings = (
                partial(real_tables.draw_symmetry_dataset, table=table, change=change),
                {"table": table, "change": change},
            )
            count = 1 if change in real_tables.DETERMINISTIC_CHANGES else None
            rows.append(SuiteRow("symmetries", f"{table}-{change}", draw, change, settings, distinct_datasets=count))
    return rows


def _development(
    name: str,
    description: str,
    rows: list[SuiteRow],
    measures: tuple[str, ...] = (),
    shown: tuple[str, ...] = PAPER_SHOWN,
    judged_by: str = "graphs",
) -> Suite:
    """A suite by which weights may be chosen, as its description ends with."""
    described = f"{description}. For development"
    return Suite(name, described, tuple(rows), further_measures=measures, shown=shown, judged_by=judged_by)


DEVELOPMENT_SUITES = (
    _development(
        "discrete", "Discrete networks of the literature, n = 500 and 2000, levels in random order", _discrete()
    ),
    _development(
        "mixed",
        "Equations between columns of several kinds, 500 × 20",
        _named("mixed", "kinds", generated.MIXTURES, generated.draw_mixed_dataset, "mixture"),
    ),
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
        "measurement-error", "Columns measured with noise, a share of their variance, 500 × 20", _measurement_error()
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
        _named("independent", "law", (*generated.INDEPENDENT_LAWS, "mixed"), generated.draw_independent_columns, "law"),
        ("expected_edges",),
        ("expected_edges", "estimated_edges", "seconds"),
    ),
    _development(
        "symmetries",
        "Tables of scikit-learn and changed copies: how many edges change",
        _symmetries(),
        (),
        ("estimated_edges", "edges_changed", "share_changed", "largest_change", "seconds"),
    ),
    _development(
        "effects",
        "Effects that are known, six in each table of 5 to 20 variables, with other methods",
        _named("effects", "task", effects.EFFECT_ROWS, effects.draw_effects_dataset, "row"),
        shown=("bias", "squared_error", "coverage", "coverage_of_effects", "width", "seconds"),
        judged_by="effects",
    ),
    _development(
        "experiments",
        "Five experiments of 100 observations each, carried out one after another, with policies for methods",
        _named("experiments", "task", effects.EXPERIMENT_ROWS, effects.draw_experiments_dataset, "row"),
        shown=("shd_0", "shd_1", "shd_2", "shd_3", "shd_5", "mean_shd", "until_half"),
        judged_by="experiments",
    ),
)

# Sections are named where the protocol is the paper's. Its text does not give the n and p of its curves over n and over
# p; these are ours. `wide` and `long` start with one shape seen in training.
SUITES = {
    built.name: built
    for built in (
        Suite(
            "in-distribution",
            "The paper's task distribution, one part of it held fixed (section 6.2, appendix E.2)",
            (
                *_over("in-distribution", "observations", (100, 250, 500, 1000, 2000)),
                *_over("in-distribution", "variables", (5, 10, 25, 50, 100)),
                *_by_component(),
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
            "networks", "Bayesian networks fitted to real data, n = 100 (section 6.3)", tuple(_networks()), steered=True
        ),
        Suite(
            "herman",
            "Linear Gaussian models of Herman et al. (appendix E.3)",
            tuple(_herman()),
            steered=True,
        ),
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
        Suite("small", "Few observations", tuple(_over("small", "observations", (20, 50, 100), variables=20))),
        Suite("confounded", "Hidden common causes", tuple(_confounded())),
        Suite("controls", "Independent columns: every edge found is false", tuple(_controls())),
        Suite(
            "limit",
            "Linear equations with normal noise between 3 to 5 variables, n = 500, four distributions of strengths: "
            "what can be known",
            tuple(_named("limit", "law", networks.LIMIT_MODELS, networks.draw_limit_dataset, "law")),
            further_measures=("class_right",),
            shown=("nshd", "f1", "ap", "class_right", "seconds"),
        ),
        *DEVELOPMENT_SUITES,
    )
}
