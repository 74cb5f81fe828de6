"""Uploads cannot hurt: hostile files, broken-off and slow requests cost little, and nobody else notices them."""

from __future__ import annotations

import gzip
import io
import os
import socket
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("fastapi", reason="the page needs the extra 'web'")

from causal_arrow.discovery.settings import Settings
from causal_arrow.tables import Abilities, FileInMemory
from causal_arrow.web import server, uploads
from causal_arrow.web.page import Page
from causal_arrow.web.uploads import MEGABYTE, Limits, UnwantedError, apart, read_apart
from web_server import Client, as_workbook, linear_table, one_sentence, serving

SECONDS = 10.0
"""In which a hostile file is refused or read."""


@pytest.fixture(scope="module")
def client(small_model_folder: Path) -> Iterator[Client]:
    uploads.warm_up()
    with serving(Page(Settings(model=str(small_model_folder)))) as client:
        yield client


def workbook(sheet: str) -> bytes:
    """A workbook of one sheet with this XML between its <sheetData> tags."""
    plain = as_workbook(pd.DataFrame({"a": [1.5]}))
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(plain)) as whole, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for entry in whole.infolist():
            content = whole.read(entry)
            if entry.filename == "xl/worksheets/sheet1.xml":
                content = (
                    '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'
                    f"{sheet}</sheetData></worksheet>"
                ).encode()
            archive.writestr(entry, content)
    return file.getvalue()


def cell(name: str, value: float = 1) -> str:
    return f'<c r="{name}"><v>{value}</v></c>'


def rows(last_column: str, count: int) -> str:
    return "".join(f'<row r="{row}">{cell(f"A{row}")}{cell(f"{last_column}{row}")}</row>' for row in range(1, count))


HOSTILE: dict[str, Callable[[], tuple[str, bytes]]] = {
    "a value in the last cell": lambda: ("a.xlsx", workbook(f'<row r="1048576">{cell("XFD1048576")}</row>')),
    "a row far beyond the last": lambda: ("b.xlsx", workbook(f'<row r="999999999999">{cell("A999999999999")}</row>')),
    "values in the last column": lambda: ("c.xlsx", workbook(rows("XFD", 3000))),
    "a gzip bomb": lambda: ("d.csv.gz", gzip.compress(b"a,b\n" + b"1,2\n" * 40_000_000, 1)),
    "a line of a million fields": lambda: ("e.csv", b"a" + b"," * 1_000_000),
}


def memory_of_family() -> float:
    """Megabytes that this process and those it has started hold, shared ones counted again."""
    parents, sizes = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            parents[int(folder.name)] = int(fields[1])
            sizes[int(folder.name)] = int(fields[21]) * os.sysconf("SC_PAGE_SIZE") / MEGABYTE
        except OSError:  # it has ended
            continue
    family = {os.getpid()}
    while more := {child for child, parent in parents.items() if parent in family} - family:
        family |= more
    return sum(sizes.get(each, 0.0) for each in family)


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_file_is_read_or_refused_soon_within_a_gigabyte_while_others_are_answered(
    client: Client, kind: str, table: pd.DataFrame
) -> None:
    name, content = HOSTILE[kind]()
    other = client.upload(table).json["session"]
    peaks, waits, done = [0.0], [0.0], threading.Event()

    def watch() -> None:
        while not done.wait(0.05):
            if sys.platform == "linux":
                peaks.append(memory_of_family())
            started = time.monotonic()
            assert client.send("GET", f"/api/sessions/{other}").status == 200
            waits.append(time.monotonic() - started)

    before = memory_of_family() if sys.platform == "linux" else 0.0
    watcher = threading.Thread(target=watch)
    watcher.start()
    started = time.monotonic()
    reply = client.upload(content, name)
    seconds = time.monotonic() - started
    done.set()
    watcher.join()
    assert reply.status in (201, 400)
    if reply.status == 400:
        one_sentence(reply.json["message"])
    assert seconds < SECONDS
    assert max(peaks) - before < 1024
    assert max(waits) < 2


def test_one_stray_cell_far_away_does_not_hinder_a_small_workbook(client: Client) -> None:
    """A common fault: the table is read, or refused with what to do."""
    lines = "".join(f'<row r="{row}">{cell(f"A{row}", row)}{cell(f"B{row}", row % 7)}</row>' for row in range(1, 40))
    reply = client.upload(workbook(f'{lines}<row r="900000">{cell("ZZ900000")}</row>'), "stray.xlsx")
    assert reply.status in (201, 400)
    if reply.status == 400:
        one_sentence(reply.json["message"])


def test_a_gzip_file_beyond_the_limit_is_refused_for_its_size(client: Client) -> None:
    name, content = HOSTILE["a gzip bomb"]()
    assert "larger than the 25 MB" in client.upload(content, name).json["message"]


