"""The widget in a real browser, with the real Python behind it; the notebook between the two is a few lines here."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("anywidget", reason="the widget needs the extra 'notebook'")
pytest.importorskip("pydantic", reason="the widget needs the extra 'notebook'")

from causal_arrow import Arrow, ArrowWarning, Discovery, discover, explore, load_example
from causal_arrow.errors import ConfigurationError, KnowledgeError
from causal_arrow.notebook._widget import GraphWidget, script, style

if TYPE_CHECKING:
    from playwright.sync_api import Page as Tab

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
SYNCED = ("graph", "places", "answer", "trouble", "can_undo", "selected", "wish")
HOST = """
async ([code, style, state]) => {
  document.head.append(Object.assign(document.createElement("style"), { textContent: style }));
  const heard = new Map(), dirty = new Set();
  const fire = (name) => (heard.get(`change:${name}`) ?? []).forEach((listener) => listener());
  window.model = {
    get: (name) => state[name],
    set: (name, value) => { state[name] = value; dirty.add(name); },
    save_changes: async () => {
      const changes = JSON.stringify(Object.fromEntries([...dirty].map((name) => [name, state[name]])));
      dirty.clear();
      model.receive(await window.toPython(changes));
    },
    receive: (text) => {
      const changes = JSON.parse(text);
      Object.assign(state, changes);
      Object.keys(changes).forEach(fire);
    },
    on: (event, listener) => heard.set(event, [...(heard.get(event) ?? []), listener]),
    off: (event, listener) => heard.set(event, (heard.get(event) ?? []).filter((each) => each !== listener)),
  };
  const { default: widget } = await import(URL.createObjectURL(new Blob([code], { type: "text/javascript" })));
  const el = document.createElement("div");
  window.stop = widget.render({ model, el });
  await new Promise(requestAnimationFrame);  // notebooks give a widget its place later
  document.body.append(el);
}
"""


@pytest.fixture(scope="module")
def found() -> Discovery:
    return discover(load_example("hospital"))


class Notebook:
    """A widget and the tab that shows it, in step."""

    def __init__(self, tab: Tab, widget: GraphWidget) -> None:
        self.tab, self.widget, self.changed = tab, widget, {}  # type: ignore[var-annotated]
        widget.observe(lambda change: self.changed.update({change["name"]: change["new"]}), SYNCED)
        tab.expose_function("toPython", self.from_browser)
        state = {name: getattr(widget, name) for name in SYNCED}
        tab.evaluate(HOST, [script(), style(), state])
        tab.wait_for_selector(".causal-arrow-widget canvas")

    def from_browser(self, text: str) -> str:
        for name, value in json.loads(text).items():
            setattr(self.widget, name, value)
        return self._news()

    def to_browser(self) -> None:
        """Send what Python has changed."""
        self.tab.evaluate("news => model.receive(news)", self._news())

    def _news(self) -> str:
        news, self.changed = json.dumps(self.changed), {}
        return news

    def press(self, name: str) -> None:
        self.tab.get_by_role("button", name=name, exact=True).click()

    def choose(self, *names: str) -> None:
        self.widget.selected = list(names)
        self.to_browser()

    def see(self, words: str) -> None:
        self.tab.get_by_text(words).first.wait_for()


@pytest.fixture
def notebook(found: Discovery) -> Iterator[Notebook]:
    pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("there is no chromium: `make chromium` installs Debian's")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--headless", "--no-sandbox", "--disable-gpu"])
        tab = browser.new_page(reduced_motion="reduce")
        tab.set_default_timeout(30_000)
        complaints: list[str] = []
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        tab.on("console", lambda message: message.type == "error" and complaints.append(message.text))
        tab.on("request", lambda request: request.url.startswith("blob:") or complaints.append(request.url))
        yield Notebook(tab, GraphWidget(found))
        tab.evaluate("stop()")
        browser.close()
    assert complaints == []


def test_a_person_chooses_requires_forbids_asks_and_undoes(notebook: Notebook, found: Discovery) -> None:
    tab, widget = notebook.tab, notebook.widget
    ratio = tab.evaluate("[...document.querySelectorAll('canvas')].at(-1).getBoundingClientRect().height")
    assert ratio > 300
    notebook.see("Choose an edge or a variable.")

    notebook.choose("drug")
    notebook.press("It causes nothing")
    notebook.see("drug causes nothing here")
    assert widget.found.answer.knowledge.leaves == ("drug",)
    assert not widget.found.answer.adjacency[found.answer.index_of("drug")].any()

    notebook.press("Undo")
    tab.get_by_text("drug causes nothing here").wait_for(state="detached")
    assert widget.found is found

    notebook.choose("day3", "stay")
    notebook.see("day3 → stay")
    notebook.press("Forbid day3 → stay")
    notebook.see("day3 → stay is forbidden")
    assert ("day3", "stay") not in [(edge.source, edge.target) for edge in widget.found.answer.edges]
    notebook.press("Require stay → day3")
    notebook.see("stay → day3 is required")
    assert widget.found.answer.knowledge.required == (("stay", "day3"),)
    tab.get_by_role("button", name="×").click()
    tab.get_by_text("stay → day3 is required").wait_for(state="detached")
    assert widget.found.answer.knowledge.required == ()

    tab.get_by_label("Cause", exact=True).select_option("drug")
    tab.get_by_label("Effect", exact=True).select_option("stay")
    notebook.press("Ask")
    notebook.see("stay changes by")
    assert widget.effect is not None
    assert widget.effect.median == widget.found.effect("drug", "stay").median


def test_a_click_on_a_variable_chooses_it_in_python(notebook: Notebook) -> None:
    box = notebook.tab.locator(".causal-arrow-widget .graph").bounding_box()
    assert box is not None
    at = notebook.tab.evaluate(
        "() => { const cy = document.querySelector('.graph')._cyreg.cy;"
        " return cy.nodes().filter((node) => node.data('name') === 'ward').renderedPosition(); }"
    )
    notebook.tab.mouse.click(box["x"] + at["x"], box["y"] + at["y"])
    notebook.tab.get_by_role("button", name="Nothing causes it").wait_for()
    assert notebook.widget.selected == ["ward"]


def test_the_picture_follows_python_and_shows_what_is_wrong(notebook: Notebook) -> None:
    notebook.widget.refine(roots=["age"], beliefs={"root smoker": 0.8})
    notebook.to_browser()
    notebook.see("Nothing here causes age")
    notebook.see("Believed: root smoker (0.8)")
    notebook.choose("age", "stay")
    notebook.press("Require stay → age")
    notebook.see("The edge 'stay' -> 'age' is required, but 'age' is a root")
    assert notebook.widget.found.answer.knowledge.required == ()


@pytest.mark.parametrize("dark", ['body.dataset.jpThemeLight = "false"', 'body.className = "dark"'])
def test_the_colors_are_those_of_the_notebook_and_follow_it(notebook: Notebook, dark: str) -> None:
    colors = """() => {
      const { cy } = document.querySelector('.graph')._cyreg;
      const panel = getComputedStyle(document.querySelector('.causal-arrow-widget'));
      return [cy.nodes().style('color'), panel.color, panel.backgroundColor];
    }"""
    light = notebook.tab.evaluate(colors)
    assert light[1:] == ["rgb(20, 32, 46)", "rgb(255, 255, 255)"]
    notebook.tab.emulate_media(color_scheme="dark")  # the browser has no say
    assert notebook.tab.evaluate(colors) == light
    notebook.tab.evaluate(f"document.{dark}")
    notebook.tab.wait_for_timeout(300)
    assert notebook.tab.evaluate(colors) == ["rgb(232,237,245)", "rgb(232, 237, 245)", "rgb(16, 22, 31)"]


def test_wishes_that_make_no_sense_change_nothing(found: Discovery) -> None:
    widget = GraphWidget(found)
    odd: list[dict[str, Any]] = [{"argument": 5}, {"argument": {"knowledge": {"roots": 3}}}, {"effect": [1]}, {"x": 1}]
    for number, wish in enumerate([*odd, {"effect": ["drug", "nobody"]}, {"undo": True}]):
        widget.wish = {**wish, "number": number}
        assert widget.found is found
    with pytest.raises(KnowledgeError):
        widget.refine(roots=["nobody"])
    with pytest.raises(ConfigurationError, match="Expected the discovery of a table, got int"):
        widget.found = 3  # type: ignore[assignment]


def test_a_front_end_without_widgets_gets_the_picture(found: Discovery, monkeypatch: pytest.MonkeyPatch) -> None:
    data, _ = GraphWidget(found)._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in data
    assert "<svg" in data["text/html"]
    assert isinstance(explore(Arrow().fit(load_example("hospital"))), GraphWidget)  # type: ignore[arg-type]
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.warns(ArrowWarning, match=re.escape('pip install "causal-arrow[notebook]"')):
        assert explore(found) is found
    with pytest.raises(ConfigurationError, match="Expected the discovery of a table"):
        explore(3)  # type: ignore[arg-type]


def test_the_widget_is_one_module_without_imports() -> None:
    assert not re.search(r"(?m)^\s*(import|export) (?!default \{ render \})", script())
    assert style().count(":root") == 0


@pytest.mark.parametrize(
    "ask", ["summary", "effect", "effects", "experiment", "falsify", "opinion", "report", "stability"]
)
def test_every_answer_shows_itself(found: Discovery, ask: str) -> None:
    answers = {
        "summary": lambda: found,
        "effect": lambda: found.effect("drug", "stay", n_graphs=50),
        "effects": lambda: found.effects("stay", n_graphs=50),
        "experiment": lambda: found.next_experiment("stay", n_graphs=50),
        "falsify": lambda: found.falsify(permutations=5),
        "opinion": lambda: found.second_opinion(["flop"]),
        "report": lambda: found.report,
        "stability": lambda: found.stability(n_resamples=2, progress=False),
    }
    answer = answers[ask]()
    page = answer._repr_html_()
    assert page.startswith("<div>")
    assert page.endswith("</div>")
    assert not re.search(r"\w=|object at 0x|array\(", repr(answer).partition("\n")[0])  # no fields, no addresses
