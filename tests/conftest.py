"""What several test files share: a small network with random weights, saved as a model, and a table to show it.

Imports wait for the fixtures: tests of the lower layers also run where only torch, numpy and safetensors are installed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import pandas as pd

    from causal_arrow.network.model import ArrowModel


os.environ["TRITON_INTERPRET"] = "1"  # which triton reads when it is imported


@pytest.fixture(scope="session")
def small_model() -> ArrowModel:
    """A network without training but with random weights everywhere, so that it has an opinion on every table."""
    from small_network import random_network

    return random_network()


@pytest.fixture(scope="session")
def small_model_folder(small_model: ArrowModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that `save_model` makes of it."""
    from causal_arrow.network.checkpoint import save_model

    folder = tmp_path_factory.mktemp("models") / "small"
    save_model(small_model, folder)
    return folder


@pytest.fixture(scope="session")
def any_table_model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a small random network that reads tables of any kind and tells hidden common causes."""
    from causal_arrow.network.checkpoint import save_model
    from small_network import random_network

    folder = tmp_path_factory.mktemp("models") / "any-table"
    save_model(random_network(any_table=True), folder)
    return folder


@pytest.fixture(scope="session")
def usual_model(small_model_folder: Path) -> str:
    """What a person would use: the bundled model where there is one, the small one in a checkout without weights."""
    from causal_arrow.network.bundled import bundled_models

    return "arrow-base" if "arrow-base" in bundled_models() else str(small_model_folder)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Runs the program in this process: exit status, standard output, standard error."""
    from causal_arrow.cli import main

    def run(*arguments: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as leaving:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return int(leaving.value.code or 0), captured.out, captured.err

    return run


@pytest.fixture
def table() -> pd.DataFrame:
    """Six variables with relations of several kinds, 120 observations, values in strange units."""
    import numpy as np
    import pandas as pd

    random = np.random.default_rng(7)
    a, b = random.normal(size=(2, 120))
    c = a + 0.7 * b + random.laplace(size=120)
    d = np.tanh(c) + 0.3 * random.normal(size=120)
    e = random.exponential(size=120)
    f = 0.5 * d - e + random.normal(size=120)
    return pd.DataFrame({"age": 40 + 9 * a, "dose": b, "blood pressure": 1e4 * c, "d": d, "e": 1e-3 * e, "outcome": f})


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

    from causal_arrow.network.kernels import fused, kernel_check, mixing, triangles

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
    monkeypatch.setattr(kernel_check, "DEVICE", "cpu")
    monkeypatch.setattr(kernel_check, "COMPILER", "aot_eager")
