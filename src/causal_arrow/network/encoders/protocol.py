"""What an encoder is: a configuration, a module that reads tables, and what the rest of the package asks of them.

A new encoder is two classes, `class MyConfig(EncoderConfig)` and `class MyEncoder(Encoder)`, and one call of
`register_encoder`; docs/model/extend.md shows a whole one.
"""

# B tables, N observations, P variables

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from torch import Tensor, nn

from causal_arrow.batches import LongTable, TableBatch
from causal_arrow.errors import ConfigurationError
from causal_arrow.progress import Progress, unheard


class EncoderOutput(NamedTuple):
    """What an encoder says of each table."""

    skeleton_logits: Tensor  # (B, P, P) symmetric, the log-odds of an edge; the diagonal means nothing
    order_scores: Tensor  # (B, P) larger is earlier
    confounding_logits: Tensor | None = None  # (B, P, P) symmetric; None without that head


@dataclass(frozen=True)
class EncoderConfig:
    """Sizes of an encoder: a frozen dataclass whose fields JSON and TOML can hold, checked when it is made."""

    growth: ClassVar[str] = "this encoder cannot grow"
    """What `can_grow_from` allows, as the end of a sentence."""

    def can_grow_from(self, start: EncoderConfig) -> bool:
        """Whether weights of `start` can begin a network of this configuration that answers as theirs does."""
        return self == start


class Encoder(nn.Module):
    """Standardized tables in, logits and scores out. The constructor takes the configuration and nothing else.

    It must not look at values of tensors: sizes that a file claims are tried out on torch's meta device first.
    """

    repeated_blocks: ClassVar[tuple[type[nn.Module], ...]] = ()
    """The modules that repeat and cost the time: what `compile_blocks` compiles."""

    reads: frozenset[str] = frozenset()
    """Parts of a TableBatch beside its values that it makes use of: "observed", "intervened", "levels"."""

    has_statistics: ClassVar[bool] = False
    """Whether `forward_long` takes statistics over all observations."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.config = config

    def forward(self, tables: TableBatch, observations_per_chunk: int | None = None) -> EncoderOutput:
        """The answer for tables whose numbers are standardized.

        `observations_per_chunk` bounds memory: observations are read that many at a time, with the same answer up to
        rounding.
        """
        raise NotImplementedError

    def forward_long(
        self,
        table: LongTable,
        drawn: TableBatch,
        observations_per_chunk: int | None = None,
        progress: Progress = unheard,
    ) -> EncoderOutput:
        """The answer for one table of so many observations that only those in `drawn` are read one by one.

        An encoder with statistics of its own takes them over all of `table`; without, the drawn ones are all there is.
        Numbers are standardized in both.
        """
        return self(drawn, observations_per_chunk)  # type: ignore[no-any-return]

    def bytes_per_observation(self, variables: int, device_type: str) -> int:
        """Memory that inference takes for each observation that is read at once."""
        raise NotImplementedError

    def bytes_per_pair(self, device_type: str) -> int:
        """Memory that inference takes for each ordered pair of variables, however many observations there are."""
        raise NotImplementedError

    def operations(self, observations: int, variables: int) -> float:
        """Floating-point operations of the matrix products for one table; 0 if nobody has counted them."""
        return 0.0

    def grown(self, name: str, tensor: Tensor, start: EncoderConfig) -> Tensor:
        """A parameter of a network that this one can grow from, or a tensor of its shape, as this network has it."""
        return tensor


def check_chunk(observations_per_chunk: int | None) -> None:
    """ConfigurationError unless it is a number of observations, or None for all of them."""
    if observations_per_chunk is not None and observations_per_chunk < 1:
        raise ConfigurationError(f"observations_per_chunk must be at least 1, got {observations_per_chunk}.")
