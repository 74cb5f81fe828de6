"""The configuration of a pretraining run, as frozen dataclasses that mirror the sections of a TOML file."""

from __future__ import annotations

import dataclasses
import math
import re
import sys
import types
import typing
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from causal_arrow.errors import ConfigurationError
from causal_arrow_lab.network.model import ArrowConfig

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

CONFIGS_FOLDER = Path(__file__).parent / "configs"

SHAPE_LAWS = ("uniform", "log_uniform", "mixed")
OPTIMIZERS = ("muon", "adamw")
PRECISIONS = ("bfloat16", "float32")

MAX_SEED = 2**63 - 1  # of both numpy and torch

_DOT_OUTSIDE_QUOTES = re.compile(r'\.(?=(?:[^"]*"[^"]*")*[^"]*$)')


def _check_range(section: str, settings: object, **ranges: tuple[float, float]) -> None:
    """Raise ConfigurationError unless each of these settings is None, or finite and in its range, ends included."""
    for name, (least, most) in ranges.items():
        value = getattr(settings, name)
        if value is not None and not (least <= value <= most and math.isfinite(value)):
            expected = f"{least} or more" if math.isinf(most) else f"from {least} to {most}"
            raise ConfigurationError(f"Expected {expected} for {f'{section}.{name}'.lstrip('.')}, got {value!r}.")


