"""The kernels as operators of torch: for autograd, which saves only their inputs, and opaque to its compiler.

They take tokens of any leading shape and weights as the parameters hold them, and give gradients in the types of both.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from causal_arrow_lab.network.devices import save_inputs

# D width, H hidden units, O outputs, T tokens


def fused_gated_feed_forward(x: Tensor, w_gate: Tensor, w_value: Tensor, w_out: Tensor) -> Tensor:
    """`gated_feed_forward` by the kernels.  (..., D)"""
    y: Tensor = _feed_forward(x, w_gate, w_value, w_out)
    return y


def fused_norm_linear(x: Tensor, weight: Tensor) -> Tensor:
    """`norm_linear` by the kernels.  (..., O)"""
    y: Tensor = _norm_linear(x, weight)
    return y


def as_tokens(x: Tensor) -> Tensor:
    return x.contiguous().view(-1, x.shape[-1])  # (T, D)


def packed(w_gate: Tensor, w_value: Tensor, w_out: Tensor, dtype: torch.dtype) -> Tensor:
    return torch.stack((w_gate, w_value, w_out.t())).to(dtype)  # (3, H, D)


@torch.library.custom_op(
    "causal_arrow::gated_feed_forward",
    mutates_args=(),
    schema="(Tensor x, Tensor w_gate, Tensor w_value, Tensor w_out) -> Tensor",
)
def _feed_forward(x: Tensor, w_gate: Tensor, w_value: Tensor, w_out: Tensor) -> Tensor:
    from causal_arrow_lab.network.kernels.fused import feed_forward_kernels

    if x.numel() == 0:
        return x.new_empty(x.shape)
    return feed_forward_kernels.forward(as_tokens(x), packed(w_gate, w_value, w_out, x.dtype)).view(x.shape)


@torch.library.custom_op(
    "causal_arrow::gated_feed_forward_backward",
    mutates_args=(),
    schema="(Tensor dy, Tensor x, Tensor w_gate, Tensor w_value, Tensor w_out) -> (Tensor, Tensor)",
)
def _feed_forward_backward(
    dy: Tensor, x: Tensor, w_gate: Tensor, w_value: Tensor, w_out: Tensor
) -> tuple[Tensor, Tensor]:
    """Gradients of x  (..., D), and of the gate, value and transposed output weights in float32  (3, H, D)."""
    from causal_arrow_lab.network.kernels.fused import feed_forward_kernels

    if x.numel() == 0:
        return x.new_empty(x.shape), x.new_zeros((3, *w_gate.shape), dtype=torch.float32)
    weights = packed(w_gate, w_value, w_out, x.dtype)
    dx, d_weights = feed_forward_kernels.backward(as_tokens(dy.to(x.dtype)), as_tokens(x), weights)
    return dx.view(x.shape), d_weights


@_feed_forward.register_fake
def _(x: Tensor, w_gate: Tensor, w_value: Tensor, w_out: Tensor) -> Tensor:
    return x.new_empty(x.shape)


@_feed_forward_backward.register_fake
def _(dy: Tensor, x: Tensor, w_gate: Tensor, w_value: Tensor, w_out: Tensor) -> tuple[Tensor, Tensor]:
    return x.new_empty(x.shape), x.new_empty((3, *w_gate.shape), dtype=torch.float32)


@torch.library.custom_op("causal_arrow::norm_linear", mutates_args=(), schema="(Tensor x, Tensor weight) -> Tensor")
def _norm_linear(x: Tensor, weight: Tensor) -> Tensor:
    from causal_arrow_lab.network.kernels.fused import norm_linear_kernels

    if x.numel() == 0:
        return x.new_empty((*x.shape[:-1], weight.shape[0]))
    y = norm_linear_kernels.forward(as_tokens(x), weight.to(x.dtype).contiguous())
    return y.view(*x.shape[:-1], weight.shape[0])


@torch.library.custom_op(
    "causal_arrow::norm_linear_backward",
    mutates_args=(),
    schema="(Tensor dy, Tensor x, Tensor weight) -> (Tensor, Tensor)",
)
def _norm_linear_backward(dy: Tensor, x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients of x  (..., D), and of the weight in float32  (O, D)."""
    from causal_arrow_lab.network.kernels.fused import norm_linear_kernels

    if x.numel() == 0:
        return x.new_empty(x.shape), x.new_zeros(weight.shape, dtype=torch.float32)
    half = weight.to(x.dtype).contiguous()
    dx, d_weight = norm_linear_kernels.backward(as_tokens(dy.to(x.dtype)), as_tokens(x), half)
    return dx.view(x.shape), d_weight


@_norm_linear.register_fake
def _(x: Tensor, weight: Tensor) -> Tensor:
    return x.new_empty((*x.shape[:-1], weight.shape[0]))


@_norm_linear_backward.register_fake
def _(dy: Tensor, x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    return x.new_empty(x.shape), x.new_empty(weight.shape, dtype=torch.float32)


def _feed_forward_gradients(ctx: Any, dy: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    x, w_gate, w_value, w_out = ctx.saved_tensors
    dx, d_weights = _feed_forward_backward(dy, x, w_gate, w_value, w_out)
    d_gate, d_value, d_out = d_weights.unbind(0)
    return dx, d_gate.to(w_gate.dtype), d_value.to(w_value.dtype), d_out.t().to(w_out.dtype)


def _norm_linear_gradients(ctx: Any, dy: Tensor) -> tuple[Tensor, Tensor]:
    x, weight = ctx.saved_tensors
    dx, d_weight = _norm_linear_backward(dy, x, weight)
    return dx, d_weight.to(weight.dtype)


_feed_forward.register_autograd(_feed_forward_gradients, setup_context=save_inputs)
_norm_linear.register_autograd(_norm_linear_gradients, setup_context=save_inputs)
