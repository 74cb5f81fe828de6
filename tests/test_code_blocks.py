"""Every block of Python in README.md and in the documents runs, or is marked as one that does not.

On each page the blocks `python` run from top to bottom, in one namespace and one folder of the page's own; so does a
block `bash` with a block `text` right after it. That `text` agrees with what was printed. Of blocks `bash`, `sh` and
`console` and of code in a sentence, every command line of ours must be one that the program understands. A comment

    <!-- not run: the reason -->

before a block leaves it out. A page may use a `table`, a file `table.csv` and an `arrow` fitted to it without making
them: the test has some people with an income, a treatment and what came of it, see `people`. Pages whose output
docs/tools/make_outputs.py writes run in tests/test_pages.py, and not again here.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest
import typer

from agreement import disagreement
from causal_arrow import Arrow
from causal_arrow.cli.program import PROGRAM, build_app
from causal_arrow.network import bundled_models
from causal_arrow.network.statistics import CHANNELS
from causal_arrow_lab.benchmarks.methods import METHODS
from causal_arrow_lab.cli.commands import PROGRAM as LAB_PROGRAM
from causal_arrow_lab.network.model import ENCODERS
from docs_scripts import load_script

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
LEFT_OUT = 0
"""Blocks that do not run, in all pages together: another one needs a reason, and another number here."""

outputs = load_script("make_outputs")

BLOCK = re.compile(
    r"^(?P<indent> *)(?:<!-- not run: (?P<reason>[^\n]+?) -->\n+(?P=indent))?```(?P<language>\w+)(?P<title>[^\n]*)\n"
    r"(?P<code>.*?)^(?P=indent)```$",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class Block:
    """A block of a page."""

    language: str
    code: str
    line: int
    reason: str | None
    """Why it does not run, if it does not."""
    printed: str | None
    """What the page says that it prints."""

    @property
    def runs(self) -> bool:
        shows_output = self.language == "bash" and self.printed is not None
        return self.reason is None and (self.language == "python" or shows_output)


def blocks_of(page: Path) -> list[Block]:
    """The blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    found = list(BLOCK.finditer(text))
    blocks = []
    for place, match in enumerate(found):
        after = found[place + 1] if place + 1 < len(found) else None
        follows = (
            after is not None
            and after["language"] == "text"
            and not after["title"].strip()
            and not text[match.end() : after.start()].strip()
        )
        blocks.append(
            Block(
                match["language"],
                textwrap.dedent(match["code"]),
                text.count("\n", 0, match.start("code")) + 1,
                match["reason"],
                outputs.tidy(textwrap.dedent(after["code"])) if follows and after is not None else None,
            )
        )
    return blocks


def named(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


# Running


def people() -> pd.DataFrame:
    """300 invented people, their treatment and its outcome."""
    random = np.random.default_rng(0)
    age, sex, income = random.normal(50, 12, 300), random.integers(0, 2, 300), random.gamma(4, 800, 300)
    smoking = (random.normal(size=300) + 0.03 * (50 - age) > 0.3).astype(int)
    dose = 0.001 * income + 0.02 * age + random.uniform(-1, 1, 300)
    treatment = (0.5 * dose + random.normal(size=300) > 1).astype(int)
    outcome = 2 * dose - 0.5 * treatment + random.laplace(size=300)
    cancer = (0.04 * age + 1.5 * smoking + random.normal(size=300) > 3.5).astype(int)
    columns = (age, sex, income, smoking, dose, treatment, outcome, cancer)
    names = ("age", "sex", "income", "smoking", "dose", "treatment", "outcome", "cancer")
    return pd.DataFrame(dict(zip(names, columns, strict=True)))


@pytest.fixture
def as_it_was() -> Iterator[None]:
    """Whatever a page registers is forgotten afterwards."""
    tables: tuple[dict[str, Any], ...] = (METHODS, ENCODERS, CHANNELS)
    before = [dict(table) for table in tables]
    yield
    for table, entries in zip(tables, before, strict=True):
        table.clear()
        table.update(entries)


RUN_HERE = [page for page in PAGES if page not in outputs.pages() and any(block.runs for block in blocks_of(page))]


@pytest.mark.usefixtures("as_it_was", "network_with_noise")
@pytest.mark.filterwarnings("ignore::causal_arrow.errors.ArrowWarning")
@pytest.mark.parametrize("page", [pytest.param(page, id=named(page)) for page in RUN_HERE])
def test_the_code_of_a_page_runs_and_prints_what_the_page_shows(
    page: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if "arrow-base" not in bundled_models():
        pytest.skip("needs the networks that come with the package")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]))
    table = people()
    table.to_csv("table.csv", index=False)
    module = ModuleType("a_page")  # dataclasses look up the module they are defined in
    vars(module).update(table=table, arrow=Arrow().fit(table))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for block in blocks_of(page):
        if not block.runs:
            continue
        if block.language == "python":
            printed = outputs.run_python(block.code, vars(module))
        else:
            printed = outputs.run_commands(block.code)
        if block.printed is not None:
            wrong = disagreement(block.printed, outputs.tidy(printed))
            assert wrong is None, f"{named(page)}, line {block.line} prints something else"


