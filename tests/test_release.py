"""The files that say which version this is agree, and the check before a release notices what it is there to notice."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from causal_arrow import Arrow
from causal_arrow.network import bundled_models
from causal_arrow_lab.benchmarks.methods.protocol import file_checksum
from causal_arrow_lab.benchmarks.records import Record, write_packed
from causal_arrow_lab.benchmarks.suites import SUITES
from docs_scripts import load_script

ROOT = Path(__file__).parents[1]
FILES = ("src/causal_arrow/_version.py", "CHANGELOG.md", "CITATION.cff", "lab/src/causal_arrow_lab/_version.py")


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
    for name in (FILES[0], FILES[3]):
        change(checkout / name, r'^__version__ = ".+"$', f'__version__ = "{version}"')
    change(checkout / FILES[1], r"^## .+$", f"## {version} ({date})")
    change(checkout / FILES[2], r"^version: .+$(\ndate-released: .+$)?", f"version: {version}\ndate-released: {date}")
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
        (FILES[3], r'"9\.8\.7"', '"9.8.8"', "lab/src/causal_arrow_lab/_version.py has version 9.8.8"),
        (FILES[2], r"^version: .*$", "version: 9.8.6", "CITATION.cff has version 9.8.6"),
    ],
)
def test_a_file_that_was_forgotten_is_named(
    release_check: ModuleType, checkout: Path, name: str, pattern: str, new: str, told: str
) -> None:
    change(released(checkout) / name, pattern, new)
    assert told in " ".join(release_check.disagreements(checkout, final=True))


# The frozen suite


def with_held_out(checkout: Path, **changes: Any) -> Path:
    """The checkout with other weights, and with made-up records of the frozen suite: 100 datasets of each row."""
    weights = checkout / "src/causal_arrow/network/weights/arrow-base/model.safetensors"
    weights.parent.mkdir(parents=True)
    weights.write_bytes(b"made up")
    settings = {"weights_checksum": file_checksum(weights), **changes.pop("settings", {})}
    facts = {"method": "arrow", "settings": settings, "versions": {"causal-arrow": "9.8.7"}, "status": "ok", **changes}
    datasets = facts.pop("datasets", 100)
    dataset = {"observations": 100, "variables": 10, "edges": 9}
    write_packed(
        [
            Record(**{"suite": "held-out", "row": row.name, "index": index, "dataset": dataset, **facts})
            for row in SUITES["held-out"].rows()
            for index in range(datasets)
        ],
        checkout / "docs/evidence/records/held-out.jsonl.gz",
    )
    return checkout


def test_a_release_has_run_the_frozen_suite_with_its_version_and_its_weights(
    release_check: ModuleType, checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(release_check, "ROOT", with_held_out(released(checkout)))
    assert release_check.main(["--final", "held-out"]) == 0
    assert "held-out: run with 9.8.7" in capsys.readouterr().out


def test_a_dataset_on_which_arrow_failed_is_a_result_too(release_check: ModuleType, checkout: Path) -> None:
    failed = with_held_out(released(checkout), status="failed", error="Out of memory.")
    assert release_check.lacks_held_out(failed) == ""


@pytest.mark.parametrize(
    "changes",
    [
        {"versions": {"causal-arrow": "9.8.6"}},
        {"versions": {"causal-arrow": "9.8.7.dev0"}},
        {"settings": {"weights_checksum": "0123456789ab"}},
        {"settings": {"scale": "given"}},
        {"method": "empty"},
        {"method": "arrow:arrow-strict"},
        {"suite": "shifted"},
        {"row": "all"},  # one row alone
        {"datasets": 99},
        None,  # no file at all
    ],
)
def test_a_release_without_the_frozen_suite_is_refused_and_told_what_to_run(
    release_check: ModuleType,
    checkout: Path,
    changes: dict[str, Any] | None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with_held_out(released(checkout), **(changes or {}))
    if changes is None:
        (checkout / "docs/evidence/records/held-out.jsonl.gz").unlink()
    monkeypatch.setattr(release_check, "ROOT", checkout)
    told = "The suite held-out has not been run with causal-arrow 9.8.7 and the bundled weights"
    command = "run `causal-arrow-lab benchmark held-out --methods arrow --datasets 100 --output held-out-records`"
    assert release_check.main(["--final", "held-out"]) == 1
    refused = capsys.readouterr().out
    assert f"held-out: NOT FIT. {told}" in refused
    assert command in refused
    assert release_check.main(["held-out"]) == 0  # which only says so
    assert f"held-out: Needed for --final. {told}" in capsys.readouterr().out


def test_a_development_version_is_not_told_to_run_the_frozen_suite(release_check: ModuleType, checkout: Path) -> None:
    with_held_out(released(checkout, version="9.8.8.dev0"))
    assert ": set the version of the release, run `" in release_check.lacks_held_out(checkout)


def test_the_command_that_is_named_is_one_that_the_program_knows(release_check: ModuleType, checkout: Path) -> None:
    with_held_out(released(checkout), datasets=1)
    words = re.findall(r"`causal-arrow-lab (.+?)`", release_check.lacks_held_out(checkout))[0].split()
    told = [sys.executable, "-m", "causal_arrow_lab", words[0], "--help"]  # nothing is run
    known = subprocess.run(told, capture_output=True, text=True, check=True).stdout
    assert {word for word in words if word.startswith("--")} <= set(re.findall(r"--[a-z-]+", known))


@pytest.mark.parametrize("package", ["causal_arrow", "causal_arrow_lab"])
def test_a_wheel_that_lacks_something_or_holds_too_much_is_noticed(package: str, release_check: ModuleType) -> None:
    whole = [name for name in release_check.BELONGS_INSIDE if name.startswith(f"{package}/")]
    assert release_check.complaints(package, whole, 1_000_000) == []
    assert f"lacks {whole[1]}" in release_check.complaints(package, [whole[0], *whole[2:]], 1_000_000)[0]
    strays = ("tests/test_cli.py", f"{package}/docs/records/effects.jsonl.gz", f"{package}/test_cli.py", "other/a.py")
    for stray in strays:
        assert stray in release_check.complaints(package, [*whole, stray], 1_000_000)[0]
    assert "100.0 MB" in release_check.complaints(package, whole, 100_000_000)[0]


def test_no_field_of_the_citation_is_there_twice() -> None:
    """Each field of CITATION.cff once: readers of YAML keep the last of two without a word."""
    fields = re.findall(r"^([a-z-]+):", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(fields) == len(set(fields))
    assert {"cff-version", "message", "title", "authors", "version", "license", "references"} <= set(fields)


# Publishing


def test_a_source_distribution_has_the_same_bytes_whenever_it_was_packed(
    release_check: ModuleType, tmp_path: Path
) -> None:
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "a.txt").write_text("a")
    (tmp_path / "made" / "run").write_text("#!/bin/sh")
    (tmp_path / "made" / "run").chmod(0o755)
    packed = []
    for time, order in ((1_000_000_000, ("a.txt", "run")), (1_500_000_000, ("run", "a.txt"))):
        path = tmp_path / f"{time}.tar.gz"
        with tarfile.open(path, "w:gz") as archive:
            for name in order:
                os.utime(tmp_path / "made" / name, (time, time))
                archive.add(tmp_path / "made" / name, name)
        release_check.make_reproducible(path, 1_700_000_000)
        packed.append(path.read_bytes())
    assert packed[0] == packed[1]
    with tarfile.open(path) as archive:
        assert archive.extractfile("a.txt").read() == b"a"  # type: ignore[union-attr]
        assert {member.name: member.mode for member in archive} == {"a.txt": 0o644, "run": 0o755}


def test_a_copy_of_the_weights_for_the_hub_gives_the_same_answer_and_has_a_card(tmp_path: Path) -> None:
    hub = load_script("hub")
    assert hub.main([str(tmp_path)]) == 0
    for name in bundled_models():
        card = (tmp_path / name / "README.md").read_text(encoding="utf-8")
        assert card.startswith("---\nlicense: mit\n")
        assert f"# Model card: {name}" in card
        assert not re.search(r"\]\((?!https?:)", card)  # a link into documents that are not there
    table = np.random.default_rng(0).normal(size=(50, 3))
    answers = [
        Arrow(model=model).fit(table).answer_.edge_probabilities for model in ("arrow-base", tmp_path / "arrow-base")
    ]
    np.testing.assert_array_equal(*answers)


def test_vendored_files_have_the_hashes_on_record() -> None:
    folder = ROOT / "src" / "causal_arrow" / "web" / "static" / "vendor"
    record = (folder / "README.md").read_text(encoding="utf-8")
    for path in folder.glob("*.js"):
        assert hashlib.sha256(path.read_bytes()).hexdigest() in record
