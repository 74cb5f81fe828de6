"""Four linear Gaussian networks of the Bayesian Network Repository: ECOLI70, MAGIC-NIAB, MAGIC-IRRI, ARTH150."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources

import numpy as np

from causal_arrow.benchmarks.datasets import Dataset
from causal_arrow.benchmarks.linear_gaussian import LinearGaussianModel
from causal_arrow.errors import BenchmarkError

# Name in the paper's table → file in `data`.
NETWORK_FILES = {
    "ECOLI70": "ecoli70.json",
    "MAGIC-NIAB": "magic-niab.json",
    "MAGIC-IRRI": "magic-irri.json",
    "ARTH150": "arth150.json",
}


@dataclass(frozen=True)
class Network:
    """A linear Gaussian model whose variables have names."""

    names: tuple[str, ...]
    model: LinearGaussianModel


@cache
def load_network(name: str) -> Network:
    """One of the four networks, by the name it has in the paper."""
    if name not in NETWORK_FILES:
        raise BenchmarkError(f"There is no network {name!r}. Choose one of {', '.join(NETWORK_FILES)}.")
    text = (resources.files("causal_arrow.benchmarks") / "data" / NETWORK_FILES[name]).read_text(encoding="utf-8")
    file = json.loads(text)
    names = tuple(file["nodes"])
    position = {variable: index for index, variable in enumerate(names)}
    weights = np.zeros((len(names), len(names)))
    intercepts = np.zeros(len(names))
    noise_deviations = np.zeros(len(names))
    for variable, equation in file["cpds"].items():
        k = position[variable]
        (intercepts[k],) = equation["coefficients"]["(Intercept)"]
        (variance,) = equation["variance"]
        noise_deviations[k] = np.sqrt(variance)
        for parent in equation["parents"]:
            (weights[position[parent], k],) = equation["coefficients"][parent]
    return Network(names, LinearGaussianModel(weights, noise_deviations, intercepts))


def draw_network_dataset(name: str, observations: int, generator: np.random.Generator) -> Dataset:
    """Independent observations of a network, and its graph."""
    network = load_network(name)
    return Dataset(network.model.observe(observations, generator), network.model.weights != 0, network.names)
