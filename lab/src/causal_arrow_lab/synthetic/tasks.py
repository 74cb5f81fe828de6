"""The task stream: distributions over causal discovery tasks, and batches of tasks drawn from them."""

# B tasks, N observations, P variables

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import torch
from torch import Tensor

from causal_arrow.errors import ConfigurationError
from causal_arrow_lab.batches import Batch, TensorBatch, Truth
from causal_arrow_lab.synthetic._columns import MISSING, SCORE_TABLES, TYPED_SHARES
from causal_arrow_lab.synthetic._discrete import DISCRETE_MECHANISMS
from causal_arrow_lab.synthetic._graph_families import SPREAD_OVER_ROOM, random_permutations
from causal_arrow_lab.synthetic._structure import EXPERIMENTS
from causal_arrow_lab.synthetic._tables import (
    PLAIN,
    PLANS,
    MadeTables,
    TaskChoices,
    draw_choices,
    make_tables,
    may_differ,
    sorting_key,
)
from causal_arrow_lab.synthetic.recipes import (
    BEYOND_NUMBERS,
    COMPONENTS,
    EVALUATION_ONLY,
    HELD_OUT,
    SHIFTS,
    Recipe,
    Table,
    check_weights,
    discrete,
    equivalence_class,
    listed,
    raw_equations,
    reoriented,
    typed,
    widened,
)

# Working memory of one pass, besides the batch itself. A GPU needs work in large pieces, a CPU in pieces that fit its
# cache. Fixed numbers, so that the same seed gives the same tasks whatever memory is free.
WORKING_BYTES = {"cuda": 2**31, "cpu": 2**24}


@dataclass(frozen=True, eq=False)
class TaskBatch(Batch):
    """Tasks of one shape: tables of observations, the causal graph behind each, and how each was made.

    The values are float32. Columns of numbers are standardized with the n − 1 standard deviation over their observed
    cells; columns of levels hold codes; cells that are not observed hold 0. A part of `tables` is None where the
    distribution cannot fill it in any task.

    Examples
    --------
    >>> import torch
    >>> from causal_arrow_lab import TaskDistribution
    >>> generator = torch.Generator().manual_seed(0)
    >>> tasks = TaskDistribution.paper().sample(4, observations=50, variables=6, generator=generator)
    >>> len(tasks.names("graph_families"))
    4
    """

    tables: TensorBatch
    """The tables."""
    truth: Truth
    """The graphs, and the pairs that share a hidden cause."""
    order: Tensor
    """The variables in the order of generation, causes before effects.  (B, P)"""
    explained_variance: Tensor
    """R² of each equation, before columns are changed; 0 for roots and in the recipe `discrete`.  (B, P)"""
    noises: Tensor
    """The noise distribution of each variable, indexing COMPONENTS["noises"].  (B, P)"""
    recipe: Tensor
    """The recipe of each task, indexing the recipes of the distribution.  (B,)"""
    choices: Mapping[str, Tensor]
    """The choice of each task from each table of components, indexing COMPONENTS[table].  (B,) each"""

    @property
    def data(self) -> Tensor:
        """The values of the tables.  (B, N, P)"""
        values: Tensor = self.tables.values
        return values

    @property
    def adjacency(self) -> Tensor:
        """The true graphs: adjacency[b, j, k] means j → k in task b.  (B, P, P) bool"""
        return self.truth.adjacency

    def names(self, table: str) -> list[str]:
        """The component that each task got from a table such as "graph_families", by name."""
        return [COMPONENTS[table][code] for code in self.choices[table].tolist()]


