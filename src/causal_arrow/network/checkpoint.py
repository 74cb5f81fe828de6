"""Models and training state on disk: safetensors and JSON, checked when read, whole when written.

A model is a folder as Hugging Face lays it out, so that publishing is a copy:

    model.safetensors   the weights; its header also holds the configuration, so this file alone is a model
    config.json         the same configuration, for people and the hub

The configuration inside `model.safetensors` decides: two files cannot be replaced in one instant, one file can.
A training state is `state.json` and the shards it lists; shards it does not list are what an interrupted save left.
No pickle is ever run: published ArrowFM files go through `torch.load(weights_only=True)`.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
import warnings
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor, nn
from torch.nn.modules.module import register_module_parameter_registration_hook

from causal_arrow._version import __version__
from causal_arrow.errors import CheckpointError, ConfigurationError
from causal_arrow.network.bundled import bundled_models
from causal_arrow.network.devices import resolve_device
from causal_arrow.network.encoders.paper import from_arrowfm
from causal_arrow.network.model import ArrowConfig, ArrowModel
from causal_arrow.text import shown

FORMAT_VERSION = 1
CONFIG_FILE, WEIGHTS_FILE, STATE_FILE = "config.json", "model.safetensors", "state.json"
STORAGE_DTYPES = (torch.float32, torch.bfloat16, torch.float16)
SHARD_BYTES = 16_000_000
MOST_HEADER_BYTES = 100_000_000  # safetensors' own limit


class ModelFile(NamedTuple):
    """What a file of weights holds."""

    config: ArrowConfig
    weights: dict[str, Tensor]
    extra: dict[str, Any]


# ------------------------------------------------------------------------------------------------------------ models


def save_model(
    model: ArrowModel,
    directory: str | Path,
    extra: Mapping[str, Any] | None = None,
    dtype: torch.dtype = torch.float32,
) -> None:
    """Write a model to a folder. A kill at any moment leaves a model that loads: the one that was there, or this one.

    Parameters
    ----------
    model
        The network.
    directory
        The folder, made if it is not there.
    extra
        What else to keep in the configuration, such as how it was trained: anything that JSON can hold.
    dtype
        The type that weights are rounded to.

    Examples
    --------
    >>> from causal_arrow import load_model, save_model
    >>> save_model(load_model("arrow-base"), "my-model", extra={"note": "a copy"})
    >>> load_model("my-model").extra["note"]
    'a copy'
    """
    if dtype not in STORAGE_DTYPES:
        raise ConfigurationError(f"Weights are stored as one of {STORAGE_DTYPES}, got {dtype}.")
    weights = {
        name: tensor.detach().to("cpu", dtype if tensor.is_floating_point() else None, copy=True).contiguous()
        for name, tensor in model.state_dict().items()
    }
    _check_finite(weights, f"the model as {dtype}")
    config = {
        "format": "causal-arrow-model",
        "format_version": FORMAT_VERSION,
        "package_version": __version__,
        "model": model.config.to_dict(),
        "parameters": model.parameter_count(),
        "dtype": str(dtype).removeprefix("torch."),
        "extra": dict(extra or {}),
    }
    try:
        config_text = json.dumps(config, indent=2, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"`extra` must be what JSON can hold: {error}.") from error
    metadata = {"format": "pt", "config": config_text, "checksum": _checksum(config_text, weights)}
    directory = make_folder(directory)
    replace_file(directory / WEIGHTS_FILE, safetensors.torch.save(weights, metadata))
    replace_file(directory / CONFIG_FILE, config_text.encode())


def load_model(source: str | Path, device: str | torch.device = "cpu") -> ArrowModel:
    """A model in float32, ready for inference.

    Parameters
    ----------
    source
        The name of a bundled model, a folder written by `save_model`, its `.safetensors` file alone, or a file
        published for ArrowFM. A folder that has the name of a bundled model is reached as `./name`.
    device
        Where to put it: "cpu", "cuda", "cuda:1".

    Returns
    -------
    ArrowModel
        Its `extra` is what it was saved with.

    Examples
    --------
    >>> from causal_arrow import load_model
    >>> load_model("arrow-base").config.encoder.confounding_head
    True
    """
    path = find_model(source)
    place = resolve_device(device)
    if path.is_dir():
        file = _read_model_folder(path)
    elif _is_torch_file(path):
        file = _read_arrowfm_file(path)
    else:
        file = _read_model_file(path)
    model = _build(file, path).to(place).eval()
    model.extra = file.extra
    return model


def read_extra(source: str | Path) -> dict[str, Any]:
    """The `extra` that the model of `source` was saved with; empty for a file of another program. Reads no weights."""
    path = find_model(source)
    path = path / WEIGHTS_FILE if path.is_dir() else path
    if _is_torch_file(path):
        return {}
    metadata = _read_metadata(path)
    return _extra_of(_parse_config(metadata["config"], path)) if "config" in metadata else {}


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


def _read_model_folder(folder: Path) -> ModelFile:
    if not (folder / WEIGHTS_FILE).is_file():
        found = ", ".join(sorted(entry.name for entry in folder.iterdir())[:8]) or "nothing"
        raise CheckpointError(f"{folder} is no model: expected {WEIGHTS_FILE} and {CONFIG_FILE} in it, found {found}.")
    if (folder / CONFIG_FILE).exists():
        # It may be one save older than the weights, never unreadable: that would be damage worth hearing of.
        config_path = folder / CONFIG_FILE
        _model_config(_parse_config(_read_bytes(config_path), config_path), config_path)
    return _read_model_file(folder / WEIGHTS_FILE)


def _read_model_file(path: Path) -> ModelFile:
    """Configuration and weights of a safetensors file, which may leave the configuration to `config.json` beside it."""
    weights, metadata = _parse_safetensors(_read_bytes(path), path)
    if "config" not in metadata:
        if "checksum" in metadata:
            raise CheckpointError(f"{path} is damaged: it has a checksum and no configuration. Copy it again.")
        if not path.with_name(CONFIG_FILE).is_file():
            raise CheckpointError(
                f"{path} holds no causal-arrow configuration and there is no {CONFIG_FILE} beside it: "
                "is it a model of another program?"
            )
        beside = path.with_name(CONFIG_FILE)
        settings = _parse_config(_read_bytes(beside), beside)
        return ModelFile(_model_config(settings, beside), weights, _extra_of(settings))
    settings = _parse_config(metadata["config"], path)
    config = _model_config(settings, path)
    if metadata.get("checksum") != _checksum(metadata["config"], weights):
        raise CheckpointError(f"{path} is damaged: its checksum does not match its content. Copy or download it again.")
    return ModelFile(config, weights, _extra_of(settings))


def _extra_of(settings: Mapping[str, Any]) -> dict[str, Any]:
    extra = settings.get("extra", {})
    return extra if isinstance(extra, dict) else {}


def _read_arrowfm_file(path: Path) -> ModelFile:
    """Configuration and weights of an ArrowFM file, `{'config': {'model': ...}, 'model_state_dict': ...}`."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of torch, about formats that it refuses right after
            content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a damaged file can raise nearly anything in there; torch's own words advise to run it
        raise CheckpointError(f"{path} is damaged, or holds more than tensors and numbers, and is not read.") from error
    try:
        config, weights = from_arrowfm(content["config"]["model"], content["model_state_dict"])
        if foreign := next((name for name, weight in weights.items() if not isinstance(weight, Tensor)), None):
            raise TypeError(f"{foreign} is no tensor")
    except ConfigurationError as error:
        raise CheckpointError(f"{path} describes a model that cannot be built: {error}") from error
    except (LookupError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        raise CheckpointError(
            f"{path} is a torch file, but not one of ArrowFM ({type(error).__name__}: {error}). Expected "
            "{'config': {'model': sizes}, 'model_state_dict': weights}."
        ) from error
    return ModelFile(ArrowConfig(config), {f"encoder.{name}": tensor for name, tensor in weights.items()}, {})


def _is_torch_file(path: Path) -> bool:
    """Whether the file begins as torch.save begins one: a zip archive, or a bare pickle in its old format."""
    start = _read_bytes(path, most=9)
    # The ninth byte of a safetensors file opens its header; the eight before it are a length and may be anything.
    return start[8:9] != b"{" and start.startswith((b"PK", b"\x80"))


def _parse_config(text: str | bytes, origin: Path) -> dict[str, Any]:
    """What a configuration says, checked for its format and version."""
    settings = _parse_json(text, "causal-arrow-model", origin)
    if not isinstance(settings.get("model"), dict):
        raise CheckpointError(f"{origin} is damaged: its configuration has no settings under 'model'.")
    return settings


def _model_config(settings: Mapping[str, Any], origin: Path) -> ArrowConfig:
    try:
        return ArrowConfig.from_dict(settings["model"])
    except (ConfigurationError, TypeError) as error:
        raise CheckpointError(f"{origin} describes a model that cannot be built: {error}") from error


def _build(file: ModelFile, origin: Path) -> ArrowModel:
    """The model with these weights, which must be its own by name and shape."""
    _check_fit(file, origin)
    # The starting values are drawn and thrown away; that must not move the caller's random stream.
    with torch.random.fork_rng(devices=[]):
        model = ArrowModel(file.config)
    model.load_state_dict(file.weights)
    _check_finite(model.state_dict(), str(origin))
    return model


def _check_fit(file: ModelFile, origin: Path) -> None:
    """CheckpointError unless the weights are those of the configuration, whose sizes may be absurd."""
    try:
        with torch.device("meta"), _at_most(file.weights):  # which takes no memory and no time
            expected = {name: tuple(tensor.shape) for name, tensor in ArrowModel(file.config).state_dict().items()}
    except (RuntimeError, MemoryError, OverflowError, TypeError) as error:
        raise CheckpointError(f"{origin} describes a model that cannot be built: {error}") from error
    found = {name: tuple(tensor.shape) for name, tensor in file.weights.items()}
    for name in sorted(expected.keys() | found.keys()):
        if expected.get(name) != found.get(name):
            raise CheckpointError(
                f"The weights in {origin} do not fit its configuration: expected {name} to be "
                f"{expected.get(name, 'absent')}, got {found.get(name, 'nothing')}."
            )


@contextlib.contextmanager
def _at_most(weights: Mapping[str, Tensor]) -> Iterator[None]:
    """Inside, building a model with many more parameters than there are weights ends early with a RuntimeError."""
    builder = threading.get_ident()
    room = 4 * len(weights) + 1000

    def count(module: nn.Module, name: str, parameter: nn.Parameter | None) -> None:
        nonlocal room
        if threading.get_ident() == builder and parameter is not None:
            room -= 1
            if room < 0:
                raise RuntimeError("it has many times more weights than the file")

    hook = register_module_parameter_registration_hook(count)
    try:
        yield
    finally:
        hook.remove()


def _check_finite(weights: Mapping[str, Tensor], origin: str) -> None:
    for name, tensor in weights.items():
        if not bool(torch.isfinite(tensor).all()):
            raise CheckpointError(f"The weights {name} of {origin} are not finite: such a model can only answer NaN.")


def _checksum(config_text: str, weights: Mapping[str, Tensor]) -> str:
    """A number that changes with any byte of the configuration or the weights, in hexadecimal."""
    checksum = zlib.crc32(config_text.encode())
    for name, tensor in sorted(weights.items()):
        checksum = zlib.crc32(f"{name} {tensor.dtype} {list(tensor.shape)}".encode(), checksum)
        checksum = zlib.crc32(tensor.reshape(-1).view(torch.uint8).numpy().data, checksum)
    return f"{checksum:08x}"


# ---------------------------------------------------------------------------------------------------- training state


def save_state(
    directory: str | Path, tensors: Mapping[str, Tensor], scalars: Mapping[str, Any], shard_bytes: int = SHARD_BYTES
) -> None:
    """Write a training state, tensors bit by bit and `scalars` as JSON, in files of at most `shard_bytes`.

    A kill at any moment leaves a state that loads: the one that was there before, or this one.
    """
    try:
        scalars = json.loads(json.dumps(dict(scalars)))
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"The scalars of a training state must be what JSON can hold: {error}.") from error
    directory = make_folder(directory)
    # Names no file has yet: the shards of the present state stay untouched until `state.json` lets go of them.
    numbers = [int(path.name.split("-")[1]) for path in directory.glob("state-[0-9]*-[0-9]*.safetensors")]
    save_number = max(numbers, default=0) + 1
    shards: dict[str, int] = {}
    try:
        for pieces in _in_shards(tensors, shard_bytes):
            file_name = f"state-{save_number:06d}-{len(shards):04d}.safetensors"
            content = safetensors.torch.save(pieces)
            shards[file_name] = zlib.crc32(content)
            _write_through(directory / file_name, content)
    except BaseException:
        for file_name in shards:  # a full disk must not fill further with every attempt
            (directory / file_name).unlink(missing_ok=True)
        raise
    _sync_folder(directory)
    index = {
        "format": "causal-arrow-state",
        "format_version": FORMAT_VERSION,
        "package_version": __version__,
        "shards": shards,
        "shapes": {name: list(tensor.shape) for name, tensor in tensors.items()},
        "scalars": scalars,
    }
    index["checksum"] = zlib.crc32(json.dumps(index).encode())
    replace_file(directory / STATE_FILE, json.dumps(index).encode())
    for path in directory.glob("state-*.safetensors"):
        if path.name not in shards:
            path.unlink()


