"""`python -m causal_arrow.pretraining.speed CONFIG.toml`: how fast training runs here, and how far from its floor.

The floor of a part is the larger of two times: the bytes it must move at the measured copy bandwidth, and the
operations it must do at the measured matrix rate. Forward and backward together; a stream of vectors is read and
written once forward, and read twice and written once backward. No program is faster than its floor.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from causal_arrow.batches import TableBatch
from causal_arrow.errors import ArrowError
from causal_arrow.network.encoders.pairwise import PairwiseEncoder, Stage
from causal_arrow.network.encoders.statistics import describe
from causal_arrow.network.kernels.kernel_check import Ceilings
from causal_arrow.pretraining.command import add_config_arguments
from causal_arrow.pretraining.config import read_config
from causal_arrow.pretraining.processes import joined
from causal_arrow.pretraining.shapes import Shape
from causal_arrow.pretraining.stream import draw_tasks
from causal_arrow.pretraining.trainer import Trainer


@dataclass(frozen=True)
class Part:
    """A piece of the training step: what runs, and what it cannot do without, for all tasks together."""

    name: str
    tasks: int
    run: Callable[[], object]
    bytes_moved: float = 0.0
    operations: float = 0.0


CALLS_IN_A_ROW = 4
"""As in training, the device does not wait for the host after each call."""


def seconds_of(run: Callable[[], object], device: torch.device, least_seconds: float = 0.3) -> float:
    """Median time of a call, in rows of calls, after two calls that only warm up."""
    for _ in range(2):
        run()
    times: list[float] = []
    started = time.perf_counter()
    while len(times) < 5 or (time.perf_counter() - started < least_seconds and len(times) < 50):
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        before = time.perf_counter()
        for _ in range(CALLS_IN_A_ROW):
            run()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        times.append((time.perf_counter() - before) / CALLS_IN_A_ROW)
    return sorted(times)[len(times) // 2]


def measure_ceilings(device: torch.device, dtype: torch.dtype) -> Ceilings:
    """Bandwidth of a large copy (read and write counted) and rate of a large matrix product on random numbers."""
    size = 2**30 if device.type == "cuda" else 2**26
    source = torch.empty(size, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    bandwidth = 2 * size / seconds_of(lambda: target.copy_(source), device)
    width = 8192 if device.type == "cuda" else 1024
    matrix = torch.randn(width, width, device=device, dtype=dtype)
    return Ceilings(bandwidth, 2 * width**3 / seconds_of(lambda: matrix @ matrix, device))


def _both_passes(block: Callable[..., Tensor], *inputs: Tensor) -> Callable[[], None]:
    """Forward and backward of a block, gradients of its inputs included."""
    leaves = [value.detach().requires_grad_() for value in inputs]

    def run() -> None:
        output = block(*leaves)
        output.backward(output.detach())
        for leaf in leaves:
            leaf.grad = None

    return run


def pairwise_parts(encoder: PairwiseEncoder, tables: TableBatch, dtype: torch.dtype) -> list[Part]:
    """The blocks of a pairwise encoder, for the sizes of these tables."""
    sizes, shape, tasks = encoder.config, Shape.of(tables), len(tables)
    stage = encoder.stages[0]
    assert isinstance(stage, Stage)
    device = tables.values.device
    cells = torch.randn(*tables.values.shape, sizes.cell_width, device=device, dtype=dtype)
    pairs = torch.randn(tasks, shape.variables, shape.variables, sizes.pair_width, device=device, dtype=dtype)
    weights = stage.mixing_weights(pairs).detach()
    products = tasks * shape.pairs * sizes.outer_width**2 * dtype.itemsize
    cell_bytes, pair_bytes = cells.numel() * dtype.itemsize, pairs.numel() * dtype.itemsize
    per_cell = 18 * sizes.cell_width**2 + 2 * shape.variables * sizes.cell_width
    per_outer = 4 * sizes.cell_width * sizes.outer_width + 2 * shape.variables * sizes.outer_width**2
    per_pair = 24 * sizes.pair_width**2 + 2 * shape.variables * sizes.pair_width
    return [
        Part(
            "statistics",
            tasks,
            lambda: describe(tables, sizes.channels, sizes.statistics),
            2 * tables.values.numel() * 4,
        ),
        Part(
            "a cell block",
            tasks,
            _both_passes(stage.cell_block, cells, weights),
            5 * cell_bytes,
            3 * per_cell * tasks * shape.cells,
        ),
        Part(
            "an outer product",
            tasks,
            _both_passes(lambda inputs: stage.outer_product(inputs, shape.observations), cells),
            3 * cell_bytes + 2 * products,
            3 * per_outer * tasks * shape.cells,
        ),
        Part(
            "a pair block",
            tasks,
            _both_passes(stage.pair_blocks[0], pairs),
            5 * pair_bytes,
            3 * per_pair * tasks * shape.pairs,
        ),
    ]


ENCODER_PARTS: dict[type, Callable[..., list[Part]]] = {PairwiseEncoder: pairwise_parts}
"""Encoders whose blocks have a known floor; of the others the whole is timed."""


def parts_of(trainer: Trainer, shape: Shape, tasks: int) -> list[Part]:
    """The parts of a training step, for `tasks` tasks of one shape."""
    encoder = trainer.model.encoder
    drawn = draw_tasks(trainer.stream.distribution, tasks, shape, 0, trainer.device)
    group = 8
    parts = [
        Part(
            f"drawing ({group} groups at once)",
            group * tasks,
            lambda: draw_tasks(trainer.stream.distribution, group * tasks, shape, 1, trainer.device),
        )
    ]
    if type(encoder) in ENCODER_PARTS:
        parts += ENCODER_PARTS[type(encoder)](encoder, drawn.tables, trainer.dtype)
    parts.append(Part("forward and backward", tasks, lambda: trainer.backward(drawn.tables, drawn.truth, 1.0)))

    def optimize() -> None:
        for optimizer in trainer.optimizers:
            optimizer.step()

    parts.append(Part("optimizers (one step)", tasks, optimize))
    return parts


def profile_of(run: Callable[[], object], kernels: int = 12) -> list[str]:
    """Where the device spends a call, and how long the host takes to launch it: lines for people."""
    for _ in range(2):
        run()
    torch.cuda.synchronize()
    before = time.perf_counter()
    for _ in range(CALLS_IN_A_ROW):
        run()
    launching = (time.perf_counter() - before) / CALLS_IN_A_ROW
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
        run()
        torch.cuda.synchronize()
    entries = sorted(profiler.key_averages(), key=lambda entry: -entry.self_device_time_total)
    device = sum(entry.self_device_time_total for entry in entries) / 1000
    launches = sum(entry.count for entry in entries if entry.self_device_time_total)
    lines = [f"device {device:.2f} ms in {launches} kernels, host {1000 * launching:.2f} ms to launch them"]
    lines += [
        f"  {entry.self_device_time_total / 1000:8.3f} ms {entry.count:>4} × {entry.key[:90]}"
        for entry in entries[:kernels]
    ]
    return lines


def main(arguments: list[str] | None = None) -> int:
    """Run the command; the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m causal_arrow.pretraining.speed", description=__doc__.split("\n")[0]
    )
    add_config_arguments(parser)
    parser.add_argument("--observations", type=int, default=500)
    parser.add_argument("--variables", type=int, default=50)
    parser.add_argument("--tasks", type=int, default=256)
    parser.add_argument("--profile", action="store_true", help="also show the kernels that take the time, on a GPU")
    parser.add_argument("--device", default="auto")
    options = parser.parse_args(arguments)
    try:
        config = read_config(options.config, options.changes)
        with joined(options.device) as processes:
            trainer = Trainer(config, processes)
            ceilings = measure_ceilings(trainer.device, trainer.dtype)
            print(
                f"copy {ceilings.bytes_a_second / 1e12:.2f} TB/s, matrix product "
                f"{ceilings.operations_a_second / 1e12:.1f} TFLOP/s; {trainer.model.parameter_count():,} parameters; "
                f"{options.tasks} tasks of {options.observations} × {options.variables}"
            )
            print(f"{'part':<28} {'ms':>9} {'tasks/s':>9} {'of the floor':>13}")
            shape = Shape(options.observations, options.variables)
            for part in parts_of(trainer, shape, options.tasks):
                seconds = seconds_of(part.run, trainer.device)
                floor = ceilings.floor(part.bytes_moved, part.operations)
                share = f"{floor / seconds:.0%}" if floor else ""
                print(f"{part.name:<28} {1000 * seconds:>9.2f} {part.tasks / seconds:>9,.0f} {share:>13}", flush=True)
                if options.profile and trainer.device.type == "cuda":
                    print("\n".join(f"    {line}" for line in profile_of(part.run)), flush=True)
            if trainer.device.type == "cuda":
                print(f"peak memory {torch.cuda.max_memory_allocated() / 2**30:.1f} GiB")
    except ArrowError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
