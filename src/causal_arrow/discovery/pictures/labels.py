"""Names of variables in pictures: wrapped, shortened, and in letters that a font has."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from causal_arrow.text import visible

FONT_SIZE = 11.0  # points
LINE_LENGTH = 14  # characters of a name before it is wrapped
MAX_LINES = 2

WORD_ENDS = re.compile(r"(?<=[\s_./-])(?![\s_./-])|(?<=[a-z])(?=[A-Z])")
"""After blanks, underscores, dots, slashes and hyphens, and where a small letter meets a capital."""

WIDE_FONTS = re.compile(
    "CJK|Noto Sans|Unicode|Source Han|Hei|Gothic|Mincho|Ming|Song|Fallback|Unifont|Nanum|Meiryo|PingFang|Hiragino|YaHei"
)
"""Fonts with the letters of many languages, by parts of their names."""


@dataclass(frozen=True, eq=False)
class Labels:
    """The names of variables in a picture."""

    full: list[str]
    safe: list[str]  # with the number of the column in place of letters that no font has
    families: list[str]
    unshowable: frozenset[str]  # letters that none of the fonts has

    @classmethod
    def of(cls, names: Sequence[str], *, lines: int, length: int) -> Labels:
        """The labels for names, in so many lines of this length."""
        texts = [" ".join(visible(name).split()) for name in names]
        families, unshowable = _fonts_for(set("".join(texts)))
        safe = [_numbered(text, number, unshowable) for number, text in enumerate(texts, start=1)]
        full, safe = ([shortened(text, lines, length) for text in each] for each in (texts, safe))
        return cls(full, safe, families, unshowable)

    def size(self, label: str) -> tuple[float, float]:
        """Width and height in points; letters without a glyph count as wide."""
        shown = "".join("W" if letter in self.unshowable else letter for letter in label)
        return text_size(shown, families=self.families)

    def for_files(self, paths: Sequence[str | Path]) -> list[tuple[list[str], list[str | Path]]]:
        """Which labels go into which files: SVG leaves letters to the reader's fonts."""
        if self.full == self.safe:
            return [(self.safe, list(paths))]
        vector = [path for path in paths if str(path).lower().endswith(".svg")]
        other = [path for path in paths if path not in vector]
        return [(labels, files) for labels, files in ((self.full, vector), (self.safe, other)) if files]


def _numbered(name: str, number: int, unshowable: frozenset[str]) -> str:
    """The name, or what can be shown of it after the number of its column."""
    if not unshowable & set(name):
        return name
    rest = re.sub("…+", "…", "".join("…" if letter in unshowable else letter for letter in name))
    return f"{number}: {rest}" if any(letter.isalnum() for letter in rest) else f"column {number}"


def _fonts_for(letters: set[str]) -> tuple[list[str], frozenset[str]]:
    """Font families that together have as many of the letters as possible, and the letters that none has.

    The usual family comes first; others are searched only if it lacks a letter.
    """
    import matplotlib as mpl
    from matplotlib import font_manager

    families = list(mpl.rcParams["font.family"])
    lacking = {letter for letter in letters if not letter.isspace()}
    for family in families:
        lacking = _lacking(lacking, family)
    others = sorted({font.name for font in font_manager.fontManager.ttflist if WIDE_FONTS.search(font.name)})
    while lacking and others:
        left = {family: _lacking(lacking, family) for family in others}
        best = min(left, key=lambda family: len(left[family]))
        if left[best] == lacking:
            break
        families.append(best)
        others.remove(best)
        lacking = left[best]
    return families, frozenset(lacking)


def _lacking(letters: Iterable[str], family: str) -> set[str]:
    """The letters that a font has no glyph for."""
    from matplotlib import font_manager

    try:
        font = font_manager.get_font(font_manager.findfont(font_manager.FontProperties(family=[family])))
    except (OSError, RuntimeError):  # the file does not hold what its name promises
        return set(letters)
    return {letter for letter in letters if font.get_char_index(ord(letter)) == 0}


def shortened(name: str, lines: int = MAX_LINES, length: int = LINE_LENGTH) -> str:
    """A name wrapped between words, and cut with an ellipsis where it needs more room."""
    rows = [""]
    for word in WORD_ENDS.split(name):
        if rows[-1] and len((rows[-1] + word).rstrip()) > length:
            rows.append(word)
        else:
            rows[-1] += word
    rows = [row.strip() for row in rows if row.strip()] or [" "]
    if len(rows) > lines:
        # The end stays: it is often the only difference between two long names.
        end = "…" + _last_words(name.rstrip(), length - 1)
        rows = [*rows[: lines - 1], end] if lines > 1 else [name.strip()]
    return "\n".join(_cut(row, length) for row in rows)


def _cut(row: str, length: int) -> str:
    """A row with its middle left out if it is too long."""
    if len(row) <= length:
        return row
    end = _last_words(row, length // 2)
    start = row[: length - len(end) - 1]
    words = [word.end() for word in WORD_ENDS.finditer(row) if len(start) / 2 <= word.end() <= len(start)]
    return (row[: words[-1]] if words else start).rstrip() + "…" + end


def _last_words(text: str, length: int) -> str:
    """The end of a text: whole words if they fill half of the room, otherwise as many letters as fit."""
    sizes = [len(text) - word.end() for word in WORD_ENDS.finditer(text)]
    fitting = [size for size in sizes if length / 2 <= size <= length]
    return text[-max(fitting) :] if fitting else text[-length:].lstrip()


def text_size(text: str, size: float = FONT_SIZE, families: Sequence[str] | None = None) -> tuple[float, float]:
    """Width and height of a text in points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextToPath

    measure = TextToPath()  # at 72 dots per inch: in points
    font = FontProperties(size=size, family=None if families is None else list(families))
    lines = text.split("\n")
    width = max(measure.get_text_width_height_descent(line or " ", font, ismath=False)[0] for line in lines)
    return float(width), len(lines) * 1.15 * size
