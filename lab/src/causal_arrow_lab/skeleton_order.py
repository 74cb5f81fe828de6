"""SkeletonOrder: the distribution over DAGs that training fits, in torch, with likelihoods, samples and gradients.

Section 2 and appendix B of the paper. Two independent draws make a DAG:

    skeleton  A_jk ~ Bernoulli(ν_jk), one coin for each pair,           ν = σ(skeleton_logits)
    order     π ~ Plackett–Luce(s), the first variable is j with probability ∝ exp(s_j), and so on down the list
    graph     G = A ⊙ M(π): every skeleton edge points from the earlier variable to the later

so every graph it can produce is acyclic, and j precedes k with probability q_jk = σ(s_j − s_k).
`causal_arrow.graphs.graph_distribution` holds the same parameters as arrays, for everything that needs no torch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import logsigmoid

from causal_arrow.errors import GraphError
from causal_arrow.graphs.graph_distribution import GraphDistribution

# B tables, P variables; "..." stands for any batch dimensions, none included

# The exact likelihood visits 2^P sets of variables.
MAX_VARIABLES_EXACT = 14

# A finite stand-in for log 0: the gradient of a sum of nothing is then 0, not NaN.
IMPOSSIBLE = -1e30

# Sampling works in pieces of about this many matrix entries, to bound its memory.
ENTRIES_PER_PIECE = 2**22


def orient(skeleton: Tensor, order: Tensor) -> Tensor:
    """The DAG that points every skeleton edge from the earlier variable to the later, A ⊙ M(π).  (..., P, P) bool"""
    position = order.argsort(-1)
    return (skeleton != 0) & (position[..., :, None] < position[..., None, :])


@dataclass(frozen=True, eq=False)
class SkeletonOrder:
    """A distribution over DAGs on P variables, or a batch of them, made of a skeleton and an order.

    Narrow types are widened to float32 before any arithmetic, so a bfloat16 program loses nothing more here.

    Parameters
    ----------
    skeleton_logits
        Log-odds that two variables are adjacent, symmetric; the diagonal is ignored.  (..., P, P)
    order_scores
        The larger, the earlier; only differences matter.  (..., P)

    Examples
    --------
    >>> import torch
    >>> from causal_arrow_lab import SkeletonOrder
    >>> logits = torch.tensor([[0.0, 2.0, -3.0], [2.0, 0.0, -3.0], [-3, -3, 0]])
    >>> distribution = SkeletonOrder(logits, torch.tensor([1.0, -1.0, 0.0]))
    >>> distribution.most_probable_dag().nonzero()
    tensor([[0, 1]])
    >>> distribution.sample_dags(5, torch.Generator().manual_seed(0)).shape
    torch.Size([5, 3, 3])
    """

    skeleton_logits: Tensor
    order_scores: Tensor

    def __post_init__(self) -> None:
        shape = self.order_scores.shape
        if self.skeleton_logits.shape != (*shape, *shape[-1:]) or not shape:
            raise GraphError(
                "Expected skeleton logits (..., P, P) and order scores (..., P), "
                f"got {tuple(self.skeleton_logits.shape)} and {tuple(shape)}."
            )

    @classmethod
    def from_marginals(cls, edge_marginals: Tensor) -> SkeletonOrder:
        """The distribution with the directed edge probabilities r_jk  (..., P, P), theorem 1.

            ν_jk = r_jk + r_kj            s_j − s_k = ρ_jk = log(r_jk / r_kj)

        Marginals that no skeleton–order distribution has get the scores closest to ρ in least squares: averages over
        rows of ρ.
        """
        pairs, both_ways = _pairs(edge_marginals), edge_marginals + edge_marginals.mT
        impossible = pairs & ~((edge_marginals > 0) & (both_ways < 1))
        if impossible.any():
            index = tuple(impossible.nonzero()[0].tolist())
            raise GraphError(
                "Expected edge marginals with r_jk > 0 and r_jk + r_kj < 1 for all pairs, "
                f"got r_jk = {edge_marginals[index]:.4g} and r_jk + r_kj = {both_ways[index]:.4g} at {list(index)}. "
                "Marginals that are frequencies need a pseudo-count."
            )
        log_marginals = _widened(edge_marginals).masked_fill(~pairs, 1.0).log()
        log_ratios = log_marginals - log_marginals.mT
        skeleton_logits = _widened(both_ways).masked_fill(~pairs, 0.5).logit()
        return cls(skeleton_logits, log_ratios.sum(-1) / max(log_ratios.shape[-1], 1))

    def __getitem__(self, index: int | slice | Tensor) -> SkeletonOrder:
        """The distribution of one task of a batch, or a smaller batch."""
        if self.order_scores.dim() == 1:
            raise IndexError("This SkeletonOrder is one distribution, not a batch.")
        return SkeletonOrder(self.skeleton_logits[index], self.order_scores[index])

    def to(self, device: torch.device | str) -> SkeletonOrder:
        """The same distribution on another device."""
        return SkeletonOrder(self.skeleton_logits.to(device), self.order_scores.to(device))

    # Probabilities of pairs, zero on the diagonal

    def skeleton_probabilities(self) -> Tensor:
        """Probability ν_jk that j and k are adjacent.  (..., P, P)"""
        return self._logits().sigmoid().masked_fill(~self._pairs(), 0.0)

    def precedence_probabilities(self) -> Tensor:
        """Probability q_jk = σ(s_j − s_k) that j comes before k.  (..., P, P)"""
        return self._score_differences().sigmoid().masked_fill(~self._pairs(), 0.0)

    def edge_marginals(self) -> Tensor:
        """Probability of each directed edge j → k, ν_jk · q_jk.  (..., P, P)"""
        return self.skeleton_probabilities() * self.precedence_probabilities()

    def edge_logits(self) -> Tensor:
        """Log-odds of each directed edge, −∞ on the diagonal.  (..., P, P)"""
        return self._edge_logits().masked_fill(~self._pairs(), -math.inf)

    # Likelihoods

    def composite_nll(self, adjacency: Tensor) -> Tensor:
        """Negative log-likelihood for training, equation 1: all ordered pairs as if independent.  (...)

        −Σ_{j≠k} [G_jk log(ν_jk q_jk) + (1 − G_jk) log(1 − ν_jk q_jk)], summed over pairs, one value per graph of
        `adjacency` (..., P, P).
        """
        edge_logits = self._edge_logits()
        terms = -logsigmoid(torch.where(adjacency != 0, edge_logits, -edge_logits))  # (..., P, P)
        return terms.masked_fill(~self._pairs(), 0.0).sum(dim=(-2, -1))

    def log_probability(self, skeleton: Tensor, order: Tensor) -> Tensor:
        """log p(A, π) = log p(A) + log p(π), of a skeleton (..., P, P) and an order (..., P).  (...)

        log p(π) = Σ_i [s_πi − log Σ_{k≥i} exp(s_πk)]
        """
        scores = _widened(self.order_scores)
        shape = np.broadcast_shapes(scores.shape, order.shape)
        scores = scores.expand(shape).gather(-1, order.expand(shape))  # (..., P) by position
        rest = scores.flip(-1).logcumsumexp(-1).flip(-1)
        return self._log_skeleton(skeleton) + (scores - rest).sum(-1)

    def log_likelihood(self, adjacency: Tensor) -> Tensor:
        """Exact log p(G): log p(A) + log Σ p(π) over the topological orders π of G; −∞ where G has a cycle.  (...)

        The orders are summed without listing them. A Plackett–Luce order is drawn variable by variable, and the next
        draw depends only on the set already drawn. So we carry, for every set of k variables, the probability that it
        fills the first k positions with causes before effects, from k = 0 to P. That is 2^P sets: P has a limit.
        """
        variables = self.order_scores.shape[-1]
        if variables > MAX_VARIABLES_EXACT:
            raise GraphError(
                f"Expected at most {MAX_VARIABLES_EXACT} variables for the exact likelihood, got {variables}. "
                "Use composite_nll for larger graphs."
            )
        edges = (adjacency != 0) & self._pairs()
        scores = _widened(self.order_scores)
        log_mass = torch.zeros_like(scores[..., :1])  # (..., sets): of each set being placed first
        log_rest = scores.logsumexp(-1, keepdim=True)  # (..., sets): log Σ exp(s) over the variables still to come
        for level in _sets_by_size(variables):
            members, without, others = (torch.as_tensor(table, device=scores.device) for table in level)
            # A member can be the last of its set to be placed only when none of its parents is still to come.
            too_early = edges[..., others.unsqueeze(-1), members.unsqueeze(-2)].any(-2)  # (..., sets, size)
            steps = (log_mass - log_rest)[..., without] + scores[..., members]
            log_mass = torch.where(too_early, IMPOSSIBLE, steps).logsumexp(-1)
            log_rest = scores[..., others].logsumexp(-1)
        log_orders = log_mass.squeeze(-1)
        return self._log_skeleton(adjacency) + log_orders.masked_fill(log_orders < IMPOSSIBLE / 2, -math.inf)

    # Graphs

    def most_probable_order(self) -> Tensor:
        """The variables by falling score, smaller indices first among equals.  (..., P)"""
        return _widened(self.order_scores).argsort(dim=-1, descending=True, stable=True)

    def most_probable_dag(self) -> Tensor:
        """The graph of the most probable skeleton and order, section 2.4: edges with ν > ½.  (..., P, P) bool"""
        return orient((self._logits() > 0) & self._pairs(), self.most_probable_order())

    def sample_orders(self, count: int, generator: torch.Generator) -> Tensor:
        """Independent orders from the Plackett–Luce distribution.  (count, ..., P)"""
        scores = _widened(self.order_scores)
        # Sorting s + Gumbel noise is a Plackett–Luce draw, and −log of an exponential variable is Gumbel noise.
        waiting_times = torch.empty((count, *scores.shape), device=generator.device).exponential_(generator=generator)
        return (scores - waiting_times.to(scores.device).log()).argsort(dim=-1, descending=True)

    def sample_dags(self, count: int, generator: torch.Generator) -> Tensor:
        """Independent graphs, each from its own skeleton and order.  (count, ..., P, P) bool"""
        probabilities = self.skeleton_probabilities()
        graphs = probabilities.new_empty((count, *probabilities.shape), dtype=torch.bool)
        graphs_per_piece = max(1, ENTRIES_PER_PIECE // max(1, probabilities.numel()))
        for start in range(0, count, graphs_per_piece):
            piece = graphs[start : start + graphs_per_piece]
            uniform = torch.rand(piece.shape, generator=generator, device=generator.device).to(probabilities.device)
            one_coin_per_pair = (uniform < probabilities).triu(1)
            skeletons = one_coin_per_pair | one_coin_per_pair.mT
            piece.copy_(orient(skeletons, self.sample_orders(len(piece), generator)))
        return graphs

    # What the methods above are made of, in float32 at least, with finite values on the diagonal

    def _pairs(self) -> Tensor:
        return _pairs(self.skeleton_logits)

    def _logits(self) -> Tensor:
        return _widened(self.skeleton_logits).masked_fill(~self._pairs(), 0.0)

    def _score_differences(self) -> Tensor:
        scores = _widened(self.order_scores)
        return scores.unsqueeze(-1) - scores.unsqueeze(-2)

    def _edge_logits(self) -> Tensor:
        """Log-odds of νq. With ν = σ(a) and q = σ(d) these are −log(e^−a + e^−d + e^−a−d).  (..., P, P)

        1/νq = (1 + e^−a)(1 + e^−d), and 1/νq − 1 is what the logarithm holds: e^−a + e^−d (1 + e^−a). No term is ever
        subtracted, so neither νq near 0 nor 1 − νq near 0 loses digits, and all gradients lie between 0 and 1.
        """
        logits = self._logits()
        return -torch.logaddexp(-logits, -self._score_differences() - logsigmoid(logits))

    def _log_skeleton(self, graph: Tensor) -> Tensor:
        """log p(A) for the skeleton of `graph`, a coin for each pair.  (...)"""
        logits = self._logits()
        adjacent = (graph != 0) | (graph != 0).mT
        terms = logsigmoid(torch.where(adjacent, logits, -logits))
        return terms.masked_fill(~self._pairs(), 0.0).triu(1).sum(dim=(-2, -1))


def _widened(values: Tensor) -> Tensor:
    """The values in float32 at least."""
    return values.to(torch.promote_types(values.dtype, torch.float32))


def _pairs(matrix: Tensor) -> Tensor:
    """The entries of a matrix that count, j ≠ k.  (P, P) bool"""
    return ~torch.eye(matrix.shape[-1], dtype=torch.bool, device=matrix.device)


@lru_cache(maxsize=MAX_VARIABLES_EXACT)
def _sets_by_size(variables: int) -> list[tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]]:
    """For each size from 1 to P, all sets of that many variables, as three tables of indices with a row for each set.

    members  (sets, size)      the variables in the set
    without  (sets, size)      which set, among those one smaller, is left when that member is taken away
    others   (sets, P − size)  the variables not in the set
    """
    levels = []
    number_of: dict[tuple[int, ...], int] = {(): 0}
    for size in range(1, variables + 1):
        sets = list(combinations(range(variables), size))
        without = [[number_of[each[:i] + each[i + 1 :]] for i in range(size)] for each in sets]
        others = [sorted(set(range(variables)).difference(each)) for each in sets]
        levels.append((np.array(sets), np.array(without), np.array(others, dtype=np.intp)))
        number_of = {each: number for number, each in enumerate(sets)}
    return levels


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
