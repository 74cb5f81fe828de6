"""Laws of what a table does not show: hidden causes and classes, instruments, noisy readings."""

from __future__ import annotations

import pytest
import torch
from scipy import stats

from causal_arrow_lab.synthetic import TaskBatch, TaskDistribution
from causal_arrow_lab.synthetic._noise import standardize
from causal_arrow_lab.synthetic._structure import (
    MAX_CLASSES,
    MAX_NOISE_SHARE,
    Instruments,
    draw_instruments,
    draw_memberships,
    noisy_readings,
    push_by_classes,
)
from causal_arrow_lab.synthetic.recipes import CODES

PLAIN = ("linear", "normal", "restandardized", "additive_noise", "undistorted", "continuous")
TYPED = TaskDistribution.any().only("typed", "numbers", "no_experiments", "complete", *PLAIN)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def correlations(batch: TaskBatch) -> torch.Tensor:
    """Absolute correlations of all pairs.  (B, P, P)"""
    return (batch.data.mT @ batch.data / batch.data.shape[1]).abs()


def confounded(batch: TaskBatch) -> torch.Tensor:
    assert batch.truth.confounded is not None
    return batch.truth.confounded


def unrelated(batch: TaskBatch) -> torch.Tensor:
    """Pairs without a common ancestor, hidden or not, neither an ancestor of the other.  (B, P, P) bool"""
    variables = batch.data.shape[2]
    reach = torch.linalg.matrix_power(batch.adjacency.float() + torch.eye(variables), variables)
    related = reach.mT @ reach + reach.mT @ confounded(batch).float() @ reach
    return related == 0


# --- hidden causes and classes


@pytest.mark.parametrize("name", ["hidden_causes", "hidden_classes", "pooled_conditions", "hidden_factors"])
def test_pairs_that_share_a_hidden_cause_are_told_and_no_others_depend_without_an_edge(name: str) -> None:
    some = TYPED.reweighted({name: 1.0}).only(name, "no_instruments", "exact_measurements")
    batch = some.sample(300, 400, 8, seeded())
    shared = confounded(batch)
    assert 0.02 < shared.double().mean() < 0.9
    strength = correlations(batch)
    apart = strength[unrelated(batch)]
    expected = (2 / torch.pi / 400) ** 0.5  # of independent columns
    assert abs(apart.mean() / expected - 1) < 0.05
    without_edge = shared & ~batch.adjacency & ~batch.adjacency.mT
    assert strength[without_edge].mean() > 2 * expected


def test_the_papers_tasks_have_no_hidden_causes_and_those_of_broad_are_told() -> None:
    assert not confounded(TaskDistribution.paper().sample(50, 20, 6, seeded())).any()
    batch = TaskDistribution.broad().only("widened", "hidden_causes").sample(100, 20, 2, seeded())
    assert confounded(batch)[:, 0, 1].all()
    assert not confounded(TaskDistribution.broad().only("no_hidden_causes").sample(100, 20, 6, seeded())).any()


def test_classes_differ_in_the_means_of_some_variables_and_in_nothing_else() -> None:
    noise = standardize(torch.randn(200, 10, 2000, generator=seeded()))
    mixed = torch.arange(200) < 150
    pushed, touched = push_by_classes(noise, mixed, seeded(1))
    assert torch.allclose(pushed[~touched], noise[~touched], atol=1e-5)
    assert not touched[150:].any()
    assert 0.5 < touched[:150].double().mean() < 0.7
    assert pushed.mean(2).abs().max() < 1e-5
    assert (pushed.std(2) - 1).abs().max() < 1e-4
    # One class for all variables: means take as many values together as one by one.
    _, only_classes = (
        torch.zeros(1),
        push_by_classes(torch.zeros(40, 6, 500), torch.ones(40, dtype=torch.bool), seeded()),
    )
    patterns = [len(task.mT.unique(dim=0)) for task in only_classes[0]]
    assert max(patterns) <= MAX_CLASSES
    assert min(patterns) >= 1


def test_members_come_in_proportion_to_their_weights() -> None:
    weights = torch.tensor([[1.0, 0.0, 3.0, 4.0]]).expand(50, -1)
    member = draw_memberships(weights, 1000, seeded())
    counts = torch.bincount(member.flatten(), minlength=4)
    assert counts[1] == 0
    assert stats.chisquare(counts[[0, 2, 3]], torch.tensor([1, 3, 4]) / 8 * 50_000).pvalue > 1e-3


