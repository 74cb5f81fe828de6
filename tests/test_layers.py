"""The layers of the package: imports only go down, and the lower ones need little."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import causal_arrow
from layers import Package, imports_of

PACKAGE = Package.of(
    causal_arrow,
    {
        "_version": 0,
        "text": 0,
        "errors": 1,
        "progress": 1,
        "inputs": 2,
        "output": 2,
        "storage": 2,
        "batches": 2,
        "graphs": 3,
        "tables": 3,
        "network": 4,
        "discovery": 5,
        "series": 6,
        "many": 6,
        "examples": 7,
        "web": 8,
        "agents": 9,
        "notebook": 9,
        "cli": 10,
        "__main__": 11,
    },
)

BARE = {"errors", "inputs", "text", "output", "batches", "graphs", "network"}
"""Parts that need numpy and safetensors alone: the lab uses them on machines that have little else."""

LIGHT = set(sys.stdlib_module_names) | {"numpy", "safetensors", "causal_arrow", "tomli"}

UPWARD = {
    "discovery/uncertainty.py": "many",
    "discovery/settings.py": "series",
    "discovery/pipeline.py": "series",
    "discovery/estimator.py": "series",
}
"""Files that use one part above their own: resamples are shared among processes, options ask for series."""

MAY_USE = {"graphs/files.py": {"networkx"}, "network/forward.py": {"threadpoolctl"}}
"""Packages that one function of a file imports when it is called, for a format of files that is theirs."""


def named(path: Path) -> str:
    return path.relative_to(PACKAGE.folder).as_posix()


@pytest.mark.parametrize("path", PACKAGE.sources, ids=named)
def test_imports_only_go_down(path: Path) -> None:
    PACKAGE.check_layers(path, UPWARD.get(named(path), ""))


@pytest.mark.parametrize("path", PACKAGE.sources, ids=named)
def test_internals_are_imported_in_their_own_folder_only(path: Path) -> None:
    PACKAGE.check_internals(path)


@pytest.mark.parametrize("part", PACKAGE.folders)
def test_imports_inside_a_package_have_no_cycle(part: str) -> None:
    PACKAGE.check_cycles(part)


@pytest.mark.parametrize("path", [path for path in PACKAGE.sources if PACKAGE.part_of(path) in BARE], ids=named)
def test_lower_layers_need_only_numpy_and_safetensors(path: Path) -> None:
    foreign = {name.split(".")[0] for name in imports_of(path)} - LIGHT - MAY_USE.get(named(path), set())
    assert not foreign, f"{path.name} imports {foreign}"


@pytest.mark.parametrize("path", PACKAGE.sources, ids=named)
def test_the_product_imports_neither_torch_nor_the_lab(path: Path) -> None:
    assert not {"torch", "causal_arrow_lab"} & {name.split(".")[0] for name in imports_of(path)}


def test_importing_the_package_loads_no_heavy_module() -> None:
    program = (
        "import sys, causal_arrow; dir(causal_arrow); "
        "heavy = ('torch', 'numpy', 'pandas', 'scipy', 'sklearn', 'networkx', 'matplotlib', 'typer'); "
        "print([name for name in heavy if name in sys.modules]); "
        "causal_arrow.load_model; print([name for name in heavy if name in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.split("\n")[:2] == ["[]", "['numpy']"]


def test_importing_the_package_takes_under_a_fifth_of_a_second() -> None:
    program = "import time; start = time.perf_counter(); import causal_arrow; print(time.perf_counter() - start)"
    runs = [
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True) for _ in range(5)
    ]
    assert min(float(run.stdout) for run in runs) < 0.2


def test_every_public_name_can_be_had() -> None:
    for name in causal_arrow.__all__:
        assert getattr(causal_arrow, name) is not None


def test_no_two_classes_have_one_name() -> None:
    sources = [*PACKAGE.sources, *(Path(__file__).parents[1] / "lab" / "src").rglob("*.py")]
    homes: dict[str, list[str]] = {}
    for path in sources:
        for statement in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(statement, ast.ClassDef):
                homes.setdefault(statement.name, []).append(str(path))
    assert {name: paths for name, paths in homes.items() if len(paths) > 1} == {}
