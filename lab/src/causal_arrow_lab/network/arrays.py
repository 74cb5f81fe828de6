"""Functions of `causal_arrow.network.arrays` for tensors. Nothing waits for a GPU, so that passes can be captured."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from causal_arrow.network import arrays

arcsinh, arctanh, log, log1p, log2, maximum, sign, sqrt, tanh, where = (
    torch.arcsinh, torch.arctanh, torch.log, torch.log1p, torch.log2, torch.maximum, torch.sign, torch.sqrt, torch.tanh,
    torch.where,
)  # fmt: skip
broadcast_to, concatenate, permute, stack, take_along_axis = (
    torch.broadcast_to, torch.cat, torch.permute, torch.stack, torch.take_along_dim,
)  # fmt: skip
single, double, diagonal = Tensor.float, Tensor.double, partial(torch.diagonal, dim1=-2, dim2=-1)
largest, total, mean, std = (partial(each, keepdim=True) for each in (torch.amax, torch.sum, torch.mean, torch.std))


def norm(x: Tensor, axis: int) -> Tensor:
    size: Tensor = torch.linalg.vector_norm(x, dim=axis, keepdim=True)
    return size


def zeros(shape: Sequence[int], like: Tensor) -> Tensor:
    return torch.zeros(shape, dtype=like.dtype, device=like.device)


def eye(size: int, like: Tensor) -> Tensor:
    return torch.eye(size, dtype=like.dtype, device=like.device)


def arange(count: int, like: Tensor) -> Tensor:
    return torch.arange(count, device=like.device)


def padded(x: Tensor, width: int) -> Tensor:
    return torch.nn.functional.pad(x, (0, width - x.shape[-1]))


def twice_ranks(rows: Tensor) -> Tensor:
    rows = rows.contiguous()
    ordered = rows.sort(dim=-1).values
    return torch.searchsorted(ordered, rows) + torch.searchsorted(ordered, rows, right=True)


def normal_quantiles(ranks: Tensor, like: Tensor) -> Tensor:
    # In double precision: rounded to float32, shares near 1 would lose the digits of the largest quantiles.
    quantiles: Tensor = torch.special.ndtri(ranks.double() / (2 * ranks.shape[-1]))
    return quantiles.to(like.dtype)


def inverse(matrices: Tensor) -> Tensor:
    # By a triangular solve: torch.cholesky_inverse handles the matrices of a batch one after the other on a GPU.
    factor = torch.linalg.cholesky_ex(matrices)[0]
    identity = eye(factor.shape[-1], factor)
    inverted: Tensor = torch.linalg.solve_triangular(factor, identity.expand_as(factor), upper=False)
    product: Tensor = inverted.mT @ inverted
    return product


def register() -> None:
    """Let the statistics of tables take tensors."""
    functions: Any = sys.modules[__name__]
    arrays.register(Tensor, functions)
