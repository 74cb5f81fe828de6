"""`causal-arrow causes`: the probable causes of one variable, in tables of up to 20,000 columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from causal_arrow.cli import options
from causal_arrow.cli.console import console, grid
from causal_arrow.errors import COMMAND_LINE
from causal_arrow.text import visible

if TYPE_CHECKING:
    from collections.abc import Mapping

    from causal_arrow.graphs.knowledge import Knowledge
    from causal_arrow.tables.options import ReadOptions


@options.expanded
def causes(
    table: options.TableArgument,
    outcome: Annotated[str, typer.Option(help="The variable whose causes are asked for.", show_default=False)],
    keep: Annotated[
        int, typer.Option(help="How many columns the network reads after screening.", min=10, max=500)
    ] = 60,
    draws: Mapping[str, Any] = options.DRAWS,
    as_json: options.AsJson = False,
    show: Annotated[int, typer.Option(help="How many columns are listed.", min=0)] = 20,
    settings: Mapping[str, Any] = options.SETTINGS.without("decode", "threshold"),
    knowledge: Knowledge = options.KNOWLEDGE,
    reading: ReadOptions = options.READING,
) -> None:
    """Find the probable causes of one variable, in a table of up to 20,000 columns.

    Screening keeps the columns that may matter for the outcome, and the network reads those: the probability that each
    is a cause, and that it is a direct one.
    """
    from causal_arrow.discovery.causes import causes_of
    from causal_arrow.discovery.settings import Settings

    everything = Settings(**settings, knowledge=knowledge, reading=reading)
    found = causes_of(table, outcome, everything, keep=keep, **draws)
    warnings = found.found.answer.worded_warnings(COMMAND_LINE)
    if as_json:
        options.print_json({**found.to_dict(), "warnings": list(warnings)})
        return
    screen = console()
    first, *others = found.sentences
    screen.print(f"[bold]{escape(visible(first))}[/bold]\n")
    lines = grid("column", "cause", "direct", right=("cause", "direct"))
    for name, probability, direct in list(zip(found.names, found.probability, found.direct, strict=True))[:show]:
        lines.add_row(escape(visible(name)), f"{probability:.2f}", f"{direct:.2f}")
    screen.print(lines)
    for other in others:
        screen.print(escape(visible(other)))
    options.print_warnings(warnings)


EXAMPLES = {
    "causes": (
        "causal-arrow causes genes.parquet --outcome expression",
        "causal-arrow causes wide.csv --outcome yield --keep 100 --roots rain,soil --json",
    ),
}
"""Commands to show in the help."""
