"""Ways to break the folder of a saved model, whatever its network, and what the error then says."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy


def edit_config(text: str) -> Callable[[Path], Any]:
    return lambda folder: (folder / "config.json").write_text(text)


def edit_weights(content: bytes) -> Callable[[Path], Any]:
    return lambda folder: (folder / "model.safetensors").write_bytes(content)


FOREIGN = safetensors.numpy.save({"layer": np.zeros(3, dtype=np.float32)})

BROKEN_FOLDERS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "no weights": (
        lambda folder: (folder / "model.safetensors").unlink(),
        "is not a model: expected model.safetensors",
    ),
    "nothing": (lambda folder: [path.unlink() for path in folder.iterdir()], "found nothing"),
    "weights are a folder": (
        lambda folder: [(folder / "model.safetensors").unlink(), (folder / "model.safetensors").mkdir()],
        "is not a model",
    ),
    "zero bytes": (edit_weights(b""), "not a safetensors file"),
    "random bytes": (edit_weights(random.Random(0).randbytes(5000)), "not a safetensors file"),
    "a pickle": (edit_weights(pickle.dumps({"weights": 1})), "not a safetensors file"),
    "header longer than the file": (edit_weights((10**6).to_bytes(8, "little") + b"{}"), "not a safetensors file"),
    "header of absurd length": (edit_weights((2**63).to_bytes(8, "little") + b"{}"), "not a safetensors file"),
    "header cut inside": (edit_weights((1).to_bytes(8, "little") + b"{}"), "not a safetensors file"),
    "a shape that is none": (edit_weights((20).to_bytes(8, "little") + b'{"a": {"shape": 5}} '), "not a safetensors"),
    "foreign weights": (
        lambda folder: [(folder / "config.json").unlink(), edit_weights(FOREIGN)(folder)],
        "no causal-arrow configuration",
    ),
    "foreign weights, our config.json": (edit_weights(FOREIGN), "do not fit its configuration"),
    "config.json is no JSON": (edit_config("{"), "JSON cannot be read"),
    "config.json is binary": (lambda folder: (folder / "config.json").write_bytes(b"\xff\xfe\x00"), "cannot be read"),
    "config.json is a list": (edit_config("[]"), "belongs to another program"),
    "config.json of another program": (edit_config('{"model_type": "bert"}'), "belongs to another program"),
    "newer config.json": (
        edit_config('{"format": "causal-arrow-model", "format_version": 99}'),
        "newer causal-arrow.*Upgrade",
    ),
    "JSON without end": (edit_config("[" * 10**5), "its JSON cannot be read"),
}
