"""What to set or to measure next: responses, information, choices together, what experiments teach, words."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

from causal_arrow.discovery.answer import Answer
from causal_arrow.discovery.effects.experiments import (
    ExperimentPlan,
    Responses,
    as_standardized,
    expected_responses,
    found_slopes,
    knowledge_from,
    plan_experiments,
)
from causal_arrow.discovery.estimator import Arrow
from causal_arrow.errors import ArrowError
from causal_arrow.graphs.dag import transitive_closure
from causal_arrow.graphs.graph_distribution import GraphDistribution
from causal_arrow.graphs.knowledge import Knowledge
from causal_arrow.tables.table import Column, Table

mpl.use("Agg")

SURE = 30.0  # log-odds

Run = Callable[..., tuple[int, str, str]]


def answer_with(
    edges: list[tuple[int, int]], names: str, hidden: np.ndarray | None = None, **settings: object
) -> Answer:
    """An answer that is sure of which variables are adjacent and has no idea of the order."""
    skeleton = np.full((len(names), len(names)), -SURE)
    for j, k in edges:
        skeleton[j, k] = skeleton[k, j] = SURE
    distribution = GraphDistribution(skeleton, np.zeros(len(names)), hidden)
    return Answer(tuple(names), distribution, **settings)


def planned(answer: Answer, table: Table, count: int = 2000, **options: object) -> ExperimentPlan:
    graphs = answer.sample(count, np.random.default_rng(0)).graphs
    return plan_experiments(answer, table, graphs, random=np.random.default_rng(0), **options)


@pytest.fixture
def two_pairs() -> Table:
    """a and b go together, so do c and d, and nothing else does."""
    random = np.random.default_rng(0)
    a, c = random.normal(size=(2, 500))
    values = np.stack([a, a + random.normal(size=500), c, c + random.normal(size=500)], axis=1)
    return Table.of_numbers(values, list("abcd"))


PAIRS = [(0, 1), (2, 3)]


# What experiments would show


def test_expected_responses_are_the_total_effects_of_the_graph() -> None:
    lab = pytest.importorskip("causal_arrow_lab.benchmarks.effects", reason="needs equations of the lab")
    random = np.random.default_rng(1)
    equations = lab.draw_equations("linear", 7, random)
    values = equations.table_values(50_000, random)
    table = Table.of_numbers(values, [f"v{place}" for place in range(7)])
    found = expected_responses(equations.adjacency[None], as_standardized(table), 100).sizes[0]
    for t, y in itertools.permutations(range(7), 2):
        assert found[t, y] == pytest.approx(equations.true_effect(t, y, random), abs=0.03)
    assert not found[~transitive_closure(equations.adjacency)].any()


def test_without_a_path_there_is_no_response_whatever_the_rounding() -> None:
    random = np.random.default_rng(4)
    graphs = np.triu(random.random((50, 12, 12)) < 0.4, 1)
    values = random.standard_normal((100, 12)) @ random.standard_normal((12, 12))
    values = (values - values.mean(axis=0)) / values.std(axis=0)
    sizes = expected_responses(graphs, values, 100).sizes
    np.testing.assert_array_equal(sizes != 0, transitive_closure(graphs))


def test_probabilities_of_what_is_seen_are_those_of_simulated_experiments() -> None:
    random = np.random.default_rng(2)
    responses = Responses(np.array([[[0.0, 0.25], [0.0, 0.0]]]), table_observations=400, observations=100)
    slopes = 0.25 + random.normal(size=200_000) * np.sqrt(1 / 100 + 1 / 400)
    limit = 2.5758 / 10
    expected = [(slopes < -limit).mean(), (np.abs(slopes) <= limit).mean(), (slopes > limit).mean()]
    np.testing.assert_allclose(responses.outcomes(0)[0, 1], expected, atol=0.005)
    assert responses.outcomes(0)[0, 0].max() == 1  # what is set tells nothing of itself


def test_categories_and_holes_become_numbers_whatever_the_names_of_levels() -> None:
    random = np.random.default_rng(3)
    level = random.integers(3, size=300)
    value = np.array([0.0, 3.0, 1.0])[level] + random.normal(size=300)
    value[:20] = np.nan
    columns = (Column("site", "category", ("a", "b", "c")), Column("value"))
    one, other = (
        as_standardized(Table(np.stack([np.array(codes)[level], value], axis=1), columns))
        for codes in ([0.0, 1.0, 2.0], [2.0, 0.0, 1.0])
    )
    assert abs(np.corrcoef(one[:, 0], one[:, 1])[0, 1]) > 0.6
    np.testing.assert_allclose(np.abs(one.T @ one), np.abs(other.T @ other), rtol=1e-4)


# What they tell


def test_setting_either_end_of_a_strong_edge_tells_its_direction_and_setting_another_tells_nothing(
    two_pairs: Table,
) -> None:
    plan = planned(answer_with(PAIRS, "abcd"), two_pairs)
    assert plan.doubt == pytest.approx(2, abs=0.01)
    for each in plan.experiments:
        assert each.gain == pytest.approx(1, abs=0.03)
        assert each.settles == ((("a", "b"),) if each.name in "ab" else (("c", "d"),))


def test_the_gain_is_the_mutual_information_of_responses_and_graphs() -> None:
    """Against an enumeration for two variables: the states of the pair, the outcomes of one test."""
    random = np.random.default_rng(4)
    a = random.normal(size=80)
    table = Table.of_numbers(np.stack([a, 0.2 * a + random.normal(size=80)], axis=1), list("ab"))
    answer = answer_with([(0, 1)], "ab")
    graphs = answer.sample(500, np.random.default_rng(0)).graphs
    plan = plan_experiments(answer, table, graphs, candidates=["a"], rows=40, random=random)
    responses = expected_responses(graphs, as_standardized(table), 40)
    forward = graphs[:, 0, 1]
    shown = responses.outcomes(0)[:, 1]  # (K, 3)
    joint = np.stack([shown[forward].sum(axis=0), shown[~forward].sum(axis=0)]) / len(graphs)
    independent = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    assert plan.best.gain == pytest.approx(float((joint * np.log2(joint / independent)).sum()), rel=1e-9)
    assert 0.01 < plan.best.gain < 0.5


def test_more_observations_tell_more() -> None:
    random = np.random.default_rng(5)
    a = random.normal(size=300)
    table = Table.of_numbers(np.stack([a, 0.3 * a + random.normal(size=300)], axis=1), list("ab"))
    gains = [planned(answer_with([(0, 1)], "ab"), table, rows=m).best.gain for m in (10, 50, 250)]
    assert gains == sorted(gains)
    assert gains[0] < 0.3 < gains[2]


def test_two_experiments_together_are_about_different_pairs(two_pairs: Table) -> None:
    plan = planned(answer_with(PAIRS, "abcd"), two_pairs, budget=4)
    chosen = [each.name for each in plan.batch]
    assert {chosen[0] in "ab", chosen[1] in "ab"} == {True, False}
    assert [each.gain for each in plan.batch[:2]] == pytest.approx([1, 1], abs=0.03)
    assert sum(each.gain for each in plan.batch[2:]) < 0.05
    assert "Further experiments are expected to add almost nothing." in plan.sentence


def test_shuffling_the_variables_shuffles_the_plan(two_pairs: Table) -> None:
    answer = answer_with(PAIRS, "abcd", knowledge=Knowledge(forbidden=["b -> a"]))
    graphs = answer.sample(300, np.random.default_rng(0)).graphs
    places = np.array([2, 0, 3, 1])
    names = "".join("abcd"[place] for place in places)
    turned = [(int(np.argsort(places)[j]), int(np.argsort(places)[k])) for j, k in PAIRS]
    shuffled = Table.of_numbers(two_pairs.values[:, places], list(names))
    one = plan_experiments(answer, two_pairs, graphs, random=np.random.default_rng(0))
    other = plan_experiments(
        answer_with(turned, names), shuffled, graphs[:, places][:, :, places], random=np.random.default_rng(0)
    )
    gains = [{each.name: each.gain for each in plan.experiments} for plan in (one, other)]
    assert gains[0] == pytest.approx(gains[1], abs=1e-6)


def test_what_is_known_needs_no_experiment(two_pairs: Table) -> None:
    known = Knowledge(required=["a -> b", "c -> d"])
    plan = planned(answer_with(PAIRS, "abcd", knowledge=known), two_pairs, budget=2)
    assert max(each.gain for each in plan.experiments) < 1e-6
    assert plan.sentence.startswith("No experiment is expected to be informative about the graph")


def test_what_was_set_already_and_the_environment_are_not_advised(two_pairs: Table) -> None:
    answer = answer_with(PAIRS, "abcd", experiments={"a": 10}, environment="c")
    plan = planned(answer, two_pairs)
    assert {each.name for each in plan.experiments} == {"b", "d"}
    assert plan.left_out == ("a", "c")
    assert "not considered: 'a' and 'c'" in str(plan)
    with pytest.raises(ArrowError, match="cannot be randomized"):
        planned(answer, two_pairs, candidates=["c"])
    everything = answer_with(PAIRS, "abcd", experiments=dict.fromkeys("abcd", 5))
    with pytest.raises(ArrowError, match="No variable is left"):
        planned(everything, two_pairs)


# One target


def test_setting_the_treatment_settles_its_effect_and_setting_what_is_apart_does_not(two_pairs: Table) -> None:
    plan = planned(answer_with(PAIRS, "abcd"), two_pairs, target=("a", "b"), budget=2)
    gains = {each.name: each.gain for each in plan.experiments}
    assert plan.best.name == "a"
    assert gains["a"] > 0.95
    assert gains["b"] > 0.5
    assert max(gains["c"], gains["d"]) < 0.01
    assert sum(each.gain for each in plan.batch) <= 1 + 1e-9
    assert "of the uncertainty" in plan.sentence


def test_the_causes_of_an_outcome_are_a_target_of_their_own(two_pairs: Table) -> None:
    plan = planned(answer_with(PAIRS, "abcd"), two_pairs, target="b")
    gains = {each.name: each.gain for each in plan.experiments}
    assert plan.doubt == pytest.approx(1, abs=0.01)
    assert gains["a"] == pytest.approx(1, abs=0.03)
    assert gains["c"] < 0.01


def test_a_hidden_cause_in_doubt_is_worth_measuring(two_pairs: Table) -> None:
    hidden = np.full((4, 4), -SURE)
    hidden[0, 1] = hidden[1, 0] = 0.0  # even odds
    answer = answer_with(PAIRS, "abcd", hidden, knowledge=Knowledge(required=["a -> b", "c -> d"]))
    plan = planned(answer, two_pairs)
    assert (plan.best.action, plan.best.variables) == ("measure", ("a", "b"))
    assert plan.best.gain == pytest.approx(1, abs=1e-6)
    assert "measure what a and b may both depend on" in plan.sentence
    for_effect = planned(answer, two_pairs, target=("a", "b"))
    # Either settles the graphs in which it is not identified, and randomizing the treatment is surer.
    assert str(for_effect.best) == "randomize a"
    assert {each.action for each in for_effect.experiments if each.gain > 0.4} == {"set", "measure"}
    assert for_effect.best.gain == pytest.approx(0.5, abs=0.05)
    elsewhere = planned(answer, two_pairs, target=("c", "d"))
    assert "measure" not in {each.action for each in elsewhere.experiments}


def test_a_hidden_cause_with_the_environment_is_never_measured(two_pairs: Table) -> None:
    hidden = np.full((4, 4), -SURE)
    hidden[0, 1] = hidden[1, 0] = hidden[2, 3] = hidden[3, 2] = 0.0  # even odds
    answer = answer_with(PAIRS, "abcd", hidden, environment="c")
    plan = planned(answer, two_pairs)
    assert ("a", "b") in {each.variables for each in plan.experiments}
    assert not any("c" in each.variables for each in plan.experiments)
    for_effect = planned(answer, two_pairs, target=("c", "d"))
    assert not any("c" in each.variables for each in for_effect.experiments)


def test_a_hidden_cause_with_what_was_set_in_every_observation_is_never_measured(two_pairs: Table) -> None:
    hidden = np.full((4, 4), -SURE)
    hidden[0, 1] = hidden[1, 0] = hidden[2, 3] = hidden[3, 2] = 0.0  # even odds
    rows = two_pairs.observations
    answer = answer_with(PAIRS, "abcd", hidden, observations=rows, experiments={"c": rows})
    plan = planned(answer, two_pairs)
    assert ("a", "b") in {each.variables for each in plan.experiments}
    assert not any("c" in each.variables for each in plan.experiments)


def test_what_cannot_be_set_is_not_advised(two_pairs: Table) -> None:
    answer = answer_with(PAIRS, "abcd", knowledge=Knowledge(roots=["a"]))
    assert {each.name for each in planned(answer, two_pairs, not_settable=["d"]).experiments} == {"b", "c"}
    with pytest.raises(ArrowError, match="cannot be a candidate"):
        planned(answer, two_pairs, candidates=["c"], not_settable=["c"])
    with pytest.raises(ArrowError, match="no variable"):
        planned(answer, two_pairs, not_settable=["dd"])


# What experiments teach


def test_an_experiment_rules_out_the_wrong_direction_and_not_the_right_one(two_pairs: Table) -> None:
    random = np.random.default_rng(6)
    answer = answer_with(PAIRS, "abcd")
    graphs = answer.sample(1000, np.random.default_rng(0)).graphs
    rows = random.normal(size=(60, 4))
    rows[:, 1] += rows[:, 0]  # a is set, and b follows
    experiment = Table.of_numbers(rows, list("abcd"))
    assert knowledge_from(answer, two_pairs, experiment, "a", graphs).forbidden == (("b", "a"),)
    silent = Table.of_numbers(random.normal(size=(60, 4)), list("abcd"))  # b does not respond
    assert knowledge_from(answer, two_pairs, silent, "a", graphs).forbidden == (("a", "b"),)
    few = Table.of_numbers(rows[:3] * 0.2, list("abcd"))
    assert knowledge_from(answer, two_pairs, few, "a", graphs).forbidden == ()


def test_an_experiment_teaches_the_same_whatever_the_sign_of_a_column_on_a_log_scale(two_pairs: Table) -> None:
    random = np.random.default_rng(5)
    answer = replace(answer_with([(0, 1), (2, 3)], "abcd"), log_columns=("a", "b"))
    graphs = answer.sample(500, np.random.default_rng(0)).graphs
    rows = random.normal(size=(60, 4))
    rows[:, 1] += rows[:, 0]

    def with_sign(values: np.ndarray, sign: int) -> Table:
        columns = [np.exp(values[:, 0]), sign * np.exp(values[:, 1]), values[:, 2], values[:, 3]]
        return Table.of_numbers(np.stack(columns, axis=1), list("abcd"))

    plus, minus = (
        knowledge_from(answer, with_sign(two_pairs.values, sign), with_sign(rows, sign), "a", graphs)
        for sign in (1, -1)
    )
    assert plus == minus
    assert plus.forbidden == (("b", "a"),)
    with pytest.raises(ArrowError, match="'b' was read on a log scale: expected values that share a sign"):
        knowledge_from(answer, with_sign(two_pairs.values, 1), with_sign(rows, -1), "a", graphs)


def test_levels_are_matched_by_name_whatever_their_order_in_the_experiment() -> None:
    random = np.random.default_rng(8)
    dose = random.normal(size=400)
    site = random.integers(3, size=400).astype(float)
    columns = (Column("dose"), Column("site", "category", ("a", "b", "c")))
    table = Table(np.stack([dose + np.array([0.0, 2.0, -2.0])[site.astype(int)], site], axis=1), columns)
    answer = answer_with([(0, 1)], "ds")
    answer = Answer(("dose", "site"), answer.distribution)
    graphs = answer.sample(500, np.random.default_rng(0)).graphs
    rows = np.stack([random.normal(size=100), random.integers(3, size=100).astype(float)], axis=1)
    other = (Column("dose"), Column("site", "category", ("c", "a", "b")))
    renamed = Table(np.stack([rows[:, 0], (rows[:, 1] + 1) % 3], axis=1), other)
    found = [knowledge_from(answer, table, each, "dose", graphs) for each in (Table(rows, columns), renamed)]
    assert found[0] == found[1]
    assert found[0].forbidden == (("dose", "site"),)
    foreign = Table(rows, (Column("dose"), Column("site", "category", ("a", "b", "d"))))
    with pytest.raises(ArrowError, match="'site' has no level 'd'"):
        knowledge_from(answer, table, foreign, "dose", graphs)


def test_slopes_are_those_of_regressions() -> None:
    rows = np.random.default_rng(7).normal(size=(40, 3))
    expected = [np.polyfit(rows[:, 1], rows[:, place], 1)[0] for place in range(3)]
    np.testing.assert_allclose(found_slopes(1, rows), expected)


# Surfaces


def test_arrow_plans_and_learns(table: pd.DataFrame, small_model_folder: Path) -> None:
    arrow = Arrow(small_model_folder).fit(table)
    plan = arrow.next_experiment(budget=2, n_graphs=200)
    frame = plan.to_frame()
    assert sorted(frame.variable) == sorted(table.columns)
    assert frame.gain.is_monotonic_decreasing
    assert sorted(frame.batch.dropna()) == [1, 2]
    assert arrow.next_experiment(budget=2, n_graphs=200).to_dict() == plan.to_dict()
    json.dumps(plan.to_dict(), allow_nan=False)
    ax = plan.plot()
    assert len(ax.patches) == 6
    only = arrow.next_experiment(("dose", "outcome"), candidates=["dose", "e"], n_graphs=200)
    assert {each.name for each in only.experiments} == {"dose", "e"}
    refined = arrow.learn_from_experiment("dose", table.sample(50, random_state=0), n_graphs=200)
    assert set(refined.answer_.knowledge.forbidden) >= set(arrow.answer_.knowledge.forbidden)
    assert arrow.answer_.knowledge == Knowledge()


def test_the_command_says_what_python_says(
    run: Run, table: pd.DataFrame, small_model_folder: Path, tmp_path: Path
) -> None:
    file = tmp_path / "table.csv"
    table.to_csv(file, index=False)
    arrow = Arrow(small_model_folder).fit(file)
    plan = arrow.next_experiment("outcome", budget=2, n_graphs=100)
    asked = ("next-experiment", file, "--model", small_model_folder, "--graphs", 100)
    status, out, _ = run(*asked, "--target", "outcome", "--budget", 2, "--plot", tmp_path / "plan.png")
    assert status == 0
    assert out.startswith(plan.sentence)
    assert (tmp_path / "plan.png").stat().st_size > 5000
    _, out, _ = run(*asked, "--target", "dose -> outcome", "--json")
    content = json.loads(out)
    assert content["target"] == ["dose", "outcome"]
    assert content["unit"] == "share"
    assert run(*asked, "--treatment", "dose", "--outcome", "outcome", "--json")[1] == out
    assert run(*asked, "--treatment", "dose")[0] == run(*asked, "--outcome", "e", "--target", "e")[0] == 2
    assert run(*asked, "--precision", "float32")[0] == 0
    status, _, err = run(*asked, "--target", "dose -> outcom")
    assert status == 2
    assert err == "causal-arrow: There is no variable 'outcom': did you mean 'outcome'?\n"


def test_what_nothing_causes_is_not_proposed_and_the_treatment_asked_about_is(two_pairs: Table) -> None:
    answer = answer_with(PAIRS, "abcd", knowledge=Knowledge(roots=["a"]))
    assert "a" not in {name for each in planned(answer, two_pairs).experiments for name in each.variables}
    assert str(planned(answer, two_pairs, target=("a", "b")).best) == "randomize a"
