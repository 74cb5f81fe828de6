"""How good the effects are, where the truth is known: `python -m causal_arrow.discovery.effects`.

Tasks follow section 4.1 of the paper, drawn with numpy, so that interventions can be carried out in them: the true
effect is the average slope, the mean change of the outcome per unit when the treatment is raised by a little for
everybody. Columns have about unit variance. Each estimate is held against four others: with the true graph, with our
single best graph, by IDA on the equivalence class that PC finds (Maathuis, Kalisch and Bühlmann 2009), and by a
regression on everything.
"""

# N observations, P variables, L hidden causes

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from causal_arrow.discovery.answer import Answer
from causal_arrow.discovery.effects.effect import LEVEL
from causal_arrow.discovery.effects.estimation import EffectQuestion, estimate_effect
from causal_arrow.discovery.effects.linear import Design, curved, linear_estimates
from causal_arrow.discovery.effects.mixture import mixture_of
from causal_arrow.discovery.pipeline import Settings, discover
from causal_arrow.discovery.uncertainty import adjustment_sets
from causal_arrow.errors import ConfigurationError
from causal_arrow.graphs.dag import skeleton_of
from causal_arrow.tables.table import Table

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

KINDS = ("linear", "nonlinear", "hidden")
"""Linear relations; multilayer perceptrons; linear relations with hidden common causes."""

SHIFT = 0.1
"""How far the treatment is raised, in about its standard deviations."""
REFERENCE = 20_000
"""Observations for scales and true effects."""
MOST_NEIGHBOURS = 10
"""Undirected neighbours of which IDA tries all subsets."""
PC_LEVEL = 0.05


# Tasks


@dataclass(frozen=True, eq=False)
class Equations:
    """Structural equations that can be solved with any noise and any shift; hidden causes come first."""

    adjacency: Bools  # (L + P, L + P), causes before effects
    hidden: int
    functions: tuple[Callable[[Floats], Floats] | None, ...]  # signal of each variable from all values; None for roots
    noise_scales: Floats  # (L + P,)
    centers: Floats  # (L + P,)
    scales: Floats  # (L + P,)
    draw_noise: Callable[[int, np.random.Generator], Floats]

    def solve(self, noise: Floats, variable: int | None = None, shift: float = 0.0) -> Floats:
        """All values from the noise (N, L + P), one variable shifted against what it would have been."""
        values = np.zeros_like(noise)
        for place, function in enumerate(self.functions):
            raw = noise[:, place] * self.noise_scales[place]
            if function is not None:
                raw = raw + function(values)
            values[:, place] = (raw - self.centers[place]) / self.scales[place]
            if place == variable:
                values[:, place] += shift
        return values

    def true_effect(self, treatment: int, outcome: int, random: np.random.Generator) -> float:
        """Mean change of the outcome per unit of the treatment, which is shifted to either side of its value."""
        noise = self.draw_noise(REFERENCE, random)
        up, down = (self.solve(noise, treatment, shift)[:, outcome] for shift in (SHIFT / 2, -SHIFT / 2))
        return float((up - down).mean() / SHIFT)


def draw_equations(kind: str, variables: int, random: np.random.Generator) -> Equations:
    """Random equations by the paper's laws: up to 4P edges, R² from 0.1 to 0.9, normal, uniform or beta noise."""
    hidden = 0 if kind != "hidden" else max(1, round(variables / 5))
    total = hidden + variables
    adjacency = np.zeros((total, total), dtype=bool)
    upper = np.triu_indices(variables, 1)
    most = min(4 * variables, len(upper[0]))
    chosen = random.choice(len(upper[0]), size=int(random.integers(most + 1)), replace=False)
    adjacency[hidden + upper[0][chosen], hidden + upper[1][chosen]] = True
    for cause in range(hidden):
        adjacency[cause, hidden + random.choice(variables, size=int(random.integers(2, 4)), replace=False)] = True
    law = random.integers(3, size=total) if random.random() < 0.5 else np.full(total, random.integers(3))
    shapes = random.uniform(1, 10, size=2)

    def draw_noise(count: int, random: np.random.Generator) -> Floats:
        noise = np.stack([random.normal(size=(count, total)), random.uniform(-1, 1, size=(count, total)) * 3**0.5])
        a, b = shapes
        deviation = (a * b / (a + b + 1)) ** 0.5 / (a + b)
        beta = (random.beta(a, b, size=(count, total)) - a / (a + b)) / deviation
        return np.asarray(np.where(law == 0, noise[0], np.where(law == 1, noise[1], beta)))

    reach = random.uniform(0, 0.9)
    strengths = random.uniform(1, 10, size=2)
    explained = 0.1 + 0.8 * random.beta(strengths[0], strengths[1], size=total)
    functions: list[Callable[[Floats], Floats] | None] = [
        _function(kind, np.flatnonzero(adjacency[:, place]), reach, random) for place in range(total)
    ]
    noise = draw_noise(REFERENCE, random)
    noise_scales, centers, scales = np.ones(total), np.zeros(total), np.ones(total)
    values = np.zeros_like(noise)
    for place, function in enumerate(functions):
        signal = np.zeros(len(noise)) if function is None else function(values)
        if function is not None:
            noise_scales[place] = signal.std() * np.sqrt((1 - explained[place]) / explained[place])
        raw = signal + noise_scales[place] * noise[:, place]
        centers[place], scales[place] = raw.mean(), raw.std()
        values[:, place] = (raw - centers[place]) / scales[place]
    return Equations(adjacency, hidden, tuple(functions), noise_scales, centers, scales, draw_noise)


