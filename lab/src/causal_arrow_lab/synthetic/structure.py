"""Causal structure of tasks before their equations are solved, and the variables after it."""

# B tasks, L hidden causes, P variables in generation order, N observations

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from causal_arrow_lab.synthetic.experiments import Environments, Regimes
from causal_arrow_lab.synthetic.instruments import Instruments
from causal_arrow_lab.synthetic.kinds import Categories


@dataclass(frozen=True)
class Causes:
    """The causal structure of a run of tasks in generation order, with experiments and instruments."""

    adjacency: Tensor  # (B, P, P) bool, upper triangle: the true graph
    hidden_effects: Tensor  # (B, L, P) bool, the variables that each hidden cause acts on
    environments: Environments | None = None  # these act through the noise of their targets, not by the equations
    regimes: Regimes | None = None
    instruments: Instruments | None = None

    @property
    def hidden(self) -> int:
        """Number of hidden causes, L."""
        return self.hidden_effects.shape[1]

    def parents(self, through_equations: bool) -> Tensor:
        """Causes of every variable, hidden causes first, without environments if `through_equations`.

        [b, k, j] = 1 where j → k.  (B, L + P, L + P) float
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

    values: Tensor  # (B, P, N) standardized, including the codes of levels
    explained_variance: Tensor  # (B, P)
    categories: Categories | None = None
    touched: Tensor | None = None  # (B, P) bool, variables that hidden conditions or classes act on
