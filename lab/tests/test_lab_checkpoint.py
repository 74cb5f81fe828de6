"""Laws of files: what was written comes back, what is not ours or not whole is one clear error, kills lose nothing."""

from __future__ import annotations

import errno
import itertools
import json
import os
import pickle
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from safetensors import safe_open
from torch import Tensor, nn

import broken_models
from causal_arrow.discovery.estimator import Arrow
from causal_arrow.errors import CheckpointError, ConfigurationError
from causal_arrow.graphs.dag import is_acyclic
from causal_arrow.network.basis import standardized
from causal_arrow.network.checkpoint import read_extra
from causal_arrow.network.pairwise import PairwiseConfig
from causal_arrow_lab.network.checkpoint import load_model, load_state, replace_model_file, save_model, save_state
from causal_arrow_lab.network.model import ArrowConfig, ArrowModel
from causal_arrow_lab.network.paper import PaperConfig

PAPER = ArrowConfig(
    PaperConfig(
        width=8,
        observation_blocks=1,
        observation_heads=2,
        variable_blocks=1,
        variable_heads=2,
        context_blocks=1,
        context_heads=2,
        summary_tokens=2,
    )
)
PAIRWISE = ArrowConfig(PairwiseConfig(cell_width=16, pair_width=16, stages=1, pair_blocks=1, mixing_heads=2))


def make_model(config: ArrowConfig = PAPER, seed: int = 0) -> ArrowModel:
    """A model with no weight at its starting value, so that a weight left out or swapped shows."""
    model = ArrowModel(config)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(0.3 * torch.randn(parameter.shape, generator=generator))
    return model.eval()


def tables(tasks: int, observations: int, variables: int) -> Tensor:
    return torch.randn(tasks, observations, variables, generator=torch.Generator().manual_seed(1))


