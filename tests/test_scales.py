"""On which scale columns are read: what is tried, what is kept, and that the answer says so."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from causal_arrow.discovery.arranged import arrange
from causal_arrow.discovery.estimator import Arrow
from causal_arrow.errors import ConfigurationError
from causal_arrow.graphs.graph_distribution import GraphDistribution
from causal_arrow.tables.reading import read_table
from causal_arrow.tables.scales import MAX_UNCERTAINTY, chosen_reading, log_candidates, readings, with_logarithms
from causal_arrow.tables.table import Table

NAMES = ("a", "b", "c", "d")


def chain(random: np.random.Generator, observations: int = 400, noise: str = "normal") -> np.ndarray:
    """a -> b -> c, and d by itself."""
    values: np.ndarray = getattr(random, noise)(size=(observations, 4))
    values[:, 1] += 1.5 * values[:, 0]
    values[:, 2] += 1.5 * values[:, 1]
    return values


# Candidates


@pytest.mark.parametrize(
    ("law", "expected"),
    [
        (lambda random: random.lognormal(sigma=1.0, size=500), True),
        (lambda random: random.lognormal(mean=7, sigma=0.6, size=500), True),
        (lambda random: random.exponential(size=500), True),
        (lambda random: random.lognormal(sigma=0.1, size=500), False),  # all but symmetric
        (lambda random: random.normal(20, 3, size=500), False),
        (lambda random: random.uniform(1, 2, size=500), False),
        (lambda random: random.normal(size=500), False),
        (lambda random: np.append(random.lognormal(size=499), 0.0), False),  # zero has no logarithm
        (lambda random: -random.lognormal(size=500), True),  # the same variable
        (lambda random: np.full(500, 3.0), False),
    ],
)
def test_skewed_columns_of_one_sign_are_candidates(law: object, expected: bool) -> None:
    column = law(np.random.default_rng(0))  # type: ignore[operator]
    assert log_candidates(column[:, None]).tolist() == [expected]


def test_a_negated_column_is_read_as_the_column_itself() -> None:
    values = np.exp(np.random.default_rng(0).normal(size=(300, 3)))
    values[:, 2] = np.log(values[:, 2])
    assert log_candidates(values).tolist() == log_candidates(-values).tolist() == [True, True, False]
    negated, given = (with_logarithms(some, np.array([True, True, False])) for some in (-values, values))
    np.testing.assert_array_equal(negated[:, :2], given[:, :2])


@pytest.mark.parametrize("unit", [1e-300, 1e-6, 1e6, 1e300])
def test_units_do_not_make_a_candidate(unit: float) -> None:
    random = np.random.default_rng(1)
    columns = np.stack([random.lognormal(size=300), random.normal(10, 1, size=300)], axis=1)
    assert log_candidates(unit * columns).tolist() == [True, False]


def test_missing_values_make_no_column_less_skewed() -> None:
    random = np.random.default_rng(3)
    values = np.stack([random.lognormal(sigma=0.6, size=1000), random.normal(10, 1, size=1000)], axis=1)
    assert Table.of_numbers(values, ["a", "b"]).log_candidates.tolist() == [True, False]
    values[random.random(values.shape) < 0.8] = np.nan
    assert Table.of_numbers(values, ["a", "b"]).log_candidates.tolist() == [True, False]
    values[:, 0] = np.nan
    assert Table.of_numbers(values, ["a", "b"]).log_candidates.tolist() == [False, False]


def test_readings_are_what_the_scale_says() -> None:
    random = np.random.default_rng(2)
    plain, skewed = random.normal(size=(100, 2)), random.lognormal(size=(100, 2))
    both = np.concatenate([plain, skewed], axis=1)

    def tried(values: np.ndarray, scale: str) -> list[list[bool]]:
        return [columns.tolist() for columns in readings(scale, log_candidates(values))]

    assert tried(plain, "auto") == [[False, False]]
    assert tried(both, "auto") == [[False] * 4, [False, False, True, True]]
    assert tried(both, "given") == [[False] * 4]
    assert tried(both, "log") == [[False, False, True, True]]
    with pytest.raises(ConfigurationError, match="Expected scale to be one of auto, given, log, got 'square'"):
        readings("square", log_candidates(both))
    logs = with_logarithms(both, np.array([False, False, True, False]))
    np.testing.assert_array_equal(logs[:, [0, 1, 3]], both[:, [0, 1, 3]])
    np.testing.assert_allclose(np.exp(logs[:, 2]), both[:, 2])


# How sure


def distribution(logit: float, margin: float) -> GraphDistribution:
    """Two variables, adjacent with this logit, the first before the second with this one."""
    return GraphDistribution(np.full((2, 2), logit), np.array([margin, 0.0]))


def test_uncertainty_is_zero_for_certainty_and_a_bit_for_an_unknown_direction() -> None:
    assert float(distribution(60.0, 60.0).uncertainty()) == pytest.approx(0.0, abs=1e-6)
    assert float(distribution(60.0, 0.0).uncertainty()) == pytest.approx(1.0)
    assert float(distribution(-60.0, 0.0).uncertainty()) == pytest.approx(0.0, abs=1e-6)
    # Adjacent with probability ¾, in a certain direction; fewer edges than one count as one.
    quarter = -(0.75 * np.log2(0.75) + 0.25 * np.log2(0.25))
    assert float(distribution(np.log(3.0), 60.0).uncertainty()) == pytest.approx(quarter)
    # Six edges and their order, all certain but for the directions of a tie.
    tie = GraphDistribution(np.full((4, 4), 60.0), np.array([90.0, 60.0, 0.0, 0.0]))
    assert float(tie.uncertainty()) == pytest.approx(1 / 6)
    assert float(distribution(0.0, 0.0).uncertainty()) == pytest.approx(1.5)
    assert GraphDistribution(np.zeros((3, 5, 5)), np.zeros((3, 5))).uncertainty().shape == (3,)


def test_logarithms_count_unless_they_leave_clearly_more_doubt() -> None:
    sure, unsure = distribution(60.0, 3.0), distribution(60.0, 1.0)
    assert float(unsure.uncertainty()) > MAX_UNCERTAINTY * float(sure.uncertainty())
    assert chosen_reading([float(unsure.uncertainty()), float(sure.uncertainty())]) == 1
    assert chosen_reading([float(sure.uncertainty()), float(unsure.uncertainty())]) == 0
    assert chosen_reading([float(sure.uncertainty()), float(sure.uncertainty())]) == 1
    nearly = distribution(60.0, 2.8)
    assert float(sure.uncertainty()) < float(nearly.uncertainty()) < MAX_UNCERTAINTY * float(sure.uncertainty())
    assert chosen_reading([float(sure.uncertainty()), float(nearly.uncertainty())]) == 1
    assert chosen_reading([float(unsure.uncertainty())]) == 0


# Answers


def test_what_acts_by_factors_is_read_on_a_log_scale() -> None:
    logarithms = pd.DataFrame(chain(np.random.default_rng(3)), columns=NAMES)
    table = np.exp(logarithms)
    table["d"] = logarithms["d"]  # one column that has no logarithm
    arrow = Arrow().fit(table)
    assert arrow.answer_.log_columns == ("a", "b", "c")
    pd.testing.assert_frame_equal(arrow.edge_probabilities_, Arrow().fit(logarithms).edge_probabilities_, atol=1e-5)
    (note,) = [finding for finding in arrow.answer_.findings if finding.kind == "log_scale"]
    assert "'a', 'b' and 'c', which are skewed, are analyzed on a log scale" in note.message
    assert json.loads(arrow.to_json())["log_columns"] == ["a", "b", "c"]
    given = Arrow(scale="given").fit(table)
    assert given.answer_.log_columns == ()
    assert not given.edge_probabilities_.equals(arrow.edge_probabilities_)
    assert not [finding for finding in given.answer_.findings if finding.kind == "log_scale"]


@pytest.mark.parametrize("noise", ["exponential", "lognormal"])
def test_what_acts_by_amounts_is_read_as_it_is(noise: str) -> None:
    table = pd.DataFrame(chain(np.random.default_rng(8), noise=noise), columns=NAMES)
    assert log_candidates(table.to_numpy()).any()
    arrow = Arrow().fit(table)
    assert arrow.answer_.log_columns == ()
    assert {(edge.source, edge.target) for edge in arrow.edges_} == {("a", "b"), ("b", "c")}
    pd.testing.assert_frame_equal(arrow.edge_probabilities_, Arrow(scale="given").fit(table).edge_probabilities_)
    assert Arrow(scale="log").fit(table).answer_.log_columns != ()


@pytest.mark.parametrize("noise", ["exponential", "lognormal"])
def test_most_small_tables_of_what_acts_by_amounts_are_read_as_they_are(noise: str) -> None:
    chains = [chain(np.random.default_rng(seed), noise=noise) for seed in range(4, 24)]
    assert sum(Arrow().fit(values).answer_.log_columns == () for values in chains) >= 0.8 * len(chains)


def test_resampled_tables_are_read_as_the_table_was() -> None:
    logarithms = pd.DataFrame(chain(np.random.default_rng(5), 150), columns=NAMES)
    raw = Arrow(scale="log").fit(np.exp(logarithms))
    assert raw.answer_.log_columns == NAMES
    found = raw.stability(n_resamples=4, random_state=0, progress=False)
    arranged = arrange(read_table(np.exp(logarithms)))
    draws = np.random.default_rng(0).integers(150, size=(4, 150))
    resampled = [pd.DataFrame(np.log(arranged.values[draw]), columns=list(arranged.names)) for draw in draws]
    answers = [Arrow(scale="given").fit(each).edge_probabilities_.loc[list(NAMES), list(NAMES)] for each in resampled]
    np.testing.assert_allclose(found.mean_probabilities, sum(answers) / 4, atol=1e-4)


@pytest.mark.parametrize("scale", ["auto", "log"])
def test_shuffling_a_skewed_table_changes_nothing(scale: str) -> None:
    random = np.random.default_rng(6)
    table = pd.DataFrame(np.exp(chain(random, 200)), columns=NAMES)
    shuffled = table.sample(frac=1, random_state=1)[["c", "a", "d", "b"]]
    first, second = Arrow(scale=scale).fit(table), Arrow(scale=scale).fit(shuffled)
    assert set(first.answer_.log_columns) == set(second.answer_.log_columns)
    pd.testing.assert_frame_equal(
        first.edge_probabilities_, second.edge_probabilities_.loc[list(NAMES), list(NAMES)], check_exact=True
    )
