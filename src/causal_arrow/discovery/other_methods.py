"""Classical methods of installed packages: FLOP, BOSS and PC for tables, PCMCI+ for series.

Each gets standardized numbers and returns a partially directed graph: [j, k] and [k, j] both true where the method
leaves the direction open.
"""

# N observations, P variables, L lags

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from causal_arrow.errors import ConfigurationError

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

INSTALL = 'pip install "causal-arrow[opinion]"'
SEED = 0
LEVEL_OF_PC, LEVEL_OF_PCMCI = 0.05, 0.01


def flop(values: Floats, penalty: float = 2.0, restarts: int = 50) -> Bools:
    """FLOP (Wienöbst et al. 2025): a search over orders by BIC; its random restarts take no seed.  (P, P)

    It needs a covariance of full rank. Where the table has none, as with fewer rows than columns, it gets rows with
    the covariance shrunk by Ledoit and Wolf's rule.
    """
    search = import_module("flopsearch").flop
    if np.linalg.matrix_rank(values) < values.shape[1]:
        values, factor = shrunk(values)
        penalty *= factor
    return np.asarray(search(values, penalty, restarts=restarts)) > 0


def boss(values: Floats, penalty: float = 2.0) -> Bools:
    """BOSS (Andrews et al. 2023): best order score search by BIC, from causal-learn.  (P, P)"""
    search = import_module("causallearn.search.PermutationBased.BOSS").boss
    with _repeatable():
        found = search(
            values.copy(),
            score_func="local_score_BIC_from_cov",
            parameters={"lambda_value": penalty},
            verbose=False,
        )
    return pdag_of(found)


def pc(values: Floats, level: float = LEVEL_OF_PC) -> Bools:
    """PC (Spirtes et al. 2001) with tests of partial correlations, from causal-learn.  (P, P)"""
    search = import_module("causallearn.search.ConstraintBased.PC").pc
    with _repeatable():
        return pdag_of(search(values.copy(), alpha=level, indep_test="fisherz", show_progress=False).G)


def pcmci_plus(values: Floats, lags: int, unit: NDArray[Any] | None = None, level: float = LEVEL_OF_PCMCI) -> Any:
    """PCMCI+ (Runge 2020) with partial correlations, from tigramite, which reads missing cells itself.

    Its own result, with `graph` [j, k, lag] of marks such as "-->", `p_matrix` and `val_matrix`. `unit` (N,) says which
    rows follow each other.
    """
    return tigramite(values, unit).run_pcmciplus(tau_min=0, tau_max=lags, pc_alpha=level)


def tigramite(values: Floats, unit: NDArray[Any] | None) -> Any:
    """The tigramite object of a series, or of several pieces of one."""
    processing = import_module("tigramite.data_processing")
    test = import_module("tigramite.independence_tests.parcorr").ParCorr()
    flag = 999.0
    cells = np.where(np.isnan(values), flag, values)
    if unit is None:
        frame = processing.DataFrame(cells, missing_flag=flag)
    else:
        pieces = {index: cells[unit == label] for index, label in enumerate(np.unique(unit))}
        frame = processing.DataFrame(pieces, missing_flag=flag, analysis_mode="multiple")
    return import_module("tigramite.pcmci").PCMCI(dataframe=frame, cond_ind_test=test, verbosity=0)


@dataclass(frozen=True)
class OtherMethod:
    """A method that can be asked beside the network."""

    title: str
    package: str
    """What it is installed as, and the module that shows that it is."""
    module: str
    assumes: str
    most: int
    """Variables up to which it answers in reasonable time: with more it has to be asked for by name."""
    search: Callable[[Floats], Bools] | None = None

    @property
    def is_installed(self) -> bool:
        """Whether its package can be imported."""
        return find_spec(self.module) is not None


