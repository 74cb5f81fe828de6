"""Times of two installations of the package, by turns: `python tests/speed_ratio.py OLD_PYTHON [NEW_PYTHON]`.

Starts both interpreters with one and two threads, lets them read the same tables in turn, and prints the best time of
each and their ratio, new to old. Turns make the ratio hold on a machine that is busy with other work; so does the clock
of one thread, which is the processor's.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from typing import Any

SHAPES = ((300, 8), (500, 50), (2000, 100))  # N, P
SECONDS = 20.0
"""For which the two take turns, for each shape."""


def reader() -> Any:
    """A function that reads a table of some shape with the installed package, and returns how long that took."""
    import numpy as np

    from causal_arrow import load_model
    from causal_arrow.batches import TableBatch

    model, tables = load_model("arrow-base"), {}
    for shape in SHAPES:
        values = np.random.default_rng(0).laplace(size=(1, *shape))
        mixing = np.triu(np.random.default_rng(1).normal(size=(shape[1], shape[1])) / shape[1], 1)
        tables[shape] = values @ np.linalg.inv(np.eye(shape[1]) - mixing)
    if hasattr(model, "read"):
        read = model.read
    else:  # the versions with torch
        import torch

        torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
        tables = {shape: torch.from_numpy(values) for shape, values in tables.items()}
        read = torch.inference_mode()(model)

    clock = time.process_time if os.environ["OMP_NUM_THREADS"] == "1" else time.perf_counter

    def seconds(shape: tuple[int, int]) -> float:
        started = clock()
        read(TableBatch(tables[shape]))
        return clock() - started

    return seconds


def serve() -> None:
    """Read a table for each line of standard input, and print the seconds."""
    seconds = reader()
    for line in sys.stdin:
        observations, variables = map(int, line.split())
        print(seconds((observations, variables)), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("old", help="the interpreter of the environment to compare with")
    parser.add_argument("new", nargs="?", default=sys.executable)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    options = parser.parse_args()
    for threads in (1, 2):
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads)}
        servers = [
            subprocess.Popen(
                [python, __file__, "--serve"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=environment,
            )
            for python in (options.old, options.new)
        ]
        for shape in SHAPES:
            best = [float("inf")] * 2
            started = time.perf_counter()
            while time.perf_counter() - started < options.seconds:
                for index, server in enumerate(servers):
                    assert server.stdin is not None
                    assert server.stdout is not None
                    print(*shape, file=server.stdin, flush=True)
                    best[index] = min(best[index], float(server.stdout.readline()))
            old, new = (f"{1e3 * seconds:8.1f} ms" for seconds in best)
            print(f"{threads} threads {shape[0]:>5} × {shape[1]:<4} old {old}   new {new}   {best[1] / best[0]:.2f}")
        for server in servers:
            assert server.stdin is not None
            server.stdin.close()
            server.wait()


if __name__ == "__main__":
    serve() if sys.argv[1:] == ["--serve"] else main()
