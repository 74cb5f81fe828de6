"""The suites `effects` and `experiments`: tasks of section 4.1 of the paper whose equations can be solved under
interventions. Levels are cut from the number that an equation gives, and act on effects through scores.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from causal_arrow.graphs import metrics
from causal_arrow.tables.table import Column, Table
from causal_arrow_lab.benchmarks.datasets import BoolArray, Dataset

# N observations, P variables, L hidden causes

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Function = Callable[[Floats], Floats]

RELATIONS = ("linear", "nonlinear", "normal")
"""Linear relations; multilayer perceptrons; linear relations with normal noise only."""

SHIFT = 0.1
"""Shift of a treatment for its true effect, in about its standard deviations."""
REFERENCE = 20_000
"""Number of observations for scales and true effects."""
MAX_LEVELS = 5
MIN_LEVEL_SHARE = 0.1
"""Smallest share of the observations at a level."""


@dataclass(frozen=True, eq=False)
class Levels:
    """The levels of a variable: their cuts, their scores for effects, and their codes in the table."""

    kind: str  # "binary", "ordered" or "category"
    cuts: Floats  # (levels − 1,), increasing
    scores: Floats  # (levels,) in the order of the cuts
    codes: NDArray[np.intp]  # (levels,) in the order of the cuts

    @property
    def count(self) -> int:
        return len(self.scores)


@dataclass(frozen=True, eq=False)
class StructuralEquations:
    """Structural equations that can be solved with any noise under any intervention; hidden causes come first."""

    adjacency: Bools  # (L + P, L + P), causes before effects
    hidden: int
    functions: tuple[Function | None, ...]  # the signal of each variable, given all values; None for roots
    noise_scales: Floats  # (L + P,)
    centers: Floats  # (L + P,)
    scales: Floats  # (L + P,)
    levels: tuple[Levels | None, ...]  # None for numbers
    draw_noise: Callable[[int, np.random.Generator], Floats]

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of the table, x1, x2, ..."""
        return tuple(
            Column(f"x{k}")
            if levels is None
            else Column(f"x{k}", levels.kind, tuple(f"l{code}" for code in range(levels.count)))
            for k, levels in enumerate(self.levels[self.hidden :], start=1)
        )

    def solve(
        self, noise: Floats, variable: int | None = None, shift: float = 0.0, set_to: Floats | float | None = None
    ) -> Floats:
        """The table's content for all variables, given the noise (N, L + P), with one shifted or set.  (N, L + P)

        A variable with levels is set to codes of them.
        """
        felt, shown = np.zeros_like(noise), np.zeros_like(noise)
        for k, function in enumerate(self.functions):
            raw = noise[:, k] * self.noise_scales[k]
            if function is not None:
                raw = raw + function(felt)
            value = (raw - self.centers[k]) / self.scales[k]
            levels = self.levels[k]
            if levels is None:
                if k == variable:
                    value = value + shift if set_to is None else np.broadcast_to(set_to, value.shape)
                felt[:, k] = shown[:, k] = value
                continue
            ranks = np.searchsorted(levels.cuts, value)
            if k == variable and set_to is not None:
                ranks = np.argsort(levels.codes)[np.broadcast_to(set_to, value.shape).astype(np.intp)]
            felt[:, k], shown[:, k] = levels.scores[ranks], levels.codes[ranks]
        return shown

    def table_values(self, observations: int, random: np.random.Generator) -> Floats:
        """Draw observations as in a table.  (N, P)"""
        return self.solve(self.draw_noise(observations, random))[:, self.hidden :]

    def experiment(self, variable: int, observations: int, random: np.random.Generator) -> Floats:
        """Draw observations in which a variable of the table is randomized over its usual range.  (N, P)"""
        k = self.hidden + variable
        usual = self.solve(self.draw_noise(observations, random))[:, k]
        return self.solve(self.draw_noise(observations, random), k, set_to=usual)[:, self.hidden :]

    def true_effect(
        self,
        treatment: int,
        outcome: int,
        random: np.random.Generator,
        between: tuple[int, int] | None = None,
        level: int | None = None,
    ) -> float:
        """The effect of one variable of the table on another.

        For a number, the mean change of the outcome per unit when the treatment is shifted to both sides of its value;
        for levels, the difference of the means when it is set to each of two. With `level`, the outcome is the share
        of that level.
        """
        noise = self.draw_noise(REFERENCE, random)
        t, y = self.hidden + treatment, self.hidden + outcome

        def mean(shown: Floats) -> float:
            return float((shown[:, y] if level is None else shown[:, y] == level).mean())

        if between is not None:
            low, high = (mean(self.solve(noise, t, set_to=float(code))) for code in between)
            return high - low
        up, down = (mean(self.solve(noise, t, shift)) for shift in (SHIFT / 2, -SHIFT / 2))
        return (up - down) / SHIFT


