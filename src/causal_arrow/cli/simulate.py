"""`causal-arrow simulate`: synthetic tables with the graphs behind them."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from causal_arrow.cli import options
from causal_arrow.cli.console import check_output, console, folder, written_together
from causal_arrow.errors import ConfigurationError
from causal_arrow.text import counted

if TYPE_CHECKING:
    from causal_arrow.synthetic.tasks import TaskBatch, TaskDistribution

# All tables are made together, and a file of this size is beyond what a person opens: about a gigabyte.
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
            help="What the tables are like: paper (its section 4.1), broad (what the bundled model learned from), or "
            "shifted (graphs, functions and noise of kinds no model was trained on)."
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

    Writes table-1.csv and graph-1.json, table-2.csv and graph-2.json, ... Columns are standardized and in random order.
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
    console(stderr=True).print(f"Wrote {written} to {output}", markup=False)


EXAMPLES = {
    "simulate": """
**Examples**

`causal-arrow simulate --output made --variables 20`

`causal-arrow simulate --output made --tables 10 --distribution paper --only linear`

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


def _write_table(path: Path, batch: TaskBatch, number: int) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(_names(batch))
        writer.writerows([f"{value:.7g}" for value in row] for row in batch.data[number].tolist())


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
        "made_by": {
            "seed": seed,
            "recipe": recipes[int(batch.recipe[number])],
            **{table: batch.names(table)[number] for table in batch.choices},
        },
    }
