"""Knowledge: what it says about edges, where it may come from, and what is refused."""

from __future__ import annotations

import json
from dataclasses import fields
from types import SimpleNamespace

import numpy as np
import pytest

from causal_arrow.errors import COMMAND_LINE, PYTHON, KnowledgeError
from causal_arrow.graphs.knowledge import Constraints, Knowledge, parse_edge

NAMES = ("age", "smoking", "tar", "cancer")


def edges(matrix: np.ndarray) -> set[tuple[str, str]]:
    return {(NAMES[j], NAMES[k]) for j, k in np.argwhere(matrix)}


def compiled(**knowledge: object) -> Constraints:
    return Knowledge(**knowledge).compile(NAMES)


def test_nothing_known_allows_every_graph():
    constraints = Knowledge().compile(NAMES)
    assert constraints.is_empty()
    assert constraints.allows(np.triu(np.ones((4, 4)), 1))


def test_required_edges_forbid_what_would_close_a_cycle_with_them():
    constraints = compiled(required=["smoking -> tar", ("tar", "cancer")])
    assert edges(constraints.required) == {("smoking", "tar"), ("tar", "cancer")}
    assert edges(constraints.precedence) == {("smoking", "tar"), ("tar", "cancer"), ("smoking", "cancer")}
    assert edges(constraints.forbidden) == {("tar", "smoking"), ("cancer", "tar"), ("cancer", "smoking")}


def test_forbidding_an_edge_leaves_the_opposite_direction_open():
    constraints = compiled(forbidden=[("cancer", "age")])
    assert edges(constraints.forbidden) == {("cancer", "age")}
    assert not constraints.precedence.any()


def test_tiers_forbid_edges_from_later_to_earlier_tiers_and_set_the_order():
    constraints = compiled(tiers=[["age"], ["smoking", "cancer"]])
    assert edges(constraints.forbidden) == {("smoking", "age"), ("cancer", "age")}
    assert edges(constraints.precedence) == {("age", "smoking"), ("age", "cancer")}


def test_roots_have_no_causes_and_leaves_no_effects():
    constraints = compiled(roots=["age"], leaves=["cancer"])
    into_age = {(name, "age") for name in NAMES if name != "age"}
    out_of_cancer = {("cancer", name) for name in NAMES if name != "cancer"}
    assert edges(constraints.forbidden) == into_age | out_of_cancer


def test_a_star_stands_for_every_variable_in_edges_and_pairs():
    constraints = compiled(forbidden=["* -> age", "cancer -> *"], no_hidden_cause=["tar <-> *"])
    assert constraints.is_same(
        compiled(
            roots=["age"], leaves=["cancer"], no_hidden_cause=[("tar", n) for n in NAMES[:2]] + [("tar", "cancer")]
        )
    )
    everyone = compiled(no_hidden_cause="all").unconfounded
    assert (everyone == ~np.eye(4, dtype=bool)).all()
    assert compiled(no_hidden_cause=["* <-> *"]).is_same(compiled(no_hidden_cause=["all"]))
    assert edges(~compiled(search_space=["* -> cancer"]).forbidden & ~np.eye(4, dtype=bool)) == {
        (name, "cancer") for name in NAMES[:3]
    }


def test_tiers_come_as_text_and_a_star_is_every_other_variable():
    assert Knowledge(tiers="age, smoking; tar;cancer").tiers == (("age", "smoking"), ("tar",), ("cancer",))
    assert Knowledge(temporal_order="age; *").tiers == (("age",), ("*",))
    assert compiled(tiers="age; *; cancer").is_same(compiled(tiers=[["age"], ["smoking", "tar"], ["cancer"]]))
    assert compiled(tiers=[["age", "*"], "cancer"]).is_same(compiled(tiers=[NAMES[:3], ["cancer"]]))
    assert Knowledge.from_dict(Knowledge(tiers="age; *").to_dict()) == Knowledge(tiers="age; *")


@pytest.mark.parametrize(
    ("knowledge", "words"),
    [
        ({"forbidden": "* -> age", "required": "tar -> age"}, "it is also forbidden"),
        ({"search_space": "tar -> *", "required": "age -> tar"}, "not in the search space"),
        ({"tiers": "age; *", "required": "tar -> age"}, "'tar' is in tier 2 and 'age' in the earlier tier 1"),
        ({"tiers": "*; *"}, "is in tiers 1 and 2"),
        ({"required": "* -> age"}, "between two named variables"),
        ({"roots": ["*"]}, "got '*'"),
    ],
)
def test_a_star_contradicts_what_it_stands_for(knowledge: dict, words: str):
    with pytest.raises(KnowledgeError, match=words.replace("*", r"\*")):
        Knowledge(**knowledge)


