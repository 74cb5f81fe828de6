"""Devices and precisions by name, and where our Triton kernels run."""

from __future__ import annotations

import contextlib
import importlib.util
from typing import Any

import torch
from torch import Tensor

from causal_arrow.errors import ConfigurationError, check_choice
from causal_arrow.network import PRECISIONS
from causal_arrow.text import shown

EXPECTED = "expected auto, cpu, cuda or cuda:1"


def resolve_device(device: str | torch.device) -> torch.device:
    """The device by its name; "auto" is the GPU where there is one. ConfigurationError if it cannot be used here."""
    if not isinstance(device, (str, torch.device)):
        raise ConfigurationError(f"Unknown device {shown(device)}: {EXPECTED}.")
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        resolved = torch.device(device)
    except (RuntimeError, ValueError) as error:  # a ValueError where the name is no text that can be encoded
        raise ConfigurationError(f"Unknown device {shown(device)}: {EXPECTED}.") from error
    if resolved.type not in ("cpu", "cuda"):
        raise ConfigurationError(
            f"The network runs on cpu and cuda, which compute in double precision; got {str(device)!r}."
        )
    if resolved.type == "cuda" and not torch.cuda.is_available():
        raise ConfigurationError(f"There is no GPU for device {str(device)!r} here: use cpu, or auto.")
    if resolved.type == "cuda" and (resolved.index or 0) >= torch.cuda.device_count():
        raise ConfigurationError(
            f"There is no device {str(device)!r} here: the GPUs are cuda:0 to cuda:{torch.cuda.device_count() - 1}."
        )
    return resolved


def resolve_precision(precision: str, device: torch.device) -> torch.dtype:
    """The type of matrix products on a device: float32, unless bfloat16 is asked for, on a GPU."""
    check_choice("precision", precision, PRECISIONS)
    if precision == "bfloat16" and device.type != "cuda":
        raise ConfigurationError("The precision bfloat16 is for GPUs: choose float32, or the device cuda.")
    return torch.bfloat16 if precision == "bfloat16" else torch.float32


def computing_in(dtype: torch.dtype, device: torch.device) -> contextlib.AbstractContextManager[object]:
    """A context in which the network's matrix products are computed in this type."""
    return contextlib.nullcontext() if dtype == torch.float32 else torch.autocast(device.type, dtype)


_HAS_TRITON = importlib.util.find_spec("triton") is not None


def takes_kernels(x: Tensor) -> bool:
    """Whether a tensor is of the kind the kernels are written for. Nobody else needs triton installed."""
    return x.is_cuda and x.dtype == torch.bfloat16 and _HAS_TRITON and _on_hopper()


def _on_hopper() -> bool:
    return torch.cuda.get_device_capability()[0] == 9


# What torch.compiler.assume_constant_result sets, without the three seconds that importing the compiler takes.
_on_hopper._dynamo_marked_constant = True  # type: ignore[attr-defined]


def save_inputs(ctx: Any, inputs: tuple[Tensor, ...], output: Any) -> None:
    """Keep for the backward pass only the inputs of our operators, and nothing computed on the way."""
    ctx.save_for_backward(*inputs)
