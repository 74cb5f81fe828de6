"""ArrowModel: a table of observations in, a distribution over causal graphs out, in one forward pass."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from causal_arrow import storage
from causal_arrow.batches import LongTable, TableBatch
from causal_arrow.errors import ConfigurationError
from causal_arrow.graphs.graph_distribution import GraphDistribution
from causal_arrow.network import check_parts
from causal_arrow.network.basis import standardized_numbers
from causal_arrow.network.checkpoint import config_from
from causal_arrow.network.pairwise import PairwiseConfig
from causal_arrow.progress import Progress, ignore
from causal_arrow.text import shown
from causal_arrow_lab.batches import TensorBatch
from causal_arrow_lab.network.devices import computing_in, resolve_device, resolve_precision
from causal_arrow_lab.network.encoder import Encoder
from causal_arrow_lab.network.pairwise import PairwiseEncoder
from causal_arrow_lab.network.paper import PaperConfig, PaperEncoder
from causal_arrow_lab.network.replay import ReplayedModel
from causal_arrow_lab.skeleton_order import NetworkOutput, SkeletonOrder


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


def encoder_name(config: Any) -> str:
    """The name under which the encoder of a configuration is known."""
    for name, kind in ENCODERS.items():
        if type(config) is kind.config:
            return name
    raise ConfigurationError(
        f"{type(config).__name__} belongs to no known encoder: register it with register_encoder first."
    )


# B tables, N observations, P variables

MAX_COMPILED_VERSIONS = 64  # maximum number of compiled versions of one kind of block


@dataclass(frozen=True)
class ArrowConfig:
    """The encoder of a network, and its sizes.

    Parameters
    ----------
    encoder
        A `PairwiseConfig`, a `PaperConfig`, or the configuration of an encoder of your own.

    Examples
    --------
    >>> from causal_arrow_lab import ArrowConfig
    >>> config = ArrowConfig.base()
    >>> config.encoder.pair_width
    128
    """

    encoder: Any

    @classmethod
    def paper(cls) -> ArrowConfig:
        """The network of the paper: section 3 and appendix C, 37M parameters."""
        return cls(PaperConfig())

    @classmethod
    def base(cls) -> ArrowConfig:
        """The network that ships, which keeps a representation of every pair of variables."""
        return cls(PairwiseConfig())

    def to_dict(self) -> dict[str, Any]:
        """The configuration as JSON can hold it, `{"encoder": name, **sizes}`; `from_dict` reads it back."""
        settings = dataclasses.asdict(self.encoder)
        sizes = {name: list(value) if isinstance(value, tuple) else value for name, value in settings.items()}
        return {"encoder": encoder_name(self.encoder), **sizes}

    @classmethod
    def from_dict(cls, settings: dict[str, Any]) -> ArrowConfig:
        """The configuration that `to_dict` wrote, with defaults for what is missing.

        ConfigurationError for an unknown encoder or setting, or a size that cannot be.
        """
        if not isinstance(settings, dict):
            raise ConfigurationError(f"Expected a table for [model], got {settings!r}.")
        name = settings.get("encoder")
        if name not in tuple(ENCODERS):  # a list in a file would be no key at all
            raise ConfigurationError(f"Unknown encoder {shown(name)}: expected one of {', '.join(ENCODERS)}.")
        return cls(config_from(ENCODERS[name].config, name, settings))


class ArrowModel(nn.Module):
    """The network: standardizes a batch of tables, encodes them, and answers with a distribution over graphs for each.

    `load_model` gives one with its weights; this makes a new one with random weights.

    Attributes
    ----------
    encoder : Encoder
        The network without standardization.
    extra : dict
        What its file says besides configuration and weights, such as how it was trained; empty for a new model.

    Examples
    --------
    >>> import torch
    >>> from causal_arrow_lab import ArrowConfig, ArrowModel, load_model
    >>> model = load_model("arrow-base")
    >>> tables = torch.randn(2, 100, 5, generator=torch.Generator().manual_seed(0))
    >>> with torch.inference_mode():
    ...     graphs = model(tables)  # two tables, 100 observations, 5 variables
    >>> graphs.skeleton_order.edge_marginals().shape
    torch.Size([2, 5, 5])
    """

    def __init__(self, config: ArrowConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder: Encoder = ENCODERS[encoder_name(config.encoder)].encoder(config.encoder)
        self.extra: dict[str, Any] = {}
        self.between_stages: list[Callable[[], None]] = []
        self.dtype = torch.float32  # type of matrix products in `read` and `read_long`; `on` changes it
        self._replays: tuple[tuple[int, ...], ReplayedModel] | None = None

    def forward(self, tables: TableBatch | Tensor, observations_per_chunk: int | None = None) -> NetworkOutput:
        """The distributions over graphs given tables of one shape, or their values  (B, N, P) in any units.

        `observations_per_chunk` bounds memory: so many are read at a time, with the same answer up to rounding.
        """
        batch = TensorBatch(tables) if isinstance(tables, Tensor) else tables
        check_parts(batch, self.reads)
        return self.output(*self.encoder(self.standardized(batch), observations_per_chunk))

    def standardized(self, tables: TableBatch) -> TableBatch:
        """The tables as the encoder reads them: numbers standardized, categories by their codes."""
        return dataclasses.replace(tables, values=standardized_numbers(tables))

    def output(self, skeleton: Tensor, order: Tensor, confounding: Tensor | None = None) -> NetworkOutput:
        """The distributions with these logits (B, P, P), scores (B, P) and logits of hidden causes, in float32."""
        return NetworkOutput(
            SkeletonOrder(skeleton.float(), order.float()), None if confounding is None else confounding.float()
        )

    # As discovery uses a network: `causal_arrow.network.Network`

    @property
    def title(self) -> str:
        """The encoder and the number of parameters, in words."""
        return f"{encoder_name(self.config.encoder)} encoder, {self.parameter_count():,} parameters"

    @property
    def reads(self) -> frozenset[str]:
        """Parts of a table, besides its values, that the encoder reads."""
        return self.encoder.reads

    @property
    def has_statistics(self) -> bool:
        """Whether a long table's statistics are those of all observations."""
        return self.encoder.has_statistics

    @property
    def place(self) -> torch.device:
        """The device where the weights are."""
        return next(self.parameters()).device

    @property
    def device(self) -> str:
        """The name of that device."""
        return str(self.place)

    @property
    def cells_together(self) -> int:
        """Cells of tables that are worth one pass together: more do not make it faster."""
        return {"cpu": 32_000, "cuda": 250_000}[self.place.type]

    def on(self, device: str, precision: str) -> ArrowModel:
        """This network on a device ("auto" is where it is) in a precision; a copy if anything has to change."""
        there = self.place if device == "auto" else resolve_device(device)
        dtype = self.dtype if precision == "auto" else resolve_precision(precision, there)
        if there == self.place and dtype == self.dtype and not self.training:
            return self
        moved = copy.deepcopy(self).to(there).eval()
        moved.dtype = dtype
        return moved

    @torch.inference_mode()
    def read(
        self, tables: TableBatch, observations_per_chunk: int | None = None, progress: Progress = ignore
    ) -> GraphDistribution:
        """The distributions over graphs given tables of numpy arrays."""
        batch = TensorBatch.of(tables).to(self.place)
        # Tables that come one by one are replayed on a GPU; those that come together keep it busy as they are.
        replays = self.place.type == "cuda" and len(batch) == 1 and isinstance(self.encoder, PairwiseEncoder)
        with self._reading():
            network = self._replayed() if replays else self
            output: NetworkOutput = network(batch, observations_per_chunk)
            return output.numpy()

    @torch.inference_mode()
    def read_long(
        self, table: LongTable, observations_per_chunk: int | None = None, progress: Progress = ignore
    ) -> GraphDistribution:
        """The distribution over graphs given one long table: statistics of all observations, cells of those drawn."""
        check_parts(table, self.reads)
        drawn = TensorBatch.of(table.observations_drawn()).to(self.place)
        with self._reading():
            output = self.encoder.forward_long(table, self.standardized(drawn), observations_per_chunk, progress)
            return self.output(*output).numpy()

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        """The precision of a pass; and before each layer of it, the listeners are called."""

        def report(*_: object) -> None:
            for listener in self.between_stages:
                listener()

        hooks = [layer.register_forward_pre_hook(report) for layer in self.modules()] if self.between_stages else []
        try:
            with computing_in(self.dtype, self.place):
                yield
        finally:
            for hook in hooks:
                hook.remove()

    def _replayed(self) -> ReplayedModel:
        """The replayed network, anew if the weights lie elsewhere: what was captured reads them where they were."""
        weights = tuple(parameter.data_ptr() for parameter in self.parameters())
        if self._replays is None or self._replays[0] != weights:
            self._replays = weights, ReplayedModel(self)
        return self._replays[1]

    def bytes_per_observation(self, variables: int) -> int:
        """Memory that inference takes for each observation that is read at once."""
        return self.encoder.bytes_per_observation(variables, self.place.type)

    def bytes_per_pair(self) -> int:
        """Memory that inference takes for each ordered pair of variables."""
        return self.encoder.bytes_per_pair(self.place.type)

    def free_memory(self) -> int | None:
        """The bytes that are free on its device."""
        return int(torch.cuda.mem_get_info(self.place)[0]) if self.place.type == "cuda" else storage.free_memory()

    # Training

    def grown(self, name: str, tensor: Tensor, start: ArrowConfig) -> Tensor:
        """A parameter of a network with the configuration `start`, or a tensor of its shape, as this network has it."""
        return self.encoder.grown(name.removeprefix("encoder."), tensor, start.encoder)

    def compile_blocks(self, backend: str = "inductor") -> None:
        """Compile the encoder block by block, for any shape of table: one compilation serves all blocks of a kind."""
        # Training and validation, the places of a block, and sizes beyond 32-bit indices each need a version of their
        # own. Past torch's limit of 8 the rest would run uncompiled, with no more than a warning.
        torch.compiler.config.recompile_limit = max(torch.compiler.config.recompile_limit, MAX_COMPILED_VERSIONS)
        for module in self.encoder.modules():
            if isinstance(module, self.encoder.repeated_blocks):
                module.compile(dynamic=True, backend=backend)

    def parameter_count(self) -> int:
        """Number of trainable parameters."""
        return sum(parameter.numel() for parameter in self.parameters() if parameter.requires_grad)
