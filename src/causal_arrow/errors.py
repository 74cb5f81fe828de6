"""What goes wrong for a user, by kind. Everything we raise on purpose is an ArrowError.

Each message is one sentence or two: what was expected, what came, what to do. What to do depends on where the user is:
a `Remedy` says it once, and each surface, Python or the command line, has its own words for it.
"""

from __future__ import annotations

import re
import shlex
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Remedy:
    """Something the user can do about a problem: the action, and the columns or the setting it concerns.

    The actions are the keys of PYTHON and COMMAND_LINE, which put them into words. Remedies with the same `about` are
    alternatives; what they are about opens the sentence that lists them.
    """

    action: str
    columns: tuple[str, ...] = ()
    setting: str = ""
    about: str = ""


Wording = Mapping[str, Callable[[Remedy], str]]

MAX_NAMED = 12
"""More columns than this are not named one by one in an advice."""


def _leave_out(one_by_one: Callable[[Sequence[str]], str], choose: str) -> Callable[[Remedy], str]:
    def words(remedy: Remedy) -> str:
        if len(remedy.columns) > MAX_NAMED:
            return f"name the columns to use with {choose}"
        return f"leave out {'a column' if len(remedy.columns) == 1 else 'columns'} with {one_by_one(remedy.columns)}"

    return words


def as_option_value(name: str) -> str:
    """A name as a shell takes it for an option that may hold several, separated by commas."""
    return shlex.quote(_in_quotes(name))


def _in_quotes(name: str) -> str:
    """A name as a list that commas separate holds it: in quotes if it has to be."""
    if not name or re.search(r'[,"\r\n]|^\s|\s$', name):
        return '"' + name.replace('"', '""') + '"'
    return name


def _in_order(levels: Callable[[str, Sequence[str]], str]) -> Callable[[Remedy], str]:
    """Words for a remedy whose columns are a column and its levels, which may not be there if they are many."""

    def words(remedy: Remedy) -> str:
        name, *named = remedy.columns
        return f"name its levels in their order with {levels(name, named)}"

    return words


def _order_option(name: str, levels: Sequence[str]) -> str:
    written = ",".join(map(_in_quotes, levels)) or "LEVEL,LEVEL,..."
    return f"--ordered {shlex.quote(f'{name}={written}')}"


def _first_tier(remedy: Remedy) -> str:
    if any(re.search(r"[,;*\"]|^\s|\s$", name) for name in remedy.columns):  # which the text of tiers cannot hold
        return COMMAND_LINE["roots"](remedy)
    return f"add --tiers {shlex.quote(', '.join(remedy.columns) + '; *')}"


_MISSING = {
    "model": "leave the gaps to the network",
    "drop": "leave out incomplete observations",
    "impute": "fill the gaps",
}

