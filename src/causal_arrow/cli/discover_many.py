"""`causal-arrow discover-many`: the causal graphs of many tables, on this machine or on a cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from causal_arrow.cli import options
from causal_arrow.cli.console import console, folder
from causal_arrow.cli.discover import read_knowledge
from causal_arrow.network.bundled import DEFAULT_MODEL
from causal_arrow.text import counted

if TYPE_CHECKING:
    from causal_arrow.discovery.many.run import ManyWork

MOST_FAILURES = 20
"""That the summary lists one by one."""


def discover_many(
    tables: Annotated[
        list[Path],
        typer.Argument(
            metavar="TABLES...",
            help="Files with tables, folders of them, or one manifest: a CSV or JSON file with a field 'table' and, "
            "where tables need them, settings of their own.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="Folder for the answers. What is in it already is not done again.",
            parser=folder,
            show_default=False,
        ),
    ],
    as_json: options.AsJson = False,
    retry: Annotated[bool, typer.Option("--retry", help="Also do again what failed before.")] = False,
    backend: options.Backend = "loky",
    jobs: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="How many processes; by default as many as there are cores and as fit into memory.",
            rich_help_panel=options.WORK_PANEL,
            show_default=False,
        ),
    ] = None,
    cluster: options.Cluster = None,
    model: options.Model = DEFAULT_MODEL,
    decode: options.Decode = "map",
    threshold: options.Threshold = 0.5,
    scale: options.Scale = "auto",
    observations: options.Observations = None,
    device: options.Device = "auto",
    precision: options.Precision = "auto",
    require: options.Require = None,
    forbid: options.Forbid = None,
    tiers: options.Tiers = None,
    knowledge: options.KnowledgeFile = None,
    no_hidden_cause: options.NoHiddenCause = None,
    columns: options.Columns = None,
    drop: options.Drop = None,
    missing: options.Missing = "auto",
    na: options.NotAvailable = None,
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = None,
    sheet: options.Sheet = None,
    header: options.Header = True,
    kinds: options.Kinds = None,
    ordered: options.Ordered = None,
    interventions: options.Interventions = None,
    environments: options.Environments = None,
) -> None:
    """Find the causal graphs of many tables.

    Writes answers/NAME.json for each table and summary.csv for all of them. Tables of the same shape go through the
    network together. Stop it at any time: the same command goes on from there, and does only what is missing or has
    changed. A table that cannot be answered is recorded with the reason, and the others go on. Exits with status 1 if
    there was one, else 0.
    """
    known = read_knowledge(require, forbid, tiers, knowledge, no_hidden_cause)
    how = options.reading(
        columns=columns,
        drop=drop,
        missing=missing,
        na=na,
        delimiter=delimiter,
        decimal=decimal,
        sheet=sheet,
        header=header,
        kinds=kinds,
        ordered=ordered,
        interventions=interventions,
        environments=environments,
    )

    from causal_arrow.discovery.many.run import prepare_many, words
    from causal_arrow.discovery.progress import progress_of

    settings, rest = options.with_reading(
        how,
        model=model,
        device=device,
        precision=precision,
        decode=decode,
        threshold=threshold,
        knowledge=known,
        scale=scale,
        observations=observations,
    )
    work = prepare_many(
        tables,
        output,
        settings,
        backend=backend,
        jobs=jobs,
        cluster=cluster,
        retry=retry,
        surface="command-line",
        **{name: value for name, value in rest.items() if value is not None and not (name == "header" and value)},
    )
    screen = console(stderr=True)
    before = len(work.names) - len(work.to_do)
    screen.print(
        f"{counted(len(work.names), 'table')}, {before} done before, {len(work.to_do)} to do; answers in "
        f"{escape(str(output))}"
    )
    try:
        with progress_of(len(work.to_do)) as progress:
            work.run(lambda record: progress.advance(words(record)))
    except KeyboardInterrupt:
        left = len(work.names) - sum(work.counts().values())
        screen.print(
            f"\nStopped with {left} of {counted(len(work.names), 'table')} still to do. The same command goes on from "
            "there."
        )
        raise typer.Exit(130) from None
    _print_summary(work, output, as_json)
    if work.counts()["ok"] < len(work.names):
        raise typer.Exit(1)


def _print_summary(work: ManyWork, output: Path, as_json: bool) -> None:
    from causal_arrow.discovery.many.folder import OK, SUMMARY

    latest = work.folder.latest()
    records = [latest[name] for name in work.names]
    failed = [record for record in records if record["status"] != OK]
    if as_json:
        keys = ("table", "source", "status", "error", "observations", "variables", "edges", "seconds")
        facts = [{key: record[key] for key in keys if record.get(key) is not None} for record in records]
        print(json.dumps({"answered": len(records) - len(failed), "failed": len(failed), "tables": facts}, indent=2))
        return
    screen = console()
    screen.print(
        f"[bold]{counted(len(records), 'table')}: {len(records) - len(failed)} answered, {len(failed)} failed.[/bold]"
    )
    for record in failed[:MOST_FAILURES]:
        screen.print(f"[red]{escape(record['table'])}[/red]: {escape(record['error'])}")
    if len(failed) > MOST_FAILURES:
        screen.print(f"... and {len(failed) - MOST_FAILURES} more: see {escape(str(output / SUMMARY))}.")


EXAMPLES = {
    "discover-many": """
**Examples**

`causal-arrow discover-many tables/ --output answers`

`causal-arrow discover-many january.csv february.csv march.csv --output months --drop id`

`causal-arrow discover-many manifest.csv --output answers --jobs 4`

`causal-arrow discover-many tables/ --output /shared/answers --backend ray --cluster auto`

`causal-arrow discover-many tables/ --output /shared/answers --backend dask --cluster tcp://scheduler:8786`
"""
}
