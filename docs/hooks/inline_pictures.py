"""SVG pictures inside the pages instead of linked files: they follow the light or dark setting and can be enlarged.

mkdocs calls `on_files` and `on_page_content`, after the hooks of notebooks.
"""

from __future__ import annotations

import html as escaping
import posixpath
import re
from typing import Any

from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from causal_arrow.discovery.pictures.scene import BACKGROUND, dark_rules

STYLES = "stylesheets/dark-pictures.css"
PIXELS_PER_POINT = 1.15  # so that names in pictures are as large as the text around them
MATPLOTLIB = 'id="figure_1"'
FIGURE = re.compile(r"(?:<\?xml[^>]*>\s*)?(?:<!DOCTYPE svg[^>]*>\s*)?<svg .*?</svg>", re.DOTALL)


def inlined(svg: str, alt: str) -> str:
    """A picture as part of a page. Its own style rules would hold for the whole page, so they go."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<style[^>]*>.*?</style>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    opening, _, rest = svg.partition(">")
    width = re.search(r'viewBox="[-\d.]+ [-\d.]+ ([\d.]+) ', opening)
    opening = re.sub(r' (?:width|height|class)="[^"]*"', "", opening)
    natural = f"{float(width[1]) * PIXELS_PER_POINT:.0f}px" if width else "100%"
    label = f' role="img" aria-label="{escaping.escape(alt)}"' if alt and "role=" not in opening else ""
    kind = "picture plotted" if MATPLOTLIB in svg else "picture"  # others bring colors for light and dark themselves
    return (
        f'<figure class="{kind}" data-search-exclude style="--natural-width: {natural}">'
        f"{opening}{label}>{rest.strip()}</figure>"
    )


def on_files(files: Files, config: Any) -> Files:
    """The rules that turn pictures dark, for pages whose reader has chosen so."""
    scope = '[data-md-color-scheme="slate"] .plotted svg'
    page_color = f"{scope} [style*='fill: {BACKGROUND}'] {{ fill: var(--md-default-bg-color) !important; }}"
    rules = "\n".join([dark_rules(scope), page_color])
    files.append(File.generated(config, STYLES, content=rules))
    return files


def on_page_content(html: str, page: Page, config: Any, files: Files) -> str:
    """Figures of notebooks, and the SVG files that `<img>` elements name, as parts of the page."""
    folder = posixpath.dirname(page.file.dest_uri)
    by_place = {file.dest_uri: file for file in files if file.dest_uri.endswith(".svg")}

    def replaced(image: re.Match[str]) -> str:
        source = re.search(r'src="([^"]+\.svg)"', image[0])
        file = by_place.get(posixpath.normpath(posixpath.join(folder, source[1]))) if source else None
        alt = re.search(r'alt="([^"]*)"', image[0])
        return image[0] if file is None else inlined(file.content_string, escaping.unescape(alt[1]) if alt else "")

    html = FIGURE.sub(lambda picture: inlined(picture[0], "") if MATPLOTLIB in picture[0] else picture[0], html)
    # A paragraph that holds nothing but pictures cannot hold figures.
    html = re.sub(r"<p>((?:\s*<img [^>]*\.svg\"[^>]*>)+)\s*</p>", r"\1", html)
    return re.sub(r"<img [^>]*>", replaced, html)
