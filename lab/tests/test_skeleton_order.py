"""SkeletonOrder: its likelihoods, marginals and samples against brute force, and against one another."""

from __future__ import annotations

import math
from decimal import Decimal, getcontext
from itertools import permutations, product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from causal_arrow.errors import GraphError
from causal_arrow.graphs.dag import is_acyclic
from causal_arrow_lab.skeleton_order import (
    MAX_VARIABLES_EXACT,
    NetworkOutput,
    SkeletonOrder,
    orient,
)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def random_distribution(
    *shape: int, seed: int = 0, scale: float = 1.5, dtype: torch.dtype = torch.float64
) -> SkeletonOrder:
    """A distribution with batch and variables as in `shape`, e.g. (8, 5) for 8 tasks of 5 variables."""
    generator = seeded(seed)
    logits = scale * torch.randn(*shape, shape[-1], generator=generator, dtype=dtype)
    scores = scale * torch.randn(*shape, generator=generator, dtype=dtype)
    return SkeletonOrder((logits + logits.mT) / 2, scores)


def all_skeletons(variables: int) -> Tensor:
    """Every symmetric 0/1 matrix with an empty diagonal.  (2^pairs, P, P)"""
    j, k = torch.triu_indices(variables, variables, 1)
    upper = torch.zeros(2 ** len(j), variables, variables, dtype=torch.bool)
    upper[:, j, k] = torch.tensor(list(product((False, True), repeat=len(j))), dtype=torch.bool)
    return upper | upper.mT


def all_orders(variables: int) -> Tensor:
    return torch.tensor(list(permutations(range(variables))))


def probability_by_enumeration(distribution: SkeletonOrder) -> dict[bytes, float]:
    """p(G) of every DAG, straight from section 2.2: all skeletons times all orders, written out factor by factor."""
    edge_probability = torch.sigmoid(distribution.skeleton_logits)
    weight = torch.exp(distribution.order_scores)
    variables = len(weight)
    table: dict[bytes, float] = {}
    for order in all_orders(variables):
        p_order = 1.0
        for place in range(variables):
            p_order *= float(weight[order[place]] / weight[order[place:]].sum())
        for skeleton in all_skeletons(variables):
            p_skeleton = 1.0
            for j in range(variables):
                for k in range(j + 1, variables):
                    p_skeleton *= float(edge_probability[j, k] if skeleton[j, k] else 1 - edge_probability[j, k])
            graph = orient(skeleton, order).numpy().tobytes()
            table[graph] = table.get(graph, 0.0) + p_order * p_skeleton
    return table


def dags_of(table: dict[bytes, float], variables: int) -> Tensor:
    return torch.stack([torch.frombuffer(bytearray(graph), dtype=torch.bool) for graph in table]).view(
        -1, variables, variables
    )


# The composite likelihood


def test_composite_nll_matches_brute_force_on_three_variables() -> None:
    """The marginals come from listing all skeletons and orders, the sum over ordered pairs is written out."""
    distribution = random_distribution(3)
    table = probability_by_enumeration(distribution)
    graphs = dags_of(table, 3)
    marginals = (torch.tensor(list(table.values())).double()[:, None, None] * graphs).sum(0)
    for graph in graphs:
        expected = 0.0
        for j, k in permutations(range(3), 2):
            expected -= math.log(marginals[j, k] if graph[j, k] else 1 - marginals[j, k])
        assert float(distribution.composite_nll(graph)) == pytest.approx(expected, rel=1e-6)


def exact_terms(logit: float, difference: float) -> tuple[float, float]:
    """−log(νq) and −log(1 − νq) with ν = σ(logit), q = σ(difference), in sixty digits."""
    getcontext().prec = 60
    marginal = 1 / ((1 + (-Decimal(logit)).exp()) * (1 + (-Decimal(difference)).exp()))
    return float(-marginal.ln()), float(-(1 - marginal).ln())


EXTREMES = [-50.0, -20.0, -5.0, -0.5, 0.0, 0.5, 5.0, 20.0, 50.0]


