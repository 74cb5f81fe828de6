"""What the tests of layers share: which modules a package has, and what each imports."""

from __future__ import annotations

import ast
import graphlib
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType

import pytest


def imports_of(path: Path) -> set[str]:
    """Absolute names of all modules a file imports, at its top or inside functions."""
    found = set()
    for statement in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(statement, ast.Import):
            found |= {alias.name for alias in statement.names}
        elif isinstance(statement, ast.ImportFrom):
            assert statement.level == 0, f"{path} has a relative import"
            assert statement.module is not None
            found |= {f"{statement.module}.{alias.name}" for alias in statement.names}
    return found


@dataclass(frozen=True)
class Package:
    """A package and the layer of each of its parts: a module or folder may import those below it."""

    name: str
    folder: Path
    layers: dict[str, int]

    @classmethod
    def of(cls, module: ModuleType, layers: dict[str, int]) -> Package:
        return cls(module.__name__, Path(module.__file__ or "").parent, layers)

    @cached_property
    def sources(self) -> list[Path]:
        return sorted(path for path in self.folder.rglob("*.py") if path != self.folder / "__init__.py")

    @cached_property
    def folders(self) -> list[str]:
        return sorted({self.part_of(path) for path in self.sources if path.parent != self.folder})

    def part_of(self, path: Path) -> str:
        """The entry of `layers` that a file belongs to: its module, or the folder it lies in."""
        return path.relative_to(self.folder).parts[0].removesuffix(".py")

    def check_layers(self, path: Path, but: str = "") -> None:
        """Fail if a file imports a part of its package that is not below its own, but for one."""
        part = self.part_of(path)
        assert part in self.layers, f"{part} has no layer: add it to the table here"
        for name in imports_of(path):
            top, *inner = name.split(".")
            if top == self.name and inner and inner[0] not in (part, but):
                assert self.layers[inner[0]] < self.layers[part], (
                    f"{part} is not above {inner[0]}: it must not import it"
                )

    def check_internals(self, path: Path) -> None:
        """Fail if a file imports an internal module or name, `_name`, of another folder."""
        own = self._module_name(path.parent / "__init__.py")
        for name in imports_of(path):
            folder, _, inner = name.partition("._")
            if folder.startswith(self.name) and inner and not inner.startswith(("_", "version")):
                assert f"{own}.".startswith(f"{folder}."), f"{name} is an internal of {folder}"

    def check_cycles(self, part: str) -> None:
        """Fail if modules of a folder import each other."""
        modules = {self._module_name(path): path for path in self.sources if self.part_of(path) == part}
        graph = {
            name: {target for imported in imports_of(path) for target in _homes(imported, modules) if target != name}
            for name, path in modules.items()
        }
        try:
            graphlib.TopologicalSorter(graph).prepare()
        except graphlib.CycleError as error:
            pytest.fail(f"these import each other: {' -> '.join(error.args[1])}")

    def _module_name(self, path: Path) -> str:
        """The dotted name of a file; a package goes by the name of its folder."""
        parts = path.relative_to(self.folder).with_suffix("").parts
        return ".".join([self.name, *parts]).removesuffix(".__init__")


def _homes(imported: str, modules: Collection[str]) -> set[str]:
    """The module that an imported name comes from: itself, or the longest prefix that is a module."""
    parts = imported.split(".")
    prefixes = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return set(next(([name] for name in prefixes if name in modules), []))
