"""Laws of whole tasks and of the distributions they come from."""

from __future__ import annotations

import dataclasses
import itertools
import warnings
from collections.abc import Iterator

import pytest
import torch
from scipy import stats

from causal_arrow.errors import ConfigurationError
from causal_arrow_lab.synthetic import TaskBatch, TaskDistribution
from causal_arrow_lab.synthetic._tables import draw_choices
from causal_arrow_lab.synthetic.recipes import (
    BEYOND_NUMBERS,
    CODES,
    COMPONENTS,
    EVALUATION_ONLY,
    HELD_OUT,
    SHIFTS,
    Recipe,
)
from causal_arrow_lab.synthetic.tasks import TRAINING_DISTRIBUTIONS

SHIFTED = [shifts for count in (1, 2, 3) for shifts in itertools.combinations(("graphs", "functions", "noise"), count)]
HELD_OUT_NAMES = [name for table in HELD_OUT.values() for name in table]
PLAIN = ("restandardized", "moderate_signal", "additive_noise", "undistorted", "continuous")


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Arrays this small are faster on one thread than on several that wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def in_generation_order(batch: TaskBatch) -> torch.Tensor:
    rows = batch.adjacency.gather(1, batch.order[:, :, None].expand_as(batch.adjacency))
    return rows.gather(2, batch.order[:, None, :].expand_as(rows))


def assert_sound(batch: TaskBatch) -> None:
    """Acyclic, finite; numbers standardized, levels numbered without gaps, nothing under a hole."""
    assert batch.data.dtype == torch.float32
    assert batch.data.is_contiguous()
    assert batch.data.isfinite().all()
    tables, truth = batch.tables, batch.truth
    observed = torch.ones_like(batch.data, dtype=torch.bool) if tables.observed is None else tables.observed
    levels = torch.zeros_like(batch.order) if tables.levels is None else tables.levels
    assert (batch.data[~observed] == 0).all()
    count = observed.sum(1)
    assert count.min() >= 2
    mean = batch.data.sum(1) / count
    spread = (((batch.data - mean[:, None]) * observed).square().sum(1) / (count - 1)).sqrt()
    assert spread.min() > 1e-3  # no column is constant
    numbers = levels == 0
    assert mean[numbers].abs().max() < 1e-4
    assert (spread[numbers] - 1).abs().max() < 1e-3
    assert levels.min() >= 0
    for task, variable in (levels > 0).nonzero().tolist():
        codes = batch.data[task, observed[task, :, variable], variable].unique()
        assert codes.tolist() == list(range(int(levels[task, variable])))
        assert len(codes) >= 2
    assert truth.confounded is not None
    assert torch.equal(truth.confounded, truth.confounded.mT)
    assert not truth.confounded.diagonal(dim1=1, dim2=2).any()
    if tables.intervened is not None:
        assert not tables.intervened.all(1).any()
    if tables.ordered is not None:
        assert not (tables.ordered & numbers).any()
    ordered = in_generation_order(batch)
    assert torch.equal(ordered, ordered.triu(1))
    assert ((batch.explained_variance >= 0) & (batch.explained_variance <= 1)).all()


def r2_by_regression(batch: TaskBatch) -> torch.Tensor:
    """R² of the least-squares regression of each variable on its causes.  (B, P)"""
    r2 = torch.zeros(batch.data.shape[0], batch.data.shape[2])
    for task, (data, adjacency) in enumerate(zip(batch.data.double().cpu(), batch.adjacency.cpu(), strict=True)):
        for variable in range(data.shape[1]):
            causes = data[:, adjacency[:, variable]]
            if causes.shape[1]:
                fit = causes @ torch.linalg.lstsq(causes, data[:, variable]).solution
                r2[task, variable] = 1 - (data[:, variable] - fit).var() / data[:, variable].var()
    return r2


@pytest.mark.parametrize("name", TRAINING_DISTRIBUTIONS)
def test_training_tasks_are_sound(name: str) -> None:
    assert_sound(TRAINING_DISTRIBUTIONS[name]().sample(300, 40, 12, seeded()))


