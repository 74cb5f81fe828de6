"""From records to the numbers of a table: means, standard errors, and which of them are best."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from causal_arrow.benchmarks.experiments import MOST_EXPERIMENTS
from causal_arrow.benchmarks.methods import METHODS_FOR, title_of
from causal_arrow.benchmarks.records import Record, count_by_status
from causal_arrow.benchmarks.suites import DEVELOPMENT_SUITES, SUITES
from causal_arrow.graphs.metrics import Reliability, pool


@dataclass(frozen=True)
class Measure:
    """How a measure is printed, and which way is better (None where neither is)."""

    title: str
    lower_is_better: bool | None
    decimals: int = 2
    root: bool = False  # of a mean of squares: its root is printed


MEASURES = {
    "nshd": Measure("nSHD", True),
    "f1": Measure("F1", False),
    "ap": Measure("AP", False),
    "seconds": Measure("Seconds", True),
    "skeleton_f1": Measure("Skeleton F1", False),
    "orientation_accuracy": Measure("Orientation accuracy", False),
    "shd": Measure("SHD", True, 1),
    "cpdag_shd": Measure("CPDAG SHD", True, 1),
    "sid": Measure("SID", True, 1),
    "estimated_edges": Measure("Edges found", None, 1),
    "true_edges": Measure("True edges", None, 1),
    "acyclic": Measure("Acyclic", None),
    "hidden_ap": Measure("AP of hidden causes", False),
    "expected_edges": Measure("Expected edges", None, 1),
    "right": Measure("Right", False),
    "class_right": Measure("Class right", False),
    "graph_right": Measure("Graph right", False),
    "edges_changed": Measure("Edges changed", True, 1),
    "share_changed": Measure("Share changed", True),
    "largest_change": Measure("Largest change", True),
    "bias": Measure("Bias", None, 3),
    "squared_error": Measure("RMSE", True, 3, root=True),
    "coverage": Measure("Coverage", None),
    "coverage_of_effects": Measure("Coverage of effects", None),
    "width": Measure("Width", None),
    **{f"shd_{number}": Measure(f"SHD after {number}", True) for number in range(MOST_EXPERIMENTS + 1)},
    "mean_shd": Measure("SHD, mean of 1 to 5", True),
    "until_half": Measure("Experiments until half", True),
}
# These know the answer: a line to compare with, and not a competitor.
ORACLES = ("class-oracle", "true-graph", "true-graph-curved")
# These do not look at the table. That they are fast is no achievement.
INSTANT = ("empty", "random", *ORACLES)

# The paper's rule for bold is for the paper's suites; in these, differences are paired.
DEVELOPMENT = frozenset(suite.name for suite in DEVELOPMENT_SUITES)

PAPER_MEASURES = ("nshd", "f1", "ap", "seconds")
FURTHER_MEASURES = (
    "skeleton_f1",
    "orientation_accuracy",
    "shd",
    "cpdag_shd",
    "sid",
    "estimated_edges",
    "true_edges",
    "acyclic",
)


@dataclass(frozen=True)
class Estimate:
    """A mean over datasets and its standard error; nan where there are too few of them."""

    mean: float
    standard_error: float
    count: int

    @classmethod
    def of(cls, values: Iterable[float]) -> Estimate:
        """Of the values that are numbers; nan stands for a dataset where the measure has no meaning."""
        numbers = np.array([value for value in values if not math.isnan(value)])
        mean = float(numbers.mean()) if numbers.size else math.nan
        error = float(numbers.std(ddof=1) / math.sqrt(numbers.size)) if numbers.size > 1 else math.nan
        return cls(mean, error, int(numbers.size))

    def overlaps(self, other: Estimate) -> bool:
        """Whether the two intervals of one standard error have a point in common, up to rounding."""
        reach = np.nan_to_num(self.standard_error) + np.nan_to_num(other.standard_error)
        return bool(abs(self.mean - other.mean) <= reach + 1e-12)


def best_of(estimates: Mapping[str, Estimate], lower_is_better: bool) -> set[str]:
    """The names the paper's rule prints in bold: the best, and ties whose standard error intervals overlap with it."""
    known = {name: estimate for name, estimate in estimates.items() if not math.isnan(estimate.mean)}
    if not known:
        return set()
    sign = 1 if lower_is_better else -1
    best = min(known.values(), key=lambda estimate: sign * estimate.mean)
    return {name for name, estimate in known.items() if estimate.overlaps(best)}


