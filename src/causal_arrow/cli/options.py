"""Options that several commands have: how to read a table, which model, where to."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Annotated, Literal

import typer

TABLE_PANEL = "Reading the table"

TableArgument = Annotated[
    Path,
    typer.Argument(
        help="File with one row an observation and one column a variable: .csv, .tsv, .txt (also .gz), .parquet, "
        ".feather, .xlsx.",
        show_default=False,
    ),
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        help="Use only these columns: names separated by commas, or the option several times.",
        rich_help_panel=TABLE_PANEL,
        show_default=False,
    ),
]
Drop = Annotated[
    list[str] | None,
    typer.Option(help="Leave out these columns.", rich_help_panel=TABLE_PANEL, show_default=False),
]
Missing = Annotated[
    Literal["error", "drop", "impute"],
    typer.Option(
        help="What to do about missing values: stop, leave out incomplete observations, or fill them in.",
        rich_help_panel=TABLE_PANEL,
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        help="What separates fields of a text file, if not found out: a character, or tab.",
        rich_help_panel=TABLE_PANEL,
        show_default=False,
    ),
]
Decimal = Annotated[
    str | None,
    typer.Option(help="Decimal sign of a text file, . or ,", rich_help_panel=TABLE_PANEL, show_default=False),
]
Sheet = Annotated[
    str | None,
    typer.Option(
        help="Sheet of an Excel workbook; the first one by default.", rich_help_panel=TABLE_PANEL, show_default=False
    ),
]
Header = Annotated[
    bool,
    typer.Option("--header/--no-header", help="Whether the first line holds the names.", rich_help_panel=TABLE_PANEL),
]
Device = Annotated[str, typer.Option(help="auto (a GPU if there is one), cpu, cuda, cuda:1.")]
Seed = Annotated[int, typer.Option(help="Seed of all random draws: the same seed gives the same draws.", min=0)]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace files of the same names in the output folder.")]


def listed(values: list[str] | None) -> list[str] | None:
    """The names in the values of an option, which may hold several each, separated by commas as in a CSV file."""
    return [name.strip() for row in csv.reader(values, skipinitialspace=True) for name in row] if values else None
