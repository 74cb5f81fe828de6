"""The examples in docstrings of the lab print what they say."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

import causal_arrow_lab

PACKAGE = Path(causal_arrow_lab.__file__).parent
WITH_EXAMPLES = [path for path in sorted(PACKAGE.rglob("*.py")) if ">>> " in path.read_text(encoding="utf-8")]


def test_some_docstrings_have_examples() -> None:
    assert WITH_EXAMPLES


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=lambda path: path.stem)
def test_examples_print_what_they_say(path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)  # an example may save a model
    name = ".".join(["causal_arrow_lab", *path.relative_to(PACKAGE).with_suffix("").parts])
    failed, tried = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert tried > 0
    assert failed == 0
