"""What a caller declares columns to hold, where that should not be detected: a kind, or an order of levels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any

from causal_arrow.errors import TableError, check_choice
from causal_arrow.tables.column_names import ColumnNames
from causal_arrow.tables.columns import cell_text
from causal_arrow.tables.table import KINDS
from causal_arrow.text import shown


def declared_options(
    kinds: Mapping[Any, str] | None,
    ordered: Mapping[Any, Sequence[Any]] | None,
    names: ColumnNames,
    environment: int | None,
) -> dict[int, dict[str, Any]]:
    """What the caller says of columns, by their places: `kind` and `order` of CellOptions."""
    check_declared(kinds, ordered)
    said: dict[int, dict[str, Any]] = {}
    for name, kind in (kinds or {}).items():
        said[names.places([name])[0]] = {"kind": kind}
    for name, levels in (ordered or {}).items():
        place = names.places([name])[0]
        if (kind := said.get(place, {}).get("kind", "ordered")) != "ordered":
            raise TableError(
                f"{names.used[place]!r} is said to have an order and to be of the kind {kind}: choose one."
            )
        said[place] = {"order": tuple(map(cell_text, levels))}
    if environment is not None:
        if said.get(environment, {}).get("kind", "category") != "category" or "order" in said.get(environment, {}):
            name = names.used[environment]
            raise TableError(f"The environments in {name!r} are read as a category: they have no other kind.")
        said[environment] = {"kind": "category"}
    return said


def check_declared(kinds: Any, ordered: Any) -> None:
    """TableError unless kinds are a mapping to KINDS, and orders a mapping to two or more different levels."""
    for setting, value, example in (
        ("kinds", kinds, "{'zip': 'category'}"),
        ("ordered", ordered, "{'size': ['small', 'large']}"),
    ):
        if value is not None and not isinstance(value, Mapping):
            raise TableError(f"Expected {setting} as a mapping such as {example}, got {shown(value)}.")
    for name, kind in (kinds or {}).items():
        check_choice(f"the kind of {shown(name)}", kind, KINDS)
    for name, levels in (ordered or {}).items():
        if isinstance(levels, Set):
            raise TableError(
                f"Expected the order of {shown(name)} as a list, the smallest level first, got {shown(levels)}: a set "
                "has no order."
            )
        several = [] if isinstance(levels, str | bytes | Iterator) or not isinstance(levels, Iterable) else list(levels)
        if len(set(map(cell_text, several))) < max(2, len(several)):
            raise TableError(
                f"Expected the order of {shown(name)} as two or more different levels, the smallest first, got "
                f"{shown(levels)}."
            )
