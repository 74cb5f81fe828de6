"""What a way of making variables starts from and ends with: the causes in each task, and the variables they made."""

# B tasks, L hidden causes, P variables in generation order, N observations

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from causal_arrow.synthetic.experiments import Environments, Regimes
from causal_arrow.synthetic.instruments import Instruments
from causal_arrow.synthetic.kinds import Categories


@dataclass(frozen=True)
class Causes:
    """The causal structure of a run of tasks in generation order, and what experiments and instruments make of it."""

    adjacency: Tensor  # (B, P, P) bool, upper triangle: the true graph
    hidden_effects: Tensor  # (B, L, P) bool, which variables each hidden cause acts on
    environments: Environments | None = None  # these act with the noise of their targets, beside the equations
    regimes: Regimes | None = None
    instruments: Instruments | None = None

    @property
    def hidden(self) -> int:
        """L, hidden causes."""
        return self.hidden_effects.shape[1]

    def parents(self, through_equations: bool) -> Tensor:
        """Causes of every variable, hidden ones first.  (B, L + P, L + P) float, [b, k, j] = 1 where j → k

        Without environments if `through_equations`.
        """
        adjacency, hidden = self.adjacency, self.hidden
        size = hidden + adjacency.shape[1]
        parents = torch.zeros(len(adjacency), size, size, device=adjacency.device)
        parents[:, hidden:, hidden:] = adjacency.mT
        if through_equations and self.environments is not None:
            parents[:, hidden:, hidden] *= ~self.environments.present[:, None]
        if hidden:
            parents[:, hidden:, :hidden] = self.hidden_effects.mT
        return parents


@dataclass(frozen=True)
class Solution:
    """The variables of a run of tasks in generation order, hidden causes dropped."""

    values: Tensor  # (B, P, N) standardized, also the codes of levels
    explained_variance: Tensor  # (B, P)
    categories: Categories | None = None
    touched: Tensor | None = None  # (B, P) bool, variables that hidden conditions or classes act on
