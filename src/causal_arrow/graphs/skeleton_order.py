"""SkeletonOrder: a distribution over DAGs made of an undirected skeleton and an order of the variables.

Section 2 and appendix B of the paper. Two independent draws make a DAG:

    skeleton  A_jk ~ Bernoulli(ν_jk), one coin for each pair,           ν = σ(skeleton_logits)
    order     π ~ Plackett–Luce(s), the first place won by j with probability ∝ exp(s_j), and so on down the list
    graph     G = A ⊙ M(π): every skeleton edge points from the earlier variable to the later

so every graph it can produce is acyclic, and j precedes k with probability q_jk = σ(s_j − s_k).
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
from causal_arrow.graphs.dag import orient

# P variables; "..." stands for any batch dimensions, none included

# The exact likelihood visits 2^P sets of variables.
LARGEST_EXACT_LIKELIHOOD = 14

# A finite stand-in for log 0: the gradient of a sum of nothing is then 0, not NaN.
IMPOSSIBLE = -1e30

# Sampling works in pieces of about this many matrix entries, to bound its memory.
ENTRIES_PER_PIECE = 2**22


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
    variable_mask
        False at variables that only pad a batch to a common size: they never have an edge and never count.  (..., P)

    Examples
    --------
    The examples of the methods below continue this one: a and b are probably adjacent, and a comes first.

    >>> import torch
    >>> from causal_arrow import SkeletonOrder
    >>> logits = torch.tensor([[0.0, 2.0, -3.0], [2.0, 0.0, -3.0], [-3, -3, 0]])
    >>> distribution = SkeletonOrder(logits, torch.tensor([1.0, -1.0, 0.0]))
    >>> generator = torch.Generator().manual_seed(0)
    """

    skeleton_logits: Tensor  # (..., P, P) symmetric, log-odds of ν; the diagonal is ignored
    order_scores: Tensor  # (..., P) the larger, the earlier; only differences matter
    variable_mask: Tensor | None = None  # (..., P) bool

    def __post_init__(self) -> None:
        shape = self.order_scores.shape
        if self.skeleton_logits.shape != (*shape, *shape[-1:]) or not shape:
            raise GraphError(
                "Expected skeleton logits (..., P, P) and order scores (..., P), "
                f"got {tuple(self.skeleton_logits.shape)} and {tuple(shape)}."
            )
        if self.variable_mask is not None and self.variable_mask.shape != shape:
            raise GraphError(
                f"Expected a variable mask of the shape of the order scores {tuple(shape)}, "
                f"got {tuple(self.variable_mask.shape)}."
            )

    @classmethod
    def from_marginals(cls, edge_marginals: Tensor, variable_mask: Tensor | None = None) -> SkeletonOrder:
        """The distribution with the directed edge probabilities r_jk, theorem 1.

            ν_jk = r_jk + r_kj            s_j − s_k = ρ_jk = log(r_jk / r_kj)

        Marginals that no skeleton–order distribution has get the scores closest to ρ in least squares;
        `order_consistency` tells how close that is, and `projection.kl_projection` has those that training would find.

        Parameters
        ----------
        edge_marginals
            Probability of each directed edge.  (..., P, P)
        variable_mask
            False at variables that only pad.  (..., P)

        Returns
        -------
        SkeletonOrder
            Its `edge_marginals()` are those given, if a skeleton–order distribution has them.

        Examples
        --------
        >>> marginals = distribution.edge_marginals()
        >>> again = SkeletonOrder.from_marginals(marginals)
        >>> torch.allclose(again.edge_marginals(), marginals, atol=1e-6)
        True
        """
        log_ratios = _log_ratios(edge_marginals, variable_mask)
        skeleton_probabilities = _widened(edge_marginals + edge_marginals.mT)
        skeleton_logits = skeleton_probabilities.masked_fill(~_pairs(edge_marginals, variable_mask), 0.5).logit()
        return cls(skeleton_logits, _potential(log_ratios, variable_mask), variable_mask)

    def __getitem__(self, index: int | slice | Tensor) -> SkeletonOrder:
        """The distribution of one task of a batch, or a smaller batch."""
        if self.order_scores.dim() == 1:
            raise IndexError("This SkeletonOrder is one distribution, not a batch.")
        mask = None if self.variable_mask is None else self.variable_mask[index]
        return SkeletonOrder(self.skeleton_logits[index], self.order_scores[index], mask)

    def to(self, device: torch.device | str) -> SkeletonOrder:
        """The same distribution on another device.

        Parameters
        ----------
        device
            Such as "cpu" or "cuda".

        Returns
        -------
        SkeletonOrder
            A new one.

        Examples
        --------
        >>> distribution.to("cpu").order_scores.device
        device(type='cpu')
        """
        mask = None if self.variable_mask is None else self.variable_mask.to(device)
        return SkeletonOrder(self.skeleton_logits.to(device), self.order_scores.to(device), mask)

    # Probabilities of pairs

    def skeleton_probabilities(self) -> Tensor:
        """Probability ν_jk that j and k are adjacent, zero on the diagonal.  (..., P, P)

        Returns
        -------
        Tensor
            Symmetric.

        Examples
        --------
        >>> distribution.skeleton_probabilities()[0, 1].round(decimals=2)
        tensor(0.8800)
        """
        return self._logits().sigmoid().masked_fill(~self._pairs(), 0.0)

    def precedence_probabilities(self) -> Tensor:
        """Probability q_jk = σ(s_j − s_k) that j comes before k, zero on the diagonal.  (..., P, P)

        Returns
        -------
        Tensor
            q_jk + q_kj = 1 off the diagonal.

        Examples
        --------
        >>> distribution.precedence_probabilities()[0, 1].round(decimals=2)
        tensor(0.8800)
        """
        return self._score_differences().sigmoid().masked_fill(~self._pairs(), 0.0)

    def edge_marginals(self) -> Tensor:
        """Probability of each directed edge, ν_jk · q_jk.  (..., P, P)

        Returns
        -------
        Tensor
            `[j, k]` is about the edge j → k.

        Examples
        --------
        >>> distribution.edge_marginals()[0, 1].round(decimals=2)
        tensor(0.7800)
        """
        return self.skeleton_probabilities() * self.precedence_probabilities()

    def edge_logits(self) -> Tensor:
        """Log-odds of each directed edge; they still rank edges whose marginals round to 0 or 1.  (..., P, P)

        Returns
        -------
        Tensor
            −∞ on the diagonal.

        Examples
        --------
        >>> log_odds = distribution.edge_logits()
        >>> torch.allclose(log_odds.sigmoid(), distribution.edge_marginals())
        True
        """
        return self._edge_logits().masked_fill(~self._pairs(), -math.inf)

    def doubt(self) -> Tensor:
        """Bits of doubt per edge: Σ_{j<k} [H(ν_jk) + ν_jk H(q_jk)] over the expected number of edges Σ ν, or 1.  (...)

        H is the entropy of a coin. Zero is certainty; an edge of unknown direction alone is 1.

        Returns
        -------
        Tensor
            One number per distribution.

        Examples
        --------
        >>> certain = SkeletonOrder(100 * logits, 100 * distribution.order_scores)
        >>> certain.doubt() < distribution.doubt()
        tensor(True)
        """
        skeleton, order = _coin_entropy(self._logits()), _coin_entropy(self._score_differences())
        adjacent = self.skeleton_probabilities()
        entropy = (skeleton + adjacent * order).masked_fill(~self._pairs(), 0.0).sum(dim=(-2, -1)) / 2
        return entropy / (adjacent.sum(dim=(-2, -1)) / 2).clamp_min(1.0)

    # Likelihoods

    def composite_nll(self, adjacency: Tensor) -> Tensor:
        """Negative log-likelihood for training, equation 1: all ordered pairs as if independent.  (...)

        −Σ_{j≠k} [G_jk log(ν_jk q_jk) + (1 − G_jk) log(1 − ν_jk q_jk)], summed over pairs, one value for each task.

        Parameters
        ----------
        adjacency
            The graph, or one per distribution.  (..., P, P)

        Returns
        -------
        Tensor
            One number per distribution; the smaller, the better the graph fits.

        Examples
        --------
        >>> graph = distribution.most_probable_dag()
        >>> distribution.composite_nll(graph) < distribution.composite_nll(graph.T)
        tensor(True)
        """
        edge_logits = self._edge_logits()
        terms = -logsigmoid(torch.where(adjacency != 0, edge_logits, -edge_logits))  # (..., P, P)
        return terms.masked_fill(~self._pairs(), 0.0).sum(dim=(-2, -1))

    def log_probability(self, skeleton: Tensor, order: Tensor) -> Tensor:
        """log p(A, π) = log p(A) + log p(π), of a skeleton and an order.  (...)

        log p(π) = Σ_i [s_πi − log Σ_{k≥i} exp(s_πk)]. The places of masked variables in the order do not count.

        Parameters
        ----------
        skeleton
            Which variables are adjacent.  (..., P, P)
        order
            The variables, causes before effects.  (..., P)

        Returns
        -------
        Tensor
            One number per distribution.

        Examples
        --------
        >>> order = distribution.most_probable_order()
        >>> bool(distribution.log_probability(graph | graph.T, order) < 0)
        True
        """
        scores = self._scores(masked=-math.inf)
        shape = np.broadcast_shapes(scores.shape, order.shape)
        scores = scores.expand(shape).gather(-1, order.expand(shape))  # (..., P) by place
        rest = scores.flip(-1).logcumsumexp(-1).flip(-1)
        log_order = torch.where(scores.isinf(), 0.0, scores - rest).sum(-1)
        return self._log_skeleton(skeleton) + log_order

    def log_likelihood(self, adjacency: Tensor) -> Tensor:
        """Exact log p(G): log p(A) + log Σ p(π) over the topological orders π of G; −∞ where G has a cycle.  (...)

        The orders are summed without listing them. A Plackett–Luce order is drawn place by place, and the next draw
        depends only on the set of variables already placed. So we carry, for every set of k variables, the probability
        that it fills the first k places with causes before effects, from k = 0 to P. That is 2^P sets: P has a limit.

        Parameters
        ----------
        adjacency
            The graph, or one per distribution.  (..., P, P)

        Returns
        -------
        Tensor
            One number per distribution.

        Examples
        --------
        >>> cycles = torch.ones(3, 3).fill_diagonal_(0)
        >>> distribution.log_likelihood(cycles)
        tensor(-inf)
        """
        variables = self.order_scores.shape[-1]
        if variables > LARGEST_EXACT_LIKELIHOOD:
            raise GraphError(
                f"Expected at most {LARGEST_EXACT_LIKELIHOOD} variables for the exact likelihood, got {variables}. "
                "Use composite_nll for larger graphs."
            )
        edges = (adjacency != 0) & self._pairs()
        # Masked variables may keep a score: without edges they go anywhere, and a Plackett–Luce order with some
        # variables left out is a Plackett–Luce order of the others.
        scores = self._scores()
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
        """The variables by falling score, smaller indices first among equals, masked variables last.  (..., P)

        Returns
        -------
        Tensor
            Indices of variables.

        Examples
        --------
        >>> distribution.most_probable_order()
        tensor([0, 2, 1])
        """
        return self._scores(masked=-math.inf).argsort(dim=-1, descending=True, stable=True)

    def most_probable_dag(self) -> Tensor:
        """The graph of the most probable skeleton and order, section 2.4: edges with ν > ½.  (..., P, P) bool

        Returns
        -------
        Tensor
            `[j, k]` is true where j → k.

        Examples
        --------
        >>> distribution.most_probable_dag().nonzero()
        tensor([[0, 1]])
        """
        return orient((self._logits() > 0) & self._pairs(), self.most_probable_order())

    def sample_orders(self, count: int, generator: torch.Generator) -> Tensor:
        """Independent orders from the Plackett–Luce distribution, masked variables last.  (count, ..., P)

        Parameters
        ----------
        count
            How many orders.
        generator
            Where the randomness comes from.

        Returns
        -------
        Tensor
            Indices of variables.

        Examples
        --------
        >>> distribution.sample_orders(5, generator).shape
        torch.Size([5, 3])
        """
        scores = self._scores(masked=-math.inf)
        # Sorting s + Gumbel noise is a Plackett–Luce draw, and −log of an exponential variable is Gumbel noise.
        waiting_times = torch.empty((count, *scores.shape), device=generator.device).exponential_(generator=generator)
        return (scores - waiting_times.to(scores.device).log()).argsort(dim=-1, descending=True)

    def sample_dags(self, count: int, generator: torch.Generator) -> Tensor:
        """Independent graphs, each from its own skeleton and order.  (count, ..., P, P) bool

        Parameters
        ----------
        count
            How many graphs.
        generator
            Where the randomness comes from.

        Returns
        -------
        Tensor
            Every graph is acyclic.

        Examples
        --------
        >>> distribution.sample_dags(5, generator).shape
        torch.Size([5, 3, 3])
        """
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

    # What the methods above are made of, in float32 at least, with finite values where masked

    def _pairs(self) -> Tensor:
        """The entries that count: j ≠ k, both of them variables.  (..., P, P) bool"""
        return _pairs(self.skeleton_logits, self.variable_mask)

    def _logits(self) -> Tensor:
        return _widened(self.skeleton_logits).masked_fill(~self._pairs(), 0.0)

    def _scores(self, masked: float = 0.0) -> Tensor:
        scores = _widened(self.order_scores)
        return scores if self.variable_mask is None else scores.masked_fill(~self.variable_mask, masked)

    def _score_differences(self) -> Tensor:
        scores = self._scores()
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


