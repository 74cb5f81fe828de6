"""Precision of the network's matrix products: float32, or bfloat16, which some processors and GPUs do faster.

On a processor statistics of the table, streams, norms, heads and the products whose rounding moves answers most stay in
float32 or better. Still, in bfloat16 a probability moves, typically by 0.00003 and seldom by more than 0.01:
docs/evidence/scale.md says how far. So "auto" takes bfloat16 only where it pays: on a processor that has instructions
for it and that is faster with them when tried, for tables that take float32 more than about half a second.
"""

from __future__ import annotations

import contextlib
import time
from functools import lru_cache

import torch

from causal_arrow.errors import check_choice

PRECISIONS = ("auto", "float32", "bfloat16")

LARGE = 1e11
"""Floating-point operations from which "auto" may take bfloat16: 1000 observations of 110 variables."""

WORTH_IT = 0.75
"""The share of float32's time that bfloat16 may take at most, to be called faster."""

TRIAL = (512, 128, 512)
TRIALS = 9
"""Sizes of the matrix products that are tried, and how often: a few milliseconds in all."""


def resolve_precision(precision: str, device: torch.device, operations: float) -> torch.dtype:
    """The type of the matrix products in a pass of so many floating-point operations."""
    check_choice("precision", precision, PRECISIONS)
    if precision == "auto":
        half = device.type == "cpu" and operations >= LARGE and processor_gains()
        return torch.bfloat16 if half else torch.float32
    return torch.bfloat16 if precision == "bfloat16" else torch.float32


def computing_in(dtype: torch.dtype, device: torch.device) -> contextlib.AbstractContextManager[object]:
    """A context in which the network's matrix products are computed in this type."""
    if dtype == torch.float32:
        return contextlib.nullcontext()
    return torch.autocast(device.type, dtype)


@lru_cache(maxsize=1)
def processor_gains() -> bool:
    """Whether this processor has instructions for bfloat16 and is faster with them, tried once per process."""
    return _has_instructions() and _seconds(torch.bfloat16) <= WORTH_IT * _seconds(torch.float32)


def _has_instructions() -> bool:
    asked = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    return any(getattr(torch.cpu, name)() for name in asked if hasattr(torch.cpu, name))


def _seconds(dtype: torch.dtype) -> float:
    """The time of one matrix product, the best of several."""
    rows, inner, columns = TRIAL
    left, right = torch.ones(rows, inner, dtype=dtype), torch.ones(inner, columns, dtype=dtype)
    return min(_timed_product(left, right) for _ in range(TRIALS))


def _timed_product(left: torch.Tensor, right: torch.Tensor) -> float:
    started = time.perf_counter()
    torch.mm(left, right)
    return time.perf_counter() - started


def product_rate(dtype: torch.dtype, device: torch.device, size: int = 2048) -> float:
    """Floating-point operations per second that this machine reaches in one large matrix product, the best of five."""
    left, right = (torch.ones(size, size, dtype=dtype, device=device) for _ in range(2))
    best = float("inf")
    for _ in range(5):
        synchronize(device)
        started = time.perf_counter()
        torch.mm(left, right)
        synchronize(device)
        best = min(best, time.perf_counter() - started)
    return 2 * size**3 / best


def synchronize(device: torch.device) -> None:
    """Wait until a GPU has done all that it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
