"""Where a table starts in a text file or a sheet: titles and blank rows above it are no part of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

MOST_TITLES = 20


@dataclass(frozen=True)
class Row:
    """A line of a table, or several if a quoted field spans them, as fields."""

    line: int  # of the file, from 1
    fields: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.fields)

    @property
    def has_number(self) -> bool:
        """Whether one of the fields is a number."""
        return any(is_number(field) for field in self.fields)

    @property
    def filled(self) -> int:
        """How many fields hold anything."""
        return sum(bool(field.strip()) for field in self.fields)

    @property
    def is_padded_title(self) -> bool:
        """One text and nothing but delimiters, as spreadsheets save a title."""
        return len(self) > 2 and self.filled == 1 and not self.has_number


def is_number(text: str) -> bool:
    """Whether a field is a number, with whichever decimal sign."""
    try:
        float(text.strip().replace(",", "."))
    except ValueError:
        return False
    return True


def usual_width(rows: Sequence[Row]) -> int:
    """The number of fields that most lines have; of two equally frequent ones the larger."""
    counts = Counter(len(row) for row in rows)
    return max(counts, key=lambda width: (counts[width], width))


def table_start(rows: Sequence[Row], header: bool) -> int:
    """Which of the first lines is the first of the table: those above it are titles."""
    width = usual_width(rows)
    full = (
        place
        for place, row in enumerate(rows[: MOST_TITLES + 1])
        if len(row) == width and not (header and row.is_padded_title)
    )
    start = next(full, 0)
    titles = rows[:start]
    if width < 2 or any(len(row) >= width and not row.is_padded_title for row in titles):
        return 0
    if not header:
        return 0 if any(row.has_number and len(row) > 1 for row in titles) else start
    if titles and rows[start].has_number:
        # An observation: its header is one name short where lines have a label or end in a delimiter.
        start -= 1
        return start if len(rows[start]) == width - 1 else 0
    return start


def sheet_start(rows: Sequence[Row], header: bool) -> int:
    """Which of the rows of a sheet that hold anything is the first of the table.

    A sheet has no delimiters that tell a title from a row with empty cells: a row belongs to the table if more than
    half of its cells are filled, and so does whatever stands below one.
    """
    width = usual_width(rows)
    most = min(width, max(row.filled for row in rows))  # a title may stand further left than the table
    first = next((place for place, row in enumerate(rows) if 2 * row.filled > most), 0)
    above = [Row(row.line, tuple(field for field in row.fields if field.strip())) for row in rows[:first]]
    below = [Row(row.line, tuple([*row.fields, *[""] * width][:width])) for row in rows[first:]]
    return table_start([*above, *below], header)
