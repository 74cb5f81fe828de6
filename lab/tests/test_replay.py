"""Laws of replayed passes: changing shapes get their own answers, few shapes are kept, whatever fails runs as usual."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import latency
from causal_arrow.batches import TableBatch
from causal_arrow.network.statistics import CHANNELS_OF_ANY_TABLE, STATISTICS_OF_ANY_TABLE, Measured, described
from causal_arrow_lab.batches import TensorBatch
from causal_arrow_lab.network.replay import Function, Replay, Replayed, ReplayedModel
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
        assert distance(again(TensorBatch(data)), model(data)) < 1e-6
    assert [part.captured for part in again.parts] == [2, 2, 2]


@torch.inference_mode()
def test_an_answer_does_not_change_when_the_next_table_comes() -> None:
    again = ReplayedModel(shaken(), capture_without_gpu)
    first, *_ = answers = [again(TensorBatch(tables(1, 40, 6, seed=min(place, 1)))) for place in range(4)]
    assert distance(answers[1], answers[2]) == 0
    assert distance(first, answers[3]) > 1e-3


def test_weights_that_lie_elsewhere_are_captured_anew() -> None:
    model = shaken()
    first = model._replayed()
    assert model._replayed() is first
    with torch.no_grad():
        weight = next(model.parameters())
        weight.data = weight.data.clone()
    assert model._replayed() is not first


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
        measured = Measured(TensorBatch(values), CHANNELS_OF_ANY_TABLE, canonical_signs=True)
        described(measured, STATISTICS_OF_ANY_TABLE)
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
    assert latency.replayed(model) is model
    model.read(TableBatch(tables(1, 30, 4).numpy()))
    assert model._replays is None


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
