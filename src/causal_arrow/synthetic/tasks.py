"""The task stream: distributions over causal discovery tasks, and batches of tasks drawn from them.

>>> tasks = TaskDistribution.broad().sample(2048, observations=500, variables=50, generator=generator)
>>> tasks.data.shape
torch.Size([2048, 500, 50])
"""

# B tasks, N observations, P variables

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import torch
from torch import Tensor

from causal_arrow.batches import Batch, TableBatch, Truth
from causal_arrow.errors import ConfigurationError
from causal_arrow.synthetic.choices import Choices, draw_choices, sorting_key
from causal_arrow.synthetic.equations import solve
from causal_arrow.synthetic.graph_families import random_permutations
from causal_arrow.synthetic.mechanisms import MECHANISMS
from causal_arrow.synthetic.recipes import (
    COMPONENTS,
    EVALUATION_ONLY,
    HELD_OUT,
    SHIFTS,
    Recipe,
    Table,
    check_weights,
    listed,
    raw_equations,
    widened,
)

# Working memory of one pass, beside the batch itself. A GPU wants work in large pieces, a CPU wants it in its cache.
# Fixed numbers, so that the same seed gives the same tasks whatever memory happens to be free.
WORKING_BYTES = {"cuda": 2**31, "cpu": 2**24}


@dataclass(frozen=True, eq=False)
class TaskBatch(Batch):
    """Tasks of one shape: tables of observations, the causal graph behind each, and how each was made.

    The values are float32, each column standardized with the n − 1 standard deviation.
    """

    tables: TableBatch
    truth: Truth
    order: Tensor  # (B, P) the variables in the order of generation, causes before effects
    explained_variance: Tensor  # (B, P) R² of the structural equation, before columns are disturbed; 0 for a root
    noises: Tensor  # (B, P) noise law of each variable, indexing COMPONENTS["noises"]
    recipe: Tensor  # (B,) indexing the distribution's recipes
    choices: Mapping[str, Tensor]  # (B,) for each table drawn from once a task, indexing COMPONENTS[table]

    @property
    def data(self) -> Tensor:
        """The values of the tables.  (B, N, P)"""
        return self.tables.values

    @property
    def adjacency(self) -> Tensor:
        """adjacency[b, j, k] means j → k in task b.  (B, P, P) bool"""
        return self.truth.adjacency

    def names(self, table: str) -> list[str]:
        """The component that each task got from a table, by name."""
        return [COMPONENTS[table][code] for code in self.choices[table].tolist()]


