"""What commands print, as text or as JSON, and the values of options that name an output."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from causal_arrow.errors import ArrowError
from causal_arrow.text import visible

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
