"""Laws of experiments with known targets, and of environments."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import stats

from causal_arrow_lab.synthetic import TaskBatch, TaskDistribution
from causal_arrow_lab.synthetic._discrete import LEVEL_SHIFT, draw_levels_in_experiment
from causal_arrow_lab.synthetic._noise import standardize
from causal_arrow_lab.synthetic._structure import MAX_REGIMES, Causes, Regimes, draw_environments, draw_regimes
from causal_arrow_lab.synthetic.recipes import CODES

PLAIN = ("linear", "normal", "restandardized", "strong_signal", "additive_noise", "undistorted", "continuous")
QUIET = ("numbers", "no_hidden_causes", "no_instruments", "exact_measurements", "complete")


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def regimes(name: str, tasks: int = 1000, variables: int = 8, observations: int = 300) -> Regimes:
    allowed = torch.ones(tasks, variables, dtype=torch.bool)
    allowed[:, 0] = False
    return draw_regimes(torch.full((tasks,), CODES[name]), allowed, observations, seeded())


def drawn(*only: str, tasks: int = 400, observations: int = 600, variables: int = 2) -> TaskBatch:
    return TaskDistribution.any().only("typed", *PLAIN, *QUIET, *only).sample(tasks, observations, variables, seeded())


def test_a_regime_acts_on_one_to_three_of_the_variables_allowed() -> None:
    experiment = regimes("mixed_targets")
    assert not experiment.targets[:, :, 0].any()  # regime 0 is plain observation
    assert not experiment.targets[:, 0].any()
    counts = torch.bincount(experiment.targets[:, :, 1:].sum(1).flatten(), minlength=4)
    expected = torch.tensor([0.7, 0.2, 0.1]) * counts.sum()
    assert counts[0] == 0
    assert stats.chisquare(counts[1:], expected).pvalue > 1e-3
    assert stats.chisquare(experiment.targets[:, 1:].sum((0, 2))).pvalue > 1e-3


def test_there_are_up_to_twenty_regimes_of_unequal_size_and_always_plain_observations() -> None:
    member = regimes("set_targets").member
    most = member.amax(1)
    assert most.max() == MAX_REGIMES
    assert most.min() == 1
    assert ((member == 0).sum(1) >= 2).all()
    plain = (member == 0).double().mean(1)
    assert 0.2 < (plain < 0.03).double().mean() < 0.4  # some tasks have hardly any
    assert plain.max() > 0.8
    sizes = torch.nn.functional.one_hot(member, 1 + MAX_REGIMES)[:, :, 1:].sum(1)
    largest, smallest = sizes.amax(1), torch.where(sizes > 0, sizes, 10**6).amin(1)
    assert (largest > 3 * smallest)[most > 5].double().mean() > 0.9


def test_few_observations_have_few_regimes_and_other_tasks_none() -> None:
    assert regimes("set_targets", observations=20).member.max() <= 4
    for name in ("no_experiments", "environments"):
        experiment = regimes(name)
        assert not experiment.targets.any()
        assert (experiment.member == 0).all()


@pytest.mark.parametrize(("name", "share"), [("set_targets", 1.0), ("shifted_targets", 0.0), ("mixed_targets", 0.5)])
def test_regimes_set_or_shift_as_their_name_says(name: str, share: float) -> None:
    experiment = regimes(name)
    assert abs(experiment.sets.sum() / experiment.targets.sum() - share) < 0.02
    push = experiment.push[experiment.targets & ~experiment.sets].abs()
    assert (experiment.push[~experiment.targets | experiment.sets] == 0).all()
    assert share == 1 or (push.min() >= 1 and push.max() <= 4)


def test_the_marked_cells_are_those_of_the_targets() -> None:
    experiment = regimes("mixed_targets", tasks=5, observations=40)
    for task in range(5):
        for observation in range(40):
            regime = experiment.member[task, observation]
            expected = experiment.targets[task, :, regime]
            assert torch.equal(experiment.intervened()[task, :, observation], expected)


def test_a_variable_that_is_set_forgets_its_noise_and_its_causes() -> None:
    experiment = regimes("set_targets", tasks=300)
    values, noise = torch.randn(2, 300, 300, generator=seeded(1))
    after = experiment.set(3, values, noise)
    is_set = experiment.intervened()[:, 3]
    assert torch.equal(after[~is_set], values[~is_set])
    exact = experiment.looseness[:, 0] == 0
    assert 0.3 < exact.double().mean() < 0.5
    rows = torch.arange(300)[:, None].expand(-1, 300)
    level = experiment.value[rows, 3, experiment.member]
    assert torch.equal(after[is_set & exact[:, None]], level[is_set & exact[:, None]])
    again = experiment.set(3, -values, noise)
    assert torch.equal(again[is_set], after[is_set])


def effects_of_marked_cells(name: str) -> tuple[float, float]:
    """Mean |correlation| of cause and effect where the effect was acted on, and where nothing was."""
    batch = drawn(name)
    assert batch.tables.intervened is not None
    acted, left = [], []
    for task in batch.adjacency.any((1, 2)).nonzero().flatten().tolist():
        cause, effect = batch.adjacency[task].nonzero()[0].tolist()
        table, marks = batch.data[task].double(), batch.tables.intervened[task]
        alone = marks[:, effect] & ~marks[:, cause]
        for part, found in ((alone, acted), (~marks.any(1), left)):
            # Within one regime: what is set to other values elsewhere would look like an effect.
            rows = table[part]
            if part is alone and len(rows):
                nearest = (rows[:, effect] - rows[0, effect]).abs() < 1.5
                rows = rows[nearest]
            if len(rows) > 30 and rows.std(0).min() > 0.02:
                found.append(abs(float(torch.corrcoef(rows.T)[0, 1])))
    return sum(acted) / len(acted), sum(left) / len(left)


def test_causes_do_not_count_where_their_effect_is_set_and_count_where_it_is_shifted() -> None:
    acted, left = effects_of_marked_cells("set_targets")
    assert acted < 0.25
    assert left > 0.85
    acted, left = effects_of_marked_cells("shifted_targets")
    assert acted > 0.6
    assert left > 0.7


def test_what_is_shifted_lies_elsewhere_than_what_is_left_alone() -> None:
    batch = drawn("shifted_targets")
    assert batch.tables.intervened is not None
    distances = []
    for task, variable in batch.tables.intervened.any(1).nonzero().tolist():
        column, here = batch.data[task, :, variable].numpy(), batch.tables.intervened[task, :, variable].numpy()
        if min(here.sum(), (~here).sum()) > 30:
            distances.append(stats.ks_2samp(column[here], column[~here]).statistic)
    assert sum(distances) / len(distances) > 0.2


def test_setting_a_cause_moves_its_effect_and_not_the_other_way() -> None:
    batch = drawn("set_targets")
    assert batch.tables.intervened is not None
    moved = {"cause": [], "effect": []}
    for task in batch.adjacency.any((1, 2)).nonzero().flatten().tolist():
        cause, effect = batch.adjacency[task].nonzero()[0].tolist()
        table, marks = batch.data[task].double(), batch.tables.intervened[task]
        for which, one, other in (("cause", cause, effect), ("effect", effect, cause)):
            rows = marks[:, one] & ~marks[:, other]
            if rows.sum() > 50 and table[rows, one].std() > 0.2:
                moved[which].append(abs(float(torch.corrcoef(table[rows][:, [one, other]].T)[0, 1])))
    assert sum(moved["cause"]) / len(moved["cause"]) > 0.8
    assert sum(moved["effect"]) / len(moved["effect"]) < 0.15


def test_experiments_on_categories_set_them_to_a_level_or_make_one_likelier() -> None:
    tasks, observations, levels = 400, 2000, 4
    experiment = regimes("mixed_targets", tasks=tasks, observations=observations)
    causes = Causes(
        torch.zeros(tasks, 8, 8, dtype=torch.bool), torch.zeros(tasks, 0, 8, dtype=torch.bool), None, experiment
    )
    even = torch.zeros(tasks, levels, observations)
    codes = draw_levels_in_experiment(even, torch.full((tasks,), levels), causes, 3, seeded())
    level = ((experiment.value[:, 3].gather(1, experiment.member) + 3) / 6 * levels).long()
    hit = (codes == level).double()
    is_set = experiment.sets[:, 3].gather(1, experiment.member)
    is_target = experiment.targets[:, 3].gather(1, experiment.member)
    exact = experiment.looseness[:, 0] == 0
    assert (hit[is_set & exact[:, None]] == 1).all()
    loose = hit[is_set & ~exact[:, None]].mean()
    assert 0.45 < loose < 0.7  # half of them are redrawn on average, a quarter of those to the same level
    likelier = math.exp(LEVEL_SHIFT)
    assert abs(hit[is_target & ~is_set].mean() - likelier / (likelier + levels - 1)) < 0.01
    assert abs(hit[~is_target].mean() - 1 / levels) < 0.01


def test_discrete_tasks_have_experiments_too() -> None:
    batch = TaskDistribution.any().only("discrete", "set_targets").sample(200, 100, 5, seeded())
    assert batch.tables.intervened is not None
    assert batch.tables.intervened.any(2).any(1).double().mean() > 0.9
    assert not batch.tables.intervened.all(1).any()


# --- environments


def test_environments_change_one_to_a_third_of_the_variables_and_two_are_always_there() -> None:
    present = torch.arange(600) < 500
    allowed = torch.ones(600, 12, dtype=torch.bool)
    allowed[:, 0] = False
    environments = draw_environments(present, allowed, 200, seeded())
    counts = environments.targets.sum(1)
    assert stats.chisquare(torch.bincount(counts[:500], minlength=5)[1:]).pvalue > 1e-3
    assert not environments.targets[500:].any()
    assert not environments.targets[:, 0].any()
    assert (environments.member[:500].amax(1) >= 1).all()
    assert environments.member.max() == 11
    push = environments.push[environments.targets]
    assert (push[:, 0] == 0).all()
    assert push[:, 1:].abs().min() >= 0.5
    assert push.abs().max() <= 3
    noise = standardize(torch.randn(600, 12, 200, generator=seeded(1)))
    changed = environments.changed_noise(noise)
    assert torch.allclose(changed[~environments.targets], noise[~environments.targets], atol=1e-4)
    assert (changed[environments.targets] - noise[environments.targets]).abs().amax(1).min() > 0.01


def test_an_environment_is_a_category_that_causes_what_it_changes_and_has_no_cause() -> None:
    batch = drawn("environments", variables=6, tasks=200, observations=1500)
    assert batch.tables.levels is not None
    context = batch.order[:, 0]  # the first of the generation order
    task = torch.arange(200)
    assert ((batch.tables.levels > 0).sum(1) == 1).all()
    levels = batch.tables.levels[task, context]
    assert levels.min() >= 2
    assert levels.max() <= 12
    assert not batch.adjacency[task, :, context].any()
    assert batch.adjacency[task, context].any(1).all()
    # What it does not reach does not differ between environments; what it changes mostly does.
    reach = torch.linalg.matrix_power(batch.adjacency.float() + torch.eye(6), 6) > 0
    apart, changed = [], []
    for number in range(200):
        codes = batch.data[number, :, context[number]].numpy()
        for variable in range(6):
            if variable == context[number]:
                continue
            column = batch.data[number, :, variable].numpy()
            p_value = stats.kruskal(*(column[codes == code] for code in set(codes))).pvalue
            if batch.adjacency[number, context[number], variable]:
                changed.append(p_value)
            elif not reach[number, context[number], variable]:
                apart.append(p_value)
    assert stats.kstest(apart, stats.uniform.cdf).pvalue > 1e-3
    assert sum(p_value < 1e-3 for p_value in changed) > 0.6 * len(changed)


def test_environments_change_how_strongly_causes_act_on_some_of_their_targets() -> None:
    batch = drawn("environments", variables=3, tasks=1500, observations=1500)
    spreads: dict[bool, list[float]] = {True: [], False: []}
    for number, (table, adjacency) in enumerate(zip(batch.data.double(), batch.adjacency, strict=True)):
        context, *others = batch.order[number].tolist()
        for child in others:
            causes = [cause for cause in others if adjacency[cause, child]]
            if len(causes) != 1:
                continue
            slopes = []
            for code in table[:, context].unique():
                rows = table[table[:, context] == code]
                if len(rows) > 150:
                    pair = torch.cov(rows[:, [causes[0], child]].T)
                    slopes.append(float(pair[0, 1] / pair[0, 0]))
            if len(slopes) > 1:
                spread = np.ptp(slopes) / np.abs(slopes).mean()
                spreads[bool(adjacency[context, child])].append(float(spread))
    assert np.median(spreads[False]) < 0.1
    assert np.quantile(spreads[True], 0.75) > 0.4  # half of the targets, and by chance some of these hardly


def test_no_hidden_cause_acts_on_an_environment() -> None:
    every = TaskDistribution.any().only("typed", "environments")
    for name in ("hidden_causes", "hidden_classes", "pooled_conditions"):
        batch = every.only(name).sample(150, 30, 8, seeded())
        context = batch.order[:, 0]
        assert batch.truth.confounded is not None
        assert batch.truth.confounded.any()
        assert not batch.truth.confounded[torch.arange(150), context].any()
