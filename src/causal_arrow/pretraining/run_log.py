"""Console printer and log writer of a run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from causal_arrow.errors import TrainingError
from causal_arrow.network.checkpoint import make_folder


class RunLog:
    """Lines for people on the console, records in `log.jsonl`; silent on all processes but the first."""

    def __init__(self, directory: Path, is_first: bool, echo: Callable[[str], None]) -> None:
        self._path = directory / "log.jsonl"
        self._is_first = is_first
        self._echo = echo
        if is_first:
            make_folder(directory)

    def say(self, line: str) -> None:
        """Print a line on the console."""
        if self._is_first:
            self._echo(line)

    def write(self, event: str, step: int, **facts: Any) -> None:
        """Add a record to the log."""
        if not self._is_first:
            return
        try:
            with open(self._path, "a", encoding="utf-8") as file:
                file.write(json.dumps({"event": event, "step": step, **facts}) + "\n")
        except OSError as error:
            raise TrainingError(f"Cannot write {self._path}: {error.strerror}.") from error
