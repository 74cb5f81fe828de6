"""Structural equations in which interventions can be carried out: true effects, and experiments in silico.

Tasks follow section 4.1 of the paper, drawn with numpy one at a time. A variable may have levels instead of numbers:
they are cut from the number that its equation gives, and act on its effects by scores of their own.
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

LAWS = ("linear", "nonlinear", "normal")
"""Linear relations; multilayer perceptrons; linear relations with normal noise alone."""

SHIFT = 0.1
"""How far a treatment is raised for its true effect, in about its standard deviations."""
REFERENCE = 20_000
"""Observations for scales and true effects."""
MOST_LEVELS = 5
LEAST_SHARE = 0.1
"""Of the observations, at each level."""


@dataclass(frozen=True, eq=False)
class Levels:
    """A variable as levels: where they are cut, how they act on effects, and by which codes the table shows them."""

    kind: str  # "binary", "ordered" or "category"
    cuts: Floats  # (levels − 1,), rising
    scores: Floats  # (levels,) in the order of the cuts
    codes: NDArray[np.intp]  # (levels,) in the order of the cuts

    @property
    def count(self) -> int:
        return len(self.scores)


@dataclass(frozen=True, eq=False)
class Values:
    """The variables of some observations: what effects feel of them, and what a table shows."""

    felt: Floats  # (N, L + P)
    shown: Floats  # (N, L + P)


@dataclass(frozen=True, eq=False)
class Equations:
    """Structural equations that can be solved with any noise under any intervention; hidden causes come first."""

    adjacency: Bools  # (L + P, L + P), causes before effects
    hidden: int
    functions: tuple[Function | None, ...]  # signal of each variable from all values; None for roots
    noise_scales: Floats  # (L + P,)
    centers: Floats  # (L + P,)
    scales: Floats  # (L + P,)
    levels: tuple[Levels | None, ...]  # None for numbers
    draw_noise: Callable[[int, np.random.Generator], Floats]

    @property
    def columns(self) -> tuple[Column, ...]:
        """The variables that a table shows, by kind, x1, x2, ..."""
        return tuple(
            Column(f"x{place + 1}")
            if levels is None
            else Column(f"x{place + 1}", levels.kind, tuple(f"l{code}" for code in range(levels.count)))
            for place, levels in enumerate(self.levels[self.hidden :])
        )

    def solve(
        self, noise: Floats, variable: int | None = None, shift: float = 0.0, set_to: Floats | float | None = None
    ) -> Values:
        """All variables from the noise (N, L + P); one of them shifted against what it would have been, or set.

        A variable with levels is set to codes of them.
        """
        felt, shown = np.zeros_like(noise), np.zeros_like(noise)
        for place, function in enumerate(self.functions):
            raw = noise[:, place] * self.noise_scales[place]
            if function is not None:
                raw = raw + function(felt)
            value = (raw - self.centers[place]) / self.scales[place]
            levels = self.levels[place]
            if levels is None:
                if place == variable:
                    value = value + shift if set_to is None else np.broadcast_to(set_to, value.shape)
                felt[:, place] = shown[:, place] = value
                continue
            ranks = np.searchsorted(levels.cuts, value)
            if place == variable and set_to is not None:
                ranks = np.argsort(levels.codes)[np.broadcast_to(set_to, value.shape).astype(np.intp)]
            felt[:, place], shown[:, place] = levels.scores[ranks], levels.codes[ranks]
        return Values(felt, shown)

    def table_values(self, observations: int, random: np.random.Generator) -> Floats:
        """Observations as a table shows them.  (N, P)"""
        return self.solve(self.draw_noise(observations, random)).shown[:, self.hidden :]

    def experiment(self, variable: int, observations: int, random: np.random.Generator) -> Floats:
        """Observations in which a variable of the table was set by chance, over its usual range.  (N, P)"""
        place = self.hidden + variable
        usual = self.solve(self.draw_noise(observations, random)).shown[:, place]
        return self.solve(self.draw_noise(observations, random), place, set_to=usual).shown[:, self.hidden :]

    def true_effect(
        self,
        treatment: int,
        outcome: int,
        random: np.random.Generator,
        between: tuple[int, int] | None = None,
        level: int | None = None,
    ) -> float:
        """The effect of one variable of the table on another.

        For a number, the mean change of the outcome per unit when the treatment is shifted to either side of its value;
        for levels, the difference of the means when it is set to one and to the other. `level` asks for the share of
        one level of the outcome.
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
    law: str,
    variables: int,
    random: np.random.Generator,
    *,
    hidden: int = 0,
    kinds: Sequence[str] | None = None,
    most_edges: int = 4,
) -> Equations:
    """Random equations by the paper's laws: up to 4P edges, R² from 0.1 to 0.9, normal, uniform or beta noise.

    `kinds` are those of the P variables, all numbers by default. Each of the `hidden` causes acts on two or three.
    """
    total = hidden + variables
    adjacency = np.zeros((total, total), dtype=bool)
    upper = np.triu_indices(variables, 1)
    most = min(most_edges * variables, len(upper[0]))
    chosen = random.choice(len(upper[0]), size=int(random.integers(most + 1)), replace=False)
    adjacency[hidden + upper[0][chosen], hidden + upper[1][chosen]] = True
    for cause in range(hidden):
        adjacency[cause, hidden + random.choice(variables, size=int(random.integers(2, 4)), replace=False)] = True
    noise_law = random.integers(3, size=total) if random.random() < 0.5 else np.full(total, random.integers(3))
    noise_law = np.zeros(total, dtype=int) if law == "normal" else noise_law
    shapes = random.uniform(1, 10, size=2)

    def draw_noise(count: int, random: np.random.Generator) -> Floats:
        noise = np.stack([random.normal(size=(count, total)), random.uniform(-1, 1, size=(count, total)) * 3**0.5])
        a, b = shapes
        deviation = (a * b / (a + b + 1)) ** 0.5 / (a + b)
        beta = (random.beta(a, b, size=(count, total)) - a / (a + b)) / deviation
        return np.asarray(np.where(noise_law == 0, noise[0], np.where(noise_law == 1, noise[1], beta)))

    reach = random.uniform(0, 0.9)
    strengths = random.uniform(1, 10, size=2)
    explained = 0.1 + 0.8 * random.beta(strengths[0], strengths[1], size=total)
    functions = tuple(_function(law, np.flatnonzero(adjacency[:, place]), reach, random) for place in range(total))
    noise = draw_noise(REFERENCE, random)
    noise_scales, centers, scales = np.ones(total), np.zeros(total), np.ones(total)
    levels: list[Levels | None] = []
    felt = np.zeros_like(noise)
    for place, function in enumerate(functions):
        signal = np.zeros(len(noise)) if function is None else function(felt)
        if function is not None:
            # A cause with levels may leave a signal that hardly varies.
            noise_scales[place] = max(signal.std(), 1e-3) * np.sqrt((1 - explained[place]) / explained[place])
        raw = signal + noise_scales[place] * noise[:, place]
        centers[place], scales[place] = raw.mean(), raw.std()
        values = (raw - centers[place]) / scales[place]
        kind = "number" if kinds is None or place < hidden else kinds[place - hidden]
        levels.append(None if kind == "number" else _levels(kind, values, random))
        cut = levels[-1]
        felt[:, place] = values if cut is None else cut.scores[np.searchsorted(cut.cuts, values)]
    return Equations(adjacency, hidden, functions, noise_scales, centers, scales, tuple(levels), draw_noise)