def same_weights(one: nn.Module, other: nn.Module) -> bool:
    first, second = one.state_dict(), other.state_dict()
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def rewrite(path: Path, change: Callable[[dict[str, Tensor], dict[str, Any]], None]) -> None:
    """Change weights or configuration of a model file and sign it anew, as another version of the program would."""
    with safe_open(path, framework="pt") as file:
        config = json.loads(file.metadata()["config"])
        weights = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
    change(weights, config)
    replace_model_file(path, weights, json.dumps(config))


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A folder with a healthy model in it."""
    save_model(make_model(), tmp_path / "saved", extra={"steps": 7})
    return tmp_path / "saved"


# ------------------------------------------------------------------------------------------------ models come back


@pytest.mark.parametrize("config", [PAPER, PAIRWISE], ids=["paper", "pairwise"])
def test_a_saved_model_comes_back_bit_by_bit(tmp_path: Path, config: ArrowConfig) -> None:
    model = make_model(config)
    save_model(model, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert loaded.config == config
    assert same_weights(loaded, model)
    assert not loaded.training
    assert all(parameter.requires_grad for parameter in loaded.parameters())
    data = tables(2, 9, 4)
    found, expected = loaded(data).skeleton_order, model(data).skeleton_order
    assert torch.equal(found.skeleton_logits, expected.skeleton_logits)
    assert torch.equal(found.order_scores, expected.order_scores)


def test_a_model_folder_is_the_hugging_face_layout(saved: Path) -> None:
    assert sorted(path.name for path in saved.iterdir()) == ["config.json", "model.safetensors"]
    config = json.loads((saved / "config.json").read_text())
    assert config["format_version"] == 1
    assert config["model"] == PAPER.to_dict()
    assert config["extra"] == {"steps": 7}
    assert safetensors.torch.load_file(saved / "model.safetensors").keys() == make_model().state_dict().keys()


def test_the_weights_file_alone_is_a_model(saved: Path, tmp_path: Path) -> None:
    shutil.copy(saved / "model.safetensors", tmp_path / "anything.safetensors")
    assert same_weights(load_model(tmp_path / "anything.safetensors"), make_model())
    assert same_weights(load_model(str(tmp_path / "anything.safetensors")), make_model())


def test_weights_without_configuration_take_the_one_beside_them(saved: Path) -> None:
    weights = safetensors.torch.load_file(saved / "model.safetensors")
    (saved / "model.safetensors").write_bytes(safetensors.torch.save(weights))
    assert same_weights(load_model(saved / "model.safetensors"), make_model())
    assert same_weights(load_model(saved), make_model())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_compact_files_hold_the_rounded_weights(tmp_path: Path, dtype: torch.dtype) -> None:
    model = make_model()
    save_model(model, tmp_path, dtype=dtype)
    stored = safetensors.torch.load_file(tmp_path / "model.safetensors")
    assert {tensor.dtype for tensor in stored.values()} == {dtype}
    loaded = load_model(tmp_path).state_dict()
    assert all(torch.equal(loaded[name], weight.to(dtype).float()) for name, weight in model.state_dict().items())


def test_loading_leaves_the_global_random_stream_alone(saved: Path) -> None:
    before = torch.get_rng_state()
    load_model(saved)
    assert torch.equal(torch.get_rng_state(), before)


def test_saving_over_a_model_replaces_it(saved: Path) -> None:
    save_model(make_model(PAIRWISE), saved)
    assert load_model(saved).config == PAIRWISE
    assert sorted(path.name for path in saved.iterdir()) == ["config.json", "model.safetensors"]


# ------------------------------------------------------------------------------------------------------- ArrowFM


class ArrowFMReference(nn.Module):
    """The authors' network from torch's own layers, under their names, as DESIGN and the paper describe it."""

    def __init__(self, sizes: dict[str, Any]) -> None:
        super().__init__()
        width, tokens = sizes["d_model"], sizes["ncls_rows"]

        def layer(kind: type[nn.Module], stage: str) -> nn.Module:
            return kind(
                width,
                sizes[f"nhead_{stage}"],
                4 * width,
                sizes["dropout"],
                activation="gelu",
                batch_first=True,
                norm_first=True,
            )

        self.value_project = nn.Linear(1, width)
        self.row_cls_tokens = nn.Parameter(torch.zeros(1, tokens, width))
        self.col_encoder = nn.TransformerEncoder(
            layer(nn.TransformerEncoderLayer, "cols"), sizes["nlayer_cols"], enable_nested_tensor=False
        )
        self.row_encoder = nn.TransformerDecoder(layer(nn.TransformerDecoderLayer, "rows"), sizes["nlayer_rows"])
        self.col_merge = nn.Linear(tokens * width, width)
        self.node_encoder = nn.TransformerEncoder(
            layer(nn.TransformerEncoderLayer, "nodes"),
            sizes["nlayer_nodes"],
            norm=nn.LayerNorm(width, elementwise_affine=False),
            enable_nested_tensor=False,
        )
        self.order_head = nn.Linear(width, 1)
        self.edge_head = nn.Sequential(nn.Linear(2 * width, 2 * width), nn.GELU(), nn.Linear(2 * width, 1))

    def forward(self, data: Tensor) -> tuple[Tensor, Tensor]:
        cells = torch.stack([self.col_encoder(self.value_project(task.unsqueeze(-1))) for task in data])  # (B, N, P, D)
        summaries = []
        for variable in cells.unbind(2):  # (B, N, D)
            tokens = self.row_encoder(self.row_cls_tokens.repeat(len(data), 1, 1), variable)  # (B, M, D)
            summaries.append(self.col_merge(tokens.flatten(1)))
        embeddings = self.node_encoder(torch.stack(summaries, dim=1))  # (B, P, D)
        first, second = torch.broadcast_tensors(embeddings.unsqueeze(2), embeddings.unsqueeze(1))
        logits = self.edge_head(torch.cat([first, second], dim=-1)).squeeze(-1)
        return (logits + logits.mT) / 2, self.order_head(embeddings).squeeze(-1)


ARROWFM_SIZES = {
    "d_model": 24,
    "nhead_cols": 2,
    "nhead_rows": 3,
    "nhead_nodes": 4,
    "nlayer_cols": 1,
    "nlayer_rows": 3,
    "nlayer_nodes": 2,
    "ncls_rows": 5,
    "dropout": 0.1,
}


def make_arrowfm(path: Path) -> ArrowFMReference:
    """A reference network with random weights, and its file at `path`."""
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        reference = ArrowFMReference(ARROWFM_SIZES).eval()
        for parameter in reference.parameters():  # torch starts the layers of a stage alike, biases at 0, norms at 1
            parameter.add_(0.2 * torch.randn_like(parameter))
    torch.save({"config": {"model": ARROWFM_SIZES}, "model_state_dict": reference.state_dict()}, path)
    return reference


def test_an_arrowfm_file_gives_the_answers_of_the_authors_network(tmp_path: Path) -> None:
    reference = make_arrowfm(tmp_path / "arrowfm.pt")
    model = load_model(tmp_path / "arrowfm.pt")
    data = 3 + 10 * tables(2, 12, 7)
    skeleton_logits, order_scores = reference(standardized(data))
    answer = model(data).skeleton_order
    assert skeleton_logits.std() > 0.1  # the comparison is of something
    torch.testing.assert_close(answer.skeleton_logits, skeleton_logits, atol=1e-5, rtol=0)
    torch.testing.assert_close(answer.order_scores, order_scores, atol=1e-5, rtol=0)


def test_an_arrowfm_file_can_be_kept_as_one_of_ours(tmp_path: Path) -> None:
    make_arrowfm(tmp_path / "arrowfm.pt")
    save_model(load_model(tmp_path / "arrowfm.pt"), tmp_path / "ours")
    assert same_weights(load_model(tmp_path / "ours"), load_model(tmp_path / "arrowfm.pt"))


def test_an_arrow_reads_a_table_with_an_arrowfm_file(tmp_path: Path) -> None:
    make_arrowfm(tmp_path / "arrowfm.pt")
    arrow = Arrow(tmp_path / "arrowfm.pt").fit(tables(1, 60, 4)[0].numpy())
    assert is_acyclic(arrow.answer_.adjacency)


def test_the_papers_sizes_match_the_authors_network_in_every_parameter() -> None:
    sizes = {name: {"nh": 8, "nl": 3}.get(name[:2]) for name in ARROWFM_SIZES}
    reference = ArrowFMReference({**sizes, "d_model": 512, "ncls_rows": 16, "dropout": 0.0})
    ours = ArrowModel(ArrowConfig.paper())
    assert ours.parameter_count() == sum(parameter.numel() for parameter in reference.parameters())


class MakesAFile:
    """A pickle that writes a file when it is run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return Path.touch, (self.path,)


