"""Laws of conditional probability tables and noisy gates."""

from __future__ import annotations

import itertools

import pytest
import torch
from scipy import stats

from causal_arrow_lab.synthetic import TaskDistribution, _discrete
from causal_arrow_lab.synthetic._discrete import (
    DISCRETE_MECHANISMS,
    SURE_TASKS,
    DiscreteMechanism,
    DiscreteTasks,
    NoisyGates,
    ProbabilityTables,
    draw_levels,
    never_constant,
)

CHILD = 5  # the last of six variables; 0, 2 and 3 are its parents
PARENTS = torch.tensor([1.0, 0.0, 1.0, 1.0, 0.0, 0.0])
DISCRETE = TaskDistribution.any().only("discrete", "no_experiments", "exact_measurements", "complete")


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def network(tasks: int, levels: int = 2, parents: torch.Tensor = PARENTS, seed: int = 0) -> DiscreteTasks:
    graph = torch.zeros(tasks, len(parents), len(parents))
    graph[:, -1] = parents
    return DiscreteTasks(graph, torch.full((tasks,), levels), levels, seeded(seed))


@pytest.mark.parametrize("name", DISCRETE_MECHANISMS)
def test_probabilities_depend_on_every_cause_and_on_nothing_else(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_discrete, "SURE_TASKS", 0.0)  # what is determined by some causes may not feel another
    tasks = 60
    earlier = torch.randint(2, (tasks, CHILD, 100), generator=seeded(1)).float()

    def probabilities(codes: torch.Tensor) -> torch.Tensor:
        mechanism = DISCRETE_MECHANISMS[name](network(tasks))
        return mechanism.log_odds(CHILD, codes, 100).softmax(1)

    before = probabilities(earlier)
    assert torch.allclose(before.sum(1), torch.ones(tasks, 100))
    for variable in range(CHILD):
        changed = earlier.clone()
        changed[:, variable] = 1 - changed[:, variable]
        difference = (probabilities(changed) - before).abs().amax((1, 2))
        assert (difference > 1e-5).all() if PARENTS[variable] else (difference == 0).all()


@pytest.mark.parametrize("name", DISCRETE_MECHANISMS)
def test_without_causes_all_observations_are_alike(name: str) -> None:
    mechanism = DISCRETE_MECHANISMS[name](network(20, parents=torch.zeros(6)))
    earlier = torch.randint(2, (20, CHILD, 50), generator=seeded(1)).float()
    odds = mechanism.log_odds(CHILD, earlier, 50)
    assert torch.equal(odds, odds[:, :, :1].expand_as(odds))


def test_a_table_has_a_row_for_each_combination_of_causes() -> None:
    levels = 3
    tables = ProbabilityTables(network(40, levels))
    tables.levels.fill_(levels)
    tables.exists.fill_(True)
    combinations = torch.tensor(list(itertools.product(range(levels), repeat=3))).float()  # (27, 3)
    earlier = torch.zeros(40, CHILD, 27)
    earlier[:, [0, 2, 3]] = combinations.T
    odds = tables.log_odds(CHILD, earlier, 27)
    distinct = torch.tensor([len(task.mT.unique(dim=0)) for task in odds])
    # Two combinations may share a row by chance, and differ by what each cause adds alone.
    assert (distinct == 27).double().mean() > 0.95


def test_codes_are_drawn_with_their_probabilities() -> None:
    odds = torch.log(torch.tensor([0.1, 0.0, 0.6, 0.3]))[None, :, None].expand(20, -1, 2000)
    codes = draw_levels(odds, torch.full((20,), 4), seeded())
    counts = torch.bincount(codes.flatten(), minlength=4)
    assert counts[1] == 0
    assert stats.chisquare(counts[[0, 2, 3]], torch.tensor([0.1, 0.6, 0.3]) * 40_000).pvalue > 1e-3


def test_a_constant_column_gets_one_observation_of_another_level() -> None:
    codes = torch.tensor([[2, 2, 2], [0, 0, 0], [0, 1, 0]])
    varied = never_constant(codes, torch.tensor([3, 2, 2]))
    assert varied.tolist() == [[0, 2, 2], [1, 0, 0], [0, 1, 0]]


def gate_probability(gates: NoisyGates, task: int, causes: dict[int, int]) -> float:
    """P(level 1) by the formula, from the parameters of the gate."""
    slope, is_or = gates.slope[task, CHILD].double(), bool(gates.is_or[task, CHILD])
    resistance = slope.abs()
    # A negative slope counts level 0, a positive one level 1.
    counted = sum(float(resistance[j]) for j, code in causes.items() if code == int(slope[j] > 0))
    at_zero = sum(float(resistance[j]) for j in causes if slope[j] < 0)
    leak = float(gates.base[task, CHILD]) - at_zero
    product = torch.exp(torch.tensor(-(leak + counted), dtype=torch.float64))
    return float(1 - product if is_or else product)


