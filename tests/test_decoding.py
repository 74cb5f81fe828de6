"""Decoding and sampling obey the knowledge, and are the best or the exact ones wherever that can be checked."""

from __future__ import annotations

import itertools
import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from causal_arrow.discovery.answer import Answer
from causal_arrow.errors import ArrowError, KnowledgeError
from causal_arrow.graphs import _orders as causal_orders
from causal_arrow.graphs._orders import (
    log_weight,
    most_probable_order,
    moved_after,
    precedence_probabilities,
    sample_orders,
)
from causal_arrow.graphs.dag import is_acyclic, transitive_closure
from causal_arrow.graphs.decoding import (
    DECODERS,
    decode,
    edge_probabilities,
    expected_f1,
    sample_graphs,
    vanished_adjacencies,
)
from causal_arrow.graphs.graph_distribution import GraphDistribution
from causal_arrow.graphs.knowledge import Constraints, Knowledge


def random_distribution(p: int, seed: int, edge_scale: float = 2.0, order_scale: float = 2.0) -> GraphDistribution:
    random = np.random.default_rng(seed)
    logits = np.triu(random.normal(size=(p, p)), 1) * edge_scale
    return GraphDistribution(logits + logits.T, random.normal(size=p) * order_scale)


def random_constraints(p: int, seed: int) -> Constraints:
    """Consistent knowledge of every kind: required edges and tiers agree with a secret order."""
    random = np.random.default_rng(seed)
    names = [f"v{j}" for j in range(p)]
    secret = random.permutation(p)
    pairs = [(names[secret[i]], names[secret[j]]) for i in range(p) for j in range(i + 1, p)]
    required = [pair for pair in pairs if random.random() < random.choice([0.0, 0.2])]
    forbidden = [
        edge
        for cause, effect in pairs
        for edge in ((cause, effect), (effect, cause))
        if edge not in required and random.random() < random.choice([0.0, 0.3])
    ]
    cut = random.integers(0, p + 1)
    tiers = [[names[j] for j in part if random.random() < 0.8] for part in (secret[:cut], secret[cut:])]
    roots = [names[secret[0]]] if random.random() < 0.3 else []
    leaves = [names[secret[-1]]] if random.random() < 0.3 else []
    return Knowledge(required, forbidden, tiers if random.random() < 0.5 else [], roots, leaves).compile(names)


def permutations(p: int) -> np.ndarray:
    return np.array(list(itertools.permutations(range(p))))


def follows(order: np.ndarray, graph: np.ndarray) -> bool:
    """Whether every cause comes before its effects."""
    position = np.argsort(order)
    return bool((position[:, None] < position[None, :])[graph].all())


def log_probability(distribution: GraphDistribution, skeletons: np.ndarray, orders: np.ndarray) -> np.ndarray:
    """log p(A, π) of skeletons (..., P, P) and orders (..., P)."""
    signed = np.where(skeletons, distribution.skeleton_logits, -distribution.skeleton_logits)
    coins = np.triu(-np.logaddexp(0, -signed), 1).sum(axis=(-2, -1))
    return coins + log_weight(orders, distribution.order_scores, np.zeros_like(distribution.skeleton_logits))


def probability_of(distribution: GraphDistribution, dag: np.ndarray) -> float:
    """p(G), summed over the topological orders."""
    orders = np.array([order for order in permutations(len(dag)) if follows(order, dag)])
    return float(np.exp(log_probability(distribution, dag | dag.T, orders)).sum())


def best_by_brute_force(distribution: GraphDistribution, constraints: Constraints) -> float:
    """The largest log p(A, π) over all orders, with the best skeleton allowed for each."""
    orders = permutations(len(constraints.names))
    position = np.argsort(orders, axis=1)
    before = position[:, :, None] < position[:, None, :]  # (orders, P, P)
    orders, before = (array[~(constraints.precedence & ~before).any(axis=(1, 2))] for array in (orders, before))
    wanted = (distribution.skeleton_logits > 0) & ~constraints.forbidden | constraints.required
    graphs = before & wanted
    return float(log_probability(distribution, graphs | graphs.swapaxes(1, 2), orders).max())


