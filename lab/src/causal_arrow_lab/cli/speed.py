"""`causal-arrow-lab speed`: time a network on this machine, from the table to the answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from causal_arrow.cli import options
from causal_arrow.cli.console import console, grid

SHAPES = ("500x50", "2000x100")


@options.expanded
def speed(
    shape: Annotated[
        list[str] | None,
        typer.Option(help=f"Observations x variables; can be given several times. [default: {' '.join(SHAPES)}]"),
    ] = None,
    repeats: Annotated[int, typer.Option(help="Answers that are timed; the median is shown.", min=1, max=10_000)] = 5,
    settings: Mapping[str, Any] = options.SETTINGS.only("model", "device", "precision"),
) -> None:
    """Time a model on random tables, from the table to the answer, and show the peak memory of the process.

    On a GPU, `python -m causal_arrow_lab.network.latency` times the network alone, in batches too.
    """
    import statistics
    import sys
    import time

    import numpy as np

    from causal_arrow.discovery.pipeline import discover
    from causal_arrow.discovery.settings import Settings
    from causal_arrow.discovery.workload import peak_memory_gb
    from causal_arrow.network.threads import thread_count

    chosen = Settings(**settings)
    headings = ("observations", "variables", "seconds", "peak memory")
    table = grid(*headings, right=headings[:3])
    used = chosen.device
    for text in shape or SHAPES:
        observations, variables = parse_shape(text)
        values = np.random.default_rng(0).standard_normal((observations, variables))
        seconds = []
        for _ in range(repeats + 1):  # the first one warms up
            started = time.perf_counter()
            used = discover(values, chosen, progress=False).network.device
            seconds.append(time.perf_counter() - started)
        memory = f"{peak_memory_gb():.2f} GB" if sys.platform != "win32" else ""
        table.add_row(f"{observations:,}", str(variables), f"{statistics.median(seconds[1:]):.2f}", memory)
    screen = console()
    screen.print(f"{chosen.model} on {used}, {thread_count()} threads")
    screen.print(table)


def parse_shape(text: str) -> tuple[int, int]:
    """Numbers of observations and variables from "500x50"."""
    from causal_arrow.errors import ConfigurationError

    parts = text.lower().split("x")
    if len(parts) != 2 or not all(part.strip().isdecimal() for part in parts) or min(map(int, parts)) < 2:
        raise ConfigurationError(f"Expected a shape such as 500x50, both numbers 2 or more, got {text!r}.")
    return int(parts[0]), int(parts[1])


EXAMPLES = {
    "speed": """
**Examples**

`causal-arrow-lab speed`

`causal-arrow-lab speed --shape 1000x30 --shape 300x200 --device cpu`
"""
}
