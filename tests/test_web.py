"""The API of the page: the one pipeline behind it, arguments without the network, sessions apart, limits, a guard."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
import warnings
import zipfile
from collections.abc import Callable, Iterable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("fastapi", reason="the page needs the extra 'web'")

from bad_inputs import KINDS, Case, World
from causal_arrow.discovery.answer import Answer
from causal_arrow.discovery.pipeline import discover
from causal_arrow.discovery.settings import Settings
from causal_arrow.errors import ConfigurationError
from causal_arrow.graphs.graph_distribution import GraphDistribution
from causal_arrow.graphs.knowledge import Knowledge
from causal_arrow.text import counted_share
from causal_arrow.web._downloads import DOWNLOADS
from causal_arrow.web._queue import Job, NetworkQueue, TooBusyError
from causal_arrow.web.graphs import graph_of
from causal_arrow.web.page import Page
from causal_arrow.web.server import Address, listen
from causal_arrow.web.uploads import Limits
from web_server import Client, Reply, as_workbook, in_order, linear_table, one_sentence, serving

Run = Callable[..., tuple[int, str, str]]
SMALL = Limits(most_bytes=40_000, most_observations=500, most_variables=8)


@pytest.fixture(scope="module")
def client(small_model_folder: Path) -> Iterator[Client]:
    with serving(Page(Settings(model=str(small_model_folder)))) as client:
        yield client


@pytest.fixture(scope="module")
def strict(small_model_folder: Path) -> Iterator[Client]:
    """A server that takes little."""
    with serving(Page(Settings(model=str(small_model_folder)), SMALL)) as client:
        yield client


def edges(graph: Any) -> set[tuple[str, str]]:
    return {(edge["source"], edge["target"]) for edge in graph["edges"]}


def edges_of(answer: Answer) -> set[tuple[str, str]]:
    return {(edge.source, edge.target) for edge in answer.edges}


# The answer


def test_the_page_shows_the_graph_of_the_pipeline(
    client: Client, table: pd.DataFrame, small_model_folder: Path, tmp_path: Path
) -> None:
    facts = client.answered(table)
    table.to_csv(tmp_path / "table.csv", index=False)
    answer = discover(tmp_path / "table.csv", Settings(model=str(small_model_folder))).answer
    assert edges(facts["graph"]) == edges_of(answer)
    assert facts["graph"]["order"] == list(answer.order)
    assert facts["table"]["size"] == "120 observations of 6 variables, all numbers; no cell is missing."


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "xlsx", "parquet"])
def test_every_format_gives_the_same_graph(client: Client, table: pd.DataFrame, ending: str) -> None:
    text = table.to_csv(index=False).encode()
    content = {"csv": text, "csv.gz": gzip.compress(text), "xlsx": as_workbook(table), "parquet": table.to_parquet()}
    opened = client.upload(content[ending], f"table.{ending}")
    assert opened.status == 201, opened.content
    facts = client.discover(opened.json["session"])
    assert edges(facts["graph"]) == edges(client.answered(table)["graph"])


def test_an_argument_gives_what_refine_gives_and_runs_no_network(client: Client, table: pd.DataFrame) -> None:
    facts = client.answered(table)
    session = client.page.sessions.get(facts["session"])
    assert session.found is not None
    source, target = sorted(edges(facts["graph"]))[0]
    started = client.page.queue.started
    said = {"forbidden": [[source, target]], "tiers": [["age", "dose"], ["outcome"]]}
    graph = client.argue(facts["session"], knowledge=said, threshold=0.3).json
    expected = session.found.answer.refine(knowledge=Knowledge.from_dict(said), threshold=0.3)
    assert edges(graph) == edges_of(expected)
    assert (source, target) not in edges(graph)
    assert client.page.queue.started == started
    assert client.send("GET", f"/api/sessions/{facts['session']}").json["graph"] == graph
    assert edges(client.argue(facts["session"]).json) == edges(facts["graph"])


def test_an_argument_about_fifty_variables_takes_under_a_tenth_of_a_second_of_work(client: Client) -> None:
    facts = client.answered(linear_table(200, 50))
    seconds = []
    for place in range(8):
        started = time.process_time()  # client and server together, whatever else the machine does
        reply = client.argue(facts["session"], knowledge={"forbidden": [[f"v{place + 1}", "v50"]]}, threshold=0.4)
        seconds.append(time.process_time() - started)
        assert reply.status == 200
    assert min(seconds) < 0.1


def test_knowledge_that_contradicts_itself_is_a_sentence_and_changes_nothing(
    client: Client, table: pd.DataFrame
) -> None:
    facts = client.answered(table)
    circle = {"required": [["age", "dose"], ["dose", "age"]]}
    for said in (circle, {"roots": ["nobody"]}, {"required": [["age", "age"]]}):
        reply = client.argue(facts["session"], knowledge=said)
        assert reply.status == 400
        one_sentence(reply.json["message"])
    assert client.send("GET", f"/api/sessions/{facts['session']}").json["graph"] == facts["graph"]


def test_columns_can_be_left_out_and_what_was_said_of_the_others_stays(client: Client, table: pd.DataFrame) -> None:
    facts = client.answered(table)
    client.argue(facts["session"], knowledge={"forbidden": [["age", "d"], ["e", "d"]], "roots": ["age", "dose"]})
    again = client.discover(facts["session"], drop=["age"])
    assert again["graph"]["variables"] == ["dose", "blood pressure", "d", "e", "outcome"]
    assert again["graph"]["argument"]["knowledge"]["forbidden"] == [["e", "d"]]
    assert again["graph"]["argument"]["knowledge"]["roots"] == ["dose"]
    assert "1 column left out" in again["table"]["size"]


def test_what_stands_in_the_way_comes_with_offers_that_solve_it(client: Client, table: pd.DataFrame) -> None:
    table["name"] = [f"person {place}" for place in range(len(table))]
    table.loc[3, "d"] = np.nan
    opened = client.upload(table).json
    assert not opened["table"]["usable"]
    refused = client.discover(opened["session"])
    assert refused["state"] == "failed"
    one_sentence(refused["message"])
    offers = [offer for finding in opened["table"]["findings"] for offer in finding["offers"]]
    drop = [name for offer in offers for name in offer["drop"]]
    assert drop == ["name"]
    missing = {offer["missing"] for offer in offers if offer["missing"]}
    assert missing == {"drop", "impute"}
    for choice in missing:
        assert client.discover(opened["session"], drop=drop, missing=choice)["state"] == "done"


def test_pairs_that_share_a_hidden_cause_are_shown() -> None:
    logits = np.array([[0.0, 3.0, -3.0], [3.0, 0.0, -3.0], [-3.0, -3.0, 0.0]])
    distribution = GraphDistribution(logits, np.array([2.0, 1.0, 0.0]), logits)
    graph = graph_of(Answer(("a", "b", "c"), distribution))
    (pair,) = graph["hidden_causes"]
    assert (pair["variables"], round(pair["probability"], 2)) == (["a", "b"], 0.95)


def test_every_edge_points_down_and_no_two_variables_share_a_place(client: Client) -> None:
    facts = client.answered(linear_table(100, 12))
    drawn = edges(facts["graph"])
    places = placed(client, facts["session"], facts["graph"]["order"], drawn).json
    at = {node["name"]: (node["x"], node["y"]) for node in places["nodes"]}
    assert set(at) == set(facts["graph"]["variables"])
    assert len(set(at.values())) == len(at)
    assert all(at[source][1] < at[target][1] for source, target in drawn)
    assert {(route["source"], route["target"]) for route in places["routes"]} == set(drawn)


def placed(client: Client, session: str, names: list[str], drawn: Iterable[tuple[str, str]]) -> Reply:
    """The reply with the places of boxes with these names and edges."""
    drawing = {"names": names, "edges": [list(edge) for edge in drawn], "width": 900, "height": 600}
    return client.send("POST", f"/api/sessions/{session}/places", drawing)


def test_a_drawing_may_be_a_part_of_the_graph_or_have_edges_in_both_directions(
    client: Client, table: pd.DataFrame
) -> None:
    session = client.upload(table).json["session"]
    assert placed(client, session, [], []).json == {"nodes": [], "routes": []}
    both = placed(client, session, ["lab_* (3)", "age"], [("lab_* (3)", "age"), ("age", "lab_* (3)")]).json
    there, back = (route["points"] for route in both["routes"])
    assert there == back[::-1]
    assert there[0][1] < there[-1][1]


@pytest.mark.parametrize(
    ("names", "drawn"),
    [(["a", "a"], []), (["a"], [("a", "b")]), (["a"], [("a", "a")]), ([str(name) for name in range(201)], [])],
)
def test_what_cannot_be_drawn_is_refused_in_a_sentence(
    client: Client, table: pd.DataFrame, names: list[str], drawn: list[tuple[str, str]]
) -> None:
    reply = placed(client, client.upload(table).json["session"], names, drawn)
    assert reply.status == 400
    one_sentence(reply.json["message"])


# Questions


def test_the_details_of_an_edge_are_those_of_the_answer(client: Client, table: pd.DataFrame) -> None:
    facts = client.answered(table)
    answer = client.page.sessions.get(facts["session"]).current().answer
    details = client.send("GET", f"/api/sessions/{facts['session']}/edge?source=dose&target=d").json
    dose, d = answer.index_of("dose"), answer.index_of("d")
    assert details["probability"] == pytest.approx(answer.edge_probabilities[dose, d])
    assert details["reversed_probability"] == pytest.approx(answer.edge_probabilities[d, dose])
    assert details["plot"]["points"] == pytest.approx(table[["dose", "d"]].to_numpy())


def test_two_columns_with_levels_come_as_a_table_of_counts(client: Client, table: pd.DataFrame) -> None:
    table["treated"] = np.where(table["dose"] > 0, "yes", "no")
    table["ill"] = (table["d"] > 0).astype(int)
    facts = client.answered(table)
    plot = client.send("GET", f"/api/sessions/{facts['session']}/edge?source=treated&target=ill").json["plot"]
    assert plot["points"] == []
    assert plot["counts"] == pd.crosstab(table["ill"], table["treated"]).to_numpy().tolist()


def test_shares_of_paths_add_up(client: Client, table: pd.DataFrame) -> None:
    facts = client.answered(table)
    said = {"required": [["age", "dose"], ["dose", "d"]], "forbidden": [["age", "d"]]}
    client.argue(facts["session"], knowledge=said)
    answer = client.send("GET", f"/api/sessions/{facts['session']}/question?cause=age&effect=d").json
    assert answer["probability"] == 1.0
    assert answer["reversed_probability"] == 0.0
    assert sum(path["share"] for path in answer["paths"]) == pytest.approx(1.0)
    assert answer["paths"][0]["variables"] == ["age", "dose", "d"]
    same = client.send("GET", f"/api/sessions/{facts['session']}/question?cause=age&effect=age")
    assert same.status == 400
    one_sentence(same.json["message"])


# Downloads


def test_every_download_is_what_its_name_says(client: Client, table: pd.DataFrame) -> None:
    facts = client.answered(table)
    files = {name: client.file(facts["session"], name) for name in DOWNLOADS}
    assert {reply.status for reply in files.values()} == {200}
    assert edges_of(Answer.from_dict(files["graph.json"].json)) == edges(facts["graph"])
    assert files["graph.png"].content.startswith(b"\x89PNG")
    for name in ("graph.svg", "graph.graphml"):
        ElementTree.fromstring(files[name].content)
    assert files["graph.dot"].content.startswith(b"digraph")
    assert files["graph.dagitty.txt"].content.startswith(b"dag {")
    assert all("attachment" in reply.headers["content-disposition"] for reply in files.values())
    assert client.file(facts["session"], "graph.exe").status == 404


def test_no_name_is_a_formula_in_the_table_of_edges(client: Client) -> None:
    table = linear_table(60, 4).set_axis(["=1+1", '@a, "b"', "-c", "d"], axis=1)
    chain = in_order([4.0, 3.0, 2.0, 1.0], {(0, 1): 5.0, (1, 2): 5.0, (2, 3): 5.0}, -9.0)
    found = pd.read_csv(io.BytesIO(client.file(client.answered_with(table, chain), "edges.csv").content))
    written = set(zip(found["source"], found["target"], strict=True))
    assert written == {("'=1+1", '\'@a, "b"'), ('\'@a, "b"', "'-c"), ("'-c", "d")}
    assert found["probability"].between(0.5, 1).all()


def test_the_python_lines_give_the_same_graph(
    client: Client, table: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = client.answered(table, drop=["e"])
    said = {"forbidden": [list(sorted(edges(facts["graph"]))[0])], "roots": ["age"]}
    graph = client.argue(facts["session"], knowledge=said, threshold=0.35).json
    program = client.file(facts["session"], "reproduce.py").content.decode()
    table.to_csv(tmp_path / "table.csv", index=False)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(program, names)
    assert edges_of(names["arrow"].answer_) == edges(graph)


class Elements(HTMLParser):
    """The elements of a document, their attributes, and its text."""

    def __init__(self, document: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.words = ""
        self.feed(document)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attributes}

    def handle_data(self, words: str) -> None:
        self.words += words


HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "a & b",
    "javascript:",
]


def test_hostile_names_are_text_in_the_report(client: Client) -> None:
    table = linear_table(60, 5).set_axis(HOSTILE, axis=1)
    opened = client.upload(table, "<i>table.csv").json
    facts = client.discover(opened["session"])
    assert facts["graph"]["variables"] == HOSTILE
    client.argue(facts["session"], knowledge={"required": [HOSTILE[:2]]})
    report = Elements(client.file(facts["session"], "report.html").content.decode())
    assert "script" not in report.tags
    assert not {"i", "img"} & set(report.tags)
    assert not {name for name in report.attributes if name.startswith("on")}
    assert HOSTILE[0] in report.words


def test_the_report_needs_nothing_from_elsewhere(client: Client, table: pd.DataFrame) -> None:
    report = client.file(client.answered(table)["session"], "report.html").content.decode()
    assert not re.search(r"(src|href)=[\"'](?!#|data:)", report)


KNOWN = {
    "required": [["age", "dose"]],
    "forbidden": [["d", "e"]],
    "roots": ["age"],
    "leaves": ["e"],
    "tiers": [["age"], ["outcome", "e"]],
    "no_hidden_cause": [["d", "dose"]],
}


def test_the_report_says_what_was_known_in_sentences(client: Client, table: pd.DataFrame) -> None:
    session = client.answered(table)["session"]
    client.argue(session, knowledge=KNOWN)
    report = Elements(client.file(session, "report.html").content.decode()).words
    known = report[report.index("What was known") : report.index("The same in Python")]
    for words in (
        "age → dose is required",
        "d → e is forbidden",
        "nothing causes age",
        "e causes nothing",
        "tier 1: age; tier 2: outcome, e",
        "d and dose share no hidden cause",
    ):
        assert words in known
    assert not re.search(r"\w_\w|\[", known)  # the words of Python


def test_the_report_has_the_effects_and_the_stability_that_were_asked_for(client: Client, table: pd.DataFrame) -> None:
    session = client.answered(table)["session"]
    client.argue(session, knowledge={"required": [["dose", "outcome"]]})
    path = f"/api/sessions/{session}"
    before = Elements(client.file(session, "report.html").content.decode()).words
    assert "Effects" not in before
    assert "Stability" not in before
    sizes = [
        client.send("GET", f"{path}/effect?cause=dose&effect=outcome{more}").json
        for more in ("", "&first=0&second=2", "&estimator=curved")
    ]
    client.send("POST", f"{path}/stability", {"resamples": 4})
    while (stability := client.send("GET", f"{path}/stability").json)["state"] in ("waiting", "running"):
        time.sleep(0.02)
    report = Elements(client.file(session, "report.html").content.decode()).words
    for size in sizes:
        for sentence in size["lines"]:
            assert sentence in report
    assert "4 bootstrap resamples" in report
    shares = report[report.index("show it reversed") :]
    for edge in stability["edges"]:
        assert f"{edge['source']}{edge['target']}{counted_share(edge['frequency'])}" in shares


# Sessions


def test_sessions_do_not_see_each_other(client: Client, table: pd.DataFrame) -> None:
    mine, yours = client.answered(table), client.answered(table)
    assert mine["session"] != yours["session"]
    assert len(mine["session"]) >= 32
    client.argue(mine["session"], knowledge={"roots": ["outcome"]})
    assert client.send("GET", f"/api/sessions/{yours['session']}").json["graph"] == yours["graph"]
    client.send("DELETE", f"/api/sessions/{mine['session']}")
    gone = client.send("GET", f"/api/sessions/{mine['session']}")
    assert gone.status == 404
    one_sentence(gone.json["message"])
    assert client.send("GET", f"/api/sessions/{yours['session']}").status == 200


def test_a_table_is_dropped_an_hour_after_its_last_use(small_model_folder: Path, table: pd.DataFrame) -> None:
    now = [0.0]
    with serving(Page(Settings(model=str(small_model_folder)), clock=lambda: now[0])) as client:
        session = client.upload(table).json["session"]
        now[0] = 3000.0
        assert client.send("GET", f"/api/sessions/{session}").status == 200
        now[0] = 6500.0
        assert client.send("GET", f"/api/sessions/{session}").status == 200
        now[0] = 6500.0 + 3601.0
        assert client.send("GET", f"/api/sessions/{session}").status == 404
        assert len(client.page.sessions) == 0


def test_no_more_sessions_are_kept_than_there_is_room_for(small_model_folder: Path, table: pd.DataFrame) -> None:
    with serving(Page(Settings(model=str(small_model_folder)), Limits(most_sessions=3))) as client:
        sessions = [client.upload(table).json["session"] for _ in range(5)]
        found = [client.send("GET", f"/api/sessions/{session}").status for session in sessions]
        assert found == [404, 404, 200, 200, 200]


def test_without_a_graph_questions_are_refused_in_a_sentence(client: Client, table: pd.DataFrame) -> None:
    session = client.upload(table).json["session"]
    for path in ("edge?source=age&target=d", "files/graph.png"):
        reply = client.send("GET", f"/api/sessions/{session}/{path}")
        assert reply.status == 409
        one_sentence(reply.json["message"])


# The line in front of the network


def test_the_line_is_bounded_and_a_cancelled_job_never_starts() -> None:
    queue, gate, done = NetworkQueue(most_waiting=3), threading.Event(), []
    first = queue.submit(Job(gate.wait))
    while first.state != "running":
        time.sleep(0.001)
    waiting = [queue.submit(Job(lambda place=place: done.append(place))) for place in range(3)]
    with pytest.raises(TooBusyError):
        queue.submit(Job(lambda: done.append(3)))
    assert [queue.ahead(job) for job in waiting] == [0, 1, 2]
    queue.cancel(waiting[1])
    unwanted = queue.submit(Job(lambda: done.append(4), wanted=lambda: False))
    queue.cancel(first)
    gate.set()
    while unwanted.state == "waiting" or waiting[2].state != "done":
        time.sleep(0.001)
    assert done == [0, 2]
    assert [job.state for job in (first, *waiting, unwanted)] == ["cancelled", "done", "cancelled", "done", "cancelled"]
    assert first.result is None
    assert queue.started == 3


def test_a_full_line_is_a_sentence(client: Client, table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    session = client.upload(table).json["session"]
    monkeypatch.setattr(client.page.queue, "most_waiting", 0)
    reply = client.send("POST", f"/api/sessions/{session}/discovery", {})
    assert reply.status == 503
    one_sentence(reply.json["message"])


def test_a_table_that_nobody_waits_for_any_more_costs_nothing(small_model_folder: Path, table: pd.DataFrame) -> None:
    now = [0.0]
    with serving(Page(Settings(model=str(small_model_folder)), clock=lambda: now[0])) as client:
        sessions = [client.upload(table).json["session"] for _ in range(4)]
        gate = threading.Event()
        client.page.queue.submit(Job(gate.wait))
        for session in sessions:
            assert client.send("POST", f"/api/sessions/{session}/discovery", {}).status == 202
        stopped, closed, abandoned, wanted = sessions
        assert client.send("DELETE", f"/api/sessions/{stopped}/discovery").json["state"] == "cancelled"
        assert client.send("DELETE", f"/api/sessions/{closed}").status == 204
        now[0] = 60.0  # since then nobody has asked for the third
        assert client.send("GET", f"/api/sessions/{wanted}").json["ahead"] == 1
        gate.set()
        while client.send("GET", f"/api/sessions/{wanted}").json["state"] != "done":
            time.sleep(0.02)
        assert client.send("GET", f"/api/sessions/{abandoned}").json["state"] == "cancelled"
        assert client.page.queue.started == 2  # the job that held the line, and the one that was wanted


# Limits


def bomb_in_a_workbook() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", b"0" * 1_000_000)
    return file.getvalue()


TOO_MUCH = {
    "bytes": (b"a,b\n" + b"1,2\n" * 20_000, "table.csv", 413),
    "a gzip bomb": (gzip.compress(b"a,b\n" + b"1,2\n" * 100_000), "table.csv.gz", 400),
    "a zip bomb": (bomb_in_a_workbook(), "table.xlsx", 400),
    "fields": (b"a" + b"," * 30_000, "table.csv", 400),
}


@pytest.mark.parametrize("kind", TOO_MUCH)
def test_too_much_is_refused_in_a_sentence_that_says_how_much_goes(strict: Client, kind: str) -> None:
    content, name, status = TOO_MUCH[kind]
    reply = strict.upload(content, name)
    assert reply.status == status, reply.content
    one_sentence(reply.json["message"])
    assert re.search("0.038|8", reply.json["message"])


UNREADABLE = {
    "nothing": (b"", "table.csv"),
    "no table": (b"\x00\xff\x00\xff" * 100, "table.csv"),
    "another format": (b"hello", "table.pdf"),
    "no ending": (b"a,b\n1,2\n", "table"),
    "a damaged workbook": (b"PK\x03\x04 and no more", "table.xlsx"),
    "a damaged gzip": (b"\x1f\x8b\x08 and no more", "table.csv.gz"),
    "a damaged Parquet file": (b"PAR1 and no more", "table.parquet"),
    "two observations": (b"a,b\n1,2\n3,4\n", "table.csv"),
    "one column": (b"a\n" + b"1\n2\n" * 50, "table.csv"),
    "a path": (b"a", "../../etc/passwd"),
}


@pytest.mark.parametrize("kind", UNREADABLE)
def test_what_is_no_table_is_refused_in_a_sentence(client: Client, kind: str) -> None:
    reply = client.upload(*UNREADABLE[kind])
    assert reply.status == 400, reply.content
    one_sentence(reply.json["message"])


def test_every_odd_or_broken_file_becomes_a_graph_or_a_sentence(
    client: Client, small_model_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tried = 0
    for number, (kind, (maker, _)) in enumerate(KINDS["files"].items()):
        case = Case("files", kind, 5)
        folder = tmp_path / str(number)
        folder.mkdir()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = maker(World(case.random(), folder, small_model_folder))
        path = Path(made[0] if isinstance(made, tuple) else made)
        if not os.path.isfile(path):  # which asks no more of a name than the system allows
            continue
        tried += 1
        reply = client.upload(path.read_bytes(), path.name)
        assert reply.status in (201, 400), case
        if reply.status == 400:
            one_sentence(reply.json["message"])
            continue
        facts = client.discover(reply.json["session"])
        assert facts["state"] in ("done", "failed"), case
        assert "in a way it should not" not in (facts["message"] or ""), case
        client.send("DELETE", f"/api/sessions/{facts['session']}")
    assert tried > 50


def test_a_request_larger_than_any_argument_is_refused(client: Client, table: pd.DataFrame) -> None:
    session = client.answered(table)["session"]
    reply = client.argue(session, knowledge={"roots": ["x" * 100] * 60_000})
    assert reply.status == 413
    one_sentence(reply.json["message"])


# The guard


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "evil.example:80"}, 421),
        ({"Host": "127.0.0.1.evil.example"}, 421),
        ({"Host": "[bad"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Sec_Fetch_Site": "cross-site"}, 403),
    ],
)
def test_requests_that_the_page_did_not_send_are_refused(client: Client, headers: dict[str, str], status: int) -> None:
    for method, path in (("GET", "/api/server"), ("POST", "/api/examples/sachs")):
        reply = client.send(method, path, **headers)
        assert reply.status == status
        one_sentence(reply.json["message"])


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
def test_the_page_answers_to_the_names_of_this_machine(client: Client, host: str) -> None:
    place = f"{host}:{client.port}"
    assert client.send("GET", "/api/server", Host=place, Origin=f"http://{place}").status == 200


def test_elsewhere_the_api_asks_for_a_token_that_only_the_printed_address_has(small_model_folder: Path) -> None:
    address = Address.of("0.0.0.0", 8765)
    assert address.token is not None
    assert address.url.endswith(f"/#token={address.token}")
    assert address.token not in repr(address)
    assert Address.of("127.0.0.1", 8765).token is None
    with serving(Page(Settings(model=str(small_model_folder))), address.token) as client:
        for given in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": address.token[:-1]}):
            assert client.send("GET", "/api/server", **given).status == 401
        assert client.send("GET", "/api/server", Authorization=f"Bearer {address.token}").status == 200
        assert client.send("GET", "/").status == 200  # the page itself holds no secret


@pytest.mark.parametrize("path", ["/", "/api/server", "/static/app.js", "/nowhere", "/api/sessions/nobody"])
def test_every_answer_forbids_programs_from_elsewhere(client: Client, path: str) -> None:
    policy = client.send("GET", path).headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy


def test_the_page_names_nothing_outside_itself() -> None:
    static = Path(__file__).parents[1] / "src" / "causal_arrow" / "web" / "static"
    for file in [*static.glob("*.js"), *static.glob("*.css"), *static.glob("*.html")]:
        addresses = set(re.findall(r"https?://[^\s\"'`)]+", file.read_text(encoding="utf-8")))
        assert addresses <= {"http://www.w3.org/2000/svg"}, file.name
        assert "innerHTML" not in file.read_text(encoding="utf-8")


def test_the_graph_library_has_its_licence_beside_it_and_is_small() -> None:
    vendor = Path(__file__).parents[1] / "src" / "causal_arrow" / "web" / "static" / "vendor"
    assert {file.name for file in vendor.iterdir()} == {"README.md", "cytoscape.LICENSE", "cytoscape.esm.min.js"}
    assert "Permission is hereby granted, free of charge" in (vendor / "cytoscape.LICENSE").read_text()
    assert (vendor / "cytoscape.esm.min.js").stat().st_size < 500_000


# The description


@pytest.fixture(scope="module")
def described(client: Client) -> Any:
    schemathesis = pytest.importorskip("schemathesis")
    return schemathesis.openapi.from_url(f"{client.url}/openapi.json")


OPERATIONS = [
    ("GET", "/api/server"),
    ("POST", "/api/sessions"),
    ("POST", "/api/examples/{example}"),
    ("GET", "/api/sessions/{session}"),
    ("DELETE", "/api/sessions/{session}"),
    ("POST", "/api/sessions/{session}/discovery"),
    ("POST", "/api/sessions/{session}/stability"),
    ("GET", "/api/sessions/{session}/stability"),
    ("DELETE", "/api/sessions/{session}/stability"),
    ("GET", "/api/sessions/{session}/effect"),
    ("GET", "/api/sessions/{session}/effects"),
    ("POST", "/api/sessions/{session}/kept"),
    ("POST", "/api/sessions/{session}/kept/file"),
    ("DELETE", "/api/sessions/{session}/kept/{number}"),
    ("GET", "/api/sessions/{session}/comparison"),
    ("DELETE", "/api/sessions/{session}/discovery"),
    ("PUT", "/api/sessions/{session}/graph"),
    ("POST", "/api/sessions/{session}/places"),
    ("GET", "/api/sessions/{session}/edge"),
    ("GET", "/api/sessions/{session}/question"),
    ("GET", "/api/sessions/{session}/files/{file}"),
    ("GET", "/api/sessions/{session}/evidence"),
    ("GET", "/api/sessions/{session}/probabilities"),
    ("GET", "/api/sessions/{session}/experiments"),
    ("POST", "/api/sessions/{session}/experiments"),
    ("POST", "/api/sessions/{session}/series"),
    ("GET", "/api/sessions/{session}/series"),
    ("DELETE", "/api/sessions/{session}/series"),
    ("GET", "/api/sessions/{session}/series/response"),
]


def test_every_operation_is_described(described: Any) -> None:
    found = {(each.ok().method.upper(), each.ok().path) for each in described.get_all_operations()}
    assert found == set(OPERATIONS)


@pytest.mark.parametrize(("method", "path"), OPERATIONS, ids=lambda part: part)
def test_whatever_is_sent_the_answer_is_as_described(
    method: str, path: str, described: Any, client: Client, table: pd.DataFrame
) -> None:
    from hypothesis import HealthCheck, Phase, given, seed, settings
    from hypothesis import strategies as st
    from schemathesis.specs.openapi.checks import positive_data_acceptance

    session = client.answered(table)["session"]

    @seed(0)
    @settings(
        max_examples=15,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=described[path][method].as_strategy(), here=st.booleans(), names=st.permutations(list(table.columns)))
    def check(case: Any, here: bool, names: list[str]) -> None:
        if here and "session" in (case.path_parameters or {}):
            case.path_parameters["session"] = session
            for parameter, name in zip(("source", "target", "cause", "effect"), names, strict=False):
                if parameter in (case.query or {}):
                    case.query[parameter] = name
        # A request of the right form may still be wrong: knowledge in a circle, a file that is no table.
        case.call_and_validate(excluded_checks=[positive_data_acceptance])

    check()


# The command


def test_serve_prints_its_address_answers_there_and_stops_on_ctrl_c(
    table: pd.DataFrame, tmp_path: Path, small_model_folder: Path
) -> None:
    import signal
    import urllib.request

    table.to_csv(tmp_path / "table.csv", index=False)
    command = [sys.executable, "-m", "causal_arrow", "serve", str(tmp_path / "table.csv"), "--port", "0"]
    command += ["--no-browser", "--model", str(small_model_folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        line = server.stdout.readline()
        address = re.search(r"http://127\.0\.0\.1:\d+/", line)
        assert address is not None, line
        with urllib.request.urlopen(f"{address[0]}api/server") as reply:
            assert json.load(reply)["given"] == "given"
        server.send_signal(signal.SIGINT)
        _, err = server.communicate(timeout=60)
    assert server.returncode == 130
    assert "Traceback" not in err


@pytest.mark.parametrize(
    "arguments",
    [
        ("no-such-table.csv",),
        ("--model", "no-such-model"),
        ("--host", "no.such.host.invalid"),
        ("--port", "99999"),
        ("--host", ""),
    ],
)
def test_serve_refuses_what_it_cannot_do_in_a_sentence(run: Run, arguments: tuple[str, ...]) -> None:
    status, _, err = run("serve", "--no-browser", *arguments)
    assert status == 2
    assert "Traceback" not in err


def test_without_its_packages_serve_says_how_to_install_them(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    status, _, err = run("serve", "--no-browser")
    assert status == 2
    assert err.strip().endswith('pip install "causal-arrow[web]".')


def test_a_port_in_use_is_a_sentence() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(ConfigurationError, match="Choose another port"):
            listen("127.0.0.1", taken.getsockname()[1])
