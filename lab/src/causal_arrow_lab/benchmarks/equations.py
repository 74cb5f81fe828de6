"""Structural equations that can be solved under interventions: true effects, and experiments in simulation.

Tasks follow section 4.1 of the paper, drawn with numpy one at a time. A variable may have levels instead of numbers:
they are cut from the number that its equation gives, and act on its effects through scores.
"""

# N observations, P variables, L hidden causes

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from causal_arrow.tables.table import Column

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
class Values:
    """The variables of some observations: the numbers on which effects depend, and the content of the table."""

    felt: Floats  # (N, L + P)
    shown: Floats  # (N, L + P)


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
    ) -> Values:
        """Solve for all variables, given the noise (N, L + P), with one of them shifted or set.

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
        return Values(felt, shown)

    def table_values(self, observations: int, random: np.random.Generator) -> Floats:
        """Draw observations as in a table.  (N, P)"""
        return self.solve(self.draw_noise(observations, random)).shown[:, self.hidden :]

    def experiment(self, variable: int, observations: int, random: np.random.Generator) -> Floats:
        """Draw observations in which a variable of the table is randomized over its usual range.  (N, P)"""
        k = self.hidden + variable
        usual = self.solve(self.draw_noise(observations, random)).shown[:, k]
        return self.solve(self.draw_noise(observations, random), k, set_to=usual).shown[:, self.hidden :]

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

        def mean(values: Values) -> float:
            cells = values.shown[:, y]
            return float((cells if level is None else cells == level).mean())

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

    `relations` is one of RELATIONS. `kinds` are those of the P variables, all numbers by default. Each of the `hidden`
    causes acts on two or three variables.
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
