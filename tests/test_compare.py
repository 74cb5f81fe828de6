"""`causal-arrow compare`: graphs that cannot be causal are one sentence and status 2, CPDAGs are welcome."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from causal_arrow.cli import main
from causal_arrow.graphs.metrics import edge_differences


def compare(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Exit status, standard output, standard error."""
    with pytest.raises(SystemExit) as leaving:
        main(["compare", *map(str, arguments)])
    captured = capsys.readouterr()
    return int(leaving.value.code or 0), captured.out, captured.err


def graph_file(path: Path, edges: list[str], **changes: Any) -> Path:
    content = {
        "format": "causal-arrow-graph",
        "version": 1,
        "variables": ["a", "b", "c"],
        "edges": [{"source": edge[0], "target": edge[1]} for edge in edges],
        **changes,
    }
    path.write_text(json.dumps(content))
    return path


@pytest.mark.parametrize(
    ("edges", "changes", "words"),
    [
        (["ab", "bc", "ca"], {}, "'a' -> 'b' -> 'c' -> 'a'"),
        (["ab"], {"version": 7}, "Expected version 1"),
        (["ab", "bz"], {}, "'z', not among its variables"),
        (["aa"], {}, "'a' would cause itself"),
        (["ab"], {"edge_probabilities": [[0.5]]}, "3 × 3 numbers"),
    ],
)
def test_what_is_no_causal_graph_is_refused_on_either_side(
    edges: list[str], changes: dict[str, Any], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = graph_file(tmp_path / "good.json", ["ab"])
    bad = graph_file(tmp_path / "bad.json", edges, **changes)
    for pair in ((good, bad), (bad, good)):
        status, out, err = compare(capsys, *pair)
        assert status == 2
        assert not out
        assert words in err
        assert "'bad.json'" in err
        assert err.count("\n") == 1


def test_hidden_common_causes_are_listed_below_the_measures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def hidden(name: str, text: str) -> Path:
        (tmp_path / name).write_text(text)
        return tmp_path / name

    silent = graph_file(tmp_path / "silent.json", ["ab"])
    none = graph_file(tmp_path / "none.json", ["ab"], hidden_causes=[])
    some = hidden("some.txt", "dag { a -> b b <-> c }")
    others = hidden("others.txt", "dag { a -> b c <-> b a <-> c }")
    status, out, _ = compare(capsys, silent, some)
    assert status == 0
    assert "hidden common causes, not stated in silent.json (1): b ↔ c" in out
    out = compare(capsys, some, others)[1]
    assert "hidden common causes in both (1): b ↔ c" in out
    assert "extra hidden common causes (1): a ↔ c" in out
    assert "missing" not in out.partition("sid")[2]
    assert "missing hidden common causes (1): b ↔ c" in compare(capsys, some, none)[1]
    assert "↔" not in compare(capsys, silent, none)[1]
    content = json.loads(compare(capsys, none, others, "--json")[1])
    assert content["hidden_causes"] == {"first": [], "second": [["a", "c"], ["b", "c"]]}
    assert json.loads(compare(capsys, silent, none, "--json")[1])["hidden_causes"] == {"first": None, "second": []}


def test_a_cpdag_is_compared_edge_by_edge(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dag = graph_file(tmp_path / "dag.json", ["ab", "bc"])
    cpdag = graph_file(tmp_path / "cpdag.json", ["ab", "ba", "cb"])
    for pair in ((dag, cpdag), (cpdag, dag)):
        status, out, _ = compare(capsys, *pair, "--json")
        content = json.loads(out)
        assert status == 0
        assert content["edges"] == [2, 2]
        assert content["measures"]["shd"] == 2
        assert content["measures"]["cpdag_shd"] is None
        assert content["directed_in_one"] == [["a", "b"]]
        assert content["missing"] == content["extra"] == []
        assert content["reversed"] == [["b", "c"]] if pair[0] is dag else [["c", "b"]]
    status, out, _ = compare(capsys, dag, cpdag)
    assert status == 0
    assert "directed in one (1): a → b" in out


def test_every_differing_pair_is_listed_once() -> None:
    first = {("a", "b"), ("c", "d"), ("d", "c"), ("e", "f"), ("g", "h"), ("h", "g")}
    second = {("b", "a"), ("c", "d"), ("i", "j"), ("g", "h"), ("h", "g")}
    assert edge_differences(first, second) == {
        "missing": [("e", "f")],
        "extra": [("i", "j")],
        "reversed": [("a", "b")],
        "directed_in_one": [("c", "d")],
    }
