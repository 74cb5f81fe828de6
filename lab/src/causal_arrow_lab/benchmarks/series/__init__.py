"""Series with a known window graph: simulated families with equations to intervene in, and the CDML series.

    family = FAMILIES["linear-normal"]
    task = family.task(0)                   # values, units, the true window graph
    task.process.response(cause=0, effect=3, horizon=8, random=...)   # the true effect over time

Family and index determine the task. Reports use the tasks of `task(index)`; development has others, with
`task(index, development=True)`.
"""

# T steps, P variables shown, H hidden ones before them, L lags

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from causal_arrow.errors import BenchmarkError
from causal_arrow.graphs.dag import topological_order
from causal_arrow_lab.benchmarks.datasets import NOISES, default_names, seed_of

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Integers = NDArray[np.intp]

BURN_IN = 200
SERIES_OF_A_RESPONSE = 2000
SHIFT = 0.1
MAX_ROOT = 0.95
"""Largest root of the companion matrix; random walks are exempt."""

# Mechanisms

MECHANISMS: Mapping[str, Callable[[Floats], Floats]] = {
    "linear": lambda x: x,
    "tanh": lambda x: 1.5 * np.tanh(1.5 * x),
    "sine": lambda x: 1.5 * np.sin(1.5 * x),
    "hump": lambda x: 2.0 * np.exp(-np.square(x)) - 1.0,
    "wavelet": lambda x: 2.0 * x * np.exp(-np.square(x) / 2),
    "hinge": lambda x: 1.5 * np.maximum(x, 0.0) / (1 + 0.2 * np.maximum(x, 0.0)),
}
NONLINEAR = tuple(name for name in MECHANISMS if name != "linear")
ALL_NOISES = ("normal", "laplace", "uniform")


@dataclass(frozen=True)
class Edge:
    """x[cause] at `lag` steps before acts on x[effect]: coefficient · mechanism(x)."""

    lag: int
    cause: int
    effect: int
    coefficient: float
    mechanism: str = "linear"


@dataclass(frozen=True, eq=False)
class Process:
    """Stationary equations of H + P variables in time. A drift and a season enter as further terms of the equations."""

    edges: tuple[Edge, ...]
    variables: int  # H + P
    lags: int
    hidden: int
    noise: str
    scales: Floats  # (H + P,) of the noise
    drift: Floats  # (H + P,) per step
    season: Floats  # (H + P,) amplitude
    period: int = 12

    @property
    def window(self) -> Bools:
        """[lag, j, k]: j, so many steps before, is a cause of k; hidden variables included.  (L + 1, H + P, H + P)"""
        graph = np.zeros((self.lags + 1, self.variables, self.variables), dtype=bool)
        for edge in self.edges:
            graph[edge.lag, edge.cause, edge.effect] = True
        return graph

    def run(self, noise: Floats, start: Floats, raised: tuple[int, Floats] | None = None) -> Floats:
        """The series that noise (S, T, H + P) drives, after L steps `start` (S, L, H + P).  (S, T, H + P)

        `raised` adds numbers (S, T) to a variable, which its effects feel.
        """
        values = np.concatenate([start, np.zeros_like(noise)], axis=1)
        into = [[edge for edge in self.edges if edge.effect == k] for k in range(self.variables)]
        order = topological_order(self.window[0]).tolist()  # causes at lag 0 before their effects
        for t in range(noise.shape[1]):
            now = self.lags + t
            for k in order:
                value = self.scales[k] * noise[:, t, k]
                value += self.drift[k] * t + self.season[k] * np.sin(2 * np.pi * t / self.period + k)
                for edge in into[k]:
                    value += edge.coefficient * MECHANISMS[edge.mechanism](values[:, now - edge.lag, edge.cause])
                if raised is not None and k == raised[0]:
                    value += raised[1][..., t]
                values[:, now, k] = value
        return values[:, self.lags :]

    def draw(self, steps: int, random: np.random.Generator, series: int = 1) -> Floats:
        """Series after a burn-in, drift and season from their first step on.  (S, T, H + P)"""
        plain = replace(self, drift=np.zeros(self.variables), season=np.zeros(self.variables))
        start = np.zeros((series, self.lags, self.variables))
        draw = NOISES[self.noise]
        burnt = plain.run(draw(random, (series, BURN_IN, self.variables)), start)
        return self.run(draw(random, (series, steps, self.variables)), burnt[:, BURN_IN - self.lags :])

    def response(
        self, cause: int, effect: int, horizon: int, random: np.random.Generator, *, held: bool = False
    ) -> Floats:
        """Mean change of a shown variable 0, 1, ... steps after another was raised, per unit.  (horizon + 1,)

        With `held`, the cause is kept above what it would have been at every step; otherwise it is raised once and then
        follows its equation. It is raised by SHIFT to either side, so that curved mechanisms give their mean slope.
        """
        linear = all(edge.mechanism == "linear" for edge in self.edges)
        series = 1 if linear else SERIES_OF_A_RESPONSE
        j, k = self.hidden + cause, self.hidden + effect
        history = self.draw(self.lags, random, series)
        noise = NOISES[self.noise](random, (series, horizon + 1, self.variables))
        process, path = self, np.zeros((series, horizon + 1))
        push = np.zeros(horizon + 1)
        push[0] = SHIFT
        if held:  # the cause loses its equation and takes its own path, moved up or down
            chosen = np.arange(self.variables) == j
            process = replace(
                self,
                edges=tuple(edge for edge in self.edges if edge.effect != j),
                scales=np.where(chosen, 0.0, self.scales),
                drift=np.where(chosen, 0.0, self.drift),
                season=np.where(chosen, 0.0, self.season),
            )
            path, push = self.run(noise, history)[:, :, j], np.full(horizon + 1, SHIFT)
        low, high = (process.run(noise, history, (j, path + sign * push))[:, :, k] for sign in (-1.0, 1.0))
        return np.asarray((high - low).mean(axis=0) / (2 * SHIFT))


