"""Pages of suites: narrow tables of one measure each, and the same numbers as a CSV file.

Methods are lines and the rows of the suite are columns, at most five of them in a table; a panel with many rows is
transposed.
"""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import TypeVar

from about_suites import ABOUT, MEASURES_EXPLAINED, About, role_of
from causal_arrow.text import counted
from causal_arrow_lab.benchmarks.methods import title_of
from causal_arrow_lab.benchmarks.records import Record
from causal_arrow_lab.benchmarks.suites import SUITES
from document import Block, Cell, Grid, Heading, Paragraph, Picture
from figures import benchmark_figures
from remarks import readings, remarks_of_suite
from summaries import (
    ARROWS,
    BETTER_OF,
    INSTANT,
    MEASURES,
    Entry,
    PublishedResults,
    PublishedTable,
    RowSummary,
    Summary,
    compared_with,
    format_estimate,
    measures_of_suite,
    paired_difference,
    signed,
    title_of_measure,
)

MAX_COLUMNS = 5
"""Columns after the first: a wider table does not fit the site."""
MAX_ROWS_ACROSS = 10
"""Rows of a panel that become columns, in at most two tables; of a larger panel, methods become columns."""

STRICT_METHOD = "arrow:arrow-strict"
RANKED_BY_WEIGHTS = ("dagma", "sdcd")

T = TypeVar("T")
CellOf = Callable[[RowSummary, str], Cell]


def suite_page(
    summary: Summary,
    suite: str,
    *,
    csv_file: str | None = None,
    protocol: str | None = None,
    paper: PublishedResults | None = None,
    on_gpu: Summary | None = None,
    pictures: Sequence[Picture] = (),
    extra: Sequence[Block] = (),
) -> list[Block]:
    """The page of a suite, with links to its CSV file and to the protocol where they are.

    `extra` comes before the tables, `on_gpu` holds the same methods timed on a GPU.
    """
    rows = summary.of_suite(suite)
    only_empty = all(entry.empty_truths == len(entry.finished) for row in rows for entry in row.entries)
    names = [name for name in measures_of_suite(suite, only_empty) if name != "seconds"]
    return [
        *_introduction(rows, suite, csv_file, protocol),
        *extra,
        *(block for name in names for block in _measure(rows, name, only_empty)),
        *(Paragraph(remark) for remark in remarks_of_suite(rows, only_empty)),
        *_readings(rows),
        *_figures(pictures),
        *_paired(rows, [name for name in names if MEASURES[name].lower_is_better is not None], only_empty),
        *_times(rows, on_gpu.of_suite(suite) if on_gpu is not None else []),
        *_published(rows, paper),
        *_datasets(rows),
    ]


def pictures_of(summary: Summary, suite: str, folder: Path) -> dict[str, Picture]:
    """The figures of a suite by the name of their plan, whether they were drawn already or not."""
    return {
        plan.name: Picture(folder / f"{plan.name}.png", plan.caption)
        for plan in benchmark_figures(summary)
        if plan.section == suite
    }


# Parts of the page


def _introduction(rows: Sequence[RowSummary], suite: str, csv_file: str | None, protocol: str | None) -> list[Block]:
    about = ABOUT[suite] if suite in ABOUT else About(suite, "A suite that this version does not know.")
    with_strict = any(row.entry_of(STRICT_METHOD) for row in rows)
    methods = dict.fromkeys(entry.records[0].method for row in rows for entry in row.entries)
    named = [method for method in methods if method not in (*ARROWS[1:], *INSTANT)]
    known = SUITES.get(suite)
    names = " The network called Arrow is arrow-base." if protocol and known and known.judged_by == "graphs" else ""

    def link(text: str, part: str) -> str:
        return f"[{text}]({protocol}#{part})" if protocol else text

    csv_link = f"[All measures as CSV]({csv_file}) · " if csv_file else ""
    return [
        Heading(about.title, 1),
        Paragraph(about.text),
        Paragraph(role_of(suite, with_strict)),
        *(_what_was_run(rows) if known and known.frozen else []),
        Paragraph(
            f"{_shapes(rows)} Entries are means over datasets, with the "
            f"{link('standard error', 'pairing-and-standard-errors')} in parentheses; {link('bold', 'bold')} marks the "
            f"best; {link('how answers are scored', 'measures')}.{names}"
        ),
        Paragraph(
            f"{csv_link}repeat with `causal-arrow-lab benchmark {suite} --methods {','.join(named[:3])} --datasets 5`"
        ),
    ]


