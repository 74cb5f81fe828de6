"""Remedies and failures in the words of the page, and the buttons that carry remedies out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from causal_arrow.errors import ArrowError, Remedy, Wording, is_out_of_memory
from causal_arrow.text import capitalized, listed
from causal_arrow.web.messages import Facts

COMPLETE = {
    "model": "leave the gaps to the network",
    "drop": "leave out incomplete observations",
    "impute": "fill the gaps with predictions",
}
KIND_WORDS = {"number": "a number", "binary": "a yes or no", "ordered": "ordered levels", "category": "a category"}
OMITTED = {
    "interventions": "choose no column of experiments",
    "environments": "choose no column of environments",
    "sheet": "save the sheet as a separate file",
}


def _leave_out(columns: Sequence[str]) -> str:
    return f"leave out {'the column' if len(columns) == 1 else 'the columns'} {listed(columns)}"


PAGE: Wording = {
    "drop": lambda remedy: _leave_out(remedy.columns),
    "keep": lambda remedy: f"keep the column {remedy.columns[0]!r}",
    "index": lambda remedy: "save the file with its index as a column",
    "choose": lambda remedy: "leave out columns in the file",
    "name": lambda remedy: "choose among the columns of the table",
    "missing": lambda remedy: COMPLETE[remedy.setting],
    "na": lambda remedy: f"count {remedy.setting!r} as missing",
    "delimiter": lambda remedy: "save the file with commas between its fields",
    "decimal": lambda remedy: f"save the file with the decimal sign {remedy.setting!r}",
    "header": lambda remedy: "give the columns names in the first line of the file",
    "omit": lambda remedy: (
        OMITTED.get(remedy.setting, f"do without {remedy.setting}")
        + (f", and {_leave_out(remedy.columns)}" if remedy.columns else "")
    ),
    "kind": lambda remedy: f"read {listed(remedy.columns)} as {KIND_WORDS[remedy.setting]}",
    "order": lambda remedy: f"read {remedy.columns[0]!r} as ordered levels and put them in their order",
    "require": lambda remedy: f"choose the edge and require it: {listed(remedy.columns)}",
    "between": lambda remedy: 'choose the two values to compare under "from" and "to"',
    "jobs": lambda remedy: "close other programs that need much memory",
    "graphs": lambda remedy: "leave out columns, or close other programs that need much memory",
    "observations": lambda remedy: "leave out observations in the file",
    "level": lambda remedy: 'choose one of its levels under "From which value to which"',
    "interventions": lambda remedy: f"choose {remedy.columns[0]!r} as the column of experiments",
    "lags": lambda remedy: "choose a number of lags under Time series",
    "fewer lags": lambda remedy: "choose fewer lags under Time series",
    "time": lambda remedy: "choose the column of times under Time series",
    "unit": lambda remedy: "choose the column that identifies units under Time series",
    "resample": lambda remedy: "choose the length of equal steps under Time series",
    "season": lambda remedy: f"choose a season of {remedy.setting} steps under Time series",
    "difference": lambda remedy: f"choose to analyze the changes of {listed(remedy.columns)} under Time series",
    "sheet": lambda remedy: "save another sheet as a file",
    "first tier": lambda remedy: f"put {listed(remedy.columns)} into the first tier and all others into the second",
    "roots": lambda remedy: f"say that nothing causes {listed(remedy.columns)}",
}
"""Only what a person can do on the page or in the file."""

OFFERS: Mapping[str, Callable[[Remedy], Facts]] = {
    "drop": lambda remedy: {"drop": list(remedy.columns)},
    "missing": lambda remedy: {"missing": remedy.setting},
    "na": lambda remedy: {"na": [remedy.setting]},
    "kind": lambda remedy: {"kinds": dict.fromkeys(remedy.columns, remedy.setting)},
}
"""The remedies that a button carries out, and what it changes in how the table is read."""


def offers(remedies: Sequence[Remedy]) -> list[Facts]:
    """A button for each remedy that the page can carry out."""
    nothing: Facts = {"drop": [], "missing": None, "na": [], "kinds": {}}
    return [
        {"label": capitalized(PAGE[remedy.action](remedy)), **nothing, **OFFERS[remedy.action](remedy)}
        for remedy in remedies
        if remedy.action in OFFERS
    ]


def failure(error: Exception) -> str:
    """Why something failed, in a sentence."""
    if isinstance(error, ArrowError):
        return error.worded(PAGE)
    if is_out_of_memory(error):
        return "There is not enough memory for this: use fewer observations or fewer variables."
    return f"This failed in a way it should not ({type(error).__name__}): please report it."