@dataclass(frozen=True)
class TaskDistribution:
    """A weighted mixture of recipes. A task is drawn by choosing a recipe, then a component from each of its tables.

    Examples
    --------
    >>> from causal_arrow_lab import TaskDistribution
    >>> paper = TaskDistribution.paper()
    >>> "erdos_renyi" in paper.components
    True
    >>> "uniform" in paper.without("uniform").components
    False
    >>> list(TaskDistribution.any().recipes)[-4:]
    ['typed', 'discrete', 'equivalence_class', 'reoriented']
    >>> TaskDistribution.broad().reweighted({"widened": 5.0}).recipes["widened"].weight
    5.0
    """

    recipes: Mapping[str, Recipe]
    """The recipes by name, each with its weight."""

    def __post_init__(self) -> None:
        check_weights("recipes", {name: recipe.weight for name, recipe in self.recipes.items()})

    @classmethod
    def paper(cls) -> TaskDistribution:
        """The tasks of section 4.1 of the paper: the recipe `paper`."""
        return cls({"paper": Recipe()})

    @classmethod
    def broad(cls) -> TaskDistribution:
        """The first training distribution of arrow-base: half of the tasks as in the paper, half beyond it.

        It is also used in validation and in the benchmark, and must not change; a run that needs other weights for
        some components sets them, as the configuration `base` does.
        """
        return cls({"paper": Recipe(weight=3.0), "raw_equations": raw_equations(), "widened": widened()})

    @classmethod
    def any(cls) -> TaskDistribution:
        """Tables as people have them: a third of the tasks as in `broad`, two thirds beyond tables of numbers.

        The latter have kinds of columns, missing cells, experiments, hidden causes or instruments, or identify only
        an equivalence class.
        """
        # For few variables every possible number of edges is equally likely; for ten and more it is as in the paper.
        renamed = {"edges_up_to_4p": SPREAD_OVER_ROOM}
        numbers = {}
        for name, recipe in cls.broad().recipes.items():
            edge_counts = {renamed.get(each, each): weight for each, weight in recipe.edge_counts.items()}
            numbers[name] = dataclasses.replace(recipe, edge_counts=edge_counts)
        beyond = {
            "typed": typed,
            "discrete": discrete,
            "equivalence_class": equivalence_class,
            "reoriented": reoriented,
        }
        return cls({**numbers, **{name: recipe() for name, recipe in beyond.items()}})

    @classmethod
    def shifted(cls, *shifts: str) -> TaskDistribution:
        """The paper's tasks with some of the shifts "graphs", "functions" and "noise". For evaluation only."""
        if unknown := set(shifts) - set(SHIFTS):
            raise ConfigurationError(f"There is no shift {listed(unknown)}. The shifts are {listed(SHIFTS)}.")
        tables = dict(SHIFTS[shift] for shift in shifts)
        return cls({"paper": dataclasses.replace(Recipe(), **tables)})  # type: ignore[arg-type]

    @classmethod
    def held_out(cls, component: str | None = None) -> TaskDistribution:
        """The paper's tasks with one held-out component instead of its table, or with all. For evaluation only."""
        if component is None:
            return cls({"paper": dataclasses.replace(Recipe(), **HELD_OUT)})  # type: ignore[arg-type]
        tables = {name: {component: 1.0} for name, table in HELD_OUT.items() if component in table}
        if not tables:
            known = listed(name for table in HELD_OUT.values() for name in table)
            raise ConfigurationError(f"There is no held-out component {component!r}. Choose from {known}.")
        return cls({"paper": dataclasses.replace(Recipe(), **tables)})  # type: ignore[arg-type]

    @classmethod
    def for_training(cls, name: str, without: Sequence[str] = (), weights: Table | None = None) -> TaskDistribution:
        """The training distribution "paper", "broad" or "any", with some components switched off or reweighted.

        Raises ConfigurationError if it holds anything that is reserved for evaluation.
        """
        if name not in TRAINING_DISTRIBUTIONS:
            raise ConfigurationError(
                f"There is no training distribution {name!r}. Choose from {listed(TRAINING_DISTRIBUTIONS)}."
            )
        distribution, weights = TRAINING_DISTRIBUTIONS[name](), weights or {}
        named = {name.rpartition(".")[2] for name in weights}
        if forbidden := EVALUATION_ONLY & (distribution.components | named):
            raise ConfigurationError(f"Training tasks must not contain {listed(forbidden)}: kept for evaluation.")
        return distribution.without(*without).reweighted(weights)

    @property
    def components(self) -> frozenset[str]:
        """Names of all components that this distribution can draw."""
        possible = (recipe.components() for recipe in self.recipes.values() if recipe.weight > 0)
        return frozenset().union(*possible)

    @property
    def only_for_evaluation(self) -> bool:
        """Whether it holds components that no network may train on: shifts or held-out ones."""
        return bool(self.components & EVALUATION_ONLY)

    def without(self, *names: str) -> TaskDistribution:
        """Switch off components or recipes, and with them recipes that have nothing else in a table."""
        return self._restricted(names, keep=lambda name, table: name not in names)

    def only(self, *names: str) -> TaskDistribution:
        """Keep only these components in their tables, or only these recipes. Other tables stay as they are."""
        return self._restricted(names, keep=lambda name, table: name in names or not table & set(names))

    def reweighted(self, weights: Table) -> TaskDistribution:
        """Change weights of components or recipes by name; those with weight 0 can be switched on.

        "widened.regulators" is the component `regulators` in the recipe `widened` only.
        """
        of_one = {f"{name}.{part}" for name, recipe in self.recipes.items() for part in recipe.names()}
        everywhere = set(self.recipes).union(*(recipe.names() for recipe in self.recipes.values()))
        self._check_names(weights, everywhere | {name for name in of_one if name in weights})
        recipes = {}
        for name, recipe in self.recipes.items():
            prefix = f"{name}."
            own = {part.removeprefix(prefix): weight for part, weight in weights.items() if part.startswith(prefix)}
            changed = recipe.reweighted({**weights, **own})
            recipes[name] = dataclasses.replace(changed, weight=weights.get(name, recipe.weight))
        return TaskDistribution(recipes)

    def sample(self, tasks: int, observations: int, variables: int, generator: torch.Generator) -> TaskBatch:
        """Draw tasks of one shape on the generator's device. The same generator state gives the same tasks."""
        for name, value, least in (("tasks", tasks, 1), ("observations", observations, 2), ("variables", variables, 2)):
            if value < least:
                raise ConfigurationError(f"{name} must be {least} or more, got {value}.")
        # Under autocast these products would lose small noises: mixed precision is for the model.
        with torch.no_grad(), torch.autocast(generator.device.type, enabled=False):
            return _sample(list(self.recipes.values()), tasks, observations, variables, generator)

    def _check_names(self, names: Iterable[str], known: AbstractSet[str]) -> None:
        if unknown := set(names) - known:
            raise ConfigurationError(f"This task distribution has no {listed(unknown)}. It has {listed(known)}.")

    def _restricted(self, names: Sequence[str], keep: Callable[[str, set[str]], bool]) -> TaskDistribution:
        self._check_names(names, self.components | set(self.recipes))
        recipes = {}
        for name, recipe in self.recipes.items():
            restricted = recipe.restricted(keep)
            if keep(name, set(self.recipes)) and restricted is not None:
                recipes[name] = restricted
        if not recipes:
            raise ConfigurationError(f"No recipe is left after {listed(names)}: each lacks something it needs.")
        return TaskDistribution(recipes)


