"""One pipeline: every surface gets the same answer, saved answers live on, and wrong settings fail before any work."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from causal_arrow import (
    Answer,
    Arrow,
    ArrowWarning,
    Discovery,
    Knowledge,
    ReadOptions,
    Settings,
    discover,
    discover_many,
    read_table,
)
from causal_arrow.cli import main
from causal_arrow.discovery import pipeline, summary
from causal_arrow.errors import ArrowError, ConfigurationError, KnowledgeError, TableError
from causal_arrow.graphs.graph_distribution import GraphDistribution

quietly = pytest.mark.filterwarnings("ignore::causal_arrow.errors.ArrowWarning")


# Every surface


def random_table(seed: int) -> np.ndarray:
    """A few related columns in units between 1e-8 and 1e8, some of them positive and skewed."""
    random = np.random.default_rng(seed)
    n, p = random.integers(30, 200), random.integers(2, 8)
    values = random.normal(size=(n, p)) @ random.normal(size=(p, p))
    skewed = random.random(p) < 0.3
    values[:, skewed] = np.exp(values[:, skewed])
    return np.asarray(values * 10.0 ** random.uniform(-8, 8, size=p))


@quietly
@pytest.mark.parametrize("seed", range(12))
def test_a_file_on_the_command_line_gets_exactly_the_answer_of_a_table_in_python(
    seed: int, small_model_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values = random_table(seed)
    arrow = Arrow(small_model_folder).fit(values)

    file = tmp_path / "table.csv"
    pd.DataFrame(values, columns=list(arrow.answer_.names)).to_csv(file, index=False)
    with pytest.raises(SystemExit) as ended:
        main(["discover", str(file), "--model", str(small_model_folder), "--json"])
    assert not ended.value.code
    printed = json.loads(capsys.readouterr().out)
    assert printed["distribution"] == arrow.answer_.to_dict()["distribution"]
    np.testing.assert_array_equal(Answer.from_dict(printed).edge_probabilities, arrow.edge_probabilities_)


@quietly
@pytest.mark.parametrize("factor", [2.0**-30, 1e-8, 1e8, 2.0**40, 1e150])
def test_units_do_not_matter(factor: float, small_model_folder: Path, table: pd.DataFrame) -> None:
    first = Arrow(small_model_folder, scale="given").fit(table)
    second = Arrow(small_model_folder, scale="given").fit(table.assign(dose=table["dose"] * factor))
    np.testing.assert_allclose(first.edge_probabilities_, second.edge_probabilities_, atol=2e-6)
    if math.frexp(factor)[0] == 0.5:  # a power of two changes no digit
        np.testing.assert_array_equal(first.edge_probabilities_, second.edge_probabilities_)


@quietly
def test_knowledge_is_compiled_once(
    small_model_folder: Path, table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = []
    compile_ = Knowledge.compile
    monkeypatch.setattr(Knowledge, "compile", lambda self, names: compiled.append(1) or compile_(self, names))
    found = discover(table, Settings(small_model_folder, knowledge={"roots": ["age"]}, decode="shd"))
    assert found.answer.edges is not None
    assert found.answer.constraints.names == tuple(table.columns)
    assert len(compiled) == 1
    arrow = Arrow(small_model_folder, knowledge={"roots": ["age"]}).fit(table)
    compiled.clear()
    arrow.stability(n_resamples=5, progress=False)
    assert not compiled


@quietly
def test_a_misspelled_name_in_the_knowledge_does_not_wait_for_the_network(
    small_model_folder: Path, table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "infer", lambda *_: pytest.fail("the network ran"))
    with pytest.raises(KnowledgeError, match="did you mean 'dose'"):
        discover(table, Settings(small_model_folder, knowledge={"roots": ["doses"]}))


def test_with_tied_scores_and_knowledge_the_order_of_columns_moves_no_probability() -> None:
    random = np.random.default_rng(0)
    logits = random.normal(size=(7, 7))
    distribution = GraphDistribution(logits + logits.T, np.zeros(7))
    names = tuple("abcdefg")
    known = Knowledge(tiers=[["c", "a"], ["e", "b"]], required=["g -> d"])
    given = Answer(names, distribution, known, arrangement=range(7))
    order = random.permutation(7)
    # The same variables in the same arrangement, from a table with its columns in another order.
    shuffled = Answer(
        tuple(names[place] for place in order), distribution, known, arrangement=np.argsort(order).tolist()
    )
    np.testing.assert_array_equal(given.edge_probabilities[np.ix_(order, order)], shuffled.edge_probabilities)
    np.testing.assert_array_equal(given.adjacency[np.ix_(order, order)], shuffled.adjacency)
    assert given.order == shuffled.order
    drawn = (answer.sample(50, np.random.default_rng(1)).graphs for answer in (given, shuffled))
    np.testing.assert_array_equal(next(drawn)[:, order[:, None], order[None, :]], next(drawn))


# Saved answers


@quietly
@pytest.mark.parametrize("scale", ["auto", "given"])
def test_a_saved_answer_can_be_refined_as_the_live_one(
    scale: str, small_model_folder: Path, table: pd.DataFrame
) -> None:
    live = Arrow(small_model_folder, knowledge={"roots": ["age"]}, scale=scale).fit(table).answer_
    saved = Answer.from_dict(json.loads(json.dumps(live.to_dict())))
    assert saved.to_dict() == live.to_dict()
    assert saved.findings == live.findings
    for changes in (
        {"knowledge": Knowledge(required=["outcome -> dose"], tiers=[["d"], ["e"]])},
        {"decode": "f1"},
        {"decode": "shd"},
        {"threshold": 0.2},
    ):
        first, second = live.refine(**changes), saved.refine(**changes)
        assert first.to_dict() == second.to_dict()
        np.testing.assert_array_equal(first.edge_probabilities, second.edge_probabilities)
        drawn = (answer.sample(20, np.random.default_rng(0)).graphs for answer in (first, second))
        np.testing.assert_array_equal(next(drawn), next(drawn))


def test_hidden_causes_of_a_network_that_tells_them_are_saved_too() -> None:
    logits = np.array([[0.0, 2.0, -3.0], [2.0, 0.0, 0.5], [-3.0, 0.5, 0.0]])
    distribution = GraphDistribution(logits, np.array([1.0, 0.0, -1.0]), confounding_logits=-logits)
    answer = Answer(("a", "b", "c"), distribution, arrangement=(2, 0, 1))
    assert answer.confounding_probabilities is not None
    assert answer.graph.bidirected is not None
    # Variable i of the distribution is number arrangement[i] of the names: c, a, b.
    assert answer.confounding_probabilities[2, 1] == pytest.approx(1 / (1 + math.exp(-3)))
    assert answer.graph.bidirected[2, 1]
    assert not answer.graph.bidirected[2, 0]
    again = Answer.from_dict(answer.to_dict())
    np.testing.assert_array_equal(again.confounding_probabilities, answer.confounding_probabilities)


@quietly
@pytest.mark.parametrize(
    "change",
    [
        lambda content: content.pop("distribution"),
        lambda content: content.update(version=99),
        lambda content: content.update(format="another"),
        lambda content: content.pop("findings"),
        lambda content: content["distribution"].update(arrangement=[0, 0, 1, 2, 3, 4]),
        lambda content: content["distribution"]["skeleton_logits"].pop(),
        lambda content: content["distribution"].update(order_scores=["high"] * 6),
        lambda content: content.update(decode="best"),
        lambda content: content.update(threshold="half"),
        lambda content: content.update(variables=["a"]),
        lambda content: content["columns"][0].update(kind="wild"),
        lambda content: content.update(knowledge={"roots": ["nobody"]}),
    ],
)
def test_a_damaged_answer_is_one_sentence(change: Any, small_model_folder: Path, table: pd.DataFrame) -> None:
    content = Arrow(small_model_folder).fit(table).answer_.to_dict()
    change(content)
    with pytest.raises(ArrowError):
        Answer.from_dict(content)
    with pytest.raises(ArrowError):
        Answer.from_dict([content])  # type: ignore[arg-type]


# Settings


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"threshold": None}, "threshold"),
        ({"threshold": "0.5"}, "threshold"),
        ({"threshold": float("nan")}, "threshold"),
        ({"threshold": True}, "threshold"),
        ({"threshold": 1}, "threshold"),
        ({"device": None}, "device"),
        ({"device": 0}, "device"),
        ({"device": "tpu"}, "tpu"),
        ({"device": "cuda:x"}, "cuda:x"),
        ({"model": 5}, "model"),
        ({"model": None}, "model"),
        ({"model": ""}, "model"),
        ({"decode": "best"}, "map, shd, f1"),
        ({"decode": ["map"]}, "Expected decode to be text"),
        ({"scale": "linear"}, "auto, given, log"),
        ({"missing": "guess"}, "missing"),
        ({"precision": "half"}, "auto, float32, bfloat16"),
        ({"precision": 16}, "Expected precision to be text"),
        ({"observations_per_chunk": -1}, "observations_per_chunk"),
        ({"observations_per_chunk": 0}, "observations_per_chunk"),
        ({"observations_per_chunk": 2.5}, "observations_per_chunk"),
        ({"knowledge": 7}, "knowledge"),
    ],
)
def test_a_wrong_setting_is_one_sentence_before_any_work(
    settings: dict[str, Any], word: str, table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "infer", lambda *_: pytest.fail("the network ran"))
    with pytest.raises(ArrowError, match=word):
        Arrow(**settings).fit(table)


def test_a_wrong_setting_is_a_value_error_too() -> None:
    with pytest.raises(ValueError, match="threshold"):
        Settings(threshold=2)


@quietly
@pytest.mark.parametrize("k", [0, -1, 1.5, True, "5", None, float("nan")])
def test_a_count_is_a_whole_number(k: Any, small_model_folder: Path, table: pd.DataFrame) -> None:
    arrow = Arrow(small_model_folder).fit(table)
    with pytest.raises(ConfigurationError, match="whole number"):
        arrow.sample_graphs(k)
    with pytest.raises(ConfigurationError, match="whole number"):
        arrow.stability(k)
    with pytest.raises(ConfigurationError, match="whole number"):
        arrow.path_probability("d", "e", k)


@quietly
@pytest.mark.parametrize("seed", [2**70, -1, 1.5, "1", True])
def test_a_seed_out_of_range_is_one_sentence(seed: Any, small_model_folder: Path, table: pd.DataFrame) -> None:
    with pytest.raises(ConfigurationError, match="random_state"):
        Arrow(small_model_folder).fit(table).sample_graphs(3, random_state=seed)


@quietly
def test_an_answer_with_another_table_has_no_stability(small_model_folder: Path, table: pd.DataFrame) -> None:
    found = discover(table, Settings(small_model_folder))
    other = read_table(table.assign(dose=table["dose"] + 1))
    with pytest.raises(TableError, match="another one"):
        Discovery(found.answer, other, settings=found.settings).stability(n_resamples=2)
    shuffled = discover(table.sample(frac=1, random_state=0)[table.columns[::-1]], found.settings)
    first, second = (each.stability(n_resamples=2, progress=False) for each in (found, shuffled))
    again = [second.names.index(name) for name in first.names]
    np.testing.assert_array_equal(first.frequencies, second.frequencies[np.ix_(again, again)])


# In words


@quietly
def test_print_says_what_was_found(small_model_folder: Path, table: pd.DataFrame) -> None:
    arrow = Arrow(small_model_folder)
    assert str(arrow) == repr(arrow)
    arrow.fit(table)
    text = str(arrow)
    assert repr(arrow) in text
    assert "120 observations of 6 variables" in text
    for edge in arrow.edges_:
        assert any(
            line.split()[:1] == edge.source.split()[:1] and edge.target in line and edge.direction in line
            for line in text.splitlines()
        )
    assert f"Causal order: {', '.join(arrow.causal_order_)}" in text
    bundle = arrow._repr_mimebundle_()
    assert bundle["text/plain"] == text
    assert "<svg" in bundle["text/html"]
    assert "<table" in bundle["text/html"]
    assert len(arrow.edges_frame_) == len(arrow.edges_)
    assert arrow.edges_frame_["source"].tolist() == [edge.source for edge in arrow.edges_]


@quietly
def test_names_are_escaped_in_a_notebook(small_model_folder: Path, table: pd.DataFrame) -> None:
    arrow = Arrow(small_model_folder).fit(table.rename(columns={"dose": "<script>alert(1)</script>"}))
    assert "<script>" not in arrow._repr_html_()


def test_fit_warns_where_the_report_card_warns(small_model_folder: Path, table: pd.DataFrame) -> None:
    with pytest.warns(ArrowWarning, match="copies of each other"):
        arrow = Arrow(small_model_folder).fit(table.assign(copy=2 * table["dose"]))
    assert any("copies" in warning for warning in arrow.report_.warnings)
    assert "Careful: " in arrow.summary()


@quietly
def test_an_adjacency_that_knowledge_takes_away_is_mentioned() -> None:
    # Adjacent, and a before b, both almost certainly: with a -> b forbidden, no edge is more probable than b -> a.
    logits = np.array([[0.0, 3.0], [3.0, 0.0]])
    answer = Answer(("a", "b"), GraphDistribution(logits, np.array([9.0, 0.0])))
    assert answer.edges
    assert answer.vanished == ()
    refined = answer.refine(knowledge=Knowledge(forbidden=["a -> b"]))
    assert not refined.edges
    (pair,) = refined.vanished
    assert (pair.first, pair.second, pair.probability) == ("a", "b", pytest.approx(0.9526, abs=1e-4))
    assert str(pair) in summary.to_text(summary.summarize(refined))
    # What is forbidden both ways is what was asked for.
    assert not answer.refine(knowledge=Knowledge(forbidden=["a -> b", "b -> a"])).vanished


# Settings in files


@quietly
def test_settings_that_went_through_json_give_the_same_answer(
    small_model_folder: Path, table: pd.DataFrame, tmp_path: Path
) -> None:
    file = tmp_path / "table.csv"
    table.to_csv(file, index=False)
    settings = Settings(str(small_model_folder), knowledge={"roots": ["age"]}, decode="shd")
    read = Settings.from_dict(json.loads(json.dumps(settings.to_dict())))
    assert discover(file, read, drop=["e"]).answer.to_dict() == discover(file, settings, drop=["e"]).answer.to_dict()


# Options of read_table


@pytest.mark.parametrize(
    "reading",
    [
        {"missing": "drop"},
        {"kinds": {"group": "category"}},
        {"ordered": {"group": ["low", "mid", "high"]}},
        {"drop": ["group"], "missing": "impute"},
        {"kinds": None, "missing": "drop"},
    ],
)
def test_discover_reads_a_table_as_read_table_does_with_the_same_options(
    reading: dict[str, Any], any_table_model_folder: Path
) -> None:
    frame = pd.DataFrame(random_table(3), columns=[f"c{place}" for place in range(random_table(3).shape[1])])
    frame["group"] = np.resize(["low", "mid", "high", "mid"], len(frame))
    frame.iloc[3, 0] = np.nan
    alone = read_table(frame, **reading)
    usual = Settings(any_table_model_folder)
    for settings in (usual, usual.changed(missing="model")):
        found = discover(frame, settings, **reading).table
        assert found.columns == alone.columns
        np.testing.assert_array_equal(found.values, alone.values)


def test_settings_and_reading_options_can_be_given_by_name(small_model_folder: Path, table: pd.DataFrame) -> None:
    settings = Settings(small_model_folder, decode="shd", reading=ReadOptions(drop=["e"]))
    by_name = discover(table, model=small_model_folder, decode="shd", drop=["e"]).answer
    assert by_name.to_dict() == discover(table, settings).answer.to_dict()
    assert discover(table, settings, drop=None, decode="map").answer.names == tuple(table.columns)


def test_settings_of_earlier_versions_are_read() -> None:
    former = {"model": "arrow-base", "missing": "drop", "kinds": None, "observations": 500, "precision": "auto"}
    assert Settings.from_dict(former) == Settings(max_rows=500, reading=ReadOptions(missing="drop"))
    settings = Settings(decode="f1", max_rows=300).changed(na=["?"], kinds={"zip": "category"}, environments="site")
    assert Settings.from_dict(json.loads(json.dumps(settings.to_dict()))) == settings


@pytest.mark.parametrize(
    ("reading", "words"),
    [
        ({"nonsense": 1}, "Unknown option 'nonsense': expected some of columns, drop, missing"),
        ({"enviroments": "site"}, "did you mean 'environments'?"),
        ({"observations": 100}, "'observations' is now called 'max_rows'."),
        ({"abilities": 5}, "Unknown option 'abilities'"),
        ({"strict": False}, "Unknown option 'strict'"),
        ({"missing": "perhaps"}, "Expected missing to be one of auto, model"),
        ({"kinds": {"a": "text"}}, "Expected the kind of 'a' to be one of number"),
    ],
)
def test_an_unknown_option_fails_before_any_work(reading: dict[str, Any], words: str, tmp_path: Path) -> None:
    for ask in (
        lambda: discover(tmp_path / "none.csv", Settings("no-such-model"), **reading),
        lambda: discover_many({"t": pd.DataFrame()}, tmp_path / "out", jobs=1, **reading),
    ):
        with pytest.raises(ArrowError) as refusal:
            ask()
        assert words in str(refusal.value)
    assert not (tmp_path / "out").exists()
