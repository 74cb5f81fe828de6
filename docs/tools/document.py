"""Documents as lists of blocks, written as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from causal_arrow.errors import BenchmarkError


@dataclass(frozen=True)
class Heading:
    """A title; level 1 is that of the document."""

    text: str
    level: int = 2


@dataclass(frozen=True)
class Paragraph:
    """Plain text."""

    text: str


@dataclass(frozen=True)
class Cell:
    """A cell of a table; bold for the best, italic for published figures."""

    text: str
    bold: bool = False
    italic: bool = False


@dataclass(frozen=True)
class Grid:
    """A table. Columns after the first `text_columns` hold numbers and are aligned to the right."""

    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    text_columns: int = 1


@dataclass(frozen=True)
class Picture:
    """A figure in a file."""

    path: Path
    caption: str


Block = Heading | Paragraph | Grid | Picture


def to_markdown(blocks: Sequence[Block], folder: Path) -> str:
    """Write Markdown with pictures linked relative to `folder`, and tables that read well as plain text."""
    writers: dict[type, Callable[..., str]] = {
        Heading: lambda block: f"{'#' * block.level} {block.text}",
        Paragraph: lambda block: block.text,
        Grid: markdown_table,
        Picture: lambda block: f"![{block.caption}]({_relative(block.path, folder)})\n\n*{block.caption}*",
    }
    return "\n\n".join(writers[type(block)](block) for block in blocks) + "\n"


def markdown_table(table: Grid) -> str:
    """Write a table in Markdown."""
    lines = [list(table.header), *([_markdown_cell(cell) for cell in row] for row in table.rows)]
    widths = [max(3, *(len(line[column]) for line in lines)) for column in range(len(table.header))]
    rule = [
        "-" * width if column < table.text_columns else "-" * (width - 1) + ":" for column, width in enumerate(widths)
    ]

    def padded(line: Sequence[str]) -> str:
        cells = [
            text.ljust(width) if column < table.text_columns else text.rjust(width)
            for column, (text, width) in enumerate(zip(line, widths, strict=True))
        ]
        return f"| {' | '.join(cells)} |"

    return "\n".join([padded(lines[0]), padded(rule), *(padded(line) for line in lines[1:])])


def _markdown_cell(cell: Cell) -> str:
    text = cell.text.replace("|", "\\|")
    mark = "**" * cell.bold + "*" * cell.italic
    return f"{mark}{text}{mark}" if text else text


def _relative(path: Path, folder: Path) -> str:
    path, folder = path.resolve(), folder.resolve()
    return (path.relative_to(folder) if path.is_relative_to(folder) else path).as_posix()


def write_blocks(blocks: Sequence[Block], output: Path) -> Path:
    """Write a document as Markdown, and return its path."""
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(to_markdown(blocks, output.parent), encoding="utf-8")
    except OSError as error:
        raise BenchmarkError(
            f"Cannot write the report to {output}: {error.strerror}. Choose another --output."
        ) from error
    return output
