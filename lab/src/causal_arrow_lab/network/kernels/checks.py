"""Checks and timings of `python -m causal_arrow_lab.network`: token-wise layers, mixing, and triangles."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from causal_arrow_lab.network.kernels import fused, mixing, triangles
from causal_arrow_lab.network.kernels.kernel_check import LAST, Draw, Inputs, LaunchKey, Operation

# T tokens, D width, U units: hidden units of the feed-forward block, outputs of the linear layer


def _weights(draw: Draw, outputs: int, inputs: int) -> Tensor:
    weights: Tensor = draw(outputs, inputs).float() / inputs**0.5
    return weights


def _feed_forward_inputs(draw: Draw, tokens: int, width: int, units: int) -> Inputs:
    shapes = (units, width), (units, width), (width, units)
    return Inputs([draw(tokens, width), *(_weights(draw, *shape) for shape in shapes)], [draw(tokens, width)])


def _norm_linear_inputs(draw: Draw, tokens: int, width: int, units: int) -> Inputs:
    return Inputs([draw(tokens, width), _weights(draw, units, width)], [draw(tokens, units)])


def _feed_forward_launches() -> dict[LaunchKey, Any]:
    from causal_arrow_lab.network.kernels.fused.feed_forward_kernels import LAUNCHES

    return LAUNCHES


def _norm_linear_launches() -> dict[LaunchKey, Any]:
    from causal_arrow_lab.network.kernels.fused.norm_linear_kernels import LAUNCHES

    return LAUNCHES


def _product(tokens: int, width: int, units: int) -> int:
    return 2 * tokens * width * units


# Sizes that launch the resident kernels of width 64, the streamed ones of width 64 and those of width 128.
_NARROW, _NARROW_STREAMED, _WIDE = (2_000_000, 64, 128), (500_000, 64, 512), (200_000, 128, 512)

FUSED = (
    Operation(
        name="gated_feed_forward",
        function=fused.gated_feed_forward,
        plain=fused.plain_gated_feed_forward,
        axes="T D U",
        inputs=_feed_forward_inputs,
        batched=1,
        checked=[(100_003, 64, 128), (777, 64, 128), (50_001, 128, 256), (4_099, 48, 96), (203, 48, 128)],
        huge=[(2**31 // 64 + LAST, 64, 128), (2**31 // 128 + LAST, 128, 256)],
        timed=[_NARROW, (200_000, 128, 256)],
        product=_product,
        # Backward computes gate and value again, the gradient of their product, and five products of gradients.
        products=(3, 8),
        launches=_feed_forward_launches,
        candidates={  # tokens, units, warps, stages, programs a multiprocessor
            ("forward_resident", 64): (_NARROW, [(64, 64, 4, 3, 3), (64, 32, 4, 3, 3), (64, 64, 4, 4, 2)]),
            ("backward_resident", 64): (_NARROW, [(64, 128, 8, 3, 1), (64, 128, 8, 2, 1)]),
            ("forward_streamed", 64): (_NARROW_STREAMED, [(128, 32, 8, 3, 1), (64, 64, 4, 3, 1)]),
            ("input_gradient_streamed", 64): (_NARROW_STREAMED, [(128, 32, 8, 3, 1), (64, 32, 4, 3, 1)]),
            ("weight_gradients_streamed", 64): (
                _NARROW_STREAMED,
                [(64, 32, 4, 3, 3), (128, 32, 8, 3, 2), (128, 64, 8, 3, 1)],
            ),
            ("forward_streamed", 128): (_WIDE, [(128, 64, 8, 3, 1), (128, 32, 8, 3, 1), (64, 32, 4, 3, 1)]),
            ("input_gradient_streamed", 128): (_WIDE, [(128, 32, 8, 3, 1), (128, 32, 8, 4, 1), (64, 32, 4, 3, 1)]),
            ("weight_gradients_streamed", 128): (_WIDE, [(64, 32, 4, 3, 2), (128, 32, 8, 3, 1), (128, 64, 8, 2, 1)]),
        },
    ),
    Operation(
        name="norm_linear",
        function=fused.norm_linear,
        plain=fused.plain_norm_linear,
        axes="T D U",
        inputs=_norm_linear_inputs,
        batched=1,
        checked=[(100_003, 64, 128), (777, 64, 128), (9_999, 64, 512), (50_001, 128, 512), (203, 48, 96)],
        huge=[(2**31 // 128 + LAST, 64, 128), (2**31 // 512 + LAST, 128, 512)],
        timed=[_NARROW, _WIDE],
        product=_product,
        products=(1, 2),
        launches=_norm_linear_launches,
        candidates={
            ("forward", 64): (_NARROW, [(64, 64, 4, 3, 1), (128, 64, 8, 3, 1), (64, 128, 4, 3, 1)]),
            ("backward_resident", 64): (_NARROW, [(64, 64, 8, 3, 1), (64, 64, 8, 2, 1), (64, 64, 4, 3, 1)]),
            ("input_gradient_streamed", 64): (_NARROW_STREAMED, [(64, 64, 4, 3, 1), (128, 64, 8, 3, 1)]),
            ("weight_gradient_streamed", 64): (_NARROW_STREAMED, [(64, 64, 4, 3, 4), (128, 64, 8, 3, 2)]),
            ("forward", 128): (_WIDE, [(64, 64, 4, 3, 1), (128, 64, 8, 3, 1)]),
            ("input_gradient_streamed", 128): (_WIDE, [(64, 64, 4, 3, 1), (128, 64, 8, 3, 1)]),
            ("weight_gradient_streamed", 128): (_WIDE, [(128, 128, 8, 3, 1), (64, 64, 4, 3, 2)]),
        },
    ),
)


# B tasks, N observations, P variables, D width, H heads


def _inputs(draw: Draw, tasks: int, observations: int, variables: int, width: int, heads: int) -> Inputs:
    weights = draw(tasks, heads, variables, variables) / variables**0.5
    cells = (tasks, observations, variables)
    return Inputs([draw(*cells, 2 * width), weights], [draw(*cells, width)])


def _launches() -> dict[LaunchKey, Any]:
    from causal_arrow_lab.network.kernels.mixing.kernels import LAUNCHES

    return LAUNCHES


# Sizes whose tiles have 32, 64 and 128 variables.
_FEW, _USUAL, _MANY = (256, 100, 20, 64, 8), (64, 500, 50, 64, 8), (16, 500, 100, 64, 8)

MIXING = (
    Operation(
        name="mix_cells",
        function=mixing.mix_cells,
        plain=mixing.plain_mix_cells,
        axes="B N P D H",
        inputs=_inputs,
        batched=2,
        checked=[
            (9, 251, 50, 64, 8),
            (3, 77, 37, 64, 8),
            (2, 1, 50, 64, 8),
            (3, 333, 2, 64, 8),
            (5, 77, 17, 64, 8),
            (3, 203, 101, 64, 8),
            (5, 77, 20, 128, 8),
        ],
        huge=[(8_500, 40, 50, 64, 8)],
        timed=[_FEW, _USUAL, _MANY],
        product=lambda tasks, observations, variables, width, heads: 2 * tasks * observations * variables**2 * width,
        products=(1, 3),  # backward mixes again
        launches=_launches,
        candidates={  # observations of a block, warps, stages, programs a multiprocessor
            ("forward", 32): (_FEW, [(8, 4, 3, 4), (4, 2, 3, 9), (8, 4, 2, 4), (4, 4, 3, 6)]),
            ("forward", 64): (_USUAL, [(4, 4, 3, 3), (4, 8, 3, 3), (4, 4, 2, 3), (4, 4, 4, 2)]),
            ("forward", 128): (_MANY, [(2, 8, 3, 2), (2, 8, 2, 2), (2, 4, 2, 2), (4, 8, 2, 1)]),
            ("backward", 32): (_FEW, [(4, 2, 3, 4), (4, 2, 2, 4), (4, 4, 3, 2)]),
            ("backward", 64): (_USUAL, [(4, 4, 3, 2), (4, 4, 2, 2), (2, 4, 3, 2), (4, 8, 3, 1)]),
            ("backward", 128): (_MANY, [(2, 8, 3, 1), (2, 8, 2, 1), (4, 8, 2, 1)]),
        },
    ),
)


# B tasks, P variables, D width


def _sides(draw: Draw, tasks: int, variables: int, width: int) -> Inputs:
    outputs = [draw(tasks, width, variables, variables) for _ in range(2)]
    return Inputs([draw(tasks, variables, variables, 4 * width)], outputs)


def _products(draw: Draw, tasks: int, variables: int, width: int) -> Inputs:
    return Inputs([draw(tasks, width, variables, variables)], [draw(tasks, variables, variables, width)])


_CHECKED = [(3, 30, 128), (5, 17, 128), (2, 101, 128), (7, 5, 24), (3, 1, 128)]
_TIMED = [(64, 50, 128), (16, 100, 128)]

TRIANGLES = (
    Operation(
        name="gated_channels",
        function=triangles.gated_channels,
        plain=triangles.plain_gated_channels,
        axes="B P D",
        inputs=_sides,
        batched=1,
        checked=_CHECKED,
        huge=[(2**31 // (4 * 128 * 100**2) + LAST, 100, 128)],
        timed=_TIMED,
    ),
    Operation(
        name="normed_pairs",
        function=triangles.normed_pairs,
        plain=triangles.plain_normed_pairs,
        axes="B P D",
        inputs=_products,
        batched=1,
        checked=_CHECKED,
        huge=[(2**31 // (128 * 100**2) + LAST, 100, 128)],
        timed=_TIMED,
    ),
)
