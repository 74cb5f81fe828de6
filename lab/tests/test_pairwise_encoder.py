"""Laws of the torch network: it is the one that the product runs in numpy, it learns, and it grows."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from causal_arrow import Arrow, load_model
from causal_arrow.batches import LongTable, TableBatch
from causal_arrow.errors import ConfigurationError
from causal_arrow.network.pairwise import PairwiseConfig, PairwiseNetwork
from causal_arrow.network.statistics import CHANNELS_OF_ANY_TABLE, STATISTICS_OF_ANY_TABLE
from causal_arrow_lab import ArrowConfig, ArrowModel
from causal_arrow_lab import load_model as load_torch_model
from causal_arrow_lab.batches import TensorBatch
from causal_arrow_lab.network.pairwise import PairwiseEncoder
from causal_arrow_lab.skeleton_order import NetworkOutput
from small_network import distance as distance_of_answers
from small_network import random_weights

SMALL = PairwiseConfig(cell_width=16, pair_width=32, stages=2, pair_blocks=1, mixing_heads=4, outer_width=4)
EVERYTHING = dataclasses.replace(
    SMALL,
    channels=CHANNELS_OF_ANY_TABLE,
    statistics=STATISTICS_OF_ANY_TABLE,
    canonical_signs=True,
    confounding_head=True,
)


def in_torch(network: PairwiseNetwork) -> ArrowModel:
    """The torch network with the weights of a numpy one."""
    with torch.random.fork_rng(devices=[]):
        model = ArrowModel(ArrowConfig(network.config)).eval()
    model.load_state_dict({f"encoder.{name}": torch.from_numpy(weight) for name, weight in network.weights.items()})
    return model


def shaken(config: PairwiseConfig = SMALL, seed: int = 0) -> ArrowModel:
    """A model none of whose weights is zero, as after training: zeros would hide what a block does."""
    return in_torch(random_weights(config, seed, size=0.5))


def tables(tasks: int, observations: int, variables: int, seed: int = 0) -> Tensor:
    """Tables whose variables depend on each other, with a few ties."""
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(tasks, observations, variables, generator=generator, dtype=torch.float64)
    mixing = torch.randn(tasks, variables, variables, generator=generator, dtype=torch.float64)
    data = noise @ mixing + noise.square()
    data[:, :, 0] = (data[:, :, 0] / 2).round()
    return data


def distance(first: NetworkOutput, second: NetworkOutput) -> float:
    """The largest difference between two answers, diagonals left out."""
    return distance_of_answers(first.numpy(), second.numpy())


def drawn_tables(random: np.random.Generator) -> TableBatch:
    """Random tables of numbers and categories, often with holes and interventions."""
    count, observations, variables = random.integers(1, 4), random.integers(5, 120), random.integers(2, 12)
    shape = count, observations, variables
    values = random.standard_t(4, size=shape) @ random.normal(size=(variables, variables))
    levels = None
    if random.random() < 0.5:
        levels = random.choice([0, 2, 3, 7], size=variables)
        for column in np.flatnonzero(levels):
            cuts = np.quantile(values[..., column], np.linspace(0, 1, levels[column] + 1)[1:-1])
            values[..., column] = np.digitize(values[..., column], cuts)
        levels = np.broadcast_to(levels, (count, variables)) if levels.any() else None
    observed = random.random(shape) > random.uniform(0, 0.3) if random.random() < 0.5 else None
    intervened = random.random(shape) < 0.2 if random.random() < 0.5 else None
    return TableBatch(values, observed, intervened, levels)


def drawn_config(random: np.random.Generator) -> PairwiseConfig:
    """Random sizes and inputs that read every part of a table."""
    heads, channels, statistics = (
        int(2 * random.integers(1, 4)),
        list(CHANNELS_OF_ANY_TABLE),
        list(STATISTICS_OF_ANY_TABLE),
    )
    random.shuffle(channels)
    random.shuffle(statistics)
    return PairwiseConfig(
        cell_width=heads * int(random.integers(1, 6)),
        pair_width=int(random.integers(3, 40)),
        stages=int(random.integers(1, 4)),
        pair_blocks=int(random.integers(1, 4)),
        mixing_heads=heads,
        outer_width=int(random.integers(1, 8)),
        rounds=int(random.integers(1, 3)),
        order_head=("potential", "pooled")[random.integers(2)],
        channels=tuple(channels),
        statistics=tuple(statistics),
        canonical_signs=bool(random.integers(2)),
        confounding_head=bool(random.integers(2)),
    )


# One network in two libraries


@pytest.mark.parametrize("seed", range(30))
def test_numpy_and_torch_give_one_answer_for_any_sizes_weights_and_tables(seed: int) -> None:
    random = np.random.default_rng(seed)
    network = random_weights(drawn_config(random), seed, size=0.4)
    model, batch = in_torch(network), drawn_tables(random)
    for chunk in (None, int(random.integers(1, 50))):
        assert distance_of_answers(network.read(batch, chunk), model.read(batch, chunk)) < 2e-4


@pytest.mark.parametrize("seed", range(4))
def test_numpy_and_torch_give_one_answer_for_long_tables(seed: int) -> None:
    random = np.random.default_rng(seed)
    network = random_weights(drawn_config(random), seed, size=0.4)
    values = random.normal(size=(300, 5)) @ random.normal(size=(5, 5))
    values[random.random(values.shape) < 0.1] = np.nan
    values[:, 0] = np.digitize(values[:, 0], [-1.0, 0.5])
    levels = np.array([3, 0, 0, 0, 0])
    long = LongTable(300, lambda index: values[:, index], np.arange(0, 300, 3), levels, complete=False)
    assert distance_of_answers(network.read_long(long), in_torch(network).read_long(long)) < 2e-4


@pytest.mark.parametrize("name", ["arrow-base", "arrow-strict"])
def test_bundled_networks_give_one_answer_in_numpy_and_torch(name: str) -> None:
    batch = TableBatch(tables(2, 60, 8).numpy())
    assert distance_of_answers(load_model(name).read(batch), load_torch_model(name).read(batch)) < 1e-3


def test_a_torch_network_can_be_the_model_of_a_discovery() -> None:
    table = tables(1, 80, 6)[0].numpy()
    network = random_weights(EVERYTHING, size=0.4)
    ours, theirs = Arrow(network).fit(table), Arrow(in_torch(network)).fit(table)
    np.testing.assert_allclose(ours.edge_probabilities_, theirs.edge_probabilities_, atol=1e-5)
    assert theirs.answer_.model == ours.answer_.model == network.title


def test_a_network_that_is_in_training_is_left_so_and_answers_as_if_it_were_not() -> None:
    model = shaken().train()
    other = model.on("auto", "auto")
    assert model.training
    assert not other.training
    assert other.on("cpu", "float32") is other
    with pytest.raises(ConfigurationError, match="bfloat16 is for GPUs"):
        other.on("cpu", "bfloat16")


def test_a_pass_is_ended_between_layers() -> None:
    model, batch = shaken(), TableBatch(tables(1, 40, 5).numpy())

    def stop() -> None:
        raise InterruptedError

    model.between_stages.append(stop)
    with pytest.raises(InterruptedError):
        model.read(batch)
    model.between_stages.remove(stop)
    assert model.read(batch).variables == 5


@pytest.mark.parametrize(
    ("part", "message"),
    [("observed", "missing values"), ("intervened", "cells set by experiments"), ("levels", "categories")],
)
def test_a_part_that_a_network_would_ignore_is_refused(part: str, message: str) -> None:
    values = tables(2, 60, 5)
    marks = torch.zeros(values.shape if part != "levels" else values.shape[::2], dtype=torch.bool)
    marks[0, 0] = True
    parts: dict[str, Any] = {part: ~marks if part == "observed" else marks}
    with pytest.raises(ConfigurationError, match=f"{message}, which this network cannot read"):
        shaken()(TensorBatch(values, **parts))


# Learning


def test_every_weight_gets_a_gradient() -> None:
    model = shaken()
    adjacency = torch.zeros(2, 6, 6, dtype=torch.bool)
    adjacency[:, 0, 1:] = True
    model(tables(2, 40, 6)).skeleton_order.composite_nll(adjacency).mean().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.any(), name


@torch.no_grad()
def test_bfloat16_gives_nearly_the_same_probabilities() -> None:
    model, data = shaken(), tables(2, 80, 7)
    exact = model(data).skeleton_order.edge_marginals()
    with torch.autocast("cpu", torch.bfloat16):
        rough = model(data).skeleton_order.edge_marginals()
    assert rough.dtype == torch.float32
    assert 0 < (exact - rough).abs().max() < 0.05


def test_the_pooled_order_head_knows_nothing_of_pairs() -> None:
    parameters = dict(shaken(dataclasses.replace(SMALL, order_head="pooled")).named_parameters())
    assert [name for name in parameters if "order_head" in name] == ["encoder.order_head.own.weight"]


def test_torch_networks_have_the_weights_that_the_configuration_lists() -> None:
    for config in (SMALL, EVERYTHING, dataclasses.replace(SMALL, order_head="pooled", stages=3, rounds=2)):
        with torch.random.fork_rng(devices=[]):
            weights = PairwiseEncoder(config).state_dict()
        assert {name: tuple(weight.shape) for name, weight in weights.items()} == dict(config.weights())


def test_configurations_survive_a_dictionary() -> None:
    for config in (ArrowConfig.base(), ArrowConfig.paper(), ArrowConfig(SMALL)):
        assert ArrowConfig.from_dict(config.to_dict()) == config
    with pytest.raises(ConfigurationError, match="Unknown encoder 'other'"):
        ArrowConfig.from_dict({"encoder": "other"})
    with pytest.raises(ConfigurationError, match="Unknown setting 'depth'"):
        ArrowConfig.from_dict({"encoder": "pairwise", "depth": 3})


@torch.inference_mode()
def test_weights_of_0_1_answer_as_before_in_a_network_for_any_table() -> None:
    base = load_torch_model("arrow-strict")  # which has the inputs of 0.1
    config = dataclasses.replace(
        base.config.encoder,
        channels=CHANNELS_OF_ANY_TABLE,
        statistics=STATISTICS_OF_ANY_TABLE,
        confounding_head=True,
    )
    assert PairwiseEncoder.can_grow(config, base.config.encoder)
    with torch.random.fork_rng(devices=[]):
        model = ArrowModel(ArrowConfig(config)).eval()
    weights = {name: model.grown(name, tensor, base.config) for name, tensor in base.state_dict().items()}
    missing, unexpected = model.load_state_dict(weights, strict=False)
    assert all("confounding_head" in name for name in missing)
    assert not unexpected
    before, after = base(tables(1, 60, 9)).skeleton_order, model(tables(1, 60, 9)).skeleton_order
    assert torch.equal(before.skeleton_logits, after.skeleton_logits)
    assert torch.equal(before.order_scores, after.order_scores)