@dataclass(frozen=True)
class TaskDistribution:
    """A weighted mixture of recipes. A task is drawn by choosing a recipe, then a component from each of its tables."""

    recipes: Mapping[str, Recipe]

    def __post_init__(self) -> None:
        check_weights("recipes", {name: recipe.weight for name, recipe in self.recipes.items()})

    @classmethod
    def paper(cls) -> TaskDistribution:
        """Section 4.1 of the paper."""
        return cls({"paper": Recipe()})

    @classmethod
    def broad(cls) -> TaskDistribution:
        """What the shipped weights learn from: half of the tasks as in the paper, half beyond it.

        It is also the yardstick of validation and of the benchmark, and stays as it is; a run that wants other weights
        for some components sets them, as the configuration `base` does.
        """
        return cls(
            {
                "paper": Recipe(weight=3.0),
                "raw_equations": dataclasses.replace(raw_equations(), weight=1.0),
                "widened": dataclasses.replace(widened(), weight=2.0),
            }
        )

    @classmethod
    def shifted(cls, *shifts: str) -> TaskDistribution:
        """The paper's distribution shifts, for evaluation only: any of "graphs", "functions" and "noise" at once."""
        if unknown := set(shifts) - set(SHIFTS):
            raise ConfigurationError(f"There is no shift {listed(unknown)}. The shifts are {listed(SHIFTS)}.")
        tables = dict(SHIFTS[shift] for shift in shifts)
        return cls({"paper": dataclasses.replace(Recipe(), **tables)})  # type: ignore[arg-type]

    @classmethod
    def held_out(cls, component: str | None = None) -> TaskDistribution:
        """The paper's tasks with one held-out component in its table, or with all of them. For evaluation only."""
        if component is None:
            return cls({"paper": dataclasses.replace(Recipe(), **HELD_OUT)})  # type: ignore[arg-type]
        tables = {name: {component: 1.0} for name, table in HELD_OUT.items() if component in table}
        if not tables:
            known = listed(name for table in HELD_OUT.values() for name in table)
            raise ConfigurationError(f"There is no held-out component {component!r}. Choose from {known}.")
        return cls({"paper": dataclasses.replace(Recipe(), **tables)})  # type: ignore[arg-type]

    @classmethod
    def for_training(cls, name: str, without: Sequence[str] = (), weights: Table | None = None) -> TaskDistribution:
        """A training distribution as a configuration names it: "paper" or "broad", with components switched off or
        reweighted."""
        if name not in TRAINING_DISTRIBUTIONS:
            raise ConfigurationError(
                f"There is no training distribution {name!r}. Choose from {listed(TRAINING_DISTRIBUTIONS)}."
            )
        distribution, weights = TRAINING_DISTRIBUTIONS[name](), weights or {}
        if forbidden := EVALUATION_ONLY & (distribution.components | set(weights)):
            raise ConfigurationError(f"Training tasks must not contain {listed(forbidden)}: kept for evaluation.")
        return distribution.without(*without).reweighted(weights)

    @property
    def components(self) -> frozenset[str]:
        """Everything that can come out of this distribution, by name."""
        possible = (recipe.components() for recipe in self.recipes.values() if recipe.weight > 0)
        return frozenset().union(*possible)

    @property
    def only_for_evaluation(self) -> bool:
        """Whether it holds anything that no model may train on."""
        return bool(self.components & EVALUATION_ONLY)

    def without(self, *names: str) -> TaskDistribution:
        """The same with these components or recipes switched off. A recipe with nothing else in a table goes too."""
        return self._restricted(names, keep=lambda name, table: name not in names)

    def only(self, *names: str) -> TaskDistribution:
        """The same with nothing but these components in their tables, or nothing but these recipes."""
        return self._restricted(names, keep=lambda name, table: name in names or not table & set(names))

    def reweighted(self, weights: Table) -> TaskDistribution:
        """The same with other weights for some of its components or recipes; those with weight 0 can be switched on."""
        self._check_names(weights, set(self.recipes).union(*(recipe.names() for recipe in self.recipes.values())))
        recipes = {
            name: dataclasses.replace(recipe.reweighted(weights), weight=weights.get(name, recipe.weight))
            for name, recipe in self.recipes.items()
        }
        return TaskDistribution(recipes)

    def sample(self, tasks: int, observations: int, variables: int, generator: torch.Generator) -> TaskBatch:
        """`tasks` tasks of one shape, on the generator's device. The same generator state gives the same tasks."""
        for name, value, least in (("tasks", tasks, 1), ("observations", observations, 2), ("variables", variables, 2)):
            if value < least:
                raise ConfigurationError(f"{name} must be {least} or more, got {value}.")
        # Mixed precision is the model's business: under autocast these products would lose the small noises.
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
}


def _sample(
    recipes: Sequence[Recipe], tasks: int, observations: int, variables: int, generator: torch.Generator
) -> TaskBatch:
    device = generator.device
    choices = draw_choices(recipes, tasks, variables, generator)
    place = sorting_key(choices).argsort(stable=True)  # (B,) where in the batch each task of the sorted list goes
    sorted_choices = choices.take(place)
    on_host = sorted_choices.on_host()  # the only time that the host waits for the device

    data = torch.empty(tasks, observations, variables, device=device)
    adjacency = torch.empty(tasks, variables, variables, dtype=torch.bool, device=device)
    explained_variance = torch.empty(tasks, variables, device=device)
    # Variable at place i of the generation order goes to column order[i]: the columns tell nothing.
    order = random_permutations(tasks, variables, generator)
    for run in _runs(on_host, observations, variables, device.type):
        solved = solve(sorted_choices.take(run), on_host.take(run), variables, observations, generator)
        task, column = place[run, None], order[place[run]]  # (b, 1), (b, P)
        data.mT[task, column] = solved.values
        adjacency[task[:, :, None], column[:, :, None], column[:, None, :]] = solved.adjacency
        explained_variance[task, column] = solved.explained_variance
    noises = torch.empty(tasks, variables, dtype=torch.int64, device=device)
    noises.scatter_(1, order, choices["noises"][:, -variables:].long())
    by_task = {name: choices[name] for name in COMPONENTS if name in choices.columns and name != "noises"}
    return TaskBatch(TableBatch(data), Truth(adjacency), order, explained_variance, noises, choices["recipe"], by_task)


def _runs(on_host: Choices, observations: int, variables: int, device_type: str) -> Iterator[slice]:
    """Runs of sorted tasks that fit the working memory, reckoning each task at the cost of the run's costliest."""
    budget = WORKING_BYTES["cuda" if device_type == "cuda" else "cpu"]
    mechanisms = list(MECHANISMS.values())
    first, costliest = 0, 0
    for task, (code, width) in enumerate(zip(on_host["mechanisms"].tolist(), on_host["width"].tolist(), strict=True)):
        per_observation = 4 * variables + 8 + mechanisms[code].floats_per_observation(width, variables)
        cost = 4 * (observations * per_observation + 6 * variables**2)
        if task > first and (task + 1 - first) * max(cost, costliest) > budget:
            yield slice(first, task)
            first, costliest = task, 0
        costliest = max(cost, costliest)
    yield slice(first, len(on_host))