@settings(max_examples=100, deadline=None)
@given(p=st.integers(1, 9), seed=st.integers(0, 10**6), rule=st.sampled_from(DECODERS))
def test_answers_and_samples_are_always_dags_that_contradict_nothing(p, seed, rule):
    distribution, constraints = random_distribution(p, seed), random_constraints(p, seed + 1)
    answer = decode(distribution, constraints, decode=rule)
    assert is_acyclic(answer.adjacency)
    assert constraints.allows(answer.adjacency)
    assert sorted(answer.order) == list(range(p))
    drawn = sample_graphs(distribution, constraints, 20, np.random.default_rng(seed)).graphs
    assert is_acyclic(drawn).all()
    assert all(constraints.allows(graph) for graph in drawn)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_approximate_answers_and_samples_contradict_nothing_either(seed):
    distribution, constraints = random_distribution(7, seed), random_constraints(7, seed + 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(causal_orders, "EXACT_SETS", 0)
        answer = decode(distribution, constraints)
        drawn = sample_graphs(distribution, constraints, 20, np.random.default_rng(seed)).graphs
    assert constraints.allows(answer.adjacency)
    assert is_acyclic(answer.adjacency)
    assert is_acyclic(drawn).all()
    assert all(constraints.allows(graph) for graph in drawn)


@settings(max_examples=100, deadline=None)
@given(p=st.integers(2, 5), seed=st.integers(0, 10**6), order_scale=st.sampled_from([0.1, 1.0, 6.0]))
def test_the_answer_is_the_most_probable_skeleton_and_order_allowed(p, seed, order_scale):
    distribution, constraints = random_distribution(p, seed, 3.0, order_scale), random_constraints(p, seed + 1)
    answer = decode(distribution, constraints)
    must = answer.adjacency | constraints.precedence
    orders = np.array([order for order in permutations(p) if follows(order, must)])
    # Over orders: roots are shown first, leaves last.
    found = log_probability(distribution, answer.adjacency | answer.adjacency.T, orders).max()
    assert answer.exact
    assert found == pytest.approx(best_by_brute_force(distribution, constraints), abs=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_without_knowledge_the_answer_is_the_most_probable_dag_of_the_paper(dtype):
    for seed in range(20):
        full = random_distribution(8, seed)
        scores = full.order_scores.astype(dtype).round()  # with ties
        distribution = GraphDistribution(full.skeleton_logits.astype(dtype), scores)
        position = np.argsort(np.argsort(-scores, kind="stable"))
        expected = (distribution.skeleton_logits > 0) & (position[:, None] < position)
        names = [f"v{j}" for j in range(8)]
        assert np.array_equal(decode(distribution).adjacency, expected)
        assert np.array_equal(decode(distribution, Knowledge().compile(names)).adjacency, expected)


def test_raising_the_threshold_only_takes_edges_away():
    distribution = random_distribution(8, 3)
    graphs = [decode(distribution, threshold=threshold).adjacency for threshold in (0.05, 0.3, 0.5, 0.8, 0.99)]
    for more, fewer in itertools.pairwise(graphs):
        assert not (fewer & ~more).any()
    assert graphs[0].sum() > graphs[-1].sum()


def test_a_required_edge_against_the_scores_reverses_the_order_and_keeps_the_rest():
    logits = np.full((3, 3), 3.0)
    distribution = GraphDistribution(logits, np.array([1.0, 0.0, -1.0]))  # 0 -> 1 -> 2 and 0 -> 2
    constraints = Knowledge(required=["c -> b"]).compile("abc")
    answer = decode(distribution, constraints)
    assert answer.order.tolist() == [0, 2, 1]
    assert np.argwhere(answer.adjacency).tolist() == [[0, 1], [0, 2], [2, 1]]


def test_a_forbidden_edge_is_turned_around_or_dropped_whichever_is_more_probable():
    constraints = Knowledge(forbidden=["a -> b"]).compile("ab")
    sure_of_edge = GraphDistribution(np.full((2, 2), 5.0), np.array([1.0, 0.0]))
    sure_of_order = GraphDistribution(np.full((2, 2), 1.0), np.array([5.0, 0.0]))
    assert np.argwhere(decode(sure_of_edge, constraints).adjacency).tolist() == [[1, 0]]
    assert not decode(sure_of_order, constraints).adjacency.any()


@pytest.mark.parametrize("exact_sets", [8192, 0])
def test_shuffling_the_variables_relabels_the_answer(exact_sets, monkeypatch):
    monkeypatch.setattr(causal_orders, "EXACT_SETS", exact_sets)
    distribution, constraints = random_distribution(10, 5, order_scale=1.0), random_constraints(10, 7)
    place = np.random.default_rng(0).permutation(10)
    shuffled = distribution.rearranged(place)
    moved = constraints.rearranged(place)
    for rule in DECODERS:
        here, there = decode(distribution, constraints, decode=rule), decode(shuffled, moved, decode=rule)
        assert np.array_equal(here.adjacency[np.ix_(place, place)], there.adjacency)
        assert here.exact == there.exact == (exact_sets > 0)


def test_the_approximate_search_finds_the_best_order_where_that_is_known():
    for seed in range(10):
        distribution, constraints = random_distribution(10, seed, 3.0, 1.0), random_constraints(10, seed)
        exact = decode(distribution, constraints)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(causal_orders, "EXACT_SETS", 0)
            approximate = decode(distribution, constraints)
        assert np.array_equal(exact.adjacency, approximate.adjacency)


# The order that is shown


def tiered_knowledge(p: int, seed: int, names: list[str]) -> Knowledge:
    """Tiers with some variables in none of them, sometimes roots, leaves and edges that agree with them."""
    random = np.random.default_rng(seed)
    tier = random.integers(-1, random.integers(1, 4), size=p)
    tiers = [[names[j] for j in np.flatnonzero(tier == number)] for number in range(3)]
    roots = [names[j] for j in range(p) if random.random() < random.choice([0.0, 0.2])]
    leaves = [name for name in names if name not in roots and random.random() < random.choice([0.0, 0.2])]
    required = [(names[j], names[k]) for j in range(p) for k in range(j + 1, p) if random.random() < 0.05]
    rank = {name: number for number, members in enumerate(tiers) for name in members}
    required = [
        (cause, effect)
        for cause, effect in required
        if cause not in leaves
        and effect not in roots
        and (cause in rank) == (effect in rank)
        and rank.get(cause, 0) <= rank.get(effect, 0)
    ]
    return Knowledge(required, tiers=tiers, roots=roots, leaves=leaves)


def ranks(knowledge: Knowledge) -> dict[str, int]:
    return {name: number for number, members in enumerate(knowledge.tiers) for name in members}


@settings(max_examples=300, deadline=None)
@given(p=st.integers(2, 12), seed=st.integers(0, 10**6), rule=st.sampled_from(DECODERS))
def test_every_order_has_earlier_tiers_first_and_causes_before_effects(p, seed, rule):
    names = [f"v{j}" for j in range(p)]
    knowledge = tiered_knowledge(p, seed, names)
    rank = ranks(knowledge)
    answer = decode(random_distribution(p, seed), knowledge.compile(names), decode=rule)
    assert sorted(answer.order) == list(range(p))
    assert follows(answer.order, answer.adjacency)
    shown = [rank[names[j]] for j in answer.order if names[j] in rank]
    assert shown == sorted(shown)


@settings(max_examples=50, deadline=None)
@given(p=st.integers(3, 12), seed=st.integers(0, 10**6))
def test_no_path_leads_from_a_later_tier_to_an_earlier_one_not_even_through_variables_without_a_tier(p, seed):
    names = [f"v{j}" for j in range(p)]
    knowledge = tiered_knowledge(p, seed, names)
    rank, constraints = ranks(knowledge), knowledge.compile(names)
    distribution = random_distribution(p, seed)
    drawn = sample_graphs(distribution, constraints, 10, np.random.default_rng(0)).graphs
    for graph in (decode(distribution, constraints).adjacency, *drawn):
        for cause, effect in np.argwhere(transitive_closure(graph)):
            earlier, later = rank.get(names[cause]), rank.get(names[effect])
            assert earlier is None or later is None or earlier <= later


def test_roots_and_leaves_change_the_order_that_is_shown_and_no_more_than_their_edges():
    for seed in range(100):
        p = 2 + seed % 11
        names = [f"v{j}" for j in range(p)]
        constraints = tiered_knowledge(p, seed, names).compile(names)
        edges_alone = replace(constraints, ranks=np.zeros(p, dtype=int))
        distribution = random_distribution(p, seed)
        assert np.array_equal(decode(distribution, constraints).adjacency, decode(distribution, edges_alone).adjacency)
        assert np.array_equal(
            edge_probabilities(distribution, constraints), edge_probabilities(distribution, edges_alone)
        )


def test_without_edges_tiers_roots_and_leaves_are_listed_in_their_places():
    nothing = GraphDistribution(np.full((6, 6), -9.0), np.arange(6.0))
    constraints = Knowledge(tiers=[["b"], ["d"]], roots=["a"], leaves=["f"]).compile("abcdef")
    order = "".join(constraints.names[place] for place in decode(nothing, constraints).order)
    assert order[0] == "a"
    assert order[-1] == "f"
    assert order.index("b") < order.index("d")
    assert order.index("e") < order.index("c")


def test_required_edges_that_lead_back_through_a_variable_without_a_tier_are_refused():
    with pytest.raises(KnowledgeError, match=r"'d' -> 'u' -> 'a' lead from tier 2 to the earlier tier 1"):
        Knowledge(required=["d -> u", "u -> a"], tiers=[["a", "b"], ["c", "d"]])
    Knowledge(required=["d -> u", "a -> u"], tiers=[["a", "b"], [], ["c", "d"]])


@settings(max_examples=50, deadline=None)
@given(p=st.integers(2, 12), seed=st.integers(0, 10**6))
def test_shuffling_the_variables_shuffles_the_order_that_is_shown(p, seed):
    names = [f"v{j}" for j in range(p)]
    knowledge = tiered_knowledge(p, seed, names)
    distribution = random_distribution(p, seed)
    place = np.random.default_rng(seed).permutation(p)
    shuffled = distribution.rearranged(place)
    here = decode(distribution, knowledge.compile(names))
    for moved in (knowledge.compile([names[j] for j in place]), knowledge.compile(names).rearranged(place)):
        there = decode(shuffled, moved)
        assert [names[j] for j in here.order] == [moved.names[j] for j in there.order]


def test_an_answer_lists_complete_tiers_one_after_the_other_however_its_columns_are_arranged():
    for seed in range(50):
        random = np.random.default_rng(seed)
        p = int(random.integers(2, 13))
        names = tuple(f"v{j}" for j in random.permutation(p))
        tier = {name: int(random.integers(3)) for name in names}
        known = Knowledge(tiers=[[name for name in names if tier[name] == number] for number in range(3)])
        distribution = random_distribution(p, seed)
        answer = Answer(names, distribution, known, arrangement=random.permutation(p).tolist())
        shown = [tier[name] for name in answer.order]
        assert shown == sorted(shown)
        position = {name: place for place, name in enumerate(answer.order)}
        assert all(position[edge.source] < position[edge.target] for edge in answer.edges)


def test_three_hundred_variables_in_tiers_are_decoded_in_seconds():
    names = [f"v{j}" for j in range(300)]
    constraints = Knowledge(tiers=[names[:80], names[80:160], names[160:240]], roots=names[:5]).compile(names)
    start = time.process_time()
    decode(random_distribution(300, 0), constraints)
    assert time.process_time() - start < 5


# The rules for aims of their own


def all_dags(p: int) -> np.ndarray:
    """Every DAG on p variables.  (count, P, P)"""
    flags = np.array(list(itertools.product([False, True], repeat=p * (p - 1))))
    graphs = np.zeros((len(flags), p, p), dtype=bool)
    graphs[:, ~np.eye(p, dtype=bool)] = flags
    return graphs[is_acyclic(graphs)]


def test_the_shd_rule_minimizes_expected_mistakes_among_all_dags():
    dags = all_dags(3)
    assert len(dags) == 25
    differs = dags[:, None] != dags[None, :]  # (shown, true, P, P)
    mistakes = np.triu(differs | differs.swapaxes(-1, -2)).sum(axis=(-2, -1))  # pairs on which two graphs differ
    for seed in range(20):
        distribution = random_distribution(3, seed, 1.0, 1.0)
        probability = np.array([probability_of(distribution, dag) for dag in dags])
        expected = mistakes @ probability
        shown = decode(distribution, decode="shd").adjacency
        assert expected[(dags == shown).all(axis=(1, 2))] == pytest.approx(expected.min())


def f1_of(shown: np.ndarray, true: np.ndarray) -> np.ndarray:
    """F1 of one graph against many, 1 if both are empty.  (true graphs,)"""
    edges = shown.sum() + true.sum(axis=(1, 2))
    return np.where(edges == 0, 1.0, 2 * (shown & true).sum(axis=(1, 2)) / np.maximum(edges, 1))


def sets_to_show(distribution: GraphDistribution) -> list[np.ndarray]:
    """No edge, the most probable one along the best order, the two most probable, ..."""
    probabilities = edge_probabilities(distribution)
    position = np.argsort(decode(distribution).order)
    along = np.argwhere(position[:, None] < position[None, :])
    along = along[np.argsort(-probabilities[tuple(along.T)])]
    graphs = np.zeros((len(along) + 1, *probabilities.shape), dtype=bool)
    for number, (j, k) in enumerate(along, start=1):
        graphs[number:, j, k] = True
    return list(graphs)


@pytest.mark.parametrize("mean_logit", [-6.0, -3.0, -1.0, 1.0])
def test_the_f1_rule_maximizes_the_expected_f1_by_brute_force(mean_logit):
    dags = all_dags(3)
    for seed in range(40):
        distribution = random_distribution(3, seed, 1.5, 1.5)
        distribution = GraphDistribution(distribution.skeleton_logits + mean_logit, distribution.order_scores)
        probability = np.array([probability_of(distribution, dag) for dag in dags])
        worth = [float(f1_of(shown, dags) @ probability) for shown in sets_to_show(distribution)]
        shown = decode(distribution, decode="f1").adjacency
        assert float(f1_of(shown, dags) @ probability) == pytest.approx(max(worth), abs=1e-9)


def test_expected_f1_is_the_mean_over_sampled_graphs():
    for seed, mean_logit in ((0, -5.0), (1, -2.5), (2, 0.0)):
        distribution = random_distribution(8, seed, 1.5)
        distribution = GraphDistribution(distribution.skeleton_logits + mean_logit, distribution.order_scores)
        sets = sets_to_show(distribution)
        candidates = np.array([np.argwhere(more & ~fewer)[0] for fewer, more in itertools.pairwise(sets)])
        drawn = sample_graphs(distribution, None, 20_000, np.random.default_rng(seed)).graphs
        sampled = [float(f1_of(shown, drawn).mean()) for shown in sets]
        worth = expected_f1(edge_probabilities(distribution), candidates)
        assert worth == pytest.approx(sampled, abs=0.016)  # four and a half standard errors at most


def test_independent_variables_have_no_edges_by_the_f1_rule():
    for p, nu in ((2, 0.45), (8, 0.003), (8, 0.03), (300, 1e-6)):
        logits = np.full((p, p), np.log(nu / (1 - nu)))
        distribution = GraphDistribution(logits, np.arange(float(p)))
        assert not decode(distribution, decode="f1").adjacency.any()
    surer = GraphDistribution(np.full((2, 2), np.log(0.55 / 0.45)), np.array([9.0, 0.0]))
    assert decode(surer, decode="f1").adjacency.sum() == 1


def test_the_f1_rule_keeps_what_was_best_where_many_edges_are_expected():
    """The ratio of expectations, which the rule went by before, is almost the expected F1 then."""
    same = 0
    for seed in range(40):
        distribution = random_distribution(30, seed, 3.0, 4.0)
        distribution = GraphDistribution(distribution.skeleton_logits - 5.0, distribution.order_scores)
        probabilities = edge_probabilities(distribution)
        assert probabilities.sum() > 15
        sets = sets_to_show(distribution)
        candidates = np.array([np.argwhere(more & ~fewer)[0] for fewer, more in itertools.pairwise(sets)])
        shares = probabilities[tuple(candidates.T)]
        ratio = np.append(0, 2 * np.cumsum(shares) / (np.arange(1, len(shares) + 1) + probabilities.sum()))
        worth = expected_f1(probabilities, candidates)
        assert np.abs(ratio - worth).max() < 0.01
        before, now = sets[np.argmax(ratio)], decode(distribution, decode="f1").adjacency
        if np.argmax(worth) == np.argmax(ratio):
            assert np.array_equal(before, now)
            same += 1
        assert worth[now.sum()] - worth[before.sum()] < 1e-3
    assert same > 30


def test_required_edges_are_shown_by_the_f1_rule_and_the_rest_only_if_worth_it():
    distribution = GraphDistribution(np.full((4, 4), -5.0), np.array([3.0, 2.0, 1.0, 0.0]))
    constraints = Knowledge(required=["d -> a"]).compile("abcd")
    assert np.argwhere(decode(distribution, constraints, decode="f1").adjacency).tolist() == [[3, 0]]


# What knowledge takes away


def test_a_vanished_adjacency_is_named_with_its_reason():
    constraints = Knowledge(forbidden=["a -> b", "c -> d", "d -> c"]).compile("abcd")
    logits = np.full((4, 4), -9.0)
    logits[0, 1] = logits[1, 0] = 1.0
    logits[2, 3] = logits[3, 2] = 3.0
    distribution = GraphDistribution(logits, np.array([5.0, 0.0, 4.0, 3.0]))
    both, one = vanished_adjacencies(distribution, constraints, decode(distribution, constraints))
    assert (both.first, both.second, both.probability) == ("c", "d", pytest.approx(0.953, abs=1e-3))
    assert both.reason == "the knowledge rules out both directions"
    assert (one.first, one.second, one.probability) == ("a", "b", pytest.approx(0.731, abs=1e-3))
    assert str(one) == (
        "'a' and 'b' are adjacent with probability 0.73 by the data alone, but no edge is shown: the knowledge rules "
        "out 'a' -> 'b', and 'b' -> 'a' goes against the causal order ('a' comes before 'b' with probability 0.99)."
    )


@settings(max_examples=100, deadline=None)
@given(p=st.integers(1, 9), seed=st.integers(0, 10**6), rule=st.sampled_from(DECODERS))
def test_vanished_adjacencies_are_those_that_only_the_answer_without_knowledge_has(p, seed, rule):
    distribution, constraints = random_distribution(p, seed), random_constraints(p, seed + 1)
    informed, free = decode(distribution, constraints, decode=rule), decode(distribution, decode=rule)
    vanished = vanished_adjacencies(distribution, constraints, informed)
    names = constraints.names
    lost = {(names[j], names[k]) for j, k in np.argwhere(free.adjacency & ~(informed.adjacency | informed.adjacency.T))}
    assert {(pair.first, pair.second) for pair in vanished} == lost
    if rule == "map":
        for pair in vanished:
            assert pair.probability > 0.5
            assert "rules out" in pair.reason
    assert vanished_adjacencies(distribution, Knowledge().compile(names), free) == []


# Probabilities and samples


def test_edge_probabilities_without_knowledge_are_the_marginals():
    distribution = random_distribution(6, 0)
    assert edge_probabilities(distribution) == pytest.approx(distribution.edge_marginals())


def conditional_marginals(distribution: GraphDistribution, constraints: Constraints) -> np.ndarray:
    """P(edge | the knowledge) by going through all orders: given the order, edges are independent."""
    p = len(constraints.names)
    nu = distribution.skeleton_probabilities()
    scores = distribution.order_scores
    total, marginals = 0.0, np.zeros((p, p))
    for order in permutations(p):
        position = np.argsort(order)
        before = position[:, None] < position[None, :]
        rest = np.cumsum(np.exp(scores[order])[::-1])[::-1]
        weight = np.prod(np.exp(scores[order]) / rest)
        edge = np.where(constraints.required, 1.0, np.where(constraints.forbidden, 0.0, nu))
        lost = before & constraints.forbidden & ~constraints.required.T
        weight *= np.prod((1 - nu)[lost]) * (not (constraints.precedence & ~before).any())
        total += weight
        marginals += weight * np.where(before, edge, 0.0)
    return marginals / total


@pytest.mark.parametrize("way", ["dynamic programming", "races", "sweeps"])
def test_samples_follow_the_distribution_given_the_knowledge(way, monkeypatch):
    if way != "dynamic programming":
        monkeypatch.setattr(causal_orders, "EXACT_SETS", 0)
    if way == "sweeps":
        monkeypatch.setattr(causal_orders._Approximate, "_races_that_obey", lambda *_: None)
    names = [f"v{j}" for j in range(5)]
    mild = Knowledge(required=["v4 -> v1"], forbidden=["v0 -> v1"]).compile(names)
    hard = Knowledge(required=["v4 -> v1", "v1 -> v0"], tiers=[["v3", "v4"], ["v0", "v2"]]).compile(names)
    for constraints in (mild, hard):
        distribution = random_distribution(5, 11, 2.0, 0.7)
        drawn = sample_graphs(distribution, constraints, 20_000, np.random.default_rng(0))
        difference = drawn.graphs.mean(axis=0) - conditional_marginals(distribution, constraints)
        assert np.abs(difference).max() < 0.02  # five standard errors
        assert drawn.exact == (way == "dynamic programming" or (way == "races" and constraints is mild))


def test_edge_probabilities_under_knowledge_are_conditional_marginals():
    only_two_concerned = Knowledge(required=["v3 -> v1"]).compile([f"v{j}" for j in range(5)])
    for seed in range(30):
        distribution = random_distribution(5, seed, 2.0, 1.0)
        constraints = random_constraints(5, seed + 40) if seed else only_two_concerned
        exact = conditional_marginals(distribution, constraints)
        assert edge_probabilities(distribution, constraints) == pytest.approx(exact, abs=1e-12)


@pytest.mark.parametrize(("way", "tolerance"), [("times", 0.03), ("moves", 0.02)])
def test_approximate_edge_probabilities_are_near_the_conditional_marginals(way, tolerance, monkeypatch):
    monkeypatch.setattr(causal_orders, "EXACT_SETS", 0)
    monkeypatch.setattr(causal_orders, "MAX_TIMED", 8 if way == "times" else 0)
    for seed in range(10):
        distribution, constraints = random_distribution(5, seed, 2.0, 1.0), random_constraints(5, seed + 40)
        exact = conditional_marginals(distribution, constraints)
        assert edge_probabilities(distribution, constraints) == pytest.approx(exact, abs=tolerance)


def test_probabilities_with_one_root_are_exact_among_any_number_of_variables():
    names = [f"v{j}" for j in range(8)]
    for seed in range(10):
        distribution, constraints = random_distribution(8, seed), Knowledge(roots=["v0"]).compile(names)
        exact = edge_probabilities(distribution, constraints)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(causal_orders, "EXACT_SETS", 0)
            assert edge_probabilities(distribution, constraints) == pytest.approx(exact, abs=1e-5)


@pytest.mark.parametrize(
    "known",
    [
        {"roots": ["v0", "v1", "v2"], "leaves": ["v3"]},
        {"tiers": [["v0", "v1", "v2"], [f"v{j}" for j in range(3, 19)], ["v19"]], "roots": ["v0"]},
        {"required": ["v0 -> v1", "v2 -> v3"], "forbidden": ["v4 -> v5"]},
    ],
)
def test_rounding_in_the_network_does_not_move_probabilities_more_than_without_knowledge(known):
    constraints = Knowledge(**known).compile([f"v{j}" for j in range(20)])
    for seed in range(3):
        distribution, noise = random_distribution(20, seed), random_distribution(20, seed + 100)
        rounded = GraphDistribution(
            distribution.skeleton_logits + 1e-7 * noise.skeleton_logits,
            distribution.order_scores + 1e-7 * noise.order_scores,
        )
        moved = edge_probabilities(rounded, constraints) - edge_probabilities(distribution, constraints)
        assert np.abs(moved).max() < 1e-6


def test_what_can_be_drawn_never_has_probability_0():
    names = [f"v{j}" for j in range(20)]
    for seed, known in enumerate(
        (Knowledge(roots=names[:3]), Knowledge(tiers=[names[:14], names[14:]], leaves=["v19"]))
    ):
        distribution, constraints = random_distribution(20, seed, 2.0, 4.0), known.compile(names)
        drawn = sample_graphs(distribution, constraints, 5000, np.random.default_rng(0))
        possible = ~constraints.forbidden & ~np.eye(20, dtype=bool)
        assert (drawn.graphs.any(axis=0) <= possible).all()
        assert (edge_probabilities(distribution, constraints)[possible] > 0).all()


@pytest.mark.parametrize("scale", [0.1, 1.0, 5.0, 30.0])
def test_a_race_that_must_be_over_before_others_come_is_the_same_as_an_integral_and_as_a_sum(scale):
    for seed in range(10):
        random = np.random.default_rng(seed)
        s, later, clocks = scale * random.normal(size=6), scale * random.normal(), scale * random.normal(size=3)
        layers = causal_orders.lattice(s, np.zeros((6, 6)), np.zeros((6, 6), dtype=bool), later)
        integral, total = causal_orders._Free(s, later), causal_orders._Exact(layers)
        assert integral.before == pytest.approx(total.before, abs=1e-6)
        for one, other in zip(integral.ahead_of(clocks), total.ahead_of(clocks), strict=True):
            assert one == pytest.approx(other, abs=1e-6)
        drawn = np.argsort(integral.draw(4000, random), axis=1)
        assert (drawn[:, :, None] < drawn[:, None, :]).mean(axis=0) == pytest.approx(total.before, abs=0.04)


def test_probabilities_and_draws_are_exact_with_tiers_of_any_size():
    names = [f"v{j}" for j in range(60)]
    constraints = Knowledge(tiers=[names[:20], names[20:40], names[40:50]]).compile(names)  # ten are in no tier
    distribution = random_distribution(60, 0, 2.0, 1.0)
    drawn = sample_graphs(distribution, constraints, 4000, np.random.default_rng(0))
    assert drawn.exact
    expected = edge_probabilities(distribution, constraints)
    error = np.sqrt(expected * (1 - expected) / 4000)
    assert (np.abs(drawn.graphs.mean(axis=0) - expected) <= 5 * error + 1e-3).all()


@pytest.mark.parametrize("scale", [0.5, 3.0])
def test_groups_that_knowledge_does_not_connect_race_independently(scale):
    """Two chains, a pair with a price and two free variables, against all orders of seven."""
    random = np.random.default_rng(0)
    scores, penalty = scale * random.normal(size=7), np.zeros((7, 7))
    penalty[1, 0] = penalty[3, 2] = np.inf
    penalty[4, 3] = 1.5
    orders = permutations(7)
    weights = np.exp(log_weight(orders, scores, penalty))
    position = np.argsort(orders, axis=1)
    exact = np.tensordot(weights, position[:, :, None] < position[:, None, :], 1) / weights.sum()
    assert precedence_probabilities(scores, penalty) == pytest.approx(exact, abs=1e-12)
    place = random.permutation(7)
    shuffled = precedence_probabilities(scores[place], penalty[np.ix_(place, place)])
    assert shuffled == pytest.approx(exact[np.ix_(place, place)], abs=1e-12)


def test_groups_too_large_for_exact_answers_are_averaged_together(monkeypatch):
    """One race of all groups, however many there are, and probabilities that agree with draws."""
    averaged, original = [], causal_orders._Approximate.draw

    def draw(race, *arguments):
        averaged.append(len(race.s))
        return original(race, *arguments)

    monkeypatch.setattr(causal_orders, "EXACT_SETS", 32)
    monkeypatch.setattr(causal_orders._Approximate, "by_times", None)
    monkeypatch.setattr(causal_orders._Approximate, "draw", draw)
    random = np.random.default_rng(0)
    scores, penalty = random.normal(size=18), np.zeros((18, 18))
    for start in (0, 5, 10):  # three free variables follow
        penalty[start : start + 5, start : start + 5] = np.triu(random.exponential(2.0, (5, 5)), 1)
    found = precedence_probabilities(scores, penalty)
    assert averaged == [15]
    orders, _ = sample_orders(scores, penalty, 20_000, random)
    position = np.argsort(orders, axis=1)
    drawn = (position[:, :, None] < position[:, None, :]).mean(axis=0)
    assert found == pytest.approx(drawn, abs=0.03)


def test_probabilities_are_exact_where_some_variables_come_first_and_nothing_else_is_known():
    names = [f"v{j}" for j in range(5)]
    for seed, leading in enumerate((["v2"], ["v4", "v0"])):
        distribution = random_distribution(5, seed, 2.0, 1.0)
        constraints = Knowledge().compile(names).led_by(leading)
        exact = conditional_marginals(distribution, constraints)
        assert edge_probabilities(distribution, constraints) == pytest.approx(exact, abs=1e-12)
        assert exact[:, [names.index(name) for name in leading]].max() == 0
        assert set(decode(distribution, constraints).order[: len(leading)]) == {names.index(name) for name in leading}
        drawn = sample_graphs(distribution, constraints, 500, np.random.default_rng(0)).graphs
        assert all(constraints.allows(graph) for graph in drawn)
    both = Knowledge(required=["v1 -> v3"]).compile(names).led_by(["v2"])
    exact = conditional_marginals(distribution, both)
    assert edge_probabilities(distribution, both) == pytest.approx(exact, abs=1e-12)


def test_what_is_known_to_have_a_cause_does_not_come_first():
    known = Knowledge(required=["a -> b"], tiers=[["c"], ["d"]]).compile("abcd")
    assert known.led_by(["b", "d"]) is known
    assert known.led_by(["b", "c"]).precedence[2].tolist() == [True, True, False, True]


def test_samples_without_knowledge_have_the_marginals_of_the_distribution():
    distribution = random_distribution(6, 1)
    drawn = sample_graphs(distribution, None, 20_000, np.random.default_rng(0))
    assert drawn.exact
    assert np.abs(drawn.graphs.mean(axis=0) - distribution.edge_marginals()).max() < 0.02


def test_the_same_generator_state_draws_the_same_graphs():
    distribution, constraints = random_distribution(8, 2), random_constraints(8, 2)
    first, again, other = (
        sample_graphs(distribution, constraints, 30, np.random.default_rng(seed)).graphs for seed in (1, 1, 2)
    )
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_compulsory_orders_survive_scores_that_differ_beyond_rounding():
    free = np.random.default_rng(1).uniform(-900.0, 900.0, size=40)  # expected waits beyond 1e700 overflow
    penalty = np.zeros((80, 80))
    penalty[:40, :40] = np.where(np.tril(np.ones((40, 40)), -1), np.inf, 0.0)  # 0 before 1 before 2 ...
    for chain in (np.linspace(-900.0, 900.0, 40), np.linspace(900.0, -900.0, 40)):
        scores = np.concatenate([chain, free])
        drawn, _ = sample_orders(scores, penalty, 50, np.random.default_rng(0))
        best, _ = most_probable_order(scores, penalty)
        for order in (*drawn, best):
            assert order[order < 40].tolist() == list(range(40))


def test_the_order_of_the_others_does_not_depend_on_the_question():
    orders, count = permutations(5), 40_000
    for seed, (first, second) in enumerate([(0, 3), (4, 1), (2, 0)]):
        random = np.random.default_rng(seed)
        scores, penalty = (
            random.normal(size=5),
            np.where(random.random((5, 5)) < 0.3, random.exponential(size=(5, 5)), 0),
        )
        np.fill_diagonal(penalty, 0.0)
        weights = np.exp(log_weight(orders, scores, penalty))
        weights /= weights.sum()
        position = np.argsort(orders, axis=1)
        later = position[:, first] < position[:, second]
        rest = [tuple(order[order != second]) for order in orders]
        among = {key: np.array([each == key for each in rest]) for key in set(rest)}
        expected = [
            weights[same].sum() * weights[index] / weights[same & later].sum() if later[index] else 0.0
            for index, same in enumerate(among[key] for key in rest)
        ]
        drawn, _ = sample_orders(scores, penalty, count, random)
        moved = moved_after(drawn, scores, penalty, first, second, random)
        shares = [(moved == order).all(axis=1).mean() for order in orders]
        assert shares == pytest.approx(expected, abs=5 * (0.25 / count) ** 0.5)
        kept = np.argsort(drawn, axis=1)
        kept = kept[:, first] < kept[:, second]
        assert np.array_equal(moved[kept], drawn[kept])


def test_a_question_does_not_undo_the_knowledge():
    distribution = random_distribution(6, 4)
    constraints = Knowledge(forbidden=[("x3", "x0")], tiers=[["x1"], ["x4"]]).compile([f"x{i}" for i in range(6)])
    known = constraints.ordered(["x0"], ["x4"])  # x1 comes before x4, so x0 does where x1 is to come after x0
    drawn = sample_graphs(distribution, known, 200, np.random.default_rng(0), (0, 1)).graphs
    descends = transitive_closure(drawn)
    assert not descends[:, 1, 0].any()
    assert not descends[:, 4, 1].any()
    assert not drawn[:, 3, 0].any()


def test_the_best_order_is_the_best_of_all_orders():
    orders = permutations(6)
    for seed in range(100):
        random = np.random.default_rng(seed)
        scores = random.normal(size=6) * random.choice([0.2, 1.0, 5.0])
        penalty = np.where(random.random((6, 6)) < random.choice([0.1, 0.4]), random.exponential(size=(6, 6)), 0.0)
        np.fill_diagonal(penalty, 0.0)
        found, exact = most_probable_order(scores, penalty)
        assert exact
        assert log_weight(found[None], scores, penalty)[0] == pytest.approx(log_weight(orders, scores, penalty).max())


def test_order_weights_are_a_distribution_over_orders_without_penalties():
    scores = np.array([0.3, -1.0, 2.0, 0.0])
    assert np.exp(log_weight(permutations(4), scores, np.zeros((4, 4)))).sum() == pytest.approx(1.0)


def test_long_chains_of_required_edges_are_decoded_exactly():
    p = 100
    names = [f"v{j}" for j in range(p)]
    chain = Knowledge(required=[(names[j + 1], names[j]) for j in range(0, 60)]).compile(names)
    distribution = random_distribution(p, 4)
    answer = decode(distribution, chain)
    assert answer.exact
    assert chain.allows(answer.adjacency)


def test_a_thousand_graphs_of_fifty_variables_under_tiers_take_about_a_second():
    p = 50
    names = [f"v{j}" for j in range(p)]
    constraints = Knowledge(tiers=[names[:15], names[15:30], names[30:]]).compile(names)
    logits = np.triu(np.random.default_rng(0).normal(-3, 2, size=(p, p)), 1)
    distribution = GraphDistribution(logits + logits.T, np.random.default_rng(1).normal(size=p))
    start = time.process_time()
    drawn = sample_graphs(distribution, constraints, 1000, np.random.default_rng(0))
    assert time.process_time() - start < 2.5  # with room for a slow machine
    assert all(constraints.allows(graph) for graph in drawn.graphs)


@pytest.mark.parametrize(
    "wrong",
    [
        {"decode": "mean"},
        {"rule": "f1"},
        {"threshold": 0.0},
        {"threshold": 1.5},
        {"decode": "f1", "threshold": 0.4},
        {"constraints": Knowledge().compile("ab")},
    ],
)
def test_what_cannot_be_decoded_is_an_error(wrong):
    with pytest.raises(ArrowError):
        decode(random_distribution(3, 0), **wrong)
    with pytest.raises(ArrowError, match="one table"):
        decode(GraphDistribution(np.zeros((2, 3, 3)), np.zeros((2, 3))))
