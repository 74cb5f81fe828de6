"""GraphWidget: a discovery whose graph can be argued with in a notebook. Python has the state."""

from __future__ import annotations

import warnings
from typing import Any

import anywidget
import traitlets
from pydantic import ValidationError

from causal_arrow.discovery.discovery import Discovery
from causal_arrow.discovery.effects.effect import Effect
from causal_arrow.errors import ArrowError, ConfigurationError
from causal_arrow.notebook.bundle import script, style
from causal_arrow.web.messages import Argument
from causal_arrow.web.views import argued, graph_of, places_of

MAX_UNDO = 100


class GraphWidget(anywidget.AnyWidget):
    """The graph of a discovery as a widget. `found` is the discovery as it was argued so far.

    Parameters
    ----------
    found
        The discovery of a table.

    Examples
    --------
    >>> from causal_arrow import discover, load_example
    >>> from causal_arrow.notebook.widget import GraphWidget
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
        """Refine the discovery, as `Discovery.refine` does, and show the graph.

        Parameters
        ----------
        **changes
            Arguments of `Discovery.refine`.

        Examples
        --------
        >>> widget.refine(forbidden=["day3 -> stay"])
        """
        self.found = self._found.refine(**changes)

    def undo(self) -> None:
        """Go back one step.

        Examples
        --------
        >>> widget.undo()
        """
        if self._before:
            *self._before, found = self._before
            self._show(found)

    def _shown(self) -> dict[str, Any]:
        answer = self._found.answer
        return {
            "graph": graph_of(answer).model_dump(),
            "places": places_of(answer.order, [(each.source, each.target) for each in answer.edges]).model_dump(),
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
