"""Every link of the documents leads somewhere, and README stands on its own where only it is shown.

The project's address is in pyproject.toml under [project.urls]; whatever else shows it must agree. A package host shows
README.md without the files around it, so links there start with the address:

    files      REPOSITORY/blob/main/CONTRIBUTING.md
    pictures   REPOSITORY/raw/main/docs/images/hospital.png
    documents  DOCUMENTATION/guides/knowledge/   (docs/guides/knowledge.md)
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from functools import cache
from html import unescape
from pathlib import Path
from urllib.parse import unquote

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
AT_THE_TOP = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "CHANGELOG.md")
PAGES = [
    *(ROOT / name for name in AT_THE_TOP),
    *sorted([*DOCS.rglob("*.md"), *DOCS.rglob("*.ipynb")]),
    *sorted((ROOT / ".github").rglob("*.md")),
]
ADDRESSES: dict[str, str] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]

FENCE = re.compile(r"^( *)(```|~~~).*?^\1\2\s*$", re.DOTALL | re.MULTILINE)
CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
NAMED_LINK = re.compile(r"^\[[^\]]+\]:\s+(\S+)", re.MULTILINE)
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
        return problem_with_address(target)
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


def problem_with_address(target: str) -> str | None:
    """The same for an address: ours must lead to something in the repository."""
    path, _, anchor = unquote(target).partition("#")
    repository, site = ADDRESSES["Repository"], ADDRESSES["Documentation"]
    for view in ("blob", "raw", "tree"):
        if path.startswith(f"{repository}/{view}/main/"):
            goal = ROOT / path.removeprefix(f"{repository}/{view}/main/")
            return None if goal.exists() else "leads to no file of the repository"
    if path.startswith(site):
        name = path.removeprefix(site).strip("/")
        goals = [DOCS / f"{name or 'index'}.md", DOCS / name / "index.md", DOCS / f"{name}.ipynb", DOCS / name]
        goal = next((goal for goal in goals if goal.is_file()), None)
        if goal is None:
            return "leads to no page of the site"
        return f"has no such place in {goal.name}" if anchor and not has_anchor(goal, anchor) else None
    return None


@pytest.mark.parametrize("page", [pytest.param(page, id=page.relative_to(ROOT).as_posix()) for page in PAGES])
def test_every_link_leads_somewhere(page: Path) -> None:
    found = [(line, target, problem_with(page, target)) for line, target in links_in(text_of(page))]
    broken = [f"{page.name}, line {line}: {target} {problem}" for line, target, problem in found if problem]
    assert not broken, "\n".join(broken)


@pytest.mark.parametrize("name", AT_THE_TOP)
def test_a_file_that_is_shown_elsewhere_too_has_no_relative_links(name: str) -> None:
    """README.md is a package's page, and the others are pages of the site."""
    targets = links_in((ROOT / name).read_text(encoding="utf-8"))
    relative = [(line, target) for line, target in targets if not target.startswith(("https://", "#"))]
    assert not relative, f"write them as this file says at its top: {relative}"


def test_the_address_of_the_project_is_one() -> None:
    """All addresses of the project begin alike, and whatever else shows one shows one of these."""
    repository, site = ADDRESSES["Repository"], ADDRESSES["Documentation"]
    assert ADDRESSES["Issues"] == f"{repository}/issues"
    assert ADDRESSES["Changelog"] == f"{repository}/blob/main/CHANGELOG.md"
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.findall(r"^repository-code: (\S+)$", citation, re.MULTILINE) == [repository]
    assert re.findall(r"^url: (\S+)$", citation, re.MULTILINE) == [site]
    host = re.match(r"https://[^/]+/[^/]+", repository)
    assert host is not None
    shown = {
        path.relative_to(ROOT).as_posix(): re.findall(
            rf"{re.escape(host[0])}[^\s)\"'>]*", path.read_text(encoding="utf-8")
        )
        for path in [*PAGES, ROOT / "mkdocs.yml", *sorted((ROOT / ".github").rglob("*.yml"))]
    }
    templates = [
        (name, url, problem_with_address(url)) for name, urls in shown.items() if name.endswith(".yml") for url in urls
    ]
    assert not [entry for entry in templates if entry[2]]
    other = {name: [url for url in urls if not url.startswith((repository, site))] for name, urls in shown.items()}
    assert not {name: urls for name, urls in other.items() if urls}


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
    assert problem_with(page, f"{ADDRESSES['Repository']}/blob/main/NOTHING.md") is not None
    assert problem_with(page, f"{ADDRESSES['Documentation']}/no/such/page/") is not None
    assert problem_with(page, "reference/json.md#other-commands") is None
    assert problem_with(page, f"{ADDRESSES['Documentation']}/reference/json/#other-commands") is None
    assert problem_with(page, "reference/estimator.md#causal_arrow.Arrow.fit") is None
    assert links_in('`[a](b)` [c](d "title") ![e](f)\n```\n[g](h)\n```\n<img src="i">') == [
        (1, "d"),
        (1, "f"),
        (5, "i"),
    ]
