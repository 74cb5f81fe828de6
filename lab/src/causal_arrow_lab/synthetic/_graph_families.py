"""Random causal graphs, many at once, in generation order: an edge always points from an earlier to a later variable.

Every family is a preference among pairs of variables. A graph with s edges is s pairs drawn one after the other without
replacement, each with probability proportional to its preference among the remaining pairs. Orienting a random
undirected graph along a random permutation, as the paper does, is equivalent to numbering the variables by their
position in that permutation, if preferences depend on positions only where the family intends it.
"""

# B tasks, P variables, M = P(P−1)/2 pairs, L hidden causes

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping

import torch
from torch import Tensor

from causal_arrow_lab.synthetic._noise import look_up

# (B tasks, P variables, generator) -> log preference for the pair (earlier, later), broadcastable to (B, P, P)
Preference = Callable[[int, int, torch.Generator], Tensor]

SCALE_FREE_ALPHA = 0.5  # degree exponent 3, that of Barabási and Albert, is α = 1 / (3 − 1) in the static model


def random_permutations(tasks: int, size: int, generator: torch.Generator) -> Tensor:
    """Draw uniform permutations of 0..size−1.  (B, size)"""
    return torch.rand(tasks, size, generator=generator, device=generator.device).argsort(dim=1)


def erdos_renyi(tasks: int, variables: int, generator: torch.Generator) -> Tensor:
    """All pairs alike."""
    return torch.zeros(1, 1, 1, device=generator.device)


def scale_free(tasks: int, variables: int, generator: torch.Generator) -> Tensor:
    """Static power law: pair (i, j) ∝ (i·j)^−α with random numbers i, so that hubs may be anywhere in the order."""
    number = 1 + random_permutations(tasks, variables, generator)
    fitness = -SCALE_FREE_ALPHA * number.log()
    return fitness[:, :, None] + fitness[:, None, :]


def regulators(tasks: int, variables: int, generator: torch.Generator) -> Tensor:
    """A few variables early in the order cause many: the i-th variable is a cause ∝ 1/i."""
    return -torch.arange(1, variables + 1, device=generator.device).log()[None, :, None]


def collectors(tasks: int, variables: int, generator: torch.Generator) -> Tensor:
    """A few variables late in the order have many causes: the i-th from the end is an effect ∝ 1/i."""
    return -torch.arange(variables, 0, -1, device=generator.device).log()[None, None, :]


def modular(tasks: int, variables: int, generator: torch.Generator) -> Tensor:
    """Two to five communities; a pair within one is e³ times as probable as a pair across."""
    uniform = torch.rand(tasks, variables + 1, generator=generator, device=generator.device)
    communities = 2 + (4 * uniform[:, :1]).floor()
    community = (communities * uniform[:, 1:]).floor()
    return 3.0 * (community[:, :, None] == community[:, None, :])


def layered(tasks: int, variables: int, generator: torch.Generator) -> Tensor:
    """Two to four layers of equal size in the order, and no edge within a layer."""
    layers = 2 + torch.randint(3, (tasks, 1), generator=generator, device=generator.device)
    layer = torch.arange(variables, device=generator.device) * layers // variables
    return torch.where(layer[:, :, None] == layer[:, None, :], -math.inf, 0.0)


def forest(tasks: int, variables: int, generator: torch.Generator) -> Tensor:
    """At most one cause each: every variable may have one earlier variable, chosen uniformly, as its cause."""
    index = torch.arange(variables, device=generator.device)
    uniform = torch.rand(tasks, variables, generator=generator, device=generator.device)
    cause = (uniform * index).floor()  # (B, P), cause of variable j among 0..j−1
    return torch.where(cause[:, None, :] == index[None, :, None], 0.0, -math.inf)


def small_world(tasks: int, variables: int, generator: torch.Generator) -> Tensor:
    """Neighbors on a ring in random order first, by distance. Rewired afterwards."""
    position = random_permutations(tasks, variables, generator)
    gap = (position[:, :, None] - position[:, None, :]).abs()
    return -100.0 * torch.minimum(gap, variables - gap)  # exp(−100): nearer pairs practically always come first


