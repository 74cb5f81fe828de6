"""Pictures as files. An SVG file may adapt to a dark page or screen."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from causal_arrow.discovery.pictures import strokes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SVG_SETTINGS: Any = {"svg.fonttype": "none", "svg.hashsalt": "causal-arrow"}
"""What matplotlib must be told so that text stays text and the same answer gives the same file."""

DARK_COLORS = {
    strokes.BACKGROUND: "#1e2129",
    strokes.BOX_COLOR: "#2b3240",
    strokes.BOX_BORDER: "#a3b3ca",
    strokes.LONELY_BORDER: "#566074",
    strokes.TEXT_COLOR: "#e8edf5",
    strokes.EDGE_COLOR: "#9cc4ff",
    strokes.REQUIRED_COLOR: "#f2a06e",
    strokes.HIDDEN_COLOR: "#d9a6ea",
    strokes.WRONG_COLOR: "#ff9d8a",
    strokes.MISSING_COLOR: "#a9adb5",
    "#000000": "#e8edf5",
}
"""What each color of our pictures becomes on a dark background."""


def dark_rules(scope: str) -> str:
    """Style rules that turn the pictures inside `scope`, a CSS selector, dark.

    The colors stay in the elements, so that programs which know no style sheets show the light picture.
    """
    rules = [
        f"{scope} [style*='{kind}: {light}'] {{ {kind}: {dark} !important; }}"
        for light, dark in DARK_COLORS.items()
        for kind in ("fill", "stroke")
    ]
    # Text and shapes without a color of their own are black; a heat map is an image.
    rules += [
        f"{scope} text:not([style*='fill: #']) {{ fill: {DARK_COLORS['#000000']}; }}",
        f"{scope} g[id^='text_'] > g:not([style*='fill: #']) {{ fill: {DARK_COLORS['#000000']}; }}",
        f"{scope} image {{ filter: invert(1) hue-rotate(180deg); }}",
    ]
    return "\n".join(rules)


def save_figure(figure: Figure, paths: Sequence[str | Path], dpi: int, adapts: bool = False) -> None:
    """Write a figure to files; with `adapts`, an SVG file is dark where its reader prefers that."""
    import matplotlib as mpl

    with mpl.rc_context(SVG_SETTINGS), warnings.catch_warnings():
        # In SVG letters without a glyph here are for the reader's fonts, and no reason to shout.
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        for path in paths:
            vector = str(path).lower().endswith(".svg")
            # No date inside: the same answer is the same file.
            figure.savefig(path, dpi=dpi, metadata={"Date": None} if vector else None)
            if vector and adapts:
                _make_adapting(Path(path))


def _make_adapting(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    style = f"@media (prefers-color-scheme: dark) {{\n{dark_rules('svg.causal-arrow')}\n}}"
    start = text.index("<svg")
    end = text.index(">", start)
    opening = text[start:end].replace("<svg", '<svg class="causal-arrow"', 1)
    path.write_text(f"{text[:start]}{opening}>\n <style>\n{style}\n </style>{text[end + 1 :]}", encoding="utf-8")
