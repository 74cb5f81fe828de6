"""Laws of missing cells."""

from __future__ import annotations

import pytest
import torch
from scipy import stats

from causal_arrow_lab.synthetic import TaskDistribution
from causal_arrow_lab.synthetic._columns import MISSING, draw_observed, standardized_where_observed
from causal_arrow_lab.synthetic._noise import standardize
from causal_arrow_lab.synthetic.recipes import CODES


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def holes(
    name: str, tasks: int = 300, variables: int = 2, observations: int = 800
) -> tuple[torch.Tensor, torch.Tensor]:
    """Independent normal columns and where they are observed.  (B, P, N) each"""
    values = standardize(torch.randn(tasks, variables, observations, generator=seeded(1)))
    return values, draw_observed(values, torch.full((tasks,), CODES[name]), seeded())


def correlation(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """Of each row.  (..., N) -> (...)"""
    return (standardize(first) * standardize(second)).mean(-1)


@pytest.mark.parametrize("name", [name for name in MISSING if name != "complete"])
def test_rates_reach_from_nothing_to_nine_tenths(name: str) -> None:
    _, observed = holes(name, tasks=2000, observations=200)
    rate = 1 - observed.double().mean(2)
    assert rate.max() < 0.97
    assert (rate > 0.8).any()
    assert (rate == 0).any()
    assert 0.1 < rate.mean() < 0.3


def test_a_complete_task_has_no_holes() -> None:
    assert holes("complete")[1].all()


@pytest.mark.parametrize(("name", "own", "others"), [
    ("missing_by_chance", 0.0, 0.0), ("missing_by_another", 0.0, 0.3), ("missing_by_itself", 0.3, 0.0)
])  # fmt: skip
def test_what_is_missing_depends_on_what_it_should(name: str, own: float, others: float) -> None:
    values, observed = holes(name)
    some = (observed.double().mean(2) < 0.9) & (observed.double().mean(2) > 0.1)
    for expected, column in ((own, values), (others, values.flip(1))):
        strength = correlation(column, observed.float())[some].abs().mean()
        assert (strength > expected) if expected else (strength < 0.06)


def test_columns_of_one_task_can_be_missing_in_different_ways() -> None:
    values, observed = holes("missing_in_all_ways", tasks=1000)
    some = (observed.double().mean(2) < 0.9) & (observed.double().mean(2) > 0.1)
    own = correlation(values, observed.float()).abs() > 0.2
    another = correlation(values.flip(1), observed.float()).abs() > 0.2
    shares = [float((way & some).sum() / some.sum()) for way in (own, another)]
    assert all(0.15 < share < 0.45 for share in shares)


def test_in_some_tasks_columns_are_missing_together() -> None:
    _, observed = holes("missing_by_chance", tasks=1000)
    both = ((observed.double().mean(2) < 0.9) & (observed.double().mean(2) > 0.1)).all(1)
    together = correlation(observed[:, 0].float(), observed[:, 1].float())[both] > 0.2
    assert stats.binomtest(int(together.sum()), int(both.sum()), 0.25).pvalue > 1e-3


def test_a_column_never_becomes_constant_or_empty() -> None:
    values = torch.zeros(500, 3, 30)
    values[:, :, 0] = 1  # one observation alone makes a difference
    for name in MISSING:
        observed = draw_observed(values, torch.full((500,), CODES[name]), seeded())
        assert (observed[:, :, 0] & observed[:, :, 1:].any(2)).all()


def test_numbers_are_standardized_over_what_is_observed_and_zero_elsewhere() -> None:
    values = 100 + 5 * torch.randn(20, 3, 50, generator=seeded())
    observed = torch.rand(20, 3, 50, generator=seeded(1)) < 0.6
    rows = standardized_where_observed(values, observed)
    assert (rows[~observed] == 0).all()
    for row, mask in zip(rows.flatten(0, 1), observed.flatten(0, 1), strict=True):
        assert abs(float(row[mask].mean())) < 1e-4
        assert abs(float(row[mask].std()) - 1) < 1e-3


def test_nothing_lies_under_a_hole() -> None:
    tables = TaskDistribution.any().sample(400, 60, 8, seeded()).tables
    assert tables.observed is not None
    assert (~tables.observed).double().mean() > 0.02
    assert (tables.values[~tables.observed] == 0).all()
    assert tables.observed.sum(1).min() >= 2


def test_about_two_fifths_of_typed_tasks_have_holes_somewhere() -> None:
    batch = TaskDistribution.any().only("typed").sample(1000, 50, 10, seeded())
    assert batch.tables.observed is not None
    has_holes = ~batch.tables.observed.all(2).all(1)
    assert not has_holes[batch.choices["missing"] == CODES["complete"]].any()
    assert 0.3 < has_holes.double().mean() < 0.45
