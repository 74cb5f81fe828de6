"""Methods as the benchmark sees them: a name, a function that starts them, and then answers for tables."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from causal_arrow._version import __version__
from causal_arrow.discovery.second_opinion import repeatable
from causal_arrow.errors import BenchmarkError
from causal_arrow.graphs.dag import BoolMatrix, ensure_graph, skeleton_of
from causal_arrow.tables.table import Table
from causal_arrow_lab.benchmarks.datasets import BoolArray, FloatArray, default_names


@dataclass(frozen=True, eq=False)
class Estimate:
    """A method's answer for one table, and the seconds that it took."""

    adjacency: BoolArray  # (P, P), [j, k] when j → k; a DAG unless the method cannot promise one
    scores: FloatArray  # (P, P), larger for more certain j → k; they rank the ordered pairs for average precision
    probabilities: FloatArray | None  # (P, P) of j → k, if the method gives any
    seconds: float  # of the method only, without imports, loading or conversions
    confounding: FloatArray | None = None  # (P, P), symmetric: larger for more certain hidden causes
    reading: Mapping[str, str] | None = None  # how it read what it cannot read exactly; None for complete numbers
    ancestors: FloatArray | None = None  # (P, P), the probability of a directed path from j to k


@dataclass(frozen=True, eq=False)
class Observed:
    """The part of a dataset that a method may see: kinds of columns, holes and experiments, without the truth."""

    table: Table
    intervened: BoolArray | None = None  # (N, P), where an experiment set the value

    @property
    def has_levels(self) -> bool:
        """Whether any column has levels."""
        return any(column.kind != "number" for column in self.table.columns)

    @property
    def ignored(self) -> dict[str, str]:
        """`Estimate.reading` of a method that cannot read experiments."""
        return {} if self.intervened is None else {"experiments": "ignored"}

    @property
    def as_numbers(self) -> dict[str, str]:
        """`Estimate.reading` of a method that reads numbers only."""
        return self.unread_by(frozenset())

    def unread_by(self, reads: frozenset[str]) -> dict[str, str]:
        """The notes for `Estimate.reading` about parts of the table that a method does not read."""
        categories = {"categories": "codes"} if self.has_levels and "levels" not in reads else {}
        return categories if "intervened" in reads else {**categories, **self.ignored}

    @classmethod
    def of(cls, data: FloatArray | Observed) -> Observed:
        """Read plain numbers as observations of variables x1, x2, ..."""
        if isinstance(data, Observed):
            return data
        return cls(Table.of_numbers(np.asarray(data, dtype=np.float64), default_names(data.shape[1])))


class Solve(Protocol):
    """A method that is ready to run. Its randomness comes from the generator.

    An oracle gets the true graph as `data`, a method that reads tables an `Observed` or plain numbers.
    """

    def __call__(self, data: Any, generator: np.random.Generator) -> Estimate: ...


@dataclass(frozen=True)
class MethodOptions:
    """Options of methods on the command line."""

    environments: Path | str | None = None  # folder of the environments that methods need
    device: str = "cpu"  # of arrow
    scale: str = "auto"  # of skewed positive columns, for arrow: one of `tables.scales.SCALES`


@dataclass(frozen=True)
class Method:
    """A fully configured method. Settings and versions identify it in records."""

    name: str  # in records and tables
    settings: Mapping[str, Any]  # plain JSON values
    versions: Mapping[str, str]
    start: Callable[[], Solve]  # imports and loads; called once in each worker process
    is_oracle: bool = False  # it gets the true graph instead of the table
    reads_tables: bool = False  # it gets kinds, holes and experiments with the numbers


Prepare = Callable[[str, str, MethodOptions], Method]


@dataclass(frozen=True)
class MethodKind:
    """An entry of the table of methods. `prepare` takes its name, the text after the colon in `arrow:PATH`, and
    options; it raises BenchmarkError with advice if the method cannot be run here, and imports nothing heavy."""

    title: str
    description: str
    prepare: Prepare


def own_method(
    start: Callable[[], Any], *, settings: Mapping[str, Any] | None = None, is_oracle: bool = False
) -> Prepare:
    """The `prepare` of a method that is part of this package."""

    def prepare(name: str, argument: str, options: MethodOptions) -> Method:
        refuse_argument(name, argument)
        return Method(name, settings or {}, {"causal-arrow": __version__}, start, is_oracle)

    return prepare


