"""Run the code of the pages and write its output into them: `python docs/tools/make_outputs.py`.

On each page, blocks of Python and of `bash` run from top to bottom in one empty folder, the Python blocks in one
namespace. A block ```text right after such a block holds its output, and is replaced if what is printed now disagrees
with it by more than another processor may (see agreement.py). A block ```text with a title, and blocks of `sh`, are
shown only. `--check` writes nothing and lists the pages that would change; names of pages choose some of them:

    python docs/tools/make_outputs.py --check docs/guides/effects.md
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
import textwrap
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from agreement import disagreement

DOCS = Path(__file__).parents[1]
FOLDERS = ("get-started", "guides", "understand")
BLOCK = re.compile(
    r"^(?P<indent> *)```(?P<language>python|bash)\n(?P<code>.*?)^(?P=indent)```\n"
    r"(?P<between>\n*)(?:(?P=indent)```text\n(?P<shown>.*?)^(?P=indent)```\n)?",
    re.DOTALL | re.MULTILINE,
)
SHELL = re.compile(r"[|<>$;&`*]")
PROGRAMS = {"causal-arrow": "causal_arrow", "causal-arrow-lab": "causal_arrow_lab"}
"""Our programs and their packages."""


class Ran(NamedTuple):
    """A block of a page that ran, the output that the page shows after it, and the output it had."""

    code: str
    shown: str | None
    printed: str

    @property
    def disagreement(self) -> str | None:
        """The first line in which the page is wrong; None if it is right or shows no output."""
        return None if self.shown is None else disagreement(self.shown, self.printed)


def pages() -> list[Path]:
    """The pages whose code runs here."""
    return [DOCS / "index.md", *sorted(page for folder in FOLDERS for page in (DOCS / folder).glob("*.md"))]


def run_page(text: str) -> list[Ran]:
    """Run every block of a page in an empty folder."""
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
    """The page with the present output of its code, where that disagrees with the page."""
    outputs = iter(run_page(text))

    def renewed(block: re.Match[str]) -> str:
        ran = next(outputs)
        if ran.disagreement is None:
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
    """The output of commands, or standard error if there is none; they may end with any status."""
    if SHELL.search(code):
        return run_shell(code)
    printed = []
    for line in code.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words and words[0] in PROGRAMS:
            printed.append(run_program(*words))
        elif words:
            printed.append(run_shell(line))
    return "".join(printed)


def run_program(name: str, *arguments: str) -> str:
    """Run one of our programs in this process, which has loaded the large packages already."""
    main = importlib.import_module(f"{PROGRAMS[name]}.cli").main
    output, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors), contextlib.suppress(SystemExit):
        main(list(arguments))
    return output.getvalue() or errors.getvalue()


def run_shell(code: str) -> str:
    python = shlex.quote(sys.executable)
    programs = "".join(f'{name}() {{ {python} -m {package} "$@"; }}\n' for name, package in PROGRAMS.items())
    done = subprocess.run(["bash", "-c", programs + code], capture_output=True, text=True, check=False)
    return done.stdout or done.stderr


def tidy(printed: str) -> str:
    """The text without blanks at the ends of lines and without empty lines around it."""
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
    verb = "would change" if arguments.check else "updated"
    print("\n".join(f"{name}: {verb}" for name in differing) or "Every page shows what its code prints.")
    return int(bool(differing) and arguments.check)


if __name__ == "__main__":
    sys.exit(main())
