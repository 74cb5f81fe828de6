"""Labels of rows: which cells experiments have set, and from which environment a row is."""

from __future__ import annotations

import numbers
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from causal_arrow.errors import Remedy, TableError
from causal_arrow.inputs import as_list
from causal_arrow.tables._columns import MAX_LEVELS, USUAL_MARKERS, Problem, problem_sentences
from causal_arrow.tables.raw import RawFrame
from causal_arrow.tables.table import Bools, Finding, Table
from causal_arrow.text import closest, counted, first_few, listed, shown

# N rows, P variables

SEPARATOR = ";"
"""Between the names of variables that were set together."""
ENVIRONMENT = "environment"
"""The name of the column of environments that are given apart from the table."""

NOTHING_SET = frozenset(
    {"control", "ctrl", "none", "nothing", "no", "placebo", "untreated", "baseline", "natural", "wild-type"}
) | {"wt", "mock", "obs", "observed", "observational", "false", "0", "-", "."}
"""Labels that people use for rows without an intervention, in lower case."""
LEFT_OUT = "that column is left out. Keep it, or leave these observations out."
OTHER_SEPARATORS = re.compile(r"\s*[,+&|/]\s*|\s+and\s+")

EXPECTED = (
    "Expected interventions as one label for each observation, as a table of true and false with a column for each "
    "variable, or as the name of a column"
)


def intervened_cells(
    labels: Any, names: Sequence[str], left_out: Sequence[str], rows: int, where: Callable[[int], str]
) -> dict[str, Bools]:
    """The rows in which each variable was set, for those that were set in any.  name -> (N,)

    labels    For each row the variable that was set, or several separated by `;` or as a list, nothing for none; or a
              table of true and false with a column for each of `names`; if it has its own names, the variables that it
              does not name were never set.
    left_out  Columns of the table that the caller leaves out.
    """
    labels = _one_column(labels, names)
    if _is_table_of_truth(labels):
        masks = _from_mask(labels, names, left_out)
    else:
        masks = _from_labels(labels, names, where, left_out)
    if any(len(mask) != rows for mask in masks.values()):
        raise _wrong_length("interventions", len(next(iter(masks.values()))), rows)
    masks = {name: mask for name, mask in masks.items() if mask.any()}
    if not masks:
        raise TableError(
            "The interventions mark no row: name the variable that was set, and leave the other rows empty."
        )
    if len(masks) == len(names) and all(mask.all() for mask in masks.values()):
        raise TableError(
            "The interventions say that every variable was set in every row: where nothing varies freely, no causes "
            "can be found."
        )
    return masks


_TRUTH = (bool, np.bool_)


def _one_column(labels: Any, names: Sequence[str]) -> Any:
    """The column of a frame of labels with one column; other labels as they are."""
    columns = getattr(labels, "columns", None)
    if columns is None or len(columns) != 1 or len(np.shape(labels)) != 2:
        return labels
    name, column = str(columns[0]).strip(), labels[columns[0]]
    cells = column.to_list()
    # A frame with one variable may also say where that one was set.
    others = [cell for cell in cells if not isinstance(cell, _TRUTH)]
    zero_or_one = all(isinstance(cell, numbers.Real) and cell in (0, 1) for cell in others)
    if name not in names or not cells or not zero_or_one:
        return column
    if others and (also := [each for each in ("0", "1") if each in names]):
        raise TableError(
            f"The interventions in {name!r} are 0 and 1, which may say where {name!r} was set or name the variable "
            f"{also[-1]!r}: write true and false for the first, or give a list of labels for the second."
        )
    return labels


def _is_table_of_truth(labels: Any) -> bool:
    if isinstance(labels, list | tuple):
        rows = [row for row in labels if isinstance(row, list | tuple | np.ndarray)]
        cells = [cell for row in rows for cell in row]
        return bool(cells) and len(rows) == len(labels) and all(isinstance(cell, _TRUTH) for cell in cells)
    shape: tuple[int, ...] = getattr(labels, "shape", ())
    return len(shape) == 2 and (shape[-1] != 1 or hasattr(labels, "columns"))