def _what_was_run(rows: Sequence[RowSummary]) -> list[Block]:
    """The version, weights and dates of each method of ours."""
    records: dict[str, list[Record]] = {}
    for entry in (entry for row in rows for entry in row.entries if "causal-arrow" in entry.variant.versions):
        records.setdefault(entry.variant.label, []).extend(entry.records)
    lines = []
    for label, members in records.items():
        facts = [f"causal-arrow {members[0].versions['causal-arrow']}"]
        settings = members[0].settings
        if "weights" in settings:
            facts.append(f"weights {settings['weights']} (checksum {settings['weights_checksum']})")
        if days := sorted({str(record.run["date"]) for record in members if "date" in record.run}):
            facts.append(f"run on {' to '.join(dict.fromkeys((days[0], days[-1])))}")
        lines.append(f"- {label}: {', '.join(facts)}")
    return [Paragraph("\n".join(lines))] if lines else []


def _shapes(rows: Sequence[RowSummary]) -> str:
    """A sentence about the shapes of the tables."""
    answered = [row for row in rows if any(entry.finished for entry in row.entries)]
    parts = [
        f"{span([count for row in answered for count in extent(row, name)])} {name}"
        for name in ("observations", "variables")
        if answered
    ]
    return f"Tables have {' and '.join(parts)}." if parts else "No method answered."


def _measure(rows: Sequence[RowSummary], name: str, only_empty: bool) -> list[Block]:
    """One measure of all methods in all rows."""
    best = {row.row: row.best(name) for row in rows}

    def cell(row: RowSummary, label: str) -> Cell:
        entry = labeled(row, label)
        text = "" if entry is None else unbroken(format_estimate(entry.estimate(name), name))
        return Cell(text, bold=bool(text) and label in best[row.row])

    better = {True: " (lower is better)", False: " (higher is better)", None: ""}[MEASURES[name].lower_is_better]
    title = title_of_measure(name, only_empty)
    plain = title == MEASURES[name].title and name in MEASURES_EXPLAINED
    explained = [Paragraph(MEASURES_EXPLAINED[name])] if plain else []
    return [Heading(title + better), *explained, *narrow_tables(rows, labels_of(rows), cell)]


def _readings(rows: Sequence[RowSummary]) -> list[Block]:
    read = readings(rows)
    return [Paragraph(f"How tables were read: {read}.")] if read else []


def _figures(pictures: Sequence[Picture]) -> list[Block]:
    return [Heading("Figures"), *pictures] if pictures else []


def _paired(rows: Sequence[RowSummary], names: Sequence[str], only_empty: bool) -> list[Block]:
    """Arrow, and arrow-strict where it was run, minus each other method on common datasets."""
    blocks: list[Block] = []
    for ours in ("arrow", STRICT_METHOD):
        if not any(row.entry_of(ours) for row in rows):
            continue
        for name in names:
            tables = narrow_tables(rows, _others(rows, ours), _difference(ours, name), corner=f"{title_of(ours)} minus")
            if any(
                char.isdigit() for table in tables for line in table.rows for cell in line[1:] for char in cell.text
            ):
                what = "squared error" if MEASURES[name].root else title_of_measure(name, only_empty)
                blocks += [Heading(f"{title_of(ours)} minus others: {what}", 3), *tables]
    if not blocks:
        return []
    explained = Paragraph(
        "On the datasets that both methods answered, with the standard error of the difference; bold where it is more "
        "than two standard errors from zero."
    )
    return [Heading("Paired differences"), explained, *blocks]


def _others(rows: Sequence[RowSummary], ours: str) -> list[str]:
    return list(dict.fromkeys(entry.variant.label for row in rows for entry in compared_with(row, ours)))


def _difference(ours: str, name: str) -> CellOf:
    def cell(row: RowSummary, label: str) -> Cell:
        entry, other = row.entry_of(ours), labeled(row, label)
        if entry is None or other is None:
            return Cell("")
        apart = paired_difference(entry, other, name)
        if math.isnan(apart.mean):
            return Cell("")
        return Cell(unbroken(signed(apart, name)), bold=abs(apart.mean) > 2 * apart.standard_error)

    return cell


