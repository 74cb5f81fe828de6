"""Tables to try the page with, as files: three that come with the package, and the one `serve` was started with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from causal_arrow.examples import OBSERVATIONAL, load_sachs
from causal_arrow.examples.hospital import EFFECTS
from causal_arrow.tables import FileInMemory


@dataclass(frozen=True)
class ExampleTable:
    """A table, what it is about, and the question that it is there for."""

    title: str
    file: Callable[[], FileInMemory]
    question: tuple[str, str] | None = None
    """A cause and an effect to ask about first."""
    wording: str = ""
    """The question as a person asks it."""
    truths: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """The effects by the equations behind a simulated table."""


def _as_csv(name: str, values: NDArray[np.float64], names: tuple[str, ...]) -> FileInMemory:
    lines = [",".join(names), *(",".join(f"{value:g}" for value in row) for row in values)]
    return FileInMemory(name, ("\n".join(lines) + "\n").encode())


def _hospital() -> FileInMemory:
    return FileInMemory("hospital.csv", (files("causal_arrow.examples") / "data" / "hospital.csv").read_bytes())


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
    "hospital": ExampleTable(
        "800 patients of an imaginary hospital",
        _hospital,
        ("drug", "stay"),
        "Does the drug lengthen the stay?",
        EFFECTS,
    ),
    "sachs": ExampleTable("Proteins in 853 immune cells (Sachs et al. 2005)", _sachs),
    "diabetes": ExampleTable("442 patients with diabetes, a year on (Efron et al. 2004)", _diabetes),
}
