"""Datasets of the tables people have: kinds of columns, holes, experiments, hidden causes, errors of measurement.

For development: weights may be chosen by what these suites say. The frozen suite is `held-out`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from causal_arrow.benchmarks.datasets import BoolArray, Dataset, FloatArray, in_order, unnamed
from causal_arrow.benchmarks.discrete_networks import DISCRETE_NETWORKS, draw_discrete_dataset
from causal_arrow.benchmarks.drawn import FUNCTIONS, NOISES, Shown, random_graph, solve_equations, standard
from causal_arrow.benchmarks.limit import normal_wishart_law
from causal_arrow.benchmarks.linear_gaussian import ancestral_observations
from causal_arrow.benchmarks.networks import draw_network_dataset
from causal_arrow.graphs import dag
from causal_arrow.graphs.causal_graph import CausalGraph

# N observations, P variables

OBSERVATIONS, VARIABLES = 500, 20  # where a suite says nothing else
HIDDEN_SHARE = 5  # one variable of so many is taken away from a network
INSTRUMENT_CAUSES = 6


def draw_equations(generator: np.random.Generator, variables: int) -> tuple[BoolArray, str, str]:
    """A graph, and the names of a function and of a law of noise."""
    function = str(generator.choice(list(FUNCTIONS)))
    noise = str(generator.choice(list(NOISES)))
    return random_graph(variables, generator), function, noise


def as_dataset(shown: Sequence[Shown], adjacency: BoolArray, **details: object) -> Dataset:
    """The columns as a dataset with variables x1, x2, ..."""
    dataset = unnamed(np.column_stack([column.values for column in shown]), adjacency, **details)
    columns = tuple(column.column(name) for column, name in zip(shown, dataset.names, strict=True))
    return dataset if all(column.kind == "number" for column in columns) else replace(dataset, columns=columns)


# Kinds of columns


MIXTURES: dict[str, tuple[str, ...]] = {
    "continuous": ("continuous",),
    "rounded": ("rounded",),
    "ordinal": ("ordinal",),
    "nominal": ("nominal",),
    "half-and-half": ("continuous", "nominal"),
}


def draw_mixed_dataset(generator: np.random.Generator, *, mixture: str) -> Dataset:
    """Equations between columns of the same kind, or one half of each of two kinds."""
    adjacency, function, noise = draw_equations(generator, VARIABLES)
    members = MIXTURES[mixture]
    kinds = generator.permutation([members[place % len(members)] for place in range(VARIABLES)]).tolist()
    shown = solve_equations(adjacency, OBSERVATIONS, generator, function=function, noise=noise, kinds=kinds)
    return as_dataset(shown, adjacency, function=function, noise=noise)


# Holes


def holes_by_chance(data: FloatArray, share: float, generator: np.random.Generator) -> BoolArray:
    """Every cell with the same probability.  (N, P)"""
    return np.asarray(generator.random(data.shape) < share)


def holes_by_another_column(data: FloatArray, share: float, generator: np.random.Generator) -> BoolArray:
    """Mostly where another column, drawn for each, is large or small.  (N, P)"""
    shifts = generator.integers(1, data.shape[1], size=data.shape[1])
    return _most_exposed(data[:, (np.arange(data.shape[1]) + shifts) % data.shape[1]], share, generator)


def holes_by_itself(data: FloatArray, share: float, generator: np.random.Generator) -> BoolArray:
    """Mostly where the column itself is large or small.  (N, P)"""
    return _most_exposed(data, share, generator)


def _most_exposed(drivers: FloatArray, share: float, generator: np.random.Generator) -> BoolArray:
    """The cells with the largest sums of a steep function of the driver and logistic noise.  (N, P)"""
    signs = generator.choice([-1.0, 1.0], drivers.shape[1])
    exposure = 2 * signs * (drivers - drivers.mean(axis=0)) / drivers.std(axis=0)
    exposure += generator.logistic(size=drivers.shape)
    return np.asarray(exposure > np.quantile(exposure, 1 - share, axis=0))


HOLES: dict[str, Callable[[FloatArray, float, np.random.Generator], BoolArray]] = {
    "chance": holes_by_chance,
    "another-column": holes_by_another_column,
    "itself": holes_by_itself,
}


def draw_missing_dataset(generator: np.random.Generator, *, reason: str | None, share: float) -> Dataset:
    """Numbers with that share of the cells missing, for one of the reasons in HOLES; complete for None."""
    adjacency, function, noise = draw_equations(generator, VARIABLES)
    shown = solve_equations(adjacency, OBSERVATIONS, generator, function=function, noise=noise)
    dataset = as_dataset(shown, adjacency, function=function, noise=noise)
    if reason is None:
        return dataset
    return replace(dataset, data=np.where(HOLES[reason](dataset.data, share, generator), np.nan, dataset.data))


# Experiments


def each_in_turn(observations: int, variables: int) -> BoolArray:
    """In the second half of the observations one variable is set, each in turn.  (N, P)"""
    intervened = np.zeros((observations, variables), dtype=bool)
    experimental = np.arange(observations // 2, observations)
    intervened[experimental, experimental % variables] = True
    return intervened


def draw_interventional_dataset(
    generator: np.random.Generator, *, observations: int, variables: int, function: str
) -> Dataset:
    """Half of the observations without an experiment, the others with one variable set, each variable in turn."""
    adjacency, _, noise = draw_equations(generator, variables)
    intervened = each_in_turn(observations, variables)
    shown = solve_equations(adjacency, observations, generator, function=function, noise=noise, intervened=intervened)
    return replace(as_dataset(shown, adjacency, noise=noise), intervened=intervened)


def draw_class_dataset(generator: np.random.Generator, *, observations: int, variables: int) -> Dataset:
    """Linear normal equations whose law tells nothing beyond the equivalence class, and experiments as above.

    A variable that is set is drawn from the law that it has without experiments: its column alone shows nothing.
    """
    adjacency = random_graph(variables, generator)
    model = normal_wishart_law(adjacency, generator)
    intervened = each_in_turn(observations, variables)
    deviations = np.sqrt(np.diag(model.covariance()))

    def combine(k: int, signal: FloatArray, noise: FloatArray) -> FloatArray:
        return np.asarray(np.where(intervened[:, k], deviations[k] * noise, signal + model.noise_deviations[k] * noise))

    data = ancestral_observations(model.weights, observations, generator, combine)
    return replace(unnamed(data, adjacency), intervened=intervened)


# Hidden causes


def latent_projection(adjacency: BoolArray, kept: Sequence[int] | np.ndarray) -> CausalGraph:
    """What is left of a DAG when only some variables are seen (Verma and Pearl 1990).

    j → k where a directed path leads from j to k through hidden variables alone; j ↔ k where a hidden variable has such
    paths to both.
    """
    kept = np.asarray(kept)
    hidden = np.setdiff1d(np.arange(len(adjacency)), kept)
    among_hidden = dag.transitive_closure(adjacency[np.ix_(hidden, hidden)]) | np.eye(len(hidden), dtype=bool)
    reached = (among_hidden.astype(int) @ adjacency[np.ix_(hidden, kept)]) > 0  # (hidden, kept)
    directed = adjacency[np.ix_(kept, kept)] | ((adjacency[np.ix_(kept, hidden)].astype(int) @ reached) > 0)
    bidirected = (reached.T.astype(int) @ reached) > 0
    np.fill_diagonal(bidirected, False)
    return CausalGraph(directed, bidirected)


def hide(dataset: Dataset, taken: np.ndarray) -> Dataset:
    """The dataset without some variables, and what is left of its graph."""
    kept = np.setdiff1d(np.arange(len(dataset.names)), taken)
    graph = latent_projection(dataset.adjacency, kept)
    details = {**dataset.details, "hidden": len(taken)}
    return replace(in_order(dataset, kept), adjacency=graph.directed, confounded=graph.bidirected, details=details)


def draw_hidden_dataset(generator: np.random.Generator, *, observations: int, variables: int, hidden: int) -> Dataset:
    """Equations with hidden causes of two to four variables each."""
    seen, function, noise = draw_equations(generator, variables)
    adjacency = np.zeros((variables + hidden, variables + hidden), dtype=bool)
    adjacency[:variables, :variables] = seen
    for cause in range(variables, variables + hidden):
        effects = generator.choice(variables, size=int(generator.integers(2, 5)), replace=False)
        adjacency[cause, effects] = True
    shown = solve_equations(adjacency, observations, generator, function=function, noise=noise)
    dataset = as_dataset(shown, adjacency, function=function, noise=noise)
    return hide(dataset, np.arange(variables, variables + hidden))


def draw_network_with_hidden_variables(generator: np.random.Generator, *, name: str, observations: int) -> Dataset:
    """A network of the literature without a fifth of its variables, drawn among those with two effects or more."""
    draw = draw_discrete_dataset if name in DISCRETE_NETWORKS else draw_network_dataset
    dataset = draw(name, observations, generator)
    common_causes = np.flatnonzero(dataset.adjacency.sum(axis=1) >= 2)
    count = min(len(common_causes), len(dataset.names) // HIDDEN_SHARE)
    return hide(dataset, generator.choice(common_causes, size=count, replace=False))


# Instruments and bad measurements


def draw_instruments_dataset(generator: np.random.Generator, *, instruments: int, causes_shown: bool = True) -> Dataset:
    """Six variables, and instruments that read each of them through their own rising curve with little noise.

    Instruments cause nothing. Without the variables that they read, pairs of instruments share hidden causes, and there
    is no arrow at all.
    """
    adjacency, function, noise = draw_equations(generator, INSTRUMENT_CAUSES)
    causes = solve_equations(adjacency, OBSERVATIONS, generator, function=function, noise=noise)
    read = np.repeat(np.arange(INSTRUMENT_CAUSES), instruments)
    readings = [Shown(values, values) for values in (_read(causes[cause].felt, generator) for cause in read)]
    total = INSTRUMENT_CAUSES + len(read)
    whole = np.zeros((total, total), dtype=bool)
    whole[:INSTRUMENT_CAUSES, :INSTRUMENT_CAUSES] = adjacency
    whole[read, np.arange(INSTRUMENT_CAUSES, total)] = True
    dataset = as_dataset([*causes, *readings], whole, function=function, noise=noise)
    return dataset if causes_shown else hide(dataset, np.arange(INSTRUMENT_CAUSES))


def _read(cause: FloatArray, generator: np.random.Generator) -> FloatArray:
    steepness = generator.uniform(0.5, 1.5)
    curves: tuple[Callable[[FloatArray], FloatArray], ...] = (
        lambda x: np.tanh(steepness * x),
        lambda x: np.sign(x) * np.abs(x) ** steepness,
        lambda x: np.exp(steepness * x / 2),
        lambda x: x,
    )
    reading = standard(curves[int(generator.integers(len(curves)))](cause))
    return np.asarray(reading + generator.uniform(0.05, 0.3) * generator.standard_normal(len(cause)))


def draw_measured_dataset(generator: np.random.Generator, *, error: float) -> Dataset:
    """Effects feel the true values; the table holds them with noise, that share of each column's variance."""
    adjacency, function, noise = draw_equations(generator, VARIABLES)
    shown = solve_equations(adjacency, OBSERVATIONS, generator, function=function, noise=noise)
    true = np.column_stack([standard(column.values) for column in shown])
    measured = np.sqrt(1 - error) * true + np.sqrt(error) * generator.standard_normal(true.shape)
    return unnamed(measured, adjacency, function=function, noise=noise)


