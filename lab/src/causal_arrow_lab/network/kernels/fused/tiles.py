"""Shared parts of the fused kernels: reading and writing tiles of tokens, the norm of a token, launching a kernel."""
# The jitted bodies are Triton's language, not Python: types say nothing there.
# mypy: ignore-errors

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

# T tokens, D width, U units (hidden units, outputs). A tile is (BLOCK_TOKENS, BLOCK_WIDTH); BLOCK_WIDTH is D rounded up
# to a power of two, and what lies beyond D is read as zero and never written.

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
