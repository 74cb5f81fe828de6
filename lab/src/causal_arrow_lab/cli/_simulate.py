"""`causal-arrow-lab simulate`: synthetic tables with their true graphs."""

from __future__ import annotations

import json
from pathlib import Path
from string import ascii_lowercase
from typing import TYPE_CHECKING, Annotated, Any

import typer

from causal_arrow.cli import options
from causal_arrow.cli.console import console, folder
from causal_arrow.errors import ConfigurationError
from causal_arrow.output import check_output, written_together
from causal_arrow.text import counted

if TYPE_CHECKING:
    from causal_arrow.tables.table import Column
    from causal_arrow_lab.synthetic.tasks import TaskBatch, TaskDistribution

EXPERIMENTS = "intervened"
"""The column that names the variables that an experiment set."""
MAX_CELLS = 10**8
"""All tables are in memory together: about a gigabyte."""


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
            help="The distribution of the tables: paper (its section 4.1), broad (numbers), any (also categories, "
            "missing cells, experiments and hidden causes), or shifted (graphs, functions and noise that no model was "
            "trained on)."
        ),
    ] = "broad",
    only: Annotated[
        list[str] | None,
        typer.Option(help="Only these graph families, mechanisms, noises ...; can be repeated.", show_default=False),
    ] = None,
    without: Annotated[
        list[str] | None, typer.Option(help="All but these; can be repeated.", show_default=False)
    ] = None,
    seed: options.Seed = 0,
    overwrite: options.Overwrite = False,
) -> None:
    """Make synthetic tables whose causal graphs are known.

    Writes table-1.csv and graph-1.json, table-2.csv and graph-2.json, ... Columns are in random order, numbers
    standardized. If there were experiments, a last column, intervened, names the variables that they set or shifted.
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
    "simulate": (
        "causal-arrow-lab simulate --output made --variables 20",
        "causal-arrow-lab simulate --output made --tables 10 --distribution paper --only linear",
        "causal-arrow-lab simulate --output made --distribution any --only discrete",
        "causal-arrow discover made/table-1.csv -o answer",
        "causal-arrow compare made/graph-1.json answer/graph.json",
    )
}
"""Commands to show in the help."""


def _check_size(tables: int, observations: int, variables: int) -> None:
    """Raise ConfigurationError if the tables with their graphs need more memory than an ordinary machine has."""
    cells = tables * variables * (observations + variables)
    if cells > MAX_CELLS:
        raise ConfigurationError(
            f"{counted(tables, 'table')} of {observations:,} observations and {variables:,} variables, with graphs, "
            f"have {cells:,} cells, and at most {MAX_CELLS:,} are made at a time. Make fewer."
        )


def _distribution(name: str) -> TaskDistribution:
    from causal_arrow_lab.synthetic.recipes import SHIFTS
    from causal_arrow_lab.synthetic.tasks import TaskDistribution

    return TaskDistribution.shifted(*SHIFTS) if name == "shifted" else TaskDistribution.for_training(name)


def _columns(batch: TaskBatch, number: int) -> list[Column]:
    """The columns of a table: numbers, or levels with their names."""
    tables, names = batch.tables, [f"x{index + 1}" for index in range(batch.data.shape[2])]
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
        return Column(name, "ordered", tuple(f"level {code + 1}" for code in range(levels)))
    letters = ["", *ascii_lowercase]
    return Column(name, "category", tuple(f"{letters[code // 26]}{letters[1 + code % 26]}" for code in range(levels)))


def _write_table(path: Path, batch: TaskBatch, number: int) -> None:
    """Write a table as CSV, with names of levels, and missing cells empty."""
    import pandas as pd

    tables, columns = batch.tables[number : number + 1], _columns(batch, number)
    cells = {
        column.name: [column.levels[int(value)] if column.levels else f"{value:.7g}" for value in values]
        for column, values in zip(columns, tables.values[0].T.tolist(), strict=True)
    }
    frame = pd.DataFrame(cells, dtype=object)
    if tables.observed is not None:
        frame = frame.where(tables.observed[0].numpy())
    if tables.intervened is not None and tables.intervened.any():
        frame[EXPERIMENTS] = [
            ";".join(name for name, is_target in zip(cells, targets, strict=True) if is_target) or None
            for targets in tables.intervened[0].tolist()
        ]
    frame.to_csv(path, index=False, lineterminator="\n")


def _made_by(batch: TaskBatch, number: int, recipes: list[str], seed: int) -> dict[str, Any]:
    """The true graph, in the format of answers, and the recipe of a table, as JSON values."""
    columns = _columns(batch, number)
    names = [column.name for column in columns]
    kinds = [{"name": column.name, "kind": column.kind, "levels": list(column.levels)} for column in columns]
    confounded = batch.truth.confounded
    pairs = [] if confounded is None else confounded[number].triu().nonzero().tolist()
    return {
        "format": "causal-arrow-graph",
        "version": 1,
        "variables": names,
        "edges": [{"source": names[j], "target": names[k]} for j, k in batch.adjacency[number].nonzero().tolist()],
        "order": [names[index] for index in batch.order[number].tolist()],
        "observations": batch.data.shape[1],
        **({"columns": kinds} if any(column.levels for column in columns) else {}),
        "hidden_causes": [{"first": names[j], "second": names[k]} for j, k in pairs],
        "made_by": {
            "seed": seed,
            "recipe": recipes[int(batch.recipe[number])],
            **{table: batch.names(table)[number] for table in batch.choices},
        },
    }
