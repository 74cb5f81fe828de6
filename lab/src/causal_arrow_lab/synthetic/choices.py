"""The discrete choices of a batch of tasks: one integer matrix, drawn, sorted and sent to the host in one piece.

The host must know these choices (which mechanism, how wide, how many rows of which noise) to plan the computation. It
asks once per batch; nothing else in the task stream makes it wait for the device.
"""

# B tasks, P variables, L slots for hidden causes, R recipes, K names in a table

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from causal_arrow_lab.synthetic.discrete import DISCRETE_MECHANISMS, DiscreteMechanism
from causal_arrow_lab.synthetic.graph_families import max_hidden_causes
from causal_arrow_lab.synthetic.kinds import TYPED_SHARES
from causal_arrow_lab.synthetic.mechanisms import MECHANISMS, Mechanism, WeightedSum
from causal_arrow_lab.synthetic.recipes import BEYOND_NUMBERS, CODES, COMPONENTS, Recipe, Table

# Drawn once per variable, not once per task.
_BY_VARIABLE = ("noises", "distortion_shapes", "column_kinds")

# Every mechanism by name, for its width and working memory.
PLANS: Mapping[str, type[Mechanism] | type[DiscreteMechanism]] = {
    **MECHANISMS,
    **DISCRETE_MECHANISMS,
    "normal_wishart": WeightedSum,
}

# How a task is solved. Tasks of one way are neighbors, so that those of plain numbers do not pay for the others.
PLAIN, RICH, DISCRETE, NORMAL = range(4)

# The share of changed columns of a distorted or rounded task is uniform from here to 1.
MIN_CHANGED_SHARE = 0.3


@dataclass(frozen=True)
class TaskChoices:
    """The codes chosen for each task (B,) or variable (B, ·) by name, on the device or the host.

    Names are those of COMPONENTS, with `noises` (B, L + P), hidden causes first. Besides: `recipe`, `width`, `hidden`
    (number of hidden causes), `way` (PLAIN, RICH, DISCRETE or NORMAL) for each task; `distortion`, `rounding`, `kind`
    for each column (B, P), 0 for an unchanged column.
    """

    codes: Tensor  # (B, C) int16
    columns: Mapping[str, slice | int]

    @classmethod
    def join(cls, parts: Mapping[str, Tensor]) -> TaskChoices:
        """Join one (B,) or (B, ·) tensor of codes per name."""
        columns: dict[str, slice | int] = {}
        first = 0
        for name, codes in parts.items():
            columns[name] = first if codes.ndim == 1 else slice(first, first + codes.shape[1])
            first += 1 if codes.ndim == 1 else codes.shape[1]
        blocks = [codes[:, None] if codes.ndim == 1 else codes for codes in parts.values()]
        return cls(torch.cat([block.to(torch.int16) for block in blocks], dim=1), columns)

    def __getitem__(self, name: str) -> Tensor:
        return self.codes[:, self.columns[name]]

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, tasks: slice | Tensor) -> TaskChoices:
        """The choices of some of the tasks."""
        return TaskChoices(self.codes[tasks], self.columns)

    def on_host(self) -> TaskChoices:
        """Copy the choices to the host. Waits for the device."""
        return TaskChoices(self.codes.cpu(), self.columns)

    def present(self, name: str) -> set[int]:
        """The codes that occur, for choices on the host."""
        return set(np.unique(self[name].numpy()).tolist())


def count_codes(codes: Tensor, kinds: int) -> list[int]:
    """Count each of 0..kinds−1 in codes on the host."""
    counts: list[int] = np.bincount(codes.numpy().ravel(), minlength=kinds).tolist()
    return counts


def tasks_with(choices: TaskChoices, on_host: TaskChoices, table: str) -> Tensor:
    """Indices of the tasks whose choice from a table is not its first name, the default.  (b,) int64"""
    count = int((on_host[table] > 0).sum())
    return choices[table].argsort(descending=True)[:count]


def may_differ(recipes: Sequence[Recipe], table: str) -> bool:
    """Whether any recipe can choose from a table something else than its first name, the default."""
    return any(recipe.may_differ(table) for recipe in recipes if recipe.weight > 0)


def draw_choices(recipes: Sequence[Recipe], tasks: int, variables: int, generator: torch.Generator) -> TaskChoices:
    """Draw the choices of `tasks` tasks, each from one of the recipes."""
    device = generator.device

    def uniform(*shape: int) -> Tensor:
        return torch.rand(tasks, *shape, generator=generator, device=device)

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
    width, dial = torch.zeros(tasks, device=device), uniform()
    possible = frozenset().union(*(recipe.components() for recipe in recipes))
    for code, (name, plan) in enumerate(PLANS.items()):
        if name in possible:
            width = torch.where(parts["mechanisms"] == code, plan.draw_width(dial), width)

    column_kinds = kind = nothing[:, None].expand(-1, variables)
    if "kinds" in drawn:
        column_kinds = by_variable("column_kinds", variables, parts["kinds"] == CODES["all_alike"])
        kind = (1 + column_kinds) * (uniform(variables) < _typed_share(parts["kinds"], uniform()))
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
            "hidden": hidden * (parts["hidden_variables"] == CODES["hidden_causes"]),
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


def _typed_share(kinds: Tensor, uniform: Tensor) -> Tensor:
    """Share of typed columns.  (B, 1)"""
    share = torch.zeros_like(uniform)
    for code, (low, high) in enumerate(TYPED_SHARES.values()):
        share = torch.where(kinds == code, low + (high - low) * uniform, share)
    return share[:, None]


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
