"""GraphDistribution: all that a network says of the graphs behind a batch of tables."""

# B tables, P variables

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from causal_arrow.errors import ConfigurationError
from causal_arrow.graphs.skeleton_order import SkeletonOrder

# Log-odds of what is as good as certain: a probability of 1 − 2·10⁻⁹.
CERTAIN = 20.0


@dataclass(frozen=True, eq=False)
class GraphDistribution:
    """The distribution over DAGs of section 2, and for each pair the log-odds that the two share a hidden cause.

    Leading dimensions are those of `skeleton_order`: none for one table, (B,) for a batch.
    """

    skeleton_order: SkeletonOrder
    confounding_logits: Tensor | None = None  # (..., P, P) symmetric; None for a network without that head

    def __post_init__(self) -> None:
        expected = self.skeleton_order.skeleton_logits.shape
        if self.confounding_logits is not None and self.confounding_logits.shape != expected:
            raise ConfigurationError(
                f"Expected confounding logits of shape {tuple(expected)}, got {tuple(self.confounding_logits.shape)}."
            )

    @property
    def variables(self) -> int:
        """P"""
        return self.skeleton_order.order_scores.shape[-1]

    def to(self, device: torch.device | str) -> GraphDistribution:
        """The same on another device."""
        confounding = None if self.confounding_logits is None else self.confounding_logits.to(device)
        return GraphDistribution(self.skeleton_order.to(device), confounding)

    def __getitem__(self, table: int) -> GraphDistribution:
        """The distribution for one table of a batch."""
        confounding = None if self.confounding_logits is None else self.confounding_logits[table]
        return GraphDistribution(self.skeleton_order[table], confounding)

    def rearranged(self, places: Tensor) -> GraphDistribution:
        """The distribution for one table with variable `places[i]` in place i."""
        rows, columns = places[:, None], places[None, :]
        logits, scores = self.skeleton_order.skeleton_logits, self.skeleton_order.order_scores
        confounding = None if self.confounding_logits is None else self.confounding_logits[rows, columns]
        return GraphDistribution(SkeletonOrder(logits[rows, columns], scores[places]), confounding)

    def with_part(self, places: Tensor, variables: Tensor, part: GraphDistribution) -> GraphDistribution:
        """The distributions for a batch, where `part` (T,) says anew what holds for some variables of some tables.

        `places` (T,) are these tables, `variables` (T, K) the variables; what concerns any other stays.
        """
        tables, rows, columns = places[:, None, None], variables[:, :, None], variables[:, None, :]
        logits, scores = self.skeleton_order.skeleton_logits.clone(), self.skeleton_order.order_scores.clone()
        logits[tables, rows, columns] = part.skeleton_order.skeleton_logits.to(logits.dtype)
        # Only differences between scores mean something: the new ones are put where the old ones were.
        before, after = scores[places[:, None], variables], part.skeleton_order.order_scores.to(scores.dtype)
        shift = before.mean(dim=1, keepdim=True) - after.mean(dim=1, keepdim=True)
        scores[places[:, None], variables] = after + shift
        confounding = self.confounding_logits
        if confounding is not None and part.confounding_logits is not None:
            confounding = confounding.clone()
            confounding[tables, rows, columns] = part.confounding_logits.to(confounding.dtype)
        return GraphDistribution(SkeletonOrder(logits, scores), confounding)

    def with_copies(self, read_as: Sequence[int]) -> GraphDistribution:
        """The distribution for one table that also has copies of its variables, which nothing tells from them.

        `read_as[i]` is the place, among all variables, of the one that is read for variable i: i itself unless i is a
        copy. That one causes the copy, which is adjacent to no other. (The other way round the copy would be a cause,
        and independent of all other causes of the one that is read, which it is not.)
        """
        read = [place for place, original in enumerate(read_as) if original == place]
        if len(read) == len(read_as):
            return self
        full = self.rearranged(torch.tensor([read.index(original) for original in read_as]))
        logits, confounding = full.skeleton_order.skeleton_logits, full.confounding_logits
        scores = full.skeleton_order.order_scores
        for place, original in enumerate(read_as):
            if original == place:
                continue
            for matrix in (logits, confounding):
                if matrix is not None:
                    matrix[place] = matrix[:, place] = -CERTAIN
            logits[place, original] = logits[original, place] = CERTAIN
            scores[place] = scores[original] - CERTAIN
        return full

    def confounding_probabilities(self) -> Tensor | None:
        """Probability that two variables share a hidden cause.  (..., P, P)"""
        if self.confounding_logits is None:
            return None
        probabilities = torch.sigmoid(self.confounding_logits.float())
        return probabilities - torch.diag_embed(probabilities.diagonal(dim1=-2, dim2=-1))
