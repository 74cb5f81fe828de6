"""Time series and panels. This module has SeriesOptions: Python and the command line take every option from here."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from causal_arrow.errors import ConfigurationError, Remedy
from causal_arrow.inputs import checked
from causal_arrow.text import shown

AUTO = "auto"
MAX_LAGS = 50


def _option(help: str, default: Any = None) -> Any:
    """A field of SeriesOptions with a line of help for the command line."""
    return field(default=default, metadata={"help": help})


@checked
@dataclass(frozen=True)
class SeriesOptions:
    """Options for reading a time series or a panel. `Arrow` and `discover` take these options by name.

    Examples
    --------
    >>> from causal_arrow import discover, load_example
    >>> found = discover(load_example("greenhouse"), lags=2, time="day")
    >>> found.settings.series.time
    'day'
    """

    lags: int | str | None = _option(
        "Read the table as a time series in which causes act up to this many steps later, or auto."
    )
    """Number of steps back that causes may act, or "auto" to choose by the data. None reads a table without time."""
    time: Any = _option("The column with the time of each row, dates or numbers; else rows are in order.")
    """The column that holds the time of each row, as dates or numbers, or one time per row. Without it, rows follow
    each other in the order of the table, and a pandas index of dates counts as the time."""
    unit: Any = _option("The column with the unit of a panel that a row belongs to, such as a patient.")
    """The column with the unit (patient, country, machine) that a row belongs to, or one label per row. No row of the
    window mixes two units."""
    contemporaneous: bool = _option("Whether causes may act within one step, at lag 0.", default=True)
    """Whether causes may act within one step, at lag 0."""
    difference: bool | Sequence[Any] = _option(
        "Analyze changes from step to step in these columns, or in all numbers: all.", default=False
    )
    """The columns in which to analyze changes from step to step, or True for all numbers: for random walks."""
    season: int | None = _option("Period of a season in steps; the mean of each phase is subtracted.")
    """The period of a season in steps, such as 12 for months; the mean of each phase is subtracted."""
    resample: Any = _option(
        "Length of the equal steps to bring irregular times to, such as D, W, MS, 15min or a number."
    )
    """The length of equal steps to bring irregular times to: a period such as "D", "W", "MS" or "15min" for dates,
    or a number. Numbers are averaged within a step; of levels, the last one counts."""

    def __post_init__(self) -> None:
        if self.lags is None and (given := self.to_dict()):
            raise ConfigurationError(
                f"{next(iter(given))!r} needs a time series, and no lags are given.", [Remedy("lags")]
            )
        if self.lags is not None and self.lags != AUTO:
            _check_whole("lags", self.lags, 1, MAX_LAGS, " or 'auto'")
        if self.season is not None:
            _check_whole("season, the period in steps,", self.season, 2, 10**6)

    @property
    def are_given(self) -> bool:
        """True if the table is a series."""
        return self.lags is not None

    def changed(self, **changes: Any) -> SeriesOptions:
        """Change some of the options, by name."""
        return replace(self, **changes) if changes else self

    def to_dict(self) -> dict[str, Any]:
        """The options that differ from the defaults."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        given = {each.name: values[each.name] for each in fields(self) if values[each.name] is not each.default}
        if not isinstance(given.get("difference", True), bool):
            given["difference"] = list(given["difference"])
        return given


SERIES_OPTIONS: Mapping[str, str] = {each.name: each.metadata["help"] for each in fields(SeriesOptions)}
"""Every option by its name, with a line of help."""


def _check_whole(name: str, value: Any, least: int, most: int, more: str = "") -> None:
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool | np.bool_)
    if not whole or not least <= int(value) <= most:
        raise ConfigurationError(
            f"Expected {name} to be a whole number from {least} to {most:,}{more}, got {shown(value)}."
        )
