"""Real tables seen another way: a change that says nothing about causes should change no edge."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from causal_arrow.benchmarks.datasets import Dataset, FloatArray

SYMMETRY_TABLES = ("diabetes", "wine", "breast_cancer", "iris")
KEPT_ROWS = 0.9


@cache
def load_bundled_table(name: str) -> tuple[FloatArray, tuple[str, ...]]:
    """One of the tables that come with scikit-learn, its outcome as the last column (read-only, (N, P)), and names."""
    from sklearn import datasets

    bunch = getattr(datasets, f"load_{name}")()
    values = np.column_stack([bunch.data, bunch.target]).astype(np.float64)
    values.flags.writeable = False
    return values, (*(str(feature) for feature in bunch.feature_names), "target")


Changed = tuple[FloatArray, tuple[str, ...]]


def negated(values: FloatArray, names: tuple[str, ...], generator: np.random.Generator) -> Changed:
    """Every column with the other sign."""
    return -values, names


def other_signs(values: FloatArray, names: tuple[str, ...], generator: np.random.Generator) -> Changed:
    """Each column with a random sign."""
    return values * generator.choice([-1.0, 1.0], values.shape[1]), names


def with_noise_column(values: FloatArray, names: tuple[str, ...], generator: np.random.Generator) -> Changed:
    """One more column, of standard normal numbers."""
    return np.column_stack([values, generator.standard_normal(len(values))]), (*names, "noise")


def without_isolated_column(values: FloatArray, names: tuple[str, ...], generator: np.random.Generator) -> Changed:
    """Without the column whose largest rank correlation with another is the smallest."""
    ranks = np.argsort(np.argsort(values, axis=0), axis=0)
    related = np.abs(np.corrcoef(ranks, rowvar=False)) - np.eye(len(names))
    isolated = int(related.max(axis=0).argmin())
    return np.delete(values, isolated, axis=1), tuple(name for name in names if name != names[isolated])


def with_fewer_rows(values: FloatArray, names: tuple[str, ...], generator: np.random.Generator) -> Changed:
    """Nine of ten observations."""
    kept = generator.choice(len(values), size=round(KEPT_ROWS * len(values)), replace=False)
    return values[np.sort(kept)], names


CHANGES: dict[str, Callable[[FloatArray, tuple[str, ...], np.random.Generator], Changed]] = {
    "negated": negated,
    "signs": other_signs,
    "noise-column": with_noise_column,
    "without-isolated": without_isolated_column,
    "90%-of-rows": with_fewer_rows,
}
DETERMINED = ("negated", "without-isolated")  # one dataset is all there is


def draw_symmetry_dataset(generator: np.random.Generator, *, table: str, change: str) -> Dataset:
    """A table of scikit-learn and its twin after a change, with the kinds of columns that users get. Nobody knows the
    graph."""
    from causal_arrow.tables.reading import read_table

    def unjudged(values: FloatArray, names: tuple[str, ...], twin: Dataset | None = None) -> Dataset:
        read = read_table(dict(zip(names, values.T, strict=True)))
        graph = np.zeros((len(names), len(names)), dtype=bool)
        return Dataset(read.values, graph, names, twin=twin, columns=read.columns)

    values, names = load_bundled_table(table)
    return unjudged(values.copy(), names, unjudged(*CHANGES[change](values, names, generator)))
