"""`causal-arrow discover`: from a file to a causal graph, a summary, and files for other programs."""

from __future__ import annotations

import csv
import json
import time
import warnings
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from causal_arrow.cli import options
from causal_arrow.cli.console import console, folder, grid
from causal_arrow.cli.destination import Destination
from causal_arrow.cli.series import SERIES_BY_ENDING, SERIES_FILES, print_series, refuse_for_series, write_series
from causal_arrow.errors import COMMAND_LINE, ArrowWarning, ConfigurationError
from causal_arrow.text import visible

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray
    from rich.table import Table as Grid

    from causal_arrow.discovery.answer import Answer
    from causal_arrow.discovery.discovery import Discovery
    from causal_arrow.discovery.effects.falsification import Falsification
    from causal_arrow.discovery.second_opinion import SecondOpinion
    from causal_arrow.discovery.summary import Summary
    from causal_arrow.discovery.uncertainty import EdgeStability
    from causal_arrow.graphs.knowledge import Knowledge
    from causal_arrow.series import SeriesOptions
    from causal_arrow.tables.options import ReadOptions

OPINION_PICTURE = "second-opinion.svg"
PICTURES = ("graph.png", "graph.svg", "probabilities.png", "probabilities.svg")
BY_ENDING = {
    ".json": "graph.json",
    ".csv": "edges.csv",
    ".graphml": "graph.graphml",
    ".gml": "graph.gml",
    ".dot": "graph.dot",
    ".gv": "graph.dot",
    ".txt": "graph.dagitty.txt",
    ".dagitty": "graph.dagitty.txt",
    ".png": "graph.png",
    ".svg": "graph.svg",
    ".pdf": "graph.pdf",
}
"""The file that an output names, by its ending."""
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
        typer.Option(
            "--output",
            "-o",
            help="Write graph, edges and pictures to this folder. A name with the ending of one of them, such as "
            "graph.png, writes only that file.",
            parser=folder,
            show_default=False,
        ),
    ] = None,
    as_json: options.AsJson = False,
    show: Annotated[int, typer.Option(help="How many edges the summary lists.", min=0)] = 40,
    settings: Mapping[str, Any] = options.SETTINGS,
    asked: Mapping[str, Any] = QUESTIONS,
    workers: Mapping[str, Any] = WORKERS,
    overwrite: options.Overwrite = False,
    series: SeriesOptions = options.SERIES,
    knowledge: Knowledge = options.KNOWLEDGE,
    reading: ReadOptions = options.READING,
) -> None:
    """Find the causal graph of a table, or of a time series with --lags.

    Prints the edges with their probabilities, how strong the preference for their directions is, the causal order,
    possible hidden common causes (if the model supports them), whether the data contradict the graph, and warnings
    about the table. With --output, writes graph.json, edges.csv, graph.graphml, graph.gml, graph.dot,
    graph.dagitty.txt and pictures.
    """
    started = time.perf_counter()
    if series.are_given:
        refuse_for_series(**{name: asked[name] for name in ("graphs", "bootstrap", "falsify")})
        destination = Destination(output, table, overwrite, SERIES_BY_ENDING, SERIES_FILES)
        in_time = options.series_discovery(table, settings, knowledge, reading, series)
        seconds = time.perf_counter() - started
        opinion = in_time.second_opinion() if asked["second_opinion"] else None
        write_series(destination, in_time.answer)
        if as_json:
            content = json.loads(in_time.to_json())
            options.print_json(content if opinion is None else {**content, "second_opinion": opinion.to_dict()})
            return
        print_series(in_time, options.table_name(table), show)
        _print_opinion(opinion)
        _print_footer(destination, f"{seconds:.1f} s with {in_time.answer.model}")
        return
    destination = Destination(output, table, overwrite, BY_ENDING, _names(asked))
    if workers != WORKERS.defaults:
        _check_workers(asked["bootstrap"], workers)

    found = options.discovery(table, settings, knowledge, reading)
    seconds = time.perf_counter() - started
    extras = _extras(found, asked, workers, quick_test=not as_json)
    answer = found.answer
    destination.write(partial(_write_one, answer, extras), partial(_write, answer, extras))
    if as_json:
        options.print_json(_as_dict(answer, extras))
        return
    _print_summary(answer, extras, options.table_name(table), show)
    _print_opinion(extras.opinion)
    _print_footer(destination, f"{seconds:.1f} s with {answer.model}")
    if destination.is_one_file and Path(destination.names[0]).suffix.lower() == ".csv" and answer.hidden_causes:
        from causal_arrow.discovery.exports import left_out_sentence

        console(stderr=True).print(escape(f"It holds only directed edges. {left_out_sentence(answer)}"))


