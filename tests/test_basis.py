"""Columns of any kind as numbers: what cannot be read off, what is kept, what is filled in."""

from __future__ import annotations

import dataclasses
from functools import cache

import numpy as np
import pytest
import torch
from torch import Tensor

from causal_arrow.batches import TableBatch
from causal_arrow.graphs.graph_distribution import GraphDistribution
from causal_arrow.network.checkpoint import load_model
from causal_arrow.network.encoders.basis import (
    FUNCTIONS,
    as_numbers,
    fill,
    hermite_functions,
    inverse_from_factor,
    inverse_of_small_factor,
    leading_eigenvectors,
    level_functions,
    normal_scores,
    orthogonal,
    signs,
)
from causal_arrow.network.encoders.pairwise import PairwiseConfig
from causal_arrow.network.encoders.statistics import (
    CHANNELS_OF_ANY_TABLE,
    STATISTICS_OF_ANY_TABLE,
    Measured,
    describe,
)
from causal_arrow.network.model import ArrowConfig, ArrowModel

LEVELS = torch.tensor([0, 2, 3, 0, 5, 0, 2, 9])
"""Of the columns of `typed_tables`: numbers, yes or no, and categories."""


def random_generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def typed_tables(tasks: int = 3, observations: int = 200, seed: int = 0) -> TableBatch:
    """Related columns, some of them cut into levels, with holes and interventions."""
    generator = random_generator(seed)
    variables = len(LEVELS)
    weights = torch.randn(tasks, variables, variables, generator=generator)
    latent = torch.randn(tasks, observations, variables, generator=generator) @ weights
    values = latent.clone()
    for column, levels in enumerate(LEVELS.tolist()):
        if levels:
            cuts = latent[..., column].flatten().quantile(torch.linspace(0, 1, levels + 1)[1:-1])
            values[..., column] = torch.bucketize(latent[..., column].contiguous(), cuts).float()
    observed = torch.rand(values.shape, generator=generator) > 0.2
    intervened = torch.rand(values.shape, generator=generator) < 0.1
    return TableBatch(values, observed, intervened, LEVELS.expand(tasks, -1))


@cache
def small_model(canonical_signs: bool = True) -> ArrowModel:
    """Random weights everywhere, so that every input counts."""
    config = PairwiseConfig(
        cell_width=16,
        pair_width=16,
        stages=1,
        pair_blocks=1,
        mixing_heads=2,
        outer_width=4,
        channels=CHANNELS_OF_ANY_TABLE,
        statistics=STATISTICS_OF_ANY_TABLE,
        canonical_signs=canonical_signs,
        confounding_head=True,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = ArrowModel(ArrowConfig(config))
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.5 * torch.randn_like(parameter))
    return model.eval()


@torch.inference_mode()
def answer(tables: TableBatch, canonical_signs: bool = True) -> GraphDistribution:
    return small_model(canonical_signs)(tables)


def distance(first: GraphDistribution, second: GraphDistribution) -> float:
    assert first.confounding_logits is not None
    assert second.confounding_logits is not None
    pairs = (
        (first.skeleton_order.skeleton_logits, second.skeleton_order.skeleton_logits),
        (first.skeleton_order.order_scores, second.skeleton_order.order_scores),
        (first.confounding_logits, second.confounding_logits),
    )
    return max(float((a - b).abs().max()) for a, b in pairs)


# Laws of the whole network


def test_renumbering_levels_changes_nothing() -> None:
    tables, generator = typed_tables(), random_generator(1)
    values = tables.values.clone()
    for column, levels in enumerate(LEVELS.tolist()):
        if levels:
            names = torch.randperm(levels, generator=generator)
            values[..., column] = names[values[..., column].long()].float()
    assert not torch.equal(values, tables.values)
    assert distance(answer(tables), answer(dataclasses.replace(tables, values=values))) < 1e-4


def test_a_column_and_its_negative_are_one_variable() -> None:
    tables = typed_tables()
    negated = torch.where(LEVELS > 0, tables.values, -tables.values)
    other = dataclasses.replace(tables, values=negated)
    assert distance(answer(tables), answer(other)) < 1e-4
    # Without canonical signs it would matter: the law is one that can fail.
    assert distance(answer(tables, canonical_signs=False), answer(other, canonical_signs=False)) > 1e-2


def test_units_of_numbers_do_not_matter_beside_categories_and_holes() -> None:
    tables = typed_tables()
    values = torch.where(LEVELS > 0, tables.values.double(), 1e6 * tables.values.double() - 40.0)
    assert distance(answer(tables), answer(dataclasses.replace(tables, values=values))) < 1e-3


def test_what_lies_under_a_hole_cannot_be_seen() -> None:
    tables = typed_tables()
    assert tables.observed is not None
    values = torch.where(tables.observed, tables.values, 1.0)
    assert distance(answer(tables), answer(dataclasses.replace(tables, values=values))) == 0


