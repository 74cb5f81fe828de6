"""Which cells an experiment has set, from labels of observations or a mask; and where observations come from."""

from __future__ import annotations

import numbers
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from causal_arrow.errors import Remedy, TableError
from causal_arrow.tables.columns import USUAL_MARKERS
from causal_arrow.tables.table import Column, Finding
from causal_arrow.text import closest, counted, listed, shown

# N observations, P variables

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

SEPARATOR = ";"
"""Between the names of variables that were set together."""


NOTHING_SET = frozenset(
    {
        "control",
        "ctrl",
        "none",
        "nothing",
        "no",
        "placebo",
        "untreated",
        "baseline",
        "natural",
        "wild-type",
        "wt",
        "mock",
    }
    | {"obs", "observed", "observational", "false", "0", "-", "."}
)
"""What people write where nothing was set, in lower case."""
LEFT_OUT = "that column is left out. Keep it, or leave these observations out."
OTHER_SEPARATORS = re.compile(r"\s*[,+&|/]\s*|\s+and\s+")

EXPECTED = (
    "Expected interventions as one label for each observation, as a table of true and false with a column for each "
    "variable, or as the name of a column"
)


def intervened_cells(
    labels: Any,
    names: Sequence[str],
    observations: int,
    where: Callable[[int], str],
    left_out: Sequence[str] = (),
) -> dict[str, Bools]:
    """For each variable that was set somewhere, the observations in which it was.  name -> (N,)

    labels    For each observation the variable that was set, or several separated by `;` or as a list, nothing for
              none; or a table of true and false with a column for each of `names`. Where it has names of its own, those
              that it does not name were never set.
    left_out  Columns of the table that are no variables, because the caller leaves them out.
    """
    labels = _one_column(labels, names)
    if _is_table_of_truth(labels):
        masks = _from_mask(labels, names, left_out)
    else:
        masks = _from_labels(_cells(labels), names, where, left_out)
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


def _one_column(labels: Any, names: Sequence[str]) -> Any:
    """The only column of a frame of labels; the labels as they are, unless they are such a frame."""
    columns = getattr(labels, "columns", None)
    if columns is None or len(columns) != 1 or len(np.shape(labels)) != 2:
        return labels
    name, column = _name(columns[0]), labels[columns[0]]
    cells = column.to_list()
    # A frame with one variable may also say where that one was set.
    if name not in names or not cells or not all(map(_is_zero_or_one, cells)):
        return column
    if not all(isinstance(cell, _TRUTH) for cell in cells) and (also := [each for each in ("0", "1") if each in names]):
        raise TableError(
            f"The interventions in {name!r} are 0 and 1, which may say where {name!r} was set or name the variable "
            f"{also[-1]!r}: write true and false for the first, or give a list of labels for the second."
        )
    return labels


def _is_zero_or_one(cell: Any) -> bool:
    return isinstance(cell, _TRUTH) or (isinstance(cell, numbers.Real) and cell in (0, 1))


_TRUTH = (bool, np.bool_)


def _is_table_of_truth(labels: Any) -> bool:
    if isinstance(labels, list | tuple):
        rows = [row for row in labels if isinstance(row, list | tuple | np.ndarray)]
        cells = [cell for row in rows for cell in row]
        return bool(cells) and len(rows) == len(labels) and all(isinstance(cell, _TRUTH) for cell in cells)
    shape = np.shape(labels)
    return len(shape) == 2 and (shape[-1] != 1 or hasattr(labels, "columns"))


def _cells(labels: Any) -> list[Any]:
    if hasattr(labels, "to_list"):
        return list(labels.to_list())
    if isinstance(labels, str | bytes) or not hasattr(labels, "__len__"):
        raise TableError(f"{EXPECTED}, got {shown(labels)}.")
    return list(np.ravel(labels)) if isinstance(labels, np.ndarray) else list(labels)


def _from_labels(
    cells: list[Any], names: Sequence[str], where: Callable[[int], str], left_out: Sequence[str]
) -> dict[str, Bools]:
    if cells and all(isinstance(cell, _TRUTH) for cell in cells):
        raise TableError(f"{EXPECTED}, got true and false without a variable that they are about.")
    masks = {name: np.zeros(len(cells), dtype=bool) for name in names}
    for row, cell in enumerate(cells):
        for label in _several(cell, names):
            if label not in masks:
                raise TableError(
                    f"The interventions name {shown(label)} on {where(row)}, which is no variable of the table: "
                    f"{_hint(label, names, left_out)}"
                )
            masks[label][row] = True
    return masks


def _hint(label: str, names: Sequence[str], left_out: Sequence[str]) -> str:
    """What a label that names no variable may be meant to say."""
    if label in left_out:
        return LEFT_OUT
    parts = [part for part in OTHER_SEPARATORS.split(label) if part]
    if len(parts) > 1 and set(parts) <= set(names):
        return f"several are separated by {SEPARATOR!r}, as in {f'{SEPARATOR} '.join(parts)!r}."
    if label.lower() in NOTHING_SET:
        return "an empty label says that nothing was set."
    return _closest_of(label, names, ", or an empty label for none")


def _closest_of(name: str, names: Sequence[str], or_else: str = "") -> str:
    near = closest(name, names)
    return f"did you mean {near!r}?" if near else f"expected some of {listed(names)}{or_else}."