@pytest.mark.parametrize("writer", [torch.save, lambda content, path: path.write_bytes(pickle.dumps(content, 2))])
def test_a_pickle_is_refused_and_never_run(tmp_path: Path, writer: Callable[[Any, Path], None]) -> None:
    writer({"config": {"model": {}}, "model_state_dict": MakesAFile(tmp_path / "it ran")}, tmp_path / "file.pt")
    with pytest.raises(CheckpointError, match=r"file\.pt is damaged, or holds more than tensors"):
        load_model(tmp_path / "file.pt")
    assert not (tmp_path / "it ran").exists()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda file: file.pop("config"), "not one of ArrowFM"),
        (lambda file: file.pop("model_state_dict"), "not one of ArrowFM"),
        (lambda file: file.update(config=3), "not one of ArrowFM"),
        (lambda file: file.update(model_state_dict={"edge_head.0.weight": "text"}), "not one of ArrowFM"),
        (lambda file: file["model_state_dict"].update({"order_head.bias": 3}), "order_head.bias is no tensor"),
        (lambda file: file["config"]["model"].update(nhead_extra=1), "nhead_extra"),
        (lambda file: file["config"]["model"].update(nhead_rows=5), "multiple of the heads"),
        (lambda file: file["config"]["model"].update(nlayer_rows=4), "do not fit"),
        (lambda file: file["model_state_dict"].update({"extra.weight": torch.zeros(1)}), "extra"),
        (lambda file: file["model_state_dict"].pop("col_merge.bias"), "merge.bias.*nothing"),
        (lambda file: file["model_state_dict"].update({"order_head.bias": torch.zeros(2)}), "order_head.bias"),
        (lambda file: file["model_state_dict"].update({"order_head.bias": torch.tensor([torch.nan])}), "not finite"),
    ],
)
def test_a_torch_file_that_is_not_arrowfm_is_one_clear_error(
    tmp_path: Path, change: Callable[[dict[str, Any]], Any], reason: str
) -> None:
    make_arrowfm(tmp_path / "arrowfm.pt")
    content = torch.load(tmp_path / "arrowfm.pt", weights_only=True)
    change(content)
    torch.save(content, tmp_path / "arrowfm.pt")
    with pytest.raises(CheckpointError, match=reason):
        load_model(tmp_path / "arrowfm.pt")


