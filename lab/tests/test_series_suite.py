"""The suite `series`: families with known window graphs, measures, peers, and Causal Arrow on small series."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from causal_arrow.discovery.inference import ready_model
from causal_arrow.errors import BenchmarkError
from causal_arrow.network import DEFAULT_MODEL
from causal_arrow_lab.benchmarks.series import (
    FAMILIES,
    Edge,
    Family,
    Process,
    SeriesEstimate,
    SeriesTask,
    cdml_tasks,
    draw_task,
)
from causal_arrow_lab.benchmarks.series.__main__ import (
    auroc,
    average_precision,
    coverage,
    f1,
    main,
    measures,
    reliability,
)
from causal_arrow_lab.benchmarks.series._peers import PEERS, solve, solve_by_arrow
from docs_scripts import load_script


def a_process(*edges: Edge, lags: int = 2, variables: int = 3) -> Process:
    nothing = np.zeros(variables)
    return Process(edges, variables, lags, 0, "normal", np.ones(variables), nothing, nothing)


# Families


@pytest.mark.parametrize("name", FAMILIES)
def test_tasks_are_repeatable_and_those_of_development_are_others(name: str) -> None:
    family = replace(FAMILIES[name], steps=(40, 40))
    one, again, other = family.task(1), family.task(1), family.task(1, development=True)
    assert np.array_equal(one.values, again.values, equal_nan=True)
    assert not np.array_equal(one.values[:40, :5], other.values[:40, :5], equal_nan=True)
    assert one.values.shape == (40 * family.units, one.window.shape[1])
    assert np.isnan(one.values).any() == (family.missing > 0)


@pytest.mark.parametrize("name", FAMILIES)
def test_window_graphs_have_their_lags_and_are_acyclic_at_lag_0(name: str) -> None:
    for index in range(5):
        task = replace(FAMILIES[name], steps=(20, 20)).task(index)
        assert task.window[-1].any()
        assert not np.linalg.matrix_power(task.window[0].astype(int), len(task.window[0])).any()
        assert task.window[0].any() <= FAMILIES[name].contemporaneous


def test_series_obey_their_equations() -> None:
    process = a_process(Edge(1, 0, 0, 0.5), Edge(2, 0, 1, -0.6), Edge(0, 1, 2, 0.8))
    values = process.draw(20_000, np.random.default_rng(0))[0]
    causes = np.column_stack([values[1:-1], values[:-2], values[2:, 1]])
    found = np.linalg.lstsq(causes, values[2:], rcond=None)[0]
    assert found[:, 0] == pytest.approx([0.5, 0, 0, 0, 0, 0, 0], abs=0.03)
    assert found[:6, 1] == pytest.approx([0, 0, 0, -0.6, 0, 0], abs=2)  # given itself at the same time
    assert found[6, 2] == pytest.approx(0.8, abs=0.03)


def test_true_responses_of_linear_equations_are_sums_over_paths() -> None:
    process = a_process(Edge(1, 0, 0, 0.5), Edge(1, 0, 1, 0.8), Edge(0, 1, 2, 2.0), lags=1)
    random = np.random.default_rng(0)
    assert process.response(0, 2, 3, random) == pytest.approx([0, 1.6, 0.8, 0.4])
    assert process.response(0, 2, 3, random, held=True) == pytest.approx([0, 1.6, 1.6, 1.6])
    assert process.response(2, 0, 3, random) == pytest.approx([0, 0, 0, 0])


def test_levels_of_units_differ_and_hidden_drivers_are_not_shown() -> None:
    task = FAMILIES["panel"].task(0)
    assert task.unit is not None
    means = np.array([task.values[task.unit == unit].mean(axis=0) for unit in range(50)])
    assert (means.std(axis=0) > 0.5 * task.values.std(axis=0)).all()
    hidden = FAMILIES["hidden"].task(0)
    assert hidden.process is not None
    assert hidden.confounded is not None
    assert hidden.process.variables == hidden.values.shape[1] + 2
    assert hidden.confounded.any()
    assert (hidden.confounded == hidden.confounded.T).all()


# Measures


def test_measures_of_the_truth_are_perfect_and_those_of_nothing_are_not() -> None:
    task = FAMILIES["linear-normal"].task(0)
    right = measures(task, SeriesEstimate(task.window, task.window.astype(float)))
    assert {right[name] for name in ("auroc", "ap", "f1", "f1_lagged", "f1_summary", "f1_now", "ap_now")} == {1.0}
    empty = measures(task, SeriesEstimate(np.zeros_like(task.window), np.zeros(task.window.shape)))
    assert empty["auroc"] == 0.5
    assert empty["f1"] == 0
    assert empty["ap"] == pytest.approx(task.window[1:].mean())


def test_ranks_agree_with_counting_pairs() -> None:
    random = np.random.default_rng(0)
    truth, scores = random.random(60) < 0.3, random.integers(0, 8, size=60).astype(float)
    edges, others = scores[truth][:, None], scores[~truth]
    assert auroc(truth, scores) == pytest.approx(((edges > others) + 0.5 * (edges == others)).mean())
    assert average_precision(np.array([True, False, True]), np.array([3.0, 2.0, 1.0])) == pytest.approx((1 + 2 / 3) / 2)
    assert math.isnan(auroc(np.zeros(4, dtype=bool), np.arange(4.0)))
    assert f1(np.zeros(3, dtype=bool), np.zeros(3, dtype=bool)) == 1


def test_lag_0_does_not_count_where_it_is_not_asked_for() -> None:
    task = FAMILIES["linear-lagged"].task(0)
    graph = task.window.copy()
    graph[0, 0, 1] = True
    assert measures(task, SeriesEstimate(graph, graph.astype(float)))["f1"] == 1


def test_calibration_ignores_clear_absences_and_finds_overconfidence() -> None:
    random = np.random.default_rng(0)
    stated = random.random(40_000)
    truth = random.random(40_000) < stated
    assert reliability([(truth, stated)]).error < 0.02
    assert reliability([(random.random(40_000) < stated**2, stated)]).error > 0.1
    assert reliability([(truth, np.where(truth, 0.01, stated))]).bins[0][0] == 0.05


# Methods


@pytest.mark.parametrize("name", ["var", "granger", "dynotears"])
def test_methods_of_our_own_find_strong_lagged_edges(name: str) -> None:
    process = a_process(Edge(1, 0, 0, 0.5), Edge(2, 0, 1, 0.8), Edge(1, 1, 2, -0.8))
    values = process.draw(500, np.random.default_rng(1))[0]
    values[np.random.default_rng(0).random(values.shape) < 0.01] = np.nan
    found = solve(name, SeriesTask(values, None, process.window, False))
    assert found.scores.shape == process.window.shape
    assert average_precision(process.window[1:].ravel(), found.scores[1:].ravel()) > 0.9
    assert (found.graph >= process.window).all()


def test_scores_are_finite_where_p_is_too_small_for_a_float() -> None:
    process = a_process(Edge(1, 0, 0, 0.5), Edge(2, 0, 1, 0.8))
    values = process.draw(5000, np.random.default_rng(1))[0]
    assert np.isfinite(solve("granger", SeriesTask(values, None, process.window, False)).scores).all()


@pytest.mark.parametrize(
    ("name", "package"), [("pcmci", "tigramite"), ("pcmci+", "tigramite"), ("varlingam", "lingam")]
)
def test_methods_of_packages_find_strong_lagged_edges_in_panels(name: str, package: str) -> None:
    pytest.importorskip(package)
    process = a_process(Edge(1, 0, 0, 0.5), Edge(2, 0, 1, 0.8), Edge(0, 1, 2, -0.8))
    values = process.draw(30, np.random.default_rng(1), series=20).reshape(-1, 3)
    found = solve(name, SeriesTask(values, np.repeat(np.arange(20), 30), process.window, True))
    assert average_precision(process.window[1:].ravel(), found.scores[1:].ravel()) > 0.9


def test_arrow_finds_lagged_edges_and_those_at_lag_0() -> None:
    process = a_process(Edge(1, 0, 0, 0.5), Edge(2, 0, 1, 0.8), Edge(0, 1, 2, -0.8))
    values = process.draw(400, np.random.default_rng(1))[0]
    network = ready_model(DEFAULT_MODEL, "cpu")
    found = solve_by_arrow(network, SeriesTask(values, None, process.window, True))
    assert found.probabilities is not None
    assert average_precision(process.window[1:].ravel(), found.scores[1:].ravel()) > 0.9
    assert found.probabilities[0, 1, 2] + found.probabilities[0, 2, 1] > 0.9
    assert f1(process.window[1:], found.graph[1:]) > 0.7


def test_levels_of_units_do_not_change_what_arrow_finds() -> None:
    task = draw_task(Family("small", "", (3, 3), (12, 12), (1, 1), units=20), np.random.default_rng(0))
    assert task.unit is not None
    network = ready_model(DEFAULT_MODEL, "cpu")
    moved = replace(task, values=task.values + 5 * np.random.default_rng(1).normal(size=(20, 3))[task.unit])
    first, second = (solve_by_arrow(network, each).probabilities for each in (task, moved))
    assert first is not None
    assert second is not None
    assert first == pytest.approx(second, abs=1e-3)


# CDML, coverage, the command


def write_cdml(folder: Path) -> None:
    process = a_process(Edge(1, 0, 0, 0.5), Edge(2, 0, 1, 0.8), Edge(1, 1, 2, -0.8))
    values = process.draw(200, np.random.default_rng(1))[0]
    rows = ["b,c,a", *(",".join(map(str, row[[1, 2, 0]])) for row in values)]
    (folder / "one_data.csv").write_text("\n".join(rows) + "\n")
    labels = [f"{name}_t" + (f"-{lag}" if lag else "") for name in "abc" for lag in range(3)]
    cells = [["0.0"] * 9 for _ in labels]
    for cause, effect in (("a_t-1", "a_t"), ("a_t-2", "b_t"), ("b_t-1", "c_t"), ("a_t-2", "a_t-1")):
        cells[labels.index(cause)][labels.index(effect)] = "1.0"
    table = [",".join(["", *labels]), *(",".join([label, *row]) for label, row in zip(labels, cells, strict=True))]
    (folder / "one_target.csv").write_text("\n".join(table) + "\n")


def test_cdml_is_read_by_the_names_of_its_columns(tmp_path: Path) -> None:
    write_cdml(tmp_path)
    (task,) = cdml_tasks(tmp_path)
    edges = {(int(lag), "bca"[j], "bca"[k]) for lag, j, k in np.argwhere(task.window)}
    assert edges == {(1, "a", "a"), (2, "a", "b"), (1, "b", "c")}
    assert not task.contemporaneous
    with pytest.raises(BenchmarkError, match="found none"):
        list(cdml_tasks(tmp_path / "empty"))


def test_intervals_of_effects_cover_the_truth_of_linear_series() -> None:
    found = coverage(FAMILIES["linear-normal"], range(8), development=True)
    assert found.raised_once > 0.75
    assert found.held > 0.75
    assert found.error < 0.1


def test_the_command_reports_every_family_and_writes_its_measures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_cdml(tmp_path)
    output = tmp_path / "found.json"
    arguments = ["--methods", ",".join(["var"]), "--families", "short,panel", "--count", "2", "--cdml", str(tmp_path)]
    assert main([*arguments, "--output", str(output)]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in ("short", "panel", "cdml", "± of the mean"))
    found = json.loads(output.read_text(encoding="utf-8"))["var"]
    tasks = [FAMILIES["short"].task(index) for index in range(2)]
    one, other = (measures(task, solve("var", task))["auroc"] for task in tasks)
    assert found["short"]["auroc"] == pytest.approx((one + other) / 2)
    assert found["standard_errors"]["short"]["auroc"] == pytest.approx(abs(one - other) / 2)
    assert main(["--methods", "oracle"]) == 2
    assert main(["--families", "unheard-of"]) == 2
    assert set(PEERS) == {"var", "granger", "pcmci", "pcmci+", "varlingam", "dynotears"}


def test_the_page_of_the_suite_is_written_from_its_records() -> None:
    assert load_script("make_series").main(["--check"]) == 0, "write it anew: python docs/tools/make_series.py"