def _times(rows: Sequence[RowSummary], on_gpu: Sequence[RowSummary]) -> list[Block]:
    """Median seconds for one table, without methods that do not look at it."""
    on_core: dict[str, dict[str, Entry]] = {}
    faster: dict[str, dict[str, Entry]] = {}
    for row in (*rows, *on_gpu):
        for entry in row.entries:
            if "device" in entry.variant.settings:
                faster.setdefault(row.row, {})[_on_gpu(entry)] = entry
            elif entry.variant.method not in INSTANT:
                on_core.setdefault(row.row, {})[entry.variant.label] = entry
    names = dict.fromkeys(label for entries in on_core.values() for label in entries)
    devices = dict.fromkeys(label for entries in faster.values() for label in entries)
    labels = sorted((*names, *devices), key=lambda label: not label.startswith(("Arrow", "arrow-")))

    def cell(row: RowSummary, label: str) -> Cell:
        entry = faster.get(row.row, {}).get(label) or on_core.get(row.row, {}).get(label)
        seconds = [] if entry is None else [value for value in entry.values("seconds") if not math.isnan(value)]
        return Cell(short_seconds(median(seconds)) if seconds else "")

    tables = narrow_tables(rows, labels, cell)
    if not tables:
        return []
    where = "on one core of a processor" + (", or on the named GPU" if devices else "")
    return [Heading("Time"), Paragraph(f"Median seconds for one table, {where}."), *tables]


def _on_gpu(entry: Entry) -> str:
    """A method with the GPU it ran on."""
    machine = entry.records[0].run.get("machine", {})
    return f"{title_of(entry.variant.method)}, {machine.get('gpu', 'on a GPU')}"


def _published(rows: Sequence[RowSummary], paper: PublishedResults | None) -> list[Block]:
    """The paper's figures in separate tables, and AP of the thresholded graphs of weighted methods."""
    tables = {row.row: paper.table(row.suite, row.row) for row in rows} if paper is not None else {}
    known = {row: table for row, table in tables.items() if table is not None}
    if paper is None or not known:
        return []
    shown = [row for row in rows if row.row in known]
    blocks: list[Block] = [
        Heading("As published"),
        Paragraph(
            f"Figures of {paper.authors[0]} et al., {paper.title}: measured by its authors, on other draws of the data "
            f"and on their machine ({paper.hardware}). They are not comparable in time, and take no part in bold above."
        ),
    ]
    for name in ("nshd", "f1", "ap", "seconds"):
        methods = list(dict.fromkeys(method for table in known.values() for method in table.methods))
        blocks += [
            Heading(f"{MEASURES[name].title}, published", 3),
            *narrow_tables(shown, methods, _published_cell(known, name), corner="Published"),
        ]
    return [*blocks, *_graph_ap(shown)]


def _published_cell(tables: dict[str, PublishedTable], name: str) -> CellOf:
    def cell(row: RowSummary, method: str) -> Cell:
        figures = tables[row.row].methods.get(method, {})
        return Cell(
            unbroken(f"{figures[name][0]:.2f} ({figures[name][1]:.2f})") if name in figures else "", italic=True
        )

    return cell


def _graph_ap(rows: Sequence[RowSummary]) -> list[Block]:
    """AP of the thresholded graphs of methods with weights, which is what the paper scores."""
    labels = [
        label
        for label in labels_of(rows)
        if any(entry.variant.method in RANKED_BY_WEIGHTS for row in rows if (entry := labeled(row, label)) is not None)
    ]

    def cell(row: RowSummary, label: str) -> Cell:
        entry = labeled(row, label)
        return Cell("" if entry is None else unbroken(format_estimate(entry.estimate("graph_ap"), "graph_ap")))

    tables = narrow_tables(rows, labels, cell)
    if not tables:
        return []
    explained = (
        "For AP we rank the edges of these methods by their weights, which is kinder than the paper: its figures are "
        "of the thresholded graph alone, where every edge counts the same. Our runs scored that way:"
    )
    return [Heading("AP of the thresholded graph, measured here", 3), Paragraph(explained), *tables]


def _datasets(rows: Sequence[RowSummary]) -> list[Block]:
    """The number of datasets behind each mean, and the failures."""

    def cell(row: RowSummary, label: str) -> Cell:
        entry = labeled(row, label)
        return Cell("" if entry is None else entry.describe_datasets())

    reasons = Counter(
        (entry.variant.label, record.error or record.status)
        for row in rows
        for entry in row.entries
        for record in (entry.records if entry.variant.method not in BETTER_OF else ())
        if record.status != "ok"
    )
    failures = [
        Paragraph(
            "\n".join(f"- {label}, {counted(count, 'dataset')}: {why}" for (label, why), count in reasons.items())
        )
    ]
    return [
        Heading("Datasets and failures"),
        Paragraph("Datasets per method and row."),
        *narrow_tables(rows, labels_of(rows), cell),
        *(failures if reasons else [Paragraph("No method failed or ran out of time.")]),
    ]