def test_the_blocks_that_do_not_run_are_counted() -> None:
    left_out = [f"{named(page)}, line {block.line}" for page in PAGES for block in blocks_of(page) if block.reason]
    assert len(left_out) == LEFT_OUT, left_out


# Command lines


def commands_of(page: Path) -> Iterator[tuple[int, str]]:
    """The command lines of ours that blocks of a page hold, each with its line."""
    for block in blocks_of(page):
        if block.language not in ("console", "sh", "bash"):
            continue
        lines = block.code.replace("\\\n", " ").splitlines()
        if block.language == "console":
            lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
        for line in lines:
            for part in split_pipeline(line):
                if part and part[0] in PROGRAMS:
                    yield block.line, shlex.join(part)


def split_pipeline(line: str) -> Iterator[list[str]]:
    """The words of each command of a line."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|;&<>")
    lexer.wordchars += "$*?[]{}~@%!^:,"
    part: list[str] = []
    for word in lexer:
        if word and set(word) <= set("|;&"):
            yield part
            part = []
        elif word in ("<", ">", ">>"):
            next(lexer, None)  # a file, which is no argument
        else:
            part.append(word)
    yield part


def inline_commands_of(page: Path) -> Iterator[tuple[int, str]]:
    """Commands within sentences and tables."""
    text = BLOCK.sub(lambda match: "\n" * match[0].count("\n"), page.read_text(encoding="utf-8"))
    for match in re.finditer(r"`(causal-arrow(?:-lab)? [^`]+)`", text):
        yield text.count("\n", 0, match.start()) + 1, " ".join(match[1].split())


PROGRAMS = {program.name: program for program in (PROGRAM, LAB_PROGRAM)}


@cache
def commands_of_program(name: str) -> dict[str, Any]:
    program: Any = typer.main.get_command(build_app(PROGRAMS[name]))
    return dict(program.commands)


def complaint(command: str) -> tuple[str, str]:
    """The kind and the words of the error that a command line of ours gets from its parser; empty if it gets none."""
    program, *words = shlex.split(command, comments=True)
    commands = commands_of_program(program)
    if not words or words[0].startswith("-") or words[0].isupper():  # COMMAND stands for any of them
        return "", ""
    if words[0] not in commands:
        return "NoSuchCommand", f"there is no command {words[0]}"
    silent = io.StringIO()
    try:
        with contextlib.redirect_stdout(silent), contextlib.redirect_stderr(silent):
            commands[words[0]].make_context(words[0], words[1:])
    except Exception as error:  # click's own classes, which typer may carry inside
        kind = type(error).__name__
        return ("", "") if kind == "Exit" else (kind, str(error))
    return "", ""


@pytest.mark.parametrize("page", [pytest.param(page, id=named(page)) for page in PAGES])
def test_the_program_understands_every_command_line_of_a_page(page: Path) -> None:
    wrong = [(line, command, *complaint(command)) for line, command in commands_of(page)]
    # In a sentence much may be left out or stand for something else: there the names have to be right.
    inline = [(line, command, *complaint(command)) for line, command in inline_commands_of(page)]
    names = ("NoSuchCommand", "NoSuchOption")
    wrong = [entry for entry in wrong if entry[2]] + [entry for entry in inline if entry[2] in names]
    assert not wrong, "\n".join(f"{named(page)}, line {line}: {command}: {words}" for line, command, _, words in wrong)


def test_a_wrong_option_would_be_noticed() -> None:
    assert complaint("causal-arrow discover table.csv --sampels 10")[0] == "NoSuchOption"
    assert complaint("causal-arrow discovr table.csv")[0] == "NoSuchCommand"
    assert complaint("causal-arrow benchmark networks")[0] == "NoSuchCommand"
    assert complaint("causal-arrow discover table.csv --graphs 10") == ("", "")
    assert complaint("causal-arrow-lab benchmark networks") == ("", "")
