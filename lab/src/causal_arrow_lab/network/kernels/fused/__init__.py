"""Token-wise layers that read and write device memory once: the gated feed-forward block, a linear layer of a norm.

On a Hopper GPU with bfloat16 activations they run as Triton kernels, which save only x for the backward pass and
compute the rest again; everywhere else the same formulas run in plain torch. Triton is imported when first needed.
`python -m causal_arrow_lab.network fused` checks and times the kernels on a GPU.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from causal_arrow.errors import ConfigurationError
from causal_arrow_lab.network.devices import takes_kernels
from causal_arrow_lab.network.kernels.fused.operators import fused_gated_feed_forward, fused_norm_linear

# D width, H hidden units, O outputs; leading dimensions (...) are tokens

TOKENS_IN_CACHE = 2048  # that a processor works on at once
EPSILON = 1e-6  # also in tiles.py, where it must be a constant of Triton's


def rms_norm(x: Tensor) -> Tensor:
    """x with root mean square 1 over its last dimension: x / sqrt(mean(x²) + 1e-6), no learned scale.  (..., D)

    Computed in float32 or better and returned in the type of x, also under autocast: half-precision streams stay half.
    """
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    return (wide * torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + EPSILON)).to(x.dtype)


def gated_feed_forward(x: Tensor, w_gate: Tensor, w_value: Tensor, w_out: Tensor) -> Tensor:
    """x after a gated feed-forward block: x + (silu(n Wgᵀ) ⊙ (n Wvᵀ)) Woᵀ with n = rms_norm(x).  (..., D)

    `w_gate` and `w_value` are (H, D), `w_out` is (D, H), usually float32; they are used in the type of x, and their
    gradients come in their own type. Autocast changes nothing here: the type of x decides.
    """
    width, hidden = x.shape[-1], w_gate.shape[0]
    if w_gate.shape != (hidden, width) or w_value.shape != (hidden, width) or w_out.shape != (width, hidden):
        raise ConfigurationError(
            f"Expected gate and value weights (H, {width}) and output weights ({width}, H) for tokens of width "
            f"{width}, got {tuple(w_gate.shape)}, {tuple(w_value.shape)} and {tuple(w_out.shape)}."
        )
    if _kernels_apply(x, hidden):
        return fused_gated_feed_forward(x, w_gate, w_value, w_out)
    return plain_gated_feed_forward(x, w_gate, w_value, w_out)


def plain_gated_feed_forward(x: Tensor, w_gate: Tensor, w_value: Tensor, w_out: Tensor) -> Tensor:
    """Compute `gated_feed_forward` operation by operation: the path of CPUs, of float32 and of other GPUs."""
    with torch.autocast(x.device.type, enabled=False):
        weights = [weight.to(x.dtype) for weight in (w_gate, w_value, w_out)]
        tokens = x.numel() // x.shape[-1]
        if x.is_cuda or torch.is_grad_enabled() or tokens <= TOKENS_IN_CACHE:
            return _feed_forward(x, *weights)
        # Pieces whose hidden units stay in a processor's cache: twice as fast.
        pieces = x.reshape(tokens, -1).split(TOKENS_IN_CACHE)
        return torch.cat([_feed_forward(piece, *weights) for piece in pieces]).view(x.shape)


def _feed_forward(x: Tensor, w_gate: Tensor, w_value: Tensor, w_out: Tensor) -> Tensor:
    n = rms_norm(x)
    hidden = functional.silu(functional.linear(n, w_gate)).mul(functional.linear(n, w_value))
    return x + functional.linear(hidden, w_out)


def norm_linear(x: Tensor, weight: Tensor) -> Tensor:
    """A linear layer of the normalized tokens, rms_norm(x) Wᵀ for W of shape (O, D), in the type of x.  (..., O)

    As in `gated_feed_forward` the weight is usually float32, is used in the type of x, and autocast changes nothing.
    """
    if weight.dim() != 2 or weight.shape[1] != x.shape[-1]:
        raise ConfigurationError(
            f"Expected weights (O, {x.shape[-1]}) for tokens of width {x.shape[-1]}, got {tuple(weight.shape)}."
        )
    if _kernels_apply(x, weight.shape[0]):
        return fused_norm_linear(x, weight)
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
