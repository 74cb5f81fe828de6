"""The network in numpy, and the models that come with the package. Nothing heavy is imported here."""

from __future__ import annotations

from pathlib import Path

DEFAULT_MODEL = "arrow-base"
"""Reads every table."""

BUNDLED_FOLDER = Path(__file__).parent / "weights"


def bundled_models() -> dict[str, Path]:
    """The models that come with the package: name -> folder."""
    return {weights.parent.name: weights.parent for weights in sorted(BUNDLED_FOLDER.glob("*/model.safetensors"))}
