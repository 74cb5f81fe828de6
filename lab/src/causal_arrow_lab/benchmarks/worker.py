"""`python -m causal_arrow_lab.benchmarks.worker`: a process that runs methods, one dataset at a time, on one core.

`evaluate.py` starts it and exchanges JSON lines with it. A job comes in; {"event": "started"} goes out when the method
begins, {"event": "answered"} when it is done, and {"event": "finished", ...} with the result. A separate process can be
killed when time is up, and a crash loses nothing else.
"""

from __future__ import annotations

import hashlib
import json
import math
import zlib
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import lru_cache
from typing import Any

import numpy as np

from causal_arrow.errors import ArrowError, BenchmarkError
from causal_arrow.graphs import dag, metrics
from causal_arrow_lab.benchmarks.calibration import calibration_errors, reliabilities
from causal_arrow_lab.benchmarks.datasets import Dataset, FloatArray
from causal_arrow_lab.benchmarks.effects import (
    EffectsDataset,
    EffectTask,
    ExperimentsDataset,
    ExperimentTask,
    effect_measures,
    effect_task,
    experiment_measures,
    experiment_task,
)
from causal_arrow_lab.benchmarks.methods import Estimate, Method, MethodOptions, Observed, prepare
from causal_arrow_lab.benchmarks.methods.isolated_worker import converse, sentence_of
from causal_arrow_lab.benchmarks.suites import suite


def hidden_ap(dataset: Dataset, answer: Estimate) -> float:
    """Average precision of the pairs that share a hidden cause; nan if there are none, or no scores for them.

    Both orders of a pair count, with the same score, which does not change precision.
    """
    if dataset.confounded is None or answer.confounding is None:
        return math.nan
    return metrics.average_precision(dataset.confounded, answer.confounding)


def expected_edges(dataset: Dataset, answer: Estimate) -> float:
    """Sum of all edge probabilities; nan for a method without any."""
    return math.nan if answer.probabilities is None else float(answer.probabilities.sum())


def graph_right(dataset: Dataset, answer: Estimate) -> float:
    """1 for exactly the true graph, else 0."""
    return float(np.array_equal(dataset.adjacency, answer.adjacency))


def class_right(dataset: Dataset, answer: Estimate) -> float:
    """1 for a graph of the true Markov equivalence class, else 0."""
    return float(bool(dag.is_acyclic(answer.adjacency)) and dag.markov_equivalent(dataset.adjacency, answer.adjacency))


def right(dataset: Dataset, answer: Estimate) -> float:
    """1 if all that can be known is right: the graph, or its class if the dataset identifies no more."""
    return (class_right if dataset.details["known"] == "class" else graph_right)(dataset, answer)


FURTHER: dict[str, Callable[[Dataset, Estimate], float]] = {
    measure.__name__: measure for measure in (hidden_ap, expected_edges, graph_right, class_right, right)
}


def compare_twins(dataset: Dataset, answer: Estimate, answer_for_twin: Estimate) -> dict[str, float]:
    """Differences between the answers for a table and for its twin, on the variables that they share.

    edges_changed   pairs whose edge differs: added, removed or reversed
    share_changed   the same, divided by the edges of the first answer; nan if it has none
    largest_change  of the probability of an edge; nan for a method without any
    """
    assert dataset.twin is not None
    shared = [name for name in dataset.names if name in dataset.twin.names]
    here = np.ix_(*2 * [[dataset.names.index(name) for name in shared]])
    there = np.ix_(*2 * [[dataset.twin.names.index(name) for name in shared]])
    edges = int(answer.adjacency[here].sum())
    changed = metrics.shd(answer.adjacency[here], answer_for_twin.adjacency[there])
    largest = math.nan
    if answer.probabilities is not None and answer_for_twin.probabilities is not None:
        largest = float(np.abs(answer.probabilities[here] - answer_for_twin.probabilities[there]).max())
    return {
        "estimated_edges": float(answer.adjacency.sum()),
        "edges_changed": float(changed),
        "share_changed": changed / edges if edges else math.nan,
        "largest_change": largest,
    }


