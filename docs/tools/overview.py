"""Parts of the first pages about all suites: the main result, three networks compared, and shifts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from causal_arrow.errors import BenchmarkError
from causal_arrow.text import counted
from causal_arrow_lab.benchmarks.methods import title_of
from document import Block, Cell, Grid, Paragraph
from suite_pages import STRICT_METHOD, extent, labeled, span, unbroken
from summaries import (
    MEASURES,
    ORACLES,
    Entry,
    MeanEstimate,
    PublishedResults,
    RowSummary,
    Summary,
    best_paired,
    compared_with,
    signed,
)

MAIN_ROWS = {
    ("networks", "ECOLI70"): "Gene network ECOLI70",
    ("networks", "ARTH150"): "Gene network ARTH150",
    ("networks", "MAGIC-NIAB"): "Plant network MAGIC-NIAB",
    ("networks", "MAGIC-IRRI"): "Plant network MAGIC-IRRI",
    ("sachs", "pooled-raw"): "Sachs et al., real cells",
    ("herman", "UUMC"): "Herman et al., simulated",
    ("shifted", "all"): "Small-world, splines, gamma noise",
}
"""The paper's four networks, real cells, coefficients unlike those of training, and a shift; with their titles."""

AS_GIVEN = {("sachs", "pooled-raw"): "given"}
"""Rows shown on the scale as given, which is the paper's protocol."""

ARROW = "arrow"


def entry_with(row: RowSummary, *labels: str) -> Entry | None:
    """The entry with the first of these labels that the row has."""
    return next((entry for label in labels if (entry := labeled(row, label)) is not None), None)


def row_named(summary: Summary, suite: str, row: str) -> RowSummary:
    """The row of this name; BenchmarkError if the records lack it."""
    for member in summary.of_suite(suite):
        if member.row == row:
            return member
    raise BenchmarkError(f"The records lack the row {suite}/{row}.")


def our_entry(row: RowSummary, method: str) -> Entry | None:
    """A network of ours in a row, on the scale that the page shows."""
    scale = AS_GIVEN.get((row.suite, row.row))
    members = [entry for entry in row.entries if entry.variant.method == method]
    return next((entry for entry in members if entry.variant.settings.get("scale") == scale), None)


def has_strict(summary: Summary) -> bool:
    """Whether there are records of arrow-strict."""
    return any(row.entry_of(STRICT_METHOD) for row in summary.rows)


# The main result


def main_rows(summary: Summary) -> list[RowSummary]:
    """The rows of the main result."""
    return [row_named(summary, *names) for names in MAIN_ROWS]


SHOWN = {
    "Arrow": (),
    "FLOP": ("FLOP, better of two", "FLOP"),
    "BOSS": ("BOSS, better of two", "BOSS"),
    "PC": ("PC, better of two", "PC"),
}
"""The columns of the main result, and the labels of their entries: the first that a row has."""


def main_result(summary: Summary, measure: str = "f1") -> Grid:
    """One measure of Arrow, FLOP, BOSS and PC, and of the best other method, in a few rows."""
    lines = []
    for row in main_rows(summary):
        entries = main_entries(row)
        rivals = competing(row)
        best = max((one for one in rivals if one not in entries.values()), key=lambda one: one.estimate(measure).mean)
        *cells, last = _cells([*entries.values(), best], measure, rivals)
        named = replace(last, text=f"{last.text} ({best.variant.label.partition(',')[0]})")
        lines.append((Cell(f"{MAIN_ROWS[row.suite, row.row]}, {observations(row)} rows"), *cells, named))
    return Grid(("Data", *SHOWN, "Best other"), tuple(lines))


def main_entries(row: RowSummary) -> dict[str, Entry | None]:
    """The methods of the main result in a row, by their title."""
    return {
        title: our_entry(row, ARROW) if title == "Arrow" else entry_with(row, *labels)
        for title, labels in SHOWN.items()
    }


def competing(row: RowSummary) -> list[Entry]:
    """The methods that bold compares in a row without Arrow's networks; of two settings the better one."""
    return [
        entry
        for entry in compared_with(row, ARROW)
        if entry.complete
        and len(entry.records) >= row.min_datasets
        and entry.variant.method not in ORACLES
        and not entry.variant.method.startswith(ARROW)
    ]


def _cells(entries: Sequence[Entry | None], measure: str, rivals: Sequence[Entry] = ()) -> list[Cell]:
    """Means, bold for those that no other entry and no rival beats."""
    known = {entry.variant.label: entry for entry in (*entries, *rivals) if entry is not None}
    best = best_paired(known, measure)
    return [
        Cell("–") if entry is None else Cell(mean_of(entry, measure), bold=entry.variant.label in best)
        for entry in entries
    ]


