"""Progress of long work: who does it tells the stage and the share that is done; who listens may show a bar."""

from __future__ import annotations

import sys
from collections.abc import Callable

READING = "Reading the table"
MEASURING = "Measuring all observations"
READING_CELLS = "Reading cells"
READING_AGAIN = "Reading again without columns that stand alone"

Progress = Callable[[str, float], None]
"""Hears the stage, in words, and which share of it is done, from 0 to 1."""


def is_watched(wanted: bool | None) -> bool:
    """Whether to show a bar on standard error: as wanted, by default where that is a terminal."""
    return sys.stderr.isatty() if wanted is None else wanted


def unheard(stage: str, share: float) -> None:
    """Nobody listens."""
