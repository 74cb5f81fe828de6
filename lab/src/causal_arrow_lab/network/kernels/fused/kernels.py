"""Token-wise layers as Triton kernels for Hopper GPUs: nothing normalized and no hidden unit is written to memory.

The gated feed-forward block reads x once and writes y once. Two families with the same arithmetic:

- resident (narrow blocks: D up to 64, H = 128): all weights stay on chip while a program walks over its tiles of
  tokens. The backward pass is one kernel, which keeps the weight gradients in registers.
- streamed (everything else): the weights come by from the L2 cache, a chunk of hidden units at a time. The backward
  pass is two kernels, one for the gradient of the input and one for the gradients of the weights.

The gate is evaluated by halves: with u = a / 2 and t = tanh u, which is one instruction on the GPU,
    silu(a) = u + ut,    2 silu'(a) = (1 + t) + silu(a) (1 − t).
The norm is one number a token, ρ = 1 / rms(x), and can be taken out of a product: (ρx)W = ρ(xW). The kernels do so
where that spares a pass over a tile. Gate and value weights lie under each other in one tile, so that one product gives
both. Its halves are in different registers of the same threads, and splitting it costs nothing.

The linear layer of the normalized tokens, y = rms_norm(x) Wᵀ: forward reads x and writes y, backward reads x and dy and
writes dx. While W and its gradient fit on a multiprocessor (D up to 64, O up to 384) one kernel does the whole backward
pass; beyond that a second kernel reads dy again for the gradient of W.
"""
# The jitted bodies are Triton's language, not Python: types say nothing there.
# mypy: ignore-errors

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

# T tokens, D width, H hidden units, O outputs, U units (either). A tile is (BLOCK_TOKENS, BLOCK_WIDTH): D rounded up to
# a power of two, and what lies beyond D is read as zero and never written.

EPSILON = tl.constexpr(1e-6)


@triton.jit
def load_tile(pointer, tile, tokens, WIDTH: tl.constexpr, BLOCK_TOKENS: tl.constexpr, BLOCK_WIDTH: tl.constexpr,
               LAST_USE: tl.constexpr = False):  # fmt: skip
    """The tokens of one tile, zero beyond the last token.  (BLOCK_TOKENS, BLOCK_WIDTH)"""
    token = tl.arange(0, BLOCK_TOKENS)[:, None]
    channel = tl.arange(0, BLOCK_WIDTH)[None, :]
    # 64 bits for where the tile begins, because T · D can pass 2³¹; inside a tile 32 bits do.
    start = pointer + tile * tl.full((), BLOCK_TOKENS * WIDTH, tl.int64)
    inside = token < tokens - tile * BLOCK_TOKENS
    if BLOCK_WIDTH != WIDTH:
        inside = inside & (channel < WIDTH)
    if LAST_USE:
        # A second reading of the same tile. The hint also keeps the compiler from merging it with the first one and
        # holding the whole tile in registers in between.
        return tl.load(start + token * WIDTH + channel, mask=inside, other=0.0, eviction_policy="evict_first")
    return tl.load(start + token * WIDTH + channel, mask=inside, other=0.0)


@triton.jit
def store_tile(pointer, value, tile, tokens, WIDTH: tl.constexpr, BLOCK_TOKENS: tl.constexpr,
                BLOCK_WIDTH: tl.constexpr):  # fmt: skip
    token = tl.arange(0, BLOCK_TOKENS)[:, None]
    channel = tl.arange(0, BLOCK_WIDTH)[None, :]
    start = pointer + tile * tl.full((), BLOCK_TOKENS * WIDTH, tl.int64)
    inside = token < tokens - tile * BLOCK_TOKENS
    if BLOCK_WIDTH != WIDTH:
        inside = inside & (channel < WIDTH)
    tl.store(start + token * WIDTH + channel, value.to(pointer.dtype.element_ty), mask=inside)


