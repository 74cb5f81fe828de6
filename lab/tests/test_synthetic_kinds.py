"""Laws of columns that are of some kind: levels, rare events, counts with many zeros."""

from __future__ import annotations

import pytest
import torch
from scipy import stats

from causal_arrow_lab.synthetic import TaskBatch, TaskDistribution
from causal_arrow_lab.synthetic._columns import (
    COLUMN_KINDS,
    SCORE_TABLES,
    Categories,
    TypedColumns,
    draw_cuts,
    level_counts,
    quantiles,
    zero_inflated_counts,
)
from causal_arrow_lab.synthetic.recipes import CODES

TYPED = TaskDistribution.any().only("typed", "no_experiments", "no_instruments", "exact_measurements", "complete")


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def code_of(kind: str) -> int:
    """What TypedColumns wants for a kind."""
    return 1 + CODES[kind]


def settled(kind: str, tasks: int = 200, effects: int = 3, seed: int = 0) -> tuple[torch.Tensor, TypedColumns]:
    """The numbers of a column of this kind in each task, and the columns after it has been settled."""
    parents = torch.zeros(tasks, 1 + effects, 1 + effects)
    parents[:, 1:, 0] = 1
    kinds = torch.zeros(tasks, 1 + effects, dtype=torch.int64)
    kinds[:, 0] = code_of(kind)
    alike = torch.zeros(tasks, dtype=torch.bool)
    columns = TypedColumns(kinds, kinds, alike, parents, 400, seeded(seed))
    values = torch.randn(tasks, 1 + effects, 400, generator=seeded(seed + 1))
    numbers = values[:, 0].clone()
    for variable in range(1 + effects):
        columns.settle(variable, values)
    assert torch.equal(values[:, 1], columns.felt[:, 1, 0])
    return numbers, columns


def drawn(*only: str, tasks: int = 400, observations: int = 300, variables: int = 6) -> TaskBatch:
    return TYPED.only(*only).sample(tasks, observations, variables, seeded())


@pytest.mark.parametrize(
    ("kind", "fewest", "most"),
    [("binary_levels", 2, 2), ("nominal_levels", 3, 10), ("ordered_levels", 3, 10), ("many_levels", 11, 30)],
)
def test_each_kind_has_its_number_of_levels_and_few_more_often(kind: str, fewest: int, most: int) -> None:
    counts = level_counts(torch.full((5000,), code_of(kind)), torch.rand(5000, generator=seeded()))
    assert counts.min() == fewest
    assert counts.max() == most
    if most > fewest:
        by_level = torch.bincount(counts.long())[fewest:]
        assert by_level[0] > 2 * by_level[-1] > 0


def test_columns_of_levels_hold_all_their_codes_and_nothing_else() -> None:
    batch = drawn("all_typed")
    levels = batch.tables.levels
    assert levels is not None
    assert levels.max() > 10
    for task, variable in (levels > 0).nonzero().tolist():
        assert batch.data[task, :, variable].unique().tolist() == list(range(int(levels[task, variable])))


def test_in_some_tasks_all_columns_are_of_one_kind() -> None:
    levels = drawn("all_alike", "nominal_levels", observations=2000).tables.levels
    assert levels is not None
    # A rare level may go unobserved: mostly they all have as many.
    assert (levels == levels.amax(1, keepdim=True)).double().mean() > 0.9
    mixed = drawn("all_typed", "nominal_levels", observations=2000).tables.levels
    assert mixed is not None
    assert (mixed == mixed.amax(1, keepdim=True)).double().mean() < 0.6


@pytest.mark.parametrize(("name", "least", "most"), [("few_typed", 0.05, 0.3), ("some_typed", 0.3, 0.95)])
def test_the_share_of_typed_columns_is_that_of_its_name(name: str, least: float, most: float) -> None:
    levels = drawn(name, "nominal_levels", variables=40, tasks=300, observations=20).tables.levels
    assert levels is not None
    share = (levels > 0).double().mean(1)
    assert abs(share.mean() - (least + most) / 2) < 0.03
    assert share.std() > 0.05


