"""Rows in which Arrow is ahead of all other methods or behind: tables by suite, and sentences with figures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from about_suites import ABOUT, ORIGINS, origin_of, short_role
from calibration_tables import pooled_by_tables, share_right
from causal_arrow_lab.benchmarks.records import Record
from causal_arrow_lab.benchmarks.suites import SUITES
from document import Cell, Grid
from overview import ARROW, known_entry, mean_of, our_entry, row_named, spoken
from suite_pages import labeled, span, unbroken
from summaries import (
    ARROWS,
    BETTER_OF,
    MEASURES,
    ORACLES,
    TRIVIAL,
    Entry,
    RowSummary,
    Summary,
    compared_with,
    leads,
    measures_of_suite,
    paired_difference,
    signed,
)


@dataclass(frozen=True)
class Tally:
    """The counted rows of a suite, and those in which Arrow leads every other method or trails at least one."""

    suite: str
    counted: tuple[str, ...]
    ahead: tuple[str, ...]
    behind: dict[str, str]  # row → the method that leads it most clearly

    @property
    def rows(self) -> int:
        """The number of rows that are counted."""
        return len(self.counted)


def tally(rows: Sequence[RowSummary]) -> Tally:
    """Count the rows where Arrow is better than all others in every measure, or worse than some in at least one.

    Better and worse by more than two standard errors of the paired difference; oracles do not compete. Rows in which no
    other method but trivial ones was run are not counted.
    """
    ahead, behind, counted_rows = [], {}, []
    for row in rows:
        ours = row.entry_of(ARROW)
        others = [
            entry
            for entry in compared_with(row, ARROW)
            if entry.complete
            and entry.variant.method not in ORACLES
            and not entry.variant.method.startswith(ARROW)
            and len(entry.records) >= row.min_datasets
        ]
        if ours is None or all(entry.variant.method in TRIVIAL for entry in others):
            continue
        counted_rows.append(row.row)
        measures = judged_measures(row.suite, ours)
        if all(leads(ours, other, name) for other in others for name in measures):
            ahead.append(row.row)
        winners = [other for other in others for name in measures if leads(other, ours, name)]
        if winners:
            behind[row.row] = max(winners, key=winners.count).variant.label
    return Tally(rows[0].suite, tuple(counted_rows), tuple(ahead), behind)


def judged_measures(suite: str, entry: Entry) -> list[str]:
    """The measures of a suite's table that have a better and a worse; false edges where all edges are false."""
    only_empty = entry.empty_truths == len(entry.finished)
    names = [
        name
        for name in measures_of_suite(suite, only_empty)
        if name != "seconds" and MEASURES[name].lower_is_better is not None and entry.estimate(name).count
    ]
    return names or ["shd"]


def tallies(summaries: Sequence[Summary]) -> dict[str, Tally]:
    """The tally of arrow-base in each suite that asks for graphs."""
    found = {}
    for summary in summaries:
        for suite in summary.suites:
            rows = summary.of_suite(suite)
            if SUITES[suite].judged_by == "graphs":
                found[suite] = tally(rows)
    return found


def tally_table(found: Mapping[str, Tally]) -> Grid:
    """Wins and losses by the origin of the tables, real ones first, and by the role of the suites in development."""
    rows = [(suite, row) for suite, one in found.items() for row in one.counted]
    groups: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for suite, row in sorted(rows, key=lambda names: list(ORIGINS).index(origin_of(*names))):
        groups.setdefault((origin_of(suite, row), short_role(suite)), []).append((suite, row))
    lines = []
    for (origin, role), members in groups.items():
        ahead = sum(row in found[suite].ahead for suite, row in members)
        behind = sum(row in found[suite].behind for suite, row in members)
        lines.append(
            (Cell(ORIGINS[origin]), Cell(role), *(Cell(str(count)) for count in (len(members), ahead, behind)))
        )
    return Grid(("Tables", "Used for", "Rows", "Ahead of all", "Behind some"), tuple(lines), text_columns=2)


def wins_sentence(found: Mapping[str, Tally]) -> str:
    """Number of rows that Arrow leads, by the origin of the tables."""
    leads, trails = [], []
    for origin, title in ORIGINS.items():
        rows = [(one, row) for suite, one in found.items() for row in one.counted if origin_of(suite, row) == origin]
        ahead, behind = sum(row in one.ahead for one, row in rows), sum(row in one.behind for one, row in rows)
        leads.append(f"{ahead} of {len(rows)} ({title})")
        trails.append(behind)
    return (
        f"Of all rows of the benchmark, Arrow beats every other method in {spoken(leads)}. "
        f"Some other method beats it in {spoken(trails)} of them."
    )


