"""Effects over many graphs: estimates, intervals, adjustment sets, sensitivity, words."""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib as mpl
import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scipy.special import stdtr

from causal_arrow.discovery.answer import Answer
from causal_arrow.discovery.effects._adjustment import closes_back_doors, count_adjustments, instruments
from causal_arrow.discovery.effects._flexible import Flexible, best_estimand, flexible
from causal_arrow.discovery.effects.effect import Effect, Effects, SetEffect, e_value, robustness_value
from causal_arrow.discovery.effects.estimation import estimate_effect, estimate_effects, halves
from causal_arrow.discovery.effects.linear import Design, SetEstimate, curved, linear_estimates
from causal_arrow.discovery.effects.mixture import Mixture
from causal_arrow.discovery.effects.questions import EffectQuestion
from causal_arrow.discovery.estimator import Arrow
from causal_arrow.errors import ArrowError
from causal_arrow.graphs.dag import transitive_closure
from causal_arrow.graphs.graph_distribution import GraphDistribution
from causal_arrow.graphs.knowledge import Knowledge
from causal_arrow.tables.reading import read_table
from causal_arrow.tables.table import Column, Table
from causal_arrow.text import in_digits

mpl.use("Agg")

SURE = 30.0  # log-odds

Run = Callable[..., tuple[int, str, str]]


def sure_of(graph: np.ndarray, confounding: np.ndarray | None = None) -> GraphDistribution:
    """The distribution that is sure of a graph with causes before effects, and of pairs with a hidden cause."""
    skeleton = np.where(graph | graph.T, SURE, -SURE)
    scores = -SURE * np.arange(len(graph))
    hidden = None if confounding is None else np.where(confounding, SURE, -SURE)
    return GraphDistribution(skeleton, scores, hidden)


def random_dag(variables: int, chance: float, random: np.random.Generator) -> np.ndarray:
    return np.triu(random.random((variables, variables)) < chance, 1)


INCOME, DOSE, HEALTH, NOISE = range(4)
TRIANGLE = np.zeros((4, 4), dtype=bool)
TRIANGLE[INCOME, [DOSE, HEALTH]] = TRIANGLE[DOSE, HEALTH] = True


@pytest.fixture
def medical() -> Table:
    """Income raises the dose and lowers the outcome; a unit of dose raises the outcome by 2. The plain slope is 0.2."""
    random = np.random.default_rng(0)
    income = random.normal(size=600)
    dose = 0.9 * income + 0.5 * random.normal(size=600)
    health = 2 * dose - 2.1 * income + random.normal(size=600)
    values = np.stack([income, dose, health, random.normal(size=600)], axis=1)
    return Table.of_numbers(values, ["income", "dose", "health", "noise"])


def answer_for(table: Table, distribution: GraphDistribution, **settings: object) -> Answer:
    return Answer(table.names, distribution, columns=table.columns, **settings)


def effect_of(
    table: Table, distribution: GraphDistribution, treatment: str, outcome: str, k: int = 200, **options: object
) -> Effect:
    answer = answer_for(table, distribution, knowledge=options.pop("knowledge", None) or Knowledge())
    question = options.pop("question", EffectQuestion("linear"))
    question = replace(question, between=options.pop("between", None))
    return estimate_effect(answer, table, treatment, outcome, question, np.random.default_rng(0), k, **options)


def mixture_of(weights: list[float], centers: list[float], spreads: list[float], freedoms: list[float]) -> Mixture:
    parts = zip(centers, spreads, freedoms, strict=True)
    return Mixture.of(weights, [SetEstimate(*part, 0.0) for part in parts])


