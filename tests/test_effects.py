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

from causal_arrow.discovery.answer import Answer
from causal_arrow.discovery.effects.adjustment import closes_back_doors, count_adjustments
from causal_arrow.discovery.effects.effect import Effect, Effects, SetEffect
from causal_arrow.discovery.effects.estimation import EffectQuestion, estimate_effect, estimate_effects
from causal_arrow.discovery.effects.forest import forest_estimate
from causal_arrow.discovery.effects.linear import Design, SetEstimate, curved, linear_estimates
from causal_arrow.discovery.effects.mixture import mixture_of
from causal_arrow.discovery.effects.sensitivity import e_value, robustness_value
from causal_arrow.discovery.estimator import Arrow
from causal_arrow.errors import ArrowError
from causal_arrow.graphs.dag import transitive_closure
from causal_arrow.graphs.graph_distribution import GraphDistribution
from causal_arrow.graphs.knowledge import Knowledge
from causal_arrow.tables.reading import read_table
from causal_arrow.tables.table import Column, Table
from causal_arrow.text import in_percent

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
    graphs = answer.sample(k, np.random.default_rng(0)).graphs
    random = np.random.default_rng(0)
    return estimate_effect(answer, table, graphs, treatment, outcome, random=random, **options)


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
        sandwich = bread @ (x.T * residuals**2) @ x @ bread * 80 / (80 - x.shape[1])
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
    estimate = linear_estimates(curved(design, 0, 1, [True] * 4), 0, 1, [(2, 3)])[(2, 3)]
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
    mixture = mixture_of([0.5, 0.3], [1.0, -2.0], [0.3, 1.0], [40.0, 10.0])
    part = random.choice(3, p=[0.5, 0.3, 0.2], size=400_000)
    draws = np.select(
        [part == 0, part == 1],
        [1 + 0.3 * random.standard_t(40, size=400_000), -2 + random.standard_t(10, size=400_000)],
        0.0,
    )
    for level in (0.05, 0.25, 0.6, 0.95):
        assert mixture.quantile(level) == pytest.approx(np.quantile(draws, level), abs=0.02)
    assert mixture.mean == pytest.approx(draws.mean(), abs=0.01)


def test_a_quantile_in_the_point_at_zero_is_zero_itself() -> None:
    mixture = mixture_of([0.04], [1.0], [0.1], [50.0])
    assert mixture.interval(0.9) == (0.0, 0.0)
    assert mixture_of([], [], [], []).interval(0.9) == (0.0, 0.0)


def test_ninety_percent_of_the_distribution_lie_in_the_interval() -> None:
    random = np.random.default_rng(6)
    weights = random.dirichlet(np.ones(30))
    mixture = mixture_of(list(weights), list(random.normal(size=30)), [0.1] * 30, [20.0] * 30)
    low, high = mixture.interval(0.9)
    assert float(mixture.below(high) - mixture.below(low)) == pytest.approx(0.9, abs=1e-9)


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
    with pytest.raises(ArrowError, match="not identified"):
        effect_of(medical, sure_of(TRIANGLE, hidden), "dose", "health")
    elsewhere = np.zeros((4, 4), dtype=bool)
    elsewhere[INCOME, DOSE] = elsewhere[DOSE, INCOME] = True  # which adjusting for income closes
    effect = effect_of(medical, sure_of(TRIANGLE, elsewhere), "dose", "health")
    assert effect.probability_not_identified == 0
    assert effect.sets[0].adjustment_set == ("income",)


def suspecting(chance: float, edge: float = 1.0) -> GraphDistribution:
    """Sure of the triangle but for its edge from dose to health, and not of a hidden cause of these two."""
    logits = sure_of(TRIANGLE).skeleton_logits.copy()
    if edge < 1:
        logits[DOSE, HEALTH] = logits[HEALTH, DOSE] = math.log(edge / (1 - edge))
    hidden = np.full((4, 4), -SURE)
    hidden[DOSE, HEALTH] = hidden[HEALTH, DOSE] = math.log(chance / (1 - chance))
    return GraphDistribution(logits, sure_of(TRIANGLE).order_scores, hidden)


