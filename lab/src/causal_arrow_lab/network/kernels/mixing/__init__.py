"""Cells combined across variables and gated, without ever reordering them in memory.

On a Hopper GPU with bfloat16 cells this runs as Triton kernels, which save only the inputs for the backward pass;
everywhere else the same formula runs in plain torch. Triton is imported when first needed.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from causal_arrow.errors import ConfigurationError
from causal_arrow_lab.network.devices import save_inputs, takes_kernels

# B tasks, N observations, P variables, D width, H heads

MAX_VARIABLES = 128  # that the kernels take: beyond it their tiles run out of registers
HEAD_WIDTHS = (8, 16)  # that the kernels take


def mix_cells(value_and_gate: Tensor, weights: Tensor) -> Tensor:
    """Values mixed across variables, head by head, times silu of the gate.  (B, N, P, D)

    `value_and_gate` (B, N, P, 2D) holds values, then gates. In head h variable j gets Σ_k weights[b, h, j, k] value_k,
    with `weights` (B, H, P, P) used in the type of the cells, whatever autocast says.
    """
    if not _agree(value_and_gate, weights):
        raise ConfigurationError(
            "Expected values and gates (B, N, P, 2D) and weights (B, H, P, P) with H a divisor of D, "
            f"got {tuple(value_and_gate.shape)} and {tuple(weights.shape)}."
        )
    if _kernels_apply(value_and_gate, weights):
        mixed: Tensor = _mix(value_and_gate, weights)
        return mixed
    return plain_mix_cells(value_and_gate, weights)


def plain_mix_cells(value_and_gate: Tensor, weights: Tensor) -> Tensor:
    """Compute `mix_cells` operation by operation: the path of CPUs, of float32 and of other GPUs."""
    observations, heads = value_and_gate.shape[1], weights.shape[1]
    value, gate = value_and_gate.chunk(2, dim=-1)  # (B, N, P, D)
    head = value.shape[-1] // heads
    with torch.autocast(value.device.type, enabled=False):
        value = value.unflatten(-1, (heads, head)).permute(0, 3, 2, 1, 4)  # (B, H, P, N, D/H)
        mixed = weights.to(value.dtype) @ value.flatten(3)
        mixed = mixed.unflatten(-1, (observations, head)).permute(0, 3, 2, 1, 4)  # (B, N, P, H, D/H)
        gated: Tensor = mixed.flatten(3) * functional.silu(gate)
        return gated


def _agree(value_and_gate: Tensor, weights: Tensor) -> bool:
    if value_and_gate.dim() != 4 or weights.dim() != 4:
        return False
    tasks, _, variables, both = value_and_gate.shape
    heads = weights.shape[1]
    return weights.shape == (tasks, heads, variables, variables) and both % 2 == 0 and both // 2 % heads == 0


def _kernels_apply(value_and_gate: Tensor, weights: Tensor) -> bool:
    variables, width = value_and_gate.shape[2], value_and_gate.shape[3] // 2
    fits = variables <= MAX_VARIABLES and width % 16 == 0 and width // weights.shape[1] in HEAD_WIDTHS
    return fits and takes_kernels(value_and_gate)


@torch.library.custom_op("causal_arrow::mix_cells", mutates_args=())
def _mix(value_and_gate: Tensor, weights: Tensor) -> Tensor:
    from causal_arrow_lab.network.kernels.mixing import kernels

    if value_and_gate.numel() == 0:
        return value_and_gate.new_empty(value_and_gate.chunk(2, dim=-1)[0].shape)
    out: Tensor = kernels.forward(value_and_gate.contiguous(), weights.to(value_and_gate.dtype))
    return out


@torch.library.custom_op("causal_arrow::mix_cells_backward", mutates_args=())
def _mix_backward(d_out: Tensor, value_and_gate: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients of values and gates  (B, N, P, 2D) and of the weights  (B, H, P, P), in the types of both."""
    from causal_arrow_lab.network.kernels.mixing import kernels

    if value_and_gate.numel() == 0:
        return value_and_gate.new_empty(value_and_gate.shape), weights.new_zeros(weights.shape)
    d_cells, d_weights = kernels.backward(
        d_out.to(value_and_gate.dtype).contiguous(),
        value_and_gate.contiguous(),
        weights.to(value_and_gate.dtype),
    )
    return d_cells, d_weights.to(weights.dtype).contiguous()


@_mix.register_fake
def _(value_and_gate: Tensor, weights: Tensor) -> Tensor:
    *cells, both = value_and_gate.shape
    return value_and_gate.new_empty((*cells, both // 2))


@_mix_backward.register_fake
def _(d_out: Tensor, value_and_gate: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    return value_and_gate.new_empty(value_and_gate.shape), weights.new_empty(weights.shape)


def _gradients(ctx: Any, d_out: Tensor) -> tuple[Tensor, Tensor]:
    d_cells, d_weights = _mix_backward(d_out, *ctx.saved_tensors)
    return d_cells, d_weights


_mix.register_autograd(_gradients, setup_context=save_inputs)
