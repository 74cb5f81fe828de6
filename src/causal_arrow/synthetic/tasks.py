"""The task stream: distributions over causal discovery tasks, and batches of tasks drawn from them.

>>> import torch
>>> from causal_arrow import TaskDistribution
>>> generator = torch.Generator().manual_seed(0)
>>> tasks = TaskDistribution.broad().sample(8, observations=100, variables=5, generator=generator)
>>> tasks.data.shape
torch.Size([8, 100, 5])
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
from causal_arrow.synthetic.choices import PLAIN, PLANS, Choices, draw_choices, says_something, sorting_key
from causal_arrow.synthetic.discrete import DISCRETE_MECHANISMS
from causal_arrow.synthetic.experiments import EXPERIMENTS
from causal_arrow.synthetic.graph_families import SPREAD_OVER_ROOM, random_permutations
from causal_arrow.synthetic.holes import MISSING
from causal_arrow.synthetic.kinds import SCORE_TABLES, TYPED_SHARES
from causal_arrow.synthetic.recipes import (
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
from causal_arrow.synthetic.tables import Made, make_tables

# Working memory of one pass, beside the batch itself. A GPU wants work in large pieces, a CPU wants it in its cache.
# Fixed numbers, so that the same seed gives the same tasks whatever memory happens to be free.
WORKING_BYTES = {"cuda": 2**31, "cpu": 2**24}


@dataclass(frozen=True, eq=False)
class TaskBatch(Batch):
    """Tasks of one shape: tables of observations, the causal graph behind each, and how each was made.

    The values are float32. Columns of numbers are standardized with the n − 1 standard deviation over their observed
    cells; columns of levels hold codes; cells that are not observed hold 0. A part of `tables` is None where the
    distribution cannot fill it in any task.

    Parameters
    ----------
    tables
        The tables.
    truth
        The graphs, and which pairs share a hidden cause.
    order
        The variables in the order of generation, causes before effects.  (B, P)
    explained_variance
        R² of each equation, before columns are disturbed; 0 for roots and in the recipe `discrete`.  (B, P)
    noises
        The noise law of each variable, indexing COMPONENTS["noises"].  (B, P)
    recipe
        Which of the distribution's recipes each task is from.  (B,)
    choices
        What was drawn once per task from each table of components, indexing COMPONENTS[table].  (B,) each

    Examples
    --------
    >>> import torch
    >>> from causal_arrow import TaskDistribution
    >>> generator = torch.Generator().manual_seed(0)
    >>> paper = TaskDistribution.paper()
    >>> tasks = paper.sample(4, observations=50, variables=6, generator=generator)
    >>> len(tasks)
    4
    """

    tables: TableBatch
    truth: Truth
    order: Tensor  # (B, P) the variables in the order of generation, causes before effects
    explained_variance: Tensor  # (B, P) R² of the equation, before columns are disturbed; 0 for roots and in `discrete`
    noises: Tensor  # (B, P) noise law of each variable, indexing COMPONENTS["noises"]
    recipe: Tensor  # (B,) indexing the distribution's recipes
    choices: Mapping[str, Tensor]  # (B,) for each table drawn from once a task, indexing COMPONENTS[table]

    @property
    def data(self) -> Tensor:
        """The values of the tables.  (B, N, P)

        Returns
        -------
        Tensor
            float32.

        Examples
        --------
        >>> tasks.data.shape
        torch.Size([4, 50, 6])
        """
        return self.tables.values

    @property
    def adjacency(self) -> Tensor:
        """The true graphs: adjacency[b, j, k] means j → k in task b.  (B, P, P) bool

        Returns
        -------
        Tensor
            Every graph is acyclic.

        Examples
        --------
        >>> tasks.adjacency.shape
        torch.Size([4, 6, 6])
        """
        return self.truth.adjacency

    def names(self, table: str) -> list[str]:
        """The component that each task got from a table, by name.

        Parameters
        ----------
        table
            The name of a table of components, such as "graph_families".

        Returns
        -------
        list of str
            One name per task.

        Examples
        --------
        >>> len(tasks.names("graph_families"))
        4
        """
        return [COMPONENTS[table][code] for code in self.choices[table].tolist()]


@dataclass(frozen=True)
class TaskDistribution:
    """A weighted mixture of recipes. A task is drawn by choosing a recipe, then a component from each of its tables.

    Parameters
    ----------
    recipes
        The recipes by name, each with its weight.

    Examples
    --------
    >>> import torch
    >>> from causal_arrow import TaskDistribution
    >>> paper = TaskDistribution.paper()
    >>> "erdos_renyi" in paper.components
    True
    """

    recipes: Mapping[str, Recipe]

    def __post_init__(self) -> None:
        check_weights("recipes", {name: recipe.weight for name, recipe in self.recipes.items()})

    @classmethod
    def paper(cls) -> TaskDistribution:
        """The tasks of section 4.1 of the paper.

        Returns
        -------
        TaskDistribution
            With the one recipe `paper`.

        Examples
        --------
        >>> list(TaskDistribution.paper().recipes)
        ['paper']
        """
        return cls({"paper": Recipe()})

    @classmethod
    def broad(cls) -> TaskDistribution:
        """What the training of arrow-base began with: half of the tasks as in the paper, half beyond it.

        It is also the yardstick of validation and of the benchmark, and stays as it is; a run that wants other weights
        for some components sets them, as the configuration `base` does.

        Returns
        -------
        TaskDistribution
            With three recipes.

        Examples
        --------
        >>> list(TaskDistribution.broad().recipes)
        ['paper', 'raw_equations', 'widened']
        """
        return cls(
            {
                "paper": Recipe(weight=3.0),
                "raw_equations": dataclasses.replace(raw_equations(), weight=1.0),
                "widened": dataclasses.replace(widened(), weight=2.0),
            }
        )

    @classmethod
    def any(cls) -> TaskDistribution:
        """Tables as people have them: a third of the tasks as in `broad`, two thirds beyond tables of numbers.

        Those have kinds of columns, missing cells, experiments, hidden causes, instruments, or nothing to tell beyond
        an equivalence class.

        Returns
        -------
        TaskDistribution
            With the recipes of `broad` and four more.

        Examples
        --------
        >>> list(TaskDistribution.any().recipes)[-4:]
        ['typed', 'discrete', 'equivalence_class', 'reoriented']
        """
        # For few variables every number of edges that fits is as likely; for ten and more it is the paper's law.
        numbers = {
            name: dataclasses.replace(recipe, edge_counts=_spread_over_room(recipe.edge_counts))
            for name, recipe in cls.broad().recipes.items()
        }
        return cls(
            {
                **numbers,
                "typed": dataclasses.replace(typed(), weight=8.0),
                "discrete": dataclasses.replace(discrete(), weight=2.5),
                "equivalence_class": dataclasses.replace(equivalence_class(), weight=1.5),
                "reoriented": dataclasses.replace(reoriented(), weight=1.0),
            }
        )

    @classmethod
    def shifted(cls, *shifts: str) -> TaskDistribution:
        """The paper's distribution shifts, for evaluation only.

        Parameters
        ----------
        *shifts
            Any of "graphs", "functions" and "noise".

        Returns
        -------
        TaskDistribution
            The paper's, with those tables of components replaced.

        Examples
        --------
        >>> TaskDistribution.shifted("noise").only_for_evaluation
        True
        """
        if unknown := set(shifts) - set(SHIFTS):
            raise ConfigurationError(f"There is no shift {listed(unknown)}. The shifts are {listed(SHIFTS)}.")
        tables = dict(SHIFTS[shift] for shift in shifts)
        return cls({"paper": dataclasses.replace(Recipe(), **tables)})  # type: ignore[arg-type]

    @classmethod
    def held_out(cls, component: str | None = None) -> TaskDistribution:
        """The paper's tasks with held-out components, for evaluation only.

        Parameters
        ----------
        component
            The one component that replaces its table; by default all of them are in.

        Returns
        -------
        TaskDistribution
            No training configuration may name it.

        Examples
        --------
        >>> TaskDistribution.held_out().only_for_evaluation
        True
        """
        if component is None:
            return cls({"paper": dataclasses.replace(Recipe(), **HELD_OUT)})  # type: ignore[arg-type]
        tables = {name: {component: 1.0} for name, table in HELD_OUT.items() if component in table}
        if not tables:
            known = listed(name for table in HELD_OUT.values() for name in table)
            raise ConfigurationError(f"There is no held-out component {component!r}. Choose from {known}.")
        return cls({"paper": dataclasses.replace(Recipe(), **tables)})  # type: ignore[arg-type]

    @classmethod
    def for_training(cls, name: str, without: Sequence[str] = (), weights: Table | None = None) -> TaskDistribution:
        """A training distribution as a configuration names it.

        Parameters
        ----------
        name
            "paper", "broad" or "any".
        without
            Components or recipes that are switched off.
        weights
            Other weights for some components or recipes.

        Returns
        -------
        TaskDistribution
            A ConfigurationError instead, if it holds anything that is kept for evaluation.

        Examples
        --------
        >>> tasks = TaskDistribution.for_training("paper", without=["erdos_renyi"])
        >>> "erdos_renyi" in tasks.components
        False
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
        """Everything that can come out of this distribution, by name.

        Returns
        -------
        frozenset of str
            Names of components.

        Examples
        --------
        >>> "uniform" in paper.components
        True
        """
        possible = (recipe.components() for recipe in self.recipes.values() if recipe.weight > 0)
        return frozenset().union(*possible)

    @property
    def only_for_evaluation(self) -> bool:
        """Whether it holds anything that no model may train on.

        Returns
        -------
        bool
            True for the shifts of the paper and for held-out components.

        Examples
        --------
        >>> paper.only_for_evaluation
        False
        """
        return bool(self.components & EVALUATION_ONLY)

    def without(self, *names: str) -> TaskDistribution:
        """The same with some components or recipes switched off.

        Parameters
        ----------
        *names
            Components or recipes. A recipe that has nothing else in a table is switched off too.

        Returns
        -------
        TaskDistribution
            A new one.

        Examples
        --------
        >>> "uniform" in paper.without("uniform").components
        False
        """
        return self._restricted(names, keep=lambda name, table: name not in names)

    def only(self, *names: str) -> TaskDistribution:
        """The same with nothing but some components in their tables, or nothing but some recipes.

        Parameters
        ----------
        *names
            Components or recipes.

        Returns
        -------
        TaskDistribution
            A new one; tables without any of these components stay as they are.

        Examples
        --------
        >>> normal = paper.only("normal")
        >>> "uniform" in normal.components
        False
        """
        return self._restricted(names, keep=lambda name, table: name in names or not table & set(names))

    def reweighted(self, weights: Table) -> TaskDistribution:
        """The same with other weights for some of its components or recipes.

        Parameters
        ----------
        weights
            Weights by name; those with weight 0 can be switched on. "widened.regulators" is the component `regulators`
            in the recipe `widened` alone.

        Returns
        -------
        TaskDistribution
            A new one.

        Examples
        --------
        >>> changed = TaskDistribution.broad().reweighted({"widened": 5.0})
        >>> changed.recipes["widened"].weight
        5.0
        """
        of_one = {f"{name}.{part}" for name, recipe in self.recipes.items() for part in recipe.names()}
        everywhere = set(self.recipes).union(*(recipe.names() for recipe in self.recipes.values()))
        self._check_names(weights, everywhere | {name for name in of_one if name in weights})
        recipes = {}
        for name, recipe in self.recipes.items():
            first = f"{name}."
            own = {part.removeprefix(first): weight for part, weight in weights.items() if part.startswith(first)}
            changed = recipe.reweighted({**weights, **own})
            recipes[name] = dataclasses.replace(changed, weight=weights.get(name, recipe.weight))
        return TaskDistribution(recipes)

    def sample(self, tasks: int, observations: int, variables: int, generator: torch.Generator) -> TaskBatch:
        """Tasks of one shape, on the generator's device. The same generator state gives the same tasks.

        Parameters
        ----------
        tasks
            How many tasks.
        observations
            Rows of each table, 2 or more.
        variables
            Columns of each table, 2 or more.
        generator
            Where the randomness comes from.

        Returns
        -------
        TaskBatch
            The tables, and the truth behind each.

        Examples
        --------
        >>> generator = torch.Generator().manual_seed(0)
        >>> tasks = paper.sample(3, observations=20, variables=4, generator=generator)
        >>> tasks.data.shape
        torch.Size([3, 20, 4])
        """
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