@pytest.mark.parametrize("fraction", [0.001, 0.3, 0.999])
def test_a_truncated_arrowfm_file_is_one_clear_error(tmp_path: Path, fraction: float) -> None:
    make_arrowfm(tmp_path / "arrowfm.pt")
    content = (tmp_path / "arrowfm.pt").read_bytes()
    (tmp_path / "arrowfm.pt").write_bytes(content[: int(fraction * len(content))])
    with pytest.raises(CheckpointError, match="damaged"):
        load_model(tmp_path / "arrowfm.pt")


# ----------------------------------------------------------------------------------------------- models that do not


def edit_both(change: Callable[[dict[str, Tensor], dict[str, Any]], Any]) -> Callable[[Path], Any]:
    return lambda folder: rewrite(folder / "model.safetensors", change)


BROKEN_FOLDERS: dict[str, tuple[Callable[[Path], Any], str]] = {
    **broken_models.BROKEN_FOLDERS,
    "no format version": (edit_both(lambda _, config: config.pop("format_version")), "format version is None"),
    "newer weights": (edit_both(lambda _, config: config.update(format_version=2)), "newer causal-arrow.*Upgrade"),
    "no settings": (edit_both(lambda _, config: config.pop("model")), "no settings"),
    "unknown encoder": (edit_both(lambda _, config: config["model"].update(encoder="oracle")), "Unknown encoder"),
    "unknown setting": (edit_both(lambda _, config: config["model"].update(depth=3)), "Unknown setting 'depth'"),
    "a size that is text": (edit_both(lambda _, config: config["model"].update(width="8")), "width"),
    "other sizes": (edit_both(lambda _, config: config["model"].update(summary_tokens=3)), "do not fit"),
    "sizes beyond any memory": (edit_both(lambda _, config: config["model"].update(width=2**62)), "cannot be built"),
    "blocks without end": (
        edit_both(lambda _, config: config["model"].update(context_blocks=10**9)),
        "cannot be built",
    ),
    "more than a memory holds": (edit_both(lambda _, config: config["model"].update(width=10**6)), "do not fit"),
    "a weight too few": (edit_both(lambda weights, _: weights.pop("encoder.merge.bias")), "merge.bias.*nothing"),
    "a weight too many": (edit_both(lambda weights, _: weights.update(more=torch.zeros(1))), "more to be absent"),
    "NaN in a weight": (edit_both(lambda weights, _: weights["encoder.merge.bias"].fill_(torch.nan)), "not finite"),
}


@pytest.mark.parametrize("name", BROKEN_FOLDERS)
def test_a_broken_model_is_one_clear_error(saved: Path, name: str) -> None:
    breakage, reason = BROKEN_FOLDERS[name]
    breakage(saved)
    with pytest.raises(CheckpointError, match=reason):
        load_model(saved)


def test_absurd_sizes_are_noticed_before_memory_and_time_are_spent(saved: Path) -> None:
    for size in ("context_blocks", "observation_blocks", "width", "summary_tokens"):
        rewrite(saved / "model.safetensors", lambda _, config, size=size: config["model"].update({size: 10**8}))
        began = time.perf_counter()
        with pytest.raises(CheckpointError, match=r"cannot be built|do not fit"):
            load_model(saved)
        assert time.perf_counter() - began < 5
        rewrite(saved / "model.safetensors", lambda _, config: config.update(model=PAPER.to_dict()))
    assert same_weights(load_model(saved), make_model())


def test_a_device_that_is_none_is_one_clear_error(saved: Path) -> None:
    with pytest.raises(ConfigurationError, match="Unknown device 'tpu'"):
        load_model(saved, device="tpu")