PYTHON: Wording = {
    "drop": _leave_out(
        lambda columns: f"read_table(table, drop={list(columns)!r})", "read_table(table, columns=[...])"
    ),
    "keep": lambda remedy: f"keep {remedy.columns[0]!r} and take it out of {remedy.setting}=[...]",
    "index": lambda remedy: "make it a column with table.reset_index()",
    "choose": lambda remedy: "name the columns to use with read_table(table, columns=[...])",
    "name": lambda remedy: f"name columns of the table in {remedy.setting}=[...]",
    "missing": lambda remedy: f'{_MISSING[remedy.setting]} with missing="{remedy.setting}"',
    "na": lambda remedy: f"count {remedy.setting!r} as missing with read_table(table, na=[{remedy.setting!r}])",
    "delimiter": lambda remedy: "name the delimiter with read_table(path, delimiter=...)",
    "decimal": lambda remedy: f"name the decimal sign with read_table(path, decimal={remedy.setting!r})",
    "header": lambda remedy: "read the file without names with read_table(path, header=False)",
    "omit": lambda remedy: (
        f"leave out {remedy.setting}="
        + (f", and the column with read_table(table, drop={list(remedy.columns)!r})" if remedy.columns else "")
    ),
    "kind": lambda remedy: f"read it as a {remedy.setting} with kinds={{{remedy.columns[0]!r}: {remedy.setting!r}}}",
    "order": _in_order(lambda name, levels: f"ordered={{{name!r}: {str(levels) if levels else '[...]'}}}"),
    "require": lambda remedy: f"give knowledge={{'required': {list(remedy.columns)!r}}}",
    "between": lambda remedy: "name them with between=(..., ...)",
    "jobs": lambda remedy: f"choose jobs={remedy.setting}",
    "observations": lambda remedy: "choose how many rows to read one by one with max_rows=...",
    "level": lambda remedy: "name it with level=...",
    "interventions": lambda remedy: f"read it as that with interventions={remedy.columns[0]!r}",
    "lags": lambda remedy: "read the table as a time series with lags=3, or lags='auto'",
    "time": lambda remedy: "name the column of times with time=...",
    "unit": lambda remedy: "name the column that identifies units with unit=...",
    "resample": lambda remedy: "bring the series to equal steps with resample=...",
    "season": lambda remedy: f"take it out with season={remedy.setting}",
    "difference": lambda remedy: f"analyze changes with difference={list(remedy.columns)!r}",
    "fewer lags": lambda remedy: "choose fewer with lags=...",
    "first tier": lambda remedy: f"give knowledge={{'tiers': {[list(remedy.columns), ['*']]}}}",
    "roots": lambda remedy: f"give knowledge={{'roots': {list(remedy.columns)!r}}}",
    "sheet": lambda remedy: f"name another sheet with read_table(path, sheet={remedy.setting!r})",
}
COMMAND_LINE: Wording = {
    "drop": _leave_out(lambda columns: " ".join(f"--drop {as_option_value(name)}" for name in columns), "--columns"),
    "keep": lambda remedy: f"keep {remedy.columns[0]!r} and take it out of --{remedy.setting}",
    "index": lambda remedy: "save the file with its index as a column",
    "choose": lambda remedy: "name the columns to use with --columns",
    "name": lambda remedy: f"name columns of the table in --{remedy.setting}",
    "missing": lambda remedy: f"{_MISSING[remedy.setting]} with --missing {remedy.setting}",
    "na": lambda remedy: f"count {remedy.setting!r} as missing with --na {as_option_value(remedy.setting)}",
    "delimiter": lambda remedy: "name the delimiter with --delimiter",
    "decimal": lambda remedy: f"name the decimal sign with --decimal {remedy.setting}",
    "header": lambda remedy: "read the file without names with --no-header",
    "omit": lambda remedy: (
        f"leave out --{remedy.setting}"
        + "".join(f", and the column with --drop {as_option_value(name)}" for name in remedy.columns[:1])
    ),
    "kind": lambda remedy: (
        f"read it as a {remedy.setting} with --kind {shlex.quote(remedy.columns[0] + '=' + remedy.setting)}"
    ),
    "order": _in_order(_order_option),
    "require": lambda remedy: " ".join(f"--require {shlex.quote(edge)}" for edge in remedy.columns),
    "between": lambda remedy: "name them with --from and --to",
    "jobs": lambda remedy: f"choose --jobs {remedy.setting}",
    "observations": lambda remedy: "choose how many rows to read one by one with --max-rows",
    "level": lambda remedy: "name it with --level",
    "interventions": lambda remedy: f"read it as that with --interventions {as_option_value(remedy.columns[0])}",
    "lags": lambda remedy: "read the table as a time series with --lags 3, or --lags auto",
    "time": lambda remedy: "name the column of times with --time",
    "unit": lambda remedy: "name the column that identifies units with --unit",
    "resample": lambda remedy: "bring the series to equal steps with --resample",
    "season": lambda remedy: f"take it out with --season {remedy.setting}",
    "difference": lambda remedy: (
        f"analyze changes with --difference {','.join(as_option_value(name) for name in remedy.columns)}"
    ),
    "fewer lags": lambda remedy: "choose fewer with --lags",
    "first tier": _first_tier,
    "roots": lambda remedy: "add " + " ".join(f"--roots {as_option_value(name)}" for name in remedy.columns),
    "sheet": lambda remedy: f"name another sheet with --sheet {shlex.quote(remedy.setting)}",
}

