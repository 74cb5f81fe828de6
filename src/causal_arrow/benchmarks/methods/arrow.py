"""Arrow with any weights: bundled ones by name, a folder or file of weights, or a published ArrowFM checkpoint."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from causal_arrow._version import __version__
from causal_arrow.benchmarks.datasets import FloatArray
from causal_arrow.benchmarks.methods.protocol import (
    Estimate,
    Method,
    MethodOptions,
    Observed,
    Solve,
    complete,
    file_checksum,
    timed,
)
from causal_arrow.errors import BenchmarkError, check_choice
from causal_arrow.network.bundled import DEFAULT_MODEL
from causal_arrow.tables.scales import SCALES
from causal_arrow.tables.table import Table

ANCESTOR_GRAPHS = 200
"""Drawn from the distribution to see which directed paths there are; not part of the seconds."""

if TYPE_CHECKING:
    from causal_arrow.discovery.answer import Answer
    from causal_arrow.network.model import ArrowModel


def prepare_arrow(
    argument: str, options: MethodOptions, *, name: str, rule: str, told_of_experiments: bool = True
) -> Method:
    """Arrow with the weights after the colon, else those of the options, else the bundled ones."""
    check_choice("--scale", options.scale, SCALES)
    source, label, settings = arrow_settings(argument, options)
    return Method(
        name=f"{name}:{label}" if argument else name,
        settings={
            **settings,
            "rule": rule,
            # Said where it is not what everyone gets, so that older records stay what they were.
            **({"device": options.device} if options.device != "cpu" else {}),
            **({"scale": options.scale} if options.scale != "auto" else {}),
        },
        versions={"causal-arrow": __version__},
        start=lambda: start_arrow(source, rule, options.device, options.scale, told_of_experiments),
        reads_tables=True,
    )


def arrow_settings(argument: str, options: MethodOptions) -> tuple[str, str, dict[str, str]]:
    """Where the weights are, what to call them, and what a record says of them."""
    source = argument or options.weights or DEFAULT_MODEL
    label = weights_label(source)
    return source, label, {"weights": label, "weights_checksum": file_checksum(_weights_file(source))}


def weights_label(source: str) -> str:
    """What to call weights in records, which travel: no path, only the last name in it that says something."""
    names = [part for part in Path(source).parts if Path(part).stem not in ("weights", "model")]
    return names[-1] if names else source


def start_arrow(
    source: str, rule: str, device: str = "cpu", scale: str = "auto", told_of_experiments: bool = True
) -> Solve:
    """Loads the weights, and answers a small table once so that no dataset pays for what torch does the first time."""
    import torch

    from causal_arrow.discovery.inference import ready_model

    torch.set_num_threads(1)
    model = ready_model(source, device)

    def solve(data: FloatArray | Observed, generator: np.random.Generator) -> Estimate:
        estimate = infer(model, Observed.of(data), rule, scale, told_of_experiments)
        # The rule decides on the graph alone. The probabilities are those of the plain method, and judged there.
        return estimate if rule == "map" else replace(estimate, probabilities=None, ancestors=None)

    solve(np.random.default_rng(0).standard_normal((20, 3)), np.random.default_rng(0))
    return solve


def infer(
    model: ArrowModel,
    observed: Observed,
    rule: str = "map",
    scale: str = "auto",
    told_of_experiments: bool = True,
) -> Estimate:
    """A graph by the rule, and the probability of every edge, by a model on whatever device.

    What users get, by the same pipeline: `discover` does all the work.
    """
    import torch

    from causal_arrow.discovery.pipeline import Settings, discover
    from causal_arrow.discovery.uncertainty import ancestor_frequencies

    on_cpu = next(model.parameters()).device.type == "cpu"

    def work() -> tuple[Answer, dict[str, str]]:
        unread = frozenset() if told_of_experiments else frozenset({"intervened"})
        table, reading = as_far_as_it_reads(observed, model.encoder.reads - unread)
        settings = Settings(model=model, decode=rule, scale=scale, precision="float32")
        return discover(table, settings).answer, reading

    (answer, reading), seconds = timed(work, time.process_time if on_cpu else time.perf_counter)
    drawn = answer.sample(ANCESTOR_GRAPHS, torch.Generator().manual_seed(0)).graphs
    probabilities = answer.edge_probabilities
    return Estimate(
        answer.adjacency,
        probabilities,
        probabilities,
        seconds,
        answer.confounding_probabilities,
        reading or None,
        ancestor_frequencies(drawn),
    )


def as_far_as_it_reads(observed: Observed, reads: frozenset[str]) -> tuple[Table, dict[str, str]]:
    """The table for a network that reads these parts of one, and how what it does not read was put, by name.

    What a network of numbers alone can make of a table: codes of levels for categories, imputed cells, and no word of
    experiments.
    """
    table, reading = observed.table, observed.unread_by(reads)
    if not table.observed.all() and "observed" not in reads:
        reading["missing"] = "impute"
        table = complete(table, "impute")
    if "levels" not in reads:
        table = Table.of_numbers(table.values, table.names)
    return replace(table, intervened=observed.intervened if "intervened" in reads else None), reading


def _weights_file(source: str) -> Path:
    """The file that determines the answers."""
    from causal_arrow.network.checkpoint import WEIGHTS_FILE, find_model

    path = find_model(source)
    path = path / WEIGHTS_FILE if path.is_dir() else path
    if not path.is_file():
        raise BenchmarkError(f"No weights at {source!r}: expected a folder with {WEIGHTS_FILE}, or a file.")
    return path
