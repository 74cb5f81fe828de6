"""Datasets that are drawn: of the synthetic task distributions, and like the tables people have, with kinds of columns,
missing cells, experiments, hidden causes and measurement error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from causal_arrow.graphs import dag
from causal_arrow.graphs.dag import CausalGraph
from causal_arrow.tables.table import Column
from causal_arrow_lab.benchmarks.datasets import (
    NOISES,
    BoolArray,
    Dataset,
    FloatArray,
    draw_shape,
    in_order,
    standard,
    unnamed,
)
from causal_arrow_lab.benchmarks.networks import (
    DISCRETE_NETWORKS,
    ancestral_observations,
    draw_discrete_dataset,
    draw_network_dataset,
    normal_wishart_model,
)

if TYPE_CHECKING:
    from causal_arrow_lab.synthetic.tasks import TaskDistribution

# N observations, P variables, K levels

# Share of a variable's variance that its causes explain.
EXPLAINED = (0.3, 0.9)
WEIGHTS = (0.5, 1.5)
EDGES_PER_VARIABLE = (0.5, 2.0)
# An experiment sets values uniformly between these, about the middle 95% of a standard normal variable.
SET_VALUES = (-2.0, 2.0)

CURVES: tuple[Callable[[FloatArray], FloatArray], ...] = (
    lambda x: np.tanh(2 * x),
    lambda x: x * np.abs(x),
    lambda x: x**2,
    lambda x: np.exp(-(x**2)),
)


def linear(parents: FloatArray, generator: np.random.Generator) -> FloatArray:
    """A weighted sum of the parents with weights of random sign.  (N,)"""
    return np.asarray(parents @ _weights(parents.shape[1], generator))


def nonlinear(parents: FloatArray, generator: np.random.Generator) -> FloatArray:
    """A weighted sum of one curve per parent.  (N,)"""
    chosen = generator.integers(len(CURVES), size=(parents.shape[1],))
    bent = np.column_stack([standard(CURVES[curve](parents[:, j])) for j, curve in enumerate(chosen.tolist())])
    return np.asarray(bent @ _weights(parents.shape[1], generator))


FUNCTIONS = {"linear": linear, "nonlinear": nonlinear}


def _weights(count: int, generator: np.random.Generator) -> FloatArray:
    return np.asarray(generator.uniform(*WEIGHTS, count) * generator.choice([-1.0, 1.0], count))


def random_graph(variables: int, generator: np.random.Generator) -> BoolArray:
    """Draw a DAG whose number of edges is uniform between half and twice the number of variables.  (P, P)"""
    later = np.triu_indices(variables, k=1)
    low, high = (round(rate * variables) for rate in EDGES_PER_VARIABLE)
    edges = int(generator.integers(low, min(high, len(later[0])), endpoint=True))
    chosen = generator.choice(len(later[0]), size=edges, replace=False)
    adjacency = np.zeros((variables, variables), dtype=bool)
    adjacency[later[0][chosen], later[1][chosen]] = True
    order = generator.permutation(variables)
    return adjacency[np.ix_(order, order)]


# Columns


@dataclass(frozen=True, eq=False)
class DrawnColumn:
    """A column as in the table, and the numbers on which its effects depend."""

    values: FloatArray  # (N,) numbers, or codes of levels
    felt: FloatArray  # (N,) with mean 0 and standard deviation 1
    kind: str = "number"
    levels: int = 0

    def column(self, name: str) -> Column:
        """The column's name, kind and levels, which are called a, b, c, ..."""
        return Column(name, self.kind, tuple(chr(ord("a") + level) for level in range(self.levels)))


def continuous(latent: FloatArray, generator: np.random.Generator) -> DrawnColumn:
    """A number with all its digits."""
    return DrawnColumn(latent, standard(latent))


def rounded(latent: FloatArray, generator: np.random.Generator) -> DrawnColumn:
    """A number rounded to whole standard deviations: five to seven different values."""
    values = np.round(standard(latent))
    return DrawnColumn(values, standard(values))


def ordinal(latent: FloatArray, generator: np.random.Generator) -> DrawnColumn:
    """Three to five ordered levels with steps of unequal size."""
    codes = _cut(latent, int(generator.integers(3, 6)), generator)
    steps = np.cumsum(generator.uniform(0.3, 1.0, codes.max() + 1))
    return DrawnColumn(codes.astype(np.float64), standard(steps[codes]), "ordered", int(codes.max()) + 1)