@pytest.mark.parametrize("part", ["observed", "intervened", "levels"])
def test_every_part_of_a_table_is_read(part: str) -> None:
    tables = typed_tables()
    without = dataclasses.replace(tables, **{part: None})
    assert distance(answer(tables), answer(without)) > 1e-2


def test_the_parts_that_say_nothing_change_nothing() -> None:
    values = torch.randn(2, 100, 5, generator=random_generator())
    nothing = torch.zeros_like(values, dtype=torch.bool)
    plain = TableBatch(values)
    spelled_out = TableBatch(values, ~nothing, nothing, torch.zeros(2, 5, dtype=torch.int64))
    assert distance(answer(plain), answer(spelled_out)) < 1e-4


def test_order_of_observations_and_variables_only_relabels() -> None:
    tables, generator = typed_tables(), random_generator(3)
    rows, columns = torch.randperm(200, generator=generator), torch.randperm(8, generator=generator)
    assert tables.observed is not None
    assert tables.intervened is not None
    assert tables.levels is not None
    shuffled = TableBatch(
        tables.values[:, rows][:, :, columns],
        tables.observed[:, rows][:, :, columns],
        tables.intervened[:, rows][:, :, columns],
        tables.levels[:, columns],
    )
    given, other = answer(tables), answer(shuffled)
    for table in range(len(tables)):
        assert distance(given[table].rearranged(columns), other[table]) < 1e-4


def test_reading_in_chunks_changes_only_the_rounding() -> None:
    tables = typed_tables()
    with torch.inference_mode():
        whole, chunked = small_model()(tables), small_model()(tables, observations_per_chunk=37)
    assert distance(whole, chunked) < 1e-3


def test_weights_of_0_1_answer_as_before_in_a_network_for_any_table() -> None:
    base = load_model("arrow-strict")  # which has the inputs of 0.1
    assert isinstance(base.config.encoder, PairwiseConfig)
    config = dataclasses.replace(
        base.config.encoder,
        channels=CHANNELS_OF_ANY_TABLE,
        statistics=STATISTICS_OF_ANY_TABLE,
        confounding_head=True,
    )
    assert config.can_grow_from(base.config.encoder)
    with torch.random.fork_rng(devices=[]):
        model = ArrowModel(ArrowConfig(config)).eval()
    weights = {name: model.grown(name, tensor, base.config) for name, tensor in base.state_dict().items()}
    missing, unexpected = model.load_state_dict(weights, strict=False)
    assert all("confounding_head" in name for name in missing)
    assert not unexpected
    values = torch.randn(1, 60, 9, dtype=torch.float64, generator=random_generator())
    with torch.inference_mode():
        before, after = base(values).skeleton_order, model(values).skeleton_order
    assert torch.equal(before.skeleton_logits, after.skeleton_logits)
    assert torch.equal(before.order_scores, after.order_scores)


# Functions


def test_functions_are_uncorrelated_with_mean_zero_and_variance_one() -> None:
    tables = typed_tables(observations=500)
    complete = dataclasses.replace(tables, observed=None)
    functions = Measured(complete, CHANNELS_OF_ANY_TABLE).functions  # (B, N, P, F)
    assert functions.mean(dim=1).abs().max() < 1e-5
    products = torch.einsum("bnpf,bnpg->bpfg", functions, functions) / 500
    for column, levels in enumerate(LEVELS.tolist()):
        count = min(FUNCTIONS, levels - 1) if levels else FUNCTIONS
        expected = torch.diag(torch.tensor([1.0] * count + [0.0] * (FUNCTIONS - count)))
        torch.testing.assert_close(products[:, column], expected.expand(3, -1, -1), atol=2e-3, rtol=0)


def test_hermite_functions_of_normal_scores_are_hermite_polynomials() -> None:
    scores = normal_scores(torch.randn(1, 20_000, 1, generator=random_generator()))
    first, second, third = hermite_functions(scores)[0, :, 0].unbind(-1)
    z = scores[0, :, 0]
    for function, polynomial in ((first, z), (second, z**2 - 1), (third, z**3 - 3 * z)):
        assert torch.corrcoef(torch.stack([function, polynomial]))[0, 1] > 0.999


def test_level_scores_find_what_a_category_says_of_the_others() -> None:
    """Levels with an effect of their own each, in no order: their first scores are those effects."""
    random = np.random.default_rng(0)
    effects = np.array([2.0, -1.0, 0.5, -2.0, 1.0])
    codes = random.integers(5, size=4000)
    effect = effects[codes] + 0.3 * random.normal(size=4000)
    noise = random.normal(size=4000)
    values = torch.tensor(np.stack([codes, effect, noise], axis=1), dtype=torch.float32)[None]
    functions = level_functions(TableBatch(values, levels=torch.tensor([[5, 0, 0]])))
    found = np.corrcoef(functions[0, :, 0, 0].numpy(), effects[codes])[0, 1]
    assert abs(found) > 0.99
    assert not functions[:, :, 1:].any()


