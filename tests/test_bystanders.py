"""Bystanders: a column that has nothing to do with the others does not change what is said of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from causal_arrow import Settings, discover
from causal_arrow.batches import TableBatch
from causal_arrow.discovery.arranged import arrange
from causal_arrow.discovery.inference import (
    BYSTANDER,
    bystanders,
    infer,
    infer_rows,
    infer_together,
    read_without,
    ready_model,
)
from causal_arrow.graphs.graph_distribution import GraphDistribution
from causal_arrow.network.pairwise import PairwiseNetwork
from causal_arrow.progress import MEASURING, READING_AGAIN, READING_CELLS
from causal_arrow.tables.reading import read_table


def chain(observations: int = 600, seed: int = 0, noise: int = 0) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    a = generator.uniform(-1, 1, observations)
    b = a + generator.uniform(-1, 1, observations)
    c = np.where(b + generator.uniform(-1, 1, observations) > 0, "yes", "no")
    d = b**2 + generator.uniform(-1, 1, observations)
    others = {f"noise{place}": generator.standard_normal(observations) for place in range(noise)}
    return pd.DataFrame({"a": a, "b": b, "c": c, "d": d, **others})


def said_of(
    pairs: dict[tuple[int, int], float], variables: int, hidden: dict[tuple[int, int], float]
) -> GraphDistribution:
    def matrix(probabilities: dict[tuple[int, int], float]) -> np.ndarray:
        full = np.full((1, variables, variables), 0.01)
        for (j, k), probability in probabilities.items():
            full[0, [j, k], [k, j]] = probability
        return np.log(full / (1 - full))

    return GraphDistribution(matrix(pairs), np.arange(1.0 * variables)[None], matrix(hidden))


def test_a_bystander_has_neither_a_probable_edge_nor_a_probable_hidden_cause() -> None:
    said = said_of({(0, 1): 0.9, (1, 2): BYSTANDER - 0.01, (3, 4): BYSTANDER + 0.01}, 6, {(0, 2): 0.5})
    assert bystanders(said)[0].tolist() == [False, False, False, False, False, True]


def test_a_table_with_much_noise_is_left_whole() -> None:
    for variables, alone, aside in [(3, 1, 0), (4, 1, 1), (5, 2, 0), (19, 1, 1), (19, 2, 0), (20, 2, 2), (20, 3, 0)]:
        pairs = {(j, (j + 1) % (variables - alone)): 0.9 for j in range(variables - alone)}
        assert bystanders(said_of(pairs, variables, {})).sum() == aside
    assert not bystanders(said_of({}, 5, {})).any()


def test_what_is_said_of_bystanders_stays_and_scores_keep_their_place() -> None:
    said = said_of({(0, 1): 0.9, (1, 3): 0.6}, 4, {})
    part = GraphDistribution(np.full((1, 3, 3), 2.0), np.array([[10.0, 20.0, 60.0]]))
    asked: list[TableBatch] = []

    def read(tables: TableBatch) -> GraphDistribution:
        asked.append(tables)
        return part

    tables = TableBatch(np.arange(40.0).reshape(1, 10, 4), levels=np.array([[0, 2, 3, 4]]))
    again = read_without(said, lambda *which: read(tables.with_columns(*which)))
    assert [batch.values.shape for batch in asked] == [(1, 10, 3)]
    assert asked[0].values[0, 0].tolist() == [0.0, 1.0, 3.0]
    assert asked[0].levels is not None
    assert asked[0].levels.tolist() == [[0, 2, 4]]
    order, logits = again.order_scores[0], again.skeleton_logits[0]
    assert np.diff(order) == pytest.approx([10.0, 2.0 - order[1], order[3] - 2.0])
    assert order[[0, 1, 3]].mean() == pytest.approx((0 + 1 + 3) / 3)
    assert (logits[[0, 0, 1], [1, 3, 3]] == 2.0).all()
    np.testing.assert_array_equal(logits[2], said.skeleton_logits[0, 2])


def test_columns_of_noise_leave_the_others_as_they_are() -> None:
    plain, noisy = (discover(table, directions="network").answer for table in (chain(), chain(noise=1)))
    expected = np.zeros((5, 5), dtype=bool)
    expected[:4, :4] = plain.adjacency
    np.testing.assert_array_equal(noisy.adjacency, expected)
    np.testing.assert_allclose(noisy.edge_probabilities[:4, :4], plain.edge_probabilities, atol=1e-5)
    assert plain.confounding_probabilities is not None
    assert noisy.confounding_probabilities is not None
    np.testing.assert_allclose(noisy.confounding_probabilities[:4, :4], plain.confounding_probabilities, atol=1e-5)
    assert 0 < noisy.edge_probabilities[4:].max() < BYSTANDER


def test_a_long_table_is_read_again_as_well_and_tells_so() -> None:
    # All observations but one are read one by one: nearly what the whole table says, without the noise as well.
    long = discover(chain(noise=1), Settings(max_rows=599)).answer.edge_probabilities
    np.testing.assert_allclose(long[:4, :4], discover(chain()).answer.edge_probabilities, atol=0.01)
    assert 0 < long[4].max() < BYSTANDER

    heard: list[tuple[str, float]] = []
    for table in (chain(noise=1), chain()):
        arranged = arrange(read_table(table), 599)
        infer(ready_model("arrow-base"), arranged, progress=lambda stage, share: heard.append((stage, share)))
    stages = list(dict.fromkeys(stage for stage, _ in heard))
    assert stages == [MEASURING, READING_CELLS, READING_AGAIN]
    again = [share for stage, share in heard if stage == READING_AGAIN]
    assert again == sorted(again)
    assert 0.8 < again[-1] <= 1
    assert heard[-1][0] == READING_CELLS  # nothing to set aside in the second table


def test_tables_together_get_the_answers_of_tables_alone() -> None:
    table = read_table(chain(noise=1))
    model = ready_model("arrow-base")
    alone = infer(model, arrange(table))
    others = [arrange(read_table(chain(noise=1, seed=seed))) for seed in (1, 2)]
    together = {}
    for said in infer_together(model, [others[0], arrange(table), others[1]]):
        together |= said
    np.testing.assert_allclose(together[1].skeleton_logits, alone.skeleton_logits, atol=1e-4, rtol=0)
    rows = np.tile(np.arange(600), (3, 1))
    for said in infer_rows(model, arrange(table), rows):
        np.testing.assert_allclose(said.skeleton_logits, alone.skeleton_logits, atol=1e-4, rtol=0)


def test_a_network_of_numbers_alone_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    read = PairwiseNetwork.read

    def counting(network: PairwiseNetwork, tables: TableBatch, *how: Any) -> GraphDistribution:
        asked.append(tables.variables)
        return read(network, tables, *how)

    monkeypatch.setattr(PairwiseNetwork, "read", counting)
    numbers = chain(noise=1).drop(columns="c")
    discover(numbers, Settings(model="arrow-strict"))
    assert asked == [4]
    discover(numbers)
    assert asked == [4, 4, 3]