def split_effect(
    parts: list[tuple[Answer, Table]], question: EffectQuestion, count: int, random: np.random.Generator
) -> Effect:
    first, second = (estimate_effect(*part, "dose", "health", question, random, count // 2) for part in parts)
    return first.averaged_with(second)


def effects_of(answer: Answer, table: Table, outcome: str, k: int, question: EffectQuestion | None = None) -> Effects:
    random = np.random.default_rng(0)
    question = question or EffectQuestion("linear")
    return estimate_effects(answer, table, outcome, question, random, answer.sample(k, random).graphs)


# Least squares


def test_estimates_by_many_sets_are_those_of_separate_robust_regressions() -> None:
    random = np.random.default_rng(1)
    values = random.normal(size=(80, 9)) @ random.normal(size=(9, 9)) * 10.0 ** random.integers(-3, 4, size=9) + 5
    sets = [tuple(np.flatnonzero(random.random(7) < 0.5).tolist()) for _ in range(40)] + [()]
    found = linear_estimates(Design.of([values[:, [place]] for place in range(9)]), 7, 8, sets)
    assert set(found) == set(sets)
    for members, estimate in found.items():
        x = np.column_stack([values[:, 7], values[:, list(members)], np.ones(80)])
        coefficients = np.linalg.lstsq(x, values[:, 8], rcond=None)[0]
        residuals = values[:, 8] - x @ coefficients
        bread = np.linalg.inv(x.T @ x)
        leverages = np.einsum("ij,jk,ik->i", x, bread, x)
        sandwich = bread @ (x.T * (residuals / (1 - leverages)) ** 2) @ x @ bread
        assert estimate.effect == pytest.approx(coefficients[0], rel=1e-6)
        assert estimate.standard_error == pytest.approx(sandwich[0, 0] ** 0.5, rel=1e-6)
        assert estimate.freedom == 80 - x.shape[1]


def test_partial_correlations_are_those_of_the_inverse_covariance() -> None:
    random = np.random.default_rng(2)
    values = random.normal(size=(60, 5)) @ random.normal(size=(5, 5))
    found = linear_estimates(Design.of([values[:, [place]] for place in range(5)]), 0, 1, [(2, 3, 4)])
    inverse = np.linalg.inv(np.cov(values.T))
    expected = -inverse[0, 1] / np.sqrt(inverse[0, 0] * inverse[1, 1])
    assert found[(2, 3, 4)].partial_correlation == pytest.approx(expected, rel=1e-6)


def test_a_set_that_determines_the_treatment_or_outnumbers_the_observations_has_no_estimate() -> None:
    random = np.random.default_rng(3)
    values = random.normal(size=(20, 30))
    values[:, 0] = values[:, 2] + values[:, 3]
    design = Design.of([values[:, [place]] for place in range(30)])
    assert set(linear_estimates(design, 0, 1, [(2, 3), tuple(range(2, 30)), (2,)])) == {(2,)}


def test_categories_are_adjusted_for_by_their_levels() -> None:
    random = np.random.default_rng(4)
    level = random.integers(4, size=2000)
    jumps = np.array([0.0, 5.0, -5.0, 1.0])
    dose = jumps[level] + random.normal(size=2000)
    outcome = 0.5 * dose - jumps[level] * 2 + random.normal(size=2000)
    columns = (Column("site", "category", ("a", "b", "c", "d")), Column("dose"), Column("health"))
    table = Table(np.stack([level.astype(float), dose, outcome], axis=1), columns)
    effect = effect_of(table, sure_of(TRIANGLE[:3, :3]), "dose", "health")
    x = np.column_stack([dose, level[:, None] == np.arange(4)])
    assert effect.mean == pytest.approx(np.linalg.lstsq(x, outcome, rcond=None)[0][0], rel=1e-6)
    assert effect.mean == pytest.approx(0.5, abs=0.1)


def test_the_curved_estimate_is_the_average_slope_of_a_cubic_regression() -> None:
    random = np.random.default_rng(14)
    z = random.exponential(size=400)
    t = np.sin(z) + random.exponential(size=400)
    y = 0.3 * t**3 - t + 2 * z**2 + random.normal(size=400)
    site = random.integers(2, size=400).astype(float)
    design = Design.of([column[:, None] for column in (t, y, z, site)])
    estimate = linear_estimates(curved(design, 0, 1, [Column(name) for name in "abcd"]), 0, 1, [(2, 3)])[(2, 3)]
    x = np.column_stack([np.ones(400), t, t**2, t**3, z, z**2, z**3, site])
    b = np.linalg.lstsq(x, y, rcond=None)[0]
    assert estimate.effect == pytest.approx((b[1] + 2 * b[2] * t + 3 * b[3] * t**2).mean(), rel=1e-6)
    assert estimate.freedom == 400 - x.shape[1]


def test_the_curved_estimator_sees_a_slope_that_a_straight_line_misses() -> None:
    random = np.random.default_rng(15)
    dose = random.exponential(size=1500)
    health = np.exp(-2 * dose) * 3 + 0.3 * random.normal(size=1500)
    table = Table.of_numbers(np.stack([dose, health], axis=1), ["dose", "health"])
    edge = np.array([[False, True], [False, False]])
    line, curve = (
        effect_of(table, sure_of(edge), "dose", "health", question=EffectQuestion(name))
        for name in ("linear", "curved")
    )
    slope = -6 / 3  # the mean of −6 exp(−2t) over an exponential t
    assert abs(curve.mean - slope) < 0.6 * abs(line.mean - slope)
    assert np.isnan(curve.robustness_value)


# Mixtures


def test_quantiles_of_a_mixture_are_those_of_its_draws() -> None:
    random = np.random.default_rng(5)
    mixture = mixture_of([5, 3], [1.0, -2.0], [0.3, 1.0], [40.0, 10.0])
    part = random.choice(2, p=[0.625, 0.375], size=400_000)
    draws = np.where(part, -2 + random.standard_t(10, size=400_000), 1 + 0.3 * random.standard_t(40, size=400_000))
    for level in (0.05, 0.25, 0.6, 0.95):
        assert mixture.quantile(level) == pytest.approx(np.quantile(draws, level), abs=0.02)
    assert mixture.mean == pytest.approx(draws.mean(), abs=0.01)
    assert np.hypot(mixture.between, mixture.within) == pytest.approx(draws.std(), abs=0.1)  # t(10) has fatter tails


def test_two_humps_are_seen_and_one_is_not_split() -> None:
    assert len(mixture_of([0.5, 0.5], [-2.0, 2.0], [0.5, 0.5], [50.0, 50.0]).humps()) == 2
    assert len(mixture_of([0.5, 0.5], [-0.4, 0.4], [0.5, 0.5], [50.0, 50.0]).humps()) == 1


def test_the_mean_of_two_mixtures_is_that_of_independent_draws() -> None:
    random = np.random.default_rng(5)
    one, other = mixture_of([1, 1], [0.0, 3.0], [0.4, 0.2], [60.0, 60.0]), mixture_of([1], [1.0], [0.5], [60.0])
    first = np.where(random.random(400_000) < 0.5, 0, 3)
    spread = np.where(first == 0, 0.4, 0.2)
    draws = (first + spread * random.standard_t(60, 400_000) + 1 + 0.5 * random.standard_t(60, 400_000)) / 2
    mean = one.averaged_with(other)
    for level in (0.05, 0.5, 0.95):
        assert mean.quantile(level) == pytest.approx(np.quantile(draws, level), abs=0.03)


def test_ninety_percent_of_the_distribution_lie_in_the_interval() -> None:
    random = np.random.default_rng(6)
    weights = random.dirichlet(np.ones(30))
    mixture = mixture_of(list(weights), list(random.normal(size=30)), [0.1] * 30, [20.0] * 30)
    ends = mixture.interval(0.9)
    below = [stdtr(mixture.freedoms, (end - mixture.centers) / mixture.spreads) @ mixture.weights for end in ends]
    assert below[1] - below[0] == pytest.approx(0.9, abs=1e-9)


# Adjustment sets


def test_adjustment_sets_of_graphs_without_hidden_causes_close_every_back_door() -> None:
    random = np.random.default_rng(7)
    graphs = np.stack([random_dag(8, 0.4, random) for _ in range(60)])
    graphs = graphs[transitive_closure(graphs)[:, 1, 6]]
    nothing = np.zeros_like(graphs)
    for kind in ("optimal", "parents"):
        counts = count_adjustments(graphs, 1, 6, kind, nothing)
        assert counts == count_adjustments(graphs, 1, 6, kind)
        assert counts.not_identified == 0


def test_closed_back_doors_are_d_separation_with_the_hidden_causes_drawn_in() -> None:
    random = np.random.default_rng(8)
    verdicts = []
    for _ in range(150):
        graph, pairs = random_dag(7, 0.35, random), random_dag(7, 0.12, random)
        if not transitive_closure(graph)[1, 5]:
            continue
        allowed = ~transitive_closure(graph)[1]
        members = (random.random(7) < 0.5) & allowed
        members[[1, 5]] = False
        ours = bool(closes_back_doors(graph[None], (pairs | pairs.T)[None], 1, 5, members[None])[0])
        drawn = nx.DiGraph()
        drawn.add_nodes_from(range(7))
        on_path = transitive_closure(graph)[:, 5]
        drawn.add_edges_from((j, k) for j, k in np.argwhere(graph).tolist() if not (j == 1 and (on_path[k] or k == 5)))
        for j, k in np.argwhere(pairs).tolist():
            drawn.add_edges_from([((j, k), j), ((j, k), k)])
        assert ours == nx.is_d_separator(drawn, {1}, {5}, set(np.flatnonzero(members).tolist()))
        verdicts.append(ours)
    assert 20 < sum(verdicts) < len(verdicts) - 20


def test_a_hidden_cause_of_treatment_and_outcome_leaves_the_effect_not_identified(medical: Table) -> None:
    hidden = np.zeros((4, 4), dtype=bool)
    hidden[DOSE, HEALTH] = hidden[HEALTH, DOSE] = True
    effect = effect_of(medical, sure_of(TRIANGLE, hidden), "dose", "health")
    assert effect.probability_not_identified == 1
    assert effect.verdict == "not identified"
    assert effect.blocking == (("dose", "health"),)
    elsewhere = np.zeros((4, 4), dtype=bool)
    elsewhere[INCOME, DOSE] = elsewhere[DOSE, INCOME] = True  # which adjusting for income closes
    effect = effect_of(medical, sure_of(TRIANGLE, elsewhere), "dose", "health")
    assert effect.probability_not_identified == 0
    assert effect.sets[0].adjustment_set == ("income",)


def test_a_graph_without_a_path_adjusts_for_the_causes_of_the_treatment() -> None:
    graph = np.zeros((4, 4), dtype=bool)
    graph[0, [1, 2]] = graph[3, 2] = True  # 0 causes treatment 1 and outcome 2, 3 the outcome
    counts = count_adjustments(graph[None], 1, 2)
    assert (counts.sets, counts.with_path, counts.reversed) == ({(0,): 1}, 0, 0)
    backwards = graph.copy()
    backwards[2, 1] = True
    counts = count_adjustments(np.stack([graph, backwards]), 1, 2)
    assert (counts.sets, counts.reversed) == ({(0,): 1}, 1)


def suspecting(chance: float, edge: float = 1.0) -> GraphDistribution:
    """Sure of the triangle but for its edge from dose to health, and not of a hidden cause of these two."""
    logits = sure_of(TRIANGLE).skeleton_logits.copy()
    if edge < 1:
        logits[DOSE, HEALTH] = logits[HEALTH, DOSE] = math.log(edge / (1 - edge))
    hidden = np.full((4, 4), -SURE)
    hidden[DOSE, HEALTH] = hidden[HEALTH, DOSE] = math.log(chance / (1 - chance))
    return GraphDistribution(logits, sure_of(TRIANGLE).order_scores, hidden)


@pytest.mark.parametrize(
    ("chance", "edge", "treatment", "verdict", "start"),
    [
        (0.9, 1.0, "dose", "not identified", "The effect of dose on health is not identified in "),
        (0.3, 1.0, "dose", "effect", "health changes by "),
        (0.1, 0.3, "dose", "conflict", "Conflict: "),
        (0.9, 0.3, "dose", "conflict", "Conflict: "),
        (0.1, 0.5, "noise", "no effect", "No sign of an effect of noise on health: all graphs have no causal path"),
    ],
)
def test_the_headline_is_the_conflict_of_the_three_answers_or_the_size(
    medical: Table, chance: float, edge: float, treatment: str, verdict: str, start: str
) -> None:
    effect = effect_of(medical, suspecting(chance, edge), treatment, "health", k=2000)
    assert effect.verdict == effect.to_dict()["verdict"] == verdict
    assert effect.sentence.startswith(start)
    low, high = effect.interval
    assert low <= effect.median <= high
    size = f"health changes by {in_digits(effect.median)} (90% interval {in_digits(low)} to {in_digits(high)})"
    assert sum(size in line for line in effect.lines) == 1  # whatever the verdict
    assert low < high
    assert effect.probability_not_identified == pytest.approx(chance if treatment == "dose" else 0, abs=0.05)
    assert bool(effect.sensitivity_sentences()) == (verdict != "no effect")
    if verdict == "not identified":
        assert "a hidden cause of 'dose' and 'health' may explain it" in effect.sentence
        assert "not identified in" in effect.plot().get_xlabel()


def test_no_effect_is_never_claimed_where_most_graphs_leave_it_not_identified(medical: Table) -> None:
    random = np.random.default_rng(31)
    shuffled = medical.values.copy()
    shuffled[:, HEALTH] = random.normal(size=len(shuffled))
    effect = effect_of(Table(shuffled, medical.columns), suspecting(0.9, 0.3), "dose", "health")
    assert effect.p_value > 0.1
    assert effect.verdict == "not identified"


def test_the_size_is_the_same_whether_or_not_graphs_have_a_path(medical: Table) -> None:
    with_path, without = (effect_of(medical, suspecting(0.01, edge), "dose", "health") for edge in (0.999, 0.001))
    assert with_path.median == pytest.approx(without.median, abs=1e-9)
    assert with_path.p_value == pytest.approx(without.p_value, abs=1e-9)
    assert without.probability_of_path < 0.1 < 0.9 < with_path.probability_of_path


def test_who_asks_says_that_the_treatment_comes_before_the_outcome(medical: Table) -> None:
    # The network is sure that health causes dose.
    backwards = GraphDistribution(sure_of(TRIANGLE).skeleton_logits, np.array([0.0, -20.0, -10.0, 0.0]))
    effect = effect_of(medical, backwards, "dose", "health")
    assert effect.order == "assumed"
    assert effect.probability_reversed == 1
    assert effect.probability_of_path == 1
    assert effect.interval[0] < 2 < effect.interval[1]
    assert "given that dose comes before health" in effect.sentence
    assert "Without that order, health causes dose in >99% of them." in str(effect)
    with pytest.raises(ArrowError, match="health causes dose in every graph"):
        effect_of(medical, backwards, "dose", "health", question=EffectQuestion("linear", order="free"))
    known = effect_of(medical, backwards, "dose", "health", knowledge=Knowledge(tiers=[["dose"], ["health"]]))
    assert known.order == "known"
    assert "given that" not in str(known)


def test_causes_that_most_graphs_do_not_identify_are_marked_and_come_last(medical: Table) -> None:
    answer = answer_for(medical, suspecting(0.9))
    effects = effects_of(answer, medical, "health", 500)
    assert [each.treatment for each in effects.effects] == ["income", "noise", "dose"]
    frame = effects.to_frame()
    dose = effects.effects[-1]
    assert abs(dose.standardized) > frame.standardized[:2].abs().max()
    assert frame.not_identified.tolist() == [each.probability_not_identified for each in effects.effects]
    assert f"  dose: not identified in {dose.probability_not_identified:.0%} of graphs; leaving that aside 1.8" in str(
        effects
    )
    assert [label.get_text() for label in effects.plot().get_yticklabels()][-1].startswith("dose (not identified in ")


# One effect


def test_the_effect_is_right_where_the_plain_slope_is_not(medical: Table) -> None:
    slope = np.polyfit(medical.values[:, DOSE], medical.values[:, HEALTH], 1)[0]
    effect = effect_of(medical, sure_of(TRIANGLE), "dose", "health")
    low, high = effect.interval
    assert slope < 0.5 < low < 2 < high
    assert effect.probability_of_none == 0


def test_the_mean_is_the_average_over_graphs_and_their_frequencies_sum_to_one(medical: Table) -> None:
    unsure = GraphDistribution(np.full((4, 4), 0.5), np.array([0.5, 0.0, -0.3, 0.2]))
    effect = effect_of(medical, unsure, "dose", "health", k=500)
    frame = effect.by_adjustment_set
    assert frame.frequency.sum() == pytest.approx(1)
    assert len(frame) == 4  # nothing, income, noise, both
    assert frame.frequency.is_monotonic_decreasing
    assert effect.mean == pytest.approx((frame.frequency * frame.effect).sum())
    assert effect.probability_of_none > 0.1


def test_doubt_about_the_graph_widens_the_interval(medical: Table) -> None:
    sure = effect_of(medical, sure_of(TRIANGLE), "dose", "health")
    order = GraphDistribution(sure_of(TRIANGLE).skeleton_logits, np.array([0.0, -0.5, -30.0, 0.0]))
    unsure = effect_of(medical, order, "dose", "health")
    # Income may come after dose, and is then a mediator: not to be adjusted for.
    assert {each.adjustment_set for each in unsure.sets} == {("income",), ()}
    assert np.ptp(unsure.interval) > 2 * np.ptp(sure.interval)


def test_knowledge_decides_which_graphs_count(medical: Table) -> None:
    order = GraphDistribution(sure_of(TRIANGLE).skeleton_logits, np.array([0.0, -0.5, -30.0, 0.0]))
    known = effect_of(medical, order, "dose", "health", knowledge=Knowledge(roots=["income"]))
    assert {each.adjustment_set for each in known.sets} == {("income",)}


def test_a_change_from_one_value_to_another_is_so_many_units(medical: Table) -> None:
    unit = effect_of(medical, sure_of(TRIANGLE), "dose", "health")
    change = effect_of(medical, sure_of(TRIANGLE), "dose", "health", between=(3, 1))
    assert change.mean == pytest.approx(-2 * unit.mean)
    assert change.interval == pytest.approx((-2 * unit.interval[1], -2 * unit.interval[0]))
    assert change.standardized == pytest.approx(unit.standardized)
    assert "when dose goes from 3 to 1" in str(change)


def test_a_change_to_a_value_that_was_never_observed_is_called_extrapolated(medical: Table) -> None:
    low, high = medical.values[:, DOSE].min(), medical.values[:, DOSE].max()
    asked = {
        between: effect_of(medical, sure_of(TRIANGLE), "dose", "health", between=between).notes
        for between in ((low, high), (high, low), (0, 1e9), (-1e6, "1e9"))
    }
    inside = f"the observed values of dose, which go from {low:.2f} to {high:.2f}: there the effect is extrapolated."
    assert list(asked.values()) == [
        (),
        (),
        (f"1e+09 lies beyond {inside}",),
        (f"-1e+06 and 1e+09 lie beyond {inside}",),
    ]


def test_units_of_a_column_change_the_effect_and_nothing_else(medical: Table) -> None:
    values = medical.values * np.array([1e6, 1e-3, 10.0, 1.0]) + 7
    scaled = Table.of_numbers(values, medical.names)
    before, after = (effect_of(table, sure_of(TRIANGLE), "dose", "health") for table in (medical, scaled))
    assert after.mean == pytest.approx(before.mean * 1e4, rel=1e-6)
    assert after.robustness_value == pytest.approx(before.robustness_value, rel=1e-6)


def test_covariates_enter_as_they_are_whatever_scale_the_network_read(medical: Table) -> None:
    values = medical.values.copy()
    values[:, INCOME] = np.exp(values[:, INCOME])
    table = Table.of_numbers(values, medical.names)
    effects = []
    for log_columns in ((), ("income",)):
        answer = answer_for(table, sure_of(TRIANGLE), log_columns=log_columns)
        question = EffectQuestion("linear")
        effects.append(
            estimate_effect(
                answer, table, "dose", "health", question=question, count=20, random=np.random.default_rng(0)
            )
        )
    assert effects[0].sets == effects[1].sets


def test_two_levels_of_a_category_are_compared_with_each_other_alone() -> None:
    random = np.random.default_rng(9)
    drug = random.integers(3, size=900)
    health = np.array([0.0, 1.5, 40.0])[drug] + random.normal(size=900)
    columns = (Column("drug", "category", ("none", "old", "new")), Column("health"))
    table = Table(np.stack([drug.astype(float), health], axis=1), columns)
    edge = np.array([[False, True], [False, False]])
    effect = effect_of(table, sure_of(edge), "drug", "health", between=("none", "old"))
    assert effect.mean == pytest.approx(1.5, abs=0.3)
    assert effect.observations == (drug < 2).sum()
    with pytest.raises(ArrowError, match=r"name the two to compare.*between=\(\.\.\., \.\.\.\)"):
        effect_of(table, sure_of(edge), "drug", "health")
    with pytest.raises(ArrowError, match="has no level 'nome': did you mean 'none'"):
        effect_of(table, sure_of(edge), "drug", "health", between=("nome", "old"))


def test_incomplete_observations_are_left_out_where_they_are_needed(medical: Table) -> None:
    values = medical.values.copy()
    values[:100, INCOME] = np.nan
    values[:300, NOISE] = np.nan
    effect = effect_of(Table(values, medical.columns), sure_of(TRIANGLE), "dose", "health")
    assert effect.observations == 500
    assert effect.mean == pytest.approx(2, abs=0.3)


def with_holes(table: Table, variable: int, observed: int) -> Table:
    """The table with so many cells of a variable, from the last observation upwards."""
    values = table.values.copy()
    values[: len(values) - observed, variable] = np.nan
    return Table(values, table.columns)


def noise_may_matter(chance: float = 0.05) -> GraphDistribution:
    """Sure of the triangle, and not of noise, which comes first and may cause dose and health."""
    logits = sure_of(TRIANGLE).skeleton_logits.copy()
    logits[NOISE, [DOSE, HEALTH]] = logits[[DOSE, HEALTH], NOISE] = math.log(chance / (1 - chance))
    return GraphDistribution(logits, np.array([0.0, -SURE, -2 * SURE, SURE]))


@pytest.mark.parametrize("estimator", ["linear", "curved", "flexible"])
def test_a_set_is_estimated_from_the_observations_that_are_complete_for_it(medical: Table, estimator: str) -> None:
    question = EffectQuestion(estimator)
    holes = with_holes(medical, NOISE, 60)
    full, sparse = (
        effect_of(table, noise_may_matter(), "dose", "health", k=500, question=question) for table in (medical, holes)
    )
    used = {each.adjustment_set: each.observations for each in sparse.sets}
    assert used == {("income",): 600, ("income", "noise"): 60}
    assert sparse.observations == 600
    assert not any("lack a value" in note for note in sparse.notes)  # few graphs ask for the sparse variable
    complete = effect_of(
        Table(medical.values[-60:], medical.columns), noise_may_matter(), "dose", "health", k=500, question=question
    )
    of_all, of_few, found = (
        {each.adjustment_set: each.estimate for each in effect.sets} for effect in (full, complete, sparse)
    )
    if estimator == "flexible":  # which draws its folds
        assert found["income",].effect == pytest.approx(of_all["income",].effect, abs=0.1)
        return
    assert found["income",][:4] == pytest.approx(of_all["income",][:4], rel=1e-9, nan_ok=True)
    assert found["income", "noise"][:4] == pytest.approx(of_few["income", "noise"][:4], rel=1e-9, nan_ok=True)


def test_a_set_with_too_few_observations_has_no_estimate_and_the_others_have_theirs(medical: Table) -> None:
    effect = effect_of(with_holes(medical, NOISE, 19), noise_may_matter(), "dose", "health", k=500)
    assert [each.adjustment_set for each in effect.sets] == [("income",)]
    assert 0 < effect.probability_not_estimated < 0.2
    share = f"{effect.probability_not_estimated:.0%} of graphs ask for a set that has no estimate"
    assert f"{share} (fewer than 20 observations are complete for it)." in str(effect)
    assert effect.to_dict()["why_not_estimated"] == "fewer than 20 observations are complete for it"
    assert effect.interval[0] < 2 < effect.interval[1]


def test_an_effect_is_refused_only_where_no_set_has_an_estimate(medical: Table) -> None:
    with pytest.raises(ArrowError, match=r"of 600 observations with values of both variables, too few.*impute"):
        effect_of(with_holes(medical, INCOME, 19), sure_of(TRIANGLE), "dose", "health")
    with pytest.raises(ArrowError, match="only 19 observations have values of both variables, and 20 are the fewest"):
        effect_of(with_holes(medical, HEALTH, 19), sure_of(TRIANGLE), "dose", "health")


def test_words_say_from_how_many_observations_where_they_are_clearly_fewer(medical: Table) -> None:
    nearly, few = (
        effect_of(with_holes(medical, INCOME, observed), sure_of(TRIANGLE), "dose", "health") for observed in (580, 150)
    )
    assert nearly.notes == ()
    assert few.notes == ("From 150 of 600 observations: the others lack a value that is needed.",)
    both = effect_of(with_holes(medical, NOISE, 150), noise_may_matter(0.7), "dose", "health")
    assert both.notes == (
        "From 150 to 600 of 600 observations, depending on the adjustment set: the others lack a value that is needed.",
    )


def test_words_say_one_thing_per_line_and_open_with_the_size(medical: Table) -> None:
    order = GraphDistribution(sure_of(TRIANGLE).skeleton_logits, np.array([0.0, -3.0, -30.0, 0.0]))
    effect = effect_of(medical, order, "dose", "health")
    said = str(effect).splitlines()
    assert re.match(
        r"health changes by 1\.8\d* \(90% interval [\d.]+ to [\d.]+\) per unit of dose\.",
        said[0],
    )
    assert said[1].startswith("Graphs: all 200 graphs with a causal path from dose to health.")
    assert said[2] == "Test of no dependence after adjustment for {income}: p < 0.001."
    assert re.match(r"Adjusted for {income} in \d+% of graphs, 1 other set in the rest; standard deviation ", said[3])
    assert said[4].startswith("Estimand: the average effect")
    assert said[5].startswith("A hidden cause would have to explain ")
    assert max(map(len, said)) < 250
    assert effect._repr_html_().startswith("<div><p><b>health changes by 1.8")
    assert "&lt; 0.001" in effect._repr_html_()


def test_the_effect_on_a_level_is_the_change_of_its_share() -> None:
    random = np.random.default_rng(11)
    drug = random.integers(2, size=4000).astype(float)
    shares = np.where(drug[:, None] == 1, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5])
    stage = (random.random(4000)[:, None] > np.cumsum(shares, axis=1)).sum(axis=1).astype(float)
    columns = (Column("drug", "binary", ("no", "yes")), Column("stage", "category", ("mild", "fair", "grave")))
    table = Table(np.stack([drug, stage], axis=1), columns)
    graph = np.array([[False, True], [False, False]])
    for level, expected in (("mild", 0.3), ("fair", 0.0), ("grave", -0.3)):
        for estimator in ("linear", "flexible"):
            question = EffectQuestion(estimator, level=level)
            effect = effect_of(table, sure_of(graph), "drug", "stage", question=question)
            assert effect.median == pytest.approx(expected, abs=0.05)
        assert f"the share of stage = {level} changes by" in str(effect)
    with pytest.raises(ArrowError, match=r"'mild', 'fair' and 'grave'.*level="):
        effect_of(table, sure_of(graph), "drug", "stage")
    with pytest.raises(ArrowError, match="did you mean 'grave'"):
        effect_of(table, sure_of(graph), "drug", "stage", question=EffectQuestion(level="grav"))


def test_words_say_what_levels_a_change_is_counted_in() -> None:
    random = np.random.default_rng(16)
    size = random.integers(3, size=500).astype(float)
    pain = np.clip(size + random.integers(3, size=500), 0, 3).astype(float)
    sex = random.integers(2, size=500).astype(float)
    site = random.integers(3, size=500).astype(float)
    columns = (
        Column("size", "ordered", ("s", "m", "l")),
        Column("sex", "category", ("f", "m")),
        Column("site", "category", ("a", "b", "c")),
        Column("smoker", "binary", ("no", "yes")),
        Column("pain", "ordered", ("none", "low", "some", "high")),
    )
    smoker = (random.random(500) < 0.3 + 0.2 * sex).astype(float)
    table = Table(np.stack([size, sex, site, smoker, pain], axis=1), columns)
    graph = np.zeros((5, 5), dtype=bool)
    graph[:4, 4] = graph[1, 3] = True
    effect = effect_of(table, sure_of(graph), "size", "pain")
    assert effect.sentence.startswith(f"pain changes by {effect.median:.3f} levels (90% interval ")
    assert " per level of size." in effect.sentence
    assert effect.plot().get_xlabel() == "change of pain in levels per level of size"
    share = effect_of(table, sure_of(graph), "sex", "smoker")  # two levels have one comparison
    assert share.sentence.startswith(f"the share of smoker = yes changes by {share.median:.3f} (90% interval ")
    assert " when sex goes from f to m." in share.sentence
    assert share.level == "yes"
    backwards = effect_of(table, sure_of(graph), "sex", "smoker", question=EffectQuestion("linear", level="no"))
    assert backwards.median == pytest.approx(-share.median)
    answer = answer_for(table, sure_of(graph))
    effects = effects_of(answer, table, "pain", 20)
    assert {each.treatment for each in effects.effects} == {"size", "sex", "smoker"}
    assert effects.categories == effects.not_estimated == ("site",)
    assert str(effects).endswith(
        "  no single effect of 'site', a category: name two of its levels with effect(..., between=(..., ...))"
    )
    assert "no estimate" not in str(effects)


@pytest.mark.parametrize(("low", "high"), [(0, 1), (1, 2), (0, 100), (-1, 1), (0.5, 2.5), ("a", "b")])
def test_a_treatment_and_an_outcome_of_two_values_have_one_effect_whatever_these_are(low: Any, high: Any) -> None:
    random = np.random.default_rng(12)
    drug = random.random(500) < 0.4
    values = {"drug": np.where(drug, high, low), "stay": 3 * drug + random.normal(size=500)}
    values["cured"] = np.where(random.random(500) < 0.2 + 0.5 * drug, high, low)
    table = read_table(values)
    graph = np.array([[False, True, True], [False, False, False], [False, False, False]])
    stay, cured = (effect_of(table, sure_of(graph), "drug", outcome) for outcome in ("stay", "cured"))
    assert stay.median == pytest.approx(3, abs=0.3)
    assert f"when drug goes from {low} to {high}" in stay.sentence
    assert cured.median == pytest.approx(0.5, abs=0.1)  # a share, whatever the unit
    assert f"the share of cured = {high} changes by" in cured.sentence
    for between in ((low, high), (str(low), str(high))):
        assert effect_of(table, sure_of(graph), "drug", "stay", between=between).median == stay.median
    back = effect_of(table, sure_of(graph), "drug", "stay", between=(high, low))
    assert back.median == pytest.approx(-stay.median)
    if high in (2, 100):  # what is no value of the column is not taken for one of its codes
        with pytest.raises(ArrowError, match="has no level"):
            effect_of(table, sure_of(graph), "drug", "stay", between=(low, high + 1))
    if high == 100:
        with pytest.raises(ArrowError, match="has no level '1'"):
            effect_of(table, sure_of(graph), "drug", "stay", between=(0, 1))


def test_an_effect_goes_through_json(medical: Table) -> None:
    effect = effect_of(medical, sure_of(TRIANGLE), "dose", "health")
    content = json.loads(json.dumps(effect.to_dict(), allow_nan=False))
    assert content["mean"] == effect.mean
    assert content["median"] == effect.median
    assert (content["low"], content["high"]) == effect.interval
    assert content["by_adjustment_set"][0]["adjustment_set"] == ["income"]
    assert content["e_value"] is None


def test_a_thousand_graphs_of_fifty_variables_take_under_three_seconds() -> None:
    random = np.random.default_rng(10)
    table = Table.of_numbers(random.normal(size=(1000, 50)), [f"v{place}" for place in range(50)])
    logits = random.normal(-1.5, 1.0, size=(50, 50))
    distribution = GraphDistribution((logits + logits.T) / 2, np.linspace(3, -3, 50))
    started = time.process_time()
    effect = effect_of(table, distribution, "v5", "v44", k=1000)
    assert time.process_time() - started < 3
    assert len(effect.sets) > 900


# All causes of an outcome


def test_causes_are_ranked_by_their_effect_in_standard_deviations(medical: Table) -> None:
    answer = answer_for(medical, sure_of(TRIANGLE))
    effects = effects_of(answer, medical, "health", 50)
    frame = effects.to_frame()
    assert list(frame.cause) == ["dose", "income", "noise"]
    assert list(frame.probability) == [1, 1, 0]
    assert frame.standardized.abs().is_monotonic_decreasing
    alone = effect_of(medical, sure_of(TRIANGLE), "dose", "health", k=50)
    assert frame.effect[0] == pytest.approx(alone.median)
    assert "dose: " in str(effects)
    assert "noise" not in str(effects)


def test_a_cause_without_an_estimate_does_not_keep_the_others_from_theirs(medical: Table) -> None:
    values = medical.values.copy()
    values[:, NOISE] = values[:, INCOME]
    graph = TRIANGLE.copy()
    graph[[INCOME, NOISE], :] = graph[[NOISE, INCOME], :]
    graph[:, [INCOME, NOISE]] = graph[:, [NOISE, INCOME]]
    graph = graph | TRIANGLE
    table = Table(values, medical.columns)
    places = [INCOME, NOISE, DOSE, HEALTH]
    ordered = Table(values[:, places], tuple(table.columns[place] for place in places))
    answer = answer_for(ordered, sure_of(graph[np.ix_(places, places)]))
    effects = effects_of(answer, ordered, "health", 20)
    assert effects.not_estimated == ("income", "noise")  # each is adjusted for by its copy
    assert [each.treatment for each in effects.effects] == ["dose"]


def effects_on_health(table: Table, distribution: GraphDistribution, question: EffectQuestion | None = None) -> Effects:
    answer = answer_for(table, distribution)
    return effects_of(answer, table, "health", 50, question)


def test_that_nothing_has_an_effect_is_said_only_where_no_graph_has_a_path(medical: Table) -> None:
    nothing = effects_on_health(medical, sure_of(np.zeros((4, 4), dtype=bool)))
    assert str(nothing) == "Nothing in the table has an effect on health in any of 50 graphs."
    failed = effects_on_health(with_holes(medical, HEALTH, 19), sure_of(TRIANGLE))
    reason = "only 19 observations have values of both variables, and 20 are the fewest"
    assert str(failed) == (f"No effect on health could be estimated: for 'income', 'dose' and 'noise', {reason}.")
    assert failed.to_dict()["not_estimated"] == ["income", "dose", "noise"]
    assert failed.to_dict()["why_not_estimated"] == dict.fromkeys(("income", "dose", "noise"), reason)


def test_a_ranking_says_why_a_cause_has_no_estimate(medical: Table) -> None:
    places = [INCOME, DOSE, NOISE, HEALTH]
    table = with_holes(medical, NOISE, 19)
    table = Table(table.values[:, places], tuple(table.columns[place] for place in places))
    graph = np.zeros((4, 4), dtype=bool)
    graph[0, 1] = graph[:3, 3] = True
    effects = effects_on_health(table, sure_of(graph), EffectQuestion("linear", adjustment="parents"))
    assert [each.treatment for each in effects.effects] == ["dose", "income"]
    assert str(effects).splitlines()[-1] == (
        "  no estimate for 'noise': only 19 observations have values of both variables, and 20 are the fewest"
    )


def test_the_command_says_why_no_effect_could_be_estimated(
    run: Run, any_table_model_folder: Path, medical: Table, tmp_path: Path
) -> None:
    frame = pd.DataFrame(with_holes(medical, HEALTH, 19).values[-100:], columns=list(medical.names))
    frame.drop(columns="noise").to_csv(tmp_path / "table.csv", index=False)
    asked = ("effect", tmp_path / "table.csv", "--model", any_table_model_folder, "--outcome", "health")
    asked = (*asked, "--graphs", 50, "--require", "income -> health", "--require", "dose -> health")
    for pair in ("income <-> dose", "income <-> health", "dose <-> health"):
        asked = (*asked, "--no-hidden-cause", pair)
    status, out, _ = run(*asked)
    reason = "only 19 observations have values of both variables, and 20 are the fewest"
    assert status == 0
    assert out.count(reason) == 1
    assert f"No effect on health could be estimated: for 'income' and 'dose', {reason}" in " ".join(out.split())
    assert "Nothing in the table" not in out
    _, out, _ = run(*asked, "--json")
    assert json.loads(out)["why_not_estimated"] == {"income": reason, "dose": reason}


# Without straight lines


def flexible_estimate(treated: np.ndarray, outcome: np.ndarray, cause: np.ndarray, estimand: str) -> SetEstimate:
    columns = (cause - cause.mean(axis=0)) / cause.std(axis=0)
    model = flexible(treated, outcome, columns, estimand != "slope", 0)
    assert model is not None
    found = model.estimate(estimand)
    assert found is not None
    return found


def test_the_flexible_estimator_finds_the_slope_under_confounding_that_is_not_linear() -> None:
    random = np.random.default_rng(11)
    cause = random.uniform(-2, 2, size=(800, 1))
    bend = np.square(cause[:, 0])
    dose = bend + 0.7 * random.normal(size=800)
    outcome = 1.0 * dose + 3 * bend + random.normal(size=800)
    line = linear_estimates(Design.of([dose[:, None], outcome[:, None], cause]), 0, 1, [(2,)])[(2,)]
    found = flexible_estimate(dose, outcome, cause, "slope")
    assert line.effect > 2.5
    assert abs(found.effect - 1) < 4 * found.standard_error
    assert found.standard_error < 0.1


@pytest.mark.parametrize(("estimand", "expected"), [("ATE", 1.0), ("ATT", 1.5)])
def test_the_average_effect_is_that_of_the_observations_it_names(estimand: str, expected: float) -> None:
    random = np.random.default_rng(12)
    cause = random.uniform(-2, 2, size=(4000, 2))
    chance = 1 / (1 + np.exp(-0.8 * cause[:, 1] - np.abs(cause[:, 0]) + 1))
    treated = (random.random(4000) < chance).astype(float)
    gain = 1 + cause[:, 1]  # 1 on average, more among the treated
    outcome = gain * treated + 2 * np.abs(cause[:, 0]) + 0.5 * random.normal(size=4000)
    if estimand == "ATT":
        expected = float(gain[treated == 1].mean())
        assert expected > 1.2
    found = flexible_estimate(treated, outcome, cause, estimand)
    assert abs(found.effect - expected) < 4 * found.standard_error
    assert found.standard_error < 0.06


def test_poor_overlap_changes_whom_the_effect_is_about_and_is_said() -> None:
    random = np.random.default_rng(13)
    cause = random.normal(size=3000)
    drug = (random.random(3000) < 1 / (1 + np.exp(-4 * cause))).astype(float)
    columns = (Column("cause"), Column("drug", "binary", ("no", "yes")), Column("health"))
    values = np.stack([cause, drug, drug + cause + random.normal(size=3000)], axis=1)
    question = EffectQuestion("flexible")
    effect = effect_of(Table(values, columns), sure_of(TRIANGLE[:3, :3]), "drug", "health", question=question)
    assert "overlap (weighted by variance)" in effect.estimand
    assert "Poor overlap: in " in str(effect)
    assert effect.interval[0] < 1 < effect.interval[1]
    even = values.copy()
    even[:, 1] = random.integers(2, size=3000)
    effect = effect_of(Table(even, columns), sure_of(TRIANGLE[:3, :3]), "drug", "health", question=question)
    assert effect.estimand == "the average effect over all observations"
    assert "overlap" not in str(effect)


def test_with_few_rows_the_flexible_estimator_uses_straight_lines(medical: Table) -> None:
    few = Table(medical.values[:60], medical.columns)
    lines, flexible_ = (
        effect_of(few, sure_of(TRIANGLE), "dose", "health", question=EffectQuestion(name))
        for name in ("linear", "flexible")
    )
    assert flexible_.median == lines.median
    assert flexible_.estimator == "linear"


# Groups, clusters, columns named


def test_effects_within_groups_are_those_of_the_groups() -> None:
    random = np.random.default_rng(14)
    site, drug = random.integers(2, size=(2, 2000)).astype(float)
    age = random.uniform(20, 80, size=2000)
    health = drug * (1 + 2 * site) + 0.1 * age + random.normal(size=2000)
    columns = (
        Column("site", "category", ("north", "south")),
        Column("drug", "binary", ("no", "yes")),
        Column("age"),
        Column("health"),
    )
    graph = np.zeros((4, 4), dtype=bool)
    graph[:3, 3] = True
    table = Table(np.stack([site, drug, age, health], axis=1), columns)
    effect = effect_of(table, sure_of(graph), "drug", "health", question=EffectQuestion("flexible"))
    by_site = effect.by("site")
    assert by_site["site"].tolist() == ["north", "south"]
    assert by_site["effect"].to_list() == pytest.approx([1, 3], abs=0.3)
    assert by_site["rows"].sum() == 2000
    by_age = effect.by("age", bins=3)
    assert len(by_age) == 3
    assert (by_age.low < 2).all()
    assert (by_age.high > 2).all()
    with pytest.raises(ArrowError, match="did you mean 'age'"):
        effect.by("agee")
    for bins in (0, "three"):
        with pytest.raises(ArrowError, match="Expected bins to be a whole number, 1 or more"):
            effect.by("age", bins=bins)  # type: ignore[arg-type]


def test_clusters_widen_the_interval_where_observations_depend_on_each_other() -> None:
    random = np.random.default_rng(15)
    school = np.repeat(np.arange(40), 25)
    small = random.integers(2, size=40)[school].astype(float)
    score = small + random.normal(size=40)[school] + random.normal(size=1000)
    names = [f"s{place}" for place in range(40)]
    columns = (Column("school", "category", tuple(names)), Column("small", "binary", ("no", "yes")), Column("score"))
    table = Table(np.stack([school.astype(float), small, score], axis=1), columns)
    graph = np.zeros((3, 3), dtype=bool)
    graph[1, 2] = True
    plain, clustered = (
        effect_of(table, sure_of(graph), "small", "score", question=EffectQuestion("linear", cluster=name))
        for name in (None, "school")
    )
    assert np.ptp(clustered.interval) > 2.5 * np.ptp(plain.interval)
    assert "Standard errors by school: 40 clusters." in str(clustered)
    means = pd.DataFrame({"school": school, "small": small, "score": score}).groupby("school").mean()
    error = math.sqrt(sum(means.score[means.small == arm].var() / (means.small == arm).sum() for arm in (0, 1)))
    assert clustered.sets[0].estimate.standard_error == pytest.approx(error, rel=0.05)


def test_columns_that_are_named_are_adjusted_for_whatever_the_graphs_say(medical: Table) -> None:
    empty = sure_of(np.zeros((4, 4), dtype=bool))
    question = EffectQuestion("linear", adjust_for=["income"])
    named = effect_of(medical, empty, "dose", "health", question=question)
    assert [each.adjustment_set for each in named.sets] == [("income",)]
    assert named.interval[0] < 2 < named.interval[1]
    assert named.verdict == "conflict"
    question = EffectQuestion("linear", adjust_for="earlier")
    tiers = Knowledge(tiers=[["income", "noise"], ["dose"], ["health"]])
    earlier = effect_of(medical, empty, "dose", "health", question=question, knowledge=tiers)
    assert earlier.tested_set == ("income", "noise")
    with pytest.raises(ArrowError, match="puts no column before 'dose'"):
        effect_of(medical, empty, "dose", "health", question=question)
    with pytest.raises(ArrowError, match="got the treatment or the outcome"):
        effect_of(medical, empty, "dose", "health", question=EffectQuestion(adjust_for=["dose"]))


def test_a_set_that_leaves_a_back_door_open_is_called_not_identified(medical: Table) -> None:
    question = EffectQuestion("linear", adjust_for=["noise"])
    assert effect_of(medical, sure_of(TRIANGLE), "dose", "health", question=question).probability_not_identified == 1
    question = EffectQuestion("linear", adjust_for=["income", "noise"])
    assert effect_of(medical, sure_of(TRIANGLE), "dose", "health", question=question).probability_not_identified == 0


def test_chosen_columns_are_judged_by_the_graphs_and_compared_with_their_own_sets(medical: Table) -> None:
    question = EffectQuestion("linear", adjust_for=["dose"])  # which lies on the way
    effect = effect_of(medical, sure_of(TRIANGLE), "income", "health", question=question)
    assert effect.probability_not_identified == 1
    assert "Not a valid adjustment set in all graphs." in effect.lines
    assert "In most graphs income affects dose (all) on its way to health or through it: " in str(effect)
    own = effect_of(medical, sure_of(TRIANGLE), "income", "health", question=EffectQuestion("linear"))
    assert f"By the graphs' own adjustment sets: {in_digits(own.median)} (90% interval " in str(effect)
    question = EffectQuestion("linear", adjust_for=["noise"])
    without = effect_of(medical, sure_of(TRIANGLE), "dose", "health", question=question)
    assert "Most graphs adjust for income (all)." in without.lines
    assert "a hidden cause of" not in str(without)
    assert effect.verdict == "effect"  # who chose the columns has answered whether they suffice


def test_every_pair_whose_hidden_cause_alone_spoils_all_sets_is_named(medical: Table) -> None:
    hidden = np.zeros((4, 4), dtype=bool)
    for other in (DOSE, HEALTH):
        hidden[INCOME, other] = hidden[other, INCOME] = True
    effect = effect_of(medical, sure_of(TRIANGLE, hidden), "income", "health")
    assert set(effect.blocking) == {("income", "health"), ("income", "dose")}  # to measure one alone would not do
    assert effect.sentence.count("a hidden cause of ") == 1


def test_an_instrument_that_most_graphs_allow_is_mentioned_where_a_hidden_cause_spoils_the_effect() -> None:
    graph = np.zeros((4, 4), dtype=bool)
    graph[INCOME, DOSE] = graph[DOSE, HEALTH] = True
    hidden = np.zeros((4, 4), dtype=bool)
    hidden[DOSE, HEALTH] = hidden[HEALTH, DOSE] = True
    assert instruments(graph[None], DOSE, HEALTH, hidden[None]).tolist() == [float(i == INCOME) for i in range(4)]
    direct = graph.copy()
    direct[INCOME, HEALTH] = True
    assert not instruments(direct[None], DOSE, HEALTH, hidden[None]).any()
    shared = hidden.copy()
    shared[INCOME, HEALTH] = shared[HEALTH, INCOME] = True
    assert not instruments(graph[None], DOSE, HEALTH, shared[None]).any()


def test_a_rare_treatment_has_probabilities_that_add_up_to_those_who_got_it() -> None:
    random = np.random.default_rng(21)
    cause = random.normal(size=(6000, 3))
    chance = 1 / (1 + np.exp(6 - 2 * cause[:, 0] - np.square(cause[:, 1])))
    treated = (random.random(6000) < chance).astype(float)
    model = flexible(treated, cause[:, 0] + random.normal(size=6000), cause, True, 0)
    assert model is not None
    assert model.chance is not None
    assert model.chance.sum() == pytest.approx(treated.sum(), rel=0.1)


def test_a_few_observations_never_carry_an_average() -> None:
    treated = np.repeat([1.0, 0.0], 500)
    even = Flexible(treated, treated, np.zeros((1000, 1)), np.zeros(1000, dtype=int), None, np.full(1000, 0.5))
    assert [even.supports(each) for each in ("ATE", "ATT")] == [True, True]
    few = np.full(1000, 0.1)
    few[-2:] = 0.99  # two untreated observations stand for all of the treated
    uneven = replace(even, chance=few)
    assert [uneven.supports(each) for each in ("ATE", "ATT")] == [False, False]
    assert best_estimand([even, uneven]) == "overlap"


def test_a_misspelled_randomized_column_and_strata_without_a_trial_are_refused(
    table: pd.DataFrame, small_model_folder: Path
) -> None:
    arrow = Arrow(small_model_folder).fit(table)
    first, second = arrow.answer_.names[:2]
    with pytest.raises(ArrowError, match="no variable"):
        arrow.effect(first, second, randomized=f"{first}x", n_graphs=10)
    with pytest.raises(ArrowError, match="say too that"):
        arrow.effect(first, second, strata=[arrow.answer_.names[2]], n_graphs=10)
    with pytest.raises(ArrowError, match="no use in splitting"):
        arrow.effect(first, second, instrument=arrow.answer_.names[2], split=True, n_graphs=10)


def test_unknown_columns_of_a_design_are_refused_with_the_nearest_name(medical: Table) -> None:
    for question in (EffectQuestion(cluster="doze"), EffectQuestion(randomized=True, randomized_rows="doze")):
        with pytest.raises(ArrowError, match="no variable 'doze': did you mean 'dose'"):
            effect_of(medical, sure_of(TRIANGLE), "dose", "health", question=question)


def test_times_until_an_event_are_warned_about() -> None:
    random = np.random.default_rng(16)
    drug, died = random.integers(2, size=(2, 200)).astype(float)
    columns = (Column("drug", "binary", ("no", "yes")), Column("survival_days"), Column("died", "binary", ("0", "1")))
    values = np.stack([drug, random.exponential(size=200), died], axis=1)
    graph = np.zeros((3, 3), dtype=bool)
    graph[0, 1] = True
    effect = effect_of(Table(values, columns), sure_of(graph), "drug", "survival_days")
    assert any("time until an event (died)" in note for note in effect.notes)
    censored = np.stack([drug, np.minimum(values[:, 1], 1.0), (values[:, 1] < 1.0).astype(float)], axis=1)
    arrested = (columns[0], columns[1], Column("arrest", "binary", ("no", "yes")))
    effect = effect_of(Table(censored, arrested), sure_of(graph), "drug", "survival_days")
    assert any("time until an event (arrest)" in note for note in effect.notes)
    unrelated = np.stack([drug, censored[:, 1], died], axis=1)
    assert not effect_of(Table(unrelated, arrested), sure_of(graph), "drug", "survival_days").notes
    renamed = (columns[0], Column("weight"), columns[2])
    assert not effect_of(Table(values, renamed), sure_of(graph), "drug", "weight").notes


# Trials and instruments


def trial_table(rows: int = 400) -> tuple[Table, pd.DataFrame]:
    """A trial of a drug whose effect is 1, with an earlier column that explains much and a site."""
    random = np.random.default_rng(17)
    before = random.normal(size=rows)
    site = random.integers(4, size=rows).astype(float)
    drug = random.integers(2, size=rows).astype(float)
    after = drug + 2 * before + site + random.normal(size=rows)
    columns = (
        Column("before"),
        Column("site", "category", ("a", "b", "c", "d")),
        Column("drug", "binary", ("no", "yes")),
        Column("after"),
    )
    values = np.stack([before, site, drug, after], axis=1)
    return Table(values, columns), pd.DataFrame(values, columns=["before", "site", "drug", "after"])


EMPTY = np.zeros((4, 4), dtype=bool)


def test_a_trial_is_its_difference_in_means_whatever_the_graph_says() -> None:
    table, frame = trial_table()
    everything = np.ones((4, 4), dtype=bool) ^ np.eye(4, dtype=bool)
    arms = frame.groupby("drug")["after"]
    for graph, hidden in ((EMPTY, None), (EMPTY, everything)):
        question = EffectQuestion(randomized=True)
        effect = effect_of(table, sure_of(graph, hidden), "drug", "after", question=question)
        assert effect.median == pytest.approx(arms.mean()[1] - arms.mean()[0])
        error = math.sqrt((arms.var() / arms.count()).sum())  # HC2 of a difference is that of Welch
        assert effect.sets[0].estimate.standard_error == pytest.approx(error)
        assert effect.verdict == "effect"
        assert effect.design == "trial"
        assert "hidden cause" not in str(effect)
        assert math.isnan(effect.e_value)
    declared = effect_of(table, sure_of(EMPTY), "drug", "after", knowledge=Knowledge(randomized=["drug"]))
    assert declared.median == effect.median


def test_earlier_columns_and_strata_make_a_trial_more_precise() -> None:
    table, frame = trial_table()
    plain, adjusted = (
        effect_of(table, sure_of(EMPTY), "drug", "after", question=EffectQuestion(randomized=True, **options))
        for options in ({}, {"adjust_for": ["before"], "strata": ["site"]})
    )
    assert np.ptp(adjusted.interval) < 0.5 * np.ptp(plain.interval)
    assert adjusted.interval[0] < 1 < adjusted.interval[1]
    # Lin's regression: the earlier columns, centered, also times the treatment.
    x = pd.get_dummies(frame["site"], drop_first=True).to_numpy(float)
    x = np.column_stack([frame["before"], x])
    x = x - x.mean(axis=0)
    design = np.column_stack([frame["drug"], np.ones(len(x)), x, x * frame["drug"].to_numpy()[:, None]])
    expected = np.linalg.lstsq(design, frame["after"], rcond=None)[0][0]
    assert adjusted.median == pytest.approx(expected)
    assert adjusted.by("site")["effect"].mean() == pytest.approx(1, abs=0.5)


def test_only_the_rows_that_are_marked_count_and_lost_outcomes_are_mentioned() -> None:
    table, frame = trial_table()
    values = np.column_stack([table.values, np.arange(400) < 300])
    table = Table(values, (*table.columns, Column("trial", "binary", ("no", "yes"))))
    question = EffectQuestion(randomized=True, randomized_rows="trial")
    distribution = sure_of(np.zeros((5, 5), dtype=bool))
    effect = effect_of(table, distribution, "drug", "after", question=question)
    arms = frame[:300].groupby("drug")["after"].mean()
    assert effect.median == pytest.approx(arms[1] - arms[0])
    assert "From the 300 rows that trial marks." in str(effect)
    values = values.copy()
    values[:60, 3] = np.where(values[:60, 2] == 1, np.nan, values[:60, 3])
    effect = effect_of(Table(values, table.columns), distribution, "drug", "after", question=question)
    assert "of the outcomes are missing, <1% with no and" in str(effect)


def instrument_table(strength: float) -> Table:
    random = np.random.default_rng(18)
    letter, hidden, noise = random.integers(2, size=800), random.normal(size=800), random.normal(size=800)
    dose = strength * letter + hidden + noise
    health = 2 * dose - 3 * hidden + random.normal(size=800)
    columns = (Column("letter", "binary", ("no", "yes")), Column("dose"), Column("health"))
    return Table(np.stack([letter.astype(float), dose, health], axis=1), columns)


def test_an_instrument_finds_what_a_hidden_cause_spoils() -> None:
    question = EffectQuestion(instrument="letter")
    table = instrument_table(2.0)
    distribution = sure_of(EMPTY[:3, :3])
    plain = effect_of(table, distribution, "dose", "health")
    effect = effect_of(table, distribution, "dose", "health", question=question)
    assert not plain.interval[0] < 2 < plain.interval[1]
    assert effect.interval[0] < 2 < effect.interval[1]
    letter, dose, health = table.values.T
    wald = np.cov(letter, health)[0, 1] / np.cov(letter, dose)[0, 1]
    assert effect.median == pytest.approx(wald)
    assert "not weak" in str(effect)
    assert "local effect" in effect.estimand
    weak = effect_of(instrument_table(0.02), distribution, "dose", "health", question=question)
    assert weak.interval == (-math.inf, math.inf)
    assert "without bounds" in str(weak)
    assert weak.to_dict()["low"] is None
    for strength in (0.1, 0.15, 0.2, 0.25, 0.3):
        found = effect_of(instrument_table(strength), distribution, "dose", "health", question=question)
        assert (found.p_value < 0.1) == (found.interval[0] > 0 or found.interval[1] < 0)


def test_both_halves_give_one_effect(medical: Table) -> None:
    answer = answer_for(medical, sure_of(TRIANGLE))
    first, second = halves(medical, None, np.random.default_rng(0))
    assert not (first & second).any()
    assert abs(int(first.sum()) - int(second.sum())) <= 1
    parts = [(answer, medical.only(rows)) for rows in (first, second)]
    question = EffectQuestion("linear")
    effect = split_effect(parts, question, 200, np.random.default_rng(0))
    whole = effect_of(medical, sure_of(TRIANGLE), "dose", "health")
    assert effect.median == pytest.approx(whole.median, abs=0.05)
    assert np.ptp(effect.interval) == pytest.approx(np.ptp(whole.interval), rel=0.1)
    assert effect.interval[0] <= effect.median <= effect.interval[1]
    assert effect.p_value < 0.001
    assert "from one half of the rows" in str(effect)
    flexible = split_effect(parts, EffectQuestion(), 200, np.random.default_rng(0))
    assert "Straight lines" not in str(flexible)
    mixed = replace(flexible, sets=tuple(replace(each, straight=True) for each in flexible.sets))
    assert str(mixed).count("Straight lines for 1 adjustment set, those of ") == 1
    assert effect.plot().get_legend() is not None


# Sensitivity


def test_robustness_values_are_those_of_the_darfur_example() -> None:
    """Cinelli and Hazlett (2020), section 5: t = 4.18 with 783 degrees of freedom, RV 13.9%, at the 5% level 7.6%."""
    squared = 4.18**2 / (4.18**2 + 783)
    assert robustness_value(squared**0.5, 783) == pytest.approx(0.139, abs=5e-4)
    assert robustness_value(-(squared**0.5), 783, 0.95) == pytest.approx(0.076, abs=5e-4)
    assert robustness_value(0.001, 783, 0.95) == 0
    assert robustness_value(1.0, 783) == 1


def test_a_hidden_cause_of_the_robustness_value_brings_the_effect_to_zero() -> None:
    """One with a partial R² of R with both takes away √(R · R / (1 − R)) of Cohen's f: all there is."""
    value = robustness_value(0.3, 100)
    strength = 0.3 / (1 - 0.3**2) ** 0.5  # Cohen's f of treatment and outcome
    assert value / (1 - value) ** 0.5 == pytest.approx(strength)


def test_e_values_are_those_of_the_published_example() -> None:
    """VanderWeele and Ding (2017): a risk ratio of 3.9 has an E-value of 7.26, its lower limit 1.8 one of 3.0."""
    assert e_value(3.9) == pytest.approx(7.26, abs=0.01)
    assert e_value(1.8) == pytest.approx(3.0, abs=0.01)
    assert e_value(1 / 3.9) == pytest.approx(e_value(3.9))
    assert e_value(1.0) == 1


def test_a_yes_or_no_treatment_and_outcome_have_the_e_value_of_their_risks() -> None:
    treated = np.repeat([0.0, 1.0], 500)
    outcome = np.concatenate([np.arange(500) < 100, np.arange(500) < 300]).astype(float)  # risks 0.2 and 0.6
    columns = (Column("drug", "binary", ("no", "yes")), Column("death", "binary", ("no", "yes")))
    table = Table(np.stack([treated, outcome], axis=1), columns)
    effect = effect_of(table, sure_of(np.array([[False, True], [False, False]])), "drug", "death")
    assert effect.mean == pytest.approx(0.4)
    assert effect.e_value == pytest.approx(e_value(3.0))
    assert "when drug goes from no to yes" in str(effect)
    assert "(E-value)" in str(effect)


# Bad input


@pytest.mark.parametrize(
    ("treatment", "outcome", "options", "sentence"),
    [
        ("dose", "dose", {}, "two different variables"),
        ("doze", "health", {}, "did you mean 'dose'"),
        ("dose", "helth", {}, "did you mean 'health'"),
        ("dose", "health", {"between": (1, 1)}, "two different values"),
        ("dose", "health", {"between": (1, "much")}, "Expected a number"),
        ("dose", "health", {"between": 3}, "two values"),
        ("dose", "health", {"knowledge": Knowledge(roots=["health"])}, "'health' is a root"),
        ("dose", "health", {"knowledge": Knowledge(leaves=["dose"])}, "'dose' is a leaf"),
        ("dose", "health", {"knowledge": Knowledge(tiers=[["health"], ["dose"]])}, "rules out every path"),
    ],
)
def test_bad_questions_get_one_sentence(
    medical: Table, treatment: str, outcome: str, options: dict[str, object], sentence: str
) -> None:
    known = options.get("knowledge")
    if isinstance(known, Knowledge) and known.tiers:
        options = {**options, "knowledge": Knowledge(tiers=[["health"], ["dose", "income", "noise"]])}
    with pytest.raises(ArrowError, match=sentence):
        effect_of(medical, sure_of(TRIANGLE), treatment, outcome, **options)


def test_a_constant_has_no_effect_to_estimate(medical: Table) -> None:
    values = medical.values.copy()
    values[:, DOSE] = 4
    with pytest.raises(ArrowError, match="'dose' is constant"):
        effect_of(Table(values, medical.columns), sure_of(TRIANGLE), "dose", "health")


def test_an_unknown_estimator_or_kind_of_set_is_refused() -> None:
    with pytest.raises(ArrowError, match="Expected estimator to be one of flexible, linear, curved, got 'tree'"):
        EffectQuestion("tree")
    with pytest.raises(ArrowError, match="Expected adjustment to be one of optimal, parents"):
        EffectQuestion("linear", "all")


# The estimator, pictures and the command line


def test_arrow_estimates_effects_of_the_table_it_was_fitted_to(table: pd.DataFrame, small_model_folder: Path) -> None:
    arrow = Arrow(small_model_folder).fit(table)
    known = arrow.refine(knowledge={"required": ["dose -> outcome"]})
    effect = known.effect("dose", "outcome", n_graphs=200)
    assert effect.probability_of_none == 0
    assert effect.graphs == 200
    shuffled = Arrow(small_model_folder, knowledge={"required": ["dose -> outcome"]}).fit(table[table.columns[::-1]])
    assert shuffled.effect("dose", "outcome", n_graphs=200).mean == pytest.approx(effect.mean, rel=1e-6)
    assert len(known.effects("outcome", n_graphs=50).effects) == 5


def test_pictures_show_names_and_every_cause(medical: Table) -> None:
    effect = effect_of(medical, sure_of(TRIANGLE), "dose", "health")
    assert effect.plot().get_xlabel() == "change of health per unit of dose"
    assert [text.get_text() for text in effect.plot().get_legend().get_texts()] == ["income", "90% interval"]
    answer = answer_for(medical, sure_of(TRIANGLE))
    ax = effects_of(answer, medical, "health", 50).plot()
    assert [label.get_text() for label in ax.get_yticklabels()] == ["dose (all)", "income (all)"]


def test_no_distribution_of_an_effect_is_too_odd_for_a_picture() -> None:
    for estimate in (SetEstimate(0.0, 1e-300, 5.0, 0.0), SetEstimate(1e200, 1e190, 1.0, 0.5)):
        effect = Effect("$a_", "$b^", "per unit of $a_", (SetEffect(("$c",), 0.5, estimate),), 10, 0.5)
        effect.plot().figure.canvas.draw()


@pytest.fixture
def medical_file(medical: Table, tmp_path: Path) -> Path:
    path = tmp_path / "medical.csv"
    pd.DataFrame(medical.values, columns=list(medical.names)).to_csv(path, index=False)
    return path


def test_the_command_prints_the_sentence_and_the_sets(run: Run, medical_file: Path, small_model_folder: Path) -> None:
    options = ("--model", small_model_folder, "--require", "dose -> health", "--graphs", 50)
    status, out, _ = run("effect", medical_file, "--treatment", "dose", "--outcome", "health", *options)
    assert status == 0
    assert out.startswith("health changes by ")
    assert "Test of no dependence after adjustment" in out
    arguments = ("--treatment", "dose", "--outcome", "health", "--from", 1, "--to", 2, "--json")
    status, out, _ = run("effect", medical_file, *arguments, *options)
    content = json.loads(out)
    assert content["change"] == "when dose goes from 1 to 2"
    assert content["graphs"] == 50
    status, out, _ = run("effect", medical_file, "--outcome", "health", *options)
    assert "Causes of health in 50 graphs" in out


def test_the_command_draws_a_picture_and_never_replaces_one_unasked(
    run: Run, medical_file: Path, small_model_folder: Path, tmp_path: Path
) -> None:
    arguments = ("effect", medical_file, "--outcome", "health", "--graphs", 20, "--model", small_model_folder)
    assert run(*arguments, "--plot", tmp_path / "made" / "effects.png")[0] == 0
    assert (tmp_path / "made" / "effects.png").read_bytes().startswith(b"\x89PNG")
    status, _, err = run(*arguments, "--plot", tmp_path / "made" / "effects.png")
    assert status == 2
    assert "--overwrite" in err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--treatment", "dose", "--outcome", "dose"], "two different variables"),
        (["--treatment", "dose", "--outcome", "helth"], "did you mean 'health'?"),
        (["--treatment", "dose", "--outcome", "health", "--from", "1"], "Give both --from and --to"),
        (["--outcome", "health", "--from", "1", "--to", "2"], "name it with --treatment"),
        (["--treatment", "dose", "--outcome", "health", "--from", "1", "--to", "x"], "Expected a number"),
        (["--treatment", "dose", "--outcome", "health", "--plot", "effect.doc"], "ends in .png, .svg, .pdf"),
        (["--treatment", "dose", "--outcome", "health", "--require", "health -> dose"], "rules out every path"),
    ],
)
def test_bad_questions_on_the_command_line_get_one_sentence(
    arguments: list[str], sentence: str, run: Run, medical_file: Path, small_model_folder: Path
) -> None:
    status, out, err = run("effect", medical_file, *arguments, "--model", small_model_folder)
    assert (status, out) == (2, "")
    assert sentence in err
    assert len(err.strip().splitlines()) == 1


