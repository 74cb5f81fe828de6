"""How fast tasks are made: `python -m causal_arrow.synthetic --device cuda --distribution broad`."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

import torch

from causal_arrow.synthetic.tasks import TRAINING_DISTRIBUTIONS, TaskDistribution

SHAPES = ((100, 20), (500, 50), (1000, 100), (2000, 100), (500, 200))  # (observations, variables)


def tasks_per_second(
    distribution: TaskDistribution, tasks: int, observations: int, variables: int, device: torch.device, seconds: float
) -> float:
    """Tasks made per second of wall time, over as many batches as fit in `seconds`, one at least, after a warm-up."""
    generator = torch.Generator(device).manual_seed(0)

    def finish() -> float:
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        return time.perf_counter()

    distribution.sample(tasks, observations, variables, generator)
    start, made = finish(), 0
    while True:
        distribution.sample(tasks, observations, variables, generator)
        made += tasks
        elapsed = finish() - start
        if elapsed >= seconds:
            return made / elapsed


def main(arguments: Sequence[str] | None = None) -> None:
    """Print tasks and cells per second for a few shapes."""
    parser = argparse.ArgumentParser(prog="python -m causal_arrow.synthetic", description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--distribution", choices=sorted(TRAINING_DISTRIBUTIONS), help="default: each in turn")
    parser.add_argument("--tasks", type=int, help="tasks in a batch; default: 2048 on a GPU, 32 on a CPU")
    parser.add_argument("--seconds", type=float, default=2.0, help="time spent on each shape, at least one batch")
    options = parser.parse_args(arguments)
    device = torch.device(options.device)
    tasks = options.tasks or (2048 if device.type == "cuda" else 32)
    names = [options.distribution] if options.distribution else sorted(TRAINING_DISTRIBUTIONS, reverse=True)
    hardware = torch.cuda.get_device_name(device) if device.type == "cuda" else f"{torch.get_num_threads()} threads"

    print(f"{tasks} tasks in a batch, device {device} ({hardware}), torch {torch.__version__}")
    print(f"{'distribution':<14}{'n':>6}{'p':>6}{'tasks/s':>12}{'cells/s':>12}")
    for name in names:
        for observations, variables in SHAPES:
            distribution = TRAINING_DISTRIBUTIONS[name]()
            rate = tasks_per_second(distribution, tasks, observations, variables, device, options.seconds)
            cells = rate * observations * variables
            print(f"{name:<14}{observations:>6}{variables:>6}{rate:>12,.0f}{cells:>12.3g}", flush=True)


if __name__ == "__main__":
    main()
