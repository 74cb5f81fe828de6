"""SourceFrame: a table as its source has it, before anything is decided about its columns."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, BinaryIO

from causal_arrow.errors import Remedy, TableError
from causal_arrow.progress import Progress, unheard
from causal_arrow.tables.packing import unpacked
from causal_arrow.tables.table import Column, Finding
from causal_arrow.text import listed, shown

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class SourceFrame:
    """A data frame as its source has it, what there is to say about the way it was read, and where its cells are.

    first_line is the line of the first observation in a file, line_numbers those of all of them where some lines hold
    none. `decimal` is the decimal sign of the source. `columns` are there if the source knows what they hold.
    """

    frame: pd.DataFrame
    findings: tuple[Finding, ...] = ()
    first_line: int | None = None
    line_numbers: Sequence[int] | None = None
    decimal: str = "."
    is_text: bool = False
    columns: tuple[Column, ...] = ()

    @property
    def observations(self) -> int:
        """How many observations there are."""
        return len(self.frame)

    def cells(self, place: int) -> pd.Series:
        """The cells of a column, as the source has them."""
        return unpacked(self.frame.iloc[:, place])

    def where(self, observation: int) -> str:
        """The place of an observation in words."""
        if self.line_numbers is not None:
            return f"line {self.line_numbers[observation]}"
        return f"observation {observation + 1}" if self.first_line is None else f"line {observation + self.first_line}"


@dataclass(frozen=True)
class FileInMemory:
    """A file that lies on no disk, such as one that a browser sends: its name and its bytes."""

    name: str
    content: bytes

    @property
    def suffix(self) -> str:
        """The ending of the name, as a path has it."""
        return PurePath(self.name).suffix

    def open(self, mode: str = "rb") -> BinaryIO:
        """The bytes as a file that is open for reading."""
        assert mode == "rb"
        return io.BytesIO(self.content)


@dataclass(frozen=True)
class FileOptions:
    """How to read a file, where that should not be detected."""

    delimiter: str | None = None
    decimal: str | None = None
    sheet: str | int | None = None
    header: bool = True
    na: tuple[str, ...] = ()
    progress: Progress = unheard
    """Hears how far a long file is read."""

    def __post_init__(self) -> None:
        if self.decimal not in (None, ".", ","):
            raise TableError(f"Expected a decimal sign of . or , and got {shown(self.decimal)}.")


def remark(message: str, *remedies: Remedy, columns: tuple[str, ...] = ()) -> Finding:
    """A note on the way a table was read."""
    return Finding("reading", "note", columns, message, remedies)


def index_remarks(names: Sequence[Any]) -> tuple[Finding, ...]:
    """A note on levels of an index that have names, as columns have, and are not read. Others only number the rows."""
    named = [str(name) for name in names if name is not None and str(name).strip()]
    if not named:
        return ()
    message = (
        f"The index {named[0]!r} is not read: only columns are."
        if len(named) == 1
        else f"The levels {listed(named)} of the index are not read: only columns are."
    )
    return (remark(message, Remedy("index", tuple(named), about="an index that is a variable")),)


def check_duplicates(names: Sequence[str], where: str) -> None:
    """TableError if two columns have the same name. Columns without a name are not duplicates of each other."""
    twice = sorted(name for name, count in Counter(names).items() if name and count > 1)
    if twice:
        raise TableError(
            f"{where} has more than one column called {listed(twice, 5)}: give each column a name of its own."
        )
