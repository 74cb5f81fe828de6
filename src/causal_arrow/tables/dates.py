"""Whether texts are dates or times, as people write them."""

from __future__ import annotations

import re
from collections.abc import Sequence

MOST_LOOKED_AT = 1000

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
    """Whether more than half of the different texts are dates or times. "may", "1-2" and "10-20" are none.

    Nor are pairs of years that follow each other, such as 2009-10 and 2010-11, if there is nothing else.
    """
    looked_at = texts[:MOST_LOOKED_AT]
    dates = [text for text in looked_at if _DATE.fullmatch(text)]
    return 2 * len(dates) > len(looked_at) and not all(map(_is_season, dates))


def _is_season(text: str) -> bool:
    years = _TWO_YEARS.fullmatch(text)
    return years is not None and (int(years[2]) + 1) % 100 == int(years[3])
