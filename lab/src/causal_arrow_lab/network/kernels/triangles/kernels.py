"""The changes of layout around a triangle product as Triton kernels: tiles turned on chip, read once and written once.

This module imports triton: only the launchers of `causal_arrow_lab.network.kernels.triangles` should import it.
"""
# The bodies below are Triton's language, not Python: types say nothing there.
# mypy: ignore-errors

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from causal_arrow_lab.network.kernels.fused.kernels import EPSILON

# T pairs of a task, D width. Channels last: (T, D) or (T, 4D); channels first: (D, T).

BLOCK_PAIRS, BLOCK_CHANNELS = 64, 64  # of the gating kernels
NORM_BLOCK_PAIRS = 32  # the norm needs all channels of its pairs at once


@triton.jit(do_not_specialize=["pairs"])
def _gate_kernel(sides_ptr, out_ptr, pairs, WIDTH: tl.constexpr, SIDE: tl.constexpr, BLOCK_PAIRS: tl.constexpr,
                 BLOCK_CHANNELS: tl.constexpr):  # fmt: skip
    task = tl.program_id(2).to(tl.int64)
    pair = tl.program_id(0) * BLOCK_PAIRS + tl.arange(0, BLOCK_PAIRS)
    channel = tl.program_id(1) * BLOCK_CHANNELS + tl.arange(0, BLOCK_CHANNELS)
    inside = (pair[:, None] < pairs) & (channel[None, :] < WIDTH)
    start = sides_ptr + task * pairs * (4 * WIDTH) + SIDE * WIDTH
    place = pair[:, None] * (4 * WIDTH) + channel[None, :]
    value = tl.load(start + place, mask=inside, other=0.0).to(tl.float32)
    gate = tl.load(start + 2 * WIDTH + place, mask=inside, other=0.0).to(tl.float32)
    product = (value * tl.sigmoid(gate)).to(out_ptr.dtype.element_ty)
    target = out_ptr + task * pairs * WIDTH + channel[:, None] * pairs + pair[None, :]
    tl.store(target, tl.trans(product), mask=tl.trans(inside))


@triton.jit(do_not_specialize=["pairs"])
def _gate_backward_kernel(d_out_ptr, sides_ptr, d_sides_ptr, pairs, WIDTH: tl.constexpr, SIDE: tl.constexpr,
                          BLOCK_PAIRS: tl.constexpr, BLOCK_CHANNELS: tl.constexpr):  # fmt: skip
    task = tl.program_id(2).to(tl.int64)
    pair = tl.program_id(0) * BLOCK_PAIRS + tl.arange(0, BLOCK_PAIRS)
    channel = tl.program_id(1) * BLOCK_CHANNELS + tl.arange(0, BLOCK_CHANNELS)
    inside = (pair[:, None] < pairs) & (channel[None, :] < WIDTH)
    source = d_out_ptr + task * pairs * WIDTH + channel[:, None] * pairs + pair[None, :]
    d_product = tl.trans(tl.load(source, mask=tl.trans(inside), other=0.0)).to(tl.float32)
    offset = task * pairs * (4 * WIDTH) + SIDE * WIDTH
    place = pair[:, None] * (4 * WIDTH) + channel[None, :]
    value = tl.load(sides_ptr + offset + place, mask=inside, other=0.0).to(tl.float32)
    opened = tl.sigmoid(tl.load(sides_ptr + offset + 2 * WIDTH + place, mask=inside, other=0.0).to(tl.float32))
    d_value = d_product * opened
    d_gate = d_value * value * (1 - opened)
    target = d_sides_ptr + offset + place
    tl.store(target, d_value.to(d_sides_ptr.dtype.element_ty), mask=inside)
    tl.store(target + 2 * WIDTH, d_gate.to(d_sides_ptr.dtype.element_ty), mask=inside)


@triton.jit(do_not_specialize=["pairs"])
def _norm_kernel(products_ptr, out_ptr, pairs, WIDTH: tl.constexpr, BLOCK_PAIRS: tl.constexpr,
                 BLOCK_WIDTH: tl.constexpr):  # fmt: skip
    task = tl.program_id(1).to(tl.int64)
    pair = tl.program_id(0) * BLOCK_PAIRS + tl.arange(0, BLOCK_PAIRS)
    channel = tl.arange(0, BLOCK_WIDTH)
    inside = (channel[:, None] < WIDTH) & (pair[None, :] < pairs)
    source = products_ptr + task * pairs * WIDTH + channel[:, None] * pairs + pair[None, :]
    x = tl.trans(tl.load(source, mask=inside, other=0.0)).to(tl.float32)  # (BLOCK_PAIRS, BLOCK_WIDTH)
    x = x * tl.rsqrt(tl.sum(x * x, 1)[:, None] / WIDTH + EPSILON)
    target = out_ptr + task * pairs * WIDTH + pair[:, None] * WIDTH + channel[None, :]
    tl.store(target, x.to(out_ptr.dtype.element_ty), mask=tl.trans(inside))