@pytest.mark.parametrize("autocast", [False, True])
@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5), (torch.bfloat16, 1e-5)]
)
def test_composite_nll_keeps_its_digits_at_extreme_logits(dtype: torch.dtype, tolerance: float, autocast: bool) -> None:
    for logit, difference in product(EXTREMES, EXTREMES):
        distribution = SkeletonOrder(
            torch.full((2, 2), logit, dtype=dtype), torch.tensor([difference, 0.0], dtype=dtype)
        )
        forward, backward = exact_terms(logit, difference), exact_terms(logit, -difference)
        graphs = torch.tensor([[[0, 1], [0, 0]], [[0, 0], [1, 0]], [[0, 0], [0, 0]]], dtype=torch.bool)
        expected = [forward[0] + backward[1], forward[1] + backward[0], forward[1] + backward[1]]
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
            nll = distribution.composite_nll(graphs)
        assert nll.dtype == torch.promote_types(dtype, torch.float32)
        # Relative, and all the way down: −log(1 − νq) must not become 0 while νq is still a normal float32 number.
        assert nll.tolist() == pytest.approx(expected, rel=tolerance, abs=1e-37)


@pytest.mark.parametrize("size", [50.0, 1e4])
def test_gradients_are_finite_and_bounded_at_extreme_logits(size: float) -> None:
    generator = seeded()
    logits = size * torch.randint(-1, 2, (64, 5, 5), generator=generator)
    logits = torch.triu(logits, 1) + torch.triu(logits, 1).mT
    scores = (size * torch.randint(-1, 2, (64, 5), generator=generator)).requires_grad_()
    logits.requires_grad_()
    graphs = torch.rand(64, 5, 5, generator=generator) < 0.5
    SkeletonOrder(logits, scores).composite_nll(graphs).sum().backward()
    assert logits.grad is not None
    assert scores.grad is not None
    assert logits.grad.abs().max() <= 1  # each entry takes part in one term, of slope at most 1
    assert logits.grad.abs().max() > 0.9
    assert scores.grad.abs().max() <= 2 * (5 - 1)
    assert scores.grad.abs().max() > 0.9


def test_gradients_match_finite_differences() -> None:
    graphs = torch.rand(2, 4, 4, generator=seeded()) < 0.4
    start = random_distribution(2, 4, scale=3)

    def nll(logits: Tensor, scores: Tensor) -> Tensor:
        return SkeletonOrder((logits + logits.mT) / 2, scores).composite_nll(graphs)

    def log_likelihood(logits: Tensor, scores: Tensor) -> Tensor:
        return SkeletonOrder((logits + logits.mT) / 2, scores).log_likelihood(graphs.triu(1))

    inputs = (start.skeleton_logits.requires_grad_(), start.order_scores.requires_grad_())
    assert torch.autograd.gradcheck(nll, inputs)
    assert torch.autograd.gradcheck(log_likelihood, inputs)


def test_composite_nll_compiles_without_a_graph_break() -> None:
    distribution = random_distribution(2, 4, dtype=torch.float32)
    graphs = distribution.most_probable_dag()

    def nll(logits: Tensor, scores: Tensor, graphs: Tensor) -> Tensor:
        return SkeletonOrder(logits, scores).composite_nll(graphs)

    compiled = torch.compile(nll, backend="eager", fullgraph=True)
    inputs = (distribution.skeleton_logits, distribution.order_scores, graphs)
    torch.testing.assert_close(compiled(*inputs), nll(*inputs))


def test_the_true_marginals_minimize_the_expected_composite_nll() -> None:
    """Theorem 2: no other distribution scores better, on graphs drawn from this one."""
    truth = random_distribution(3)
    table = probability_by_enumeration(truth)
    graphs, weights = dags_of(table, 3), torch.tensor(list(table.values())).double()
    best = weights @ truth.composite_nll(graphs)
    for seed in range(20):
        nudge = random_distribution(3, seed=seed, scale=0.3)
        other = SkeletonOrder(truth.skeleton_logits + nudge.skeleton_logits, truth.order_scores + nudge.order_scores)
        assert weights @ other.composite_nll(graphs) > best


# The exact likelihood


@pytest.mark.parametrize("variables", [1, 2, 3, 4])
def test_exact_likelihood_matches_enumeration_of_skeletons_and_orders(variables: int) -> None:
    distribution = random_distribution(variables, scale=2)
    table = probability_by_enumeration(distribution)
    exact = distribution.log_likelihood(dags_of(table, variables)).exp()
    torch.testing.assert_close(exact, torch.tensor(list(table.values())).double(), rtol=1e-6, atol=0)