def test_only_edges_of_the_search_space_may_exist():
    constraints = compiled(search_space=[("smoking", "tar"), ("tar", "cancer")])
    assert edges(~constraints.forbidden & ~np.eye(4, dtype=bool)) == {("smoking", "tar"), ("tar", "cancer")}


def test_allows_finds_a_missing_required_and_a_present_forbidden_edge():
    constraints = compiled(required=["smoking -> tar"], forbidden=["age -> tar"])
    graph = np.zeros((4, 4), dtype=int)
    assert not constraints.allows(graph)
    graph[1, 2] = 1
    assert constraints.allows(graph)
    graph[0, 2] = 1
    assert not constraints.allows(graph)


def test_compiling_follows_the_order_of_the_columns():
    knowledge = Knowledge(required=["smoking -> tar"], tiers=[["age"], ["cancer"]], roots="age")
    shuffled = ("tar", "age", "cancer", "smoking")
    here, there = knowledge.compile(NAMES), knowledge.compile(shuffled)
    place = [shuffled.index(name) for name in NAMES]
    for matrix in ("required", "forbidden", "precedence"):
        assert np.array_equal(getattr(here, matrix), getattr(there, matrix)[np.ix_(place, place)])


@pytest.mark.parametrize(
    "text", ["tar->cancer", "tar -> cancer", " tar --> cancer ", "tar → cancer", ["tar", "cancer"]]
)
def test_an_edge_is_a_pair_or_text_with_an_arrow(text):
    assert parse_edge(text) == ("tar", "cancer")


@pytest.mark.parametrize("nonsense", ["tar", "a->b->c", "->b", ("a",), 3, {"a": "b"}, None])
def test_what_is_not_an_edge_is_refused_with_an_example(nonsense):
    with pytest.raises(KnowledgeError, match="cause -> effect"):
        parse_edge(nonsense)


def test_pgmpy_argument_names_mean_the_same():
    ours = Knowledge(
        required=[("a", "b")], forbidden=[("c", "a")], tiers=[["a"], ["b"]], roots=["a"], search_space=[("a", "b")]
    )
    theirs = Knowledge(
        required_edges=[("a", "b")],
        forbidden_edges=[("c", "a")],
        temporal_order=[["a"], ["b"]],
        root_nodes=["a"],
        search_space=[("a", "b")],
    )
    assert ours == theirs


