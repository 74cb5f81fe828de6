"""The page reads a table as a time series: graphs, knowledge that still holds, effects over time, bad input."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from xml.etree import ElementTree

import pandas as pd
import pytest

pytest.importorskip("fastapi", reason="the page needs the extra 'web'")

from causal_arrow import discover, load_example
from causal_arrow.discovery.settings import Settings
from causal_arrow.web.page import Page
from causal_arrow.web.uploads import Limits
from web_server import Client, serving


@pytest.fixture(scope="module")
def settings(small_model_folder: Path) -> Settings:
    return Settings(model=str(small_model_folder))


@pytest.fixture(scope="module")
def client(settings: Settings) -> Iterator[Client]:
    with serving(Page(settings)) as client:
        yield client


@pytest.fixture(scope="module")
def days() -> pd.DataFrame:
    return load_example("greenhouse")


def read(client: Client, session: str, **choices: Any) -> Any:
    """The series once the network is done with it."""
    path = f"/api/sessions/{session}/series"
    started = client.send("POST", path, choices)
    assert started.status == 202, started.content
    while (facts := client.send("GET", path).json)["state"] in ("waiting", "running"):
        time.sleep(0.02)
    return facts


def test_the_page_shows_both_graphs_of_the_pipeline(client: Client, days: pd.DataFrame, settings: Settings) -> None:
    session = client.upload(days).json["session"]
    assert client.send("GET", f"/api/sessions/{session}/series").json["state"] == "none"
    graph = read(client, session, lags=2, time="day")["graph"]
    answer = discover(days, settings, lags=2, time="day").answer
    assert graph["title"] == "500 steps, 5 variables, 2 lags"
    assert [(row[0], int(row[1]), row[2]) for row in graph["edges"]] == [
        (edge.source, edge.lag, edge.target) for edge in answer.edges
    ]
    for picture in ("summary", "window"):
        assert {"sun", "growth"} <= set(ElementTree.fromstring(graph[picture]).itertext())


def test_irregular_times_are_brought_to_equal_steps(client: Client, days: pd.DataFrame) -> None:
    session = client.upload(days).json["session"]
    title = read(client, session, lags=1, time="day", resample="W")["graph"]["title"]
    assert title == "72 steps, 5 variables, 1 lag"


def test_effects_over_time_come_with_a_curve(client: Client, days: pd.DataFrame) -> None:
    session = client.upload(days).json["session"]
    asked = f"/api/sessions/{session}/series/response?{urlencode({'cause': 'watering', 'effect': 'soil'})}"
    assert client.send("GET", asked).status == 409
    read(client, session, lags=2, time="day")
    answer = client.send("GET", asked).json
    assert answer["words"].startswith("If watering is raised once by 1, soil changes most")
    assert "steps later" in set(ElementTree.fromstring(answer["picture"]).itertext())
    assert "two different" in client.send("GET", asked.replace("effect=soil", "effect=watering")).json["message"]


def test_what_is_known_of_the_table_holds_at_every_lag(client: Client, days: pd.DataFrame) -> None:
    facts = client.answered(days, drop=["day"])
    client.argue(facts["session"], knowledge={"tiers": [["growth"], ["sun", "temperature", "watering", "soil"]]})
    edges = read(client, facts["session"], lags=2, time="day")["graph"]["edges"]
    assert not [row for row in edges if row[2] == "growth"]


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"time": "day", "lags": 2, "unit": "sun"}, "equal steps of time"),
        ({"lags": 2}, "under Time series"),
        ({"time": "day", "lags": 2, "difference": ["moon"]}, "not among the variables"),
        ({"time": "day", "lags": 2, "resample": "fortnight"}, "period such as"),
    ],
)
def test_what_cannot_be_read_is_said_in_the_words_of_the_page(
    client: Client, days: pd.DataFrame, choices: Any, message: str
) -> None:
    facts = read(client, client.upload(days).json["session"], **choices)
    assert facts["state"] == "failed"
    assert message in facts["message"]


def test_a_sample_of_a_long_table_is_no_series(settings: Settings, days: pd.DataFrame) -> None:
    with serving(Page(settings, Limits(most_observations=100))) as strict:
        session = strict.upload(days).json["session"]
        refused = strict.send("POST", f"/api/sessions/{session}/series", {"lags": 1, "time": "day"})
        assert refused.status == 400
        assert "sample of this long table" in refused.json["message"]
