"""The files that say which version this is agree, and the check before a release notices what it is there to notice."""

from __future__ import annotations

import importlib.util
import re
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]
FILES = ("src/causal_arrow/_version.py", "CHANGELOG.md", "CITATION.cff")


@pytest.fixture(scope="module")
def release_check() -> ModuleType:
    spec = importlib.util.spec_from_file_location("release_check", ROOT / ".ci" / "release_check.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look up the module they are defined in
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The three files, to be changed."""
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def change(path: Path, pattern: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    changed = re.sub(pattern, new, text, count=1, flags=re.MULTILINE)
    assert changed != text
    path.write_text(changed, encoding="utf-8")


def released(checkout: Path, version: str = "9.8.7", date: str = "2030-01-02") -> Path:
    """The files as they are when a version is released."""
    change(checkout / FILES[0], r'^__version__ = ".+"$', f'__version__ = "{version}"')
    change(checkout / FILES[1], r"^## .+$", f"## {version} ({date})")
    change(checkout / FILES[2], r"^version: .+$", f"version: {version}\ndate-released: {date}")
    return checkout


def test_version_changelog_and_citation_agree(release_check: ModuleType) -> None:
    assert release_check.disagreements(ROOT) == []


def test_a_release_says_its_version_and_its_date_everywhere(release_check: ModuleType, checkout: Path) -> None:
    assert release_check.disagreements(released(checkout), final=True) == []


@pytest.mark.parametrize(
    ("name", "pattern", "new", "told"),
    [
        (FILES[0], r'"9\.8\.7"', '"9.8.8"', "CITATION.cff has version 9.8.7"),
        (FILES[0], r'"9\.8\.7"', '"9.8.7.dev1"', "9.8.7.dev1 is a development version"),
        (FILES[1], r"^## 9\.8\.7 .*$", "## 9.8.7 (unreleased)", 'expected "9.8.7 (2030-01-02)"'),
        (FILES[2], r"^date-released: .*$", "", 'expected "9.8.7 (YYYY-MM-DD)"'),
        (FILES[2], r"^version: .*$", "version: 9.8.6", "CITATION.cff has version 9.8.6"),
    ],
)
def test_a_file_that_was_forgotten_is_named(
    release_check: ModuleType, checkout: Path, name: str, pattern: str, new: str, told: str
) -> None:
    change(released(checkout) / name, pattern, new)
    assert told in " ".join(release_check.disagreements(checkout, final=True))


def test_a_wheel_without_weights_or_with_tests_is_noticed(release_check: ModuleType) -> None:
    whole = list(release_check.BELONGS_INSIDE)
    assert release_check.complaints(whole, 1_000_000) == []
    assert (
        "lacks causal_arrow/network/weights"
        in release_check.complaints([name for name in whole if "arrow-base" not in name], 1_000_000)[0]
    )
    for stray in ("tests/test_cli.py", "causal_arrow/docs/records/effects.jsonl.gz", "causal_arrow/test_cli.py"):
        assert stray in release_check.complaints([*whole, stray], 1_000_000)[0]
    assert "100.0 MB" in release_check.complaints(whole, 100_000_000)[0]


def test_no_field_of_the_citation_is_there_twice() -> None:
    """Each field of CITATION.cff once: readers of YAML keep the last of two without a word."""
    fields = re.findall(r"^([a-z-]+):", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(fields) == len(set(fields))
    assert {"cff-version", "message", "title", "authors", "version", "license", "references"} <= set(fields)
