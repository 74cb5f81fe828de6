"""`causal-arrow check`, `compare` and `models`: report on a table, on two graphs, and on the bundled networks."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from causal_arrow.cli import options
from causal_arrow.cli.console import console, print_json, print_table
from causal_arrow.errors import COMMAND_LINE
from causal_arrow.text import counted, visible

if TYPE_CHECKING:
    from collections.abc import Mapping

    from causal_arrow.tables.options import ReadOptions


COLORS = {"problem": "red", "warning": "yellow", "note": "cyan"}


@options.expanded
def check(
    table: options.TableArgument,
    as_json: options.AsJson = False,
    settings: Mapping[str, Any] = options.SETTINGS.only("model"),
    reading: ReadOptions = options.READING,
) -> None:
    """Check a table for problems before running discovery.

    Lists the kinds of columns and looks at size and training range, constant, duplicate and nearly collinear columns,
    heavy tails, discrete values, missing cells, and rows that follow each other in time. Exits with status 1 if
    `discover` would refuse the table as it is, else 0.
    """
    from causal_arrow.discovery import inference
    from causal_arrow.progress import progress_bar
    from causal_arrow.tables.reading import read_table
    from causal_arrow.tables.report import NOTHING, inspect_table

    model = settings["model"]
    able = inference.abilities(model, inference.ready_model(model, "cpu"))
    with progress_bar() as report_progress:
        read = read_table(table, reading, abilities=able, strict=False, progress=report_progress)
    report = inspect_table(read, inference.training_range(model), able)
    refused = any(finding.severity == "problem" for finding in report.findings)
    if as_json:
        print_json({"usable": not refused, **report.to_dict(COMMAND_LINE)})
    else:
        screen = console()
        screen.print(f"{options.table_name(table)}: {report.title}", style="bold")
        for finding in report.findings:
            severity = Text(f"{finding.severity}:", style=COLORS[finding.severity])
            screen.print(severity, finding.worded(COMMAND_LINE))
        if not report.findings:
            screen.print(NOTHING)
    if refused:
        raise typer.Exit(1)


MEASURES = {
    "shd": "structural Hamming distance: missing, extra and reversed edges",
    "nshd": "the same, divided by the edges of the first graph",
    "f1": "F1 of directed edges",
    "ap": "average precision of the second graph's probabilities, or of its edges",
    "skeleton_f1": "F1 of adjacencies, direction ignored",
    "orientation_accuracy": "share of common adjacencies that point the same way",
    "cpdag_shd": "distance of the Markov equivalence classes",
    "sid": "structural intervention distance (up to 30 variables)",
}


def compare(
    first: Annotated[Path, typer.Argument(help="The graph to compare with: the truth, where there is one.")],
    second: Annotated[Path, typer.Argument(help="The graph to be judged.")],
    as_json: options.AsJson = False,
) -> None:
    """Compare two graphs: distances, and the edges in which they differ.

    Files may be graph.json, an edge list or a matrix in CSV, GraphML, GML, Graphviz or DAGitty text. Both graphs must
    be about the same variables, in any order, and have no directed cycle. Undirected edges, as a CPDAG has them, are
    edges in both directions. Measures are about edges; hidden common causes (<->) are listed below them.
    """
    from causal_arrow.graphs.files import compatible, read_graph
    from causal_arrow.graphs.metrics import edge_differences, evaluate

    truth, estimate = compatible(read_graph(first), read_graph(second))
    measures = evaluate(truth.adjacency, estimate.adjacency, scores=estimate.probabilities)
    differences = edge_differences(set(truth.edges()), set(estimate.edges()))
    counts = [len({frozenset(edge) for edge in graph.edges()}) for graph in (truth, estimate)]
    hidden = (truth.hidden_causes(), estimate.hidden_causes())
    if as_json:
        numbers = {name: None if math.isnan(measures[name]) else measures[name] for name in MEASURES}
        pairs_of = dict(zip(("first", "second"), hidden, strict=True))
        print_json({"measures": numbers, "edges": counts, **differences, "hidden_causes": pairs_of})
        return
    sizes = f"{counted(counts[0], 'edge')} in {first.name}, {counts[1]:,} in {second.name}"
    console().print(f"{counted(len(truth.names), 'variable')}; {sizes}\n", style="bold")
    rows = [(name, _shown(measures[name]), meaning) for name, meaning in MEASURES.items()]
    print_table(("measure", "value", "meaning"), rows, numbers=("value",))
    for kind, edges in differences.items():
        _print_pairs(kind.replace("_", " "), edges, "→")
    for kind, pairs in _hidden_causes(*hidden, first.name, second.name).items():
        _print_pairs(kind, pairs, "↔")


def _shown(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.3f}" if value % 1 else f"{value:.0f}"


def _print_pairs(kind: str, pairs: Sequence[tuple[str, str]], arrow: str) -> None:
    if pairs:
        listing = ", ".join(f"{one} {arrow} {other}" for one, other in pairs)
        console().print(Text(visible(kind), style="bold"), f"({len(pairs)}): {listing}")


def _hidden_causes(
    ours: Sequence[tuple[str, str]] | None, theirs: Sequence[tuple[str, str]] | None, first: str, second: str
) -> dict[str, list[tuple[str, str]]]:
    """Pairs with a hidden cause in both graphs and in one of them, or in the only graph that states any."""
    if ours is None or theirs is None:
        silent, pairs = (first, theirs) if ours is None else (second, ours)
        return {f"hidden common causes, not stated in {silent}": list(pairs or [])}
    return {
        "hidden common causes in both": [pair for pair in ours if pair in theirs],
        "missing hidden common causes": [pair for pair in ours if pair not in theirs],
        "extra hidden common causes": [pair for pair in theirs if pair not in ours],
    }


CHOICE = (
    "arrow-base is the default and reads every table: numbers, categories, missing cells, experiments, environments. "
    "arrow-strict is for comparisons: a network like it for complete tables of numbers, trained on the paper's tasks "
    "only. It fails on tables with no more rows than columns, since the paper's training tasks hardly have any."
)

LIMITS = (
    "arrow-base says which pairs may share a common cause that is not in the table; arrow-strict assumes that there is "
    "none. No model allows for feedback. Outside the range of sizes it was trained on, and on data unlike its training "
    "tasks, its probabilities may be off."
)


def models(as_json: options.AsJson = False) -> None:
    """List the models that come with the package, their training and their limits."""
    from causal_arrow.network import bundled_models
    from causal_arrow.network.checkpoint import CONFIG_FILE, WEIGHTS_FILE

    described = {}
    for name, folder in bundled_models().items():
        config: dict[str, Any] = json.loads((folder / CONFIG_FILE).read_text(encoding="utf-8"))
        described[name] = {
            "folder": str(folder),
            "megabytes": round((folder / WEIGHTS_FILE).stat().st_size / 1e6, 1),
            "parameters": config["parameters"],
            "encoder": config["model"]["encoder"],
            "training": config["extra"],
        }
    if as_json:
        print_json({"models": described, "limits": LIMITS})
        return
    screen = console()
    for name, facts in described.items():
        size = f"{facts['parameters']:,} parameters, {facts['megabytes']} MB, {facts['encoder']} encoder"
        screen.print(Text(name, style="bold"), f" {size}")
        for line in _training_lines(facts["training"]["training"]):
            screen.print(f"  {line}")
        screen.print(f"  {facts['folder']}", style="dim")
    screen.print(f"\n{CHOICE}\n\n{LIMITS}")


def _training_lines(record: dict[str, Any]) -> list[str]:
    """Lines for people on how a model was trained and how it did on fresh tasks."""
    tasks, shapes = record["task_distribution"], record["shapes"]
    seen = record["tasks"] + sum(run["tasks"] for run in record.get("earlier", []))
    without = f" without {', '.join(tasks['without'])}" if tasks["without"] else ""
    observations, variables = shapes["observations"], shapes["variables"]
    lines = [
        f"trained on {seen:,} tasks of the distribution '{tasks['distribution']}'{without}, "
        f"{observations[0]} to {observations[1]} observations, {variables[0]} to {variables[1]} variables",
        f"on {sum(part['tasks'] for part in record['validation']):,} tasks it never saw:",
    ]
    return lines + [
        f"  {part['distribution']:<6} n={part['observations']:<5} p={part['variables']:<4} "
        f"nSHD {part['nshd']:.2f}  F1 {part['f1']:.2f}  AP {part['ap']:.2f}"
        for part in record["validation"]
    ]


EXAMPLES = {
    "check": (
        "causal-arrow check table.csv",
        "causal-arrow check table.xlsx --sheet 2024 --drop id",
        "causal-arrow check table.csv --na '?' --missing drop",
        "zcat table.csv.gz | causal-arrow check -",
    ),
    "compare": ("causal-arrow compare truth.csv answer/graph.json", "causal-arrow compare before.gml after.dot --json"),
}
"""Commands to show in the help."""