@pytest.mark.parametrize("shifts", SHIFTED)
def test_shifted_tasks_are_sound_and_shifted_where_they_should_be(shifts: tuple[str, ...]) -> None:
    batch = TaskDistribution.shifted(*shifts).sample(60, 30, 9, seeded())
    assert_sound(batch)
    assert (set(batch.names("graph_families")) == {"small_world"}) == ("graphs" in shifts)
    assert (set(batch.names("mechanisms")) == {"splines"}) == ("functions" in shifts)
    assert (batch.noises == CODES["gamma"]).all() == ("noise" in shifts)


def test_no_shift_is_the_paper() -> None:
    assert TaskDistribution.shifted() == TaskDistribution.paper()


@pytest.mark.parametrize("component", HELD_OUT_NAMES)
def test_a_held_out_component_takes_the_place_of_its_table_and_of_nothing_else(component: str) -> None:
    held_out, paper = TaskDistribution.held_out(component), TaskDistribution.paper()
    batch = held_out.sample(60, 30, 9, seeded())
    assert_sound(batch)
    assert held_out.only_for_evaluation
    for table, names in COMPONENTS.items():
        if component in names:
            codes = batch.noises if table == "noises" else batch.choices[table]
            assert (codes == CODES[component]).all()
        else:
            assert held_out.recipes["paper"].table(table) == paper.recipes["paper"].table(table)


@pytest.mark.parametrize(("tasks", "observations", "variables"), [(60, 20, 110), (300, 2000, 2), (200, 40, 12)])
def test_all_held_out_components_mix_and_stay_sound_at_any_shape(tasks: int, observations: int, variables: int) -> None:
    batch = TaskDistribution.held_out().sample(tasks, observations, variables, seeded())
    assert_sound(batch)
    assert {*batch.names("graph_families")} == {*HELD_OUT["graph_families"]}
    assert {*batch.names("mechanisms")} == {*HELD_OUT["mechanisms"]}
    assert {COMPONENTS["noises"][code] for code in batch.noises.flatten().tolist()} == {*HELD_OUT["noises"]}


@pytest.mark.parametrize("mechanism", HELD_OUT["mechanisms"])
def test_held_out_mechanisms_meet_their_target_r2(mechanism: str) -> None:
    batch = TaskDistribution.held_out(mechanism).sample(200, 100, 8, seeded())
    r2 = batch.explained_variance[batch.adjacency.any(1)]
    assert r2.min() > 0.1 - 1e-4
    assert r2.max() < 0.9 + 1e-4


# Sums over tasks drawn by the code as it was before there was anything held out. Adding a component at the end of a
# table must change no task of an old seed: the benchmark and the validation are made of them.
FINGERPRINTS = [
    (TaskDistribution.paper(), 55717, 142086.41),
    (TaskDistribution.broad(), 51900, 140045.86),
    (TaskDistribution.shifted("graphs", "functions", "noise"), 59326, 137947.44),
]


@pytest.mark.parametrize(("distribution", "edges", "data"), FINGERPRINTS, ids=["paper", "broad", "shifted"])
def test_components_added_later_change_no_task_of_an_old_seed(
    distribution: TaskDistribution, edges: int, data: float
) -> None:
    batch = distribution.sample(64, 50, 10, seeded())
    places = torch.arange(1, 101).view(10, 10)
    assert int((batch.adjacency * places).sum()) == edges
    # Processors round differently; other tasks would be off by far more.
    assert float((batch.data.double().abs() * places[0]).sum()) == pytest.approx(data, rel=1e-5)


def test_there_is_a_task_of_every_shape_from_2_to_200_variables() -> None:
    generator = seeded()
    for variables in range(2, 201):
        assert_sound(TaskDistribution.paper().sample(1, 5, variables, generator))


@pytest.mark.parametrize("name", ["broad", "any"])
@pytest.mark.parametrize(("tasks", "observations", "variables"), [(100, 20, 200), (1000, 2000, 2), (600, 2, 3)])
def test_every_component_stays_finite_at_extreme_shapes(
    name: str, tasks: int, observations: int, variables: int
) -> None:
    distribution = TRAINING_DISTRIBUTIONS[name]()
    batch = distribution.sample(tasks, observations, variables, seeded())
    assert_sound(batch)
    for table in batch.choices if tasks > 100 or name == "broad" else ():
        # "Nothing" is no component where no recipe weighs it against something.
        nothing = {COMPONENTS[table][0]} if table in BEYOND_NUMBERS else set()
        assert set(batch.names(table)) - nothing == (distribution.components & set(COMPONENTS[table])) - nothing