def _spread_over_room(edge_counts: Table) -> Table:
    """The same laws of the number of edges, but every number that fits is as likely where 4p do not fit."""
    return {SPREAD_OVER_ROOM if name == "edges_up_to_4p" else name: weight for name, weight in edge_counts.items()}


TRAINING_DISTRIBUTIONS: Mapping[str, Callable[[], TaskDistribution]] = {
    "paper": TaskDistribution.paper,
    "broad": TaskDistribution.broad,
    "any": TaskDistribution.any,
}


# The components that fill each optional part of a TableBatch. A distribution without any of them leaves it out.
_OBSERVED = frozenset(MISSING) - {"complete"}
_INTERVENED = frozenset(name for name, probability in EXPERIMENTS.items() if probability is not None)
_LEVELS = (frozenset(TYPED_SHARES) - {"numbers"}) | {*DISCRETE_MECHANISMS, "environments"}


def _sample(
    recipes: Sequence[Recipe], tasks: int, observations: int, variables: int, generator: torch.Generator
) -> TaskBatch:
    device = generator.device
    choices = draw_choices(recipes, tasks, variables, generator)
    place = sorting_key(choices).argsort(stable=True)  # (B,) where in the batch each task of the sorted list goes
    sorted_choices = choices.take(place)
    on_host = sorted_choices.on_host()  # the only time that the host waits for the device

    possible = frozenset().union(*(recipe.components() for recipe in recipes if recipe.weight > 0))
    batch = _EmptyBatch(tasks, observations, variables, possible, device)
    # Variable at place i of the generation order goes to column order[i]: the columns tell nothing.
    order = random_permutations(tasks, variables, generator)
    for run in _runs(on_host, observations, variables, device.type):
        made = make_tables(sorted_choices.take(run), on_host.take(run), variables, observations, generator)
        batch.fill(made, place[run, None], order[place[run]])
    noises = torch.empty(tasks, variables, dtype=torch.int64, device=device)
    noises.scatter_(1, order, choices["noises"][:, -variables:].long())
    by_task = {
        name: choices[name]
        for name in COMPONENTS
        if name in choices.columns
        and choices[name].ndim == 1
        and (name not in BEYOND_NUMBERS or says_something(recipes, name))
    }
    return TaskBatch(batch.tables(), batch.truth(), order, batch.explained_variance, noises, choices["recipe"], by_task)


