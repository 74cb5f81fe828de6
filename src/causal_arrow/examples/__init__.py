"""Tables to try things with, and what is known about them: `load_example`, and the cells of Sachs et al. (2005)."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable
from functools import cache, partial
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from causal_arrow.errors import ConfigurationError
from causal_arrow.inputs import checked
from causal_arrow.text import closest, listed, shown

if TYPE_CHECKING:
    import pandas as pd

Bools = NDArray[np.bool_]

_DATA = resources.files("causal_arrow.examples") / "data"


@checked
def load_example(name: str) -> pd.DataFrame:
    """A table that comes with the package, by name.

    Its `attrs` hold what is known: "title"; "edges", pairs of a cause and its effect, by the equations or by the
    consensus of experts, and for a series with their lag; and for hospital and beach "effects", the true effects of
    some pairs, by names such as "drug -> stay".

    Parameters
    ----------
    name
        - "hospital": 800 patients of an imaginary hospital, with numbers, yes or no, a category, and missing cells.
          The sickest get a drug, which shortens the stay although those with it stay longer.
        - "hospital-trial": 200 more, for whom a coin decided on the drug.
        - "beach": 400 days at an imaginary beach, where ice cream and swimmers go together because of the temperature.
        - "greenhouse": 500 days of an imaginary greenhouse, a series in which watering reacts to dry soil.
        - "us-economy": 202 quarters of the United States from 1959 to 2009: growth of output, consumption and
          investment in percent, inflation, unemployment and the interest rate. A real series in the public domain, by
          the Bureaus of Economic Analysis and of Labor Statistics and the Federal Reserve.
        - "sachs": 11 proteins in 853 immune cells (Sachs et al. 2005), concentrations.

    Examples
    --------
    >>> from causal_arrow import load_example
    >>> table = load_example("hospital")
    >>> round(table.attrs["effects"]["drug -> stay"], 1)
    -1.8
    """
    if name not in EXAMPLES:
        near = closest(name, EXAMPLES)
        hint = f"expected one of {listed(list(EXAMPLES))}." if near is None else f"did you mean {near!r}?"
        raise ConfigurationError(f"There is no example {shown(name)}: {hint}")
    return EXAMPLES[name]()


def _bundled(name: str, **known: Any) -> pd.DataFrame:
    """The table in a file of this package, with what is known about it."""
    import pandas as pd

    with (_DATA / f"{name}.csv").open(encoding="utf-8") as file:
        frame = pd.read_csv(file)
    frame.attrs.update(known)
    return frame


def _imaginary(name: str, title: str) -> pd.DataFrame:
    """A table drawn by the equations of an imaginary place."""
    from causal_arrow.examples.equations import KNOWN

    edges, effects = KNOWN[name]
    known: dict[str, Any] = {"title": title, "edges": list(edges)}
    if effects:
        # Names as keys, since attrs go into files as JSON, which has no pairs.
        known["effects"] = {f"{cause} -> {effect}": size for (cause, effect), size in effects.items()}
    return _bundled(name, **known)


def _sachs() -> pd.DataFrame:
    import pandas as pd

    values, names = load_sachs()
    frame = pd.DataFrame(values[:OBSERVATIONAL].copy(), columns=list(names))
    frame.attrs["title"] = "Proteins in 853 immune cells (Sachs et al. 2005)"
    frame.attrs["edges"] = [(names[j], names[k]) for j, k in np.argwhere(consensus_graph(17))]
    return frame


EXAMPLES: dict[str, Callable[[], pd.DataFrame]] = {
    "hospital": partial(_imaginary, "hospital", "800 patients of an imaginary hospital"),
    "hospital-trial": partial(_imaginary, "hospital-trial", "200 patients of a trial in an imaginary hospital"),
    "beach": partial(_imaginary, "beach", "400 days at an imaginary beach"),
    "greenhouse": partial(_imaginary, "greenhouse", "500 days of an imaginary greenhouse"),
    "us-economy": partial(_bundled, "us-economy", title="202 quarters of the economy of the United States", edges=[]),
    "sachs": _sachs,
}


# Flow cytometry of 11 proteins in 7466 human immune cells (Sachs et al. 2005), and the consensus graphs

OBSERVATIONAL = 853
"""The first cells of the file; the others come from eight more conditions, most of them interventions."""


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
    """Mask of cells whose condition acts on the variable itself: inhibitors and activators (read-only, (7466, 11))."""
    values, names = load_sachs()
    intervened = np.zeros(values.shape, dtype=bool)
    with (_DATA / "sachs-conditions.csv").open(encoding="utf-8") as file:
        for condition in csv.DictReader(file):
            if condition["targets"]:
                rows = slice(int(condition["first_row"]), int(condition["last_row"]) + 1)
                intervened[rows, names.index(condition["targets"])] = True
    intervened.flags.writeable = False
    return intervened
