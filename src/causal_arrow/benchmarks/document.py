"""A report as a list of blocks, written as Markdown or as one self-contained HTML page."""

from __future__ import annotations

import base64
import html
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Heading:
    """A title; level 1 is the document's."""

    text: str
    level: int = 2


@dataclass(frozen=True)
class Paragraph:
    """Plain text."""

    text: str


@dataclass(frozen=True)
class Cell:
    """What stands in a table; bold for the best, italic for what is not ours."""

    text: str
    bold: bool = False
    italic: bool = False


@dataclass(frozen=True)
class Grid:
    """A table. All columns but the first `text_columns` hold numbers and are aligned to the right."""

    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    text_columns: int = 1


@dataclass(frozen=True)
class Picture:
    """A figure that lies in a file."""

    path: Path
    caption: str


Block = Heading | Paragraph | Grid | Picture


def to_markdown(blocks: Sequence[Block], folder: Path) -> str:
    """Markdown, with pictures linked relative to `folder`. Tables are padded so that they also read as plain text."""
    writers: dict[type, Callable[..., str]] = {
        Heading: lambda block: f"{'#' * block.level} {block.text}",
        Paragraph: lambda block: block.text,
        Grid: markdown_table,
        Picture: lambda block: f"![{block.caption}]({_relative(block.path, folder)})\n\n*{block.caption}*",
    }
    return "\n\n".join(writers[type(block)](block) for block in blocks) + "\n"


def markdown_table(table: Grid) -> str:
    """One table in Markdown."""
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


STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; max-width: 64rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.7rem; } h2 { font-size: 1.3rem; margin-top: 2.5rem; border-bottom: 1px solid #ddd; }
h3 { font-size: 1.05rem; margin-top: 1.8rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .18rem .7rem; text-align: right; white-space: nowrap; }
th { border-bottom: 1.5px solid #444; font-weight: 600; }
.text { text-align: left; }
tr.group td { border-top: 1px solid #ccc; }
em { color: #666; }
figure { margin: 1.5rem 0; } figure img { max-width: 100%; }
figcaption { color: #555; font-size: .9rem; }
@media (prefers-color-scheme: dark) {
  body { background: #17191c; color: #ddd; } em, figcaption { color: #a0a4aa; }
  h2, tr.group td { border-color: #3a3d42; } th { border-color: #888; } figure img { background: #fff; }
}
"""

_IMAGE_TYPES = {".png": "image/png", ".svg": "image/svg+xml"}


def to_html(blocks: Sequence[Block]) -> str:
    """One page with everything inside, pictures too."""
    title = next((block.text for block in blocks if isinstance(block, Heading)), "Report")
    writers: dict[type, Callable[..., str]] = {
        Heading: lambda block: f"<h{block.level}>{html.escape(block.text)}</h{block.level}>",
        Paragraph: lambda block: f"<p>{html.escape(block.text)}</p>",
        Grid: _html_table,
        Picture: _html_picture,
    }
    body = "\n".join(writers[type(block)](block) for block in blocks)
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _html_table(table: Grid) -> str:
    def side(column: int) -> str:
        return ' class="text"' if column < table.text_columns else ""

    head = "".join(f"<th{side(column)}>{html.escape(text)}</th>" for column, text in enumerate(table.header))
    lines = []
    for row in table.rows:
        group = ' class="group"' if row[0].text else ""  # the first column names a group of lines only once
        cells = "".join(f"<td{side(column)}>{_html_cell(cell)}</td>" for column, cell in enumerate(row))
        lines.append(f"<tr{group}>{cells}</tr>")
    return f'<div class="scroll"><table>\n<tr>{head}</tr>\n' + "\n".join(lines) + "\n</table></div>"


def _html_cell(cell: Cell) -> str:
    text = html.escape(cell.text)
    text = f"<em>{text}</em>" if cell.italic else text
    return f"<strong>{text}</strong>" if cell.bold else text


def _html_picture(picture: Picture) -> str:
    content = base64.b64encode(picture.path.read_bytes()).decode()
    caption = html.escape(picture.caption)
    source = f"data:{_IMAGE_TYPES[picture.path.suffix]};base64,{content}"
    return f'<figure><img src="{source}" alt="{caption}"><figcaption>{caption}</figcaption></figure>'
