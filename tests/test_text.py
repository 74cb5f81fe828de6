"""Numbers in words do not depend on the last bits of a float, and neither do orders and names that go by them."""

from __future__ import annotations

import numpy as np
import pytest

from causal_arrow.discovery.answer import Answer, direction_strength
from causal_arrow.discovery.effects.experiments import ExperimentPlan
from causal_arrow.discovery.summary import summarize, to_text
from causal_arrow.graphs.graph_distribution import GraphDistribution
from causal_arrow.text import counted_share, in_digits, in_percent
from causal_arrow.web._questions import probability_words

LAST_BITS = 1e-15


@pytest.mark.parametrize("exact", [0.0, 0.25, 0.5, 0.75, 1.0])
def test_a_computed_share_has_the_same_words_whatever_its_last_bits_are(exact: float) -> None:
    near = [exact, exact - LAST_BITS, exact + LAST_BITS]
    assert len({in_percent(share) for share in near}) == 1


def test_only_a_counted_share_is_none_or_all() -> None:
    words = {in_percent(share) for share in np.linspace(0, 1, 1001)}
    assert not words & {"0%", "100%"}
    assert {"<1%", "1%", "37%", "99%", ">99%"} <= words
    assert [counted_share(count / 1000) for count in (0, 1, 370, 999, 1000)] == ["none", "<1%", "37%", ">99%", "all"]
    assert counted_share(0, "graphs") == "none of the graphs"
    assert counted_share(0.37, "graphs") == "37% of graphs"
    assert counted_share(1 - 0.04 - 0.96 + 1, "graphs") == "all graphs"  # counts, summed as floats


def test_numbers_have_three_significant_digits() -> None:
    shown = {0.0: "0", 6.0449: "6.04", 0.012345: "0.0123", -1234.5: "-1,234", 3e-9: "3e-09", 2e8: "2e+08"}
    assert {value: in_digits(value) for value in shown} == shown


def test_a_gain_that_only_rounding_keeps_from_zero_is_a_small_one() -> None:
    plan = ExperimentPlan(("drug", "stay"), (), (), 0.1, 100, 100)
    assert plan.amount(0.0) == plan.amount(1e-17) == "<1% of the uncertainty"


@pytest.mark.parametrize("edge", [0.75, 0.95])
def test_the_word_for_a_direction_goes_by_the_number_beside_it(edge: float) -> None:
    assert direction_strength(edge - 1e-6) == direction_strength(edge) == direction_strength(edge + 1e-6)
    assert direction_strength(edge - 0.01) != direction_strength(edge)


@pytest.mark.parametrize("edge", [0.1, 0.5, 0.7, 0.9, 0.99])
def test_the_words_for_a_probability_go_by_the_number_beside_them(edge: float) -> None:
    assert probability_words(edge - 1e-6) == probability_words(edge) == probability_words(edge + 1e-6)
    assert probability_words(edge - 0.01) != probability_words(edge)


def test_edges_that_are_equally_probable_as_shown_are_ordered_by_name() -> None:
    def summary(*log_odds: float) -> str:
        logits = np.full((6, 6), -20.0)
        for pair, value in enumerate(log_odds):
            cause, effect = 2 * pair, 2 * pair + 1
            logits[cause, effect] = logits[effect, cause] = value
        return to_text(summarize(Answer(tuple("efcdab"), GraphDistribution(logits, -20.0 * np.arange(6)))))

    assert summary(10, 10.5, 11) == summary(11, 10.5, 10)
    lines = summary(10, 10.5, 11).splitlines()
    assert [line.split()[:2] for line in lines[3:6]] == [["a", "b"], ["c", "d"], ["e", "f"]]
    assert summary(10, 1, 11) != summary(1, 10, 11)