def own_solver(solve: Solve, **options: Any) -> Prepare:
    """The same for a method that has nothing to import or load."""
    return own_method(lambda: solve, **options)


def method_of_package(
    distribution: str,
    start: Callable[[Mapping[str, Any]], Any],
    settings: Mapping[str, Any],
    *,
    reads_tables: bool = False,
    extra: str = "benchmark",
) -> Prepare:
    """The `prepare` of a method that an installed package provides, which starts with its settings."""

    def prepare(name: str, argument: str, options: MethodOptions) -> Method:
        refuse_argument(name, argument)
        try:
            version = metadata.version(distribution)
        except metadata.PackageNotFoundError as error:
            raise BenchmarkError(
                f"The method {name} needs the package {distribution}. Install it with: "
                f'pip install "causal-arrow{"-lab" if extra == "benchmark" else ""}[{extra}]"'
            ) from error
        return Method(name, settings, {distribution: version}, partial(start, settings), reads_tables=reads_tables)

    return prepare


def refuse_argument(name: str, argument: str) -> None:
    """Raise BenchmarkError if a method other than arrow has something after a colon."""
    if argument:
        raise BenchmarkError(f"The method {name} takes nothing after a colon; got {argument!r}.")


def file_checksum(path: Path) -> str:
    """Twelve digits of the checksum of a file: weights are settings of a method."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]


Result = TypeVar("Result")


def timed(work: Callable[[], Result], clock: Callable[[], float] = time.process_time) -> tuple[Result, float]:
    """Run `work` and return its result with the processor's seconds; on a GPU the clock is `time.perf_counter`."""
    start = clock()
    result = work()
    return result, clock() - start


def quiet(generator: np.random.Generator) -> AbstractContextManager[None]:
    """Run the search of a package with Python's global random numbers seeded, and without its warnings."""
    return repeatable(int(generator.integers(2**63)))


def complete(table: Table, missing: str) -> Table:
    """Read a table without holes, by one of the options "impute" and "drop" of `read_table`."""
    import pandas as pd

    from causal_arrow.tables.reading import read_table

    return read_table(pd.DataFrame(table.values, columns=list(table.names)), missing=missing)


def answer_from_pdag(pdag: BoolArray, seconds: float, reading: Mapping[str, str] | None = None) -> Estimate:
    """The answer of a method that leaves some edges undirected ([j, k] and [k, j] both true).  (P, P)

    The graph is a DAG of the class; in the ranking a directed edge counts 1 and an undirected one ½ in both directions.
    """
    undirected = pdag & pdag.T
    scores = np.where(undirected, 0.5, pdag.astype(np.float64))
    return Estimate(extend_cpdag(pdag), scores, None, seconds, reading=reading or None)


def answer_from_weights(weights: FloatArray, seconds: float, threshold: float = 0.0) -> Estimate:
    """The answer of a method that weights edges: those above the threshold, ranked by size.  (P, P)"""
    sizes = np.abs(weights)
    np.fill_diagonal(sizes, 0.0)
    return Estimate(sizes > threshold, sizes, None, seconds)


def extend_cpdag(pdag: ArrayLike) -> BoolMatrix:
    """A DAG with the skeleton, the directed edges and no further v-structure of a partially directed graph.  (P, P)

    By Dor and Tarsi (1992): find a variable that can be last, point its edges at it, remove it, repeat. Where there is
    none, as in some graphs of PC, that whose being last reverses the fewest edges and adds the fewest v-structures.
    """
    graph = ensure_graph(pdag)
    undirected = graph & graph.T
    directed = graph & ~undirected
    adjacent = skeleton_of(graph)
    apart = ~adjacent & ~np.eye(len(graph), dtype=bool)
    # colliders[x, y]: neighbors of x that are apart from y, each a v-structure once both point at x.
    colliders = adjacent.astype(np.float64) @ apart.astype(np.float64)
    extension = np.zeros_like(graph)
    remaining = np.ones(len(graph), dtype=bool)
    while remaining.any():
        cost = directed.sum(axis=1) + (undirected * colliders).sum(axis=1)  # of making each variable the last
        candidates = np.flatnonzero(remaining)[::-1]
        last = candidates[cost[candidates].argmin()]
        extension[:, last] = adjacent[:, last] & remaining
        colliders -= np.outer(adjacent[:, last], apart[last])
        remaining[last] = False
        for edges in (directed, undirected, adjacent):
            edges[last], edges[:, last] = False, False
    return extension
