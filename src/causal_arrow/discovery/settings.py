"""Settings: how to go from a table to an answer. Python and the command line take every setting from here.

So that help comes at once, this imports no network.
"""

# ruff: noqa: RUF009  # _setting makes a field

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from causal_arrow.errors import ConfigurationError, KnowledgeError, check_choice
from causal_arrow.inputs import checked
from causal_arrow.network import DEFAULT_MODEL
from causal_arrow.series import SERIES_OPTIONS, SeriesOptions
from causal_arrow.tables.frames import FRAMES, library_of
from causal_arrow.tables.options import READ_OPTIONS, ReadOptions, check_names
from causal_arrow.tables.table import MIN_ROWS
from causal_arrow.text import shown

if TYPE_CHECKING:
    from causal_arrow.graphs.knowledge import Knowledge
    from causal_arrow.network import Network

    KnowledgeSource = Knowledge | Mapping[str, Any] | str | Path | None
else:
    KnowledgeSource = Any

# What an answer can take on without a new pass through the network.
REFINABLE = ("knowledge", "threshold", "decode", "directions", "hidden", "hidden_threshold")
FORMER_NAMES = {"observations": "max_rows", "rule": "decode", "k": "n_graphs"}
"""Settings and arguments of earlier versions, which files may still have, and their names now."""
DIRECTIONS = ("tempered", "network")
"""Choices for the probabilities of directions: as real tables bear them out, or as the network gives them."""
HIDDEN = ("none", "standing-out", "all")
"""Choices for the hidden causes to show: no pair, pairs that stand out from their table, or all above the threshold."""


def _setting(default: Any, help: str, *choices: str, kind: Any = None) -> Any:
    """A setting that the command line has too: its help there, and its choices or its type."""
    return field(default=default, metadata={"help": help, "choices": choices, "kind": kind or type(default)})


