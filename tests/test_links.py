"""Every link of the documents leads somewhere, and no file shows a placeholder instead of an address."""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from functools import cache
from html import unescape
from pathlib import Path
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
AT_THE_TOP = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "CHANGELOG.md")
PAGES = [
    *(ROOT / name for name in AT_THE_TOP),
    *sorted([*DOCS.rglob("*.md"), *DOCS.rglob("*.ipynb")]),
    *sorted((ROOT / ".github").rglob("*.md")),
    ROOT / "lab" / "research" / "log.md",
]

FENCE = re.compile(r"^( *)(```|~~~).*?^\1\2\s*$", re.DOTALL | re.MULTILINE)
CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
NAMED_LINK = re.compile(r"^\[[^\]]+\]:\s+(\S+)", re.MULTILINE)
PLACEHOLDER = re.compile(r"\bexample\.(?:org|com|net)\b|\b(?:TODO|TBD|FIXME)\b|(?i:lorem ipsum)")
HTML_LINK = re.compile(r"<(?:a|img|source)\b[^>]*?\b(?:href|src|srcset)=[\"']([^\"']+)[\"']")


def text_of(page: Path) -> str:
    """The text of a page; of a notebook, that between the code."""
    text = page.read_text(encoding="utf-8")
    if page.suffix != ".ipynb":
        return text
    cells = [cell["source"] for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown"]
    return "\n\n".join("".join(source) for source in cells)


def prose(text: str) -> str:
    """The text without code and comments, which hold no links; as many lines as before."""
    for pattern in (FENCE, COMMENT, CODE):
        text = pattern.sub(lambda match: "\n" * match[0].count("\n"), text)
    return text


def links_in(text: str) -> list[tuple[int, str]]:
    """The targets of all links and pictures, each with its line."""
    text = prose(text)
    found = [match for pattern in (LINK, NAMED_LINK, HTML_LINK) for match in pattern.finditer(text)]
    return [(text.count("\n", 0, match.start()) + 1, match[1]) for match in found]


@cache
def anchors_of(page: Path) -> frozenset[str]:
    """The anchors of a page: those of its headings as the site makes them, and those that it sets itself."""
    text = text_of(page)
    without_code = FENCE.sub("", text)
    anchors = set(re.findall(r"\bid=[\"']([^\"']+)[\"']", without_code)) | set(re.findall(r"\{[^}\n]*#([\w.-]+)", text))
    anchors |= set(re.findall(r"^::: (\S+)$", text, re.MULTILINE))
    seen: Counter[str] = Counter()
    for title in re.findall(r"^#{1,6} +(.+?) *#*$", without_code, re.MULTILINE):
        slug = slug_of(re.sub(r"\{[^}]*\}$", "", title))
        anchors.add(slug if not seen[slug] else f"{slug}_{seen[slug]}")
        seen[slug] += 1
    return frozenset(anchors)


def slug_of(title: str) -> str:
    """The anchor of a heading, as the site makes it."""
    plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", title)
    plain = unescape(re.sub(r"[`*]|<[^>]+>", "", plain))
    plain = plain.encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())


def has_anchor(page: Path, anchor: str) -> bool:
    """Whether a page has an anchor; a documented class also has those of its members."""
    return anchor in anchors_of(page) or any(
        anchor.startswith(f"{known}.") for known in anchors_of(page) if known.startswith("causal_arrow.")
    )


def problem_with(page: Path, target: str) -> str | None:
    """What is wrong with a link on a page; None if it leads somewhere, or out of the project."""
    if re.match(r"[a-z][a-z0-9+.-]*:", target):
        return "is a placeholder" if PLACEHOLDER.search(target) else None
    path, _, anchor = unquote(target).partition("#")
    if path.startswith("/"):
        return "starts at the root of a site"
    goal = (page.parent / path).resolve() if path else page
    if not goal.exists():
        return "leads nowhere"
    if page.is_relative_to(DOCS) and not goal.is_relative_to(DOCS):
        return "leads out of the site"
    if anchor and goal.suffix in (".md", ".ipynb") and not has_anchor(goal, anchor):
        return f"has no such place in {goal.relative_to(ROOT)}"
    return None


