"""python -m causal_arrow.discovery.many: how much it helps that tables share a pass, and that processes share the work.

Prints tables in Markdown. Passes are compared in seconds of the processor, which other programs on the machine change
little; processes are compared in seconds of the clock, in turns.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from causal_arrow.discovery.arranged import ArrangedLongTable, ArrangedTable, arrange
from causal_arrow.discovery.inference import infer, infer_together, ready_model, tables_per_pass
from causal_arrow.discovery.pipeline import Settings, discover
from causal_arrow.discovery.uncertainty import bootstrap
from causal_arrow.graphs.graph_distribution import GraphDistribution
from causal_arrow.network.bundled import DEFAULT_MODEL
from causal_arrow.tables.table import Table

SHAPES = ((100, 5), (100, 10), (200, 10), (200, 20), (500, 20))
MOST_TABLES = 64
ROUNDS = 2


def made_table(seed: int, observations: int, variables: int) -> Table:
    """Numbers with linear relations."""
    random = np.random.default_rng(seed)
    weights = np.triu(random.normal(size=(variables, variables)) * (random.random((variables, variables)) < 0.3), 1)
    values = random.normal(size=(observations, variables)) @ np.linalg.inv(np.eye(variables) - weights)
    return Table.of_numbers(values, [f"x{place + 1}" for place in range(variables)])


def print_passes(model: str) -> None:
    """Tables alone and together, one thread."""
    torch.set_num_threads(1)
    network = ready_model(model, "cpu")
    print("| observations × variables | tables per pass | alone, s per table | together | | largest difference |")
    print("|---|---|---|---|---|---|")
    for observations, variables in SHAPES:
        count = min(tables_per_pass(network, observations, variables), MOST_TABLES)
        tables = [arrange(made_table(seed, observations, variables)) for seed in range(count)]
        some = tables[:: max(1, count // 8)]

        def alone(some: list[ArrangedTable | ArrangedLongTable] = some) -> list[GraphDistribution]:
            return [infer(network, table) for table in some]

        def together(tables: list[ArrangedTable | ArrangedLongTable] = tables) -> dict[int, GraphDistribution]:
            return next(infer_together(network, tables))

        seconds = least_seconds([alone, together], time.process_time)
        each, shared = seconds[0] / len(some), seconds[1] / count
        said = together()
        places = range(0, count, max(1, count // 8))
        pairs = [
            (edge_probabilities(one), edge_probabilities(said[place]))
            for place, one in zip(places, alone(), strict=True)
        ]
        difference = max(float((one - other).abs().max()) for one, other in pairs)
        print(
            f"| {observations} × {variables} | {count} | {each:.3f} | {shared:.3f} | {each / shared:.1f}× | "
            f"{difference:.0e} |",
            flush=True,
        )


def edge_probabilities(distribution: GraphDistribution) -> torch.Tensor:
    """Probability of each directed edge.  (P, P)"""
    one = distribution.skeleton_order
    return one.skeleton_probabilities() * one.precedence_probabilities()


def print_bootstrap(model: str, resamples: int, jobs: int) -> None:
    """A bootstrap in one process and in several."""
    found = discover(made_table(0, 200, 10), Settings(model, device="cpu"))

    def with_jobs(count: int) -> Callable[[], Any]:
        random = np.random.default_rng
        return lambda: bootstrap(
            found.answer, found.network, found.table, resamples, random(0), jobs=count, progress=False
        )

    torch.set_num_threads(jobs)
    one, several = least_seconds([with_jobs(1), with_jobs(jobs)], time.perf_counter)
    print(f"\n| bootstrap of {resamples:,}, 200 × 10 | seconds |\n|---|---|")
    print(f"| one process with {jobs} threads | {one:.1f} |\n| {jobs} processes | {several:.1f} |")


def least_seconds(works: list[Callable[[], Any]], clock: Callable[[], float]) -> list[float]:
    """The least time that each takes, in turns."""
    least = [float("inf")] * len(works)
    for _ in range(ROUNDS):
        for place, work in enumerate(works):
            started = clock()
            work()
            least[place] = min(least[place], clock() - started)
    return least


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m causal_arrow.discovery.many", description=__doc__)
    parser.add_argument("--model", default=DEFAULT_MODEL)
    parser.add_argument("--resamples", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    print_passes(options.model)
    print_bootstrap(options.model, options.resamples, options.jobs)


if __name__ == "__main__":
    main()
