"""The suite `effects`: tables with questions about effects whose answers are known, and measures of the estimates."""

# N observations, P variables

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from causal_arrow.tables.table import Table
from causal_arrow_lab.benchmarks.datasets import BoolArray, Dataset
from causal_arrow_lab.benchmarks.equations import StructuralEquations, draw_equations

QUESTIONS = 6
"""Number of effects per dataset."""
VARIABLES = (5, 20)
OBSERVATIONS = (100, 1000)
HIDDEN_PER_VARIABLE = 0.2

MIXED = ("number", "number", "binary", "ordered", "category")
"""The kind of each column of a mixed table is drawn from these."""


@dataclass(frozen=True)
class EffectRow:
    """The tables of a row, and the kinds of treatments and outcomes in its questions."""

    relations: str = "linear"
    hidden: bool = False
    mixed: bool = False
    treatments: tuple[str, ...] = ("number", "binary", "category")
    outcomes: tuple[str, ...] = ("number", "binary", "ordered")


EFFECT_ROWS: Mapping[str, EffectRow] = {
    "linear": EffectRow(),
    "nonlinear": EffectRow("nonlinear"),
    "mixed": EffectRow(mixed=True),
    "yes-no-treatment": EffectRow("nonlinear", mixed=True, treatments=("binary",)),
    "level-of-outcome": EffectRow(mixed=True, outcomes=("category",)),
    "hidden": EffectRow(hidden=True),
}


@dataclass(frozen=True)
class Question:
    """An effect of the treatment on the outcome, or on the share of one of its levels."""

    treatment: str
    outcome: str
    truth: float = math.nan
    between: tuple[str, str] | None = None
    level: str | None = None


@dataclass(frozen=True)
class EffectsDataset(Dataset):
    """A dataset with questions about effects."""

    questions: tuple[Question, ...] = ()


@dataclass(frozen=True, eq=False)
class EffectTask:
    """The part of such a dataset that a method sees; an oracle also sees the graph."""

    table: Table
    questions: tuple[Question, ...]  # without their answers
    graph: BoolArray | None = None


@dataclass(frozen=True)
class EstimatedEffect:
    """An effect with its 90% interval."""

    effect: float
    low: float
    high: float


UNKNOWN = EstimatedEffect(0.0, -math.inf, math.inf)


@dataclass(frozen=True, eq=False)
class EffectEstimates:
    """A method's answers to all questions, and the seconds that they took."""

    effects: tuple[EstimatedEffect, ...]
    seconds: float
    reading: Mapping[str, str] | None = None


def draw_effects_dataset(random: np.random.Generator, *, row: str) -> EffectsDataset:
    """Draw a table of 5 to 20 variables and 100 to 1,000 observations, and six effects between any two variables."""
    settings = EFFECT_ROWS[row]
    variables = int(random.integers(*VARIABLES, endpoint=True))
    observations = int(random.integers(*OBSERVATIONS, endpoint=True))
    kinds = _draw_kinds(settings, variables, random) if settings.mixed else None
    hidden = max(1, round(HIDDEN_PER_VARIABLE * variables)) if settings.hidden else 0
    equations = draw_equations(settings.relations, variables, random, hidden=hidden, kinds=kinds)
    values = equations.table_values(observations, random)
    while kinds is not None and not _all_levels(values, equations):
        values = equations.table_values(observations, random)
    columns = equations.columns
    return EffectsDataset(
        values,
        equations.adjacency[hidden:, hidden:],
        tuple(column.name for column in columns),
        columns=columns if settings.mixed else None,
        questions=tuple(_question(equations, settings, random) for _ in range(QUESTIONS)),
    )


def effect_task(dataset: EffectsDataset, with_graph: bool) -> EffectTask:
    """The part of a dataset that a method sees: no answers, and the graph if it is an oracle."""
    questions = tuple(replace(question, truth=math.nan) for question in dataset.questions)
    return EffectTask(dataset.table, questions, dataset.adjacency if with_graph else None)


def _draw_kinds(row: EffectRow, variables: int, random: np.random.Generator) -> list[str]:
    """Draw kinds of columns, with two treatments and two outcomes of the kinds of a row."""
    kinds = random.choice(MIXED, size=variables).tolist()
    kinds[:2] = random.choice(row.treatments, size=2).tolist()
    kinds[2:4] = random.choice(row.outcomes, size=2).tolist()
    return [kinds[k] for k in random.permutation(variables)]


def _all_levels(values: np.ndarray, equations: StructuralEquations) -> bool:
    """Whether every level occurs often enough to estimate its effect."""
    return all(
        min(np.bincount(values[:, k].astype(int), minlength=levels.count)) >= 5
        for k, levels in enumerate(equations.levels[equations.hidden :])
        if levels is not None
    )


def _question(equations: StructuralEquations, row: EffectRow, random: np.random.Generator) -> Question:
    """Draw a question and compute its answer."""
    columns = equations.columns
    t = int(random.choice([k for k, column in enumerate(columns) if column.kind in row.treatments]))
    y = int(random.choice([k for k, column in enumerate(columns) if column.kind in row.outcomes and k != t]))
    between = None if columns[t].kind == "number" else tuple(sorted(random.permutation(len(columns[t].levels))[:2]))
    level = int(random.integers(len(columns[y].levels))) if columns[y].kind == "category" else None
    return Question(
        columns[t].name,
        columns[y].name,
        equations.true_effect(t, y, random, between, level),
        None if between is None else (columns[t].levels[between[0]], columns[t].levels[between[1]]),
        None if level is None else columns[y].levels[level],
    )


def effect_measures(questions: Sequence[Question], answers: Sequence[EstimatedEffect]) -> dict[str, float]:
    """Error and coverage over the questions of one dataset; nan where no true effect differs from zero.

    bias                  away from zero (+) or towards it (−), where there is an effect
    squared_error         of all effects
    coverage              of the 90% intervals
    coverage_of_effects   the same where there is an effect
    width                 mean width of the intervals where there is an effect; an infinite one counts as 10
    """
    truths = np.array([question.truth for question in questions])
    effects, low, high = (np.array([getattr(each, part) for each in answers]) for part in ("effect", "low", "high"))
    real = truths != 0
    # Effects that are zero in the simulation are zero up to rounding in an interval without width.
    covered = (low - 1e-12 <= truths) & (truths <= high + 1e-12)
    # With the sign of the effect, or overestimates of negative effects would look small.
    errors = (effects - truths) * np.sign(truths)

    def mean(values: np.ndarray) -> float:
        return float(values[real].mean()) if real.any() else math.nan

    return {
        "bias": mean(errors),
        "squared_error": float(np.square(effects - truths).mean()),
        "coverage": float(covered.mean()),
        "coverage_of_effects": mean(covered.astype(float)),
        "width": mean(np.minimum(high - low, 10.0)),
    }