def test_the_share_of_a_level_is_asked_for_on_the_command_line(
    run: Run, any_table_model_folder: Path, tmp_path: Path
) -> None:
    random = np.random.default_rng(13)
    dose = random.normal(size=200)
    stage = np.array(["mild", "fair", "grave"])[(dose + random.normal(size=200) > 0) + random.integers(2, size=200)]
    file = tmp_path / "stages.csv"
    pd.DataFrame({"dose": dose, "stage": stage, "age": random.normal(size=200)}).to_csv(file, index=False)
    asked = ("effect", file, "--model", any_table_model_folder, "--outcome", "stage", "--graphs", 50)
    edge = ("--require", "dose -> stage", "--no-hidden-cause", "dose <-> stage")
    status, out, _ = run(*asked, *edge, "--treatment", "dose", "--level", "grave")
    assert status == 0
    assert out.startswith("the share of stage = grave changes by 0.")
    status, out, _ = run(*asked, *edge, "--level", "grave", "--json")
    assert status == 0
    assert {each["level"] for each in json.loads(out)["effects"]} == {"grave"}
    status, _, err = run(*asked, *edge, "--treatment", "dose")
    assert status == 2
    assert "name it with --level" in err


def test_the_command_marks_what_is_not_identified_and_advises_in_its_own_words(
    run: Run, any_table_model_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(17)
    dose = random.normal(size=200)
    frame = pd.DataFrame({"dose": dose, "health": dose + random.normal(size=200), "age": random.normal(size=200)})
    frame["site"] = random.choice(["a", "b", "c"], size=200)
    frame.to_csv(tmp_path / "table.csv", index=False)
    monkeypatch.setattr(
        "causal_arrow.discovery.answer.Answer.sample_hidden",
        lambda answer, graphs, random: (
            np.repeat([np.array([[j + k == 1 for j in range(4)] for k in range(4)])], len(graphs), axis=0)
            & (np.arange(len(graphs)) % 10 > 0)[:, None, None]
        ),
    )
    asked = ("effect", tmp_path / "table.csv", "--model", any_table_model_folder, "--outcome", "health")
    asked = (*asked, "--graphs", 100, "--require", "dose -> health")
    _, out, _ = run(*asked)
    assert out.splitlines()[2].split() == [
        "cause",
        "probability",
        "not",
        "identified",
        "effect",
        "low",
        "high",
        "standardized",
    ]
    (row,) = [line for line in out.splitlines() if line.startswith("dose ")]
    assert row.split()[1:3] == ["1.000", "0.900"]
    assert all(cell.startswith("(") for cell in row.split()[3:])
    assert "which the numbers leave aside ('dose')" in " ".join(out.split())
    assert "No single effect of 'site', a category: name two of its levels with --treatment, --from and --to." in (
        " ".join(out.split())
    )
    assert "between=" not in out
    _, out, _ = run(*asked, "--treatment", "dose")
    assert out.startswith("The effect of dose on health is not identified in 90% of graphs")
    _, out, _ = run(*asked, "--treatment", "dose", "--json")
    content = json.loads(out)
    assert content["verdict"] == "not identified"
    assert content["robustness_value"] > 0


# Experiments


def with_trial(to: str = "values") -> Table:
    """700 observations in which a hidden cause decides on the dose, 300 in which dose was set; its effect is 2.

    The dose brings relief, and relief brings health.
    """
    random = np.random.default_rng(3)
    is_set = np.arange(1000) >= 700
    cause = random.normal(size=1000)
    dose = np.where(is_set, random.normal(size=1000) if to == "values" else 1.5, cause + 0.5 * random.normal(size=1000))
    relief = dose + 0.5 * random.normal(size=1000)
    health = 2 * relief - 3 * cause + random.normal(size=1000)
    values = np.stack([dose, relief, health], axis=1)
    intervened = np.zeros((1000, 3), dtype=bool)
    intervened[is_set, 0] = True
    table = Table.of_numbers(values, ["dose", "relief", "health"])
    return replace(table, intervened=intervened)


PATH = np.zeros((3, 3), dtype=bool)
PATH[0, 1] = PATH[1, 2] = True
HIDDEN = np.zeros((3, 3), dtype=bool)
HIDDEN[0, 2] = HIDDEN[2, 0] = True


@pytest.mark.parametrize("hidden", [None, HIDDEN], ids=["not suspected", "known"])
def test_the_effect_of_what_was_set_comes_from_the_observations_in_which_it_was(hidden: np.ndarray | None) -> None:
    effect = effect_of(with_trial(), sure_of(PATH, hidden), "dose", "health")
    assert effect.observations == 300
    assert effect.interval[0] < 2 < effect.interval[1]
    assert effect.probability_not_identified == 0
    assert "From the 300 observations in which dose was set, and nothing else." in str(effect)
    assert "hidden cause" not in str(effect)  # none could explain it away


def test_without_its_labels_the_same_table_misleads() -> None:
    effect = effect_of(replace(with_trial(), intervened=None), sure_of(PATH), "dose", "health")
    assert effect.interval[1] < 1.5
    assert effect.observations == 1000


def test_a_variable_that_was_always_set_to_one_value_is_compared_with_the_other_observations() -> None:
    effect = effect_of(with_trial(to="one value"), sure_of(PATH), "dose", "health")
    assert effect.observations == 1000
    assert not any("set" in note for note in effect.notes)


def test_observations_in_which_something_on_the_way_was_set_are_left_out() -> None:
    random = np.random.default_rng(4)
    is_set = np.arange(900) >= 600
    dose = random.normal(size=900)
    relief = np.where(is_set, random.normal(size=900), dose + 0.5 * random.normal(size=900))
    health = 2 * relief + random.normal(size=900)
    intervened = np.zeros((900, 3), dtype=bool)
    intervened[is_set, 1] = True
    table = Table.of_numbers(np.stack([dose, relief, health], axis=1), ["dose", "relief", "health"])
    effect = effect_of(replace(table, intervened=intervened), sure_of(PATH), "dose", "health")
    assert effect.observations == 600
    assert effect.interval[0] < 2 < effect.interval[1]
    assert "Without the 300 observations in which other variables were set." in str(effect)
    everywhere = replace(table, intervened=np.repeat([[False, True, False]], 900, axis=0))
    assert "comes out too small" in str(effect_of(everywhere, sure_of(PATH), "dose", "health"))


def test_zero_is_brought_into_an_interval_only_where_it_is_not_in_it_yet(medical: Table) -> None:
    sure = effect_of(medical, suspecting(0.01, 0.999), "dose", "health", k=1000)
    assert "to bring zero into the interval" in sure.sensitivity_sentences()[0]
    order = GraphDistribution(sure_of(TRIANGLE).skeleton_logits, np.array([0.0, -1.5, -30.0, 0.0]))
    unsure = effect_of(medical, order, "dose", "health", k=1000)
    assert unsure.interval[0] < 0 < unsure.interval[1] or "zero into the interval" in unsure.sensitivity_sentences()[0]


@pytest.mark.parametrize("together", [1, 300])
def test_the_effect_of_what_was_set_in_every_observation_is_that_of_a_trial(together: int) -> None:
    random = np.random.default_rng(5)
    diet, dose, cause = random.normal(size=(3, 300))
    health = 2 * dose + diet - cause + random.normal(size=300)
    table = Table.of_numbers(np.stack([diet, dose, cause, health], axis=1), ["diet", "dose", "weight", "health"])
    intervened = np.zeros((300, 4), dtype=bool)
    intervened[:, 1] = intervened[:together, 0] = True  # the diet in some of them too
    graph = np.zeros((4, 4), dtype=bool)
    graph[:3, 3] = graph[0, 1] = True  # without the experiment, the diet would decide on the dose
    shared = np.zeros((4, 4), dtype=bool)
    shared[1, 3] = shared[3, 1] = True
    experiments = {"dose": 300, "diet": together}
    answer = answer_for(table, sure_of(graph, shared), observations=300, experiments=experiments)
    table = replace(table, intervened=intervened)
    effect = estimate_effect(
        answer,
        table,
        "dose",
        "health",
        question=EffectQuestion("linear"),
        count=50,
        random=np.random.default_rng(0),
    )
    assert effect.probability_not_identified == 0
    assert effect.interval[0] < 2 < effect.interval[1]
    assert effect.sensitivity_sentences() == []
    but = " but 'diet', set in every observation" if together == 300 else ""
    assert effect.notes == (
        f"From the {effect.observations} observations in which dose was set, and nothing else{but}.",
    )
    assert effect.observations == (300 if together == 300 else 299)


def test_a_treatment_that_was_set_in_all_observations_has_no_hidden_cause_even_where_others_were_set_too() -> None:
    table = with_trial()
    table = table.only(np.arange(1000) >= 700)
    assert table.intervened is not None
    intervened = table.intervened.copy()
    intervened[10:, 1] = True
    effect = effect_of(replace(table, intervened=intervened), sure_of(PATH, HIDDEN), "dose", "health")
    assert effect.probability_not_identified == 0
    assert "comes out too small" in str(effect)


# Copies


@pytest.fixture(scope="module")
def mediated() -> pd.DataFrame:
    """w → x → m → y and w → y, with uniform noise. A unit of x raises y by 1."""
    random = np.random.default_rng(0)
    w, x, m, y = random.uniform(-1.7, 1.7, (4, 500))
    x += 0.8 * w
    m = x + 0.7 * m
    return pd.DataFrame({"w": w, "x": x, "m": m, "y": y + m + 0.5 * w})


@pytest.mark.parametrize("copied", [["w"], ["x"], ["m"], ["y"], ["x", "y"]])
@pytest.mark.filterwarnings("ignore:.*copies of each other")
def test_a_copy_in_another_unit_changes_no_effect(mediated: pd.DataFrame, copied: list[str]) -> None:
    plain = Arrow().fit(mediated).effect("x", "y", n_graphs=300)
    copies = {f"{name}_in_cents": -100 * mediated[name] for name in copied}
    found = Arrow().fit(mediated.assign(**copies)).effect("x", "y", n_graphs=300)
    assert found.median == pytest.approx(plain.median, abs=0.01)
    assert found.interval == pytest.approx(plain.interval, abs=0.02)
    assert found.probability_of_none == pytest.approx(plain.probability_of_none, abs=0.02)


@pytest.mark.filterwarnings("ignore:.*copies of each other")
def test_a_copy_of_the_treatment_has_the_same_effect_and_the_same_hidden_causes(mediated: pd.DataFrame) -> None:
    hidden = mediated[["x", "y"]]  # whose common cause is left out
    plain = Arrow().fit(hidden).effect("x", "y", n_graphs=1000)
    arrow = Arrow().fit(hidden.assign(x2=2 * hidden["x"]))
    for name, unit in (("x", 1), ("x2", 2)):
        found = arrow.effect(name, "y", n_graphs=1000)
        assert found.probability_of_none == pytest.approx(plain.probability_of_none, abs=0.05)
        assert found.probability_not_identified == pytest.approx(plain.probability_not_identified, abs=0.05)
        assert unit * found.median == pytest.approx(plain.median, rel=0.1)
