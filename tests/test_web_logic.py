"""What the page computes by itself: static/logic.js, run in node."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import causal_arrow

LOGIC = Path(causal_arrow.__file__).parent / "web" / "static" / "logic.js"
NODE = shutil.which("node")

pytestmark = pytest.mark.skipif(NODE is None, reason="there is no node")


def computed(expression: str) -> Any:
    """What an expression gives that may use everything in logic.js, as JSON."""
    program = f"{LOGIC.read_text(encoding='utf-8')}\nconsole.log(JSON.stringify({expression}));"
    assert NODE is not None
    done = subprocess.run([NODE, "--input-type=module", "-"], input=program, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


EDGES = "[['a','b'],['b','c'],['a','c'],['d','c'],['c','e']].map(([source, target]) => ({ source, target }))"


def test_edges_on_paths_are_those_between_cause_and_effect() -> None:
    found = computed(f"edgesOnPaths({EDGES}, 'a', 'c').map((edge) => edge.source + edge.target)")
    assert found == ["ab", "bc", "ac"]
    assert computed(f"edgesOnPaths({EDGES}, 'c', 'a')") == []
    assert computed(f"edgesOnPaths({EDGES}, 'constructor', 'c')") == []


def test_neighbors_grow_with_the_steps_in_either_direction() -> None:
    for steps, names in ((0, "d"), (1, "cd"), (2, "abcde")):
        assert computed(f"[...around({EDGES}, 'd', {steps})].sort().join('')") == names


@pytest.mark.parametrize("shares", [[0.335, 0.335, 0.33], [0.005, 0.995, 0.0], [1 / 3, 1 / 3, 1 / 3], [1, 0, 0]])
def test_shares_with_two_digits_sum_to_one(shares: list[float]) -> None:
    shown = computed(f"inHundredths({json.dumps(shares)})")
    assert sum(round(100 * float(each)) for each in shown) == 100
    assert all(abs(float(each) - share) < 0.01 for each, share in zip(shown, shares, strict=True))


@pytest.mark.parametrize("name", ["__proto__", "constructor", "toString"])
def test_mappings_hold_names_that_every_object_has(name: str) -> None:
    assert computed(f"entryOf({{}}, {name!r}) === undefined")
    filled = f"withEntry({{ a: 'x' }}, {name!r}, 'y')"
    assert computed(f"[entryOf({filled}, {name!r}), Object.keys({filled})]") == ["y", ["a", name]]
    assert computed(f"withoutEntry({filled}, {name!r})") == {"a": "x"}


def test_a_first_click_is_a_cause_a_second_its_effect_a_third_begins_anew() -> None:
    clicks = "['a', 'b', 'c', 'c', 'd'].map((name) => (question = clicked(question, name)))"
    found = computed(f"(() => {{ let question = {{ cause: '', effect: '' }}; return {clicks}; }})()")
    assert [(each["cause"], each["effect"]) for each in found] == [
        ("a", ""), ("a", "b"), ("c", ""), ("c", ""), ("c", "d")
    ]  # fmt: skip


def test_a_pattern_means_letters_not_expressions() -> None:
    names = "['age', 'lab_a', 'lab.b', 'LAB_c', 'x']"
    assert computed(f"matching('lab_*, x', {names})") == ["lab_a", "LAB_c", "x"]
    assert computed(f"matching('lab.*', {names})") == ["lab.b"]
    assert computed(f"matching(' , ', {names})") == []
    assert len(computed(f"matching('*', {names})")) == 5


def test_a_step_that_is_not_taken_leaves_the_history_as_it_was() -> None:
    program = """(() => {
        const history = new History();
        history.add(1); history.add(2);
        const seen = [history.next('undo'), history.past.length];
        history.took('undo', 3);
        seen.push(history.next('undo'), history.next('redo'));
        history.took('redo', 2);
        seen.push(history.next('undo'), history.next('redo') ?? null);
        return seen;
    })()"""
    assert computed(program) == [2, 2, 1, 3, 2, None]


GRAPH = """{ order: ['a1', 'a2', 'b', 'c'], variables: ['b', 'c', 'a2', 'a1'],
    edges: [['a1', 'a2', 0.9], ['a1', 'b', 0.6], ['a2', 'b', 0.8], ['c', 'a1', 0.7]]
        .map(([source, target, probability]) => ({ source, target, probability })),
    hidden_causes: [{ variables: ['a1', 'b'], probability: 0.6 }, { variables: ['b', 'a2'], probability: 0.9 }] }"""


def test_a_group_has_the_most_probable_of_the_edges_of_its_variables() -> None:
    drawn = computed(f"collapsed({GRAPH}, [{{ name: 'a', members: ['a1', 'a2'] }}])")
    assert drawn["variables"] == ["a", "b", "c"]
    assert [(each["source"], each["target"], each["probability"]) for each in drawn["edges"]] == [
        ("a", "b", 0.8), ("c", "a", 0.7)
    ]  # fmt: skip
    assert drawn["edges"][0]["pair"] == {"source": "a2", "target": "b"}
    assert [(each["variables"], each["probability"]) for each in drawn["hidden_causes"]] == [(["a", "b"], 0.9)]


def test_a_group_has_a_name_of_its_own_and_variables_that_are_in_no_other() -> None:
    assert computed("grouped(' a* ', ['a1', 'a2', 'b'], [])") == {"name": "a* (2)", "members": ["a1", "a2"]}
    assert computed("grouped('a1, a2', ['a1', 'a2', 'a1, a2 (2)'], []).name") == "a1, a2 (2)′"
    assert computed("grouped('*', ['a', 'b', 'c'], [{ name: '*', members: ['a', 'b'] }])") is None
    two = "[{ name: 'a* (2)', members: ['a1', 'a2'] }]"
    assert computed(f"grouped('a*', ['a1', 'a2', 'a3', 'a4'], {two})") == {"name": "a* (2)′", "members": ["a3", "a4"]}


def test_a_field_of_one_line_means_names_with_line_breaks_too() -> None:
    assert computed(r"['AB', 'x', 'y'].map((value) => meant(value, ['A\nB', 'x', '\r\nx']))") == ["A\nB", "x", "y"]


@pytest.mark.parametrize(("low", "high"), [(1, 3560), (0.02, 0.9), (-900, -0.3), (2, 3), (1e-6, 1e9)])
def test_a_log_scale_keeps_the_order_and_names_powers_of_ten_between_its_ends(low: float, high: float) -> None:
    first, *inside, last = computed(f"ticksOf({low}, {high}, true)")
    assert [first, *sorted(inside), last] == [low, *inside, high]
    assert len(inside) <= 3
    places = computed(f"{json.dumps([low, *inside, high])}.map((value) => onScale(value, true))")
    assert places == sorted(places)
    assert all(abs(place - round(place)) < 1e-9 for place in places[1:-1])
    assert computed(f"ticksOf({low}, {high}, false)") == [low, high]


def test_a_place_in_a_matrix_is_a_cell_of_it_or_nothing() -> None:
    assert computed("[cellAt(0, 0, 4), cellAt(0.99, 0.5, 4), cellAt(1, 0.5, 4), cellAt(0.5, -0.01, 4)]") == [
        [0, 0], [2, 3], None, None
    ]  # fmt: skip
