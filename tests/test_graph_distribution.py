"""GraphDistribution: probabilities against many digits and enumeration, and what copies and parts change."""

from __future__ import annotations

from decimal import Decimal, getcontext
from itertools import permutations, product

import numpy as np
import pytest

from causal_arrow.errors import GraphError
from causal_arrow.graphs.graph_distribution import CERTAIN, MAX_TEMPERATURE, GraphDistribution


def random_distribution(*shape: int, seed: int = 0, scale: float = 2.0) -> GraphDistribution:
    random = np.random.default_rng(seed)
    logits = scale * random.normal(size=(*shape, shape[-1])).astype(np.float32)
    scores = scale * random.normal(size=shape).astype(np.float32)
    return GraphDistribution(logits + logits.swapaxes(-1, -2), scores, logits + logits.swapaxes(-1, -2))


def test_edge_marginals_match_enumeration_of_orders() -> None:
    distribution = random_distribution(4)
    weight = np.exp(distribution.order_scores.astype(np.float64))
    before = np.zeros((4, 4))
    for order in permutations(range(4)):
        probability = np.prod([weight[order[i]] / weight[list(order[i:])].sum() for i in range(4)])
        position = np.argsort(order)
        before += probability * (position[:, None] < position)
    np.testing.assert_allclose(distribution.precedence_probabilities(), before, atol=1e-12)
    np.testing.assert_allclose(distribution.edge_marginals(), before * distribution.skeleton_probabilities())


def test_the_two_directions_share_the_skeleton_probability() -> None:
    distribution = random_distribution(3, 6, scale=4)
    marginals, precedence = distribution.edge_marginals(), distribution.precedence_probabilities()
    np.testing.assert_allclose(marginals + marginals.swapaxes(1, 2), distribution.skeleton_probabilities())
    np.testing.assert_allclose(precedence + precedence.swapaxes(1, 2), np.broadcast_to(1 - np.eye(6), (3, 6, 6)))


@pytest.mark.parametrize(("logit", "difference"), list(product([-700.0, -50.0, -5.0, 0.0, 0.5, 20.0, 700.0], repeat=2)))
def test_edge_probabilities_keep_their_digits_at_extreme_logits(logit: float, difference: float) -> None:
    getcontext().prec = 700
    marginal = 1 / ((1 + (-Decimal(logit)).exp()) * (1 + (-Decimal(difference)).exp()))
    distribution = GraphDistribution(np.full((2, 2), logit), np.array([difference, 0.0]))
    assert distribution.edge_marginals()[0, 1] == pytest.approx(float(marginal), rel=1e-12, abs=1e-300)
    assert distribution.edge_logits()[0, 1] == pytest.approx(float((marginal / (1 - marginal)).ln()), rel=1e-12)


def test_nothing_is_said_of_a_variable_and_itself() -> None:
    distribution = random_distribution(5)
    for matrix in (distribution.skeleton_logits, distribution.confounding_logits):
        assert matrix is not None
        np.fill_diagonal(matrix, 99.0)
    for probabilities in (
        distribution.skeleton_probabilities(),
        distribution.precedence_probabilities(),
        distribution.edge_marginals(),
        distribution.confounding_probabilities(),
    ):
        assert probabilities is not None
        assert (probabilities.diagonal() == 0).all()
    assert np.isneginf(distribution.edge_logits().diagonal()).all()
    assert distribution.uncertainty() == random_distribution(5).uncertainty()


def test_a_batch_answers_as_its_tables_do_one_by_one() -> None:
    batch = random_distribution(3, 4)
    for method in ("edge_marginals", "edge_logits", "uncertainty", "confounding_probabilities"):
        alone = [getattr(batch[table], method)() for table in range(3)]
        np.testing.assert_allclose(getattr(batch, method)(), alone)
    with pytest.raises(IndexError, match="not a batch"):
        batch[0][0]


def test_rearranging_the_variables_rearranges_all_probabilities() -> None:
    distribution, indices = random_distribution(5), [3, 0, 4, 1, 2]
    moved = distribution.rearranged(indices)
    for method in ("edge_marginals", "edge_logits", "confounding_probabilities"):
        np.testing.assert_array_equal(
            getattr(moved, method)(), getattr(distribution, method)()[np.ix_(indices, indices)]
        )


def test_a_copy_is_caused_by_the_variable_read_for_it_and_adjacent_to_no_other() -> None:
    distribution = random_distribution(2)
    full = distribution.with_copies([0, 0, 2])
    edges, hidden = full.edge_marginals(), full.confounding_probabilities()
    assert hidden is not None
    assert edges[0, 1] == pytest.approx(1.0, abs=1e-8)
    assert max(edges[1].max(), edges[2, 1], hidden[1].max()) < 1e-8
    np.testing.assert_allclose(edges[np.ix_([0, 2], [0, 2])], distribution.edge_marginals())
    assert full.order_scores[1] == full.order_scores[0] - MAX_TEMPERATURE * CERTAIN
    assert distribution.with_copies([0, 1]) is distribution
    np.testing.assert_array_equal(distribution.skeleton_logits, random_distribution(2).skeleton_logits)  # borrowed


@pytest.mark.parametrize(
    ("logits", "scores", "hidden"),
    [((3, 4), (3,), None), ((2, 3, 3), (3,), None), ((3, 3), (4,), None), ((), (), None), ((3, 3), (3,), (2, 3, 3))],
)
def test_shapes_that_do_not_fit_are_refused(
    logits: tuple[int, ...], scores: tuple[int, ...], hidden: tuple[int, ...] | None
) -> None:
    with pytest.raises(GraphError, match="Expected"):
        GraphDistribution(np.zeros(logits), np.zeros(scores), None if hidden is None else np.zeros(hidden))
