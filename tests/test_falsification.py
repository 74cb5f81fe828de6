"""Falsification of graphs, in the report too."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from causal_arrow.discovery.effects import falsification
from causal_arrow.discovery.effects.falsification import (
    Falsification,
    Functions,
    chi_square_tail,
    compatibility,
    falsify,
    local_independences,
    on_scale_of,
    violated_share,
)
from causal_arrow.discovery.estimator import Arrow
from causal_arrow.discovery.pipeline import discover
from causal_arrow.discovery.settings import Settings
from causal_arrow.errors import ArrowError
from causal_arrow.network.basis import hermite_functions, normal_scores
from causal_arrow.tables.reading import read_like
from causal_arrow.tables.table import Column, Table


def numbered(values: np.ndarray) -> Table:
    return Table.of_numbers(values, [f"v{place}" for place in range(values.shape[1])])


# Falsification


@pytest.mark.parametrize("kind", ["linear", "nonlinear"])
def test_the_true_graph_is_contradicted_hardly_more_often_than_by_chance(kind: str) -> None:
    lab = pytest.importorskip("causal_arrow_lab.benchmarks.effects", reason="needs equations of the lab")
    violated, tests = 0.0, 0
    for seed in range(25):
        random = np.random.default_rng(seed)
        equations = lab.draw_equations(kind, 8, random)
        values = equations.table_values(400, random)
        independence = local_independences(equations.adjacency, Functions.of(numbered(values)))
        count = int((~np.isnan(independence)).sum())
        violated, tests = violated + violated_share(independence) * count, tests + count
    assert tests > 300
    assert 0.02 < violated / tests < 0.1


def test_a_true_graph_passes_and_its_shuffled_twin_does_not() -> None:
    random = np.random.default_rng(1)
    graph = np.zeros((6, 6), dtype=bool)
    for j, k in [(0, 1), (1, 2), (2, 3), (0, 4), (4, 5)]:
        graph[j, k] = True
    values = random.normal(size=(800, 6))
    for k in range(1, 6):
        values[:, k] += 1.2 * values[:, graph[:, k]].sum(axis=1)
    right = falsify(graph, numbered(values), 100, random)
    places = np.array([3, 5, 0, 4, 2, 1])
    wrong = falsify(graph[np.ix_(places, places)], numbered(values), 100, random)
    assert not right.falsified
    assert right.violated < 0.2
    assert wrong.falsified
    assert wrong.violated > 0.3
    assert "do not rely on it" in str(wrong)
    assert "does not confirm directions" in str(right)
    assert not right.says_little
    assert not wrong.says_little


def result(tests: int, violated: int, permuted: list[float], equivalent: float = 0.0) -> Falsification:
    independence = np.full((tests + 1, tests + 1), np.nan)
    independence[0, 1:] = np.where(np.arange(tests) < violated, 1e-9, 0.5)
    names = tuple(f"v{place}" for place in range(tests + 1))
    graph = np.zeros(independence.shape, dtype=bool)
    return Falsification(names, graph, independence, np.full(graph.shape, np.nan), np.array(permuted), equivalent)


@pytest.mark.parametrize(
    ("tests", "violated", "as_good", "shuffled", "verdict"),
    [
        (1, 0, 1, 20, "little"),  # one equal graph of 20, and nothing contradicted
        (1, 1, 20, 20, "little"),  # one test in twenty fails by chance
        (30, 1, 50, 100, "little"),
        (30, 9, 1, 20, "little"),  # with more graphs, fewer of them may do as well
        (30, 9, 8, 20, "falsified"),
        (30, 9, 50, 100, "falsified"),
        (30, 9, 2, 100, "better"),
        (30, 0, 0, 20, "better"),
    ],
)
def test_a_graph_is_refuted_only_where_the_data_contradict_it_more_than_by_chance_and_shuffled_ones_no_more(
    tests: int, violated: int, as_good: int, shuffled: int, verdict: str
) -> None:
    found = result(tests, violated, [0.0] * as_good + [1.1] * (shuffled - as_good))
    assert found.falsified == (verdict == "falsified")
    assert found.says_little == (verdict == "little")
    words = {
        "falsified": "do not rely on it",
        "little": "has little power here",
        "better": "does not confirm directions",
    }
    assert [part in str(found) for part in words.values()] == [each == verdict for each in words]
    same = result(tests, violated, [0.0] * shuffled, equivalent=0.5)
    assert same.says_little
    assert "imply the same independences: the test has little power here" in str(same)


def test_p_values_of_wide_categories_are_those_of_wilks_and_take_no_time() -> None:
    random = np.random.default_rng(12)
    level = random.integers(60, size=800).astype(float)
    values = np.stack([level, *random.normal(size=(4, 800))], axis=1)
    values[:, 1] += (level > 30) + values[:, 3]
    columns = (Column("site", "category", tuple(f"s{place}" for place in range(60))), *map(Column, "abcd"))
    functions = Functions.of(Table(values, columns))
    given = np.array([False, False, False, True, False])
    found = functions.independences(1, given)
    # Given a number, the mean of another goes with the levels: by regressions on functions of it alone, and on both.
    causes = np.column_stack([np.ones(800), _functions_of(values[:, 3])])
    indicators = level[:, None] == np.arange(1, 60)
    rest = [
        values[:, 1] - x @ np.linalg.lstsq(x, values[:, 1], rcond=None)[0]
        for x in (causes, np.column_stack([causes, indicators]))
    ]
    ratio = np.log(np.square(rest[0]).sum() / np.square(rest[1]).sum())
    expected = chi_square_tail(59, np.array([(800 - 1 - 3 - (59 + 1 + 1) / 2) * ratio]))
    assert found[0] == pytest.approx(expected[0], rel=1e-3)
    assert np.isnan(found[[1, 3]]).all()
    # A category of many levels does not make the tests of the other variables larger.
    assert functions.products.shape == (59 + 4 * 3, 59 + 4 * 3)


def _functions_of(cells: np.ndarray) -> np.ndarray:
    _, *bent = hermite_functions(normal_scores((cells - cells.mean())[None, :, None]))
    return np.column_stack([cells, *(function[0, :, 0] for function in bent)])


def test_a_column_with_one_value_is_independent_of_everything_and_not_tested() -> None:
    random = np.random.default_rng(13)
    values = random.normal(size=(300, 4))
    values[:, 1] += values[:, 0]
    graph = np.zeros((4, 4), dtype=bool)
    graph[0, 1] = True
    without = falsify(graph[:3, :3], numbered(values[:, :3]), 10, random)
    values[:, 3] = 0.1
    found = falsify(graph, numbered(values), 10, random)
    assert np.isnan(found.independence[3]).all()
    assert np.isnan(found.independence[:, 3]).all()
    np.testing.assert_allclose(found.independence[:3, :3], without.independence, rtol=1e-6)


@pytest.fixture
def wards(any_table_model_folder: Path) -> tuple[Arrow, pd.DataFrame]:
    random = np.random.default_rng(14)
    frame = pd.DataFrame(
        {
            "ward": random.choice(["1", "2", "x"], size=300),
            "size": random.choice(["s", "m", "l"], size=300),
            "drug": random.integers(2, size=300),
            "smoker": random.choice(["Yes", "no"], size=300),
            "stay": random.normal(size=300),
        }
    )
    arrow = Arrow(any_table_model_folder, kinds={"ward": "category"}, ordered={"size": ["s", "m", "l"]})
    return arrow.fit(frame), frame


def test_a_further_table_is_read_as_the_first_was(wards: tuple[Arrow, pd.DataFrame]) -> None:
    arrow, frame = wards
    np.testing.assert_array_equal(arrow.falsify(frame).independence, arrow.falsify().independence)
    relabelled = frame.assign(smoker=frame.smoker.str.lower(), drug=frame.drug.astype(float).astype(str))
    np.testing.assert_array_equal(arrow.falsify(relabelled).independence, arrow.falsify().independence)
    some = frame[(frame.ward != "x") & (frame["size"] != "m") & (frame.drug == 1)]
    read = read_like(arrow.table_, some, "auto", {})
    assert read.columns == arrow.table_.columns
    np.testing.assert_array_equal(read.values, arrow.table_.values[some.index])
    assert np.isnan(arrow.falsify(some).independence[2]).all()  # the drug, which all of them have
    new = read_like(arrow.table_, frame.assign(ward="y"), "auto", {})
    assert new.columns[0].levels == ("1", "2", "x", "y")
    for wrong, sentence in (
        (frame.assign(drug=frame.drug + 1), "'drug' has the value '2', which it does not have in the table"),
        (frame.assign(size="xl"), r"'size' \('xl'"),
        (frame.assign(stay="long"), "'stay'"),
        (frame.drop(columns="stay"), "'stay' is not in the table"),
    ):
        with pytest.raises(ArrowError, match=sentence) as caught:
            arrow.falsify(wrong)
        assert "columns=" not in str(caught.value)
        assert "drop=" not in str(caught.value)


def test_environments_beside_a_table_come_with_it_or_as_a_column_of_another(
    wards: tuple[Arrow, pd.DataFrame], any_table_model_folder: Path
) -> None:
    frame = wards[1].drop(columns="size")
    labels = ["early"] * 150 + ["late"] * 150
    arrow = Arrow(any_table_model_folder, kinds={"ward": "category"}).fit(frame, environments=labels)
    np.testing.assert_array_equal(arrow.falsify(frame).independence, arrow.falsify().independence)
    with pytest.raises(ArrowError, match="give it a column 'environment' that says where or when") as caught:
        arrow.falsify(frame[50:])
    assert "columns=" not in str(caught.value)
    assert arrow.falsify(frame[50:].assign(environment=labels[50:])).tests == arrow.falsify().tests
    assert arrow.learn_from_experiment("drug", frame[:60]).answer_.environment == "environment"


def test_an_experiment_may_leave_other_columns_at_one_value_but_not_the_one_it_sets(
    wards: tuple[Arrow, pd.DataFrame],
) -> None:
    arrow, frame = wards
    arrow.learn_from_experiment("drug", frame[(frame.smoker == "no") & (frame.ward == "x")])
    with pytest.raises(ArrowError, match="'drug' has the same value in all observations of the experiment"):
        arrow.learn_from_experiment("drug", frame[frame.drug == 1])


def test_a_missing_and_a_needless_edge_are_named() -> None:
    random = np.random.default_rng(2)
    values = random.normal(size=(500, 4))
    values[:, 1] += values[:, 0]
    values[:, 2] += np.square(values[:, 0])  # which no correlation shows
    graph = np.zeros((4, 4), dtype=bool)
    graph[0, 1] = graph[3, 1] = True
    found = falsify(graph, numbered(values), 20, random)
    pairs = set(zip(found.contradictions.depends_on, found.contradictions.variable, strict=True))
    assert ("v0", "v2") in pairs
    assert found.unsupported_edges[["source", "target"]].to_numpy().tolist() == [["v3", "v1"]]
    assert str(found).endswith("Not confirmed by this test, which looks at means alone: v3 → v1.")


def test_the_sign_of_a_column_on_a_log_scale_changes_no_test() -> None:
    random = np.random.default_rng(14)
    values = np.cumsum(random.normal(size=(300, 4)), axis=1)
    plain = discover(numbered(values)).answer
    tests = []
    for sign in (1, -1):
        table = numbered(np.exp(values) * np.array([1, sign, sign, 1]))
        answer = replace(plain, names=table.names, log_columns=table.names)
        tests.append(falsify(plain.adjacency, on_scale_of(answer, table), 20, np.random.default_rng(0)))
    np.testing.assert_array_equal(tests[0].independence, tests[1].independence)
    np.testing.assert_array_equal(tests[0].permuted, tests[1].permuted)


def test_categories_depend_whatever_the_codes_of_their_levels() -> None:
    random = np.random.default_rng(3)
    level = random.integers(4, size=600).astype(float)
    value = np.array([0.0, 1.0, 1.0, 0.0])[level.astype(int)] + 0.5 * random.normal(size=600)
    columns = (Column("site", "category", ("a", "b", "c", "d")), Column("value"), Column("noise"))
    empty = np.zeros((3, 3), dtype=bool)
    shares = []
    for codes in (np.arange(4.0), np.array([2.0, 0.0, 3.0, 1.0])):
        table = Table(np.stack([codes[level.astype(int)], value, random.normal(size=600)], axis=1), columns)
        independence = local_independences(empty, Functions.of(table))
        shares.append(independence[0, 1])
        assert independence[1, 0] < 1e-10
        assert independence[2, 1] > 1e-4
    assert shares[0] == pytest.approx(shares[1], rel=1e-6)
    assert shares[0] < 1e-10


def test_a_complete_graph_cannot_be_contradicted() -> None:
    random = np.random.default_rng(4)
    found = falsify(np.triu(np.ones((3, 3), dtype=bool), 1), numbered(random.normal(size=(50, 3))), 5, random)
    assert not found.falsified
    assert str(found) == "The graph implies no independence: no table could contradict it."


def test_arrow_tests_its_graph_on_the_fitted_table_or_another_with_its_columns(
    table: pd.DataFrame, small_model_folder: object
) -> None:
    arrow = Arrow(small_model_folder).fit(table)
    again = arrow.falsify(table[table.columns[::-1]], permutations=10)
    here = arrow.falsify(permutations=10)
    np.testing.assert_allclose(again.independence, here.independence, rtol=1e-5)
    with pytest.raises(ArrowError, match="outcome"):
        arrow.falsify(table.drop(columns="outcome"))


def test_a_variable_with_a_hidden_cause_is_not_tested() -> None:
    random = np.random.default_rng(9)
    hidden = random.normal(size=400)
    values = random.normal(size=(400, 4)) + np.outer(hidden, [1.5, 1.5, 0, 0])
    empty, shared = np.zeros((4, 4), dtype=bool), np.zeros((4, 4), dtype=bool)
    shared[0, 1] = shared[1, 0] = True
    blamed = falsify(empty, numbered(values), 10, random)
    spared = falsify(empty, numbered(values), 10, random, shared)
    assert len(blamed.contradictions) == 2  # one pair, from both ends
    assert str(blamed).endswith(("Dependent against the graph: v0 – v1.", "Dependent against the graph: v1 – v0."))
    assert len(spared.contradictions) == 0
    assert spared.tests == 6


def test_the_summary_says_whether_the_data_contradict_the_graph(table: pd.DataFrame, small_model_folder: Path) -> None:
    arrow = Arrow(small_model_folder).fit(table)
    found = compatibility(arrow.answer_, arrow.table_)
    assert found is not None
    assert len(found.permuted) == 100
    assert str(found) == str(arrow.falsify())  # with few variables, the very same test
    assert str(found) in arrow.summary()
    assert str(found).split(".")[0] in arrow._repr_html_()
    assert compatibility(arrow.answer_, replace(arrow.table_, values=arrow.table_.values[:20])) is None


def test_the_summary_tests_the_graph_once_per_answer(
    table: pd.DataFrame, small_model_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tested: list[np.ndarray] = []

    def counting(graph: np.ndarray, *options: object) -> Falsification:
        tested.append(graph)
        return falsify(graph, *options)

    monkeypatch.setattr("causal_arrow.discovery.effects.falsification.falsify", counting)
    arrow = Arrow(small_model_folder).fit(table)
    assert str(arrow) == str(arrow)
    assert arrow.summary() in str(arrow)
    assert len(tested) == 1
    refined = arrow.refine(threshold=0.2)
    assert refined.summary() == refined.summary()
    assert tested[0] is arrow.answer_.adjacency
    assert tested[1] is refined.answer_.adjacency
    assert len(tested) == 2


def test_the_test_of_the_summary_takes_less_time_than_the_network(usual_model: str) -> None:
    if usual_model != "arrow-base":
        pytest.skip("compares with the bundled network")
    random = np.random.default_rng(10)
    table = numbered(random.normal(size=(500, 40)) @ (np.eye(40) + np.triu(random.random((40, 40)) < 0.05, 1)))
    ratios = []
    for _ in range(3):  # the first time also loads packages
        times = [time.process_time()]
        answer = discover(table, Settings(device="cpu")).answer
        times.append(time.process_time())
        compatibility(answer, table)
        times.append(time.process_time())
        ratios.append((times[2] - times[1]) / (times[1] - times[0]))
    assert min(ratios) < 1


def test_discover_says_it_in_words_and_in_json(
    run: Callable[..., tuple[int, str, str]], table: pd.DataFrame, small_model_folder: Path, tmp_path: Path
) -> None:
    file = tmp_path / "table.csv"
    table.to_csv(file, index=False)
    arrow = Arrow(small_model_folder).fit(file)
    found = compatibility(arrow.answer_, arrow.table_)
    assert found is not None
    _, out, _ = run("discover", file, "--model", small_model_folder)
    assert str(found) in out
    _, out, _ = run("discover", file, "--model", small_model_folder, "--json", "--falsify")
    content = json.loads(out)["falsification"]
    thorough = compatibility(arrow.answer_, arrow.table_, thorough=True)
    assert thorough is not None
    assert content["sentence"] == str(thorough)
    assert content["shuffled"] == 100
    assert content["tests"] == found.tests
    assert content["falsified"] is thorough.falsified


def test_incomplete_observations_and_those_of_experiments_are_left_out() -> None:
    random = np.random.default_rng(5)
    values = random.normal(size=(300, 3))
    values[:, 1] += values[:, 0]
    graph = np.zeros((3, 3), dtype=bool)
    graph[0, 1] = True
    alone = falsify(graph, numbered(values[:200]), 10, np.random.default_rng(0))
    holes = values.copy()
    holes[200:, 2] = np.nan
    intervened = np.zeros((300, 3), dtype=bool)
    intervened[200:, 1] = True
    for table in (numbered(holes), replace(numbered(values), intervened=intervened)):
        found = falsify(graph, table, 10, np.random.default_rng(0))
        np.testing.assert_array_equal(found.independence, alone.independence)
    holes[30:, 2] = np.nan
    with pytest.raises(ArrowError, match=r"Only 30 of 300 observations .* at least 50 are needed"):
        falsify(graph, numbered(holes), 10, random)


def test_printing_twice_tests_the_graph_once(
    table: pd.DataFrame, small_model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    tested: list[bool] = []

    def counted(*arguments: Any) -> Falsification | None:
        tested.append(True)
        return compatibility(*arguments)

    monkeypatch.setattr(falsification, "compatibility", counted)
    fresh = Arrow(small_model).fit(table)
    assert str(fresh) == str(fresh)
    assert fresh._repr_html_() == fresh._repr_html_()
    assert len(tested) == 1