class _EmptyBatch:
    """Room for the tables of a batch, which are made in another order than they stand in."""

    def __init__(
        self, tasks: int, observations: int, variables: int, possible: AbstractSet[str], device: torch.device
    ) -> None:
        def full(value: bool) -> Tensor:
            return torch.full((tasks, observations, variables), value, device=device)

        self.values = torch.empty(tasks, observations, variables, device=device)
        self.observed = full(True) if possible & _OBSERVED else None
        self.intervened = full(False) if possible & _INTERVENED else None
        self.levels = self.ordered = None
        if possible & _LEVELS:
            self.levels = torch.zeros(tasks, variables, dtype=torch.int64, device=device)
            self.ordered = torch.zeros(tasks, variables, dtype=torch.bool, device=device)
        self.adjacency = torch.empty(tasks, variables, variables, dtype=torch.bool, device=device)
        self.confounded = torch.empty_like(self.adjacency)
        self.explained_variance = torch.empty(tasks, variables, device=device)

    def fill(self, made: Made, task: Tensor, column: Tensor) -> None:
        """Puts tables where they belong: `task` (b, 1), and `column` (b, P) for each place of the generation order."""
        self.values.mT[task, column] = made.values
        for cells, part in ((self.observed, made.observed), (self.intervened, made.intervened)):
            if cells is not None and part is not None:
                cells.mT[task, column] = part
        for columns, by_column in (
            (self.levels, made.levels),
            (self.ordered, made.ordered),
            (self.explained_variance, made.explained_variance),
        ):
            if columns is not None and by_column is not None:
                columns[task, column] = by_column
        pairs = task[:, :, None], column[:, :, None], column[:, None, :]
        self.adjacency[pairs] = made.adjacency
        self.confounded[pairs] = made.confounded

    def tables(self) -> TableBatch:
        # Asked for here, where tasks are drawn ahead: the network then need not wait for the device to say it.
        most_levels = None if self.levels is None else int(self.levels.max())
        return TableBatch(self.values, self.observed, self.intervened, self.levels, self.ordered, most_levels)

    def truth(self) -> Truth:
        return Truth(self.adjacency, self.confounded)


def _runs(on_host: Choices, observations: int, variables: int, device_type: str) -> Iterator[slice]:
    """Runs of sorted tasks of one way that fit the working memory, reckoning each task at the cost of the costliest."""
    budget = WORKING_BYTES["cuda" if device_type == "cuda" else "cpu"]
    plans = list(PLANS.values())
    ways, codes, widths = (on_host[name].tolist() for name in ("way", "mechanisms", "width"))
    first, costliest = 0, 0
    for task, (way, code, width) in enumerate(zip(ways, codes, widths, strict=True)):
        # Beyond plain numbers a variable also has its codes, what its effects feel of it, and masks.
        per_variable = 4 if way == PLAIN else 10 + SCORE_TABLES
        per_observation = per_variable * variables + 8 + plans[code].floats_per_observation(width, variables)
        cost = 4 * (observations * per_observation + (6 if way == PLAIN else 12) * variables**2)
        # Passes over such tasks do more before they go on to the next variable, and larger ones are faster.
        cost = cost if way == PLAIN else cost // 2
        if task > first and (way != ways[first] or (task + 1 - first) * max(cost, costliest) > budget):
            yield slice(first, task)
            first, costliest = task, 0
        costliest = max(cost, costliest)
    yield slice(first, len(on_host))
