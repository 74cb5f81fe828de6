"""What the first pages say of all suites: the main result, where Arrow loses, three networks beside each other, shifts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from causal_arrow.benchmarks.about_suites import ABOUT, short_role
from causal_arrow.benchmarks.document import Block, Cell, Grid, Paragraph
from causal_arrow.benchmarks.methods import title_of
from causal_arrow.benchmarks.pages import STRICT_METHOD, extent, labeled, least_to_most
from causal_arrow.benchmarks.published import PublishedResults
from causal_arrow.benchmarks.records import Record
from causal_arrow.benchmarks.report import compared_with, measures_of_suite
from causal_arrow.benchmarks.suites import SUITES
from causal_arrow.benchmarks.summaries import (
    MEASURES,
    ORACLES,
    Entry,
    Estimate,
    RowSummary,
    Summary,
    paired_difference,
)
from causal_arrow.benchmarks.trust import pooled_by_tables, share_right
from causal_arrow.errors import BenchmarkError
from causal_arrow.text import counted

MAIN_ROWS = (
    ("networks", "ECOLI70"),
    ("networks", "ARTH150"),
    ("networks", "MAGIC-NIAB"),
    ("sachs", "pooled-raw"),
    ("herman", "UUMC"),
    ("shifted", "all"),
)
"""Two networks where Arrow is ahead, one where nobody finds much, real cells, a law of its own, and a shift."""

AS_GIVEN = {("sachs", "pooled-raw"): "given"}
"""Rows shown on the scale as given, which is the paper's protocol."""

TRIVIAL = ("Empty graph", "Random graph", "R² sorting")

ANY_TABLE = "arrow:arrow-any"
ARROW = "arrow"


def entry_with(row: RowSummary, *labels: str) -> Entry | None:
    """The entry with the first of these labels that the row has."""
    return next((entry for label in labels if (entry := labeled(row, label)) is not None), None)


def row_named(summary: Summary, suite: str, row: str) -> RowSummary:
    """The row, which the records must have."""
    for member in summary.of_suite(suite):
        if member.row == row:
            return member
    raise BenchmarkError(f"The records lack the row {suite}/{row}.")


def our_entry(row: RowSummary, method: str) -> Entry | None:
    """A network of ours in a row, on the scale that the row is shown on."""
    scale = AS_GIVEN.get((row.suite, row.row))
    members = [entry for entry in row.entries if entry.variant.method == method]
    return next((entry for entry in members if entry.variant.settings.get("scale") == scale), None)


def has_strict(summary: Summary) -> bool:
    """Whether there are records of arrow-strict."""
    return any(row.entry_of(STRICT_METHOD) for row in summary.rows)


# The main result


def main_rows(summary: Summary) -> list[RowSummary]:
    """The rows of the main result."""
    return [row_named(summary, *place) for place in MAIN_ROWS]


def main_result(summary: Summary, measure: str = "f1") -> list[Block]:
    """Six rows measured here, with one measure: Arrow and other methods."""
    rows = main_rows(summary)
    lines = tuple(
        (Cell(row_title(row)), Cell(observations(row)), *_cells(list(main_entries(row).values()), measure))
        for row in rows
    )
    return [Grid(("Data", "n", *main_entries(rows[0])), lines)]


def main_entries(row: RowSummary) -> dict[str, Entry | None]:
    """The methods of the main result in a row, by their title."""
    return {
        "Arrow": our_entry(row, ARROW),
        "BOSS": entry_with(row, "BOSS, better of two", "BOSS"),
        "PC": entry_with(row, "PC"),
        "DAGMA": entry_with(row, "DAGMA"),
    }


def _cells(entries: Sequence[Entry | None], measure: str) -> list[Cell]:
    """Means, bold for the best of them and what is not told apart from it."""
    known = [entry for entry in entries if entry is not None]
    best = [entry for entry in known if not any(leads(other, entry, measure) for other in known)]
    return [
        Cell("–") if entry is None else Cell(_mean(entry, measure), bold=entry in best and len(best) < len(known))
        for entry in entries
    ]


def _mean(entry: Entry, measure: str) -> str:
    return f"{entry.estimate(measure).mean:.2f}"


def leads(first: Entry, second: Entry, measure: str) -> bool:
    """Whether the first is better by more than two standard errors of the paired difference."""
    apart = paired_difference(first, second, measure)
    sign = -1 if MEASURES[measure].lower_is_better else 1
    return sign * apart.mean > 2 * apart.standard_error + 1e-12


