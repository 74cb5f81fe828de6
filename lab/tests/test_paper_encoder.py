"""Laws of the paper's encoder. test_lab_checkpoint.py compares it with the authors' network."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
import torch
from torch import Tensor

from causal_arrow import Settings, discover
from causal_arrow.discovery.arranged import arrange
from causal_arrow.errors import ConfigurationError
from causal_arrow_lab.batches import TensorBatch
from causal_arrow_lab.network import paper
from causal_arrow_lab.network.encoder import EncoderOutput
from causal_arrow_lab.network.model import ArrowConfig, ArrowModel
from causal_arrow_lab.network.paper import Norm, PaperConfig, PaperEncoder, SelfAttentionBlock, SummaryBlock

SMALL = PaperConfig(
    width=24,
    observation_blocks=2,
    observation_heads=2,
    variable_blocks=2,
    variable_heads=3,
    context_blocks=2,
    context_heads=4,
    summary_tokens=3,
)


@pytest.fixture
def encoder() -> PaperEncoder:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return PaperEncoder(SMALL).eval()


def tables(tasks: int, observations: int, variables: int) -> TensorBatch:
    return TensorBatch(torch.randn(tasks, observations, variables, generator=torch.Generator().manual_seed(1)))


def assert_same_answer(found: EncoderOutput, expected: EncoderOutput, tolerance: float = 1e-4) -> None:
    for got, wanted in zip(found[:2], expected[:2], strict=True):
        torch.testing.assert_close(got, wanted, atol=tolerance, rtol=0)


def test_the_papers_sizes_give_the_papers_number_of_parameters() -> None:
    encoder = PaperEncoder(PaperConfig())
    assert 36_500_000 < sum(parameter.numel() for parameter in encoder.parameters()) < 37_100_000


@pytest.mark.parametrize("shape", [(1, 2, 2), (2, 2, 7), (3, 11, 2)])
def test_any_shape_from_two_by_two_gets_symmetric_logits_and_one_score_a_variable(
    encoder: PaperEncoder, shape: tuple[int, int, int]
) -> None:
    tasks, _, variables = shape
    skeleton_logits, order_scores, _ = encoder(tables(*shape))
    assert skeleton_logits.shape == (tasks, variables, variables)
    assert order_scores.shape == (tasks, variables)
    assert torch.equal(skeleton_logits, skeleton_logits.transpose(1, 2))
    assert skeleton_logits.isfinite().all()
    assert order_scores.isfinite().all()


def test_answers_depend_on_the_data(encoder: PaperEncoder) -> None:
    """Guards the laws below: a constant answer would satisfy them all."""
    skeleton_logits, order_scores, _ = encoder(tables(2, 20, 5))
    assert (skeleton_logits[0] - skeleton_logits[1]).abs().max() > 1e-2
    assert order_scores.std(dim=1).min() > 1e-2


def test_permuting_observations_leaves_the_answer(encoder: PaperEncoder) -> None:
    data = tables(2, 20, 5)
    shuffled = TensorBatch(data.values[:, torch.randperm(20, generator=torch.Generator().manual_seed(2))])
    assert_same_answer(encoder(shuffled), encoder(data))


def test_permuting_variables_permutes_the_answer(encoder: PaperEncoder) -> None:
    data = tables(2, 20, 5)
    order = torch.tensor([3, 0, 4, 1, 2])
    skeleton_logits, order_scores, _ = encoder(data)
    expected = EncoderOutput(skeleton_logits[:, order][:, :, order], order_scores[:, order])
    assert_same_answer(encoder(TensorBatch(data.values[:, :, order])), expected)


def test_tasks_of_a_batch_do_not_touch_each_other(encoder: PaperEncoder) -> None:
    data = tables(3, 20, 5)
    skeleton_logits, order_scores, _ = encoder(data)
    assert_same_answer(encoder(data[1:2]), EncoderOutput(skeleton_logits[1:2], order_scores[1:2]))


@pytest.mark.parametrize("observations_per_chunk", [1, 7, 20, 1000])
def test_reading_in_chunks_gives_the_same_answer(encoder: PaperEncoder, observations_per_chunk: int) -> None:
    data = tables(2, 20, 5)
    assert_same_answer(encoder(data, observations_per_chunk), encoder(data))


def test_no_stage_sees_more_cells_than_a_chunk_holds(encoder: PaperEncoder) -> None:
    cells_seen: list[int] = []

    def count(_module: torch.nn.Module, inputs: tuple[Tensor, ...]) -> None:
        entries = inputs[-1]  # (S, L, D)
        cells_seen.append(entries.shape[0] * entries.shape[1])

    for block in (*encoder.observation_transformer, *encoder.variable_transformer):
        block.register_forward_pre_hook(count)
    encoder(tables(3, 40, 6), observations_per_chunk=8)
    assert max(cells_seen) <= 3 * 8 * 6


def test_a_chunk_of_nothing_is_refused(encoder: PaperEncoder) -> None:
    with pytest.raises(ConfigurationError, match="at least 1"):
        encoder(tables(1, 4, 3), observations_per_chunk=0)


def test_no_launch_takes_more_sequences_than_the_kernels_can_number(
    encoder: PaperEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tables(4, 20, 5)
    expected = encoder(data)
    launches: list[int] = []
    attend = torch.nn.functional.scaled_dot_product_attention

    def attend_and_count(query: Tensor, key: Tensor, value: Tensor, dropout_p: float) -> Tensor:
        launches.append(query.shape[0])
        return attend(query, key, value, dropout_p=dropout_p)

    monkeypatch.setattr(paper, "MAX_SEQUENCES_PER_LAUNCH", 3)
    monkeypatch.setattr(paper.F, "scaled_dot_product_attention", attend_and_count)
    assert_same_answer(encoder(data), expected)
    assert max(launches) == 3


def test_gradients_reach_every_parameter(encoder: PaperEncoder) -> None:
    skeleton_logits, order_scores, _ = encoder.train()(tables(2, 10, 4))
    (skeleton_logits.square().sum() + order_scores.square().sum()).backward()
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in encoder.parameters())


def test_autocast_keeps_streams_and_norms_in_bfloat16_and_answers_in_float32(encoder: PaperEncoder) -> None:
    data = tables(2, 20, 5)
    dtypes: set[torch.dtype] = set()
    for module in encoder.modules():
        if isinstance(module, SelfAttentionBlock | SummaryBlock | Norm):
            module.register_forward_hook(lambda _module, inputs, output: dtypes.update([inputs[0].dtype, output.dtype]))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        answer = encoder(data)
    assert dtypes == {torch.bfloat16}
    assert {tensor.dtype for tensor in answer[:2]} == {torch.float32}
    assert_same_answer(answer, encoder(data), tolerance=0.1)


def test_dropout_acts_in_training_only() -> None:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        encoder = PaperEncoder(PaperConfig(**{**vars(SMALL), "dropout": 0.3}))
        data = tables(1, 10, 4)
        assert not torch.equal(encoder(data)[1], encoder(data)[1])
        encoder.eval()
        assert torch.equal(encoder(data)[1], encoder(data)[1])


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"width": 0}, "whole number above 0 for width"),
        ({"summary_tokens": 2.5}, "whole number above 0 for summary_tokens"),
        ({"context_blocks": "three"}, "whole number above 0 for context_blocks"),
        ({"width": 30}, "multiple of the heads"),
        ({"dropout": 1.0}, "dropout from 0 to below 1"),
        ({"dropout": None}, "dropout from 0 to below 1"),
    ],
)
def test_sizes_that_make_no_network_are_refused(settings: dict[str, int], reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        PaperConfig(**settings)


def test_compiled_blocks_stay_compiled_in_training_and_validation_of_any_shape() -> None:
    """torch's own limit of 8 versions of a block is used up by these runs; what comes after it would run uncompiled."""
    blocks = {"observation_blocks": 1, "variable_blocks": 1, "context_blocks": 1}
    model = ArrowModel(ArrowConfig(dataclasses.replace(SMALL, **blocks)))
    with torch._dynamo.config.patch(recompile_limit=8, fail_on_recompile_limit_hit=True):
        model.compile_blocks(backend="eager")
        for tasks, halved, training in itertools.product((1, 3), (False, True), (True, False)):
            with torch.set_grad_enabled(training), torch.autocast("cpu", torch.bfloat16, enabled=halved):
                model(tables(tasks, 9, 4))


def test_an_encoder_without_statistics_reads_the_drawn_observations() -> None:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = ArrowModel(ArrowConfig(PaperConfig(width=16, observation_heads=2, variable_heads=2))).eval()
    values = np.random.default_rng(0).laplace(size=(400, 5)) @ np.triu(np.full((5, 5), 0.7))
    found = discover(values, Settings(network, max_rows=100))
    arranged = arrange(found.table, 100)
    assert arranged.is_long
    expected = network(torch.from_numpy(arranged.values)[None]).numpy()
    scores = found.answer.distribution.order_scores
    np.testing.assert_allclose(scores, expected.order_scores[0], atol=1e-5)
    assert any("100 of the 400 observations are read" in finding.message for finding in found.answer.findings)