@pytest.mark.parametrize(
    ("chance", "edge", "verdict"),
    [
        (0.9, 1.0, "not identified"),
        (0.6, 0.9, "not identified"),
        (0.3, 1.0, "effect"),
        (0.9, 0.3, "no effect"),
    ],
)
def test_the_sentence_opens_with_what_most_graphs_say(medical: Table, chance: float, edge: float, verdict: str) -> None:
    effect = effect_of(medical, suspecting(chance, edge), "dose", "health", k=2000)
    lost, none = effect.probability_not_identified, effect.probability_of_none
    assert effect.verdict == verdict
    assert effect.to_dict()["verdict"] == verdict
    assert lost == pytest.approx(chance * edge, abs=0.05)
    assert bool(effect.sensitivity_sentences()) == (verdict == "effect")
    low, high = effect.interval
    if verdict == "not identified":
        assert effect.sentence.startswith(
            f"The effect of dose on health is not identified in {lost:.0%} of graphs: a hidden common cause of both "
            "cannot be ruled out, and nothing in the table adjusts for it. "
            f"In the other {1 - lost:.0%}: health changes by {effect.median:.2f} (90% interval "
        )
        of_these = f"no effect in {in_percent(none / (1 - lost))} of these" if none else "no graph without an effect"
        assert f"{of_these}; 1 adjustment set, {{income}}." in effect.sentence
        assert "would have to explain" not in str(effect)
        assert "not identified in" in effect.plot().get_xlabel()
    elif verdict == "no effect":
        share = 1 - lost - none
        assert effect.sentence.startswith(
            f"dose has no effect on health in {in_percent(none)} of graphs; in {in_percent(share)} health changes by "
        )
    else:
        assert effect.sentence.startswith(
            f"health changes by {effect.median:.2f} (90% interval {low:.2f} to {high:.2f}"
        )
        assert f"; not identified in {lost:.0%} of graphs because of a hidden cause." in effect.sentence


@pytest.mark.parametrize("edge", [0.004, 0.5])
def test_graphs_without_an_effect_are_an_answer_whatever_the_others_say(medical: Table, edge: float) -> None:
    few, many = (effect_of(medical, suspecting(1 - 1e-9, edge), "dose", "health", k=k) for k in (200, 2000))
    for effect in (few, many):
        assert not effect.sets
        assert effect.probability_of_none + effect.probability_not_identified == pytest.approx(1)
        assert (effect.median, *effect.interval) == (0, 0, 0)
    if edge < 0.1:
        assert many.sentence == (
            "dose has no effect on health in >99% of graphs; not identified in <1% of graphs because of a hidden cause."
        )
    answer = answer_for(medical, suspecting(1 - 1e-9, edge))
    graphs = answer.sample(500, np.random.default_rng(0)).graphs
    effects = estimate_effects(answer, medical, graphs, "health", random=np.random.default_rng(0))
    assert "dose" in [each.treatment for each in effects.effects]
    assert effects.not_estimated == ()


