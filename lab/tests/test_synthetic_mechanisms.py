"""Laws of the equations: weights, hidden units, activations, and which variables a signal depends on."""

from __future__ import annotations

import math

import pytest
import torch
from scipy import stats

from causal_arrow_lab.synthetic._tables import draw_choices
from causal_arrow_lab.synthetic.mechanisms import (
    ACTIVATIONS,
    MECHANISMS,
    Distance,
    Equations,
    Maximum,
    Mlp,
    Periodic,
    RandomFeatures,
    Splines,
    WeightedSum,
    draw_weight_bounds,
)
from causal_arrow_lab.synthetic.recipes import CODES, Recipe

CHILD = 5  # the last of six variables; 0, 2 and 3 are its parents
PARENTS = torch.tensor([1.0, 0.0, 1.0, 1.0, 0.0, 0.0])


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def equations(
    tasks: int, parents: torch.Tensor = PARENTS, activation: str = "tanh", width: int = 4, seed: int = 0
) -> Equations:
    variables = len(parents)
    graph = torch.zeros(tasks, variables, variables)
    graph[:, -1] = parents
    hard = ACTIVATIONS[activation].hard
    return Equations(
        parents=graph,
        min_weight=torch.full((tasks,), 0.4),
        max_weight=torch.full((tasks,), 1.6),
        activation=torch.full((tasks,), CODES[activation]),
        soft_tasks=0 if hard else tasks,
        width=torch.full((tasks,), width),
        max_width=width,
        generator=seeded(seed),
    )


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_signal_depends_on_every_parent_and_on_nothing_else(name: str) -> None:
    tasks = 40
    earlier = torch.randn(tasks, CHILD, 300, generator=seeded(1))

    def signal(values: torch.Tensor) -> torch.Tensor:
        return MECHANISMS[name](equations(tasks)).signal(CHILD, values, None)

    before = signal(earlier)
    assert before.shape == (tasks, 300)
    assert (before.std(1) > 0).all()
    for variable in range(CHILD):
        changed = earlier.clone()
        changed[:, variable] = torch.randn(tasks, 300, generator=seeded(2))
        difference = (signal(changed) - before).abs().amax(1)
        assert (difference > 1e-4).all() if PARENTS[variable] else (difference == 0).all()


@pytest.mark.parametrize("name", MECHANISMS)
def test_without_parents_a_signal_is_constant(name: str) -> None:
    earlier = torch.randn(8, CHILD, 50, generator=seeded(1))
    signal = MECHANISMS[name](equations(8, torch.zeros(6))).signal(CHILD, earlier, None)
    assert (signal - signal[:, :1]).abs().max() < 1e-5


