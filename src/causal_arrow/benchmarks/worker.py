"""`python -m causal_arrow.benchmarks.worker`: the process in which methods run, one dataset at a time, on one core.

`evaluate.py` starts it and talks to it in JSON lines. In comes a job, out go {"event": "started"} when the method
begins, {"event": "answered"} when it is done, and {"event": "finished", ...} with the result. A process of its own can
be killed when time is up, and takes nothing with it when it crashes.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import threading
import zlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np

from causal_arrow.benchmarks.datasets import Dataset, FloatArray
from causal_arrow.benchmarks.effects import (
    EffectEstimates,
    EffectsDataset,
    EffectTask,
    effect_measures,
    effect_task,
)
from causal_arrow.benchmarks.experiments import (
    Course,
    ExperimentsDataset,
    ExperimentTask,
    experiment_measures,
    experiment_task,
)
from causal_arrow.benchmarks.measures import FURTHER, compare_twins
from causal_arrow.benchmarks.methods import Estimate, Method, MethodOptions, Observed, prepare
from causal_arrow.benchmarks.records import table_to_lists
from causal_arrow.benchmarks.suites import suite
from causal_arrow.discovery.jobs import Say, run_job
from causal_arrow.errors import BenchmarkError
from causal_arrow.graphs import calibration, metrics


def main() -> None:
    """Work until standard input ends."""
    # Packages print what they like; the lines of the conversation go out on a channel of their own.
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)

    def say(reply: dict[str, Any]) -> None:
        replies.write(json.dumps(reply) + "\n")
        replies.flush()

    jobs: SimpleQueue[dict[str, Any]] = SimpleQueue()

    def listen() -> None:
        for line in sys.stdin:
            jobs.put(json.loads(line))
        os._exit(0)  # whoever asked is gone; what is being computed is for nobody

    threading.Thread(target=listen, daemon=True).start()
    while True:
        say({"event": "finished", **run_job(jobs.get(), say)})


def judge_method(job: Mapping[str, Any], say: Say) -> dict[str, Any]:
    """One method on one dataset, and how good its answer is. A job of the kind "benchmark"."""
    dataset = _dataset(job["suite"], job["row"], job["index"])
    method, solve = _started(job["method"], json.dumps(job["options"]), suite(job["suite"]).judged_by)
    shown = what_a_method_sees(dataset, method)
    seed = [dataset.details["seed"], zlib.crc32(job["method"].partition(":")[0].encode())]
    say({"event": "started"})
    answer = solve(shown, np.random.default_rng(seed))
    if dataset.twin is not None:
        answer_for_twin = solve(what_a_method_sees(dataset.twin, method), np.random.default_rng(seed))
    say({"event": "answered"})
    described = {"dataset": dataset_record(dataset)}
    tells = method.reads_tables or not isinstance(answer, Estimate)
    if reading := answer.reading if tells else _reading_of_numbers(dataset, method):
        described["reading"] = dict(reading)
    if isinstance(dataset, EffectsDataset):
        return {**described, **_result(answer, effect_measures(dataset.questions, answer.effects))}
    if isinstance(dataset, ExperimentsDataset):
        return {**described, **_result(answer, experiment_measures(dataset.adjacency, answer.graphs))}
    if dataset.twin is not None:
        return {**described, **_result(answer, compare_twins(dataset, answer, answer_for_twin))}
    return {**described, **measure(dataset, answer, suite(job["suite"]).further_measures)}


def what_a_method_sees(dataset: Dataset, method: Method) -> FloatArray | Observed | EffectTask | ExperimentTask:
    """The truth for an oracle, everything but the truth for a method that reads tables, else complete numbers."""
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


def _reading_of_numbers(dataset: Dataset, method: Method) -> dict[str, str]:
    return {} if method.is_oracle else Observed(dataset.table, dataset.intervened).as_numbers


def measure(dataset: Dataset, answer: Estimate, further: Sequence[str] = ()) -> dict[str, Any]:
    """The part of a record that tells how good an answer is, with further measures of the suite."""
    truth, probabilities = dataset.adjacency, answer.probabilities
    measures = metrics.evaluate(truth, answer.adjacency, scores=answer.scores, probabilities=probabilities)
    result = _result(answer, {**measures, **{name: FURTHER[name](dataset, answer) for name in further}})
    if probabilities is not None:
        floor = metrics.CALIBRATION_FLOOR
        result["reliability"] = table_to_lists(metrics.reliability_of(truth, probabilities))
        result["reliability_above_floor"] = table_to_lists(metrics.reliability_of(truth, probabilities, floor=floor))
        result["adjacencies"] = table_to_lists(calibration.adjacency_reliability(truth, probabilities))
        result["directions"] = table_to_lists(calibration.direction_reliability(truth, probabilities))
    if answer.ancestors is not None:
        result["ancestors"] = table_to_lists(calibration.ancestor_reliability(truth, answer.ancestors))
    return result


def _result(answer: Estimate | EffectEstimates | Course, measures: Mapping[str, float]) -> dict[str, Any]:
    return {
        "seconds": answer.seconds,
        "measures": {name: value if np.isfinite(value) else None for name, value in measures.items()},
    }


def dataset_record(dataset: Dataset) -> dict[str, Any]:
    """What a record says of its dataset, with a checksum of the graph: equal where methods had the same dataset."""
    checksum = hashlib.sha256(np.packbits(dataset.adjacency).tobytes()).hexdigest()[:12]
    return {**dataset.details, "graph_checksum": checksum}


@lru_cache(maxsize=2)
def _dataset(suite_name: str, row_name: str, index: int) -> Dataset:
    return suite(suite_name).row(row_name).dataset(index)


@lru_cache
def _started(name: str, options_json: str, judged_by: str) -> tuple[Method, Any]:
    method = prepare(name, options_from_json(json.loads(options_json)), judged_by)
    return method, method.start()


def options_to_json(options: MethodOptions) -> dict[str, str | None]:
    """The options as a job carries them."""
    return {
        "weights": options.weights,
        "avici_weights": None if options.avici_weights is None else str(options.avici_weights),
        "environments": None if options.environments is None else str(options.environments),
        "device": options.device,
        "scale": options.scale,
    }


def options_from_json(content: dict[str, str | None]) -> MethodOptions:
    """The options `options_to_json` wrote."""

    def path(name: str) -> Path | None:
        text = content[name]
        return None if text is None else Path(text)

    return MethodOptions(
        content["weights"],
        path("avici_weights"),
        path("environments"),
        device=content["device"] or "cpu",
        scale=content["scale"] or "auto",
    )


if __name__ == "__main__":
    main()