def test_causes_that_most_graphs_do_not_identify_are_marked_and_come_last(medical: Table) -> None:
    answer = answer_for(medical, suspecting(0.9))
    graphs = answer.sample(500, np.random.default_rng(0)).graphs
    effects = estimate_effects(answer, medical, graphs, "health", random=np.random.default_rng(0))
    assert [each.treatment for each in effects.effects] == ["income", "noise", "dose"]
    frame = effects.to_frame()
    dose = effects.effects[-1]
    assert abs(dose.standardized) > frame.standardized[:2].abs().max()
    assert frame.not_identified.tolist() == [each.probability_not_identified for each in effects.effects]
    assert f"  dose: not identified in {dose.probability_not_identified:.0%} of graphs; in the others 1.8" in str(
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
    assert len(frame) == 5  # none, nothing, income, noise, both
    assert frame.frequency.is_monotonic_decreasing
    assert effect.mean == pytest.approx((frame.frequency * frame.effect).sum())
    none = frame[[members is None for members in frame.adjustment_set]]
    assert none.frequency.sum() == effect.probability_of_none > 0.1


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


def test_a_log_scale_of_both_ends_is_mentioned_once() -> None:
    values = np.exp(np.random.default_rng(18).normal(size=(100, 2)))
    table = Table.of_numbers(values, ["dose", "health"])
    edge = np.array([[False, True], [False, False]])
    answer = answer_for(table, sure_of(edge), log_columns=("dose", "health"))
    graphs = answer.sample(5, np.random.default_rng(0)).graphs
    effect = estimate_effect(answer, table, graphs, "dose", "health", random=np.random.default_rng(0))
    assert effect.notes == (
        "The network read dose and health on a log scale; the effect is in the units that were given.",
    )


def test_units_of_a_column_change_the_effect_and_nothing_else(medical: Table) -> None:
    values = medical.values * np.array([1e6, 1e-3, 10.0, 1.0]) + 7
    scaled = Table.of_numbers(values, medical.names)
    before, after = (effect_of(table, sure_of(TRIANGLE), "dose", "health") for table in (medical, scaled))
    assert after.mean == pytest.approx(before.mean * 1e4, rel=1e-6)
    assert after.robustness_value == pytest.approx(before.robustness_value, rel=1e-6)


def test_adjusting_for_a_column_on_a_log_scale_does_not_depend_on_its_sign(medical: Table) -> None:
    values = medical.values.copy()
    values[:, INCOME] = np.exp(values[:, INCOME])
    effects = []
    for sign in (1, -1):
        signed = values * np.array([sign, 1, 1, 1])
        table = Table.of_numbers(signed, medical.names)
        answer = answer_for(table, sure_of(TRIANGLE), log_columns=("income",))
        graphs = answer.sample(20, np.random.default_rng(0)).graphs
        effects.append(estimate_effect(answer, table, graphs, "dose", "health", random=np.random.default_rng(0)))
    assert effects[0].sets == effects[1].sets
    assert effects[0].interval[0] < 2 < effects[0].interval[1]


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


@pytest.mark.parametrize("estimator", ["linear", "curved", "forest"])
def test_a_set_is_estimated_from_the_observations_that_are_complete_for_it(medical: Table, estimator: str) -> None:
    question = EffectQuestion(estimator)
    holes = with_holes(medical, NOISE, 60)
    full, sparse = (
        effect_of(table, noise_may_matter(), "dose", "health", k=500, question=question) for table in (medical, holes)
    )
    used = {each.adjustment_set: each.observations for each in sparse.sets}
    assert used == {("income",): 600, ("income", "noise"): 60}
    assert sparse.observations == 600
    assert sparse.notes == ()  # few graphs ask for the sparse variable
    complete = effect_of(
        Table(medical.values[-60:], medical.columns), noise_may_matter(), "dose", "health", k=500, question=question
    )
    of_all, of_few, found = (
        {each.adjustment_set: each.estimate for each in effect.sets} for effect in (full, complete, sparse)
    )
    if estimator == "forest":  # which draws its folds
        assert found["income",].effect == pytest.approx(of_all["income",].effect, abs=0.1)
        return
    assert found["income",] == pytest.approx(of_all["income",], rel=1e-9, nan_ok=True)
    assert found["income", "noise"] == pytest.approx(of_few["income", "noise"], rel=1e-9, nan_ok=True)


def test_a_set_with_too_few_observations_has_no_estimate_and_the_others_have_theirs(medical: Table) -> None:
    effect = effect_of(with_holes(medical, NOISE, 19), noise_may_matter(), "dose", "health", k=500)
    assert [each.adjustment_set for each in effect.sets] == [("income",)]
    assert 0 < effect.probability_not_estimated < 0.2
    share = f"{effect.probability_not_estimated:.0%} of graphs ask for a set that has no estimate"
    assert effect.sentence.endswith(f"{share} (fewer than 20 observations are complete for it).")
    assert effect.to_dict()["why_not_estimated"] == "fewer than 20 observations are complete for it"
    assert effect.interval[0] < 2 < effect.interval[1]


def test_an_effect_is_refused_only_where_no_set_has_an_estimate(medical: Table) -> None:
    with pytest.raises(ArrowError, match=r"of 600 observations with values of both variables, too few.*impute"):
        effect_of(with_holes(medical, INCOME, 19), sure_of(TRIANGLE), "dose", "health")
    with pytest.raises(ArrowError, match="only 19 observations have values of both variables, and 20 are the fewest"):
        effect_of(with_holes(medical, HEALTH, 19), sure_of(TRIANGLE), "dose", "health")
    none = effect_of(with_holes(medical, HEALTH, 3), sure_of(TRIANGLE), "noise", "health")
    assert str(none) == "noise has no effect on health in any of 200 graphs."
    assert none.standardized == 0


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


def test_words_say_effect_interval_and_adjustment(medical: Table) -> None:
    order = GraphDistribution(sure_of(TRIANGLE).skeleton_logits, np.array([0.0, -3.0, -30.0, 0.0]))
    effect = effect_of(medical, order, "dose", "health")
    assert re.match(
        r"health changes by 1\.8\d* \(90% interval [\d.]+ to [\d.]+\) per unit of dose; no graph without an "
        r"effect; 2 adjustment sets, the most frequent {income}\. A hidden cause of both would have to explain ",
        str(effect),
    )
    assert str(effect_of(medical, sure_of(TRIANGLE), "noise", "health")) == (
        "noise has no effect on health in any of 200 graphs."
    )


@pytest.mark.parametrize("chance_of_none", [0.04, 0.4, 0.6, 0.97])
def test_the_number_of_the_sentence_is_in_the_interval_whatever_the_share_of_graphs_without_an_effect(
    chance_of_none: float,
) -> None:
    random = np.random.default_rng(12)
    dose = random.normal(size=20_000)
    medical = Table.of_numbers(
        np.stack([random.normal(size=20_000), dose, 2 * dose + random.normal(size=20_000)], axis=1),
        ["income", "dose", "health"],
    )
    triangle = TRIANGLE[:3, :3]
    logits = sure_of(triangle).skeleton_logits.copy()
    # The edge from dose to health is the only path: it is there or not.
    logits[DOSE, HEALTH] = logits[HEALTH, DOSE] = math.log((1 - chance_of_none) / chance_of_none)
    order = GraphDistribution(logits, sure_of(triangle).order_scores)
    effect = effect_of(medical, order, "dose", "health", k=2000)
    low, high = effect.interval
    assert effect.probability_of_none == pytest.approx(chance_of_none, abs=0.03)
    assert low <= effect.median <= high
    assert effect.median_if_any == pytest.approx(2, abs=0.2)
    if chance_of_none == 0.04:  # the mean is dragged out of the interval by the few graphs without an effect
        assert not low <= effect.mean <= high
        assert f"is {effect.mean:.2f}" in effect.sentence
        assert effect.sentence.startswith(f"health changes by {effect.median:.2f} ")
    if chance_of_none > 0.5:
        assert effect.median == 0
        share = effect.probability_of_none
        assert effect.sentence.startswith(
            f"dose has no effect on health in {share:.0%} of graphs; in the others health changes by "
            f"{effect.median_if_any:.2f} per unit of dose"
        )


def test_the_effect_on_a_level_is_the_change_of_its_share() -> None:
    random = np.random.default_rng(11)
    drug = random.integers(2, size=4000).astype(float)
    shares = np.where(drug[:, None] == 1, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5])
    stage = (random.random(4000)[:, None] > np.cumsum(shares, axis=1)).sum(axis=1).astype(float)
    columns = (Column("drug", "binary", ("no", "yes")), Column("stage", "category", ("mild", "fair", "grave")))
    table = Table(np.stack([drug, stage], axis=1), columns)
    graph = np.array([[False, True], [False, False]])
    for level, expected in (("mild", 0.3), ("fair", 0.0), ("grave", -0.3)):
        for estimator in ("linear", "forest"):
            question = EffectQuestion(estimator, level=level)
            effect = effect_of(table, sure_of(graph), "drug", "stage", question=question)
            assert effect.median == pytest.approx(expected, abs=0.05)
        assert f"the share of stage = {level} changes by" in effect.sentence
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
    assert " per level of size;" in effect.sentence
    assert effect.plot().get_xlabel() == "change of pain in levels per level of size"
    share = effect_of(table, sure_of(graph), "sex", "smoker")  # two levels have one comparison
    assert share.sentence.startswith(f"the share of smoker = yes changes by {share.median:.3f} (90% interval ")
    assert " when sex goes from f to m;" in share.sentence
    assert share.level == "yes"
    backwards = effect_of(table, sure_of(graph), "sex", "smoker", question=EffectQuestion(level="no"))
    assert backwards.median == pytest.approx(-share.median)
    answer = answer_for(table, sure_of(graph))
    graphs = answer.sample(20, np.random.default_rng(0)).graphs
    effects = estimate_effects(answer, table, graphs, "pain", random=np.random.default_rng(0))
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