def nominal(latent: FloatArray, generator: np.random.Generator) -> DrawnColumn:
    """Two to six unordered levels, each with a different influence on effects; codes are random."""
    codes = _cut(latent, int(generator.integers(2, 7)), generator)
    count = int(codes.max()) + 1
    # Evenly spread scores in random order: no two levels act alike.
    felt = standard(generator.permutation(count).astype(np.float64)[codes])
    renamed = generator.permutation(count)[codes]
    return DrawnColumn(renamed.astype(np.float64), felt, "binary" if count == 2 else "category", count)


KINDS_OF_COLUMNS: dict[str, Callable[[FloatArray, np.random.Generator], DrawnColumn]] = {
    "continuous": continuous,
    "rounded": rounded,
    "ordinal": ordinal,
    "nominal": nominal,
}


def _cut(latent: FloatArray, levels: int, generator: np.random.Generator) -> np.ndarray:
    """Cut into codes 0, 1, ... of `levels` levels, none much rarer than a tenth of an equal share."""
    shares = 0.1 / levels + 0.9 * generator.dirichlet(np.full(levels, 3.0))
    thresholds = np.quantile(latent, np.cumsum(shares / shares.sum())[:-1])
    codes = np.searchsorted(thresholds, latent, side="right")
    return np.unique(codes, return_inverse=True)[1].reshape(len(latent))


def solve_equations(
    adjacency: BoolArray,
    observations: int,
    generator: np.random.Generator,
    *,
    function: str = "linear",
    noise: str = "normal",
    kinds: Sequence[str] | None = None,
    intervened: BoolArray | None = None,
    explained: Mapping[int, float] | None = None,
) -> list[DrawnColumn]:
    """Draw the column of each variable, causes first: x_k = √r · f(parents) + √(1 − r) · noise.

    kinds       of each column, names of KINDS_OF_COLUMNS; all continuous by default
    intervened  (N, P), where an experiment sets the value, independently of the causes
    explained   the share r of some variables; the others are drawn
    """
    drawn: dict[int, DrawnColumn] = {}
    for k in map(int, dag.topological_order(adjacency)):
        parents = np.flatnonzero(adjacency[:, k])
        latent = NOISES[noise](generator, observations)
        if parents.size:
            felt = np.column_stack([drawn[int(parent)].felt for parent in parents])
            share = (explained or {}).get(k, generator.uniform(*EXPLAINED))
            signal = standard(FUNCTIONS[function](felt, generator))
            latent = np.sqrt(share) * signal + np.sqrt(1 - share) * latent
        if intervened is not None:
            latent = np.where(intervened[:, k], generator.uniform(*SET_VALUES, observations), latent)
        drawn[k] = KINDS_OF_COLUMNS[kinds[k] if kinds is not None else "continuous"](latent, generator)
    return [drawn[k] for k in range(len(adjacency))]


# Datasets

OBSERVATIONS, VARIABLES = 500, 20  # unless a suite sets others
VARIABLES_PER_HIDDEN = 5  # of a network, when some of its variables are hidden
INSTRUMENT_CAUSES = 6


def draw_graph_and_equations(generator: np.random.Generator, variables: int) -> tuple[BoolArray, dict[str, Any]]:
    """Draw a graph, and the names of a function and of a noise distribution."""
    named = {"function": str(generator.choice(list(FUNCTIONS))), "noise": str(generator.choice(list(NOISES)))}
    return random_graph(variables, generator), named


def as_dataset(drawn: Sequence[DrawnColumn], adjacency: BoolArray, **details: object) -> Dataset:
    """Make a dataset with variables x1, x2, ... of columns."""
    dataset = unnamed(np.column_stack([column.values for column in drawn]), adjacency, **details)
    columns = tuple(column.column(name) for column, name in zip(drawn, dataset.names, strict=True))
    return dataset if all(column.kind == "number" for column in columns) else replace(dataset, columns=columns)


MIXTURES = {**{kind: (kind,) for kind in KINDS_OF_COLUMNS}, "half-and-half": ("continuous", "nominal")}


def draw_mixed_dataset(generator: np.random.Generator, *, kinds: str = "continuous") -> Dataset:
    """Draw equations between columns of one kind, or half of the columns of each of two kinds."""
    adjacency, named = draw_graph_and_equations(generator, VARIABLES)
    members = MIXTURES[kinds]
    of_columns = generator.permutation([members[k % len(members)] for k in range(VARIABLES)]).tolist()
    drawn = solve_equations(adjacency, OBSERVATIONS, generator, **named, kinds=of_columns)
    return as_dataset(drawn, adjacency, **named)