def _several(cell: Any, names: Sequence[str]) -> list[str]:
    """The names in a label."""
    if cell is None or (isinstance(cell, float) and np.isnan(cell)) or type(cell).__name__ in ("NAType", "NaTType"):
        return []
    if isinstance(cell, list | tuple | set | frozenset | np.ndarray):
        return [str(name).strip() for name in cell]
    if isinstance(cell, float) and cell.is_integer():  # names that are numbers, in a column with gaps
        cell = int(cell)
    label = str(cell).strip()
    if label in USUAL_MARKERS and label not in names:
        return []
    parts = [part for part in (part.strip() for part in label.split(SEPARATOR)) if part]
    if len(parts) > 1 and label in names:
        if set(parts) <= set(names):
            raise TableError(
                f"The interventions name {label!r}, which may be that variable or {listed(parts)}: rename the variable."
            )
        return [label]
    return parts


def _name(name: Any) -> str:
    return str(name).strip()


def _from_mask(labels: Any, names: Sequence[str], left_out: Sequence[str]) -> dict[str, Bools]:
    named = hasattr(labels, "columns")
    given = [_name(name) for name in labels.columns] if named else list(names)
    if isinstance(labels, list | tuple) and len({len(row) for row in labels}) > 1:
        raise TableError(
            f"Expected interventions as true or false for each of {counted(len(names), 'variable')}, got lists of "
            "different lengths."
        )
    try:
        cells = np.asarray(labels).astype(float)
    except (TypeError, ValueError):
        cells = np.full((1, len(given)), np.nan)
    if not np.isin(cells, (0.0, 1.0)).all():
        raise TableError("Expected a table of interventions to hold true and false alone.")
    if cells.ndim != 2 or cells.shape[1] != len(given):
        raise TableError(
            f"Expected interventions as true or false for each of {counted(len(names), 'variable')}, got a table with "
            f"{counted(cells.shape[-1], 'column')}."
        )
    masks = {name: cells[:, place] == 1 for place, name in enumerate(given)}
    strange = [name for name, mask in masks.items() if name not in names and (name not in left_out or mask.any())]
    if strange:
        raise TableError(
            f"The table of interventions has a column {shown(strange[0])}, which is no variable of the table: "
            f"{LEFT_OUT if strange[0] in left_out else _closest_of(strange[0], names)}"
        )
    return {name: mask for name, mask in masks.items() if name in names}


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


def missing_environments(values: Floats | None, name: str | None, where: Callable[[int], str]) -> list[Finding]:
    """A problem where observations have no environment; `name` is the column that tells them apart, if it is one."""
    gaps = np.zeros(0, dtype=bool) if values is None else np.isnan(values)
    if not gaps.any():
        return []
    count = int(gaps.sum())
    subject = "The environments" if name is None else f"The environments in {name!r}"
    them, rows = ("it", "this row") if count == 1 else ("them", "these rows")
    message = (
        f"{subject} are missing in {counted(count, 'observation')}, the first on {where(int(gaps.argmax()))}: fill "
        f"{them} in, for instance with 'unknown', or leave {rows} out."
    )
    columns = () if name is None else (name,)
    return [Finding("environments", "problem", columns, message, (Remedy("omit", setting="environments"),))]


def lost_experiments(names: tuple[str, ...]) -> list[Finding]:
    """A warning that no observation is left in which these variables were set."""
    if not names:
        return []
    message = (
        f"Every observation in which an experiment set {listed(names)} was left out, because of missing values: the "
        f"answer knows nothing of {'that experiment' if len(names) == 1 else 'these experiments'}."
    )
    return [Finding("experiments", "warning", names, message)]


def experiment_findings(intervened: Bools | None, names: Sequence[str]) -> list[Finding]:
    """How many observations are experiments and what they set; and what was never left to itself."""
    if intervened is None:
        return []
    count, per_variable = int(intervened.any(axis=1).sum()), intervened.sum(axis=0)
    places = np.argsort(-per_variable, kind="stable")[: np.count_nonzero(per_variable)].tolist()
    some = ", ".join(f"{names[place]!r} in {per_variable[place]}" for place in places[:8])
    rest = f" and {len(places) - 8} more" if len(places) > 8 else ""
    set_ = f"an experiment set {names[places[0]]!r}" if len(places) == 1 else f"experiments set {some}{rest}"
    message = (
        f"In {count:,} of {counted(len(intervened), 'observation')}, {set_}. Where a variable was set, its causes do "
        "not act on it."
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
    there = values[:, place][~np.isnan(values[:, place])]
    codes, counts = np.unique(there, return_counts=True)
    levels = columns[place].levels
    labels = [levels[int(code)] if levels else f"{code:g}" for code in codes.tolist()]
    some = ", ".join(f"{label!r} {count}" for label, count in list(zip(labels, counts.tolist(), strict=True))[:8])
    rest = f" and {len(codes) - 8} more" if len(codes) > 8 else ""
    message = (
        f"{environment!r} tells {counted(len(codes), 'environment')} apart ({some}{rest}). It is taken as a cause "
        "only: what it points to differs between environments."
    )
    return [Finding("environments", "note", (columns[place].name,), message)]
