"""Make tables from choices: the causal structure of each task, its variables in one of three ways, its columns.

The discrete choices of a batch are one integer matrix, drawn, sorted and sent to the host in one piece. The host needs
them (which mechanism, how wide, how many rows of which noise) to plan the computation. It asks once per batch; nothing
else in the task stream makes it wait for the device.

The data of some tasks identify the Markov equivalence class of the graph and nothing more.

**Linear normal tasks.** Each variable k with m_k causes has, independently of all others,
    σ_k² = 1 / χ²(δ + m_k),   β_k ~ Norm(0, σ_k² I),   x_k = β_kᵀ x_causes + σ_k ε,   ε ~ Norm(0, 1).
This is the normal–Wishart prior of the score BGe (Geiger and Heckerman, 2002). If the covariance of all variables is
inverse Wishart, Σ ~ IW(δ + p − 1, I), then that of m + 1 of them is IW(δ + m, I), and a variable given m others has the
regression above, independently of their covariance. So for a complete graph Σ has that inverse Wishart distribution in
every order, and because the regressions depend on the causes alone, two graphs of one equivalence class give Σ the same
distribution. Observations are exactly normal given Σ (nothing is standardized along the way), so the likelihood of a
table is equal within a class. δ sets the strength of effects: the squared correlation of two adjacent variables is
Beta(1/2, δ/2). It is drawn once per task, from 1 to 15, even on a log scale.

**Other members of a class.** Conditional probability tables can be reversed: whatever the tables of one graph, every
graph of its equivalence class has tables with the same joint distribution. A network that has only seen mechanisms of
certain forms takes their forms for directions, and is sure of them in tables whose forms mean nothing. In tasks whose
truth is any member of the class, only the class can be learned.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from causal_arrow_lab.synthetic._columns import (
    DISTORTION_SHAPES,
    ROUNDINGS,
    TYPED_SHARES,
    Categories,
    TypedColumns,
    change_columns,
    draw_observed,
    standardized_where_observed,
)
from causal_arrow_lab.synthetic._discrete import DISCRETE_MECHANISMS, DiscreteMechanism, solve_discrete
from causal_arrow_lab.synthetic._graph_families import (
    SPREAD_OVER_ROOM,
    draw_edge_counts,
    max_hidden_causes,
    sample_graphs,
    sample_hidden_causes,
)
from causal_arrow_lab.synthetic._noise import (
    NOISES,
    TINY,
    draw_noise,
    draw_noise_variances,
    look_up,
    runs_of,
    standard_gamma,
    standardize,
)
from causal_arrow_lab.synthetic._structure import (
    EXPERIMENTS,
    MAX_ENVIRONMENTS,
    Causes,
    Solution,
    draw_environments,
    draw_instruments,
    draw_regimes,
    noisy_readings,
    push_by_classes,
    push_by_conditions,
)
from causal_arrow_lab.synthetic.mechanisms import (
    ACTIVATIONS,
    MECHANISMS,
    Equations,
    Mechanism,
    WeightedSum,
    draw_weight_bounds,
)
from causal_arrow_lab.synthetic.recipes import BEYOND_NUMBERS, CODES, COMPONENTS, TABLE_OF, Recipe, Table

# B tasks, L hidden causes, P variables in generation order (while solving: all L + P, the hidden ones first),
# N observations, K names in a table

_BY_VARIABLE = ("noises", "distortion_shapes", "column_kinds")  # drawn once per variable, not once per task

# Every mechanism by name, for its width and working memory.
PLANS: Mapping[str, type[Mechanism] | type[DiscreteMechanism]] = {
    **MECHANISMS,
    **DISCRETE_MECHANISMS,
    "normal_wishart": WeightedSum,
}

# How a task is solved. Tasks of one way are neighbors, so that those of plain numbers do not pay for the others.
PLAIN, RICH, DISCRETE, NORMAL = range(4)

MAX_FACTORS = 3  # a task with hidden factors has at most this many: each acts on a quarter up to all of the variables

MIN_CHANGED_SHARE = 0.3  # the share of changed columns of a distorted or rounded task is uniform from here to 1


@dataclass(frozen=True)
class TaskChoices:
    """The codes chosen for each task (B,) or variable (B, ·) by name.

    Names are those of COMPONENTS, with `noises` (B, L + P), hidden causes first. Besides: `recipe`, `width`, `hidden`
    (number of hidden causes), `way` (PLAIN, RICH, DISCRETE or NORMAL) for each task; `distortion`, `rounding`, `kind`
    for each column (B, P), 0 for an unchanged column.
    """

    codes: Tensor  # (B, C) int16
    columns: Mapping[str, slice | int]
    host_codes: Tensor | None = None  # a copy of `codes`

    @classmethod
    def join(cls, parts: Mapping[str, Tensor]) -> TaskChoices:
        """Join one (B,) or (B, ·) tensor of codes per name."""
        columns: dict[str, slice | int] = {}
        blocks = [codes.reshape(len(codes), -1) for codes in parts.values()]
        first = 0
        for (name, codes), block in zip(parts.items(), blocks, strict=True):
            columns[name] = first if codes.ndim == 1 else slice(first, first + block.shape[1])
            first += block.shape[1]
        return cls(torch.cat([block.to(torch.int16) for block in blocks], dim=1), columns)

    def __getitem__(self, name: str) -> Tensor:
        return self.codes[:, self.columns[name]]

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, tasks: slice) -> TaskChoices:
        """The choices of some of the tasks."""
        host_codes = None if self.host_codes is None else self.host_codes[tasks]
        return TaskChoices(self.codes[tasks], self.columns, host_codes)

    def sorted_by(self, index: Tensor) -> TaskChoices:
        """The choices in another order, with a copy on the host. Waits for the device."""
        codes = self.codes[index]
        return TaskChoices(codes, self.columns, codes.cpu())

    def on_host(self, name: str) -> Tensor:
        """The codes of a name, on the host."""
        assert self.host_codes is not None
        return self.host_codes[:, self.columns[name]]

    def occur(self, *names: str) -> bool:
        """Whether a task has chosen one of these components, whose tables are drawn from once per task."""
        return any(bool((self.on_host(TABLE_OF[name]) == CODES[name]).any()) for name in names)

    def any(self, name: str) -> bool:
        """Whether a code other than 0 occurs."""
        return bool(self.on_host(name).any())

    def tasks_with(self, table: str) -> Tensor:
        """Indices of the tasks whose choice from a table is not its first name, the default.  (b,) int64"""
        return self[table].argsort(descending=True)[: int((self.on_host(table) > 0).sum())]


def count_codes(codes: Tensor, kinds: int) -> list[int]:
    """Count each of 0..kinds−1 in codes on the host."""
    counts: list[int] = np.bincount(codes.numpy().ravel(), minlength=kinds).tolist()
    return counts


def may_differ(recipes: Sequence[Recipe], table: str) -> bool:
    """Whether any recipe can choose from a table something else than its first name, the default."""
    return any(recipe.may_differ(table) for recipe in recipes if recipe.weight > 0)


def draw_choices(recipes: Sequence[Recipe], tasks: int, variables: int, generator: torch.Generator) -> TaskChoices:
    """Draw the choices of `tasks` tasks, each from one of the recipes."""
    device = generator.device
    uniform = partial(torch.rand, tasks, generator=generator, device=device)
    recipe = _choose(_cumulative([[recipe.weight for recipe in recipes]], device), uniform())
    longest = max(map(len, COMPONENTS.values()))
    weights = [
        [_padded(recipe.table(name), names, longest) for name, names in COMPONENTS.items()] for recipe in recipes
    ]
    by_table = dict(zip(COMPONENTS, _cumulative(weights, device)[recipe].unbind(1), strict=True))  # each (B, K)
    drawn = [name for name in COMPONENTS if name not in BEYOND_NUMBERS or may_differ(recipes, name)]
    parts = {name: _choose(by_table[name], uniform()) for name in drawn if name not in _BY_VARIABLE}
    nothing = torch.zeros(tasks, dtype=torch.int64, device=device)
    parts |= {name: nothing for name in COMPONENTS if name not in drawn and name not in _BY_VARIABLE}

    def by_variable(name: str, count: int, alike: Tensor) -> Tensor:
        """Draw one code per variable; where `alike`, the same for all variables of the task."""
        each = _choose(by_table[name][:, None], uniform(count))
        return torch.where(alike[:, None], each[:, :1], each)

    hidden_slots = max_hidden_causes(variables)
    noises = by_variable("noises", hidden_slots + variables, parts["noise_settings"] == CODES["homogeneous"])
    shapes = by_variable("distortion_shapes", variables, parts["distortions"] == CODES["alike_distortions"])
    distorted = _some_columns(parts["distortions"] != CODES["undistorted"], uniform(variables), uniform(1))
    rounded = _some_columns(parts["roundings"] != CODES["continuous"], uniform(variables), uniform(1))
    hidden = 1 + (uniform() * hidden_slots).floor().clamp(max=hidden_slots - 1)
    dial = uniform()
    width = look_up(parts["mechanisms"], (plan.draw_width(dial) for plan in PLANS.values()))

    column_kinds = kind = nothing[:, None].expand(-1, variables)
    if "kinds" in drawn:
        column_kinds = by_variable("column_kinds", variables, parts["kinds"] == CODES["all_alike"])
        # Real tables begin with sex, group or region: in these tasks the share falls to 0 along the order.
        slope = torch.where(
            (parts["kinds"] == CODES["early_typed"])[:, None], 2 * torch.linspace(1, 0, variables, device=device), 1.0
        )
        lottery, dial = uniform(variables), uniform()
        share = look_up(parts["kinds"], (low + (high - low) * dial for low, high in TYPED_SHARES.values()))
        kind = (1 + column_kinds) * (lottery < slope * share[:, None])
    way = _way(parts)
    # The first variable of a task with environments is the environment, a category, whatever was drawn for it.
    is_first = torch.arange(variables, device=device) == 0
    free = ~((parts["experiments"] == CODES["environments"])[:, None] & is_first)
    kind = kind * (way[:, None] == RICH) * free
    number = (way < DISCRETE)[:, None] & (kind == 0) & free
    return TaskChoices.join(
        {
            **parts,
            "recipe": recipe,
            "way": way,
            "width": width,
            "hidden": torch.where(
                parts["hidden_variables"] == CODES["hidden_factors"],
                hidden.clamp(max=MAX_FACTORS),
                hidden * (parts["hidden_variables"] == CODES["hidden_causes"]),
            ),
            "noises": noises,
            "distortion": (1 + shapes) * distorted * number,
            "rounding": parts["roundings"][:, None] * rounded * number,
            "column_kinds": column_kinds,
            "kind": kind,
        }
    )


def sorting_key(choices: TaskChoices) -> Tensor:
    """Keys by way, mechanism, activation, then width: tasks that share computations become neighbors.  (B,)"""
    mechanism = choices["way"].int() * 64 + choices["mechanisms"]
    return (mechanism * 16 + choices["activations"]) * 256 + choices["width"]


def _way(parts: Mapping[str, Tensor]) -> Tensor:
    """The way in which each task is solved.  (B,)"""
    rich = parts["hidden_variables"] == CODES["hidden_classes"]
    for name in ("kinds", "experiments", "instruments", "measurements"):
        rich = rich | (parts[name] > 0)
    way = torch.where(rich, RICH, PLAIN)
    for name in DISCRETE_MECHANISMS:
        way = torch.where(parts["mechanisms"] == CODES[name], DISCRETE, way)
    return torch.where(parts["mechanisms"] == CODES["normal_wishart"], NORMAL, way)


def _padded(table: Table, names: Sequence[str], length: int) -> list[float]:
    """Weights of the given names, padded with zeros."""
    return [table.get(name, 0.0) for name in names] + [0.0] * (length - len(names))


def _cumulative(weights: object, device: torch.device) -> Tensor:
    """Cumulative probabilities along the last dimension of nested lists of weights."""
    table = torch.tensor(weights, dtype=torch.float64)
    cumulative = table.cumsum(-1) / table.sum(-1, keepdim=True)
    # From the last name with a weight on, above every uniform draw: rounding must not let a draw pass it.
    later = table.sum(-1, keepdim=True) - table.cumsum(-1)
    cumulative = torch.where(later > 1e-9 * table.sum(-1, keepdim=True), cumulative, 2.0).float()
    # To a GPU by pinned memory, so that the host does not wait for it.
    return cumulative.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else cumulative.to(device)


def _choose(cumulative: Tensor, uniform: Tensor) -> Tensor:
    """Codes with the given cumulative probabilities.  (..., K), (...) -> (...)"""
    return (cumulative <= uniform[..., None]).sum(-1)


def _some_columns(task: Tensor, uniform: Tensor, share: Tensor) -> Tensor:
    """Choose columns of some tasks with a probability that `share` spreads over [MIN_CHANGED_SHARE, 1].  (B, P)"""
    return task[:, None] & (uniform < MIN_CHANGED_SHARE + (1 - MIN_CHANGED_SHARE) * share)


# Tasks of numbers

MIN_NOISE_VARIANCE = 1e-9  # a constant signal (all in one leaf) would leave its variable without any variance
# Raw variances can grow exponentially with depth. Effects see a variable at most at this standard deviation: against
# noise of about 1 that is R² = 1 − 1e-8, and the noise still has three digits in float32.
MAX_SCALE = 1e4

_SOFT_ACTIVATIONS = sum(not activation.hard for activation in ACTIVATIONS.values())


def solve_equations(choices: TaskChoices, causes: Causes, observations: int, generator: torch.Generator) -> Solution:
    """Solve tasks of numbers, sorted by `sorting_key`."""
    hidden = causes.hidden
    parents = causes.parents(through_equations=True)
    mechanisms = _mechanisms(choices, parents, generator)
    typed = None
    if choices.any("kind"):  # hidden causes are numbers
        kinds, on_host = (functional.pad(codes, (hidden, 0)) for codes in (choices["kind"], choices.on_host("kind")))
        alike = choices["kinds"] == CODES["all_alike"]
        typed = TypedColumns(kinds, on_host, alike, parents, observations, generator)
    values, explained_variance, touched = _in_order(
        choices, parents, causes, mechanisms, typed, observations, generator
    )
    # Where a signal is nearly constant, subtracting its mean in float32 has left a small mean behind.
    values = standardize(values[:, hidden:])
    if causes.instruments is not None:
        task = choices.tasks_with("instruments")
        values[task] = causes.instruments.take(task).read(values[task], generator)
    categories = None if typed is None else typed.categories(hidden)
    return Solution(values, explained_variance[:, hidden:], categories, touched)


def _mechanisms(choices: TaskChoices, parents: Tensor, generator: torch.Generator) -> list[tuple[slice, Mechanism]]:
    """Build the equations of each run of tasks that share a mechanism."""
    low, high = draw_weight_bounds(choices["weight_ranges"], generator)
    known, counts = list(MECHANISMS.values()), count_codes(choices.on_host("mechanisms"), len(MECHANISMS))
    runs: list[tuple[slice, Mechanism]] = []
    for code, run in runs_of(counts):
        equations = Equations(
            parents=parents[run],
            min_weight=low[run],
            max_weight=high[run],
            activation=choices["activations"][run],
            soft_tasks=int((choices.on_host("activations")[run] < _SOFT_ACTIVATIONS).sum()),
            width=choices["width"][run],
            max_width=int(choices.on_host("width")[run].max()),
            generator=generator,
        )
        runs.append((run, known[code](equations)))
    return runs


def _noise(
    choices: TaskChoices, slots: int, observations: int, generator: torch.Generator
) -> tuple[Tensor, Tensor | None]:
    """Draw standardized noise, and tell which variables hidden conditions or classes touch.  (B, P, N), (B, P)"""
    # `slots` variables, counted from the last: distributions may have been drawn for more hidden causes than are here.
    kinds = choices["noises"][:, -slots:]
    kind_counts = count_codes(choices.on_host("noises")[:, -slots:], len(NOISES))
    dials = torch.rand(len(choices), slots, 2, generator=generator, device=generator.device)
    homogeneous = (choices["noise_settings"] == CODES["homogeneous"])[:, None, None]
    noise = draw_noise(kinds, kind_counts, torch.where(homogeneous, dials[:, :1], dials), observations, generator)
    touched = None
    for name, push in (("pooled_conditions", push_by_conditions), ("hidden_classes", push_by_classes)):
        if choices.occur(name):
            noise, touched_here = push(noise, choices["hidden_variables"] == CODES[name], generator)
            touched = touched_here if touched is None else touched | touched_here
    return noise, touched


def _couplings(choices: TaskChoices, has_causes: Tensor, generator: torch.Generator) -> Tensor | None:
    """Draw κ, by which noise scales with the signal z as exp(κz), |κ| ~ Unif(0.3, 1); 0 for additive noise.  (B, P)"""
    if not choices.any("noise_couplings"):
        return None
    uniform = torch.empty(has_causes.shape, device=generator.device).uniform_(-1, 1, generator=generator)
    coupling = torch.copysign(0.3 + 0.7 * uniform.abs(), uniform)
    coupled = has_causes & (choices["noise_couplings"] > 0)[:, None]
    return torch.where(coupled, coupling, 0.0)


def _in_order(
    choices: TaskChoices,
    parents: Tensor,
    causes: Causes,
    mechanisms: Sequence[tuple[slice, Mechanism]],
    typed: TypedColumns | None,
    observations: int,
    generator: torch.Generator,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Standardized values, the signal's share of variance, and variables that hidden conditions touch.

    Values of raw equations are standardized too and have a separate scale: nothing overflows, and a small noise loses
    no digits to a large variance.  (B, P, N), (B, P), (B, P) or None
    """
    variables, hidden = parents.shape[1], causes.hidden
    # Variables overwrite their noise.
    values, touched = _noise(choices, variables, observations, generator)
    if causes.environments is not None:
        values[:, hidden:] = causes.environments.changed_noise(values[:, hidden:])
    if causes.regimes is not None:
        values[:, hidden:] = causes.regimes.shifted(values[:, hidden:])
    cause_count = parents.sum(2)  # (B, P)
    has_causes = cause_count > 0
    relative, absolute = draw_noise_variances(choices["signal_strengths"], choices["scales"], cause_count, generator)
    if causes.instruments is not None:
        quiet = causes.instruments.quiet(has_causes[:, hidden:])
        noise_variance = causes.instruments.noise_variance()
        relative[:, hidden:] = torch.where(quiet, noise_variance, relative[:, hidden:])
        absolute[:, hidden:] = torch.where(quiet, 0.0, absolute[:, hidden:])
    coupling = _couplings(choices, has_causes, generator)
    raw = (choices["scales"] > 0)[:, None]  # (B, 1), any scale but "restandardized"
    scale = None
    if choices.any("scales"):
        scale = torch.where(raw, absolute.sqrt(), 1.0)  # (B, P), correct for roots; the others follow one by one

    def settle(variable: int, value: Tensor, noise: Tensor) -> None:
        """Store the value of a variable, or what an experiment sets it to, as the level that it belongs to."""
        if causes.regimes is not None and variable >= hidden:
            value = causes.regimes.set(variable - hidden, value, noise)
        values[:, variable] = value
        if typed is not None:
            typed.settle(variable, values)

    # Layer normalization divides by n instead of n−1.
    bessel = observations / (observations - 1)
    bessel_weight = torch.full((observations,), bessel**-0.5, device=values.device)
    signal_variances, noise_variances = [], []
    first = max(1, hidden)  # hidden causes and the first variable are roots: their values are their noise
    if typed is not None or causes.regimes is not None:
        for root in range(first):
            settle(root, values[:, root].clone(), values[:, root].clone())
    for child in range(first, variables):
        felt = values[:, :child] if typed is None else typed.felt_by(child)
        signal = torch.cat(
            [
                mechanism.signal(child, felt[run], None if scale is None else scale[run, :child])
                for run, mechanism in mechanisms
            ]
        )  # (B, N)
        if causes.environments is not None and child >= hidden:
            signal = causes.environments.changed_signal(child - hidden, signal)
        z, _, inverse_deviation = torch.native_layer_norm(signal, (observations,), None, None, TINY)
        signal_variance = bessel * inverse_deviation.pow(-2)  # (B, 1)
        noise = values[:, child]
        if coupling is not None:
            noise = standardize(noise * torch.exp(coupling[:, child, None] * z.clamp_(-3, 3)))
        noise_variance = torch.addcmul(absolute[:, child, None], relative[:, child, None], signal_variance)
        noise_variance.clamp_min_(MIN_NOISE_VARIANCE)
        mixed = torch.addcmul(signal, noise, noise_variance.sqrt())
        value, _, inverse_deviation = torch.native_layer_norm(mixed, (observations,), bessel_weight, None, TINY)
        settle(child, value, noise)
        if scale is not None:
            deviation = (math.sqrt(bessel) / inverse_deviation).clamp_max_(MAX_SCALE)
            scale[:, child, None] = torch.where(raw, deviation, 1.0)
        signal_variances.append(signal_variance)
        noise_variances.append(noise_variance)

    explained = torch.zeros_like(absolute)
    if signal_variances:
        signal_variance, noise_variance = torch.cat(signal_variances, 1), torch.cat(noise_variances, 1)
        explained[:, first:] = signal_variance / (signal_variance + noise_variance)
    return values, explained * has_causes, None if touched is None else touched[:, hidden:]


