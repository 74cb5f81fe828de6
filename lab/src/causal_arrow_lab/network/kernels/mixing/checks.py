"""What `python -m causal_arrow_lab.network` checks and times of the mixing of cells."""

from __future__ import annotations

from typing import Any

from causal_arrow_lab.network.kernels import mixing
from causal_arrow_lab.network.kernels.kernel_check import Draw, Inputs, LaunchKey, Operation

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

OPERATIONS = (
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
