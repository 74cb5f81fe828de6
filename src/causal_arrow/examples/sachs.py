"""Flow cytometry of 11 proteins in 7466 human immune cells (Sachs et al. 2005), and the consensus graphs."""

from __future__ import annotations

import csv
import gzip
from functools import cache
from importlib import resources

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]

OBSERVATIONAL = 853
"""The first cells of the file; the others come from eight more conditions, most of them interventions."""

_DATA = resources.files("causal_arrow.examples") / "data"


@cache
def load_sachs() -> tuple[NDArray[np.float64], tuple[str, ...]]:
    """Concentrations of all conditions pooled, on the raw scale (read-only, (7466, 11)), and the variables' names."""
    lines = gzip.decompress((_DATA / "sachs-pooled.tsv.gz").read_bytes()).decode().splitlines()
    values = np.array([line.split("\t") for line in lines[1:]], dtype=np.float64)
    values.flags.writeable = False
    return values, tuple(lines[0].split("\t"))


@cache
def consensus_graph(edges: int) -> Bools:
    """The expert consensus with 20 edges, which the paper uses, or the one with 17 (read-only, (11, 11))."""
    _, names = load_sachs()
    adjacency = np.zeros((len(names), len(names)), dtype=bool)
    with (_DATA / f"sachs-edges-{edges}.csv").open(encoding="utf-8") as file:
        for edge in csv.DictReader(file):
            adjacency[names.index(edge["source"]), names.index(edge["target"])] = True
    adjacency.flags.writeable = False
    return adjacency


@cache
def load_conditions() -> Bools:
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