Say = Callable[[dict[str, Any]], None]


def main() -> None:
    """Work until standard input ends."""
    jobs, say = converse()
    while True:
        say({"event": "finished", **run_job(jobs.get(), say)})


def run_job(job: Mapping[str, Any], say: Say = lambda event: None) -> dict[str, Any]:
    """The result of one method on one dataset: `status` "ok" with measures, or "failed" with an `error`."""
    try:
        return {"status": "ok", **judge_method(job, say)}
    except Exception as error:
        return {"status": "failed", "error": str(error) if isinstance(error, ArrowError) else sentence_of(error)}


def judge_method(job: Mapping[str, Any], say: Say) -> dict[str, Any]:
    """Run one method on one dataset and measure its answer."""
    asked = suite(job["suite"])
    dataset = _dataset(job["suite"], job["row"], job["index"])
    method, solve = _started(job["method"], json.dumps(job["options"]), asked.judged_by)
    shown = what_a_method_sees(dataset, method)
    seed = [dataset.details["seed"], zlib.crc32(job["method"].partition(":")[0].encode())]
    say({"event": "started"})
    answer = solve(shown, np.random.default_rng(seed))
    if dataset.twin is not None:
        answer_for_twin = solve(what_a_method_sees(dataset.twin, method), np.random.default_rng(seed))
    say({"event": "answered"})
    tables = {}
    if isinstance(dataset, EffectsDataset):
        measures = effect_measures(dataset.questions, answer.effects)
    elif isinstance(dataset, ExperimentsDataset):
        measures = experiment_measures(dataset.adjacency, answer.graphs)
    elif dataset.twin is not None:
        measures = compare_twins(dataset, answer, answer_for_twin)
    else:
        measures = {
            **metrics.evaluate(dataset.adjacency, answer.adjacency, scores=answer.scores),
            **calibration_errors(dataset.adjacency, answer.probabilities),
            **{name: FURTHER[name](dataset, answer) for name in asked.further_measures},
        }
        tables = reliabilities(dataset.adjacency, answer.probabilities, answer.ancestors)
    reading = answer.reading
    if isinstance(answer, Estimate) and not method.reads_tables and not method.is_oracle:
        reading = Observed(dataset.table, dataset.intervened).as_numbers
    checksum = hashlib.sha256(np.packbits(dataset.adjacency).tobytes()).hexdigest()[:12]
    return {
        "dataset": {**dataset.details, "graph_checksum": checksum},
        **({"reading": dict(reading)} if reading else {}),
        "seconds": answer.seconds,
        "measures": {name: value if np.isfinite(value) else None for name, value in measures.items()},
        **{name: table.to_lists() for name, table in tables.items()},
    }


def what_a_method_sees(dataset: Dataset, method: Method) -> FloatArray | Observed | EffectTask | ExperimentTask:
    """The truth for an oracle, everything except the truth for a method that reads tables, else complete numbers."""
    if isinstance(dataset, EffectsDataset):
        return effect_task(dataset, with_graph=method.is_oracle)
    if isinstance(dataset, ExperimentsDataset):
        return experiment_task(dataset)
    if method.is_oracle:
        return np.asarray(dataset.adjacency, dtype=np.float64)
    if method.reads_tables:
        return Observed(dataset.table, dataset.intervened)
    if np.isnan(dataset.data).any():
        raise BenchmarkError(f"The method {method.name} cannot read missing values.")
    return np.array(dataset.data)


@lru_cache(maxsize=2)
def _dataset(suite_name: str, row_name: str, index: int) -> Dataset:
    return suite(suite_name).row(row_name).dataset(index)


@lru_cache
def _started(name: str, options_json: str, judged_by: str) -> tuple[Method, Any]:
    method = prepare(name, MethodOptions(**json.loads(options_json)), judged_by)
    return method, method.start()


def options_to_json(options: MethodOptions) -> dict[str, str | None]:
    """Convert options to JSON values for a job."""
    return {name: value if value is None else str(value) for name, value in asdict(options).items()}


if __name__ == "__main__":
    main()
