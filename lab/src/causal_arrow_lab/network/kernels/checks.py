"""Checks and timings of the kernels, which `python -m causal_arrow_lab.network` runs on a GPU.

Right means: by the kernels, as close to a float64 reference as plain bfloat16 torch is, every element written, the same
bits twice, the same bits from compiled code under autocast, and no trouble beyond 2³¹ elements.
"""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from causal_arrow_lab.network.kernels import fused, mixing, triangles

DEVICE = "cuda"
COMPILER = "inductor"

LAST = 99  # entries along the first axis that must come out of a huge tensor as they do alone

Sizes = tuple[int, ...]
Function = Callable[..., Any]  # of tensors, to a tensor or a tuple of them
Draw = Callable[..., Tensor]  # a shape to normal numbers in bfloat16


class Inputs(NamedTuple):
    arguments: list[Tensor]
    d_outputs: list[Tensor]
    """Gradients of the outputs."""


@dataclass(frozen=True)
class Operation:
    """An operation that has kernels: what it should equal, and at which sizes to try it."""

    name: str
    function: Function
    """The public function: uses the kernels where they apply."""
    plain: Function
    axes: str
    """Names of the sizes, with blanks between them."""
    inputs: Callable[..., Inputs]
    """Inputs from a `Draw` and the sizes."""
    batched: int
    """Number of arguments that run along the first axis; results for one entry there depend on no other entry."""
    checked: Sequence[Sizes]
    """Odd ones too. The first two should launch the same kernels: compiled code is tried with both."""
    huge: Sequence[Sizes]
    """With more than 2³¹ elements in a tensor. Tokens are LAST more than fill whole tiles: they begin one."""
    timed: Sequence[Sizes]

    def drawn(self, sizes: Sizes, seed: int = 0) -> Inputs:
        """Random inputs on the device."""
        generator = torch.Generator(DEVICE).manual_seed(seed)
        return self.inputs(
            lambda *shape: torch.randn(*shape, generator=generator, device=DEVICE, dtype=torch.bfloat16), *sizes
        )

    def in_words(self, sizes: Sizes) -> str:
        return " ".join(f"{axis}={size}" for axis, size in zip(self.axes.split(), sizes, strict=True))


# What a function gives, and how close that is


def with_gradients(function: Function, arguments: Sequence[Tensor], d_outputs: Sequence[Tensor]) -> list[Tensor]:
    """The outputs of a function, then the gradients of its arguments."""
    arguments = [argument.detach().requires_grad_() for argument in arguments]
    outputs = _as_tuple(function(*arguments))
    return [*(output.detach() for output in outputs), *torch.autograd.grad(outputs, arguments, d_outputs)]


def relative_error(value: Tensor, reference: Tensor) -> float:
    return float((value.double() - reference).norm() / reference.norm())


def worst_error(value: Tensor, reference: Tensor) -> float:
    """The largest error of an element, in units of the reference's root mean square."""
    return float((value.double() - reference).abs().max() / reference.square().mean().sqrt())


def is_as_close(value: Tensor, plain: Tensor, reference: Tensor) -> bool:
    """Whether a value has the type of the plain path's, and is about as close to the reference.

    In all elements together and in the worst one: one wrong token among a million hardly shows in a norm.
    """
    close = relative_error(value, reference) < max(4e-3, 1.5 * relative_error(plain, reference))
    nowhere_far = worst_error(value, reference) < max(0.05, 3 * worst_error(plain, reference))
    return value.dtype == plain.dtype and value.shape == plain.shape and close and nowhere_far


def by_kernels(function: Function, arguments: Sequence[Tensor]) -> bool:
    """Whether one of our operators made what a function gives: autograd names the maker of a tensor."""
    outputs = _as_tuple(function(*(argument.detach().requires_grad_() for argument in arguments)))
    return all(output.grad_fn is not None and "causal_arrow" in output.grad_fn.name() for output in outputs)


@contextlib.contextmanager
def new_memory_is_nan() -> Iterator[None]:
    """Fill new memory with NaN inside, so that an element nobody wrote shows."""
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


