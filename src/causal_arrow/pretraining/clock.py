"""Time: how much of it is left, and where it went."""

from __future__ import annotations

import math
import time
from types import TracebackType
from typing import Any

import torch


class Clock:
    """Seconds since the start of a run, and until it must end."""

    def __init__(self, minutes: float | None) -> None:
        self._start = time.monotonic()
        self._limit = math.inf if minutes is None else 60 * minutes

    def seconds_spent(self) -> float:
        return time.monotonic() - self._start

    def seconds_left(self) -> float:
        return self._limit - self.seconds_spent()

    def is_half_over(self) -> bool:
        return self.seconds_spent() > self._limit / 2

    def reserve(self, last_time: float) -> float:
        """Seconds to leave for the end, from how long it took last time; a tenth of all if that is not known."""
        if last_time:
            return 1.5 * last_time + 1.0
        return 0.1 * self._limit if math.isfinite(self._limit) else 0.0


class Stopwatch:
    """Time spent inside `with stopwatch:` blocks, on the device's own clock where it has one.

    A GPU is not made to wait: events are recorded, and read when the total is asked for.
    """

    def __init__(self, device: torch.device) -> None:
        self._on_gpu = device.type == "cuda"
        self._open: Any = None
        self._laps: list[tuple[Any, Any]] = []

    def _now(self) -> Any:
        if not self._on_gpu:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def _seconds(self, lap: tuple[Any, Any]) -> float:
        start, stop = lap
        if not self._on_gpu:
            return float(stop - start)
        stop.synchronize()
        return float(start.elapsed_time(stop)) / 1000

    def __enter__(self) -> None:
        self._open = self._now()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._laps.append((self._open, self._now()))

    def total(self) -> float:
        """Seconds in all blocks since the last reset."""
        return sum(self._seconds(lap) for lap in self._laps)

    def longest(self) -> float:
        """Seconds in the longest block since the last reset."""
        return max((self._seconds(lap) for lap in self._laps), default=0.0)

    def reset(self) -> None:
        self._laps.clear()
