"""Laws of files of weights: a whole one gives its network, anything else is one clear error, torch stays in the lab."""

from __future__ import annotations

import dataclasses
import json
import random
import shutil
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

import broken_models
import causal_arrow
from causal_arrow import Arrow, load_model, network
from causal_arrow._version import __version__
from causal_arrow.errors import ArrowError, CheckpointError, ConfigurationError
from causal_arrow.network import bundled_models, checkpoint
from causal_arrow.network.checkpoint import read_extra
from causal_arrow.network.pairwise import PairwiseNetwork
from small_network import SMALL, random_network, random_weights, save_network, write_model

Weights = dict[str, np.ndarray]


def same_weights(one: PairwiseNetwork, other: PairwiseNetwork) -> bool:
    return one.weights.keys() == other.weights.keys() and all(
        np.array_equal(one.weights[name], other.weights[name]) for name in one.weights
    )


def rewrite(folder: Path, change: Callable[[Weights, dict[str, Any]], Any]) -> None:
    """Change weights or configuration of a model and sign it anew, as another version of the program would."""
    weights = dict(safetensors.numpy.load_file(folder / "model.safetensors"))
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    change(weights, config)
    write_model(folder, weights, config)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A folder with a healthy model in it."""
    save_network(random_network(), tmp_path / "saved", extra={"steps": 7})
    return tmp_path / "saved"


@pytest.fixture
def no_lab(monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation without causal-arrow-lab."""
    monkeypatch.setitem(sys.modules, "causal_arrow_lab", None)


# Models that load


def test_a_saved_model_comes_back_bit_by_bit(saved: Path) -> None:
    loaded = load_model(saved)
    assert loaded.config == SMALL
    assert loaded.extra == {"steps": 7}
    assert same_weights(loaded, random_network())


def test_the_weights_file_alone_is_a_model(saved: Path, tmp_path: Path) -> None:
    shutil.copy(saved / "model.safetensors", tmp_path / "anything.safetensors")
    for path in (tmp_path / "anything.safetensors", str(tmp_path / "anything.safetensors")):
        assert same_weights(load_model(path), random_network())


def test_weights_without_configuration_take_the_one_next_to_them(saved: Path) -> None:
    weights = safetensors.numpy.load_file(saved / "model.safetensors")
    (saved / "model.safetensors").write_bytes(safetensors.numpy.save(weights))
    assert same_weights(load_model(saved / "model.safetensors"), random_network())
    assert same_weights(load_model(saved), random_network())


@pytest.mark.parametrize("dtype", ["F16", "BF16"])
def test_compact_files_hold_the_rounded_weights(saved: Path, dtype: str) -> None:
    given = safetensors.numpy.load_file(saved / "model.safetensors")
    if dtype == "F16":
        rounded = {name: weight.astype(np.float16) for name, weight in given.items()}
        expected = {name: weight.astype(np.float32) for name, weight in rounded.items()}
    else:  # numpy has no bfloat16: the upper halves of float32, cut off
        rounded = {name: (weight.view(np.uint32) >> 16).astype(np.uint16) for name, weight in given.items()}
        expected = {name: (weight.view(np.uint32) & 0xFFFF0000).view(np.float32) for name, weight in given.items()}
    header, content = {}, b""
    for name, weight in rounded.items():
        offsets = [len(content), len(content) + weight.nbytes]
        header[name] = {"dtype": dtype, "shape": weight.shape, "data_offsets": offsets}
        content += weight.tobytes()
    start = json.dumps(header).encode()
    content = len(start).to_bytes(8, "little") + start + content
    (saved / "model.safetensors").write_bytes(content)
    loaded = load_model(saved)
    assert all(np.array_equal(loaded.weights[name.removeprefix("encoder.")], expected[name]) for name in expected)


