"""Remedies in the words of the page."""

from __future__ import annotations

from collections.abc import Sequence

from causal_arrow.errors import Remedy, Wording
from causal_arrow.text import listed

COMPLETE = {"drop": "leave out incomplete observations", "impute": "fill the gaps with predictions"}


def _leave_out(columns: Sequence[str]) -> str:
    return f"leave out {'the column' if len(columns) == 1 else 'the columns'} {listed(columns)}"


PAGE: Wording = {
    "drop": lambda remedy: _leave_out(remedy.columns),
    "choose": lambda remedy: "leave out columns in the file",
    "name": lambda remedy: "choose among the columns of the table",
    "missing": lambda remedy: COMPLETE[remedy.setting],
    "na": lambda remedy: f"leave the cells with {remedy.setting!r} empty in the file",
    "delimiter": lambda remedy: "save the file with commas between its fields",
    "decimal": lambda remedy: f"save the file with the decimal sign {remedy.setting!r}",
    "header": lambda remedy: "give the columns names in the first line of the file",
}
"""Only what a person can do on the page or in the file."""


def button(remedy: Remedy) -> str | None:
    """What a button that carries out the remedy is called; None where a button cannot."""
    if remedy.action not in ("drop", "missing"):
        return None
    words = PAGE[remedy.action](remedy)
    return words[:1].upper() + words[1:]
