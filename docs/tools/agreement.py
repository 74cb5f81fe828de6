"""Compare what a program printed with what a page shows, with tolerance for other processors.

Processors round differently in the last bits of a float. Only differences that follow from that are allowed:

- Words, the number of lines and their order are equal. Several blanks inside a line count as one gap, because the
  width of a column depends on its numbers.
- A number with a decimal point differs by one unit of the last digit that both show, or by 1% (`RELATIVE`): medians and
  intervals over sampled graphs change that much when one graph in a few hundred comes out differently.
- An integer is equal, except the size of an estimate ("changes by 1,760 (90% interval 665 to 2,860)"), which may differ
  by 1%.
- A percentage differs by one point. "<1%" agrees with shares below 1.5%, ">99%" with those above 98.5%.
"""

from __future__ import annotations

import re
from itertools import zip_longest

RELATIVE = 0.01
"""Largest difference of two numbers with a decimal point, as a share of the larger one."""
NEGLIGIBLE = 1e-6
"""Numbers below this are rounding errors and agree with zero."""
SLACK = 1e-9
"""Tolerance for decimal fractions in binary."""

# A number is a word: "day3", "0.2.0.dev0" and the hyphens of "2024-01-01" are text.
NUMBER = re.compile(
    r"(?<![\w.])(?P<bound>[<>](?=\d+%))?(?P<value>(?:(?<![^\s(\[{:,=])[-+−])?"
    r"(?:\d{1,3}(?:,\d{3})+|\d+)(?P<decimals>\.\d+)?(?:e[-+]?\d+)?)(?P<percent>%)?(?!\.?\w)"
)
BEFORE_ESTIMATE = re.compile(r"\b(?:changes by|interval|to) $")
AFTER_ESTIMATE = re.compile(r" (?:to [-−\d]|\([-−\d.,]+ to )")


def disagreement(shown: str, printed: str) -> str | None:
    """Describe the first line of `printed` that disagrees with the text of a page; None if all agree."""
    lines = zip_longest(shown.splitlines(), printed.splitlines())
    for number, (expected, got) in enumerate(lines, start=1):
        if expected is None or got is None or not _lines_agree(expected, got):
            return f"line {number}: expected {_quoted(expected)}, got {_quoted(got)}"
    return None


def _quoted(line: str | None) -> str:
    return "the end" if line is None else repr(line)


def _lines_agree(shown: str, printed: str) -> bool:
    """Whether the words are equal and the numbers between them agree."""
    expected, got = list(NUMBER.finditer(shown)), list(NUMBER.finditer(printed))
    return _words(shown) == _words(printed) and all(map(_numbers_agree, expected, got))


def _words(line: str) -> str:
    """The line with a mark for each number and single gaps; indentation before a word is kept."""
    indent = re.match(r" *(?![ <>+−\d-])", line)
    text = re.sub(r" {2,}", "  ", NUMBER.sub("\0", line).strip())
    # Numbers are aligned to the right: the blanks before them depend on their widths.
    return (indent[0] if indent else "") + re.sub(r" +\0", " \0", text)


def _numbers_agree(shown: re.Match[str], printed: re.Match[str]) -> bool:
    if shown["percent"] or printed["percent"]:
        return shown["percent"] == printed["percent"] and _percentages_agree(shown, printed)
    one, other = _value(shown), _value(printed)
    if max(abs(one), abs(other)) < NEGLIGIBLE:
        return True
    relative = RELATIVE * max(abs(one), abs(other)) + SLACK
    if one.is_integer() and other.is_integer() and not shown["decimals"] and not printed["decimals"]:
        return one == other or (_is_estimate(shown) and abs(one - other) <= relative)
    return abs(one - other) <= max(relative, _unit_of_both(shown, printed) + SLACK)


def _percentages_agree(shown: re.Match[str], printed: re.Match[str]) -> bool:
    """Whether percentages are at most a point apart, where "<1%" stands for one half and ">99%" for 99 and a half."""
    middle = {None: 0.0, "<": -0.5, ">": 0.5}
    apart = abs(_value(shown) + middle[shown["bound"]] - _value(printed) - middle[printed["bound"]])
    return apart < 1 - SLACK if shown["bound"] or printed["bound"] else apart <= 1 + SLACK


def _value(match: re.Match[str]) -> float:
    return float(match["value"].replace(",", "").replace("−", "-"))


def _unit_of_both(shown: re.Match[str], printed: re.Match[str]) -> float:
    """One unit of the last digit that both show; none if one has no decimal point, or an exponent scales its digits."""
    if any(match["decimals"] is None or "e" in match["value"] for match in (shown, printed)):
        return 0.0
    return 10.0 ** (1 - min(len(match["decimals"]) for match in (shown, printed)))


def _is_estimate(match: re.Match[str]) -> bool:
    """Whether an integer is the size of an effect or the end of its interval, not a count."""
    before, after = match.string[: match.start()], match.string[match.end() :]
    return bool(BEFORE_ESTIMATE.search(before) or AFTER_ESTIMATE.match(after))
