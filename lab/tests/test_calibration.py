"""Reliability of stated probabilities: hand-made examples, and outcomes drawn from the probabilities."""

import math

import numpy as np
import pytest

from causal_arrow.errors import GraphError
from causal_arrow_lab.benchmarks.calibration import calibration_errors, edge_reliability, pool

CHAIN = np.eye(3, k=1, dtype=bool)


def test_reliability_of_a_hand_made_example() -> None:
    truth = CHAIN
    probabilities = np.array([[0.0, 0.9, 0.1], [0.4, 0.0, 1.0], [0.0, 0.5, 0.0]])
    table = edge_reliability(truth, probabilities, bins=2)
    np.testing.assert_array_equal(table.pairs, [3, 3])
    np.testing.assert_array_equal(table.edges, [0, 2])
    np.testing.assert_allclose(table.mean_probability, [0.5 / 3, 0.8])
    np.testing.assert_allclose(table.edge_frequency, [0, 2 / 3])
    expected_error = 3 / 6 * abs(0.5 / 3 - 0) + 3 / 6 * abs(0.8 - 2 / 3)
    assert table.expected_calibration_error == pytest.approx(expected_error)


def test_calibration_floor_leaves_out_improbable_pairs() -> None:
    probabilities = np.where(CHAIN, 0.6, 0.01)
    assert edge_reliability(CHAIN, probabilities).expected_calibration_error == pytest.approx((2 * 0.4 + 4 * 0.01) / 6)
    assert edge_reliability(CHAIN, probabilities, floor=0.05).expected_calibration_error == pytest.approx(0.4)
    assert math.isnan(edge_reliability(CHAIN, np.zeros((3, 3)), floor=0.05).expected_calibration_error)


def test_pooled_tables_are_the_table_of_all_pairs() -> None:
    generator = np.random.default_rng(7)
    truths = [np.triu(generator.random((5, 5)) < 0.5, 1) for _ in range(2)]
    probabilities = [generator.random((5, 5)) for _ in range(2)]
    pooled = pool(edge_reliability(t, q) for t, q in zip(truths, probabilities, strict=True))
    assert pooled.pairs.sum() == 40
    assert pooled.edges.sum() == truths[0].sum() + truths[1].sum()
    gaps = np.abs(pooled.mean_probability - pooled.edge_frequency)
    assert pooled.expected_calibration_error == pytest.approx(np.nansum(pooled.pairs * gaps) / 40)


def test_probabilities_that_come_true_as_often_as_they_say_have_little_calibration_error() -> None:
    generator = np.random.default_rng(8)
    probabilities = np.triu(generator.random((200, 200)), k=1)
    outcomes = generator.random((200, 200)) < probabilities
    honest = edge_reliability(outcomes, probabilities, floor=0.05).expected_calibration_error
    overconfident = edge_reliability(outcomes, probabilities**0.3, floor=0.05).expected_calibration_error
    assert honest < 0.02
    assert overconfident > 0.2


def test_calibration_refuses_scores_that_are_not_probabilities() -> None:
    with pytest.raises(GraphError, match="between 0 and 1"):
        edge_reliability(CHAIN, 2.0 * CHAIN)


def test_a_method_without_probabilities_has_no_calibration_error() -> None:
    assert all(math.isnan(error) for error in calibration_errors(CHAIN, None).values())
    errors = calibration_errors(CHAIN, np.where(CHAIN, 0.6, 0.01))
    assert errors == {"ece": pytest.approx((2 * 0.4 + 4 * 0.01) / 6), "ece_above_floor": pytest.approx(0.4)}
