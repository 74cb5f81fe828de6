"""The triangle product: the plain path against its definition. Its kernels are tested in test_kernels.py."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from causal_arrow_lab.network.kernels import triangles
from causal_arrow_lab.network.kernels.triangles import triangle_products


def random_sides(tasks: int, variables: int, width: int, dtype: torch.dtype = torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(variables)
    return torch.randn(tasks, variables, variables, 4 * width, generator=generator, dtype=torch.float64).to(dtype)


@pytest.mark.parametrize("incoming", [False, True])
def test_products_run_over_the_third_variable(incoming: bool) -> None:
    sides = random_sides(2, 5, 3)
    left, right, left_gate, right_gate = sides.split(3, dim=-1)
    left, right = left * left_gate.sigmoid(), right * right_gate.sigmoid()
    expected = torch.zeros(2, 5, 5, 3, dtype=torch.float64)
    for i in range(5):
        for j in range(5):
            for k in range(5):
                expected[:, i, j] += left[:, k, i] * right[:, k, j] if incoming else left[:, i, k] * right[:, j, k]
    expected = expected / (expected.square().mean(-1, keepdim=True) + 1e-6).sqrt()
    torch.testing.assert_close(triangle_products(sides, incoming), expected)


@pytest.mark.parametrize("incoming", [False, True])
def test_gradients_are_those_of_finite_differences(incoming: bool) -> None:
    sides = random_sides(1, 3, 2).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: triangle_products(x, incoming), sides)


def test_cpu_tensors_never_take_the_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triangles, "_gate", None)
    monkeypatch.setattr(triangles, "_norm", None)
    assert triangle_products(random_sides(1, 4, 8, torch.bfloat16), False).dtype == torch.bfloat16
