"""Laws of all Triton kernels, run by Triton's interpreter on the CPU.

What the plain paths mean is tested with each family; here the kernels have to do the same.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from causal_arrow_lab.network.kernels.checks import (
    FUSED,
    MIXING,
    TRIANGLES,
    Inputs,
    Operation,
    Sizes,
    check_compiled,
    check_results,
    with_gradients,
)

pytestmark = pytest.mark.usefixtures("interpreter")

OPERATIONS = {operation.name: operation for operation in (*FUSED, *MIXING, *TRIANGLES)}
OPERATORS = {
    "gated_feed_forward": "gated_feed_forward",
    "norm_linear": "norm_linear",
    "mix_cells": "mix_cells",
    "gated_channels": "gate_triangles",
    "normed_pairs": "norm_triangles",
}

# Each takes another kernel, another tail of a tile or another padding.
SIZES: dict[str, list[Sizes]] = {
    "gated_feed_forward": [  # tokens, width, hidden units
        (203, 64, 128),
        (67, 48, 128),
        (1, 64, 128),
        (150, 128, 256),
        (70, 48, 96),
        (130, 32, 64),
        (65, 96, 192),
    ],
    "norm_linear": [(203, 64, 192), (67, 48, 96), (65, 64, 512), (150, 128, 256), (1, 96, 160)],
    "mix_cells": [  # tasks, observations, variables, width, heads
        (2, 9, 5, 64, 8),
        (1, 21, 2, 64, 8),
        (2, 13, 17, 64, 8),
        (1, 7, 32, 32, 4),
        (2, 9, 50, 64, 8),
        (1, 5, 110, 64, 8),
        (1, 3, 128, 16, 2),
        (1, 11, 20, 128, 8),
        (2, 5, 3, 96, 12),
        (1, 1, 1, 16, 1),
    ],
    "gated_channels": [(2, 5, 16), (1, 9, 64), (1, 11, 128), (3, 1, 32), (1, 7, 96)],  # tasks, variables, width
    "normed_pairs": [(2, 5, 16), (1, 9, 64), (1, 11, 128), (3, 1, 32), (1, 7, 96)],
}
EMPTY: dict[str, Sizes] = {
    "gated_feed_forward": (0, 64, 128),
    "norm_linear": (0, 64, 128),
    "mix_cells": (2, 0, 5, 16, 2),
    "gated_channels": (0, 5, 16),
    "normed_pairs": (0, 5, 16),
}
CASES = [(name, sizes) for name, cases in SIZES.items() for sizes in cases]


def small_inputs(operation: Operation) -> Inputs:
    return operation.drawn(SIZES[operation.name][0])


def test_every_kernel_is_tested_here() -> None:
    assert set(OPERATIONS) == set(OPERATORS) == set(SIZES) == set(EMPTY)


@pytest.mark.parametrize(("name", "sizes"), CASES)
def test_kernels_are_the_plain_path_to_the_precision_of_bfloat16(name: str, sizes: Sizes) -> None:
    assert check_results(OPERATIONS[name], sizes)


@pytest.mark.parametrize(("name", "sizes"), [(name, sizes) for name, sizes in CASES if min(sizes) > 1])
def test_kernels_write_every_element_and_nothing_else(name: str, sizes: Sizes, monkeypatch: pytest.MonkeyPatch) -> None:
    guards: list[Tensor] = []
    new_empty = Tensor.new_empty

    def guarded(like: Tensor, shape: tuple[int, ...], dtype: torch.dtype | None = None, **others: str) -> Tensor:
        if others:  # the interpreter's own
            return new_empty(like, shape, dtype=dtype, **others)
        memory = torch.full((torch.Size(shape).numel() + 256,), 7.0, dtype=dtype or like.dtype)
        guards.extend((memory[:128], memory[-128:]))
        return memory[128:-128].view(shape).fill_(torch.nan)

    operation = OPERATIONS[name]
    inputs = operation.drawn(sizes)
    monkeypatch.setattr(Tensor, "new_empty", guarded)
    monkeypatch.setattr(torch, "empty_like", lambda x: guarded(x, x.shape))
    results = with_gradients(operation.function, *inputs)
    assert all(result.isfinite().all() for result in results)
    assert len(guards) >= 4  # two for what a pass writes
    assert all((guard == 7).all() for guard in guards)


@pytest.mark.parametrize("name", OPERATIONS)
def test_operators_keep_the_rules_of_autograd_and_the_compiler(name: str) -> None:
    operator = getattr(torch.ops.causal_arrow, OPERATORS[name]).default
    torch.library.opcheck(operator, [argument.requires_grad_() for argument in small_inputs(OPERATIONS[name])[0]])
    assert check_compiled(OPERATIONS[name], SIZES[name][:2])


@pytest.mark.parametrize("name", OPERATIONS)
def test_kernels_take_tensors_that_are_not_contiguous(name: str) -> None:
    operation = OPERATIONS[name]
    inputs = small_inputs(operation)
    spread = [[torch.stack([tensor, tensor], dim=-1)[..., 0] for tensor in tensors] for tensors in inputs]
    results, expected = (with_gradients(operation.function, *tensors) for tensors in (spread, inputs))
    assert all(map(torch.equal, results, expected))


@pytest.mark.parametrize(("name", "sizes"), EMPTY.items())
def test_nothing_in_gives_nothing_out_and_zero_gradients(name: str, sizes: Sizes) -> None:
    operation = OPERATIONS[name]
    arguments, d_outputs = operation.drawn(sizes)
    results = with_gradients(operation.function, arguments, d_outputs)
    assert [result.shape for result in results] == [tensor.shape for tensor in (*d_outputs, *arguments)]
    assert all((result == 0).all() for result in results)


def test_shares_of_the_observations_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    from causal_arrow_lab.network.kernels.mixing import kernels

    (cells, weights), (d_out,) = OPERATIONS["mix_cells"].drawn((1, 19, 20, 16, 2))
    results = []
    for count in (1, 3):
        monkeypatch.setattr(kernels, "shares", lambda *_, count=count: count)
        results.append([kernels.forward(cells, weights), *kernels.backward(d_out, cells, weights)])
    for one, three in zip(*results, strict=True):
        assert torch.allclose(one.float(), three.float(), rtol=1e-5, atol=1e-5)


def test_shares_fill_the_device_and_none_is_empty() -> None:
    from causal_arrow_lab.network.kernels.mixing.kernels import shares

    assert shares(264, 100, 264) == 1
    assert shares(64, 250, 132) == 2
    assert 60 <= shares(4, 500, 264) <= 66
    assert shares(4, 3, 264) == 3
    assert all(1 <= shares(4, blocks, 264) <= blocks for blocks in range(1, 50))
