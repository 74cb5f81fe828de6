"""The reference is complete and true: every public member is described, and all examples run."""

from __future__ import annotations

import ast
import dataclasses
import doctest
import importlib
import inspect
import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import causal_arrow
from agreement import disagreement
from causal_arrow.network import bundled_models
from docs_scripts import load_script

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "causal_arrow"
REFERENCE = ROOT / "docs" / "reference"
PUBLIC = sorted(set(causal_arrow.__all__) - {"__version__"})
RESULTS = (
    "discovery.answer.DirectedEdge",
    "discovery.answer.HiddenCause",
    "discovery.causes.ProbableCauses",
    "discovery.effects.effect.Effect",
    "discovery.effects.effect.Effects",
    "discovery.effects.experiments.Experiment",
    "discovery.effects.experiments.ExperimentPlan",
    "discovery.effects.falsification.Falsification",
    "discovery.second_opinion.Opinion",
    "discovery.second_opinion.SecondOpinion",
    "discovery.uncertainty.EdgeStability",
    "graphs.beliefs.Belief",
    "graphs.beliefs.WeighedBelief",
    "graphs.dag.CausalGraph",
    "graphs.files.NamedGraph",
    "graphs.files.read_graph",
    "series.answer.LaggedEdge",
    "series.answer.SeriesAnswer",
    "series.responses.Curve",
    "series.responses.Curves",
    "series.SeriesOptions",
    "series.reading.Series",
    "tables.report.TableReport",
    "tables.report.inspect_table",
    "tables.table.Abilities",
    "tables.table.Column",
    "tables.table.Finding",
    "tables.table.Table",
)
"""What public functions return, by paths inside the package: people read these objects and do not make them."""
TOOLBOXES = ("graphs.dag", "graphs.metrics")
"""Modules whose functions people call on graphs of their own."""
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def members(owner: type) -> dict[str, Any]:
    """The methods and properties that our own classes give to a public class, by name; those of the class first."""
    found: dict[str, Any] = {}
    for base in owner.__mro__:
        if base.__module__.startswith("causal_arrow"):
            for name, member in vars(base).items():
                described = isinstance(member, property | cached_property | classmethod | staticmethod)
                if not name.startswith("_") and (described or inspect.isfunction(member)):
                    found.setdefault(name, member)
    return found


def function_of(member: Any) -> Any:
    """What is called when a method is called or a property is read."""
    if isinstance(member, property):
        return member.fget
    if isinstance(member, cached_property):
        return member.func
    return member.__func__ if isinstance(member, classmethod | staticmethod) else member


def named(name: str) -> Any:
    """A public name, or a path inside the package."""
    if name in PUBLIC:
        return getattr(causal_arrow, name)
    module, _, member = name.rpartition(".")
    return getattr(importlib.import_module(f"causal_arrow.{module}"), member)


def functions_of(toolbox: str) -> list[str]:
    """The public functions of a module, by paths inside the package."""
    module = importlib.import_module(f"causal_arrow.{toolbox}")
    own = [
        name
        for name, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == module.__name__
    ]
    return [f"{toolbox}.{name}" for name in own if not name.startswith("_")]


ALL = (*PUBLIC, *RESULTS, *(name for toolbox in TOOLBOXES for name in functions_of(toolbox)))


def documented() -> Iterator[tuple[str, Any, str]]:
    """Name, what is called, and docstring of everything public."""
    for name in ALL:
        public = named(name)
        yield name, public, inspect.getdoc(public) or ""
        if inspect.isclass(public):
            for member, value in members(public).items():
                called = function_of(value)
                yield f"{name}.{member}", called, inspect.getdoc(called) or ""


def section(docstring: str, title: str) -> str | None:
    """What stands under a title of a numpydoc docstring; None without it."""
    found = re.search(rf"^{title}\n-+\n(.*?)(?=\n\n\S[^\n]*\n-+\n|\Z)", docstring, re.MULTILINE | re.DOTALL)
    return None if found is None else found[1]


def parameters(called: Any) -> list[str]:
    """The names of the parameters, with their stars."""
    if inspect.isclass(called) and issubclass(called, Warning):
        return []
    signature = inspect.signature(called.__init__ if inspect.isclass(called) else called)
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    entries = [entry for entry in signature.parameters.values() if entry.name not in ("self", "cls")]
    return [stars.get(entry.kind, "") + entry.name for entry in entries]


@pytest.mark.parametrize(("name", "called", "docstring"), [pytest.param(*entry, id=entry[0]) for entry in documented()])
def test_every_public_member_is_described_and_its_parameters_are_its_own(
    name: str, called: Any, docstring: str
) -> None:
    assert docstring, f"{name} is not described"
    if inspect.isclass(called) and name in RESULTS:
        told = load_script("make_keys").descriptions(called)
        assert [field.name for field in dataclasses.fields(called) if field.name not in told] == [], name
    titles = re.findall(r"^(\*{0,2}\w+(?:, \w+)*)(?: : .*)?$", section(docstring, "Parameters") or "", re.MULTILINE)
    described = [parameter for title in titles for parameter in title.split(", ")]
    own = parameters(called) if described else []
    assert described == [parameter for parameter in own if parameter in described], f"the Parameters of {name}"


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_shows_an_example(name: str) -> None:
    assert ">>>" in (section(inspect.getdoc(named(name)) or "", "Examples") or ""), f"{name} has no example"


