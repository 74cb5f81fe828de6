"""Tables as numbers and statistics: what cannot matter does not, what is known is kept, holes are filled."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from scipy import stats

from causal_arrow.batches import TableBatch
from causal_arrow.graphs.graph_distribution import GraphDistribution
from causal_arrow.network import arrays
from causal_arrow.network.basis import (
    FUNCTIONS,
    as_numbers,
    fill,
    hermite_functions,
    inverse_of_small_factor,
    leading_eigenvectors,
    level_functions,
    normal_scores,
    orthogonal,
    signs,
    standardized,
    standardized_numbers,
)
from causal_arrow.network.pairwise import PairwiseConfig
from causal_arrow.network.statistics import (
    CHANNELS_OF_0_1,
    CHANNELS_OF_ANY_TABLE,
    STATISTICS_OF_0_1,
    Measured,
    channel_names,
    correlation,
    described,
    precisions,
    statistic_names,
)
from small_network import ANY_TABLE, distance, random_weights

LEVELS = np.array([0, 2, 3, 0, 5, 0, 2, 9])
"""Of the columns of `typed_tables`: numbers, yes or no, and categories."""


def typed_tables(tables: int = 3, observations: int = 200, seed: int = 0) -> TableBatch:
    """Related columns, some of them cut into levels, with holes and interventions."""
    random = np.random.default_rng(seed)
    variables = len(LEVELS)
    weights = random.normal(size=(tables, variables, variables))
    values = random.normal(size=(tables, observations, variables)) @ weights
    for column, levels in enumerate(LEVELS.tolist()):
        if levels:
            cuts = np.quantile(values[..., column], np.linspace(0, 1, levels + 1)[1:-1])
            values[..., column] = np.digitize(values[..., column], cuts)
    observed = random.random(values.shape) > 0.2
    intervened = random.random(values.shape) < 0.1
    return TableBatch(values, observed, intervened, np.broadcast_to(LEVELS, (tables, variables)))


def answer(tables: TableBatch, canonical_signs: bool = True) -> GraphDistribution:
    """By a network whose weights are random everywhere, so that every input counts."""
    return random_weights(dataclasses.replace(ANY_TABLE, canonical_signs=canonical_signs)).read(tables)


def describe(values: np.ndarray, channels: Any, statistics: Any, **parts: Any) -> tuple[np.ndarray, np.ndarray]:
    """The inputs of a network: channels (B, C, N, P) and statistics (B, S, P, P)."""
    return described(Measured(TableBatch(values, **parts), channels), statistics)


# Standardization


def numbers(dtype: Any = np.float64, observations: int = 60) -> np.ndarray:
    random = np.random.default_rng(0)
    return (random.normal(size=(2, observations, 5)) @ random.normal(size=(5, 5)) + 3).astype(dtype)


def test_standardized_columns_have_mean_zero_and_standard_deviation_one() -> None:
    for dtype in (np.float32, np.float64):
        found = standardized(numbers(dtype))
        assert found.dtype == np.float32
        assert np.abs(found.mean(axis=1)).max() < 1e-6
        assert np.abs(found.std(axis=1, ddof=1) - 1).max() < 1e-6


@pytest.mark.parametrize("unit", [1e-300, 1e-150, 1e-20, 1e-8, 1e-3, 1e3, 1e8, 1e20, 1e150, 1e300])
def test_the_units_of_a_column_do_not_matter(unit: float) -> None:
    assert np.abs(standardized(numbers() * unit) - standardized(numbers())).max() < 1e-6


@pytest.mark.parametrize("unit", [1e-30, 1e-8, 1e8, 1e30])
def test_the_units_of_a_column_do_not_matter_in_single_precision(unit: float) -> None:
    values = numbers(np.float32)
    assert np.abs(standardized(values * np.float32(unit)) - standardized(values)).max() < 1e-5


@pytest.mark.parametrize("power", [-400, -100, -27, -1, 1, 60, 500, 900])
def test_a_power_of_two_as_unit_changes_no_bit(power: int) -> None:
    assert np.array_equal(standardized(np.ldexp(numbers(), power)), standardized(numbers()))


@pytest.mark.parametrize("constant", [0.0, 41.0, -0.1, 1e-30, 1e30, 1 / 3, 1e-300, 1e150])
def test_a_constant_becomes_zeros(constant: float) -> None:
    for dtype in (np.float32, np.float64) if 1e-38 < abs(constant) < 1e38 else (np.float64,):
        values = numbers(dtype, observations=1234)
        values[:, :, 2] = constant
        found = standardized(values)
        assert not found[:, :, 2].any()
        assert np.isfinite(found).all()


def test_a_small_spread_next_to_a_large_mean_is_not_taken_for_a_constant() -> None:
    assert np.abs(standardized(numbers() + 1e6) - standardized(numbers())).max() < 1e-5
    assert np.abs(standardized(1e-9 * numbers() + 1.0) - standardized(numbers())).max() < 1e-5


def test_only_observed_values_count_for_mean_and_standard_deviation() -> None:
    values, observed = numbers(), np.random.default_rng(1).random((2, 60, 5)) > 0.3
    found = standardized(np.where(observed, values, 1e9), observed)
    assert not found[~observed].any()
    column = values[0, observed[0, :, 2], 2]
    expected = (column - column.mean()) / column.std(ddof=1)
    np.testing.assert_allclose(found[0, observed[0, :, 2], 2], expected, atol=1e-6)


def test_long_columns_keep_their_digits() -> None:
    """Sums over observations are added up in float64: float32 would lose four digits."""
    column = (1 + 1e-3 * np.random.default_rng(0).normal(size=300_000)).astype(np.float32)
    exact = column.astype(np.float64)
    assert arrays.mean(column[None, :, None], 1).item() == pytest.approx(exact.mean(), rel=1e-7)
    assert arrays.std(column[None, :, None], 1).item() == pytest.approx(exact.std(ddof=1), rel=1e-3)


# Laws of the whole network


def test_renumbering_levels_changes_nothing() -> None:
    tables, random = typed_tables(), np.random.default_rng(1)
    values = tables.values.copy()
    for column, levels in enumerate(LEVELS.tolist()):
        if levels:
            values[..., column] = random.permutation(levels)[values[..., column].astype(int)]
    assert not np.array_equal(values, tables.values)
    assert distance(answer(tables), answer(dataclasses.replace(tables, values=values))) < 1e-4


def test_a_column_and_its_negative_are_one_variable() -> None:
    tables = typed_tables()
    other = dataclasses.replace(tables, values=np.where(LEVELS > 0, tables.values, -tables.values))
    assert distance(answer(tables), answer(other)) < 1e-4
    # Without canonical signs it would matter: the law is one that can fail.
    assert distance(answer(tables, canonical_signs=False), answer(other, canonical_signs=False)) > 1e-2


def test_units_of_numbers_do_not_matter_next_to_categories_and_holes() -> None:
    tables = typed_tables()
    values = np.where(LEVELS > 0, tables.values, 1e6 * tables.values - 40.0)
    assert distance(answer(tables), answer(dataclasses.replace(tables, values=values))) < 1e-4


def test_what_lies_under_a_hole_cannot_be_seen() -> None:
    tables = typed_tables()
    values = np.where(tables.observed, tables.values, 1.0)
    assert distance(answer(tables), answer(dataclasses.replace(tables, values=values))) == 0


@pytest.mark.parametrize("part", ["observed", "intervened", "levels"])
def test_every_part_of_a_table_is_read(part: str) -> None:
    tables = typed_tables()
    without = dataclasses.replace(tables, **{part: None})
    assert distance(answer(tables), answer(without)) > 1e-2


def test_the_parts_that_say_nothing_change_nothing() -> None:
    values = np.random.default_rng(0).normal(size=(2, 100, 5))
    nothing = np.zeros(values.shape, dtype=bool)
    spelled_out = TableBatch(values, ~nothing, nothing, np.zeros((2, 5), dtype=int))
    assert distance(answer(TableBatch(values)), answer(spelled_out)) < 1e-4


def test_order_of_observations_and_variables_only_relabels() -> None:
    tables, random = typed_tables(), np.random.default_rng(3)
    rows, columns = random.permutation(200), random.permutation(8)
    shuffled = TableBatch(
        tables.values[:, rows][:, :, columns],
        tables.observed[:, rows][:, :, columns],
        tables.intervened[:, rows][:, :, columns],
        tables.levels[:, columns],
    )
    given, other = answer(tables), answer(shuffled)
    for table in range(3):
        assert distance(given[table].rearranged(columns), other[table]) < 1e-4


def test_reading_in_chunks_changes_only_the_rounding() -> None:
    network = random_weights(ANY_TABLE)
    assert distance(network.read(typed_tables()), network.read(typed_tables(), 37)) < 1e-4


# Functions


def test_functions_are_uncorrelated_with_mean_zero_and_variance_one() -> None:
    complete = dataclasses.replace(typed_tables(observations=500), observed=None)
    complete = dataclasses.replace(complete, values=standardized_numbers(complete))
    functions = np.stack(Measured(complete, CHANNELS_OF_ANY_TABLE).functions, axis=-1)  # (B, N, P, F)
    assert np.abs(functions.mean(axis=1)).max() < 1e-5
    products = np.einsum("bnpf,bnpg->bpfg", functions, functions) / 500
    for column, levels in enumerate(LEVELS.tolist()):
        count = min(FUNCTIONS, levels - 1) if levels else FUNCTIONS
        expected = np.diag([1.0] * count + [0.0] * (FUNCTIONS - count))
        np.testing.assert_allclose(products[:, column], np.broadcast_to(expected, (3, 3, 3)), atol=2e-3)


def test_hermite_functions_of_normal_scores_are_hermite_polynomials() -> None:
    scores = normal_scores(np.random.default_rng(0).normal(size=(1, 20_000, 1)))
    z = scores[0, :, 0]
    polynomials = (z, z**2 - 1, z**3 - 3 * z)
    for function, polynomial in zip(hermite_functions(scores), polynomials, strict=True):
        assert np.corrcoef(function[0, :, 0], polynomial)[0, 1] > 0.999


def test_level_scores_find_what_a_category_says_of_the_others() -> None:
    """Levels that each have an effect, in no order: their first scores are those effects."""
    random = np.random.default_rng(0)
    effects = np.array([2.0, -1.0, 0.5, -2.0, 1.0])
    codes = random.integers(5, size=4000)
    effect = effects[codes] + 0.3 * random.normal(size=4000)
    values = np.stack([codes, effect, random.normal(size=4000)], axis=1).astype(np.float32)[None]
    functions = level_functions(TableBatch(values, levels=np.array([[5, 0, 0]])))
    assert abs(np.corrcoef(functions[0][0, :, 0], effects[codes])[0, 1]) > 0.99
    assert not any(function[:, :, 1:].any() for function in functions)


def test_leading_eigenvectors_are_those_of_a_decomposition() -> None:
    basis = np.linalg.qr(np.random.default_rng(0).normal(size=(6, 6)))[0]
    matrix = basis @ np.diag([5.0, 2.0, 0.8, 0.1, 0.05, 0.0]) @ basis.T
    found = leading_eigenvectors(matrix[None], 3)[0]
    np.testing.assert_allclose(np.abs(found.T @ basis[:, :3]), np.eye(3), atol=1e-3)


def test_a_function_that_adds_nothing_is_zero() -> None:
    yes_or_no = np.tile([0.0, 1.0], 50)[None, :, None]
    first, *others = hermite_functions(normal_scores(yes_or_no))
    assert np.abs(first).min() > 0.5
    assert not np.any(others)
    assert not np.any(orthogonal(3 * [np.ones((1, 30, 2))]))


# Holes


def test_holes_are_filled_with_what_the_other_variables_say() -> None:
    random = np.random.default_rng(0)
    values = (random.normal(size=(1, 500, 1)) + 0.3 * random.normal(size=(1, 500, 6))) / 1.09**0.5
    observed = random.random(values.shape) > 0.3
    filled = fill(values, observed)
    assert np.array_equal(filled[observed], values[observed])
    error = np.square(filled - values)[~observed].mean()
    assert error < 0.25  # the variance is 1, what the common part leaves unexplained is 0.1
    assert np.abs(filled).max() < 6


def test_filling_stays_bounded_where_columns_are_copies_and_holes_are_many() -> None:
    random = np.random.default_rng(0)
    values = np.repeat(random.normal(size=(2, 100, 1)), 12, axis=2)
    filled = fill(values, random.random(values.shape) > 0.9)
    assert np.isfinite(filled).all()
    assert np.abs(filled).max() < 10


# Signs


def columns_to_turn() -> dict[str, np.ndarray]:
    normal = np.random.default_rng(0).normal(size=(1, 100, 4))
    balanced = np.tile([-1.0, 1.0], 50)[None, :, None]
    return {
        "skewed": np.exp(normal),
        "nearly symmetric": normal,
        "a balanced yes or no next to others": np.concatenate([balanced, normal + 0.5 * balanced], axis=2),
    }


@pytest.mark.parametrize("name", list(columns_to_turn()))
def test_signs_turn_with_the_column(name: str) -> None:
    values = standardized(columns_to_turn()[name])
    for column in range(values.shape[2]):
        negated = values.copy()
        negated[..., column] *= -1
        np.testing.assert_allclose(values * signs(values)[:, None], negated * signs(negated)[:, None], rtol=1e-6)


# Statistics


def test_describe_gives_as_many_inputs_as_the_configuration_says() -> None:
    tables = typed_tables()
    tables = dataclasses.replace(tables, values=standardized_numbers(tables))
    channels, statistics = described(Measured(tables, ANY_TABLE.channels), ANY_TABLE.statistics)
    assert channels.shape[1] * 4 == len(ANY_TABLE.cell_inputs())
    assert statistics.shape[1] == len(ANY_TABLE.pair_inputs())
    for part in (channels, statistics):
        assert np.isfinite(part).all()
        assert part.dtype == np.float32


def test_statistics_have_their_declared_size_and_reasonable_scale() -> None:
    config = PairwiseConfig()
    data = standardized(
        np.random.default_rng(0).normal(size=(2, 500, 20)) @ np.random.default_rng(1).normal(size=(20, 20))
    )
    channels, pairs = describe(data, config.channels, config.statistics)
    assert channels.shape == (2, len(channel_names(config.channels)), 500, 20)
    assert pairs.shape == (2, len(statistic_names(config.channels, config.statistics)), 20, 20)
    assert np.abs(pairs).max() < 25


def test_normal_scores_are_quantiles_of_ranks() -> None:
    data = np.random.default_rng(0).normal(size=(2, 200, 4))
    data[:, :, 0] = data[:, :, 0].round()  # ties get their mean rank
    scores = normal_scores(data)
    for table in range(2):
        for variable in range(4):
            expected = stats.norm.ppf((stats.rankdata(data[table, :, variable]) - 0.5) / 200)
            np.testing.assert_allclose(scores[table, :, variable], expected / expected.std(ddof=1), atol=1e-6)


def test_partial_correlations_are_those_of_regression_residuals() -> None:
    random = np.random.default_rng(0)
    values = standardized(random.normal(size=(1, 300, 5)) @ random.normal(size=(5, 5)))[0].astype(np.float64)
    precision = precisions(correlation(values.T @ values))[-1]  # hardly any ridge
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
    random = np.random.default_rng(0)
    cause = random.normal(size=(1000, 1))
    for noise in (1e-1, 1e-2, 1e-3):
        effect = cause + noise * random.normal(size=(1000, 1))
        data = standardized(np.concatenate([cause, effect], axis=1)[None])[0].astype(np.float64)
        variance = 1 / precisions(correlation(data.T @ data))[-1, 0, 0]
        assert abs(variance / noise**2 - 1) < 0.15


def test_residual_channels_do_not_correlate_with_the_other_variables() -> None:
    random = np.random.default_rng(0)
    data = standardized(random.normal(size=(1, 400, 5)) @ random.normal(size=(5, 5)))
    channels, _ = describe(data, CHANNELS_OF_0_1, STATISTICS_OF_0_1)
    cross = channels[0, -1].T @ data[0] / 400  # the residuals at the smaller ridge
    off_diagonal = ~np.eye(5, dtype=bool)
    assert np.abs(cross[off_diagonal]).max() < 0.05
    assert np.abs(np.diagonal(cross)).min() > np.abs(cross[off_diagonal]).max()


def test_intervention_shifts_show_who_moves_whom() -> None:
    """An intervention on the cause moves the effect; one on the effect leaves the cause where it is."""
    random = np.random.default_rng(1)
    cause = random.normal(size=900)
    regime = np.repeat([0, 1, 2], 300)
    cause[regime == 1] = 3.0 + 0.1 * random.normal(size=300)
    effect = cause + random.normal(size=900)
    effect[regime == 2] = -3.0
    data = standardized(np.stack([cause, effect], axis=1)[None])
    intervened = np.stack([regime == 1, regime == 2], axis=1)[None]
    _, statistics = describe(data, CHANNELS_OF_ANY_TABLE, ("intervention_shifts",), intervened=intervened)
    errors = statistics[0, 2]  # of the second variable where the first was intervened on, in standard errors
    assert errors[0, 1] > 2
    assert abs(errors[1, 0]) < errors[0, 1] / 1.5


def test_as_numbers_leaves_complete_numbers_alone() -> None:
    values = np.random.default_rng(0).normal(size=(2, 30, 3))
    assert as_numbers(TableBatch(values), canonical_signs=False).values is values


# Arrays


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_inverses_written_out_are_those_of_the_library(size: int) -> None:
    roots = np.random.default_rng(0).normal(size=(50, 4, size, size))
    matrices = roots @ roots.swapaxes(-1, -2) + 0.1 * np.eye(size)
    np.testing.assert_allclose(
        inverse_of_small_factor(matrices), np.linalg.inv(np.linalg.cholesky(matrices)), atol=1e-8
    )


@pytest.mark.parametrize("size", [1, 2, 47, 48, 49, 97, 200])
def test_inverses_by_halves_are_those_of_the_library(size: int) -> None:
    roots = np.random.default_rng(0).normal(size=(2, 3, size, size))
    matrices = roots @ roots.swapaxes(-1, -2) / size + 0.1 * np.eye(size)
    np.testing.assert_allclose(arrays.inverse(matrices), np.linalg.inv(matrices), atol=1e-9)


def test_a_matrix_that_is_not_positive_has_no_inverse() -> None:
    assert np.isnan(arrays.inverse(-np.eye(3)[None])).all()


def test_quantiles_are_those_of_the_normal_law_and_symmetric() -> None:
    for count in (2, 3, 50, 401):
        table = arrays.quantile_table(count)[1:]
        np.testing.assert_allclose(table, stats.norm.ppf(np.arange(1, 2 * count) / (2 * count)), atol=1e-13)
        assert np.array_equal(table, -table[::-1])