def test_the_number_of_edges_follows_the_paper() -> None:
    batch = TaskDistribution.paper().sample(4000, 2, 10, seeded())
    edges = batch.adjacency.sum((1, 2))
    assert stats.chisquare(torch.bincount(edges, minlength=41)).pvalue > 1e-3  # 4p = 40 fits among 45 pairs
    clamped = TaskDistribution.paper().sample(2000, 2, 4, seeded()).adjacency.sum((1, 2))
    expected = 2000 / 17 * torch.tensor([1.0] * 6 + [11.0])  # 0..16 edges asked for, room for 6
    assert stats.chisquare(torch.bincount(clamped, minlength=7), expected).pvalue > 1e-3


def test_choices_of_the_paper_are_equally_likely() -> None:
    batch = TaskDistribution.paper().sample(4000, 2, 3, seeded())
    for table in ("graph_families", "mechanisms", "activations", "noise_settings"):
        counts = torch.bincount(batch.choices[table].long())
        assert stats.chisquare(counts[counts > 0]).pvalue > 1e-3
        assert {*batch.names(table)} == TaskDistribution.paper().components & {*COMPONENTS[table]}
    alike = (batch.noises == batch.noises[:, :1]).all(1)
    homogeneous = batch.choices["noise_settings"] == CODES["homogeneous"]
    assert alike[homogeneous].all()
    assert stats.chisquare(torch.bincount(batch.noises[homogeneous, 0])).pvalue > 1e-3
    assert stats.chisquare(torch.bincount(batch.noises[~homogeneous].flatten())).pvalue > 1e-3
    assert stats.binomtest(int(alike[~homogeneous].sum()), int((~homogeneous).sum()), 1 / 9).pvalue > 1e-3


def test_homogeneous_noise_shares_its_parameters_and_heterogeneous_noise_does_not() -> None:
    def correlation_of_skewness(setting: str) -> float:
        batch = TaskDistribution.paper().only("beta", setting).sample(3000, 300, 2, seeded())
        roots = batch.data[batch.adjacency.sum((1, 2)) == 0]
        return float(torch.corrcoef((roots**3).mean(1).T)[0, 1])

    assert correlation_of_skewness("homogeneous") > 0.8
    assert abs(correlation_of_skewness("heterogeneous")) < 0.2


def test_realized_r2_equals_its_target() -> None:
    batch = TaskDistribution.paper().only("linear").sample(60, 4000, 5, seeded())
    measured, target = r2_by_regression(batch), batch.explained_variance
    has_causes = batch.adjacency.any(1)
    assert (target[~has_causes] == 0).all()
    assert target[has_causes].min() > 0.1
    assert target[has_causes].max() < 0.9
    assert (measured - target).abs().max() < 0.05
    assert (measured - target)[has_causes].mean().abs() < 0.005


def test_targets_above_nine_tenths_are_met_to_the_third_digit() -> None:
    strong = TaskDistribution.broad().only("linear", "strong_signal", *PLAIN[:1], *PLAIN[2:], "no_hidden_causes")
    batch = strong.sample(60, 1000, 5, seeded())
    has_causes = batch.adjacency.any(1)
    noise_share = 1 - batch.explained_variance[has_causes]
    measured = 1 - r2_by_regression(batch)[has_causes]
    assert noise_share.min() < 0.005
    assert (measured / noise_share).log().abs().median() < 0.05


def test_raw_equations_grow_towards_determinism_and_keep_their_noise() -> None:
    raw = TaskDistribution.broad().only("raw_equations", "linear", "raw_equal_noise", "wide_weights")
    batch = raw.sample(120, 400, 30, seeded())
    assert_sound(batch)
    share = 1 - batch.explained_variance.double().gather(1, batch.order)
    has_causes = batch.adjacency.any(1).gather(1, batch.order)
    early, late = (share[:, part][has_causes[:, part]] for part in (slice(1, 10), slice(20, 30)))
    assert late.median() < 0.5 * early.median()
    assert (late < 1e-3).float().mean() > 0.02
    # The little noise there is has survived standardization in float32: a regression finds it again.
    measured = 1 - r2_by_regression(batch).double().gather(1, batch.order)
    tiny = has_causes & (share < 3e-4) & (share > 1e-6)
    assert tiny.sum() >= 20
    assert (measured[tiny] / share[tiny]).log().abs().median() < 0.3