def draw_equations(
    relations: str,
    variables: int,
    random: np.random.Generator,
    *,
    hidden: int = 0,
    kinds: Sequence[str] | None = None,
    edges_per_variable: int = 4,
) -> StructuralEquations:
    """Draw equations as in the paper: up to 4P edges, R² from 0.1 to 0.9, normal, uniform or beta noise.

    Each of the `hidden` causes acts on two or three variables.
    """
    total = hidden + variables
    adjacency = np.zeros((total, total), dtype=bool)
    upper = np.triu_indices(variables, 1)
    max_edges = min(edges_per_variable * variables, len(upper[0]))
    chosen = random.choice(len(upper[0]), size=int(random.integers(max_edges + 1)), replace=False)
    adjacency[hidden + upper[0][chosen], hidden + upper[1][chosen]] = True
    for cause in range(hidden):
        adjacency[cause, hidden + random.choice(variables, size=int(random.integers(2, 4)), replace=False)] = True
    noise_kind = random.integers(3, size=total) if random.random() < 0.5 else np.full(total, random.integers(3))
    noise_kind = np.zeros(total, dtype=int) if relations == "normal" else noise_kind
    shapes = random.uniform(1, 10, size=2)

    def draw_noise(count: int, random: np.random.Generator) -> Floats:
        noise = np.stack([random.normal(size=(count, total)), random.uniform(-1, 1, size=(count, total)) * 3**0.5])
        a, b = shapes
        deviation = (a * b / (a + b + 1)) ** 0.5 / (a + b)
        beta = (random.beta(a, b, size=(count, total)) - a / (a + b)) / deviation
        return np.asarray(np.where(noise_kind == 0, noise[0], np.where(noise_kind == 1, noise[1], beta)))

    reach = random.uniform(0, 0.9)
    strengths = random.uniform(1, 10, size=2)
    explained = 0.1 + 0.8 * random.beta(strengths[0], strengths[1], size=total)
    functions = tuple(_function(relations, np.flatnonzero(adjacency[:, k]), reach, random) for k in range(total))
    noise = draw_noise(REFERENCE, random)
    noise_scales, centers, scales = np.ones(total), np.zeros(total), np.ones(total)
    levels: list[Levels | None] = []
    felt = np.zeros_like(noise)
    for k, function in enumerate(functions):
        signal = np.zeros(len(noise)) if function is None else function(felt)
        if function is not None:
            # The signal of a cause with levels may hardly vary.
            noise_scales[k] = max(signal.std(), 1e-3) * np.sqrt((1 - explained[k]) / explained[k])
        raw = signal + noise_scales[k] * noise[:, k]
        centers[k], scales[k] = raw.mean(), raw.std()
        values = (raw - centers[k]) / scales[k]
        kind = "number" if kinds is None or k < hidden else kinds[k - hidden]
        levels.append(None if kind == "number" else _levels(kind, values, random))
        cut = levels[-1]
        felt[:, k] = values if cut is None else cut.scores[np.searchsorted(cut.cuts, values)]
    return StructuralEquations(adjacency, hidden, functions, noise_scales, centers, scales, tuple(levels), draw_noise)


def _levels(kind: str, values: Floats, random: np.random.Generator) -> Levels:
    """Draw cuts at random quantiles, with at least a tenth of the observations per level, and scores of variance 1."""
    count = 2 if kind == "binary" else int(random.integers(3, MAX_LEVELS + 1))
    shares = MIN_LEVEL_SHARE + (1 - count * MIN_LEVEL_SHARE) * random.dirichlet(np.ones(count))
    cuts = np.quantile(values, np.cumsum(shares)[:-1])
    scores = random.normal(size=count) if kind == "category" else np.arange(count) + 0.0
    scores = scores - shares @ scores
    scores = scores / np.sqrt(shares @ np.square(scores))
    codes = random.permutation(count) if kind == "category" else np.arange(count)
    return Levels(kind, cuts, scores, codes)


