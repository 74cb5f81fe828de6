"""The discrete choices behind a batch of tasks: one integer matrix, drawn, sorted and sent to the host in one piece.

What is computed how often depends on these choices (which mechanism, how wide, how many rows of which noise), so the
host must know them. It asks once a batch; nothing else in the task stream makes it wait for the device.
"""

# B tasks, P variables, L slots for hidden causes, R recipes, K names in a table

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from causal_arrow.synthetic.graph_families import most_hidden_causes
from causal_arrow.synthetic.mechanisms import MECHANISMS
from causal_arrow.synthetic.recipes import CODES, COMPONENTS, Recipe, Table

# Drawn once a variable, not once a task.
_BY_VARIABLE = ("noises", "distortion_shapes")

# Of the columns of a distorted or rounded task, this share at least is changed; the share is uniform from here to 1.
LEAST_CHANGED_SHARE = 0.3


@dataclass(frozen=True)
class Choices:
    """`choices[name]` is the code chosen for each task (B,) or variable (B, ·), on the device or the host.

    Names are those of COMPONENTS, with `noises` (B, L + P), hidden causes first. Besides: `recipe`, `width`, `hidden`
    (how many hidden causes) for each task; `distortion`, `rounding` for each column (B, P), 0 if it stays as it is.
    """

    codes: Tensor  # (B, C) int16
    columns: Mapping[str, slice | int]

    @classmethod
    def join(cls, parts: Mapping[str, Tensor]) -> Choices:
        """From one (B,) or (B, ·) tensor of codes for each name."""
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

    def take(self, tasks: slice | Tensor) -> Choices:
        """The choices of some of the tasks."""
        return Choices(self.codes[tasks], self.columns)

    def on_host(self) -> Choices:
        """A copy on the host. Waits for the device."""
        return Choices(self.codes.cpu(), self.columns)

    def present(self, name: str) -> set[int]:
        """The codes that were chosen at all. For choices on the host."""
        return set(np.unique(self[name].numpy()).tolist())


def count_codes(codes: Tensor, kinds: int) -> list[int]:
    """How often each of 0..kinds−1 is among the codes, which lie on the host."""
    counts: list[int] = np.bincount(codes.numpy().ravel(), minlength=kinds).tolist()
    return counts


def draw_choices(recipes: Sequence[Recipe], tasks: int, variables: int, generator: torch.Generator) -> Choices:
    """The choices for `tasks` tasks, each by one of the recipes."""
    device = generator.device

    def uniform(*shape: int) -> Tensor:
        return torch.rand(tasks, *shape, generator=generator, device=device)

    recipe = _choose(_cumulative([[recipe.weight for recipe in recipes]], device), uniform())
    longest = max(map(len, COMPONENTS.values()))
    weights = [
        [_padded(recipe.table(name), names, longest) for name, names in COMPONENTS.items()] for recipe in recipes
    ]
    by_table = dict(zip(COMPONENTS, _cumulative(weights, device)[recipe].unbind(1), strict=True))  # each (B, K)
    parts = {name: _choose(table, uniform()) for name, table in by_table.items() if name not in _BY_VARIABLE}

    def by_variable(name: str, count: int, alike: Tensor) -> Tensor:
        """One code a variable; where `alike`, the same for all variables of the task."""
        each = _choose(by_table[name][:, None], uniform(count))
        return torch.where(alike[:, None], each[:, :1], each)

    hidden_slots = most_hidden_causes(variables)
    noises = by_variable("noises", hidden_slots + variables, parts["noise_settings"] == CODES["homogeneous"])
    shapes = by_variable("distortion_shapes", variables, parts["distortions"] == CODES["alike_distortions"])
    distorted = _some_columns(parts["distortions"] != CODES["undistorted"], uniform(variables), uniform(1))
    rounded = _some_columns(parts["roundings"] != CODES["continuous"], uniform(variables), uniform(1))
    hidden = 1 + (uniform() * hidden_slots).floor().clamp(max=hidden_slots - 1)
    width, dial = torch.zeros(tasks, device=device), uniform()
    for code, mechanism in enumerate(MECHANISMS.values()):
        width = torch.where(parts["mechanisms"] == code, mechanism.draw_width(dial), width)
    return Choices.join(
        {
            **parts,
            "recipe": recipe,
            "width": width,
            "hidden": hidden * (parts["hidden_variables"] == CODES["hidden_causes"]),
            "noises": noises,
            "distortion": (1 + shapes) * distorted,
            "rounding": parts["roundings"][:, None] * rounded,
        }
    )


def sorting_key(choices: Choices) -> Tensor:
    """Tasks that share their computations get neighboring keys: by mechanism, then activation, then width.  (B,)"""
    return (choices["mechanisms"].int() * 16 + choices["activations"]) * 256 + choices["width"]


def _padded(table: Table, names: Sequence[str], length: int) -> list[float]:
    """The weights of the given names, then zeros."""
    return [table.get(name, 0.0) for name in names] + [0.0] * (length - len(names))


def _cumulative(weights: object, device: torch.device) -> Tensor:
    """Cumulative probabilities along the last dimension of nested lists of weights."""
    table = torch.tensor(weights, dtype=torch.float64)
    cumulative = table.cumsum(-1) / table.sum(-1, keepdim=True)
    # From the last name with a weight on, above every uniform draw: rounding must not let a draw slip past it.
    later = table.sum(-1, keepdim=True) - table.cumsum(-1)
    cumulative = torch.where(later > 1e-9 * table.sum(-1, keepdim=True), cumulative, 2.0).float()
    # To a GPU by pinned memory, so that the host does not wait for it.
    return cumulative.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else cumulative.to(device)


def _choose(cumulative: Tensor, uniform: Tensor) -> Tensor:
    """Codes with the given cumulative probabilities.  (..., K), (...) -> (...)"""
    return (cumulative <= uniform[..., None]).sum(-1)


def _some_columns(task: Tensor, uniform: Tensor, share: Tensor) -> Tensor:
    """In the given tasks, each column with probability `share`, itself spread over [LEAST_CHANGED_SHARE, 1].  (B, P)"""
    return task[:, None] & (uniform < LEAST_CHANGED_SHARE + (1 - LEAST_CHANGED_SHARE) * share)
