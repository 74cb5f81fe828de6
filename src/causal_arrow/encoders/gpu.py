"""Where our Triton kernels run: bfloat16 tensors on Hopper GPUs (H100, H200)."""

from __future__ import annotations

import importlib.util

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
