"""Gated mixing of cells as Triton kernels for Hopper GPUs: each cell is read once and written once.

A program keeps the weights of one task for 16 channels, 32 bytes and so one sector of device memory of every cell, and
walks over blocks of observations. In a block, variables run down and (observation, channel) across, so that mixing is a
plain matrix product. Two heads of width 8 share the 16 channels: both heads' weights are applied to all of them and
each column takes what is its own. The tensor cores have the time, and nothing needs to be reordered in memory.

Forward reads value and gate and writes the output. Backward reads value, gate and the gradient of the output, mixes
again, and writes the gradients of value and gate; the gradient of the weights stays in registers until the end.

With σ = (1 + tanh(gate / 2)) / 2, which is a few instructions on the GPU,
    silu(gate) = σ gate,    silu'(gate) = σ + (1 − σ) silu(gate).
"""
# The jitted bodies are Triton's language, not Python: types say nothing there.
# mypy: ignore-errors

from __future__ import annotations

import functools
from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.nn import functional

# B tasks, N observations, P variables, D width, H heads, S shares of a task's observations
# A tile is (VARIABLES, COLUMNS): P rounded up to a power of two, observations of a block times CHANNELS. What lies
# beyond P and N is read as zero and never written.

CHANNELS = tl.constexpr(16)


@triton.jit
def _sigmoid(x):
    # tanh is one instruction with a relative error of 2⁻¹¹, below the rounding of the bfloat16 product it enters.
    t = tl.inline_asm_elementwise("tanh.approx.f32 $0, $1;", "=f,f", [0.5 * x], dtype=tl.float32, is_pure=True, pack=1)
    return 0.5 * t + 0.5


@triton.jit
def _together(a, b, c):
    """Three tiles as they are, in the same registers of the same threads."""
    # Without it the compiler evaluates the gate twice: in the layout of the loads and in that of the tensor cores.
    return tl.inline_asm_elementwise(
        "mov.f32 $0, $3; mov.f32 $1, $4; mov.f32 $2, $5;", "=&f,=&f,=&f,f,f,f", [a, b, c],
        dtype=(tl.float32, tl.float32, tl.float32), is_pure=True, pack=1,
    )  # fmt: skip


@triton.jit
def _first_cell(task, block, observations, variables, OBSERVATIONS: tl.constexpr):
    """Index of the first cell of the block in the whole tensor: 64 bits, because B · N · P · D can exceed 2³¹."""
    return (task.to(tl.int64) * observations + block * OBSERVATIONS) * variables