def test_a_raw_pair_has_the_r2_of_its_weight_and_unit_noise() -> None:
    raw = TaskDistribution.broad().only("raw_equations", "linear", "raw_equal_noise", "weights_near_one")
    batch = raw.sample(3000, 50, 2, seeded())
    r2 = batch.explained_variance[batch.adjacency.any(1)].double()
    weight = (r2 / (1 - r2)).sqrt()
    spread = torch.linspace(0, 0.9, 400)[1:, None]
    grid = torch.linspace(0, 2, 201)
    cdf = ((grid - 1 + spread) / (2 * spread)).clamp(0, 1).mean(0)
    inside = torch.clamp((weight * 100).long(), 0, 200)
    assert stats.kstest(cdf[inside].numpy(), stats.uniform.cdf).statistic < 0.04


def test_depth_does_not_overflow_raw_equations() -> None:
    raw = TaskDistribution.broad().only("raw_equations", "linear").sample(12, 30, 200, seeded())
    assert_sound(raw)


def test_hidden_causes_confound_variables_that_do_not_cause_each_other() -> None:
    def correlation_without_an_edge(setting: str) -> torch.Tensor:
        tasks = TaskDistribution.broad().only("widened", "linear", "normal", setting, *PLAIN)
        batch = tasks.sample(1000, 200, 2, seeded())
        apart = batch.data[batch.adjacency.sum((1, 2)) == 0].double()
        return (apart[:, :, 0] * apart[:, :, 1]).mean(1).abs()

    assert correlation_without_an_edge("hidden_causes").mean() > 0.2
    assert correlation_without_an_edge("no_hidden_causes").mean() < 0.08


def test_heteroscedastic_noise_swells_with_the_cause() -> None:
    def coupling(setting: str) -> torch.Tensor:
        tasks = TaskDistribution.broad().only("widened", "linear", "normal", "no_hidden_causes", setting)
        batch = tasks.only(*(name for name in PLAIN if name != "additive_noise")).sample(400, 500, 2, seeded())
        pairs = batch.data[batch.adjacency[:, 0, 1]].double()
        cause, effect = pairs[:, :, 0], pairs[:, :, 1]
        residual = effect - (cause * effect).mean(1, keepdim=True) * cause
        return torch.stack(
            [torch.corrcoef(torch.stack([c, r.abs()]))[0, 1] for c, r in zip(cause, residual, strict=True)]
        )

    assert coupling("heteroscedastic_noise").abs().median() > 0.3
    assert coupling("additive_noise").abs().median() < 0.1


def test_columns_are_labeled_uniformly_at_random() -> None:
    batch = TaskDistribution.paper().sample(6000, 2, 3, seeded())
    labels = batch.order @ torch.tensor([9, 3, 1])
    assert stats.chisquare(torch.unique(labels, return_counts=True)[1]).pvalue > 1e-3
    edges = batch.adjacency.sum(0)[~torch.eye(3, dtype=torch.bool)]
    assert stats.chisquare(edges).pvalue > 1e-3


def test_tasks_are_not_sorted_by_how_they_were_made() -> None:
    mechanism = TaskDistribution.paper().sample(400, 2, 2, seeded()).choices["mechanisms"].long()
    changes = int((mechanism.diff() != 0).sum())
    assert stats.binomtest(changes, 399).pvalue > 1e-3


@pytest.mark.parametrize("name", TRAINING_DISTRIBUTIONS)
def test_the_same_seed_gives_the_same_tasks(name: str) -> None:
    def draw(seed: int) -> TaskBatch:
        return TRAINING_DISTRIBUTIONS[name]().sample(40, 15, 8, seeded(seed))

    first, again, other = draw(1), draw(1), draw(2)
    assert torch.equal(first.data, again.data)
    assert torch.equal(first.adjacency, again.adjacency)
    assert not torch.equal(first.data, other.data)
    generator = seeded(1)
    batches = [TRAINING_DISTRIBUTIONS[name]().sample(40, 15, 8, generator) for _ in range(2)]
    assert torch.equal(batches[0].data, first.data)
    assert not torch.equal(batches[1].data, first.data)


