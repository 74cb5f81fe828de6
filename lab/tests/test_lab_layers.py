"""The layers of the lab: imports only go down, and training needs torch, numpy and safetensors alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import causal_arrow_lab
from layers import Package, imports_of

PACKAGE = Package.of(
    causal_arrow_lab,
    {
        "_version": 0,
        "batches": 0,
        "programs": 0,
        "skeleton_order": 1,
        "synthetic": 1,
        "network": 2,
        "pretraining": 3,
        "benchmarks": 4,
        "cli": 5,
        "__main__": 6,
    },
)

BARE = {"programs", "skeleton_order", "synthetic", "network", "pretraining"}
"""Parts that run on a GPU machine with torch, numpy and safetensors alone."""

LIGHT = set(sys.stdlib_module_names) | {"torch", "numpy", "safetensors", "tomli", "triton"}
OF_THE_PRODUCT = {
    "_version",
    "batches",
    "errors",
    "graphs",
    "inputs",
    "network",
    "output",
    "progress",
    "storage",
    "text",
}
"""Parts of causal_arrow that need no more either; see tests/test_layers.py."""

HIDDEN = (
    *("pandas", "scipy", "sklearn", "networkx", "matplotlib", "typer", "rich", "causallearn", "pyarrow"),
    *("joblib", "threadpoolctl"),
)

WITHOUT = f"""
import sys

class Without:
    def __init__(self, finder):
        self.finder = finder
    def find_spec(self, name, path=None, target=None):
        return None if name.partition(".")[0] in {HIDDEN} else self.finder.find_spec(name, path, target)
    def __getattr__(self, name):
        return getattr(self.finder, name)

sys.meta_path[:] = [Without(finder) for finder in sys.meta_path]
"""
"""A program that begins like this has no package but torch, numpy and safetensors."""


def named(path: Path) -> str:
    return path.relative_to(PACKAGE.folder).as_posix()


@pytest.mark.parametrize("path", PACKAGE.sources, ids=named)
def test_imports_only_go_down(path: Path) -> None:
    PACKAGE.check_layers(path)


@pytest.mark.parametrize("path", PACKAGE.sources, ids=named)
def test_internals_are_imported_in_their_own_folder_only(path: Path) -> None:
    PACKAGE.check_internals(path)


@pytest.mark.parametrize("part", PACKAGE.folders)
def test_imports_inside_a_package_have_no_cycle(part: str) -> None:
    PACKAGE.check_cycles(part)


@pytest.mark.parametrize("path", [path for path in PACKAGE.sources if PACKAGE.part_of(path) in BARE], ids=named)
def test_what_trains_needs_only_torch_numpy_and_safetensors(path: Path) -> None:
    for name in imports_of(path):
        top, part, *_ = [*name.split("."), ""]
        assert top in {*LIGHT, "causal_arrow", "causal_arrow_lab"}, f"{path.name} imports {top}"
        assert top != "causal_arrow" or part in OF_THE_PRODUCT, f"{path.name} imports causal_arrow.{part}"


def bare(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program where no other package is to be found."""
    return subprocess.run(
        [sys.executable, "-c", WITHOUT + program, *arguments], capture_output=True, text=True, check=False
    )


def test_pretraining_runs_on_a_bare_machine(tmp_path: Path) -> None:
    program = "from causal_arrow_lab.pretraining.__main__ import main\nsys.exit(main(sys.argv[1:]))"
    small = ("validation.tasks=2", "validation.shapes=[[20,3]]", "optimization.steps=1", "batch.work_per_slot=500")
    changes = [word for change in small for word in ("--set", change)]
    done = bare(program, "smoke", "--device", "cpu", "--output", str(tmp_path / "run"), *changes)
    assert done.returncode == 0, done.stderr[-2000:]
    assert (tmp_path / "run" / "weights" / "model.safetensors").exists()


def test_the_benchmark_of_arrow_runs_on_a_bare_machine() -> None:
    program = """
from causal_arrow_lab.benchmarks.__main__ import main
from causal_arrow_lab.benchmarks.methods import MethodOptions
from causal_arrow_lab.benchmarks.worker import options_to_json, run_job
job = {"suite": "sachs", "row": "pooled-raw", "index": 0, "method": "arrow"}
print(run_job({**job, "options": options_to_json(MethodOptions())})["status"])
"""
    done = bare(program)
    assert done.stdout.strip() == "ok", done.stderr[-2000:]


def test_importing_the_lab_loads_no_heavy_module() -> None:
    program = (
        "import sys, causal_arrow_lab; dir(causal_arrow_lab); "
        "print([name for name in ('torch', 'numpy', 'pandas', 'typer') if name in sys.modules]); "
        "causal_arrow_lab.TaskDistribution; print('torch' in sys.modules)"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.split("\n")[:2] == ["[]", "True"]


def test_every_public_name_can_be_had() -> None:
    for name in causal_arrow_lab.__all__:
        assert getattr(causal_arrow_lab, name) is not None
