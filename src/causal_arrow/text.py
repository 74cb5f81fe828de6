"""Words for messages: lists of names, numbers, shares, the closest name to a misspelled one, odd characters."""

from __future__ import annotations

import difflib
import html
import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
"""Characters that XML forbids or no font shows: controls except blanks, surrogates, noncharacters."""
MISLEADING = re.compile(UNPRINTABLE.pattern[:-1] + "\r\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""These, and characters that start a line anew or turn the direction of text around."""


def listed(names: Sequence[str], most: int = 6) -> str:
    """Quoted names for a sentence, with only the first few of many: "'a', 'b' and 3 more"."""
    quoted = [repr(name) for name in names]
    if len(names) > most or len(names) < 2:
        return first_few(quoted, most)
    return f"{', '.join(quoted[:-1])} and {quoted[-1]}"


def first_few(items: Sequence[str], most: int, things: str = "") -> str:
    """The first few of many items: "a, b", "a, b and 3 more", "a, b and 3 more things"."""
    rest = f" and {len(items) - most} more{things and f' {things}'}" if len(items) > most else ""
    return f"{', '.join(items[:most])}{rest}"


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """A number with its noun: "1 value", "2 values", "3,000 values"."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def in_digits(value: float) -> str:
    """A number with three significant digits: 6.04, 0.0123, 1,230."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{digits}f}" if digits <= 5 and abs(value) < 1e7 else f"{value:.3g}"


def in_percent(share: float) -> str:
    """A share in percent: "37%", "<1%", ">99%".

    Never "0%" or "100%": whether a computed share is exactly 0 or 1 depends on the processor. For shares that were
    counted, use `counted_share`.
    """
    if share < 0.01:
        return "<1%"
    return ">99%" if share > 0.99 else f"{share:.0%}"


def counted_share(share: float, things: str = "") -> str:
    """A share that was counted, of `things` if they are named: "37% of graphs", "none of the graphs", "all graphs"."""
    if share == 0:
        return f"none of the {things}" if things else "none"
    if math.isclose(share, 1):
        return f"all {things}" if things else "all"
    return f"{in_percent(share)} of {things}" if things else in_percent(share)


def capitalized(text: str) -> str:
    """The text with a capital letter in front."""
    return text[:1].upper() + text[1:]


def closest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is nearest in spelling, ignoring case; None if none is near."""
    by_lower = {candidate.lower(): candidate for candidate in known}
    matches = difflib.get_close_matches(name.lower(), by_lower, n=1)
    return by_lower[matches[0]] if matches else None


def one_slip_apart(one: str, other: str) -> bool:
    """Whether two words differ by one typing error: a wrong, extra or missing letter, or two letters swapped."""
    short, long = sorted((one, other), key=len)
    same = next((index for index, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    rest, longer_rest = short[same:], long[same:]
    if len(short) < len(long):
        return rest == longer_rest[1:]
    return rest[1:] == longer_rest[1:] or (rest[1::-1] == longer_rest[:2] and rest[2:] == longer_rest[2:])


def reason(error: BaseException) -> str:
    """The message of another package's exception, as part of a sentence: its first line, without the full stop."""
    return " ".join((str(error).strip() or type(error).__name__).split("\n")[0].split()).rstrip(".")


def shown(value: Any, most: int = 60) -> str:
    """A value for an error message, cut short; only its type if it has no text."""
    try:
        text = re.sub(r"\s*\n\s*", " ", repr(value)[: 100 * most])  # which takes time with the square of blanks
    except Exception:  # a list nested a thousand deep, an object that fails to describe itself
        text = f"a value of type {type(value).__name__}"
    return cut_short(text, most)


def cut_short(text: str, most: int) -> str:
    """The text, with dots in place of what is beyond a number of letters."""
    return text if len(text) <= most else text[: most - 3] + "..."


def visible(text: str, hidden: re.Pattern[str] = MISLEADING) -> str:
    r"""The text with its unprintable and misleading characters written out, as "\x07" or "\udc80"."""
    return hidden.sub(lambda match: f"\\x{ord(match[0]):02x}" if match[0] < "\x80" else f"\\u{ord(match[0]):04x}", text)


class Readable:
    """Shows its text in a prompt, and as HTML in notebooks: the first line in bold, indented ones as a list."""

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        first, *rest = map(html.escape, str(self).split("\n"))
        parts = [f"<ul><li>{line.strip()}</li></ul>" if line.startswith("  ") else f"<p>{line}</p>" for line in rest]
        return f"<div><p><b>{first}</b></p>{''.join(parts).replace('</ul><ul>', '')}</div>"