@triton.jit
def load_weights(pointer, unit, WIDTH: tl.constexpr, BLOCK_WIDTH: tl.constexpr):
    """Rows `unit`  (U,) of a matrix of weights with rows of length D.  (U, BLOCK_WIDTH)"""
    channel = tl.arange(0, BLOCK_WIDTH)[None, :]
    if BLOCK_WIDTH == WIDTH:
        return tl.load(pointer + unit[:, None] * WIDTH + channel)
    return tl.load(pointer + unit[:, None] * WIDTH + channel, mask=channel < WIDTH, other=0.0)


@triton.jit
def inverse_rms(x, WIDTH: tl.constexpr):
    """1 / rms of each token.  (T, 1)"""
    return tl.rsqrt(tl.sum(x * x, 1)[:, None] / WIDTH + EPSILON)


@dataclass(frozen=True)
class Launch:
    """The way a kernel is cut and started."""

    block_tokens: int
    block_units: int
    warps: int
    stages: int  # depth of the software pipeline: a load is issued stages − 1 turns of the loop before it is used
    programs: int = 1  # programs a multiprocessor holds, for kernels whose programs walk over many tiles


def block_width(width: int) -> int:
    """The width of a tile for tokens of this width."""
    return max(64, triton.next_power_of_2(width))  # 64 is the least height of a Hopper matrix instruction


def options(launch: Launch, width: int) -> dict[str, int]:
    """The arguments that every kernel takes."""
    return {
        "WIDTH": width,
        "BLOCK_TOKENS": launch.block_tokens,
        "BLOCK_WIDTH": block_width(width),
        "STAGES": launch.stages,
        "num_warps": launch.warps,
        "num_stages": launch.stages,
    }


def chunk_of(units: int, launch: Launch) -> int:
    """The number of units in a chunk: as many as the launch says, or fewer where that does not divide them."""
    return next(chunk for chunk in (launch.block_units, 64, 32) if units % chunk == 0)


def tile_count(x: Tensor, launch: Launch) -> int:
    return triton.cdiv(x.shape[0], launch.block_tokens)