def test_tasks_do_not_depend_on_the_callers_precision_or_threads() -> None:
    distribution = TaskDistribution.broad()
    plain = distribution.sample(40, 15, 8, seeded())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mixed = distribution.sample(40, 15, 8, seeded())
    assert torch.equal(plain.data, mixed.data)
    torch.set_num_threads(2)
    other = distribution.sample(40, 15, 8, seeded())
    torch.set_num_threads(1)
    assert torch.equal(plain.adjacency, other.adjacency)
    assert torch.allclose(plain.data, other.data, atol=1e-3)


def test_half_of_the_broad_tasks_are_the_papers() -> None:
    broad = TaskDistribution.broad()
    assert broad.recipes["paper"] == Recipe(weight=3.0)
    batch = broad.sample(4000, 2, 2, seeded())
    counts = torch.bincount(batch.recipe.long())
    assert stats.chisquare(counts, [2000, 2000 / 3, 4000 / 3]).pvalue > 1e-3


def test_weights_are_honored_in_every_table() -> None:
    recipe = Recipe(
        **{table: {name: 1.0 + place for place, name in enumerate(names)} for table, names in COMPONENTS.items()}
    )
    choices = draw_choices([recipe], 5000, 2, seeded())
    for table, names in COMPONENTS.items():
        codes = choices[table] if table in choices.columns else choices["distortion"]
        codes = codes if codes.ndim == 1 else codes[:, -1]
        if table == "distortion_shapes":
            codes = codes[codes > 0] - 1
        expected = torch.arange(1, len(names) + 1).double()
        counts = torch.bincount(codes.long(), minlength=len(names))
        assert stats.chisquare(counts, expected / expected.sum() * len(codes)).pvalue > 1e-3, table


def test_no_training_distribution_contains_what_is_only_for_evaluation() -> None:
    for make in TRAINING_DISTRIBUTIONS.values():
        assert not make().components & EVALUATION_ONLY
        assert not make().only_for_evaluation
        for recipe in make().recipes.values():
            assert not {name for table in COMPONENTS for name in recipe.table(table)} & EVALUATION_ONLY
        for name in EVALUATION_ONLY:
            with pytest.raises(ConfigurationError, match=f"has no '{name}'"):
                make().reweighted({name: 1.0})
    for shifts in SHIFTED:
        assert TaskDistribution.shifted(*shifts).only_for_evaluation
    evaluated = [TaskDistribution.held_out(), *(TaskDistribution.shifted(shift) for shift in SHIFTS)]
    assert set().union(*(distribution.components for distribution in evaluated)) >= EVALUATION_ONLY


def test_what_is_only_for_evaluation_is_the_papers_shifts_and_three_held_out_components_of_each_kind() -> None:
    assert [set(table) for _, table in SHIFTS.values()] == [{"small_world"}, {"splines"}, {"gamma"}]
    assert {name: len(table) for name, table in HELD_OUT.items()} == {"graph_families": 3, "mechanisms": 3, "noises": 3}
    assert {"small_world", "splines", "gamma", *HELD_OUT_NAMES} == EVALUATION_ONLY


@pytest.mark.parametrize("training", TRAINING_DISTRIBUTIONS)
@pytest.mark.parametrize("component", sorted(EVALUATION_ONLY))
def test_a_training_mixture_that_names_what_is_kept_for_evaluation_is_refused(training: str, component: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^Training tasks must not contain '{component}': kept for"):
        TaskDistribution.for_training(training, weights={component: 1.0})


def test_a_training_distribution_that_holds_what_is_kept_for_evaluation_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(TRAINING_DISTRIBUTIONS, "leaky", lambda: TaskDistribution.held_out("gumbel"))  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="must not contain 'gumbel'"):
        TaskDistribution.for_training("leaky")


