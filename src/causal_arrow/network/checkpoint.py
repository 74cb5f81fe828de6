"""Files of weights: found by name or path, checked when read, and turned into a network.

A model is a folder as Hugging Face lays it out, so that publishing is a copy:

    model.safetensors   the weights; its header also holds the configuration, so this file alone is a model
    config.json         the same configuration, for people and the hub

The configuration inside `model.safetensors` decides: two files cannot be replaced in one instant, one file can.
Networks of other encoders, ArrowFM's files and GPUs need torch and come from the lab, which also writes files.
"""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from causal_arrow._version import __version__
from causal_arrow.errors import CheckpointError, ConfigurationError, check_choice
from causal_arrow.inputs import check_regular, checked, parse_json
from causal_arrow.network import PRECISIONS, Network, bundled_models
from causal_arrow.network.pairwise import PairwiseConfig, PairwiseNetwork
from causal_arrow.text import shown

FORMAT_VERSION = 1
CONFIG_FILE, WEIGHTS_FILE = "config.json", "model.safetensors"
MAX_HEADER_BYTES = 100_000_000  # safetensors' own limit
DTYPES = {
    "F64": ("float64", "<f8"),
    "F32": ("float32", "<f4"),
    "F16": ("float16", "<f2"),
    "BF16": ("bfloat16", "<u2"),
    "I64": ("int64", "<i8"),
    "I32": ("int32", "<i4"),
    "U8": ("uint8", "u1"),
    "BOOL": ("bool", "?"),
}
"""Types of weights in a file: their names in torch, and the numpy types that hold their bytes."""


@checked
def load_model(source: str | Path, device: str = "auto", precision: str = "auto") -> Network:
    """A network with its weights, ready to read tables.

    Parameters
    ----------
    source
        The name of a bundled model, a folder or `.safetensors` file written by `causal_arrow_lab.save_model`, or a file
        published for ArrowFM. A folder that has the name of a bundled model is reached as `./name`.
    device
        "auto" and "cpu" are the processor; "cuda" and "cuda:1" need causal-arrow-lab.
    precision
        "auto" and "float32", or "bfloat16" on a GPU.

    Examples
    --------
    >>> from causal_arrow import load_model
    >>> load_model("arrow-base").config.confounding_head
    True
    """
    path = find_model(source)
    check_choice("precision", precision, PRECISIONS)
    if not isinstance(device, str) or device not in ("auto", "cpu"):
        return from_lab(f"The device {shown(device)}", path, device, precision)
    if is_torch_file(path):
        return from_lab("An ArrowFM file", path, "cpu", precision)
    file = read_file(path)
    encoder = file.settings["model"].get("encoder")
    if encoder != "pairwise":
        return from_lab(f"The encoder {shown(encoder)}", path, "cpu", precision)
    config = file.built(lambda settings: config_from(PairwiseConfig, "pairwise", settings))
    check_shapes(file.shapes(), ((f"encoder.{name}", shape) for name, shape in config.weights()), file.path)
    weights = {name.removeprefix("encoder."): weight.astype(np.float32) for name, weight in file.weights().items()}
    return PairwiseNetwork(config, weights, file.extra).on(device, precision)


def from_lab(what: str, path: Path, device: Any, precision: str) -> Network:
    """A network of the lab; ConfigurationError if the lab is not here, or another version of it."""
    try:
        lab = importlib.import_module("causal_arrow_lab")
        networks = importlib.import_module("causal_arrow_lab.network.checkpoint")
    except ImportError as error:
        raise ConfigurationError(f"{what} needs torch: pip install causal-arrow-lab.") from error
    if lab.__version__ != __version__:
        raise ConfigurationError(
            f"{what} needs causal-arrow-lab {__version__}, the version of causal-arrow; found {lab.__version__}."
        )
    network: Network = networks.load_network(path, device, precision)
    return network


def read_extra(source: str | Path) -> dict[str, Any]:
    """The `extra` that the model of `source` was saved with; empty for a file of another program. Reads no weights."""
    path = find_model(source)
    path = path / WEIGHTS_FILE if path.is_dir() else path
    if is_torch_file(path):
        return {}
    metadata = _read_header(path).get("__metadata__", {})
    return WeightsFile(path, _settings_of(metadata["config"], path), {}).extra if "config" in metadata else {}


