"""The layers of the package: imports only go down, and the lower ones need little."""

from __future__ import annotations

import ast
import graphlib
import subprocess
import sys
from pathlib import Path

import pytest

import causal_arrow

PACKAGE = Path(causal_arrow.__file__).parent

LAYERS: dict[str, int] = {
    "_version": 0,
    "errors": 0,
    "text": 0,
    "progress": 0,
    "storage": 1,
    "batches": 1,
    "graphs": 2,
    "tables": 2,
    "synthetic": 2,
    "network": 3,
    "discovery": 4,
    "pretraining": 4,
    "benchmarks": 5,
    "examples": 6,
    "web": 7,
    "cli": 8,
    "__main__": 9,
}

BARE = {"errors", "text", "batches", "graphs", "synthetic", "network", "pretraining"}
"""What a machine with torch, numpy and safetensors alone must be able to run."""

LIGHT = set(sys.stdlib_module_names) | {"torch", "numpy", "safetensors", "causal_arrow", "tomli", "triton"}


MAY_USE = {"graphs/files.py": {"networkx"}}
"""Packages that one function of a file imports when it is called, for a format of files that is theirs."""


def part_of(path: Path) -> str:
    """The entry of LAYERS that a file belongs to: its module, or the folder it lies in."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


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


SOURCES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_only_go_down(path: Path) -> None:
    part = part_of(path)
    assert part in LAYERS, f"{part} has no layer: add it to the table here"
    for name in imports_of(path):
        top, *inner = name.split(".")
        if top == "causal_arrow" and inner and inner[0] != part:
            assert LAYERS[inner[0]] < LAYERS[part], f"{part} is not above {inner[0]} and must not import it"


@pytest.mark.parametrize("part", sorted({part_of(path) for path in SOURCES if path.parent != PACKAGE}))
def test_imports_inside_a_package_have_no_cycle(part: str) -> None:
    modules = {module_name(path): path for path in SOURCES if part_of(path) == part}
    graph = {
        name: {target for imported in imports_of(path) for target in homes(imported, modules) if target != name}
        for name, path in modules.items()
    }
    sorter = graphlib.TopologicalSorter(graph)
    try:
        sorter.prepare()
    except graphlib.CycleError as error:
        pytest.fail(f"these import each other: {' -> '.join(error.args[1])}")


def module_name(path: Path) -> str:
    """The dotted name of a file; a package goes by the name of its folder."""
    return ".".join(["causal_arrow", *path.relative_to(PACKAGE).with_suffix("").parts]).removesuffix(".__init__")


def homes(imported: str, modules: dict[str, Path]) -> set[str]:
    """The module that an imported name comes from: itself, or the longest prefix that is a module."""
    parts = imported.split(".")
    prefixes = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return set(next(([name] for name in prefixes if name in modules), []))


@pytest.mark.parametrize("path", [path for path in SOURCES if part_of(path) in BARE], ids=lambda path: path.name)
def test_lower_layers_need_only_torch_numpy_and_safetensors(path: Path) -> None:
    foreign = (
        {name.split(".")[0] for name in imports_of(path)} - LIGHT - MAY_USE.get(str(path.relative_to(PACKAGE)), set())
    )
    assert not foreign, f"{path.name} imports {foreign}"


def test_importing_the_package_loads_no_heavy_module() -> None:
    program = (
        "import sys, causal_arrow; dir(causal_arrow); "
        "heavy = ('torch', 'numpy', 'pandas', 'scipy', 'sklearn', 'networkx', 'matplotlib', 'typer'); "
        "print([name for name in heavy if name in sys.modules]); "
        "causal_arrow.ArrowModel; print('torch' in sys.modules)"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.split("\n")[:2] == ["[]", "True"]


def test_importing_the_package_takes_under_a_fifth_of_a_second() -> None:
    program = "import time; start = time.perf_counter(); import causal_arrow; print(time.perf_counter() - start)"
    runs = [
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True) for _ in range(5)
    ]
    assert min(float(run.stdout) for run in runs) < 0.2


def test_every_public_name_can_be_had() -> None:
    for name in causal_arrow.__all__:
        assert getattr(causal_arrow, name) is not None