def _check_workers(bootstrap: int | None, workers: Mapping[str, Any]) -> None:
    """ConfigurationError for workers without work, or workers that do not exist."""
    from causal_arrow.many.workers import check_backend

    if bootstrap is None:
        raise ConfigurationError(
            "--backend, --jobs and --cluster share the work of --bootstrap; for many tables there is discover-many."
        )
    check_backend(workers["backend"], workers["cluster"])


@dataclass
class Extras:
    """Answers to further questions, for the summary and the files."""

    thorough: bool
    """Whether a test of the graph was asked for, so that files hold it too."""
    falsification: Falsification | None = None
    not_tested: str = ""
    """Why the test that was asked for is missing."""
    graphs: int = 0
    ancestors: NDArray[np.float64] | None = None
    stability: EdgeStability | None = None
    opinion: SecondOpinion | None = None


def _extras(found: Discovery, asked: Mapping[str, Any], workers: Mapping[str, Any], quick_test: bool) -> Extras:
    from causal_arrow.discovery.effects.falsification import why_not_tested

    thorough, graphs, bootstrap = asked["falsify"], asked["graphs"], asked["bootstrap"]
    extras = Extras(thorough)
    if thorough or quick_test:
        extras.falsification = found.compatibility(thorough=thorough)
    if thorough and extras.falsification is None:
        extras.not_tested = why_not_tested(found.table)
    if graphs is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ArrowWarning)  # the summary has it
            extras.graphs = graphs
            extras.ancestors = found.ancestor_probabilities(graphs, asked["seed"]).to_numpy()
    if bootstrap is not None:
        extras.stability = found.stability(bootstrap, asked["seed"], **workers)
    if asked["second_opinion"]:
        extras.opinion = found.second_opinion()
    return extras


# Files


def _names(asked: Mapping[str, Any]) -> list[str]:
    """The names of all files, given the questions that were asked."""
    names = ["graph.json", "edges.csv", "graph.graphml", "graph.gml", "graph.dot", "graph.dagitty.txt"]
    names += ["ancestors.csv"] if asked["graphs"] is not None else []
    names += ["stability.csv"] if asked["bootstrap"] is not None else []
    return [*names, *PICTURES, *([OPINION_PICTURE] if asked["second_opinion"] else [])]


