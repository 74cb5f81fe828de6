"""Summarize records: means, standard errors, and the best methods of each row."""

from __future__ import annotations

import math
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np

from causal_arrow_lab.benchmarks.calibration import Reliability, pool
from causal_arrow_lab.benchmarks.effects import MAX_EXPERIMENTS
from causal_arrow_lab.benchmarks.methods import METHODS_FOR, title_of
from causal_arrow_lab.benchmarks.records import Record
from causal_arrow_lab.benchmarks.suites import DEVELOPMENT_SUITES, SUITES

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True)
class PublishedTable:
    """One block of a table of the paper: the mean and standard error of each measure, by method."""

    suite: str
    row: str
    datasets: int
    methods: Mapping[str, Mapping[str, tuple[float, float]]]
    bold: Mapping[str, tuple[str, ...]]  # measure → methods in bold


@dataclass(frozen=True)
class PublishedResults:
    """All tables with their source."""

    title: str
    authors: tuple[str, ...]
    hardware: str
    tables: tuple[PublishedTable, ...]
    pretrained_models: Mapping[str, Mapping[str, bool | str]]  # the paper's table 1 and its appendix A, by name

    def table(self, suite: str, row: str) -> PublishedTable | None:
        """The block of a row of a suite, if the paper has one."""
        return next((table for table in self.tables if (table.suite, table.row) == (suite, row)), None)


@cache
def published_results() -> PublishedResults:
    """Read `published.toml`."""
    text = Path(__file__).with_name("published.toml").read_text(encoding="utf-8")
    content: dict[str, Any] = tomllib.loads(text)
    source = content["source"]
    return PublishedResults(
        title=source["title"],
        authors=tuple(source["authors"]),
        hardware=source["hardware"],
        tables=tuple(
            PublishedTable(
                suite=table["suite"],
                row=table["row"],
                datasets=table["datasets"],
                methods={
                    method: {measure: (mean, error) for measure, (mean, error) in figures.items()}
                    for method, figures in table["methods"].items()
                },
                bold={measure: tuple(methods) for measure, methods in table["bold"].items()},
            )
            for table in content["table"]
        ),
        pretrained_models=content["pretrained_models"],
    )


@dataclass(frozen=True)
class Measure:
    """Format of a measure in print, and the better direction (None for neither)."""

    title: str
    lower_is_better: bool | None
    decimals: int = 2
    root: bool = False  # print the root of the mean


MEASURES = {
    "nshd": Measure("nSHD", True),
    "f1": Measure("F1", False),
    "ap": Measure("AP", False),
    "seconds": Measure("Seconds", True),
    "graph_ap": Measure("AP of the graph", False),
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
    **{f"shd_{number}": Measure(f"SHD after {number}", True) for number in range(MAX_EXPERIMENTS + 1)},
    "mean_shd": Measure("SHD, mean of 1 to 5", True),
    "until_half": Measure("Experiments until half", True),
}
# These know the answer, or the distribution of graphs: they are references and do not compete.
ORACLES = ("class-oracle", "exact-bayes", "true-graph", "true-graph-curved")
# A row without any other rival is not informative.
TRIVIAL = ("varsort", "r2sort", "random", "empty")
# These do not look at the table, so their speed means nothing.
INSTANT = ("empty", "random", "class-oracle")

# Methods with several documented settings: in each row and measure, the better setting.
BETTER_OF = {
    "boss-better": ("BOSS, better of two", ("boss", "boss-1")),
    "pc-better": ("PC, better of two", ("pc", "pc-0.01")),
    "flop-better": ("FLOP, better of two", ("flop", "flop-3")),
    "ges-better": ("GES, better of two", ("ges", "ges-1")),
}

# The same network with different rules: these do not compete with each other.
ARROWS = ("arrow", "arrow-shd", "arrow-f1", "arrow-tempered", "arrow-unmarked")

# Measures that need true edges. Datasets without any are left out for all methods, unless no graph of a row has any.
MEASURES_OF_EDGES = frozenset(("nshd", "f1", "ap", "graph_ap", "skeleton_f1", "orientation_accuracy"))

MIN_SHARE_COMPARED = 0.2
"""A method run on a smaller share of the datasets than others of its row is not compared for bold."""

DEVELOPMENT = frozenset(suite.name for suite in DEVELOPMENT_SUITES)

PAPER_MEASURES = ("nshd", "f1", "ap", "seconds")