@pytest.mark.parametrize("toolbox", TOOLBOXES)
def test_the_examples_of_a_toolbox_call_every_function(toolbox: str) -> None:
    module = importlib.import_module(f"causal_arrow.{toolbox}")
    examples = section(inspect.getdoc(module) or "", "Examples") or ""
    called = {f"{toolbox}.{name}" for name in re.findall(rf"{toolbox.partition('.')[2]}\.(\w+)\(", examples)}
    assert set(functions_of(toolbox)) <= called


def examples_of(public: Any) -> list[doctest.DocTest]:
    """The examples of a class or function and of all members, in the order of the page."""
    finder = doctest.DocTestFinder(recurse=False)
    found = finder.find(public, public.__name__)
    if inspect.isclass(public):
        for name, member in members(public).items():
            found += finder.find(function_of(member), f"{public.__name__}.{name}")
    return found


class AnyProcessor(doctest.OutputChecker):
    """Takes what another processor may print, see docs/tools/agreement.py."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        return super().check_output(want, got, optionflags) or disagreement(want, got) is None


def run(tests: list[doctest.DocTest]) -> None:
    """Run examples one after the other in one namespace."""
    namespace: dict[str, Any] = {}
    failures: list[str] = []
    for test in tests:
        test.globs = namespace
        runner = doctest.DocTestRunner(AnyProcessor(), optionflags=OPTIONS, verbose=False)
        runner.run(test, out=failures.append, clear_globs=False)
    assert not failures, "\n".join(failures)


@pytest.fixture
def with_weights(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if "arrow-base" not in bundled_models():
        pytest.skip("needs the networks that come with the package")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")


@pytest.mark.usefixtures("with_weights", "network_with_noise")
@pytest.mark.filterwarnings("ignore::causal_arrow.errors.ArrowWarning")
@pytest.mark.parametrize("name", ALL)
def test_the_examples_run_from_top_to_bottom_and_print_what_they_say(name: str) -> None:
    run(examples_of(named(name)))


def modules_with_examples() -> list[str]:
    """The modules whose own docstring has examples."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        if ">>>" in (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""):
            found.append(".".join(("causal_arrow", *path.relative_to(PACKAGE).with_suffix("").parts)))
    return found


@pytest.mark.usefixtures("with_weights", "network_with_noise")
@pytest.mark.parametrize("name", modules_with_examples())
def test_the_examples_of_a_module_run(name: str) -> None:
    module: ModuleType = importlib.import_module(name)
    run(doctest.DocTestFinder(recurse=False).find(module, name))


@pytest.mark.parametrize(("name", "docstring"), [pytest.param(n, d, id=n) for n, _, d in documented()])
def test_the_lines_of_an_example_fit_on_a_page_of_1280_pixels(name: str, docstring: str) -> None:
    long = [line for line in docstring.splitlines() if line.startswith((">>>", "...")) and len(line) > 79]
    assert not long, f"{name}: {long}"


def pages() -> dict[str, list[str]]:
    """What each page of the reference documents, by paths."""
    return {
        page.name: re.findall(r"^::: (\S+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
        for page in sorted(REFERENCE.glob("*.md"))
    }


def test_every_public_name_is_on_one_page_of_the_reference_by_its_public_path() -> None:
    documented = [path for paths in pages().values() for path in paths]
    for name in PUBLIC:
        assert documented.count(f"causal_arrow.{name}") == 1, f"causal_arrow.{name}"
        assert f"{causal_arrow._HOME[name]}.{name}" not in documented, f"{name} is there by a path nobody imports"


@pytest.mark.parametrize("path", [path for paths in pages().values() for path in paths])
def test_what_a_page_documents_exists(path: str) -> None:
    module, _, member = path.rpartition(".")
    try:
        importlib.import_module(path)
    except ModuleNotFoundError:
        assert hasattr(importlib.import_module(module), member), f"there is no {path}"


def test_the_overview_links_to_every_page_of_the_reference() -> None:
    overview = (REFERENCE / "index.md").read_text(encoding="utf-8")
    linked = set(re.findall(r"\]\(([\w-]+\.md)\)", overview))
    assert linked == set(pages()) - {"index.md"}


def test_the_pages_of_the_command_lines_are_what_the_programs_say() -> None:
    for path, text in load_script("make_cli").pages().items():
        assert path.read_text(encoding="utf-8") == text, "write it anew: python docs/tools/make_cli.py"
