"""The code and the style of the widget, joined from modules of the page and its own."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

HERE, PAGE = Path(__file__).parent, Path(__file__).parents[1] / "web" / "static"
JOINED = ("dom.js", "argument.js", "graph.js")
"""Modules of the page that the widget uses."""
DARK = ':is([data-jp-theme-light="false"], .dark, .vscode-dark, .vscode-high-contrast)'
"""The body of a dark Jupyter, marimo or VS Code, whatever the browser prefers."""
_STYLES = ((PAGE, "graph.css"), (HERE, "widget.css"))


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
    light, dark = re.findall(r":root (\{[^}]*\})", page[: page.index("* {")])
    colors = f".causal-arrow-widget {light}\n{DARK} .causal-arrow-widget {dark}"
    return "\n".join([colors, *((folder / name).read_text(encoding="utf-8") for folder, name in _STYLES)])
