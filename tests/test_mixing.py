"""Mixing of cells: the plain path against the formula, the kernels (interpreted on the CPU) against both.

The kernel tests need triton and its interpreter: TRITON_INTERPRET=1 python -m pytest tests/test_mixing.py
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import Tensor

from causal_arrow.encoders import mixing
from causal_arrow.errors import ConfigurationError

interpreted = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None or os.environ.get("TRITON_INTERPRET") != "1",
    reason="the kernels run on a CPU only in Triton's interpreter: install triton and set TRITON_INTERPRET=1",
)

SHAPES = [
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
]  # B, N, P, D, H


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
    code = "import sys, causal_arrow.encoders.mixing; assert not {'triton', 'torch._dynamo'} & set(sys.modules)"
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

    def assembly(self, text, constraints, values, *options):
        if text.startswith("mov.f32"):
            results = list(values)
        else:
            assert text.startswith("tanh.approx.f32")
            results = [interpreter.TensorHandle(np.tanh(values[0].data), tl.float32)]
        return SimpleNamespace(get_result=lambda index: results[index])

    monkeypatch.setattr(interpreter, "_patch_lang_tensor", patch_tensor_with_index)
    monkeypatch.setattr(builder, "create_dot", dot_of_wide)
    monkeypatch.setattr(builder, "create_fp_trunc", round_to_nearest)
    monkeypatch.setattr(builder, "create_inline_asm", assembly)


@interpreted
@pytest.mark.usefixtures("interpreter")
@pytest.mark.parametrize("shape", SHAPES)
def test_kernels_are_the_formula_to_the_precision_of_bfloat16(shape: tuple[int, ...]) -> None:
    cells, weights, d_out = block(*shape, dtype=torch.bfloat16)
    values = gradients(torch.ops.causal_arrow.mix_cells, cells, weights, d_out)
    plain = gradients(mixing.plain_mix_cells, cells, weights, d_out)
    references = gradients(formula, cells.double(), weights.double(), d_out.double())
    for value, other, reference in zip(values, plain, references, strict=True):
        assert value.shape == reference.shape
        assert value.dtype == torch.bfloat16
        assert relative_error(value, reference) < max(4e-3, 1.2 * relative_error(other, reference))


@pytest.fixture
def new_memory_is_nan() -> Iterator[None]:
    torch.use_deterministic_algorithms(True)  # which fills what torch.empty and its kind return
    yield
    torch.use_deterministic_algorithms(False)


@interpreted
@pytest.mark.usefixtures("interpreter", "new_memory_is_nan")
@pytest.mark.parametrize("variables", [5, 24, 50, 70])
def test_kernels_write_every_element_and_nothing_else(variables: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from causal_arrow.encoders.mixing import kernels

    cells, weights, d_out = block(2, 9, variables, 16, 2, dtype=torch.bfloat16)
    buffers: list[Tensor] = []
    new_empty = Tensor.new_empty

    def guarded(like: Tensor, shape: tuple[int, ...], dtype: torch.dtype | None = None, **others: str) -> Tensor:
        if others:  # the interpreter's own
            return new_empty(like, shape, dtype=dtype, **others)
        buffers.append(torch.full((int(np.prod(shape)) + 256,), 7.0, dtype=dtype or like.dtype))
        return buffers[-1][128:-128].view(shape).fill_(torch.nan)

    monkeypatch.setattr(Tensor, "new_empty", guarded)
    monkeypatch.setattr(torch, "empty_like", lambda x: guarded(x, x.shape))
    for results in ((kernels.forward(cells, weights),), kernels.backward(d_out, cells, weights)):
        assert all(result.isfinite().all() for result in results)
    assert len(buffers) == 3
    for buffer in buffers:
        assert (buffer[:128] == 7).all()
        assert (buffer[-128:] == 7).all()


@interpreted
@pytest.mark.usefixtures("interpreter")
def test_shares_of_the_observations_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    from causal_arrow.encoders.mixing import kernels

    cells, weights, d_out = block(1, 19, 20, 16, 2, dtype=torch.bfloat16)
    results = []
    for count in (1, 3):
        monkeypatch.setattr(kernels, "shares", lambda *_, count=count: count)
        results.append([kernels.forward(cells, weights), *kernels.backward(d_out, cells, weights)])
    for one, three in zip(*results, strict=True):
        assert torch.allclose(one.float(), three.float(), rtol=1e-5, atol=1e-5)


@interpreted
def test_shares_fill_the_device_and_none_is_empty() -> None:
    from causal_arrow.encoders.mixing.kernels import shares

    assert shares(264, 100, 264) == 1
    assert shares(64, 250, 132) == 2
    assert 60 <= shares(4, 500, 264) <= 66
    assert shares(4, 3, 264) == 3
    assert all(1 <= shares(4, blocks, 264) <= blocks for blocks in range(1, 50))


@interpreted
@pytest.mark.usefixtures("interpreter")
def test_the_operator_keeps_the_rules_of_compilers_and_autograd() -> None:
    cells, weights, d_out = block(2, 3, 5, 16, 2, dtype=torch.bfloat16)
    operator = torch.ops.causal_arrow.mix_cells
    torch.library.opcheck(operator.default, (cells.clone().requires_grad_(), weights.float().requires_grad_()))

    def region(cells: Tensor, weights: Tensor) -> Tensor:
        return operator(2 * operator(cells, weights).repeat(1, 1, 1, 2), weights.transpose(-1, -2))

    eager = gradients(region, cells, weights, d_out)
    compiled = gradients(
        torch.compile(region, dynamic=True, fullgraph=True, backend="aot_eager"), cells, weights, d_out
    )
    assert all(torch.equal(one, other) for one, other in zip(eager, compiled, strict=True))


@interpreted
@pytest.mark.usefixtures("interpreter")
def test_no_observations_give_no_output_and_zero_gradients() -> None:
    cells, weights, d_out = block(2, 0, 5, 16, 2, dtype=torch.bfloat16)
    out, _, _, d_weights = gradients(torch.ops.causal_arrow.mix_cells, cells, weights, d_out)
    assert out.shape == (2, 0, 5, 16)
    assert (d_weights == 0).all()
