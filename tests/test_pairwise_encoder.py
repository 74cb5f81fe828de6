"""Laws of the pairwise encoder: symmetries, streaming, sizes."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from causal_arrow.batches import TableBatch
from causal_arrow.errors import ConfigurationError
from causal_arrow.graphs.graph_distribution import GraphDistribution
from causal_arrow.graphs.skeleton_order import SkeletonOrder
from causal_arrow.network.encoders import statistics
from causal_arrow.network.encoders.pairwise import PairwiseConfig
from causal_arrow.network.kernels import processor
from causal_arrow.network.model import ArrowConfig, ArrowModel, standardize

SMALL = PairwiseConfig(cell_width=16, pair_width=32, stages=2, pair_blocks=1, mixing_heads=4, outer_width=4)


def shaken(config: PairwiseConfig = SMALL, seed: int = 0) -> ArrowModel:
    """A model none of whose weights is zero, as after training: zeros would hide what a block does."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = ArrowModel(ArrowConfig(config)).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                if not parameter.any():
                    parameter.normal_(std=0.1)
    return model


def tables(tasks: int, observations: int, variables: int, seed: int = 0) -> Tensor:
    """Tables whose variables depend on each other, with a few ties."""
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(tasks, observations, variables, generator=generator, dtype=torch.float64)
    mixing = torch.randn(tasks, variables, variables, generator=generator, dtype=torch.float64)
    data = noise @ mixing + noise.square()
    data[:, :, 0] = (data[:, :, 0] / 2).round()
    return data


def distance(first: GraphDistribution, second: GraphDistribution) -> float:
    """The largest difference between two answers, diagonals left out."""
    one, other = first.skeleton_order, second.skeleton_order
    logits = (one.skeleton_logits - other.skeleton_logits).abs()
    off_diagonal = ~torch.eye(logits.shape[-1], dtype=torch.bool)
    scores = (one.order_scores - other.order_scores).abs()
    return max(logits[:, off_diagonal].max().item(), scores.max().item())


@torch.no_grad()
def test_permuting_observations_changes_nothing() -> None:
    model, data = shaken(), tables(3, 80, 7)
    shuffled = data[:, torch.randperm(80, generator=torch.Generator().manual_seed(1))]
    assert distance(model(data), model(shuffled)) < 1e-4


@pytest.mark.parametrize("order_head", ["potential", "pooled"])
@torch.no_grad()
def test_permuting_variables_permutes_the_answer(order_head: str) -> None:
    model, data = shaken(dataclasses.replace(SMALL, order_head=order_head)), tables(3, 80, 7)
    order = torch.randperm(7, generator=torch.Generator().manual_seed(1))
    answer = model(data).skeleton_order
    expected = SkeletonOrder(answer.skeleton_logits[:, order][:, :, order], answer.order_scores[:, order])
    assert distance(model(data[:, :, order]), GraphDistribution(expected)) < 1e-4


@torch.no_grad()
def test_units_of_measurement_do_not_matter() -> None:
    model, data = shaken(), tables(2, 80, 5)
    scale = torch.tensor([1.0, 1000.0, 0.001, 3.0, 1e6], dtype=torch.float64)
    assert distance(model(data), model(data * scale + 17)) < 1e-4


@pytest.mark.parametrize("observations_per_chunk", [1, 7, 40, 80, 1000])
@torch.no_grad()
def test_reading_observations_in_chunks_changes_nothing(observations_per_chunk: int) -> None:
    model, data = shaken(), tables(2, 80, 6)
    assert distance(model(data), model(data, observations_per_chunk)) < 1e-4


@pytest.mark.parametrize("observations_per_chunk", [None, 3, 33])
@torch.no_grad()
def test_working_in_a_small_cache_changes_nothing(
    observations_per_chunk: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, data = shaken(), tables(2, 80, 6)
    expected = model(data)
    monkeypatch.setattr(processor, "CELLS_IN_CACHE", 60)  # five observations of two tables with six variables
    assert distance(expected, model(data, observations_per_chunk)) < 1e-4


@pytest.mark.parametrize("observations_per_chunk", [None, 7])
@torch.no_grad()
def test_two_rounds_are_twice_the_stages_with_the_same_weights(observations_per_chunk: int | None) -> None:
    once, data = shaken(), tables(2, 40, 6)
    twice = ArrowModel(ArrowConfig(dataclasses.replace(SMALL, rounds=2))).eval()
    twice.load_state_dict(once.state_dict())
    unrolled = ArrowModel(ArrowConfig(dataclasses.replace(SMALL, stages=2 * SMALL.stages))).eval()
    weights = once.state_dict()
    for name, tensor in once.state_dict().items():
        if match := re.match(r"encoder\.stages\.(\d+)\.(.*)", name):
            weights[f"encoder.stages.{int(match[1]) + SMALL.stages}.{match[2]}"] = tensor
    unrolled.load_state_dict(weights)
    assert distance(twice(data, observations_per_chunk), unrolled(data, observations_per_chunk)) < 1e-6
    assert distance(twice(data), once(data)) > 1e-2


@torch.no_grad()
def test_chunks_bound_the_cells_held_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    model, data = shaken(), tables(1, 500, 6)
    most = 0
    block = processor.cell_block_

    def watched(cells: Tensor, mixing: Tensor, weights: processor.CellWeights) -> None:
        nonlocal most
        most = max(most, cells.shape[1])
        block(cells, mixing, weights)

    monkeypatch.setattr(processor, "cell_block_", watched)
    model(data, 32)
    assert most == 32


@pytest.mark.parametrize(("observations", "variables"), [(2, 2), (2, 30), (500, 2), (20, 200), (5, 3)])
@torch.no_grad()
def test_any_shape_gets_a_finite_answer(observations: int, variables: int) -> None:
    answer = shaken()(tables(1, observations, variables)).skeleton_order
    assert answer.skeleton_logits.isfinite().all()
    assert answer.order_scores.isfinite().all()
    assert torch.equal(answer.skeleton_logits, answer.skeleton_logits.mT)


@torch.no_grad()
def test_constant_and_duplicate_columns_get_a_finite_answer() -> None:
    data = tables(1, 50, 5)
    data[:, :, 1] = 3.0
    data[:, :, 2] = data[:, :, 3]
    answer = shaken()(data).skeleton_order
    assert answer.skeleton_logits.isfinite().all()
    assert answer.order_scores.isfinite().all()


def test_every_weight_gets_a_gradient() -> None:
    model = shaken()
    adjacency = torch.zeros(2, 6, 6, dtype=torch.bool)
    adjacency[:, 0, 1:] = True
    model(tables(2, 40, 6)).skeleton_order.composite_nll(adjacency).mean().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.any(), name


def test_the_pooled_order_head_knows_nothing_of_pairs() -> None:
    parameters = dict(shaken(dataclasses.replace(SMALL, order_head="pooled")).named_parameters())
    assert [name for name in parameters if "order_head" in name] == ["encoder.order_head.own.weight"]


@torch.no_grad()
def test_bfloat16_gives_nearly_the_same_probabilities() -> None:
    model, data = shaken(), tables(2, 80, 7)
    exact = model(data).skeleton_order.edge_marginals()
    with torch.autocast("cpu", torch.bfloat16):
        rough = model(data).skeleton_order.edge_marginals()
    assert rough.dtype == torch.float32
    assert (exact - rough).abs().max() < 0.05


def test_sizes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="mixing_heads"):
        PairwiseConfig(cell_width=20, mixing_heads=8)
    with pytest.raises(ConfigurationError, match="positive whole number for stages"):
        PairwiseConfig(stages=0)
    with pytest.raises(ConfigurationError, match="Expected potential or pooled for order_head, got 'own'"):
        PairwiseConfig(order_head="own")
    with pytest.raises(ConfigurationError, match="at least 2 observations"):
        shaken()(torch.zeros(3, 1, 4))


