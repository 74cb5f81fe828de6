"""Make tables from choices: the causal structure of each task, its variables in one of three ways, its columns."""

# B tasks, L hidden causes, P variables in generation order, N observations

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from causal_arrow_lab.synthetic.choices import DISCRETE, NORMAL, TaskChoices, count_codes, tasks_with
from causal_arrow_lab.synthetic.columns import (
    DISTORTION_SHAPES,
    ROUNDINGS,
    change_columns,
    draw_observed,
    standardized_where_observed,
)
from causal_arrow_lab.synthetic.discrete import DISCRETE_MECHANISMS, solve_discrete
from causal_arrow_lab.synthetic.equations import solve_equations
from causal_arrow_lab.synthetic.equivalence import causal_order, draw_equivalent_graphs, solve_normal
from causal_arrow_lab.synthetic.experiments import EXPERIMENTS, MAX_ENVIRONMENTS, draw_environments, draw_regimes
from causal_arrow_lab.synthetic.graph_families import (
    SPREAD_OVER_ROOM,
    draw_edge_counts,
    sample_graphs,
    sample_hidden_causes,
)
from causal_arrow_lab.synthetic.instruments import draw_instruments, noisy_readings
from causal_arrow_lab.synthetic.kinds import Categories
from causal_arrow_lab.synthetic.noise import standardize
from causal_arrow_lab.synthetic.recipes import CODES
from causal_arrow_lab.synthetic.structure import Causes, Solution

# The share of noisy columns, in a task with noisy measurements, is uniform from here to 1.
MIN_NOISY_SHARE = 0.3

_REGIMES = {code for code, probability in enumerate(EXPERIMENTS.values()) if probability is not None}


@dataclass(frozen=True)
class MadeTables:
    """Tables in generation order with their truth. Parts that no task has are None."""

    values: Tensor  # (B, P, N) numbers standardized over observed cells, codes of levels, 0 where missing
    adjacency: Tensor  # (B, P, P) bool, upper triangle
    confounded: Tensor  # (B, P, P) bool, symmetric
    explained_variance: Tensor  # (B, P)
    observed: Tensor | None = None  # (B, P, N) bool
    intervened: Tensor | None = None  # (B, P, N) bool
    levels: Tensor | None = None  # (B, P) int64
    ordered: Tensor | None = None  # (B, P) bool


def make_tables(
    choices: TaskChoices, on_host: TaskChoices, variables: int, observations: int, generator: torch.Generator
) -> MadeTables:
    """Make the tables of tasks of one way, sorted by `choices.sorting_key`; `on_host` is a copy of `choices`."""
    causes = _draw_causes(choices, on_host, variables, observations, generator)
    way = int(on_host["way"][0])
    if way == NORMAL:
        solution = solve_normal(causes, observations, generator)
    elif way == DISCRETE:
        counts = count_codes(on_host["mechanisms"] - CODES[next(iter(DISCRETE_MECHANISMS))], len(DISCRETE_MECHANISMS))
        max_levels = int(on_host["width"].max())
        solution = solve_discrete(counts, choices["width"], max_levels, causes, observations, generator)
    else:
        solution = solve_equations(choices, on_host, causes, observations, generator)
    values, categories = _shown(choices, on_host, causes, solution, generator)

    observed = None
    if on_host["missing"].any():
        task = tasks_with(choices, on_host, "missing")
        some = draw_observed(values[task], choices["missing"][task], generator)
        observed = torch.ones(values.shape, dtype=torch.bool, device=values.device)
        observed[task] = some
        values[task] = standardized_where_observed(values[task], some)
    if categories is not None:
        categories = categories.numbered(observed, generator)
        codes = categories.codes if observed is None else categories.codes * observed
        values = torch.where((categories.levels > 0)[:, :, None], codes.to(values.dtype), values)
    made = MadeTables(
        values,
        causes.adjacency,
        _confounded(causes, solution),
        solution.explained_variance,
        observed,
        None if causes.regimes is None else causes.regimes.intervened(),
        None if categories is None else categories.levels,
        None if categories is None else categories.ordered,
    )
    if on_host["truths"].any():
        made = _reoriented(made, tasks_with(choices, on_host, "truths"), generator)
    return made


def _reoriented(made: MadeTables, task: Tensor, generator: torch.Generator) -> MadeTables:
    """Replace the truth of the tasks `task` (b,) by any member of its equivalence class, and sort variables by it."""
    adjacency = made.adjacency.clone()
    adjacency[task] = draw_equivalent_graphs(adjacency[task], generator)
    order = torch.arange(adjacency.shape[1], device=adjacency.device).repeat(len(adjacency), 1)
    order[task] = causal_order(adjacency[task])
    here = torch.arange(len(order), device=order.device)[:, None]
    pairs = here[:, :, None], order[:, :, None], order[:, None, :]
    return MadeTables(
        made.values[here, order],
        adjacency[pairs],
        made.confounded[pairs],
        made.explained_variance[here, order],
        *(
            None if part is None else part[here, order]
            for part in (made.observed, made.intervened, made.levels, made.ordered)
        ),
    )


