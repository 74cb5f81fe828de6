"""The fused token-wise layers: the plain path against the formulas, the kernels (interpreted on the CPU) against both.

The kernel tests need triton and its interpreter: TRITON_INTERPRET=1 python -m pytest tests/test_fused.py
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor

from causal_arrow.encoders import fused, gpu
from causal_arrow.encoders.fused import operators
from causal_arrow.errors import ConfigurationError

interpreted = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None or os.environ.get("TRITON_INTERPRET") != "1",
    reason="the kernels run on a CPU only in Triton's interpreter: install triton and set TRITON_INTERPRET=1",
)


def normalized(x: Tensor) -> Tensor:
    return x / (x.pow(2).mean(-1, keepdim=True) + 1e-6).sqrt()


def feed_forward_formula(x: Tensor, w_gate: Tensor, w_value: Tensor, w_out: Tensor) -> Tensor:
    a = normalized(x) @ w_gate.T
    return x + (a / (1 + torch.exp(-a)) * (normalized(x) @ w_value.T)) @ w_out.T


def linear_formula(x: Tensor, weight: Tensor) -> Tensor:
    return normalized(x) @ weight.T


class Layer(NamedTuple):
    chosen: Callable[..., Tensor]  # what people call
    plain: Callable[..., Tensor]
    operator: object  # the kernels, as torch sees them
    formula: Callable[..., Tensor]
    weights: Callable[[int, int], list[tuple[int, int]]]  # shapes, from width and units


LAYERS = {
    "gated_feed_forward": Layer(
        fused.gated_feed_forward,
        fused.plain_gated_feed_forward,
        operators._feed_forward,
        feed_forward_formula,
        lambda width, units: [(units, width), (units, width), (width, units)],
    ),
    "norm_linear": Layer(
        fused.norm_linear,
        fused.plain_norm_linear,
        operators._norm_linear,
        linear_formula,
        lambda width, units: [(units, width)],
    ),
}
# width, units (hidden units, outputs), tokens: each takes another kernel, another tail or another padding
KERNEL_CASES = [
    ("gated_feed_forward", 64, 128, 203),
    ("gated_feed_forward", 48, 128, 67),
    ("gated_feed_forward", 64, 128, 1),
    ("gated_feed_forward", 128, 256, 150),
    ("gated_feed_forward", 48, 96, 70),
    ("gated_feed_forward", 32, 64, 130),
    ("gated_feed_forward", 96, 192, 65),
    ("norm_linear", 64, 192, 203),
    ("norm_linear", 48, 96, 67),
    ("norm_linear", 64, 512, 65),
    ("norm_linear", 128, 256, 150),
    ("norm_linear", 96, 160, 1),
]


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
    monkeypatch.setattr(gpu, "_HAS_TRITON", True)
    monkeypatch.setattr(gpu, "_on_hopper", lambda: True)
    good = {"is_cuda": True, "dtype": torch.bfloat16, "shape": (7, 64)}
    assert fused._kernels_apply(SimpleNamespace(**good), 128)
    for other in ({"is_cuda": False}, {"dtype": torch.float32}, {"shape": (7, 256)}, {"shape": (7, 40)}):
        assert not fused._kernels_apply(SimpleNamespace(**{**good, **other}), 128)
    assert not fused._kernels_apply(SimpleNamespace(**good), 100)
    monkeypatch.setattr(gpu, "_on_hopper", lambda: False)
    assert not fused._kernels_apply(SimpleNamespace(**good), 128)


def test_importing_the_layers_imports_neither_triton_nor_the_compiler() -> None:
    code = "import sys, causal_arrow.encoders.fused; assert not {'triton', 'torch._dynamo'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.fixture
def interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Triton's interpreter, taught what the kernels need and version 3.6 lacks."""
    import triton.language as tl
    from triton.runtime import interpreter

    builder = interpreter.InterpreterBuilder
    patch_tensor, dot = interpreter._patch_lang_tensor, builder.create_dot

    def patch_tensor_with_index(tensor, scope):  # numpy 2.4 no longer makes an int of an array of one element
        patch_tensor(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: self.handle.data.item())

    def dot_of_wide(self, a, b, d, *options):  # bfloat16 is kept as bare bits, which numpy would multiply as integers
        a, b = (self.cast_impl(x, tl.float32) if x.dtype.scalar == tl.bfloat16 else x for x in (a, b))
        return dot(self, a, b, d, *options)

    def round_to_nearest(self, value, dtype):  # as the GPU does; the interpreter cuts off
        assert dtype.scalar == tl.bfloat16
        rounded = torch.from_numpy(np.ascontiguousarray(value.data)).bfloat16()
        return interpreter.TensorHandle(rounded.view(torch.uint16).numpy(), tl.bfloat16)

    def tanh(self, assembly, constraints, values, *options):
        assert assembly.startswith("tanh.approx.f32")
        result = interpreter.TensorHandle(np.tanh(values[0].data), tl.float32)
        return SimpleNamespace(get_result=lambda index: result)

    monkeypatch.setattr(interpreter, "_patch_lang_tensor", patch_tensor_with_index)
    monkeypatch.setattr(builder, "create_dot", dot_of_wide)
    monkeypatch.setattr(builder, "create_fp_trunc", round_to_nearest)
    monkeypatch.setattr(builder, "create_inline_asm", tanh)


