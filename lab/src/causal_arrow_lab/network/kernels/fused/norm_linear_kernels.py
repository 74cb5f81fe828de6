"""A linear layer of the normalized tokens, y = rms_norm(x) Wᵀ, as Triton kernels for Hopper GPUs.

Nothing normalized is ever written to memory: forward reads x and writes y, backward reads x and dy and writes dx.
While W and its gradient fit on a multiprocessor (D up to 64, O up to 384) one kernel does the whole backward pass and
reads dy once; beyond that a second kernel reads it again for the gradient of W.
"""
# The jitted bodies are Triton's language, not Python: types say nothing there.
# mypy: ignore-errors

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from causal_arrow_lab.network.kernels.fused.tiles import (
    Launch,
    block_width,
    chunk_of,
    inverse_rms,
    load_tile,
    load_weights,
    options,
    programs_for,
    store_tile,
    tile_count,
)

# T tokens, D width, O outputs


@triton.jit
def _outputs_of_tile(pointer, tile, tokens, first, outputs, BLOCK_TOKENS: tl.constexpr, BLOCK_OUTPUTS: tl.constexpr):
    """Offsets of outputs first, first + 1, ... of a tile of tokens, and which exist.  (BLOCK_TOKENS, BLOCK_OUTPUTS)"""
    token = tl.arange(0, BLOCK_TOKENS)[:, None]
    start = pointer + (tile * tl.full((), BLOCK_TOKENS, tl.int64)) * outputs
    place = start + token * outputs + (first + tl.arange(0, BLOCK_OUTPUTS))[None, :]
    return place, token < tokens - tile * BLOCK_TOKENS


@triton.jit
def _norm_gradient(dn, x, rho, WIDTH: tl.constexpr):
    """The gradient of x, given that of n = ρx.  (T, D)"""
    return rho * (dn - x * (tl.sum(dn * x, 1)[:, None] * (rho * rho / WIDTH)))


@triton.jit(do_not_specialize=["tokens"])
def _forward(x_ptr, weights_ptr, y_ptr, tokens, outputs, WIDTH: tl.constexpr, BLOCK_TOKENS: tl.constexpr,
             BLOCK_WIDTH: tl.constexpr, BLOCK_OUTPUTS: tl.constexpr, STAGES: tl.constexpr):  # fmt: skip
    tile = tl.program_id(0)
    x = load_tile(x_ptr, tile, tokens, WIDTH, BLOCK_TOKENS, BLOCK_WIDTH)
    rho = inverse_rms(x.to(tl.float32), WIDTH)
    for first in tl.range(0, outputs, BLOCK_OUTPUTS, num_stages=STAGES):
        weights = load_weights(weights_ptr, first + tl.arange(0, BLOCK_OUTPUTS), WIDTH, BLOCK_WIDTH)
        y = rho * tl.dot(x, weights.T)
        place, exists = _outputs_of_tile(y_ptr, tile, tokens, first, outputs, BLOCK_TOKENS, BLOCK_OUTPUTS)
        tl.store(place, y.to(x.dtype), mask=exists)