def load_state(directory: str | Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors, on the CPU, and the scalars that `save_state` last wrote whole."""
    directory = Path(directory)
    index_path = directory / STATE_FILE
    if not index_path.is_file():
        raise CheckpointError(f"No training state in {directory}: expected {STATE_FILE} and the files it lists.")
    index = _parse_json(_read_bytes(index_path), "causal-arrow-state", index_path)
    if index.pop("checksum", None) != zlib.crc32(json.dumps(index).encode()):
        raise CheckpointError(f"{index_path} is damaged: its checksum does not match its content.")
    pieces: dict[str, list[Tensor]] = {name: [] for name in index["shapes"]}
    for file_name, checksum in index["shards"].items():
        content = _read_bytes(directory / file_name)
        if zlib.crc32(content) != checksum:
            raise CheckpointError(f"{directory / file_name} is damaged: its checksum does not match {STATE_FILE}.")
        for piece_name, piece in _parse_safetensors(content, directory / file_name)[0].items():
            pieces[piece_name.rpartition("#")[0]].append(piece)
    tensors = {name: torch.cat(parts).reshape(index["shapes"][name]) for name, parts in pieces.items()}
    return tensors, index["scalars"]


def _in_shards(tensors: Mapping[str, Tensor], shard_bytes: int) -> Iterator[dict[str, Tensor]]:
    """The tensors as flat pieces, shard after shard filled to the brim; `name#k` is the k-th piece of `name`."""
    shard: dict[str, Tensor] = {}
    empty_room = room = shard_bytes - 64  # what a safetensors file needs around its entries
    for name, tensor in tensors.items():
        entry_bytes = len(json.dumps(name)) + 128  # of the header, for each piece
        rest = tensor.detach().reshape(-1)
        if empty_room < entry_bytes + rest.element_size():
            raise ConfigurationError(f"Shards of {shard_bytes} bytes are too small to hold a piece of {name!r}.")
        piece_number = 0
        while piece_number == 0 or rest.numel():
            fitting = (room - entry_bytes) // rest.element_size()
            if fitting < 1:
                yield shard
                shard, room = {}, empty_room
                continue
            piece, rest = rest[:fitting], rest[fitting:]
            # A copy: safetensors refuses tensors that share memory, as tied weights do.
            shard[f"{name}#{piece_number}"] = piece.to("cpu", copy=True)
            room -= entry_bytes + piece.numel() * piece.element_size()
            piece_number += 1
    if shard:
        yield shard


# ------------------------------------------------------------------------------------------------------------- files


def make_folder(directory: str | Path) -> Path:
    """The folder, made if it is not there; CheckpointError if it cannot be."""
    directory = Path(directory)
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CheckpointError(f"Cannot make the folder {directory}: {error.strerror}.") from error
    return directory


def _write_through(path: Path, content: bytes) -> None:
    """Write `content` and wait until it is on the disk."""
    try:
        with path.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        path.unlink(missing_ok=True)
        raise CheckpointError(f"Cannot write {path}: {error.strerror}.") from error


def replace_file(path: Path, content: bytes, part: Path | None = None) -> None:
    """Give `path` this content in one step: at any moment it is the old file or the new one, whole.

    It is written to `part` first, on the same file system; beside the file by default.
    """
    part = part or path.with_name(f"{path.name}.part")
    _write_through(part, content)
    os.replace(part, path)
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Wait until the names of the files in `folder` are on the disk; only POSIX systems can be asked."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _read_bytes(path: Path, most: int = -1) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(most)
    except OSError as error:
        raise CheckpointError(f"Cannot read {path}: {error.strerror}.") from error


def _parse_safetensors(content: bytes, origin: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Tensors and metadata of a safetensors file."""
    try:
        tensors = safetensors.torch.load(content)
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    except (SafetensorError, KeyError, ValueError, RuntimeError, AssertionError) as error:
        raise _not_safetensors(origin, error) from error
    return tensors, header.get("__metadata__", {})


def _read_metadata(path: Path) -> dict[str, str]:
    """The metadata of a safetensors file, from its header alone."""
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(length)) if length <= MOST_HEADER_BYTES else None
        if not isinstance(header, dict) or not isinstance(header.get("__metadata__", {}), dict):
            raise ValueError("its header is not one")
    except OSError as error:
        raise CheckpointError(f"Cannot read {path}: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise _not_safetensors(path, error) from error
    metadata: dict[str, str] = header.get("__metadata__", {})
    return metadata


def _not_safetensors(origin: Path, error: Exception) -> CheckpointError:
    return CheckpointError(
        f"{origin} is damaged, cut off or not a safetensors file ({error}). Copy or download it again."
    )


def _parse_json(content: str | bytes, expected_format: str, origin: Path) -> dict[str, Any]:
    """The JSON object in `content`, which must be of `expected_format` and of a version we know."""
    try:
        settings = json.loads(content)
    except (ValueError, RecursionError) as error:
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