def _function(relations: str, parents: NDArray[np.intp], reach: float, random: np.random.Generator) -> Function | None:
    """Draw the signal of a variable with these parents."""
    if not len(parents):
        return None

    def weights(*shape: int) -> Floats:
        return np.asarray(random.uniform(1 - reach, 1 + reach, size=shape) * random.choice([-1.0, 1.0], size=shape))

    if relations != "nonlinear":
        linear = weights(len(parents))
        return lambda values: np.asarray(values[:, parents] @ linear)
    units = int(random.integers(1, 65))
    inner, outer = weights(len(parents), units), weights(units)
    return lambda values: np.asarray(np.tanh(values[:, parents] @ inner) @ outer)


# Effects

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


NOTHING = EstimatedEffect(0.0, 0.0, 0.0)
UNKNOWN = EstimatedEffect(0.0, -math.inf, math.inf)


@dataclass(frozen=True, eq=False)
class EffectEstimates:
    """A method's answers to all questions, and the seconds that they took."""

    effects: tuple[EstimatedEffect, ...]
    seconds: float
    reading: Mapping[str, str] | None = None


def draw_effects_dataset(random: np.random.Generator, *, task: str) -> EffectsDataset:
    """Draw a table of 5 to 20 variables and 100 to 1,000 observations, and six effects between any two variables."""
    settings = EFFECT_ROWS[task]
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


# Experiments

MAX_EXPERIMENTS = 5


EXPERIMENT_ROWS = {
    "normal-10": ("normal", 10),
    "linear-10": ("linear", 10),
    "nonlinear-10": ("nonlinear", 10),
    "normal-20": ("normal", 20),
}
"""The relations and the number of variables of a row."""
USUAL_OBSERVATIONS, EXPERIMENTAL_OBSERVATIONS = 200, 100


@dataclass(frozen=True)
class ExperimentsDataset(Dataset):
    """A dataset with its equations. Variable i of these is x(i + 1) in the table."""

    equations: StructuralEquations | None = None


@dataclass(frozen=True, eq=False)
class ExperimentTask:
    """The part of a dataset that a policy sees: the table, and the observations of experiments that it asks for."""

    table: Table
    carry_out: Callable[[str], Table]


@dataclass(frozen=True, eq=False)
class Course:
    """The graphs after 0, 1, 2, ... experiments, the variable set in each, and the seconds that the choices took."""

    graphs: tuple[BoolArray, ...]
    chosen: tuple[str, ...]
    seconds: float
    reading: Mapping[str, str] | None = None


def draw_experiments_dataset(random: np.random.Generator, *, task: str) -> ExperimentsDataset:
    """Draw a table and its equations, with between half an edge and two edges per variable."""
    relations, variables = EXPERIMENT_ROWS[task]
    while True:
        equations = draw_equations(relations, variables, random, edges_per_variable=2)
        if equations.adjacency.sum() >= variables / 2:
            break
    values = equations.table_values(USUAL_OBSERVATIONS, random)
    names = tuple(column.name for column in equations.columns)
    return ExperimentsDataset(values, equations.adjacency, names, equations=equations)


def experiment_task(dataset: ExperimentsDataset) -> ExperimentTask:
    """The part of a dataset that a policy sees. An experiment gives every policy the same observations."""

    def carry_out(name: str) -> Table:
        assert dataset.equations is not None
        variable = int(name[1:]) - 1
        random = np.random.default_rng([dataset.details["seed"], variable])
        values = dataset.equations.experiment(variable, EXPERIMENTAL_OBSERVATIONS, random)
        order = [int(each[1:]) - 1 for each in dataset.names]
        return Table.of_numbers(values[:, order], dataset.names)

    return ExperimentTask(dataset.table, carry_out)


def experiment_measures(truth: BoolArray, graphs: Sequence[BoolArray]) -> dict[str, float]:
    """Mistakes after each number of experiments.

    shd_0, ... shd_5       structural Hamming distance after so many experiments
    mean_shd               its mean after 1 to 5 experiments
    turned_0, ... turned_5 true edges that are reversed
    until_half             experiments until at most half of the initial mistakes are left; one more than were made if
                           that did not happen
    """
    distances = [float(metrics.shd(truth, graph)) for graph in graphs]
    turned = [float((truth & graph.T & ~graph).sum()) for graph in graphs]
    enough = [number for number, distance in enumerate(distances) if distance <= distances[0] / 2]
    return {
        **{f"shd_{number}": distance for number, distance in enumerate(distances)},
        "mean_shd": float(np.mean(distances[1:])),
        **{f"turned_{number}": count for number, count in enumerate(turned)},
        "until_half": float(enough[0] if enough else len(graphs)),
    }