def test_a_new_model_has_no_record(tmp_path: Path) -> None:
    assert make_model().extra == {}
    make_arrowfm(tmp_path / "arrowfm.pt")
    assert load_model(tmp_path / "arrowfm.pt").extra == read_extra(tmp_path / "arrowfm.pt") == {}


def test_a_model_cut_off_anywhere_is_one_clear_error(saved: Path) -> None:
    content = (saved / "model.safetensors").read_bytes()
    for length in (1, 7, 8, 9, 100, len(content) // 2, len(content) - 1):
        (saved / "model.safetensors").write_bytes(content[:length])
        with pytest.raises(CheckpointError, match="cut off"):
            load_model(saved)


def test_a_changed_byte_never_changes_a_model_unnoticed(saved: Path) -> None:
    content = (saved / "model.safetensors").read_bytes()
    header_end = 8 + int.from_bytes(content[:8], "little")
    random_numbers = random.Random(0)
    positions = [random_numbers.randrange(len(content)) for _ in range(40)]
    positions += [random_numbers.randrange(header_end) for _ in range(80)]
    for position in positions:
        damaged = bytearray(content)
        damaged[position] ^= 1 << random_numbers.randrange(8)
        (saved / "model.safetensors").write_bytes(damaged)
        try:
            loaded = load_model(saved / "model.safetensors")
        except CheckpointError:
            continue
        assert position < header_end  # a note in the header that has no say over the model
        assert same_weights(loaded, make_model())


def test_a_model_that_cannot_be_written_leaves_the_old_one(saved: Path) -> None:
    broken = make_model(seed=1)
    with torch.no_grad():
        broken.encoder.merge.bias.fill_(torch.nan)
    with pytest.raises(CheckpointError, match="not finite"):
        save_model(broken, saved)
    too_large = make_model(seed=1)
    with torch.no_grad():
        too_large.encoder.merge.bias.fill_(1e5)
    with pytest.raises(CheckpointError, match="float16 are not finite"):
        save_model(too_large, saved, dtype=torch.float16)
    with pytest.raises(CheckpointError, match="JSON"):
        save_model(make_model(seed=1), saved, extra={"set": {1, 2}})
    with pytest.raises(CheckpointError, match="JSON"):
        save_model(make_model(seed=1), saved, extra={"loss": float("nan")})
    with pytest.raises(ConfigurationError, match="float64"):
        save_model(make_model(seed=1), saved, dtype=torch.float64)
    assert same_weights(load_model(saved), make_model(seed=0))


def test_a_folder_that_cannot_be_made_is_one_clear_error(saved: Path) -> None:
    with pytest.raises(CheckpointError, match="Cannot make the folder"):
        save_model(make_model(), saved / "config.json")


# ------------------------------------------------------------------------------------------------- training state


def make_state(seed: int = 0) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    normal = torch.randn(40, 30, generator=generator)
    return {
        "weights/large#1": torch.randn(300, 50, generator=generator),
        "weights/float32": torch.tensor([0.0, -0.0, torch.nan, torch.inf, 1e-45, 1 / 3]),
        "weights/bfloat16": normal.bfloat16(),
        "weights/float16": normal.half(),
        "weights/float64": normal.double() / 3,
        "transposed": normal.T,
        "step": torch.tensor(12345678901),
        "mask": normal > 0,
        "generator": generator.get_state(),
        "empty": torch.zeros(0, 3, dtype=torch.int64),
        "número": torch.arange(5),
    }


def as_bytes(tensor: Tensor) -> bytes:
    return tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


@pytest.mark.parametrize("shard_bytes", [1000, 4096, 16_000_000])
def test_a_training_state_comes_back_bit_by_bit_from_shards_of_any_size(tmp_path: Path, shard_bytes: int) -> None:
    tensors = make_state()
    scalars = {"step": 3, "lr": 0.1 + 0.2, "loss": float("inf"), "name": "läuft", "big": 2**80, "list": [1, None, {}]}
    save_state(tmp_path, tensors, scalars, shard_bytes=shard_bytes)
    loaded, loaded_scalars = load_state(tmp_path)
    assert loaded_scalars == scalars
    assert list(loaded) == list(tensors)
    for name, tensor in tensors.items():
        assert loaded[name].dtype == tensor.dtype
        assert loaded[name].shape == tensor.shape
        assert as_bytes(loaded[name]) == as_bytes(tensor)
    shards = [path for path in tmp_path.iterdir() if path.suffix == ".safetensors"]
    assert all(path.stat().st_size <= shard_bytes for path in shards)
    total = sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())
    assert len(shards) <= 2 + total / (shard_bytes / 2)


