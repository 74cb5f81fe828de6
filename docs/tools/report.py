"""Tables and figures from benchmark records, or from logs of pretraining: `python docs/tools/report.py SOURCE`.

A report of records has the paper's tables, calibration, failures and figures. Several pretraining runs are compared.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from causal_arrow.errors import BenchmarkError
from causal_arrow_lab.benchmarks.records import Record, identity_of_method, read_records, write_packed
from causal_arrow_lab.benchmarks.suites import SUITES
from causal_arrow_lab.graphs.calibration import CALIBRATION_BINS, CALIBRATION_FLOOR
from causal_arrow_lab.programs import run_program
from document import (
    Block,
    Cell,
    Grid,
    Heading,
    Paragraph,
    Picture,
    write_blocks,
)
from remarks import (
    HOW_TO_READ,
    STEERED,
    asked_for,
    circumstances,
    development_remarks,
    readings,
    remarks_of_suite,
)
from summaries import (
    BETTER_OF,
    DEVELOPMENT,
    FURTHER_MEASURES,
    MEASURES,
    PAPER_MEASURES,
    Entry,
    MeanEstimate,
    PublishedResults,
    RowSummary,
    Summary,
    differing_datasets,
    format_estimate,
    measures_of_suite,
    only_empty,
    paired_difference,
    published_results,
    reliability_by_method,
    summarize,
    title_of_measure,
)

# The same network with different rules: these do not compete with each other.
ARROWS = ("arrow", "arrow-shd", "arrow-f1", "arrow-tempered", "arrow-unmarked")


def write_report(
    source: Path,
    *,
    figures: bool = True,
    figure_format: str = "png",
    output: Path | None = None,
) -> Path:
    """Write the report of a folder or file of records, with a folder of figures, and return its path."""
    records = read_records(source)
    if not records:
        raise BenchmarkError(
            f"There are no benchmark records in {source}. Make some with: causal-arrow-lab benchmark SUITE"
        )
    output = output or (source if source.is_dir() else source.parent) / "report.md"
    summary = summarize(records)
    pictures = _draw(summary, output, figure_format) if figures else {}
    return write_blocks(report_blocks(records, summary, pictures), output)


def report_blocks(
    records: Sequence[Record], summary: Summary, pictures: Mapping[str, Sequence[Picture]]
) -> list[Block]:
    """The whole document. `pictures` are the figures of each suite."""
    blocks: list[Block] = [
        Heading("Benchmark report", 1),
        *circumstances(records),
        *(Paragraph(text) for asked in asked_for(summary) for text in HOW_TO_READ[asked]),
        *development_remarks(summary),
        Heading("Methods"),
        _methods_table(summary, records),
    ]
    if different := differing_datasets(records):
        suite, row, index = different[0]
        blocks.append(
            Paragraph(
                f"Warning: in {len(different)} cases methods did not see the same dataset (first: {suite}, {row}, "
                f"number {index}). Records of different versions of torch are mixed; run the older ones again."
            )
        )
    for suite in summary.suites:
        blocks += suite_blocks(summary, suite, published_results())
        blocks += pictures.get(suite, [])
        blocks += paired_blocks(summary, suite)
        blocks += _further_blocks(summary, suite)
    blocks += _calibration(summary)
    blocks += pictures.get("calibration", [])
    blocks += _failures(records)
    return blocks


def suite_blocks(summary: Summary, suite: str, paper: PublishedResults | None) -> list[Block]:
    """Title, main table and remarks of one suite."""
    rows = summary.of_suite(suite)
    without_edges = only_empty(rows)
    names = measures_of_suite(suite, without_edges)
    lines = [line for row in rows for line in _lines_of_row(row, names, paper)]
    arrows = {True: " ↓", False: " ↑", None: ""}
    header = tuple(title_of_measure(name, without_edges) + arrows[MEASURES[name].lower_is_better] for name in names)
    blocks: list[Block] = [Heading(suite)]
    if suite in SUITES:
        blocks.append(Paragraph(f"{SUITES[suite].description}."))
        if SUITES[suite].steered:
            blocks.append(Paragraph(STEERED))
    blocks.append(Grid(("Data", "Method", *header, "Datasets"), tuple(lines), text_columns=2))
    blocks += [Paragraph(remark) for remark in remarks_of_suite(rows, without_edges, paper)]
    if read := readings(rows):
        blocks.append(Paragraph(f"How tables were read: {read}."))
    return blocks


def _lines_of_row(row: RowSummary, names: Sequence[str], paper: PublishedResults | None) -> list[tuple[Cell, ...]]:
    best = {name: row.best(name) for name in names}
    lines = [
        (
            Cell(entry.variant.label),
            *(
                Cell(format_estimate(entry.estimate(name), name), bold=entry.variant.label in best[name])
                for name in names
            ),
            Cell(entry.describe_datasets()),
        )
        for entry in row.entries
    ]
    table = None if paper is None else paper.table(row.suite, row.row)
    if table is not None:
        lines += [
            (
                Cell(f"{method}, published", italic=True),
                *(
                    Cell(f"{figures[name][0]:.2f} ({figures[name][1]:.2f})", italic=True)
                    if name in figures
                    else Cell("")
                    for name in names
                ),
                Cell(str(table.datasets), italic=True),
            )
            for method, figures in table.methods.items()
        ]
    return [(Cell(row.row if number == 0 else ""), *line) for number, line in enumerate(lines)]


def paired_blocks(summary: Summary, suite: str) -> list[Block]:
    """Arrow minus each other method, the better of two settings, on the datasets that both answered."""
    shown = SUITES[suite].shown if suite in SUITES else PAPER_MEASURES
    names = [name for name in shown if name != "seconds" and MEASURES[name].lower_is_better is not None]
    lines = []
    for row in summary.of_suite(suite):
        arrow = row.entry_of("arrow")
        for number, other in enumerate(compared_with(row, "arrow") if arrow is not None else []):
            assert arrow is not None
            apart = [paired_difference(arrow, other, name) for name in names]
            cells = (
                Cell(signed(one, name), bold=abs(one.mean) > 2 * one.standard_error)
                for one, name in zip(apart, names, strict=True)
            )
            label = f"Arrow − {other.variant.label}"
            lines.append((Cell(row.row if number == 0 else ""), Cell(label), *cells))
    if not lines:
        return []
    if all(not any(char.isdigit() for char in cell.text) for line in lines for cell in line[2:]):
        return []  # all true graphs are empty
    titles = ("Squared error" if MEASURES[name].root else MEASURES[name].title for name in names)
    header = ("Data", "Methods", *titles)
    explained = Paragraph("On the datasets that both answered; bold where more than two standard errors apart.")
    return [Heading(f"{suite}: paired differences", 3), explained, Grid(header, tuple(lines), text_columns=2)]


def compared_with(row: RowSummary, ours: str) -> list[Entry]:
    """The methods that one of our networks is compared with: the others, the better of two settings."""
    doubled = {method for name, (_, methods) in BETTER_OF.items() if row.entry_of(name) for method in methods}
    same = set(ARROWS) if ours in ARROWS else {ours, *ARROWS[1:]}
    return [entry for entry in row.entries if entry.variant.method not in same | doubled]


def signed(difference: MeanEstimate, measure: str) -> str:
    """Format a difference with its sign and its standard error, with at least two decimals."""
    text = format_estimate(difference, measure, min_decimals=2)
    return f"+{text}" if difference.mean > 0 else text.replace("-", "−")


def _further_blocks(summary: Summary, suite: str) -> list[Block]:
    rows = summary.of_suite(suite)
    shown = SUITES[suite].shown if suite in DEVELOPMENT else ()
    names = [
        name
        for name in FURTHER_MEASURES
        if name not in shown and any(entry.estimate(name).count for row in rows for entry in row.entries)
    ]
    if not names:
        return []
    lines = []
    for row in rows:
        best = {name: row.best(name) for name in names}
        entries = [entry for entry in row.entries if entry.variant.method not in BETTER_OF]
        for number, entry in enumerate(entries):
            cells = (
                Cell(format_estimate(entry.estimate(name), name), bold=entry.variant.label in best[name])
                for name in names
            )
            lines.append((Cell(row.row if number == 0 else ""), Cell(entry.variant.label), *cells))
    header = ("Data", "Method", *(MEASURES[name].title for name in names))
    return [Heading(f"{suite}: further measures", 3), Grid(header, tuple(lines), text_columns=2)]


def _methods_table(summary: Summary, records: Sequence[Record]) -> Grid:
    counts = Counter((record.method_identity, record.status) for record in records)
    lines = []
    for variant in summary.variants:
        identity = identity_of_method(variant.method, variant.settings, variant.versions)
        settings = ", ".join(f"{name}={value}" for name, value in variant.settings.items()) or "–"
        versions = ", ".join(f"{name} {version}" for name, version in variant.versions.items())
        numbers = (counts[identity, status] for status in ("ok", "failed", "timeout"))
        lines.append((Cell(variant.label), Cell(versions), Cell(settings), *(Cell(str(number)) for number in numbers)))
    return Grid(("Method", "Versions", "Settings", "Answered", "Failed", "Timed out"), tuple(lines), text_columns=3)


def _failures(records: Iterable[Record]) -> list[Block]:
    unfinished = Counter(
        (record.suite, record.method, record.status, record.error or "") for record in records if record.status != "ok"
    )
    if not unfinished:
        return []
    lines = tuple(
        (Cell(suite), Cell(method), Cell(error), Cell(str(count)))
        for (suite, method, _, error), count in unfinished.most_common()
    )
    return [Heading("What failed"), Grid(("Suite", "Method", "Reason", "Datasets"), lines, text_columns=3)]


# Calibration


def _calibration(summary: Summary) -> list[Block]:
    """Expected calibration errors by suite, and shares of true edges by probability."""
    bins = []
    for suite in summary.suites:
        for label, table in reliability_by_method(summary, suite).items():
            cells = (
                Cell("–" if math.isnan(frequency) else f"{mean:.2f} → {frequency:.2f}")
                for mean, frequency in zip(table.mean_probability, table.edge_frequency, strict=True)
            )
            bins.append((Cell(suite), Cell(label), *cells))
    if not bins:
        return []
    count = CALIBRATION_BINS
    ranges = tuple(f"{bin / count:.1f}–{(bin + 1) / count:.1f}" for bin in range(count))
    return [
        Heading("Calibration"),
        *calibration_errors(summary),
        Paragraph("Mean probability → share of true edges, by probability:"),
        Grid(("Suite", "Method", *ranges), tuple(bins), text_columns=2),
    ]


def calibration_errors(summary: Summary) -> list[Block]:
    """Expected calibration errors of the probabilities of directed edges by suite and method."""
    errors = []
    for suite in summary.suites:
        above_floor = reliability_by_method(summary, suite, "reliability_above_floor")
        for label, table in reliability_by_method(summary, suite).items():
            errors.append(
                (
                    Cell(suite),
                    Cell(label),
                    Cell(f"{table.expected_calibration_error:.4f}"),
                    Cell(_number(above_floor[label].expected_calibration_error)),
                    Cell(f"{table.pairs.sum():,.0f}"),
                    Cell(f"{above_floor[label].pairs.sum():,.0f}"),
                )
            )
    return [
        Paragraph(
            "The expected calibration error of the probabilities of directed edges, over the ordered pairs of all "
            "datasets of a suite together: all of them, and those with a probability of at least "
            f"{CALIBRATION_FLOOR}."
        ),
        Grid(("Suite", "Method", "ECE", "ECE above 0.05", "Pairs", "Pairs above 0.05"), tuple(errors), text_columns=2),
    ]


def _number(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.4f}"


def _draw(summary: Summary, output: Path, figure_format: str) -> dict[str, list[Picture]]:
    """Write all figures next to the report, and return them by suite, or "calibration"."""
    from figures import benchmark_figures, save_figure

    folder = output.parent / f"{output.stem}-figures"
    pictures: dict[str, list[Picture]] = {}
    for figure in benchmark_figures(summary):
        path = folder / f"{figure.name}.{figure_format}"
        save_figure(figure.draw(), path)
        pictures.setdefault(figure.section, []).append(Picture(path, figure.caption))
    return pictures


# The program


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition(":")[0])
    parser.add_argument(
        "sources",
        nargs="+",
        type=Path,
        help="a folder written by causal-arrow-lab benchmark, a file of packed records, or folders of pretraining runs",
    )
    parser.add_argument("--no-figures", dest="figures", action="store_false", help="draw no figures")
    parser.add_argument("--figure-format", choices=("png", "svg"), default="png", help="format of the figures [png]")
    parser.add_argument("--output", type=Path, help="where to write [report.md in the folder]")
    parser.add_argument(
        "--pack", type=Path, help="write the records to this .jsonl.gz file, small enough to commit, and no report"
    )
    return run_program(parser, run, arguments)


def run(options: argparse.Namespace) -> None:
    """Write what was asked for and say where it is."""
    from training_report import is_training_run, write_comparison, write_training_report

    source: Path = options.sources[0]
    look = {"figure_format": options.figure_format, "output": options.output}
    if options.pack is not None:
        if len(options.sources) > 1:
            raise BenchmarkError(f"Expected one folder of records to pack, got {len(options.sources)}.")
        records = read_records(source)
        write_packed(records, options.pack)
        print(f"{len(records)} records in {options.pack.stat().st_size:,} bytes: {options.pack}")
        return
    if len(options.sources) > 1:
        written = write_comparison(options.sources, **look)
    elif is_training_run(source):
        written = write_training_report(source, **look)
    else:
        written = write_report(source, figures=options.figures, **look)
    print(f"Wrote {written}")


if __name__ == "__main__":
    sys.exit(main())
