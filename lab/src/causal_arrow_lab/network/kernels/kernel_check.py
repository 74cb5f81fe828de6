"""Whether kernels are right, and how fast they are: what the checks of all families share.

`python -m causal_arrow_lab.network` runs it on a GPU; the module `checks` of each family lists its checks.
Right means: by the kernels, as close to a float64 reference as plain bfloat16 torch is, every element written, the same
bits twice, the same bits from compiled code under autocast, and no trouble beyond 2³¹ elements.
"""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor

DEVICE = "cuda"
COMPILER = "inductor"

LAST = 99  # entries along the first axis that must come out of a huge tensor as they do alone

Sizes = tuple[int, ...]
Function = Callable[..., Any]  # of tensors, to a tensor or a tuple of them
Draw = Callable[..., Tensor]  # a shape to normal numbers in bfloat16
LaunchKey = tuple[str, int]


class Inputs(NamedTuple):
    arguments: list[Tensor]
    d_outputs: list[Tensor]
    """Gradients of the outputs."""


@dataclass(frozen=True)
class Operation:
    """An operation that has kernels: what it should equal, the least work it takes, and at which sizes to try it."""

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
    product: Callable[..., int] = lambda *sizes: 0
    """Floating-point operations of one matrix product, from the sizes."""
    products: tuple[int, int] = (0, 0)
    """Number of them: forward, backward."""
    launches: Callable[[], dict[LaunchKey, Any]] | None = None
    """The table of launches in use. A function, because the table's module imports triton."""
    candidates: Mapping[LaunchKey, tuple[Sizes, Sequence[Sizes]]] = field(default_factory=dict)
    """For tuning: the sizes that launch this kernel, and the fields of each launch to try."""

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

    Both over all elements and in the worst of them: one wrong token among a million hardly shows in a norm. NaN
    compares false, so it never passes.
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
    """Whatever torch.empty and its kind return in here is NaN, so that an element nobody wrote shows."""
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


def _as_tuple(outputs: Tensor | tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return (outputs,) if isinstance(outputs, Tensor) else outputs


# Checks: each prints a line, and says whether all is well


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


class Ceilings(NamedTuple):
    """The rates that this device reaches."""

    bytes_a_second: float
    operations_a_second: float

    def floor(self, moved: float, computed: float) -> float:
        """Seconds that so many bytes and operations take at least."""
        return max(moved / self.bytes_a_second, computed / self.operations_a_second)


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


def ceilings() -> Ceilings:
    """The rates of a large copy, reading and writing, and of a large matrix product in bfloat16."""
    source, target = torch.randn(2, 2**28, device=DEVICE)
    copy = seconds(lambda i: target.copy_(source))
    a, b = torch.randn(2, 8192, 8192, device=DEVICE, dtype=torch.bfloat16)
    product = seconds(lambda i: a @ b)
    return Ceilings(2 * source.nbytes / copy, 2 * 8192**3 / product)


def time_against_plain(operations: Sequence[Operation]) -> None:
    """Print a table: the times of the kernels and of compiled plain torch, and the least that this device allows."""
    limits = ceilings()
    print(
        f"\nceilings here: {limits.bytes_a_second / 1e12:.2f} TB/s, "
        f"{limits.operations_a_second / 1e12:.0f} TFLOP/s (bfloat16)"
    )
    print(f"{'operation':<18}  {'sizes':<26}  pass     fused ms  plain ms   TB/s  TFLOP/s  floor ms", flush=True)
    for operation in operations:
        compiled = torch.compile(operation.plain, dynamic=True, backend=COMPILER)
        for sizes in operation.timed:
            sets = [operation.drawn(sizes, seed) for seed in range(3)]
            for name, (moved, computed) in least_work(operation, sizes, sets[0]).items():
                fused = seconds_of_pass(name, operation.function, sets)
                plain = seconds_of_pass(name, compiled, sets)
                floor = limits.floor(moved, computed)
                print(
                    f"{operation.name:<18}  {operation.in_words(sizes):<26}  {name:<7} {1e3 * fused:>9.3f} "
                    f"{1e3 * plain:>9.3f} {moved / fused / 1e12:>6.2f} {computed / fused / 1e12:>8.0f} "
                    f"{1e3 * floor:>9.3f}",
                    flush=True,
                )


def least_work(operation: Operation, sizes: Sizes, inputs: Inputs) -> dict[str, tuple[int, int]]:
    """Bytes that must move and operations that must be done, by pass.

    Forward reads the arguments and writes the outputs; backward reads the arguments again and the gradients of the
    outputs, and writes the gradients of the arguments.
    """
    arguments, outputs = (sum(tensor.nbytes for tensor in tensors) for tensors in inputs)
    product = operation.product(*sizes)
    forward, backward = operation.products
    return {
        "forward": (arguments + outputs, forward * product),
        "both": (3 * arguments + 2 * outputs, (forward + backward) * product),
    }


def tune(operation: Operation) -> None:
    """Time every candidate for each launch; the time is that of the whole pass."""
    launches = operation.launches() if operation.launches else {}
    for key, (sizes, candidates) in operation.candidates.items():
        sets = [operation.drawn(sizes, seed) for seed in range(3)]
        kept = launches[key]
        for values in candidates:
            launches[key] = type(kept)(*values)
            mark = " (in use)" if launches[key] == kept else ""
            try:
                name = "forward" if key[0].startswith("forward") else "both"
                result = f"{1e3 * seconds_of_pass(name, operation.function, sets):.3f} ms"
            except Exception as error:  # a candidate that does not fit the device is an answer too
                result = f"{type(error).__name__}: {str(error).splitlines()[0][:60]}"
            print(f"{operation.name:<18}  {key[0]:<25} {key[1]:>3}  {values!s:<20}  {result}{mark}", flush=True)
        launches[key] = kept
