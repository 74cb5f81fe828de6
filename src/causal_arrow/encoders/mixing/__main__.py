"""Check the kernels on this machine's GPU and time them: `python -m causal_arrow.encoders.mixing [--tune]`.

Ends with status 1 if a result is wrong. Right means: as close to a float64 reference as plain bfloat16 torch is, every
element written, and the same bits twice. Times are medians of device time, against compiled plain torch.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable

import torch
from torch import Tensor

from causal_arrow.encoders import mixing

DEVICE = "cuda"

# B tasks, N observations, P variables, D width, H heads

CHECKED = [
    (3, 333, 2, 64, 8),
    (3, 101, 5, 64, 8),
    (5, 77, 17, 64, 8),
    (9, 251, 50, 64, 8),
    (2, 1, 50, 64, 8),
    (2, 99, 100, 64, 8),
    (3, 203, 110, 64, 8),
    (5, 77, 20, 128, 8),
    (3, 55, 60, 32, 4),
]
TIMED = [(64, 500, 50, 64, 8), (16, 500, 100, 64, 8), (256, 100, 20, 64, 8)]

# For --tune, by kernel and variables of a tile: (observations of a block, warps, stages, programs a multiprocessor).
CANDIDATES: dict[tuple[str, int], list[tuple[int, int, int, int]]] = {
    ("forward", 32): [(8, 4, 3, 4), (4, 2, 3, 9), (8, 4, 2, 4), (4, 4, 3, 6)],
    ("forward", 64): [(4, 4, 3, 3), (4, 8, 3, 3), (4, 4, 2, 3), (4, 4, 4, 2)],
    ("forward", 128): [(2, 8, 3, 2), (2, 8, 2, 2), (2, 4, 2, 2), (4, 8, 2, 1)],
    ("backward", 32): [(4, 2, 3, 4), (4, 2, 2, 4), (4, 4, 3, 2)],
    ("backward", 64): [(4, 4, 3, 2), (4, 4, 2, 2), (2, 4, 3, 2), (4, 8, 3, 1)],
    ("backward", 128): [(2, 8, 3, 1), (2, 8, 2, 1), (4, 8, 2, 1)],
}

Shape = tuple[int, int, int, int, int]
Inputs = tuple[Tensor, Tensor, Tensor]
Function = Callable[[Tensor, Tensor], Tensor]


def inputs(shape: Shape, seed: int = 0) -> Inputs:
    """Values and gates  (B, N, P, 2D), weights  (B, H, P, P), a gradient of the output  (B, N, P, D); in bfloat16."""
    tasks, observations, variables, width, heads = shape
    generator = torch.Generator(DEVICE).manual_seed(seed)

    def normal(*sizes: int) -> Tensor:
        return torch.randn(*sizes, device=DEVICE, generator=generator, dtype=torch.bfloat16)

    weights = normal(tasks, heads, variables, variables) / variables**0.5
    return (
        normal(tasks, observations, variables, 2 * width),
        weights,
        normal(tasks, observations, variables, width),
    )


def with_gradients(function: Function, cells: Tensor, weights: Tensor, d_out: Tensor) -> list[Tensor]:
    """The output, and the gradients of values, gates and weights."""
    cells, weights = cells.detach().requires_grad_(), weights.detach().requires_grad_()
    out = function(cells, weights)
    d_cells, d_weights = torch.autograd.grad(out, (cells, weights), d_out)
    return [out.detach(), *d_cells.chunk(2, dim=-1), d_weights]


def relative_error(value: Tensor, reference: Tensor) -> float:
    return float((value.double() - reference).norm() / reference.norm())


def check() -> bool:
    """Print the relative error of each result for each shape, and say whether all are right."""
    print("   B    N    P    D   H   relative error of output, d value, d gate, d weights: fused (plain)")
    good = True
    # New memory is filled with NaN from here on, so that an element nobody wrote shows.
    torch.use_deterministic_algorithms(True, warn_only=True)
    for shape in CHECKED:
        cells, weights, d_out = inputs(shape)
        values, again = (with_gradients(mixing.mix_cells, cells, weights, d_out) for _ in range(2))
        plain = with_gradients(mixing.plain_mix_cells, cells, weights, d_out)
        references = with_gradients(mixing.plain_mix_cells, cells.double(), weights.double(), d_out.double())
        errors = [relative_error(*pair) for pair in zip(values, references, strict=True)]
        usual = [relative_error(*pair) for pair in zip(plain, references, strict=True)]
        # NaN compares false, so it never passes.
        close = all(error < max(4e-3, 1.5 * other) for error, other in zip(errors, usual, strict=True))
        same = all(torch.equal(one, other) for one, other in zip(values, again, strict=True))
        good = good and close and same
        pairs = "  ".join(f"{error:.1e} ({other:.1e})" for error, other in zip(errors, usual, strict=True))
        verdict = "" if close and same else "  WRONG" if not close else "  DIFFERS BETWEEN RUNS"
        print("{:>4} {:>4} {:>4} {:>4} {:>3}   ".format(*shape) + pairs + verdict)
    torch.use_deterministic_algorithms(False)
    return good


def check_long() -> bool:
    """Whether the last observations of a tensor with more than 2³¹ elements come out as they do alone."""
    cells, weights, d_out = inputs((4, 2**31 // (4 * 50 * 128) + 99, 50, 64, 8))
    whole = with_gradients(mixing.mix_cells, cells, weights, d_out)[:3]
    alone = with_gradients(mixing.mix_cells, cells[-1:, -99:], weights[-1:], d_out[-1:, -99:])[:3]
    good = all(torch.equal(one[-1:, -99:], other) for one, other in zip(whole, alone, strict=True))
    print(f"more than 2³¹ elements: {'right' if good else 'WRONG'}")
    return good


def check_compiled() -> bool:
    """Whether a compiled region with changing sizes gives what eager code gives."""

    def region(cells: Tensor, weights: Tensor) -> Tensor:
        out = mixing.mix_cells(2 * cells, weights)
        return mixing.mix_cells(torch.cat([out, out + 1], dim=-1), weights.softmax(dim=-1))

    compiled = torch.compile(region, dynamic=True, fullgraph=True)
    worst = 0.0
    for shape in ((3, 101, 20, 64, 8), (5, 77, 17, 64, 8)):
        arguments = inputs(shape)
        eager = with_gradients(region, *arguments)
        values = with_gradients(compiled, *arguments)
        worst = max(worst, *(relative_error(v, e.double()) for v, e in zip(values, eager, strict=True)))
    good = worst < 1e-2
    print(f"compiled against eager: {worst:.1e}{'' if good else '  WRONG'}")
    return good


def seconds(run: Callable[[int], object], repeats: int = 15) -> float:
    """Median time of run(i) on the device; `i` counts up, so that inputs can rotate and no cache stays warm."""
    for i in range(3):
        run(i)
    events = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(repeats)]
    torch.cuda._sleep(50_000_000)  # so that the launches queue up, and the time of this process is not measured
    for i, (start, stop) in enumerate(events):
        start.record()
        run(i)
        stop.record()
    torch.cuda.synchronize()
    return statistics.median([float(start.elapsed_time(stop)) for start, stop in events]) / 1e3


def bytes_a_second() -> float:
    """What a large copy reaches here, reading and writing."""
    source, target = torch.randn(2, 2**28, device=DEVICE)
    copied: int = source.nbytes
    return 2 * copied / seconds(lambda i: target.copy_(source))


def forward_and_backward(function: Function, sets: list[Inputs]) -> tuple[float, float]:
    """Seconds of either pass; the backward pass is what both take less what the forward pass takes."""
    with torch.no_grad():
        forward = seconds(lambda i: function(*sets[i % 3][:2]))
    return forward, seconds(lambda i: with_gradients(function, *sets[i % 3])) - forward


def time_against_plain() -> None:
    ceiling = bytes_a_second()
    print(f"ceiling here: {ceiling / 1e12:.2f} TB/s")
    print("   B    N    P    D   H      pass  fused ms  plain ms   TB/s  % of floor")
    plain = torch.compile(mixing.plain_mix_cells, dynamic=True)
    for shape in TIMED:
        sets = [inputs(shape, seed) for seed in range(3)]
        fast, slow = forward_and_backward(mixing.mix_cells, sets), forward_and_backward(plain, sets)
        # What must move, in tensors as large as the output: value, gate and output forward, and backward value, gate,
        # the gradient of the output and the gradients of value and gate.
        for work, (name, passes) in enumerate((("forward", 3), ("backward", 5))):
            moved = passes * sets[0][2].nbytes
            print(
                "{:>4} {:>4} {:>4} {:>4} {:>3}".format(*shape),
                f"{name:>9} {1e3 * fast[work]:>9.3f} {1e3 * slow[work]:>9.3f} {moved / fast[work] / 1e12:>6.2f}"
                f" {100 * moved / ceiling / fast[work]:>11.0f}",
            )


def tune() -> None:
    """Time every candidate launch."""
    from causal_arrow.encoders.mixing import kernels

    for (name, tile), candidates in CANDIDATES.items():
        shape = next(shape for shape in TIMED if kernels.tile_variables(shape[2]) == tile)
        sets = [inputs(shape, seed) for seed in range(3)]

        def run(i: int, forward: bool = name == "forward", sets: list[Inputs] = sets) -> object:
            cells, weights, d_out = sets[i % 3]
            return kernels.forward(cells, weights) if forward else kernels.backward(d_out, cells, weights)

        kept = kernels.LAUNCHES[name, tile]
        for values in candidates:
            launch = kernels.LAUNCHES[name, tile] = kernels.Launch(*values)
            try:
                result = f"{1e3 * seconds(run):.3f} ms"
            except Exception as error:  # a candidate that does not fit the device is an answer too
                result = f"{type(error).__name__}: {str(error).splitlines()[0][:60]}"
            print(f"{name:<8} {tile:>4} {values!s:<14} {result}{' (in use)' if launch == kept else ''}")
        kernels.LAUNCHES[name, tile] = kept


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m causal_arrow.encoders.mixing", description=__doc__)
    parser.add_argument("--tune", action="store_true", help="also time other launches of each kernel")
    options = parser.parse_args()
    device = DEVICE if torch.cuda.is_available() else "cpu"
    if not mixing._kernels_apply(*torch.empty(2, 1, 8, 2, 128, dtype=torch.bfloat16, device=device)):
        print("The kernels need a Hopper GPU (H100, H200) and triton; neither check nor timing is possible here.")
        return 1
    good = check()
    good = check_long() and good
    good = check_compiled() and good
    time_against_plain()
    if options.tune:
        tune()
    print("all results are right" if good else "SOME RESULTS ARE WRONG")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