def test_exact_likelihood_sums_to_one_over_all_dags_on_three_variables() -> None:
    graphs = dags_of(probability_by_enumeration(random_distribution(3)), 3)
    assert len(graphs) == 25
    for scale in (0.1, 1.0, 20.0):
        total = random_distribution(3, scale=scale).log_likelihood(graphs).exp().sum()
        assert float(total) == pytest.approx(1, abs=1e-12)


def test_exact_likelihood_sums_the_topological_orders_of_six_variables() -> None:
    distribution = random_distribution(6)
    orders = all_orders(6)
    for graph in distribution.sample_dags(10, seeded()):
        topological = (orient((graph | graph.mT), orders) == graph).all(dim=(-2, -1))
        expected = distribution.log_probability((graph | graph.mT), orders[topological]).logsumexp(0)
        torch.testing.assert_close(distribution.log_likelihood(graph), expected)


def test_exact_likelihood_is_known_at_the_two_ends_of_the_largest_graphs() -> None:
    """No edges: every order will do. All edges: only one."""
    variables = MAX_VARIABLES_EXACT
    distribution = random_distribution(variables, scale=2)
    order = distribution.sample_orders(1, seeded())[0]
    empty, complete = torch.zeros(variables, variables), 1 - torch.eye(variables)
    pairs = torch.triu_indices(variables, variables, 1)
    no_edges = torch.nn.functional.logsigmoid(-distribution.skeleton_logits[pairs[0], pairs[1]]).sum()
    torch.testing.assert_close(distribution.log_likelihood(empty), no_edges)
    torch.testing.assert_close(
        distribution.log_likelihood(orient(complete, order)), distribution.log_probability(complete, order)
    )


def test_a_cyclic_graph_has_likelihood_zero() -> None:
    ring = torch.eye(4).roll(1, dims=1)
    both_ways = torch.zeros(4, 4)
    both_ways[0, 1] = both_ways[1, 0] = 1
    assert random_distribution(4).log_likelihood(torch.stack([ring, both_ways])).tolist() == [-math.inf] * 2


def test_the_exact_likelihood_of_a_large_graph_is_refused() -> None:
    distribution = random_distribution(MAX_VARIABLES_EXACT + 1)
    with pytest.raises(GraphError, match="composite_nll"):
        distribution.log_likelihood(distribution.most_probable_dag())


# Marginals


def test_edge_marginals_match_enumeration() -> None:
    distribution = random_distribution(4)
    table = probability_by_enumeration(distribution)
    weights = torch.tensor(list(table.values())).double()
    expected = (weights[:, None, None] * dags_of(table, 4)).sum(0)
    torch.testing.assert_close(distribution.edge_marginals(), expected, rtol=1e-6, atol=1e-9)
    torch.testing.assert_close(distribution.edge_logits().sigmoid(), expected, rtol=1e-6, atol=1e-9)


def test_the_two_directions_share_the_skeleton_probability() -> None:
    distribution = random_distribution(3, 6, scale=4)
    marginals, precedence = distribution.edge_marginals(), distribution.precedence_probabilities()
    off_diagonal = 1 - torch.eye(6).double().expand(3, 6, 6)
    torch.testing.assert_close(marginals + marginals.mT, distribution.skeleton_probabilities())
    torch.testing.assert_close(precedence + precedence.mT, off_diagonal)