def test_a_file_that_takes_too_long_is_refused() -> None:
    started = time.monotonic()
    with pytest.raises(uploads.TableError, match="longer than this page waits"):
        apart(FileInMemory("table.csv", b""), Limits(most_read_seconds=0.1), partial(time.sleep, 2 * SECONDS))
    assert time.monotonic() - started < SECONDS


def test_a_file_that_nobody_waits_for_is_not_read_to_its_end() -> None:
    file = FileInMemory("table.csv", b"a,b\n" + b"1.25,2.5\n" * 2_500_000)
    asked = iter([True] * 3)
    started = time.monotonic()
    with pytest.raises(UnwantedError):
        read_apart(file, Limits(), Abilities(), is_wanted=lambda: next(asked, False))
    assert time.monotonic() - started < SECONDS


def test_a_long_table_is_read_from_a_sample_of_its_rows_with_a_note(small_model_folder: Path) -> None:
    limits = Limits(most_observations=500)
    with serving(Page(Settings(model=str(small_model_folder)), limits)) as client:
        facts = client.answered(linear_table(800, 3))
    assert facts["table"]["size"].startswith("500 ")
    assert any("800 rows; 500 of them, drawn at random" in each["message"] for each in facts["table"]["findings"])


def test_a_wide_table_is_read_from_its_first_columns_and_others_can_be_chosen(small_model_folder: Path) -> None:
    with serving(Page(Settings(model=str(small_model_folder)), Limits(most_variables=8))) as client:
        opened = client.upload(linear_table(60, 12)).json
        assert opened["choices"]["drop"] == ["v9", "v10", "v11", "v12"]
        assert "12 columns" in opened["notice"]
        facts = client.discover(opened["session"], drop=["v1", "v2", "v3", "v4"])
        assert facts["graph"]["variables"] == [f"v{number}" for number in range(5, 13)]
        refused = client.send("POST", f"/api/sessions/{opened['session']}/discovery", {"drop": ["v1"]})
        assert refused.status == 400
        assert "more than the 8" in refused.json["message"]


def test_another_sign_for_missing_cells_is_read_from_the_file_again(client: Client) -> None:
    frame = linear_table(60, 3).round(2).astype(str)
    frame.iloc[3, 1] = "-99"
    facts = client.upload(frame).json
    done = client.discover(facts["session"], na=["-99"], missing="drop")
    assert done["state"] == "done", done["message"]
    assert done["table"]["size"].startswith("59 ")


# Requests that do not arrive


def connected(client: Client) -> socket.socket:
    return socket.create_connection(("127.0.0.1", client.port), timeout=30)


def head(length: int, path: str = f"/api/sessions?name={quote('t.csv')}") -> bytes:
    return f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {length}\r\n\r\n".encode()


@pytest.mark.parametrize("path", ["/api/sessions?name=t.csv", "/api/sessions/x/discovery"])
def test_an_upload_that_is_broken_off_prints_no_traceback(
    client: Client, path: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with connected(client) as sender:
        sender.sendall(head(1000, path) + b"a,b\n1,2\n")
    time.sleep(0.5)
    assert client.send("GET", "/api/server").status == 200
    assert "Traceback" not in "".join(capfd.readouterr())


def closes(sender: socket.socket, trickle: bytes) -> float:
    """Seconds until the other side closes, while bytes go out one by one."""
    started = time.monotonic()
    sender.settimeout(0.1)
    for byte in trickle * 1000:
        try:
            sender.sendall(bytes([byte]))
            if not sender.recv(65536):
                break
        except TimeoutError:
            pass
        except OSError:
            break
        assert time.monotonic() - started < 3 * SECONDS
    return time.monotonic() - started


@pytest.mark.parametrize("start", [head(10**6), b"", b"GET / HTTP/1.1\r\n"], ids=["body", "nothing", "headers"])
def test_a_slow_client_is_not_held_for_ever(client: Client, start: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    assert max(server.WINDOW_SECONDS, server.HEADER_SECONDS) < SECONDS
    monkeypatch.setattr(server, "WINDOW_SECONDS", 1.0)
    monkeypatch.setattr(server, "HEADER_SECONDS", 1.0)
    with connected(client) as sender:
        sender.sendall(start)
        assert closes(sender, b"x") < SECONDS / 2


def test_a_client_that_leaves_while_its_file_is_read_frees_the_reader(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, abandoned = threading.Event(), threading.Event()

    def never_ends(file: object, limits: object, work: object, is_wanted: Callable[[], bool]) -> None:
        started.set()
        while is_wanted():
            time.sleep(0.02)
        abandoned.set()
        raise UnwantedError

    monkeypatch.setattr("causal_arrow.web.page.apart", never_ends)
    content = np.arange(8).tobytes()
    with connected(client) as sender:
        sender.sendall(head(len(content)) + content)
        assert started.wait(SECONDS)
        assert not abandoned.is_set()
    assert abandoned.wait(SECONDS)
