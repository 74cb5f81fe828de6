"""Another graph of the same Markov equivalence class: what a table of categories tells when its mechanisms say nothing.

Conditional probability tables can be turned around: whatever the tables of one graph, every graph of its equivalence
class has tables that give the very same distribution. A network that has only seen mechanisms of certain forms takes
their forms for directions, and is sure of them in tables whose forms mean nothing. In tasks whose truth is any member
of the class, the class is all that can be learned.
"""

# B tasks, P variables

from __future__ import annotations

import math

import torch
from torch import Tensor

# Steps of the walk: some, and some more for each variable, up to the most.
FEWEST_STEPS, STEPS_PER_VARIABLE, MOST_STEPS = 20, 3, 150


def draw_members(adjacency: Tensor, generator: torch.Generator) -> Tensor:
    """For each graph one of its equivalence class, by a walk whose stationary law is uniform on the class.

    An edge j → k is covered if the causes of k are j and the causes of j; turning it round leads to another member, and
    any two members are joined by such steps (Chickering, 1995). A covered edge is chosen uniformly, and the step taken
    with the probability of Metropolis and Hastings.  (B, P, P) bool
    """
    graphs = adjacency.float()
    tasks, variables, _ = graphs.shape
    covered = _covered(graphs)
    # Half of the walks are one step shorter: an even and an odd number of turned edges are then as likely.
    waits = torch.rand(tasks, generator=generator, device=graphs.device) < 0.5
    for step in range(min(FEWEST_STEPS + STEPS_PER_VARIABLE * variables, MOST_STEPS)):
        dials = torch.rand(tasks, variables * variables + 1, generator=generator, device=graphs.device)
        chosen = (dials[:, 1:] * covered.flatten(1)).argmax(1)
        turned = torch.zeros_like(graphs).flatten(1).scatter_(1, chosen[:, None], 1.0).view_as(graphs)
        turned = turned * covered  # nothing where no edge is covered
        proposed = graphs - turned + turned.mT
        covered_then = _covered(proposed)
        taken = dials[:, 0] * covered_then.sum((1, 2)) < covered.sum((1, 2))
        taken = taken & ~waits if step == 0 else taken
        graphs = torch.where(taken[:, None, None], proposed, graphs)
        covered = torch.where(taken[:, None, None], covered_then, covered)
    return graphs > 0


def causal_order(adjacency: Tensor) -> Tensor:
    """The variables of each graph, causes before effects: by how many ancestors they have.  (B, P)"""
    reached = adjacency.float()
    for _ in range(math.ceil(math.log2(adjacency.shape[1]))):
        reached = ((reached + torch.bmm(reached, reached)) > 0).float()
    return reached.sum(1).argsort(dim=1, stable=True)


def _covered(graphs: Tensor) -> Tensor:
    """Which edges j → k are covered.  (B, P, P), 0 or 1"""
    causes = graphs.sum(1)  # (B, P)
    shared = torch.bmm(graphs.mT, graphs)
    alike = (causes[:, None, :] == causes[:, :, None] + 1) & (shared == causes[:, :, None])
    return graphs * alike