def row_title(row: RowSummary) -> str:
    """The row by the name that the benchmark command knows it by, and the scale if it is fixed."""
    return f"{row.suite}/{row.row}" + (", as given" if (row.suite, row.row) in AS_GIVEN else "")


def observations(row: RowSummary) -> str:
    """n, or its range."""
    return least_to_most(*extent(row, "observations"))


def datasets_and_errors(summary: Summary, measure: str = "f1") -> str:
    """How many datasets the means of the main result are over, and how large their standard errors are."""
    found: dict[str, list[Entry]] = {}
    for row in main_rows(summary):
        for label, entry in main_entries(row).items():
            if entry is not None:
                found.setdefault(label, []).append(entry)
    counts = ", ".join(
        f"{label} {least_to_most(min(sizes), max(sizes))}"
        for label, entries in found.items()
        for sizes in [[len(entry.finished) for entry in entries]]
    )
    largest = max(entry.estimate(measure).standard_error for entries in found.values() for entry in entries)
    return f"Datasets per row: {counts}. Standard errors are at most {largest:.2f}."


# Three networks


def networks_compared(
    summary: Summary, paper: PublishedResults, rows: Sequence[RowSummary], measure: str = "ap"
) -> list[Block]:
    """The paper's network as published, arrow-strict and arrow-base, in those rows that the paper has tables of."""
    strict = has_strict(summary)
    lines = []
    for row in rows:
        table = paper.table(row.suite, row.row)
        if table is None:
            continue
        entries = [our_entry(row, method) for method in ([STRICT_METHOD] if strict else []) + [ARROW]]
        theirs = Cell(f"{table.methods['Arrow'][measure][0]:.2f}", italic=True)
        lines.append((Cell(row_title(row)), theirs, *_cells(entries, measure)))
    header = ("Data", "Paper's network (published)", *(["arrow-strict"] if strict else []), "arrow-base")
    explained = (
        f"{MEASURES[measure].title} in rows of the paper's tables. The first column, in italics, is what the paper's authors "
        "published; the others were measured here."
    )
    shown = [text for name, text in NETWORKS_EXPLAINED.items() if name != "strict" or strict]
    return [Paragraph(explained), Grid(header, tuple(lines)), Paragraph("\n".join(f"- {text}" for text in shown))]


NETWORKS_EXPLAINED = {
    "published": "**Paper's network**: 36.8M parameters, trained by the paper's authors on the paper's tasks with 32 GPUs. "
    "Their published figures, measured on other draws of the data; not run here.",
    "strict": "**arrow-strict**: our encoder (2.3M parameters), trained on the same tasks as the paper's network and nothing "
    "else, with settings fixed beforehand and no benchmark looked at.",
    "base": "**arrow-base**: our encoder, trained on wider tasks that were chosen with the rows networks, sachs and herman "
    "in view. This is the network that complete tables of numbers get.",
}


# Which shift hurts most


def shift_blocks(summary: Summary) -> list[Block]:
    """How much worse each network of ours gets with each shift, and which shift costs most."""
    rows = {row.row: row for row in summary.of_suite("shifted")}
    shifts = [name for name in rows if name != "none"]
    networks = [method for method in (ARROW, STRICT_METHOD) if any(row.entry_of(method) for row in rows.values())]
    lines, sentences = [], []
    for method in networks:
        losses = {}
        for shift in shifts:
            apart = {name: _change(rows[shift], rows["none"], method, name) for name in ("nshd", "f1", "ap")}
            losses[shift] = apart["nshd"]
            lines.append(
                (
                    Cell(network_name(method)),
                    Cell(shift),
                    *(Cell(_signed(one), bold=abs(one.mean) > 2 * one.standard_error) for one in apart.values()),
                )
            )
        sentences.append(_worst_shift(network_name(method), losses))
    explained = (
        "The change against `none`, with its standard error. Each row of the suite has datasets of its own, so these "
        "differences are not paired; bold where they are more than two standard errors from zero."
    )
    return [
        Grid(("Network", "Shift", "nSHD ↓", "F1 ↑", "AP ↑"), tuple(lines), text_columns=2),
        Paragraph(explained),
        Paragraph(" ".join(sentences)),
    ]