def _from_labels(
    labels: Any, names: Sequence[str], where: Callable[[int], str], left_out: Sequence[str]
) -> dict[str, Bools]:
    cells = as_list(np.ravel(labels) if isinstance(labels, np.ndarray) else labels)
    if cells is None:
        raise TableError(f"{EXPECTED}, got {shown(labels)}.")
    if cells and all(isinstance(cell, _TRUTH) for cell in cells):
        raise TableError(f"{EXPECTED}, got true and false without the name of a variable.")
    masks = {name: np.zeros(len(cells), dtype=bool) for name in names}
    for row, cell in enumerate(cells):
        for label in _several(cell, names):
            if label not in masks:
                raise TableError(
                    f"The interventions name {shown(label)} on {where(row)}, which is not a variable of the table: "
                    f"{_hint(label, names, left_out)}"
                )
            masks[label][row] = True
    return masks


def _hint(label: str, names: Sequence[str], left_out: Sequence[str]) -> str:
    """A guess at the meaning of a label that names no variable."""
    if label in left_out:
        return LEFT_OUT
    parts = [part for part in OTHER_SEPARATORS.split(label) if part]
    if len(parts) > 1 and set(parts) <= set(names):
        return f"separate several by {SEPARATOR!r}, as in {f'{SEPARATOR} '.join(parts)!r}."
    if label.lower() in NOTHING_SET:
        return "leave the label empty if nothing was set."
    near = closest(label, names)
    return f"did you mean {near!r}?" if near else f"expected one of {listed(names)}, or an empty label for none."


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


def _from_mask(labels: Any, names: Sequence[str], left_out: Sequence[str]) -> dict[str, Bools]:
    given = [str(name).strip() for name in labels.columns] if hasattr(labels, "columns") else list(names)
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
        raise TableError("Expected a table of interventions to contain only true and false.")
    if cells.ndim != 2 or cells.shape[1] != len(given):
        raise TableError(
            f"Expected interventions as true or false for each of {counted(len(names), 'variable')}, got a table with "
            f"{counted(cells.shape[-1], 'column')}."
        )
    masks = {name: cells[:, index] == 1 for index, name in enumerate(given)}
    strange = [name for name, mask in masks.items() if name not in names and (name not in left_out or mask.any())]
    if strange:
        near = closest(strange[0], names)
        hint = f"did you mean {near!r}?" if near else f"expected one of {listed(names)}."
        raise TableError(
            f"The table of interventions has a column {shown(strange[0])}, which is not a variable of the table: "
            f"{LEFT_OUT if strange[0] in left_out else hint}"
        )
    return {name: mask for name, mask in masks.items() if name in names}


def _wrong_length(what: str, given: int, rows: int) -> TableError:
    return TableError(f"Expected {what} for each of {counted(rows, 'observation')}, got {counted(given, 'label')}.")


def lost_experiments(before: Table, after: Table) -> list[Finding]:
    """A warning if no row is left in which a variable was set."""
    if before.intervened is None or after.intervened is None:
        return []
    lost = before.intervened.any(axis=0) & ~after.intervened.any(axis=0)
    names = tuple(before.names[index] for index in np.flatnonzero(lost).tolist())
    if not names:
        return []
    message = (
        f"Every observation in which an experiment set {listed(names)} was left out because of missing values: the "
        f"answer does not use {'that experiment' if len(names) == 1 else 'these experiments'}."
    )
    return [Finding("experiments", "warning", names, message)]


def experiment_findings(table: Table) -> list[Finding]:
    """Count the rows of experiments and name their targets, and variables that were intervened on throughout."""
    if table.intervened is None:
        return []
    count, per_variable = int(table.intervened.any(axis=1).sum()), table.intervened.sum(axis=0)
    most_first = np.argsort(-per_variable, kind="stable")[: np.count_nonzero(per_variable)].tolist()
    names = tuple(table.names[index] for index in most_first)
    some = first_few([f"{table.names[index]!r} in {per_variable[index]}" for index in most_first], 8)
    set_ = f"an experiment set {names[0]!r}" if len(names) == 1 else f"experiments set {some}"
    message = (
        f"In {count:,} of {counted(table.observations, 'observation')}, {set_}. Where a variable was set, its causes "
        "do not act on it."
    )
    findings = [Finding("experiments", "note", names, message)]
    always = tuple(table.names[index] for index in most_first if per_variable[index] == table.observations)
    if always:
        message = (
            f"{listed(always)} {'was' if len(always) == 1 else 'were'} set in every observation: the table "
            f"cannot show what causes {'it' if len(always) == 1 else 'them'}."
        )
        findings.append(Finding("experiments", "warning", always, message))
    return findings


