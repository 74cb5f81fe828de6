"""The layers of the package: imports only go down, and the lower ones need little."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import causal_arrow

PACKAGE = Path(causal_arrow.__file__).parent

LAYERS: dict[str, int] = {
    "errors": 0,
    "dag": 0,
    "synthetic": 1,
    "graph_distribution": 1,
    "tables": 1,
    "table_files": 1,
    "table_columns": 1,
    "table_report": 1,
    "knowledge": 1,
    "orders": 1,
    "decoding": 1,
    "scales": 1,
    "layout": 1,
    "graph_files": 1,
    "metrics": 1,
    "encoders": 2,
    "model": 2,
    "checkpoint": 3,
    "answer": 4,
    "inference": 4,
    "uncertainty": 4,
    "exports": 4,
    "pictures": 4,
    "discovery": 4,
    "pretraining": 4,
    "benchmarks": 5,
    "cli": 6,
    "__main__": 6,
}

BARE = {"errors", "dag", "synthetic", "graph_distribution", "metrics", "encoders", "model", "checkpoint", "pretraining"}
"""What a machine with torch, numpy and safetensors alone must be able to run."""

LIGHT = set(sys.stdlib_module_names) | {"torch", "numpy", "safetensors", "causal_arrow", "tomli", "triton"}


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
    assert part in LAYERS, f"{part} has no layer: add it to the table here and in DESIGN"
    for name in imports_of(path):
        top, *inner = name.split(".")
        if top == "causal_arrow" and inner and inner[0] != "__version__":
            assert LAYERS[inner[0]] <= LAYERS[part], f"{part} is below {inner[0]} and must not import it"


@pytest.mark.parametrize("layer", sorted(set(LAYERS.values())))
def test_no_two_parts_of_a_layer_import_each_other(layer: int) -> None:
    edges = {
        (part_of(path), name.split(".")[1])
        for path in SOURCES
        for name in imports_of(path)
        if name.startswith("causal_arrow.")
    }
    parts = {part for part, number in LAYERS.items() if number == layer}
    for first in parts:
        for second in parts - {first}:
            assert not ((first, second) in edges and (second, first) in edges), (
                f"{first} and {second} import each other"
            )


@pytest.mark.parametrize("path", [path for path in SOURCES if part_of(path) in BARE], ids=lambda path: path.name)
def test_lower_layers_need_only_torch_numpy_and_safetensors(path: Path) -> None:
    foreign = {name.split(".")[0] for name in imports_of(path)} - LIGHT
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