@triton.jit
def _places(block, observations, variables, STRIDE: tl.constexpr, VARIABLES: tl.constexpr, OBSERVATIONS: tl.constexpr):
    """Offsets of elements in a tensor with STRIDE numbers per cell, and which exist.  2 × (VARIABLES, COLUMNS)"""
    variable = tl.arange(0, VARIABLES)[:, None]
    column = tl.arange(0, OBSERVATIONS * CHANNELS)[None, :]
    place = variable * STRIDE + (column // CHANNELS) * (variables * STRIDE) + column % CHANNELS
    return place, (variable < variables) & (column // CHANNELS < observations - block * OBSERVATIONS)


@triton.jit
def _load_elementwise(pointer, block, observations, variables, STRIDE: tl.constexpr, VARIABLES: tl.constexpr,
                      OBSERVATIONS: tl.constexpr):  # fmt: skip
    """A tile that enters no matrix product, in float32.  (VARIABLES, COLUMNS)

    In shared memory its cells lie 32 bytes apart, because it is loaded observation by observation; the threads of the
    tensor cores' layout then read it (nearly) without bank conflicts. Loaded as (VARIABLES, COLUMNS), eight would meet
    in one bank.
    """
    observation = tl.arange(0, OBSERVATIONS)[:, None, None]
    variable = tl.arange(0, VARIABLES)[None, :, None]
    place = (observation * variables + variable) * STRIDE + tl.arange(0, CHANNELS)[None, None, :]
    exists = (variable < variables) & (observation < observations - block * OBSERVATIONS)
    tile = tl.load(pointer + place, mask=exists, other=0.0)
    return tl.reshape(tl.trans(tile, (1, 0, 2)), (VARIABLES, OBSERVATIONS * CHANNELS)).to(tl.float32)


@triton.jit
def _matrix(variables, VARIABLES: tl.constexpr):
    """Offsets of the weights of a head, to variable j from k, and which exist.  2 × (VARIABLES, VARIABLES)"""
    # Rows are padded to a multiple of 8, so that whole vectors can be moved.
    j, k = tl.arange(0, VARIABLES)[:, None], tl.arange(0, VARIABLES)[None, :]
    row = tl.cdiv(variables, 8) * 8
    return j * row + k, (j < variables) & (k < row)


@triton.jit(do_not_specialize=["observations", "variables"])
def _forward(cells_ptr, weights_ptr, out_ptr, observations, variables, WIDTH: tl.constexpr, HEAD: tl.constexpr,
             VARIABLES: tl.constexpr, OBSERVATIONS: tl.constexpr, STAGES: tl.constexpr):  # fmt: skip
    group, task = tl.program_id(0), tl.program_id(2)
    matrix = variables * (tl.cdiv(variables, 8) * 8)
    weights_ptr += (task * (WIDTH // HEAD) + group * (CHANNELS // HEAD)).to(tl.int64) * matrix
    entry, is_weight = _matrix(variables, VARIABLES)
    cells_ptr += group * CHANNELS
    out_ptr += group * CHANNELS
    is_first = (tl.arange(0, OBSERVATIONS * CHANNELS) % CHANNELS < HEAD)[None, :]
    weights = tl.load(weights_ptr + entry, mask=is_weight, other=0.0)
    if HEAD < CHANNELS:
        second_weights = tl.load(weights_ptr + matrix + entry, mask=is_weight, other=0.0)
    blocks = tl.cdiv(observations, OBSERVATIONS)
    for block in tl.range(tl.program_id(1), blocks, tl.num_programs(1), num_stages=STAGES):
        first = _first_cell(task, block, observations, variables, OBSERVATIONS)
        place, exists = _places(block, observations, variables, 2 * WIDTH, VARIABLES, OBSERVATIONS)
        cells = cells_ptr + first * (2 * WIDTH)
        value = tl.load(cells + place, mask=exists, other=0.0)
        gate = _load_elementwise(cells + WIDTH, block, observations, variables, 2 * WIDTH, VARIABLES, OBSERVATIONS)
        mixed = tl.dot(weights, value)
        if HEAD < CHANNELS:
            mixed = tl.where(is_first, mixed, tl.dot(second_weights, value))
        out = mixed * (gate * _sigmoid(gate))
        place, exists = _places(block, observations, variables, WIDTH, VARIABLES, OBSERVATIONS)
        tl.store(out_ptr + first * WIDTH + place, out.to(value.dtype), mask=exists)


@triton.jit(do_not_specialize=["observations", "variables"])
def _backward(d_out_ptr, cells_ptr, weights_ptr, d_cells_ptr, partial_ptr, observations, variables,
              WIDTH: tl.constexpr, HEAD: tl.constexpr, VARIABLES: tl.constexpr, OBSERVATIONS: tl.constexpr,
              STAGES: tl.constexpr):  # fmt: skip
    group, share, task = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    heads: tl.constexpr = WIDTH // HEAD
    matrix = variables * (tl.cdiv(variables, 8) * 8)
    entry, is_weight = _matrix(variables, VARIABLES)
    weights_ptr += (task * heads + group * (CHANNELS // HEAD)).to(tl.int64) * matrix
    cells_ptr += group * CHANNELS
    d_out_ptr += group * CHANNELS
    d_cells_ptr += group * CHANNELS
    is_first = (tl.arange(0, OBSERVATIONS * CHANNELS) % CHANNELS < HEAD)[None, :]
    weights = tl.load(weights_ptr + entry, mask=is_weight, other=0.0)
    d_weights = tl.zeros((VARIABLES, VARIABLES), tl.float32)
    if HEAD < CHANNELS:
        second_weights = tl.load(weights_ptr + matrix + entry, mask=is_weight, other=0.0)
        second_d_weights = tl.zeros((VARIABLES, VARIABLES), tl.float32)
    for block in tl.range(share, tl.cdiv(observations, OBSERVATIONS), tl.num_programs(1), num_stages=STAGES):
        first = _first_cell(task, block, observations, variables, OBSERVATIONS)
        place, exists = _places(block, observations, variables, 2 * WIDTH, VARIABLES, OBSERVATIONS)
        cells = cells_ptr + first * (2 * WIDTH)
        value = tl.load(cells + place, mask=exists, other=0.0)
        mixed = tl.dot(weights, value)
        if HEAD < CHANNELS:
            mixed = tl.where(is_first, mixed, tl.dot(second_weights, value))
        gate = _load_elementwise(cells + WIDTH, block, observations, variables, 2 * WIDTH, VARIABLES, OBSERVATIONS)
        d_out = _load_elementwise(
            d_out_ptr + first * WIDTH, block, observations, variables, WIDTH, VARIABLES, OBSERVATIONS
        )
        mixed, gate, d_out = _together(mixed, gate, d_out)
        sigmoid = _sigmoid(gate)
        silu = gate * sigmoid
        slope = sigmoid + (1 - sigmoid) * silu
        d_cells = d_cells_ptr + first * (2 * WIDTH) + place
        tl.store(d_cells + WIDTH, (d_out * mixed * slope).to(value.dtype), mask=exists)
        d_mixed = (d_out * silu).to(value.dtype)
        if HEAD < CHANNELS:
            second_d_mixed = tl.where(is_first, 0.0, d_mixed)
            d_mixed = tl.where(is_first, d_mixed, 0.0)
            second_d_weights = tl.dot(value, second_d_mixed.T, second_d_weights)
        d_value = tl.dot(weights.T, d_mixed)
        if HEAD < CHANNELS:
            d_value = tl.dot(second_weights.T, second_d_mixed, d_value)
        d_weights = tl.dot(value, d_mixed.T, d_weights)
        tl.store(d_cells, d_value.to(value.dtype), mask=exists)
    partial_ptr += ((share * tl.num_programs(2) + task) * heads + group * (CHANNELS // HEAD)).to(tl.int64) * matrix
    tl.store(partial_ptr + entry, d_weights.T, mask=is_weight)
    if HEAD < CHANNELS:
        tl.store(partial_ptr + matrix + entry, second_d_weights.T, mask=is_weight)


@dataclass(frozen=True)
class MixingLaunch:
    """The way a kernel is cut and started."""

    observations: int  # in a block
    warps: int
    stages: int  # depth of the software pipeline: a load is issued stages − 1 turns of the loop before it is used
    programs: int  # that a multiprocessor holds at a time


# (kernel, variables of a tile) -> how to launch it. Each entry was compiled for sm_90 and checked to fit: no register
# spills inside its loop.
LAUNCHES = {
    ("forward", 16): MixingLaunch(8, warps=4, stages=3, programs=8),
    ("forward", 32): MixingLaunch(8, warps=4, stages=3, programs=4),
    ("forward", 64): MixingLaunch(4, warps=4, stages=3, programs=3),
    ("forward", 128): MixingLaunch(2, warps=8, stages=3, programs=2),
    ("backward", 16): MixingLaunch(4, warps=1, stages=3, programs=10),
    ("backward", 32): MixingLaunch(4, warps=2, stages=3, programs=4),
    ("backward", 64): MixingLaunch(4, warps=4, stages=3, programs=2),
    ("backward", 128): MixingLaunch(2, warps=8, stages=3, programs=1),
}

# What it takes to begin and to end a program, in blocks of observations: reading and writing weights, filling the
# pipeline. It only has to be right in order of magnitude.
START = 6


def tile_variables(variables: int) -> int:
    """The number of variables in the tile for P variables."""
    return max(16, triton.next_power_of_2(variables))


@functools.cache
def shares(programs: int, blocks: int, slots: int) -> int:
    """The best number of shares of a task's blocks, for `programs` programs per share and room for `slots`."""
    # Each round of programs takes as long as one of them.
    most = min(blocks, triton.cdiv(2 * slots, programs))
    return min(range(1, most + 1), key=lambda share: triton.cdiv(programs * share, slots)
               * (triton.cdiv(blocks, share) + START))  # fmt: skip


def plan(name: str, cells: Tensor, heads: int) -> tuple[tuple[int, int, int], dict[str, int]]:
    """The grid (groups of channels, S, B), and the options of the kernel."""
    tasks, observations, variables, width = cells.shape[0], cells.shape[1], cells.shape[2], cells.shape[3] // 2
    launch = LAUNCHES[name, tile_variables(variables)]
    multiprocessors = torch.cuda.get_device_properties(cells.device).multi_processor_count if cells.is_cuda else 2
    groups = width // CHANNELS.value
    blocks = triton.cdiv(observations, launch.observations)
    grid = groups, shares(groups * tasks, blocks, launch.programs * multiprocessors), tasks
    return grid, {
        "WIDTH": width,
        "HEAD": width // heads,
        "VARIABLES": tile_variables(variables),
        "OBSERVATIONS": launch.observations,
        "STAGES": launch.stages,
        "num_warps": launch.warps,
        "num_stages": launch.stages,
    }


def padded(weights: Tensor) -> Tensor:
    """The weights with rows of a length that 8 divides.  (B, H, P, P rounded up)"""
    return functional.pad(weights, (0, -weights.shape[-1] % 8)).contiguous()


def forward(cells: Tensor, weights: Tensor) -> Tensor:
    """Values mixed and gated, from value and gate  (B, N, P, 2D) and weights  (B, H, P, P).  (B, N, P, D)"""
    tasks, observations, variables, width = cells.shape
    out = cells.new_empty((tasks, observations, variables, width // 2))
    grid, options = plan("forward", cells, weights.shape[1])
    with torch.cuda.device_of(cells):
        _forward[grid](cells, padded(weights), out, observations, variables, **options)
    return out


def backward(d_out: Tensor, cells: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients of value and gate  (B, N, P, 2D) and of the weights  (B, H, P, P) in float32."""
    # Shares write their sums side by side and one reduction adds them up: the same input gives the same bits.
    _, observations, variables, _ = cells.shape
    grid, options = plan("backward", cells, weights.shape[1])
    weights = padded(weights)
    d_cells = torch.empty_like(cells)
    partial = cells.new_empty((grid[1], *weights.shape), dtype=torch.float32)
    with torch.cuda.device_of(cells):
        _backward[grid](d_out, cells, weights, d_cells, partial, observations, variables, **options)
    return d_cells, partial[..., :variables].sum(0)
