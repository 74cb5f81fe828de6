"""The encoders by name: those that come with the package, and those that are registered."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

from causal_arrow.errors import ConfigurationError
from causal_arrow.network.config import PairwiseConfig
from causal_arrow.text import shown
from causal_arrow_lab.network.encoders.pairwise import PairwiseEncoder
from causal_arrow_lab.network.encoders.paper import PaperConfig, PaperEncoder
from causal_arrow_lab.network.encoders.protocol import Encoder


class EncoderKind(NamedTuple):
    """The two classes of an encoder."""

    config: type[Any]
    encoder: type[Encoder]


ENCODERS: dict[str, EncoderKind] = {
    "pairwise": EncoderKind(PairwiseConfig, PairwiseEncoder),
    "paper": EncoderKind(PaperConfig, PaperEncoder),
}


def register_encoder(name: str, config: type[Any], encoder: type[Encoder]) -> None:
    """Make an encoder known by a name, which configurations and files of weights then use."""
    kind = EncoderKind(config, encoder)
    if ENCODERS.get(name, kind) != kind:
        raise ConfigurationError(f"There already is an encoder {name!r}: register the new one under another name.")
    if not isinstance(config, type) or not dataclasses.is_dataclass(config):
        raise ConfigurationError(f"Expected a dataclass for the configuration of {name!r}, got {config!r}.")
    if not issubclass(encoder, Encoder):
        raise ConfigurationError(f"Expected a class derived from Encoder for {name!r}, got {encoder!r}.")
    ENCODERS[name] = kind


def encoder_kind(name: Any) -> EncoderKind:
    """The encoder of a name, or an error that lists the known ones."""
    if name not in tuple(ENCODERS):  # a list in a file would be no key at all
        raise ConfigurationError(f"Unknown encoder {shown(name)}: expected one of {', '.join(ENCODERS)}.")
    return ENCODERS[name]


def encoder_name(config: Any) -> str:
    """The name under which the encoder of a configuration is known."""
    for name, kind in ENCODERS.items():
        if type(config) is kind.config:
            return name
    raise ConfigurationError(
        f"{type(config).__name__} belongs to no known encoder: register it with register_encoder first."
    )
