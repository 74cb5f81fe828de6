"""Devices by name."""

from __future__ import annotations

import torch

from causal_arrow.errors import ConfigurationError


def resolve_device(device: str | torch.device) -> torch.device:
    """The device by its name; "auto" is the GPU where there is one."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        resolved = torch.device(device)
    except RuntimeError as error:
        raise ConfigurationError(f"Unknown device {device!r}: expected auto, cpu, cuda or cuda:1.") from error
    if resolved.type not in ("cpu", "cuda"):
        raise ConfigurationError(
            f"The network runs on cpu and cuda, which compute in double precision; got {device!r}."
        )
    if resolved.type == "cuda" and not torch.cuda.is_available():
        raise ConfigurationError(f"There is no GPU for device {str(device)!r} here: use cpu, or auto.")
    return resolved
