"""Write the page of pretraining's settings from their dataclasses: `python docs/tools/make_keys.py`."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import textwrap
from pathlib import Path

from causal_arrow_lab.network.model import ENCODERS, ArrowConfig
from causal_arrow_lab.pretraining.config import PretrainingConfig, shipped_configs

PAGE = Path(__file__).parents[1] / "reference" / "pretraining-keys.md"

INTRODUCTION = """# Settings of pretraining

Every key that a configuration may have, as in `causal-arrow-lab pretrain CONFIG.toml`; `--set SECTION.KEY=VALUE`
changes one of them. What is not set has its default. The shipped configurations ({shipped}) are in
`causal_arrow_lab/pretraining/configs`. This page is written by `python docs/tools/make_keys.py`.
"""


def descriptions(section: type) -> dict[str, str]:
    """The docstring of each field of a dataclass: the text right below it in the source."""
    body = ast.parse(textwrap.dedent(inspect.getsource(section))).body[0].body  # type: ignore[attr-defined]
    found = {}
    for statement, below in zip(body, [*body[1:], None], strict=True):
        if (
            isinstance(statement, ast.AnnAssign)
            and isinstance(below, ast.Expr)
            and isinstance(below.value, ast.Constant)
        ):
            found[statement.target.id] = " ".join(str(below.value.value).split())  # type: ignore[union-attr]
    return found


def default_of(field: dataclasses.Field) -> str:  # type: ignore[type-arg]
    """The default as a TOML file has it."""
    factory = field.default_factory
    value = field.default if factory is dataclasses.MISSING else factory()
    if value is None:
        return "not set"
    return f"`{_toml(value)}`"


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, dict):
        return "{}"
    return f'"{value}"' if isinstance(value, str) else str(value)


def lines_of(section: type) -> list[str]:
    """A table with one line for each setting of a section."""
    described = descriptions(section)
    lines = ["", "| Key | Default | |", "|---|---|---|"]
    fields = [field for field in dataclasses.fields(section) if not dataclasses.is_dataclass(_made(field))]
    return lines + [f"| `{field.name}` | {default_of(field)} | {described[field.name]} |" for field in fields]


def _made(field: dataclasses.Field) -> object:  # type: ignore[type-arg]
    return None if field.default_factory is dataclasses.MISSING else field.default_factory()


def page() -> str:
    """The whole page."""
    described = descriptions(PretrainingConfig)
    shipped = ", ".join(f"`{name}`" for name in shipped_configs())
    lines = [INTRODUCTION.format(shipped=shipped), "## Before any section", *lines_of(PretrainingConfig)]
    for field in dataclasses.fields(PretrainingConfig):
        section = _made(field)
        if isinstance(section, ArrowConfig):
            lines += ["", "## [model]", "", described["model"]]
            for name, kind in ENCODERS.items():
                lines += ["", f'### encoder = "{name}"', "", str(inspect.getdoc(kind.config)), *lines_of(kind.config)]
        elif section is not None:
            lines += ["", f"## [{field.name}]", "", str(inspect.getdoc(type(section))), *lines_of(type(section))]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
