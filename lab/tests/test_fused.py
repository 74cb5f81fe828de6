"""The fused token-wise layers: the plain path against the formulas. Their kernels are tested in test_kernels.py."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from causal_arrow.errors import ConfigurationError
from causal_arrow_lab.network import devices
from causal_arrow_lab.network.kernels import fused


def normalized(x: Tensor) -> Tensor:
    return x / (x.pow(2).mean(-1, keepdim=True) + 1e-6).sqrt()


def feed_forward_formula(x: Tensor, w_gate: Tensor, w_value: Tensor, w_out: Tensor) -> Tensor:
    a = normalized(x) @ w_gate.T
    return x + (a / (1 + torch.exp(-a)) * (normalized(x) @ w_value.T)) @ w_out.T


def linear_formula(x: Tensor, weight: Tensor) -> Tensor:
    return normalized(x) @ weight.T


class Layer(NamedTuple):
    chosen: Callable[..., Tensor]  # what people call
    formula: Callable[..., Tensor]
    weights: Callable[[int, int], list[tuple[int, int]]]  # shapes, from width and units


LAYERS = {
    "gated_feed_forward": Layer(
        fused.gated_feed_forward,
        feed_forward_formula,
        lambda width, units: [(units, width), (units, width), (width, units)],
    ),
    "norm_linear": Layer(
        fused.norm_linear,
        linear_formula,
        lambda width, units: [(units, width)],
    ),
}


def arguments_of(layer: Layer, width: int, units: int, *tokens: int, dtype: torch.dtype) -> list[Tensor]:
    """Tokens and weights, seeded by their shape."""
    generator = torch.Generator().manual_seed(1000 * width + units)
    x = torch.randn(*tokens, width, generator=generator)
    weights = [torch.randn(*shape, generator=generator) / shape[1] ** 0.5 for shape in layer.weights(width, units)]
    return [tensor.to(dtype) for tensor in (x, *weights)]


def with_gradients(function: Callable[..., Tensor], arguments: list[Tensor], dy: Tensor | None = None) -> list[Tensor]:
    """The value of a function and the gradients of its arguments."""
    arguments = [argument.detach().requires_grad_() for argument in arguments]
    y = function(*arguments)
    if dy is None:
        dy = torch.randn(y.shape, generator=torch.Generator().manual_seed(1)).to(y.dtype)
    return [y.detach(), *torch.autograd.grad(y, arguments, dy.to(y.dtype))]


def relative_error(value: Tensor, reference: Tensor) -> float:
    return float((value.double() - reference).norm() / reference.norm())


def test_rms_norm_gives_unit_mean_square_in_the_type_of_its_input() -> None:
    x = 30 * torch.randn(5, 7, 64, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(fused.rms_norm(x).square().mean(-1), torch.ones(5, 7), atol=1e-5)
    assert fused.rms_norm(x.bfloat16()).dtype == torch.bfloat16
    with torch.autocast("cpu", torch.bfloat16):
        assert fused.rms_norm(x.bfloat16()).dtype == torch.bfloat16
    assert torch.equal(fused.rms_norm(torch.zeros(2, 64)), torch.zeros(2, 64))


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("tokens", [(), (3,), (2, 3, 5), (0, 4)])
def test_a_layer_is_its_formula_over_any_leading_dimensions(name: str, tokens: tuple[int, ...]) -> None:
    layer = LAYERS[name]
    arguments = arguments_of(layer, 48, 96, *tokens, dtype=torch.float64)
    y, expected = layer.chosen(*arguments), layer.formula(*arguments)
    assert y.shape == expected.shape
    assert torch.allclose(y, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", LAYERS)
def test_gradients_of_the_plain_path_are_right(name: str) -> None:
    arguments = arguments_of(LAYERS[name], 8, 16, 3, dtype=torch.float64)
    assert torch.autograd.gradcheck(LAYERS[name].chosen, [argument.requires_grad_() for argument in arguments])


@pytest.mark.parametrize("name", LAYERS)
def test_the_type_of_x_decides_and_autocast_does_not(name: str) -> None:
    layer = LAYERS[name]
    x, *weights = arguments_of(layer, 32, 64, 11, dtype=torch.float32)
    outside, half = layer.chosen(x, *weights), layer.chosen(x.bfloat16(), *weights)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(layer.chosen(x, *weights), outside)
        assert torch.equal(layer.chosen(x.bfloat16(), *weights), half)
    assert half.dtype == torch.bfloat16
    assert relative_error(half, outside.double()) < 1e-2


@pytest.mark.parametrize("name", LAYERS)
def test_gradients_of_weights_come_in_their_own_type(name: str) -> None:
    x, *weights = arguments_of(LAYERS[name], 32, 64, 11, dtype=torch.float32)
    _, dx, *d_weights = with_gradients(LAYERS[name].chosen, [x.bfloat16(), *weights])
    assert dx.dtype == torch.bfloat16
    assert all(gradient.dtype == torch.float32 for gradient in d_weights)


def test_weights_of_another_width_are_refused_with_both_shapes() -> None:
    x, w_gate, w_value, w_out = arguments_of(LAYERS["gated_feed_forward"], 32, 64, 11, dtype=torch.float32)
    with pytest.raises(ConfigurationError, match=r"\(H, 32\).*\(64, 32\).*\(64, 32\)"):
        fused.gated_feed_forward(x, w_gate, w_value, w_out.T)
    with pytest.raises(ConfigurationError, match=r"\(O, 32\).*\(32, 64\)"):
        fused.norm_linear(x, w_out)


def test_only_narrow_half_precision_layers_on_a_hopper_gpu_take_the_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "_HAS_TRITON", True)
    monkeypatch.setattr(devices, "_on_hopper", lambda: True)
    good = {"is_cuda": True, "dtype": torch.bfloat16, "shape": (7, 64)}
    assert fused._kernels_apply(SimpleNamespace(**good), 128)
    for other in ({"is_cuda": False}, {"dtype": torch.float32}, {"shape": (7, 256)}, {"shape": (7, 40)}):
        assert not fused._kernels_apply(SimpleNamespace(**{**good, **other}), 128)
    assert not fused._kernels_apply(SimpleNamespace(**good), 100)
    monkeypatch.setattr(devices, "_on_hopper", lambda: False)
    assert not fused._kernels_apply(SimpleNamespace(**good), 128)


def test_importing_the_layers_imports_neither_triton_nor_the_compiler() -> None:
    module = "causal_arrow_lab.network.kernels.fused"
    code = f"import sys, {module}; assert not {{'triton', 'torch._dynamo'}} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
