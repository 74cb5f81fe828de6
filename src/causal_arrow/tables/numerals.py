"""Numbers as people write them: thousands separators, decimal commas, currency and percent signs, units."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from causal_arrow.tables.dates import are_dates
from causal_arrow.text import counted, listed

# M texts

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

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
SHORTEST_NOUN = 3
"""Letters of a unit that may have a plural: day and days are one unit, m and ms are two."""
MOST_UNITS = 5
"""What more endings than this follow numbers are no units."""


@dataclass(frozen=True, eq=False)
class Numerals:
    """Texts as numbers: which of them are, how they are written, and whether they differ in unit."""

    values: Floats  # (M,), NaN where a text is not a number
    recognized: Bools  # (M,)
    decorated: Bools  # (M,), where a text is more than digits and a decimal point
    manner: str = ""  # how they are written, in words; empty for plain numbers
    units: str = ""  # why the numbers cannot be compared, in words
    all_have_units: bool = False  # where texts that are no numbers have a unit each
    both_signs: bool = False  # whether every text is a number, but some with a decimal point and some with a comma


def read_numerals(texts: NDArray[np.object_], decimal: str = ".") -> Numerals:
    """The numbers in texts, all with the same decimal sign: the given one, unless more are numbers with the other."""
    plain = _plain(texts) if decimal == "." else None
    if plain is not None:
        return plain
    read = _with_either_sign(texts, decimal)
    if read.recognized.all() or read.both_signs:
        return read
    return _with_units(texts, decimal, replace(read, units=""))  # of a few numbers among words nothing is said


def _with_either_sign(texts: NDArray[np.object_], decimal: str) -> Numerals:
    usual = _read(texts, decimal)
    if usual.recognized.all():
        return usual
    other = _read(texts, "," if decimal == "." else ".")
    more, fewer = (other, usual) if other.recognized.sum() > usual.recognized.sum() else (usual, other)
    both = not more.recognized.all() and bool((more.recognized | fewer.recognized).all())
    return replace(more, both_signs=both)


def _with_units(texts: NDArray[np.object_], decimal: str, read: Numerals) -> Numerals:
    """The numbers without the unit that every text has; or what was read of them, with a word on different units."""
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
    # Codes such as 3A and 3B are no measurements: these have fractions, or a blank before their unit.
    with np.errstate(invalid="ignore"):  # of infinite numbers
        measured = bool((numbers.values % 1 != 0).any()) or all(blank for _, blank, unit in parts.values() if unit)
    if not measured or len(units) > MOST_UNITS or any(" " in unit for unit in units) or 2 * with_unit < len(texts):
        return read
    if len(units) == 1:
        return replace(read, units=f"{with_unit} of {counted(len(texts), 'number')} with {units.pop()!r}")
    return replace(read, units=f"numbers with {listed(sorted(units))}", all_have_units=not counts[""])


def _without_plurals(units: set[str]) -> set[str]:
    """The units, one of "day" and "days" if both are there."""
    return {unit for unit in units if not (unit[:-1] in units and unit.endswith("s") and len(unit) > SHORTEST_NOUN)}


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
    separated: bool = False
    comma: bool = False
    long_minus: bool = False
    about: bool = False

    @property
    def decorated(self) -> bool:
        return bool(self.sign) or self.separated or self.comma or self.long_minus or self.about


def _read(texts: NDArray[np.object_], decimal: str) -> Numerals:
    known = {text: _numeral(text, decimal) for text in dict.fromkeys(texts.tolist())}
    numerals = [known[text] for text in texts.tolist()]
    found = [numeral for numeral in numerals if numeral is not None]
    manners = {
        "a currency sign": any(numeral.sign in CURRENCIES for numeral in found if numeral.sign),
        "a percent sign": any(numeral.sign in PERCENTS for numeral in found if numeral.sign),
        "thousands separators": any(numeral.separated for numeral in found),
        "a decimal comma": any(numeral.comma for numeral in found),
        "a long minus sign": any(numeral.long_minus for numeral in found),
        "an approximation sign": any(numeral.about for numeral in found),
    }
    return Numerals(
        values=np.array([np.nan if numeral is None else numeral.value for numeral in numerals]),
        recognized=np.array([numeral is not None for numeral in numerals], dtype=bool),
        decorated=np.array([numeral is not None and numeral.decorated for numeral in numerals], dtype=bool),
        manner=" and ".join(manner for manner, used in manners.items() if used),
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
        value=-number if minus in ("-", LONG_MINUS) else number,
        sign=parts["before"] or parts["after"],
        separated=bool(parts["separator"]),
        comma=decimal == "," and bool(parts["fraction"]),
        long_minus=minus == LONG_MINUS,
        about=bool(parts["about"]),
    )