def programs_for(x: Tensor, launch: Launch, chunks: int = 1) -> int:
    """Programs a chunk of units that together fill the device, each with at least one tile of tokens."""
    multiprocessors = torch.cuda.get_device_properties(x.device).multi_processor_count if x.is_cuda else 2
    return max(1, min(launch.programs * multiprocessors // chunks, tile_count(x, launch)))


# The feed-forward block


@triton.jit
def _gate_and_value_units(first, hidden, BLOCK_HIDDEN: tl.constexpr):
    """Offsets of the gate weights, then of the value weights of units first, first + 1, ....  (2 BLOCK_HIDDEN,)"""
    unit = tl.arange(0, 2 * BLOCK_HIDDEN)
    return first + unit % BLOCK_HIDDEN + (unit // BLOCK_HIDDEN) * hidden


@triton.jit
def _halves(both):
    """Left and right half of a tile, without moving data.  (T, 2U) -> (T, U), (T, U)"""
    return tl.split(tl.trans(tl.reshape(both, (both.shape[0], 2, both.shape[1] // 2)), (0, 2, 1)))


@triton.jit
def _side_by_side(left, right):
    """The inverse of `_halves`.  (T, U), (T, U) -> (T, 2U)"""
    return tl.reshape(tl.trans(tl.join(left, right), (0, 2, 1)), (left.shape[0], 2 * left.shape[1]))


@triton.jit
def _upper_and_lower(both):
    """Upper and lower half of a tile, without moving data.  (2U, T) -> (U, T), (U, T)"""
    return tl.split(tl.trans(tl.reshape(both, (2, both.shape[0] // 2, both.shape[1])), (1, 2, 0)))


@triton.jit
def _stacked(upper, lower):
    """The inverse of `_upper_and_lower`.  (U, T), (U, T) -> (2U, T)"""
    return tl.reshape(tl.trans(tl.join(upper, lower), (2, 0, 1)), (2 * upper.shape[0], upper.shape[1]))


@triton.jit
def _tanh(u):
    # One instruction with a relative error of 2⁻¹¹, below the rounding of the bfloat16 product it enters.
    return tl.inline_asm_elementwise("tanh.approx.f32 $0, $1;", "=f,f", [u], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit(do_not_specialize=["tokens"])
def _forward_resident(x_ptr, weights_ptr, y_ptr, tokens, WIDTH: tl.constexpr, HIDDEN: tl.constexpr,
                      BLOCK_TOKENS: tl.constexpr, BLOCK_WIDTH: tl.constexpr, BLOCK_HIDDEN: tl.constexpr,
                      STAGES: tl.constexpr):  # fmt: skip
    into, out = (), ()
    for chunk in tl.static_range(HIDDEN // BLOCK_HIDDEN):
        first = chunk * BLOCK_HIDDEN
        into += (load_weights(weights_ptr, _gate_and_value_units(first, HIDDEN, BLOCK_HIDDEN), WIDTH, BLOCK_WIDTH),)
        out += (load_weights(weights_ptr, 2 * HIDDEN + first + tl.arange(0, BLOCK_HIDDEN), WIDTH, BLOCK_WIDTH),)
    for tile in tl.range(tl.program_id(0), tl.cdiv(tokens, BLOCK_TOKENS), tl.num_programs(0), num_stages=STAGES):
        x = load_tile(x_ptr, tile, tokens, WIDTH, BLOCK_TOKENS, BLOCK_WIDTH)
        rho = inverse_rms(x.to(tl.float32), WIDTH)
        change = tl.zeros((BLOCK_TOKENS, BLOCK_WIDTH), tl.float32)
        for chunk in tl.static_range(HIDDEN // BLOCK_HIDDEN):
            gate, value = _halves(tl.dot(x, into[chunk].T))
            u = gate * (0.5 * rho)
            product = (u + u * _tanh(u)) * value
            change = tl.dot(product.to(x.dtype), out[chunk], change)
        store_tile(y_ptr, x.to(tl.float32) + rho * change, tile, tokens, WIDTH, BLOCK_TOKENS, BLOCK_WIDTH)


@triton.jit(do_not_specialize=["tokens"])
def _backward_resident(x_ptr, dy_ptr, weights_ptr, dx_ptr, partial_ptr, tokens, WIDTH: tl.constexpr,
                       HIDDEN: tl.constexpr, BLOCK_TOKENS: tl.constexpr, BLOCK_WIDTH: tl.constexpr,
                       STAGES: tl.constexpr):  # fmt: skip
    # Hidden units run down, tokens across: the hidden gradients then come out of the tensor cores in the registers from
    # which the products for the weight gradients take them, and only one product has to go through shared memory.
    unit = tl.arange(0, HIDDEN)
    into_units = _gate_and_value_units(0, HIDDEN, HIDDEN)
    into = load_weights(weights_ptr, into_units, WIDTH, BLOCK_WIDTH)
    out = load_weights(weights_ptr, 2 * HIDDEN + unit, WIDTH, BLOCK_WIDTH)
    d_into = tl.zeros((2 * HIDDEN, BLOCK_WIDTH), tl.float32)
    d_out = tl.zeros((HIDDEN, BLOCK_WIDTH), tl.float32)
    for tile in tl.range(tl.program_id(0), tl.cdiv(tokens, BLOCK_TOKENS), tl.num_programs(0), num_stages=STAGES):
        x = load_tile(x_ptr, tile, tokens, WIDTH, BLOCK_TOKENS, BLOCK_WIDTH)
        dy = load_tile(dy_ptr, tile, tokens, WIDTH, BLOCK_TOKENS, BLOCK_WIDTH)
        rho = inverse_rms(x.to(tl.float32), WIDTH)
        n = (x.to(tl.float32) * rho).to(x.dtype)
        gate, value = _upper_and_lower(tl.dot(into, n.T))  # (HIDDEN, BLOCK_TOKENS) each
        d_product = tl.dot(out, dy.T)
        u = 0.5 * gate
        t = _tanh(u)
        silu = u + u * t
        slope = silu * (1 - t) + (1 + t)  # twice the slope, hence half the value next to it
        half_value = 0.5 * value
        # The order of these lines decides whether the registers suffice; any other order tried spills inside the loop.
        d_hidden = _stacked((d_product * half_value * slope).to(x.dtype), (d_product * silu).to(x.dtype))
        product = (silu * half_value).to(x.dtype)
        d_into = tl.dot(d_hidden, n, d_into)
        d_out = tl.dot(product, dy, d_out)  # half of it, as `product` is
        dn = tl.dot(d_hidden.T, into)
        x = x.to(tl.float32)
        dx = rho * (dn - x * (tl.sum(dn * x, 1)[:, None] * (rho * rho / WIDTH)))
        store_tile(dx_ptr, dy.to(tl.float32) + dx, tile, tokens, WIDTH, BLOCK_TOKENS, BLOCK_WIDTH)
    partial = partial_ptr + tl.program_id(0).to(tl.int64) * (3 * HIDDEN * WIDTH)
    channel = tl.arange(0, BLOCK_WIDTH)[None, :]
    tl.store(partial + into_units[:, None] * WIDTH + channel, d_into, mask=channel < WIDTH)
    tl.store(partial + (2 * HIDDEN + unit)[:, None] * WIDTH + channel, 2 * d_out, mask=channel < WIDTH)


@triton.jit(do_not_specialize=["tokens"])
def _forward_streamed(x_ptr, weights_ptr, y_ptr, tokens, hidden, WIDTH: tl.constexpr, BLOCK_TOKENS: tl.constexpr,
                      BLOCK_WIDTH: tl.constexpr, BLOCK_HIDDEN: tl.constexpr, STAGES: tl.constexpr):  # fmt: skip
    tile = tl.program_id(0)
    x = load_tile(x_ptr, tile, tokens, WIDTH, BLOCK_TOKENS, BLOCK_WIDTH)
    rho = inverse_rms(x.to(tl.float32), WIDTH)
    change = tl.zeros((BLOCK_TOKENS, BLOCK_WIDTH), tl.float32)
    # `hidden` is no compile-time constant: the compiler would unroll this loop and run out of registers.
    for first in tl.range(0, hidden, BLOCK_HIDDEN, num_stages=STAGES):
        into = load_weights(weights_ptr, _gate_and_value_units(first, hidden, BLOCK_HIDDEN), WIDTH, BLOCK_WIDTH)
        out = load_weights(weights_ptr, 2 * hidden + first + tl.arange(0, BLOCK_HIDDEN), WIDTH, BLOCK_WIDTH)
        gate, value = _halves(tl.dot(x, into.T))
        u = gate * (0.5 * rho)
        product = (u + u * _tanh(u)) * value
        change = tl.dot(product.to(x.dtype), out, change)
    x = load_tile(x_ptr, tile, tokens, WIDTH, BLOCK_TOKENS, BLOCK_WIDTH, LAST_USE=True)
    store_tile(y_ptr, x.to(tl.float32) + rho * change, tile, tokens, WIDTH, BLOCK_TOKENS, BLOCK_WIDTH)


@triton.jit(do_not_specialize=["tokens"])
def _input_gradient_streamed(x_ptr, dy_ptr, weights_ptr, dx_ptr, tokens, hidden, WIDTH: tl.constexpr,
                             BLOCK_TOKENS: tl.constexpr, BLOCK_WIDTH: tl.constexpr, BLOCK_HIDDEN: tl.constexpr,
                             STAGES: tl.constexpr):  # fmt: skip
    tile = tl.program_id(0)
    x = load_tile(x_ptr, tile, tokens, WIDTH, BLOCK_TOKENS, BLOCK_WIDTH)
    dy = load_tile(dy_ptr, tile, tokens, WIDTH, BLOCK_TOKENS, BLOCK_WIDTH)
    rho = inverse_rms(x.to(tl.float32), WIDTH)
    dn = tl.zeros((BLOCK_TOKENS, BLOCK_WIDTH), tl.float32)
    for first in tl.range(0, hidden, BLOCK_HIDDEN, num_stages=STAGES):
        into = load_weights(weights_ptr, _gate_and_value_units(first, hidden, BLOCK_HIDDEN), WIDTH, BLOCK_WIDTH)
        out = load_weights(weights_ptr, 2 * hidden + first + tl.arange(0, BLOCK_HIDDEN), WIDTH, BLOCK_WIDTH)
        gate, value = _halves(tl.dot(x, into.T))
        d_product = tl.dot(dy, out.T)
        half_rho = 0.5 * rho
        u = gate * half_rho
        t = _tanh(u)
        silu = u + u * t
        slope = silu * (1 - t) + (1 + t)
        d_gate = (d_product * value) * (slope * half_rho)
        dn = tl.dot(_side_by_side(d_gate.to(x.dtype), (d_product * silu).to(x.dtype)), into, dn)
    x = load_tile(x_ptr, tile, tokens, WIDTH, BLOCK_TOKENS, BLOCK_WIDTH, LAST_USE=True).to(tl.float32)
    dy = load_tile(dy_ptr, tile, tokens, WIDTH, BLOCK_TOKENS, BLOCK_WIDTH, LAST_USE=True)
    dx = rho * (dn - x * (tl.sum(dn * x, 1)[:, None] * (rho * rho / WIDTH)))
    store_tile(dx_ptr, dy.to(tl.float32) + dx, tile, tokens, WIDTH, BLOCK_TOKENS, BLOCK_WIDTH)


@triton.jit(do_not_specialize=["tokens"])
def _weight_gradients_streamed(x_ptr, dy_ptr, weights_ptr, partial_ptr, tokens, hidden, WIDTH: tl.constexpr,
                               BLOCK_TOKENS: tl.constexpr, BLOCK_WIDTH: tl.constexpr, BLOCK_HIDDEN: tl.constexpr,
                               STAGES: tl.constexpr):  # fmt: skip
    # A program keeps one chunk of hidden units and walks over every S-th tile of tokens. The programs of the other
    # chunks read the same tiles at the same time: device memory gives each tile about once, the L2 cache the rest.
    unit = tl.program_id(0) * BLOCK_HIDDEN + tl.arange(0, BLOCK_HIDDEN)
    gate_weights = load_weights(weights_ptr, unit, WIDTH, BLOCK_WIDTH)
    value_weights = load_weights(weights_ptr, hidden + unit, WIDTH, BLOCK_WIDTH)
    out_weights = load_weights(weights_ptr, 2 * hidden + unit, WIDTH, BLOCK_WIDTH)
    d_into = tl.zeros((BLOCK_WIDTH, 2 * BLOCK_HIDDEN), tl.float32)
    d_out = tl.zeros((BLOCK_WIDTH, BLOCK_HIDDEN), tl.float32)
    for tile in tl.range(tl.program_id(1), tl.cdiv(tokens, BLOCK_TOKENS), tl.num_programs(1), num_stages=STAGES):
        x = load_tile(x_ptr, tile, tokens, WIDTH, BLOCK_TOKENS, BLOCK_WIDTH)
        dy = load_tile(dy_ptr, tile, tokens, WIDTH, BLOCK_TOKENS, BLOCK_WIDTH)
        rho = inverse_rms(x.to(tl.float32), WIDTH)
        # Two products here, not the halves of one: the compiler would evaluate the gate twice, in two layouts.
        gate = tl.dot(x, gate_weights.T)
        value = tl.dot(x, value_weights.T)
        d_product = rho * tl.dot(dy, out_weights.T)
        half_rho = 0.5 * rho
        u = gate * half_rho
        t = _tanh(u)
        silu = u + u * t
        slope = silu * (1 - t) + (1 + t)
        half_value = value * half_rho
        d_out = tl.dot(dy.T, (silu * half_value).to(x.dtype), d_out)  # half of it
        d_gate = (d_product * half_value * slope).to(x.dtype)
        d_into = tl.dot(x.T, _side_by_side(d_gate, (d_product * silu).to(x.dtype)), d_into)
    partial = partial_ptr + tl.program_id(1).to(tl.int64) * (3 * hidden * WIDTH)
    channel = tl.arange(0, BLOCK_WIDTH)[:, None]
    into_units = _gate_and_value_units(tl.program_id(0) * BLOCK_HIDDEN, hidden, BLOCK_HIDDEN)
    tl.store(partial + into_units[None, :] * WIDTH + channel, d_into, mask=channel < WIDTH)
    tl.store(partial + (2 * hidden + unit)[None, :] * WIDTH + channel, 2 * d_out, mask=channel < WIDTH)


RESIDENT = {64: 128}  # block width -> the number of hidden units for which the resident kernels are used

# (name of the kernel, block width) -> how to launch it. `backward_resident` always takes all hidden units at once. Each
# entry was compiled for sm_90 at its full width and checked to fit: no register spills inside its loop.
LAUNCHES = {
    ("forward_resident", 64): Launch(64, 64, warps=4, stages=3, programs=3),
    ("backward_resident", 64): Launch(64, 128, warps=8, stages=3),
    ("forward_streamed", 64): Launch(128, 32, warps=8, stages=3),
    ("input_gradient_streamed", 64): Launch(128, 32, warps=8, stages=3),
    ("weight_gradients_streamed", 64): Launch(64, 32, warps=4, stages=3, programs=3),
    ("forward_streamed", 128): Launch(128, 64, warps=8, stages=3),
    ("input_gradient_streamed", 128): Launch(128, 32, warps=8, stages=3),
    ("weight_gradients_streamed", 128): Launch(64, 32, warps=4, stages=3, programs=2),
}


def _is_resident(x: Tensor, weights: Tensor) -> bool:
    return RESIDENT.get(block_width(x.shape[1])) == weights.shape[1]


def feed_forward(x: Tensor, weights: Tensor) -> Tensor:
    """The block applied to x  (T, D), with `weights` (3, H, D) = gate, value and transposed output weights.  (T, D)"""
    (tokens, width), hidden = x.shape, weights.shape[1]
    y = torch.empty_like(x)
    name = "forward_resident" if _is_resident(x, weights) else "forward_streamed"
    launch = LAUNCHES[name, block_width(width)]
    fixed = options(launch, width) | {"BLOCK_HIDDEN": chunk_of(hidden, launch)}
    with torch.cuda.device_of(x):
        if name == "forward_resident":
            _forward_resident[(programs_for(x, launch),)](x, weights, y, tokens, HIDDEN=hidden, **fixed)
        else:
            _forward_streamed[(tile_count(x, launch),)](x, weights, y, tokens, hidden, **fixed)
    return y


def feed_forward_gradients(dy: Tensor, x: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients of x  (T, D) and of the weights  (3, H, D) in float32, given those of y."""
    # Programs write their sums side by side and one reduction adds them up: the same input gives the same bits.
    (tokens, width), hidden = x.shape, weights.shape[1]
    dx = torch.empty_like(x)
    with torch.cuda.device_of(x):
        if _is_resident(x, weights):
            launch = LAUNCHES["backward_resident", block_width(width)]
            partial = x.new_empty((programs_for(x, launch), *weights.shape), dtype=torch.float32)
            _backward_resident[(partial.shape[0],)](
                x, dy, weights, dx, partial, tokens, HIDDEN=hidden, **options(launch, width)
            )
        else:
            launch = LAUNCHES["input_gradient_streamed", block_width(width)]
            fixed = options(launch, width) | {"BLOCK_HIDDEN": chunk_of(hidden, launch)}
            _input_gradient_streamed[(tile_count(x, launch),)](x, dy, weights, dx, tokens, hidden, **fixed)
            launch = LAUNCHES["weight_gradients_streamed", block_width(width)]
            fixed = options(launch, width) | {"BLOCK_HIDDEN": chunk_of(hidden, launch)}
            chunks = hidden // fixed["BLOCK_HIDDEN"]
            partial = x.new_empty((programs_for(x, launch, chunks), *weights.shape), dtype=torch.float32)
            _weight_gradients_streamed[(chunks, partial.shape[0])](x, dy, weights, partial, tokens, hidden, **fixed)
    return dx, partial.sum(0)


# The linear layer of the normalized tokens


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
def _linear_forward(x_ptr, weights_ptr, y_ptr, tokens, outputs, WIDTH: tl.constexpr, BLOCK_TOKENS: tl.constexpr,
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
def _linear_backward_resident(x_ptr, dy_ptr, weights_ptr, dx_ptr, partial_ptr, tokens, OUTPUTS: tl.constexpr,
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
def _linear_input_gradient(x_ptr, dy_ptr, weights_ptr, dx_ptr, tokens, outputs, WIDTH: tl.constexpr,
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
def _linear_weight_gradient(x_ptr, dy_ptr, partial_ptr, tokens, outputs, WIDTH: tl.constexpr,
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


LINEAR_RESIDENT = {64: 384}  # the most outputs, for a block width, that `_linear_backward_resident` can hold

# (name of the kernel, block width) -> how to launch it
LINEAR_LAUNCHES = {
    ("forward", 64): Launch(64, 64, warps=4, stages=3),
    ("backward_resident", 64): Launch(64, 64, warps=8, stages=3),
    ("input_gradient_streamed", 64): Launch(64, 64, warps=4, stages=3),
    ("weight_gradient_streamed", 64): Launch(64, 64, warps=4, stages=3, programs=4),
    ("forward", 128): Launch(64, 64, warps=4, stages=3),
    ("input_gradient_streamed", 128): Launch(64, 64, warps=4, stages=3),
    ("weight_gradient_streamed", 128): Launch(128, 128, warps=8, stages=3),
}


def norm_linear(x: Tensor, weights: Tensor) -> Tensor:
    """rms_norm(x) Wᵀ for x  (T, D) and W  (O, D).  (T, O)"""
    (tokens, width), outputs = x.shape, weights.shape[0]
    y = x.new_empty((tokens, outputs))
    launch = LINEAR_LAUNCHES["forward", block_width(width)]
    fixed = options(launch, width) | {"BLOCK_OUTPUTS": chunk_of(outputs, launch)}
    with torch.cuda.device_of(x):
        _linear_forward[(tile_count(x, launch),)](x, weights, y, tokens, outputs, **fixed)
    return y


def norm_linear_gradients(dy: Tensor, x: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients of x  (T, D) and of W  (O, D) in float32, given those of y  (T, O)."""
    (tokens, width), outputs = x.shape, weights.shape[0]
    dx = torch.empty_like(x)
    with torch.cuda.device_of(x):
        if outputs <= LINEAR_RESIDENT.get(block_width(width), 0):
            launch = LINEAR_LAUNCHES["backward_resident", block_width(width)]
            fixed = options(launch, width) | {"BLOCK_OUTPUTS": chunk_of(outputs, launch)}
            partial = x.new_empty((programs_for(x, launch), *weights.shape), dtype=torch.float32)
            _linear_backward_resident[(partial.shape[0],)](
                x, dy, weights, dx, partial, tokens, OUTPUTS=outputs, **fixed
            )
        else:
            launch = LINEAR_LAUNCHES["input_gradient_streamed", block_width(width)]
            fixed = options(launch, width) | {"BLOCK_OUTPUTS": chunk_of(outputs, launch)}
            _linear_input_gradient[(tile_count(x, launch),)](x, dy, weights, dx, tokens, outputs, **fixed)
            launch = LINEAR_LAUNCHES["weight_gradient_streamed", block_width(width)]
            fixed = options(launch, width) | {"BLOCK_OUTPUTS": chunk_of(outputs, launch)}
            chunks = outputs // fixed["BLOCK_OUTPUTS"]
            partial = x.new_empty((programs_for(x, launch, chunks), *weights.shape), dtype=torch.float32)
            _linear_weight_gradient[(chunks, partial.shape[0])](x, dy, partial, tokens, outputs, **fixed)
    return dx, partial.sum(0)
