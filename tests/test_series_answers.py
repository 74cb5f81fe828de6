"""Series as users meet them: reading, knowledge in the words of time, answers, effect curves, pictures, files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from causal_arrow import Arrow, Knowledge, SeriesDiscovery, discover, load_example
from causal_arrow.errors import COMMAND_LINE, ArrowError, ConfigurationError, KnowledgeError, TableError
from causal_arrow.examples.equations import GREENHOUSE_EDGES, draw_greenhouse
from causal_arrow.graphs.graph_distribution import GraphDistribution
from causal_arrow.series import SeriesOptions
from causal_arrow.series.answer import SeriesAnswer
from causal_arrow.series.distribution import WindowDistribution, window_knowledge
from causal_arrow.series.exports import TEXT_FORMATS, to_tigramite
from causal_arrow.series.pictures import rows_in_time
from causal_arrow.series.reading import read_series

Run = Callable[..., tuple[int, str, str]]

pytestmark = pytest.mark.filterwarnings("ignore::causal_arrow.errors.ArrowWarning")


@pytest.fixture(scope="module")
def greenhouse() -> pd.DataFrame:
    return load_example("greenhouse")


@pytest.fixture(scope="module")
def found(greenhouse: pd.DataFrame) -> SeriesDiscovery:
    return series_of(greenhouse, lags=2, time="day")


def series_of(table: Any, **options: Any) -> SeriesDiscovery:
    found = discover(table, **options)
    assert isinstance(found, SeriesDiscovery)
    return found


def edges(found: SeriesDiscovery) -> set[tuple[str, str, int]]:
    return {(edge.source, edge.target, edge.lag) for edge in (*found.answer.edges, *found.answer.own_past)}


# Reading


def test_the_equations_of_the_greenhouse_are_found(found: SeriesDiscovery) -> None:
    assert edges(found) == set(GREENHOUSE_EDGES)


def test_order_of_rows_and_of_columns_does_not_matter_where_time_is_given(
    greenhouse: pd.DataFrame, found: SeriesDiscovery
) -> None:
    shuffled = series_of(greenhouse.sample(frac=1, random_state=0)[greenhouse.columns[::-1]], lags=2, time="day")
    assert edges(shuffled) == edges(found)
    there = {(edge.source, edge.target, edge.lag): edge.probability for edge in shuffled.answer.edges}
    for edge in found.answer.edges:
        assert there[edge.source, edge.target, edge.lag] == pytest.approx(edge.probability, abs=1e-6)


def test_an_index_of_dates_is_the_time(greenhouse: pd.DataFrame) -> None:
    dated = greenhouse.set_index(pd.to_datetime(greenhouse["day"])).drop(columns="day").iloc[::-1]
    series = read_series(dated, SeriesOptions(lags=1))
    assert series.tick.tolist() == list(range(499, -1, -1))


def test_a_row_without_values_leaves_a_gap_in_time(greenhouse: pd.DataFrame) -> None:
    gappy = greenhouse.drop(columns="day")
    gappy.iloc[10] = np.nan
    series = read_series(gappy, SeriesOptions(lags=1))
    assert 10 not in series.tick
    assert series.tick.max() == 499


def test_resampling_averages_numbers_and_leaves_empty_steps_missing() -> None:
    times = pd.to_datetime(
        ["2024-01-31", "2024-01-02", "2024-03-05"] + [f"2025-{month:02d}-01" for month in range(1, 13)] * 2
    )
    table = pd.DataFrame({"when": times, "x": np.arange(27.0), "y": np.arange(27.0) ** 2})
    series = read_series(table, SeriesOptions(lags=1, time="when", resample="MS"))
    assert series.tick.tolist() == list(range(24))
    assert series.table.values[0].tolist() == [0.5, 0.5]
    assert np.isnan(series.table.values[1]).all()
    assert series.table.values[12, 0] == (3 + 15) / 2


def test_working_days_are_equal_steps_with_and_without_resampling() -> None:
    table = pd.DataFrame({"when": pd.bdate_range("2024-01-04", periods=40), "x": np.arange(40) % 7, "y": range(40)})
    for resample in (None, "B"):
        series = read_series(table, SeriesOptions(lags=1, time="when", resample=resample))
        assert series.tick.tolist() == list(range(40))


def test_dates_with_the_day_first_are_known_by_days_after_the_twelfth() -> None:
    days = pd.date_range("2024-03-01", periods=40)
    table = pd.DataFrame({"when": days.strftime("%d.%m.%Y"), "x": np.arange(40) % 7, "y": range(40)})
    assert read_series(table, SeriesOptions(lags=1, time="when")).tick.tolist() == list(range(40))
    table["when"] = days.strftime("%m/%d/%Y")
    assert read_series(table, SeriesOptions(lags=1, time="when")).tick.tolist() == list(range(40))


def test_numbers_as_times_are_resampled_to_a_length() -> None:
    table = pd.DataFrame({"t": np.repeat(np.arange(20), 2) * 0.5 + 0.1, "x": np.arange(40.0), "y": np.arange(40.0) % 7})
    series = read_series(table, SeriesOptions(lags=1, time="t", resample=0.5))
    assert series.table.values[:, 0].tolist() == [2 * step + 0.5 for step in range(20)]


def test_units_do_not_mix_and_what_is_constant_within_them_becomes_context() -> None:
    houses = []
    for unit in range(40):
        days = draw_greenhouse(25, np.random.default_rng(unit)).assign(house=f"h{unit}", glass=["old", "new"][unit % 2])
        houses.append(days.assign(soil=days["soil"] + 5 * (unit % 2)))
    panel = series_of(pd.concat(houses), lags=2, time="day", unit="house")
    assert panel.series.units == 40
    assert edges(panel) == set(GREENHOUSE_EDGES)
    assert panel.answer.context == ("glass",)
    by_target = dict(zip(panel.answer.names, panel.answer.context_probabilities[0], strict=True))
    assert max(by_target, key=by_target.__getitem__) == "soil"
    assert "Corrected for the bias" in str(panel.response("watering", "soil", steps=1))
    summary = str(panel)
    assert "40 units with about 21 steps after the lags" in summary
    assert "'glass' is constant within each unit: it has 40 observations" in summary


def test_units_may_be_as_short_as_two_steps_more_than_the_lags() -> None:
    houses = [draw_greenhouse(3, np.random.default_rng(unit)).assign(house=f"h{unit}") for unit in range(200)]
    panel = series_of(pd.concat(houses), lags=1, time="day", unit="house")
    assert "200 units with about 1 step after the lags" in str(panel)
    assert {("soil", "watering", 1), ("watering", "soil", 1), ("temperature", "soil", 1)} & edges(panel)


def test_what_is_constant_within_units_may_have_many_digits() -> None:
    sizes = np.random.default_rng(0).normal(size=30)
    houses = [
        draw_greenhouse(18, np.random.default_rng(unit)).assign(house=unit, size=size)
        for unit, size in enumerate(sizes)
    ]
    panel = series_of(pd.concat(houses), lags=1, time="day", unit="house")
    assert panel.answer.context == ("size",)


def test_constants_of_few_units_are_said_to_be_left_out() -> None:
    houses = [draw_greenhouse(40, np.random.default_rng(unit)).assign(house=unit, size=unit) for unit in range(5)]
    panel = series_of(pd.concat(houses), lags=1, time="day", unit="house")
    assert panel.answer.context == ()
    assert "'size' is constant within each unit: it has 5 observations, one per unit, too few to learn" in str(panel)


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (lambda days: days.assign(u=np.arange(500) // 2), {"unit": "u", "time": "day"}, "at least 4 steps.*has 2"),
        (lambda days: days.assign(u=np.arange(500) // 2), {"unit": "u", "time": "day", "lags": 1}, "has 2.$"),
        (lambda days: pd.concat([days, days[:3]]), {"time": "day"}, "observation 501 occurs twice.*unit"),
        (lambda days: days[:30], {"time": "day", "lags": 25}, "too short for so many lags.*fewer"),
        (lambda days: days.assign(day=np.arange(500) ** 1.01), {"time": "day"}, "equal steps of time.*resample"),
        (lambda days: days.assign(day="once"), {"time": "day"}, "Expected dates or numbers as times in 'day'"),
        (lambda days: days.assign(day=days["day"].where(days.index != 4)), {"time": "day"}, "some are missing"),
        (lambda days: days, {"time": "dya"}, r"did you mean 'day'\?$"),
        (lambda days: days, {}, "contains dates.*time="),
        (lambda days: days.assign(u=range(500)), {"time": "day", "unit": "u"}, "has one row"),
        (lambda days: days.assign(u="a"), {"time": "day", "unit": "u"}, "all 'a': leave out the unit"),
        (lambda days: days, {"time": "day", "resample": "fortnight"}, "period such as"),
        (lambda days: days, {"time": "day", "difference": ["son"]}, "not among the variables"),
        (lambda days: days, {"time": "day", "season": 300}, "at least two seasons of 300 steps"),
        (lambda days: days.assign(n=range(500)), {"time": "day", "difference": True}, "'n' is constant once"),
    ],
)
def test_bad_series_get_one_sentence(greenhouse: pd.DataFrame, change: Any, options: Any, message: str) -> None:
    with pytest.raises(TableError, match=message):
        discover(change(greenhouse.copy()), **{"lags": 2, **options})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"time": "day"}, "no lags are given.*lags=3"),
        ({"lags": 0}, "from 1 to 50 or 'auto'"),
        ({"lags": 2, "season": 1}, "season"),
        ({"lags": 2, "contemporaneous": "no"}, "true or false"),
    ],
)
def test_settings_that_do_not_fit_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        SeriesOptions(**options)


def test_remedies_are_in_the_words_of_the_command_line(greenhouse: pd.DataFrame) -> None:
    with pytest.raises(ArrowError) as caught:
        discover(pd.concat([greenhouse, greenhouse[:3]]), lags=2, time="day")
    assert "--unit" in caught.value.worded(COMMAND_LINE)
    assert "unit=" not in caught.value.worded(COMMAND_LINE)


def test_lags_are_chosen_by_the_data(greenhouse: pd.DataFrame) -> None:
    found = series_of(greenhouse, lags="auto", time="day")
    assert found.answer.lags == 2
    assert "2 lags, chosen by" in str(found)


def test_without_lag_0_the_rest_stays(greenhouse: pd.DataFrame, found: SeriesDiscovery) -> None:
    apart = series_of(greenhouse, lags=2, time="day", contemporaneous=False)
    assert not apart.answer.graph[0].any()
    assert np.array_equal(apart.answer.edge_probabilities[1:], found.answer.edge_probabilities[1:])


def test_experiments_and_environments_are_read_in_time(greenhouse: pd.DataFrame) -> None:
    labels = [""] * 500
    table = greenhouse.assign(house=np.repeat(["a", "b"], 250))
    table["sun"] += np.repeat([0.0, 3.0], 250)
    for row in range(200, 240):
        table.loc[row, "watering"] = row % 7 - 3.0
        labels[row] = "watering"
    found = series_of(table, lags=2, time="day", interventions=labels, environments="house")
    assert found.answer.experiments == {"watering": 40}
    assert found.answer.observations == 500 - 2 * 3  # no row from before and after the change
    assert found.answer.context[0] == "house"
    assert dict(zip(found.answer.names, found.answer.context_probabilities[0], strict=True))["sun"] > 0.5


def test_random_walks_seasons_and_trends_are_named_with_what_to_do(greenhouse: pd.DataFrame) -> None:
    random, steps = np.random.default_rng(0), np.arange(500)
    table = greenhouse.assign(sun=np.cumsum(random.normal(size=500)))
    table["growth"] += 3 * np.sin(2 * np.pi * steps / 12)
    table["watering"] += 0.02 * steps
    plain = series_of(table, lags=2, time="day")
    findings = {finding.kind: finding for finding in plain.report.findings}
    assert findings["random_walk"].columns == ("sun",)
    assert "difference=['sun']" in findings["random_walk"].worded()
    assert "--season 12" in findings["season"].worded(COMMAND_LINE)
    assert "watering" in findings["trend"].columns
    calm = series_of(table, lags=2, time="day", difference=["sun"], season=12)
    assert not {"random_walk", "season"} & {finding.kind for finding in calm.report.findings}
    assert calm.answer.prepared == {"difference": ["sun"], "season": 12}


# Knowledge


NAMES = ("a", "b", "c")


def test_knowledge_of_lags_forbids_these_lags_alone() -> None:
    known = window_knowledge(Knowledge(forbidden=["a -> b at lag 0", "b -> c at lags 1 to 2"]), NAMES, (), 3)
    assert np.argwhere(known.now.forbidden).tolist() == [[0, 1]]
    assert np.argwhere(known.forbidden).tolist() == [[0, 0, 1], [1, 1, 2], [2, 1, 2]]


def test_except_at_a_lag_forbids_all_others_and_a_star_stands_for_every_variable() -> None:
    known = window_knowledge(Knowledge(forbidden=["a -> b except at lag 2", "* -> c at lag 1"]), NAMES, (), 2)
    assert known.forbidden[:2, 0, 1].all()
    assert not known.forbidden[2, 0, 1]
    assert known.forbidden[1, :, 2].all()


def test_tiers_and_roots_are_about_variables_and_leave_their_own_past_free() -> None:
    known = window_knowledge(Knowledge(tiers=[["a"], ["b"]], roots=["c"]), NAMES, (), 2)
    assert known.forbidden[:, 1, 0].all()
    assert known.forbidden[:, :2, 2].all()
    assert not known.forbidden[:, range(3), range(3)].any()


def test_nothing_causes_what_is_randomized_not_even_its_own_past() -> None:
    known = window_knowledge(Knowledge(randomized=["b"]), NAMES, ("house",), 2)
    assert known.forbidden[1:, :, 1].all()
    assert known.forbidden[0, 3, 1]  # the context
    assert known.now.forbidden[[0, 2], 1].all()
    assert known.now.unconfounded[[0, 2], 1].all()
    assert not known.forbidden[:, :, [0, 2]].any()


def test_a_search_space_forbids_everything_else() -> None:
    known = window_knowledge(Knowledge(search_space=["a -> b at lag 1", "b -> c"]), NAMES, (), 2)
    free = {tuple(where) for where in np.argwhere(~known.forbidden[1:]).tolist()}
    assert free == {(0, 0, 1), (0, 1, 2), (1, 1, 2), *((lag, j, j) for lag in (0, 1) for j in range(3))}
    assert not known.now.forbidden[1, 2]
    assert known.now.forbidden[0, 1]


@pytest.mark.parametrize(
    ("knowledge", "message"),
    [
        ({"required": ["a -> b"]}, "needs one lag, as in 'a -> b at lag 1'"),
        ({"forbidden": ["a -> b at lag 5"]}, "only lags 0 to 2 are searched"),
        ({"forbidden": ["aa -> b at lag 1"]}, "did you mean 'a'"),
        ({"required": ["a -> b at lag 1"], "roots": ["b"]}, "required, but other knowledge forbids it"),
        ({"required": ["a -> b at lag 0", "b -> a at lag 0"]}, "cycle"),
    ],
)
def test_knowledge_that_cannot_hold_is_refused(knowledge: dict[str, Any], message: str) -> None:
    with pytest.raises(KnowledgeError, match=message):
        window_knowledge(Knowledge(**knowledge), NAMES, (), 2)


def test_no_graph_contradicts_the_knowledge_and_the_network_does_not_run_again(found: SeriesDiscovery) -> None:
    informed = found.refine(
        required=["growth -> sun at lag 2"], forbidden=["sun -> temperature at lag 0"], tiers=[["soil"], ["watering"]]
    )
    j, k = informed.answer.index_of("growth"), informed.answer.index_of("sun")
    for graph in (informed.answer.graph, *informed.sample(30)):
        assert graph[2, j, k]
        assert not graph[0, k, informed.answer.index_of("temperature")]
        assert not graph[:, informed.answer.index_of("watering"), informed.answer.index_of("soil")].any()
    assert informed.network is found.network
    assert edges(found) == set(GREENHOUSE_EDGES)


# Answers


def test_the_summary_graph_has_the_cycle_that_the_window_graph_has_not(found: SeriesDiscovery) -> None:
    summary = found.graph
    assert summary.loc["soil", "watering"] == summary.loc["watering", "soil"] == 1
    assert not np.linalg.matrix_power(found.answer.graph[0].astype(int), 5).any()
    assert not np.diag(summary).any()


def test_the_summary_is_at_least_as_probable_as_its_most_probable_lag(found: SeriesDiscovery) -> None:
    apart = ~np.eye(5, dtype=bool)
    assert (found.answer.summary_probabilities >= found.answer.edge_probabilities.max(axis=0) - 1e-12)[apart].all()


def test_the_frame_of_edges_has_a_column_of_lags(found: SeriesDiscovery) -> None:
    frame = found.edges
    listed = set(zip(frame["source"], frame["target"], frame["lag"], strict=True))
    assert listed == set(GREENHOUSE_EDGES)


def test_hidden_causes_are_shown_as_the_settings_say(found: SeriesDiscovery) -> None:
    frame = found.confounding_probabilities
    assert frame is not None
    probabilities = frame.to_numpy()[np.triu_indices(5, 1)]
    threshold = float(np.sort(probabilities)[4:6].mean())
    every = found.refine(hidden="all", hidden_threshold=threshold).answer
    assert len(every.hidden_causes) == 5
    assert every.undistinguished == 0
    standing_out = every.refine(hidden="standing-out")
    assert len(standing_out.hidden_causes) + standing_out.undistinguished == 5
    assert not every.refine(hidden="none").hidden_causes
    assert SeriesAnswer.from_dict(every.to_dict()).hidden_causes == every.hidden_causes
    with pytest.raises(ConfigurationError, match="standing-out"):
        found.refine(hidden="some")


# Effects over time


def true_response(cause: str, effect: str, steps: int) -> NDArray[np.float64]:
    """The response in the equations of the greenhouse: two runs with the same noise."""
    names = ["sun", "temperature", "watering", "soil", "growth"]
    push = np.zeros((steps + 3, 5))
    push[2, names.index(cause)] = 1.0
    x = np.zeros((steps + 3, 5))
    for t in range(2, steps + 3):
        x[t, 0] = 0.6 * x[t - 1, 0] + push[t, 0]
        x[t, 1] = 0.5 * x[t - 1, 1] + 0.7 * x[t, 0] + push[t, 1]
        x[t, 2] = -0.6 * x[t - 1, 3] + push[t, 2]
        x[t, 3] = 0.6 * x[t - 1, 3] + 0.8 * x[t - 1, 2] - 0.4 * x[t - 1, 1] + push[t, 3]
        x[t, 4] = 0.4 * x[t - 1, 4] + 0.5 * x[t - 2, 3] + 0.5 * x[t - 1, 0] + push[t, 4]
    return np.asarray(x[2:, names.index(effect)])


@pytest.mark.parametrize(("cause", "effect"), [("watering", "soil"), ("sun", "growth"), ("temperature", "soil")])
def test_curves_hold_the_effects_of_the_equations(found: SeriesDiscovery, cause: str, effect: str) -> None:
    curve = found.response(cause, effect, steps=6)
    truth = true_response(cause, effect, 6)
    inside = (curve.low <= truth + 0.02) & (truth - 0.02 <= curve.high)
    assert inside.sum() >= 5
    assert curve.path > 0.99


def test_a_lasting_change_adds_up_what_a_single_one_does() -> None:
    long = series_of(draw_greenhouse(5000, np.random.default_rng(5)), lags=2, time="day")
    held = long.response("watering", "growth", steps=4, kind="step")
    assert held.estimate[3] == pytest.approx(0.4, abs=0.1)
    assert held.low[3] < held.estimate[3] < held.high[3]


def test_random_walks_have_effects_on_their_levels_after_differencing() -> None:
    random = np.random.default_rng(1)
    walk = np.cumsum(random.normal(size=800))
    table = pd.DataFrame({"walk": walk, "y": np.r_[0.0, 0.8 * walk[:-1]] + random.laplace(size=800)})
    found = series_of(table, lags=1, difference=["walk", "y"])
    curve = found.response("walk", "y", steps=2)
    assert curve.estimate[1] == pytest.approx(0.8, abs=0.15)
    assert curve.estimate[2] == pytest.approx(0.8, abs=0.2)


def test_all_causes_of_one_variable_come_with_the_largest_first(found: SeriesDiscovery) -> None:
    curves = found.responses("growth", steps=3, n_graphs=20)
    assert [curve.cause for curve in curves.curves][-1] in ("watering", "temperature")
    assert len(curves.to_frame()) == 4 * 4
    assert len(str(curves).splitlines()) == 4


def test_impossible_questions_are_refused(greenhouse: pd.DataFrame, found: SeriesDiscovery) -> None:
    for ask, message in (
        (lambda: found.response("soil", "soil"), "two different"),
        (lambda: found.response("soils", "sun"), "did you mean 'soil'"),
        (lambda: found.response("soil", "sun", kind="ramp"), "pulse, step"),
        (lambda: found.response("soil", "sun", steps=-1), "whole number"),
        (lambda: found.next_experiment(("soil", "sun")), "one variable"),
        (lambda: found.next_experiment(candidates=["moon"]), "no variable 'moon'"),
        (lambda: found.response("soil", "sun", n_graphs=0), "n_graphs"),
        (lambda: found.draw(what="tree"), "summary, window"),
    ):
        with pytest.raises(ConfigurationError, match=message):
            ask()
    short = series_of(greenhouse[:60], lags=2, time="day")
    with pytest.raises(TableError, match="ask for fewer steps"):
        short.response("soil", "growth", steps=55)
    sky = np.array(["grey", "mixed", "clear"])[np.digitize(greenhouse["sun"], [-0.5, 0.5])]
    levels = series_of(greenhouse.assign(sun=sky), lags=1, time="day")
    with pytest.raises(ConfigurationError, match="holds levels"):
        levels.response("sun", "growth")


# The next experiment


def test_an_experiment_is_advised_where_directions_within_a_step_are_uncertain() -> None:
    random = np.random.default_rng(0)
    noise = random.normal(size=(400, 3))
    x = np.zeros((400, 3))
    for t in range(1, 400):
        x[t, 0] = 0.5 * x[t - 1, 0] + noise[t, 0]
        x[t, 1] = 0.5 * x[t - 1, 1] + x[t, 0] + noise[t, 1]
        x[t, 2] = 0.5 * x[t - 1, 2] + noise[t, 2]
    found = series_of(pd.DataFrame(x, columns=["a", "b", "c"]), lags=1)
    plan = found.next_experiment(n_graphs=200, budget=2)
    assert plan.best.action == "set"
    assert plan.best.name in ("a", "b")
    assert ("a", "b") in plan.best.settles
    gains = {each.name: each.gain for each in plan.experiments if each.action == "set"}
    assert gains["c"] < min(gains["a"], gains["b"])
    for name in ("a", "b", "c"):  # a variable that is set at every step no longer depends on its own past
        advised = next(each for each in plan.experiments if each.action == "set" and each.name == name)
        assert not [pair for pair in advised.settles if {each.partition(" ")[0] for each in pair} == {name}]
    known = found.refine(forbidden=["b -> a at lag 0"]).next_experiment(n_graphs=200)
    assert known.doubt < plan.doubt
    assert {each.name for each in found.next_experiment("b", n_graphs=50).experiments} == {"a", "c"}


# Files and pictures


def test_an_answer_comes_back_from_json_and_can_be_refined(found: SeriesDiscovery) -> None:
    again = SeriesAnswer.from_dict(json.loads(found.to_json()))
    assert again.edges == found.answer.edges
    assert np.array_equal(again.edge_probabilities, found.answer.edge_probabilities)
    assert len(again.refine(threshold=0.999999).edges) <= len(again.edges)
    with pytest.raises(ConfigurationError, match="answer about a series"):
        SeriesAnswer.from_dict({"format": "causal-arrow-graph"})
    with pytest.raises(ConfigurationError, match="damaged"):
        SeriesAnswer.from_dict({**found.answer.to_dict(), "distribution": {}})


def test_a_causal_file_answers_every_question(found: SeriesDiscovery, tmp_path: Path) -> None:
    found.save(tmp_path / "work.causal")
    again = SeriesDiscovery.load(tmp_path / "work.causal")
    asked = {"steps": 3, "n_graphs": 50}
    assert np.array_equal(
        again.response("sun", "soil", **asked).estimate, found.response("sun", "soil", **asked).estimate
    )
    with pytest.raises(ArrowError, match="overwrite"):
        found.save(tmp_path / "work.causal")
    (tmp_path / "other.causal").write_text("no")
    with pytest.raises(ConfigurationError, match=r"SeriesDiscovery.save wrote, got .* damaged"):
        SeriesDiscovery.load(tmp_path / "other.causal")


def test_other_packages_get_the_same_edges(found: SeriesDiscovery) -> None:
    expected = edges(found)
    graph = found.to_networkx()
    assert {(source, target, lag) for source, target, lag in graph.edges(keys=True)} == expected
    exported = to_tigramite(found.answer)
    marks, values = exported["graph"], exported["val_matrix"]
    names = found.answer.names
    assert {(names[j], names[k], int(lag)) for j, k, lag in np.argwhere(marks == "-->")} == expected
    assert (marks[:, :, 0] == "<--").sum() == (marks[:, :, 0] == "-->").sum()
    assert (values[:, :, 0] == values[:, :, 0].T).all()  # which tigramite's plots demand
    assert (values[:, :, 1:] == np.moveaxis(found.answer.edge_probabilities, 0, 2)[:, :, 1:]).all()
    coefficients = found.to_statsmodels()
    lagged = {(names[j], names[k], int(lag) + 1) for lag, k, j in np.argwhere(coefficients)}
    assert lagged == {edge for edge in expected if edge[2]}


@pytest.mark.parametrize("name", TEXT_FORMATS)
def test_text_formats_name_every_edge(found: SeriesDiscovery, name: str) -> None:
    text = TEXT_FORMATS[name](found.answer)
    assert all(text.count(edge.source) and text.count(edge.target) for edge in found.answer.edges)


def test_pictures_show_every_variable_and_every_edge(found: SeriesDiscovery, tmp_path: Path) -> None:
    for what, edges_drawn in (("summary", len(found.answer.edges)), ("window", len(GREENHOUSE_EDGES))):
        found.draw(tmp_path / "graph.svg", tmp_path / "graph.png", what=what)
        text = (tmp_path / "graph.svg").read_text()
        assert all(f">{name}<" in text for name in found.answer.names)
        ax = found.draw(what=what)
        assert ax is not None
        assert sum(type(patch).__name__ == "FancyArrowPatch" for patch in ax.patches) == edges_drawn
        assert (tmp_path / "graph.png").stat().st_size > 5000


def test_rows_of_many_variables_are_near_those_they_act_on(found: SeriesDiscovery) -> None:
    order = np.random.default_rng(0).permutation(20)
    past = np.full((1, 20, 20), -9.0)
    past[0, order[:-1], order[1:]] = 9.0
    chain = WindowDistribution(past, GraphDistribution(np.full((20, 20), -9.0), np.zeros(20)), np.zeros((0, 20)))
    rows = rows_in_time(SeriesAnswer(tuple(map(str, range(20))), chain))
    assert rows in (tuple(map(str, order)), tuple(map(str, order[::-1])))
    assert rows_in_time(found.answer) == found.answer.order


def test_a_curve_and_a_summary_can_be_shown(found: SeriesDiscovery) -> None:
    curve = found.response("watering", "soil", steps=3, n_graphs=50)
    assert len(curve.plot().lines) == 2
    assert json.loads(json.dumps(curve.to_dict()))["cause"] == "watering"
    assert "<svg" in found._repr_html_()


# The estimator


def test_the_estimator_reads_series(greenhouse: pd.DataFrame, found: SeriesDiscovery) -> None:
    arrow = Arrow(lags=2, time="day").fit(greenhouse)
    assert isinstance(arrow.discovery_, SeriesDiscovery)
    assert edges(arrow.discovery_) == edges(found)
    assert list(arrow.edges_frame_.columns)[:3] == ["source", "target", "lag"]
    assert arrow.adjacency_matrix_.equals(found.graph)
    assert arrow.report_ is arrow.discovery_.report
    assert arrow.to_dot() == arrow.discovery_.to_dot()
    with pytest.raises(ConfigurationError, match="for tables"):
        arrow.effect("watering", "soil")
    assert not hasattr(arrow, "cpdag_")  # so that scikit-learn leaves it out of names to complete
    with pytest.raises(ConfigurationError, match="for tables"):
        _ = arrow.cpdag_


# The command line


@pytest.fixture
def file(greenhouse: pd.DataFrame, tmp_path: Path) -> Path:
    path = tmp_path / "series.csv"
    greenhouse.to_csv(path, index=False)
    return path


def test_the_command_line_prints_edges_with_their_lags_and_writes_files(file: Path, tmp_path: Path, run: Run) -> None:
    status, printed, _ = run("discover", file, "--lags", 2, "--time", "day", "--output", tmp_path / "answer")
    assert status == 0
    assert "500 steps, 5 variables, 2 lags" in printed
    assert "Depend on their own past" in printed
    written = {path.name for path in (tmp_path / "answer").iterdir()}
    assert written == {*TEXT_FORMATS, "summary.png", "summary.svg", "window.png", "window.svg"}
    assert SeriesAnswer.from_dict(json.loads((tmp_path / "answer" / "graph.json").read_text())).lags == 2


def test_the_command_line_estimates_effects_over_time(file: Path, tmp_path: Path, run: Run) -> None:
    asked = ["response", file, "--lags", 2, "--time", "day", "--cause", "watering", "--effect", "soil", "--steps", 2]
    status, printed, _ = run(*asked, "--plot", tmp_path / "curve.png")
    assert status == 0
    assert "soil changes most after 1 step" in printed
    assert (tmp_path / "curve.png").exists()
    once, held = (json.loads(run(*asked, "--json", *hold)[1]) for hold in ([], ["--hold"]))
    assert (once["kind"], held["kind"]) == ("pulse", "step")
    assert len(once["estimate"]) == len(held["estimate"]) == 3
    assert held["estimate"][2] != once["estimate"][2]


def test_the_command_line_advises_on_experiments(file: Path, run: Run) -> None:
    asked = ["next-experiment", file, "--lags", 2, "--time", "day", "--target", "growth", "--graphs", 50]
    status, printed, _ = run(*asked)
    assert status == 0
    assert "the causes of growth" in printed


@pytest.mark.parametrize("names", [["begin"], ["begin", "end"]])
def test_columns_of_dates_may_be_the_time_however_many_they_are(names: list[str]) -> None:
    days = pd.date_range("2024-01-01", periods=40).astype(str)
    values = np.random.default_rng(0).normal(size=(40, 2))
    table = pd.DataFrame(values, columns=["x", "y"]).assign(**dict.fromkeys(names, days))
    with pytest.raises(TableError, match="name the column of times with time="):
        discover(table, lags=1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--lags", "many"], "whole number or auto"),
        (["--lags", "2"], "--time"),
        (["--lags", "2", "--time", "day", "--bootstrap", "5"], "--bootstrap is for tables"),
        (["--time", "day"], "--lags 3"),
        (["--lags", "2", "--time", "day", "--forbid", "sun -> soil at lag 7"], "only lags 0 to 2"),
    ],
)
def test_the_command_line_refuses_in_its_own_words(file: Path, options: list[str], message: str, run: Run) -> None:
    status, _, complaint = run("discover", file, *options)
    assert status == 2
    assert message in " ".join(complaint.split())
