"""Mixing of cells: the plain path against the formula. Its kernels are tested in test_kernels.py."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from torch import Tensor

from causal_arrow.errors import ConfigurationError
from causal_arrow_lab.network.kernels import mixing

SHAPES = [(2, 9, 5, 64, 8), (1, 21, 2, 96, 12), (2, 13, 110, 32, 4), (1, 1, 1, 16, 1)]  # B, N, P, D, H


def formula(value_and_gate: Tensor, weights: Tensor) -> Tensor:
    """Mixing in the words of its definition, in whatever precision its arguments have."""
    width, heads = value_and_gate.shape[-1] // 2, weights.shape[1]
    value, gate = value_and_gate[..., :width], value_and_gate[..., width:]
    mixed = torch.einsum("bhjk,bnkhd->bnjhd", weights, value.unflatten(-1, (heads, -1)))
    return mixed.flatten(3) * gate / (1 + torch.exp(-gate))


def block(
    tasks: int, observations: int, variables: int, width: int, heads: int, dtype: torch.dtype = torch.float64
) -> tuple[Tensor, Tensor, Tensor]:
    """Values and gates, weights, and a gradient of the output, seeded by their shape."""
    generator = torch.Generator().manual_seed(1000 * variables + observations)
    cells = torch.randn(tasks, observations, variables, 2 * width, generator=generator)
    weights = torch.randn(tasks, heads, variables, variables, generator=generator) / variables**0.5
    d_out = torch.randn(tasks, observations, variables, width, generator=generator)
    return cells.to(dtype), weights.to(dtype), d_out.to(dtype)


def gradients(function: object, cells: Tensor, weights: Tensor, d_out: Tensor) -> list[Tensor]:
    """The output, and the gradients of values, gates and weights."""
    cells, weights = (argument.detach().requires_grad_() for argument in (cells, weights))
    out = function(cells, weights)  # type: ignore[operator]
    d_cells, d_weights = torch.autograd.grad(out, (cells, weights), d_out)
    return [out.detach(), *d_cells.chunk(2, dim=-1), d_weights]


def relative_error(value: Tensor, reference: Tensor) -> float:
    return float((value.double() - reference).norm() / reference.norm())


@pytest.mark.parametrize("shape", [*SHAPES, (2, 0, 4, 16, 2), (1, 3, 130, 16, 2), (1, 3, 4, 12, 3)])
def test_mixing_is_its_formula(shape: tuple[int, ...]) -> None:
    cells, weights, _ = block(*shape)
    out = mixing.mix_cells(cells, weights)
    assert out.shape == (*cells.shape[:3], shape[3])
    assert torch.allclose(out, formula(cells, weights), rtol=1e-12, atol=1e-12)


def test_gradients_of_the_plain_path_are_right() -> None:
    cells, weights, _ = block(2, 3, 4, 4, 2)
    assert torch.autograd.gradcheck(mixing.mix_cells, (cells.requires_grad_(), weights.requires_grad_()))


def test_a_permutation_as_weights_permutes_variables_of_its_head_only() -> None:
    cells, _, _ = block(1, 6, 5, 16, 2)
    order = torch.tensor([3, 0, 4, 1, 2])
    weights = torch.stack([torch.eye(5)[order], torch.eye(5)])[None].double()
    value, gate = cells.chunk(2, dim=-1)
    expected = torch.cat([value[:, :, order, :8], value[..., 8:]], dim=-1) * torch.nn.functional.silu(gate)
    assert torch.allclose(mixing.mix_cells(cells, weights), expected, rtol=1e-12, atol=1e-12)


def test_the_type_of_the_cells_decides_and_autocast_does_not() -> None:
    cells, weights, d_out = block(1, 6, 5, 16, 2, dtype=torch.float32)
    outside = mixing.mix_cells(cells, weights)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(mixing.mix_cells(cells, weights), outside)
    out, d_value, _, d_weights = gradients(mixing.mix_cells, cells.bfloat16(), weights, d_out.bfloat16())
    assert out.dtype == d_value.dtype == torch.bfloat16
    assert d_weights.dtype == torch.float32
    assert relative_error(out, outside.double()) < 1e-2


def test_weights_for_other_variables_are_refused_with_both_shapes() -> None:
    cells, weights, _ = block(2, 3, 4, 16, 2)
    with pytest.raises(ConfigurationError, match=r"\(2, 3, 4, 32\).*\(2, 2, 4, 3\)"):
        mixing.mix_cells(cells, weights[..., :3])
    with pytest.raises(ConfigurationError, match="H a divisor of D"):
        mixing.mix_cells(cells, weights[:, :1].expand(2, 3, 4, 4))


def test_importing_the_mixing_imports_neither_triton_nor_the_compiler() -> None:
    module = "causal_arrow_lab.network.kernels.mixing"
    code = f"import sys, {module}; assert not {{'triton', 'torch._dynamo'}} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
