"""`causal-arrow effect`, `causes`, `response` and `next-experiment`: questions, averaged over possible graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from causal_arrow.cli import options
from causal_arrow.cli.console import console, print_frame, print_lines, print_rest, print_table
from causal_arrow.errors import ConfigurationError, Remedy
from causal_arrow.text import capitalized, counted, listed

if TYPE_CHECKING:
    from causal_arrow.discovery.causes import ProbableCauses
    from causal_arrow.discovery.effects.effect import Effect, Effects
    from causal_arrow.discovery.effects.experiments import ExperimentPlan
    from causal_arrow.discovery.settings import Settings


RANKED = ("estimator", "adjustment", "cluster")  # options of a question that hold for a ranking too


def _question(**given: Any) -> dict[str, Any]:
    """The options of a question, those that were not given left out; "earlier" stands for itself."""
    for name in ("adjust_for", "strata"):
        given[name] = options.several(given[name])
    if given["adjust_for"] == ["earlier"]:
        given["adjust_for"] = "earlier"
    return {name: value for name, value in given.items() if value is not None}


def _about(name: str, kind: Any, help: str, *flags: str, metavar: str | None = None) -> Any:
    return options.option(name, kind, None, help, *flags, rich_help_panel="How to estimate", metavar=metavar)


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
            "adjust_for",
            list[str] | None,
            "Columns to adjust for, or earlier, instead of the graphs' sets.",
            metavar="A,B,...",
        ),
        _about("randomized_rows", str | None, "A yes or no column that marks the rows of the trial.", metavar="COLUMN"),
        _about(
            "strata", list[str] | None, "Columns within whose levels the treatment was randomized.", metavar="A,B,..."
        ),
        _about("cluster", str | None, "A column whose levels are groups of dependent rows.", metavar="COLUMN"),
        _about(
            "split",
            bool | None,
            "Take the graphs from one half of the rows and the estimates from the other, then swap.",
            "--split",
        ),
        _about(
            "instrument", str | None, "A column that affects the outcome through the treatment alone.", metavar="COLUMN"
        ),
    ),
    build=_question,
)
"""Ways to estimate an effect, by name."""


@options.expanded
def effect(
    table: options.TableArgument,
    outcome: Annotated[str, options.described("The variable that may change.")],
    treatment: Annotated[
        str | None, options.described("The variable that is changed; without it, all causes are ranked.")
    ] = None,
    from_: Annotated[
        str | None, options.described("Value or level that the treatment goes from, with --to.", "--from")
    ] = None,
    to: Annotated[
        str | None, options.described("Value or level that the treatment goes to; else per unit.", "--to")
    ] = None,
    level: Annotated[
        str | None, options.described("Level of an outcome with levels whose share is asked about.")
    ] = None,
    about: Mapping[str, Any] = QUESTION,
    by: Annotated[str | None, options.described("A column by whose groups the effect is given too.")] = None,
    draws: Mapping[str, Any] = options.DRAWS,
    output: options.Output = options.OUTPUT,
    show: Annotated[int, typer.Option(help="How many adjustment sets or causes are listed.", min=0)] = 10,
    settings: Settings = options.QUESTION_SETTINGS,
) -> None:
    """Estimate what happens to an outcome when a treatment changes.

    Gives the size with a 90% interval, the share of graphs with a causal path, and a test of dependence after
    adjustment. Sizes are averaged over graphs drawn from the network's distribution, each with its own valid adjustment
    set. Without --treatment, ranks all causes of the outcome.
    """
    if (from_ is None) != (to is None):
        raise ConfigurationError("Give both --from and --to, or neither of them.")
    if from_ is not None and treatment is None:
        raise ConfigurationError("--from and --to are about one treatment: name it with --treatment.")
    if treatment is None and (alone := [*(name for name in about if name not in RANKED), *(["by"] if by else [])]):
        raise ConfigurationError(f"--{alone[0].replace('_', '-')} is about one treatment: name it with --treatment.")
    if by is not None and about.keys() & {"split", "instrument"}:
        raise ConfigurationError("There are no effects by group with --split or --instrument: leave out --by.")
    question: dict[str, Any] = {"level": level, **about, **draws}
    found = options.discovery(table, settings)
    if treatment is None:
        ranking = found.effects(outcome, **question)
        output.give(ranking, found.answer, lambda: _print_effects(ranking, show))
        return
    between = None if from_ is None else (from_, to)
    answer = found.effect(treatment, outcome, between=between, **question)
    groups = None if by is None else answer.by(by)
    more = {} if groups is None else {"by": groups.to_dict(orient="records")}
    output.give(answer, found.answer, lambda: _print_effect(answer, show, groups), **more)


def _print_effect(effect: Effect, show: int, groups: Any) -> None:
    print_lines(effect.lines)
    screen = console()
    if groups is not None:
        screen.print()
        print_frame(groups, "", ",", ".4g", ".4g", ".4g")
    if len(effect.sets) > 1 and show:
        sets = effect.by_adjustment_set[["frequency", "effect", "low", "high", "adjustment_set"]].head(show)
        screen.print()
        names = [", ".join(members) or "(nothing)" for members in sets.adjustment_set]
        print_frame(sets.assign(adjustment_set=names), ".3f", ".4g", ".4g", ".4g", "")
        print_rest(len(effect.sets), show)


def _print_effects(effects: Effects, show: int) -> None:
    from causal_arrow.discovery.effects.effect import MIN_MENTIONED, nothing_found, reasons_for_none

    screen = console()
    frame = effects.to_frame()
    frame = frame[frame.probability > 0]
    if not len(frame):
        screen.print(nothing_found(effects))
        _print_categories(effects)
        return
    heading = f"causes of {effects.subject} in {counted(effects.graphs, 'graph')}, by size times probability"
    screen.print(f"{capitalized(heading)}\n", style="bold")
    shares = ["probability", *(["not_identified"] if (frame.not_identified > MIN_MENTIONED).any() else [])]
    sizes = ["effect", "low", "high", "standardized"]
    doubtful = [each.treatment for each in effects.effects if each.verdict == "not identified"]
    rows = []
    for row in frame.head(show).to_dict(orient="records"):
        cells = [f"({row[name]:.4g})" if row["cause"] in doubtful else f"{row[name]:.4g}" for name in sizes]
        rows.append((row["cause"], *(f"{row[name]:.3f}" for name in shares), *cells))
    numbers = [name.replace("_", " ") for name in (*shares, *sizes)]
    print_table(("cause", *numbers), rows, numbers)
    print_rest(len(frame), show)
    if effects.on_comparisons:
        screen.print(f"{effects.on_comparisons}.")
    if doubtful:
        screen.print(
            "In brackets, and last: not identified in most graphs because of a hidden cause, which the numbers leave "
            f"aside ({listed(doubtful)})."
        )
    _print_categories(effects)
    for names, reason in reasons_for_none(effects):
        screen.print(f"No estimate for {listed(names)}: {reason}.")


def _print_categories(effects: Effects) -> None:
    if effects.categories:
        sentence = f"{capitalized(effects.on_categories)}: name two of its levels with --treatment, --from and --to."
        console().print(sentence)


@options.expanded
def causes(
    table: options.TableArgument,
    outcome: Annotated[str, options.described("The variable whose causes are asked for.")],
    keep: Annotated[
        int, typer.Option(help="How many columns the network reads after screening.", min=10, max=500)
    ] = 60,
    draws: Mapping[str, Any] = options.DRAWS,
    output: options.Output = options.JSON_OUTPUT,
    show: Annotated[int, typer.Option(help="How many columns are listed.", min=0)] = 20,
    settings: Settings = options.QUESTION_SETTINGS,
) -> None:
    """Find the probable causes of one variable, in a table of up to 20,000 columns.

    Screening keeps the columns that may matter for the outcome, and the network reads those: the probability that each
    is a cause, and that it is a direct one.
    """
    from causal_arrow.discovery.causes import causes_of

    found = causes_of(table, outcome, settings, keep=keep, **draws)
    output.give(found, found.found.answer, lambda: _print_causes(found, show))


def _print_causes(found: ProbableCauses, show: int) -> None:
    first, *others = found.sentences
    screen = console()
    screen.print(f"{first}\n", style="bold")
    frame = found.to_frame().rename(columns={"cause": "column", "cause_probability": "cause"})
    print_frame(frame[["column", "cause", "direct"]].head(show), "", ".2f", ".2f")
    for other in others:
        screen.print(other)


@options.expanded
def response(
    table: options.TableArgument,
    cause: Annotated[str, options.described("The variable that is raised by one.")],
    effect: Annotated[str, options.described("The variable that may change.")],
    steps: Annotated[int, typer.Option(help="How many steps to look ahead.", min=0, max=10_000)] = 10,
    hold: Annotated[bool, typer.Option("--hold", help="Keep the cause higher, instead of raising it once.")] = False,
    draws: Mapping[str, Any] = options.DRAWS,
    output: options.Output = options.OUTPUT,
    settings: Settings = options.SERIES_QUESTION_SETTINGS,
) -> None:
    """Estimate what happens to one variable of a time series 0, 1, 2, ... steps after another was raised.

    Averages over window graphs, each with its own causes of the cause. The 90% interval includes both kinds of
    uncertainty: about the graph, and from few steps. Errors are robust against memory, and clustered by unit in panels.
    """
    if not settings.series.are_given:
        raise ConfigurationError("Effects over time need a time series.", [Remedy("lags")])
    found = options.discovery(table, settings)
    curve = found.response(cause, effect, steps, kind="step" if hold else "pulse", **draws)
    sentence, _, *steps_in_words = str(curve).split("\n")
    output.give(curve, found.answer, lambda: print_lines([f"{sentence}\n", *steps_in_words]))


@options.expanded
def next_experiment(
    table: options.TableArgument,
    target: Annotated[
        str | None,
        options.described(
            "The same in one option; by default, learn about the whole graph.",
            metavar="OUTCOME or 'TREATMENT->OUTCOME'",
        ),
    ] = None,
    treatment: Annotated[str | None, options.described("With --outcome, learn this variable's effect on it.")] = None,
    outcome: Annotated[
        str | None, options.described("Learn what causes this variable, or the effect of --treatment on it.")
    ] = None,
    budget: Annotated[
        int, typer.Option(help="How many experiments are carried out together.", min=1, max=options.MAX_DRAWS)
    ] = 1,
    candidates: Annotated[
        list[str] | None,
        options.described(
            "The variables that can be randomized: names separated by commas, or the option several times; by "
            "default all but roots and those that experiments have set already."
        ),
    ] = None,
    not_settable: Annotated[
        list[str] | None, options.described("Variables that nobody can randomize: names separated by commas.")
    ] = None,
    rows: Annotated[
        int | None,
        options.described(
            "How many rows each experiment will have; by default as many as the table.", min=1, max=options.MAX_DRAWS
        ),
    ] = None,
    draws: Mapping[str, Any] = options.DRAWS,
    output: options.Output = options.OUTPUT,
    show: Annotated[int, typer.Option(help="How many experiments are listed.", min=0)] = 10,
    settings: Settings = options.SERIES_QUESTION_SETTINGS,
) -> None:
    """Advise on the next experiment: which variable to randomize, or which hidden cause to measure.

    Ranks candidate experiments by the uncertainty they are expected to remove, about the whole graph or about a target,
    over graphs drawn from the network's distribution. With --budget, selects the most informative set.
    """
    if outcome is None and treatment is not None:
        raise ConfigurationError("--treatment needs --outcome, the variable whose change is asked about.")
    if target is not None and outcome is not None:
        raise ConfigurationError("Give either --target or --outcome.")
    able: dict[str, Any] = {"candidates": options.several(candidates), "rows": rows}
    if not settings.series.are_given:
        able["not_settable"] = options.several(not_settable) or []
    elif options.several(not_settable):
        raise ConfigurationError("--not-settable is not for time series: name the --candidates instead.")

    found = options.discovery(table, settings)
    asked: Any = outcome if treatment is None else (treatment, outcome)
    asked = _target(target, found.answer.names) if asked is None else asked
    plan = found.next_experiment(asked, budget, **able, **draws)
    output.give(plan, found.answer, lambda: _print_plan(plan, show))


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
    screen.print(plan.sentence, style="bold")
    if plan.experiments[:show]:
        unit = "share" if plan.about_effect else "bits"
        frame = plan.to_frame().head(show).replace({"action": {"set": "randomize"}})
        frame = frame.rename(columns={"gain": unit, "settles": "most about"})
        columns = ["action", "variable", unit, "affected", "batch", *([] if plan.about_effect else ["most about"])]
        screen.print()
        print_frame(frame[columns], *("", "", ".3f", ".1f", "d", "")[: len(columns)])
    print_rest(len(plan.experiments), show)
    if plan.left_out:
        screen.print(f"Not considered, because they cannot be randomized or have been: {listed(plan.left_out)}.")


EXAMPLES = {
    "effect": (
        "causal-arrow effect table.csv --treatment dose --outcome recovery",
        "causal-arrow effect table.csv --treatment dose --outcome recovery --from 1 --to 2 --plot effect.png",
        "causal-arrow effect table.csv --outcome recovery",
        "causal-arrow effect trial.csv --treatment drug --outcome recovery --randomized drug --adjust-for age,severity",
        "causal-arrow effect table.csv --treatment dose --outcome recovery --json | jq '.median, .low, .high'",
    ),
    "causes": (
        "causal-arrow causes genes.parquet --outcome expression",
        "causal-arrow causes wide.csv --outcome yield --keep 100 --roots rain,soil --json",
    ),
    "response": (
        "causal-arrow response series.csv --lags 3 --time date --cause price --effect sales",
        "causal-arrow response panel.csv --lags 2 --time week --unit shop --cause price --effect sales --hold",
        "causal-arrow response series.csv --lags auto --cause price --effect sales --plot curve.png",
    ),
    "next-experiment": (
        "causal-arrow next-experiment table.csv",
        "causal-arrow next-experiment table.csv --outcome recovery --candidates dose,exercise,diet",
        "causal-arrow next-experiment table.csv --treatment dose --outcome recovery --rows 60 --plot plan.png",
        "causal-arrow next-experiment series.csv --lags 3 --time date --target sales",
        "causal-arrow next-experiment table.csv --budget 3 --json | jq '.batch[].variables'",
    ),
}
"""Commands to show in the help."""