@triton.jit(do_not_specialize=["pairs"])
def _norm_backward_kernel(d_out_ptr, products_ptr, d_products_ptr, pairs, WIDTH: tl.constexpr,
                          BLOCK_PAIRS: tl.constexpr, BLOCK_WIDTH: tl.constexpr):  # fmt: skip
    task = tl.program_id(1).to(tl.int64)
    pair = tl.program_id(0) * BLOCK_PAIRS + tl.arange(0, BLOCK_PAIRS)
    channel = tl.arange(0, BLOCK_WIDTH)
    inside = (channel[:, None] < WIDTH) & (pair[None, :] < pairs)
    place = task * pairs * WIDTH + channel[:, None] * pairs + pair[None, :]
    x = tl.load(products_ptr + place, mask=inside, other=0.0).to(tl.float32)  # (BLOCK_WIDTH, BLOCK_PAIRS)
    source = d_out_ptr + task * pairs * WIDTH + pair[:, None] * WIDTH + channel[None, :]
    dy = tl.trans(tl.load(source, mask=tl.trans(inside), other=0.0)).to(tl.float32)
    rho = tl.rsqrt(tl.sum(x * x, 0)[None, :] / WIDTH + EPSILON)
    dx = rho * (dy - x * (tl.sum(dy * x, 0)[None, :] * (rho * rho / WIDTH)))
    tl.store(d_products_ptr + place, dx.to(d_products_ptr.dtype.element_ty), mask=inside)


def gate(sides: Tensor) -> tuple[Tensor, Tensor]:
    """Left and right sides times their gates, channels first, from `sides` (B, P, P, 4D).  2 × (B, D, P, P)"""
    tasks, variables, _, width = sides.shape
    outputs = tuple(sides.new_empty((tasks, width // 4, variables, variables)) for _ in range(2))
    with torch.cuda.device_of(sides):
        for side, output in enumerate(outputs):
            _gate_kernel[_grid(tasks, variables, width // 4)](
                sides, output, variables**2, width // 4, side, BLOCK_PAIRS, BLOCK_CHANNELS, num_warps=4
            )
    return outputs


def gate_backward(d_left: Tensor, d_right: Tensor, sides: Tensor) -> Tensor:
    """Gradient of `sides` (B, P, P, 4D)."""
    tasks, variables, _, width = sides.shape
    d_sides = torch.empty_like(sides)
    with torch.cuda.device_of(sides):
        for side, d_output in enumerate((d_left, d_right)):
            _gate_backward_kernel[_grid(tasks, variables, width // 4)](
                d_output, sides, d_sides, variables**2, width // 4, side, BLOCK_PAIRS, BLOCK_CHANNELS, num_warps=4
            )
    return d_sides


def norm(products: Tensor) -> Tensor:
    """Products (B, D, P, P) with channels last, normalized over them.  (B, P, P, D)"""
    tasks, width, variables, _ = products.shape
    output = products.new_empty((tasks, variables, variables, width))
    grid, block = (triton.cdiv(variables**2, NORM_BLOCK_PAIRS), tasks), triton.next_power_of_2(width)
    with torch.cuda.device_of(products):
        _norm_kernel[grid](products, output, variables**2, width, NORM_BLOCK_PAIRS, block, num_warps=4)
    return output


def norm_backward(d_normed: Tensor, products: Tensor) -> Tensor:
    """Gradient of `products` (B, D, P, P)."""
    tasks, width, variables, _ = products.shape
    d_products = torch.empty_like(products)
    grid, block = (triton.cdiv(variables**2, NORM_BLOCK_PAIRS), tasks), triton.next_power_of_2(width)
    with torch.cuda.device_of(products):
        _norm_backward_kernel[grid](
            d_normed, products, d_products, variables**2, width, NORM_BLOCK_PAIRS, block, num_warps=4
        )
    return d_products


def _grid(tasks: int, variables: int, width: int) -> tuple[int, int, int]:
    return triton.cdiv(variables**2, BLOCK_PAIRS), triton.cdiv(width, BLOCK_CHANNELS), tasks
