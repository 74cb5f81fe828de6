"""Hidden causes: which pairs stand out from their table, and what a second reading of the table changes."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from causal_arrow import Answer, Arrow, Knowledge, Settings, discover, read_table
from causal_arrow.discovery import hidden, summary
from causal_arrow.discovery.arranged import arrange
from causal_arrow.discovery.hidden import STANDS_OUT, level_of, on_normal_scores, read_again
from causal_arrow.graphs.graph_distribution import GraphDistribution
from causal_arrow.tables.table import Finding

quietly = pytest.mark.filterwarnings("ignore::causal_arrow.errors.ArrowWarning")


def answer_with(logits: dict[tuple[int, int], float], others: float, variables: int = 6, **fields: object) -> Answer:
    confounding = np.full((variables, variables), others)
    for (j, k), value in logits.items():
        confounding[j, k] = confounding[k, j] = value
    distribution = GraphDistribution(np.full((variables, variables), -5.0), np.zeros(variables), confounding)
    return Answer(tuple("abcdefghij"[:variables]), distribution, **fields)


def shown(answer: Answer) -> list[tuple[str, str]]:
    return [(pair.first, pair.second) for pair in answer.hidden_causes]


def test_pairs_that_stand_out_are_shown_and_the_level_of_the_table_is_not() -> None:
    answer = answer_with({(0, 1): 4.0}, others=1.0)
    assert shown(answer) == [("a", "b")]
    assert answer.undistinguished == 14
    assert shown(answer.refine(hidden="none")) == []
    assert len(shown(answer.refine(hidden="all"))) == 15
    assert shown(answer.refine(hidden_threshold=0.99)) == []
    assert answer.graph.bidirected is not None
    assert answer.graph.bidirected.sum() == 2
    # What is shown changes no probability, and nothing of what is computed.
    for other in (answer.refine(hidden="none"), answer.refine(hidden="all")):
        assert np.array_equal(other.confounding_probabilities, answer.confounding_probabilities)
        assert np.array_equal(other.suspected, answer.suspected)


def test_of_a_table_with_few_hidden_causes_every_pair_above_the_threshold_is_shown() -> None:
    assert shown(answer_with({(0, 1): 0.1, (2, 3): 3.0}, others=-4.0)) == [("c", "d"), ("a", "b")]


def test_a_table_in_which_all_pairs_are_alike_distinguishes_nothing_and_says_so() -> None:
    answer = answer_with({}, others=0.8)
    assert shown(answer) == []
    (sentence,) = summary.hidden_cause_sentences(answer)
    assert sentence.startswith("This table does not distinguish hidden causes: 15 pairs above 0.5 do not stand out")


def test_tables_with_few_pairs_have_no_level() -> None:
    assert len(shown(answer_with({(0, 1): 1.0, (1, 2): 1.0}, others=1.0, variables=3))) == 3


@pytest.mark.parametrize("kind", ["copies", "collinear"])
def test_copies_and_sums_are_no_hidden_causes(kind: str) -> None:
    finding = Finding(kind, "warning", ("a", "b"), "")
    answer = answer_with({(0, 1): 4.0, (2, 3): 4.0}, others=-4.0, findings=(finding,))
    assert shown(answer) == [("c", "d")]


def test_what_is_known_to_share_no_hidden_cause_is_neither_shown_nor_part_of_the_level() -> None:
    known = Knowledge(no_hidden_cause=["a <-> *"])
    answer = answer_with({(1, 2): 4.0}, others=0.8).refine(knowledge=known)
    assert shown(answer) == [("b", "c")]
    assert answer.hidden_level is not None
    assert answer.hidden_level.median == pytest.approx(1 / (1 + np.exp(-0.8)))


def test_a_pair_stands_out_by_log_odds_beyond_the_median() -> None:
    logits = np.zeros((6, 6))
    logits[0, 1] = logits[1, 0] = STANDS_OUT + 0.01
    logits[2, 3] = logits[3, 2] = STANDS_OUT - 0.01
    level = level_of(1 / (1 + np.exp(-logits)), np.eye(6, dtype=bool))
    assert [tuple(pair) for pair in np.argwhere(np.triu(level.standing_out))] == [(0, 1)]


def test_a_saved_answer_shows_the_same_and_an_older_one_all() -> None:
    answer = answer_with({(0, 1): 4.0}, others=1.0)
    saved = json.loads(json.dumps(answer.to_dict()))
    assert shown(Answer.from_dict(saved)) == shown(answer)
    for key in ("hidden", "hidden_threshold"):
        del saved[key]
    assert len(shown(Answer.from_dict(saved))) == 15


# The second reading


def table_with_ties(seed: int = 0, rows: int = 300) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    age = random.integers(20, 70, rows)
    return pd.DataFrame(
        {
            "age": age,
            "smokes": random.random(rows) < 0.3,
            "works": random.random(rows) < 0.6,
            "children": random.poisson(1.2, rows),
            "wage": np.exp(random.normal(size=rows)),
            "town": random.choice(["north", "south", "west"], rows),
        }
    )


def scores_of(table: pd.DataFrame) -> dict[str, np.ndarray]:
    read = on_normal_scores(arrange(read_table(table)))
    return {column.name: read.values[:, index] for index, column in enumerate(read.columns)}


@quietly
def test_normal_scores_keep_ranks_and_leave_categories_without_an_order() -> None:
    arranged = arrange(read_table(table_with_ties()))
    scored = on_normal_scores(arranged)
    for index, column in enumerate(arranged.columns):
        before, after = arranged.values[:, index], scored.values[:, index]
        if column.name == "town":
            assert np.array_equal(before, after)
            continue
        assert len(np.unique(after)) == len(after)
        assert after.std() == pytest.approx(1.0, abs=0.02)
        assert (np.diff(before[np.argsort(after)]) >= 0).all()


@quietly
def test_ties_are_broken_in_every_column_in_another_way() -> None:
    random = np.random.default_rng(1)
    table = pd.DataFrame({name: random.random(2000) < 0.5 for name in "abcd"})
    scores = scores_of(table)
    within = {name: np.where(values > 0, values - 0.8, values + 0.8) for name, values in scores.items()}
    correlation = np.corrcoef(np.array(list(within.values())))
    assert np.abs(correlation - np.eye(4)).max() < 0.1


@quietly
def test_signs_units_names_of_levels_and_the_order_of_rows_and_columns_change_no_score() -> None:
    table = table_with_ties()
    changed = table.sample(frac=1.0, random_state=3)[["town", "wage", "works", "age", "children", "smokes"]]
    changed = changed.assign(
        age=-12.0 * changed.age, smokes=np.where(changed.smokes, "a", "b"), wage=100 * changed.wage
    )
    before, after = scores_of(table), scores_of(changed)
    for name in ("age", "smokes", "works", "children", "wage"):
        same, mirrored = np.sort(after[name]), np.sort(-after[name])
        assert np.allclose(np.sort(before[name]), same) or np.allclose(np.sort(before[name]), mirrored)
    pairs = [("age", "children"), ("smokes", "works"), ("works", "wage"), ("age", "smokes")]
    for one, other in pairs:
        here, there = (abs(np.corrcoef(each[one], each[other])[0, 1]) for each in (before, after))
        assert here == pytest.approx(there, abs=1e-9)


@quietly
def test_a_table_with_few_flagged_pairs_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    found = discover(table_with_ties())
    arranged = arrange(found.table)
    few = replace(found.answer.distribution, confounding_logits=np.full((6, 6), -3.0, dtype=np.float32))
    monkeypatch.setattr(hidden, "infer", None)
    assert read_again(found.network, arranged, few) == (few, ())


@quietly
def test_a_second_reading_only_takes_hidden_causes_away_and_leaves_edges() -> None:
    found = discover(table_with_ties())
    many = replace(found.answer.distribution, confounding_logits=np.full((6, 6), 1.0, dtype=np.float32))
    left, findings = read_again(found.network, arrange(found.table), many)
    assert [finding.kind for finding in findings] == ["second_reading"]
    assert left.skeleton_logits is many.skeleton_logits
    assert left.confounding_logits is not None
    off_diagonal = ~np.eye(6, dtype=bool)
    assert (left.confounding_logits[off_diagonal] <= 1.0).all()
    assert (left.confounding_logits[off_diagonal] < 0.0).any()


@quietly
def test_a_long_table_is_read_again_by_the_rows_that_are_read_one_by_one() -> None:
    long = arrange(read_table(table_with_ties(rows=500)), 200)
    assert on_normal_scores(long).values.shape == (200, 6)


@quietly
def test_settings_choose_what_is_shown() -> None:
    table = table_with_ties()
    assert discover(table, Settings(hidden="none", hidden_threshold=0.9)).answer.hidden == "none"
    assert Arrow().fit(table).hidden_causes_ == list(discover(table).answer.hidden_causes)