def _check_name(name: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise ConfigurationError(f"Unknown {name} {value!r}: expected one of {', '.join(known)}.")


@dataclass(frozen=True)
class TaskConfig:
    """The synthetic tasks that the network learns from."""

    distribution: str = "paper"
    """`paper`, section 4.1; `broad`, half of it beyond the paper; or `any`, tables as people have them."""
    without: tuple[str, ...] = ()
    """Components of the distribution that are switched off."""
    weights: dict[str, float] = field(default_factory=dict)
    """Other weights for some components."""


@dataclass(frozen=True)
class ShapeConfig:
    """Numbers of observations and variables, each between two bounds, both included."""

    observations: tuple[int, int] = (100, 2000)
    """The fewest and the most observations of a table."""
    observations_law: str = "uniform"
    """`uniform`, `log_uniform`, or `mixed`: one half of the shapes by each."""
    variables: tuple[int, int] = (2, 100)
    """The fewest and the most variables of a table."""
    variables_law: str = "uniform"
    """`uniform`, `log_uniform`, or `mixed`: one half of the shapes by each."""
    long_share: float = 0.0
    """The share of shapes with more observations than that."""
    long_observations: tuple[int, int] = (2000, 10000)
    """The fewest and the most observations of these, log-uniform."""
    wide_share: float = 0.0
    """The share of shapes with more variables than that, all with few observations."""
    wide_variables: tuple[int, int] = (110, 256)
    """The fewest and the most variables of these, log-uniform."""

    def __post_init__(self) -> None:
        for name in ("observations", "variables", "long_observations", "wide_variables"):
            low, high = getattr(self, name)
            if not 2 <= low <= high:
                expected = f"Expected two bounds, 2 or more and the smaller first, for shapes.{name}"
                raise ConfigurationError(f"{expected}, got {(low, high)!r}.")
        _check_range("shapes", self, long_share=(0, 1), wide_share=(0, 1))
        if self.long_share + self.wide_share > 1:
            raise ConfigurationError(
                f"shapes.long_share and shapes.wide_share are shares of all shapes: {self.long_share} and "
                f"{self.wide_share} add up to more than 1."
            )
        _check_name("observations_law", self.observations_law, SHAPE_LAWS)
        _check_name("variables_law", self.variables_law, SHAPE_LAWS)


@dataclass(frozen=True)
class BatchConfig:
    """The tasks of an optimizer step: `slots` groups, each of one shape, all with the same weight."""

    slots: int = 4
    """Groups per step; several processes share them, so their number must divide this."""
    tasks_per_slot: int | None = None
    """Tasks in a group; if not set, as many as `work_per_slot` pays for."""
    work_per_slot: int = 2_000_000
    """Cells in a group, where a pair of variables counts as `cells_per_pair` cells."""
    cells_per_pair: float = 8.0
    """The cost of a pair of variables, in cells."""
    most_tasks_per_slot: int = 1024
    """The largest number of tasks in a group."""
    one_shape: bool = False
    """All groups of a step have the same shape, as in the paper."""
    steps_per_shape: int = 1
    """A slot keeps its shape for this many steps, so that its tasks can be drawn in one large batch."""

    def __post_init__(self) -> None:
        whole = dict.fromkeys(("slots", "tasks_per_slot", "work_per_slot", "most_tasks_per_slot"), (1, math.inf))
        _check_range("batch", self, **whole, steps_per_shape=(1, math.inf), cells_per_pair=(0, math.inf))


@dataclass(frozen=True)
class OptimizationConfig:
    """The optimizer and its schedule: linear warm-up, constant, linear decay to zero."""

    optimizer: str = "muon"
    """`muon` for matrices with AdamW for the rest, or `adamw` for all."""
    learning_rate: float = 2e-3
    """The full learning rate, between warm-up and decay."""
    adamw_learning_rate: float = 1e-3
    """For parameters that Muon does not take: embeddings, heads, biases. With optimizer = "adamw" all use
    learning_rate."""
    weight_decay: float = 0.01
    """Share by which a step at learning rate 1 would reduce each weight."""
    betas: tuple[float, float] = (0.9, 0.95)
    """AdamW's averaging of gradients and of their squares."""
    momentum: float = 0.95
    """Muon's averaging of gradients."""
    clip: float = 1.0
    """Gradients longer than this are shortened to it."""
    loss_per_variable: bool = True
    """Divides the loss of a table by its number of variables, so that all sizes count equally; else equation 1's
    sum."""
    steps: int = 250_000
    """Optimizer steps of the whole run."""
    warmup_steps: int = 100
    """Steps over which the learning rate rises."""
    decay_steps: int = 0
    """Steps at the end over which it falls to zero."""
    averaging: float = 0.999
    """The share of the averaged weights that each step keeps."""
    precision: str = "bfloat16"
    """Arithmetic of forward passes: `bfloat16` or `float32`."""
    compile: bool = True
    """Whether the blocks of the encoder are compiled."""

    def __post_init__(self) -> None:
        _check_name("optimizer", self.optimizer, OPTIMIZERS)
        _check_name("precision", self.precision, PRECISIONS)
        counts = dict.fromkeys(("steps", "warmup_steps", "decay_steps"), (0, math.inf))
        rates = dict.fromkeys(("learning_rate", "adamw_learning_rate", "weight_decay", "clip"), (0.0, math.inf))
        _check_range("optimization", self, **counts, **rates, momentum=(0.0, 1.0), averaging=(0.0, 1.0))
        if not all(0 <= beta < 1 for beta in self.betas):
            raise ConfigurationError(
                f"Expected two numbers from 0 to below 1 for optimization.betas, got {self.betas}."
            )


@dataclass(frozen=True)
class ValidationConfig:
    """A fixed set of tasks drawn before training, as many for each shape."""

    tasks: int = 10_000
    """Tasks of all shapes and distributions together."""
    shapes: tuple[tuple[int, int], ...] = ((100, 10), (500, 10), (100, 50), (500, 50), (100, 100), (1000, 100))
    """Observations and variables of each shape."""
    drawn_shapes: int = 0
    """If not 0: this many shapes drawn as in training, as in the paper, instead of `shapes`."""
    distributions: tuple[str, ...] = ("paper",)
    """Task distributions by name: `paper`, `broad`, `any`."""
    seed: int = 1
    """Determines the tasks."""
    every_steps: int = 5_000
    """The averaged weights are validated and written this often, and at the end."""

    def __post_init__(self) -> None:
        _check_range("validation", self, tasks=(1, math.inf), every_steps=(1, math.inf), seed=(0, MAX_SEED))
        _check_range("validation", self, drawn_shapes=(0, math.inf))
        for name in ("shapes", "distributions"):
            if not getattr(self, name):
                raise ConfigurationError(f"Expected at least one entry for validation.{name}, got none.")
        if too_small := [shape for shape in self.shapes if min(shape) < 2]:
            raise ConfigurationError(f"Expected 2 or more of each for validation.shapes, got {list(too_small[0])}.")


@dataclass(frozen=True)
class LogConfig:
    """Frequency with which a run prints a line and saves its state."""

    every_steps: int = 20
    """A line on the console and a record in the log this often."""
    save_every_steps: int = 1_000
    """The state is saved this often, and with each validation."""

    def __post_init__(self) -> None:
        _check_range("log", self, every_steps=(1, math.inf), save_every_steps=(1, math.inf))


@dataclass(frozen=True)
class PretrainingConfig:
    """A whole run."""

    model: ArrowConfig = field(default_factory=ArrowConfig.base)
    """The network: its `encoder` by name, and the sizes of that encoder."""
    seed: int = 0
    """Determines the initial weights and all tasks."""
    tasks: TaskConfig = field(default_factory=TaskConfig)
    """The synthetic tasks that the network learns from."""
    shapes: ShapeConfig = field(default_factory=ShapeConfig)
    """Sizes of the tables."""
    batch: BatchConfig = field(default_factory=BatchConfig)
    """The tasks of an optimizer step."""
    optimization: OptimizationConfig = field(default_factory=OptimizationConfig)
    """The optimizer and its schedule."""
    validation: ValidationConfig = field(default_factory=ValidationConfig)
    """A fixed set of tasks drawn before training."""
    log: LogConfig = field(default_factory=LogConfig)
    """Frequency with which a run prints a line and saves its state."""

    def __post_init__(self) -> None:
        _check_range("", self, seed=(0, MAX_SEED))

    @classmethod
    def from_dict(cls, settings: dict[str, Any]) -> PretrainingConfig:
        """Read nested tables; ConfigurationError names a setting that does not fit."""
        settings = dict(settings)
        model = settings.pop("model", None)
        config = _read(cls, settings, "")
        if model is not None:
            config = dataclasses.replace(config, model=ArrowConfig.from_dict(model))
        return config

    def to_dict(self) -> dict[str, Any]:
        """The configuration as JSON values, which `from_dict` reads."""
        return {**dataclasses.asdict(self), "model": self.model.to_dict()}


def shipped_configs() -> dict[str, Path]:
    """The configurations that come with the package by name."""
    return {path.stem: path for path in sorted(CONFIGS_FOLDER.glob("*.toml"))}


def read_config(source: Path | str, changes: Sequence[str] = ()) -> PretrainingConfig:
    """Read a shipped configuration by name, or a TOML file.

    Changes are such as "batch.slots=2", 'tasks.without=["trees"]' or 'tasks.weights."typed.rare_event"=0'.
    """
    path = shipped_configs().get(str(source), Path(source))
    try:
        content = path.read_bytes()
    except (FileNotFoundError, ValueError) as error:  # a ValueError for names that no file can have
        raise ConfigurationError(
            f"There is no configuration {str(source)!r}: expected one of {', '.join(shipped_configs())}, "
            "or a TOML file."
        ) from error
    except OSError as error:
        raise ConfigurationError(f"Cannot read the configuration {path}: {error.strerror}.") from error
    try:
        settings = tomllib.loads(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigurationError(f"{path} is not a TOML file: {error}.") from error
    for change in changes:
        _change(settings, change)
    return PretrainingConfig.from_dict(settings)


def _change(settings: dict[str, Any], change: str) -> None:
    """Change one value, written KEY=VALUE as in a TOML file. Words need no quotes, names with a dot do."""
    key, equals, text = change.partition("=")
    *sections, name = (part.strip().strip('"') for part in _DOT_OUTSIDE_QUOTES.split(key))
    if not equals or not all((*sections, name)):
        raise ConfigurationError(f"Expected a change of the form SECTION.KEY=VALUE, got {change!r}.")
    for section in sections:
        settings = settings.setdefault(section, {})
        if not isinstance(settings, dict):
            raise ConfigurationError(f"Expected SECTION.KEY=VALUE, got {change!r}: {section} is not a section.")
    try:
        settings[name] = tomllib.loads(f"value = {text.strip()}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        settings[name] = text.strip()


_Section = typing.TypeVar("_Section")


def _read(section: type[_Section], settings: Any, name: str) -> _Section:
    """Fill a dataclass from a table, checking every key and type."""
    if not isinstance(settings, dict):
        raise ConfigurationError(f"Expected a table for [{name}], got {settings!r}.")
    hints = typing.get_type_hints(section)
    if unknown := sorted(set(settings) - set(hints)):
        where = f"[{name}]" if name else "the configuration"
        raise ConfigurationError(f"Unknown setting {unknown[0]!r} in {where}: expected some of {', '.join(hints)}.")
    values = {key: _value(hints[key], value, f"{name}.{key}".lstrip(".")) for key, value in settings.items()}
    return section(**values)


def _value(hint: Any, value: Any, name: str) -> Any:
    """Convert `value` to the type `hint`, including tuples."""
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return _read(hint, value, name)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        hint = next(argument for argument in arguments if argument is not type(None))
        return None if value is None else _value(hint, value, name)
    if origin is tuple and isinstance(value, (list, tuple)):
        if arguments[-1] is not Ellipsis and len(value) != len(arguments):
            raise ConfigurationError(f"Expected {len(arguments)} values for {name}, got {value!r}.")
        kinds = [arguments[0]] * len(value) if arguments[-1] is Ellipsis else arguments
        return tuple(_value(kind, part, name) for kind, part in zip(kinds, value, strict=True))
    if origin is dict and isinstance(value, dict):
        return {key: _value(arguments[1], part, f"{name}.{key}") for key, part in value.items()}
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if origin is not None or not isinstance(value, hint) or (isinstance(value, bool) and hint is not bool):
        expected = getattr(hint, "__name__", str(hint))
        raise ConfigurationError(f"Expected {expected} for {name}, got {value!r}.")
    return value