SURFACES: Mapping[str, Wording] = {"python": PYTHON, "command-line": COMMAND_LINE}
"""Wordings by name, for work that is handed to another process."""


class ArrowError(Exception):
    """Something the user can put right. The command line prints it and exits with status 2.

    Parameters
    ----------
    message
        What was expected and what came, in a sentence or two.
    remedies
        What can be done; each surface has its own words for it.

    Examples
    --------
    >>> from causal_arrow import Arrow, ArrowError
    >>> try:
    ...     Arrow(decode="best").fit("table.csv")
    ... except ArrowError as error:
    ...     print(error)
    Expected decode to be one of map, shd, f1, got 'best'.
    """

    def __init__(self, message: str, remedies: Sequence[Remedy] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.remedies = tuple(remedies)

    def __str__(self) -> str:
        return self.worded(PYTHON)

    def worded(self, wording: Wording) -> str:
        """The message with its remedies, in the words of a surface.

        Parameters
        ----------
        wording
            `PYTHON` or `COMMAND_LINE`; `str(error)` has the words for Python.

        Examples
        --------
        >>> from causal_arrow.errors import COMMAND_LINE
        >>> from causal_arrow.errors import Remedy
        >>> ArrowError("Too many columns.", [Remedy("choose")]).worded(COMMAND_LINE)
        'Too many columns. To go on: name the columns to use with --columns.'
        """
        return " ".join([self.message, *advice(self.remedies, wording)])


def advice(remedies: Sequence[Remedy], wording: Wording) -> list[str]:
    """One sentence with the ways to go on for each thing that the remedies are about; none of those without words."""
    remedies = [remedy for remedy in remedies if remedy.action in wording]
    sentences = []
    for about in dict.fromkeys(remedy.about for remedy in remedies):
        ways = [wording[remedy.action](remedy) for remedy in remedies if remedy.about == about]
        sentences.append(f"{f'For {about}' if about else 'To go on'}: {', or '.join(ways)}.")
    return sentences


class GraphError(ArrowError):
    """A graph is not what was asked for: it has a cycle, the wrong shape, or no consistent extension."""


class TableError(ArrowError, ValueError):
    """A table cannot be used as it is. Also a ValueError, as scikit-learn's users expect."""


class KnowledgeError(ArrowError):
    """Background knowledge contradicts itself or names unknown variables."""


class ConfigurationError(ArrowError, ValueError):
    """A setting is outside its range, or settings do not fit together. Also a ValueError, as Python's users expect."""


class CheckpointError(ArrowError):
    """A file of weights or training state is missing, damaged, foreign or from a newer version."""


class TrainingError(ArrowError):
    """A pretraining run cannot go on: its loss is no longer a number, or has exploded."""


class BenchmarkError(ArrowError):
    """A benchmark suite or method cannot be run as asked."""


class ArrowWarning(UserWarning):
    """Something about a table that should make its reader careful. `fit` warns where the report card does.

    Examples
    --------
    >>> import warnings
    >>> from causal_arrow import ArrowWarning
    >>> warnings.simplefilter("ignore", ArrowWarning)  # once they have been read
    """


def warn(message: str) -> None:
    """Warn with an ArrowWarning that points at the caller's line, the first outside this package."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and f"{frame.f_globals.get('__name__')}.".startswith("causal_arrow."):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, ArrowWarning, stacklevel=level)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an exception means that memory ran out, on a processor or a GPU."""
    if isinstance(error, MemoryError):
        return True
    # torch raises RuntimeErrors, which have nothing but their text.
    return any(words in str(error) for words in ("allocate memory", "out of memory"))


def check_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    """ConfigurationError unless a setting is one of its choices."""
    if not isinstance(value, str) or value not in choices:
        raise ConfigurationError(f"Expected {name} to be one of {', '.join(choices)}, got {value!r}.")
