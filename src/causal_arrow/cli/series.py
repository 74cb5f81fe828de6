"""Time series on the command line: the output of `discover`, and `response` for effects over time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from causal_arrow.cli import options
from causal_arrow.cli.console import console, grid, print_rest
from causal_arrow.cli.destination import Destination
from causal_arrow.cli.effect import PICTURE, Picture
from causal_arrow.errors import COMMAND_LINE, ConfigurationError, Remedy
from causal_arrow.text import visible

if TYPE_CHECKING:
    from causal_arrow.graphs.knowledge import Knowledge
    from causal_arrow.series import SeriesOptions
    from causal_arrow.series.answer import SeriesAnswer
    from causal_arrow.series.discovery import SeriesDiscovery
    from causal_arrow.series.responses import Curve
    from causal_arrow.tables.options import ReadOptions

PICTURES = {"summary": ("summary.png", "summary.svg"), "window": ("window.png", "window.svg")}
TEXTS = ("graph.json", "edges.csv", "graph.graphml", "graph.dot")
SERIES_BY_ENDING = {
    ".json": "graph.json",
    ".csv": "edges.csv",
    ".graphml": "graph.graphml",
    ".dot": "graph.dot",
    ".gv": "graph.dot",
    ".png": "summary",
    ".svg": "summary",
    ".pdf": "summary",
}
"""The file that an output names, by its ending."""
SERIES_FILES = (*TEXTS, *(name for names in PICTURES.values() for name in names))


def refuse_for_series(**given: Any) -> None:
    """ConfigurationError for options that are for tables."""
    if asked := [name for name, value in given.items() if value]:
        raise ConfigurationError(f"--{asked[0].replace('_', '-')} is for tables: leave it out, or leave out --lags.")


def write_series(destination: Destination, answer: SeriesAnswer) -> None:
    """Write the files of an answer about a series."""
    from causal_arrow.series import pictures
    from causal_arrow.series.exports import TEXT_FORMATS

    def one(path: Path, name: str) -> None:
        if name in TEXT_FORMATS:
            path.write_text(TEXT_FORMATS[name](answer), encoding="utf-8", newline="")
        else:
            pictures.save(answer, path)

    def everything(folder: Path) -> None:
        for name in TEXTS:
            one(folder / name, name)
        for what, names in PICTURES.items():
            pictures.save(answer, *(folder / name for name in names), what=what)

    destination.write(one, everything)


def print_series(found: SeriesDiscovery, file: str, show: int) -> None:
    """The summary of a window graph: edges with their lags, then sentences and warnings."""
    from causal_arrow.series.exports import COLUMNS, NO_EDGES, cells, sentences, title

    answer, screen = found.answer, console()
    screen.print(f"[bold]{escape(f'{file}: {title(answer)}')}[/bold]\n")
    if answer.edges[:show]:
        table = grid(*COLUMNS, right=("lag", "probability"))
        for edge in answer.edges[:show]:
            table.add_row(*map(escape, cells(edge)))
        screen.print(table)
    print_rest(len(answer.edges), show)
    if not answer.edges:
        screen.print(NO_EDGES)
    screen.print()
    for sentence in sentences(answer):
        screen.print(escape(sentence))
    options.print_warnings(answer.worded_warnings(COMMAND_LINE))


def print_curve(curve: Curve) -> None:
    """An effect over time: a sentence, then a line per step."""
    screen = console()
    sentence, _, *rest = visible(str(curve)).split("\n")
    screen.print(f"[bold]{escape(sentence)}[/bold]\n")
    for line in rest:
        screen.print(escape(line))


# Effects over time


@options.expanded
def response(
    table: options.TableArgument,
    cause: Annotated[str, typer.Option(help="The variable that is raised by one.", show_default=False)],
    effect: Annotated[str, typer.Option(help="The variable that may change.", show_default=False)],
    series: SeriesOptions = options.SERIES,
    steps: Annotated[int, typer.Option(help="How many steps to look ahead.", min=0, max=10_000)] = 10,
    hold: Annotated[bool, typer.Option("--hold", help="Keep the cause higher, instead of raising it once.")] = False,
    draws: Mapping[str, int] = options.DRAWS,
    as_json: options.AsJson = False,
    picture: Picture = PICTURE,
    settings: Mapping[str, Any] = options.SETTINGS.without("decode", "threshold"),
    knowledge: Knowledge = options.KNOWLEDGE,
    reading: ReadOptions = options.READING,
) -> None:
    """Estimate what happens to one variable of a time series 0, 1, 2, ... steps after another was raised.

    Averages over window graphs, each with its own causes of the cause. The 90% interval includes both kinds of
    uncertainty: about the graph, and from few steps. Errors are robust against memory, and clustered by unit in panels.
    """
    if not series.are_given:
        raise ConfigurationError("Effects over time need a time series.", [Remedy("lags")])
    found = options.series_discovery(table, settings, knowledge, reading, series)
    answer = found.response(cause, effect, steps, kind="step" if hold else "pulse", **draws)
    picture.draw(answer)
    warnings = found.answer.worded_warnings(COMMAND_LINE)
    if as_json:
        options.print_json({**answer.to_dict(), "warnings": list(warnings)})
        return
    print_curve(answer)
    options.print_warnings(warnings)


EXAMPLES = {
    "response": (
        "causal-arrow response series.csv --lags 3 --time date --cause price --effect sales",
        "causal-arrow response panel.csv --lags 2 --time week --unit shop --cause price --effect sales --hold",
        "causal-arrow response series.csv --lags auto --cause price --effect sales --plot curve.png",
    ),
}
"""Commands to show in the help."""
