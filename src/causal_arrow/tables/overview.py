"""Every column of a source, whether or not it can be used: for choosing among them and saying what they hold."""

from __future__ import annotations

from dataclasses import dataclass

from causal_arrow.tables.column_names import used_names
from causal_arrow.tables.columns import distinct_levels
from causal_arrow.tables.source_frame import SourceFrame


@dataclass(frozen=True)
class SourceColumn:
    """A column as its source has it."""

    name: str
    values: tuple[str, ...]
    """The different values as text, sorted; none if there are too many to be levels."""
    missing: int
    """How many cells are empty."""


def source_columns(read: SourceFrame) -> tuple[SourceColumn, ...]:
    """The columns of a source, in its order."""
    columns = (read.frame.iloc[:, place] for place in range(read.frame.shape[1]))
    return tuple(
        SourceColumn(name, distinct_levels(column), int(column.isna().sum()))
        for name, column in zip(used_names(read), columns, strict=True)
    )