def _draw_numbers(generator: np.random.Generator) -> Dataset:
    adjacency, named = draw_graph_and_equations(generator, VARIABLES)
    drawn = solve_equations(adjacency, OBSERVATIONS, generator, **named)
    return as_dataset(drawn, adjacency, **named)


# Missing cells


def by_chance(data: FloatArray, share: float, generator: np.random.Generator) -> BoolArray:
    """Choose every cell with the same probability.  (N, P)"""
    return np.asarray(generator.random(data.shape) < share)


def by_another_column(data: FloatArray, share: float, generator: np.random.Generator) -> BoolArray:
    """Choose cells of each column mostly where another column is large or small.  (N, P)"""
    shifts = generator.integers(1, data.shape[1], size=data.shape[1])
    return by_itself(data[:, (np.arange(data.shape[1]) + shifts) % data.shape[1]], share, generator)


def by_itself(data: FloatArray, share: float, generator: np.random.Generator) -> BoolArray:
    """Choose the cells with the largest sums of a steep function of their own value and logistic noise.  (N, P)"""
    signs = generator.choice([-1.0, 1.0], data.shape[1])
    exposure = 2 * signs * (data - data.mean(axis=0)) / data.std(axis=0)
    exposure += generator.logistic(size=data.shape)
    return np.asarray(exposure > np.quantile(exposure, 1 - share, axis=0))


HOLES: dict[str, Callable[[FloatArray, float, np.random.Generator], BoolArray]] = {
    "chance": by_chance,
    "another-column": by_another_column,
    "itself": by_itself,
}


def draw_missing_dataset(
    generator: np.random.Generator, *, missing_share: float, missing_by: str | None = None
) -> Dataset:
    """Draw numbers with a share of missing cells, for one of the reasons in HOLES, or complete ones for None."""
    dataset = _draw_numbers(generator)
    if missing_by is None:
        return dataset
    holes = HOLES[missing_by](dataset.data, missing_share, generator)
    return replace(dataset, data=np.where(holes, np.nan, dataset.data))


# Experiments


