"""Work that lasts: work files, which reopen by dropping them, and the store, which survives the server."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

pytest.importorskip("fastapi", reason="the page needs the extra 'web'")

from causal_arrow.discovery.discovery import Discovery
from causal_arrow.discovery.settings import Settings
from causal_arrow.tables import FileInMemory
from causal_arrow.web._sessions import Session
from causal_arrow.web.page import Page
from causal_arrow.web.uploads import Limits
from causal_arrow.web.work import SECONDS_KEPT, Store
from web_server import Client, linear_table, one_sentence, serving


@pytest.fixture(scope="module")
def client(small_model_folder: Path) -> Iterator[Client]:
    with serving(Page(Settings(model=str(small_model_folder)))) as client:
        yield client


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return linear_table(80, 5)


def worked_on(client: Client, table: pd.DataFrame) -> Any:
    """A session with a statement, a threshold, a question and an answer that was kept."""
    session = client.answered(table, drop=["v5"])["session"]
    argument = {"knowledge": {"roots": ["v1"]}, "threshold": 0.3, "hidden": "all", "hidden_threshold": 0.2}
    assert client.argue(session, **argument).status == 200
    assert client.send("POST", f"/api/sessions/{session}/kept", {"name": "first"}).status == 201
    assert client.send("GET", f"/api/sessions/{session}/effect?cause=v1&effect=v4&randomized=true").status == 200
    return client.send("GET", f"/api/sessions/{session}").json


def what_lasts(facts: Any) -> Any:
    graph = {name: value for name, value in facts["graph"].items() if name != "version"}
    return graph, facts["kept"], {**facts["choices"], "drop": []}, facts["table"]["name"]


def test_a_work_file_reopens_with_all_that_was_said_kept_and_asked(
    client: Client, table: pd.DataFrame, tmp_path: Path
) -> None:
    before = worked_on(client, table)
    content = client.file(before["session"], "work.causal").content
    after = client.upload(content, "mine.causal").json
    assert after["session"] != before["session"]
    assert what_lasts(after) == what_lasts(before)
    effects = [
        client.send("GET", f"/api/sessions/{facts['session']}/effect?cause=v1&effect=v4").json
        for facts in (before, after)
    ]
    assert effects[0] == effects[1]
    lines = client.file(after["session"], "reproduce.py").content.decode()
    assert "effect('v1', 'v4', randomized=True)" in lines
    again = client.discover(after["session"], drop=["v4"])  # from the table in the file
    assert again["state"] == "done"
    assert again["graph"]["variables"] == ["v1", "v2", "v3"]
    path = tmp_path / "work.causal"
    path.write_bytes(content)
    loaded = Discovery.load(path)
    assert loaded.answer.knowledge.roots == ("v1",)
    assert loaded.table.observations == 80


def test_without_its_table_a_work_file_answers_what_needs_no_data(client: Client, table: pd.DataFrame) -> None:
    before = worked_on(client, table)
    after = client.upload(client.file(before["session"], "work-without-table.causal").content, "mine.causal").json
    assert what_lasts(after)[0] == what_lasts(before)[0]
    at = f"/api/sessions/{after['session']}"
    assert client.argue(after["session"], threshold=0.6).status == 200
    edge = client.send("GET", f"{at}/edge?source=v1&target=v2").json
    assert edge["plot"] is None
    assert edge["words"]
    for question in ("effect?cause=v1&effect=v2", "evidence"):
        refused = client.send("GET", f"{at}/{question}")
        assert refused.status == 400
        one_sentence(refused.json["message"])
    assert client.discover(after["session"], drop=["v4"])["state"] == "failed"


def changed(content: bytes, **members: Any) -> bytes:
    """The work file with other members."""
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            if name.split(".")[0] not in members:
                new.writestr(name, old.read(name))
        for name, member in members.items():
            new.writestr(f"{name}.json", member)
    return file.getvalue()


@pytest.mark.parametrize(
    "work",
    [
        '{"questions": [{"cause": 1}]}',
        '{"kept": [{"name": "a", "answer": {}}]}',
        '{"name": 5}',
        "[]",
        "{",
        '{"kept": [' + "[" * 5000 + "]" * 5000 + "]}",
        '{"name": "' + "x" * 2**28 + '"}',
        '{"kept": [' + "[]," * 2**27 + "[]]}",
    ],
    ids=["question", "kept", "name", "list", "cut off", "deep", "long name", "bomb"],
)
def test_a_hostile_work_file_is_refused_in_a_sentence(client: Client, table: pd.DataFrame, work: str) -> None:
    good = client.file(worked_on(client, table)["session"], "work.causal").content
    start = time.monotonic()
    refused = client.upload(changed(good, work=work), "mine.causal")
    assert refused.status == 400
    assert time.monotonic() - start < 20
    one_sentence(refused.json["message"])


def test_a_work_file_does_not_choose_the_network(client: Client, table: pd.DataFrame) -> None:
    good = client.file(worked_on(client, table)["session"], "work.causal").content
    with zipfile.ZipFile(io.BytesIO(good)) as archive:
        content = json.loads(archive.read("discovery.json"))
    content["settings"]["model"] = "/etc/passwd"
    opened = client.upload(changed(good, discovery=json.dumps(content)), "mine.causal").json
    assert client.discover(opened["session"], scale="given")["state"] == "done"


# The store


def test_work_is_back_in_another_server(small_model_folder: Path, table: pd.DataFrame, tmp_path: Path) -> None:
    settings = Settings(model=str(small_model_folder))
    with serving(Page(settings, store=Store(tmp_path))) as client:
        before = worked_on(client, table)
        unread = client.upload(table).json["session"]
        from_file = client.upload(client.file(before["session"], "work.causal").content, "mine.causal").json
        wait_for(lambda: len(list(tmp_path.glob("*.table"))) == 3 and len(list(tmp_path.glob("*.causal"))) == 2)
        time.sleep(1.2)  # two rounds of the autosave
    with serving(Page(settings, store=Store(tmp_path))) as client:
        for session in (before["session"], from_file["session"]):
            after = client.send("GET", f"/api/sessions/{session}").json
            assert what_lasts(after) == what_lasts(before)
        assert after["state"] == "ready"
        at = f"/api/sessions/{before['session']}"
        assert client.send("GET", f"{at}/effect?cause=v1&effect=v4").status == 200
        back = client.discover(before["session"])  # with the column that was left out
        assert "v5" in back["graph"]["variables"]
        assert client.send("GET", f"/api/sessions/{unread}").json["graph"] is None
        assert client.discover(unread)["state"] == "done"
        assert client.send("DELETE", at).status == 204
        assert client.send("GET", at).status == 404
    names = [path.stem for path in tmp_path.iterdir()]
    assert len(set(names)) == 2
    assert not any(session in name for session in (before["session"], unread) for name in names)


def close_while_writing(client: Client, monkeypatch: pytest.MonkeyPatch, then: Callable[[Session], None]) -> None:
    """Close each session as it is about to be written, and do something when its files are there."""
    write = Store.save

    def save(store: Store, session: Session) -> None:
        client.page.drop(session)
        write(store, session)
        then(session)

    monkeypatch.setattr(Store, "save", save)


def test_a_session_that_is_closed_while_it_is_written_leaves_nothing_on_disk(
    small_model_folder: Path, table: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[Path] = []
    with serving(Page(Settings(model=str(small_model_folder)), store=Store(tmp_path))) as client:
        close_while_writing(client, monkeypatch, lambda _: written.extend(tmp_path.glob("*.table")))
        client.upload(table)
        wait_for(lambda: bool(written))
        wait_for(lambda: not list(tmp_path.glob("*.table")))


def test_a_session_that_is_closed_while_it_is_written_does_not_come_back(
    small_model_folder: Path, table: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []

    def wait(session: Session) -> None:
        written.append(session.key)
        time.sleep(0.5)  # as long as a large table may take

    with serving(Page(Settings(model=str(small_model_folder)), store=Store(tmp_path))) as client:
        close_while_writing(client, monkeypatch, wait)
        session = client.upload(table).json["session"]
        wait_for(lambda: bool(written))
        assert client.send("GET", f"/api/sessions/{session}").status == 404


def test_old_sessions_are_dropped_though_one_cannot_be_written(
    small_model_folder: Path, table: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def save(store: Store, session: Session) -> None:
        raise RecursionError

    monkeypatch.setattr(Store, "save", save)
    page = Page(Settings(model=str(small_model_folder)), Limits(session_seconds=1.5), store=Store(tmp_path))
    with serving(page) as client:
        client.upload(table)
        wait_for(lambda: any(session.notice for session in page.sessions))
        wait_for(lambda: not len(page.sessions))


def test_without_a_store_nothing_is_written(client: Client, table: pd.DataFrame) -> None:
    assert client.send("GET", "/api/server").json["autosaves"] is False
    assert client.page.store is None


def wait_for(condition: Any, seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)


@pytest.mark.skipif(sys.platform == "win32", reason="kill -9 is of POSIX systems")
def test_after_kill_9_and_a_restart_work_is_back(small_model_folder: Path, table: pd.DataFrame, tmp_path: Path) -> None:
    program = [sys.executable, "-m", "causal_arrow", "serve", "--no-browser", "--port", "0"]
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path), "HOME": str(tmp_path), "COLUMNS": "200"}

    def started() -> tuple[subprocess.Popen[str], Client]:
        server = subprocess.Popen(
            [*program, "--model", str(small_model_folder)], stdout=subprocess.PIPE, text=True, env=environment
        )
        assert server.stdout is not None
        address = server.stdout.readline()
        return server, Client(int(address.split("127.0.0.1:")[1].split("/")[0]), None)  # type: ignore[arg-type]

    server, client = started()
    try:
        before = worked_on(client, table)
        time.sleep(2)
        os.kill(server.pid, signal.SIGKILL)
        server.wait()
        server, client = started()
        after = client.send("GET", f"/api/sessions/{before['session']}").json
        assert what_lasts(after) == what_lasts(before)
    finally:
        server.kill()
        server.wait()


def test_the_oldest_give_way_where_room_is_needed_and_those_of_last_month_go(tmp_path: Path) -> None:
    now = time.time()
    store = Store(tmp_path, max_bytes=3000, clock=lambda: now)
    for index in range(4):
        store.save(unread(f"s{index}", 1000))
        for path in tmp_path.iterdir():
            os.utime(path, (path.stat().st_atime, path.stat().st_mtime - 60))
    assert [store.load(f"s{index}") is not None for index in range(4)] == [False, False, True, True]
    now += SECONDS_KEPT + 1
    store.save(unread("new", 10))
    assert store.load("s3") is None


def test_what_a_killed_server_left_unfinished_is_removed_and_what_another_one_writes_is_not(tmp_path: Path) -> None:
    for name, age in (("left", 3600), ("under-way", 1)):
        (tmp_path / f".unfinished-{name}").write_bytes(b"half")
        os.utime(tmp_path / f".unfinished-{name}", (time.time() - age,) * 2)
    Store(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [".unfinished-under-way"]


def unread(key: str, size: int) -> Session:
    session = Session(FileInMemory("t.csv", b"x" * size), None, None)  # type: ignore[arg-type]
    session.key = key
    return session
