"""What the page can be asked: to read the table otherwise, stability, effects, comparisons. Its answers are those of
the pipeline and of `Arrow`, and its Python lines repeat them."""

from __future__ import annotations

import contextlib
import io
import json
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("fastapi", reason="the page needs the extra 'web'")

from causal_arrow import Arrow
from causal_arrow.batches import TableBatch
from causal_arrow.discovery.answer import Answer
from causal_arrow.discovery.settings import Settings
from causal_arrow.discovery.summary import decided_by, summarize, to_text
from causal_arrow.errors import COMMAND_LINE, PYTHON, Remedy
from causal_arrow.graphs.graph_distribution import GraphDistribution
from causal_arrow.graphs.knowledge import Knowledge
from causal_arrow.network.pairwise import PairwiseNetwork
from causal_arrow.tables.table import Table
from causal_arrow.web._questions import edge_details
from causal_arrow.web._queue import Job, NetworkQueue, Pieces, stopped_when_unwanted
from causal_arrow.web._wording import OFFERS, PAGE, offers
from causal_arrow.web.page import Page
from causal_arrow.web.uploads import Limits, UnwantedError
from web_server import Client, in_order, linear_table, one_sentence, serving


@pytest.fixture(scope="module")
def client(small_model_folder: Path) -> Iterator[Client]:
    """A server whose network reads numbers alone."""
    with serving(Page(Settings(model=str(small_model_folder)))) as client:
        yield client


@pytest.fixture(scope="module")
def able(any_table_model_folder: Path) -> Iterator[Client]:
    """A server whose network reads categories, missing cells and experiments."""
    with serving(Page(Settings(model=str(any_table_model_folder)))) as client:
        yield client


@pytest.fixture
def people() -> pd.DataFrame:
    """Numbers, words with and without an order, gaps, experiments and places."""
    random = np.random.default_rng(3)
    age, dose = random.normal(50, 9, 150), random.choice(["low", "middle", "high"], 150)
    pressure = 0.5 * age + pd.Series(dose).map({"low": 0, "middle": 3, "high": 6}).to_numpy() + random.normal(size=150)
    table = pd.DataFrame({"age": age, "dose": dose, "pressure": pressure, "stage": random.integers(1, 5, 150)})
    table["site"] = random.choice(["north", "south", "west"], 150)
    table["target"] = np.where(random.random(150) < 0.2, "pressure", "")
    table.loc[[3, 30], "pressure"] = np.nan
    return table


READINGS: dict[str, dict[str, Any]] = {
    "as detected": {"drop": ["target"]},
    "a number as a category": {"drop": ["target"], "kinds": {"stage": "category"}},
    "a number as ordered levels": {"drop": ["target"], "kinds": {"stage": "ordered"}},
    "words in an order": {"drop": ["target"], "ordered": {"dose": ["low", "middle", "high"]}},
    "experiments": {"interventions": "target"},
    "environments": {"drop": ["target"], "environments": "site"},
    "without incomplete observations": {"drop": ["target"], "missing": "drop"},
    "gaps filled": {"drop": ["target", "site"], "missing": "impute"},
    "a value that means missing": {"drop": ["target"], "na": ["4"]},
    "on the given scale": {"drop": ["target"], "scale": "given"},
}


def probabilities(session: Any) -> np.ndarray:
    return session.current().answer.edge_probabilities


