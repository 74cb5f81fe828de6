"""Token-wise layers that read and write device memory once: the gated feed-forward block, a linear layer of a norm.

On a Hopper GPU with bfloat16 activations they run as Triton kernels, which save only x for the backward pass;
everywhere else the same formulas run in plain torch. Triton is imported when first needed.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from causal_arrow.errors import ConfigurationError
from causal_arrow_lab.network.devices import save_inputs, takes_kernels

# T tokens, D width, H hidden units, O outputs; leading dimensions (...) are tokens

EPSILON = 1e-6  # also in kernels.py, where it must be a constant of Triton's


def rms_norm(x: Tensor) -> Tensor:
    """x / sqrt(mean(x²) + 1e-6) over the last dimension, in the type of x, also under autocast.  (..., D)"""
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    return (wide * torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + EPSILON)).to(x.dtype)


def gated_feed_forward(x: Tensor, w_gate: Tensor, w_value: Tensor, w_out: Tensor) -> Tensor:
    """x after a gated feed-forward block: x + (silu(n Wgᵀ) ⊙ (n Wvᵀ)) Woᵀ with n = rms_norm(x).  (..., D)

    The weights, (H, D), (H, D) and (D, H), are used in the type of x, whatever autocast says, and their gradients come
    in their own type.
    """
    width, hidden = x.shape[-1], w_gate.shape[0]
    if w_gate.shape != (hidden, width) or w_value.shape != (hidden, width) or w_out.shape != (width, hidden):
        raise ConfigurationError(
            f"Expected gate and value weights (H, {width}) and output weights ({width}, H) for tokens of width "
            f"{width}, got {tuple(w_gate.shape)}, {tuple(w_value.shape)} and {tuple(w_out.shape)}."
        )
    if _kernels_apply(x, hidden):
        y: Tensor = _feed_forward(x, w_gate, w_value, w_out)
        return y
    return plain_gated_feed_forward(x, w_gate, w_value, w_out)


def plain_gated_feed_forward(x: Tensor, w_gate: Tensor, w_value: Tensor, w_out: Tensor) -> Tensor:
    """Compute `gated_feed_forward` operation by operation: the path of CPUs, of float32 and of other GPUs."""
    with torch.autocast(x.device.type, enabled=False):
        n = rms_norm(x)
        gate, value = [functional.linear(n, weight.to(x.dtype)) for weight in (w_gate, w_value)]
        return x + functional.linear(functional.silu(gate).mul(value), w_out.to(x.dtype))


def norm_linear(x: Tensor, weight: Tensor) -> Tensor:
    """A linear layer of the normalized tokens, rms_norm(x) Wᵀ for W of shape (O, D), in the type of x.  (..., O)"""
    if weight.dim() != 2 or weight.shape[1] != x.shape[-1]:
        raise ConfigurationError(
            f"Expected weights (O, {x.shape[-1]}) for tokens of width {x.shape[-1]}, got {tuple(weight.shape)}."
        )
    if _kernels_apply(x, weight.shape[0]):
        y: Tensor = _norm_linear(x, weight)
        return y
    return plain_norm_linear(x, weight)


def plain_norm_linear(x: Tensor, weight: Tensor) -> Tensor:
    """Compute `norm_linear` operation by operation."""
    with torch.autocast(x.device.type, enabled=False):
        return functional.linear(rms_norm(x), weight.to(x.dtype))


def _kernels_apply(x: Tensor, units: int) -> bool:
    # Wider layers spend their time in matrix products, which plain torch does better; the kernels would run out of
    # registers there.
    fits = 32 <= x.shape[-1] <= 128 and x.shape[-1] % 16 == 0 and units % 32 == 0
    return fits and takes_kernels(x)


# The kernels as operators of torch: for autograd, which saves only their inputs, and opaque to its compiler. They take
# tokens of any leading shape and weights as the parameters hold them, and give gradients in the types of both.


def _as_tokens(x: Tensor) -> Tensor:
    return x.contiguous().view(-1, x.shape[-1])  # (T, D)


def _packed(w_gate: Tensor, w_value: Tensor, w_out: Tensor, dtype: torch.dtype) -> Tensor:
    return torch.stack((w_gate, w_value, w_out.t())).to(dtype)  # (3, H, D)


@torch.library.custom_op("causal_arrow::gated_feed_forward", mutates_args=())
def _feed_forward(x: Tensor, w_gate: Tensor, w_value: Tensor, w_out: Tensor) -> Tensor:
    from causal_arrow_lab.network.kernels.fused import kernels

    if x.numel() == 0:
        return x.new_empty(x.shape)
    return kernels.feed_forward(_as_tokens(x), _packed(w_gate, w_value, w_out, x.dtype)).view(x.shape)


@torch.library.custom_op("causal_arrow::gated_feed_forward_backward", mutates_args=())
def _feed_forward_backward(
    dy: Tensor, x: Tensor, w_gate: Tensor, w_value: Tensor, w_out: Tensor
) -> tuple[Tensor, Tensor]:
    """Gradients of x  (..., D), and of the gate, value and transposed output weights in float32  (3, H, D)."""
    from causal_arrow_lab.network.kernels.fused import kernels

    if x.numel() == 0:
        return x.new_empty(x.shape), x.new_zeros((3, *w_gate.shape), dtype=torch.float32)
    weights = _packed(w_gate, w_value, w_out, x.dtype)
    dx, d_weights = kernels.feed_forward_gradients(_as_tokens(dy.to(x.dtype)), _as_tokens(x), weights)
    return dx.view(x.shape), d_weights


@_feed_forward.register_fake
def _(x: Tensor, w_gate: Tensor, w_value: Tensor, w_out: Tensor) -> Tensor:
    return x.new_empty(x.shape)


@_feed_forward_backward.register_fake
def _(dy: Tensor, x: Tensor, w_gate: Tensor, w_value: Tensor, w_out: Tensor) -> tuple[Tensor, Tensor]:
    return x.new_empty(x.shape), x.new_empty((3, *w_gate.shape), dtype=torch.float32)


@torch.library.custom_op("causal_arrow::norm_linear", mutates_args=())
def _norm_linear(x: Tensor, weight: Tensor) -> Tensor:
    from causal_arrow_lab.network.kernels.fused import kernels

    if x.numel() == 0:
        return x.new_empty((*x.shape[:-1], weight.shape[0]))
    y = kernels.norm_linear(_as_tokens(x), weight.to(x.dtype).contiguous())
    return y.view(*x.shape[:-1], weight.shape[0])


@torch.library.custom_op("causal_arrow::norm_linear_backward", mutates_args=())
def _norm_linear_backward(dy: Tensor, x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients of x  (..., D), and of the weight in float32  (O, D)."""
    from causal_arrow_lab.network.kernels.fused import kernels

    if x.numel() == 0:
        return x.new_empty(x.shape), x.new_zeros(weight.shape, dtype=torch.float32)
    half = weight.to(x.dtype).contiguous()
    dx, d_weight = kernels.norm_linear_gradients(_as_tokens(dy.to(x.dtype)), _as_tokens(x), half)
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
