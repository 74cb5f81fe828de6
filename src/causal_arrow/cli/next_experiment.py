"""`causal-arrow next-experiment`: what to randomize or to measure next."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from causal_arrow.cli import options
from causal_arrow.cli.console import console, grid, print_rest
from causal_arrow.cli.effect import PICTURE, Picture
from causal_arrow.errors import COMMAND_LINE, ConfigurationError
from causal_arrow.text import listed, visible

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from causal_arrow.discovery.discovery import Discovery
    from causal_arrow.discovery.effects.experiments import ExperimentPlan
    from causal_arrow.graphs.knowledge import Knowledge
    from causal_arrow.series import SeriesOptions
    from causal_arrow.series.discovery import SeriesDiscovery
    from causal_arrow.tables.options import ReadOptions


@options.expanded
def next_experiment(
    table: options.TableArgument,
    target: Annotated[
        str | None,
        typer.Option(
            metavar="OUTCOME or 'TREATMENT->OUTCOME'",
            help="The same in one option; by default, learn about the whole graph.",
            show_default=False,
        ),
    ] = None,
    treatment: Annotated[
        str | None, typer.Option(help="With --outcome, learn this variable's effect on it.", show_default=False)
    ] = None,
    outcome: Annotated[
        str | None,
        typer.Option(help="Learn what causes this variable, or the effect of --treatment on it.", show_default=False),
    ] = None,
    budget: Annotated[
        int, typer.Option(help="How many experiments are carried out together.", min=1, max=options.MAX_DRAWS)
    ] = 1,
    candidates: Annotated[
        list[str] | None,
        typer.Option(
            help="The variables that can be randomized: names separated by commas, or the option several times; by "
            "default all but roots and those that experiments have set already.",
            show_default=False,
        ),
    ] = None,
    not_settable: Annotated[
        list[str] | None,
        typer.Option(help="Variables that nobody can randomize: names separated by commas.", show_default=False),
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option(
            help="How many rows each experiment will have; by default as many as the table.",
            min=1,
            max=options.MAX_DRAWS,
            show_default=False,
        ),
    ] = None,
    draws: Mapping[str, Any] = options.DRAWS,
    as_json: options.AsJson = False,
    picture: Picture = PICTURE,
    show: Annotated[int, typer.Option(help="How many experiments are listed.", min=0)] = 10,
    settings: Mapping[str, Any] = options.SETTINGS.without("decode", "threshold"),
    series: SeriesOptions = options.SERIES,
    knowledge: Knowledge = options.KNOWLEDGE,
    reading: ReadOptions = options.READING,
) -> None:
    """Advise on the next experiment: which variable to randomize, or which hidden cause to measure.

    Ranks candidate experiments by the uncertainty they are expected to remove, about the whole graph or about a target,
    over graphs drawn from the network's distribution. With --budget, selects the most informative set.
    """
    if outcome is None and treatment is not None:
        raise ConfigurationError("--treatment needs --outcome, the variable whose change is asked about.")
    if target is not None and outcome is not None:
        raise ConfigurationError("Give either --target or --outcome.")
    asked: Any = outcome if treatment is None else (treatment, outcome)
    fixed = options.several(not_settable) or []
    able: dict[str, Any] = {"candidates": options.several(candidates), "rows": rows}
    if not series.are_given:
        able["not_settable"] = fixed
    elif fixed:
        raise ConfigurationError("--not-settable is not for time series: name the --candidates instead.")

    found: Discovery | SeriesDiscovery
    if series.are_given:
        found = options.series_discovery(table, settings, knowledge, reading, series)
    else:
        found = options.discovery(table, settings, knowledge, reading)
    asked = _target(target, found.answer.names) if asked is None else asked
    plan = found.next_experiment(asked, budget, **able, **draws)
    picture.draw(plan)
    warnings = found.answer.worded_warnings(COMMAND_LINE)
    if as_json:
        options.print_json({**plan.to_dict(), "warnings": list(warnings)})
        return
    _print_plan(plan, show)
    options.print_warnings(warnings)


def _target(text: str | None, names: Sequence[str]) -> str | tuple[str, str] | None:
    """The target as Python takes it: a name, or the two ends of an arrow."""
    from causal_arrow.graphs.knowledge import ARROW

    if text is None or text in names:
        return text
    ends = ARROW.split(text)
    if len(ends) == 1:
        return text  # a name that nobody knows: refused in the words of the answer
    if len(ends) != 2 or not all(ends):
        raise ConfigurationError(f"Expected --target as OUTCOME or 'TREATMENT->OUTCOME', got {text!r}.")
    return ends[0].strip(), ends[1].strip()


def _print_plan(plan: ExperimentPlan, show: int) -> None:
    screen = console()
    screen.print(f"[bold]{escape(visible(plan.sentence))}[/bold]")
    if plan.experiments[:show]:
        screen.print()
        numbers = ("share" if plan.about_effect else "bits", "affected", "batch")
        table = grid("action", "variable", *numbers, *([] if plan.about_effect else ["most about"]), right=numbers)
        for each in plan.experiments[:show]:
            cells = [
                "randomize" if each.action == "set" else each.action,
                escape(visible(each.name)),
                f"{each.gain:.3f}",
                "" if math.isnan(each.affected) else f"{each.affected:.1f}",
                str(plan.place_in_batch(each) or ""),
            ]
            table.add_row(*cells, *([] if plan.about_effect else [escape(visible(each.settles_in_words))]))
        screen.print(table)
    print_rest(len(plan.experiments), show)
    if plan.left_out:
        left_out = escape(visible(listed(plan.left_out)))
        screen.print(f"Not considered, because they cannot be randomized or have been: {left_out}.")


EXAMPLES = {
    "next-experiment": (
        "causal-arrow next-experiment table.csv",
        "causal-arrow next-experiment table.csv --outcome recovery --candidates dose,exercise,diet",
        "causal-arrow next-experiment table.csv --treatment dose --outcome recovery --rows 60 --plot plan.png",
        "causal-arrow next-experiment series.csv --lags 3 --time date --target sales",
        "causal-arrow next-experiment table.csv --budget 3 --json | jq '.batch[].variables'",
    ),
}
"""Commands to show in the help."""