@dataclass(frozen=True)
class MeanEstimate:
    """A mean over datasets and its standard error; nan if there are too few."""

    mean: float
    standard_error: float
    count: int

    @classmethod
    def of(cls, values: Iterable[float]) -> MeanEstimate:
        """The mean of values, ignoring nan, which is a dataset where the measure is undefined."""
        numbers = np.array([value for value in values if not math.isnan(value)])
        mean = float(numbers.mean()) if numbers.size else math.nan
        error = float(numbers.std(ddof=1) / math.sqrt(numbers.size)) if numbers.size > 1 else math.nan
        return cls(mean, error, int(numbers.size))

    def overlaps(self, other: MeanEstimate) -> bool:
        """Whether the two intervals of one standard error overlap, up to rounding."""
        reach = np.nan_to_num(self.standard_error) + np.nan_to_num(other.standard_error)
        return bool(abs(self.mean - other.mean) <= reach + 1e-12)


def best_of(estimates: Mapping[str, MeanEstimate], lower_is_better: bool) -> set[str]:
    """Names in bold by the paper's rule: the best, and ties whose standard error intervals overlap with it."""
    known = {name: estimate for name, estimate in estimates.items() if not math.isnan(estimate.mean)}
    if not known:
        return set()
    sign = 1 if lower_is_better else -1
    best = min(known.values(), key=lambda estimate: sign * estimate.mean)
    return {name for name, estimate in known.items() if estimate.overlaps(best)}


def paired_difference(first: Entry, second: Entry, measure: str) -> MeanEstimate:
    """Mean of the first method minus the second over their common datasets, with its standard error."""
    return MeanEstimate.of(_differences(first, second, measure))


def _differences(first: Entry, second: Entry, measure: str) -> list[float]:
    """The first method minus the second in each dataset that both answered; nan where the measure is undefined."""
    values = [entry.by_index(measure) for entry in (first, second)]
    return [values[0][index] - values[1][index] for index in values[0] if index in values[1]]


def best_paired(entries: Mapping[str, Entry], measure: str) -> set[str]:
    """Names that no other method beats, by `leads` or `outnumbers`; no names if nothing was distinguished."""
    counts = {name: entry.estimate(measure).count for name, entry in entries.items()}
    # One dataset has no standard error: such a method cannot be beaten, and must not win by that.
    least = min(2, max(counts.values(), default=0))
    known = {name: entry for name, entry in entries.items() if counts[name] >= max(1, least)}
    unbeaten = {
        name
        for name, entry in known.items()
        if not any(leads(other, entry, measure) or outnumbers(other, entry, measure) for other in known.values())
    }
    return set() if len(unbeaten) == len(known) else unbeaten


def outnumbers(first: Entry, second: Entry, measure: str) -> bool:
    """Whether the first has the better mean, and wins more datasets than it loses by two standard errors of a coin.

    This works where one extreme value makes the standard error of the difference extreme.
    """
    sign = -1 if MEASURES[measure].lower_is_better else 1
    apart = [sign * difference for difference in _differences(first, second, measure)]
    wins, losses = (sum(one * side > 1e-12 for one in apart) for side in (1, -1))
    return float(np.nansum(apart)) > 0 and wins - losses > 2 * math.sqrt(wins + losses)


