"""NetworkOutput: what a torch network says about the graphs behind a batch of tables, as tensors with gradients."""

# B tables, P variables

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from causal_arrow.graphs.graph_distribution import GraphDistribution
from causal_arrow_lab.graphs.skeleton_order import SkeletonOrder


@dataclass(frozen=True, eq=False)
class NetworkOutput:
    """A distribution over DAGs for each table, and log-odds that two variables share a hidden cause."""

    skeleton_order: SkeletonOrder
    confounding_logits: Tensor | None = None  # (B, P, P) symmetric; None for a network without that head

    @property
    def variables(self) -> int:
        """P"""
        return self.skeleton_order.order_scores.shape[-1]

    def __getitem__(self, table: int) -> NetworkOutput:
        """The output for one table of a batch."""
        confounding = None if self.confounding_logits is None else self.confounding_logits[table]
        return NetworkOutput(self.skeleton_order[table], confounding)

    def to(self, device: torch.device | str) -> NetworkOutput:
        """The same on another device."""
        confounding = None if self.confounding_logits is None else self.confounding_logits.to(device)
        return NetworkOutput(self.skeleton_order.to(device), confounding)

    def numpy(self) -> GraphDistribution:
        """The same as arrays, without gradients, for everything that needs no torch."""
        order, confounding = self.skeleton_order, self.confounding_logits
        return GraphDistribution(
            order.skeleton_logits.detach().cpu().float().numpy(),
            order.order_scores.detach().cpu().float().numpy(),
            None if confounding is None else confounding.detach().cpu().float().numpy(),
        )