# Tables that fit


def narrow_tables(
    rows: Sequence[RowSummary], labels: Sequence[str], cell: CellOf, corner: str = "Method"
) -> list[Grid]:
    """Tables of methods by rows, at most MAX_COLUMNS rows in each; transposed for a panel with many rows."""
    tables = []
    for group in _groups(rows):
        named = {row.row: row for row in group}
        if len(group) > MAX_ROWS_ACROSS:
            used = [label for label in labels if any(cell(row, label).text for row in group)]
            tables += [
                _table(
                    "Data", [[Cell(name), *(cell(row, label) for label in part)] for name, row in named.items()], part
                )
                for part in even_parts(used)
            ]
        else:
            tables += [
                _table(corner, [[Cell(label), *(cell(named[name], label) for name in part)] for label in labels], part)
                for part in even_parts(list(named))
            ]
    return [table for table in tables if table.rows]


def _table(corner: str, lines: Sequence[Sequence[Cell]], columns: Sequence[str]) -> Grid:
    """A table without empty lines."""
    return Grid((corner, *columns), tuple(tuple(line) for line in lines if any(cell.text for cell in line[1:])))


def _groups(rows: Sequence[RowSummary]) -> list[list[RowSummary]]:
    """The rows of each table: panels, with small neighbors together as long as they fit."""
    groups: list[list[RowSummary]] = []
    for panel in dict.fromkeys(row.panel for row in rows):
        members = [row for row in rows if row.panel == panel]
        if groups and len(groups[-1]) + len(members) <= MAX_COLUMNS:
            groups[-1] += members
        else:
            groups.append(members)
    return groups


def even_parts(members: Sequence[T]) -> list[Sequence[T]]:
    """The members in order, in as few parts of at most MAX_COLUMNS as possible, of nearly equal size."""
    parts = -(-len(members) // MAX_COLUMNS)
    ends = [round(number * len(members) / parts) for number in range(parts + 1)] if parts else []
    return [members[start:end] for start, end in pairwise(ends)]


def labels_of(rows: Iterable[RowSummary]) -> list[str]:
    """The methods of these rows, each once."""
    return list(dict.fromkeys(entry.variant.label for row in rows for entry in row.entries))


def labeled(row: RowSummary, label: str) -> Entry | None:
    """The entry with this label."""
    return next((entry for entry in row.entries if entry.variant.label == label), None)


def extent(row: RowSummary, name: str) -> tuple[int, int]:
    """The smallest and the largest of a number of the datasets, such as observations."""
    finished = [record for entry in row.entries for record in entry.finished]
    counts = [record.dataset[name] for record in finished if name in record.dataset]
    return min(counts, default=0), max(counts, default=0)


def span(counts: Sequence[int]) -> str:
    """Describe the range of numbers as "2 to 5", or as one number."""
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def short_seconds(seconds: float) -> str:
    """Format seconds with about two digits."""
    return f"{seconds:.3f}" if seconds < 0.1 else f"{seconds:.2f}" if seconds < 10 else f"{seconds:,.0f}"


def unbroken(text: str) -> str:
    """Keep a mean and its standard error on one line."""
    return text.replace(" ", "\u00a0")


# The CSV file

CSV_COLUMNS = (
    *("suite", "row", "method", "measure"),
    *("mean", "standard_error", "median", "datasets"),
    *("n_min", "n_max", "p_min", "p_max"),
)


def suite_csv(summary: Summary, suite: str, on_gpu: Summary | None = None) -> str:
    """One line per row, method and measure."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for source, names in ((summary, tuple(MEASURES)), (on_gpu, ("seconds",))):
        for row in source.of_suite(suite) if source is not None else []:
            for entry in row.entries:
                label = entry.variant.label if source is summary else _on_gpu(entry)
                shape = (*extent(row, "observations"), *extent(row, "variables"))
                lines = ((name, _numbers(entry, name)) for name in names)
                writer.writerows((suite, row.row, label, name, *numbers, *shape) for name, numbers in lines if numbers)
    return text.getvalue()


def _numbers(entry: Entry, name: str) -> tuple[str, str, str, int] | None:
    """Mean, standard error, median and number of datasets; None where the measure is undefined."""
    values = [value for value in entry.values(name) if not math.isnan(value)]
    if not values:
        return None
    estimate = entry.estimate(name)
    middle = math.sqrt(median(values)) if MEASURES[name].root else median(values)
    return _digits(estimate.mean), _digits(estimate.standard_error), _digits(middle), len(values)


def _digits(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.6g}"
