"""`causal-arrow speed`: how fast a model answers on this machine."""

from __future__ import annotations

from typing import Annotated

import typer

from causal_arrow.cli import options
from causal_arrow.cli.console import console, grid
from causal_arrow.network.bundled import DEFAULT_MODEL

SHAPES = ("500x50", "2000x100")


def speed(
    model: Annotated[str, typer.Option(help="A bundled name, a folder or a file.")] = DEFAULT_MODEL,
    shape: Annotated[
        list[str] | None,
        typer.Option(help=f"Observations x variables; can be given several times. [default: {' '.join(SHAPES)}]"),
    ] = None,
    repeats: Annotated[int, typer.Option(help="Answers that are timed; the median is shown.", min=1, max=10_000)] = 5,
    device: options.Device = "auto",
    precision: options.Precision = "auto",
) -> None:
    """Time a model on random tables, from the table to the answer, and show the peak memory of the process.

    Also shows the precision that was chosen, and the share of the arithmetic that this machine reaches in one large
    matrix product.
    """
    import statistics
    import sys
    import time

    import numpy as np
    import torch

    from causal_arrow.discovery.pipeline import Settings, discover
    from causal_arrow.discovery.workload import peak_memory_gb
    from causal_arrow.network.precision import product_rate, resolve_precision
    from causal_arrow.tables.table import Table

    settings = Settings(model=model, device=device, precision=precision)
    headings = ("observations", "variables", "precision", "seconds", "share of peak", "peak memory")
    table = grid(*headings, right=("observations", "variables", "seconds", "share of peak"))
    place, rates = "", {}
    for text in shape or SHAPES:
        observations, variables = parse_shape(text)
        values = np.random.default_rng(0).standard_normal((observations, variables))
        data = Table.of_numbers(values, [f"x{place + 1}" for place in range(variables)])
        seconds = []
        for _ in range(repeats + 1):  # the first one warms up
            started = time.perf_counter()
            found = discover(data, settings)
            seconds.append(time.perf_counter() - started)
        where = next(found.network.parameters()).device
        place = where.type
        operations = found.network.encoder.operations(observations, variables)
        dtype = resolve_precision(precision, where, operations)
        if dtype not in rates:
            rates[dtype] = product_rate(dtype, where)
        taken = statistics.median(seconds[1:])
        memory = f"{peak_memory_gb():.2f} GB" if sys.platform != "win32" else ""
        share = f"{operations / taken / rates[dtype]:.0%}" if operations else ""
        name = str(dtype).removeprefix("torch.")
        table.add_row(f"{observations:,}", str(variables), name, f"{taken:.2f}", share, memory)
    screen = console()
    screen.print(f"{model} on {place}, {torch.get_num_threads()} threads")
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

`causal-arrow speed`

`causal-arrow speed --shape 1000x30 --shape 300x200 --device cpu`

`causal-arrow speed --precision bfloat16`
"""
}
