"""Notebooks as pages: executed when the documents are built, so that what they show is what this version prints.

mkdocs calls `on_files`, `on_page_content` and `on_post_build`; the tests call `executed`.
"""

from __future__ import annotations

import html
import re
import shutil
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

SECONDS_PER_CELL = 120

# Figures as SVG with text as text, as everywhere in these documents. Not shown on the page.
SETUP = """
%config InlineBackend.figure_formats = ["svg"]
%config InlineBackend.print_figure_kwargs = {"bbox_inches": None}
import matplotlib, warnings
warnings.formatwarning = lambda message, category, *_, **__: f"{category.__name__}: {message}\\n"
matplotlib.rcParams["svg.fonttype"] = "none"
matplotlib.rcParams["svg.hashsalt"] = "causal-arrow"
"""


class NotebookPage(File):
    """A notebook that mkdocs takes for a page."""

    outputs: list[str]

    def is_documentation_page(self) -> bool:
        return True


def executed(path: Path, then: str = "") -> Any:
    """The notebook with the outputs of its cells, run in the folder it lies in. An error in a cell is raised.

    `then` is one more cell at the end, for those who want to know more.
    """
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    notebook.cells.insert(0, nbformat.v4.new_code_cell(SETUP))
    if then:
        notebook.cells.append(nbformat.v4.new_code_cell(then))
    NotebookClient(
        notebook,
        timeout=SECONDS_PER_CELL,
        kernel_name="python3",
        extra_arguments=["--log-level=ERROR"],
        resources={"metadata": {"path": str(path.parent)}},
    ).execute()
    del notebook.cells[0]
    return notebook


def as_markdown(notebook: Any, name: str) -> tuple[str, list[str]]:
    """The text of the page, with a place for each output, and the outputs as HTML."""
    blocks: list[str] = []
    outputs: list[str] = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            blocks.append(cell.source)
            continue
        blocks.append(f"```python\n{cell.source}\n```")
        for output in joined(cell.outputs):
            blocks.append(place_of(len(outputs)))
            outputs.append(output)
    note = (
        f'<p class="notebook-note" data-search-exclude>This page is a notebook, run when these documents were built: '
        f'<a href="../{name}.ipynb" download>download it</a>.</p>'
    )
    title, _, rest = blocks[0].partition("\n")
    return "\n\n".join([title, place_of(len(outputs)), rest, *blocks[1:]]), [*outputs, note]


def place_of(number: int) -> str:
    return f'<div data-notebook-output="{number}"></div>'


def joined(outputs: list[Any]) -> list[str]:
    """The outputs of a cell as HTML; what was printed piece by piece is one output."""
    shown: list[str] = []
    printed = ""
    for output in outputs:
        if output.output_type == "stream":
            printed += output.text
            continue
        data = output.data
        if "image/svg+xml" in data:
            shown.append(data["image/svg+xml"])
        elif "text/html" in data:
            shown.append(f'<div class="notebook-output" data-search-exclude>{plain_table(data["text/html"])}</div>')
        elif "text/plain" in data and not data["text/plain"].startswith("<Axes"):
            shown.append(printed_text(data["text/plain"]))
    return ([printed_text(printed)] if printed else []) + shown


def printed_text(text: str) -> str:
    return f'<pre class="notebook-output" data-search-exclude>{html.escape(text.rstrip())}</pre>'


def plain_table(text: str) -> str:
    """A table of pandas without its own style, so that it looks like the other tables of these documents."""
    text = re.sub(r"<style scoped>.*?</style>", "", text, flags=re.DOTALL)
    return re.sub(r'<table border="1" class="dataframe">', "<table>", text)


# What mkdocs calls


def on_files(files: Files, config: Any) -> Files:
    """Every notebook becomes a page; it is executed here."""
    for file in [file for file in files if file.src_uri.endswith(".ipynb")]:
        path = Path(file.abs_src_path)
        text, outputs = as_markdown(executed(path), path.stem)
        page = NotebookPage.generated(config, file.src_uri, content=text)
        page.outputs = outputs
        files.remove(file)
        files.append(page)
    return files


def on_page_content(html: str, page: Page, config: Any, files: Files) -> str:
    """The outputs, at their places."""
    for number, output in enumerate(getattr(page.file, "outputs", [])):
        html = html.replace(place_of(number), output)
    return html


def on_post_build(config: Any) -> None:
    """The notebooks themselves, to download."""
    for path in Path(config.docs_dir).rglob("*.ipynb"):
        if ".ipynb_checkpoints" not in path.parts:
            shutil.copy(path, Path(config.site_dir) / path.relative_to(config.docs_dir))
