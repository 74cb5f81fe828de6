"""Answers of the network with more noise than any processor adds: probabilities move by up to one in a million.

`sitecustomize.py` puts it into every Python process that has this folder on its PYTHONPATH and SEED in its environment.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

SEED = "CAUSAL_ARROW_TEST_NOISE"
"""The variable of the environment that holds the seed of the noise."""
HOME = "causal_arrow.graphs.graph_distribution"
LOG_ODDS = 4e-6
"""Noise in log-odds and order scores: 1e-6 in a probability of one half."""


def with_noise(with_copies: Callable[..., Any], seed: int) -> Callable[..., Any]:
    """A replacement of `GraphDistribution.with_copies`, which every answer of the network passes once.

    The same answer gets the same noise: a processor, too, makes the same mistake each time.
    """

    def noisy_with_copies(said: Any, read_as: Sequence[int]) -> Any:
        values = {name: getattr(said, name) for name in ("skeleton_logits", "order_scores", "confounding_logits")}
        noisy = {name: _noisy(value, seed) for name, value in values.items() if value is not None}
        return with_copies(replace(said, **noisy), read_as)

    return noisy_with_copies


def _noisy(values: Any, seed: int) -> Any:
    """Values (P,) or (P, P) with noise, symmetric for pairs."""
    random = np.random.default_rng([seed, zlib.crc32(np.ascontiguousarray(values).tobytes())])
    signs = random.choice([-1.0, 1.0], size=values.shape)
    if values.ndim == 2:
        signs = np.triu(signs) + np.triu(signs, 1).T
    return (values + LOG_ODDS * signs).astype(values.dtype)