@checked
@dataclass(frozen=True)
class Settings:
    """Settings for the way from a table to an answer; invalid settings are refused here, before any work.

    The parameters are those of `Arrow`, which describes them; and `reading`, how to read a table, and `series`, how to
    read a time series, as one object each.

    Examples
    --------
    >>> from causal_arrow import Settings
    >>> settings = Settings(decode="f1", knowledge={"roots": ["age"]})
    >>> settings.threshold
    0.5
    """

    model: str | Path | Network = _setting(
        DEFAULT_MODEL, "A bundled model (see `models`), a folder, or a file.", kind=str
    )
    decode: str = _setting(
        "map",
        "Which graph to take: the most probable (map), the one with the fewest expected mistakes (shd), or the one "
        "with the largest expected F1 (f1).",
        *("map", "shd", "f1"),
    )
    threshold: float = _setting(
        0.5, "With map: minimum adjacency probability for an edge to be shown, between 0 and 1."
    )
    scale: str = _setting(
        "auto",
        "Whether to log-transform skewed columns whose values share a sign: never (given), always (log), or unless "
        "the network is clearly more certain without (auto).",
        *("auto", "given", "log"),
    )
    directions: str = _setting(
        "tempered",
        "Which probabilities directions have: those that real tables bear out (tempered), or the network's own "
        "(network).",
        *DIRECTIONS,
    )
    hidden: str = _setting(
        "standing-out",
        "Which hidden causes to show: none, those that stand out from the table's own level (standing-out), or all "
        "above the threshold.",
        *HIDDEN,
    )
    hidden_threshold: float = _setting(0.5, "The probability above which a hidden cause is shown.")
    max_rows: int | None = _setting(
        None,
        "How many rows of a long table the network reads one by one, 20 or more; 20,000 by default, since more "
        "hardly improve the answer. Statistics always use all rows.",
        kind=int | None,
    )
    device: str = _setting("auto", "auto and cpu are the processor; cuda and cuda:1 need causal-arrow-lab.")
    precision: str = _setting(
        "auto",
        "Precision of the arithmetic: auto is float32; bfloat16 needs a GPU, and is nearly always within 0.01 of it.",
        *("auto", "float32", "bfloat16"),
    )
    knowledge: KnowledgeSource = None
    observations_per_chunk: int | None = None
    frames: str = "auto"
    reading: ReadOptions = field(default_factory=ReadOptions)
    series: SeriesOptions = field(default_factory=SeriesOptions)

    def __post_init__(self) -> None:
        from causal_arrow.graphs.decoding import check_threshold
        from causal_arrow.network import Network

        named = isinstance(self.model, str | Path) and str(self.model)
        if not (named or isinstance(self.model, Network)):
            raise ConfigurationError(
                f"Expected model to be the name of a bundled model, a path, or a network, got {shown(self.model)}."
            )
        if not self.device:
            raise ConfigurationError(f"Expected device to be auto, cpu, cuda or cuda:1, got {self.device!r}.")
        for entry in fields(self):
            if choices := entry.metadata.get("choices"):
                check_choice(entry.name, getattr(self, entry.name), choices)
        check_choice("frames", self.frames, FRAMES)
        check_threshold(self.threshold)
        check_threshold(self.hidden_threshold, "hidden_threshold")
        if self.max_rows is not None:
            check_count("max_rows", self.max_rows, least=MIN_ROWS)
        if self.observations_per_chunk is not None:
            check_count("observations_per_chunk", self.observations_per_chunk)

    def changed(self, **changes: Any) -> Settings:
        """Change some of the settings or reading options; ConfigurationError for a name that is unknown.

        Arguments of `Knowledge`, such as `roots` or `randomized`, add to what is known.
        """
        refuse_former_names(changes)
        check_names(changes, [*READ_OPTIONS, *SERIES_OPTIONS, *(entry.name for entry in fields(self)), *statements()])
        if stated := {name: changes.pop(name) for name in statements() if name in changes}:
            known = as_knowledge(changes.get("knowledge", self.knowledge))
            changes["knowledge"] = known | as_knowledge(stated)
        for part, names in (("reading", READ_OPTIONS), ("series", SERIES_OPTIONS)):
            if options := {name: changes.pop(name) for name in names if name in changes}:
                changes[part] = changes.get(part, getattr(self, part)).changed(**options)
        return replace(self, **changes)

    def for_source(self, source: Any) -> Settings:
        """The settings with the library of frames that a source calls for, unless one was chosen."""
        return self if self.frames != "auto" else replace(self, frames=library_of(source))

    def to_dict(self) -> dict[str, Any]:
        """The settings as JSON can hold them, with the reading options that are not the default."""
        if not isinstance(self.model, str | Path):
            raise ConfigurationError("Expected the name or path of a model, got a model itself: save it first.")
        names = [entry.name for entry in fields(self) if entry.name not in ("reading", "series")]
        own = {name: getattr(self, name) for name in names}
        own |= {"model": str(self.model), "knowledge": as_knowledge(self.knowledge).to_dict() or None}
        return {**own, **self.reading.to_dict(), **self.series.to_dict()}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Settings:
        """Read what `to_dict` returned, also in earlier versions; an unknown name is a ConfigurationError."""
        return cls().changed(**{FORMER_NAMES.get(name, name): value for name, value in content.items()})


def refuse_former_names(given: Iterable[str]) -> None:
    """ConfigurationError for a name of an earlier version, with its name now."""
    for name in given:
        if name in FORMER_NAMES:
            raise ConfigurationError(f"{name!r} is now called {FORMER_NAMES[name]!r}.")


def statements() -> list[str]:
    """The arguments of `Knowledge`."""
    from causal_arrow.graphs.knowledge import Knowledge

    return [entry.name for entry in fields(Knowledge)]


def as_knowledge(source: Any) -> Knowledge:
    """Knowledge from whatever `Arrow` takes for it."""
    from causal_arrow.graphs.knowledge import Knowledge

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
        raise ConfigurationError(f"Expected {name} to be a whole number, {limit}, got {shown(value)}.")
    return int(value)