@dataclass(frozen=True, eq=False)
class OrderConsistency:
    """How far pairwise preferences are from a single order score for each variable; all zeros when they have one.

    The log-ratios ρ_jk = log(r_jk / r_kj) split into differences of a potential and a cyclic part that no potential
    explains (a Hodge decomposition).
    """

    cyclic_share: Tensor  # (...) between 0 and 1: Euclidean size of the cyclic part divided by that of ρ
    largest_curl: Tensor  # (...) the largest |ρ_ij + ρ_jk + ρ_ki| over triples, in log-odds

    def representable(self, tolerance: float = 1e-3) -> Tensor:
        """Whether a SkeletonOrder has these marginals, proposition 2: no triple has a curl.  (...) bool"""
        return self.largest_curl <= tolerance


def order_consistency(edge_marginals: Tensor, variable_mask: Tensor | None = None) -> OrderConsistency:
    """How well one score for each variable explains the directions in `edge_marginals`  (..., P, P), proposition 2."""
    log_ratios = _log_ratios(edge_marginals, variable_mask)
    potential = _potential(log_ratios, variable_mask)
    differences = potential.unsqueeze(-1) - potential.unsqueeze(-2)
    cyclic = (log_ratios - differences).masked_fill(~_pairs(log_ratios, variable_mask), 0.0)  # (..., P, P)
    size = torch.linalg.matrix_norm(log_ratios)
    cyclic_size = torch.linalg.matrix_norm(cyclic)
    largest_curl = torch.zeros_like(size)
    for i in range(log_ratios.shape[-1]):
        # ρ and its cyclic part have the same curls. Where j or k is masked, or equal to i, the sum is zero or a single
        # cyclic entry, which is a mean of curls and so cannot be the largest.
        curls = cyclic[..., i, :, None] + cyclic + cyclic[..., None, :, i]
        largest_curl = largest_curl.maximum(curls.abs().amax(dim=(-2, -1)))
    cyclic_share = torch.where(size > 0, cyclic_size / size, 0.0)
    return OrderConsistency(cyclic_share, largest_curl)