def test_a_pgmpy_object_is_read_with_its_empty_defaults():
    # The attributes pgmpy 1.1 gives an ExpertKnowledge: sets, and [[]] where no temporal order is given.
    expert = SimpleNamespace(
        required_edges={("a", "b")},
        forbidden_edges={("c", "a"), ("b", "c")},
        temporal_order=[[]],
        search_space=set(),
        orientation_fn=None,
        orientations={("a", "d")},
    )
    knowledge = Knowledge.from_pgmpy(expert)
    assert knowledge.required == (("a", "b"),)
    assert set(knowledge.forbidden) == {("c", "a"), ("b", "c"), ("d", "a")}
    assert not knowledge.tiers
    assert not knowledge.search_space


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("known.json", '{"required": ["a -> b"], "tiers": [["a"], ["b", "c"]]}'),
        ("known.toml", 'required = ["a -> b"]\ntiers = [["a"], ["b", "c"]]\n'),
        ("theirs.json", '{"required_edges": [["a", "b"]], "temporal_order": [["a"], ["b", "c"]]}'),
    ],
)
def test_files_hold_knowledge(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    assert Knowledge.from_file(path) == Knowledge(required=[("a", "b")], tiers=[["a"], ["b", "c"]])


def test_knowledge_survives_a_round_trip_through_json():
    knowledge = Knowledge(required=["a->b"], forbidden=["c->a"], tiers=[["a"], ["b"]], roots=["a"], leaves=["d"])
    assert Knowledge.from_dict(json.loads(json.dumps(knowledge.to_dict()))) == knowledge


def test_two_sources_of_knowledge_add_up():
    both = Knowledge(required=["a->b"], tiers=[["a"], ["b"]]) | Knowledge(required=["b->c"], roots=["a"])
    assert both == Knowledge(required=["a->b", "b->c"], tiers=[["a"], ["b"]], roots=["a"])
    with pytest.raises(KnowledgeError, match="cycle"):
        Knowledge(required=["a->b"]) | Knowledge(required=["b->a"])


@pytest.mark.parametrize(
    ("knowledge", "words"),
    [
        ({"required": ["a->b", "b->c", "c->a", "c->d"]}, ["cycle", "'a' -> 'b' -> 'c' -> 'a'"]),
        ({"required": ["a->b"], "forbidden": ["a->b"]}, ["'a' -> 'b'", "also forbidden"]),
        ({"required": ["a->b"], "roots": ["b"]}, ["'a' -> 'b'", "'b' is a root"]),
        ({"required": ["a->b"], "leaves": ["a"]}, ["'a' -> 'b'", "'a' is a leaf"]),
        ({"required": ["a->b"], "tiers": [["b"], ["a"]]}, ["'a' -> 'b'", "'a' is in tier 2", "earlier tier 1"]),
        ({"required": ["a->b"], "search_space": ["b->c"]}, ["'a' -> 'b'", "search space"]),
        ({"tiers": [["a", "b"], ["c", "a"]]}, ["'a'", "tiers 1 and 2"]),
        ({"forbidden": ["a->a"]}, ["'a' -> 'a'", "itself"]),
        ({"forbiden": ["a->b"]}, ["'forbiden'", "did you mean 'forbidden'"]),
        ({"required": ["a->b"], "required_edges": ["b->c"]}, ["same thing"]),
        ({"roots": 3}, ["list for roots", "3"]),
        ({"tiers": {"first": ["a"]}}, ["list for tiers"]),
    ],
)
def test_impossible_knowledge_is_refused_and_the_culprits_named(knowledge, words):
    with pytest.raises(KnowledgeError) as refusal:
        Knowledge(**knowledge)
    for word in words:
        assert word in str(refusal.value)


def test_an_unknown_variable_is_named_with_the_closest_known_one():
    with pytest.raises(KnowledgeError, match=r"'smokin' \(did you mean 'smoking'\?\); 'xyz'\."):
        compiled(forbidden=["smokin -> tar"], roots=["xyz"])


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("missing.toml", None, "Cannot open"),
        ("known.yaml", "required: []", ".toml or .json"),
        ("bad.json", "{", "not valid JSON"),
        ("bad.toml", "required = [", "not valid TOML"),
        ("list.json", "[1]", "Expected named lists"),
        ("cycle.json", '{"required": ["a->b", "b->a"]}', "In 'cycle.json': .*cycle"),
        ("binary.json", b"\xff\xfe\x00", "not valid JSON"),
        ("deep.json", "[" * 200_000, "'deep.json' is not valid JSON: it is nested too deeply"),
        ("deep.json", '{"tiers": ' + "[" * 50_000 + "]" * 50_000 + "}", "nested too deeply"),
        ("deep.toml", "tiers = " + "[" * 20_000 + "]" * 20_000, "nested too deeply"),
        ("self.json", '{"self": ["a -> b"]}', "Unknown kind of knowledge 'self'"),
        ("nan.json", '{"roots": [NaN]}', "holds a number that is not finite"),
        ("nan.json", '{"tiers": NaN}', "holds a number that is not finite"),
        ("null.json", '{"tiers": [["a", null]]}', "Expected names of variables in each of the tiers, got None"),
        ("nested.json", '{"required": [["a", ["b"]]]}', r"Expected an edge .* got \['a', \['b'\]\]"),
        ("digits.json", '{"roots": [' + "9" * 5000 + "]}", "not valid JSON|Expected names"),
        ("long.toml", f"roots = {2**24 * 'x'!r}", "it is larger than 16,777,216 bytes"),
    ],
)
def test_a_bad_file_is_one_clear_error(tmp_path, name, content, words):
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(KnowledgeError, match=words):
        Knowledge.from_file(path)


def test_knowledge_and_constraints_cannot_be_changed():
    knowledge = Knowledge(roots=["age"])
    with pytest.raises(AttributeError):
        knowledge.roots = ()
    with pytest.raises(ValueError, match="read-only"):
        knowledge.compile(NAMES).forbidden[0, 0] = True


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (5, "Expected the path of a .toml or .json file"),
        (None, "Expected the path of a .toml or .json file"),
        ("a\0b.json", "Cannot open the knowledge file 'a.x00b.json'"),
        ("x" * 400 + ".json", "Cannot open the knowledge file"),
        (".", "expected a .toml or .json file"),
        ("", "expected a .toml or .json file"),
        ("age", "Cannot read knowledge from 'age'"),
    ],
)
def test_what_is_no_file_is_one_clear_error(source, words):
    with pytest.raises(KnowledgeError, match=words) as refusal:
        Knowledge.from_file(source)
    assert "\n" not in str(refusal.value)