def test_a_bundled_model_is_found_by_name(saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(saved, tmp_path / "weights" / "arrow-tiny")
    monkeypatch.setattr(network, "BUNDLED_FOLDER", tmp_path / "weights")
    assert bundled_models() == {"arrow-tiny": tmp_path / "weights" / "arrow-tiny"}
    assert same_weights(load_model("arrow-tiny"), random_network())
    with pytest.raises(CheckpointError, match=r"arrow-huge.*bundled model \(arrow-tiny\)"):
        load_model("arrow-huge")


@pytest.mark.parametrize("name", bundled_models())
def test_bundled_files_have_the_weights_that_their_configuration_lists(name: str) -> None:
    loaded = load_model(name)
    assert {key: weight.shape for key, weight in loaded.weights.items()} == dict(loaded.config.weights())


# Models that do not


def edit_both(change: Callable[[Weights, dict[str, Any]], Any]) -> Callable[[Path], Any]:
    return lambda folder: rewrite(folder, change)


def edit_model(**settings: Any) -> Callable[[Path], Any]:
    return edit_both(lambda _, config: config["model"].update(settings))


def spoil(weights: Weights, _: Any) -> None:
    weights["encoder.pair_embedding.bias"] = np.full_like(weights["encoder.pair_embedding.bias"], np.nan)


BROKEN_FOLDERS: dict[str, tuple[Callable[[Path], Any], str]] = {
    **broken_models.BROKEN_FOLDERS,
    "no format version": (edit_both(lambda _, config: config.pop("format_version")), "format version is None"),
    "newer weights": (edit_both(lambda _, config: config.update(format_version=2)), "newer causal-arrow.*Upgrade"),
    "no settings": (edit_both(lambda _, config: config.pop("model")), "no settings"),
    "unknown setting": (edit_model(depth=3), "Unknown setting 'depth'"),
    "a size that is text": (edit_model(pair_width="8"), "pair_width"),
    "an unknown channel": (edit_model(channels=["values", "colours"]), "Unknown name 'colours' in channels"),
    "fewer channels": (edit_model(channels=["values"]), "do not fit"),
    "statistics that are no list": (edit_model(statistics=5), "for statistics, got 5"),
    "stages without end": (edit_model(stages=10**9), "do not fit"),
    "rounds without end": (edit_model(rounds=10**9), "at most 64 for rounds"),
    "sizes beyond any memory": (edit_model(pair_width=2**62), "do not fit"),
    "other sizes": (edit_model(outer_width=8), "do not fit"),
    "a weight too few": (
        edit_both(lambda weights, _: weights.pop("encoder.pair_embedding.bias")),
        "pair_embedding.bias.*nothing",
    ),
    "a weight too many": (
        edit_both(lambda weights, _: weights.update(more=np.zeros(1, dtype=np.float32))),
        "more to be absent",
    ),
    "NaN in a weight": (edit_both(spoil), "not finite"),
}


@pytest.mark.parametrize("name", BROKEN_FOLDERS)
def test_a_broken_model_is_one_clear_error(saved: Path, name: str) -> None:
    breakage, reason = BROKEN_FOLDERS[name]
    breakage(saved)
    began = time.perf_counter()
    with pytest.raises(CheckpointError, match=reason):
        load_model(saved)
    assert time.perf_counter() - began < 5


@pytest.mark.parametrize("source", [5, None, 1.5, b"arrow-base", ["arrow-base"], True])
def test_a_model_that_is_no_name_is_one_clear_error(source: object) -> None:
    for read in (load_model, read_extra):
        with pytest.raises(ArrowError, match=r"Expected (the name of a bundled model|source to be text or a path)"):
            read(source)  # type: ignore[arg-type]


@pytest.mark.parametrize("source", ["", "a\0b", "x" * 5000, "~nobody-has-this-name/x", "\udce9"])
def test_a_name_that_no_file_can_have_is_one_clear_error(source: str) -> None:
    for read in (load_model, read_extra):
        with pytest.raises(CheckpointError, match="neither a bundled model") as raised:
            read(source)
        assert len(str(raised.value)) < 500


def test_a_file_that_is_no_model_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="neither a bundled model"):
        load_model(tmp_path / "nowhere.safetensors")
    (tmp_path / "text.safetensors").write_text("not a model at all, but long enough to look at")
    with pytest.raises(CheckpointError, match="not a safetensors file"):
        load_model(tmp_path / "text.safetensors")


