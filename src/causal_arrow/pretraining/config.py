"""Everything a pretraining run is told, as frozen dataclasses that mirror the sections of a TOML file."""

from __future__ import annotations

import argparse
import dataclasses
import sys
import types
import typing
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from causal_arrow.errors import ConfigurationError
from causal_arrow.network.model import ArrowConfig

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

CONFIGS_FOLDER = Path(__file__).parent / "configs"


@dataclass(frozen=True)
class TaskConfig:
    """Which synthetic tasks the network learns from."""

    distribution: str = "paper"
    without: tuple[str, ...] = ()
    """Components of the distribution that are switched off."""
    weights: dict[str, float] = field(default_factory=dict)
    """Other weights for some components."""


@dataclass(frozen=True)
class ShapeConfig:
    """Numbers of observations and variables, each between two bounds, both included."""

    observations: tuple[int, int] = (100, 2000)
    observations_law: str = "uniform"
    variables: tuple[int, int] = (2, 100)
    variables_law: str = "uniform"


@dataclass(frozen=True)
class BatchConfig:
    """What one optimizer step sees: `slots` groups of tasks, each of one shape, all groups with the same weight."""

    slots: int = 4
    tasks_per_slot: int | None = None
    """Tasks in a group; if not set, as many as `work_per_slot` pays for."""
    work_per_slot: int = 2_000_000
    """Cells in a group, a pair of variables counted as `cells_per_pair` cells."""
    cells_per_pair: float = 8.0
    most_tasks_per_slot: int = 1024
    one_shape: bool = False
    """All groups of a step have the same shape, as in the paper."""
    steps_per_shape: int = 1
    """A slot keeps its shape for this many steps, so that its tasks can be drawn in one large batch."""


@dataclass(frozen=True)
class OptimizationConfig:
    """The optimizer and its schedule: linear warm-up, constant, linear decay to zero."""

    optimizer: str = "muon"
    learning_rate: float = 2e-3
    adamw_learning_rate: float = 1e-3
    """For what Muon does not take: embeddings, heads, biases. With optimizer = "adamw" all use learning_rate."""
    weight_decay: float = 0.01
    betas: tuple[float, float] = (0.9, 0.95)
    momentum: float = 0.95
    clip: float = 1.0
    steps: int = 250_000
    warmup_steps: int = 100
    decay_steps: int = 0
    averaging: float = 0.999
    """Each step the averaged weights keep this share of what they were."""
    precision: str = "bfloat16"
    compile: bool = True


@dataclass(frozen=True)
class ValidationConfig:
    """A fixed set of tasks drawn before training, as many for each shape."""

    tasks: int = 10_000
    shapes: tuple[tuple[int, int], ...] = ((100, 10), (500, 10), (100, 50), (500, 50), (100, 100), (1000, 100))
    distributions: tuple[str, ...] = ("paper",)
    seed: int = 1
    every_steps: int = 5_000


@dataclass(frozen=True)
class LogConfig:
    """How often a run speaks and saves."""

    every_steps: int = 20
    save_every_steps: int = 1_000


@dataclass(frozen=True)
class PretrainingConfig:
    """A whole run."""

    model: ArrowConfig = field(default_factory=ArrowConfig.base)
    seed: int = 0
    tasks: TaskConfig = field(default_factory=TaskConfig)
    shapes: ShapeConfig = field(default_factory=ShapeConfig)
    batch: BatchConfig = field(default_factory=BatchConfig)
    optimization: OptimizationConfig = field(default_factory=OptimizationConfig)
    validation: ValidationConfig = field(default_factory=ValidationConfig)
    log: LogConfig = field(default_factory=LogConfig)

    @classmethod
    def from_dict(cls, settings: dict[str, Any]) -> PretrainingConfig:
        """The run described by nested tables; ConfigurationError names the setting that does not fit."""
        settings = dict(settings)
        model = settings.pop("model", None)
        config = _read(cls, settings, "")
        if model is not None:
            config = dataclasses.replace(config, model=ArrowConfig.from_dict(model))
        return config

    def to_dict(self) -> dict[str, Any]:
        """The run as JSON can hold it; `from_dict` reads it back."""
        return {**dataclasses.asdict(self), "model": self.model.to_dict()}


def shipped_configs() -> dict[str, Path]:
    """The configurations that come with the package: name -> file."""
    return {path.stem: path for path in sorted(CONFIGS_FOLDER.glob("*.toml"))}


def read_config(source: Path | str, changes: Sequence[str] = ()) -> PretrainingConfig:
    """The run described by a shipped configuration (its name) or a TOML file, with changes such as "batch.slots=2" or
    'tasks.without=["trees"]'."""
    path = shipped_configs().get(str(source), Path(source))
    if not path.exists():
        raise ConfigurationError(
            f"There is no configuration {str(source)!r}: expected one of {', '.join(shipped_configs())}, "
            "or a TOML file."
        )
    try:
        with open(path, "rb") as file:
            settings = tomllib.load(file)
    except OSError as error:
        raise ConfigurationError(f"Cannot read the configuration {path}: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} is not a TOML file: {error}.") from error
    for change in changes:
        _change(settings, change)
    return PretrainingConfig.from_dict(settings)


def add_config_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments `config` and `set` of a command, for `read_config`."""
    parser.add_argument(
        "config",
        type=Path,
        help="a shipped configuration (base, paper, small, smoke) or a TOML file that describes the run",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="change a setting of the file, as in model.pair_width=192; may be given several times",
    )


def _change(settings: dict[str, Any], change: str) -> None:
    """Put one value, written KEY=VALUE as in a TOML file, in its place. Words need no quotes."""
    key, equals, text = change.partition("=")
    *sections, name = (part.strip() for part in key.split("."))
    if not equals or not all((*sections, name)):
        raise ConfigurationError(f"Expected a change of the form SECTION.KEY=VALUE, got {change!r}.")
    for section in sections:
        settings = settings.setdefault(section, {})
        if not isinstance(settings, dict):
            raise ConfigurationError(f"Expected SECTION.KEY=VALUE, got {change!r}: {section} is not a section.")
    try:
        settings[name] = tomllib.loads(f"value = {text.strip()}")["value"]
    except tomllib.TOMLDecodeError:
        settings[name] = text.strip()


_Section = typing.TypeVar("_Section")


def _read(section: type[_Section], settings: Any, name: str) -> _Section:
    """A dataclass filled from a table, checked key by key and type by type."""
    if not isinstance(settings, dict):
        raise ConfigurationError(f"Expected a table for [{name}], got {settings!r}.")
    hints = typing.get_type_hints(section)
    if unknown := sorted(set(settings) - set(hints)):
        place = f"[{name}]" if name else "the configuration"
        raise ConfigurationError(f"Unknown setting {unknown[0]!r} in {place}: expected some of {', '.join(hints)}.")
    values = {key: _value(hints[key], value, f"{name}.{key}".lstrip(".")) for key, value in settings.items()}
    return section(**values)


def _value(hint: Any, value: Any, name: str) -> Any:
    """`value` as the type `hint`, tuples included."""
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
