"""Numbers and dates as people write them: thousands separators, decimal commas, currency and percent signs, units."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from causal_arrow.tables.table import Bools, Floats
from causal_arrow.text import counted, listed

# M texts

CURRENCIES = "$€£¥₹₽₩₪₺₫฿¢"
PERCENTS = "%‰"
LONG_MINUS = "−"
ABOUT = "~≈"
BLANKS = " \u00a0\u2009\u202f"


def _pattern(decimal: str, thousands: str) -> re.Pattern[str]:
    """A number with this decimal sign, whose digits one of these separators may group by threes."""
    digits = rf"\d{{1,3}}(?P<separator>[{thousands}'’{BLANKS}])\d{{3}}(?:(?P=separator)\d{{3}})*|\d+"
    point = re.escape(decimal)
    return re.compile(
        rf"(?P<about>[{ABOUT}]?)\s*(?P<sign>[+\-{LONG_MINUS}]?)\s*(?P<before>[{CURRENCIES}]?)\s*(?P<inner_sign>[+\-{LONG_MINUS}]?)"
        rf"(?P<whole>{digits}|(?={point}\d))(?P<fraction>{point}\d*)?(?P<exponent>[eE][+-]?\d+)?"
        rf"\s*(?P<after>[{PERCENTS}{CURRENCIES}]?)"
    )


_PATTERNS = {".": _pattern(".", ","), ",": _pattern(",", ".")}
_INFINITE = {"inf", "infinity"}

# A unit starts with a letter, a degree or a percent sign, and has digits only as powers: kg/m2, s-1.
_WITH_UNIT = re.compile(
    rf"(?P<number>[{ABOUT}]?\s*[+\-{LONG_MINUS}]?\s*[{CURRENCIES}]?\s*[.,]?\d(?:[\d.,'’{BLANKS}]*\d)?(?:[eE][+-]?\d+)?)"
    rf"(?P<blank>\s*)(?P<unit>(?:[^\W\d_]|[°′″{PERCENTS}])(?:\D|(?<=[^\W\d_]|[\^\-])\d){{0,20}})"
)
MIN_NOUN = 3
"""Letters of a unit that may have a plural: day and days are one unit, m and ms are two."""
MAX_UNITS = 5
"""If more different endings than this follow the numbers of a column, they are not units."""


@dataclass(frozen=True, eq=False)
class Numerals:
    """Texts as numbers: which of them are numbers, how they are written, and whether they differ in unit."""

    values: Floats  # (M,), NaN where a text is not a number
    recognized: Bools  # (M,)
    decorated: Bools  # (M,), where a text is more than digits and a decimal point
    manner: str = ""  # how they are written, in words; empty for plain numbers
    units: str = ""  # why the numbers cannot be compared, in words
    all_have_units: bool = False  # where texts that are no numbers have a unit each
    both_signs: bool = False  # whether every text is a number, but some with a decimal point and some with a comma


def read_numerals(texts: NDArray[np.object_], decimal: str = ".") -> Numerals:
    """Read the numbers in texts, all with one decimal sign: the given one, unless more are numbers with the other."""
    plain = _plain(texts) if decimal == "." else None
    if plain is not None:
        return plain
    read = _with_either_sign(texts, decimal)
    if read.recognized.all() or read.both_signs:
        return read
    return _with_units(texts, decimal, replace(read, units=""))  # no note about a few numbers among words


def _with_either_sign(texts: NDArray[np.object_], decimal: str) -> Numerals:
    usual = _read(texts, decimal)
    if usual.recognized.all():
        return usual
    other = _read(texts, "," if decimal == "." else ".")
    more, fewer = (other, usual) if other.recognized.sum() > usual.recognized.sum() else (usual, other)
    both = not more.recognized.all() and bool((more.recognized | fewer.recognized).all())
    return replace(more, both_signs=both)


def _with_units(texts: NDArray[np.object_], decimal: str, read: Numerals) -> Numerals:
    """The numbers without the unit that every text has; or `read`, with a note about different units."""
    parts: dict[str, tuple[str, str, str]] = {}  # number, blank and unit
    for text, known in zip(texts.tolist(), read.recognized.tolist(), strict=True):
        found = None if known else _WITH_UNIT.fullmatch(text)
        if not known and found is None:
            return read
        parts[text] = (text, "", "") if found is None else (found["number"], found["blank"], found["unit"].strip())
    numbers = _with_either_sign(np.array([parts[text][0] for text in texts.tolist()], dtype=object), decimal)
    if not numbers.recognized.all() or numbers.units or are_dates(list(parts)):
        return read
    counts = Counter(parts[text][2] for text in texts.tolist())
    units = _without_plurals(set(counts))
    if len(units) == 1 and "" not in units:
        (unit,) = units
        manner = " and ".join(filter(None, [numbers.manner, f"the unit {unit!r}"]))
        return replace(numbers, decorated=np.ones(len(texts), dtype=bool), manner=manner)
    units -= {""}
    with_unit = len(texts) - counts[""]
    # Codes such as 3A and 3B are not measurements, which have fractions or a blank before their unit.
    with np.errstate(invalid="ignore"):  # of infinite numbers
        measured = bool((numbers.values % 1 != 0).any()) or all(blank for _, blank, unit in parts.values() if unit)
    if not measured or len(units) > MAX_UNITS or any(" " in unit for unit in units) or 2 * with_unit < len(texts):
        return read
    if len(units) == 1:
        return replace(read, units=f"{with_unit} of {counted(len(texts), 'number')} with {units.pop()!r}")
    return replace(read, units=f"numbers with {listed(sorted(units))}", all_have_units=not counts[""])


def _without_plurals(units: set[str]) -> set[str]:
    """The units, one of "day" and "days" if both are there."""
    return {unit for unit in units if not (unit[:-1] in units and unit.endswith("s") and len(unit) > MIN_NOUN)}


def _plain(texts: NDArray[np.object_]) -> Numerals | None:
    """The numbers, if all of them are written as computers write them."""
    if any("_" in text for text in texts.tolist()):  # which Python has between digits, and people in names
        return None
    try:
        values = texts.astype(float)
    except ValueError:
        return None
    return Numerals(values, ~np.isnan(values), np.zeros(len(texts), dtype=bool))


@dataclass(frozen=True)
class _Numeral:
    """One text as a number, and how it is written."""

    value: float
    sign: str = ""  # a currency or a percent sign
    manners: tuple[str, ...] = ()  # of MANNERS


MANNERS: dict[str, Callable[[Mapping[str, str]], bool]] = {
    "a currency sign": lambda parts: any(sign in CURRENCIES for sign in (parts["before"] + parts["after"])),
    "a percent sign": lambda parts: any(sign in PERCENTS for sign in parts["after"]),
    "thousands separators": lambda parts: bool(parts["separator"]),
    "a decimal comma": lambda parts: parts["fraction"].startswith(","),
    "a long minus sign": lambda parts: LONG_MINUS in (parts["sign"], parts["inner_sign"]),
    "an approximation sign": lambda parts: bool(parts["about"]),
}
"""In which manners people write numbers, by the parts of a text that a pattern has found."""


def _read(texts: NDArray[np.object_], decimal: str) -> Numerals:
    known = {text: _numeral(text, decimal) for text in dict.fromkeys(texts.tolist())}
    numerals = [known[text] for text in texts.tolist()]
    found = [numeral for numeral in numerals if numeral is not None]
    used = {manner for numeral in found for manner in numeral.manners}
    return Numerals(
        values=np.array([np.nan if numeral is None else numeral.value for numeral in numerals]),
        recognized=np.array([numeral is not None for numeral in numerals], dtype=bool),
        decorated=np.array([numeral is not None and bool(numeral.manners) for numeral in numerals], dtype=bool),
        manner=" and ".join(manner for manner in MANNERS if manner in used),
        units=_units(found),
    )


def _units(numerals: list[_Numeral]) -> str:
    """Why numbers cannot be compared: they have different signs, or only some are percentages."""
    signs = sorted({numeral.sign for numeral in numerals if numeral.sign})
    if len(signs) > 1:
        return f"numbers with {listed(signs)}"
    percent = sum(numeral.sign in PERCENTS for numeral in numerals if numeral.sign)
    return f"{percent} of {counted(len(numerals), 'number')} with {signs[0]!r}" if 0 < percent < len(numerals) else ""


def _numeral(text: str, decimal: str) -> _Numeral | None:
    found = _PATTERNS[decimal].fullmatch(text)
    if found is None:
        return _Numeral(float(text)) if text.lower().lstrip("+-") in _INFINITE else None
    parts = found.groupdict(default="")
    if (parts["sign"] and parts["inner_sign"]) or (parts["before"] and parts["after"]):
        return None
    digits = parts["whole"].replace(parts["separator"], "") if parts["separator"] else parts["whole"]
    number = float(f"{digits or 0}.{parts['fraction'][1:] or 0}{parts['exponent']}")
    minus = parts["sign"] or parts["inner_sign"]
    return _Numeral(
        -number if minus in ("-", LONG_MINUS) else number,
        parts["before"] or parts["after"],
        tuple(manner for manner, is_used in MANNERS.items() if is_used(parts)),
    )


# Dates

MAX_DATES_READ = 1000

_MONTH = (
    "(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|"
    "nov(?:ember)?|dec(?:ember)?)"
)
_WEEKDAY = "(?:(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?[.,]? +)?"
_YEAR = "(?:19|20)[0-9]{2}"
_NUMBER_OF_MONTH = "(?:0?[1-9]|1[0-2])"
_DAY = "[0-9]{1,2}(?:st|nd|rd|th)?"
_TIME = r"[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]+)?)?(?: *[ap]\.?m\.?)?(?: *(?:z|utc|gmt|[+-][0-9]{2}:?[0-9]{2}))?"

_DATES = (
    r"[0-9]{1,4}[-/.][0-9]{1,2}[-/.][0-9]{1,4}",  # 2020-01-31, 31.1.2020, 1/31/20
    rf"{_YEAR}[-/]{_NUMBER_OF_MONTH}|{_NUMBER_OF_MONTH}[-/]{_YEAR}",  # 2020-01, 01/2020
    rf"{_YEAR}[- ]?(?:q[1-4]|w[0-9]{{1,2}})|q[1-4][- /]?{_YEAR}",  # 2020Q1, 2020-W05
    # A month needs something between itself and its day: SEPT2 and MARCH1 are genes.
    rf"{_WEEKDAY}{_DAY}[-/. ]*(?:of )?{_MONTH}(?:[-/., ]*(?:{_YEAR}|'?[0-9]{{2}}))?",  # 1 January 2020, 1-Jan-20, 1 Jan
    rf"{_WEEKDAY}{_MONTH}[-/. ]+{_DAY}(?:[-/., ]+{_YEAR})?",  # January 1, 2020, Jan 1
    rf"{_MONTH}[-/., ]*{_YEAR}|{_YEAR}[-/. ]*{_MONTH}(?:[-/. ]*{_DAY})?",  # Jan 2020, 2020-Jan-31
)
_DATE = re.compile(rf"(?:{'|'.join(_DATES)})(?:[ T,]+{_TIME}|[ T][0-9].*)?|[0-9]{{8}}T[0-9]{{4,6}}z?|{_TIME}", re.I)
_TWO_YEARS = re.compile(r"([0-9]{2})([0-9]{2})[-/]([0-9]{2})")


def are_dates(texts: Sequence[str]) -> bool:
    """Whether more than half of the different texts are dates or times. "may", "1-2" and "10-20" are not.

    Neither are pairs of consecutive years, such as 2009-10 and 2010-11, if there is nothing else.
    """
    sample = texts[:MAX_DATES_READ]
    dates = [text for text in sample if _DATE.fullmatch(text)]
    return 2 * len(dates) > len(sample) and not all(map(_is_season, dates))


def _is_season(text: str) -> bool:
    years = _TWO_YEARS.fullmatch(text)
    return years is not None and (int(years[2]) + 1) % 100 == int(years[3])
