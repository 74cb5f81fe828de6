"""Which of the bundled models reads a table, where that is left open."""

from __future__ import annotations

from typing import Any

from causal_arrow.network.bundled import AUTO, FOR_EVERY_TABLE, FOR_NUMBERS
from causal_arrow.tables.table import Table

FEW_VARIABLES, MANY_VARIABLES = 10, 256
"""With fewer or more variables than this the network for every table is better at numbers, too: the other has learned
that small tables are dense, and nothing about tables of more than 110 variables."""


def suited_model(source: Any, table: Table) -> Any:
    """The model for a table: `source`, unless that is "auto".

    "auto" is `arrow-base` for a complete table of 10 to 256 columns of numbers, without experiments and environments,
    and `arrow-any` for every other table.
    """
    if source != AUTO:
        return source
    only_numbers = all(column.kind == "number" for column in table.columns) and table.intervened is None
    complete = only_numbers and table.environment is None and bool(table.observed.all())
    usual_size = FEW_VARIABLES <= table.variables <= MANY_VARIABLES
    return FOR_NUMBERS if complete and usual_size else FOR_EVERY_TABLE