def _draw_causes(
    choices: TaskChoices, on_host: TaskChoices, variables: int, observations: int, generator: torch.Generator
) -> Causes:
    """Draw graphs, hidden causes, environments, instruments and experiments."""
    edges = draw_edge_counts(choices["edge_counts"], variables, generator)
    families = sorted(on_host.present("graph_families"))
    spread = None
    if CODES[SPREAD_OVER_ROOM] in on_host.present("edge_counts"):
        spread = choices["edge_counts"] == CODES[SPREAD_OVER_ROOM]
    adjacency = sample_graphs(choices["graph_families"], families, edges, variables, generator, spread)
    hidden = max(on_host.present("hidden"))
    hidden_effects = torch.zeros(len(choices), 0, variables, dtype=torch.bool, device=generator.device)
    if hidden:
        hidden_effects = sample_hidden_causes(choices["hidden"], hidden, variables, generator)
    if on_host["bystanders"].any():
        # Each variable is a bystander with a probability that is uniform from 0 to 1, drawn once per task.
        dials = torch.rand(len(choices), variables + 1, generator=generator, device=generator.device)
        matters = (dials[:, 1:] >= dials[:, :1]) | (choices["bystanders"] == 0)[:, None]
        adjacency = adjacency & matters[:, :, None] & matters[:, None, :]
        hidden_effects = hidden_effects & matters[:, None]

    allowed = torch.ones(len(choices), variables, dtype=torch.bool, device=generator.device)
    has_context = None
    if CODES["environments"] in on_host.present("experiments"):
        has_context = choices["experiments"] == CODES["environments"]
        # The first variable is the environment: it has no causes, hidden or not, and its effects are drawn below.
        allowed[:, 0] = ~has_context
        adjacency = adjacency.clone()
        adjacency[:, 0] &= ~has_context[:, None]
        hidden_effects = hidden_effects & allowed[:, None]
    instruments = None
    if CODES["instrument_groups"] in on_host.present("instruments"):
        instruments = draw_instruments(choices["instruments"] == CODES["instrument_groups"], allowed, generator)
        adjacency = instruments.rewired_graph(adjacency)
        hidden_effects = instruments.rewired(hidden_effects)
        allowed = allowed & ~instruments.member
    environments = None
    if has_context is not None:
        environments = draw_environments(has_context, allowed, observations, generator)
        adjacency = adjacency.clone()
        adjacency[:, 0] |= environments.targets
    regimes = None
    if on_host.present("experiments") & _REGIMES:
        regimes = draw_regimes(choices["experiments"], allowed, observations, generator)
    return Causes(adjacency, hidden_effects, environments, regimes, instruments)


def _shown(
    choices: TaskChoices, on_host: TaskChoices, causes: Causes, solution: Solution, generator: torch.Generator
) -> tuple[Tensor, Categories | None]:
    """The columns of the tables, standardized, including the codes of levels; and the levels."""
    values, categories = solution.values, solution.categories
    if categories is not None and causes.instruments is not None:
        categories = replace(categories, levels=categories.levels * ~causes.instruments.member)  # readings are numbers
    environments = causes.environments
    if environments is not None and int(on_host["way"][0]) != DISCRETE:
        categories = Categories.none(values) if categories is None else categories
        categories = categories.with_column(0, environments.present, environments.member, MAX_ENVIRONMENTS)
    if on_host["measurements"].any():
        task = tasks_with(choices, on_host, "measurements")
        dials = torch.rand(len(task), values.shape[1] + 1, generator=generator, device=values.device)
        noisy = dials[:, 1:] < MIN_NOISY_SHARE + (1 - MIN_NOISY_SHARE) * dials[:, :1]
        if environments is not None:
            noisy[:, 0] &= ~environments.present[task]
        codes = None if categories is None else categories.codes[task]
        values[task], codes = noisy_readings(values[task], codes, noisy, generator)
        if categories is not None and codes is not None:
            categories = replace(categories, codes=categories.codes.index_copy(0, task, codes))
    rounding = [change for change in ROUNDINGS.values() if change is not None]
    for name, changes in (("distortion", list(DISTORTION_SHAPES.values())), ("rounding", rounding)):
        kind_counts = count_codes(on_host[name], 1 + len(changes))
        values = change_columns(values, choices[name], kind_counts, changes, generator)
    if categories is not None:
        codes = standardize(categories.codes.to(values.dtype))
        values = torch.where((categories.levels > 0)[:, :, None], codes, values)
    return values, categories


def _confounded(causes: Causes, solution: Solution) -> Tensor:
    """Pairs of variables that share a cause that is not in the table.  (B, P, P) bool"""
    effects = causes.hidden_effects.float()
    shared = torch.bmm(effects.mT, effects) > 0
    instruments, touched = causes.instruments, solution.touched
    if instruments is not None:
        has_causes = causes.parents(through_equations=True).sum(2)[:, causes.hidden :] > 0
        shared = shared | instruments.share_a_quantity(has_causes)
        if touched is not None:
            # Readings show what touches the quantity that they measure, unless that quantity has no noise.
            of_quantity = touched.gather(1, instruments.leader)
            touched = torch.where(instruments.one_quantity, of_quantity, touched) & ~instruments.quiet(has_causes)
    if touched is not None:
        if causes.environments is not None:
            is_first = torch.arange(touched.shape[1], device=touched.device) == 0
            touched = touched & ~(causes.environments.present[:, None] & is_first)
        shared = shared | (touched[:, :, None] & touched[:, None, :])
    return shared & ~torch.eye(shared.shape[1], dtype=torch.bool, device=shared.device)
