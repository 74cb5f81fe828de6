"""Arrow and what stands behind it: fitting, refining, uncertainty, by the laws a user relies on."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import check_estimator

from causal_arrow import Arrow, Discovery, Settings, discover
from causal_arrow.discovery import inference, uncertainty
from causal_arrow.discovery.answer import MODERATE_DIRECTION, STRONG_DIRECTION, Answer
from causal_arrow.discovery.arranged import arrange
from causal_arrow.errors import (
    ArrowError,
    ArrowWarning,
    CheckpointError,
    ConfigurationError,
    KnowledgeError,
)
from causal_arrow.graphs.dag import cpdag, is_acyclic, topological_order
from causal_arrow.graphs.decoding import DECODERS
from causal_arrow.graphs.graph_distribution import GraphDistribution
from causal_arrow.graphs.knowledge import Knowledge
from causal_arrow.network import PRECISIONS
from causal_arrow.network.pairwise import PairwiseConfig, PairwiseNetwork
from causal_arrow.tables.reading import read_table
from causal_arrow.tables.scales import SCALES
from causal_arrow.tables.table import Table
from small_network import random_weights, save_network


@pytest.fixture
def arrow(small_model_folder: Path, table: pd.DataFrame) -> Arrow:
    return Arrow(small_model_folder).fit(table)


def answer_for(adjacency: np.ndarray, certainty: float = 30.0, names: tuple[str, ...] | None = None) -> Answer:
    """An answer that is as sure of a DAG as `certainty` says, in log-odds."""
    order = topological_order(adjacency)
    scores = np.empty(len(order))
    scores[order] = -certainty * np.arange(len(order))
    logits = np.where(adjacency | adjacency.T, certainty, -certainty)
    names = names or tuple(f"v{place}" for place in range(len(order)))
    return Answer(names, GraphDistribution(np.array(logits), np.array(scores)))


def fitted(answer: Answer) -> Arrow:
    """An Arrow with a given answer, to ask it questions whose answers are known."""
    arrow = Arrow()
    arrow.discovery_ = Discovery(answer)
    return arrow


def assert_same_answer(first: Arrow, second: Arrow) -> None:
    """The same to the last bit, variables matched by name."""
    names = list(first.answer_.names)
    for attribute in ("adjacency_matrix_", "edge_probabilities_", "skeleton_probabilities_", "cpdag_"):
        other = getattr(second, attribute).loc[names, names]
        pd.testing.assert_frame_equal(getattr(first, attribute), other, check_exact=True)
    pd.testing.assert_series_equal(first.order_scores_, second.order_scores_[names], check_exact=True)
    assert first.causal_order_ == second.causal_order_


# Fitting


def test_the_answer_is_a_dag_on_the_tables_names(usual_model: str, table: pd.DataFrame) -> None:
    arrow = Arrow(usual_model).fit(table)
    names = list(table.columns)
    for frame in (arrow.adjacency_matrix_, arrow.edge_probabilities_, arrow.skeleton_probabilities_, arrow.cpdag_):
        assert list(frame.index) == list(frame.columns) == names
    assert is_acyclic(arrow.adjacency_matrix_.to_numpy())
    assert list(arrow.order_scores_.index) == names
    assert sorted(arrow.causal_order_) == sorted(names)
    assert list(arrow.feature_names_in_) == names
    assert arrow.n_features_in_ == len(names)
    assert arrow.report_.observations == len(table)
    np.testing.assert_array_equal(arrow.cpdag_, cpdag(arrow.adjacency_matrix_))


def test_edges_follow_the_causal_order(arrow: Arrow) -> None:
    position = {name: place for place, name in enumerate(arrow.causal_order_)}
    assert arrow.edges_
    assert all(position[edge.source] < position[edge.target] for edge in arrow.edges_)


def test_the_graph_carries_the_probabilities(arrow: Arrow) -> None:
    graph = arrow.causal_graph_
    assert isinstance(graph, nx.DiGraph)
    assert nx.to_pandas_adjacency(graph, list(arrow.answer_.names), weight=None).equals(
        arrow.adjacency_matrix_.astype(float)
    )
    for cause, effect, facts in graph.edges(data=True):
        assert facts["probability"] == pytest.approx(arrow.edge_probabilities_.loc[cause, effect], abs=1e-6)


def test_the_same_table_gives_the_same_answer_on_every_run(small_model_folder: Path, table: pd.DataFrame) -> None:
    assert_same_answer(Arrow(small_model_folder).fit(table), Arrow(small_model_folder).fit(table))


def test_shuffling_observations_changes_nothing(arrow: Arrow, small_model_folder: Path, table: pd.DataFrame) -> None:
    for seed in range(3):
        shuffled = table.sample(frac=1, random_state=seed)
        assert_same_answer(arrow, Arrow(small_model_folder).fit(shuffled))


def test_shuffling_columns_relabels_the_answer(arrow: Arrow, small_model_folder: Path, table: pd.DataFrame) -> None:
    for seed in range(3):
        shuffled = table.sample(frac=1, axis=1, random_state=seed)
        other = Arrow(small_model_folder).fit(shuffled)
        assert_same_answer(arrow, other)
        ours = pd.DataFrame(arrow.sample_graphs(20).mean(axis=0), table.columns, table.columns)
        theirs = pd.DataFrame(other.sample_graphs(20).mean(axis=0), shuffled.columns, shuffled.columns)
        pd.testing.assert_frame_equal(ours, theirs.loc[ours.index, ours.columns])


def test_exact_ties_do_not_depend_on_the_order_of_columns(table: pd.DataFrame) -> None:
    undecided = random_weights(PairwiseConfig(stages=1), size=0.0)  # all scores are equal, and so are all logits
    table = table[["age", "dose", "d", "e"]].assign(copy=table["age"])
    first = Arrow(undecided, threshold=0.01).fit(table)
    assert first.order_scores_.drop("copy").nunique() == 1
    assert len(first.edges_) == 7  # all six pairs of the four columns that are read, and the copy
    for seed in range(3):
        assert_same_answer(first, Arrow(undecided, threshold=0.01).fit(table.sample(frac=1, axis=1, random_state=seed)))


def test_fit_leaves_the_table_alone(small_model_folder: Path, table: pd.DataFrame) -> None:
    before = table.copy(deep=True)
    Arrow(small_model_folder).fit(table).stability(n_resamples=2)
    pd.testing.assert_frame_equal(table, before)
    values = table.to_numpy()
    values.flags.writeable = False
    Arrow(small_model_folder).fit(values)


def test_frames_arrays_and_files_are_the_same_table(
    arrow: Arrow, small_model_folder: Path, table: pd.DataFrame, tmp_path: Path
) -> None:
    table.to_csv(tmp_path / "table.csv", index=False)
    for same in (pl.from_pandas(table), tmp_path / "table.csv", str(tmp_path / "table.csv")):
        assert_same_answer(arrow, Arrow(small_model_folder, frames="pandas").fit(same))
    unnamed = Arrow(small_model_folder).fit(table.to_numpy())
    np.testing.assert_array_equal(unnamed.edge_probabilities_, arrow.edge_probabilities_)
    assert list(unnamed.adjacency_matrix_.columns) == ["x1", "x2", "x3", "x4", "x5", "x6"]
    assert not hasattr(unnamed, "feature_names_in_")
    assert not hasattr(clone(arrow).fit(table).fit(table.to_numpy()), "feature_names_in_")


@pytest.mark.parametrize(("scale", "zero"), [("auto", 0.0), ("log", 0.0), ("given", 5e-7)])
def test_units_of_the_columns_do_not_matter(
    scale: str, zero: float, small_model_folder: Path, table: pd.DataFrame
) -> None:
    arrow = Arrow(small_model_folder, scale=scale)
    expected = arrow.fit(table).edge_probabilities_
    np.testing.assert_allclose(arrow.fit(table * 1e-9 + zero).edge_probabilities_, expected, atol=1e-3)


def test_reading_in_chunks_changes_only_the_rounding(
    arrow: Arrow, small_model_folder: Path, table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    chunked = Arrow(small_model_folder, observations_per_chunk=7).fit(table)
    np.testing.assert_allclose(chunked.edge_probabilities_, arrow.edge_probabilities_, atol=1e-4)
    model = inference.ready_model(small_model_folder)
    assert inference.chunk_size(model, 120, 6) is None
    monkeypatch.setattr(inference, "CHUNK_BYTES", 100_000)
    step = inference.chunk_size(model, 120, 6)
    assert step is not None
    assert 1 <= step < 120


def test_a_model_comes_as_folder_file_or_object(arrow: Arrow, small_model_folder: Path, table: pd.DataFrame) -> None:
    model = inference.ready_model(small_model_folder)
    for source in (str(small_model_folder), small_model_folder / "model.safetensors", model):
        assert_same_answer(arrow, Arrow(source).fit(table))


def test_a_model_given_as_an_object_is_not_changed(small_model: PairwiseNetwork, table: pd.DataFrame) -> None:
    before = {name: weight.copy() for name, weight in small_model.weights.items()}
    Arrow(small_model, device="cpu").fit(table)
    assert all(np.array_equal(weight, before[name]) for name, weight in small_model.weights.items())


def test_changing_what_an_arrow_returns_does_not_change_the_arrow(arrow: Arrow) -> None:
    before = arrow.edge_probabilities_
    mine = arrow.edge_probabilities_
    mine.iloc[:, :] = 7.0
    pd.testing.assert_frame_equal(arrow.edge_probabilities_, before)


def test_a_model_is_loaded_once_and_again_when_its_file_changes(small_model: PairwiseNetwork, tmp_path: Path) -> None:
    save_network(small_model, tmp_path / "mine")
    first = inference.ready_model(tmp_path / "mine", "cpu")
    assert inference.ready_model(tmp_path / "mine", "cpu") is first
    save_network(small_model, tmp_path / "mine", extra={"again": True})
    assert inference.ready_model(tmp_path / "mine", "cpu") is not first


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"model": "no-such-model"}, CheckpointError),
        ({"device": "tpu"}, ConfigurationError),
        ({"device": "mps"}, ConfigurationError),
        ({"decode": "best"}, ConfigurationError),
        ({"threshold": 1.5}, ConfigurationError),
        ({"decode": "f1", "threshold": 0.3}, ConfigurationError),
        ({"knowledge": {"required": ["age -> weight"]}}, KnowledgeError),
        ({"knowledge": 3}, KnowledgeError),
        ({"missing": "ignore"}, ConfigurationError),
    ],
)
def test_a_setting_out_of_range_is_an_arrow_error(
    small_model_folder: Path, table: pd.DataFrame, settings: dict[str, object], error: type[ArrowError]
) -> None:
    with pytest.raises(error):
        Arrow(**{"model": small_model_folder, **settings}).fit(table)


def test_questions_before_fit_are_refused(table: pd.DataFrame) -> None:
    with pytest.raises(NotFittedError):
        _ = Arrow().adjacency_matrix_
    with pytest.raises(NotFittedError):
        Arrow().sample_graphs(3)
    with pytest.raises(NotFittedError):
        Arrow().stability()


def test_a_fitted_arrow_survives_pickling(arrow: Arrow) -> None:
    assert_same_answer(arrow, pickle.loads(pickle.dumps(arrow)))


# scikit-learn's own checks, and why some cannot hold: they fit tables that no causal graph can be read from.
EXPECTED_FAILURES = {
    "check_n_features_in_after_fitting": "fits 15 observations; fewer than 20 are refused",
    "check_estimators_nan_inf": "fits 5 observations, and their number is refused before their values are looked at",
    "check_fit2d_1sample": "wants the word sample; we say observation",
    "check_fit2d_1feature": "wants the word feature; we say column",
    "check_estimators_empty_data_messages": "wants the words of check_array for a table without columns",
    "check_dtype_object": "wants numbers stored as objects next to a dict to be a TypeError; we name column and cell",
}


def test_scikit_learn_finds_nothing_wrong_but_what_is_expected(small_model_folder: Path) -> None:
    results = check_estimator(
        Arrow(small_model_folder), expected_failed_checks=EXPECTED_FAILURES, on_fail="raise", on_skip=None
    )
    passed = [result for result in results if result["status"] == "passed"]
    assert len(passed) > 30
    assert {result["check_name"] for result in results if result["status"] == "xfail"} == set(EXPECTED_FAILURES)


def test_an_outcome_beside_the_table_is_not_dropped_without_a_word(
    table: pd.DataFrame, small_model_folder: Path
) -> None:
    with pytest.warns(ArrowWarning, match="y is ignored: put the outcome into the table"):
        Arrow(small_model_folder).fit(table.drop(columns="outcome"), table["outcome"])


# Refining


def test_refining_equals_fitting_with_the_new_settings_without_the_network(
    arrow: Arrow, small_model_folder: Path, table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = [
        {"threshold": 0.2},
        {"decode": "shd"},
        {"decode": "f1"},
        {"knowledge": {"required": ["outcome -> age"], "roots": ["dose"]}},
        {"knowledge": Knowledge(tiers=[["outcome", "e"], ["d", "age"]]), "threshold": 0.4},
    ]
    expected = [Arrow(small_model_folder, **change).fit(table) for change in changes]

    def fail(*_: object, **__: object) -> None:
        raise AssertionError("the network was run")

    monkeypatch.setattr(PairwiseNetwork, "read", fail)
    before = arrow.adjacency_matrix_
    for change, wanted in zip(changes, expected, strict=True):
        refined = arrow.refine(**change)
        assert_same_answer(refined, wanted)
        assert refined.get_params()["threshold"] == wanted.threshold
        assert refined.report_ is arrow.report_
    pd.testing.assert_frame_equal(arrow.adjacency_matrix_, before)
    assert arrow.threshold == 0.5


def test_refining_keeps_knowledge_unless_it_is_taken_away(arrow: Arrow) -> None:
    knowing = arrow.refine(knowledge={"required": ["outcome -> age"]})
    assert knowing.refine(threshold=0.9).adjacency_matrix_.loc["outcome", "age"] == 1
    assert_same_answer(knowing.refine(knowledge=Knowledge()), arrow)


def test_knowledge_is_obeyed_by_the_answer_its_probabilities_and_every_sample(arrow: Arrow) -> None:
    refined = arrow.refine(knowledge={"required": ["outcome -> age"], "forbidden": ["age -> dose"], "roots": ["e"]})
    assert refined.adjacency_matrix_.loc["outcome", "age"] == 1
    assert refined.edge_probabilities_.loc["outcome", "age"] == 1
    assert refined.edge_probabilities_.loc["age", "dose"] == 0
    assert (refined.edge_probabilities_["e"] == 0).all()
    constraints = refined.answer_.constraints
    assert all(constraints.allows(graph) for graph in refined.sample_graphs(200))
    required = next(edge for edge in refined.edges_ if edge.required)
    assert (required.source, required.target, required.direction) == ("outcome", "age", "strong")


def test_what_is_declared_at_fit_adds_to_what_is_known(small_model_folder: Path, table: pd.DataFrame) -> None:
    first, second, outcome = table.columns[:3]
    arrow = Arrow(small_model_folder, knowledge={"roots": [first]}).fit(table, randomized=second)
    assert arrow.answer_.knowledge == Knowledge(roots=[first], randomized=[second])
    assert arrow.get_params()["knowledge"] == {"roots": [first]}
    found = discover(table, model=small_model_folder, randomized=[second], roots=[first])
    assert found.answer.knowledge == arrow.answer_.knowledge
    assert not found.answer.adjacency[:, found.answer.index_of(second)].any()
    effect = found.effect(second, outcome)
    assert effect.design == "trial"
    asked = discover(table, model=small_model_folder).effect(second, outcome, randomized=second)
    assert effect.median == pytest.approx(asked.median)


def test_knowledge_comes_from_files_and_from_pgmpys_objects(arrow: Arrow, tmp_path: Path) -> None:
    (tmp_path / "known.json").write_text('{"required": ["outcome -> age"]}')

    class ExpertKnowledge:
        required_edges = (("outcome", "age"),)
        forbidden_edges = temporal_order = root_nodes = search_space = orientations = ()

    by_mapping = arrow.refine(knowledge={"required": [("outcome", "age")]})
    assert_same_answer(arrow.refine(knowledge=tmp_path / "known.json"), by_mapping)
    assert_same_answer(arrow.refine(knowledge=ExpertKnowledge()), by_mapping)


# Edges and their directions


def test_a_direction_is_called_by_its_probability(arrow: Arrow) -> None:
    for edge in arrow.refine(threshold=0.05).edges_:
        share = edge.probability / edge.adjacency_probability
        assert edge.direction_probability == pytest.approx(share)
        assert edge.direction_probability == pytest.approx(1 / (1 + np.exp(-edge.order_margin)), abs=1e-6)
        word = "strong" if share >= STRONG_DIRECTION else "moderate" if share >= MODERATE_DIRECTION else "weak"
        assert edge.direction == word


def test_only_the_edges_of_a_collider_are_compelled() -> None:
    adjacency = np.zeros((5, 5), dtype=bool)
    adjacency[0, 2] = adjacency[1, 2] = adjacency[3, 4] = True
    compelled = {(edge.source, edge.target): edge.compelled for edge in answer_for(adjacency).edges}
    assert compelled == {("v0", "v2"): True, ("v1", "v2"): True, ("v3", "v4"): False}


def test_edges_are_listed_by_falling_probability(arrow: Arrow) -> None:
    probabilities = [edge.probability for edge in arrow.refine(threshold=0.05).edges_]
    assert probabilities == sorted(probabilities, reverse=True)


# Uncertainty


def test_sampled_graphs_are_acyclic_reproducible_and_as_frequent_as_the_probabilities_say(arrow: Arrow) -> None:
    graphs = arrow.sample_graphs(4000, random_state=3)
    assert is_acyclic(graphs).all()
    np.testing.assert_array_equal(graphs, arrow.sample_graphs(4000, random_state=3))
    assert (graphs != arrow.sample_graphs(4000, random_state=4)).any()
    np.testing.assert_allclose(graphs.mean(axis=0), arrow.edge_probabilities_, atol=5 * 0.5 / 4000**0.5)


@pytest.mark.parametrize("state", [None, np.random.default_rng(0), np.random.RandomState(0), np.int64(5)])
def test_a_random_state_is_whatever_scikit_learn_takes(arrow: Arrow, state: object) -> None:
    assert arrow.sample_graphs(2, random_state=state).shape == (2, 6, 6)  # type: ignore[arg-type]


def test_path_probability_counts_direct_and_indirect_paths(arrow: Arrow) -> None:
    ancestors = arrow.ancestor_probabilities(n_graphs=300, random_state=1)
    assert arrow.path_probability("age", "d", n_graphs=300, random_state=1) == ancestors.loc["age", "d"]
    edges = arrow.sample_graphs(300, random_state=1).mean(axis=0)
    assert (ancestors.to_numpy() >= edges).all()
    chain = np.diag(np.ones(3, dtype=bool), k=1)
    certain = fitted(answer_for(chain))
    assert certain.path_probability("v0", "v3", n_graphs=10) == 1
    assert certain.path_probability("v3", "v0", n_graphs=10) == 0
    with pytest.raises(ConfigurationError, match="no variable 'v9'"):
        certain.path_probability("v0", "v9")
    with pytest.raises(ConfigurationError, match="two different variables as cause and effect, got 'v0' twice"):
        certain.path_probability("v0", "v0")


def test_parent_set_frequencies_add_up_to_one_and_to_the_edge_frequencies(arrow: Arrow) -> None:
    sets = arrow.parent_set_frequencies("outcome", n_graphs=500, random_state=2)
    assert sets["frequency"].sum() == pytest.approx(1)
    assert sets["frequency"].is_monotonic_decreasing
    with_d = sum(share for parents, share in sets.itertuples(index=False) if "d" in parents)
    assert with_d == pytest.approx(arrow.sample_graphs(500, random_state=2)[:, 3, 5].mean())


def test_a_confounder_is_to_be_adjusted_for_and_a_mediator_is_not() -> None:
    names = ("confounder", "treatment", "mediator", "outcome", "cause of outcome", "instrument")
    place = {name: number for number, name in enumerate(names)}
    adjacency = np.zeros((6, 6), dtype=bool)
    for cause, effect in [
        ("confounder", "treatment"),
        ("confounder", "outcome"),
        ("treatment", "mediator"),
        ("mediator", "outcome"),
        ("cause of outcome", "outcome"),
        ("instrument", "treatment"),
    ]:
        adjacency[place[cause], place[effect]] = True
    arrow = fitted(answer_for(adjacency, names=names))
    optimal = arrow.adjustment_set_frequencies("treatment", "outcome", n_graphs=20)
    assert optimal.to_dict("list") == {"adjustment_set": [("confounder", "cause of outcome")], "frequency": [1.0]}
    parents = arrow.adjustment_set_frequencies("treatment", "outcome", kind="parents", n_graphs=20)
    assert parents["adjustment_set"].tolist() == [("confounder", "instrument")]
    backwards = arrow.adjustment_set_frequencies("outcome", "treatment", n_graphs=20)
    assert backwards["adjustment_set"].tolist() == [None]
    with pytest.raises(ConfigurationError, match="kind"):
        arrow.adjustment_set_frequencies("treatment", "outcome", kind="best")
    with pytest.raises(ConfigurationError, match="different"):
        arrow.adjustment_set_frequencies("treatment", "treatment")


@pytest.mark.parametrize("kind", uncertainty.ADJUSTMENTS)
def test_every_adjustment_set_blocks_all_paths_that_are_not_causal(kind: str) -> None:
    random = np.random.default_rng(5)
    checked = 0
    for _ in range(60):
        adjacency = np.triu(random.random((6, 6)) < 0.45, k=1)
        (members,) = uncertainty.adjustment_sets(adjacency[None], 1, 4, kind=kind)
        graph = nx.from_numpy_array(adjacency.astype(int), create_using=nx.DiGraph)
        if members is None:
            assert not nx.has_path(graph, 1, 4)
            continue
        checked += 1
        assert not set(members) & (nx.descendants(graph, 1) & nx.ancestors(graph, 4) | {1, 4})
        without_causal_edges = graph.copy()
        causal = [(1, child) for child in graph.successors(1) if child == 4 or nx.has_path(graph, child, 4)]
        without_causal_edges.remove_edges_from(causal)
        assert nx.is_d_separator(without_causal_edges, {1}, {4}, set(members))
    assert checked > 20


# Resampling


def test_bootstrap_counts_what_resampled_tables_would_answer(
    small_model_folder: Path, table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrow = Arrow(small_model_folder, scale="given").fit(table)
    stability = arrow.stability(n_resamples=6, random_state=1)
    assert stability.resamples == 6
    assert np.isin(np.round(stability.frequencies * 6, 9), range(7)).all()
    assert (stability.frequencies + stability.frequencies.T <= 1).all()
    shuffled = Arrow(small_model_folder, scale="given").fit(table.sample(frac=1, random_state=2))
    again = shuffled.stability(n_resamples=6, random_state=1)
    np.testing.assert_array_equal(stability.frequencies, again.frequencies)

    arranged = arrange(read_table(table))
    rows = np.random.default_rng(1).integers(len(table), size=(6, len(table)))
    names = tuple(table.columns[list(arranged.arrangement)])
    answers = [
        Arrow(small_model_folder, scale="given").fit(pd.DataFrame(arranged.values[draw], columns=names))
        for draw in rows
    ]
    by_hand = sum(answer.adjacency_matrix_.loc[table.columns, table.columns] for answer in answers) / 6
    np.testing.assert_allclose(stability.frequencies, by_hand)

    monkeypatch.setattr(inference, "CHUNK_BYTES", 2 * 120 * 6 * 4 * 16 * 16)  # two tables at a time
    np.testing.assert_allclose(arrow.stability(n_resamples=6, random_state=1).frequencies, stability.frequencies)


def test_bootstrap_lists_edges_by_frequency_and_obeys_knowledge(arrow: Arrow, table: pd.DataFrame) -> None:
    refined = arrow.refine(knowledge={"required": ["outcome -> age"], "forbidden": ["dose -> d"]})
    frame = refined.stability(n_resamples=4, progress=False).to_frame()
    assert frame["frequency"].is_monotonic_decreasing
    edges = {(row.source, row.target): row for row in frame.itertuples()}
    assert edges["outcome", "age"].frequency == 1
    assert edges["outcome", "age"].reversed_frequency == 0
    assert ("dose", "d") not in edges


def test_former_names_say_what_they_are_called_now(arrow: Arrow) -> None:
    with pytest.raises(ConfigurationError, match="'k' is now called 'n_graphs'"):
        arrow.effect("dose", "outcome", k=10)
    with pytest.raises(ConfigurationError, match="'rule' is now called 'decode'"):
        Arrow(rule="f1")
    with pytest.raises(ConfigurationError, match="'observations' is now called 'max_rows'"):
        Arrow(observations=100)
    with pytest.raises(AttributeError, match="is now stability"):
        arrow.bootstrap(None)
    assert not hasattr(arrow, "bootstrap")


@pytest.mark.parametrize(
    ("name", "choices"),
    [
        ("decode", DECODERS),
        ("scale", SCALES),
        ("precision", PRECISIONS),
    ],
)
def test_the_choices_of_a_setting_are_those_of_the_code_behind_it(name: str, choices: tuple[str, ...]) -> None:
    (setting,) = (entry for entry in fields(Settings) if entry.name == name)
    assert setting.metadata["choices"] == tuple(choices)


# Arrangement


def test_arranging_keeps_the_values_and_says_where_they_were(table: pd.DataFrame) -> None:
    read = read_table(table)
    arranged = arrange(read)
    assert sorted(arranged.arrangement) == list(range(6))
    for column, place in enumerate(arranged.arrangement):
        np.testing.assert_array_equal(np.sort(arranged.values[:, column]), np.sort(read.values[:, place]))


def test_minus_zero_is_zero() -> None:
    random = np.random.default_rng(0)
    values = random.permuted(np.tile(np.repeat([-1.0, 0.0, 1.0], 10), (3, 1)), axis=1).T  # three columns alike
    negative = values.copy()
    negative[:, 0] *= np.where(negative[:, 0] == 0, -1.0, 1.0)
    assert np.signbit(negative[negative == 0]).any()
    first, second = (arrange(Table.of_numbers(each, ("a", "b", "c"))) for each in (values, negative))
    assert first.arrangement == second.arrangement == (0, 1, 2)
    np.testing.assert_array_equal(first.values, second.values)


# Speed and memory


def test_a_thousand_graphs_of_fifty_variables_take_less_than_a_second() -> None:
    random = np.random.default_rng(0)
    logits = random.normal(-2, 2, size=(50, 50))
    distribution = GraphDistribution(logits + logits.T, 3 * random.normal(size=50))
    answer = Answer(tuple(f"x{index}" for index in range(50)), distribution)
    times = []
    for seed in range(3):
        start = sum(_cpu_times())
        answer.sample(1000, np.random.default_rng(seed))
        times.append(sum(_cpu_times()) - start)
    assert min(times) < 1


def _cpu_times() -> tuple[float, float]:
    return os.times()[:2]


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
def test_two_thousand_observations_of_a_hundred_variables_fit_in_two_gigabytes() -> None:
    program = """
import re, numpy as np
from causal_arrow import Settings, discover
from causal_arrow.network.pairwise import PairwiseConfig
from small_network import random_weights
values = np.random.default_rng(0).normal(size=(2000, 100))
discover(values, Settings(model=random_weights(PairwiseConfig())))
# Not ru_maxrss, which a process has from the one that started it.
print(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
"""
    paths = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    command = [sys.executable, "-c", program]
    answer = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert int(answer.stdout) / 1e6 < 2