# Tasks


@dataclass(frozen=True, eq=False)
class SeriesTask:
    """A series or a panel as a method may see it, and the truth."""

    values: Floats  # (T, P), NaN where nothing was observed; units one after another
    unit: Integers | None  # (T,)
    window: Bools  # (L + 1, P, P), [lag, j, k]
    contemporaneous: bool  # whether lag 0 is asked for
    process: Process | None = None
    confounded: Bools | None = None  # (P, P) at lag 0, symmetric

    @property
    def lags(self) -> int:
        return len(self.window) - 1

    @property
    def names(self) -> tuple[str, ...]:
        return default_names(self.values.shape[1])


@dataclass(frozen=True, eq=False)
class SeriesEstimate:
    """The answer of a method for a series."""

    graph: Bools  # (L + 1, P, P), [lag, j, k]
    scores: Floats  # (L + 1, P, P), the larger the surer
    probabilities: Floats | None = None  # (L + 1, P, P), where the method states any
    seconds: float = math.nan
    confounding: Floats | None = None  # (P, P) at lag 0


@dataclass(frozen=True)
class Family:
    """A distribution of series. Ranges are drawn from, both ends included."""

    name: str
    about: str
    variables: tuple[int, int] = (5, 8)
    steps: tuple[int, int] = (300, 1000)
    lags: tuple[int, int] = (1, 3)
    mechanisms: tuple[str, ...] = ("linear",)
    noise: tuple[str, ...] = ("normal",)
    contemporaneous: bool = True
    hidden: int = 0
    missing: float = 0.0
    units: int = 1
    memory: tuple[float, float] = (0.2, 0.7)  # coefficient of a variable on its own past
    walks: float = 0.0  # share of variables that are random walks
    drifting: float = 0.0  # share of variables with a trend
    seasonal: float = 0.0  # share of variables with a season

    def task(self, index: int, *, development: bool = False) -> SeriesTask:
        """Task number `index`, from 0."""
        half = "development" if development else "report"
        identity = f"causal-arrow series 1/{half}/{self.name}/{index}"
        return draw_task(self, np.random.default_rng(seed_of(identity)))


