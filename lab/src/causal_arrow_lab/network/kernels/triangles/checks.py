"""What `python -m causal_arrow_lab.network` checks and times of the changes of layout around a triangle product."""

from __future__ import annotations

from causal_arrow_lab.network.kernels import triangles
from causal_arrow_lab.network.kernels.kernel_check import LAST, Draw, Inputs, Operation

# B tasks, P variables, D width


def _sides(draw: Draw, tasks: int, variables: int, width: int) -> Inputs:
    outputs = [draw(tasks, width, variables, variables) for _ in range(2)]
    return Inputs([draw(tasks, variables, variables, 4 * width)], outputs)


def _products(draw: Draw, tasks: int, variables: int, width: int) -> Inputs:
    return Inputs([draw(tasks, width, variables, variables)], [draw(tasks, variables, variables, width)])


_CHECKED = [(3, 30, 128), (5, 17, 128), (2, 101, 128), (7, 5, 24), (3, 1, 128)]
_TIMED = [(64, 50, 128), (16, 100, 128)]

OPERATIONS = (
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
