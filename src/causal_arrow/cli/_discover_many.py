"""`causal-arrow discover-many`: the causal graphs of many tables, on this machine or on a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from causal_arrow.cli import options
from causal_arrow.cli.console import console, folder, print_json
from causal_arrow.text import counted, visible

if TYPE_CHECKING:
    from collections.abc import Mapping

    from causal_arrow.discovery.settings import Settings

MAX_FAILURES = 20  # failures listed one by one in the summary


@options.expanded
def discover_many(
    tables: Annotated[
        list[Path],
        typer.Argument(
            metavar="TABLES...",
            help="Files with tables, folders of them, or one manifest: a CSV or JSON file with a field 'table' and, "
            "where tables need them, their own settings.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path,
        options.described(
            "Folder for the answers. Tables already completed there are skipped.", "--output", "-o", parser=folder
        ),
    ],
    as_json: options.AsJson = False,
    retry: Annotated[bool, typer.Option("--retry", help="Also do again what failed before.")] = False,
    workers: Mapping[str, Any] = options.workers(
        "How many processes; by default as many as there are cores and as fit into memory."
    ),
    settings: Settings = options.READ_SETTINGS,
) -> None:
    """Find the causal graphs of many tables.

    Writes answers/NAME.json for each table and summary.csv for all of them. Tables of the same shape go through the
    network together. Stop it at any time: the same command continues, and does only what is missing or has changed. A
    table that cannot be answered is recorded with the reason, and the others continue. Exits with status 1 if there was
    one, else 0.
    """
    from causal_arrow.many.folder import OK, SUMMARY
    from causal_arrow.many.run import ManyRun
    from causal_arrow.progress import progress_bar

    run = ManyRun(tables, output, settings, **workers, retry=retry, surface="command-line")
    screen = console(stderr=True)
    before = len(run.names) - len(run.to_do)
    again = f" ({run.changed} again, for other content, settings or version)" if run.changed else ""
    screen.print(
        f"{counted(len(run.names), 'table')}, {before} done before, {len(run.to_do)} to do{again}; answers in {output}"
    )
    try:
        with progress_bar(pieces=len(run.to_do), lines=True) as progress:
            run.go(progress)
    except KeyboardInterrupt:
        left = len(set(run.names) - set(run.folder.latest()))
        screen.print(
            f"\nStopped with {left} of {counted(len(run.names), 'table')} still to do. The same command continues."
        )
        raise
    latest = run.folder.latest()
    records = [latest[name] for name in run.names]
    failed = [record for record in records if record["status"] != OK]
    if as_json:
        keys = ("table", "source", "status", "error", "observations", "variables", "edges", "seconds")
        facts = [{key: record[key] for key in keys if record.get(key) is not None} for record in records]
        print_json({"answered": len(records) - len(failed), "failed": len(failed), "tables": facts})
    else:
        screen = console()
        answered = len(records) - len(failed)
        screen.print(f"{counted(len(records), 'table')}: {answered} answered, {len(failed)} failed.", style="bold")
        for record in failed[:MAX_FAILURES]:
            screen.print(Text.assemble((visible(record["table"]), "red"), ": "), record["error"], sep="")
        if len(failed) > MAX_FAILURES:
            screen.print(f"... and {len(failed) - MAX_FAILURES} more: see {output / SUMMARY}.")
    if failed:
        raise typer.Exit(1)


EXAMPLES = {
    "discover-many": (
        "causal-arrow discover-many tables/ --output answers",
        "causal-arrow discover-many january.csv february.csv march.csv --output months --drop id",
        "causal-arrow discover-many manifest.csv --output answers --jobs 4",
        "causal-arrow discover-many tables/ --output /shared/answers --backend ray --cluster auto",
        "causal-arrow discover-many tables/ --output /shared/answers --backend dask --cluster tcp://scheduler:8786",
    ),
}
"""Commands to show in the help."""