@given(st.integers(1, 8), st.integers(0, 2**32 - 1), st.floats(0.1, 4))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_marginals_recover_the_distribution(variables: int, seed: int, scale: float) -> None:
    """Theorem 1: the skeleton exactly, the scores up to a constant."""
    original = random_distribution(2, variables, seed=seed, scale=scale)
    recovered = SkeletonOrder.from_marginals(original.edge_marginals())
    torch.testing.assert_close(recovered.skeleton_probabilities(), original.skeleton_probabilities())
    centered = original.order_scores - original.order_scores.mean(-1, keepdim=True)
    torch.testing.assert_close(recovered.order_scores, centered, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("bad", [[[0, 0.0], [0.3, 0]], [[0, 0.6], [0.4, 0]], [[0, math.nan], [0.4, 0]]])
def test_marginals_without_log_ratios_are_refused(bad: list[list[float]]) -> None:
    with pytest.raises(GraphError, match="pseudo-count"):
        SkeletonOrder.from_marginals(torch.tensor(bad))


def test_scores_of_marginals_without_an_order_are_those_of_least_squares() -> None:
    marginals = torch.rand(5, 5, generator=seeded(), dtype=torch.float64) / 2 + 1e-3
    marginals.fill_diagonal_(0)
    j, k = torch.triu_indices(5, 5, 1)
    log_ratios = torch.log(marginals[j, k] / marginals[k, j])
    differences = torch.zeros(len(j), 5, dtype=torch.float64)
    differences[torch.arange(len(j)), j], differences[torch.arange(len(j)), k] = 1, -1
    scores = torch.linalg.pinv(differences) @ log_ratios
    torch.testing.assert_close(SkeletonOrder.from_marginals(marginals).order_scores, scores)


# The most probable graph


def test_most_probable_dag_comes_from_the_most_probable_skeleton_and_order() -> None:
    distribution = random_distribution(4)
    skeletons, orders = all_skeletons(4), all_orders(4)
    log_probability = distribution.log_probability(skeletons[:, None], orders[None])  # (64, 24)
    assert float(log_probability.exp().sum()) == pytest.approx(1)
    best_skeleton, best_order = divmod(int(log_probability.argmax()), len(orders))
    assert torch.equal(distribution.most_probable_order(), orders[best_order])
    assert torch.equal(distribution.most_probable_dag(), orient(skeletons[best_skeleton], orders[best_order]))


def test_equal_scores_still_give_one_acyclic_answer() -> None:
    tied = SkeletonOrder(torch.ones(2, 40, 40), torch.tensor([0.0, 1.0]).repeat_interleave(20).repeat(2, 1))
    graph = tied.most_probable_dag()
    assert is_acyclic(graph.numpy()).all()
    assert graph.sum().item() == 2 * 40 * 39 // 2  # every pair adjacent, ties included
    earlier = list(range(20, 40)) + list(range(20))
    assert tied.most_probable_order().tolist() == [earlier, earlier]
    assert torch.equal(graph, tied.most_probable_dag())


def test_an_edge_as_likely_as_not_is_left_out() -> None:
    assert not SkeletonOrder(torch.zeros(3, 3), torch.arange(3.0)).most_probable_dag().any()


# Samples


def test_every_sampled_graph_is_acyclic() -> None:
    graphs = random_distribution(4, 12, dtype=torch.float32, scale=3).sample_dags(100, seeded())
    assert graphs.shape == (100, 4, 12, 12)
    assert graphs.dtype == torch.bool
    assert is_acyclic(graphs.numpy()).all()
    assert not graphs.diagonal(dim1=-2, dim2=-1).any()


def largest_deviation(frequencies: Tensor, probabilities: Tensor, count: int) -> float:
    """The largest distance of a frequency from its probability, in standard errors."""
    errors = (probabilities * (1 - probabilities) / count).sqrt().clamp_min(1e-9)
    return float(((frequencies - probabilities).abs() / errors).max())


def test_sampling_frequencies_match_edge_marginals() -> None:
    distribution = random_distribution(3, 8)
    graphs = distribution.sample_dags(20_000, seeded())
    assert largest_deviation(graphs.double().mean(0), distribution.edge_marginals(), 20_000) < 4.5


def test_sampling_frequencies_match_exact_likelihoods() -> None:
    """Graph by graph, so that dependence between edges counts too."""
    distribution = random_distribution(3)
    graphs = dags_of(probability_by_enumeration(distribution), 3)
    samples = distribution.sample_dags(40_000, seeded())
    frequencies = (samples[:, None] == graphs).all(dim=(-2, -1)).double().mean(0)
    assert float(frequencies.sum()) == 1
    assert largest_deviation(frequencies, distribution.log_likelihood(graphs).exp(), 40_000) < 4


def test_sampled_orders_follow_plackett_luce() -> None:
    distribution = random_distribution(4)
    orders = all_orders(4)
    samples = distribution.sample_orders(40_000, seeded())
    frequencies = (samples[:, None] == orders).all(-1).double().mean(0)
    empty = torch.zeros(4, 4)
    log_probability = distribution.log_probability(empty, orders)
    probabilities = (log_probability - log_probability.logsumexp(0)).exp()
    assert largest_deviation(frequencies, probabilities, 40_000) < 4
    weights = distribution.order_scores.exp()  # one order by hand, against a mistake shared by both methods
    by_hand = weights[2] / weights.sum() * weights[0] / weights[[0, 1, 3]].sum() * weights[3] / weights[[1, 3]].sum()
    assert float(probabilities[orders.tolist().index([2, 0, 3, 1])]) == pytest.approx(float(by_hand))


def test_seeds_reproduce_samples_and_pieces_are_independent(monkeypatch: pytest.MonkeyPatch) -> None:
    distribution = random_distribution(6)
    monkeypatch.setattr("causal_arrow_lab.skeleton_order.ENTRIES_PER_PIECE", 36 * 4)
    graphs = distribution.sample_dags(10, seeded())
    assert torch.equal(graphs, distribution.sample_dags(10, seeded()))
    assert not torch.equal(graphs, distribution.sample_dags(10, seeded(1)))
    assert not torch.equal(graphs[:4], graphs[4:8])
    assert is_acyclic(graphs.numpy()).all()


# As arrays


def test_arrays_have_the_same_probabilities_as_tensors() -> None:
    """Training and answers compute them twice: with gradients in torch, and without torch."""
    distribution = random_distribution(3, 7, scale=4, dtype=torch.float32)
    output = NetworkOutput(distribution, distribution.skeleton_logits.roll(1, 0))
    arrays = output.numpy()
    for method in ("skeleton_probabilities", "precedence_probabilities", "edge_marginals"):
        np.testing.assert_allclose(getattr(arrays, method)(), getattr(distribution, method)().numpy(), atol=1e-6)
    np.testing.assert_allclose(arrays.edge_logits(), distribution.edge_logits().numpy(), rtol=1e-5)
    np.testing.assert_array_equal(arrays[1].order_scores, output[1].numpy().order_scores)
    assert arrays.confounding_logits is not None
    np.testing.assert_array_equal(arrays.confounding_logits[1], output[1].numpy().confounding_logits)


# Batches


def test_a_batch_answers_as_its_tasks_do_one_by_one() -> None:
    batch = random_distribution(5, 4)
    graphs = batch.sample_dags(1, seeded())[0]
    for task, (one, graph) in enumerate(zip(batch, graphs, strict=True)):
        for method in ("composite_nll", "log_likelihood"):
            torch.testing.assert_close(getattr(batch, method)(graphs)[task], getattr(one, method)(graph))
        for method in ("edge_marginals", "edge_logits", "most_probable_dag", "most_probable_order"):
            torch.testing.assert_close(getattr(batch, method)()[task], getattr(one, method)())
    assert batch[1:3].to("cpu").edge_marginals().shape == (2, 4, 4)


@pytest.mark.parametrize("relabelling", list(permutations(range(3))))
def test_permuting_variables_permutes_the_answer(relabelling: tuple[int, ...]) -> None:
    original = random_distribution(3)
    new = list(relabelling)
    relabelled = SkeletonOrder(original.skeleton_logits[new][:, new], original.order_scores[new])
    graph = original.sample_dags(1, seeded())[0]
    assert torch.equal(relabelled.most_probable_dag(), original.most_probable_dag()[new][:, new])
    torch.testing.assert_close(relabelled.edge_marginals(), original.edge_marginals()[new][:, new])
    for method in ("composite_nll", "log_likelihood"):
        ours = getattr(relabelled, method)(graph[new][:, new])
        torch.testing.assert_close(ours, getattr(original, method)(graph))


@pytest.mark.parametrize(("logits", "scores"), [((3, 4), (3,)), ((2, 3, 3), (3,)), ((3, 3), (4,)), ((), ())])
def test_shapes_that_do_not_fit_are_refused(logits: tuple[int, ...], scores: tuple[int, ...]) -> None:
    with pytest.raises(GraphError, match="Expected"):
        SkeletonOrder(torch.zeros(logits), torch.zeros(scores))


def test_one_distribution_cannot_be_indexed() -> None:
    with pytest.raises(IndexError, match="not a batch"):
        random_distribution(3)[0]
