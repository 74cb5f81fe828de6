"""The skeleton–order distribution nearest to marginals that none has, in the sense of the training loss (appendix B.4).

`SkeletonOrder.from_marginals` keeps the adjacencies and takes the scores closest to the log-ratios in least squares.
What training converges to is another one: it minimizes

    Σ_{j≠k} KL(Bern(η_jk) ‖ Bern(r_jk)),        r_jk = ν_jk · σ(s_j − s_k),

over all ν and s at once (theorem 3). The two agree where the marginals are representable.
"""

# P variables

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from causal_arrow_lab.graphs.skeleton_order import SkeletonOrder

MAX_ITERATIONS = 500


def edgewise_kl(edge_marginals: Tensor, distribution: SkeletonOrder) -> Tensor:
    """Σ_{j≠k} KL(Bern(η_jk) ‖ Bern(r_jk)), how far a distribution is from marginals η, in nats.  (...)"""
    marginals = edge_marginals.double()
    apart = ~torch.eye(marginals.shape[-1], dtype=torch.bool, device=marginals.device)
    known = marginals.masked_fill(~apart, 0.5)
    logits = distribution.edge_logits().double().masked_fill(~apart, 0.0)
    entropy = -torch.xlogy(known, known) - torch.xlogy(1 - known, 1 - known)
    excess = binary_cross_entropy_with_logits(logits, known, reduction="none") - entropy
    return excess.masked_fill(~apart, 0.0).sum(dim=(-2, -1))


def kl_projection(edge_marginals: Tensor) -> SkeletonOrder:
    """The distribution nearest to directed edge marginals (..., P, P) in edgewise KL divergence, in double precision.

    By L-BFGS from the least-squares one, so never farther than that.
    """
    start = SkeletonOrder.from_marginals(edge_marginals.double())
    logits = start.skeleton_logits.detach().clone().requires_grad_()
    scores = start.order_scores.detach().clone().requires_grad_()
    search = torch.optim.LBFGS(
        [logits, scores],
        max_iter=MAX_ITERATIONS,
        tolerance_grad=1e-10,
        tolerance_change=1e-14,
        line_search_fn="strong_wolfe",
    )

    def distance() -> Tensor:
        search.zero_grad()
        here = SkeletonOrder((logits + logits.mT) / 2, scores)
        total = edgewise_kl(edge_marginals, here).sum()
        total.backward()
        return total

    search.step(distance)
    with torch.no_grad():
        return SkeletonOrder((logits + logits.mT) / 2, scores - scores.mean(dim=-1, keepdim=True))
