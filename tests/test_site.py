"""The built documents in a real browser, as a reader has them: wide and narrow, light and dark.

`make docs-test` builds the site and runs this. Pages are found by themselves, from the map of the site.
"""

from __future__ import annotations

import functools
import http.server
import os
import re
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

pytest.importorskip("playwright.sync_api", reason="the tests of the site need playwright")

from playwright.sync_api import sync_playwright

if TYPE_CHECKING:
    from playwright.sync_api import Page as Tab

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
SITE = Path(os.environ.get("DOCS_SITE", "/nowhere"))
WIDE, NARROW = 1440, 390
MIN_CONTRAST = 4.5  # of the Web Content Accessibility Guidelines, level AA

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium: `make chromium` installs Debian's"),
    pytest.mark.skipif(not SITE.is_dir(), reason="the site is not built: `make docs-test` builds and tests it"),
]


def pages() -> list[str]:
    """Every page of the site, relative to it."""
    found = sorted(str(path.parent.relative_to(SITE)) for path in SITE.rglob("index.html"))
    return ["" if page == "." else f"{page}/" for page in found]


PAGES = pages() if SITE.is_dir() else ["no site"]


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files and does not talk about it."""

    def log_message(self, format: str, *arguments: Any) -> None:
        pass


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    handler = functools.partial(Quiet, directory=str(SITE))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


class Visit:
    """A tab that remembers what went wrong and what it asked for."""

    def __init__(self, tab: Tab, address: str) -> None:
        self.tab = tab
        self.address = address
        self.requests: list[str] = []
        self.errors: list[str] = []
        self.seen: dict[str, Look] = {}
        tab.on("request", lambda request: self.requests.append(request.url))
        tab.on("pageerror", lambda error: self.errors.append(str(error)))
        tab.on("requestfailed", lambda request: self.errors.append(f"no answer from {request.url}"))
        tab.on("console", lambda said: self.errors.append(said.text) if said.type in ("error", "warning") else None)

    def go(self, page: str) -> None:
        self.requests.clear()
        self.errors.clear()
        self.tab.set_viewport_size({"width": WIDE, "height": 900})
        self.tab.goto(self.address + page, wait_until="load")
        self.tab.wait_for_selector("article")

    def look(self, page: str) -> Look:
        """What there is to see of a page, wide, narrow, light and dark; it is visited once."""
        if page not in self.seen:
            self.go(page)
            self.tab.wait_for_timeout(50)
            overflowing = self.tab.evaluate(OVERFLOWING)
            faint = self.tab.evaluate(FAINT, MIN_CONTRAST)
            self.tab.add_style_tag(content="* { transition: none !important; }")
            self.tab.evaluate("document.body.dataset.mdColorScheme = 'slate'")
            faint_in_the_dark = self.tab.evaluate(FAINT, MIN_CONTRAST)
            self.tab.set_viewport_size({"width": NARROW, "height": 900})
            self.seen[page] = Look(
                overflowing,
                faint,
                faint_in_the_dark,
                self.tab.evaluate("document.documentElement.scrollWidth"),
                self.tab.evaluate(BEYOND),
                list(self.requests),
                list(self.errors),
            )
        return self.seen[page]


class Look(NamedTuple):
    """What was seen on a page."""

    overflowing: list[str]
    faint: list[str]
    faint_in_the_dark: list[str]
    narrow_width: int
    beyond: list[str]
    requests: list[str]
    errors: list[str]


@pytest.fixture(scope="module")
def visit(browser: Any, address: str) -> Iterator[Visit]:
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    yield Visit(context.new_page(), address)
    context.close()


# What is wider than its column, or has to be scrolled sideways, in a few words each.
OVERFLOWING = """() => {
  const column = document.querySelector("article").getBoundingClientRect();
  const seen = [];
  const boxes = "article :is(table, pre, code, svg, img, figure, .notebook-output, .md-typeset__scrollwrap)";
  for (const element of document.querySelectorAll(boxes)) {
    const box = element.getBoundingClientRect();
    if (!box.width || element.closest("button, .md-clipboard, .headerlink, .twemoji, .tabbed-labels")) continue;
    // The frames of inline code and of tables may hang out a little.
    const framed = element.matches(".md-typeset__scrollwrap, code:not(pre code)");
    const room = framed ? 20 : 1;
    const text = (element.textContent || element.alt || "").trim().replace(/\\s+/g, " ").slice(0, 60);
    const words = `${element.tagName.toLowerCase()} "${text}"`;
    if (box.right > column.right + room || box.left < column.left - room) seen.push(`${words} leaves its column`);
    const style = getComputedStyle(element);
    const scrolls = ["auto", "scroll", "hidden"].includes(style.overflowX);
    if (scrolls && element.scrollWidth > element.clientWidth + 1) seen.push(`${words} is clipped`);
  }
  return [...new Set(seen)];
}"""


# What is beyond the right end of a narrow screen, unless it scrolls by itself.
BEYOND = """() => [...document.querySelectorAll("article *")]
  .filter((element) => element.getBoundingClientRect().right > innerWidth + 1)
  .filter((element) => !element.closest("pre, .md-typeset__scrollwrap, .notebook-output, table"))
  .map((element) => element.outerHTML.slice(0, 100)).slice(0, 3)"""

# Texts that are hard to read, by the contrast of their color and the background behind them.
FAINT = """(least) => {
  const parse = (color) => (color.match(/[\\d.]+/g) || [0, 0, 0, 0]).map(Number);
  const over = ([r, g, b, a = 1], [R, G, B]) => [r * a + R * (1 - a), g * a + G * (1 - a), b * a + B * (1 - a)];
  const light = (color) => {
    const [r, g, b] = color.map((c) => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (one, other) => {
    const [dark, bright] = [light(one), light(other)].sort((x, y) => x - y);
    return (bright + 0.05) / (dark + 0.05);
  };
  const behind = (element) => {
    const layers = [];
    for (let up = element; up; up = up.parentElement) layers.push(parse(getComputedStyle(up).backgroundColor));
    return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255]);
  };
  // In a picture, the smallest filled shape around the middle of a text.
  const shape = (text) => {
    const box = text.getBoundingClientRect();
    const middle = new DOMPoint(box.x + box.width / 2, box.y + box.height / 2);
    const inside = (other) => other.isPointInFill(middle.matrixTransform(other.getScreenCTM().inverse()));
    const around = [...text.ownerSVGElement.querySelectorAll("rect, path, polygon")]
      .filter((other) => !other.closest("defs, marker, clipPath") && getComputedStyle(other).fill !== "none")
      .filter(inside)
      .map((other) => [other.getBoundingClientRect(), other])
      .sort(([a], [b]) => a.width * a.height - b.width * b.height);
    return around.length ? parse(getComputedStyle(around[0][1]).fill) : [0, 0, 0, 0];
  };
  const faint = new Set();
  for (const element of document.querySelectorAll("article :is(p, li, td, th, code, pre, h2, h3, text)")) {
    if (!element.textContent.trim() || element.closest(".md-clipboard, .headerlink, details:not([open])")) continue;
    const drawn = element.namespaceURI.endsWith("svg");
    const style = getComputedStyle(element);
    if (style.visibility === "hidden" || !element.getClientRects().length) continue;
    const below = drawn ? over(shape(element), behind(element)) : behind(element);
    const found = contrast(over(parse(drawn ? style.fill : style.color), below), below);
    if (found < least) faint.add(`${element.tagName} "${element.textContent.trim().slice(0, 40)}" ${found.toFixed(1)}`);
  }
  return [...faint].slice(0, 5);
}"""


@pytest.mark.parametrize("page", PAGES)
def test_nothing_is_wider_than_its_column_on_a_wide_screen(page: str, visit: Visit) -> None:
    overflowing = visit.look(page).overflowing
    assert not overflowing, "\n".join(overflowing)


@pytest.mark.parametrize("page", PAGES)
def test_no_page_scrolls_sideways_on_a_phone(page: str, visit: Visit) -> None:
    look = visit.look(page)
    assert look.narrow_width <= NARROW, f"{look.narrow_width} pixels: {look.beyond}"


@pytest.mark.parametrize("page", PAGES)
def test_nothing_is_asked_for_elsewhere_and_nothing_fails(page: str, visit: Visit) -> None:
    look = visit.look(page)
    assert not [url for url in look.requests if not url.startswith((visit.address, "data:", "blob:"))]
    assert not look.errors


@pytest.mark.parametrize("page", PAGES)
def test_text_and_the_names_in_pictures_can_be_read_by_day_and_by_night(page: str, visit: Visit) -> None:
    look = visit.look(page)
    assert not look.faint, "\n".join(look.faint)
    assert not look.faint_in_the_dark, "\n".join(look.faint_in_the_dark)


SOUGHT = {
    "an installation": ("get-started/install/",),
    "the first table": ("tutorials/first-table/",),
    "an effect": ("guides/effects/", "tutorials/from-graph-to-effect/"),
    "knowledge": ("guides/knowledge/",),
    "time series": ("guides/time-series/",),
    "limits": ("understand/limits/",),
    "evidence": ("evidence/",),
}
"""Subjects that newcomers look for, and the pages that have them."""
VISIBLE_LINKS = (
    """[...document.querySelectorAll("a[href]")].filter(a => a.checkVisibility()).map(a => a.href.split("#")[0])"""
)


def test_what_newcomers_look_for_is_at_most_two_clicks_away(visit: Visit) -> None:
    def linked(page: str) -> set[str]:
        visit.go(page)
        urls = visit.tab.evaluate(VISIBLE_LINKS)
        return {url.removeprefix(visit.address) for url in urls if url.startswith(visit.address)} & set(PAGES)

    first = linked("")
    reached = first.union(*(linked(page) for page in sorted(first)))
    assert not {what for what, where in SOUGHT.items() if not reached & set(where)}


def test_a_reader_who_prefers_dark_pages_gets_them(browser: Any, address: str) -> None:
    tab = browser.new_page(color_scheme="dark")
    tab.goto(address)
    assert tab.evaluate("document.body.dataset.mdColorScheme") == "slate"
    tab.close()


def with_pictures() -> list[str]:
    return [page for page in PAGES if SITE.is_dir() and "<figure" in (SITE / page / "index.html").read_text("utf-8")]


def test_pictures_follow_the_setting_of_the_page_and_not_that_of_the_machine(visit: Visit) -> None:
    page = with_pictures()[0]
    visit.go(page)
    fill = "getComputedStyle(document.querySelector('figure.picture svg text')).fill"
    by_day = visit.tab.evaluate(fill)
    visit.tab.evaluate("document.body.dataset.mdColorScheme = 'slate'")
    assert visit.tab.evaluate(fill) != by_day


def test_a_large_picture_opens_in_a_window_and_can_be_zoomed(visit: Visit) -> None:
    page = next(page for page in with_pictures() if "gallery" in page)
    visit.go(page)
    visit.tab.get_by_role("button", name="Enlarge this picture").last.click()
    window = visit.tab.locator("dialog.picture-window")
    window.wait_for(state="visible")
    letters = "document.querySelector('dialog svg text').getBoundingClientRect().height"
    before = visit.tab.evaluate(letters)
    for _ in range(4):
        window.get_by_role("button", name="Zoom in").click()
    assert visit.tab.evaluate(letters) > 3 * before
    window.get_by_role("button", name="Show the whole picture").click()
    assert visit.tab.evaluate(letters) == pytest.approx(before, rel=0.01)
    visit.tab.keyboard.press("Escape")
    window.wait_for(state="detached")


@pytest.mark.parametrize(
    ("words", "sensible"),
    [
        ("categorical", r"prepare|tables|glossary"),
        ("missing", r"prepare|tables|suites/missing"),
        ("cite", r"cite|faq"),
        ("posterior", r"probabilities|uncertainty|glossary|what-can-be-known"),
    ],
)
def test_search_finds_a_sensible_page_first(words: str, sensible: str, visit: Visit) -> None:
    visit.go("")
    visit.tab.locator(".md-search__input").click()
    visit.tab.locator(".md-search__input").press_sequentially(words)
    first = visit.tab.locator(".md-search-result__link").first
    first.wait_for(state="visible", timeout=15_000)
    visit.tab.wait_for_timeout(300)
    found = (first.get_attribute("href") or "").removeprefix(visit.address).partition("?")[0]
    assert re.search(sensible, found), f"{words!r} finds {found} first"


PROMPT = re.compile(r"(?:\$|>>>|\.\.\.) (.*)")


def commands_of(text: str) -> list[str]:
    """The lines behind prompts, and those that continue them after a backslash."""
    commands: list[str] = []
    continued = False
    for line in text.splitlines():
        prompt = PROMPT.match(line)
        if (prompt and prompt[1].strip()) or (continued and line.strip()):
            commands.append((prompt[1] if prompt else line).strip())
            continued = line.rstrip().endswith("\\")
        else:
            continued = False
    return commands


def blocks() -> list[tuple[str, int]]:
    """Every block of commands with prompts: its page, and its place among the page's blocks."""
    found = []
    for page in PAGES:
        text = (SITE / page / "index.html").read_text("utf-8") if SITE.is_dir() else ""
        codes = re.findall(r"<pre[^>]*>(?:<span></span>)?<code>(.*?)</code></pre>", text, re.DOTALL)
        found += [(page, place) for place, code in enumerate(codes) if 'class="gp"' in code]
    return found


def test_copy_buttons_copy_commands_without_prompts_and_without_what_they_print(visit: Visit) -> None:
    with_prompts = blocks()
    assert with_prompts
    for page in sorted({page for page, _ in with_prompts}):
        visit.go(page)
        shown = visit.tab.locator("article pre:has(code .gp):visible")
        for place in range(min(shown.count(), 3)):
            block = shown.nth(place)
            commands = commands_of(block.inner_text())
            block.hover()
            block.locator("xpath=..").locator("[data-md-type=copy], .md-clipboard").first.click()
            copied = visit.tab.evaluate("navigator.clipboard.readText()")
            assert [line.strip() for line in copied.splitlines() if line.strip()] == commands