def test_leading_eigenvectors_are_those_of_a_decomposition() -> None:
    generator = random_generator()
    basis = torch.linalg.qr(torch.randn(6, 6, generator=generator))[0]
    matrix = basis @ torch.diag(torch.tensor([5.0, 2.0, 0.8, 0.1, 0.05, 0.0])) @ basis.T
    found = leading_eigenvectors(matrix[None], 3)[0]
    torch.testing.assert_close((found.T @ basis[:, :3]).abs(), torch.eye(3), atol=1e-3, rtol=0)


def test_a_function_that_adds_nothing_is_zero() -> None:
    yes_or_no = torch.tensor([0.0, 1.0]).repeat(50)[None, :, None]
    functions = hermite_functions(normal_scores(yes_or_no))
    assert functions[..., 0].abs().min() > 0.5
    assert not functions[..., 1:].any()
    assert not orthogonal(torch.ones(1, 30, 2, 3)).any()


# Holes


def test_holes_are_filled_with_what_the_other_variables_say() -> None:
    generator = random_generator()
    common = torch.randn(1, 500, 1, generator=generator)
    values = (common + 0.3 * torch.randn(1, 500, 6, generator=generator)) / 1.09**0.5
    observed = torch.rand(values.shape, generator=generator) > 0.3
    filled = fill(values, observed)
    assert torch.equal(filled[observed], values[observed])
    error = (filled - values)[~observed].square().mean()
    assert error < 0.25  # the variance is 1, what the common part leaves unexplained is 0.1
    assert filled.abs().max() < 6


def test_filling_stays_bounded_where_columns_are_copies_and_holes_are_many() -> None:
    generator = random_generator()
    values = torch.randn(2, 100, 1, generator=generator).expand(-1, -1, 12).contiguous()
    observed = torch.rand(values.shape, generator=generator) > 0.9
    filled = fill(values, observed)
    assert filled.isfinite().all()
    assert filled.abs().max() < 10


# Signs


def columns_to_turn() -> dict[str, Tensor]:
    generator = random_generator()
    normal = torch.randn(1, 100, 4, generator=generator)
    balanced = torch.tensor([-1.0, 1.0]).repeat(50)[None, :, None]
    return {
        "skewed": normal.exp(),
        "nearly symmetric": normal,
        "a balanced yes or no beside others": torch.cat([balanced, normal + 0.5 * balanced], dim=2),
    }


@pytest.mark.parametrize("name", list(columns_to_turn()))
def test_signs_turn_with_the_column(name: str) -> None:
    values = columns_to_turn()[name]
    values = (values - values.mean(dim=1, keepdim=True)) / values.std(dim=1, keepdim=True)
    for column in range(values.shape[2]):
        negated = values.clone()
        negated[..., column] *= -1
        torch.testing.assert_close(values * signs(values)[:, None], negated * signs(negated)[:, None])


def test_describe_gives_as_many_inputs_as_the_configuration_says() -> None:
    config = small_model().config.encoder
    assert isinstance(config, PairwiseConfig)
    channels, statistics = describe(typed_tables(), config.channels, config.statistics)
    assert channels.shape[-1] * 4 == len(config.cell_inputs())
    assert statistics.shape[-1] == len(config.pair_inputs())
    assert channels.isfinite().all()
    assert statistics.isfinite().all()


def test_intervention_shifts_show_who_moves_whom() -> None:
    """Setting the cause moves the effect; setting the effect leaves the cause where it is."""
    random = np.random.default_rng(1)
    cause = random.normal(size=900)
    regime = np.repeat([0, 1, 2], 300)
    cause[regime == 1] = 3.0 + 0.1 * random.normal(size=300)
    effect = cause + random.normal(size=900)
    effect[regime == 2] = -3.0
    values = torch.tensor(np.stack([cause, effect], axis=1), dtype=torch.float32)[None]
    intervened = torch.tensor(np.stack([regime == 1, regime == 2], axis=1))[None]
    standardized = (values - values.mean(dim=1, keepdim=True)) / values.std(dim=1, keepdim=True)
    _, statistics = describe(
        TableBatch(standardized, intervened=intervened), CHANNELS_OF_ANY_TABLE, ("intervention_shifts",)
    )
    errors = statistics[0, :, :, 2]  # of the second variable where the first was set, in standard errors
    assert errors[0, 1] > 2
    assert errors[1, 0].abs() < errors[0, 1] / 1.5


def test_as_numbers_leaves_complete_numbers_alone() -> None:
    values = torch.randn(2, 30, 3, generator=random_generator())
    assert as_numbers(TableBatch(values), canonical_signs=False).values is values


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_inverses_written_out_are_those_of_the_library(size: int) -> None:
    roots = torch.randn(50, 4, size, size, generator=random_generator(), dtype=torch.float64)
    matrices = roots @ roots.mT + 0.1 * torch.eye(size, dtype=torch.float64)
    factors = torch.linalg.cholesky(matrices)
    torch.testing.assert_close(inverse_of_small_factor(matrices), torch.linalg.inv(factors))
    torch.testing.assert_close(inverse_from_factor(factors), torch.linalg.inv(matrices))