@pytest.mark.parametrize("page", [pytest.param(page, id=page.relative_to(ROOT).as_posix()) for page in PAGES])
def test_every_link_leads_somewhere(page: Path) -> None:
    found = [(line, target, problem_with(page, target)) for line, target in links_in(text_of(page))]
    broken = [f"{page.name}, line {line}: {target} {problem}" for line, target, problem in found if problem]
    assert not broken, "\n".join(broken)


@pytest.mark.parametrize("name", [name for name in AT_THE_TOP if name != "README.md"])
def test_a_file_that_is_also_a_page_of_the_site_has_no_relative_links(name: str) -> None:
    """They would lead elsewhere there."""
    targets = links_in((ROOT / name).read_text(encoding="utf-8"))
    assert not [(line, target) for line, target in targets if not target.startswith(("https://", "#"))]


def test_no_file_shows_a_placeholder() -> None:
    """Addresses, authors and contacts are real or left out."""
    kinds = ("*.md", "*.toml", "*.cff", "*.yml", "*.ipynb", "*.py", "*.html")
    tracked = subprocess.run(["git", "ls-files", "--", *kinds], cwd=ROOT, capture_output=True, text=True, check=True)
    shown = {
        name: found
        for name in tracked.stdout.splitlines()
        if not name.startswith(("tests/", "lab/tests/")) and (ROOT / name).exists()
        if (found := PLACEHOLDER.findall((ROOT / name).read_text(encoding="utf-8")))
    }
    assert not shown


def test_the_extras_that_pages_name_are_those_of_the_package() -> None:
    section = (ROOT / "pyproject.toml").read_text(encoding="utf-8").partition("optional-dependencies]")[2]
    extras = set(re.findall(r"^(\w+) = ", section.partition("\n[")[0], re.MULTILINE))
    table = (DOCS / "get-started" / "install.md").read_text(encoding="utf-8").partition("## Extras")[2]
    first_column = " ".join(re.findall(r"^\| (`\w+`[^|]*)\|", table, re.MULTILINE))
    assert set(re.findall(r"`(\w+)`", first_column)) == extras
    named = {
        name for page in PAGES for name in re.findall(r"causal-arrow\[([\w,]+)\]", page.read_text(encoding="utf-8"))
    }
    assert {extra for names in named for extra in names.split(",")} <= extras


def test_commands_that_run_the_lab_from_a_source_tree_find_it() -> None:
    for page in PAGES:
        for path in re.findall(r"PYTHONPATH=(\S+) +python3? -m causal_arrow_lab", page.read_text(encoding="utf-8")):
            assert path == "src:lab/src", page


def test_readme_is_short_and_begins_with_the_two_commands() -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    commands = [line.split("#")[0].strip() for line in lines[:6] if line.startswith("    ")]
    assert commands == ["make demo", "make test"]
    assert len(lines) <= 120


def test_the_one_table_of_readme_names_data_as_a_reader_knows_them_and_has_times() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(re.findall(r"^\|[ :-]+\|", text, re.MULTILINE)) == 1
    assert "Seconds on one core" in text
    assert "FLOP is faster" in text
    assert not re.search(r"^\| \w+/\w+", text, re.MULTILINE)


@pytest.mark.parametrize(
    ("title", "slug"),
    [
        ("What `discover --output DIR` writes", "what-discover-output-dir-writes"),
        ("The paper's tasks alone", "the-papers-tasks-alone"),
        ("[model]", "model"),
        ('encoder = "pairwise"', "encoder-pairwise"),
        ("Where it loses, and *why*", "where-it-loses-and-why"),
    ],
)
def test_anchors_are_made_as_the_site_makes_them(title: str, slug: str) -> None:
    assert slug_of(title) == slug


def test_a_broken_link_would_be_noticed(tmp_path: Path) -> None:
    page = DOCS / "index.md"
    assert problem_with(page, "no-such-page.md") == "leads nowhere"
    assert problem_with(page, "reference/json.md#no-such-place") is not None
    assert problem_with(page, "../README.md") == "leads out of the site"
    assert problem_with(page, "https://example.org/docs") == "is a placeholder"
    assert problem_with(page, "https://arxiv.org/abs/2605.07204") is None
    assert problem_with(page, "reference/json.md#other-commands") is None
    assert links_in('`[a](b)` [c](d "title") ![e](f)\n```\n[g](h)\n```\n<img src="i">') == [
        (1, "d"),
        (1, "f"),
        (5, "i"),
    ]