def paired_difference(first: Entry, second: Entry, measure: str) -> Estimate:
    """The first method minus the second over the datasets that both have a value for, with its standard error."""
    values = [
        {record.index: value for record, value in zip(entry.finished, entry.values(measure), strict=True)}
        for entry in (first, second)
    ]
    common = [index for index in values[0] if index in values[1]]
    return Estimate.of(values[0][index] - values[1][index] for index in common)


def best_paired(entries: Mapping[str, Entry], measure: str, lower_is_better: bool) -> set[str]:
    """The best by its mean, and those that are not worse by more than two standard errors of the paired difference."""
    means = {name: entry.estimate(measure).mean for name, entry in entries.items()}
    known = {name: mean for name, mean in means.items() if not math.isnan(mean)}
    if len(known) < 2:  # the only one is no winner
        return set()
    sign = 1 if lower_is_better else -1
    best = min(known, key=lambda name: sign * known[name])

    def ties(name: str) -> bool:
        apart = paired_difference(entries[name], entries[best], measure)
        return abs(apart.mean) <= 2 * float(np.nan_to_num(apart.standard_error)) + 1e-12

    return {name for name in known if name == best or ties(name)}


@dataclass(frozen=True, eq=False)
class Variant:
    """A method with its settings and versions. Two variants of a method have different labels."""

    label: str
    method: str
    settings: Mapping[str, Any]
    versions: Mapping[str, str]


@dataclass(frozen=True, eq=False)
class Entry:
    """One method on one row of a suite."""

    variant: Variant
    records: tuple[Record, ...]  # by index

    @property
    def finished(self) -> tuple[Record, ...]:
        """The records with an answer."""
        return tuple(record for record in self.records if record.status == "ok")

    @property
    def complete(self) -> bool:
        """Whether every dataset got an answer. If not, means leave out those that were perhaps the hardest."""
        return len(self.finished) == len(self.records)

    @property
    def empty_truths(self) -> int:
        """Datasets whose true graph has no edge: they have no nSHD and no AP."""
        return sum(record.measures.get("true_edges") == 0 for record in self.finished)

    def values(self, measure: str) -> list[float]:
        """The measure for each dataset with an answer; nan where it has no meaning."""
        if measure == "seconds":
            return [record.seconds if record.seconds is not None else math.nan for record in self.finished]
        return [record.measures.get(measure, math.nan) for record in self.finished]

    def estimate(self, measure: str) -> Estimate:
        """Mean and standard error of a measure; of a mean of squares its root, by the delta method."""
        mean = Estimate.of(self.values(measure))
        if not MEASURES[measure].root:
            return mean
        root = math.sqrt(mean.mean)
        return Estimate(root, mean.standard_error / (2 * root) if root else math.nan, mean.count)

    def describe_datasets(self) -> str:
        """How many datasets the means are over, and what became of the others."""
        counts = count_by_status(self.records)
        if self.complete:
            return str(counts["ok"])
        words = {"failed": "failed", "timeout": "timed out"}
        missing = ", ".join(f"{counts[status]} {word}" for status, word in words.items() if counts[status])
        return f"{counts['ok']} of {len(self.records)} ({missing})"


@dataclass(frozen=True, eq=False)
class RowSummary:
    """All methods on one row."""

    suite: str
    row: str
    panel: str
    settings: Mapping[str, Any]
    entries: tuple[Entry, ...]

    def best(self, measure: str) -> set[str]:
        """Labels of the best methods by a measure. Who did not answer every dataset is not compared; in suites for
        development, neither is who was run on fewer of them."""
        lower_is_better = MEASURES[measure].lower_is_better
        if lower_is_better is None:
            return set()
        compared = {
            entry.variant.label: entry
            for entry in self.entries
            if entry.complete
            and entry.variant.method not in ORACLES
            and not (measure == "seconds" and entry.variant.method in INSTANT)
        }
        if self.suite in DEVELOPMENT:
            most = max(len(entry.records) for entry in self.entries)
            full = {label: entry for label, entry in compared.items() if len(entry.records) == most}
            return best_paired(full, measure, lower_is_better)
        return best_of({label: entry.estimate(measure) for label, entry in compared.items()}, lower_is_better)


