"""`causal-arrow response`: what happens to one variable after another is raised, step by step."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from causal_arrow.cli import options
from causal_arrow.cli.effect import PICTURE, Picture
from causal_arrow.cli.series import print_curve, print_warnings
from causal_arrow.errors import COMMAND_LINE, ConfigurationError, Remedy

if TYPE_CHECKING:
    from causal_arrow.graphs.knowledge import Knowledge
    from causal_arrow.series.options import SeriesOptions
    from causal_arrow.tables.options import ReadOptions


@options.expanded
def response(
    table: options.TableArgument,
    cause: Annotated[str, typer.Option(help="The variable that is raised by one.", show_default=False)],
    effect: Annotated[str, typer.Option(help="The variable that may change.", show_default=False)],
    series: SeriesOptions = options.SERIES,
    steps: Annotated[int, typer.Option(help="How many steps to look ahead.", min=0, max=10_000)] = 10,
    kind: Annotated[
        Literal["pulse", "step"], typer.Option(help="Raise the cause once (pulse), or keep it higher (step).")
    ] = "pulse",
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
    answer = found.response(cause, effect, steps, kind=kind, **draws)
    picture.draw(answer)
    if as_json:
        warnings = list(found.answer.worded_warnings(COMMAND_LINE))
        print(json.dumps({**answer.to_dict(), "warnings": warnings}, indent=2, ensure_ascii=False, allow_nan=False))
        return
    print_curve(answer)
    print_warnings(found.answer)


EXAMPLES = {
    "response": """
**Examples**

`causal-arrow response series.csv --lags 3 --time date --cause price --effect sales`

`causal-arrow response panel.csv --lags 2 --time week --unit shop --cause price --effect sales --kind step --steps 8`

`causal-arrow response series.csv --lags auto --cause price --effect sales --plot curve.png`
"""
}