# Columns that have nothing to do with each other


def rare(generator: np.random.Generator, count: int) -> FloatArray:
    """Yes or no, with 1 to 10% yes, and at least two of either.  (N,)"""
    values = (generator.random(count) < generator.uniform(0.01, 0.1)).astype(np.float64)
    values[generator.choice(count, size=2, replace=False)] = 1.0
    return values


INDEPENDENT_LAWS: dict[str, Callable[[np.random.Generator, int], FloatArray]] = {
    "normal": lambda generator, count: generator.standard_normal(count),
    "rare-binary": rare,
    "80%-zeros": lambda generator, count: np.where(generator.random(count) < 0.8, 0.0, generator.lognormal(size=count)),
    "heavy-tails": lambda generator, count: generator.standard_t(2, size=count),
}
INDEPENDENT_VARIABLES = 8


def draw_independent_columns(generator: np.random.Generator, *, law: str) -> Dataset:
    """Eight columns that are independent of each other, all of one law, or of all laws for "mixed"."""
    laws = list(INDEPENDENT_LAWS) if law == "mixed" else [law]
    chosen = [laws[place % len(laws)] for place in range(INDEPENDENT_VARIABLES)]
    shown = [
        Shown(values, values, *(("binary", 2) if name == "rare-binary" else ("number", 0)))
        for name, values in ((name, INDEPENDENT_LAWS[name](generator, OBSERVATIONS)) for name in chosen)
    ]
    return as_dataset(shown, np.zeros((len(shown), len(shown)), dtype=bool))


