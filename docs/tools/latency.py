"""Speed of the network on this machine, without any reading of tables: `python docs/tools/latency.py`.

Prints the time of one table, as usual and replayed (see `replay`), the number of tables per second in batches, and how
far a GPU is from the processor. Needs torch, numpy and safetensors alone. Ends with status 1 if the two differ by more
than TOLERANCE in float32.
"""

# B tables, N observations, P variables

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from causal_arrow.errors import ArrowError
from causal_arrow.network import DEFAULT_MODEL
from causal_arrow_lab.batches import TensorBatch
from causal_arrow_lab.network.checkpoint import load_model
from causal_arrow_lab.network.devices import computing_in, resolve_device
from causal_arrow_lab.network.model import ArrowModel
from causal_arrow_lab.network.pairwise import PairwiseEncoder
from causal_arrow_lab.network.replay import ReplayedModel
from causal_arrow_lab.skeleton_order import NetworkOutput
from causal_arrow_lab.synthetic.tasks import TaskDistribution

SINGLE = ((500, 50), (1000, 100))  # N, P
WIDE = ((1000, 500), (1000, 1000))
BATCHES = ((500, 20), (500, 50))
BATCH_SIZES = (1, 8, 64, 256)
COMPARED = ((200, 5), (500, 20), (500, 50), (1000, 100))
TOLERANCE = 1e-3
"""The most that a probability may differ between a processor and a GPU, both in float32."""
TYPES = (torch.float32, torch.bfloat16)

Model = Callable[[TensorBatch], NetworkOutput]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", default=DEFAULT_MODEL, help="a bundled name, a folder or a file")
    parser.add_argument("--device", default="auto", help="auto (a GPU if there is one), cpu, cuda, cuda:1")
    parser.add_argument("--repeats", type=int, default=20, help="passes that are timed; the median is shown")
    parser.add_argument("--wide", action="store_true", help="also tables of 500 and 1000 variables")
    options = parser.parse_args(arguments)
    try:
        device = resolve_device(options.device)
        model = load_model(options.model, device).eval()
    except ArrowError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2
    where = torch.cuda.get_device_name(device) if device.type == "cuda" else f"{torch.get_num_threads()} threads"
    print(f"{options.model} on {device.type} ({where}), torch {torch.__version__}")
    with torch.inference_mode():
        show_single(model, device, options.repeats)
        if options.wide:
            show_wide(model, device)
        show_batches(model, device, max(1, options.repeats // 4))
        return 0 if device.type == "cpu" else show_difference(options.model, model, device)


def show_single(model: ArrowModel, device: torch.device, repeats: int) -> None:
    """The time of one table, from the processor's memory and back to it."""
    print("\none table: milliseconds as usual, and replayed")
    for observations, variables in SINGLE:
        tables = draw(1, observations, variables)
        for dtype in TYPES:
            again = replayed(model)
            with computing_in(dtype, device):
                usual = median_seconds(model, tables, device, repeats)
                fast = usual if again is model else median_seconds(again, tables, device, repeats)
            line = f"{observations:>6}×{variables:<5}{name_of(dtype):<10}{1e3 * usual:9.2f}{1e3 * fast:9.2f}"
            print(line + failures(again), flush=True)


def replayed(model: ArrowModel) -> Model:
    """The model as tables that come one by one are answered: replayed on a GPU, as it is elsewhere."""
    on_gpu = model.device.startswith("cuda")
    return ReplayedModel(model) if on_gpu and isinstance(model.encoder, PairwiseEncoder) else model


def failures(model: object) -> str:
    """The parts of a replayed model that could not be captured, and why."""
    if not isinstance(model, ReplayedModel):
        return ""
    names = ("description", "blocks", "heads")
    parts = zip(names, model.parts, strict=True)
    failed = [f"{name} not captured ({part.failure})" for name, part in parts if part.failure]
    return f"  {'; '.join(failed)}" if failed else ""


def show_wide(model: ArrowModel, device: torch.device) -> None:
    """Time and memory of one table with many variables."""
    print("\none wide table: seconds, peak memory of a GPU")
    for observations, variables in WIDE:
        tables = draw(1, observations, variables)
        for dtype in TYPES:
            if device.type == "cuda":
                torch.cuda.reset_peak_memory_stats(device)
            with computing_in(dtype, device):
                seconds = median_seconds(model, tables, device, 1)
            memory = f"{torch.cuda.max_memory_allocated(device) / 1e9:8.2f} GB" if device.type == "cuda" else ""
            print(f"{observations:>6}×{variables:<5}{name_of(dtype):<10}{seconds:9.2f}{memory}", flush=True)


def show_batches(model: ArrowModel, device: torch.device, repeats: int) -> None:
    """Tables per second, for batches of one shape."""
    sizes = BATCH_SIZES if device.type == "cuda" else BATCH_SIZES[:2]
    print(f"\ntables per second in batches of {', '.join(map(str, sizes))}")
    for observations, variables in BATCHES:
        for dtype in TYPES:
            shown = []
            for size in sizes:
                tables = draw(size, observations, variables)
                with computing_in(dtype, device):
                    shown.append(size / median_seconds(model, tables, device, repeats))
            line = "".join(f"{rate:10.0f}" for rate in shown)
            print(f"{observations:>6}×{variables:<5}{name_of(dtype):<10}{line}", flush=True)


def show_difference(name: str, model: ArrowModel, device: torch.device) -> int:
    """Compare probabilities on this device with those on the processor; the exit status."""
    print(f"\nlargest difference from the processor's float32 (in float32 at most {TOLERANCE:g})")
    reference = load_model(name, torch.device("cpu")).eval()
    worst = 0.0
    for observations, variables in COMPARED:
        tables = draw(4, observations, variables)
        expected = reference(tables).skeleton_order.edge_marginals()
        for dtype in TYPES:
            again = replayed(model)
            with computing_in(dtype, device):
                answers = [model(tables.to(device)), *(again(tables.to(device)) for _ in range(3))]
            found = max(difference(answer, expected) for answer in answers)
            worst = max(worst, found) if dtype == torch.float32 else worst
            print(f"{observations:>6}×{variables:<5}{name_of(dtype):<10}{found:10.1e}", flush=True)
    print("within the tolerance" if worst <= TOLERANCE else "BEYOND THE TOLERANCE")
    return 0 if worst <= TOLERANCE else 1


def difference(answer: NetworkOutput, expected: Tensor) -> float:
    """The largest difference of a probability."""
    return (answer.to("cpu").skeleton_order.edge_marginals() - expected).abs().max().item()


def draw(tables: int, observations: int, variables: int) -> TensorBatch:
    """Tables of the paper's tasks."""
    generator = torch.Generator().manual_seed(1)
    tasks = TaskDistribution.paper().sample(
        tasks=tables, observations=observations, variables=variables, generator=generator
    )
    return TensorBatch(tasks.data.double())


def median_seconds(model: Model, tables: TensorBatch, device: torch.device, repeats: int) -> float:
    """The median time from a table in the processor's memory to the answer there, after three passes to warm up."""
    seconds = []
    for _ in range(repeats + (3 if device.type == "cuda" else 1)):
        started = time.perf_counter()
        model(tables.to(device)).to("cpu")
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds[-repeats:])


def name_of(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


if __name__ == "__main__":
    sys.exit(main())
