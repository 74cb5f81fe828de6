"""`causal-arrow benchmark` and `causal-arrow report`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from causal_arrow.cli.console import PIPED_WIDTH, file, folder, grid
from causal_arrow.errors import BenchmarkError
from causal_arrow.text import listed, visible

if TYPE_CHECKING:
    from causal_arrow.benchmarks.document import Grid
    from causal_arrow.benchmarks.evaluate import Job
    from causal_arrow.benchmarks.methods import Method, MethodOptions
    from causal_arrow.benchmarks.records import Record
    from causal_arrow.benchmarks.suites import Row


def benchmark(
    suites: Annotated[
        list[str] | None,
        typer.Argument(
            help="Suites to run, single rows as SUITE/ROW, or 'all' but the frozen ones. Without any: a list of them.",
            metavar="SUITE",
        ),
    ] = None,
    methods: Annotated[
        str, typer.Option(help="Methods, separated by commas. arrow:PATH takes other weights.")
    ] = "arrow",
    datasets: Annotated[int, typer.Option(min=1, help="Datasets for each row of a suite.")] = 100,
    output: Annotated[
        Path, typer.Option(help="Folder of the records. What is in it already is not run again.", parser=folder)
    ] = Path("benchmark-records"),
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds a method may take for one dataset.")] = 600.0,
    jobs: Annotated[int, typer.Option(min=0, help="Datasets at a time, one core each; 0 takes all cores.")] = 0,
    retry: Annotated[bool, typer.Option("--retry", help="Run again what failed or ran out of time.")] = False,
    weights: Annotated[str | None, typer.Option(help="Weights of arrow: a bundled name, a file or a folder.")] = None,
    device: Annotated[
        str, typer.Option(help="Where arrow runs: cpu, cuda, cuda:1, auto. The other methods have one core.")
    ] = "cpu",
    scale: Annotated[
        Literal["auto", "given", "log"],
        typer.Option(help="How arrow reads skewed positive columns: tried both ways, as given, or their logarithms."),
    ] = "auto",
    avici_weights: Annotated[Path | None, typer.Option(help="Folder with AVICI's weights.")] = None,
    install: Annotated[
        list[str] | None,
        typer.Option(help="Make the environment that a method needs, and run nothing.", metavar="METHOD"),
    ] = None,
    python: Annotated[str | None, typer.Option(help="With --install: the interpreter to build on.")] = None,
    environments: Annotated[Path | None, typer.Option(help="Folder of such environments.")] = None,
) -> None:
    """Run causal discovery methods over benchmark suites. Stop it at any time: the same command goes on."""
    from causal_arrow.benchmarks import environments as isolated
    from causal_arrow.benchmarks.collected import read_records
    from causal_arrow.benchmarks.evaluate import plan, remaining, usable_cores
    from causal_arrow.benchmarks.methods import MethodOptions, prepare
    from causal_arrow.network.devices import resolve_device

    if install:
        for method in install:
            isolated.install(method, environments, python, say=typer.echo)
        return
    if not suites:
        _list_suites_and_methods()
        return
    options = MethodOptions(weights, avici_weights, environments, str(resolve_device(device)), scale)
    rows = select_rows(suites)
    texts = list(dict.fromkeys(text.strip() for text in methods.split(",") if text.strip()))
    prepared = [(text, prepare(text, options, judged_by(rows))) for text in texts]
    records = read_records(output) if output.exists() else []
    planned = plan(rows, prepared, datasets)
    to_do = remaining(planned, records, timeout=timeout, retry=retry)
    typer.echo(
        f"{len(planned)} datasets × methods, {len(planned) - len(to_do)} done before, {len(to_do)} to do "
        f"({len(rows)} rows, {len(prepared)} methods); records in {output}",
        err=True,
    )
    if to_do:
        _run(to_do, len(planned), output, options, timeout, jobs or usable_cores())
    _print_tables(output, rows, prepared)


def report(
    sources: Annotated[
        list[Path],
        typer.Argument(
            metavar="SOURCE...",
            help="Folder written by benchmark, a file of packed records, or the folder of a pretraining run. "
            "Several pretraining runs are compared.",
        ),
    ],
    format: Annotated[
        Literal["markdown", "html"], typer.Option(help="Markdown, or one HTML page with everything in it.")
    ] = "markdown",
    published: Annotated[bool, typer.Option(help="Show the paper's figures beside ours, marked as published.")] = True,
    figures: Annotated[bool, typer.Option(help="Draw figures.")] = True,
    figure_format: Annotated[Literal["png", "svg"], typer.Option(help="Format of the figures.")] = "png",
    output: Annotated[
        Path | None,
        typer.Option(help="Where to write; by default report.md or report.html in the folder.", parser=file),
    ] = None,
    title: Annotated[str | None, typer.Option(help="Title of a report of benchmark records.")] = None,
    note: Annotated[str, typer.Option(help="A paragraph under that title.")] = "",
    pack: Annotated[
        Path | None,
        typer.Option(
            help="Write the records to this .jsonl.gz file, small enough to commit, instead of a report.", parser=file
        ),
    ] = None,
) -> None:
    """Turn benchmark records, or the logs of pretraining runs, into tables and figures."""
    from causal_arrow.benchmarks.collected import read_records
    from causal_arrow.benchmarks.packed import write_packed
    from causal_arrow.benchmarks.report import REPORT_TITLE, write_report
    from causal_arrow.benchmarks.training import is_training_run, write_comparison, write_training_report

    source = sources[0]
    if pack is not None:
        if len(sources) > 1:
            raise BenchmarkError(f"Expected one folder of records to pack, got {len(sources)}.")
        records = read_records(source)
        write_packed(records, pack)
        typer.echo(f"{len(records)} records in {pack.stat().st_size:,} bytes: {pack}")
        return
    if len(sources) > 1:
        written = write_comparison(sources, format=format, figure_format=figure_format, output=output)
    elif is_training_run(source):
        written = write_training_report(source, format=format, figure_format=figure_format, output=output)
    else:
        written = write_report(
            source,
            format=format,
            published=published,
            figures=figures,
            figure_format=figure_format,
            output=output,
            title=one_line(title or "") or REPORT_TITLE,
            note=one_line(note),
        )
    typer.echo(f"Wrote {written}")


def one_line(text: str) -> str:
    """Words of the command line as one line of a document."""
    return " ".join(visible(text).split())


def select_rows(names: Sequence[str]) -> list[Row]:
    """The rows that SUITE, SUITE/ROW and 'all' stand for, each once.

    A frozen suite has to be named, and one that asks for something else than graphs.
    """
    from causal_arrow.benchmarks.suites import SUITES, rows_named

    if "all" in names:
        usual = [name for name, suite in SUITES.items() if not suite.frozen and suite.judged_by == "graphs"]
        names = [*usual, *(name for name in names if name != "all")]
    chosen = [row for name in names for row in rows_named(name)]
    return list({(row.suite, row.name): row for row in chosen}.values())


def judged_by(rows: Sequence[Row]) -> str:
    """What the suites of the rows ask methods for; BenchmarkError if that is not one thing."""
    from causal_arrow.benchmarks.suites import SUITES

    asked = {SUITES[row.suite].judged_by: row.suite for row in rows}
    if len(asked) > 1:
        raise BenchmarkError(
            f"The suites {listed(list(asked.values()))} ask methods for different things: run them one after another."
        )
    return next(iter(asked))


def _list_suites_and_methods() -> None:
    from causal_arrow.benchmarks.methods import METHODS_FOR
    from causal_arrow.benchmarks.suites import SUITES

    typer.echo("Suites:")
    for name, suite in SUITES.items():
        typer.echo(f"  {name:18} {suite.description} ({len(suite.rows())} rows)")
    for asked, methods in METHODS_FOR.items():
        typer.echo("\nMethods:" if asked == "graphs" else f"\nMethods of the suite {asked}:")
        for name, kind in methods.items():
            typer.echo(f"  {name:18} {kind.description}")
    typer.echo("\nFor example: causal-arrow benchmark networks --methods arrow,boss,dagma --datasets 5")


def _run(
    jobs: Sequence[Job], planned: int, output: Path, options: MethodOptions, timeout: float, processes: int
) -> None:
    """Run the jobs under a progress bar, or with a line now and then where there is no terminal."""
    from causal_arrow.benchmarks.evaluate import evaluate
    from causal_arrow.benchmarks.records import RecordWriter, count_by_status
    from causal_arrow.discovery.progress import progress_of

    writer = RecordWriter(output)
    fresh: list[Record] = []

    try:
        with progress_of(len(jobs)) as progress:

            def write(record: Record) -> None:
                writer.write(record)
                fresh.append(record)
                progress.advance(_what(record))

            evaluate(jobs, write, options=options, timeout=timeout, processes=processes)
    except KeyboardInterrupt:
        typer.echo(
            f"\nStopped with {len(jobs) - len(fresh)} of {planned} still to do. Everything so far is in {writer.path}; "
            "the same command goes on from there.",
            err=True,
        )
        raise typer.Exit(130) from None
    finally:
        writer.close()
    counts = count_by_status(fresh)
    if counts["failed"] or counts["timeout"]:
        typer.echo(
            f"{counts['failed']} failed and {counts['timeout']} ran out of time. They are recorded as such, and run "
            "again with --retry (or a larger --timeout).",
            err=True,
        )


def _print_tables(output: Path, rows: Sequence[Row], methods: Sequence[tuple[str, Method]]) -> None:
    """The tables of what was asked for, whenever it was run."""
    from causal_arrow.benchmarks.collected import read_records
    from causal_arrow.benchmarks.document import Grid, Heading, Paragraph
    from causal_arrow.benchmarks.records import identity_of_method
    from causal_arrow.benchmarks.report import suite_blocks
    from causal_arrow.benchmarks.summaries import summarize

    wanted_rows = {(row.suite, row.name) for row in rows}
    wanted_methods = {identity_of_method(method.name, method.settings, method.versions) for _, method in methods}
    records = [
        record
        for record in read_records(output)
        if (record.suite, record.row) in wanted_rows and record.method_identity in wanted_methods
    ]
    summary = summarize(records)
    for suite in summary.suites:
        for block in suite_blocks(summary, suite, None):
            if isinstance(block, Grid):
                _print_table(block)
            elif isinstance(block, Heading):
                typer.echo(f"\n{block.text}")
            elif isinstance(block, Paragraph):
                typer.echo(block.text)
    typer.echo(f"\nMore in a report with figures: causal-arrow report {output}", err=True)


def _print_table(table: Grid) -> None:
    """In bold type on a terminal, as Markdown elsewhere. Lines too long for a screen go on below; no number is cut."""
    from rich.console import Console
    from rich.text import Text

    from causal_arrow.benchmarks.document import markdown_table

    if not sys.stdout.isatty():
        typer.echo(markdown_table(table))
        return
    lines = grid(*table.header, right=table.header[table.text_columns :])
    for row in table.rows:
        lines.add_row(*(Text(cell.text, style="bold" if cell.bold else "") for cell in row))
    Console(width=PIPED_WIDTH, highlight=False).print(lines)


def _what(record: Record) -> str:
    endings = {"ok": f"{record.seconds or 0:.2f} s", "failed": "failed", "timeout": "out of time"}
    return f"{record.suite}/{record.row} #{record.index} {record.method} {endings[record.status]}"


EXAMPLES = {
    "benchmark": """
**Examples**

`causal-arrow benchmark networks --methods arrow,boss,dagma --datasets 5`

`causal-arrow benchmark shifted/all herman --methods arrow:runs/base/weights,arrow --output results`

`causal-arrow benchmark discrete/ALARM-2000 missing --methods arrow,boss-indicators,hc-bic,boss-imputed --datasets 5`

`causal-arrow benchmark sachs --scale given`

`causal-arrow benchmark all --device cuda`

`causal-arrow benchmark effects --methods arrow,true-graph,dowhy,ida-pc,regression --datasets 50`

`causal-arrow benchmark experiments --methods arrow,chance,degree --datasets 50`

`causal-arrow benchmark --install sdcd`
""",
    "report": """
**Examples**

`causal-arrow report results --format html`

`causal-arrow report results --title "Tables of every kind" --no-figures`

`causal-arrow report results --pack results.jsonl.gz`

`causal-arrow report runs/base`

`causal-arrow report runs/base runs/deeper --output comparison.md`
""",
}