def each_in_turn(observations: int, variables: int) -> BoolArray:
    """Mark one variable, each in turn, in the second half of the observations.  (N, P)"""
    intervened = np.zeros((observations, variables), dtype=bool)
    experimental = np.arange(observations // 2, observations)
    intervened[experimental, experimental % variables] = True
    return intervened


def draw_interventional_dataset(
    generator: np.random.Generator, *, observations: int, variables: int, function: str
) -> Dataset:
    """Draw half of the observations without an experiment, the others with one variable set, each in turn."""
    adjacency, named = draw_graph_and_equations(generator, variables)
    named["function"] = function
    intervened = each_in_turn(observations, variables)
    drawn = solve_equations(adjacency, observations, generator, **named, intervened=intervened)
    return replace(as_dataset(drawn, adjacency, **named), intervened=intervened)


def draw_class_dataset(generator: np.random.Generator, *, observations: int, variables: int) -> Dataset:
    """Draw linear normal equations that identify only the equivalence class, with experiments as above.

    A variable that is set has the same distribution as without experiments: its column alone shows nothing.
    """
    adjacency = random_graph(variables, generator)
    model = normal_wishart_model(adjacency, generator)
    intervened = each_in_turn(observations, variables)
    deviations = np.sqrt(np.diag(model.covariance()))

    def combine(k: int, signal: FloatArray, noise: FloatArray) -> FloatArray:
        return np.asarray(np.where(intervened[:, k], deviations[k] * noise, signal + model.noise_deviations[k] * noise))

    data = ancestral_observations(model.weights, observations, generator, combine)
    return replace(unnamed(data, adjacency, function="linear", noise="normal"), intervened=intervened)


# Hidden causes


def latent_projection(adjacency: BoolArray, kept: Sequence[int] | np.ndarray) -> CausalGraph:
    """Project a DAG onto the variables that are observed (Verma and Pearl 1990).

    j → k if a directed path leads from j to k through hidden variables only; j ↔ k if a hidden variable has such paths
    to both.
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
    """Remove variables from a dataset and project its graph."""
    kept = np.setdiff1d(np.arange(len(dataset.names)), taken)
    graph = latent_projection(dataset.adjacency, kept)
    details = {**dataset.details, "hidden": len(taken)}
    return replace(in_order(dataset, kept), adjacency=graph.directed, confounded=graph.bidirected, details=details)


def draw_hidden_dataset(generator: np.random.Generator, *, observations: int, variables: int, hidden: int) -> Dataset:
    """Draw equations with hidden causes of two to four variables each."""
    seen, named = draw_graph_and_equations(generator, variables)
    adjacency = np.zeros((variables + hidden, variables + hidden), dtype=bool)
    adjacency[:variables, :variables] = seen
    for cause in range(variables, variables + hidden):
        effects = generator.choice(variables, size=int(generator.integers(2, 5)), replace=False)
        adjacency[cause, effects] = True
    drawn = solve_equations(adjacency, observations, generator, **named)
    dataset = as_dataset(drawn, adjacency, **named)
    return hide(dataset, np.arange(variables, variables + hidden))


def draw_network_with_hidden_variables(generator: np.random.Generator, *, network: str, observations: int) -> Dataset:
    """Draw a network of the literature and hide a fifth of its variables, chosen among those with several effects."""
    draw = draw_discrete_dataset if network in DISCRETE_NETWORKS else draw_network_dataset
    dataset = draw(generator, network=network, observations=observations)
    common_causes = np.flatnonzero(dataset.adjacency.sum(axis=1) >= 2)
    count = min(len(common_causes), len(dataset.names) // VARIABLES_PER_HIDDEN)
    return hide(dataset, generator.choice(common_causes, size=count, replace=False))


# Instruments and measurement error


def draw_instruments_alone(generator: np.random.Generator, *, instruments: int) -> Dataset:
    """Draw instruments without the variables that they measure: hidden causes, and no directed edge."""
    return hide(draw_instruments_dataset(generator, instruments=instruments), np.arange(INSTRUMENT_CAUSES))


def draw_instruments_dataset(generator: np.random.Generator, *, instruments: int) -> Dataset:
    """Draw six variables, and instruments that measure each of them by different increasing curves with little noise.

    Instruments cause nothing.
    """
    adjacency, named = draw_graph_and_equations(generator, INSTRUMENT_CAUSES)
    causes = solve_equations(adjacency, OBSERVATIONS, generator, **named)
    read = np.repeat(np.arange(INSTRUMENT_CAUSES), instruments)
    readings = [DrawnColumn(values, values) for values in (_read(causes[cause].felt, generator) for cause in read)]
    total = INSTRUMENT_CAUSES + len(read)
    whole = np.zeros((total, total), dtype=bool)
    whole[:INSTRUMENT_CAUSES, :INSTRUMENT_CAUSES] = adjacency
    whole[read, np.arange(INSTRUMENT_CAUSES, total)] = True
    return as_dataset([*causes, *readings], whole, **named)


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


def draw_measured_dataset(generator: np.random.Generator, *, error_share: float) -> Dataset:
    """Draw equations between true values; the table has noise, a share of each column's variance."""
    dataset = _draw_numbers(generator)
    true = np.column_stack([standard(column) for column in dataset.data.T])
    noise = generator.standard_normal(true.shape)
    return replace(dataset, data=np.sqrt(1 - error_share) * true + np.sqrt(error_share) * noise)


def rare(generator: np.random.Generator, count: int) -> FloatArray:
    """Draw binary values with 1 to 10% ones, and at least two of each.  (N,)"""
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
    """Draw eight independent columns, all of one distribution, or of all in turn for "mixed"."""
    laws = list(INDEPENDENT_LAWS) if law == "mixed" else [law]
    chosen = [laws[k % len(laws)] for k in range(INDEPENDENT_VARIABLES)]
    drawn = [
        DrawnColumn(values, values, *(("binary", 2) if name == "rare-binary" else ("number", 0)))
        for name, values in ((name, INDEPENDENT_LAWS[name](generator, OBSERVATIONS)) for name in chosen)
    ]
    return as_dataset(drawn, np.zeros((len(drawn), len(drawn)), dtype=bool))


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
    """Draw a small textbook graph with strong effects; graph and distribution are random if not given.

    The right answer is the graph, or its equivalence class for linear equations with normal noise, which identify no
    more.
    """
    graph = graph or str(generator.choice(list(TEXTBOOK_GRAPHS)))
    law = law or str(generator.choice(list(TEXTBOOK_LAWS)))
    adjacency = TEXTBOOK_GRAPHS[graph]
    explained = {k: float(generator.uniform(0.4, 0.7)) for k in range(len(adjacency))}
    drawn = TEXTBOOK_LAWS[law](adjacency, observations, generator, explained=explained)
    return as_dataset(drawn, adjacency, graph=graph, law=law, known="class" if law == "normal" else "graph")


CONFOUNDED_OBSERVATIONS = 500
CONFOUNDED_VARIABLES = 24  # before any is hidden
MAX_HIDDEN = 4


def draw_paper_dataset(
    generator: np.random.Generator, *, observations: int | None = None, variables: int | None = None, **parts: str
) -> Dataset:
    """Draw a dataset of the paper's distribution (section 4.1), or of one of its graphs, functions or noise."""
    shape = draw_shape(generator, observations, variables)
    return _draw_task(lambda tasks: tasks.paper().only(*parts.values()), shape, generator)


def draw_broad_dataset(generator: np.random.Generator, *, recipe: str | None = None) -> Dataset:
    """Draw a dataset of the mixture that arrow-base first trained on, or of one recipe in it."""

    def chosen(tasks: type[TaskDistribution]) -> TaskDistribution:
        return tasks.broad() if recipe is None else tasks({recipe: tasks.broad().recipes[recipe]})

    return _draw_task(chosen, draw_shape(generator), generator)


def draw_shifted_dataset(generator: np.random.Generator, *, shifts: Sequence[str]) -> Dataset:
    """Draw a dataset of the paper's distribution with graphs, functions or noise of kinds never trained on."""
    return _draw_task(lambda tasks: tasks.shifted(*shifts), draw_shape(generator), generator)


def draw_held_out_dataset(generator: np.random.Generator, **parts: str) -> Dataset:
    """Draw a dataset of the paper's distribution with one held-out component, or with all of them mixed."""
    return _draw_task(lambda tasks: tasks.held_out(*parts.values()), draw_shape(generator), generator)


def draw_confounded_dataset(generator: np.random.Generator, *, hidden: int) -> Dataset:
    """Draw a dataset of the paper's distribution and remove common causes, at most 4: sources with several children.

    Tasks with fewer than four of them are drawn again, whatever `hidden` is, so that rows differ only in that.
    """
    while True:
        shape = CONFOUNDED_OBSERVATIONS, CONFOUNDED_VARIABLES
        task = _draw_task(lambda tasks: tasks.paper(), shape, generator)
        adjacency = task.adjacency
        common_causes = np.flatnonzero(~adjacency.any(axis=0) & (adjacency.sum(axis=1) >= 2))
        if common_causes.size >= MAX_HIDDEN:
            break
    taken = generator.choice(common_causes, size=hidden, replace=False)
    kept = np.setdiff1d(np.arange(CONFOUNDED_VARIABLES), taken)
    graph = latent_projection(adjacency, kept)
    assert graph.bidirected is not None
    confounded_pairs = int(graph.bidirected.sum()) // 2
    return unnamed(task.data[:, kept], graph.directed, **task.details, confounded_pairs=confounded_pairs)


INDEPENDENT_NOISE: dict[str, Callable[[np.random.Generator, tuple[int, int]], FloatArray]] = {
    "normal": lambda generator, shape: generator.standard_normal(shape),
    "uniform": lambda generator, shape: generator.uniform(size=shape),
    "lognormal": lambda generator, shape: generator.lognormal(size=shape),
}


def draw_independent_dataset(generator: np.random.Generator, *, noise: str) -> Dataset:
    """Draw independent columns: the graph is empty, and every edge found is false."""
    observations, variables = draw_shape(generator)
    data = INDEPENDENT_NOISE[noise](generator, (observations, variables))
    return unnamed(data, np.zeros((variables, variables), dtype=bool))


def _draw_task(
    choose: Callable[[type[TaskDistribution]], TaskDistribution],
    shape: tuple[int, int],
    generator: np.random.Generator,
) -> Dataset:
    """Draw one task as a dataset with the names of its components."""
    import torch

    from causal_arrow_lab.synthetic.recipes import COMPONENTS
    from causal_arrow_lab.synthetic.tasks import TaskDistribution

    torch_generator = torch.Generator().manual_seed(int(generator.integers(2**63)))
    batch = choose(TaskDistribution).sample(1, *shape, generator=torch_generator)
    return unnamed(
        batch.data[0].double().numpy(),
        batch.adjacency[0].numpy(),
        graph_family=batch.names("graph_families")[0],
        mechanism=batch.names("mechanisms")[0],
        noises=sorted({COMPONENTS["noises"][code] for code in batch.noises[0].tolist()}),
    )