TRAINING_DISTRIBUTIONS: Mapping[str, Callable[[], TaskDistribution]] = {
    "paper": TaskDistribution.paper,
    "broad": TaskDistribution.broad,
    "any": TaskDistribution.any,
}


# Components that fill each optional part of a TensorBatch; without any of them a distribution leaves it out.
_OBSERVED = frozenset(MISSING) - {"complete"}
_INTERVENED = frozenset(name for name, probability in EXPERIMENTS.items() if probability is not None)
_LEVELS = (frozenset(TYPED_SHARES) - {"numbers"}) | {*DISCRETE_MECHANISMS, "environments"}


def _sample(
    recipes: Sequence[Recipe], tasks: int, observations: int, variables: int, generator: torch.Generator
) -> TaskBatch:
    device = generator.device
    choices = draw_choices(recipes, tasks, variables, generator)
    index = sorting_key(choices).argsort(stable=True)  # (B,) index in the batch of each task of the sorted list
    sorted_choices = choices.sorted_by(index)  # the only time that the host waits for the device

    possible = frozenset().union(*(recipe.components() for recipe in recipes if recipe.weight > 0))
    parts = _memory(tasks, observations, variables, possible, device)
    # The i-th variable in generation order becomes column order[i]: the order of columns is uninformative.
    order = random_permutations(tasks, variables, generator)
    for run in _runs(sorted_choices, observations, variables, device.type):
        made = make_tables(sorted_choices.take(run), variables, observations, generator)
        _fill(parts, made, index[run, None], order[index[run]])
    noises = torch.empty(tasks, variables, dtype=torch.int64, device=device)
    noises.scatter_(1, order, choices["noises"][:, -variables:].long())
    by_task = {
        name: choices[name]
        for name in COMPONENTS
        if name in choices.columns
        and choices[name].ndim == 1
        and (name not in BEYOND_NUMBERS or may_differ(recipes, name))
    }
    explained, truth = parts.pop("explained_variance"), Truth(parts.pop("adjacency"), parts.pop("confounded"))
    # Computed here, where tasks are drawn ahead, so that the network does not wait for the device.
    widest = int(parts["levels"].max()) if "levels" in parts else None
    return TaskBatch(TensorBatch(**parts, widest=widest), truth, order, explained, noises, choices["recipe"], by_task)