# --- instruments


def groups(tasks: int = 400, variables: int = 12) -> Instruments:
    return draw_instruments(
        torch.ones(tasks, dtype=torch.bool), torch.ones(tasks, variables, dtype=torch.bool), seeded()
    )


def test_instruments_come_in_groups_of_two_to_six_up_to_seven_tenths_of_the_columns() -> None:
    instruments = groups()
    assert instruments.member.sum(1).min() >= 2
    assert instruments.member.sum(1).max() <= int(0.7 * 12)
    place = torch.arange(12)
    assert (instruments.leader <= place).all()
    assert (instruments.leader[~instruments.member] == place.expand(400, -1)[~instruments.member]).all()
    sizes = torch.stack([torch.bincount(task, minlength=12) for task in instruments.leader])
    assert sizes.max() == 6
    absent = draw_instruments(torch.zeros(5, dtype=torch.bool), torch.ones(5, 4, dtype=torch.bool), seeded())
    assert not absent.member.any()
    some = draw_instruments(torch.ones(50, dtype=torch.bool), torch.arange(4).expand(50, 4) > 0, seeded())
    assert not some.member[:, 0].any()


def test_instruments_have_the_causes_of_their_group_and_no_effects() -> None:
    batch = TYPED.only("instrument_groups", "no_hidden_causes").sample(300, 50, 12, seeded())
    parents = batch.adjacency.mT  # (B, P, P)
    childless = ~batch.adjacency.any(2)
    same = (parents[:, :, None] == parents[:, None, :]).all(3) & parents.any(2)[:, :, None]
    twins = same & childless[:, :, None] & childless[:, None, :] & ~torch.eye(12, dtype=torch.bool)
    plain = TYPED.only("no_instruments", "no_hidden_causes").sample(300, 50, 12, seeded())
    assert (twins.any(2).sum(1) >= 2).double().mean() > 0.75
    assert not (confounded(batch) & ~childless[:, :, None]).any()
    assert not confounded(plain).any()


