"""Real tables of suites: the flow cytometry data of Sachs et al. (2005), and tables of scikit-learn under changes.

The suite `symmetries` compares a table and its twin: changes without causal meaning should change no edge.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np

from causal_arrow.examples import OBSERVATIONAL, consensus_graph, load_conditions, load_sachs
from causal_arrow_lab.benchmarks.datasets import Dataset, FloatArray

# Sachs et al.

CELLS = 7466


def draw_pooled_cells(generator: np.random.Generator, *, scale: str, consensus_edges: int) -> Dataset:
    """Draw 100 cells without replacement from all conditions pooled."""
    return _cells(generator.choice(CELLS, size=100, replace=False), scale, consensus_edges)


def draw_observational_cells(generator: np.random.Generator, *, scale: str, consensus_edges: int) -> Dataset:
    """The 853 cells of the observational condition in random order."""
    return _cells(generator.permutation(OBSERVATIONAL), scale, consensus_edges)


def draw_marked_cells(generator: np.random.Generator, *, scale: str, consensus_edges: int) -> Dataset:
    """Draw 1,000 cells without replacement from all conditions, with the variable that each condition acts on."""
    rows = generator.choice(CELLS, size=1000, replace=False)
    return replace(_cells(rows, scale, consensus_edges), intervened=load_conditions()[rows])


def _cells(rows: np.ndarray, scale: str, consensus_edges: int) -> Dataset:
    values, names = load_sachs()
    return Dataset(np.log(values[rows]) if scale == "log" else values[rows], consensus_graph(consensus_edges), names)


def draw_independent_cells(generator: np.random.Generator) -> Dataset:
    """Draw each variable from 100 different cells: real distributions without any relation. The graph is empty."""
    values, names = load_sachs()
    columns = [column[generator.choice(CELLS, size=100, replace=False)] for column in values.T]
    return Dataset(np.column_stack(columns), np.zeros((len(names), len(names)), dtype=bool), names)


# Tables of scikit-learn

SYMMETRY_TABLES = ("diabetes", "wine", "breast_cancer", "iris")

Changed = tuple[FloatArray, tuple[str, ...]]


@cache
def load_bundled_table(name: str) -> Changed:
    """Load a table of scikit-learn, (N, P) and read-only with the outcome last, and the names of its columns."""
    from sklearn import datasets

    bunch = getattr(datasets, f"load_{name}")()
    values = np.column_stack([bunch.data, bunch.target]).astype(np.float64)
    values.flags.writeable = False
    return values, (*(str(feature) for feature in bunch.feature_names), "target")


def without_isolated_column(values: FloatArray, names: tuple[str, ...], generator: np.random.Generator) -> Changed:
    """Remove the column whose largest rank correlation with another is smallest."""
    ranks = np.argsort(np.argsort(values, axis=0), axis=0)
    related = np.abs(np.corrcoef(ranks, rowvar=False)) - np.eye(len(names))
    isolated = int(related.max(axis=0).argmin())
    return np.delete(values, isolated, axis=1), tuple(name for name in names if name != names[isolated])


def with_fewer_rows(values: FloatArray, names: tuple[str, ...], generator: np.random.Generator) -> Changed:
    """Keep nine of ten observations."""
    kept = generator.choice(len(values), size=round(0.9 * len(values)), replace=False)
    return values[np.sort(kept)], names


CHANGES: dict[str, Callable[[FloatArray, tuple[str, ...], np.random.Generator], Changed]] = {
    "negated": lambda values, names, generator: (-values, names),
    "signs": lambda values, names, generator: (values * generator.choice([-1.0, 1.0], values.shape[1]), names),
    "noise-column": lambda values, names, generator: (
        np.column_stack([values, generator.standard_normal(len(values))]),
        (*names, "noise"),
    ),
    "without-isolated": without_isolated_column,
    "90%-of-rows": with_fewer_rows,
}
DETERMINISTIC_CHANGES = ("negated", "without-isolated")  # there is only one dataset


def draw_symmetry_dataset(generator: np.random.Generator, *, table: str, change: str) -> Dataset:
    """A table of scikit-learn and its twin after a change, with kinds of columns as users get them. No known graph."""
    from causal_arrow.tables.reading import read_table

    def unjudged(values: FloatArray, names: tuple[str, ...], twin: Dataset | None = None) -> Dataset:
        read = read_table(dict(zip(names, values.T, strict=True)))
        graph = np.zeros((len(names), len(names)), dtype=bool)
        return Dataset(read.values, graph, names, twin=twin, columns=read.columns)

    values, names = load_bundled_table(table)
    return unjudged(values.copy(), names, unjudged(*CHANGES[change](values, names, generator)))
