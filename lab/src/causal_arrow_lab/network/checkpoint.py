"""Models and training states on disk: safetensors and JSON, whole when written, checked when read.

`causal_arrow.network.checkpoint` describes the files of a model. A training state is `state.json` and the shards it
lists; others are what an interrupted save left. No pickle is ever run.
"""

from __future__ import annotations

import contextlib
import json
import threading
import warnings
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor, nn
from torch.nn.modules.module import register_module_parameter_registration_hook

from causal_arrow._version import __version__
from causal_arrow.errors import CheckpointError, ConfigurationError
from causal_arrow.inputs import is_bomb, is_zip_bomb
from causal_arrow.network.checkpoint import (
    CONFIG_FILE,
    DTYPES,
    FORMAT_VERSION,
    WEIGHTS_FILE,
    check_finite,
    check_shapes,
    checksum,
    find_model,
    is_torch_file,
    read_bytes,
    read_file,
    read_json,
)
from causal_arrow.output import make_folder, replace_file, sync_folder, write_through
from causal_arrow_lab.network.devices import resolve_device
from causal_arrow_lab.network.model import ArrowConfig, ArrowModel
from causal_arrow_lab.network.paper import from_arrowfm

STATE_FILE = "state.json"
STORAGE_DTYPES = (torch.float32, torch.bfloat16, torch.float16)
SHARD_BYTES = 16_000_000


# Models


def save_model(
    model: ArrowModel,
    directory: str | Path,
    extra: Mapping[str, Any] | None = None,
    dtype: torch.dtype = torch.float32,
) -> None:
    """Write a model to a folder. A kill at any moment leaves a model that loads: the one that was there, or this one.

    Parameters
    ----------
    extra
        Anything that JSON can hold, such as how the model was trained; kept with its configuration.
    dtype
        The type that weights are rounded to.

    Examples
    --------
    >>> from causal_arrow_lab import load_model, save_model
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
    check_finite({name: tensor.float().numpy() for name, tensor in weights.items()}, f"the model as {dtype}")
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
    replace_model_file(make_folder(directory) / WEIGHTS_FILE, weights, config_text)
    replace_file(Path(directory) / CONFIG_FILE, config_text.encode())


def replace_model_file(path: Path, weights: Mapping[str, Tensor], config_text: str) -> None:
    """Write a file of weights with its configuration, and the checksum of both."""
    code_of = {getattr(torch, name): code for code, (name, _) in DTYPES.items()}
    stored = {}
    for name, tensor in weights.items():
        content = tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        stored[name] = code_of[tensor.dtype], list(tensor.shape), content
    metadata = {"format": "pt", "config": config_text, "checksum": checksum(config_text, stored)}
    replace_file(path, safetensors.torch.save(dict(weights), metadata))


def load_model(source: str | Path, device: str | torch.device = "cpu") -> ArrowModel:
    """A torch network in float32, ready for inference or more training.

    Parameters
    ----------
    source
        The name of a bundled model, a folder written by `save_model`, its `.safetensors` file alone, or a file
        published for ArrowFM. A folder that has the name of a bundled model is reached as `./name`.
    device
        Such as "cpu" or "cuda:1".

    Examples
    --------
    >>> from causal_arrow_lab import load_model
    >>> load_model("arrow-base").config.encoder.confounding_head
    True
    """
    path, place = find_model(source), resolve_device(device)
    if is_torch_file(path):
        config, weights = _read_arrowfm_file(path)
        _check_fit(config, {name: tuple(weight.shape) for name, weight in weights.items()}, path)
        check_finite({name: weight.float().numpy() for name, weight in weights.items()}, str(path))
        extra = {}
    else:
        file = read_file(path)
        config, extra = file.built(ArrowConfig.from_dict), file.extra
        _check_fit(config, file.shapes(), file.path)
        weights = {name: torch.from_numpy(weight) for name, weight in file.weights().items()}
    # The starting values are drawn and thrown away; that must not move the caller's random stream.
    with torch.random.fork_rng(devices=[]):
        model = ArrowModel(config)
    model.load_state_dict(weights)
    model.extra = extra
    return model.to(place).eval()


def _read_arrowfm_file(path: Path) -> tuple[ArrowConfig, dict[str, Tensor]]:
    """Configuration and weights of an ArrowFM file, `{'config': {'model': ...}, 'model_state_dict': ...}`."""
    with path.open("rb") as file:
        if is_zip_bomb(file, ratio=2):  # torch.save does not compress
            raise CheckpointError(f"{path} is not read: it unpacks to many times its size, and weights do not.")
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
        if is_bomb(path.stat().st_size, sum(weight.numel() * weight.element_size() for weight in weights.values()), 2):
            raise TypeError("its tensors repeat the same numbers")
    except ConfigurationError as error:
        raise CheckpointError(f"{path} describes a model that cannot be built: {error}") from error
    except (LookupError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        raise CheckpointError(
            f"{path} is a torch file, but not one of ArrowFM ({type(error).__name__}: {error}). Expected "
            "{'config': {'model': sizes}, 'model_state_dict': weights}."
        ) from error
    return ArrowConfig(config), {f"encoder.{name}": tensor for name, tensor in weights.items()}


def _check_fit(config: ArrowConfig, found: Mapping[str, tuple[int, ...]], origin: Path) -> None:
    """CheckpointError unless the weights are those of the configuration, whose sizes may be absurd."""
    try:
        with torch.device("meta"), _at_most(len(found)):  # which takes no memory and no time
            expected = {name: tuple(tensor.shape) for name, tensor in ArrowModel(config).state_dict().items()}
    except (RuntimeError, MemoryError, OverflowError, TypeError) as error:
        raise CheckpointError(f"{origin} describes a model that cannot be built: {error}") from error
    check_shapes(found, expected.items(), origin)


@contextlib.contextmanager
def _at_most(weights: int) -> Iterator[None]:
    """Inside, building a model with many more parameters than there are weights ends early with a RuntimeError."""
    builder = threading.get_ident()
    room = 4 * weights + 1000

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


# Training states


def save_state(
    directory: str | Path, tensors: Mapping[str, Tensor], scalars: Mapping[str, Any], shard_bytes: int = SHARD_BYTES
) -> None:
    """Write a training state, tensors bit by bit and `scalars` as JSON, as safely as `save_model`."""
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
            write_through(directory / file_name, content)
    except BaseException:
        for file_name in shards:  # a full disk must not fill further with every attempt
            (directory / file_name).unlink(missing_ok=True)
        raise
    sync_folder(directory)
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
    # A loss may be infinite.
    index = read_json(read_bytes(index_path), "causal-arrow-state", index_path, finite=False)
    if index.pop("checksum", None) != zlib.crc32(json.dumps(index).encode()):
        raise CheckpointError(f"{index_path} is damaged: its checksum does not match its content.")
    pieces: dict[str, list[Tensor]] = {name: [] for name in index["shapes"]}
    for file_name, expected in index["shards"].items():
        content = read_bytes(directory / file_name)
        if zlib.crc32(content) != expected:
            raise CheckpointError(f"{directory / file_name} is damaged: its checksum does not match {STATE_FILE}.")
        try:
            parsed = safetensors.torch.load(content)
        except (SafetensorError, KeyError, ValueError, RuntimeError) as error:
            raise CheckpointError(f"{directory / file_name} is damaged ({error}). Copy it again.") from error
        for piece_name, piece in parsed.items():
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


def load_network(path: Path, device: Any, precision: str) -> ArrowModel:
    """The network in a file, on a device, in a precision."""
    return load_model(path, resolve_device(device)).on("auto", precision)