def suites_table(suites: Sequence[str], found: Mapping[str, Tally], page_of: Mapping[str, str]) -> Grid:
    """One line per suite: its title, its role, and the tally of arrow-base."""
    lines = []
    for suite in suites:
        one = found.get(suite)
        behind = f"{len(one.behind)}" + (f" ({_most_often(one.behind)})" if one.behind else "") if one else "–"
        lines.append(
            (
                Cell(f"[{ABOUT[suite].title}]({page_of[suite]})"),
                Cell(short_role(suite)),
                *(Cell(str(count)) for count in ((one.rows, len(one.ahead)) if one else ("–", "–"))),
                Cell(behind),
            )
        )
    return Grid(("Suite", "Used for", "Rows", "Ahead of all", "Behind some"), tuple(lines), text_columns=2)


def _most_often(behind: Mapping[str, str]) -> str:
    methods = list(behind.values())
    return "; ".join(sorted(set(methods), key=lambda label: (-methods.count(label), label))[:2])


def losses(found: Mapping[str, Summary], limit_records: Sequence[Record], calibration: Sequence[Record]) -> list[str]:
    """Paragraphs about data where Arrow does badly, from summaries by their file."""
    return [
        _sachs(found["benchmarks"], calibration),
        _linear_normal(found["limit"], limit_records),
        _weak_networks(found["benchmarks"]),
        _discrete(found["any-table"]),
        _marks(found["any-table"]),
        _instruments(found["any-table"]),
        _effects(found["effects-evidence"]),
    ]


def _discrete(any_table: Summary) -> str:
    rows = any_table.of_suite("discrete")
    found = tally(rows)
    names = " or ".join(_most_often(found.behind).split("; "))
    datasets = span([len(row.entries[0].records) for row in rows])
    shares = {label: _mean_over(rows, label, "f1") for label in ("Arrow", "PC, χ²", "BOSS, indicators")}
    means = "; ".join(f"{share:.2f} for {label}" for label, share in shares.items())
    return (
        "**Tables of categories.** On discrete networks from the literature some other method is ahead of Arrow "
        f"in at least one measure in {len(found.behind)} of {found.rows} rows, most often {names}; with {datasets} "
        f"datasets per row only large differences show. Mean F1 over all rows: {means}."
    )


def _mean_over(rows: Sequence[RowSummary], label: str, measure: str) -> float:
    means = [entry.estimate(measure).mean for row in rows if (entry := labeled(row, label)) is not None]
    return fmean(means)  # the same in every version of Python, also halfway between two roundings


def _sachs(summary: Summary, calibration: Sequence[Record]) -> str:
    row = row_named(summary, "sachs", "pooled-raw")
    arrow = known_entry(our_entry(row, ARROW), row)
    name = "orientation_accuracy"
    right = arrow.estimate(name)
    share, pairs = share_right(pooled_by_tables(calibration, "directions")["sachs/pooled-raw"], 0.95, 1.0)
    trivial = known_entry(labeled(row, "R² sorting"), row)
    classic = [known_entry(row.entry_of(method), row).estimate(name).mean for method in ("boss", "pc", "ges")]
    return (
        f"**Real cells.** On the pooled cells of Sachs et al., read as given, {right.mean:.0%} of the true edges that "
        f"Arrow finds point the right way, where a coin has 50%; of those that BOSS, PC and GES find it is "
        f"{min(classic):.0%} to {max(classic):.0%}. They are the same few edges of one graph in every subsample, too "
        "few to distinguish any of these shares from a coin. On the scale that Arrow chooses, directions given "
        f"probability 0.95 or more were right in {share:.0%} of {pairs} cases. F1 is {mean_of(arrow, 'f1')}, and "
        f"{mean_of(trivial, 'f1')} for sorting the variables by R², a mere heuristic."
    )


