"""Which cells an experiment has set, from labels of observations or a mask; and where observations come from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from causal_arrow.errors import TableError
from causal_arrow.tables.table import Column, Finding
from causal_arrow.text import closest, counted, listed, shown

# N observations, P variables

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

SEPARATOR = ";"
"""Between the names of variables that were set together."""


def intervened_cells(
    labels: Any, names: Sequence[str], observations: int, where: Callable[[int], str]
) -> dict[str, Bools]:
    """For each variable that was set somewhere, the observations in which it was.  name -> (N,)

    labels  For each observation the variable that was set, or several separated by `;` or as a list, nothing for none;
            or a table of true and false with a column for each of `names`.
    """
    shape: tuple[int, ...] = (len(labels),) if isinstance(labels, list | tuple) else np.shape(labels)
    if len(shape) == 2 and shape[-1] != 1:
        masks = _from_mask(labels, names)
    else:
        masks = _from_labels(_cells(labels), names, where)
    if any(len(mask) != observations for mask in masks.values()):
        raise _wrong_length("interventions", len(next(iter(masks.values()))), observations)
    masks = {name: mask for name, mask in masks.items() if mask.any()}
    if not masks:
        raise TableError(
            "The interventions mark no observation: name in each what was set, and leave the others empty."
        )
    if len(masks) == len(names) and all(mask.all() for mask in masks.values()):
        raise TableError(
            "The interventions say that every variable was set in every observation: where nothing is left to itself, "
            "nothing shows what causes what."
        )
    return masks


def _cells(labels: Any) -> list[Any]:
    if hasattr(labels, "to_list"):
        return list(labels.to_list())
    if isinstance(labels, str | bytes) or not hasattr(labels, "__len__"):
        raise TableError(
            "Expected interventions as one label for each observation, as a table of true and false, or as the name of "
            f"a column, got {shown(labels)}."
        )
    return list(np.ravel(labels)) if isinstance(labels, np.ndarray) else list(labels)


def _from_labels(cells: list[Any], names: Sequence[str], where: Callable[[int], str]) -> dict[str, Bools]:
    masks = {name: np.zeros(len(cells), dtype=bool) for name in names}
    for row, cell in enumerate(cells):
        for label in _several(cell):
            if label not in masks:
                near = closest(label, names)
                hint = f"did you mean {near!r}?" if near else f"expected some of {listed(names)}."
                raise TableError(
                    f"The interventions name {shown(label)} on {where(row)}, which is no variable of the table: {hint}"
                )
            masks[label][row] = True
    return masks


def _several(cell: Any) -> list[str]:
    """The names in a label."""
    if cell is None or (isinstance(cell, float) and np.isnan(cell)) or type(cell).__name__ in ("NAType", "NaTType"):
        return []
    if isinstance(cell, list | tuple | set | frozenset | np.ndarray):
        return [str(name).strip() for name in cell]
    if isinstance(cell, float) and cell.is_integer():  # names that are numbers, in a column with gaps
        cell = int(cell)
    return [name for name in (part.strip() for part in str(cell).split(SEPARATOR)) if name]


def _from_mask(labels: Any, names: Sequence[str]) -> dict[str, Bools]:
    given = [str(name).strip() for name in labels.columns] if hasattr(labels, "columns") else list(names)
    values = np.asarray(labels)
    if values.shape[1] != len(given) or set(given) != set(names):
        raise TableError(
            f"Expected interventions as true or false for each of {counted(len(names), 'variable')}, got a table with "
            f"{counted(values.shape[1], 'column')}."
        )
    try:
        numbers = values.astype(float)
    except (TypeError, ValueError):
        numbers = np.full(1, np.nan)
    if not np.isin(numbers, (0.0, 1.0)).all():
        raise TableError("Expected a table of interventions to hold true and false alone.")
    return {name: numbers[:, place] == 1 for place, name in enumerate(given)}


def environment_labels(labels: Any, observations: int) -> list[Any]:
    """One label for each observation, as a list."""
    if isinstance(labels, str | bytes) or not hasattr(labels, "__len__") or np.ndim(labels) > 1:
        raise TableError(
            f"Expected environments as one label for each observation or as the name of a column, got {shown(labels)}."
        )
    cells = list(labels.to_list()) if hasattr(labels, "to_list") else list(labels)
    if len(cells) != observations:
        raise _wrong_length("environments", len(cells), observations)
    return cells


def _wrong_length(what: str, given: int, observations: int) -> TableError:
    return TableError(
        f"Expected {what} for each of {counted(observations, 'observation')}, got {counted(given, 'label')}."
    )


def check_environment(values: Floats, column: Column, where: Callable[[int], str]) -> None:
    """TableError unless each observation has an environment, and there are two or more of them."""
    gaps = np.isnan(values)
    if gaps.any():
        raise TableError(
            f"The environments in {column.name!r} are missing in {counted(int(gaps.sum()), 'observation')}, the first "
            f"on {where(int(gaps.argmax()))}: every observation was made somewhere."
        )
    if len(np.unique(values)) < 2:
        only = column.levels[int(values[0])] if column.levels else f"{values[0]:g}"
        raise TableError(
            f"All observations come from one environment ({column.name!r} is {only!r} everywhere): expected two or "
            "more to compare."
        )


def experiment_findings(intervened: Bools | None, names: Sequence[str]) -> list[Finding]:
    """How many observations are experiments and what they set; and what was never left to itself."""
    if intervened is None:
        return []
    count, per_variable = int(intervened.any(axis=1).sum()), intervened.sum(axis=0)
    places = np.argsort(-per_variable, kind="stable")[: np.count_nonzero(per_variable)].tolist()
    some = ", ".join(f"{names[place]!r} in {per_variable[place]}" for place in places[:8])
    rest = f" and {len(places) - 8} more" if len(places) > 8 else ""
    message = (
        f"Experiments, {count} of {counted(len(intervened), 'observation')}, have set {some}{rest}. Where a variable "
        "was set, its causes do not act on it."
    )
    findings = [Finding("experiments", "note", tuple(names[place] for place in places), message)]
    always = tuple(names[place] for place in places if per_variable[place] == len(intervened))
    if always:
        message = (
            f"{listed(always)} {'was' if len(always) == 1 else 'were'} set in every observation: the table says "
            f"nothing of what causes {'it' if len(always) == 1 else 'them'}."
        )
        findings.append(Finding("experiments", "warning", always, message))
    return findings


def environment_findings(values: Floats, columns: Sequence[Column], environment: str | None) -> list[Finding]:
    """How many observations each environment has."""
    place = next((place for place, column in enumerate(columns) if column.name == environment), None)
    if place is None:
        return []
    codes, counts = np.unique(values[:, place], return_counts=True)
    levels = columns[place].levels
    labels = [levels[int(code)] if levels else f"{code:g}" for code in codes.tolist()]
    some = ", ".join(f"{label!r} {count}" for label, count in list(zip(labels, counts.tolist(), strict=True))[:8])
    rest = f" and {len(codes) - 8} more" if len(codes) > 8 else ""
    message = (
        f"{environment!r} tells {counted(len(codes), 'environment')} apart ({some}{rest}). Nothing in the table causes "
        "it, and what it causes differs between them."
    )
    return [Finding("environments", "note", (columns[place].name,), message)]