@pytest.fixture
def new_memory_is_nan() -> Iterator[None]:
    """Whatever torch.empty and its kind return is NaN, so that an element nobody wrote shows."""
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


@interpreted
@pytest.mark.usefixtures("interpreter", "new_memory_is_nan")
@pytest.mark.parametrize(("name", "width", "units", "tokens"), KERNEL_CASES)
def test_kernels_are_the_formula_to_the_precision_of_bfloat16(name: str, width: int, units: int, tokens: int) -> None:
    layer = LAYERS[name]
    x, *weights = arguments_of(layer, width, units, tokens, dtype=torch.float32)
    values = with_gradients(layer.operator, [x.bfloat16(), *weights])
    plain = with_gradients(layer.plain, [x.bfloat16(), *weights])
    references = with_gradients(layer.formula, [argument.bfloat16().double() for argument in (x, *weights)])
    assert [value.dtype for value in values] == [value.dtype for value in plain]
    for value, other, reference in zip(values, plain, references, strict=True):
        assert value.shape == reference.shape
        assert relative_error(value, reference) < max(4e-3, 1.2 * relative_error(other, reference))


@interpreted
@pytest.mark.usefixtures("interpreter")
@pytest.mark.parametrize(("name", "width", "units"), [case[:3] for case in KERNEL_CASES if case[3] > 1])
def test_kernels_write_nothing_beyond_their_tokens(
    name: str, width: int, units: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    guards: list[Tensor] = []

    def guarded(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        memory = torch.full((int(np.prod(shape)) + 256,), 7, dtype=dtype)
        guards.extend((memory[:128], memory[-128:]))
        return memory[128:-128].view(shape)

    layer = LAYERS[name]
    arguments = arguments_of(layer, width, units, 70, dtype=torch.bfloat16)  # 70 tokens do not fill the last tile
    new_empty = Tensor.new_empty
    monkeypatch.setattr(torch, "empty_like", lambda x: guarded(x.shape, x.dtype))
    monkeypatch.setattr(
        Tensor,
        "new_empty",
        lambda x, shape, dtype=None, **more: new_empty(x, shape, **more) if more else guarded(shape, dtype or x.dtype),
    )
    with_gradients(layer.operator, arguments)
    assert len(guards) == 6  # y, dx and the partial sums of the weights' gradients
    assert all((guard == 7).all() for guard in guards)


@interpreted
@pytest.mark.usefixtures("interpreter")
@pytest.mark.parametrize("name", LAYERS)
def test_the_operators_keep_the_rules_of_autograd_and_the_compiler(name: str) -> None:
    layer = LAYERS[name]
    x, *weights = arguments_of(layer, 64, 64, 3, 5, dtype=torch.float32)
    arguments = [x.bfloat16(), *weights]
    torch.library.opcheck(layer.operator, [argument.requires_grad_() for argument in arguments])

    def twice(x: Tensor, *weights: Tensor) -> Tensor:
        return layer.operator(layer.operator(x, *weights).transpose(0, 1), *weights)

    with torch.autocast("cpu", torch.bfloat16):
        eager = with_gradients(twice, arguments)
        compiled = with_gradients(torch.compile(twice, dynamic=True, fullgraph=True, backend="aot_eager"), arguments)
    assert all(torch.equal(one, other) for one, other in zip(eager, compiled, strict=True))


@interpreted
@pytest.mark.usefixtures("interpreter")
@pytest.mark.parametrize("name", LAYERS)
def test_no_tokens_give_no_output_and_zero_gradients(name: str) -> None:
    x, *weights = arguments_of(LAYERS[name], 64, 128, 0, dtype=torch.float32)
    y, dx, *d_weights = with_gradients(LAYERS[name].operator, [x.bfloat16(), *weights])
    assert y.numel() == 0
    assert dx.shape == (0, 64)
    assert all((gradient == 0).all() for gradient in d_weights)