def test_a_model_cut_off_anywhere_is_one_clear_error(saved: Path) -> None:
    content = (saved / "model.safetensors").read_bytes()
    for length in (1, 7, 8, 9, 100, len(content) // 2, len(content) - 1):
        (saved / "model.safetensors").write_bytes(content[:length])
        with pytest.raises(CheckpointError, match="cut off"):
            load_model(saved)


def test_a_changed_byte_never_changes_a_model_unnoticed(saved: Path) -> None:
    content = (saved / "model.safetensors").read_bytes()
    header_end = 8 + int.from_bytes(content[:8], "little")
    drawn = random.Random(0)
    positions = [drawn.randrange(len(content)) for _ in range(40)] + [drawn.randrange(header_end) for _ in range(80)]
    for position in positions:
        damaged = bytearray(content)
        damaged[position] ^= 1 << drawn.randrange(8)
        (saved / "model.safetensors").write_bytes(damaged)
        try:
            loaded = load_model(saved / "model.safetensors")
        except CheckpointError:
            continue
        assert position < header_end  # a note in the header that has no say over the model
        assert same_weights(loaded, random_network())


# Records


def test_the_record_of_a_model_is_read_without_its_weights(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the weights were read")

    monkeypatch.setattr(checkpoint.WeightsFile, "weights", refuse)
    assert read_extra(saved) == read_extra(saved / "model.safetensors") == {"steps": 7}


@pytest.mark.parametrize(
    "content",
    [b"", b"12345678", b"\xff" * 8 + b"{}", (2).to_bytes(8, "little") + b"[]", (3).to_bytes(8, "little") + b'{"a'],
)
def test_the_record_of_a_damaged_model_is_one_clear_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "model.safetensors").write_bytes(content)
    with pytest.raises(CheckpointError, match="not a safetensors file"):
        read_extra(tmp_path)


# The lab


@pytest.mark.usefixtures("no_lab")
@pytest.mark.parametrize("device", ["cuda", "cuda:1", "tpu", "", 5, None])
def test_another_device_needs_the_lab(saved: Path, device: Any) -> None:
    expected = (
        r"needs torch: pip install causal-arrow-lab\.$" if isinstance(device, str) else "Expected device to be text"
    )
    with pytest.raises(ConfigurationError, match=expected):
        load_model(saved, device)


@pytest.mark.usefixtures("no_lab")
def test_other_encoders_and_files_of_torch_need_the_lab(saved: Path, tmp_path: Path) -> None:
    edit_model(encoder="paper")(saved)
    with pytest.raises(ConfigurationError, match="The encoder 'paper' needs torch"):
        load_model(saved)
    (tmp_path / "arrowfm.pt").write_bytes(b"PK\x03\x04 and so on")
    with pytest.raises(ConfigurationError, match="An ArrowFM file needs torch"):
        load_model(tmp_path / "arrowfm.pt")
    assert read_extra(tmp_path / "arrowfm.pt") == {}


def test_the_lab_must_be_of_the_same_version(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = types.ModuleType("causal_arrow_lab")
    lab.__version__ = "0.0.1"  # type: ignore[attr-defined]
    for name in ("causal_arrow_lab", "causal_arrow_lab.network", "causal_arrow_lab.network.checkpoint"):
        monkeypatch.setitem(sys.modules, name, lab)
    with pytest.raises(ConfigurationError, match=f"needs causal-arrow-lab {__version__}.*found 0.0.1"):
        load_model(saved, "cuda")


def test_bfloat16_is_not_for_processors(saved: Path) -> None:
    table = np.random.default_rng(0).normal(size=(30, 3))
    with pytest.raises(ConfigurationError, match="bfloat16 is for GPUs"):
        Arrow(saved, precision="bfloat16").fit(table)
    with pytest.raises(ConfigurationError, match="Expected precision to be one of auto, float32, bfloat16"):
        load_model(saved, "cpu", "float64")


@pytest.mark.parametrize("name", ["ArrowModel", "ArrowConfig", "save_model", "SkeletonOrder", "TaskDistribution"])
def test_names_that_moved_tell_where_they_are(name: str) -> None:
    told = f"is now causal_arrow_lab.{name}: pip install causal-arrow-lab"
    with pytest.raises(ImportError, match=told):
        getattr(causal_arrow, name)
    with pytest.raises(ImportError, match=told):
        exec(f"from causal_arrow import {name}")


def test_any_sizes_load(tmp_path: Path) -> None:
    config = dataclasses.replace(SMALL, order_head="pooled", pair_blocks=3, stages=2, rounds=3)
    save_network(random_weights(config), tmp_path / "odd")
    assert same_weights(load_model(tmp_path / "odd"), random_weights(config))