def test_a_third_of_any_is_as_broad() -> None:
    broad, every = TaskDistribution.broad(), TaskDistribution.any()
    # Recipes of tables of numbers differ in one law: no small table is dense by decree.
    for name, recipe in broad.recipes.items():
        assert "edges_up_to_4p" not in every.recipes[name].edge_counts
        assert dataclasses.replace(every.recipes[name], edge_counts=recipe.edge_counts) == recipe
    total = sum(recipe.weight for recipe in every.recipes.values())
    assert abs(sum(recipe.weight for recipe in broad.recipes.values()) / total - 1 / 3) < 0.02


def test_a_weight_can_be_meant_for_one_recipe_alone() -> None:
    changed = TaskDistribution.for_training("any", weights={"widened.collectors": 9.0, "typed": 1.0})
    assert changed.recipes["widened"].graph_families["collectors"] == 9.0
    assert changed.recipes["typed"].graph_families["collectors"] == 1.0
    assert changed.recipes["typed"].weight == 1.0
    with pytest.raises(ConfigurationError, match=r"has no 'paper\.collectors'"):
        TaskDistribution.for_training("any", weights={"paper.collectors": 1.0})
    with pytest.raises(ConfigurationError, match="must not contain 'gamma'"):
        TaskDistribution.for_training("any", weights={"widened.gamma": 1.0})


def test_a_batch_knows_how_many_levels_a_category_has_at_most() -> None:
    tables = TaskDistribution.any().sample(64, 10, 6, seeded()).tables
    assert tables.levels is not None
    assert tables.max_levels == tables.widest == int(tables.levels.max()) > 2
    assert tables[3:5].widest == tables.widest
    assert TaskDistribution.paper().sample(2, 10, 6, seeded()).tables.max_levels == 0


def test_what_a_distribution_cannot_fill_is_left_out_of_its_tables() -> None:
    def parts(distribution: TaskDistribution) -> set[str]:
        tables = distribution.sample(4, 10, 3, seeded()).tables
        return {name for name, value in vars(tables).items() if isinstance(value, torch.Tensor)}

    every = TaskDistribution.any()
    assert parts(TaskDistribution.paper()) == parts(TaskDistribution.broad()) == {"values"}
    assert parts(every) == {"values", "observed", "intervened", "levels", "ordered"}
    assert parts(every.only("complete")) == {"values", "intervened", "levels", "ordered"}
    assert parts(every.only("no_experiments")) == {"values", "observed", "levels", "ordered"}
    assert parts(every.only("equivalence_class", "normal_wishart")) == {"values", "observed"}
    assert parts(every.only("complete", "numbers", "environments", "typed")) == {"values", "levels", "ordered"}


def test_tasks_of_version_0_1_stay_the_same_for_the_same_seed() -> None:
    def drawn(distribution: TaskDistribution) -> tuple[list[int], list[float]]:
        batch = distribution.sample(20, 12, 5, seeded(3))
        place = torch.arange(batch.adjacency.numel()).view_as(batch.adjacency)
        graph = [int((place * batch.adjacency).sum()), int((batch.order * torch.arange(5)).sum())]
        return graph, batch.data[::3, 7, 1].tolist()

    graph, values = drawn(TaskDistribution.paper())
    assert graph == [34759, 382]
    assert values == pytest.approx([-1.425, -0.329, 1.437, 0.742, 0.624, -0.722, -0.932], abs=2e-3)
    graph, values = drawn(TaskDistribution.broad())
    assert graph == [33469, 382]
    assert values == pytest.approx([0.091, 0.627, -0.36, -0.23, -1.206, -0.558, 0.806], abs=2e-3)


def test_a_component_with_weight_zero_can_be_switched_on() -> None:
    waiting = TaskDistribution({"waiting": Recipe(noises={"normal": 1.0, "laplace": 0.0})})
    assert "laplace" not in waiting.components
    with pytest.raises(ConfigurationError, match="has no 'laplace'"):
        waiting.only("laplace")
    assert "laplace" in waiting.reweighted({"laplace": 2.0}).components


