"""The page in a real browser: what a person sees and does, and what a hostile table cannot do."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

pytest.importorskip("fastapi", reason="the page needs the extra 'web'")
pytest.importorskip("playwright.sync_api", reason="the tests of the page need playwright")

from playwright.sync_api import sync_playwright

from causal_arrow.discovery.pipeline import Settings
from causal_arrow.web.app import Page
from causal_arrow.web.limits import Limits
from web_server import Client, linear_table, serving

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


OpenTab = Callable[..., "Tab"]


@pytest.fixture
def open_tab(browser: Browser, client: Client) -> Iterator[OpenTab]:
    """Opens the page in a tab of its own, which must stay without errors and without requests to elsewhere."""
    complaints: list[str] = []
    contexts = []

    def open_tab(**settings: Any) -> Tab:
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
                request.url.startswith((client.url, "blob:", "data:")) or complaints.append(f"asked for {request.url}")
            ),
        )
        tab.goto(client.url)
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

    tab.click("#edge-list li:first-child button")
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
    tab.click("#edge-list li:first-child button")
    tab.click("#selection button:has-text('Reverse')")
    until(tab, EDGE_IS_THERE, [target, source])
    tab.click("#selection button:has-text('Take back')")
    until(tab, EDGE_IS_THERE, [source, target])


def test_the_slider_shows_the_edges_of_its_threshold(open_tab: OpenTab, client: Client) -> None:
    tab = open_tab()
    with_graph(tab, linear_table(60, 12))
    found = client.page.sessions.get(tab.evaluate("sessionStorage.getItem('causal-arrow-session')")).found
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
    assert tab.locator("#cause option").count() == 5


def test_a_table_with_gaps_and_words_is_read_after_one_decision(open_tab: OpenTab, table: pd.DataFrame) -> None:
    table["name"] = [f"person {place}" for place in range(len(table))]
    table.loc[3, "d"] = None
    tab = open_tab()
    drop_in(tab, table)
    tab.click("#findings button:has-text('Leave out incomplete observations')")
    tab.wait_for_selector("#edge-list button")
    assert "119 observations of 6 variables, 1 column left out" in tab.inner_text("#trust-table")


def test_questions_about_two_variables_are_answered(open_tab: OpenTab, table: pd.DataFrame) -> None:
    tab = open_tab()
    with_graph(tab, table)
    tab.click("#pair-panel > summary")
    tab.select_option("#cause", "age")
    tab.select_option("#effect", "outcome")
    tab.click("#ask")
    tab.wait_for_selector("#pair-answer p >> text=Does age cause outcome")
    tab.select_option("#effect", "age")
    tab.click("#ask")
    tab.wait_for_selector("#trouble >> text=two different variables")


def test_downloads_hold_the_graph_as_it_was_argued(open_tab: OpenTab, table: pd.DataFrame, tmp_path: Path) -> None:
    tab = open_tab()
    with_graph(tab, table)
    tab.click("#edge-list li:first-child button")
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


HOSTILE = ["<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "'\"><svg onload=alert(1)>", "${alert(1)}"]


def test_hostile_names_and_cells_are_shown_as_text(open_tab: OpenTab) -> None:
    table = linear_table(80, 4).set_axis(HOSTILE, axis=1)
    table["<b onmouseover=alert(2)>kind</b>"] = ["<img src=y onerror=alert(3)>", "b"] * 40
    tab = open_tab()
    drop_in(tab, table, "<img src=z onerror=alert(4)>.csv")
    tab.wait_for_selector("#findings li >> text=onerror=alert(3)")
    tab.click("#findings button:has-text('Leave out the column')")
    tab.wait_for_selector("#edge-list button")
    for place in range(len(shown_edges(tab))):
        tab.click(f"#edge-list li:nth-child({place + 1}) button")
        tab.wait_for_selector("#selection h3")
    tab.click("#selection button:has-text('Require')")
    tab.wait_for_selector("#selection button:has-text('Take back')")
    assert tab.inner_text("#table-name") == "<img src=z onerror=alert(4)>.csv"
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
    tab.click("#edge-list li:first-child button")
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
    mine.click("#edge-list li:first-child button")
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
        """() => [...document.querySelectorAll('button, select, input, meter, svg, [role=img]')]
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
    tab.click("#edge-list li:first-child button")
    tab.wait_for_selector("#selection .plot")
    assert tab.evaluate("document.documentElement.scrollWidth") <= 360
    colors = tab.evaluate(
        """() => Object.fromEntries(['page', 'panel', 'node', 'text', 'quiet', 'accent', 'problem', 'warning',
            'on-accent'].map(n => [n, getComputedStyle(document.documentElement).getPropertyValue('--' + n).trim()]))"""
    )
    for text in ("text", "quiet", "problem", "warning"):
        for background in ("page", "panel", "node"):
            assert contrast(colors[text], colors[background]) >= 4.5, (text, background)
    assert contrast(colors["accent"], colors["page"]) >= 3


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
        tab.reload()  # a change behind # alone does not load the page again
        tab.wait_for_selector("#examples button")
        assert "token" not in tab.url
        with_graph(tab, table)
        tab.reload()
        tab.wait_for_selector("#edge-list button")
        tab.context.close()
