"""`causal-arrow check`: the report card of a table."""

from __future__ import annotations

import json

import typer
from rich.markup import escape

from causal_arrow.cli import options
from causal_arrow.cli.console import console

COLORS = {"problem": "red", "warning": "yellow", "note": "cyan"}


def check(
    table: options.TableArgument,
    as_json: options.AsJson = False,
    columns: options.Columns = None,
    drop: options.Drop = None,
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

    read = read_table(
        table,
        columns=options.listed(columns),
        drop=options.listed(drop),
        delimiter=delimiter,
        decimal=decimal,
        sheet=sheet,
        header=header,
        strict=False,
    )
    report = inspect_table(read)
    refused = any(finding.severity == "problem" for finding in report.findings)
    if as_json:
        print(json.dumps({"usable": not refused, **report.to_dict()}, indent=2, ensure_ascii=False))
    else:
        screen = console()
        title, *lines = report.lines()
        screen.print(f"[bold]{escape(table.name)}: {escape(title)}[/bold]")
        for line in lines:
            severity, colon, message = line.partition(": ")
            color = COLORS.get(severity)
            screen.print(f"[{color}]{severity}[/]{colon}{escape(message)}" if color else escape(line))
    if refused:
        raise typer.Exit(1)


EXAMPLES = {
    "check": """
**Examples**

`causal-arrow check table.csv`

`causal-arrow check table.xlsx --sheet 2024 --drop id`
"""
}