def test_gates_are_their_formula() -> None:
    gates = NoisyGates(network(200))
    combinations = list(itertools.product((0, 1), repeat=3))
    earlier = torch.zeros(200, CHILD, 8)
    earlier[:, [0, 2, 3]] = torch.tensor(combinations).float().T
    probability = gates.log_odds(CHILD, earlier, 8).softmax(1)[:, 1]
    for task in range(0, 200, 10):
        for place, codes in enumerate(combinations):
            expected = gate_probability(gates, task, dict(zip((0, 2, 3), codes, strict=True)))
            assert abs(float(probability[task, place]) - expected) < 1e-4
    weight = -torch.expm1(-gates.slope[:, CHILD, [0, 2, 3]].abs())
    sure = (weight > 0.999).all(1)
    assert abs(float(sure.double().mean()) - SURE_TASKS / 2) < 0.07
    assert stats.kstest(weight[~sure].flatten().numpy(), stats.uniform(0.4, 0.59).cdf).pvalue > 1e-3
    assert abs(gates.is_or[:, CHILD].double().mean() - 0.6) < 0.1
    either_way = gates.slope[:, CHILD, [0, 2, 3]] < 0
    assert abs(either_way[gates.is_or[:, CHILD]].double().mean() - 0.2) < 0.08
    assert abs(either_way[~gates.is_or[:, CHILD]].double().mean() - 0.8) < 0.08


@pytest.mark.parametrize("mechanism", [NoisyGates, ProbabilityTables])
def test_some_variables_are_all_but_determined_by_their_causes(
    mechanism: type[DiscreteMechanism], monkeypatch: pytest.MonkeyPatch
) -> None:
    earlier = torch.randint(2, (400, CHILD, 50), generator=seeded(1)).float()

    def surest(share: float) -> torch.Tensor:
        """The probability of the likeliest level, on average."""
        monkeypatch.setattr(_discrete, "SURE_TASKS", share)
        return mechanism(network(400)).log_odds(CHILD, earlier, 50).softmax(1).amax(1).mean(1)

    never, always = surest(0.0), surest(1.0)
    changed = (always - never).abs() > 1e-6
    assert 0.4 < float(changed.double().mean()) < 0.6  # half of the children
    assert float(always[changed].mean()) > 0.95
    assert float(never[changed].mean()) < 0.9


def test_most_roots_of_gates_are_rare() -> None:
    gates = NoisyGates(network(3000, parents=torch.zeros(6)))
    rate = gates.log_odds(CHILD, torch.zeros(3000, CHILD, 1), 1).softmax(1)[:, 1, 0]
    assert rate.min() >= 0.0099
    assert abs((rate < 0.1).double().mean() - 0.6) < 0.04
    assert stats.kstest(rate[rate < 0.1].log().numpy(), stats.uniform(-4.6052, 2.3026).cdf).pvalue > 1e-3


def test_every_column_of_a_discrete_task_is_a_category_of_two_to_ten_levels() -> None:
    batch = DISCRETE.sample(400, 500, 8, seeded())
    assert batch.tables.levels is not None
    assert batch.tables.levels.min() >= 2
    assert batch.tables.levels.max() == 10
    gates = torch.tensor([name == "noisy_gates" for name in batch.names("mechanisms")])
    assert (batch.tables.levels[gates] == 2).all()
    assert (batch.explained_variance == 0).all()


@pytest.mark.parametrize("name", DISCRETE_MECHANISMS)
def test_independent_categories_look_independent_and_joined_ones_do_not(name: str) -> None:
    batch = DISCRETE.only(name, "no_hidden_causes", "erdos_renyi").sample(500, 800, 2, seeded())

    def p_values(tasks: torch.Tensor) -> list[float]:
        found = []
        for table in batch.data[tasks].long():
            counts = torch.bincount(table[:, 0] * 10 + table[:, 1], minlength=100).view(10, 10)
            counts = counts[counts.sum(1) > 0][:, counts.sum(0) > 0]
            if stats.contingency.expected_freq(counts).min() > 5:
                found.append(stats.chi2_contingency(counts, correction=False).pvalue)
        return found

    joined = batch.adjacency.any((1, 2))
    apart = p_values(~joined)
    assert len(apart) > 50
    assert stats.kstest(apart, stats.uniform.cdf).pvalue > 1e-3
    together = p_values(joined)
    assert sum(p < 1e-3 for p in together) > 0.7 * len(together)


def test_hidden_categories_confound_what_they_act_on() -> None:
    batch = DISCRETE.only("hidden_causes", "probability_tables", "all_may_matter").sample(400, 800, 2, seeded())
    assert batch.truth.confounded is not None
    assert batch.truth.confounded[:, 0, 1].all()
    apart = batch.data[~batch.adjacency.any((1, 2))].long()
    dependent = []
    for table in apart:
        counts = torch.bincount(table[:, 0] * 10 + table[:, 1], minlength=100).view(10, 10)
        counts = counts[counts.sum(1) > 0][:, counts.sum(0) > 0]
        dependent.append(stats.chi2_contingency(counts, correction=False).pvalue < 1e-3)
    assert sum(dependent) > 0.5 * len(dependent)