def find_model(source: str | Path) -> Path:
    """The folder or file that `source` names: a bundled model by its name, anything else by its path."""
    bundled = bundled_models()
    if isinstance(source, str) and source in bundled:
        return bundled[source]
    names = ", ".join(bundled) or "there are none in this installation"
    if not isinstance(source, (str, Path)):
        raise CheckpointError(f"Expected the name of a bundled model ({names}) or a path, got {shown(source)}.")
    try:
        path = Path(source).expanduser()
        found = source != "" and path.exists()
    except (OSError, ValueError, RuntimeError):  # names that no file can have; a home folder that nobody has
        found = False
    if not found:
        raise CheckpointError(
            f"No model {shown(str(source), 200)}: it is neither a bundled model ({names}) nor a file or folder that "
            "exists."
        )
    return path


def config_from(kind: Any, name: Any, settings: Mapping[str, Any]) -> Any:
    """The configuration of an encoder, a dataclass, from settings by name. ConfigurationError for an unknown one."""
    known = {field.name for field in fields(kind)}
    given = {setting: value for setting, value in settings.items() if setting != "encoder"}
    if unknown := sorted(set(given) - known):
        raise ConfigurationError(
            f"Unknown setting {unknown[0]!r} for the {name} encoder: expected some of {', '.join(sorted(known))}."
        )
    return kind(**given)


# Weights


