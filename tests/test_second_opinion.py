"""Second opinions: each is what the method says alone; agreement and conflict are counted pair by pair."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from causal_arrow import Discovery, discover, load_example
from causal_arrow.discovery import second_opinion as other_methods
from causal_arrow.discovery.second_opinion import Opinion, OtherMethod, SecondOpinion, shrunk, standardized
from causal_arrow.errors import ConfigurationError


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    """A chain, a collider and an idle column, linear with normal noise."""
    draw = np.random.default_rng(5)
    a, b, e = draw.normal(size=(3, 600))
    c = a + b + draw.normal(size=600)
    d = 0.8 * c + draw.normal(size=600)
    return pd.DataFrame({"a": a, "b": b, "c": c, "d": d, "e": e})


@pytest.fixture(scope="module")
def found(table: pd.DataFrame) -> Discovery:
    return discover(table)


def marks(found: Any, name: str) -> set[tuple[str, str]]:
    (opinion,) = found.second_opinion([name]).opinions
    return set(opinion.edges)


def directed_both_ways(graph: Any, names: list[str]) -> set[tuple[str, str]]:
    return {(names[j], names[k]) for j, k in np.argwhere(graph).tolist()}


def test_flop_says_what_it_says_alone(found: Discovery, table: pd.DataFrame) -> None:
    flopsearch = pytest.importorskip("flopsearch")
    values = ((table - table.mean()) / table.std(ddof=0)).to_numpy()
    alone = np.asarray(flopsearch.flop(values, 2.0, restarts=50)) > 0
    assert marks(found, "flop") == directed_both_ways(alone, list(table))


def test_pc_and_boss_say_what_they_say_alone(found: Discovery, table: pd.DataFrame) -> None:
    pytest.importorskip("causallearn")
    from causallearn.search.ConstraintBased.PC import pc
    from causallearn.search.PermutationBased.BOSS import boss

    values = table.to_numpy()
    names = list(table)
    alone = {
        "pc": pc(values.copy(), 0.05, "fisherz", show_progress=False).G,
        "boss": boss(
            values.copy(), score_func="local_score_BIC_from_cov", parameters={"lambda_value": 2}, verbose=False
        ),
    }
    for name, graph in alone.items():
        edges = set()
        for edge in graph.get_graph_edges():
            one, other = (names[int(node.get_name()[1:]) - 1] for node in (edge.get_node1(), edge.get_node2()))
            edges.add((one, other))
            if edge.get_endpoint1() == edge.get_endpoint2():
                edges.add((other, one))
        assert marks(found, name) == edges
    assert ("a", "c") in marks(found, "pc")


def test_pcmci_plus_says_what_it_says_alone() -> None:
    pytest.importorskip("tigramite")
    from tigramite.data_processing import DataFrame
    from tigramite.independence_tests.parcorr import ParCorr
    from tigramite.pcmci import PCMCI

    days = load_example("greenhouse").drop(columns="day")
    found = discover(days, lags=2, scale="given")
    alone = PCMCI(dataframe=DataFrame(days.to_numpy(dtype=float)), cond_ind_test=ParCorr(), verbosity=0)
    graph = alone.run_pcmciplus(tau_min=0, tau_max=2, pc_alpha=0.01)["graph"]
    names = list(days)
    expected = {
        (names[j] + (f" t-{lag}" if lag else ""), names[k])
        for j, k, lag in np.argwhere(graph != "").tolist()
        if j != k and graph[j, k, lag] != "<--"
    }
    assert marks(found, "pcmci+") == expected
    assert ("soil t-2", "growth") in found.second_opinion().agreed


def test_gaps_in_time_are_no_steps() -> None:
    pytest.importorskip("tigramite")
    from causal_arrow.series._advice import values_and_pieces

    days = load_example("greenhouse").drop(index=range(100, 110))
    found = discover(days, lags=1, time="day")
    values, piece = values_and_pieces(found.answer, found.series)
    assert np.bincount(piece).tolist() == [100, 390]
    assert len(values) == 490


@pytest.fixture
def opinion() -> SecondOpinion:
    first = Opinion("one", "One", frozenset([("a", "b"), ("c", "b"), ("c", "d"), ("d", "c")]), "nothing")
    second = Opinion("two", "Two", frozenset([("a", "b"), ("b", "c"), ("a", "d")]), "nothing")
    return SecondOpinion(("a", "b", "c", "d"), (("a", "b"), ("b", "c")), (0.9, 0.8), (first, second))


def test_agreements_and_conflicts_are_counted_pair_by_pair(opinion: SecondOpinion) -> None:
    assert opinion.agreed == (("a", "b"),)
    assert opinion.conflicts == (
        "b → c: in the answer, One reversed",
        "c — d: not in the answer, only in One",
        "a → d: not in the answer, only in Two",
    )
    frame = opinion.to_frame()
    assert frame["one"].tolist() == ["same", "reversed", "undirected", "absent"]
    assert frame["two"].tolist() == ["same", "same", "absent", "same"]
    assert frame["arrow"].tolist() == [0.9, 0.8, 0, 0]
    assert "1 of 2 edges in all of their graphs" in str(opinion)
    assert "<li>b → c: in the answer, One reversed</li>" in opinion._repr_html_()


def test_both_graphs_are_in_the_picture(opinion: SecondOpinion, tmp_path: Path) -> None:
    opinion.draw(tmp_path / "one.svg")
    words = (tmp_path / "one.svg").read_text()
    for entry in (
        "in both (1)",
        "reversed in One: the answer points down (1)",
        "only in One, undirected (1)",
        "Arrow and One",
    ):
        assert entry in words
    opinion.draw(tmp_path / "two.svg", method="two")
    assert "in both (2)" in (tmp_path / "two.svg").read_text()
    assert "only in Two (1)" in (tmp_path / "two.svg").read_text()
    unsure = Opinion("one", "One", frozenset([("a", "b"), ("b", "a")]), "nothing")
    SecondOpinion(("a", "b"), (("a", "b"),), (0.9,), (unsure,)).draw(tmp_path / "unsure.svg")
    words = (tmp_path / "unsure.svg").read_text()
    assert "undirected in One: the answer points down (1)" in words
    assert "in both" not in words
    with pytest.raises(ConfigurationError, match="Expected method to be one of one, two"):
        opinion.draw(tmp_path / "three.svg", method="three")


def test_a_method_that_is_missing_slow_or_fails_is_named(found: Discovery, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(values: Any) -> Any:
        raise ValueError("singular matrix\nand more")

    def never(values: Any) -> Any:
        raise AssertionError("it was asked")

    methods = {
        "good": OtherMethod("Good", "numpy", "nothing", 100, lambda values: np.zeros((5, 5), dtype=bool)),
        "slow": OtherMethod("Slow", "numpy", "nothing", 4, never),
        "failing": OtherMethod("Failing", "numpy", "nothing", 100, failing),
        "missing": OtherMethod("Missing", "no_such_package", "nothing", 100, never),
    }
    monkeypatch.setattr("causal_arrow.discovery.second_opinion.METHODS", methods)
    opinion = found.second_opinion()
    assert [each.title for each in opinion.opinions] == ["Good"]
    slow, missing, failed = opinion.remarks
    assert slow.startswith("Slow was left out: with more than 4 variables")
    assert missing == f"Missing is not installed: {other_methods.INSTALL}."
    assert failed == "Failing could not read this table (singular matrix)."
    for asked, words in (
        ("missing", "is not installed"),
        ("other", "There is no method 'other'"),
        ("failing", "singular"),
    ):
        with pytest.raises(ConfigurationError, match=words):
            found.second_opinion(asked)


def test_missing_cells_levels_and_knowledge_are_remarked(table: pd.DataFrame) -> None:
    holed = table.assign(site=np.random.default_rng(1).choice(["x", "y", "z"], 600))
    holed.loc[:20, "a"] = np.nan
    remarks = " ".join(discover(holed, knowledge={"roots": ["b"]}).second_opinion().remarks)
    for words in (
        "Missing cells were filled in",
        "edges of site lightly",
        "Only the answer uses your knowledge",
    ):
        assert words in remarks


def test_a_table_with_fewer_rows_than_columns_gets_an_answer_from_flop() -> None:
    pytest.importorskip("flopsearch")
    values = standardized(np.random.default_rng(0).normal(size=(25, 30)))
    assert other_methods.flop(values).shape == (30, 30)
    assert shrunk(values)[0].shape == (31, 30)


def test_the_command_prints_writes_and_dumps_it(table: pd.DataFrame, tmp_path: Path, run: Any) -> None:
    table.to_csv(tmp_path / "t.csv", index=False)
    status, out, _ = run("discover", tmp_path / "t.csv", "--second-opinion", "--output", tmp_path / "out")
    assert status == 0
    assert "Second opinion of FLOP, BOSS, PC" in out
    assert "PC assumes" in out
    assert "Arrow and FLOP" in (tmp_path / "out" / "second-opinion.svg").read_text()
    saved = json.loads((tmp_path / "out" / "graph.json").read_text())
    status, out, _ = run("discover", tmp_path / "t.csv", "--second-opinion", "--json")
    assert json.loads(out)["second_opinion"] == saved["second_opinion"]
    series = load_example("greenhouse")
    series.to_csv(tmp_path / "s.csv", index=False)
    status, out, _ = run("discover", tmp_path / "s.csv", "--lags", 1, "--time", "day", "--second-opinion", "--json")
    assert json.loads(out)["second_opinion"]["opinions"][0]["title"] == "PCMCI+"