@triton.jit(do_not_specialize=["tokens"])
def _backward_resident(x_ptr, dy_ptr, weights_ptr, dx_ptr, partial_ptr, tokens, OUTPUTS: tl.constexpr,
                       WIDTH: tl.constexpr, BLOCK_TOKENS: tl.constexpr, BLOCK_WIDTH: tl.constexpr,
                       BLOCK_OUTPUTS: tl.constexpr, STAGES: tl.constexpr):  # fmt: skip
    weights, d_weights = (), ()
    for chunk in tl.static_range(OUTPUTS // BLOCK_OUTPUTS):
        unit = chunk * BLOCK_OUTPUTS + tl.arange(0, BLOCK_OUTPUTS)
        weights += (load_weights(weights_ptr, unit, WIDTH, BLOCK_WIDTH),)
        d_weights += (tl.zeros((BLOCK_OUTPUTS, BLOCK_WIDTH), tl.float32),)
    for tile in tl.range(tl.program_id(0), tl.cdiv(tokens, BLOCK_TOKENS), tl.num_programs(0), num_stages=STAGES):
        x = load_tile(x_ptr, tile, tokens, WIDTH, BLOCK_TOKENS, BLOCK_WIDTH)
        rho = inverse_rms(x.to(tl.float32), WIDTH)
        n = (x.to(tl.float32) * rho).to(x.dtype)
        dn = tl.zeros((BLOCK_TOKENS, BLOCK_WIDTH), tl.float32)
        sums = ()
        for chunk in tl.static_range(OUTPUTS // BLOCK_OUTPUTS):
            place, exists = _outputs_of_tile(
                dy_ptr, tile, tokens, chunk * BLOCK_OUTPUTS, OUTPUTS, BLOCK_TOKENS, BLOCK_OUTPUTS
            )
            dy = tl.load(place, mask=exists, other=0.0)
            dn = tl.dot(dy, weights[chunk], dn)
            sums += (tl.dot(dy.T, n, d_weights[chunk]),)
        d_weights = sums
        dx = _norm_gradient(dn, x.to(tl.float32), rho, WIDTH)
        store_tile(dx_ptr, dx, tile, tokens, WIDTH, BLOCK_TOKENS, BLOCK_WIDTH)
    partial = partial_ptr + tl.program_id(0).to(tl.int64) * (OUTPUTS * WIDTH)
    channel = tl.arange(0, BLOCK_WIDTH)[None, :]
    for chunk in tl.static_range(OUTPUTS // BLOCK_OUTPUTS):
        unit = chunk * BLOCK_OUTPUTS + tl.arange(0, BLOCK_OUTPUTS)
        tl.store(partial + unit[:, None] * WIDTH + channel, d_weights[chunk], mask=channel < WIDTH)


@triton.jit(do_not_specialize=["tokens"])
def _input_gradient_streamed(x_ptr, dy_ptr, weights_ptr, dx_ptr, tokens, outputs, WIDTH: tl.constexpr,
                             BLOCK_TOKENS: tl.constexpr, BLOCK_WIDTH: tl.constexpr, BLOCK_OUTPUTS: tl.constexpr,
                             STAGES: tl.constexpr):  # fmt: skip
    tile = tl.program_id(0)
    dn = tl.zeros((BLOCK_TOKENS, BLOCK_WIDTH), tl.float32)
    for first in tl.range(0, outputs, BLOCK_OUTPUTS, num_stages=STAGES):
        weights = load_weights(weights_ptr, first + tl.arange(0, BLOCK_OUTPUTS), WIDTH, BLOCK_WIDTH)
        place, exists = _outputs_of_tile(dy_ptr, tile, tokens, first, outputs, BLOCK_TOKENS, BLOCK_OUTPUTS)
        dn = tl.dot(tl.load(place, mask=exists, other=0.0), weights, dn)
    x = load_tile(x_ptr, tile, tokens, WIDTH, BLOCK_TOKENS, BLOCK_WIDTH).to(tl.float32)
    dx = _norm_gradient(dn, x, inverse_rms(x, WIDTH), WIDTH)
    store_tile(dx_ptr, dx, tile, tokens, WIDTH, BLOCK_TOKENS, BLOCK_WIDTH)


@triton.jit(do_not_specialize=["tokens"])
def _weight_gradient_streamed(x_ptr, dy_ptr, partial_ptr, tokens, outputs, WIDTH: tl.constexpr,
                              BLOCK_TOKENS: tl.constexpr, BLOCK_WIDTH: tl.constexpr, BLOCK_OUTPUTS: tl.constexpr,
                              STAGES: tl.constexpr):  # fmt: skip
    first = tl.program_id(0) * BLOCK_OUTPUTS
    d_weights = tl.zeros((BLOCK_OUTPUTS, BLOCK_WIDTH), tl.float32)
    for tile in tl.range(tl.program_id(1), tl.cdiv(tokens, BLOCK_TOKENS), tl.num_programs(1), num_stages=STAGES):
        x = load_tile(x_ptr, tile, tokens, WIDTH, BLOCK_TOKENS, BLOCK_WIDTH)
        place, exists = _outputs_of_tile(dy_ptr, tile, tokens, first, outputs, BLOCK_TOKENS, BLOCK_OUTPUTS)
        dy = tl.load(place, mask=exists, other=0.0)
        n = (x.to(tl.float32) * inverse_rms(x.to(tl.float32), WIDTH)).to(x.dtype)
        d_weights = tl.dot(dy.T, n, d_weights)
    partial = partial_ptr + tl.program_id(1).to(tl.int64) * (outputs * WIDTH)
    unit, channel = first + tl.arange(0, BLOCK_OUTPUTS), tl.arange(0, BLOCK_WIDTH)[None, :]
    tl.store(partial + unit[:, None] * WIDTH + channel, d_weights, mask=channel < WIDTH)


# The most outputs, for a block width, that `_backward_resident` can hold.
RESIDENT = {64: 384}

# (name of the kernel, block width) -> how to launch it, as in `feed_forward_kernels`
LAUNCHES = {
    ("forward", 64): Launch(64, 64, warps=4, stages=3),
    ("backward_resident", 64): Launch(64, 64, warps=8, stages=3),
    ("input_gradient_streamed", 64): Launch(64, 64, warps=4, stages=3),
    ("weight_gradient_streamed", 64): Launch(64, 64, warps=4, stages=3, programs=4),
    ("forward", 128): Launch(64, 64, warps=4, stages=3),
    ("input_gradient_streamed", 128): Launch(64, 64, warps=4, stages=3),
    ("weight_gradient_streamed", 128): Launch(128, 128, warps=8, stages=3),
}


def forward(x: Tensor, weights: Tensor) -> Tensor:
    """rms_norm(x) Wᵀ for x  (T, D) and W  (O, D).  (T, O)"""
    (tokens, width), outputs = x.shape, weights.shape[0]
    y = x.new_empty((tokens, outputs))
    launch = LAUNCHES["forward", block_width(width)]
    fixed = options(launch, width) | {"BLOCK_OUTPUTS": chunk_of(outputs, launch)}
    with torch.cuda.device_of(x):
        _forward[(tile_count(x, launch),)](x, weights, y, tokens, outputs, **fixed)
    return y


def backward(dy: Tensor, x: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients of x  (T, D) and of W  (O, D) in float32, given those of y  (T, O)."""
    (tokens, width), outputs = x.shape, weights.shape[0]
    dx = torch.empty_like(x)
    with torch.cuda.device_of(x):
        if outputs <= RESIDENT.get(block_width(width), 0):
            launch = LAUNCHES["backward_resident", block_width(width)]
            fixed = options(launch, width) | {"BLOCK_OUTPUTS": chunk_of(outputs, launch)}
            partial = x.new_empty((programs_for(x, launch), *weights.shape), dtype=torch.float32)
            _backward_resident[(partial.shape[0],)](x, dy, weights, dx, partial, tokens, OUTPUTS=outputs, **fixed)
        else:
            launch = LAUNCHES["input_gradient_streamed", block_width(width)]
            fixed = options(launch, width) | {"BLOCK_OUTPUTS": chunk_of(outputs, launch)}
            _input_gradient_streamed[(tile_count(x, launch),)](x, dy, weights, dx, tokens, outputs, **fixed)
            launch = LAUNCHES["weight_gradient_streamed", block_width(width)]
            fixed = options(launch, width) | {"BLOCK_OUTPUTS": chunk_of(outputs, launch)}
            chunks = outputs // fixed["BLOCK_OUTPUTS"]
            partial = x.new_empty((programs_for(x, launch, chunks), *weights.shape), dtype=torch.float32)
            _weight_gradient_streamed[(chunks, partial.shape[0])](x, dy, partial, tokens, outputs, **fixed)
    return dx, partial.sum(0)
