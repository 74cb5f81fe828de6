"""Laws of inference on a processor: what runs in place and in pieces is the network that was trained."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import pytest
import torch

from causal_arrow.batches import TableBatch
from causal_arrow.graphs.graph_distribution import GraphDistribution
from causal_arrow.network.encoders.pairwise import PairwiseConfig
from causal_arrow.network.encoders.statistics import CHANNELS_OF_ANY_TABLE, STATISTICS_OF_ANY_TABLE
from causal_arrow.network.kernels import processor
from causal_arrow.network.model import ArrowModel
from test_pairwise_encoder import SMALL, distance, shaken, tables

EVERYTHING = dataclasses.replace(
    SMALL,
    pair_blocks=2,
    rounds=2,
    channels=CHANNELS_OF_ANY_TABLE,
    statistics=STATISTICS_OF_ANY_TABLE,
    canonical_signs=True,
    confounding_head=True,
)


def as_trained(model: ArrowModel, data: torch.Tensor | TableBatch, chunk: int | None = None) -> GraphDistribution:
    """The answer on the path that training takes: gradients are asked for."""
    with torch.enable_grad():
        assert not processor.applies(torch.device("cpu"))
        return model(data, chunk)


@pytest.mark.parametrize("shape", [(1, 40, 6), (3, 30, 5), (2, 5, 2), (1, 3, 40)])
@pytest.mark.parametrize("chunk", [None, 7])
@pytest.mark.parametrize("config", [SMALL, EVERYTHING], ids=["small", "everything"])
@torch.no_grad()
def test_a_processor_gives_the_answer_of_the_trained_network(
    shape: tuple[int, int, int], chunk: int | None, config: PairwiseConfig
) -> None:
    model, data = shaken(config), tables(*shape)
    assert distance(model(data, chunk), as_trained(model, data, chunk)) < 1e-5


@torch.no_grad()
def test_the_size_of_pieces_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    model, data = shaken(EVERYTHING), tables(2, 40, 9)
    expected = model(data)
    for name, size in [
        ("CELLS_IN_CACHE", 50),
        ("PAIRS_IN_CACHE", 10),
        ("OUTER_PRODUCTS_AT_ONCE", 700),
        ("ROW_PAIRS_AT_ONCE", 40),
    ]:
        monkeypatch.setattr(processor, name, size)
        assert distance(model(data), expected) < 1e-5, name


@torch.no_grad()
def test_tables_that_share_a_pass_get_the_answers_they_get_alone() -> None:
    model, data = shaken(EVERYTHING), tables(4, 50, 6)
    together = model(data)
    for place in range(4):
        alone = model(data[place : place + 1])
        assert distance(alone, together[place : place + 1]) < 1e-5


@torch.no_grad()
def test_the_table_is_left_as_it_was() -> None:
    data = tables(1, 40, 6)
    before = data.clone()
    shaken()(data)
    assert torch.equal(data, before)


@torch.no_grad()
def test_the_number_of_threads_changes_nothing() -> None:
    model, data = shaken(EVERYTHING), tables(1, 300, 12)
    threads = torch.get_num_threads()
    try:
        answers = []
        for count in (1, 2):
            torch.set_num_threads(count)
            answers.append(model(data))
    finally:
        torch.set_num_threads(threads)
    assert distance(*answers) < 1e-5


def test_an_answer_does_not_load_the_compiler() -> None:
    program = (
        "import sys, numpy as np; from causal_arrow.discovery.pipeline import discover; "
        "discover(np.random.default_rng(0).standard_normal((30, 4))); "
        "print([name for name in ('torch._dynamo', 'sympy', 'sklearn', 'matplotlib') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