def random_geometric(tasks: int, variables: int, generator: torch.Generator) -> Tensor:
    """Points on a unit square, the nearest pairs first: few long edges, many triangles. For evaluation only."""
    points = torch.rand(tasks, variables, 2, generator=generator, device=generator.device)
    # With a factor this large only ties are random.
    return -1e6 * (points[:, :, None] - points[:, None, :]).square().sum(-1)


def lattice(tasks: int, variables: int, generator: torch.Generator) -> Tensor:
    """Neighbors on a square grid in random order first, by distance: no triangles up to s ≈ 2p. For evaluation only."""
    position = random_permutations(tasks, variables, generator)
    columns = math.ceil(math.sqrt(variables))
    row, column = position // columns, position % columns
    return -100.0 * ((row[:, :, None] - row[:, None, :]) ** 2 + (column[:, :, None] - column[:, None, :]) ** 2)


def cascade(tasks: int, variables: int, generator: torch.Generator) -> Tensor:
    """Pairs next to each other in the order first, by distance: the deepest graphs. For evaluation only."""
    index = torch.arange(variables, device=generator.device)
    return -100.0 * (index[:, None] - index).abs()[None]


GRAPH_FAMILIES: Mapping[str, Preference] = {
    "erdos_renyi": erdos_renyi,
    "scale_free": scale_free,
    "regulators": regulators,
    "collectors": collectors,
    "modular": modular,
    "layered": layered,
    "forest": forest,
    "small_world": small_world,
    "random_geometric": random_geometric,
    "lattice": lattice,
    "cascade": cascade,
}

# The share of chosen pairs that are rewired; inside Watts and Strogatz's regime: short paths already, still clustered.
REWIRED: Mapping[str, float] = {"small_world": 0.2}

# The number of edges s is uniform on {0, ..., this many times p}, limited by the pairs that the family allows. A few
# variables have less than 4p pairs and would often be all adjacent: `every_edge_count` is uniform on what is possible.
EDGE_COUNTS: Mapping[str, float] = {
    "edges_up_to_4p": 4,
    "edges_up_to_p": 1,
    "every_edge_count": 4,
    "edges_up_to_p_quarter": 0.25,  # tables most of whose columns are unrelated
}
SPREAD_OVER_ROOM = "every_edge_count"


def draw_edge_counts(edge_counts: Tensor, variables: int, generator: torch.Generator) -> Tensor:
    """Draw the number of edges s of each task; `edge_counts` (B,) indexes EDGE_COUNTS.  (B,)"""
    limit = look_up(edge_counts, (int(times * variables) for times in EDGE_COUNTS.values()))
    uniform = torch.rand(len(edge_counts), generator=generator, device=edge_counts.device)
    return (uniform * (limit + 1)).floor().clamp(max=limit).long()


