"""Series: windows, preparation, distributions over window graphs, lags, findings, effects over time."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from causal_arrow.errors import ConfigurationError, TableError
from causal_arrow.graphs.graph_distribution import GraphDistribution, sigmoid
from causal_arrow.graphs.knowledge import Knowledge
from causal_arrow.series._findings import (
    critical_value,
    findings_of_columns,
    findings_of_graph,
    findings_of_series,
    season,
    unit_root,
)
from causal_arrow.series.distribution import WindowDistribution, WindowKnowledge, summary, tied
from causal_arrow.series.pipeline import differenced, most_lags, needed_lags, without_levels
from causal_arrow.series.reading import Series
from causal_arrow.series.responses import Steps, response
from causal_arrow.series.window import TIME, ticks, window, without_means
from causal_arrow.tables.table import Column, Table

Floats = NDArray[np.float64]


def numbers(*shape: int, seed: int = 0) -> Floats:
    return np.random.default_rng(seed).normal(size=shape)


def columns(*names: str) -> list[Column]:
    return [Column(name) for name in names]


def panel(units: int = 4, steps: int = 12, variables: int = 3) -> tuple[Floats, NDArray[np.int64], NDArray[np.int64]]:
    """Values, units and times, rows in random order."""
    order = np.random.default_rng(1).permutation(units * steps)
    unit, time = np.repeat(np.arange(units), steps), np.tile(np.arange(steps), units)
    return numbers(units * steps, variables), unit[order], time[order]


# Windows


def test_every_cell_of_a_window_is_that_of_its_unit_and_time() -> None:
    values, unit, time = panel()
    rows = replace(window(values, 2, time=time, unit=unit), trends=(0,))
    table = rows.table(values)
    at = {(u, t): row for row, (u, t) in enumerate(zip(unit.tolist(), time.tolist(), strict=True))}
    assert len(table) == 4 * 10
    for row, (u, t) in enumerate(zip(rows.unit.tolist(), rows.tick.tolist(), strict=True)):
        for column, (variable, lag) in enumerate(rows.columns):
            expected = t if variable == TIME else values[at[u, t - lag], variable]
            assert table[row, column] == (expected - 2) / 9 if variable == TIME else table[row, column] == expected


def test_order_of_rows_does_not_matter_where_time_is_given() -> None:
    values, unit, time = panel()
    order = np.random.default_rng(2).permutation(len(values))
    shuffled = window(values[order], 3, time=time[order], unit=unit[order]).table(values[order])
    assert np.array_equal(shuffled, window(values, 3, time=time, unit=unit).table(values))


def test_steps_missing_in_time_leave_missing_cells() -> None:
    values, time = numbers(40, 2), np.delete(np.arange(41), 7)
    rows = window(values, 2, time=time)
    table = rows.table(values)
    assert np.isnan(table).sum() == 2 * 2  # two variables at lag 1 and at lag 2
    assert len(table) == 38
    assert 7 not in rows.tick


def test_no_row_has_steps_from_before_and_after_a_change_of_environment() -> None:
    environment = np.repeat(["a", "b", "a"], 15)
    rows = window(numbers(45, 2), 3, environment=environment)
    settings = environment[rows.index]
    assert (settings == settings[:, :1]).all()
    assert len(rows.index) == 3 * 12


def test_marks_of_experiments_follow_their_cells() -> None:
    marks = np.random.default_rng(0).random((30, 2)) < 0.3
    rows = replace(window(numbers(30, 2), 1, time=np.delete(np.arange(31), 5)), trends=(0,))
    table = rows.table(marks)
    assert table.dtype == bool
    assert np.array_equal(table[:, :2], np.delete(marks, [0, 5], axis=0))  # row 5 follows the gap: no step before it
    assert not table[:, -1].any()


def test_what_is_constant_within_units_has_no_lags() -> None:
    values, unit, time = panel()
    values[:, 1] = unit
    without = window(values, 1, time=time, unit=unit)
    assert without.lagged == (0, 2)
    assert without.constant == (1,)
    rows = replace(window(values, 1, time=time, unit=unit, context=[1]), trends=(0,))
    assert rows.columns == ((0, 0), (2, 0), (0, 1), (2, 1), (1, 0), (TIME, 0))
    assert rows.names(["a", "b", "c"]) == ("a", "c", "a t-1", "c t-1", "b", "time")


def test_time_is_a_column_where_a_variable_has_a_trend() -> None:
    values = autoregression({(1, 0, 0): 0.5}, 300)
    assert not window(values, 1).trends
    rows = window(values + np.linspace(0, 2, 300)[:, None] * [0, 1], 1)
    assert rows.columns[-1] == (TIME, 0)


@pytest.mark.parametrize(
    ("dates", "expected"),
    [
        (["2020-01-31", "2020-02-29", "2020-03-31", "2020-05-31"], [0, 1, 2, 4]),
        (["2020-01-01", "2020-02-01", "2020-03-01", "2021-03-01"], [0, 1, 2, 14]),
        (["2020-01-01", "2020-01-08", "2020-01-15", "2020-01-29"], [0, 1, 2, 4]),
        (["2020-01-02", "2020-01-03", "2020-01-06", "2020-01-08"], [0, 1, 2, 4]),
        (["2020-01-02T16:00", "2020-01-03T16:00", "2020-01-06T16:00", "2020-01-08T16:00"], [0, 1, 2, 4]),
        (["2020-01-02", "2020-01-03", "2020-01-04", "2020-01-06"], [0, 1, 2, 4]),
        (["2020-01-01T00:15", "2020-01-01T00:30", "2020-01-01T00:45", "2020-01-01T01:15"], [0, 1, 2, 4]),
    ],
)
def test_dates_count_in_months_working_days_or_their_most_frequent_difference(
    dates: list[str], expected: list[int]
) -> None:
    assert ticks(np.array(dates, dtype="datetime64"), np.zeros(4, dtype=np.int64)).tolist() == expected


def test_units_may_start_at_different_times() -> None:
    unit = np.repeat([0, 1], 3)
    assert ticks(np.array([0.0, 0.5, 1.0, 0.7, 1.2, 1.7]), unit).tolist() == [0, 1, 2, 1, 2, 3]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"time": np.r_[np.arange(19), 25.5]}, "1 of 20 times lie between two steps"),
        ({"time": np.r_[np.arange(19.0), np.nan]}, "some are missing"),
        ({"time": np.array(["2020-01-01"] * 19 + ["NaT"], dtype="datetime64[D]")}, "some are missing"),
        ({"unit": np.arange(20)}, "at least 10 steps with 2 steps before them, got 0"),
    ],
)
def test_bad_times_and_units_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(TableError, match=message):
        window(numbers(20, 2), 2, **options)


def test_more_lags_than_steps_and_nothing_that_changes_are_refused() -> None:
    with pytest.raises(TableError, match="at least 10 steps with 15 steps before them, got 5"):
        window(numbers(20, 2), 15)
    unit = np.repeat([0, 1], 20)
    with pytest.raises(TableError, match="every column is constant within its unit"):
        window(unit[:, None] + 0.0, 1, unit=unit)


# Preparation


def test_levels_of_units_make_no_difference() -> None:
    values, unit, time = panel()
    columns = np.array([True, True, False])
    first, kept = without_levels(values, unit, time, columns)
    second, _ = without_levels(values + 10 * unit[:, None], unit, time, columns)
    assert kept.sum() == 4 * 11
    assert np.allclose(first[kept][:, :2], second[kept][:, :2])
    assert np.array_equal(first[:, 2], values[:, 2])


def test_a_step_loses_the_mean_of_the_earlier_observed_steps_of_its_unit() -> None:
    values, unit, time = panel(units=2, steps=6, variables=1)
    values[(unit == 1) & (time == 2)] = np.nan
    result, kept = without_levels(values, unit, time, np.array([True]))
    for u, t in itertools.product((0, 1), range(1, 6)):
        row = int(np.flatnonzero((unit == u) & (time == t))[0])
        earlier = values[(unit == u) & (time < t), 0]
        earlier = earlier[~np.isnan(earlier)]
        scale = np.sqrt(len(earlier) / (len(earlier) + 1))
        assert kept[row]
        assert np.allclose(result[row, 0], scale * (values[row, 0] - earlier.mean()), equal_nan=True)


def test_means_of_phases_are_taken_out_of_chosen_columns_alone() -> None:
    values, phase = numbers(60, 2), np.arange(60) % 12
    values[3, 0] = np.nan
    result = without_means(values, phase, np.array([True, False]))
    assert np.array_equal(result[:, 1], values[:, 1])
    assert all(abs(np.nanmean(result[phase == k, 0])) < 1e-12 for k in range(12))


def test_differences_are_those_to_the_step_before() -> None:
    values, time = numbers(30, 2), np.delete(np.arange(31), 9)
    result = differenced(values, np.array([True, False]), window(values, 1, time=time))
    assert np.array_equal(result[:, 1], values[:, 1])
    assert np.isnan(result[[0, 9], 0]).all()
    assert np.allclose(result[1:9, 0], np.diff(values[:9, 0]))
    assert np.allclose(result[10:, 0], np.diff(values[9:, 0]))


# Distributions over window graphs


def an_answer(rows: Any, seed: int = 3) -> GraphDistribution:
    """A random answer of a network for a window."""
    columns = len(rows.columns)
    skeleton, hidden = numbers(2, columns, columns, seed=seed)
    return GraphDistribution(skeleton + skeleton.T, numbers(columns, seed=seed + 1), hidden + hidden.T)


def test_permuting_variables_permutes_the_window_graph() -> None:
    values, order = numbers(30, 3), np.array([2, 0, 1])
    rows = replace(window(values, 3), trends=(0,))
    found = an_answer(rows)
    columns = np.concatenate([order + 3 * lag for lag in range(4)] + [[12]])
    one, other = tied(found, rows, 2), tied(found.rearranged(columns), rows, 2)
    assert np.allclose(other.past, one.past[:, order][:, :, order])
    assert np.allclose(other.probabilities(), one.probabilities()[:, order][:, :, order])
    assert np.allclose(other.context, one.context[:, order])


def test_newer_occurrences_of_a_pair_weigh_more() -> None:
    rows = replace(window(numbers(30, 2), 2), trends=(0,))
    base = np.full((7, 7), -3.0)
    moved = []
    for newer in (0, 1):
        skeleton = base.copy()
        older, younger = 2 * (newer + 1), 2 * newer + 1  # variable 0 at the older slice, variable 1 at the newer
        skeleton[older, younger] = skeleton[younger, older] = 0.0
        moved.append(tied(GraphDistribution(skeleton, np.zeros(7)), rows, 1).past[0, 0, 1])
    assert moved[0] > moved[1] > tied(GraphDistribution(base, np.zeros(7)), rows, 1).past[0, 0, 1]


def test_probabilities_at_a_lag_grow_with_the_share_of_edges_there() -> None:
    rows = replace(window(numbers(30, 4), 2), trends=(0,))
    many = np.full((13, 13), -2.0)
    many[4:8, :4] = 4.0  # many edges at lag 1
    many = np.maximum(many, many.T)
    found = tied(GraphDistribution(many, np.zeros(13)), rows, 2).past
    assert (found[0] > found[1]).all()
    assert (found[1] < -2).all()


def a_distribution(lags: int = 2, variables: int = 4, seed: int = 5) -> WindowDistribution:
    now = numbers(variables, variables, seed=seed)
    past = numbers(lags, variables, variables, seed=seed + 1)
    return WindowDistribution(
        past, GraphDistribution(now + now.T, numbers(variables, seed=seed + 2)), np.zeros((0, variables))
    )


def test_every_graph_is_acyclic_at_lag_0_and_obeys_the_knowledge() -> None:
    found = a_distribution()
    names = ["a", "b", "c", "d"]
    required, forbidden = np.zeros((2, 3, 4, 4), dtype=bool)
    required[2, 0, 1] = forbidden[1, :, 2] = True
    now = Knowledge(required=[("d", "a")], forbidden=[("a", "b"), ("b", "a")]).compile(names)
    known = WindowKnowledge(now, required, forbidden)
    found = found.under(known)
    graphs = [found.decoded()[0], found.decoded("f1")[0], *found.sample(50, np.random.default_rng(0))]
    for graph in graphs:
        assert graph.shape == (3, 4, 4)
        assert not np.linalg.matrix_power(graph[0].astype(int), 4).any()
        assert graph[0, 3, 0]
        assert not graph[0, 0, 1]
        assert not graph[0, 1, 0]
        assert graph[2, 0, 1]
        assert not graph[1, :, 2].any()


def test_sampled_edges_are_as_frequent_as_stated() -> None:
    found = a_distribution()
    drawn = found.sample(20_000, np.random.default_rng(0)).mean(axis=0)
    assert drawn == pytest.approx(found.probabilities(), abs=0.02)


def test_without_lag_0_nothing_else_changes() -> None:
    found = a_distribution()
    apart = found.without_now()
    assert apart.probabilities()[0].max() < 1e-6
    assert np.array_equal(apart.probabilities()[1:], found.probabilities()[1:])


def test_the_threshold_moves_edges_of_all_lags() -> None:
    found = a_distribution()
    counts = [found.decoded(threshold=threshold)[0].sum(axis=(1, 2)) for threshold in (0.2, 0.5, 0.8)]
    assert (counts[0] >= counts[1]).all()
    assert (counts[1] >= counts[2]).all()
    assert (counts[0] > counts[2]).all()
    assert np.array_equal(found.decoded()[0][1:], sigmoid(found.past) > 0.5)


def test_the_best_expected_f1_is_no_worse_than_that_of_other_graphs() -> None:
    found = a_distribution(lags=1, variables=3)
    drawn = found.sample(4000, np.random.default_rng(1))

    def mean_f1(graph: NDArray[np.bool_]) -> float:
        hits = (drawn & graph).sum(axis=(1, 2, 3))
        return float((2 * hits / np.maximum(graph.sum() + drawn.sum(axis=(1, 2, 3)), 1)).mean())

    best = mean_f1(found.decoded("f1")[0])
    assert all(best >= mean_f1(found.decoded(threshold=threshold)[0]) - 0.02 for threshold in (0.2, 0.35, 0.5, 0.7))


def test_a_summary_has_no_edge_from_a_variable_to_itself() -> None:
    graph = np.zeros((3, 2, 2), dtype=bool)
    graph[1, 0, 0] = graph[2, 1, 0] = True
    assert summary(graph).tolist() == [[False, False], [True, False]]


# Series with known equations


def autoregression(
    lags: dict[tuple[int, int, int], float], steps: int, variables: int = 2, seed: int = 0, units: int = 1
) -> Floats:
    """Linear equations from coefficients by (lag, cause, effect); causes at lag 0 come first.  (units · steps, P)"""
    random = np.random.default_rng(seed)
    series = []
    for _ in range(units):
        values = random.normal(size=(steps + 50, variables))
        for t in range(3, steps + 50):
            for k in range(variables):
                values[t, k] += sum(
                    weight * values[t - lag, j] for (lag, j, effect), weight in lags.items() if effect == k
                )
        series.append(values[50:])
    return np.concatenate(series)


def graph_of(lags: dict[tuple[int, int, int], float], slices: int, variables: int = 2) -> NDArray[np.bool_]:
    graph = np.zeros((slices, variables, variables), dtype=bool)
    for edge in lags:
        graph[edge] = True
    return graph


# Lags


@pytest.mark.parametrize("lag", [1, 2, 3])
def test_the_lags_of_an_autoregression_are_found(lag: int) -> None:
    values = autoregression({(1, 0, 0): 0.4, (lag, 0, 1): 0.4}, 500, seed=lag)
    assert needed_lags(values, window(values, most_lags(500, 2, 500))) == lag


def test_noise_needs_one_lag_and_missing_cells_are_allowed() -> None:
    values = numbers(400, 3)
    assert needed_lags(values, window(values, 8)) == 1
    values = autoregression({(1, 0, 0): 0.5, (2, 0, 1): 0.5}, 600)
    values[np.random.default_rng(0).random(values.shape) < 0.1] = np.nan
    assert needed_lags(values, window(values, 5)) == 2


def test_few_rows_allow_few_lags() -> None:
    assert most_lags(100, 10, 100) == 2
    assert most_lags(10_000, 5, 9) == 2
    assert most_lags(20, 30, 20) == 1


# Findings


def test_random_walks_are_told_from_stationary_series() -> None:
    shocks = numbers(20, 300)
    walks = [unit_root(np.cumsum(shock)) > critical_value(300) for shock in shocks]
    still = [unit_root(shock) > critical_value(300) for shock in shocks]
    assert sum(walks) >= 17
    assert sum(still) == 0


def test_a_season_is_found_and_memory_alone_is_none() -> None:
    wave = np.sin(2 * np.pi * np.arange(360) / 12)
    assert season(wave + numbers(360)) == 12
    memories = [autoregression({(1, 0, 0): 0.95}, 400, variables=1, seed=seed)[:, 0] for seed in range(20)]
    assert [season(memory) for memory in memories] == [0] * 20


def test_findings_name_what_is_wrong() -> None:
    values = autoregression({(1, 0, 0): 0.3}, 360, variables=3)
    values[:, 1] = np.cumsum(numbers(360))
    values[:, 2] += 3 * np.sin(2 * np.pi * np.arange(360) / 7)
    found = {each.kind: each for each in findings_of_series(values, window(values, 1), columns("a", "b", "c"))}
    assert found["random_walk"].columns == ("b",)
    assert found["season"].columns == ("c",)
    assert found["season"].remedies[0].setting == "7"
    slow = autoregression({(1, 0, 0): 0.97}, 360)
    assert "effective_rows" in {each.kind for each in findings_of_series(slow, window(slow, 1), columns("a", "b"))}
    calm = numbers(360, 2)
    assert findings_of_series(calm, window(calm, 1), columns("a", "b")) == []


def test_panels_are_told_of_few_steps_few_units_and_constants() -> None:
    values, unit, time = panel(units=5)
    values[:, 2] = unit
    rows = window(values, 1, time=time, unit=unit)
    kinds = [each.kind for each in findings_of_series(values, rows, columns("a", "b", "c"))]
    assert kinds[:3] == ["short_panel", "few_units", "constant_in_units"]


@pytest.mark.parametrize(
    ("cells", "repeats"),
    [
        (np.arange(40), True),
        (np.arange(40) // 4 + 1959, True),
        (np.arange(40) % 12 + 1, True),
        (np.arange(40) % 2, False),
        (np.cumsum(numbers(40)), False),
        (np.r_[np.arange(30), np.arange(10)], False),
    ],
)
def test_numbers_that_count_time_are_named(cells: NDArray[Any], repeats: bool) -> None:
    table = Table.of_numbers(np.column_stack([cells, numbers(40)]), ("a", "b"))
    series = Series(table, np.arange(40), np.zeros(40, dtype=np.int64))
    assert [each.columns for each in findings_of_columns(series)] == ([("a",)] if repeats else [])


def test_labels_of_stacked_units_are_named() -> None:
    values = np.column_stack([np.repeat(np.arange(4), 10), numbers(40)])
    firms = Column("firm", "category", ("u", "v", "w", "x"))
    one_unit = np.zeros(40, dtype=np.int64)
    for cells, kinds in ((values, ["stacked_units"]), (values[numbers(40).argsort()], [])):
        series = Series(Table(cells, (firms, Column("y"))), np.arange(40), one_unit)
        assert [each.kind for each in findings_of_columns(series)] == kinds


def test_changes_that_wander_are_not_to_be_differenced_again() -> None:
    walk = np.column_stack([np.cumsum(numbers(200)), numbers(200, seed=1)])
    for changes, remedies in (((), 1), (("a",), 0)):
        (found,) = findings_of_series(walk, window(walk, 1), columns("a", "b"), changes)
        assert (found.kind, len(found.remedies)) == ("random_walk", remedies)


def test_edges_at_lag_0_alone_point_to_slow_sampling() -> None:
    graph = np.zeros((2, 3, 3), dtype=bool)
    graph[0, 0, 1] = graph[0, 1, 2] = graph[1, 0, 0] = True
    assert findings_of_graph(graph)
    graph[1, 2, 0] = True
    assert not findings_of_graph(graph)


# Effects over time

CHAIN = {(1, 0, 0): 0.5, (1, 0, 1): 0.8, (1, 1, 1): 0.3}
RAISED_ONCE = [0.0, 0.8, 0.64, 0.392]
HELD = [0.0, 0.8, 1.04, 1.112]


@pytest.mark.parametrize(("kind", "expected"), [("pulse", RAISED_ONCE), ("step", HELD)])
def test_effects_of_a_long_series_are_those_of_its_equations(kind: str, expected: list[float]) -> None:
    steps = Steps(autoregression(CHAIN, 20_000))
    found = response(steps, graph_of(CHAIN, 2)[None], 0, 1, 3, np.random.default_rng(0), kind=kind)
    assert found.estimate == pytest.approx(expected, abs=0.05)
    assert (found.high - found.low)[1:].max() < 0.1
    assert found.path == 1


def test_units_of_measurement_only_scale_an_effect() -> None:
    values, graph = autoregression(CHAIN, 300), graph_of(CHAIN, 2)[None]
    plain = response(Steps(values), graph, 0, 1, 2, np.random.default_rng(0))
    other = response(Steps(values * [1e9, 1e-6] + [0.0, 3.0]), graph, 0, 1, 2, np.random.default_rng(0))
    assert other.estimate * 1e15 == pytest.approx(plain.estimate, rel=1e-6)
    assert other.low * 1e15 == pytest.approx(plain.low, rel=1e-6)


def test_an_effect_at_lag_0_is_found_and_none_on_a_cause_at_lag_0() -> None:
    equations = {(0, 0, 1): 0.7, (1, 0, 0): 0.4}
    steps, graph = Steps(autoregression(equations, 5000)), graph_of(equations, 2)[None]
    forwards = response(steps, graph, 0, 1, 2, np.random.default_rng(0))
    assert forwards.estimate == pytest.approx([0.7, 0.28, 0.112], abs=0.06)
    backwards = response(steps, graph, 1, 0, 2, np.random.default_rng(0))
    assert backwards.estimate == pytest.approx([0, 0, 0], abs=0.06)
    assert backwards.high[0] - backwards.low[0] < 1e-6
    assert backwards.path == 0


def test_a_common_cause_in_the_graph_is_adjusted_for() -> None:
    equations = {(1, 2, 0): 0.9, (2, 2, 1): 0.9, (1, 2, 2): 0.5}
    steps = Steps(autoregression(equations, 4000, variables=3))
    adjusted = response(steps, graph_of(equations, 3, 3)[None], 0, 1, 2, np.random.default_rng(0))
    assert adjusted.estimate == pytest.approx([0, 0, 0], abs=0.07)
    ignorant = response(steps, graph_of({(1, 0, 1): 1}, 3, 3)[None], 0, 1, 2, np.random.default_rng(0))
    assert ignorant.low[1] > 0.15


def test_graphs_are_mixed_by_their_share() -> None:
    equations = {(1, 2, 0): 0.9, (2, 2, 1): 0.9, (1, 2, 2): 0.5}
    steps = Steps(autoregression(equations, 4000, variables=3))
    # One graph in four has the edge that the equations lack, and not the common cause.
    graphs = np.stack([graph_of(equations, 3, 3)] * 3 + [graph_of({(1, 0, 1): 1}, 3, 3)])
    found = response(steps, graphs, 0, 1, 1, np.random.default_rng(0))
    assert [share for _, share in found.sets] == [0.75, 0.25]
    assert found.low[1] == found.estimate[1] == 0
    assert found.high[1] > 0.15


def test_levels_of_units_and_gaps_do_not_bias_an_effect() -> None:
    values = autoregression(CHAIN, 150, units=30)
    unit, time = np.repeat(np.arange(30), 150), np.tile(np.arange(150), 30)
    values += 20 * numbers(30, 1, seed=9)[unit]
    values[np.random.default_rng(0).random(values.shape) < 0.02] = np.nan
    kept = np.random.default_rng(1).random(len(values)) < 0.98
    steps = Steps(values[kept], time[kept], unit[kept])
    found = response(steps, graph_of(CHAIN, 2)[None], 0, 1, 3, np.random.default_rng(0))
    assert found.estimate == pytest.approx(RAISED_ONCE, abs=0.08)
    assert not found.corrected


def test_short_panels_are_corrected() -> None:
    values, unit = autoregression(CHAIN, 12, units=400), np.repeat(np.arange(400), 12)
    found = response(Steps(values, unit=unit), graph_of(CHAIN, 2)[None], 0, 1, 2, np.random.default_rng(0))
    assert found.corrected
    assert found.estimate == pytest.approx(RAISED_ONCE[:3], abs=0.1)
    assert "Units have fewer than 12 rows each: intervals are too narrow." in found.notes


def test_there_is_no_effect_where_the_graph_has_no_path_of_so_many_steps() -> None:
    values = autoregression({(2, 0, 1): 0.8, (0, 1, 2): 0.7, (1, 2, 2): 0.5}, 300, 3)
    graph = graph_of({(2, 0, 1): 1, (0, 1, 2): 1, (1, 2, 2): 1}, 3, 3)
    for effect, steps in ((1, [2]), (2, [2, 3, 4])):
        found = response(Steps(values), graph[None], 0, effect, 4, np.random.default_rng(0))
        assert np.flatnonzero(found.estimate).tolist() == steps
        assert np.flatnonzero(found.high - found.low).tolist() == steps
    back = response(Steps(values), graph[None], 1, 0, 4, np.random.default_rng(0), kind="step")
    assert not back.estimate.any()
    assert back.path == 0


def test_steps_that_leave_units_few_rows_are_named() -> None:
    values, unit = autoregression(CHAIN, 20, units=60), np.repeat(np.arange(60), 20)
    found = response(Steps(values, unit=unit), graph_of(CHAIN, 2)[None], 0, 1, 8, np.random.default_rng(0))
    assert "From step 7 on, units have fewer than 12 rows each: intervals are too narrow." in found.notes
    long = response(Steps(values, unit=unit), graph_of(CHAIN, 2)[None], 0, 1, 6, np.random.default_rng(0))
    assert not any("too narrow" in note for note in long.notes)


def test_impossible_questions_about_effects_are_refused() -> None:
    steps, graph = Steps(numbers(30, 2)), np.zeros((1, 2, 2, 2), dtype=bool)
    with pytest.raises(ConfigurationError, match="two different variables"):
        response(steps, graph, 0, 0, 2, np.random.default_rng(0))
    with pytest.raises(TableError, match="ask for"):
        response(steps, graph, 0, 1, 20, np.random.default_rng(0))
