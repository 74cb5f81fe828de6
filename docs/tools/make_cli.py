"""Write the pages of both command lines from the programs: `python docs/tools/make_cli.py`."""

from __future__ import annotations

import enum
import re
from pathlib import Path
from typing import Any

import typer

from causal_arrow.cli.program import PROGRAM, Program, build_app
from causal_arrow_lab.cli.commands import PROGRAM as LAB

REFERENCE = Path(__file__).parents[1] / "reference"

MAX_CHARACTERS = 76
"""Length of a line of an example."""

INTRODUCTIONS = {
    "cli.md": """# Command line

Every command with all of its options, as `causal-arrow COMMAND --help` prints them. The guide
[Command line](../guides/command-line.md) describes what all commands share and what they write. The commands of the lab
are on [another page](lab-cli.md). This page is written by `python docs/tools/make_cli.py`.
""",
    "lab-cli.md": """# Command line of the lab

`pip install causal-arrow-lab` brings the program `causal-arrow-lab`: tables with known graphs, benchmarks, pretraining
and timing. This page is written by `python docs/tools/make_cli.py`.
""",
}
PROGRAMS = {"cli.md": PROGRAM, "lab-cli.md": LAB}


def pages() -> dict[Path, str]:
    """The text of each page."""
    return {REFERENCE / name: page(INTRODUCTIONS[name], program) for name, program in PROGRAMS.items()}


def page(introduction: str, program: Program) -> str:
    """The page of one program."""
    commands: dict[str, Any] = typer.main.get_command(build_app(program)).commands  # type: ignore[attr-defined]
    return "\n".join([introduction, *(_section(program.name, name, command) for name, command in commands.items())])


def _section(program: str, name: str, command: Any) -> str:
    """The section of a command: its purpose, arguments, options and examples."""
    parameters = [entry for entry in command.params if not entry.hidden and entry.name != "help"]
    arguments = [entry for entry in parameters if entry.param_type_name == "argument"]
    options = [entry for entry in parameters if entry.param_type_name == "option"]
    usage = " ".join([program, name, *(_usage(entry) for entry in arguments), "[OPTIONS]"])
    parts = [f"## {name}\n", f"    {usage}\n", "\n\n".join(map(_one_line, (command.help or "").split("\n\n"))) + "\n"]
    if arguments:
        parts += ["\n".join(f"- `{_usage(entry)}`: {_described(entry)}" for entry in arguments) + "\n"]
    for panel in dict.fromkeys(entry.rich_help_panel for entry in options):
        members = [entry for entry in options if entry.rich_help_panel == panel]
        listed = "\n".join(f"- {_spelled(entry)}: {_described(entry)}" for entry in members)
        parts += [f"**{panel or 'Options'}**\n", f"{listed}\n"]
    if examples := re.findall(r"^`(.+)`$", command.epilog or "", re.MULTILINE):
        parts += ["**Examples**\n", "\n".join(["```bash", *map(_wrapped, examples), "```\n"])]
    return "\n".join(parts)


def _usage(argument: Any) -> str:
    name = argument.metavar or str(argument.name).upper()
    several = f"{name}..." if argument.nargs == -1 and not name.endswith("...") else name
    return several if argument.required or several.startswith("[") else f"[{several}]"


def _spelled(option: Any) -> str:
    """All spellings of an option."""
    return ", ".join(f"`{spelling}`" for spelling in (*option.opts, *option.secondary_opts))


def _described(parameter: Any) -> str:
    """The help text, and the default if there is one."""
    text = _one_line(parameter.help)
    default = parameter.default.value if isinstance(parameter.default, enum.Enum) else parameter.default
    if parameter.show_default and isinstance(default, str | int | float) and not isinstance(default, bool):
        text = f"{text} Default: `{default}`." if str(default) else text
    return text


def _wrapped(example: str) -> str:
    """An example on lines that fit on the page."""
    lines = [""]
    for part in re.split(r" (?=-)", example):  # options stay with their values
        if len(lines[-1]) + len(part) > MAX_CHARACTERS:
            lines[-1] += " \\"
            lines.append("   ")
        lines[-1] += f" {part}" if lines[-1] else part
    return "\n".join(lines)


def _one_line(text: str | None) -> str:
    return " ".join((text or "").replace("|", "\\|").split())


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
        print(f"Wrote {path}.")