def sample_graphs(
    family: Tensor,
    families: Collection[int],
    edges: Tensor,
    variables: int,
    generator: torch.Generator,
    spread: Tensor | None = None,
) -> Tensor:
    """Draw DAGs with `edges` edges, or as many as the family allows.  (B, P, P) bool, upper triangle

    `family` (B,) indexes GRAPH_FAMILIES, `families` are the codes that occur in it (known on the host). Where `spread`
    (B,), the number of edges is instead uniform from 0 to the number of allowed pairs, at most 4p.
    """
    tasks, device = len(family), family.device
    names = list(GRAPH_FAMILIES)
    preference = torch.zeros(tasks, variables, variables, device=device)
    for code in families:
        of_family = GRAPH_FAMILIES[names[code]](tasks, variables, generator)
        preference = torch.where((family == code)[:, None, None], of_family, preference)

    earlier, later = torch.triu_indices(variables, variables, 1, device=device)  # (M,) each
    preference = preference.flatten(1)[:, earlier * variables + later]  # (B, M)
    room = (preference > -math.inf).sum(1)
    # The pairs whose Exp(preference) clocks ring first: exact sampling without replacement, all at once.
    clock = torch.empty_like(preference).exponential_(generator=generator).log_() - preference
    limit = min(int(max(EDGE_COUNTS.values()) * variables), len(earlier))
    first_pairs = clock.topk(limit, largest=False).indices  # (B, limit), in order
    if spread is not None:
        fits = room.clamp(max=limit)
        uniform = torch.rand(tasks, generator=generator, device=device)
        edges = torch.where(spread, torch.minimum((uniform * (fits + 1)).long(), fits), edges)
    chosen = torch.arange(limit, device=device) < torch.minimum(edges, room)[:, None]

    if any(names[code] in REWIRED for code in families):
        probability = look_up(family, map(REWIRED.get, names))
        return _rewired(earlier[first_pairs], later[first_pairs], chosen, probability, variables, generator)
    pairs = torch.zeros_like(clock, dtype=torch.bool).scatter_(1, first_pairs, chosen)
    adjacency = torch.zeros(tasks, variables * variables, dtype=torch.bool, device=device)
    adjacency[:, earlier * variables + later] = pairs
    return adjacency.view(tasks, variables, variables)


def _rewired(
    earlier: Tensor, later: Tensor, chosen: Tensor, probability: Tensor, variables: int, generator: torch.Generator
) -> Tensor:
    """Move one end of each chosen pair, with its task's probability, to a variable not adjacent to the other end.

    `earlier`, `later` and `chosen` are (B, S). Edges are visited one after the other, as in Watts and Strogatz, so that
    no two coincide.  (B, P, P) bool, upper triangle
    """
    tasks, pairs = chosen.shape
    task = torch.arange(tasks, device=chosen.device)
    joined = torch.zeros(tasks, variables, variables, dtype=torch.bool, device=chosen.device)
    joined[task[:, None], earlier, later] = chosen
    joined |= joined.mT.clone()
    uniform = torch.rand(tasks, pairs, 2, generator=generator, device=chosen.device)
    for edge in range(pairs):
        keep_earlier = uniform[:, edge, 0] < 0.5
        kept = torch.where(keep_earlier, earlier[:, edge], later[:, edge])
        freed = torch.where(keep_earlier, later[:, edge], earlier[:, edge])
        lottery = torch.rand(tasks, variables, generator=generator, device=chosen.device)
        lottery.masked_fill_(joined[task, kept], -1.0)
        lottery[task, kept] = -1.0
        luck, partner = lottery.max(dim=1)
        moves = chosen[:, edge] & (uniform[:, edge, 1] < probability) & (luck >= 0)
        for one, other, value in ((kept, freed, ~moves), (kept, partner, moves)):
            value = torch.where(moves, value, joined[task, one, other])
            joined[task, one, other] = value
            joined[task, other, one] = value
    return joined.triu(1)


def max_hidden_causes(variables: int) -> int:
    """Largest number of hidden causes of a task: one per ten variables, between one and ten."""
    return min(10, -(-variables // 10))


def sample_hidden_causes(
    hidden: Tensor, slots: int, variables: int, generator: torch.Generator, factors: Tensor
) -> Tensor:
    """Draw the variables that each hidden cause acts on: two up to a quarter of all; the rest where `factors` (B,).

    The first `hidden` (B,) of the `slots` (L) hidden causes of a task exist. They are roots, so that the other edges
    are still exactly the direct causes: dropping a mediator would change the labels.  (B, L, P) bool
    """
    tasks, device = len(hidden), hidden.device
    limit = max(2, variables // 4)
    uniform = torch.rand(tasks, slots, 1, generator=generator, device=device)
    few, many = 2 + uniform * (limit - 1), limit + uniform * (variables - limit + 1)
    effects = torch.where(factors[:, None, None], many, few).floor()  # (B, L, 1)
    ranks = random_permutations(tasks * slots, variables, generator).view(tasks, slots, variables)
    exists = torch.arange(slots, device=device) < hidden[:, None]
    return (ranks < effects) & exists[:, :, None]