def _change(row: RowSummary, none: RowSummary, method: str, measure: str) -> Estimate:
    """A network's mean in one row minus that in another, which has other datasets."""
    shifted, plain = (_known(one.entry_of(method), one).estimate(measure) for one in (row, none))
    error = math.hypot(shifted.standard_error, plain.standard_error)
    return Estimate(shifted.mean - plain.mean, error, shifted.count)


def _worst_shift(network: str, losses: Mapping[str, Estimate]) -> str:
    """Which of the single shifts raises nSHD most, if any does beyond its standard errors."""
    single = {shift: loss for shift, loss in losses.items() if shift != "all"}
    worst = max(single, key=lambda shift: single[shift].mean)
    loss = single[worst]
    if loss.mean > 2 * loss.standard_error:
        found = f"{worst} hurt most: nSHD rises by {loss.mean:.2f} ({loss.standard_error:.2f})"
    else:
        found = f"no single shift raises nSHD by more than two standard errors (largest: {worst}, {_signed(loss)})"
    return f"For {network}, {found}; all three together change it by {_signed(losses['all'])}."


def network_name(method: str) -> str:
    """The network by its own name."""
    return "arrow-base" if method == ARROW else title_of(method)


def _signed(estimate: Estimate) -> str:
    return f"{estimate.mean:+.2f} ({estimate.standard_error:.2f})".replace("-", "−").replace(" ", "\u00a0")


def _known(entry: Entry | None, row: RowSummary) -> Entry:
    if entry is None:
        raise BenchmarkError(f"The records lack a network of ours in {row.suite}/{row.row}.")
    return entry


# Wins and losses


@dataclass(frozen=True)
class Tally:
    """In how many rows of a suite a network is ahead of every other method, and in how many behind at least one."""

    suite: str
    method: str
    rows: int
    ahead: int
    behind: dict[str, str]  # row → the method that leads it most clearly


def tally(rows: Sequence[RowSummary], method: str) -> Tally:
    """Ahead: better than all others in every measure. Behind: worse than some other method in at least one measure.

    Better and worse by more than two standard errors of the paired difference; oracles do not compete.
    """
    ahead, behind, counted_rows = 0, {}, 0
    for row in rows:
        ours = row.entry_of(method)
        others = [
            entry
            for entry in compared_with(row, method)
            if entry.complete
            and entry.variant.method not in ORACLES
            and not entry.variant.method.startswith(ARROW)
            and len(entry.records) >= row.fewest_compared
        ]
        if ours is None or not others:
            continue
        counted_rows += 1
        measures = judged_measures(row.suite, ours)
        ahead += all(leads(ours, other, name) for other in others for name in measures)
        winners = [other for other in others for name in measures if leads(other, ours, name)]
        if winners:
            behind[row.row] = max(winners, key=winners.count).variant.label
    return Tally(rows[0].suite, method, counted_rows, ahead, behind)


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
    """How the network that such tables get fares in each suite that asks for graphs."""
    found = {}
    for summary in summaries:
        for suite in summary.suites:
            rows = summary.of_suite(suite)
            method = ANY_TABLE if any(row.entry_of(ANY_TABLE) for row in rows) else ARROW
            if SUITES[suite].judged_by == "graphs":
                found[suite] = tally(rows, method)
    return found


def tally_table(found: Mapping[str, Tally]) -> Grid:
    """Wins and losses by what the suites were used for."""
    lines = []
    for role in dict.fromkeys(short_role(suite) for suite in found):
        members = [one for suite, one in found.items() if short_role(suite) == role]
        counts = (sum(one.rows for one in members), sum(one.ahead for one in members), sum(len(one.behind) for one in members))
        lines.append((Cell(role), *(Cell(str(count)) for count in counts)))
    return Grid(("Suites used for choices", "Rows", "Ahead of all", "Behind some"), tuple(lines))


def suites_table(suites: Sequence[str], found: Mapping[str, Tally], page_of: Mapping[str, str]) -> Grid:
    """One line per suite: what it is, what it was used for, and how the network that such tables get fares."""
    lines = []
    for suite in suites:
        one = found.get(suite)
        behind = f"{len(one.behind)}" + (f" ({_most_often(one.behind)})" if one.behind else "") if one else "–"
        lines.append(
            (
                Cell(f"[{ABOUT[suite].title}]({page_of[suite]})"),
                Cell(short_role(suite)),
                Cell(network_name(one.method) if one else "–"),
                *(Cell(str(count)) for count in ((one.rows, one.ahead) if one else ("–", "–"))),
                Cell(behind),
            )
        )
    return Grid(("Suite", "Used for", "Network", "Rows", "Ahead of all", "Behind some"), tuple(lines), text_columns=3)


