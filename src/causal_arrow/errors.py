"""What goes wrong for a user, by kind. Everything we raise on purpose is an ArrowError.

Each message is one sentence or two: what was expected, what came, what to do. What to do depends on where the user is:
a `Remedy` says it once, and each surface, Python or the command line, has its own words for it.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Remedy:
    """Something the user can do about a problem: the action, and the columns or the setting it concerns.

    The actions are the keys of PYTHON and COMMAND_LINE, which put them into words.
    """

    action: str
    columns: tuple[str, ...] = ()
    setting: str = ""


Wording = Mapping[str, Callable[[Remedy], str]]

PYTHON: Wording = {
    "drop": lambda remedy: f"leave out columns with table.drop(columns={list(remedy.columns)!r})",
}
COMMAND_LINE: Wording = {
    "drop": lambda remedy: " ".join(f"--drop {shlex.quote(column)}" for column in remedy.columns),
}


class ArrowError(Exception):
    """Something the user can put right. The command line prints it and exits with status 2."""

    def __init__(self, message: str, remedies: Sequence[Remedy] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.remedies = tuple(remedies)

    def __str__(self) -> str:
        return self.worded(PYTHON)

    def worded(self, wording: Wording) -> str:
        """The message with its remedies, in the words of a surface."""
        return " ".join([self.message, *advice(self.remedies, wording)])


def advice(remedies: Sequence[Remedy], wording: Wording) -> list[str]:
    """One sentence with all that can be done, or nothing."""
    ways = [wording[remedy.action](remedy) for remedy in remedies]
    return [f"To go on: {', or '.join(ways)}."] if ways else []


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
    """Something about a table that should make its reader careful. `fit` warns where the report card does."""


def check_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    """ConfigurationError unless a setting is one of its choices."""
    if not isinstance(value, str) or value not in choices:
        raise ConfigurationError(f"Expected {name} to be one of {', '.join(choices)}, got {value!r}.")