# Linear normal tasks

MIN_DEGREES, MAX_DEGREES = 1.0, 15.0


def draw_regressions(parents: Tensor, degrees: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Draw β, [b, k, j] where `parents` has 1 for j → k, and σ; `degrees` (B,) is δ.  (B, P, P), (B, P)"""
    chi_square = 2 * standard_gamma((degrees[:, None] + parents.sum(2)) / 2, generator)
    deviation = chi_square.clamp_min(1e-12).rsqrt()
    normal = torch.randn(parents.shape, generator=generator, device=parents.device)
    return normal * deviation[:, :, None] * parents, deviation


def draw_observations(
    coefficients: Tensor, deviation: Tensor, observations: int, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Draw normal variables in generation order, with the share of variance explained.  (B, P, N), (B, P)"""
    tasks, variables = deviation.shape
    noise = torch.randn(tasks, variables, observations, generator=generator, device=deviation.device)
    noise *= deviation[:, :, None]
    equations = torch.eye(variables, device=deviation.device) - coefficients  # unit lower triangular
    values = torch.linalg.solve_triangular(equations, noise, upper=False, unitriangular=True)
    variance = (values - noise).var(2)
    return values, variance / (variance + deviation.square())


def solve_normal(causes: Causes, observations: int, generator: torch.Generator) -> Solution:
    """Solve tasks of a graph alone: hidden causes or experiments would identify more than the equivalence class."""
    parents = causes.adjacency.mT.float()
    uniform = torch.rand(len(parents), generator=generator, device=parents.device)
    degrees = MIN_DEGREES * (MAX_DEGREES / MIN_DEGREES) ** uniform
    values, explained = draw_observations(*draw_regressions(parents, degrees, generator), observations, generator)
    return Solution(standardize(values), explained)


# Other members of a class

MIN_STEPS, STEPS_PER_VARIABLE, MAX_STEPS = 20, 3, 150


def draw_equivalent_graphs(adjacency: Tensor, generator: torch.Generator) -> Tensor:
    """Draw a member of each graph's equivalence class by a walk that is uniform on the class in the limit.

    An edge j → k is covered if the causes of k are j and the causes of j; reversing it leads to another member, and any
    two members are connected by such steps (Chickering, 1995). A covered edge is chosen uniformly, and the step is
    taken with the probability of Metropolis and Hastings.  (B, P, P) bool
    """
    graphs = adjacency.float()
    tasks, variables, _ = graphs.shape
    covered = _covered(graphs)
    # Half of the walks are one step shorter, so that even and odd numbers of reversed edges are equally likely.
    waits = torch.rand(tasks, generator=generator, device=graphs.device) < 0.5
    for step in range(min(MIN_STEPS + STEPS_PER_VARIABLE * variables, MAX_STEPS)):
        dials = torch.rand(tasks, variables * variables + 1, generator=generator, device=graphs.device)
        chosen = (dials[:, 1:] * covered.flatten(1)).argmax(1)
        reversed_edge = torch.zeros_like(graphs).flatten(1).scatter_(1, chosen[:, None], 1.0).view_as(graphs)
        reversed_edge = reversed_edge * covered  # nothing where no edge is covered
        proposed = graphs - reversed_edge + reversed_edge.mT
        covered_then = _covered(proposed)
        taken = dials[:, 0] * covered_then.sum((1, 2)) < covered.sum((1, 2))
        taken = taken & ~waits if step == 0 else taken
        graphs = torch.where(taken[:, None, None], proposed, graphs)
        covered = torch.where(taken[:, None, None], covered_then, covered)
    return graphs > 0


def causal_order(adjacency: Tensor) -> Tensor:
    """Sort the variables of each graph by their number of ancestors: causes before effects.  (B, P)"""
    reached = adjacency.float()
    for _ in range(math.ceil(math.log2(adjacency.shape[1]))):
        reached = ((reached + torch.bmm(reached, reached)) > 0).float()
    return reached.sum(1).argsort(dim=1, stable=True)


def _covered(graphs: Tensor) -> Tensor:
    """1 for covered edges j → k, else 0.  (B, P, P)"""
    causes = graphs.sum(1)  # (B, P)
    shared = torch.bmm(graphs.mT, graphs)
    alike = (causes[:, None, :] == causes[:, :, None] + 1) & (shared == causes[:, :, None])
    return graphs * alike


# Tables

MIN_NOISY_SHARE = 0.3  # the share of noisy columns, in a task with noisy measurements, is uniform from here to 1

_REGIMES = [name for name, probability in EXPERIMENTS.items() if probability is not None]


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


def make_tables(choices: TaskChoices, variables: int, observations: int, generator: torch.Generator) -> MadeTables:
    """Make the tables of tasks of one way, sorted by `sorting_key`."""
    causes = _draw_causes(choices, variables, observations, generator)
    way = int(choices.on_host("way")[0])
    if way == NORMAL:
        solution = solve_normal(causes, observations, generator)
    elif way == DISCRETE:
        codes = choices.on_host("mechanisms") - CODES[next(iter(DISCRETE_MECHANISMS))]
        counts, max_levels = count_codes(codes, len(DISCRETE_MECHANISMS)), int(choices.on_host("width").max())
        solution = solve_discrete(counts, choices["width"], max_levels, causes, observations, generator)
    else:
        solution = solve_equations(choices, causes, observations, generator)
    values, categories = _shown(choices, causes, solution, generator)

    observed = None
    if choices.any("missing"):
        task = choices.tasks_with("missing")
        some = draw_observed(values[task], choices["missing"][task], generator)
        observed = torch.ones(values.shape, dtype=torch.bool, device=values.device)
        observed[task] = some
        values[task] = standardized_where_observed(values[task], some)
    if categories is not None:
        categories = categories.numbered(observed, generator)
        shown = categories.codes if observed is None else categories.codes * observed
        values = torch.where((categories.levels > 0)[:, :, None], shown.to(values.dtype), values)
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
    return _reoriented(made, choices.tasks_with("truths"), generator) if choices.any("truths") else made


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


def _draw_causes(choices: TaskChoices, variables: int, observations: int, generator: torch.Generator) -> Causes:
    """Draw graphs, hidden causes, environments, instruments and experiments."""
    edges = draw_edge_counts(choices["edge_counts"], variables, generator)
    families = np.unique(choices.on_host("graph_families").numpy()).tolist()
    spread = choices["edge_counts"] == CODES[SPREAD_OVER_ROOM] if choices.occur(SPREAD_OVER_ROOM) else None
    adjacency = sample_graphs(choices["graph_families"], families, edges, variables, generator, spread)
    hidden = int(choices.on_host("hidden").max())
    hidden_effects = torch.zeros(len(choices), 0, variables, dtype=torch.bool, device=generator.device)
    if hidden:
        factors = choices["hidden_variables"] == CODES["hidden_factors"]
        hidden_effects = sample_hidden_causes(choices["hidden"], hidden, variables, generator, factors)
    if choices.any("bystanders"):
        # Each variable is a bystander with a probability that is uniform from 0 to 1, drawn once per task.
        dials = torch.rand(len(choices), variables + 1, generator=generator, device=generator.device)
        matters = (dials[:, 1:] >= dials[:, :1]) | (choices["bystanders"] == 0)[:, None]
        adjacency = adjacency & matters[:, :, None] & matters[:, None, :]
        hidden_effects = hidden_effects & matters[:, None]

    allowed = torch.ones(len(choices), variables, dtype=torch.bool, device=generator.device)
    has_context = None
    if choices.occur("environments"):
        has_context = choices["experiments"] == CODES["environments"]
        # The first variable is the environment: it has no causes, hidden or not, and its effects are drawn below.
        allowed[:, 0] = ~has_context
        adjacency = adjacency.clone()
        adjacency[:, 0] &= ~has_context[:, None]
        hidden_effects = hidden_effects & allowed[:, None]
    instruments = None
    if choices.any("instruments"):
        instruments = draw_instruments(choices["instruments"] > 0, allowed, generator)
        adjacency = instruments.rewired_graph(adjacency)
        hidden_effects = instruments.rewired(hidden_effects)
        allowed = allowed & ~instruments.member
    environments = None
    if has_context is not None:
        environments = draw_environments(has_context, allowed, observations, generator)
        adjacency = adjacency.clone()
        adjacency[:, 0] |= environments.targets
    regimes = None
    if choices.occur(*_REGIMES):
        regimes = draw_regimes(choices["experiments"], allowed, observations, generator)
    return Causes(adjacency, hidden_effects, environments, regimes, instruments)


def _shown(
    choices: TaskChoices, causes: Causes, solution: Solution, generator: torch.Generator
) -> tuple[Tensor, Categories | None]:
    """The columns of the tables, standardized, including the codes of levels; and the levels."""
    values, categories = solution.values, solution.categories
    if categories is not None and causes.instruments is not None:
        categories = replace(categories, levels=categories.levels * ~causes.instruments.member)  # readings are numbers
    environments = causes.environments
    if environments is not None and int(choices.on_host("way")[0]) != DISCRETE:
        categories = Categories.none(values) if categories is None else categories
        categories = categories.with_column(0, environments.present, environments.member, MAX_ENVIRONMENTS)
    if choices.any("measurements"):
        task = choices.tasks_with("measurements")
        dials = torch.rand(len(task), values.shape[1] + 1, generator=generator, device=values.device)
        noisy = dials[:, 1:] < MIN_NOISY_SHARE + (1 - MIN_NOISY_SHARE) * dials[:, :1]
        if environments is not None:
            noisy[:, 0] &= ~environments.present[task]
        codes = None if categories is None else categories.codes[task]
        values[task], codes = noisy_readings(values[task], codes, noisy, generator)
        if categories is not None and codes is not None:
            categories = replace(categories, codes=categories.codes.index_copy(0, task, codes))
    for name, changes in (("distortion", [None, *DISTORTION_SHAPES.values()]), ("rounding", [*ROUNDINGS.values()])):
        if choices.any(name):
            kind_counts = count_codes(choices.on_host(name), len(changes))
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
