"""A small network with random weights, for the tests and for the generator of bad inputs, and how to save one."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy

from causal_arrow.graphs.graph_distribution import GraphDistribution
from causal_arrow.network.checkpoint import checksum
from causal_arrow.network.pairwise import PairwiseConfig, PairwiseNetwork
from causal_arrow.network.statistics import CHANNELS_OF_ANY_TABLE, STATISTICS_OF_ANY_TABLE

SMALL = PairwiseConfig(cell_width=16, pair_width=16, stages=1, pair_blocks=1, mixing_heads=2, outer_width=4)
ANY_TABLE = dataclasses.replace(
    SMALL,
    channels=CHANNELS_OF_ANY_TABLE,
    statistics=STATISTICS_OF_ANY_TABLE,
    canonical_signs=True,
    confounding_head=True,
)


def random_network(any_table: bool = False) -> PairwiseNetwork:
    """A network without training but with random weights everywhere, so that it has an opinion on every table.

    any_table: it also reads categories, missing cells and experiments, and answers which pairs share a hidden cause.
    """
    network = random_weights(ANY_TABLE if any_table else SMALL)
    network.weights["skeleton_head.out.bias"][:] = 7.0 if any_table else 0.0
    if any_table:
        network.weights["confounding_head.out.bias"][:] = 0.0
    return network


def random_weights(config: PairwiseConfig, seed: int = 0, size: float = 1.0) -> PairwiseNetwork:
    """A network of any sizes, with random weights."""
    random = np.random.default_rng(seed)
    weights = {
        name: (size * random.normal(size=shape) * (1 / shape[-1] + 0.25) ** 0.5).astype(np.float32)
        for name, shape in config.weights()
    }
    return PairwiseNetwork(config, weights, {})


def save_network(network: PairwiseNetwork, folder: Path, extra: Mapping[str, Any] | None = None) -> None:
    """Write a network to a folder as `causal_arrow_lab.save_model` does, in float32."""
    weights = {f"encoder.{name}": np.ascontiguousarray(weight) for name, weight in network.weights.items()}
    config = {
        "format": "causal-arrow-model",
        "format_version": 1,
        "model": {"encoder": "pairwise", **dataclasses.asdict(network.config)},
        "parameters": sum(weight.size for weight in weights.values()),
        "extra": dict(extra or {}),
    }
    write_model(folder, weights, config)


def write_model(folder: Path, weights: Mapping[str, Any], config: Mapping[str, Any]) -> None:
    """Write weights, numpy arrays in float32, and their configuration to a folder, signed."""
    text = json.dumps(config)
    stored = {name: ("F32", list(weight.shape), weight.tobytes()) for name, weight in weights.items()}
    metadata = {"format": "pt", "config": text, "checksum": checksum(text, stored)}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.safetensors").write_bytes(safetensors.numpy.save(dict(weights), metadata))
    (folder / "config.json").write_text(text, encoding="utf-8")


def distance(first: GraphDistribution, second: GraphDistribution) -> float:
    """The largest difference between two answers in log-odds and order scores, diagonals left out."""
    off_diagonal = ~np.eye(first.variables, dtype=bool)
    differences = [np.abs(first.order_scores - second.order_scores).max()]
    for name in ("skeleton_logits", "confounding_logits"):
        one, other = getattr(first, name), getattr(second, name)
        assert (one is None) == (other is None)
        if one is not None:
            differences.append(np.abs(one - other)[..., off_diagonal].max())
    return float(max(differences))