def _memory(
    tasks: int, observations: int, variables: int, possible: AbstractSet[str], device: torch.device
) -> dict[str, Tensor]:
    """Memory for the parts of a batch by name, without those that no possible component fills."""
    columns, cells, pairs = (tasks, variables), (tasks, observations, variables), (tasks, variables, variables)
    parts = {
        "values": torch.empty(cells, device=device),
        "adjacency": torch.empty(pairs, dtype=torch.bool, device=device),
        "confounded": torch.empty(pairs, dtype=torch.bool, device=device),
        "explained_variance": torch.empty(columns, device=device),
    }
    if possible & _OBSERVED:
        parts["observed"] = torch.ones(cells, dtype=torch.bool, device=device)
    if possible & _INTERVENED:
        parts["intervened"] = torch.zeros(cells, dtype=torch.bool, device=device)
    if possible & _LEVELS:
        parts["levels"] = torch.zeros(columns, dtype=torch.int64, device=device)
        parts["ordered"] = torch.zeros(columns, dtype=torch.bool, device=device)
    return parts


def _fill(parts: Mapping[str, Tensor], made: MadeTables, task: Tensor, column: Tensor) -> None:
    """Copy tables to the tasks `task` (b, 1), and variables to the columns `column` (b, P)."""
    pairs = task[:, :, None], column[:, :, None], column[:, None, :]
    for name, part in parts.items():
        given = getattr(made, name)
        if name in ("adjacency", "confounded"):
            part[pairs] = given
        elif given is not None:
            (part if part.ndim == 2 else part.mT)[task, column] = given


def _runs(choices: TaskChoices, observations: int, variables: int, device_type: str) -> Iterator[slice]:
    """Split sorted tasks into runs of one way that fit the working memory if each task costs as much as the
    costliest."""
    budget = WORKING_BYTES["cuda" if device_type == "cuda" else "cpu"]
    plans = list(PLANS.values())
    ways, codes, widths = (choices.on_host(name).tolist() for name in ("way", "mechanisms", "width"))
    first, costliest = 0, 0
    for task, (way, code, width) in enumerate(zip(ways, codes, widths, strict=True)):
        # Beyond plain numbers a variable also has codes, scores for its effects, and masks.
        per_variable = 4 if way == PLAIN else 10 + SCORE_TABLES
        per_observation = per_variable * variables + 8 + plans[code].floats.total(variables, width)
        cost = 4 * (observations * per_observation + (6 if way == PLAIN else 12) * variables**2)
        # Such tasks do more work per variable, and larger passes are faster.
        cost = cost if way == PLAIN else cost // 2
        if task > first and (way != ways[first] or (task + 1 - first) * max(cost, costliest) > budget):
            yield slice(first, task)
            first, costliest = task, 0
        costliest = max(cost, costliest)
    yield slice(first, len(choices))