def draw_task(family: Family, random: np.random.Generator) -> SeriesTask:
    """A random task of a family."""
    variables = int(random.integers(*family.variables, endpoint=True))
    steps = int(random.integers(*family.steps, endpoint=True))
    process = draw_process(family, variables, random)
    hidden = family.hidden
    values = process.draw(steps, random, family.units)[:, :, hidden:]
    if family.units > 1:  # units differ in level
        values = values + random.normal(scale=1.0, size=(family.units, 1, variables)) * values.std(axis=(0, 1))
    units = np.repeat(np.arange(family.units), steps) if family.units > 1 else None
    table = values.reshape(-1, variables)
    if family.missing:
        table = np.where(random.random(table.shape) < family.missing, np.nan, table)
    graph = process.window
    confounded = np.zeros((variables, variables), dtype=bool)
    for cause in range(hidden):
        touched = np.asarray(graph[:, cause, hidden:].any(axis=0))
        confounded |= touched[:, None] & touched & ~np.eye(variables, dtype=bool)
    return SeriesTask(
        table, units, graph[:, hidden:, hidden:], family.contemporaneous, process, confounded if hidden else None
    )


def draw_process(family: Family, variables: int, random: np.random.Generator) -> Process:
    """Random stable equations of a family, the variables in random order."""
    total = family.hidden + variables
    lags = int(random.integers(*family.lags, endpoint=True))
    while True:
        edges = _edges(family, variables, lags, random)
        if _largest_root([edge for edge in edges if abs(edge.coefficient) < 1], total, lags) < MAX_ROOT:
            break

    def some(share: float) -> Bools:
        chosen = np.zeros(total, dtype=bool)
        count = max(1, round(share * variables)) if share else 0
        chosen[family.hidden + random.choice(variables, size=count, replace=False)] = True
        return chosen

    steps = family.steps[1]
    sign = random.choice([-1.0, 1.0], size=total)
    drift = np.where(some(family.drifting), sign * random.uniform(2.0, 5.0, size=total) / steps, 0.0)
    season = np.where(some(family.seasonal), random.uniform(0.5, 1.5, size=total), 0.0)
    scales = random.uniform(0.5, 1.5, size=total)
    return Process(tuple(edges), total, lags, family.hidden, str(random.choice(family.noise)), scales, drift, season)


def _edges(family: Family, variables: int, lags: int, random: np.random.Generator) -> list[Edge]:
    """Edges of random equations: own past, about one other cause in the past, and about half a cause at lag 0."""
    hidden, total = family.hidden, family.hidden + variables
    walks = np.zeros(total, dtype=bool)
    if family.walks:
        count = max(1, round(family.walks * variables))
        walks[hidden + random.choice(variables, size=count, replace=False)] = True
    edges = []

    def coefficient() -> float:
        return float(random.uniform(0.2, 0.6) * random.choice([-1.0, 1.0]))

    for k in range(total):
        if walks[k]:
            edges.append(Edge(1, k, k, 1.0))
        elif k < hidden or random.random() < 0.8:
            edges.append(Edge(1, k, k, float(random.uniform(*family.memory))))
    free = [(j, k) for j in range(hidden, total) for k in range(hidden, total) if j != k and not walks[k]]
    count = min(len(free), int(random.binomial(2 * variables, 0.6)))
    for index in random.choice(len(free), size=count, replace=False) if free else ():
        j, k = free[index]
        lag = int(random.integers(1, lags, endpoint=True))
        edges.append(Edge(lag, j, k, coefficient(), str(random.choice(family.mechanisms))))
    if lags not in {edge.lag for edge in edges} and free:
        j, k = free[int(random.integers(len(free)))]
        edges.append(Edge(lags, j, k, coefficient(), str(random.choice(family.mechanisms))))
    if family.contemporaneous:
        order = hidden + random.permutation(variables)
        pairs = [(j, k) for i, j in enumerate(order) for k in order[i + 1 :] if not walks[k]]
        count = min(len(pairs), int(random.binomial(variables, 0.6)))
        for index in random.choice(len(pairs), size=count, replace=False) if pairs else ():
            j, k = pairs[index]
            edges.append(Edge(0, int(j), int(k), coefficient(), str(random.choice(family.mechanisms))))
    for cause in range(hidden):
        touched = hidden + random.choice(variables, size=min(variables, 3), replace=False)
        edges += [Edge(int(random.integers(0, 2)), cause, int(k), coefficient() * 1.5) for k in touched if not walks[k]]
    return edges