# Environments


def with_environments(raw: RawFrame, labels: Any) -> RawFrame:
    """The frame with one more column, the environment of each row."""
    if ENVIRONMENT in map(str, raw.given_names):
        raise TableError(
            f"The table has a column {ENVIRONMENT!r} already: give its name as the environments, or rename it."
        )
    cells = as_list(labels)
    if cells is None or getattr(labels, "ndim", 1) > 1 or any(isinstance(cell, list | tuple) for cell in cells):
        raise TableError(
            f"Expected environments as one label for each observation or as the name of a column, got {shown(labels)}."
        )
    if len(cells) != len(raw):
        raise _wrong_length("environments", len(cells), len(raw))
    return replace(raw, frame=raw.frame.assign(**{ENVIRONMENT: cells}))


def missing_environments(table: Table, column: str | None, where: Callable[[int], str]) -> list[Finding]:
    """A problem if rows have no environment; `column` is the name of the column that holds them, if there is one."""
    if table.environment is None:
        return []
    gaps = np.isnan(table.values[:, table.names.index(table.environment)])
    if not gaps.any():
        return []
    count = int(gaps.sum())
    subject = "The environments" if column is None else f"The environments in {column!r}"
    them, rows = ("it", "this row") if count == 1 else ("them", "these rows")
    message = (
        f"{subject} are missing in {counted(count, 'observation')}, the first on {where(int(gaps.argmax()))}: fill "
        f"{them} in, for instance with 'unknown', or leave {rows} out."
    )
    columns = () if column is None else (column,)
    return [Finding("environments", "problem", columns, message, (Remedy("omit", setting="environments"),))]


def unusable_environments(
    problem: Problem, column: str | None, unusable: bool, rows_left_out: bool, model: str
) -> Finding:
    """Why environments cannot be distinguished, and what to do; `unusable` as a variable too is their column."""
    subject = "The environments" if column is None else f"The environments in {column!r}"
    everywhere = f", {problem.value}" if column is None else f" ({column!r} is {problem.value} everywhere)"
    sentences = {
        "identifier": f"{subject} differ in every row: group rows into a few environments, such as sites or years.",
        "names": f"{subject} differ in most rows: group rows into a few environments, such as sites or years.",
        "levels": f"{subject} are too many ({problem.detail}): up to {MAX_LEVELS} can be distinguished, so group them.",
        "empty": f"{subject} are missing in every observation.",
        "constant": f"All observations{' that are left' if rows_left_out else ''} come from one environment"
        f"{everywhere}: expected two or more to compare.",
    }
    message = sentences.get(problem.kind) or problem_sentences([problem], model)[0]
    without = problem.kind in ("constant", "empty") or unusable
    also = () if column is None or not without else (column,)
    return Finding("environments", "problem", also, message, (Remedy("omit", also, "environments"),))


def environment_findings(table: Table) -> list[Finding]:
    """A note on the number of rows of each environment."""
    if table.environment is None:
        return []
    index = table.names.index(table.environment)
    codes, counts = np.unique(table.values[table.observed[:, index], index], return_counts=True)
    levels = table.columns[index].levels
    labels = [levels[int(code)] if levels else f"{code:g}" for code in codes.tolist()]
    some = first_few([f"{label!r} {count}" for label, count in zip(labels, counts.tolist(), strict=True)], 8)
    message = (
        f"{table.environment!r} distinguishes {counted(len(codes), 'environment')} ({some}). It can only be a "
        "cause: an edge from it means that the variable differs between environments."
    )
    return [Finding("environments", "note", (table.environment,), message)]