@pytest.mark.parametrize("parent_count", [1, 3, 12, 39])
def test_trees_ask_about_every_parent_however_many_there_are(parent_count: int) -> None:
    parents = (torch.arange(41) < parent_count).float()
    tasks, width = 30, 2  # six splits
    earlier = torch.randn(tasks, 40, 400, generator=seeded(1))

    def signal(values: torch.Tensor) -> torch.Tensor:
        return MECHANISMS["trees"](equations(tasks, parents, width=width)).signal(40, values, None)

    before = signal(earlier)
    for variable in {0, parent_count // 2, parent_count - 1}:
        changed = earlier.clone()
        changed[:, variable] = 5 * torch.randn(tasks, 400, generator=seeded(2))
        assert ((signal(changed) - before).abs().amax(1) > 1e-4).all()
    levels = torch.tensor([len(row.unique()) for row in before])
    assert levels.max() <= 2 ** (3 * width)
    assert levels.median() >= 6  # all six splits are in use, even where there is but one parent to ask about


def test_weights_near_one_follow_the_paper() -> None:
    low, high = draw_weight_bounds(torch.full((5000,), CODES["weights_near_one"]), seeded())
    assert torch.allclose(low + high, torch.tensor(2.0))
    assert stats.kstest(((high - low) / 2).numpy(), stats.uniform(0, 0.9).cdf).pvalue > 1e-3


def test_wide_weights_have_a_range_of_their_own() -> None:
    low, high = draw_weight_bounds(torch.full((5000,), CODES["wide_weights"]), seeded())
    assert stats.kstest(low.numpy(), stats.uniform(0.1, 0.7).cdf).pvalue > 1e-3
    assert stats.kstest((high - low).numpy(), stats.uniform(0.2, 1.8).cdf).pvalue > 1e-3


@pytest.mark.parametrize("kind", ["linear", "mlp input", "mlp readout"])
def test_weights_have_random_signs_and_uniform_magnitudes(kind: str) -> None:
    task = equations(2000)
    weights = {
        "linear": lambda: WeightedSum(task).weights[:, CHILD, :3],
        "mlp input": lambda: Mlp(task).input_weights(CHILD)[:, 0, :3],
        "mlp readout": lambda: Mlp(task).readout[:, CHILD],
    }[kind]()
    weights = weights[weights != 0]
    assert stats.kstest(weights.abs().numpy(), stats.uniform(0.4, 1.2).cdf).pvalue > 1e-3
    assert stats.binomtest(int((weights > 0).sum()), len(weights)).pvalue > 1e-3
    assert stats.ks_2samp(weights[weights > 0].numpy(), -weights[weights < 0].numpy()).pvalue > 1e-3


def test_hidden_units_beyond_a_tasks_own_are_silent() -> None:
    task = equations(5, width=6)
    narrow = Equations(**{**vars(task), "width": torch.arange(1, 6)})
    assert torch.equal((Mlp(narrow).readout[:, CHILD] != 0).sum(1), narrow.width)


def test_the_number_of_hidden_units_is_uniform_from_1_to_64() -> None:
    choices = draw_choices([Recipe(mechanisms={"mlp": 1.0})], 20_000, 2, seeded())
    width = choices["width"].long()
    assert width.min() == 1
    assert width.max() == 64
    assert stats.chisquare(torch.bincount(width, minlength=65)[1:]).pvalue > 1e-3


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_an_mlp_is_its_formula_up_to_a_constant(name: str) -> None:
    earlier = torch.randn(7, CHILD, 100, generator=seeded(1))
    mlp = Mlp(equations(7, activation=name, seed=3))
    activation = ACTIVATIONS[name]
    # The weights of the formula carry no gains: those belong to the way we compute the activation.
    readout = mlp.readout[:, CHILD, None] / activation.output_gain
    state = mlp.equations.generator.get_state()
    signal = mlp.signal(CHILD, earlier, None)
    mlp.equations.generator.set_state(state)
    weights = mlp.input_weights(CHILD) / activation.input_gain
    function = {**vars(torch), **vars(torch.nn.functional)}[name]
    formula = (readout @ function(weights @ earlier))[:, 0]
    assert formula.std(1).min() > 0.01
    difference = formula - signal
    assert (difference - difference.mean(1, keepdim=True)).abs().max() < 1e-4


def test_raw_linear_equations_see_their_causes_at_their_scale() -> None:
    task = equations(4)
    earlier, scale = torch.randn(4, CHILD, 20, generator=seeded(1)), torch.rand(4, CHILD, generator=seeded(2)) + 1
    linear = WeightedSum(task)
    assert torch.allclose(linear.signal(CHILD, earlier * scale[:, :, None], None), linear.signal(CHILD, earlier, scale))


def test_random_features_have_the_covariance_of_a_gaussian_process() -> None:
    tasks = 4000
    earlier = torch.zeros(tasks, 1, 2)
    earlier[:, 0, 1] = 1.5
    functions = RandomFeatures(equations(tasks, torch.tensor([1.0, 0.0]), width=1))
    first, second = functions.signal(1, earlier, None).double().T
    length_scale = torch.linspace(0.5, 2, 1001)
    expected = torch.exp(-0.5 * (1.5 / length_scale) ** 2).mean()
    variance = RandomFeatures.features / 2
    assert math.isclose(float((first**2).mean()), variance, rel_tol=0.1)
    assert math.isclose(float((first * second).mean() / variance), float(expected), abs_tol=0.07)


def test_spline_bases_sum_to_one_and_curves_have_the_variance_of_their_weight() -> None:
    splines = Splines(equations(50, torch.tensor([0.0, 1.0, 0.0])))
    grid = torch.linspace(-3, 3, 101)
    assert torch.allclose(splines.basis(grid).sum(0), torch.ones(101), atol=1e-5)
    assert torch.allclose(splines.basis(torch.tensor([3.0, 7.0]))[:, 0], splines.basis(torch.tensor([3.0, 7.0]))[:, 1])
    signal = splines.signal(2, torch.randn(50, 2, 400, generator=seeded(1)), None)
    assert torch.allclose(signal.std(1, correction=0), splines.weights[:, 2, 1].abs(), rtol=1e-3)


def test_a_periodic_signal_repeats_after_each_causes_own_period_of_one_to_two() -> None:
    periodic = Periodic(equations(500))
    earlier = torch.randn(500, CHILD, 60, generator=seeded(1))
    signal = periodic.signal(CHILD, earlier, None)
    assert stats.kstest(periodic.period[:, CHILD].flatten().numpy(), stats.uniform(1, 1).cdf).pvalue > 1e-3
    assert stats.kstest(periodic.phase[:, CHILD].flatten().numpy(), stats.uniform(0, 2 * math.pi).cdf).pvalue > 1e-3
    for parent in PARENTS.nonzero().flatten().tolist():
        moved = earlier.clone()
        moved[:, parent] += periodic.period[:, CHILD, parent, None]
        assert (periodic.signal(CHILD, moved, None) - signal).abs().max() < 1e-4
        moved[:, parent] += 0.5 * periodic.period[:, CHILD, parent, None]
        assert (periodic.signal(CHILD, moved, None) - signal).abs().amax(1).min() > 0.1


def test_periodic_signals_are_sums_of_waves_as_high_as_their_weights() -> None:
    periodic = Periodic(equations(20, torch.tensor([1.0, 0.0])))
    grid = torch.linspace(-2, 2, 4001).expand(20, 1, -1)
    signal = periodic.signal(1, grid, None)
    assert torch.allclose(signal.abs().amax(1), periodic.weights[:, 1, 0].abs(), rtol=1e-3)
    both = Periodic(equations(20))
    earlier = torch.randn(20, CHILD, 60, generator=seeded(1))
    formula = sum(
        both.weights[:, CHILD, j, None]
        * torch.sin(2 * math.pi * earlier[:, j] / both.period[:, CHILD, j, None] + both.phase[:, CHILD, j, None])
        for j in range(CHILD)
    )
    assert torch.allclose(both.signal(CHILD, earlier, None), formula, atol=1e-4)


def test_a_distance_is_zero_at_its_point_and_grows_in_every_direction_from_there() -> None:
    distance = Distance(equations(200))
    center = distance.center[:, CHILD, :CHILD]
    assert stats.kstest(center.flatten().numpy(), stats.uniform(-1, 2).cdf).pvalue > 1e-3
    direction = torch.randn(200, CHILD, generator=seeded(1))
    along = center[:, :, None] + direction[:, :, None] * torch.tensor([0.0, 1.0, -1.0, 2.0])
    signal = distance.signal(CHILD, along, None)
    length = (direction * distance.weights[:, CHILD, :CHILD]).norm(dim=1)
    assert torch.allclose(signal, length[:, None] * torch.tensor([0.0, 1.0, 1.0, 2.0]), atol=1e-5)


def test_a_maximum_is_that_of_its_weighted_causes_and_never_negative() -> None:
    maximum = Maximum(equations(50))
    earlier = torch.randn(50, CHILD, 200, generator=seeded(1))
    signal = maximum.signal(CHILD, earlier, None)
    weighted = earlier * maximum.weights[:, CHILD, :CHILD, None]
    assert torch.equal(signal, weighted[:, PARENTS[:CHILD] > 0].amax(1).clamp_min(0))
    assert (signal == 0).any(1).all()
    assert torch.equal(maximum.signal(CHILD, 2 * earlier, None), 2 * signal)
    alone = Maximum(equations(50, torch.tensor([1.0, 0.0])))
    ramp = alone.signal(1, earlier[:, :1], None)
    assert torch.equal(ramp, (alone.weights[:, 1, 0, None] * earlier[:, 0]).relu())