def test_instruments_read_one_quantity_almost_exactly_by_curves_of_their_own() -> None:
    values = standardize(torch.randn(200, 12, 300, generator=seeded(1)))
    instruments = groups(200)
    shown = instruments.read(values, seeded(2))
    assert torch.equal(shown[~instruments.member], values[~instruments.member])
    assert shown.mean(2).abs().max() < 1e-4
    assert (shown.std(2) - 1).abs().max() < 1e-3
    ranks, straight = [], []
    for task in range(0, 200, 4):
        for column in instruments.member[task].nonzero().flatten().tolist():
            source = int(instruments.leader[task, column]) if instruments.one_quantity[task] else column
            quantity, reading = values[task, source].numpy(), shown[task, column].numpy()
            ranks.append(abs(stats.spearmanr(quantity, reading).statistic))
            straight.append(abs(stats.pearsonr(quantity, reading).statistic))
    assert min(ranks) > 0.8
    assert sorted(ranks)[len(ranks) // 2] > 0.98
    assert sorted(straight)[len(straight) // 4] < 0.99
    assert instruments.noise_share.max() <= MAX_NOISE_SHARE


def test_readings_share_a_hidden_cause_unless_their_quantity_is_a_function_of_causes_in_the_table() -> None:
    instruments = groups()
    group = instruments.leader[:, :, None] == instruments.leader[:, None, :]
    pairs = group & instruments.member[:, :, None] & ~torch.eye(12, dtype=torch.bool)
    everywhere, nowhere = torch.ones(400, 12, dtype=torch.bool), torch.zeros(400, 12, dtype=torch.bool)
    one = instruments.one_quantity[:, :, None]
    off = ~torch.eye(12, dtype=torch.bool)
    assert torch.equal(instruments.share_a_quantity(nowhere) & off, pairs & one)
    assert torch.equal(instruments.share_a_quantity(everywhere) & off, pairs & one & ~instruments.exact[:, :, None])
    assert torch.equal(instruments.exact, instruments.exact.gather(1, instruments.leader))


def test_an_exact_quantity_has_no_noise_to_share_and_other_instruments_have_little() -> None:
    instruments = groups()
    has_causes = torch.ones(400, 12, dtype=torch.bool)
    one, quiet = instruments.one_quantity.expand(400, 12), instruments.quiet(has_causes)
    assert torch.equal(quiet, instruments.member & (~one | instruments.exact))
    assert not instruments.quiet(~has_causes).any()
    variance = instruments.noise_variance()
    assert (variance[one] < 1e-5).all()
    share = variance[~one] / (1 + variance[~one])
    assert stats.kstest(share.log().numpy(), stats.uniform(-7.6009, 4.6052).cdf).pvalue > 1e-3


def test_what_exact_instruments_of_known_causes_have_in_common_is_known_from_these_causes() -> None:
    batch = TYPED.only("instrument_groups", "no_hidden_causes", "exact_measurements").sample(200, 500, 8, seeded())
    strength = correlations(batch)
    apart = strength[unrelated(batch)]
    assert abs(apart.mean() / (2 / torch.pi / 500) ** 0.5 - 1) < 0.06
    # Hidden quantities are read almost exactly: such readings are all but copies.
    assert strength[confounded(batch)].median() > 0.8


# --- noisy readings


def test_noise_makes_up_two_to_fifty_percent_of_what_is_shown() -> None:
    values = standardize(torch.randn(100, 5, 5000, generator=seeded()))
    noisy = torch.arange(5).expand(100, 5) < 3
    shown, codes = noisy_readings(values, None, noisy, seeded(1))
    assert codes is None
    assert torch.equal(shown[:, 3:], values[:, 3:])
    share = 1 - (values[:, :3] * shown[:, :3]).mean(2).square()
    assert stats.kstest(share.flatten().numpy(), stats.uniform(0.02, 0.48).cdf).pvalue > 1e-4


def test_a_level_is_misread_half_as_often_and_rare_levels_survive() -> None:
    codes = torch.randint(4, (100, 5, 5000), generator=seeded())
    noisy = torch.arange(5).expand(100, 5) < 3
    _, shown = noisy_readings(torch.zeros(100, 5, 5000), codes, noisy, seeded(1))
    assert shown is not None
    assert torch.equal(shown[:, 3:], codes[:, 3:])
    wrong = (shown != codes)[:, :3].double().mean(2)
    assert 0.005 < wrong.min() < 0.02
    assert 0.16 < wrong.max() < 0.2  # a quarter misread, of which a quarter as the same level
    rare = torch.zeros(100, 5, 30, dtype=torch.int64)
    rare[:, :, 4] = 1
    _, shown = noisy_readings(torch.zeros(100, 5, 30), rare, torch.ones(100, 5, dtype=torch.bool), seeded(2))
    assert shown is not None
    assert (shown.amax(2) == 1).all()


def test_effects_feel_the_true_value_and_the_table_holds_a_noisy_one() -> None:
    def partial_correlation(setting: str) -> float:
        """Of the ends of chains a → b → c, given what the table holds of b."""
        only = ("strong_signal", "no_hidden_causes", "no_instruments", setting)
        batch = TYPED.only(*only).sample(3000, 500, 3, seeded())
        edges = batch.adjacency.float()
        found = []
        for task in ((batch.adjacency.sum((1, 2)) == 2) & ((edges @ edges).sum((1, 2)) == 1)).nonzero().flatten():
            start = int((edges[task] @ edges[task]).sum(1).argmax())
            precision = torch.linalg.inv(torch.corrcoef(batch.data[task].double().T))
            end = int((edges[task] @ edges[task])[start].argmax())
            found.append(abs(float(precision[start, end] / (precision[start, start] * precision[end, end]).sqrt())))
        return sorted(found)[len(found) // 2]

    assert partial_correlation("exact_measurements") < 0.06
    assert partial_correlation("noisy_measurements") > 0.15


def test_noise_of_readings_changes_nothing_about_the_graph() -> None:
    batch = TYPED.only("noisy_measurements", "no_hidden_causes", "no_instruments").sample(300, 400, 6, seeded())
    assert not confounded(batch).any()
    apart = correlations(batch)[unrelated(batch)]
    assert abs(apart.mean() / (2 / torch.pi / 400) ** 0.5 - 1) < 0.06
    assert (batch.choices["measurements"] == CODES["noisy_measurements"]).all()