def mean_of(entry: Entry, measure: str) -> str:
    return f"{entry.estimate(measure).mean:.2f}"


def row_title(row: RowSummary) -> str:
    """The name of the row for the command `benchmark`, and the scale if it is fixed."""
    return f"{row.suite}/{row.row}" + (", as given" if (row.suite, row.row) in AS_GIVEN else "")


def observations(row: RowSummary) -> str:
    """The number of observations, or its range."""
    return span(extent(row, "observations"))


def datasets_and_errors(summary: Summary, measure: str = "f1") -> str:
    """A sentence about the numbers of datasets and the standard errors of the main result."""
    found: dict[str, list[Entry]] = {}
    for row in main_rows(summary):
        for label, entry in main_entries(row).items():
            if entry is not None:
                found.setdefault(label, []).append(entry)
    counts = ", ".join(
        f"{label} {span([len(entry.finished) for entry in entries])}" for label, entries in found.items()
    )
    largest = max(entry.estimate(measure).standard_error for entries in found.values() for entry in entries)
    return f"Datasets per row: {counts}. Standard errors are at most {largest:.2f}."


# Accuracy by size

SIZES = (
    *(("small", f"n={n}") for n in (20, 50)),
    *(("in-distribution", f"n={n}") for n in (100, 250, 500, 1000, 2000)),
    *(("long", f"n={n}") for n in (10_000, 100_000)),
    *(("in-distribution", f"p={p}") for p in (5, 10, 25, 50, 100)),
    *(("wide", f"p={p}") for p in (200, 500)),
)
"""Rows of simulated tables of one number of observations or variables."""


def accuracy_by_size(summary: Summary, measure: str = "f1") -> Grid:
    """One measure of Arrow, FLOP and BOSS, by the numbers of observations and variables."""
    titles, lines = ("Arrow", "FLOP", "BOSS"), []
    for row in (row_named(summary, *names) for names in SIZES):
        entries = main_entries(row)
        ours = entries["Arrow"]
        sizes = (Cell(observations(row)), Cell(span(extent(row, "variables"))))
        tables = Cell("–" if ours is None else str(len(ours.finished)))
        lines.append((*sizes, *_cells([entries[title] for title in titles], measure), tables))
    return Grid(("Rows", "Columns", *titles, "Tables"), tuple(lines))


# Three networks


def networks_compared(
    summary: Summary, paper: PublishedResults, rows: Sequence[RowSummary], measure: str = "ap"
) -> list[Block]:
    """The paper's network as published, arrow-strict and arrow-base, in the rows of the paper's tables."""
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
        f"{'Average precision (AP)' if measure == 'ap' else MEASURES[measure].title} in rows of the paper's tables. "
        "The first column, in italics, is what the paper's authors published; the others were measured here."
    )
    shown = [text for name, text in NETWORKS_EXPLAINED.items() if name != "strict" or strict]
    return [Paragraph(explained), Grid(header, tuple(lines)), Paragraph("\n".join(f"- {text}" for text in shown))]


NETWORKS_EXPLAINED = {
    "published": (
        "**Paper's network**: 36.8M parameters, trained by the paper's authors on the paper's tasks with 32 GPUs. "
        "Their published figures, measured on other draws of the data; not run here."
    ),
    "strict": (
        "**arrow-strict**: our encoder (2.3M parameters), trained on the same tasks as the paper's network and nothing "
        "else, with settings fixed beforehand: no choice of its training was made by a benchmark, but the depth of the "
        "encoder, which it shares with arrow-base, was compared on such rows. It fails in ARTH150, where there are "
        "fewer observations than variables. That is a weakness of our encoder, not of the paper's shapes, which hold "
        "hardly any such table either: the partial correlations that our encoder reads saturate there, while the "
        "paper's network, trained on the same shapes, has an AP of 0.36."
    ),
    "base": (
        "**arrow-base**: our encoder, trained on wider tasks that were chosen with the rows networks, sachs and herman "
        "in view, and on tables of every kind. It is the default for every table."
    ),
}


# Which shift hurts most


def shift_blocks(summary: Summary) -> list[Block]:
    """The loss of each network of ours with each shift, and the shift that costs most."""
    lines = []
    for method, changes in _changes_by_shift(summary).items():
        for shift, apart in changes.items():
            lines.append(
                (
                    Cell(network_name(method)),
                    Cell(shift),
                    *(
                        Cell(unbroken(signed(one, name)), bold=abs(one.mean) > 2 * one.standard_error)
                        for name, one in apart.items()
                    ),
                )
            )
    explained = (
        "The change against `none`, with its standard error. Rows of the suite have different datasets, so these "
        "differences are not paired; bold where they are more than two standard errors from zero."
    )
    return [
        Grid(("Network", "Shift", "nSHD ↓", "F1 ↑", "AP ↑"), tuple(lines), text_columns=2),
        Paragraph(explained),
        Paragraph(worst_shifts(summary)),
    ]


