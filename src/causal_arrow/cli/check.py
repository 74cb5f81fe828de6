"""`causal-arrow check`: the report card of a table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.markup import escape

from causal_arrow.cli import options
from causal_arrow.cli.console import console
from causal_arrow.errors import COMMAND_LINE
from causal_arrow.network.bundled import BUNDLED_FOLDER, DEFAULT_MODEL

if TYPE_CHECKING:
    from causal_arrow.tables.report import TrainingRange
    from causal_arrow.tables.table import Abilities

OUR_ENCODERS = ("pairwise", "paper")
COLORS = {"problem": "red", "warning": "yellow", "note": "cyan"}


def check(
    table: options.TableArgument,
    as_json: options.AsJson = False,
    model: options.Model = DEFAULT_MODEL,
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
    """Say what about a table matters for trust in an answer, before asking for one.

    Says what kind of values each column holds. Looks at size and training range, constant, duplicate and nearly
    collinear columns, heavy tails, discrete values, missing cells, and observations that follow each other in time.
    Exits with status 1 if `discover` would refuse the table as it is, else 0.
    """
    from causal_arrow.discovery.progress_bar import progress_bar
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
        kinds=kinds,
        ordered=ordered,
        interventions=interventions,
        environments=environments,
    )
    able, trained_on = _facts_of(model)
    with progress_bar() as tell:
        read = read_table(table, **how, abilities=able, strict=False, progress=tell)
    report = inspect_table(read, trained_on, able)
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


def _facts_of(model: str) -> tuple[Abilities, TrainingRange | None]:
    """What a model can read beside numbers, and the sizes of tables that it has learned from, by its own record.

    Not by loading it, if that can be: the record is JSON, and torch alone takes longer than the rest of this command.
    """
    from causal_arrow.network.encoders.parts import parts_read
    from causal_arrow.tables.report import TrainingRange
    from causal_arrow.tables.table import Abilities

    bundled = BUNDLED_FOLDER / model
    try:
        folder = bundled if model and bundled.is_dir() else Path(model)
        record = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        settings, extra = record["model"], record.get("extra") or {}
        if settings["encoder"] in OUR_ENCODERS:
            inputs = [*settings.get("channels", ()), *settings.get("statistics", ())]
            trained_on = TrainingRange.from_record(extra.get("training", {}))
            return Abilities(f"the model {model}", parts_read(inputs)), trained_on
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        pass
    from causal_arrow.discovery import inference

    return inference.abilities(model, inference.ready_model(model, "cpu")), inference.training_range(model)


EXAMPLES = {
    "check": """
**Examples**

`causal-arrow check table.csv`

`causal-arrow check table.xlsx --sheet 2024 --drop id`

`causal-arrow check table.csv --na '?' --missing drop`

`zcat table.csv.gz | causal-arrow check -`
"""
}
