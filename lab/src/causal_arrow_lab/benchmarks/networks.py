"""Networks of the Bayesian Network Repository: four linear Gaussian and eleven discrete ones, and tables drawn from
them.

The discrete networks are in one file, which `python -m causal_arrow_lab.benchmarks.networks FILE` makes from pgmpy's
copies. Everything else here needs numpy only.
"""

# N observations, P variables

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from causal_arrow.errors import check_choice
from causal_arrow.graphs import dag
from causal_arrow.tables.table import Column
from causal_arrow_lab.benchmarks.datasets import BoolArray, Dataset, FloatArray
from causal_arrow_lab.benchmarks.linear import LinearGaussianModel

GAUSSIAN_NETWORKS = ("ECOLI70", "MAGIC-NIAB", "MAGIC-IRRI", "ARTH150")
DISCRETE_NETWORKS = (
    *("ASIA", "SURVEY", "SACHS", "CHILD", "INSURANCE", "ALARM"),
    *("WATER", "HEPAR2", "WIN95PTS", "HAILFINDER", "MILDEW"),
)
DATA = resources.files("causal_arrow_lab.benchmarks") / "data"
DISCRETE_FILE = "discrete-networks.json.gz"
# Digits of the probabilities in that file: the repository has no more.
DIGITS = 10


# Gaussian networks


@dataclass(frozen=True)
class GaussianNetwork:
    """A linear Gaussian model whose variables have names."""

    names: tuple[str, ...]
    model: LinearGaussianModel


@cache
def load_network(name: str) -> GaussianNetwork:
    """Load one of GAUSSIAN_NETWORKS."""
    check_choice("the name of a Gaussian network", name, GAUSSIAN_NETWORKS)
    file = json.loads((DATA / f"{name.lower()}.json").read_text(encoding="utf-8"))
    names = tuple(file["nodes"])
    index = {variable: k for k, variable in enumerate(names)}
    weights = np.zeros((len(names), len(names)))
    intercepts, noise_deviations = np.zeros((2, len(names)))
    for variable, equation in file["cpds"].items():
        k = index[variable]
        (intercepts[k],) = equation["coefficients"]["(Intercept)"]
        (variance,) = equation["variance"]
        noise_deviations[k] = np.sqrt(variance)
        for parent in equation["parents"]:
            (weights[index[parent], k],) = equation["coefficients"][parent]
    return GaussianNetwork(names, LinearGaussianModel(weights, noise_deviations, intercepts))


def draw_network_dataset(name: str, observations: int, generator: np.random.Generator) -> Dataset:
    """Draw independent observations of a Gaussian network."""
    network = load_network(name)
    return Dataset(network.model.observe(observations, generator), network.model.weights != 0, network.names)


# Discrete networks


@dataclass(frozen=True, eq=False)
class DiscreteNetwork:
    """Variables with their levels, and the probability of each level given those of the parents."""

    names: tuple[str, ...]  # (P,)
    levels: tuple[tuple[str, ...], ...]  # (P,) names of the levels of each variable
    parents: tuple[tuple[int, ...], ...]  # (P,)
    tables: tuple[FloatArray, ...]  # (P,) each (levels of the first parent, of the second, ..., own levels)

    @property
    def adjacency(self) -> BoolArray:
        """[j, k] when j → k.  (P, P)"""
        adjacency = np.zeros((len(self.names), len(self.names)), dtype=bool)
        for k, parents in enumerate(self.parents):
            adjacency[list(parents), k] = True
        return adjacency

    def observe(self, observations: int, generator: np.random.Generator) -> npt.NDArray[np.int64]:
        """Draw independent observations as codes of the levels, causes first.  (N, P)"""
        codes = np.zeros((observations, len(self.names)), dtype=np.int64)
        for k in dag.topological_order(self.adjacency):
            given = tuple(codes[:, parent] for parent in self.parents[k])
            probabilities = self.tables[k][given] if given else self.tables[k][None]  # (N or 1, levels)
            # The last sum is 1 up to rounding, and no drawn number may exceed it.
            thresholds = np.cumsum(probabilities, axis=1)[:, :-1]
            codes[:, k] = (generator.random((observations, 1)) >= thresholds).sum(axis=1)
        return codes


@cache
def load_discrete_network(name: str) -> DiscreteNetwork:
    """Load one of DISCRETE_NETWORKS."""
    check_choice("the name of a discrete network", name, DISCRETE_NETWORKS)
    variables = _discrete_file()[name]
    index = {variable["name"]: k for k, variable in enumerate(variables)}
    levels = tuple(tuple(variable["levels"]) for variable in variables)
    parents = tuple(tuple(index[parent] for parent in variable["parents"]) for variable in variables)
    tables = tuple(
        np.array(variable["table"]).reshape([len(levels[parent]) for parent in parents[k]] + [len(levels[k])])
        for k, variable in enumerate(variables)
    )
    return DiscreteNetwork(tuple(index), levels, parents, tables)


@cache
def _discrete_file() -> Mapping[str, Any]:
    networks: Mapping[str, Any] = json.loads(gzip.decompress((DATA / DISCRETE_FILE).read_bytes()))
    return networks


def draw_discrete_dataset(name: str, observations: int, generator: np.random.Generator) -> Dataset:
    """Draw independent observations of a discrete network, with the levels of each variable in random order.

    A variable with only one value in the whole table is left out, with its edges.
    """
    network = load_discrete_network(name)
    codes = network.observe(observations, generator)
    columns = []
    for k, (variable, levels) in enumerate(zip(network.names, network.levels, strict=True)):
        order = generator.permutation(len(levels))  # order[code in the network] is the code in the table
        codes[:, k] = order[codes[:, k]]
        renamed = tuple(levels[code] for code in np.argsort(order))
        columns.append(Column(variable, "binary" if len(levels) == 2 else "category", renamed))
    varies = codes.min(axis=0) < codes.max(axis=0)
    kept = tuple(column for column, keep in zip(columns, varies, strict=True) if keep)
    return Dataset(
        codes[:, varies].astype(np.float64),
        network.adjacency[np.ix_(varies, varies)],
        tuple(column.name for column in kept),
        {"constant_variables": int((~varies).sum())},
        columns=kept,
    )


def convert(name: str) -> list[dict[str, Any]]:
    """Convert one of pgmpy's networks to the entries of the file."""
    from pgmpy.readwrite import BIFReader

    packed = resources.files("pgmpy") / "utils" / "example_models" / f"{name.lower()}.bif.gz"
    model = BIFReader(string=gzip.decompress(packed.read_bytes()).decode()).get_model()
    variables = []
    for variable in model.nodes():
        table = model.get_cpds(variable)
        own, *parents = table.variables
        assert own == variable
        probabilities = np.moveaxis(table.values, 0, -1)
        variables.append(
            {
                "name": variable,
                "levels": [str(level) for level in table.state_names[variable]],
                "parents": parents,
                "table": [float(f"{value:.{DIGITS}g}") for value in probabilities.ravel()],
            }
        )
    return variables


def main(path: Path) -> None:
    """Write the file of all discrete networks."""
    networks = {name: convert(name) for name in DISCRETE_NETWORKS}
    text = json.dumps(networks, separators=(",", ":"))
    path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
