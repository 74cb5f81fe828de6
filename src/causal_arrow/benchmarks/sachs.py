"""The flow cytometry data of Sachs et al. (2005): 11 proteins and phospholipids in 7466 human immune cells."""

from __future__ import annotations

import csv
import gzip
from functools import cache
from importlib import resources

import numpy as np

from causal_arrow.benchmarks.datasets import BoolArray, Dataset, FloatArray

OBSERVATIONAL = 853  # the first cells of the file; the others are of eight more conditions, most of them interventions

_DATA = resources.files("causal_arrow.benchmarks") / "data"


@cache
def load_sachs() -> tuple[FloatArray, tuple[str, ...]]:
    """Concentrations of all conditions pooled, on the raw scale (read-only, (7466, 11)), and the variables' names."""
    lines = gzip.decompress((_DATA / "sachs-pooled.tsv.gz").read_bytes()).decode().splitlines()
    values = np.array([line.split("\t") for line in lines[1:]], dtype=np.float64)
    values.flags.writeable = False
    return values, tuple(lines[0].split("\t"))


@cache
def consensus_graph(edges: int) -> BoolArray:
    """The expert consensus with 20 edges, which the paper uses, or the one with 17 (read-only, (11, 11))."""
    _, names = load_sachs()
    adjacency = np.zeros((len(names), len(names)), dtype=bool)
    with (_DATA / f"sachs-edges-{edges}.csv").open(encoding="utf-8") as file:
        for edge in csv.DictReader(file):
            adjacency[names.index(edge["source"]), names.index(edge["target"])] = True
    adjacency.flags.writeable = False
    return adjacency


def pooled_cells(observations: int, log_scale: bool, generator: np.random.Generator) -> Dataset:
    """Cells drawn without replacement from all conditions pooled, against the 20-edge graph."""
    values, names = load_sachs()
    chosen = values[generator.choice(len(values), size=observations, replace=False)]
    return Dataset(np.log(chosen) if log_scale else chosen, consensus_graph(20), names)


def observational_cells(log_scale: bool, edges: int, generator: np.random.Generator) -> Dataset:
    """The 853 cells of the observational condition, in random order, against one of the consensus graphs."""
    values, names = load_sachs()
    observational = generator.permutation(values[:OBSERVATIONAL])
    return Dataset(np.log(observational) if log_scale else observational, consensus_graph(edges), names)


@cache
def load_conditions() -> BoolArray:
    """Where the condition of a cell acts on the variable itself: inhibitors and activators (read-only, (7466, 11))."""
    values, names = load_sachs()
    intervened = np.zeros(values.shape, dtype=bool)
    with (_DATA / "sachs-conditions.csv").open(encoding="utf-8") as file:
        for condition in csv.DictReader(file):
            if condition["targets"]:
                rows = slice(int(condition["first_row"]), int(condition["last_row"]) + 1)
                intervened[rows, names.index(condition["targets"])] = True
    intervened.flags.writeable = False
    return intervened


def experimental_cells(observations: int, log_scale: bool, generator: np.random.Generator) -> Dataset:
    """Cells drawn without replacement from all conditions, with the variable that each condition acts on."""
    values, names = load_sachs()
    chosen = generator.choice(len(values), size=observations, replace=False)
    data = np.log(values[chosen]) if log_scale else values[chosen]
    return Dataset(data, consensus_graph(20), names, intervened=load_conditions()[chosen])


def independent_cells(observations: int, generator: np.random.Generator) -> Dataset:
    """Real distributions without any relation: every variable from cells of its own. The graph is empty."""
    values, names = load_sachs()
    columns = [column[generator.choice(len(values), size=observations, replace=False)] for column in values.T]
    return Dataset(np.column_stack(columns), np.zeros((len(names), len(names)), dtype=bool), names)