@dataclass(frozen=True, eq=False)
class WeightsFile:
    """A file of weights whose header was read: the configuration, and the types and shapes of the weights."""

    path: Path
    settings: dict[str, Any]
    header: dict[str, Any]

    @property
    def extra(self) -> dict[str, Any]:
        extra = self.settings.get("extra", {})
        return extra if isinstance(extra, dict) else {}

    def built(self, build: Any) -> Any:
        """Build from the settings of the model; CheckpointError if they do not make sense."""
        try:
            return build(self.settings["model"])
        except (ConfigurationError, TypeError) as error:
            raise CheckpointError(f"{self.path} describes a model that cannot be built: {error}") from error

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each weight."""
        return {name: tuple(entry["shape"]) for name, entry in self.header.items() if name != "__metadata__"}

    def weights(self) -> dict[str, NDArray[Any]]:
        """All weights, at least in float32. CheckpointError if any byte was changed, or a weight is not finite."""
        from safetensors import SafetensorError, deserialize

        try:
            entries = dict(deserialize(read_bytes(self.path)))  # type: ignore[no-untyped-call]
            stored = {name: (entry["dtype"], list(entry["shape"]), entry["data"]) for name, entry in entries.items()}
            weights = {name: _widened(*parts) for name, parts in stored.items()}
        except (SafetensorError, KeyError, ValueError) as error:
            raise _not_safetensors(self.path, error) from error
        metadata = self.header.get("__metadata__", {})
        if "config" in metadata and metadata.get("checksum") != checksum(metadata["config"], stored):
            raise CheckpointError(
                f"{self.path} is damaged: its checksum does not match its content. Copy or download it again."
            )
        check_finite(weights, str(self.path))
        return weights


def check_shapes(
    found: Mapping[str, tuple[int, ...]], expected: Iterable[tuple[str, tuple[int, ...]]], origin: Path
) -> None:
    """CheckpointError unless the weights have the names and shapes expected. Stops at the first that differs."""

    def unfit(name: str, right: Any, wrong: Any) -> CheckpointError:
        return CheckpointError(
            f"The weights in {origin} do not fit its configuration: expected {name} to be {right}, got {wrong}."
        )

    beyond = dict(found)
    for name, shape in expected:
        if beyond.pop(name, None) != shape:
            raise unfit(name, shape, found.get(name, "nothing"))
    for name, shape in beyond.items():
        raise unfit(name, "absent", shape)


def _widened(dtype: str, shape: list[int], content: bytes) -> NDArray[Any]:
    """The numbers of a weight, half precision in float32; bfloat16 is the first half of that."""
    numbers: NDArray[Any] = np.frombuffer(content, DTYPES[dtype][1]).reshape(shape)
    if dtype == "BF16":
        return (numbers.astype(np.uint32) << 16).view(np.float32)
    return numbers.astype(np.float32 if dtype == "F16" else numbers.dtype)


def checksum(config_text: str, weights: Mapping[str, tuple[str, list[int], bytes]]) -> str:
    """A number that changes with any byte of the configuration or the weights (type, shape, bytes), in hexadecimal."""
    number = zlib.crc32(config_text.encode())
    for name, (dtype, shape, content) in sorted(weights.items()):
        number = zlib.crc32(f"{name} torch.{DTYPES[dtype][0]} {shape}".encode(), number)
        number = zlib.crc32(content, number)
    return f"{number:08x}"


def check_finite(weights: Mapping[str, NDArray[Any]], origin: str) -> None:
    """CheckpointError if a weight is not finite."""
    for name, weight in weights.items():
        if not np.isfinite(weight).all():
            raise CheckpointError(f"The weights {name} of {origin} are not finite: such a model can only answer NaN.")


def read_file(path: Path) -> WeightsFile:
    """The configuration and the header of a model: a folder, or a file whose configuration may be in `config.json`."""
    if path.is_dir():
        if not (path / WEIGHTS_FILE).is_file():
            found = ", ".join(sorted(entry.name for entry in path.iterdir())[:8]) or "nothing"
            raise CheckpointError(
                f"{path} is not a model: expected {WEIGHTS_FILE} and {CONFIG_FILE} in it, found {found}."
            )
        if (path / CONFIG_FILE).exists():
            # It may be one save older than the weights, never unreadable: that would be damage worth reporting.
            _settings_of(read_bytes(path / CONFIG_FILE), path / CONFIG_FILE)
        path = path / WEIGHTS_FILE
    header = _read_header(path)
    metadata = header.get("__metadata__", {})
    if "config" in metadata:
        return WeightsFile(path, _settings_of(metadata["config"], path), header)
    if "checksum" in metadata:
        raise CheckpointError(f"{path} is damaged: it has a checksum and no configuration. Copy it again.")
    beside = path.with_name(CONFIG_FILE)
    if not beside.is_file():
        raise CheckpointError(
            f"{path} holds no causal-arrow configuration and there is no {CONFIG_FILE} next to it: "
            "is it a model of another program?"
        )
    return WeightsFile(path, _settings_of(read_bytes(beside), beside), header)


def is_torch_file(path: Path) -> bool:
    """Whether the file begins as torch.save begins one: a zip archive, or a bare pickle in its old format."""
    if path.is_dir():
        return False
    start = read_bytes(path, 9)
    # The ninth byte of a safetensors file opens its header; the eight before it are a length and may be anything.
    return start[8:9] != b"{" and start.startswith((b"PK", b"\x80"))


def _read_header(path: Path) -> dict[str, Any]:
    """The header of a safetensors file: the type and shape of each weight, and metadata."""
    try:
        check_regular(path)
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            text = file.read(length) if length <= MAX_HEADER_BYTES else b""
        if len(text) < length:
            raise ValueError("its header is cut off")
        header = parse_json(text)
        if not isinstance(header, dict) or not isinstance(header.get("__metadata__", {}), dict):
            raise ValueError("its header is not one")
        for name, entry in header.items():
            if name != "__metadata__" and not all(type(size) is int for size in entry["shape"]):
                raise ValueError(f"{name} has no shape")
    except OSError as error:
        raise CheckpointError(f"Cannot read {path}: {error.strerror}.") from error
    except (KeyError, TypeError, ValueError) as error:
        raise _not_safetensors(path, error) from error
    return header


def _not_safetensors(origin: Path, error: Exception) -> CheckpointError:
    return CheckpointError(
        f"{origin} is damaged, cut off or not a safetensors file ({error}). Copy or download it again."
    )


# Configurations


def _settings_of(text: str | bytes, origin: Path) -> dict[str, Any]:
    """The settings in a configuration, checked for its format and version."""
    settings = read_json(text, "causal-arrow-model", origin)
    if not isinstance(settings.get("model"), dict):
        raise CheckpointError(f"{origin} is damaged: its configuration has no settings under 'model'.")
    return settings


def read_json(content: str | bytes, expected_format: str, origin: Path, finite: bool = True) -> dict[str, Any]:
    """The JSON object in `content`, which must be of `expected_format` and of a version we know."""
    try:
        settings = parse_json(content, finite)
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"{origin} is damaged: its JSON cannot be read ({error}).") from error
    if not isinstance(settings, dict) or settings.get("format") != expected_format:
        raise CheckpointError(f"{origin} belongs to another program: expected the format {expected_format!r} in it.")
    version = settings.get("format_version")
    if type(version) is not int or version < 1:
        raise CheckpointError(f"{origin} is damaged: its format version is {version!r}.")
    if version > FORMAT_VERSION:
        raise CheckpointError(
            f"{origin} was written by a newer causal-arrow ({settings.get('package_version')}, format {version}); "
            f"this one ({__version__}) reads formats up to {FORMAT_VERSION}. Upgrade causal-arrow."
        )
    return settings


def read_bytes(path: Path, count: int = -1) -> bytes:
    """The content of a file, or its first bytes; CheckpointError if it cannot be read."""
    try:
        check_regular(path)
        with path.open("rb") as file:
            return file.read(count)
    except OSError as error:
        raise CheckpointError(f"Cannot read {path}: {error.strerror}.") from error