# Textbook graphs


def _edges(variables: int, *edges: tuple[int, int]) -> BoolArray:
    adjacency = np.zeros((variables, variables), dtype=bool)
    for cause, effect in edges:
        adjacency[cause, effect] = True
    return adjacency


TEXTBOOK_GRAPHS = {
    "chain": _edges(3, (0, 1), (1, 2)),
    "fork": _edges(3, (0, 1), (0, 2)),
    "collider": _edges(3, (0, 2), (1, 2)),
    "mediator": _edges(3, (0, 1), (1, 2), (0, 2)),
    "confounder": _edges(4, (0, 1), (0, 2), (1, 2), (2, 3)),
    "diamond": _edges(4, (0, 1), (0, 2), (1, 3), (2, 3)),
    "M": _edges(5, (0, 2), (1, 2), (0, 3), (1, 4)),
    "star": _edges(6, (0, 1), (0, 2), (0, 3), (0, 4), (0, 5)),
}
TEXTBOOK_LAWS = {
    "normal": partial(solve_equations, function="linear", noise="normal"),
    "uniform": partial(solve_equations, function="linear", noise="uniform"),
    "Laplace": partial(solve_equations, function="linear", noise="laplace"),
    "nonlinear": partial(solve_equations, function="nonlinear", noise="normal"),
}


def draw_textbook_dataset(
    generator: np.random.Generator, *, observations: int, graph: str | None = None, law: str | None = None
) -> Dataset:
    """A small graph of the textbooks with strong effects; which one and which law are drawn where not given.

    Right is the graph itself, but for linear equations with normal noise, where nothing beyond its equivalence class
    can be known.
    """
    graph = graph or str(generator.choice(list(TEXTBOOK_GRAPHS)))
    law = law or str(generator.choice(list(TEXTBOOK_LAWS)))
    adjacency = TEXTBOOK_GRAPHS[graph]
    explained = {k: float(generator.uniform(0.4, 0.7)) for k in range(len(adjacency))}
    shown = TEXTBOOK_LAWS[law](adjacency, observations, generator, explained=explained)
    return as_dataset(shown, adjacency, graph=graph, law=law, known="class" if law == "normal" else "graph")
