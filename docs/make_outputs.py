"""Runs the code of the pages and writes what it prints into them: `python docs/make_outputs.py`.

On each page, blocks of Python and of `bash` run from top to bottom in one empty folder, the Python ones in one
namespace. A block ```text right after such a block holds what it printed, and is written anew; a block ```text with a
title, and blocks of `sh`, are shown only. `--check` writes nothing and says which pages would change; names of pages
choose some of them:

    python docs/make_outputs.py --check docs/get-started/effect.md
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

DOCS = Path(__file__).parent
FOLDERS = ("get-started", "guides", "understand")
BLOCK = re.compile(
    r"^(?P<indent> *)```(?P<language>python|bash)\n(?P<code>.*?)^(?P=indent)```\n"
    r"(?P<between>\n*)(?:(?P=indent)```text\n(?P<shown>.*?)^(?P=indent)```\n)?",
    re.DOTALL | re.MULTILINE,
)
SHELL = re.compile(r"[|<>$;&`*]")


class Ran(NamedTuple):
    """A block of a page, what the page shows after it, and what it printed."""

    code: str
    shown: str | None
    printed: str


def pages() -> list[Path]:
    """The pages whose code runs here."""
    return [DOCS / "index.md", *sorted(page for folder in FOLDERS for page in (DOCS / folder).glob("*.md"))]


def run_page(text: str) -> list[Ran]:
    """Every block of a page, run in a folder of its own."""
    names: dict[str, Any] = {"__name__": "__page__"}
    ran = []
    with in_empty_folder():
        for block in BLOCK.finditer(text):
            code = textwrap.dedent(block["code"])
            printed = run_python(code, names) if block["language"] == "python" else run_commands(code)
            shown = None if block["shown"] is None else textwrap.dedent(block["shown"])
            ran.append(Ran(code, shown, tidy(printed)))
    return ran


def with_outputs(text: str) -> str:
    """The page with what its code prints now."""
    outputs = iter(run_page(text))

    def renewed(block: re.Match[str]) -> str:
        ran = next(outputs)
        if ran.shown is None:
            return block[0]
        start, end = block.start("shown") - block.start(), block.end("shown") - block.start()
        return block[0][:start] + textwrap.indent(ran.printed, block["indent"]) + block[0][end:]

    return BLOCK.sub(renewed, text)


def run_python(code: str, names: dict[str, Any]) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(code, "page", "exec"), names)
    return printed.getvalue()


def run_commands(code: str) -> str:
    """What commands print, or what they say on standard error if they print nothing; they may end with any status."""
    if SHELL.search(code):
        return run_shell(code)
    printed = []
    for line in code.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words and words[0] == "causal-arrow":
            printed.append(run_program(words[1:]))
        elif words:
            printed.append(run_shell(line))
    return "".join(printed)


def run_program(arguments: Sequence[str]) -> str:
    """One command of ours, in this process, which has loaded the packages that take long."""
    from causal_arrow.cli import main

    printed, said = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(said), contextlib.suppress(SystemExit):
        main(list(arguments))
    return printed.getvalue() or said.getvalue()


def run_shell(code: str) -> str:
    program = f'causal-arrow() {{ {shlex.quote(sys.executable)} -m causal_arrow "$@"; }}\n'
    done = subprocess.run(["bash", "-c", program + code], capture_output=True, text=True, check=False)
    return done.stdout or done.stderr


def tidy(printed: str) -> str:
    """Without blanks at the ends of lines and empty lines around."""
    lines = [line.rstrip() for line in printed.splitlines()]
    return "".join(f"{line}\n" for line in "\n".join(lines).strip("\n").splitlines())


@contextlib.contextmanager
def in_empty_folder() -> Iterator[None]:
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", type=Path, help="all, if none is named")
    parser.add_argument("--check", action="store_true", help="write nothing")
    arguments = parser.parse_args()
    os.environ["MPLBACKEND"] = "Agg"
    differing = []
    for page in [path.resolve() for path in arguments.pages] or pages():
        text = page.read_text(encoding="utf-8")
        renewed = with_outputs(text)
        if renewed != text:
            differing.append(page.name)
            if not arguments.check:
                page.write_text(renewed, encoding="utf-8")
    verb = "would change" if arguments.check else "written anew"
    print("\n".join(f"{name}: {verb}" for name in differing) or "Every page shows what its code prints.")
    return int(bool(differing) and arguments.check)


if __name__ == "__main__":
    sys.exit(main())
