"""ArrowModel: a table of observations in, a distribution over causal graphs out, in one forward pass."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from causal_arrow.batches import LongTable, TableBatch
from causal_arrow.errors import ConfigurationError
from causal_arrow.graphs.graph_distribution import GraphDistribution
from causal_arrow.graphs.skeleton_order import SkeletonOrder
from causal_arrow.network.encoders.pairwise import PairwiseConfig
from causal_arrow.network.encoders.paper import PaperConfig
from causal_arrow.network.encoders.protocol import Encoder, EncoderConfig, EncoderOutput
from causal_arrow.network.encoders.registry import ENCODERS, encoder_kind, encoder_name
from causal_arrow.progress import Progress, unheard

# B tables, N observations, P variables

MOST_COMPILED_VERSIONS = 64
"""Of one kind of block."""


@dataclass(frozen=True)
class ArrowConfig:
    """Which encoder a network has, and its sizes.

    Parameters
    ----------
    encoder
        A `PairwiseConfig`, a `PaperConfig`, or the configuration of an encoder of your own.

    Examples
    --------
    >>> from causal_arrow import ArrowConfig
    >>> config = ArrowConfig.base()
    >>> config.encoder.pair_width
    128
    """

    encoder: EncoderConfig

    @classmethod
    def paper(cls) -> ArrowConfig:
        """The network of the paper: section 3 and appendix C, 37M parameters.

        Returns
        -------
        ArrowConfig
            Of the encoder "paper".

        Examples
        --------
        >>> ArrowConfig.paper().encoder.width
        512
        """
        return cls(PaperConfig())

    @classmethod
    def base(cls) -> ArrowConfig:
        """The network we ship: pairs of variables have a representation of their own.

        Returns
        -------
        ArrowConfig
            Of the encoder "pairwise".

        Examples
        --------
        >>> ArrowConfig.base().encoder.stages
        4
        """
        return cls(PairwiseConfig())

    def to_dict(self) -> dict[str, Any]:
        """The configuration as JSON can hold it: `{"encoder": name, **sizes}`.

        Returns
        -------
        dict
            `from_dict` reads it back.

        Examples
        --------
        >>> config.to_dict()["encoder"]
        'pairwise'
        """
        settings = dataclasses.asdict(self.encoder)
        sizes = {name: list(value) if isinstance(value, tuple) else value for name, value in settings.items()}
        return {"encoder": encoder_name(self.encoder), **sizes}

    @classmethod
    def from_dict(cls, settings: dict[str, Any]) -> ArrowConfig:
        """The configuration that `to_dict` wrote.

        Parameters
        ----------
        settings
            The name of the `encoder`, and its sizes. A ConfigurationError names what does not fit.

        Returns
        -------
        ArrowConfig
            What is not given has its default.

        Examples
        --------
        >>> ArrowConfig.from_dict({"encoder": "pairwise", "stages": 2}).encoder.stages
        2
        """
        if not isinstance(settings, dict):
            raise ConfigurationError(f"Expected a table for [model], got {settings!r}.")
        settings = dict(settings)
        name = settings.pop("encoder", None)
        config_type = encoder_kind(name).config
        known = {field.name for field in dataclasses.fields(config_type)}
        if unknown := sorted(set(settings) - known):
            raise ConfigurationError(
                f"Unknown setting {unknown[0]!r} for the {name} encoder: expected some of {', '.join(sorted(known))}."
            )
        return cls(config_type(**settings))


def standardize(values: Tensor) -> Tensor:
    """Each variable with mean 0 and standard deviation 1 (the one with n − 1), in float32; zeros for a constant.

    The arithmetic keeps the precision of the input, (..., N, P), and has no lower bound on the spread: the units of a
    variable never matter, and a float64 table with nearly deterministic relations loses nothing before the cast.
    """
    # Divided first: squares of very small numbers would vanish, those of very large ones overflow. A constant is then
    # exactly 1 or −1 everywhere, so that its spread is exactly 0.
    largest = torch.linalg.vector_norm(values, float("inf"), dim=-2, keepdim=True)
    scaled = values / largest.masked_fill(largest == 0, 1)
    centered = scaled - scaled.mean(dim=-2, keepdim=True)
    spread = centered.std(dim=-2, keepdim=True)
    standardized: Tensor = centered / spread.masked_fill(spread == 0, 1)
    return standardized.float()


def _standardize_numbers(tables: TableBatch) -> Tensor:
    """The values with each number standardized over what was observed of it; categories as they are.  (B, N, P)"""
    standardized = _standardize_observed(tables.values, tables.observed)
    levels = tables.levels
    return standardized if levels is None else torch.where((levels > 0)[:, None], tables.values.float(), standardized)


def _standardize_observed(values: Tensor, observed: Tensor | None) -> Tensor:
    """The values (B, N, P) with each column standardized over what was observed of it, holes at 0.  (B, N, P)"""
    if observed is None:
        return standardize(values)
    # Holes at the mean, so that they move nothing; then the spread over the observed ones alone.
    count = observed.sum(dim=1, keepdim=True).clamp_min(1)
    present = values.masked_fill(~observed, 0.0)
    largest = torch.linalg.vector_norm(present, float("inf"), dim=1, keepdim=True)
    scaled = present / largest.masked_fill(largest == 0, 1)
    mean = scaled.sum(dim=1, keepdim=True) / count
    centered = torch.where(observed, scaled - mean, 0.0)
    spread = (centered.square().sum(dim=1, keepdim=True) / (count - 1).clamp_min(1)).sqrt()
    return (centered / spread.masked_fill(spread == 0, 1)).float()


def _standardize_columns(table: LongTable) -> LongTable:
    """The table with each column of numbers standardized; categories as they are."""

    def column(place: int) -> Tensor:
        values = table.column(place)
        if table.levels[place] > 0:
            return values
        holes = values.isnan()
        observed = ~holes[None, :, None] if bool(holes.any()) else None
        standardized = _standardize_observed(values[None, :, None], observed)[0, :, 0]
        return standardized.masked_fill(holes, float("nan"))

    return dataclasses.replace(table, column=column)


class ArrowModel(nn.Module):
    """The network: standardizes a batch of tables, encodes them, and answers with a distribution over graphs for each.

    `load_model` gives one with its weights; this makes a new one with random weights.

    Parameters
    ----------
    config
        The encoder and its sizes.

    Attributes
    ----------
    config : ArrowConfig
        As it was given.
    encoder : Encoder
        The network without standardization.
    extra : dict
        What its file says beside configuration and weights, such as how it was trained; empty for a new model.

    Examples
    --------
    The examples of the methods below continue this one.

    >>> import torch
    >>> from causal_arrow import ArrowConfig, ArrowModel, load_model
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
        """What its file says beside configuration and weights, such as how it was trained; empty for a new model."""

    def forward(self, tables: TableBatch | Tensor, observations_per_chunk: int | None = None) -> GraphDistribution:
        """The distributions over graphs given tables of one shape.

        Parameters
        ----------
        tables
            A `TableBatch`, or its values  (B, N, P) in any units.
        observations_per_chunk
            Bounds memory: observations are read that many at a time, with the same answer up to rounding.

        Returns
        -------
        GraphDistribution
            One distribution per table.

        Examples
        --------
        >>> with torch.inference_mode():
        ...     graphs = model(tables, observations_per_chunk=50)
        >>> graphs.variables
        5
        """
        if isinstance(tables, Tensor):
            tables = TableBatch(tables)
        self._check_parts(tables)
        output: EncoderOutput = self.encoder(self.standardized(tables), observations_per_chunk)
        return self.distribution(*output)

    @torch.inference_mode()
    def forward_long(
        self, table: LongTable, observations_per_chunk: int | None = None, progress: Progress = unheard
    ) -> GraphDistribution:
        """The distribution over graphs given one long table: statistics of all observations, cells of those drawn.

        Parameters
        ----------
        table
            The table, a column at a time, and which observations to read one by one.
        observations_per_chunk
            Bounds memory: observations are read that many at a time.
        progress
            Called with the stage and the share of it that is done.

        Returns
        -------
        GraphDistribution
            Of the one table.

        Examples
        --------
        >>> from causal_arrow.batches import LongTable
        >>> generator = torch.Generator().manual_seed(0)
        >>> values = torch.randn(5000, 3, generator=generator, dtype=torch.float64)
        >>> levels = torch.zeros(3, dtype=torch.long)  # columns of numbers
        >>> long = LongTable(
        ...     observations=5000,
        ...     column=lambda place: values[:, place],
        ...     drawn=torch.arange(100),
        ...     levels=levels,
        ...     ordered=levels > 0,
        ...     complete=True,
        ... )
        >>> model.forward_long(long).variables
        3
        """
        drawn = table.observations_drawn()
        self._check_parts(drawn)
        output = self.encoder.forward_long(
            _standardize_columns(table),
            self.standardized(drawn).to(next(self.parameters()).device),
            observations_per_chunk,
            progress,
        )
        return self.distribution(*output)

    def standardized(self, tables: TableBatch) -> TableBatch:
        """The tables as the encoder reads them: numbers with mean 0 and standard deviation 1.

        Parameters
        ----------
        tables
            Tables in any units.

        Returns
        -------
        TableBatch
            A new batch; categories keep their codes.

        Examples
        --------
        >>> from causal_arrow.batches import TableBatch
        >>> standardized = model.standardized(TableBatch(5 * tables))
        >>> standardized.values[0, :, 0].std().round(decimals=3)
        tensor(1.)
        """
        return dataclasses.replace(tables, values=_standardize_numbers(tables))

    def distribution(self, skeleton: Tensor, order: Tensor, confounding: Tensor | None = None) -> GraphDistribution:
        """The distributions that the output of the encoder stands for.

        Parameters
        ----------
        skeleton
            Log-odds of adjacency.  (B, P, P)
        order
            Order scores.  (B, P)
        confounding
            Log-odds of a hidden common cause, where the encoder says something about it.  (B, P, P)

        Returns
        -------
        GraphDistribution
            One distribution per table, in float32.

        Examples
        --------
        >>> model.distribution(torch.zeros(1, 4, 4), torch.zeros(1, 4)).variables
        4
        """
        return GraphDistribution(
            SkeletonOrder(skeleton.float(), order.float()), None if confounding is None else confounding.float()
        )

    def _check_parts(self, tables: TableBatch) -> None:
        """ConfigurationError for what the encoder would overlook in silence."""
        for name, part, what in (
            ("observed", None if tables.observed is None else ~tables.observed, "missing values"),
            ("intervened", tables.intervened, "values set by experiments"),
            ("levels", tables.levels, "categories"),
        ):
            if part is not None and name not in self.encoder.reads and bool(part.any()):
                raise ConfigurationError(
                    f"These tables have {what}, which the {encoder_name(self.config.encoder)} encoder cannot read."
                )

    def grown(self, name: str, tensor: Tensor, start: ArrowConfig) -> Tensor:
        """A parameter of a network that this one can grow from, as this network has it.

        Parameters
        ----------
        name
            The name of the parameter.
        tensor
            Its values there, or another tensor of its shape.
        start
            The configuration of the network that it comes from.

        Returns
        -------
        Tensor
            With the shape that this network has for it.

        Examples
        --------
        >>> name, tensor = next(iter(model.state_dict().items()))
        >>> model.grown(name, tensor, model.config).shape == tensor.shape
        True
        """
        return self.encoder.grown(name.removeprefix("encoder."), tensor, start.encoder)

    def compile_blocks(self, backend: str = "inductor") -> None:
        """Compile the encoder block by block, for any shape of table: one compilation serves all blocks of a kind.

        Parameters
        ----------
        backend
            Of `torch.compile`.

        Examples
        --------
        >>> model.compile_blocks()  # the first pass afterwards takes longer
        """
        # Training and validation, the places of a block, and sizes beyond 32-bit indices each need a version of their
        # own. Past torch's limit of 8 the rest would run uncompiled, with no more than a warning.
        torch.compiler.config.recompile_limit = max(torch.compiler.config.recompile_limit, MOST_COMPILED_VERSIONS)
        for module in self.encoder.modules():
            if isinstance(module, self.encoder.repeated_blocks):
                module.compile(dynamic=True, backend=backend)

    def parameter_count(self) -> int:
        """Number of trainable parameters.

        Returns
        -------
        int
            Of the encoder.

        Examples
        --------
        >>> model.parameter_count() // 100_000  # 2.3 million
        23
        """
        return sum(parameter.numel() for parameter in self.parameters() if parameter.requires_grad)
