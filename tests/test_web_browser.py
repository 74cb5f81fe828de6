"""The page in a real browser: what a person sees and does, and what a hostile table cannot do."""

from __future__ import annotations

import base64
import json
import re
import shutil
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("fastapi", reason="the page needs the extra 'web'")
pytest.importorskip("playwright.sync_api", reason="the tests of the page need playwright")

from playwright.sync_api import sync_playwright

from causal_arrow import load_example
from causal_arrow.discovery.settings import Settings
from causal_arrow.graphs.graph_distribution import GraphDistribution
from causal_arrow.text import counted_share
from causal_arrow.web._queue import Job
from causal_arrow.web.page import Page
from causal_arrow.web.uploads import Limits
from web_server import Client, in_order, linear_table, serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser
    from playwright.sync_api import Page as Tab

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WAIT = 30_000  # milliseconds, on a machine that is busy otherwise

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium: `make chromium` installs Debian's")


@pytest.fixture(scope="module")
def client(small_model_folder: Path) -> Iterator[Client]:
    limits = Limits(most_bytes=200_000)
    with serving(Page(Settings(model=str(small_model_folder)), limits)) as client:
        yield client


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def able(any_table_model_folder: Path) -> Iterator[Client]:
    """A server whose network reads categories, missing cells and experiments."""
    with serving(Page(Settings(model=str(any_table_model_folder)))) as client:
        yield client


OpenTab = Callable[..., "Tab"]


@pytest.fixture
def open_tab(browser: Browser, client: Client) -> Iterator[OpenTab]:
    """Opens the page in a tab of its own, which must stay without errors and without requests to elsewhere."""
    complaints: list[str] = []
    contexts = []

    def open_tab(server: Client = client, **settings: Any) -> Tab:
        context = browser.new_context(reduced_motion="reduce", accept_downloads=True, **settings)
        contexts.append(context)
        tab = context.new_page()
        tab.set_default_timeout(WAIT)
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        tab.on("dialog", lambda dialog: (complaints.append(f"dialog {dialog.message}"), dialog.dismiss()))
        tab.on("console", lambda message: message.type == "error" and complaints.append(message.text))
        tab.on(
            "request",
            lambda request: (
                request.url.startswith((server.url, "blob:", "data:")) or complaints.append(f"asked for {request.url}")
            ),
        )
        tab.goto(server.url)
        tab.wait_for_selector("#examples button")
        return tab

    yield open_tab
    for context in contexts:
        context.close()
    # A refused request is an error on the console; the page says it in a sentence.
    assert [each for each in complaints if "the server responded with a status of" not in each] == []


def drop_in(tab: Tab, table: pd.DataFrame | bytes, name: str = "table.csv") -> None:
    content = table if isinstance(table, bytes) else table.to_csv(index=False).encode()
    tab.set_input_files("#file", {"name": name, "mimeType": "text/csv", "buffer": content})


def with_graph(tab: Tab, table: pd.DataFrame) -> list[tuple[str, str]]:
    drop_in(tab, table)
    tab.wait_for_selector("#edge-list button")
    return shown_edges(tab)


def resume(tab: Tab, session: str) -> None:
    """Show a session that the server holds."""
    tab.evaluate("key => { location.hash = `session=${key}`; }", session)  # which loads the page again
    tab.wait_for_selector("#edge-list button")


def session_of(tab: Tab) -> str:
    """The key of the session that the address names."""
    return str(tab.evaluate("new URLSearchParams(location.hash.slice(1)).get('session')"))


def pick(tab: Tab, field: str, name: str) -> None:
    """Choose a variable in a search box."""
    tab.fill(field, name)
    tab.dispatch_event(field, "change")


def variables(tab: Tab) -> list[str]:
    """What the search boxes offer."""
    return list(tab.eval_on_selector_all("#variables option", "all => all.map(e => e.value)"))


def shown_edges(tab: Tab) -> list[tuple[str, str]]:
    """What the list of edges says."""
    found = tab.eval_on_selector_all("#edge-list button", "all => all.map(e => [e.dataset.source, e.dataset.target])")
    return [(source, target) for source, target in found]


def until(tab: Tab, condition: str, given: Any = None) -> None:
    tab.wait_for_function(condition, arg=given)


EDGE_IS_THERE = """([source, target]) => [...document.querySelectorAll('#edge-list button')]
    .some(e => e.dataset.source === source && e.dataset.target === target)"""
EDGE_IS_GONE = f"edge => !({EDGE_IS_THERE})(edge)"


def test_a_table_becomes_a_graph_that_can_be_argued_with(open_tab: OpenTab, table: pd.DataFrame) -> None:
    tab = open_tab()
    before = with_graph(tab, table)
    assert "120 observations of 6 variables" in tab.inner_text("#trust")
    assert tab.locator("#graph canvas").count() > 0
    source, target = before[0]

    tab.click("#edge-list tr:first-child button")
    tab.wait_for_selector("#selection .plot circle")
    assert tab.locator("#selection .plot circle").count() == len(table)
    tab.click("#selection button:has-text('Forbid')")
    until(tab, EDGE_IS_GONE, [source, target])
    assert f"{source} → {target} is forbidden" in (tab.text_content("#statement-list") or "")
    tab.click("#undo")
    until(tab, EDGE_IS_THERE, [source, target])
    assert shown_edges(tab) == before
    tab.keyboard.press("Control+Shift+Z")
    until(tab, EDGE_IS_GONE, [source, target])


def test_reversing_an_edge_requires_the_other_direction(open_tab: OpenTab, table: pd.DataFrame) -> None:
    tab = open_tab()
    source, target = with_graph(tab, table)[0]
    tab.click("#edge-list tr:first-child button")
    tab.click("#selection button:has-text('Reverse')")
    until(tab, EDGE_IS_THERE, [target, source])
    tab.click("#selection button:has-text('Take back')")
    until(tab, EDGE_IS_THERE, [source, target])


def test_the_slider_shows_the_edges_of_its_threshold(open_tab: OpenTab, client: Client) -> None:
    tab = open_tab()
    with_graph(tab, linear_table(60, 12))
    found = client.page.sessions.get(session_of(tab)).found
    assert found is not None
    counts = []
    for threshold in (0.98, 0.7, 0.02):
        slide = "(slider, value) => { slider.value = value; slider.dispatchEvent(new Event('input')); }"
        tab.eval_on_selector("#threshold", slide, threshold)
        assert tab.inner_text("#threshold-value") == f"{threshold:.2f}"
        counts.append(len(found.answer.refine(threshold=threshold).edges))
        until(tab, f"() => document.querySelectorAll('#edge-list button').length === {counts[-1]}")
    assert counts[0] < counts[2]


def test_one_movement_of_the_slider_is_undone_at_once(open_tab: OpenTab, table: pd.DataFrame) -> None:
    tab = open_tab()
    before = with_graph(tab, table)
    slide = """slider => { for (const value of [0.6, 0.7, 0.9]) {
        slider.value = value; slider.dispatchEvent(new Event('input')); } }"""
    tab.eval_on_selector("#threshold", slide)
    tab.wait_for_selector("#undo:enabled")
    tab.click("#undo")
    until(tab, "() => document.getElementById('threshold-value').textContent === '0.50'")
    assert shown_edges(tab) == before
    assert tab.is_disabled("#undo")


def test_tiers_forbid_edges_against_them(open_tab: OpenTab, table: pd.DataFrame) -> None:
    tab = open_tab()
    source, target = with_graph(tab, table)[0]
    tab.click("#tiers-panel > summary")
    tab.select_option(f"select[aria-label='Tier of {target}']", label="1")
    tab.wait_for_selector(f"[aria-label='Tier 1'] >> text={target}")
    tab.select_option(f"select[aria-label='Tier of {source}']", label="2")
    until(tab, EDGE_IS_GONE, [source, target])
    # by dragging, back into the first tier
    tab.drag_and_drop(f".chip:has-text('{source}')", "[aria-label='Tier 1'] h4")
    until(tab, EDGE_IS_THERE, [source, target])


def test_a_column_can_be_left_out(open_tab: OpenTab, table: pd.DataFrame) -> None:
    tab = open_tab()
    with_graph(tab, table)
    tab.click("#columns-panel > summary")
    tab.uncheck("[data-column='dose']")
    tab.click("#read-again")
    until(tab, "() => document.getElementById('trust-table').textContent.includes('1 column left out')")
    assert not any("dose" in edge for edge in shown_edges(tab))
    assert len(variables(tab)) == 5


