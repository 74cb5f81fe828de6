"""The models that come with the package. Nothing heavy is imported here: help texts name the default."""

from __future__ import annotations

from pathlib import Path

FOR_NUMBERS, FOR_EVERY_TABLE = "arrow-base", "arrow-any"
"""The best for complete tables of numbers, and the one that reads every table."""

AUTO = DEFAULT_MODEL = "auto"
"""No model, but leave to choose between the two, see discovery/suited.py; before a table is read, it is the second."""

BUNDLED_FOLDER = Path(__file__).parent / "weights"


def bundled_models() -> dict[str, Path]:
    """The models that come with the package: name -> folder."""
    return {weights.parent.name: weights.parent for weights in sorted(BUNDLED_FOLDER.glob("*/model.safetensors"))}
