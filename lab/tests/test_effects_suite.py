"""The suites `effects` and `experiments`: equations to intervene in, what is asked, how answers are judged."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from causal_arrow.discovery.effects.linear import Design
from causal_arrow.graphs.dag import cpdag, is_acyclic, markov_equivalent, skeleton_of
from causal_arrow_lab.benchmarks.effects import (
    EFFECT_ROWS,
    EffectsDataset,
    EstimatedEffect,
    ExperimentsDataset,
    Question,
    draw_equations,
    effect_measures,
    effect_task,
    experiment_measures,
    experiment_task,
)
from causal_arrow_lab.benchmarks.methods import METHODS_FOR, MethodOptions, prepare
from causal_arrow_lab.benchmarks.methods.effects import by_sets, possible_parents, sets_in_class
from causal_arrow_lab.benchmarks.suites import suite
from report import write_report

Run = Callable[..., tuple[int, str, str]]


# Equations


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


@pytest.mark.parametrize(("law", "hidden"), [("linear", 0), ("nonlinear", 0), ("linear", 2)])
def test_columns_have_unit_variance_and_nothing_depends_on_its_effects(law: str, hidden: int) -> None:
    random = np.random.default_rng(6)
    equations = draw_equations(law, 10, random, hidden=hidden)
    values = equations.table_values(5000, random)
    assert values.shape == (5000, 10)
    assert values.std(axis=0) == pytest.approx(1, abs=0.1)
    assert is_acyclic(equations.adjacency)
    assert not equations.adjacency[:, :hidden].any()
    assert equations.true_effect(9, 0, random) == 0


def test_levels_occur_as_codes_and_can_be_set() -> None:
    random = np.random.default_rng(7)
    kinds = ["category", "number", "binary", "ordered"]
    equations = draw_equations("linear", 4, random, kinds=kinds)
    assert [column.kind for column in equations.columns] == kinds
    values = equations.table_values(2000, random)
    for place in (0, 2, 3):
        codes, counts = np.unique(values[:, place], return_counts=True)
        assert codes.tolist() == list(range(len(equations.columns[place].levels)))
        assert counts.min() > 100
    noise = equations.draw_noise(50, random)
    for code in range(len(equations.columns[0].levels)):
        assert (equations.solve(noise, 0, set_to=float(code))[:, 0] == code).all()


def test_an_experiment_cuts_a_variable_from_its_causes_and_from_nothing_else() -> None:
    random = np.random.default_rng(8)
    while True:
        equations = draw_equations("linear", 3, random)
        if equations.adjacency[0, 1] and equations.adjacency[1, 2] and not equations.adjacency[0, 2]:
            break
    usual, set_ = equations.table_values(20_000, random), equations.experiment(1, 20_000, random)

    def correlation(values: np.ndarray, a: int, b: int) -> float:
        return float(np.corrcoef(values[:, a], values[:, b])[0, 1])

    assert abs(correlation(usual, 0, 1)) > 0.2
    assert abs(correlation(set_, 0, 1)) < 0.03
    assert correlation(set_, 1, 2) == pytest.approx(correlation(usual, 1, 2), abs=0.05)


# Effects


@pytest.mark.parametrize("row", EFFECT_ROWS)
def test_every_question_is_about_variables_of_the_table_and_of_the_kinds_asked_for(row: str) -> None:
    dataset = suite("effects").row(row).dataset(0)
    assert isinstance(dataset, EffectsDataset)
    columns = {column.name: column for column in dataset.table.columns}
    for question in dataset.questions:
        assert columns[question.treatment].kind in EFFECT_ROWS[row].treatments
        assert columns[question.outcome].kind in EFFECT_ROWS[row].outcomes
        assert math.isfinite(question.truth)
        assert (question.between is None) == (columns[question.treatment].kind == "number")
        assert (question.level is None) == (columns[question.outcome].kind != "category")
    assert all(math.isnan(question.truth) for question in effect_task(dataset, with_graph=False).questions)
    assert effect_task(dataset, with_graph=False).graph is None


def test_error_bias_and_coverage_are_those_of_the_formulas() -> None:
    questions = [Question("a", "b", truth) for truth in (1.0, -2.0, 0.0)]
    answers = [EstimatedEffect(1.5, 0.9, 2.0), EstimatedEffect(-1.0, -1.5, -0.5), EstimatedEffect(0.0, 0.0, 0.0)]
    found = effect_measures(questions, answers)
    assert found["bias"] == pytest.approx((0.5 - 1.0) / 2)
    assert found["squared_error"] == pytest.approx((0.25 + 1.0) / 3)
    assert found["coverage"] == pytest.approx(2 / 3)
    assert found["coverage_of_effects"] == pytest.approx(1 / 2)
    assert found["width"] == pytest.approx((1.1 + 1.0) / 2)


def test_every_method_answers_every_question_of_a_mixed_table() -> None:
    dataset = suite("effects").row("mixed").dataset(4)
    assert isinstance(dataset, EffectsDataset)
    errors = {}
    for name in METHODS_FOR["effects"]:
        method = prepare(name, MethodOptions(), "effects")
        task = effect_task(dataset, with_graph=method.is_oracle)
        answers = method.start()(task, np.random.default_rng(0)).effects
        assert len(answers) == len(dataset.questions)
        assert all(each.low <= each.high for each in answers)
        errors[name] = effect_measures(dataset.questions, answers)["squared_error"]
    assert errors["true-graph"] <= min(errors[name] for name in ("ida-pc", "ida-ges", "regression"))


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
    both = by_sets(design, 0, 1, sets_in_class(undirected, 0, 1))
    assert both.low == 0
    assert both.effect == pytest.approx(both.high / 2, rel=0.2)


# Experiments


def test_every_policy_gets_the_same_observations_of_the_same_experiment() -> None:
    dataset = suite("experiments").row("normal-10").dataset(0)
    assert isinstance(dataset, ExperimentsDataset)
    one, other = experiment_task(dataset), experiment_task(dataset)
    np.testing.assert_array_equal(one.carry_out("x3").values, other.carry_out("x3").values)
    assert not np.array_equal(one.carry_out("x3").values, one.carry_out("x4").values)
    assert one.carry_out("x3").names == dataset.names


def test_mistakes_are_counted_after_each_experiment() -> None:
    truth = np.zeros((3, 3), dtype=bool)
    truth[0, 1] = truth[1, 2] = True
    empty, turned = np.zeros_like(truth), truth.T.copy()
    found = experiment_measures(truth, [empty, turned, truth])
    assert (found["shd_0"], found["shd_1"], found["shd_2"]) == (2, 2, 0)
    assert (found["turned_0"], found["turned_1"], found["turned_2"]) == (0, 2, 0)
    assert found["mean_shd"] == 1
    assert found["until_half"] == 2
    assert experiment_measures(truth, [empty, empty])["until_half"] == 2  # one more than were made


@pytest.mark.parametrize("name", METHODS_FOR["experiments"])
def test_a_policy_makes_five_different_experiments(name: str, small_model_folder: Path) -> None:
    dataset = suite("experiments").row("normal-10").dataset(1)
    assert isinstance(dataset, ExperimentsDataset)
    method = prepare(f"{name}:{small_model_folder}", MethodOptions(), "experiments")
    course = method.start()(experiment_task(dataset), np.random.default_rng(0))
    assert len(set(course.chosen)) == 5
    assert len(course.graphs) == 6
    assert all(is_acyclic(graph) for graph in course.graphs)


# The command


def test_the_suites_run_and_report_like_any_other(run: Run, small_model_folder: Path, tmp_path: Path) -> None:
    records = tmp_path / "records"
    status, out, _ = run(
        *("benchmark", "effects/linear", "--methods", f"arrow:{small_model_folder},true-graph,regression"),
        *("--datasets", 2, "--output", records, "--jobs", 1),
    )
    assert status == 0
    assert "squared_error" in out
    assert "true-graph" in out
    status, _, _ = run(
        *("benchmark", "experiments/normal-10", "--methods", f"arrow:{small_model_folder}"),
        *("--datasets", 1, "--output", records, "--jobs", 1),
    )
    assert status == 0
    write_report(records, output=tmp_path / "report.md")
    page = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "The share of all effects, most of them zero, that lie in their 90% interval." in page
    assert "SHD after 5" in page
    assert "nSHD" not in page
