"""load_example(): tables to try things with, and what is known about them."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module, resources
from typing import TYPE_CHECKING, Any

from causal_arrow.errors import ConfigurationError
from causal_arrow.text import closest, listed

if TYPE_CHECKING:
    import pandas as pd


def load_example(name: str) -> pd.DataFrame:
    """A table that comes with the package, by name.

    What is known of it is in its `attrs`: "title"; "edges", pairs of a cause and its effect, by the equations or by the
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

    Returns
    -------
    DataFrame
        Rows are observations, columns are variables.

    Examples
    --------
    >>> from causal_arrow import load_example
    >>> table = load_example("hospital")
    >>> round(table.attrs["effects"]["drug -> stay"], 1)
    -1.8
    """
    if not isinstance(name, str) or name not in EXAMPLES:
        near = closest(name, EXAMPLES) if isinstance(name, str) else None
        hint = f"expected one of {listed(list(EXAMPLES))}." if near is None else f"did you mean {near!r}?"
        raise ConfigurationError(f"There is no example {name!r}: {hint}")
    frame, known = EXAMPLES[name]()
    frame.attrs.update(known)
    return frame


def _greenhouse() -> tuple[pd.DataFrame, dict[str, Any]]:
    from causal_arrow.examples.greenhouse import EDGES

    return _bundled("greenhouse"), {"title": "500 days of an imaginary greenhouse", "edges": list(EDGES)}


def _us_economy() -> tuple[pd.DataFrame, dict[str, Any]]:
    return _bundled("us-economy"), {"title": "202 quarters of the economy of the United States", "edges": []}


def _bundled(name: str) -> pd.DataFrame:
    import pandas as pd

    with (resources.files("causal_arrow.examples") / "data" / f"{name}.csv").open(encoding="utf-8") as file:
        return pd.read_csv(file)


def _imaginary(place: str, name: str, title: str) -> Callable[[], tuple[pd.DataFrame, dict[str, Any]]]:
    """A table that the equations of a module here have drawn."""

    def load() -> tuple[pd.DataFrame, dict[str, Any]]:
        equations, frame = import_module(f"causal_arrow.examples.{place}"), _bundled(name)
        # Names as keys: what lies in attrs goes into a file as JSON, which has no pairs there.
        effects = {f"{cause} -> {effect}": size for (cause, effect), size in equations.EFFECTS.items()}
        return frame, {"title": title, "edges": list(equations.EDGES), "effects": effects}

    return load


def _sachs() -> tuple[pd.DataFrame, dict[str, Any]]:
    import numpy as np
    import pandas as pd

    from causal_arrow.examples.sachs import OBSERVATIONAL, consensus_graph, load_sachs

    values, names = load_sachs()
    edges = [(names[j], names[k]) for j, k in np.argwhere(consensus_graph(17))]
    frame = pd.DataFrame(values[:OBSERVATIONAL].copy(), columns=list(names))
    return frame, {"title": "Proteins in 853 immune cells (Sachs et al. 2005)", "edges": edges}


EXAMPLES: dict[str, Callable[[], tuple[pd.DataFrame, dict[str, Any]]]] = {
    "hospital": _imaginary("hospital", "hospital", "800 patients of an imaginary hospital"),
    "hospital-trial": _imaginary("hospital", "hospital-trial", "200 patients of a trial in an imaginary hospital"),
    "beach": _imaginary("beach", "beach", "400 days at an imaginary beach"),
    "greenhouse": _greenhouse,
    "us-economy": _us_economy,
    "sachs": _sachs,
}
