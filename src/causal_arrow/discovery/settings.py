"""Settings: how to go from a table to an answer, checked before any work starts."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from causal_arrow.discovery.directions import DIRECTIONS
from causal_arrow.discovery.hidden import HIDDEN, HIDDEN_CAUSE
from causal_arrow.discovery.inference import is_model
from causal_arrow.errors import ConfigurationError, KnowledgeError, check_choice
from causal_arrow.graphs.decoding import DECODING_RULES, check_threshold
from causal_arrow.graphs.knowledge import Knowledge
from causal_arrow.network import DEFAULT_MODEL
from causal_arrow.network.protocol import PRECISIONS, Network
from causal_arrow.series.options import SERIES_OPTIONS, SeriesOptions
from causal_arrow.tables.frames import FRAMES, library_of
from causal_arrow.tables.options import READ_OPTIONS, ReadOptions, check_names
from causal_arrow.tables.scales import SCALES
from causal_arrow.tables.table import MIN_ROWS

REFINABLE = ("knowledge", "threshold", "decode", "directions", "hidden", "hidden_threshold")
"""The settings that an answer can take on without a new pass through the network."""
KnowledgeSource = Knowledge | Mapping[str, Any] | str | Path | None


@dataclass(frozen=True)
class Settings:
    """How to go from a table to an answer; invalid settings are refused here, before any work.

    Parameters
    ----------
    model
        The name of a bundled model, a folder or file of weights, or a network that `load_model` returned.
    device
        "auto" and "cpu" are the processor; "cuda" and "cuda:1" need causal-arrow-lab.
    decode
        How to take one graph from the distribution: "map", "shd" or "f1".
    threshold
        For "map": edges are shown when the two variables are adjacent with more than this probability.
    knowledge
        A `Knowledge`, a mapping of its arguments, a TOML or JSON file, or pgmpy's ExpertKnowledge.
    scale
        Whether to log-transform skewed columns whose values share a sign: "auto", "given" or "log".
    directions
        Which probabilities directions have: "tempered" as real tables bear them out, "network" as the network has them.
    hidden
        Which hidden causes to show: "none", those "standing-out" from the level of the table, or "all".
    hidden_threshold
        The probability above which a hidden cause is shown.
    max_rows
        How many rows of a long table the network reads one by one, 20,000 by default.
    observations_per_chunk
        How many observations to read at a time; by default chosen so that memory stays bounded.
    precision
        Of the network's matrix products: "auto" and "float32", or "bfloat16" on a GPU.
    frames
        The library of data frames in the answer, such as "polars"; "auto" is the one that the table came in.
    reading
        How to read the table.
    series
        How to read a time series; without lags the table has no order.

    See Also
    --------
    Arrow : The same parameters, described at length.

    Examples
    --------
    >>> from causal_arrow import Settings
    >>> settings = Settings(decode="f1", knowledge={"roots": ["age"]})
    >>> settings.threshold
    0.5
    """

    model: str | Path | Network = DEFAULT_MODEL
    device: str = "auto"
    decode: str = "map"
    threshold: float = 0.5
    knowledge: KnowledgeSource = None
    scale: str = "auto"
    directions: str = "tempered"
    hidden: str = "standing-out"
    hidden_threshold: float = HIDDEN_CAUSE
    max_rows: int | None = None
    observations_per_chunk: int | None = None
    precision: str = "auto"
    frames: str = "auto"
    reading: ReadOptions = field(default_factory=ReadOptions)
    series: SeriesOptions = field(default_factory=SeriesOptions)

    def __post_init__(self) -> None:
        if not is_model(self.model):
            raise ConfigurationError(
                f"Expected model to be the name of a bundled model, a path, or a network, got {self.model!r}."
            )
        if not isinstance(self.device, str) or not self.device:
            raise ConfigurationError(f"Expected device to be auto, cpu, cuda or cuda:1, got {self.device!r}.")
        check_choice("decode", self.decode, DECODING_RULES)
        check_choice("scale", self.scale, SCALES)
        check_choice("directions", self.directions, DIRECTIONS)
        check_choice("precision", self.precision, PRECISIONS)
        check_choice("hidden", self.hidden, HIDDEN)
        check_choice("frames", self.frames, FRAMES)
        check_threshold(self.threshold)
        check_threshold(self.hidden_threshold, "hidden_threshold")
        if self.max_rows is not None:
            check_count("max_rows", self.max_rows, least=MIN_ROWS)
        if self.observations_per_chunk is not None:
            check_count("observations_per_chunk", self.observations_per_chunk)

    def changed(self, **changes: Any) -> Settings:
        """Change some of the settings or reading options; ConfigurationError for a name that is none of them.

        Parameters
        ----------
        **changes
            New values by name. Arguments of `Knowledge`, such as `roots` or `randomized`, add to what is known.

        Examples
        --------
        >>> changed = settings.changed(decode="shd", drop=["id"])
        >>> changed.decode, changed.reading.drop
        ('shd', ('id',))
        """
        own = [entry.name for entry in fields(self)]
        if former := [name for name in changes if name in FORMER_NAMES]:
            raise ConfigurationError(f"{former[0]!r} is now called {FORMER_NAMES[former[0]]}.")
        check_names(changes, [*READ_OPTIONS, *SERIES_OPTIONS, *own, *STATEMENTS])
        if statements := {name: changes[name] for name in STATEMENTS if name in changes}:
            known = as_knowledge(changes.get("knowledge", self.knowledge))
            changes = {**changes, "knowledge": known | Knowledge(**statements)}
        parts = {"reading": READ_OPTIONS, "series": SERIES_OPTIONS}
        inside = {part: {name: changes[name] for name in names if name in changes} for part, names in parts.items()}
        changes = {name: value for name, value in changes.items() if name in own}
        for part, options in inside.items():
            if options:
                changes[part] = changes.get(part, getattr(self, part)).changed(**options)
        return replace(self, **changes)

    def for_source(self, source: Any) -> Settings:
        """The settings with the library of frames that a source calls for, unless one was chosen.

        Parameters
        ----------
        source
            What `discover` takes.

        Examples
        --------
        >>> settings.for_source("table.csv").frames
        'pandas'
        """
        return self if self.frames != "auto" else replace(self, frames=library_of(source))

    def to_dict(self) -> dict[str, Any]:
        """The settings as JSON can hold them; not for a model that is an object.

        By the names of the parameters, with the reading options that are not the default; `from_dict` reads it back.
        """
        if not isinstance(self.model, str | Path):
            raise ConfigurationError("Expected the name or path of a model, got a model itself: save it first.")
        names = [entry.name for entry in fields(self) if entry.name not in ("reading", "series")]
        own = {name: getattr(self, name) for name in names}
        own |= {"model": str(self.model), "knowledge": as_knowledge(self.knowledge).to_dict() or None}
        return {**own, **self.reading.to_dict(), **self.series.to_dict()}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Settings:
        """Read settings from a mapping of their names.

        Parameters
        ----------
        content
            Some of the parameters and reading options, by name, which may be those of earlier versions. An unknown
            name is a ConfigurationError.

        Examples
        --------
        >>> Settings.from_dict({"decode": "shd"}).decode
        'shd'
        """
        return cls().changed(**{FORMER_NAMES.get(name, name): value for name, value in content.items()})


STATEMENTS = tuple(entry.name for entry in fields(Knowledge))
"""Arguments of `Knowledge`."""
FORMER_NAMES = {"observations": "max_rows"}
"""Of settings in earlier versions, which files may still have."""


def as_knowledge(source: Any) -> Knowledge:
    """Knowledge from whatever `Arrow` takes for it."""
    if source is None:
        return Knowledge()
    if isinstance(source, Knowledge):
        return source
    if isinstance(source, str | Path):
        return Knowledge.from_file(source)
    if isinstance(source, Mapping):
        return Knowledge.from_dict(source)
    if hasattr(source, "required_edges"):
        return Knowledge.from_pgmpy(source)
    raise KnowledgeError(
        "Expected knowledge as a Knowledge, a mapping, a TOML or JSON file, or pgmpy's ExpertKnowledge, "
        f"got {type(source).__name__}."
    )


def check_count(name: str, value: Any, most: float = math.inf, least: int = 1) -> int:
    """The value as a whole number of `least` or more; ConfigurationError for anything else."""
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool | np.bool_)
    if not whole or not least <= int(value) <= most:
        limit = f"{least} or more" if math.isinf(most) else f"from {least} to {most:,.0f}"
        raise ConfigurationError(f"Expected {name} to be a whole number, {limit}, got {value!r}.")
    return int(value)
