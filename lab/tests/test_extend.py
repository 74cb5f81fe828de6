"""The pages on extending the package and on its settings are true; tests/test_code_blocks.py runs the examples."""

from __future__ import annotations

import dataclasses
import re
from types import ModuleType

import pytest

from causal_arrow_lab.network.model import ENCODERS
from causal_arrow_lab.pretraining import config
from docs_scripts import DOCS, load_script


def sections() -> dict[str, str]:
    """The Python of each section, its blocks put together."""
    text = (DOCS / "model" / "extend.md").read_text(encoding="utf-8")
    titled = re.split(r"^## (.*)$", text, flags=re.MULTILINE)[1:]
    return {
        title: "\n".join(re.findall(r"```python\n(.*?)```", body, flags=re.DOTALL))
        for title, body in zip(titled[::2], titled[1::2], strict=True)
    }


def test_there_is_an_example_of_a_method_a_mechanism_and_an_encoder() -> None:
    for word, title in zip(("method", "mechanism", "encoder"), sections(), strict=True):
        assert word in title
        assert len(sections()[title]) > 500


@pytest.fixture(scope="module")
def make_keys() -> ModuleType:
    return load_script("make_keys")


def test_the_page_of_settings_is_what_the_dataclasses_say(make_keys: ModuleType) -> None:
    page = (DOCS / "reference" / "pretraining-keys.md").read_text(encoding="utf-8")
    assert page == make_keys.page(), "write it anew: python docs/tools/make_keys.py"


def test_every_setting_is_described_in_the_source(make_keys: ModuleType) -> None:
    nested = [
        type(section) for section in vars(config.PretrainingConfig()).values() if dataclasses.is_dataclass(section)
    ]
    settings = [kind for kind in nested if kind is not config.ArrowConfig]
    for section in (config.PretrainingConfig, *settings, *(kind.config for kind in ENCODERS.values())):
        told = make_keys.descriptions(section)
        assert [field.name for field in dataclasses.fields(section) if field.name not in told] == [], section