def test_an_edge_where_a_file_was_expected_is_answered_in_the_words_of_the_surface():
    with pytest.raises(KnowledgeError) as refusal:
        Knowledge.from_file("smoking -> cancer")
    assert "give knowledge={'required': ['smoking -> cancer']}" in refusal.value.worded(PYTHON)
    assert "--require 'smoking -> cancer'" in refusal.value.worded(COMMAND_LINE)


class Unspeakable:
    def __repr__(self) -> str:
        raise RuntimeError("no")


def nested(depth: int) -> list:
    outer: list = []
    for _ in range(depth):
        outer = [outer]
    return outer


WRONG = [3, 2.5, float("nan"), True, b"a", Unspeakable(), {"a": "b"}, nested(5000), np.array(3), object]


@pytest.mark.parametrize("field", ["required", "forbidden", "tiers", "roots", "leaves", "search_space"])
@pytest.mark.parametrize("wrong", [*WRONG, *([value] for value in WRONG[2:])], ids=lambda value: type(value).__name__)
def test_values_of_a_wrong_type_are_a_knowledge_error(field, wrong):
    for knowledge in ({field: wrong}, {field: [wrong]}):
        with pytest.raises(KnowledgeError) as refusal:
            Knowledge.from_dict(knowledge).compile(NAMES)
        assert len(str(refusal.value)) < 300


def test_columns_called_by_numbers_can_be_named_by_numbers():
    frame_columns = ["0", "1", "2"]
    known = Knowledge(required=[(0, 1)], tiers=[[np.int64(0)], [1]], roots=[0], leaves=np.array([2]))
    assert known == Knowledge(required=[("0", "1")], tiers=[["0"], ["1"]], roots=["0"], leaves=["2"])
    assert known.compile(frame_columns).required[0, 1]


def test_many_unknown_variables_make_one_short_sentence():
    with pytest.raises(KnowledgeError, match="and 95 more") as refusal:
        compiled(roots=[f"unknown {number}" for number in range(100)])
    assert len(str(refusal.value)) < 400


def test_a_hundred_thousand_required_edges_are_checked_in_seconds():
    edges = [(f"v{number}", f"v{number + 1}") for number in range(100_000)]
    known = Knowledge(required=edges, forbidden=[(b, a) for a, b in edges], search_space=edges)
    assert len(known.required) == 100_000
    with pytest.raises(KnowledgeError, match="cycle, 'v0' -> 'v1'") as refusal:
        Knowledge(required=[*edges, ("v100000", "v0")])
    assert len(str(refusal.value)) < 300


def test_every_field_survives_a_round_trip_through_a_dictionary():
    knowledge = Knowledge(
        required=[("a->b", "c ")],
        forbidden=[("c ", "d")],
        tiers=[["a->b"], ["c ", "d"]],
        roots=["a->b"],
        leaves=["d"],
        search_space=[("a->b", "c "), ("c ", "d")],
        no_hidden_cause=["d <-> c", ("c ", "d")],
        randomized=["a->b"],
        beliefs=[{"statement": "root d", "probability": 0.8, "who": "Ann", "why": "given"}, ("d ~> e", 0.25)],
    )
    assert knowledge.no_hidden_cause == (("c", "d"), ("c ", "d"))
    assert set(knowledge.to_dict()) == {field.name for field in fields(Knowledge)}
    assert Knowledge.from_dict(json.loads(json.dumps(knowledge.to_dict()))) == knowledge
    assert Knowledge.from_dict(Knowledge().to_dict()) == Knowledge()


def test_rearranging_constraints_is_compiling_for_other_columns():
    knowledge = Knowledge(
        required=["smoking -> tar"],
        tiers=[["age"], ["cancer"]],
        roots="age",
        leaves=["cancer"],
        no_hidden_cause=["tar <-> age"],
    )
    places = np.array([2, 0, 3, 1])
    moved, again = knowledge.compile(NAMES).rearranged(places), knowledge.compile([NAMES[place] for place in places])
    assert moved.names == again.names
    for here, there in zip(
        (moved.required, moved.forbidden, moved.precedence, moved.ranks, moved.unconfounded),
        (again.required, again.forbidden, again.precedence, again.ranks, again.unconfounded),
        strict=True,
    ):
        assert np.array_equal(here, there)
        assert not here.flags.writeable


def test_what_was_randomized_has_no_cause_in_or_outside_the_table():
    compiled = Knowledge(randomized=["drug"]).compile(["age", "drug", "stay"])
    assert compiled.forbidden[:, 1].sum() == 2
    assert np.broadcast_to(compiled.unconfounded, (3, 3))[1].sum() == 2
    assert not compiled.forbidden[1].any()
    with pytest.raises(KnowledgeError, match="'drug' is a root"):
        Knowledge(randomized=["drug"], required=["age -> drug"])