METHODS: Mapping[str, OtherMethod] = {
    "flop": OtherMethod(
        "FLOP",
        "flopsearch",
        "flopsearch",
        "linear effects with normal noise of any size, no hidden common causes; the graph with the best BIC",
        300,
        flop,
    ),
    "boss": OtherMethod(
        "BOSS",
        "causal-learn",
        "causallearn",
        "linear effects with normal noise of any size, no hidden common causes; the graph with the best BIC",
        60,
        boss,
    ),
    "pc": OtherMethod(
        "PC",
        "causal-learn",
        "causallearn",
        f"independence shows as a partial correlation of zero (tests at {LEVEL_OF_PC:g}), no hidden common causes",
        60,
        pc,
    ),
}
OF_SERIES: Mapping[str, OtherMethod] = {
    "pcmci+": OtherMethod(
        "PCMCI+",
        "tigramite",
        "tigramite",
        f"linear effects that do not change over time, no hidden common causes (tests at {LEVEL_OF_PCMCI:g})",
        30,
    )
}


def chosen_methods(
    known: Mapping[str, OtherMethod], asked: Any, variables: int
) -> tuple[dict[str, OtherMethod], list[str]]:
    """The methods to ask, and sentences about those that are left out.

    ConfigurationError for a name that is unknown or not installed, or if no method is left.
    """
    asked = [asked] if isinstance(asked, str) else asked
    left_out = []
    for name in known if asked is None else asked:
        if name not in known:
            raise ConfigurationError(f"There is no method {name!r}: expected some of {', '.join(known)}.")
        if not known[name].is_installed:
            left_out.append(f"{known[name].title} is not installed: {INSTALL}.")
        elif asked is None and variables > known[name].most:
            left_out.append(
                f"{known[name].title} was left out: with more than {known[name].most} variables it may take very long. "
                f"To wait for it, ask for {name!r} by name."
            )
    titles = {sentence.split(" ", 1)[0] for sentence in left_out}
    chosen = {name: known[name] for name in (asked or known) if known[name].title not in titles}
    if not chosen or (asked is not None and left_out):
        raise ConfigurationError(" ".join(left_out) or "Expected the name of one method or more, got none.")
    return chosen, left_out


# What they share


def standardized(values: Floats) -> Floats:
    """Scale each column to mean 0 and standard deviation 1, without its missing cells.  (N, P)"""
    centered = values - np.nanmean(values, axis=0)
    deviations = np.nanstd(centered, axis=0)
    return np.asarray(centered / np.where(deviations > 0, deviations, 1.0))


def shrunk(values: Floats) -> tuple[Floats, float]:
    """P + 1 rows whose covariance is that of standardized columns shrunk towards independence.  (P + 1, P)

    And the factor of the penalty that makes the BIC of so many rows proportional to that of the rows there were.
    """
    from sklearn.covariance import ledoit_wolf

    rows, variables = values.shape
    covariance, _ = ledoit_wolf(values, assume_centered=True)
    contrasts = np.linalg.qr(np.eye(variables + 1)[:, :-1] - 1 / (variables + 1))[0]  # orthonormal, each of mean 0
    made = np.sqrt(variables + 1) * contrasts @ np.linalg.cholesky(covariance).T
    return standardized(made), (variables + 1) / rows * math.log(rows) / math.log(variables + 1)


def pdag_of(graph: Any) -> Bools:
    """Convert a graph of causal-learn to our convention.  (P, P)

    [j, k] of its matrix is the mark at j of the edge between j and k: −1 a tail, 1 an arrowhead. PC may return j ↔ k,
    two arrowheads, where its tests contradict each other; then the direction is unknown.
    """
    tail_at_j, head_at_j = graph.graph == -1, graph.graph == 1
    return np.asarray(tail_at_j | (head_at_j & head_at_j.T))


@contextmanager
def _repeatable() -> Iterator[None]:
    """Seed Python's random numbers, by which causal-learn shuffles, and restore them; ignore its warnings."""
    state = random.getstate()
    random.seed(SEED)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        random.setstate(state)
