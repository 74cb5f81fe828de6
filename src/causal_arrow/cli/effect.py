"""`causal-arrow effect`: what happens to an outcome when a treatment changes, over all graphs that are possible."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.markup import escape

from causal_arrow.cli import options
from causal_arrow.cli.console import console, file, grid, print_rest
from causal_arrow.errors import COMMAND_LINE, ConfigurationError
from causal_arrow.output import written_together
from causal_arrow.text import capitalized, counted, listed, visible

if TYPE_CHECKING:
    from collections.abc import Mapping

    from causal_arrow.discovery.effects.effect import Effect
    from causal_arrow.discovery.effects.experiments import ExperimentPlan
    from causal_arrow.discovery.effects.ranking import Effects
    from causal_arrow.graphs.knowledge import Knowledge
    from causal_arrow.series.responses import Curve
    from causal_arrow.tables.options import ReadOptions

PICTURE_ENDINGS = (".png", ".svg", ".pdf")


@dataclass(frozen=True)
class Picture:
    """The file to draw an answer to, if any; ConfigurationError for a name that is not a picture's."""

    plot: Path | None
    overwrite: bool

    def __post_init__(self) -> None:
        if self.plot is not None and self.plot.suffix.lower() not in PICTURE_ENDINGS:
            raise ConfigurationError(
                f"Expected a file that ends in {', '.join(PICTURE_ENDINGS)}, got '{self.plot.name}'."
            )

    def draw(self, answer: Effect | Effects | ExperimentPlan | Curve) -> None:
        """Draw an answer into the file."""
        if self.plot is None:
            return
        from matplotlib.figure import Figure

        with written_together(self.plot.parent, [self.plot.name], self.overwrite) as folder:
            figure = Figure(layout="constrained")
            answer.plot(figure.add_subplot())
            figure.savefig(folder / self.plot.name, dpi=150)


PICTURE: Any = options.OptionList(
    (
        options.option(
            "plot",
            Path | None,
            None,
            "Write a picture to this file, .png, .svg or .pdf.",
            parser=file,
            metavar="FILE",
        ),
        options.option("overwrite", bool, False, "Replace a picture of the same name.", "--overwrite"),
    ),
    build=Picture,
)


RANKED = ("estimator", "adjustment", "cluster")
"""Options of a question that hold for a ranking too."""


def _question(**given: Any) -> dict[str, Any]:
    """The options of a question, those that were not given left out; "earlier" stands for itself."""
    for name in ("adjust_for", "strata"):
        given[name] = options.several(given[name])
    if given["adjust_for"] == ["earlier"]:
        given["adjust_for"] = "earlier"
    return {name: value for name, value in given.items() if value is not None}


ESTIMATION_PANEL = "How to estimate"


def _about(name: str, kind: Any, help: str, metavar: str | None = None) -> Any:
    return options.option(name, kind, None, help, rich_help_panel=ESTIMATION_PANEL, metavar=metavar)


QUESTION: Any = options.OptionList(
    (
        _about(
            "estimator",
            Literal["flexible", "linear", "curved"] | None,
            "Cross-fitted and doubly robust, straight lines, or cubic curves; by default flexible, to rank linear.",
        ),
        _about(
            "adjustment",
            Literal["optimal", "parents"] | None,
            "Adjust for the set with the smallest variance, or for the causes of the treatment.",
        ),
        _about(
            "order",
            Literal["assumed", "free"] | None,
            "Whether the treatment is taken to come before the outcome; free leaves it to the graphs.",
        ),
        _about(
            "adjust_for", list[str] | None, "Columns to adjust for, or earlier, instead of the graphs' sets.", "A,B,..."
        ),
        _about("randomized_rows", str | None, "A yes or no column that marks the rows of the trial.", "COLUMN"),
        _about("strata", list[str] | None, "Columns within whose levels the treatment was randomized.", "A,B,..."),
        _about("cluster", str | None, "A column whose levels are groups of dependent rows.", "COLUMN"),
        options.option(
            "split",
            bool | None,
            None,
            "Take the graphs from one half of the rows and the estimates from the other, then swap.",
            "--split",
            rich_help_panel=ESTIMATION_PANEL,
        ),
        _about("instrument", str | None, "A column that affects the outcome through the treatment alone.", "COLUMN"),
    ),
    build=_question,
)
"""Ways to estimate an effect, by name."""


