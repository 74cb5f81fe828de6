"""The output of commands: text, JSON, and the files that an option names."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from causal_arrow.errors import ArrowError, ConfigurationError
from causal_arrow.output import check_output, written_together
from causal_arrow.text import one_slip_apart, visible

if TYPE_CHECKING:
    import pandas as pd

# Wide enough for any line: output to a file or another program must not be broken as on a screen.
PIPED_WIDTH = 10_000


class PlainConsole(Console):
    """Prints text as it is, with control characters written out: the name of a column may hold anything."""

    def render_str(self, text: str, **how: Any) -> Text:
        """The text without control characters, ready to print."""
        return super().render_str(visible(text), **how)


def console(stderr: bool = False) -> Console:
    """A console with colors and the width of the screen on a terminal, and plain unbroken lines elsewhere."""
    screen = (sys.stderr if stderr else sys.stdout).isatty()
    width = None if screen else PIPED_WIDTH
    return PlainConsole(stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=not screen, width=width)


def print_lines(lines: Iterable[str]) -> None:
    """Print lines of text, the first of them bold."""
    first, *others = lines
    console().print(first, style="bold")
    for line in others:
        console().print(line)


def print_table(headings: Sequence[str], rows: Iterable[Sequence[str | Text]], numbers: Sequence[str] = ()) -> None:
    """Print a table of cells; the columns called `numbers` are aligned on the right."""
    screen = sys.stdout.isatty()
    table = Grid(box=SIMPLE_HEAD if screen else None, show_edge=False, pad_edge=False, header_style="bold")
    for heading in headings:
        table.add_column(heading, justify="right" if heading in numbers else "left", no_wrap=heading in numbers)
    for row in rows:
        table.add_row(*row)
    console().print(table)


def print_frame(frame: pd.DataFrame, *formats: str) -> None:
    """Print a data frame, given the format of each column: none for text, which is on the left."""
    import pandas as pd

    rows = [
        ["" if pd.isna(value) else format(value, each) for value, each in zip(row, formats, strict=True)]
        for row in frame.itertuples(index=False, name=None)
    ]
    headings = [str(name).replace("_", " ") for name in frame.columns]
    print_table(headings, rows, [name for name, each in zip(headings, formats, strict=True) if each])


def print_rest(total: int, shown: int) -> None:
    """Say how to see the lines of a list beyond those shown."""
    if total > shown:
        console().print(f"... and {total - shown:,} more: see them with --show {total}.")


def print_warnings(warnings: Iterable[str]) -> None:
    """Print what to be careful about, in words for the command line."""
    for warning in warnings:
        console().print(Text("Careful:", style="yellow"), warning)


def print_json(content: Any) -> None:
    """Print JSON and nothing else."""
    from causal_arrow.discovery.exports import json_text

    print(json_text(content))


def folder(text: str) -> Path:
    """An option's value as a folder for output. An empty name would silently be the current folder."""
    return _named(text, "a folder")


def file(text: str) -> Path:
    """An option's value as a file for output."""
    return _named(text, "a file")


def _named(text: str, what: str) -> Path:
    if not str(text):  # defaults come through here as well, and are paths already
        raise ArrowError(f"The name for the output is empty: name {what}.")  # not as a ValueError, which typer takes
    return Path(text)


OTHER_ENDING = re.compile(
    r"\.(jpe?g|gif|bmp|tiff?|webp|e?ps|html?|md|tex|docx?|pptx?|odt|rtf|ipynb|py|tsv|xlsx?|ods|parquet|feather|xml|"
    r"ya?ml|toml|net|gz|zip)"
)
"""Endings of names that are not meant as folders."""
LIKE = {".gv": ".dot", ".dagitty": ".txt", ".pdf": ".svg"}  # other endings of the same content
MIN_ENDING = 3
"""Letters of an ending that may be misspelled: with fewer, as in run.v2, a slip cannot be distinguished from a name."""


@dataclass(frozen=True)
class Destination:
    """The place of the files of an answer, if any; ConfigurationError where they cannot go or would replace others."""

    output: Path | None
    table: Path
    overwrite: bool
    files: Sequence[str]  # the names of all files, for a folder

    def __post_init__(self) -> None:
        if self.output is not None:
            if not self.is_one_file:
                self._refuse_other_endings(self.output)
            check_output(self.folder, self.names, self.overwrite)

    @cached_property
    def by_ending(self) -> dict[str, str]:
        """The name of the file that an output with this ending stands for: the first that has it."""
        first: dict[str, str] = {}
        for name in self.files:
            first.setdefault(Path(name).suffix, name)
        return first | {other: first[ending] for other, ending in LIKE.items() if ending in first}

    @cached_property
    def is_one_file(self) -> bool:
        """Whether the output names a file, not a folder."""
        if self.output is None:
            return False
        try:
            if self.output.suffix.lower() not in self.by_ending or self.output.is_dir():
                return False
            there = self.output.exists()
            itself = there and self.table.exists() and self.output.samefile(self.table)
        except OSError:  # reported where folders are checked
            return False
        if itself:
            raise ConfigurationError(f"'{self.output}' is the table itself: name another file for the output.")
        if there and not self.overwrite:
            raise ConfigurationError(
                f"'{self.output}' is there already: name another file, or replace it with --overwrite."
            )
        return True

    @property
    def folder(self) -> Path:
        """The folder to write to."""
        assert self.output is not None
        return self.output.parent if self.is_one_file else self.output

    @property
    def names(self) -> list[str]:
        """The names of the files."""
        if self.output is None:
            return []
        return [self.output.name] if self.is_one_file else list(self.files)

    def write(self, write: Callable[[str, Path], None]) -> None:
        """Write the files with a function of the content's name, such as graph.svg, and the path."""
        if self.output is None:
            return
        with written_together(self.folder, self.names, self.overwrite) as unfinished:
            for name in self.names:
                content = self.by_ending[self.output.suffix.lower()] if self.is_one_file else name
                write(content, unfinished / name)

    def _refuse_other_endings(self, output: Path) -> None:
        """ConfigurationError for a new folder with the name of a file that is not written here, or misspelled."""
        ending = output.suffix.lower()
        letters = ending.removeprefix(".")
        near = [known for known in self.by_ending if len(letters) >= MIN_ENDING and one_slip_apart(letters, known[1:])]
        try:
            if not (near or OTHER_ENDING.fullmatch(ending)) or output.is_dir():
                return
        except OSError:  # reported where folders are checked
            return
        hint = f" Did you mean '{output.with_suffix(near[0]).name}'?" if near else ""
        raise ConfigurationError(
            f"Expected a folder, or a file that ends in {', '.join(self.by_ending)}, got '{output.name}'.{hint}"
        )