@pytest.mark.parametrize("way", READINGS)
def test_however_the_table_is_read_the_python_lines_give_the_same_answer(
    able: Client, people: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    facts = able.answered(people, **READINGS[way])
    session = able.page.sessions.get(facts["session"])
    first = facts["graph"]["edges"][0]
    able.argue(facts["session"], knowledge={"forbidden": [[first["source"], first["target"]]]}, threshold=0.4)
    names = run_python(able, facts["session"], people, tmp_path, monkeypatch)
    answer = names["arrow"].answer_
    assert answer.names == session.current().answer.names
    np.testing.assert_array_equal(answer.edge_probabilities, probabilities(session))
    np.testing.assert_array_equal(answer.adjacency, session.current().answer.adjacency)
    assert answer.columns == session.current().answer.columns
    assert (answer.experiments, answer.environment) == (
        session.current().answer.experiments,
        session.current().answer.environment,
    )


def run_python(
    client: Client, session: str, table: pd.DataFrame, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, Any]:
    program = client.file(session, "reproduce.py").content.decode()
    table.to_csv(folder / "table.csv", index=False)
    monkeypatch.chdir(folder)
    names: dict[str, Any] = {}
    said = io.StringIO()
    with warnings.catch_warnings(), contextlib.redirect_stdout(said):
        warnings.simplefilter("ignore")
        exec(program, names)
    return {**names, "said": said.getvalue()}


def test_kinds_change_what_the_network_sees(able: Client, people: pd.DataFrame) -> None:
    found = {}
    for way in ("as detected", "a number as a category", "words in an order", "experiments"):
        facts = able.answered(people, **READINGS[way])
        kinds = {column["name"]: column["kind"] for column in facts["table"]["columns"]}
        found[way] = kinds, able.page.sessions.get(facts["session"]).current().answer.order_scores
    assert found["as detected"][0] | {"stage": "category"} == found["a number as a category"][0]
    assert found["as detected"][0] | {"dose": "ordered"} == found["words in an order"][0]
    assert found["as detected"][0]["target"] is None
    before = found["as detected"][1]
    assert not any(np.array_equal(before, found[way][1]) for way in ("a number as a category", "experiments"))
    environments = able.answered(people, **READINGS["environments"])["graph"]["edges"]
    assert not any(edge["target"] == "site" for edge in environments)


def test_every_column_is_listed_with_what_it_holds_also_one_that_cannot_be_read(
    client: Client, people: pd.DataFrame
) -> None:
    opened = client.upload(people).json
    columns = {column["name"]: column for column in opened["table"]["columns"]}
    assert list(columns) == list(people.columns)
    assert columns["dose"]["detected"] is None
    assert columns["dose"]["values"] == ["high", "low", "middle"]
    assert columns["age"]["values"] == []
    assert columns["stage"]["values"] == ["1", "2", "3", "4"]
    assert columns["pressure"]["missing"] == 2


def test_what_the_network_cannot_read_is_told_before_and_refused_with_what_works(
    client: Client, able: Client, people: pd.DataFrame
) -> None:
    assert client.send("GET", "/api/server").json["reads"] == []
    assert able.send("GET", "/api/server").json["reads"] == ["intervened", "levels", "observed"]
    session = client.upload(people).json["session"]
    usable = {"drop": ["target", "site"], "ordered": {"dose": ["low", "middle", "high"]}}
    for choices in (
        {**usable, "missing": "model"},
        {**usable, "missing": "drop", "kinds": {"stage": "category"}},
        {**usable, "drop": ["site"], "missing": "drop", "interventions": "target"},
    ):
        refused = client.discover(session, **choices)
        assert refused["state"] == "failed"
        one_sentence(refused["message"])
        assert refused["asked"]["drop"] == choices["drop"]
    offered = client.discover(session, **usable)["offers"]
    assert {offer["missing"] for offer in offered} == {"drop", "impute"}
    assert client.discover(session, **usable, missing=offered[0]["missing"])["state"] == "done"


def test_a_reading_that_fails_leaves_the_graph_as_it_was(able: Client, people: pd.DataFrame) -> None:
    facts = able.answered(people, drop=["target"])
    for choices in (
        {"kinds": {"age": "binary"}},
        {"kinds": {"nobody": "number"}},
        {"ordered": {"dose": ["low", "high"]}},
        {"kinds": {"dose": "number"}, "ordered": {"dose": ["low", "middle", "high"]}},
        {"interventions": "age"},
        {"environments": "pressure"},
        {"drop": list(people.columns)},
    ):
        failed = able.discover(facts["session"], **choices)
        assert failed["state"] == "failed", choices
        one_sentence(failed["message"])
        assert failed["graph"] == facts["graph"]
        assert failed["choices"] == facts["choices"]
    refused = able.send("POST", f"/api/sessions/{facts['session']}/discovery", {"ordered": {"dose": ["low"]}})
    assert refused.status == 400
    one_sentence(refused.json["message"])
    assert able.send("GET", f"/api/sessions/{facts['session']}").json["graph"] == facts["graph"]


def test_going_back_to_an_earlier_reading_needs_no_network(able: Client, people: pd.DataFrame) -> None:
    facts = able.answered(people, drop=["target"])
    other = able.discover(facts["session"], drop=["target"], kinds={"stage": "category"})
    started = able.page.queue.started
    again = able.discover(facts["session"], drop=["target"])
    assert again["graph"]["edges"] == facts["graph"]["edges"]
    once_more = able.discover(facts["session"], kinds={"stage": "category"}, drop=["target"])
    assert once_more["graph"]["edges"] == other["graph"]["edges"]
    assert able.page.queue.started == started


def test_what_no_longer_fits_a_new_reading_is_taken_back_with_a_word(able: Client, people: pd.DataFrame) -> None:
    facts = able.answered(people, drop=["target"])
    able.argue(facts["session"], knowledge={"required": [["age", "site"]]})
    again = able.discover(facts["session"], drop=["target"], environments="site")
    assert again["state"] == "done"
    one_sentence(again["notice"])
    assert again["graph"]["argument"]["knowledge"]["required"] == []
    assert able.send("GET", f"/api/sessions/{facts['session']}").status == 200


def test_a_variable_that_was_randomized_is_estimated_as_in_a_trial(client: Client, table: pd.DataFrame) -> None:
    session = client.answered(table)["session"]
    cause, outcome = table.columns[0], table.columns[3]
    graph = client.argue(session, knowledge={"randomized": [cause]}).json
    assert graph["argument"]["knowledge"]["randomized"] == [cause]
    assert not any(edge["target"] == cause for edge in graph["edges"])
    facts = client.send("GET", f"/api/sessions/{session}/effect?cause={cause}&effect={outcome}").json
    assert "as the trial shows" in facts["sentence"]


def test_the_networks_own_directions_are_one_choice_away(client: Client, table: pd.DataFrame) -> None:
    session = client.answered(table)["session"]
    own = client.argue(session, directions="network").json
    assert own["argument"]["directions"] == "network"
    tempered = client.argue(session).json
    assert {(edge["source"], edge["target"]) for edge in own["edges"]} == {
        (edge["source"], edge["target"]) for edge in tempered["edges"]
    }
    surer = {(edge["source"], edge["target"]): edge["probability"] for edge in own["edges"]}
    assert all(edge["probability"] < surer[edge["source"], edge["target"]] for edge in tempered["edges"])


def test_no_hidden_cause_is_a_statement_like_others(able: Client, people: pd.DataFrame) -> None:
    facts = able.answered(people, drop=["target"])
    pairs = facts["graph"]["hidden_causes"]
    assert pairs
    pair = sorted(pairs[0]["variables"])
    graph = able.argue(facts["session"], knowledge={"no_hidden_cause": [pair]}).json
    assert graph["argument"]["knowledge"]["no_hidden_cause"] == [pair]
    assert pair not in [sorted(each["variables"]) for each in graph["hidden_causes"]]
    details = able.send("GET", f"/api/sessions/{facts['session']}/edge?source={pair[0]}&target={pair[1]}").json
    assert details["hidden_cause_probability"] == 0.0


def test_a_number_and_levels_come_with_a_table_of_levels(able: Client, people: pd.DataFrame) -> None:
    session = able.answered(people, drop=["target"])["session"]
    plot = able.send("GET", f"/api/sessions/{session}/edge?source=dose&target=pressure").json["plot"]
    expected = people.groupby("dose")["pressure"].agg(["count", "mean", "std"])
    assert [each["level"] for each in plot["summaries"]] == list(expected.index)
    given = [[each["count"], each["mean"], each["deviation"]] for each in plot["summaries"]]
    np.testing.assert_allclose(given, expected.to_numpy())


# What decides a direction


DECISIONS: dict[str, tuple[dict[str, Any], str, str]] = {
    "nothing": ({}, "v1 → v2", "strong"),
    "required against the network": ({"required": [["v2", "v1"]]}, "v2 → v1", "required"),
    "required as the network has it": ({"required": [["v1", "v2"]]}, "v1 → v2", "required"),
    "forbidden": ({"forbidden": [["v1", "v2"]]}, "v2 → v1", "by knowledge"),
    "tiers": ({"tiers": [["v2"], ["v1", "v3"]]}, "v2 → v1", "by knowledge"),
    "roots": ({"roots": ["v2"]}, "v2 → v1", "by knowledge"),
}


@pytest.mark.parametrize("way", DECISIONS)
def test_what_knowledge_decides_is_not_called_a_preference_of_the_network(client: Client, way: str) -> None:
    knowledge, arrow, column = DECISIONS[way]
    session = client.answered_with(linear_table(200, 3), in_order([8.0, 4.0, 1.0], {(0, 1): 3.0, (1, 2): -9.0}, -9.0))
    graph = client.argue(session, knowledge=knowledge, threshold=0.01).json
    (edge,) = (each for each in graph["edges"] if f"{each['source']} → {each['target']}" == arrow)
    details = client.send("GET", f"/api/sessions/{session}/edge?source={edge['source']}&target={edge['target']}").json
    words = " ".join([details["words"], *details["sentences"]])
    assert edge["decided"] == (None if column == "strong" else column)
    assert ("the network's preference for v1 → v2 is strong (0.98)" in words) == (column == "strong")
    assert ("the network alone prefers v1 → v2 (0.98)" in words) == (column != "strong")
    assert ("You require" in words) == (column == "required")
    assert ("it can only be v2 → v1" in words) == (column == "by knowledge")
    assert ("Your knowledge rules out v1 → v2" in words) == (column == "by knowledge")
    assert "the shape of the data" not in words or column == "strong"
    answer = client.page.sessions.get(session).current().answer
    row = next(line for line in to_text(summarize(answer)).splitlines() if line.split()[:2] == arrow.split(" → "))
    assert row.endswith(f"  {column} (0.98)" if column == "strong" else f"  {column}")
    assert f">{column}" in client.file(session, "report.html").content.decode()


def test_what_the_table_decides_is_not_called_a_preference_of_the_network(able: Client, people: pd.DataFrame) -> None:
    facts = able.answered(people, drop=["target"], environments="site")
    able.argue(facts["session"], threshold=0.001)
    answer = able.page.sessions.get(facts["session"]).current().answer
    (edge, *_) = answer.shifted
    assert decided_by(answer, "site", edge.target) == "by environment"
    details = able.send("GET", f"/api/sessions/{facts['session']}/edge?source={edge.target}&target=site").json
    assert f"it can only be site → {edge.target}." in details["words"]
    assert "Nothing in the table causes site: it identifies environments." in details["sentences"]
    assert "preference" not in details["words"]


# Stability


def stable(client: Client, session: str, resamples: int = 6) -> Any:
    reply = client.send("POST", f"/api/sessions/{session}/stability", {"resamples": resamples})
    assert reply.status == 202, reply.content
    while (now := client.send("GET", f"/api/sessions/{session}/stability").json)["state"] in ("waiting", "running"):
        time.sleep(0.01)
    return now


def test_stability_is_that_of_the_bootstrap_also_after_an_argument(
    client: Client, table: pd.DataFrame, small_model_folder: Path, tmp_path: Path
) -> None:
    facts = client.answered(table)
    session = facts["session"]
    assert client.send("GET", f"/api/sessions/{session}/stability").json["state"] == "none"
    now = stable(client, session)
    assert (now["state"], now["share"], now["resamples"]) == ("done", 1.0, 6)
    table.to_csv(tmp_path / "table.csv", index=False)
    arrow = Arrow(small_model_folder).fit(tmp_path / "table.csv")
    said = {"forbidden": [[facts["graph"]["edges"][0]["source"], facts["graph"]["edges"][0]["target"]]]}
    started = client.page.queue.started
    for argued in (arrow, arrow.refine(knowledge=said)):
        expected = argued.stability(n_resamples=6, progress=False)
        shares = {
            (edge["source"], edge["target"]): edge["frequency"]
            for edge in client.send("GET", f"/api/sessions/{session}/stability").json["edges"]
        }
        places = {name: place for place, name in enumerate(expected.names)}
        assert shares == {
            (edge.source, edge.target): expected.frequencies[places[edge.source], places[edge.target]]
            for edge in argued.edges_
        }
        details = client.send("GET", f"/api/sessions/{session}/edge?source=dose&target=d").json["stability"]
        assert details["frequency"] == expected.frequencies[places["dose"], places["d"]]
        assert details["reversed_frequency"] == expected.frequencies[places["d"], places["dose"]]
        client.argue(session, knowledge=said)
    assert client.page.queue.started == started


def test_another_reading_forgets_the_stability_of_the_last(client: Client, table: pd.DataFrame) -> None:
    session = client.answered(table)["session"]
    stable(client, session, 2)
    client.discover(session, drop=["e"])
    assert client.send("GET", f"/api/sessions/{session}/stability").json["state"] == "none"
    assert client.send("GET", f"/api/sessions/{session}/edge?source=dose&target=d").json["stability"] is None


def test_between_resampled_tables_others_get_their_turn_and_a_stopped_one_costs_no_more(
    small_model_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("causal_arrow.web.page.CELLS_PER_PASS", 1)  # a pass for each table
    with serving(Page(Settings(model=str(small_model_folder)))) as client:
        session = client.answered(linear_table(500, 40))["session"]  # so that it takes a while
        reply = client.send("POST", f"/api/sessions/{session}/stability", {"resamples": 100})
        assert reply.json["state"] in ("waiting", "running")
        client.answered(linear_table(60, 5))  # does not wait for all of them
        now = client.send("GET", f"/api/sessions/{session}/stability").json
        assert now["state"] == "running"
        assert 0 < now["share"] < 1
        assert client.send("DELETE", f"/api/sessions/{session}/stability").json["state"] == "cancelled"
        resampling = client.page.sessions.get(session).resampling
        assert resampling is not None
        while resampling.pieces is not None:
            time.sleep(0.01)
        share = resampling.share
        client.answered(linear_table(60, 5, seed=1))
        assert resampling.share == share < 1


def test_a_job_in_pieces_gives_way_after_each() -> None:
    queue, order, gate = NetworkQueue(most_waiting=5), [], threading.Event()

    def pieces(name: str) -> Pieces[str]:
        gate.wait()
        for piece in range(3):
            order.append(name)
            yield piece / 3
        return name

    jobs = [queue.submit(Job(lambda name=name: pieces(name))) for name in "ab"]
    gate.set()
    while any(job.is_under_way for job in jobs):
        time.sleep(0.001)
    assert "".join(order) == "ababab"
    assert [job.result for job in jobs] == ["a", "b"]


def test_a_cancelled_job_stops_in_the_middle_of_a_pass_through_the_network(small_model: PairwiseNetwork) -> None:
    reached: list[int] = []
    job: Job[None] = Job(lambda: None)

    def cancel() -> None:
        reached.append(1)
        if len(reached) == 3:
            job.state = "cancelled"

    def read() -> None:  # each chunk of each stage calls
        small_model.read(TableBatch(np.random.default_rng(0).normal(size=(1, 30, 4))), 5)

    small_model.between_stages.append(cancel)
    try:
        with stopped_when_unwanted(small_model, job), pytest.raises(UnwantedError):
            read()
        assert len(reached) == 3
        read()  # afterwards it runs again
        assert len(reached) > 6
    finally:
        small_model.between_stages.clear()


# Effects


def effect_of(client: Client, session: str, **asked: str) -> Any:
    query = "&".join(f"{name}={value}" for name, value in asked.items())
    return client.send("GET", f"/api/sessions/{session}/effect?{query}")


@pytest.mark.parametrize("more", [{}, {"first": "0", "second": "2"}, {"estimator": "curved"}])
def test_an_effect_is_that_of_arrow(
    client: Client, table: pd.DataFrame, small_model_folder: Path, tmp_path: Path, more: dict[str, str]
) -> None:
    session = client.answered(table)["session"]
    said = {"required": [["dose", "outcome"]]}
    client.argue(session, knowledge=said)
    given = effect_of(client, session, cause="dose", effect="outcome", **more).json
    table.to_csv(tmp_path / "table.csv", index=False)
    between = (0.0, 2.0) if "first" in more else None
    expected = (
        Arrow(small_model_folder, knowledge=said)
        .fit(tmp_path / "table.csv")
        .effect("dose", "outcome", between=between, estimator=more.get("estimator", "flexible"))
    )
    assert [given["median"], given["low"], given["high"]] == [expected.median, *expected.interval]
    for share in ("probability_of_none", "probability_not_identified", "probability_not_estimated"):
        assert given[share] == getattr(expected, share)
    assert {name: given[name] for name in expected.to_dict()} == expected.to_dict()
    question = client.send("GET", f"/api/sessions/{session}/question?cause=dose&effect=outcome").json
    assert question["probability"] == pytest.approx(1 - given["probability_of_none"])
    # What is drawn has the area of what is known.
    plot = given["plot"]
    area = np.trapezoid(np.sum([layer["densities"] for layer in plot["layers"]], axis=0), plot["points"])
    assert area == pytest.approx(1, abs=0.02)


def test_the_effect_of_a_category_is_between_two_of_its_levels(able: Client, people: pd.DataFrame) -> None:
    session = able.answered(people, drop=["target"])["session"]
    refused = effect_of(able, session, cause="dose", effect="pressure")
    assert refused.status == 400
    one_sentence(refused.json["message"])
    assert 'under "from" and "to"' in refused.json["message"]
    compared = effect_of(able, session, cause="dose", effect="pressure", first="low", second="high").json
    assert compared["change"] == "when dose goes from low to high"
    for wrong in (
        {"cause": "dose", "effect": "pressure", "first": "low"},
        {"cause": "dose", "effect": "pressure", "first": "low", "second": "lov"},
        {"cause": "age", "effect": "age"},
        {"cause": "age", "effect": "dose"},
        {"cause": "age", "effect": "pressure", "first": "x", "second": "y"},
    ):
        reply = effect_of(able, session, **wrong)
        assert reply.status == 400, wrong
        one_sentence(reply.json["message"])


def test_the_python_lines_repeat_what_was_asked(
    client: Client, table: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = client.answered(table)["session"]
    client.argue(session, knowledge={"required": [["dose", "outcome"]]})
    sizes = [
        effect_of(client, session, cause="dose", effect="outcome", **more).json
        for more in ({}, {"first": "0", "second": "1.5"})
    ]
    stable(client, session, 4)
    names = run_python(client, session, table, tmp_path, monkeypatch)
    for size in sizes:
        assert size["sentence"] in names["said"]
    frame = names["arrow"].stability(n_resamples=4, progress=False).to_frame()
    assert frame.to_string() in names["said"]


# Comparison


def compared(client: Client, session: str, left: str = "network", right: str = "now") -> Any:
    reply = client.send("GET", f"/api/sessions/{session}/comparison?left={left}&right={right}")
    assert reply.status == 200, reply.content
    return reply.json


def test_the_same_answer_twice_has_no_difference(client: Client, table: pd.DataFrame) -> None:
    session = client.answered(table)["session"]
    found = compared(client, session)
    assert found["differences"] == []
    assert found["words"].startswith("No difference")


def test_every_difference_is_told_and_nothing_else(client: Client, table: pd.DataFrame) -> None:
    facts = client.answered(table)
    session, edges = facts["session"], facts["graph"]["edges"]
    gone, turned = ([edge["source"], edge["target"]] for edge in edges[:2])
    client.argue(session, knowledge={"forbidden": [gone, gone[::-1]], "required": [turned[::-1]]})
    found = compared(client, session)
    sides = [{(e["source"], e["target"]) for e in found[side]["graph"]["edges"]} for side in ("left", "right")]
    told = {kind: {tuple(each["pair"]) for each in found["differences"] if each["kind"] == kind} for kind in KINDS}
    reversed_ = {edge for edge in sides[0] if edge[::-1] in sides[1]}
    assert tuple(turned) in told["reversed"] == reversed_
    assert tuple(gone) in told["only_left"] == {e for e in sides[0] - sides[1] if e[::-1] not in sides[1]}
    assert told["only_right"] == {e for e in sides[1] - sides[0] if e[::-1] not in sides[0]}
    assert sum(each["kind"] == "statement" for each in found["differences"]) == 3
    for each in found["differences"]:
        one_sentence(each["words"])
    swapped = compared(client, session, "now", "network")
    assert [e["kind"] for e in swapped["differences"]].count("only_right") == len(told["only_left"])


KINDS = ("only_left", "only_right", "reversed")


def test_both_graphs_are_drawn_in_places_of_their_own_that_hold_every_variable(
    client: Client, table: pd.DataFrame
) -> None:
    facts = client.answered(table)
    again = client.discover(facts["session"], drop=["e"])
    assert [kept["name"] for kept in again["kept"]] == ["before the table was read again"]
    found = compared(client, facts["session"], str(again["kept"][0]["number"]))
    nodes = found["places"]["nodes"]
    assert {node["name"] for node in nodes} == set(table.columns)
    assert len({(node["x"], node["y"]) for node in nodes}) == len(table.columns)
    assert any("'e'" in each["words"] for each in found["differences"] if each["kind"] == "variable")


def test_a_change_of_kind_is_among_the_differences(able: Client, people: pd.DataFrame) -> None:
    facts = able.answered(people, drop=["target"])
    again = able.discover(facts["session"], drop=["target"], kinds={"stage": "category"})
    found = compared(able, facts["session"], str(again["kept"][0]["number"]))
    words = [each["words"] for each in found["differences"] if each["kind"] == "variable"]
    assert words == [
        "stage is read as number in “before the table was read again”, as category in “the current graph”."
    ]


def test_a_search_space_is_among_the_differences(client: Client, table: pd.DataFrame, small_model_folder: Path) -> None:
    session = client.answered(table)["session"]
    saved = Arrow(small_model_folder, knowledge={"search_space": ["age -> dose", "dose -> outcome"]}).fit(table)
    kept = client.send("POST", f"/api/sessions/{session}/kept/file?name=o.json", saved.to_json().encode()).json
    found = compared(client, session, str(kept[0]["number"]))
    words = [each["words"] for each in found["differences"] if each["kind"] == "statement"]
    assert words == ["Known only in “o.json”: only these edges may exist: age → dose, dose → outcome."]


def test_answers_are_kept_by_name_and_from_files_and_forgotten(client: Client, table: pd.DataFrame) -> None:
    other = client.answered(linear_table(80, 4))
    saved = client.file(other["session"], "graph.json").content
    session = client.answered(table)["session"]
    kept = client.send("POST", f"/api/sessions/{session}/kept", {"name": "as it was"}).json
    kept = client.send("POST", f"/api/sessions/{session}/kept/file?name=C:\\other.json", saved).json
    assert [each["name"] for each in kept] == ["as it was", "other.json"]
    found = compared(client, session, str(kept[1]["number"]))
    expected = {(edge.source, edge.target) for edge in Answer.from_dict(json.loads(saved)).edges}
    assert {(edge["source"], edge["target"]) for edge in found["left"]["graph"]["edges"]} == expected
    kept = client.send("DELETE", f"/api/sessions/{session}/kept/{kept[1]['number']}").json
    assert [each["name"] for each in kept] == ["as it was"]
    gone = client.send("GET", f"/api/sessions/{session}/comparison?left=99")
    assert gone.status == 400
    one_sentence(gone.json["message"])


@pytest.mark.parametrize(
    "content",
    [b"", b"hello", b"[]", b"{}", b'{"format": "causal-arrow-graph", "version": 1}', b"[" * 100_000, b"\xff\xfe\x00"],
)
def test_what_is_no_saved_answer_is_refused_in_a_sentence(client: Client, table: pd.DataFrame, content: bytes) -> None:
    session = client.answered(table)["session"]
    reply = client.send("POST", f"/api/sessions/{session}/kept/file?name=graph.json", content)
    assert reply.status == 400, reply.content
    one_sentence(reply.json["message"])


def test_a_saved_answer_may_be_no_larger_than_a_table(small_model_folder: Path, table: pd.DataFrame) -> None:
    with serving(Page(Settings(model=str(small_model_folder)), Limits(most_variables=6))) as client:
        session = client.answered(table)["session"]
        large = Arrow(small_model_folder).fit(linear_table(60, 7)).to_json().encode()
        reply = client.send("POST", f"/api/sessions/{session}/kept/file?name=graph.json", large)
        assert reply.status == 400
        one_sentence(reply.json["message"])


# Words


def test_what_an_experiment_rules_out_is_not_put_down_to_what_the_reader_knows() -> None:
    values = np.random.default_rng(0).normal(size=(50, 3))
    table = Table.of_numbers(values, ["dose", "diet", "health"])
    unsure = GraphDistribution(np.zeros((3, 3)), np.zeros(3), np.zeros((3, 3)))
    answer = Answer(
        table.names,
        unsure,
        Knowledge(forbidden=["health -> diet"], no_hidden_cause=["diet <-> health"]),
        observations=50,
        experiments={"dose": 50},
    )
    of_trial = edge_details(answer, table, "dose", "health")["sentences"]
    assert "Nothing in the table causes dose: it was set in every observation." in of_trial
    assert "They share no hidden cause: an experiment alone decided on one of them." in of_trial
    assert not any("You" in sentence for sentence in of_trial)
    of_reader = edge_details(answer, table, "diet", "health")["sentences"]
    assert "Your knowledge rules out health → diet." in of_reader
    assert "You say that they share no hidden cause." in of_reader


def test_every_remedy_has_words_on_every_surface() -> None:
    assert set(PAGE) == set(PYTHON) == set(COMMAND_LINE)
    settings = {"missing": "drop", "kind": "category", "omit": "interventions", "decimal": ",", "na": "?"}
    settings["season"] = "12"
    for action in PAGE:
        remedy = Remedy(action, ("zip code",), settings.get(action, "drop"))
        words = PAGE[action](remedy)
        assert words == words.strip() != ""
        assert not any(foreign in words for foreign in ("--", "=", "read_table", "(")), words


@pytest.mark.parametrize("action", sorted(OFFERS))
def test_a_button_carries_out_its_remedy(action: str) -> None:
    setting = {"missing": "impute", "kind": "category", "na": "?"}.get(action, "")
    (offer,) = offers([Remedy(action, ("zip",), setting), Remedy("header")])
    done = {"drop": offer["drop"], "missing": offer["missing"], "na": offer["na"], "kind": offer["kinds"]}
    expected: dict[str, Any] = {"drop": ["zip"], "missing": "impute", "na": ["?"], "kind": {"zip": "category"}}
    assert done[action] == expected[action]
    assert offer["label"][0].isupper()
