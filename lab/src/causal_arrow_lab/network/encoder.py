"""Encoder: a module that reads tables, made from a configuration, with what the rest of the package asks of one.

A new encoder is a frozen dataclass, its configuration, a class derived from `Encoder`, and one call of
`register_encoder`; docs/model/extend.md shows a whole one.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

from torch import Tensor, nn

from causal_arrow.batches import LongTable, TableBatch
from causal_arrow.progress import Progress, ignore

# B tables, N observations, P variables


class EncoderOutput(NamedTuple):
    """The output of an encoder for each table."""

    skeleton_logits: Tensor  # (B, P, P) symmetric, the log-odds of an edge; the diagonal means nothing
    order_scores: Tensor  # (B, P) larger is earlier
    confounding_logits: Tensor | None = None  # (B, P, P) symmetric; None without that head


class Encoder(nn.Module):
    """Standardized tables in, logits and scores out. The constructor takes the configuration and nothing else.

    It must not look at values of tensors: sizes that a file claims are tried out on torch's meta device first.
    """

    repeated_blocks: ClassVar[tuple[type[nn.Module], ...]] = ()
    """The modules that repeat and cost the time: what `compile_blocks` compiles."""

    reads: frozenset[str] = frozenset()
    """Parts of a table, besides its values, that it reads: "observed", "intervened", "levels"."""

    has_statistics: ClassVar[bool] = False
    """Whether `forward_long` takes statistics over all observations."""

    growth: ClassVar[str] = "this encoder cannot grow"
    """The changes that `can_grow` allows, as the end of a sentence."""

    @classmethod
    def can_grow(cls, config: Any, start: Any) -> bool:
        """Whether weights of the configuration `start` can begin a network of `config` that answers as theirs does."""
        return bool(config == start)

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.config = config

    def forward(self, tables: TableBatch, observations_per_chunk: int | None = None) -> EncoderOutput:
        """The answer for tables whose numbers are standardized.

        `observations_per_chunk` bounds memory: so many are read at a time, with the same answer up to rounding.
        """
        raise NotImplementedError

    def forward_long(
        self,
        table: LongTable,
        drawn: TableBatch,
        observations_per_chunk: int | None = None,
        progress: Progress = ignore,
    ) -> EncoderOutput:
        """The answer for one long table, whose observations in `drawn` are read one by one, with numbers standardized.

        An encoder that takes statistics takes them over all of `table`, whose arrays are numpy's.
        """
        return self(drawn, observations_per_chunk)  # type: ignore[no-any-return]

    def bytes_per_observation(self, variables: int, device_type: str) -> int:
        """Memory that inference takes for each observation that is read at once."""
        raise NotImplementedError

    def bytes_per_pair(self, device_type: str) -> int:
        """Memory that inference takes for each ordered pair of variables, however many observations there are."""
        raise NotImplementedError

    def grown(self, name: str, tensor: Tensor, start: Any) -> Tensor:
        """A parameter of a network that this one can grow from, or a tensor of its shape, as this network has it."""
        return tensor