def test_columns_are_chosen_by_pattern(open_tab: OpenTab) -> None:
    tab = open_tab()
    with_graph(tab, linear_table(60, 12))
    tab.click("#columns-panel > summary")
    tab.fill("#column-pattern", "v1*, V2")
    tab.click("#use-only")
    tab.fill("#column-pattern", "v12")
    tab.click("#use-without")
    tab.click("#read-again")
    until(tab, "() => document.getElementById('trust-table').textContent.includes('8 columns left out')")
    assert variables(tab) == ["v1", "v2", "v10", "v11"]


def test_a_variable_that_is_found_is_not_left_in_a_faded_graph(open_tab: OpenTab, table: pd.DataFrame) -> None:
    tab = open_tab()
    with_graph(tab, table)
    faded = "document.getElementById('graph')._cyreg.cy.elements('.faded').length"
    tab.fill("#search", "age")
    assert tab.inner_text("#found") == "1 found"
    assert tab.evaluate(faded) > 0
    tab.press("#search", "Enter")
    assert tab.inner_text("#selection h3") == "age"
    assert tab.evaluate(faded) == 0


def test_a_table_with_gaps_and_words_is_read_after_one_decision(open_tab: OpenTab, table: pd.DataFrame) -> None:
    table["name"] = [f"person {place}" for place in range(len(table))]
    table.loc[3, "d"] = None
    tab = open_tab()
    drop_in(tab, table)
    tab.click("#findings button:has-text('Leave out incomplete observations')")
    tab.wait_for_selector("#edge-list button")
    said = tab.inner_text("#trust-table")
    assert said.startswith("119 observations of 6 variables")
    assert "1 cell is missing, incomplete observations left out; 1 column left out" in said


def test_questions_about_two_variables_are_answered(open_tab: OpenTab, table: pd.DataFrame) -> None:
    tab = open_tab()
    with_graph(tab, table)
    pick(tab, "#cause", "age")
    pick(tab, "#effect", "outcome")
    tab.click("#ask")
    tab.wait_for_selector("#pair-answer p >> text=Does age cause outcome", state="attached")
    pick(tab, "#effect", "age")
    tab.click("#ask")
    tab.wait_for_selector("#trouble >> text=two different variables")


def test_what_the_server_refuses_is_not_chosen(open_tab: OpenTab, table: pd.DataFrame) -> None:
    tab = open_tab()
    source, target = with_graph(tab, table)[0]
    tab.click("#edge-list tr:first-child button")
    tab.wait_for_selector("#selection h3")
    pick(tab, "#effect", source)
    tab.click("#show-pair")
    tab.wait_for_selector("#trouble >> text=two different variables")
    assert tab.inner_text("#selection h3") == f"{source} → {target}"
    tab.click("#selection button:has-text('Forbid')")
    until(tab, EDGE_IS_GONE, [source, target])
    tab.wait_for_selector("#selection button:has-text('Take back')")
    assert tab.is_hidden("#trouble")


def test_saying_the_same_twice_is_one_step_to_undo(open_tab: OpenTab, table: pd.DataFrame) -> None:
    tab = open_tab()
    before = with_graph(tab, table)
    tab.click("#edge-list tr:first-child button")
    tab.dblclick("#selection button:has-text('Forbid')")
    until(tab, EDGE_IS_GONE, list(before[0]))
    tab.wait_for_selector("#selection button:has-text('Take back')")
    tab.click("#selection button:has-text('Forbid')")  # also later
    tab.click("#undo")
    until(tab, EDGE_IS_THERE, list(before[0]))
    assert tab.is_disabled("#undo")


def test_downloads_hold_the_graph_as_it_was_argued(open_tab: OpenTab, table: pd.DataFrame, tmp_path: Path) -> None:
    tab = open_tab()
    with_graph(tab, table)
    tab.click("#edge-list tr:first-child button")
    tab.click("#selection button:has-text('Forbid')")
    tab.wait_for_selector("#selection button:has-text('Take back')")
    for name in ("graph.json", "graph.png", "report.html", "reproduce.py"):
        tab.click("#downloads > summary")
        with tab.expect_download() as download:
            tab.click(f"[data-file='{name}']")
        assert download.value.suggested_filename == name
        download.value.save_as(tmp_path / name)
        tab.wait_for_selector("#downloads:not([open])")
    saved = json.loads((tmp_path / "graph.json").read_text(encoding="utf-8"))
    assert {(edge["source"], edge["target"]) for edge in saved["edges"]} == set(shown_edges(tab))
    assert (tmp_path / "graph.png").read_bytes().startswith(b"\x89PNG")


def people() -> pd.DataFrame:
    """Numbers, codes that stand for categories, and words in an order."""
    random = np.random.default_rng(3)
    dose = random.choice(["low", "middle", "high"], 100)
    pressure = pd.Series(dose).map({"low": 0.0, "middle": 3.0, "high": 6.0}) + random.normal(size=100)
    return pd.DataFrame(
        {"age": random.normal(size=100), "dose": dose, "pressure": pressure, "zip": random.choice(4, 100)}
    )


def kind_of(tab: Tab, name: str) -> str:
    """The kind that the server has read a column as, by what is said of the variable."""
    tab.fill("#search", name)
    tab.press("#search", "Enter")
    tab.fill("#search", "")
    return tab.inner_text("#selection p >> nth=0")


def test_the_kind_of_a_column_can_be_changed_and_that_undone(open_tab: OpenTab, able: Client) -> None:
    tab = open_tab(able)
    drop_in(tab, people())
    tab.wait_for_selector("#edge-list button")
    before = shown_edges(tab)
    assert "a number, as detected" in kind_of(tab, "zip")
    tab.click("#selection button:has-text('Change its kind')")
    assert tab.evaluate("document.activeElement.dataset.kindOf") == "zip"
    tab.select_option("[data-kind-of='zip']", "category")
    tab.click("#read-again")
    tab.wait_for_selector("#undo:enabled")
    assert "unordered levels (0, 1, 2, 3), as you chose" in kind_of(tab, "zip")
    started = able.page.queue.started
    tab.click("#undo")
    until(tab, "() => document.getElementById('undo').disabled")
    assert "a number, as detected" in kind_of(tab, "zip")
    assert shown_edges(tab) == before
    assert able.page.queue.started == started  # the server remembers
    tab.reload()
    tab.wait_for_selector("#redo:enabled")
    tab.click("#redo")
    tab.wait_for_selector("#undo:enabled")
    until(tab, "() => document.querySelector(\"[data-kind-of='zip']\").value === 'category'")


def test_levels_get_their_order_by_keyboard(open_tab: OpenTab, client: Client) -> None:
    tab = open_tab()
    drop_in(tab, people())
    tab.wait_for_selector("#findings button")
    tab.select_option("[data-kind-of='dose']", "ordered")
    tab.focus("[aria-label='Move high down']")
    tab.keyboard.press("Enter")
    tab.focus("[aria-label='Move high down']")
    tab.keyboard.press("Enter")
    tab.click("#read-again")
    tab.wait_for_selector("#edge-list button")
    answer = client.page.sessions.get(session_of(tab)).current().answer
    assert {column.name: column.levels for column in answer.columns}["dose"] == ("low", "middle", "high")


def test_an_offer_leaves_alone_what_the_person_has_decided(open_tab: OpenTab) -> None:
    table = people().assign(name=[f"person {place}" for place in range(100)])
    table.loc[3, "pressure"] = None
    tab = open_tab()
    drop_in(tab, table)
    tab.wait_for_selector("#findings button")
    tab.select_option("[data-kind-of='dose']", "ordered")
    tab.click("#findings button:has-text('Leave out incomplete observations')")
    tab.wait_for_selector("#edge-list button")
    assert variables(tab) == ["age", "dose", "pressure", "zip"]


