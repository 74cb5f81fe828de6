"""Plain words: docstrings begin with a verb or with what is returned, and phrases that were mended stay away."""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = sorted(path for folder in ("src", "lab/src", "docs/tools") for path in (ROOT / folder).rglob("*.py"))
PAGES = sorted(
    path
    for pattern in ("*.md", "docs/**/*.md", "docs/**/*.ipynb", "src/**/SKILL.md", "src/**/static/*.[hj]*")
    for path in ROOT.glob(pattern)
)
TICS = re.compile(
    r"""\b(?:
        tells?\ of | (?:says|said)\ of | told\ apart | tells?\ \w+\ apart | stands?\ alone | by\ turns | of\ one\ sign |
        the\ very\ (?!first|last|same) | a\ word\ on | weights\ before\ today | wants\ the | (?:most|in)\ doubt | beside
    )\b""",
    re.VERBOSE,
)
"""Phrases that read as a translation, each mended once."""


def docstrings(path: Path) -> Iterator[str]:
    """The docstrings of a module, its classes, functions and attributes."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else []:
            match statement:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    yield text


def words_of(path: Path) -> str:
    """The strings and comments of a module, the text of a notebook, or all of any other file."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        return "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"])
    if path.suffix != ".py":
        return text
    kept = (tokenize.STRING, tokenize.COMMENT, getattr(tokenize, "FSTRING_MIDDLE", -1))
    return "\n".join(
        token.string for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.type in kept
    )


def test_docstrings_begin_with_a_verb_or_with_what_is_returned() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}: {text.splitlines()[0]}"
        for path in SOURCES
        for text in docstrings(path)
        if re.match(r"(?:How|Where|That|Those|What|Of|Who|Whoever|Which)\b", text)
    ]
    assert not wrong, "\n".join(wrong)


def odd_phrases(path: Path) -> list[str]:
    return [match[0] for match in TICS.finditer(" ".join(words_of(path).split()))]


def test_phrases_that_were_mended_do_not_come_back() -> None:
    found = {path.relative_to(ROOT).as_posix(): odd_phrases(path) for path in [*SOURCES, *PAGES]}
    assert len(found) > 300
    assert not {name: phrases for name, phrases in found.items() if phrases}


def test_a_phrase_that_is_broken_over_two_lines_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("What the table tells\nof its columns.")
    assert odd_phrases(page) == ["tells of"]