def test_early_typed_columns_are_causes_more_often_than_effects() -> None:
    early = TYPED.reweighted({"early_typed": 1.0}).only("early_typed", "nominal_levels")
    batch = early.sample(600, 20, 21, seeded())
    assert batch.tables.levels is not None
    typed = (batch.tables.levels > 0).gather(1, batch.order).double()  # in generation order
    share = typed.mean(0)
    assert abs(share[0] - 2 * 0.35) < 0.06
    assert abs(share[10] - 0.35) < 0.06
    assert share[-1] == 0
    assert abs(share.mean() - 0.35) < 0.03


def test_a_rare_event_happens_in_one_to_ten_percent_of_the_observations() -> None:
    rate = 1 - draw_cuts(torch.full((5000,), code_of("rare_event")), torch.full((5000,), 2.0), 10, seeded())
    assert (rate[:, 1:] == 0).all()
    assert stats.kstest(rate[:, 0].log().numpy(), stats.uniform(-4.6052, 2.3026).cdf).pvalue > 1e-3
    batch = drawn("all_typed", "rare_event", observations=1000)
    assert batch.tables.levels is not None
    binary = batch.data.mT[batch.tables.levels == 2].mean(1)
    share = torch.minimum(binary, 1 - binary)
    assert 0.02 < share.mean() < 0.06
    assert (share > 0).all()
    assert share.quantile(0.98) < 0.15


def test_level_shares_are_those_of_the_cuts_and_range_from_even_to_lopsided() -> None:
    count = torch.full((3000,), 4.0)
    cuts = draw_cuts(torch.full((3000,), code_of("nominal_levels")), count, 10, seeded())
    assert (cuts[:, 3:] == 1).all()
    shares = torch.diff(cuts[:, :4], dim=1, prepend=torch.zeros(3000, 1))
    assert shares.min() > 0
    spread = shares.amax(1) / shares.amin(1)
    assert spread.quantile(0.1) < 2
    assert spread.quantile(0.9) > 10


def test_quantiles_are_met_and_never_the_largest() -> None:
    values = torch.randn(500, 1000, generator=seeded())
    share = torch.rand(500, 3, generator=seeded(1))
    below = (values[:, None] <= quantiles(values, share)[:, :, None]).double().mean(2)
    assert (below - share).abs().mean() < 0.05
    assert (quantiles(values[:, :2], share) < values[:, :2].amax(1, keepdim=True)).all()


def test_effects_feel_levels_and_not_the_number_behind_them() -> None:
    for kind in ("binary_levels", "ordered_levels", "nominal_levels", "folded_levels"):
        _, columns = settled(kind)
        for task in range(0, 200, 20):
            codes, felt = columns.codes[task, 0], columns.felt[task, 0, 0]
            for code in codes.unique():
                assert len(felt[codes == code].unique()) == 1


def test_each_effect_feels_levels_by_scores_of_its_own() -> None:
    _, columns = settled("nominal_levels", effects=SCORE_TABLES)
    felt = torch.stack([columns.felt_by(1 + effect)[:, 0] for effect in range(SCORE_TABLES)], 1)  # (B, G, N)
    assert felt.mean(2).abs().max() < 1e-4
    assert (felt.std(2) - 1).abs().max() < 1e-3
    correlation = torch.stack([torch.corrcoef(task)[0, 1:].abs().max() for task in felt])
    assert correlation.median() < 0.95
    _, binary = settled("binary_levels", effects=SCORE_TABLES)
    first, second = binary.felt_by(1)[:, 0], binary.felt_by(2)[:, 0]
    assert torch.allclose((first * second).sum(1).abs() / 399, torch.ones(200), atol=1e-3)  # two levels: up to the sign


def test_scores_rise_with_ordered_levels_and_with_no_others() -> None:
    def rising(kind: str) -> float:
        numbers, columns = settled(kind)
        order = numbers.argsort(dim=1)
        return float((columns.felt[:, 0, 0].gather(1, order).diff(dim=1) >= 0).all(1).double().mean())

    assert rising("ordered_levels") == 1
    assert rising("nominal_levels") < 0.3
    assert rising("folded_levels") < 0.3


def test_a_folded_level_is_no_interval() -> None:
    numbers, columns = settled("folded_levels")
    order = numbers.argsort(dim=1)
    turns = (columns.codes[:, 0].gather(1, order).diff(dim=1) != 0).sum(1)
    assert (turns > columns.codes[:, 0].amax(1)).double().mean() > 0.95
    numbers, columns = settled("nominal_levels")
    order = numbers.argsort(dim=1)
    turns = (columns.codes[:, 0].gather(1, order).diff(dim=1) != 0).sum(1)
    assert turns.tolist() == [len(codes.unique()) - 1 for codes in columns.codes[:, 0]]


