"""`causal-arrow simulate`: synthetic tables with the graphs behind them."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from string import ascii_lowercase
from typing import TYPE_CHECKING, Annotated, Any

import typer

from causal_arrow.cli import options
from causal_arrow.cli.console import check_output, console, folder, written_together
from causal_arrow.errors import ConfigurationError
from causal_arrow.text import counted

if TYPE_CHECKING:
    from causal_arrow.synthetic.tasks import TaskBatch, TaskDistribution
    from causal_arrow.tables.table import Column

# All tables are made together, and a file of this size is beyond what a person opens: about a gigabyte.
EXPERIMENTS = "intervened"
"""The column that names what experiments set."""
MOST_CELLS = 10**8


def simulate(
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="Folder for the tables and graphs.", parser=folder, show_default=False),
    ],
    tables: Annotated[int, typer.Option(help="How many tables.", min=1)] = 1,
    observations: Annotated[int, typer.Option(help="Observations in each.", min=2)] = 500,
    variables: Annotated[int, typer.Option(help="Variables in each.", min=2)] = 10,
    distribution: Annotated[
        str,
        typer.Option(
            help="What the tables are like: paper (its section 4.1), broad (what the bundled model learned from), any "
            "(categories, missing cells, experiments, hidden causes and more besides), or shifted (graphs, functions "
            "and noise of kinds no model was trained on)."
        ),
    ] = "broad",
    only: Annotated[
        list[str] | None,
        typer.Option(
            help="Only these graph families, mechanisms, noises ...; can be given several times.",
            show_default=False,
        ),
    ] = None,
    without: Annotated[
        list[str] | None, typer.Option(help="All but these; can be given several times.", show_default=False)
    ] = None,
    seed: options.Seed = 0,
    overwrite: options.Overwrite = False,
) -> None:
    """Make synthetic tables whose causal graphs are known, to try things out on.

    Writes table-1.csv and graph-1.json, table-2.csv and graph-2.json, ... Columns are in random order, numbers
    standardized. Where there were experiments, a last column, intervened, names the variables that they set or shifted.
    """
    _check_size(tables, observations, variables)
    names = [name for number in range(1, tables + 1) for name in (f"table-{number}.csv", f"graph-{number}.json")]
    check_output(output, names, overwrite)

    import torch

    chosen = _distribution(distribution)
    if only:
        chosen = chosen.only(*only)
    if without:
        chosen = chosen.without(*without)
    with written_together(output, names, overwrite) as made:
        batch = chosen.sample(tables, observations, variables, torch.Generator().manual_seed(seed))
        for number in range(tables):
            _write_table(made / f"table-{number + 1}.csv", batch, number)
            description = _made_by(batch, number, list(chosen.recipes), seed)
            (made / f"graph-{number + 1}.json").write_text(json.dumps(description, indent=2) + "\n", encoding="utf-8")
    written = "1 table and its graph" if tables == 1 else f"{tables:,} tables and their graphs"
    set_somewhere = batch.tables.intervened is not None and bool(batch.tables.intervened.any())
    hint = f". Read those with a column {EXPERIMENTS} with --interventions {EXPERIMENTS}." if set_somewhere else ""
    console(stderr=True).print(f"Wrote {written} to {output}{hint}", markup=False)


EXAMPLES = {
    "simulate": """
**Examples**

`causal-arrow simulate --output made --variables 20`

`causal-arrow simulate --output made --tables 10 --distribution paper --only linear`

`causal-arrow simulate --output made --distribution any --only discrete`

`causal-arrow discover made/table-1.csv -o answer`

