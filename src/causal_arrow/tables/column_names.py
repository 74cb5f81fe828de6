"""The names of columns: those that a source has, those that a table uses for them, those that a caller asks for."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from causal_arrow.errors import Remedy, TableError
from causal_arrow.tables.source_frame import SourceFrame
from causal_arrow.tables.table import Finding
from causal_arrow.text import closest, listed, shown


@dataclass(frozen=True)
class ColumnNames:
    """The names of the columns: as the source has them, and as they are used, which are text without outer blanks."""

    given: tuple[Any, ...]  # (P,)
    used: tuple[str, ...]  # (P,)
    made_up: frozenset[str]  # those of `used` that the source does not have

    def choose(self, columns: Iterable[Any] | None, drop: Iterable[Any] | None) -> list[int]:
        """The places of the columns to use, in the order asked for."""
        keep = range(len(self.used)) if columns is None else self.places(columns, "columns")
        leave = set() if drop is None else set(self.places(drop, "drop"))
        return [place for place in keep if place not in leave]

    def places(self, asked: Iterable[Any], option: str = "") -> list[int]:
        """The places of the names asked for, each once, if the table has them; a name may be as given or as used."""
        known: dict[Any, int] = {}
        for names in (self.used, map(str, self.given), self.given):
            for place, name in enumerate(names):
                known.setdefault(name, place)
        places = []
        for name in one_or_several(asked, option):
            form = next((form for form in (name, str(name), str(name).strip()) if form in known), None)
            if form is None:
                near = closest(str(name), self.used)
                hint = f"did you mean {near!r}?" if near else f"its columns are {listed(self.used, 10)}."
                remedies = [Remedy("name", setting=option)] if option else []
                raise TableError(f"{shown(name)} is not in the table: {hint}", remedies)
            places.append(known[form])
        return list(dict.fromkeys(places))

    def check(self, chosen: Sequence[int]) -> None:
        """TableError for a name that cannot be written to any file."""
        for place in chosen:
            if any("\ud800" <= character <= "\udfff" for character in self.used[place]):
                raise TableError(
                    f"The name {self.used[place]!r} of column {place + 1} holds half a character (a lone surrogate), "
                    "which no file can hold: rename the column."
                )

    def findings(self, chosen: Sequence[int]) -> list[Finding]:
        """Notes on names that are not used as the source has them."""
        blanks = [place for place in chosen if isinstance(self.given[place], str) and self.given[place].strip()]
        unnamed = [place for place in chosen if self.used[place] in self.made_up]
        blanks = [place for place in blanks if self.given[place] != self.used[place] and place not in unnamed]
        joined = [place for place in chosen if isinstance(self.given[place], tuple)]
        return [
            Finding("names", "note", tuple(self.used[place] for place in places), message.format(self._listed(places)))
            for places, message in (
                (blanks, "Names are used without the blanks around them: {}."),
                (unnamed, "Columns without a name were given one: {}."),
                (joined, "Names of several parts were joined with dots: {}."),
            )
            if places
        ]

    def _listed(self, places: Sequence[int]) -> str:
        """Names as given where they are text, else as used."""
        forms = [(self.given[place], self.used[place]) for place in places]
        return listed([given if isinstance(given, str) and used not in self.made_up else used for given, used in forms])


def used_names(read: SourceFrame) -> tuple[str, ...]:
    """The names of all columns as a table has them: text without outer blanks, x1, x2, ... for those without."""
    return column_names(read).used


def column_names(read: SourceFrame) -> ColumnNames:
    """The names of all columns, as given and as used."""
    given = tuple(read.frame.columns.tolist())
    used = [_used_name(name) for name in given]
    if read.first_line is not None:  # pandas numbers the columns of a file that have no name
        used = ["" if re.fullmatch(r"Unnamed: \d+", name) else name for name in used]
    taken = Counter(used)
    made_up = {}
    for place, name in enumerate(used):
        if not name:
            made_up[place] = f"x{place + 1}" if f"x{place + 1}" not in taken else f"column {place + 1}"
    return ColumnNames(
        given, tuple(made_up.get(place, name) for place, name in enumerate(used)), frozenset(made_up.values())
    )


def _used_name(name: Any) -> str:
    """A name as text without outer blanks; empty for none."""
    if _is_nothing(name):
        return ""
    parts = [part for part in name if not _is_nothing(part)] if isinstance(name, tuple) else [name]
    return ".".join(str(part).strip() for part in parts)


def _is_nothing(name: Any) -> bool:
    """Whether a name is no name: None, NaN, or blanks."""
    return name is None or (isinstance(name, float) and np.isnan(name)) or (isinstance(name, str) and not name.strip())


def one_or_several(values: Iterable[Any] | None, option: str) -> list[Any]:
    """The values of an option that takes one or several."""
    if values is None:
        return []
    if isinstance(values, str | bytes | int | float):
        return [values]
    try:
        several = list(values)
        hash(tuple(several))
    except TypeError:
        raise TableError(f"Expected {option} to be a list of names, got {shown(values)}.") from None
    return several