def _write(answer: Answer, extras: Extras, folder: Path) -> None:
    from causal_arrow.discovery import exports, pictures

    for name in exports.TEXT_FORMATS:
        _write_one(answer, extras, folder / name, name)
    if extras.ancestors is not None:
        with (folder / "ancestors.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["", *answer.names])
            writer.writerows([name, *row] for name, row in zip(answer.names, extras.ancestors.tolist(), strict=True))
    if extras.stability is not None:
        extras.stability.to_frame().to_csv(folder / "stability.csv", index=False)
    graph_png, graph_svg, map_png, map_svg = (folder / name for name in PICTURES)
    pictures.save_graph(answer, graph_png, graph_svg)
    pictures.save_probabilities(answer, map_png, map_svg)
    if extras.opinion is not None:
        extras.opinion.draw(folder / OPINION_PICTURE)


def _write_one(answer: Answer, extras: Extras, path: Path, name: str) -> None:
    """Write what the file of this name holds; graph.json also holds the extras."""
    from causal_arrow.discovery import exports, pictures

    if name == "graph.json":
        path.write_text(exports.json_text(_as_dict(answer, extras)) + "\n", encoding="utf-8")
    elif name in exports.TEXT_FORMATS:
        path.write_text(exports.TEXT_FORMATS[name](answer), encoding="utf-8", newline="")
    else:
        pictures.save_graph(answer, path)


def _as_dict(answer: Answer, extras: Extras) -> dict[str, Any]:
    from causal_arrow.discovery.answer import DIGITS

    content = answer.to_dict()
    if extras.thorough and extras.falsification is not None:
        content["falsification"] = extras.falsification.to_dict()
    elif extras.not_tested:
        content["falsification"] = {"tests": 0, "sentence": extras.not_tested}
    if extras.ancestors is not None:
        content["graphs"] = extras.graphs
        content["ancestor_probabilities"] = extras.ancestors.tolist()
    if extras.stability is not None:
        edges = extras.stability.to_frame().round(DIGITS).to_dict("records")
        content["bootstrap"] = {"resamples": extras.stability.resamples, "edges": edges}
    if extras.opinion is not None:
        content["second_opinion"] = extras.opinion.to_dict()
    return content


# The summary


def _print_summary(answer: Answer, extras: Extras, file: str, show: int) -> None:
    from causal_arrow.discovery.summary import summarize
    from causal_arrow.discovery.uncertainty import hidden_causes_sentence

    said = summarize(answer, extras.falsification, COMMAND_LINE, show, extras.not_tested)
    screen = console()
    screen.print(f"[bold]{escape(f'{file}: {said.title}')}[/bold]\n")
    if said.rows:
        screen.print(_edge_table(answer, said, extras.stability))
    if said.more:
        screen.print(f"{said.more}: see them with --show {said.edges}.")
    if said.no_edges:
        screen.print(said.no_edges)
    screen.print(f"\n[bold]{said.count}[/bold] {escape(said.order)}")
    for remark in said.remarks:
        screen.print(escape(remark))
    if said.test:
        screen.print(("[yellow]Careful:[/yellow] " if said.contradicted else "") + escape(said.test))
    if extras.ancestors is not None:
        _print_indirect(answer, extras)
        if (sentence := hidden_causes_sentence(answer.hidden_causes)) is not None:
            screen.print(escape(sentence))
    options.print_warnings(said.warnings)


def _print_opinion(opinion: SecondOpinion | None) -> None:
    if opinion is not None:
        console().print(escape(f"\n{visible(str(opinion))}"))


def _edge_table(answer: Answer, said: Summary, stability: EdgeStability | None) -> Grid:
    """One line per edge, with whether its direction is compelled, and how stable it is if that is known."""
    from causal_arrow.discovery.summary import decided_by

    cause, effect, *others = said.headings
    headings = [cause, "", effect, *others, "compelled", *(["stability"] if stability else [])]
    table = grid(*headings, right=("probability", "adjacent", "stability"))
    for edge, (_, _, *cells, direction) in zip(answer.edges, said.rows, strict=False):
        weak = edge.direction == "weak" and decided_by(answer, edge.source, edge.target) is None
        marked = f"[yellow]{escape(direction)}[/yellow]" if weak else escape(direction)
        row = [*map(escape, (edge.source, "→", edge.target, *cells)), marked, "yes" if edge.compelled else "no"]
        if stability:
            row.append(f"{stability.frequencies[answer.index_of(edge.source), answer.index_of(edge.target)]:.2f}")
        table.add_row(*row)
    return table


def _print_indirect(answer: Answer, extras: Extras) -> None:
    """The most probable causes that are not direct ones in the graph."""
    assert extras.ancestors is not None
    pairs = [
        (probability, answer.names[j], answer.names[k])
        for j, row in enumerate(extras.ancestors.tolist())
        for k, probability in enumerate(row)
        if probability >= 0.5 and not answer.adjacency[j, k]
    ]
    screen = console()
    if not pairs:
        return
    screen.print(f"\nIndirect causes, by their share among {extras.graphs} sampled graphs:")
    table = grid("cause", "", "effect", "probability", right=("probability",))
    for probability, cause, effect in sorted(pairs, key=lambda pair: (-pair[0], *pair[1:]))[:MAX_INDIRECT]:
        table.add_row(escape(cause), "⇝", escape(effect), f"{probability:.2f}")
    screen.print(table)
    if len(pairs) > MAX_INDIRECT:
        screen.print(f"... and {len(pairs) - MAX_INDIRECT} more: see ancestor_probabilities with --json or --output.")


def _print_footer(destination: Destination, timing: str) -> None:
    screen, names = console(stderr=True), destination.names
    screen.print(f"[dim]{timing}[/dim]")
    if names:
        screen.print(f"Wrote {f'{len(names)} files to ' if len(names) > 1 else ''}{escape(str(destination.output))}")


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
    ),
}
"""Commands to show in the help."""
