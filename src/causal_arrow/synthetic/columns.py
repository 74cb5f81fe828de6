"""What instruments and questionnaires do to a column after the fact: monotone distortions, rounding, few levels.

Effects still see their causes undistorted, so that a distorted task is an exact structural equation model, a
post-nonlinear one, and the direct causes stay what they were.
"""

# R columns as rows, N observations; "dials" are (R, 2) uniform numbers that set the parameters of each column

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from causal_arrow.synthetic.noise import standardize

# (R, N) standardized columns, (R, 2) dials -> (R, N)
ColumnChange = Callable[[Tensor, Tensor], Tensor]


def _facing_either_way(columns: Tensor, dial: Tensor) -> Tensor:
    """Half the columns turned over, so that a one-sided distortion may fall on either side."""
    return torch.where(dial < 0.5, columns, -columns)


def exponential(columns: Tensor, dials: Tensor) -> Tensor:
    """exp(κx), κ in [0.3, 1.5], less where a column is so wide that it would span more than e⁶ on one side."""
    steepness = 0.3 + 1.2 * dials[:, :1]
    steepness = torch.minimum(steepness, 6 / columns.abs().amax(1, keepdim=True))
    return torch.exp(steepness * _facing_either_way(columns, dials[:, 1:]))


def power(columns: Tensor, dials: Tensor) -> Tensor:
    """sign(x) · |x|^γ, γ in [1/3, 3]."""
    exponent = 3 ** (2 * dials[:, :1] - 1)
    return torch.copysign(columns.abs() ** exponent, columns)


def sinh_arcsinh(columns: Tensor, dials: Tensor) -> Tensor:
    """sinh(δ · arcsinh(x) + ε), tail weight δ in [1/2, 2], skewness ε in [−1, 1]."""
    return torch.sinh(2 ** (2 * dials[:, :1] - 1) * torch.asinh(columns) + 2 * dials[:, 1:] - 1)


def softplus(columns: Tensor, dials: Tensor) -> Tensor:
    """log(1 + exp(κx)), κ in [0.5, 3]: flat on one side, straight on the other."""
    return torch.nn.functional.softplus((0.5 + 2.5 * dials[:, :1]) * _facing_either_way(columns, dials[:, 1:]))


def squash(columns: Tensor, dials: Tensor) -> Tensor:
    """tanh(κx + c), κ in [0.5, 2], c in [−1/2, 1/2]."""
    return torch.tanh((0.5 + 1.5 * dials[:, :1]) * columns + dials[:, 1:] - 0.5)


DISTORTION_SHAPES: Mapping[str, ColumnChange] = {
    "exponential": exponential,
    "power": power,
    "sinh_arcsinh": sinh_arcsinh,
    "softplus": softplus,
    "squash": squash,
}


def rounded(columns: Tensor, dials: Tensor) -> Tensor:
    """Rounded to multiples of 0.1 to 1 standard deviation, the grid laid anywhere."""
    step = 0.1 + 0.9 * dials[:, :1]
    grid = torch.round(columns / step + 0.5 * dials[:, 1:])
    # A grid line may miss a column that has all but one of its values in one place: leave that column as it is.
    return torch.where(grid.amax(1, keepdim=True) > grid.amin(1, keepdim=True), grid, columns)


def ordinal(columns: Tensor, dials: Tensor) -> Tensor:
    """Two to five levels, cut at random quantiles."""
    observations = columns.shape[1]
    cuts = 1 + (4 * dials[:, :1]).floor()  # (R, 1) in {1, ..., 4}
    # Quantiles spread evenly around the circle from a random start: no two fall together, and one dial sets them all.
    quantile = torch.remainder(dials[:, 1:] + torch.arange(4, device=columns.device) / cuts, 1.0)
    place = (quantile * (observations - 1)).long().clamp_max(observations - 2)
    threshold = columns.sort(dim=1).values.gather(1, place)  # (R, 4)
    used = torch.arange(4, device=columns.device) < cuts
    levels = torch.zeros_like(columns)
    for cut in range(4):
        levels += (columns > threshold[:, cut, None]) & used[:, cut, None]
    return torch.where(levels.amax(1, keepdim=True) > levels.amin(1, keepdim=True), levels, columns)


# The columns of a task stay continuous, or about as many of them as its share says are changed.
ROUNDINGS: Mapping[str, ColumnChange | None] = {"continuous": None, "rounded": rounded, "ordinal": ordinal}


def change_columns(
    values: Tensor,
    kinds: Tensor,
    kind_counts: Sequence[int],
    changes: Sequence[ColumnChange],
    generator: torch.Generator,
) -> Tensor:
    """`values` (B, P, N) with each column put through the change of its kind and standardized again.  (B, P, N)

    `kinds` (B, P) is 0 for a column that stays as it is and i for changes[i − 1]; `kind_counts` says, on the host, how
    often each kind occurs.
    """
    if sum(kind_counts[1:]) == 0:
        return values
    columns = values.clone(memory_format=torch.contiguous_format).flatten(0, 1)
    by_kind = kinds.flatten().argsort(stable=True)
    first = kind_counts[0]
    for change, count in zip(changes, kind_counts[1:], strict=True):
        if count:
            rows = by_kind[first : first + count]
            dials = torch.rand(count, 2, generator=generator, device=values.device)
            columns[rows] = standardize(change(columns[rows], dials))
            first += count
    return columns.view_as(values)
