"""The graph of the page in Jupyter, marimo and VS Code: choose, require, forbid, ask, in step with Python."""

from __future__ import annotations

import importlib.util
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from causal_arrow.discovery.discovery import Discovery
from causal_arrow.errors import ConfigurationError, warn

if TYPE_CHECKING:
    from causal_arrow.notebook.widget import GraphWidget

NEEDED = ("anywidget", "pydantic")
INSTALL = 'pip install "causal-arrow[notebook]"'
HERE, PAGE = Path(__file__).parent, Path(__file__).parents[1] / "web" / "static"
JOINED = ("dom.js", "argument.js", "graph.js")
"""Modules of the page that the widget uses."""


def explore(found: Discovery) -> GraphWidget | Discovery:
    """Show the graph of a discovery as a widget to argue with, in a notebook.

    Without the packages of a widget it is the discovery itself, which shows its picture, and an ArrowWarning says what
    to install.

    Parameters
    ----------
    found
        What `discover` returned, for a table.

    Examples
    --------
    >>> from causal_arrow import discover, explore, load_example
    >>> found = discover(load_example("hospital"))
    >>> shown = explore(found)  # the last line of a cell
    """
    found = getattr(found, "discovery_", found)
    if not isinstance(found, Discovery):
        raise ConfigurationError(f"Expected the discovery of a table, got {type(found).__name__}.")
    if missing := [name for name in NEEDED if importlib.util.find_spec(name) is None]:
        warn(f"The widget needs {' and '.join(missing)}: {INSTALL}. Here is the picture instead.")
        return found
    from causal_arrow.notebook.widget import GraphWidget

    return GraphWidget(found)


@cache
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


@cache
def style() -> str:
    """The colors of the page, for the widget alone, and its own style."""
    page = (PAGE / "style.css").read_text(encoding="utf-8")
    colors = page[: page.index("* {")].replace(":root", ".causal-arrow-widget")
    return "\n".join([colors, *((folder / name).read_text(encoding="utf-8") for folder, name in _STYLES)])


_STYLES = ((PAGE, "graph.css"), (HERE, "widget.css"))


def __getattr__(name: str) -> Any:
    if name == "GraphWidget":
        from causal_arrow.notebook.widget import GraphWidget

        return GraphWidget
    raise AttributeError(f"module 'causal_arrow.notebook' has no attribute {name!r}")
