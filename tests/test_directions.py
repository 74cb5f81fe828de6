"""Tempered directions: what a temperature changes and what it leaves, and when a table gets which."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from causal_arrow import Answer, Knowledge, Settings, discover, read_table
from causal_arrow.discovery.pipeline import BINARY_FACTOR, TEMPERATURE, direction_temperature
from causal_arrow.discovery.settings import DIRECTIONS
from causal_arrow.discovery.summary import is_first_by_name, suggestion, suggestion_sentence
from causal_arrow.discovery.uncertainty import edge_stability
from causal_arrow.errors import COMMAND_LINE, ConfigurationError
from causal_arrow.graphs.graph_distribution import GraphDistribution

quietly = pytest.mark.filterwarnings("ignore::causal_arrow.errors.ArrowWarning")


def random_answer(seed: int, temperature: float, variables: int = 6) -> Answer:
    random = np.random.default_rng(seed)
    logits = 2 * random.normal(size=(variables, variables))
    distribution = GraphDistribution(logits + logits.T, 3 * random.normal(size=variables))
    names = tuple(f"x{j}" for j in range(variables))
    return Answer(names, distribution, directions="tempered", direction_temperature=temperature)


def frame(binary: int, numbers: int) -> pd.DataFrame:
    random = np.random.default_rng(binary)
    columns = {f"b{j}": random.integers(0, 2, 100) for j in range(binary)}
    return pd.DataFrame({**columns, **{f"n{j}": random.normal(size=100) for j in range(numbers)}})


@pytest.mark.parametrize("seed", range(20))
def test_the_graph_without_knowledge_stays_whatever_the_temperature(seed: int) -> None:
    tempered = random_answer(seed, temperature=1.0 + seed)
    assert np.array_equal(tempered.adjacency, tempered.refine(directions="network").adjacency)
    assert tempered.order == tempered.refine(directions="network").order


@pytest.mark.parametrize("seed", range(5))
def test_log_odds_of_directions_are_divided_and_adjacencies_stay(seed: int) -> None:
    tempered = random_answer(seed, temperature=3.0)
    network = tempered.refine(directions="network")
    np.testing.assert_allclose(tempered.skeleton_probabilities, network.skeleton_probabilities, atol=1e-12)
    by_ends = {(edge.source, edge.target): edge for edge in network.edges}
    for edge in tempered.edges:
        odds = edge.direction_probability / (1 - edge.direction_probability)
        assert np.log(odds) == pytest.approx(by_ends[edge.source, edge.target].order_margin / 3.0, abs=1e-9)


def test_knowledge_still_decides_directions() -> None:
    answer = random_answer(1, temperature=5.0).refine(knowledge=Knowledge(tiers=[["x3"], ["x1", "x0"]]))
    assert not answer.adjacency[[1, 0], 3].any()
    assert answer.edge_probabilities[1, 3] == 0


@quietly
def test_the_temperature_grows_with_the_share_of_columns_of_two_values() -> None:
    temperatures = [direction_temperature(read_table(frame(binary, 4 - binary))) for binary in range(5)]
    assert temperatures == sorted(set(temperatures))
    assert temperatures[0] == TEMPERATURE
    assert temperatures[-1] == pytest.approx(TEMPERATURE * BINARY_FACTOR)


@quietly
def test_units_signs_names_of_levels_and_missing_cells_leave_the_temperature() -> None:
    table = frame(2, 2)
    renamed = table.assign(b0=np.where(table.b0 == 1, "yes", "no"), b1=-7.0 * table.b1, n0=1e6 * table.n0)
    renamed.loc[::7, "b1"] = np.nan
    assert direction_temperature(read_table(renamed)) == direction_temperature(read_table(table))


@quietly
def test_tempered_scores_are_those_of_the_network_divided_by_the_temperature() -> None:
    table = frame(1, 3)
    tempered, network = (discover(table, directions=each).answer for each in DIRECTIONS)
    assert tempered.directions == "tempered"
    assert tempered.direction_temperature == pytest.approx(TEMPERATURE * BINARY_FACTOR ** (1 / 4))
    np.testing.assert_allclose(
        network.order_scores, tempered.order_scores * tempered.direction_temperature, rtol=1e-6, atol=1e-6
    )
    with pytest.raises(ConfigurationError, match="Expected directions to be one of tempered, network"):
        Settings(directions="flat")


def test_a_saved_answer_keeps_its_directions_and_an_older_one_has_those_of_the_network() -> None:
    answer = random_answer(2, temperature=2.5)
    saved = json.loads(json.dumps(answer.to_dict()))
    again = Answer.from_dict(saved)
    assert again.directions == "tempered"
    np.testing.assert_allclose(again.edge_probabilities, answer.edge_probabilities, atol=1e-6)
    for key in ("directions", "direction_temperature"):
        del saved[key]
    old = Answer.from_dict(saved)
    np.testing.assert_allclose(
        old.edge_probabilities, answer.refine(directions="network").edge_probabilities, atol=1e-6
    )


def test_resampled_tables_are_tempered_as_the_answer_is() -> None:
    answer = random_answer(3, temperature=4.0)
    stability = edge_stability(answer, [answer.distribution])
    np.testing.assert_allclose(stability.mean_probabilities, answer.edge_probabilities)


# Knowledge that names of columns suggest


def answer_along(names: str, **fields: object) -> Answer:
    """Each variable causes the next, with certainty."""
    p = len(names.split())
    logits = np.where(np.abs(np.subtract.outer(range(p), range(p))) == 1, 10.0, -10.0)
    return Answer(tuple(names.split()), GraphDistribution(logits, -5.0 * np.arange(p)), **fields)


@pytest.mark.parametrize("name", ["age", "Age", "SEX", "birth_year", "BirthYear", "race/ethnicity", "year 2", "region"])
def test_names_that_say_that_nothing_here_causes_them(name: str) -> None:
    assert is_first_by_name(name)


@pytest.mark.parametrize("name", ["wage", "birthweight", "birth weight", "age_at_death", "page", "regional_gdp", "x1"])
def test_names_that_do_not(name: str) -> None:
    assert not is_first_by_name(name)


def test_tiers_are_suggested_where_arrows_point_into_columns_that_come_first_and_they_turn_them() -> None:
    answer = answer_along("wage age smokes sex")
    assert suggestion_sentence(answer) == (
        "By their names, nothing else in the table causes 'age' and 'sex', but 2 arrows point into them. "
        "To turn them around, give knowledge={'tiers': [['age', 'sex'], ['*']]}."
    )
    assert suggestion_sentence(answer, COMMAND_LINE).endswith("add --tiers 'age, sex; *'.")
    turned = answer.refine(knowledge=Knowledge(tiers="age, sex; *"))
    assert np.array_equal(turned.adjacency[[1, 3]], (answer.adjacency | answer.adjacency.T)[[1, 3]])
    assert suggestion(turned) is None


def test_where_the_knowledge_has_tiers_roots_are_suggested() -> None:
    answer = answer_along("wage age smokes").refine(knowledge=Knowledge(tiers=[["wage"], ["smokes"]]))
    assert suggestion_sentence(answer, COMMAND_LINE).endswith("To rule it out, add --roots age.")


def test_nothing_is_suggested_against_required_edges_or_without_arrows() -> None:
    assert suggestion(answer_along("wage age").refine(knowledge=Knowledge(required=["wage -> age"]))) is None
    assert suggestion(answer_along("age wage sells")) is None


def test_a_name_that_a_text_of_tiers_cannot_hold_is_suggested_as_a_root() -> None:
    names = ("wage", "age, years")
    answer = Answer(names, GraphDistribution(np.full((2, 2), 9.0), np.array([5.0, 0.0])))
    assert suggestion_sentence(answer, COMMAND_LINE).endswith("""add --roots '"age, years"'.""")
