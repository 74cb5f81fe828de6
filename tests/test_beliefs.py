"""Beliefs are evidence: 1 is knowledge, 1/2 is nothing, and in between they weigh every graph as they say."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from causal_arrow import Discovery, Knowledge, discover, load_example
from causal_arrow.errors import KnowledgeError
from causal_arrow.graphs._orders import log_weight
from causal_arrow.graphs.beliefs import Belief
from causal_arrow.graphs.decoding import decode, edge_probabilities, probabilities_of, sample_graphs
from causal_arrow.graphs.graph_distribution import GraphDistribution, sigmoid

NAMES = ("a", "b", "c", "d")
STATEMENTS = ("a -> b", "b -> a", "a before c", "root b", "leaf a", "a ~> d", "d ~> a")
HARD: dict[tuple[str, float], dict[str, Any]] = {
    ("a -> b", 1.0): {"required": ["a -> b"]},
    ("a -> b", 0.0): {"forbidden": ["a -> b"]},
    ("root b", 1.0): {"roots": ["b"]},
    ("leaf a", 1.0): {"leaves": ["a"]},
    ("a before c", 1.0): {"tiers": [["a"], ["c"]]},
    ("c before a", 0.0): {"tiers": [["a"], ["c"]]},
}


def distribution(seed: int = 0, variables: int = 4) -> GraphDistribution:
    random = np.random.default_rng(seed)
    logits = random.normal(size=(variables, variables))
    return GraphDistribution(logits + logits.T, random.normal(size=variables))


def true_in(statement: str, adjacency: np.ndarray, order: tuple[int, ...]) -> bool:
    """Written anew, from the words."""
    words = statement.split()
    if words[0] == "root":
        return not adjacency[:, NAMES.index(words[1])].any()
    if words[0] == "leaf":
        return not adjacency[NAMES.index(words[1])].any()
    j, k = NAMES.index(words[0]), NAMES.index(words[2])
    if words[1] == "->":
        return bool(adjacency[j, k])
    if words[1] == "before":
        return order.index(j) < order.index(k)
    paths = sum(np.linalg.matrix_power(adjacency.astype(int), steps) for steps in range(1, 4))
    return bool(paths[j, k])


def brute_force(given: GraphDistribution, beliefs: dict[str, float], asked: tuple[str, ...]) -> tuple[Any, list[float]]:
    """Edge probabilities, and those of statements, by summing over every order and skeleton."""
    pairs = list(itertools.combinations(range(4), 2))
    chance = sigmoid(given.skeleton_logits)
    edges, holds, total = np.zeros((4, 4)), np.zeros(len(asked)), 0.0
    for order in itertools.permutations(range(4)):
        weight = np.exp(log_weight(np.array([order]), given.order_scores, np.zeros((4, 4)))[0])
        for coins in itertools.product([False, True], repeat=len(pairs)):
            adjacency, probability = np.zeros((4, 4), dtype=bool), weight
            for (j, k), there in zip(pairs, coins, strict=True):
                first, second = (j, k) if order.index(j) < order.index(k) else (k, j)
                adjacency[first, second] = there
                probability *= chance[j, k] if there else 1 - chance[j, k]
            for statement, p in beliefs.items():
                probability *= p if true_in(statement, adjacency, order) else 1 - p
            edges += probability * adjacency
            holds += [probability * true_in(statement, adjacency, order) for statement in asked]
            total += probability
    return edges / total, list(holds / total)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "beliefs",
    [{"a -> b": 0.8}, {"a -> b": 0.1, "b -> a": 0.7}, {"a before c": 0.9}, {"a before c": 0.3, "c -> a": 0.8}],
)
def test_beliefs_about_pairs_weigh_graphs_exactly(beliefs: dict[str, float], seed: int) -> None:
    given = distribution(seed)
    expected, _ = brute_force(given, beliefs, ())
    assert edge_probabilities(given, Knowledge(beliefs=beliefs).compile(NAMES)) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("beliefs", [{"root b": 0.8}, {"leaf a": 0.2, "a ~> d": 0.9}, {"root b": 0.9, "a -> c": 0.3}])
def test_other_beliefs_weigh_graphs_up_to_the_error_of_the_draws(beliefs: dict[str, float]) -> None:
    given = distribution(5)
    constraints = Knowledge(beliefs=beliefs).compile(NAMES)
    expected, statements = brute_force(given, beliefs, STATEMENTS)
    assert edge_probabilities(given, constraints) == pytest.approx(expected, abs=0.03)
    found = probabilities_of([Belief(each, 0.5) for each in STATEMENTS], given, constraints)
    assert found == pytest.approx(statements, abs=0.03)
    drawn = sample_graphs(given, constraints, 4000, np.random.default_rng(1))
    assert drawn.exact
    assert drawn.graphs.mean(axis=0) == pytest.approx(expected, abs=0.03)


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_probability_of_one_half_changes_nothing(statement: str) -> None:
    given = distribution(1)
    constraints = Knowledge(beliefs={statement: 0.5}).compile(NAMES)
    assert np.array_equal(edge_probabilities(given, constraints), edge_probabilities(given))
    assert np.array_equal(decode(given, constraints).adjacency, decode(given).adjacency)
    draws = [sample_graphs(given, known, 50, np.random.default_rng(0)).graphs for known in (constraints, None)]
    assert np.array_equal(*draws)


@pytest.mark.parametrize(("statement", "probability"), HARD)
def test_a_probability_of_one_is_knowledge(statement: str, probability: float) -> None:
    given, known = distribution(2), Knowledge(**HARD[statement, probability]).compile(NAMES)
    believed = Knowledge(beliefs={statement: probability}).compile(NAMES)
    assert believed.is_same(known)
    assert np.array_equal(edge_probabilities(given, believed), edge_probabilities(given, known))
    assert np.array_equal(decode(given, believed).adjacency, decode(given, known).adjacency)


@pytest.mark.parametrize("statement", ["a -> b", "root b", "leaf a"])
def test_near_one_the_answer_is_near_that_of_knowledge(statement: str) -> None:
    given, known = distribution(3), Knowledge(**HARD[statement, 1.0]).compile(NAMES)
    believed = Knowledge(beliefs={statement: 0.99999}).compile(NAMES)
    assert edge_probabilities(given, believed) == pytest.approx(edge_probabilities(given, known), abs=0.04)
    assert np.array_equal(decode(given, believed).adjacency, decode(given, known).adjacency)


def test_independent_beliefs_multiply_and_opposite_ones_cancel() -> None:
    given = distribution(4)
    twice = Knowledge(beliefs=[Belief("a -> b", 0.8, "Ann"), Belief("a -> b", 0.8, "Bo")]).compile(NAMES)
    once = Knowledge(beliefs={"a -> b": 0.64 / 0.68}).compile(NAMES)
    assert edge_probabilities(given, twice) == pytest.approx(edge_probabilities(given, once))
    cancelled = Knowledge(beliefs=[Belief("a -> b", 0.8, "Ann"), Belief("a -> b", 0.2, "Bo")]).compile(NAMES)
    assert edge_probabilities(given, cancelled) == pytest.approx(edge_probabilities(given))


def test_knowledge_outweighs_beliefs() -> None:
    known = Knowledge(forbidden=["a -> b"], beliefs={"a -> b": 0.99, "a ~> b": 0.6})
    assert edge_probabilities(distribution(), known.compile(NAMES))[0, 1] == 0
    assert not sample_graphs(distribution(), known.compile(NAMES), 50, np.random.default_rng(0)).graphs[:, 0, 1].any()


@pytest.mark.parametrize(
    ("knowledge", "words"),
    [
        ({"beliefs": {"a -> b": 1.5}}, "from 0 to 1"),
        ({"beliefs": {"a -> b": True}}, "from 0 to 1"),
        ({"beliefs": {"a is nice": 0.8}}, "Expected a statement such as"),
        ({"beliefs": {"a -> a": 0.8}}, "to itself"),
        ({"beliefs": "root a"}, "Expected beliefs such as"),
        ({"beliefs": [3]}, "Expected a belief with statement"),
        ({"beliefs": [("root a", 0.8), ("root a", 0.7)]}, "keep one of them"),
        ({"beliefs": {"a -> b": 1}, "forbidden": ["a -> b"]}, "it is also forbidden"),
    ],
)
def test_a_bad_belief_is_one_sentence(knowledge: dict[str, Any], words: str) -> None:
    with pytest.raises(KnowledgeError, match=words):
        Knowledge(**knowledge)


def test_beliefs_that_contradict_each_other_or_name_nobody_are_refused() -> None:
    with pytest.raises(KnowledgeError, match="would come before itself"):
        Knowledge(beliefs={"a before b": 1, "b before a": 1}).compile(NAMES)
    with pytest.raises(KnowledgeError, match="not in the table: 'e'"):
        Knowledge(beliefs={"root e": 0.8}).compile(NAMES)
    with pytest.raises(KnowledgeError, match="No drawn graph agrees"):
        edge_probabilities(distribution(), Knowledge(leaves=["a"], beliefs={"a ~> b": 1}).compile(NAMES))
    with pytest.raises(KnowledgeError, match="about tables, not yet about time series"):
        discover(load_example("greenhouse"), lags=1, time="day", beliefs={"root sun": 0.8})


@pytest.fixture(scope="module")
def found() -> Discovery:
    return discover(load_example("hospital"))


def test_beliefs_are_shown_apart_with_who_and_why(found: Discovery) -> None:
    belief = Belief("root smoker", 0.9, "Dr. Chen", "it was asked at birth")
    believing = found.refine(beliefs=[belief, Belief("drug <-> stay", 0.2)])
    first, second = believing.answer.beliefs
    assert first.belief is belief
    assert first.without < first.with_beliefs
    assert second.without > second.with_beliefs
    for text in (believing.summary(), believing._repr_html_()):
        assert "Believed: nothing in the table causes smoker (0.9, Dr. Chen, it was asked at birth)" in text
    assert "Believed" not in found.summary()
    doubted = found.refine(beliefs={"drug ~> stay": 0.01})
    assert doubted.path_probability("drug", "stay") < found.path_probability("drug", "stay") - 0.1


def test_beliefs_survive_files(found: Discovery, tmp_path: Path) -> None:
    believing = found.refine(
        beliefs=[
            Belief("root smoker", 0.9, "Dr. Chen"),
            Belief("a <-> b".replace("a", "age").replace("b", "stay"), 0.1),
        ]
    )
    believing.save(tmp_path / "work.causal")
    again = Discovery.load(tmp_path / "work.causal")
    assert again.answer.knowledge == believing.answer.knowledge
    assert [str(each) for each in again.answer.beliefs] == [str(each) for each in believing.answer.beliefs]
    toml = '[[beliefs]]\nstatement = "root age"\nprobability = 0.8\nwho = "Ann"\nwhy = "age is given"\n'
    (tmp_path / "known.toml").write_text(toml)
    assert Knowledge.from_file(tmp_path / "known.toml").beliefs == (Belief("root age", 0.8, "Ann", "age is given"),)
    (tmp_path / "short.toml").write_text('[beliefs]\n"root age" = 0.8\n')
    assert Knowledge.from_file(tmp_path / "short.toml").beliefs == (Belief("root age", 0.8),)


def test_beliefs_are_options_of_the_command_line(tmp_path: Path, run: Any) -> None:
    load_example("hospital").to_csv(tmp_path / "t.csv", index=False)
    status, out, _ = run("discover", tmp_path / "t.csv", "--belief", "root smoker=0.9", "--belief", "drug -> stay=.3")
    assert status == 0
    assert "Believed: drug is a direct cause of stay (0.3). Without beliefs 0." in out
    status, _, err = run("discover", tmp_path / "t.csv", "--belief", "root smoker")
    assert (status, "Expected --belief as 'root age=0.8'" in err) == (2, True)
