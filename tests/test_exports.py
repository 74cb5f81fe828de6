"""An answer in the hands of other programs: the real ones, which must read the same graph that we gave."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from causal_arrow import Arrow, Discovery
from causal_arrow.discovery import exports
from causal_arrow.discovery.answer import Answer
from causal_arrow.errors import ConfigurationError, GraphError
from causal_arrow.graphs.files import compatible, graph_from_edges, read_graph
from causal_arrow.graphs.graph_distribution import GraphDistribution
from causal_arrow.graphs.knowledge import Knowledge

NAMES = ("x", "y y", 'say "hi"', "a->b; c", "äß→😀", "back\\slash", "lonely")
EDGES = {("x", "y y"), ("x", 'say "hi"'), ("y y", "a->b; c"), ("äß→😀", "x"), ("back\\slash", "x")}


@pytest.fixture
def answer() -> Answer:
    """Five edges of different certainty among seven variables with names that need quoting."""
    order = ["äß→😀", "back\\slash", "x", "y y", 'say "hi"', "a->b; c", "lonely"]
    scores = np.zeros(7)
    for place, name in enumerate(order):
        scores[NAMES.index(name)] = -0.8 * place
    logits = np.full((7, 7), -3.0)
    for strength, (cause, effect) in enumerate(sorted(EDGES)):
        j, k = NAMES.index(cause), NAMES.index(effect)
        logits[j, k] = logits[k, j] = 0.5 + strength
    return Answer(
        NAMES,
        GraphDistribution(logits, scores),
        Knowledge(required=[("x", "y y")]),
        observations=50,
        model="m",
    )


def edges_of(answer: Answer) -> set[tuple[str, str]]:
    return {(edge.source, edge.target) for edge in answer.edges}


def test_the_example_has_the_edges_it_should(answer: Answer) -> None:
    assert edges_of(answer) == EDGES
    assert len({edge.direction for edge in answer.edges}) > 1


# Files


@pytest.mark.parametrize("name", exports.TEXT_FORMATS)
def test_every_text_format_reads_back_as_the_same_graph(name: str, answer: Answer, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(exports.TEXT_FORMATS[name](answer), encoding="utf-8", newline="")
    graph = read_graph(path)
    assert set(graph.edges()) == EDGES
    if name != "edges.csv":  # a list of edges does not mention variables without edges
        assert set(graph.names) == set(NAMES)


def test_json_says_all_that_is_documented(answer: Answer) -> None:
    content = json.loads(exports.to_json(answer))
    assert content["format"] == "causal-arrow-graph"
    assert content["version"] == 1
    assert content["variables"] == list(NAMES)
    assert content["order"] == list(answer.order)
    assert content["knowledge"] == {"required": [["x", "y y"]]}
    assert np.allclose(content["edge_probabilities"], answer.edge_probabilities, atol=1e-6)
    for edge, facts in zip(answer.edges, content["edges"], strict=True):
        assert facts == exports.edge_record(edge)
        assert facts["direction"] in ("strong", "moderate", "weak")
    documented = (Path(__file__).parent.parent / "docs" / "reference" / "json.md").read_text(encoding="utf-8")
    for field in (*content, *content["edges"][0]):
        assert f"`{field}`" in documented


def test_csv_lists_edges_as_the_json_does(answer: Answer) -> None:
    rows = list(csv.DictReader(io.StringIO(exports.to_csv(answer))))
    assert [(row["source"], row["target"]) for row in rows] == [(edge.source, edge.target) for edge in answer.edges]
    assert [float(row["probability"]) for row in rows] == [round(edge.probability, 6) for edge in answer.edges]


def test_the_same_answer_is_the_same_text(answer: Answer) -> None:
    again = answer.refine()
    for export in exports.TEXT_FORMATS.values():
        assert export(answer) == export(again)


def test_graphml_and_gml_keep_the_facts_of_edges(answer: Answer) -> None:
    for graph in (nx.parse_graphml(exports.to_graphml(answer)), nx.parse_gml(exports.to_gml(answer))):
        for edge in answer.edges:
            facts = graph.edges[edge.source, edge.target]
            assert facts["probability"] == pytest.approx(edge.probability, abs=1e-6)
            assert facts["direction"] == edge.direction
            assert bool(facts["required"]) == edge.required


STRANGE = (
    "plain",
    "bell\x07",
    "bell\\x07",
    "bell\\x07 (2)",
    "<b> & 'c'",
    "&amp;",
    "&#38;",
    "two\nlines",
    "two lines",
    "two  lines",
    "carriage\rreturn",
    "tab\tstop",
    " leading",
    "leading",
    "trailing ",
    "line\u2028separator",
    "next\x85line",
    "half \ud83d letter",
    "half \\ud83d letter",
    "no character \ufffe",
    "nul\0",
    "node",
    "http://x.org//y /* z */",
    "中文",
    "a;b{c}[d]",
    "#hash",
    "ends with \\",
    "port:n",
    "12",
    'a,"b",c',
)


@pytest.fixture(scope="module")
def strange() -> Answer:
    """A chain of variables with names that some format cannot hold as they are."""
    adjacency = np.eye(len(STRANGE), k=1, dtype=bool)
    return answer_sure_of(adjacency, STRANGE)


CHAIN = list(itertools.pairwise(STRANGE))


@pytest.mark.parametrize("name", exports.TEXT_FORMATS)
def test_strange_names_survive_every_text_format_or_are_written_out_and_never_merge(name: str, tmp_path: Path) -> None:
    # No table has a name with half a character, and reading JSON refuses it; the other formats write it out.
    names = tuple(each for each in STRANGE if name != "graph.json" or not re.search("[\ud800-\udfff]", each))
    text = exports.TEXT_FORMATS[name](answer_sure_of(np.eye(len(names), k=1, dtype=bool), names))
    (tmp_path / name).write_text(text, encoding="utf-8", newline="")
    hidden = {"graph.json": "a^", "edges.csv": exports.NOT_IN_CSV.pattern}.get(name, exports.UNPRINTABLE.pattern)
    written = exports.written_names(names, re.compile(hidden))
    assert len(set(written.values())) == len(names)
    graph = read_graph(tmp_path / name)
    assert set(graph.edges()) == {(written[cause], written[effect]) for cause, effect in itertools.pairwise(names)}
    assert set(graph.names) == set(written.values())


def test_strange_names_are_valid_for_the_parsers_of_other_programs(strange: Answer, tmp_path: Path) -> None:
    pydot = pytest.importorskip("pydot")
    written = exports.written_names(STRANGE)
    edges = {(written[cause], written[effect]) for cause, effect in CHAIN}
    assert set(nx.parse_gml(exports.to_gml(strange)).edges) == edges
    assert set(nx.parse_graphml(exports.to_graphml(strange)).edges) == edges
    xml = ElementTree.fromstring(exports.to_graphml(strange))
    assert {(edge.get("source"), edge.get("target")) for edge in xml.findall(".//{*}edge")} == edges
    for text in (exports.to_dot(strange), exports.to_dagitty(strange).replace("dag {", "digraph {", 1)):
        (graph,) = pydot.graph_from_dot_data(text)
        ends = {end for edge in graph.get_edges() for end in (edge.get_source(), edge.get_destination())}
        assert len(graph.get_edges()) == len(CHAIN)
        assert len(ends) == len(STRANGE)
    (tmp_path / "edges.csv").write_text(exports.to_csv(strange), encoding="utf-8", newline="")
    frame = pd.read_csv(tmp_path / "edges.csv", keep_default_na=False, dtype={"source": str, "target": str})
    csv_names = exports.written_names(STRANGE, exports.NOT_IN_CSV)
    assert set(zip(frame["source"], frame["target"], strict=True)) == {
        (csv_names[cause], csv_names[effect]) for cause, effect in CHAIN
    }
    assert json.loads(exports.to_json(strange))["variables"] == list(STRANGE)


def test_packages_in_python_get_strange_names_as_they_are(strange: Answer) -> None:
    assert set(exports.to_networkx(strange).edges) == set(exports.to_dowhy(strange).edges) == set(CHAIN)
    pytest.importorskip("pgmpy")
    assert set(exports.to_pgmpy(strange).edges) == set(CHAIN)
    pytest.importorskip("causallearn")
    assert [node.get_name() for node in exports.to_causallearn(strange).get_nodes()] == list(STRANGE)


# Reading graphs


def test_a_matrix_in_csv_is_a_graph_with_or_without_row_names(tmp_path: Path) -> None:
    (tmp_path / "named.csv").write_text(",a,b,c\na,0,1,0\nb,0,0,0.7\nc,0,0,0\n")
    (tmp_path / "plain.csv").write_text("a,b,c\n0,1,0\n0,0,1\n0,0,0\n")
    for name in ("named.csv", "plain.csv"):
        graph = read_graph(tmp_path / name)
        assert graph.names == ("a", "b", "c")
        assert graph.edges() == [("a", "b"), ("b", "c")]


def test_graphs_written_by_hand_are_understood(tmp_path: Path) -> None:
    (tmp_path / "g.dot").write_text(
        'digraph G {\n rankdir=LR; node [shape=box];\n a -> b -> "c d"; // why\n e\n b <- f }'
    )
    graph = read_graph(tmp_path / "g.dot")
    assert set(graph.edges()) == {("a", "b"), ("b", "c d"), ("f", "b")}
    assert set(graph.names) == {"a", "b", "c d", "e", "f"}
    (tmp_path / "g.txt").write_text(
        'dag {\nbb="0,0,1,1"\nX [exposure,pos="-1.2,0.4"]\nY [outcome]\nX -> Y\nZ -> {X}\n}'
    )
    assert ("X", "Y") in read_graph(tmp_path / "g.txt").edges()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("g.json", "{"),
        ("g.json", "[1]"),
        ("g.csv", ""),
        ("g.csv", "a,b\n1\n"),
        ("g.csv", "a,b\nx,y\nz,w\n"),
        ("g.gml", "graph ["),
        ("g.gml", 'graph [ node [ id 0 label "a" ] ]'),
        ("g.graphml", "<a/>"),
        ("g.dot", "graph { a -- b }"),
        ("g.dot", "a -> b"),
        ("g.pdf", "a"),
    ],
)
def test_what_is_no_graph_is_a_graph_error(name: str, content: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(GraphError):
        read_graph(tmp_path / name)


OBJECT = '{"format": "causal-arrow-graph", "version": 1, "variables": ["a", "b", "c"], "edges": [%s]%s}'
AB, BC, CA = (f'{{"source": "{cause}", "target": "{effect}"}}' for cause, effect in ("ab", "bc", "ca"))


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("g.json", OBJECT % (f"{AB}, {BC}, {CA}", ""), "without cycles, got 'a' -> 'b' -> 'c' -> 'a'"),
        ("g.csv", "source,target\nb,c\nc,d\nd,b\n", "without cycles, got 'b' -> 'c' -> 'd' -> 'b'"),
        ("g.csv", "a,b\n1,1\n0,0\n", "'a' would cause itself"),
        ("g.dot", "digraph { a -> b -> c -> a }", "without cycles"),
        ("g.json", OBJECT.replace('"version": 1', '"version": 2') % (AB, ""), "Expected version 1 .* got 2"),
        ("g.json", OBJECT.replace('"version": 1', '"version": "new"') % (AB, ""), "Expected version 1 .* got 'new'"),
        ("g.json", OBJECT.replace("causal-arrow-graph", "other") % (AB, ""), "Expected the format .* got 'other'"),
        ("g.json", OBJECT.replace('"c"]', '"d"]') % (BC, ""), "Its edges name 'c', not among its variables"),
        ("g.json", OBJECT.replace('"c"]', '"a"]') % (AB, ""), "Expected every variable once, got 'a' twice"),
        ("g.json", OBJECT.replace('"c"]', "null]") % (AB, ""), "Expected the name of a variable, got None"),
        ("g.json", OBJECT % ('{"source": "a"}', ""), "'source' and 'target'"),
        ("g.json", OBJECT % (AB, ', "edge_probabilities": [[0, 1]]'), "3 × 3 numbers between 0 and 1"),
        ("g.json", OBJECT % (AB, ', "edge_probabilities": [[0,NaN,0],[0,0,0],[0,0,0]]'), "not finite"),
        ("g.json", '{"variables": 3, "edges": []}', "Expected lists"),
        ("g.json", '{"variables": ' + "[" * 100_000, "nested too deeply"),
        ("g.csv", "source,target\na\n", "Expected a source and a target in every row, got 'a'"),
        ("g.csv", "a,b\n0,nan\n0,0\n", "got nan or infinity"),
        ("g.csv", "a,a\n0,1\n0,0\n", "every variable once"),
        ("g.dot", "digraph { a -> }", "a variable after every ->"),
        ("g.dot", "digraph { -> a }", "a variable before every ->"),
        ("g.dot", "digraph { a > b }", "Cannot read '>'"),
        (
            "g.graphml",
            '<graphml><graph edgedefault="directed"><node id="a"/><edge source="a" target="b"/></graph></graphml>',
            "Its edges name 'b', not among its variables",
        ),
    ],
)
def test_what_no_causal_graph_can_be_is_refused_in_a_sentence(
    name: str, content: str, words: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(GraphError, match=words) as refusal:
        read_graph(tmp_path / name)
    assert "\n" not in str(refusal.value)


def test_undirected_edges_of_a_cpdag_are_no_cycle(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text("a,b,c\n0,1,0\n1,0,1\n0,0,0\n")
    (tmp_path / "c.txt").write_text("pdag { a -- b\n b -> c }")
    for name in ("c.csv", "c.txt"):
        assert set(read_graph(tmp_path / name).edges()) == {("a", "b"), ("b", "a"), ("b", "c")}
    with pytest.raises(GraphError):
        read_graph(tmp_path / "c.csv").causal_graph()


def test_groups_and_comments_in_graphviz_text_are_understood(tmp_path: Path) -> None:
    (tmp_path / "g.dot").write_text(
        '# made by hand\ndigraph "x {" { subgraph cluster_1 { a; b } -> c // why\n "http://d" -> {e f};\n'
        ' a\n -> g /* a -> h */ "two\\nlines"}'
    )
    graph = read_graph(tmp_path / "g.dot")
    assert set(graph.edges()) == {("a", "c"), ("b", "c"), ("http://d", "e"), ("http://d", "f"), ("a", "g")}
    assert set(graph.names) == {"a", "b", "c", "http://d", "e", "f", "g", "two\nlines"}


def test_hidden_common_causes_in_a_file_are_kept_apart_from_arrows(tmp_path: Path) -> None:
    (tmp_path / "g.txt").write_text("dag { a -> b\n a <-> c }")
    graph = read_graph(tmp_path / "g.txt")
    assert graph.edges() == [("a", "b")]
    assert graph.bidirected is not None
    assert np.argwhere(graph.bidirected).tolist() == [[0, 2], [2, 0]]
    assert graph.causal_graph().directed.sum() == 1


def test_a_missing_or_binary_graph_file_is_a_graph_error(tmp_path: Path) -> None:
    with pytest.raises(GraphError, match="Cannot open"):
        read_graph(tmp_path / "none.json")
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00\x81")
    with pytest.raises(GraphError, match="not a text file"):
        read_graph(tmp_path / "binary.json")


def test_graphs_are_compared_by_the_names_of_variables() -> None:
    first = graph_from_edges([("a", "b")], ["a", "b", "c"])
    second = graph_from_edges([("a", "b")], ["c", "b", "a"])
    arranged, other = compatible(first, second)
    assert arranged.names == other.names == ("a", "b", "c")
    np.testing.assert_array_equal(arranged.adjacency, other.adjacency)
    with pytest.raises(GraphError, match="only the second has 'z'"):
        compatible(first, graph_from_edges([("a", "z")], ["a", "b", "c", "z"]))


# Other packages


def test_dowhy_identifies_and_estimates_with_our_graph() -> None:
    dowhy = pytest.importorskip("dowhy")
    random = np.random.default_rng(0)
    z = random.normal(size=400)
    x = z + random.normal(size=400)
    y = 2 * x + 3 * z + 0.1 * random.normal(size=400)
    data = pd.DataFrame({"z z": z, "x-1": x, 'y "q"': y})
    graph = graph_from_edges([("z z", "x-1"), ("z z", 'y "q"'), ("x-1", 'y "q"')], list(data.columns))
    answer = answer_sure_of(graph.adjacency, graph.names)
    model = dowhy.CausalModel(data, treatment="x-1", outcome='y "q"', graph=exports.to_dowhy(answer))
    estimand = model.identify_effect(proceed_when_unidentifiable=True)
    assert estimand.get_backdoor_variables() == ["z z"]
    estimate = model.estimate_effect(estimand, method_name="backdoor.linear_regression")
    assert estimate.value == pytest.approx(2, abs=0.05)


def test_dowhy_reads_our_dagitty_text(answer: Answer) -> None:
    operations = pytest.importorskip("dowhy.utils.graph_operations")
    simple = answer_sure_of(np.array([[0, 1, 1], [0, 0, 1], [0, 0, 0]], dtype=bool), ("a", "b", "c"))
    dot = operations.daggity_to_dot(exports.to_dagitty(simple))
    pydot = pytest.importorskip("pydot")
    (graph,) = pydot.graph_from_dot_data(dot)
    edges = {(edge.get_source().strip('"'), edge.get_destination().strip('"')) for edge in graph.get_edges()}
    assert edges == {("a", "b"), ("a", "c"), ("b", "c")}


def test_graphviz_language_is_what_pydot_reads(answer: Answer) -> None:
    pydot = pytest.importorskip("pydot")
    (graph,) = pydot.graph_from_dot_data(exports.to_dot(answer))
    assert len(graph.get_edges()) == len(EDGES)
    dashed = {edge.get("style") for edge in graph.get_edges()}
    assert "dashed" in dashed


def test_pgmpy_gets_a_dag_with_the_same_independences(answer: Answer) -> None:
    base = pytest.importorskip("pgmpy.base")
    graph = exports.to_pgmpy(answer)
    assert isinstance(graph, base.DAG)
    assert set(graph.nodes) == set(NAMES)
    assert set(graph.edges) == EDGES
    assert graph.is_dconnected("äß→😀", "y y")
    assert not graph.is_dconnected("äß→😀", "back\\slash")


def test_causallearn_gets_a_dag_with_arrows_at_the_effects(answer: Answer) -> None:
    general = pytest.importorskip("causallearn.graph.GeneralGraph")
    endpoint = pytest.importorskip("causallearn.graph.Endpoint").Endpoint
    graph = exports.to_causallearn(answer)
    assert isinstance(graph, general.GeneralGraph)
    assert [node.get_name() for node in graph.get_nodes()] == list(NAMES)
    found = set()
    for edge in graph.get_graph_edges():
        ends = [(edge.get_node1(), edge.get_endpoint1()), (edge.get_node2(), edge.get_endpoint2())]
        (cause,) = (node.get_name() for node, end in ends if end == endpoint.TAIL)
        (effect,) = (node.get_name() for node, end in ends if end == endpoint.ARROW)
        found.add((cause, effect))
    assert found == EDGES


def test_lingam_reads_our_transposed_matrix_as_the_same_graph(answer: Answer) -> None:
    lingam = pytest.importorskip("lingam")
    matrix = exports.to_lingam(answer)
    np.testing.assert_array_equal(matrix.T, answer.adjacency)
    # lingam's own model of x -> y puts the coefficient at [y, x].
    random = np.random.default_rng(0)
    x = random.uniform(size=300)
    learned = lingam.DirectLiNGAM().fit(np.column_stack([x, 2 * x + random.uniform(size=300)])).adjacency_matrix_
    ours = exports.to_lingam(answer_sure_of(np.array([[0, 1], [0, 0]], dtype=bool), ("x", "y")))
    np.testing.assert_array_equal(learned != 0, ours != 0)


def test_a_package_that_is_not_there_is_named(answer: Answer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pgmpy", None)
    monkeypatch.setitem(__import__("sys").modules, "pgmpy.base", None)
    with pytest.raises(ConfigurationError, match="pip install pgmpy"):
        exports.to_pgmpy(answer)


def test_arrow_hands_over_what_exports_do(answer: Answer) -> None:
    arrow = Arrow()
    arrow.discovery_ = Discovery(answer)
    assert arrow.to_json() == exports.to_json(answer)
    assert arrow.to_dot() == exports.to_dot(answer)
    assert arrow.to_gml() == exports.to_gml(answer)
    assert arrow.to_graphml() == exports.to_graphml(answer)
    assert arrow.to_dagitty() == exports.to_dagitty(answer)
    assert set(arrow.to_networkx().edges) == set(arrow.to_dowhy().edges) == EDGES
    np.testing.assert_array_equal(arrow.to_lingam(), exports.to_lingam(answer))


def answer_sure_of(adjacency: np.ndarray, names: tuple[str, ...]) -> Answer:
    """An answer that is certain of a DAG whose variables stand in causal order."""
    scores = -40.0 * np.arange(len(names))
    logits = np.where(adjacency | adjacency.T, 40.0, -40.0)
    return Answer(names, GraphDistribution(logits, scores))