def _most_often(behind: Mapping[str, str]) -> str:
    methods = list(behind.values())
    return "; ".join(sorted(set(methods), key=lambda label: (-methods.count(label), label))[:2])


def losses(
    found: Mapping[str, Summary], limit_records: Sequence[Record], calibration: Sequence[Record]
) -> list[str]:
    """Sentences about the places where Arrow does badly, each with its figures; summaries by their file."""
    return [
        _sachs(found["benchmarks"], calibration),
        _linear_normal(found["limit"], limit_records),
        _weak_networks(found["benchmarks"]),
        _discrete(found["any-table"]),
        _instruments(found["any-table"]),
        _effects(found["effects-evidence"]),
    ]


def _discrete(any_table: Summary) -> str:
    rows = any_table.of_suite("discrete")
    found = tally(rows, ANY_TABLE)
    names = " or ".join(_most_often(found.behind).split("; "))
    datasets = least_to_most(*_extent([len(row.entries[0].records) for row in rows]))
    shares = {label: _mean_over(rows, label, "f1") for label in ("arrow-any", "PC, χ²", "BOSS, indicators")}
    means = "; ".join(f"{share:.2f} for {label}" for label, share in shares.items())
    return (
        f"**Tables of categories.** On discrete networks from the literature some other method is ahead of arrow-any in at "
        f"least one measure in {len(found.behind)} of {found.rows} rows, most often {names}; with {datasets} datasets per "
        f"row only large differences show. Mean F1 over all rows: {means}."
    )


def _mean_over(rows: Sequence[RowSummary], label: str, measure: str) -> float:
    means = [entry.estimate(measure).mean for row in rows if (entry := labeled(row, label)) is not None]
    return sum(means) / len(means)


def _extent(counts: Sequence[int]) -> tuple[int, int]:
    return min(counts), max(counts)


def _sachs(summary: Summary, calibration: Sequence[Record]) -> str:
    row = row_named(summary, "sachs", "pooled-raw")
    arrow = _known(our_entry(row, ARROW), row)
    right = arrow.estimate("orientation_accuracy")
    share, pairs = share_right(pooled_by_tables(calibration, "directions")["sachs/pooled-raw"], 0.95, 1.0)
    trivial = _known(labeled(row, "R² sorting"), row)
    return (
        f"**Real cells.** On the pooled cells of Sachs et al. the directions of the true edges that Arrow finds are at "
        f"chance: {right.mean:.0%} are right (standard error {right.standard_error:.0%}). Directions given probability "
        f"0.95 or more were right in {share:.0%} of {pairs} cases. F1 is {_mean(arrow, 'f1')}, and {_mean(trivial, 'f1')} "
        "for sorting the variables by R², which knows nothing of causes."
    )


def _linear_normal(limit: Summary, records: Sequence[Record]) -> str:
    lines = []
    for law in ("UUMC", "onion"):
        row = row_named(limit, "limit", law)
        arrow, exact = (_known(row.entry_of(method), row) for method in (ARROW, "exact-bayes"))
        apart = paired_difference(arrow, exact, "ap")
        lines.append(f"{_signed(apart)} in {law}")
    of_row = [record for record in records if record.row == "onion"]
    share, pairs = share_right(pooled_by_tables(of_row, "directions")["limit"], 0.95, 1.0)
    return (
        "**Linear tables with normal noise whose coefficients follow another law than in training.** AP is below the exact "
        f"posterior, which does not know the law either: {' and '.join(lines)}. Of directions given probability 0.95 or "
        f"more, {share:.0%} of {pairs} were right in the row onion."
    )


def _instruments(any_table: Summary) -> str:
    row = row_named(any_table, "instruments", "3-each-alone")
    edges = {label: _known(labeled(row, label), row).estimate("shd").mean for label in ("Arrow", "arrow-any", "FCI")}
    return (
        "**Several columns that measure the same thing.** Where three instruments read each of six unmeasured variables there "
        f"is no causal edge between columns. arrow-base shows {edges['Arrow']:.0f} edges, arrow-any {edges['arrow-any']:.0f}, "
        f"FCI {edges['FCI']:.0f}."
    )


