"""What a benchmark knows of a method: it is named, it can be started, and then it turns tables into answers."""

from __future__ import annotations

import contextlib
import hashlib
import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from causal_arrow.benchmarks.datasets import BoolArray, FloatArray
from causal_arrow.errors import BenchmarkError
from causal_arrow.graphs import dag
from causal_arrow.tables.table import Table


@dataclass(frozen=True, eq=False)
class Estimate:
    """What a method says about one table, and how long it took to say it."""

    adjacency: BoolArray  # (P, P), [j, k] when j → k; a DAG unless the method cannot promise one
    scores: FloatArray  # (P, P), the larger the surer of j → k; they rank the ordered pairs for average precision
    probabilities: FloatArray | None  # (P, P) of j → k, where the method gives any
    seconds: float  # of the method alone, without imports, loading or conversions
    confounding: FloatArray | None = None  # (P, P), symmetric: the larger, the surer that two share a hidden cause
    reading: Mapping[str, str] | None = None  # how it read what it cannot take as it is; None for complete numbers
    ancestors: FloatArray | None = None  # (P, P), the probability of a directed path from j to k


@dataclass(frozen=True, eq=False)
class Observed:
    """All that a method may see of a dataset: kinds of columns, holes and experiments, and nothing of the truth."""

    table: Table
    intervened: BoolArray | None = None  # (N, P), where an experiment set the value

    @property
    def has_levels(self) -> bool:
        """Whether any column holds something else than numbers."""
        return any(column.kind != "number" for column in self.table.columns)

    @property
    def ignored(self) -> dict[str, str]:
        """What a method without a way to read experiments leaves out, for `Estimate.reading`."""
        return {} if self.intervened is None else {"experiments": "ignored"}

    @property
    def as_numbers(self) -> dict[str, str]:
        """How a method of numbers alone reads the rest of the table, for `Estimate.reading`."""
        return self.unread_by(frozenset())

    def unread_by(self, reads: frozenset[str]) -> dict[str, str]:
        """How a method that reads these parts of a table puts the others, for `Estimate.reading`."""
        categories = {"categories": "codes"} if self.has_levels and "levels" not in reads else {}
        return categories if "intervened" in reads else {**categories, **self.ignored}

    @classmethod
    def of(cls, data: FloatArray | Observed) -> Observed:
        """Bare numbers as observations of variables x1, x2, ..."""
        if isinstance(data, Observed):
            return data
        names = [f"x{place + 1}" for place in range(data.shape[1])]
        return cls(Table.of_numbers(np.asarray(data, dtype=np.float64), names))


class Solve(Protocol):
    """A method ready to work. Its randomness comes from the generator.

    An oracle gets the true graph as `data`, a method that reads tables an `Observed`; it takes bare numbers too.
    """

    def __call__(self, data: Any, generator: np.random.Generator) -> Estimate: ...


@dataclass(frozen=True)
class MethodOptions:
    """What a user says about methods on the command line."""

    weights: str | None = None  # of arrow: the name of a bundled model, a file or a folder
    avici_weights: Path | None = None  # folder with AVICI's kwargs.json and checkpoint
    environments: Path | None = None  # folder of the environments that some methods need
    device: str = "cpu"  # of arrow
    scale: str = "auto"  # of skewed positive columns, for arrow: one of `tables.scales.SCALES`


@dataclass(frozen=True)
class Method:
    """A method of which everything is decided. Settings and versions tell whether a record is of the same method."""

    name: str  # in records and tables
    settings: Mapping[str, Any]  # plain JSON values
    versions: Mapping[str, str]
    start: Callable[[], Solve]  # imports and loads; called once in each worker process
    is_oracle: bool = False  # it is given the true graph instead of the table
    reads_tables: bool = False  # it is given kinds, holes and experiments with the numbers


@dataclass(frozen=True)
class MethodKind:
    """An entry of the table of methods. `prepare` takes what follows the colon in `arrow:PATH`, and the options.

    It raises BenchmarkError with what to do when the method cannot be run here, and imports nothing heavy.
    """

    title: str
    description: str
    prepare: Callable[[str, MethodOptions], Method]


def method_of_package(
    name: str,
    distribution: str,
    settings: Mapping[str, Any],
    start: Callable[[], Solve],
    *,
    reads_tables: bool = False,
    extra: str = "benchmark",
) -> Callable[[str, MethodOptions], Method]:
    """The `prepare` of a method that an installed package provides."""

    def prepare(argument: str, options: MethodOptions) -> Method:
        refuse_argument(name, argument)
        try:
            version = metadata.version(distribution)
        except metadata.PackageNotFoundError as error:
            raise BenchmarkError(
                f"The method {name} needs the package {distribution}. Install it with: "
                f'pip install "causal-arrow[{extra}]"'
            ) from error
        return Method(name, settings, {distribution: version}, start, reads_tables=reads_tables)

    return prepare


def refuse_argument(name: str, argument: str) -> None:
    """Only arrow takes something after a colon."""
    if argument:
        raise BenchmarkError(f"The method {name} takes nothing after a colon; got {argument!r}.")


def file_checksum(path: Path) -> str:
    """Twelve digits that change with the content of a file: weights are settings of a method."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]


Result = TypeVar("Result")


def timed(work: Callable[[], Result], clock: Callable[[], float] = time.process_time) -> tuple[Result, float]:
    """What `work` returns, and the seconds it took: of the processor, so that other programs do not count.

    A method has one core, so on an idle machine these are the seconds one waits. For work on a GPU the clock is
    `time.perf_counter`.
    """
    start = clock()
    result = work()
    return result, clock() - start


@contextlib.contextmanager
def seeded_global_random(generator: np.random.Generator) -> Iterator[None]:
    """Python's own random numbers, determined by the generator inside the block and untouched outside.

    causal-learn shuffles with `random.shuffle` and offers no other way to repeat a run.
    """
    state = random.getstate()
    random.seed(int(generator.integers(2**63)))
    try:
        yield
    finally:
        random.setstate(state)


def standardized(data: FloatArray) -> FloatArray:
    """A new table, each variable with mean 0 and standard deviation 1.  (N, P)

    For methods that read something into the units of measurement. As the paper: its figures for DAGMA and SDCD come out
    on standardized tables only.
    """
    centered = data - data.mean(axis=0)
    deviations = centered.std(axis=0)
    return np.asarray(centered / np.where(deviations > 0, deviations, 1.0))


def complete(table: Table, missing: str) -> Table:
    """The table without holes, by one of the ways that users have: "impute" or "drop"."""
    import pandas as pd

    from causal_arrow.tables.reading import read_table

    return read_table(pd.DataFrame(table.values, columns=list(table.names)), missing=missing)


def answer_from_pdag(pdag: BoolArray, seconds: float) -> Estimate:
    """The answer of a method that leaves some edges undirected ([j, k] and [k, j] both set).  (P, P)

    The graph is a DAG of the class; for the ranking a directed edge counts 1 and an undirected one ½ both ways.
    """
    undirected = pdag & pdag.T
    scores = np.where(undirected, 0.5, pdag.astype(np.float64))
    return Estimate(dag.extend_cpdag(pdag, strict=False), scores, None, seconds)


def answer_from_weights(weights: FloatArray, threshold: float, seconds: float) -> Estimate:
    """The answer of a method that gives each edge a weight: edges above the threshold, ranked by size.  (P, P)"""
    sizes = np.abs(weights)
    np.fill_diagonal(sizes, 0.0)
    return Estimate(sizes > threshold, sizes, None, seconds)
