"""The array functions that statistics of tables are written with: numpy's here, torch's where the lab registers them.

Statistics must be the same in training, on a GPU, and in use, on a processor without torch. So they are written once,
with operators, the methods both kinds of arrays share, and these functions: `xp = functions_for(values)`, then
`xp.where(...)`. Positional arguments mean the same in both libraries; where they do not, there is a function here.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = Any  # a numpy array, or in the lab a torch tensor

NORMAL = NormalDist()

_REGISTERED: dict[type, Any] = {}


def register(kind: type, functions: Any) -> None:
    """Use these functions for arrays of this type."""
    _REGISTERED[kind] = functions


def functions_for(array: Array) -> Any:
    """The functions for an array: this module for numpy's."""
    if isinstance(array, np.ndarray):
        return sys.modules[__name__]
    return next(functions for kind, functions in _REGISTERED.items() if isinstance(array, kind))


arctanh, arcsinh, log, log1p, log2, maximum, sign, sqrt, tanh, where = (
    np.arctanh, np.arcsinh, np.log, np.log1p, np.log2, np.maximum, np.sign, np.sqrt, np.tanh, np.where,
)  # fmt: skip
broadcast_to, concatenate, permute, stack, take_along_axis = (
    np.broadcast_to, np.concatenate, np.transpose, np.stack, np.take_along_axis,
)  # fmt: skip


def single(x: Array) -> Array:
    """The array in float32."""
    return x.astype(np.float32, copy=False)


def double(x: Array) -> Array:
    """The array in float64."""
    return x.astype(np.float64, copy=False)


def zeros(shape: Sequence[int], like: Array) -> Array:
    """Zeros of the type of another array, on its device."""
    return np.zeros(shape, dtype=like.dtype)


def eye(size: int, like: Array) -> Array:
    """The identity matrix, of the type of another array and on its device."""
    return np.eye(size, dtype=like.dtype)


def arange(count: int, like: Array) -> Array:
    """The integers from 0, on the device of another array."""
    return np.arange(count)


def diagonal(x: Array) -> Array:
    """The diagonals of matrices (..., P, P).  (..., P)"""
    return np.diagonal(x, axis1=-2, axis2=-1)


def padded(x: Array, width: int) -> Array:
    """The array with zeros at the end of its last dimension, up to a width."""
    return np.concatenate([x, np.zeros((*x.shape[:-1], width - x.shape[-1]), dtype=x.dtype)], axis=-1)


def largest(x: Array, axis: int) -> Array:
    """The largest entry over an axis, which stays with length 1."""
    return x.max(axis, keepdims=True)


def total(x: Array, axis: int | tuple[int, ...]) -> Array:
    """The sum over an axis, which stays with length 1. Added up in float64: numpy adds long columns one by one."""
    return np.add.reduce(x, axis=axis, dtype=np.float64, keepdims=True).astype(x.dtype if x.dtype.kind == "f" else "f4")


def mean(x: Array, axis: int) -> Array:
    """The mean over an axis, which stays with length 1."""
    return total(x, axis) / x.shape[axis]


def std(x: Array, axis: int) -> Array:
    """The standard deviation (with n − 1) over an axis, which stays with length 1."""
    centered = x - mean(x, axis)
    return np.sqrt(total(centered * centered, axis) / max(x.shape[axis] - 1, 1))


def norm(x: Array, axis: int) -> Array:
    """The Euclidean norm over an axis, which stays with length 1."""
    return np.sqrt(np.add.reduce(x * x, axis=axis, keepdims=True))


def twice_ranks(rows: Array) -> Array:
    """Twice the mean rank of each entry among its row, from 1 to 2N − 1; ties share theirs.  (..., N)"""
    count = rows.shape[-1]
    order = np.argsort(rows, axis=-1)
    ordered = np.take_along_axis(rows, order, axis=-1)
    index = np.broadcast_to(np.arange(count), rows.shape)
    starts = np.ones(rows.shape, dtype=bool)  # of runs of equal values
    np.not_equal(ordered[..., 1:], ordered[..., :-1], out=starts[..., 1:])
    if starts.all():
        sums = 2 * index + 1
    else:
        first = np.maximum.accumulate(np.where(starts, index, 0), axis=-1)
        stops = np.concatenate([np.where(starts, index, count)[..., 1:], np.full((*rows.shape[:-1], 1), count)], -1)
        behind = np.minimum.accumulate(stops[..., ::-1], axis=-1)[..., ::-1]
        sums = first + behind
    ranks = np.empty(rows.shape, dtype=np.intp)
    np.put_along_axis(ranks, order, sums, axis=-1)
    return ranks


def normal_quantiles(ranks: Array, like: Array) -> Array:
    """The normal quantiles of `twice_ranks` among N, Φ⁻¹(ranks / 2N), of the type of another array.  (..., N)"""
    return quantile_table(ranks.shape[-1]).astype(like.dtype, copy=False)[ranks]


def quantile_table(count: int) -> NDArray[np.float64]:
    """Φ⁻¹(i / 2N) for i from 0 to 2N − 1; the first is not used.

    Python's own function is exact, and loads at once: scipy's takes longer to load than a small table to answer.
    """
    lower = [NORMAL.inv_cdf(index / (2 * count)) for index in range(1, count)]
    return np.array([-np.inf, *lower, 0.0, *(-quantile for quantile in reversed(lower))])


def inverse(matrices: Array) -> Array:
    """The inverses of positive definite matrices (..., P, P), from their Cholesky factors; NaN for any other matrix."""
    try:
        inverted = _inverse_of_triangle(np.linalg.cholesky(matrices))
    except np.linalg.LinAlgError:
        return np.full_like(matrices, np.nan)
    return inverted.swapaxes(-1, -2) @ inverted


TRIANGLE = 48  # rows up to which a triangle is inverted at once


def _inverse_of_triangle(lower: Array) -> Array:
    """The inverses of lower triangular matrices, half by half: nearly all of it is matrix products.  (..., P, P)"""
    size = lower.shape[-1]
    if size <= TRIANGLE:
        return np.linalg.inv(lower)
    half = size // 2
    inverted = np.zeros_like(lower)
    inverted[..., :half, :half] = above = _inverse_of_triangle(lower[..., :half, :half])
    inverted[..., half:, half:] = below = _inverse_of_triangle(lower[..., half:, half:])
    inverted[..., half:, :half] = -below @ (lower[..., half:, :half] @ above)
    return inverted
