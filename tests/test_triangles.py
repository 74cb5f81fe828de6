"""The triangle product: the plain path against its definition, the kernels (interpreted) against the plain path.

The kernel tests need triton and its interpreter: TRITON_INTERPRET=1 python -m pytest tests/test_triangles.py
"""

from __future__ import annotations

import importlib.util
import os

import pytest
import torch
from torch import Tensor

from causal_arrow.encoders import triangles
from causal_arrow.encoders.triangles import plain_gated_channels, plain_normed_pairs, triangle_products

interpreted = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None or os.environ.get("TRITON_INTERPRET") != "1",
    reason="the kernels run on a CPU only in Triton's interpreter: install triton and set TRITON_INTERPRET=1",
)


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


@interpreted
@pytest.mark.parametrize(
    ("tasks", "variables", "width"), [(2, 5, 16), (1, 9, 64), (1, 11, 128), (3, 2, 32), (1, 7, 96)]
)
def test_kernels_equal_the_plain_path(tasks: int, variables: int, width: int) -> None:
    from causal_arrow.encoders.triangles import kernels

    sides = random_sides(tasks, variables, width, torch.bfloat16)
    reference = sides.double().requires_grad_()
    sides_out = plain_gated_channels(reference)
    outputs = kernels.gate(sides)
    gradients = [torch.randn_like(output) for output in outputs]
    d_reference = torch.autograd.grad(sides_out, reference, [gradient.double() for gradient in gradients])[0]
    for output, expected in zip(outputs, sides_out, strict=True):
        torch.testing.assert_close(output.double(), expected.detach(), rtol=2**-6.9, atol=1e-6)
    d_sides = kernels.gate_backward(gradients[0], gradients[1], sides)
    torch.testing.assert_close(d_sides.double(), d_reference, rtol=2**-6.9, atol=1e-6)

    products = outputs[0] + outputs[1]
    wide = products.double().requires_grad_()
    expected = plain_normed_pairs(wide)
    d_normed = torch.randn(expected.shape, dtype=torch.bfloat16)
    torch.testing.assert_close(kernels.norm(products).double(), expected.detach(), rtol=2**-6.9, atol=1e-5)
    d_expected = torch.autograd.grad(expected, wide, d_normed.double())[0]
    torch.testing.assert_close(kernels.norm_backward(d_normed, products).double(), d_expected, rtol=2**-6, atol=2e-2)


def test_cpu_tensors_never_take_the_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triangles, "_gate", None)
    monkeypatch.setattr(triangles, "_norm", None)
    assert triangle_products(random_sides(1, 4, 8, torch.bfloat16), False).dtype == torch.bfloat16
