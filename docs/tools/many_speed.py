"""python docs/tools/many_speed.py: how much faster tables are that share a pass, and resamples that processes share.

Prints tables in Markdown. Passes are timed in processor seconds, which depend little on other programs; processes in
seconds of the clock.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from causal_arrow.discovery.arranged import arrange
from causal_arrow.discovery.inference import infer, infer_together, ready_model, tables_per_pass
from causal_arrow.discovery.pipeline import discover
from causal_arrow.discovery.settings import Settings
from causal_arrow.network import DEFAULT_MODEL, Network
from causal_arrow.network.forward import set_thread_count
from causal_arrow.tables.table import Table

SHAPES = ((100, 5), (100, 10), (200, 10), (200, 20), (500, 20))
MAX_TABLES = 64
ROUNDS = 2


def linear_table(seed: int, rows: int, variables: int) -> Table:
    """Numbers with linear relations."""
    random = np.random.default_rng(seed)
    weights = np.triu(random.normal(size=(variables, variables)) * (random.random((variables, variables)) < 0.3), 1)
    values = random.normal(size=(rows, variables)) @ np.linalg.inv(np.eye(variables) - weights)
    return Table.of_numbers(values, [f"x{index + 1}" for index in range(variables)])


def print_pass(network: Network, rows: int, variables: int) -> None:
    """Time tables alone and together."""
    count = min(tables_per_pass(network, rows, variables), MAX_TABLES)
    tables = [arrange(linear_table(seed, rows, variables)) for seed in range(count)]
    some = tables[:: max(1, count // 8)]
    works = [lambda: [infer(network, table) for table in some], lambda: list(infer_together(network, tables))]
    one_by_one, shared = fastest(works, time.process_time)
    each, less = one_by_one / len(some), shared / count
    print(f"| {rows} × {variables} | {count} | {each:.3f} | {less:.3f} | {each / less:.1f}× |", flush=True)


def print_bootstrap(model: str, resamples: int, jobs: int) -> None:
    """Time a bootstrap in one process and in several."""
    found = discover(linear_table(0, 200, 10), Settings(model, device="cpu"))

    def shared_by(count: int) -> Callable[[], Any]:
        return lambda: found.stability(resamples, jobs=count, progress=False)

    set_thread_count(jobs)
    one, several = fastest([shared_by(1), shared_by(jobs)], time.perf_counter)
    print(f"\n| Bootstrap of {resamples:,}, 200 × 10 | Seconds |\n|---|---|")
    print(f"| one process with {jobs} threads | {one:.1f} |\n| {jobs} processes | {several:.1f} |")


def fastest(works: Sequence[Callable[[], Any]], clock: Callable[[], float]) -> list[float]:
    """The shortest time of each piece of work, taken in alternation."""
    shortest = [float("inf")] * len(works)
    for _ in range(ROUNDS):
        for index, work in enumerate(works):
            started = clock()
            work()
            shortest[index] = min(shortest[index], clock() - started)
    return shortest


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python docs/tools/many_speed.py", description=__doc__)
    parser.add_argument("--model", default=DEFAULT_MODEL)
    parser.add_argument("--resamples", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    print("| Rows × variables | Tables per pass | Alone, s per table | Together | Gain |")
    print("|---|---|---|---|---|")
    set_thread_count(1)
    for shape in SHAPES:
        print_pass(ready_model(options.model, "cpu"), *shape)
    print_bootstrap(options.model, options.resamples, options.jobs)