def _function(
    kind: str, parents: NDArray[np.intp], reach: float, random: np.random.Generator
) -> Callable[[Floats], Floats] | None:
    if not len(parents):
        return None

    def weights(*shape: int) -> Floats:
        return np.asarray(random.uniform(1 - reach, 1 + reach, size=shape) * random.choice([-1.0, 1.0], size=shape))

    if kind != "nonlinear":
        linear = weights(len(parents))
        return lambda values: np.asarray(values[:, parents] @ linear)
    units = int(random.integers(1, 65))
    inner, outer = weights(len(parents), units), weights(units)
    return lambda values: np.asarray(np.tanh(values[:, parents] @ inner) @ outer)


# Estimates


@dataclass(frozen=True)
class Estimated:
    """An effect with its 90% interval."""

    effect: float
    low: float
    high: float


def by_sets(design: Design, treatment: int, outcome: int, sets: list[tuple[int, ...] | None]) -> Estimated:
    """The mean over adjustment sets, None for no effect, and the interval that covers all of theirs."""
    wanted = [members for members in sets if members is not None]
    estimates = linear_estimates(design, treatment, outcome, wanted)
    found = [Estimated(0.0, 0.0, 0.0)] * (len(sets) - len(wanted))
    for members in wanted:
        if (estimate := estimates.get(members)) is not None:
            part = mixture_of([1.0], [estimate.effect], [estimate.standard_error], [estimate.freedom])
            found.append(Estimated(estimate.effect, *part.interval(LEVEL)))
    if not found:
        return Estimated(0.0, -np.inf, np.inf)
    return Estimated(
        float(np.mean([each.effect for each in found])), min(e.low for e in found), max(e.high for e in found)
    )


def by_graph(design: Design, graph: Bools, treatment: int, outcome: int) -> Estimated:
    """By the optimal set of one graph."""
    return by_sets(design, treatment, outcome, list(adjustment_sets(graph[None], treatment, outcome)))


def by_ida(design: Design, cpdag: Bools, treatment: int, outcome: int) -> Estimated:
    """By all sets of parents that the treatment can have in the equivalence class."""
    sets = [None if outcome in parents else parents for parents in possible_parents(cpdag, treatment)]
    return by_sets(design, treatment, outcome, sets)


def possible_parents(cpdag: Bools, variable: int) -> Iterator[tuple[int, ...]]:
    """The sets of parents that a variable can have without a new v-structure."""
    both = cpdag & cpdag.T
    fixed = np.flatnonzero(cpdag[:, variable] & ~both[:, variable]).tolist()
    free = np.flatnonzero(both[:, variable]).tolist()[:MOST_NEIGHBOURS]
    adjacent = skeleton_of(cpdag)
    for size in range(len(free) + 1):
        for chosen in itertools.combinations(free, size):
            pairs = itertools.chain(itertools.combinations(chosen, 2), itertools.product(chosen, fixed))
            if all(adjacent[a, b] for a, b in pairs):
                yield tuple(sorted([*fixed, *chosen]))


def pc_class(values: Floats) -> Bools:
    """The equivalence class by PC, from causal-learn: an edge of unknown direction is marked both ways.  (P, P)"""
    try:
        from causallearn.search.ConstraintBased.PC import pc
    except ImportError as error:
        raise ConfigurationError("IDA needs causal-learn: install causal-arrow[benchmark].") from error
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        marks = pc(values.copy(), alpha=PC_LEVEL, indep_test="fisherz", show_progress=False).G.graph
    return np.asarray((marks == -1) | ((marks == 1) & (marks.T == 1)))  # −1 is a tail; two heads are a contradiction