def _as_tuple(outputs: Tensor | tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return (outputs,) if isinstance(outputs, Tensor) else outputs


# Checks: each prints a line and returns whether all is well


def check(operation: Operation) -> bool:
    """Every check of an operation, at all of its sizes."""
    results = [check_results(operation, sizes) for sizes in operation.checked]
    results += [check_huge(operation, sizes) for sizes in operation.huge]
    return all([*results, check_compiled(operation, operation.checked[:2])])


def check_results(operation: Operation, sizes: Sizes) -> bool:
    """Outputs and gradients against float64; the line shows their relative errors, and those of plain bfloat16."""
    arguments, d_outputs = operation.drawn(sizes)
    with new_memory_is_nan():
        values, again = (with_gradients(operation.function, arguments, d_outputs) for _ in range(2))
    plain = with_gradients(operation.plain, arguments, d_outputs)
    references = with_gradients(
        operation.plain, [argument.bfloat16().double() for argument in arguments], [d.double() for d in d_outputs]
    )
    verdicts = {
        "WRONG": all(map(is_as_close, values, plain, references)),
        "DIFFERS BETWEEN RUNS": all(
            torch.allclose(one, other, rtol=0, atol=0, equal_nan=True) for one, other in zip(values, again, strict=True)
        ),
        "NOT BY THE KERNELS": by_kernels(operation.function, arguments),
    }
    errors = [
        f"{relative_error(value, reference):.1e} ({relative_error(other, reference):.1e})"
        for value, other, reference in zip(values, plain, references, strict=True)
    ]
    return _report(operation, operation.in_words(sizes), "  ".join(errors), verdicts)


def check_huge(operation: Operation, sizes: Sizes) -> bool:
    """The last entries of a tensor with more than 2³¹ elements come out as they do alone."""
    arguments, d_outputs = operation.drawn(sizes)
    whole = with_gradients(operation.function, arguments, d_outputs)
    last = [argument[-LAST:] if i < operation.batched else argument for i, argument in enumerate(arguments)]
    alone = with_gradients(operation.function, last, [gradient[-LAST:] for gradient in d_outputs])
    # Gradients of later arguments are sums over more than the last entries, or sums in another order.
    compared = len(d_outputs) + 1
    same = all(torch.equal(one[-LAST:], other) for one, other in zip(whole[:compared], alone[:compared], strict=True))
    return _report(operation, operation.in_words(sizes), "its end as it is alone", {"WRONG": same})


def check_compiled(operation: Operation, changing: Sequence[Sizes]) -> bool:
    """A compiled region with changing sizes, under autocast, gives the bits that eager code gives."""

    def region(first: Tensor, *others: Tensor) -> tuple[Tensor, ...]:
        # Doubling is exact, and gives the compiler something to do on both sides.
        return tuple(2 * output for output in _as_tuple(operation.function(2 * first, *others)))

    torch.compiler.reset()  # `region` is the same code for every operation, and the compiler takes only so many of it
    compiled = torch.compile(region, dynamic=True, fullgraph=True, backend=COMPILER)
    same = True
    for sizes in changing:
        inputs = operation.drawn(sizes)
        with torch.autocast(DEVICE, torch.bfloat16):
            eager, values = (with_gradients(function, *inputs) for function in (region, compiled))
        same = same and all(map(torch.equal, values, eager))
    return _report(operation, "compiled, under autocast", "as eager", {"WRONG": same})


def _report(operation: Operation, what: str, result: str, verdicts: Mapping[str, bool]) -> bool:
    wrong = [verdict for verdict, good in verdicts.items() if not good]
    print(f"{operation.name:<18}  {what:<26}  {'  '.join([result, *wrong])}", flush=True)
    return not wrong


# Times


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


def seconds_of_pass(name: str, function: Function, sets: Sequence[Inputs]) -> float:
    """Median time of the forward pass alone, or of both."""

    def run(i: int) -> object:
        inputs = sets[i % len(sets)]
        if name == "both":
            return with_gradients(function, *inputs)
        with torch.no_grad():
            return function(*inputs.arguments)

    return seconds(run)


def time_against_plain(operations: Sequence[Operation]) -> None:
    """Print a table: the times of the kernels and of compiled plain torch."""
    print(f"\n{'operation':<18}  {'sizes':<26}  pass     fused ms  plain ms", flush=True)
    for operation in operations:
        compiled = torch.compile(operation.plain, dynamic=True, backend=COMPILER)
        for sizes in operation.timed:
            sets = [operation.drawn(sizes, seed) for seed in range(3)]
            for name in ("forward", "both"):
                fused, plain = (seconds_of_pass(name, each, sets) for each in (operation.function, compiled))
                times = f"{1e3 * fused:>9.3f} {1e3 * plain:>9.3f}"
                print(f"{operation.name:<18}  {operation.in_words(sizes):<26}  {name:<7} {times}", flush=True)


# The operations

# T tokens, D width, U units: hidden units of the feed-forward block, outputs of the linear layer


def _weights(draw: Draw, outputs: int, inputs: int) -> Tensor:
    weights: Tensor = draw(outputs, inputs).float() / inputs**0.5
    return weights


def _feed_forward_inputs(draw: Draw, tokens: int, width: int, units: int) -> Inputs:
    shapes = (units, width), (units, width), (width, units)
    return Inputs([draw(tokens, width), *(_weights(draw, *shape) for shape in shapes)], [draw(tokens, width)])


def _norm_linear_inputs(draw: Draw, tokens: int, width: int, units: int) -> Inputs:
    return Inputs([draw(tokens, width), _weights(draw, units, width)], [draw(tokens, units)])


_NARROW, _WIDE = (2_000_000, 64, 128), (200_000, 128, 512)  # of the resident kernels and of the streamed ones

FUSED = (
    Operation(
        name="gated_feed_forward",
        function=fused.gated_feed_forward,
        plain=fused.plain_gated_feed_forward,
        axes="T D U",
        inputs=_feed_forward_inputs,
        batched=1,
        checked=[(100_003, 64, 128), (777, 64, 128), (50_001, 128, 256), (4_099, 48, 96), (203, 48, 128)],
        huge=[(2**31 // 64 + LAST, 64, 128), (2**31 // 128 + LAST, 128, 256)],
        timed=[_NARROW, (200_000, 128, 256)],
    ),
    Operation(
        name="norm_linear",
        function=fused.norm_linear,
        plain=fused.plain_norm_linear,
        axes="T D U",
        inputs=_norm_linear_inputs,
        batched=1,
        checked=[(100_003, 64, 128), (777, 64, 128), (9_999, 64, 512), (50_001, 128, 512), (203, 48, 96)],
        huge=[(2**31 // 128 + LAST, 64, 128), (2**31 // 512 + LAST, 128, 512)],
        timed=[_NARROW, _WIDE],
    ),
)


# B tasks, N observations, P variables, D width, H heads


def _inputs(draw: Draw, tasks: int, observations: int, variables: int, width: int, heads: int) -> Inputs:
    weights = draw(tasks, heads, variables, variables) / variables**0.5
    cells = (tasks, observations, variables)
    return Inputs([draw(*cells, 2 * width), weights], [draw(*cells, width)])


MIXING = (
    Operation(
        name="mix_cells",
        function=mixing.mix_cells,
        plain=mixing.plain_mix_cells,
        axes="B N P D H",
        inputs=_inputs,
        batched=2,
        checked=[
            (9, 251, 50, 64, 8),
            (3, 77, 37, 64, 8),
            (2, 1, 50, 64, 8),
            (3, 333, 2, 64, 8),
            (5, 77, 17, 64, 8),
            (3, 203, 101, 64, 8),
            (5, 77, 20, 128, 8),
        ],
        huge=[(8_500, 40, 50, 64, 8)],
        timed=[(256, 100, 20, 64, 8), (64, 500, 50, 64, 8), (16, 500, 100, 64, 8)],
    ),
)


# B tasks, P variables, D width


def _sides(draw: Draw, tasks: int, variables: int, width: int) -> Inputs:
    outputs = [draw(tasks, width, variables, variables) for _ in range(2)]
    return Inputs([draw(tasks, variables, variables, 4 * width)], outputs)


def _products(draw: Draw, tasks: int, variables: int, width: int) -> Inputs:
    return Inputs([draw(tasks, width, variables, variables)], [draw(tasks, variables, variables, width)])


_CHECKED = [(3, 30, 128), (5, 17, 128), (2, 101, 128), (7, 5, 24), (3, 1, 128)]
_TIMED = [(64, 50, 128), (16, 100, 128)]

TRIANGLES = (
    Operation(
        name="gated_channels",
        function=triangles.gated_channels,
        plain=triangles.plain_gated_channels,
        axes="B P D",
        inputs=_sides,
        batched=1,
        checked=_CHECKED,
        huge=[(2**31 // (4 * 128 * 100**2) + LAST, 100, 128)],
        timed=_TIMED,
    ),
    Operation(
        name="normed_pairs",
        function=triangles.normed_pairs,
        plain=triangles.plain_normed_pairs,
        axes="B P D",
        inputs=_products,
        batched=1,
        checked=_CHECKED,
        huge=[(2**31 // (128 * 100**2) + LAST, 100, 128)],
        timed=_TIMED,
    ),
)
