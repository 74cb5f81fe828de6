"""Numbers as people write them: thousands separators, decimal commas, currency and percent signs."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from causal_arrow.text import counted, listed

# M texts

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

CURRENCIES = "$€£¥₹₽₩₪₺₫฿¢"
PERCENTS = "%‰"
LONG_MINUS = "−"
BLANKS = " \u00a0\u2009\u202f"


def _pattern(decimal: str, thousands: str) -> re.Pattern[str]:
    """A number with this decimal sign, whose digits one of these separators may group by threes."""
    digits = rf"\d{{1,3}}(?P<separator>[{thousands}'’{BLANKS}])\d{{3}}(?:(?P=separator)\d{{3}})*|\d+"
    point = re.escape(decimal)
    return re.compile(
        rf"(?P<sign>[+\-{LONG_MINUS}]?)\s*(?P<before>[{CURRENCIES}]?)\s*(?P<inner_sign>[+\-{LONG_MINUS}]?)"
        rf"(?P<whole>{digits}|(?={point}\d))(?P<fraction>{point}\d*)?(?P<exponent>[eE][+-]?\d+)?"
        rf"\s*(?P<after>[{PERCENTS}{CURRENCIES}]?)"
    )


_PATTERNS = {".": _pattern(".", ","), ",": _pattern(",", ".")}
_INFINITE = {"inf", "infinity"}


@dataclass(frozen=True, eq=False)
class Numerals:
    """Texts as numbers: which of them are, how they are written, and whether they differ in unit."""

    values: Floats  # (M,), NaN where a text is not a number
    recognized: Bools  # (M,)
    decorated: Bools  # (M,), where a text is more than digits and a decimal point
    manner: str = ""  # how they are written, in words; empty for plain numbers
    units: str = ""  # why the numbers cannot be compared, in words


def read_numerals(texts: NDArray[np.object_], decimal: str = ".") -> Numerals:
    """The numbers in texts, all with the same decimal sign: the given one, unless more are numbers with the other."""
    plain = _plain(texts) if decimal == "." else None
    if plain is not None:
        return plain
    usual = _read(texts, decimal)
    if usual.recognized.all():
        return usual
    other = _read(texts, "," if decimal == "." else ".")
    return other if other.recognized.sum() > usual.recognized.sum() else usual


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

    @property
    def decorated(self) -> bool:
        return bool(self.sign) or self.separated or self.comma or self.long_minus


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
    )
