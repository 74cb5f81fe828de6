"""Consoles of commands, and the values of options that name an output."""

from __future__ import annotations

import sys
from collections.abc import Sequence
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


class SafeConsole(Console):
    """Writes control characters out: the name of a column may hold an escape sequence."""

    def render_str(self, text: str, **how: Any) -> Text:
        """The text without control characters, ready to print."""
        return super().render_str(visible(text), **how)


def console(stderr: bool = False) -> Console:
    """A console with colors and the width of the screen on a terminal, and plain unbroken lines elsewhere."""
    stream = sys.stderr if stderr else sys.stdout
    return SafeConsole(
        stderr=stderr, highlight=False, soft_wrap=not stream.isatty(), width=None if stream.isatty() else PIPED_WIDTH
    )


def grid(*headings: str, right: Sequence[str] = ()) -> Grid:
    """An empty table with these headings; the columns in `right` hold numbers."""
    table = Grid(box=SIMPLE_HEAD if sys.stdout.isatty() else None, show_edge=False, pad_edge=False, header_style="bold")
    for heading in headings:
        table.add_column(heading, justify="right" if heading in right else "left", no_wrap=heading in right)
    return table


def print_rest(total: int, shown: int) -> None:
    """Say how to see the lines of a list beyond those shown."""
    if total > shown:
        console().print(f"... and {total - shown:,} more: see them with --show {total}.")


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