def worst_shifts(summary: Summary) -> str:
    """A sentence for each network of ours about the shift that hurts it most, the paper's question."""
    return " ".join(
        _worst_shift(network_name(method), {shift: apart["nshd"] for shift, apart in changes.items()})
        for method, changes in _changes_by_shift(summary).items()
    )


def _changes_by_shift(summary: Summary) -> dict[str, dict[str, dict[str, MeanEstimate]]]:
    """The change of each measure of each network of ours with each shift."""
    rows = {row.row: row for row in summary.of_suite("shifted")}
    networks = [method for method in (ARROW, STRICT_METHOD) if any(row.entry_of(method) for row in rows.values())]
    return {
        method: {
            shift: {name: _change(row, rows["none"], method, name) for name in ("nshd", "f1", "ap")}
            for shift, row in rows.items()
            if shift != "none"
        }
        for method in networks
    }


def _change(row: RowSummary, none: RowSummary, method: str, measure: str) -> MeanEstimate:
    """A network's mean in one row minus that in another, which has other datasets."""
    shifted, plain = (known_entry(one.entry_of(method), one).estimate(measure) for one in (row, none))
    error = math.hypot(shifted.standard_error, plain.standard_error)
    return MeanEstimate(shifted.mean - plain.mean, error, shifted.count)


def _worst_shift(network: str, losses: Mapping[str, MeanEstimate]) -> str:
    """A sentence about the single shift that raises nSHD most, if any does beyond its standard errors."""
    single = {shift: loss for shift, loss in losses.items() if shift != "all"}
    worst = max(single, key=lambda shift: single[shift].mean)
    loss = single[worst]
    if loss.mean > 2 * loss.standard_error:
        found = f"{worst} hurt most: nSHD rises by {loss.mean:.2f} ({loss.standard_error:.2f})"
    elif loss.mean > 0:
        found = f"no single shift raises nSHD by more than two standard errors (largest: {worst}, {_of_nshd(loss)})"
    else:
        found = "no single shift raises nSHD"
    return f"For {network}, {found}; all three together change it by {_of_nshd(losses['all'])}."


def _of_nshd(change: MeanEstimate) -> str:
    return unbroken(signed(change, "nshd"))


def network_name(method: str) -> str:
    """The name of a network."""
    return "arrow-base" if method == ARROW else title_of(method)


def known_entry(entry: Entry | None, row: RowSummary) -> Entry:
    if entry is None:
        raise BenchmarkError(f"The records lack a network of ours in {row.suite}/{row.row}.")
    return entry


# In passing


def sachs_remark(summary: Summary) -> str:
    """A sentence about the row of real cells, with trivial methods that hardly use the table."""
    row = row_named(summary, "sachs", "pooled-raw")
    sorting, random = (mean_of(known_entry(labeled(row, name), row), "f1") for name in ("R² sorting", "Random graph"))
    return (
        f"On the real cells no method does well: merely sorting the columns by R² scores {sorting}, a random graph "
        f"{random}."
    )


def spoken(parts: Sequence[object]) -> str:
    """Join parts for a sentence: "a, b and c"."""
    *most, last = map(str, parts)
    return f"{', '.join(most)} and {last}" if most else last


def counts_of(summaries: Sequence[Summary]) -> str:
    """The numbers of suites, rows, methods and answers."""
    suites = [suite for summary in summaries for suite in summary.suites]
    methods = {variant.method for summary in summaries for variant in summary.variants}
    rows = sum(len(summary.rows) for summary in summaries)
    records = sum(len(entry.records) for summary in summaries for row in summary.rows for entry in row.entries)
    return f"{counted(len(suites), 'suite')}, {counted(rows, 'row')}, {len(methods)} methods, {records:,} answers"


def methods_and_settings(summaries: Sequence[Summary]) -> list[Block]:
    """Every method that was run, with its package and its settings, as a list."""
    lines: dict[str, dict[str, None]] = {}
    for variant in (variant for summary in summaries for variant in summary.variants):
        packages = [f"{name} {version}" for name, version in variant.versions.items() if name != "causal-arrow"]
        settings = [f"{name} = {value}" for name, value in variant.settings.items() if not name.endswith("checksum")]
        parts = [", ".join(part) for part in (packages, settings) if part]
        lines.setdefault(variant.label, {})["; ".join(parts) or "part of this package"] = None
    return [Paragraph("\n".join(f"- **{label}**: {' / '.join(uses)}" for label, uses in lines.items()))]
