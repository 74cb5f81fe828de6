"""Count the mistakes in Arrow's graphs by kind: `python docs/tools/mistakes.py --rows SUITE/ROW ...`.

Edges that a table cannot show, directions, and false adjacencies need different remedies. Prints means over the
datasets of each row.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import numpy as np

from causal_arrow.discovery.effects.falsification import chi_square_tail
from causal_arrow.graphs import dag
from causal_arrow.network import DEFAULT_MODEL
from causal_arrow.network.checkpoint import load_model
from causal_arrow.tables.report import groups_of_copies, inspect_table
from causal_arrow_lab.benchmarks.datasets import BoolArray, Dataset, FloatArray
from causal_arrow_lab.benchmarks.methods.arrow import infer
from causal_arrow_lab.benchmarks.methods.protocol import Estimate, Observed
from causal_arrow_lab.benchmarks.suites import rows_named
from causal_arrow_lab.network.devices import resolve_device
from causal_arrow_lab.programs import run_program

# N observations, P variables

SURE = 0.9  # a direction is sure if it has this probability, given that there is an edge
SHOWS = 0.001  # a pair shows a dependence if a χ² test without any condition has a smaller p-value
BINS = 4  # numbers are tested by quarters

KINDS = {
    "edges": "true edges",
    "right": "found",
    "reversed": "reversed",
    "sure": "of these sure",
    "missed": "missed",
    "unseen": "of these unseen",
    "false": "false",
    "copies": "of a copy",
    "lineage": "ancestor",
    "siblings": "shared cause",
}
"""Each kind and its heading. The last three are kinds of false adjacencies, counted as the first that applies."""


def count_mistakes(dataset: Dataset, answer: Estimate) -> dict[str, int]:
    """Count the edges of each of the KINDS."""
    truth, found = dataset.adjacency, answer.adjacency
    joined, shown = truth | truth.T, found | found.T
    turned, missed = truth & ~found & shown, truth & ~shown
    both = answer.scores + answer.scores.T
    sure = SURE * both < answer.scores.T
    wrong = np.triu(shown & ~joined)
    as_a_copy, lineage = _edges_of_copies(dataset), dag.transitive_closure(truth)
    kinds = {"copies": as_a_copy, "lineage": lineage | lineage.T, "siblings": (truth.T.astype(int) @ truth) > 0}
    counts = {
        "edges": truth,
        "right": truth & found,
        "reversed": turned,
        "sure": turned & sure,
        "missed": missed,
        "unseen": missed & (dependences(dataset.data) > SHOWS),
        "false": wrong,
    }
    left = wrong
    for name, kind in kinds.items():
        counts[name] = left & kind
        left = left & ~kind
    return {name: int(where.sum()) for name, where in counts.items()}


def dependences(data: FloatArray) -> FloatArray:
    """P-values of χ² tests of all pairs, on observations without missing cells in either.  (P, P)"""
    columns = [_coarse(column) for column in data.T]
    values = np.ones((len(columns), len(columns)))
    for j, first in enumerate(columns):
        for k, second in enumerate(columns[:j]):
            both = (first >= 0) & (second >= 0)
            counts = np.zeros((first.max() + 1, second.max() + 1))
            np.add.at(counts, (first[both], second[both]), 1)
            counts = counts[counts.any(axis=1)][:, counts.any(axis=0)]
            freedom = (counts.shape[0] - 1) * (counts.shape[1] - 1)
            if not freedom:
                continue
            expected = counts.sum(axis=1, keepdims=True) * counts.sum(axis=0) / counts.sum()
            statistic = ((counts - expected) ** 2 / expected).sum()
            values[j, k] = values[k, j] = chi_square_tail(freedom, np.array([statistic]))[0]
    return values


def _coarse(column: FloatArray) -> np.ndarray:
    """Codes 0, 1, ... of the values, or of quarters if there are many; −1 for missing cells.  (N,)"""
    seen = ~np.isnan(column)
    codes = np.full(len(column), -1)
    distinct, inverse = np.unique(column[seen], return_inverse=True)
    if len(distinct) > 5 * BINS:
        inverse = np.searchsorted(np.quantile(column[seen], np.arange(1, BINS) / BINS), column[seen])
    codes[seen] = inverse
    return codes


def _edges_of_copies(dataset: Dataset) -> BoolArray:
    """Pairs that are truly adjacent if a column may be replaced by its copies.  (P, P)"""
    same = np.eye(len(dataset.names), dtype=bool)
    for group in groups_of_copies(inspect_table(dataset.table).findings):
        members = [dataset.names.index(name) for name in group]
        same[np.ix_(members, members)] = True
    joined = (dataset.adjacency | dataset.adjacency.T).astype(int)
    return np.asarray((same.astype(int) @ joined @ same) > 0)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return the exit status."""
    summary = __doc__.split("\n")[0]
    parser = argparse.ArgumentParser(description=summary)
    parser.add_argument(
        "weights", nargs="?", default=DEFAULT_MODEL, help=f"a folder, a file or a name [{DEFAULT_MODEL}]"
    )
    parser.add_argument("--rows", nargs="+", default=["networks"], help="SUITE or SUITE/ROW [networks]")
    parser.add_argument("--datasets", type=int, default=10, help="datasets per row [10]")
    parser.add_argument("--device", default="auto", help="cpu, cuda, or auto [auto]")
    return run_program(parser, run, arguments)


def run(options: argparse.Namespace) -> None:
    """Print the means of each row."""
    rows = [row for name in options.rows for row in rows_named(name)]
    model = load_model(options.weights, str(resolve_device(options.device)))
    width = max(len(f"{row.suite}/{row.name}") for row in rows)
    print(f"{'':<{width}}" + "".join(f"{title:>{len(title) + 2}}" for title in KINDS.values()))
    for row in rows:
        counted = []
        for index in range(min(options.datasets, row.distinct_datasets or options.datasets)):
            dataset = row.dataset(index)
            counted.append(count_mistakes(dataset, infer(model, Observed(dataset.table, dataset.intervened))))
        means = {name: np.mean([one[name] for one in counted]) for name in KINDS}
        cells = "".join(f"{means[name]:>{len(title) + 2}.1f}" for name, title in KINDS.items())
        print(f"{f'{row.suite}/{row.name}':<{width}}{cells}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
