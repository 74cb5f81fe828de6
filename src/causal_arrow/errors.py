"""Errors that users can put right, by kind: everything raised on purpose is an ArrowError.

Each message is one sentence or two: what was expected, what came, what to do. A `Remedy` names what to do, and each
surface, Python or the command line, has its own words for it.
"""

from __future__ import annotations

import re
import shlex
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from causal_arrow.text import cut_short


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


Words = Callable[[Remedy], str]
Wording = Mapping[str, Words]

MAX_NAMED = 12
"""More columns than this are not named one by one in an advice."""
MAX_LETTERS = 2000
"""An advice that needs a longer name is not given."""
MAX_MESSAGE = 3000
"""A message with longer names is cut."""
_GAPS = {
    "model": "leave the gaps to the network",
    "drop": "leave out incomplete observations",
    "impute": "fill the gaps",
}


def as_option_value(name: str) -> str:
    """A name as a shell takes it for an option that may hold several, separated by commas."""
    return shlex.quote(_in_quotes(name))


def _in_quotes(name: str) -> str:
    """A name as a list that commas separate holds it: in quotes if it has to be."""
    if not name or re.search(r'[,"\r\n]|^\s|\s$', name):
        return '"' + name.replace('"', '""') + '"'
    return name


def _filled(template: str) -> Words:
    """Words for a remedy from a template with these fields."""

    def words(remedy: Remedy) -> str:
        columns, setting = list(remedy.columns), remedy.setting
        first = columns[0] if columns else ""
        return template.format(
            first=first,
            columns=columns,
            setting=setting,
            gaps=_GAPS.get(setting),
            # As the command line has them:
            name=as_option_value(first),
            names=",".join(map(as_option_value, columns)),
            value=as_option_value(setting),
            text=shlex.quote(setting),
            kind=shlex.quote(f"{first}={setting}"),
            roots=" ".join(f"--roots {as_option_value(each)}" for each in columns),
            edges=" ".join(f"--require {shlex.quote(edge)}" for edge in columns),
            dropped=f", and the column with read_table(table, drop={columns!r})" if columns else "",
            dropped_option=f", and the column with --drop {as_option_value(first)}" if columns else "",
        )

    return words


def _leave_out(one_by_one: Callable[[Sequence[str]], str], choose: str) -> Words:
    def words(remedy: Remedy) -> str:
        if len(remedy.columns) > MAX_NAMED:
            return f"name the columns to use with {choose}"
        return f"leave out {'a column' if len(remedy.columns) == 1 else 'columns'} with {one_by_one(remedy.columns)}"

    return words


def _in_order(levels: Callable[[str, Sequence[str]], str]) -> Words:
    """Words for a remedy whose columns are a column and its levels, which are missing if they are many."""
    return lambda remedy: f"name its levels in their order with {levels(remedy.columns[0], remedy.columns[1:])}"


def _order_option(name: str, levels: Sequence[str]) -> str:
    written = ",".join(map(_in_quotes, levels)) or "LEVEL,LEVEL,..."
    return f"--ordered {shlex.quote(f'{name}={written}')}"


def _first_tier(remedy: Remedy) -> str:
    if any(re.search(r"[,;*\"]|^\s|\s$", name) for name in remedy.columns):  # which the text of tiers cannot hold
        return COMMAND_LINE["roots"](remedy)
    return f"add --tiers {shlex.quote(', '.join(remedy.columns) + '; *')}"


