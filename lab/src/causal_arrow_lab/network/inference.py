"""Torch networks for discovery: on GPUs, with other encoders than the one that ships, from ArrowFM's files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from causal_arrow_lab.network.checkpoint import load_model
from causal_arrow_lab.network.devices import resolve_device
from causal_arrow_lab.network.model import ArrowModel


def load_network(path: Path, device: Any, precision: str) -> ArrowModel:
    """The network in a file, on a device, in a precision."""
    return load_model(path, resolve_device(device)).on("auto", precision)
