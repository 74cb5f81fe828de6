"""Arrow with any weights: a bundled name, a folder or file of weights, or a published ArrowFM checkpoint."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from causal_arrow._version import __version__
from causal_arrow.errors import BenchmarkError, check_choice
from causal_arrow.network import DEFAULT_MODEL
from causal_arrow.tables.scales import SCALES
from causal_arrow.tables.table import Table
from causal_arrow_lab.benchmarks.datasets import FloatArray
from causal_arrow_lab.benchmarks.methods.protocol import (
    Estimate,
    Method,
    MethodOptions,
    Observed,
    Solve,
    complete,
    file_checksum,
    timed,
)

ANCESTOR_GRAPHS = 200
"""Number of graphs drawn for the probabilities of directed paths; not part of the seconds."""

if TYPE_CHECKING:
    from causal_arrow.discovery.answer import Answer
    from causal_arrow.network import Network


def prepare_arrow(
    name: str,
    argument: str,
    options: MethodOptions,
    *,
    rule: str = "map",
    sees_experiments: bool = True,
    directions: str = "network",
) -> Method:
    """Prepare Arrow with the weights after the colon, else those of the options, else the bundled ones."""
    check_choice("--scale", options.scale, SCALES)
    source, name, settings = arrow_settings(name, argument)
    chosen = {"device": options.device, "scale": options.scale, "directions": directions}
    # In records only where they differ from the defaults, so that older records keep their identity.
    usual = {"device": "cpu", "scale": "auto", "directions": "network"}
    return Method(
        name,
        {**settings, "rule": rule, **{key: value for key, value in chosen.items() if value != usual[key]}},
        {"causal-arrow": __version__},
        partial(start_arrow, source, rule=rule, sees_experiments=sees_experiments, **chosen),
        reads_tables=True,
    )


def arrow_settings(name: str, argument: str) -> tuple[str, str, dict[str, str]]:
    """The source of the weights, the name of a method with them, and their entries in records."""
    source = argument or DEFAULT_MODEL
    label = weights_label(source)
    settings = {"weights": label, "weights_checksum": file_checksum(_weights_file(source))}
    return source, f"{name}:{label}" if argument else name, settings


def weights_label(source: str) -> str:
    """The label of weights in records: the last informative name of a path, because records travel."""
    names = [part for part in Path(source).parts if Path(part).stem not in ("weights", "model")]
    return names[-1] if names else source


def start_arrow(source: str, device: str, **how: Any) -> Solve:
    """Load the weights, and answer a small table, so that no dataset pays for what happens only once."""
    model = loaded(source, device)

    def solve(data: FloatArray | Observed, generator: np.random.Generator) -> Estimate:
        return infer(model, Observed.of(data), **how)

    solve(np.random.default_rng(0).standard_normal((20, 3)), np.random.default_rng(0))
    return solve


def loaded(source: str, device: str = "cpu") -> Network:
    """The network, on one thread."""
    from causal_arrow.discovery.inference import ready_model
    from causal_arrow.network.forward import set_thread_count

    set_thread_count(1)
    return ready_model(source, device)


def infer(
    model: Network,
    observed: Observed,
    rule: str = "map",
    scale: str = "auto",
    sees_experiments: bool = True,
    directions: str = "network",
) -> Estimate:
    """Answer a table by `discover`, as users do: the graph by a rule, and the probability of every edge.

    Records are about the network, so directions have its own probabilities unless they are asked for as users get them.
    """
    from causal_arrow.discovery.pipeline import discover
    from causal_arrow.discovery.settings import Settings
    from causal_arrow.discovery.uncertainty import ancestor_frequencies

    on_cpu = model.device == "cpu"

    def work() -> tuple[Answer, dict[str, str]]:
        unread = frozenset() if sees_experiments else frozenset({"intervened"})
        table, reading = as_far_as_it_reads(observed, model.reads - unread)
        settings = Settings(model=model, decode=rule, scale=scale, precision="float32", directions=directions)
        return discover(table, settings).answer, reading

    (answer, reading), seconds = timed(work, time.process_time if on_cpu else time.perf_counter)
    scores, probabilities, ancestors = answer.edge_probabilities, None, None
    if rule == "map":  # other rules only choose the graph: the probabilities are judged once
        drawn = answer.sample(ANCESTOR_GRAPHS, np.random.default_rng(0)).graphs
        probabilities, ancestors = scores, ancestor_frequencies(drawn)
    confounding = answer.confounding_probabilities
    return Estimate(answer.adjacency, scores, probabilities, seconds, confounding, reading or None, ancestors)


def as_far_as_it_reads(observed: Observed, reads: frozenset[str]) -> tuple[Table, dict[str, str]]:
    """The table for a network that reads only these parts of it, and how the other parts were read, by name.

    A network of numbers only gets codes of levels, imputed cells, and no marks of experiments.
    """
    table, reading = observed.table, observed.unread_by(reads)
    if not table.observed.all() and "observed" not in reads:
        reading["missing"] = "impute"
        table = complete(table, "impute")
    if "levels" not in reads:
        table = Table.of_numbers(table.values, table.names)
    return replace(table, intervened=observed.intervened if "intervened" in reads else None), reading


def _weights_file(source: str) -> Path:
    """The file of the weights."""
    from causal_arrow.network.checkpoint import WEIGHTS_FILE, find_model

    path = find_model(source)
    path = path / WEIGHTS_FILE if path.is_dir() else path
    if not path.is_file():
        raise BenchmarkError(f"No weights at {source!r}: expected a folder with {WEIGHTS_FILE}, or a file.")
    return path