def _largest_root(edges: list[Edge], total: int, lags: int) -> float:
    """The largest root of the companion matrix; a mechanism counts with the slope 1."""
    matrices = np.zeros((lags + 1, total, total))
    for edge in edges:
        matrices[edge.lag, edge.effect, edge.cause] += edge.coefficient
    reduced = np.linalg.solve(np.eye(total) - matrices[0], matrices[1:].transpose(1, 0, 2).reshape(total, -1))
    companion = np.eye(lags * total, k=-total)
    companion[:total] = reduced
    return float(np.abs(np.linalg.eigvals(companion)).max())


FAMILIES: Mapping[str, Family] = {
    family.name: family
    for family in (
        Family("linear-normal", "linear, normal noise"),
        Family("linear-laplace", "linear, Laplace noise", noise=("laplace",)),
        Family("linear-lagged", "linear, no edges at lag 0, 10 variables", (10, 10), contemporaneous=False),
        Family("nonlinear", "smooth functions, three kinds of noise", mechanisms=NONLINEAR, noise=ALL_NOISES),
        Family("nonlinear-lagged", "smooth functions, no edges at lag 0", mechanisms=NONLINEAR, contemporaneous=False),
        Family("hidden", "linear, two hidden drivers of three variables each", noise=("normal", "laplace"), hidden=2),
        Family("missing", "linear, a tenth of the cells missing", noise=("normal", "laplace"), missing=0.1),
        Family("panel", "50 units of 20 steps, whose levels differ", steps=(20, 20), lags=(1, 2), units=50),
        Family("trend", "linear, trends in half of the variables", drifting=0.5),
        Family("random-walk", "linear, random walks among the causes", walks=0.3),
        Family("season", "linear, a season of 12 steps in half of the variables", seasonal=0.5),
        Family("autocorrelated", "linear, strong memory", memory=(0.8, 0.93)),
        Family("short", "100 steps", steps=(100, 100), lags=(1, 2), noise=("normal", "laplace")),
        Family("long", "5,000 steps, mixed functions", steps=(5000, 5000), mechanisms=("linear", *NONLINEAR)),
        Family("wide", "30 variables, 500 steps", (30, 30), (500, 500), (1, 2), noise=("normal", "laplace")),
    )
}


# CDML: 80 small nonlinear systems without edges at lag 0, in files `*_data.csv` and `*_target.csv`

SLICE = re.compile(r"(?P<name>.+)_t(?:-(?P<lag>\d+))?")


def cdml_tasks(folder: Path) -> Iterator[SeriesTask]:
    """The tasks of a folder, by name of file: a series, and its graph as [cause, effect] with names like X1_t-2."""
    import pandas as pd

    files = sorted(folder.glob("*_data.csv"))
    if not files:
        raise BenchmarkError(f"Expected files *_data.csv and *_target.csv in {folder}, found none.")
    for file in files:
        table = pd.read_csv(file)
        edges = pd.read_csv(file.with_name(file.name.replace("_data.csv", "_target.csv")), index_col=0)
        graph = window_of(edges.to_numpy(), list(edges.index), list(table))
        yield SeriesTask(table.to_numpy(dtype=float), None, graph, False)


def window_of(edges: NDArray[np.float64], labels: Sequence[str], names: Sequence[str]) -> NDArray[np.bool_]:
    """The window graph [lag, j, k] from a matrix [cause, effect] over slices of variables. Its effects are at lag 0."""
    slices = [SLICE.fullmatch(label) for label in labels]
    if any(found is None or found["name"] not in names for found in slices):
        raise BenchmarkError(f"Expected labels like {names[0]}_t-1 for the columns of the series, got {labels[:3]}.")
    where = [(names.index(found["name"]), int(found["lag"] or 0)) for found in slices if found is not None]
    graph = np.zeros((max(lag for _, lag in where) + 1, len(names), len(names)), dtype=bool)
    for row, (cause, lag) in enumerate(where):
        for column, (effect, at) in enumerate(where):
            if at == 0:
                graph[lag, cause, effect] = edges[row, column] != 0
    return graph
