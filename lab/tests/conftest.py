"""Fixtures of the lab's tests, besides those at the root of the repository."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

os.environ["TRITON_INTERPRET"] = "1"  # which triton reads when it is imported


@pytest.fixture
def program() -> Callable[[list[str]], None]:
    """The program that `run` runs."""
    from causal_arrow_lab.cli import main

    return main


@pytest.fixture
def interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tensors in bfloat16 on the CPU take the kernels, which Triton's interpreter runs, here taught what it lacks.

    That needs triton, which installs on Linux alone; of its versions, 3.6 is known to work.
    """
    import importlib.util

    if importlib.util.find_spec("triton") is None:
        pytest.skip("the kernels run on a CPU only in Triton's interpreter, and triton is not installed")

    from types import SimpleNamespace

    import numpy as np
    import torch
    import triton.language as tl
    from triton.runtime import interpreter

    from causal_arrow_lab.network.kernels import checks, fused, mixing, triangles

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
    for family in (fused, mixing, triangles):
        monkeypatch.setattr(family, "takes_kernels", lambda x: x.dtype == torch.bfloat16)
    monkeypatch.setattr(checks, "DEVICE", "cpu")
    monkeypatch.setattr(checks, "COMPILER", "aot_eager")
