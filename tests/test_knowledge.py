"""Knowledge: what it says about edges, where it may come from, and what is refused."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest

from causal_arrow.errors import KnowledgeError
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


def test_tiers_forbid_edges_from_later_to_earlier_tiers_and_nothing_else():
    constraints = compiled(tiers=[["age"], ["smoking", "cancer"]])
    assert edges(constraints.forbidden) == {("smoking", "age"), ("cancer", "age")}


def test_roots_have_no_causes_and_leaves_no_effects():
    constraints = compiled(roots=["age"], leaves=["cancer"])
    into_age = {(name, "age") for name in NAMES if name != "age"}
    out_of_cancer = {("cancer", name) for name in NAMES if name != "cancer"}
    assert edges(constraints.forbidden) == into_age | out_of_cancer


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
