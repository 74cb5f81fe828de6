"""`causal-arrow discover`: from a file to a causal graph, a summary, and files for other programs."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from causal_arrow.cli import options
from causal_arrow.cli.console import Destination, console, folder, print_json, print_table, print_warnings
from causal_arrow.errors import COMMAND_LINE, ArrowWarning, ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from causal_arrow.discovery.answer import Answer
    from causal_arrow.discovery.effects.falsification import Falsification
    from causal_arrow.discovery.second_opinion import SecondOpinion
    from causal_arrow.discovery.settings import Settings
    from causal_arrow.discovery.summary import Summary
    from causal_arrow.discovery.uncertainty import EdgeStability
    from causal_arrow.series.answer import SeriesAnswer

OPINION_PICTURE = "second-opinion.svg"
TEXTS = ("graph.json", "edges.csv", "graph.graphml", "graph.gml", "graph.dot", "graph.dagitty.txt")
PICTURES = ("graph.png", "graph.svg", "probabilities.png", "probabilities.svg")
SERIES_TEXTS = ("graph.json", "edges.csv", "graph.graphml", "graph.dot")
SERIES_PICTURES = ("summary.png", "summary.svg", "window.png", "window.svg")
MAX_INDIRECT = 10

WORKERS = options.workers(
    "How many processes share the work of --bootstrap; by default this one does it, on all cores. Further ones take "
    "seconds to start, so they pay on a cluster, or for thousands of resamples."
)
QUESTIONS: Any = options.OptionList(
    (
        options.count("graphs", "Draw this many graphs for the probabilities of indirect causes."),
        options.count("bootstrap", "Number of bootstrap resamples used to assess how stable each edge is."),
        options.option(
            "falsify",
            bool,
            False,
            "Test the graph against the data thoroughly, and put the result into the JSON too; the summary has a "
            "quick test for up to 60 variables anyway.",
            "--falsify",
        ),
        options.option(
            "second_opinion",
            bool,
            False,
            "Ask FLOP, BOSS and PC about the same table, PCMCI+ about a series, where they are installed: where "
            "they agree, where not, and what each assumes.",
            "--second-opinion",
        ),
        options.option("seed", int, 0, options.SEED_HELP, min=0, max=options.MAX_SEED),
    ),
    build=dict,
)


@options.expanded
def discover(
    table: options.TableArgument,
    output: Annotated[
        Path | None,
        options.described(
            "Write graph, edges and pictures to this folder. A name with the ending of one of them, such as "
            "graph.png, writes only that file.",
            "--output",
            "-o",
            parser=folder,
        ),
    ] = None,
    as_json: options.AsJson = False,
    show: Annotated[int, typer.Option(help="How many edges the summary lists.", min=0)] = 40,
    workers: Mapping[str, Any] = WORKERS,
    settings: Settings = options.ALL_SETTINGS,
    asked: Mapping[str, Any] = QUESTIONS,
    overwrite: options.Overwrite = False,
) -> None:
    """Find the causal graph of a table, or of a time series with --lags.

    Prints the edges with their probabilities, how strong the preference for their directions is, the causal order,
    possible hidden common causes (if the model supports them), whether the data contradict the graph, and warnings
    about the table. With --output, writes graph.json, edges.csv, graph.graphml, graph.gml, graph.dot,
    graph.dagitty.txt and pictures.
    """
    started = time.perf_counter()
    in_time = settings.series.are_given
    _check_questions(asked, workers, in_time)
    files = [*SERIES_TEXTS, *SERIES_PICTURES] if in_time else _names(asked)
    destination = Destination(output, table, overwrite, files)

    found = options.discovery(table, settings)
    seconds = time.perf_counter() - started
    extras = _extras(found, asked, workers, quick_test=not as_json and not in_time)
    destination.write(partial(_write, found, extras))
    if as_json:
        print_json(_as_dict(found.answer, extras))
        return
    _print_summary(found, extras, options.table_name(table), show)
    _print_footer(destination, found, seconds)


def _check_questions(asked: Mapping[str, Any], workers: Mapping[str, Any], in_time: bool) -> None:
    """ConfigurationError for questions that are not for series, workers without work, or that do not exist."""
    if in_time:
        if for_tables := [name for name in ("graphs", "bootstrap", "falsify") if asked[name]]:
            raise ConfigurationError(f"--{for_tables[0]} is for tables: leave it out, or leave out --lags.")
    elif workers != WORKERS.defaults:
        from causal_arrow.many.workers import check_backend

        if asked["bootstrap"] is None:
            raise ConfigurationError(
                "--backend, --jobs and --cluster share the work of --bootstrap; for many tables there is discover-many."
            )
        check_backend(workers["backend"], workers["cluster"])


@dataclass
class Extras:
    """Answers to further questions, for the summary and the files."""

    thorough: bool  # whether a test of the graph was asked for, so that files hold it too
    falsification: Falsification | None = None
    not_tested: str = ""  # why the test that was asked for is missing
    graphs: int = 0
    ancestors: pd.DataFrame | None = None
    stability: EdgeStability | None = None
    opinion: SecondOpinion | None = None


def _extras(found: Any, asked: Mapping[str, Any], workers: Mapping[str, Any], quick_test: bool) -> Extras:
    from causal_arrow.discovery.effects.falsification import why_not_tested

    extras = Extras(asked["falsify"])
    if extras.thorough or quick_test:
        extras.falsification = found.compatibility(thorough=extras.thorough)
    if extras.thorough and extras.falsification is None:
        extras.not_tested = why_not_tested(found.table)
    if asked["graphs"] is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ArrowWarning)  # the summary has it
            extras.graphs = asked["graphs"]
            extras.ancestors = found.ancestor_probabilities(extras.graphs, asked["seed"])
    if asked["bootstrap"] is not None:
        extras.stability = found.stability(asked["bootstrap"], asked["seed"], **workers)
    if asked["second_opinion"]:
        extras.opinion = found.second_opinion()
    return extras


# Files


def _names(asked: Mapping[str, Any]) -> list[str]:
    """The names of all files, given the questions that were asked."""
    names = list(TEXTS)
    names += ["ancestors.csv"] if asked["graphs"] is not None else []
    names += ["stability.csv"] if asked["bootstrap"] is not None else []
    return [*names, *PICTURES, *([OPINION_PICTURE] if asked["second_opinion"] else [])]


def _write(found: Any, extras: Extras, name: str, path: Path) -> None:
    """Write the file of this name; graph.json also holds the extras."""
    from causal_arrow.discovery import exports, pictures
    from causal_arrow.series import exports as series_exports

    in_time = found.settings.series.are_given
    formats: Mapping[str, Any] = series_exports.TEXT_FORMATS if in_time else exports.TEXT_FORMATS
    if name == "graph.json":
        path.write_text(exports.json_text(_as_dict(found.answer, extras)) + "\n", encoding="utf-8")
    elif name in formats:
        path.write_text(formats[name](found.answer), encoding="utf-8", newline="")
    elif name == "ancestors.csv" and extras.ancestors is not None:
        extras.ancestors.to_csv(path)
    elif name == "stability.csv" and extras.stability is not None:
        extras.stability.to_frame().to_csv(path, index=False)
    elif name == OPINION_PICTURE and extras.opinion is not None:
        extras.opinion.draw(path)
    elif name.startswith("probabilities"):
        pictures.save_probabilities(found.answer, path)
    elif in_time:
        found.draw(path, what=name.partition(".")[0])
    else:
        found.draw(path)


def _as_dict(answer: Answer | SeriesAnswer, extras: Extras) -> dict[str, Any]:
    from causal_arrow.discovery.answer import DIGITS

    content = answer.to_dict()
    if extras.thorough and extras.falsification is not None:
        content["falsification"] = extras.falsification.to_dict()
    elif extras.not_tested:
        content["falsification"] = {"tests": 0, "sentence": extras.not_tested}
    if extras.ancestors is not None:
        content["graphs"] = extras.graphs
        content["ancestor_probabilities"] = extras.ancestors.to_numpy().tolist()
    if extras.stability is not None:
        edges = extras.stability.to_frame().round(DIGITS).to_dict("records")
        content["bootstrap"] = {"resamples": extras.stability.resamples, "edges": edges}
    if extras.opinion is not None:
        content["second_opinion"] = extras.opinion.to_dict()
    return content


# The summary


def _print_summary(found: Any, extras: Extras, file: str, show: int) -> None:
    from causal_arrow.discovery.summary import summarize
    from causal_arrow.discovery.uncertainty import hidden_causes_sentence
    from causal_arrow.series.exports import summarize as summarize_series

    answer, screen = found.answer, console()
    if found.settings.series.are_given:
        said = summarize_series(answer, COMMAND_LINE, show)
        headings, rows = list(said.headings), [list(row) for row in said.rows]
    else:
        said = summarize(answer, extras.falsification, COMMAND_LINE, show, extras.not_tested)
        headings, rows = _edges(answer, said, extras.stability)
    screen.print(f"{file}: {said.title}\n", style="bold")
    if rows:
        print_table(headings, rows, numbers=("lag", "probability", "adjacent", "stability"))
    if said.more:
        screen.print(f"{said.more}: see them with --show {said.edges}.")
    if said.no_edges:
        screen.print(said.no_edges)
    screen.print()
    screen.print(Text(said.count, style="bold"), said.order)
    for remark in said.remarks:
        screen.print(remark)
    if said.test:
        screen.print(*([Text("Careful:", style="yellow")] if said.contradicted else []), said.test)
    if extras.ancestors is not None:
        _print_indirect(answer, extras.graphs, extras.ancestors)
        if (sentence := hidden_causes_sentence(answer.hidden_causes)) is not None:
            screen.print(sentence)
    print_warnings(said.warnings)
    if extras.opinion is not None:
        screen.print(f"\n{extras.opinion}")


def _edges(answer: Answer, said: Summary, stability: EdgeStability | None) -> tuple[list[str], list[list[Any]]]:
    """Headings and a row per edge, with whether its direction is compelled, and how stable it is if that is known."""
    from causal_arrow.discovery.summary import decided_by

    rows: list[list[Any]] = []
    for edge, (cause, effect, *cells, direction) in zip(answer.edges, said.rows, strict=False):
        weak = edge.direction == "weak" and decided_by(answer, cause, effect) is None
        marked = Text(direction, style="yellow") if weak else direction
        rows.append([cause, "→", effect, *cells, marked, "yes" if edge.compelled else "no"])
        if stability:
            rows[-1].append(f"{stability.frequencies[answer.index_of(cause), answer.index_of(effect)]:.2f}")
    cause, effect, *others = said.headings
    return [cause, "", effect, *others, "compelled", *(["stability"] if stability else [])], rows


def _print_indirect(answer: Answer, graphs: int, shares: pd.DataFrame) -> None:
    """The most probable causes that are not direct ones in the graph."""
    pairs = [
        (share, cause, effect)
        for cause, row, direct in zip(answer.names, shares.to_numpy(), answer.adjacency, strict=True)
        for effect, share, is_direct in zip(answer.names, row.tolist(), direct, strict=True)
        if share >= 0.5 and not is_direct
    ]
    if not pairs:
        return
    pairs.sort(key=lambda pair: (-pair[0], *pair[1:]))
    screen = console()
    screen.print(f"\nIndirect causes, by their share among {graphs} sampled graphs:")
    rows = [(cause, "⇝", effect, f"{share:.2f}") for share, cause, effect in pairs[:MAX_INDIRECT]]
    print_table(("cause", "", "effect", "probability"), rows, numbers=("probability",))
    if len(pairs) > MAX_INDIRECT:
        screen.print(f"... and {len(pairs) - MAX_INDIRECT} more: see ancestor_probabilities with --json or --output.")


def _print_footer(destination: Destination, found: Any, seconds: float) -> None:
    """Say on standard error how long it took and which files were written."""
    screen, names = console(stderr=True), destination.names
    screen.print(f"{seconds:.1f} s with {found.answer.model}", style="dim")
    if names:
        screen.print(f"Wrote {f'{len(names)} files to ' if len(names) > 1 else ''}{destination.output}")
    only_edges = destination.is_one_file and destination.by_ending[Path(names[0]).suffix.lower()] == "edges.csv"
    if only_edges and not found.settings.series.are_given and found.answer.hidden_causes:
        from causal_arrow.discovery.exports import left_out_sentence

        screen.print(f"It holds only directed edges. {left_out_sentence(found.answer)}")


EXAMPLES = {
    "discover": (
        "causal-arrow discover table.csv",
        "causal-arrow discover table.csv --output answer",
        "causal-arrow discover table.csv --output graph.png",
        'causal-arrow discover table.csv --require "smoking -> cancer" --forbid "cancer -> age"',
        "causal-arrow discover table.csv --tiers tiers.txt --drop id,name --missing drop",
        "causal-arrow discover table.csv --kind zip=category --ordered size=small,medium,large",
        "causal-arrow discover table.csv --interventions target --environments site",
        "causal-arrow discover series.csv --lags 3 --time date --unit patient",
        "causal-arrow discover table.csv --graphs 1000 --bootstrap 100 --falsify",
        "causal-arrow discover table.csv --second-opinion",
        "causal-arrow discover table.csv --bootstrap 1000 --jobs 4",
        "causal-arrow discover table.csv --json | jq '.edges[] | select(.probability > 0.9)'",
    )
}
"""Commands to show in the help."""