def test_a_thousand_graphs_of_fifty_variables_take_under_two_seconds() -> None:
    random = np.random.default_rng(10)
    table = Table.of_numbers(random.normal(size=(1000, 50)), [f"v{place}" for place in range(50)])
    logits = random.normal(-1.5, 1.0, size=(50, 50))
    distribution = GraphDistribution((logits + logits.T) / 2, np.linspace(3, -3, 50))
    started = time.perf_counter()
    effect = effect_of(table, distribution, "v5", "v44", k=1000)
    assert time.perf_counter() - started < 2
    assert len(effect.sets) > 900


# All causes of an outcome


def test_causes_are_ranked_by_their_effect_in_standard_deviations(medical: Table) -> None:
    answer = answer_for(medical, sure_of(TRIANGLE))
    graphs = answer.sample(50, np.random.default_rng(0)).graphs
    effects = estimate_effects(answer, medical, graphs, "health", random=np.random.default_rng(0))
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
    graphs = answer.sample(20, np.random.default_rng(0)).graphs
    effects = estimate_effects(answer, ordered, graphs, "health", random=np.random.default_rng(0))
    assert effects.not_estimated == ("income", "noise")  # each is adjusted for by its copy
    assert [each.treatment for each in effects.effects] == ["dose"]


def effects_on_health(table: Table, distribution: GraphDistribution, question: EffectQuestion | None = None) -> Effects:
    answer = answer_for(table, distribution)
    graphs = answer.sample(50, np.random.default_rng(0)).graphs
    return estimate_effects(answer, table, graphs, "health", question=question, random=np.random.default_rng(0))