def test_weights_that_share_memory_are_both_kept(tmp_path: Path) -> None:
    tensor = torch.arange(4.0)
    save_state(tmp_path, {"one": tensor, "same": tensor, "half": tensor[2:]}, {})
    loaded, _ = load_state(tmp_path)
    assert loaded["one"].tolist() == loaded["same"].tolist() == [0, 1, 2, 3]
    assert loaded["half"].tolist() == [2, 3]


def test_a_state_of_nothing_comes_back(tmp_path: Path) -> None:
    save_state(tmp_path, {}, {})
    assert load_state(tmp_path) == ({}, {})


def test_a_stored_generator_goes_on_where_it_stopped(tmp_path: Path) -> None:
    generator = torch.Generator().manual_seed(3)
    torch.rand(10, generator=generator)
    save_state(tmp_path, {"generator": generator.get_state()}, {})
    resumed = torch.Generator()
    resumed.set_state(load_state(tmp_path)[0]["generator"])
    assert torch.equal(torch.rand(10, generator=resumed), torch.rand(10, generator=generator))


def test_a_new_state_takes_the_place_of_the_old_and_of_what_kills_left(tmp_path: Path) -> None:
    save_state(tmp_path, make_state(0), {"step": 0}, shard_bytes=4096)
    (tmp_path / "state-000007-0000.safetensors").write_bytes(b"left by a kill")
    save_state(tmp_path, make_state(1), {"step": 1})
    assert load_state(tmp_path)[1] == {"step": 1}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["state-000008-0000.safetensors", "state.json"]


def test_a_full_disk_leaves_the_old_state_and_no_rubbish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_state(tmp_path, make_state(0), {"step": 0}, shard_bytes=4096)
    before = sorted(tmp_path.iterdir())
    calls = itertools.count()

    def fsync_until_full(_descriptor: int) -> None:
        if next(calls) == 3:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fsync_until_full)
    with pytest.raises(CheckpointError, match="No space left"):
        save_state(tmp_path, make_state(1), {"step": 1}, shard_bytes=4096)
    assert sorted(tmp_path.iterdir()) == before
    assert load_state(tmp_path)[1] == {"step": 0}


@pytest.mark.parametrize(
    ("breakage", "reason"),
    [
        (lambda folder: (folder / "state.json").unlink(), "No training state"),
        (lambda folder: (folder / "state.json").write_bytes(b""), "cannot be read"),
        (lambda folder: (folder / "state.json").write_text("{}"), "belongs to another program"),
        (
            lambda folder: (folder / "state.json").write_text('{"format": "causal-arrow-state", "format_version": 2}'),
            "newer causal-arrow",
        ),
        (
            lambda folder: (folder / "state.json").write_text(
                (folder / "state.json").read_text().replace('"step": 41', '"step": 42')
            ),
            "checksum",
        ),
        (lambda folder: next(folder.glob("*-0001.safetensors")).unlink(), "Cannot read"),
        (lambda folder: next(folder.glob("*-0001.safetensors")).write_bytes(b""), "checksum"),
    ],
)
def test_a_broken_state_is_one_clear_error(tmp_path: Path, breakage: Callable[[Path], Any], reason: str) -> None:
    save_state(tmp_path, make_state(), {"step": 41}, shard_bytes=4096)
    breakage(tmp_path)
    with pytest.raises(CheckpointError, match=reason):
        load_state(tmp_path)


def test_scalars_that_are_not_json_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="JSON"):
        save_state(tmp_path, {}, {"tensor": torch.zeros(1)})


def test_shards_too_small_for_anything_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="too small"):
        save_state(tmp_path, {"weights": torch.zeros(10)}, {}, shard_bytes=100)


