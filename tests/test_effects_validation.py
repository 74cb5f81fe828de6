"""Falsification of graphs, and the simulation that effects are judged by."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from causal_arrow.discovery.effects.estimation import EffectQuestion
from causal_arrow.discovery.effects.falsification import Functions, falsify, local_independences, violated_share
from causal_arrow.discovery.effects.linear import Design
from causal_arrow.discovery.effects.validation import (
    METHODS,
    Estimated,
    by_ida,
    draw_equations,
    possible_parents,
    report,
    run_task,
)
from causal_arrow.discovery.estimator import Arrow
from causal_arrow.errors import ArrowError
from causal_arrow.graphs.dag import cpdag, is_acyclic, markov_equivalent, skeleton_of
from causal_arrow.tables.table import Column, Table


def numbered(values: np.ndarray) -> Table:
    return Table.of_numbers(values, [f"v{place}" for place in range(values.shape[1])])


# Falsification


@pytest.mark.parametrize("kind", ["linear", "nonlinear"])
def test_the_true_graph_is_contradicted_hardly_more_often_than_by_chance(kind: str) -> None:
    violated, tests = 0.0, 0
    for seed in range(25):
        random = np.random.default_rng(seed)
        equations = draw_equations(kind, 8, random)
        values = equations.solve(equations.draw_noise(400, random))
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
    assert "better than chance" in str(right)


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
    assert "v3 → v1" in str(found)


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


# The simulation


def test_true_effects_of_linear_equations_are_sums_over_paths() -> None:
    random = np.random.default_rng(5)
    equations = draw_equations("linear", 7, random)
    base, direct = np.zeros((1, 7)), np.zeros((7, 7))
    for j in range(7):
        unit = base.copy()
        unit[0, j] = 1
        for k in np.flatnonzero(equations.adjacency[j]):
            function = equations.functions[k]
            assert function is not None
            direct[j, k] = (function(unit) - function(base))[0] / equations.scales[k]
    total = np.linalg.inv(np.eye(7) - direct)
    for t, y in itertools.permutations(range(7), 2):
        assert equations.true_effect(t, y, random) == pytest.approx(total[t, y], abs=1e-9)


@pytest.mark.parametrize("kind", ["linear", "nonlinear", "hidden"])
def test_columns_have_unit_variance_and_nothing_depends_on_its_effects(kind: str) -> None:
    random = np.random.default_rng(6)
    equations = draw_equations(kind, 10, random)
    values = equations.solve(equations.draw_noise(5000, random))
    assert values.std(axis=0) == pytest.approx(1, abs=0.1)
    assert is_acyclic(equations.adjacency)
    assert (equations.hidden > 0) == (kind == "hidden")
    assert not equations.adjacency[:, : equations.hidden].any()
    late = values.shape[1] - 1
    assert equations.true_effect(late, equations.hidden, random) == 0


def test_possible_parents_are_those_of_the_graphs_in_the_class() -> None:
    random = np.random.default_rng(7)
    for _ in range(10):
        graph = np.triu(random.random((4, 4)) < 0.6, 1)
        pairs = np.argwhere(np.triu(skeleton_of(graph)))
        members = []
        for turns in itertools.product([False, True], repeat=len(pairs)):
            other = np.zeros_like(graph)
            for (j, k), turned in zip(pairs, turns, strict=True):
                other[(k, j) if turned else (j, k)] = True
            if is_acyclic(other) and markov_equivalent(other, graph):
                members.append(other)
        for variable in range(4):
            expected = {tuple(np.flatnonzero(member[:, variable]).tolist()) for member in members}
            assert set(possible_parents(cpdag(graph), variable)) == expected


def test_ida_knows_no_effect_where_the_outcome_may_be_a_cause() -> None:
    random = np.random.default_rng(8)
    x = random.normal(size=300)
    design = Design.of([x[:, None], (x + random.normal(size=300))[:, None]])
    undirected = np.array([[False, True], [True, False]])
    both = by_ida(design, undirected, 0, 1)
    assert both.low == 0
    assert both.effect == pytest.approx(both.high / 2, rel=0.2)


def test_a_task_is_estimated_by_every_method_and_reported() -> None:
    pytest.importorskip("causallearn")
    trials = run_task("linear", 0, pairs=5, graphs=100, question=EffectQuestion())
    assert all(set(trial.estimates) == set(METHODS) for trial in trials)
    again = run_task("linear", 0, pairs=5, graphs=100, question=EffectQuestion())
    assert [trial.truth for trial in trials] == [trial.truth for trial in again]
    assert all(isinstance(trial.estimates["true graph"], Estimated) for trial in trials)
    lines = report("linear", trials)
    assert len(lines) == 2 + len(METHODS)


# The page


def test_the_example_of_the_page_prints_what_the_page_says(
    usual_model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if usual_model != "arrow-base":
        pytest.skip("the page shows an answer of the bundled model")
    page = (Path(__file__).parents[1] / "docs" / "effects.md").read_text(encoding="utf-8")
    match = re.search(r"```python\n(.*?)```\n\n```text\n(.*?)```", page, re.DOTALL)
    assert match is not None
    program, shown = match.groups()
    scope: dict[str, np.ndarray] = {}
    exec(program, scope)
    assert capsys.readouterr().out.split() == shown.split()
    slope = np.polyfit(scope["dose"], scope["outcome"], 1)[0]
    assert f"alone gives a slope of {slope:.2f}." in page
