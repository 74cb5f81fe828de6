"""Gated triangle multiplication: what two variables have in common through every third one.

The product over the third variable is a matrix product for each channel, and wants channels first; everything around
it works on pairs, channels last. On a Hopper GPU the two changes of layout are Triton kernels that also do the gating
before and the norm after the product; everywhere else plain torch does the same.
"""

# B tasks, P variables, D width, T = P² pairs

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from causal_arrow_lab.network.devices import save_inputs, takes_kernels
from causal_arrow_lab.network.kernels.fused import rms_norm


def triangle_products(sides: Tensor, incoming: bool) -> Tensor:
    """Σ_k l_ik r_jk (outgoing) or Σ_k l_ki r_kj (incoming) for each channel, normalized over channels.  (B, P, P, D)

    `sides` (B, P, P, 4D) holds, for each pair, l and r and the gates of both: l ← l · σ(gate).
    """
    left, right = gated_channels(sides)  # (B, D, P, P)
    products = left.mT @ right if incoming else left @ right.mT
    return normed_pairs(products)


def gated_channels(sides: Tensor) -> tuple[Tensor, Tensor]:
    """Left and right sides times their gates, channels first.  2 × (B, D, P, P)"""
    if takes_kernels(sides):
        left, right = _gate(sides)
        return left, right
    return plain_gated_channels(sides)


def normed_pairs(products: Tensor) -> Tensor:
    """Products (B, D, P, P) with channels last, and root mean square 1 over them.  (B, P, P, D)"""
    if takes_kernels(products):
        normed: Tensor = _norm(products)
        return normed
    return plain_normed_pairs(products)


def plain_gated_channels(sides: Tensor) -> tuple[Tensor, Tensor]:
    """Compute `gated_channels` operation by operation."""
    values, gates = sides.chunk(2, dim=-1)
    left, right = (values * gates.sigmoid()).permute(0, 3, 1, 2).chunk(2, dim=1)
    return left, right


def plain_normed_pairs(products: Tensor) -> Tensor:
    """Compute `normed_pairs` operation by operation."""
    return rms_norm(products.permute(0, 2, 3, 1))


@torch.library.custom_op("causal_arrow::gate_triangles", mutates_args=())
def _gate(sides: Tensor) -> tuple[Tensor, Tensor]:
    from causal_arrow_lab.network.kernels.triangles import kernels

    return kernels.gate(sides.contiguous())


@torch.library.custom_op("causal_arrow::gate_triangles_backward", mutates_args=())
def _gate_backward(d_left: Tensor, d_right: Tensor, sides: Tensor) -> Tensor:
    from causal_arrow_lab.network.kernels.triangles import kernels

    return kernels.gate_backward(d_left.contiguous(), d_right.contiguous(), sides.contiguous())


@torch.library.custom_op("causal_arrow::norm_triangles", mutates_args=())
def _norm(products: Tensor) -> Tensor:
    from causal_arrow_lab.network.kernels.triangles import kernels

    return kernels.norm(products.contiguous())


@torch.library.custom_op("causal_arrow::norm_triangles_backward", mutates_args=())
def _norm_backward(d_normed: Tensor, products: Tensor) -> Tensor:
    from causal_arrow_lab.network.kernels.triangles import kernels

    return kernels.norm_backward(d_normed.contiguous(), products.contiguous())


@_gate.register_fake
def _(sides: Tensor) -> tuple[Tensor, Tensor]:
    tasks, variables, _, width = sides.shape
    shape = (tasks, width // 4, variables, variables)
    return sides.new_empty(shape), sides.new_empty(shape)


@_gate_backward.register_fake
def _(d_left: Tensor, d_right: Tensor, sides: Tensor) -> Tensor:
    return sides.new_empty(sides.shape)


@_norm.register_fake
def _(products: Tensor) -> Tensor:
    tasks, width, variables, _ = products.shape
    return products.new_empty((tasks, variables, variables, width))


@_norm_backward.register_fake
def _(d_normed: Tensor, products: Tensor) -> Tensor:
    return products.new_empty(products.shape)


def _differentiate_gate(ctx: Any, d_left: Tensor, d_right: Tensor) -> Tensor:
    (sides,) = ctx.saved_tensors
    d_sides: Tensor = _gate_backward(d_left, d_right, sides)
    return d_sides


def _differentiate_norm(ctx: Any, d_normed: Tensor) -> Tensor:
    (products,) = ctx.saved_tensors
    d_products: Tensor = _norm_backward(d_normed, products)
    return d_products


_gate.register_autograd(_differentiate_gate, setup_context=save_inputs)
_norm.register_autograd(_differentiate_norm, setup_context=save_inputs)