def test_what_the_network_cannot_read_is_said_and_not_offered(open_tab: OpenTab) -> None:
    table = people()
    table.loc[3, "pressure"] = None
    tab = open_tab()
    drop_in(tab, table)
    tab.wait_for_selector("#findings button")
    assert tab.is_disabled("#interventions")
    assert "cannot read experiments yet" in tab.inner_text("#interventions-hint")
    assert "cannot read missing cells yet" in tab.inner_text("#missing-hint")
    assert tab.is_disabled("#missing option[value='model']")
    assert tab.is_disabled("[data-kind-of='dose'] option[value='category']")
    # A reading that fails says what works, and the choices stay as they were made.
    tab.select_option("[data-kind-of='dose']", "ordered")
    tab.click("#read-again")
    tab.wait_for_selector("#trouble button")
    assert tab.locator("[data-moved='dose'] li").count() == 3
    tab.click("#trouble button:has-text('Fill the gaps')")
    tab.wait_for_selector("#edge-list button")
    assert "1 cell is missing, filled with predictions" in tab.inner_text("#trust-table")


def test_experiments_and_environments_are_named(open_tab: OpenTab, able: Client) -> None:
    table = people()
    table["target"] = ["pressure" if place % 5 == 0 else "" for place in range(len(table))]
    table["site"] = ["north", "south"] * 50
    tab = open_tab(able)
    drop_in(tab, table)
    tab.wait_for_selector("#findings li >> text=is constant")
    tab.select_option("#interventions", "target")
    tab.select_option("#environments", "site")
    tab.click("#read-again")
    until(
        tab, "() => document.getElementById('remarks').textContent.includes('Intervened on by experiments: pressure')"
    )
    assert "(site)" in tab.inner_text("#remarks")
    assert variables(tab) == ["age", "dose", "pressure", "zip", "site"]
    assert not any(target == "site" for _, target in shown_edges(tab))


def test_the_stability_of_an_edge_is_computed_on_request(open_tab: OpenTab, table: pd.DataFrame) -> None:
    tab = open_tab()
    with_graph(tab, table)
    tab.click("#edge-list tr:first-child button")
    tab.click("#stability button")
    tab.wait_for_selector("#stability:has-text('Of 50 bootstrap resamples')")
    until(tab, "() => document.getElementById('resampling').hidden")
    assert "Stable" in tab.inner_text("#edge-box thead")
    tab.click("#selection button:has-text('Reverse')")
    until(tab, "() => document.getElementById('stability').textContent.includes('Of 50 bootstrap')")


