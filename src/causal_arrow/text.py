"""Words for messages: lists of names, numbers with their nouns, the closest name to a misspelled one."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from typing import Any


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