def _coin_entropy(logits: Tensor) -> Tensor:
    """Entropy in bits of coins with these log-odds."""
    size = logits.abs()
    return (torch.log1p(torch.exp(-size)) + size * torch.sigmoid(-size)) / math.log(2)


def _widened(values: Tensor) -> Tensor:
    """The values in float32 at least."""
    return values.to(torch.promote_types(values.dtype, torch.float32))


def _pairs(matrix: Tensor, variable_mask: Tensor | None) -> Tensor:
    """The entries of a matrix that count: j ≠ k, neither masked.  (P, P) or (..., P, P) bool"""
    distinct = ~torch.eye(matrix.shape[-1], dtype=torch.bool, device=matrix.device)
    if variable_mask is None:
        return distinct
    return distinct & variable_mask.unsqueeze(-1) & variable_mask.unsqueeze(-2)


def _log_ratios(edge_marginals: Tensor, variable_mask: Tensor | None) -> Tensor:
    """ρ_jk = log(r_jk / r_kj), zero where it does not count; GraphError where it does not exist.  (..., P, P)"""
    pairs = _pairs(edge_marginals, variable_mask)
    both_ways = edge_marginals + edge_marginals.mT
    impossible = pairs & ~((edge_marginals > 0) & (both_ways < 1))
    if impossible.any():
        place = tuple(impossible.nonzero()[0].tolist())
        raise GraphError(
            "Expected edge marginals with r_jk > 0 and r_jk + r_kj < 1 for all pairs, "
            f"got r_jk = {edge_marginals[place]:.4g} and r_jk + r_kj = {both_ways[place]:.4g} at {list(place)}. "
            "Marginals that are frequencies need a pseudo-count."
        )
    log_marginals = _widened(edge_marginals).masked_fill(~pairs, 1.0).log()
    return log_marginals - log_marginals.mT


def _potential(log_ratios: Tensor, variable_mask: Tensor | None) -> Tensor:
    """The scores whose differences are closest to ρ in least squares, with mean zero: averages over rows.  (..., P)"""
    variables = log_ratios.shape[-1] if variable_mask is None else variable_mask.sum(-1, keepdim=True).clamp_min(1)
    return log_ratios.sum(-1) / variables


@lru_cache(maxsize=LARGEST_EXACT_LIKELIHOOD)
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
