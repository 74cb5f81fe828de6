"""GraphWidget: a discovery whose graph can be argued with in a notebook. Python has the state."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import anywidget
import traitlets
from pydantic import ValidationError

from causal_arrow.discovery.discovery import Discovery
from causal_arrow.discovery.effects.effect import Effect
from causal_arrow.errors import ArrowError, ConfigurationError
from causal_arrow.web.graphs import argued, graph_of, places_of
from causal_arrow.web.messages import Argument

MAX_UNDO = 100

# The code and the style of the widget, joined from modules of the page and its own

HERE, PAGE = Path(__file__).parent, Path(__file__).parents[1] / "web" / "static"
JOINED = ("dom.js", "argument.js", "graph.js")
"""Modules of the page that the widget uses."""
DARK = ':is([data-jp-theme-light="false"], .dark, .vscode-dark, .vscode-high-contrast)'
"""The body of a dark Jupyter, marimo or VS Code, whatever the browser prefers."""
_STYLES = ((PAGE, "graph.css"), (HERE, "widget.css"))


def script() -> str:
    """The widget as one module: Cytoscape, the modules of the page that it uses, and itself."""
    library = (PAGE / "vendor" / "cytoscape.esm.min.js").read_text(encoding="utf-8")
    body, name = re.fullmatch(r"(?s)(.*)export\{(\w+) as default\};?\s*", library).groups()  # type: ignore[union-attr]
    parts = [f"const cytoscape = (() => {{\n{body}\nreturn {name};\n}})();"]
    for module in JOINED:
        text = (PAGE / module).read_text(encoding="utf-8")
        text = re.sub(r"(?m)^import [^;]*;\n", "", text)
        exported = re.findall(r"(?m)^export (?:async )?(?:const|function|class) (\w+)", text)
        text = re.sub(r"(?m)^export ", "", text)
        parts.append(
            f"const {{ {', '.join(exported)} }} = (() => {{\n{text}\nreturn {{ {', '.join(exported)} }};\n}})();"
        )
    return "\n".join([*parts, (HERE / "widget.js").read_text(encoding="utf-8")])


def style() -> str:
    """The colors of the page, for the widget alone, and its own style."""
    page = (PAGE / "style.css").read_text(encoding="utf-8")
    light, dark = re.findall(r":root (\{[^}]*\})", page[: page.index("* {")])
    colors = f".causal-arrow-widget {light}\n{DARK} .causal-arrow-widget {dark}"
    return "\n".join([colors, *((folder / name).read_text(encoding="utf-8") for folder, name in _STYLES)])


class GraphWidget(anywidget.AnyWidget):
    """The graph of a discovery as a widget. `found` is the discovery as it was argued so far.

    Parameters
    ----------
    found
        The discovery of a table.

    Examples
    --------
    >>> from causal_arrow import discover, load_example
    >>> from causal_arrow.notebook._widget import GraphWidget
    >>> widget = GraphWidget(discover(load_example("hospital")))
    >>> widget.refine(roots=["age"])  # the picture follows
    >>> widget.found.answer.knowledge.roots
    ('age',)
    """

    _esm = script()
    _css = style()
    graph = traitlets.Dict().tag(sync=True)
    places = traitlets.Dict().tag(sync=True)
    answer = traitlets.Dict().tag(sync=True)
    trouble = traitlets.Unicode("").tag(sync=True)
    can_undo = traitlets.Bool(False).tag(sync=True)
    selected = traitlets.List(traitlets.Unicode()).tag(sync=True)
    wish = traitlets.Dict().tag(sync=True)
    """The person's request: an argument, an effect, or to undo."""

    def __init__(self, found: Discovery) -> None:
        self._found = found
        self._before: list[Discovery] = []
        self.effect: Effect | None = None
        super().__init__(**self._shown())
        self.observe(self._grant, "wish")

    @property
    def found(self) -> Discovery:
        """The discovery as it was argued so far; assigning another one shows that."""
        return self._found

    @found.setter
    def found(self, found: Discovery) -> None:
        if not isinstance(found, Discovery):
            raise ConfigurationError(f"Expected the discovery of a table, got {type(found).__name__}.")
        self._before = [*self._before, self._found][-MAX_UNDO:]
        self._show(found)

    def refine(self, **changes: Any) -> None:
        """Refine the discovery, as `Discovery.refine` does, and show the graph."""
        self.found = self._found.refine(**changes)

    def undo(self) -> None:
        """Go back one step."""
        if self._before:
            *self._before, found = self._before
            self._show(found)

    def _shown(self) -> dict[str, Any]:
        answer = self._found.answer
        return {
            "graph": graph_of(answer),
            "places": places_of(answer.order, [(each.source, each.target) for each in answer.edges]),
            "answer": {},
            "trouble": "",
            "can_undo": bool(self._before),
        }

    def _show(self, found: Discovery) -> None:
        self._found, self.effect = found, None
        with self.hold_sync():
            for name, value in self._shown().items():
                setattr(self, name, value)

    def _grant(self, change: Any) -> None:
        """Do what the person asks for in the browser; what cannot be done is a sentence there."""
        wish = change["new"]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if "argument" in wish:
                    answer = argued(self._found.answer, Argument.model_validate(wish["argument"]))
                    self.found = self._found.with_answer(
                        answer, self._found.settings.changed(knowledge=answer.knowledge)
                    )
                elif "effect" in wish:
                    treatment, outcome = wish["effect"]
                    self.effect = self._found.effect(treatment, outcome)
                    self.answer = {"treatment": treatment, "outcome": outcome, "lines": list(self.effect.lines)}
                    self.trouble = ""
                elif "undo" in wish:
                    self.undo()
        except ArrowError as error:
            self.trouble = error.worded({})
        except (ValidationError, ValueError, TypeError):
            self.trouble = "This wish cannot be read."

    def _repr_mimebundle_(self, **options: Any) -> Any:
        """The widget; where there are none, the picture and the summary."""
        bundle = super()._repr_mimebundle_(**options)
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle or {}, {})
        return {**data, "text/html": self._found._repr_html_(), "text/plain": str(self._found)}, metadata