@pytest.mark.parametrize(
    ("distribution", "name"),
    [(name, component) for name, make in TRAINING_DISTRIBUTIONS.items() for component in sorted(make().components)],
)
def test_a_component_can_be_switched_off_and_singled_out(distribution: str, name: str) -> None:
    broad = TRAINING_DISTRIBUTIONS[distribution]()
    table = next(table for table, names in COMPONENTS.items() if name in names)
    if len(broad.components & set(COMPONENTS[table])) == 1:
        return  # nothing would be left

    def codes(distribution: TaskDistribution) -> torch.Tensor:
        choices = draw_choices(list(distribution.recipes.values()), 1500, 3, seeded())
        by_column = {"distortion_shapes": "distortion", "column_kinds": "kind"}
        chosen = choices[by_column[table]] - 1 if table in by_column else choices[table]
        return chosen[chosen >= 0]

    assert (codes(broad) == CODES[name]).any()
    assert (codes(broad.only(name)) == CODES[name]).all()
    assert (codes(broad.without(name)) != CODES[name]).all()
    assert name not in broad.without(name).components


def test_names_are_unique_across_tables_and_recipes() -> None:
    names = [name for table in COMPONENTS.values() for name in table] + list(TaskDistribution.any().recipes)
    assert len(names) == len(set(names))


def test_a_configuration_names_a_training_distribution() -> None:
    broad = TaskDistribution.for_training(
        "broad", without=["hidden_causes", "student_t"], weights={"raw_equations": 2.5}
    )
    assert not {"hidden_causes", "student_t"} & broad.components
    assert broad.recipes["raw_equations"].weight == 2.5
    assert TaskDistribution.for_training("paper") == TaskDistribution.paper()


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (
            lambda: TaskDistribution.for_training("shifted"),
            "no training distribution 'shifted'.*'any', 'broad', 'paper'",
        ),
        (lambda: TaskDistribution.shifted("edges"), "no shift 'edges'.*'functions', 'graphs', 'noise'"),
        (lambda: TaskDistribution.held_out("gamma"), "no held-out component 'gamma'.*'gumbel'"),
        (lambda: TaskDistribution.paper().without("student_t"), "has no 'student_t'.*'erdos_renyi'"),
        (lambda: TaskDistribution.broad().only("studnet_t"), "has no 'studnet_t'.*'student_t'"),
        (lambda: TaskDistribution.paper().without("erdos_renyi", "scale_free"), "No recipe is left"),
        (lambda: Recipe(noises={"cauchy": 1.0}), "noises has no 'cauchy'.*'normal'"),
        (lambda: Recipe(noises={"normal": -1.0}), "'normal' in noises must be"),
        (lambda: Recipe(noises={"normal": 0.0}), "Nothing is left of noises"),
        (lambda: TaskDistribution.paper().sample(1, 1, 5, seeded()), "observations must be 2 or more, got 1"),
        (lambda: TaskDistribution.paper().sample(1, 10, 1, seeded()), "variables must be 2 or more, got 1"),
        (lambda: TaskDistribution.paper().sample(0, 10, 5, seeded()), "tasks must be 1 or more, got 0"),
    ],
)
def test_mistakes_are_answered_with_what_would_be_right(mistake: object, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        mistake()  # type: ignore[operator]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("name", TRAINING_DISTRIBUTIONS)
def test_a_gpu_makes_sound_tasks_and_is_waited_for_once(name: str) -> None:
    generator = torch.Generator("cuda").manual_seed(0)
    distribution = TRAINING_DISTRIBUTIONS[name]()
    batch = distribution.sample(1000, 60, 12, generator)
    assert batch.data.is_cuda
    assert_sound(batch)
    with warnings.catch_warnings(record=True) as waits:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        distribution.sample(1000, 60, 12, generator)
        torch.cuda.set_sync_debug_mode("default")
    assert len(waits) <= 1, [str(wait.message) for wait in waits]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_makes_sound_held_out_tasks() -> None:
    assert_sound(TaskDistribution.held_out().sample(1000, 60, 12, torch.Generator("cuda").manual_seed(0)))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_targets_are_met_on_a_gpu() -> None:
    generator = torch.Generator("cuda").manual_seed(0)
    batch = TaskDistribution.paper().only("linear").sample(60, 4000, 5, generator)
    assert (r2_by_regression(batch) - batch.explained_variance.cpu()).abs().max() < 0.05
