"""`causal-arrow check`: the report card of a table."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import typer
from rich.markup import escape

from causal_arrow.cli import options
from causal_arrow.cli.console import console
from causal_arrow.errors import COMMAND_LINE
from causal_arrow.network.bundled import BUNDLED_FOLDER, DEFAULT_MODEL

if TYPE_CHECKING:
    from causal_arrow.tables.report import TrainingRange

COLORS = {"problem": "red", "warning": "yellow", "note": "cyan"}


def check(
    table: options.TableArgument,
    as_json: options.AsJson = False,
    columns: options.Columns = None,
    drop: options.Drop = None,
    missing: options.Missing = "error",
    na: options.NotAvailable = None,
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = None,
    sheet: options.Sheet = None,
    header: options.Header = True,
) -> None:
    """Say what about a table matters for trust in an answer, before asking for one.

    Looks at size and training range, constant, duplicate and nearly collinear columns, heavy tails, discrete values,
    missing cells, and observations that follow each other in time. Exits with status 1 if `discover` would refuse the
    table as it is, else 0.
    """
    from causal_arrow.tables.reading import read_table
    from causal_arrow.tables.report import inspect_table

    how = options.reading(
        columns=columns,
        drop=drop,
        missing=missing,
        na=na,
        delimiter=delimiter,
        decimal=decimal,
        sheet=sheet,
        header=header,
    )
    report = inspect_table(read_table(table, **how, strict=False), _default_training_range())
    refused = any(finding.severity == "problem" for finding in report.findings)
    if as_json:
        print(json.dumps({"usable": not refused, **report.to_dict(COMMAND_LINE)}, indent=2, ensure_ascii=False))
    else:
        screen = console()
        title, *lines = report.lines(COMMAND_LINE)
        screen.print(f"[bold]{escape(options.table_name(table))}: {escape(title)}[/bold]")
        for line in lines:
            severity, colon, message = line.partition(": ")
            color = COLORS.get(severity)
            screen.print(f"[{color}]{severity}[/]{colon}{escape(message)}" if color else escape(line))
    if refused:
        raise typer.Exit(1)


def _default_training_range() -> TrainingRange | None:
    """The sizes of tables that the default model has learned from, by its own record."""
    from causal_arrow.tables.report import TrainingRange

    # Not by loading it: the record is JSON, and torch alone takes longer than all the rest of this command.
    config = BUNDLED_FOLDER / DEFAULT_MODEL / "config.json"
    try:
        record = json.loads(config.read_text(encoding="utf-8"))["extra"]["training"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return TrainingRange.from_record(record)


EXAMPLES = {
    "check": """
**Examples**

`causal-arrow check table.csv`

`causal-arrow check table.xlsx --sheet 2024 --drop id`

`causal-arrow check table.csv --na '?' --missing drop`

`zcat table.csv.gz | causal-arrow check -`
"""
}