`causal-arrow compare made/graph-1.json answer/graph.json`
"""
}


def _check_size(tables: int, observations: int, variables: int) -> None:
    """ConfigurationError if the tables with their graphs would not fit in the memory of an ordinary machine."""
    cells = tables * variables * (observations + variables)
    if cells > MOST_CELLS:
        raise ConfigurationError(
            f"{counted(tables, 'table')} of {observations:,} observations and {variables:,} variables, with graphs, "
            f"have {cells:,} cells, and at most {MOST_CELLS:,} are made at a time: ask for fewer."
        )


def _distribution(name: str) -> TaskDistribution:
    from causal_arrow.synthetic.recipes import SHIFTS
    from causal_arrow.synthetic.tasks import TaskDistribution

    return TaskDistribution.shifted(*SHIFTS) if name == "shifted" else TaskDistribution.for_training(name)


def _names(batch: TaskBatch) -> list[str]:
    return [f"x{place + 1}" for place in range(batch.data.shape[2])]


def _columns(batch: TaskBatch, number: int) -> list[Column]:
    """What each column holds: numbers or levels, and how these are called."""
    names, tables = _names(batch), batch.tables
    if tables.levels is None or tables.ordered is None:
        return [_column(name, 0, ordered=False) for name in names]
    return list(map(_column, names, tables.levels[number].tolist(), tables.ordered[number].tolist()))


def _column(name: str, levels: int, ordered: bool) -> Column:
    from causal_arrow.tables.table import Column

    if levels == 0:
        return Column(name)
    if levels == 2:
        return Column(name, "binary", ("no", "yes"))
    if ordered:
        return Column(name, "ordered", tuple(f"level {place + 1}" for place in range(levels)))
    letters = ["", *ascii_lowercase]
    return Column(name, "category", tuple(f"{letters[code // 26]}{letters[1 + code % 26]}" for code in range(levels)))


def _write_table(path: Path, batch: TaskBatch, number: int) -> None:
    """The table as people have it: levels by their names, cells that are not observed empty."""
    tables, names = batch.tables[number : number + 1], _names(batch)
    values = tables.values[0].tolist()
    columns = _columns(batch, number)
    rows = [
        [
            column.levels[int(value)] if column.levels else f"{value:.7g}"
            for column, value in zip(columns, row, strict=True)
        ]
        for row in values
    ]
    if tables.observed is not None:
        for observation, variable in (~tables.observed[0]).nonzero().tolist():
            rows[observation][variable] = ""
    header = list(names)
    if tables.intervened is not None and tables.intervened.any():
        header.append(EXPERIMENTS)
        for row, targets in zip(rows, tables.intervened[0].tolist(), strict=True):
            row.append(";".join(name for name, is_target in zip(names, targets, strict=True) if is_target))
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def _made_by(batch: TaskBatch, number: int, recipes: list[str], seed: int) -> dict[str, Any]:
    """The true graph and how the table was made, as JSON can hold it."""
    names = _names(batch)
    return {
        "format": "causal-arrow-graph",
        "version": 1,
        "variables": names,
        "edges": [{"source": names[j], "target": names[k]} for j, k in batch.adjacency[number].nonzero().tolist()],
        "order": [names[place] for place in batch.order[number].tolist()],
        "observations": batch.data.shape[1],
        **_beyond_numbers(batch, number),
        "made_by": {
            "seed": seed,
            "recipe": recipes[int(batch.recipe[number])],
            **{table: batch.names(table)[number] for table in batch.choices},
        },
    }


def _beyond_numbers(batch: TaskBatch, number: int) -> dict[str, Any]:
    """Kinds of columns, where some are no numbers, and pairs with a hidden common cause, as answers have them."""
    names, columns = _names(batch), _columns(batch, number)
    found: dict[str, Any] = {}
    if any(column.levels for column in columns):
        found["columns"] = [
            {"name": column.name, "kind": column.kind, "levels": list(column.levels)} for column in columns
        ]
    confounded = batch.truth.confounded
    pairs = [] if confounded is None else confounded[number].triu().nonzero().tolist()
    found["hidden_causes"] = [{"first": names[j], "second": names[k]} for j, k in pairs]
    return found
