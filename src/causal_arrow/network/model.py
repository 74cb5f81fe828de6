"""ArrowModel: a table of observations in, a distribution over causal graphs out, in one forward pass."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from causal_arrow.batches import TableBatch
from causal_arrow.errors import ConfigurationError
from causal_arrow.graphs.graph_distribution import GraphDistribution
from causal_arrow.graphs.skeleton_order import SkeletonOrder
from causal_arrow.network.encoders.pairwise import (
    CellBlock,
    MixingWeights,
    OuterProduct,
    PairBlock,
    PairwiseConfig,
    PairwiseEncoder,
)
from causal_arrow.network.encoders.paper import PaperConfig, PaperEncoder, SelfAttentionBlock, SummaryBlock

# B tasks, N observations, P variables

EncoderConfig = PaperConfig | PairwiseConfig

ENCODERS: dict[str, tuple[type[EncoderConfig], type[nn.Module]]] = {
    "pairwise": (PairwiseConfig, PairwiseEncoder),
    "paper": (PaperConfig, PaperEncoder),
}


COMPILED_BLOCKS = (SelfAttentionBlock, SummaryBlock, MixingWeights, CellBlock, OuterProduct, PairBlock)
"""What repeats in the encoders, and costs the time."""

MOST_COMPILED_VERSIONS = 64
"""Of one kind of block."""


@dataclass(frozen=True)
class ArrowConfig:
    """Which encoder, and its sizes. The named configurations are `ArrowConfig.paper()` and `ArrowConfig.base()`."""

    encoder: EncoderConfig

    @classmethod
    def paper(cls) -> ArrowConfig:
        """The network of the paper: section 3 and appendix C, 37M parameters."""
        return cls(PaperConfig())

    @classmethod
    def base(cls) -> ArrowConfig:
        """The network we ship: pairs of variables have a representation of their own."""
        return cls(PairwiseConfig())

    def to_dict(self) -> dict[str, Any]:
        """The configuration as JSON can hold it: `{"encoder": name, **sizes}`."""
        name = next(name for name, (config, _) in ENCODERS.items() if isinstance(self.encoder, config))
        return {"encoder": name, **dataclasses.asdict(self.encoder)}

    @classmethod
    def from_dict(cls, settings: dict[str, Any]) -> ArrowConfig:
        """The configuration `to_dict` wrote; ConfigurationError names what does not fit."""
        settings = dict(settings)
        name = settings.pop("encoder", None)
        if name not in tuple(ENCODERS):  # a list in a file would be no key at all
            raise ConfigurationError(f"Unknown encoder {name!r}: expected one of {', '.join(ENCODERS)}.")
        config_type, _ = ENCODERS[name]
        known = {field.name for field in dataclasses.fields(config_type)}
        if unknown := sorted(set(settings) - known):
            raise ConfigurationError(
                f"Unknown setting {unknown[0]!r} for the {name} encoder: expected some of {', '.join(sorted(known))}."
            )
        return cls(config_type(**settings))


def standardize(data: Tensor) -> Tensor:
    """Each variable with mean 0 and standard deviation 1, in float32.  (B, N, P)

    The standard deviation is the one with n − 1, and never below 1e-6, so that a constant becomes zeros. The arithmetic
    keeps the precision of the input: a float64 table with nearly deterministic relations loses nothing before the cast.
    """
    largest = data.abs().amax(dim=-2, keepdim=True)
    scaled = data / torch.where(largest > 0, largest, 1.0)
    centered = scaled - scaled.mean(dim=-2, keepdim=True)
    spread = centered.std(dim=-2, keepdim=True)
    return (centered / torch.where(spread > 0, spread, 1.0)).float()


class ArrowModel(nn.Module):
    """Standardizes a batch of tables, encodes them, and answers with one SkeletonOrder for all of them."""

    def __init__(self, config: ArrowConfig) -> None:
        super().__init__()
        self.config = config
        _, encoder_type = ENCODERS[config.to_dict()["encoder"]]
        self.encoder = encoder_type(config.encoder)

    def forward(self, tables: TableBatch | Tensor, observations_per_chunk: int | None = None) -> GraphDistribution:
        """The distribution over graphs given the tables `data`  (B, N, P), all of one shape.

        `observations_per_chunk` bounds the memory of the pairwise encoder: observations are read that many at a time,
        with the same answer up to rounding.
        """
        data = tables.values if isinstance(tables, TableBatch) else tables
        if data.dim() != 3 or data.shape[1] < 2 or data.shape[2] < 2:
            raise ConfigurationError(
                "Expected tables of shape (tasks, observations, variables) with at least 2 observations and 2 "
                f"variables, got {tuple(data.shape)}."
            )
        skeleton_logits, order_scores = self.encoder(standardize(data), observations_per_chunk)
        return GraphDistribution(SkeletonOrder(skeleton_logits.float(), order_scores.float()))

    def compile_blocks(self, backend: str = "inductor") -> None:
        """Compile the encoder block by block, for any shape of table: one compilation serves all blocks of a kind."""
        # Training and validation, the places of a block, and sizes beyond 32-bit indices each need a version of their
        # own. Past torch's limit of 8 the rest would run uncompiled, with no more than a warning.
        torch.compiler.config.recompile_limit = max(torch.compiler.config.recompile_limit, MOST_COMPILED_VERSIONS)
        for module in self.encoder.modules():
            if isinstance(module, COMPILED_BLOCKS):
                module.compile(dynamic=True, backend=backend)

    def parameter_count(self) -> int:
        """Number of trainable parameters."""
        return sum(parameter.numel() for parameter in self.parameters() if parameter.requires_grad)