def test_reading_resampled_tables_can_be_stopped(
    open_tab: OpenTab, client: Client, table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    tab = open_tab()
    with_graph(tab, table)
    tab.click("#edge-list tr:first-child button")
    gate = threading.Event()
    client.page.queue.submit(Job(gate.wait))  # holds the line
    tab.click("#stability button")
    tab.click("#resampling button:has-text('Stop')")
    tab.wait_for_selector("#stability button")
    gate.set()
    session = client.page.sessions.get(session_of(tab))
    assert session.resampling is not None
    assert session.resampling.state == "cancelled"
    assert session.resampling.share == 0


def test_a_reading_can_be_stopped_and_changes_nothing(open_tab: OpenTab, client: Client, table: pd.DataFrame) -> None:
    tab = open_tab()
    before = with_graph(tab, table)
    gate = threading.Event()
    client.page.queue.submit(Job(gate.wait))
    tab.click("#columns-panel > summary")
    tab.uncheck("[data-column='dose']")
    tab.click("#read-again")
    tab.click("#status button:has-text('Stop')")
    tab.wait_for_selector("#status >> text=Stopped. Nothing has changed.")
    gate.set()
    assert shown_edges(tab) == before
    assert tab.is_disabled("#undo")


def test_the_effect_of_one_variable_on_another_is_shown(open_tab: OpenTab, table: pd.DataFrame) -> None:
    tab = open_tab()
    with_graph(tab, table)
    tab.click("#edge-list tr:first-child button")
    tab.click("#selection button:has-text('Require')")
    tab.click("#selection button:has-text('How large is the effect?')")
    tab.wait_for_selector("#pair-answer .answers")
    assert "90%:" in tab.inner_text("#pair-answer")
    tab.click("#pair-answer .more > summary")
    said = tab.inner_text("#pair-answer")
    assert tab.is_visible("#pair-answer .effect-plot")
    assert "A hidden cause would have to explain" in said
    assert tab.locator("#pair-answer tbody tr").count() >= 1
    tab.click("#question-options > summary")
    tab.fill("#first", "0")
    tab.fill("#second", "two")
    tab.click("#ask")
    tab.wait_for_selector("#pair-answer >> text=Expected a number")


SHARES = "all => all.map(e => e.textContent).filter(words => words.endsWith('%'))"


@pytest.mark.parametrize(("adjacent", "hidden"), [(0.0, 0.0), (1.0, 0.0), (2.0, -3.0), (4.0, 3.0)])
def test_every_graph_behind_an_effect_is_accounted_for(
    open_tab: OpenTab, client: Client, adjacent: float, hidden: float
) -> None:
    tab = open_tab()
    distribution = in_order([3.0, 2.0, 1.0], {(0, 1): adjacent, (1, 2): 4.0}, hidden)
    session = client.answered_with(linear_table(200, 3), distribution)
    resume(tab, session)
    pick(tab, "#cause", "v1")
    pick(tab, "#effect", "v2")
    tab.click("#ask")
    tab.wait_for_selector("#pair-answer .more")
    tab.click("#pair-answer .more > summary")
    size = client.send("GET", f"/api/sessions/{session}/effect?cause=v1&effect=v2").json
    said, words = tab.inner_text("#pair-answer"), size["sentence"]
    # What the sentence of Python says is not identified, the page says too; and it leads with a number only where
    # that is what most graphs say.
    assert size["probability_not_identified"] > 0
    assert f"not identified: {counted_share(size['probability_not_identified'])}" in said
    assert (tab.locator("#pair-answer .figure").count() == 1) == (size["verdict"] == "effect")
    assert size["verdict"] == "effect" or words in said
    shares = tab.eval_on_selector_all("#pair-answer td", SHARES)
    assert abs(sum(int(share.strip("<>%")) for share in shares) - 100) <= 2, shares


def test_the_page_rounds_shares_as_its_sentences_do(open_tab: OpenTab) -> None:
    tab = open_tab()
    shares = [place / 1000 for place in range(1001)]
    shown = tab.evaluate("async shares => shares.map((await import('/static/dom.js')).countedShare)", shares)
    assert shown == [counted_share(share) for share in shares]


def test_two_answers_are_compared_side_by_side(open_tab: OpenTab, table: pd.DataFrame, tmp_path: Path) -> None:
    tab = open_tab()
    source, target = with_graph(tab, table)[0]
    tab.click("#edge-list tr:first-child button")
    tab.click("#selection button:has-text('Reverse')")
    until(tab, EDGE_IS_THERE, [target, source])
    tab.click("#open-compare")
    tab.wait_for_selector("#differences .difference-reversed")
    assert f"{source} → {target} in “the network alone”" in tab.inner_text("#differences")
    assert tab.is_hidden("#work")
    tab.fill("#keep-name", "mine")
    tab.click("#keep")
    until(tab, "() => document.getElementById('compare-words').textContent.startsWith('No difference')")
    tab.click("#undo")  # the right side follows
    tab.wait_for_selector("#differences li >> text=in “mine”")
    tab.click("#differences button >> nth=0")
    (tmp_path / "bad.json").write_text("{}")
    tab.set_input_files("#keep-file", tmp_path / "bad.json")
    tab.wait_for_selector("#trouble >> text=Expected an answer")
    tab.click("#close-compare")
    assert tab.is_visible("#graph")
    tab.click("#open-compare")
    drop_in(tab, linear_table(60, 4))
    tab.click("#confirm-yes")  # another table closes the comparison of the last
    until(tab, "() => document.getElementById('trust-table').textContent.includes('4 variables')")
    assert tab.is_visible("#work")
    assert tab.is_hidden("#compare")


def with_100_variables(client: Client) -> str:
    """A session with a graph of 100 variables and some 200 edges, of which each is adjacent to its neighbors."""
    content = linear_table(30, 100).round(2)
    logits = np.full((100, 100), -9.0)
    for step in (1, 7, 23):
        causes = np.arange(100 - step)
        causes = causes[causes % 4 < 3]
        logits[causes, causes + step] = logits[causes + step, causes] = 4.0
    scores = np.arange(100, 0, -1) / 4.0
    return client.answered_with(content, GraphDistribution(logits, scores))


def test_a_graph_of_100_variables_moves_without_stutter(open_tab: OpenTab, client: Client) -> None:
    tab = open_tab(viewport={"width": 1280, "height": 860})
    resume(tab, with_100_variables(client))
    assert 150 < len(shown_edges(tab)) < 300
    tab.wait_for_timeout(500)
    box = tab.locator("#graph").bounding_box()
    assert box is not None
    tab.evaluate(
        """() => { window.frames_ = []; let last = performance.now();
            const note = (now) => { window.frames_.push(now - last); last = now; requestAnimationFrame(note); };
            requestAnimationFrame(note); }"""
    )
    tab.mouse.move(box["x"] + 5, box["y"] + 5)
    tab.mouse.down()
    for step in range(40):
        tab.mouse.move(box["x"] + 5 + 4 * step, box["y"] + 5 + 3 * step)
    tab.mouse.up()
    frames = sorted(tab.evaluate("window.frames_.slice(1)"))
    assert len(frames) > 10
    assert frames[len(frames) // 2] < 50  # milliseconds, painted without a GPU on a machine that is busy otherwise


HOSTILE = ["<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "'\"><svg onload=alert(1)>", "${alert(1)}"]


def test_hostile_names_and_cells_are_shown_as_text(open_tab: OpenTab) -> None:
    table = linear_table(80, 4).set_axis(HOSTILE, axis=1)
    table["<b onmouseover=alert(2)>kind</b>"] = ["<img src=y onerror=alert(3)>", "b"] * 40
    tab = open_tab()
    drop_in(tab, table, "<img src=z onerror=alert(4)>.csv")
    tab.wait_for_selector("#findings li >> text=onerror=alert(3)")
    tab.locator("[data-kind-of]").last.select_option("ordered")
    assert tab.locator(".order li >> nth=0").inner_text().startswith("<img src=y onerror=alert(3)>")
    tab.click("#read-again")
    tab.wait_for_selector("#edge-list button")
    for place in range(len(shown_edges(tab))):
        tab.click(f"#edge-list tr:nth-child({place + 1}) button")
        tab.wait_for_selector("#selection h3")
    tab.click("#selection button:has-text('Require')")
    tab.wait_for_selector("#selection button:has-text('Take back')")
    tab.click("#selection button:has-text('How large is the effect?')")
    tab.wait_for_selector("#pair-answer .more")
    assert tab.inner_text("#table-name") == "<img src=z onerror=alert(4)>.csv"
    tab.click("#open-compare")
    tab.fill("#keep-name", "<img src=w onerror=alert(5)>")
    tab.click("#keep")
    tab.wait_for_selector("#left option >> text=onerror=alert(5)", state="attached")
    assert tab.locator("img, main script, [onerror], [onload], [onmouseover]").count() == 0


def test_an_oversized_table_is_refused_in_a_sentence_before_it_is_sent(open_tab: OpenTab, client: Client) -> None:
    tab = open_tab()
    requests: list[str] = []
    tab.on("request", lambda request: requests.append(request.method))
    drop_in(tab, linear_table(3000, 20))
    tab.wait_for_selector("#trouble >> text=is larger than the")
    assert "POST" not in requests
    drop_in(tab, b"a,b\n1,2\n")
    tab.wait_for_selector("#trouble >> text=at least 20 are needed")


def test_a_reload_keeps_table_graph_argument_and_undo(open_tab: OpenTab, table: pd.DataFrame) -> None:
    tab = open_tab()
    before = with_graph(tab, table)
    tab.click("#edge-list tr:first-child button")
    tab.click("#selection button:has-text('Forbid')")
    until(tab, EDGE_IS_GONE, list(before[0]))
    argued = shown_edges(tab)
    tab.reload()
    tab.wait_for_selector("#edge-list button")
    assert shown_edges(tab) == argued
    tab.click("#undo")
    until(tab, EDGE_IS_THERE, list(before[0]))


def test_two_tabs_do_not_see_each_other(open_tab: OpenTab, table: pd.DataFrame) -> None:
    mine, yours = open_tab(), open_tab()
    before = with_graph(mine, table)
    assert yours.is_visible("#start")
    with_graph(yours, linear_table(60, 4))
    mine.click("#edge-list tr:first-child button")
    mine.click("#selection button:has-text('Forbid')")
    until(mine, EDGE_IS_GONE, list(before[0]))
    assert yours.locator("#statement-list button").count() == 0
    assert "4 variables" in yours.inner_text("#trust-table")


def test_everything_can_be_reached_and_named_without_a_mouse(open_tab: OpenTab, table: pd.DataFrame) -> None:
    tab = open_tab()
    with_graph(tab, table)
    tab.focus("#edge-list button")
    tab.keyboard.press("Enter")
    tab.wait_for_selector("#selection .plot")
    nameless = tab.evaluate(
        """() => [...document.querySelectorAll('button, select, input, meter, svg:not([aria-hidden]), [role=img]')]
            .filter(e => !(e.getAttribute('aria-label') || e.textContent.trim() || e.labels?.length))
            .map(e => e.outerHTML)"""
    )
    assert nameless == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_enough_contrast_and_a_phone_needs_no_sideways_scrolling(
    open_tab: OpenTab, table: pd.DataFrame, scheme: str
) -> None:
    tab = open_tab(color_scheme=scheme, viewport={"width": 360, "height": 740})
    with_graph(tab, table)
    tab.click("#edge-list tr:first-child button")
    tab.click("#selection button:has-text('How large is the effect?')")
    tab.wait_for_selector("#pair-answer .more")
    tab.click("#pair-answer .more > summary")
    tab.click("#columns-panel > summary")
    tab.click("#tiers-panel > summary")
    assert tab.evaluate("document.documentElement.scrollWidth") <= 360
    tab.click("#open-compare")
    tab.wait_for_selector("#compare-words:not(:empty)")
    assert tab.evaluate("document.documentElement.scrollWidth") <= 360
    colors = tab.evaluate(
        """() => Object.fromEntries(['page', 'panel', 'node', 'text', 'quiet', 'accent', 'problem', 'warning',
            'on-accent', 'edge', 'required', 'selected', 'hidden-cause', 'only-here', 'turned', 'strong-border',
            'path', 'on-path', 'adjusted', 'soft']
            .map(n => [n, getComputedStyle(document.documentElement).getPropertyValue('--' + n).trim()]))"""
    )
    for text in ("text", "quiet", "problem", "warning"):
        for background in ("page", "panel", "node"):
            assert contrast(colors[text], colors[background]) >= 4.5, (text, background)
    for text, background in (("on-accent", "accent"), ("on-path", "path"), ("text", "adjusted"), ("quiet", "soft")):
        assert contrast(colors[text], colors[background]) >= 4.5, (text, background)
    # Lines and borders that carry meaning, against what they are drawn on.
    for line in (
        "edge",
        "required",
        "selected",
        "hidden-cause",
        "only-here",
        "turned",
        "path",
        "strong-border",
        "accent",
    ):
        assert contrast(colors[line], colors["page"]) >= 3, line


CUT_OFF = """() => {
    const brush = document.createElement('canvas').getContext('2d');
    const isCut = (select) => {
        const style = getComputedStyle(select);
        brush.font = style.font;
        const room = select.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight) - 16;  // arrow
        return brush.measureText(select.selectedOptions[0]?.textContent ?? '').width > room;
    };
    const seen = [...document.querySelectorAll('dd, .stack select:not([multiple]), .controls select')]
        .filter(e => e.clientWidth);
    return seen.filter(e => (e.tagName === 'SELECT' ? isCut(e) : e.scrollHeight > e.clientHeight))
        .map(e => e.id + ': ' + (e.selectedOptions?.[0] ?? e).textContent);
}"""


@pytest.mark.parametrize("width", [360, 380, 1300])
def test_no_text_is_cut_off(open_tab: OpenTab, able: Client, width: int) -> None:
    tab = open_tab(able, viewport={"width": width, "height": 740})
    table = people()
    table.loc[3:20, "pressure"] = None
    drop_in(tab, table)
    tab.wait_for_selector("#edge-list button")
    tab.click("#columns-panel > summary")
    assert tab.evaluate(CUT_OFF) == []
    # Every choice of every menu.
    menus = tab.eval_on_selector_all(
        ".stack select:not([multiple])", "all => all.filter(e => e.clientWidth).map(e => e.id)"
    )
    for menu in filter(None, menus):
        for place in range(tab.locator(f"#{menu} option").count()):
            tab.eval_on_selector(f"#{menu}", "(menu, place) => { menu.selectedIndex = place; }", place)
            assert tab.evaluate(CUT_OFF) == []


def test_hidden_causes_are_drawn_marked_and_pointed_at_as_edges_are(open_tab: OpenTab, client: Client) -> None:
    tab = open_tab()
    resume(tab, client.answered_with(linear_table(60, 3), in_order([3.0, 2.0, 1.0], {(1, 2): 4.0}, 2.0)))
    arcs = """() => {
        const { cy } = document.getElementById('graph')._cyreg;
        return cy.edges('.hidden-cause').map(e => [e.style('line-style'), e.style('source-arrow-shape'),
            e.style('target-arrow-shape')]);
    }"""
    assert tab.evaluate(arcs) == [["dashed", "triangle", "triangle"]]
    legend = "(e, part) => getComputedStyle(e, part).borderTopStyle"
    assert tab.eval_on_selector("#legend-hidden .line", "e => getComputedStyle(e).borderTopStyle") == "dashed"
    for part in ("::before", "::after"):
        assert tab.eval_on_selector("#legend-hidden .line", legend, part) == "solid"  # a head
    tab.click("#open-compare")
    tab.wait_for_selector("#compare-words:has-text('No difference')")
    marks = """() => ['left', 'right'].map(side => document.getElementById(`${side}-graph`)._cyreg.cy
        .edges('.hidden-cause').map(e => ['in-both', 'only-here', 'pointed-at'].filter(name => e.hasClass(name))))"""
    assert tab.evaluate(marks) == [[["in-both"]], [["in-both"]]]
    assert tab.is_visible("#compare-legend-hidden")
    tab.click("#close-compare")
    pick(tab, "#cause", "v1")
    pick(tab, "#effect", "v2")
    tab.click("#show-pair")
    tab.click("#selection button:has-text('They share no hidden cause')")
    tab.wait_for_selector("#selection button:has-text('They may share a hidden cause')")
    tab.click("#open-compare")
    tab.wait_for_selector("#differences .difference-hidden_cause")
    assert "1 hidden cause in one of the two" in tab.inner_text("#compare-words")
    assert tab.evaluate(marks) == [[["only-here"]], []]
    tab.click("#differences .difference-hidden_cause button")
    assert tab.evaluate(marks) == [[["only-here", "pointed-at"]], []]


def contrast(one: str, other: str) -> float:
    """The contrast ratio of two colors, as WCAG defines it."""

    def luminance(color: str) -> float:
        channels = [int(part, 16) / 255 for part in re.findall("[0-9a-f]{2}", color)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_the_token_of_the_printed_address_opens_the_page_and_leaves_the_address_bar(
    browser: Browser, small_model_folder: Path, table: pd.DataFrame
) -> None:
    with serving(Page(Settings(model=str(small_model_folder))), "a-token") as guarded:
        tab = browser.new_page()
        tab.goto(guarded.url)
        tab.wait_for_selector("#trouble >> text=needs its token")
        tab.goto(f"{guarded.url}/#token=a-token")
        tab.wait_for_selector("#examples button")
        assert "token" not in tab.url
        with_graph(tab, table)
        tab.reload()
        tab.wait_for_selector("#edge-list button")
        tab.context.close()


# The question first


def test_one_click_answers_whether_the_drug_lengthens_the_stay(open_tab: OpenTab) -> None:
    with serving(Page(Settings())) as real:
        tab = open_tab(real, viewport={"width": 1280, "height": 800})
        tab.click("[data-example=hospital]")
        tab.wait_for_selector("#pair-answer .figure")
        size, plain = (
            float(tab.inner_text(f".bar.{kind} + .number").replace("−", "-")) for kind in ("causal", "plain")
        )
        assert size < -1 < 0 < plain  # patients with the drug stay longer, and the drug shortens the stay
        tab.click("#reveal")
        assert "-1.80" in tab.inner_text("#truth")
        marked = """() => { const { cy } = document.getElementById('graph')._cyreg;
            return [cy.edges('.on-path').length, cy.nodes('.adjusted').length]; }"""
        paths, adjusted = tab.evaluate(marked)
        assert paths >= 2
        assert adjusted >= 1


IN_VIEW = """selector => { const box = document.querySelector(selector).getBoundingClientRect();
    return box.top >= 0 && box.bottom <= innerHeight && box.height > 0; }"""


def click_node(tab: Tab, name: str) -> None:
    """Click a variable in the graph, once everything stands in its place."""
    tab.wait_for_selector("#graph:not(.unplaced)")
    position = tab.evaluate(
        """name => { const { cy } = document.getElementById('graph')._cyreg;
            return cy.nodes().filter(node => node.data('name') === name)[0].renderedPosition(); }""",
        name,
    )
    tab.click("#graph", position=position)


@pytest.mark.parametrize("size", [(1440, 900), (1024, 768), (390, 844)])
def test_a_file_and_two_clicks_give_an_effect_that_is_in_view(
    open_tab: OpenTab, table: pd.DataFrame, size: tuple[int, int]
) -> None:
    tab = open_tab(viewport={"width": size[0], "height": size[1]})
    with_graph(tab, table)
    tab.wait_for_timeout(500)  # until everything stands where the layout has it
    click_node(tab, "age")
    assert tab.input_value("#cause") == "age"
    click_node(tab, "outcome")
    tab.wait_for_selector("#pair-answer .answers")
    assert tab.input_value("#effect") == "outcome"
    assert tab.evaluate(IN_VIEW, "#pair-answer .answers")
    assert tab.evaluate("document.documentElement.scrollWidth") <= size[0]


def test_what_moves_a_variable_most_is_a_ranking_that_leads_to_answers(open_tab: OpenTab, table: pd.DataFrame) -> None:
    tab = open_tab()
    with_graph(tab, table)
    pick(tab, "#effect", "outcome")
    tab.click("#rank")
    tab.wait_for_selector(".ranking .ranked")
    cause = tab.inner_text(".ranked >> nth=0 >> strong")
    tab.click(".ranked >> nth=0")
    tab.wait_for_selector("#pair-answer .answers")
    assert tab.input_value("#cause") == cause


def test_of_a_category_the_share_of_a_level_is_ranked(open_tab: OpenTab, able: Client) -> None:
    tab = open_tab(able)
    drop_in(tab, people().assign(dose=lambda table: table["dose"].map({"low": "a", "middle": "b", "high": "c"})))
    tab.wait_for_selector("#edge-list button")
    pick(tab, "#effect", "dose")
    tab.select_option("#level", "b")
    tab.click("#rank")
    tab.wait_for_selector("#pair-answer h3 >> text=What moves the share of dose = b most?")
    tab.route("**/effects?**", lambda route: route.fulfill(status=400, json={"message": "No."}))
    tab.click("#rank")
    tab.wait_for_selector("#trouble >> text=No.")
    assert tab.inner_text("#pair-answer") == ""  # nothing is drawn any more


def test_a_plot_has_the_scale_that_the_network_read(open_tab: OpenTab, client: Client) -> None:
    tab = open_tab()
    table = np.exp(2 * linear_table(200, 2))
    session = client.answered_with(table, in_order([2.0, 1.0], {(0, 1): 4.0}, -9.0))
    shown = """() => { const circles = [...document.querySelectorAll('#selection .plot circle')];
        const all = circles.map(circle => Number(circle.getAttribute('cx')));
        const [low, high] = [Math.min(...all), Math.max(...all)];
        return all.filter(x => x - low > (high - low) / 10).length / all.length; }"""
    shares = []
    for scale in ((), ("v1", "v2")):
        found = client.page.sessions.get(session)
        assert found.found is not None
        found.argued = found.found.with_answer(replace(found.found.answer, log_columns=scale))
        resume(tab, session)
        tab.click("#edge-list tr:first-child button")
        tab.wait_for_selector("#selection .plot circle")
        shares.append(tab.evaluate(shown))
        tab.reload()
    assert shares[0] < 0.2 < 0.8 < shares[1]
    tab.click("#edge-list tr:first-child button")
    tab.wait_for_selector("#selection .plot text >> text=v1 (log scale)")


# What speaks against it


def test_what_speaks_against_the_graph_is_listed_and_leads_to_pairs(open_tab: OpenTab, table: pd.DataFrame) -> None:
    tab = open_tab()
    with_graph(tab, table)
    tab.click("#evidence-panel > summary")
    tab.wait_for_selector("#tests li")
    assert "independences that the graph implies" in tab.inner_text("#tests")
    assert re.search(r"p = 0\.\d{3}|p < 0\.001", tab.inner_text("#tests .plain >> nth=0"))
    first = tab.locator("#tests .plain button >> nth=0")
    pair = set(first.inner_text().split(" and "))
    first.click()
    tab.wait_for_selector("#selection h3")
    assert set(tab.inner_text("#selection h3").split(" → ")) == pair
    tab.click("#advise")
    tab.wait_for_selector("#advice li")
    assert "randomize" in tab.inner_text("#advice")


def test_the_matrix_has_every_pair_along_the_causal_order(open_tab: OpenTab, table: pd.DataFrame) -> None:
    tab = open_tab()
    source, target = with_graph(tab, table)[0]
    tab.click("#evidence-panel > summary")
    tab.wait_for_selector("#tests li")
    graph = tab.evaluate("key => fetch(`/api/sessions/${key}`).then(r => r.json())", session_of(tab))["graph"]
    box = tab.locator("#matrix").bounding_box()
    assert box is not None
    row, column = (graph["order"].index(name) + 0.5 for name in (source, target))
    at = {"x": box["width"] * column / 6, "y": box["height"] * row / 6}
    tab.hover("#matrix", position=at)
    shown = next(edge["probability"] for edge in graph["edges"] if (edge["source"], edge["target"]) == (source, target))
    assert tab.inner_text("#matrix-words") == f"{source} → {target}: {shown:.2f}"
    tab.click("#matrix", position=at)
    tab.wait_for_selector(f"#selection h3 >> text={source} → {target}")


def test_hidden_causes_can_be_off_and_have_a_threshold(open_tab: OpenTab, client: Client) -> None:
    tab = open_tab()
    resume(tab, client.answered_with(linear_table(60, 3), in_order([3.0, 2.0, 1.0], {(1, 2): 4.0}, 2.0)))
    listed = "document.querySelectorAll('#hidden-list li').length"
    arcs = "document.getElementById('graph')._cyreg.cy.edges('.hidden-cause').length"
    until(tab, f"() => {listed} === 1 && {arcs} === 1")
    click_node(tab, "v1")
    tab.wait_for_selector("#selection p >> text=May share a hidden cause with: v2 (0.88)")
    tab.click("#choices > summary")
    tab.select_option("#hidden-causes", "none")
    until(tab, f"() => {listed} === 0 && {arcs} === 0")
    assert tab.is_disabled("#hidden-threshold")
    tab.select_option("#hidden-causes", "all")
    until(tab, f"() => {listed} === 1 && {arcs} === 1")
    slide = "slider => { slider.value = 0.9; slider.dispatchEvent(new Event('input')); }"
    tab.eval_on_selector("#hidden-threshold", slide)
    until(tab, f"() => {listed} === 0 && {arcs} === 0")
    tab.click("#undo")
    until(tab, f"() => {listed} === 1 && {arcs} === 1")


def test_that_nothing_causes_age_is_said_in_one_click_or_never_suggested_again(
    open_tab: OpenTab, client: Client
) -> None:
    tab = open_tab()
    frame = linear_table(60, 3).set_axis(["dose", "age", "stay"], axis=1)
    resume(tab, client.answered_with(frame, in_order([3.0, 2.0, 1.0], {(0, 1): 4.0, (1, 2): 4.0}, -9.0)))
    assert ("dose", "age") in shown_edges(tab)
    tab.click("#suggestions button:has-text('Nothing causes them')")
    until(tab, EDGE_IS_THERE, ["age", "dose"])
    tab.wait_for_selector("#statement-list li >> text=Tier 1: age", state="attached")
    assert tab.is_hidden("#suggestions")
    tab.click("#undo")
    until(tab, EDGE_IS_THERE, ["dose", "age"])
    tab.click("#suggestions button:has-text('Ignore')")
    tab.reload()
    tab.wait_for_selector("#edge-list button")
    assert tab.is_hidden("#suggestions")


# Small and visible


@pytest.mark.parametrize("width", [390, 1440])
def test_the_start_needs_no_sideways_scrolling(open_tab: OpenTab, width: int) -> None:
    tab = open_tab(viewport={"width": width, "height": 844})
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    assert tab.evaluate(IN_VIEW, "[data-example=hospital]")


def test_a_column_whose_name_has_two_lines_can_be_asked_about(open_tab: OpenTab, client: Client) -> None:
    tab = open_tab()
    table = linear_table(60, 3).set_axis(["dose\n(mg)", "age", "stay"], axis=1)
    resume(tab, client.answered_with(table, in_order([3.0, 2.0, 1.0], {(0, 1): 4.0, (1, 2): 4.0}, -9.0)))
    click_node(tab, "dose\n(mg)")
    click_node(tab, "stay")
    tab.wait_for_selector("#pair-answer .answers")
    tab.click("#rank")
    tab.wait_for_selector(".ranking")
    assert tab.is_hidden("#trouble")


@pytest.mark.parametrize("width", [360, 390, 1024, 1280])
def test_menus_are_within_the_window(open_tab: OpenTab, table: pd.DataFrame, width: int) -> None:
    tab = open_tab(viewport={"width": width, "height": 650})
    with_graph(tab, table)
    tab.fill("#search", "age")
    tab.press("#search", "Enter")  # now there are more controls in the row
    for menu in ("#choices", "#downloads"):
        tab.click(f"{menu} > summary")
        box = tab.locator(f"{menu} .menu-items").bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
        assert width < 1000 or box["y"] + box["height"] <= 650  # a phone scrolls the whole page
        tab.keyboard.press("Escape")


def test_the_graph_stays_in_view_while_sentences_around_it_come_and_go(open_tab: OpenTab, table: pd.DataFrame) -> None:
    tab = open_tab(viewport={"width": 1280, "height": 700})
    with_graph(tab, table)
    tab.wait_for_selector("#graph:not(.unplaced)")
    tab.wait_for_timeout(500)
    inside = """() => { const { cy } = document.getElementById('graph')._cyreg;
        const { y1, y2 } = cy.elements().renderedBoundingBox();
        return y1 >= 0 && y2 <= cy.container().clientHeight; }"""
    assert tab.evaluate(inside)
    tab.click("#findings-box > summary")
    until(tab, inside)
    tab.mouse.move(300, 500)
    tab.mouse.wheel(0, -300)  # a person looks closer
    tab.wait_for_timeout(300)
    zoom = "document.getElementById('graph')._cyreg.cy.zoom()"
    closer = tab.evaluate(zoom)
    tab.click("#findings-box > summary")
    tab.wait_for_timeout(300)
    assert tab.evaluate(zoom) == closer


def test_columns_may_have_the_names_of_what_every_object_has(open_tab: OpenTab) -> None:
    tab = open_tab()
    frame = linear_table(80, 4).set_axis(["constructor", "__proto__", "toString", "hasOwnProperty"], axis=1)
    frame["__proto__"] = np.random.default_rng(0).choice(["low", "high", "middle"], 80)
    drop_in(tab, frame)
    tab.wait_for_selector("[data-kind-of='__proto__']", state="attached")
    if not tab.is_visible("#columns"):
        tab.click("#columns-panel > summary")
    tab.select_option("[data-kind-of='__proto__']", "ordered")
    tab.wait_for_selector("[data-moved='__proto__']")
    tab.click("#read-again")
    tab.wait_for_selector("#edge-list button, #graph canvas")
    assert variables(tab) == ["constructor", "__proto__", "toString", "hasOwnProperty"]
    tab.fill("#search", "constructor")
    tab.press("#search", "Enter")
    assert "a number, as detected" in tab.inner_text("#selection p >> nth=0")


def test_the_edge_list_is_sorted_by_what_it_shows(open_tab: OpenTab) -> None:
    tab = open_tab()
    with_graph(tab, linear_table(200, 8))
    cells = "(all, index) => all.map(row => row.children[index].textContent)"
    for column, title in ((1, "Prob."), (2, "Adjacent")):
        if column > 1:
            tab.click(f"#edge-box thead button:has-text('{title}')")
        numbers = [float(each) for each in tab.eval_on_selector_all("#edge-list tr", cells, column)]
        assert numbers == sorted(numbers, reverse=True)
    tab.click("#edge-box thead button:has-text('Edge')")
    names = tab.eval_on_selector_all("#edge-list tr", cells, 0)
    assert names == sorted(names)
    assert tab.get_attribute("#edge-box thead th:first-child", "aria-sort") == "ascending"


def test_the_three_bars_of_an_edge_sum_to_one(open_tab: OpenTab, table: pd.DataFrame) -> None:
    tab = open_tab()
    for source, target in with_graph(tab, table):
        tab.click(f"#edge-list button[data-source='{source}'][data-target='{target}']")
        tab.wait_for_selector(f"#selection h3 >> text={source} → {target}")
        shown = tab.eval_on_selector_all("#selection .bars:not(.apart) .number", "all => all.map(e => e.textContent)")
        assert len(shown) == 3
        assert sum(round(100 * float(each)) for each in shown) == 100


def test_another_rule_keeps_the_threshold(open_tab: OpenTab, table: pd.DataFrame) -> None:
    tab = open_tab()
    with_graph(tab, table)
    slide = "slider => { slider.value = 0.7; slider.dispatchEvent(new Event('input')); }"
    tab.eval_on_selector("#threshold", slide)
    tab.wait_for_selector("#undo:enabled")
    tab.click("#choices > summary")
    tab.select_option("#rule", "shd")
    until(tab, "() => document.getElementById('threshold').disabled")
    tab.select_option("#rule", "map")
    until(tab, "() => !document.getElementById('threshold').disabled")
    assert tab.inner_text("#threshold-value") == "0.70"


def test_a_refused_statement_leaves_undo_and_redo_as_they_were(open_tab: OpenTab, table: pd.DataFrame) -> None:
    tab = open_tab()
    _, target = with_graph(tab, table)[0]
    tab.click("#edge-list tr:first-child button")
    tab.click("#selection button:has-text('Require')")
    tab.wait_for_selector("#selection button:has-text('Take back')")
    tab.click("#undo")
    tab.wait_for_selector("#redo:enabled")
    tab.click("#tiers-panel > summary")
    tab.route("**/graph", lambda route: route.fulfill(status=400, json={"message": "No."}))
    tab.select_option(f"select[aria-label='Tier of {target}']", label="1")
    tab.wait_for_selector("#trouble >> text=No.")
    tab.unroute("**/graph")
    assert tab.is_disabled("#undo")
    assert tab.is_enabled("#redo")
    tab.click("#redo")
    tab.wait_for_selector("#selection button:has-text('Take back')")


def test_on_paper_there_are_no_controls_and_every_edge(open_tab: OpenTab, table: pd.DataFrame) -> None:
    tab = open_tab()
    edges = with_graph(tab, table)
    tab.emulate_media(media="print")
    assert not tab.is_visible("#actions")
    assert not tab.is_visible("#threshold")
    assert tab.is_visible("#edge-box thead >> text=Prob.")
    assert not tab.is_visible("#series-panel")
    for source, target in edges:
        assert tab.is_visible(f"#edge-list button[data-source='{source}'][data-target='{target}']")


# Work that lasts


def test_the_address_names_the_session_and_back_returns_to_it(open_tab: OpenTab, table: pd.DataFrame) -> None:
    tab = open_tab()
    before = with_graph(tab, table)
    first = session_of(tab)
    drop_in(tab, linear_table(60, 4))
    tab.click("#confirm-no")
    assert session_of(tab) == first
    drop_in(tab, linear_table(60, 3))
    tab.click("#confirm-yes")
    until(tab, "() => document.getElementById('trust-table').textContent.includes('3 variables')")
    tab.go_back()
    until(tab, "() => document.getElementById('trust-table').textContent.includes('6 variables')")
    tab.wait_for_selector("#edge-list button")
    assert shown_edges(tab) == before


def test_a_table_is_deleted_after_a_question(open_tab: OpenTab, client: Client, table: pd.DataFrame) -> None:
    tab = open_tab()
    with_graph(tab, table)
    session = session_of(tab)
    tab.click("#findings-box > summary")
    tab.click("#delete")
    tab.click("#confirm-no")
    assert client.page.sessions.has(session)
    tab.click("#delete")
    tab.click("#confirm-yes")
    tab.wait_for_selector("#start >> visible=true")
    assert not client.page.sessions.has(session)


def test_two_tabs_do_not_undo_each_other_silently(open_tab: OpenTab, table: pd.DataFrame) -> None:
    mine = open_tab()
    before = with_graph(mine, table)
    yours = open_tab()
    resume(yours, session_of(mine))
    mine.click("#edge-list tr:first-child button")
    mine.click("#selection button:has-text('Forbid')")
    until(mine, EDGE_IS_GONE, list(before[0]))
    yours.click("#edge-list tr:nth-child(2) button")
    yours.click("#selection button:has-text('Require')")
    yours.wait_for_selector("#trouble >> text=changed in another tab")
    until(yours, EDGE_IS_GONE, list(before[0]))  # it shows what the other has said
    yours.click("#selection button:has-text('Require')")
    yours.wait_for_selector("#selection button:has-text('Take back')")
    assert yours.locator("#statement-list button").count() == 2


def test_a_work_file_that_is_dropped_brings_everything_back(
    open_tab: OpenTab, table: pd.DataFrame, tmp_path: Path
) -> None:
    tab = open_tab()
    before = with_graph(tab, table)
    tab.click("#edge-list tr:first-child button")
    tab.click("#selection button:has-text('Forbid')")
    until(tab, EDGE_IS_GONE, list(before[0]))
    argued = shown_edges(tab)
    tab.click("#downloads > summary")
    with tab.expect_download() as download:
        tab.click("[data-file='work.causal']")
    download.value.save_as(tmp_path / "work.causal")
    other = open_tab()
    drop = """async ([name, content]) => {
        const bytes = Uint8Array.from(atob(content), letter => letter.charCodeAt(0));
        const given = new DataTransfer();
        given.items.add(new File([bytes], name));
        document.body.dispatchEvent(new DragEvent('dragover', { dataTransfer: given, bubbles: true }));
        document.body.dispatchEvent(new DragEvent('drop', { dataTransfer: given, bubbles: true })); }"""
    content = base64.b64encode((tmp_path / "work.causal").read_bytes()).decode()
    other.evaluate(drop, ["work.causal", content])
    other.wait_for_selector("#edge-list button")
    assert shown_edges(other) == argued
    assert "is forbidden" in (other.text_content("#statement-list") or "")
    other.click("#statements-panel > summary")
    other.click("#statement-list button")
    until(other, EDGE_IS_THERE, list(before[0]))  # the distribution came along, not only the graph


def test_variables_without_edges_can_be_put_aside(open_tab: OpenTab, client: Client) -> None:
    tab = open_tab()
    resume(tab, client.answered_with(linear_table(60, 5), in_order([5.0, 4.0, 3.0, 2.0, 1.0], {(1, 2): 4.0}, -9.0)))
    shown = "document.getElementById('graph')._cyreg.cy.nodes(':visible').length"
    until(tab, f"() => {shown} === 5")
    tab.click("#choices > summary")
    tab.uncheck("#alone")
    until(tab, f"() => {shown} === 2")
    tab.check("#alone")
    until(tab, f"() => {shown} === 5")


def test_boxes_that_were_dragged_stay(open_tab: OpenTab, table: pd.DataFrame) -> None:
    tab = open_tab()
    with_graph(tab, table)
    tab.wait_for_timeout(500)
    place = """name => { const { cy } = document.getElementById('graph')._cyreg;
        return cy.nodes().filter(node => node.data('name') === name)[0].position(); }"""
    box = tab.locator("#graph").bounding_box()
    at = tab.evaluate(place.replace(".position()", ".renderedPosition()"), "age")
    assert box is not None
    tab.mouse.move(box["x"] + at["x"], box["y"] + at["y"])
    tab.mouse.down()
    tab.mouse.move(box["x"] + at["x"] + 90, box["y"] + at["y"] + 30, steps=4)
    tab.mouse.up()
    dragged = tab.evaluate(place, "age")
    tab.wait_for_selector("#tidy")
    tab.click("#edge-list tr:first-child button")
    tab.click("#selection button:has-text('Forbid')")
    tab.wait_for_selector("#undo:enabled")
    tab.wait_for_timeout(700)  # longer than the layout waits
    assert tab.evaluate(place, "age") == dragged
    tab.reload()
    tab.wait_for_selector("#tidy")
    assert tab.evaluate(place, "age") == dragged
    tab.click("#tidy")
    tab.wait_for_function(f"at => JSON.stringify(({place})('age')) !== JSON.stringify(at)", arg=dragged)
    assert tab.is_hidden("#tidy")


def test_a_variable_and_its_neighbors_can_be_looked_at_alone(open_tab: OpenTab, client: Client) -> None:
    tab = open_tab()
    resume(tab, with_100_variables(client))
    tab.wait_for_timeout(500)
    shown = "() => document.getElementById('graph')._cyreg.cy.nodes(':visible').length"
    assert tab.evaluate(shown) == 100
    tab.fill("#search", "v50")
    tab.press("#search", "Enter")
    counts = []
    for steps in ("1", "2", "3"):
        tab.select_option("#focus", steps)
        counts.append(tab.evaluate(shown))
    assert 1 < counts[0] < counts[1] < counts[2] < 100
    tab.select_option("#focus", "0")
    assert tab.evaluate(shown) == 100


BOXES = "document.getElementById('graph')._cyreg.cy.nodes('{}').map(node => node.data('name')).sort()"
DRAWN, CHOSEN, FOUND = (f"() => {BOXES.format(which)}" for which in ("", ":selected", ".found"))


def with_a_laboratory(client: Client, *laboratory: str) -> str:
    """A session with the graph age → each of the laboratory's values → stay, and bed without edges."""
    names = ["age", *laboratory, "stay", "bed"]
    end = len(names) - 2
    edges = {edge: 4.0 for value in range(1, end) for edge in ((0, value), (value, end))}
    table = linear_table(60, len(names)).set_axis(names, axis=1)
    return client.answered_with(table, in_order([float(-place) for place in range(len(names))], edges, -9.0))


def collapse(tab: Tab, pattern: str) -> None:
    tab.click("#choices > summary")
    tab.fill("#group-pattern", pattern)
    tab.click("#group-put")
    tab.click("#choices > summary")


def test_a_group_is_one_box_until_it_is_expanded(open_tab: OpenTab, client: Client) -> None:
    tab = open_tab()
    resume(tab, with_a_laboratory(client, "lab_a", "lab_b", "lab_c"))
    listed = shown_edges(tab)
    everything = tab.evaluate(DRAWN)
    tab.click("#edge-list button[data-source='age'][data-target='lab_b']")
    tab.wait_for_selector("#selection h3 >> text=age → lab_b")
    assert "lab_*" in tab.eval_on_selector_all("#group-names option", "all => all.map(e => e.value)")
    collapse(tab, "lab_*")
    assert tab.evaluate(DRAWN) == ["age", "bed", "lab_* (3)", "stay"]
    marked = "document.getElementById('graph')._cyreg.cy.edges(':selected').map(edge => edge.target().data('name'))"
    assert tab.evaluate(marked) == ["lab_* (3)"]
    assert shown_edges(tab) == listed
    assert tab.is_visible("#legend-group")
    tab.reload()
    tab.wait_for_selector("#graph:not(.unplaced)")
    assert tab.evaluate(DRAWN) == ["age", "bed", "lab_* (3)", "stay"]
    click_node(tab, "lab_* (3)")
    until(tab, f"names => JSON.stringify(({DRAWN})()) === JSON.stringify(names)", everything)
    assert tab.input_value("#cause") == ""  # to look into a group is not to ask about it
    assert tab.is_hidden("#legend-group")
    collapse(tab, "stay")
    tab.wait_for_selector("#trouble >> text=Fewer than two")
    assert tab.evaluate(DRAWN) == everything


def test_groups_are_collapsed_and_expanded_by_keyboard(open_tab: OpenTab, client: Client) -> None:
    tab = open_tab()
    resume(tab, with_a_laboratory(client, "lab_a", "lab_b"))
    tab.focus("#choices > summary")
    tab.keyboard.press("Enter")
    for _ in range(10):
        if tab.evaluate("document.activeElement.id") != "group-pattern":
            tab.keyboard.press("Tab")
    tab.keyboard.type("lab_*")
    tab.keyboard.press("Enter")
    tab.wait_for_selector("#groups li")
    assert "lab_* (2)" in tab.evaluate(DRAWN)
    tab.focus("[aria-label='Expand lab_* (2)']")
    tab.keyboard.press("Enter")
    until(tab, "() => !document.querySelector('#groups li')")
    assert tab.get_attribute("#choices", "open") is not None


def test_a_group_may_be_called_as_a_variable_is_and_have_a_hostile_name(open_tab: OpenTab, client: Client) -> None:
    tab = open_tab()
    hostile = "<img src=x onerror=alert(1)>"
    names = [f"{hostile}1", f"{hostile}2", f"{hostile}* (2)"]
    resume(tab, with_a_laboratory(client, *names))
    collapse(tab, f"{hostile}1, {hostile}2")
    collapse(tab, "age, stay")
    drawn = tab.evaluate(DRAWN)
    assert drawn == sorted(["bed", names[2], f"{hostile}1, {hostile}2 (2)", "age, stay (2)"])
    tab.click("#choices > summary")
    assert f"{hostile}1, {hostile}2 (2)" in tab.inner_text("#groups")
    assert tab.locator("img, [onerror]").count() == 0


def test_a_variable_in_a_group_can_be_found_and_looked_at_with_its_neighbors(open_tab: OpenTab, client: Client) -> None:
    tab = open_tab()
    resume(tab, with_a_laboratory(client, "lab_a", "lab_b"))
    tab.fill("#search", "lab_a")
    tab.press("#search", "Enter")
    collapse(tab, "lab_*")
    tab.select_option("#focus", "1")
    until(tab, f"names => JSON.stringify(({DRAWN})()) === JSON.stringify(names)", ["age", "lab_* (2)", "stay"])
    collapse(tab, "age, stay")  # a new group shows the whole graph
    until(tab, f"() => ({DRAWN})().length === 3")
    assert tab.input_value("#focus") == "0"
    tab.fill("#search", "lab_b")
    assert tab.evaluate(FOUND) == ["lab_* (2)"]
    tab.press("#search", "Enter")
    tab.wait_for_selector("#selection h3 >> text=lab_b")
    until(tab, f"() => JSON.stringify(({CHOSEN})()) === '[\"lab_b\"]'")


def test_a_graph_without_edges_and_without_variables_that_lack_them_is_empty(open_tab: OpenTab, client: Client) -> None:
    tab = open_tab()
    key = client.answered_with(linear_table(60, 3), in_order([3.0, 2.0, 1.0], {}, -9.0))
    tab.evaluate("key => { location.hash = `session=${key}`; }", key)
    tab.wait_for_selector("#graph:not(.unplaced)")
    tab.click("#choices > summary")
    tab.uncheck("#alone")
    until(tab, f"() => ({DRAWN})().length === 0")
    tab.check("#alone")
    until(tab, f"() => ({DRAWN})().length === 3")
    assert tab.is_hidden("#trouble")


def test_tiers_are_filled_by_pattern(open_tab: OpenTab, client: Client) -> None:
    tab = open_tab()
    with_graph(tab, linear_table(60, 12))
    tab.click("#tiers-panel > summary")
    tab.fill("#tier-pattern", "v1*, V2")
    tab.click("#tier-put")
    tab.wait_for_selector("#statement-list li >> text=Tier 1: v1, v2, v10, v11, v12", state="attached")
    tab.fill("#tier-pattern", "nobody")
    tab.click("#tier-put")
    tab.wait_for_selector("#trouble >> text=No variable has such a name")


def test_a_table_is_read_as_a_time_series(open_tab: OpenTab) -> None:
    tab = open_tab()
    drop_in(tab, load_example("greenhouse"))
    tab.locator("#series-panel summary").click()
    tab.select_option("#series-time", "day")
    tab.fill("#series-lags", "2")
    tab.click("#series-read")
    tab.wait_for_selector("#series-edges table, #series-edges p")
    assert tab.locator("#series-summary img, #series-window img").count() == 2
    assert tab.evaluate("[...document.querySelectorAll('#series img')].every((image) => image.naturalWidth > 100)")
    tab.select_option("#series-cause", "watering")
    tab.select_option("#series-effect", "soil")
    tab.click("#series-ask")
    tab.wait_for_selector("#series-curve img")
    assert "If watering is raised once by 1" in tab.inner_text("#series-curve pre")
    tab.click("#close-series")
    assert tab.locator("#work").is_visible()