# ---------------------------------------------------------------------------------------------------------- kills


def save_version(kind: str, folder: Path, version: int) -> None:
    """Save something that says `version` in each of its parts; neighboring versions differ in size."""
    if kind == "model":
        model = ArrowModel((PAPER, PAIRWISE)[version % 2])
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.fill_(version)
        save_model(model, folder, extra={"version": version})
    else:
        tensors = {name: torch.full((400 + version % 2,), version) for name in "abc"}
        save_state(folder, tensors, {"version": version}, shard_bytes=4096)


def load_version(kind: str, folder: Path) -> int:
    """The one version of everything that loads."""
    if kind == "model":
        model = load_model(folder)
        versions = {int(value) for parameter in model.parameters() for value in parameter.unique()}
        (version,) = versions
        assert model.config == (PAPER, PAIRWISE)[version % 2]
    else:
        tensors, scalars = load_state(folder)
        (version,) = {scalars["version"], *(int(value) for tensor in tensors.values() for value in tensor.unique())}
    return version


def run_and_kill(action: Callable[[], None], seconds: float | None = None) -> bool:
    """Run `action` in a process of its own, killed after some seconds or by itself; whether it was killed."""
    child = os.fork()
    if child == 0:
        try:
            action()
            os._exit(0)
        finally:
            os._exit(1)
    if seconds is not None:
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


def die_at_step(step: int) -> None:
    """Kill this process before its `step`-th call that makes a save lasting; a file then being written is torn."""
    steps = itertools.count()

    def dying(call: Callable[..., Any]) -> Callable[..., Any]:
        def count_then_call(target: Any, *others: Any, **options: Any) -> Any:
            if next(steps) == step:
                if call is os.fsync and os.path.isfile(f"/proc/self/fd/{target}"):
                    os.ftruncate(target, os.fstat(target).st_size // 2)
                os.kill(os.getpid(), signal.SIGKILL)
            return call(target, *others, **options)

        return count_then_call

    os.fsync, os.replace, Path.unlink = dying(os.fsync), dying(os.replace), dying(Path.unlink)  # type: ignore[method-assign]


def kill_at_every_step(kind: str, folder: Path) -> None:
    for step in itertools.count():
        save_version(kind, folder, 2 * step)

        def save_and_die(step: int = step) -> None:
            die_at_step(step)
            save_version(kind, folder, 2 * step + 1)

        if not run_and_kill(save_and_die):
            assert load_version(kind, folder) == 2 * step + 1
            assert step >= 6, f"only {step} places to die: the test no longer reaches into the save"
            return
        assert load_version(kind, folder) in (2 * step, 2 * step + 1)


def kill_at_random_times(kind: str, folder: Path, kills: int = 20) -> None:
    started = time.perf_counter()
    last = 3
    for version in range(last + 1):
        save_version(kind, folder, version)
    seconds_a_save = (time.perf_counter() - started) / (last + 1)
    random_numbers = random.Random(0)
    for _ in range(kills):

        def save_on_and_on(first: int = last + 1) -> None:
            for version in itertools.count(first):
                save_version(kind, folder, version)

        run_and_kill(save_on_and_on, seconds=random_numbers.uniform(0, 4) * seconds_a_save)
        found = load_version(kind, folder)
        assert found >= last
        last = found
    assert last > kills / 6, f"only {last} saves in {kills} attempts: the kills came too early to mean anything"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that can be forked and killed")
@pytest.mark.parametrize("kind", ["model", "state"])
def test_a_kill_leaves_one_complete_version(tmp_path: Path, kind: str) -> None:
    # In a fresh process with one thread, which can be forked without harm.
    program = """
from test_lab_checkpoint import *
torch.set_num_threads(1)
kind, folder = sys.argv[1], Path(sys.argv[2])
kill_at_every_step(kind, folder / "every step")
kill_at_random_times(kind, folder / "random times")
"""
    result = subprocess.run(
        [sys.executable, "-c", program, kind, tmp_path],
        cwd=Path(__file__).parent,
        env=os.environ | {"PYTHONPATH": str(Path(broken_models.__file__).parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