@options.expanded
def effect(
    table: options.TableArgument,
    outcome: Annotated[str, typer.Option(help="The variable that may change.", show_default=False)],
    treatment: Annotated[
        str | None,
        typer.Option(help="The variable that is changed; without it, all causes are ranked.", show_default=False),
    ] = None,
    from_: Annotated[
        str | None,
        typer.Option("--from", help="Value or level that the treatment goes from, with --to.", show_default=False),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option("--to", help="Value or level that the treatment goes to; else per unit.", show_default=False),
    ] = None,
    level: Annotated[
        str | None,
        typer.Option(help="Level of an outcome with levels whose share is asked about.", show_default=False),
    ] = None,
    about: Mapping[str, Any] = QUESTION,
    by: Annotated[
        str | None, typer.Option(help="A column by whose groups the effect is given too.", show_default=False)
    ] = None,
    draws: Mapping[str, Any] = options.DRAWS,
    as_json: options.AsJson = False,
    picture: Picture = PICTURE,
    show: Annotated[int, typer.Option(help="How many adjustment sets or causes are listed.", min=0)] = 10,
    settings: Mapping[str, Any] = options.SETTINGS.without("decode", "threshold"),
    knowledge: Knowledge = options.KNOWLEDGE,
    reading: ReadOptions = options.READING,
) -> None:
    """Estimate what happens to an outcome when a treatment changes.

    Gives the size with a 90% interval, the share of graphs with a causal path, and a test of dependence after
    adjustment. Sizes are averaged over graphs drawn from the network's distribution, each with its own valid adjustment
    set. Without --treatment, ranks all causes of the outcome.
    """
    between = _between(from_, to, treatment)
    if treatment is None and (alone := [name for name in about if name not in RANKED] or ["by"] * (by is not None)):
        raise ConfigurationError(f"--{alone[0].replace('_', '-')} is about one treatment: name it with --treatment.")

    if by is not None and about.keys() & {"split", "instrument"}:
        raise ConfigurationError("There are no effects by group with --split or --instrument: leave out --by.")
    found = options.discovery(table, settings, knowledge, reading)
    question: dict[str, Any] = {"level": level, **about, **draws}
    answer: Effect | Effects
    if treatment is None:
        answer = found.effects(outcome, **question)
    else:
        answer = found.effect(treatment, outcome, between=between, **question)
    picture.draw(answer)
    warnings = found.answer.worded_warnings(COMMAND_LINE)
    if as_json:
        groups = {} if by is None else {"by": answer.by(by).to_dict(orient="records")}  # type: ignore[union-attr]
        options.print_json({**answer.to_dict(), **groups, "warnings": list(warnings)})
        return
    if treatment is None:
        _print_effects(answer, show)  # type: ignore[arg-type]
    else:
        _print_effect(answer, show, by)  # type: ignore[arg-type]
    options.print_warnings(warnings)


def _between(from_: str | None, to: str | None, treatment: str | None) -> tuple[str, str] | None:
    if from_ is None and to is None:
        return None
    if from_ is None or to is None:
        raise ConfigurationError("Give both --from and --to, or neither of them.")
    if treatment is None:
        raise ConfigurationError("--from and --to are about one treatment: name it with --treatment.")
    return from_, to


def _print_effect(effect: Effect, show: int, by: str | None) -> None:
    screen = console()
    first, *others = effect.lines
    screen.print(f"[bold]{escape(visible(first))}[/bold]")
    for other in others:
        screen.print(escape(visible(other)))
    if by is not None:
        groups = effect.by(by)
        screen.print()
        numbers = ("rows", "effect", "low", "high")
        table = grid(by, *numbers, right=numbers)
        for row in groups.itertuples(index=False, name=None):
            table.add_row(escape(visible(row[0])), f"{row[1]:,}", *(f"{value:.4g}" for value in row[2:]))
        screen.print(table)
    if len(effect.sets) < 2 or not show:
        return
    screen.print()
    numbers = ("frequency", "effect", "low", "high")
    table = grid(*numbers, "adjustment set", right=numbers)
    frame = effect.by_adjustment_set
    for row in frame.head(show).itertuples(index=False):
        members = visible(", ".join(row.adjustment_set)) or "(nothing)"
        table.add_row(f"{row.frequency:.3f}", f"{row.effect:.4g}", f"{row.low:.4g}", f"{row.high:.4g}", escape(members))
    screen.print(table)
    print_rest(len(frame), show)


def _print_effects(effects: Effects, show: int) -> None:
    from causal_arrow.discovery.effects.effect import MIN_MENTIONED
    from causal_arrow.discovery.effects.ranking import nothing_found, reasons_for_none

    screen = console()
    frame = effects.to_frame()
    frame = frame[frame.probability > 0]
    if not len(frame):
        screen.print(escape(visible(nothing_found(effects))))
        _print_categories(effects)
        return
    heading = f"causes of {effects.subject} in {counted(effects.graphs, 'graph')}, by size times probability"
    screen.print(f"[bold]{escape(visible(capitalized(heading)))}[/bold]\n")
    lost = bool((frame.not_identified > MIN_MENTIONED).any())
    numbers = ("probability", *(["not identified"] if lost else []), "effect", "low", "high", "standardized")
    table = grid("cause", *numbers, right=numbers)
    doubtful = [each.treatment for each in effects.effects if each.verdict == "not identified"]
    for row in frame.head(show).itertuples(index=False):
        shares = [row.probability, *([row.not_identified] if lost else [])]
        cells = [f"{value:.4g}" for value in (row.effect, row.low, row.high, row.standardized)]
        if row.cause in doubtful:
            cells = [f"({cell})" for cell in cells]
        table.add_row(escape(visible(row.cause)), *(f"{share:.3f}" for share in shares), *cells)
    screen.print(table)
    print_rest(len(frame), show)
    if effects.on_comparisons:
        screen.print(escape(visible(f"{effects.on_comparisons}.")))
    if doubtful:
        screen.print(
            "In brackets, and last: not identified in most graphs because of a hidden cause, which the numbers leave "
            f"aside ({escape(visible(listed(doubtful)))})."
        )
    _print_categories(effects)
    for names, reason in reasons_for_none(effects):
        screen.print(f"No estimate for {escape(visible(f'{listed(names)}: {reason}'))}.")


def _print_categories(effects: Effects) -> None:
    if effects.categories:
        sentence = f"{capitalized(effects.on_categories)}: name two of its levels with --treatment, --from and --to."
        console().print(escape(visible(sentence)))


EXAMPLES = {
    "effect": (
        "causal-arrow effect table.csv --treatment dose --outcome recovery",
        "causal-arrow effect table.csv --treatment dose --outcome recovery --from 1 --to 2 --plot effect.png",
        "causal-arrow effect table.csv --outcome recovery",
        "causal-arrow effect trial.csv --treatment drug --outcome recovery --randomized drug --adjust-for age,severity",
        "causal-arrow effect table.csv --treatment dose --outcome recovery --json | jq '.median, .low, .high'",
    ),
}
"""Commands to show in the help."""
