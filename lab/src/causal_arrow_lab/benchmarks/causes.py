"""The share of direct causes that `causes_of` keeps, in simulated tables with more columns than the network reads.

    python -m causal_arrow_lab.benchmarks.causes --tables 20
    python -m causal_arrow_lab.benchmarks.causes --rows 1000 --columns 20000 --tables 5

Each table has modules of 100 variables. A variable has about two parents, most of them in its module, with effects that
are lines, bends, kinks or roots; its noise explains a fifth to four fifths of it. The outcome has two to
eight parents. The partial correlation of a parent with the outcome is given the other parents, over 5,000 further rows.
"""

# N rows, P columns

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from causal_arrow import causes_of
from causal_arrow_lab.benchmarks.datasets import NOISES
from causal_arrow_lab.programs import peak_memory_gb, run_program

Floats = NDArray[np.float64]

MODULE = 100
FURTHER_ROWS = 5000
STRONG = 0.2
"""The partial correlation from which on a direct cause counts."""
MECHANISMS: dict[str, Callable[[Floats], Floats]] = {
    "line": lambda x: x,
    "bend": np.tanh,
    "kink": lambda x: np.where(x > 0, x, 0.2 * x),
    "root": lambda x: np.sign(x) * np.sqrt(np.abs(x)),
}
KINDS_OF_NOISE = ("normal", "laplace", "uniform")


@dataclass(frozen=True)
class Simulated:
    """A table, its outcome, the direct causes of that, and their partial correlations."""

    table: pd.DataFrame
    outcome: str
    correlations: dict[str, float]


def simulate(rows: int, columns: int, seed: int) -> Simulated:
    """A table whose columns are in random order."""
    random = np.random.default_rng(seed)
    outcome = int(random.integers(columns // 2, columns))
    parents: list[NDArray[np.intp]] = []
    for child in range(columns):
        wanted = int(random.integers(2, 9)) if child == outcome else int(random.poisson(2))
        near = np.arange(child - child % MODULE, child)
        picked = {
            int(random.choice(near)) if len(near) and random.random() < 0.7 else int(random.integers(child))
            for _ in range(wanted if child else 0)
        }
        parents.append(np.array(sorted(picked), dtype=np.intp))
    how = [_Mechanism.drawn(len(each), random) for each in parents]
    everything = range(columns)
    values = _rows(parents, how, everything, rows, random)
    ancestors = {outcome}
    for child in reversed(range(outcome + 1)):
        if child in ancestors:
            ancestors.update(parents[child].tolist())
    more = _rows(parents, how, sorted(ancestors), FURTHER_ROWS, random)
    names = [f"v{number}" for number in random.permutation(columns)]
    table = pd.DataFrame(values, columns=names)
    order = random.permutation(columns)
    # Partial correlations are entries of the inverse correlation matrix, scaled.
    involved = [*parents[outcome].tolist(), outcome]
    inverse = np.linalg.inv(np.corrcoef(more[:, involved], rowvar=False))
    partial = -inverse[-1] / np.sqrt(inverse[-1, -1] * inverse.diagonal())
    correlations = {names[parent]: float(value) for parent, value in zip(involved[:-1], partial, strict=False)}
    return Simulated(table.iloc[:, order], names[outcome], correlations)


@dataclass(frozen=True)
class _Mechanism:
    weights: Floats
    shapes: tuple[str, ...]
    noise: str
    noise_share: float

    @classmethod
    def drawn(cls, parents: int, random: np.random.Generator) -> _Mechanism:
        weights = random.uniform(0.4, 1.0, parents) * random.choice([-1, 1], parents)
        shapes = tuple(random.choice(list(MECHANISMS), parents).tolist())
        return cls(weights, shapes, str(random.choice(KINDS_OF_NOISE)), float(random.uniform(0.2, 0.8)))


def _rows(
    parents: list[NDArray[np.intp]],
    how: list[_Mechanism],
    wanted: Iterable[int],
    rows: int,
    random: np.random.Generator,
) -> Floats:
    """Values of the wanted variables, whose parents are wanted too; zeros elsewhere.  (N, P)"""
    values = np.zeros((rows, len(parents)), order="F")  # a column at a time
    for child in wanted:
        made, noise = how[child], NOISES[how[child].noise](random, rows)
        signal = sum(
            weight * MECHANISMS[shape](values[:, parent])
            for parent, weight, shape in zip(parents[child], made.weights, made.shapes, strict=True)
        )
        if len(parents[child]) == 0:
            values[:, child] = noise
            continue
        # The same scale for every number of rows: the spread of one sum of unit terms, not that of the sample.
        spread = math.sqrt(float(np.square(made.weights).sum()))
        share = made.noise_share
        values[:, child] = math.sqrt(1 - share) * np.asarray(signal) / spread + math.sqrt(share) * noise
    return values


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=20)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--columns", type=int, default=10_000)
    parser.add_argument("--keep", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    return run_program(parser, measure, arguments)


def measure(asked: argparse.Namespace) -> None:
    """Simulate tables, ask for the causes of one variable in each, and print what was found."""
    found, times = [], []
    strong = precise = flagged = 0
    for number in range(asked.tables):
        made = simulate(asked.rows, asked.columns, asked.seed + number)
        started, busy = time.perf_counter(), time.process_time()
        causes = causes_of(made.table, made.outcome, keep=asked.keep, progress=False)
        times.append((time.perf_counter() - started, time.process_time() - busy))
        wanted = [name for name, value in made.correlations.items() if abs(value) >= STRONG]
        answer = causes.found.answer
        joined = dict(zip(answer.names, answer.skeleton_probabilities[answer.index_of(made.outcome)], strict=True))
        probable = [name for name, p in zip(causes.names, causes.direct, strict=True) if p > 0.5]
        flagged += len(probable)
        precise += len(set(probable) & set(made.correlations))
        strong += len(wanted)
        if wanted:
            each = [(name in joined, joined.get(name, 0) > 0.5, name in probable) for name in wanted]
            found.append(np.mean(each, axis=0))
        kept = found[-1][0] if wanted else 1
        print(f"{number + 1}: {len(wanted)} causes, kept {kept:.2f}, {times[-1][0]:.1f} s", flush=True)
    print(f"{asked.tables} tables of {asked.rows:,} × {asked.columns:,}, {strong} direct causes with |ρ| ≥ {STRONG}:")
    shares = pd.DataFrame(found, columns=["kept by screening", "adjacent with p > 0.5", "a direct cause with p > 0.5"])
    for words in shares:
        print(f"  {words:<27} {shares[words].mean():.3f} ± {shares[words].sem():.3f}")
    print(f"  of {flagged} columns with p > 0.5, direct causes: {precise}")
    for words, seconds in zip(("seconds", "processor seconds"), zip(*times, strict=True), strict=True):
        print(f"  {words}: median {np.median(seconds):.1f}, most {max(seconds):.1f}")
    print(f"  memory: {peak_memory_gb():.2f} GB")


if __name__ == "__main__":
    sys.exit(main())