def test_that_nothing_has_an_effect_is_said_only_where_no_graph_has_a_path(medical: Table) -> None:
    nothing = effects_on_health(medical, sure_of(np.zeros((4, 4), dtype=bool)))
    assert str(nothing) == "Nothing in the table has an effect on health in any of 50 graphs."
    failed = effects_on_health(with_holes(medical, HEALTH, 19), sure_of(TRIANGLE))
    reason = "only 19 observations have values of both variables, and 20 are the fewest"
    assert str(failed) == (
        f"No effect on health could be estimated: for 'income' and 'dose', {reason}; nothing else has an effect on "
        "health in any of 50 graphs."
    )
    assert failed.to_dict()["not_estimated"] == ["income", "dose"]
    assert failed.to_dict()["why_not_estimated"] == {"income": reason, "dose": reason}


def test_a_ranking_says_why_a_cause_has_no_estimate(medical: Table) -> None:
    places = [INCOME, DOSE, NOISE, HEALTH]
    table = with_holes(medical, NOISE, 19)
    table = Table(table.values[:, places], tuple(table.columns[place] for place in places))
    graph = np.zeros((4, 4), dtype=bool)
    graph[0, 1] = graph[:3, 3] = True
    effects = effects_on_health(table, sure_of(graph), EffectQuestion(adjustment="parents"))
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


