"""The suite `experiments`: tables whose equations can be experimented with, and measures of the choices."""

# N observations, P variables

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from causal_arrow.graphs import metrics
from causal_arrow.tables.table import Table
from causal_arrow_lab.benchmarks.datasets import BoolArray, Dataset
from causal_arrow_lab.benchmarks.equations import StructuralEquations, draw_equations

MAX_EXPERIMENTS = 5


@dataclass(frozen=True)
class ExperimentRow:
    """The tables of a row, and the number of observations per experiment."""

    relations: str
    variables: int
    observations: int
    experimental: int


EXPERIMENT_ROWS: Mapping[str, ExperimentRow] = {
    "normal-10": ExperimentRow("normal", 10, 200, 100),
    "linear-10": ExperimentRow("linear", 10, 200, 100),
    "nonlinear-10": ExperimentRow("nonlinear", 10, 200, 100),
    "normal-20": ExperimentRow("normal", 20, 200, 100),
}


@dataclass(frozen=True)
class ExperimentsDataset(Dataset):
    """A dataset with its equations. Variable i of these is x(i + 1) in the table."""

    equations: StructuralEquations | None = None
    experimental: int = 0  # observations of each experiment


@dataclass(frozen=True, eq=False)
class ExperimentTask:
    """The part of a dataset that a policy sees: the table, and the observations of experiments that it asks for."""

    table: Table
    carry_out: Callable[[str], Table]
    experimental: int


@dataclass(frozen=True, eq=False)
class Course:
    """The graphs after 0, 1, 2, ... experiments, the variable set in each, and the seconds that the choices took."""

    graphs: tuple[BoolArray, ...]
    chosen: tuple[str, ...]
    seconds: float
    reading: Mapping[str, str] | None = None


def draw_experiments_dataset(random: np.random.Generator, *, row: str) -> ExperimentsDataset:
    """Draw a table and its equations, with between half an edge and two edges per variable."""
    settings = EXPERIMENT_ROWS[row]
    while True:
        equations = draw_equations(settings.relations, settings.variables, random, edges_per_variable=2)
        if equations.adjacency.sum() >= settings.variables / 2:
            break
    return ExperimentsDataset(
        equations.table_values(settings.observations, random),
        equations.adjacency,
        tuple(column.name for column in equations.columns),
        equations=equations,
        experimental=settings.experimental,
    )


def experiment_task(dataset: ExperimentsDataset) -> ExperimentTask:
    """The part of a dataset that a policy sees. An experiment gives every policy the same observations."""

    def carry_out(name: str) -> Table:
        assert dataset.equations is not None
        variable = int(name[1:]) - 1
        random = np.random.default_rng([dataset.details["seed"], variable])
        values = dataset.equations.experiment(variable, dataset.experimental, random)
        order = [int(each[1:]) - 1 for each in dataset.names]
        return Table.of_numbers(values[:, order], dataset.names)

    return ExperimentTask(dataset.table, carry_out, dataset.experimental)


def experiment_measures(truth: BoolArray, graphs: Sequence[BoolArray]) -> dict[str, float]:
    """Mistakes after each number of experiments.

    shd_0, ... shd_5       structural Hamming distance after so many experiments
    mean_shd               its mean after 1 to 5 experiments
    turned_0, ... turned_5 true edges that are reversed
    until_half             experiments until at most half of the initial mistakes are left; one more than were made if
                           that did not happen
    """
    distances = [float(metrics.shd(truth, graph)) for graph in graphs]
    turned = [float((truth & graph.T & ~graph).sum()) for graph in graphs]
    enough = [number for number, distance in enumerate(distances) if distance <= distances[0] / 2]
    return {
        **{f"shd_{number}": distance for number, distance in enumerate(distances)},
        "mean_shd": float(np.mean(distances[1:])),
        **{f"turned_{number}": count for number, count in enumerate(turned)},
        "until_half": float(enough[0] if enough else len(graphs)),
    }