def leads(first: Entry, second: Entry, measure: str) -> bool:
    """Whether the first is better by more than two standard errors of the paired difference."""
    apart = paired_difference(first, second, measure)
    sign = -1 if MEASURES[measure].lower_is_better else 1
    return sign * apart.mean > 2 * apart.standard_error + 1e-12


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

    @cached_property
    def finished(self) -> tuple[Record, ...]:
        """The records with an answer."""
        return tuple(record for record in self.records if record.status == "ok")

    @property
    def complete(self) -> bool:
        """Whether every dataset got an answer. If not, means may leave out the hardest ones."""
        return len(self.finished) == len(self.records)

    @cached_property
    def empty_truths(self) -> int:
        """Number of datasets whose true graph has no edge: `MEASURES_OF_EDGES` leave them out."""
        return sum(record.measures.get("true_edges") == 0 for record in self.finished)

    def values(self, measure: str) -> list[float]:
        """The measure for each dataset with an answer; nan where it is undefined."""
        if measure not in self._values:
            self._values[measure] = self._computed(measure)
        return self._values[measure]

    @cached_property
    def _values(self) -> dict[str, list[float]]:
        """Cache of `values`: tables use the same measure many times."""
        return {}

    def _computed(self, measure: str) -> list[float]:
        finished = self.finished
        if measure == "seconds":
            return [record.seconds if record.seconds is not None else math.nan for record in finished]
        values = [graph_ap(record) if measure == "graph_ap" else _measured(record, measure) for record in finished]
        if measure in MEASURES_OF_EDGES and self.empty_truths < len(finished):
            return [
                math.nan if record.measures.get("true_edges") == 0 else value
                for record, value in zip(finished, values, strict=True)
            ]
        return values

    def by_index(self, measure: str) -> dict[int, float]:
        """The same by the number of the dataset."""
        return {record.index: value for record, value in zip(self.finished, self.values(measure), strict=True)}

    def estimate(self, measure: str) -> MeanEstimate:
        """Mean and standard error of a measure; for a mean of squares its root, by the delta method."""
        mean = MeanEstimate.of(self.values(measure))
        if not MEASURES[measure].root:
            return mean
        root = math.sqrt(mean.mean)
        return MeanEstimate(root, mean.standard_error / (2 * root) if root else math.nan, mean.count)

    def describe_datasets(self) -> str:
        """The number of datasets behind the means, and why others are missing."""
        counts = Counter(record.status for record in self.records)
        if self.complete:
            return str(counts["ok"])
        words = {"failed": "failed", "timeout": "timed out"}
        missing = ", ".join(f"{counts[status]} {word}" for status, word in words.items() if counts[status])
        return f"{counts['ok']} of {len(self.records)} ({missing})"


@dataclass(frozen=True, eq=False)
class BetterOf(Entry):
    """A method with several settings: for each measure, the setting whose mean is better on their common datasets.

    The choice depends on the result, which favors the method. `records` are those of the setting with the fewest.
    """

    settings: tuple[Entry, ...]

    def chosen(self, measure: str) -> Entry:
        """The better setting; if neither direction of a measure is better, by the first measure of the suite."""
        if measure == "seconds" or MEASURES[measure].lower_is_better is None:
            measure = measure_of_choice(self.settings[0])
        means = np.array(_means_on_common_datasets(self.settings, measure))
        return self.settings[int(np.argmin(means if MEASURES[measure].lower_is_better else -means))]

    def values(self, measure: str) -> list[float]:
        """Values of the better setting."""
        return self.chosen(measure).values(measure)

    def by_index(self, measure: str) -> dict[int, float]:
        """Values of the better setting by the number of the dataset."""
        return self.chosen(measure).by_index(measure)

    @property
    def complete(self) -> bool:
        """Whether every setting answered every dataset."""
        return all(entry.complete for entry in self.settings)


@dataclass(frozen=True, eq=False)
class RowSummary:
    """All methods on one row."""

    suite: str
    row: str
    panel: str
    settings: Mapping[str, Any]
    entries: tuple[Entry, ...]

    def best(self, measure: str) -> set[str]:
        """Labels of the best methods by a measure: by the paper's rule in the rows of its tables, else paired.

        Methods that did not answer every dataset, or were run on less than a fifth of them, are not compared.
        """
        lower_is_better = MEASURES[measure].lower_is_better
        if lower_is_better is None:
            return set()
        compared = {
            entry.variant.label: entry
            for entry in self.entries
            if entry.complete
            and len(entry.records) >= self.min_datasets
            and entry.variant.method not in ORACLES
            and not (measure == "seconds" and entry.variant.method in INSTANT)
        }
        if self.in_the_paper:
            return best_of({label: entry.estimate(measure) for label, entry in compared.items()}, lower_is_better)
        return best_paired(compared, measure)

    @property
    def min_datasets(self) -> float:
        """Number of datasets on which a method must have been run to be compared.

        It does not depend on oracles, nor on trivial methods, which are run on many datasets because they are fast.
        """
        aside = (*ORACLES, *TRIVIAL)
        competing = [entry for entry in self.entries if entry.variant.method not in aside] or self.entries
        return MIN_SHARE_COMPARED * max(len(entry.records) for entry in competing)

    @property
    def in_the_paper(self) -> bool:
        """Whether the paper has a table of this row."""
        return published_results().table(self.suite, self.row) is not None

    def entry_of(self, method: str) -> Entry | None:
        """The entry of the method with this name in the records."""
        return next((entry for entry in self.entries if entry.variant.method == method), None)