_COLUMNS = "read_table(table, columns=[...])"
_TEMPLATES = {
    "keep": ("keep {first!r} and take it out of ", "{setting}=[...]", "--{setting}"),
    "index": ("", "make it a column with table.reset_index()", "save the file with its index as a column"),
    "choose": ("name the columns to use with ", _COLUMNS, "--columns"),
    "name": ("name columns of the table in ", "{setting}=[...]", "--{setting}"),
    "missing": ("{gaps} with ", 'missing="{setting}"', "--missing {setting}"),
    "na": ("count {setting!r} as missing with ", "read_table(table, na=[{setting!r}])", "--na {value}"),
    "delimiter": ("name the delimiter with ", "read_table(path, delimiter=...)", "--delimiter"),
    "decimal": ("name the decimal sign with ", "read_table(path, decimal={setting!r})", "--decimal {setting}"),
    "header": ("read the file without names with ", "read_table(path, header=False)", "--no-header"),
    "omit": ("leave out ", "{setting}={dropped}", "--{setting}{dropped_option}"),
    "kind": ("read it as a {setting} with ", "kinds={{{first!r}: {setting!r}}}", "--kind {kind}"),
    "require": ("", "give knowledge={{'required': {columns!r}}}", "{edges}"),
    "between": ("name them with ", "between=(..., ...)", "--from and --to"),
    "jobs": ("choose ", "jobs={setting}", "--jobs {setting}"),
    "observations": ("choose how many rows to read one by one with ", "max_rows=...", "--max-rows"),
    "graphs": ("draw fewer with ", "n_graphs=...", "--graphs"),
    "level": ("name it with ", "level=...", "--level"),
    "interventions": ("read it as that with ", "interventions={first!r}", "--interventions {name}"),
    "lags": ("read the table as a time series with ", "lags=3, or lags='auto'", "--lags 3, or --lags auto"),
    "time": ("name the column of times with ", "time=...", "--time"),
    "unit": ("name the column that identifies units with ", "unit=...", "--unit"),
    "resample": ("bring the series to equal steps with ", "resample=...", "--resample"),
    "season": ("take it out with ", "season={setting}", "--season {setting}"),
    "difference": ("analyze changes with ", "difference={columns!r}", "--difference {names}"),
    "fewer lags": ("choose fewer with ", "lags=...", "--lags"),
    "roots": ("", "give knowledge={{'roots': {columns!r}}}", "add {roots}"),
    "sheet": ("name another sheet with ", "read_table(path, sheet={setting!r})", "--sheet {text}"),
}
"""For each action the words that Python and the command line share, and how each goes on."""

PYTHON: Wording = {
    **{action: _filled(start + python) for action, (start, python, _) in _TEMPLATES.items()},
    "drop": _leave_out(lambda columns: f"read_table(table, drop={list(columns)!r})", _COLUMNS),
    "order": _in_order(lambda name, levels: f"ordered={{{name!r}: {str(list(levels)) if levels else '[...]'}}}"),
    "first tier": lambda remedy: f"give knowledge={{'tiers': {[list(remedy.columns), ['*']]}}}",
}
COMMAND_LINE: Wording = {
    **{action: _filled(start + options) for action, (start, _, options) in _TEMPLATES.items()},
    "drop": _leave_out(lambda columns: " ".join(f"--drop {as_option_value(name)}" for name in columns), "--columns"),
    "order": _in_order(_order_option),
    "first tier": _first_tier,
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
        """The message with its remedies, in the words of `PYTHON`, as in `str(error)`, or `COMMAND_LINE`."""
        return " ".join([cut_short(self.message, MAX_MESSAGE), *advice(self.remedies, wording)])


def _is_short(remedy: Remedy) -> bool:
    """Whether a remedy can be typed: names and cells may have a million letters."""
    return max(map(len, (remedy.setting, *remedy.columns))) <= MAX_LETTERS


def advice(remedies: Sequence[Remedy], wording: Wording) -> list[str]:
    """For each thing that the remedies are about, one sentence with the ways to go on."""
    remedies = [remedy for remedy in remedies if remedy.action in wording and _is_short(remedy)]
    sentences = []
    for about in dict.fromkeys(remedy.about for remedy in remedies):
        ways = [wording[remedy.action](remedy) for remedy in remedies if remedy.about == about]
        sentences.append(f"{f'For {about}' if about else 'To go on'}: {', or '.join(ways)}.")
    return sentences


class GraphError(ArrowError):
    """A graph is not what was asked for: it has a cycle or the wrong shape."""


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
    # torch, threads and the loader of libraries raise errors that have nothing but their text.
    words = ("allocate memory", "out of memory", "can't start new thread", "failed to map segment")
    return any(each in str(error) for each in words)


def check_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    """ConfigurationError unless a setting is one of its choices."""
    if not isinstance(value, str) or value not in choices:
        raise ConfigurationError(f"Expected {name} to be one of {', '.join(choices)}, got {value!r}.")