def _effects(effects: Summary) -> str:
    shares = {
        row.row: (_known(row.entry_of(ANY_TABLE), row), _known(row.entry_of("true-graph"), row))
        for row in effects.of_suite("effects")
    }
    name = "coverage_of_effects"
    worst = min(shares, key=lambda row: shares[row][0].estimate(name).mean)
    ours, true = (entry.estimate(name).mean for entry in shares[worst])
    return (
        f"**Intervals of effects.** Intervals that should hold 90% of the effects that are not zero hold {ours:.0%} of them in "
        f"the worst row ({worst}); with the true graph known it is {true:.0%}."
    )


def _weak_networks(summary: Summary) -> str:
    row = row_named(summary, "networks", "MAGIC-NIAB")
    arrow = _known(row.entry_of(ARROW), row)
    others = [
        entry
        for entry in compared_with(row, ARROW)
        if entry.variant.method not in ORACLES and leads(entry, arrow, "f1") and entry.complete
    ]
    ahead = ", ".join(f"{entry.variant.label} {_mean(entry, 'f1')}" for entry in others) or "no other method"
    return (
        "**Many weak causes.** In MAGIC-NIAB, with 100 observations and up to eleven weak causes of a variable, every method "
        f"finds little: Arrow has F1 {_mean(arrow, 'f1')}, and ahead of it are {ahead}."
    )


def sachs_remark(summary: Summary) -> str:
    """What the row of real cells does not say by itself."""
    row = row_named(summary, "sachs", "pooled-raw")
    arrow = _known(our_entry(row, ARROW), row)
    observational = _known(row_named(summary, "sachs", "observational-raw").entry_of(ARROW), row)
    right = arrow.estimate("orientation_accuracy")
    trivial = ", ".join(f"{label} {_mean(_known(labeled(row, label), row), 'f1')}" for label in TRIVIAL)
    return (
        f"Sachs is the one row of real cells. There the directions of the true edges that Arrow finds are at chance "
        f"({right.mean:.0%} right, standard error {right.standard_error:.0%}), and methods that know next to nothing have "
        f"F1 of: {trivial}. On the 853 cells without interventions Arrow has F1 {_mean(observational, 'f1')}."
    )


def counts_of(summaries: Sequence[Summary]) -> str:
    """How much was measured."""
    suites = [suite for summary in summaries for suite in summary.suites]
    methods = {variant.method for summary in summaries for variant in summary.variants}
    rows = sum(len(summary.rows) for summary in summaries)
    records = sum(len(entry.records) for summary in summaries for row in summary.rows for entry in row.entries)
    return f"{counted(len(suites), 'suite')}, {counted(rows, 'row')}, {len(methods)} methods, {records:,} answers"


def kinds_table(any_table: Summary, page_of: Mapping[str, str]) -> Grid:
    """The development suites: arrow-base, arrow-any and the best other method, by the first measure of each suite."""
    lines = []
    for suite in any_table.suites:
        rows = any_table.of_suite(suite)
        measure = judged_measures(suite, _known(rows[0].entry_of(ANY_TABLE), rows[0]))[0]
        lower = bool(MEASURES[measure].lower_is_better)
        means = {
            entry.variant.label: _mean_over(rows, entry.variant.label, measure)
            for entry in rows[0].entries
            if entry.variant.method not in (*ORACLES, "boss-better")
            and all(labeled(row, entry.variant.label) for row in rows)
        }
        others = {
            label: mean for label, mean in means.items() if label not in ("Arrow", "arrow-any") and not math.isnan(mean)
        }
        best = (min if lower else max)(others, key=lambda label: others[label])
        lines.append(
            (
                Cell(f"[{ABOUT[suite].title}]({page_of[suite]})"),
                Cell(MEASURES[measure].title + (" ↓" if lower else " ↑")),
                Cell(f"{means['Arrow']:.2f}"),
                Cell(f"{means['arrow-any']:.2f}"),
                Cell(f"{others[best]:.2f} ({best})"),
            )
        )
    return Grid(("Tables", "Measure", "arrow-base", "arrow-any", "Best other method"), tuple(lines), text_columns=2)
