"""Where our Triton kernels run, bfloat16 tensors on Hopper GPUs (H100, H200), and what their operators share."""

from __future__ import annotations

import importlib.util
from typing import Any

import torch
from torch import Tensor

_HAS_TRITON = importlib.util.find_spec("triton") is not None


def takes_kernels(x: Tensor) -> bool:
    """Whether a tensor is of the kind the kernels are written for. Nobody else needs triton installed."""
    return x.is_cuda and x.dtype == torch.bfloat16 and _HAS_TRITON and _on_hopper()


def _on_hopper() -> bool:
    return torch.cuda.get_device_capability()[0] == 9


# What torch.compiler.assume_constant_result sets, without the three seconds that importing the compiler takes.
_on_hopper._dynamo_marked_constant = True  # type: ignore[attr-defined]


def save_inputs(ctx: Any, inputs: tuple[Tensor, ...], output: Any) -> None:
    """What autograd keeps of our operators: their inputs, and nothing computed on the way."""
    ctx.save_for_backward(*inputs)
