"""Devices by name."""

from __future__ import annotations

import torch

from causal_arrow.errors import ConfigurationError
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
