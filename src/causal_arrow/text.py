"""Words for messages: lists of names, numbers with their nouns, the closest name to a misspelled one, odd letters."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from typing import Any

UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
"""Characters that XML cannot hold or no font can show: controls except blanks, halves of letters, non-characters."""


def listed(names: Sequence[str], most: int = 6) -> str:
    """Names for a sentence, quoted, the first few of many: "'a', 'b' and 3 more"."""
    shown = [repr(name) for name in names[:most]]
    if len(names) > most:
        return f"{', '.join(shown)} and {len(names) - most} more"
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """A number with its noun: "1 value", "2 values", "3,000 values"."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def capitalized(text: str) -> str:
    """The text as a sentence starts with it."""
    return text[:1].upper() + text[1:]


def closest(name: str, known: Iterable[str]) -> str | None:
    """The known name nearest in spelling, whatever its capitals; None if none is near."""
    by_lower = {candidate.lower(): candidate for candidate in known}
    matches = difflib.get_close_matches(name.lower(), by_lower, n=1)
    return by_lower[matches[0]] if matches else None


def one_slip_apart(one: str, other: str) -> bool:
    """Whether two words differ by a slip of the finger: a wrong letter, one too many or too few, two that swapped."""
    short, long = sorted((one, other), key=len)
    same = next((place for place, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    rest, longer_rest = short[same:], long[same:]
    if len(short) < len(long):
        return rest == longer_rest[1:]
    return rest[1:] == longer_rest[1:] or (rest[1::-1] == longer_rest[:2] and rest[2:] == longer_rest[2:])


def reason(error: BaseException) -> str:
    """What an exception of another package says, as a part of a sentence: its first line, without the full stop."""
    return " ".join((str(error).strip() or type(error).__name__).split("\n")[0].split()).rstrip(".")


def shown(value: Any, most: int = 60) -> str:
    """A value as an error message shows it, cut short; by its type alone where it cannot be written."""
    try:
        text = re.sub(r"\s*\n\s*", " ", repr(value))
    except Exception:  # a list nested a thousand deep, an object that fails to describe itself
        text = f"a value of type {type(value).__name__}"
    return text if len(text) <= most else text[: most - 3] + "..."


def visible(text: str, hidden: re.Pattern[str] = UNPRINTABLE) -> str:
    r"""The text with such characters written out, as "\x07" or "\udc80"."""
    return hidden.sub(lambda match: f"\\x{ord(match[0]):02x}" if match[0] < "\x80" else f"\\u{ord(match[0]):04x}", text)