def test_levels_are_numbered_at_random_unless_their_order_is_told() -> None:
    tasks = 3000
    codes = torch.tensor([0, 1, 2, 4, 4, 0]).expand(tasks, 1, -1)
    levels = torch.full((tasks, 1), 5)
    told = torch.arange(tasks)[:, None] < 500
    numbered = Categories(codes, levels, told, 5).numbered(None, seeded())
    assert (numbered.levels == 4).all()  # nobody has seen level 3
    assert (numbered.codes[:500] == torch.tensor([0, 1, 2, 3, 3, 0])).all()
    first = torch.bincount(numbered.codes[500:, 0, 0], minlength=4)
    assert stats.chisquare(first).pvalue > 1e-3
    assert (numbered.codes[:, 0, 0] == numbered.codes[:, 0, 5]).all()


def test_levels_that_are_not_observed_are_not_counted() -> None:
    codes = torch.tensor([[[0, 1, 2, 2]]])
    observed = torch.tensor([[[True, False, True, True]]])
    numbered = Categories(codes, torch.tensor([[3]]), torch.tensor([[True]]), 3).numbered(observed, seeded())
    assert int(numbered.levels) == 2
    assert numbered.codes[0, 0, [0, 2, 3]].tolist() == [0, 1, 1]


def test_told_orders_are_right_and_half_are_told() -> None:
    batch = drawn("all_typed", "ordered_levels", tasks=1000, observations=200, variables=2)
    assert batch.tables.levels is not None
    assert batch.tables.ordered is not None
    given = batch.tables.levels > 0
    assert abs(batch.tables.ordered[given].double().mean() - 0.5) < 0.05
    assert abs((~given).double().mean() - 0.15) < 0.03  # given as numbers
    # Two ordered columns, one the cause of the other: rank correlation shows where the order is told, and only there.
    effects = batch.adjacency.any((1, 2)) & (batch.explained_variance.amax(1) > 0.6)

    def association(tasks: torch.Tensor) -> float:
        tables = batch.data[tasks].double().numpy()
        return sum(abs(stats.spearmanr(table).statistic) for table in tables) / len(tables)

    several = (batch.tables.levels >= 5).all(1)
    told, untold = batch.tables.ordered.all(1), ~batch.tables.ordered.any(1)
    assert association(effects & several & told) > association(effects & several & untold) + 0.1


def test_counts_are_zero_for_most_observations_and_rise_above() -> None:
    numbers, columns = settled("zero_inflated")
    assert (columns.levels == 0).all()
    order = numbers.argsort(dim=1)
    felt = columns.felt[:, 0, 0].gather(1, order)
    assert (felt.diff(dim=1) >= 0).all()
    zeros = (felt == felt[:, :1]).double().mean(1)
    assert 0.3 < zeros.min() < 0.5
    assert 0.9 < zeros.max() < 1
    counts = zero_inflated_counts(torch.linspace(-1, 3, 200).expand(300, -1), seeded())
    assert (counts[:, :50] == 0).all()
    assert (counts[:, 51:] >= 1).all()
    whole = (counts == counts.round()).all(1).double().mean()
    assert 0.4 < whole < 0.6


def test_columns_of_any_kind_may_be_independent_of_everything() -> None:
    batch = drawn("all_typed", "linear", "no_hidden_causes", observations=400, variables=2, tasks=600)
    apart = batch.adjacency.sum((1, 2)) == 0
    assert apart.sum() > 50
    p_values = [stats.spearmanr(table).pvalue for table in batch.data[apart].double().numpy()]
    assert stats.kstest(p_values, stats.uniform.cdf).pvalue > 1e-3
    joined = [stats.spearmanr(table).pvalue for table in batch.data[~apart].double().numpy()]
    assert sum(p < 1e-3 for p in joined) > len(joined) / 2


def test_every_kind_can_be_drawn() -> None:
    for kind in COLUMN_KINDS:
        batch = drawn("some_typed", kind, tasks=40, observations=30)
        assert batch.data.isfinite().all()
