"""Tables to try the page with, as files: two that come with the package, and the one `serve` was started with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from causal_arrow.examples.sachs import OBSERVATIONAL, load_sachs
from causal_arrow.tables import FileInMemory


@dataclass(frozen=True)
class ExampleTable:
    """A table and what it is about."""

    title: str
    file: Callable[[], FileInMemory]


def _as_csv(name: str, values: NDArray[np.float64], names: tuple[str, ...]) -> FileInMemory:
    lines = [",".join(names), *(",".join(f"{value:g}" for value in row) for row in values)]
    return FileInMemory(name, ("\n".join(lines) + "\n").encode())


def _sachs() -> FileInMemory:
    values, names = load_sachs()
    return _as_csv("sachs.csv", values[:OBSERVATIONAL], names)


def _diabetes() -> FileInMemory:
    from sklearn.datasets import load_diabetes

    table = load_diabetes(scaled=False)
    readable = {"s1": "cholesterol", "s2": "ldl", "s3": "hdl", "s4": "cholesterol/hdl", "s5": "log triglycerides"}
    readable |= {"s6": "glucose", "bp": "blood pressure"}
    names = (*(readable.get(name, name) for name in table.feature_names), "progression")
    return _as_csv("diabetes.csv", np.column_stack([table.data, table.target]), names)


EXAMPLES = {
    "sachs": ExampleTable("Proteins in 853 immune cells (Sachs et al. 2005)", _sachs),
    "diabetes": ExampleTable("442 patients with diabetes, a year on (Efron et al. 2004)", _diabetes),
}
