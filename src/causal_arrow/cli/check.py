"""`causal-arrow check`: the report card of a table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.markup import escape

from causal_arrow.cli import options
from causal_arrow.cli.console import console
from causal_arrow.errors import COMMAND_LINE
from causal_arrow.network import BUNDLED_FOLDER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from causal_arrow.tables.options import ReadOptions
    from causal_arrow.tables.report import TrainingRange
    from causal_arrow.tables.table import Abilities

OUR_ENCODERS = ("pairwise", "paper")
COLORS = {"problem": "red", "warning": "yellow", "note": "cyan"}


@options.expanded
def check(
    table: options.TableArgument,
    as_json: options.AsJson = False,
    settings: Mapping[str, Any] = options.SETTINGS.only("model"),
    reading: ReadOptions = options.READING,
) -> None:
    """Check a table for problems before running discovery.

    Lists the kinds of columns and looks at size and training range, constant, duplicate and nearly collinear columns,
    heavy tails, discrete values, missing cells, and rows that follow each other in time. Exits with status 1 if
    `discover` would refuse the table as it is, else 0.
    """
    from causal_arrow.progress import progress_bar
    from causal_arrow.tables.reading import read_table
    from causal_arrow.tables.report import NOTHING, inspect_table

    able, trained_on = _facts_of(settings["model"])
    with progress_bar() as tell:
        read = read_table(table, reading, abilities=able, strict=False, progress=tell)
    report = inspect_table(read, trained_on, able)
    refused = any(finding.severity == "problem" for finding in report.findings)
    if as_json:
        print(json.dumps({"usable": not refused, **report.to_dict(COMMAND_LINE)}, indent=2, ensure_ascii=False))
    else:
        screen = console()
        screen.print(f"[bold]{escape(options.table_name(table))}: {escape(report.title)}[/bold]")
        for finding in report.findings:
            color, words = COLORS[finding.severity], escape(finding.worded(COMMAND_LINE))
            screen.print(f"[{color}]{finding.severity}[/]: {words}")
        if not report.findings:
            screen.print(NOTHING)
    if refused:
        raise typer.Exit(1)


def _facts_of(model: str) -> tuple[Abilities, TrainingRange | None]:
    """What a model can read besides numbers, and the sizes of its training tables, from its record.

    The model itself is loaded only if there is no such record, which is JSON and takes less time.
    """
    from causal_arrow.network.statistics import parts_read
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
