"""The benchmark suites: named lists of rows, each an endless or fixed supply of datasets.

    row = suite("networks").row("ECOLI70")
    dataset = row.dataset(0)

Suite, row and index determine the dataset. (Synthetic tasks come from torch, whose random numbers may change with its
version.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np

from causal_arrow.errors import BenchmarkError
from causal_arrow.text import listed
from causal_arrow_lab.benchmarks import effects, generated, networks, real_tables
from causal_arrow_lab.benchmarks.datasets import Dataset, seed_of, shuffle_variables

# Change this when a suite changes in a way that makes old records incomparable: every seed changes with it.
EDITION = "1"


@dataclass(frozen=True)
class SuiteRow:
    """One setting of a suite: a line of a table or a point of a curve."""

    name: str
    draw: Callable[..., Dataset]  # takes a generator, and the settings as options
    panel: str = ""  # rows of a panel make one curve or one group of a figure
    settings: Mapping[str, Any] = field(default_factory=dict)  # fixed in this row; plain JSON values
    distinct_datasets: int | None = None  # None if unlimited
    suite: str = ""

    def seed(self, index: int) -> int:
        """The seed of dataset `index` of this row, the same on every machine."""
        return seed_of(f"causal-arrow benchmark {EDITION}/{self.suite}/{self.name}/{index}")

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
        dataset = shuffle_variables(self.draw(generator, **self.settings), generator)
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
    further_measures: tuple[str, ...] = ()  # besides `metrics.evaluate`: names in `worker.FURTHER`
    shown: tuple[str, ...] = ("nshd", "f1", "ap", "seconds")  # measures of its main table
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


# The suites. Sections are named where the protocol is the paper's. Its text does not give the n and p of its curves
# over n and over p; these are ours. `wide` and `long` start with one shape seen in training.


def _suite(name: str, description: str, *groups: Iterable[SuiteRow], **options: Any) -> Suite:
    return Suite(name, description, tuple(replace(row, suite=name) for row in chain(*groups)), **options)


def _each(
    draw: Callable[..., Dataset],
    setting: str,
    values: Iterable[Any],
    title: str = "{}",
    *,
    panel: str = "",
    distinct_datasets: int | None = None,
    **fixed: Any,
) -> list[SuiteRow]:
    """One row for each value of a setting, the others fixed."""
    return [
        SuiteRow(title.format(value), draw, panel or setting, {setting: value, **fixed}, distinct_datasets)
        for value in values
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
SHIFTS = {
    "none": [],
    "graphs": ["graphs"],
    "functions": ["functions"],
    "noise": ["noise"],
    "all": list(PAPER_COMPONENTS),
}
SCALES = ("raw", "log")
EXPERIMENT_SHAPES = ((200, 10), (1000, 20))

PUBLISHED_SUITES = (
    _suite(
        "in-distribution",
        "The paper's task distribution, one part of it held fixed (section 6.2, appendix E.2)",
        _each(generated.draw_paper_dataset, "observations", (100, 250, 500, 1000, 2000), "n={}"),
        _each(generated.draw_paper_dataset, "variables", (5, 10, 25, 50, 100), "p={}"),
        *(_each(generated.draw_paper_dataset, part, names) for part, names in PAPER_COMPONENTS.items()),
    ),
    _suite(
        "broad",
        "The mixture of tasks that the training of arrow-base began with",
        [SuiteRow("mixture", generated.draw_broad_dataset, "recipe")],
        _each(generated.draw_broad_dataset, "recipe", ("raw_equations", "widened")),  # the third is the paper's
    ),
    _suite(
        "shifted",
        "Small-world graphs, spline functions, gamma noise: never trained on (section 6.3)",
        [SuiteRow(name, generated.draw_shifted_dataset, "shift", {"shifts": parts}) for name, parts in SHIFTS.items()],
    ),
    _suite(
        "held-out",
        "Graphs, functions and noise that no training may use: frozen, run once per release, never looked at "
        "during development",
        *(_each(generated.draw_held_out_dataset, part, names) for part, names in HELD_OUT_COMPONENTS.items()),
        [SuiteRow("all", generated.draw_held_out_dataset, "all")],
        frozen=True,
    ),
    _suite(
        "networks",
        "Bayesian networks fitted to real data, n = 100 (section 6.3)",
        _each(networks.draw_network_dataset, "network", networks.GAUSSIAN_NETWORKS, observations=100),
        steered=True,
    ),
    _suite(
        "herman",
        "Linear Gaussian models of Herman et al. (appendix E.3)",
        _each(networks.draw_herman_dataset, "model", networks.HERMAN_MODELS),
        steered=True,
    ),
    _suite(
        "sachs",
        "Flow cytometry of Sachs et al. (appendix E.3), and variants; Arrow tries raw cells on a log scale too",
        _each(real_tables.draw_pooled_cells, "scale", SCALES, "pooled-{}", panel="pooled", consensus_edges=20),
        *(
            _each(
                real_tables.draw_observational_cells,
                "scale",
                SCALES,
                title,
                panel="observational",
                distinct_datasets=1,
                consensus_edges=edges,
            )
            for edges, title in ((20, "observational-{}"), (17, "observational-{}-17-edges"))
        ),
        steered=True,
    ),
    _suite(
        "wide",
        "More variables than in training",
        _each(generated.draw_paper_dataset, "variables", (100, 200, 500), "p={}", observations=1000),
    ),
    _suite(
        "long",
        "More observations than in training",
        _each(generated.draw_paper_dataset, "observations", (2000, 10_000, 30_000, 100_000), "n={}", variables=20),
    ),
    _suite(
        "small",
        "Few observations",
        _each(generated.draw_paper_dataset, "observations", (20, 50, 100), "n={}", variables=20),
    ),
    _suite(
        "confounded",
        "Hidden common causes",
        _each(generated.draw_confounded_dataset, "hidden", (0, 1, 2, generated.MAX_HIDDEN), "hidden={}"),
    ),
    _suite(
        "controls",
        "Independent columns: every edge found is false",
        _each(generated.draw_independent_dataset, "noise", generated.INDEPENDENT_NOISE, "empty-{}", panel="empty"),
        [SuiteRow("empty-sachs", real_tables.draw_independent_cells, "empty")],
    ),
    _suite(
        "limit",
        "Linear equations with normal noise between 3 to 5 variables, n = 500, four distributions of strengths: "
        "what can be known",
        _each(networks.draw_limit_dataset, "law", networks.LIMIT_MODELS),
        further_measures=("class_right",),
        shown=("nshd", "f1", "ap", "class_right", "seconds"),
    ),
)

DEVELOPMENT_SUITES = (
    _suite(
        "discrete",
        "Discrete networks of the literature, n = 500 and 2000, levels in random order. For development",
        _each(
            networks.draw_discrete_dataset,
            "network",
            networks.DISCRETE_NETWORKS,
            "{}-500",
            panel="n=500",
            observations=500,
        ),
        _each(
            networks.draw_discrete_dataset,
            "network",
            networks.DISCRETE_NETWORKS,
            "{}-2000",
            panel="n=2000",
            observations=2000,
        ),
    ),
    _suite(
        "mixed",
        "Equations between columns of several kinds, 500 × 20. For development",
        _each(generated.draw_mixed_dataset, "kinds", generated.MIXTURES),
    ),
    _suite(
        "missing",
        "Cells missing by chance, because of another column, or because of their own value, 500 × 20. For development",
        [SuiteRow("complete", generated.draw_missing_dataset, "complete", {"missing_share": 0.0})],
        *(
            _each(
                generated.draw_missing_dataset,
                "missing_share",
                (0.1, 0.3, 0.5),
                f"{reason}-{{:.0%}}",
                panel=reason,
                missing_by=reason,
            )
            for reason in generated.HOLES
        ),
    ),
    _suite(
        "interventional",
        "Experiments whose targets are known: drawn tasks, and the cells of Sachs et al. with their conditions. "
        "For development",
        *(
            _each(
                generated.draw_interventional_dataset,
                "function",
                ("linear", "nonlinear"),
                f"{{}}-{n}x{p}",
                panel="drawn",
                observations=n,
                variables=p,
            )
            for n, p in EXPERIMENT_SHAPES
        ),
        [
            SuiteRow(f"class-{n}x{p}", generated.draw_class_dataset, "class", {"observations": n, "variables": p})
            for n, p in EXPERIMENT_SHAPES
        ],
        _each(real_tables.draw_marked_cells, "scale", SCALES, "sachs-{}", panel="sachs", consensus_edges=20),
    ),
    _suite(
        "hidden",
        "Hidden common causes: drawn tasks, and networks without a fifth of their variables. For development",
        [
            SuiteRow(
                f"{n}x{p}",
                generated.draw_hidden_dataset,
                "drawn",
                {"hidden": hidden, "observations": n, "variables": p},
            )
            for n, p, hidden in ((500, 20, 4), (1000, 40, 8))
        ],
        *(
            _each(generated.draw_network_with_hidden_variables, "network", (name,), observations=n)
            for name, n in (("ECOLI70", 500), ("ALARM", 2000))
        ),
        further_measures=("hidden_ap",),
        shown=("nshd", "f1", "ap", "hidden_ap", "seconds"),
    ),
    _suite(
        "instruments",
        "Instruments that read six variables through rising curves with little noise, with or without these, n = 500. "
        "For development",
        _each(generated.draw_instruments_dataset, "instruments", (0,), "none"),
        _each(generated.draw_instruments_dataset, "instruments", (2, 4), "{}-each"),
        _each(generated.draw_instruments_alone, "instruments", (3,), "{}-each-alone", panel="alone"),
        further_measures=("hidden_ap", "expected_edges"),
        shown=("f1", "ap", "shd", "expected_edges", "hidden_ap", "seconds"),
    ),
    _suite(
        "measurement-error",
        "Columns measured with noise, a share of their variance, 500 × 20. For development",
        _each(generated.draw_measured_dataset, "error_share", (0.0, 0.1, 0.3, 0.5), "{:.0%}", panel="error"),
    ),
    _suite(
        "textbook",
        "Chain, fork, collider, mediator, confounder, diamond, M and star; for linear equations with normal noise the "
        "equivalence class has to be right, else the graph. For development",
        _each(
            generated.draw_textbook_dataset,
            "law",
            generated.TEXTBOOK_LAWS,
            "{}-200",
            panel="laws, n=200",
            observations=200,
        ),
        _each(
            generated.draw_textbook_dataset,
            "law",
            generated.TEXTBOOK_LAWS,
            "{}-1000",
            panel="laws, n=1000",
            observations=1000,
        ),
        _each(
            generated.draw_textbook_dataset,
            "graph",
            generated.TEXTBOOK_GRAPHS,
            "{}-1000",
            panel="graphs",
            observations=1000,
        ),
        further_measures=("right", "class_right", "graph_right"),
        shown=("right", "class_right", "graph_right", "ap", "seconds"),
    ),
    _suite(
        "independent",
        "Eight independent columns, n = 500: every edge is false. For development",
        _each(generated.draw_independent_columns, "law", (*generated.INDEPENDENT_LAWS, "mixed")),
        further_measures=("expected_edges",),
        shown=("expected_edges", "estimated_edges", "seconds"),
    ),
    _suite(
        "symmetries",
        "Tables of scikit-learn and changed copies: how many edges change. For development",
        *(
            _each(
                real_tables.draw_symmetry_dataset,
                "table",
                real_tables.SYMMETRY_TABLES,
                f"{{}}-{change}",
                panel=change,
                distinct_datasets=1 if change in real_tables.DETERMINISTIC_CHANGES else None,
                change=change,
            )
            for change in real_tables.CHANGES
        ),
        shown=("estimated_edges", "edges_changed", "share_changed", "largest_change", "seconds"),
    ),
    _suite(
        "effects",
        "Effects that are known, six in each table of 5 to 20 variables, with other methods. For development",
        _each(effects.draw_effects_dataset, "task", effects.EFFECT_ROWS),
        shown=("bias", "squared_error", "coverage", "coverage_of_effects", "width", "seconds"),
        judged_by="effects",
    ),
    _suite(
        "experiments",
        "Five experiments of 100 observations each, carried out one after another, with policies for methods. "
        "For development",
        _each(effects.draw_experiments_dataset, "task", effects.EXPERIMENT_ROWS),
        shown=("shd_0", "shd_1", "shd_2", "shd_3", "shd_5", "mean_shd", "until_half"),
        judged_by="experiments",
    ),
)
"""Suites by which weights may be chosen."""

SUITES = {built.name: built for built in (*PUBLISHED_SUITES, *DEVELOPMENT_SUITES)}