@dataclass(frozen=True, eq=False)
class Summary:
    """The content of a report: rows in the order of the suites, methods in the order of their table."""

    rows: tuple[RowSummary, ...]
    variants: tuple[Variant, ...]

    @property
    def suites(self) -> list[str]:
        """Names of the suites with records."""
        return list(dict.fromkeys(row.suite for row in self.rows))

    def of_suite(self, suite: str) -> list[RowSummary]:
        """The rows of a suite."""
        return [row for row in self.rows if row.suite == suite]


def summarize(records: Sequence[Record]) -> Summary:
    """Group records by row and method."""
    variants = _variants(records)
    by_row: dict[tuple[str, str], dict[str, list[Record]]] = {}
    for record in records:
        by_method = by_row.setdefault((record.suite, record.row), {})
        by_method.setdefault(record.method_identity, []).append(record)
    rows = [
        _summarize_row(suite, row, by_method, variants)
        for (suite, row), by_method in sorted(by_row.items(), key=lambda item: _rank_of_row(*item[0]))
    ]
    return Summary(tuple(_with_better_settings(row) for row in rows), tuple(variants.values()))


def graph_ap(record: Record) -> float:
    """Average precision of the answered graph, all its edges ranked equally; nan if the true graph is empty.

    Equal to `metrics.average_precision(truth, estimate)`, computed from the counts in the record.
    """
    true, estimated, f1 = (_measured(record, name) for name in ("true_edges", "estimated_edges", "f1"))
    variables = record.dataset.get("variables")
    if variables is None or not true > 0 or math.isnan(estimated) or math.isnan(f1):
        return math.nan
    hits = round(f1 * (true + estimated) / 2)
    recall, precision = hits / true, hits / estimated if estimated else 0.0
    return float(recall * precision + (1 - recall) * true / (variables * (variables - 1)))


def _measured(record: Record, measure: str) -> float:
    return record.measures.get(measure, math.nan)


def _with_better_settings(row: RowSummary) -> RowSummary:
    """Add an entry for each method of BETTER_OF whose settings were all run on enough datasets to be compared."""
    for name, (label, methods) in BETTER_OF.items():
        found = [entry for method in methods if (entry := row.entry_of(method)) is not None]
        entries = [entry for entry in found if entry.finished and len(entry.records) >= row.min_datasets]
        if len(entries) == len(methods):
            fewest = min(entries, key=lambda entry: len(entry.finished))
            better = BetterOf(replace(fewest.variant, label=label, method=name), fewest.records, tuple(entries))
            after = max(index for index, entry in enumerate(row.entries) if entry in entries) + 1
            row = replace(row, entries=(*row.entries[:after], better, *row.entries[after:]))
    return row


def measure_of_choice(entry: Entry) -> str:
    """The first measure of a suite's table with a better direction; false edges where all edges are false."""
    suite = entry.records[0].suite
    shown = SUITES[suite].shown if suite in SUITES else PAPER_MEASURES
    return next(
        name
        for name in (*shown, "shd")
        if name != "seconds" and MEASURES[name].lower_is_better is not None and entry.estimate(name).count
    )


def _means_on_common_datasets(entries: Sequence[Entry], measure: str) -> list[float]:
    by_index = [entry.by_index(measure) for entry in entries]
    common = [index for index in by_index[0] if all(not math.isnan(values.get(index, math.nan)) for values in by_index)]
    return [float(np.mean([values[index] for index in common])) if common else 0.0 for values in by_index]


def reliability_by_method(summary: Summary, suite: str, name: str = "reliability") -> dict[str, Reliability]:
    """Pooled reliability tables of a suite by label, for methods that give probabilities."""
    tables: dict[str, list[Reliability]] = {}
    for row in summary.of_suite(suite):
        for entry in row.entries:
            members = [table for record in entry.records if (table := getattr(record, name)) is not None]
            tables.setdefault(entry.variant.label, []).extend(members)
    return {label: pool(members) for label, members in tables.items() if members}


