"""Public functions check what Python hands them by one mechanism: each argument against its annotation."""

from __future__ import annotations

import inspect
import types
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import causal_arrow
from causal_arrow.errors import ConfigurationError
from causal_arrow.inputs import as_list, checked

Words = Mapping[str, str]


@checked
def asked(
    whole: int = 1,
    number: float | None = 0.5,
    name: str = "flexible",
    flag: bool = False,
    names: Sequence[str] | str | None = None,
    path: str | Path = "a.csv",
    mapping: Mapping[str, Any] | None = None,
    anything: Any = None,
    **more: Any,
) -> tuple[Any, ...]:
    return whole, number, name, flag, names, path, mapping, anything, more


class Mute:
    """An object that fails to describe itself, to count and to compare."""

    def __repr__(self) -> str:
        raise RuntimeError

    __str__ = __repr__
    __len__ = __iter__ = __bool__ = __eq__ = __repr__  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"whole": 1.5}, "Expected whole to be a whole number, such as 1, got 1.5."),
        ({"whole": True}, "Expected whole to be a whole number, such as 1, got True."),
        ({"whole": 2**70}, "whole number"),
        ({"whole": np.array(5)}, "whole number"),
        ({"number": 10**400}, "Expected number to be a number or None, such as 0.5, got 1000"),
        ({"number": float("nan")}, "got nan"),
        ({"number": Decimal("sNaN")}, "got Decimal('sNaN')"),
        ({"name": pd.NA}, "Expected name to be text, such as 'flexible', got <NA>."),
        ({"name": Mute()}, "Expected name to be text, such as 'flexible', got a value of type Mute."),
        ({"flag": 1}, "true or false"),
        ({"names": [1]}, "Expected names to be a list of names or text or None, got [1]."),
        ({"names": Mute()}, "a value of type Mute"),
        ({"path": "\ud800"}, r"Expected path to be text or a path, such as 'a.csv', got '\ud800'."),
        ({"mapping": []}, "a mapping or None"),
    ],
)
def test_an_argument_of_the_wrong_kind_is_one_sentence(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        asked(**given)
    assert sentence in str(refused.value)
    assert len(str(refused.value)) < 200


def test_numbers_of_numpy_become_those_of_python_and_collections_become_lists() -> None:
    whole, number, _, flag, names, *_ = asked(np.int64(3), np.float32(0.5), flag=np.True_, names=np.array(["a", "b"]))
    assert [type(value) for value in (whole, number, flag, names)] == [int, float, bool, list]
    assert asked(names=pd.Index(["a"]))[4] == ["a"]
    odd = Mute()
    assert asked(anything=odd, other=odd)[-2] is odd


def test_arguments_too_many_or_too_few_are_still_pythons_errors() -> None:
    with pytest.raises(TypeError, match="positional"):
        asked(*range(20))


def test_aliases_are_not_checked_although_they_are_classes_to_python_3_10(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspect, "isclass", lambda value: isinstance(value, type | types.GenericAlias))

    @checked
    def worded(words: Words) -> int:
        return len(words)

    assert worded({"keep": "keep"}) == 1


def test_as_list_has_an_answer_for_everything() -> None:
    assert [as_list(value) for value in ("ab", b"ab", {"a": 1}, 5, None, np.array(5), Mute())] == [None] * 7
    assert as_list((1, 2)) == as_list(np.array([1, 2])) == as_list(pd.Series([1, 2])) == [1, 2]


def test_every_public_function_and_class_of_questions_is_checked() -> None:
    for name in ("discover", "discover_many", "load_example", "load_model", "read_table"):
        assert hasattr(getattr(causal_arrow, name), "__wrapped__"), name
    for kind in ("Answer", "Discovery", "ReadOptions", "SeriesDiscovery", "Settings"):
        assert hasattr(getattr(causal_arrow, kind).__init__, "__wrapped__"), kind
