"""The paper's encoder: three transformers, one vector for each variable, two heads.  (section 3, appendix C)

    data ─ projection ─ T_obs: across variables, within an observation
                      ─ T_var: summary tokens of a variable read its observations
                      ─ T_context: across variables ─ skeleton head, order head

No positional codes anywhere: the answer does not depend on the order of observations and follows that of variables.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from causal_arrow.batches import TableBatch
from causal_arrow.errors import ConfigurationError
from causal_arrow.network import check_chunk
from causal_arrow_lab.network.encoder import Encoder, EncoderOutput

# B tasks, N observations, P variables, D width, H heads, M summary tokens; S sequences of L entries each


WIDTHS_ALIVE = 16
"""Floats alive at once for each cell, in widths: the stream itself, queries, keys and values, the hidden layer.
Measured."""

# Flash attention takes at most this many sequences in one launch; T_obs has B·N of them, T_var B·P.
MAX_SEQUENCES_PER_LAUNCH = 65_535


@dataclass(frozen=True)
class PaperConfig:
    """Sizes of the paper's encoder. The defaults are those of appendix C.1 and give 36.8M parameters."""

    width: int = 512
    """Numbers in the representation of a cell and of a variable, d."""
    observation_blocks: int = 3
    """Blocks of T_obs, which reads across the variables of an observation."""
    observation_heads: int = 8
    """Attention heads of T_obs; they divide `width`."""
    variable_blocks: int = 3
    """Blocks of T_var, which reads the observations of a variable."""
    variable_heads: int = 8
    """Attention heads of T_var; they divide `width`."""
    context_blocks: int = 3
    """Blocks of T_context, which reads across variables."""
    context_heads: int = 8
    """Attention heads of T_context; they divide `width`."""
    summary_tokens: int = 16
    """Summary tokens for each variable, m."""
    feed_forward_factor: int = 4
    """Hidden width of a feed-forward layer, in widths."""
    dropout: float = 0.0
    """Share of activations dropped in training; not mentioned in the paper."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if name != "dropout" and (type(value) is not int or value < 1):
                raise ConfigurationError(f"The paper encoder needs a whole number above 0 for {name}, got {value!r}.")
        if type(self.dropout) not in (int, float) or not 0 <= self.dropout < 1:
            raise ConfigurationError(f"The paper encoder needs a dropout from 0 to below 1, got {self.dropout!r}.")
        for heads in (self.observation_heads, self.variable_heads, self.context_heads):
            if self.width % heads:
                raise ConfigurationError(f"The width must be a multiple of the heads, got {self.width} and {heads}.")


class Norm(nn.LayerNorm):
    """Layer normalization in the dtype of its input: autocast's float32 would double the traffic of what reads it."""

    def forward(self, entries: Tensor) -> Tensor:
        return super().forward(entries).to(entries.dtype)


class Attention(nn.Module):
    """The values that each query gathers from the entries of its own sequence.  (S, L, D)"""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.dropout = dropout
        self.query = nn.Linear(width, width)
        self.key_value = nn.Linear(width, 2 * width)
        self.output = nn.Linear(width, width)

    def forward(self, queries: Tensor, entries: Tensor) -> Tensor:
        query = self.query(queries).unflatten(-1, (self.heads, -1)).transpose(1, 2)  # (S, H, L, D/H)
        key, value = (
            half.unflatten(-1, (self.heads, -1)).transpose(1, 2) for half in self.key_value(entries).chunk(2, dim=-1)
        )
        gathered = F.scaled_dot_product_attention(query, key, value, dropout_p=self.dropout if self.training else 0.0)
        output: Tensor = self.output(gathered.transpose(1, 2).flatten(2))
        return output


class FeedForward(nn.Sequential):
    """An entry by itself through one hidden layer.  (S, L, D)"""

    def __init__(self, width: int, hidden: int, dropout: float) -> None:
        super().__init__(nn.Linear(width, hidden), nn.GELU(), nn.Dropout(dropout), nn.Linear(hidden, width))