def _linear_normal(limit: Summary, records: Sequence[Record]) -> str:
    lines = []
    for name in ("UUMC", "onion"):
        row = row_named(limit, "limit", name)
        arrow, exact = (known_entry(row.entry_of(method), row) for method in (ARROW, "exact-bayes"))
        apart = paired_difference(arrow, exact, "ap")
        lines.append(f"{unbroken(signed(apart, 'ap'))} in {name}")
    of_row = [record for record in records if record.row == "onion"]
    share, pairs = share_right(pooled_by_tables(of_row, "directions")["limit"], 0.95, 1.0)
    return (
        "**Linear tables with normal noise whose coefficients are unlike those of training.** AP of arrow-base minus "
        f"that of the exact posterior, which does not know their distribution either, is {' and '.join(lines)}. Of "
        f"directions given probability 0.95 or more, {share:.0%} of {pairs} were right in the row onion."
    )


def _marks(any_table: Summary) -> str:
    lines = []
    for scale in ("raw", "log"):
        row = row_named(any_table, "interventional", f"sachs-{scale}")
        marked, unmarked = (known_entry(row.entry_of(method), row) for method in (ARROW, "arrow-unmarked"))
        apart = unbroken(signed(paired_difference(marked, unmarked, "f1"), "f1"))
        means = f"{mean_of(marked, 'f1')} with marks and {mean_of(unmarked, 'f1')} without"
        lines.append(f"{means} on the {scale} scale, a difference of {apart}")
    return (
        "**Real experiments.** Marks of what an experiment set help in simulated tables, but not on the cells of Sachs "
        f"et al.: F1 is {', and '.join(lines)} ([all measures](suites/interventional.md))."
    )


def _instruments(any_table: Summary) -> str:
    row = row_named(any_table, "instruments", "3-each-alone")
    edges = {label: known_entry(labeled(row, label), row).estimate("shd").mean for label in ("Arrow", "FCI")}
    return (
        "**Several columns that measure the same thing.** Where three instruments read each of six unmeasured "
        f"variables there is no causal edge between columns. Arrow shows {edges['Arrow']:.0f} edges, FCI "
        f"{edges['FCI']:.0f}."
    )


def _effects(effects: Summary) -> str:
    shares = {
        row.row: (known_entry(row.entry_of(ARROW), row), known_entry(row.entry_of("true-graph"), row))
        for row in effects.of_suite("effects")
    }
    name = "coverage_of_effects"
    worst = min(shares, key=lambda row: shares[row][0].estimate(name).mean)
    ours, true = (entry.estimate(name).mean for entry in shares[worst])
    return (
        f"**Intervals of effects.** Intervals that should hold 90% of the effects that are not zero hold {ours:.0%} of "
        f"them in the worst row ({worst}); with the true graph known it is {true:.0%}."
    )


def _weak_networks(summary: Summary) -> str:
    row = row_named(summary, "networks", "MAGIC-NIAB")
    arrow = known_entry(row.entry_of(ARROW), row)
    others = [
        entry
        for entry in compared_with(row, ARROW)
        if entry.variant.method not in ORACLES and leads(entry, arrow, "f1") and entry.complete
    ]
    ahead = ", ".join(f"{entry.variant.label} {mean_of(entry, 'f1')}" for entry in others) or "no other method"
    return (
        "**Many weak causes.** In MAGIC-NIAB, with 100 observations and up to eleven weak causes of a variable, every "
        f"method finds little: Arrow has F1 {mean_of(arrow, 'f1')}, and ahead of it are {ahead}."
    )


def kinds_table(any_table: Summary, page_of: Mapping[str, str]) -> Grid:
    """The development suites: arrow-base and the best other method, by the first measure of each suite."""
    lines = []
    for suite in any_table.suites:
        rows = any_table.of_suite(suite)
        measure = judged_measures(suite, known_entry(rows[0].entry_of(ARROW), rows[0]))[0]
        lower = bool(MEASURES[measure].lower_is_better)
        means = {
            entry.variant.label: _mean_over(rows, entry.variant.label, measure)
            for entry in rows[0].entries
            if entry.variant.method not in (*ORACLES, *BETTER_OF, *ARROWS[1:])
            and all(labeled(row, entry.variant.label) for row in rows)
        }
        others = {label: mean for label, mean in means.items() if label != "Arrow" and not math.isnan(mean)}
        best = (min if lower else max)(others, key=lambda label: others[label])
        lines.append(
            (
                Cell(f"[{ABOUT[suite].title}]({page_of[suite]})"),
                Cell(MEASURES[measure].title + (" ↓" if lower else " ↑")),
                Cell(f"{means['Arrow']:.2f}"),
                Cell(f"{others[best]:.2f} ({best})"),
            )
        )
    return Grid(("Tables", "Measure", "Arrow", "Best other method"), tuple(lines), text_columns=2)