METHODS = ("this package", "true graph", "single best graph", "IDA with PC", "regression on everything")


@dataclass(frozen=True)
class Trial:
    """One treatment and outcome of one task: the truth, and what each method says."""

    truth: float
    probability_of_none: float
    estimates: dict[str, Estimated]


def run_task(kind: str, seed: int, *, pairs: int = 6, graphs: int = 1000, question: EffectQuestion) -> list[Trial]:
    """Draw equations and a table of 100 to 1,000 observations, and estimate effects between any two variables."""
    random = np.random.default_rng([seed, KINDS.index(kind)])
    variables, observations = int(random.integers(5, 21)), int(random.integers(100, 1001))
    equations = draw_equations(kind, variables, random)
    values = equations.solve(equations.draw_noise(observations, random))[:, equations.hidden :]
    order = random.permutation(variables)  # column i of the table is variable order[i]
    table = Table.of_numbers(values[:, order], [f"x{place + 1}" for place in range(variables)])
    truth = equations.adjacency[equations.hidden :, equations.hidden :][np.ix_(order, order)]
    answer = discover(table, Settings(device="cpu", scale="given")).answer
    drawn = answer.sample(graphs, torch.Generator().manual_seed(seed)).graphs
    design = Design.of([table.values[:, [place]] for place in range(variables)])
    cpdag = pc_class(table.values)
    trials = []
    for _ in range(pairs):
        t, y = (int(place) for place in random.choice(variables, size=2, replace=False))
        effect = equations.true_effect(equations.hidden + order[t], equations.hidden + order[y], random)
        trials.append(_trial(answer, table, drawn, design, cpdag, truth, (t, y), effect, question, random))
    return trials


def _trial(
    answer: Answer,
    table: Table,
    drawn: Bools,
    design: Design,
    cpdag: Bools,
    truth: Bools,
    ends: tuple[int, int],
    true_effect: float,
    question: EffectQuestion,
    random: np.random.Generator,
) -> Trial:
    t, y = ends
    if question.estimator == "curved":
        design = curved(design, t, y, [True] * table.variables)
    ours = estimate_effect(answer, table, drawn, answer.names[t], answer.names[y], question=question, random=random)
    rest = tuple(place for place in range(table.variables) if place not in ends)
    estimates = [
        Estimated(ours.mean, *ours.interval),
        by_graph(design, truth, t, y),
        by_graph(design, answer.adjacency, t, y),
        by_ida(design, cpdag, t, y),
        by_sets(design, t, y, [rest]),
    ]
    return Trial(true_effect, ours.probability_of_none, dict(zip(METHODS, estimates, strict=True)))


# Figures


def report(kind: str, trials: list[Trial]) -> list[str]:
    """Lines of a Markdown table: error and coverage of each method."""
    truths = np.array([trial.truth for trial in trials])
    real = truths != 0
    if not real.any():
        raise ConfigurationError("Every true effect is zero in these tasks: draw more of them.")
    lines = [
        f"| {kind}: {len(trials)} effects, {int(real.sum())} of them not zero | bias | RMSE | coverage "
        "| coverage where not zero | median width where not zero |",
        "|---|---|---|---|---|---|",
    ]
    for method in METHODS:
        effects, low, high = (
            np.array([getattr(trial.estimates[method], part) for trial in trials]) for part in ("effect", "low", "high")
        )
        # What is zero in the simulation is zero up to rounding in an interval of no width.
        covered = (low - 1e-12 <= truths) & (truths <= high + 1e-12)
        # Towards or away from zero: without the sign, overestimates of negative effects would look small.
        bias = float(np.mean((effects - truths)[real] * np.sign(truths[real])))
        lines.append(
            f"| {method} | {bias:+.3f} | {np.sqrt(np.mean(np.square(effects - truths))):.3f} | {covered.mean():.2f} | "
            f"{covered[real].mean():.2f} | {np.median((high - low)[real]):.2f} |"
        )
    return lines


def validate(kind: str, tasks: int, seed: int, question: EffectQuestion, pairs: int = 6) -> tuple[list[str], float]:
    """The figures for one kind of tasks, and the seconds it took."""
    started = time.perf_counter()
    trials = [
        trial for number in range(tasks) for trial in run_task(kind, seed + number, pairs=pairs, question=question)
    ]
    return report(kind, trials), time.perf_counter() - started
