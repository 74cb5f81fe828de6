"""Check the kernels on this machine's GPU and time them: `python -m causal_arrow.encoders.fused [--tune]`.

Ends with status 1 if a result is wrong. Right means: as close to a float64 reference as plain bfloat16 torch is, every
element written, and the same bits twice. Times are medians of device time, against compiled plain torch.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from causal_arrow.encoders import fused
from causal_arrow.encoders.fused.operators import packed

DEVICE = "cuda"

# T tokens, D width, U units: hidden units of a feed-forward block, outputs of a linear layer


@dataclass(frozen=True)
class Layer:
    """A fused layer, what it should equal, and the least work it takes."""

    fused: Callable[..., Tensor]
    plain: Callable[..., Tensor]
    weights: Callable[[int, int], list[tuple[int, int]]]  # shapes, from D and U
    outputs: Callable[[int, int], int]  # width of the output, from D and U
    products: tuple[int, int]  # matrix products of 2·T·D·U operations: forward, forward and backward


LAYERS = {
    # Backward computes gate and value again, the gradient of their product, and five products of gradients.
    "gated_feed_forward": Layer(
        fused.gated_feed_forward,
        fused.plain_gated_feed_forward,
        lambda width, units: [(units, width), (units, width), (width, units)],
        lambda width, units: width,
        (3, 11),
    ),
    "norm_linear": Layer(
        fused.norm_linear,
        fused.plain_norm_linear,
        lambda width, units: [(units, width)],
        lambda _, units: units,
        (1, 3),
    ),
}
CHECKED = [
    ("gated_feed_forward", 64, 128, 100_003),
    ("gated_feed_forward", 128, 256, 50_001),
    ("gated_feed_forward", 32, 64, 777),
    ("gated_feed_forward", 48, 96, 4_099),
    ("gated_feed_forward", 96, 192, 20_011),
    ("gated_feed_forward", 64, 256, 9_999),
    ("norm_linear", 64, 192, 100_003),
    ("norm_linear", 64, 384, 9_999),
    ("norm_linear", 64, 512, 9_999),
    ("norm_linear", 48, 96, 777),
    ("norm_linear", 128, 512, 50_001),
    ("norm_linear", 96, 160, 4_099),
]
TIMED = [
    ("gated_feed_forward", 64, 128, 2_000_000),
    ("gated_feed_forward", 128, 256, 200_000),
    ("norm_linear", 64, 192, 2_000_000),
    ("norm_linear", 128, 512, 200_000),
]

# For --tune: (tokens, hidden units, warps, stages, programs a multiprocessor). The streamed kernels of width 64 are
# what the resident ones have to beat.
CANDIDATES: dict[tuple[str, int], list[tuple[int, int, int, int, int]]] = {
    ("forward_resident", 64): [(64, 64, 4, 3, 3), (64, 32, 4, 3, 3), (64, 64, 4, 4, 2), (128, 64, 8, 3, 1)],
    ("backward_resident", 64): [(64, 128, 8, 3, 1), (64, 128, 8, 2, 1)],
    ("forward_streamed", 64): [(128, 32, 8, 3, 1), (64, 64, 4, 3, 1)],
    ("input_gradient_streamed", 64): [(128, 32, 8, 3, 1), (64, 32, 4, 3, 1)],
    ("weight_gradients_streamed", 64): [(64, 32, 4, 3, 3), (128, 32, 8, 3, 2), (128, 64, 8, 3, 1)],
    ("forward_streamed", 128): [(128, 64, 8, 3, 1), (128, 32, 8, 3, 1), (128, 32, 8, 4, 1), (64, 32, 4, 3, 1)],
    ("input_gradient_streamed", 128): [(128, 32, 8, 3, 1), (128, 32, 8, 4, 1), (64, 32, 4, 3, 1)],
    ("weight_gradients_streamed", 128): [(64, 32, 4, 3, 2), (128, 32, 8, 3, 1), (128, 64, 8, 2, 1)],
}

Inputs = tuple[Tensor, list[Tensor], Tensor]


def inputs(layer: Layer, width: int, units: int, tokens: int, seed: int = 0) -> Inputs:
    """Tokens in bfloat16  (T, D), float32 weights, and a gradient of the output in bfloat16  (T, outputs)."""
    generator = torch.Generator(DEVICE).manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, device=DEVICE, generator=generator)

    weights = [normal(*shape) / shape[1] ** 0.5 for shape in layer.weights(width, units)]
    return normal(tokens, width).bfloat16(), weights, normal(tokens, layer.outputs(width, units)).bfloat16()


def with_gradients(function: Callable[..., Tensor], x: Tensor, weights: Sequence[Tensor], dy: Tensor) -> list[Tensor]:
    """The output and the gradients of x and of the weights."""
    arguments = [argument.detach().requires_grad_() for argument in (x, *weights)]
    y = function(*arguments)
    return [y.detach(), *torch.autograd.grad(y, arguments, dy)]


def relative_error(value: Tensor, reference: Tensor) -> float:
    return float((value.double() - reference).norm() / reference.norm())


def check() -> bool:
    """Print the relative error of each result for each shape, and say whether all are right."""
    print(f"{'layer':<18} {'D':>4} {'U':>4} {'T':>8}   relative error of y, dx, d weights: fused (plain)")
    good = True
    # New memory is filled with NaN from here on, so that an element nobody wrote shows.
    torch.use_deterministic_algorithms(True, warn_only=True)
    for name, *shape in CHECKED:
        layer = LAYERS[name]
        x, weights, dy = inputs(layer, *shape)
        values, again = (with_gradients(layer.fused, x, weights, dy) for _ in range(2))
        plain = with_gradients(layer.plain, x, weights, dy)
        rounded = [weight.bfloat16().double() for weight in weights]
        references = with_gradients(layer.plain, x.double(), rounded, dy.double())
        errors = [relative_error(*pair) for pair in zip(values, references, strict=True)]
        usual = [relative_error(*pair) for pair in zip(plain, references, strict=True)]
        # NaN compares false, so it never passes.
        close = all(error < max(4e-3, 1.5 * other) for error, other in zip(errors, usual, strict=True))
        same = all(torch.equal(one, other) for one, other in zip(values, again, strict=True))
        good = good and close and same
        pairs = "  ".join(f"{error:.1e} ({other:.1e})" for error, other in zip(errors, usual, strict=True))
        verdict = "" if close and same else "  WRONG" if not close else "  DIFFERS BETWEEN RUNS"
        print(f"{name:<18} {shape[0]:>4} {shape[1]:>4} {shape[2]:>8}   {pairs}{verdict}")
    torch.use_deterministic_algorithms(False)
    return good


def check_long() -> bool:
    """Whether the last tokens of a tensor with more than 2³¹ elements come out as they do alone."""
    good = True
    for name, width, units in (
        ("gated_feed_forward", 64, 128),
        ("gated_feed_forward", 128, 256),
        ("norm_linear", 64, 192),
        ("norm_linear", 128, 256),
    ):
        layer = LAYERS[name]
        x, weights, dy = inputs(layer, width, units, 2**31 // width + 99)
        whole = with_gradients(layer.fused, x, weights, dy)
        alone = with_gradients(layer.fused, x[-99:], weights, dy[-99:])
        good = good and all(torch.equal(one[-99:], other) for one, other in zip(whole[:2], alone[:2], strict=True))
    print(f"more than 2³¹ elements: {'right' if good else 'WRONG'}")
    return good


def check_compiled() -> bool:
    """Whether a compiled region with changing sizes, under autocast, gives what eager code gives."""

    def region(x: Tensor, w_gate: Tensor, w_value: Tensor, w_out: Tensor) -> Tensor:
        y = fused.gated_feed_forward(2 * fused.gated_feed_forward(x, w_gate, w_value, w_out), w_gate, w_value, w_out)
        return y * fused.norm_linear(y, w_out @ w_gate)

    compiled = torch.compile(region, dynamic=True, fullgraph=True)
    worst = 0.0
    for tokens in (1_000, 3_333):
        x, weights, dy = inputs(LAYERS["gated_feed_forward"], 64, 128, tokens)
        with torch.autocast(DEVICE, torch.bfloat16):
            eager = with_gradients(region, x, weights, dy)
            values = with_gradients(compiled, x, weights, dy)
        worst = max(worst, *(relative_error(v, e.double()) for v, e in zip(values, eager, strict=True)))
    good = worst < 1e-2
    print(f"compiled against eager: {worst:.1e}{'' if good else '  WRONG'}")
    return good


def seconds(run: Callable[[int], object], repeats: int = 20) -> float:
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


def ceilings() -> tuple[float, float]:
    """Bytes and floating-point operations a second this device reaches: a large copy, a large matrix product."""
    source, target = torch.randn(2, 2**28, device=DEVICE)
    copy = seconds(lambda i: target.copy_(source))
    a, b = torch.randn(2, 8192, 8192, device=DEVICE, dtype=torch.bfloat16)
    product = seconds(lambda i: a @ b)
    return 2 * source.nbytes / copy, 2 * 8192**3 / product


def time_against_plain() -> None:
    bytes_a_second, operations_a_second = ceilings()
    print(f"ceilings here: {bytes_a_second / 1e12:.2f} TB/s, {operations_a_second / 1e12:.0f} TFLOP/s (bfloat16)")
    print("layer                 D    U        T     pass  fused ms  plain ms   TB/s  TFLOP/s  floor ms")
    for name, width, units, tokens in TIMED:
        layer = LAYERS[name]
        sets = [inputs(layer, width, units, tokens, seed) for seed in range(3)]
        outputs = layer.outputs(width, units)
        # What must move: forward reads x and writes y, backward reads x and dy and writes dx.
        moved = 2 * tokens * (width + outputs), 2 * tokens * (3 * width + 2 * outputs)

        def forward(function: Callable[..., Tensor], sets: list[Inputs] = sets) -> float:
            with torch.no_grad():
                return seconds(lambda i: function(sets[i % 3][0], *sets[i % 3][1]))

        def both(function: Callable[..., Tensor], sets: list[Inputs] = sets) -> float:
            return seconds(lambda i: with_gradients(function, *sets[i % 3]))

        plain = torch.compile(layer.plain, dynamic=True)
        for work, measure in enumerate((forward, both)):
            fast, slow = measure(layer.fused), measure(plain)
            computed = layer.products[work] * 2 * tokens * width * units
            floor = max(moved[work] / bytes_a_second, computed / operations_a_second)
            print(
                f"{name:<18} {width:>4} {units:>4} {tokens:>8} {measure.__name__:>8} "
                f"{1e3 * fast:>9.3f} {1e3 * slow:>9.3f} "
                f"{moved[work] / fast / 1e12:>6.2f} {computed / fast / 1e12:>8.0f} {1e3 * floor:>9.3f}"
            )


def tune() -> None:
    """Time every candidate launch of the feed-forward kernels; the time is that of the whole pass."""
    from causal_arrow.encoders.fused import feed_forward_kernels as kernels
    from causal_arrow.encoders.fused.tiles import Launch

    layer = LAYERS["gated_feed_forward"]
    for (name, block_width), candidates in CANDIDATES.items():
        width, units, tokens = next(
            shape for timed, *shape in TIMED if LAYERS[timed] is layer and shape[0] == block_width
        )
        sets = [inputs(layer, width, units, tokens, seed) for seed in range(3)]

        def run(i: int, forward: bool = name.startswith("forward"), sets: list[Inputs] = sets) -> object:
            x, (gate, value, out), dy = sets[i % 3]
            weights = packed(gate, value, out, torch.bfloat16)
            return kernels.forward(x, weights) if forward else kernels.backward(dy, x, weights)

        kept, resident = kernels.LAUNCHES[name, block_width], dict(kernels.RESIDENT)
        if name.endswith("streamed"):
            kernels.RESIDENT.clear()
        for values in candidates:
            launch = kernels.LAUNCHES[name, block_width] = Launch(*values)
            try:
                result = f"{1e3 * seconds(run):.3f} ms"
            except Exception as error:  # a candidate that does not fit the device is an answer too
                result = f"{type(error).__name__}: {str(error).splitlines()[0][:60]}"
            print(f"{name:<28} {values!s:<22} {result}{' (in use)' if launch == kept else ''}")
        kernels.LAUNCHES[name, block_width] = kept
        kernels.RESIDENT.update(resident)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m causal_arrow.encoders.fused", description=__doc__)
    parser.add_argument("--tune", action="store_true", help="also time other launches of each kernel")
    options = parser.parse_args()
    x = torch.empty(1, 64, dtype=torch.bfloat16, device=DEVICE if torch.cuda.is_available() else "cpu")
    if not fused._kernels_apply(x, 128):
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
