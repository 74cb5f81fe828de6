"""The CDML series: 80 small nonlinear systems without edges at lag 0, in files `*_data.csv` and `*_target.csv`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from causal_arrow.errors import BenchmarkError
from causal_arrow_lab.benchmarks.series.families import SeriesTask

SLICE = re.compile(r"(?P<name>.+)_t(?:-(?P<lag>\d+))?")


def cdml_tasks(folder: Path) -> Iterator[SeriesTask]:
    """The tasks of a folder, by name of file."""
    files = sorted(folder.glob("*_data.csv"))
    if not files:
        raise BenchmarkError(f"Expected files *_data.csv and *_target.csv in {folder}, found none.")
    for file in files:
        yield read_task(file, file.with_name(file.name.replace("_data.csv", "_target.csv")))


def read_task(data: Path, target: Path) -> SeriesTask:
    """A series, and its graph as [cause, effect] with names like X1_t-2, read by the names of columns."""
    import pandas as pd

    table = pd.read_csv(data)
    edges = pd.read_csv(target, index_col=0)
    return SeriesTask(
        table.to_numpy(dtype=float), None, window_of(edges.to_numpy(), list(edges.index), list(table)), False
    )


def window_of(edges: NDArray[np.float64], labels: Sequence[str], names: Sequence[str]) -> NDArray[np.bool_]:
    """The window graph [lag, j, k] from a matrix [cause, effect] over slices of variables. Its effects are at lag 0."""
    slices = [SLICE.fullmatch(label) for label in labels]
    if any(found is None or found["name"] not in names for found in slices):
        raise BenchmarkError(f"Expected labels like {names[0]}_t-1 for the columns of the series, got {labels[:3]}.")
    where = [(names.index(found["name"]), int(found["lag"] or 0)) for found in slices if found is not None]
    graph = np.zeros((max(lag for _, lag in where) + 1, len(names), len(names)), dtype=bool)
    for row, (cause, lag) in enumerate(where):
        for column, (effect, at) in enumerate(where):
            if at == 0:
                graph[lag, cause, effect] = edges[row, column] != 0
    return graph
