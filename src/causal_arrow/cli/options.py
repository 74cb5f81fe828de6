"""Options that several commands have: how to read a table, which model, where to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from causal_arrow.cli.console import console
from causal_arrow.errors import ConfigurationError

if TYPE_CHECKING:
    from causal_arrow.discovery.pipeline import Discovery, Settings
    from causal_arrow.discovery.workload import Workload

TABLE_PANEL = "Reading the table"
KNOWLEDGE_PANEL = "What is already known"
WORK_PANEL = "Who does the work"
MOST_DRAWS = 10**6
STANDARD_INPUT = Path("-")
TOLD_FROM = 10**9
"""Bytes of memory from which on a table is called large, and what it takes is told."""

TableArgument = Annotated[
    Path,
    typer.Argument(
        help="File with one row per observation and one column per variable: .csv, .tsv, .txt (also .gz), .parquet, "
        ".feather, .xlsx; - for text on standard input.",
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
    Literal["auto", "model", "error", "drop", "impute"],
    typer.Option(
        help="What to do about missing values: leave them to the model, which sees what is missing, stop, leave out "
        "incomplete observations, or fill them in; auto is model where the model can do that, else error.",
        rich_help_panel=TABLE_PANEL,
    ),
]
NotAvailable = Annotated[
    list[str] | None,
    typer.Option(
        "--na",
        help="Values that count as missing, such as '?' or -999, beside empty cells and the usual NA, NaN, null.",
        rich_help_panel=TABLE_PANEL,
        show_default=False,
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        help="Field separator of a text file, a character or tab; detected by default.",
        rich_help_panel=TABLE_PANEL,
        show_default=False,
    ),
]
Decimal = Annotated[
    str | None,
    typer.Option(
        help="Decimal sign of a text file, . or , (detected by default).",
        rich_help_panel=TABLE_PANEL,
        show_default=False,
    ),
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
Kinds = Annotated[
    list[str] | None,
    typer.Option(
        "--kind",
        metavar="COLUMN=KIND",
        help="What a column holds, where that should not be detected: number, binary, ordered or category; can be "
        "given several times.",
        rich_help_panel=TABLE_PANEL,
        show_default=False,
    ),
]
Ordered = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN=LEVEL,LEVEL,...",
        help="The levels of a column in their order, the smallest first; can be given several times.",
        rich_help_panel=TABLE_PANEL,
        show_default=False,
    ),
]
Interventions = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="The column that names, for each observation, the variable that an experiment has set, or several "
        "separated by semicolons; empty for none.",
        rich_help_panel=TABLE_PANEL,
        show_default=False,
    ),
]
Environments = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="The column that says where or when an observation was made (site, batch, period): a category that "
        "nothing in the table causes.",
        rich_help_panel=TABLE_PANEL,
        show_default=False,
    ),
]
Scale = Annotated[
    Literal["auto", "given", "log"],
    typer.Option(
        help="How to read skewed columns of one sign: as given, on a log scale, or on a log scale unless the network "
        "is clearly surer without (auto)."
    ),
]
Decode = Annotated[
    Literal["map", "shd", "f1"],
    typer.Option(
        help="Which graph to take: the most probable (map), the one with the fewest expected mistakes (shd), or "
        "with the largest expected F1 (f1)."
    ),
]
Threshold = Annotated[float, typer.Option(help="For map: show an edge from this probability on, between 0 and 1.")]
Observations = Annotated[
    int | None,
    typer.Option(
        help="How many observations of a long table the network reads one by one, 20 or more; 20,000 by default, since "
        "more hardly improve answers. Statistics are always those of all observations.",
        show_default=False,
    ),
]
Model = Annotated[
    str,
    typer.Option(help="A bundled model (see `models`), a folder, or a file."),
]
Require = Annotated[
    list[str] | None,
    typer.Option(
        metavar="CAUSE->EFFECT",
        help="An edge that must be there; can be given several times.",
        rich_help_panel=KNOWLEDGE_PANEL,
        show_default=False,
    ),
]
Forbid = Annotated[
    list[str] | None,
    typer.Option(
        metavar="CAUSE->EFFECT",
        help="An edge that must not be there; can be given several times.",
        rich_help_panel=KNOWLEDGE_PANEL,
        show_default=False,
    ),
]
Tiers = Annotated[
    Path | None,
    typer.Option(
        help="Text file with one tier per line, the earliest first, names separated by commas. Later tiers cannot "
        "cause earlier ones.",
        rich_help_panel=KNOWLEDGE_PANEL,
        show_default=False,
    ),
]
NoHiddenCause = Annotated[
    list[str] | None,
    typer.Option(
        metavar="A<->B",
        help="Two variables that share no cause outside the table; can be given several times.",
        rich_help_panel=KNOWLEDGE_PANEL,
        show_default=False,
    ),
]
KnowledgeFile = Annotated[
    Path | None,
    typer.Option(
        help="TOML or JSON file with required, forbidden, tiers, roots, leaves, no_hidden_cause.",
        rich_help_panel=KNOWLEDGE_PANEL,
        show_default=False,
    ),
]
Device = Annotated[str, typer.Option(help="auto (a GPU if there is one), cpu, cuda, cuda:1.")]
Precision = Annotated[
    Literal["auto", "float32", "bfloat16"],
    typer.Option(
        help="Of the network's arithmetic: auto is bfloat16 for large tables on a processor that is faster with it, "
        "else float32. Probabilities in bfloat16 are nearly always within 0.01 of those in float32."
    ),
]
Backend = Annotated[
    Literal["loky", "ray", "dask"],
    typer.Option(help="Processes of this machine (loky), or the workers of a cluster.", rich_help_panel=WORK_PANEL),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Address of a Ray or Dask cluster; by default one is started on this machine.",
        rich_help_panel=WORK_PANEL,
        show_default=False,
    ),
]
Seed = Annotated[
    int, typer.Option(help="Seed of all random draws: the same seed gives the same draws.", min=0, max=2**63 - 1)
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace files of the same names in the output folder.")]


def discovery(table: Path, how: Mapping[str, Any], **settings: Any) -> Discovery:
    """The answer for a table that is read as `reading` says, with these settings of the pipeline."""
    from causal_arrow.discovery import pipeline

    all_settings, rest = with_reading(how, **settings)
    return pipeline.discover(table, all_settings, before=_tell_if_large, **rest)


def _tell_if_large(work: Workload) -> None:
    """Say on standard error what a large table will take, before it does."""
    if work.memory >= TOLD_FROM:
        console(stderr=True).print(f"[dim]{work.observations:,} observations of {work}.[/dim]")


def with_reading(how: Mapping[str, Any], **settings: Any) -> tuple[Settings, dict[str, Any]]:
    """The settings of the pipeline with those that `reading` holds, and the rest of what it holds."""
    from causal_arrow.discovery import pipeline

    return pipeline.with_reading(pipeline.Settings(**settings), how)


def reading(
    *,
    columns: Columns,
    drop: Drop,
    missing: Missing,
    na: NotAvailable,
    delimiter: Delimiter,
    decimal: Decimal,
    sheet: Sheet,
    header: Header,
    kinds: Kinds,
    ordered: Ordered,
    interventions: Interventions,
    environments: Environments,
) -> dict[str, Any]:
    """The arguments of `read_table` that the options of a command stand for.

    Every command that reads a table has exactly these parameters; a test compares them.
    """
    return {
        "columns": several(columns),
        "drop": several(drop),
        "missing": missing,
        "na": several(na),
        "delimiter": delimiter,
        "decimal": decimal,
        "sheet": sheet,
        "header": header,
        "kinds": {name: value.strip() for name, value in _assignments("--kind", "zip=category", kinds)} or None,
        "ordered": {
            name: several([value]) or []
            for name, value in _assignments("--ordered", "size=small,medium,large", ordered)
        }
        or None,
        "interventions": interventions,
        "environments": environments,
    }


def _assignments(option: str, example: str, values: list[str] | None) -> list[tuple[str, str]]:
    """Names and what is said of them, from values such as "zip=category"."""
    pairs = []
    for value in values or []:
        name, equals, said = value.rpartition("=") if option == "--kind" else value.partition("=")
        if not name.strip() or not equals or not said.strip():
            raise ConfigurationError(f"Expected {option} as {example}, got {value!r}.")
        pairs.append((name.strip(), said))
    return pairs


def table_name(path: Path) -> str:
    """What to call a table that is read from this path."""
    return "standard input" if path == STANDARD_INPUT else path.name


def several(values: list[str] | None) -> list[str] | None:
    """The names in the values of an option, which may hold several each, separated by commas.

    A name that holds a comma, or blanks at its ends, is quoted as in a CSV file.
    """
    if values is None:
        return None
    names = []
    for value in values:
        for quoted, plain in re.findall(r'\s*"((?:[^"]|"")*)"\s*(?:,|$)|([^,]+)', value):
            names.append(quoted.replace('""', '"') if quoted else plain.strip())
    return [name for name in names if name]
