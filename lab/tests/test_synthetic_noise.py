"""Laws of the noise, of how strong it is, and of what is done to columns afterwards."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from causal_arrow_lab.synthetic._columns import DISTORTION_SHAPES, change_columns, ordinal, rounded
from causal_arrow_lab.synthetic._noise import NOISES, draw_noise, draw_noise_variances, standardize
from causal_arrow_lab.synthetic._structure import MAX_CONDITIONS, push_by_conditions
from causal_arrow_lab.synthetic.recipes import CODES
from causal_arrow_lab.synthetic.tasks import TaskDistribution

# Dials 0.1 and 0.7: a law that took one for the other would be found out.
LAWS = {
    "normal": stats.norm(),
    "uniform": stats.uniform(-1, 2),
    "beta": stats.beta(1.9, 7.3),
    "laplace": stats.laplace(),
    "student_t": stats.t(2.8),
    "gamma": stats.gamma(1.9),
    "gumbel": stats.gumbel_l(),
    "double_weibull": stats.dweibull(2.3),
    # r = 2.3: E₁ and 2.3 E₂ on the two sides.
    "asymmetric_laplace": stats.laplace_asymmetric(2.3**0.5, scale=2.3**0.5),
}


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("name", LAWS)
def test_each_noise_follows_its_law(name: str) -> None:
    draws = NOISES[name](torch.tensor([[0.1, 0.7]]), 20_000, seeded())[0]
    assert stats.kstest(draws.double().numpy(), LAWS[name].cdf).pvalue > 1e-3


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("name", LAWS)
def test_each_noise_follows_its_law_on_a_gpu(name: str) -> None:
    dials = torch.tensor([[0.1, 0.7]], device="cuda").expand(200, 2)
    draws = NOISES[name](dials, 100, torch.Generator("cuda").manual_seed(0)).double().cpu()
    assert stats.kstest(draws.flatten().numpy(), LAWS[name].cdf).pvalue > 1e-3


@pytest.mark.parametrize(("second_dial", "sign"), [(0.2, 1), (0.7, -1)])
def test_lognormal_noise_follows_its_law_on_either_side(second_dial: float, sign: int) -> None:
    draws = sign * NOISES["lognormal"](torch.tensor([[0.1, second_dial]]), 20_000, seeded())[0]
    assert stats.kstest(draws.double().numpy(), stats.lognorm(0.3).cdf).pvalue > 1e-3


@pytest.mark.parametrize(
    ("name", "law"),
    [("gumbel", stats.gumbel_r()), ("asymmetric_laplace", stats.laplace_asymmetric(2.3**-0.5, scale=2.3**0.5))],
)
def test_skewed_held_out_noise_is_skewed_to_the_right_for_the_other_half_of_its_dial(name: str, law: object) -> None:
    draws = NOISES[name](torch.tensor([[0.1, 0.2]]), 20_000, seeded())[0]
    assert stats.kstest(draws.double().numpy(), law.cdf).pvalue > 1e-3  # type: ignore[attr-defined]
    assert law.stats("s") > 0.5  # type: ignore[attr-defined]


@pytest.mark.parametrize("dial", [0.0, 0.5, 1.0])
def test_double_weibull_noise_has_two_modes_and_hardly_anything_between(dial: float) -> None:
    noise = standardize(NOISES["double_weibull"](torch.tensor([[dial, 0.5]]), 20_000, seeded()))[0]
    near = [float(((noise - place).abs() < 0.1).double().mean()) for place in (-0.95, 0.0, 0.95)]
    assert near[1] < 0.5 * min(near[0], near[2])
    assert abs(float(noise.sign().mean())) < 0.03


@pytest.mark.parametrize("name", ["gumbel", "double_weibull", "asymmetric_laplace"])
def test_held_out_noise_has_the_mean_variance_and_shape_of_its_law(name: str) -> None:
    draws = NOISES[name](torch.tensor([[0.1, 0.7]]), 400_000, seeded())[0].double().numpy()
    mean, variance, skewness, kurtosis = (float(moment) for moment in LAWS[name].stats("mvsk"))
    assert draws.mean() == pytest.approx(mean, abs=0.01 * variance**0.5)
    assert draws.var() == pytest.approx(variance, rel=0.02)
    assert stats.skew(draws) == pytest.approx(skewness, abs=0.05)
    assert stats.kurtosis(draws) == pytest.approx(kurtosis, abs=0.3)


def test_noise_of_many_kinds_comes_out_standardized_with_each_law_in_its_place() -> None:
    kinds = torch.arange(len(NOISES)).repeat(3)[torch.randperm(3 * len(NOISES), generator=seeded())].view(3, -1)
    dials = torch.tensor([0.1, 0.7]).expand(3, len(NOISES), 2)
    noise = draw_noise(kinds, [3] * len(NOISES), dials, 20_000, seeded())
    assert noise.mean(2).abs().max() < 1e-5
    assert (noise.std(2) - 1).abs().max() < 1e-4
    for name, law in LAWS.items():
        for row in noise[kinds == CODES[name]].double():
            if name == "student_t":  # its sample variance is too rough to compare standardized values
                assert row.abs().max() > 10
            else:
                assert stats.kstest(row.numpy() * law.std() + law.mean(), law.cdf).pvalue > 1e-4


def test_standardizing_uses_the_n_minus_one_deviation_and_leaves_a_constant_at_zero() -> None:
    rows = standardize(torch.tensor([[1.0, 2.0, 4.0], [5.0, 5.0, 5.0]]))
    assert torch.allclose(rows[0].std(correction=1), torch.tensor(1.0))
    assert torch.equal(rows[1], torch.zeros(3))


def explained(strength: str, tasks: int = 2000, variables: int = 10, causes: int = 1) -> torch.Tensor:
    codes = torch.full((tasks,), CODES[strength]), torch.full((tasks,), CODES["restandardized"])
    relative, absolute = draw_noise_variances(*codes, torch.full((tasks, variables), causes), seeded())
    assert (absolute == 0).all()
    return 1 / (1 + relative.double())


def test_target_r2_is_a_tenth_plus_eight_tenths_of_a_beta_with_one_shape_a_task() -> None:
    r2 = explained("moderate_signal")
    assert r2.min() >= 0.1 - 1e-6
    assert r2.max() <= 0.9 + 1e-6
    shape = np.linspace(1, 10, 60)[:, None, None], np.linspace(1, 10, 60)[None, :, None]
    grid = np.linspace(0, 1, 101)
    cdf = stats.beta.cdf(grid, *shape).mean((0, 1))
    first = r2[:, 0].numpy()  # one variable a task: independent draws
    assert stats.kstest(first, lambda x: np.interp((x - 0.1) / 0.8, grid, cdf)).pvalue > 1e-3
    # Variables of one task share (a, b): the variance between task means is far above that of independent draws.
    assert r2.mean(1).var() > 4 * r2.var() / r2.shape[1]


def test_unlike_signals_are_even_on_the_logit_scale_with_no_law_per_task() -> None:
    logit = torch.logit(explained("unlike_signals"))
    law = stats.uniform(-5.3, 8.2)  # R² from 0.005 to 0.948
    assert stats.kstest(logit.flatten().numpy(), law.cdf).pvalue > 1e-3
    assert stats.chi2.sf(*chi_square_of_means(logit, law.var())) > 1e-3


def chi_square_of_means(rows: torch.Tensor, variance: float) -> tuple[float, int]:
    """Compare the spread of row means with that of independent draws."""
    means = rows.mean(1)
    return float(((means - means.mean()) ** 2).sum() * rows.shape[1] / variance), len(means) - 1


@pytest.mark.parametrize(
    ("strength", "low", "high"),
    [("weak_signal", 0.01, 0.2), ("strong_signal", 0.9, 0.999), ("spread_signal", 0.01, 0.999)],
)
def test_other_strengths_fill_their_range(strength: str, low: float, high: float) -> None:
    r2 = explained(strength)
    logit = torch.logit(r2)
    ends = torch.logit(torch.tensor([low, high]))
    assert r2.min() >= low - 1e-6
    assert r2.max() <= high + 1e-6
    tenth = 0.1 * (ends[1] - ends[0])
    assert logit.min() < ends[0] + tenth
    assert logit.max() > ends[1] - tenth


def test_accumulating_signals_have_odds_in_proportion_to_the_number_of_causes() -> None:
    few, many = (torch.logit(explained("accumulating_signal", causes=causes)).exp() for causes in (1, 9))
    assert torch.allclose(many, 9 * few, rtol=1e-4)
    assert 0.02 - 1e-6 <= few.min() < 0.03
    assert 0.33 < few.max() <= 0.5 + 1e-6
    assert abs(few.log().median() - np.log(0.1)) < 0.1  # even on a log scale: the middle of 0.02 and 0.5


def test_raw_equations_have_noise_of_their_own_and_roots_have_variance_one() -> None:
    scales = torch.tensor([CODES["restandardized"], CODES["raw_equal_noise"], CODES["raw_unequal_noise"]])
    has_causes = torch.arange(3000) % 2 == 0
    relative, absolute = draw_noise_variances(torch.zeros(3), scales, 2 * has_causes.expand(3, -1), seeded())
    assert ((relative[0] > 0) == has_causes).all()
    assert ((absolute[0] > 0) == ~has_causes).all()
    assert (relative[1:] == 0).all()
    assert (absolute[1] == 1).all()
    assert stats.kstest(absolute[2].sqrt().log().numpy(), stats.uniform(-1.5, 3).cdf).pvalue > 1e-3


@pytest.mark.parametrize("name", DISTORTION_SHAPES)
def test_distortions_are_monotone(name: str) -> None:
    columns = standardize(torch.randn(40, 300, generator=seeded())).sort(dim=1).values
    distorted = DISTORTION_SHAPES[name](columns, torch.rand(40, 2, generator=seeded(1)))
    steps = distorted.diff(dim=1)
    assert ((steps >= 0).all(1) | (steps <= 0).all(1)).all()
    assert (distorted.std(1) > 0).all()
    # A distortion worth its name: no longer a straight line, for most dials.
    straight = torch.stack(
        [torch.corrcoef(torch.stack(pair))[0, 1].abs() for pair in zip(columns, distorted, strict=True)]
    )
    assert straight.median() < 0.99


def test_rounded_columns_lie_on_a_grid_and_ordinal_ones_have_two_to_five_levels() -> None:
    columns = standardize(torch.randn(60, 200, generator=seeded()))
    dials = torch.rand(60, 2, generator=seeded(1))
    grid = rounded(columns, dials)
    assert torch.equal(grid, grid.round())
    assert all(3 <= len(row.unique()) <= 100 for row in grid)
    levels = torch.tensor([len(row.unique()) for row in ordinal(columns, dials)])
    expected = 2 + (4 * dials[:, 0]).floor().long()
    assert levels.min() >= 2
    assert (levels <= expected).all()
    assert (levels == expected).float().mean() > 0.8
    order = columns.argsort(dim=1)
    assert (ordinal(columns, dials).gather(1, order).diff(dim=1) >= 0).all()


def test_few_observations_never_make_a_column_constant() -> None:
    columns = standardize(torch.randn(500, 3, generator=seeded()))
    for change in (rounded, ordinal, *DISTORTION_SHAPES.values()):
        changed = standardize(change(columns, torch.rand(500, 2, generator=seeded(1))))
        assert (changed.std(1) - 1).abs().max() < 1e-3, change


def test_only_the_columns_meant_are_changed() -> None:
    values = standardize(torch.randn(4, 3, 50, generator=seeded()))
    before = values.clone()
    kinds = torch.tensor([[0, 1, 0], [0, 0, 0], [2, 2, 0], [0, 0, 1]])
    changed = change_columns(values, kinds, [8, 2, 2], [None, _cube, _halves], seeded())
    assert torch.equal(values, before)
    assert torch.equal(changed[kinds == 0], values[kinds == 0])
    assert torch.allclose(changed[kinds == 1], standardize(values[kinds == 1] ** 3))
    assert torch.allclose(changed[kinds == 2], standardize((values[kinds == 2] > 0).float()))


def _cube(columns: torch.Tensor, dials: torch.Tensor) -> torch.Tensor:
    return columns**3


def _halves(columns: torch.Tensor, dials: torch.Tensor) -> torch.Tensor:
    return (columns > 0).float()


# --- pooled conditions


def test_conditions_push_noise_in_pooled_tasks_alone() -> None:
    noise = standardize(torch.randn(40, 10, 2000, generator=seeded()))
    pushed, named = push_by_conditions(noise, torch.arange(40) < 30, seeded(1))
    assert torch.allclose(pushed[30:], noise[30:], atol=1e-5)
    assert pushed.mean(2).abs().max() < 1e-5
    assert (pushed.std(2) - 1).abs().max() < 1e-4
    touched = (pushed - noise).abs().amax(2)[:30] > 0.1  # (30, 10)
    assert 0.3 < touched.double().mean() < 0.9
    assert torch.equal(touched, named[:30])
    assert not named[30:].any()


def test_a_condition_is_a_pattern_of_few_pushes() -> None:
    tasks, variables = 50, 6
    everywhere = torch.ones(tasks, dtype=torch.bool)
    pushed, _ = push_by_conditions(torch.zeros(tasks, variables, 4000), everywhere, seeded())
    patterns = [len(task.T.unique(dim=0)) for task in pushed]
    assert max(patterns) <= MAX_CONDITIONS
    assert len(set(patterns)) > 3
    # The commonest value of a variable is the one without a push: most conditions leave it alone.
    pushes = [row.unique(return_counts=True)[1] for task in pushed for row in task]
    assert sum(int(counts.max()) for counts in pushes) / (tasks * variables * 4000) > 0.6


def test_pooled_conditions_make_normal_roots_uneven() -> None:
    broad = TaskDistribution.broad().reweighted({"pooled_conditions": 1.0})
    plain = ("widened", "linear", "normal", "additive_noise", "restandardized", "undistorted", "continuous")

    def skewness_of_roots(setting: str) -> float:
        batch = broad.only(*plain, setting).sample(200, 2000, 6, seeded())
        roots = batch.adjacency.sum(1) == 0  # (B, P)
        return float(batch.data.mT[roots].double().pow(3).mean(1).abs().mean())

    assert skewness_of_roots("no_hidden_causes") < 0.1
    assert skewness_of_roots("pooled_conditions") > 0.3
