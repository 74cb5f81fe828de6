"""A real server of the page on a free port, and a small client for it, for the tests of the API and of the browser."""

from __future__ import annotations

import contextlib
import http.client
import io
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

import numpy as np
import pandas as pd

from causal_arrow.discovery.answer import Answer
from causal_arrow.discovery.discovery import Discovery
from causal_arrow.discovery.inference import ready_model
from causal_arrow.graphs.graph_distribution import GraphDistribution
from causal_arrow.tables.reading import read_table
from causal_arrow.web._queue import Job
from causal_arrow.web.app import create_app
from causal_arrow.web.page import Page
from causal_arrow.web.server import listen, running
from page_load import table_as_csv


@dataclass(frozen=True)
class Reply:
    """What the server answered."""

    status: int
    headers: dict[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.content)


@dataclass(frozen=True)
class Client:
    """Sends requests as no browser would: nothing is added, nothing followed."""

    port: int
    page: Page

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> Reply:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if body is not None and not isinstance(body, bytes):
            body, sent = json.dumps(body).encode(), {"Content-Type": "application/json", **sent}
        try:
            connection.request(method, path, body, sent)
            reply = connection.getresponse()
            given = {name.lower(): value for name, value in reply.getheaders()}
            return Reply(reply.status, given, reply.read())
        finally:
            connection.close()

    def upload(self, content: bytes | pd.DataFrame, name: str = "table.csv") -> Reply:
        if isinstance(content, pd.DataFrame):
            content = content.to_csv(index=False).encode()
        return self.send("POST", f"/api/sessions?{urlencode({'name': name})}", content)

    def discover(self, session: str, **choices: Any) -> Any:
        """The session once the network is done with it."""
        started = self.send("POST", f"/api/sessions/{session}/discovery", choices)
        assert started.status == 202, started.content
        while (facts := self.send("GET", f"/api/sessions/{session}").json)["state"] in ("waiting", "running"):
            time.sleep(0.02)
        return facts

    def answered(self, table: pd.DataFrame, **choices: Any) -> Any:
        """A session with a graph."""
        facts = self.discover(self.upload(table).json["session"], **choices)
        assert facts["state"] == "done", facts["message"]
        return facts

    def answered_with(self, table: pd.DataFrame, distribution: GraphDistribution) -> str:
        """A session with a graph, as if the network had given this distribution."""
        session = self.page.sessions.get(self.upload(table).json["session"])
        read = read_table(session.file)
        answer = Answer(read.names, distribution, observations=len(table))
        session.found = Discovery(answer, read, session.report, network=ready_model(self.page.settings.model))
        session.argued, session.job = session.found, Job.done(session.found)
        return session.key

    def argue(self, session: str, **argument: Any) -> Reply:
        return self.send("PUT", f"/api/sessions/{session}/graph", argument)

    def file(self, session: str, name: str) -> Reply:
        return self.send("GET", f"/api/sessions/{session}/files/{quote(name)}")


@contextlib.contextmanager
def serving(page: Page, token: str | None = None) -> Iterator[Client]:
    """A client of a server that runs until the block ends."""
    listener = listen("127.0.0.1", 0)
    with running(listener, create_app(page, token), seconds_to_leave=1):
        yield Client(listener.getsockname()[1], page)


def linear_table(observations: int, variables: int, seed: int = 0) -> pd.DataFrame:
    """A table with as many columns as asked for, v1, v2, ..., each a noisy sum of some before it."""
    return pd.read_csv(io.BytesIO(table_as_csv(observations, variables, seed)))


def in_order(scores: list[float], logits: dict[tuple[int, int], float], hidden: float) -> GraphDistribution:
    """Variables with these order scores, adjacent with these log-odds or hardly ever; the first two share a hidden
    cause with the log-odds `hidden`."""
    adjacent, confounded = (np.full((len(scores), len(scores)), -20.0) for _ in range(2))
    for (one, other), value in logits.items():
        adjacent[one, other] = adjacent[other, one] = value
    confounded[0, 1] = confounded[1, 0] = hidden
    return GraphDistribution(adjacent, np.array(scores), confounded)


def as_workbook(table: pd.DataFrame) -> bytes:
    """The table as an Excel workbook."""
    file = io.BytesIO()
    table.to_excel(file, index=False)
    return file.getvalue()


def one_sentence(message: str) -> None:
    """Asserts that a person can read it: a sentence, and in no words of another surface."""
    assert message.endswith((".", "?"))
    assert "Traceback" not in message
    assert "--" not in message  # the words of the command line
    assert "read_table" not in message  # the words of Python