def differing_datasets(records: Iterable[Record]) -> list[tuple[str, str, int]]:
    """Datasets (suite, row, index) that differ between methods, as after an upgrade of torch."""
    seen: dict[tuple[str, str, int], set[str]] = {}
    for record in records:
        if (checksum := record.dataset.get("graph_checksum")) is not None:
            seen.setdefault((record.suite, record.row, record.index), set()).add(checksum)
    return [identity for identity, checksums in seen.items() if len(checksums) > 1]


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
    """Variants by identity, in the order of the table of methods. Equal titles are numbered."""
    first: dict[str, Record] = {}
    for record in records:
        first.setdefault(record.method_identity, record)
    newest_first = sorted(first, key=lambda identity: _age(first[identity]), reverse=True)
    in_order = sorted(newest_first, key=lambda identity: _rank_of_variant(first[identity]))
    short = Counter(title_of_variant(first[identity], with_device=False) for identity in in_order)
    by_title: dict[str, list[str]] = {}
    for identity in in_order:
        # The device is only informative if the same method was run on another one.
        alone = short[title_of_variant(first[identity], with_device=False)] == 1
        by_title.setdefault(title_of_variant(first[identity], with_device=not alone), []).append(identity)
    variants = {}
    for title, identities in by_title.items():
        for number, identity in enumerate(identities, start=1):
            which = f" #{number}" if len(identities) > 1 else ""
            record = first[identity]
            variants[identity] = Variant(title + which, record.method, record.settings, record.versions)
    return variants


def title_of_variant(record: Record, *, with_device: bool = True) -> str:
    """The method's title, with the device and the scale of Arrow if they were chosen."""
    words = {**({"device": "on {}"} if with_device else {}), "scale": "scale {}"}
    chosen = [text.format(record.settings[name]) for name, text in words.items() if name in record.settings]
    return ", ".join([title_of(record.method), *chosen])


def _rank_of_variant(record: Record) -> tuple[int, str, int]:
    kind = record.method.partition(":")[0]
    names = list(dict.fromkeys(name for methods in METHODS_FOR.values() for name in methods))
    return names.index(kind) if kind in names else len(names), record.method, len(record.settings)


def _age(record: Record) -> tuple[list[int], bool, list[int]]:
    """A key that is greater for newer versions of this package; development versions come before their release."""
    base, _, development = record.versions.get("causal-arrow", "").partition(".dev")
    numbers = [[int(digits) for digits in re.findall(r"\d+", part)] for part in (base, development)]
    return numbers[0], not development, numbers[1]


def _rank_of_row(suite: str, row: str) -> tuple[int, int, str, str]:
    suites = list(SUITES)
    if suite not in suites:
        return len(suites), 0, suite, row
    rows = [member.name for member in SUITES[suite].rows()]
    return suites.index(suite), rows.index(row) if row in rows else len(rows), suite, row


# Tables of means

# If every true graph is empty, the question is how many false edges a method finds.
CONTROL_MEASURES = ("shd", "f1", "seconds")
CONTROL_TITLES = {"shd": "False edges", "f1": "Share of empty answers"}


def title_of_measure(name: str, only_empty: bool) -> str:
    """The title of a measure, which may differ if every true graph is empty."""
    return CONTROL_TITLES.get(name, MEASURES[name].title) if only_empty else MEASURES[name].title


def measures_of_suite(suite: str, only_empty: bool) -> tuple[str, ...]:
    """The measures of a suite's main table, or those of empty graphs."""
    shown = SUITES[suite].shown if suite in SUITES else PAPER_MEASURES
    return CONTROL_MEASURES if only_empty and shown == PAPER_MEASURES else shown


def format_estimate(estimate: MeanEstimate, measure: str, min_decimals: int = 0) -> str:
    """Format mean and standard error as in the paper, 0.59 (0.01); short times have one digit more."""
    if math.isnan(estimate.mean):
        return "–"
    decimals = max(MEASURES[measure].decimals, min_decimals)
    if measure == "seconds" and estimate.mean < 0.1:
        decimals = 3
    error = "–" if math.isnan(estimate.standard_error) else f"{estimate.standard_error:.{decimals}f}"
    return f"{estimate.mean:.{decimals}f} ({error})"


def only_empty(rows: Sequence[RowSummary]) -> bool:
    """Whether no true graph of these rows has an edge."""
    return all(entry.empty_truths == len(entry.finished) for row in rows for entry in row.entries)


def compared_with(row: RowSummary, ours: str) -> list[Entry]:
    """The methods that one of our networks is compared with: the others, the better of two settings."""
    doubled = {method for name, (_, methods) in BETTER_OF.items() if row.entry_of(name) for method in methods}
    same = set(ARROWS) if ours in ARROWS else {ours, *ARROWS[1:]}
    return [entry for entry in row.entries if entry.variant.method not in same | doubled]


def signed(difference: MeanEstimate, measure: str) -> str:
    """Format a difference with its sign and its standard error, with at least two decimals."""
    text = format_estimate(difference, measure, min_decimals=2)
    return f"+{text}" if difference.mean > 0 else text.replace("-", "−")