@dataclass(frozen=True, eq=False)
class Summary:
    """Everything a report shows: rows in the order of the suites, methods in the order of their table."""

    rows: tuple[RowSummary, ...]
    variants: tuple[Variant, ...]

    @property
    def suites(self) -> list[str]:
        """The suites there are records of."""
        return list(dict.fromkeys(row.suite for row in self.rows))

    def of_suite(self, suite: str) -> list[RowSummary]:
        """The rows of a suite."""
        return [row for row in self.rows if row.suite == suite]


def summarize(records: Sequence[Record]) -> Summary:
    """The records by row and method."""
    variants = _variants(records)
    by_row: dict[tuple[str, str], dict[str, list[Record]]] = {}
    for record in records:
        by_method = by_row.setdefault((record.suite, record.row), {})
        by_method.setdefault(record.method_identity, []).append(record)
    rows = [
        _summarize_row(suite, row, by_method, variants)
        for (suite, row), by_method in sorted(by_row.items(), key=lambda item: _place_of_row(*item[0]))
    ]
    return Summary(tuple(rows), tuple(variants.values()))


def reliability_by_method(summary: Summary, suite: str, name: str = "reliability") -> dict[str, Reliability]:
    """The pooled reliability table of each method of a suite that gives probabilities, by label."""
    tables: dict[str, list[Reliability]] = {}
    for row in summary.of_suite(suite):
        for entry in row.entries:
            members = [table for record in entry.records if (table := getattr(record, name)) is not None]
            tables.setdefault(entry.variant.label, []).extend(members)
    return {label: pool(members) for label, members in tables.items() if members}


def differing_datasets(records: Iterable[Record]) -> list[tuple[str, str, int]]:
    """Datasets (suite, row, index) of which methods saw different versions, as after an upgrade of torch."""
    seen: dict[tuple[str, str, int], set[str]] = {}
    for record in records:
        if (checksum := record.dataset.get("graph_checksum")) is not None:
            seen.setdefault((record.suite, record.row, record.index), set()).add(checksum)
    return [place for place, checksums in seen.items() if len(checksums) > 1]


def _summarize_row(
    suite: str, row: str, by_method: Mapping[str, list[Record]], variants: Mapping[str, Variant]
) -> RowSummary:
    known = [
        member for built in SUITES.values() if built.name == suite for member in built.rows() if member.name == row
    ]
    entries = tuple(
        Entry(variant, tuple(sorted(by_method[identity], key=lambda record: record.index)))
        for identity, variant in variants.items()
        if identity in by_method
    )
    return RowSummary(suite, row, known[0].panel if known else "", known[0].settings if known else {}, entries)


def _variants(records: Iterable[Record]) -> dict[str, Variant]:
    """By identity, in the order of the table of methods. Where a method has several, numbers tell them apart."""
    first: dict[str, Record] = {}
    for record in records:
        first.setdefault(record.method_identity, record)
    by_method: dict[str, list[str]] = {}
    for identity in sorted(first, key=lambda identity: _place_of_method(first[identity].method)):
        by_method.setdefault(first[identity].method, []).append(identity)
    variants = {}
    for method, identities in by_method.items():
        for number, identity in enumerate(identities, start=1):
            which = f" #{number}" if len(identities) > 1 else ""
            record = first[identity]
            variants[identity] = Variant(title_of(method) + which, method, record.settings, record.versions)
    return variants


def _place_of_method(name: str) -> tuple[int, str]:
    kind = name.partition(":")[0]
    names = list(dict.fromkeys(name for methods in METHODS_FOR.values() for name in methods))
    return (names.index(kind) if kind in names else len(names), name)


def _place_of_row(suite: str, row: str) -> tuple[int, int, str, str]:
    suites = list(SUITES)
    if suite not in suites:
        return len(suites), 0, suite, row
    rows = [member.name for member in SUITES[suite].rows()]
    return suites.index(suite), rows.index(row) if row in rows else len(rows), suite, row