# Forests


def test_forests_find_the_effect_under_confounding_that_is_not_linear() -> None:
    random = np.random.default_rng(11)
    cause = random.uniform(-2, 2, size=(800, 1))
    bend = np.square(cause[:, 0])
    dose = bend + 0.7 * random.normal(size=800)
    outcome = 1.0 * dose + 3 * bend + random.normal(size=800)
    line = linear_estimates(Design.of([dose[:, None], outcome[:, None], cause]), 0, 1, [(2,)])[(2,)]
    forest = forest_estimate(dose, outcome, cause, False, random)
    assert forest is not None
    assert line.effect > 2.5
    assert abs(forest.effect - 1) < 4 * forest.standard_error + 0.05
    assert forest.standard_error < 0.1


def test_forests_find_the_mean_difference_of_a_yes_or_no_treatment() -> None:
    random = np.random.default_rng(12)
    cause = random.uniform(-2, 2, size=(1000, 2))
    treated = (random.random(1000) < 1 / (1 + np.exp(-1.5 * np.abs(cause[:, 0]) + 1))).astype(float)
    gain = 1 + cause[:, 1]  # 1 on average
    outcome = gain * treated + 2 * np.abs(cause[:, 0]) + 0.5 * random.normal(size=1000)
    plain = outcome[treated == 1].mean() - outcome[treated == 0].mean()
    forest = forest_estimate(treated, outcome, cause, True, random)
    assert forest is not None
    assert plain > 1.4
    assert abs(forest.effect - 1) < 4 * forest.standard_error + 0.05


def test_a_treatment_that_almost_nobody_has_has_no_forest_estimate() -> None:
    treated = np.zeros(100)
    treated[:4] = 1
    assert forest_estimate(treated, np.arange(100.0), np.zeros((100, 0)), True, np.random.default_rng(0)) is None


def test_the_forest_estimator_says_how_many_sets_it_was_grown_for(medical: Table) -> None:
    effect = effect_of(medical, sure_of(TRIANGLE), "dose", "health", question=EffectQuestion("forest"))
    assert effect.mean == pytest.approx(2, abs=0.5)
    assert np.isnan(effect.robustness_value)
    assert effect.estimator == "forest"


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
    with pytest.raises(ArrowError, match="Expected estimator to be one of linear, curved, forest, got 'tree'"):
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
    graphs = answer.sample(50, np.random.default_rng(0)).graphs
    ax = estimate_effects(answer, medical, graphs, "health", random=np.random.default_rng(0)).plot()
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
    assert "frequency" in out
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
    assert "those of few graphs ('dose')" in " ".join(out.split())
    assert "No single effect of 'site', a category: name two of its levels with --treatment, --from and --to." in (
        " ".join(out.split())
    )
    assert "between=" not in out
    _, out, _ = run(*asked, "--treatment", "dose")
    assert out.startswith("The effect of dose on health is not identified in 90% of graphs")
    assert "(not identified)" in out
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
    doubted = effect_of(medical, suspecting(0.01, 0.8), "dose", "health", k=1000)
    assert doubted.verdict == "effect"
    assert doubted.interval[0] == 0  # in the graphs without the edge
    assert "to bring the effect to zero." in doubted.sensitivity_sentences()[0]


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
    graphs = answer.sample(50, np.random.default_rng(0)).graphs
    effect = estimate_effect(
        answer, replace(table, intervened=intervened), graphs, "dose", "health", random=np.random.default_rng(0)
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