def _levels(kind: str, values: Floats, random: np.random.Generator) -> Levels:
    """Cuts at random quantiles, with a tenth of the observations between any two, and scores of unit variance."""
    count = 2 if kind == "binary" else int(random.integers(3, MOST_LEVELS + 1))
    shares = LEAST_SHARE + (1 - count * LEAST_SHARE) * random.dirichlet(np.ones(count))
    cuts = np.quantile(values, np.cumsum(shares)[:-1])
    scores = random.normal(size=count) if kind == "category" else np.arange(count) + 0.0
    scores = scores - shares @ scores
    scores = scores / np.sqrt(shares @ np.square(scores))
    codes = random.permutation(count) if kind == "category" else np.arange(count)
    return Levels(kind, cuts, scores, codes)


def _function(law: str, parents: NDArray[np.intp], reach: float, random: np.random.Generator) -> Function | None:
    if not len(parents):
        return None

    def weights(*shape: int) -> Floats:
        return np.asarray(random.uniform(1 - reach, 1 + reach, size=shape) * random.choice([-1.0, 1.0], size=shape))

    if law != "nonlinear":
        linear = weights(len(parents))
        return lambda values: np.asarray(values[:, parents] @ linear)
    units = int(random.integers(1, 65))
    inner, outer = weights(len(parents), units), weights(units)
    return lambda values: np.asarray(np.tanh(values[:, parents] @ inner) @ outer)
