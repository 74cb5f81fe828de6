"""Reports of records or of training runs: `python docs/tools/report.py records`.

A report of records has the tables, remarks and figures of the pages of evidence, for whatever suites there are.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from calibration_tables import calibration_errors
from causal_arrow.errors import BenchmarkError
from causal_arrow_lab.benchmarks.records import Record, read_records, write_packed
from causal_arrow_lab.programs import run_program
from document import Block, Heading, Paragraph, Picture, write_blocks
from overview import methods_and_settings
from remarks import circumstances
from suite_pages import suite_page
from summaries import Summary, differing_datasets, published_results, reliability_by_method, summarize


def write_report(source: Path, *, figures: bool = True, figure_format: str = "png", output: Path | None = None) -> Path:
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
    blocks: list[Block] = [Heading("Benchmark report", 1), *circumstances(records)]
    if different := differing_datasets(records):
        suite, row, index = different[0]
        blocks.append(
            Paragraph(
                f"Warning: in {len(different)} cases methods did not see the same dataset (first: {suite}, {row}, "
                f"number {index}). Records of different versions of torch are mixed; run the older ones again."
            )
        )
    blocks += [Heading("Methods"), *methods_and_settings([summary])]
    for suite in summary.suites:
        page = suite_page(summary, suite, paper=published_results(), pictures=pictures.get(suite, ()))
        blocks += [replace(block, level=block.level + 1) if isinstance(block, Heading) else block for block in page]
    if any(reliability_by_method(summary, suite) for suite in summary.suites):
        blocks += [Heading("Calibration"), *calibration_errors(summary), *pictures.get("calibration", [])]
    return blocks


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