class SelfAttentionBlock(nn.Module):
    """One block of T_obs or T_context: the entries of a sequence read each other.  (S, L, D)"""

    def __init__(self, width: int, heads: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.attention_norm = Norm(width)
        self.attention = Attention(width, heads, dropout)
        self.feed_forward_norm = Norm(width)
        self.feed_forward = FeedForward(width, hidden, dropout)
        self.dropout = nn.Dropout(dropout)

    def forward(self, entries: Tensor) -> Tensor:
        normed = self.attention_norm(entries)
        entries = entries + self.dropout(self.attention(normed, normed))
        updated: Tensor = entries + self.dropout(self.feed_forward(self.feed_forward_norm(entries)))
        return updated


class SummaryBlock(nn.Module):
    """One block of T_var: the summary tokens read each other, then the observations of their variable.  (S, M, D)

    The paper speaks of cross-attention only; its 37M parameters leave room for the self-attention as well.
    """

    def __init__(self, width: int, heads: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.token_norm = Norm(width)
        self.token_attention = Attention(width, heads, dropout)
        self.observation_norm = Norm(width)
        self.observation_attention = Attention(width, heads, dropout)
        self.feed_forward_norm = Norm(width)
        self.feed_forward = FeedForward(width, hidden, dropout)
        self.dropout = nn.Dropout(dropout)

    def forward(self, tokens: Tensor, observations: Tensor) -> Tensor:
        normed = self.token_norm(tokens)
        tokens = tokens + self.dropout(self.token_attention(normed, normed))
        tokens = tokens + self.dropout(self.observation_attention(self.observation_norm(tokens), observations))
        updated: Tensor = tokens + self.dropout(self.feed_forward(self.feed_forward_norm(tokens)))
        return updated


class SkeletonHead(nn.Module):
    """Skeleton logits e_jk, the mean of an MLP's answers for (h_j, h_k) and for (h_k, h_j).  (B, P, P), symmetric"""

    def __init__(self, width: int) -> None:
        super().__init__()
        # One linear layer on the concatenation [h_j ‖ h_k], kept as its two halves: each variable passes through them
        # once, and the P² concatenated vectors are never formed.
        self.first_of_pair = nn.Linear(width, 2 * width)
        self.second_of_pair = nn.Linear(width, 2 * width, bias=False)
        self.output = nn.Linear(2 * width, 1)

    def forward(self, embeddings: Tensor, variables_per_chunk: int) -> Tensor:
        first = self.first_of_pair(embeddings)  # (B, P, 2D)
        second = self.second_of_pair(embeddings)  # (B, P, 2D)
        logits = torch.cat(
            [
                self.output(F.gelu(some.unsqueeze(2) + second.unsqueeze(1))).squeeze(-1)
                for some in torch.split(first, variables_per_chunk, dim=1)
            ],
            dim=1,
        )  # (B, P, P)
        return (logits + logits.transpose(1, 2)) / 2


class PaperEncoder(Encoder):
    """Standardized tables in, skeleton logits and order scores out.  (B, N, P) -> (B, P, P), (B, P)"""

    repeated_blocks: ClassVar[tuple[type[nn.Module], ...]] = (SelfAttentionBlock, SummaryBlock)

    growth: ClassVar[str] = "the paper encoder cannot grow"

    config: PaperConfig

    def __init__(self, config: PaperConfig) -> None:
        super().__init__(config)
        width, hidden = config.width, config.feed_forward_factor * config.width
        self.projection = nn.Linear(1, width)
        self.observation_transformer = nn.ModuleList(
            SelfAttentionBlock(width, config.observation_heads, hidden, config.dropout)
            for _ in range(config.observation_blocks)
        )
        self.summary_tokens = nn.Parameter(0.02 * torch.randn(config.summary_tokens, width))
        self.variable_transformer = nn.ModuleList(
            SummaryBlock(width, config.variable_heads, hidden, config.dropout) for _ in range(config.variable_blocks)
        )
        self.merge = nn.Linear(config.summary_tokens * width, width)
        self.context_transformer = nn.ModuleList(
            SelfAttentionBlock(width, config.context_heads, hidden, config.dropout)
            for _ in range(config.context_blocks)
        )
        self.context_norm = Norm(width, elementwise_affine=False)
        self.skeleton_head = SkeletonHead(width)
        self.order_head = nn.Linear(width, 1)

    def bytes_per_observation(self, variables: int, device_type: str) -> int:
        return 4 * variables * self.config.width * WIDTHS_ALIVE

    def bytes_per_pair(self, device_type: str) -> int:
        return 4 * 2 * self.config.width  # the hidden layer of the skeleton head

    def forward(self, tables: TableBatch, observations_per_chunk: int | None = None) -> EncoderOutput:
        """The answer; `observations_per_chunk` bounds what inference needs beyond the cells R, B·N·P·D numbers."""
        check_chunk(observations_per_chunk)
        data = tables.values
        tasks, observations, variables = data.shape
        # A chunk is as many cells in every stage: all variables of some observations, or all observations of some
        # variables, or all pairs of some first variables.
        chunk = min(observations_per_chunk or max(observations, variables), max(observations, variables))
        cells = in_chunks(self.interact, data.reshape(-1, variables), tasks * chunk)  # (B·N, P, D)
        cells = cells.view(tasks, observations, variables, -1).transpose(1, 2).flatten(0, 1)  # (B·P, N, D)
        summaries = in_chunks(self.summarize, cells, tasks * chunk * variables // observations)  # (B·P, D)
        embeddings = in_chunks(self.contextualize, summaries.view(tasks, variables, -1), tasks)  # (B, P, D)
        # The answers are a few numbers that get ranked and subtracted: bf16 would leave them three digits.
        with torch.autocast(embeddings.device.type, enabled=False):
            embeddings = embeddings.float()
            return EncoderOutput(self.skeleton_head(embeddings, chunk), self.order_head(embeddings).squeeze(-1))

    def interact(self, observations: Tensor) -> Tensor:
        """T_obs: every cell after it has read the others of its observation, R.  (S, P) -> (S, P, D)"""
        cells: Tensor = self.projection(observations.unsqueeze(-1))
        for block in self.observation_transformer:
            cells = block(cells)
        return cells

    def summarize(self, cells: Tensor) -> Tensor:
        """T_var and merge: one vector u_j for each variable from its observations.  (S, N, D) -> (S, D)"""
        tokens = self.summary_tokens.to(cells.dtype).expand(cells.shape[0], -1, -1)  # (S, M, D)
        for block in self.variable_transformer:
            tokens = block(tokens, cells)
        summaries: Tensor = self.merge(tokens.flatten(1))
        return summaries

    def contextualize(self, summaries: Tensor) -> Tensor:
        """T_context: the embedding h_j of each variable in the light of the others.  (B, P, D)"""
        for block in self.context_transformer:
            summaries = block(summaries)
        embeddings: Tensor = self.context_norm(summaries)
        return embeddings


def in_chunks(stage: Callable[[Tensor], Tensor], sequences: Tensor, sequences_per_chunk: int) -> Tensor:
    """The answer of `stage` for all sequences, a chunk at a time and never more than one launch can take."""
    size = min(max(sequences_per_chunk, 1), MAX_SEQUENCES_PER_LAUNCH)
    if sequences.shape[0] <= size:
        return stage(sequences)
    return torch.cat([stage(some) for some in torch.split(sequences, size)])


# The authors publish this network as ArrowFM, with stages made of torch's transformer layers. Their words and ours:
ARROWFM_SETTINGS = {
    "d_model": "width",
    "nlayer_cols": "observation_blocks",
    "nhead_cols": "observation_heads",
    "nlayer_rows": "variable_blocks",
    "nhead_rows": "variable_heads",
    "nlayer_nodes": "context_blocks",
    "nhead_nodes": "context_heads",
    "ncls_rows": "summary_tokens",
    "dropout": "dropout",
}
ARROWFM_SELF_ATTENTION_BLOCK = {
    "self_attn": "attention",
    "norm1": "attention_norm",
    "norm2": "feed_forward_norm",
    "linear1": "feed_forward.0",
    "linear2": "feed_forward.3",
}
ARROWFM_SUMMARY_BLOCK = {
    "self_attn": "token_attention",
    "multihead_attn": "observation_attention",
    "norm1": "token_norm",
    "norm2": "observation_norm",
    "norm3": "feed_forward_norm",
    "linear1": "feed_forward.0",
    "linear2": "feed_forward.3",
}
ARROWFM_STAGES = {
    "col_encoder": ("observation_transformer", ARROWFM_SELF_ATTENTION_BLOCK),
    "row_encoder": ("variable_transformer", ARROWFM_SUMMARY_BLOCK),
    "node_encoder": ("context_transformer", ARROWFM_SELF_ATTENTION_BLOCK),
}
ARROWFM_LAYERS = {
    "value_project": "projection",
    "col_merge": "merge",
    "order_head": "order_head",
    "edge_head.2": "skeleton_head.output",
}


def from_arrowfm(settings: Mapping[str, Any], weights: Mapping[str, Tensor]) -> tuple[PaperConfig, dict[str, Tensor]]:
    """ArrowFM's settings and weights as ours; KeyError for a name of theirs we do not know."""
    config = PaperConfig(**{ARROWFM_SETTINGS[name]: value for name, value in settings.items()})
    ours: dict[str, Tensor] = {}
    for name, weight in weights.items():
        ours.update(_weight_from_arrowfm(name, weight, config.width))
    return config, ours


def _weight_from_arrowfm(name: str, weight: Tensor, width: int) -> dict[str, Tensor]:
    """One of their weights under our names; we keep queries apart from keys, and the halves of a pair."""
    if name == "row_cls_tokens":
        return {"summary_tokens": weight.squeeze(0)}
    if name == "edge_head.0.weight":
        first, second = torch.split(weight, width, dim=1)
        return {"skeleton_head.first_of_pair.weight": first, "skeleton_head.second_of_pair.weight": second}
    if name == "edge_head.0.bias":
        return {"skeleton_head.first_of_pair.bias": weight}
    if in_block := re.fullmatch(r"(\w+)\.layers\.(\d+)\.(\w+)\.(.+)", name):
        stage, index, part, parameter = in_block.groups()
        our_stage, our_parts = ARROWFM_STAGES[stage]
        our_part = f"{our_stage}.{index}.{our_parts[part]}"
        if parameter.startswith("in_proj_"):
            kind = parameter.removeprefix("in_proj_")
            query, key_value = torch.split(weight, [width, 2 * width])
            return {f"{our_part}.query.{kind}": query, f"{our_part}.key_value.{kind}": key_value}
        return {f"{our_part}.{parameter.replace('out_proj', 'output')}": weight}
    layer, _, kind = name.rpartition(".")
    return {f"{ARROWFM_LAYERS[layer]}.{kind}": weight}
