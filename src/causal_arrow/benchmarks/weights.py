"""Compare weights on benchmark rows in minutes: `python -m causal_arrow.benchmarks WEIGHTS ... [--rows SUITE/ROW ...]`.

All cores draw datasets while the network works on a GPU, where there is one. Needs torch, numpy and safetensors alone,
so that weights can be judged on the machine that trains them. Runtimes, other methods and records for a report are the
business of `causal-arrow benchmark`; the datasets and the numbers are the same.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context, parent_process

import torch

from causal_arrow.benchmarks.datasets import Dataset
from causal_arrow.benchmarks.evaluate import usable_cores
from causal_arrow.benchmarks.measures import FURTHER, compare_twins
from causal_arrow.benchmarks.methods.arrow import infer
from causal_arrow.benchmarks.methods.protocol import Observed
from causal_arrow.benchmarks.suites import Row, rows_named, suite
from causal_arrow.benchmarks.summaries import MEASURES, Estimate
from causal_arrow.errors import ArrowError
from causal_arrow.graphs import metrics
from causal_arrow.network.checkpoint import load_model
from causal_arrow.network.devices import resolve_device
from causal_arrow.network.model import ArrowModel

SHOWN = ("nshd", "f1", "ap", "skeleton_f1", "orientation_accuracy")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m causal_arrow.benchmarks", description=__doc__.split("\n")[0])
    parser.add_argument("weights", nargs="+", help="a folder, a safetensors file, or a bundled name")
    parser.add_argument(
        "--rows", nargs="+", default=["networks", "herman", "sachs"], help="SUITE or SUITE/ROW [networks herman sachs]"
    )
    parser.add_argument("--datasets", type=int, default=100, help="datasets per row [100]")
    parser.add_argument("--processes", type=int, default=usable_cores(), help="that draw datasets [one per core]")
    parser.add_argument("--device", default="auto", help="cpu, cuda, or auto [auto]")
    options = parser.parse_args(arguments)
    try:
        device = resolve_device(options.device)
        rows = [row for name in options.rows for row in rows_named(name)]
        models = {name: load_model(name, device).eval() for name in options.weights}
    except ArrowError as error:
        print(error, file=sys.stderr)
        return 2
    names = [f"{row.suite}/{row.name}" for row in rows]
    widths = max(map(len, names)), max(map(len, models))
    shown = measures_to_show(rows)
    print(_line("row", "weights", [MEASURES[name].title for name in shown], widths))
    for row, datasets in drawn(rows, options.datasets, options.processes):
        for name, model in models.items():
            measures = [judged(model, dataset, suite(row.suite).further_measures) for dataset in datasets]
            estimates = [Estimate.of(each.get(measure, math.nan) for each in measures) for measure in shown]
            print(_line(f"{row.suite}/{row.name}", name, [_cell(one) for one in estimates], widths), flush=True)
    return 0


def measures_to_show(rows: Sequence[Row]) -> list[str]:
    """The usual measures, and those that the suites of these rows add to them."""
    added = [name for row in rows for name in (*suite(row.suite).further_measures, *suite(row.suite).shown)]
    return list(dict.fromkeys([*SHOWN, *(name for name in added if name != "seconds")]))


def _line(row: str, weights: str, cells: Sequence[str], widths: tuple[int, int]) -> str:
    return f"{row:<{widths[0]}}  {weights:<{widths[1]}}  " + "  ".join(f"{cell:>20}" for cell in cells)


def _cell(estimate: Estimate) -> str:
    error = "–" if math.isnan(estimate.standard_error) else f"{estimate.standard_error:.3f}"
    return f"{estimate.mean:.3f} ({error})"


def drawn(rows: Sequence[Row], count: int, processes: int) -> Iterator[tuple[Row, list[Dataset]]]:
    """Each row with its first `count` datasets, or as many as it has."""
    # Forked, a process would inherit the state of a GPU that it must not touch.
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn"), initializer=_end_with_parent) as pool:
        waiting = [
            pool.map(_draw, [(row.suite, row.name, index) for index in range(_available(row, count))], chunksize=4)
            for row in rows
        ]
        for row, datasets in zip(rows, waiting, strict=True):
            yield row, list(datasets)


def _available(row: Row, count: int) -> int:
    return count if row.distinct_datasets is None else min(count, row.distinct_datasets)


def _end_with_parent() -> None:
    """End this process when the one that started it is gone, killed or not: nobody waits for its datasets."""
    parent = parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _draw(place: tuple[str, str, int]) -> Dataset:
    suite_name, row_name, index = place
    torch.set_num_threads(1)
    return suite(suite_name).row(row_name).dataset(index)


def judged(model: ArrowModel, dataset: Dataset, further: Sequence[str] = ()) -> dict[str, float]:
    """All measures of the most probable graph and of the edge probabilities, and further ones of a suite."""
    answer = infer(model, Observed(dataset.table, dataset.intervened))
    if dataset.twin is not None:
        return compare_twins(dataset, answer, infer(model, Observed(dataset.twin.table, dataset.twin.intervened)))
    measures = metrics.evaluate(dataset.adjacency, answer.adjacency, scores=answer.scores)
    return {**measures, **{name: FURTHER[name](dataset, answer) for name in further}}