def test_configurations_survive_a_dictionary() -> None:
    for config in (ArrowConfig.base(), ArrowConfig.paper(), ArrowConfig(SMALL)):
        assert ArrowConfig.from_dict(config.to_dict()) == config
    with pytest.raises(ConfigurationError, match="Unknown encoder 'other'"):
        ArrowConfig.from_dict({"encoder": "other"})
    with pytest.raises(ConfigurationError, match="Unknown setting 'depth'"):
        ArrowConfig.from_dict({"encoder": "pairwise", "depth": 3})


# --- the fixed statistics


def test_normal_scores_are_quantiles_of_ranks() -> None:
    data = tables(2, 200, 4)
    scores = statistics.normal_scores(data)
    for task in range(2):
        for variable in range(4):
            ranks = stats.rankdata(data[task, :, variable].numpy())  # ties get their mean rank
            expected = stats.norm.ppf((ranks - 0.5) / 200)
            np.testing.assert_allclose(scores[task, :, variable], expected / expected.std(ddof=1), atol=1e-6)


def test_partial_correlations_are_those_of_regression_residuals() -> None:
    data = standardize(tables(1, 300, 5))
    precision = statistics.precisions(statistics.correlation(data))[-1, 0].numpy()  # hardly any ridge
    values = data[0].double().numpy()
    for first, second in [(0, 1), (2, 4)]:
        rest = [variable for variable in range(5) if variable not in (first, second)]
        residuals = [
            values[:, one] - values[:, rest] @ np.linalg.lstsq(values[:, rest], values[:, one], rcond=None)[0]
            for one in (first, second)
        ]
        expected = residuals[0] @ residuals[1] / np.sqrt((residuals[0] @ residuals[0]) * (residuals[1] @ residuals[1]))
        partial = -precision[first, second] / np.sqrt(precision[first, first] * precision[second, second])
        assert abs(partial - expected) < 1e-4


def test_nearly_deterministic_relations_are_seen() -> None:
    generator = torch.Generator().manual_seed(0)
    cause = torch.randn(1, 1000, 1, generator=generator, dtype=torch.float64)
    for noise in (1e-1, 1e-2, 1e-3):
        effect = cause + noise * torch.randn(1, 1000, 1, generator=generator, dtype=torch.float64)
        data = standardize(torch.cat([cause, effect], dim=-1))
        variance = 1 / statistics.precisions(statistics.correlation(data))[-1, 0, 0, 0]
        assert abs(variance.item() / noise**2 - 1) < 0.15


def test_residual_channels_do_not_correlate_with_the_other_variables() -> None:
    data = standardize(tables(1, 400, 5))
    channels, _ = statistics.describe(TableBatch(data))
    assert channels.shape == (1, 400, 5, len(statistics.channel_names(SMALL.channels)))
    cross = (channels[0, :, :, -1].T @ data[0]) / 400  # the residuals at the smaller ridge
    off_diagonal = ~torch.eye(5, dtype=torch.bool)
    assert cross[off_diagonal].abs().max() < 0.05
    assert cross.diagonal().abs().min() > cross[off_diagonal].abs().max()


def test_statistics_have_their_declared_size_and_reasonable_scale() -> None:
    channels, pairs = statistics.describe(TableBatch(standardize(tables(2, 500, 20))))
    assert channels.shape == (2, 500, 20, len(statistics.channel_names(SMALL.channels)))
    assert pairs.shape == (2, 20, 20, len(statistics.statistic_names(SMALL.channels, SMALL.statistics)))
    assert pairs.abs().max() < 25


def test_configuration_is_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        SMALL.stages = 4  # type: ignore[misc]
