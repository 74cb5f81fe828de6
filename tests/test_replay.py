"""Laws of replayed passes: changing shapes get their own answers, few shapes are kept, whatever fails runs as usual."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from causal_arrow.batches import TableBatch
from causal_arrow.discovery import inference
from causal_arrow.discovery.pipeline import Settings, discover
from causal_arrow.network import latency
from causal_arrow.network.encoders.statistics import CHANNELS_OF_ANY_TABLE, STATISTICS_OF_ANY_TABLE, describe
from causal_arrow.network.model import ArrowModel
from causal_arrow.network.replay import Function, Replay, Replayed, ReplayedModel, replayed
from test_pairwise_encoder import distance, shaken, tables


def capture_without_gpu(function: Function, inputs: Sequence[Tensor]) -> Replay:
    """As a CUDA graph works: reads and writes always the same memory, whatever is given to it."""
    places = [given.clone() for given in inputs]
    outputs = function(*places)

    def run() -> None:
        for place, value in zip(outputs, function(*places), strict=True):
            place.copy_(value)

    return Replay(places, outputs, run)


@torch.inference_mode()
def test_replayed_passes_over_changing_shapes_give_the_answers_of_the_model() -> None:
    model = shaken()
    again = ReplayedModel(model, capture_without_gpu)
    for seed, shape in enumerate([(1, 40, 6), (1, 40, 6), (1, 30, 5), (1, 40, 6), (2, 30, 5), (1, 30, 5), (1, 30, 5)]):
        data = tables(*shape, seed=seed)
        assert distance(again(TableBatch(data)), model(data)) < 1e-6
    assert [part.captured for part in again.parts] == [2, 2, 2]


@torch.inference_mode()
def test_an_answer_does_not_change_when_the_next_table_comes() -> None:
    again = ReplayedModel(shaken(), capture_without_gpu)
    first, *_ = answers = [again(TableBatch(tables(1, 40, 6, seed=min(place, 1)))) for place in range(4)]
    assert distance(answers[1], answers[2]) == 0
    assert distance(first, answers[3]) > 1e-3


def test_discoveries_one_by_one_are_replayed_with_the_answers_they_had(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a GPU, with a capture that needs none."""
    made: list[ReplayedModel] = []

    def replay_here(model: ArrowModel) -> ReplayedModel:
        made.append(ReplayedModel(model, capture_without_gpu))
        return made[-1]

    monkeypatch.setattr(inference, "replayed", replay_here)
    inference._replayed.cache_clear()
    model = shaken().eval()
    for seed in range(3):
        table = tables(1, 40, 6, seed=seed)[0].double().numpy()
        found = discover(table, Settings(model=model, scale="given"))
        with torch.no_grad():
            expected = model(torch.from_numpy(table)[None]).skeleton_order.edge_marginals()[0]
        order = [int(name.removeprefix("x")) - 1 for name in found.answer.names]
        assert order == list(range(6))
        assert abs(found.answer.edge_probabilities - expected.numpy()).max() < 1e-5
    assert [part.captured for part in made[0].parts] == [1, 1, 1]
    assert len(made) == 1
    with torch.no_grad():  # weights that lie elsewhere are captured anew
        weight = next(model.parameters())
        weight.data = weight.data.clone()
    discover(table, Settings(model=model, scale="given"))
    assert len(made) == 2
    inference._replayed.cache_clear()


class FromElsewhere(TorchDispatchMode):
    """Operations on tensors that no operation before has made, such as an index written as a list."""

    def __init__(self, *known: Tensor) -> None:
        super().__init__()
        self.known: list[Tensor] = list(known)  # kept, so that no other tensor gets the same id
        self.found: list[str] = []

    def __torch_dispatch__(self, operation: Any, types: Any, given: Any = (), named: Any = None) -> Any:
        made = operation(*given, **(named or {}))
        known = {id(tensor) for tensor in self.known}
        tensors = [leaf for leaf in tree_leaves((given, named)) if isinstance(leaf, Tensor)]
        self.found += [str(operation) for tensor in tensors if id(tensor) not in known and tensor.dim() > 0]
        self.known += [leaf for leaf in tree_leaves(made) if isinstance(leaf, Tensor)]
        return made


def test_nothing_is_copied_to_the_device_while_a_table_is_described() -> None:
    values = torch.empty(1, 60, 5, device="meta")
    with FromElsewhere(values) as elsewhere, torch.inference_mode():
        describe(TableBatch(values), CHANNELS_OF_ANY_TABLE, STATISTICS_OF_ANY_TABLE, canonical_signs=True)
    assert elsewhere.found == []
    with FromElsewhere(values) as elsewhere, torch.inference_mode():
        values[..., [0, 2]]
    assert elsewhere.found == ["aten.index.Tensor"]


def test_only_the_shapes_that_came_last_are_kept() -> None:
    twice = Replayed(lambda x: (2 * x,), capture_without_gpu, most=3)
    for size in [1, 1, 2, 2, 3, 3, 4, 4, 1]:
        (out,) = twice(torch.ones(size))
        assert out.tolist() == [2.0] * size
    assert twice.captured == 2  # of 3 and 4; that of 1 is gone, and was seen once since


def test_what_cannot_be_captured_runs_as_usual() -> None:
    def refuse(function: Function, inputs: Sequence[Tensor]) -> Replay:
        raise RuntimeError("operation not permitted when stream is capturing\nmore about it")

    twice = Replayed(lambda x: (2 * x,), refuse)
    for _ in range(3):
        (out,) = twice(torch.ones(2))
        assert out.tolist() == [2.0, 2.0]
    assert twice.failure == "operation not permitted when stream is capturing"


@torch.inference_mode()
def test_precisions_are_captured_apart() -> None:
    seen = []
    twice = Replayed(
        lambda x: (2 * x,), lambda function, inputs: seen.append(1) or capture_without_gpu(function, inputs)
    )
    for _ in range(2):
        twice(torch.ones(2))
        with torch.autocast("cpu", torch.bfloat16):
            twice(torch.ones(2))
    assert twice.captured == 2


def test_a_processor_replays_nothing() -> None:
    model = shaken()
    assert replayed(model) is model


def test_the_command_times_a_processor(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latency, "SINGLE", ((20, 4),))
    monkeypatch.setattr(latency, "BATCHES", ((20, 3),))
    assert latency.main(["--device", "cpu", "--repeats", "1"]) == 0
    shown = capsys.readouterr().out
    assert "20×4    float32" in shown
    assert "20×3    bfloat16" in shown


def test_the_command_names_what_is_no_device(capsys: pytest.CaptureFixture[str]) -> None:
    assert latency.main(["--device", "tpu"]) == 2
    assert "expected auto, cpu, cuda or cuda:1" in capsys.readouterr().err
